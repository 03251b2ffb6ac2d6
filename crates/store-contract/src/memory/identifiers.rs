//! The identifiers of mirrored records, in memory.

use super::Handle;
use async_trait::async_trait;
use oaimend_store::{
    IdentifiedCollection, IdentifiedRecord, IdentifierChanges, IdentifierKey, IdentifierPlace,
    IdentifierStore, SaveError,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct IdentifierRows {
    /// The next sequence by the number of the collection.
    collections: BTreeMap<u64, u64>,
    /// By the number of the collection and the key of the OAI identifier.
    records: BTreeMap<(u64, IdentifierKey), IdentifiedRecord>,
}

impl IdentifierRows {
    fn places(
        &self,
        key: IdentifierKey,
        collections: &BTreeSet<u64>,
        (after, count_max): (Option<IdentifierPlace>, usize),
    ) -> Vec<IdentifierPlace> {
        let having = self.records.iter().filter(|((collection, _), record)| {
            collections.contains(collection) && (record.identifier == key || record.named.contains(&key))
        });
        let place = |((collection, _), record): (&(u64, IdentifierKey), &IdentifiedRecord)| IdentifierPlace {
            collection: *collection,
            sequence: record.sequence,
        };
        let is_later = |place: &IdentifierPlace| Some(*place) > after;
        let mut places: Vec<IdentifierPlace> = having.map(place).filter(is_later).collect();
        places.sort_unstable();
        places.truncate(count_max);
        places
    }
}

impl Handle {
    fn identifiers<T>(&self, task: impl FnOnce(&mut IdentifierRows) -> T) -> Result<T, SaveError> {
        self.with(|shared| task(&mut shared.identifiers)).ok_or(SaveError::Closed)
    }
}

#[async_trait]
impl IdentifierStore for Handle {
    async fn collections(&self) -> Result<Vec<IdentifiedCollection>, SaveError> {
        let collection =
            |(&number, &next_sequence): (&u64, &u64)| IdentifiedCollection { number, next_sequence };
        self.identifiers(|identifiers| identifiers.collections.iter().map(collection).collect())
    }

    async fn follow(&self, changes: IdentifierChanges) -> Result<(), SaveError> {
        self.identifiers(|identifiers| {
            let IdentifierChanges { collection, records } = changes;
            for record in records {
                identifiers.records.insert((collection.number, record.identifier), record);
            }
            identifiers.collections.insert(collection.number, collection.next_sequence);
        })
    }

    async fn find(
        &self,
        keys: Vec<IdentifierKey>,
        collections: Arc<BTreeSet<u64>>,
        after: Option<IdentifierPlace>,
        count_max: usize,
    ) -> Result<Vec<Vec<IdentifierPlace>>, SaveError> {
        self.identifiers(|identifiers| {
            let range = (after, count_max);
            keys.into_iter().map(|key| identifiers.places(key, &collections, range)).collect()
        })
    }

    async fn remove(&self, collection: u64, count_max: usize) -> Result<bool, SaveError> {
        self.identifiers(|identifiers| {
            let of_collection = identifiers.records.keys().filter(|(number, _)| *number == collection);
            let removed: Vec<_> = of_collection.take(count_max).copied().collect();
            removed.iter().for_each(|key| drop(identifiers.records.remove(key)));
            let has_more = identifiers.records.keys().any(|(number, _)| *number == collection);
            if !has_more {
                identifiers.collections.remove(&collection);
            }
            has_more
        })
    }

    fn close(&self) {
        self.end();
    }
}
