//! Stores the results of harvests: for operators how they ended, for the schedule the updates that they observed.

use crate::harvest::page::Harvester;
use crate::harvest::settings::{HarvestError, HarvestSummary};
use oaimend_oai::UnixSecs;
use oaimend_rules::schedule::{Observation, RateEstimator, TOTAL_ELEMENTS_MAX};
use oaimend_store::{
    Committed, DuplicateCounts, HarvestNote, ListFilter, ListOrder, MirrorError, ScheduleState,
    update_repository_state,
};
use std::collections::BTreeMap;

/// The time before a first harvest whose datestamps are counted, in seconds: 90 days.
const FIRST_INTERVAL_SECS: i64 = 90 * 86_400;

/// Stores the result of a harvest that began at `began_secs`.
///
/// # Errors
///
/// The result is not stored.
pub(crate) async fn record_result(
    harvest: &Harvester,
    began_secs: UnixSecs,
    result: &Result<HarvestSummary, HarvestError>,
) -> Result<(), MirrorError> {
    let counts = result.as_ref().map(|summary| summary.counts).unwrap_or_default();
    // A known gap is no reason to harvest the lists less often.
    let is_complete = result.as_ref().is_ok_and(HarvestSummary::has_whole_lists);
    let before = harvest.store.repository_state(harvest.repository()).await?;
    let stored = count_live(harvest).await?;
    let total_elements = result.as_ref().ok().and_then(|summary| count_total(summary, &stored));
    if let Some(total) = total_elements.filter(|total| *total > TOTAL_ELEMENTS_MAX) {
        tracing::warn!(repo = harvest.id, total, "the source counts more records than any repository has");
    }
    let total_elements = total_elements.filter(|total| *total <= TOTAL_ELEMENTS_MAX);
    let stored = stored.values().sum();
    let schedule = match (is_complete, before.last_success_secs) {
        (true, last_secs) => {
            let records = total_elements.unwrap_or(stored);
            let observation = match last_secs {
                Some(last_secs) => observe(before.schedule, counts, records, began_secs.since(last_secs)),
                None => observe_datestamps(harvest, records, began_secs).await?,
            };
            ScheduleState { total_elements, ..after_success(before.schedule, &observation) }
        }
        // The records of a first harvest are not updates.
        (false, None) => after_failure(before.schedule, Committed::default()),
        (false, Some(_)) => after_failure(before.schedule, counts),
    };
    let note = describe(result, counts, began_secs, harvest.now_secs());
    update_repository_state(&*harvest.store, harvest.repository(), |state| {
        (state.schedule, state.last_harvest) = (schedule, Some(note.clone()));
        if is_complete {
            state.last_success_secs = Some(began_secs);
        }
    })
    .await
}

/// How a harvest ended.
fn describe(
    result: &Result<HarvestSummary, HarvestError>,
    counts: Committed,
    began_secs: UnixSecs,
    ended_secs: UnixSecs,
) -> HarvestNote {
    let errors = match result {
        Ok(summary) => {
            let errors = summary.incomplete.iter();
            errors.map(|(prefix, error)| format!("{prefix}: {error}")).collect()
        }
        Err(error) => vec![error.to_string()],
    };
    let Committed { stored, deleted, surplus_sets, .. } = counts;
    let counts = result.as_ref().map(|summary| summary.duplicates).unwrap_or_default();
    let DuplicateCounts { duplicates, repetitions } = counts;
    HarvestNote { began_secs, ended_secs, stored, deleted, surplus_sets, duplicates, repetitions, errors }
}

/// What a complete harvest and the failed ones before it have observed since the last complete one.
fn observe(before: ScheduleState, counts: Committed, records: u64, interval_secs: i64) -> Observation {
    let added = before.added.saturating_add(counts.added);
    Observation {
        records: records.saturating_sub(added),
        changed: before.changed.saturating_add(known_changes(counts)),
        added,
        // A clock that was set back gives no observation.
        interval_secs: u64::try_from(interval_secs).unwrap_or(0),
    }
}

/// The known records that a harvest has changed or deleted.
fn known_changes(counts: Committed) -> u64 {
    (counts.stored + counts.deleted).saturating_sub(counts.added)
}

fn after_success(before: ScheduleState, observation: &Observation) -> ScheduleState {
    let mut rate = RateEstimator::from_rate(before.updates_per_sec);
    rate.observe(observation);
    ScheduleState { updates_per_sec: rate.updates_per_sec(), ..ScheduleState::default() }
}

fn after_failure(before: ScheduleState, counts: Committed) -> ScheduleState {
    ScheduleState {
        failures: before.failures.saturating_add(1),
        changed: before.changed.saturating_add(known_changes(counts)),
        added: before.added.saturating_add(counts.added),
        ..before
    }
}

/// The number of stored records that are not deleted, by format.
async fn count_live(harvest: &Harvester) -> Result<BTreeMap<String, u64>, MirrorError> {
    let collections = harvest.store.collections(harvest.repository()).await?;
    Ok(collections.into_iter().map(|collection| (collection.prefix, collection.records)).collect())
}

/// The number of records of the source in all formats, if it names one for some of them. The stored records of the other
/// formats are counted.
fn count_total(summary: &HarvestSummary, stored: &BTreeMap<String, u64>) -> Option<u64> {
    if summary.total_elements.is_empty() {
        return None;
    }
    let of_format = |prefix| summary.total_elements.get(prefix).or(stored.get(prefix)).copied().unwrap_or(0);
    Some(summary.complete.iter().map(of_format).fold(0, u64::saturating_add))
}

/// The updates before a first harvest, by the datestamps of the records.
async fn observe_datestamps(
    harvest: &Harvester,
    records: u64,
    now_secs: UnixSecs,
) -> Result<Observation, MirrorError> {
    let mut changed = 0;
    for collection in harvest.store.collections(harvest.repository()).await? {
        let filter = ListFilter {
            repository: harvest.id.clone(),
            prefix: collection.prefix,
            set: None,
            by: ListOrder::Datestamp,
            from_secs: Some(now_secs.minus(FIRST_INTERVAL_SECS)),
            until_secs: Some(now_secs),
            ..ListFilter::default()
        };
        changed += harvest.store.count(filter).await?;
    }
    Ok(Observation { records, changed, added: 0, interval_secs: FIRST_INTERVAL_SECS.unsigned_abs() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: Committed = Committed {
        stored: 30,
        added: 10,
        deleted: 5,
        touched: 1,
        unchanged: 2,
        surplus_sets: 0,
        revision: 9,
    };

    #[test]
    fn failed_harvests_count_for_the_next_complete_one() {
        let failed = after_failure(ScheduleState::default(), COUNTS);
        let expected = ScheduleState { failures: 1, changed: 25, added: 10, ..ScheduleState::default() };
        assert_eq!(failed, expected);
        assert_eq!(after_failure(failed, Committed::default()).failures, 2);
        let observation = observe(failed, COUNTS, 1_020, 1_000);
        assert_eq!(observation, Observation { records: 1_000, changed: 50, added: 20, interval_secs: 1_000 });
        let after = after_success(failed, &observation);
        let updates_per_sec = observation.updates_per_sec();
        assert_eq!(after, ScheduleState { updates_per_sec, ..ScheduleState::default() });
    }

    #[test]
    fn total_is_that_of_the_source_where_it_names_one() {
        let map = |counts: &[(&str, u64)]| {
            counts.iter().map(|(prefix, count)| ((*prefix).to_owned(), *count)).collect()
        };
        let stored: BTreeMap<String, u64> = map(&[("a", 10), ("b", 20), ("old", 40)]);
        let complete = vec!["a".to_owned(), "b".to_owned()];
        let summary = HarvestSummary { complete, ..HarvestSummary::default() };
        assert_eq!(count_total(&summary, &stored), None);
        let summary = HarvestSummary { total_elements: map(&[("a", 500)]), ..summary };
        assert_eq!(count_total(&summary, &stored), Some(520));
        let hostile = HarvestSummary { total_elements: map(&[("a", u64::MAX), ("b", 7)]), ..summary };
        assert_eq!(count_total(&hostile, &stored), Some(u64::MAX));
    }

    #[test]
    fn clock_that_was_set_back_changes_no_rate() {
        let before = ScheduleState { updates_per_sec: Some(0.5), ..ScheduleState::default() };
        let after = after_success(before, &observe(before, COUNTS, 100, -50));
        assert_eq!(after.updates_per_sec, Some(0.5));
    }
}
