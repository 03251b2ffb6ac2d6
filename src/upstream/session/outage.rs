//! What becomes of a request whose source fails: whether the source is asked at all, what the failure
//! says of the source, and whether the harvester is told to come again.

use crate::oai::{Request, Verb};
use crate::upstream::adapt::subrequest::inquire;
use crate::upstream::client::source_client::SourceClient;
use crate::upstream::failure::{Failure, Outlook, Reason};
use crate::upstream::http::circuit_breaker::{Admission, OpenCircuit};
use crate::upstream::http::deadline::Deadline;
use crate::upstream::session::list_session::{ListSession, Stop};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Longest wait for the Identify that tells an outage from one bad request.
const IDENTIFY_TIME_MAX: Duration = Duration::from_secs(10);

impl SourceClient {
    /// May the source be asked now?
    pub(crate) fn admit(&self, now: SystemTime, request: Admission) -> Result<Admission, Failure> {
        let admitted = self.breaker().admit(now, request);
        admitted.map_err(|resting| self.resting(&resting))
    }

    fn resting(&self, resting: &OpenCircuit) -> Failure {
        let OpenCircuit { secs, because, .. } = resting;
        let name = self.name();
        let details = match resting.is_alone {
            true => format!(
                "{name} has failed often at this request, which is left alone for {secs} more seconds; others \
                 are not; it last said: {because}"
            ),
            false => format!(
                "{name} has failed often and is left alone for {secs} more seconds; it last said: {because}"
            ),
        };
        let failure = Failure { retry_after_secs: *secs, ..Failure::new(Reason::Resting, details) };
        match resting.is_permanent {
            true => Failure { outlook: Outlook::Permanent, ..failure },
            false => self.judged(failure, resting.age),
        }
    }

    /// The same failure, or one that is not worth another try any more: its outage is that old.
    fn judged(&self, failure: Failure, age: Duration) -> Failure {
        let is_old = age >= self.mapping().limits.outage_retry;
        match failure.outlook {
            Outlook::MayPass if is_old => Failure { outlook: Outlook::OldOutage(age), ..failure },
            _ => failure,
        }
    }
}

impl ListSession<'_> {
    /// Notes how the request came out. A failure says from then on whether to come again.
    pub(crate) async fn settle(&mut self, end: Result<(), Stop>, admission: &Admission) -> Result<(), Stop> {
        let job = self.job;
        let client = &job.client;
        let failure = match end {
            Ok(()) if self.account.continued.is_none() && admission.is_granted => {
                client.breaker().succeeded(admission);
                return Ok(());
            }
            // A walk through what was delivered goes on at the next request, however long it takes.
            Err(Stop::Failed(failure)) if !is_of_the_moment(&failure) && !self.has_walked => failure,
            end => return end,
        };
        let is_asked = client.breaker().failed(self.budget.now(), admission, &failure);
        if is_asked {
            self.ask_identify(admission, &failure).await;
        }
        let now = self.budget.now();
        let age = client.breaker().age(now, admission, &failure);
        Err(Stop::Failed(client.judged(failure, age)))
    }

    /// Asks the source for Identify, to tell an outage from a request that fails alone.
    async fn ask_identify(&mut self, admission: &Admission, failure: &Failure) {
        let job = self.job;
        let unanswered = match job.asked.verb() {
            Verb::Identify => Some(Err(failure.clone())),
            _ => {
                self.account.attempts += 1;
                let mut budget = Deadline::new(Arc::clone(&job.clock), IDENTIFY_TIME_MAX);
                let request = Request::identify();
                let asked = inquire(job, &request, self.manner(), usize::MAX, false, &mut budget);
                match Box::pin(asked).await {
                    Ok(_) => Some(Ok(())),
                    Err(unanswered) if unanswered.says_nothing() => None,
                    Err(unanswered) => Some(Err(unanswered.failure)),
                }
            }
        };
        let answer = unanswered.as_ref().map(|answer| answer.as_ref().copied());
        job.client.breaker().identified(self.budget.now(), admission, answer);
        if matches!(answer, Some(Err(_))) {
            tracing::warn!(
                repo = job.mapping.id,
                because = failure.details,
                "different requests fail, and Identify too; the source is left alone for a while"
            );
        }
    }
}

/// Whether a failure says only that it was not the moment to ask.
fn is_of_the_moment(failure: &Failure) -> bool {
    matches!(failure.reason, Reason::Busy | Reason::Resting | Reason::TakenOver)
}
