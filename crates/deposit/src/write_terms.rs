//! The terms on which records are written.

use oaimend_oai::UnixSecs;
use oaimend_store::{RecordStatus, StoredRecord};
use std::fmt::{self, Display};

/// Names a version of a record. No two versions have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag {
    sequence: u64,
    stamp_secs: UnixSecs,
}

impl EntityTag {
    /// The tag of a stored record.
    pub const fn of(record: &StoredRecord) -> Self {
        Self { sequence: record.sequence, stamp_secs: record.stamp_secs }
    }
}

impl Display for EntityTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{:x}-{:x}\"", self.stamp_secs.0, self.sequence)
    }
}

/// What must be stored before a write, so that no writer overwrites what another one has written (RFC 9110, section 13).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Anything.
    #[default]
    None,
    /// A live record.
    Exists,
    /// No live record.
    IsNew,
    /// A live record with one of these tags, as they are written.
    Matches(Vec<String>),
}

impl Condition {
    pub(crate) fn holds(&self, stored: Option<&StoredRecord>) -> bool {
        let live = stored.filter(|record| record.status == RecordStatus::Live);
        match self {
            Self::None => true,
            Self::Exists => live.is_some(),
            Self::IsNew => live.is_none(),
            Self::Matches(tags) => {
                live.is_some_and(|record| tags.contains(&EntityTag::of(record).to_string()))
            }
        }
    }
}

/// The terms on which records are written.
#[derive(Clone, Copy)]
pub struct WriteTerms<'a> {
    /// What must be stored before.
    pub condition: &'a Condition,
    /// Whether the writer may write a record with these setSpecs; `None`: any record.
    pub may_write: Option<MayWrite<'a>>,
}

/// Whether a writer may write a record with these setSpecs.
pub type MayWrite<'a> = &'a (dyn Fn(&[String]) -> bool + Send + Sync);
