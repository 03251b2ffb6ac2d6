//! `oaimend mirror plan`: the schedule of the harvests, with its cost and freshness.

mod report;

use std::path::PathBuf;

use clap::Args;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_mirror::{PlannedHarvests, PlannedRepository, RepositoryFacts, plan_chart};
use oaimend_rules::schedule::FreshnessTarget;
use rustix::fs::Mode;

use super::super::admin_api::AdminApi;
use super::super::data_arguments::create_files_as;
use super::super::exit::{Exit, Failure, print};
use super::super::output_format::OutputFormat;
use super::{mirrored, statuses};

#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    /// The wanted share of records that are up to date [default: mirror.freshness, else 0.95]
    #[arg(long, value_name = "SHARE", value_parser = parse_freshness)]
    freshness: Option<FreshnessTarget>,
    /// Draws the cost for each freshness
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The format of the output
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Prints the plan. The chart is for others, so it is created with this mask.
pub(super) fn run(api: &AdminApi, arguments: PlanArguments, mask: Mode) -> Result<Exit, Failure> {
    let PlanArguments { freshness, svg, format } = arguments;
    let planned = read_plan(api, freshness)?;
    create_files_as(mask);
    if let Some(file) = &svg {
        let svg = plan_chart(&planned)
            .map_err(|error| Failure::io("draw", file, &std::io::Error::other(error.to_string())))?;
        std::fs::write(file, svg).map_err(|error| Failure::io("write", file, &error))?;
    }
    let text = match format {
        OutputFormat::Text => report::format_text(&planned),
        OutputFormat::Json => report::format_json(&planned),
    };
    print(text.as_bytes())
}

fn read_plan(api: &AdminApi, freshness: Option<FreshnessTarget>) -> Result<PlannedHarvests, Failure> {
    let (mappings, statuses) = (mirrored(api, &[])?, statuses(api)?);
    let policy = api.mirror.clone();
    let policy = MirrorPolicy { freshness: freshness.unwrap_or(policy.freshness), ..policy };
    let mut repositories = Vec::new();
    for mapping in &mappings {
        let Some(settings) = &mapping.mirror else { continue };
        let status = statuses.iter().find(|status| status.id == mapping.id());
        let facts = status.map(RepositoryFacts::of_status).unwrap_or_default();
        repositories.push(PlannedRepository::new(mapping.id(), facts, settings, policy.intervals));
    }
    PlannedHarvests::new(repositories, policy)
        .map_err(|error| Failure::incomplete(format!("no plan is possible: {error}")))
}

fn parse_freshness(text: &str) -> Result<FreshnessTarget, String> {
    let share = text.parse().ok().and_then(FreshnessTarget::new);
    share.ok_or_else(|| "expected a number from 0.5 to less than 1".to_owned())
}
