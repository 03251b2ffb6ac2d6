//! `oaimend token`: the write tokens of clients that deposit records.
//!
//! The commands change a file of the data folder, which a running server reads again at the next request. So they need
//! neither the lock of the folder nor the admin listener.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use oaimend::config::{Config, Flags};
use oaimend_base::clock;
use oaimend_base::error::Error;
use oaimend_base::suggestions::suggest_ids;
use oaimend_write_tokens::{CreatedWriteToken, NewWriteToken, WriteRights, WriteTokenInfo, WriteTokens};
use serde_json::json;

use super::data_arguments::{ConfigArguments, create_private_files};
use super::exit::{Exit, Failure, print, print_message};
use super::output_format::{OutputFormat, format_json};
use super::state::{check_data_exist, foreign_owner};

/// Creates, lists and revokes the tokens of clients that write to local repositories
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    #[command(subcommand)]
    command: TokenCommand,
    #[command(flatten)]
    config: ConfigArguments,
    /// Folder for the mirror and other state, which contains the tokens [default: data]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Creates a token and prints it. It is not shown again
    Create {
        /// The id of the repository that its holder may write to
        #[arg(long, value_name = "ID")]
        repository: String,
        /// Limits the token to records of this set and the sets below it; can be repeated [default: all sets]
        #[arg(long = "set", value_name = "SETSPEC")]
        sets: Vec<String>,
        /// The name by which the token is listed and revoked [default: the id and a number]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Lists the names and rights of all tokens
    List {
        /// The format of the output
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Revokes a token, also in a running server
    Revoke {
        /// The name of the token, from `list`
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub(crate) fn run(arguments: TokenArguments) -> Result<Exit, Failure> {
    let TokenArguments { command, config: ConfigArguments { config, mappings }, data } = arguments;
    let is_named = data.is_some();
    let config = Config::load(&Flags { config, mappings, data, ..Flags::default() })?;
    if let Some(owner) = foreign_owner(&config.data) {
        return Err(Failure::in_use(owner.explain(&config.data)));
    }
    create_private_files();
    let tokens = WriteTokens::new(&config.data);
    match command {
        TokenCommand::Create { repository, sets, name } => {
            check_repository(&config, &repository)?;
            create(&tokens, NewWriteToken { name, repository, sets })
        }
        TokenCommand::List { format } => {
            check_data_exist(&config.data, is_named)?;
            let tokens = tokens.list().map_err(Error::from)?;
            let text = match format {
                OutputFormat::Json => format_json(&json!({ "tokens": tokens })),
                OutputFormat::Text => format_table(&tokens),
            };
            print(text.as_bytes())
        }
        TokenCommand::Revoke { name } => {
            check_data_exist(&config.data, true)?;
            tokens.revoke(&name).map_err(Error::from)?;
            print(format!("{name} revoked\n").as_bytes())
        }
    }
}

/// Checks that a repository is a local one, so that a misspelt id does not become a token without use.
fn check_repository(config: &Config, id: &str) -> Result<(), Failure> {
    let all = config.repositories.all();
    match all.get(id) {
        Some(mapping) if mapping.local.is_some() => return Ok(()),
        Some(_) => {
            let text =
                "is not a local repository, so nobody writes to it; set kind = \"local\" in its mapping";
            return Err(Failure::usage(format!("\"{id}\" {text}")));
        }
        None => {}
    }
    let local = all.values().filter(|mapping| mapping.local.is_some());
    let known: Vec<&str> = local.map(|mapping| mapping.id()).collect();
    let known = match known.as_slice() {
        [] => "no mapping has kind = \"local\"".to_owned(),
        known => format!("expected {}", suggest_ids(id, known)),
    };
    Err(Failure::usage(format!("\"{}\" is not a repository id; {known}", id.escape_debug())))
}

/// Creates a token, and prints nothing but the token on stdout.
fn create(tokens: &WriteTokens, new: NewWriteToken) -> Result<Exit, Failure> {
    let created = tokens.create(new, clock::now()).map_err(Error::from)?;
    let CreatedWriteToken { token, rights } = created;
    if let Err(failure) = print(format!("{token}\n").as_bytes()) {
        // Nobody knows the token. If it cannot be removed, the list shows it.
        let _ = tokens.revoke(&rights.name);
        return Err(failure);
    }
    let WriteRights { name, repository, sets } = rights;
    let records = match sets.as_slice() {
        [] => format!("all records of {repository}"),
        [set] => format!("records of {repository} in the set {set}"),
        sets => format!("records of {repository} in the sets {}", sets.join(", ")),
    };
    print_message(format!(
        "the token {name} may write {records}; it is not shown again, and oaimend token revoke {name} revokes it"
    ));
    Ok(Exit::Success)
}

fn describe_sets(rights: &WriteRights) -> String {
    if rights.sets.is_empty() { "all sets".to_owned() } else { rights.sets.join(", ") }
}

fn format_table(tokens: &[WriteTokenInfo]) -> String {
    if tokens.is_empty() {
        return "no write tokens\n".to_owned();
    }
    let width = |text: fn(&WriteTokenInfo) -> &str, head: &str| {
        tokens.iter().map(|token| text(token).len()).max().unwrap_or_default().max(head.len())
    };
    let names = width(|token| &token.rights.name, "name");
    let ids = width(|token| &token.rights.repository, "repository");
    let times = width(|token| &token.created, "created");
    let mut table = String::new();
    let mut write_row = |name: &str, id: &str, created: &str, sets: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(table, "{name:names$}  {id:ids$}  {created:times$}  {sets}");
    };
    write_row("name", "repository", "created", "sets");
    for token in tokens {
        let WriteTokenInfo { rights, created } = token;
        write_row(&rights.name, &rights.repository, created, &describe_sets(rights));
    }
    table
}
