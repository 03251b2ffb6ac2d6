//! Builds a tape and its index under temporary names, and puts both in their place when they are complete.

use crate::description::{TapeDescription, TapeGap};
use crate::fault::TapeError;
use crate::files::{folder_of, new_file};
use crate::index::{Catalog, Index, index_path};
use crate::record::TapeRecord;
use crate::scan::{TapePart, open_scan};
use crate::tape::Tape;
use crate::writer::{TapeWriter, Written};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Which record is kept if two have one identifier in one format. Records of a tape never change, so it holds one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    /// That with the later datestamp. With equal datestamps, equal records count as one, and different ones are an error.
    KeepNewest,
    /// That which was added later, because it is a later state of the same record.
    KeepLast,
}

/// Builds a tape. Nothing appears under its name before [`finish`](Self::finish).
pub struct TapeBuild {
    writer: TapeWriter,
    part: NamedTempFile,
    path: PathBuf,
    description: TapeDescription,
    has_new_gaps: bool,
}

/// A tape that was built.
#[derive(Debug)]
pub struct BuiltTape {
    /// What its index knows about it.
    pub catalog: Catalog,
    /// Identifiers and formats of records that were left out, because another record has the same ones; the first ones.
    pub replaced: Vec<String>,
    /// Their number.
    pub replaced_count: u64,
    /// The length of the XML, in bytes.
    pub xml_bytes: u64,
    /// The length of the file, in bytes.
    pub file_bytes: u64,
}

/// Maximum number of replaced records that are named.
const REPLACED_NAMED_MAX: usize = 20;

impl TapeBuild {
    /// Begins the tape `path`.
    ///
    /// # Errors
    ///
    /// Its folder cannot be written.
    pub fn begin(path: &Path, description: TapeDescription) -> Result<Self, TapeError> {
        let part = new_file(path)?;
        let writer = TapeWriter::new(part.as_file().try_clone()?, &folder_of(path), description.clone())?;
        Ok(Self { writer, part, path: path.to_owned(), description, has_new_gaps: false })
    }

    /// Adds a record. It names its format.
    ///
    /// # Errors
    ///
    /// The record is too long or has no legal datestamp, a limit of tapes is exceeded, or the disk fails.
    pub fn add(&mut self, record: &TapeRecord) -> Result<(), TapeError> {
        self.writer.add(record)
    }

    /// The number of records so far.
    pub fn count(&self) -> u64 {
        self.writer.count()
    }

    /// Notes that records of a source are missing.
    pub fn add_gap(&mut self, gap: TapeGap) {
        self.description.gaps.push(gap);
        self.has_new_gaps = true;
    }

    /// Writes the index, and puts the tape and the index in their place.
    ///
    /// # Errors
    ///
    /// Two records with one identifier in one format have equal datestamps and differ, or the disk fails. No tape appears
    /// then, and one that was there before stays.
    pub fn finish(self, on_duplicate: OnDuplicate) -> Result<BuiltTape, TapeError> {
        let Self { writer, mut part, path, description, has_new_gaps } = self;
        let Written { file, rows, mut xml_bytes } = writer.finish()?;
        let mut index = new_file(&index_path(&path))?;
        let finished = rows.finish(&file, index.as_file().try_clone()?)?;
        let mut catalog = finished.catalog;
        let (mut replaced, mut dropped) = (Vec::new(), HashSet::new());
        if !finished.duplicates.is_empty() {
            let opened = Index::read(index.reopen()?, &file).map_err(io::Error::other)?;
            let tape = Tape::of(file, opened);
            for (first, second) in finished.duplicates {
                let Some((place, name)) = replaced_record(&tape, first, second, on_duplicate)? else {
                    continue;
                };
                dropped.insert(place);
                if replaced.len() < REPLACED_NAMED_MAX {
                    replaced.push(name);
                }
            }
        }
        if has_new_gaps || !dropped.is_empty() {
            let written;
            (part, written) = rewrite(&part, &path, description, &dropped)?;
            xml_bytes = written.xml_bytes;
            index = new_file(&index_path(&path))?;
            catalog = written.rows.finish(&written.file, index.as_file().try_clone()?)?.catalog;
        }
        let file_bytes = part.as_file().metadata()?.len();
        part.persist(&path).map_err(|error| error.error)?;
        index.persist(index_path(&path)).map_err(|error| error.error)?;
        File::open(folder_of(&path))?.sync_all()?;
        let replaced_count = dropped.len() as u64;
        Ok(BuiltTape { catalog, replaced, replaced_count, xml_bytes, file_bytes })
    }
}

/// The place and the name of the one of two records that is left out; `None` if only the hashes of their identifiers are
/// equal.
fn replaced_record(
    tape: &Tape,
    first: u32,
    second: u32,
    on_duplicate: OnDuplicate,
) -> Result<Option<(u64, String)>, TapeError> {
    let (older, older_record) = tape.entry_with_record(first)?;
    let (newer, newer_record) = tape.entry_with_record(second)?;
    if older_record.identifier != newer_record.identifier {
        return Ok(None);
    }
    let name = format!("{} in {}", newer_record.identifier, newer_record.prefix.clone().unwrap_or_default());
    let is_equal_date = older.datestamp_secs == newer.datestamp_secs;
    let place = match on_duplicate {
        OnDuplicate::KeepLast => older.xml_at.min(newer.xml_at),
        OnDuplicate::KeepNewest if is_equal_date && older_record != newer_record => {
            return Err(tape.duplicate_fault(first, second)?.into());
        }
        OnDuplicate::KeepNewest => older.xml_at,
    };
    Ok(Some((place, name)))
}

/// Writes a tape again without the records at these places.
fn rewrite(
    part: &NamedTempFile,
    path: &Path,
    description: TapeDescription,
    dropped: &HashSet<u64>,
) -> Result<(NamedTempFile, Written), TapeError> {
    let target = new_file(path)?;
    let mut writer = TapeWriter::new(target.as_file().try_clone()?, &folder_of(path), description)?;
    let mut scan = open_scan(part.path())?;
    while let Some(kind) = scan.next_part()? {
        if kind == TapePart::Record && !dropped.contains(&scan.text_at()) {
            writer.add(&scan.record()?)?;
        }
    }
    Ok((target, writer.finish()?))
}

#[cfg(test)]
mod tests;
