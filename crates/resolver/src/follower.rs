//! Keeps the table of identifiers at the last commit of the mirror.

use crate::record_identifiers::{ReadRecord, keys_of};
use crate::sources::{ResolvedSource, ResolvedSources};
use oaimend_repository::{Failure, Reason};
use oaimend_rules::CollectionState;
use oaimend_store::{
    CollectionVersion, FullTextStore, IdentifiedCollection, IdentifiedRecord, IdentifierChanges,
    IdentifierStore, ListFilter, ListQuery, MirrorError, MirrorStore, Position, Prefix, RepositoryId,
    SaveError, StoredRecord,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Number of keys after which a transaction stores them. A transaction writes most pages of a large table once, so few long
/// ones build it faster than many short ones. The keys need about 8 MiB.
const COMMIT_KEYS_MAX: usize = 200_000;
/// Maximum number of records that are read at once.
const PAGE_RECORDS_MAX: usize = 500;
/// Bytes of records that are in memory at once. A single record may exceed it.
const PAGE_BYTES_MAX: usize = 8 << 20;
/// Maximum number of records of former collections that one transaction removes.
const REMOVED_MAX: usize = 5_000;

/// The stores, and what is known of them.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) mirror: Arc<dyn MirrorStore>,
    pub(crate) table: Arc<dyn IdentifierStore>,
    pub(crate) full_texts: Arc<dyn FullTextStore>,
}

/// The state of the table between two queries.
#[derive(Debug)]
pub(crate) struct Followed {
    sources: Arc<ResolvedSources>,
    /// All earlier changes of the mirror are of repositories that were examined, or wait.
    changes: u64,
    /// The repositories to examine.
    waiting: BTreeSet<String>,
    /// The next sequence of each collection in the table.
    table: BTreeMap<u64, u64>,
    /// The collections whose records are found.
    current: CurrentCollections,
    /// The repositories that may have further records: a format was never harvested completely, or records are lost to
    /// damage until they are harvested again.
    incomplete: BTreeSet<String>,
}

/// The collections whose records are found, by their numbers.
pub(crate) type CurrentCollections = BTreeMap<u64, CurrentCollection>;

/// A collection whose records are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CurrentCollection {
    pub(crate) repository: String,
    pub(crate) prefix: String,
    /// Whether it was harvested completely at least once, so that the mirror serves it.
    pub(crate) is_served: bool,
}

/// A state in which the table knows all commits.
#[derive(Debug)]
pub(crate) struct Caught {
    pub(crate) sources: Arc<ResolvedSources>,
    /// The changes of the mirror before they were followed.
    pub(crate) changes: u64,
    pub(crate) collections: CurrentCollections,
    /// The collections that the mirror serves.
    pub(crate) served: Arc<BTreeSet<u64>>,
    /// Those of them whose records people see.
    pub(crate) shown: Arc<BTreeSet<u64>>,
    /// The repositories that may have further records.
    pub(crate) incomplete: BTreeSet<String>,
}

impl Caught {
    /// The repositories that may have further records, for people without the hidden ones.
    pub(crate) fn incomplete(&self, is_for_people: bool) -> Vec<String> {
        let is_shown = |repository: &&String| !(is_for_people && self.sources.is_hidden(repository));
        self.incomplete.iter().filter(is_shown).cloned().collect()
    }
}

impl Followed {
    /// The state if no repository waits.
    pub(crate) fn caught(&self) -> Option<Caught> {
        if !self.waiting.is_empty() {
            return None;
        }
        let hidden: BTreeSet<&str> =
            self.sources.iter().filter(|source| source.is_hidden).map(|source| source.id.as_str()).collect();
        let served = || self.current.iter().filter(|(_, collection)| collection.is_served);
        let shown = served().filter(|(_, collection)| !hidden.contains(collection.repository.as_str()));
        Some(Caught {
            sources: Arc::clone(&self.sources),
            changes: self.changes,
            shown: Arc::new(shown.map(|(number, _)| *number).collect()),
            served: Arc::new(served().map(|(number, _)| *number).collect()),
            collections: self.current.clone(),
            incomplete: self.incomplete.clone(),
        })
    }

    /// The collections in the table whose records are not found any more.
    fn former(&self) -> Option<u64> {
        self.table.keys().copied().find(|number| !self.current.contains_key(number))
    }
}

impl Follower {
    /// Stores the identifiers of records that the table does not know, at most about `records_max`. Returns whether it then
    /// knows all commits that the mirror has at the time of the call.
    ///
    /// # Errors
    ///
    /// The mirror cannot be read, a record is damaged, or the table cannot be stored. The next call continues.
    pub(crate) async fn follow(
        &self,
        sources: &Arc<ResolvedSources>,
        state: &mut Option<Followed>,
        records_max: usize,
    ) -> Result<bool, Failure> {
        let changes = self.mirror.changes().await?;
        let followed = match state {
            Some(followed) if Arc::ptr_eq(&followed.sources, sources) => {
                if followed.changes != changes {
                    followed.waiting.extend(self.mirror.changed_since(followed.changes).await?);
                }
                followed
            }
            _ => state.insert(self.begin(sources).await?),
        };
        followed.changes = changes;
        let mut left = records_max;
        // Not in one loop over the set: a failure leaves the repository in it.
        while let Some(repository) = followed.waiting.first().cloned() {
            let source = sources.iter().find(|source| source.id == repository);
            if !self.examine(source, &repository, followed, &mut left).await? {
                return Ok(false);
            }
            followed.waiting.remove(&repository);
        }
        Ok(true)
    }

    /// Removes records of collections that were replaced or forgotten, or whose repository is not mirrored any more.
    /// Returns whether there are more.
    ///
    /// # Errors
    ///
    /// The table cannot be stored.
    pub(crate) async fn remove_former(&self, followed: &mut Followed) -> Result<bool, Failure> {
        let former = if followed.waiting.is_empty() { followed.former() } else { None };
        let Some(former) = former else { return Ok(false) };
        if !self.table.remove(former, REMOVED_MAX).await.map_err(failed)? {
            followed.table.remove(&former);
        }
        Ok(true)
    }

    /// The state of a table that waits for all repositories.
    async fn begin(&self, sources: &Arc<ResolvedSources>) -> Result<Followed, Failure> {
        let stored = self.table.collections().await.map_err(failed)?;
        Ok(Followed {
            sources: Arc::clone(sources),
            changes: 0,
            waiting: sources.iter().map(|source| source.id.clone()).collect(),
            table: stored.into_iter().map(|known| (known.number, known.next_sequence)).collect(),
            current: CurrentCollections::new(),
            incomplete: BTreeSet::new(),
        })
    }

    /// Follows the collections of a repository. `source` is `None` if its records are not found.
    async fn examine(
        &self,
        source: Option<&ResolvedSource>,
        repository: &str,
        followed: &mut Followed,
        left: &mut usize,
    ) -> Result<bool, Failure> {
        let mut current = CurrentCollections::new();
        let prefixes = match source {
            Some(source) => self.prefixes(source).await?,
            None => Vec::new(),
        };
        let mut is_incomplete = source.is_some() && prefixes.is_empty();
        for prefix in prefixes {
            let version = self.mirror.version(RepositoryId(repository), Prefix(&prefix)).await?;
            let progress = self.mirror.progress(RepositoryId(repository), Prefix(&prefix)).await?;
            let is_served = progress.last_complete.is_some();
            is_incomplete |= !is_served || version.is_some_and(|version| version.damaged > 0);
            let Some(version) = version else { continue };
            if !self.follow_collection(repository, &prefix, &version, (followed, left)).await? {
                return Ok(false);
            }
            let repository = repository.to_owned();
            current.insert(version.collection, CurrentCollection { repository, prefix, is_served });
        }
        if is_incomplete {
            followed.incomplete.insert(repository.to_owned());
        } else {
            followed.incomplete.remove(repository);
        }
        followed.current.retain(|_, known| known.repository != repository);
        followed.current.extend(current);
        Ok(true)
    }

    /// The formats of a repository that the mirror serves or is going to serve.
    pub(crate) async fn prefixes(&self, source: &ResolvedSource) -> Result<Vec<String>, Failure> {
        if !source.prefixes.is_empty() {
            return Ok(source.prefixes.clone());
        }
        let formats = self.mirror.catalog(RepositoryId(&source.id)).await?.formats;
        Ok(formats.into_iter().map(|format| format.prefix).collect())
    }

    /// Stores the identifiers of the records of a collection that the table does not know.
    async fn follow_collection(
        &self,
        repository: &str,
        prefix: &str,
        version: &CollectionVersion,
        (followed, left): (&mut Followed, &mut usize),
    ) -> Result<bool, Failure> {
        let number = version.collection;
        let mut next_sequence = followed.table.get(&number).copied().unwrap_or_default();
        let is_replaced = CollectionState { number, next_sequence }
            .is_replaced(Some(CollectionState { number, next_sequence: version.next_sequence }));
        if is_replaced {
            // The mirror was restored from a backup. Its records replace the stored ones.
            next_sequence = 0;
        }
        let (mut records, mut keys) = (Vec::new(), 0);
        while next_sequence < version.next_sequence {
            if *left == 0 {
                break;
            }
            let filter = ListFilter {
                repository: repository.to_owned(),
                prefix: prefix.to_owned(),
                sequences: Some(next_sequence..u64::MAX),
                ..ListFilter::default()
            };
            let (found, next) = self.page(filter, PAGE_RECORDS_MAX.min(*left)).await?;
            *left = left.saturating_sub(found.len().max(1));
            next_sequence = match (next, found.last()) {
                (Some(next), _) => next.sequence + 1,
                (None, last) => version.next_sequence.max(last.map_or(0, |last| last.sequence + 1)),
            };
            // Also of a repository that has none any more: they count again if its mapping turns them on.
            let found = keys_of_all(self.with_guesses(repository, found).await?).await?;
            keys += found.iter().map(|record| 1 + record.named.len()).sum::<usize>();
            records.extend(found);
            if keys >= COMMIT_KEYS_MAX {
                self.save(followed, number, next_sequence, std::mem::take(&mut records)).await?;
                keys = 0;
            }
        }
        if !records.is_empty() || followed.table.get(&number) != Some(&next_sequence) {
            self.save(followed, number, next_sequence, records).await?;
        }
        Ok(next_sequence >= version.next_sequence)
    }

    async fn save(
        &self,
        followed: &mut Followed,
        number: u64,
        next_sequence: u64,
        records: Vec<IdentifiedRecord>,
    ) -> Result<(), Failure> {
        let collection = IdentifiedCollection { number, next_sequence };
        self.table.follow(IdentifierChanges { collection, records }).await.map_err(failed)?;
        followed.table.insert(number, next_sequence);
        Ok(())
    }

    /// The next changes of a collection, and where those after them begin.
    async fn page(
        &self,
        filter: ListFilter,
        count_max: usize,
    ) -> Result<(Vec<StoredRecord>, Option<Position>), Failure> {
        let query = ListQuery { filter, after: None, count_max, bytes_max: PAGE_BYTES_MAX, with_bytes: true };
        let page = self.mirror.list(query).await?;
        // The damaged record could have any identifier.
        if page.damaged > 0 { Err(MirrorError::Damaged.into()) } else { Ok((page.records, page.next)) }
    }
}

/// The keys of records, which are read on a thread for blocking work.
pub(crate) async fn keys_of_all(records: Vec<ReadRecord>) -> Result<Vec<IdentifiedRecord>, Failure> {
    let read = tokio::task::spawn_blocking(move || records.iter().map(keys_of).collect());
    read.await.map_err(|error| MirrorError::Stopped(error.to_string()).into())
}

/// The failure of the table of identifiers.
pub(crate) fn failed(error: SaveError) -> Failure {
    let reason = if matches!(error, SaveError::Closed) { Reason::TakenOver } else { Reason::Mirror };
    Failure::new(reason, format!("the identifiers of the mirror cannot be read or stored: {error}"))
}
