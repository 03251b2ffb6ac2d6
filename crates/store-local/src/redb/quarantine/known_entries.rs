//! The facts about quarantined records that are in memory, so that pages of repositories without open entries cost
//! nothing.

use oaimend_store::RepositoryId;
use oaimend_store::quarantine::{KEY_BYTES, QuarantineEntry, QuarantineSize, QuarantineState};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{PoisonError, RwLock};

/// Open entries of one repository in memory. The default limit on its bytes allows 58,000 entries. An entry of 32
/// bytes makes 3 MiB.
pub(super) const OPEN_ENTRIES_MAX: usize = 100_000;

/// The open entries and the resolved bytes of each repository.
#[derive(Debug, Default)]
pub(super) struct KnownEntries {
    hasher: RandomState,
    repositories: RwLock<HashMap<String, KnownRepository>>,
}

#[derive(Debug, Default)]
struct KnownRepository {
    /// The hashes of their identifiers, and their keys.
    open: BTreeSet<(u64, [u8; KEY_BYTES])>,
    /// Open entries with an identifier were left out, because there were too many.
    is_incomplete: bool,
    resolved: QuarantineSize,
}

/// A change of an entry. `None`: there is none.
#[derive(Debug)]
pub(super) struct EntryChange {
    pub(super) key: String,
    pub(super) before: Option<QuarantineEntry>,
    pub(super) after: Option<QuarantineEntry>,
}

impl KnownEntries {
    /// Notes changes that are on disk.
    pub(super) fn apply(&self, repository: RepositoryId<'_>, changes: &[EntryChange]) {
        let mut repositories = self.repositories.write().unwrap_or_else(PoisonError::into_inner);
        let known = repositories.entry(repository.0.to_owned()).or_default();
        for EntryChange { key, before, after } in changes {
            if let Some(before) = before {
                known.forget(self.open_entry(key, before), before);
            }
            if let Some(after) = after {
                known.note(self.open_entry(key, after), after);
            }
        }
    }

    /// Whether a repository has open entries with an identifier.
    pub(super) fn has_open(&self, repository: RepositoryId<'_>) -> bool {
        let repositories = self.repositories.read().unwrap_or_else(PoisonError::into_inner);
        repositories.get(repository.0).is_some_and(|known| !known.open.is_empty())
    }

    /// Whether an open entry in memory may have this identifier.
    pub(super) fn may_be_open(&self, repository: RepositoryId<'_>, identifier: &str) -> bool {
        let repositories = self.repositories.read().unwrap_or_else(PoisonError::into_inner);
        let known = repositories.get(repository.0).filter(|known| !known.open.is_empty());
        known.is_some_and(|known| known.with_hash(self.hash(identifier)).next().is_some())
    }

    /// The keys of the open entries that may have one of these identifiers; `None` if not all entries are in memory.
    pub(super) fn keys_of(
        &self,
        repository: RepositoryId<'_>,
        identifiers: &[String],
    ) -> Option<Vec<String>> {
        let repositories = self.repositories.read().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = repositories.get(repository.0) else { return Some(Vec::new()) };
        let keys = identifiers.iter().flat_map(|identifier| known.with_hash(self.hash(identifier)));
        (!known.is_incomplete).then(|| keys.map(hex::encode).collect())
    }

    /// The size of the resolved entries of a repository.
    pub(super) fn resolved(&self, repository: RepositoryId<'_>) -> QuarantineSize {
        let repositories = self.repositories.read().unwrap_or_else(PoisonError::into_inner);
        repositories.get(repository.0).map(|known| known.resolved).unwrap_or_default()
    }

    fn hash(&self, identifier: &str) -> u64 {
        self.hasher.hash_one(identifier)
    }

    /// The row of an open entry; `None` for one without an identifier, which nothing resolves.
    fn open_entry(&self, key: &str, entry: &QuarantineEntry) -> Option<(u64, [u8; KEY_BYTES])> {
        let mut bytes = [0; KEY_BYTES];
        hex::decode_to_slice(key, &mut bytes).ok()?;
        Some((self.hash(&entry.plain_identifier()?), bytes))
    }
}

impl KnownRepository {
    fn note(&mut self, row: Option<(u64, [u8; KEY_BYTES])>, entry: &QuarantineEntry) {
        match (entry.state(), row) {
            (QuarantineState::Resolved, _) => {
                self.resolved.records += 1;
                self.resolved.bytes += entry.disk_bytes();
            }
            (QuarantineState::Open, Some(row)) if self.open.len() < OPEN_ENTRIES_MAX => {
                self.open.insert(row);
            }
            (QuarantineState::Open, Some(_)) => self.is_incomplete = true,
            (QuarantineState::Open, None) => {}
        }
    }

    fn forget(&mut self, row: Option<(u64, [u8; KEY_BYTES])>, entry: &QuarantineEntry) {
        match (entry.state(), row) {
            (QuarantineState::Resolved, _) => {
                self.resolved.records = self.resolved.records.saturating_sub(1);
                self.resolved.bytes = self.resolved.bytes.saturating_sub(entry.disk_bytes());
            }
            (QuarantineState::Open, Some(row)) => {
                self.open.remove(&row);
            }
            (QuarantineState::Open, None) => {}
        }
    }

    fn with_hash(&self, hash: u64) -> impl Iterator<Item = [u8; KEY_BYTES]> {
        self.open.range((hash, [0; KEY_BYTES])..=(hash, [u8::MAX; KEY_BYTES])).map(|(_, key)| *key)
    }
}
