//! The tables of the ledger, and how their values are encoded.

use crate::oai::Window;
use crate::store::ledger::{ListFacts, ListPage, TokenTarget, bounds};
use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError};
use serde::{Deserialize, Serialize};

/// Repository and list to [`ListFacts`] as JSON.
pub(super) const LISTS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("lists");
/// Repository, list and page to the hashes of the delivered items, 8 bytes each, and one byte for the round of the
/// list in which the page was last delivered.
pub(super) const PAGES: TableDefinition<'_, (&str, u64, u32), &[u8]> = TableDefinition::new("pages");
/// Repository, list, page and the hash of all hashes to the hashes: the part of a page that was delivered before one
/// of our own tokens.
pub(super) const PARTS: TableDefinition<'_, (&str, u64, u32, u64), &[u8]> = TableDefinition::new("parts");
/// Repository, list and the hash of a page's first item to the number of the page.
pub(super) const FIRSTS: TableDefinition<'_, (&str, u64, u64), u32> = TableDefinition::new("firsts");
/// Repository, list and the hash of a page's first item to the number of such pages since the list is known to reuse
/// its tokens.
pub(super) const VISITS: TableDefinition<'_, (&str, u64, u64), u32> = TableDefinition::new("visits");
/// Repository, verb and token to [`TokenRecord`] as JSON.
pub(super) const TOKENS: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("tokens");
/// Repository, list and page to the datestamp of the page's last item.
pub(super) const DATES: TableDefinition<'_, (&str, u64, u32), &str> = TableDefinition::new("dates");
/// Repository, list and page to the query that continues the replay up to the page.
pub(super) const REPLAYS: TableDefinition<'_, (&str, u64, u32), &str> = TableDefinition::new("walks");
/// Repository to the time, in seconds since 1970, when a page of a list was last recorded of which a harvester
/// requested only a part.
pub(super) const WINDOWS: TableDefinition<'_, &str, u64> = TableDefinition::new("windows");

/// Repository, verb and the token of a list's first page to [`HarvestStates`](crate::store::ledger::HarvestStates) as
/// JSON. A source may give the same token to a later list. Harvests of the earlier one may then continue in the later
/// one, also after the earlier one was removed.
pub(super) const STATES: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("states");

pub(super) type Lists<'t> = redb::Table<'t, (&'static str, u64), &'static [u8]>;
pub(super) type Pages<'t> = redb::Table<'t, (&'static str, u64, u32), &'static [u8]>;
pub(super) type Tokens<'t> = redb::Table<'t, (&'static str, &'static str, &'static str), &'static [u8]>;

/// The record of a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TokenRecord {
    /// The page that the token requests.
    pub(super) place: ListPage,
    /// The lowest page of the list that the token requested.
    #[serde(default)]
    pub(super) lowest_page: u32,
    /// Whether lists with different arguments contain the token.
    pub(super) ambiguous: bool,
    /// The window that covers the requests for all lists with this token; `None` if one request had no window.
    #[serde(default, with = "bounds")]
    pub(super) within: Option<Window>,
}

/// Hashes to bytes, 8 for each hash.
pub(super) fn bytes_of(hashes: &[u64]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect()
}

/// Bytes to hashes. A remainder of fewer than 8 bytes is not a hash.
pub(super) fn hashes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

pub(super) fn json(value: &impl Serialize) -> Result<Vec<u8>, redb::Error> {
    serde_json::to_vec(value).map_err(|error| redb::Error::Io(std::io::Error::other(error)))
}

pub(super) fn list_in(
    lists: &Lists<'_>,
    repository: &str,
    list: u64,
) -> Result<Option<ListFacts>, redb::Error> {
    let facts = lists.get((repository, list))?;
    Ok(facts.and_then(|json| serde_json::from_slice(json.value()).ok()))
}

/// The record of a token, as a reader sees it.
pub(super) fn read_token(
    reading: &ReadTransaction,
    repository: &str,
    verb: &str,
    token: &str,
) -> Result<Option<TokenRecord>, redb::Error> {
    let Some(tokens) = existing(reading.open_table(TOKENS))? else { return Ok(None) };
    let record = tokens.get((repository, verb, token))?;
    Ok(record.and_then(|json| serde_json::from_slice(json.value()).ok()))
}

/// The record of a list, as a reader sees it.
pub(super) fn read_list(
    reading: &ReadTransaction,
    repository: &str,
    list: u64,
) -> Result<Option<ListFacts>, redb::Error> {
    let Some(lists) = existing(reading.open_table(LISTS))? else { return Ok(None) };
    let facts = lists.get((repository, list))?;
    Ok(facts.and_then(|json| serde_json::from_slice(json.value()).ok()))
}

/// Where a token points, as a reader sees it.
pub(super) fn read_target(
    reading: &ReadTransaction,
    repository: &str,
    verb: &str,
    token: &str,
) -> Result<Option<TokenTarget>, redb::Error> {
    let Some(record) = read_token(reading, repository, verb, token)? else { return Ok(None) };
    let list = read_list(reading, repository, record.place.list)?;
    let place = list.filter(|_| !record.ambiguous).map(|list| (record.place, list));
    let is_reused = record.ambiguous || record.lowest_page < record.place.page;
    Ok(Some(TokenTarget { place, is_reused, within: record.within }))
}

/// A table, or `None` if nothing was ever written to it.
pub(super) fn existing<T>(table: Result<T, TableError>) -> Result<Option<T>, redb::Error> {
    match table {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
