//! The arguments of `oaimend repair`, and the configuration of the engine that they make.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use oaimend::config::{Mapping, read_charset};
use oaimend_oai::RequestEcho;
use oaimend_repair::catalog::CATALOG;
use oaimend_repair::{RepairConfig, RepairId};
use url::{Url, form_urlencoded};

use crate::cli::exit::Failure;

/// Repairs OAI-PMH responses: reads each FILE or stdin, writes the complete response to stdout or PATH
///
/// Exit codes: 0 the output is a complete, valid response; 1 something was lost or a required
/// element is missing, and the report has the details; 2 the input is not an OAI-PMH response, and
/// nothing is written; 64 wrong usage; 74 a file cannot be read or written; 78 the mapping has faults.
/// Of several FILEs the highest code counts.
#[derive(Debug, Args)]
pub(crate) struct RepairArguments {
    /// The responses; the default is stdin, also as `-`
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Writes the response to PATH: a file, or a folder with a file for each FILE. Several FILEs need a folder
    #[arg(short, long, value_name = "PATH")]
    pub(super) output: Option<PathBuf>,
    /// Writes each change, each quarantined record and a summary to PATH, as JSON Lines. Several FILEs need a folder
    #[arg(long, value_name = "PATH")]
    pub(super) report: Option<PathBuf>,
    /// The base URL for `<request>` and for baseURL in Identify
    #[arg(long, value_name = "URL", value_parser = parse_base_url)]
    base_url: Option<String>,
    /// The request for `<request>`, such as 'verb=ListRecords&metadataPrefix=oai_dc'
    #[arg(long, value_name = "ARGUMENTS", requires = "base_url", value_parser = parse_request)]
    request: Option<RequestArguments>,
    /// The charset of text that is not UTF-8, such as windows-1251; the default is to detect it for each record
    #[arg(long, value_name = "NAME", value_parser = read_charset)]
    charset: Option<&'static str>,
    /// Turns on a repair that is off by default, such as payload-xsi; may be repeated
    #[arg(long, value_name = "NAME", value_parser = parse_optional_repair)]
    enable: Vec<RepairId>,
    /// Repairs as this mapping file says: charset, granularity, repairs, identify, limits
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
}

/// The arguments of a request, `verb` first, names and values decoded.
#[derive(Clone, Debug)]
struct RequestArguments(Vec<(String, String)>);

impl RepairArguments {
    /// The configuration of the engine. The other options override the mapping.
    pub(super) fn repair_config(&self) -> Result<RepairConfig, Failure> {
        if self.request.is_some() && self.files.len() > 1 {
            return Err(Failure::usage("--request describes one response; repair each FILE with its own"));
        }
        let mut config = RepairConfig::default();
        if let Some(file) = &self.mapping {
            let mapping = Mapping::load(file)?;
            config = mapping.source.repair_config();
            config.repository.granularity = mapping.source.quirks.granularity;
        }
        let request = self.base_url.as_ref().map(|base_url| RequestEcho {
            base_url: base_url.clone(),
            arguments: self.request.clone().map(|request| request.0).unwrap_or_default(),
        });
        config.request = request.map(Arc::new);
        self.enable.iter().for_each(|id| config.enabled.insert(*id));
        if let Some(charset) = self.charset {
            config.text_charset = Some(charset.to_owned());
        }
        Ok(config)
    }
}

/// Parses the value of `--enable`.
fn parse_optional_repair(text: &str) -> Result<RepairId, String> {
    RepairId::from_name(text).filter(|id| id.is_optional()).ok_or_else(|| {
        let names = CATALOG.iter().filter(|entry| entry.id.is_optional()).map(|entry| entry.name);
        format!("expected one of {}", names.collect::<Vec<_>>().join(", "))
    })
}

/// Parses the value of `--base-url`.
fn parse_base_url(text: &str) -> Result<String, String> {
    let url =
        Url::parse(text).map_err(|error| format!("{error}; expected one such as http://example.org/oai"))?;
    match url.scheme() {
        "http" | "https" if url.query().is_none() && url.fragment().is_none() => Ok(text.to_owned()),
        "http" | "https" => Err("a base URL has no query and no fragment; use --request".to_owned()),
        other => Err(format!("a base URL begins with http:// or https://, not {other}:")),
    }
}

/// Parses the value of `--request`.
fn parse_request(text: &str) -> Result<RequestArguments, String> {
    const NAMES: [&str; 7] =
        ["verb", "identifier", "metadataPrefix", "from", "until", "set", "resumptionToken"];
    let mut arguments: Vec<(String, String)> = Vec::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        if !NAMES.contains(&&*name) {
            return Err(format!("OAI-PMH has no argument {name:?}; expected one of {}", NAMES.join(", ")));
        }
        if arguments.iter().any(|(earlier, _)| *earlier == name) {
            return Err(format!("the argument {name} is repeated"));
        }
        arguments.push((name.into_owned(), value.into_owned()));
    }
    let verb = arguments.iter().position(|(name, _)| name == "verb");
    let verb =
        verb.ok_or("the verb is missing; expected one such as verb=ListRecords&metadataPrefix=oai_dc")?;
    arguments[..=verb].rotate_right(1);
    Ok(RequestArguments(arguments))
}
