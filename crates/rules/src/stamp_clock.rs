//! The stamps of commits, and the responseDates of lists over them.

use oaimend_oai::UnixSecs;
use std::collections::BTreeMap;

/// How far ahead of the clock responseDates are reserved. A clock that was set back across a restart
/// makes the next stamps later than the clock by at most this time and the step.
pub const RESERVATION_SECS: i64 = 60;

/// Issues the stamps of commits and the responseDates of lists.
///
/// Invariant: a commit that becomes visible after the start of a list has a later stamp than the
/// responseDate of this list. Neither a slow commit, nor a clock that is set back, nor a restart
/// breaks it:
///
/// - A responseDate is before the stamps of all commits that are not visible yet (the low-water mark).
/// - The stamp of a new commit is after all responseDates, whatever the clock says.
/// - A responseDate is before the reservation, which is stored. After a restart all stamps are at
///   or after it.
///
/// Several commits can have the same stamp. ResponseDates never decrease. If the clock is set back,
/// stamps stay at their highest value until the clock reaches it again.
///
/// ```
/// use oaimend_oai::UnixSecs;
/// use oaimend_rules::StampClock;
///
/// let mut clock = StampClock::resume(None, None);
/// clock.reserve(UnixSecs(2_000));
/// let commit = clock.begin_commit(UnixSecs(1_000));
/// let stamp_secs = commit.stamp_secs();
/// clock.finish_commit(commit);
/// let list = clock.begin_list(UnixSecs(1_001)).expect("the time is reserved");
/// assert!(stamp_secs <= list.until_secs, "the list contains the commit");
/// ```
#[derive(Debug)]
pub struct StampClock {
    /// The lowest possible stamp of the next commit. All issued responseDates are before it.
    floor_secs: UnixSecs,
    /// All responseDates are before it. `None` before the first reservation.
    reserved_secs: Option<UnixSecs>,
    /// The number of commits that are not visible yet, by stamp.
    pending: BTreeMap<UnixSecs, usize>,
}

/// A commit that is not visible yet. Pass it to [`StampClock::finish_commit`].
///
/// If it is dropped instead, responseDates stay before its stamp until the next start. That is safe,
/// but harvesters then receive more and more records twice.
#[must_use = "responseDates do not pass its stamp before it is finished"]
#[derive(Debug, PartialEq, Eq)]
pub struct PendingCommit {
    stamp_secs: UnixSecs,
}

impl PendingCommit {
    /// The stamp of all records of this commit.
    pub const fn stamp_secs(&self) -> UnixSecs {
        self.stamp_secs
    }
}

/// The times of a list over stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListTimes {
    /// The responseDate: all commits that become visible later have later stamps.
    pub response_date_secs: UnixSecs,
    /// The stamp up to which the list contains all visible records. It is after the responseDate while
    /// another commit is not visible yet, and after the clock was set back. The next list of the
    /// harvester contains the records between both times again.
    pub until_secs: UnixSecs,
}

impl StampClock {
    /// The clock after a start: `highest_stamp_secs` is the highest stamp in the store, and
    /// `reserved_secs` the stored reservation. Both are `None` for a new store.
    ///
    /// The store forgets the stamps of a collection that was removed. The reservation is enough for the invariant: later
    /// stamps, also of the same collection after its return, are after all issued responseDates.
    pub fn resume(highest_stamp_secs: Option<UnixSecs>, reserved_secs: Option<UnixSecs>) -> Self {
        let floor_secs = highest_stamp_secs.max(reserved_secs).unwrap_or(UnixSecs::MIN);
        Self { floor_secs, reserved_secs, pending: BTreeMap::new() }
    }

    /// Begins a commit and determines the stamp of its records.
    pub fn begin_commit(&mut self, now_secs: UnixSecs) -> PendingCommit {
        let stamp_secs = now_secs.max(self.floor_secs);
        self.floor_secs = stamp_secs;
        *self.pending.entry(stamp_secs).or_default() += 1;
        PendingCommit { stamp_secs }
    }

    /// Ends a commit: its records are visible to all later responses, or it was rolled back.
    pub fn finish_commit(&mut self, commit: PendingCommit) {
        if let Some(count) = self.pending.get_mut(&commit.stamp_secs) {
            *count -= 1;
            if *count == 0 {
                self.pending.remove(&commit.stamp_secs);
            }
        }
    }

    /// Determines the times of a list that begins now: the responseDate, which is the same on all its
    /// pages, and the last stamp that it contains.
    ///
    /// `None` before the first reservation.
    pub fn begin_list(&mut self, now_secs: UnixSecs) -> Option<ListTimes> {
        let low_water_secs =
            self.pending.first_key_value().map_or(UnixSecs::MAX, |(&stamp_secs, _)| stamp_secs);
        let end_secs = low_water_secs.min(self.reserved_secs?);
        let date_secs = now_secs.max(self.floor_secs.minus(1)).min(end_secs.minus(1));
        let until_secs = self.floor_secs.max(date_secs);
        self.floor_secs = self.floor_secs.max(date_secs.plus(1));
        Some(ListTimes { response_date_secs: date_secs, until_secs })
    }

    /// The next reservation, if it is due. Store it first, then pass it to [`Self::reserve`].
    ///
    /// Without it responseDates stay at the end of the last reservation.
    pub fn reservation_due(&self, now_secs: UnixSecs) -> Option<UnixSecs> {
        let needed_secs = now_secs.max(self.floor_secs);
        let is_due = |reserved_secs: UnixSecs| reserved_secs.since(needed_secs) < RESERVATION_SECS / 2;
        self.reserved_secs.is_none_or(is_due).then(|| needed_secs.plus(RESERVATION_SECS))
    }

    /// Permits responseDates before `until_secs`, which the store contains now.
    pub fn reserve(&mut self, until_secs: UnixSecs) {
        self.reserved_secs = self.reserved_secs.max(Some(until_secs));
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "a test may panic")]

    use super::*;

    fn started() -> StampClock {
        let mut clock = StampClock::resume(None, None);
        clock.reserve(UnixSecs::MAX);
        clock
    }

    fn commit(clock: &mut StampClock, now_secs: i64) -> i64 {
        let commit = clock.begin_commit(UnixSecs(now_secs));
        let stamp_secs = commit.stamp_secs();
        clock.finish_commit(commit);
        stamp_secs.0
    }

    fn date(clock: &mut StampClock, now_secs: i64) -> Option<i64> {
        clock.begin_list(UnixSecs(now_secs)).map(|times| times.response_date_secs.0)
    }

    #[test]
    fn stamps_and_dates_follow_a_clock_that_runs() {
        let mut clock = started();
        assert_eq!(commit(&mut clock, 100), 100);
        assert_eq!(date(&mut clock, 105), Some(105));
        assert_eq!(commit(&mut clock, 110), 110);
    }

    #[test]
    fn a_commit_in_the_second_of_a_response_is_stamped_after_it() {
        let mut clock = started();
        assert_eq!(date(&mut clock, 100), Some(100));
        assert_eq!(commit(&mut clock, 100), 101);
        assert_eq!(commit(&mut clock, 100), 101);
    }

    #[test]
    fn a_response_date_is_before_the_stamps_of_pending_commits() {
        let mut clock = started();
        let slow = clock.begin_commit(UnixSecs(100));
        let quick = clock.begin_commit(UnixSecs(130));
        clock.finish_commit(quick);
        assert_eq!(date(&mut clock, 150), Some(99));
        clock.finish_commit(slow);
        assert_eq!(date(&mut clock, 150), Some(150));
    }

    #[test]
    fn pending_commits_with_one_stamp_are_counted() {
        let mut clock = started();
        let (one, other) = (clock.begin_commit(UnixSecs(100)), clock.begin_commit(UnixSecs(100)));
        clock.finish_commit(one);
        assert_eq!(date(&mut clock, 150), Some(99));
        clock.finish_commit(other);
        assert_eq!(date(&mut clock, 150), Some(150));
    }

    #[test]
    fn a_list_contains_all_records_that_are_visible() {
        let mut clock = started();
        let slow = clock.begin_commit(UnixSecs(100));
        assert_eq!(commit(&mut clock, 130), 130);
        let during = ListTimes { response_date_secs: UnixSecs(99), until_secs: UnixSecs(130) };
        assert_eq!(clock.begin_list(UnixSecs(150)), Some(during));
        clock.finish_commit(slow);
        let after_step = ListTimes { response_date_secs: UnixSecs(129), until_secs: UnixSecs(130) };
        assert_eq!(clock.begin_list(UnixSecs(20)), Some(after_step));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_push_stamps_forward() {
        let mut clock = started();
        assert_eq!(commit(&mut clock, 5_000), 5_000);
        for now_secs in 1_400..1_500 {
            assert_eq!(date(&mut clock, now_secs), Some(4_999));
            assert_eq!(commit(&mut clock, now_secs), 5_000);
        }
        assert_eq!(date(&mut clock, 6_000), Some(6_000));
    }

    #[test]
    fn stamps_after_a_restart_are_after_all_dates_before_it() {
        let mut clock = StampClock::resume(None, None);
        assert_eq!(date(&mut clock, 1_000), None);
        let reserved = clock.reservation_due(UnixSecs(1_000)).expect("nothing is reserved");
        clock.reserve(reserved);
        assert_eq!(reserved, UnixSecs(1_000 + RESERVATION_SECS));
        assert_eq!(date(&mut clock, 5_000), Some(reserved.0 - 1), "not beyond the reservation");
        let mut clock = StampClock::resume(None, Some(reserved));
        assert_eq!(commit(&mut clock, 10), reserved.0);
        let mut clock = StampClock::resume(Some(UnixSecs(7_000)), Some(reserved));
        assert_eq!(commit(&mut clock, 10), 7_000);
    }

    #[test]
    fn a_reservation_is_due_before_the_last_one_ends() {
        let mut clock = StampClock::resume(None, None);
        clock.reserve(UnixSecs(1_000));
        assert_eq!(clock.reservation_due(UnixSecs(1_000 - RESERVATION_SECS)), None);
        assert_eq!(clock.reservation_due(UnixSecs(999)), Some(UnixSecs(999 + RESERVATION_SECS)));
        clock.reserve(UnixSecs(500));
        assert_eq!(
            clock.reservation_due(UnixSecs(1_000 - RESERVATION_SECS)),
            None,
            "reservations never shrink"
        );
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        for now_secs in [i64::MIN, -1, 0, i64::MAX] {
            let mut clock = started();
            let pending = clock.begin_commit(UnixSecs(now_secs));
            let _ = date(&mut clock, now_secs);
            let _ = clock.reservation_due(UnixSecs(now_secs));
            clock.finish_commit(pending);
            assert!(date(&mut clock, now_secs).is_some());
        }
    }

    /// Random commits, responses, clock steps, removals and restarts.
    fn check_invariant(seed: u64) {
        let mut state = seed;
        let mut random = |bound: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(state >> 33).unwrap_or(0) % bound
        };
        let (mut clock, mut now_secs) = (StampClock::resume(None, None), 100_000);
        let (mut reserved, mut highest, mut last_date) = (None, None, UnixSecs::MIN);
        let mut pending: Vec<PendingCommit> = Vec::new();
        for _ in 0..200 {
            now_secs += match random(12) {
                0 => 3_600,
                1 => -3_600,
                _ => random(3),
            };
            match random(6) {
                0 | 1 => pending.push(clock.begin_commit(UnixSecs(now_secs))),
                2 | 3 if !pending.is_empty() => {
                    let index = usize::try_from(random(pending.len() as i64)).unwrap_or(0);
                    let commit = pending.swap_remove(index);
                    assert!(commit.stamp_secs() > last_date, "seed {seed}: {commit:?}, date {last_date}");
                    highest = highest.max(Some(commit.stamp_secs()));
                    clock.finish_commit(commit);
                }
                4 => {
                    // A full disk cannot store it.
                    let can_reserve = reserved.is_none() || random(4) > 0;
                    if can_reserve && let Some(until_secs) = clock.reservation_due(UnixSecs(now_secs)) {
                        reserved = Some(until_secs);
                        clock.reserve(until_secs);
                    }
                    let times = clock.begin_list(UnixSecs(now_secs)).expect("a reservation");
                    let date = times.response_date_secs;
                    assert!(date >= last_date, "seed {seed}: {date} after {last_date}");
                    assert!(Some(times.until_secs) >= highest, "seed {seed}: {times:?} omit {highest:?}");
                    last_date = date;
                }
                5 if random(8) == 0 => {
                    pending.clear();
                    if random(2) == 0 {
                        // The collections were removed.
                        highest = None;
                    }
                    clock = StampClock::resume(highest, reserved);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn no_commit_becomes_visible_at_or_before_a_served_date() {
        (1..=2_000).for_each(check_invariant);
    }
}
