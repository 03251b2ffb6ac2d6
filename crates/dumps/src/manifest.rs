//! What a dump is: its selection, its position, its counts and its digest.

use crate::dump_query::Selection;
use serde::{Deserialize, Serialize};

/// What a dump is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// What it contains.
    #[serde(flatten)]
    pub selection: Selection,
    /// Its position: the dump has all changes up to it, and `since` continues after it.
    pub position: String,
    /// Its number of records, deleted ones included.
    pub records: u64,
    /// The deleted ones of them.
    pub deleted: u64,
    /// Its length, in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// The records that the mirror lacks, and therefore the dump; empty if none is known to be missing.
    pub gaps: Vec<Gap>,
}

/// Records of a repository that the mirror lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The id of the repository.
    pub repository: String,
    /// Their number; `None`: the first harvest is not complete, so it is not known.
    pub records: Option<u64>,
}

impl Manifest {
    /// The entity tag without quotes. The position and the digest are in it, so two dumps with different bytes never have
    /// the same one.
    pub fn etag(&self) -> String {
        format!("{}.{}", self.position, self.sha256.get(..32).unwrap_or(&self.sha256))
    }
}
