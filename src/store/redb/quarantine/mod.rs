//! The quarantine: raw bytes in files, an index in redb.
//!
//! `data/quarantine/index.redb` contains one entry for each (repository, identifier, raw bytes).
//! `data/quarantine/<repository>/<key>` contains the raw bytes, which a person can read without a tool.

#[cfg(test)]
mod tests;

use super::database::ClosableDatabase;
use crate::error::Error;
use crate::store::data_dir::WRITABLE;
use crate::store::quarantine::{
    Quarantine, QuarantineBatch, QuarantineEntry, QuarantineError, QuarantineSelection, QuarantineSize,
    QuarantinedRecord,
};
use async_trait::async_trait;
use blake2::{Blake2s256, Digest};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All quarantined records. Clones share them.
#[derive(Clone, Debug)]
pub(in crate::store) struct RedbQuarantine {
    folder: Arc<PathBuf>,
    index: Arc<ClosableDatabase>,
}

/// (repository, key) to the entry as JSON.
const ENTRIES: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("entries");
/// Repository to the number of its entries and their bytes on disk.
const SIZES: TableDefinition<'_, &str, (u64, u64)> = TableDefinition::new("sizes_of_repositories");
/// The file of a record occupies whole blocks of this many bytes.
const BLOCK_BYTES: u64 = 4096;
/// The bytes of an entry in the index, apart from its identifier and its request.
const ENTRY_BYTES: u64 = 512;
const CACHE_BYTES: usize = 8 << 20;
const KEY_BYTES: usize = 16;

impl RedbQuarantine {
    /// Opens or creates `quarantine/` in the data folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub(in crate::store) fn open(data: &Path) -> Result<Self, Error> {
        let folder = data.join("quarantine");
        std::fs::create_dir_all(&folder).map_err(|error| Error::writing(&folder, error, WRITABLE))?;
        let path = folder.join("index.redb");
        let index = ClosableDatabase::open(&path, CACHE_BYTES)?;
        Ok(Self { folder: Arc::new(folder), index: Arc::new(index) })
    }

    /// Runs `task` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Self, &Database) -> Result<T, QuarantineError> + Send + 'static,
    ) -> Result<T, QuarantineError> {
        let quarantine = self.clone();
        let run = move || quarantine.with_index(|index| task(&quarantine, index));
        match tokio::task::spawn_blocking(run).await {
            Ok(done) => done,
            Err(error) => Err(QuarantineError::Stopped(error.to_string())),
        }
    }

    fn with_index<T>(
        &self,
        task: impl FnOnce(&Database) -> Result<T, QuarantineError>,
    ) -> Result<T, QuarantineError> {
        self.index.with(task).unwrap_or(Err(QuarantineError::Closed))
    }

    fn put_into(&self, index: &Database, batch: &QuarantineBatch) -> Result<(), QuarantineError> {
        let repository = batch.repository.as_str();
        let transaction = index.begin_write().map_err(index_error)?;
        {
            let mut entries = transaction.open_table(ENTRIES).map_err(index_error)?;
            let mut sizes = transaction.open_table(SIZES).map_err(index_error)?;
            let (mut records, mut size) =
                sizes.get(repository).map_err(index_error)?.map_or((0, 0), |size| size.value());
            let mut written = Vec::new();
            for record in &batch.records {
                let key = key_of(repository, record);
                let known = entries.get((repository, key.as_str())).map_err(index_error)?;
                let known =
                    known.and_then(|json| serde_json::from_slice::<QuarantineEntry>(json.value()).ok());
                let is_new = known.is_none();
                size -= known.as_ref().map_or(0, disk_bytes).min(size);
                let entry = entry_after(known, record, batch);
                size += disk_bytes(&entry);
                if is_new {
                    if size > batch.bytes_max {
                        // Files without an entry would not count towards the limit.
                        for path in &written {
                            std::fs::remove_file(path)?;
                        }
                        return Err(QuarantineError::Full { max: batch.bytes_max });
                    }
                    written.push(self.write_raw(repository, &key, &record.raw)?);
                    records += 1;
                } else if !self.folder.join(repository).join(&key).exists() {
                    // A removal was interrupted between the file and its entry.
                    self.write_raw(repository, &key, &record.raw)?;
                }
                let json = serde_json::to_vec(&entry).map_err(std::io::Error::other)?;
                entries.insert((repository, key.as_str()), json.as_slice()).map_err(index_error)?;
            }
            sizes.insert(repository, (records, size)).map_err(index_error)?;
        }
        transaction.commit().map_err(index_error)
    }

    fn find_in(
        &self,
        index: &Database,
        repository: &str,
        key: &str,
    ) -> Result<Option<(QuarantineEntry, Vec<u8>)>, QuarantineError> {
        let Some(entry) = entry_in(index, repository, key)? else { return Ok(None) };
        // The key is in the index, so it is not a path to another folder.
        Ok(Some((entry, std::fs::read(self.folder.join(repository).join(key))?)))
    }

    fn remove_from(
        &self,
        index: &Database,
        repository: &str,
        which: &QuarantineSelection,
    ) -> Result<u64, QuarantineError> {
        let transaction = index.begin_write().map_err(index_error)?;
        let mut removed = Vec::new();
        {
            let mut entries = transaction.open_table(ENTRIES).map_err(index_error)?;
            let (mut left, mut left_bytes) = (0, 0);
            for row in entries.range((repository, "")..).map_err(index_error)? {
                let (key, json) = row.map_err(index_error)?;
                let (of, key) = key.value();
                if of != repository {
                    break;
                }
                let entry: QuarantineEntry =
                    serde_json::from_slice(json.value()).map_err(std::io::Error::other)?;
                if is_selected(which, key, &entry) {
                    removed.push(key.to_owned());
                } else {
                    left += 1;
                    left_bytes += disk_bytes(&entry);
                }
            }
            for key in &removed {
                entries.remove((repository, key.as_str())).map_err(index_error)?;
            }
            let mut sizes = transaction.open_table(SIZES).map_err(index_error)?;
            sizes.insert(repository, (left, left_bytes)).map_err(index_error)?;
        }
        // While no record can be put: a file of the same name would belong to a new entry.
        for key in &removed {
            match std::fs::remove_file(self.folder.join(repository).join(key)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        transaction.commit().map_err(index_error)?;
        Ok(removed.len() as u64)
    }

    fn write_raw(&self, repository: &str, key: &str, raw: &[u8]) -> Result<PathBuf, std::io::Error> {
        let folder = self.folder.join(repository);
        if !folder.exists() {
            std::fs::create_dir_all(&folder)?;
            std::fs::File::open(self.folder.as_path())?.sync_all()?;
        }
        let path = folder.join(key);
        let mut file = std::fs::File::create(&path)?;
        file.write_all(raw)?;
        file.sync_all()?;
        std::fs::File::open(folder)?.sync_all()?;
        Ok(path)
    }
}

#[async_trait]
impl Quarantine for RedbQuarantine {
    async fn put(&self, batch: QuarantineBatch) -> Result<(), QuarantineError> {
        self.blocking(move |quarantine, index| quarantine.put_into(index, &batch)).await
    }

    async fn list(
        &self,
        repository: &str,
        count_max: usize,
    ) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError> {
        let repository = repository.to_owned();
        self.blocking(move |_, index| list_in(index, &repository, count_max)).await
    }

    async fn find(
        &self,
        repository: &str,
        key: &str,
    ) -> Result<Option<(QuarantineEntry, Vec<u8>)>, QuarantineError> {
        let (repository, key) = (repository.to_owned(), key.to_owned());
        self.blocking(move |quarantine, index| quarantine.find_in(index, &repository, &key)).await
    }

    async fn remove(&self, repository: &str, which: QuarantineSelection) -> Result<u64, QuarantineError> {
        let repository = repository.to_owned();
        self.blocking(move |quarantine, index| quarantine.remove_from(index, &repository, &which)).await
    }

    async fn sizes(&self) -> Result<Vec<(String, QuarantineSize)>, QuarantineError> {
        self.blocking(|_, index| sizes_in(index)).await
    }

    fn close(&self) {
        self.index.close();
    }
}

/// The bytes of an entry and its record on disk.
fn disk_bytes(entry: &QuarantineEntry) -> u64 {
    let texts = entry.identifier.as_ref().map_or(0, String::len) + entry.request.len();
    entry.bytes.next_multiple_of(BLOCK_BYTES) + ENTRY_BYTES + texts as u64
}

/// Whether an entry is one of those to remove.
fn is_selected(which: &QuarantineSelection, key: &str, entry: &QuarantineEntry) -> bool {
    match which {
        QuarantineSelection::Key(wanted) => key == wanted,
        QuarantineSelection::LastSeenBefore(time) => entry.last_seen < *time,
        QuarantineSelection::All => true,
    }
}

/// The entry of a record after this batch.
fn entry_after(
    known: Option<QuarantineEntry>,
    record: &QuarantinedRecord,
    batch: &QuarantineBatch,
) -> QuarantineEntry {
    let now = batch.received_at.clone();
    QuarantineEntry {
        identifier: record.identifier.clone(),
        why: record.why.to_owned(),
        offset: record.offset,
        request: batch.request.clone(),
        first_seen: known.as_ref().map_or_else(|| now.clone(), |entry| entry.first_seen.clone()),
        last_seen: now,
        seen: 1 + known.map_or(0, |entry| entry.seen),
        bytes: record.raw.len() as u64,
    }
}

fn list_in(
    index: &Database,
    repository: &str,
    count_max: usize,
) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError> {
    let transaction = index.begin_read().map_err(index_error)?;
    let entries = match transaction.open_table(ENTRIES) {
        Ok(entries) => entries,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(index_error(error)),
    };
    let mut listed = Vec::new();
    for row in entries.range((repository, "")..).map_err(index_error)?.take(count_max) {
        let (key, json) = row.map_err(index_error)?;
        let (of, key) = key.value();
        if of != repository {
            break;
        }
        if let Ok(entry) = serde_json::from_slice(json.value()) {
            listed.push((key.to_owned(), entry));
        }
    }
    Ok(listed)
}

fn sizes_in(index: &Database) -> Result<Vec<(String, QuarantineSize)>, QuarantineError> {
    let transaction = index.begin_read().map_err(index_error)?;
    let sizes = match transaction.open_table(SIZES) {
        Ok(sizes) => sizes,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(index_error(error)),
    };
    let mut found = Vec::new();
    for row in sizes.iter().map_err(index_error)? {
        let (repository, size) = row.map_err(index_error)?;
        let (records, bytes) = size.value();
        found.push((repository.value().to_owned(), QuarantineSize { records, bytes }));
    }
    Ok(found)
}

fn entry_in(
    index: &Database,
    repository: &str,
    key: &str,
) -> Result<Option<QuarantineEntry>, QuarantineError> {
    let transaction = index.begin_read().map_err(index_error)?;
    let entries = match transaction.open_table(ENTRIES) {
        Ok(entries) => entries,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(index_error(error)),
    };
    let Some(json) = entries.get((repository, key)).map_err(index_error)? else { return Ok(None) };
    Ok(Some(serde_json::from_slice(json.value()).map_err(std::io::Error::other)?))
}

/// The key of a record: the same for the same repository, identifier and raw bytes.
fn key_of(repository: &str, record: &QuarantinedRecord) -> String {
    let identifier = record.identifier.as_deref().unwrap_or_default();
    let mut hash = Blake2s256::new();
    for part in [repository.as_bytes(), identifier.as_bytes(), &record.raw] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize()[..KEY_BYTES])
}

fn index_error(error: impl Into<redb::Error>) -> QuarantineError {
    QuarantineError::Database(Box::new(error.into()))
}
