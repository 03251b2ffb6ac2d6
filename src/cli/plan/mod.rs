//! `oaimend plan`: the schedule of the harvests, with its cost and freshness.

mod chart;
mod report;

use std::path::PathBuf;

use clap::Args;
use oaimend::config::{Config, MirrorPolicy};
use oaimend::mirror::RepositoryFacts;
use oaimend::schedule::{FreshnessTarget, LoadError, Plan, RepositoryLoad, plan, plan_uniform};

use super::data_arguments::DataArguments;
use super::exit::{Exit, Failure, print};
use super::mirror;

/// Shows how often each mirrored repository is harvested, and what that costs
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The wanted share of records that are up to date [default: mirror.freshness, else 0.95]
    #[arg(long, value_name = "SHARE", value_parser = parse_freshness)]
    freshness: Option<FreshnessTarget>,
    /// Draws the cost for each freshness
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Prints one JSON document instead of the tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataArguments,
}

/// The mirrored repositories with the plan for them, and with equal intervals for comparison.
struct Schedule {
    policy: MirrorPolicy,
    repositories: Vec<PlannedRepository>,
    plan: Plan,
    uniform: Plan,
}

/// A mirrored repository.
struct PlannedRepository {
    id: String,
    facts: RepositoryFacts,
    load: RepositoryLoad,
    /// Whether its mapping sets the interval.
    is_fixed: bool,
}

pub(crate) fn run(arguments: PlanArguments) -> Result<Exit, Failure> {
    let PlanArguments { freshness, svg, json, data } = arguments;
    let schedule = read_schedule(data.load()?, freshness)?;
    if let Some(file) = &svg {
        chart::draw(&schedule, file)?;
    }
    let text = if json { report::format_json(&schedule) } else { report::format_text(&schedule) };
    print(text.as_bytes())
}

fn read_schedule(config: Config, freshness: Option<FreshnessTarget>) -> Result<Schedule, Failure> {
    let (config, statuses) = mirror::statuses(config)?;
    let policy = config.mirror;
    let policy = MirrorPolicy { freshness: freshness.unwrap_or(policy.freshness), ..policy };
    let mut repositories = Vec::new();
    for mapping in config.repositories.all().values() {
        let Some(settings) = &mapping.mirror else { continue };
        let status = statuses.iter().find(|status| status.id == mapping.id);
        let facts = status.map(RepositoryFacts::of_status).unwrap_or_default();
        repositories.push(PlannedRepository {
            id: mapping.id.clone(),
            load: facts.load(settings, policy.intervals),
            is_fixed: settings.interval.is_some(),
            facts,
        });
    }
    if repositories.is_empty() {
        return Err(Failure::usage("no mapping has a [mirror] table; add one to mirror its repository"));
    }
    let (plan, uniform) = plans(&repositories, &policy, policy.freshness)
        .map_err(|error| Failure::incomplete(format!("no plan is possible: {error}")))?;
    Ok(Schedule { policy, repositories, plan, uniform })
}

/// The cheapest plan for a freshness, and the one with equal intervals.
fn plans(
    repositories: &[PlannedRepository],
    policy: &MirrorPolicy,
    target: FreshnessTarget,
) -> Result<(Plan, Plan), LoadError> {
    let loads: Vec<RepositoryLoad> = repositories.iter().map(|repository| repository.load).collect();
    Ok((plan(&loads, target, policy.intervals)?, plan_uniform(&loads, target, policy.intervals)?))
}

fn parse_freshness(text: &str) -> Result<FreshnessTarget, String> {
    let share = text.parse().ok().and_then(FreshnessTarget::new);
    share.ok_or_else(|| "expected a number from 0.5 to less than 1".to_owned())
}
