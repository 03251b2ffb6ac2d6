//! The ways on when a page cannot be had as it was asked for: the next one, the
//! list begun anew, a token of ours; or an end that nobody takes for the list's.

use crate::oai::ErrorCode;
use crate::repair::NotOai;
use crate::upstream::byte_rope::ByteRope;
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::page::resume::{Delivered, Unproven};
use crate::upstream::session::list_session::{AttemptEnd, ListSession, Stop};

/// How far back a list was begun anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RestartPoint {
    /// Not at all.
    No,
    /// Where an earlier walk was left.
    Remembered,
    /// At the last datestamp that was delivered.
    ByDate,
    /// At its beginning.
    Whole,
}

impl ListSession<'_> {
    /// Whether a page that was cut can be gone on with.
    pub(crate) fn resumable(&self, failure: Failure, lost: u64) -> Result<AttemptEnd, Stop> {
        let can = !self.outlet.has_begun()
            || lost == 0
                && !self.is_document_closed
                && self.job.request.verb().is_list()
                && self.delivered.is_complete()
                && self.skeleton().is_some();
        if can { Ok(AttemptEnd::Again(failure)) } else { Err(failure.into()) }
    }

    /// Takes the other method of HTTP, once, where the source does not take this one.
    pub(crate) fn may_take_the_other_method(&mut self, failure: &Failure) -> bool {
        let other = self.job.client.methods.instead_of(&self.method, failure);
        let Some(other) = other.filter(|_| !std::mem::replace(&mut self.tried_both, true)) else {
            return false;
        };
        self.method = other;
        true
    }

    /// A page with nothing new is skipped by asking for the next one.
    pub(crate) fn go_on_with(&mut self, token: String, pages: u32) -> Result<(), Stop> {
        let next = self.asked.resumed(token);
        // A walk through what was delivered is bounded by its time, and goes on at the next request.
        if pages >= PAGES_SKIPPED_MAX && self.anew.is_none() || next == self.asked {
            let name = self.job.client.name();
            let details = format!("{name} sent {pages} pages without a new item one after the other");
            return Err(Failure::new(Reason::NotOai(NotOai::NothingKept), details).into());
        }
        self.asked = next;
        self.has_walked = self.anew.is_some();
        match &mut self.anew {
            Some(walked) if self.outlet.has_begun() => *walked = self.delivered.hashes().len(),
            Some(walked) => *walked = self.had.hashes().len(),
            None => self.had = Delivered::default(),
        }
        Ok(())
    }

    /// Begins the list anew, where it cannot be gone on with and that is safe: from where an
    /// earlier walk was left, from the last datestamp if the mapping says that the list is in
    /// their order, or from its beginning. Each once.
    pub(crate) async fn begin_anew(&mut self) -> Result<bool, Stop> {
        let job = self.job;
        let may_go_on = !self.outlet.has_begun() || self.delivered.is_complete() && self.skeleton().is_some();
        let Some(chain) = self.chain.as_ref().filter(|_| may_go_on && self.begun < RestartPoint::Whole)
        else {
            return Ok(false);
        };
        let Some((first, known)) = chain.anew(job).await? else { return Ok(false) };
        let (walk, datestamp) = chain.shortcuts(job).await?;
        let is_ordered = job.mapping.quirks.is_ordered_by_datestamp;
        let by_date = datestamp.filter(|_| is_ordered).and_then(|datestamp| first.from_on(&datestamp));
        (self.asked, self.begun) = match (walk, by_date) {
            (Some(walk), _) if self.begun < RestartPoint::Remembered && self.anew.is_none() => {
                (walk, RestartPoint::Remembered)
            }
            (_, Some(by_date)) if self.begun < RestartPoint::ByDate => (by_date, RestartPoint::ByDate),
            _ => (first, RestartPoint::Whole),
        };
        if !self.outlet.has_begun() {
            self.delivered = self.had.clone();
        }
        self.known = known;
        for hash in self.delivered.hashes() {
            *self.known.entry(*hash).or_insert(0) += 1;
        }
        self.anew = Some(self.delivered.hashes().len());
        tracing::info!(
            repo = job.mapping.id,
            request = job.request.query(),
            asked = self.asked.query(),
            "a list cannot be gone on with; it is begun anew, without what was delivered"
        );
        Ok(true)
    }

    /// Where a walk through the list was left that found nothing new yet, so that the
    /// next request goes on from there.
    pub(crate) fn note_walk(&self, end: &Result<(), Stop>) {
        let (Some(chain), Some(_)) = (&self.chain, self.anew) else { return };
        let is_left = end.is_err() && !self.outlet.has_begun() && self.asked.is_resumption();
        chain.note_walk(self.job, is_left.then_some(&self.asked));
    }

    /// Whether a failure may mean that the source has forgotten its token.
    pub(crate) fn may_have_expired(&self, failure: &Failure) -> bool {
        self.asked.is_resumption()
            && failure.reason == Reason::Status
            && failure.received_status.is_some_and(|status| !matches!(status, 401 | 403 | 429 | 503))
    }

    /// Why an attempt failed. Where no turn came for a further attempt, it is why that was needed.
    pub(crate) fn cause_of(&mut self, failure: Failure) -> Failure {
        let before = self.failed.take().filter(|_| failure.reason == Reason::Busy);
        let cause = before.unwrap_or(failure);
        self.failed = Some(cause.clone());
        cause
    }

    /// Ends the answer where all attempts have failed: with the error that the source meant, if that can be
    /// proven, else as a failure.
    pub(crate) async fn end_with_failure(&mut self, failure: Failure) -> Result<(), Stop> {
        match self.proof_behind(&failure).await {
            Some(proof) => self.refuse(proof).await,
            None => self.close(failure).await,
        }
    }

    /// The source cannot be brought to give the rest of the page: the list is
    /// closed with a token of ours that leads to it, or breaks off visibly.
    pub(crate) async fn close(&mut self, failure: Failure) -> Result<(), Stop> {
        let (Some(chain), Some(skeleton)) = (&self.chain, self.skeleton()) else {
            return Err(failure.into());
        };
        let token = chain
            .own_token(self.job, &self.asked, &self.delivered, self.anew.is_some(), self.budget.now())
            .await;
        let Some(token) = token else { return Err(failure.into()) };
        self.account.continued = Some(failure);
        self.outlet.send(skeleton.close_with(Some(&token)).into(), 200).await?;
        self.outlet.finish().await
    }

    pub(crate) async fn refuse_token(&mut self, why: &str) -> Result<(), Stop> {
        self.refuse((ErrorCode::BadResumptionToken, why.to_owned())).await
    }

    pub(crate) async fn refuse_circle(&mut self) -> Result<AttemptEnd, Stop> {
        let name = self.job.client.name();
        if let Some(chain) = &self.chain {
            chain.note_circle(self.job, self.budget.now());
        }
        self.waiting = ByteRope::default();
        self.refuse_token(&format!(
            "{name} goes in circles: its token leads back to a page of the same list"
        ))
        .await?;
        Ok(AttemptEnd::Refused)
    }

    pub(crate) fn unproven(&self, why: Unproven) -> Failure {
        let name = self.job.client.name();
        let what = match why {
            Unproven::Head => "begins differently now",
            Unproven::Items => "does not hold what was delivered",
            Unproven::Held => "cannot be told from another one within the limits",
        };
        let details = format!("{name} broke a page off, and the page it sends instead {what}");
        Failure::new(Reason::Unproven, details)
    }

    /// Notes for the cache whether the tokens of the page lead to other pages of its list too. `next` is the
    /// token on the page. To be called before the page is noted in the ledger.
    pub(crate) async fn note_reuse(&mut self, next: Option<&str>) -> Result<(), Stop> {
        let Some(chain) = &self.chain else { return Ok(()) };
        self.account.reuses_tokens = chain.is_reused();
        let Some(next) = next.filter(|_| chain.may_lead_back()) else { return Ok(()) };
        let next_request = self.job.request.resumed(next.to_owned());
        if next_request == self.job.request || self.asked.resumed(next.to_owned()) == self.asked {
            self.account.reuses_tokens = true;
        } else if chain.leads_back(self.job, next).await? {
            self.account.leads_back_to = Some(next_request.query().to_owned());
        }
        Ok(())
    }

    pub(crate) async fn goes_in_circles(&self, token: Option<&str>) -> Result<bool, Stop> {
        let (Some(chain), Some(token)) = (&self.chain, token) else { return Ok(false) };
        Ok(self.asked == self.asked.resumed(token.to_owned()) || chain.leads_back(self.job, token).await?)
    }
}

/// Pages without anything new that are skipped one after the other within one request.
const PAGES_SKIPPED_MAX: u32 = 1_000;
