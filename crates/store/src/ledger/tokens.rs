//! What the ledger knows of a token.

use super::delivered_page::DeliveredPage;
use super::lists::{ListFacts, ListPage, bounds};
use oaimend_oai::{UnixSecs, Window};
use serde::{Deserialize, Serialize};

/// How long the origin of a token counts, in seconds: as long as a page after a token may be cached
/// (`token_pages_secs`). A page that was cached for an older origin is not fresh any more.
const ORIGIN_SECS: i64 = 3_600;

/// The record of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// The page that the token requests.
    pub place: ListPage,
    /// The lowest page of the list that the token requested.
    #[serde(default)]
    pub lowest_page: u32,
    /// Whether lists with different arguments contain the token.
    pub ambiguous: bool,
    /// The window that covers the requests for all lists with this token; `None` if one request had no window.
    #[serde(default, with = "bounds")]
    pub within: Option<Window>,
    /// The hash of the pages that lead to the token; `None` if it is ambiguous.
    #[serde(default)]
    pub origin: Option<u64>,
    /// The number of items that lead to the token, if known.
    #[serde(default)]
    pub items_before: Option<u64>,
    /// The round of the list in which a page with the token was last recorded.
    #[serde(default)]
    pub round: u8,
    /// When a page with the token was last delivered.
    #[serde(default)]
    pub given_secs: UnixSecs,
}

/// A token with the list to which it points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownToken {
    /// The record of the token.
    pub record: TokenRecord,
    /// The record of its list; `None` if the list was evicted.
    pub list: Option<ListFacts>,
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

impl TokenRecord {
    /// The record of a token that no page had before. `origin` is the hash of the pages that lead to it.
    pub(super) fn new(page: &DeliveredPage, place: ListPage, round: u8, origin: Option<u64>) -> Self {
        Self {
            place,
            lowest_page: place.page,
            ambiguous: false,
            within: page.within.clone(),
            origin,
            items_before: page.next_items,
            round,
            given_secs: page.now_secs,
        }
    }

    /// The origin of a token after a page with `origin` was delivered. `known` is the record before.
    pub(super) fn origin_after(known: Option<&Self>, origin: Option<u64>, now_secs: UnixSecs) -> Option<u64> {
        match known {
            Some(known) if now_secs > known.given_secs.plus(ORIGIN_SECS) => origin,
            Some(known) if known.origin != origin => None,
            _ => origin,
        }
    }

    /// The pages that lead to the token.
    pub fn token_origin(&self) -> TokenOrigin {
        self.origin.map_or(TokenOrigin::Ambiguous, TokenOrigin::Known)
    }

    /// Whether the token points back to this page, or to an earlier page of its list.
    pub const fn points_back(&self, place: ListPage) -> bool {
        !self.ambiguous && self.place.list == place.list && self.lowest_page <= place.page
    }
}

impl From<KnownToken> for TokenTarget {
    fn from(KnownToken { record, list }: KnownToken) -> Self {
        let is_of_round = list.as_ref().is_some_and(|list| list.round == record.round);
        let page = if is_of_round { record.place.page } else { record.lowest_page };
        let place = ListPage { page, ..record.place };
        let place = if record.ambiguous { None } else { list.map(|list| (place, list)) };
        let TokenRecord { origin, items_before, within, .. } = record;
        Self { place, origin, items_before, is_of_round, within }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: TokenRecord = TokenRecord {
        place: ListPage { list: 7, page: 5 },
        lowest_page: 3,
        ambiguous: false,
        within: None,
        origin: Some(1),
        items_before: None,
        round: 0,
        given_secs: UnixSecs(1_000),
    };

    #[test]
    fn a_token_after_other_pages_is_ambiguous_until_its_origin_is_old() {
        let after = |origin, now_secs| TokenRecord::origin_after(Some(&RECORD), origin, UnixSecs(now_secs));
        assert_eq!(after(Some(1), 1_000), Some(1));
        assert_eq!(after(Some(2), 1_000 + ORIGIN_SECS), None);
        assert_eq!(after(Some(2), 1_001 + ORIGIN_SECS), Some(2));
        assert_eq!(TokenRecord::origin_after(None, Some(2), UnixSecs(1_000)), Some(2));
    }

    #[test]
    fn a_token_points_back_from_its_lowest_page_on() {
        let from = |list, page| RECORD.points_back(ListPage { list, page });
        assert!(from(7, 3) && !from(7, 2) && !from(8, 3));
        let ambiguous = TokenRecord { ambiguous: true, ..RECORD };
        assert!(!ambiguous.points_back(ListPage { list: 7, page: 3 }));
    }
}
