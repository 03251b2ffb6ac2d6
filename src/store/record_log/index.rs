//! The database of the index. It is opened again after an error of the disk.

use crate::error::Error;
use crate::store::mirror::MirrorError;
use crate::store::redb::{open_or_create, unreadable};
use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Bytes of the index that are held in memory.
pub(super) const CACHE_BYTES: usize = 32 << 20;

/// The index until it is closed.
#[derive(Debug)]
pub(super) struct Index {
    path: PathBuf,
    state: RwLock<State>,
}

#[derive(Debug)]
enum State {
    Open(Database),
    /// The disk failed. redb refuses to use the database again before it is opened again.
    Failed,
    Closed,
}

impl Index {
    /// Opens or creates the index in `folder`.
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("index.redb");
        let database = open_or_create(&path, CACHE_BYTES)?;
        Ok(Self { path, state: RwLock::new(State::Open(database)) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The start-up error for an index that cannot be read.
    pub(super) fn unreadable(&self, error: &impl std::fmt::Display) -> Error {
        unreadable(&self.path, error)
    }

    /// Runs `task` on the database, which stays open until `task` returns.
    fn with<T>(&self, task: impl FnOnce(&Database) -> Result<T, MirrorError>) -> Result<T, MirrorError> {
        self.reopen_failed()?;
        let result = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            match &*state {
                State::Open(database) => task(database),
                State::Failed => return Err(MirrorError::Database(Box::new(redb::Error::PreviousIo))),
                State::Closed => return Err(MirrorError::Closed),
            }
        };
        if let Err(MirrorError::Database(error)) = &result
            && matches!(error.downcast_ref(), Some(redb::Error::Io(_) | redb::Error::PreviousIo))
        {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            if matches!(*state, State::Open(_)) {
                *state = State::Failed;
            }
        }
        result
    }

    fn reopen_failed(&self) -> Result<(), MirrorError> {
        if !matches!(*self.state.read().unwrap_or_else(PoisonError::into_inner), State::Failed) {
            return Ok(());
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Failed) {
            let opened = open_or_create(&self.path, CACHE_BYTES);
            *state = State::Open(opened.map_err(|error| MirrorError::Database(Box::new(error)))?);
        }
        Ok(())
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
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = State::Closed;
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
