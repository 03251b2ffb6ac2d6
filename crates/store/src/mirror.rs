//! The store of the mirror, as a trait: every record of the mirrored repositories, and the progress of the harvests.
//!
//! A *collection* is all records of one repository in one format. Each change of a record gets a stamp and a sequence
//! number. Stamps are the datestamps that the mirror serves: the time of the commit, in seconds since 1970. Sequence
//! numbers of a collection rise with every change and never repeat. Lists are in the order of (stamp, sequence), so a
//! position in a list stays valid while records change: a changed record moves to the end.
//!
//! All operations can be expressed in SQL: a commit is one transaction, a list is a range of an index, and a revision
//! is compared and replaced in the transaction that uses it.

use super::chosen_records::ChosenRecords;
use super::duplicates::Occurrences;
use super::harvest_state::{Catalog, Committed, HarvestProgress, RepositoryState};
use super::keys::{Identifier, Prefix, RepositoryId};
pub use super::mirror_error::MirrorError;
pub use super::mirror_sizes::{CollectionSize, DiskUsage, Verification};
use super::record_layout::RecordLayout;
use super::record_repairs::RecordRepairs;
use async_trait::async_trait;
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

/// The store of the mirror. A repository or format that was never stored is empty; it is no error.
#[async_trait]
pub trait MirrorStore: std::fmt::Debug + Send + Sync {
    /// Stores one harvested page and the progress of its harvest, both or none. They are on disk when this returns.
    ///
    /// A record whose status, sets and content hash are stored already keeps its stamp; only its datestamp may change.
    /// If a page contains an identifier twice, the last record counts. setSpecs beyond the limits of the store are left
    /// out; of a deep one, the highest levels are kept.
    ///
    /// # Errors
    ///
    /// The page is not stored. [`MirrorError::Conflict`] if the progress was stored since it was read,
    /// [`MirrorError::StampTooLow`] if the collection has a later stamp.
    async fn commit(&self, page: PageCommit) -> Result<Committed, MirrorError>;

    /// The stamps that a start must respect.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn stamp_marks(&self) -> Result<StampMarks, MirrorError>;

    /// Reserves responseDates before `until_secs`. A reservation never sinks. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// The reservation is not stored.
    async fn reserve_stamps(&self, until_secs: UnixSecs) -> Result<(), MirrorError>;

    /// The number of repositories that were removed so far. A removal and its number are one transaction.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn removals(&self) -> Result<u64, MirrorError>;

    /// A number that rises with each commit, each removal and each saved catalog or document, before the operation returns.
    /// It may rise more often. It is in memory, and begins again when the store is opened.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn changes(&self) -> Result<u64, MirrorError>;

    /// The repositories that have changed since [`MirrorStore::changes`] had this number, in order. One that has not changed
    /// may be among them.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn changed_since(&self, changes: u64) -> Result<Vec<String>, MirrorError>;

    /// One page of a list. The cost does not depend on the number of records, with one exception: a list by
    /// datestamp in a small set skips the records of other sets.
    ///
    /// # Errors
    ///
    /// The store cannot be read. Damaged records are counted in the page and are no error.
    async fn list(&self, query: ListQuery) -> Result<ListedPage, MirrorError>;

    /// The current records with these sequences, in the same order; `None` where a record has changed since or never
    /// had this sequence. The result ends before the record that would exceed the maximum of bytes.
    ///
    /// # Errors
    ///
    /// The store cannot be read. [`MirrorError::Damaged`] if one of the records must be fetched again.
    async fn records_at(&self, chosen: ChosenRecords) -> Result<Vec<Option<StoredRecord>>, MirrorError>;

    /// The number of records in a list. The cost of a count by stamp does not depend on the number of records. The cost
    /// of a count by datestamp does.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn count(&self, filter: ListFilter) -> Result<u64, MirrorError>;

    /// The number of records of a list by stamp in each range of `step` sequences, as pairs of the first sequence and
    /// the number. Ranges begin at multiples of `step`. A range that lost all its records has the number 0; one whose
    /// sequences were never given is left out. The cost depends on the number of ranges, not on that of records.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn count_by_sequence(
        &self,
        filter: ListFilter,
        step: NonZeroU64,
    ) -> Result<Vec<(u64, u64)>, MirrorError>;

    /// One record; `None` if it was never stored.
    ///
    /// # Errors
    ///
    /// The store cannot be read. [`MirrorError::Damaged`] if the record must be fetched again.
    async fn record(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifier: Identifier<'_>,
    ) -> Result<Option<StoredRecord>, MirrorError>;

    /// The repairs of a record; none if it was never stored.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn repairs(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifier: Identifier<'_>,
    ) -> Result<RecordRepairs, MirrorError>;

    /// The current versions of records without their bytes, in the order of `identifiers`. `None` for a record that was
    /// never stored, and for a damaged one.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn headers(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<StoredRecord>>, MirrorError>;

    /// What the source lists with these identifiers, in their order, as commits have stored it; empty for others.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn occurrences(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Occurrences>, MirrorError>;

    /// The formats in which an item is stored, with the status of its record, in the order of the prefixes.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn formats_of_item(
        &self,
        repository: RepositoryId<'_>,
        identifier: Identifier<'_>,
    ) -> Result<Vec<(String, RecordStatus)>, MirrorError> {
        let found = self.formats_of_items(repository, &[identifier.0.to_owned()]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// The same of many items, in their order. One read is much cheaper than one for each.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn formats_of_items(
        &self,
        repository: RepositoryId<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Vec<(String, RecordStatus)>>, MirrorError>;

    /// The identifiers of a collection in the order of their bytes, after `after`, at most `count_max`.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn identifiers(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        after: Option<Identifier<'_>>,
        count_max: usize,
    ) -> Result<Vec<IdentifierEntry>, MirrorError>;

    /// The identifiers of the records that were lost to damage and must be fetched again, in the order of their
    /// bytes, after `after`, at most `count_max`. A commit of such a record removes it from this list. Records whose
    /// loss was accepted are among them: the source may have them again.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn damaged(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        after: Option<Identifier<'_>>,
        count_max: usize,
    ) -> Result<Vec<String>, MirrorError>;

    /// A folder for temporary files, on a disk with space for them. It need not exist before the first commit.
    fn scratch_folder(&self) -> PathBuf;

    /// The names of all stored repositories, in order.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn repositories(&self) -> Result<Vec<String>, MirrorError>;

    /// The version of a collection; `None` if nothing was committed to it.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn version(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
    ) -> Result<Option<CollectionVersion>, MirrorError>;

    /// The size of each collection of a repository, in the order of the prefixes.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn collections(&self, repository: RepositoryId<'_>) -> Result<Vec<CollectionSize>, MirrorError>;

    /// The disk space of the whole store.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn disk_usage(&self) -> Result<DiskUsage, MirrorError>;

    /// The setSpecs of all stored records of a repository and of their parents, in order.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn sets_in_use(&self, repository: RepositoryId<'_>) -> Result<Vec<String>, MirrorError>;

    /// The formats and sets that the source lists, with their names; empty before they were first saved.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn catalog(&self, repository: RepositoryId<'_>) -> Result<Catalog, MirrorError>;

    /// Stores the formats and sets of a repository in place of older ones.
    ///
    /// # Errors
    ///
    /// They are not stored.
    async fn save_catalog(&self, repository: RepositoryId<'_>, catalog: Catalog) -> Result<(), MirrorError>;

    /// A stored document; `None` if it was never saved.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn document(
        &self,
        repository: RepositoryId<'_>,
        document: Document,
    ) -> Result<Option<Bytes>, MirrorError>;

    /// Stores a document in place of an older one.
    ///
    /// # Errors
    ///
    /// The document is not stored.
    async fn save_document(
        &self,
        repository: RepositoryId<'_>,
        document: Document,
        bytes: Bytes,
    ) -> Result<(), MirrorError>;

    /// The progress of the harvest of a collection; the default before the first commit.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn progress(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
    ) -> Result<HarvestProgress, MirrorError>;

    /// The state of a repository; the default before it was first saved.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn repository_state(&self, repository: RepositoryId<'_>) -> Result<RepositoryState, MirrorError>;

    /// Stores the state of a repository, and returns its new revision.
    ///
    /// # Errors
    ///
    /// The state is not stored. [`MirrorError::Conflict`] if it was stored since it was read.
    async fn save_repository_state(
        &self,
        repository: RepositoryId<'_>,
        state: RepositoryState,
    ) -> Result<u64, MirrorError>;

    /// Checks every record of a repository. Damaged records leave the lists and are named by
    /// [`MirrorStore::damaged`] until they are fetched again.
    ///
    /// # Errors
    ///
    /// The check did not end.
    async fn verify(&self, repository: RepositoryId<'_>) -> Result<Verification, MirrorError>;

    /// Like [`MirrorStore::verify`], if a read has found damage in this repository since its last check.
    ///
    /// # Errors
    ///
    /// The check did not end.
    async fn verify_suspected(&self, repository: RepositoryId<'_>) -> Result<Verification, MirrorError>;

    /// Checks every record of a repository, and accepts the loss of all that are damaged: lists are complete without
    /// them. Returns their number.
    ///
    /// # Errors
    ///
    /// The loss is not accepted in all formats.
    async fn accept_loss(&self, repository: RepositoryId<'_>) -> Result<u64, MirrorError>;

    /// Frees the disk space of replaced records of a repository, and returns the number of freed bytes.
    ///
    /// # Errors
    ///
    /// The space is not freed. No record is lost.
    async fn compact(&self, repository: RepositoryId<'_>) -> Result<u64, MirrorError>;

    /// Removes a repository with everything that is stored of it.
    ///
    /// # Errors
    ///
    /// The repository may be there still, or its space may not be free yet. The next call continues.
    async fn forget(&self, repository: RepositoryId<'_>) -> Result<(), MirrorError>;

    /// Closes the store; later calls fail with [`MirrorError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// One harvested page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageCommit {
    /// The repository.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
    /// The stamp of all changes, in seconds since 1970. It is at least the stamp of the last change of the
    /// collection. The caller chooses it so that no earlier responseDate includes it.
    pub stamp_secs: UnixSecs,
    /// The records, deleted ones included.
    pub records: Vec<NewRecord>,
    /// What the source lists with these identifiers, in place of what is stored of them.
    pub occurrences: Vec<(String, Occurrences)>,
    /// The progress after this page, with the revision that was read.
    pub progress: HarvestProgress,
}

/// The stamps that a start must respect: new stamps are after all stored ones, and not before the reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampMarks {
    /// The highest stamp of all collections, in seconds since 1970; `None` before the first commit.
    pub highest_secs: Option<UnixSecs>,
    /// The time before which responseDates may have been served; `None` before the first reservation.
    pub reserved_secs: Option<UnixSecs>,
}

/// A record as harvested and repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// The identifier.
    pub identifier: String,
    /// The datestamp of the source, in seconds since 1970; the first second of a day where it is a day.
    pub datestamp_secs: UnixSecs,
    /// The setSpecs.
    pub set_specs: Vec<String>,
    /// Whether the record is deleted.
    pub status: RecordStatus,
    /// The [`content_hash`]: equal for two versions if harvesters need not receive the second one.
    pub content_hash: u64,
    /// The record as a self-contained `record` element.
    pub bytes: Bytes,
    /// The repairs that were made in it.
    pub repairs: RecordRepairs,
}

/// Whether a record is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordStatus {
    /// The record has metadata.
    Live,
    /// The record is deleted.
    Deleted,
}

/// The records of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// The repository.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
    /// The setSpec; a set contains the records of its subsets. `None`: all records.
    pub set: Option<String>,
    /// The time that `from_secs` and `until_secs` refer to, and the order of the list.
    pub by: ListOrder,
    /// The first second; `None`: no bound.
    pub from_secs: Option<UnixSecs>,
    /// The last second; `None`: no bound.
    pub until_secs: Option<UnixSecs>,
    /// The sequences; `None`: no bound.
    pub sequences: Option<std::ops::Range<u64>>,
    /// Whether deleted records are left out.
    pub live_only: bool,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// By (stamp, sequence): the order of the commits.
    #[default]
    Stamp,
    /// By (datestamp of the source, sequence).
    Datestamp,
}

/// A request for one page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// The records of the list.
    pub filter: ListFilter,
    /// The page begins after this position; `None`: at the start of the list.
    pub after: Option<Position>,
    /// Maximum number of records of the page.
    pub count_max: usize,
    /// Maximum number of bytes of the records. A page may exceed it by its first record.
    pub bytes_max: usize,
    /// Whether the records of the page contain their bytes. A list of headers does not need them.
    pub with_bytes: bool,
}

/// A position in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The stamp or datestamp of the record at the position, by the order of the list.
    pub secs: UnixSecs,
    /// Its sequence number.
    pub sequence: u64,
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedPage {
    /// The records in order.
    pub records: Vec<StoredRecord>,
    /// The position where the next page begins; `None` at the end of the list. A page without records may have one.
    pub next: Option<Position>,
    /// The number of records of the page that are damaged, and therefore missing.
    pub damaged: u64,
}

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The identifier.
    pub identifier: String,
    /// The datestamp of the source, in seconds since 1970. The datestamp in `bytes` may be older.
    pub datestamp_secs: UnixSecs,
    /// The time of the commit of its last change, in seconds since 1970.
    pub stamp_secs: UnixSecs,
    /// Its place among the changes of the collection.
    pub sequence: u64,
    /// The setSpecs. Records of a page share equal ones.
    pub set_specs: Arc<[String]>,
    /// Whether the record is deleted.
    pub status: RecordStatus,
    /// The `record` element as stored; empty if it was not requested.
    pub bytes: Bytes,
    /// The layout of `bytes`; `None` if they have another form, or if the store does not know it.
    pub layout: Option<RecordLayout>,
}

/// An identifier of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifierEntry {
    /// The identifier.
    pub identifier: String,
    /// The datestamp of the source, in seconds since 1970.
    pub datestamp_secs: UnixSecs,
    /// Whether the record is deleted.
    pub status: RecordStatus,
}

/// A response of a source that is stored as received, after repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Document {
    /// The response to `Identify`.
    Identify,
    /// The response to `ListMetadataFormats`.
    ListMetadataFormats,
    /// All pages of the response to `ListSets`, as one.
    ListSets,
}

/// A version of a collection. Lists of equal versions contain the same records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CollectionVersion {
    /// The number of the collection. A collection that was forgotten and harvested again has another one.
    pub collection: u64,
    /// Rises with each commit.
    pub revision: u64,
    /// The stamp of the last change, in seconds since 1970; the lowest number before the first change.
    pub last_stamp_secs: UnixSecs,
    /// The sequence of the next change. It rises with each change of a record, and with nothing else.
    pub next_sequence: u64,
    /// The number of records that lists lack, because they are damaged.
    pub damaged: u64,
    /// The number of records that lists lack, because their loss was accepted.
    pub lost: u64,
}

/// Attempts to store the state of a repository that others change too.
const UPDATE_ATTEMPTS_MAX: u32 = 20;

/// Changes the state of a repository. Others may change other fields of it meanwhile.
///
/// # Errors
///
/// The state is not stored.
pub async fn update_repository_state(
    store: &dyn MirrorStore,
    repository: RepositoryId<'_>,
    change: impl Fn(&mut RepositoryState),
) -> Result<(), MirrorError> {
    let mut attempts = 0;
    loop {
        let mut state = store.repository_state(repository).await?;
        change(&mut state);
        attempts += 1;
        match store.save_repository_state(repository, state).await {
            Err(MirrorError::Conflict) if attempts < UPDATE_ATTEMPTS_MAX => {}
            saved => return saved.map(drop),
        }
    }
}

/// The hash that tells whether two versions of a record differ for harvesters.
///
/// `content` is the `record` element in parts, without the text of its datestamp: a source that renews datestamps
/// only does not change its records. The hash is SipHash-1-3 with a fixed key, the same on all machines. It detects
/// accidental equality only: the source of a record controls both versions anyway.
pub fn content_hash(status: RecordStatus, set_specs: &[String], content: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_u8(u8::from(status == RecordStatus::Deleted));
    for set_spec in set_specs {
        hasher.write_u64(set_spec.len() as u64);
        hasher.write(set_spec.as_bytes());
    }
    hasher.write_u64(u64::MAX);
    for part in content {
        hasher.write(part);
    }
    hasher.finish()
}
