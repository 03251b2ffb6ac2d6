//! One database file of the data folder: created completely or not at all, and closable while callers share it.

use crate::error::Error;
use crate::store::data_dir::{self, WRITABLE};
use crate::store::save_error::SaveError;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// A database until it is closed.
#[derive(Debug)]
pub(super) struct ClosableDatabase(RwLock<Option<Database>>);

impl ClosableDatabase {
    /// Opens or creates the file. A process that is killed meanwhile leaves no file or a complete one. The caller
    /// holds the lock of the data folder.
    pub(super) fn open(path: &Path, cache_bytes: usize) -> Result<Self, Error> {
        Ok(Self(RwLock::new(Some(open_or_create(path, cache_bytes)?))))
    }

    /// The result of `task`; `None` after the database was closed. It stays open until `task` returns.
    pub(super) fn with<T>(&self, task: impl FnOnce(&Database) -> T) -> Option<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(task)
    }

    /// Like [`ClosableDatabase::with`], but never waits: `None` also while the database is being closed.
    pub(super) fn try_with<T>(&self, task: impl FnOnce(&Database) -> T) -> Option<T> {
        self.0.try_read().ok()?.as_ref().map(task)
    }

    /// Reads the content of a database at start; `path` is for the error, which says what to do.
    pub(super) fn load<T: Default>(
        &self,
        path: &Path,
        task: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, Error> {
        self.with(task).unwrap_or_else(|| Ok(T::default())).map_err(|error| unreadable(path, &error))
    }

    /// Runs `task`, which writes, on a thread that may block.
    pub(super) async fn save(
        self: &Arc<Self>,
        task: impl FnOnce(&Database) -> Result<(), redb::Error> + Send + 'static,
    ) -> Result<(), SaveError> {
        let database = Arc::clone(self);
        match tokio::task::spawn_blocking(move || database.with(task)).await {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(Some(Err(error))) => Err(SaveError::Database(Box::new(error))),
            Ok(None) => Err(SaveError::Closed),
            Err(error) => Err(SaveError::Stopped(error.to_string())),
        }
    }

    /// Waits for the tasks that use the database, and closes it for good. Another process can open it then.
    pub(super) fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Opens or creates a database file, as [`ClosableDatabase::open`] does.
pub(in crate::store) fn open_or_create(path: &Path, cache_bytes: usize) -> Result<Database, Error> {
    if !path.exists() {
        create(path, cache_bytes)?;
    }
    open(path, cache_bytes)
}

/// Creates an empty database under a temporary name first, because redb reports a half-written one as damaged.
fn create(path: &Path, cache_bytes: usize) -> Result<(), Error> {
    let unfinished = path.with_extension("redb.part");
    let removed = match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    removed.map_err(|error| Error::writing(&unfinished, error, WRITABLE))?;
    drop(open(&unfinished, cache_bytes)?);
    data_dir::rename_durably(&unfinished, path).map_err(|error| Error::writing(path, error, WRITABLE))
}

fn open(path: &Path, cache_bytes: usize) -> Result<Database, Error> {
    let database = Database::builder().set_cache_size(cache_bytes).create(path);
    database.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => data_dir::in_use(path),
        DatabaseError::Storage(redb::StorageError::Io(error)) => Error::writing(path, error, WRITABLE),
        error => unreadable(path, &error),
    })
}

/// The error for a database that cannot be read.
pub(in crate::store) fn unreadable(path: &Path, error: &impl std::fmt::Display) -> Error {
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
