//! The identifiers of mirrored records, as a trait: which records have an identifier, and which records name it.
//!
//! The OAI identifier of a record and the identifiers in its metadata, such as a DOI, are keys of one table, so a lookup
//! costs the same for any number of repositories. The table contains hashes. Two texts may have the same key by chance, so
//! a caller reads each found record and checks that it has the identifier.
//!
//! A record is known by its collection and its sequence. A record that changes gets another sequence, and all its former
//! keys are removed with it.
//!
//! All operations can be expressed in SQL: each is one transaction over a table of collections, one of records, and one of
//! places with an index by key.

use super::save_error::SaveError;
use async_trait::async_trait;
use blake2::digest::consts::U16;
use blake2::{Blake2s, Digest};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The store of the identifiers. It is empty at first.
#[async_trait]
pub trait IdentifierStore: std::fmt::Debug + Send + Sync {
    /// The collections whose records are known, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn collections(&self) -> Result<Vec<IdentifiedCollection>, SaveError>;

    /// Stores records in place of their former versions, and the place in the mirror up to which the collection is known,
    /// both or none.
    ///
    /// # Errors
    ///
    /// Nothing is stored.
    async fn follow(&self, changes: IdentifierChanges) -> Result<(), SaveError>;

    /// The records of these collections that may have each of these identifiers, in the order of collections and sequences:
    /// at most `count_max` of each, from the first one after the place `after`.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn find(
        &self,
        keys: Vec<IdentifierKey>,
        collections: Arc<BTreeSet<u64>>,
        after: Option<IdentifierPlace>,
        count_max: usize,
    ) -> Result<Vec<Vec<IdentifierPlace>>, SaveError>;

    /// Removes records of a collection, at most `count_max`, and the collection with the last one. Returns whether there
    /// are more.
    ///
    /// # Errors
    ///
    /// Nothing is removed.
    async fn remove(&self, collection: u64, count_max: usize) -> Result<bool, SaveError>;

    /// Closes it; later calls fail with [`SaveError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// The length of a key, in bytes.
const KEY_BYTES: usize = 16;

/// The key of an identifier: BLAKE2s with 128 bits of the kind and the normalised text. Nobody can make a second text with
/// the key of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentifierKey([u8; KEY_BYTES]);

impl IdentifierKey {
    /// The key of a text. Equal texts of different kinds, such as `oai` and `doi`, have different keys.
    pub fn new(kind: &str, text: &str) -> Self {
        let mut hasher = Blake2s::<U16>::new();
        hasher.update(kind.as_bytes());
        hasher.update([0]);
        hasher.update(text.as_bytes());
        Self(hasher.finalize().into())
    }

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

/// A collection whose records are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentifiedCollection {
    /// The number of the collection in the mirror, below 2^32.
    pub number: u64,
    /// All changes with lower sequences are known.
    pub next_sequence: u64,
}

/// Changes of the records of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentifierChanges {
    /// The collection, after the changes.
    pub collection: IdentifiedCollection,
    /// The current versions of changed records, in the order of their sequences.
    pub records: Vec<IdentifiedRecord>,
}

/// The identifiers of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifiedRecord {
    /// The key of its OAI identifier.
    pub identifier: IdentifierKey,
    /// Its sequence in the collection, below 2^48.
    pub sequence: u64,
    /// The keys of the identifiers in its metadata, without repetition. A deleted record has none.
    pub named: Vec<IdentifierKey>,
}

/// A record that may have an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdentifierPlace {
    /// The number of its collection in the mirror.
    pub collection: u64,
    /// Its sequence.
    pub sequence: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_a_part_of_the_key() {
        let keys = [("oai", "a"), ("doi", "a"), ("oa", "ia"), ("oai", "b")];
        let keys: std::collections::BTreeSet<_> =
            keys.map(|(kind, text)| IdentifierKey::new(kind, text)).into();
        assert_eq!(keys.len(), 4);
        // Keys are on disk, so they must not change.
        let hash = hex::encode(IdentifierKey::new("doi", "10.1000/182").bytes());
        assert_eq!(hash, "25833c0ac75099caa5c7544e968a55b2");
    }
}
