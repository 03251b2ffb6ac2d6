//! Makes attempts at a page, and carries out what is [decided](decide) after each of them.

use crate::adapt::capability_detection::Diagnosis;
use crate::session::decision::{Facts, Next, Remedy, Sent, decide};
use crate::session::identify_from_mapping::refused_identify;
use crate::session::list_session::ListSession;
use crate::session::outcome::AttemptEnd;
use crate::session::restart::plan_restart;
use oaimend_oai::ErrorCode;
use oaimend_repair::NotOai;
use oaimend_repository::{Failure, Reason, Stop};
use std::time::Duration;

/// The effect of a remedy.
enum RemedyEffect {
    /// The request is sent again, and differs now.
    Changed,
    /// The response was ended.
    Ended,
    /// Nothing.
    Nothing,
    /// Nothing, and the page fails for this reason now.
    Failed(Failure),
}

/// How a session goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// With a further attempt.
    Attempt,
    /// The response was ended.
    End,
}

impl ListSession<'_> {
    /// Makes attempts until the response is whole, or as whole as it can get.
    pub(super) async fn run(&mut self) -> Result<(), Stop> {
        loop {
            let reached = self.requester.summary.items.delivered();
            self.counts.attempts += 1;
            // Boxed for the same reason as a subrequest: see `Requester::ask`.
            let mut end = if self.is_per_record() {
                Box::pin(self.substitute_page(None)).await?
            } else {
                self.attempt().await?
            };
            self.note_end(&mut end, reached);
            if self.carry_out(end).await? == Course::End {
                return Ok(());
            }
        }
    }

    /// Counts the attempt. `reached` is the number of items before it.
    fn note_end(&mut self, end: &mut AttemptEnd, reached: u64) {
        match end {
            AttemptEnd::NextPage(_) => self.counts.pages_skipped += 1,
            AttemptEnd::Failed { failure, lost } if self.sent().can_be_resumed(*lost) => {
                self.replace_by_cause(failure);
                if self.delivery.has_begun() && self.requester.summary.items.delivered() > reached {
                    self.counts.attempts = 1;
                    self.renew_deadline();
                }
                self.counts.unproven += u32::from(failure.reason == Reason::NotResumable);
                if !self.facts(Some(failure), &[]).may_fetch_records_after(failure) {
                    self.requester.deadline.release();
                }
            }
            _ => {}
        }
    }

    /// Does what follows an attempt.
    async fn carry_out(&mut self, mut end: AttemptEnd) -> Result<Course, Stop> {
        let mut tried = Vec::new();
        loop {
            let failure = if let AttemptEnd::Failed { failure, .. } = &end { Some(failure) } else { None };
            match decide(&end, &self.facts(failure, &tried)) {
                Next::Finish => {
                    self.requester.context.client.methods.note_success(&self.requester.method);
                    self.delivery.finish().await?;
                    return Ok(Course::End);
                }
                Next::Nothing => return Ok(Course::End),
                Next::SkipPage(token) => {
                    self.skip_page(token)?;
                    return Ok(Course::Attempt);
                }
                Next::FailWithoutItems => {
                    self.delivery.check_receiver()?;
                    return Err(self.failure_without_items().into());
                }
                Next::Restart => {
                    if self.restart_list().await? {
                        self.counts.attempts = 0;
                        return Ok(Course::Attempt);
                    }
                    end.take_as_received();
                }
                Next::Diagnose(code) => match self.requester.diagnose_error(&self.source_request, code).await
                {
                    Diagnosis::Reword => {
                        self.counts.attempts = 0;
                        return Ok(Course::Attempt);
                    }
                    Diagnosis::Error(error) => {
                        self.refuse(error).await?;
                        return Ok(Course::End);
                    }
                    Diagnosis::AsReceived => end.take_as_received(),
                },
                Next::SendError(code, response) => {
                    self.send_error(code, response).await?;
                    return Ok(Course::End);
                }
                Next::RetryAfter(wait, failure) => {
                    self.log_retry(failure, wait);
                    self.requester.deadline.pause(wait).await;
                    return Ok(Course::Attempt);
                }
                // Boxed for the same reason as a subrequest.
                Next::Try(remedy, failure) => match Box::pin(self.try_remedy(remedy, failure)).await? {
                    RemedyEffect::Changed => {
                        self.counts.note_change(remedy);
                        return Ok(Course::Attempt);
                    }
                    RemedyEffect::Ended => return Ok(Course::End),
                    RemedyEffect::Nothing => tried.push(remedy),
                    RemedyEffect::Failed(failure) => {
                        tried.push(remedy);
                        end = AttemptEnd::failed(failure);
                    }
                },
                Next::Fail(failure) => return Err(failure.clone().into()),
            }
        }
    }

    /// Skips a page without new items: the next one is requested.
    fn skip_page(&mut self, token: &str) -> Result<(), Stop> {
        self.delivery.check_receiver()?;
        self.source_request = self.source_request.with_token(token.to_owned());
        self.progress.begin_next_page(self.delivery.has_begun());
        self.counts.attempts = 0;
        Ok(())
    }

    /// Sends the error response of the source.
    async fn send_error(&mut self, code: Option<ErrorCode>, response: &[u8]) -> Result<(), Stop> {
        if let Some(failure) = refused_identify(&self.requester, code) {
            return Err(failure.into());
        }
        self.requester.summary.page.error = code;
        self.delivery.send_all(response.to_vec()).await
    }

    async fn try_remedy(&mut self, remedy: Remedy, failure: &Failure) -> Result<RemedyEffect, Stop> {
        let has_changed = match remedy {
            Remedy::OtherMethod => self.requester.change_method(failure),
            Remedy::RestartChanged | Remedy::RestartExpired => self.restart_list().await?,
            Remedy::OtherForm => self.reword(failure).await,
            Remedy::PrefixWithToken => {
                self.requester.try_form_after_error(&self.source_request, Some(ErrorCode::BadArgument))
            }
            Remedy::SingleRecords => return self.fetch_single_records(failure).await,
            Remedy::ProvenError => {
                let Some(error) = self.requester.diagnose_failure(failure).await else {
                    return Ok(RemedyEffect::Nothing);
                };
                self.refuse(error).await?;
                return Ok(RemedyEffect::Ended);
            }
            Remedy::OwnToken => {
                let is_closed = self.close_with_own_token(failure).await?;
                return Ok(if is_closed { RemedyEffect::Ended } else { RemedyEffect::Nothing });
            }
        };
        Ok(if has_changed { RemedyEffect::Changed } else { RemedyEffect::Nothing })
    }

    /// Makes the page of its records.
    async fn fetch_single_records(&mut self, failure: &Failure) -> Result<RemedyEffect, Stop> {
        let summary = &self.requester.summary;
        let whole = summary
            .end
            .has_only_quarantined
            .then(|| (summary.clone(), std::mem::take(&mut self.requester.quarantined)));
        let AttemptEnd::Failed { failure, .. } = self.substitute_page(Some(failure.clone())).await? else {
            self.delivery.finish().await?;
            return Ok(RemedyEffect::Ended);
        };
        if let Some((summary, quarantined)) = whole
            && !self.delivery.has_begun()
        {
            (self.requester.summary, self.requester.quarantined) = (summary, quarantined);
        }
        Ok(RemedyEffect::Failed(failure))
    }

    /// The facts after an attempt. `tried` are the remedies that had no effect.
    fn facts<'a>(&'a self, failure: Option<&Failure>, tried: &'a [Remedy]) -> Facts<'a> {
        Facts {
            source_request: &self.source_request,
            sent: self.sent(),
            counts: self.counts,
            has_position: self.position.is_some(),
            is_restarted: self.progress.is_restarted(),
            has_other_method: failure.is_some_and(|failure| self.requester.other_method(failure).is_some()),
            may_fetch_records: self.requester.may_fetch_per_record() && !self.is_per_record(),
            left: self.requester.deadline.left(),
            random: self.requester.deadline.chance(),
            tried,
        }
    }

    /// How much of the response was sent.
    fn sent(&self) -> Sent {
        let can_continue = self.requester.context.request.verb().is_list()
            && self.progress.delivered.is_complete()
            && self.delivery.can_continue();
        match (self.delivery.has_begun(), can_continue) {
            (false, _) => Sent::Nothing,
            (true, true) => Sent::OpenList,
            (true, false) => Sent::Final,
        }
    }

    /// Begins the list again, if there is a point for that. Returns whether there is one.
    async fn restart_list(&mut self) -> Result<bool, Stop> {
        let context = self.requester.context;
        let Some(position) = &mut self.position else { return Ok(false) };
        let Some(plan) = plan_restart(context, position, self.progress.restart_point()).await? else {
            return Ok(false);
        };
        self.source_request = plan.source_request;
        position.note_restart();
        self.progress.restart(plan.point, plan.known, self.delivery.has_begun());
        tracing::info!(
            repo = context.mapping.id,
            request = context.request.query(),
            "asked" = self.source_request.query(),
            "a list cannot be continued; it is requested again from an earlier point"
        );
        Ok(true)
    }

    /// Rewords the request if the failure shows how. Returns whether it differs now.
    async fn reword(&mut self, failure: &Failure) -> bool {
        self.requester.learn_from_failure(&self.source_request, failure).await;
        let is_reworded = self.adapt_request().query != self.sent_query;
        self.counts.rewordings += u32::from(is_reworded);
        is_reworded
    }

    /// Replaces the failure by its cause: if the limiter refused a further attempt, that is the failure before.
    fn replace_by_cause(&mut self, failure: &mut Failure) {
        let before = self.last_failure.take();
        if failure.reason == Reason::Busy
            && let Some(before) = before
        {
            *failure = before;
        }
        self.last_failure = Some(failure.clone());
    }

    fn failure_without_items(&self) -> Failure {
        let (name, pages) = (self.requester.name(), self.counts.pages_skipped);
        let details = format!("{name} sent {pages} pages without a new item one after the other");
        Failure::new(Reason::NotOai(NotOai::NothingKept), details)
    }

    fn log_retry(&self, failure: &Failure, wait: Duration) {
        tracing::debug!(
            repo = self.requester.context.mapping.id,
            attempt = self.requester.summary.attempts(),
            wait_millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            reason = failure.reason.name(),
            "the request is retried"
        );
    }
}
