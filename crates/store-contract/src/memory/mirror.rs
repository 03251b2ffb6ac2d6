//! A store of the mirror in memory. Nothing in it can be damaged.

use super::{Handle, Memory};
use crate::mirror::fixtures::MirrorBackend;
use async_trait::async_trait;
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_store::{
    Catalog, ChosenRecords, CollectionSize, CollectionVersion, Committed, DiskUsage, Document,
    HarvestProgress, Identifier, IdentifierEntry, ListFilter, ListOrder, ListQuery, ListedPage, MirrorError,
    MirrorStore, NewRecord, Occurrences, PageCommit, Position, Prefix, RecordLayout, RecordRepairs,
    RecordStatus, RepositoryId, RepositoryState, StampMarks, StoredRecord, Verification, check_record,
};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct MirrorRows {
    repositories: BTreeMap<String, Repository>,
    reserved_secs: Option<UnixSecs>,
    removals: u64,
    /// The number of collections that began so far.
    begun: u64,
    changes: u64,
    /// The number of the last change of each repository.
    last_changes: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Repository {
    /// By prefix.
    collections: BTreeMap<String, Collection>,
    documents: BTreeMap<Document, Bytes>,
    catalog: Catalog,
    state: RepositoryState,
}

#[derive(Debug, Default)]
struct Collection {
    number: u64,
    progress: HarvestProgress,
    records: BTreeMap<String, Version>,
    occurrences: BTreeMap<String, Occurrences>,
    /// The stamp and the sets of each change, by its sequence.
    changes: Vec<(UnixSecs, Vec<String>)>,
}

/// The current version of a record.
#[derive(Debug)]
struct Version {
    record: NewRecord,
    stamp_secs: UnixSecs,
    sequence: u64,
}

impl Version {
    fn stored(&self, with_bytes: bool) -> StoredRecord {
        let NewRecord { identifier, datestamp_secs, set_specs, status, bytes, .. } = self.record.clone();
        let (stamp_secs, sequence) = (self.stamp_secs, self.sequence);
        let bytes = if with_bytes { bytes } else { Bytes::new() };
        let layout = RecordLayout::of(&bytes);
        let set_specs = set_specs.into();
        StoredRecord { identifier, datestamp_secs, stamp_secs, sequence, set_specs, status, bytes, layout }
    }

    fn position(&self, by: ListOrder) -> Position {
        let secs = match by {
            ListOrder::Stamp => self.stamp_secs,
            ListOrder::Datestamp => self.record.datestamp_secs,
        };
        Position { secs, sequence: self.sequence }
    }
}

/// Whether a change with these sets at this position belongs to a list, deleted or not.
fn is_listed(filter: &ListFilter, set_specs: &[String], at: Position) -> bool {
    let is_in = |set: &String| {
        set_specs.iter().any(|spec| {
            spec.strip_prefix(set.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    };
    filter.set.as_ref().is_none_or(is_in)
        && filter.from_secs.is_none_or(|from| from <= at.secs)
        && filter.until_secs.is_none_or(|until| at.secs <= until)
        && filter.sequences.as_ref().is_none_or(|sequences| sequences.contains(&at.sequence))
}

impl Collection {
    /// The records of a list, in its order.
    fn list(&self, filter: &ListFilter) -> Vec<(Position, &Version)> {
        let versions = self.records.values().map(|version| (version.position(filter.by), version));
        let mut listed: Vec<_> = versions
            .filter(|(at, version)| is_listed(filter, &version.record.set_specs, *at))
            .filter(|(_, version)| !filter.live_only || version.record.status == RecordStatus::Live)
            .collect();
        listed.sort_by_key(|(at, _)| *at);
        listed
    }

    fn last_stamp_secs(&self) -> Option<UnixSecs> {
        self.changes.last().map(|(stamp_secs, _)| *stamp_secs)
    }

    fn store(&mut self, record: NewRecord, stamp_secs: UnixSecs, committed: &mut Committed) {
        let content = |record: &NewRecord| (record.status, record.set_specs.clone(), record.content_hash);
        match self.records.get_mut(&record.identifier) {
            Some(Version { record: known, .. }) if content(known) == content(&record) => {
                let is_new = known.datestamp_secs != record.datestamp_secs;
                *(if is_new { &mut committed.touched } else { &mut committed.unchanged }) += 1;
                (known.datestamp_secs, known.repairs) = (record.datestamp_secs, record.repairs);
            }
            known => {
                committed.added += u64::from(known.is_none());
                match record.status {
                    RecordStatus::Live => committed.stored += 1,
                    RecordStatus::Deleted => committed.deleted += 1,
                }
                let sequence = self.changes.len() as u64;
                self.changes.push((stamp_secs, record.set_specs.clone()));
                self.records.insert(record.identifier.clone(), Version { record, stamp_secs, sequence });
            }
        }
    }

    fn size(&self, prefix: &str) -> CollectionSize {
        let versions = || self.records.values();
        let is_live = |version: &&Version| version.record.status == RecordStatus::Live;
        let records = versions().filter(is_live).count() as u64;
        CollectionSize {
            prefix: prefix.to_owned(),
            records,
            tombstones: self.records.len() as u64 - records,
            disk_bytes: versions().map(|version| version.record.bytes.len() as u64).sum(),
            earliest_stamp_secs: versions().map(|version| version.stamp_secs).min(),
            latest_stamp_secs: self.last_stamp_secs(),
            ..CollectionSize::default()
        }
    }
}

impl MirrorRows {
    fn change(&mut self, repository: &str) {
        self.changes += 1;
        self.last_changes.insert(repository.to_owned(), self.changes);
    }

    fn commit(&mut self, page: PageCommit) -> Result<Committed, MirrorError> {
        self.change(&page.repository);
        page.records.iter().try_for_each(check_record)?;
        let known = self.collection(RepositoryId(&page.repository), Prefix(&page.prefix));
        if known.map_or(0, |known| known.progress.revision) != page.progress.revision {
            return Err(MirrorError::Conflict);
        }
        let stamp_secs = page.stamp_secs;
        match known.and_then(Collection::last_stamp_secs) {
            Some(last_secs) if stamp_secs < last_secs => {
                return Err(MirrorError::StampTooLow { stamp_secs, last_secs });
            }
            _ => {}
        }
        let collections = &mut self.repositories.entry(page.repository).or_default().collections;
        let collection = collections.entry(page.prefix).or_insert_with(|| {
            self.begun += 1;
            Collection { number: self.begun, ..Collection::default() }
        });
        let revision = page.progress.revision + 1;
        collection.progress = HarvestProgress { revision, ..page.progress };
        collection.occurrences.extend(page.occurrences);
        let mut committed = Committed { revision, ..Committed::default() };
        let mut last_of: BTreeMap<String, usize> = BTreeMap::new();
        last_of.extend(page.records.iter().enumerate().map(|(at, record)| (record.identifier.clone(), at)));
        for (at, record) in page.records.into_iter().enumerate() {
            if last_of.get(&record.identifier) == Some(&at) {
                collection.store(record, stamp_secs, &mut committed);
            }
        }
        Ok(committed)
    }

    fn collection(&self, repository: RepositoryId<'_>, prefix: Prefix<'_>) -> Option<&Collection> {
        self.repositories.get(repository.0)?.collections.get(prefix.0)
    }

    fn version(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifier: Identifier<'_>,
    ) -> Option<&Version> {
        self.collection(repository, prefix)?.records.get(identifier.0)
    }
}

impl Handle {
    fn mirror<T>(&self, task: impl FnOnce(&mut MirrorRows) -> T) -> Result<T, MirrorError> {
        self.with(|shared| task(&mut shared.mirror)).ok_or(MirrorError::Closed)
    }

    fn repository<T>(&self, name: &str, task: impl FnOnce(&Repository) -> T) -> Result<T, MirrorError> {
        self.mirror(|mirror| match mirror.repositories.get(name) {
            Some(repository) => task(repository),
            None => task(&Repository::default()),
        })
    }

    fn collection<T>(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        task: impl FnOnce(&Collection) -> T,
    ) -> Result<T, MirrorError> {
        self.mirror(|mirror| match mirror.collection(repository, prefix) {
            Some(collection) => task(collection),
            None => task(&Collection::default()),
        })
    }
}

impl MirrorBackend for Memory {
    fn open(&self) -> Arc<dyn MirrorStore> {
        self.handle()
    }
}

#[async_trait]
impl MirrorStore for Handle {
    async fn commit(&self, page: PageCommit) -> Result<Committed, MirrorError> {
        self.mirror(|mirror| mirror.commit(page))?
    }

    async fn stamp_marks(&self) -> Result<StampMarks, MirrorError> {
        self.mirror(|mirror| {
            let collections = mirror.repositories.values().flat_map(|known| known.collections.values());
            let highest_secs = collections.filter_map(Collection::last_stamp_secs).max();
            StampMarks { highest_secs, reserved_secs: mirror.reserved_secs }
        })
    }

    async fn reserve_stamps(&self, until_secs: UnixSecs) -> Result<(), MirrorError> {
        self.mirror(|mirror| mirror.reserved_secs = mirror.reserved_secs.max(Some(until_secs)))
    }

    async fn removals(&self) -> Result<u64, MirrorError> {
        self.mirror(|mirror| mirror.removals)
    }

    async fn changes(&self) -> Result<u64, MirrorError> {
        self.mirror(|mirror| mirror.changes)
    }

    async fn changed_since(&self, changes: u64) -> Result<Vec<String>, MirrorError> {
        self.mirror(|mirror| {
            let changed = mirror.last_changes.iter().filter(|(_, last)| **last > changes);
            changed.map(|(repository, _)| repository.clone()).collect()
        })
    }

    async fn list(&self, query: ListQuery) -> Result<ListedPage, MirrorError> {
        let ListQuery { filter, after, count_max, bytes_max, with_bytes } = query;
        self.collection(RepositoryId(&filter.repository), Prefix(&filter.prefix), |collection| {
            let listed = collection.list(&filter).into_iter();
            let rest: Vec<_> = listed.filter(|(at, _)| after.is_none_or(|after| after < *at)).collect();
            let (mut page, mut bytes) = (ListedPage::default(), 0);
            for (count, (_, version)) in rest.iter().enumerate() {
                bytes += version.record.bytes.len();
                if count > 0 && (count >= count_max || bytes > bytes_max) {
                    page.next = Some(rest[count - 1].0);
                    break;
                }
                page.records.push(version.stored(with_bytes));
            }
            page
        })
    }

    async fn records_at(&self, chosen: ChosenRecords) -> Result<Vec<Option<StoredRecord>>, MirrorError> {
        let ChosenRecords { repository, prefix, sequences, bytes_max, with_bytes } = chosen;
        self.collection(RepositoryId(&repository), Prefix(&prefix), |collection| {
            let find = |sequence: &u64| collection.records.values().find(|known| known.sequence == *sequence);
            let mut bytes = 0;
            let mut records: Vec<Option<StoredRecord>> = Vec::new();
            for found in sequences.iter().map(find) {
                bytes += found.map_or(0, |found| if with_bytes { found.record.bytes.len() } else { 0 });
                if bytes > bytes_max && records.iter().any(Option::is_some) {
                    break;
                }
                records.push(found.map(|found| found.stored(with_bytes)));
            }
            records
        })
    }

    async fn count(&self, filter: ListFilter) -> Result<u64, MirrorError> {
        let count = |collection: &Collection| collection.list(&filter).len() as u64;
        self.collection(RepositoryId(&filter.repository), Prefix(&filter.prefix), count)
    }

    async fn count_by_sequence(
        &self,
        filter: ListFilter,
        step: NonZeroU64,
    ) -> Result<Vec<(u64, u64)>, MirrorError> {
        let start = |at: Position| at.sequence / step * step.get();
        self.collection(RepositoryId(&filter.repository), Prefix(&filter.prefix), |collection| {
            let mut counts = BTreeMap::new();
            for (sequence, (secs, set_specs)) in (0..).zip(&collection.changes) {
                let at = Position { secs: *secs, sequence };
                if is_listed(&filter, set_specs, at) {
                    counts.entry(start(at)).or_insert(0);
                }
            }
            for (at, _) in collection.list(&filter) {
                *counts.entry(start(at)).or_default() += 1;
            }
            counts.into_iter().collect()
        })
    }

    async fn record(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifier: Identifier<'_>,
    ) -> Result<Option<StoredRecord>, MirrorError> {
        self.mirror(|mirror| Some(mirror.version(repository, prefix, identifier)?.stored(true)))
    }

    async fn repairs(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifier: Identifier<'_>,
    ) -> Result<RecordRepairs, MirrorError> {
        let repairs = |version: &Version| version.record.repairs.clone();
        self.mirror(|mirror| mirror.version(repository, prefix, identifier).map(repairs).unwrap_or_default())
    }

    async fn headers(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<StoredRecord>>, MirrorError> {
        self.collection(repository, prefix, |collection| {
            let header = |identifier| Some(collection.records.get(identifier)?.stored(false));
            identifiers.iter().map(header).collect()
        })
    }

    async fn occurrences(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Occurrences>, MirrorError> {
        self.collection(repository, prefix, |collection| {
            let found = |identifier| collection.occurrences.get(identifier).cloned().unwrap_or_default();
            identifiers.iter().map(found).collect()
        })
    }

    async fn formats_of_items(
        &self,
        repository: RepositoryId<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Vec<(String, RecordStatus)>>, MirrorError> {
        self.repository(repository.0, |repository| {
            let of_item = |identifier: &String| {
                let format = |(prefix, collection): (&String, &Collection)| {
                    Some((prefix.clone(), collection.records.get(identifier)?.record.status))
                };
                repository.collections.iter().filter_map(format).collect()
            };
            identifiers.iter().map(of_item).collect()
        })
    }

    async fn identifiers(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        after: Option<Identifier<'_>>,
        count_max: usize,
    ) -> Result<Vec<IdentifierEntry>, MirrorError> {
        self.collection(repository, prefix, |collection| {
            let records = collection.records.values().map(|version| &version.record);
            let rest =
                records.filter(|record| after.is_none_or(|after| after.0 < record.identifier.as_str()));
            let entry = |record: &NewRecord| {
                let NewRecord { identifier, datestamp_secs, status, .. } = record.clone();
                IdentifierEntry { identifier, datestamp_secs, status }
            };
            rest.take(count_max).map(entry).collect()
        })
    }

    async fn damaged(
        &self,
        _repository: RepositoryId<'_>,
        _prefix: Prefix<'_>,
        _after: Option<Identifier<'_>>,
        _count_max: usize,
    ) -> Result<Vec<String>, MirrorError> {
        self.mirror(|_| Vec::new())
    }

    fn scratch_folder(&self) -> PathBuf {
        std::env::temp_dir()
    }

    async fn repositories(&self) -> Result<Vec<String>, MirrorError> {
        self.mirror(|mirror| mirror.repositories.keys().cloned().collect())
    }

    async fn version(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
    ) -> Result<Option<CollectionVersion>, MirrorError> {
        self.mirror(|mirror| {
            mirror.collection(repository, prefix).map(|collection| CollectionVersion {
                collection: collection.number,
                revision: collection.progress.revision,
                last_stamp_secs: collection.last_stamp_secs().unwrap_or(UnixSecs::MIN),
                next_sequence: collection.changes.len() as u64,
                damaged: 0,
                lost: 0,
            })
        })
    }

    async fn collections(&self, repository: RepositoryId<'_>) -> Result<Vec<CollectionSize>, MirrorError> {
        self.repository(repository.0, |repository| {
            repository.collections.iter().map(|(prefix, collection)| collection.size(prefix)).collect()
        })
    }

    async fn disk_usage(&self) -> Result<DiskUsage, MirrorError> {
        self.mirror(|mirror| {
            let collections = mirror.repositories.values().flat_map(|known| known.collections.values());
            let record_bytes = collections.map(|collection| collection.size("").disk_bytes).sum();
            DiskUsage { record_bytes, index_bytes: 0 }
        })
    }

    async fn sets_in_use(&self, repository: RepositoryId<'_>) -> Result<Vec<String>, MirrorError> {
        self.repository(repository.0, |repository| {
            let versions = repository.collections.values().flat_map(|known| known.records.values());
            let mut sets = BTreeSet::new();
            for spec in versions.flat_map(|version| &version.record.set_specs) {
                sets.extend(spec.match_indices(':').map(|(end, _)| spec[..end].to_owned()));
                sets.insert(spec.clone());
            }
            sets.into_iter().collect()
        })
    }

    async fn catalog(&self, repository: RepositoryId<'_>) -> Result<Catalog, MirrorError> {
        self.repository(repository.0, |repository| repository.catalog.clone())
    }

    async fn save_catalog(&self, repository: RepositoryId<'_>, catalog: Catalog) -> Result<(), MirrorError> {
        self.mirror(|mirror| {
            mirror.change(repository.0);
            mirror.repositories.entry(repository.0.to_owned()).or_default().catalog = catalog;
        })
    }

    async fn document(
        &self,
        repository: RepositoryId<'_>,
        document: Document,
    ) -> Result<Option<Bytes>, MirrorError> {
        self.repository(repository.0, |repository| repository.documents.get(&document).cloned())
    }

    async fn save_document(
        &self,
        repository: RepositoryId<'_>,
        document: Document,
        bytes: Bytes,
    ) -> Result<(), MirrorError> {
        self.mirror(|mirror| {
            mirror.change(repository.0);
            let repository = mirror.repositories.entry(repository.0.to_owned()).or_default();
            repository.documents.insert(document, bytes);
        })
    }

    async fn progress(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
    ) -> Result<HarvestProgress, MirrorError> {
        self.collection(repository, prefix, |collection| collection.progress.clone())
    }

    async fn repository_state(&self, repository: RepositoryId<'_>) -> Result<RepositoryState, MirrorError> {
        self.repository(repository.0, |repository| repository.state.clone())
    }

    async fn save_repository_state(
        &self,
        repository: RepositoryId<'_>,
        state: RepositoryState,
    ) -> Result<u64, MirrorError> {
        self.mirror(|mirror| {
            let known = &mut mirror.repositories.entry(repository.0.to_owned()).or_default().state;
            if known.revision != state.revision {
                return Err(MirrorError::Conflict);
            }
            *known = RepositoryState { revision: state.revision + 1, ..state };
            Ok(known.revision)
        })?
    }

    async fn verify(&self, repository: RepositoryId<'_>) -> Result<Verification, MirrorError> {
        self.repository(repository.0, |repository| {
            let records = repository.collections.values().map(|known| known.records.len() as u64).sum();
            Verification { records, damaged: 0 }
        })
    }

    async fn verify_suspected(&self, _repository: RepositoryId<'_>) -> Result<Verification, MirrorError> {
        self.mirror(|_| Verification::default())
    }

    async fn accept_loss(&self, _repository: RepositoryId<'_>) -> Result<u64, MirrorError> {
        self.mirror(|_| 0)
    }

    async fn compact(&self, _repository: RepositoryId<'_>) -> Result<u64, MirrorError> {
        self.mirror(|_| 0)
    }

    async fn forget(&self, repository: RepositoryId<'_>) -> Result<(), MirrorError> {
        self.mirror(|mirror| {
            mirror.change(repository.0);
            mirror.removals += u64::from(mirror.repositories.remove(repository.0).is_some());
        })
    }

    fn close(&self) {
        self.end();
    }
}
