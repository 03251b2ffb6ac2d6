//! A quarantine in memory.

use super::{Handle, Shared};
use async_trait::async_trait;
use oaimend_store::{
    Quarantine, QuarantineBatch, QuarantineEntry, QuarantineError, QuarantineQuery, QuarantineSelection,
    QuarantineSize, QuarantineSizes, QuarantineState, RepositoryId, WholeRecords,
};
use std::collections::BTreeMap;

/// The entries of each repository by key, with the raw bytes.
pub(super) type Entries = BTreeMap<String, BTreeMap<String, (QuarantineEntry, Vec<u8>)>>;

impl Handle {
    fn entries<T>(&self, task: impl FnOnce(&mut Entries) -> T) -> Result<T, QuarantineError> {
        self.with(|Shared { entries, .. }| task(entries)).ok_or(QuarantineError::Closed)
    }
}

fn size<'e>(entries: impl Iterator<Item = &'e QuarantineEntry>) -> QuarantineSize {
    entries.fold(QuarantineSize::default(), |size, entry| size.after(None, Some(entry)))
}

#[async_trait]
impl Quarantine for Handle {
    async fn put(&self, batch: QuarantineBatch) -> Result<(), QuarantineError> {
        self.entries(|all| {
            let mut entries = all.get(&batch.repository).cloned().unwrap_or_default();
            let keys: Vec<String> =
                batch.records.iter().map(|record| record.key(&batch.repository)).collect();
            let mut is_new = false;
            for (record, key) in batch.records.iter().zip(&keys) {
                let known = entries.get(key).map(|(entry, _)| entry);
                is_new |= known.is_none();
                let entry = QuarantineEntry::after(known, record, &batch);
                entries.insert(key.clone(), (entry, record.raw.clone()));
            }
            // A record that is there already takes no room.
            if is_new {
                let resolved = entries.iter().filter(|(key, (entry, _))| {
                    entry.state() == QuarantineState::Resolved && !keys.contains(key)
                });
                let resolved = resolved.map(|(key, (entry, _))| (key.clone(), entry.clone())).collect();
                let surplus =
                    size(entries.values().map(|(entry, _)| entry)).surplus(resolved, batch.bytes_max);
                let full = QuarantineError::Full { max: batch.bytes_max };
                for (key, _) in surplus.ok_or(full)? {
                    entries.remove(&key);
                }
            }
            all.insert(batch.repository.clone(), entries);
            Ok(())
        })?
    }

    async fn has_open(&self, repository: RepositoryId<'_>) -> bool {
        let is_open =
            |entry: &QuarantineEntry| entry.state() == QuarantineState::Open && entry.identifier.is_some();
        let found = self.entries(|all| {
            all.get(repository.0).is_some_and(|entries| entries.values().any(|(entry, _)| is_open(entry)))
        });
        found.unwrap_or(false)
    }

    async fn open_among(&self, repository: RepositoryId<'_>, identifiers: Vec<String>) -> Vec<String> {
        let found = self.entries(|all| {
            let entries =
                all.get(repository.0).into_iter().flat_map(BTreeMap::values).map(|(entry, _)| entry);
            let open = entries.filter(|entry| entry.state() == QuarantineState::Open);
            let open: Vec<_> = open.filter_map(QuarantineEntry::plain_identifier).collect();
            identifiers.into_iter().filter(|identifier| open.iter().any(|open| open == identifier)).collect()
        });
        found.unwrap_or_default()
    }

    async fn resolve(&self, whole: WholeRecords) -> Result<u64, QuarantineError> {
        self.entries(|all| {
            let mut count = 0;
            for (entry, _) in all.get_mut(&whole.repository).into_iter().flat_map(BTreeMap::values_mut) {
                if let Some(resolved) = entry.resolved_by(&whole) {
                    *entry = resolved;
                    count += 1;
                }
            }
            count
        })
    }

    async fn list(
        &self,
        repository: RepositoryId<'_>,
        query: QuarantineQuery,
    ) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError> {
        self.entries(|all| {
            let entries = all.get(repository.0).into_iter().flatten();
            let listed = entries.filter(|(key, (entry, _))| query.contains(key, entry)).take(query.count_max);
            listed.map(|(key, (entry, _))| (key.clone(), entry.clone())).collect()
        })
    }

    async fn find(
        &self,
        repository: RepositoryId<'_>,
        key: &str,
    ) -> Result<Option<(QuarantineEntry, Vec<u8>)>, QuarantineError> {
        self.entries(|all| all.get(repository.0)?.get(key).cloned())
    }

    async fn remove(
        &self,
        repository: RepositoryId<'_>,
        which: QuarantineSelection,
    ) -> Result<u64, QuarantineError> {
        self.entries(|all| {
            let Some(entries) = all.get_mut(repository.0) else { return 0 };
            let before = entries.len();
            entries.retain(|key, (entry, _)| !which.contains(key, entry));
            (before - entries.len()) as u64
        })
    }

    async fn sizes(&self) -> Result<Vec<(String, QuarantineSizes)>, QuarantineError> {
        let in_state = |entries: &BTreeMap<String, (QuarantineEntry, Vec<u8>)>, state| {
            size(entries.values().map(|(entry, _)| entry).filter(|entry| entry.state() == state))
        };
        self.entries(|all| {
            let sizes = |(repository, entries): (&String, &BTreeMap<String, (QuarantineEntry, Vec<u8>)>)| {
                let open = in_state(entries, QuarantineState::Open);
                let resolved = in_state(entries, QuarantineState::Resolved);
                (repository.clone(), QuarantineSizes { open, resolved })
            };
            all.iter().map(sizes).collect()
        })
    }

    fn close(&self) {
        self.end();
    }
}
