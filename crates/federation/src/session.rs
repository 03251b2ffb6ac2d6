//! The answer to one request: what its verbs share.

use crate::ages::ShownStates;
use crate::header_editor::{PageEdits, PageItems};
use crate::list_state::FederatedList;
use crate::member_page::{MemberPage, Opened, Part};
use crate::settings::{FederationServices, FederationSettings, Member};
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::{ErrorCode, Request, UnixSecs, error_response, response_head};
use oaimend_repository::{
    AnsweredBy, Failure, HarvesterTraits, Outlook, Reason, Repository, RepositoryRequest, ResponseSummary,
    ResponseWriter, Stop,
};
use std::sync::Arc;

/// Maximum number of members that are queried at the same time for one request.
pub(crate) const PARALLEL_MAX: usize = 8;

/// The end of a response of our own.
const END: &str = "</OAI-PMH>\n";

/// The result of a response.
pub(crate) type Answered = Result<Box<ResponseSummary>, Stop>;

/// A federation, with its members in the order of the repository index.
pub(crate) struct Federation {
    pub(crate) settings: FederationSettings,
    pub(crate) services: FederationServices,
}

/// One request to a federation.
pub(crate) struct Session {
    pub(crate) federation: Arc<Federation>,
    pub(crate) request: RepositoryRequest,
    pub(crate) writer: ResponseWriter,
    /// The states that members have shown since the last page.
    pub(crate) shown: ShownStates,
    pub(crate) unanswered: UnansweredList,
}

/// The place of a list whose request has found no record yet. It is kept for the repetition of the request, because the
/// request may take too long, or its harvester may leave. So each repetition makes progress.
pub(crate) struct UnansweredList {
    federation: Arc<Federation>,
    /// The name of the federation and the request; `None` after the response has begun. Later places are not those of this
    /// request: its repetition would not get its records.
    key: Option<String>,
}

impl UnansweredList {
    pub(crate) fn new(federation: &Arc<Federation>, request: &Request) -> Self {
        let key = format!("{} {}", federation.settings.name, request.query());
        Self { federation: Arc::clone(federation), key: Some(key) }
    }

    /// The token of the place that an earlier request has come to.
    pub(crate) fn kept(&self) -> Option<String> {
        self.federation.services.state.begun(self.key.as_ref()?, self.federation.now_secs())
    }

    /// The list has moved on.
    pub(crate) fn moved(&self, list: &FederatedList) {
        let services = &self.federation.services;
        if let (Some(key), Some(token)) = (&self.key, list.to_token(&services.token_key)) {
            services.state.keep_begun(key.clone(), services.clock.now_secs(), token);
        }
    }

    /// The harvester has received records, or the end.
    pub(crate) fn answered(&mut self) {
        if let Some(key) = self.key.take() {
            self.federation.services.state.forget_begun(&key);
        }
    }
}

impl Federation {
    pub(crate) fn members(&self) -> &[Member] {
        &self.settings.members
    }

    pub(crate) fn member(&self, id: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.id == id)
    }

    pub(crate) fn now_secs(&self) -> UnixSecs {
        self.services.clock.now_secs()
    }

    /// The granularity of a member. Days, if nothing is known: every repository accepts them.
    pub(crate) fn granularity_of(&self, member: &Member) -> Granularity {
        let facts = self.services.state.facts(&member.id);
        let granularity = facts.map(|facts| facts.granularity);
        granularity.or_else(|| self.services.repositories.granularity(&member.id)).unwrap_or(Granularity::Day)
    }

    /// Seconds only if all members have them.
    pub(crate) fn granularity(&self) -> Granularity {
        let has_days = |member: &Member| self.granularity_of(member) == Granularity::Day;
        if self.members().iter().any(has_days) { Granularity::Day } else { Granularity::Second }
    }

    /// The repository of a member.
    ///
    /// # Errors
    ///
    /// It cannot be queried now.
    pub(crate) async fn open(&self, id: &str) -> Result<Box<dyn Repository>, Failure> {
        let opened = self.services.repositories.open(id).await;
        opened.map_err(|failure| of_member(id, failure))
    }

    /// Asks a member, up to its first item.
    pub(crate) async fn ask(
        &self,
        id: &str,
        like: &RepositoryRequest,
        request: Request,
        edits: PageEdits,
    ) -> Opened {
        let repository = match self.open(id).await {
            Ok(repository) => repository,
            Err(failure) => return Opened::Failed(failure),
        };
        match MemberPage::open(&*repository, request_to_member(like, request), edits).await {
            Opened::Failed(failure) => Opened::Failed(of_member(id, failure)),
            opened => opened,
        }
    }
}

/// A request to a member in place of one to the federation. Its response repeats the latter.
pub(crate) fn request_to_member(like: &RepositoryRequest, request: Request) -> RepositoryRequest {
    // The harvester has said of the federation what it says of itself.
    let harvester = HarvesterTraits::default();
    RepositoryRequest { request, harvester, in_one_piece: false, reports_records: false, ..like.clone() }
}

/// The failure of a member as that of its federation. Harvesters retry it: the federation itself is there.
pub(crate) fn of_member(id: &str, mut failure: Failure) -> Failure {
    let named = |details: &str| format!("the repository {id} of this federation: {details}");
    failure.details = named(&failure.details);
    failure.public_details = named(&failure.public_details);
    failure.outlook = Outlook::MayPass;
    failure
}

/// The failure of members that did not answer in time.
pub(crate) fn out_of_time() -> Failure {
    let details = "the repositories of this federation have not answered in time; the next request goes on";
    let mut failure = Failure::new(Reason::ResponseTimeout, details);
    failure.retry_after_secs = 1;
    failure
}

impl Session {
    /// The changes of pages at this time, for a member; `None`: only the responseDate changes.
    pub(crate) fn edits(&self, member: Option<&Member>, date_secs: UnixSecs) -> PageEdits {
        PageEdits {
            set: member.map(Member::set),
            granularity: Granularity::Second,
            response_date: from_secs(date_secs, Granularity::Second),
            before_items: String::new(),
            items: PageItems::All,
        }
    }

    /// Sends the items of a page.
    pub(crate) async fn send_items(
        &mut self,
        id: &str,
        page: &mut MemberPage,
    ) -> Result<Box<ResponseSummary>, Stop> {
        let answered_by = page.answered_by.clone();
        loop {
            match page.next().await.map_err(|failure| of_member(id, failure))? {
                Part::Output(output) => {
                    let sent = self.writer.send(output.into(), answered_by.clone());
                    page.beside(sent).await?;
                }
                Part::End(summary) => return Ok(summary),
            }
        }
    }

    /// Sends the end of a response.
    pub(crate) async fn send_end(&mut self, end: Vec<u8>, answered_by: AnsweredBy) -> Result<(), Stop> {
        self.writer.send(end.into(), answered_by).await?;
        self.writer.finish().await
    }

    /// Sends a response of our own: the content of the verb element.
    pub(crate) async fn send_own(&mut self, date_secs: UnixSecs, content: &str, items: u64) -> Answered {
        let date = from_secs(date_secs, Granularity::Second);
        let verb = self.request.request.verb().name();
        let mut body = response_head(&self.request.echo, &date, true);
        body.push_str(&format!("  <{verb}>\n{content}  </{verb}>\n{END}"));
        self.send_end(body.into_bytes(), AnsweredBy::Source(200)).await?;
        let mut summary = Box::new(ResponseSummary::default());
        summary.items.set_sent(items);
        summary.page.response_date = Some(date);
        Ok(summary)
    }

    /// Sends an error.
    pub(crate) async fn send_error(&mut self, date_secs: UnixSecs, code: ErrorCode, text: &str) -> Answered {
        let date = from_secs(date_secs, Granularity::Second);
        let body = error_response(&self.request.echo, &date, code, text);
        self.send_end(body.into_bytes(), AnsweredBy::Source(200)).await?;
        let mut summary = Box::new(ResponseSummary::default());
        summary.page.error = Some(code);
        summary.page.response_date = Some(date);
        Ok(summary)
    }
}

/// A resumptionToken element. `next` is the token, and the expirationDate of the source as it is written there. Without one
/// the element ends a list; it is left out of a list of one page.
pub(crate) fn token_element(
    prefix: &str,
    next: Option<(&str, Option<&str>)>,
    cursor: u64,
    is_first: bool,
) -> String {
    match next {
        Some((token, expires)) => {
            let expires = expires.map(|date| format!(" expirationDate=\"{date}\"")).unwrap_or_default();
            format!(
                "<{prefix}resumptionToken{expires} cursor=\"{cursor}\">{token}</{prefix}resumptionToken>\n"
            )
        }
        None if is_first => String::new(),
        None => format!("<{prefix}resumptionToken cursor=\"{cursor}\"/>\n"),
    }
}
