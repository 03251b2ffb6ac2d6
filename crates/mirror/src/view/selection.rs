//! Lists that contain chosen records only: those of a query, or the members of a view.
//!
//! A [`Selection`] or a [`Membership`] says which records a list contains and in which order; the records come from the
//! mirror. A record that has changed since the selection knows it is left out: its new version has a stamp after the end
//! of the list.

use async_trait::async_trait;
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_repository::Failure;
use oaimend_store::{
    ChosenRecords, ListFilter, ListQuery, ListedPage, MirrorStore, Position, Prefix, RecordStatus,
    RepositoryId, StoredRecord,
};
use std::fmt::Debug;
use std::sync::Arc;

/// The stored form of a record of which only the header is shown.
pub(super) const WITHOUT_METADATA: &[u8] = b"<record><header></header></record>";

/// The records of a set that a request chooses. It knows no record that has left it.
#[async_trait]
pub trait Selection: Debug + Send + Sync {
    /// The next records of a list in the order of their places, of all its repositories together, at most `count_max`.
    /// Fewer records: the list ends after them.
    ///
    /// # Errors
    ///
    /// They are not known, for now or at all, or not those of all commits up to the end of the list.
    async fn list(&self, list: &SelectedList, count_max: usize) -> Result<Vec<SelectedRecord>, Failure>;

    /// The number of records of the whole list.
    ///
    /// # Errors
    ///
    /// As for [`Selection::list`].
    async fn count(&self, list: &SelectedList) -> Result<u64, Failure>;

    /// The selection knows all commits to the mirror with stamps up to this one, in seconds since 1970. A list that
    /// begins now ends there, and has no later responseDate.
    ///
    /// # Errors
    ///
    /// No list can begin, because the selection was never complete.
    async fn complete_until_secs(&self) -> Result<UnixSecs, Failure>;
}

/// The rest of a list for a [`Selection`]. The datestamp of a record is its stamp, or the lowest datestamp of its
/// repository if that is later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedList {
    /// The metadataPrefix.
    pub prefix: String,
    /// The repositories with their lowest datestamps, in seconds since 1970, in the order of their names. None of these
    /// datestamps is after the end of the list.
    pub repositories: Vec<(String, Option<UnixSecs>)>,
    /// The first datestamp, in seconds since 1970; `None`: no bound.
    pub from_secs: Option<UnixSecs>,
    /// The last datestamp, in seconds since 1970; `None`: no bound.
    pub until_secs: Option<UnixSecs>,
    /// The place (datestamp, repository, sequence) after which it continues; `None`: at its start.
    pub after: Option<(UnixSecs, String, u64)>,
}

/// A record of a [`Selection`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedRecord {
    /// The repository.
    pub repository: String,
    /// The identifier.
    pub identifier: String,
    /// Its stamp and its sequence in the mirror.
    pub position: Position,
}

/// The members of a view. It knows which records have left it.
#[async_trait]
pub trait Membership: Debug + Send + Sync {
    /// The next members of one repository in the order of their positions, after `after`, at most `count_max`. The
    /// filter has no set, and its times are stamps. Fewer than `count_max` records: the list ends after them.
    ///
    /// # Errors
    ///
    /// They are not known, for now or at all.
    async fn list(
        &self,
        filter: &ListFilter,
        after: Option<Position>,
        count_max: usize,
    ) -> Result<Vec<MemberRecord>, Failure>;

    /// The number of records that [`Membership::list`] returns in all.
    ///
    /// # Errors
    ///
    /// As for [`Membership::list`].
    async fn count(&self, filter: &ListFilter) -> Result<u64, Failure>;

    /// As [`Selection::complete_until_secs`].
    ///
    /// # Errors
    ///
    /// No list can begin, because the members were never known completely.
    async fn complete_until_secs(&self) -> Result<UnixSecs, Failure>;

    /// The members of a repository with these identifiers, in their order; `None` for one that never was a member.
    ///
    /// # Errors
    ///
    /// They are not known, for now or at all.
    async fn find(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<MemberRecord>>, Failure>;
}

/// A member of a view, or a former one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// The identifier.
    pub identifier: String,
    /// Its stamp in the view, and its sequence in the mirror.
    pub position: Position,
    /// Whether lists contain it as a deleted record, because it has left the view.
    pub has_left: bool,
}

impl MemberRecord {
    /// A record of which only this is known.
    pub(super) fn into_header(self) -> StoredRecord {
        let Position { secs: stamp_secs, sequence } = self.position;
        let (status, bytes) = if self.has_left {
            (RecordStatus::Deleted, Bytes::from_static(WITHOUT_METADATA))
        } else {
            (RecordStatus::Live, Bytes::new())
        };
        let (identifier, datestamp_secs) = (self.identifier, stamp_secs);
        StoredRecord {
            identifier,
            datestamp_secs,
            stamp_secs,
            sequence,
            set_specs: Arc::default(),
            status,
            bytes,
            layout: None,
        }
    }
}

/// Sets that are chosen by the request and not by the sources, such as the records of a query.
#[async_trait]
pub trait QuerySets: Debug + Send + Sync {
    /// The name and the version of their grammar, for Identify.
    fn protocol(&self) -> (&'static str, &'static str);

    /// The records of a set, or the text of a `badArgument`; `None` if a source decides over this set.
    ///
    /// # Errors
    ///
    /// It cannot be known now whether there is such a set.
    async fn find(&self, set: &str) -> Result<Option<ChosenSet>, Failure>;
}

/// The records of a set, or the text of a `badArgument`.
pub type ChosenSet = Result<Arc<dyn Selection>, String>;

/// One page of the members of a view in a repository.
///
/// # Errors
///
/// The members are not known, the store cannot be read, or a record of the page is damaged.
pub(super) async fn list_members(
    store: &dyn MirrorStore,
    members: &dyn Membership,
    query: ListQuery,
) -> Result<ListedPage, Failure> {
    let ListQuery { mut filter, after, count_max, bytes_max, with_bytes } = query;
    let set = filter.set.take();
    let mut chosen = members.list(&filter, after, count_max.saturating_add(1)).await?;
    let has_more = chosen.len() > count_max;
    chosen.truncate(count_max);
    let records = ChosenRecords {
        repository: filter.repository,
        prefix: filter.prefix,
        sequences: chosen.iter().map(|chosen| chosen.position.sequence).collect(),
        bytes_max,
        with_bytes,
    };
    let stored = store.records_at(records).await?;
    let is_at_end = !has_more && stored.len() == chosen.len();
    let mut page = ListedPage::default();
    for (chosen, stored) in chosen.into_iter().zip(stored) {
        page.next = Some(chosen.position);
        // The sets of a record that has left may be unknown, so lists of all sets tell of it.
        let is_listed_anyway = chosen.has_left || set.is_none();
        let shown = present(chosen, stored);
        page.records.extend(
            shown.filter(|record| is_listed_anyway || set.as_ref().is_some_and(|set| is_in_set(record, set))),
        );
    }
    if is_at_end {
        page.next = None;
    }
    Ok(page)
}

/// Whether a record names a set, or one of its subsets.
fn is_in_set(record: &StoredRecord, set: &str) -> bool {
    let names = |set_spec: &String| {
        set_spec.strip_prefix(set).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    record.set_specs.iter().any(names)
}

/// A record as a list contains it; `None` if it has changed since. One that has left needs no stored record.
fn present(chosen: MemberRecord, stored: Option<StoredRecord>) -> Option<StoredRecord> {
    // A collection that was forgotten and harvested again has other records at the same sequences.
    let stored = stored.filter(|stored| stored.identifier == chosen.identifier);
    if !chosen.has_left {
        return stored.map(|stored| StoredRecord { stamp_secs: chosen.position.secs, ..stored });
    }
    let set_specs = stored.map(|stored| stored.set_specs).unwrap_or_default();
    Some(StoredRecord { set_specs, ..chosen.into_header() })
}
