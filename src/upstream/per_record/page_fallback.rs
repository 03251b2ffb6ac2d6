//! A page that fails every time while the source answers everything else: its
//! records one by one.
//!
//! `ListIdentifiers` says which records there are, `GetRecord` gives each. What
//! comes of it is made into a page of ours, which goes through the engine like any
//! other. Only where the mapping allows it (`page_fallback`).
//!
//! Invariants: no record is skipped that the list has. Whose place the headers
//! have is proven: they are those of the list's beginning, or begin with what the
//! page delivered before it broke. The way back into the list is taken only where
//! both verbs are seen to go on with the same records. Nothing is put aside for
//! good before another record of the page was had after it, or the source is seen
//! to answer at all.

use crate::clock;
use crate::config::PageFallback;
use crate::oai::{Argument, Request, Verb};
use crate::store::QuarantinedRecord;
use crate::upstream::adapt::subrequest::{Item, SubResponse, SubrequestError, inquire};
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::http::retry::{may_lie_in_what_was_asked, next_wait};
use crate::upstream::page::attempt::{Page, ResponseStart, Verdict};
use crate::upstream::page::buffer::{ItemHash, PageBuffer};
use crate::upstream::page::resume::Resumer;
use crate::upstream::session::list_session::{AttemptEnd, Job, ListSession, Stop, resolved};
use crate::upstream::xml::envelope_tags::EnvelopeTags;
use crate::upstream::xml::rebase_namespaces::{NamespaceScope, record_of};
use bytes::Bytes;
use std::collections::HashMap;

/// The headers of records that the harvester does not have, next in the list.
struct HeaderPage {
    /// The `ListIdentifiers` request that gave them.
    asked: Request,
    items: Vec<Item>,
    scope: NamespaceScope,
    /// Where the headers go on.
    token: Option<String>,
}

/// What became of the question for one record.
enum FetchedRecord {
    /// It is there, as it has to stand in the page.
    Record(String),
    /// The source does not know it any more.
    Withdrawn,
    /// It cannot be had.
    Lost(QuarantinedRecord),
    /// The source is not to be asked on.
    No(Failure),
}

/// How a page of ours goes on.
enum Continuation {
    /// With a token of the source.
    Theirs(String),
    /// With the headers that this request gives, of which some were done with.
    SamePage(Request),
    /// With the headers that this request gives.
    NextPage(Request),
    /// Not at all: this is the end of the list.
    End,
}

/// Most records that are had one by one for one page of ours.
const RECORDS_MAX: usize = 200;
/// Records one behind the other that cannot be had before the source is left in peace.
pub(crate) const LOST_IN_A_ROW_MAX: usize = 10;
/// Attempts at one record.
const ATTEMPTS_AT_A_RECORD: u32 = 2;
/// Attempts at headers.
const ATTEMPTS_AT_HEADERS: u32 = 3;
/// Pages of headers that are looked through for the place of the page.
const HEADER_PAGES_MAX: usize = 10_000;
/// So many items in the same order prove a place.
const PROOF_ITEMS: usize = 10;

/// Whether records may be asked for one by one in place of the page.
pub(crate) fn may_go_one_by_one(job: &Job) -> bool {
    job.mapping.quirks.page_fallback == PageFallback::GetRecord && job.request.verb() == Verb::ListRecords
}

impl ListSession<'_> {
    /// Whether the list has come to be asked for by its headers: a token of ours said so.
    pub(crate) fn is_one_by_one(&self) -> bool {
        self.job.request.verb() == Verb::ListRecords && self.asked.verb() == Verb::ListIdentifiers
    }

    /// Reserves half of the time that is left for single records, where the page may need them.
    pub(crate) fn reserve_time(&mut self) {
        if may_go_one_by_one(self.job) && !self.is_one_by_one() {
            self.budget.reserve_half();
        }
    }

    /// A record was received: the next one has the full time again.
    pub(crate) fn renew_time(&mut self) {
        self.budget.renew(self.job.mapping.limits.first_record_timeout);
        self.reserve_time();
    }

    /// Whether a page that failed again and again may be had by its records.
    pub(crate) fn may_be_poisoned(&self, failure: &Failure) -> bool {
        may_go_one_by_one(self.job)
            && !self.is_one_by_one()
            && may_lie_in_what_was_asked(failure)
            && self.delivered.is_complete()
            && (!self.outlet.has_begun() || self.skeleton().is_some())
    }

    /// Makes a page of ours out of single records. `failure` is why.
    pub(crate) async fn one_by_one(&mut self, failure: Option<Failure>) -> Result<AttemptEnd, Stop> {
        self.forget_what_was_held();
        self.budget.release();
        let failure = failure.unwrap_or_else(|| self.cannot_be_had("the headers of the list"));
        let (Some(prefix), Some(_)) = (self.metadata_prefix(), &self.chain) else {
            return Ok(AttemptEnd::Again(failure));
        };
        let Some(mut headers) = self.headers().await? else { return Ok(AttemptEnd::Again(failure)) };
        tracing::info!(
            repo = self.job.mapping.id,
            request = self.job.request.query(),
            because = failure.details,
            "a page fails every time; its records are asked for one by one"
        );
        loop {
            let before = self.delivered.hashes().len();
            let mut ours = SubstitutePage::new(self, &failure);
            let stopped = ours.fill(self, &headers, &prefix).await?;
            if ours.is_empty && self.delivered.hashes().len() > before && stopped.is_none() {
                // Everything on it was withdrawn: an empty page would be none.
                let next = headers.token.as_ref().map(|token| headers.asked.resumed(token.clone()));
                if let Some(next) = next.filter(|_| headers.items.len() <= RECORDS_MAX)
                    && let Some(more) = self.headers_from(next, HashMap::new()).await
                {
                    headers = more;
                    continue;
                }
            }
            let was_done_with = self.delivered.hashes().len() > before || self.is_one_by_one();
            if ours.is_empty && stopped.is_none() && headers.token.is_none() && was_done_with {
                return self.end_without_records(failure).await;
            }
            if ours.is_empty {
                return Ok(AttemptEnd::Again(stopped.unwrap_or(failure)));
            }
            let rest = match (&stopped, headers.token) {
                (Some(_), _) => Continuation::SamePage(headers.asked),
                (None, _) if headers.items.len() > RECORDS_MAX => Continuation::SamePage(headers.asked),
                (None, Some(token)) => self.way_back(headers.asked.resumed(token)).await,
                (None, None) => Continuation::End,
            };
            return self.close_ours(ours, rest, stopped.unwrap_or(failure)).await;
        }
    }

    /// The format of the records, where it is known.
    pub(crate) fn metadata_prefix(&self) -> Option<String> {
        let prefix = self.job.request.argument(Argument::MetadataPrefix).map(str::to_owned);
        prefix.or_else(|| self.chain.as_ref()?.metadata_prefix())
    }

    /// The headers of what comes next in the list; `None` where nothing proves that they are that.
    async fn headers(&mut self) -> Result<Option<HeaderPage>, Stop> {
        // Lists of identifiers of 1.x are no headers, and lists of records are what fails.
        let Some(chain) = self.chain.as_ref().filter(|_| !self.dialect.is_one()) else { return Ok(None) };
        let anew = chain.anew(self.job).await?;
        let mut known = anew.as_ref().map(|(_, known)| known.clone()).unwrap_or_default();
        for hash in self.delivered.hashes().iter().chain(&self.recalled_and_delivered()) {
            *known.entry(*hash).or_insert(0) += 1;
        }
        let asked = self.asked.headers_only();
        if self.is_one_by_one() || !self.asked.is_resumption() {
            if let Some(headers) = self.headers_from(asked, known.clone()).await {
                return Ok(Some(headers));
            }
        } else if !self.delivered.is_empty()
            && let Ok(told) = self.ask(&asked, usize::MAX, ATTEMPTS_AT_HEADERS).await
            && self.begins_with_what_was_delivered(&told)
        {
            return Ok(self.sorted(asked, told, &mut known));
        }
        let Some((first, _)) = anew.filter(|_| self.asked.is_resumption()) else { return Ok(None) };
        Ok(self.headers_from(first.headers_only(), known).await)
    }

    /// The first headers from there on that are not `known`.
    async fn headers_from(&mut self, mut asked: Request, mut known: HashMap<u64, u32>) -> Option<HeaderPage> {
        for _ in 0..HEADER_PAGES_MAX {
            let told = self.ask(&asked, usize::MAX, ATTEMPTS_AT_HEADERS).await.ok()?;
            let next = told.token().map(|token| asked.resumed(token));
            let headers = self.sorted(asked.clone(), told, &mut known)?;
            match next {
                Some(next) if headers.items.is_empty() && next != asked => asked = next,
                _ => return Some(headers),
            }
        }
        None
    }

    /// The headers of an answer that are not known; `None` where it is not whole.
    fn sorted(&self, asked: Request, told: SubResponse, known: &mut HashMap<u64, u32>) -> Option<HeaderPage> {
        if told.items.is_empty() || !told.aside.is_empty() || told.is_too_long {
            return None;
        }
        let (scope, token) = (told.scope(), told.token());
        let mut items = told.items;
        items.retain(|item| self.is_wanted(item));
        items.retain(|item| match known.get_mut(&item.hash).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                false
            }
            None => true,
        });
        Some(HeaderPage { asked, items, scope, token })
    }

    fn begins_with_what_was_delivered(&self, told: &SubResponse) -> bool {
        let delivered = self.delivered.hashes();
        let items = told.items.iter().filter(|item| self.is_wanted(item));
        let hashes: Vec<u64> = items.map(|item| item.hash).collect();
        hashes.starts_with(delivered)
    }

    /// Whether an item was asked for, where the source was asked for more.
    fn is_wanted(&self, item: &Item) -> bool {
        let within = self.chain.as_ref().and_then(|chain| chain.within.as_ref());
        within.is_none_or(|within| within.holds(&resolved(&item.datestamp)))
    }

    /// How the list goes on behind headers that are done with: with whole pages again,
    /// where both verbs go on with the same records.
    async fn way_back(&mut self, next: Request) -> Continuation {
        let Some(token) = next.argument(Argument::ResumptionToken) else {
            return Continuation::NextPage(next);
        };
        let records = self.job.request.resumed(token.to_owned());
        let headers = self.ask(&next, PROOF_ITEMS, 1).await;
        let records = self.ask(&records, PROOF_ITEMS, 1).await;
        match (headers, records) {
            (Ok(headers), Ok(records)) if are_the_same(&headers, &records) => {
                Continuation::Theirs(token.to_owned())
            }
            _ => Continuation::NextPage(next),
        }
    }

    /// Asks until there is an answer, a few times.
    pub(crate) async fn ask(
        &mut self,
        request: &Request,
        enough: usize,
        attempts_max: u32,
    ) -> Result<SubResponse, SubrequestError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.account.attempts += 1;
            let manner = self.manner();
            let told = Box::pin(inquire(self.job, request, manner, enough, false, &mut self.budget)).await;
            let Err(unanswered) = told else { return told };
            let (left, chance) = (self.budget.left(), self.budget.chance());
            match next_wait(&unanswered.failure, attempts, left, chance) {
                Some(wait) if attempts < attempts_max => self.budget.pause(wait).await,
                _ => return Err(unanswered),
            }
        }
    }

    /// One record, as it has to stand in `place`.
    async fn had(
        &mut self,
        item: &Item,
        prefix: &str,
        scope: &NamespaceScope,
        place: &NamespaceScope,
    ) -> FetchedRecord {
        if item.deleted {
            let record = record_of(&String::from_utf8_lossy(&item.bytes));
            return FetchedRecord::Record(scope.transplanted(&record, place));
        }
        let identifier = resolved(&item.identifier);
        let request = Request::get_record(&identifier, prefix);
        let lost = |why, raw| {
            let identifier = Some(String::from_utf8_lossy(&item.identifier).into_owned());
            FetchedRecord::Lost(QuarantinedRecord { identifier, why, offset: 0, raw })
        };
        let mut told = match self.ask(&request, usize::MAX, ATTEMPTS_AT_A_RECORD).await {
            Ok(told) => told,
            Err(SubrequestError { failure, raw })
                if may_lie_in_what_was_asked(&failure) && !self.budget.left().is_zero() =>
            {
                return lost(failure.reason.name(), raw);
            }
            Err(SubrequestError { failure, .. }) => return FetchedRecord::No(failure),
        };
        if let Some(record) = told.record(&identifier) {
            let record = String::from_utf8_lossy(&record.bytes);
            return FetchedRecord::Record(told.scope().transplanted(&record, place));
        }
        match (told.error().as_deref(), told.aside.pop()) {
            (Some("idDoesNotExist"), _) => FetchedRecord::Withdrawn,
            (None, Some(QuarantinedRecord { why, raw, .. })) => lost(why, raw),
            (Some(_), _) => lost("error-instead", Vec::new()),
            (None, None) => lost("another-record", Vec::new()),
        }
    }

    /// The page of ours is over: it gets its end.
    async fn close_ours(
        &mut self,
        mut ours: SubstitutePage,
        rest: Continuation,
        failure: Failure,
    ) -> Result<AttemptEnd, Stop> {
        let (job, now) = (self.job, self.budget.now());
        let Some(chain) = self.chain.clone() else { return Err(failure.into()) };
        for hash in self.recalled_and_delivered() {
            self.delivered.note(hash);
        }
        let token = match &rest {
            Continuation::End => self.job.request.is_resumption().then(String::new),
            Continuation::Theirs(token) => Some(quick_xml::escape::escape(token).into_owned()),
            Continuation::SamePage(asked) => chain.own_token(job, asked, &self.delivered, false, now).await,
            Continuation::NextPage(asked) => {
                chain.own_token_for_the_next_page(job, asked, &self.delivered, now).await
            }
        };
        let is_ours = matches!(rest, Continuation::SamePage(_) | Continuation::NextPage(_));
        if is_ours && token.is_none() {
            return Err(failure.into());
        }
        ours.page.push(ours.skeleton.close_with(token.as_deref()).into());
        let Verdict::Whole(summary) = ours.page.finish(None) else { return Err(failure.into()) };
        self.account.note(&summary);
        if self.pass_on(&mut ours.page, &mut ours.splice, true).await?.is_err() {
            return Err(failure.into());
        }
        if let Continuation::Theirs(token) = &rest {
            self.note_reuse(Some(token)).await?;
        }
        match rest {
            Continuation::Theirs(token) => chain.note(job, &self.delivered, Some(token), None, now),
            Continuation::End => chain.note(job, &self.delivered, None, None, now),
            Continuation::SamePage(_) | Continuation::NextPage(_) => self.account.continued = Some(failure),
        }
        self.suspicion = None;
        let waiting = std::mem::take(&mut self.waiting);
        self.outlet.send(waiting, 200).await?;
        Ok(AttemptEnd::Whole)
    }

    /// What is left of the list was all withdrawn: it ends behind what was delivered.
    async fn end_without_records(&mut self, failure: Failure) -> Result<AttemptEnd, Stop> {
        let (job, now) = (self.job, self.budget.now());
        let has_begun = self.outlet.has_begun();
        let Some(chain) = self.chain.clone().filter(|_| has_begun || job.request.is_resumption()) else {
            // A list of which nothing is left from its beginning on is for the source to tell.
            return Ok(AttemptEnd::Again(failure));
        };
        let skeleton = self.skeleton().unwrap_or_else(|| EnvelopeTags::of_ours(job.request.verb()));
        let head = (!has_begun).then(|| skeleton.open(&clock::utc_datetime(now), &job.own.base_url));
        let end = skeleton.close_with(job.request.is_resumption().then_some(""));
        chain.note(job, &self.delivered, None, None, now);
        self.outlet.send([head.unwrap_or_default().into_bytes(), end].concat().into(), 200).await?;
        Ok(AttemptEnd::Whole)
    }

    fn cannot_be_had(&self, what: &str) -> Failure {
        let name = self.job.client.name();
        Failure::new(Reason::Incomplete, format!("{name} fails at a page, and {what} cannot be had either"))
    }
}

/// A page of our own making.
struct SubstitutePage {
    page: Page,
    splice: Resumer,
    skeleton: EnvelopeTags,
    place: NamespaceScope,
    /// Whether nothing stands on it yet.
    is_empty: bool,
    /// What cannot be had, as long as it is not clear that the source gives the others.
    lost: Vec<(u64, QuarantinedRecord)>,
}

impl SubstitutePage {
    fn new(conversation: &ListSession<'_>, failure: &Failure) -> Self {
        let job = conversation.job;
        let asked_at = clock::utc_datetime(conversation.budget.now());
        let skeleton = conversation.skeleton();
        let skeleton = skeleton.unwrap_or_else(|| EnvelopeTags::of_ours(job.request.verb()));
        let head = skeleton.open(&asked_at, &job.own.base_url);
        let start = ResponseStart {
            name: job.client.name(),
            status: failure.received_status.unwrap_or(200),
            retry_after_secs: None,
            charset: None,
            asked_at,
            repository: conversation.repository.clone(),
        };
        let mut page =
            Page::new(&job.mapping, &job.own, start, PageBuffer::new(ItemHash::with(&job.store.token_key)));
        page.push(Bytes::copy_from_slice(head.as_bytes()));
        let splice = Resumer::of_ours(conversation.skeleton());
        Self { page, splice, skeleton, place: NamespaceScope::of(&head), is_empty: true, lost: Vec::new() }
    }

    /// Asks for the records of these headers; what ended it early.
    async fn fill(
        &mut self,
        conversation: &mut ListSession<'_>,
        headers: &HeaderPage,
        prefix: &str,
    ) -> Result<Option<Failure>, Stop> {
        // An earlier page of ours in this list had records by the same means.
        let mut was_any_had = conversation.is_one_by_one() && !conversation.had.is_empty();
        for item in headers.items.iter().take(RECORDS_MAX) {
            match conversation.had(item, prefix, &headers.scope, &self.place).await {
                FetchedRecord::Record(record) => {
                    was_any_had |= !item.deleted;
                    if !item.deleted {
                        self.give_up_the_lost(conversation).await?;
                    }
                    self.add(conversation, item, &record).await?;
                }
                FetchedRecord::Withdrawn => {
                    conversation.account.withdrawn += 1;
                    conversation.delivered.note(item.hash);
                }
                FetchedRecord::Lost(record) => self.lost.push((item.hash, record)),
                FetchedRecord::No(failure) => return Ok(Some(failure)),
            }
            if self.lost.len() >= LOST_IN_A_ROW_MAX {
                return Ok(Some(conversation.cannot_be_had("its records")));
            }
        }
        if self.lost.is_empty() {
            return Ok(None);
        }
        // Those at the end have nobody behind them who speaks for the source.
        let is_alive = was_any_had && conversation.ask(&Request::identify(), 1, 1).await.is_ok();
        if !is_alive {
            return Ok(Some(conversation.cannot_be_had("its records")));
        }
        self.give_up_the_lost(conversation).await?;
        Ok(None)
    }

    /// Passes a record on.
    async fn add(
        &mut self,
        conversation: &mut ListSession<'_>,
        item: &Item,
        record: &str,
    ) -> Result<(), Stop> {
        self.page.push(Bytes::copy_from_slice(record.as_bytes()));
        self.is_empty = false;
        if conversation.pass_on(&mut self.page, &mut self.splice, false).await?.is_err() {
            return Err(conversation.cannot_be_had("the rest of it").into());
        }
        conversation.delivered.note(item.hash);
        if conversation.outlet.has_begun() {
            conversation.budget.renew(conversation.job.mapping.limits.first_record_timeout);
        }
        Ok(())
    }

    /// Puts aside what cannot be had: the source gives the others.
    async fn give_up_the_lost(&mut self, conversation: &mut ListSession<'_>) -> Result<(), Stop> {
        if self.lost.is_empty() {
            return Ok(());
        }
        let (hashes, records): (Vec<u64>, Vec<QuarantinedRecord>) = self.lost.drain(..).unzip();
        conversation.account.quarantined += records.len() as u64;
        conversation.put_aside(records).await?;
        for hash in hashes {
            conversation.delivered.note(hash);
        }
        Ok(())
    }
}

/// Whether two answers begin with the same items.
fn are_the_same(one: &SubResponse, other: &SubResponse) -> bool {
    let hashes =
        |told: &SubResponse| told.items.iter().take(PROOF_ITEMS).map(|item| item.hash).collect::<Vec<_>>();
    let (one, other) = (hashes(one), hashes(other));
    let both = one.len().min(other.len());
    both > 0 && one.get(..both) == other.get(..both)
}
