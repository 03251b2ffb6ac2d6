//! The format of an index, and its tables.

use super::blocks::{BlockError, Blocks};
use crate::description::TapeDescription;
use crate::limits::CATALOG_BYTES_MAX;
use crate::members::Member;
use blake2::{Blake2s256, Digest as _};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The first bytes of an index. Another format has another number.
const MAGIC: [u8; 16] = *b"oaimend tape ix1";
/// Bytes at the beginning and at the end of a tape that its index knows.
const BOUND_BYTES: u64 = 64 << 10;

/// The path of the index of a tape.
pub fn index_path(tape: &Path) -> PathBuf {
    let mut path = OsString::from(tape);
    path.push(".idx");
    path.into()
}

/// Why a record or a list cannot be read from a tape.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The tape has no index.
    #[error("it has no index")]
    NoIndex,
    /// The index was made from another tape, or from another state of this one.
    #[error("its index belongs to another tape, or to another state of this one")]
    OtherTape,
    /// The file beside the tape is no index of this version.
    #[error("the file of its index is none of this version")]
    OtherVersion,
    /// The index is damaged.
    #[error("its index is damaged")]
    DamagedIndex,
    /// The tape was changed after its index was made.
    #[error("it was changed after its index was made: {0}")]
    Changed(String),
    /// A file cannot be read.
    #[error("it cannot be read ({})", .0.kind())]
    Io(#[from] io::Error),
}

impl From<BlockError> for ReadError {
    fn from(error: BlockError) -> Self {
        match error {
            BlockError::Damaged => Self::DamagedIndex,
            BlockError::Io(error) => Self::Io(error),
        }
    }
}

/// What an index knows about its whole tape. It is read into memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    /// What the tape says about itself, if oaimend wrote it.
    pub description: TapeDescription,
    /// The start tag of the document element.
    pub(crate) root: String,
    /// The formats.
    pub formats: Vec<CatalogFormat>,
    /// The sets in the order of their setSpecs, with the parents of all.
    pub sets: Vec<CatalogSet>,
    /// Whether a datestamp has seconds.
    pub has_seconds: bool,
    /// The lowest datestamp, in seconds since 1970.
    pub earliest_secs: Option<i64>,
    /// The metadataPrefix of records that do not name theirs.
    pub(crate) default_prefix: Option<String>,
    /// Whether the tape is gzip.
    pub is_gzip: bool,
}

/// A format of a tape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogFormat {
    /// The metadataPrefix.
    pub prefix: String,
    /// The URL of the schema; empty if it is not known.
    pub schema: String,
    /// The namespace; empty if it is not known.
    pub namespace: String,
    /// Its entries.
    pub(crate) entries: Range<u32>,
    /// The number of deleted records.
    pub deleted: u64,
}

impl CatalogFormat {
    /// The number of records, deleted ones included.
    pub fn records(&self) -> u64 {
        u64::from(self.entries.end.saturating_sub(self.entries.start))
    }
}

/// A set of a tape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogSet {
    /// The setSpec.
    pub set_spec: String,
    /// The name.
    pub name: String,
    /// Its members in the table of members.
    pub(crate) members: Range<u32>,
}

impl Catalog {
    /// The number of records in all formats, deleted ones included.
    pub fn records(&self) -> u64 {
        self.formats.iter().map(CatalogFormat::records).sum()
    }

    /// The number of deleted records in all formats.
    pub fn deleted(&self) -> u64 {
        self.formats.iter().map(|format| format.deleted).sum()
    }
}

/// What binds an index to its tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    bytes: u64,
    hash: [u8; 32],
}

impl Binding {
    /// The binding of a tape in its present state.
    pub(crate) fn of(tape: &File) -> io::Result<Self> {
        let bytes = tape.metadata()?.len();
        let mut hasher = Blake2s256::new();
        hasher.update(bytes.to_le_bytes());
        let length = bytes.min(BOUND_BYTES);
        let mut part = vec![0; usize::try_from(length).unwrap_or_default()];
        for at in [0, bytes - length] {
            tape.read_exact_at(&mut part, at)?;
            hasher.update(&part);
        }
        Ok(Self { bytes, hash: hasher.finalize().into() })
    }

    /// The name of this state of the tape, in 16 hexadecimal digits.
    pub(crate) fn name(&self) -> String {
        hex::encode(self.hash.get(..8).unwrap_or_default())
    }
}

/// A table of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) at: u64,
    pub(super) rows: u64,
}

/// The tables of an index, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sections {
    pub(super) gzip_members: Section,
    pub(super) entries: Section,
    pub(super) ids: Section,
    pub(super) set_members: Section,
    /// One row for each byte.
    pub(super) catalog: Section,
}

impl Sections {
    fn all(&self) -> [Section; 5] {
        [self.gzip_members, self.entries, self.ids, self.set_members, self.catalog]
    }
}

/// The first block of an index.
pub(super) fn write_header(binding: &Binding, sections: &Sections) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&binding.bytes.to_le_bytes());
    header.extend_from_slice(&binding.hash);
    for Section { at, rows } in sections.all() {
        header.extend_from_slice(&at.to_le_bytes());
        header.extend_from_slice(&rows.to_le_bytes());
    }
    header
}

pub(super) const HEADER_BYTES: usize = 16 + 8 + 32 + 5 * 16;

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) datestamp_secs: i64,
    /// The first byte of its `tapeRecord` in the XML.
    pub(crate) xml_at: u64,
    pub(crate) bytes: u32,
    pub(crate) checksum: u32,
    pub(crate) is_deleted: bool,
}

pub(super) const ENTRY_BYTES: usize = 28;

impl Entry {
    pub(super) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut row = [0; ENTRY_BYTES];
        let parts: [&[u8]; 5] = [
            &self.datestamp_secs.to_le_bytes(),
            &self.xml_at.to_le_bytes(),
            &self.bytes.to_le_bytes(),
            &self.checksum.to_le_bytes(),
            &u32::from(self.is_deleted).to_le_bytes(),
        ];
        row.copy_from_slice(&parts.concat());
        row
    }

    pub(super) fn from_bytes(row: &[u8; ENTRY_BYTES]) -> Self {
        Self {
            datestamp_secs: i64::from_le_bytes(field(row, 0)),
            xml_at: u64::from_le_bytes(field(row, 8)),
            bytes: u32::from_le_bytes(field(row, 16)),
            checksum: u32::from_le_bytes(field(row, 20)),
            is_deleted: u32::from_le_bytes(field(row, 24)) != 0,
        }
    }
}

/// `N` bytes of a row.
pub(super) fn field<const N: usize>(row: &[u8], at: usize) -> [u8; N] {
    row.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

/// The hash of an identifier. Its format follows in a row of the table, and the number of its entry.
pub(crate) fn id_hash(identifier: &str) -> [u8; 8] {
    field(&Blake2s256::digest(identifier), 0)
}

/// A row of the table of identifiers: hash, format and entry, the highest digits first.
pub(super) const ID_BYTES: usize = 14;
pub(super) const SET_MEMBER_BYTES: usize = 4;
pub(super) const GZIP_MEMBER_BYTES: usize = 16;

/// An open index.
#[derive(Debug)]
pub(crate) struct Index {
    blocks: Blocks,
    sections: Sections,
    pub(crate) catalog: Catalog,
    /// Name of the state of the tape.
    pub(crate) version: String,
}

impl Index {
    /// Opens the index of a tape, and checks that it is the right one.
    pub(crate) fn open(path: &Path, tape: &File) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ReadError::NoIndex,
            _ => ReadError::Io(error),
        })?;
        Self::read(file, tape)
    }

    pub(crate) fn read(file: File, tape: &File) -> Result<Self, ReadError> {
        let blocks = Blocks(file);
        let mut header = [0; HEADER_BYTES];
        let mut magic = [0; 16];
        let has_magic = blocks.0.read_exact_at(&mut magic, 0).is_ok() && magic == MAGIC;
        if !has_magic {
            return Err(ReadError::OtherVersion);
        }
        blocks.read(0, &mut header)?;
        let binding = Binding { bytes: u64::from_le_bytes(field(&header, 16)), hash: field(&header, 24) };
        if binding != Binding::of(tape)? {
            return Err(ReadError::OtherTape);
        }
        let section = |number: usize| Section {
            at: u64::from_le_bytes(field(&header, 56 + 16 * number)),
            rows: u64::from_le_bytes(field(&header, 64 + 16 * number)),
        };
        let sections = Sections {
            gzip_members: section(0),
            entries: section(1),
            ids: section(2),
            set_members: section(3),
            catalog: section(4),
        };
        if sections.catalog.rows > CATALOG_BYTES_MAX {
            return Err(ReadError::DamagedIndex);
        }
        let mut json = vec![0; usize::try_from(sections.catalog.rows).unwrap_or_default()];
        blocks.read(sections.catalog.at, &mut json)?;
        let catalog = serde_json::from_slice(&json).map_err(|_| ReadError::DamagedIndex)?;
        Ok(Self { blocks, sections, catalog, version: binding.name() })
    }

    /// A row of a table.
    fn row<const N: usize>(&self, section: Section, number: u64) -> Result<[u8; N], ReadError> {
        if number >= section.rows {
            return Err(ReadError::DamagedIndex);
        }
        let mut row = [0; N];
        self.blocks.read(section.at + number * N as u64, &mut row)?;
        Ok(row)
    }

    /// An entry.
    pub(crate) fn entry(&self, number: u32) -> Result<Entry, ReadError> {
        Ok(Entry::from_bytes(&self.row(self.sections.entries, u64::from(number))?))
    }

    /// The entries with an identifier of this hash, with their formats.
    pub(crate) fn find(&self, hash: [u8; 8]) -> Result<Vec<(usize, u32)>, ReadError> {
        let ids = self.sections.ids;
        let mut number =
            partition(0..ids.rows, |number| Ok(field::<8>(&self.row::<ID_BYTES>(ids, number)?, 0) < hash))?;
        let mut found = Vec::new();
        while number < ids.rows {
            let row = self.row::<ID_BYTES>(ids, number)?;
            if field::<8>(&row, 0) != hash {
                break;
            }
            let format = usize::from(u16::from_be_bytes(field(&row, 8)));
            found.push((format, u32::from_be_bytes(field(&row, 10))));
            number += 1;
        }
        Ok(found)
    }

    /// The part of a format's entries with datestamps between these seconds.
    pub(crate) fn between(
        &self,
        entries: Range<u32>,
        from_secs: Option<i64>,
        until_secs: Option<i64>,
    ) -> Result<Range<u32>, ReadError> {
        let secs = |number: u64| {
            self.entry(u32::try_from(number).unwrap_or(u32::MAX)).map(|entry| entry.datestamp_secs)
        };
        let all = u64::from(entries.start)..u64::from(entries.end);
        let start = match from_secs {
            Some(from) => partition(all.clone(), |number| Ok(secs(number)? < from))?,
            None => all.start,
        };
        let end = match until_secs {
            Some(until) => partition(start..all.end, |number| Ok(secs(number)? <= until))?,
            None => all.end,
        };
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(number(start)..number(end))
    }

    /// The part of the members of a set whose entries are in this range.
    pub(crate) fn set_between(
        &self,
        set: &CatalogSet,
        entries: &Range<u32>,
    ) -> Result<Range<u32>, ReadError> {
        let all = u64::from(set.members.start)..u64::from(set.members.end);
        let member = |number: u64| self.set_member(u32::try_from(number).unwrap_or(u32::MAX));
        let start = partition(all.clone(), |number| Ok(member(number)? < entries.start))?;
        let end = partition(start..all.end, |number| Ok(member(number)? < entries.end))?;
        Ok(u32::try_from(start).unwrap_or(u32::MAX)..u32::try_from(end).unwrap_or(u32::MAX))
    }

    /// The entry of a member of a set.
    pub(crate) fn set_member(&self, number: u32) -> Result<u32, ReadError> {
        Ok(u32::from_le_bytes(self.row(self.sections.set_members, u64::from(number))?))
    }

    /// The gzip member that contains a byte of the XML, and the start of the next one.
    pub(crate) fn gzip_member_at(&self, xml_at: u64) -> Result<(Member, Option<Member>), ReadError> {
        let members = self.sections.gzip_members;
        let member = |number: u64| {
            let row = self.row::<GZIP_MEMBER_BYTES>(members, number)?;
            let [file_at, xml_at] = [field(&row, 0), field(&row, 8)].map(u64::from_le_bytes);
            Ok::<_, ReadError>(Member { file_at, xml_at })
        };
        let after = partition(0..members.rows, |number| Ok(member(number)?.xml_at <= xml_at))?;
        let Some(number) = after.checked_sub(1) else { return Err(ReadError::DamagedIndex) };
        let next = if after < members.rows { Some(member(after)?) } else { None };
        Ok((member(number)?, next))
    }
}

/// The first number of an ordered range for which `is_before` is false.
fn partition(
    numbers: Range<u64>,
    is_before: impl Fn(u64) -> Result<bool, ReadError>,
) -> Result<u64, ReadError> {
    let Range { mut start, mut end } = numbers;
    while start < end {
        let middle = start + (end - start) / 2;
        if is_before(middle)? {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    Ok(start)
}
