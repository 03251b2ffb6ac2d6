//! Sorts more entries than memory should hold, for comparisons with a source.
//!
//! Entries are sorted in memory up to [`SORT_MEMORY_BYTES_MAX`]. Beyond that, sorted runs are written to one temporary
//! file beside the store, and merged when they are read. The file has no name, so nothing is left after a kill.

use oaimend_oai::UnixSecs;
use oaimend_store::{IdentifierEntry, MirrorError, RecordStatus, check_free_space, clamp_time};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::{cmp::Reverse, mem};

/// Maximum size of the entries in memory while they are sorted, in bytes.
pub(super) const SORT_MEMORY_BYTES_MAX: usize = 16 << 20;
/// Maximum size of all sorted entries, in bytes on disk. 10 million entries have about 500 MB.
const SORT_DISK_BYTES_MAX: u64 = 8 << 30;
/// Bytes of a run that are read at a time, unless an entry is longer. The largest file has 512 runs.
const READ_BYTES: usize = 16 << 10;
/// Bytes of an entry in the file besides its identifier: the length, the datestamp and the status.
const FIXED_BYTES: usize = 4 + 8 + 1;

/// Entries that are being sorted by their identifiers, in the order of their bytes.
#[derive(Debug)]
pub(super) struct EntrySort {
    folder: PathBuf,
    memory_bytes_max: usize,
    entries: Vec<IdentifierEntry>,
    /// The size of the entries in memory, in bytes.
    entry_bytes: usize,
    file: Option<File>,
    file_bytes: u64,
    /// The place of each run in the file.
    runs: Vec<(u64, u64)>,
}

/// Sorted entries, read one after the other. Of several entries with one identifier, the one with the latest datestamp,
/// and of equal ones the one that was added last.
#[derive(Debug)]
pub(super) struct SortedEntries {
    folder: PathBuf,
    file: Option<File>,
    runs: Vec<Run>,
    /// The next entry of each run: by identifier, and within one identifier by run.
    heads: BinaryHeap<Reverse<(String, usize, Head)>>,
}

/// The rest of an entry whose identifier is known: datestamp and whether it is deleted.
type Head = (UnixSecs, bool);

/// A run that is being read.
#[derive(Debug)]
enum Run {
    Memory(std::vec::IntoIter<IdentifierEntry>),
    File { start: u64, end: u64, buffer: Vec<u8>, at: usize },
}

impl EntrySort {
    /// Sorts in a folder, which need not exist as long as the entries fit in memory.
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            memory_bytes_max: SORT_MEMORY_BYTES_MAX,
            entries: Vec::new(),
            entry_bytes: 0,
            file: None,
            file_bytes: 0,
            runs: Vec::new(),
        }
    }

    /// Adds entries. Blocks on the disk if there are many.
    ///
    /// # Errors
    ///
    /// The file cannot be written, the disk is almost full, or there are too many entries.
    pub(super) fn add(
        &mut self,
        entries: impl IntoIterator<Item = IdentifierEntry>,
    ) -> Result<(), MirrorError> {
        for entry in entries {
            // As the store keeps it.
            let entry = IdentifierEntry { datestamp_secs: clamp_time(entry.datestamp_secs), ..entry };
            self.entry_bytes += entry.identifier.len() + size_of::<IdentifierEntry>();
            self.entries.push(entry);
            if self.entry_bytes >= self.memory_bytes_max {
                self.write_run()?;
            }
        }
        Ok(())
    }

    /// Sorts what was added.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(super) fn sorted(mut self) -> Result<SortedEntries, MirrorError> {
        self.sort();
        let run = |&(start, end): &(u64, u64)| Run::File { start, end, buffer: Vec::new(), at: 0 };
        let mut runs: Vec<Run> = self.runs.iter().map(run).collect();
        runs.push(Run::Memory(mem::take(&mut self.entries).into_iter()));
        let mut sorted =
            SortedEntries { folder: self.folder, file: self.file, runs, heads: BinaryHeap::new() };
        for run in 0..sorted.runs.len() {
            sorted.read_head(run)?;
        }
        Ok(sorted)
    }

    /// Sorts the entries in memory. Those with one identifier stay in the order in which they were added.
    fn sort(&mut self) {
        self.entries.sort_by(|one, other| one.identifier.cmp(&other.identifier));
    }

    fn write_run(&mut self) -> Result<(), MirrorError> {
        self.sort();
        check_free_space(&self.folder)?;
        let mut bytes = Vec::with_capacity(self.entry_bytes);
        for entry in self.entries.drain(..) {
            // Identifiers are limited by the length of records.
            let len = u32::try_from(entry.identifier.len()).unwrap_or(u32::MAX);
            bytes.extend(len.to_le_bytes());
            bytes.extend(entry.identifier.as_bytes());
            bytes.extend(entry.datestamp_secs.0.to_le_bytes());
            bytes.push(u8::from(entry.status == RecordStatus::Deleted));
        }
        self.entry_bytes = 0;
        let end = self.file_bytes + bytes.len() as u64;
        if end > SORT_DISK_BYTES_MAX {
            let (bytes, max) = (to_usize(end), to_usize(SORT_DISK_BYTES_MAX));
            return Err(MirrorError::TooLarge { what: "a list of identifiers", bytes, max });
        }
        let file = match self.file.as_mut() {
            Some(file) => file,
            None => self.file.insert(nameless_file(&self.folder)?),
        };
        file.write_all(&bytes).map_err(|error| MirrorError::io(&self.folder, error))?;
        self.runs.push((self.file_bytes, end));
        self.file_bytes = end;
        Ok(())
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A file that the system removes when it is closed.
fn nameless_file(folder: &Path) -> Result<File, MirrorError> {
    let path = folder.join(format!("sort-{:016x}.part", fastrand::u64(..)));
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.map_err(|error| MirrorError::io(&path, error))?;
    std::fs::remove_file(&path).map_err(|error| MirrorError::io(&path, error))?;
    Ok(file)
}

impl SortedEntries {
    /// The next entry; `None` at the end. Blocks on the disk if there are many.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(super) fn next_entry(&mut self) -> Result<Option<IdentifierEntry>, MirrorError> {
        let Some(Reverse((identifier, run, mut head))) = self.heads.pop() else { return Ok(None) };
        self.read_head(run)?;
        while let Some(Reverse((next, run, later))) = self.heads.peek()
            && *next == identifier
        {
            let (run, later) = (*run, *later);
            if later.0 >= head.0 {
                head = later;
            }
            self.heads.pop();
            self.read_head(run)?;
        }
        let (datestamp_secs, is_deleted) = head;
        let status = if is_deleted { RecordStatus::Deleted } else { RecordStatus::Live };
        Ok(Some(IdentifierEntry { identifier, datestamp_secs, status }))
    }

    /// Puts the next entry of a run among the heads, unless it is at its end.
    fn read_head(&mut self, run: usize) -> Result<(), MirrorError> {
        let Some(source) = self.runs.get_mut(run) else { return Ok(()) };
        let entry = source.next(self.file.as_ref()).map_err(|error| MirrorError::io(&self.folder, error))?;
        if let Some(IdentifierEntry { identifier, datestamp_secs, status }) = entry {
            let head = (datestamp_secs, status == RecordStatus::Deleted);
            self.heads.push(Reverse((identifier, run, head)));
        }
        Ok(())
    }
}

impl Run {
    fn next(&mut self, file: Option<&File>) -> std::io::Result<Option<IdentifierEntry>> {
        let (file, start, end, buffer, at) = match (self, file) {
            (Self::Memory(entries), _) => return Ok(entries.next()),
            (Self::File { start, end, buffer, at }, Some(file)) => (file, start, *end, buffer, at),
            (Self::File { .. }, None) => return Ok(None),
        };
        let mut wanted = FIXED_BYTES;
        loop {
            let rest = buffer.get(*at..).unwrap_or_default();
            if let Some((entry, len)) = decode(rest) {
                *at += len;
                return Ok(Some(entry));
            }
            if *start == end {
                return Ok(None);
            }
            buffer.drain(..*at);
            *at = 0;
            wanted = (2 * wanted).max(READ_BYTES);
            let len = to_usize(end - *start).min(wanted);
            let old = buffer.len();
            buffer.resize(old + len, 0);
            file.read_exact_at(&mut buffer[old..], *start)?;
            *start += len as u64;
        }
    }
}

/// The first entry of these bytes and its length; `None` if they end before it does.
fn decode(bytes: &[u8]) -> Option<(IdentifierEntry, usize)> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (identifier, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let (datestamp, rest) = rest.split_first_chunk()?;
    let status = if *rest.first()? == 0 { RecordStatus::Live } else { RecordStatus::Deleted };
    let entry = IdentifierEntry {
        identifier: String::from_utf8_lossy(identifier).into_owned(),
        datestamp_secs: UnixSecs(i64::from_le_bytes(*datestamp)),
        status,
    };
    Some((entry, FIXED_BYTES + identifier.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn sort(folder: &Path, memory_bytes_max: usize) -> EntrySort {
        EntrySort { memory_bytes_max, ..EntrySort::new(folder) }
    }

    fn entry(random: &mut fastrand::Rng) -> IdentifierEntry {
        let long = if random.u8(..) == 0 { "x".repeat(3 * READ_BYTES) } else { String::new() };
        IdentifierEntry {
            identifier: format!("oai:ü:{}{long}", random.u32(..3_000)),
            datestamp_secs: UnixSecs(random.i64(-1_000_000..1_000_000)),
            status: if random.bool() { RecordStatus::Live } else { RecordStatus::Deleted },
        }
    }

    #[test]
    fn entries_come_in_order_and_the_latest_of_each_identifier_counts() {
        let seed = 20_261_126;
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for memory_bytes_max in [1, 5_000, 200_000, usize::MAX] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let mut sort = sort(folder.path(), memory_bytes_max);
            let mut expected = BTreeMap::new();
            let count = if memory_bytes_max == 1 { 300 } else { 5_000 };
            for _ in 0..count {
                let entry = entry(&mut random);
                let is_outdated = expected
                    .get(&entry.identifier)
                    .is_some_and(|known: &IdentifierEntry| known.datestamp_secs > entry.datestamp_secs);
                if !is_outdated {
                    expected.insert(entry.identifier.clone(), entry.clone());
                }
                sort.add([entry]).expect("writable");
                assert!(sort.entry_bytes < memory_bytes_max, "the limit is kept");
            }
            assert_eq!(sort.runs.is_empty(), memory_bytes_max == usize::MAX);
            let files = std::fs::read_dir(folder.path()).expect("readable").count();
            assert_eq!(files, 0, "a kill leaves nothing");
            let mut sorted = sort.sorted().expect("readable");
            for expected in expected.into_values() {
                assert_eq!(sorted.next_entry().expect("readable"), Some(expected));
            }
            assert_eq!(sorted.next_entry().expect("readable"), None);
        }
    }
}
