//! Learns from responses which OAI-PMH version, granularity and form of requests a source takes, and rewords
//! requests.
//!
//! The version is learned from the first page, at no cost. Only Identify is trusted if a response
//! contradicts what is known, or if a request would be refused. A source of unknown version that refuses a
//! request with status 400, as 1.x does, is asked for `Identify` once. A source refuses the seconds that it
//! announces if it refuses them for days that it answers as days. It is asked again once a day, and the
//! lesson is dropped if it takes seconds or announces days.
//!
//! Other forms are tried after a refusal, or a response with nothing:
//!
//! - A resumptionToken with the metadataPrefix of its list, if the source refuses the token alone.
//! - Literal colons and slashes in an identifier, if the source does not know the encoded one.
//! - A list without the dates before earliestDatestamp, if the source refuses such a date. Its items are
//!   filtered, and later requests from earliestDatestamp on stay as they are.
//! - Whole days, if the source announces days and has no records for seconds. All records of these days are
//!   delivered.
//!
//! Invariant: a source that needs none of them receives no further request. A [`TrialGate`] bounds the trials
//! that prove nothing.

use crate::adapt::error_diagnosis::DiagnosedError;
use crate::adapt::request_adapter::{FormPart, RequestAdapter, RequestForm};
use crate::adapt::requester::Requester;
use crate::adapt::subrequest::{IsListed, SubResponse, SubrequestError, SubrequestOptions};
use crate::client::trial_gate::TrialGate;
use oaimend_base::clock;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{Argument, ErrorCode, Request, Verb};
use oaimend_repair::RepairId;
use oaimend_repository::{Failure, Reason};
use oaimend_store::SourceCapabilities;

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
const SECONDS_PROBED_EVERY_SECS: i64 = 24 * 3600;
const SECONDS: &str = "YYYY-MM-DDThh:mm:ssZ";

impl Requester<'_> {
    /// The error of a request that is finer than the granularity of its repository.
    pub(crate) async fn check_granularity(&mut self, request: &Request) -> Option<DiagnosedError> {
        if self.adapter.is_too_fine(request) && self.context.mapping.quirks.version.is_none() {
            // Without this probe, a harvester that always asks in seconds would never get another page.
            self.granularity().await;
        }
        self.adapter.is_too_fine(request).then(too_fine)
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
        let context = self.context;
        let learned = context.client.learn(&context.store, lesson).await;
        self.adapter = RequestAdapter::new(&context.mapping.quirks, &learned);
        // A trial for this request is no lesson.
        self.adapter.form = std::mem::take(&mut self.adapter.form).and(&self.trials);
        tracing::info!(
            repo = context.mapping.id,
            version = learned.version,
            refuses_seconds = learned.refuses_seconds,
            misses_seconds = learned.misses_seconds,
            refuses_dates_before = learned.refuses_dates_before,
            needs_prefix_with_token = learned.needs_prefix_with_token,
            needs_literal_identifiers = learned.identifiers.needs_literals,
            "capabilities of a source learned"
        );
    }

    /// Learns from a failure how the request has to be reworded, by a probe if necessary.
    pub(crate) async fn learn_from_failure(&mut self, request: &Request, failure: &Failure) {
        if is_status_400(failure) {
            if self.adapter.has_unknown_version() {
                self.granularity().await;
            }
            if !self.try_without_early_dates(request).await {
                self.try_days(request).await;
            }
        }
        if is_missed_item(failure) {
            self.try_form_after_error(request, Some(ErrorCode::IdDoesNotExist));
        }
    }

    /// Whether the source may have refused the seconds of a request.
    fn may_be_too_fine(&self, request: &Request) -> bool {
        request.has_seconds() && !self.adapter.sends_days() && !self.adapter.is_version_one()
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
        // Without proof, days are tried for this request of a harvester only.
        self.days_trial = Some(seconds == SecondsSupport::Refused);
        self.try_form(|form| form.in_days = true);
        true
    }

    /// Probes whether the source takes seconds. The probe asks for the midnights of the request's days, so
    /// nothing but the seconds can be wrong with it if the source answers these days.
    async fn probe_seconds(&mut self, request: &Request) -> SecondsSupport {
        let (client, now) = (&self.context.client, self.now());
        if client.probe_cache.takes_seconds(now) {
            return SecondsSupport::Taken;
        }
        let mut options = SubrequestOptions { items_max: 1, ..self.options() };
        options.adapter.form.in_days = false;
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

    /// Notes the response of a page: the source is asked in the same form from now on if it is shown to need it.
    pub(crate) async fn note_response(&mut self, request: &Request, error: Option<ErrorCode>) {
        self.note_days(error).await;
        self.note_forms(request, error).await;
    }

    /// If the source refused seconds before and answers days, it is asked for days from now on.
    async fn note_days(&mut self, error: Option<ErrorCode>) {
        let was_refused = self.days_trial == Some(true);
        if was_refused && error != Some(ErrorCode::BadArgument) {
            self.days_trial = None;
            let now = clock::unix_secs(self.now());
            let lesson = move |learned: &mut SourceCapabilities| {
                (learned.refuses_seconds, learned.seconds_checked_at) = (true, now);
            };
            self.learn(lesson).await;
        }
    }

    /// Probes from time to time whether a source still refuses seconds.
    pub(crate) async fn recheck_seconds(&mut self, request: &Request) {
        let (context, now) = (self.context, clock::unix_secs(self.now()));
        if context.mapping.quirks.in_days || !self.adapter.form.in_days || !request.has_seconds() {
            return;
        }
        if now
            < context.client.capabilities(&context.store).seconds_checked_at.plus(SECONDS_PROBED_EVERY_SECS)
        {
            return;
        }
        // Of several concurrent requests only one probes.
        self.learn(move |learned| learned.seconds_checked_at = now).await;
        if self.probe_seconds(request).await == SecondsSupport::Taken {
            self.learn(|learned| learned.refuses_seconds = false).await;
        }
    }

    /// Notes the granularity in Identify. A source that announces days is right to refuse seconds, and one that
    /// announces seconds does not miss them.
    pub(crate) async fn note_granularity(&mut self, granularity: Granularity) {
        let learned = self.context.client.capabilities(&self.context.store);
        if learned.refuses_seconds && granularity == Granularity::Day {
            self.learn(|learned| learned.refuses_seconds = false).await;
        }
        if learned.misses_seconds && granularity == Granularity::Second {
            self.learn(|learned| learned.misses_seconds = false).await;
        }
    }

    /// Whether an error response may mean another error, or none.
    pub(crate) fn is_doubtful(&self, request: &Request, error: Option<ErrorCode>) -> bool {
        self.is_unexplained() || self.may_need_other_form(request, error)
    }

    /// Whether the response is an empty list that may mean another error.
    fn is_unexplained(&self) -> bool {
        let made = |id: RepairId| self.summary.items.repairs().of(id) > 0;
        let is_empty = made(RepairId::EmptyList) || made(RepairId::V1Empty);
        is_empty && self.may_be_another_error()
    }

    /// Whether the source may need another form of a request that it answered with an error.
    fn may_need_other_form(&self, request: &Request, error: Option<ErrorCode>) -> bool {
        match error {
            Some(ErrorCode::BadArgument) if !request.is_resumption() => {
                self.may_be_too_fine(request) || self.may_be_too_early(request)
            }
            Some(ErrorCode::NoRecordsMatch) => self.may_miss_seconds(request),
            _ => self.form_to_try(request, error, IsListed::No).is_some(),
        }
    }

    /// Finds out what a doubtful error response means.
    pub(crate) async fn diagnose_error(&mut self, request: &Request, error: Option<ErrorCode>) -> Diagnosis {
        let is_reworded = match error {
            Some(ErrorCode::BadArgument) if !request.is_resumption() => {
                self.try_without_early_dates(request).await || self.try_days(request).await
            }
            Some(ErrorCode::NoRecordsMatch) if self.may_miss_seconds(request) => {
                if self.adapter.is_version_one() {
                    return Diagnosis::Error(too_fine());
                }
                self.learn_missed_seconds().await
            }
            _ => self.try_form_after_error(request, error),
        };
        if is_reworded {
            return Diagnosis::Reword;
        }
        let diagnosed = if self.is_unexplained() { self.diagnose().await } else { None };
        diagnosed.map_or(Diagnosis::AsReceived, Diagnosis::Error)
    }

    /// Sends the requests to the source in another form from now on.
    fn try_form(&mut self, change: impl Fn(&mut RequestForm)) {
        change(&mut self.adapter.form);
        change(&mut self.trials);
    }

    /// The gate of a trial. What harvesters miss proves nothing about identifiers that the source has listed.
    fn gate(&self, part: FormPart, is_listed: IsListed) -> &TrialGate {
        let gates = &self.context.client.form_gates;
        match (part, is_listed) {
            (FormPart::PrefixWithToken, _) => &gates.prefix_with_token,
            (FormPart::LiteralIdentifiers, IsListed::No) => &gates.literal_identifiers,
            (FormPart::LiteralIdentifiers, IsListed::Yes) => &gates.listed_identifiers,
        }
    }

    /// The form that the source may need, if it answered a request with this error.
    fn form_to_try(
        &self,
        request: &Request,
        error: Option<ErrorCode>,
        is_listed: IsListed,
    ) -> Option<FormPart> {
        let part = match error? {
            ErrorCode::BadArgument | ErrorCode::CannotDisseminateFormat if self.may_need_prefix(request) => {
                FormPart::PrefixWithToken
            }
            ErrorCode::IdDoesNotExist if self.may_need_literals(request) => FormPart::LiteralIdentifiers,
            _ => return None,
        };
        self.gate(part, is_listed).is_open(self.now()).then_some(part)
    }

    /// Tries another form after an error. Returns whether there is one to try.
    pub(crate) fn try_form_after_error(&mut self, request: &Request, error: Option<ErrorCode>) -> bool {
        let Some(part) = self.form_to_try(request, error, IsListed::No) else { return false };
        self.gate(part, IsListed::No).note(self.now(), false);
        self.try_form(|form| part.add_to(form));
        true
    }

    /// The form that the source may need, if a subrequest came out like this.
    pub(super) fn form_after_subrequest(
        &self,
        request: &Request,
        response: &Result<SubResponse, SubrequestError>,
        is_listed: IsListed,
    ) -> Option<FormPart> {
        let error = match response {
            Ok(response) => response.error_code().and(response.buffer.head.refusal()),
            Err(error) => is_missed_item(&error.failure).then_some(ErrorCode::IdDoesNotExist),
        };
        let part = self.form_to_try(request, error, is_listed)?;
        self.gate(part, is_listed).note(self.now(), false);
        Some(part)
    }

    fn may_need_prefix(&self, request: &Request) -> bool {
        request.verb().is_harvest()
            && request.is_resumption()
            && self.metadata_prefix.is_some()
            && !self.adapter.form.prefix_with_token
            && !self.is_static()
    }

    fn may_need_literals(&self, request: &Request) -> bool {
        let decoding = || self.context.client.capabilities(&self.context.store).identifiers;
        let identifier = request.argument(Argument::Identifier);
        !self.adapter.form.literal_identifiers
            && !self.is_static()
            && identifier.is_some_and(|identifier| decoding().is_doubtful(identifier))
    }

    /// Whether the source may have refused a date because it is before its earliestDatestamp.
    fn may_be_too_early(&self, request: &Request) -> bool {
        let has_dates =
            [Argument::From, Argument::Until].iter().any(|date| request.argument(*date).is_some());
        has_dates
            && self.trials.no_dates_before.is_none()
            && !self.is_static()
            && self.context.client.form_gates.no_early_dates.is_open(self.now())
    }

    /// Omits the dates before earliestDatestamp, if the request has one.
    async fn try_without_early_dates(&mut self, request: &Request) -> bool {
        if !self.may_be_too_early(request) {
            return false;
        }
        let earliest = self.identified().await.map(|identify| identify.earliest_datestamp);
        let earliest = earliest.filter(|earliest| !earliest.is_empty());
        let Some(earliest) = earliest.filter(|earliest| request.has_date_before(earliest)) else {
            return false;
        };
        self.context.client.form_gates.no_early_dates.note(self.now(), false);
        self.try_form(|form| form.no_dates_before = Some(earliest.clone()));
        true
    }

    /// Whether the source may have found no record only because it compares days with seconds.
    fn may_miss_seconds(&self, request: &Request) -> bool {
        request.has_seconds()
            && !self.adapter.sends_days()
            && !self.is_static()
            && self.known_granularity() != Some(Granularity::Second)
    }

    /// Sends days from now on if the source announces days. To such a source days are always right, so this
    /// needs no proof.
    async fn learn_missed_seconds(&mut self) -> bool {
        let granularity = match self.known_granularity() {
            None => self.announced().await.and_then(|dates| dates.granularity),
            known => known,
        };
        if granularity != Some(Granularity::Day) {
            return false;
        }
        self.learn(|learned| learned.misses_seconds = true).await;
        true
    }

    /// Learns from the response to a page whether the form that was tried is needed.
    async fn note_forms(&mut self, request: &Request, error: Option<ErrorCode>) {
        let gates = self.context.client.form_gates.clone();
        let now = self.now();
        if self.trials.no_dates_before.is_some() && error != Some(ErrorCode::BadArgument) {
            gates.no_early_dates.note(now, true);
            let earliest = self.trials.no_dates_before.take();
            self.learn(move |learned| learned.refuses_dates_before = earliest).await;
        }
        if self.trials.prefix_with_token && error.is_none() {
            self.trials.prefix_with_token = false;
            self.learn_form(FormPart::PrefixWithToken).await;
        }
        self.note_identifier(request, error, self.adapter.form.literal_identifiers).await;
    }

    /// Learns from the response to a subrequest that was sent with `part` in its form.
    pub(super) async fn note_subresponse(
        &mut self,
        request: &Request,
        part: Option<FormPart>,
        response: &Result<SubResponse, SubrequestError>,
    ) {
        let Ok(response) = response else { return };
        let error = response.error_code();
        if part == Some(FormPart::PrefixWithToken) && error.is_none() {
            self.learn_form(FormPart::PrefixWithToken).await;
        }
        let is_literal = self.adapter.form.literal_identifiers || part == Some(FormPart::LiteralIdentifiers);
        self.note_identifier(request, error, is_literal).await;
    }

    /// Learns how the source reads identifiers, if a response shows it.
    async fn note_identifier(&mut self, request: &Request, error: Option<ErrorCode>, is_literal: bool) {
        let Some(identifier) = request.argument(Argument::Identifier) else { return };
        let decoding = self.context.client.capabilities(&self.context.store).identifiers;
        if !decoding.is_doubtful(identifier) {
            return;
        }
        let is_known =
            matches!(error, None | Some(ErrorCode::CannotDisseminateFormat | ErrorCode::NoMetadataFormats));
        // Some sources list their formats for any identifier.
        let is_hit = request.verb() == Verb::GetRecord && error.is_none();
        if is_literal && is_known {
            self.trials.literal_identifiers = false;
            self.learn_form(FormPart::LiteralIdentifiers).await;
        } else if !is_literal && is_hit {
            let identifier = identifier.to_owned();
            self.learn(move |learned| learned.identifiers = learned.identifiers.after_hit(&identifier)).await;
        }
    }

    async fn learn_form(&mut self, part: FormPart) {
        self.learn(move |learned| match part {
            FormPart::PrefixWithToken => learned.needs_prefix_with_token = true,
            FormPart::LiteralIdentifiers => learned.identifiers.needs_literals = true,
        })
        .await;
    }

    /// Whether a file answers in place of a source.
    fn is_static(&self) -> bool {
        self.context.mapping.is_file()
    }
}

/// The error of a request that is finer than the granularity of its repository.
fn too_fine() -> DiagnosedError {
    let text = "the granularity of this repository is days: YYYY-MM-DD is right";
    (ErrorCode::BadArgument, text.to_owned())
}

fn is_status_400(failure: &Failure) -> bool {
    failure.reason == Reason::Status && failure.received_status == Some(400)
}

/// Whether the status says that an item does not exist.
fn is_missed_item(failure: &Failure) -> bool {
    failure.reason == Reason::Status && matches!(failure.received_status, Some(404 | 410))
}
