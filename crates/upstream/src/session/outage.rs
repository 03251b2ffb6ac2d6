//! Tells the circuit breaker how a request came out, and whether the harvester may retry a failure.

use crate::adapt::requester::Requester;
use crate::http::circuit_breaker::Admission;
use oaimend_oai::{Request, Verb};
use oaimend_repository::{Failure, Reason, Stop};
use std::time::Duration;

/// Longest wait for the Identify that tells an outage from one bad request.
const IDENTIFY_TIME_MAX: Duration = Duration::from_secs(10);

/// Notes how a request came out, and decides whether its failure is worth a retry.
pub(crate) async fn settle(
    requester: &mut Requester<'_>,
    end: Result<(), Stop>,
    admission: &Admission,
    has_walked: bool,
) -> Result<(), Stop> {
    let client = &requester.context.client;
    let failure = match end {
        Ok(()) if requester.summary.end.continued.is_none() && admission.is_granted => {
            client.breaker().succeeded(admission);
            return Ok(());
        }
        // The next request continues a walk through delivered items, however long that takes.
        Err(Stop::Failed(failure)) if !is_of_the_moment(&failure) && !has_walked => failure,
        end => return end,
    };
    let needs_identify = client.breaker().failed(requester.now(), admission, &failure);
    if needs_identify {
        ask_identify(requester, admission, &failure).await;
    }
    let age = client.breaker().age(requester.now(), admission, &failure);
    Err(Stop::Failed(client.judge_age(failure, age)))
}

/// Asks the source for Identify, to tell an outage from a request that fails alone.
async fn ask_identify(requester: &mut Requester<'_>, admission: &Admission, failure: &Failure) {
    let context = requester.context;
    let response = match context.source_request.verb() {
        Verb::Identify => Some(Err(failure.clone())),
        _ => {
            let options = requester.options();
            match requester.ask_within(IDENTIFY_TIME_MAX, &Request::identify(), options).await {
                Ok(_) => Some(Ok(())),
                Err(error) if error.is_unrelated_to_source() => None,
                Err(error) => Some(Err(error.failure)),
            }
        }
    };
    let response = response.as_ref().map(|response| response.as_ref().copied());
    context.client.breaker().identified(requester.now(), admission, response);
    if matches!(response, Some(Err(_))) {
        tracing::warn!(
            repo = context.mapping.id,
            because = failure.details_for_operators(),
            "different requests fail, and Identify too; the circuit breaker opens"
        );
    }
}

/// Whether a failure says only that the moment was wrong.
fn is_of_the_moment(failure: &Failure) -> bool {
    matches!(failure.reason, Reason::Busy | Reason::CircuitOpen | Reason::TakenOver)
}
