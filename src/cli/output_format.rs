//! The format of results: `--format`.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Tables and sentences
    #[default]
    Text,
    /// One JSON document
    Json,
}

/// A JSON document, for people too.
pub(super) fn format_json(document: &impl Serialize) -> String {
    format!("{:#}\n", json!(document))
}
