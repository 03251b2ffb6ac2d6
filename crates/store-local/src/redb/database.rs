//! One database file of the data folder: created completely or not at all, opened again after an error of the disk,
//! and closable while callers share it.
//!
//! redb refuses all work on a database whose file has failed once, for example on a full disk, until it is opened
//! again. Each store of redb has its database here, so that none of them needs a restart.

use super::watched_file::{DiskState, WatchedFile};
use oaimend_base::error::Error;
use oaimend_files::data_dir::{self, WRITABLE};
use oaimend_store::databases::{Databases, StoreDatabase, StoreName};
use oaimend_store::save_error::SaveError;
use redb::backends::FileBackend;
use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition,
    WriteTransaction,
};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes that a failed store writes to show that it can be used again.
const PROBE_BYTES: usize = 64 << 10;
/// The table of these bytes. It exists during a probe only.
const PROBE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("probe");

/// A database until it is closed.
#[derive(Debug)]
pub(crate) struct SharedDatabase {
    path: PathBuf,
    cache_bytes: usize,
    /// `None` if it is closed, or could not be opened again.
    open: RwLock<Option<Database>>,
    is_closed: AtomicBool,
    disk: Arc<DiskState>,
}

/// Why a task has no database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// It was closed for good.
    #[error("another oaimend has taken the data folder over")]
    Closed,
    /// The disk failed, and the database cannot be opened again yet.
    #[error("{0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SharedDatabase {
    /// Opens or creates the database of a store, and adds it to the others.
    pub(crate) fn open_among(
        databases: &Databases,
        store: StoreName,
        path: &Path,
        cache_bytes: usize,
    ) -> Result<Arc<Self>, Error> {
        let database = Arc::new(Self::open(store, path, cache_bytes)?);
        databases.add(Arc::clone(&database) as Arc<dyn StoreDatabase>);
        Ok(database)
    }

    /// Opens or creates the file. A process that is killed meanwhile leaves no file or a complete one. The caller
    /// holds the lock of the data folder.
    pub(super) fn open(store: StoreName, path: &Path, cache_bytes: usize) -> Result<Self, Error> {
        let disk = Arc::new(DiskState::new(store));
        if !path.exists() {
            create(store, path, cache_bytes)?;
        }
        let database = open(path, cache_bytes, Arc::clone(&disk))?;
        Ok(Self {
            path: path.to_owned(),
            cache_bytes,
            open: RwLock::new(Some(database)),
            is_closed: AtomicBool::new(false),
            disk,
        })
    }

    /// The result of `task`. The database stays open until `task` returns. Opens it again before if the disk has failed.
    pub(crate) fn with<T>(&self, task: impl FnOnce(&Database) -> T) -> Result<T, Unavailable> {
        self.reopen_failed()?;
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            Some(database) => Ok(task(database)),
            None => Err(self.unavailable()),
        }
    }

    /// Runs `task` on a thread that may block.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(&Database) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, SaveError> {
        let database = Arc::clone(self);
        match tokio::task::spawn_blocking(move || database.with(task)).await {
            Ok(result) => result?.map_err(|error| SaveError::Database(Box::new(error))),
            Err(error) => Err(SaveError::Stopped(error.to_string())),
        }
    }

    /// Runs `task` on what is committed now, on a thread that may block.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, SaveError> {
        self.run(move |database| task(&database.begin_read()?)).await
    }

    /// Runs `task` in a transaction, on a thread that may block. It is committed unless `task` fails.
    pub(super) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, SaveError> {
        self.run(move |database| {
            let writing = database.begin_write()?;
            let done = task(&writing)?;
            writing.commit()?;
            Ok(done)
        })
        .await
    }

    /// Like [`SharedDatabase::with`], but never waits and opens nothing again: a database that is being opened again
    /// has failed.
    pub(super) fn try_with<T>(&self, task: impl FnOnce(&Database) -> T) -> Result<T, Unavailable> {
        match self.open.try_read().as_deref() {
            Ok(Some(database)) if !self.disk.has_failed.load(Ordering::Acquire) => Ok(task(database)),
            _ => Err(self.unavailable()),
        }
    }

    fn unavailable(&self) -> Unavailable {
        if self.is_closed.load(Ordering::Acquire) {
            Unavailable::Closed
        } else {
            Unavailable::Failed(Box::new(redb::Error::PreviousIo))
        }
    }

    fn reopen_failed(&self) -> Result<(), Unavailable> {
        if !self.disk.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut database = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Unavailable::Closed);
        }
        if self.disk.has_failed.load(Ordering::Acquire) {
            // First, because it holds the lock of the file.
            *database = None;
            self.disk.has_failed.store(false, Ordering::Release);
            match open(&self.path, self.cache_bytes, Arc::clone(&self.disk)) {
                Ok(opened) => *database = Some(opened),
                Err(error) => {
                    self.disk.has_failed.store(true, Ordering::Release);
                    return Err(Unavailable::Failed(Box::new(error)));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the content of a database at start; the error says what to do.
    pub(super) fn load<T>(&self, task: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, Error> {
        match self.with(task) {
            Ok(loaded) => loaded.map_err(|error| self.unreadable(&error)),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    /// The start-up error for a database that cannot be read.
    pub(crate) fn unreadable(&self, error: &impl std::fmt::Display) -> Error {
        unreadable(&self.path, error)
    }

    /// Runs `task`, which writes, on a thread that may block.
    pub(super) async fn save(
        self: &Arc<Self>,
        task: impl FnOnce(&Database) -> Result<(), redb::Error> + Send + 'static,
    ) -> Result<(), SaveError> {
        let database = Arc::clone(self);
        match tokio::task::spawn_blocking(move || database.with(task)).await {
            Ok(done) => done?.map_err(|error| SaveError::Database(Box::new(error))),
            Err(error) => Err(SaveError::Stopped(error.to_string())),
        }
    }

    /// Notes that another file of the store could not be written. The store counts as unusable until
    /// [`SharedDatabase::recover`] succeeds.
    pub(crate) fn note_error(&self, error: &std::io::Error) {
        self.disk.note_error(error);
    }

    /// Writes beside the database, as stores do that have other files too.
    fn write_probe_file(&self) -> Result<(), std::io::Error> {
        let path = self.path.with_extension("probe");
        let written = std::fs::write(&path, [0; PROBE_BYTES]);
        written.and(std::fs::remove_file(&path))
    }

    /// Waits for the tasks that use the database, and closes it for good. Another process can open it then.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl StoreDatabase for SharedDatabase {
    fn store(&self) -> StoreName {
        self.disk.store
    }

    fn is_unusable(&self) -> bool {
        self.disk.is_unusable.load(Ordering::Relaxed) && !self.is_closed.load(Ordering::Acquire)
    }

    fn recover(&self) {
        let written = self.write_probe_file().map_err(redb::Error::from);
        let written = written.map_err(|error| Unavailable::Failed(Box::new(error)));
        match written.and_then(|()| self.with(write_probe)) {
            Ok(Ok(())) => {
                self.disk.is_unusable.store(false, Ordering::Relaxed);
                tracing::info!(store = self.disk.store.name(), "the store can be used again");
            }
            Ok(Err(error)) => {
                tracing::debug!(store = self.disk.store.name(), %error, "the store is still unusable")
            }
            Err(error) => {
                tracing::debug!(store = self.disk.store.name(), %error, "the store is still unusable")
            }
        }
    }

    fn while_frozen(&self, task: &mut dyn FnMut()) -> Result<(), SaveError> {
        let frozen = self.with(|database| {
            // Only one transaction writes at a time, and this one writes nothing. Each commit waits for the disk, so the file
            // has all of them.
            let transaction = database.begin_write()?;
            task();
            Ok::<_, redb::Error>(transaction.abort()?)
        });
        frozen?.map_err(|error| SaveError::Database(Box::new(error)))
    }
}

impl From<Unavailable> for SaveError {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::Closed => Self::Closed,
            Unavailable::Failed(error) => Self::Database(error),
        }
    }
}

/// Writes to the database, and removes what it wrote.
fn write_probe(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(PROBE)?.insert("", [0; PROBE_BYTES].as_slice())?;
    transaction.commit()?;
    let transaction = database.begin_write()?;
    transaction.delete_table(PROBE)?;
    Ok(transaction.commit()?)
}

/// Creates an empty database under a temporary name first, because redb reports a half-written one as damaged.
fn create(store: StoreName, path: &Path, cache_bytes: usize) -> Result<(), Error> {
    let unfinished = path.with_extension("redb.part");
    let removed = match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    removed.map_err(|error| Error::writing(&unfinished, error, WRITABLE))?;
    drop(open(&unfinished, cache_bytes, Arc::new(DiskState::new(store)))?);
    data_dir::rename_durably(&unfinished, path).map_err(|error| Error::writing(path, error, WRITABLE))
}

fn open(path: &Path, cache_bytes: usize, disk: Arc<DiskState>) -> Result<Database, Error> {
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| Error::writing(path, error, WRITABLE))?;
    let database = FileBackend::new(file).and_then(|file| {
        Database::builder().set_cache_size(cache_bytes).create_with_backend(WatchedFile { file, disk })
    });
    database.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => data_dir::in_use(path),
        DatabaseError::Storage(redb::StorageError::Io(error)) => Error::writing(path, error, WRITABLE),
        error => unreadable(path, &error),
    })
}

fn unreadable(path: &Path, error: &impl std::fmt::Display) -> Error {
    let message = format!("{error}; move the file away to start with an empty one");
    Error::State { path: path.to_owned(), message }
}

/// All rows of a table of JSON values. A value that another version of the program wrote is left out: it is learned
/// again.
pub(super) fn read_json_rows<T: DeserializeOwned>(
    database: &Database,
    table: TableDefinition<'_, &'static str, &'static [u8]>,
) -> Result<HashMap<String, T>, redb::Error> {
    let reading = database.begin_read()?;
    let table = match reading.open_table(table) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(HashMap::new()),
        table => table?,
    };
    let mut known = HashMap::new();
    for row in table.iter()? {
        let (repository, json) = row?;
        if let Ok(value) = serde_json::from_slice(json.value()) {
            known.insert(repository.value().to_owned(), value);
        }
    }
    Ok(known)
}
