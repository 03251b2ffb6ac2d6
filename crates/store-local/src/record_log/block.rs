//! A block: some 64 KiB of records in the order of their sequence numbers, compressed together.
//!
//! A block is a header, a directory and a body. The directory contains everything about the records but their bytes,
//! so that a list of headers does not decompress the body.
//!
//! Numbers are little-endian, and a varint is LEB128. A block contains:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `OMB1` |
//! | 4 | 4 | number of the collection |
//! | 8 | 8 | sequence number of the first record |
//! | 16 | 4 | number of records |
//! | 20 | 4 | length of the directory, compressed |
//! | 24 | 4 | length of the directory |
//! | 28 | 4 | length of the body, compressed |
//! | 32 | 4 | length of the body |
//! | 36 | 4 | CRC-32 of the compressed directory |
//! | 40 | 4 | CRC-32 of the compressed body |
//! | 44 | 4 | CRC-32 of bytes 0 to 43 |
//! | 48 | | directory, then body: one zstd frame each |
//!
//! The body is the bytes of all records in order. The directory contains for each record:
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
//!
//! Invariant: a block that [`Block::decode_directory`] accepts contains what was encoded, as far as the checksums can
//! tell. A damaged block is a value ([`Damage`]), never a panic.

use super::varint::{put, put_text, take, take_array, take_text};
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_store::mirror::RecordStatus;

/// Bytes of records after which a block is full.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
/// Maximum number of records of a block. A read of one record reads the directory of all.
pub(super) const BLOCK_RECORDS_MAX: usize = 512;
/// The level of zstd. docs/explanation/mirror-store.md compares the levels.
pub(super) const ZSTD_LEVEL: i32 = 1;

const MAGIC: [u8; 4] = *b"OMB1";
pub(super) const HEADER_BYTES: usize = 48;

/// A record inside a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) sequence: u64,
    pub(super) stamp_secs: UnixSecs,
    pub(super) datestamp_secs: UnixSecs,
    pub(super) content_hash: u64,
    pub(super) status: RecordStatus,
    pub(super) identifier: String,
    pub(super) set_specs: Vec<String>,
    /// Where the record is in the body.
    pub(super) start: usize,
    /// Its length in bytes.
    pub(super) bytes: usize,
    /// CRC-32 of its bytes.
    checksum: u32,
}

/// The block is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damage;

/// Collects the records of a block.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    first: u64,
    last: u64,
    records: u32,
    directory: Vec<u8>,
    body: Vec<u8>,
    /// The buffers of the last block, for the next one.
    compressed: [Vec<u8>; 2],
}

/// The facts of an encoded block that the index keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockFacts {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) records: u32,
    /// The bytes of the records before compression.
    pub(super) raw_bytes: u64,
    /// The length of header and directory.
    pub(super) directory_end: u32,
    /// The length of the block.
    pub(super) bytes: u32,
}

/// What [`BlockBuilder::push`] takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewSlot<'r> {
    pub(super) sequence: u64,
    pub(super) stamp_secs: UnixSecs,
    pub(super) datestamp_secs: UnixSecs,
    pub(super) content_hash: u64,
    pub(super) status: RecordStatus,
    pub(super) identifier: &'r str,
    pub(super) set_specs: &'r [String],
    pub(super) bytes: &'r [u8],
}

impl BlockBuilder {
    /// Adds a record. Its sequence is higher than that of the record before, and its sizes are within the limits.
    pub(super) fn push(&mut self, slot: NewSlot<'_>) {
        if self.records == 0 {
            self.first = slot.sequence;
        }
        self.last = slot.sequence;
        self.records += 1;
        let to = &mut self.directory;
        put(to, slot.sequence - self.first);
        to.extend_from_slice(&slot.stamp_secs.0.to_le_bytes());
        to.extend_from_slice(&slot.datestamp_secs.0.to_le_bytes());
        to.extend_from_slice(&slot.content_hash.to_le_bytes());
        to.push(u8::from(slot.status == RecordStatus::Deleted));
        put_text(to, slot.identifier);
        put(to, slot.set_specs.len() as u64);
        for set_spec in slot.set_specs {
            put_text(to, set_spec);
        }
        put(to, slot.bytes.len() as u64);
        to.extend_from_slice(&crc32fast::hash(slot.bytes).to_le_bytes());
        self.body.extend_from_slice(slot.bytes);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Whether a record of this size belongs into the next block.
    pub(super) fn is_full_before(&self, bytes: usize) -> bool {
        !self.is_empty()
            && (self.body.len() + bytes > BLOCK_BYTES
                || self.directory.len() > BLOCK_BYTES
                || self.records as usize >= BLOCK_RECORDS_MAX)
    }

    /// Appends the records to `bytes` as a block of `collection`, and starts the next block.
    pub(super) fn encode(
        &mut self,
        collection: u32,
        compressor: &mut zstd::bulk::Compressor<'_>,
        bytes: &mut Vec<u8>,
    ) -> std::io::Result<BlockFacts> {
        let [directory, body] = &mut self.compressed;
        compress(compressor, &self.directory, directory)?;
        compress(compressor, &self.body, body)?;
        let start = bytes.len();
        bytes.reserve(HEADER_BYTES + directory.len() + body.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&collection.to_le_bytes());
        bytes.extend_from_slice(&self.first.to_le_bytes());
        bytes.extend_from_slice(&self.records.to_le_bytes());
        for len in [directory.len(), self.directory.len(), body.len(), self.body.len()] {
            let len = u32::try_from(len).map_err(std::io::Error::other)?;
            bytes.extend_from_slice(&len.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32fast::hash(directory).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
        let checksum = crc32fast::hash(bytes.get(start..).unwrap_or_default());
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(directory);
        let directory_end = bytes.len() - start;
        bytes.extend_from_slice(body);
        let facts = BlockFacts {
            first: self.first,
            last: self.last,
            records: self.records,
            raw_bytes: self.body.len() as u64,
            directory_end: u32::try_from(directory_end).map_err(std::io::Error::other)?,
            bytes: u32::try_from(bytes.len() - start).map_err(std::io::Error::other)?,
        };
        self.clear();
        Ok(facts)
    }

    /// Removes all records.
    pub(super) fn clear(&mut self) {
        self.records = 0;
        self.directory.clear();
        self.body.clear();
    }
}

/// Replaces the content of a buffer by a compressed frame.
fn compress(
    compressor: &mut zstd::bulk::Compressor<'_>,
    source: &[u8],
    frame: &mut Vec<u8>,
) -> std::io::Result<()> {
    frame.clear();
    frame.reserve(zstd::zstd_safe::compress_bound(source.len()));
    compressor.compress_to_buffer(source, frame).map(drop)
}

/// A block as read from disk.
#[derive(Debug)]
pub(super) struct Block {
    /// The records in the order of their sequence.
    pub(super) slots: Vec<Slot>,
    body_start: usize,
    body_bytes: usize,
    body_raw_bytes: usize,
    body_checksum: u32,
}

impl Block {
    /// Reads the header and the directory at the start of `bytes`, which may lack the body.
    pub(super) fn decode_directory(
        bytes: &[u8],
        collection: u32,
        decompressor: &mut zstd::bulk::Decompressor<'_>,
    ) -> Result<Self, Damage> {
        let header = bytes.get(..HEADER_BYTES).ok_or(Damage)?;
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            u32::from_le_bytes(bytes)
        };
        let is_intact = header.starts_with(&MAGIC) && crc32fast::hash(&header[..44]) == word(44);
        if !is_intact || word(4) != collection {
            return Err(Damage);
        }
        let first = u64::from(word(8)) | u64::from(word(12)) << 32;
        let (records, [directory_bytes, directory_raw_bytes]) =
            (word(16) as usize, [20, 24].map(|at| word(at) as usize));
        let directory = bytes.get(HEADER_BYTES..HEADER_BYTES + directory_bytes).ok_or(Damage)?;
        if crc32fast::hash(directory) != word(36) {
            return Err(Damage);
        }
        let directory = decompressor.decompress(directory, directory_raw_bytes).map_err(|_| Damage)?;
        let body_raw_bytes = word(32) as usize;
        Ok(Self {
            slots: read_directory(&directory, first, records, body_raw_bytes).ok_or(Damage)?,
            body_start: HEADER_BYTES + directory_bytes,
            body_bytes: word(28) as usize,
            body_raw_bytes,
            body_checksum: word(40),
        })
    }

    /// The bytes of all records, one after the other. `bytes` is the whole block.
    pub(super) fn decode_body(
        &self,
        bytes: &[u8],
        decompressor: &mut zstd::bulk::Decompressor<'_>,
    ) -> Result<Bytes, Damage> {
        let body = bytes.get(self.body_start..self.body_start + self.body_bytes).ok_or(Damage)?;
        if crc32fast::hash(body) != self.body_checksum {
            return Err(Damage);
        }
        let body = decompressor.decompress(body, self.body_raw_bytes).map_err(|_| Damage)?;
        Ok(body.into())
    }

    /// The record with this sequence.
    pub(super) fn slot(&self, sequence: u64) -> Option<&Slot> {
        let at = self.slots.binary_search_by_key(&sequence, |slot| slot.sequence).ok()?;
        self.slots.get(at)
    }
}

impl Slot {
    /// The bytes of the record in the body of its block.
    pub(super) fn bytes_in(&self, body: &Bytes) -> Result<Bytes, Damage> {
        let end = self.start + self.bytes;
        let bytes = (end <= body.len()).then(|| body.slice(self.start..end)).ok_or(Damage)?;
        if crc32fast::hash(&bytes) == self.checksum { Ok(bytes) } else { Err(Damage) }
    }
}

fn read_directory(mut from: &[u8], first: u64, records: usize, body_bytes: usize) -> Option<Vec<Slot>> {
    let mut slots: Vec<Slot> = Vec::with_capacity(records.min(BLOCK_RECORDS_MAX));
    let mut start = 0;
    for _ in 0..records {
        let sequence = first.checked_add(take(&mut from)?)?;
        let [stamp_secs, datestamp_secs] =
            [take_array(&mut from)?, take_array(&mut from)?].map(|secs| UnixSecs(i64::from_le_bytes(secs)));
        let content_hash = u64::from_le_bytes(take_array(&mut from)?);
        let [deleted] = take_array(&mut from)?;
        let status = if deleted == 0 { RecordStatus::Live } else { RecordStatus::Deleted };
        let identifier = take_text(&mut from)?;
        let sets = take(&mut from)?;
        let set_specs = (0..sets).map(|_| take_text(&mut from)).collect::<Option<_>>()?;
        let bytes = usize::try_from(take(&mut from)?).ok()?;
        let checksum = u32::from_le_bytes(take_array(&mut from)?);
        slots.push(Slot {
            sequence,
            stamp_secs,
            datestamp_secs,
            content_hash,
            status,
            identifier,
            set_specs,
            start,
            bytes,
            checksum,
        });
        start = start.checked_add(bytes).filter(|end| *end <= body_bytes)?;
    }
    (from.is_empty() && start == body_bytes).then_some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded() -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        let sets = ["a:b".to_owned(), "c".to_owned()];
        for number in 0..20_u64 {
            let identifier = format!("oai:x:{number}");
            let bytes = format!("<record>{}</record>", "text ".repeat(number as usize));
            builder.push(NewSlot {
                sequence: 1000 + number * 200,
                stamp_secs: UnixSecs(1_700_000_000),
                datestamp_secs: UnixSecs(-5),
                content_hash: number,
                status: if number == 3 { RecordStatus::Deleted } else { RecordStatus::Live },
                identifier: &identifier,
                set_specs: &sets[..(number % 3) as usize],
                bytes: bytes.as_bytes(),
            });
        }
        let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL).expect("a legal level");
        let mut bytes = Vec::new();
        let facts = builder.encode(7, &mut compressor, &mut bytes).expect("small");
        assert_eq!((facts.first, facts.last, facts.records), (1000, 4800, 20));
        assert!(builder.is_empty() && facts.bytes as usize == bytes.len());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Vec<(Slot, Bytes)>, Damage> {
        let mut decompressor = zstd::bulk::Decompressor::new().expect("memory");
        let block = Block::decode_directory(bytes, 7, &mut decompressor)?;
        let body = block.decode_body(bytes, &mut decompressor)?;
        block.slots.iter().map(|slot| Ok((slot.clone(), slot.bytes_in(&body)?))).collect()
    }

    #[test]
    fn a_block_returns_the_records_that_it_took() {
        let records = decode(&encoded()).expect("intact");
        assert_eq!(records.len(), 20);
        let (slot, bytes) = &records[3];
        assert_eq!((slot.sequence, slot.datestamp_secs, slot.content_hash), (1600, UnixSecs(-5), 3));
        assert_eq!((slot.status, slot.identifier.as_str()), (RecordStatus::Deleted, "oai:x:3"));
        assert_eq!(bytes, "<record>text text text </record>");
        assert_eq!(records[5].0.set_specs, ["a:b", "c"]);
    }

    #[test]
    fn a_directory_is_readable_without_the_body() {
        let bytes = encoded();
        let mut decompressor = zstd::bulk::Decompressor::new().expect("memory");
        let whole = Block::decode_directory(&bytes, 7, &mut decompressor).expect("intact");
        let part = Block::decode_directory(&bytes[..whole.body_start], 7, &mut decompressor).expect("intact");
        assert_eq!(part.slot(1200), whole.slot(1200));
        assert_eq!(part.slot(1201), None);
        assert_eq!(part.decode_body(&bytes[..whole.body_start], &mut decompressor), Err(Damage));
        assert!(Block::decode_directory(&bytes, 8, &mut decompressor).is_err(), "another collection");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_damage() {
        let bytes = encoded();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
}
