//! The files of the record log. A segment is a header of 16 bytes and blocks, one after the other.
//!
//! Only the index knows which bytes of a segment are valid. Bytes after them are from a commit that did not end; the
//! next commit overwrites them. A segment that the index does not know is removed when the store is opened.

use super::index::IndexError;
use oaimend_store::mirror::MirrorError;
use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes after which a segment is full. A larger block has a segment of its own.
pub(super) const SEGMENT_BYTES_MAX: u64 = 32 << 20;
/// The name of the format, its version, and the end of the header.
const HEADER: [u8; 16] = *b"oaimend mirror 1";
pub(super) const HEADER_BYTES: u64 = HEADER.len() as u64;

/// All segments of a store.
#[derive(Debug)]
pub(super) struct Segments {
    folder: PathBuf,
}

/// A collection and the number of a segment.
pub(super) type SegmentId = (u32, u32);

impl Segments {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The folder of the store.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, (collection, segment): SegmentId) -> PathBuf {
        self.folder.join(format!("{collection:08x}-{segment:08x}.log"))
    }

    /// Whether the file is there.
    pub(super) fn exists(&self, id: SegmentId) -> bool {
        self.path(id).exists()
    }

    /// Writes `bytes` after the first `valid_bytes` of a segment, and syncs them. A segment without valid bytes is
    /// created.
    pub(super) fn append(&self, id: SegmentId, valid_bytes: u64, bytes: &[u8]) -> Result<(), IndexError> {
        let path = self.path(id);
        Ok(self.append_to(&path, valid_bytes, bytes).map_err(|error| MirrorError::io(&path, error))?)
    }

    fn append_to(&self, path: &Path, valid_bytes: u64, bytes: &[u8]) -> std::io::Result<()> {
        let is_new = valid_bytes == 0;
        let mut file = File::options().create(is_new).truncate(is_new).write(true).open(path)?;
        if is_new {
            file.write_all(&HEADER)?;
        } else {
            file.set_len(valid_bytes)?;
            file.seek(SeekFrom::Start(valid_bytes))?;
        }
        file.write_all(bytes)?;
        file.sync_data()?;
        if is_new {
            File::open(&self.folder)?.sync_all()?;
        }
        Ok(())
    }

    /// Reads up to `len` bytes; fewer at the end of the file. `None` if the file is not there.
    pub(super) fn read(&self, id: SegmentId, offset: u64, len: usize) -> Result<Option<Vec<u8>>, IndexError> {
        let path = self.path(id);
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::with_capacity(len);
            file.take(len as u64).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(MirrorError::io(&path, error).into()),
        }
    }

    /// Removes segments, if they are there.
    pub(super) fn remove(&self, ids: impl IntoIterator<Item = SegmentId>) -> Result<(), IndexError> {
        for id in ids {
            let path = self.path(id);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(MirrorError::io(&path, error).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes every segment that is not in `known`. They are from a commit, a compaction or a removal that was
    /// killed.
    pub(super) fn remove_unknown(&self, known: &HashSet<SegmentId>) -> Result<(), IndexError> {
        let entries =
            std::fs::read_dir(&self.folder).map_err(|error| MirrorError::io(&self.folder, error))?;
        let names = entries.flatten().filter_map(|entry| id_of(entry.file_name().to_str()?));
        self.remove(names.filter(|id| !known.contains(id)))
    }
}

fn id_of(name: &str) -> Option<SegmentId> {
    let (collection, segment) = name.strip_suffix(".log")?.split_once('-')?;
    Some((u32::from_str_radix(collection, 16).ok()?, u32::from_str_radix(segment, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_replaces_bytes_that_are_not_valid() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let segments = Segments::new(folder.path());
        segments.append((1, 2), 0, b"first").expect("writable");
        let valid = HEADER_BYTES + 5;
        segments.append((1, 2), valid, b"a commit that did not end").expect("writable");
        segments.append((1, 2), valid, b"second").expect("writable");
        let read = segments.read((1, 2), HEADER_BYTES, 100).expect("readable");
        assert_eq!(read.as_deref(), Some(b"firstsecond".as_slice()));
        let read = segments.read((1, 2), valid, 3).expect("readable");
        assert_eq!(read.as_deref(), Some(b"sec".as_slice()));
    }

    #[test]
    fn segments_that_the_index_does_not_know_are_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let segments = Segments::new(folder.path());
        for id in [(1, 2), (1, 0xab), (0x10, 2)] {
            segments.append(id, 0, b"x").expect("writable");
        }
        std::fs::write(folder.path().join("index.redb"), b"").expect("writable");
        segments.remove_unknown(&HashSet::from([(1, 0xab)])).expect("writable");
        let is_there = |id| segments.read(id, 0, 1).expect("readable").is_some();
        assert!(is_there((1, 0xab)) && !is_there((1, 2)) && !is_there((0x10, 2)));
        assert!(folder.path().join("index.redb").exists());
    }
}
