//! The costs of schedules, simulated: repositories with Poisson updates, harvested by plans that know
//! only what the harvests before have seen.
//!
//! Adly's paper gives the cost of equal, adaptive intervals relative to its policy OAP(θ). Figure 3 shows 1.71 for
//! θ = 0.98 with 75 % repositories of type T1 and 25 % of T4, 1.46 for θ = 0.95, and 1.34 for θ = 0.98 with 50 % of
//! each. The types are those of Table 1, and the costs those of section 5. The simulation knows no formula of the
//! paper: its updates are random, and the policies learn the rates.

use oaimend_rules::schedule::{
    FreshnessTarget, IntervalBounds, Observation, RateEstimator, RepositoryLoad, plan, plan_uniform,
};

use oaimend_test_support::random::Random;

const DAY_SECS: f64 = 86_400.0;
const SEED: u64 = 20_261_123;
const REPOSITORIES: usize = 40;
const DAYS: f64 = 50.0;
/// The first estimate for all repositories, which is wrong for both types.
const FIRST_UPDATES_PER_DAY: f64 = 500.0;
/// The first days are not measured: the estimates are not settled.
const SETTLING_DAYS: f64 = 20.0;
/// The cost of a record, as a share of the cost of a harvest.
const RECORD_COST: f64 = 0.1 / 50.0;

/// A type of repositories.
#[derive(Clone, Copy)]
struct Kind {
    records: usize,
    updates_per_day: f64,
}

const T1: Kind = Kind { records: 1_000, updates_per_day: 100.0 };
const T4: Kind = Kind { records: 10_000, updates_per_day: 5_000.0 };

/// The intervals in seconds for the estimated loads.
type Policy = fn(&[RepositoryLoad], f64) -> Vec<f64>;

fn target(share: f64) -> FreshnessTarget {
    FreshnessTarget::new(share).expect("a share from 0.5 to 1")
}

fn bounds() -> IntervalBounds {
    IntervalBounds::new(60.0, 1_000.0 * DAY_SECS).expect("bounds in order")
}

fn adaptive(loads: &[RepositoryLoad], share: f64) -> Vec<f64> {
    plan(loads, target(share), bounds()).expect("valid loads").intervals_secs().to_vec()
}

fn uniform(loads: &[RepositoryLoad], share: f64) -> Vec<f64> {
    plan_uniform(loads, target(share), bounds()).expect("valid loads").intervals_secs().to_vec()
}

/// OAP(θ) as the paper gives it.
fn adaptive_of_paper(loads: &[RepositoryLoad], share: f64) -> Vec<f64> {
    let records: f64 = loads.iter().map(|load| load.records).sum();
    let roots: f64 = loads.iter().map(|load| load.updates_per_sec.sqrt()).sum();
    let interval =
        |load: &RepositoryLoad| 2.0 * (1.0 - share) * records / (load.updates_per_sec.sqrt() * roots);
    loads.iter().map(interval).collect()
}

/// Equal intervals by the freshness formula of the paper.
fn uniform_of_paper(loads: &[RepositoryLoad], share: f64) -> Vec<f64> {
    let records: f64 = loads.iter().map(|load| load.records).sum();
    let updates: f64 = loads.iter().map(|load| load.updates_per_sec).sum();
    vec![2.0 * (1.0 - share) * records / updates; loads.len()]
}

/// One repository and its copy.
struct Repository {
    kind: Kind,
    estimator: RateEstimator,
    harvested_days: f64,
    next_update_days: f64,
    is_stale: Vec<bool>,
    stale: usize,
}

/// The measured result of a simulation.
struct Measured {
    cost_per_day: f64,
    freshness: f64,
}

struct Simulation {
    random: Random,
    repositories: Vec<Repository>,
    requests: f64,
    records: f64,
    /// The stale records of all repositories, integrated over time.
    stale_days: f64,
}

impl Simulation {
    fn new(hot_share: f64) -> Self {
        let hot = (hot_share * REPOSITORIES as f64).round() as usize;
        let mut random = Random::new(SEED);
        let repository = |index: usize| {
            let kind = if index < hot { T4 } else { T1 };
            Repository {
                kind,
                estimator: RateEstimator::from_rate(Some(FIRST_UPDATES_PER_DAY / DAY_SECS)),
                // Harvests are spread over the interval.
                harvested_days: -unit(&mut random),
                next_update_days: 0.0,
                is_stale: vec![false; kind.records],
                stale: 0,
            }
        };
        let repositories = (0..REPOSITORIES).map(repository).collect();
        Self { random, repositories, requests: 0.0, records: 0.0, stale_days: 0.0 }
    }

    /// Lets a repository change until `now`, the time of its harvest or the end.
    fn update(&mut self, index: usize, now: f64) {
        let repository = &mut self.repositories[index];
        while repository.next_update_days < now {
            let at = repository.next_update_days;
            let record = self.random.below(repository.kind.records);
            if at >= repository.harvested_days && !repository.is_stale[record] {
                repository.is_stale[record] = true;
                repository.stale += 1;
                // It is stale until this harvest.
                self.stale_days += now.max(SETTLING_DAYS) - at.max(SETTLING_DAYS);
            }
            repository.next_update_days += -unit(&mut self.random).ln() / repository.kind.updates_per_day;
        }
    }

    fn harvest(&mut self, index: usize, now: f64) {
        self.update(index, now);
        let repository = &mut self.repositories[index];
        let interval_secs = ((now - repository.harvested_days) * DAY_SECS).max(1.0) as u64;
        let changed = repository.stale as u64;
        let records = repository.kind.records as u64;
        repository.estimator.observe(&Observation { records, changed, added: 0, interval_secs });
        if now >= SETTLING_DAYS {
            self.requests += 1.0;
            self.records += changed as f64;
        }
        repository.harvested_days = now;
        repository.stale = 0;
        repository.is_stale.fill(false);
    }

    fn run(mut self, policy: Policy, share: f64) -> Measured {
        let mut now = 0.0;
        while now < DAYS {
            let loads: Vec<RepositoryLoad> = self.repositories.iter().map(estimated).collect();
            let intervals = policy(&loads, share);
            // The plan is computed again every day.
            let day_end = now + 1.0;
            loop {
                let due = |index: usize| {
                    (self.repositories[index].harvested_days + intervals[index] / DAY_SECS).max(now)
                };
                let next = (0..REPOSITORIES).map(|index| (due(index), index));
                let (at, index) = next.min_by(|one, other| one.0.total_cmp(&other.0)).expect("repositories");
                if at >= day_end {
                    break;
                }
                self.harvest(index, at);
            }
            now = day_end;
        }
        (0..REPOSITORIES).for_each(|index| self.update(index, DAYS));
        let records: usize = self.repositories.iter().map(|repository| repository.kind.records).sum();
        let days = DAYS - SETTLING_DAYS;
        Measured {
            cost_per_day: (self.requests + RECORD_COST * self.records) / days,
            freshness: 1.0 - self.stale_days / days / records as f64,
        }
    }
}

/// A random number above 0, up to 1.
fn unit(random: &mut Random) -> f64 {
    ((random.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
}

fn estimated(repository: &Repository) -> RepositoryLoad {
    let rate = repository.estimator.updates_per_sec().unwrap_or(0.0);
    RepositoryLoad::new(repository.kind.records as f64, rate)
}

/// θ, the share of T4, and the ratio in the paper.
const FIGURES: [(f64, f64, f64); 3] = [(0.98, 0.25, 1.71), (0.95, 0.25, 1.46), (0.98, 0.5, 1.34)];

fn assert_figures(uniform: Policy, adaptive: Policy) {
    println!("seed {SEED}");
    for (share, hot, of_paper) in FIGURES {
        let uniform = Simulation::new(hot).run(uniform, share);
        let adaptive = Simulation::new(hot).run(adaptive, share);
        let ratio = uniform.cost_per_day / adaptive.cost_per_day;
        println!(
            "θ = {share}, {hot} T4: {ratio:.3}, paper {of_paper}; freshness {:.4} and {:.4}",
            uniform.freshness, adaptive.freshness
        );
        assert!((ratio / of_paper - 1.0).abs() < 0.02, "θ = {share}, {hot} T4: {ratio}, paper {of_paper}");
        for measured in [uniform, adaptive] {
            assert!((measured.freshness - share).abs() < 0.005, "θ = {share}: {}", measured.freshness);
        }
    }
}

#[test]
fn the_costs_of_the_schedule_agree_with_the_paper() {
    assert_figures(uniform, adaptive);
}

#[test]
fn the_costs_of_the_formulas_of_the_paper_agree_with_the_paper() {
    assert_figures(uniform_of_paper, adaptive_of_paper);
}
