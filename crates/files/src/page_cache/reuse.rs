//! Reuses the files of evicted pages.
//!
//! A file system needs more time to create a file than to overwrite one. ext4, for example, checks every recently
//! freed inode before it finds one for a new file. Therefore a full cache writes each page into the file of the page
//! that is evicted for it.
//!
//! Invariants: a file with a reader is never overwritten. Readers hold a shared lock on it, and a writer needs an
//! exclusive lock. A file of which the kernel may have sent a part is never overwritten either: the bytes that wait in the
//! buffer of a connection are those of the file, also after its last reader.

use super::entry::HEAD_BYTES;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The file of an evicted page.
pub(super) struct Reused {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Its length, in bytes.
    pub(super) bytes: u64,
}

/// Renames the file of a page, unless the file has a reader.
pub(super) fn take(page: &Path, path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(page)?;
    file.try_lock()?;
    // A file without its head is not a page, even if a later step fails.
    file.write_all_at(&[0; HEAD_BYTES as usize], 0)?;
    std::fs::rename(page, path)?;
    // A reader that locks the file after this sees that the index does not contain the page.
    file.unlock()?;
    Ok(file)
}
