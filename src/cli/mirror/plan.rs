//! `oaimend mirror plan`: the schedule of the harvests, with its cost and freshness.

use std::path::PathBuf;

use clap::Args;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_mirror::{PlannedHarvests, PlannedRepository, RepositoryFacts, plan_chart};
use oaimend_rules::schedule::FreshnessTarget;
use rustix::fs::Mode;

use super::super::admin_api::AdminApi;
use super::super::data_arguments::create_files_as;
use super::super::exit::{Exit, Failure, print};
use super::super::output_format::{OutputFormat, format_json};
use super::super::plan::{parse_freshness, report, write_chart};
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
        write_chart(file, plan_chart(&planned))?;
    }
    let text = match format {
        OutputFormat::Text => report::format_text(&planned),
        OutputFormat::Json => format_json(&report::document(&planned)),
    };
    print(text.as_bytes())
}

fn read_plan(api: &AdminApi, freshness: Option<FreshnessTarget>) -> Result<PlannedHarvests, Failure> {
    let (mappings, statuses) = (mirrored(api, &[])?, statuses(api)?);
    let policy = api.mirror.clone();
    let policy = MirrorPolicy { freshness: freshness.unwrap_or(policy.freshness), ..policy };
    let mut repositories = Vec::new();
    for mapping in &mappings {
        let Some(settings) = mapping.harvest() else { continue };
        let status = statuses.iter().find(|status| status.id == mapping.id());
        let facts = status.map(RepositoryFacts::of_status).unwrap_or_default();
        repositories.push(PlannedRepository::new(mapping.id(), facts, settings, policy.intervals));
    }
    PlannedHarvests::new(repositories, policy)
        .map_err(|error| Failure::incomplete(format!("no plan is possible: {error}")))
}
