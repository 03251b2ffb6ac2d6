//! The conversation for one request of a harvester: an ordered stream of events.
//!
//! One request becomes as many exchanges as it takes: a source that fails is
//! waited for and asked again, a page that breaks off is asked for again and
//! goes on behind the last record that was delivered. Nobody outside sees how
//! often the source was asked.
//!
//! Invariants: the head is sent with the first item, error or whole answer, so
//! that every failure before it is clean; a record that was put aside is on
//! disk before any byte behind it is sent; after [`Event::Failed`] nothing
//! follows, and without [`Event::End`] the page is not whole.

use crate::clock::{self, Clock};
use crate::config::Mapping;
use crate::oai::Request;
use crate::repair::{NotOai, RepositoryFacts, RequestEcho};
use crate::store::Store;
use crate::upstream::account::Account;
use crate::upstream::adapt::capability_detection::Diagnosis;
use crate::upstream::adapt::item_filter::ItemFilter;
use crate::upstream::adapt::request_adapter::{RequestAdapter, UpstreamQuery};
use crate::upstream::byte_rope::ByteRope;
use crate::upstream::client::source_client::SourceClient;
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::http::body::{Body, BodyError};
use crate::upstream::http::circuit_breaker::Admission;
use crate::upstream::http::deadline::Deadline;
use crate::upstream::http::retry::next_wait;
use crate::upstream::page::attempt::{Page, ResponseStart, Verdict};
use crate::upstream::page::buffer::{ItemHash, PageBuffer};
use crate::upstream::page::resume::{Delivered, Emitted, Resumer, Unproven};
use crate::upstream::per_record::headers::FetchedHeaders;
use crate::upstream::per_record::refetch_datestamp::HeaderDatestamps;
use crate::upstream::per_record::torn_sections::TornSections;
use crate::upstream::response_writer::ResponseWriter;
use crate::upstream::session::detached_task::EventStream;
use crate::upstream::session::list_position::{self, Known, ListPosition, ListStart};
use crate::upstream::session::recovery::RestartPoint;
use crate::upstream::xml::envelope_tags::{EnvelopeTags, parse_envelope_tags};
use bytes::Bytes;
use http::Method;
use quick_xml::events::Event as XmlEvent;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// One request of a harvester.
#[derive(Debug)]
pub struct Job {
    /// The repository.
    pub mapping: Arc<Mapping>,
    /// What is asked.
    pub request: Request,
    /// The same as the source is asked: with its own names of sets.
    pub asked: Request,
    /// The request as the answer is to say it.
    pub own: Arc<RequestEcho>,
    /// The `Via` header for the source.
    pub via: String,
    /// Where records go that cannot be mended, and what lists have delivered.
    pub store: Store,
    /// Connections to the source.
    pub client: SourceClient,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Hold the whole page back until it is whole, for a client that cannot
    /// see a page that breaks off.
    pub spool: bool,
}

/// What happens, in order.
#[derive(Debug)]
pub enum Event {
    /// The answer begins; a status of 200.
    Head(ResponseHead),
    /// A piece of it.
    Body(Bytes),
    /// It was whole.
    End(Box<Account>),
    /// There is no answer or, behind a head, no whole one.
    Failed(Failure, Box<Account>),
}

/// What is known of an answer when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status the source answered with.
    pub received_status: u16,
    /// The length of the whole answer in bytes, where it was held back.
    pub length: Option<usize>,
}

/// Answers a request: a conversation that goes on while somebody waits for its events.
pub fn answer(job: Job) -> EventStream {
    let (sender, events) = mpsc::channel(EVENTS_HELD);
    EventStream::new(events, Box::pin(run_session(job, sender)))
}

async fn run_session(job: Job, events: mpsc::Sender<Event>) {
    let budget = Deadline::new(Arc::clone(&job.clock), job.mapping.limits.first_record_timeout);
    let in_one_piece = job.spool.then_some(job.mapping.limits.spool_bytes_max);
    let mut conversation = ListSession {
        job: &job,
        outlet: ResponseWriter::new(events.clone(), in_one_piece),
        account: Account::default(),
        budget,
        asked: job.asked.clone(),
        dialect: RequestAdapter::of_job(&job),
        put_as: String::new(),
        other_words: 0,
        tries_days: None,
        sieve: None,
        gathered: FetchedHeaders::new(),
        had: Delivered::default(),
        delivered: Delivered::default(),
        known: Known::new(),
        chain: None,
        method: job.client.methods.first(),
        tried_both: false,
        anew: None,
        begun: RestartPoint::No,
        failed: None,
        has_walked: false,
        recalls: 0,
        recalled: Vec::new(),
        torn: TornSections::default(),
        headers_told: None,
        repository: RepositoryFacts::default(),
        suspicion: None,
        head: None,
        is_document_closed: false,
        waiting: ByteRope::default(),
    };
    let end = conversation.answer().await;
    let account = Box::new(conversation.account);
    // Whoever does not listen any more has nothing to be told.
    let _ = match end {
        Ok(()) => events.send(Event::End(account)).await,
        Err(Stop::Failed(failure)) => events.send(Event::Failed(failure, account)).await,
        Err(Stop::Gone) => Ok(()),
    };
}

/// Why a conversation is over before its end.
pub(crate) enum Stop {
    Failed(Failure),
    /// Nobody listens any more.
    Gone,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// How an attempt ended that did not break the conversation off.
pub(crate) enum AttemptEnd {
    /// The answer is whole.
    Whole,
    /// The answer is an error of ours, and has left.
    Refused,
    /// The page holds nothing new but a token: the list goes on with the next one.
    NextPage(String),
    /// The source does not know its token any more, and says so by these bytes.
    Expired(Vec<u8>),
    /// It says an error by these bytes that may mean another one.
    Doubtful(Vec<u8>),
    /// It failed, and may be tried again.
    Again(Failure),
}

/// The answer in the making, over all attempts.
pub(crate) struct ListSession<'a> {
    pub(crate) job: &'a Job,
    pub(crate) outlet: ResponseWriter,
    pub(crate) account: Account,
    pub(crate) budget: Deadline,
    /// What the source is asked: not always what the harvester asks.
    pub(crate) asked: Request,
    /// How it is spoken to, the query that it was last asked by, and how often it was put otherwise.
    pub(crate) dialect: RequestAdapter,
    pub(crate) put_as: String,
    pub(crate) other_words: u32,
    /// It is asked in days for once; whether it has surely refused the seconds of the same days.
    pub(crate) tries_days: Option<bool>,
    /// What is to be made of the page under way.
    pub(crate) sieve: Option<ItemFilter>,
    /// What was had of its headers, where each is asked for by itself.
    pub(crate) gathered: FetchedHeaders,
    /// By which method of HTTP the source is asked, and whether the other one was tried before.
    pub(crate) method: Method,
    pub(crate) tried_both: bool,
    /// What the harvester had of the page that is asked for before this request.
    pub(crate) had: Delivered,
    /// What it has of it now, once something has left.
    pub(crate) delivered: Delivered,
    /// What it has of the list, where that was begun anew, and does not come any more.
    pub(crate) known: Known,
    /// The list was begun anew: how many of the items of `delivered` stand in `known` too.
    pub(crate) anew: Option<usize>,
    /// How far back it was begun, and whether this request has come further in it.
    pub(crate) begun: RestartPoint,
    /// Why the last attempt failed.
    pub(crate) failed: Option<Failure>,
    pub(crate) has_walked: bool,
    pub(crate) chain: Option<ListPosition>,
    /// How many records were asked for by themselves that were about to be put aside.
    pub(crate) recalls: u32,
    /// Those that were had: what the broken one is known by, and what a list of headers knows it by.
    pub(crate) recalled: Vec<(u64, u64)>,
    /// The records with sections that contain records, and whether the source confirmed these.
    pub(crate) torn: TornSections,
    /// Datestamps that a list of headers told, once it was asked for.
    pub(crate) headers_told: Option<HeaderDatestamps>,
    /// What is known of the repository, for all attempts at this request.
    pub(crate) repository: RepositoryFacts,
    /// What the list delivered before, while it is not clear whether it goes in circles.
    pub(crate) suspicion: Option<HashSet<u64>>,
    /// Everything before the items that were delivered, once one has left.
    pub(crate) head: Option<Vec<u8>>,
    /// Whether the end tag of the document element has left: nothing may be sent after it.
    pub(crate) is_document_closed: bool,
    /// What was made before there was an item: it leaves with the first one.
    pub(crate) waiting: ByteRope,
}

impl ListSession<'_> {
    /// Answers the request, unless the source is left alone for now.
    async fn answer(&mut self) -> Result<(), Stop> {
        let mut admission = self.job.client.breaker().request(self.job.asked.query());
        let end = self.answer_if_admitted(&mut admission).await;
        self.settle(end, &admission).await
    }

    async fn answer_if_admitted(&mut self, admission: &mut Admission) -> Result<(), Stop> {
        let job = self.job;
        match list_position::find_start(job, self.budget.now()).await? {
            ListStart::Ask { asked, delivered, chain, anew } => {
                self.anew = anew.is_some().then(|| delivered.hashes().len());
                self.known = anew.unwrap_or_default();
                (self.asked, self.had, self.chain) = (asked, delivered, chain.map(|chain| *chain));
            }
            ListStart::Refuse(why) => return self.refuse_token(why).await,
        }
        self.repository = self.known_of_the_repository();
        if let Some(refusal) = self.refusal().await {
            return self.refuse(refusal).await;
        }
        *admission = job.client.admit(self.budget.now(), *admission)?;
        self.doubt_days().await;
        let end = self.run().await;
        self.note_walk(&end);
        end
    }

    /// Asks until the answer is whole, or as whole as it gets.
    async fn run(&mut self) -> Result<(), Stop> {
        let (mut attempts, mut pages, mut unproven) = (0, 0, 0);
        loop {
            let reached = self.account.items();
            attempts += 1;
            // In a box for the same reason as a question of ours: see `inquire`.
            let ended = match self.is_one_by_one() {
                true => Box::pin(self.one_by_one(None)).await?,
                false => self.attempt().await?,
            };
            let failure = match ended {
                AttemptEnd::Whole => {
                    self.job.client.methods.worked(&self.method);
                    return self.outlet.finish().await;
                }
                AttemptEnd::Refused => return Ok(()),
                AttemptEnd::NextPage(token) => {
                    pages += 1;
                    self.go_on_with(token, pages)?;
                    attempts = 0;
                    continue;
                }
                AttemptEnd::Expired(error) => {
                    if self.begin_anew().await? {
                        attempts = 0;
                        continue;
                    }
                    self.outlet.send(error.into(), 200).await?;
                    return self.outlet.finish().await;
                }
                AttemptEnd::Doubtful(error) => match self.weigh(&error).await {
                    Diagnosis::Again => {
                        attempts = 0;
                        continue;
                    }
                    Diagnosis::Error(proof) => return self.refuse(proof).await,
                    Diagnosis::Stays => {
                        self.outlet.send(error.into(), 200).await?;
                        return self.outlet.finish().await;
                    }
                },
                AttemptEnd::Again(failure) => self.cause_of(failure),
            };
            if self.outlet.has_begun() && self.account.items() > reached {
                attempts = 1;
                self.renew_time();
            }
            unproven += u32::from(failure.reason == Reason::Unproven);
            if !self.may_be_poisoned(&failure) {
                self.budget.release();
            }
            if self.may_take_the_other_method(&failure)
                || unproven >= UNPROVEN_MAX && self.begin_anew().await?
                || self.is_put_otherwise(&failure).await
            {
                (attempts, unproven) = (0, 0);
            } else if let Some(wait) = next_wait(&failure, attempts, self.budget.left(), self.budget.chance())
            {
                self.log_retry(&failure, wait);
                self.budget.pause(wait).await;
            } else if self.may_have_expired(&failure) && self.begin_anew().await? {
                attempts = 0;
            } else if self.may_be_poisoned(&failure) {
                match Box::pin(self.one_by_one(Some(failure))).await? {
                    AttemptEnd::Again(failure) => return self.end_with_failure(failure).await,
                    _ => return self.outlet.finish().await,
                }
            } else {
                return self.end_with_failure(failure).await;
            }
        }
    }

    /// Asks the source once, and passes on what is new of its page.
    async fn attempt(&mut self) -> Result<AttemptEnd, Stop> {
        let job = self.job;
        self.forget_what_was_held();
        self.account.attempts += 1;
        // The wait for a turn may take all of the time.
        self.budget.release();
        let turn = match job.client.turn(self.asked.verb().is_list(), &mut self.budget).await {
            Ok(turn) => turn,
            Err(failure) => return self.resumable(failure, 0),
        };
        self.reserve_time();
        let asked_at = clock::utc_datetime(self.budget.now());
        let UpstreamQuery { query, wanted } = self.put();
        let exchange = job.client.exchange(&query, &self.method, &job.via, &mut self.budget).await;
        self.note_window(wanted.as_ref());
        (self.put_as, self.sieve) = (query, wanted.map(ItemFilter::new));
        let exchange = match exchange {
            Ok(exchange) => exchange,
            Err(failure) => return self.resumable(failure, 0),
        };
        let start = ResponseStart {
            name: job.client.name(),
            status: exchange.status,
            retry_after_secs: exchange.retry_after_secs,
            charset: exchange.charset.clone(),
            asked_at,
            repository: self.repository.clone(),
        };
        let mut page =
            Page::new(&job.mapping, &job.own, start, PageBuffer::new(ItemHash::with(&job.store.token_key)));
        let mut splice = match self.anew {
            None => Resumer::new(&self.known, &self.delivered, self.skeleton()),
            Some(walked) => {
                let since = self.delivered.hashes().get(walked..).unwrap_or_default();
                Resumer::anew(&self.known, since, self.skeleton())
            }
        };
        let body = Body::new(&job.client, &job.mapping, exchange);
        let fed = match self.asks_for_each() {
            true => self.feed_headers(&mut page, &mut splice, body, turn).await?,
            false => self.feed(&mut page, &mut splice, body).await?,
        };
        let broken = match fed {
            Ok(broken) => broken,
            Err(unproven) => return self.resumable(self.unproven(unproven), 0),
        };
        page.pieces.body_ends();
        let verdict = page.finish(broken);
        self.keep_evidence(&mut page, &verdict);
        if let Some(version) = verdict.version() {
            self.note_version(version).await;
        }
        match verdict {
            Verdict::Whole(summary) => {
                self.account.note(&summary);
                self.tell_lacks(&page.pieces.lacks);
                self.finish_page(&mut page, splice).await
            }
            Verdict::Cut(failure, summary) => {
                // What the engine made of the cut end is left: where a record ends that broke off
                // in a section, only the rest of the page can say.
                page.pieces.forget_the_end();
                if let Err(unproven) = self.pass_on(&mut page, &mut splice, false).await? {
                    return self.resumable(self.unproven(unproven), 0);
                }
                self.give_up_early(&mut page).await?;
                let lost = summary.as_ref().map_or(0, |summary| summary.lost - summary.unread);
                if let Some(summary) = summary {
                    self.account.note(&summary);
                }
                self.resumable(failure, lost)
            }
        }
    }

    /// Feeds the page with the body, and passes on what comes of it; what ended it other than its end.
    async fn feed(
        &mut self,
        page: &mut Page,
        splice: &mut Resumer,
        mut body: Body<'_>,
    ) -> Result<Result<Option<BodyError>, Unproven>, Stop> {
        loop {
            match body.next(&mut self.budget).await {
                Ok(Some(piece)) => {
                    page.pieces.made.reads(piece.clone());
                    page.push(piece);
                }
                Ok(None) => return Ok(Ok(None)),
                Err(broken) => return Ok(Ok(Some(broken))),
            }
            if body.has_ended() {
                // What the engine makes of the end leaves in one piece with what it has made before.
                continue;
            }
            if let Err(unproven) = self.pass_on(page, splice, false).await? {
                return Ok(Err(unproven));
            }
            if page.is_decided() {
                return Ok(Ok(None));
            }
        }
    }

    /// What an earlier attempt gave was held, and is gone, unless something has left.
    pub(crate) fn forget_what_was_held(&mut self) {
        if !self.outlet.has_begun() {
            self.delivered = self.had.clone();
            self.account = Account { attempts: self.account.attempts, ..Account::default() };
            self.suspicion = None;
        }
        self.waiting = ByteRope::default();
        self.sieve = None;
    }

    /// The engine has said that the page is whole.
    async fn finish_page(&mut self, page: &mut Page, mut splice: Resumer) -> Result<AttemptEnd, Stop> {
        let is_list = self.job.request.verb().is_list();
        let token = page.pieces.token.as_deref().map(resolved).filter(|token| !token.is_empty());
        let has_met = self.sieve.as_ref().is_some_and(ItemFilter::has_met);
        if splice.is_again() && !splice.has_items() && !page.pieces.has_items() && !has_met {
            // An error, where a page was expected that holds what was delivered.
            let error = std::mem::take(&mut page.pieces.made).into_vec();
            let expired = self.asked.is_resumption() && !self.outlet.has_begun() && is_expired(&error);
            return match expired {
                true => Ok(AttemptEnd::Expired(error)),
                false => self.resumable(self.unproven(Unproven::Items), 0),
            };
        }
        self.give_up_early(page).await?;
        if self.anew.is_some() && self.outlet.has_begun() && token.is_some() {
            if let Err(unproven) = self.pass_on(page, &mut splice, false).await? {
                return self.resumable(self.unproven(unproven), 0);
            }
            if !splice.has_given() {
                self.known = splice.into_missing();
                return Ok(AttemptEnd::NextPage(token.unwrap_or_default()));
            }
        }
        if let Err(unproven) = self.pass_on(page, &mut splice, true).await? {
            return self.resumable(self.unproven(unproven), 0);
        }
        if is_list && self.account.records == 0 {
            if self.account.quarantined > 0 {
                return self.resumable(page.no_answer(NotOai::NothingKept), 0);
            }
            if self.asked.is_resumption() && is_expired(&self.waiting.bytes()) {
                return Ok(AttemptEnd::Expired(std::mem::take(&mut self.waiting).into_vec()));
            }
            if let Some(token) = token {
                self.known = splice.into_missing();
                return Ok(AttemptEnd::NextPage(token));
            }
            if let Some(last_page) = splice.empty_last_page() {
                self.waiting = last_page.into();
            }
        }
        if self.is_nothing_left() {
            self.waiting = self.nothing_left().into();
        }
        self.note_days().await;
        if self.is_doubtful() {
            return Ok(AttemptEnd::Doubtful(std::mem::take(&mut self.waiting).into_vec()));
        }
        if self.suspicion.take().is_some() && self.goes_in_circles(token.as_deref()).await? {
            return self.refuse_circle().await;
        }
        if !self.outlet.has_begun() && self.waiting.is_empty() {
            // Without a byte there is no answer, whatever the verdict.
            return self.resumable(page.no_answer(NotOai::Empty), 0);
        }
        self.account.progress = page.pieces.progress;
        self.note_reuse(token.as_deref()).await?;
        if let Some(chain) = &self.chain {
            let datestamp = String::from_utf8(page.pieces.last_datestamp.clone()).ok();
            let datestamp = datestamp.filter(|datestamp| !datestamp.is_empty());
            chain.note(self.job, &self.delivered, token, datestamp, self.budget.now());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.outlet.send(waiting, page.status).await?;
        Ok(AttemptEnd::Whole)
    }

    /// Passes on what the engine has made, once what it put aside is on disk.
    pub(crate) async fn pass_on(
        &mut self,
        page: &mut Page,
        splice: &mut Resumer,
        ended: bool,
    ) -> Result<Result<(), Unproven>, Stop> {
        if (splice.is_again() || self.sieve.is_some()) && page.is_inside_item() {
            return Ok(Err(Unproven::Held));
        }
        self.tear(&mut page.pieces, splice).await;
        self.recall(&mut page.pieces, splice).await;
        self.redate(&mut page.pieces, splice).await;
        self.take_note(&mut page.pieces, ended).await;
        if self.sieve.as_mut().is_some_and(|sieve| !sieve.pass(&mut page.pieces, ended)) {
            return Ok(Err(Unproven::Held));
        }
        let had_items = !self.delivered.is_empty();
        let mut taken = match splice.take(&mut page.pieces, &mut self.delivered, ended) {
            Ok(taken) => taken,
            Err(unproven) => return Ok(Err(unproven)),
        };
        self.account.add(&mut taken);
        let Emitted { mut made, items, aside, hashes, .. } = taken;
        if !aside.is_empty() {
            self.put_aside(aside).await?;
        }
        if !had_items && let (Some(chain), Some(first)) = (&self.chain, hashes.first()) {
            self.suspicion = chain.suspicion(self.job, *first).await?;
        }
        if self.suspicion.as_ref().is_some_and(|before| hashes.iter().any(|hash| !before.contains(hash))) {
            self.suspicion = None;
        }
        if !self.outlet.has_begun() {
            // The head waits for the first item that is new: until then every failure is clean.
            self.waiting.append(std::mem::take(&mut made));
            let nothing_yet = self.account.records == 0 && items == 0 && !page.is_inside_item();
            if nothing_yet || self.suspicion.is_some() && self.waiting.len() < WAITING_BYTES_MAX {
                return Ok(Ok(()));
            }
            made = std::mem::take(&mut self.waiting);
            // From here on it is the silence that is bounded, not the whole.
            self.renew_time();
        }
        if self.head.is_none() {
            self.head = splice.head().map(<[u8]>::to_vec);
        }
        self.outlet.send(made, page.status).await?;
        // What follows the last item of a page that is asked for again waits for the page's end.
        self.is_document_closed |= !splice.is_again() && page.is_document_closed();
        Ok(Ok(()))
    }

    /// What is open around the items that were delivered.
    pub(crate) fn skeleton(&self) -> Option<EnvelopeTags> {
        self.head.as_deref().and_then(parse_envelope_tags)
    }

    fn log_retry(&self, failure: &Failure, wait: Duration) {
        tracing::debug!(
            repo = self.job.mapping.id,
            attempt = self.account.attempts,
            wait_millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason = failure.reason.name(),
            "the source is asked again"
        );
    }
}

/// A text as it stands in XML, such as a token, as it is meant.
pub(crate) fn resolved(token: &[u8]) -> String {
    let text = String::from_utf8_lossy(token);
    let resolved = quick_xml::escape::unescape(&text).map_or_else(|_| text.to_string(), Cow::into_owned);
    resolved.trim().to_owned()
}

/// Whether a response says that its resumptionToken is not known.
fn is_expired(response: &[u8]) -> bool {
    error_code(response).is_some_and(|code| code == "badResumptionToken")
}

/// The code of the first error that a response says.
pub(crate) fn error_code(response: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(response).ok()?;
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(XmlEvent::Start(tag) | XmlEvent::Empty(tag)) if tag.local_name().as_ref() == "error" => {
                let code = tag.try_get_attribute("code").ok().flatten();
                return code.map(|code| code.value.into_owned());
            }
            Ok(XmlEvent::Eof) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// So often a page is asked for again that is not proven to be the same.
const UNPROVEN_MAX: u32 = 2;
/// Events held between the source and a slow harvester; with them at most
/// about a MiB waits.
const EVENTS_HELD: usize = 8;
/// What is held, in bytes, until it is clear that a list does not go in circles.
const WAITING_BYTES_MAX: usize = 32 << 20;
