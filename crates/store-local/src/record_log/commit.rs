//! The commit of a harvested page.
//!
//! First the blocks of the new records are written after the valid bytes of a segment, and synced. Then one
//! transaction of the index makes them valid, together with everything else that the page changes. A process that is
//! killed in between has stored nothing.

use super::block::{BLOCK_BYTES, BlockBuilder, BlockFacts};
use super::directory::NewSlot;
use super::index::IndexError;
use super::keys::{
    BlockRow, IDENTIFIER_ROW_BYTES, IdentifierRow, SEQUENCE_KEY_BYTES, TIME_KEY_BYTES, identifier_key,
    sequence_key, stamp_key, time_key,
};
use super::new_blocks::NewBlocks;
use super::occurrences;
use super::postings::PostingChanges;
use super::repairs;
use super::segments::{HEADER_BYTES, SEGMENT_BYTES_MAX};
use super::sets::SetLists;
use super::shared::{Shared, WriterContext};
use super::tables::{
    BLOCKS, COLLECTIONS, CollectionRow, DAMAGED, DATES, IDENTIFIERS, LOST, META, NEXT_COLLECTION,
    NEXT_REPOSITORY, POSTINGS, PROGRESS, REPOSITORIES, RepositoryRow, SEGMENTS, STAMPS, SegmentRow, TOUCHED,
    collection_row, from_json, repository_row, set_format_version, to_json,
};
use oaimend_oai::UnixSecs;
use oaimend_store::harvest_state::{Committed, HarvestProgress};
use oaimend_store::mirror::{MirrorError, NewRecord, PageCommit, RecordStatus};
use oaimend_store::record_limits::{check_free_space, check_record, check_size, clamp_time};
use redb::{ReadableTable, Table, WriteTransaction};
use std::collections::HashMap;
use zstd::bulk::Compressor;

/// Maximum number of bytes of the records of a page.
const PAGE_BYTES_MAX: usize = 1 << 30;

/// Blocks with fewer bytes of records are hardly filled.
const SMALL_BLOCK_BYTES: u64 = BLOCK_BYTES as u64 / 4;

/// Stores a page; returns the state of its collection too.
pub(super) fn commit(shared: &Shared, page: &PageCommit) -> Result<(Committed, CollectionRow), IndexError> {
    check_limits(page)?;
    if !page.records.is_empty() {
        check_free_space(shared.segments.folder())?;
    }
    let mut writer = shared.writer();
    let committed = shared.index.write(|writing| {
        let mut repository = ensure_repository(writing, &page.repository)?;
        let mut collection = ensure_collection(writing, repository.number, &page.prefix)?;
        let stamp_secs = clamp_time(page.stamp_secs);
        check_stamp(&collection, stamp_secs)?;
        let revision = replace_progress(writing, repository.number, page)?;
        let first = collection.next_sequence;
        let WriterContext { compressor, builder, blocks } = &mut *writer;
        // A commit that failed may have left records.
        builder.clear();
        blocks.clear();
        let changes = PageChanges::open(writing, &mut repository, &mut collection, stamp_secs, builder)?;
        let committed = Committed { revision, ..changes.apply(page, compressor, blocks)? };
        occurrences::replace(writing, collection.number, &page.occurrences)?;
        if !blocks.facts.is_empty() {
            append(shared, writing, &mut collection, blocks)?;
            if collection.last_stamp_secs != Some(stamp_secs) {
                writing.open_table(STAMPS)?.insert(&stamp_key(collection.number, stamp_secs), first)?;
                collection.last_stamp_secs = Some(stamp_secs);
            }
        }
        let json = to_json(&collection)?;
        let key = (repository.number, page.prefix.as_str());
        writing.open_table(COLLECTIONS)?.insert(key, json.as_slice())?;
        let json = to_json(&repository)?;
        writing.open_table(REPOSITORIES)?.insert(page.repository.as_str(), json.as_slice())?;
        Ok((committed, collection))
    });
    if let Err(IndexError::Store(MirrorError::Io { source, .. })) = &committed {
        shared.index.note_error(source);
    }
    committed
}

fn check_limits(page: &PageCommit) -> Result<(), IndexError> {
    let mut sum = 0;
    for record in &page.records {
        check_record(record)?;
        sum += record.bytes.len();
    }
    Ok(check_size("a page", sum, PAGE_BYTES_MAX)?)
}

/// The row of a repository, which is created if it is new.
pub(super) fn ensure_repository(writing: &WriteTransaction, name: &str) -> Result<RepositoryRow, IndexError> {
    let mut repositories = writing.open_table(REPOSITORIES)?;
    if let Some(row) = repository_row(&repositories, name)? {
        return Ok(row);
    }
    let number = next_number(writing, NEXT_REPOSITORY, 0)?;
    let row = RepositoryRow { number, next_set: 0, next_set_list: 0 };
    repositories.insert(name, to_json(&row)?.as_slice())?;
    Ok(row)
}

fn ensure_collection(
    writing: &WriteTransaction,
    repository: u32,
    prefix: &str,
) -> Result<CollectionRow, IndexError> {
    if let Some(row) = collection_row(&writing.open_table(COLLECTIONS)?, repository, prefix)? {
        return Ok(row);
    }
    // An operator may delete the folder of the mirror, so that it is harvested again. Views and the search index would
    // take collections with the same numbers for those that they know.
    let first = i64::from(fastrand::u32(..u32::MAX / 2));
    let number = next_number(writing, NEXT_COLLECTION, first)?;
    Ok(CollectionRow { number, ..CollectionRow::default() })
}

/// A number that was never used in this index. The first one is `first`.
fn next_number(writing: &WriteTransaction, name: &str, first: i64) -> Result<u32, IndexError> {
    let mut meta = writing.open_table(META)?;
    let number = meta.get(name)?.map_or(first, |number| number.value());
    meta.insert(name, number + 1)?;
    Ok(u32::try_from(number).map_err(|error| MirrorError::Stopped(error.to_string()))?)
}

fn check_stamp(collection: &CollectionRow, stamp_secs: UnixSecs) -> Result<(), IndexError> {
    match collection.last_stamp_secs {
        Some(last_secs) if stamp_secs < last_secs => {
            Err(MirrorError::StampTooLow { stamp_secs, last_secs }.into())
        }
        _ => Ok(()),
    }
}

fn replace_progress(
    writing: &WriteTransaction,
    repository: u32,
    page: &PageCommit,
) -> Result<u64, IndexError> {
    let mut table = writing.open_table(PROGRESS)?;
    let key = (repository, page.prefix.as_str());
    let stored = table.get(key)?.map(|json| from_json::<HarvestProgress>(json.value())).transpose()?;
    if stored.map_or(0, |stored| stored.revision) != page.progress.revision {
        return Err(MirrorError::Conflict.into());
    }
    let revision = page.progress.revision + 1;
    let json = to_json(&HarvestProgress { revision, ..page.progress.clone() })?;
    table.insert(key, json.as_slice())?;
    Ok(revision)
}

/// The tables that the records of a page change.
struct PageChanges<'t> {
    writing: &'t WriteTransaction,
    repository: &'t mut RepositoryRow,
    collection: &'t mut CollectionRow,
    stamp_secs: UnixSecs,
    identifiers: Table<'t, &'static [u8], &'static [u8; IDENTIFIER_ROW_BYTES]>,
    dates: Table<'t, &'static [u8; TIME_KEY_BYTES], ()>,
    touched: Table<'t, &'static [u8; SEQUENCE_KEY_BYTES], i64>,
    set_lists: SetLists,
    postings: PostingChanges,
    builder: &'t mut BlockBuilder,
    committed: Committed,
    /// Whether the last record was new, so that the next one probably is too.
    expects_new: bool,
}

impl<'t> PageChanges<'t> {
    fn open(
        writing: &'t WriteTransaction,
        repository: &'t mut RepositoryRow,
        collection: &'t mut CollectionRow,
        stamp_secs: UnixSecs,
        builder: &'t mut BlockBuilder,
    ) -> Result<Self, IndexError> {
        Ok(Self {
            identifiers: writing.open_table(IDENTIFIERS)?,
            dates: writing.open_table(DATES)?,
            touched: writing.open_table(TOUCHED)?,
            postings: PostingChanges::new(collection.next_sequence),
            writing,
            repository,
            collection,
            stamp_secs,
            set_lists: SetLists::default(),
            builder,
            committed: Committed::default(),
            expects_new: false,
        })
    }

    /// Applies all records, and fills the blocks to write.
    fn apply(
        mut self,
        page: &PageCommit,
        compressor: &mut Compressor<'_>,
        blocks: &mut NewBlocks,
    ) -> Result<Committed, IndexError> {
        let last: HashMap<&str, usize> =
            page.records.iter().enumerate().map(|(at, record)| (record.identifier.as_str(), at)).collect();
        let number = self.collection.number;
        for (at, record) in page.records.iter().enumerate() {
            if last.get(record.identifier.as_str()) != Some(&at) {
                continue;
            }
            if self.builder.is_full_before(record.bytes.len()) {
                blocks.push(self.builder, number, compressor)?;
            }
            self.apply_record(record)?;
        }
        if !self.builder.is_empty() {
            blocks.push(self.builder, number, compressor)?;
        }
        self.postings.apply(&mut self.writing.open_table(POSTINGS)?, number)?;
        Ok(self.committed)
    }

    fn apply_record(&mut self, record: &NewRecord) -> Result<(), IndexError> {
        let sets = self.set_lists.of_record(self.writing, self.repository, &record.set_specs)?;
        self.committed.surplus_sets += sets.surplus;
        let key = identifier_key(self.collection.number, &record.identifier);
        repairs::replace(self.writing, self.collection, &key, &record.repairs)?;
        let row = IdentifierRow {
            sequence: self.collection.next_sequence,
            content_hash: record.content_hash,
            datestamp_secs: clamp_time(record.datestamp_secs),
            set_list: sets.number,
            status: record.status,
            is_damaged: false,
        };
        // A full harvest would search for each identifier twice: before its row is inserted, and to insert it.
        let is_inserted = self.expects_new;
        let stored = if is_inserted {
            self.identifiers.insert(key.as_slice(), &row.to_bytes())?
        } else {
            self.identifiers.get(key.as_slice())?
        };
        let stored = stored.map(|row| IdentifierRow::from_bytes(row.value()));
        self.expects_new = stored.is_none();
        if let Some(stored) = stored {
            let unchanged =
                IdentifierRow { sequence: stored.sequence, datestamp_secs: stored.datestamp_secs, ..row };
            if stored == unchanged {
                if is_inserted {
                    self.identifiers.insert(key.as_slice(), &stored.to_bytes())?;
                }
                return self.touch(&key, stored, row.datestamp_secs);
            }
            self.remove_version(&key, stored)?;
        }
        self.committed.added += u64::from(stored.is_none());
        let was_deleted = stored.is_some_and(|stored| stored.status == RecordStatus::Deleted);
        match record.status {
            RecordStatus::Deleted if !was_deleted => self.committed.deleted += 1,
            _ => self.committed.stored += 1,
        }
        if !is_inserted {
            self.identifiers.insert(key.as_slice(), &row.to_bytes())?;
        }
        self.add_version(row, (record, &sets.set_specs))
    }

    /// Gives a record a new datestamp, if it differs.
    fn touch(
        &mut self,
        key: &[u8],
        stored: IdentifierRow,
        datestamp_secs: UnixSecs,
    ) -> Result<(), IndexError> {
        if stored.datestamp_secs == datestamp_secs {
            self.committed.unchanged += 1;
            return Ok(());
        }
        let number = self.collection.number;
        self.dates.remove(&time_key(number, stored.datestamp_secs, stored.sequence))?;
        self.dates.insert(&time_key(number, datestamp_secs, stored.sequence), ())?;
        let row = IdentifierRow { datestamp_secs, ..stored };
        self.identifiers.insert(key, &row.to_bytes())?;
        if self.touched.insert(&sequence_key(number, stored.sequence), datestamp_secs.0)?.is_none() {
            self.collection.touched += 1;
        }
        self.committed.touched += 1;
        Ok(())
    }

    fn remove_version(&mut self, key: &[u8], stored: IdentifierRow) -> Result<(), IndexError> {
        if stored.is_damaged {
            match self.writing.open_table(DAMAGED)?.remove(key)? {
                Some(_) => self.collection.damaged -= 1,
                None => {
                    self.writing.open_table(LOST)?.remove(key)?;
                    self.collection.lost -= 1;
                }
            }
            return Ok(());
        }
        let number = self.collection.number;
        let sets = self.set_lists.sets(self.writing, self.repository.number, stored.set_list)?;
        self.postings.remove(&sets, stored.status, stored.sequence);
        self.dates.remove(&time_key(number, stored.datestamp_secs, stored.sequence))?;
        if self.collection.touched > 0
            && self.touched.remove(&sequence_key(number, stored.sequence))?.is_some()
        {
            self.collection.touched -= 1;
        }
        *self.counter(stored.status) -= 1;
        Ok(())
    }

    fn add_version(
        &mut self,
        row: IdentifierRow,
        (record, set_specs): (&NewRecord, &[String]),
    ) -> Result<(), IndexError> {
        let sets = self.set_lists.sets(self.writing, self.repository.number, row.set_list)?;
        self.postings.add(&sets, row.status, row.sequence);
        self.dates.insert(&time_key(self.collection.number, row.datestamp_secs, row.sequence), ())?;
        *self.counter(row.status) += 1;
        self.collection.next_sequence += 1;
        self.builder.push(NewSlot {
            sequence: row.sequence,
            stamp_secs: self.stamp_secs,
            datestamp_secs: row.datestamp_secs,
            status: row.status,
            identifier: &record.identifier,
            set_specs,
            bytes: &record.bytes,
        });
        Ok(())
    }

    fn counter(&mut self, status: RecordStatus) -> &mut u64 {
        match status {
            RecordStatus::Live => &mut self.collection.live,
            RecordStatus::Deleted => &mut self.collection.tombstones,
        }
    }
}

/// Writes blocks to the open segment of a collection, or to a new one, and notes them in the index.
fn append(
    shared: &Shared,
    writing: &WriteTransaction,
    collection: &mut CollectionRow,
    blocks: &NewBlocks,
) -> Result<(), IndexError> {
    let mut segments = writing.open_table(SEGMENTS)?;
    let open = match collection.open_segment {
        Some(segment) => {
            let row = segments.get((collection.number, segment))?;
            row.map(|json| from_json::<SegmentRow>(json.value())).transpose()?.map(|row| (segment, row))
        }
        None => None,
    };
    // A file that is missing is damage of the records in it, and must not stop the records that follow.
    let open = open.filter(|(segment, row)| {
        row.bytes + blocks.bytes.len() as u64 <= SEGMENT_BYTES_MAX
            && shared.segments.exists((collection.number, *segment))
    });
    let (segment, mut row) = match open {
        Some(open) => open,
        None => {
            let segment = collection.next_segment;
            collection.next_segment += 1;
            (segment, SegmentRow::default())
        }
    };
    collection.open_segment = Some(segment);
    shared.segments.append((collection.number, segment), row.bytes, &blocks.bytes)?;
    let before = row.clone();
    add_blocks(writing, collection.number, segment, &mut row, &blocks.facts)?;
    collection.bytes += row.bytes - before.bytes;
    collection.raw_bytes += row.raw_bytes - before.raw_bytes;
    collection.slots += row.slots - before.slots;
    collection.small_blocks += row.small_blocks - before.small_blocks;
    segments.insert((collection.number, segment), to_json(&row)?.as_slice())?;
    Ok(())
}

/// Notes blocks that were written to the end of a segment.
pub(super) fn add_blocks(
    writing: &WriteTransaction,
    collection: u32,
    segment: u32,
    row: &mut SegmentRow,
    blocks: &[BlockFacts],
) -> Result<(), IndexError> {
    set_format_version(writing)?;
    let mut table = writing.open_table(BLOCKS)?;
    for block in blocks {
        if row.blocks == 0 {
            row.bytes = HEADER_BYTES;
            row.first = block.first;
        }
        let too_large = |_| MirrorError::Stopped("a segment is too large".to_owned());
        let place = BlockRow {
            segment,
            offset: u32::try_from(row.bytes).map_err(too_large)?,
            directory_end: block.directory_end,
            bytes: block.bytes,
            last: block.last,
        };
        table.insert(&sequence_key(collection, block.first), &place.to_bytes())?;
        row.bytes += u64::from(block.bytes);
        row.raw_bytes += block.raw_bytes;
        row.slots += u64::from(block.records);
        row.blocks += 1;
        row.small_blocks += u64::from(block.raw_bytes < SMALL_BLOCK_BYTES);
        row.last = block.last;
    }
    Ok(())
}
