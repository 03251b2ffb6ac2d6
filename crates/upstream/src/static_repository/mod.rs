//! A static repository: one file that contains a whole repository, and is served as one.
//!
//! It replaces the server of a source: a request in, the pieces of a page out. So broken records in the
//! file are repaired, quarantined and cached like those of any source. `file` and `outline` read the file,
//! `index` lists its records, `version` is one state of the file, `answer` is the data provider, and
//! `rewrite` removes the prefixes. This module keeps the file up to date: it fetches the file, checks it,
//! and replaces it after a change.
//!
//! Invariant: the version in use is whole. If a new state of the file cannot be fetched or read, the
//! version before stays in use, also after a restart, and the log says so.

mod answer;
mod file;
mod index;
mod outline;
mod page;
mod rewrite;
mod token;
mod upkeep;
mod version;

use crate::http::deadline::{Deadline, TimedOut};
use crate::http::http_client::HttpClient;
use crate::settings::StaticFile;
use answer::Answer;
use bytes::Bytes;
use oaimend_base::clock;
use oaimend_files::{FileStamp, StaticFiles};
use oaimend_oai::Request;
use oaimend_repository::{Failure, Reason};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use version::FileVersion;

/// A static repository in the place of a source.
#[derive(Debug)]
pub(crate) struct StaticRepository {
    file: StaticFile,
    static_files: StaticFiles,
    known: Mutex<Known>,
    /// Notifies of changes.
    news: watch::Sender<()>,
}

/// The known state of the file.
#[derive(Debug, Default)]
struct Known {
    version: Option<Arc<FileVersion>>,
    stamp: FileStamp,
    /// Why the last check failed.
    failure: Option<Failure>,
    /// A rejected state of a local file, and until when it is not tried again.
    rejected: Option<(FileStamp, SystemTime)>,
    /// The time of the next check.
    check_at: Option<SystemTime>,
    /// A check is running.
    is_being_checked: bool,
}

/// The state of the file of a static repository, for operators.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FileState {
    /// The version in use, if there is one.
    pub version: Option<String>,
    /// The number of its records, in all formats together.
    pub records: usize,
    /// The number of records beyond repair.
    pub broken: usize,
    /// Why the last check of the file failed.
    pub check_failure: Option<String>,
}

/// Longest wait of a request for a check while there is a version in use.
const CHECK_TIME: Duration = Duration::from_secs(5);
/// How long a file that was never fetched is not tried again.
const FAILED_GAP: Duration = Duration::from_secs(10);
/// How long a rejected state of a file is not read again.
const REJECTED_GAP: Duration = Duration::from_secs(60);
/// Pieces of a page, of some 64 KiB each, that are read ahead.
const PIECES_HELD: usize = 2;

impl StaticRepository {
    pub(crate) fn new(file: StaticFile, static_files: StaticFiles) -> Self {
        Self { file, static_files, known: Mutex::default(), news: watch::Sender::new(()) }
    }

    /// The page for a request, piece by piece.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        client: &HttpClient,
        request: &Request,
        budget: &mut Deadline,
    ) -> Result<mpsc::Receiver<Result<Bytes, Failure>>, Failure> {
        let version = self.version(client, budget).await?;
        let requested_at = clock::utc_datetime(budget.now());
        let (request, name) = (request.clone(), client.name());
        let (pieces, receiver) = mpsc::channel(PIECES_HELD);
        tokio::task::spawn_blocking(move || {
            let answer = Answer::build(&version, &request, &requested_at);
            let read = answer.read(|piece| pieces.blocking_send(Ok(piece.into())).is_ok());
            if let Err(failed) = read {
                // The receiver may be gone; ignore.
                let _ = pieces.blocking_send(Err(failed.into_failure(&name)));
            }
        });
        Ok(receiver)
    }

    /// The version in use, after a check if that is due.
    async fn version(
        self: &Arc<Self>,
        client: &HttpClient,
        budget: &mut Deadline,
    ) -> Result<Arc<FileVersion>, Failure> {
        let mut news = self.news.subscribe();
        self.check_if_due(client, budget);
        loop {
            let (known, is_being_checked) = {
                let known = self.known();
                let failure = known.failure.clone();
                (known.version.clone().ok_or(failure), known.is_being_checked)
            };
            match known {
                known if !is_being_checked => {
                    return known.map_err(|failure| failure.unwrap_or_else(|| never(client)));
                }
                Ok(version) => match budget.within(CHECK_TIME, news.changed()).await {
                    Ok(_) => {}
                    Err(_) => return Ok(version),
                },
                Err(_) => match budget.within(Duration::MAX, news.changed()).await {
                    Ok(_) => {}
                    Err(TimedOut::Step | TimedOut::Deadline) => {
                        let details = format!(
                            "{} is being read, which takes too long for this request; send the request again",
                            client.name()
                        );
                        return Err(Failure::new(Reason::ResponseTimeout, details));
                    }
                },
            }
        }
    }

    /// Begins a check of the file, in a task that continues if no request waits for it.
    fn check_if_due(self: &Arc<Self>, client: &HttpClient, budget: &Deadline) {
        let now = budget.now();
        let mut known = self.known();
        if known.is_being_checked || known.check_at.is_some_and(|at| now < at) {
            return;
        }
        known.is_being_checked = true;
        tokio::spawn(Arc::clone(self).check(client.clone(), budget.clock()));
    }

    /// The state of the file.
    pub(crate) fn state(&self) -> FileState {
        let known = self.known();
        let version = known.version.as_ref();
        FileState {
            version: version.map(|version| version.id.clone()),
            records: version.map_or(0, |version| version.entries.len()),
            broken: version.map_or(0, |version| version.broken()),
            check_failure: known.failure.as_ref().map(|failure| failure.details.clone()),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses a version from now on.
    fn put_in_use(&self, version: FileVersion, stamp: FileStamp) {
        let mut known = self.known();
        (known.version, known.stamp) = (Some(Arc::new(version)), stamp);
        drop(known);
        self.news.send_replace(());
    }
}

/// The failure if a check was never finished.
fn never(client: &HttpClient) -> Failure {
    Failure::new(Reason::StaticFile, format!("{} was never read", client.name()))
}
