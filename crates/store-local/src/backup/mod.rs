//! Copies of a data folder: [`write_backup`] while stores use it, and [`restore`] into a new folder.
//!
//! A backup is a tar in zstd. Its first entry, `manifest.json`, names the format; its last one, `checksums`, has the
//! BLAKE2s hash of each file before it. So a file that was cut or damaged is noticed, and is never restored in part.
//!
//! The databases of one moment are copied while no transaction writes. Other files never change once their database
//! names them, so they are linked at that moment and read afterwards: writers wait for the copies of the databases only.

mod archive;
mod snapshot;
mod space;

pub(crate) use archive::refuse_interrupted;
pub(crate) use snapshot::remove_snapshots;

pub use archive::{RestoredBackup, WrittenBackup, restore, write_backup};
pub use snapshot::backup_size;
pub use space::{BackupSize, check_space};

use oaimend_store::save_error::SaveError;
use std::io;
use std::path::{Path, PathBuf};

/// A frame of zstd without content (RFC 8878, section 3.1.2). Before a backup, which every reader then reads as without
/// it, such frames show that the server still copies the databases.
pub const EMPTY_FRAME: [u8; 8] = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0];

/// Why there is no backup, or why it is not restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A store of the data folder cannot be used.
    #[error(
        "a store of the data folder cannot be used: {0}; see /-/readyz of the server, and try again afterwards"
    )]
    Store(#[from] SaveError),
    /// A file of the data folder cannot be read or written.
    #[error("{}: {error}; check the rights and the space of its disk", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The disk of a folder has too little space. Nothing was written.
    #[error(
        "{}: {bytes} bytes may be needed here, and {missing_bytes} of them are missing; free this space, or use another \
         disk. Nothing was written", folder.display()
    )]
    NoSpace {
        /// The folder.
        folder: PathBuf,
        /// The bytes that may be needed.
        bytes: u64,
        /// How many of them are more than the free space.
        missing_bytes: u64,
    },
    /// The backup cannot be written or read.
    #[error("the backup: {0}; check the rights and the space of its disk")]
    Archive(io::Error),
    /// The file is no backup, or is not whole.
    #[error("the file is no complete backup: {0}; use another copy. Nothing was restored")]
    Damaged(String),
    /// A restore was interrupted while its files got their places.
    #[error(
        "an earlier restore into {} was interrupted; delete everything in this folder, and restore the backup again",
        .0.display()
    )]
    Interrupted(PathBuf),
    /// There is something at the place of the data folder.
    #[error("{} exists and is not empty; name a new folder with --data, or move it away", .0.display())]
    Occupied(PathBuf),
    /// The restored state cannot be opened.
    #[error(
        "the backup is whole, but its state cannot be opened ({0}). Restore it with the version of oaimend that wrote it"
    )]
    Unusable(oaimend_base::error::Error),
}

impl BackupError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }
}
