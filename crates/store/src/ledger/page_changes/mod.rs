//! What a delivered page changes in the ledger.
//!
//! A store reads the rows that a page may change ([`KnownPage`]), lets [`KnownPage::after`] decide, and writes the
//! [`PageChanges`]. No other page of the repository may be recorded meanwhile.

use super::delivered_page::{DeliveredPage, ListStatus};
use super::lists::{HarvestStates, KEPT_SECS, ListFacts, ListPage};
use super::tokens::{KnownToken, TokenRecord};
use std::collections::HashMap;

/// Maximum number of items of a list: 16 MB. A longer list is not replayed.
const ITEMS_MAX: u64 = 1_000_000;

/// The rows that a page may change, as they were before it. A store may leave out the rows that a page cannot change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPage {
    /// The list of [`recorded_place`].
    pub list: Option<ListFacts>,
    /// For the first page of a list: the states of the lists whose first page had its next token.
    pub states: Option<HarvestStates>,
    /// The items of the page.
    pub items: Option<PageItems>,
    /// The datestamp of its last item.
    pub last_datestamp: Option<String>,
    /// The lowest page of the list that started with the first item of the page.
    pub first_item_page: Option<u32>,
    /// For a list that reuses its tokens: how many of its pages started with this item.
    pub visits: u32,
    /// The token in the request for the page.
    pub request_token: Option<TokenRecord>,
    /// The token on the page.
    pub next_token: Option<KnownToken>,
}

/// The delivered items of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageItems {
    /// Their hashes, in order.
    pub hashes: Vec<u64>,
    /// The hashes of their identifiers. Earlier versions did not record them.
    pub names: Option<Vec<u64>>,
    /// The round of the list in which the page was last delivered. Earlier versions did not record it.
    pub round: Option<u8>,
}

/// The rows that a page changes. `None`: the row stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageChanges {
    /// The list.
    pub list: ListFacts,
    /// The states of the lists whose first page has the next token.
    pub states: Option<HarvestStates>,
    /// The items of the page.
    pub items: Option<PageItems>,
    /// The datestamp of its last item.
    pub last_datestamp: Option<String>,
    /// The progress of all replays of the list is removed: a replay may have skipped items that no longer count as
    /// delivered.
    pub forgets_replays: bool,
    /// The visits of all pages of the list are removed, before `visits` are set.
    pub forgets_visits: bool,
    /// The lowest page of the list that started with the first item of the page.
    pub first_item_page: Option<u32>,
    /// How many pages of the list started with this item.
    pub visits: Option<u32>,
    /// The token in the request for the page.
    pub request_token: Option<TokenRecord>,
    /// The token on the page.
    pub next_token: Option<TokenRecord>,
}

/// The place at which a page is recorded. A harvest joins a list with the same arguments whose first page had the same
/// token, `next_token`.
pub fn recorded_place(page: &DeliveredPage, next_token: Option<&KnownToken>) -> ListPage {
    let list = match next_token {
        Some(token) if joins(page, token) => token.record.place.list,
        _ => page.place.list,
    };
    ListPage { list, ..page.place }
}

/// Whether a harvest joins the list of a token with its first page.
fn joins(page: &DeliveredPage, KnownToken { record, list }: &KnownToken) -> bool {
    let TokenRecord { place, lowest_page, ambiguous, .. } = record;
    let is_first = page.place.page == 0 && *lowest_page == 1;
    if !is_first || *ambiguous || place.list == page.place.list {
        return false;
    }
    list.as_ref().is_some_and(|list| {
        // A new round of a list that reused its tokens is recorded as another list.
        (place.page == 1 || list.harvests > 0)
            && have_same_arguments(&list.first_query, &page.first_query)
            && list.within == page.within
    })
}

/// Whether two queries have the same arguments, in any order.
fn have_same_arguments(one: &str, other: &str) -> bool {
    let sorted = |query: &'_ str| {
        let mut arguments: Vec<String> = query.split('&').map(str::to_owned).collect();
        arguments.sort_unstable();
        arguments
    };
    !one.is_empty() && (one == other || sorted(one) == sorted(other))
}

impl KnownPage {
    /// The changes by a page that is recorded at `place`, see [`recorded_place`]. A part of a page, delivered before one
    /// of our own tokens, changes no items.
    pub fn after(self, page: &DeliveredPage, place: ListPage, is_part: bool) -> PageChanges {
        let mut list = list_after(self.list, page, place.list != page.place.list);
        let mut states = None;
        if page.place.page == 0 {
            list.states = self.states.unwrap_or_else(|| HarvestStates::new(page.now_secs));
            list.states.add(page.state_secs, page.now_secs);
            states = page.next_token.as_ref().map(|_| list.states);
        }
        let (mut items, mut last_datestamp, mut forgets_replays) = (None, None, false);
        if !is_part {
            let is_shared = self.items.as_ref().is_some_and(|items| items.round == Some(list.round));
            let after = items_after(self.items.as_ref(), page, list.round, is_shared);
            let count_before = self.items.as_ref().map_or(0, |items| items.hashes.len() as u64);
            list.items = list.items.saturating_sub(count_before) + after.hashes.len() as u64;
            forgets_replays = self.items.is_some_and(|before| before.hashes != after.hashes);
            items = (list.items <= ITEMS_MAX).then_some(after);
            let known = if is_shared { self.last_datestamp } else { None };
            last_datestamp = page.last_datestamp.clone().map(|last| match known {
                Some(known) => last.min(known),
                None => last,
            });
        }
        list.complete &= page.complete && list.items <= ITEMS_MAX;
        // The visits of a harvest that was refused must not count against the others.
        let forgets_visits = page.status == ListStatus::Loops;
        let known_visits = if forgets_visits { 0 } else { self.visits };
        let counts_visits = list.reuses_tokens && !page.hashes.is_empty();
        let visits = counts_visits.then(|| known_visits.saturating_add(1));
        let first_item_page =
            page.hashes.first().map(|_| self.first_item_page.unwrap_or(place.page).min(place.page));
        let request_token = request_token_after(self.request_token, page, place, list.round);
        let next_token = page.next_token.as_ref().map(|token| {
            let is_request_token = page.request_token.as_ref() == Some(token);
            // The record of the request may just have changed it.
            let changed = if is_request_token { request_token.clone() } else { None };
            let known = match changed {
                Some(record) => Some(KnownToken { record, list: None }),
                None => self.next_token,
            };
            let next = ListPage { page: place.page + 1, ..place };
            let is_other_page = |KnownToken { record, .. }: &KnownToken| {
                record.place.list == next.list && record.place.page != next.page
            };
            list.reuses_tokens |= known.as_ref().is_some_and(is_other_page);
            next_token_after(known, page, next, list.round)
        });
        PageChanges {
            list,
            states,
            items,
            last_datestamp,
            forgets_replays,
            forgets_visits,
            first_item_page,
            visits,
            request_token,
            next_token,
        }
    }
}

/// The record of a list after this page, except its items.
fn list_after(known: Option<ListFacts>, page: &DeliveredPage, is_joined: bool) -> ListFacts {
    let starts = page.place.page == 0 && (is_joined || known.is_none());
    let mut list = known.unwrap_or_else(|| ListFacts {
        first_query: page.first_query.clone(),
        within: page.within.clone(),
        complete: page.place.page == 0,
        items: 0,
        states: HarvestStates::default(),
        harvests: 0,
        round: 0,
        is_shared: false,
        list_size: None,
        reuses_tokens: false,
        touched_secs: page.now_secs,
    });
    let begins_again = starts && (list.harvests == 0 || list.touched_secs.plus(KEPT_SECS) < page.now_secs);
    list.list_size = match &page.next_token {
        _ if begins_again => page.list_size,
        Some(_) if list.list_size == page.list_size => page.list_size,
        Some(_) => None,
        None => list.list_size,
    };
    if starts {
        if begins_again {
            (list.harvests, list.complete) = (0, true);
            (list.is_shared, list.reuses_tokens) = (false, false);
            list.round = list.round.wrapping_add(1);
        }
        list.harvests = list.harvests.saturating_add(1);
        list.is_shared |= list.harvests > 1;
    }
    list.harvests = match page.status {
        ListStatus::Continues => list.harvests.max(1),
        ListStatus::Ended | ListStatus::Loops => list.harvests.saturating_sub(1),
    };
    list.touched_secs = page.now_secs;
    list
}

/// The items of a page after it was delivered. If another harvest of the same round received the page too, only the
/// items that both received count: a duplicate record is better than a missing one.
fn items_after(known: Option<&PageItems>, page: &DeliveredPage, round: u8, is_shared: bool) -> PageItems {
    let known = if is_shared { known } else { None };
    let hashes = known.map_or_else(|| page.hashes.clone(), |known| intersection(&known.hashes, &page.hashes));
    let names = match known.and_then(|known| known.names.as_ref()) {
        Some(names) => intersection(names, &page.names),
        None => page.names.clone(),
    };
    PageItems { hashes, names: Some(names), round: Some(round) }
}

/// The items of `one` that are in `other` too, each as often as in both.
fn intersection(one: &[u64], other: &[u64]) -> Vec<u64> {
    if one == other {
        return one.to_vec();
    }
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for hash in other {
        *counts.entry(*hash).or_default() += 1;
    }
    let is_in_both = |hash: &u64| match counts.get_mut(hash) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    one.iter().copied().filter(is_in_both).collect()
}

/// The record of the token in the request for this page; `None` if it does not change.
fn request_token_after(
    known: Option<TokenRecord>,
    page: &DeliveredPage,
    place: ListPage,
    round: u8,
) -> Option<TokenRecord> {
    page.request_token.as_ref()?;
    match known {
        None => {
            let new = TokenRecord::new(page, place, round, page.request_origin);
            Some(TokenRecord { items_before: None, ..new })
        }
        Some(known) if known.place.list == place.list && known.round != round => {
            Some(TokenRecord { place, lowest_page: place.page, round, ..known })
        }
        Some(_) => None,
    }
}

/// The record of the next token after this page.
fn next_token_after(
    known: Option<KnownToken>,
    page: &DeliveredPage,
    next: ListPage,
    round: u8,
) -> TokenRecord {
    let known_record = known.as_ref().map(|known| &known.record);
    let origin = TokenRecord::origin_after(known_record, page.next_origin, page.now_secs);
    let new = TokenRecord::new(page, next, round, origin);
    let Some(KnownToken { record: known, list }) = known else { return new };
    let within = page.within.clone().zip(known.within).map(|(one, other)| one.union(other));
    if known.place.list == next.list {
        let lowest_page = known.lowest_page.min(next.page);
        return TokenRecord { lowest_page, ambiguous: known.ambiguous, within, ..new };
    }
    let ambiguous = known.ambiguous || list.is_some_and(|list| list.harvests > 0);
    TokenRecord { ambiguous, within, ..new }
}

#[cfg(test)]
mod tests;
