//! Decides how long a page is cached: a plan from the request, and a verdict at the end of the page. Pure; the time
//! is an argument.
//!
//! Invariants: a page is cached only if it was delivered completely and as the source sent it. A truncated page has
//! no verdict. A page with quarantined records, with our own token, with a reused token, or of one window of several
//! is never cached. No page is cached longer than the token on it is valid.

use crate::config::{self, Mapping};
use crate::oai::{Argument, Request, Verb};
use crate::repair::Outcome;
use crate::store::PageKey;
use crate::upstream::Account;
use std::time::{Duration, SystemTime};

/// The plan for the response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachePlan {
    /// Whether a complete page is stored on disk.
    pub(super) is_kept: bool,
    /// Whether later requests may share the page while it is in flight. The first page of a list is shared only with
    /// requests that arrive near its start: an older page hides records that changed in between.
    pub(super) is_shared: bool,
    /// How long a cached page is fresh.
    fresh: Duration,
    /// How long after that it may replace a failure.
    pub(super) stale_if_error: Duration,
    /// How long a failure or an OAI error is fresh.
    pub(super) failures: Duration,
}

/// How long a complete page is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retention {
    pub(super) fresh_until: SystemTime,
    pub(super) stale_if_error: Duration,
}

impl CachePlan {
    pub(super) fn of(request: &Request, mapping: &Mapping, config: &config::Cache) -> Self {
        let is_token_page = request.argument(Argument::ResumptionToken).is_some();
        let is_list = matches!(request.verb(), Verb::ListRecords | Verb::ListIdentifiers);
        let (fresh, stale_if_error) = match (is_token_page, is_list) {
            (true, _) => (config.token_pages, Duration::ZERO),
            (false, false) => (config.fresh, config.stale_if_error),
            (false, true) if mapping.stale_lists => (Duration::ZERO, config.stale_if_error),
            (false, true) => (Duration::ZERO, Duration::ZERO),
        };
        let is_kept = fresh + stale_if_error > Duration::ZERO;
        let is_shared = is_token_page || !is_list;
        Self { is_kept, is_shared, fresh, stale_if_error, failures: config.failures }
    }

    /// The verdict on a complete page. `began` is the time of its start, `end` contains its last bytes.
    pub(super) fn verdict(&self, account: &Account, end: &[u8], began: SystemTime) -> Option<Retention> {
        let is_whole = matches!(account.outcome, Some(Outcome::Clean | Outcome::Repaired));
        let is_lasting = account.quarantined == 0
            && account.continued.is_none()
            && !account.reuses_tokens
            && account.leads_back_to.is_none()
            && !account.within_a_window;
        if !self.is_kept || !is_whole || !is_lasting {
            return None;
        }
        let mut kept = Retention { fresh_until: began + self.fresh, stale_if_error: self.stale_if_error };
        if is_error(end) {
            kept = Retention {
                fresh_until: began + self.failures.min(self.fresh),
                stale_if_error: Duration::ZERO,
            };
        }
        if let Some(expires) = token_expires(end) {
            kept.fresh_until = kept.fresh_until.min(expires);
            kept.stale_if_error = Duration::ZERO;
        }
        let is_ever_an_answer = kept.fresh_until > began || kept.stale_if_error > Duration::ZERO;
        is_ever_an_answer.then_some(kept)
    }
}

/// The key of the page that answers a request. A page contains `base_url`, so the same repository under another base
/// URL has other pages. `lowered_to` is the earliestDatestamp that replaces the one of the source; with it, older
/// Identify pages are not found.
pub(super) fn key(
    mapping: &Mapping,
    generation: &str,
    base_url: &str,
    request: &Request,
    lowered_to: Option<&str>,
) -> PageKey {
    // No part contains a line break.
    let mut text = format!("{base_url}\n{}\n{generation}", request.query());
    if let Some(lowered_to) = lowered_to.filter(|_| request.verb() == Verb::Identify) {
        text.push('\n');
        text.push_str(lowered_to);
    }
    PageKey::new(&mapping.id, text)
}

/// The key of the page for another query with the same base URL.
pub(super) fn key_of_query(key: &PageKey, query: &str) -> PageKey {
    let mut parts = key.text().splitn(3, '\n');
    let (base_url, generation) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
    PageKey::new(key.repository(), format!("{base_url}\n{query}\n{generation}"))
}

/// Differs for each version of a mapping and of the program.
pub(super) fn generation(mapping: &Mapping) -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), mapping.fingerprint())
}

/// Whether a page is an OAI error, by its last bytes: the last element before the end of the document is `error`.
fn is_error(end: &[u8]) -> bool {
    let inside = end.trim_ascii_end();
    let Some(at) = inside.iter().rposition(|&byte| byte == b'<') else { return false };
    let before = inside.get(..at).unwrap_or_default().trim_ascii_end();
    let Some(at) = before.iter().rposition(|&byte| byte == b'<') else { return false };
    let tag = before.get(at + 1..).unwrap_or_default();
    // An end tag or an empty-element tag.
    let name = tag.strip_prefix(b"/").or_else(|| tag.ends_with(b"/>").then_some(tag)).unwrap_or_default();
    local_name(name) == b"error"
}

/// The expiration of the resumptionToken at the end of a page, if it has one.
fn token_expires(end: &[u8]) -> Option<SystemTime> {
    // Few tokens have one, and this search is faster than the others.
    memchr::memmem::find(end, b"expirationDate")?;
    let text = String::from_utf8_lossy(end);
    let mut tags = text.rmatch_indices("resumptionToken").map(|(at, _)| text.get(at..).unwrap_or_default());
    // From the end: the end tag has no attribute.
    let tag = tags.find(|tag| tag.find("expirationDate").is_some_and(|date| !tag[..date].contains('>')))?;
    let tag = tag.get(..tag.find('>')?)?;
    let value = tag.split_once("expirationDate")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next()?;
    let date = value.get(1..)?.split(quote).next()?;
    let date = chrono::DateTime::parse_from_rfc3339(date.trim()).ok()?;
    let seconds = u64::try_from(date.timestamp()).unwrap_or_default();
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn local_name(tag: &[u8]) -> &[u8] {
    let is_name = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'>');
    let end = tag.iter().position(|byte| !is_name(byte)).unwrap_or(tag.len());
    let name = tag.get(..end).unwrap_or_default();
    name.rsplit(|&byte| byte == b':').next().unwrap_or_default()
}

/// Length of the end of a page that the verdict reads, in bytes.
pub(super) const END_BYTES: usize = 8 << 10;
