//! The arguments of `oaimend tape build`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use oaimend::config::check_id;
use url::Url;

use crate::cli::data_arguments::DataArguments;
use crate::cli::output_format::OutputFormat;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("records").required(true).args(["files", "from_mirror", "from"]))]
pub(super) struct BuildArguments {
    /// The tape, such as letters.xml.gz. Its index is written beside it
    #[arg(value_name = "OUT")]
    pub(super) out: PathBuf,
    /// Saved OAI-PMH responses, single records, or other tapes
    #[arg(value_name = "FILES")]
    pub(super) files: Vec<PathBuf>,
    /// Takes the records of this repository from the mirror
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub(super) from_mirror: Option<String>,
    /// Harvests this base URL. After a failure, the same command continues
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub(super) from: Option<String>,
    /// Only records of this set
    #[arg(long, value_name = "SETSPEC", conflicts_with = "files")]
    pub(super) set: Option<String>,
    /// Only records in this format; may be repeated. For FILES: the format of records that do not name theirs
    #[arg(long, value_name = "PREFIX")]
    pub(super) prefix: Vec<String>,
    /// Writes the tape although records are known to be missing. The tape says how many
    #[arg(long)]
    pub(super) accept_gaps: bool,
    /// The format of the result
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
    #[command(flatten)]
    pub(super) data: DataArguments,
}

/// Reads the id of a repository that may have no mapping any more.
fn parse_id(text: &str) -> Result<String, String> {
    check_id(text).map(|()| text.to_owned())
}

fn parse_url(text: &str) -> Result<String, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        _ => Err("expected a base URL such as https://source.example/oai".to_owned()),
    }
}
