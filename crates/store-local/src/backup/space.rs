//! The space that a backup needs.

use super::BackupError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The space that a backup of a data folder needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupSize {
    /// Maximum length of the backup, in bytes: it is shorter as far as its files can be compressed.
    pub bytes: u64,
    /// The bytes of the databases, which are copied inside the data folder while the backup is written.
    pub copied_bytes: u64,
}

/// The header, the padding and the checksum of a file in a backup, in bytes.
const FILE_BYTES: u64 = 2 << 10;

impl BackupSize {
    pub(super) fn add(&mut self, bytes: u64, is_copied: bool) {
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(FILE_BYTES);
        if is_copied {
            self.copied_bytes = self.copied_bytes.saturating_add(bytes);
        }
    }
}

/// Checks that this many bytes can be written to the disk of a folder.
///
/// # Errors
///
/// [`BackupError::NoSpace`].
pub fn check_space(folder: &Path, bytes: u64) -> Result<(), BackupError> {
    match oaimend_store::free_space(folder) {
        Some(free_bytes) if free_bytes < bytes => {
            Err(BackupError::NoSpace { folder: folder.to_owned(), bytes, missing_bytes: bytes - free_bytes })
        }
        // A file system that does not say it has no limit that we know.
        _ => Ok(()),
    }
}
