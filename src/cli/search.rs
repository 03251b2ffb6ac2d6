//! `oaimend search`: the search index, for operators.

use clap::{Args, Subcommand};
use oaimend::serve::{RebuildLine, SearchState};

use super::admin_api::{AdminApi, no_result};
use super::data_arguments::DataArguments;
use super::exit::{Exit, Failure, print, print_message};
use super::output_format::{OutputFormat, format_json};
use super::progress::ProgressLine;
use super::state::IfAbsent;

/// Shows the search index, or builds it again
#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    #[command(subcommand)]
    command: SearchCommand,
    #[command(flatten)]
    data: DataArguments,
}

#[derive(Debug, Subcommand)]
enum SearchCommand {
    /// Shows the state of the index, or builds it again from the mirror
    Index(IndexArguments),
}

#[derive(Debug, Args)]
struct IndexArguments {
    /// Shows the number of records and the size of the index; the default
    #[arg(long, conflicts_with = "rebuild")]
    status: bool,
    /// Removes the index and builds it again. Searches fail meanwhile
    #[arg(long)]
    rebuild: bool,
    /// The format of the output
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: SearchArguments) -> Result<Exit, Failure> {
    let SearchCommand::Index(index) = arguments.command;
    let api = arguments.data.open(IfAbsent::ReadEmpty)?;
    let state = if index.rebuild { rebuild(&api)? } else { Some(state(&api)?) };
    let Some(state) = state else { return Ok(Exit::Incomplete) };
    let text = match index.format {
        OutputFormat::Json => format_json(&state),
        OutputFormat::Text => describe(&state),
    };
    print(text.as_bytes())
}

fn state(api: &AdminApi) -> Result<SearchState, Failure> {
    api.send("GET", "/-/search")?.map_err(|refusal| Failure::in_use(refusal.error))?.read()
}

/// Builds the index again, and returns its state; `None` if that failed, which is printed.
fn rebuild(api: &AdminApi) -> Result<Option<SearchState>, Failure> {
    let lines = api.send("POST", "/-/search/rebuild")?;
    let lines = lines.map_err(|refusal| Failure::in_use(refusal.error))?;
    let progress = ProgressLine::default();
    for line in lines.into_lines() {
        match line? {
            RebuildLine::Running { records, .. } => progress.show("search", "index", records, None),
            RebuildLine::Rebuilt(state) => {
                progress.end("search");
                return Ok(Some(state));
            }
            RebuildLine::Failed { error } => {
                progress.end("search");
                print_message(format!("the index is not complete: {error}"));
                return Ok(None);
            }
        }
    }
    Err(no_result())
}

fn describe(state: &SearchState) -> String {
    if !state.enabled {
        return "the search is turned off; set search.enabled in oaimend.toml\n".to_owned();
    }
    let SearchState { records, changes_behind, .. } = state;
    let mib = state.disk_bytes as f64 / f64::from(1 << 20);
    let building = if state.is_building { ", being built" } else { "" };
    let mut text =
        format!("{records} records, {mib:.1} MiB, {changes_behind} changes to be indexed{building}\n");
    if let Some(error) = &state.last_error {
        text.push_str(&format!("the last write failed: {error}\n"));
    }
    text
}
