//! `oaimend mirror export`: writes a dump of a repository, of all, or of a view.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use oaimend_dumps::{GapCause, Manifest};
use serde::Deserialize;
use tempfile::{Builder, NamedTempFile};

use super::super::admin_api::{AdminApi, ApiResult, Refusal};
use super::super::exit::{Exit, Failure};

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// The id of a mirrored or local repository, _all, or _view/NAME
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// The metadataPrefix [default: oai_dc]
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Only records that match this query
    #[arg(long, value_name = "QUERY", conflicts_with = "set")]
    query: Option<String>,
    /// Only records of this set
    #[arg(long, value_name = "SETSPEC")]
    set: Option<String>,
    /// The form of the output
    #[arg(long, value_enum, default_value_t = Form::Jsonl)]
    format: Form,
    /// Only changes after the position of an earlier dump
    #[arg(long, value_name = "POSITION")]
    since: Option<String>,
    /// The file to write; its manifest is beside it, with .manifest.json after its name [default: the output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
enum Form {
    /// An XMLtape, compressed with gzip
    XmlTape,
    /// One JSON object in each line
    Jsonl,
    /// One row for each record, with its Dublin Core
    Csv,
}

/// A response to a request for a manifest.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Whole(Box<Manifest>),
    Building {
        #[serde(rename = "building")]
        _records: u64,
    },
}

/// The time between two questions whether the dump is written.
const INTERVAL: Duration = Duration::from_millis(200);

impl ExportArguments {
    fn to_query(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("repository", &self.repository);
        let format = self.format.to_possible_value();
        query.extend_pairs(format.iter().map(|format| ("format", format.get_name())));
        for (name, value) in
            [("prefix", &self.prefix), ("query", &self.query), ("set", &self.set), ("since", &self.since)]
        {
            query.extend_pairs(value.iter().map(|value| (name, value)));
        }
        query.finish()
    }
}

pub(super) fn run(api: &AdminApi, arguments: &ExportArguments) -> Result<Exit, Failure> {
    let manifest = loop {
        match send(api, &format!("/-/dump/manifest?{}", arguments.to_query()))?.read()? {
            Answer::Whole(manifest) => break *manifest,
            Answer::Building { .. } => api.pause(INTERVAL),
        }
    };
    let dump = send(api, &format!("/-/dump?{}", manifest.selection.to_query(Some(&manifest.position))))?;
    match &arguments.out {
        Some(out) => write_file(out, dump, &manifest)?,
        None => match write(dump, &mut io::stdout().lock()) {
            // The reader stopped early.
            Err(WriteError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(Exit::Success);
            }
            written => written.map_err(|error| error.into_failure(Path::new("<stdout>")))?,
        },
    }
    let Manifest { records, deleted, position, gaps, .. } = &manifest;
    eprintln!("{records} records, {deleted} of them deleted; position {position}");
    for gap in gaps {
        match gap.records {
            Some(records) if gap.cause == GapCause::Crosswalk => {
                eprintln!("{}: the crosswalk cannot convert {records} records", gap.repository);
            }
            Some(records) => eprintln!("{}: the mirror lacks {records} records", gap.repository),
            None => eprintln!("{}: the first harvest is not complete", gap.repository),
        }
    }
    Ok(Exit::Success)
}

/// Writes a dump and its manifest. Both appear when they are complete, the manifest after the dump: after a failure or a
/// kill, no manifest describes a dump that is not there.
fn write_file(out: &Path, dump: ApiResult<'_>, manifest: &Manifest) -> Result<(), Failure> {
    let failure = |error: &io::Error| Failure::io("write", out, error);
    let mut part = part_beside(out).map_err(|error| failure(&error))?;
    write(dump, part.as_file_mut()).map_err(|error| error.into_failure(out))?;
    let length = part.as_file().metadata().map_err(|error| failure(&error))?.len();
    if length != manifest.bytes {
        return Err(Failure::incomplete("the dump was cut; run the same command again"));
    }
    part.as_file().sync_all().map_err(|error| failure(&error))?;
    let mut name = out.as_os_str().to_owned();
    name.push(".manifest.json");
    let described = Path::new(&name);
    let of_manifest = |error: &io::Error| Failure::io("write", described, error);
    let manifest = part_with(described, manifest).map_err(|error| of_manifest(&error))?;
    // That of an earlier dump of this name.
    match fs::remove_file(described) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(of_manifest(&error)),
        _ => {}
    }
    part.persist(out).map_err(|error| failure(&error.error))?;
    manifest.persist(described).map(drop).map_err(|error| of_manifest(&error.error))
}

/// A file beside this one, which gets its name when it is complete.
fn part_beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
}

fn part_with(path: &Path, manifest: &Manifest) -> io::Result<NamedTempFile> {
    let mut part = part_beside(path)?;
    serde_json::to_writer_pretty(part.as_file_mut(), manifest)?;
    part.as_file().sync_all()?;
    Ok(part)
}

/// Why a dump was not copied.
enum WriteError {
    Input(Failure),
    Output(io::Error),
}

impl WriteError {
    fn into_failure(self, path: &Path) -> Failure {
        match self {
            Self::Input(failure) => failure,
            Self::Output(error) => Failure::io("write", path, &error),
        }
    }
}

fn write(dump: ApiResult<'_>, output: &mut impl Write) -> Result<(), WriteError> {
    for piece in dump.into_pieces() {
        output.write_all(&piece.map_err(WriteError::Input)?).map_err(WriteError::Output)?;
    }
    output.flush().map_err(WriteError::Output)
}

fn send<'a>(api: &'a AdminApi, target: &str) -> Result<ApiResult<'a>, Failure> {
    api.send("GET", target)?.map_err(|Refusal { status, error }| match status {
        400 => Failure::usage(error),
        404 | 410 => Failure::incomplete(error),
        _ => Failure::in_use(error),
    })
}
