//! The quarantine: records that are withheld from harvesters, with their raw bytes.
//!
//! An entry exists once for each (repository, identifier, raw bytes), and counts how often the record came. It is open
//! until the source sends the same record whole. Then it is resolved.
//!
//! The trait is what a store implements. The key of a record, its entry, its size and what makes room for it are decided
//! here for all stores.

mod entries;
mod records;
mod selection;
mod size;

pub use entries::{QuarantineEntry, QuarantineState};
pub use records::{KEY_BYTES, QuarantineBatch, QuarantinedRecord, WholeRecords, plain_identifier};
pub use selection::{QUARANTINE_LISTED_MAX, QuarantineQuery, QuarantineSelection};
pub use size::{QuarantineSize, QuarantineSizes};

use super::keys::RepositoryId;
use async_trait::async_trait;

/// A quarantine. When [`Quarantine::put`] returns, entries and raw bytes are on disk; only then may the records be
/// left out of a response.
#[async_trait]
pub trait Quarantine: std::fmt::Debug + Send + Sync {
    /// Stores the records of one response, all or none. If there is no room, the entries that were resolved first are
    /// removed. An entry whose record comes again is open again.
    ///
    /// # Errors
    ///
    /// No record is stored then, and no entry is removed.
    async fn put(&self, batch: QuarantineBatch) -> Result<(), QuarantineError>;

    /// Whether a repository has open entries with an identifier. It is called for each page, so it must not wait for the
    /// disk. A quarantine that cannot be read has none: an entry that is missed is resolved when its record comes again.
    async fn has_open(&self, repository: RepositoryId<'_>) -> bool;

    /// Those of these identifiers, with references resolved, that an open entry of a repository may have. Like
    /// [`Quarantine::has_open`]; it may miss entries of a repository that has more than 100,000.
    async fn open_among(&self, repository: RepositoryId<'_>, identifiers: Vec<String>) -> Vec<String>;

    /// Marks the open entries of whole records as resolved. Returns how many there were.
    ///
    /// # Errors
    ///
    /// No entry is marked then.
    async fn resolve(&self, whole: WholeRecords) -> Result<u64, QuarantineError>;

    /// Entries of a repository in the order of their keys, with their keys.
    ///
    /// # Errors
    ///
    /// The quarantine cannot be read.
    async fn list(
        &self,
        repository: RepositoryId<'_>,
        query: QuarantineQuery,
    ) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError>;

    /// One entry with the raw bytes of the record.
    ///
    /// # Errors
    ///
    /// The quarantine cannot be read.
    async fn find(
        &self,
        repository: RepositoryId<'_>,
        key: &str,
    ) -> Result<Option<(QuarantineEntry, Vec<u8>)>, QuarantineError>;

    /// Removes entries of a repository with their raw bytes. Returns how many there were.
    ///
    /// # Errors
    ///
    /// No entry is removed then. Raw bytes may be gone; the next quarantine of their record stores them again.
    async fn remove(
        &self,
        repository: RepositoryId<'_>,
        which: QuarantineSelection,
    ) -> Result<u64, QuarantineError>;

    /// The size of the quarantine of each repository that has one.
    ///
    /// # Errors
    ///
    /// The quarantine cannot be read.
    async fn sizes(&self) -> Result<Vec<(String, QuarantineSizes)>, QuarantineError>;

    /// Closes the quarantine; later calls fail with [`QuarantineError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// Why the quarantine cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum QuarantineError {
    /// The repository has reached its limit.
    #[error(
        "the quarantine of this repository is full of open entries ({max} bytes); remove records with oaimend quarantine rm, or raise quarantine_bytes_max"
    )]
    Full {
        /// The limit, in bytes.
        max: u64,
    },
    /// It was closed because another process has taken over.
    #[error("another oaimend has taken the quarantine over; send the request again")]
    Closed,
    /// A file of raw bytes failed.
    #[error("the quarantine cannot be written to: {0}; check space and rights of the data folder")]
    Io(#[from] std::io::Error),
    /// The database failed.
    #[error(
        "the index of the quarantine cannot be written to: {0}; check space and rights of the data folder"
    )]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The task that used it panicked.
    #[error("the quarantine stopped: {0}")]
    Stopped(String),
}

#[cfg(test)]
mod tests;
