//! Applies one record to the tables of the ledger, inside the writer's transaction.

use super::eviction::{Evictions, KEPT_SECS, OpenTables};
use super::tables::{
    DATES, FIRSTS, LISTS, Lists, PAGES, PARTS, Pages, REPLAYS, STATES, TOKENS, TokenRecord, VISITS, WINDOWS,
    bytes_of, hashes, json, list_in,
};
use crate::store::ledger::{DeliveredPage, HarvestStates, ListFacts, ListPage, ListStatus, ReplayProgress};
use redb::{ReadableTable, WriteTransaction};
use std::collections::HashMap;

/// Most items of a list: 8 MB. A longer list is not replayed.
const ITEMS_MAX: u64 = 1_000_000;

/// Records the progress of a replay.
pub(super) fn apply_replay(
    transaction: &WriteTransaction,
    progress: &ReplayProgress,
) -> Result<(), redb::Error> {
    let ReplayProgress { repository, place, query } = progress;
    let mut replays = transaction.open_table(REPLAYS)?;
    let key = (repository.as_str(), place.list, place.page);
    match query {
        Some(query) => drop(replays.insert(key, query.as_str())?),
        None => drop(replays.remove(key)?),
    }
    Ok(())
}

/// Records a page, or the `part` of it that was delivered before one of our own tokens.
pub(super) fn apply_page(
    transaction: &WriteTransaction,
    record: &DeliveredPage,
    part: Option<u64>,
    evictions: &mut Evictions,
) -> Result<(), redb::Error> {
    let repository = record.repository.as_str();
    let mut lists = transaction.open_table(LISTS)?;
    let mut pages = transaction.open_table(PAGES)?;
    let mut tokens = transaction.open_table(TOKENS)?;
    let known_token = match &record.next_token {
        Some(next) => tokens.get((repository, record.verb, next.as_str()))?,
        None => None,
    };
    let known_token: Option<TokenRecord> =
        known_token.and_then(|json| serde_json::from_slice(json.value()).ok());
    let joined = match &known_token {
        Some(token) => joined_list(&lists, record, token)?,
        None => None,
    };
    let place = ListPage { list: joined.unwrap_or(record.place.list), page: record.place.page };
    let known = list_in(&lists, repository, place.list)?;
    if known.is_none() {
        let tables = OpenTables { lists: &mut lists, pages: &mut pages, tokens: &mut tokens };
        evictions.make_room(transaction, tables, repository, record.now_secs)?;
    }
    let mut list = list_after(known, record, joined.is_some());
    if record.place.page == 0 {
        list.states = add_state(transaction, record)?;
    }
    match part {
        Some(part) => {
            let mut parts = transaction.open_table(PARTS)?;
            let key = (repository, place.list, place.page, part);
            parts.insert(key, bytes_of(&record.hashes).as_slice())?;
        }
        None => write_items(transaction, &mut pages, record, place, &mut list)?,
    }
    list.complete &= record.complete && list.items <= ITEMS_MAX;
    if record.within.is_some() {
        transaction.open_table(WINDOWS)?.insert(repository, record.now_secs)?;
    }
    if let Some(first) = record.hashes.first() {
        write_first_item(transaction, repository, place, *first, list.reuses_tokens)?;
    }
    if let Some(token) = &record.request_token {
        let key = (repository, record.verb, token.as_str());
        if tokens.get(key)?.is_none() {
            let within = record.within.clone();
            let token = TokenRecord { place, lowest_page: place.page, ambiguous: false, within };
            tokens.insert(key, json(&token)?.as_slice())?;
        }
    }
    if let Some(token) = &record.next_token {
        let next = ListPage { page: place.page + 1, ..place };
        let is_other_page =
            |known: &TokenRecord| known.place.list == next.list && known.place.page != next.page;
        list.reuses_tokens |= known_token.as_ref().is_some_and(is_other_page);
        let after = token_after(&lists, record, next, known_token)?;
        tokens.insert((repository, record.verb, token.as_str()), json(&after)?.as_slice())?;
    }
    lists.insert((repository, place.list), json(&list)?.as_slice())?;
    Ok(())
}

/// Records the first item of a page.
fn write_first_item(
    transaction: &WriteTransaction,
    repository: &str,
    place: ListPage,
    first: u64,
    counts_visits: bool,
) -> Result<(), redb::Error> {
    let key = (repository, place.list, first);
    let mut firsts = transaction.open_table(FIRSTS)?;
    let earlier = firsts.get(key)?.map(|page| page.value());
    firsts.insert(key, earlier.unwrap_or(place.page).min(place.page))?;
    if counts_visits {
        let mut visits = transaction.open_table(VISITS)?;
        let count = visits.get(key)?.map_or(0, |count| count.value());
        visits.insert(key, count.saturating_add(1))?;
    }
    Ok(())
}

/// The list that a harvest joins with its first page: a list with the same arguments whose first page had the same
/// token.
fn joined_list(
    lists: &Lists<'_>,
    record: &DeliveredPage,
    token: &TokenRecord,
) -> Result<Option<u64>, redb::Error> {
    let TokenRecord { place, lowest_page, ambiguous, .. } = token;
    let is_first = record.place.page == 0 && *lowest_page == 1;
    if !is_first || *ambiguous || place.list == record.place.list {
        return Ok(None);
    }
    let list = list_in(lists, &record.repository, place.list)?;
    let is_same = list.is_some_and(|list| {
        // A new round of a list that reused its tokens is recorded as another list.
        (place.page == 1 || list.harvests > 0)
            && have_same_arguments(&list.first_query, &record.first_query)
            && list.within == record.within
    });
    Ok(is_same.then_some(place.list))
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

/// The record of a list after this page, except its items.
fn list_after(known: Option<ListFacts>, record: &DeliveredPage, is_joined: bool) -> ListFacts {
    let starts = record.place.page == 0 && (is_joined || known.is_none());
    let mut list = known.unwrap_or_else(|| ListFacts {
        first_query: record.first_query.clone(),
        within: record.within.clone(),
        complete: record.place.page == 0,
        items: 0,
        states: HarvestStates::default(),
        harvests: 0,
        round: 0,
        is_shared: false,
        reuses_tokens: false,
        touched_secs: record.now_secs,
    });
    if starts {
        if list.harvests == 0 || list.touched_secs + KEPT_SECS < record.now_secs {
            (list.harvests, list.complete) = (0, true);
            (list.is_shared, list.reuses_tokens) = (false, false);
            list.round = list.round.wrapping_add(1);
        }
        list.harvests = list.harvests.saturating_add(1);
        list.is_shared |= list.harvests > 1;
    }
    list.harvests = match record.status {
        ListStatus::Continues => list.harvests.max(1),
        ListStatus::Ended => list.harvests.saturating_sub(1),
        ListStatus::Loops => 0,
    };
    list.touched_secs = record.now_secs;
    list
}

/// The states of all harvests that may continue the list of this first page: the harvest that begins, and those of
/// earlier lists with the same token.
fn add_state(transaction: &WriteTransaction, record: &DeliveredPage) -> Result<HarvestStates, redb::Error> {
    let mut states = HarvestStates::new(record.now_secs);
    let Some(token) = &record.next_token else {
        states.add(record.state_secs, record.now_secs);
        return Ok(states);
    };
    let mut table = transaction.open_table(STATES)?;
    let key = (record.repository.as_str(), record.verb, token.as_str());
    if let Some(earlier) = table.get(key)? {
        states = serde_json::from_slice(earlier.value()).unwrap_or(states);
    }
    states.add(record.state_secs, record.now_secs);
    table.insert(key, json(&states)?.as_slice())?;
    Ok(states)
}

/// Records the items of a page. If another harvest of the same round received the page too, only the items that both
/// received are recorded: a duplicate record is better than a missing one.
fn write_items(
    transaction: &WriteTransaction,
    pages: &mut Pages<'_>,
    record: &DeliveredPage,
    place: ListPage,
    list: &mut ListFacts,
) -> Result<(), redb::Error> {
    let key = (record.repository.as_str(), place.list, place.page);
    let before = pages.get(key)?.map(|bytes| bytes.value().to_vec());
    let is_shared =
        before.as_ref().is_some_and(|bytes| bytes.len() % 8 == 1 && bytes.last() == Some(&list.round));
    let before: Option<Vec<u64>> = before.map(|bytes| hashes(&bytes).collect());
    let delivered = match &before {
        Some(before) if is_shared => intersection(before, &record.hashes),
        _ => record.hashes.clone(),
    };
    let count_before = before.as_ref().map_or(0, |before| before.len() as u64);
    list.items = list.items.saturating_sub(count_before) + delivered.len() as u64;
    if list.items <= ITEMS_MAX {
        let mut bytes = bytes_of(&delivered);
        bytes.push(list.round);
        pages.insert(key, bytes.as_slice())?;
    }
    if before.is_some_and(|before| before != delivered) {
        // A replay may have skipped items that no longer count as delivered.
        let mut replays = transaction.open_table(REPLAYS)?;
        replays.retain_in((key.0, key.1, 0)..=(key.0, key.1, u32::MAX), |_, _| false)?;
    }
    if let Some(datestamp) = &record.last_datestamp {
        let mut dates = transaction.open_table(DATES)?;
        let lower = dates.get(key)?.map(|before| before.value().to_owned());
        let lower = lower.filter(|before| is_shared && before < datestamp);
        dates.insert(key, lower.as_ref().unwrap_or(datestamp).as_str())?;
    }
    Ok(())
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

/// The record of the next token after this page.
fn token_after(
    lists: &Lists<'_>,
    record: &DeliveredPage,
    next: ListPage,
    known: Option<TokenRecord>,
) -> Result<TokenRecord, redb::Error> {
    let Some(known) = known else {
        let within = record.within.clone();
        return Ok(TokenRecord { place: next, lowest_page: next.page, ambiguous: false, within });
    };
    let within = record.within.clone().zip(known.within).map(|(one, other)| one.union(other));
    if known.place.list == next.list {
        let lowest_page = known.lowest_page.min(next.page);
        return Ok(TokenRecord { place: next, lowest_page, ambiguous: known.ambiguous, within });
    }
    let other = list_in(lists, &record.repository, known.place.list)?;
    let ambiguous = known.ambiguous || other.is_some_and(|list| list.harvests > 0);
    Ok(TokenRecord { place: next, lowest_page: next.page, ambiguous, within })
}
