//! A block: some 64 KiB of records in the order of their sequence numbers, compressed together.
//!
//! A block is a header, a directory and a body. The directory contains everything about the records but their bytes,
//! so that a list of headers does not decompress the body.
//!
//! Numbers are little-endian, and a varint is LEB128. A block contains:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `OMB2` |
//! | 4 | 4 | number of the collection |
//! | 8 | 8 | sequence number of the first record |
//! | 16 | 4 | number of records |
//! | 20 | 4 | length of the directory, compressed |
//! | 24 | 4 | length of the directory |
//! | 28 | 4 | length of the body, compressed |
//! | 32 | 4 | length of the body |
//! | 36 | 4 | CRC-32 of the compressed directory and of the hashes |
//! | 40 | 4 | CRC-32 of the compressed body |
//! | 44 | 4 | CRC-32 of bytes 0 to 43 |
//! | 48 | | directory, a zstd frame; hashes; body, a zstd frame |
//!
//! The body is the bytes of all records in order. `directory` describes the directory. After it, a block of version 2
//! has the hash of each record ([`served_hash`](oaimend_store::served_hash)), 32 bytes. They are not compressed, and
//! belong to the first part of the block: the CRC-32 of the compressed directory includes them.
//!
//! New blocks have version 2. A block of version 1 begins with `OMB1`, and has no hashes.
//!
//! Invariant: a block that [`Block::decode_directory`] accepts contains what was encoded, as far as the checksums can
//! tell. A damaged block is a value ([`Damage`]), never a panic.

use super::directory::{Directory, DirectoryBuilder, NewSlot};
use bytes::Bytes;

/// Bytes of records after which a block is full.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
/// Maximum number of records of a block. A read of one record reads the directory of all.
pub(super) const BLOCK_RECORDS_MAX: usize = 512;
/// The level of zstd. docs/explanation/mirror-store.md compares the levels.
pub(super) const ZSTD_LEVEL: i32 = 1;

const MAGIC: [u8; 4] = *b"OMB2";
const MAGIC_1: [u8; 4] = *b"OMB1";
/// Length of the hash of a record.
const HASH_BYTES: usize = size_of::<oaimend_store::Sha256>();
pub(super) const HEADER_BYTES: usize = 48;

/// The block is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damage;

/// Collects the records of a block.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    first: u64,
    last: u64,
    records: u32,
    directory: DirectoryBuilder,
    body: Vec<u8>,
    /// The buffers of the last block, for the next one: the directory, and both parts compressed.
    buffers: [Vec<u8>; 3],
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

impl BlockBuilder {
    /// Adds a record. Its sequence is higher than that of the record before, and its sizes are within the limits.
    pub(super) fn push(&mut self, slot: NewSlot<'_>) {
        if self.records == 0 {
            self.first = slot.sequence;
        }
        self.last = slot.sequence;
        self.records += 1;
        self.directory.push(self.first, &slot);
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
        let [plain, directory, body] = &mut self.buffers;
        self.directory.write(plain);
        compress(compressor, plain, directory)?;
        compress(compressor, &self.body, body)?;
        let (lengths, hashes) = ([directory.len(), plain.len()], &self.directory.hashes);
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(directory);
        checksum.update(hashes);
        let start = bytes.len();
        bytes.reserve(HEADER_BYTES + directory.len() + hashes.len() + body.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&collection.to_le_bytes());
        bytes.extend_from_slice(&self.first.to_le_bytes());
        bytes.extend_from_slice(&self.records.to_le_bytes());
        for len in lengths.into_iter().chain([body.len(), self.body.len()]) {
            let len = u32::try_from(len).map_err(std::io::Error::other)?;
            bytes.extend_from_slice(&len.to_le_bytes());
        }
        bytes.extend_from_slice(&checksum.finalize().to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
        let checksum = crc32fast::hash(bytes.get(start..).unwrap_or_default());
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(directory);
        bytes.extend_from_slice(hashes);
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
    pub(super) directory: Directory,
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
        let is_version_1 = header.starts_with(&MAGIC_1);
        let is_known = is_version_1 || header.starts_with(&MAGIC);
        if !is_known || crc32fast::hash(&header[..44]) != word(44) || word(4) != collection {
            return Err(Damage);
        }
        let first = u64::from(word(8)) | u64::from(word(12)) << 32;
        let (records, [directory_bytes, directory_raw_bytes]) =
            (word(16) as usize, [20, 24].map(|at| word(at) as usize));
        let hashes_bytes = if is_version_1 { 0 } else { records * HASH_BYTES };
        let body_start = HEADER_BYTES + directory_bytes + hashes_bytes;
        let part = bytes.get(HEADER_BYTES..body_start).ok_or(Damage)?;
        if crc32fast::hash(part) != word(36) {
            return Err(Damage);
        }
        let (directory, hashes) = part.split_at(directory_bytes);
        let directory = decompressor.decompress(directory, directory_raw_bytes).map_err(|_| Damage)?;
        let body_raw_bytes = word(32) as usize;
        let directory = if is_version_1 {
            Directory::read_version_1(&directory, records, first, body_raw_bytes)
        } else {
            Directory::read(&directory, hashes.as_chunks().0, first, body_raw_bytes)
        };
        Ok(Self {
            directory: directory.ok_or(Damage)?,
            body_start,
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
        if body.len() == self.body_raw_bytes { Ok(body.into()) } else { Err(Damage) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::Slot;
    use super::*;
    use oaimend_oai::UnixSecs;
    use oaimend_store::RecordLayout;
    use oaimend_store::mirror::RecordStatus;

    fn encoded() -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        let sets = ["a:b".to_owned(), "c".to_owned()];
        for number in 0..20_u64 {
            let identifier = format!("oai:x:{number}");
            let bytes = format!("<record><header></header>{}</record>", "text ".repeat(number as usize));
            builder.push(NewSlot {
                sequence: 1000 + number * 200,
                stamp_secs: UnixSecs(1_700_000_000),
                datestamp_secs: UnixSecs(-5),
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

    /// The slot, the identifier, the setSpecs and the bytes of a record.
    type Decoded = (Slot, String, Vec<String>, Bytes);

    fn decode(bytes: &[u8]) -> Result<Vec<Decoded>, Damage> {
        let mut decompressor = zstd::bulk::Decompressor::new().expect("memory");
        let Block { directory, .. } = &Block::decode_directory(bytes, 7, &mut decompressor)?;
        let body =
            Block::decode_directory(bytes, 7, &mut decompressor)?.decode_body(bytes, &mut decompressor)?;
        let record = |slot: &Slot| {
            assert!(directory.is_intact(slot, &body, &mut String::new()));
            let set_specs = directory.set_specs(slot).to_vec();
            (slot.clone(), directory.identifier(slot).to_owned(), set_specs, slot.bytes_in(&body))
        };
        Ok(directory.slots.iter().map(record).collect())
    }

    #[test]
    fn a_block_returns_the_records_that_it_took() {
        let records = decode(&encoded()).expect("intact");
        assert_eq!(records.len(), 20);
        let (slot, identifier, set_specs, bytes) = &records[3];
        assert_eq!(
            (slot.sequence, slot.stamp_secs, slot.datestamp_secs),
            (1600, UnixSecs(1_700_000_000), UnixSecs(-5))
        );
        assert_eq!(
            (slot.status, identifier.as_str(), set_specs.len()),
            (RecordStatus::Deleted, "oai:x:3", 0)
        );
        assert_eq!(bytes, "<record><header></header>text text text </record>");
        assert_eq!(slot.layout, Some(RecordLayout { header_start: 8, header_end: 25 }));
        assert_eq!(records[5].2, ["a:b", "c"]);
    }

    #[test]
    fn a_record_that_differs_from_its_hash_is_not_intact() {
        let bytes = encoded();
        let mut decompressor = zstd::bulk::Decompressor::new().expect("memory");
        let block = Block::decode_directory(&bytes, 7, &mut decompressor).expect("intact");
        let mut body = block.decode_body(&bytes, &mut decompressor).expect("intact").to_vec();
        let (slot, last) = (block.directory.slot(4800).expect("stored"), body.len() - 1);
        assert!(block.directory.is_intact(slot, &body.clone().into(), &mut String::new()));
        body[last] ^= 1;
        assert!(!block.directory.is_intact(slot, &body.into(), &mut String::new()));
    }

    #[test]
    fn a_directory_is_readable_without_the_body() {
        let bytes = encoded();
        let mut decompressor = zstd::bulk::Decompressor::new().expect("memory");
        let whole = Block::decode_directory(&bytes, 7, &mut decompressor).expect("intact");
        let part = Block::decode_directory(&bytes[..whole.body_start], 7, &mut decompressor).expect("intact");
        assert_eq!(part.directory.slot(1200), whole.directory.slot(1200));
        assert_eq!(part.directory.slot(1201), None);
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
