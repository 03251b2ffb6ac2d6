//! The result of a request, for the activity of its repository.

use crate::failure::{Failure, Reason};
use crate::response_summary::{RepairMade, ResponseSummary};
use oaimend_oai::{Request, Verb};
use oaimend_store::{ActivityUpdate, DayCounts, OaiErrorResponse, RepairExample, SourceResult};

/// The result of a request that its source answered, or failed to answer. `failure` is the one that ended the response,
/// or that made another response necessary.
pub fn activity_update(
    request: &Request,
    summary: Option<&ResponseSummary>,
    failure: Option<&Failure>,
) -> ActivityUpdate {
    let mut update = ActivityUpdate::default();
    update.counts.requests = 1;
    if let Some(summary) = summary.filter(|summary| summary.end.failed_over.is_none()) {
        update.counts = DayCounts {
            passed: summary.items.passed(),
            repaired: summary.items.repaired(),
            quarantined: summary.items.quarantined(),
            ..update.counts
        };
        let made = summary.items.repairs().iter().filter(|(id, _)| !id.is_rewrite());
        update.repairs = made.map(|(id, count)| (id.entry().name, count)).collect();
        update.examples =
            summary.items.last_repairs().map(|made| (made.name, example(request, made))).collect();
        let response = |code| OaiErrorResponse { code, request: request.query().to_owned() };
        update.oai_error = summary.page.error.map(response);
    }
    update.source = match (failure, summary) {
        (Some(failure), _) if failure.reason.is_of_source() => {
            update.counts.failures = 1;
            SourceResult::Failed {
                request: request.query().to_owned(),
                reason: failure.reason.name(),
                details: failure.details_for_operators(),
                is_repetition: failure.reason == Reason::CircuitOpen,
            }
        }
        (None, Some(_)) => SourceResult::Succeeded,
        _ => SourceResult::NotRequested,
    };
    update
}

fn example(request: &Request, made: &RepairMade) -> RepairExample {
    let RepairMade { record, original, replacement, .. } = made;
    // The items of other responses, such as sets, are no records.
    let has_records = request.verb().is_harvest() || request.verb() == Verb::GetRecord;
    let record = if has_records { record.clone() } else { None };
    RepairExample { record, original: original.to_text(), replacement: replacement.to_text() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_repair::RepairId;

    fn update(summary: Option<&ResponseSummary>, failure: Option<Reason>) -> ActivityUpdate {
        let failure = failure.map(|reason| Failure::new(reason, "details"));
        activity_update(&Request::identify(), summary, failure.as_ref())
    }

    #[test]
    fn records_and_repairs_of_the_source_are_counted() {
        let mut summary = ResponseSummary::default();
        summary.items.add_sent(5, 2);
        summary.items.add_quarantined(1);
        for id in [
            RepairId::BareAmpersand,
            RepairId::BareAmpersand,
            RepairId::BareAmpersand,
            RepairId::RewriteBaseUrl,
        ] {
            summary.items.add_repair(id, None);
        }
        let found = update(Some(&summary), None);
        let counts = DayCounts { requests: 1, passed: 3, repaired: 2, quarantined: 1, failures: 0 };
        assert_eq!((found.counts, found.repairs), (counts, vec![("bare-ampersand", 3)]));
        assert_eq!(found.source, SourceResult::Succeeded);
        summary.end.failed_over = Some(Failure::new(Reason::Dns, ""));
        let found = update(Some(&summary), Some(Reason::Dns));
        assert_eq!(found.counts, DayCounts { requests: 1, failures: 1, ..DayCounts::default() });
        assert!(found.repairs.is_empty());
    }

    #[test]
    fn failures_of_the_source_are_told_from_others() {
        for (reason, is_repetition) in [(Reason::Dns, false), (Reason::CircuitOpen, true)] {
            let found = update(Some(&ResponseSummary::default()), Some(reason));
            let expected = SourceResult::Failed {
                request: "verb=Identify".to_owned(),
                reason: reason.name(),
                details: "details".to_owned(),
                is_repetition,
            };
            assert_eq!((found.source, found.counts.failures), (expected, 1));
        }
        for reason in [Reason::Busy, Reason::MirrorIncomplete, Reason::SpoolFull, Reason::Configuration] {
            let found = update(Some(&ResponseSummary::default()), Some(reason));
            assert_eq!((found.source, found.counts.failures), (SourceResult::NotRequested, 0), "{reason:?}");
        }
        assert_eq!(update(None, None).source, SourceResult::NotRequested, "answered by the cache");
    }
}
