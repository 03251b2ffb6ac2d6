//! Finds rows of a dump that a later row replaces, in bounded memory.
//!
//! A record that changes while it is read comes twice. The rows are distributed to files by the hash of their keys, and one
//! file at a time is read.

use crate::dump_error::DumpError;
use oaimend_repository::DeliveredRecord;
use siphasher::sip::SipHasher13 as ShortHasher;
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::collections::HashMap;
use std::fs::File;
use std::hash::Hasher as _;
use std::io::{BufWriter, Read as _, Seek as _, Write as _};
use std::ops::Range;
use std::path::Path;

/// The number of files. At ten million records, each has 40,000.
const BUCKETS: usize = 256;
/// Bytes of a row in its file: the hash of its key, the hash of its repository, its place, its length, and whether it is
/// deleted.
const ENTRY_BYTES: usize = 16 + 8 + 8 + 8 + 1;
/// Maximum number of rows that are replaced. Their places need 16 bytes each.
const REPLACED_MAX: usize = 1_000_000;
/// Maximum bytes of a bucket that is read. With hashes that are spread evenly, that is enough for 8 · 10⁸ records.
const BUCKET_BYTES_MAX: u64 = 128 << 20;
/// Bytes of a bucket that wait to be written.
const WAITING_BYTES: usize = 16 << 10;
/// A byte that no text has: it separates the identifier from the repository.
const SEPARATOR: &[u8] = &[0xFF];

/// By what the record is found that a later one replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKey {
    /// Its identifier: the repository has one record with it.
    Identifier,
    /// Its identifier and the repository that it is from, which its first setSpec names in a view of several repositories.
    /// Two of them can have records with one identifier, and the view shows both.
    IdentifierAndRepository,
}

/// The rows of a dump that is being written.
pub(crate) struct RowIndex {
    buckets: Vec<BufWriter<File>>,
    key: RecordKey,
    /// Where the next row begins: the bytes of all rows so far.
    next_at: u64,
}

/// The rows that remain.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LastRows {
    /// The places of replaced rows after the head, in bytes and in order.
    pub(crate) replaced: Vec<Range<u64>>,
    /// The number of rows that remain.
    pub(crate) records: u64,
    /// Those of them that are deleted records.
    pub(crate) deleted: u64,
    /// Whether a row was replaced by that of another repository.
    pub(crate) has_collisions: bool,
}

impl RowIndex {
    /// An empty index in files without a name in this folder.
    pub(crate) fn new(folder: &Path, key: RecordKey) -> Result<Self, DumpError> {
        let bucket = |_| Ok(BufWriter::with_capacity(WAITING_BYTES, tempfile::tempfile_in(folder)?));
        let buckets = (0..BUCKETS).map(bucket).collect::<Result<_, DumpError>>()?;
        Ok(Self { buckets, key, next_at: 0 })
    }

    /// Notes the next row and its length, in bytes.
    pub(crate) fn add(&mut self, record: &DeliveredRecord, row_bytes: u64) -> Result<(), DumpError> {
        let repository = record.set_specs.first().map(String::as_str).unwrap_or_default();
        let mut hasher = SipHasher13::new();
        hasher.write(record.identifier.as_bytes());
        if self.key == RecordKey::IdentifierAndRepository {
            hasher.write(SEPARATOR);
            hasher.write(repository.as_bytes());
        }
        let hash = hasher.finish128().as_bytes();
        let mut of_repository = ShortHasher::new();
        of_repository.write(repository.as_bytes());
        let numbers = [of_repository.finish(), self.next_at, row_bytes].map(u64::to_le_bytes);
        let mut entry = [0; ENTRY_BYTES];
        entry[..16].copy_from_slice(&hash);
        entry[16..40].copy_from_slice(numbers.as_flattened());
        entry[40] = u8::from(record.deleted);
        self.buckets[usize::from(hash[0]) % BUCKETS].write_all(&entry)?;
        self.next_at += row_bytes;
        Ok(())
    }

    /// The last row of each key.
    pub(crate) fn last_rows(self) -> Result<LastRows, DumpError> {
        let mut last = LastRows::default();
        for bucket in self.buckets {
            let mut file = bucket.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            if file.stream_position()? > BUCKET_BYTES_MAX {
                return Err(DumpError::TooManyChanges);
            }
            file.rewind()?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let mut kept: HashMap<&[u8], Row> = HashMap::with_capacity(bytes.len() / ENTRY_BYTES);
            for entry in bytes.chunks_exact(ENTRY_BYTES) {
                let row = Row::read(entry);
                if let Some(replaced) = kept.insert(&entry[..16], row) {
                    last.has_collisions |= replaced.repository != row.repository;
                    last.replaced.push(replaced.at..replaced.at + replaced.bytes);
                }
            }
            if last.replaced.len() > REPLACED_MAX {
                return Err(DumpError::TooManyChanges);
            }
            last.records += kept.len() as u64;
            last.deleted += kept.values().filter(|row| row.is_deleted).count() as u64;
        }
        last.replaced.sort_unstable_by_key(|replaced| replaced.start);
        Ok(last)
    }
}

/// A row without its key.
#[derive(Clone, Copy)]
struct Row {
    repository: u64,
    at: u64,
    bytes: u64,
    is_deleted: bool,
}

impl Row {
    fn read(entry: &[u8]) -> Self {
        let number = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight bytes"));
        Self { repository: number(16), at: number(24), bytes: number(32), is_deleted: entry[40] != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::RecordRepairs;

    fn record(identifier: &str, repository: &str, deleted: bool) -> DeliveredRecord {
        DeliveredRecord {
            identifier: identifier.to_owned(),
            datestamp: "2026-01-01T00:00:00Z".to_owned(),
            deleted,
            set_specs: vec![repository.to_owned()],
            datestamp_at: 0..0,
            repairs: RecordRepairs::default(),
            xml: String::new(),
        }
    }

    #[test]
    fn the_last_row_of_each_key_remains() {
        let folder = tempfile::tempdir().expect("a folder");
        let last_rows = |key, added: &[(&str, &str, bool)]| {
            let mut index = RowIndex::new(folder.path(), key).expect("writable");
            for (number, (identifier, repository, is_deleted)) in (1..).zip(added) {
                index.add(&record(identifier, repository, *is_deleted), number).expect("writable");
            }
            index.last_rows().expect("readable")
        };
        let of_one =
            [("a", "x", false), ("b", "x", false), ("a", "x", true), ("c", "x", true), ("a", "x", false)];
        // The rows have 1, 2, 3, 4 and 5 bytes.
        let expected = LastRows { replaced: vec![0..1, 3..6], records: 3, deleted: 1, has_collisions: false };
        assert_eq!(last_rows(RecordKey::Identifier, &of_one), expected);
        assert_eq!(last_rows(RecordKey::IdentifierAndRepository, &of_one), expected);
        let of_two = [("a", "x", false), ("a", "y", true), ("a", "y", false)];
        let one = LastRows { replaced: vec![0..1, 1..3], records: 1, deleted: 0, has_collisions: true };
        assert_eq!(last_rows(RecordKey::Identifier, &of_two), one);
        let both = LastRows {
            replaced: std::iter::once(1..3).collect(),
            records: 2,
            deleted: 0,
            has_collisions: false,
        };
        assert_eq!(last_rows(RecordKey::IdentifierAndRepository, &of_two), both);
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0, "no file stays");
    }
}
