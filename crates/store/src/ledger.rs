//! The list ledger: which pages of which lists harvesters received, and where each token points.
//!
//! With it the proxy detects lists that loop, replays a list whose token has expired, and continues a truncated
//! page by a token of its own. A list starts with a request without a token. Its pages are numbered, and each page
//! is recorded with the hashes of its items. Each token is recorded with the page that it requests.
//!
//! Harvests with the same arguments and the same tokens share one list. A page of a shared list counts as delivered
//! only as far as all of them received it. A token of lists with different arguments is ambiguous: its list is never
//! replayed.

use async_trait::async_trait;
use oaimend_oai::Window;
use serde::{Deserialize, Serialize};

/// A ledger. Reads see every page that was recorded before.
#[async_trait]
pub trait ListLedger: std::fmt::Debug + Send + Sync {
    /// Records a delivered page, which is written to disk later. A page that comes while too many of them wait for the
    /// disk, or after the ledger was closed, is logged and dropped.
    fn record(&self, page: DeliveredPage);

    /// Records the part of a page that was delivered before one of our own tokens. The token contains `part`, the
    /// name of this part. Returns whether it is on disk.
    async fn record_part(&self, page: DeliveredPage, part: u64) -> bool;

    /// Records the progress of a replay, like [`ListLedger::record`].
    fn record_replay(&self, progress: ReplayProgress);

    /// Whether a token of the repository may request pages of which a harvester requested only a part. The
    /// response to such a token differs between harvesters. Reads memory only; `now_secs` are seconds since 1970.
    fn has_windows(&self, repository: &str, now_secs: u64) -> bool;

    /// Another number since each time when pages may have been lost: one was dropped, or the process was killed. The
    /// origins of tokens do not tell pages from before apart.
    fn epoch(&self) -> u64;

    /// The pages that lead to a token. Reads a few rows. A ledger that cannot be read calls every token ambiguous.
    fn token_origin(&self, repository: &str, verb: &str, token: &str) -> TokenOrigin;

    /// Where a token points; `None` if the token is unknown.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn token_target(
        &self,
        repository: &str,
        verb: &str,
        token: &str,
    ) -> Result<Option<TokenTarget>, LedgerError>;

    /// Whether a token points back to this page, or to an earlier page of its list.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn points_back(
        &self,
        repository: &str,
        verb: &str,
        token: &str,
        place: ListPage,
    ) -> Result<bool, LedgerError>;

    /// The state of a list when one of our own tokens was issued for this page. `part` is the name in the token. The
    /// items of the pages before are read where `with_earlier` is set and the harvests of the list are not mixed.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn recorded_part(
        &self,
        repository: &str,
        place: ListPage,
        part: u64,
        with_earlier: bool,
    ) -> Result<RecordedPart, LedgerError>;

    /// The items that the list delivered before this page, if the list may loop: an earlier page started with
    /// `first_item`, and the number of such pages exceeds the number of `mixed_harvests`.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn suspected_loop(
        &self,
        repository: &str,
        place: ListPage,
        first_item: u64,
        mixed_harvests: Option<u32>,
    ) -> Result<Option<Vec<u64>>, LedgerError>;

    /// The hashes of the identifiers that the list delivered before this page. `None` unless the ledger knows all of
    /// them, and each of these pages announced this `completeListSize`.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn delivered_names(
        &self,
        repository: &str,
        place: ListPage,
        list_size: u64,
    ) -> Result<Option<Vec<u64>>, LedgerError>;

    /// The first query of a list and the items that it delivered before this page; `None` unless the ledger knows
    /// all of them.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn replay_start(
        &self,
        repository: &str,
        place: ListPage,
    ) -> Result<Option<(String, Vec<u64>)>, LedgerError>;

    /// The shortcuts for a replay of a list up to this page.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn replay_shortcuts(
        &self,
        repository: &str,
        place: ListPage,
    ) -> Result<ReplayShortcuts, LedgerError>;

    /// Writes every recorded page to disk, and closes the ledger. Blocks on the disk. Later reads fail with
    /// [`LedgerError::Closed`].
    fn close(&self);
}

/// One page of a list, as far as it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredPage {
    /// The repository.
    pub repository: String,
    /// The verb.
    pub verb: &'static str,
    /// The list and the number of the page.
    pub place: ListPage,
    /// The query that started the list.
    pub first_query: String,
    /// The part of the list that the harvester requested, where the query to the source covers more; `None`: all.
    pub within: Option<Window>,
    /// Hashes of the delivered items of this page, in order.
    pub hashes: Vec<u64>,
    /// Whether `hashes` contains every delivered item.
    pub complete: bool,
    /// Hashes of the identifiers of the delivered items. Quarantined ones have none.
    pub names: Vec<u64>,
    /// The `completeListSize` on the page.
    pub list_size: Option<u64>,
    /// The token in the request for this page, unless the ledger knows that it leads here in this round of the list.
    pub request_token: Option<String>,
    /// The hash of the pages that lead to `request_token`; `None` if these are not known.
    pub request_origin: Option<u64>,
    /// The token on the page; `None` on the last page and on a truncated page.
    pub next_token: Option<String>,
    /// The hash of the pages that lead to `next_token`: of the first request of the list, and of all pages up to this
    /// one. `None` if these pages are not known.
    pub next_origin: Option<u64>,
    /// The number of items that lead to `next_token`, if known.
    pub next_items: Option<u64>,
    /// Whether the list continues after this page.
    pub status: ListStatus,
    /// The datestamp of the last item, where the page is complete.
    pub last_datestamp: Option<String>,
    /// The state that the list shows, in seconds since 1970 by the clock of the source; `None` if it has none.
    pub state_secs: Option<i64>,
    /// Seconds since 1970.
    pub now_secs: u64,
}

/// Whether a list continues after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListStatus {
    /// The list continues.
    Continues,
    /// The list ends for the harvest that received the page.
    Ended,
    /// The list ends for the harvest that received the page, because its tokens point back.
    Loops,
}

/// The progress of a replay: the proxy requests a list from its start again, to reach one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayProgress {
    /// The repository.
    pub repository: String,
    /// The page to reach.
    pub place: ListPage,
    /// The query that continues the replay; `None` when the replay is over.
    pub query: Option<String>,
}

/// Places that shorten a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayShortcuts {
    /// The query that continues an earlier replay up to the same page.
    pub query: Option<String>,
    /// The datestamp of the last item before the page, or of an earlier item.
    pub last_datestamp: Option<String>,
}

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
    /// The time of its last request, in seconds since 1970.
    pub touched_secs: u64,
}

/// The oldest states that the harvests of a list show, in seconds since 1970 by the clock of the source.
///
/// A harvest that was abandoned is never known to have ended, and must not hold its state for ever. Therefore only the
/// harvests of this period and the one before count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarvestStates {
    /// The oldest state of the harvests that began in this period.
    current: Option<i64>,
    /// The oldest state of those that began in the period before.
    previous: Option<i64>,
    /// The start of this period, in seconds since 1970.
    since_secs: u64,
}

/// Maximum number of harvests of a list that follow reused tokens at the same time. If there are more, one of them may be
/// refused at a page that only others have received.
const MIXED_HARVESTS_MAX: u32 = 8;

/// The length of a period, in seconds: two weeks. A harvest that takes longer may miss changes if others share its
/// list.
const STATE_PERIOD_SECS: u64 = 14 * 24 * 3600;

impl HarvestStates {
    /// No harvest, in a period that begins now.
    pub const fn new(now_secs: u64) -> Self {
        Self { current: None, previous: None, since_secs: now_secs }
    }

    /// Adds a harvest that begins.
    pub fn add(&mut self, state_secs: Option<i64>, now_secs: u64) {
        if self.is_over(now_secs) {
            *self = Self::new(now_secs);
        } else if self.since_secs + STATE_PERIOD_SECS < now_secs {
            *self = Self { current: None, previous: self.current, since_secs: now_secs };
        }
        self.current = self.current.into_iter().chain(state_secs).min();
    }

    /// Whether both periods have passed.
    pub const fn is_over(&self, now_secs: u64) -> bool {
        self.since_secs + 2 * STATE_PERIOD_SECS < now_secs
    }

    /// The start of this period, in seconds since 1970.
    pub const fn since_secs(&self) -> u64 {
        self.since_secs
    }
}

impl ListFacts {
    /// The state that the list shows, in seconds since 1970 by the clock of the source; `None` if unknown. Of harvests
    /// that share the list, it is the oldest one.
    pub fn state_secs(&self) -> Option<i64> {
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

/// Where a known token points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenTarget {
    /// The page and its list; `None` if lists with different arguments contain the token.
    pub place: Option<(ListPage, ListFacts)>,
    /// The hash of the pages that lead to the token; `None` if it is ambiguous.
    pub origin: Option<u64>,
    /// The number of items before the page; `None` if unknown.
    pub items_before: Option<u64>,
    /// Whether a page with the token was recorded in this round of the list. Else the harvester has it from a cached
    /// page, and the token leads to its first place.
    pub is_of_round: bool,
    /// The window that covers the requests for all lists with this token; `None` if one request had no window.
    pub within: Option<Window>,
}

/// The pages that lead to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenOrigin {
    /// No page with the token was recorded.
    Unknown,
    /// The hash of these pages.
    Known(u64),
    /// The token was on different pages, or after different pages: its next response may be another page.
    Ambiguous,
}

/// The list status of one of our own tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedPart {
    /// The delivered items of the page; `None` if no such part is recorded.
    pub hashes: Option<Vec<u64>>,
    /// The items that the list delivered before the page; empty unless requested.
    pub earlier: Vec<u64>,
    /// The hashes of the identifiers in `hashes`, as far as they are known.
    pub names: Vec<u64>,
    /// The hashes of the identifiers in `earlier`, as far as they are known.
    pub earlier_names: Vec<u64>,
    /// The list.
    pub list: Option<ListFacts>,
}

/// Why the ledger cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// It was closed because another process has taken over.
    #[error("another oaimend has taken the ledger over; send the request again")]
    Closed,
    /// The database failed.
    #[error("the ledger cannot be read: {0}; check the data folder")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The task that read it panicked.
    #[error("the ledger stopped: {0}")]
    Stopped(String),
}

/// How a window is stored: as its two bounds.
pub mod bounds {
    use oaimend_oai::Window;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Bounds = Option<(Option<String>, Option<String>)>;

    /// Writes the bounds of the window.
    pub fn serialize<S: Serializer>(window: &Option<Window>, to: S) -> Result<S::Ok, S::Error> {
        window.as_ref().map(|Window { from, until }| (from, until)).serialize(to)
    }

    /// Reads the bounds of a window.
    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Window>, D::Error> {
        let bounds = Bounds::deserialize(from)?;
        Ok(bounds.map(|(from, until)| Window { from, until }))
    }
}
