//! The policies that the paper compares, by its own formulas: linear freshness, and intervals without bounds.
//!
//! They show how much a schedule saves. [`plan`](super::plan) computes the intervals for harvests, with the exact
//! freshness.

use super::load::{FreshnessTarget, LoadError, RepositoryLoad, check};
use oaimend_oai::named_enum;

const DAY_SECS: f64 = 86_400.0;

named_enum! {
    /// How the intervals of repositories are chosen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Policy {
        /// Optimal intervals for all repositories together (equation 3).
        Oap = "OAP",
        /// Equal intervals.
        Uap = "UAP",
        /// Equal intervals that were computed for other repositories than those that are harvested.
        Unap = "UNAP",
        /// An interval for each repository that reaches the freshness there, whatever the others are.
        Ioap = "IOAP",
    }
}

/// The costs of harvests. Only their ratio matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitCosts {
    /// The cost of a harvest without its records (C_P).
    pub harvest: f64,
    /// The cost of an update (C_U).
    pub update: f64,
}

impl Default for UnitCosts {
    /// The costs in section 5 of the paper.
    fn default() -> Self {
        Self { harvest: 50.0, update: 0.1 }
    }
}

/// The result of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyCost {
    /// The cost of a day (equation 2 with T = 1 day).
    pub per_day: f64,
    /// The share of records that are up to date (equation 1). Because it is linear, it is below zero where intervals
    /// are much too long.
    pub freshness: f64,
}

/// The freshness at which staleness and harvests together cost least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastCombinedCost {
    /// `Σ a_i · (staleness of i) + C_H` of a day, where a_i is the cost weight times the weight of the repository.
    pub combined_per_day: f64,
    /// The cost of the harvests, and the freshness.
    pub cost: PolicyCost,
}

/// Repositories and costs for which policies are compared.
///
/// A repository without records or without updates is never outdated, so all policies leave it out.
///
/// ```
/// use oaimend_rules::schedule::{FreshnessTarget, Policy, RepositoryLoad, UnitCosts, Workload};
///
/// // Types T1 and T4 of the paper, in equal numbers.
/// let per_day = 1.0 / 86_400.0;
/// let loads = [RepositoryLoad::new(1_000.0, 100.0 * per_day), RepositoryLoad::new(10_000.0, 5_000.0 * per_day)];
/// let workload = Workload::new(&loads, UnitCosts::default()).expect("legal loads");
/// let target = FreshnessTarget::new(0.98).expect("at least 0.5 and below 1");
/// let ratio = workload.cost(Policy::Uap, target).per_day / workload.cost(Policy::Oap, target).per_day;
/// assert!((ratio - 1.335).abs() < 0.001, "{ratio}");
/// ```
#[derive(Clone, Debug)]
pub struct Workload {
    changing: Vec<RepositoryLoad>,
    /// The records of these repositories.
    records: f64,
    unit_costs: UnitCosts,
    /// The equal interval of [`Policy::Unap`] for a staleness of 1, in seconds.
    planned_secs: Option<f64>,
}

impl Workload {
    /// The repositories that change.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for a load that is negative, not a number, or too large.
    pub fn new(loads: &[RepositoryLoad], unit_costs: UnitCosts) -> Result<Self, LoadError> {
        check(loads)?;
        let is_changing = |load: &&RepositoryLoad| load.records > 0.0 && load.updates_per_sec > 0.0;
        let changing: Vec<RepositoryLoad> = loads.iter().filter(is_changing).copied().collect();
        let records = changing.iter().map(|load| load.records).sum();
        Ok(Self { changing, records, unit_costs, planned_secs: None })
    }

    /// Whether any repository changes.
    pub const fn is_changing(&self) -> bool {
        !self.changing.is_empty()
    }

    /// Plans [`Policy::Unap`] for another workload, which was expected instead of this one. It must have
    /// repositories that change.
    #[must_use]
    pub fn planned_for(self, expected: &Self) -> Self {
        Self { planned_secs: Some(expected.equal_interval_secs()), ..self }
    }

    /// The cost and freshness of a policy. [`Policy::Unap`] is planned for this workload itself unless
    /// [`Self::planned_for`] has named another one, and is [`Policy::Uap`] then.
    pub fn cost(&self, policy: Policy, target: FreshnessTarget) -> PolicyCost {
        let staleness = 1.0 - target.share();
        match policy {
            Policy::Oap => {
                let roots: f64 = self.changing.iter().map(|load| load.updates_per_sec.sqrt()).sum();
                self.cost_of(|load| 2.0 * staleness * self.records / (load.updates_per_sec.sqrt() * roots))
            }
            Policy::Uap => self.cost_of(|_| staleness * self.equal_interval_secs()),
            Policy::Unap => {
                let planned_secs = self.planned_secs.unwrap_or_else(|| self.equal_interval_secs());
                self.cost_of(|_| staleness * planned_secs)
            }
            Policy::Ioap => self.cost_of(|load| 2.0 * staleness * load.records / load.updates_per_sec),
        }
    }

    /// Minimises the combined cost (section 6 of the paper).
    ///
    /// `cost_weight` is the cost of a day in which all records of weight 1 are outdated. Repositories of weight 0 are
    /// left out, because their records may be outdated at no cost.
    pub fn least_combined_cost(&self, cost_weight: f64) -> LeastCombinedCost {
        let weighted = Self {
            changing: self.changing.iter().filter(|load| load.weight > 0.0).copied().collect(),
            ..self.clone()
        };
        // The minimum of a λ I / 2ΣN + C_P / I for each repository, with times in days.
        let interval_days = |load: &RepositoryLoad| {
            let updates_per_day = load.updates_per_sec * DAY_SECS;
            (2.0 * self.unit_costs.harvest * self.records / (cost_weight * load.weight * updates_per_day))
                .sqrt()
        };
        let cost = weighted.cost_of(|load| interval_days(load) * DAY_SECS);
        let loss = |load: &RepositoryLoad| {
            let outdated = load.updates_per_sec * DAY_SECS * interval_days(load) / 2.0;
            cost_weight * load.weight * outdated / self.records
        };
        let staleness_cost: f64 = weighted.changing.iter().map(loss).sum();
        LeastCombinedCost { combined_per_day: staleness_cost + cost.per_day, cost }
    }

    /// The equal interval at which a staleness of 1 is reached.
    fn equal_interval_secs(&self) -> f64 {
        let updates_per_sec: f64 = self.changing.iter().map(|load| load.updates_per_sec).sum();
        2.0 * self.records / updates_per_sec
    }

    fn cost_of(&self, interval_secs: impl Fn(&RepositoryLoad) -> f64) -> PolicyCost {
        let (mut per_day, mut outdated) = (0.0, 0.0);
        for load in &self.changing {
            let secs = interval_secs(load);
            per_day += self.unit_costs.update * load.updates_per_sec * DAY_SECS;
            per_day += self.unit_costs.harvest * DAY_SECS / secs;
            outdated += load.updates_per_sec * secs / 2.0;
        }
        let staleness = if self.changing.is_empty() { 0.0 } else { outdated / self.records };
        PolicyCost { per_day, freshness: 1.0 - staleness }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "a test may panic")]

    use super::*;

    /// Table 1 of the paper: the records and the updates of a day of the types T1 to T4.
    const TYPES: [(f64, f64); 4] =
        [(1_000.0, 100.0), (1_000.0, 500.0), (10_000.0, 1_000.0), (10_000.0, 5_000.0)];
    const T1: usize = 0;
    const T4: usize = 3;

    /// 1,000 repositories of the four types, in these numbers.
    fn workload(counts: [usize; 4]) -> Workload {
        assert_eq!(counts.iter().sum::<usize>(), 1_000);
        let of_type = |(count, (records, updates)): (usize, (f64, f64))| {
            std::iter::repeat_n(RepositoryLoad::new(records, updates / DAY_SECS), count)
        };
        let loads: Vec<RepositoryLoad> = counts.into_iter().zip(TYPES).flat_map(of_type).collect();
        Workload::new(&loads, UnitCosts::default()).expect("legal loads")
    }

    fn of_t1(count: usize) -> Workload {
        let mut counts = [0; 4];
        (counts[T1], counts[T4]) = (count, 1_000 - count);
        workload(counts)
    }

    fn target(share: f64) -> FreshnessTarget {
        FreshnessTarget::new(share).expect("a share from 0.5 to 1")
    }

    fn ratio(workload: &Workload, policy: Policy, share: f64) -> f64 {
        let [other, optimal] =
            [policy, Policy::Oap].map(|policy| workload.cost(policy, target(share)).per_day);
        other / optimal
    }

    fn assert_near(found: f64, expected: f64, what: &str) {
        assert!((found - expected).abs() < 0.000_6, "{what}: {found}, expected {expected}");
    }

    #[test]
    fn equal_intervals_cost_as_much_as_in_figure_3() {
        for (t1, at_98, at_95) in [(750, 1.706, 1.462), (500, 1.335, 1.208), (300, 1.161, 1.098)] {
            assert_near(ratio(&of_t1(t1), Policy::Uap, 0.98), at_98, "θ = 0.98");
            assert_near(ratio(&of_t1(t1), Policy::Uap, 0.95), at_95, "θ = 0.95");
        }
    }

    #[test]
    fn equal_intervals_for_another_mix_cost_as_much_as_in_figure_5() {
        for (t1, at_85, at_98) in [(800, 1.303, 1.953), (700, 1.181, 1.614), (600, 1.113, 1.402)] {
            let workload = of_t1(t1).planned_for(&of_t1(700));
            assert_near(ratio(&workload, Policy::Unap, 0.85), at_85, "θ = 0.85");
            assert_near(ratio(&workload, Policy::Unap, 0.98), at_98, "θ = 0.98");
        }
    }

    #[test]
    fn a_wrong_mix_changes_the_freshness_of_equal_intervals() {
        let freshness = |t1| of_t1(t1).planned_for(&of_t1(700)).cost(Policy::Unap, target(0.95)).freshness;
        assert_near(freshness(700), 0.95, "the mix as planned");
        assert!(freshness(800) > 0.95 && freshness(600) < 0.95);
    }

    #[test]
    fn intervals_for_each_repository_alone_cost_as_much_as_in_figure_6() {
        for (counts, at_50, at_95) in [([250; 4], 1.027, 1.175), ([100, 700, 100, 100], 1.074, 1.360)] {
            assert_near(ratio(&workload(counts), Policy::Ioap, 0.5), at_50, "θ = 0.5");
            assert_near(ratio(&workload(counts), Policy::Ioap, 0.95), at_95, "θ = 0.95");
        }
    }

    #[test]
    fn policies_for_the_actual_workload_reach_the_freshness() {
        let workload = workload([400, 300, 200, 100]);
        for policy in Policy::ALL {
            for share in [0.5, 0.9, 0.99] {
                assert_near(workload.cost(*policy, target(share)).freshness, share, policy.name());
            }
        }
    }

    #[test]
    fn the_least_combined_cost_is_that_of_the_paper() {
        const WEIGHT: f64 = 1e6;
        let workload = workload([100, 100, 100, 700]);
        let least = workload.least_combined_cost(WEIGHT);
        let roots: f64 = workload.changing.iter().map(|load| (load.updates_per_sec * DAY_SECS).sqrt()).sum();
        let updates: f64 = workload.changing.iter().map(|load| load.updates_per_sec * DAY_SECS).sum();
        let of_paper = (2.0 * 50.0 * WEIGHT / workload.records).sqrt() * roots + 0.1 * updates;
        assert!((least.combined_per_day / of_paper - 1.0).abs() < 1e-9, "{least:?} and {of_paper}");
        // The optimal policy has this cost at this freshness, and a higher combined cost at any other one.
        let combined =
            |share: f64| WEIGHT * (1.0 - share) + workload.cost(Policy::Oap, target(share)).per_day;
        let share = least.cost.freshness;
        assert!((combined(share) / least.combined_per_day - 1.0).abs() < 1e-9, "{least:?}");
        assert!(combined(share - 0.01) > least.combined_per_day);
        assert!(combined(share + 0.01) > least.combined_per_day);
    }

    #[test]
    fn a_weight_makes_a_repository_fresher_and_weight_0_leaves_it_out() {
        let load = RepositoryLoad::new(1_000.0, 100.0 / DAY_SECS);
        let cost = |weight: f64| {
            let loads = [load, RepositoryLoad { weight, ..load }];
            let workload = Workload::new(&loads, UnitCosts::default()).expect("legal loads");
            workload.least_combined_cost(1_000.0).cost
        };
        assert!(cost(4.0).freshness > cost(1.0).freshness && cost(4.0).per_day > cost(1.0).per_day);
        assert!((cost(0.0).per_day / cost(1.0).per_day - 0.5).abs() < 1e-9);
    }

    #[test]
    fn repositories_that_do_not_change_cost_nothing() {
        let idle = [RepositoryLoad::new(0.0, 1.0), RepositoryLoad::new(5.0, 0.0)];
        let workload = Workload::new(&idle, UnitCosts::default()).expect("legal loads");
        for policy in Policy::ALL {
            assert_eq!(workload.cost(*policy, target(0.9)), PolicyCost { per_day: 0.0, freshness: 1.0 });
        }
        assert_eq!(workload.least_combined_cost(1.0).combined_per_day, 0.0);
    }
}
