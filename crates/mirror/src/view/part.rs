//! The part of a list that one repository has: its records, as the view shows them.

use super::options::MirroredSource;
use super::selection::{Selection, WITHOUT_METADATA};
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_store::{RecordStatus, StoredRecord};
use std::sync::Arc;

/// The part of a list that one repository has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'v> {
    pub(crate) member: &'v MirroredSource,
    /// The set of the repository; `None` for all its records.
    pub(crate) set: Option<&'v str>,
    /// The lowest datestamp of its records; `None`: their stamps are their datestamps.
    pub(crate) since_secs: Option<UnixSecs>,
    /// Whether its records are deleted in the view.
    is_withdrawn: bool,
}

/// What a list consists of.
#[derive(Clone, Debug)]
pub(super) struct Parts<'v> {
    pub(super) parts: Vec<Part<'v>>,
    /// The records that the list contains; `None` for all records of its parts.
    pub(super) selection: Option<Arc<dyn Selection>>,
}

impl<'v> Part<'v> {
    /// The part of a repository in a list of this format. `since_secs` is the latest change of the view that the list
    /// knows.
    pub(super) fn new(
        member: &'v MirroredSource,
        prefix: &str,
        set: Option<&'v str>,
        since_secs: Option<UnixSecs>,
    ) -> Self {
        let since_secs = member.since_secs.min(since_secs);
        Self { member, set, since_secs, is_withdrawn: member.is_withdrawn_in(prefix) }
    }

    /// The datestamp of a record in the view, in seconds since 1970.
    pub(super) fn datestamp_secs(&self, record: &StoredRecord) -> UnixSecs {
        self.since_secs.unwrap_or(UnixSecs::MIN).max(record.stamp_secs)
    }

    /// Whether the configuration mirrors these records. Others are deleted in the view.
    pub(super) const fn is_mirrored(&self) -> bool {
        !self.is_withdrawn
    }

    /// A stored record, as the view shows it.
    pub(super) fn present(&self, record: StoredRecord) -> StoredRecord {
        if self.is_withdrawn {
            StoredRecord {
                status: RecordStatus::Deleted,
                bytes: Bytes::from_static(WITHOUT_METADATA),
                ..record
            }
        } else {
            record
        }
    }
}
