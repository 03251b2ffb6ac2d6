//! `oaimend validate`: reports the faults of the configuration.

use std::path::PathBuf;

use clap::Args;
use oaimend::config::{Config, Fault, Flags};
use oaimend::error::Error;
use oaimend::upstream::SourceClient;

use super::exit::{Exit, Failure, print};

/// Reads the configuration and reports each fault with its file and line
#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// The settings file [default: oaimend.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder with one mapping file for each repository [default: mappings, if it exists]
    #[arg(long, value_name = "DIR")]
    mappings: Option<PathBuf>,
}

pub(crate) fn run(arguments: ValidateArguments) -> Result<Exit, Failure> {
    let ValidateArguments { config, mappings } = arguments;
    let config = Config::load(&Flags { config, mappings, ..Flags::default() })?;
    let repositories = config.repositories.all();
    for mapping in repositories.values() {
        SourceClient::new(mapping).map_err(|failure| {
            let file = mapping.ca_file.clone().unwrap_or_default();
            Error::Config(vec![Fault { file, line: 1, text: failure.details }])
        })?;
    }
    let count = repositories.len();
    let repositories = if count == 1 { "repository" } else { "repositories" };
    print(format!("no faults; {count} {repositories}\n").as_bytes())
}
