//! The records of one format as a file: for `oaimend mirror cat` and the admin listener.

use crate::view::sets::KnownSets;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_repository::Failure;
use oaimend_store::{
    ListFilter, ListOrder, ListQuery, MirrorError, MirrorStore, Position, Prefix, RecordStatus, RepositoryId,
    StoredRecord,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportForm {
    /// One XML document with all records.
    #[default]
    Xml,
    /// One JSON object in each line.
    Jsonl,
    /// One identifier in each line, without deleted records.
    Ids,
}

/// The records that are exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSelection {
    /// The id of the repository.
    pub id: String,
    /// The metadataPrefix; `None`: `oai_dc`, or the only one.
    pub prefix: Option<String>,
    /// Only records of this set; `None`: all records.
    pub set: Option<String>,
    /// The lowest and the highest datestamp of the source, in seconds since 1970; `None`: no bound.
    pub from_secs: Option<UnixSecs>,
    /// See `from_secs`.
    pub until_secs: Option<UnixSecs>,
}

/// Why an export cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Nothing is stored of the repository or of the format.
    #[error("{what} was never harvested; run: oaimend mirror sync {id}")]
    NeverHarvested {
        /// The repository or the format.
        what: String,
        /// The id of the repository.
        id: String,
    },
    /// The repository has several formats, and none of them is the default.
    #[error("expected a prefix: one of {}", .0.join(", "))]
    AmbiguousPrefix(Vec<String>),
    /// The headers of the records do not name the set.
    #[error("{}", .0.details)]
    UnknownMembers(Box<Failure>),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] MirrorError),
}

/// Records and bytes that are read from the store at a time.
const BATCH_RECORDS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// The records of one format, piece by piece. Memory is limited to one piece and the records in it, which are about 4
/// MiB in the store.
#[derive(Debug)]
pub struct Export {
    store: Arc<dyn MirrorStore>,
    filter: ListFilter,
    form: ExportForm,
    rest: Rest,
    /// Whether records are missing, because they are damaged.
    is_damaged: bool,
}

/// The part that was not read yet.
#[derive(Debug)]
enum Rest {
    All,
    After(Position),
    Nothing,
}

impl Export {
    /// Begins an export.
    ///
    /// # Errors
    ///
    /// There are no such records, the format is not clear, or the store cannot be read.
    pub async fn begin(
        store: Arc<dyn MirrorStore>,
        selection: ExportSelection,
        form: ExportForm,
    ) -> Result<Self, ExportError> {
        let ExportSelection { id, prefix, set, from_secs, until_secs } = selection;
        let prefix = find_prefix(&*store, &id, prefix).await?;
        if let Some(set) = &set {
            let sets = KnownSets::read(&*store, &id, &prefix).await?;
            sets.check(&id, set).map_err(|failure| ExportError::UnknownMembers(Box::new(failure)))?;
        }
        let by = match from_secs.or(until_secs) {
            Some(_) => ListOrder::Datestamp,
            None => ListOrder::Stamp,
        };
        let filter =
            ListFilter { repository: id, prefix, set, by, from_secs, until_secs, ..ListFilter::default() };
        let version = store.version(RepositoryId(&filter.repository), Prefix(&filter.prefix)).await?;
        let is_damaged = version.is_some_and(|version| version.damaged > 0);
        Ok(Self { store, filter, form, rest: Rest::All, is_damaged })
    }

    /// The next bytes; `None` at the end. A piece can be empty.
    ///
    /// # Errors
    ///
    /// The store cannot be read. The bytes so far are no complete export. [`MirrorError::Damaged`] comes after all
    /// records that are not damaged.
    pub async fn next_piece(&mut self) -> Result<Option<Vec<u8>>, MirrorError> {
        let (after, start) = match self.rest {
            Rest::All => (None, if self.form == ExportForm::Xml { XML_START } else { "" }),
            Rest::After(position) => (Some(position), ""),
            Rest::Nothing if self.is_damaged => return Err(MirrorError::Damaged),
            Rest::Nothing => return Ok(None),
        };
        let query = ListQuery {
            filter: self.filter.clone(),
            after,
            count_max: BATCH_RECORDS,
            bytes_max: BATCH_BYTES,
            with_bytes: self.form != ExportForm::Ids,
        };
        let page = self.store.list(query).await?;
        self.is_damaged |= page.damaged > 0;
        let mut piece = start.as_bytes().to_vec();
        for record in &page.records {
            write_record(record, self.form, &mut piece);
        }
        self.rest = match page.next {
            Some(next) => Rest::After(next),
            None => {
                piece.extend_from_slice(if self.form == ExportForm::Xml { XML_END } else { b"" });
                Rest::Nothing
            }
        };
        Ok(Some(piece))
    }
}

/// The format whose records are exported.
async fn find_prefix(
    store: &dyn MirrorStore,
    id: &str,
    wanted: Option<String>,
) -> Result<String, ExportError> {
    let known: Vec<String> =
        store.collections(RepositoryId(id)).await?.into_iter().map(|size| size.prefix).collect();
    let never = |what: String| Err(ExportError::NeverHarvested { what, id: id.to_owned() });
    match (wanted, known.as_slice()) {
        (_, []) => never(format!("\"{}\"", id.escape_debug())),
        (Some(prefix), known) if known.contains(&prefix) => Ok(prefix),
        (Some(prefix), _) => never(format!("the format {} of \"{id}\"", prefix.escape_debug())),
        (None, [only]) => Ok(only.clone()),
        (None, known) if known.iter().any(|prefix| prefix == "oai_dc") => Ok("oai_dc".to_owned()),
        (None, _) => Err(ExportError::AmbiguousPrefix(known)),
    }
}

/// A record in a line of JSON, as exports and dumps write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedRecord<'r> {
    /// The identifier.
    pub identifier: Cow<'r, str>,
    /// The datestamp: that of the source in an export of the store, that of the repository in a dump.
    pub datestamp: Cow<'r, str>,
    /// Whether it is deleted.
    pub deleted: bool,
    /// The setSpecs.
    pub set_specs: Cow<'r, [String]>,
    /// The `record` element.
    pub record: Cow<'r, str>,
}

impl ExportedRecord<'_> {
    /// The line with its end.
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("texts can be written");
        line.push('\n');
        line
    }
}

fn write_record(record: &StoredRecord, form: ExportForm, piece: &mut Vec<u8>) {
    match form {
        ExportForm::Xml => piece.extend_from_slice(&record.bytes),
        ExportForm::Ids if record.status == RecordStatus::Deleted => return,
        ExportForm::Ids => piece.extend_from_slice(record.identifier.as_bytes()),
        ExportForm::Jsonl => {
            let line = ExportedRecord {
                identifier: (&record.identifier).into(),
                datestamp: from_secs(record.datestamp_secs, Granularity::Second).into(),
                deleted: record.status == RecordStatus::Deleted,
                set_specs: (&*record.set_specs).into(),
                record: String::from_utf8_lossy(&record.bytes),
            };
            piece.extend_from_slice(line.to_line().as_bytes());
            return;
        }
    }
    piece.push(b'\n');
}

const XML_START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<records \
    xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n";
const XML_END: &[u8] = b"</records>\n";
