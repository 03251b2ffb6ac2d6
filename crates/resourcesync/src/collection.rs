//! The records of a format at one position, and the parts of its lists.

use crate::kind::ListKind;
use crate::partition::{Change, Part, newest_whole_seconds, partition};
use oaimend_oai::UnixSecs;
use oaimend_store::{
    CollectionVersion, ListFilter, ListQuery, ListedPage, MirrorError, MirrorStore, Prefix, RepositoryId,
    StoredRecord,
};
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of records of a part, unless a test chooses fewer. Its document then is within the 50 MiB of the
/// sitemap protocol, whatever the identifiers are.
pub(crate) const PART_RECORDS: u64 = 1_000;

/// Records that are read without their bytes at a time.
const HEADERS_BATCH: usize = 1_000;

/// The limits of the lists of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of records of a part.
    pub part_records_max: NonZeroU64,
    /// Maximum number of changes of a change list without parts. The specification allows 50,000 (section 7).
    pub whole_changes_max: usize,
    /// Maximum number of parts of a list. The specification allows 50,000 entries in an index (section 7).
    pub parts_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            part_records_max: NonZeroU64::new(PART_RECORDS).unwrap_or(NonZeroU64::MIN),
            whole_changes_max: 50_000,
            parts_max: 50_000,
        }
    }
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The format was never harvested completely.
    #[error("the first harvest is not complete; try again later")]
    NeverComplete,
    /// Items of the source are missing in the mirror.
    #[error(
        "{0} items of the source are missing in the mirror, so a list would not be complete; each harvest requests them \
         again"
    )]
    Gap(u64),
    /// Records were lost to damage.
    #[error("records are damaged on disk; the next harvest fetches them again")]
    Damaged,
    /// The repository was removed, and possibly harvested again, while the list was made.
    #[error("the repository was removed while its list was made; request the list again")]
    Removed,
    /// The part is none of the current collection.
    #[error("there is no such part; read the list that names the parts again")]
    UnknownPart,
    /// The list has more parts than an index can name.
    #[error("the list has more than {0} parts, which one index cannot name; harvest by OAI-PMH")]
    TooLarge(usize),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] MirrorError),
}

/// A part of a list, with the time of its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedPart {
    /// The part.
    pub(crate) part: Part,
    /// The stamp of its first change.
    pub(crate) from_secs: UnixSecs,
    /// The time up to which all its changes were: that of the first change after it, or the position.
    pub(crate) until_secs: UnixSecs,
}

/// The records of a format of a repository at one position.
#[derive(Debug)]
pub struct SyncedCollection {
    pub(crate) records: Arc<SyncedRecords>,
    /// The sequence after the last one.
    end: u64,
    at_secs: UnixSecs,
    version: CollectionVersion,
    /// The items of the source that are missing in the mirror, also those whose loss was accepted.
    missing: u64,
    limits: Limits,
}

/// The stored records of a format, as long as the repository is not removed.
#[derive(Debug)]
pub(crate) struct SyncedRecords {
    store: Arc<dyn MirrorStore>,
    repository: String,
    prefix: String,
    /// The number of the collection. One that was removed and harvested again has another one.
    number: u64,
    /// The number of records whose loss was accepted before the collection was opened.
    lost: u64,
}

impl SyncedRecords {
    /// A page of a list.
    ///
    /// # Errors
    ///
    /// A record of the page is damaged, or the store cannot be read.
    pub(crate) async fn page(&self, query: ListQuery) -> Result<ListedPage, SyncError> {
        let page = self.store.list(query).await?;
        // The harvest counts damaged records later than a read finds them.
        if page.damaged > 0 { Err(SyncError::Damaged) } else { Ok(page) }
    }

    /// Checks that no read since the collection was opened lacks records.
    ///
    /// # Errors
    ///
    /// The repository was removed, so lists are empty since. Records were found damaged, so lists lack them since. The
    /// store cannot be read.
    pub(crate) async fn check_whole(&self) -> Result<(), SyncError> {
        let version = self.store.version(RepositoryId(&self.repository), Prefix(&self.prefix)).await?;
        match version {
            Some(version) if version.collection != self.number => Err(SyncError::Removed),
            // Damage whose loss was accepted since then is not known as damage any more.
            Some(version) if version.damaged > 0 || version.lost > self.lost => Err(SyncError::Damaged),
            Some(_) => Ok(()),
            None => Err(SyncError::Removed),
        }
    }
}

impl SyncedCollection {
    /// The records of a format at a position: a responseDate that was determined before this call. Later commits have
    /// later stamps.
    ///
    /// # Errors
    ///
    /// The format was never harvested completely, or records of it are damaged.
    pub async fn open(
        store: Arc<dyn MirrorStore>,
        (repository, prefix): (&str, &str),
        at_secs: UnixSecs,
        limits: Limits,
    ) -> Result<Self, SyncError> {
        // Read before the progress, so that a removal in between changes the number.
        let version = store.version(RepositoryId(repository), Prefix(prefix)).await?;
        let progress = store.progress(RepositoryId(repository), Prefix(prefix)).await?;
        if progress.last_complete.is_none() {
            return Err(SyncError::NeverComplete);
        }
        let version = version.ok_or(SyncError::Removed)?;
        // Vanished records that the source did not confirm are in the mirror, so they are not missing.
        let missing = progress.missing.saturating_add(progress.gaps.count()).saturating_add(version.lost);
        let (number, end) = (version.collection, version.next_sequence);
        let (repository, prefix) = (repository.to_owned(), prefix.to_owned());
        let records = Arc::new(SyncedRecords { store, repository, prefix, number, lost: version.lost });
        records.check_whole().await?;
        Ok(Self { records, end, at_secs, version, missing, limits })
    }

    /// The position of its lists.
    pub(crate) const fn at_secs(&self) -> UnixSecs {
        self.at_secs
    }

    /// The version of the records: lists of one version differ in their position alone. `None` while the second of the last
    /// change is open, because the change is not in the lists yet.
    pub fn version(&self) -> Option<CollectionVersion> {
        (self.version.last_stamp_secs <= self.at_secs).then_some(self.version)
    }

    /// The number of items of the source that are missing in the mirror, so that it is known to have a gap. Records whose loss
    /// was accepted are among them.
    pub const fn missing(&self) -> u64 {
        self.missing
    }

    /// Checks that a list can be whole. A list of all records that lacks some would look complete, and clients would delete
    /// their copies. A list of changes deletes nothing that it does not name, and an item that was missing is a change when the
    /// mirror receives it.
    ///
    /// # Errors
    ///
    /// The list has all records, and some are missing.
    pub const fn check_gaps(&self, kind: ListKind) -> Result<(), SyncError> {
        if self.missing > 0 && !kind.has_changes() { Err(SyncError::Gap(self.missing)) } else { Ok(()) }
    }

    /// The parts of a list, in order.
    ///
    /// # Errors
    ///
    /// Records are missing, there are too many parts, or the store cannot be read.
    pub(crate) async fn parts(&self, kind: ListKind) -> Result<Vec<ListedPart>, SyncError> {
        self.check_gaps(kind)?;
        let records_max = self.limits.part_records_max;
        let counts = self.records.store.count_by_sequence(self.all(kind), records_max).await?;
        let ranges = partition(&counts, records_max);
        if ranges.len() > self.limits.parts_max {
            return Err(SyncError::TooLarge(self.limits.parts_max));
        }
        let mut parts: Vec<ListedPart> = Vec::with_capacity(ranges.len());
        for range in ranges {
            // A record that was committed after the position can be alone in its range.
            let Some(from_secs) = self.first_stamp(kind, self.at_secs, range.clone()).await? else {
                continue;
            };
            let Range { start: first, end } = range;
            let part = Part { collection: self.records.number, at_secs: self.at_secs, first, end };
            if let Some(before) = parts.last_mut() {
                before.until_secs = from_secs;
            }
            parts.push(ListedPart { part, from_secs, until_secs: self.at_secs });
        }
        self.records.check_whole().await?;
        Ok(parts)
    }

    /// The newest changes as one part: whole seconds, as many as one document may have. It has at most `bytes_max` bytes for
    /// entries of `entry_bytes` for an identifier. `None` if the last second alone exceeds a limit.
    ///
    /// `resync` of PyPI, a client that many use, reads no index of change lists.
    ///
    /// # Errors
    ///
    /// A record is damaged, the repository was removed, or the store cannot be read.
    pub(crate) async fn newest_changes(
        &self,
        bytes_max: usize,
        entry_bytes: &(dyn Fn(&str) -> usize + Sync),
    ) -> Result<Option<ListedPart>, SyncError> {
        let count_max = self.limits.whole_changes_max;
        // One more than fits, which shows whether the second of the first one that fits is whole.
        let first = self.first_of_newest(count_max as u64 + 1).await?;
        let (mut changes, mut after) = (Vec::new(), None);
        loop {
            let query = ListQuery {
                filter: self.filter(ListKind::ChangeList, &self.part(first)),
                after,
                count_max: HEADERS_BATCH,
                bytes_max: usize::MAX,
                with_bytes: false,
            };
            let page = self.records.page(query).await?;
            changes.extend(page.records.iter().map(|record| Change {
                stamp_secs: record.stamp_secs,
                sequence: record.sequence,
                bytes: entry_bytes(&record.identifier),
            }));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.records.check_whole().await?;
        let has_all = first == 0;
        if has_all && changes.is_empty() {
            return Ok(Some(self.empty_part()));
        }
        let newest = newest_whole_seconds(&changes, has_all, (count_max, bytes_max)).first();
        Ok(newest.map(|first| ListedPart {
            part: self.part(first.sequence),
            from_secs: first.stamp_secs,
            until_secs: self.at_secs,
        }))
    }

    /// All changes from a sequence on.
    fn part(&self, first: u64) -> Part {
        Part { collection: self.records.number, at_secs: self.at_secs, first, end: self.end }
    }

    /// The lowest sequence from which on there are at most this many changes; 0 if there are no more. Later it may be
    /// lower, because a range only loses changes.
    async fn first_of_newest(&self, count_max: u64) -> Result<u64, MirrorError> {
        let (mut low, mut high) = (0, self.end);
        let mut tried = low;
        while low < high {
            let filter = self.filter(ListKind::ChangeList, &self.part(tried));
            if self.records.store.count(filter).await? <= count_max {
                high = tried;
            } else {
                low = tried + 1;
            }
            tried = low.midpoint(high);
        }
        Ok(high)
    }

    /// The part without records of a list that has none.
    pub(crate) fn empty_part(&self) -> ListedPart {
        let part = Part { collection: self.records.number, at_secs: self.at_secs, first: 0, end: 0 };
        ListedPart { part, from_secs: self.at_secs, until_secs: self.at_secs }
    }

    /// Finds a part that a request names, with the times of its changes.
    ///
    /// # Errors
    ///
    /// Records are missing, no list that was served can have named it, or the store cannot be read.
    pub(crate) async fn find_part(&self, kind: ListKind, part: Part) -> Result<ListedPart, SyncError> {
        self.check_gaps(kind)?;
        let is_possible =
            part.collection == self.records.number && part.at_secs <= self.at_secs && part.first <= part.end;
        // A part only loses records.
        if !is_possible
            || self.records.store.count(self.filter(kind, &part)).await? > self.limits.part_records_max.get()
        {
            return Err(SyncError::UnknownPart);
        }
        let first = self.first_stamp(kind, part.at_secs, part.sequences()).await?;
        let next = self.first_stamp(kind, part.at_secs, part.end..u64::MAX).await?;
        self.records.check_whole().await?;
        let until_secs = next.unwrap_or(part.at_secs);
        Ok(ListedPart { part, from_secs: first.unwrap_or(until_secs), until_secs })
    }

    /// The records of a part.
    pub(crate) fn filter(&self, kind: ListKind, part: &Part) -> ListFilter {
        ListFilter { until_secs: Some(part.at_secs), sequences: Some(part.sequences()), ..self.all(kind) }
    }

    fn all(&self, kind: ListKind) -> ListFilter {
        ListFilter {
            repository: self.records.repository.clone(),
            prefix: self.records.prefix.clone(),
            live_only: !kind.has_changes(),
            ..ListFilter::default()
        }
    }

    /// The stamp of the first record in a range, up to a position.
    async fn first_stamp(
        &self,
        kind: ListKind,
        at_secs: UnixSecs,
        sequences: Range<u64>,
    ) -> Result<Option<UnixSecs>, SyncError> {
        let filter = ListFilter { until_secs: Some(at_secs), sequences: Some(sequences), ..self.all(kind) };
        let mut after = None;
        loop {
            let query =
                ListQuery { filter: filter.clone(), after, count_max: 1, bytes_max: 1, with_bytes: false };
            let page = self.records.page(query).await?;
            let first = page.records.first().map(|record: &StoredRecord| record.stamp_secs);
            after = page.next;
            // A page without records may have a next one.
            if first.is_some() || after.is_none() {
                return Ok(first);
            }
        }
    }
}
