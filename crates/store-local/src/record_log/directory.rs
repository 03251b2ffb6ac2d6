//! The directory of a block: everything about its records but their bytes.
//!
//! Numbers are little-endian, a varint is LEB128, and a difference is a varint of a zigzag number. The directory of
//! version 2 contains, before its compression:
//!
//! | bytes | content |
//! |---|---|
//! | varint | number of lists of setSpecs; for each: varint number of setSpecs; for each: varint length, UTF-8 |
//! | | for each record: |
//! | varint | sequence number minus that of the record before, or of the block |
//! | difference | stamp, seconds since 1970, minus that of the record before, or 0 |
//! | difference | datestamp of the source, the same |
//! | 1 | bit 0: deleted; bit 1: the place of the header follows |
//! | varint | number of its list of setSpecs, from 0 |
//! | varint | length of the record |
//! | varint, varint | where its header begins, and the length of its header |
//! | varint | length of the identifier |
//! | | the identifiers of all records in order, UTF-8 |
//!
//! The directory of version 1 contains for each record:
//!
//! | bytes | content |
//! |---|---|
//! | varint | sequence number minus that of the first record |
//! | 8 | stamp, seconds since 1970, signed |
//! | 8 | datestamp of the source, the same |
//! | 8 | content hash: SipHash-1-3 of status, sets and content |
//! | 1 | 0: live, 1: deleted |
//! | varint, text | identifier: length, UTF-8 |
//! | varint | number of setSpecs; for each: varint length, UTF-8 |
//! | varint | length of the record |
//! | 4 | CRC-32 of the record |

use super::varint::{put, put_difference, put_text, take, take_array, take_difference, take_str, take_text};
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_store::mirror::RecordStatus;
use oaimend_store::{RecordLayout, ServedHeader, Sha256, served_hash};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

const DELETED: u8 = 1;
const HAS_LAYOUT: u8 = 2;

/// A record inside a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) sequence: u64,
    pub(super) stamp_secs: UnixSecs,
    pub(super) datestamp_secs: UnixSecs,
    pub(super) status: RecordStatus,
    pub(super) layout: Option<RecordLayout>,
    /// Where the record is in the body.
    start: usize,
    /// Its length in bytes.
    pub(super) bytes: usize,
    /// Where its identifier is in the texts of the directory.
    identifier: Range<usize>,
    /// The number of its list of setSpecs.
    set_list: usize,
    checksum: Checksum,
}

/// What tells whether the bytes of one record are those that were stored.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Checksum {
    /// Version 1.
    Crc32(u32),
    /// Version 2: see [`served_hash`].
    Served(Sha256),
}

/// The records of a block, without their bytes.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// In the order of their sequence.
    pub(super) slots: Vec<Slot>,
    /// The identifiers.
    texts: String,
    set_lists: Vec<Arc<[String]>>,
}

/// What a block takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewSlot<'r> {
    pub(super) sequence: u64,
    pub(super) stamp_secs: UnixSecs,
    pub(super) datestamp_secs: UnixSecs,
    pub(super) status: RecordStatus,
    pub(super) identifier: &'r str,
    pub(super) set_specs: &'r [String],
    pub(super) bytes: &'r [u8],
}

/// Collects a directory of version 2.
#[derive(Debug, Default)]
pub(super) struct DirectoryBuilder {
    sequence: u64,
    stamp_secs: i64,
    datestamp_secs: i64,
    set_list_numbers: HashMap<Vec<String>, u64>,
    set_lists: Vec<u8>,
    rows: Vec<u8>,
    identifiers: Vec<u8>,
    /// The hashes of the records. They cannot be compressed.
    pub(super) hashes: Vec<u8>,
    /// The buffer of served headers.
    scratch: String,
}

impl DirectoryBuilder {
    /// Adds a record to a block whose first record has the sequence `first`.
    pub(super) fn push(&mut self, first: u64, slot: &NewSlot<'_>) {
        let to = &mut self.rows;
        let before = if self.hashes.is_empty() { first } else { self.sequence };
        put(to, slot.sequence - before);
        self.sequence = slot.sequence;
        put_difference(to, &mut self.stamp_secs, slot.stamp_secs.0);
        put_difference(to, &mut self.datestamp_secs, slot.datestamp_secs.0);
        let layout = RecordLayout::of(slot.bytes);
        let deleted = if slot.status == RecordStatus::Deleted { DELETED } else { 0 };
        to.push(deleted | if layout.is_some() { HAS_LAYOUT } else { 0 });
        let set_list = match self.set_list_numbers.get(slot.set_specs) {
            Some(number) => *number,
            None => {
                let number = self.set_list_numbers.len() as u64;
                self.set_list_numbers.insert(slot.set_specs.to_vec(), number);
                put(&mut self.set_lists, slot.set_specs.len() as u64);
                slot.set_specs.iter().for_each(|set_spec| put_text(&mut self.set_lists, set_spec));
                number
            }
        };
        put(to, set_list);
        put(to, slot.bytes.len() as u64);
        if let Some(RecordLayout { header_start, header_end }) = layout {
            put(to, header_start.into());
            put(to, u64::from(header_end) - u64::from(header_start));
        }
        put(to, slot.identifier.len() as u64);
        self.identifiers.extend_from_slice(slot.identifier.as_bytes());
        let NewSlot { identifier, set_specs, .. } = *slot;
        let is_deleted = slot.status == RecordStatus::Deleted;
        let header = ServedHeader { identifier, datestamp: "", is_deleted, set_specs };
        let hash = served_hash(&header, layout.as_ref(), slot.bytes, &mut self.scratch);
        self.hashes.extend_from_slice(&hash);
    }

    /// The number of bytes before compression.
    pub(super) fn len(&self) -> usize {
        self.set_lists.len() + self.rows.len() + self.identifiers.len() + self.hashes.len()
    }

    /// Replaces the content of a buffer by the directory without the hashes.
    pub(super) fn write(&self, directory: &mut Vec<u8>) {
        directory.clear();
        put(directory, self.set_list_numbers.len() as u64);
        for part in [&self.set_lists, &self.rows, &self.identifiers] {
            directory.extend_from_slice(part);
        }
    }

    /// Removes all records, and keeps the buffers.
    pub(super) fn clear(&mut self) {
        (self.sequence, self.stamp_secs, self.datestamp_secs) = (0, 0, 0);
        self.set_list_numbers.clear();
        for part in [&mut self.set_lists, &mut self.rows, &mut self.identifiers, &mut self.hashes] {
            part.clear();
        }
    }
}

impl Directory {
    /// Reads a directory of version 2 and its hashes. `body_bytes` is the length of the body. `None` if it is damaged.
    pub(super) fn read(mut from: &[u8], hashes: &[Sha256], first: u64, body_bytes: usize) -> Option<Self> {
        let from = &mut from;
        let mut read = Self { slots: Vec::with_capacity(hashes.len()), ..Self::default() };
        for _ in 0..take(from)? {
            let set_specs = take(from)?;
            read.set_lists.push((0..set_specs).map(|_| take_text(from)).collect::<Option<_>>()?);
        }
        let (mut sequence, mut stamp_secs, mut datestamp_secs) = (first, 0, 0);
        let (mut start, mut text) = (0_usize, 0_usize);
        for hash in hashes {
            sequence = take(from)?.checked_add(sequence)?;
            take_difference(from, &mut stamp_secs)?;
            take_difference(from, &mut datestamp_secs)?;
            let [flags] = take_array(from)?;
            let set_list = usize::try_from(take(from)?).ok().filter(|list| *list < read.set_lists.len())?;
            let bytes = usize::try_from(take(from)?).ok()?;
            let layout = if flags & HAS_LAYOUT == 0 { None } else { Some(take_layout(from)?) };
            let end = start.checked_add(bytes).filter(|end| *end <= body_bytes)?;
            let text_end = usize::try_from(take(from)?).ok()?.checked_add(text)?;
            read.slots.push(Slot {
                sequence,
                stamp_secs: UnixSecs(stamp_secs),
                datestamp_secs: UnixSecs(datestamp_secs),
                status: if flags & DELETED == 0 { RecordStatus::Live } else { RecordStatus::Deleted },
                layout,
                start,
                bytes,
                identifier: text..text_end,
                set_list,
                checksum: Checksum::Served(*hash),
            });
            (start, text) = (end, text_end);
        }
        read.texts = std::str::from_utf8(from).ok()?.to_owned();
        let are_texts = read.slots.iter().all(|slot| read.texts.is_char_boundary(slot.identifier.end));
        (start == body_bytes && text == read.texts.len() && are_texts).then_some(read)
    }

    /// The same of version 1.
    pub(super) fn read_version_1(
        mut from: &[u8],
        records: usize,
        first: u64,
        body_bytes: usize,
    ) -> Option<Self> {
        let from = &mut from;
        let mut read = Self::default();
        let mut start = 0_usize;
        for _ in 0..records {
            let sequence = first.checked_add(take(from)?)?;
            let [stamp_secs, datestamp_secs] =
                [take_array(from)?, take_array(from)?].map(|secs| UnixSecs(i64::from_le_bytes(secs)));
            take_array::<8>(from)?;
            let [deleted] = take_array(from)?;
            let text = read.texts.len();
            read.texts.push_str(take_str(from)?);
            let set_specs = take(from)?;
            let set_specs = (0..set_specs).map(|_| take_text(from)).collect::<Option<Arc<[String]>>>()?;
            if read.set_lists.last() != Some(&set_specs) {
                read.set_lists.push(set_specs);
            }
            let bytes = usize::try_from(take(from)?).ok()?;
            let checksum = Checksum::Crc32(u32::from_le_bytes(take_array(from)?));
            read.slots.push(Slot {
                sequence,
                stamp_secs,
                datestamp_secs,
                status: if deleted == 0 { RecordStatus::Live } else { RecordStatus::Deleted },
                layout: None,
                start,
                bytes,
                identifier: text..read.texts.len(),
                set_list: read.set_lists.len() - 1,
                checksum,
            });
            start = start.checked_add(bytes).filter(|end| *end <= body_bytes)?;
        }
        (from.is_empty() && start == body_bytes).then_some(read)
    }

    /// The record with this sequence.
    pub(super) fn slot(&self, sequence: u64) -> Option<&Slot> {
        let at = self.slots.binary_search_by_key(&sequence, |slot| slot.sequence).ok()?;
        self.slots.get(at)
    }

    /// The identifier of a record.
    pub(super) fn identifier(&self, slot: &Slot) -> &str {
        self.texts.get(slot.identifier.clone()).unwrap_or_default()
    }

    /// The setSpecs of a record.
    pub(super) fn set_specs(&self, slot: &Slot) -> Arc<[String]> {
        self.set_lists.get(slot.set_list).map(Arc::clone).unwrap_or_default()
    }

    /// Whether the bytes of a record are those that were stored. The checksum of the body tells it too, and is cheaper.
    pub(super) fn is_intact(&self, slot: &Slot, body: &Bytes, scratch: &mut String) -> bool {
        let bytes = slot.bytes_in(body);
        match &slot.checksum {
            Checksum::Crc32(checksum) => crc32fast::hash(&bytes) == *checksum,
            Checksum::Served(hash) => {
                let is_deleted = slot.status == RecordStatus::Deleted;
                let (identifier, set_specs) = (self.identifier(slot), self.set_specs(slot));
                let header = ServedHeader { identifier, datestamp: "", is_deleted, set_specs: &set_specs };
                served_hash(&header, slot.layout.as_ref(), &bytes, scratch) == *hash
            }
        }
    }
}

impl Slot {
    /// The bytes of the record in the body of its block.
    pub(super) fn bytes_in(&self, body: &Bytes) -> Bytes {
        body.slice(self.start.min(body.len())..(self.start + self.bytes).min(body.len()))
    }
}

fn take_layout(from: &mut &[u8]) -> Option<RecordLayout> {
    let (start, bytes) = (take(from)?, take(from)?);
    let header_end = u32::try_from(start.checked_add(bytes)?).ok()?;
    Some(RecordLayout { header_start: u32::try_from(start).ok()?, header_end })
}
