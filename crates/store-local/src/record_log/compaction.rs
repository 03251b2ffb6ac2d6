//! Compaction: rewrites segments without their replaced records, and joins hardly filled blocks.
//!
//! A record keeps its sequence, so lists and positions do not change. The new segment is written and synced first; one
//! transaction then replaces the places of the blocks. Commits and reads continue meanwhile. Records that are replaced
//! meanwhile stay in the new segment as dead ones.

use super::block::{BlockBuilder, BlockFacts};
use super::block_reader::{ListedBlock, next_blocks, read_block};
use super::commit::add_blocks;
use super::directory::NewSlot;
use super::index::IndexError;
use super::kept_blocks::ReadBlock;
use super::keys::{SEQUENCE_KEY_BYTES, sequence_key, sequence_of};
use super::new_blocks::NewBlocks;
use super::postings::{ALL, Postings};
use super::shared::{CollectionKey, Shared, change_collection, compressor};
use super::tables::{
    BLOCKS, COLLECTIONS, CollectionRow, POSTINGS, SEGMENTS, SegmentRow, TOUCHED, collection_row, from_json,
    to_json,
};
use super::verify::verify_collection;
use oaimend_oai::UnixSecs;
use oaimend_store::mirror::MirrorError;
use redb::{ReadTransaction, ReadableTable, WriteTransaction};
use std::collections::BTreeMap;
use std::ops::Range;

/// Share of dead records of a collection at which its compaction starts, in percent.
const DEAD_PERCENT_MAX: u64 = 30;
/// Share of dead records at which a segment is rewritten, in percent.
const SEGMENT_DEAD_PERCENT_MAX: u64 = 25;
/// Fewest records of a collection that is compacted.
const SLOTS_MIN: u64 = 1024;
/// Hardly filled blocks since the last compaction at which the next one starts.
const SMALL_BLOCKS_MAX: u64 = 64;
/// Fewest hardly filled blocks that are worth a new segment.
const SMALL_BLOCKS_JOINED_MIN: u64 = 16;
/// Maximum number of bytes of the segments that are rewritten together.
const RUN_BYTES_MAX: u64 = 64 << 20;
/// Bytes of encoded blocks that are written together.
const WRITE_BYTES: usize = 4 << 20;

/// Whether a collection needs a compaction.
pub(super) fn is_due(collection: &CollectionRow) -> bool {
    let dead = collection.slots.saturating_sub(collection.live + collection.tombstones);
    let is_sparse = collection.slots >= SLOTS_MIN && dead * 100 > collection.slots * DEAD_PERCENT_MAX;
    is_sparse || collection.small_blocks >= SMALL_BLOCKS_MAX
}

/// Consecutive segments in the order of their sequences.
type Run = Vec<(u32, SegmentRow)>;

/// Compacts a collection, and returns the number of freed bytes. `is_thorough`: also where little is freed.
pub(super) fn compact(shared: &Shared, key: CollectionKey<'_>, is_thorough: bool) -> Result<u64, IndexError> {
    let _turn = shared.maintenance();
    let runs = shared.index.read(|reading| plan(reading, key, is_thorough))?;
    let mut freed = 0;
    for run in runs {
        shared.check_open()?;
        freed += match rewrite(shared, key, &run)? {
            Some(freed) => freed,
            None => {
                // A block is damaged. Its records leave the lists, and the others can be rewritten.
                verify_collection(shared, key)?;
                rewrite(shared, key, &run)?.unwrap_or(0)
            }
        };
    }
    change_collection(shared, key, |_, collection| {
        collection.small_blocks = 0;
        Ok(())
    })?;
    Ok(freed)
}

/// The segments to rewrite.
fn plan(
    reading: &ReadTransaction,
    key: CollectionKey<'_>,
    is_thorough: bool,
) -> Result<Vec<Run>, IndexError> {
    let collection = collection_row(&reading.open_table(COLLECTIONS)?, key.repository, key.prefix)?;
    let Some(collection) = collection else { return Ok(Vec::new()) };
    let table = reading.open_table(POSTINGS)?;
    let postings = Postings { table: &table, collection: collection.number, set: ALL, live_only: false };
    let mut segments = Run::new();
    for row in reading.open_table(SEGMENTS)?.range((collection.number, 0)..(collection.number + 1, 0))? {
        let (key, json) = row?;
        segments.push((key.value().1, from_json(json.value())?));
    }
    segments.sort_by_key(|(_, segment)| segment.first);
    let mut runs: Vec<(Run, bool)> = vec![(Run::new(), false)];
    for (number, segment) in segments {
        let listed = postings.count(segment.first..segment.last + 1)?;
        let dead = segment.slots.saturating_sub(listed);
        let is_sparse =
            if is_thorough { dead > 0 } else { dead * 100 >= segment.slots * SEGMENT_DEAD_PERCENT_MAX };
        let is_candidate = is_sparse || segment.small_blocks * 2 >= segment.blocks;
        let current = runs.last_mut().filter(|(run, _)| {
            let bytes: u64 = run.iter().map(|(_, segment)| segment.bytes).sum();
            is_candidate && (run.is_empty() || bytes + segment.bytes <= RUN_BYTES_MAX)
        });
        match current {
            Some((run, is_worthwhile)) => {
                *is_worthwhile |= is_sparse;
                run.push((number, segment));
            }
            None if is_candidate => runs.push((vec![(number, segment)], is_sparse)),
            None => runs.push((Run::new(), false)),
        }
    }
    let small_blocks = |run: &Run| run.iter().map(|(_, segment)| segment.small_blocks).sum::<u64>();
    let fewest = if is_thorough { 2 } else { SMALL_BLOCKS_JOINED_MIN };
    runs.retain(|(run, is_worthwhile)| !run.is_empty() && (*is_worthwhile || small_blocks(run) >= fewest));
    Ok(runs.into_iter().map(|(run, _)| run).collect())
}

/// Rewrites a run, and returns the number of freed bytes; `None` if a block is damaged.
fn rewrite(shared: &Shared, key: CollectionKey<'_>, run: &Run) -> Result<Option<u64>, IndexError> {
    let (new, run) = change_collection(shared, key, |writing, collection| reserve(writing, collection, run))?;
    let Some((number, first)) = new else { return Ok(Some(0)) };
    let last = run.iter().map(|(_, segment)| segment.last).max().unwrap_or(first);
    let Some(copied) = Copy::new(shared, number)?.run(first..last + 1)? else {
        shared.segments.remove([number])?;
        return Ok(None);
    };
    let freed = change_collection(shared, key, |writing, collection| {
        replace(
            writing,
            collection,
            &Replacement { segment: number.1, first, last, run: &run, copied: &copied },
        )
    })?;
    shared.segments.remove(run.iter().map(|(segment, _)| (number.0, *segment)))?;
    Ok(Some(freed))
}

/// The new segment, with the first sequence of the run; and the run as it is now.
type Reserved = (Option<((u32, u32), u64)>, Run);

/// Takes a number for the new segment. Commits append to none of the old ones from now on.
fn reserve(
    writing: &WriteTransaction,
    collection: &mut CollectionRow,
    run: &Run,
) -> Result<Reserved, IndexError> {
    let segments = writing.open_table(SEGMENTS)?;
    let mut current = Run::new();
    for (segment, _) in run {
        if let Some(json) = segments.get((collection.number, *segment))? {
            current.push((*segment, from_json(json.value())?));
        }
        collection.open_segment = collection.open_segment.filter(|open| open != segment);
    }
    let Some(first) = current.iter().map(|(_, segment)| segment.first).min() else {
        return Ok((None, current));
    };
    let number = collection.next_segment;
    collection.next_segment += 1;
    Ok((Some(((collection.number, number), first)), current))
}

/// The copy of a run.
struct Copied {
    blocks: Vec<BlockFacts>,
    /// Sequences and the later datestamps that are in the new blocks.
    touched: Vec<(u64, UnixSecs)>,
}

/// Copies the listed records of a run to a new segment.
struct Copy<'s> {
    shared: &'s Shared,
    id: (u32, u32),
    compressor: zstd::bulk::Compressor<'static>,
    builder: BlockBuilder,
    blocks: NewBlocks,
    written_bytes: u64,
    touched: Vec<(u64, UnixSecs)>,
}

impl<'s> Copy<'s> {
    fn new(shared: &'s Shared, id: (u32, u32)) -> Result<Self, IndexError> {
        Ok(Self {
            shared,
            id,
            compressor: compressor().map_err(|error| MirrorError::Stopped(error.to_string()))?,
            builder: BlockBuilder::default(),
            blocks: NewBlocks::default(),
            written_bytes: 0,
            touched: Vec::new(),
        })
    }

    /// Copies all blocks whose first sequences are in a range; `None` if one is damaged.
    fn run(mut self, range: Range<u64>) -> Result<Option<Copied>, IndexError> {
        let (collection, mut start) = (self.id.0, range.start);
        loop {
            let next = self.shared.index.read(|reading| {
                let blocks = next_blocks(reading, collection, start..range.end)?;
                let end = blocks.last().map_or(start, |block| block.row.last + 1);
                Ok((blocks, later_datestamps(reading, collection, start..end)?))
            });
            let (blocks, touched) = next?;
            let Some(last) = blocks.last() else { break };
            start = last.row.last + 1;
            for block in blocks.iter().filter(|block| !block.listed.is_empty()) {
                self.shared.check_open()?;
                if self.copy(block, &touched)?.is_none() {
                    return Ok(None);
                }
            }
            self.touched.extend(touched);
        }
        if !self.builder.is_empty() {
            self.blocks.push(&mut self.builder, collection, &mut self.compressor)?;
        }
        self.write()?;
        Ok(Some(Copied { blocks: self.blocks.facts, touched: self.touched }))
    }

    /// Copies the listed records of a block; `None` if one is damaged.
    fn copy(
        &mut self,
        block: &ListedBlock,
        touched: &BTreeMap<u64, UnixSecs>,
    ) -> Result<Option<()>, IndexError> {
        let Some(ReadBlock { block: decoded, body }) = read_block(self.shared, self.id.0, block.row)? else {
            return Ok(None);
        };
        let (directory, mut scratch) = (&decoded.directory, String::new());
        for sequence in &block.listed {
            let slot = directory.slot(*sequence);
            // The new block gets a new hash, so the old one is checked here.
            let Some(slot) = slot.filter(|slot| directory.is_intact(slot, &body, &mut scratch)) else {
                return Ok(None);
            };
            let bytes = slot.bytes_in(&body);
            if self.builder.is_full_before(bytes.len()) {
                self.blocks.push(&mut self.builder, self.id.0, &mut self.compressor)?;
                if self.blocks.bytes.len() >= WRITE_BYTES {
                    self.write()?;
                }
            }
            self.builder.push(NewSlot {
                sequence: slot.sequence,
                stamp_secs: slot.stamp_secs,
                datestamp_secs: touched.get(sequence).copied().unwrap_or(slot.datestamp_secs),
                status: slot.status,
                identifier: directory.identifier(slot),
                set_specs: &directory.set_specs(slot),
                bytes: &bytes,
            });
        }
        Ok(Some(()))
    }

    fn write(&mut self) -> Result<(), IndexError> {
        if self.blocks.bytes.is_empty() {
            return Ok(());
        }
        self.shared.segments.append(self.id, self.written_bytes, &self.blocks.bytes)?;
        let header_bytes = if self.written_bytes == 0 { super::segments::HEADER_BYTES } else { 0 };
        self.written_bytes += header_bytes + self.blocks.bytes.len() as u64;
        self.blocks.bytes.clear();
        Ok(())
    }
}

/// The datestamps of records that are later than those in their blocks.
fn later_datestamps(
    reading: &ReadTransaction,
    collection: u32,
    range: Range<u64>,
) -> Result<BTreeMap<u64, UnixSecs>, IndexError> {
    let keys = (sequence_key(collection, range.start), sequence_key(collection, range.end));
    let mut found = BTreeMap::new();
    for row in reading.open_table(TOUCHED)?.range::<&[u8; SEQUENCE_KEY_BYTES]>(&keys.0..&keys.1)? {
        let (key, datestamp) = row?;
        found.insert(sequence_of(key.value()), UnixSecs(datestamp.value()));
    }
    Ok(found)
}

/// A run and its copy.
struct Replacement<'c> {
    /// The new segment.
    segment: u32,
    /// The sequence numbers of the run.
    first: u64,
    last: u64,
    run: &'c Run,
    copied: &'c Copied,
}

/// Replaces the blocks of a run by those of the new segment, and returns the number of freed bytes.
fn replace(
    writing: &WriteTransaction,
    collection: &mut CollectionRow,
    replacement: &Replacement<'_>,
) -> Result<u64, IndexError> {
    let Replacement { segment: new, first, last, run, copied } = *replacement;
    let number = collection.number;
    let range = (sequence_key(number, first), sequence_key(number, last));
    writing
        .open_table(BLOCKS)?
        .retain_in::<&[u8; SEQUENCE_KEY_BYTES], _>(&range.0..=&range.1, |_, _| false)?;
    let mut segment = SegmentRow::default();
    add_blocks(writing, number, new, &mut segment, &copied.blocks)?;
    let mut segments = writing.open_table(SEGMENTS)?;
    let mut freed = 0;
    for (old, row) in run {
        segments.remove((number, *old))?;
        freed += row.bytes;
        collection.bytes -= row.bytes;
        collection.raw_bytes -= row.raw_bytes;
        collection.slots -= row.slots;
    }
    if segment.blocks > 0 {
        segments.insert((number, new), to_json(&segment)?.as_slice())?;
        collection.bytes += segment.bytes;
        collection.raw_bytes += segment.raw_bytes;
        collection.slots += segment.slots;
    }
    let mut touched = writing.open_table(TOUCHED)?;
    for (sequence, later) in &copied.touched {
        let key = sequence_key(number, *sequence);
        // The record may have got a still later datestamp meanwhile.
        let is_copied = touched.get(&key)?.is_some_and(|stored| stored.value() == later.0);
        if is_copied {
            touched.remove(&key)?;
            collection.touched -= 1;
        }
    }
    Ok(freed.saturating_sub(segment.bytes))
}
