//! Applies one record to the rows of the ledger.

use super::eviction::KEPT_SECS;
use super::records::{TokenRecord, bytes_of, find_json, find_list, find_token, hashes, json, number, text};
use super::rows::{self, ListRow, View};
use oaimend_store::ledger::{DeliveredPage, HarvestStates, ListFacts, ListPage, ListStatus, ReplayProgress};
use std::collections::HashMap;

/// Maximum number of items of a list: 16 MB. A longer list is not replayed.
const ITEMS_MAX: u64 = 1_000_000;

/// Records the progress of a replay.
pub(super) fn apply_replay(view: &mut View<'_>, progress: &ReplayProgress) {
    let ReplayProgress { repository, place, query } = progress;
    let key = rows::of_list(repository, place.list, ListRow::Replay(place.page));
    match query {
        Some(query) => view.insert(key, query.as_str()),
        None => view.remove(key),
    }
}

/// Records a page, or the `part` of it that was delivered before one of our own tokens. Returns the origin of the token on
/// it; `None` if the token is ambiguous.
///
/// # Errors
///
/// The database cannot be read. A part of the rows may be recorded.
pub(super) fn apply_page(
    view: &mut View<'_>,
    record: &DeliveredPage,
    part: Option<u64>,
) -> Result<Option<u64>, redb::Error> {
    let repository = record.repository.as_str();
    let known_token = match &record.next_token {
        Some(next) => find_token(view, repository, record.verb, next)?,
        None => None,
    };
    let joined = match &known_token {
        Some(token) => joined_list(view, record, token)?,
        None => None,
    };
    let place = ListPage { list: joined.unwrap_or(record.place.list), page: record.place.page };
    let known = find_list(view, repository, place.list)?;
    let mut list = list_after(known, record, joined.is_some());
    if record.place.page == 0 {
        list.states = add_state(view, record)?;
    }
    match part {
        Some(part) => {
            let key = |row| rows::of_list(repository, place.list, row);
            view.insert(key(ListRow::Part(place.page, part)), bytes_of(&record.hashes));
            view.insert(key(ListRow::PartNames(place.page, part)), bytes_of(&record.names));
        }
        None => insert_items(view, record, place, &mut list)?,
    }
    if record.status == ListStatus::Loops {
        // The visits of the harvest that was refused must not count against the others.
        view.remove_visits(repository, place.list)?;
    }
    list.complete &= record.complete && list.items <= ITEMS_MAX;
    if record.within.is_some() {
        view.insert(rows::window(repository), record.now_secs.to_le_bytes());
    }
    if let Some(first) = record.hashes.first() {
        insert_first_item(view, repository, place, *first, list.reuses_tokens)?;
    }
    if let Some(token) = &record.request_token {
        let known = find_token(view, repository, record.verb, token)?;
        match known {
            None => {
                let origin = record.request_origin;
                let new = TokenRecord { items_before: None, ..new_token(record, place, list.round, origin) };
                insert_token(view, record, token, &new)?;
            }
            Some(known) if known.place.list == place.list && known.round != list.round => {
                let (page, round) = (place.page, list.round);
                insert_token(view, record, token, &TokenRecord { place, lowest_page: page, round, ..known })?;
            }
            Some(_) => {}
        }
    }
    let mut origin = None;
    let known_token = match &record.next_token {
        // The record of the request may just have changed it.
        Some(next) if record.request_token.as_ref() == Some(next) => {
            find_token(view, repository, record.verb, next)?
        }
        _ => known_token,
    };
    if let Some(token) = &record.next_token {
        let next = ListPage { page: place.page + 1, ..place };
        let is_other_page =
            |known: &TokenRecord| known.place.list == next.list && known.place.page != next.page;
        list.reuses_tokens |= known_token.as_ref().is_some_and(is_other_page);
        origin = TokenRecord::origin_after(known_token.as_ref(), record.next_origin, record.now_secs);
        let after = token_after(view, record, next, list.round, known_token)?;
        insert_token(view, record, token, &TokenRecord { origin, ..after })?;
    }
    view.insert(rows::list(repository, place.list), json(&list)?);
    Ok(origin)
}

/// The record of a token that no page had before. `origin` is the hash of the pages that lead to it.
fn new_token(record: &DeliveredPage, place: ListPage, round: u8, origin: Option<u64>) -> TokenRecord {
    TokenRecord {
        place,
        lowest_page: place.page,
        ambiguous: false,
        within: record.within.clone(),
        origin,
        items_before: record.next_items,
        round,
        given_secs: record.now_secs,
    }
}

/// Records a token, and that its list has it.
fn insert_token(
    view: &mut View<'_>,
    record: &DeliveredPage,
    token: &str,
    known: &TokenRecord,
) -> Result<(), redb::Error> {
    let (repository, verb) = (record.repository.as_str(), record.verb);
    view.insert(rows::token(repository, verb, token), json(known)?);
    view.insert(rows::of_list(repository, known.place.list, ListRow::Token(verb, token)), []);
    Ok(())
}

/// Records the first item of a page.
fn insert_first_item(
    view: &mut View<'_>,
    repository: &str,
    place: ListPage,
    first: u64,
    counts_visits: bool,
) -> Result<(), redb::Error> {
    let key = rows::of_list(repository, place.list, ListRow::First(first));
    let earlier = view.find(&key, number)?;
    view.insert(key, earlier.unwrap_or(place.page).min(place.page).to_le_bytes());
    if counts_visits {
        let key = rows::of_list(repository, place.list, ListRow::Visits(first));
        let count = view.find(&key, number)?.unwrap_or(0);
        view.insert(key, count.saturating_add(1).to_le_bytes());
    }
    Ok(())
}

/// The list that a harvest joins with its first page: a list with the same arguments whose first page had the same
/// token.
fn joined_list(
    view: &View<'_>,
    record: &DeliveredPage,
    token: &TokenRecord,
) -> Result<Option<u64>, redb::Error> {
    let TokenRecord { place, lowest_page, ambiguous, .. } = token;
    let is_first = record.place.page == 0 && *lowest_page == 1;
    if !is_first || *ambiguous || place.list == record.place.list {
        return Ok(None);
    }
    let list = find_list(view, &record.repository, place.list)?;
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
        list_size: None,
        reuses_tokens: false,
        touched_secs: record.now_secs,
    });
    let begins_again = starts && (list.harvests == 0 || list.touched_secs + KEPT_SECS < record.now_secs);
    list.list_size = match &record.next_token {
        _ if begins_again => record.list_size,
        Some(_) if list.list_size == record.list_size => record.list_size,
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
    list.harvests = match record.status {
        ListStatus::Continues => list.harvests.max(1),
        ListStatus::Ended | ListStatus::Loops => list.harvests.saturating_sub(1),
    };
    list.touched_secs = record.now_secs;
    list
}

/// The states of all harvests that may continue the list of this first page: the harvest that begins, and those of
/// earlier lists with the same token.
fn add_state(view: &mut View<'_>, record: &DeliveredPage) -> Result<HarvestStates, redb::Error> {
    let mut states = HarvestStates::new(record.now_secs);
    let Some(token) = &record.next_token else {
        states.add(record.state_secs, record.now_secs);
        return Ok(states);
    };
    let key = rows::state(&record.repository, record.verb, token);
    states = find_json(view, &key)?.unwrap_or(states);
    states.add(record.state_secs, record.now_secs);
    view.insert(key, json(&states)?);
    Ok(states)
}

/// Records the items of a page. If another harvest of the same round received the page too, only the items that both
/// received are recorded: a duplicate record is better than a missing one.
fn insert_items(
    view: &mut View<'_>,
    record: &DeliveredPage,
    place: ListPage,
    list: &mut ListFacts,
) -> Result<(), redb::Error> {
    let key = |row| rows::of_list(&record.repository, place.list, row);
    let before = view.find(&key(ListRow::Page(place.page)), <[u8]>::to_vec)?;
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
        view.insert(key(ListRow::Page(place.page)), bytes);
        let key = key(ListRow::Names(place.page));
        let names = match view.find(&key, |bytes| hashes(bytes).collect::<Vec<u64>>())? {
            Some(before) if is_shared => intersection(&before, &record.names),
            _ => record.names.clone(),
        };
        view.insert(key, bytes_of(&names));
    }
    if before.is_some_and(|before| before != delivered) {
        // A replay may have skipped items that no longer count as delivered.
        view.remove_replays(&record.repository, place.list)?;
    }
    if let Some(datestamp) = &record.last_datestamp {
        let key = key(ListRow::Date(place.page));
        let lower = if is_shared { view.find(&key, text)? } else { None };
        let lower = lower.filter(|before| before < datestamp);
        view.insert(key, lower.as_ref().unwrap_or(datestamp).as_str());
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
    view: &View<'_>,
    record: &DeliveredPage,
    next: ListPage,
    round: u8,
    known: Option<TokenRecord>,
) -> Result<TokenRecord, redb::Error> {
    let new = new_token(record, next, round, record.next_origin);
    let Some(known) = known else { return Ok(new) };
    let within = record.within.clone().zip(known.within).map(|(one, other)| one.union(other));
    if known.place.list == next.list {
        let lowest_page = known.lowest_page.min(next.page);
        return Ok(TokenRecord { lowest_page, ambiguous: known.ambiguous, within, ..new });
    }
    let other = find_list(view, &record.repository, known.place.list)?;
    let ambiguous = known.ambiguous || other.is_some_and(|list| list.harvests > 0);
    Ok(TokenRecord { ambiguous, within, ..new })
}
