//! What is kept for how long: a plan made from the request, and a verdict when
//! the page has ended. Pure; the time is an argument.
//!
//! Must stay true: a page is kept only if all of it went out as the source
//! meant it. A broken page has no verdict at all; one with records put aside,
//! with a token of ours, with a reused token, or of one window of several is never kept; nothing outlives
//! the token on it.

use crate::config::{self, Mapping};
use crate::oai::{Argument, Request, Verb};
use crate::repair::Outcome;
use crate::store::PageKey;
use crate::upstream::Account;
use std::time::{Duration, SystemTime};

/// What may become of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Whether a whole page is kept on the disk.
    pub(super) is_kept: bool,
    /// Whether requests that come while the page is under way may always share
    /// it. The first page of a list is shared with those only that came about
    /// when it began: a page that is older than its harvester believes hides
    /// the records that changed in between.
    pub(super) is_shared: bool,
    /// How long a kept page is an answer.
    fresh: Duration,
    /// How long after that it is one when the source fails.
    pub(super) stale_if_error: Duration,
    /// How long a failure or an OAI error is an answer.
    pub(super) failures: Duration,
}

/// For how long a page that was whole is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) fresh_until: SystemTime,
    pub(super) stale_if_error: Duration,
}

impl Plan {
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

    /// What becomes of a page that was whole. `began` is when it did, `end` are
    /// its last bytes.
    pub(super) fn verdict(&self, account: &Account, end: &[u8], began: SystemTime) -> Option<Kept> {
        let is_whole = matches!(account.outcome, Some(Outcome::Clean | Outcome::Repaired));
        let is_lasting = account.quarantined == 0
            && account.continued.is_none()
            && !account.reuses_tokens
            && account.leads_back_to.is_none()
            && !account.within_a_window;
        if !self.is_kept || !is_whole || !is_lasting {
            return None;
        }
        let mut kept = Kept { fresh_until: began + self.fresh, stale_if_error: self.stale_if_error };
        if is_error(end) {
            kept =
                Kept { fresh_until: began + self.failures.min(self.fresh), stale_if_error: Duration::ZERO };
        }
        if let Some(expires) = token_expires(end) {
            kept.fresh_until = kept.fresh_until.min(expires);
            kept.stale_if_error = Duration::ZERO;
        }
        let is_ever_an_answer = kept.fresh_until > began || kept.stale_if_error > Duration::ZERO;
        is_ever_an_answer.then_some(kept)
    }
}

/// The page that answers a request. `base_url` is what the answer calls itself:
/// the same repository under another name has other bytes. `lowered_to` is the datestamp that Identify
/// says in place of its source's, so that a page from before that was learned is not found any more.
pub(super) fn key(
    mapping: &Mapping,
    generation: &str,
    base_url: &str,
    request: &Request,
    lowered_to: Option<&str>,
) -> PageKey {
    // Nothing of this has a line end in it.
    let mut text = format!("{base_url}\n{}\n{generation}", request.query());
    if let Some(lowered_to) = lowered_to.filter(|_| request.verb() == Verb::Identify) {
        text.push('\n');
        text.push_str(lowered_to);
    }
    PageKey::new(&mapping.id, text)
}

/// The page that answers another query under the same name.
pub(super) fn key_of_query(key: &PageKey, query: &str) -> PageKey {
    let mut parts = key.text().splitn(3, '\n');
    let (base_url, generation) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
    PageKey::new(key.repository(), format!("{base_url}\n{query}\n{generation}"))
}

/// Another one with every change of a mapping, or of the program that mends by it.
pub(super) fn generation(mapping: &Mapping) -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), mapping.fingerprint())
}

/// Whether a page is an OAI error, by its last bytes: the element that ends
/// before the end of the document is called `error`.
fn is_error(end: &[u8]) -> bool {
    let inside = end.trim_ascii_end();
    let Some(at) = inside.iter().rposition(|&byte| byte == b'<') else { return false };
    let before = inside.get(..at).unwrap_or_default().trim_ascii_end();
    let Some(at) = before.iter().rposition(|&byte| byte == b'<') else { return false };
    let tag = before.get(at + 1..).unwrap_or_default();
    // An end tag, or a tag that is both.
    let name = tag.strip_prefix(b"/").or_else(|| tag.ends_with(b"/>").then_some(tag)).unwrap_or_default();
    local_name(name) == b"error"
}

/// When the resumptionToken at the end of a page expires, if it says so.
fn token_expires(end: &[u8]) -> Option<SystemTime> {
    // Few tokens say it, and this look is faster than those from the end.
    memchr::memmem::find(end, b"expirationDate")?;
    let text = String::from_utf8_lossy(end);
    let mut tags = text.rmatch_indices("resumptionToken").map(|(at, _)| text.get(at..).unwrap_or_default());
    // From the end: the name in the end tag has no attribute behind it.
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

/// Last bytes of a page that the verdict looks at.
pub(super) const END_BYTES: usize = 8 << 10;
