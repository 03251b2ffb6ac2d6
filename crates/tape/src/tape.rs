//! Reads records of a tape by its index.

use crate::fault::{Fault, TapeError};
use crate::index::{Catalog, Entry, Index, ReadError, id_hash, index_path};
use crate::limits::{MEMBER_BYTES_MAX, RECORD_BYTES_MAX};
use crate::record::TapeRecord;
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A tape with its index, to read single records and parts of lists. A record is returned only if its bytes are those that
/// the index was made from.
#[derive(Debug)]
pub struct Tape {
    file: File,
    index: Index,
}

/// The records of a list, in the order of their datestamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Numbers of entries, or of members of a set.
    numbers: Range<u32>,
    is_set: bool,
}

impl Selection {
    /// The number of records.
    pub fn count(&self) -> u64 {
        u64::from(self.numbers.end.saturating_sub(self.numbers.start))
    }
}

impl Tape {
    /// Opens a tape with its index. The time does not depend on its length.
    ///
    /// # Errors
    ///
    /// The tape cannot be read, or its index is missing, damaged, or of another tape.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path)?;
        let index = Index::open(&index_path(path), &file)?;
        Ok(Self { file, index })
    }

    pub(crate) const fn of(file: File, index: Index) -> Self {
        Self { file, index }
    }

    /// What is known about the whole tape.
    pub const fn catalog(&self) -> &Catalog {
        &self.index.catalog
    }

    /// The name of the state of the tape, in 16 hexadecimal digits: another tape has another one.
    pub fn version(&self) -> &str {
        &self.index.version
    }

    /// A record; `None` if the tape has none with this identifier in this format, which is a number in the catalog.
    ///
    /// # Errors
    ///
    /// The files cannot be read, or were changed.
    pub fn record(&self, identifier: &str, format: usize) -> Result<Option<TapeRecord>, ReadError> {
        let mut reader = RecordReader::new(self);
        for (of_format, number) in self.index.find(id_hash(identifier))? {
            if of_format != format {
                continue;
            }
            let record = reader.record(&self.index.entry(number)?)?;
            // Two identifiers can have one hash.
            if record.identifier == identifier {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The formats of an item, as numbers in the catalog, each with whether the record is deleted.
    ///
    /// # Errors
    ///
    /// The files cannot be read, or were changed.
    pub fn formats_of(&self, identifier: &str) -> Result<Vec<(usize, bool)>, ReadError> {
        let mut reader = RecordReader::new(self);
        let mut formats = Vec::new();
        for (format, number) in self.index.find(id_hash(identifier))? {
            let entry = self.index.entry(number)?;
            if reader.record(&entry)?.identifier == identifier {
                formats.push((format, entry.is_deleted));
            }
        }
        Ok(formats)
    }

    /// The records of a format in a set with datestamps between two times, in seconds since 1970. `format` and `set` are
    /// numbers in the catalog.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    pub fn select(
        &self,
        format: usize,
        set: Option<usize>,
        (from_secs, until_secs): (Option<i64>, Option<i64>),
    ) -> Result<Selection, ReadError> {
        let entries = self.index.catalog.formats.get(format).map_or(0..0, |format| format.entries.clone());
        let entries = self.index.between(entries, from_secs, until_secs)?;
        let Some(set) = set else { return Ok(Selection { numbers: entries, is_set: false }) };
        let Some(set) = self.index.catalog.sets.get(set) else { return Err(ReadError::DamagedIndex) };
        Ok(Selection { numbers: self.index.set_between(set, &entries)?, is_set: true })
    }

    /// Records of a list after the first `skipped` ones: at most `count_max`, and none after these bytes are exceeded.
    ///
    /// # Errors
    ///
    /// The files cannot be read, or were changed.
    pub fn page(
        &self,
        selection: &Selection,
        skipped: u64,
        (count_max, bytes_max): (usize, usize),
    ) -> Result<Vec<TapeRecord>, ReadError> {
        let start = u32::try_from(u64::from(selection.numbers.start) + skipped).unwrap_or(u32::MAX);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for number in (start..selection.numbers.end).take(count_max) {
            let number = if selection.is_set { self.index.set_member(number)? } else { number };
            let entry = self.index.entry(number)?;
            bytes += entry.bytes as usize;
            if !entries.is_empty() && bytes > bytes_max {
                break;
            }
            entries.push(entry);
        }
        // Each gzip member is inflated once.
        entries.sort_unstable_by_key(|entry| entry.xml_at);
        let mut reader = RecordReader::new(self);
        entries.iter().map(|entry| reader.record(entry)).collect()
    }

    pub(crate) fn entry_with_record(&self, number: u32) -> Result<(Entry, TapeRecord), TapeError> {
        let read = || {
            let entry = self.index.entry(number)?;
            let record = RecordReader::new(self).record(&entry)?;
            Ok((entry, record))
        };
        read().map_err(|error: ReadError| TapeError::Io(io::Error::other(error)))
    }

    /// The fault of two records with one identifier in one format.
    pub(crate) fn duplicate_fault(&self, first: u32, second: u32) -> Result<Fault, TapeError> {
        let (first, first_record) = self.entry_with_record(first)?;
        let (second, second_record) = self.entry_with_record(second)?;
        let text = format!(
            "the record {} of {} is also at byte {}, with the date {}; one of them has the date {}",
            second_record.identifier.escape_debug(),
            second_record.prefix.as_deref().unwrap_or("its format"),
            first.xml_at.min(second.xml_at),
            first_record.datestamp,
            second_record.datestamp,
        );
        Ok(Fault::xml(first.xml_at.max(second.xml_at), text))
    }
}

/// Reads records, and keeps the gzip member of the last one.
struct RecordReader<'t> {
    tape: &'t Tape,
    xml_at: u64,
    xml: Vec<u8>,
}

impl<'t> RecordReader<'t> {
    const fn new(tape: &'t Tape) -> Self {
        Self { tape, xml_at: 0, xml: Vec::new() }
    }

    fn record(&mut self, entry: &Entry) -> Result<TapeRecord, ReadError> {
        let bytes = self.bytes(entry)?;
        if crc32fast::hash(&bytes) != entry.checksum {
            return Err(ReadError::Changed(format!(
                "the record at byte {} of the XML is another one",
                entry.xml_at
            )));
        }
        let text = str::from_utf8(&bytes).map_err(|_| ReadError::DamagedIndex)?;
        let root = &self.tape.index.catalog.root;
        TapeRecord::read(root, text, entry.xml_at).map_err(|fault| ReadError::Changed(fault.to_string()))
    }

    fn bytes(&mut self, entry: &Entry) -> Result<Vec<u8>, ReadError> {
        let length = entry.bytes as usize;
        if length > RECORD_BYTES_MAX {
            return Err(ReadError::DamagedIndex);
        }
        if !self.tape.index.catalog.is_gzip {
            let mut bytes = vec![0; length];
            self.tape.file.read_exact_at(&mut bytes, entry.xml_at).map_err(of_tape)?;
            return Ok(bytes);
        }
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = entry.xml_at + bytes.len() as u64;
            self.load(at)?;
            let skipped = usize::try_from(at - self.xml_at).unwrap_or(usize::MAX);
            let rest = self.xml.get(skipped..).unwrap_or_default();
            let part = rest.get(..length - bytes.len()).unwrap_or(rest);
            if part.is_empty() {
                return Err(ReadError::Changed(format!("it ends before byte {at} of the XML")));
            }
            bytes.extend_from_slice(part);
        }
        Ok(bytes)
    }

    /// Inflates the gzip member with this byte of the XML, unless it is the one of the last record.
    fn load(&mut self, at: u64) -> Result<(), ReadError> {
        if (self.xml_at..self.xml_at + self.xml.len() as u64).contains(&at) {
            return Ok(());
        }
        let (member, next) = self.tape.index.gzip_member_at(at)?;
        let length = next.map(|next| next.xml_at.saturating_sub(member.xml_at));
        if length.is_some_and(|length| length > MEMBER_BYTES_MAX) {
            return Err(ReadError::DamagedIndex);
        }
        self.xml.clear();
        self.xml_at = member.xml_at;
        let file = FileFrom { file: &self.tape.file, at: member.file_at };
        let mut xml = GzDecoder::new(file).take(length.unwrap_or(MEMBER_BYTES_MAX));
        xml.read_to_end(&mut self.xml).map_err(of_tape)?;
        Ok(())
    }
}

/// The error of a read at a place that the index names.
fn of_tape(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            ReadError::Changed(error.to_string())
        }
        _ => ReadError::Io(error),
    }
}

/// A file from a place on.
struct FileFrom<'f> {
    file: &'f File,
    at: u64,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
