//! Sends the requests to the source that one request of a harvester needs, and holds the state that all of them share.
//!
//! The page itself, our own subrequests and the probes of a source use the same time, method and
//! request adapter, and are counted in the same summary.

use crate::adapt::request_adapter::{FormPart, RequestAdapter, RequestForm};
use crate::adapt::subrequest::{IsListed, SubResponse, SubrequestError, SubrequestOptions, send_subrequest};
use crate::client::request_context::RequestContext;
use crate::http::deadline::Deadline;
use crate::http::retry::next_wait;
use crate::settings::PageFallback;
use http::Method;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{Argument, Request, Verb};
use oaimend_repair::RepositoryFacts;
use oaimend_repository::{Failure, ResponseSummary};
use oaimend_store::QuarantinedRecord;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The state that all requests to the source for one request of a harvester share.
pub(crate) struct Requester<'a> {
    pub(crate) context: &'a RequestContext,
    pub(crate) summary: ResponseSummary,
    pub(crate) deadline: Deadline,
    /// How requests are adapted to the source.
    pub(crate) adapter: RequestAdapter,
    /// The request is sent in days for this request of a harvester only. `true`: the source has refused its seconds.
    pub(crate) days_trial: Option<bool>,
    /// The parts of the form of `adapter` that are tried, and not learned.
    pub(crate) trials: RequestForm,
    pub(crate) method: Method,
    has_changed_method: bool,
    /// The known facts of the repository, for all attempts.
    pub(crate) facts: RepositoryFacts,
    /// Quarantined items that were not reported yet, if they are reported.
    pub(crate) quarantined: Vec<QuarantinedRecord>,
    /// The format of the records, if it is known.
    pub(crate) metadata_prefix: Option<String>,
    /// The granularity in Identify, once it was asked for because of a repaired datestamp.
    pub(crate) identified_granularity: Option<Option<Granularity>>,
}

impl<'a> Requester<'a> {
    pub(crate) fn new(context: &'a RequestContext) -> Self {
        let adapter =
            RequestAdapter::new(&context.mapping.quirks, &context.client.capabilities(&context.store));
        Self {
            context,
            summary: ResponseSummary::default(),
            deadline: Deadline::new(Arc::clone(&context.clock), context.mapping.limits.first_record_timeout),
            adapter,
            days_trial: None,
            trials: RequestForm::default(),
            method: context.client.methods.first(),
            has_changed_method: false,
            facts: RepositoryFacts::default(),
            quarantined: Vec::new(),
            metadata_prefix: context.request.argument(Argument::MetadataPrefix).map(str::to_owned),
            identified_granularity: None,
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.deadline.now()
    }

    /// The name of the source in failures.
    pub(crate) fn name(&self) -> Arc<str> {
        self.context.client.name()
    }

    /// The other HTTP method, if the failure says that the source refuses this one. It is tried once.
    pub(crate) fn other_method(&self, failure: &Failure) -> Option<Method> {
        if self.has_changed_method {
            return None;
        }
        self.context.client.methods.alternative_to(&self.method, failure)
    }

    /// Changes to the other HTTP method, if the source refuses this one.
    pub(crate) fn change_method(&mut self, failure: &Failure) -> bool {
        let Some(other) = self.other_method(failure) else { return false };
        (self.method, self.has_changed_method) = (other, true);
        true
    }

    /// Whether single records may be fetched in place of a page that fails.
    pub(crate) fn may_fetch_per_record(&self) -> bool {
        may_fetch_per_record(self.context)
    }

    /// How subrequests are sent.
    pub(crate) fn options(&self) -> SubrequestOptions {
        SubrequestOptions {
            method: self.method.clone(),
            adapter: self.adapter.clone(),
            facts: self.facts.clone(),
            metadata_prefix: self.metadata_prefix.clone(),
            items_max: usize::MAX,
            is_beside_page: false,
            first: None,
        }
    }

    /// Sends a subrequest, and retries it until there is a response or `attempts_max` is reached. An item in it is
    /// one that the source has listed.
    pub(crate) async fn ask(
        &mut self,
        request: &Request,
        items_max: usize,
        attempts_max: u32,
    ) -> Result<SubResponse, SubrequestError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut response = self.send(request, items_max, None).await;
            let part = self.form_after_subrequest(request, &response, IsListed::Yes);
            if part.is_some() {
                response = self.send(request, items_max, part).await;
            }
            self.note_subresponse(request, part, &response).await;
            if response.as_ref().is_ok_and(|response| response.buffer.defects.lacks_datestamp())
                && self.learn_lowest_datestamp().await
            {
                response = self.send(request, items_max, part).await;
            }
            let Err(error) = response else { return response };
            let (left, chance) = (self.deadline.left(), self.deadline.chance());
            match next_wait(&error.failure, attempts, left, chance) {
                Some(wait) if attempts < attempts_max => self.deadline.pause(wait).await,
                _ => return Err(error),
            }
        }
    }

    /// Sends a subrequest once, with `part` in its form.
    async fn send(
        &mut self,
        request: &Request,
        items_max: usize,
        part: Option<FormPart>,
    ) -> Result<SubResponse, SubrequestError> {
        self.summary.add_attempt();
        let options = SubrequestOptions { items_max, ..self.options() }.with_form(part);
        // Boxed: few pages need a subrequest, and a session reserves room for all that it may await.
        Box::pin(send_subrequest(self.context, request, options, &mut self.deadline)).await
    }

    /// Sends a subrequest once, or twice if the source may need another form of it, each within a time of its own,
    /// which is spent of the time of the request too.
    pub(crate) async fn ask_within(
        &mut self,
        limit: Duration,
        request: &Request,
        options: SubrequestOptions,
    ) -> Result<SubResponse, SubrequestError> {
        let mut response = self.send_within(limit, request, options.clone()).await;
        // Beside a page, only its own records are requested.
        let is_listed = if options.is_beside_page { IsListed::Yes } else { IsListed::No };
        let part = self.form_after_subrequest(request, &response, is_listed);
        if part.is_some() {
            response = self.send_within(limit, request, options.with_form(part)).await;
        }
        self.note_subresponse(request, part, &response).await;
        response
    }

    /// Sends a subrequest once, within a time of its own, which is spent of the time of the request too.
    pub(crate) async fn send_within(
        &mut self,
        limit: Duration,
        request: &Request,
        options: SubrequestOptions,
    ) -> Result<SubResponse, SubrequestError> {
        self.summary.add_attempt();
        let mut deadline = Deadline::new(Arc::clone(&self.context.clock), limit);
        let response = Box::pin(send_subrequest(self.context, request, options, &mut deadline)).await;
        self.deadline.spend(&deadline);
        response
    }
}

/// Whether single records may be fetched in place of a page that fails.
pub(crate) fn may_fetch_per_record(context: &RequestContext) -> bool {
    context.mapping.quirks.page_fallback == PageFallback::GetRecord
        && context.request.verb() == Verb::ListRecords
}
