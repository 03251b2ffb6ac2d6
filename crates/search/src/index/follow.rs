//! Follows the commits of the mirror.

use super::document::IndexedRecord;
use super::error::IndexError;
use super::opened::{Writing, block};
use super::position::{CollectionPosition, IndexPosition};
use crate::record_texts::RecordTexts;
use crate::results::IndexedFormats;
use crate::text::KnownStems;
use oaimend_oai::UnixSecs;
use oaimend_record::{RecordDocument, richest_first};
use oaimend_repository::RecordView;
use oaimend_store::{
    CollectionVersion, Identifier, ListFilter, ListQuery, ListedFormat, MirrorError, MirrorStore, Prefix,
    RecordStatus, RepositoryId, StoredRecord,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of records of a page that is read from the mirror.
const PAGE_RECORDS_MAX: usize = 500;
/// Maximum number of bytes of a page that is read from the mirror.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of bytes of records between two commits: what a killed process reads again.
const COMMIT_BYTES_MAX: usize = 512 << 20;
/// Maximum number of records in several formats between two commits. Their flags are in memory.
const COMMIT_FLAGS_MAX: usize = 500_000;

/// The changes since the last commit of the index.
#[derive(Debug, Default)]
pub(super) struct Following {
    position: IndexPosition,
    /// Whether a record is the one that is shown for its item, by its key, since the last commit.
    flags: HashMap<(String, String, String), bool>,
    uncommitted_bytes: usize,
    is_changed: bool,
    /// The stems of words in records before.
    stems: KnownStems,
    /// Whether the last call has not ended, so the writer may contain more than the position says.
    pub(super) is_interrupted: bool,
}

impl Following {
    pub(super) fn from(position: IndexPosition) -> Self {
        Self { position, ..Self::default() }
    }
}

/// A change of a record for the index.
struct Change {
    prefix: String,
    record: StoredRecord,
    is_shown: bool,
    /// Whether the index may contain an older version.
    may_replace: bool,
}

/// A changed record, and the formats in which its item is live, the best one first.
struct ChangedItem {
    record: StoredRecord,
    live: Vec<LiveFormat>,
}

struct LiveFormat {
    prefix: String,
    /// Whether its record is the one that is shown for the item; `None` if it is not indexed.
    was_shown: Option<bool>,
}

/// A collection of the mirror.
#[derive(Clone, Copy)]
struct Collection<'c> {
    repository: &'c str,
    prefix: &'c str,
    /// The indexed formats of the repository, in the order of [`richest_first`].
    formats: &'c [String],
}

/// Indexes everything that the mirror has committed.
pub(super) struct Follower<'f> {
    pub(super) writing: Writing,
    pub(super) following: &'f mut Following,
    pub(super) mirror: &'f dyn MirrorStore,
    pub(super) formats: &'f IndexedFormats,
}

impl Follower<'_> {
    pub(super) async fn follow(&mut self, settled_secs: Option<UnixSecs>) -> Result<(), IndexError> {
        let repositories = self.mirror.repositories().await?;
        for repository in &repositories {
            let sizes = self.mirror.collections(RepositoryId(repository)).await?;
            let mut prefixes: Vec<String> = sizes.into_iter().map(|size| size.prefix).collect();
            prefixes.retain(|prefix| is_indexed(self.formats, repository, prefix));
            // One format needs no order. The catalog contains the sets too, which may be many.
            if prefixes.len() > 1 {
                let listed = self.mirror.catalog(RepositoryId(repository)).await?.formats;
                prefixes = self.in_order(repository, prefixes, &listed);
            }
            let formats = prefixes;
            self.begin_in_other_order(repository, &formats).await?;
            for prefix in &formats {
                self.follow_collection(Collection { repository, prefix, formats: &formats }).await?;
            }
        }
        self.remove_unknown(&repositories)?;
        let complete = self.following.position.complete_until_secs;
        self.following.position.complete_until_secs = complete.max(settled_secs.map(|secs| secs.0));
        let is_first = !std::mem::replace(&mut self.following.position.is_built, true);
        if self.following.is_changed || is_first {
            return self.commit().await;
        }
        self.writing.opened().set_position(self.following.position.clone());
        Ok(())
    }

    /// Formats in the order of [`richest_first`]. If the source has not listed one of them now, the known order stays: a
    /// repository must not be read again because of one wrong response.
    fn in_order(&self, repository: &str, prefixes: Vec<String>, listed: &[ListedFormat]) -> Vec<String> {
        let namespace = |prefix: &String| listed.iter().find(|format| format.prefix == *prefix);
        if let Some(known) = self.following.position.formats.get(repository)
            && known.len() == prefixes.len()
            && prefixes.iter().all(|prefix| known.contains(prefix))
            && prefixes.iter().any(|prefix| namespace(prefix).is_none())
        {
            return known.clone();
        }
        richest_first(prefixes.iter().map(|prefix| {
            (prefix.as_str(), namespace(prefix).map_or("", |format| format.namespace.as_str()))
        }))
    }

    /// Begins a repository again if one of its formats is not indexed any more, or if they have another order: other
    /// records are shown for its items.
    async fn begin_in_other_order(&mut self, repository: &str, formats: &[String]) -> Result<(), IndexError> {
        let position = &mut self.following.position;
        let known = position.formats.insert(repository.to_owned(), formats.to_vec()).unwrap_or_default();
        let mut rest = formats.iter();
        if known.iter().all(|prefix| rest.any(|other| other == prefix)) {
            return Ok(());
        }
        for prefix in position.collections.remove(repository).unwrap_or_default().into_keys() {
            self.writing.remove_collection(repository, &prefix)?;
        }
        // Until they are read again, lists lack its records.
        self.following.position.complete_until_secs = None;
        // The last commit says which record of an item is shown.
        self.commit().await
    }

    /// Removes the repositories that the mirror has forgotten.
    fn remove_unknown(&mut self, known: &[String]) -> Result<(), IndexError> {
        let IndexPosition { collections, formats, .. } = &mut self.following.position;
        formats.retain(|repository, _| known.contains(repository));
        for (repository, positions) in collections.extract_if(.., |repository, _| !known.contains(repository))
        {
            for prefix in positions.keys() {
                self.writing.remove_collection(&repository, prefix)?;
            }
            self.following.is_changed = true;
        }
        Ok(())
    }

    async fn follow_collection(&mut self, collection: Collection<'_>) -> Result<(), IndexError> {
        let Collection { repository, prefix, .. } = collection;
        let Some(version) = self.mirror.version(RepositoryId(repository), Prefix(prefix)).await? else {
            return Ok(());
        };
        self.begin(collection, &version)?;
        loop {
            let position = self.position_of(collection, &version);
            if position.next_sequence >= version.next_sequence {
                return Ok(());
            }
            let query = ListQuery {
                filter: ListFilter {
                    repository: repository.to_owned(),
                    prefix: prefix.to_owned(),
                    ..ListFilter::default()
                },
                after: position.after(),
                count_max: PAGE_RECORDS_MAX,
                bytes_max: PAGE_BYTES_MAX,
                with_bytes: true,
            };
            let first_until = position.first_until;
            let page = self.mirror.list(query).await?;
            let last = page.records.last().map(|record| (record.stamp_secs.0, record.sequence));
            self.following.uncommitted_bytes +=
                page.records.iter().map(|record| record.bytes.len()).sum::<usize>();
            let changes = self.changes(collection, page.records, first_until).await?;
            self.write(repository.to_owned(), changes).await?;
            let position = self.position_of(collection, &version);
            if let Some((secs, sequence)) = last {
                position.last = Some((secs, sequence));
                position.next_sequence = position.next_sequence.max(sequence + 1);
            }
            match page.next {
                // A page of damaged records only.
                Some(next) => position.last = Some((next.secs.0, next.sequence)),
                // Damaged records at the end have sequences too.
                None => position.next_sequence = position.next_sequence.max(version.next_sequence),
            }
            self.following.is_changed = true;
            if self.following.uncommitted_bytes > COMMIT_BYTES_MAX
                || self.following.flags.len() > COMMIT_FLAGS_MAX
            {
                self.commit().await?;
            }
        }
    }

    /// Begins a collection again if it is not the one that was indexed.
    fn begin(&mut self, collection: Collection<'_>, version: &CollectionVersion) -> Result<(), IndexError> {
        let Collection { repository, prefix, .. } = collection;
        let is_other = self.following.position.of(repository, prefix).is_some_and(|known| {
            // A mirror that was restored from a backup has lower sequences.
            known.number != version.collection || known.next_sequence > version.next_sequence
        });
        if is_other {
            self.writing.remove_collection(repository, prefix)?;
            self.following.position.remove(repository, prefix);
            // Until it is read, lists lack its records.
            self.following.position.complete_until_secs = None;
            self.following.is_changed = true;
        }
        Ok(())
    }

    fn position_of(
        &mut self,
        collection: Collection<'_>,
        version: &CollectionVersion,
    ) -> &mut CollectionPosition {
        let collections =
            self.following.position.collections.entry(collection.repository.to_owned()).or_default();
        collections.entry(collection.prefix.to_owned()).or_insert_with(|| CollectionPosition {
            number: version.collection,
            first_until: version.next_sequence,
            ..CollectionPosition::default()
        })
    }

    /// The changes of a page: its records, and those of other formats that are shown for their items from now on, or no
    /// longer.
    async fn changes(
        &mut self,
        collection: Collection<'_>,
        records: Vec<StoredRecord>,
        first_until: u64,
    ) -> Result<Vec<Change>, IndexError> {
        let Collection { repository, prefix, formats } = collection;
        let mut changes = Vec::new();
        let may_replace = |record: &StoredRecord| record.sequence >= first_until;
        if formats.len() == 1 {
            changes.extend(records.into_iter().map(|record| {
                let may_replace = may_replace(&record);
                Change { prefix: prefix.to_owned(), record, is_shown: true, may_replace }
            }));
            return Ok(changes);
        }
        for ChangedItem { record, live } in self.items(collection, records).await? {
            self.add_other_formats(collection, &record.identifier, &live, &mut changes).await?;
            let is_shown = live.first().is_some_and(|first| first.prefix == prefix);
            if record.status == RecordStatus::Live {
                self.set_flag(repository, prefix, &record.identifier, is_shown);
            }
            let may_replace = may_replace(&record);
            changes.push(Change { prefix: prefix.to_owned(), record, is_shown, may_replace });
        }
        Ok(changes)
    }

    /// Changed records with the other formats of their items. The last commit is read for all of them at once, on a thread
    /// for blocking work.
    async fn items(
        &self,
        collection: Collection<'_>,
        records: Vec<StoredRecord>,
    ) -> Result<Vec<ChangedItem>, IndexError> {
        let Collection { repository, prefix, formats } = collection;
        let mut items = Vec::new();
        for record in records {
            let identifier = Identifier(&record.identifier);
            let stored = self.mirror.formats_of_item(RepositoryId(repository), identifier).await?;
            let is_live = |prefix: &&String| stored.contains(&((*prefix).clone(), RecordStatus::Live));
            let live = formats.iter().filter(is_live).map(|prefix| LiveFormat {
                prefix: prefix.clone(),
                was_shown: self.following.flags.get(&flag_key(repository, prefix, identifier.0)).copied(),
            });
            let live = live.collect();
            items.push(ChangedItem { record, live });
        }
        let opened = Arc::clone(self.writing.opened());
        let (repository, prefix) = (repository.to_owned(), prefix.to_owned());
        block(move || {
            for ChangedItem { record, live } in &mut items {
                let unknown =
                    |format: &&mut LiveFormat| format.was_shown.is_none() && format.prefix != prefix;
                for format in live.iter_mut().filter(unknown) {
                    format.was_shown = opened.is_shown(&repository, &format.prefix, &record.identifier)?;
                }
            }
            Ok(items)
        })
        .await
    }

    /// Adds the record of another format that is shown for its item from now on, or no longer.
    async fn add_other_formats(
        &mut self,
        collection: Collection<'_>,
        identifier: &str,
        live: &[LiveFormat],
        changes: &mut Vec<Change>,
    ) -> Result<(), IndexError> {
        let Collection { repository, prefix, .. } = collection;
        for (place, LiveFormat { prefix: other, was_shown }) in live.iter().enumerate() {
            let is_shown = place == 0;
            if other == prefix || was_shown.is_none_or(|was_shown| was_shown == is_shown) {
                continue;
            }
            let stored =
                self.mirror.record(RepositoryId(repository), Prefix(other), Identifier(identifier)).await;
            match stored {
                Ok(Some(record)) => {
                    self.set_flag(repository, other, identifier, is_shown);
                    changes.push(Change { prefix: other.clone(), record, is_shown, may_replace: true });
                }
                Ok(None) | Err(MirrorError::Damaged) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn set_flag(&mut self, repository: &str, prefix: &str, identifier: &str, is_shown: bool) {
        self.following.flags.insert(flag_key(repository, prefix, identifier), is_shown);
    }

    /// Analyses and indexes records, on a thread for blocking work.
    async fn write(&mut self, repository: String, changes: Vec<Change>) -> Result<(), IndexError> {
        let writing = self.writing.clone();
        let mut stems = std::mem::take(&mut self.following.stems);
        self.following.stems = block(move || {
            write(&writing, &repository, &changes, &mut stems)?;
            Ok(stems)
        })
        .await?;
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), IndexError> {
        let writing = self.writing.clone();
        let position = self.following.position.clone();
        block(move || writing.commit(&position)).await?;
        self.following.flags.clear();
        self.following.uncommitted_bytes = 0;
        self.following.is_changed = false;
        Ok(())
    }
}

fn write(
    writing: &Writing,
    repository: &str,
    changes: &[Change],
    stems: &mut KnownStems,
) -> Result<(), IndexError> {
    for Change { prefix, record, is_shown, may_replace } in changes {
        if *may_replace {
            writing.remove(repository, prefix, &record.identifier)?;
        }
        if record.status == RecordStatus::Deleted {
            continue;
        }
        // A record that cannot be read has no fields. It is found by its identifier.
        let text = std::str::from_utf8(&record.bytes).unwrap_or_default();
        let document = RecordView::read(text)
            .and_then(|view| RecordDocument::read_content(&view).ok())
            .unwrap_or_default();
        let texts = RecordTexts::analysed(repository, &record.identifier, &document, stems);
        writing.add(&IndexedRecord {
            prefix,
            stamp_secs: record.stamp_secs,
            sequence: record.sequence,
            is_shown: *is_shown,
            texts: &texts,
        })?;
    }
    Ok(())
}

fn flag_key(repository: &str, prefix: &str, identifier: &str) -> (String, String, String) {
    (repository.to_owned(), prefix.to_owned(), identifier.to_owned())
}

/// Whether the index contains the records of a repository in a format.
pub(super) fn is_indexed(formats: &IndexedFormats, repository: &str, prefix: &str) -> bool {
    formats.get(repository).is_none_or(|prefixes| prefixes.iter().any(|known| known == prefix))
}
