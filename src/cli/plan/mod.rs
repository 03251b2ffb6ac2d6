//! `oaimend plan`: the schedule for repositories that are not mirrored yet, and what other policies would cost.

mod comparison;
pub(super) mod report;
mod table;

use std::path::{Path, PathBuf};

use clap::Args;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_mirror::{PlannedHarvests, plan_chart, policies_chart};
use oaimend_rules::schedule::{FreshnessTarget, RepositoryLoad, UnitCosts, Workload};
use serde_json::json;

use super::exit::{Exit, Failure, print};
use super::output_format::{OutputFormat, format_json};
use comparison::{CombinedCost, Comparison};

/// Plans the harvests of repositories in a table, and compares policies
///
/// The table is CSV with the columns id, records, changes_per_day and, optionally, weight.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The table of the repositories; `-` is stdin
    #[arg(long, value_name = "TABLE")]
    input: PathBuf,
    /// The wanted share of records that are up to date
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = parse_freshness)]
    freshness: FreshnessTarget,
    /// Wants the freshness that costs least if a day with all records outdated costs this
    #[arg(long, value_name = "COST", value_parser = parse_positive, conflicts_with = "freshness")]
    cost_weight: Option<f64>,
    /// Compares the policies OAP, UAP, UNAP and IOAP
    #[arg(long)]
    compare: bool,
    /// The table for which UNAP plans its equal intervals
    #[arg(long, value_name = "TABLE", requires = "compare")]
    planned: Option<PathBuf>,
    /// The cost of a harvest without its records, for the policies and the cost weight
    #[arg(long, value_name = "COST", default_value_t = UnitCosts::default().harvest, value_parser = parse_cost)]
    harvest_cost: f64,
    /// The cost of an update, for the policies and the cost weight
    #[arg(long, value_name = "COST", default_value_t = UnitCosts::default().update, value_parser = parse_cost)]
    update_cost: f64,
    /// Draws the cost for each freshness; with --compare, relative to OAP
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The format of the output
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: PlanArguments) -> Result<Exit, Failure> {
    let unit_costs = UnitCosts { harvest: arguments.harvest_cost, update: arguments.update_cost };
    let repositories = table::read(&arguments.input)?;
    let workload =
        workload(&arguments.input, repositories.iter().map(|repository| repository.load), unit_costs)?;
    if arguments.cost_weight.is_some() && !(workload.is_changing() && unit_costs.harvest > 0.0) {
        let text = "--cost-weight needs a repository that changes, and harvests that cost something";
        return Err(Failure::usage(text));
    }
    let combined = arguments.cost_weight.map(|weight| CombinedCost::new(&workload, weight)).transpose()?;
    let freshness = combined.as_ref().map_or(arguments.freshness, |combined| combined.freshness);
    let policy = MirrorPolicy { freshness, ..MirrorPolicy::default() };
    let planned = PlannedHarvests::new(repositories, policy)
        .map_err(|error| Failure::incomplete(format!("no plan is possible: {error}")))?;
    let comparison = if arguments.compare {
        let workload = match &arguments.planned {
            Some(file) => workload.planned_for(&read_workload(file, unit_costs)?),
            None => workload,
        };
        Some(Comparison { workload, has_other_mix: arguments.planned.is_some(), freshness })
    } else {
        None
    };
    if let Some(file) = &arguments.svg {
        let chart = match &comparison {
            Some(comparison) => policies_chart(&comparison.workload, &comparison.policies()),
            None => plan_chart(&planned),
        };
        write_chart(file, chart)?;
    }
    let text = match arguments.format {
        OutputFormat::Text => {
            let mut text = report::format_text(&planned);
            combined.iter().for_each(|combined| combined.add_text(&mut text));
            comparison.iter().for_each(|comparison| comparison.add_text(&mut text, unit_costs));
            text
        }
        OutputFormat::Json => {
            let mut document = report::document(&planned);
            document["combined_cost"] = json!(combined.map(|combined| combined.document()));
            document["policies"] = json!(comparison.map(|comparison| comparison.document()));
            format_json(&document)
        }
    };
    print(text.as_bytes())
}

fn read_workload(file: &Path, unit_costs: UnitCosts) -> Result<Workload, Failure> {
    let workload = workload(file, table::read(file)?.iter().map(|repository| repository.load), unit_costs)?;
    if !workload.is_changing() {
        let text = format!("{}: no repository changes, so UNAP cannot be planned for it", file.display());
        return Err(Failure::usage(text));
    }
    Ok(workload)
}

fn workload(
    file: &Path,
    loads: impl Iterator<Item = RepositoryLoad>,
    unit_costs: UnitCosts,
) -> Result<Workload, Failure> {
    let loads: Vec<RepositoryLoad> = loads.collect();
    // The table has refused what a load cannot have.
    Workload::new(&loads, unit_costs).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

/// Writes a chart of a plan.
pub(super) fn write_chart(
    file: &Path,
    chart: Result<String, Box<dyn std::error::Error>>,
) -> Result<(), Failure> {
    let svg = chart.map_err(|error| Failure::io("draw", file, &std::io::Error::other(error.to_string())))?;
    std::fs::write(file, svg).map_err(|error| Failure::io("write", file, &error))
}

/// A share for `--freshness`.
pub(super) fn parse_freshness(text: &str) -> Result<FreshnessTarget, String> {
    let share = text.parse().ok().and_then(FreshnessTarget::new);
    share.ok_or_else(|| "expected a number from 0.5 to less than 1".to_owned())
}

/// The highest cost of an option.
const COST_MAX: f64 = 1e12;

fn parse_cost(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|cost| (0.0..=COST_MAX).contains(cost));
    cost.ok_or_else(|| "expected a number from 0 to 1e12".to_owned())
}

fn parse_positive(text: &str) -> Result<f64, String> {
    let cost = parse_cost(text).ok().filter(|cost| *cost > 0.0);
    cost.ok_or_else(|| "expected a number above 0, up to 1e12".to_owned())
}
