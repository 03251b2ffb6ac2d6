//! The versions of collections in memory: a list page in memory then needs no read of the index.
//!
//! Invariant: a known version is that of the index, or a commit that changes it has not returned yet.

use oaimend_store::mirror::CollectionVersion;
use oaimend_store::{Prefix, RepositoryId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The versions that were read since the last change of their collections.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The number of changes so far.
    changes: u64,
    /// The number of the last change of each repository.
    last_changes: BTreeMap<String, u64>,
    /// By repository and prefix.
    versions: HashMap<(String, String), Option<CollectionVersion>>,
}

/// The state before a version is read from the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeRead(u64);

impl Versions {
    /// A known version, or the state before it is read.
    pub(super) fn find(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
    ) -> Result<Option<CollectionVersion>, BeforeRead> {
        let known = self.known();
        let key = (repository.0.to_owned(), prefix.0.to_owned());
        known.versions.get(&key).copied().ok_or(BeforeRead(known.changes))
    }

    /// Keeps a version that was read, unless a collection has changed meanwhile.
    pub(super) fn keep(
        &self,
        BeforeRead(changes): BeforeRead,
        key: (String, String),
        version: Option<CollectionVersion>,
    ) {
        let mut known = self.known();
        if known.changes == changes {
            known.versions.insert(key, version);
        }
    }

    /// The number of changes so far, those of catalogs and documents included.
    pub(super) fn changes(&self) -> u64 {
        self.known().changes
    }

    /// The repositories with a change after this one.
    pub(super) fn changed_since(&self, changes: u64) -> Vec<String> {
        let known = self.known();
        let changed = known.last_changes.iter().filter(|(_, last)| **last > changes);
        changed.map(|(repository, _)| repository.clone()).collect()
    }

    /// A collection has changed, or anything of a repository without a prefix.
    pub(super) fn change(&self, repository: RepositoryId<'_>, prefix: Option<&str>) {
        let mut known = self.known();
        known.changes += 1;
        let changes = known.changes;
        match known.last_changes.get_mut(repository.0) {
            Some(last) => *last = changes,
            None => drop(known.last_changes.insert(repository.0.to_owned(), changes)),
        }
        let is_other =
            |key: &(String, String)| key.0 != repository.0 || prefix.is_some_and(|prefix| prefix != key.1);
        known.versions.retain(|key, _| is_other(key));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::UnixSecs;

    fn version(revision: u64) -> Option<CollectionVersion> {
        Some(CollectionVersion {
            collection: 1,
            revision,
            last_stamp_secs: UnixSecs(0),
            next_sequence: 0,
            damaged: 0,
            lost: 0,
        })
    }

    #[test]
    fn version_that_was_read_before_a_change_is_not_kept() {
        let versions = Versions::default();
        let key = |prefix: &str| ("x".to_owned(), prefix.to_owned());
        let before = versions.find(RepositoryId("x"), Prefix("a")).expect_err("nothing is known");
        versions.change(RepositoryId("x"), Some("a"));
        versions.keep(before, key("a"), version(1));
        let before =
            versions.find(RepositoryId("x"), Prefix("a")).expect_err("the version is older than the change");
        versions.keep(before, key("a"), version(2));
        versions.keep(before, key("b"), version(3));
        assert_eq!(versions.find(RepositoryId("x"), Prefix("a")).ok(), Some(version(2)));
        versions.change(RepositoryId("x"), Some("a"));
        assert!(versions.find(RepositoryId("x"), Prefix("a")).is_err());
        assert_eq!(versions.find(RepositoryId("x"), Prefix("b")).ok(), Some(version(3)));
        versions.change(RepositoryId("x"), None);
        assert!(versions.find(RepositoryId("x"), Prefix("b")).is_err());
    }
}
