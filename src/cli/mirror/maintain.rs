//! `oaimend mirror verify`, `accept-loss`, `compact` and `forget`: the maintenance of the store.

use clap::Args;
use oaimend_mirror::harvest::Difference;
use oaimend_mirror::maintenance::{ComparisonReport, MaintenanceLine};

use super::super::admin_api::{AdminApi, Refusal, no_result};
use super::super::exit::{Exit, Failure, print};
use super::super::progress::ProgressLine;
use super::{mirrored, parse_id, statuses};

#[derive(Debug, Args)]
pub(super) struct IdArguments {
    /// The ids of stored repositories; none: all of them
    #[arg(value_name = "ID", value_parser = parse_id)]
    ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// The ids of stored repositories; none: all of them
    #[arg(value_name = "ID", value_parser = parse_id)]
    ids: Vec<String>,
    /// Compares identifiers and datestamps with those of the source instead
    #[arg(long)]
    against_source: bool,
}

#[derive(Debug, Args)]
pub(super) struct OneIdArguments {
    /// The id of a stored repository
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: String,
}

pub(super) fn verify(api: &AdminApi, arguments: &VerifyArguments) -> Result<Exit, Failure> {
    let VerifyArguments { ids, against_source } = arguments;
    if !against_source {
        return run_all(api, "verify", &ids_or_stored(api, ids)?);
    }
    let ids: Vec<String> = mirrored(api, ids)?.iter().map(|mapping| mapping.id().to_owned()).collect();
    run_all(api, "verify?against_source=true", &ids)
}

pub(super) fn compact(api: &AdminApi, arguments: &IdArguments) -> Result<Exit, Failure> {
    run_all(api, "compact", &ids_or_stored(api, &arguments.ids)?)
}

pub(super) fn accept_loss(api: &AdminApi, arguments: &OneIdArguments) -> Result<Exit, Failure> {
    run_all(api, "accept-loss", std::slice::from_ref(&arguments.id))
}

pub(super) fn forget(api: &AdminApi, arguments: &OneIdArguments) -> Result<Exit, Failure> {
    run_all(api, "forget", std::slice::from_ref(&arguments.id))
}

/// The ids, or all stored repositories.
fn ids_or_stored(api: &AdminApi, ids: &[String]) -> Result<Vec<String>, Failure> {
    if !ids.is_empty() {
        return Ok(ids.to_vec());
    }
    // The list contains repositories that were never harvested too.
    let stored = statuses(api)?.into_iter().filter(|status| !status.formats.is_empty());
    Ok(stored.map(|status| status.id).collect())
}

/// Runs a task, with its query, for each of these repositories, and prints the results.
fn run_all(api: &AdminApi, task: &str, ids: &[String]) -> Result<Exit, Failure> {
    let mut is_good = true;
    let progress = ProgressLine::default();
    for id in ids {
        let lines = api.send("POST", &format!("/-/mirror/{id}/{task}"))?;
        let lines = lines.map_err(|Refusal { status, error }| match status {
            404 => Failure::usage(error),
            _ => Failure::in_use(format_args!("{id}: {error}")),
        })?;
        let mut has_result = false;
        for line in lines.into_lines() {
            let line = line?;
            if let MaintenanceLine::Running { secs } = line {
                progress.show_wait(id, secs);
                continue;
            }
            progress.end(id);
            let (text, is_success) = describe(id, line);
            (has_result, is_good) = (true, is_good && is_success);
            print(text.as_bytes())?;
        }
        if !has_result {
            return Err(no_result());
        }
    }
    Ok(if is_good { Exit::Success } else { Exit::Incomplete })
}

/// The lines about a result, and whether it is good.
fn describe(id: &str, line: MaintenanceLine) -> (String, bool) {
    match line {
        MaintenanceLine::Running { .. } => (String::new(), true),
        MaintenanceLine::Verified { records, damaged } => {
            let advice = match damaged {
                0 => String::new(),
                _ => format!(
                    "; run: oaimend mirror sync {id}; if the source is gone: oaimend mirror accept-loss {id}"
                ),
            };
            (format!("{id}: {records} records, {damaged} damaged{advice}\n"), damaged == 0)
        }
        MaintenanceLine::LossAccepted { missing } => {
            (format!("{id}: {missing} damaged records count as missing\n"), true)
        }
        MaintenanceLine::Compacted { freed_bytes } => (format!("{id}: {freed_bytes} bytes freed\n"), true),
        MaintenanceLine::Compared(report) => (describe_comparison(id, &report), report.is_equal()),
        MaintenanceLine::Forgotten { is_mirrored: false } => (format!("{id}: forgotten\n"), true),
        MaintenanceLine::Forgotten { is_mirrored: true } => {
            let next = "its mapping has a [mirror] table, so the server harvests it again";
            (format!("{id}: forgotten; {next}\n"), true)
        }
        MaintenanceLine::Failed { prefix, error } => {
            let prefix = prefix.map(|prefix| format!(" {prefix}")).unwrap_or_default();
            (format!("{id}{prefix}: {error}\n"), false)
        }
    }
}

fn describe_comparison(id: &str, report: &ComparisonReport) -> String {
    let ComparisonReport { prefix, listed, missing, vanished, changed } = report;
    let mut text = format!(
        "{id} {prefix}: {listed} records at the source, {} missing, {} vanished, {} changed\n",
        missing.count, vanished.count, changed.count
    );
    for (kind, Difference { count, identifiers }) in
        [("missing", missing), ("vanished", vanished), ("changed", changed)]
    {
        for identifier in identifiers {
            text.push_str(&format!("  {kind}: {identifier}\n"));
        }
        let unnamed = count - identifiers.len() as u64;
        if unnamed > 0 {
            text.push_str(&format!("  {kind}: {unnamed} more\n"));
        }
    }
    text
}
