//! `oaimend quarantine`: lists, shows and removes quarantined records, and requests them again.
//!
//! The commands work on the data folder. While `oaimend serve` uses it, they work through its admin listener.

mod messages;
mod retry;
mod table;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use oaimend::config::{Config, Mapping};
use oaimend_base::clock;
use oaimend_oai::datestamp;
use oaimend_store::{
    QUARANTINE_LISTED_MAX, QuarantineEntry, QuarantineQuery, QuarantineSelection, QuarantineState,
    RepositoryId, Store,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use self::messages::{failure, unknown_key, unreadable};
use self::retry::{RetrySelection, retry_here, retry_in_server};
use self::table::{Listed, format_table};
use super::admin_client::AdminClient;
use super::data_arguments::DataArguments;
use super::exit::{Exit, Failure, describe_unknown_id, print, print_message};
use super::output_format::{OutputFormat, format_json};
use super::state::{IfAbsent, State};

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

/// Most days of an age.
const DAYS_MAX: u64 = 36_500;

/// The quarantine: in the data folder, or in the server that uses it.
enum OpenQuarantine {
    /// With the data folder of an empty state.
    Here {
        store: Box<Store>,
        runtime: Runtime,
        _empty: Option<TempDir>,
    },
    InServer(AdminClient),
}

pub(crate) fn run(arguments: QuarantineArguments) -> Result<Exit, Failure> {
    let QuarantineArguments { command, data } = arguments;
    let (config, state) = data.find(IfAbsent::ReadEmpty)?;
    let quarantine = OpenQuarantine::open(state)?;
    let exit = match command {
        QuarantineCommand::Ls { ids, state, format } => {
            quarantine.list(&chosen(&config, &ids)?, state, format)
        }
        QuarantineCommand::Show { id, key } => {
            chosen(&config, std::slice::from_ref(&id))?;
            quarantine.show(&id, &key)
        }
        QuarantineCommand::Rm { id, keys, resolved, before, older_than, all } => {
            chosen(&config, std::slice::from_ref(&id))?;
            let days_ago = |days| clock::utc_datetime(clock::now() - Duration::from_secs(days * 86_400));
            let (state, before) =
                (resolved.then_some(QuarantineState::Resolved), before.or(older_than.map(days_ago)));
            let selections = match keys.is_empty() {
                true if all => vec![QuarantineSelection::ALL],
                true => vec![QuarantineSelection::Matching { state, before }],
                false => keys.into_iter().map(QuarantineSelection::Key).collect(),
            };
            quarantine.remove(&id, selections)
        }
        QuarantineCommand::Retry { id, key, prefix } => {
            let mapping = find_mapping(&config, &id)?;
            quarantine.retry(RetrySelection { mapping: &mapping, key: key.as_deref(), prefix })
        }
    };
    quarantine.close();
    exit
}

/// The repositories with these ids; without an id all of them.
fn chosen(config: &Config, ids: &[String]) -> Result<Vec<String>, Failure> {
    let all = config.repositories.all();
    if ids.is_empty() {
        return Ok(all.keys().cloned().collect());
    }
    match ids.iter().find(|id| !all.contains_key(*id)) {
        Some(unknown) => Err(Failure::usage(describe_unknown_id(config, unknown))),
        None => Ok(ids.to_vec()),
    }
}

impl OpenQuarantine {
    fn open(state: State) -> Result<Self, Failure> {
        let data = match state {
            State::Here(data) => data,
            State::InServer(client) => return Ok(Self::InServer(client)),
        };
        let (store, empty) = data.open()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the threads"), &error))?;
        Ok(Self::Here { store: Box::new(store), runtime, _empty: empty })
    }

    fn close(&self) {
        if let Self::Here { store, .. } = self {
            store.close();
        }
    }

    fn list(
        &self,
        ids: &[String],
        state: Option<QuarantineState>,
        format: OutputFormat,
    ) -> Result<Exit, Failure> {
        let mut records = Vec::new();
        for id in ids {
            let entries = self.entries(id, state)?;
            if entries.len() >= QUARANTINE_LISTED_MAX {
                print_message(format!("{id}: only the first {QUARANTINE_LISTED_MAX} records are listed"));
            }
            let listed = |(key, entry)| Listed { repository: id.as_str(), key, entry };
            records.extend(entries.into_iter().map(listed));
        }
        let now_secs = clock::unix_secs(clock::now());
        let text = match format {
            OutputFormat::Json => {
                let records: Vec<Value> = records.iter().map(|record| record.to_json(now_secs)).collect();
                format_json(&json!({ "records": records }))
            }
            OutputFormat::Text => format_table(&records, now_secs),
        };
        print(text.as_bytes())
    }

    fn entries(
        &self,
        id: &str,
        state: Option<QuarantineState>,
    ) -> Result<Vec<(String, QuarantineEntry)>, Failure> {
        match self {
            Self::Here { store, runtime, .. } => {
                let quarantine = Arc::clone(&store.quarantine);
                let query = QuarantineQuery { state, ..QuarantineQuery::default() };
                runtime.block_on(quarantine.list(RepositoryId(id), query)).map_err(|error| failure(&error))
            }
            Self::InServer(client) => {
                let query = state.map(|state| format!("?state={}", state.name())).unwrap_or_default();
                let mut response =
                    client.send("GET", &format!("/-/repositories/{id}/quarantine{query}"))?.json;
                let records: Vec<Value> =
                    serde_json::from_value(response["records"].take()).map_err(|_| unreadable())?;
                let entry = |record: Value| {
                    let key = record["key"].as_str().map(str::to_owned);
                    Ok((
                        key.ok_or_else(unreadable)?,
                        serde_json::from_value(record).map_err(|_| unreadable())?,
                    ))
                };
                records.into_iter().map(entry).collect()
            }
        }
    }

    fn show(&self, id: &str, key: &str) -> Result<Exit, Failure> {
        let raw = match self {
            Self::Here { store, runtime, .. } => {
                let found = runtime
                    .block_on(store.quarantine.find(RepositoryId(id), key))
                    .map_err(|error| failure(&error))?;
                found.map(|(_, raw)| raw)
            }
            Self::InServer(client) => {
                let response = client.send("GET", &format!("/-/repositories/{id}/quarantine/{key}"))?;
                match (response.json["raw"].as_str(), response.json["raw_hex"].as_str()) {
                    _ if response.status == 404 => None,
                    (Some(text), _) => Some(text.as_bytes().to_vec()),
                    (None, Some(digits)) => Some(hex::decode(digits).map_err(|_| unreadable())?),
                    (None, None) => return Err(unreadable()),
                }
            }
        };
        print(&raw.ok_or_else(|| unknown_key(id, key))?)
    }

    fn retry(&self, selection: RetrySelection<'_>) -> Result<Exit, Failure> {
        match self {
            Self::Here { store, runtime, .. } => retry_here(store, runtime, selection),
            Self::InServer(client) => retry_in_server(client, selection),
        }
    }

    fn remove(&self, id: &str, selections: Vec<QuarantineSelection>) -> Result<Exit, Failure> {
        let mut removed = 0;
        for which in selections {
            let key = match &which {
                QuarantineSelection::Key(key) => Some(key.clone()),
                _ => None,
            };
            let count = self.remove_selected(id, which)?;
            if count == 0
                && let Some(key) = key
            {
                return Err(unknown_key(id, &key));
            }
            removed += count;
        }
        print(
            format!("{id}: {removed} {} removed\n", if removed == 1 { "record" } else { "records" })
                .as_bytes(),
        )
    }

    fn remove_selected(&self, id: &str, which: QuarantineSelection) -> Result<u64, Failure> {
        match self {
            Self::Here { store, runtime, .. } => runtime
                .block_on(store.quarantine.remove(RepositoryId(id), which))
                .map_err(|error| failure(&error)),
            Self::InServer(client) => {
                let rest = match which {
                    QuarantineSelection::Key(key) => format!("/{key}"),
                    QuarantineSelection::ALL => "?all=true".to_owned(),
                    QuarantineSelection::Matching { state, before } => {
                        let state = state.map(|state| format!("state={}", state.name()));
                        let before = before.map(|time| format!("before={time}"));
                        let conditions: Vec<String> = state.into_iter().chain(before).collect();
                        format!("?{}", conditions.join("&"))
                    }
                };
                let response = client.send("DELETE", &format!("/-/repositories/{id}/quarantine{rest}"))?;
                match (response.status, response.json["error"].as_str()) {
                    (404, _) => Ok(0),
                    (_, Some(error)) => Err(Failure::incomplete(error)),
                    (_, None) => response.json["removed"].as_u64().ok_or_else(unreadable),
                }
            }
        }
    }
}

fn find_mapping(config: &Config, id: &str) -> Result<Arc<Mapping>, Failure> {
    chosen(config, &[id.to_owned()])?;
    config.repositories.find(id).ok_or_else(|| Failure::usage(describe_unknown_id(config, id)))
}

fn parse_state(text: &str) -> Result<QuarantineState, String> {
    QuarantineState::from_name(text).ok_or_else(|| "expected open or resolved".to_owned())
}

fn parse_date(text: &str) -> Result<String, String> {
    match datestamp::to_secs(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected a day or a time in UTC, such as 2026-01-31 or 2026-01-31T12:00:00Z".to_owned()),
    }
}
