//! A tape: one file with all records of a repository, served as one.
//!
//! It replaces the server of a source, as a static repository does: a request in, a page out, which passes through the
//! engine and the cache like that of any source. The crate `tape` reads the records; `answer` is the data provider, and
//! `token` the place where a list continues.
//!
//! Invariant: a tape without the right index gives a failure, never a shorter list.

mod answer;
mod token;

use crate::http::http_client::HttpClient;
use answer::Answer;
use bytes::Bytes;
use oaimend_base::clock;
use oaimend_oai::Request;
use oaimend_repository::{Failure, Reason, for_operators};
use oaimend_tape::{ReadError, Tape, index_path};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::mpsc;

/// A tape in the place of a source.
#[derive(Debug)]
pub(crate) struct TapeRepository {
    path: PathBuf,
    opened: Mutex<Option<OpenedTape>>,
}

/// A tape, or why it cannot be served.
#[derive(Debug)]
struct OpenedTape {
    stamps: [Stamp; 2],
    tape: Result<Arc<Tape>, ReadError>,
}

/// The state of a file: which one it is, its length, and when it was changed. `None` if it cannot be read.
type Stamp = Option<(u64, u64, i64, i64)>;

/// The state of the tape of a repository, for operators.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TapeState {
    /// The state of the file that is served; `None` if it cannot be served.
    pub version: Option<String>,
    /// The identifier of the tape; empty if another program wrote it.
    pub tape_id: String,
    /// The number of its records in all formats, deleted ones included.
    pub records: u64,
    /// The number of deleted records.
    pub deleted: u64,
    /// The number of records that were known to be missing when the tape was written.
    pub missing: u64,
    /// Why it cannot be served.
    pub failure: Option<String>,
}

/// Pieces of a page, of some 64 KiB each, that are read ahead.
const PIECES_HELD: usize = 2;
const PIECE_BYTES: usize = 64 << 10;

impl TapeRepository {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, opened: Mutex::default() }
    }

    /// The page for a request, piece by piece.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        client: &HttpClient,
        request: &Request,
        now: SystemTime,
    ) -> Result<mpsc::Receiver<Result<Bytes, Failure>>, Failure> {
        let (repository, request, id) = (Arc::clone(self), request.clone(), client.mapping().id.clone());
        let requested_at = clock::utc_datetime(now);
        let reading = tokio::task::spawn_blocking(move || {
            let tape = repository.tape()?;
            Answer { tape: &tape, id: &id, requested_at: &requested_at }.page(&request)
        });
        let page = match reading.await {
            Ok(page) => page.map_err(|error| self.failure(client, &error))?,
            Err(stopped) => {
                let details = format!("{}: reading it stopped: {stopped}", client.name());
                return Err(Failure::new(Reason::TapeFile, details));
            }
        };
        let (pieces, receiver) = mpsc::channel(PIECES_HELD);
        tokio::spawn(async move {
            let mut page = Bytes::from(page);
            while !page.is_empty() {
                let piece = page.split_to(page.len().min(PIECE_BYTES));
                if pieces.send(Ok(piece)).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    /// The failure of a tape that cannot be read, with the command that helps.
    fn failure(&self, client: &HttpClient, error: &ReadError) -> Failure {
        let command = for_operators(
            format_args!("oaimend tape index {}", self.path.display()),
            "oaimend tape index with the path of the tape",
        );
        let advice = match error {
            ReadError::Io(_) => "check the disk and the permissions of the file".to_owned(),
            ReadError::Changed(_) => format!(
                "records of a tape must never change: restore the file, or check it with oaimend tape verify and run: {command}"
            ),
            _ => format!("run: {command}"),
        };
        Failure::new(Reason::TapeFile, format!("{} cannot be served: {error}; {advice}", client.name()))
    }

    /// The tape in its present state. Blocks on the disk.
    fn tape(&self) -> Result<Arc<Tape>, ReadError> {
        let stamps = [stamp_of(&self.path), stamp_of(&index_path(&self.path))];
        let mut opened = self.opened();
        if let Some(OpenedTape { stamps: known, tape: Ok(tape) }) = &*opened
            && *known == stamps
        {
            return Ok(Arc::clone(tape));
        }
        let tape = Tape::open(&self.path).map(Arc::new);
        let result = match &tape {
            Ok(tape) => Ok(Arc::clone(tape)),
            // The reason is kept for operators.
            Err(error) => Err(repeat(error)),
        };
        *opened = Some(OpenedTape { stamps, tape });
        result
    }

    /// The state of the tape at the last request.
    pub(crate) fn state(&self) -> TapeState {
        let opened = self.opened();
        let tape = opened.as_ref().map(|opened| &opened.tape);
        let (catalog, failure) = match tape {
            Some(Ok(tape)) => (Some((tape.catalog(), tape.version())), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let gaps = catalog.map(|(catalog, _)| catalog.description.gaps.iter().map(|gap| gap.records).sum());
        TapeState {
            version: catalog.map(|(_, version)| version.to_owned()),
            tape_id: catalog.map(|(catalog, _)| catalog.description.id.clone()).unwrap_or_default(),
            records: catalog.map_or(0, |(catalog, _)| catalog.records()),
            deleted: catalog.map_or(0, |(catalog, _)| catalog.deleted()),
            missing: gaps.unwrap_or_default(),
            failure,
        }
    }

    fn opened(&self) -> MutexGuard<'_, Option<OpenedTape>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp_of(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// The same error again.
fn repeat(error: &ReadError) -> ReadError {
    match error {
        ReadError::NoIndex => ReadError::NoIndex,
        ReadError::OtherTape => ReadError::OtherTape,
        ReadError::OtherVersion => ReadError::OtherVersion,
        ReadError::DamagedIndex => ReadError::DamagedIndex,
        ReadError::Changed(text) => ReadError::Changed(text.clone()),
        ReadError::Io(error) => ReadError::Io(io::Error::from(error.kind())),
    }
}
