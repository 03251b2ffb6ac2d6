//! Writes a dump. A record that comes again replaces the earlier one.

use crate::csv_rows;
use crate::dump_error::DumpError;
use crate::dump_form::DumpForm;
use crate::row_index::{LastRows, RowIndex};
use oaimend_mirror::export::ExportedRecord;
use oaimend_repository::DeliveredRecord;
use oaimend_store::check_free_space;
use oaimend_tape::{OnDuplicate, TapeBuild, TapeDescription, TapeRecord, index_path};
use ring::digest::{Context, SHA256};
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Bytes that are written or read at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// The records after which the space of the disk is looked at again.
const SPACE_CHECK_RECORDS: u64 = 1_000;
/// The name of the file while it is written, in a folder of its own.
const FILE: &str = "dump";

/// Writes a dump into a folder of its own, which disappears with it.
pub struct DumpWriter {
    folder: TempDir,
    prefix: String,
    bytes_max: u64,
    added: u64,
    written_bytes: u64,
    output: Output,
}

enum Output {
    Lines { form: DumpForm, file: BufWriter<File>, index: RowIndex },
    Tape(Box<TapeBuild>),
}

/// A dump that was written.
#[derive(Debug)]
pub struct WrittenDump {
    folder: TempDir,
    /// Its number of records, deleted ones included.
    pub records: u64,
    /// The deleted ones of them.
    pub deleted: u64,
    /// Its length, in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

impl WrittenDump {
    /// The file of the dump.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }
}

impl DumpWriter {
    /// Begins a dump of records of this format. `description` is what a tape says about itself. A dump of more than
    /// `bytes_max` fails.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn begin(
        folder: TempDir,
        form: DumpForm,
        (prefix, description): (&str, TapeDescription),
        bytes_max: u64,
    ) -> Result<Self, DumpError> {
        let path = folder.path().join(FILE);
        let output = match form {
            DumpForm::XmlTape => Output::Tape(Box::new(TapeBuild::begin(&path, description)?)),
            DumpForm::Jsonl | DumpForm::Csv => {
                let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create_new(&path)?);
                file.write_all(&head_of(form))?;
                Output::Lines { form, file, index: RowIndex::new(folder.path())? }
            }
        };
        Ok(Self { folder, prefix: prefix.to_owned(), bytes_max, added: 0, written_bytes: 0, output })
    }

    /// Adds a record, in place of an earlier one with the same identifier.
    ///
    /// # Errors
    ///
    /// The dump is too long, or the disk fails or is full.
    pub fn add(&mut self, record: &DeliveredRecord) -> Result<(), DumpError> {
        if self.added.is_multiple_of(SPACE_CHECK_RECORDS) {
            check_free_space(self.folder.path())?;
        }
        self.added += 1;
        match &mut self.output {
            Output::Lines { form, file, index } => {
                let line = if *form == DumpForm::Csv { csv_rows::row(record) } else { json_line(record) };
                self.written_bytes += line.len() as u64;
                file.write_all(&line)?;
                index.add(&record.identifier, record.deleted)?;
            }
            Output::Tape(build) => {
                self.written_bytes += record.xml.len() as u64;
                let read = TapeRecord::from_oai(&record.identifier, &self.prefix, &record.xml);
                let read = read.map_err(|error| DumpError::Record {
                    identifier: record.identifier.escape_debug().to_string(),
                    problem: error.to_string(),
                })?;
                let (datestamp, set_specs) = (record.datestamp.clone(), record.set_specs.clone());
                build.add(&TapeRecord { datestamp, set_specs, is_deleted: record.deleted, ..read })?;
            }
        }
        if self.written_bytes > self.bytes_max {
            return Err(DumpError::TooLarge { max_bytes: self.bytes_max });
        }
        Ok(())
    }

    /// Completes the dump.
    ///
    /// # Errors
    ///
    /// The disk fails, or too many records have changed meanwhile.
    pub fn finish(self) -> Result<WrittenDump, DumpError> {
        let Self { folder, output, .. } = self;
        let path = folder.path().join(FILE);
        let (records, deleted) = match output {
            Output::Lines { form, file, index } => {
                file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
                let LastRows { replaced, records, deleted } = index.last_rows()?;
                if !replaced.is_empty() {
                    without_rows(&path, &head_of(form), &replaced)?;
                }
                (records, deleted)
            }
            Output::Tape(build) => {
                let built = build.finish(OnDuplicate::KeepLast)?;
                std::fs::remove_file(index_path(&path))?;
                (built.catalog.records(), built.catalog.deleted())
            }
        };
        let (bytes, sha256) = digest_of(&path)?;
        Ok(WrittenDump { folder, records, deleted, bytes, sha256 })
    }
}

/// The bytes before the first record.
fn head_of(form: DumpForm) -> Vec<u8> {
    if form == DumpForm::Csv { csv_rows::header_row() } else { Vec::new() }
}

fn json_line(record: &DeliveredRecord) -> Vec<u8> {
    let line = ExportedRecord {
        identifier: (&record.identifier).into(),
        datestamp: (&record.datestamp).into(),
        deleted: record.deleted,
        set_specs: (&record.set_specs).into(),
        record: (&record.xml).into(),
    };
    line.to_line().into_bytes()
}

/// Writes a file again without these lines after its head. Every record is one line.
fn without_rows(path: &Path, head: &[u8], dropped: &[u64]) -> Result<(), DumpError> {
    let kept = path.with_extension("kept");
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, File::create_new(&kept)?);
    let mut passed = vec![0; head.len()];
    reader.read_exact(&mut passed)?;
    writer.write_all(&passed)?;
    let (mut dropped, mut line) = (dropped.iter().peekable(), Vec::new());
    for number in 0_u64.. {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if dropped.next_if(|next| **next == number).is_none() {
            writer.write_all(&line)?;
        }
    }
    writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    std::fs::rename(kept, path)?;
    Ok(())
}

/// The length and the SHA-256 of a file, which is on disk then.
fn digest_of(path: &Path) -> Result<(u64, String), DumpError> {
    let mut file = File::open(path)?;
    file.sync_all()?;
    let (mut context, mut buffer, mut bytes) = (Context::new(&SHA256), vec![0; BUFFER_BYTES], 0);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((bytes, hex::encode(context.finish())));
        }
        context.update(&buffer[..read]);
        bytes += read as u64;
    }
}
