//! How far the index has followed the mirror. It is stored with each commit of the index.

use super::schema::FORMAT;
use oaimend_oai::UnixSecs;
use oaimend_store::Position;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The place in the mirror up to which records are indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexPosition {
    format: u32,
    /// Whether the whole mirror was indexed once.
    pub(super) is_built: bool,
    /// All commits with stamps up to this one are indexed.
    pub(super) complete_until_secs: Option<i64>,
    /// The collections, by repository and prefix.
    pub(super) collections: BTreeMap<String, BTreeMap<String, CollectionPosition>>,
    /// The indexed formats of each repository, the one first whose record is shown for an item.
    pub(super) formats: BTreeMap<String, Vec<String>>,
}

/// The place in a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CollectionPosition {
    /// The number of the collection.
    pub(super) number: u64,
    /// Records with lower sequences were read for the first time, so no older version of them is in the index.
    pub(super) first_until: u64,
    /// The sequence from which on nothing is indexed.
    pub(super) next_sequence: u64,
    /// The stamp and the sequence of the last indexed record.
    pub(super) last: Option<(i64, u64)>,
}

impl IndexPosition {
    pub(super) fn start() -> Self {
        Self { format: FORMAT, ..Self::default() }
    }

    /// The position in the payload of a commit. `None` if it is of another format.
    pub(super) fn read(payload: &str) -> Option<Self> {
        serde_json::from_str(payload).ok().filter(|position: &Self| position.format == FORMAT)
    }

    pub(super) fn payload(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn complete_until_secs(&self) -> Option<UnixSecs> {
        self.complete_until_secs.map(UnixSecs)
    }

    pub(super) fn of(&self, repository: &str, prefix: &str) -> Option<&CollectionPosition> {
        self.collections.get(repository)?.get(prefix)
    }

    pub(super) fn remove(&mut self, repository: &str, prefix: &str) {
        if let Some(collections) = self.collections.get_mut(repository) {
            collections.remove(prefix);
        }
    }
}

impl CollectionPosition {
    pub(super) fn after(&self) -> Option<Position> {
        self.last.map(|(secs, sequence)| Position { secs: UnixSecs(secs), sequence })
    }
}
