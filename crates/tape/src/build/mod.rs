//! Builds a tape and its index under temporary names, and puts both in their place when they are complete.

use crate::description::{TapeDescription, TapeGap};
use crate::fault::TapeError;
use crate::files::{folder_of, new_file};
use crate::index::{Catalog, Entry, Index, index_path};
use crate::record::TapeRecord;
use crate::scan::{TapePart, open_scan};
use crate::tape::Tape;
use crate::writer::{TapeWriter, Written};
use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, HashSet};
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
        let mut replaced = Replaced::default();
        if !finished.duplicates.is_empty() {
            let opened = Index::read(index.reopen()?, &file).map_err(io::Error::other)?;
            replaced = Replaced::find(&Tape::of(file, opened), &finished.duplicates, on_duplicate)?;
        }
        let Replaced { places, names } = replaced;
        if has_new_gaps || !places.is_empty() {
            let written;
            (part, written) = rewrite(&part, &path, description, &places)?;
            xml_bytes = written.xml_bytes;
            index = new_file(&index_path(&path))?;
            catalog = written.rows.finish(&written.file, index.as_file().try_clone()?)?.catalog;
        }
        let file_bytes = part.as_file().metadata()?.len();
        part.persist(&path).map_err(|error| error.error)?;
        index.persist(index_path(&path)).map_err(|error| error.error)?;
        File::open(folder_of(&path))?.sync_all()?;
        let replaced_count = places.len() as u64;
        Ok(BuiltTape { catalog, replaced: names, replaced_count, xml_bytes, file_bytes })
    }
}

/// The records that are left out, because another one has their identifier in their format.
#[derive(Default)]
struct Replaced {
    /// Their places in the XML.
    places: HashSet<u64>,
    /// Identifiers and formats of the first ones.
    names: Vec<String>,
}

impl Replaced {
    /// Compares the entries of these pairs, which have equal hashes of identifiers in one format. A record can have any
    /// number of states, whose pairs follow one another: the second entry of one is the first entry of the next.
    fn find(tape: &Tape, pairs: &[(u32, u32)], on_duplicate: OnDuplicate) -> Result<Self, TapeError> {
        let mut replaced = Self::default();
        for group in pairs.chunk_by(|(_, second), (first, _)| second == first) {
            let first = group.first().map(|(first, _)| *first);
            let numbers = first.into_iter().chain(group.iter().map(|(_, second)| *second));
            // Two identifiers can have one hash.
            let mut kept: HashMap<String, (u32, Entry)> = HashMap::new();
            for number in numbers {
                let (entry, record) = tape.entry_with_record(number)?;
                let mut earlier = match kept.entry(record.identifier.clone()) {
                    MapEntry::Vacant(vacant) => {
                        vacant.insert((number, entry));
                        continue;
                    }
                    MapEntry::Occupied(occupied) => occupied,
                };
                let (kept_number, kept_entry) = *earlier.get();
                let is_later = match on_duplicate {
                    OnDuplicate::KeepLast => kept_entry.xml_at < entry.xml_at,
                    OnDuplicate::KeepNewest => {
                        let is_equal_date = kept_entry.datestamp_secs == entry.datestamp_secs;
                        if is_equal_date && tape.entry_with_record(kept_number)?.1 != record {
                            return Err(tape.duplicate_fault(kept_number, number)?.into());
                        }
                        true
                    }
                };
                replaced.add(if is_later { kept_entry } else { entry }, &record);
                if is_later {
                    earlier.insert((number, entry));
                }
            }
        }
        Ok(replaced)
    }

    fn add(&mut self, entry: Entry, record: &TapeRecord) {
        self.places.insert(entry.xml_at);
        if self.names.len() < REPLACED_NAMED_MAX {
            let prefix = record.prefix.as_deref().unwrap_or_default();
            self.names.push(format!("{} in {prefix}", record.identifier));
        }
    }
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
