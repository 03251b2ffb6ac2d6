//! The facts of mirrored repositories from which the schedule determines their intervals.

use crate::settings::{MirrorPolicy, MirrorSettings};
use crate::status::RepositoryStatus;
use oaimend_rules::schedule::{History, IntervalBounds, RepositoryLoad, TOTAL_ELEMENTS_MAX, plan};
use oaimend_store::{MirrorError, MirrorStore, RepositoryId};

/// The facts of a repository in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RepositoryFacts {
    /// The number of its records in all formats (N): the count of the source, or else the stored records that are not
    /// deleted.
    pub records: u64,
    /// Its updates per second (λ); `None` before the first complete harvest.
    pub updates_per_sec: Option<f64>,
    /// The last complete harvest, and the failures since then.
    pub history: History,
}

impl RepositoryFacts {
    /// Reads the facts of a repository. One that was never harvested has none.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn read(store: &dyn MirrorStore, id: &str) -> Result<Self, MirrorError> {
        let collections = store.collections(RepositoryId(id)).await?;
        let stored = collections.iter().map(|collection| collection.records).sum();
        let state = store.repository_state(RepositoryId(id)).await?;
        let records =
            state.schedule.total_elements.filter(|total| *total <= TOTAL_ELEMENTS_MAX).unwrap_or(stored);
        let updates_per_sec = state.schedule.updates_per_sec.filter(is_rate);
        let history = History {
            harvested_at_secs: state.last_success_secs,
            failed_at_secs: state.last_harvest.map(|last| last.ended_secs),
            failures: state.schedule.failures,
        };
        Ok(Self { records, updates_per_sec, history })
    }

    /// The facts in a status, without its history.
    pub fn of_status(status: &RepositoryStatus) -> Self {
        let stored = status.formats.iter().map(|format| format.records).sum();
        let records = status.total_elements.filter(|total| *total <= TOTAL_ELEMENTS_MAX).unwrap_or(stored);
        let updates_per_sec = status.updates_per_sec.filter(is_rate);
        Self { records, updates_per_sec, history: History::default() }
    }

    /// The load for a plan. A repository whose rate is unknown gets the shortest interval, so that the rate is
    /// observed soon.
    pub fn load(&self, settings: &MirrorSettings, bounds: IntervalBounds) -> RepositoryLoad {
        let fixed = settings.interval.map(|interval| interval.as_secs_f64());
        let unknown = if self.updates_per_sec.is_none() { Some(bounds.min_secs()) } else { None };
        RepositoryLoad {
            records: self.records as f64,
            updates_per_sec: self.updates_per_sec.unwrap_or(0.0).min(RATE_MAX),
            weight: settings.weight,
            fixed_interval_secs: fixed.or(unknown),
        }
    }
}

fn is_rate(rate: &f64) -> bool {
    rate.is_finite() && *rate >= 0.0
}

/// The highest rate of updates of a repository, in updates per second.
const RATE_MAX: f64 = 1e9;

/// The interval of each of these repositories, in seconds.
pub fn intervals_secs(loads: &[RepositoryLoad], policy: &MirrorPolicy) -> Vec<f64> {
    match plan(loads, policy.freshness, policy.intervals) {
        Ok(plan) => plan.intervals_secs().to_vec(),
        // More records than a plan permits.
        Err(_) => vec![policy.intervals.max_secs(); loads.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn facts(updates_per_sec: Option<f64>) -> RepositoryFacts {
        RepositoryFacts { records: 1_000, updates_per_sec, history: History::default() }
    }

    fn intervals(facts: &[(RepositoryFacts, MirrorSettings)]) -> Vec<f64> {
        let policy = MirrorPolicy::default();
        let loads: Vec<_> =
            facts.iter().map(|(facts, settings)| facts.load(settings, policy.intervals)).collect();
        intervals_secs(&loads, &policy)
    }

    #[test]
    fn repository_that_changes_more_is_harvested_more_often() {
        let settings = MirrorSettings::default();
        let day = |updates: f64| (facts(Some(updates / 86_400.0)), settings.clone());
        let found = intervals(&[day(20.0), day(500.0)]);
        assert!((found[0] / found[1] - 5.0).abs() < 0.5, "{found:?}");
        let weighted = MirrorSettings { weight: 4.0, ..settings.clone() };
        let found = intervals(&[day(40.0), (facts(Some(40.0 / 86_400.0)), weighted)]);
        assert!((found[0] / found[1] - 2.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn absurd_count_of_one_source_does_not_change_the_plan_of_others() {
        let status = |total_elements| {
            let formats = vec![crate::status::FormatStatus { records: 1_000, ..Default::default() }];
            let updates_per_sec = Some(100.0 / 86_400.0);
            RepositoryStatus { formats, updates_per_sec, total_elements, ..RepositoryStatus::default() }
        };
        let settings = MirrorSettings::default();
        let of = |total| (RepositoryFacts::of_status(&status(total)), settings.clone());
        let expected = intervals(&[of(None), of(None)]);
        for total in [10_000_000_000_000, u64::MAX] {
            assert_eq!(intervals(&[of(Some(total)), of(None)]), expected, "{total}");
        }
        assert_eq!(of(Some(20_000)).0.records, 20_000);
    }

    #[test]
    fn bounds_and_fixed_intervals_are_kept() {
        let settings = MirrorSettings::default();
        let fixed = MirrorSettings { interval: Some(Duration::from_secs(777)), ..settings.clone() };
        let found = intervals(&[
            (facts(None), settings.clone()),
            (facts(Some(0.0)), settings.clone()),
            (facts(Some(1.0)), fixed),
        ]);
        assert_eq!(found, [3_600.0, 604_800.0, 777.0]);
        let huge = RepositoryFacts { records: u64::MAX, ..facts(Some(1.0)) };
        assert_eq!(intervals(&[(huge, settings)]), [604_800.0]);
    }
}
