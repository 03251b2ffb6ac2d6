//! The search of the cheapest plan that reaches the wanted freshness.
//!
//! A plan minimises `Σ 1/I_i + p · Σ a_i · S_i(I_i)`: the harvests in a second, and the stale records
//! `S_i = N_i (1 - freshness)`, with the weight `a_i` and one price `p` of a stale record for all
//! repositories. The part of each repository has one minimum in `I_i`, where
//! `1 - e^-x (1 + x) = λ_i / (N_i² a_i p)`. A bound that is hit gives the best permitted interval,
//! because the part decreases on one side of the minimum and increases on the other. A higher price
//! shortens all intervals, so a bisection finds the price at which the freshness is θ. Repositories
//! within the bounds thereby compensate for repositories at a bound.
//!
//! A repository that changes too fast to stay fresh has no minimum, and gets the longest interval:
//! its harvests serve the freshness of the other repositories better (Cho and Garcia-Molina,
//! "Effective page refresh policies for web crawlers", section 4). Near the price at which that
//! begins, the interval depends on digits of the price that a number does not have. The plan then
//! mixes the intervals of the two nearest prices: at this price all mixtures cost the same.

use std::f64::consts::E;

use super::freshness::{harvest_benefit, updates_of_benefit};
use super::load::{FreshnessTarget, IntervalBounds, LoadError, RepositoryLoad, check};
use super::plan::{Plan, stale_share};

/// The steps of a bisection: the bracket shrinks below the precision of a number.
const BISECTION_STEPS: usize = 100;

/// Computes the cheapest plan that reaches `target` within `bounds`.
///
/// The freshness counts each record once, whatever the weight of its repository. If the target
/// cannot be reached, the plan comes as close as possible, and [`Plan::meets_target`] is false.
///
/// # Errors
///
/// [`LoadError`] for a load that is negative, not a number, or too large.
pub fn plan(
    loads: &[RepositoryLoad],
    target: FreshnessTarget,
    bounds: IntervalBounds,
) -> Result<Plan, LoadError> {
    check(loads)?;
    let prices = loads.iter().filter_map(|load| price_range(load, bounds));
    let range = prices.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    // Without a range all intervals are at their bounds, or fixed, whatever the price.
    let (low, high) = range.unwrap_or((1.0, 1.0));
    let intervals = |price: f64| intervals_at(loads, price, bounds);
    let (stale_price, fresh_price) = bracket(low, high, |price| is_fresh(loads, &intervals(price), target));
    let (stale, fresh) = (intervals(stale_price), intervals(fresh_price));
    let mixed = |part: f64| -> Vec<f64> {
        let mix = |(stale, fresh): (&f64, &f64)| {
            let mixture = stale.powf(1.0 - part.ln()) * fresh.powf(part.ln());
            mixture.max(stale.min(*fresh)).min(stale.max(*fresh))
        };
        stale.iter().zip(&fresh).map(mix).collect()
    };
    let (_, part) = bracket(1.0, E, |part| is_fresh(loads, &mixed(part), target));
    let intervals = if part < E { mixed(part) } else { fresh };
    Ok(Plan::evaluate(loads, intervals, target.share()))
}

/// Computes the plan that harvests all repositories equally often, for comparison.
///
/// # Errors
///
/// As [`plan`].
pub fn plan_uniform(
    loads: &[RepositoryLoad],
    target: FreshnessTarget,
    bounds: IntervalBounds,
) -> Result<Plan, LoadError> {
    check(loads)?;
    let intervals = |rate: f64| -> Vec<f64> {
        loads.iter().map(|load| load.fixed_interval_secs.unwrap_or(1.0 / rate)).collect()
    };
    let is_fresh = |intervals: &[f64]| is_fresh(loads, intervals, target);
    let (low, high) = (1.0 / bounds.max_secs(), 1.0 / bounds.min_secs());
    let (_, rate) = bracket(low, high, |rate| is_fresh(&intervals(rate)));
    Ok(Plan::evaluate(loads, intervals(rate), target.share()))
}

fn is_fresh(loads: &[RepositoryLoad], intervals_secs: &[f64], target: FreshnessTarget) -> bool {
    1.0 - stale_share(loads.iter().zip(intervals_secs)) >= target.share()
}

/// The prices of a stale record at which the interval of a repository leaves its upper bound and
/// reaches its lower one. `None` if its interval does not depend on the price.
fn price_range(load: &RepositoryLoad, bounds: IntervalBounds) -> Option<(f64, f64)> {
    let at = |interval_secs: f64| {
        let benefit = harvest_benefit(load.updates_per_record(interval_secs));
        load.updates_per_sec / load.records / load.records / load.weight / benefit
    };
    let is_usable = |price: f64| price.is_finite() && price > 0.0;
    let range = (at(bounds.max_secs()), at(bounds.min_secs()));
    (load.fixed_interval_secs.is_none() && is_usable(range.0) && is_usable(range.1)).then_some(range)
}

/// The best interval of each repository at one price of a stale record.
fn intervals_at(loads: &[RepositoryLoad], price: f64, bounds: IntervalBounds) -> Vec<f64> {
    let interval = |load: &RepositoryLoad| {
        if let Some(fixed_secs) = load.fixed_interval_secs {
            return fixed_secs;
        }
        if price_range(load, bounds).is_none() {
            return bounds.max_secs();
        }
        let benefit = load.updates_per_sec / load.records / load.records / load.weight / price;
        let best = updates_of_benefit(benefit) / load.updates_per_sec * load.records;
        // `max` and `min` return the bound if the value overflowed to NaN.
        best.max(bounds.min_secs()).min(bounds.max_secs())
    };
    loads.iter().map(interval).collect()
}

/// Two numbers from `low` to `high`, as near to each other as possible: `holds` is false for the first
/// and true for the second. Both are `low` if it holds there, and both are `high` if it holds nowhere.
/// `holds` is monotonic, and the numbers are above 0.
fn bracket(low: f64, high: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    if holds(low) {
        return (low, low);
    }
    if !holds(high) {
        return (high, high);
    }
    let (mut low, mut high) = (low, high);
    for _ in 0..BISECTION_STEPS {
        // The geometric mean, as the numbers differ by orders of magnitude.
        let middle = (low.ln() / 2.0 + high.ln() / 2.0).exp();
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) { high = middle } else { low = middle }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, clippy::expect_used, reason = "a test may panic")]

    use super::*;

    const DAY_SECS: f64 = 86_400.0;

    fn target(share: f64) -> FreshnessTarget {
        FreshnessTarget::new(share).expect("a share from 0.5 to 1")
    }

    fn bounds(min_secs: f64, max_secs: f64) -> IntervalBounds {
        IntervalBounds::new(min_secs, max_secs).expect("bounds in order")
    }

    /// Bounds that no interval of these tests reaches.
    fn wide() -> IntervalBounds {
        bounds(1e-3, 3e9)
    }

    /// Repositories of very different sizes and rates.
    fn mixed() -> Vec<RepositoryLoad> {
        let load = |records, updates_per_day: f64| RepositoryLoad::new(records, updates_per_day / DAY_SECS);
        vec![
            load(2_000.0, 1.0),
            load(300_000.0, 900.0),
            load(50.0, 4.0),
            load(1e6, 20.0),
            load(8_000.0, 700.0),
        ]
    }

    fn planned(loads: &[RepositoryLoad], share: f64, bounds: IntervalBounds) -> Plan {
        plan(loads, target(share), bounds).expect("valid loads")
    }

    #[test]
    fn short_intervals_agree_with_the_closed_form_of_the_paper() {
        let (loads, share) = (mixed(), 0.99999);
        let records: f64 = loads.iter().map(|load| load.records).sum();
        let roots: f64 = loads.iter().map(|load| load.updates_per_sec.sqrt()).sum();
        let plan = planned(&loads, share, wide());
        for (load, &secs) in loads.iter().zip(plan.intervals_secs()) {
            let of_paper = 2.0 * (1.0 - share) * records / (load.updates_per_sec.sqrt() * roots);
            // The relative difference has the order of x, which is largest for the smallest repository.
            let tolerance = 0.01 + load.updates_per_record(of_paper);
            assert!((secs / of_paper - 1.0).abs() < tolerance, "{load:?}: {secs} and {of_paper}");
        }
    }

    #[test]
    fn the_freshness_is_the_target() {
        for share in [0.6, 0.7, 0.9, 0.95, 0.98, 0.999] {
            let plan = planned(&mixed(), share, wide());
            assert!((plan.freshness() - share).abs() < 1e-6 && plan.meets_target(), "{share}: {plan:?}");
        }
    }

    /// The cost of the cheapest plan for two repositories, found by trying all first intervals.
    fn cheapest_of_two(loads: [RepositoryLoad; 2], share: f64, bounds: IntervalBounds) -> f64 {
        let (steps, ratio) = (40_000, bounds.max_secs() / bounds.min_secs());
        let mut cheapest = f64::INFINITY;
        for step in 0..=steps {
            let first = bounds.min_secs() * ratio.powf(f64::from(step) / f64::from(steps));
            let fresh = |second: f64| 1.0 - stale_share(loads.iter().zip(&[first, second]));
            let (slow, fast) = (1.0 / bounds.max_secs(), 1.0 / bounds.min_secs());
            let second = 1.0 / bracket(slow, fast, |rate| fresh(1.0 / rate) >= share).1;
            if fresh(second) >= share {
                cheapest = cheapest.min(1.0 / first + 1.0 / second);
            }
        }
        cheapest
    }

    #[test]
    fn no_plan_for_two_repositories_is_cheaper() {
        let load = |records, updates_per_day: f64| RepositoryLoad::new(records, updates_per_day / DAY_SECS);
        let pairs = [
            [load(1_000.0, 10.0), load(1_000.0, 500.0)],
            [load(1_000.0, 10.0), load(20.0, 5_000.0)],
            [load(500_000.0, 10.0), load(2_000.0, 300.0)],
        ];
        for pair in pairs {
            for share in [0.6, 0.9, 0.98] {
                for bounds in [bounds(1.0, 1e9), bounds(6.0 * 3600.0, 20.0 * DAY_SECS)] {
                    let plan = planned(&pair, share, bounds);
                    let cheapest = cheapest_of_two(pair, share, bounds);
                    if !plan.meets_target() {
                        assert!(cheapest.is_infinite(), "{pair:?}, {share}: {plan:?} misses the target");
                        continue;
                    }
                    let cost = plan.harvests_per_sec();
                    assert!(cost <= cheapest * (1.0 + 1e-6), "{pair:?}, {share}: {cost} and {cheapest}");
                }
            }
        }
    }

    #[test]
    fn other_repositories_compensate_for_one_at_its_bound() {
        let loads = mixed();
        let free = planned(&loads, 0.98, wide());
        let shortest = free.intervals_secs().iter().copied().fold(f64::INFINITY, f64::min);
        let longest = free.intervals_secs().iter().copied().fold(0.0, f64::max);
        let bounds = bounds(shortest * 1.2, longest / 1.5);
        let bound = planned(&loads, 0.98, bounds);
        let is_inside = |secs: &f64| (bounds.min_secs()..=bounds.max_secs()).contains(secs);
        assert!(bound.intervals_secs().iter().all(is_inside), "{bound:?}");
        assert!((bound.freshness() - 0.98).abs() < 1e-6, "{bound:?}");
        assert!(bound.harvests_per_sec() > free.harvests_per_sec());
    }

    #[test]
    fn an_unreachable_target_gives_the_shortest_intervals() {
        let loads = mixed();
        let plan = planned(&loads, 0.999_999, bounds(30.0 * DAY_SECS, 60.0 * DAY_SECS));
        assert!(!plan.meets_target() && plan.freshness() < 0.99, "{plan:?}");
        assert!(plan.intervals_secs().iter().all(|secs| secs / (30.0 * DAY_SECS) < 1.000_001), "{plan:?}");
    }

    #[test]
    fn a_target_that_the_longest_intervals_reach_costs_no_more() {
        let plan = planned(&mixed(), 0.5, bounds(60.0, 3600.0));
        assert!(plan.intervals_secs().iter().all(|secs| (secs / 3600.0 - 1.0).abs() < 1e-6), "{plan:?}");
        assert!(plan.freshness() > 0.9 && plan.meets_target());
    }

    #[test]
    fn a_plan_is_cheaper_than_equal_intervals_with_the_same_freshness() {
        for share in [0.6, 0.95, 0.98] {
            let adaptive = planned(&mixed(), share, wide());
            let uniform = plan_uniform(&mixed(), target(share), wide()).expect("valid loads");
            assert!((uniform.freshness() - share).abs() < 1e-6, "{uniform:?}");
            assert!(adaptive.harvests_per_sec() < uniform.harvests_per_sec());
        }
    }

    #[test]
    fn a_repository_of_more_weight_is_harvested_more_often() {
        let mut loads = mixed();
        let before = planned(&loads, 0.98, wide());
        loads[0].weight = 4.0;
        let after = planned(&loads, 0.98, wide());
        let ratio = before.intervals_secs()[0] / after.intervals_secs()[0];
        assert!((1.9..2.3).contains(&ratio), "the interval goes nearly with the root of the weight: {ratio}");
        assert!((after.freshness() - 0.98).abs() < 1e-6, "{after:?}");
        loads[0].weight = 0.0;
        assert_eq!(planned(&loads, 0.98, wide()).intervals_secs()[0], wide().max_secs());
    }

    #[test]
    fn a_fixed_interval_is_kept_and_the_others_reach_the_target() {
        let mut loads = mixed();
        loads[1].fixed_interval_secs = Some(1.5 * DAY_SECS);
        let plan = planned(&loads, 0.98, wide());
        assert_eq!(plan.intervals_secs()[1], 1.5 * DAY_SECS);
        assert!((plan.freshness() - 0.98).abs() < 1e-6, "{plan:?}");
        let uniform = plan_uniform(&loads, target(0.98), wide()).expect("valid loads");
        assert_eq!(uniform.intervals_secs()[1], 1.5 * DAY_SECS);
    }

    #[test]
    fn repositories_without_records_or_updates_get_the_longest_interval() {
        let bounds = bounds(3600.0, 7.0 * DAY_SECS);
        let idle =
            [RepositoryLoad::new(0.0, 0.0), RepositoryLoad::new(0.0, 1.0), RepositoryLoad::new(9.0, 0.0)];
        let plan = planned(&idle, 0.95, bounds);
        assert_eq!(plan.intervals_secs(), [bounds.max_secs(); 3]);
        assert_eq!(plan.freshness(), 1.0);
        let empty = planned(&[], 0.95, bounds);
        assert_eq!(
            (empty.intervals_secs().len(), empty.freshness(), empty.harvests_per_sec()),
            (0, 1.0, 0.0)
        );
    }

    #[test]
    fn invalid_input_is_refused() {
        for share in [0.0, 0.499, 1.0, 1.5, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(FreshnessTarget::new(share), None, "{share}");
        }
        for (min, max) in [(0.0, 1.0), (2.0, 1.0), (-1.0, 1.0), (1.0, 1e12), (f64::NAN, 1.0), (1.0, f64::NAN)]
        {
            assert_eq!(IntervalBounds::new(min, max), None, "{min} to {max}");
        }
        for value in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            let usual = RepositoryLoad::new(10.0, 1e-3);
            let broken = [
                RepositoryLoad { records: value, ..usual },
                RepositoryLoad { updates_per_sec: value, ..usual },
                RepositoryLoad { weight: value, ..usual },
                RepositoryLoad { fixed_interval_secs: Some(value), ..usual },
            ];
            for load in broken {
                let found = plan(&[usual, load], target(0.95), wide()).map(|_| ());
                assert_eq!(found.map_err(|error| error.index), Err(1), "{load:?}");
                assert!(plan_uniform(&[load], target(0.95), wide()).is_err(), "{load:?}");
            }
        }
    }

    #[test]
    fn extreme_values_give_intervals_within_the_bounds() {
        let values = [0.0, f64::MIN_POSITIVE, 1e-200, 1e-9, 1.0, 1e6];
        let bounds = bounds(1.0, 1e9);
        let mut loads = Vec::new();
        for records in values {
            for updates_per_sec in values {
                for weight in values {
                    loads.push(RepositoryLoad { weight, ..RepositoryLoad::new(records, updates_per_sec) });
                }
            }
        }
        for share in [0.5, 0.95, 0.999_999_999] {
            for some in [&loads[..], &loads[..1], &loads[50..60], &loads[200..]] {
                let plan = planned(some, share, bounds);
                let is_inside = |secs: &f64| (bounds.min_secs()..=bounds.max_secs()).contains(secs);
                assert!(plan.intervals_secs().iter().all(is_inside), "{plan:?}");
                assert!((0.0..=1.0).contains(&plan.freshness()), "{plan:?}");
            }
        }
    }
}
