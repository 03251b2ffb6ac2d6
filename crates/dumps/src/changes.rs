//! The feed of changes: the headers of changed records of several repositories, in the order of the commits.
//!
//! Changes are ordered by stamp, number of the collection, and sequence. Only closed seconds are read, which no later
//! commit changes, so nothing appears before a position that was given out. A record that changes again moves to its last
//! change.

use crate::position::{Place, Position};
use oaimend_oai::UnixSecs;
use oaimend_store::{
    ListFilter, ListQuery, MirrorError, MirrorStore, Position as ListPosition, Prefix, RecordStatus,
    RepositoryId, StoredRecord,
};

/// Records without bytes that are read at a time are limited by their number alone.
const BYTES_MAX: usize = usize::MAX;

/// A change of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The identifier of the record.
    pub identifier: String,
    /// The id of its repository.
    pub repository: String,
    /// Its metadataPrefix.
    pub format: String,
    /// The stamp of the change, in seconds since 1970.
    pub stamp_secs: UnixSecs,
    /// Whether the record is deleted since.
    pub deleted: bool,
    /// The place of the change in its second.
    pub place: Place,
}

/// A page of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesPage {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Where the next page begins: the second, and the place in it.
    pub next: (UnixSecs, Place),
    /// Whether there may be more changes already. The next page can be empty.
    pub has_more: bool,
}

/// A repository whose changes are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedStart {
    /// Its id.
    pub repository: String,
    /// The formats; empty: all.
    pub prefixes: Vec<String>,
}

/// The highest sequence after which a list can begin: it begins with the next one.
const SEQUENCE_MAX: u64 = u64::MAX - 1;

/// The key of the order.
type Key = (UnixSecs, u64, u64);

/// Reads the changes after a position up to this closed second, at most `count_max`. Memory is limited to twice this number.
///
/// # Errors
///
/// The store cannot be read. [`MirrorError::Damaged`] if a repository lacks records that were damaged on disk.
pub async fn read_changes(
    store: &dyn MirrorStore,
    repositories: &[FeedStart],
    (after, until_secs): (&Position, UnixSecs),
    count_max: usize,
) -> Result<ChangesPage, MirrorError> {
    let mut found: Vec<(Key, Change)> = Vec::new();
    let (mut bound_secs, mut has_more) = (until_secs, false);
    for FeedStart { repository, prefixes } in repositories {
        for size in store.collections(RepositoryId(repository)).await? {
            if !prefixes.is_empty() && !prefixes.contains(&size.prefix) {
                continue;
            }
            let Some(version) = store.version(RepositoryId(repository), Prefix(&size.prefix)).await? else {
                continue;
            };
            if version.damaged > 0 {
                return Err(MirrorError::Damaged);
            }
            if version.last_stamp_secs < after.next_secs() {
                continue;
            }
            let filter = ListFilter {
                repository: repository.clone(),
                prefix: size.prefix.clone(),
                until_secs: Some(bound_secs),
                ..ListFilter::default()
            };
            let reading = Reading { store, filter, collection: version.collection };
            has_more |= reading.read(after, count_max, &mut found).await?;
            found.sort_unstable_by_key(|(key, _)| *key);
            found.truncate(count_max);
            if found.len() == count_max
                && let Some(((secs, ..), _)) = found.last()
            {
                // Later changes are not read from here on, so the page says that there may be more.
                (bound_secs, has_more) = (*secs, true);
            }
        }
    }
    let next = match found.last() {
        Some(((secs, ..), change)) if has_more => (*secs, change.place),
        _ => (until_secs.max(after.secs), Place::End),
    };
    Ok(ChangesPage { changes: found.into_iter().map(|(_, change)| change).collect(), next, has_more })
}

/// A collection whose changes are read.
struct Reading<'s> {
    store: &'s dyn MirrorStore,
    filter: ListFilter,
    collection: u64,
}

impl Reading<'_> {
    /// Reads the first changes after a position. Returns whether there are more.
    async fn read(
        &self,
        after: &Position,
        count_max: usize,
        found: &mut Vec<(Key, Change)>,
    ) -> Result<bool, MirrorError> {
        let (from_secs, mut place) = self.start_after(after);
        let filter = ListFilter { from_secs: Some(from_secs), ..self.filter.clone() };
        let mut left = count_max;
        loop {
            if left == 0 {
                return Ok(true);
            }
            let query = ListQuery {
                filter: filter.clone(),
                after: place,
                count_max: left,
                bytes_max: BYTES_MAX,
                with_bytes: false,
            };
            let page = self.store.list(query).await?;
            if page.damaged > 0 {
                return Err(MirrorError::Damaged);
            }
            left = left.saturating_sub(page.records.len());
            found.extend(page.records.into_iter().map(|record| self.change(record)));
            place = page.next;
            if place.is_none() {
                return Ok(false);
            }
        }
    }

    fn change(&self, record: StoredRecord) -> (Key, Change) {
        let (collection, sequence) = (self.collection, record.sequence);
        let change = Change {
            identifier: record.identifier,
            repository: self.filter.repository.clone(),
            format: self.filter.prefix.clone(),
            stamp_secs: record.stamp_secs,
            deleted: record.status == RecordStatus::Deleted,
            place: Place::After { collection, sequence },
        };
        ((record.stamp_secs, collection, sequence), change)
    }

    /// The first second of the list after a position, and the place in the list. Sequences rise with stamps, so a place in
    /// another collection is only a second.
    fn start_after(&self, after: &Position) -> (UnixSecs, Option<ListPosition>) {
        match after.place {
            Place::End | Place::EndOf(_) => (after.secs.plus(1), None),
            Place::After { collection, .. } if self.collection < collection => (after.secs.plus(1), None),
            Place::After { collection, .. } if self.collection > collection => (after.secs, None),
            Place::After { sequence, .. } => {
                let sequence = sequence.min(SEQUENCE_MAX);
                (after.secs, Some(ListPosition { secs: after.secs, sequence }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::{NewRecord, PageCommit, RecordRepairs};
    use oaimend_store_local::RecordLog;
    use std::collections::BTreeSet;

    const COUNT_MAX: usize = 1_000;
    const UNTIL: UnixSecs = UnixSecs(200);

    async fn commit(store: &RecordLog, (repository, count): (&str, usize), stamp_secs: i64) {
        let record = |number| NewRecord {
            identifier: format!("oai:{repository}:{number}"),
            datestamp_secs: UnixSecs(0),
            set_specs: Vec::new(),
            status: RecordStatus::Live,
            content_hash: 1,
            bytes: bytes::Bytes::from_static(b"<record/>"),
            repairs: RecordRepairs::default(),
        };
        let page = PageCommit {
            repository: repository.to_owned(),
            prefix: "oai_dc".to_owned(),
            stamp_secs: UnixSecs(stamp_secs),
            records: (0..count).map(record).collect(),
            ..PageCommit::default()
        };
        store.commit(page).await.expect("in order");
    }

    /// Follows the feed until it says that there is nothing more. Returns the lengths of the pages.
    async fn follow(store: &RecordLog, repositories: &[&str]) -> (Vec<usize>, BTreeSet<String>) {
        let start = |id: &&str| FeedStart { repository: (*id).to_owned(), prefixes: Vec::new() };
        let starts: Vec<FeedStart> = repositories.iter().map(start).collect();
        let mut after = Position { store: 0, epoch: 0, secs: UnixSecs(0), place: Place::End };
        let (mut lengths, mut found) = (Vec::new(), BTreeSet::new());
        loop {
            let page = read_changes(store, &starts, (&after, UNTIL), COUNT_MAX).await.expect("readable");
            lengths.push(page.changes.len());
            for change in page.changes {
                assert!(found.insert(change.identifier), "a change comes twice");
            }
            (after.secs, after.place) = page.next;
            if !page.has_more {
                assert_eq!(page.next, (UNTIL, Place::End));
                return (lengths, found);
            }
        }
    }

    #[tokio::test]
    async fn a_full_page_of_two_collections_does_not_hide_a_third_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = RecordLog::open(folder.path()).expect("a store");
        for (collection, stamp_secs) in [(("a", 400), 90), (("b", 600), 100), (("c", 30), 150)] {
            commit(&store, collection, stamp_secs).await;
        }
        let (lengths, found) = follow(&store, &["a", "b", "c"]).await;
        assert_eq!((lengths, found.len()), (vec![1_000, 30], 1_030));
        assert!(found.contains("oai:c:29"));
        let (lengths, found) = follow(&store, &["c", "b", "a"]).await;
        assert_eq!((lengths, found.len()), (vec![1_000, 30], 1_030));
    }

    #[tokio::test]
    async fn a_full_page_of_one_collection_is_read_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = RecordLog::open(folder.path()).expect("a store");
        commit(&store, ("a", COUNT_MAX), 100).await;
        let (lengths, found) = follow(&store, &["a"]).await;
        assert_eq!((lengths, found.len()), (vec![1_000, 0], 1_000));
        commit(&store, ("b", 5), 150).await;
        let (lengths, found) = follow(&store, &["a", "b"]).await;
        assert_eq!((lengths, found.len()), (vec![1_000, 5], 1_005));
    }
}
