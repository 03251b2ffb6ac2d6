//! The quarantine: records that are withheld from harvesters, with their raw bytes.
//!
//! An entry exists once for each (repository, identifier, raw bytes), and counts how often the record came.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Most records in one listing for operators.
pub const QUARANTINE_LISTED_MAX: usize = 1_000;

/// A quarantine. When [`Quarantine::put`] returns, entries and raw bytes are on disk; only then may the records be
/// left out of a response.
#[async_trait]
pub trait Quarantine: std::fmt::Debug + Send + Sync {
    /// Stores the records of one response, all or none.
    ///
    /// # Errors
    ///
    /// No record is stored then.
    async fn put(&self, batch: QuarantineBatch) -> Result<(), QuarantineError>;

    /// The first entries of a repository in the order of their keys, at most `count_max`, with their keys.
    ///
    /// # Errors
    ///
    /// The quarantine cannot be read.
    async fn list(
        &self,
        repository: &str,
        count_max: usize,
    ) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError>;

    /// One entry with the raw bytes of the record.
    ///
    /// # Errors
    ///
    /// The quarantine cannot be read.
    async fn find(
        &self,
        repository: &str,
        key: &str,
    ) -> Result<Option<(QuarantineEntry, Vec<u8>)>, QuarantineError>;

    /// Removes entries of a repository with their raw bytes. Returns how many there were.
    ///
    /// # Errors
    ///
    /// No entry is removed then. Raw bytes may be gone; the next quarantine of their record stores them again.
    async fn remove(&self, repository: &str, which: QuarantineSelection) -> Result<u64, QuarantineError>;

    /// The size of the quarantine of each repository that has one.
    ///
    /// # Errors
    ///
    /// The quarantine cannot be read.
    async fn sizes(&self) -> Result<Vec<(String, QuarantineSize)>, QuarantineError>;

    /// Closes the quarantine; later calls fail with [`QuarantineError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// The size of the quarantine of one repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSize {
    /// Its records.
    pub records: u64,
    /// Its bytes on disk.
    pub bytes: u64,
}

/// The entries of a repository that are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuarantineSelection {
    /// The one with this key.
    Key(String),
    /// Those that were last seen before this time, `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`.
    LastSeenBefore(String),
    /// All.
    All,
}

/// Records of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineBatch {
    /// The repository.
    pub repository: String,
    /// The query whose response contained the records.
    pub request: String,
    /// The time of the response, `YYYY-MM-DDThh:mm:ssZ`.
    pub received_at: String,
    /// Most bytes of the repository on disk.
    pub bytes_max: u64,
    /// The records.
    pub records: Vec<QuarantinedRecord>,
}

/// A record to quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedRecord {
    /// Its identifier, if one could be read.
    pub identifier: Option<String>,
    /// The reason, as a kebab-case name.
    pub why: &'static str,
    /// Its offset in the decoded body, in bytes.
    pub offset: u64,
    /// The record as received.
    pub raw: Vec<u8>,
}

/// The entry of a quarantined record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEntry {
    /// Its identifier, if one could be read.
    pub identifier: Option<String>,
    /// The reason when it was last seen, as a kebab-case name.
    pub why: String,
    /// Its offset in the decoded body when it was last seen, in bytes.
    pub offset: u64,
    /// The query whose response contained it when it was last seen.
    pub request: String,
    /// When it was first seen, `YYYY-MM-DDThh:mm:ssZ`.
    pub first_seen: String,
    /// When it was last seen.
    pub last_seen: String,
    /// How often it was seen.
    pub seen: u64,
    /// Length of the raw record, in bytes.
    pub bytes: u64,
}

/// Why the quarantine cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum QuarantineError {
    /// The repository has reached its limit.
    #[error(
        "the quarantine of this repository is full ({max} bytes); remove records with oaimend quarantine rm, or raise quarantine_bytes_max"
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
