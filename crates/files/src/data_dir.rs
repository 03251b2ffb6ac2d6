//! The data folder: the lock that makes it one process's, and durable writes of files in it.

use oaimend_base::error::Error;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The data folder, locked for this process. Dropping it releases the lock; the kernel releases the
/// lock of a process that is killed.
#[derive(Debug)]
pub struct DataDirLock {
    _lock: File,
    data: PathBuf,
}

impl DataDirLock {
    /// Locks the data folder, and creates it if it does not exist. Returns `None` when another process
    /// holds the lock.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn take(data: &Path) -> Result<Option<Self>, Error> {
        std::fs::create_dir_all(data).map_err(|error| Error::writing(data, error, WRITABLE))?;
        let path = data.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| Error::writing(&path, error, WRITABLE))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { _lock: lock, data: data.to_owned() })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::writing(&path, error, WRITABLE)),
        }
    }

    /// The data folder.
    pub fn path(&self) -> &Path {
        &self.data
    }
}

/// The error for a data folder or database that another process has open.
pub fn in_use(path: &Path) -> Error {
    let message = "another oaimend has this data folder open; give each its own with --data, or start with \
                   --upgrade to take over from it";
    Error::State { path: path.to_owned(), message: message.to_owned() }
}

/// Renames a complete and synced file to its final name, durably.
pub fn rename_durably(unfinished: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::rename(unfinished, path)?;
    match path.parent() {
        // A name alone is in the current folder.
        Some(folder) if folder.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Remedy for a data folder that cannot be written to.
pub const WRITABLE: &str = "name a folder that can be written to with --data";
