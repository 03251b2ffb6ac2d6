//! Answers Identify from the mapping in place of a source that answers other requests, but never this one.
//!
//! Invariant: every value is one of the mapping. deletedRecord decides what a missing record means, and cannot be observed,
//! so a mapping without it, or without another required value, changes nothing. A source that is down, or whose Identify
//! was read before, keeps its failure until the outage is an old one.

use crate::adapt::requester::Requester;
use crate::session::delivery::Delivery;
use crate::settings::SourceMapping;
use oaimend_oai::datestamp::{self, Granularity};
use oaimend_oai::{ErrorCode, Request, Verb, escape, response_head};
use oaimend_repair::{IdentifyValues, NotOai};
use oaimend_repository::{Failure, IdentifyFields, Outlook, Reason, Stop};
use oaimend_store::ProfileDates;
use std::time::Duration;

/// Longest wait for the response that proves that the source works.
const PROOF_TIME_MAX: Duration = Duration::from_secs(10);

/// The failure of a source that answers Identify with an error, if the mapping answers in its place.
pub(super) fn refused_identify(requester: &Requester<'_>, code: Option<ErrorCode>) -> Option<Failure> {
    let context = requester.context;
    if context.request.verb() != Verb::Identify {
        return None;
    }
    stated_fields(&context.mapping)?;
    let details = format!("{} answers Identify with {}", requester.name(), code?.name());
    Some(Failure::new(Reason::NotOai(NotOai::UnknownError), details))
}

/// Answers Identify from the mapping after `failure`, which stays if that is not safe.
pub(super) async fn answer_from_mapping(
    requester: &mut Requester<'_>,
    delivery: &mut Delivery,
    failure: Failure,
) -> Result<(), Stop> {
    let context = requester.context;
    if delivery.has_begun() {
        return Err(failure.into());
    }
    let Some(fields) = stated_fields(&context.mapping) else { return Err(failure.into()) };
    let ProfileDates { granularity, earliest, .. } =
        context.store.profiles.dates(&context.mapping.source_key());
    let was_read = granularity.is_some() || earliest.is_some();
    let is_of_the_moment = matches!(failure.reason, Reason::Busy | Reason::TakenOver);
    if is_of_the_moment || was_read && failure.outlook == Outlook::MayPass {
        return Err(failure.into());
    }
    let Some(date) = date_of_source(requester).await else { return Err(failure.into()) };
    tracing::info!(
        repo = context.mapping.id,
        because = failure.details_for_operators(),
        "Identify is answered from the mapping: the source answers other requests, but not this one"
    );
    let summary = &mut requester.summary;
    summary.end.outcome = None;
    summary.items.set_sent(1);
    summary.page.response_date = Some(date.clone());
    let [name, email, earliest, deleted, granularity] = &fields;
    summary.page.identify = Some(IdentifyFields {
        earliest_datestamp: earliest.1.clone(),
        deleted_record: deleted.1.clone(),
        granularity: granularity.1.clone(),
    });
    let mut page = response_head(&context.echo, &date, true);
    page.push_str("  <Identify>\n");
    let base_url = ("baseURL", context.echo.base_url.clone());
    let version = ("protocolVersion", "2.0".to_owned());
    // The schema prescribes the order.
    for (element, value) in [name, &base_url, &version, email, earliest, deleted, granularity] {
        page.push_str(&format!("    <{element}>"));
        escape(value, &mut page);
        page.push_str(&format!("</{element}>\n"));
    }
    page.push_str("  </Identify>\n</OAI-PMH>\n");
    delivery.send_all(page.into_bytes()).await
}

/// The responseDate of another response of the source; `None` if it answers nothing now.
async fn date_of_source(requester: &mut Requester<'_>) -> Option<String> {
    let client = &requester.context.client;
    let request = Request::list_metadata_formats(None);
    let admission = client.breaker().request(request.query());
    let admission = client.admit(requester.now(), admission).ok()?;
    let options = requester.options();
    let response = requester.ask_within(PROOF_TIME_MAX, &request, options).await;
    match response {
        Ok(response) => {
            client.breaker().succeeded(&admission);
            if response.error_code().is_some() {
                return None;
            }
            let date_secs = datestamp::to_secs(response.buffer.head.response_date());
            date_secs.map(|secs| datestamp::from_secs(secs, Granularity::Second))
        }
        Err(error) => {
            client.breaker().failed(requester.now(), &admission, &error.failure);
            None
        }
    }
}

/// The fields of Identify, if the mapping states all of them. A static repository file and a tape have their own.
fn stated_fields(mapping: &SourceMapping) -> Option<[(&'static str, String); 5]> {
    let IdentifyValues {
        repository_name, admin_email, earliest_datestamp, deleted_record, granularity, ..
    } = mapping.identify.clone();
    if mapping.is_file() {
        return None;
    }
    let granularity = granularity?;
    let earliest_datestamp = Granularity::from_name(&granularity)?.fitted(&earliest_datestamp?);
    Some([
        ("repositoryName", repository_name?),
        ("adminEmail", admin_email?),
        ("earliestDatestamp", earliest_datestamp),
        ("deletedRecord", deleted_record?),
        ("granularity", granularity),
    ])
}
