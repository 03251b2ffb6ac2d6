//! Fetches one full text of an item, and reads its references.

use super::hosts::{Hosts, RobotsRule};
use crate::serve::telemetry::labels::FullTextOutcome;
use oaimend_full_text::{FullTextHosts, TextExtractor, TextFailure, references_in};
use oaimend_upstream::{Download, DownloadError, Downloader};
use robotxt::{AccessResult, BYTE_LIMIT};
use std::time::Duration;
use url::Url;

/// Maximum number of redirects of a full text, and of a robots.txt (RFC 9309, 2.3.1.2).
const REDIRECTS_MAX: usize = 5;
/// The first bytes of a file, among which a PDF has its header.
const HEADER_BYTES: usize = 1_024;
const HEADER: &[u8] = b"%PDF-";
/// Longest wait for a further request of one full text: after its robots.txt, a redirect, or another URL.
const TURN_WAIT_MAX: Duration = Duration::from_secs(700);
/// How long an item waits if robots.txt forbids its full text.
const ROBOTS_WAIT: Duration = Duration::from_secs(30 * 86_400);

/// Fetches the full texts of a repository.
pub(super) struct Fetcher<'a> {
    pub(super) hosts: &'a Hosts,
    pub(super) downloader: &'a Downloader,
    pub(super) extractor: &'a TextExtractor,
    pub(super) allowed: &'a FullTextHosts,
    /// The shortest time between two requests to a host.
    pub(super) gap: Duration,
    /// Longest full text, in bytes.
    pub(super) bytes_max: usize,
}

/// The result for the full texts of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// The host may not be requested yet, or no PDF can be read on this machine. Nothing was fetched.
    NotNow(NotNow),
    /// It names these works, each with the name of its kind.
    Read(Vec<(String, String)>),
    /// It cannot be read.
    Refused(FullTextOutcome, String),
    /// It may be read later: after the time that the server or its robots.txt wants, or after a usual time.
    Later(FullTextOutcome, Option<Duration>, String),
}

/// Why nothing was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotNow {
    Pace,
    Unavailable,
}

impl Fetcher<'_> {
    /// Reads the first full text among these URLs that can be read.
    pub(super) async fn fetch(&self, urls: &[Url]) -> Fetched {
        let mut last = Fetched::Refused(FullTextOutcome::Redirect, "its host is not allowed".to_owned());
        // Only the first request can be left for later. The others wait, because nothing is stored before the last one.
        if urls.iter().find(|url| self.allowed.allow(url)).is_some_and(|url| !self.hosts.is_ready(url)) {
            return Fetched::NotNow(NotNow::Pace);
        }
        for url in urls.iter().filter(|url| self.allowed.allow(url)) {
            last = self.fetch_one(url.clone()).await;
            if !matches!(last, Fetched::Refused(..)) {
                return last;
            }
        }
        last
    }

    async fn fetch_one(&self, mut url: Url) -> Fetched {
        for _ in 0..=REDIRECTS_MAX {
            match self.robots_rule(&url).await {
                RobotsRule::Allowed => {}
                RobotsRule::Disallowed => {
                    let why = format!("robots.txt of {} forbids it", host(&url));
                    return Fetched::Later(FullTextOutcome::Robots, Some(ROBOTS_WAIT), why);
                }
                RobotsRule::Unknown | RobotsRule::Unreachable => {
                    let why = format!("robots.txt of {} cannot be reached", host(&url));
                    return Fetched::Later(FullTextOutcome::Later, None, why);
                }
            }
            if let Err(wait) = self.turn(&url).await {
                let why = format!("{} wants no request now", host(&url));
                return Fetched::Later(FullTextOutcome::Later, Some(wait), why);
            }
            let download = match self.downloader.get(&url, "application/pdf", self.bytes_max).await {
                Ok(download) => download,
                Err(DownloadError::AddressRefused(why)) => {
                    return Fetched::Refused(FullTextOutcome::Address, why);
                }
                Err(DownloadError::NoResponse(why)) => {
                    return Fetched::Later(FullTextOutcome::Later, None, why);
                }
            };
            match download.status {
                200 => return self.read(&download).await,
                301 | 302 | 303 | 307 | 308 => match next(&url, &download) {
                    Some(to) if self.allowed.allow(&to) => url = to,
                    to => {
                        let to = to.map(|to| host(&to)).unwrap_or_default();
                        let why = format!("it leads to \"{to}\", which full_texts.hosts does not allow");
                        return Fetched::Refused(FullTextOutcome::Redirect, why);
                    }
                },
                status @ (408 | 425 | 429 | 500..) => {
                    let wait = download.retry_after_secs.map(Duration::from_secs);
                    if let Some(wait) = wait {
                        self.hosts.pause(&url, wait);
                    }
                    return Fetched::Later(FullTextOutcome::Later, wait, format!("status {status}"));
                }
                status => return Fetched::Refused(FullTextOutcome::Status, format!("status {status}")),
            }
        }
        Fetched::Refused(FullTextOutcome::Redirect, format!("more than {REDIRECTS_MAX} redirects"))
    }

    /// Reads the references of a file.
    async fn read(&self, download: &Download) -> Fetched {
        let file = &download.body;
        if file.len() > self.bytes_max {
            let why = format!("it is longer than {} bytes (full_texts.bytes_max)", self.bytes_max);
            return Fetched::Refused(FullTextOutcome::TooLarge, why);
        }
        let start = &file[..file.len().min(HEADER_BYTES)];
        if !start.windows(HEADER.len()).any(|window| window == HEADER) {
            return Fetched::Refused(FullTextOutcome::NotPdf, "it is no PDF".to_owned());
        }
        let outcome = match self.extractor.text(file).await {
            Ok(text) => {
                let Ok(references) = tokio::task::spawn_blocking(move || references_in(&text)).await else {
                    let why = "its references cannot be read, which is a fault of oaimend".to_owned();
                    return Fetched::Refused(FullTextOutcome::Unreadable, why);
                };
                let named = references.into_iter().map(|found| (found.kind.name().to_owned(), found.value));
                return Fetched::Read(named.collect());
            }
            Err(TextFailure::Unavailable) => return Fetched::NotNow(NotNow::Unavailable),
            Err(TextFailure::Interrupted) => {
                let why = "pdftotext was ended from outside, or the machine is too busy".to_owned();
                return Fetched::Later(FullTextOutcome::Later, None, why);
            }
            Err(TextFailure::Unreadable) => FullTextOutcome::Unreadable,
            Err(TextFailure::TimeExceeded) => FullTextOutcome::TimeExceeded,
            Err(TextFailure::TextTooLong) => FullTextOutcome::TextTooLong,
            Err(TextFailure::Crashed) => FullTextOutcome::Crashed,
        };
        Fetched::Refused(outcome, format!("pdftotext: {}", outcome.name()))
    }

    /// Waits until the host of a URL may be requested. The error is a longer wait.
    async fn turn(&self, url: &Url) -> Result<(), Duration> {
        let wait = self.hosts.reserve(url, self.gap);
        if wait > TURN_WAIT_MAX {
            return Err(wait);
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// The rule of robots.txt for a URL. The file is fetched if it is not known.
    async fn robots_rule(&self, url: &Url) -> RobotsRule {
        let known = self.hosts.rule(url);
        if known != RobotsRule::Unknown {
            return known;
        }
        let mut file = url.clone();
        file.set_path("/robots.txt");
        file.set_query(None);
        self.fetch_robots(url, file).await;
        self.hosts.rule(url)
    }

    async fn fetch_robots(&self, of: &Url, mut file: Url) {
        for _ in 0..=REDIRECTS_MAX {
            if self.turn(&file).await.is_err() {
                return self.hosts.set_robots(of, AccessResult::Unreachable);
            }
            match self.downloader.get(&file, "text/plain", BYTE_LIMIT).await {
                Ok(download) => match download.status {
                    200 => return self.hosts.set_robots(of, AccessResult::Successful(&download.body)),
                    301 | 302 | 303 | 307 | 308 => match next(&file, &download) {
                        Some(to) if self.allowed.allow(&to) => file = to,
                        _ => return self.hosts.set_robots(of, AccessResult::Unavailable),
                    },
                    429 | 500.. => {
                        let wait = download.retry_after_secs.map(Duration::from_secs);
                        self.hosts.pause(of, wait.unwrap_or_default());
                        return self.hosts.set_robots(of, AccessResult::Unreachable);
                    }
                    _ => return self.hosts.set_robots(of, AccessResult::Unavailable),
                },
                Err(_) => return self.hosts.set_robots(of, AccessResult::Unreachable),
            }
        }
        self.hosts.set_robots(of, AccessResult::TooManyRedirects);
    }
}

/// The target of a redirect. One from https to http is none.
fn next(from: &Url, download: &Download) -> Option<Url> {
    let mut to = download.location.clone()?;
    to.set_fragment(None);
    let is_safe = to.username().is_empty() && to.password().is_none();
    (is_safe && !(from.scheme() == "https" && to.scheme() == "http")).then_some(to)
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}
