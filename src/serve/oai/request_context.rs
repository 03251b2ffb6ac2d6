//! The facts of a request while it is answered, and its line in the log.

use super::cache::CacheLookup;
use super::live_requests::LiveRequestMark;
use super::upstream_handle::UpstreamHandle;
use crate::serve::clients::quotas;
use crate::serve::pages::CollectedPage;
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::labels::{CacheOutcome, RequestOutcome};
use crate::serve::telemetry::{Finished, Telemetry};
use oaimend_base::clock;
use oaimend_oai::{Argument, ErrorCode, Request};
use oaimend_repository::{Failure, ResponseSummary, activity_update};
use pingora_error::Error;
use std::sync::Arc;
use std::time::SystemTime;

/// The state of one request.
pub(crate) struct RequestContext {
    served: Arc<ServedRepositories>,
    telemetry: Arc<Telemetry>,
    pub(super) started: SystemTime,
    pub(super) repository: Option<String>,
    pub(super) request: Option<Request>,
    /// The page for which the response is collected.
    pub(super) page_request: Option<CollectedPage>,
    /// The kind of the requested page, in place of a verb.
    pub(super) page: Option<&'static str>,
    pub(super) handle: Option<UpstreamHandle>,
    /// Its cache lookup; `None` if it bypasses the cache.
    pub(super) lookup: Option<CacheLookup>,
    /// Why no request is sent to the source.
    pub(super) failure: Option<Failure>,
    /// Whether the mirror alone answers the request.
    pub(super) is_of_mirror: bool,
    /// The outcome, where it is known before the end.
    pub(super) outcome: Option<RequestOutcome>,
    /// Held while the request is answered.
    pub(super) live: Option<LiveRequestMark>,
    /// Held until the response is sent.
    pub(super) permit: Option<quotas::Permit>,
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        self.telemetry.metrics.in_flight.dec();
    }
}

impl RequestContext {
    /// The state of a request that begins now.
    pub(super) fn new(served: Arc<ServedRepositories>, telemetry: Arc<Telemetry>) -> Self {
        telemetry.metrics.in_flight.inc();
        Self {
            served,
            telemetry,
            started: clock::now(),
            repository: None,
            request: None,
            page_request: None,
            page: None,
            handle: None,
            lookup: None,
            failure: None,
            is_of_mirror: false,
            outcome: None,
            live: None,
            permit: None,
        }
    }

    /// Counts the request and logs it.
    pub(super) fn log(&self, path: &str, status: u16, bytes: usize, error: Option<&Error>) {
        let Some(repository) = &self.repository else {
            tracing::debug!(path, status, "page of our own");
            return;
        };
        let ended = self.handle.as_ref().and_then(UpstreamHandle::ended);
        let summary = ended.as_ref().map(|ended| &ended.summary);
        let oai_error = summary.and_then(|summary| summary.page.error).map(ErrorCode::name);
        let continued = summary.and_then(|summary| summary.end.continued.as_ref());
        let failed_over = summary.and_then(|summary| summary.end.failed_over.as_ref());
        let failure = ended.as_ref().map_or(&self.failure, |ended| &ended.failure).as_ref();
        let failure = failure.or(continued).or(failed_over);
        // The session of another request counts its own result.
        let shared = self.lookup.as_ref().and_then(|lookup| lookup.shared.as_ref());
        let outcome = self.outcome.unwrap_or(match (failure, error) {
            _ if matches!(status, 502..=504) => RequestOutcome::Failed,
            (Some(_), None) if continued.is_some() => RequestOutcome::Continued,
            (Some(_), None) if failed_over.is_some() => RequestOutcome::FailedOver,
            (Some(_), Some(_)) => RequestOutcome::BrokenOff,
            (None, Some(_)) if shared.is_some_and(|in_flight| in_flight.ended() == Some(false)) => {
                RequestOutcome::BrokenOff
            }
            (_, Some(_)) => RequestOutcome::Abandoned,
            (_, None) if oai_error.is_some() => RequestOutcome::OaiError,
            (_, None) => RequestOutcome::Complete,
        });
        let cache = self.lookup.as_ref().map_or(CacheOutcome::Bypass, CacheLookup::outcome);
        if self.request.is_some() {
            self.telemetry.looked_up(repository, cache);
        }
        let now = clock::now();
        let at = clock::utc_datetime(now);
        let verb = self.request.as_ref().map(|request| request.verb().name()).or(self.page);
        let requested_path = self.page.map(|_| path);
        let query = self.request.as_ref().map(Request::query).or(requested_path).unwrap_or_default();
        let took = now.duration_since(self.started).unwrap_or_default();
        // Before the request is counted: a reader of the counters expects its activity.
        self.note_activity(repository, summary, failure);
        self.telemetry.finished(&Finished {
            repository,
            verb,
            request: query,
            at: &at,
            outcome,
            took,
            sent_bytes: bytes as u64,
            summary,
            failure,
        });
        let millis = took.as_millis();
        let argument = |name| self.request.as_ref().and_then(|request| request.argument(name));
        tracing::info!(
            repo = repository,
            verb,
            set = argument(Argument::Set),
            token = argument(Argument::ResumptionToken),
            cursor = summary.and_then(|summary| summary.page.progress.0),
            total = summary.and_then(|summary| summary.page.progress.1),
            status,
            outcome = outcome.name(),
            oai_error,
            cache = cache.name(),
            records = summary.map(|summary| summary.items.sent()),
            repairs = summary.map(|summary| summary.items.repairs_made()),
            quarantined = summary.map(|summary| summary.items.quarantined()),
            attempts = summary.map(ResponseSummary::attempts),
            version = summary.and_then(|summary| summary.page.version),
            ms = u64::try_from(millis).unwrap_or(u64::MAX),
            bytes,
            request = query,
            reason = failure.map(|failure| failure.reason.name()),
            details = failure.map(Failure::details_for_operators).or_else(|| error.map(ToString::to_string)),
            "page"
        );
    }

    /// Adds the request to the activity of its repository. The items of the mirror are those of its harvests, and are
    /// not counted again.
    fn note_activity(&self, repository: &str, summary: Option<&ResponseSummary>, failure: Option<&Failure>) {
        let Some(request) = &self.request else { return };
        let (summary, failure) = if self.is_of_mirror { (None, None) } else { (summary, failure) };
        let update = activity_update(request, summary, failure);
        self.served.store.activity.note(repository, self.served.clock.now_secs(), update);
    }
}
