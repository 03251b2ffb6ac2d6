//! The database of the index.

use crate::redb::{SharedDatabase, Unavailable};
use oaimend_base::error::Error;
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::mirror::MirrorError;
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
        Ok(Self(SharedDatabase::open_among(
            databases,
            StoreName::Mirror,
            &folder.join("index.redb"),
            CACHE_BYTES,
        )?))
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
    fn with<T>(&self, task: impl FnOnce(&Database) -> Result<T, IndexError>) -> Result<T, IndexError> {
        match self.0.with(task) {
            Ok(done) => done,
            Err(Unavailable::Closed) => Err(MirrorError::Closed.into()),
            Err(Unavailable::Failed(error)) => Err(MirrorError::Database(error).into()),
        }
    }

    /// Reads in one transaction, which sees the last commit.
    pub(super) fn read<T>(
        &self,
        task: impl FnOnce(&ReadTransaction) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.with(|database| task(&database.begin_read().map_err(redb::Error::from)?))
    }

    /// Writes in one transaction. It is on disk when this returns, and it changes nothing if this fails.
    pub(super) fn write<T>(
        &self,
        task: impl FnOnce(&WriteTransaction) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.with(|database| {
            let mut writing = database.begin_write().map_err(redb::Error::from)?;
            // Without this, opening the database after a crash reads all of it.
            writing.set_quick_repair(true);
            let done = task(&writing)?;
            writing.commit().map_err(redb::Error::from)?;
            Ok(done)
        })
    }

    /// Waits for the tasks that use the database, and closes it for good.
    pub(super) fn close(&self) {
        self.0.close();
    }
}

/// Why a task on the index fails.
#[derive(Debug)]
pub(super) enum IndexError {
    /// The store refuses the task, or a file of it failed.
    Store(MirrorError),
    /// The database failed.
    Database(redb::Error),
}

impl From<IndexError> for MirrorError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => error,
            IndexError::Database(error) => Self::Database(Box::new(error)),
        }
    }
}

impl From<MirrorError> for IndexError {
    fn from(error: MirrorError) -> Self {
        Self::Store(error)
    }
}

impl From<redb::Error> for IndexError {
    fn from(error: redb::Error) -> Self {
        Self::Database(error)
    }
}

impl From<redb::StorageError> for IndexError {
    fn from(error: redb::StorageError) -> Self {
        Self::Database(error.into())
    }
}

impl From<redb::TableError> for IndexError {
    fn from(error: redb::TableError) -> Self {
        Self::Database(error.into())
    }
}
