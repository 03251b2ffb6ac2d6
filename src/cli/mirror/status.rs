//! `oaimend mirror status`: the records and the last harvest of each repository.

use std::fmt::Write as _;

use clap::Args;
use oaimend::oai::datestamp::{Granularity, from_secs};
use serde_json::{Value, json};

use super::super::exit::{Exit, Failure, print};
use super::{Context, store_failure};

#[derive(Debug, Args)]
pub(super) struct StatusArguments {
    /// Prints one JSON document instead of the table
    #[arg(long)]
    json: bool,
}

/// One format of a repository.
struct Row {
    id: String,
    prefix: String,
    records: u64,
    deleted: u64,
    damaged: u64,
    disk_bytes: u64,
    /// All changes of the source before this time are in the mirror.
    complete_until: Option<String>,
    is_harvest_open: bool,
}

pub(super) fn run(context: &Context, arguments: &StatusArguments) -> Result<Exit, Failure> {
    let rows = context.runtime.block_on(read_rows(context))?;
    let text = if arguments.json { format_json(&rows) } else { format_table(&rows) };
    print(text.as_bytes())
}

async fn read_rows(context: &Context) -> Result<Vec<Row>, Failure> {
    let store = &context.store.mirror;
    let mut rows = Vec::new();
    for id in store.repositories().await.map_err(store_failure)? {
        for size in store.collections(&id).await.map_err(store_failure)? {
            let progress = store.progress(&id, &size.prefix).await.map_err(store_failure)?;
            rows.push(Row {
                id: id.clone(),
                records: size.records,
                deleted: size.tombstones,
                damaged: size.damaged,
                disk_bytes: size.disk_bytes,
                complete_until: progress
                    .last_complete
                    .map(|last| from_secs(last.from_secs, Granularity::Second)),
                is_harvest_open: progress.open_list.is_some(),
                prefix: size.prefix,
            });
        }
    }
    Ok(rows)
}

fn format_json(rows: &[Row]) -> String {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "repository": row.id,
                "prefix": row.prefix,
                "records": row.records,
                "deleted": row.deleted,
                "damaged": row.damaged,
                "disk_bytes": row.disk_bytes,
                "complete_until": row.complete_until,
                "harvest_interrupted": row.is_harvest_open,
            })
        })
        .collect();
    format!("{:#}\n", Value::Array(rows))
}

fn format_table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "the mirror is empty; run: oaimend mirror sync\n".to_owned();
    }
    let width = |text: fn(&Row) -> &str, head: &str| {
        rows.iter().map(|row| text(row).len()).max().unwrap_or(0).max(head.len())
    };
    let (ids, prefixes) = (width(|row| &row.id, "repository"), width(|row| &row.prefix, "format"));
    let mut table = format!(
        "{:ids$}  {:prefixes$}  {:>10}  {:>8}  {:>8}  complete until\n",
        "repository", "format", "records", "deleted", "MiB"
    );
    for row in rows {
        let mut until = row.complete_until.clone().unwrap_or_else(|| "never".to_owned());
        if row.is_harvest_open {
            until.push_str(", harvest interrupted");
        }
        if row.damaged > 0 {
            let _ = write!(until, ", {} damaged", row.damaged);
        }
        let mib = row.disk_bytes as f64 / f64::from(1 << 20);
        let _ = writeln!(
            table,
            "{:ids$}  {:prefixes$}  {:>10}  {:>8}  {mib:>8.1}  {until}",
            row.id, row.prefix, row.records, row.deleted
        );
    }
    table
}
