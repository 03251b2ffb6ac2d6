//! Reads records by their sequences, each block once, and blocks that are next to each other in one read.

use super::block::{Block, Damage};
use super::directory::{Directory, Slot};
use super::index::IndexError;
use super::kept_blocks::ReadBlock;
use super::keys::{BLOCK_ROW_BYTES, BlockRow, SEQUENCE_KEY_BYTES, collection_of, sequence_key, sequence_of};
use super::postings::{ALL, Postings};
use super::shared::Shared;
use super::tables::{BLOCKS, POSTINGS, TOUCHED};
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_store::RecordLayout;
use oaimend_store::mirror::StoredRecord;
use redb::{ReadTransaction, ReadableTable};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of bytes that one read takes, unless a single block is larger.
const READ_BYTES_MAX: u64 = 512 << 10;
/// Maximum number of decoded blocks that are held. A list by datestamp may change between blocks.
const DECODED_BLOCKS_MAX: usize = 4;

/// A sequence and the block that contains it; `None` if no block does.
pub(super) type Located = (u64, Option<BlockRow>);

/// The blocks of sequences, in the order of the sequences.
pub(super) fn locate(
    reading: &ReadTransaction,
    collection: u32,
    sequences: impl IntoIterator<Item = u64>,
) -> Result<Vec<Located>, IndexError> {
    let blocks = reading.open_table(BLOCKS)?;
    let mut located: Vec<Located> = Vec::new();
    let mut latest: Option<(u64, BlockRow)> = None;
    for sequence in sequences {
        let is_in_latest = latest.is_some_and(|(first, row)| (first..=row.last).contains(&sequence));
        if !is_in_latest {
            latest = block_of(&blocks, collection, sequence)?;
        }
        located.push((sequence, latest.map(|(_, row)| row)));
    }
    Ok(located)
}

/// The block that contains a sequence, with its first sequence.
fn block_of(
    blocks: &impl ReadableTable<&'static [u8; SEQUENCE_KEY_BYTES], &'static [u8; BLOCK_ROW_BYTES]>,
    collection: u32,
    sequence: u64,
) -> Result<Option<(u64, BlockRow)>, IndexError> {
    let end = sequence_key(collection, sequence);
    let last = blocks.range::<&[u8; SEQUENCE_KEY_BYTES]>(..=&end)?.next_back().transpose()?;
    let found = last.map(|(key, row)| (*key.value(), BlockRow::from_bytes(row.value())));
    let found = found.filter(|(key, row)| collection_of(key) == collection && row.last >= sequence);
    Ok(found.map(|(key, row)| (sequence_of(&key), row)))
}

/// One record, or the reason why there is none.
pub(super) enum Fetched {
    Record(StoredRecord),
    Damaged,
    /// A compaction has removed the segment since the transaction began. A new transaction finds the record.
    Moved,
}

/// Reads records of one collection.
pub(super) struct BlockReader<'s> {
    shared: &'s Shared,
    reading: &'s ReadTransaction,
    collection: u32,
    /// Whether some datestamps are later than those in the blocks.
    has_touched: bool,
    with_bytes: bool,
    /// The last read: segment, offset, and bytes.
    buffer: (u32, u64, Bytes),
    decoded: VecDeque<DecodedBlock>,
}

/// A block that was read.
struct DecodedBlock {
    row: BlockRow,
    /// Whether most of its bytes are wanted, so that records are slices of it.
    is_shared: bool,
    /// `None` if it is damaged.
    read: Option<Arc<ReadBlock>>,
}

impl<'s> BlockReader<'s> {
    pub(super) fn new(
        shared: &'s Shared,
        reading: &'s ReadTransaction,
        collection: u32,
        has_touched: bool,
        with_bytes: bool,
    ) -> Self {
        let buffer = (0, 0, Bytes::new());
        Self { shared, reading, collection, has_touched, with_bytes, buffer, decoded: VecDeque::new() }
    }

    /// Reads the first of these records. The others tell how much to read at once.
    pub(super) fn fetch(&mut self, located: &[Located]) -> Result<Fetched, IndexError> {
        let Some(&(sequence, Some(row))) = located.first() else { return Ok(Fetched::Damaged) };
        if !self.decoded.iter().any(|decoded| decoded.row == row) {
            let kept = self.shared.kept_blocks.find((self.collection, row));
            let read = match kept {
                Some(kept) => Some(kept),
                None => {
                    let Some(bytes) = self.read(row, located)? else { return Ok(Fetched::Moved) };
                    self.decode(&bytes)?.map(Arc::new)
                }
            };
            let is_shared = read.as_ref().is_some_and(|read| is_mostly_wanted(read, row, located));
            if self.decoded.len() == DECODED_BLOCKS_MAX {
                self.decoded.pop_front();
            }
            self.decoded.push_back(DecodedBlock { row, is_shared, read });
        }
        let decoded = self.decoded.iter().find(|decoded| decoded.row == row);
        let Some(DecodedBlock { is_shared, read: Some(read), .. }) = decoded else {
            return Ok(Fetched::Damaged);
        };
        let Some(slot) = read.block.directory.slot(sequence) else { return Ok(Fetched::Damaged) };
        let bytes = if self.with_bytes { slot.bytes_in(&read.body) } else { Bytes::new() };
        let bytes = if *is_shared { bytes } else { Bytes::copy_from_slice(&bytes) };
        self.record(&read.block.directory, slot, bytes).map(Fetched::Record)
    }

    /// Keeps the block of the last record of a page, unless that was its last record.
    pub(super) fn keep_last(&self, sequence: u64) {
        let last = self.decoded.back().filter(|last| last.row.last > sequence && self.with_bytes);
        if let Some(DecodedBlock { row, read: Some(read), .. }) = last {
            self.shared.kept_blocks.keep((self.collection, *row), read);
        }
    }

    fn record(&self, directory: &Directory, slot: &Slot, bytes: Bytes) -> Result<StoredRecord, IndexError> {
        let mut datestamp_secs = slot.datestamp_secs;
        if self.has_touched {
            let touched = self.reading.open_table(TOUCHED)?;
            let later = touched.get(&sequence_key(self.collection, slot.sequence))?;
            datestamp_secs = later.map_or(datestamp_secs, |later| UnixSecs(later.value()));
        }
        let layout = if bytes.is_empty() {
            None
        } else {
            // Blocks of version 1 do not contain it.
            slot.layout.or_else(|| RecordLayout::of(&bytes))
        };
        Ok(StoredRecord {
            identifier: directory.identifier(slot).to_owned(),
            datestamp_secs,
            stamp_secs: slot.stamp_secs,
            sequence: slot.sequence,
            set_specs: directory.set_specs(slot),
            status: slot.status,
            layout,
            bytes,
        })
    }

    /// The bytes of a block, without its body if that is not needed; `None` if its segment is not there.
    fn read(&mut self, row: BlockRow, located: &[Located]) -> Result<Option<Bytes>, IndexError> {
        let start = u64::from(row.offset);
        let len = if self.with_bytes { row.bytes } else { row.directory_end };
        let is_buffered = self.buffer.0 == row.segment
            && self.buffer.1 <= start
            && start + u64::from(len) <= self.buffer.1 + self.buffer.2.len() as u64;
        if !is_buffered {
            let end = if self.with_bytes { read_end(row, located) } else { start + u64::from(len) };
            let id = (self.collection, row.segment);
            let wanted = usize::try_from(end - start).unwrap_or(usize::MAX);
            let Some(bytes) = self.shared.segments.read(id, start, wanted)? else { return Ok(None) };
            self.buffer = (row.segment, start, bytes.into());
        }
        let from = usize::try_from(start - self.buffer.1).unwrap_or(usize::MAX);
        let bytes = &self.buffer.2;
        Ok(Some(bytes.slice(from.min(bytes.len())..(from + len as usize).min(bytes.len()))))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Option<ReadBlock>, IndexError> {
        let decoded: Result<_, Damage> = self.shared.with_decompressor(|decompressor| {
            let block = Block::decode_directory(bytes, self.collection, decompressor)?;
            let body = if self.with_bytes { block.decode_body(bytes, decompressor)? } else { Bytes::new() };
            Ok(ReadBlock { block, body })
        })?;
        Ok(decoded.ok())
    }
}

/// Whether the first of these records, which are in this block, have at least half of its bytes. A slice of the body
/// keeps the whole body in memory.
fn is_mostly_wanted(read: &ReadBlock, row: BlockRow, located: &[Located]) -> bool {
    let in_block = located.iter().take_while(|(_, other)| *other == Some(row));
    let slot = |sequence: &u64| read.block.directory.slot(*sequence);
    let wanted: usize = in_block.filter_map(|(sequence, _)| slot(sequence)).map(|slot| slot.bytes).sum();
    wanted >= read.body.len() / 2
}

/// Where a read ends that begins with this block: after the blocks that follow it on disk and in the list.
fn read_end(row: BlockRow, located: &[Located]) -> u64 {
    let mut last = row;
    let end = |row: BlockRow| u64::from(row.offset) + u64::from(row.bytes);
    for next in located.iter().map_while(|(_, row)| *row).filter(|next| *next != row) {
        let is_adjacent = next.segment == last.segment && u64::from(next.offset) == end(last);
        if next == last {
            continue;
        }
        if !is_adjacent || end(next) - u64::from(row.offset) > READ_BYTES_MAX {
            break;
        }
        last = next;
    }
    end(last)
}

/// A block, and the records in it that are listed.
pub(super) struct ListedBlock {
    pub(super) first: u64,
    pub(super) row: BlockRow,
    /// The sequences of the listed records, in order.
    pub(super) listed: Vec<u64>,
    /// Listed sequences that no block contains, after the block before and before this one.
    pub(super) missing: Vec<u64>,
}

/// Blocks that one transaction returns. A longer transaction would keep the index from reusing its pages.
const BLOCKS_MAX: usize = 64;

/// The next blocks of a collection whose first sequences are in a range. None are returned at the end of the range.
pub(super) fn next_blocks(
    reading: &ReadTransaction,
    collection: u32,
    range: Range<u64>,
) -> Result<Vec<ListedBlock>, IndexError> {
    let (blocks, postings) = (reading.open_table(BLOCKS)?, reading.open_table(POSTINGS)?);
    let postings = Postings { table: &postings, collection, set: ALL, live_only: false };
    let keys = (sequence_key(collection, range.start), sequence_key(collection, range.end));
    let mut found = Vec::new();
    let mut start = range.start;
    for row in blocks.range::<&[u8; SEQUENCE_KEY_BYTES]>(&keys.0..&keys.1)?.take(BLOCKS_MAX) {
        let (key, row) = row?;
        let (first, row) = (sequence_of(key.value()), BlockRow::from_bytes(row.value()));
        let missing = postings.first(start..first, usize::MAX)?;
        start = row.last + 1;
        found.push(ListedBlock { first, row, listed: postings.first(first..start, usize::MAX)?, missing });
    }
    Ok(found)
}

/// A block of a collection with its body; `None` if it is damaged.
pub(super) fn read_block(
    shared: &Shared,
    collection: u32,
    row: BlockRow,
) -> Result<Option<ReadBlock>, IndexError> {
    let bytes = shared.segments.read((collection, row.segment), row.offset.into(), row.bytes as usize)?;
    let Some(bytes) = bytes else { return Ok(None) };
    let read = shared.with_decompressor(|decompressor| {
        let block = Block::decode_directory(&bytes, collection, decompressor)?;
        let body = block.decode_body(&bytes, decompressor)?;
        Ok::<_, Damage>(ReadBlock { block, body })
    })?;
    Ok(read.ok())
}
