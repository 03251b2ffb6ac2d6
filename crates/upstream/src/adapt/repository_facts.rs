//! What is known of a repository for a request, and what a response teaches about it: granularity, the
//! lowest datestamp, and setSpecs that look escaped.

use crate::adapt::requester::Requester;
use crate::client::request_context::RequestContext;
use crate::page::buffer::PageBuffer;
use crate::page::resume::Resumer;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{Argument, Request, Verb, set_spec};
use oaimend_repair::{RepairId, RepositoryFacts};
use oaimend_repository::IdentifyFields;
use oaimend_store::{ProfileDates, ProfileUpdate};

/// The facts about the repository that the engine needs for a request. `list_from` is the lowest datestamp that the
/// first request of the list asked for, if the request resumes one.
pub(crate) fn facts_for(
    context: &RequestContext,
    request: &Request,
    list_from: impl FnOnce() -> Option<String>,
) -> RepositoryFacts {
    let mapping = &context.mapping;
    let ProfileDates { granularity, earliest, oldest_seen } =
        context.store.profiles.dates(&mapping.source_key());
    // An old Identify must not override the one of this response.
    let announced = if context.request.verb() == Verb::Identify { None } else { granularity };
    // The file is served in days, whatever it contains.
    let announced = if mapping.static_file.is_some() { Some(Granularity::Day) } else { announced };
    let from = request.argument(Argument::From).map(str::to_owned).or_else(list_from);
    let earliest = match (earliest, &oldest_seen) {
        (Some(earliest), Some(seen)) if *seen < earliest => Some(seen.clone()),
        (earliest, _) => earliest,
    };
    let mut facts = RepositoryFacts::default();
    facts.granularity = mapping.quirks.granularity.or(announced);
    facts.lowest_datestamp = from.or(earliest);
    facts.oldest_seen = oldest_seen;
    facts
}

/// Logs the fields of Identify that stay wrong or missing.
pub(crate) fn log_unresolved_fields(repo: &str, fields: &[&'static str]) {
    if !fields.is_empty() {
        let elements = fields.join(", ");
        tracing::warn!(
            repo,
            elements,
            "Identify lacks fields that the schema requires; set identify.* in the mapping"
        );
    }
}

/// Writes repaired datestamps in the granularity of the repository, before they are sent. If no Identify was seen,
/// the source is asked for one, at most once for a request of a harvester.
///
/// The facts of the engine stay the same during the request, so that a page that is requested again gives the same
/// items.
pub(crate) async fn fit_repaired_datestamps(
    requester: &mut Requester<'_>,
    buffer: &mut PageBuffer,
    resumer: &Resumer,
) {
    let context = requester.context;
    let is_off = context.mapping.repairs.off.contains(RepairId::DatestampGranularity);
    if is_off || requester.facts.granularity.is_some() {
        return;
    }
    let repaired = buffer.with_repaired_datestamp(|hash| resumer.knows(hash));
    if repaired.is_empty() {
        return;
    }
    let granularity = match requester.identified_granularity {
        Some(granularity) => granularity,
        None => {
            let granularity = requester.announced().await.and_then(|dates| dates.granularity);
            requester.identified_granularity = Some(granularity);
            granularity
        }
    };
    let Some(granularity) = granularity else { return };
    for index in repaired {
        buffer.fit_datestamp(index, granularity);
    }
}

/// Notes what a page says about its repository, before the page is sent. `ended`: the page is complete.
pub(crate) async fn note_profile(requester: &mut Requester<'_>, buffer: &mut PageBuffer, ended: bool) {
    let context = requester.context;
    let identify = buffer.head.take_identify();
    let mut dates = identify.as_ref().map(announced_dates).unwrap_or_default();
    if identify.is_some() {
        requester.summary.page.identify = identify;
    }
    if let Some(granularity) = dates.granularity {
        requester.note_granularity(granularity).await;
    }
    if ended {
        dates.oldest_seen = buffer.observed.take_oldest();
    }
    let update = ProfileUpdate { dates, sets: buffer.observed.take_sets() };
    if update == ProfileUpdate::default() {
        return;
    }
    let collisions = context.store.profiles.update(&context.mapping.source_key(), update).await;
    requester.summary.add_set_collisions(collisions.len());
    for set in collisions {
        tracing::warn!(
            repo = context.mapping.id,
            set,
            means = set_spec::unescape(&set),
            "two sets of the source have the same setSpec now; a request for it gets the set that the source calls so"
        );
    }
}

/// The granularity and the earliest datestamp that an Identify response announces.
pub(super) fn announced_dates(identify: &IdentifyFields) -> ProfileDates {
    let IdentifyFields { earliest_datestamp, granularity, .. } = identify;
    ProfileDates {
        granularity: Granularity::from_name(granularity),
        earliest: Some(earliest_datestamp.clone()).filter(|earliest| !earliest.is_empty()),
        oldest_seen: None,
    }
}
