//! Finds out which OAI-PMH error a failed or empty response means: whether the format, the set or the item
//! of the request exists.
//!
//! Formats and sets that a source does not list may exist all the same. So no request is refused because of
//! them. But if such a request fails or has an empty response, the lists of the source tell which error that
//! is. A subrequest without a whole response proves nothing.
//!
//! It also asks for Identify where a request needs what that announces. The response is kept for ten minutes, and
//! concurrent requests share one probe. A source without a response is not asked again for ten minutes for the
//! sake of records without a datestamp or of empty lists.

use crate::adapt::repository_facts::announced_dates;
use crate::adapt::requester::Requester;
use crate::adapt::subrequest::{SubResponse, SubrequestError, SubrequestOptions};
use crate::client::probe_cache::fresh;
use crate::xml::text::unescape_text;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{Argument, ErrorCode, Request, Verb};
use oaimend_repair::{NotOai, RepairId, RepositoryFacts};
use oaimend_repository::{Failure, IdentifyFields, Reason};
use oaimend_store::{ProfileDates, ProfileUpdate};
use std::time::{Duration, SystemTime};

/// An OAI-PMH error, and the reason why it is this one.
pub(crate) type DiagnosedError = (ErrorCode, String);

/// Longest wait for the response to a probe.
const TIME_MAX: Duration = Duration::from_secs(5);
/// How long an Identify response proves that a source answers. Short: a source may vanish as a whole.
const IDENTIFIED_KEPT: Duration = Duration::from_secs(60);
/// The format that every item has (OAI-PMH 2.0, section 2.5).
pub(crate) const COMMON_PREFIX: &str = "oai_dc";

impl Requester<'_> {
    /// The OAI-PMH error that a failure means, if the source proves it.
    pub(crate) async fn diagnose_failure(&mut self, failure: &Failure) -> Option<DiagnosedError> {
        let may_be_one = match failure.reason {
            Reason::Status => matches!(failure.received_status, Some(400 | 404 | 410 | 422 | 500 | 501)),
            Reason::NotOai(why) => why != NotOai::BotWall,
            _ => false,
        };
        if !may_be_one {
            return None;
        }
        match self.diagnose().await {
            None if self.adapter.is_version_one() && failure.received_status == Some(400) => {
                Some((self.error_of_v1_refusal(), failure.public_details.clone()))
            }
            None if self.has_missed_item(failure) && self.identifies_itself().await => {
                Some((ErrorCode::IdDoesNotExist, "the source has no such item".to_owned()))
            }
            proof => proof,
        }
    }

    /// The error that a status of 400 means: 1.x refuses requests so.
    fn error_of_v1_refusal(&self) -> ErrorCode {
        let request = &self.context.request;
        if request.is_resumption() {
            return ErrorCode::BadResumptionToken;
        }
        // Without arguments it can only be the verb that the source refuses.
        let has_arguments = Argument::ALL.iter().any(|argument| request.argument(*argument).is_some());
        if has_arguments { ErrorCode::BadArgument } else { ErrorCode::BadVerb }
    }

    /// Whether the source says by its status that the one item of the request does not exist.
    fn has_missed_item(&self, failure: &Failure) -> bool {
        failure.reason == Reason::Status
            && matches!(failure.received_status, Some(404 | 410))
            && self.context.request.argument(Argument::Identifier).is_some()
    }

    /// Whether the source answers Identify now, so that a missing page is not a missing repository.
    async fn identifies_itself(&mut self) -> bool {
        let now = self.now();
        let identified_at = self.context.client.probe_cache.read().identified_at;
        let is_recent = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age < IDENTIFIED_KEPT);
        if identified_at.is_some_and(is_recent) {
            return true;
        }
        let Some(response) = self.probe(&Request::identify()).await else { return false };
        let identifies_itself = response.buffer.head.identify().is_some() && response.error_code().is_none();
        if identifies_itself {
            self.context.client.probe_cache.note(|said| said.identified_at = Some(now));
        }
        identifies_itself
    }

    /// Whether an empty response may mean another error than that no record matches.
    pub(crate) fn may_be_another_error(&self) -> bool {
        let request = &self.context.request;
        !request.is_resumption()
            && (request.argument(Argument::Set).is_some()
                || request.verb() == Verb::ListMetadataFormats
                || request.argument(Argument::MetadataPrefix).is_some_and(|prefix| prefix != COMMON_PREFIX))
    }

    /// The error that the request causes, by what the source says about itself.
    pub(crate) async fn diagnose(&mut self) -> Option<DiagnosedError> {
        let request = &self.context.request;
        if request.is_resumption() {
            return None;
        }
        let identifier = request.argument(Argument::Identifier).map(str::to_owned);
        let prefix = request.argument(Argument::MetadataPrefix).map(str::to_owned);
        match (request.verb(), identifier) {
            (Verb::ListRecords | Verb::ListIdentifiers, _) => match self.no_such_format(prefix?).await {
                None if request.argument(Argument::Set).is_some() && self.has_no_sets().await => {
                    Some((ErrorCode::NoSetHierarchy, "the source says that it has no sets".to_owned()))
                }
                proof => proof,
            },
            (Verb::GetRecord, Some(identifier)) => {
                let response = self.probe(&Request::list_metadata_formats(Some(&identifier))).await;
                if let Some(proof) = response.as_ref().and_then(no_such_item) {
                    return Some(proof);
                }
                self.no_such_format(prefix?).await
            }
            (Verb::ListMetadataFormats, Some(identifier)) => {
                let response = self.probe(&Request::get_record(&identifier, COMMON_PREFIX)).await;
                response.as_ref().and_then(no_such_item)
            }
            _ => None,
        }
    }

    async fn no_such_format(&mut self, prefix: String) -> Option<DiagnosedError> {
        if prefix == COMMON_PREFIX {
            return None;
        }
        let formats = self.formats().await?;
        let text = || format!("the source has no format \"{prefix}\"; it has {}", formats.join(", "));
        (!formats.contains(&prefix)).then(|| (ErrorCode::CannotDisseminateFormat, text()))
    }

    /// The formats that the source lists, if its list is whole.
    async fn formats(&mut self) -> Option<Vec<String>> {
        let (now, client) = (self.now(), &self.context.client);
        if let Some(formats) = fresh(client.probe_cache.read().formats, now) {
            return formats;
        }
        let response = self.probe(&Request::list_metadata_formats(None)).await?;
        let is_whole = response.quarantined.is_empty() && !response.items.is_empty();
        let names = response.items.iter().map(|item| unescape_text(&item.identifier));
        let formats = is_whole.then(|| names.collect::<Vec<_>>());
        self.context.client.probe_cache.note(|said| said.formats = Some((now, formats.clone())));
        formats
    }

    async fn has_no_sets(&mut self) -> bool {
        let (now, client) = (self.now(), &self.context.client);
        if let Some(has_no_sets) = fresh(client.probe_cache.read().has_no_sets, now) {
            return has_no_sets;
        }
        let Some(response) = self.probe(&Request::list_sets()).await else { return false };
        let has_no_sets = response.error_code() == Some(ErrorCode::NoSetHierarchy);
        self.context.client.probe_cache.note(|said| said.has_no_sets = Some((now, has_no_sets)));
        has_no_sets
    }

    /// The granularity in Identify. `None`: there is no response.
    pub(crate) async fn granularity(&mut self) -> Option<String> {
        let identify = self.identified().await?;
        Some(identify.granularity).filter(|granularity| !granularity.is_empty())
    }

    /// What the source says in Identify, and notes the version of the response. `None`: there is no response.
    pub(crate) async fn identified(&mut self) -> Option<IdentifyFields> {
        let client = self.context.client.clone();
        let before = client.probe_cache.read();
        if let Some(identify) = fresh(before.identify, self.now()) {
            return Some(identify);
        }
        let _turn = self.deadline.within(TIME_MAX, client.probe_cache.identify_turn.lock()).await.ok()?;
        let probes = client.probe_cache.read();
        if let Some(identify) = fresh(probes.identify, self.now()) {
            return Some(identify);
        }
        if probes.identify_failed != before.identify_failed {
            // Another request asked meanwhile.
            return None;
        }
        // Earlier observations must not change the values of this response.
        let options = SubrequestOptions { facts: RepositoryFacts::default(), ..self.options() };
        let limit = TIME_MAX.min(self.deadline.left());
        let response = self.send_within(limit, &Request::identify(), options).await;
        let now = self.now();
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                if !error.is_unrelated_to_source() {
                    client.probe_cache.note(|probes| {
                        let failures = probes.identify_failed.map_or(0, |(_, failures)| failures);
                        probes.identify_failed = Some((now, failures + 1));
                    });
                }
                return None;
            }
        };
        if let Some(version) = response.version {
            self.learn_version(version).await;
        }
        let identify = response.buffer.head.identify().cloned().unwrap_or_default();
        client.probe_cache.note(|probes| probes.identify = Some((now, identify.clone())));
        Some(identify)
    }

    /// The datestamps that the source announces, which are noted in its profile. `None`: there is no response, or
    /// was none lately.
    pub(crate) async fn announced(&mut self) -> Option<ProfileDates> {
        let context = self.context;
        if fresh(context.client.probe_cache.read().identify_failed, self.now()).is_some() {
            return None;
        }
        let dates = announced_dates(&self.identified().await?);
        let update = ProfileUpdate { dates: dates.clone(), ..ProfileUpdate::default() };
        context.store.profiles.update(&context.mapping.source_key(), update).await;
        Some(dates)
    }

    /// The granularity of the source, if it is known without a request.
    pub(crate) fn known_granularity(&self) -> Option<Granularity> {
        let context = self.context;
        // A granularity in the mapping is for harvesters: the source may take another one.
        if context.mapping.quirks.granularity.is_some() {
            return None;
        }
        context.store.profiles.dates(&context.mapping.source_key()).granularity
    }

    /// Learns the lowest datestamp that a record can have, for records without one. Returns whether it was
    /// unknown and is known now.
    pub(crate) async fn learn_lowest_datestamp(&mut self) -> bool {
        let is_off = self.context.mapping.repairs.off.contains(RepairId::DatestampLowerBound);
        if is_off || self.facts.lowest_datestamp.is_some() {
            return false;
        }
        let Some(ProfileDates { earliest: Some(earliest), .. }) = self.announced().await else {
            return false;
        };
        let oldest = self.facts.oldest_seen.clone().filter(|seen| *seen < earliest);
        self.facts.lowest_datestamp = Some(oldest.unwrap_or(earliest));
        true
    }

    /// Probes the source within the time that is left. A missing response is never remembered: the next
    /// request may have more success.
    async fn probe(&mut self, request: &Request) -> Option<SubResponse> {
        self.try_probe(request, self.options()).await.ok()
    }

    /// The same, with the reason why there is no response.
    pub(crate) async fn try_probe(
        &mut self,
        request: &Request,
        options: SubrequestOptions,
    ) -> Result<SubResponse, SubrequestError> {
        self.ask_within(TIME_MAX.min(self.deadline.left()), request, options).await
    }
}

fn no_such_item(response: &SubResponse) -> Option<DiagnosedError> {
    let is_missing = response.error_code() == Some(ErrorCode::IdDoesNotExist);
    is_missing.then(|| (ErrorCode::IdDoesNotExist, "the source has no such item".to_owned()))
}
