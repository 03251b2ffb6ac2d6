//! How the values of rows are encoded.

use super::rows::{self, View};
use oaimend_oai::Window;
use oaimend_store::ledger::{ListFacts, ListPage, TokenTarget, bounds};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

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
    /// The hash of the pages that lead to the token; `None` if it is ambiguous.
    #[serde(default)]
    pub(super) origin: Option<u64>,
    /// The number of items that lead to the token, if known.
    #[serde(default)]
    pub(super) items_before: Option<u64>,
    /// The round of the list in which a page with the token was last recorded.
    #[serde(default)]
    pub(super) round: u8,
    /// When a page with the token was last delivered, in seconds since 1970.
    #[serde(default)]
    pub(super) given_secs: u64,
}

/// How long the origin of a token counts, in seconds: as long as a page after a token may be cached
/// (`token_pages_secs`). A page that was cached for an older origin is not fresh any more.
const ORIGIN_SECS: u64 = 3_600;

impl TokenRecord {
    /// The origin of a token after a page with `origin` was delivered. `known` is the record before.
    pub(super) fn origin_after(known: Option<&Self>, origin: Option<u64>, now_secs: u64) -> Option<u64> {
        match known {
            Some(known) if now_secs > known.given_secs.saturating_add(ORIGIN_SECS) => origin,
            Some(known) if known.origin != origin => None,
            _ => origin,
        }
    }
}

/// Hashes to bytes, 8 for each hash.
pub(super) fn bytes_of(hashes: &[u64]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect()
}

/// Bytes to hashes. A remainder of fewer than 8 bytes is not a hash.
pub(super) fn hashes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

/// Bytes to a number; 0 if they are not one.
pub(super) fn number(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// Bytes to seconds since 1970; 0 if they are none.
pub(super) fn secs(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Bytes to a text.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn json(value: &impl Serialize) -> Result<Vec<u8>, redb::Error> {
    serde_json::to_vec(value).map_err(|error| redb::Error::Io(std::io::Error::other(error)))
}

/// The value of a row as JSON. A value that another version of the program wrote counts as absent.
pub(super) fn find_json<T: DeserializeOwned>(view: &View<'_>, key: &[u8]) -> Result<Option<T>, redb::Error> {
    Ok(view.find(key, |json| serde_json::from_slice(json).ok())?.flatten())
}

/// The record of a token.
pub(super) fn find_token(
    view: &View<'_>,
    repository: &str,
    verb: &str,
    token: &str,
) -> Result<Option<TokenRecord>, redb::Error> {
    find_json(view, &rows::token(repository, verb, token))
}

/// The record of a list.
pub(super) fn find_list(
    view: &View<'_>,
    repository: &str,
    list: u64,
) -> Result<Option<ListFacts>, redb::Error> {
    find_json(view, &rows::list(repository, list))
}

/// Where a token points.
pub(super) fn find_target(
    view: &View<'_>,
    repository: &str,
    verb: &str,
    token: &str,
) -> Result<Option<TokenTarget>, redb::Error> {
    let Some(record) = find_token(view, repository, verb, token)? else { return Ok(None) };
    let list = find_list(view, repository, record.place.list)?;
    let is_of_round = list.as_ref().is_some_and(|list| list.round == record.round);
    let page = if is_of_round { record.place.page } else { record.lowest_page };
    let place = ListPage { page, ..record.place };
    let place = if record.ambiguous { None } else { list.map(|list| (place, list)) };
    let TokenRecord { origin, items_before, within, .. } = record;
    Ok(Some(TokenTarget { place, origin, items_before, is_of_round, within }))
}
