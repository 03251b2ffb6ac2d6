//! Lists that contain chosen records only: those of a query, or the members of a view.
//!
//! A [`Selection`] says which records a list contains and in which order; the records come from the mirror. A record
//! that has changed since the selection knows it is left out: its new version has a stamp after the end of the list.

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

/// The records that a list may contain.
#[async_trait]
pub trait Selection: Debug + Send + Sync {
    /// The next records of one repository in the order of their positions, after `after`, at most `count_max`. The
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
    ) -> Result<Vec<SelectedRecord>, Failure>;

    /// The number of records that [`Selection::list`] returns in all.
    ///
    /// # Errors
    ///
    /// As for [`Selection::list`].
    async fn count(&self, filter: &ListFilter) -> Result<u64, Failure>;

    /// The selection knows all commits to the mirror with stamps up to this one, in seconds since 1970. A list that
    /// begins now ends there, and has no later responseDate.
    ///
    /// # Errors
    ///
    /// No list can begin, because the selection was never complete.
    async fn complete_until_secs(&self) -> Result<UnixSecs, Failure>;
}

/// The members of a view: a selection that knows which records have left it.
#[async_trait]
pub trait Membership: Selection {
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
    ) -> Result<Vec<Option<SelectedRecord>>, Failure>;
}

/// A record of a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedRecord {
    /// The identifier.
    pub identifier: String,
    /// Its stamp in the selection, and its sequence in the mirror.
    pub position: Position,
    /// Whether lists contain it as a deleted record, because it has left the selection.
    pub has_left: bool,
}

impl SelectedRecord {
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
            set_specs: Vec::new(),
            status,
            bytes,
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

/// One page of the chosen records of a repository.
///
/// # Errors
///
/// The selection does not know its records, the store cannot be read, or a record of the page is damaged.
pub(super) async fn list_selected(
    store: &dyn MirrorStore,
    selection: &dyn Selection,
    query: ListQuery,
) -> Result<ListedPage, Failure> {
    let ListQuery { mut filter, after, count_max, bytes_max, with_bytes } = query;
    let set = filter.set.take();
    let mut chosen = selection.list(&filter, after, count_max.saturating_add(1)).await?;
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
fn present(chosen: SelectedRecord, stored: Option<StoredRecord>) -> Option<StoredRecord> {
    // A collection that was forgotten and harvested again has other records at the same sequences.
    let stored = stored.filter(|stored| stored.identifier == chosen.identifier);
    if !chosen.has_left {
        return stored.map(|stored| StoredRecord { stamp_secs: chosen.position.secs, ..stored });
    }
    let set_specs = stored.map(|stored| stored.set_specs).unwrap_or_default();
    Some(StoredRecord { set_specs, ..chosen.into_header() })
}
