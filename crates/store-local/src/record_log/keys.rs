//! Keys and values of fixed width in the index. Integers in keys are big-endian, so that the order of the bytes is the
//! order of the numbers.

use oaimend_oai::UnixSecs;
use oaimend_store::Identifier;
use oaimend_store::mirror::RecordStatus;
use oaimend_store::record_limits::{TIME_BIAS, clamp_time};

/// Highest sequence number. Keys contain 48 bits of it.
pub(super) const SEQUENCE_MAX: u64 = (1 << 48) - 1;
pub(super) const TIME_KEY_BYTES: usize = 15;
pub(super) const POSTING_KEY_BYTES: usize = 15;
pub(super) const SEQUENCE_KEY_BYTES: usize = 10;
pub(super) const STAMP_KEY_BYTES: usize = 9;

fn put_u48(to: &mut [u8], value: u64) {
    to.copy_from_slice(&value.min(SEQUENCE_MAX).to_be_bytes()[2..]);
}

fn u48(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn put_time(to: &mut [u8], secs: UnixSecs) {
    let biased = clamp_time(secs).0 + TIME_BIAS;
    to.copy_from_slice(&biased.to_be_bytes()[3..]);
}

fn time(bytes: &[u8]) -> UnixSecs {
    let biased = bytes.iter().fold(0, |value, byte| value << 8 | i64::from(*byte));
    UnixSecs(biased - TIME_BIAS)
}

/// Collection, time, sequence.
pub(super) fn time_key(collection: u32, secs: UnixSecs, sequence: u64) -> [u8; TIME_KEY_BYTES] {
    let mut key = [0; TIME_KEY_BYTES];
    key[..4].copy_from_slice(&collection.to_be_bytes());
    put_time(&mut key[4..9], secs);
    put_u48(&mut key[9..], sequence);
    key
}

/// Time and sequence of a [`time_key`].
pub(super) fn time_and_sequence(key: &[u8; TIME_KEY_BYTES]) -> (UnixSecs, u64) {
    (time(&key[4..9]), u48(&key[9..]))
}

/// Collection, stamp.
pub(super) fn stamp_key(collection: u32, secs: UnixSecs) -> [u8; STAMP_KEY_BYTES] {
    let mut key = [0; STAMP_KEY_BYTES];
    key[..4].copy_from_slice(&collection.to_be_bytes());
    put_time(&mut key[4..], secs);
    key
}

/// The stamp of a [`stamp_key`].
pub(super) fn stamp_of(key: &[u8; STAMP_KEY_BYTES]) -> UnixSecs {
    time(&key[4..])
}

/// Collection, sequence.
pub(super) fn sequence_key(collection: u32, sequence: u64) -> [u8; SEQUENCE_KEY_BYTES] {
    let mut key = [0; SEQUENCE_KEY_BYTES];
    key[..4].copy_from_slice(&collection.to_be_bytes());
    put_u48(&mut key[4..], sequence);
    key
}

/// The collection of a [`sequence_key`].
pub(super) fn collection_of(key: &[u8; SEQUENCE_KEY_BYTES]) -> u32 {
    u32::from_be_bytes([key[0], key[1], key[2], key[3]])
}

/// The sequence of a [`sequence_key`].
pub(super) fn sequence_of(key: &[u8; SEQUENCE_KEY_BYTES]) -> u64 {
    u48(&key[4..])
}

/// Collection, set, level, bucket.
pub(super) fn posting_key(collection: u32, set: u32, level: u8, bucket: u64) -> [u8; POSTING_KEY_BYTES] {
    let mut key = [0; POSTING_KEY_BYTES];
    key[..4].copy_from_slice(&collection.to_be_bytes());
    key[4..8].copy_from_slice(&set.to_be_bytes());
    key[8] = level;
    put_u48(&mut key[9..], bucket);
    key
}

/// The bucket of a [`posting_key`].
pub(super) fn bucket_of(key: &[u8; POSTING_KEY_BYTES]) -> u64 {
    u48(&key[9..])
}

/// Collection and identifier.
pub(super) fn identifier_key(collection: u32, identifier: &str) -> Vec<u8> {
    [&collection.to_be_bytes(), identifier.as_bytes()].concat()
}

/// The keys of the identifiers of a collection that come after another one: from the first, and before the second.
pub(super) fn identifier_range(collection: u32, after: Option<Identifier<'_>>) -> (Vec<u8>, Vec<u8>) {
    let mut start = identifier_key(collection, after.map_or("", |after| after.0));
    if after.is_some() {
        start.push(0);
    }
    (start, identifier_key(collection + 1, ""))
}

/// The row of an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdentifierRow {
    pub(super) sequence: u64,
    pub(super) content_hash: u64,
    pub(super) datestamp_secs: UnixSecs,
    pub(super) set_list: u32,
    pub(super) status: RecordStatus,
    /// Whether the record was lost to damage. It is in no list then.
    pub(super) is_damaged: bool,
}

pub(super) const IDENTIFIER_ROW_BYTES: usize = 24;
const DELETED: u8 = 1;
const DAMAGED: u8 = 2;

impl IdentifierRow {
    pub(super) fn to_bytes(self) -> [u8; IDENTIFIER_ROW_BYTES] {
        let mut row = [0; IDENTIFIER_ROW_BYTES];
        put_u48(&mut row[..6], self.sequence);
        put_time(&mut row[6..11], self.datestamp_secs);
        row[11] =
            u8::from(self.status == RecordStatus::Deleted) * DELETED + u8::from(self.is_damaged) * DAMAGED;
        row[12..16].copy_from_slice(&self.set_list.to_be_bytes());
        row[16..].copy_from_slice(&self.content_hash.to_be_bytes());
        row
    }

    pub(super) fn from_bytes(row: &[u8; IDENTIFIER_ROW_BYTES]) -> Self {
        let hash = row.last_chunk().unwrap_or(&[0; 8]);
        let status = if row[11] & DELETED != 0 { RecordStatus::Deleted } else { RecordStatus::Live };
        Self {
            sequence: u48(&row[..6]),
            content_hash: u64::from_be_bytes(*hash),
            datestamp_secs: time(&row[6..11]),
            set_list: u32::from_be_bytes([row[12], row[13], row[14], row[15]]),
            status,
            is_damaged: row[11] & DAMAGED != 0,
        }
    }
}

/// The place of a block on disk. Its key is the [`sequence_key`] of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRow {
    pub(super) segment: u32,
    /// The offset of the block in its segment.
    pub(super) offset: u32,
    /// The length of header and directory.
    pub(super) directory_end: u32,
    /// The length of the block.
    pub(super) bytes: u32,
    /// The sequence of the last record.
    pub(super) last: u64,
}

pub(super) const BLOCK_ROW_BYTES: usize = 22;

impl BlockRow {
    pub(super) fn to_bytes(self) -> [u8; BLOCK_ROW_BYTES] {
        let mut row = [0; BLOCK_ROW_BYTES];
        for (to, value) in [self.segment, self.offset, self.directory_end, self.bytes].into_iter().enumerate()
        {
            row[to * 4..to * 4 + 4].copy_from_slice(&value.to_be_bytes());
        }
        put_u48(&mut row[16..], self.last);
        row
    }

    pub(super) fn from_bytes(row: &[u8; BLOCK_ROW_BYTES]) -> Self {
        let word = |at: usize| u32::from_be_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        Self {
            segment: word(0),
            offset: word(4),
            directory_end: word(8),
            bytes: word(12),
            last: u48(&row[16..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_keys_keep_their_values() {
        let row = IdentifierRow {
            sequence: SEQUENCE_MAX,
            content_hash: 0x0123_4567_89ab_cdef,
            datestamp_secs: UnixSecs(-86_400),
            set_list: 77,
            status: RecordStatus::Deleted,
            is_damaged: true,
        };
        assert_eq!(IdentifierRow::from_bytes(&row.to_bytes()), row);
        let row = BlockRow { segment: 1, offset: 2, directory_end: 3, bytes: u32::MAX, last: 5 };
        assert_eq!(BlockRow::from_bytes(&row.to_bytes()), row);
        assert_eq!(time_and_sequence(&time_key(7, UnixSecs(-5), 9)), (UnixSecs(-5), 9));
        assert_eq!(stamp_of(&stamp_key(7, UnixSecs(1_700_000_000))), UnixSecs(1_700_000_000));
        assert_eq!(sequence_of(&sequence_key(7, 300)), 300);
        assert_eq!(collection_of(&sequence_key(7, 300)), 7);
        assert_eq!(bucket_of(&posting_key(7, 1, 2, 70_000)), 70_000);
    }

    #[test]
    fn keys_sort_like_their_values() {
        assert!(time_key(1, UnixSecs(-1), 9) < time_key(1, UnixSecs(0), 0));
        assert!(time_key(1, UnixSecs(5), 255) < time_key(1, UnixSecs(5), 256));
        assert!(time_key(1, UnixSecs(5), 255) < time_key(2, UnixSecs(0), 0));
        assert!(posting_key(1, 2, 0, 9) < posting_key(1, 2, 1, 0));
    }

    #[test]
    fn a_time_outside_the_range_of_keys_becomes_the_nearest_one() {
        assert_eq!(time_and_sequence(&time_key(1, UnixSecs::MIN, 0)).0, UnixSecs(-TIME_BIAS));
        assert_eq!(time_and_sequence(&time_key(1, UnixSecs::MAX, 0)).0, UnixSecs(TIME_BIAS - 1));
    }
}
