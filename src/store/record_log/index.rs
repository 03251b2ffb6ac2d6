//! The database of the index.

use crate::error::Error;
use crate::store::databases::Databases;
use crate::store::mirror::MirrorError;
use crate::store::redb::{SharedDatabase, Unavailable};
use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};
use std::path::Path;
use std::sync::Arc;

/// Bytes of the index that are held in memory.
pub(super) const CACHE_BYTES: usize = 32 << 20;

/// The index until it is closed.
#[derive(Debug)]
pub(super) struct Index(Arc<SharedDatabase>);

impl Index {
    /// Opens or creates the index in `folder`.
    pub(super) fn open(folder: &Path, databases: &Databases) -> Result<Self, Error> {
        Ok(Self(SharedDatabase::open_among(databases, "mirror", &folder.join("index.redb"), CACHE_BYTES)?))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The start-up error for an index that cannot be read.
    pub(super) fn unreadable(&self, error: &impl std::fmt::Display) -> Error {
        self.0.unreadable(error)
    }

    /// Notes that a segment could not be written.
    pub(super) fn note_error(&self, error: &std::io::Error) {
        self.0.note_error(error);
    }

    /// Runs `task` on the database, which stays open until `task` returns.
    fn with<T>(&self, task: impl FnOnce(&Database) -> Result<T, MirrorError>) -> Result<T, MirrorError> {
        match self.0.with(task) {
            Ok(done) => done,
            Err(Unavailable::Closed) => Err(MirrorError::Closed),
            Err(Unavailable::Failed(error)) => Err(MirrorError::Database(error)),
        }
    }

    /// Reads in one transaction, which sees the last commit.
    pub(super) fn read<T>(
        &self,
        task: impl FnOnce(&ReadTransaction) -> Result<T, MirrorError>,
    ) -> Result<T, MirrorError> {
        self.with(|database| task(&database.begin_read().map_err(database_error)?))
    }

    /// Writes in one transaction. It is on disk when this returns, and it changes nothing if this fails.
    pub(super) fn write<T>(
        &self,
        task: impl FnOnce(&WriteTransaction) -> Result<T, MirrorError>,
    ) -> Result<T, MirrorError> {
        self.with(|database| {
            let mut writing = database.begin_write().map_err(database_error)?;
            // Without this, opening the database after a crash reads all of it.
            writing.set_quick_repair(true);
            let done = task(&writing)?;
            writing.commit().map_err(database_error)?;
            Ok(done)
        })
    }

    /// Waits for the tasks that use the database, and closes it for good.
    pub(super) fn close(&self) {
        self.0.close();
    }
}

pub(super) fn database_error(error: impl Into<redb::Error>) -> MirrorError {
    MirrorError::Database(Box::new(error.into()))
}

impl From<redb::Error> for MirrorError {
    fn from(error: redb::Error) -> Self {
        database_error(error)
    }
}

impl From<redb::StorageError> for MirrorError {
    fn from(error: redb::StorageError) -> Self {
        database_error(error)
    }
}

impl From<redb::TableError> for MirrorError {
    fn from(error: redb::TableError) -> Self {
        database_error(error)
    }
}
