//! What all operations of the store share: the index, the segments, and the contexts of zstd.

use super::block::{BlockBuilder, ZSTD_LEVEL};
use super::index::{Index, IndexError};
use super::kept_blocks::KeptBlocks;
use super::new_blocks::NewBlocks;
use super::segments::Segments;
use super::tables::{COLLECTIONS, CollectionRow, REPOSITORIES, collection_row, repository_row, to_json};
use super::versions::Versions;
use oaimend_base::error::Error;
use oaimend_files::data_dir::WRITABLE;
use oaimend_store::databases::Databases;
use oaimend_store::mirror::MirrorError;
use oaimend_store::{Prefix, RepositoryId};
use redb::{ReadTransaction, WriteTransaction};
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use zstd::bulk::{Compressor, Decompressor};

/// Maximum number of idle decompressors. Each needs about 160 KiB.
const DECOMPRESSORS_MAX: usize = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) index: Index,
    pub(super) segments: Segments,
    pub(super) versions: Versions,
    pub(super) kept_blocks: KeptBlocks,
    /// The compressor of commits. A commit holds it from the first change of a segment to the end of its transaction.
    writer: Mutex<WriterContext>,
    /// Held by the one compaction, check or removal that runs.
    maintenance: Mutex<()>,
    decompressors: Mutex<Decompressors>,
    /// The repositories in which a read has found damage since their last check.
    suspected: Mutex<HashSet<String>>,
    closing: AtomicBool,
}

/// Idle decompressors.
#[derive(Default)]
struct Decompressors(Vec<Decompressor<'static>>);

impl std::fmt::Debug for Decompressors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} decompressors", self.0.len())
    }
}

/// The state of the one task that writes.
pub(super) struct WriterContext {
    pub(super) compressor: Compressor<'static>,
    /// Without records between two commits. It keeps its buffers.
    pub(super) builder: BlockBuilder,
    /// Empty between two commits. It keeps its buffer.
    pub(super) blocks: NewBlocks,
}

impl std::fmt::Debug for WriterContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriterContext")
    }
}

impl Shared {
    pub(super) fn open(folder: &Path, databases: &Databases) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(|error| Error::writing(folder, error, WRITABLE))?;
        let index = Index::open(folder, databases)?;
        let compressor = compressor().map_err(|error| Error::writing(folder, error, "free some memory"))?;
        Ok(Self {
            index,
            segments: Segments::new(folder),
            versions: Versions::default(),
            kept_blocks: KeptBlocks::default(),
            writer: Mutex::new(WriterContext {
                compressor,
                builder: BlockBuilder::default(),
                blocks: NewBlocks::default(),
            }),
            maintenance: Mutex::new(()),
            decompressors: Mutex::default(),
            suspected: Mutex::default(),
            closing: AtomicBool::new(false),
        })
    }

    /// Waits until no other task writes.
    pub(super) fn writer(&self) -> MutexGuard<'_, WriterContext> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other maintenance runs.
    pub(super) fn maintenance(&self) -> MutexGuard<'_, ()> {
        self.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `task` with a decompressor that no other task uses meanwhile.
    pub(super) fn with_decompressor<T>(
        &self,
        task: impl FnOnce(&mut Decompressor<'static>) -> T,
    ) -> Result<T, IndexError> {
        let idle = self.decompressors.lock().unwrap_or_else(PoisonError::into_inner).0.pop();
        let mut decompressor = match idle {
            Some(decompressor) => decompressor,
            None => Decompressor::new().map_err(|error| MirrorError::Stopped(error.to_string()))?,
        };
        let result = task(&mut decompressor);
        let mut idle = self.decompressors.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.0.len() < DECOMPRESSORS_MAX {
            idle.0.push(decompressor);
        }
        Ok(result)
    }

    /// Notes that a read has found damage in a repository.
    pub(super) fn suspect(&self, repository: RepositoryId<'_>) {
        let mut suspected = self.suspected();
        if !suspected.contains(repository.0) {
            tracing::error!(repo = repository.0, "records of the mirror are damaged on disk; check the disk");
            suspected.insert(repository.0.to_owned());
        }
    }

    /// Whether a read has found damage in a repository since its last check.
    pub(super) fn is_suspected(&self, repository: RepositoryId<'_>) -> bool {
        self.suspected().contains(repository.0)
    }

    /// Notes that a repository was checked.
    pub(super) fn clear_suspicion(&self, repository: RepositoryId<'_>) {
        self.suspected().remove(repository.0);
    }

    fn suspected(&self) -> MutexGuard<'_, HashSet<String>> {
        self.suspected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes maintenance end soon.
    pub(super) fn begin_to_close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Fails when the store is being closed.
    pub(super) fn check_open(&self) -> Result<(), IndexError> {
        if self.closing.load(Ordering::SeqCst) { Err(MirrorError::Closed.into()) } else { Ok(()) }
    }
}

/// A compressor as blocks need it.
pub(super) fn compressor() -> std::io::Result<Compressor<'static>> {
    let mut compressor = Compressor::new(ZSTD_LEVEL)?;
    // The directory of a block contains its own checksums and lengths.
    compressor.include_checksum(false)?;
    compressor.include_contentsize(false)?;
    Ok(compressor)
}

/// A collection, by the number of its repository and its prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollectionKey<'k> {
    pub(super) repository: u32,
    pub(super) prefix: &'k str,
}

/// Changes the row of a collection in a transaction, while no commit runs.
pub(super) fn change_collection<T>(
    shared: &Shared,
    key: CollectionKey<'_>,
    change: impl FnOnce(&WriteTransaction, &mut CollectionRow) -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    let _writer = shared.writer();
    shared.index.write(|writing| {
        let row = collection_row(&writing.open_table(COLLECTIONS)?, key.repository, key.prefix)?;
        // The repository was removed meanwhile, and its rows are not changed any more.
        let mut row = row.ok_or(MirrorError::Conflict)?;
        let done = change(writing, &mut row)?;
        let json = to_json(&row)?;
        writing.open_table(COLLECTIONS)?.insert((key.repository, key.prefix), json.as_slice())?;
        Ok(done)
    })
}

/// The number of a repository and a collection of it; `None` if nothing was stored there.
pub(super) fn find_collection(
    reading: &ReadTransaction,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
) -> Result<Option<(u32, CollectionRow)>, IndexError> {
    let Some(number) = find_repository(reading, repository.0)? else { return Ok(None) };
    let collection = collection_row(&reading.open_table(COLLECTIONS)?, number, prefix.0)?;
    Ok(collection.map(|collection| (number, collection)))
}

/// The number of a repository; `None` if nothing was stored of it.
pub(super) fn find_repository(reading: &ReadTransaction, name: &str) -> Result<Option<u32>, IndexError> {
    Ok(repository_row(&reading.open_table(REPOSITORIES)?, name)?.map(|row| row.number))
}

/// The collections of a repository with their prefixes, in order.
pub(super) fn collections_of(
    reading: &ReadTransaction,
    repository: RepositoryId<'_>,
) -> Result<Vec<(String, CollectionRow)>, IndexError> {
    let Some(number) = find_repository(reading, repository.0)? else { return Ok(Vec::new()) };
    let collections = reading.open_table(COLLECTIONS)?;
    let mut found = Vec::new();
    for row in collections.range((number, "")..(number + 1, ""))? {
        let (key, json) = row?;
        found.push((key.value().1.to_owned(), super::tables::from_json(json.value())?));
    }
    Ok(found)
}
