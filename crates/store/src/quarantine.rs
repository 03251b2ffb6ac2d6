//! The quarantine: records that are withheld from harvesters, with their raw bytes.
//!
//! An entry exists once for each (repository, identifier, raw bytes), and counts how often the record came. It is open
//! until the source sends the same record whole. Then it is resolved.

use async_trait::async_trait;
use oaimend_oai::{Argument, Request, Verb};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Most records in one listing for operators.
pub const QUARANTINE_LISTED_MAX: usize = 1_000;

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

    /// Whether a repository has open entries with an identifier. Reads memory only.
    fn has_open(&self, repository: &str) -> bool;

    /// Whether an open entry of a repository may have this identifier, with references resolved. Reads memory only.
    /// `false` for entries that are not in memory, because the repository has too many.
    fn may_be_open(&self, repository: &str, identifier: &str) -> bool;

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
        repository: &str,
        query: QuarantineQuery,
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
    async fn sizes(&self) -> Result<Vec<(String, QuarantineSizes)>, QuarantineError>;

    /// Closes the quarantine; later calls fail with [`QuarantineError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// The size of the quarantine of one repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSizes {
    /// The open entries.
    pub open: QuarantineSize,
    /// The resolved entries.
    pub resolved: QuarantineSize,
}

/// The size of some entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSize {
    /// Their number.
    pub records: u64,
    /// Their bytes on disk.
    pub bytes: u64,
}

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineState {
    /// The source has not sent the record whole since.
    Open,
    /// The source has sent the record whole.
    Resolved,
}

/// The entries of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineQuery {
    /// Only entries in this state.
    pub state: Option<QuarantineState>,
    /// Only entries with keys after this one; empty: all.
    pub after: String,
    /// Most entries.
    pub count_max: usize,
}

/// The entries of a repository that are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuarantineSelection {
    /// The one with this key.
    Key(String),
    /// Those that fit all conditions. Without a condition all.
    Matching {
        /// The state of the entries.
        state: Option<QuarantineState>,
        /// They changed before this time, `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`: see
        /// [`QuarantineEntry::changed_at`].
        before: Option<String>,
    },
}

/// Records or headers that the source sent whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeRecords {
    /// The repository.
    pub repository: String,
    /// Whether they are headers without records.
    pub headers_only: bool,
    /// Their format, if it is known.
    pub metadata_prefix: Option<String>,
    /// Their identifiers, with references resolved.
    pub identifiers: Vec<String>,
    /// The time of the response, `YYYY-MM-DDThh:mm:ssZ`.
    pub received_at: String,
}

/// Records of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineBatch {
    /// The repository.
    pub repository: String,
    /// The query whose response contained the records.
    pub request: String,
    /// The format of the records, if it is known.
    pub metadata_prefix: Option<String>,
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

impl QuarantinedRecord {
    /// The identifier with references resolved.
    pub fn plain_identifier(&self) -> Option<Cow<'_, str>> {
        self.identifier.as_deref().map(plain_identifier)
    }
}

/// An identifier as written in XML, with references resolved.
fn plain_identifier(written: &str) -> Cow<'_, str> {
    let written = written.trim();
    quick_xml::escape::unescape(written).unwrap_or(Cow::Borrowed(written))
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
    /// Its format, if it was known when it was last seen. Earlier versions did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_prefix: Option<String>,
    /// When the source sent the record whole; `None`: not since it was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<String>,
}

impl Default for QuarantineQuery {
    fn default() -> Self {
        Self { state: None, after: String::new(), count_max: QUARANTINE_LISTED_MAX }
    }
}

impl QuarantineState {
    /// Its name in the admin API, the commands and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Open, Self::Resolved].into_iter().find(|state| state.name() == name)
    }
}

impl QuarantineSelection {
    /// All entries.
    pub const ALL: Self = Self::Matching { state: None, before: None };

    /// Whether an entry is one of those to remove.
    pub fn contains(&self, key: &str, entry: &QuarantineEntry) -> bool {
        match self {
            Self::Key(wanted) => key == wanted,
            Self::Matching { state, before } => {
                state.is_none_or(|state| state == entry.state())
                    && before.as_ref().is_none_or(|time| entry.changed_at() < time.as_str())
            }
        }
    }
}

impl QuarantineEntry {
    /// The state.
    pub const fn state(&self) -> QuarantineState {
        match self.resolved_at {
            Some(_) => QuarantineState::Resolved,
            None => QuarantineState::Open,
        }
    }

    /// The time from which the age of the entry counts: when it was resolved, or last seen if it is open.
    pub fn changed_at(&self) -> &str {
        self.resolved_at.as_deref().unwrap_or(&self.last_seen)
    }

    /// The identifier with references resolved.
    pub fn plain_identifier(&self) -> Option<Cow<'_, str>> {
        self.identifier.as_deref().map(plain_identifier)
    }

    /// The format of the record, if it is known.
    pub fn format(&self) -> Option<Cow<'_, str>> {
        if let Some(prefix) = &self.metadata_prefix {
            return Some(Cow::Borrowed(prefix));
        }
        let request = Request::parse(self.request.as_bytes()).ok()?;
        Some(Cow::Owned(request.argument(Argument::MetadataPrefix)?.to_owned()))
    }

    /// Whether it is open, and these records contain the same record whole. A header of a record is the same in all
    /// formats, and a part of the record. If a format is not known, it counts as the same one.
    pub fn is_resolved_by(&self, whole: &WholeRecords) -> bool {
        let Some(identifier) = self.plain_identifier().filter(|_| self.state() == QuarantineState::Open)
        else {
            return false;
        };
        let is_header = Request::parse(self.request.as_bytes())
            .is_ok_and(|request| request.verb() == Verb::ListIdentifiers);
        let is_same_format = || match (self.format(), &whole.metadata_prefix) {
            (Some(one), Some(other)) => one == *other,
            _ => true,
        };
        (is_header || !whole.headers_only && is_same_format())
            && whole.identifiers.iter().any(|whole| *whole == identifier)
    }
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
