//! `oaimend mirror status`: the records and the last harvest of each repository.

use std::fmt::Write as _;

use clap::Args;
use oaimend_mirror::status::{FormatStatus, RepositoryStatus};
use serde_json::json;

use super::super::admin_api::AdminApi;
use super::super::exit::{Exit, Failure, print};
use super::super::output_format::{OutputFormat, format_json};
use super::statuses;

#[derive(Debug, Args)]
pub(super) struct StatusArguments {
    /// The format of the output
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(api: &AdminApi, arguments: &StatusArguments) -> Result<Exit, Failure> {
    let statuses = statuses(api)?;
    let text = match arguments.format {
        OutputFormat::Json => format_json(&json!({ "repositories": statuses })),
        OutputFormat::Text => format_table(&statuses),
    };
    print(text.as_bytes())
}

fn format_table(statuses: &[RepositoryStatus]) -> String {
    let formats = || {
        statuses.iter().flat_map(|status| status.formats.iter().map(|format| (status.id.as_str(), format)))
    };
    let width = |text: fn(&(&str, &FormatStatus)) -> usize, head: &str| {
        formats().map(|row| text(&row)).max().unwrap_or(0).max(head.len())
    };
    let ids = width(|(id, _)| id.len(), "repository");
    let prefixes = width(|(_, format)| format.prefix.len(), "format");
    let mut table = String::new();
    if formats().next().is_some() {
        let _ = writeln!(
            table,
            "{:ids$}  {:prefixes$}  {:>10}  {:>8}  {:>7}  {:>8}  complete until",
            "repository", "format", "records", "deleted", "missing", "MiB"
        );
    }
    for (id, format) in formats() {
        let FormatStatus { prefix, records, deleted, missing, .. } = format;
        let mib = format.disk_bytes as f64 / f64::from(1 << 20);
        let _ = writeln!(
            table,
            "{id:ids$}  {prefix:prefixes$}  {records:>10}  {deleted:>8}  {missing:>7}  {mib:>8.1}  {}",
            describe_end(format)
        );
    }
    for status in statuses {
        let surplus = status.last_harvest.as_ref().map_or(0, |last| last.surplus_sets);
        if surplus > 0 {
            let _ = writeln!(table, "{}: {surplus} setSpecs of records are beyond the limits", status.id);
        }
        let duplicates = status.formats.iter().map(|format| format.duplicates).sum::<u64>();
        if duplicates > 0 {
            let _ = writeln!(
                table,
                "{}: {duplicates} duplicates: records whose identifier was listed before, with another content",
                status.id
            );
        }
        for error in status.last_harvest.iter().flat_map(|last| &last.errors) {
            let _ = writeln!(table, "{}: the last harvest is not complete: {error}", status.id);
        }
    }
    if table.is_empty() { "the mirror is empty; run: oaimend mirror sync\n".to_owned() } else { table }
}

fn describe_end(format: &FormatStatus) -> String {
    let mut end = format.complete_until.clone().unwrap_or_else(|| "never".to_owned());
    if format.harvest_open {
        end.push_str(", harvest not complete");
    }
    if format.unrepairable > 0 {
        let _ = write!(end, ", {} unrepairable", format.unrepairable);
    }
    if format.damaged > 0 {
        let _ = write!(end, ", {} damaged", format.damaged);
    }
    if format.held_deletions > 0 {
        let _ = write!(end, ", {} deletions wait for sync --accept-deletions", format.held_deletions);
    }
    end
}
