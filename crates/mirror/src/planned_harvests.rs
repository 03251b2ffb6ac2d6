//! The plan for all mirrored repositories, beside equal intervals.

use super::harvest_plan::RepositoryFacts;
use crate::settings::{MirrorPolicy, MirrorSettings};
use oaimend_rules::schedule::{
    FreshnessTarget, IntervalBounds, LoadError, Plan, RepositoryLoad, plan, plan_uniform,
};

/// The mirrored repositories with the plan for them, and with equal intervals for comparison.
#[derive(Debug)]
pub struct PlannedHarvests {
    /// The wanted freshness and the bounds of the intervals.
    pub policy: MirrorPolicy,
    /// The repositories, in the order of the intervals of both plans.
    pub repositories: Vec<PlannedRepository>,
    /// The cheapest plan for the freshness.
    pub plan: Plan,
    /// Equal intervals with the same freshness.
    pub uniform: Plan,
}

/// A mirrored repository in a plan.
#[derive(Debug)]
pub struct PlannedRepository {
    /// Its id.
    pub id: String,
    /// Its facts in the store.
    pub facts: RepositoryFacts,
    /// What the plan assumes.
    pub load: RepositoryLoad,
    /// Whether its mapping sets the interval.
    pub is_fixed: bool,
}

impl PlannedHarvests {
    /// Plans the harvests.
    ///
    /// # Errors
    ///
    /// No plan is possible with these numbers of records.
    pub fn new(repositories: Vec<PlannedRepository>, policy: MirrorPolicy) -> Result<Self, LoadError> {
        let (plan, uniform) = plans(&repositories, policy.freshness, policy.intervals)?;
        Ok(Self { policy, repositories, plan, uniform })
    }

    /// The cheapest plan for another freshness, and the one with equal intervals.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub(crate) fn with_freshness(&self, target: FreshnessTarget) -> Result<(Plan, Plan), LoadError> {
        plans(&self.repositories, target, self.policy.intervals)
    }
}

fn plans(
    repositories: &[PlannedRepository],
    target: FreshnessTarget,
    bounds: IntervalBounds,
) -> Result<(Plan, Plan), LoadError> {
    let loads: Vec<RepositoryLoad> = repositories.iter().map(|repository| repository.load).collect();
    Ok((plan(&loads, target, bounds)?, plan_uniform(&loads, target, bounds)?))
}

impl PlannedRepository {
    /// A repository with the settings of its mapping.
    pub fn new(id: &str, facts: RepositoryFacts, settings: &MirrorSettings, bounds: IntervalBounds) -> Self {
        let (load, is_fixed) = (facts.load(settings, bounds), settings.interval.is_some());
        Self { id: id.to_owned(), facts, load, is_fixed }
    }
}
