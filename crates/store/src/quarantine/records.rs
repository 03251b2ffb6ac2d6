//! Quarantined records, and the complete records that resolve their entries.

use blake2::{Blake2s256, Digest};
use std::borrow::Cow;

/// Length of a key, in bytes before it is written in hexadecimal digits.
pub const KEY_BYTES: usize = 16;

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
    /// Maximum size of the repository on disk, in bytes.
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
    /// The key of its entry, in hexadecimal digits: the same for the same repository, identifier and raw bytes.
    pub fn key(&self, repository: &str) -> String {
        let identifier = self.identifier.as_deref().unwrap_or_default();
        let mut hash = Blake2s256::new();
        for part in [repository.as_bytes(), identifier.as_bytes(), &self.raw] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex::encode(&hash.finalize()[..KEY_BYTES])
    }

    /// The identifier with references resolved.
    pub fn plain_identifier(&self) -> Option<Cow<'_, str>> {
        self.identifier.as_deref().map(plain_identifier)
    }
}

/// An identifier as written in XML, with references resolved.
pub fn plain_identifier(written: &str) -> Cow<'_, str> {
    let written = written.trim();
    quick_xml::escape::unescape(written).unwrap_or(Cow::Borrowed(written))
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
