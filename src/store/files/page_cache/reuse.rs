//! The file of a page that leaves the cache, for the next page to be written into.
//!
//! A new file costs a file system more than new content of an old one. ext4, for example, passes over every
//! inode that was freed within the last minutes before it finds one for a new file. In a full cache each page
//! is therefore written into the file of the page that makes room for it.
//!
//! Must stay true: a file that somebody reads is never written again. Readers hold a shared lock on it, and it
//! is written again under an exclusive lock only.

use super::entry::HEAD_BYTES;
use super::{Name, Pages};
use std::fs::{File, TryLockError};
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

impl Pages {
    /// The file of the page that was not used for the longest time, if that page has to make room for `next`
    /// or is of no use `now`, in seconds since 1970.
    pub(super) fn reuse(&self, next: &Name, now: u64) -> Option<Reused> {
        let mut index = self.index();
        let name = index.order.first_key_value()?.1.clone();
        let slot = index.slots.get(&name)?;
        let bytes = slot.bytes;
        let replaced = index.slots.get(next).map_or(0, |slot| slot.bytes);
        let has_room = index.bytes - replaced + bytes <= self.bytes_max;
        // A process that has lost the folder removes nothing.
        if self.is_closed() || slot.useless_from > now && has_room {
            return None;
        }
        index.remove(&name);
        let (page, path) = (self.path(&name), self.part_path(&name));
        match take(&page, &path) {
            Ok(file) => Some(Reused { file, path, bytes }),
            Err(_) => {
                let _ = std::fs::remove_file(page);
                None
            }
        }
    }

    /// Locks a file for reading. False if another page may be written into it, because the page has left the
    /// cache since it was `known` by its edition.
    pub(super) fn is_readable(&self, file: &File, name: &Name, known: Option<i64>) -> bool {
        if let Err(TryLockError::WouldBlock) = file.try_lock_shared() {
            return false;
        }
        let Some(edition) = known else { return true };
        self.index().slots.get(name).is_some_and(|slot| slot.edition == edition)
    }
}

/// Gives the file of a page another name, unless somebody reads it.
fn take(page: &Path, path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(page)?;
    file.try_lock()?;
    // Without its head a file is no page, whatever becomes of it.
    file.write_all_at(&[0; HEAD_BYTES as usize], 0)?;
    std::fs::rename(page, path)?;
    // Whoever opened it before and comes late for the lock sees that the page has left the index.
    file.unlock()?;
    Ok(file)
}
