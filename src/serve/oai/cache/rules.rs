//! Decides how long a page is cached: a plan from the request, and a verdict at the end of the page. Pure; the time
//! is an argument.
//!
//! Invariants: a page is cached only if it was delivered completely and as the source sent it. A truncated page has
//! no verdict. A page with quarantined records, with our own token, with an ambiguous token, or of one window of
//! several is never cached. An error in place of a page after a token is not cached either. No page is cached
//! longer than the token on it is valid.

use crate::config::{self, Mapping};
use oaimend_files::PageKey;
use oaimend_oai::{Argument, Request};
use oaimend_repair::Outcome;
use oaimend_repository::ResponseSummary;
use std::time::{Duration, SystemTime};

/// The plan for the response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachePlan {
    /// Whether a complete page is stored on disk.
    pub(super) is_kept: bool,
    /// Whether later requests may share the page while it is in flight. The first page of a list is shared only with
    /// requests that arrive near its start: an older page hides records that changed in between.
    pub(super) is_shared: bool,
    /// Whether the request continues a list. Its errors are those of one harvest.
    pub(super) is_token_page: bool,
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
        let is_list = request.verb().is_harvest();
        let (fresh, stale_if_error) = match (is_token_page, is_list) {
            (true, _) => (config.token_pages, Duration::ZERO),
            (false, false) => (config.fresh, config.stale_if_error),
            (false, true) if mapping.stale_lists => (Duration::ZERO, config.stale_if_error),
            (false, true) => (Duration::ZERO, Duration::ZERO),
        };
        let is_kept = fresh + stale_if_error > Duration::ZERO;
        let is_shared = is_token_page || !is_list;
        Self { is_kept, is_shared, is_token_page, fresh, stale_if_error, failures: config.failures }
    }

    /// Whether the page is of use for one harvest above all: it is kept for the time that a harvester needs to request it
    /// again. If an operator keeps such pages for longer, they are for other harvesters too.
    pub(super) fn is_for_one_harvest(&self) -> bool {
        self.is_token_page && self.fresh <= ONE_HARVEST_MAX
    }

    /// The verdict on a complete page. `began` is the time of its start.
    pub(super) fn verdict(&self, summary: &ResponseSummary, began: SystemTime) -> Option<Retention> {
        let is_whole = matches!(summary.end.outcome, Some(Outcome::Clean | Outcome::Repaired));
        let is_lasting = summary.items.quarantined() == 0
            && summary.end.continued.is_none()
            && !summary.page.is_ambiguous
            && !(self.is_token_page && summary.page.error.is_some())
            && !summary.page.within_a_window;
        if !self.is_kept || !is_whole || !is_lasting {
            return None;
        }
        let mut kept = Retention { fresh_until: began + self.fresh, stale_if_error: self.stale_if_error };
        if summary.page.error.is_some() {
            kept = Retention {
                fresh_until: began + self.failures.min(self.fresh),
                stale_if_error: Duration::ZERO,
            };
        }
        if let Some(expires) = summary.page.token_expires.as_deref().and_then(parse_expiration) {
            kept.fresh_until = kept.fresh_until.min(expires);
            kept.stale_if_error = Duration::ZERO;
        }
        let is_ever_an_answer = kept.fresh_until > began || kept.stale_if_error > Duration::ZERO;
        is_ever_an_answer.then_some(kept)
    }
}

/// What distinguishes pages that answer the same request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PageVariant {
    /// This text, if anything.
    Shared(Option<String>),
    /// The next response may be another page: the response is for one harvester.
    Unshared,
}

/// The key of the page that answers a request. A page contains `base_url`, so the same repository under another base
/// URL has other pages. `variant` distinguishes pages of the same request.
pub(super) fn key(
    mapping: &Mapping,
    generation: &str,
    base_url: &str,
    request: &Request,
    variant: Option<&str>,
) -> PageKey {
    // No part contains a line break.
    let mut text = format!("{base_url}\n{}\n{generation}", request.query());
    if let Some(variant) = variant {
        text.push('\n');
        text.push_str(variant);
    }
    PageKey::new(mapping.id(), text)
}

/// Differs for each version of a mapping and of the program.
pub(super) fn generation(mapping: &Mapping) -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), mapping.fingerprint())
}

/// How long a page after a token is kept at most if it is meant for the harvest that requested it.
const ONE_HARVEST_MAX: Duration = Duration::from_secs(60);

/// The time of an `expirationDate`. `None` if it has no time zone.
fn parse_expiration(date: &str) -> Option<SystemTime> {
    let date = chrono::DateTime::parse_from_rfc3339(date.trim()).ok()?;
    let seconds = u64::try_from(date.timestamp()).unwrap_or_default();
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}
