//! What a source says of itself, asked for only when it gave no answer or an empty one: whether
//! the format, the set or the item exists that was asked for.
//!
//! Formats and sets that a source does not list may exist all the same, so a request is never
//! refused for what is known of them. But where a request with such a one fails, or has nothing for
//! an answer, what the source lists says which error that is. Nothing is concluded from a question
//! that was not answered whole.

use crate::oai::{Argument, ErrorCode, Request, Verb};
use crate::repair::NotOai;
use crate::upstream::adapt::subrequest::{SubResponse, SubrequestError, SubrequestOptions, inquire};
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::http::deadline::Deadline;
use crate::upstream::session::list_session::ListSession;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// What a source has said of itself, for a while.
#[derive(Debug, Default)]
pub(crate) struct ProbeCache(Mutex<Probes>);

#[derive(Clone, Debug, Default)]
struct Probes {
    /// When it was last seen to take seconds, by a question of ours.
    took_seconds: Option<SystemTime>,
    formats: Option<(SystemTime, Option<Vec<String>>)>,
    has_no_sets: Option<(SystemTime, bool)>,
    granularity: Option<(SystemTime, Option<String>)>,
}

/// An error of OAI-PMH, and why it is that one.
pub(crate) type DiagnosedError = (ErrorCode, String);

/// For how long what a source said of itself is not asked for again.
const KEPT: Duration = Duration::from_secs(600);
/// Longest wait for such an answer.
const TIME_MAX: Duration = Duration::from_secs(5);
/// The format that every item has (OAI-PMH 2.0, section 2.5).
pub(crate) const EVERYWHERE: &str = "oai_dc";

impl ProbeCache {
    fn read(&self) -> Probes {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, note: impl FnOnce(&mut Probes)) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether the source has shown lately that it takes seconds.
    pub(crate) fn takes_seconds(&self, now: SystemTime) -> bool {
        fresh(self.read().took_seconds.map(|at| (at, ())), now).is_some()
    }

    pub(crate) fn note_seconds(&self, now: SystemTime) {
        self.note(|said| said.took_seconds = Some(now));
    }
}

impl ListSession<'_> {
    /// The error that a failure is, if the source says so of itself.
    pub(crate) async fn proof_behind(&mut self, failure: &Failure) -> Option<DiagnosedError> {
        let may_be_one = match failure.reason {
            Reason::Status => matches!(failure.received_status, Some(400 | 404 | 410 | 422 | 500 | 501)),
            Reason::NotOai(why) => why != NotOai::BotWall,
            _ => false,
        };
        if self.outlet.has_begun() || !may_be_one {
            return None;
        }
        match self.proof().await {
            None if self.dialect.is_one() && failure.received_status == Some(400) => {
                Some((self.refused_by_1_x(), failure.details.clone()))
            }
            proof => proof,
        }
    }

    /// What a status of 400 says, which is how 1.x refuses a request.
    fn refused_by_1_x(&self) -> ErrorCode {
        let request = &self.job.request;
        if request.is_resumption() {
            return ErrorCode::BadResumptionToken;
        }
        // Where there is nothing else, it is the verb that the source does not know.
        let has_arguments = Argument::ALL.iter().any(|argument| request.argument(*argument).is_some());
        if has_arguments { ErrorCode::BadArgument } else { ErrorCode::BadVerb }
    }

    /// Whether an empty answer may have another reason than that nothing fits.
    pub(crate) fn may_have_another_reason(&self) -> bool {
        let request = &self.job.request;
        !request.is_resumption()
            && (request.argument(Argument::Set).is_some()
                || request.verb() == Verb::ListMetadataFormats
                || request.argument(Argument::MetadataPrefix).is_some_and(|prefix| prefix != EVERYWHERE))
    }

    /// What the source says of itself that makes the request one that it has no answer to.
    pub(crate) async fn proof(&mut self) -> Option<DiagnosedError> {
        let request = &self.job.request;
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
                let told = self.told(&Request::formats(Some(&identifier))).await;
                if let Some(proof) = told.as_ref().and_then(no_such_item) {
                    return Some(proof);
                }
                self.no_such_format(prefix?).await
            }
            (Verb::ListMetadataFormats, Some(identifier)) => {
                let told = self.told(&Request::get_record(&identifier, EVERYWHERE)).await;
                told.as_ref().and_then(no_such_item)
            }
            _ => None,
        }
    }

    async fn no_such_format(&mut self, prefix: String) -> Option<DiagnosedError> {
        if prefix == EVERYWHERE {
            return None;
        }
        let formats = self.formats().await?;
        let text = || format!("the source has no format \"{prefix}\"; it has {}", formats.join(", "));
        (!formats.contains(&prefix)).then(|| (ErrorCode::CannotDisseminateFormat, text()))
    }

    /// The formats that the source lists, if it lists them whole.
    async fn formats(&mut self) -> Option<Vec<String>> {
        let (now, client) = (self.budget.now(), &self.job.client);
        if let Some(formats) = fresh(client.sayings.read().formats, now) {
            return formats;
        }
        let told = self.told(&Request::formats(None)).await?;
        let is_whole = told.aside.is_empty() && !told.items.is_empty();
        let names =
            told.items.iter().map(|item| crate::upstream::session::list_session::resolved(&item.identifier));
        let formats = is_whole.then(|| names.collect::<Vec<_>>());
        self.job.client.sayings.note(|said| said.formats = Some((now, formats.clone())));
        formats
    }

    async fn has_no_sets(&mut self) -> bool {
        let (now, client) = (self.budget.now(), &self.job.client);
        if let Some(has_no_sets) = fresh(client.sayings.read().has_no_sets, now) {
            return has_no_sets;
        }
        let Some(told) = self.told(&Request::sets()).await else { return false };
        let has_no_sets = told.error().as_deref() == Some("noSetHierarchy");
        self.job.client.sayings.note(|said| said.has_no_sets = Some((now, has_no_sets)));
        has_no_sets
    }

    /// The granularity that Identify says, and the version that its answer is of. `None`: it was not had.
    pub(crate) async fn granularity(&mut self) -> Option<String> {
        let (now, client) = (self.budget.now(), &self.job.client);
        if let Some(granularity) = fresh(client.sayings.read().granularity, now) {
            return granularity;
        }
        let told = self.told(&Request::identify()).await?;
        if let Some(version) = told.version {
            self.believe_version(version).await;
        }
        let granularity = text_of(&told.text(), "granularity");
        self.job.client.sayings.note(|said| said.granularity = Some((now, granularity.clone())));
        granularity
    }

    /// The answer to a question of our own, within what is left of the time. `None`, there was none, is
    /// never remembered: the next request may have better luck.
    async fn told(&mut self, request: &Request) -> Option<SubResponse> {
        self.answered(request, self.manner(), usize::MAX).await.ok()
    }

    /// The same, and why there was none; read no further than that many items.
    pub(crate) async fn answered(
        &mut self,
        request: &Request,
        manner: SubrequestOptions,
        enough: usize,
    ) -> Result<SubResponse, SubrequestError> {
        self.account.attempts += 1;
        let mut budget = Deadline::new(Arc::clone(&self.job.clock), TIME_MAX.min(self.budget.left()));
        let told = Box::pin(inquire(self.job, request, manner, enough, false, &mut budget)).await;
        self.budget.spend(&budget);
        told
    }
}

fn no_such_item(told: &SubResponse) -> Option<DiagnosedError> {
    let says_so = told.error().as_deref() == Some("idDoesNotExist");
    says_so.then(|| (ErrorCode::IdDoesNotExist, "the source has no such item".to_owned()))
}

fn fresh<T>(said: Option<(SystemTime, T)>, now: SystemTime) -> Option<T> {
    let (at, said) = said?;
    now.duration_since(at).is_ok_and(|age| age < KEPT).then_some(said)
}

/// The text of the first element of that name.
fn text_of(document: &str, name: &str) -> Option<String> {
    let mut reader = Reader::from_str(document);
    let mut is_inside = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => is_inside = tag.local_name().as_ref() == name,
            Event::Text(text) if is_inside => return Some(text.trim().to_owned()),
            Event::Eof => return None,
            _ => {}
        }
    }
}
