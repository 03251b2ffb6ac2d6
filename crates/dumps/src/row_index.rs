//! Finds rows of a dump that a later row replaces, in bounded memory.
//!
//! A record that changes while it is read comes twice. The rows are distributed to files by the hash of their identifiers,
//! and one file at a time is read.

use crate::dump_error::DumpError;
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::collections::HashMap;
use std::fs::File;
use std::hash::Hasher as _;
use std::io::{BufWriter, Read as _, Seek as _, Write as _};
use std::path::Path;

/// The number of files. At ten million records, each has 40,000.
const BUCKETS: usize = 256;
/// Bytes of a row in its file: the hash of its identifier, its number, and whether it is deleted.
const ENTRY_BYTES: usize = 16 + 8 + 1;
/// Maximum number of rows that are replaced. Their numbers need 8 bytes each.
const REPLACED_MAX: usize = 1_000_000;
/// Maximum bytes of a bucket that is read. With hashes that are spread evenly, that is enough for 10⁹ records.
const BUCKET_BYTES_MAX: u64 = 128 << 20;
/// Bytes of a bucket that wait to be written.
const WAITING_BYTES: usize = 16 << 10;

/// The rows of a dump that is being written.
pub(crate) struct RowIndex {
    buckets: Vec<BufWriter<File>>,
    rows: u64,
}

/// The rows that remain.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LastRows {
    /// The numbers of replaced rows, in order.
    pub(crate) replaced: Vec<u64>,
    /// The number of rows that remain.
    pub(crate) records: u64,
    /// Those of them that are deleted records.
    pub(crate) deleted: u64,
}

impl RowIndex {
    /// An empty index in files without a name in this folder.
    pub(crate) fn new(folder: &Path) -> Result<Self, DumpError> {
        let bucket = |_| Ok(BufWriter::with_capacity(WAITING_BYTES, tempfile::tempfile_in(folder)?));
        Ok(Self { buckets: (0..BUCKETS).map(bucket).collect::<Result<_, DumpError>>()?, rows: 0 })
    }

    /// Notes the next row.
    pub(crate) fn add(&mut self, identifier: &str, is_deleted: bool) -> Result<(), DumpError> {
        let mut hasher = SipHasher13::new();
        hasher.write(identifier.as_bytes());
        let hash = hasher.finish128().as_bytes();
        let mut entry = [0; ENTRY_BYTES];
        entry[..16].copy_from_slice(&hash);
        entry[16..24].copy_from_slice(&self.rows.to_le_bytes());
        entry[24] = u8::from(is_deleted);
        self.buckets[usize::from(hash[0]) % BUCKETS].write_all(&entry)?;
        self.rows += 1;
        Ok(())
    }

    /// The last row of each identifier.
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
            let mut kept: HashMap<&[u8], (u64, bool)> = HashMap::with_capacity(bytes.len() / ENTRY_BYTES);
            for entry in bytes.chunks_exact(ENTRY_BYTES) {
                let number: [u8; 8] = entry[16..24].try_into().expect("eight bytes");
                let row = (u64::from_le_bytes(number), entry[24] != 0);
                if let Some((replaced, _)) = kept.insert(&entry[..16], row) {
                    last.replaced.push(replaced);
                }
            }
            if last.replaced.len() > REPLACED_MAX {
                return Err(DumpError::TooManyChanges);
            }
            last.records += kept.len() as u64;
            last.deleted += kept.values().filter(|(_, is_deleted)| *is_deleted).count() as u64;
        }
        last.replaced.sort_unstable();
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_of_each_identifier_remains() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut index = RowIndex::new(folder.path()).expect("writable");
        for (identifier, is_deleted) in [("a", false), ("b", false), ("a", true), ("c", true), ("a", false)] {
            index.add(identifier, is_deleted).expect("writable");
        }
        let last = index.last_rows().expect("readable");
        assert_eq!(last, LastRows { replaced: vec![0, 2], records: 3, deleted: 1 });
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0, "no file stays");
    }
}
