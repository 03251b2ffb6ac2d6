//! Answers one request of a harvester with an ordered stream of events.
//!
//! One request becomes as many exchanges as necessary: a failed request to the source is retried after a
//! wait, and a truncated page is requested again and resumed after the last record that was delivered.
//!
//! Invariants: the head is sent with the first item, error or whole response, so every failure before it is
//! clean; a quarantined record is on disk before any byte after it is sent; nothing follows
//! [`Event::Failed`], and without [`Event::End`] the page is not whole.

use crate::adapt::item_filter::{FilterRules, ItemFilter};
use crate::adapt::quarantine::{keep_evidence, quarantine_early};
use crate::adapt::repository_facts::{facts_for, log_unresolved_fields};
use crate::adapt::request_adapter::{ListContext, UpstreamQuery};
use crate::adapt::requester::Requester;
use crate::client::request_context::RequestContext;
use crate::http::body::{BodyError, SourceBody};
use crate::http::circuit_breaker::Admission;
use crate::http::rate_limit::HostPermit;
use crate::page::attempt::{Page, ResponseStart, Verdict};
use crate::page::buffer::PageBuffer;
use crate::page::resume::{Resumer, Unproven};
use crate::per_record::headers::{Feed, HeaderError, HeaderFetcher, fetches_headers};
use crate::per_record::refetch::Refetcher;
use crate::per_record::torn_sections::TornSections;
use crate::session::decision::AttemptCounts;
use crate::session::delivery::Delivery;
use crate::session::identify_from_mapping::answer_from_mapping;
use crate::session::list_position::{ListPosition, ListStart, find_start};
use crate::session::outage::settle;
use crate::session::outcome::{AttemptEnd, Halt, unproven_failure};
use crate::session::progress::Progress;
use oaimend_base::clock;
use oaimend_oai::{Request, Verb};
use oaimend_repair::NotOai;
use oaimend_repository::lists::ItemHash;
use oaimend_repository::{Event, EventStream, Failure, Reason, ResponseWriter, Stop};
use tokio::sync::mpsc;

/// Answers a request. The session runs while its events are awaited.
pub(crate) fn start_session(context: RequestContext) -> EventStream {
    let (sender, events) = mpsc::channel(EVENTS_HELD);
    EventStream::new(events, Box::pin(run_session(context, sender)))
}

async fn run_session(context: RequestContext, events: mpsc::Sender<Event>) {
    let in_one_piece = context.in_one_piece.then_some(context.mapping.limits.spool_bytes_max);
    let mut session = ListSession {
        requester: Requester::new(&context),
        source_request: context.source_request.clone(),
        position: None,
        progress: Progress::default(),
        delivery: Delivery::new(ResponseWriter::new(events.clone(), in_one_piece)),
        sent_query: String::new(),
        counts: AttemptCounts::default(),
        filter: None,
        headers: HeaderFetcher::default(),
        refetcher: Refetcher::default(),
        torn: TornSections::default(),
        last_failure: None,
    };
    let end = session.answer().await;
    if !session.requester.quarantined.is_empty() {
        let quarantined = std::mem::take(&mut session.requester.quarantined);
        let _ = events.send(Event::Quarantined(quarantined)).await;
    }
    let summary = Box::new(session.requester.summary);
    // The receiver may be dropped; ignore.
    let _ = match end {
        Ok(()) => events.send(Event::End(summary)).await,
        Err(Stop::Failed(failure)) => events.send(Event::Failed(failure, summary)).await,
        Err(Stop::Gone) => Ok(()),
    };
}

/// One request of a harvester, over all attempts.
pub(crate) struct ListSession<'a> {
    pub(super) requester: Requester<'a>,
    /// The request to the source: not always the harvester's.
    pub(super) source_request: Request,
    /// Where the request is in its list.
    pub(super) position: Option<ListPosition>,
    pub(super) progress: Progress,
    pub(super) delivery: Delivery,
    /// The query of the last attempt.
    pub(super) sent_query: String,
    pub(super) counts: AttemptCounts,
    /// How the page of this attempt is filtered.
    pub(super) filter: Option<ItemFilter>,
    headers: HeaderFetcher,
    pub(super) refetcher: Refetcher,
    pub(super) torn: TornSections,
    /// Why the last attempt failed.
    pub(super) last_failure: Option<Failure>,
}

impl ListSession<'_> {
    /// Answers the request, unless the circuit breaker is open.
    async fn answer(&mut self) -> Result<(), Stop> {
        let context = self.requester.context;
        let mut admission = context.client.breaker().request(context.source_request.query());
        let end = self.answer_if_admitted(&mut admission).await;
        match settle(&mut self.requester, end, &admission, self.progress.has_walked()).await {
            // Boxed for the same reason as a subrequest: see `Requester::ask`.
            Err(Stop::Failed(failure)) if context.request.verb() == Verb::Identify => {
                Box::pin(answer_from_mapping(&mut self.requester, &mut self.delivery, failure)).await
            }
            end => end,
        }
    }

    async fn answer_if_admitted(&mut self, admission: &mut Admission) -> Result<(), Stop> {
        let context = self.requester.context;
        match find_start(context, self.requester.now()).await? {
            ListStart::Ask { source_request, delivered, position, known } => {
                self.progress = Progress::new(delivered, known);
                (self.source_request, self.position) = (source_request, position.map(|position| *position));
            }
            ListStart::Refuse(why) => return self.refuse_token(why).await,
        }
        // A list is read from its beginning, unless the request resumes it.
        let position = if self.source_request.is_resumption() { self.position.as_ref() } else { None };
        self.requester.facts = facts_for(context, &self.source_request, || position?.from());
        if self.requester.metadata_prefix.is_none() {
            self.requester.metadata_prefix = self.position.as_ref().and_then(ListPosition::metadata_prefix);
        }
        if let Some(error) = self.requester.check_granularity(&self.source_request).await {
            return self.refuse(error).await;
        }
        *admission = context.client.admit(self.requester.now(), *admission)?;
        self.requester.recheck_seconds(&self.source_request).await;
        let end = self.run().await;
        self.note_walk(&end);
        end
    }

    /// Requests the page once, and sends what is new of it.
    pub(super) async fn attempt(&mut self) -> Result<AttemptEnd, Stop> {
        match self.request_page().await {
            Ok(end) => Ok(end),
            Err(Halt::Unproven(why)) => Ok(AttemptEnd::failed(unproven_failure(&self.requester.name(), why))),
            Err(Halt::Stop(stop)) => Err(stop),
        }
    }

    async fn request_page(&mut self) -> Result<AttemptEnd, Halt> {
        let context = self.requester.context;
        self.forget_unsent();
        self.requester.summary.add_attempt();
        // The wait for a permit may take all of the time.
        self.requester.deadline.release();
        let is_list = self.source_request.verb().is_list();
        let permit = match context.client.acquire_permit(is_list, &mut self.requester.deadline).await {
            Ok(permit) => permit,
            Err(failure) => return Ok(AttemptEnd::failed(failure)),
        };
        self.reserve_for_substitute();
        let requested_at = clock::utc_datetime(self.requester.now());
        let UpstreamQuery { query, filter } = self.adapt_request();
        let Requester { method, deadline, .. } = &mut self.requester;
        let exchange = context.client.exchange(&query, method, &context.headers, deadline).await;
        self.note_window(filter.as_ref());
        (self.sent_query, self.filter) = (query, filter.map(ItemFilter::new));
        let exchange = match exchange {
            Ok(exchange) => exchange,
            Err(failure) => return Ok(AttemptEnd::failed(failure)),
        };
        let start = ResponseStart {
            name: context.client.name(),
            status: exchange.status,
            retry_after_secs: exchange.retry_after_secs,
            charset: exchange.charset.clone(),
            requested_at,
            http_date_secs: exchange.date_secs,
            request_token: Some(self.source_request.request_token().to_owned()),
            repository: self.requester.facts.clone(),
        };
        let (mut page, mut resumer) = self.begin_page(&start);
        let body = SourceBody::new(context.client.http(), &context.mapping, exchange);
        let error = if fetches_headers(&self.requester, &self.source_request) {
            self.feed_headers(&mut page, &mut resumer, body, permit).await?
        } else {
            self.feed(&mut page, &mut resumer, body, &start).await?
        };
        page.buffer.note_body_end();
        let mut verdict = page.finish(error.clone());
        if self.read_again(&mut page, &mut resumer, &start).await? {
            page.buffer.note_body_end();
            verdict = page.finish(error);
        }
        keep_evidence(context, &self.source_request, &mut page, &verdict);
        if let Some(version) = verdict.version() {
            self.requester.note_version(&self.source_request, version).await;
        }
        match verdict {
            Verdict::Whole(summary) => {
                self.requester.summary.note(&summary);
                log_unresolved_fields(&context.mapping.id, page.buffer.defects.unresolved());
                self.finish_page(&mut page, resumer).await
            }
            Verdict::Cut(failure, summary) => {
                // The engine's output for the cut end is dropped: only the rest of the page can tell where a
                // record ends that broke off in a section.
                page.buffer.drop_end();
                self.emit(&mut page, &mut resumer, false).await?;
                quarantine_early(&mut self.requester, &mut page).await?;
                let lost = summary.as_ref().map_or(0, |summary| summary.lost - summary.unread);
                let response = &mut self.requester.summary;
                if let Some(summary) = summary {
                    response.note(&summary);
                }
                let has_nothing =
                    failure.reason == Reason::NotOai(NotOai::NothingKept) && response.items.sent() == 0;
                response.end.has_only_quarantined =
                    is_list && has_nothing && response.items.quarantined() > 0 && lost == 0 && page.saw_end();
                if response.end.has_only_quarantined {
                    self.note_response_date(&page);
                }
                Ok(AttemptEnd::Failed { failure, lost })
            }
        }
    }

    /// The page of an attempt, before its body.
    fn begin_page(&self, start: &ResponseStart) -> (Page, Resumer) {
        let context = self.requester.context;
        let buffer = PageBuffer::new(ItemHash::new(&context.store.token_key), context.mapping.secrets());
        let start = ResponseStart { repository: self.requester.facts.clone(), ..start.clone() };
        let page = Page::new(&context.mapping, &context.echo, start, buffer);
        let resumer = self.progress.resumer(self.delivery.tags()).reporting_records(context.reports_records);
        (page, resumer)
    }

    /// Reads the page again from its beginning if it has items without a datestamp, and the source says now which
    /// is the lowest one. Returns whether it was read again.
    async fn read_again(
        &mut self,
        page: &mut Page,
        resumer: &mut Resumer,
        start: &ResponseStart,
    ) -> Result<bool, Halt> {
        if !page.buffer.defects.lacks_datestamp() || !self.requester.learn_lowest_datestamp().await {
            return Ok(false);
        }
        let received = page.received().ok_or(Unproven::Facts)?;
        let filter = self.filter.take().map(ItemFilter::restarted);
        self.forget_unsent();
        self.filter = filter;
        (*page, *resumer) = self.begin_page(start);
        page.push(received);
        Ok(true)
    }

    /// Feeds the page with the body, and sends its items. Returns the error that ended the body early.
    async fn feed(
        &mut self,
        page: &mut Page,
        resumer: &mut Resumer,
        mut body: SourceBody<'_>,
        start: &ResponseStart,
    ) -> Result<Option<BodyError>, Halt> {
        loop {
            let (since, spent) = (self.requester.now(), self.requester.deadline.spent());
            let sent_bytes = self.delivery.sent_bytes();
            match body.next(&mut self.requester.deadline).await {
                Ok(Some(piece)) => {
                    page.buffer.output.set_source(piece.clone());
                    page.push(piece);
                }
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(error)),
            }
            if body.has_ended() {
                // The end of the page is sent in one piece with the output before it.
                continue;
            }
            self.read_again(page, resumer, start).await?;
            self.emit(page, resumer, false).await?;
            if page.is_decided() {
                return Ok(None);
            }
            if self.delivery.sent_bytes() == sent_bytes {
                // Nothing was sent: no harvester slows this down, and none is seen to be gone.
                self.delivery.check_receiver()?;
                self.requester.deadline.count_since(since, spent);
                if self.requester.deadline.left().is_zero() {
                    return Ok(Some(body.timed_out()));
                }
            }
        }
    }

    /// Feeds the page with a record for each identifier of the body. Returns the error that ended it early.
    async fn feed_headers(
        &mut self,
        page: &mut Page,
        resumer: &mut Resumer,
        body: SourceBody<'_>,
        permit: HostPermit,
    ) -> Result<Option<BodyError>, Halt> {
        let started = match self.headers.start(&mut self.requester, body).await {
            Ok(started) => started,
            Err(error) => return Ok(Some(error)),
        };
        // Each record is requested with a permit of its own; another list may have this one meanwhile.
        drop(permit);
        let (start, headers) = started;
        page.push(start);
        let Some(mut headers) = headers else { return Ok(None) };
        loop {
            let has_begun = self.delivery.has_begun();
            let feed = match self.headers.next(&mut self.requester, &mut headers, has_begun).await {
                Ok(feed) => feed,
                Err(HeaderError::Source(error)) => {
                    return Ok(Some(BodyError { failure: error.failure, forgivable: false }));
                }
                Err(HeaderError::Fatal(failure)) => return Err(failure.into()),
            };
            match feed {
                Feed::End(end) => {
                    page.push(end);
                    return Ok(None);
                }
                Feed::Record(record) => {
                    self.renew_deadline();
                    page.push(record);
                    self.emit(page, resumer, false).await?;
                }
                Feed::Skipped => {
                    self.delivery.check_receiver()?;
                    self.renew_deadline();
                }
            }
        }
    }

    /// Drops the output of an earlier attempt of which nothing was sent.
    pub(super) fn forget_unsent(&mut self) {
        if !self.delivery.has_begun() {
            self.progress.forget_attempt();
            self.requester.summary.forget_response();
        }
        if !self.delivery.has_begun() {
            self.requester.quarantined.clear();
        }
        self.delivery.forget_waiting();
        self.filter = None;
    }

    /// The request to the source, adapted to it.
    pub(super) fn adapt_request(&self) -> UpstreamQuery {
        let position = if self.source_request.is_resumption() { self.position.as_ref() } else { None };
        let first = position.and_then(ListPosition::first_request);
        let list = ListContext {
            first: first.as_ref(),
            within: position.and_then(|position| position.within.as_ref()),
            metadata_prefix: self.requester.metadata_prefix.as_deref(),
        };
        self.requester.adapter.adapt(&self.source_request, list)
    }

    /// Remembers that the source is asked for a wider window than the harvester's.
    fn note_window(&mut self, filter: Option<&FilterRules>) {
        let window = filter.and_then(|filter| filter.window.clone());
        self.requester.summary.page.within_a_window = self.source_request.is_resumption() && window.is_some();
        // A list that was restarted at a later place has a narrower window.
        if let Some(position) = self.position.as_mut().filter(|position| position.place.page == 0)
            && !self.progress.is_restarted_here()
        {
            position.within = window;
        }
    }

    /// Notes where a walk through the list was left that has found nothing new yet, so that the next
    /// request continues it.
    fn note_walk(&self, end: &Result<(), Stop>) {
        if self.progress.is_restarted()
            && let Some(position) = &self.position
        {
            let is_left = end.is_err() && !self.delivery.has_begun() && self.source_request.is_resumption();
            position.note_walk(self.requester.context, is_left.then_some(&self.source_request));
        }
    }

    /// Reserves half of the time that is left for single records, if the page may need them.
    fn reserve_for_substitute(&mut self) {
        if self.requester.may_fetch_per_record() && !self.is_per_record() {
            self.requester.deadline.reserve_half();
        }
    }

    /// Gives the next record the full time, after one was received.
    pub(super) fn renew_deadline(&mut self) {
        self.requester.deadline.renew(self.requester.context.mapping.limits.first_record_timeout);
        self.reserve_for_substitute();
    }
}

/// Events held between the source and a slow harvester: about a MiB at most.
const EVENTS_HELD: usize = 8;
