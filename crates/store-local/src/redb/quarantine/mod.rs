//! The quarantine: raw bytes in files, an index in redb.
//!
//! `data/quarantine/index.redb` contains one entry for each (repository, identifier, raw bytes).
//! `data/quarantine/<repository>/<key>` contains the raw bytes, which a person can read without a tool. `known_entries`
//! is the part of the index that each delivered page is compared with.

mod known_entries;
#[cfg(test)]
mod tests;

use super::database::{SharedDatabase, Unavailable};
use async_trait::async_trait;
use known_entries::{EntryChange, KnownEntries};
use oaimend_base::error::Error;
use oaimend_files::data_dir::WRITABLE;
use oaimend_store::RepositoryId;
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::quarantine::{
    Quarantine, QuarantineBatch, QuarantineEntry, QuarantineError, QuarantineQuery, QuarantineSelection,
    QuarantineSize, QuarantineSizes, QuarantineState, WholeRecords,
};
use redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// All quarantined records. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RedbQuarantine {
    folder: Arc<PathBuf>,
    index: Arc<SharedDatabase>,
    known: Arc<KnownEntries>,
    /// Held by a write until its changes are in `known` too, so that both change in the same order.
    writing: Arc<Mutex<()>>,
}

/// (repository, key) to the entry as JSON.
const ENTRIES: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("entries");
/// Repository to the number of its entries and their bytes on disk.
const SIZES: TableDefinition<'_, &str, (u64, u64)> = TableDefinition::new("sizes_of_repositories");
const CACHE_BYTES: usize = 8 << 20;

/// The entries of all repositories in a transaction that writes.
type EntryTable<'t> = Table<'t, (&'static str, &'static str), &'static [u8]>;

/// The changes of a transaction that writes the entries of one repository.
struct Writing<'t, 'r> {
    entries: EntryTable<'t>,
    repository: &'r str,
    size: QuarantineSize,
    changes: Vec<EntryChange>,
}

impl RedbQuarantine {
    /// Opens or creates `quarantine/` in the data folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub(crate) fn open(data: &Path, databases: &Databases) -> Result<Self, Error> {
        let folder = data.join("quarantine");
        std::fs::create_dir_all(&folder).map_err(|error| Error::writing(&folder, error, WRITABLE))?;
        let index = SharedDatabase::open_among(
            databases,
            StoreName::Quarantine,
            &folder.join("index.redb"),
            CACHE_BYTES,
        )?;
        let known = KnownEntries::default();
        index.load(|index| read_known(index, &known))?;
        Ok(Self { folder: Arc::new(folder), index, known: Arc::new(known), writing: Arc::default() })
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
        match self.index.with(task) {
            Ok(done) => done,
            Err(Unavailable::Closed) => Err(QuarantineError::Closed),
            Err(Unavailable::Failed(error)) => Err(QuarantineError::Database(error)),
        }
    }

    /// Changes the entries of a repository: all changes of `task`, or none.
    fn write<T>(
        &self,
        index: &Database,
        repository: RepositoryId<'_>,
        task: impl FnOnce(&mut Writing<'_, '_>) -> Result<T, QuarantineError>,
    ) -> Result<T, QuarantineError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = index.begin_write().map_err(index_error)?;
        let (result, changes) = {
            let entries = transaction.open_table(ENTRIES).map_err(index_error)?;
            let mut sizes = transaction.open_table(SIZES).map_err(index_error)?;
            let (records, bytes) =
                sizes.get(repository.0).map_err(index_error)?.map_or((0, 0), |size| size.value());
            let size = QuarantineSize { records, bytes };
            let mut writing = Writing { entries, repository: repository.0, size, changes: Vec::new() };
            let result = task(&mut writing)?;
            let Writing { size, changes, .. } = writing;
            if changes.is_empty() {
                return Ok(result);
            }
            sizes.insert(repository.0, (size.records, size.bytes)).map_err(index_error)?;
            (result, changes)
        };
        // While no record can be put: a file of the same name would belong to a new entry.
        for change in changes.iter().filter(|change| change.after.is_none()) {
            match std::fs::remove_file(self.folder.join(repository.0).join(&change.key)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        transaction.commit().map_err(index_error)?;
        self.known.apply(repository, &changes);
        Ok(result)
    }

    fn put_into(&self, index: &Database, batch: &QuarantineBatch) -> Result<(), QuarantineError> {
        let mut written = Vec::new();
        let put = self.write(index, RepositoryId(&batch.repository), |writing| {
            let keys: Vec<String> =
                batch.records.iter().map(|record| record.key(&batch.repository)).collect();
            for (record, key) in batch.records.iter().zip(&keys) {
                let known = writing.find(key)?;
                let path = self.folder.join(&batch.repository).join(key);
                let is_new = known.is_none();
                let entry = QuarantineEntry::after(known.as_ref(), record, batch);
                writing.change(key, known, Some(entry))?;
                if is_new {
                    self.make_room(writing, batch, &keys)?;
                    written.push(path);
                    self.write_raw(RepositoryId(&batch.repository), key, &record.raw)?;
                } else if !path.exists() {
                    // A removal was interrupted between the file and its entry.
                    self.write_raw(RepositoryId(&batch.repository), key, &record.raw)?;
                }
            }
            Ok(())
        });
        if let Err(error) = &put {
            if let QuarantineError::Io(error) = error {
                self.index.note_error(error);
            }
            // Files without an entry would not count towards the limit.
            for path in &written {
                // The error of the write says more.
                let _ = std::fs::remove_file(path);
            }
        }
        put
    }

    /// Removes the entries that were resolved first, until the repository is within its limit. The entries `kept` stay.
    fn make_room(
        &self,
        writing: &mut Writing<'_, '_>,
        batch: &QuarantineBatch,
        kept: &[String],
    ) -> Result<(), QuarantineError> {
        if writing.size.bytes <= batch.bytes_max {
            return Ok(());
        }
        let full = || QuarantineError::Full { max: batch.bytes_max };
        if self.known.resolved(RepositoryId(writing.repository)).records == 0 {
            return Err(full());
        }
        let mut resolved = Vec::new();
        for_each_entry(&writing.entries, RepositoryId(writing.repository), "", |key, entry| {
            if entry.state() == QuarantineState::Resolved && !kept.iter().any(|kept| kept == key) {
                resolved.push((key.to_owned(), entry));
            }
            ControlFlow::Continue(())
        })?;
        for (key, entry) in writing.size.surplus(resolved, batch.bytes_max).ok_or_else(full)? {
            writing.change(&key, Some(entry), None)?;
        }
        Ok(())
    }

    fn resolve_in(&self, index: &Database, whole: &WholeRecords) -> Result<u64, QuarantineError> {
        let keys = self.open_keys(index, whole)?;
        if keys.is_empty() {
            return Ok(0);
        }
        self.write(index, RepositoryId(&whole.repository), |writing| {
            let mut resolved = 0;
            for key in &keys {
                let Some(open) = writing.find(key)? else { continue };
                if let Some(entry) = open.resolved_by(whole) {
                    writing.change(key, Some(open), Some(entry))?;
                    resolved += 1;
                }
            }
            Ok(resolved)
        })
    }

    /// The keys of the open entries of whole records. Writes nothing: a page may contain the record in another format
    /// each time.
    fn open_keys(&self, index: &Database, whole: &WholeRecords) -> Result<Vec<String>, QuarantineError> {
        let mut open = Vec::new();
        match self.known.keys_of(RepositoryId(&whole.repository), &whole.identifiers) {
            Some(keys) => {
                for key in keys {
                    let entry = entry_in(index, RepositoryId(&whole.repository), &key)?;
                    open.extend(entry.filter(|entry| entry.is_resolved_by(whole)).map(|_| key));
                }
            }
            None => read_entries(index, RepositoryId(&whole.repository), "", |key, entry| {
                if entry.is_resolved_by(whole) {
                    open.push(key.to_owned());
                }
                ControlFlow::Continue(())
            })?,
        }
        Ok(open)
    }

    fn find_in(
        &self,
        index: &Database,
        repository: RepositoryId<'_>,
        key: &str,
    ) -> Result<Option<(QuarantineEntry, Vec<u8>)>, QuarantineError> {
        let Some(entry) = entry_in(index, repository, key)? else { return Ok(None) };
        // The key is in the index, so it is not a path to another folder.
        Ok(Some((entry, std::fs::read(self.folder.join(repository.0).join(key))?)))
    }

    fn remove_from(
        &self,
        index: &Database,
        repository: RepositoryId<'_>,
        which: &QuarantineSelection,
    ) -> Result<u64, QuarantineError> {
        self.write(index, repository, |writing| {
            let mut removed = Vec::new();
            for_each_entry(&writing.entries, repository, "", |key, entry| {
                if which.contains(key, &entry) {
                    removed.push((key.to_owned(), entry));
                }
                ControlFlow::Continue(())
            })?;
            let count = removed.len() as u64;
            for (key, entry) in removed {
                writing.change(&key, Some(entry), None)?;
            }
            Ok(count)
        })
    }

    fn sizes_in(&self, index: &Database) -> Result<Vec<(String, QuarantineSizes)>, QuarantineError> {
        let transaction = index.begin_read().map_err(index_error)?;
        let sizes = match transaction.open_table(SIZES) {
            Ok(sizes) => sizes,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(index_error(error)),
        };
        let mut found = Vec::new();
        for row in sizes.iter().map_err(index_error)? {
            let (repository, size) = row.map_err(index_error)?;
            let (repository, (records, bytes)) = (repository.value(), size.value());
            let resolved = self.known.resolved(RepositoryId(repository));
            let open = QuarantineSize {
                records: records.saturating_sub(resolved.records),
                bytes: bytes.saturating_sub(resolved.bytes),
            };
            found.push((repository.to_owned(), QuarantineSizes { open, resolved }));
        }
        Ok(found)
    }

    fn write_raw(&self, repository: RepositoryId<'_>, key: &str, raw: &[u8]) -> Result<(), std::io::Error> {
        let folder = self.folder.join(repository.0);
        if !folder.exists() {
            std::fs::create_dir_all(&folder)?;
            std::fs::File::open(self.folder.as_path())?.sync_all()?;
        }
        let mut file = std::fs::File::create(folder.join(key))?;
        file.write_all(raw)?;
        file.sync_all()?;
        std::fs::File::open(folder)?.sync_all()
    }
}

impl Writing<'_, '_> {
    fn find(&self, key: &str) -> Result<Option<QuarantineEntry>, QuarantineError> {
        let json = self.entries.get((self.repository, key)).map_err(index_error)?;
        Ok(json.and_then(|json| serde_json::from_slice(json.value()).ok()))
    }

    /// Writes or removes an entry.
    fn change(
        &mut self,
        key: &str,
        before: Option<QuarantineEntry>,
        after: Option<QuarantineEntry>,
    ) -> Result<(), QuarantineError> {
        let place = (self.repository, key);
        match &after {
            Some(entry) => {
                let json = serde_json::to_vec(entry).map_err(std::io::Error::other)?;
                self.entries.insert(place, json.as_slice()).map_err(index_error)?;
            }
            None => drop(self.entries.remove(place).map_err(index_error)?),
        }
        self.size = self.size.after(before.as_ref(), after.as_ref());
        self.changes.push(EntryChange { key: key.to_owned(), before, after });
        Ok(())
    }
}

#[async_trait]
impl Quarantine for RedbQuarantine {
    async fn put(&self, batch: QuarantineBatch) -> Result<(), QuarantineError> {
        self.blocking(move |quarantine, index| quarantine.put_into(index, &batch)).await
    }

    async fn has_open(&self, repository: RepositoryId<'_>) -> bool {
        self.known.has_open(repository)
    }

    async fn open_among(&self, repository: RepositoryId<'_>, identifiers: Vec<String>) -> Vec<String> {
        let may_be_open = |identifier: &String| self.known.may_be_open(repository, identifier);
        identifiers.into_iter().filter(may_be_open).collect()
    }

    async fn resolve(&self, whole: WholeRecords) -> Result<u64, QuarantineError> {
        self.blocking(move |quarantine, index| quarantine.resolve_in(index, &whole)).await
    }

    async fn list(
        &self,
        repository: RepositoryId<'_>,
        query: QuarantineQuery,
    ) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError> {
        let repository = repository.0.to_owned();
        self.blocking(move |_, index| list_in(index, RepositoryId(&repository), &query)).await
    }

    async fn find(
        &self,
        repository: RepositoryId<'_>,
        key: &str,
    ) -> Result<Option<(QuarantineEntry, Vec<u8>)>, QuarantineError> {
        let (repository, key) = (repository.0.to_owned(), key.to_owned());
        self.blocking(move |quarantine, index| quarantine.find_in(index, RepositoryId(&repository), &key))
            .await
    }

    async fn remove(
        &self,
        repository: RepositoryId<'_>,
        which: QuarantineSelection,
    ) -> Result<u64, QuarantineError> {
        let repository = repository.0.to_owned();
        self.blocking(move |quarantine, index| {
            quarantine.remove_from(index, RepositoryId(&repository), &which)
        })
        .await
    }

    async fn sizes(&self) -> Result<Vec<(String, QuarantineSizes)>, QuarantineError> {
        self.blocking(|quarantine, index| quarantine.sizes_in(index)).await
    }

    fn close(&self) {
        self.index.close();
    }
}

/// Reads the facts of all entries that are kept in memory.
fn read_known(index: &Database, known: &KnownEntries) -> Result<(), redb::Error> {
    let transaction = index.begin_read()?;
    let entries = match transaction.open_table(ENTRIES) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()),
        entries => entries?,
    };
    for row in entries.iter()? {
        let (key, json) = row?;
        let (repository, key) = key.value();
        if let Ok(entry) = serde_json::from_slice(json.value()) {
            known.apply(
                RepositoryId(repository),
                &[EntryChange { key: key.to_owned(), before: None, after: Some(entry) }],
            );
        }
    }
    Ok(())
}

fn list_in(
    index: &Database,
    repository: RepositoryId<'_>,
    query: &QuarantineQuery,
) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError> {
    let mut listed = Vec::new();
    read_entries(index, repository, &query.after, |key, entry| {
        if listed.len() >= query.count_max {
            return ControlFlow::Break(());
        }
        if query.contains(key, &entry) {
            listed.push((key.to_owned(), entry));
        }
        ControlFlow::Continue(())
    })?;
    Ok(listed)
}

/// Reads the entries of a repository in the order of their keys, starting with the key `from`.
fn read_entries(
    index: &Database,
    repository: RepositoryId<'_>,
    from: &str,
    use_entry: impl FnMut(&str, QuarantineEntry) -> ControlFlow<()>,
) -> Result<(), QuarantineError> {
    let transaction = index.begin_read().map_err(index_error)?;
    match transaction.open_table(ENTRIES) {
        Ok(entries) => for_each_entry(&entries, repository, from, use_entry),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(()),
        Err(error) => Err(index_error(error)),
    }
}

/// Passes over entries that cannot be read.
fn for_each_entry(
    entries: &impl ReadableTable<(&'static str, &'static str), &'static [u8]>,
    repository: RepositoryId<'_>,
    from: &str,
    mut use_entry: impl FnMut(&str, QuarantineEntry) -> ControlFlow<()>,
) -> Result<(), QuarantineError> {
    for row in entries.range((repository.0, from)..).map_err(index_error)? {
        let (key, json) = row.map_err(index_error)?;
        let (of, key) = key.value();
        if of != repository.0 {
            break;
        }
        let Ok(entry) = serde_json::from_slice(json.value()) else { continue };
        if use_entry(key, entry).is_break() {
            break;
        }
    }
    Ok(())
}

fn entry_in(
    index: &Database,
    repository: RepositoryId<'_>,
    key: &str,
) -> Result<Option<QuarantineEntry>, QuarantineError> {
    let transaction = index.begin_read().map_err(index_error)?;
    let entries = match transaction.open_table(ENTRIES) {
        Ok(entries) => entries,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(index_error(error)),
    };
    let Some(json) = entries.get((repository.0, key)).map_err(index_error)? else { return Ok(None) };
    Ok(Some(serde_json::from_slice(json.value()).map_err(std::io::Error::other)?))
}

fn index_error(error: impl Into<redb::Error>) -> QuarantineError {
    QuarantineError::Database(Box::new(error.into()))
}
