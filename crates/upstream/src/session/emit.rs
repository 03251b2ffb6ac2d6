//! Sends the items of a page, and ends the response: whole, with an error, or with a token of ours.

use crate::adapt::error_diagnosis::DiagnosedError;
use crate::adapt::item_filter::ItemFilter;
use crate::adapt::quarantine::{formerly_broken, quarantine, quarantine_early, resolve_entries};
use crate::adapt::repository_facts::{fit_repaired_datestamps, note_profile};
use crate::page::attempt::Page;
use crate::page::resume::{Emitted, Resumer, Unproven};
use crate::session::end_of_list::has_all_items;
use crate::session::identify_from_mapping::refused_identify;
use crate::session::list_position::{PageEnd, PageRest};
use crate::session::list_session::ListSession;
use crate::session::outcome::{AttemptEnd, Halt, Meaning};
use crate::xml::envelope_tags::EnvelopeTags;
use oaimend_base::clock;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{ErrorCode, Request, Verb, error_response};
use oaimend_repair::NotOai;
use oaimend_repository::{ByteRope, Failure, ListAge, Stop, for_harvesters};
use oaimend_rules::HarvestMark;

impl ListSession<'_> {
    /// Sends the engine's output, once the quarantined records in it are on disk. `ended`: there is no more.
    pub(super) async fn emit(
        &mut self,
        page: &mut Page,
        resumer: &mut Resumer,
        ended: bool,
    ) -> Result<(), Halt> {
        if (resumer.is_replay() || self.filter.is_some()) && page.is_inside_item() {
            return Err(Unproven::Held.into());
        }
        let Self { requester, source_request, refetcher, torn, .. } = self;
        torn.split_torn_records(requester, &mut page.buffer, resumer).await;
        refetcher.replace_broken_records(requester, &mut page.buffer, resumer).await;
        refetcher.replace_lower_bounds(requester, source_request, &mut page.buffer, resumer).await;
        fit_repaired_datestamps(requester, &mut page.buffer, resumer).await;
        note_profile(requester, &mut page.buffer, ended).await;
        self.note_list_age(page);
        if self.filter.as_mut().is_some_and(|filter| !filter.apply(&mut page.buffer, ended)) {
            return Err(Unproven::Held.into());
        }
        let formerly_broken = formerly_broken(self.requester.context, &page.buffer).await;
        let had_items = !self.progress.delivered.is_empty();
        let mut emitted = resumer.take(&mut page.buffer, &mut self.progress.delivered, ended)?;
        emitted.count_in(&mut self.requester.summary);
        let Emitted { mut output, items, quarantined, hashes, records, .. } = emitted;
        if !quarantined.is_empty() {
            quarantine(&mut self.requester, quarantined).await?;
        }
        resolve_entries(&self.requester, formerly_broken).await;
        self.delivery.note_items(records, std::mem::take(&mut self.requester.quarantined));
        if !had_items && let (Some(position), Some(first)) = (&self.position, hashes.first()) {
            self.progress.suspect(position.find_circle(self.requester.context, *first).await?);
        }
        self.progress.clear_suspicion_by(&hashes);
        if !self.delivery.has_begun() {
            // The head waits for the first item that is new: until then every failure is clean.
            self.delivery.hold(output, page.buffer.head.error());
            let has_nothing =
                self.requester.summary.items.sent() == 0 && items == 0 && !page.is_inside_item();
            let waits_for_proof =
                self.progress.is_suspected() && self.delivery.waiting().len() < WAITING_BYTES_MAX;
            if has_nothing || waits_for_proof {
                return Ok(());
            }
            output = self.delivery.take_waiting();
            // From here on, the time bounds each silence and not the whole response.
            self.renew_deadline();
        }
        self.delivery.note_tags(resumer.tags());
        self.note_response_date(page);
        self.delivery.send(output, page.status).await?;
        // Output after the last item of a page that is requested again waits for the end of the page.
        self.delivery.note_document_closed(!resumer.is_replay() && page.is_document_closed());
        Ok(())
    }

    /// Ends a page that the engine found whole.
    pub(super) async fn finish_page(
        &mut self,
        page: &mut Page,
        mut resumer: Resumer,
    ) -> Result<AttemptEnd, Halt> {
        let is_list = self.requester.context.request.verb().is_list();
        let mut token = page.buffer.token.value();
        let had_filtered_items = self.filter.as_ref().is_some_and(ItemFilter::has_met);
        if resumer.is_replay() && !resumer.has_items() && !page.buffer.has_items() && !had_filtered_items {
            // An error in place of a page that contains delivered items.
            let error = page.buffer.output.take().into_vec();
            let is_unknown = page.buffer.head.error() == Some(ErrorCode::BadResumptionToken);
            let expired = self.source_request.is_resumption() && !self.delivery.has_begun() && is_unknown;
            return if expired { Ok(AttemptEnd::expired(error)) } else { Err(Unproven::Items.into()) };
        }
        quarantine_early(&mut self.requester, page).await?;
        if self.progress.is_restarted()
            && self.delivery.has_begun()
            && let Some(token) = &token
        {
            self.emit(page, &mut resumer, false).await?;
            if !resumer.has_new_items() {
                self.progress.set_known(resumer.into_missing());
                return Ok(AttemptEnd::NextPage(token.clone()));
            }
        }
        let is_concluded = match &token {
            // Boxed, because few lists announce a size and a session reserves room for all that it may await.
            Some(next) if page.buffer.token.progress().1.is_some() => {
                Box::pin(has_all_items(self, page, next)).await? && page.buffer.empty_token()
            }
            _ => false,
        };
        if is_concluded {
            token = None;
        }
        self.emit(page, &mut resumer, true).await?;
        if is_list && self.requester.summary.items.sent() == 0 {
            if self.requester.summary.items.quarantined() > 0 {
                // The mirror goes on after such a page, and counts its items as missing.
                self.requester.summary.end.has_only_quarantined = true;
                self.requester.summary.page.token = token;
                self.requester.quarantined.extend(self.delivery.take_quarantined());
                self.note_response_date(page);
                return Ok(AttemptEnd::failed(page.no_content_failure(NotOai::NothingKept)));
            }
            let is_unknown = self.delivery.waiting_error() == Some(ErrorCode::BadResumptionToken);
            if self.source_request.is_resumption() && is_unknown {
                let code = page.buffer.head.refusal();
                if self.requester.is_doubtful(&self.source_request, code) {
                    let response = self.delivery.take_waiting().into_vec();
                    return Ok(AttemptEnd::Error { code, response, meaning: Meaning::Doubtful });
                }
                return Ok(AttemptEnd::expired(self.delivery.take_waiting().into_vec()));
            }
            if let Some(token) = token {
                self.progress.set_known(resumer.into_missing());
                return Ok(AttemptEnd::NextPage(token));
            }
            if let Some(last_page) = resumer.empty_last_page() {
                self.delivery.replace_waiting(last_page.into(), None);
            }
        }
        if self.is_filtered_empty() {
            let (end, error) = self.empty_list();
            self.delivery.replace_waiting(end.into(), error);
        }
        let code = self.delivery.waiting_error();
        self.requester.note_response(&self.source_request, code).await;
        if !self.delivery.has_begun()
            && self.requester.summary.items.sent() == 0
            && self.requester.is_doubtful(&self.source_request, code)
        {
            let response = self.delivery.take_waiting().into_vec();
            return Ok(AttemptEnd::Error { code, response, meaning: Meaning::Doubtful });
        }
        if let Some(failure) = refused_identify(&self.requester, code) {
            return Err(failure.into());
        }
        if self.progress.take_suspicion() && self.goes_in_circles(token.as_deref()).await? {
            return Ok(self.refuse_circle().await?);
        }
        if !self.delivery.has_begun() && self.delivery.waiting().is_empty() {
            // Without a byte there is no response, whatever the verdict.
            return Ok(AttemptEnd::failed(page.no_content_failure(NotOai::Empty)));
        }
        self.note_response_date(page);
        let summary = &mut self.requester.summary;
        summary.page.progress = page.buffer.token.progress();
        summary.page.total_elements = page.buffer.token.total_elements();
        summary.page.token = token.clone();
        summary.page.token_expires = page.buffer.token.expires().map(str::to_owned);
        summary.page.error = code;
        summary.end.has_concluded_end = is_concluded;
        let sizes = (summary.page.progress.1, summary.page.total_elements);
        if let Some(position) = &self.position {
            let last_datestamp = page.buffer.observed.last_datestamp().map(str::to_owned);
            let (context, now) = (self.requester.context, self.requester.now());
            let names = page.buffer.observed.take_names();
            let end = PageEnd { next: token, last_datestamp, sizes, names };
            position.note(context, &self.progress.delivered, end, now);
            self.requester.summary.page.is_ambiguous = position.is_ambiguous();
        }
        self.delivery.send_waiting(page.status).await?;
        Ok(AttemptEnd::Whole)
    }

    /// Notes the responseDate of the first page that is sent.
    pub(super) fn note_response_date(&mut self, page: &Page) {
        self.requester.summary.page.note_response_date(page.buffer.head.response_date());
    }

    /// Notes the state that the list shows, and the times of this page.
    fn note_list_age(&mut self, page: &Page) {
        let facts = &mut self.requester.summary.page;
        facts.note_http_date(page.http_date_secs());
        if let Some(latest) = page.buffer.observed.latest_datestamp() {
            facts.note_datestamp(latest);
        }
        let is_harvest = self.requester.context.request.verb().is_harvest();
        let shows_state = matches!(page.buffer.head.error(), None | Some(ErrorCode::NoRecordsMatch));
        if !is_harvest || !shows_state {
            return;
        }
        let Some(position) = &mut self.position else { return };
        let clocks = page.clocks();
        let granularity = self.requester.facts.granularity.unwrap_or(Granularity::Day);
        let of_page = HarvestMark::new(&clocks, granularity).from_secs();
        let age_secs = if position.place.page == 0 { 0 } else { UNKNOWN_LIST_SECS_MAX };
        let state_secs = *position.state_secs.get_or_insert(of_page.minus(age_secs));
        let response_date_secs = clocks.response_date_secs.unwrap_or(clocks.sent_at_secs);
        self.delivery.set_list_age(ListAge { state_secs, response_date_secs });
    }

    /// Whether the end of a list was reached, and no new item is within the harvester's window.
    fn is_filtered_empty(&self) -> bool {
        let Some(filter) = &self.filter else { return false };
        let is_token_alone = !filter.has_met()
            && self.requester.summary.items.sent() == 0
            && self.delivery.waiting_error().is_none();
        filter.has_dropped_all() || is_token_alone && self.requester.context.request.verb() != Verb::ListSets
    }

    /// The response for a list of which nothing is left: its end, or an error with its code.
    fn empty_list(&self) -> (Vec<u8>, Option<ErrorCode>) {
        let (context, date) = (self.requester.context, clock::utc_datetime(self.requester.now()));
        if let Some(tags) = self.delivery.tags() {
            return (tags.close_with(Some("")), None);
        }
        if context.request.is_resumption() {
            let tags = EnvelopeTags::for_own_list(context.request.verb());
            let head = tags.open(&date, &context.echo.base_url).into_bytes();
            return ([head, tags.close_with(Some(""))].concat(), None);
        }
        let (code, text) = (ErrorCode::NoRecordsMatch, "no record lies within the window that was asked for");
        (error_response(&context.echo, &date, code, text).into_bytes(), Some(code))
    }

    /// Closes a list of which the source does not give the rest with a token of ours for the rest. Returns whether there
    /// can be such a token.
    pub(super) async fn close_with_own_token(&mut self, failure: &Failure) -> Result<bool, Stop> {
        let (Some(position), Some(tags)) = (&self.position, self.delivery.tags()) else { return Ok(false) };
        let rest = PageRest {
            source_request: &self.source_request,
            delivered: &self.progress.delivered,
            is_restarted: self.progress.is_restarted(),
        };
        let token = position.own_token(self.requester.context, rest, self.requester.now()).await;
        let Some(token) = token else { return Ok(false) };
        let end = tags.close_with(Some(&token));
        let summary = &mut self.requester.summary;
        (summary.end.continued, summary.page.token) = (Some(failure.clone()), Some(token));
        self.delivery.send_all(end).await?;
        Ok(true)
    }

    /// Answers with an error.
    pub(super) async fn refuse(&mut self, (code, why): DiagnosedError) -> Result<(), Stop> {
        let now = clock::utc_datetime(self.requester.now());
        let error = error_response(&self.requester.context.echo, &now, code, &why);
        self.requester.summary.page.error = Some(code);
        self.delivery.send_all(error.into_bytes()).await
    }

    pub(super) async fn refuse_token(&mut self, why: &str) -> Result<(), Stop> {
        self.refuse((ErrorCode::BadResumptionToken, why.to_owned())).await
    }

    async fn refuse_circle(&mut self) -> Result<AttemptEnd, Stop> {
        let name = for_harvesters(&self.requester.name());
        if let Some(position) = &self.position {
            position.note_circle(self.requester.context, self.requester.now());
        }
        self.delivery.replace_waiting(ByteRope::default(), None);
        self.refuse_token(&format!(
            "{name} goes in circles: its token leads back to a page of the same list"
        ))
        .await?;
        Ok(AttemptEnd::Refused)
    }

    /// Whether the token on a page leads back to the page or an earlier one of its list.
    async fn goes_in_circles(&self, token: Option<&str>) -> Result<bool, Stop> {
        let (Some(position), Some(token)) = (&self.position, token) else { return Ok(false) };
        Ok(self.is_own_token(token) || position.leads_back(self.requester.context, token).await?)
    }

    /// Whether the token on a page is the one that the page was requested by.
    fn is_own_token(&self, token: &str) -> bool {
        self.source_request == Request::with_token(&self.source_request, token.to_owned())
    }
}

/// The age of a list whose beginning is not known, in seconds: it began elsewhere, or paused for days. An older list
/// may lose changes for harvesters that continue from it.
const UNKNOWN_LIST_SECS_MAX: i64 = 30 * 86_400;
/// Bytes that are held until it is clear that a list does not go in circles.
const WAITING_BYTES_MAX: usize = 32 << 20;
