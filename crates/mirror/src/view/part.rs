//! The part of a list that one repository has: its records, as the view shows them.

use super::options::MirroredSource;
use super::selection::{Membership, Selection, WITHOUT_METADATA};
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_repository::Failure;
use oaimend_rules::member_datestamp;
use oaimend_store::{MirrorStore, Prefix, RecordStatus, StoredRecord};
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

/// The records of its repositories that a list contains.
#[derive(Clone, Debug)]
pub(super) enum Chosen {
    /// All of them, or those that the sources have in the set of the list.
    All,
    /// The records of a set that the request chooses.
    Query(Arc<dyn Selection>),
    /// The members of a view.
    Members(Arc<dyn Membership>),
}

impl Chosen {
    /// The members of a view; `None` for other lists.
    pub(super) fn members(&self) -> Option<&dyn Membership> {
        match self {
            Self::All | Self::Query(_) => None,
            Self::Members(members) => Some(&**members),
        }
    }

    /// The records with these identifiers without their bytes, in their order. The record of a member may be another
    /// version: who shows it compares the sequences.
    pub(super) async fn headers(
        &self,
        store: &dyn MirrorStore,
        (part, prefix): (&Part<'_>, &str),
        identifiers: &[String],
    ) -> Result<Vec<Option<StoredRecord>>, Failure> {
        let repository = part.member.repository();
        let Self::Members(members) = self else {
            let headers = store.headers(repository, Prefix(prefix), identifiers).await?;
            return Ok(headers.into_iter().map(|header| Some(part.present(header?))).collect());
        };
        let found = members.find(repository, Prefix(prefix), identifiers).await?;
        Ok(found.into_iter().map(|found| Some(part.present(found?.into_header()))).collect())
    }
}

/// What a list consists of.
#[derive(Clone, Debug)]
pub(super) struct Parts<'v> {
    pub(super) parts: Vec<Part<'v>>,
    pub(super) chosen: Chosen,
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
        member_datestamp(record.stamp_secs, self.since_secs)
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
                layout: None,
                ..record
            }
        } else {
            record
        }
    }
}
