//! The data folder: the lock that makes it one process's, and durable writes of files in it.

use oaimend_base::error::Error;
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The data folder, locked for this process. Dropping it releases the lock; the kernel releases the
/// lock of a process that is killed.
#[derive(Debug)]
pub struct DataDirLock {
    lock: File,
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
            Ok(()) => {
                // It may contain the address of a server that was killed.
                lock.set_len(0).map_err(|error| Error::writing(&path, error, WRITABLE))?;
                Ok(Some(Self { lock, data: data.to_owned() }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::writing(&path, error, WRITABLE)),
        }
    }

    /// The data folder.
    pub fn path(&self) -> &Path {
        &self.data
    }

    /// Names the admin listener of this process to commands that find the folder locked; `None`: it has none.
    ///
    /// # Errors
    ///
    /// The file of the lock cannot be written to.
    pub fn name_admin_listener(&self, address: Option<SocketAddr>) -> std::io::Result<()> {
        let text = address.map_or_else(|| NO_LISTENER.to_owned(), |address| address.to_string());
        (&self.lock).write_all(text.as_bytes())
    }

    /// The admin listener of the process that has locked a data folder.
    pub fn admin_listener_of(data: &Path) -> LockOwner {
        let text = std::fs::read_to_string(data.join("lock")).unwrap_or_default();
        match text.parse() {
            Ok(address) => LockOwner::Server(address),
            Err(_) if text == NO_LISTENER => LockOwner::ServerWithoutListener,
            Err(_) => LockOwner::Other,
        }
    }
}

impl Drop for DataDirLock {
    fn drop(&mut self) {
        // A process that this one has just started has a copy of the file until it executes its program. Closing ours
        // would not release the lock. If it cannot be released, the end of this process does; ignore.
        let _ = self.lock.unlock();
    }
}

/// The process that has locked a data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOwner {
    /// A server with this admin listener.
    Server(SocketAddr),
    /// A server whose admin listener is off.
    ServerWithoutListener,
    /// A command, a server that is starting, or one of an earlier version.
    Other,
}

/// The content of the lock of a server whose admin listener is off.
const NO_LISTENER: &str = "off";

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
