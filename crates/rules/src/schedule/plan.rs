//! A plan: the interval of each repository, and the cost and freshness that follow from them.

use super::freshness::{mean_freshness, mean_staleness};
use super::load::RepositoryLoad;

/// The intervals of all repositories, with their cost and freshness.
///
/// ```
/// use oaimend_rules::schedule::{FreshnessTarget, IntervalBounds, RepositoryLoad, plan};
///
/// let day_secs = 86_400.0;
/// let loads = [RepositoryLoad::new(10_000.0, 500.0 / day_secs), RepositoryLoad::new(10_000.0, 5.0 / day_secs)];
/// let target = FreshnessTarget::new(0.95).expect("at least 0.5 and below 1");
/// let bounds = IntervalBounds::new(3_600.0, 30.0 * day_secs).expect("the shorter one is first");
/// let plan = plan(&loads, target, bounds).expect("legal loads");
/// let intervals = plan.intervals_secs();
/// assert!(intervals[0] < intervals[1], "the busier repository is harvested more often");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    intervals_secs: Vec<f64>,
    harvests_per_sec: f64,
    records_per_sec: f64,
    freshness: f64,
    target: f64,
}

/// The tolerance of [`Plan::meets_target`]: rounding of sums over many repositories.
const FRESHNESS_TOLERANCE: f64 = 1e-9;

impl Plan {
    /// Evaluates one interval for each load.
    pub(super) fn evaluate(loads: &[RepositoryLoad], intervals_secs: Vec<f64>, target: f64) -> Self {
        let pairs = || loads.iter().zip(&intervals_secs);
        let harvests_per_sec = intervals_secs.iter().map(|secs| 1.0 / secs).sum();
        let transferred = |(load, &secs): (&RepositoryLoad, &f64)| {
            load.updates_per_sec * mean_freshness(load.updates_per_record(secs))
        };
        let records_per_sec = pairs().map(transferred).sum();
        let freshness = 1.0 - stale_share(pairs());
        Self { intervals_secs, harvests_per_sec, records_per_sec, freshness, target }
    }

    /// The interval of each repository in seconds, in the order of the loads.
    pub fn intervals_secs(&self) -> &[f64] {
        &self.intervals_secs
    }

    /// The cost of the plan: the harvests of all repositories in a second.
    pub const fn harvests_per_sec(&self) -> f64 {
        self.harvests_per_sec
    }

    /// The records that these harvests transfer in a second. A record that changed several times
    /// between two harvests is transferred once.
    pub const fn records_per_sec(&self) -> f64 {
        self.records_per_sec
    }

    /// The expected share of all records that are up to date; 1 if there are no records.
    pub const fn freshness(&self) -> f64 {
        self.freshness
    }

    /// Whether the plan reaches the wanted freshness. It does not if the shortest interval or fixed
    /// intervals prevent that, or if repositories of weight 0 have most updates.
    pub fn meets_target(&self) -> bool {
        self.freshness >= self.target - FRESHNESS_TOLERANCE
    }
}

/// The share of all records that are out of date.
pub(super) fn stale_share<'a>(pairs: impl Iterator<Item = (&'a RepositoryLoad, &'a f64)>) -> f64 {
    let (mut stale, mut records) = (0.0, 0.0);
    for (load, &secs) in pairs {
        stale += load.records * mean_staleness(load.updates_per_record(secs));
        records += load.records;
    }
    if records > 0.0 { stale / records } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_counts_harvests_and_the_records_that_they_transfer() {
        // Two updates of each record in the first interval, none in the second.
        let loads = [RepositoryLoad::new(100.0, 2.0), RepositoryLoad::new(50.0, 0.0)];
        let plan = Plan::evaluate(&loads, vec![100.0, 25.0], 0.5);
        assert!((plan.harvests_per_sec() - 0.05).abs() < 1e-12);
        let changed = 100.0 * (1.0 - (-2.0_f64).exp());
        assert!((plan.records_per_sec() - changed / 100.0).abs() < 1e-12, "{plan:?}");
        let fresh = 100.0 * mean_freshness(2.0) + 50.0;
        assert!((plan.freshness() - fresh / 150.0).abs() < 1e-12, "{plan:?}");
        assert!(plan.meets_target() && !Plan::evaluate(&loads, vec![100.0, 25.0], 0.7).meets_target());
    }
}
