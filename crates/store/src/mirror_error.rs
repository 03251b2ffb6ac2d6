//! Why the store of the mirror fails.

use oaimend_oai::UnixSecs;
use std::path::Path;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// It was closed because another process has taken over.
    #[error("another oaimend has taken the mirror over; send the request again")]
    Closed,
    /// The progress or state was stored since the caller read it.
    #[error("another harvest has changed the mirror of this repository; the harvest starts again")]
    Conflict,
    /// The stamp of a commit is below the last stamp of the collection.
    #[error("the clock is {} seconds behind the mirror; set the clock, or wait", last_secs.since(*stamp_secs))]
    StampTooLow {
        /// The stamp of the commit, in seconds since 1970.
        stamp_secs: UnixSecs,
        /// The stamp of the last change of the collection.
        last_secs: UnixSecs,
    },
    /// A record, an identifier or a page exceeds a limit.
    #[error("{what} of {bytes} bytes does not fit the mirror, which takes {max}")]
    TooLarge {
        /// The name of the oversized value.
        what: &'static str,
        /// Its size, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// A record is damaged on disk.
    #[error("the record is damaged on disk; it is fetched again with the next harvest")]
    Damaged,
    /// A file of records failed.
    #[error("{path}: {source}; check space and rights of the data folder")]
    Io {
        /// The file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The database failed.
    #[error("the index of the mirror failed: {0}; check space and rights of the data folder")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The disk is almost full. Records are not stored, and everything else of the data folder still has space.
    #[error(
        "{path} has {} MiB of free space, and the mirror stores records down to {}; free some space, and the next \
         harvest continues",
        free_bytes >> 20,
        min_bytes >> 20
    )]
    NoSpace {
        /// The folder.
        path: String,
        /// The free space of its disk, in bytes.
        free_bytes: u64,
        /// The space that stays free, in bytes.
        min_bytes: u64,
    },
    /// The task that used the store panicked.
    #[error("the mirror stopped: {0}")]
    Stopped(String),
}

impl MirrorError {
    /// The error of the operating system about a file.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.display().to_string(), source }
    }
}
