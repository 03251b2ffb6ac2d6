//! Checks a whole tape and its index.

use crate::fault::TapeError;
use crate::files::{folder_of, new_file};
use crate::index::{Catalog, Index, IndexRows, ReadError, fill_rows, find_duplicate, index_path};
use crate::scan::open_scan_with_members;
use crate::strict::check;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The result of a check without a fault of the tape.
#[derive(Debug)]
pub struct Verification {
    /// What the tape contains.
    pub catalog: Catalog,
    /// The state of its index.
    pub index: IndexState,
}

/// The state of the index of a whole tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It is the index of the tape.
    Right,
    /// There is none.
    Missing,
    /// There can be none: no seek reaches the records, or the format of a record is not known.
    Impossible(String),
    /// It is another one, or damaged.
    Wrong(String),
}

/// Checks that a tape is well-formed to its last byte, that each identifier is in it once in each format, and that its
/// index is right. `observe` is called with the number of records so far.
///
/// # Errors
///
/// The first fault of the tape, or a file cannot be read.
pub fn verify(tape: &Path, observe: &mut dyn FnMut(u64)) -> Result<Verification, TapeError> {
    let file = File::open(tape)?;
    let stored = Index::open(&index_path(tape), &file);
    let default_prefix = stored.as_ref().ok().and_then(|index| index.catalog.default_prefix.clone());
    let scratch = folder_for_scratch(tape);
    let mut scan = open_scan_with_members(tape)?;
    let mut rows = IndexRows::new(&scratch, scan.root(), default_prefix)?;
    rows.allow_unindexable();
    let end_tag =
        scan.root().split(|character: char| character.is_ascii_whitespace()).next().unwrap_or_default();
    let end_tag = end_tag.trim_start_matches('<').trim_end_matches('>');
    check("", &format!("{}</{end_tag}>", scan.root()), 0)?;
    fill_rows(&mut scan, &mut rows, observe, &mut check)?;
    let impossible = rows.why_unindexable();
    let written = new_file(&scratch.join("index"))?;
    let finished = rows.finish(&file, written.as_file().try_clone()?)?;
    if let Some(fault) = find_duplicate(tape, &written, &finished.duplicates)? {
        return Err(fault.into());
    }
    let index = match (stored, impossible) {
        (Err(ReadError::NoIndex), Some(text)) => IndexState::Impossible(text),
        (Err(ReadError::NoIndex), None) => IndexState::Missing,
        (Err(error), _) => IndexState::Wrong(error.to_string()),
        (Ok(_), _) => compare(&index_path(tape), written.path())?,
    };
    Ok(Verification { catalog: finished.catalog, index })
}

/// A folder for temporary files: that of the tape, if it can be written.
fn folder_for_scratch(tape: &Path) -> std::path::PathBuf {
    let folder = folder_of(tape);
    let is_writable = tempfile::tempfile_in(&folder).is_ok();
    if is_writable { folder } else { std::env::temp_dir() }
}

fn compare(stored: &Path, right: &Path) -> io::Result<IndexState> {
    let (mut stored, mut right) = (BufReader::new(File::open(stored)?), BufReader::new(File::open(right)?));
    let (mut one, mut other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let (read, expected) = (read_full(&mut stored, &mut one)?, read_full(&mut right, &mut other)?);
        if one.get(..read) != other.get(..expected) {
            return Ok(IndexState::Wrong("its index does not list the records of the tape".to_owned()));
        }
        if read == 0 {
            return Ok(IndexState::Right);
        }
    }
}

/// Fills the buffer, except at the end of the file.
fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(buffer.get_mut(filled..).unwrap_or_default())? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
