//! Fetches one full text of an item, and reads its references.

use super::hosts::{Hosts, RobotsRule, UNREACHABLE_KEPT};
use crate::serve::telemetry::labels::FullTextOutcome;
use oaimend_full_text::{FullTextHosts, TextExtractor, TextFailure, references_in};
use oaimend_upstream::{Download, DownloadError, Downloader};
use robotxt::{AccessResult, BYTE_LIMIT};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::Url;

/// Maximum number of redirects of a full text, and of a robots.txt (RFC 9309, 2.3.1.2).
const REDIRECTS_MAX: usize = 5;
/// The first bytes of a file, among which a PDF has its header.
const HEADER_BYTES: usize = 1_024;
const HEADER: &[u8] = b"%PDF-";
/// Longest wait for a further request of one full text: after its robots.txt, a redirect, or another URL.
const TURN_WAIT_MAX: Duration = Duration::from_secs(700);
/// A wait for a host that is part of a fetch.
const WAIT_IGNORED: Duration = Duration::from_secs(1);
/// A wait of the usual pace, after which the first URL of an item is requested. A longer one is a pause.
pub(super) const WAIT_SHORT: Duration = Duration::from_secs(60);
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
    /// Maximum number of files that are in memory at a time, over all repositories.
    pub(super) files: &'a Semaphore,
    /// Whether the mapping is still the one that this was made for.
    pub(super) is_current: &'a (dyn Fn() -> bool + Send + Sync),
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
    /// The host may not be requested for this time.
    Pace(Duration),
    /// The mapping has changed meanwhile.
    Changed,
    Unavailable,
}

impl Fetcher<'_> {
    /// Whether one of these URLs may be requested now. The robots.txt of its host is fetched if it is not known.
    pub(super) async fn prepare(&self, urls: &[Url]) -> Result<(), NotNow> {
        let mut shortest = None;
        for url in urls.iter().filter(|url| self.allowed.allow(url)) {
            let mut wait = self.hosts.wait(url);
            if wait <= WAIT_IGNORED {
                // A refused address ends the fetch with its outcome.
                if self.robots_rule(url).await != Ok(RobotsRule::Unreachable) {
                    return Ok(());
                }
                if !(self.is_current)() {
                    return Err(NotNow::Changed);
                }
                wait = self.hosts.wait(url).max(WAIT_IGNORED);
            }
            shortest = Some(shortest.unwrap_or(wait).min(wait));
            // The first URL is the best one, so the others are for a longer pause.
            if wait <= WAIT_SHORT {
                break;
            }
        }
        shortest.map_or(Ok(()), |wait| Err(NotNow::Pace(wait)))
    }

    /// Reads the first full text among these URLs that can be read.
    pub(super) async fn fetch(&self, urls: &[Url]) -> Fetched {
        let mut last = Fetched::Refused(FullTextOutcome::Redirect, "its host is not allowed".to_owned());
        for url in urls.iter().filter(|url| self.allowed.allow(url)) {
            match (self.fetch_one(url.clone()).await, &last) {
                // One that may be read later counts more than one that cannot be read.
                (Fetched::Refused(..), Fetched::Later(..)) => {}
                (result @ (Fetched::Refused(..) | Fetched::Later(..)), _) => last = result,
                (result, _) => return result,
            }
        }
        last
    }

    async fn fetch_one(&self, mut url: Url) -> Fetched {
        for _ in 0..=REDIRECTS_MAX {
            match self.robots_rule(&url).await {
                Ok(RobotsRule::Allowed) => {}
                Ok(RobotsRule::Disallowed) => {
                    let why = format!("robots.txt of {} forbids it", host(&url));
                    return Fetched::Later(FullTextOutcome::Robots, Some(ROBOTS_WAIT), why);
                }
                Ok(RobotsRule::Unknown | RobotsRule::Unreachable) => {
                    let why = format!("robots.txt of {} cannot be reached", host(&url));
                    return Fetched::Later(FullTextOutcome::Later, None, why);
                }
                Err(why) => return Fetched::Refused(FullTextOutcome::Address, why),
            }
            let _exchange = self.hosts.exchange(&url).await;
            if let Err(wait) = self.turn(&url).await {
                let why = format!("{} wants no request now", host(&url));
                return Fetched::Later(FullTextOutcome::Later, Some(wait), why);
            }
            if !(self.is_current)() {
                return Fetched::NotNow(NotNow::Changed);
            }
            let Ok(_file) = self.files.acquire().await else { return Fetched::NotNow(NotNow::Changed) };
            let download = match self.downloader.get(&url, "application/pdf", self.bytes_max).await {
                Ok(download) => download,
                Err(DownloadError::AddressRefused(why)) => {
                    return Fetched::Refused(FullTextOutcome::Address, why);
                }
                Err(DownloadError::NoResponse(why)) => {
                    self.hosts.pause(&url, UNREACHABLE_KEPT);
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

    /// The rule of robots.txt for a URL. The file is fetched if it is not known. The error says why the address of the host
    /// is refused.
    async fn robots_rule(&self, url: &Url) -> Result<RobotsRule, String> {
        let known = self.hosts.rule(url);
        if known != RobotsRule::Unknown {
            return Ok(known);
        }
        let mut file = url.clone();
        file.set_path("/robots.txt");
        file.set_query(None);
        let mut to = file;
        for count in 0..=REDIRECTS_MAX {
            let _exchange = self.hosts.exchange(&to).await;
            let is_late = self.turn(&to).await.is_err();
            if is_late || !(self.is_current)() {
                return Ok(RobotsRule::Unreachable);
            }
            // A redirect may lead to any host (RFC 9309, 2.3.1.2).
            let got = if self.allowed.allow(&to) {
                self.downloader.get(&to, "text/plain", BYTE_LIMIT).await
            } else {
                self.downloader.get_public(&to, "text/plain", BYTE_LIMIT).await
            };
            match got {
                Ok(download) => match download.status {
                    200 => self.hosts.set_robots(url, AccessResult::Successful(&download.body)),
                    301 | 302 | 303 | 307 | 308 => match next_robots(&download) {
                        Some(next) => {
                            to = next;
                            continue;
                        }
                        None => self.hosts.set_robots(url, AccessResult::Unreachable),
                    },
                    408 | 425 | 429 | 500.. => {
                        self.hosts.set_robots(url, AccessResult::Unreachable);
                        let wait = download.retry_after_secs.map(Duration::from_secs);
                        self.hosts.pause(url, wait.unwrap_or_default());
                    }
                    _ => self.hosts.set_robots(url, AccessResult::Unavailable),
                },
                Err(DownloadError::AddressRefused(why)) if count == 0 => return Err(why),
                Err(_) => self.hosts.set_robots(url, AccessResult::Unreachable),
            }
            return Ok(self.hosts.rule(url));
        }
        self.hosts.set_robots(url, AccessResult::TooManyRedirects);
        Ok(self.hosts.rule(url))
    }
}

/// The target of a redirect of a robots.txt, which has no secrets.
fn next_robots(download: &Download) -> Option<Url> {
    let to = download.location.clone()?;
    let is_safe = to.username().is_empty() && to.password().is_none();
    (is_safe && matches!(to.scheme(), "http" | "https")).then_some(to)
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
