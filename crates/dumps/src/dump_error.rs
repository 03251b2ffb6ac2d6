//! Why there is no dump.

use oaimend_repository::Failure;
use oaimend_store::MirrorError;
use oaimend_tape::TapeError;
use std::io;
use std::sync::Arc;

/// Why there is no dump. Cheap to clone, because all who wait for a dump get it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DumpError {
    /// The request cannot have a dump.
    #[error("{0}")]
    Refused(String),
    /// The repository cannot be listed now.
    #[error("{}", .0.text())]
    Failed(Box<Failure>),
    /// A repository was removed while its records were read.
    #[error("a repository was removed while its records were read; send the request again")]
    Forgotten,
    /// The repository changes faster than it is read.
    #[error(
        "the repository changes faster than it can be read; send the request again when its harvest has ended"
    )]
    TooManyChanges,
    /// The dump is longer than all dumps may be together.
    #[error(
        "the dump is longer than {} MiB, the longest that is kept; select a set, or read the lists of OAI-PMH",
        max_bytes >> 20
    )]
    TooLarge {
        /// The limit, in bytes.
        max_bytes: u64,
    },
    /// The records of two repositories have one identifier, and a tape holds one record with it.
    #[error(
        "two repositories have records with one identifier, and a tape holds one of them only; set mirror.collisions to \
         prefer, newest or closest-to-origin for _all, or request the format jsonl or csv, which have both"
    )]
    Collision,
    /// A record cannot be written into a dump.
    #[error("the record {identifier} cannot be written: {problem}")]
    Record {
        /// The identifier of the record.
        identifier: String,
        /// The reason.
        problem: String,
    },
    /// The disk has too little space for another dump, and no kept dump can make room any more.
    #[error(
        "the disk of the dumps has {} MiB of free space, and a dump needs {} MiB; free space on it, or select less",
        free_bytes >> 20,
        min_bytes >> 20
    )]
    NoSpace {
        /// The free space, in bytes.
        free_bytes: u64,
        /// The free space that is needed, in bytes.
        min_bytes: u64,
    },
    /// The disk fails, or is full.
    #[error("the folder of the dumps: {0}; check space and rights of the data folder")]
    Disk(Arc<dyn std::error::Error + Send + Sync>),
}

impl From<io::Error> for DumpError {
    fn from(error: io::Error) -> Self {
        Self::Disk(Arc::new(error))
    }
}

impl From<TapeError> for DumpError {
    fn from(error: TapeError) -> Self {
        Self::Disk(Arc::new(error))
    }
}

impl From<Failure> for DumpError {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<MirrorError> for DumpError {
    fn from(error: MirrorError) -> Self {
        match error {
            MirrorError::NoSpace { .. } => Self::Disk(Arc::new(error)),
            error => Self::from(Failure::from(error)),
        }
    }
}
