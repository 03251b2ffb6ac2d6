//! Removes abandoned lists from the ledger, and the oldest lists when a repository has too many.

use super::records::TokenRecord;
use super::rows::{self, list_of_key};
use oaimend_store::ledger::{HarvestStates, ListFacts};
use redb::{ReadableTable, Table};
use std::collections::HashMap;
use std::ops::Range;

/// How long an abandoned list is kept, in seconds.
pub(super) const KEPT_SECS: u64 = 3 * 24 * 3600;
/// Most first tokens of a repository whose states are kept. With more of them, a list may be believed to be newer than
/// an old harvest of it.
const STATES_MAX: u64 = 20_000;
/// How many states are removed at once when a repository has more. States of the same second go together or stay.
const STATES_EVICTED_TOGETHER: u64 = 2_500;
/// Most lists of a repository. More of them can begin between two transactions.
pub(super) const LISTS_MAX: u64 = 1_000;
/// How many lists are removed at once when a repository has more.
pub(super) const LISTS_EVICTED_TOGETHER: u64 = 125;
/// How often abandoned lists are looked for, in seconds.
pub(super) const EVICTION_INTERVAL_SECS: u64 = 3600;

/// The table with all rows, in a transaction that writes.
pub(super) type RowsTable<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// The rows of a repository that a transaction may add.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewRows {
    pub(super) lists: u64,
    pub(super) states: u64,
}

/// For each repository: the room that the last eviction left.
#[derive(Debug, Default)]
pub(super) struct Evictions(HashMap<String, Room>);

/// The number of rows that may be added before the next eviction.
#[derive(Clone, Copy, Debug)]
struct Room {
    lists: u64,
    states: u64,
    evicted_at_secs: u64,
}

impl Evictions {
    /// Makes room for new rows, if an eviction is due. Lists that are in use stay.
    pub(super) fn make_room(
        &mut self,
        table: &mut RowsTable<'_>,
        repository: &str,
        new: NewRows,
        now_secs: u64,
        is_in_use: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), redb::Error> {
        let last = self.0.get(repository).copied();
        let last = last.filter(|room| now_secs < room.evicted_at_secs + EVICTION_INTERVAL_SECS);
        let room = Room {
            lists: match last.and_then(|room| room.lists.checked_sub(new.lists)) {
                Some(left) => left,
                None => evict_lists(table, repository, new.lists, now_secs, is_in_use)?,
            },
            states: match last.and_then(|room| room.states.checked_sub(new.states)) {
                Some(left) => left,
                None => evict_states(table, repository, new.states, now_secs)?,
            },
            evicted_at_secs: last.map_or(now_secs, |room| room.evicted_at_secs),
        };
        self.0.insert(repository.to_owned(), room);
        Ok(())
    }
}

/// Removes abandoned lists, and the oldest when there are too many with `new` ones. Returns how many more lists may
/// start: some, because an eviction reads every list of the repository.
fn evict_lists(
    table: &mut RowsTable<'_>,
    repository: &str,
    new: u64,
    now_secs: u64,
    is_in_use: &dyn Fn(&[u8]) -> bool,
) -> Result<u64, redb::Error> {
    let (mut known, mut touched) = (0, Vec::new());
    for list in range(table, &rows::lists(repository))? {
        let (key, json) = list?;
        known += 1;
        if let Some((_, list)) = list_of_key(key.value()).filter(|_| !is_in_use(key.value())) {
            let facts: Option<ListFacts> = serde_json::from_slice(json.value()).ok();
            touched.push((facts.map_or(0, |facts| facts.touched_secs), list));
        }
    }
    touched.sort_unstable();
    let too_many = match (known + new).saturating_sub(LISTS_MAX) {
        0 => 0,
        more => more - 1 + LISTS_EVICTED_TOGETHER,
    };
    let old: Vec<u64> = touched
        .iter()
        .enumerate()
        .filter(|(at, (secs, _))| (*at as u64) < too_many || secs + KEPT_SECS < now_secs)
        .map(|(_, (_, list))| *list)
        .collect();
    for list in &old {
        remove_list(table, repository, *list)?;
    }
    Ok(LISTS_MAX.saturating_sub(known - old.len() as u64 + new))
}

/// Removes a list with its tokens. A token that points to another list by now stays.
fn remove_list(table: &mut RowsTable<'_>, repository: &str, list: u64) -> Result<(), redb::Error> {
    let of_list = rows::tokens_of_list(repository, list);
    let mut tokens = Vec::new();
    for row in range(table, &of_list)? {
        let (key, _) = row?;
        let verb_and_token = key.value().get(of_list.start.len()..).unwrap_or_default();
        tokens.push([rows::tokens(repository).as_slice(), verb_and_token].concat());
    }
    for token in tokens {
        let points_here = |json: &[u8]| {
            serde_json::from_slice::<TokenRecord>(json).map_or(true, |token| token.place.list == list)
        };
        if table.get(token.as_slice())?.is_some_and(|json| points_here(json.value())) {
            table.remove(token.as_slice())?;
        }
    }
    let Range { start, end } = rows::all_of_list(repository, list);
    table.retain_in(start.as_slice()..end.as_slice(), |_, _| false)?;
    table.remove(rows::list(repository, list).as_slice())?;
    Ok(())
}

/// Removes the states that no harvest needs any more, and the oldest ones when there are too many with `new` ones.
/// Returns how many more may be added.
fn evict_states(
    table: &mut RowsTable<'_>,
    repository: &str,
    new: u64,
    now_secs: u64,
) -> Result<u64, redb::Error> {
    let since = |json: &[u8]| {
        let states: HarvestStates = serde_json::from_slice(json).unwrap_or_default();
        (!states.is_over(now_secs)).then(|| states.since_secs())
    };
    let keys = rows::states(repository);
    let mut known: Vec<u64> = Vec::new();
    for row in range(table, &keys)? {
        known.extend(since(row?.1.value()));
    }
    known.sort_unstable();
    let too_many = match (known.len() as u64 + new).saturating_sub(STATES_MAX) {
        0 => 0,
        more => more - 1 + STATES_EVICTED_TOGETHER,
    };
    let first = usize::try_from(too_many).ok().and_then(|too_many| known.get(too_many)).copied();
    let mut kept = 0;
    table.retain_in(keys.start.as_slice()..keys.end.as_slice(), |_, json| {
        let is_kept = since(json).is_some_and(|since| first.is_some_and(|first| since >= first));
        kept += u64::from(is_kept);
        is_kept
    })?;
    Ok(STATES_MAX.saturating_sub(kept + new))
}

fn range<'t>(
    table: &'t RowsTable<'_>,
    keys: &Range<Vec<u8>>,
) -> Result<redb::Range<'t, &'static [u8], &'static [u8]>, redb::Error> {
    Ok(table.range(keys.start.as_slice()..keys.end.as_slice())?)
}
