//! `oaimend plan`: the schedule of the harvests, with its cost and freshness.

mod report;

use std::path::PathBuf;

use clap::Args;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_mirror::{PlannedHarvests, PlannedRepository, RepositoryFacts, plan_chart};
use oaimend_rules::schedule::FreshnessTarget;

use super::data_arguments::{DataArguments, create_files_as, create_private_files};
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

pub(crate) fn run(arguments: PlanArguments) -> Result<Exit, Failure> {
    let PlanArguments { freshness, svg, json, data } = arguments;
    let mask = create_private_files();
    let planned = read_plan(data, freshness)?;
    // The chart is for others.
    create_files_as(mask);
    if let Some(file) = &svg {
        let svg = plan_chart(&planned)
            .map_err(|error| Failure::io("draw", file, &std::io::Error::other(error.to_string())))?;
        std::fs::write(file, svg).map_err(|error| Failure::io("write", file, &error))?;
    }
    let text = if json { report::format_json(&planned) } else { report::format_text(&planned) };
    print(text.as_bytes())
}

fn read_plan(data: DataArguments, freshness: Option<FreshnessTarget>) -> Result<PlannedHarvests, Failure> {
    let (config, statuses) = mirror::statuses(data)?;
    let policy = config.mirror;
    let policy = MirrorPolicy { freshness: freshness.unwrap_or(policy.freshness), ..policy };
    let mut repositories = Vec::new();
    for mapping in config.repositories.all().values() {
        let Some(settings) = &mapping.mirror else { continue };
        let status = statuses.iter().find(|status| status.id == mapping.id());
        let facts = status.map(RepositoryFacts::of_status).unwrap_or_default();
        repositories.push(PlannedRepository::new(mapping.id(), facts, settings, policy.intervals));
    }
    if repositories.is_empty() {
        return Err(Failure::usage("no mapping has a [mirror] table; add one to mirror its repository"));
    }
    PlannedHarvests::new(repositories, policy)
        .map_err(|error| Failure::incomplete(format!("no plan is possible: {error}")))
}

fn parse_freshness(text: &str) -> Result<FreshnessTarget, String> {
    let share = text.parse().ok().and_then(FreshnessTarget::new);
    share.ok_or_else(|| "expected a number from 0.5 to less than 1".to_owned())
}
