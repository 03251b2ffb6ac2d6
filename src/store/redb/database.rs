//! A database of the data folder: made whole or not at all, and closed while others hold it.

use crate::error::Error;
use crate::store::data_dir::{self, WRITABLE};
use redb::{Database, DatabaseError};
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// A database until it is closed.
#[derive(Debug)]
pub(super) struct ClosableDatabase(RwLock<Option<Database>>);

impl ClosableDatabase {
    /// Opens or creates it; the error says what to do. A process that is killed
    /// meanwhile leaves none or a whole one. To be called by who holds the data folder.
    pub(super) fn open(path: &Path, cache_bytes: usize) -> Result<Self, Error> {
        if !path.exists() {
            create(path, cache_bytes)?;
        }
        Ok(Self(RwLock::new(Some(open(path, cache_bytes)?))))
    }

    /// What `task` does with the database, or `closed` when it is none any more.
    /// It stays open until `task` is done.
    pub(super) fn with<T, E>(&self, closed: E, task: impl FnOnce(&Database) -> Result<T, E>) -> Result<T, E> {
        match self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(database) => task(database),
            None => Err(closed),
        }
    }

    /// Waits for whoever uses it, and closes it for good: another process can open it then.
    pub(super) fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Makes an empty one under another name first: redb takes one that is half made for damaged.
fn create(path: &Path, cache_bytes: usize) -> Result<(), Error> {
    let unfinished = path.with_extension("redb.part");
    let made = match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    made.map_err(|error| Error::writing(&unfinished, error, WRITABLE))?;
    drop(open(&unfinished, cache_bytes)?);
    data_dir::rename_durably(&unfinished, path).map_err(|error| Error::writing(path, error, WRITABLE))
}

fn open(path: &Path, cache_bytes: usize) -> Result<Database, Error> {
    let database = Database::builder().set_cache_size(cache_bytes).create(path);
    database.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => data_dir::in_use(path),
        DatabaseError::Storage(redb::StorageError::Io(error)) => Error::writing(path, error, WRITABLE),
        error => Error::State {
            path: path.to_owned(),
            message: format!("{error}; move the file away to begin with an empty one"),
        },
    })
}
