//! Answers with a page that is made of single records, in place of one that fails every time.

use crate::adapt::quarantine::quarantine_and_count;
use crate::page::attempt::Verdict;
use crate::page::resume::KnownItems;
use crate::per_record::headers::LOST_IN_A_ROW_MAX;
use crate::per_record::page_fallback::{
    Continuation, FetchedRecord, HeaderList, RECORDS_MAX, fetch_listed_record, find_continuation,
    find_headers, find_headers_of_page, per_record_failure,
};
use crate::per_record::substitute_page::SubstitutePage;
use crate::session::list_position::{PageEnd, PageRest};
use crate::session::list_session::ListSession;
use crate::session::outcome::{AttemptEnd, Halt};
use crate::xml::envelope_tags::EnvelopeTags;
use oaimend_base::clock;
use oaimend_oai::{Request, Verb};
use oaimend_repository::{Failure, Stop};
use oaimend_store::QuarantinedRecord;

impl ListSession<'_> {
    /// Whether the list is followed by its headers: a token of ours says so.
    pub(super) fn is_per_record(&self) -> bool {
        self.requester.context.request.verb() == Verb::ListRecords
            && self.source_request.verb() == Verb::ListIdentifiers
    }

    /// Answers with single records. `failure` is the failure of the page.
    pub(super) async fn substitute_page(&mut self, failure: Option<Failure>) -> Result<AttemptEnd, Stop> {
        self.forget_unsent();
        self.requester.deadline.release();
        let failure = failure.unwrap_or_else(|| self.per_record_failure("the headers of the list"));
        if self.requester.metadata_prefix.is_none() || self.position.is_none() {
            return Ok(AttemptEnd::failed(failure));
        }
        let Some(mut headers) = self.find_missing_headers().await? else {
            return Ok(AttemptEnd::failed(failure));
        };
        tracing::info!(
            repo = self.requester.context.mapping.id,
            request = self.requester.context.request.query(),
            because = failure.details_for_operators(),
            "a page fails every time; its records are fetched one by one"
        );
        loop {
            let before = self.progress.delivered.hashes().len();
            let mut page = SubstitutePage::new(&self.requester, self.delivery.tags(), &failure);
            let stopped = self.fill(&mut page, &headers).await?;
            let has_withdrawn = self.progress.delivered.hashes().len() > before;
            if page.is_empty && has_withdrawn && stopped.is_none() {
                // All records of the page are withdrawn, and an empty page is no list: try the next headers.
                if headers.items.len() <= RECORDS_MAX
                    && let Some(next) = headers.next()
                    && let Some(more) = self.find_headers(next, KnownItems::new()).await
                {
                    headers = more;
                    continue;
                }
            }
            if page.is_empty {
                let is_end = stopped.is_none() && headers.token.is_none();
                return if is_end && (has_withdrawn || self.is_per_record()) {
                    self.end_without_records(failure).await
                } else {
                    Ok(AttemptEnd::failed(stopped.unwrap_or(failure)))
                };
            }
            let continuation = match (&stopped, headers.next()) {
                (Some(_), _) => Continuation::SamePage(headers.source_request),
                (None, _) if headers.items.len() > RECORDS_MAX => {
                    Continuation::SamePage(headers.source_request)
                }
                (None, Some(next)) => find_continuation(&mut self.requester, next).await,
                (None, None) => Continuation::End,
            };
            return self.close_substitute(page, continuation, stopped.unwrap_or(failure)).await;
        }
    }

    /// The headers of what comes next in the list; `None` if nothing proves that they are that.
    async fn find_missing_headers(&mut self) -> Result<Option<HeaderList>, Stop> {
        // Lists of identifiers of 1.x are no headers, and lists of records are what fails.
        if self.requester.adapter.is_version_one() {
            return Ok(None);
        }
        let Some(position) = &self.position else { return Ok(None) };
        let restart = position.find_first(self.requester.context).await?;
        let mut known = restart.as_ref().map(|(_, known)| known.clone()).unwrap_or_default();
        let delivered = self.progress.delivered.hashes();
        for hash in delivered.iter().chain(&self.refetcher.listed_as(delivered)) {
            *known.entry(*hash).or_insert(0) += 1;
        }
        let source_request = self.source_request.to_list_identifiers();
        if self.is_per_record() || !self.source_request.is_resumption() {
            if let Some(headers) = self.find_headers(source_request, known.clone()).await {
                return Ok(Some(headers));
            }
        } else if !self.progress.delivered.is_empty() {
            let within = self.position.as_ref().and_then(|position| position.within.as_ref());
            let items = (self.progress.delivered.hashes(), &mut known);
            if let Ok(headers) =
                find_headers_of_page(&mut self.requester, &source_request, within, items).await
            {
                return Ok(headers);
            }
        }
        match restart {
            Some((first, _)) if self.source_request.is_resumption() => {
                Ok(self.find_headers(first.to_list_identifiers(), known).await)
            }
            _ => Ok(None),
        }
    }

    async fn find_headers(&mut self, source_request: Request, known: KnownItems) -> Option<HeaderList> {
        let within = self.position.as_ref().and_then(|position| position.within.as_ref());
        find_headers(&mut self.requester, source_request, within, known).await
    }

    /// Fetches the records of these headers. Returns the failure that ended it early.
    async fn fill(
        &mut self,
        page: &mut SubstitutePage,
        headers: &HeaderList,
    ) -> Result<Option<Failure>, Stop> {
        // An earlier substitute page of this list got records by the same means.
        let mut was_any_fetched = self.is_per_record() && self.progress.had_items();
        for item in headers.items.iter().take(RECORDS_MAX) {
            match fetch_listed_record(&mut self.requester, headers, item, &page.place).await {
                FetchedRecord::Record(record) => {
                    was_any_fetched |= !item.deleted;
                    if !item.deleted {
                        self.give_up_lost(page).await?;
                    }
                    self.add_record(page, item.hash, &record).await?;
                }
                FetchedRecord::Withdrawn => self.progress.delivered.note(item.hash),
                FetchedRecord::Lost(record) => page.lost.push((item.hash, record)),
                FetchedRecord::Stopped(failure) => return Ok(Some(failure)),
            }
            if page.lost.len() >= LOST_IN_A_ROW_MAX {
                return Ok(Some(self.per_record_failure("its records")));
            }
        }
        if page.lost.is_empty() {
            return Ok(None);
        }
        // No record after the last ones proves that the source works.
        let is_alive = was_any_fetched && self.requester.ask(&Request::identify(), 1, 1).await.is_ok();
        if !is_alive {
            return Ok(Some(self.per_record_failure("its records")));
        }
        self.give_up_lost(page).await?;
        Ok(None)
    }

    /// Sends a record.
    async fn add_record(&mut self, page: &mut SubstitutePage, hash: u64, record: &str) -> Result<(), Stop> {
        page.push(record);
        self.emit(&mut page.page, &mut page.resumer, false).await.map_err(|halt| match halt {
            Halt::Unproven(_) => self.per_record_failure("the rest of it").into(),
            Halt::Stop(stop) => stop,
        })?;
        self.progress.delivered.note(hash);
        if self.delivery.has_begun() {
            let time = self.requester.context.mapping.limits.first_record_timeout;
            self.requester.deadline.renew(time);
        }
        Ok(())
    }

    /// Quarantines the lost records: the source gives the others.
    async fn give_up_lost(&mut self, page: &mut SubstitutePage) -> Result<(), Stop> {
        if page.lost.is_empty() {
            return Ok(());
        }
        let (hashes, records): (Vec<u64>, Vec<QuarantinedRecord>) = page.lost.drain(..).unzip();
        quarantine_and_count(&mut self.requester, records).await?;
        for hash in hashes {
            self.progress.delivered.note(hash);
        }
        Ok(())
    }

    /// Ends a substitute page.
    async fn close_substitute(
        &mut self,
        mut page: SubstitutePage,
        continuation: Continuation,
        failure: Failure,
    ) -> Result<AttemptEnd, Stop> {
        let (context, now) = (self.requester.context, self.requester.now());
        let Some(position) = self.position.clone() else { return Err(failure.into()) };
        for hash in self.refetcher.listed_as(self.progress.delivered.hashes()) {
            self.progress.delivered.note(hash);
        }
        let delivered = &self.progress.delivered;
        let token = match &continuation {
            Continuation::End => context.request.is_resumption().then(String::new),
            Continuation::SourceToken(token) => Some(quick_xml::escape::escape(token).into_owned()),
            Continuation::SamePage(source_request) => {
                position
                    .own_token(context, PageRest { source_request, delivered, is_restarted: false }, now)
                    .await
            }
            Continuation::NextPage(source_request) => {
                position.own_token_for_next_page(context, source_request, delivered, now).await
            }
        };
        let is_ours = matches!(continuation, Continuation::SamePage(_) | Continuation::NextPage(_));
        if is_ours && token.is_none() {
            return Err(failure.into());
        }
        page.close(token.as_deref());
        let Verdict::Whole(summary) = page.page.finish(None) else { return Err(failure.into()) };
        self.requester.summary.note(&summary);
        match self.emit(&mut page.page, &mut page.resumer, true).await {
            Ok(()) => {}
            Err(Halt::Unproven(_)) => return Err(failure.into()),
            Err(Halt::Stop(stop)) => return Err(stop),
        }
        self.requester.summary.page.is_ambiguous = position.is_ambiguous();
        self.requester.summary.page.token = match &continuation {
            Continuation::SourceToken(token) => Some(token.clone()),
            _ => token.filter(|token| !token.is_empty()),
        };
        let delivered = &self.progress.delivered;
        match continuation {
            Continuation::SourceToken(token) => {
                let end = PageEnd { next: Some(token), ..PageEnd::default() };
                position.note(context, delivered, end, now);
            }
            Continuation::End => position.note(context, delivered, PageEnd::default(), now),
            Continuation::SamePage(_) | Continuation::NextPage(_) => {
                self.requester.summary.end.continued = Some(failure);
            }
        }
        self.progress.suspect(None);
        self.delivery.send_waiting(200).await?;
        Ok(AttemptEnd::Whole)
    }

    /// Ends a list of which all remaining records are withdrawn.
    async fn end_without_records(&mut self, failure: Failure) -> Result<AttemptEnd, Stop> {
        let (context, now) = (self.requester.context, self.requester.now());
        let has_begun = self.delivery.has_begun();
        if !has_begun && !context.request.is_resumption() {
            // Only the source can say that nothing is left of a list from its beginning on.
            return Ok(AttemptEnd::failed(failure));
        }
        let Some(position) = self.position.clone() else { return Ok(AttemptEnd::failed(failure)) };
        let tags = self.delivery.tags().unwrap_or_else(|| EnvelopeTags::for_own_list(context.request.verb()));
        let head = (!has_begun).then(|| tags.open(&clock::utc_datetime(now), &context.echo.base_url));
        let end = tags.close_with(context.request.is_resumption().then_some(""));
        position.note(context, &self.progress.delivered, PageEnd::default(), now);
        let output = [head.unwrap_or_default().into_bytes(), end].concat();
        self.delivery.send(output.into(), 200).await?;
        Ok(AttemptEnd::Whole)
    }

    fn per_record_failure(&self, what: &str) -> Failure {
        per_record_failure(&self.requester, what)
    }
}
