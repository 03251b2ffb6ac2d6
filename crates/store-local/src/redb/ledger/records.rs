//! How the values of rows are encoded.

use super::rows::{self, View};
use oaimend_oai::{UnixSecs, Verb};
use oaimend_store::RepositoryId;
use oaimend_store::ledger::{KnownToken, ListFacts, TokenRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// Bytes to a time; the start of 1970 if they are none.
pub(super) fn secs(bytes: &[u8]) -> UnixSecs {
    UnixSecs(bytes.try_into().map_or(0, i64::from_le_bytes))
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
    repository: RepositoryId<'_>,
    verb: Verb,
    token: &str,
) -> Result<Option<TokenRecord>, redb::Error> {
    find_json(view, &rows::token(repository, verb, token))
}

/// The record of a list.
pub(super) fn find_list(
    view: &View<'_>,
    repository: RepositoryId<'_>,
    list: u64,
) -> Result<Option<ListFacts>, redb::Error> {
    find_json(view, &rows::list(repository, list))
}

/// A token with its list.
pub(super) fn find_known_token(
    view: &View<'_>,
    repository: RepositoryId<'_>,
    verb: Verb,
    token: &str,
) -> Result<Option<KnownToken>, redb::Error> {
    let Some(record) = find_token(view, repository, verb, token)? else { return Ok(None) };
    let list = find_list(view, repository, record.place.list)?;
    Ok(Some(KnownToken { record, list }))
}
