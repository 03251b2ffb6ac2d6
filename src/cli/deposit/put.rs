//! `oaimend put`: writes the records of files.

use std::path::{Path, PathBuf};

use clap::Args;
use oaimend::config::{Config, Flags};
use oaimend_deposit::identifier_start;
use serde_json::json;

use super::super::admin_client::on_this_machine;
use super::super::data_arguments::ConfigArguments;
use super::super::exit::{Exit, Failure, print};
use super::super::output_format::{OutputFormat, format_json};
use super::client::{AccessArguments, DepositClient, Sent};
use super::collected::{Naming, read_content, records_of};

/// Writes the records of files to a local repository
#[derive(Debug, Args)]
pub(crate) struct PutArguments {
    /// The id of a local repository of the server on this machine, or the base URL of any
    #[arg(value_name = "ID-or-URL")]
    repository: String,
    /// Files with XML (.xml), BibTeX (.bib) or tables (.csv); `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The metadataPrefix of XML [default: by the namespace]
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// A set of the records whose file names none; can be repeated
    #[arg(long = "set", value_name = "SETSPEC")]
    sets: Vec<String>,
    /// The identifier of the only record
    #[arg(long, value_name = "IDENTIFIER")]
    identifier: Option<String>,
    #[command(flatten)]
    access: AccessArguments,
    /// The format of the output
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
    #[command(flatten)]
    config: ConfigArguments,
}

/// Reads all files, and then writes their records.
pub(crate) fn run(arguments: PutArguments) -> Result<Exit, Failure> {
    let PutArguments { repository, files, prefix, sets, identifier, access, format, config } = arguments;
    let (base_url, start) = addresses(&repository, config)?;
    let client = DepositClient::new(&base_url, access)?;
    let naming = Naming { identifier_start: &start, prefix: prefix.as_deref(), set_specs: &sets };
    let mut records = Vec::new();
    for path in &files {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        records.extend(records_of(path, &name, &read_content(path)?, naming)?);
    }
    if let Some(identifier) = identifier {
        let [record] = records.as_mut_slice() else {
            let text = format!("--identifier is for one record, and the files have {}", records.len());
            return Err(Failure::usage(text));
        };
        record.deposit = record.deposit.clone().named(&identifier).map_err(Failure::usage)?;
    } else if files.iter().any(|path| path == Path::new("-")) && records.len() == 1 {
        return Err(Failure::usage("a record from stdin needs --identifier"));
    }
    let mut sent = Sent::default();
    client.send(&records, &mut sent)?;
    let Sent { records, changed, datestamp } = sent;
    let text = match format {
        OutputFormat::Json => {
            format_json(&json!({ "records": records, "changed": changed, "datestamp": datestamp }))
        }
        OutputFormat::Text => format!("records sent: {records}, new or changed: {changed}\n"),
    };
    print(text.as_bytes())
}

/// The base URL of a repository, and the start of its identifiers.
fn addresses(repository: &str, config: ConfigArguments) -> Result<(String, String), Failure> {
    if repository.contains("://") {
        return Ok((repository.to_owned(), identifier_start(repository)));
    }
    let ConfigArguments { config, mappings } = config;
    let config = Config::load(&Flags { config, mappings, ..Flags::default() })?;
    let local = |id: &str| config.repositories.find(id).is_some_and(|mapping| mapping.local.is_some());
    if !local(repository) {
        let text =
            format!("\"{}\" is not a local repository; expected one, or a URL", repository.escape_debug());
        return Err(Failure::usage(text));
    }
    let server = format!("http://{}", on_this_machine(config.listen));
    let public = config.public_url.clone().unwrap_or_else(|| server.clone());
    Ok((format!("{server}/{repository}"), identifier_start(&format!("{public}/{repository}"))))
}
