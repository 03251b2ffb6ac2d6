//! Writes a dump. A record that comes again replaces the earlier one.

use crate::csv_rows;
use crate::dump_error::DumpError;
use crate::dump_form::DumpForm;
use crate::kept_dumps::DumpPart;
use crate::row_index::{LastRows, RecordKey, RowIndex};
use oaimend_mirror::export::ExportedRecord;
use oaimend_repository::DeliveredRecord;
use oaimend_tape::{OnDuplicate, TapeBuild, TapeDescription, TapeGap, TapeRecord, index_path};
use ring::digest::{Context, SHA256};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes that are written or read at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// The bytes after which the space of the disk is looked at again.
const SPACE_CHECK_BYTES: u64 = 16 << 20;
/// The name of the file while it is written, in a folder of its own.
const FILE: &str = "dump";

/// Writes a dump into a folder of its own, which disappears with it.
pub struct DumpWriter {
    part: DumpPart,
    prefix: String,
    bytes_max: u64,
    written_bytes: u64,
    /// The written bytes at which the space of the disk is looked at again.
    check_at_bytes: u64,
    output: Output,
}

enum Output {
    /// The place of a row in the index is its place in the file after the head.
    Rows { form: DumpForm, file: BufWriter<File>, index: RowIndex },
    /// A tape has one record with an identifier, so the index finds those of two repositories.
    Tape { build: Box<TapeBuild>, index: Option<RowIndex> },
}

/// A dump that was written.
#[derive(Debug)]
pub struct WrittenDump {
    part: DumpPart,
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
        self.part.path().join(FILE)
    }
}

impl DumpWriter {
    /// Begins a dump of records of this format. `description` is what a tape says about itself. A record replaces an
    /// earlier one with the same `key`. A dump of more than `bytes_max` fails.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn begin(
        part: DumpPart,
        form: DumpForm,
        (prefix, description): (&str, TapeDescription),
        key: RecordKey,
        bytes_max: u64,
    ) -> Result<Self, DumpError> {
        part.ensure_space(SPACE_CHECK_BYTES)?;
        let path = part.path().join(FILE);
        let output = match form {
            DumpForm::XmlTape => {
                let build = Box::new(TapeBuild::begin(&path, description)?);
                let index = match key {
                    RecordKey::Identifier => None,
                    RecordKey::IdentifierAndRepository => {
                        Some(RowIndex::new(part.path(), RecordKey::Identifier)?)
                    }
                };
                Output::Tape { build, index }
            }
            DumpForm::Jsonl | DumpForm::Csv => {
                let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create_new(&path)?);
                file.write_all(&head_of(form))?;
                Output::Rows { form, file, index: RowIndex::new(part.path(), key)? }
            }
        };
        let (prefix, check_at_bytes) = (prefix.to_owned(), SPACE_CHECK_BYTES);
        Ok(Self { part, prefix, bytes_max, written_bytes: 0, check_at_bytes, output })
    }

    /// Adds a record, in place of an earlier one with the same key.
    ///
    /// # Errors
    ///
    /// The dump is too long, or the disk fails or is full.
    pub fn add(&mut self, record: &DeliveredRecord) -> Result<(), DumpError> {
        if self.written_bytes >= self.check_at_bytes {
            self.part.ensure_space(SPACE_CHECK_BYTES)?;
            self.check_at_bytes = self.written_bytes + SPACE_CHECK_BYTES;
        }
        match &mut self.output {
            Output::Rows { form, file, index } => {
                let row = if *form == DumpForm::Csv { csv_rows::row(record) } else { json_line(record) };
                self.written_bytes += row.len() as u64;
                file.write_all(&row)?;
                index.add(record, row.len() as u64)?;
            }
            Output::Tape { build, index } => {
                self.written_bytes += record.xml.len() as u64;
                let read = TapeRecord::from_oai(&record.identifier, &self.prefix, &record.xml);
                let read = read.map_err(|error| DumpError::Record {
                    identifier: record.identifier.escape_debug().to_string(),
                    problem: error.to_string(),
                })?;
                let (datestamp, set_specs) = (record.datestamp.clone(), record.set_specs.clone());
                build.add(&TapeRecord { datestamp, set_specs, is_deleted: record.deleted, ..read })?;
                if let Some(index) = index {
                    index.add(record, record.xml.len() as u64)?;
                }
            }
        }
        if self.written_bytes > self.bytes_max {
            return Err(DumpError::TooLarge { max_bytes: self.bytes_max });
        }
        Ok(())
    }

    /// Notes that the dump lacks records of a source. A tape says it too.
    pub fn add_gap(&mut self, gap: TapeGap) {
        if let Output::Tape { build, .. } = &mut self.output {
            build.add_gap(gap);
        }
    }

    /// Completes the dump.
    ///
    /// # Errors
    ///
    /// The disk fails, too many records have changed meanwhile, or the records of two repositories in a tape have one
    /// identifier.
    pub fn finish(self) -> Result<WrittenDump, DumpError> {
        let Self { part, output, .. } = self;
        let path = part.path().join(FILE);
        let (records, deleted) = match output {
            Output::Rows { form, file, index } => {
                file.into_inner().map_err(io::IntoInnerError::into_error)?;
                let LastRows { replaced, records, deleted, .. } = index.last_rows()?;
                if !replaced.is_empty() {
                    // Both files are on the disk for a moment.
                    part.ensure_space(part.bytes()?)?;
                    without_rows(&path, head_of(form).len() as u64, &replaced)?;
                }
                (records, deleted)
            }
            Output::Tape { build, index } => {
                if let Some(index) = index
                    && index.last_rows()?.has_collisions
                {
                    return Err(DumpError::Collision);
                }
                // A tape with replaced records is written twice.
                part.ensure_space(part.bytes()?)?;
                let built = build.finish(OnDuplicate::KeepLast)?;
                std::fs::remove_file(index_path(&path))?;
                (built.catalog.records(), built.catalog.deleted())
            }
        };
        let (bytes, sha256) = digest_of(&path)?;
        Ok(WrittenDump { part, records, deleted, bytes, sha256 })
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

/// Writes a file again without these rows, whose places are counted after its head.
fn without_rows(path: &Path, head_bytes: u64, dropped: &[Range<u64>]) -> Result<(), DumpError> {
    let kept = path.with_extension("kept");
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, File::create_new(&kept)?);
    let mut at = 0;
    for Range { start, end } in dropped {
        let (start, end) = (head_bytes + start, head_bytes + end);
        io::copy(&mut (&mut reader).take(start - at), &mut writer)?;
        reader.seek_relative(i64::try_from(end - start).map_err(io::Error::other)?)?;
        at = end;
    }
    io::copy(&mut reader, &mut writer)?;
    writer.into_inner().map_err(io::IntoInnerError::into_error)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept_dumps::KeptDumps;
    use oaimend_store::RecordRepairs;

    fn record(identifier: &str, repository: &str, title: &str) -> DeliveredRecord {
        let xml = format!(
            "<record><header><identifier>{identifier}</identifier><datestamp>2026-01-01T00:00:00Z</datestamp>\
             <setSpec>{repository}</setSpec></header><metadata><d:dc \
             xmlns:d=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\
             <dc:title>{title}</dc:title></d:dc></metadata></record>"
        );
        DeliveredRecord {
            identifier: identifier.to_owned(),
            datestamp: "2026-01-01T00:00:00Z".to_owned(),
            deleted: false,
            set_specs: vec![repository.to_owned(), format!("{repository}:a\nb")],
            datestamp_at: 0..0,
            repairs: RecordRepairs::default(),
            xml,
        }
    }

    fn write(form: DumpForm, key: RecordKey, records: &[DeliveredRecord]) -> Result<WrittenDump, DumpError> {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = KeptDumps::new(folder.path().to_owned());
        let part = DumpPart::new(folder, kept, 0);
        let about = ("oai_dc", TapeDescription::default());
        let mut writer = DumpWriter::begin(part, form, about, key, 1 << 20)?;
        for record in records {
            writer.add(record)?;
        }
        writer.finish()
    }

    fn text(dump: &WrittenDump) -> String {
        std::fs::read_to_string(dump.path()).expect("readable")
    }

    #[test]
    fn records_of_two_repositories_with_one_identifier_are_both_in_a_dump() {
        let records = [record("oai:a:1", "x", "first"), record("oai:a:1", "y", "other")];
        let records = [&records[..], &[record("oai:a:1", "x", "second")]].concat();
        for form in [DumpForm::Jsonl, DumpForm::Csv] {
            let both = write(form, RecordKey::IdentifierAndRepository, &records).expect("writable");
            let found = ["first", "other", "second"].map(|title| text(&both).contains(title));
            assert_eq!((both.records, found), (2, [false, true, true]), "{form:?}");
            let one = write(form, RecordKey::Identifier, &records).expect("writable");
            let found = ["first", "other", "second"].map(|title| text(&one).contains(title));
            assert_eq!((one.records, found), (1, [false, false, true]), "{form:?}");
        }
        let refused = write(DumpForm::XmlTape, RecordKey::IdentifierAndRepository, &records);
        let error = refused.expect_err("a tape has one of them").to_string();
        assert!(error.contains("mirror.collisions"), "{error}");
        let of_one = [records[0].clone(), records[2].clone()];
        let tape = write(DumpForm::XmlTape, RecordKey::IdentifierAndRepository, &of_one);
        assert_eq!(tape.expect("one repository").records, 1);
    }

    #[test]
    fn line_breaks_in_identifiers_do_not_shift_the_rows() {
        let texts =
            [("z\nz", "zero"), ("a\nb", "one"), ("c\r\nd\n", "two"), ("a\nb", "three"), ("e", "four")];
        let records: Vec<DeliveredRecord> =
            texts.map(|(identifier, title)| record(identifier, "x\ny", title)).into();
        let kept = [&records[..1], &records[2..]].concat();
        for form in [DumpForm::Csv, DumpForm::Jsonl] {
            let replaced = write(form, RecordKey::Identifier, &records).expect("writable");
            let expected = write(form, RecordKey::Identifier, &kept).expect("writable");
            assert_eq!((replaced.records, text(&replaced)), (4, text(&expected)), "{form:?}");
        }
        let csv = text(&write(DumpForm::Csv, RecordKey::Identifier, &records).expect("writable"));
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let rows: Vec<_> = reader.records().map(|row| row.expect("a legal row")).collect();
        let identifiers: Vec<&str> = rows.iter().map(|row| &row[0]).collect();
        assert_eq!(identifiers, ["z\nz", "c\r\nd\n", "a\nb", "e"]);
    }
}
