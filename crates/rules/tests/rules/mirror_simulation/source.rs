//! The simulated source: records that change, and lists of them.

use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::Granularity;
use oaimend_rules::ResponseClocks;

use oaimend_test_support::random::Random;

pub(super) const RECORDS: usize = 12;
pub(super) const PAGE_RECORDS: usize = 3;
const DAY_SECS: i64 = 86_400;

/// A version of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) version: u32,
    pub(super) is_deleted: bool,
    /// Its datestamp at the source.
    pub(super) stamp_secs: UnixSecs,
    /// Whether it is in the set that harvesters request.
    pub(super) is_in_set: bool,
}

/// The fault of a record outside its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Whether its bytes are the same each time; otherwise every request for it fails, for some time.
    pub(super) is_unreadable: bool,
    /// Whether its identifier can be read.
    pub(super) is_named: bool,
}

/// Records with their numbers.
pub(super) type Items = Vec<(usize, Record)>;

/// How a source treats a record that changes while a list is delivered.
#[derive(Clone, Copy, Debug)]
enum Changed {
    /// The list has the new version.
    Current,
    /// The list omits it.
    Omitted,
    /// The list has the version at its start.
    AsListed,
}

#[derive(Debug)]
pub(super) struct Source {
    records: [Option<Record>; RECORDS],
    /// The time by which its clock is ahead of the true time.
    lead_secs: i64,
    /// The time by which the clock of its datestamps is behind the one of its responses.
    stamp_lag_secs: i64,
    pub(super) granularity: Granularity,
    changed: Changed,
    is_ordered_by_stamp: bool,
    /// Whether headers name the set.
    pub(super) names_set: bool,
    pub(super) is_up: bool,
    versions: u32,
    /// The share of changes that make a record faulty, in percent.
    faults_percent: usize,
    faults: [Option<Fault>; RECORDS],
    /// The last version of each record that was unreadable: harvesters of the source never got it.
    unreadable: [Option<u32>; RECORDS],
}

/// The times and the set that a list is requested for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Selection {
    pub(super) from_secs: Option<UnixSecs>,
    pub(super) until_secs: Option<UnixSecs>,
    /// Whether only records of the set are requested.
    pub(super) is_of_set: bool,
    /// Whether the harvester states that `from` is not after the first responseDate of its last list.
    pub(super) continues_from_first_response: bool,
}

impl Selection {
    pub(super) fn contains(self, secs: UnixSecs, is_in_set: bool) -> bool {
        self.from_secs.is_none_or(|from_secs| secs >= from_secs)
            && self.until_secs.is_none_or(|until_secs| secs <= until_secs)
            && (is_in_set || !self.is_of_set)
    }
}

/// A list that is delivered.
#[derive(Clone, Debug)]
pub(super) struct SourceList {
    items: Items,
    pub(super) position: usize,
}

impl SourceList {
    pub(super) fn is_at_end(&self) -> bool {
        self.position >= self.items.len()
    }
}

impl Source {
    pub(super) fn new(random: &mut Random) -> Self {
        let granularity = if random.chance(20) { Granularity::Day } else { Granularity::Second };
        let changed = [Changed::Current, Changed::Omitted, Changed::AsListed][random.below(3)];
        Self {
            records: [None; RECORDS],
            lead_secs: random.below(36_000) as i64 - 18_000,
            stamp_lag_secs: if random.chance(40) { random.below(120) as i64 } else { 0 },
            granularity,
            changed,
            is_ordered_by_stamp: random.chance(50),
            names_set: random.chance(50),
            is_up: true,
            versions: 0,
            faults_percent: [0, 20, 50][random.below(3)],
            faults: [None; RECORDS],
            unreadable: [None; RECORDS],
        }
    }

    /// Creates, changes, deletes or restores a record.
    pub(super) fn change(&mut self, random: &mut Random, now_secs: UnixSecs) {
        self.versions += 1;
        let stamp_secs = self.grained(now_secs.plus(self.lead_secs - self.stamp_lag_secs));
        let is_deleted = random.chance(25);
        let id = random.below(RECORDS);
        // A deleted record stays in its set.
        let before = if is_deleted { self.records[id] } else { None };
        let is_in_set = before.map_or(random.chance(50), |before| before.is_in_set);
        self.records[id] = Some(Record { version: self.versions, is_deleted, stamp_secs, is_in_set });
        self.faults[id] = random
            .chance(self.faults_percent)
            .then(|| Fault { is_unreadable: random.chance(30), is_named: random.chance(80) });
        if self.faults[id].is_some_and(|fault| fault.is_unreadable) {
            self.unreadable[id] = Some(self.versions);
        }
    }

    /// Ends the fault of a record without a change of its datestamp. An unreadable record without a name changes only
    /// with its datestamp.
    pub(super) fn recover(&mut self, id: usize) {
        self.faults[id] = self.faults[id].filter(|fault| fault.is_unreadable && !fault.is_named);
    }

    /// Ends all failures, which do not last.
    pub(super) fn end_failures(&mut self) {
        for fault in &mut self.faults {
            *fault = fault.filter(|fault| fault.is_unreadable);
        }
    }

    pub(super) fn fault(&self, id: usize) -> Option<Fault> {
        self.faults[id]
    }

    /// Whether harvesters never got the current version of a record: those of the source if it was unreadable, those of
    /// the mirror if it still is.
    pub(super) fn is_unreadable(&self, id: usize, for_mirror: bool) -> bool {
        let is_now = self.faults[id].is_some_and(|fault| fault.is_unreadable);
        let version = self.records[id].map(|record| record.version);
        is_now || !for_mirror && version.is_some() && self.unreadable[id] == version
    }

    /// A time in the granularity of this source.
    pub(super) fn grained(&self, secs: UnixSecs) -> UnixSecs {
        match self.granularity {
            Granularity::Day => secs.floor_to(DAY_SECS),
            Granularity::Second => secs,
        }
    }

    /// A window in the granularity of this source: whole days, or seconds.
    pub(super) fn grained_selection(&self, selection: Selection) -> Selection {
        let last_secs = |secs| match self.granularity {
            Granularity::Day => self.grained(secs).plus(DAY_SECS - 1),
            Granularity::Second => secs,
        };
        Selection {
            from_secs: selection.from_secs.map(|secs| self.grained(secs)),
            until_secs: selection.until_secs.map(last_secs),
            ..selection
        }
    }

    /// The clocks of a response.
    pub(super) fn clocks(&self, now_secs: UnixSecs, our_secs: UnixSecs) -> ResponseClocks {
        let date_secs = now_secs.plus(self.lead_secs);
        ResponseClocks {
            response_date_secs: Some(date_secs),
            http_date_secs: Some(date_secs.minus(self.stamp_lag_secs)),
            sent_at_secs: our_secs,
        }
    }

    /// Begins a list.
    pub(super) fn list(&self, selection: Selection) -> SourceList {
        let selection = self.grained_selection(selection);
        let present = self.records.iter().enumerate().filter_map(|(id, record)| Some((id, (*record)?)));
        let mut items: Items =
            present.filter(|(_, record)| selection.contains(record.stamp_secs, record.is_in_set)).collect();
        if self.is_ordered_by_stamp {
            items.sort_by_key(|(id, record)| (record.stamp_secs, *id));
        }
        SourceList { items, position: 0 }
    }

    /// The next page of a list.
    pub(super) fn page(&self, list: &mut SourceList) -> Items {
        let end = (list.position + PAGE_RECORDS).min(list.items.len());
        let listed = &list.items[list.position..end];
        let delivered = |&(id, listed): &(usize, Record)| {
            let current = self.records[id].unwrap_or(listed);
            match self.changed {
                Changed::Current => Some((id, current)),
                Changed::AsListed => Some((id, listed)),
                Changed::Omitted => (current == listed).then_some((id, listed)),
            }
        };
        let page = listed.iter().filter_map(delivered).collect();
        list.position = end;
        page
    }

    /// A page without its unreadable records, as a harvester of the source gets it; `None` if a request for one of its
    /// records fails.
    pub(super) fn page_of_proxy(&self, list: &mut SourceList) -> Option<Items> {
        let start = list.position;
        let page = self.page(list);
        if page.iter().any(|&(id, _)| self.faults[id].is_some_and(|fault| !fault.is_unreadable)) {
            list.position = start;
            return None;
        }
        Some(page.into_iter().filter(|&(id, _)| self.faults[id].is_none()).collect())
    }

    pub(super) fn records(&self) -> &[Option<Record>; RECORDS] {
        &self.records
    }
}
