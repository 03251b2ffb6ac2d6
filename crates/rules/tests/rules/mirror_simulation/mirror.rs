//! The simulated mirror: it harvests the source page by page, in commits that take time.

use oaimend_oai::UnixSecs;
use oaimend_rules::{
    HarvestMark, KnownGaps, KnownMembers, ListState, ListTimes, MissingItem, PendingCommit, SetFacts,
    Sighting, StampClock,
};

use super::Broken;
use super::source::{Items, PAGE_RECORDS, RECORDS, Record, Selection, Source, SourceList};

/// A record of the store.
#[derive(Clone, Copy, Debug)]
struct Stored {
    record: Record,
    stamp_secs: UnixSecs,
    /// Whether it names the set: by its header, or because the source listed it there.
    names_set: bool,
}

fn named(id: usize) -> MissingItem {
    MissingItem::Named(id.to_string())
}

/// A harvest that is not complete.
#[derive(Debug)]
struct Harvest {
    list: SourceList,
    /// The position in the list up to which all pages are committed.
    committed: usize,
    mark: HarvestMark,
    start: HarvestStart,
}

/// The state that a harvest continues from, and its `from`.
#[derive(Clone, Copy, Debug)]
struct HarvestStart {
    before: Option<HarvestMark>,
    from_secs: Option<UnixSecs>,
}

/// A commit that is not visible yet.
#[derive(Debug)]
struct Commit {
    pending: Option<PendingCommit>,
    stamp_secs: UnixSecs,
    changes: Items,
    gaps: KnownGaps,
    /// The numbers of members of the set.
    members: Vec<usize>,
}

/// The harvest of the members of the set, after that of the records.
#[derive(Debug)]
enum MembersHarvest {
    Due,
    Open(SourceList),
}

#[derive(Debug)]
pub(super) struct Mirror {
    broken: Option<Broken>,
    /// Whether headers name the set.
    headers_name_set: bool,
    /// Whether it harvests the members of the set.
    harvests_members: bool,
    members: KnownMembers,
    members_harvest: Option<MembersHarvest>,
    clock: StampClock,
    /// The stored reservation.
    reserved_secs: Option<UnixSecs>,
    stored: [Option<Stored>; RECORDS],
    /// The mark of the last complete harvest.
    mark: Option<HarvestMark>,
    harvest: Option<Harvest>,
    /// The harvest whose lists are complete, and whose missing records are fetched next.
    listed: Option<HarvestStart>,
    commit: Option<Commit>,
    gaps: KnownGaps,
    /// The states at a gap, and the gaps that were closed.
    pub(super) stops: usize,
    pub(super) recoveries: usize,
}

/// The state of a mirror whose first harvest met a gap: before all records.
const UNKNOWN_STATE_SECS: i64 = 0;

impl Mirror {
    pub(super) fn new(broken: Option<Broken>, headers_name_set: bool, harvests_members: bool) -> Self {
        Self {
            broken,
            headers_name_set,
            harvests_members,
            members: KnownMembers::NotRequested,
            members_harvest: None,
            clock: StampClock::resume(None, None),
            reserved_secs: None,
            stored: [None; RECORDS],
            mark: None,
            harvest: None,
            listed: None,
            commit: None,
            gaps: KnownGaps::default(),
            stops: 0,
            recoveries: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.harvest.is_none()
            && self.listed.is_none()
            && self.commit.is_none()
            && self.members_harvest.is_none()
    }

    pub(super) fn has_commit(&self) -> bool {
        self.commit.is_some()
    }

    /// The state of the copy in the source's time; `None` before the first complete harvest.
    pub(super) fn state_secs(&self) -> Option<UnixSecs> {
        let mark = self.mark?;
        if self.broken == Some(Broken::StateIgnoresGaps) {
            return Some(mark.from_secs());
        }
        Some(self.gaps.state(mark).map_or(UnixSecs(UNKNOWN_STATE_SECS), |state| state.from_secs()))
    }

    /// The state of a list in the source's time; `None` if the mirror must not answer it.
    pub(super) fn state_of_list(&self, is_of_set: bool) -> Option<ListState> {
        let collection = ListState::new(self.state_secs()?);
        if !is_of_set || self.broken == Some(Broken::SetsOfHeadersAlone) {
            return Some(collection);
        }
        let headers_name_sets = self.stored.iter().flatten().any(|stored| stored.names_set);
        let members = match self.members {
            KnownMembers::All(_) if self.broken == Some(Broken::MembersOfNow) => {
                KnownMembers::All(collection)
            }
            members => members,
        };
        SetFacts { headers_name_sets, members }.state(collection)
    }

    /// Begins a harvest, commits its next page, or makes a commit visible.
    ///
    /// `is_answering` says whether the source answers a request now.
    pub(super) fn step(
        &mut self,
        source: &Source,
        is_answering: bool,
        now_secs: UnixSecs,
        our_secs: UnixSecs,
    ) {
        if let Some(commit) = self.commit.take() {
            self.finish(commit);
            if let Some(harvest) = self.harvest.take_if(|harvest| harvest.list.is_at_end()) {
                self.mark = Some(harvest.mark);
                self.listed = Some(harvest.start);
                self.stops += usize::from(self.gaps.state(harvest.mark) != self.mark);
                self.members_harvest = self.harvests_members.then_some(MembersHarvest::Due);
            }
            self.end_members_harvest();
        } else if let Some(start) = self.listed.take() {
            self.fetch_gaps(start, source, is_answering, our_secs);
        } else if is_answering && self.members_harvest.is_some() {
            self.request_members(source, our_secs);
        } else if is_answering {
            self.request(source, now_secs, our_secs);
        }
    }

    /// Requests the next members of the set. Until all of them are known for the first time, none are.
    fn request_members(&mut self, source: &Source, our_secs: UnixSecs) {
        if self.members == KnownMembers::NotRequested {
            self.members = KnownMembers::NotAll;
        }
        let mut list = match self.members_harvest.take() {
            Some(MembersHarvest::Open(list)) => list,
            _ => source.list(Selection { is_of_set: true, ..Selection::default() }),
        };
        let lacks_set = |id: &usize| self.stored[*id].is_some_and(|stored| !stored.names_set);
        let members = source.page(&mut list).into_iter().map(|(id, _)| id).filter(lacks_set).collect();
        self.members_harvest = Some(MembersHarvest::Open(list));
        self.commit = Some(Commit { members, ..self.begin(Items::new(), self.gaps.clone(), our_secs) });
    }

    /// Notes that the source has listed all members of the set.
    fn end_members_harvest(&mut self) {
        let is_at_end = matches!(&self.members_harvest, Some(MembersHarvest::Open(list)) if list.is_at_end());
        if is_at_end && let Some(state_secs) = self.state_secs() {
            self.members = KnownMembers::All(ListState::new(state_secs));
            self.members_harvest = None;
        }
    }

    fn request(&mut self, source: &Source, now_secs: UnixSecs, our_secs: UnixSecs) {
        let clocks = source.clocks(now_secs, our_secs);
        let overlapping = HarvestMark::new(&clocks, source.granularity);
        let mark = match (self.broken, clocks.response_date_secs) {
            (Some(Broken::NoOverlap), Some(date_secs)) => {
                HarvestMark::restore(date_secs, overlapping.lead_secs())
            }
            _ => overlapping,
        };
        let harvest = self.harvest.get_or_insert_with(|| {
            let next = match self.broken {
                Some(Broken::GapsAreNotListedAgain) => self.mark,
                _ => self.mark.and_then(|mark| self.gaps.next_harvest(mark)),
            };
            let from_secs = next.map(|mark| mark.from_secs_at(&clocks));
            let start = HarvestStart { before: next, from_secs };
            let selection = Selection { from_secs, ..Selection::default() };
            Harvest { list: source.list(selection), committed: 0, mark, start }
        });
        if self.broken == Some(Broken::MarkOfTheLastPage) {
            harvest.mark = mark;
        }
        let page = source.page(&mut harvest.list);
        let before = harvest.start.before;
        let mut gaps = self.gaps.clone();
        let page: Items = page
            .into_iter()
            .filter(|&(id, record)| {
                let Some(fault) = source.fault(id) else {
                    self.recoveries += usize::from(gaps.contains(&id.to_string()));
                    gaps.resolve(&id.to_string());
                    return true;
                };
                let bytes =
                    if fault.is_unreadable { u64::from(record.version) } else { now_secs.0.unsigned_abs() };
                let (item, bytes) = if fault.is_named {
                    (named(id), fault.is_unreadable.then_some(bytes))
                } else {
                    (MissingItem::Unnamed(bytes << 8 | id as u64), Some(bytes))
                };
                gaps.note(item, Sighting::Listed(bytes), before);
                false
            })
            .collect();
        let is_new = |&(id, record): &(usize, Record)| {
            self.stored[id].is_none_or(|stored: Stored| stored.record != record)
        };
        let changes: Items = page.into_iter().filter(is_new).collect();
        self.commit = Some(self.begin(changes, gaps, our_secs));
    }

    /// Requests the missing records alone.
    fn fetch_gaps(&mut self, start: HarvestStart, source: &Source, is_answering: bool, our_secs: UnixSecs) {
        let mut gaps = self.gaps.clone();
        let mut changes = Items::new();
        let is_fetching = is_answering && self.broken != Some(Broken::GapsAreNotFetched);
        let fetched = if is_fetching { gaps.to_fetch() } else { Vec::new() };
        for identifier in fetched {
            let id: usize = identifier.parse().expect("a number");
            let record = source.records()[id].expect("it was listed");
            gaps.note_fetch(&identifier);
            match source.fault(id) {
                Some(fault) if fault.is_unreadable => {
                    gaps.note(named(id), Sighting::Fetched(record.version.into()), start.before);
                }
                Some(_) if self.broken == Some(Broken::FailuresAreUnrepairable) => {
                    gaps.note(named(id), Sighting::Fetched(500), start.before);
                }
                Some(_) => {}
                None => {
                    gaps.resolve(&identifier);
                    self.recoveries += 1;
                    changes.push((id, record));
                }
            }
        }
        gaps.end_harvest(start.from_secs.map(|secs| source.grained(secs)));
        self.commit = Some(self.begin(changes, gaps, our_secs));
    }

    fn begin(&mut self, changes: Items, gaps: KnownGaps, our_secs: UnixSecs) -> Commit {
        if self.broken == Some(Broken::StampsOfTheClock) {
            return Commit { pending: None, stamp_secs: our_secs, changes, gaps, members: Vec::new() };
        }
        let pending = self.clock.begin_commit(our_secs);
        let stamp_secs = pending.stamp_secs();
        if self.broken == Some(Broken::StampsAtBegin) {
            self.clock.finish_commit(pending);
            return Commit { pending: None, stamp_secs, changes, gaps, members: Vec::new() };
        }
        Commit { pending: Some(pending), stamp_secs, changes, gaps, members: Vec::new() }
    }

    fn finish(&mut self, commit: Commit) {
        self.gaps = commit.gaps;
        for (id, record) in commit.changes {
            let by_header = self.headers_name_set && record.is_in_set;
            let by_list = self.harvests_members && self.stored[id].is_some_and(|before| before.names_set);
            let names_set = by_header || by_list;
            self.stored[id] = Some(Stored { record, stamp_secs: commit.stamp_secs, names_set });
        }
        for id in commit.members {
            let Some(stored) = &mut self.stored[id] else { continue };
            stored.names_set = true;
            if self.broken != Some(Broken::MembersWithoutStamp) {
                stored.stamp_secs = commit.stamp_secs;
            }
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
            (self.harvest, self.members_harvest) = (None, None);
        }
    }

    /// Stops and starts the program: the commit is rolled back, the harvest is resumed.
    pub(super) fn restart(&mut self) {
        (self.commit, self.listed, self.members_harvest) = (None, None, None);
        if let Some(harvest) = &mut self.harvest {
            harvest.list.position = harvest.committed;
        }
        let highest_secs = self.stored.iter().flatten().map(|stored| stored.stamp_secs).max();
        let reserved_secs =
            if self.broken == Some(Broken::NoReservation) { None } else { self.reserved_secs };
        self.clock = StampClock::resume(highest_secs, reserved_secs);
    }

    /// The times of a list over the stamps of the mirror.
    pub(super) fn begin_list(&mut self, our_secs: UnixSecs) -> ListTimes {
        if let Some(until_secs) = self.clock.reservation_due(our_secs) {
            self.reserved_secs = Some(until_secs);
            self.clock.reserve(until_secs);
        }
        self.clock.begin_list(our_secs).expect("a reservation")
    }

    /// A page of the records with stamps in a window, after a position.
    pub(super) fn page_by_stamp(
        &self,
        selection: Selection,
        after: Option<(UnixSecs, usize)>,
    ) -> Vec<(UnixSecs, usize, Record)> {
        let stored = self.stored.iter().enumerate().filter_map(|(id, stored)| Some((id, (*stored)?)));
        let is_wanted = |(id, stored): &(usize, Stored)| {
            selection.contains(stored.stamp_secs, stored.names_set) && Some((stored.stamp_secs, *id)) > after
        };
        let wanted = stored.filter(is_wanted);
        let mut page: Vec<_> = wanted.map(|(id, stored)| (stored.stamp_secs, id, stored.record)).collect();
        page.sort_by_key(|&(stamp_secs, id, _)| (stamp_secs, id));
        page.truncate(PAGE_RECORDS);
        page
    }

    /// A page of the records with datestamps of the source in a window and numbers from `first` on, without those that
    /// were delivered.
    pub(super) fn page_by_id(
        &self,
        selection: Selection,
        first: usize,
        is_delivered: &[bool; RECORDS],
    ) -> Items {
        let stored = self.stored.iter().enumerate().filter_map(|(id, stored)| Some((id, (*stored)?)));
        let is_wanted = |(id, stored): &(usize, Stored)| {
            let is_selected = selection.contains(stored.record.stamp_secs, stored.names_set);
            *id >= first && !is_delivered[*id] && is_selected
        };
        let page = stored.filter(is_wanted).take(PAGE_RECORDS);
        page.map(|(id, stored)| (id, stored.record)).collect()
    }
}
