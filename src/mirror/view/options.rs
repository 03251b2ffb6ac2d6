//! The stores, the limits and the repositories of a view.

use crate::clock::Clock;
use crate::config::Collisions;
use crate::mirror::spans::SpanTable;
use crate::mirror::stamps::Stamps;
use crate::store::{MirrorStore, TokenKey};
use std::sync::Arc;

/// The state that all views share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ViewStores {
    /// The mirrored records.
    pub store: Arc<dyn MirrorStore>,
    /// The stamps of the same store. The harvester uses them too.
    pub stamps: Arc<Stamps>,
    /// The times that harvesters derived from lists.
    pub(crate) spans: SpanTable,
    pub(crate) token_key: TokenKey,
    pub(crate) clock: Arc<dyn Clock>,
}

impl ViewStores {
    /// The state of the views over a store. `stamps` are those of the same store, `token_key` signs the
    /// resumptionTokens.
    pub fn new(
        store: Arc<dyn MirrorStore>,
        stamps: Arc<Stamps>,
        token_key: TokenKey,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { spans: SpanTable::new(Arc::clone(&store)), store, stamps, token_key, clock }
    }
}

/// The limits of the responses of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewOptions {
    /// Most records of a page, at least 1.
    pub page_records_max: usize,
    /// The bytes of records after which a page ends. The last record may exceed it.
    pub page_bytes_max: usize,
    /// Most sets of a page of `ListSets`, at least 1.
    pub page_sets_max: usize,
    /// Most bytes of a response that is held until it is whole, for HTTP/1.0.
    pub spool_bytes_max: usize,
    /// Whether tokens have the attribute `totalElements`: the number of all records in the format. The schema does
    /// not have this attribute. Schedules of other mirrors use it.
    pub total_elements: bool,
    /// Which records lists of several repositories show if they have the same identifier.
    pub collisions: Collisions,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            page_records_max: 100,
            page_bytes_max: 1 << 20,
            page_sets_max: 500,
            spool_bytes_max: 64 << 20,
            total_elements: false,
            collisions: Collisions::default(),
        }
    }
}

/// A mirrored repository, as the views present it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirroredSource {
    /// Its name in the store and in the configuration.
    pub id: String,
    /// The formats that are mirrored; empty for all formats that the source lists.
    pub prefixes: Vec<String>,
    /// The sets that are mirrored; empty for the whole repository.
    pub sets: Vec<String>,
    /// The base URL of the source, if records get an `about` with their provenance. The view of all repositories
    /// needs it.
    pub provenance_base_url: Option<String>,
    /// The rank of its records for [`Collisions::Prefer`]. The highest one is shown.
    pub priority: u64,
}
