//! `oaimend quarantine`: lists, shows and removes quarantined records.
//!
//! The commands work on the data folder. While `oaimend serve` uses it, they work through its admin listener.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use clap::{Args, Subcommand};
use oaimend::config::Config;
use oaimend::oai::datestamp;
use oaimend::store::{
    DataDirLock, QUARANTINE_LISTED_MAX, QuarantineEntry, QuarantineError, QuarantineSelection, Store,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::admin_client::AdminClient;
use super::data_arguments::{DataArguments, create_private_files};
use super::exit::{Exit, Failure, print};

/// Lists, shows and removes quarantined records
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
        /// Prints one JSON document instead of the table
        #[arg(long)]
        json: bool,
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
        #[arg(value_name = "KEY", required_unless_present_any = ["before", "all"])]
        keys: Vec<String>,
        /// Removes the records that were last seen before this day or time in UTC
        #[arg(long, value_name = "DATE", conflicts_with_all = ["keys", "all"], value_parser = parse_date)]
        before: Option<String>,
        /// Removes all records
        #[arg(long, conflicts_with = "keys")]
        all: bool,
    },
}

/// The quarantine: in the data folder, or in the server that uses it.
enum OpenQuarantine {
    Here { store: Box<Store>, runtime: Runtime },
    InServer(AdminClient),
}

pub(crate) fn run(arguments: QuarantineArguments) -> Result<Exit, Failure> {
    let QuarantineArguments { command, data } = arguments;
    let config = data.load()?;
    create_private_files();
    let quarantine = OpenQuarantine::open(&config)?;
    let exit = match command {
        QuarantineCommand::Ls { ids, json } => quarantine.list(&chosen(&config, &ids)?, json),
        QuarantineCommand::Show { id, key } => {
            chosen(&config, std::slice::from_ref(&id))?;
            quarantine.show(&id, &key)
        }
        QuarantineCommand::Rm { id, keys, before, all } => {
            chosen(&config, std::slice::from_ref(&id))?;
            let selections = match (before, all) {
                (Some(time), _) => vec![QuarantineSelection::LastSeenBefore(time)],
                (None, true) => vec![QuarantineSelection::All],
                (None, false) => keys.into_iter().map(QuarantineSelection::Key).collect(),
            };
            quarantine.remove(&id, selections)
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
        Some(unknown) => {
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            Err(Failure::usage(format!(
                "there is no repository \"{unknown}\"; known ids are {}",
                known.join(", ")
            )))
        }
        None => Ok(ids.to_vec()),
    }
}

impl OpenQuarantine {
    fn open(config: &Config) -> Result<Self, Failure> {
        let Some(lock) = DataDirLock::take(&config.data)? else {
            return Ok(Self::InServer(AdminClient::of_server(config)?));
        };
        let store = Store::open_locked(lock)?;
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the threads"), &error))?;
        Ok(Self::Here { store: Box::new(store), runtime })
    }

    fn close(&self) {
        if let Self::Here { store, .. } = self {
            store.close();
        }
    }

    fn list(&self, ids: &[String], json: bool) -> Result<Exit, Failure> {
        let mut records = Vec::new();
        for id in ids {
            for (key, entry) in self.entries(id)? {
                records.push((id.as_str(), key, entry));
            }
        }
        let text = match json {
            true => format!("{:#}\n", json!({ "records": records.iter().map(to_json).collect::<Vec<_>>() })),
            false => format_table(&records),
        };
        print(text.as_bytes())
    }

    fn entries(&self, id: &str) -> Result<Vec<(String, QuarantineEntry)>, Failure> {
        match self {
            Self::Here { store, runtime } => {
                let quarantine = Arc::clone(&store.quarantine);
                runtime.block_on(quarantine.list(id, QUARANTINE_LISTED_MAX)).map_err(|error| failure(&error))
            }
            Self::InServer(client) => {
                let mut response = client.send("GET", &format!("/-/repositories/{id}/quarantine"))?.json;
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
            Self::Here { store, runtime } => {
                let found =
                    runtime.block_on(store.quarantine.find(id, key)).map_err(|error| failure(&error))?;
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

    fn remove(&self, id: &str, selections: Vec<QuarantineSelection>) -> Result<Exit, Failure> {
        let mut removed = 0;
        for which in selections {
            let key = match &which {
                QuarantineSelection::Key(key) => Some(key.clone()),
                _ => None,
            };
            let count = self.remove_selected(id, which)?;
            if let Some(key) = key.filter(|_| count == 0) {
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
            Self::Here { store, runtime } => {
                runtime.block_on(store.quarantine.remove(id, which)).map_err(|error| failure(&error))
            }
            Self::InServer(client) => {
                let rest = match which {
                    QuarantineSelection::Key(key) => format!("/{key}"),
                    QuarantineSelection::LastSeenBefore(time) => format!("?before={time}"),
                    QuarantineSelection::All => "?all=true".to_owned(),
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

fn to_json((repository, key, entry): &(&str, String, QuarantineEntry)) -> Value {
    let mut value = json!(entry);
    value["repository"] = json!(repository);
    value["key"] = json!(key);
    value
}

fn format_table(records: &[(&str, String, QuarantineEntry)]) -> String {
    if records.is_empty() {
        return "no quarantined records\n".to_owned();
    }
    let width = |text: fn(&(&str, String, QuarantineEntry)) -> usize, head: &str| {
        records.iter().map(text).max().unwrap_or(0).max(head.len())
    };
    let ids = width(|(id, ..)| id.len(), "repository");
    let keys = width(|(_, key, _)| key.len(), "key");
    let reasons = width(|(.., entry)| entry.why.len(), "reason");
    let mut table = String::new();
    let _ = writeln!(
        table,
        "{:ids$}  {:keys$}  {:reasons$}  {:>6}  {:20}  {:>10}  identifier",
        "repository", "key", "reason", "seen", "last seen", "bytes"
    );
    for (id, key, QuarantineEntry { why, seen, last_seen, bytes, identifier, .. }) in records {
        // An identifier may contain characters that control the terminal.
        let identifier =
            identifier.as_ref().map_or_else(|| "unknown".to_owned(), |text| text.escape_debug().to_string());
        let _ = writeln!(
            table,
            "{id:ids$}  {key:keys$}  {why:reasons$}  {seen:>6}  {last_seen:20}  {bytes:>10}  {identifier}"
        );
    }
    table
}

fn parse_date(text: &str) -> Result<String, String> {
    match datestamp::to_secs(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected a day or a time in UTC, such as 2026-01-31 or 2026-01-31T12:00:00Z".to_owned()),
    }
}

fn unknown_key(id: &str, key: &str) -> Failure {
    let key = key.escape_debug();
    Failure::incomplete(format!("the quarantine of {id} has no record {key}; run oaimend quarantine ls {id}"))
}

fn failure(error: &QuarantineError) -> Failure {
    Failure::incomplete(error)
}

fn unreadable() -> Failure {
    Failure::incomplete("the response of the server cannot be read; it may be of another version of oaimend")
}
