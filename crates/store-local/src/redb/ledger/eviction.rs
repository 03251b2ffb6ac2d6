//! Removes the rows of the lists and states that the ledger evicts.

use super::rows::{self, list_of_key};
use oaimend_oai::UnixSecs;
use oaimend_store::RepositoryId;
use oaimend_store::ledger::{
    Evictions, HarvestStates, KeptStates, ListEviction, ListFacts, RowCounts, TokenRecord,
};
use redb::{ReadableTable, Table};
use std::ops::Range;

/// The table with all rows, in a transaction that writes.
pub(super) type RowsTable<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// Makes room for the new rows of a repository, if an eviction is due. Lists that are in use stay.
pub(super) fn make_room(
    table: &mut RowsTable<'_>,
    evictions: &mut Evictions,
    (repository, new): (&str, RowCounts),
    now_secs: UnixSecs,
    is_in_use: &dyn Fn(&[u8]) -> bool,
) -> Result<(), redb::Error> {
    let (lists, states) = evictions.left(repository, new, now_secs);
    let lists = match lists {
        Some(left) => left,
        None => evict_lists(table, RepositoryId(repository), new.lists, now_secs, is_in_use)?,
    };
    let states = match states {
        Some(left) => left,
        None => evict_states(table, RepositoryId(repository), new.states, now_secs)?,
    };
    evictions.note(repository, RowCounts { lists, states }, now_secs);
    Ok(())
}

/// Removes lists to make room for `new` ones. Returns how many more may start.
fn evict_lists(
    table: &mut RowsTable<'_>,
    repository: RepositoryId<'_>,
    new: u64,
    now_secs: UnixSecs,
    is_in_use: &dyn Fn(&[u8]) -> bool,
) -> Result<u64, redb::Error> {
    let (mut known, mut touched) = (0, Vec::new());
    for list in range(table, &rows::lists(repository))? {
        let (key, json) = list?;
        known += 1;
        if !is_in_use(key.value())
            && let Some((_, list)) = list_of_key(key.value())
        {
            let facts: Option<ListFacts> = serde_json::from_slice(json.value()).ok();
            touched.push((facts.map_or(UnixSecs(0), |facts| facts.touched_secs), list));
        }
    }
    let ListEviction { lists, left } = ListEviction::choose(touched, known, new, now_secs);
    for list in lists {
        remove_list(table, repository, list)?;
    }
    Ok(left)
}

/// Removes a list with its tokens. A token that points to another list by now stays.
fn remove_list(
    table: &mut RowsTable<'_>,
    repository: RepositoryId<'_>,
    list: u64,
) -> Result<(), redb::Error> {
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

/// Removes states to make room for `new` ones. Returns how many more may be added.
fn evict_states(
    table: &mut RowsTable<'_>,
    repository: RepositoryId<'_>,
    new: u64,
    now_secs: UnixSecs,
) -> Result<u64, redb::Error> {
    let states = |json: &[u8]| -> HarvestStates { serde_json::from_slice(json).unwrap_or_default() };
    let keys = rows::states(repository);
    let mut known = Vec::new();
    for row in range(table, &keys)? {
        known.push(states(row?.1.value()));
    }
    let (kept, mut count) = (KeptStates::choose(known, new, now_secs), 0);
    table.retain_in(keys.start.as_slice()..keys.end.as_slice(), |_, json| {
        let is_kept = kept.contains(&states(json));
        count += u64::from(is_kept);
        is_kept
    })?;
    Ok(KeptStates::left(count, new))
}

fn range<'t>(
    table: &'t RowsTable<'_>,
    keys: &Range<Vec<u8>>,
) -> Result<redb::Range<'t, &'static [u8], &'static [u8]>, redb::Error> {
    Ok(table.range(keys.start.as_slice()..keys.end.as_slice())?)
}
