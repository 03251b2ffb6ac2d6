//! The JSON of records in memory, for clients that read the same lists.
//!
//! It follows from the XML of the records, the namespaces around it and the selected parts alone, so it never becomes stale.
//! Everything else in a page is written for each response.

use bytes::Bytes;
use oaimend_api::ListScopes;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

/// Maximum number of bytes of all records, their XML and their JSON.
const RECORDS_BYTES_MAX: u64 = 32 << 20;
/// Longest XML or JSON of the records of a page that is kept, in bytes. It is compared on the thread of a connection.
pub(super) const PAGE_BYTES_MAX: usize = 1 << 20;
/// A guess of the bytes of the records of a page, for the size of the table.
const PAGE_BYTES: u64 = 256 << 10;
/// The bytes of a key and its namespaces.
const ENTRY_BYTES: u64 = 1 << 10;

/// The JSON of the records of lists.
#[derive(Debug)]
pub(crate) struct RecordsJsonCache(Cache<RecordsXml, RecordsJson, ByBytes, foldhash::fast::RandomState>);

/// Everything that the JSON of records follows from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordsXml {
    /// From the first record to the last one.
    pub(super) xml: Bytes,
    pub(super) scopes: ListScopes,
    pub(super) fields: Option<Vec<String>>,
}

/// The JSON of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordsJson {
    /// An array.
    pub(super) json: Bytes,
    /// The number of its records.
    pub(super) count: usize,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<RecordsXml, RecordsJson> for ByBytes {
    fn weight(&self, key: &RecordsXml, records: &RecordsJson) -> u64 {
        let scopes = key.scopes.iter().flat_map(|scope| scope.declarations());
        let declared: usize = scopes.map(|(prefix, uri)| prefix.len() + uri.len()).sum();
        (key.xml.len() + records.json.len() + declared) as u64 + ENTRY_BYTES
    }
}

impl Default for RecordsJsonCache {
    fn default() -> Self {
        let pages = usize::try_from(RECORDS_BYTES_MAX / PAGE_BYTES).unwrap_or_default();
        let (hasher, lifecycle) = (foldhash::fast::RandomState::default(), DefaultLifecycle::default());
        Self(Cache::with(pages, RECORDS_BYTES_MAX, ByBytes, hasher, lifecycle))
    }
}

impl RecordsJsonCache {
    pub(super) fn find(&self, records: &RecordsXml) -> Option<RecordsJson> {
        self.0.get(records)
    }

    /// Keeps the JSON of records, if it is not too long.
    pub(super) fn keep(&self, records: &RecordsXml, json: &RecordsJson) {
        if records.xml.len().max(json.json.len()) > PAGE_BYTES_MAX {
            return;
        }
        // A part of a buffer would keep all of it in memory.
        let alone = |part: &Bytes| Bytes::copy_from_slice(part);
        let json = RecordsJson { json: alone(&json.json), ..*json };
        self.0.insert(RecordsXml { xml: alone(&records.xml), ..records.clone() }, json);
    }
}
