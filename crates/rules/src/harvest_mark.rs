//! The start of the next incremental harvest of a source.

use super::served_spans::CLOCK_ERROR_MAX_SECS;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::Granularity;

/// The clocks in one response of a source, and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseClocks {
    /// The responseDate, if it is legal.
    pub response_date_secs: Option<UnixSecs>,
    /// The HTTP header `Date`, if the response has one.
    pub http_date_secs: Option<UnixSecs>,
    /// Our clock when the request was sent.
    pub sent_at_secs: UnixSecs,
}

impl ResponseClocks {
    /// The time of the response by the clock of the source, or by ours if that is earlier: a source with the
    /// year 2099 in its responseDate still changes its records today. A source without a clock in its response
    /// gets the earliest time that our clock allows.
    fn source_secs(&self) -> UnixSecs {
        let of_source = self.response_date_secs.or(self.http_date_secs);
        let earliest_secs = self.sent_at_secs.minus(CLOCK_ERROR_MAX_SECS);
        of_source.map_or(earliest_secs, |of_source| of_source.min(self.sent_at_secs))
    }

    /// The time by which the source's clock is ahead of ours: 0, or negative if it is behind.
    fn lead_secs(&self) -> i64 {
        self.source_secs().since(self.sent_at_secs)
    }

    /// The difference between the two clocks of the source, as far as they are not ahead of ours. Datestamps can
    /// come from either.
    fn skew_secs(&self) -> i64 {
        let skew =
            |date_secs: UnixSecs| self.source_secs().since(date_secs.min(self.sent_at_secs)).saturating_abs();
        self.http_date_secs.map_or(0, skew)
    }
}

/// The state that a complete harvest of a source has reached, from the clocks of its **first** page.
///
/// Store it when the harvest is complete. The two numbers are all that needs to be stored.
///
/// ```
/// use oaimend_rules::{HarvestMark, ResponseClocks};
/// use oaimend_oai::UnixSecs;
/// use oaimend_oai::datestamp::Granularity;
///
/// let now = UnixSecs(5_000);
/// let first = ResponseClocks { response_date_secs: Some(now), http_date_secs: Some(now), sent_at_secs: now };
/// let mark = HarvestMark::new(&first, Granularity::Second);
/// assert!(mark.from_secs() <= now, "the next harvest overlaps this one");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarvestMark {
    from_secs: UnixSecs,
    lead_secs: i64,
}

impl HarvestMark {
    /// The mark of a harvest whose first response had these clocks.
    pub fn new(first: &ResponseClocks, granularity: Granularity) -> Self {
        let grain_secs = match granularity {
            Granularity::Day => 86_400,
            Granularity::Second => 1,
        };
        let overlap_secs = first.skew_secs().saturating_add(grain_secs);
        Self { from_secs: first.source_secs().minus(overlap_secs), lead_secs: first.lead_secs() }
    }

    /// A stored mark. Earlier versions stored times of source clocks that were ahead of ours.
    pub const fn restore(from_secs: UnixSecs, lead_secs: i64) -> Self {
        if lead_secs > 0 {
            return Self { from_secs: from_secs.minus(lead_secs), lead_secs: 0 };
        }
        Self { from_secs, lead_secs }
    }

    /// The `from` of the next harvest: the responseDate, or our clock if that is earlier, minus the granularity
    /// and the skew of the source's clocks. All changes before it are in the harvest, so it is also the state of
    /// the copy.
    pub const fn from_secs(&self) -> UnixSecs {
        self.from_secs
    }

    /// The time by which the source's clock was ahead of ours: 0, or negative if it was behind.
    pub const fn lead_secs(&self) -> i64 {
        self.lead_secs
    }

    /// The `from` of the next harvest, if the source's clock was possibly set back since this one.
    ///
    /// `now` comes from a response of the source after the pause, such as Identify. Changes after the
    /// step have datestamps before the responseDate of this harvest, so the result is earlier by the
    /// step. A step of our clock looks the same, and costs some records that are harvested twice. Two
    /// steps in opposite directions between two harvests are not noticed.
    pub fn from_secs_at(&self, now: &ResponseClocks) -> UnixSecs {
        let step_secs = self.lead_secs.saturating_sub(now.lead_secs()).max(0);
        self.from_secs.minus(step_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(date: Option<i64>, http_date: Option<i64>, sent_at_secs: i64) -> ResponseClocks {
        ResponseClocks {
            response_date_secs: date.map(UnixSecs),
            http_date_secs: http_date.map(UnixSecs),
            sent_at_secs: UnixSecs(sent_at_secs),
        }
    }

    fn from_secs(clocks: ResponseClocks) -> i64 {
        HarvestMark::new(&clocks, Granularity::Second).from_secs().0
    }

    #[test]
    fn a_harvest_starts_one_grain_before_the_last_date() {
        let same = clocks(Some(500_000), Some(500_000), 500_000);
        assert_eq!(HarvestMark::new(&same, Granularity::Second).from_secs().0, 499_999);
        assert_eq!(HarvestMark::new(&same, Granularity::Day).from_secs().0, 500_000 - 86_400);
    }

    #[test]
    fn the_skew_between_the_clocks_of_the_source_is_part_of_the_overlap() {
        assert_eq!(from_secs(clocks(Some(1_000), Some(970), 1_000)), 969);
        assert_eq!(from_secs(clocks(Some(1_000), Some(1_030), 1_030)), 969);
        assert_eq!(from_secs(clocks(Some(1_000), None, 1_000)), 999);
    }

    #[test]
    fn clocks_in_the_future_do_not_end_all_harvests() {
        const YEAR_2099: i64 = 4_070_908_800;
        for http_date_secs in [None, Some(1_000), Some(YEAR_2099)] {
            let first = clocks(Some(YEAR_2099), http_date_secs, 1_000);
            let mark = HarvestMark::new(&first, Granularity::Second);
            let next = clocks(Some(YEAR_2099), http_date_secs, 5_000);
            assert_eq!((mark.from_secs().0, mark.from_secs_at(&next).0), (999, 999), "{http_date_secs:?}");
            // The clock of the source is mended, and it is behind ours.
            assert_eq!(mark.from_secs_at(&clocks(Some(4_990), Some(4_990), 5_000)).0, 989);
        }
        // As an earlier version stored it.
        assert_eq!(HarvestMark::restore(UnixSecs(YEAR_2099 - 1), YEAR_2099 - 1_000).from_secs().0, 999);
    }

    #[test]
    fn a_source_without_clocks_is_harvested_with_the_error_of_ours() {
        assert_eq!(from_secs(clocks(None, Some(900), 1_000)), 899);
        assert_eq!(from_secs(clocks(None, None, 100_000)), 100_000 - CLOCK_ERROR_MAX_SECS - 1);
    }

    #[test]
    fn a_source_clock_that_was_set_back_is_harvested_from_before_the_step() {
        let mark = HarvestMark::new(&clocks(Some(10_000), Some(10_000), 10_000), Granularity::Second);
        let at = |source: i64, ours: i64| mark.from_secs_at(&clocks(Some(source), Some(source), ours)).0;
        assert_eq!(at(10_500, 10_500), 9_999);
        // The step is seen although the source's clock has passed the old time again.
        assert_eq!(at(10_400, 14_000), 9_999 - 3_600);
        assert_eq!(at(20_000, 14_000), 9_999);
        assert_eq!(HarvestMark::restore(mark.from_secs(), mark.lead_secs()), mark);
    }

    #[test]
    fn no_change_is_missed_when_the_clock_of_a_source_steps() {
        for seed in 1..=2_000_u64 {
            let mut state = seed;
            let mut random = |bound: i64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                i64::try_from(state >> 33).unwrap_or(0) % bound
            };
            let (mut now, mut lead) = (1_000_000, random(5_000) - 2_500);
            let mut mark: Option<HarvestMark> = None;
            // The datestamps of the changes since the last harvest.
            let (mut changes, mut has_stepped) = (Vec::new(), false);
            for _ in 0..50 {
                now += random(4_000);
                match random(4) {
                    0 if !has_stepped => {
                        lead += random(7_201) - 3_600;
                        has_stepped = true;
                    }
                    1 => {
                        let clocks = clocks(Some(now + lead), Some(now + lead), now);
                        if let Some(mark) = mark {
                            let from_secs = mark.from_secs_at(&clocks).0;
                            assert!(
                                changes.iter().all(|&stamp: &i64| stamp >= from_secs),
                                "seed {seed}: {mark:?}"
                            );
                        }
                        mark = Some(HarvestMark::new(&clocks, Granularity::Second));
                        changes.clear();
                        has_stepped = false;
                    }
                    _ => changes.push(now + lead),
                }
            }
        }
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        for date in [i64::MIN, -1, 0, i64::MAX] {
            for sent_at_secs in [i64::MIN, 0, i64::MAX] {
                let clocks = clocks(Some(date), Some(sent_at_secs), sent_at_secs);
                let mark = HarvestMark::new(&clocks, Granularity::Day);
                assert!(mark.from_secs_at(&clocks) <= mark.from_secs());
            }
        }
    }
}
