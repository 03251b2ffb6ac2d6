//! What the ledger knows of a list.

use oaimend_oai::{UnixSecs, Window};
use serde::{Deserialize, Serialize};

/// How long an abandoned list is kept, in seconds.
pub const KEPT_SECS: i64 = 3 * 24 * 3600;

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPage {
    /// The list, by a random number that the proxy assigns.
    pub list: u64,
    /// The number of the page, from 0.
    pub page: u32,
}

/// The record of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListFacts {
    /// The query that started the list.
    pub first_query: String,
    /// The part of the list that the harvester requested, where the query to the source covers more; `None`: all.
    #[serde(default, with = "bounds")]
    pub within: Option<Window>,
    /// Whether every delivered item is known.
    pub complete: bool,
    /// The number of delivered items.
    pub items: u64,
    /// The states that its harvests show.
    #[serde(default)]
    pub states: HarvestStates,
    /// The number of harvests in progress.
    #[serde(default)]
    pub harvests: u32,
    /// Changes when a harvest starts the list while no other harvest is in progress.
    #[serde(default)]
    pub round: u8,
    /// Whether several harvests were in progress at the same time in this round.
    #[serde(default)]
    pub is_shared: bool,
    /// The `completeListSize` that all its pages in this round announced; `None` if they have several, or none.
    #[serde(default)]
    pub list_size: Option<u64>,
    /// Whether one token pointed to several pages of the list in this round.
    #[serde(default)]
    pub reuses_tokens: bool,
    /// The time of its last request.
    pub touched_secs: UnixSecs,
}

/// The oldest states that the harvests of a list show, by the clock of the source.
///
/// A harvest that was abandoned is never known to have ended, and must not hold its state for ever. Therefore only the
/// harvests of this period and the one before count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarvestStates {
    /// The oldest state of the harvests that began in this period.
    current: Option<UnixSecs>,
    /// The oldest state of those that began in the period before.
    previous: Option<UnixSecs>,
    /// The start of this period.
    since_secs: UnixSecs,
}

/// Maximum number of harvests of a list that follow reused tokens at the same time. If there are more, one of them may be
/// refused at a page that only others have received.
const MIXED_HARVESTS_MAX: u32 = 8;

/// The length of a period, in seconds: two weeks. A harvest that takes longer may miss changes if others share its
/// list.
const STATE_PERIOD_SECS: i64 = 14 * 24 * 3600;

impl HarvestStates {
    /// No harvest, in a period that begins now.
    pub const fn new(now_secs: UnixSecs) -> Self {
        Self { current: None, previous: None, since_secs: now_secs }
    }

    /// Adds a harvest that begins.
    pub fn add(&mut self, state_secs: Option<UnixSecs>, now_secs: UnixSecs) {
        if self.is_over(now_secs) {
            *self = Self::new(now_secs);
        } else if self.since_secs.plus(STATE_PERIOD_SECS) < now_secs {
            *self = Self { current: None, previous: self.current, since_secs: now_secs };
        }
        self.current = self.current.into_iter().chain(state_secs).min();
    }

    /// Whether both periods have passed.
    pub fn is_over(&self, now_secs: UnixSecs) -> bool {
        self.since_secs.plus(2 * STATE_PERIOD_SECS) < now_secs
    }

    /// The start of this period.
    pub const fn since_secs(&self) -> UnixSecs {
        self.since_secs
    }
}

impl ListPage {
    /// Whether the list may loop at this page, whose first item also started the page `known`. `visits` is the number
    /// of pages that started with it since the list is known to reuse its tokens.
    pub const fn may_loop(self, known: Option<u32>, visits: u32, mixed_harvests: Option<u32>) -> bool {
        match (known, mixed_harvests) {
            (Some(known), None) => known < self.page,
            // Each of several harvests may reach a page that another one received, and may request it twice.
            (Some(known), Some(harvests)) => known < self.page && visits > harvests.saturating_add(1),
            (None, _) => false,
        }
    }
}

impl ListFacts {
    /// Whether the ledger may know the identifiers of all items of the list, and each page announced this
    /// `completeListSize`.
    pub fn has_size(&self, list_size: u64) -> bool {
        self.complete && self.list_size == Some(list_size) && self.mixed_harvests().is_none()
    }

    /// The state that the list shows, by the clock of the source; `None` if unknown. Of harvests
    /// that share the list, it is the oldest one.
    pub fn state_secs(&self) -> Option<UnixSecs> {
        let HarvestStates { current, previous, .. } = self.states;
        current.into_iter().chain(previous).min()
    }

    /// The number of harvests, where several harvests follow tokens that point to several pages each. The ledger
    /// then cannot tell which page a harvest has reached. Abandoned harvests count too, but not without bound: a list
    /// that goes in circles would never be refused.
    pub fn mixed_harvests(&self) -> Option<u32> {
        (self.is_shared && self.reuses_tokens).then_some(self.harvests.min(MIXED_HARVESTS_MAX))
    }
}

/// Whether a page of which a harvester requested only a part may still matter. `recorded_secs` is the time when the
/// last such page of a repository was recorded.
pub fn window_counts(recorded_secs: UnixSecs, now_secs: UnixSecs) -> bool {
    // An abandoned list is removed only when the next list starts, which may be some time later.
    now_secs < recorded_secs.plus(2 * KEPT_SECS)
}

/// How a window is stored: as its two bounds.
pub(super) mod bounds {
    use oaimend_oai::Window;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Bounds = Option<(Option<String>, Option<String>)>;

    /// Writes the bounds of the window.
    pub(crate) fn serialize<S: Serializer>(window: &Option<Window>, to: S) -> Result<S::Ok, S::Error> {
        window.as_ref().map(|Window { from, until }| (from, until)).serialize(to)
    }

    /// Reads the bounds of a window.
    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Window>, D::Error> {
        let bounds = Bounds::deserialize(from)?;
        Ok(bounds.map(|(from, until)| Window { from, until }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_loop_where_an_earlier_page_started_alike() {
        let place = ListPage { list: 7, page: 4 };
        assert!(place.may_loop(Some(3), 0, None) && !place.may_loop(Some(4), 0, None));
        assert!(!place.may_loop(None, 9, None));
        assert!(place.may_loop(Some(3), 4, Some(2)), "each of two harvests may request a page twice");
        assert!(!place.may_loop(Some(3), 3, Some(2)) && !place.may_loop(Some(4), 9, Some(2)));
    }
}
