//! The simulated mirror: it harvests the source page by page, in commits that take time.

use oaimend::mirror::rules::{HarvestMark, ListTimes, PendingCommit, StampClock};

use super::Broken;
use super::source::{Items, PAGE_RECORDS, RECORDS, Record, Source, SourceList};

/// A record of the store.
#[derive(Clone, Copy, Debug)]
struct Stored {
    record: Record,
    stamp_secs: i64,
}

/// A harvest that is not complete.
#[derive(Debug)]
struct Harvest {
    list: SourceList,
    /// The position in the list up to which all pages are committed.
    committed: usize,
    mark: HarvestMark,
}

/// A commit that is not visible yet.
#[derive(Debug)]
struct Commit {
    pending: Option<PendingCommit>,
    stamp_secs: i64,
    changes: Items,
}

#[derive(Debug)]
pub(super) struct Mirror {
    broken: Option<Broken>,
    clock: StampClock,
    /// The stored reservation.
    reserved_secs: Option<i64>,
    stored: [Option<Stored>; RECORDS],
    /// The mark of the last complete harvest.
    mark: Option<HarvestMark>,
    harvest: Option<Harvest>,
    commit: Option<Commit>,
}

impl Mirror {
    pub(super) fn new(broken: Option<Broken>) -> Self {
        Self {
            broken,
            clock: StampClock::resume(None, None),
            reserved_secs: None,
            stored: [None; RECORDS],
            mark: None,
            harvest: None,
            commit: None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.harvest.is_none() && self.commit.is_none()
    }

    pub(super) fn has_commit(&self) -> bool {
        self.commit.is_some()
    }

    /// The state of the copy in the source's time; `None` before the first complete harvest.
    pub(super) fn state_secs(&self) -> Option<i64> {
        self.mark.map(|mark| mark.from_secs())
    }

    /// Begins a harvest, commits its next page, or makes a commit visible.
    ///
    /// `is_answering` says whether the source answers a request now.
    pub(super) fn step(&mut self, source: &Source, is_answering: bool, now_secs: i64, our_secs: i64) {
        if let Some(commit) = self.commit.take() {
            self.finish(commit);
            if self.harvest.as_ref().is_some_and(|harvest| harvest.list.is_at_end()) {
                self.mark = self.harvest.take().map(|harvest| harvest.mark);
            }
        } else if is_answering {
            self.request(source, now_secs, our_secs);
        }
    }

    fn request(&mut self, source: &Source, now_secs: i64, our_secs: i64) {
        let clocks = source.clocks(now_secs, our_secs);
        let overlapping = HarvestMark::new(&clocks, source.granularity);
        let mark = match (self.broken, clocks.response_date_secs) {
            (Some(Broken::NoOverlap), Some(date_secs)) => {
                HarvestMark::restore(date_secs, overlapping.lead_secs())
            }
            _ => overlapping,
        };
        let harvest = self.harvest.get_or_insert_with(|| {
            let from_secs = self.mark.map(|mark| mark.from_secs_at(&clocks));
            Harvest { list: source.list(from_secs), committed: 0, mark }
        });
        if self.broken == Some(Broken::MarkOfTheLastPage) {
            harvest.mark = mark;
        }
        let page = source.page(&mut harvest.list);
        let is_new = |&(id, record): &(usize, Record)| {
            self.stored[id].is_none_or(|stored: Stored| stored.record != record)
        };
        let changes: Items = page.into_iter().filter(is_new).collect();
        self.commit = Some(self.begin(changes, our_secs));
    }

    fn begin(&mut self, changes: Items, our_secs: i64) -> Commit {
        if self.broken == Some(Broken::StampsOfTheClock) {
            return Commit { pending: None, stamp_secs: our_secs, changes };
        }
        let pending = self.clock.begin_commit(our_secs);
        let stamp_secs = pending.stamp_secs();
        if self.broken == Some(Broken::StampsAtBegin) {
            self.clock.finish_commit(pending);
            return Commit { pending: None, stamp_secs, changes };
        }
        Commit { pending: Some(pending), stamp_secs, changes }
    }

    fn finish(&mut self, commit: Commit) {
        for (id, record) in commit.changes {
            self.stored[id] = Some(Stored { record, stamp_secs: commit.stamp_secs });
        }
        if let Some(pending) = commit.pending {
            self.clock.finish_commit(pending);
        }
        if let Some(harvest) = &mut self.harvest {
            harvest.committed = harvest.list.position;
        }
    }

    /// Abandons the harvest; the next one begins again.
    pub(super) fn abandon(&mut self) {
        if self.commit.is_none() {
            self.harvest = None;
        }
    }

    /// Stops and starts the program: the commit is rolled back, the harvest is resumed.
    pub(super) fn restart(&mut self) {
        self.commit = None;
        if let Some(harvest) = &mut self.harvest {
            harvest.list.position = harvest.committed;
        }
        let highest_secs = self.stored.iter().flatten().map(|stored| stored.stamp_secs).max();
        let has_reservation = self.broken != Some(Broken::NoReservation);
        let reserved_secs = self.reserved_secs.filter(|_| has_reservation);
        self.clock = StampClock::resume(highest_secs, reserved_secs);
    }

    /// The times of a list over the stamps of the mirror.
    pub(super) fn begin_list(&mut self, our_secs: i64) -> ListTimes {
        if let Some(until_secs) = self.clock.reservation_due(our_secs) {
            self.reserved_secs = Some(until_secs);
            self.clock.reserve(until_secs);
        }
        self.clock.begin_list(our_secs).expect("a reservation")
    }

    /// A page of the records with stamps from `from_secs` to `until_secs`, after a position.
    pub(super) fn page_by_stamp(
        &self,
        from_secs: i64,
        until_secs: i64,
        after: Option<(i64, usize)>,
    ) -> Vec<(i64, usize, Record)> {
        let stored = self.stored.iter().enumerate().filter_map(|(id, stored)| Some((id, (*stored)?)));
        let listed = stored.map(|(id, stored)| (stored.stamp_secs, id, stored.record));
        let is_wanted = |&(stamp_secs, id, _): &(i64, usize, Record)| {
            (from_secs..=until_secs).contains(&stamp_secs) && Some((stamp_secs, id)) > after
        };
        let mut page: Vec<_> = listed.filter(is_wanted).collect();
        page.sort_by_key(|&(stamp_secs, id, _)| (stamp_secs, id));
        page.truncate(PAGE_RECORDS);
        page
    }

    /// A page of the records with datestamps of the source from `from_secs` on and numbers from `first`
    /// on, without those that were delivered.
    pub(super) fn page_by_id(&self, from_secs: i64, first: usize, is_delivered: &[bool; RECORDS]) -> Items {
        let stored = self.stored.iter().enumerate().filter_map(|(id, stored)| Some((id, (*stored)?.record)));
        let is_wanted = |(id, record): &(usize, Record)| {
            *id >= first && !is_delivered[*id] && record.stamp_secs >= from_secs
        };
        stored.filter(is_wanted).take(PAGE_RECORDS).collect()
    }
}
