//! The simulated harvesters: each keeps a copy by incremental lists.

use super::proxy::{Page, Token, View};
use super::source::{RECORDS, Record, Selection, Source};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::Granularity;
use oaimend_rules::{HarvestMark, ResponseClocks};
use oaimend_test_support::random::Random;

/// The largest error of a harvester's clock. With that of the proxy's clock, an hour, it is below
/// `CLOCK_ERROR_MAX_SECS`.
const CLOCK_ERROR_MAX_SECS: usize = 3_500;
/// The longest time between the last page and the reading of the clock.
const DELAY_SECS_MAX: usize = 3;
/// The windows that a harvester requests one after the other. If it is behind by more of them, it requests all of the
/// time at once.
const WINDOWS_BEHIND_MAX: i64 = 8;

/// The `from` of the next list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The responseDate of the first page.
    FirstDate,
    /// The responseDate of the last page.
    LastDate,
    /// The own clock at the start of the list.
    StartClock,
    /// The own clock at the end of the list.
    EndClock,
    /// The highest datestamp of all records.
    LastStamp,
    /// The mark of another mirror, which states that its `from` comes from the first page of its last list.
    Mark,
    /// The `until` of the last list, which is so many seconds after its `from`, or the own clock.
    Window(i64),
}

/// A list that is not complete.
#[derive(Debug)]
struct OpenList<T> {
    started_secs: UnixSecs,
    /// The `until` of a list in windows.
    until_secs: Option<UnixSecs>,
    first_date_secs: Option<UnixSecs>,
    token: Option<T>,
}

#[derive(Debug)]
pub(super) struct Harvester<T = Token> {
    pub(super) kind: Kind,
    pub(super) view: View,
    /// Whether it requests the records of the set only.
    pub(super) is_of_set: bool,
    clock_error_secs: i64,
    from_secs: Option<UnixSecs>,
    pub(super) copy: [Option<Record>; RECORDS],
    last_stamp_secs: Option<UnixSecs>,
    list: Option<OpenList<T>>,
}

impl<T: Clone> Harvester<T> {
    pub(super) fn new(kind: Kind, view: View, is_of_set: bool, random: &mut Random) -> Self {
        let mut new = Self {
            kind,
            view,
            is_of_set,
            clock_error_secs: 0,
            from_secs: None,
            copy: [None; RECORDS],
            last_stamp_secs: None,
            list: None,
        };
        new.step_clock(random);
        new
    }

    /// Sets the clock to another error.
    pub(super) fn step_clock(&mut self, random: &mut Random) {
        self.clock_error_secs = random.below(2 * CLOCK_ERROR_MAX_SECS) as i64 - CLOCK_ERROR_MAX_SECS as i64;
    }

    pub(super) fn is_harvesting(&self) -> bool {
        self.list.is_some()
    }

    /// Starts a list if none is open; returns the window and the token of the request. The last list is open-ended.
    pub(super) fn request(&mut self, now_secs: UnixSecs, is_last: bool) -> (Selection, Option<T>) {
        let started_secs = now_secs.plus(self.clock_error_secs);
        let until_secs = if is_last { None } else { self.until_secs(started_secs) };
        let new = || OpenList { started_secs, until_secs, first_date_secs: None, token: None };
        let list = self.list.get_or_insert_with(new);
        let (from_secs, until_secs, is_of_set) = (self.from_secs, list.until_secs, self.is_of_set);
        let continues_from_first_response = matches!(self.kind, Kind::Mark);
        let selection = Selection { from_secs, until_secs, is_of_set, continues_from_first_response };
        (selection, list.token.clone())
    }

    /// The `until` of a list that begins now; `None` for a harvester that sends none.
    fn until_secs(&self, clock_secs: UnixSecs) -> Option<UnixSecs> {
        let Kind::Window(secs) = self.kind else { return None };
        let Some(from_secs) = self.from_secs else { return Some(clock_secs) };
        let behind_secs = clock_secs.since(from_secs);
        let is_near = (secs..WINDOWS_BEHIND_MAX * secs).contains(&behind_secs);
        Some(if is_near { from_secs.plus(secs) } else { clock_secs.max(from_secs) })
    }

    /// Takes a page.
    pub(super) fn receive(&mut self, page: Page<T>, now_secs: UnixSecs, random: &mut Random) {
        for (id, record) in page.items {
            self.copy[id] = Some(record);
        }
        self.last_stamp_secs = self.last_stamp_secs.max(page.last_stamp_secs);
        let Some(mut list) = self.list.take() else { return };
        let first_date_secs = *list.first_date_secs.get_or_insert(page.date_secs);
        if page.token.is_some() {
            list.token = page.token;
            self.list = Some(list);
            return;
        }
        let delay_secs = random.below(DELAY_SECS_MAX + 1) as i64;
        self.from_secs = match self.kind {
            Kind::FirstDate => Some(first_date_secs),
            Kind::LastDate => Some(page.date_secs),
            Kind::Mark => {
                let first = ResponseClocks {
                    response_date_secs: Some(first_date_secs),
                    http_date_secs: None,
                    sent_at_secs: list.started_secs,
                };
                Some(HarvestMark::new(&first, Granularity::Second).from_secs())
            }
            Kind::StartClock => Some(list.started_secs),
            Kind::EndClock => Some(now_secs.plus(self.clock_error_secs + delay_secs)),
            Kind::LastStamp => self.last_stamp_secs,
            Kind::Window(_) => list.until_secs.or(self.from_secs),
        };
    }

    /// Abandons the list; the next one begins with the same `from`.
    pub(super) fn abandon(&mut self) {
        self.list = None;
    }

    /// The first record whose copy is not the version of the source, although it could be read. Nobody learns that a
    /// record has left the set.
    pub(super) fn missed(&self, source: &Source) -> Option<String> {
        let truth = source.records();
        let is_missed = |&id: &usize| {
            let is_wanted = !self.is_of_set || truth[id].is_some_and(|record| record.is_in_set);
            let is_readable = !source.is_unreadable(id, self.view == View::Mirror);
            is_wanted && is_readable && self.copy[id] != truth[id]
        };
        let id = (0..RECORDS).find(is_missed)?;
        let (kind, view) = (self.kind, self.view);
        let of_set = if self.is_of_set { "set of " } else { "" };
        Some(format!("{kind:?} of {of_set}{view:?}: record {id} is {:?}, has {:?}", truth[id], self.copy[id]))
    }
}
