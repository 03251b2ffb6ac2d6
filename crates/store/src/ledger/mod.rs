//! The list ledger: which pages of which lists harvesters received, and where each token points.
//!
//! With it the proxy detects lists that loop, replays a list whose token has expired, and continues a truncated
//! page by a token of its own. A list starts with a request without a token. Its pages are numbered, and each page
//! is recorded with the hashes of its items. Each token is recorded with the page that it requests.
//!
//! Harvests with the same arguments and the same tokens share one list. A page of a shared list counts as delivered
//! only as far as all of them received it. A token of lists with different arguments is ambiguous: its list is never
//! replayed.
//!
//! The trait is what a store implements. What a page changes, and which lists are evicted, is decided here for all
//! stores: by [`KnownPage`], [`ListEviction`] and [`KeptStates`].

mod delivered_page;
mod eviction;
mod lists;
mod page_changes;
mod tokens;

pub use delivered_page::{DeliveredPage, ListStatus};
pub use eviction::{
    EVICTION_INTERVAL_SECS, Evictions, KeptStates, LISTS_EVICTED_TOGETHER, LISTS_MAX, ListEviction, RowCounts,
};
pub use lists::{HarvestStates, KEPT_SECS, ListFacts, ListPage, window_counts};
pub use page_changes::{KnownPage, PageChanges, PageItems, recorded_place};
pub use tokens::{KnownToken, TokenOrigin, TokenRecord, TokenTarget};

use super::keys::RepositoryId;
use async_trait::async_trait;
use oaimend_oai::{UnixSecs, Verb};

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
    /// response to such a token differs between harvesters. It is called for each page after a token, so it must not
    /// wait for the disk. A ledger that cannot be read may say yes, which only bypasses the cache.
    async fn has_windows(&self, repository: RepositoryId<'_>, now_secs: UnixSecs) -> bool;

    /// Another number since each time when pages may have been lost: one was dropped, or the process was killed. The
    /// origins of tokens do not tell pages from before apart.
    async fn epoch(&self) -> u64;

    /// The pages that lead to a token. Reads a few rows. A ledger that cannot be read calls every token ambiguous.
    async fn token_origin(&self, repository: RepositoryId<'_>, verb: Verb, token: &str) -> TokenOrigin;

    /// Where a token points; `None` if the token is unknown.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn token_target(
        &self,
        repository: RepositoryId<'_>,
        verb: Verb,
        token: &str,
    ) -> Result<Option<TokenTarget>, LedgerError>;

    /// Whether a token points back to this page, or to an earlier page of its list.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn points_back(
        &self,
        repository: RepositoryId<'_>,
        verb: Verb,
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
        repository: RepositoryId<'_>,
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
        repository: RepositoryId<'_>,
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
        repository: RepositoryId<'_>,
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
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<Option<(String, Vec<u64>)>, LedgerError>;

    /// The shortcuts for a replay of a list up to this page.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    async fn replay_shortcuts(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<ReplayShortcuts, LedgerError>;

    /// Writes every recorded page to disk, and closes the ledger. Blocks on the disk. Later reads fail with
    /// [`LedgerError::Closed`].
    fn close(&self);
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
