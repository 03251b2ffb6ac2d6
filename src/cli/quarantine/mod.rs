//! `oaimend quarantine`: lists, shows and removes quarantined records, and requests them again.

mod retry;
mod table;

use std::time::Duration;

use clap::{Args, Subcommand};
use oaimend_base::clock;
use oaimend_oai::{Named as _, datestamp};
use oaimend_store::{QUARANTINE_LISTED_MAX, QuarantineState};
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

use self::retry::retry;
use self::table::{ListedRecord, format_table};
use super::admin_api::{AdminApi, Refusal};
use super::data_arguments::DataArguments;
use super::exit::{Exit, Failure, print, print_message};
use super::output_format::{OutputFormat, format_json};
use super::state::IfAbsent;

/// Lists, shows and removes quarantined records, and requests them again
#[derive(Debug, Args)]
pub(crate) struct QuarantineArguments {
    #[command(subcommand)]
    command: QuarantineCommand,
    #[command(flatten)]
    data: DataArguments,
}

#[derive(Debug, Subcommand)]
enum QuarantineCommand {
    /// Lists the quarantined records of repositories; without an id of all
    Ls {
        /// Ids of repositories
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        /// Lists only open or only resolved records
        #[arg(long, value_name = "STATE", value_parser = parse_state)]
        state: Option<QuarantineState>,
        /// The format of the output
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Writes the bytes of a quarantined record, as they came
    Show {
        /// The id of the repository
        #[arg(value_name = "ID")]
        id: String,
        /// The key of the record, from `ls`
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Removes quarantined records of a repository
    Rm {
        /// The id of the repository
        #[arg(value_name = "ID")]
        id: String,
        /// Keys of records, from `ls`
        #[arg(value_name = "KEY", required_unless_present_any = ["resolved", "before", "older_than", "all"])]
        keys: Vec<String>,
        /// Removes resolved records
        #[arg(long, conflicts_with_all = ["keys", "all"])]
        resolved: bool,
        /// Removes the records that were resolved, or last seen if they are open, before this day or time in UTC
        #[arg(long, value_name = "DATE", conflicts_with_all = ["keys", "all"], value_parser = parse_date)]
        before: Option<String>,
        /// Removes the records that were resolved, or last seen if they are open, more than so many days ago
        #[arg(long, value_name = "DAYS", conflicts_with_all = ["keys", "all", "before"],
              value_parser = clap::value_parser!(u64).range(0..=DAYS_MAX))]
        older_than: Option<u64>,
        /// Removes all records
        #[arg(long, conflicts_with = "keys")]
        all: bool,
    },
    /// Requests quarantined records from the source again; without a key all open ones
    Retry {
        /// The id of the repository
        #[arg(value_name = "ID")]
        id: String,
        /// The key of a record, from `ls`
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// The format of records whose format is not known
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<String>,
    },
}

/// Maximum number of days of an age.
const DAYS_MAX: u64 = 36_500;

pub(crate) fn run(arguments: QuarantineArguments) -> Result<Exit, Failure> {
    let QuarantineArguments { command, data } = arguments;
    let api = data.open(IfAbsent::ReadEmpty)?;
    match command {
        QuarantineCommand::Ls { ids, state, format } => {
            let ids = if ids.is_empty() { api.repository_ids()? } else { ids };
            list(&api, &ids, state, format)
        }
        QuarantineCommand::Show { id, key } => show(&api, &id, &key),
        QuarantineCommand::Rm { id, keys, resolved, before, older_than, all } => {
            let days_ago = |days| clock::utc_datetime(clock::now() - Duration::from_secs(days * 86_400));
            let before = before.or(older_than.map(days_ago)).map(|before| format!("before={before}"));
            let conditions =
                [resolved.then(|| "state=resolved".to_owned()), before, all.then(|| "all=true".to_owned())];
            let conditions: Vec<String> = conditions.into_iter().flatten().collect();
            remove(&api, &id, &keys, &conditions.join("&"))
        }
        QuarantineCommand::Retry { id, key, prefix } => retry(&api, &id, key.as_deref(), prefix.as_deref()),
    }
}

/// The path of the quarantine of a repository, or of a record in it.
fn path(id: &str, key: Option<&str>) -> String {
    let key = key.map_or_else(String::new, |key| format!("/{}", url_part(key)));
    format!("/-/repositories/{id}/quarantine{key}")
}

fn url_part(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

#[derive(Deserialize)]
struct Records {
    records: Vec<ListedRecord>,
}

/// The bytes of a record, as text, or as hexadecimal digits if they are not UTF-8.
#[derive(Deserialize)]
struct RawRecord {
    raw: Option<String>,
    raw_hex: Option<String>,
}

#[derive(Deserialize)]
struct Removed {
    removed: u64,
}

fn list(
    api: &AdminApi,
    ids: &[String],
    state: Option<QuarantineState>,
    format: OutputFormat,
) -> Result<Exit, Failure> {
    ids.iter().try_for_each(|id| api.check_id(id))?;
    let mut records = Vec::new();
    for id in ids {
        let query = state.map_or_else(String::new, |state| format!("?state={}", state.name()));
        let listed = api.send("GET", &format!("{}{query}", path(id, None)))?;
        let listed = listed.map_err(|refusal| explain(id, None, refusal))?.read::<Records>()?.records;
        if listed.len() >= QUARANTINE_LISTED_MAX {
            print_message(format!("{id}: only the first {QUARANTINE_LISTED_MAX} records are listed"));
        }
        records.extend(listed.into_iter().map(|record| (id.as_str(), record)));
    }
    let now_secs = clock::unix_secs(clock::now());
    let text = match format {
        OutputFormat::Json => {
            let to_json = |(id, record): &(&str, ListedRecord)| record.to_json(id, now_secs);
            let records: Vec<Value> = records.iter().map(to_json).collect();
            format_json(&json!({ "records": records }))
        }
        OutputFormat::Text => format_table(&records, now_secs),
    };
    print(text.as_bytes())
}

fn show(api: &AdminApi, id: &str, key: &str) -> Result<Exit, Failure> {
    api.check_id(id)?;
    let record = api.send("GET", &path(id, Some(key)))?;
    let record = record.map_err(|refusal| explain(id, Some(key), refusal))?;
    match record.read()? {
        RawRecord { raw: Some(text), .. } => print(text.as_bytes()),
        RawRecord { raw_hex, .. } => {
            let bytes = raw_hex.and_then(|digits| hex::decode(digits).ok());
            print(&bytes.ok_or_else(|| Failure::incomplete("the response of the server has no record"))?)
        }
    }
}

/// Removes the records with these keys; without a key those that fit the conditions.
fn remove(api: &AdminApi, id: &str, keys: &[String], conditions: &str) -> Result<Exit, Failure> {
    api.check_id(id)?;
    let remove = |target: &str, key: Option<&str>| {
        let removed = api.send("DELETE", target)?.map_err(|refusal| explain(id, key, refusal))?;
        Ok::<u64, Failure>(removed.read::<Removed>()?.removed)
    };
    let removed = match keys {
        [] => remove(&format!("{}?{conditions}", path(id, None)), None)?,
        keys => {
            keys.iter().map(|key| remove(&path(id, Some(key)), Some(key))).sum::<Result<u64, Failure>>()?
        }
    };
    let records = if removed == 1 { "record" } else { "records" };
    print(format!("{id}: {removed} {records} removed\n").as_bytes())
}

/// Why a request for the records, or for the one with this key, has no result.
fn explain(id: &str, key: Option<&str>, refusal: Refusal) -> Failure {
    match (refusal.status, key) {
        (404, Some(key)) => Failure::incomplete(format_args!(
            "the quarantine of {id} has no record {}; run oaimend quarantine ls {id}",
            key.escape_debug()
        )),
        _ => Failure::incomplete(format_args!("{id}: {}", refusal.error)),
    }
}

fn parse_state(text: &str) -> Result<QuarantineState, String> {
    QuarantineState::from_name(text).ok_or_else(QuarantineState::expected)
}

fn parse_date(text: &str) -> Result<String, String> {
    match datestamp::to_secs(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected a day or a time in UTC, such as 2026-01-31 or 2026-01-31T12:00:00Z".to_owned()),
    }
}
