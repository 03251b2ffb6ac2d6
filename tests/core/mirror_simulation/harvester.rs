//! The simulated harvesters: each keeps a copy by incremental lists.

use super::proxy::{Page, Token, View};
use super::source::{RECORDS, Record, Source};
use crate::support::random::Random;

/// The largest error of a harvester's clock. With that of the proxy's clock, an hour, it is below
/// `CLOCK_ERROR_MAX_SECS`.
const CLOCK_ERROR_MAX_SECS: usize = 3_500;
/// The longest time between the last page and the reading of the clock.
const DELAY_SECS_MAX: usize = 3;

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
}

/// A list that is not complete.
#[derive(Debug)]
struct OpenList {
    started_secs: i64,
    first_date_secs: Option<i64>,
    token: Option<Token>,
}

#[derive(Debug)]
pub(super) struct Harvester {
    pub(super) kind: Kind,
    pub(super) view: View,
    clock_error_secs: i64,
    from_secs: Option<i64>,
    copy: [Option<Record>; RECORDS],
    last_stamp_secs: Option<i64>,
    list: Option<OpenList>,
}

impl Harvester {
    pub(super) fn new(kind: Kind, view: View, random: &mut Random) -> Self {
        let mut new = Self {
            kind,
            view,
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

    /// Starts a list if none is open; returns the `from` and the token of the request.
    pub(super) fn request(&mut self, now_secs: i64) -> (Option<i64>, Option<Token>) {
        let started_secs = now_secs + self.clock_error_secs;
        let new = || OpenList { started_secs, first_date_secs: None, token: None };
        let list = self.list.get_or_insert_with(new);
        (self.from_secs, list.token.clone())
    }

    /// Takes a page.
    pub(super) fn receive(&mut self, page: Page, now_secs: i64, random: &mut Random) {
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
            Kind::StartClock => Some(list.started_secs),
            Kind::EndClock => Some(now_secs + self.clock_error_secs + delay_secs),
            Kind::LastStamp => self.last_stamp_secs,
        };
    }

    /// Abandons the list; the next one begins with the same `from`.
    pub(super) fn abandon(&mut self) {
        self.list = None;
    }

    /// The first record whose copy is not the version of the source, although it could be read.
    pub(super) fn missed(&self, source: &Source) -> Option<String> {
        let truth = source.records();
        let is_readable = |id| !source.is_unreadable(id, self.view == View::Mirror);
        let id = (0..RECORDS).find(|&id| self.copy[id] != truth[id] && is_readable(id))?;
        let (kind, view) = (self.kind, self.view);
        Some(format!("{kind:?} of {view:?}: record {id} is {:?}, has {:?}", truth[id], self.copy[id]))
    }
}
