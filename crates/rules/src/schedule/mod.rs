//! The schedule of the mirror: the time of the next harvest of each repository.
//!
//! [`plan`] distributes harvests over repositories, so that a share of all records is up to date at
//! the lowest cost. [`RateEstimator`] learns how often a repository changes. [`next_due`] combines
//! the interval of a repository with its last harvest and its failures.
//!
//! Source: N. Adly, "Harvesting OAI-PMH repositories using adaptive synchronization", the policy
//! OAP(θ). A repository i has `N_i` records and `λ_i` updates in a second; θ is the wanted share of
//! records that are up to date. The policy harvests i every
//! `I_i = 2(1-θ) ΣN_j / (sqrt(λ_i) Σ sqrt(λ_j))` seconds. This module differs from the paper:
//!
//! | subject | the paper | here | reason |
//! |---|---|---|---|
//! | freshness | `1 - x/2` with `x = λI/N` | `(1 - e^-x)/x` | the paper's form is its linear part, and below zero for `x > 2`. The other one is exact for Poisson updates |
//! | interval | in closed form | by search | no closed form of the exact freshness exists. For short intervals both agree |
//! | rate | from `U/I` | from `-N ln(1 - U/N)/I` | `U` counts records. Several updates of one record between two harvests count once |
//! | importance | only in section 6 | a weight for each repository | the plan minimises `Σ weight · staleness + cost` |
//! | bounds | none | a lowest and a highest interval | the other repositories compensate, so that θ still holds |
//!
//! [`Workload`] compares the policies of the paper by its own formulas.
//!
//! Pure: no I/O, no clock, no async. Times are arguments, in seconds.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod due;
mod freshness;
mod load;
mod plan;
mod policies;
mod rate;
mod search;

pub use due::{Action, BACKOFF_FIRST_SECS, Due, History, backoff_secs, next_due};
pub use load::{FreshnessTarget, IntervalBounds, LoadError, RepositoryLoad, TOTAL_ELEMENTS_MAX};
pub use plan::Plan;
pub use policies::{LeastCombinedCost, Policy, PolicyCost, UnitCosts, Workload};
pub use rate::{Observation, RateEstimator};
pub use search::{plan, plan_uniform};
