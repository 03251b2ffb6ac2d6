//! Everything that exists once for each repository or collection: progress, state, catalog, documents, sizes.

use super::commit::ensure_repository;
use super::index::IndexError;
use super::keys::identifier_range;
use super::read::{earliest_stamp, identifier_of};
use super::shared::{Shared, collections_of, find_collection, find_repository};
use super::tables::{
    CATALOGS, COLLECTIONS, CollectionRow, DAMAGED, DOCUMENTS, LOST, META, PROGRESS, REMOVALS, REPOSITORIES,
    RESERVED, SEGMENTS, SETS, STATES, SegmentRow, from_json, to_json,
};
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_store::harvest_state::{Catalog, HarvestProgress, RepositoryState};
use oaimend_store::mirror::{
    CollectionSize, CollectionVersion, DiskUsage, Document, MirrorError, StampMarks,
};
use oaimend_store::{Identifier, Prefix, RepositoryId};
use redb::{ReadableTable, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::os::unix::fs::MetadataExt as _;

/// Maximum number of bytes of a document or a catalog.
const DOCUMENT_BYTES_MAX: usize = 256 << 20;
/// The unit of `st_blocks`, in bytes.
const DISK_BLOCK_BYTES: u64 = 512;

pub(super) fn stamp_marks(shared: &Shared) -> Result<StampMarks, IndexError> {
    shared.index.read(|reading| {
        let mut highest_secs = None;
        for row in reading.open_table(COLLECTIONS)?.iter()? {
            let row: CollectionRow = from_json(row?.1.value())?;
            highest_secs = highest_secs.max(row.last_stamp_secs);
        }
        let reserved_secs =
            reading.open_table(META)?.get(RESERVED)?.map(|reserved| UnixSecs(reserved.value()));
        Ok(StampMarks { highest_secs, reserved_secs })
    })
}

pub(super) fn removals(shared: &Shared) -> Result<u64, IndexError> {
    shared.index.read(|reading| {
        let removals = reading.open_table(META)?.get(REMOVALS)?.map(|removals| removals.value());
        Ok(removals.map_or(0, i64::unsigned_abs))
    })
}

pub(super) fn reserve_stamps(shared: &Shared, until_secs: UnixSecs) -> Result<(), IndexError> {
    let _writer = shared.writer();
    shared.index.write(|writing| {
        let mut meta = writing.open_table(META)?;
        let reserved = meta.get(RESERVED)?.map(|reserved| reserved.value());
        meta.insert(RESERVED, reserved.map_or(until_secs.0, |reserved| reserved.max(until_secs.0)))?;
        Ok(())
    })
}

pub(super) fn progress(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
) -> Result<HarvestProgress, IndexError> {
    shared.index.read(|reading| {
        let Some(number) = find_repository(reading, repository.0)? else {
            return Ok(HarvestProgress::default());
        };
        let json = reading.open_table(PROGRESS)?.get((number, prefix.0))?;
        Ok(json.map(|json| from_json(json.value())).transpose()?.unwrap_or_default())
    })
}

pub(super) fn repository_state(
    shared: &Shared,
    repository: RepositoryId<'_>,
) -> Result<RepositoryState, IndexError> {
    row_of_repository(shared, STATES, repository)
}

pub(super) fn save_repository_state(
    shared: &Shared,
    repository: RepositoryId<'_>,
    state: &RepositoryState,
) -> Result<u64, IndexError> {
    let _writer = shared.writer();
    shared.index.write(|writing| {
        let number = ensure_repository(writing, repository.0)?.number;
        let mut states = writing.open_table(STATES)?;
        let stored =
            states.get(number)?.map(|json| from_json::<RepositoryState>(json.value())).transpose()?;
        if stored.map_or(0, |stored| stored.revision) != state.revision {
            return Err(MirrorError::Conflict.into());
        }
        let revision = state.revision + 1;
        let json = to_json(&RepositoryState { revision, ..state.clone() })?;
        states.insert(number, json.as_slice())?;
        Ok(revision)
    })
}

pub(super) fn catalog(shared: &Shared, repository: RepositoryId<'_>) -> Result<Catalog, IndexError> {
    row_of_repository(shared, CATALOGS, repository)
}

pub(super) fn save_catalog(
    shared: &Shared,
    repository: RepositoryId<'_>,
    catalog: &Catalog,
) -> Result<(), IndexError> {
    let saved = save_row(shared, repository, CATALOGS, catalog);
    shared.versions.change(repository, None);
    saved
}

fn row_of_repository<T: DeserializeOwned + Default>(
    shared: &Shared,
    table: TableDefinition<'static, u32, &'static [u8]>,
    repository: RepositoryId<'_>,
) -> Result<T, IndexError> {
    shared.index.read(|reading| {
        let Some(number) = find_repository(reading, repository.0)? else { return Ok(T::default()) };
        let json = reading.open_table(table)?.get(number)?;
        Ok(json.map(|json| from_json(json.value())).transpose()?.unwrap_or_default())
    })
}

fn save_row(
    shared: &Shared,
    repository: RepositoryId<'_>,
    table: TableDefinition<'static, u32, &'static [u8]>,
    row: &impl Serialize,
) -> Result<(), IndexError> {
    let json = to_json(row)?;
    check_size(json.len())?;
    let _writer = shared.writer();
    shared.index.write(|writing| {
        let number = ensure_repository(writing, repository.0)?.number;
        writing.open_table(table)?.insert(number, json.as_slice())?;
        Ok(())
    })
}

fn check_size(bytes: usize) -> Result<(), IndexError> {
    let max = DOCUMENT_BYTES_MAX;
    if bytes > max { Err(MirrorError::TooLarge { what: "a document", bytes, max }.into()) } else { Ok(()) }
}

fn document_key(document: Document) -> u8 {
    match document {
        Document::Identify => 1,
        Document::ListMetadataFormats => 2,
        Document::ListSets => 3,
    }
}

pub(super) fn document(
    shared: &Shared,
    repository: RepositoryId<'_>,
    document: Document,
) -> Result<Option<Bytes>, IndexError> {
    shared.index.read(|reading| {
        let Some(number) = find_repository(reading, repository.0)? else { return Ok(None) };
        let bytes = reading.open_table(DOCUMENTS)?.get((number, document_key(document)))?;
        Ok(bytes.map(|bytes| Bytes::copy_from_slice(bytes.value())))
    })
}

pub(super) fn save_document(
    shared: &Shared,
    repository: RepositoryId<'_>,
    document: Document,
    bytes: &[u8],
) -> Result<(), IndexError> {
    check_size(bytes.len())?;
    let _writer = shared.writer();
    let saved = shared.index.write(|writing| {
        let number = ensure_repository(writing, repository.0)?.number;
        writing.open_table(DOCUMENTS)?.insert((number, document_key(document)), bytes)?;
        Ok(())
    });
    shared.versions.change(repository, None);
    saved
}

pub(super) fn repositories(shared: &Shared) -> Result<Vec<String>, IndexError> {
    shared.index.read(|reading| {
        let repositories = reading.open_table(REPOSITORIES)?;
        let names: Result<Vec<String>, _> =
            repositories.iter()?.map(|row| row.map(|(name, _)| name.value().to_owned())).collect();
        Ok(names?)
    })
}

pub(super) fn version(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
) -> Result<Option<CollectionVersion>, IndexError> {
    shared.index.read(|reading| {
        let Some((number, collection)) = find_collection(reading, repository, prefix)? else {
            return Ok(None);
        };
        let json = reading.open_table(PROGRESS)?.get((number, prefix.0))?;
        let progress: Option<HarvestProgress> = json.map(|json| from_json(json.value())).transpose()?;
        Ok(Some(CollectionVersion {
            collection: collection.number.into(),
            revision: progress.map_or(0, |progress| progress.revision),
            last_stamp_secs: collection.last_stamp_secs.unwrap_or(UnixSecs::MIN),
            next_sequence: collection.next_sequence,
            damaged: collection.damaged,
            lost: collection.lost,
        }))
    })
}

pub(super) fn collections(
    shared: &Shared,
    repository: RepositoryId<'_>,
) -> Result<Vec<CollectionSize>, IndexError> {
    shared.index.read(|reading| {
        let mut sizes = Vec::new();
        for (prefix, row) in collections_of(reading, repository)? {
            let listed = row.live + row.tombstones;
            let dead = row.slots.saturating_sub(listed);
            sizes.push(CollectionSize {
                prefix,
                records: row.live,
                tombstones: row.tombstones,
                damaged: row.damaged,
                lost: row.lost,
                disk_bytes: row.bytes,
                dead_bytes: row.bytes.saturating_mul(dead).checked_div(row.slots).unwrap_or(0),
                earliest_stamp_secs: earliest_stamp(reading, &row)?,
                latest_stamp_secs: row.last_stamp_secs,
            });
        }
        Ok(sizes)
    })
}

pub(super) fn disk_usage(shared: &Shared) -> Result<DiskUsage, IndexError> {
    let record_bytes = shared.index.read(|reading| {
        let mut bytes = 0;
        for row in reading.open_table(SEGMENTS)?.iter()? {
            bytes += from_json::<SegmentRow>(row?.1.value())?.bytes;
        }
        Ok(bytes)
    })?;
    let path = shared.index.path();
    let index = std::fs::metadata(path).map_err(|error| MirrorError::io(path, error))?;
    // The file has holes, which take no space.
    Ok(DiskUsage { record_bytes, index_bytes: index.blocks() * DISK_BLOCK_BYTES })
}

pub(super) fn sets_in_use(shared: &Shared, repository: RepositoryId<'_>) -> Result<Vec<String>, IndexError> {
    shared.index.read(|reading| {
        let Some(number) = find_repository(reading, repository.0)? else { return Ok(Vec::new()) };
        let sets = reading.open_table(SETS)?;
        let rows = sets.range((number, "")..(number + 1, ""))?;
        let specs: Result<Vec<String>, _> =
            rows.map(|row| row.map(|(key, _)| key.value().1.to_owned())).collect();
        Ok(specs?)
    })
}

pub(super) fn damaged(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
    after: Option<Identifier<'_>>,
    count_max: usize,
) -> Result<Vec<String>, IndexError> {
    shared.index.read(|reading| {
        let Some((_, collection)) = find_collection(reading, repository, prefix)? else {
            return Ok(Vec::new());
        };
        let (start, end) = identifier_range(collection.number, after);
        let mut identifiers: Vec<String> = Vec::new();
        for table in [DAMAGED, LOST] {
            let table = reading.open_table(table)?;
            for row in table.range(start.as_slice()..end.as_slice())?.take(count_max) {
                identifiers.push(identifier_of(row?.0.value()));
            }
        }
        identifiers.sort_unstable();
        identifiers.truncate(count_max);
        Ok(identifiers)
    })
}
