//! `oaimend tape`: writes, indexes and checks tapes.

mod arguments;
mod build;
mod building;
mod from_files;
mod from_mirror;
mod from_source;
mod saved_response;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use oaimend_tape::{
    Catalog, CatalogFormat, IndexState, TapeError, Verification, index_path, rebuild_index, verify,
};
use serde_json::{Value, json};

use super::exit::{Exit, Failure, print, print_message};
use super::output_format::{OutputFormat, format_json};
use super::progress::ProgressLine;

/// Writes all records of a repository into one file, a tape; indexes and checks tapes
///
/// Exit codes: 0 success; 1 a tape has a fault, or records are missing and no tape is written; 2 a file is neither a tape
/// nor an OAI-PMH response; 64 wrong usage; 74 a file cannot be read or written; 78 the configuration has faults.
#[derive(Debug, Args)]
pub(crate) struct TapeArguments {
    #[command(subcommand)]
    command: TapeCommand,
}

#[derive(Debug, Subcommand)]
enum TapeCommand {
    /// Writes a tape and its index: from the mirror, from a source, or from saved responses and other tapes
    Build(Box<arguments::BuildArguments>),
    /// Makes the index of a tape again
    Index(IndexArguments),
    /// Checks that a tape is well-formed to its last byte, and that its index is right
    Verify(VerifyArguments),
}

#[derive(Debug, Args)]
struct IndexArguments {
    /// The tape
    #[arg(value_name = "TAPE")]
    tape: PathBuf,
    /// The metadataPrefix of records that do not name theirs, in tapes of other programs
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
}

#[derive(Debug, Args)]
struct VerifyArguments {
    /// The tape
    #[arg(value_name = "TAPE")]
    tape: PathBuf,
    /// The format of the result
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: TapeArguments) -> Result<Exit, Failure> {
    match arguments.command {
        TapeCommand::Build(arguments) => build::run(*arguments),
        TapeCommand::Index(arguments) => index(arguments),
        TapeCommand::Verify(arguments) => check(&arguments),
    }
}

/// Records between two reports of the progress.
const PROGRESS_RECORDS: u64 = 1_000;

fn index(arguments: IndexArguments) -> Result<Exit, Failure> {
    let IndexArguments { tape, prefix } = arguments;
    let name = tape.display().to_string();
    let progress = ProgressLine::default();
    let rebuilt = rebuild_index(&tape, prefix, &mut |records| show(&progress, &name, records));
    progress.end(&name);
    let rebuilt = rebuilt.map_err(|error| {
        let advice = match &error {
            TapeError::Fault(fault) if fault.text.contains("metadataPrefix") => {
                "; name the format with --prefix".to_owned()
            }
            TapeError::Fault(fault) if fault.text.contains("no seek") => {
                format!("; write it again with: oaimend tape build NEW.xml.gz {name}")
            }
            _ => String::new(),
        };
        failure(&name, error, &advice)
    })?;
    print(format!("{}: {}\n", index_path(&tape).display(), describe(&rebuilt.catalog)).as_bytes())
}

fn check(arguments: &VerifyArguments) -> Result<Exit, Failure> {
    let VerifyArguments { tape, format } = arguments;
    let name = tape.display().to_string();
    let progress = ProgressLine::default();
    let verified = verify(tape, &mut |records| show(&progress, &name, records));
    progress.end(&name);
    let verification = match (verified, format) {
        (Ok(verification), _) => verification,
        (Err(TapeError::Fault(fault)), OutputFormat::Json) if !fault.is_other_file => {
            print(format_json(&json!({ "tape": name, "fault": fault.to_string() })).as_bytes())?;
            return Ok(Exit::Incomplete);
        }
        (Err(error), _) => return Err(failure(&name, error, "")),
    };
    let is_wrong = matches!(verification.index, IndexState::Wrong(_));
    match format {
        OutputFormat::Text => {
            print(format!("{name}: {}\n", describe(&verification.catalog)).as_bytes())?;
            print_message(format_args!("{name}: {}", describe_index(&name, &verification.index)));
        }
        OutputFormat::Json => drop(print(format_json(&to_json(&name, &verification)).as_bytes())?),
    }
    Ok(if is_wrong { Exit::Incomplete } else { Exit::Success })
}

fn show(progress: &ProgressLine, name: &str, records: u64) {
    if records.is_multiple_of(PROGRESS_RECORDS) {
        progress.show(name, "records", records, None);
    }
}

/// The failure of work on a tape.
fn failure(name: &str, error: TapeError, advice: &str) -> Failure {
    match error {
        TapeError::Fault(fault) if fault.is_other_file => {
            Failure::other_input(format!("{name}: {fault}{advice}"))
        }
        TapeError::Fault(fault) => Failure::incomplete(format!("{name}: {fault}{advice}")),
        TapeError::Io(error) => Failure::io("use", std::path::Path::new(name), &error),
    }
}

/// What a tape contains, as a sentence.
fn describe(catalog: &Catalog) -> String {
    let formats = catalog.formats.iter().map(|CatalogFormat { prefix, .. }| prefix.as_str());
    let formats = formats.collect::<Vec<_>>().join(", ");
    let mut text = format!("{} records", catalog.records());
    if catalog.deleted() > 0 {
        text.push_str(&format!(", {} of them deleted,", catalog.deleted()));
    }
    text.push_str(&format!(" in {formats}"));
    if !catalog.sets.is_empty() {
        text.push_str(&format!("; {} sets", catalog.sets.len()));
    }
    let missing: u64 = catalog.description.gaps.iter().map(|gap| gap.records).sum();
    if missing > 0 {
        text.push_str(&format!("; {missing} records were missing when it was written"));
    }
    text
}

fn describe_index(name: &str, index: &IndexState) -> String {
    match index {
        IndexState::Right => "its index is right".to_owned(),
        IndexState::Missing => format!("it has no index; run: oaimend tape index {name}"),
        IndexState::Impossible(why) => {
            format!("it can have no index: {why}; write it again with: oaimend tape build NEW.xml.gz {name}")
        }
        IndexState::Wrong(why) => format!("{why}; run: oaimend tape index {name}"),
    }
}

fn to_json(name: &str, verification: &Verification) -> Value {
    let Verification { catalog, index } = verification;
    let (state, problem) = match index {
        IndexState::Right => ("right", None),
        IndexState::Missing => ("missing", None),
        IndexState::Impossible(why) => ("impossible", Some(why)),
        IndexState::Wrong(why) => ("wrong", Some(why)),
    };
    let mut value = catalog_json(name, catalog);
    value["index"] = json!({ "state": state, "problem": problem });
    value
}

/// What a tape contains, as JSON.
fn catalog_json(name: &str, catalog: &Catalog) -> Value {
    let formats: Vec<Value> = catalog
        .formats
        .iter()
        .map(|format| {
            json!({
                "prefix": format.prefix,
                "schema": format.schema,
                "namespace": format.namespace,
                "records": format.records(),
                "deleted": format.deleted,
            })
        })
        .collect();
    json!({
        "tape": name,
        "id": catalog.description.id,
        "created": catalog.description.created_at,
        "records": catalog.records(),
        "deleted": catalog.deleted(),
        "formats": formats,
        "sets": catalog.sets.iter().map(|set| &set.set_spec).collect::<Vec<_>>(),
        "missing": catalog.description.gaps,
    })
}
