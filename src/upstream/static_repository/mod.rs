//! A static repository: one file that stands for a whole repository, and answers as one.
//!
//! Behind the session it takes the place of a server: a request in, the pieces of a page out. So
//! what the file has broken is mended, put aside, counted and kept like that of any source. The
//! file is `file`'s and `outline`'s to read, `index` says which records it holds, `version` is
//! what is known of one state of it, `answer` the data provider, `rewrite` what becomes of the
//! prefixes. Here it is looked after: fetched, looked at again, replaced when it has changed.
//!
//! Must stay true: what is in force is whole. A new state of the file that cannot be had or read
//! leaves the one before in force, also after a restart, and the log says so.

mod answer;
mod file;
mod index;
mod outline;
mod page;
mod rewrite;
mod token;
mod upkeep;
mod version;

use crate::clock;
use crate::config::StaticFile;
use crate::oai::Request;
use crate::store::{FileStamp, StaticFiles};
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::http::deadline::{Deadline, TimedOut};
use crate::upstream::http::http_client::HttpClient;
use answer::Answer;
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use version::Version;

/// A static repository in the place of a source.
#[derive(Debug)]
pub(crate) struct StaticRepository {
    file: StaticFile,
    static_files: StaticFiles,
    known: Mutex<Known>,
    /// Says that something has become known.
    news: watch::Sender<()>,
}

/// What is known of the file.
#[derive(Debug, Default)]
struct Known {
    version: Option<Arc<Version>>,
    stamp: FileStamp,
    /// Why it could not be had when it was last looked at.
    failure: Option<Failure>,
    /// A state of a file of this machine that was not taken in, and until when it is not tried again.
    rejected: Option<(FileStamp, SystemTime)>,
    /// When it is to be looked at again.
    check_at: Option<SystemTime>,
    /// Somebody looks at it now.
    is_looked_at: bool,
}

/// What operators are told of the file of a static repository.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FileState {
    /// The version in force, if there is one.
    pub version: Option<String>,
    /// How many records that has, in all formats together.
    pub records: usize,
    /// How many of them are beyond repair.
    pub broken: usize,
    /// Why the file was not taken in when it was last looked at.
    pub not_taken_in: Option<String>,
}

/// Longest that a request waits for a look at the file while there is a version to answer it from.
const LOOK_TIME: Duration = Duration::from_secs(5);
/// For how long a file that was never had is not tried again.
const FAILED_GAP: Duration = Duration::from_secs(10);
/// For how long a state of a file that was not taken in is not read again.
const REJECTED_GAP: Duration = Duration::from_secs(60);
/// Pieces of a page, of some 64 KiB each, that are read ahead.
const PIECES_HELD: usize = 2;

impl StaticRepository {
    pub(crate) fn new(file: StaticFile, static_files: StaticFiles) -> Self {
        Self { file, static_files, known: Mutex::default(), news: watch::Sender::new(()) }
    }

    /// The page that answers a request, piece by piece.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        client: &HttpClient,
        request: &Request,
        budget: &mut Deadline,
    ) -> Result<mpsc::Receiver<Result<Bytes, Failure>>, Failure> {
        let version = self.version(client, budget).await?;
        let asked_at = clock::utc_datetime(budget.now());
        let (request, name) = (request.clone(), client.name());
        let (pieces, receiver) = mpsc::channel(PIECES_HELD);
        tokio::task::spawn_blocking(move || {
            let answer = Answer::of(&version, &request, &asked_at);
            let read = answer.read(|piece| pieces.blocking_send(Ok(piece.into())).is_ok());
            if let Err(failed) = read {
                // Nobody listens any more where this is not heard.
                let _ = pieces.blocking_send(Err(failed.into_failure(&name)));
            }
        });
        Ok(receiver)
    }

    /// The version in force, once the file has been looked at if that is due.
    async fn version(
        self: &Arc<Self>,
        client: &HttpClient,
        budget: &mut Deadline,
    ) -> Result<Arc<Version>, Failure> {
        let mut news = self.news.subscribe();
        self.look_if_due(client, budget);
        loop {
            let (known, is_looked_at) = {
                let known = self.known();
                let failure = known.failure.clone();
                (known.version.clone().ok_or(failure), known.is_looked_at)
            };
            match known {
                known if !is_looked_at => {
                    return known.map_err(|failure| failure.unwrap_or_else(|| never(client)));
                }
                Ok(version) => match budget.within(LOOK_TIME, news.changed()).await {
                    Ok(_) => {}
                    Err(_) => return Ok(version),
                },
                Err(_) => match budget.within(Duration::MAX, news.changed()).await {
                    Ok(_) => {}
                    Err(TimedOut::Step | TimedOut::Deadline) => {
                        let details = format!(
                            "{} is being read and takes longer than there is time; ask again",
                            client.name()
                        );
                        return Err(Failure::new(Reason::ResponseTimeout, details));
                    }
                },
            }
        }
    }

    /// Begins to look at the file, in a task that goes on when nobody waits for it any more.
    fn look_if_due(self: &Arc<Self>, client: &HttpClient, budget: &Deadline) {
        let now = budget.now();
        let mut known = self.known();
        if known.is_looked_at || known.check_at.is_some_and(|at| now < at) {
            return;
        }
        known.is_looked_at = true;
        tokio::spawn(Arc::clone(self).look(client.clone(), budget.clock()));
    }

    /// What there is to say of the file.
    pub(crate) fn state(&self) -> FileState {
        let known = self.known();
        let version = known.version.as_ref();
        FileState {
            version: version.map(|version| version.id.clone()),
            records: version.map_or(0, |version| version.entries.len()),
            broken: version.map_or(0, |version| version.broken()),
            not_taken_in: known.failure.as_ref().map(|failure| failure.details.clone()),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A version is in force from here on.
    fn put_in_force(&self, version: Version, stamp: FileStamp) {
        let mut known = self.known();
        (known.version, known.stamp) = (Some(Arc::new(version)), stamp);
        drop(known);
        self.news.send_replace(());
    }
}

/// What is said where nothing is known: the look at the file was never finished.
fn never(client: &HttpClient) -> Failure {
    Failure::new(Reason::StaticFile, format!("{} was never read", client.name()))
}
