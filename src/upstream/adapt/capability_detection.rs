//! Learns from responses which OAI-PMH version and granularity a source takes, and rewords requests.
//!
//! The version is learned from the first page, at no cost. Only Identify is trusted if a response
//! contradicts what is known, or if a request would be refused. A source of unknown version that refuses a
//! request with status 400, as 1.x does, is asked for `Identify` once. A source refuses the seconds that it
//! announces if it refuses them for days that it answers as days. It is asked again once a day, and the
//! lesson is dropped if it takes seconds or announces days.

use crate::clock;
use crate::oai::datestamp::Granularity;
use crate::oai::{ErrorCode, Request, Verb};
use crate::repair::RepairId;
use crate::repository::{Failure, Reason};
use crate::store::SourceCapabilities;
use crate::upstream::adapt::error_diagnosis::DiagnosedError;
use crate::upstream::adapt::request_adapter::RequestAdapter;
use crate::upstream::adapt::requester::Requester;
use crate::upstream::adapt::subrequest::{SubrequestError, SubrequestOptions};

/// The meaning of a response that is an error.
pub(crate) enum Diagnosis {
    /// The request has to be reworded.
    Reword,
    /// It means another error.
    Error(DiagnosedError),
    /// It means what it says.
    AsReceived,
}

/// Whether a source takes dates in seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecondsSupport {
    Taken,
    Refused,
    /// There was no response, or one that says nothing about dates.
    Unknown,
}

/// How often a source that refuses seconds is asked again, in seconds.
const SECONDS_PROBED_EVERY_SECS: u64 = 24 * 3600;
const SECONDS: &str = "YYYY-MM-DDThh:mm:ssZ";

impl Requester<'_> {
    /// The error of a request that is finer than the granularity of its repository.
    pub(crate) async fn check_granularity(&mut self, request: &Request) -> Option<DiagnosedError> {
        if self.adapter.is_too_fine(request) && self.job.mapping.quirks.version.is_none() {
            // Without this probe, a harvester that always asks in seconds would never get another page.
            self.granularity().await;
        }
        let text = "the granularity of this repository is days: YYYY-MM-DD is right";
        self.adapter.is_too_fine(request).then(|| (ErrorCode::BadArgument, text.to_owned()))
    }

    /// Notes the version of a page. If it contradicts what is known, Identify decides: one page may be of
    /// another program than the rest.
    pub(crate) async fn note_version(&mut self, request: &Request, version: &'static str) {
        if self.adapter.has_unknown_version() || request.verb() == Verb::Identify {
            self.learn_version(version).await;
        } else if self.adapter.is_news(version) {
            self.granularity().await;
        }
    }

    /// Learns the version of the source.
    pub(crate) async fn learn_version(&mut self, version: &'static str) {
        if self.adapter.is_news(version) {
            self.learn(|learned| learned.version = Some(version.to_owned())).await;
        }
    }

    async fn learn(&mut self, lesson: impl FnOnce(&mut SourceCapabilities) + Send + 'static) {
        let job = self.job;
        let learned = job.client.learn(&job.store, lesson).await;
        self.adapter = RequestAdapter::new(&job.mapping.quirks, &learned);
        // A trial for this job is no lesson.
        self.adapter.in_days |= self.days_trial.is_some();
        tracing::info!(
            repo = job.mapping.id,
            version = learned.version,
            refuses_seconds = learned.refuses_seconds,
            "capabilities of a source learned"
        );
    }

    /// Learns from a failure how the request has to be reworded, by a probe if necessary.
    pub(crate) async fn learn_from_failure(&mut self, request: &Request, failure: &Failure) {
        if is_status_400(failure) {
            if self.adapter.has_unknown_version() {
                self.granularity().await;
            }
            self.try_days(request).await;
        }
    }

    /// Whether the source may have refused the seconds of a request.
    fn may_be_too_fine(&self, request: &Request) -> bool {
        request.has_seconds() && !self.adapter.in_days && !self.adapter.is_version_one()
    }

    /// Sends days from now on if the source refuses the seconds that it announces.
    async fn try_days(&mut self, request: &Request) -> bool {
        if !self.may_be_too_fine(request) || self.granularity().await.as_deref() != Some(SECONDS) {
            return false;
        }
        let seconds = self.probe_seconds(request).await;
        if seconds == SecondsSupport::Taken {
            return false;
        }
        // Without proof, days are tried for this job only.
        (self.adapter.in_days, self.days_trial) = (true, Some(seconds == SecondsSupport::Refused));
        true
    }

    /// Probes whether the source takes seconds. The probe asks for the midnights of the request's days, so
    /// nothing but the seconds can be wrong with it if the source answers these days.
    async fn probe_seconds(&mut self, request: &Request) -> SecondsSupport {
        let (client, now) = (&self.job.client, self.now());
        if client.probe_cache.takes_seconds(now) {
            return SecondsSupport::Taken;
        }
        let mut options = SubrequestOptions { items_max: 1, ..self.options() };
        options.adapter.in_days = false;
        let seconds = match self.try_probe(&request.with_midnight_dates(), options).await {
            Ok(response) => match response.error_code() {
                Some(ErrorCode::BadArgument) => SecondsSupport::Refused,
                Some(ErrorCode::NoRecordsMatch) => SecondsSupport::Taken,
                None if !response.items.is_empty() => SecondsSupport::Taken,
                _ => SecondsSupport::Unknown,
            },
            Err(SubrequestError { failure, .. }) if is_status_400(&failure) => SecondsSupport::Refused,
            Err(_) => SecondsSupport::Unknown,
        };
        if seconds == SecondsSupport::Taken {
            client.probe_cache.note_seconds(now);
        }
        seconds
    }

    /// Notes the response of a page. If the source refused seconds before and answers days, it is asked for
    /// days from now on.
    pub(crate) async fn note_days(&mut self, error: Option<ErrorCode>) {
        let was_refused = self.days_trial == Some(true);
        if was_refused && error != Some(ErrorCode::BadArgument) {
            self.days_trial = None;
            let now = clock::secs(self.now());
            let lesson = move |learned: &mut SourceCapabilities| {
                (learned.refuses_seconds, learned.seconds_asked_at) = (true, now);
            };
            self.learn(lesson).await;
        }
    }

    /// Probes from time to time whether a source still refuses seconds.
    pub(crate) async fn recheck_seconds(&mut self, request: &Request) {
        let (job, now) = (self.job, clock::secs(self.now()));
        if job.mapping.quirks.in_days || !self.adapter.in_days || !request.has_seconds() {
            return;
        }
        if now < job.client.capabilities(&job.store).seconds_asked_at + SECONDS_PROBED_EVERY_SECS {
            return;
        }
        // Of several concurrent jobs only one probes.
        self.learn(move |learned| learned.seconds_asked_at = now).await;
        if self.probe_seconds(request).await == SecondsSupport::Taken {
            self.learn(|learned| learned.refuses_seconds = false).await;
        }
    }

    /// Notes the granularity in Identify. A source that announces days is right to refuse seconds.
    pub(crate) async fn note_granularity(&mut self, granularity: Granularity) {
        let learned = self.job.client.capabilities(&self.job.store);
        if learned.refuses_seconds && granularity == Granularity::Day {
            self.learn(|learned| learned.refuses_seconds = false).await;
        }
    }

    /// Whether an error response may mean another error, or none.
    pub(crate) fn is_doubtful(&self, request: &Request, error: Option<ErrorCode>) -> bool {
        let made = |id: RepairId| self.account.counts.of(id) > 0;
        let is_empty = made(RepairId::EmptyList) || made(RepairId::V1Empty);
        is_empty && self.may_be_another_error()
            || self.may_be_too_fine(request) && error == Some(ErrorCode::BadArgument)
    }

    /// Finds out what a doubtful error response means.
    pub(crate) async fn diagnose_error(&mut self, request: &Request, error: Option<ErrorCode>) -> Diagnosis {
        if error == Some(ErrorCode::BadArgument) {
            return if self.try_days(request).await { Diagnosis::Reword } else { Diagnosis::AsReceived };
        }
        self.diagnose().await.map_or(Diagnosis::AsReceived, Diagnosis::Error)
    }
}

fn is_status_400(failure: &Failure) -> bool {
    failure.reason == Reason::Status && failure.received_status == Some(400)
}
