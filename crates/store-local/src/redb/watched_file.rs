//! The file of a database, and whether the disk has failed under it.

use oaimend_store::StoreName;
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use std::io::Error;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The errors of the disk under the file of a store.
#[derive(Debug)]
pub(super) struct DiskState {
    pub(super) store: StoreName,
    /// The database must be opened again: redb refuses all work after an error of the disk.
    pub(super) has_failed: AtomicBool,
    /// No write is known to have succeeded since the last error.
    pub(super) is_unusable: AtomicBool,
}

impl DiskState {
    pub(super) fn new(store: StoreName) -> Self {
        Self { store, has_failed: AtomicBool::new(false), is_unusable: AtomicBool::new(false) }
    }

    /// Notes an error of a file of the store; its database stays open.
    pub(super) fn note_error(&self, error: &dyn std::fmt::Display) {
        if !self.is_unusable.swap(true, Ordering::Relaxed) {
            tracing::error!(
                store = self.store.name(),
                %error,
                "the disk failed; the store is tried again each second; check space and rights of the data folder"
            );
        }
    }

    /// Notes an error of the file of the database.
    fn watch<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result {
            self.note_error(error);
            self.has_failed.store(true, Ordering::Release);
        }
        result
    }
}

/// The file of a database.
#[derive(Debug)]
pub(super) struct WatchedFile {
    pub(super) file: FileBackend,
    pub(super) disk: Arc<DiskState>,
}

impl StorageBackend for WatchedFile {
    fn len(&self) -> Result<u64, Error> {
        self.disk.watch(self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.disk.watch(self.file.read(offset, out))
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        self.disk.watch(self.file.set_len(len))
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.disk.watch(self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.disk.watch(self.file.write(offset, data))
    }

    fn close(&self) -> Result<(), Error> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
