//! The file of a page that leaves the cache, for the next page to be written into.
//!
//! A new file costs a file system more than new content of an old one. ext4, for example, passes over every
//! inode that was freed within the last minutes before it finds one for a new file. In a full cache each page
//! is therefore written into the file of the page that makes room for it.
//!
//! Must stay true: a file that somebody reads is never written again. Readers hold a shared lock on it, and it
//! is written again under an exclusive lock only.

use super::entry::HEAD_BYTES;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file that is no page any more.
pub(super) struct Reused {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Its length, in bytes.
    pub(super) bytes: u64,
}

/// Gives the file of a page another name, unless somebody reads it.
pub(super) fn take(page: &Path, path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(page)?;
    file.try_lock()?;
    // Without its head a file is no page, whatever becomes of it.
    file.write_all_at(&[0; HEAD_BYTES as usize], 0)?;
    std::fs::rename(page, path)?;
    // Whoever opened it before and comes late for the lock sees that the page has left the index.
    file.unlock()?;
    Ok(file)
}
