//! Removes abandoned lists from the ledger, and the oldest lists when a repository has too many.

use super::tables::{DATES, FIRSTS, Lists, PARTS, Pages, REPLAYS, STATES, TokenRecord, Tokens, VISITS};
use crate::store::ledger::{HarvestStates, ListFacts};
use redb::{ReadableTable, WriteTransaction};
use std::collections::{HashMap, HashSet};

/// How long an abandoned list is kept, in seconds.
pub(super) const KEPT_SECS: u64 = 3 * 24 * 3600;
/// Most first tokens of a repository whose states are kept. With more of them, a list may be believed to be newer than
/// an old harvest of it.
const STATES_MAX: usize = 20_000;
/// Most lists of a repository.
pub(super) const LISTS_MAX: u64 = 1_000;
/// How many lists are removed at once when a repository has more.
pub(super) const LISTS_EVICTED_TOGETHER: u64 = 125;
/// How often abandoned lists are looked for, in seconds.
const EVICTION_INTERVAL_SECS: u64 = 3600;

/// For each repository: the last eviction.
#[derive(Debug, Default)]
pub(super) struct Evictions(HashMap<String, LastEviction>);

#[derive(Clone, Copy, Debug)]
struct LastEviction {
    at_secs: u64,
    /// The number of lists that may start before the next eviction.
    room: u64,
}

/// The tables that a writer has open while it evicts.
pub(super) struct OpenTables<'a, 't> {
    pub(super) lists: &'a mut Lists<'t>,
    pub(super) pages: &'a mut Pages<'t>,
    pub(super) tokens: &'a mut Tokens<'t>,
}

impl Evictions {
    /// Makes room for a new list, if an eviction is due.
    pub(super) fn make_room(
        &mut self,
        transaction: &WriteTransaction,
        tables: OpenTables<'_, '_>,
        repository: &str,
        now_secs: u64,
    ) -> Result<(), redb::Error> {
        let last = self.0.get(repository).copied();
        let is_recent =
            |last: &LastEviction| last.room > 0 && now_secs < last.at_secs + EVICTION_INTERVAL_SECS;
        let last = match last.filter(is_recent) {
            Some(last) => last,
            None => {
                LastEviction { at_secs: now_secs, room: evict(transaction, tables, repository, now_secs)? }
            }
        };
        self.0.insert(repository.to_owned(), LastEviction { room: last.room - 1, ..last });
        Ok(())
    }
}

/// Removes abandoned lists, and the oldest when there are too many. Returns how many lists may start now; more than
/// one, because an eviction reads every list of the repository.
fn evict(
    transaction: &WriteTransaction,
    OpenTables { lists, pages, tokens }: OpenTables<'_, '_>,
    repository: &str,
    now_secs: u64,
) -> Result<u64, redb::Error> {
    let mut touched: Vec<(u64, u64)> = Vec::new();
    for list in lists.range((repository, 0)..=(repository, u64::MAX))? {
        let (key, json) = list?;
        let facts: Option<ListFacts> = serde_json::from_slice(json.value()).ok();
        touched.push((facts.map_or(0, |facts| facts.touched_secs), key.value().1));
    }
    touched.sort_unstable();
    let known = touched.len() as u64;
    let too_many = if known < LISTS_MAX { 0 } else { known - LISTS_MAX + LISTS_EVICTED_TOGETHER };
    let old: Vec<u64> = touched
        .iter()
        .enumerate()
        .filter(|(at, (secs, _))| (*at as u64) < too_many || secs + KEPT_SECS < now_secs)
        .map(|(_, (_, list))| *list)
        .collect();
    let room = LISTS_MAX - (known - old.len() as u64);
    evict_states(transaction, repository, now_secs)?;
    if old.is_empty() {
        return Ok(room);
    }
    let mut firsts = transaction.open_table(FIRSTS)?;
    let mut visits = transaction.open_table(VISITS)?;
    let mut dates = transaction.open_table(DATES)?;
    let mut replays = transaction.open_table(REPLAYS)?;
    let mut parts = transaction.open_table(PARTS)?;
    for list in &old {
        lists.remove((repository, *list))?;
        pages.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        firsts.retain_in((repository, *list, 0)..=(repository, *list, u64::MAX), |_, _| false)?;
        visits.retain_in((repository, *list, 0)..=(repository, *list, u64::MAX), |_, _| false)?;
        dates.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        replays.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        let all = (repository, *list, 0, 0)..=(repository, *list, u32::MAX, u64::MAX);
        parts.retain_in(all, |_, _| false)?;
    }
    let old: HashSet<u64> = old.into_iter().collect();
    let is_old = |json: &[u8]| {
        serde_json::from_slice::<TokenRecord>(json).map_or(true, |token| old.contains(&token.place.list))
    };
    let next = after(repository);
    tokens.retain_in((repository, "", "")..(next.as_str(), "", ""), |_, json| !is_old(json))?;
    Ok(room)
}

/// Removes the states that no harvest needs any more, and the oldest ones when there are too many.
fn evict_states(transaction: &WriteTransaction, repository: &str, now_secs: u64) -> Result<(), redb::Error> {
    let mut table = transaction.open_table(STATES)?;
    let since = |json: &[u8]| {
        let states: HarvestStates = serde_json::from_slice(json).unwrap_or_default();
        (!states.is_over(now_secs)).then(|| states.since_secs())
    };
    let mut kept: Vec<u64> = Vec::new();
    let next = after(repository);
    let of_repository = (repository, "", "")..(next.as_str(), "", "");
    for row in table.range(of_repository.clone())? {
        kept.extend(since(row?.1.value()));
    }
    kept.sort_unstable();
    let first = kept.len().checked_sub(STATES_MAX).and_then(|too_many| kept.get(too_many)).copied();
    table.retain_in(of_repository, |_, json| {
        since(json).is_some_and(|since| first.is_none_or(|first| since >= first))
    })?;
    Ok(())
}

/// The first text after a repository's id. Only the rows of that repository are read: the rows of all repositories would
/// delay each page that waits for the writer.
fn after(repository: &str) -> String {
    format!("{repository}\0")
}
