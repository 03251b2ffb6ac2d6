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

use super::account::Account;
use super::body::Body;
use super::budget::Budget;
use super::chain::{self, Chain, Opening};
use super::failure::{Failure, Reason};
use super::fetch::Client;
use super::outlet::Outlet;
use super::page::{Page, Start, Verdict};
use super::patience::next_wait;
use super::splice::{Delivered, Skeleton, Splice, Taken, Unproven};
use crate::clock::{self, Clock};
use crate::config::{Mapping, Unmended};
use crate::oai::{ErrorCode, Request, error_response};
use crate::repair::{NotOai, OwnRequest};
use crate::state::{PutAside, QuarantineError, State};
use bytes::Bytes;
use quick_xml::events::Event as XmlEvent;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
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
    /// The request as the answer is to say it.
    pub own: OwnRequest,
    /// The `Via` header for the source.
    pub via: String,
    /// Where records go that cannot be mended, and what lists have delivered.
    pub state: State,
    /// Connections to the source.
    pub client: Client,
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
    Head(Answer),
    /// A piece of it.
    Body(Bytes),
    /// It was whole.
    End(Box<Account>),
    /// There is no answer or, behind a head, no whole one.
    Failed(Failure, Box<Account>),
}

/// What is known of an answer when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status the source answered with.
    pub received_status: u16,
    /// The length of the whole answer in bytes, where it was held back.
    pub length: Option<usize>,
}

/// Answers a request: starts the conversation in a task of its own, which
/// ends when the receiver is dropped.
pub fn answer(job: Job) -> mpsc::Receiver<Event> {
    let (events, receiver) = mpsc::channel(EVENTS_HELD);
    tokio::spawn(converse(job, events));
    receiver
}

async fn converse(job: Job, events: mpsc::Sender<Event>) {
    let budget = Budget::new(Arc::clone(&job.clock), job.mapping.limits.first_record_timeout);
    let in_one_piece = job.spool.then_some(job.mapping.limits.spool_bytes_max);
    let mut conversation = Conversation {
        job: &job,
        outlet: Outlet::new(events.clone(), in_one_piece),
        account: Account::default(),
        budget,
        asked: job.request.clone(),
        had: Delivered::default(),
        delivered: Delivered::default(),
        known: HashMap::new(),
        chain: None,
        suspicion: None,
        skeleton: None,
        waiting: Vec::new(),
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
pub(super) enum Stop {
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
enum Ended {
    /// The answer is whole.
    Whole,
    /// The answer is an error of ours, and has left.
    Refused,
    /// The page holds nothing new but a token: the list goes on with the next one.
    NextPage(String),
    /// The source does not know its token any more, and says so by these bytes.
    Expired(Vec<u8>),
    /// It failed, and may be tried again.
    Again(Failure),
}

/// The answer in the making, over all attempts.
struct Conversation<'a> {
    job: &'a Job,
    outlet: Outlet,
    account: Account,
    budget: Budget,
    /// What the source is asked: not always what the harvester asks.
    asked: Request,
    /// What the harvester had of the page that is asked for before this request.
    had: Delivered,
    /// What it has of it now, once something has left.
    delivered: Delivered,
    /// What it has of earlier pages, where the list was begun anew.
    known: HashMap<u64, u32>,
    chain: Option<Chain>,
    /// What the list delivered before, while it is not clear whether it goes in circles.
    suspicion: Option<HashSet<u64>>,
    /// What is open around the items that were delivered.
    skeleton: Option<Skeleton>,
    /// What was made before there was an item: it leaves with the first one.
    waiting: Vec<u8>,
}

impl Conversation<'_> {
    /// Answers the request, unless the source is left alone for now.
    async fn answer(&mut self) -> Result<(), Stop> {
        let job = self.job;
        match chain::open(job, self.budget.now()).await? {
            Opening::Ask { asked, delivered, chain } => {
                (self.asked, self.had, self.chain) = (asked, delivered, chain);
            }
            Opening::Refuse(why) => return self.refuse_token(why).await,
        }
        job.client.admit(self.budget.now())?;
        let end = self.run().await;
        match &end {
            Ok(()) if self.account.continued.is_some() => {}
            Ok(()) => job.client.succeeded(),
            Err(Stop::Failed(failure)) => job.client.failed(self.budget.now(), failure),
            Err(Stop::Gone) => {}
        }
        end
    }

    /// Asks until the answer is whole, or as whole as it gets.
    async fn run(&mut self) -> Result<(), Stop> {
        let (mut attempts, mut pages) = (0, 0);
        loop {
            let reached = self.account.items();
            attempts += 1;
            self.account.attempts += 1;
            let failure = match self.attempt().await? {
                Ended::Whole => return self.outlet.finish().await,
                Ended::Refused => return Ok(()),
                Ended::NextPage(token) => {
                    pages += 1;
                    self.go_on_with(token, pages)?;
                    attempts = 0;
                    continue;
                }
                Ended::Expired(error) => {
                    if self.begin_anew().await? {
                        attempts = 0;
                        continue;
                    }
                    self.outlet.send(error, 200).await?;
                    return self.outlet.finish().await;
                }
                Ended::Again(failure) => failure,
            };
            if self.outlet.has_begun() && self.account.items() > reached {
                attempts = 1;
                self.budget.renew(self.job.mapping.limits.first_record_timeout);
            }
            if let Some(wait) = next_wait(&failure, attempts, self.budget.left(), self.budget.chance()) {
                self.log_retry(&failure, wait);
                self.budget.pause(wait).await;
            } else if self.may_have_expired(&failure) && self.begin_anew().await? {
                attempts = 0;
            } else {
                return self.close(failure).await;
            }
        }
    }

    /// Asks the source once, and passes on what is new of its page.
    async fn attempt(&mut self) -> Result<Ended, Stop> {
        let job = self.job;
        if !self.outlet.has_begun() {
            // What an earlier attempt gave was held and is gone.
            self.delivered = self.had.clone();
            self.account = Account { attempts: self.account.attempts, ..Account::default() };
            self.suspicion = None;
        }
        self.waiting.clear();
        let _turn = match job.client.turn(self.asked.verb().is_list(), &mut self.budget).await {
            Ok(turn) => turn,
            Err(failure) => return self.resumable(failure, 0),
        };
        let asked_at = clock::utc_datetime(self.budget.now());
        let exchange = match job.client.exchange(&self.asked, &job.via, &mut self.budget).await {
            Ok(exchange) => exchange,
            Err(failure) => return self.resumable(failure, 0),
        };
        let start = Start {
            name: job.client.name(),
            status: exchange.status,
            retry_after_secs: exchange.retry_after_secs,
            charset: exchange.charset.clone(),
            asked_at,
        };
        let mut page = Page::new(&job.mapping, &job.own, start);
        let mut splice = Splice::new(&self.known, &self.delivered, self.skeleton.clone());
        let mut body = Body::new(&job.client, &job.mapping, exchange);
        let broken = loop {
            match body.next(&mut self.budget).await {
                Ok(Some(piece)) => page.push(piece),
                Ok(None) => break None,
                Err(broken) => break Some(broken),
            }
            if let Err(unproven) = self.pass_on(&mut page, &mut splice, false).await? {
                return self.resumable(self.unproven(unproven), 0);
            }
            if page.is_decided() {
                break None;
            }
        };
        let verdict = page.finish(broken);
        self.keep_evidence(&mut page, &verdict);
        match verdict {
            Verdict::Whole(summary) => {
                self.account.note(&summary);
                self.finish_page(&mut page, splice).await
            }
            Verdict::Cut(failure, summary) => {
                let lost = summary.as_ref().map_or(0, |summary| summary.lost);
                if let Some(summary) = summary {
                    self.account.note(&summary);
                }
                // What the engine made of the cut end is left: where a record ends that broke off
                // in a section, only the rest of the page can say.
                self.resumable(failure, lost)
            }
        }
    }

    /// Keeps a page that was broken, as it came. Nobody waits for that.
    fn keep_evidence(&self, page: &mut Page, verdict: &Verdict) {
        let failure = match verdict {
            Verdict::Whole(_) => None,
            Verdict::Cut(failure, _) => Some(failure),
        };
        let Some((raw, about)) = page.evidence(&self.asked, failure) else { return };
        let (broken, id) = (self.job.state.broken.clone(), self.job.mapping.id.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = broken.keep(&id, &raw, &about) {
                tracing::warn!(repo = id, %error, "a broken page is not kept; check space and rights of the data folder");
            }
        });
    }

    /// The engine has said that the page is whole.
    async fn finish_page(&mut self, page: &mut Page, mut splice: Splice) -> Result<Ended, Stop> {
        let is_list = self.job.request.verb().is_list();
        let token = page.pieces.token.as_deref().map(resolved).filter(|token| !token.is_empty());
        if splice.is_again() && !splice.has_items() && !page.pieces.has_items() {
            // An error, where a page was expected that holds what was delivered.
            let error = page.pieces.take_bytes();
            let expired = self.asked.is_resumption() && !self.outlet.has_begun() && is_expired(&error);
            return match expired {
                true => Ok(Ended::Expired(error)),
                false => self.resumable(self.unproven(Unproven::Items), 0),
            };
        }
        if let Err(unproven) = self.pass_on(page, &mut splice, true).await? {
            return self.resumable(self.unproven(unproven), 0);
        }
        if is_list && self.account.records == 0 {
            if self.account.quarantined > 0 {
                return self.resumable(page.no_answer(NotOai::NothingKept), 0);
            }
            if self.asked.is_resumption() && is_expired(&self.waiting) {
                return Ok(Ended::Expired(std::mem::take(&mut self.waiting)));
            }
            if let Some(token) = token {
                self.known = splice.into_missing();
                return Ok(Ended::NextPage(token));
            }
            if let Some(last_page) = splice.empty_last_page() {
                self.waiting = last_page;
            }
        }
        if self.suspicion.take().is_some() && self.goes_in_circles(token.as_deref()).await? {
            return self.refuse_circle().await;
        }
        if !self.outlet.has_begun() && self.waiting.is_empty() {
            // Without a byte there is no answer, whatever the verdict.
            return self.resumable(page.no_answer(NotOai::Empty), 0);
        }
        self.account.progress = page.pieces.progress;
        self.account.leads_to_itself =
            token.as_ref().is_some_and(|next| self.asked.resumed(next.clone()) == self.asked);
        if let Some(chain) = &self.chain {
            chain.note(self.job, &self.delivered, token, self.budget.now());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.outlet.send(waiting, page.status).await?;
        Ok(Ended::Whole)
    }

    /// Passes on what the engine has made, once what it put aside is on disk.
    async fn pass_on(
        &mut self,
        page: &mut Page,
        splice: &mut Splice,
        ended: bool,
    ) -> Result<Result<(), Unproven>, Stop> {
        if splice.is_again() && page.is_inside_item() {
            return Ok(Err(Unproven::Held));
        }
        let had_items = !self.delivered.is_empty();
        let mut taken = match splice.take(&mut page.pieces, &mut self.delivered, ended) {
            Ok(taken) => taken,
            Err(unproven) => return Ok(Err(unproven)),
        };
        self.account.add(&mut taken);
        let Taken { bytes, items, aside, hashes, .. } = taken;
        if !aside.is_empty() {
            self.put_aside(aside).await?;
        }
        if !had_items && let (Some(chain), Some(first)) = (&self.chain, hashes.first()) {
            self.suspicion = chain.suspicion(self.job, *first).await?;
        }
        if self.suspicion.as_ref().is_some_and(|before| hashes.iter().any(|hash| !before.contains(hash))) {
            self.suspicion = None;
        }
        let mut bytes = bytes;
        if !self.outlet.has_begun() {
            // The head waits for the first item that is new: until then every failure is clean.
            self.waiting.append(&mut bytes);
            let nothing_yet = self.account.records == 0 && items == 0 && !page.is_inside_item();
            if nothing_yet || self.suspicion.is_some() && self.waiting.len() < WAITING_BYTES_MAX {
                return Ok(Ok(()));
            }
            bytes = std::mem::take(&mut self.waiting);
            // From here on it is the silence that is bounded, not the whole.
            self.budget.renew(self.job.mapping.limits.first_record_timeout);
        }
        if self.skeleton.is_none() {
            self.skeleton = splice.skeleton();
        }
        self.outlet.send(bytes, page.status).await?;
        Ok(Ok(()))
    }

    async fn put_aside(&self, records: Vec<PutAside>) -> Result<(), Failure> {
        let Job { mapping, state, request, client, .. } = self.job;
        let (quarantine, id, query) = (state.quarantine.clone(), mapping.id.clone(), request.query());
        let now = clock::utc_datetime(self.budget.now());
        let max = mapping.limits.quarantine_bytes_max;
        let put = tokio::task::spawn_blocking(move || quarantine.put(&id, &query, &now, max, &records));
        match put.await {
            Ok(Ok(())) if mapping.unmendable == Unmended::Fail => {
                let details = format!(
                    "{} sent a record that cannot be mended, and the mapping says unmendable = \"fail\"; see the quarantine",
                    client.name()
                );
                Err(Failure::new(Reason::Unmendable, details))
            }
            Ok(Ok(())) => Ok(()),
            Ok(Err(error @ QuarantineError::Closed)) => {
                Err(Failure::new(Reason::TakenOver, error.to_string()))
            }
            Ok(Err(error)) => Err(Failure::new(Reason::Quarantine, error.to_string())),
            Err(error) => Err(Failure::new(Reason::Quarantine, format!("the quarantine stopped: {error}"))),
        }
    }

    /// Whether a page that was cut can be gone on with.
    fn resumable(&self, failure: Failure, lost: u64) -> Result<Ended, Stop> {
        let can = !self.outlet.has_begun()
            || lost == 0
                && self.job.request.verb().is_list()
                && self.delivered.is_complete()
                && self.skeleton.is_some();
        if can { Ok(Ended::Again(failure)) } else { Err(failure.into()) }
    }

    /// A page with nothing new is skipped by asking for the next one.
    fn go_on_with(&mut self, token: String, pages: u32) -> Result<(), Stop> {
        let next = self.asked.resumed(token);
        if pages >= PAGES_SKIPPED_MAX || next == self.asked {
            let name = self.job.client.name();
            let details = format!("{name} sent {pages} pages without a new item one after the other");
            return Err(Failure::new(Reason::NotOai(NotOai::NothingKept), details).into());
        }
        self.asked = next;
        self.had = Delivered::default();
        Ok(())
    }

    /// Begins the list anew in place of a token that expired, where that is safe.
    async fn begin_anew(&mut self) -> Result<bool, Stop> {
        let Some(chain) = self.chain.as_ref().filter(|_| !self.outlet.has_begun() && self.known.is_empty())
        else {
            return Ok(false);
        };
        let Some((asked, mut known)) = chain.anew(self.job).await? else { return Ok(false) };
        for hash in self.had.hashes() {
            *known.entry(*hash).or_insert(0) += 1;
        }
        tracing::info!(
            repo = self.job.mapping.id,
            request = self.job.request.query(),
            "a token has expired; its list is begun anew"
        );
        (self.asked, self.known, self.had) = (asked, known, Delivered::default());
        Ok(true)
    }

    /// Whether a failure may mean that the source has forgotten its token.
    fn may_have_expired(&self, failure: &Failure) -> bool {
        self.asked.is_resumption()
            && failure.reason == Reason::Status
            && failure.received_status.is_some_and(|status| !matches!(status, 401 | 403 | 429 | 503))
    }

    /// The source cannot be brought to give the rest of the page: the list is
    /// closed with a token of ours that leads to it, or breaks off visibly.
    async fn close(&mut self, failure: Failure) -> Result<(), Stop> {
        let (Some(chain), Some(skeleton)) = (&self.chain, &self.skeleton) else { return Err(failure.into()) };
        let token = chain.own_token(self.job, &self.asked, &self.delivered, self.budget.now()).await;
        let Some(token) = token else { return Err(failure.into()) };
        self.account.continued = Some(failure);
        self.outlet.send(skeleton.close_with(&token), 200).await?;
        self.outlet.finish().await
    }

    async fn refuse_token(&mut self, why: &str) -> Result<(), Stop> {
        let now = clock::utc_datetime(self.budget.now());
        let error = error_response(&self.job.own, &now, ErrorCode::BadResumptionToken, why);
        self.outlet.send(error.into_bytes(), 200).await?;
        self.outlet.finish().await
    }

    async fn refuse_circle(&mut self) -> Result<Ended, Stop> {
        let name = self.job.client.name();
        self.waiting.clear();
        self.refuse_token(&format!(
            "{name} goes in circles: its token leads back to a page of the same list"
        ))
        .await?;
        Ok(Ended::Refused)
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

    fn unproven(&self, why: Unproven) -> Failure {
        let name = self.job.client.name();
        let what = match why {
            Unproven::Head => "begins differently now",
            Unproven::Items => "does not hold what was delivered",
            Unproven::Held => "cannot be told from another one within the limits",
        };
        let details = format!("{name} broke a page off, and the page it sends instead {what}");
        Failure::new(Reason::Unproven, details)
    }

    async fn goes_in_circles(&self, token: Option<&str>) -> Result<bool, Stop> {
        let (Some(chain), Some(token)) = (&self.chain, token) else { return Ok(false) };
        Ok(self.asked == self.asked.resumed(token.to_owned()) || chain.leads_back(self.job, token).await?)
    }
}

/// The text of a token as it stands in XML.
fn resolved(token: &[u8]) -> String {
    let text = String::from_utf8_lossy(token);
    let resolved = quick_xml::escape::unescape(&text).map_or_else(|_| text.to_string(), Cow::into_owned);
    resolved.trim().to_owned()
}

/// Whether a response says that its resumptionToken is not known.
fn is_expired(response: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(response) else { return false };
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(XmlEvent::Start(tag) | XmlEvent::Empty(tag)) if tag.local_name().as_ref() == "error" => {
                let code = tag.try_get_attribute("code").ok().flatten();
                return code.is_some_and(|code| &*code.value == "badResumptionToken");
            }
            Ok(XmlEvent::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

/// Events held between the source and a slow harvester; with them at most
/// about a MiB waits.
const EVENTS_HELD: usize = 8;
/// Pages without anything new that are skipped one after the other within one request.
const PAGES_SKIPPED_MAX: u32 = 1_000;
/// What is held, in bytes, until it is clear that a list does not go in circles.
const WAITING_BYTES_MAX: usize = 32 << 20;
