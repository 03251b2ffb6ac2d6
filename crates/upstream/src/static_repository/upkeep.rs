//! Checks the file of a static repository for changes, and stores new states of it.

use super::file::{Failed, Intake, Text};
use super::version::FileVersion;
use super::{FAILED_GAP, Known, REJECTED_GAP, StaticRepository};
use crate::http::body::SourceBody;
use crate::http::deadline::Deadline;
use crate::http::exchange::Exchange;
use crate::http::http_client::HttpClient;
use crate::http::redirects::{is_redirect, redirect_target};
use crate::settings::SourceMapping;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use oaimend_base::clock::Clock;
use oaimend_files::{FileStamp, NewStaticFile, StaticFileInfo};
use oaimend_repository::{Failure, Reason};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// Longest time for fetching a file, however steadily it arrives.
const FETCH_TIME: Duration = Duration::from_secs(600);
/// Pieces that are fetched ahead of the disk.
const PIECES_HELD: usize = 8;
/// Bytes that are read at once of a local file.
const PIECE_BYTES: usize = 256 << 10;

/// The result of a check.
enum Seen {
    /// The file has not changed.
    Same,
    /// A new state of the file, which is being written.
    New { new_file: NewStaticFile, file: File, version: String, stamp: FileStamp },
}

impl StaticRepository {
    /// Checks the file once.
    pub(super) async fn check(self: Arc<Self>, client: HttpClient, clock: Arc<dyn Clock>) {
        let mapping = SourceMapping::clone(client.mapping());
        if self.known().version.is_none() {
            self.read_copy(&mapping).await;
        }
        let stamp = self.local_stamp().await;
        if self.is_rejected(stamp.as_ref(), clock.now()) {
            return self.end_check(clock.now() + self.file.check, |_| {});
        }
        let checked = self.load(&client, &mapping, Arc::clone(&clock)).await;
        let now = clock.now();
        let gap =
            if checked.is_err() && self.known().version.is_none() { FAILED_GAP } else { self.file.check };
        self.end_check(now + gap, |known| {
            let failure = checked.err();
            if let Some(failure) = failure.as_ref().filter(|failure| known.failure.as_ref() != Some(failure))
            {
                let (repo, details) = (&mapping.id, &failure.details);
                let version_in_use = known.version.as_ref().map(|version| version.id.clone());
                let reason = failure.reason.name();
                tracing::warn!(repo, reason, details, version_in_use, "static repository file rejected");
            }
            known.rejected = stamp.zip(failure.is_some().then_some(now + REJECTED_GAP));
            known.failure = failure;
        });
    }

    /// Notes the end of a check.
    fn end_check(&self, check_at: SystemTime, note: impl FnOnce(&mut Known)) {
        let mut known = self.known();
        note(&mut known);
        known.check_at = Some(check_at);
        known.is_being_checked = false;
        drop(known);
        self.news.send_replace(());
    }

    /// The stamp of a local file.
    async fn local_stamp(&self) -> Option<FileStamp> {
        let path = self.file.path.clone()?;
        tokio::task::spawn_blocking(move || stamp_of(&path).ok()).await.ok().flatten()
    }

    /// Whether this state of the file was rejected a moment ago.
    fn is_rejected(&self, stamp: Option<&FileStamp>, now: SystemTime) -> bool {
        let known = self.known();
        known.rejected.as_ref().is_some_and(|(rejected, until)| Some(rejected) == stamp && now < *until)
    }

    /// Reads the version that was in use before the program was started.
    async fn read_copy(&self, mapping: &SourceMapping) {
        let (static_files, mapping) = (self.static_files.clone(), mapping.clone());
        let read = tokio::task::spawn_blocking(move || {
            let (file, about) = static_files
                .find(&mapping.id)
                .filter(|(_, about)| about.source == mapping.base_url.as_str())?;
            let version = FileVersion::read(Text::new(file).ok()?, about.version, &mapping).ok()?;
            Some((version, about.stamp))
        });
        // Without it the file is stored as if for the first time.
        if let Ok(Some((version, stamp))) = read.await {
            self.put_in_use(version, stamp);
        }
    }

    /// Stores the file if it has changed.
    async fn load(
        &self,
        client: &HttpClient,
        mapping: &SourceMapping,
        clock: Arc<dyn Clock>,
    ) -> Result<(), Failure> {
        let name = client.name();
        let seen = match &self.file.path {
            Some(path) => {
                let (path, known) = (path.clone(), self.stamp());
                let (static_files, mapping) = (self.static_files.clone(), mapping.clone());
                blocking(&name, move || {
                    let stamp = stamp_of(&path)?;
                    if Some(&stamp) == known.as_ref() {
                        return Ok(Seen::Same);
                    }
                    let (new_file, file) = static_files.start(&mapping.id)?;
                    let mut intake = Intake::new(file, None, mapping.limits.static_file_bytes_max);
                    read_all(&path, &mut intake)?;
                    if stamp_of(&path)? != stamp {
                        return Err(Failed::Wrong("it is still being written".to_owned()));
                    }
                    let (file, version) = intake.finish()?;
                    Ok(Seen::New { new_file, file, version, stamp })
                })
                .await?
            }
            None => self.fetch(client, mapping, clock).await?,
        };
        let Seen::New { new_file, file, version, stamp } = seen else { return Ok(()) };
        let about = StaticFileInfo { source: mapping.base_url.to_string(), version, stamp };
        let version_in_use = self.known().version.as_ref().map(|version| version.id.clone());
        if version_in_use.as_ref() == Some(&about.version) {
            self.known().stamp = about.stamp.clone();
            return blocking(&name, move || Ok(new_file.discard_as_unchanged(&about)?)).await;
        }
        let for_reading = mapping.clone();
        let (version, stamp) = blocking(&name, move || {
            let version = FileVersion::read(Text::new(file)?, about.version.clone(), &for_reading)?;
            new_file.commit(&about)?;
            Ok((version, about.stamp))
        })
        .await?;
        let (records, broken) = (version.entries.len(), version.broken());
        tracing::info!(
            repo = mapping.id,
            version = version.id,
            records,
            broken,
            "static repository file loaded"
        );
        self.put_in_use(version, stamp);
        Ok(())
    }

    /// The stamp of the version in use.
    fn stamp(&self) -> Option<FileStamp> {
        let known = self.known();
        known.version.is_some().then(|| known.stamp.clone())
    }

    /// Fetches the file, if it has changed.
    async fn fetch(
        &self,
        client: &HttpClient,
        mapping: &SourceMapping,
        clock: Arc<dyn Clock>,
    ) -> Result<Seen, Failure> {
        let mut budget = Deadline::new(clock, FETCH_TIME);
        let stamp = self.stamp().unwrap_or_default();
        let exchange = exchange(client, mapping, &stamp, &mut budget).await?;
        let name = client.name();
        match exchange.status {
            304 if stamp != FileStamp::default() => return Ok(Seen::Same),
            200 => {}
            status => {
                let details = format!("{name}: the response has status {status} instead of 200");
                let failure = Failure::new(Reason::Status, details);
                return Err(failure.after_status(status, exchange.retry_after_secs));
            }
        }
        let stamp = FileStamp {
            etag: exchange.header(&header::ETAG),
            last_modified: exchange.header(&header::LAST_MODIFIED),
            modified_nanos_and_bytes: None,
        };
        let (static_files, id, charset) =
            (self.static_files.clone(), mapping.id.clone(), exchange.charset.clone());
        let len_max = mapping.limits.static_file_bytes_max;
        let (pieces, mut to_write) = mpsc::channel::<Bytes>(PIECES_HELD);
        let writing = tokio::task::spawn_blocking(move || {
            let (new_file, file) = static_files.start(&id)?;
            let mut intake = Intake::new(file, charset.as_deref(), len_max);
            while let Some(piece) = to_write.blocking_recv() {
                intake.push(&piece)?;
            }
            let (file, version) = intake.finish()?;
            Ok::<_, Failed>((new_file, file, version))
        });
        let mut body = SourceBody::new(client, mapping, exchange);
        let broken = loop {
            match body.next(&mut budget).await {
                Ok(Some(piece)) => {
                    if pieces.send(piece).await.is_err() {
                        // The writer returns its error.
                        break None;
                    }
                }
                Ok(None) => break None,
                Err(broken) => break Some(broken.failure),
            }
        };
        drop(pieces);
        let written = writing.await.map_err(|error| stopped(&name, &error))?;
        if let Some(failure) = broken {
            return Err(failure);
        }
        let (new_file, file, version) = written.map_err(|failed| failed.into_failure(&name))?;
        Ok(Seen::New { new_file, file, version, stamp })
    }
}

/// Requests the file, unless it still has this stamp, and follows its redirects.
async fn exchange(
    client: &HttpClient,
    mapping: &SourceMapping,
    stamp: &FileStamp,
    budget: &mut Deadline,
) -> Result<Exchange, Failure> {
    let mut url = mapping.base_url.clone();
    for redirects in 0..=mapping.limits.redirects_max {
        let mut request = client.prepare(&url, None, redirects)?;
        let conditions: [(HeaderName, _); 2] =
            [(header::IF_NONE_MATCH, &stamp.etag), (header::IF_MODIFIED_SINCE, &stamp.last_modified)];
        for (name, value) in conditions {
            // The value is from a header, so it is valid.
            if let Some(Ok(value)) = value.as_deref().map(HeaderValue::from_str) {
                request.headers_mut().insert(name, value);
            }
        }
        let sent = budget.within(client.step(), client.send(request, &url)).await;
        let response = sent.map_err(|late| client.timed_out(late, &url))??;
        if !is_redirect(response.status().as_u16()) {
            return Ok(Exchange::new(url, response, budget.now()));
        }
        url = redirect_target(client.mapping(), &client.name(), &url, &response)?;
    }
    let max = mapping.limits.redirects_max;
    let details = format!("{} redirects more than {max} times (redirects_max)", client.name());
    Err(Failure::new(Reason::Redirect, details))
}

/// The stamp of a state of a local file.
fn stamp_of(path: &Path) -> Result<FileStamp, Failed> {
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        return Err(Failed::Wrong("it is not a file".to_owned()));
    }
    let modified = meta.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let nanos = modified.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or_default();
    Ok(FileStamp { modified_nanos_and_bytes: Some((nanos, meta.len())), ..FileStamp::default() })
}

fn read_all(path: &Path, intake: &mut Intake) -> Result<(), Failed> {
    let mut file = File::open(path).map_err(unreadable)?;
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut buffer).map_err(unreadable)? {
            0 => return Ok(()),
            count => intake.push(buffer.get(..count).unwrap_or_default())?,
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn unreadable(error: std::io::Error) -> Failed {
    // Not the whole error: it may name the path.
    Failed::Wrong(format!("it cannot be read ({})", error.kind()))
}

/// Runs work that blocks on the disk.
async fn blocking<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|failed| failed.into_failure(name)),
        Err(error) => Err(stopped(name, &error)),
    }
}

fn stopped(name: &str, error: &tokio::task::JoinError) -> Failure {
    Failure::new(Reason::StaticFile, format!("{name}: reading it stopped: {error}"))
}
