//! A page of a list as a harvester received it.

use super::lists::ListPage;
use oaimend_oai::{UnixSecs, Verb, Window};

/// One page of a list, as far as it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredPage {
    /// The repository.
    pub repository: String,
    /// The verb.
    pub verb: Verb,
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
    /// The state that the list shows, by the clock of the source; `None` if it has none.
    pub state_secs: Option<UnixSecs>,
    /// The time of its delivery.
    pub now_secs: UnixSecs,
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
