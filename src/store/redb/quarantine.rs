//! Records put aside: raw bytes in files, an index in redb.
//!
//! `data/quarantine/index.redb` holds one entry for each (repository,
//! identifier, raw bytes), with a counter; `data/quarantine/<repository>/<key>`
//! holds the raw bytes, so that a person can look at them without a tool.
//!
//! Invariant: when [`Quarantine::put`] returns, entry and bytes are on disk. A
//! record may leave the stream only then.

use super::database::ClosableDatabase;
use blake2::{Blake2s256, Digest};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;

/// All records put aside. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Quarantine {
    folder: Arc<PathBuf>,
    index: Arc<ClosableDatabase>,
}

/// A record to be put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedRecord {
    /// Its identifier, if one could be read.
    pub identifier: Option<String>,
    /// Why it could not be mended, as the kebab-case name.
    pub why: &'static str,
    /// Where it began, in bytes of the decoded body.
    pub offset: u64,
    /// The record as it came.
    pub raw: Vec<u8>,
}

/// What is known of a record that was put aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEntry {
    /// Its identifier, if one could be read.
    pub identifier: Option<String>,
    /// Why it could not be mended, as the kebab-case name; when it was last seen.
    pub why: String,
    /// Where it began, in bytes of the decoded body, when it was last seen.
    pub offset: u64,
    /// The query that brought it, when it was last seen.
    pub request: String,
    /// When it was first seen, `YYYY-MM-DDThh:mm:ssZ`.
    pub first_seen: String,
    /// When it was last seen.
    pub last_seen: String,
    /// How often it was seen.
    pub seen: u64,
    /// Length of the raw record, in bytes.
    pub bytes: u64,
}

/// Why a record could not be put aside.
#[derive(Debug, thiserror::Error)]
pub enum QuarantineError {
    /// The repository's part is full.
    #[error(
        "the quarantine of this repository is full ({max} bytes); raise quarantine_bytes_max, or stop oaimend and move data/quarantine away"
    )]
    Full {
        /// The bound, in bytes.
        max: u64,
    },
    /// It was closed for another process.
    #[error("another oaimend has taken the quarantine over; ask again")]
    Closed,
    /// The disk says no.
    #[error("the quarantine cannot be written to: {0}; check space and rights of the data folder")]
    Io(#[from] std::io::Error),
    /// The index says no.
    #[error(
        "the index of the quarantine cannot be written to: {0}; check space and rights of the data folder"
    )]
    Index(#[from] redb::Error),
}

impl Quarantine {
    /// Opens or creates `quarantine/` in the data folder, which is created too.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub fn open(data: &Path) -> Result<Self, Error> {
        let folder = data.join("quarantine");
        let remedy = "name a folder that can be written to with --data";
        std::fs::create_dir_all(&folder).map_err(|error| Error::writing(&folder, error, remedy))?;
        let path = folder.join("index.redb");
        let index = ClosableDatabase::open(&path, CACHE_BYTES)?;
        Ok(Self { folder: Arc::new(folder), index: Arc::new(index) })
    }

    /// Closes the index; what is put aside from now on is refused.
    pub(in crate::store) fn close(&self) {
        self.index.close();
    }

    /// Puts records of one response aside, all in one transaction.
    ///
    /// Blocks on the disk. `request` is the query that brought them, `now`
    /// the time as it is to be written.
    ///
    /// # Errors
    ///
    /// None of them counts as put aside then.
    pub fn put(
        &self,
        repository: &str,
        request: &str,
        now: &str,
        bytes_max: u64,
        records: &[QuarantinedRecord],
    ) -> Result<(), QuarantineError> {
        self.index.with(QuarantineError::Closed, |index| {
            self.put_into(index, repository, request, now, bytes_max, records)
        })
    }

    fn put_into(
        &self,
        index: &Database,
        repository: &str,
        request: &str,
        now: &str,
        bytes_max: u64,
        records: &[QuarantinedRecord],
    ) -> Result<(), QuarantineError> {
        let transaction = index.begin_write().map_err(index_error)?;
        {
            let mut entries = transaction.open_table(ENTRIES).map_err(index_error)?;
            let mut sizes = transaction.open_table(SIZES).map_err(index_error)?;
            let mut size = sizes.get(repository).map_err(index_error)?.map_or(0, |size| size.value());
            let mut written = Vec::new();
            for record in records {
                let key = key_of(repository, record);
                let known = entries.get((repository, key.as_str())).map_err(index_error)?;
                let known =
                    known.and_then(|json| serde_json::from_slice::<QuarantineEntry>(json.value()).ok());
                if known.is_none() {
                    size += record.raw.len() as u64;
                    if size > bytes_max {
                        // Without an entry they would take room that nobody counts.
                        for path in &written {
                            std::fs::remove_file(path)?;
                        }
                        return Err(QuarantineError::Full { max: bytes_max });
                    }
                    written.push(self.write_raw(repository, &key, &record.raw)?);
                }
                let entry = QuarantineEntry {
                    identifier: record.identifier.clone(),
                    why: record.why.to_owned(),
                    offset: record.offset,
                    request: request.to_owned(),
                    first_seen: known
                        .as_ref()
                        .map_or_else(|| now.to_owned(), |entry| entry.first_seen.clone()),
                    last_seen: now.to_owned(),
                    seen: 1 + known.map_or(0, |entry| entry.seen),
                    bytes: record.raw.len() as u64,
                };
                let json = serde_json::to_vec(&entry).map_err(std::io::Error::other)?;
                entries.insert((repository, key.as_str()), json.as_slice()).map_err(index_error)?;
            }
            sizes.insert(repository, size).map_err(index_error)?;
        }
        transaction.commit().map_err(index_error)
    }

    /// The first records of a repository that were put aside, in the order of
    /// their keys, at most `count_max`.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    pub fn list(
        &self,
        repository: &str,
        count_max: usize,
    ) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError> {
        self.index.with(QuarantineError::Closed, |index| list_of(index, repository, count_max))
    }

    /// One record that was put aside, with its raw bytes.
    ///
    /// # Errors
    ///
    /// The index or the file cannot be read.
    pub fn find(
        &self,
        repository: &str,
        key: &str,
    ) -> Result<Option<(QuarantineEntry, Vec<u8>)>, QuarantineError> {
        let entry = self.index.with(QuarantineError::Closed, |index| entry_of(index, repository, key))?;
        let Some(entry) = entry else { return Ok(None) };
        // The key is in the index, so it is one of ours and no path into other folders.
        Ok(Some((entry, std::fs::read(self.folder.join(repository).join(key))?)))
    }

    fn write_raw(&self, repository: &str, key: &str, raw: &[u8]) -> Result<PathBuf, std::io::Error> {
        let folder = self.folder.join(repository);
        if !folder.exists() {
            std::fs::create_dir_all(&folder)?;
            std::fs::File::open(self.folder.as_path())?.sync_all()?;
        }
        let path = folder.join(key);
        let mut file = std::fs::File::create(&path)?;
        file.write_all(raw)?;
        file.sync_all()?;
        std::fs::File::open(folder)?.sync_all()?;
        Ok(path)
    }
}

fn list_of(
    index: &Database,
    repository: &str,
    count_max: usize,
) -> Result<Vec<(String, QuarantineEntry)>, QuarantineError> {
    let transaction = index.begin_read().map_err(index_error)?;
    let entries = match transaction.open_table(ENTRIES) {
        Ok(entries) => entries,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(index_error(error)),
    };
    let mut listed = Vec::new();
    for row in entries.range((repository, "")..).map_err(index_error)?.take(count_max) {
        let (key, json) = row.map_err(index_error)?;
        let (of, key) = key.value();
        if of != repository {
            break;
        }
        if let Ok(entry) = serde_json::from_slice(json.value()) {
            listed.push((key.to_owned(), entry));
        }
    }
    Ok(listed)
}

fn entry_of(
    index: &Database,
    repository: &str,
    key: &str,
) -> Result<Option<QuarantineEntry>, QuarantineError> {
    let transaction = index.begin_read().map_err(index_error)?;
    let entries = match transaction.open_table(ENTRIES) {
        Ok(entries) => entries,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(index_error(error)),
    };
    let Some(json) = entries.get((repository, key)).map_err(index_error)? else { return Ok(None) };
    Ok(Some(serde_json::from_slice(json.value()).map_err(std::io::Error::other)?))
}

/// The name of a record: one for (repository, identifier, raw bytes).
fn key_of(repository: &str, record: &QuarantinedRecord) -> String {
    let identifier = record.identifier.as_deref().unwrap_or_default();
    let mut hash = Blake2s256::new();
    for part in [repository.as_bytes(), identifier.as_bytes(), &record.raw] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut key = String::new();
    for byte in hash.finalize().iter().take(KEY_BYTES) {
        let _ = write!(key, "{byte:02x}");
    }
    key
}

fn index_error(error: impl Into<redb::Error>) -> QuarantineError {
    QuarantineError::Index(error.into())
}

/// (repository, key) to the entry as JSON.
const ENTRIES: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("entries");
/// Repository to the sum of its raw bytes.
const SIZES: TableDefinition<'_, &str, u64> = TableDefinition::new("sizes");
const CACHE_BYTES: usize = 8 << 20;
const KEY_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn record(identifier: &str, raw: &[u8]) -> QuarantinedRecord {
        let identifier = Some(identifier.to_owned());
        QuarantinedRecord { identifier, why: "mismatched-tags", offset: 7, raw: raw.to_vec() }
    }

    fn open() -> (tempfile::TempDir, Quarantine) {
        let data = tempfile::tempdir().expect("a temporary folder");
        let quarantine = Quarantine::open(data.path()).expect("it can be written to");
        (data, quarantine)
    }

    #[test]
    fn the_same_record_is_kept_once_and_counted() {
        let (data, quarantine) = open();
        let records = [record("oai:x:1", b"<a>"), record("oai:x:1", b"<b>"), record("oai:x:1", b"<a>")];
        quarantine.put("x", "verb=1", "t1", 1000, &records).expect("it fits");
        quarantine.put("x", "verb=2", "t2", 1000, &records[..1]).expect("it fits");
        quarantine.put("y", "verb=3", "t3", 1000, &records[..1]).expect("it fits");
        drop(quarantine);
        let quarantine = Quarantine::open(data.path()).expect("it survives");
        let listed = quarantine.list("x", 100).expect("readable");
        let mut seen: Vec<u64> = listed.iter().map(|(_, entry)| entry.seen).collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 3]);
        let (key, entry) = listed.iter().find(|(_, entry)| entry.seen == 3).expect("the first record");
        assert_eq!((entry.first_seen.as_str(), entry.last_seen.as_str()), ("t1", "t2"));
        assert_eq!((entry.request.as_str(), entry.offset, entry.bytes), ("verb=2", 7, 3));
        let found = quarantine.find("x", key).expect("readable").expect("it is there");
        assert_eq!(found, (entry.clone(), b"<a>".to_vec()));
        assert_eq!(quarantine.find("y", key).expect("readable"), None);
        assert_eq!(quarantine.list("y", 100).expect("readable").len(), 1);
    }

    #[test]
    fn a_full_quarantine_takes_nothing_new_and_counts_what_it_has() {
        let (data, quarantine) = open();
        quarantine.put("x", "", "t1", 5, &[record("1", b"12345")]).expect("it fits exactly");
        let error = quarantine.put("x", "", "t2", 5, &[record("1", b"12345"), record("2", b"6")]);
        assert!(matches!(error, Err(QuarantineError::Full { max: 5 })), "{error:?}");
        let error = quarantine.put("x", "", "t2", 6, &[record("3", b"6"), record("4", b"7")]);
        assert!(matches!(error, Err(QuarantineError::Full { max: 6 })), "{error:?}");
        let files = std::fs::read_dir(data.path().join("quarantine/x")).expect("a folder").count();
        assert_eq!(files, 1, "what was refused takes no room");
        quarantine.put("x", "", "t3", 5, &[record("1", b"12345")]).expect("it is there already");
        let seen: Vec<u64> = quarantine.list("x", 9).expect("readable").iter().map(|(_, e)| e.seen).collect();
        assert_eq!(seen, [2], "the refused transaction left nothing behind");
        quarantine
            .put("y", "", "t4", 5, &[record("1", b"12345")])
            .expect("each repository has its own bound");
    }

    #[test]
    fn a_second_process_is_told_to_use_its_own_folder() {
        let (data, _quarantine) = open();
        let error = Quarantine::open(data.path()).expect_err("it is open");
        assert!(error.to_string().contains("give each its own with --data"), "{error}");
        assert_eq!(error.exit_code(), 74);
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        let data = tempfile::NamedTempFile::new().expect("a temporary file");
        let error = Quarantine::open(data.path()).expect_err("a file is no folder");
        assert!(error.to_string().contains("name a folder that can be written to with --data"), "{error}");
        assert_eq!(error.exit_code(), 74);
    }
}
