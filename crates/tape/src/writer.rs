//! Writes the XML of a tape as gzip members, and collects its index.

use crate::description::TapeDescription;
use crate::fault::{Fault, TapeError};
use crate::index::IndexRows;
use crate::limits::{MEMBER_BYTES, RECORD_BYTES_MAX};
use crate::members::Member;
use crate::names::NAMESPACE;
use crate::record::TapeRecord;
use flate2::{Compress, Compression, FlushCompress, Status};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// The level of `gzip`.
const LEVEL: u32 = 6;
/// The header of a gzip member without a name and a time: deflate, no flags, an unknown system (RFC 1952, section 2.3).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Writes a tape. A record is never divided between two members.
pub(crate) struct TapeWriter {
    file: BufWriter<File>,
    file_at: u64,
    /// The XML of the next member, and its place.
    pending: String,
    pending_at: u64,
    compressed: Vec<u8>,
    compress: Compress,
    rows: IndexRows,
}

/// A tape that is written.
pub(crate) struct Written {
    pub(crate) file: File,
    pub(crate) rows: IndexRows,
    pub(crate) xml_bytes: u64,
}

impl TapeWriter {
    /// Begins a tape. Temporary files of its index are in `folder`.
    pub(crate) fn new(file: File, folder: &Path, description: TapeDescription) -> Result<Self, TapeError> {
        let root = format!("<tape xmlns=\"{NAMESPACE}\">");
        let mut rows = IndexRows::new(folder, &root, None)?;
        let mut pending = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{root}");
        description.write(&mut pending);
        rows.describe(description);
        let mut writer = Self {
            file: BufWriter::with_capacity(1 << 20, file),
            file_at: 0,
            pending,
            pending_at: 0,
            compressed: Vec::new(),
            compress: Compress::new(Compression::new(LEVEL), false),
            rows,
        };
        writer.end_member()?;
        Ok(writer)
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, record: &TapeRecord) -> Result<(), TapeError> {
        let start = self.pending.len();
        let xml_at = self.pending_at + start as u64;
        record.write(&mut self.pending);
        let xml = self.pending.get(start..).unwrap_or_default().trim_end();
        let prefix = record.prefix.as_deref().unwrap_or_default();
        if xml.len() > RECORD_BYTES_MAX {
            let (identifier, limit) = (record.identifier.escape_debug(), RECORD_BYTES_MAX >> 20);
            return Err(
                Fault::xml(xml_at, format!("the record {identifier} is longer than {limit} MiB")).into()
            );
        }
        self.rows.add(record, prefix, (xml_at, xml))?;
        if self.pending.len() >= MEMBER_BYTES {
            self.end_member()?;
        }
        Ok(())
    }

    /// The number of records so far.
    pub(crate) const fn count(&self) -> u64 {
        self.rows.count()
    }

    /// Ends the tape.
    pub(crate) fn finish(mut self) -> Result<Written, TapeError> {
        self.pending.push_str("</tape>\n");
        self.end_member()?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(Written { file, rows: self.rows, xml_bytes: self.pending_at })
    }

    fn end_member(&mut self) -> Result<(), TapeError> {
        self.rows.add_gzip_members(vec![Member { file_at: self.file_at, xml_at: self.pending_at }])?;
        let xml = self.pending.as_bytes();
        self.compressed.clear();
        self.compressed.extend_from_slice(&GZIP_HEADER);
        self.compress.reset();
        loop {
            let read = usize::try_from(self.compress.total_in()).unwrap_or(usize::MAX);
            self.compressed.reserve(xml.len().saturating_sub(read) / 2 + 4_096);
            let rest = xml.get(read..).unwrap_or_default();
            let status = self.compress.compress_vec(rest, &mut self.compressed, FlushCompress::Finish);
            match status.map_err(io::Error::other)? {
                Status::StreamEnd => break,
                Status::Ok | Status::BufError => {}
            }
        }
        self.compressed.extend_from_slice(&crc32fast::hash(xml).to_le_bytes());
        // The length modulo 2^32, as the format has it.
        self.compressed.extend_from_slice(&(xml.len() as u32).to_le_bytes());
        self.file.write_all(&self.compressed)?;
        self.file_at += self.compressed.len() as u64;
        self.pending_at += xml.len() as u64;
        self.pending.clear();
        Ok(())
    }
}
