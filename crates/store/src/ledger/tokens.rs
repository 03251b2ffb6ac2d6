//! What the ledger knows of a token.

use super::lists::{ListFacts, ListPage};
use oaimend_oai::Window;

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
