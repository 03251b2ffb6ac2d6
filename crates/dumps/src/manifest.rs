//! What a dump is: its selection, its position, its counts and its digest.

use crate::dump_query::Selection;
use oaimend_oai::{named_enum, serde_by_name};
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
    /// The records that the dump lacks; empty if none is known to be missing.
    pub gaps: Vec<Gap>,
}

/// Records of a repository that a dump lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The id of the repository, or the name of a view of several ones.
    pub repository: String,
    /// Their number; `None`: the first harvest is not complete, so it is not known.
    pub records: Option<u64>,
    /// Why they are missing.
    #[serde(default)]
    pub cause: GapCause,
}

named_enum! {
    /// Why records are missing.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum GapCause {
        /// The mirror lacks them.
        #[default]
        Mirror = "mirror",
        /// A crosswalk cannot convert them. A record that changes while the dump is written can be counted twice.
        Crosswalk = "crosswalk",
    }
}

serde_by_name!(GapCause);

impl Manifest {
    /// Whether the mirror lacked these records, and no other ones.
    pub fn has_mirror_gaps(&self, gaps: &[Gap]) -> bool {
        self.gaps.iter().filter(|gap| gap.cause == GapCause::Mirror).eq(gaps)
    }

    /// The entity tag without quotes. The position and the digest are in it, so two dumps with different bytes never have
    /// the same one.
    pub fn etag(&self) -> String {
        format!("{}.{}", self.position, self.sha256.get(..32).unwrap_or(&self.sha256))
    }
}
