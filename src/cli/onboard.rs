//! `oaimend onboard`: writes mapping files for the repositories of a list, and prints what works.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use futures::StreamExt as _;
use futures::stream;
use oaimend::config::Mapping;
use oaimend::onboard::{
    Findings, ListedSource, Prober, RepositoryIds, normalize_url, read_list, write_mapping,
};
use oaimend_base::clock::{self, SystemClock};
use oaimend_files::DataDirLock;
use oaimend_upstream::settings::Limits;
use serde_json::{Value, json};
use url::Url;

use super::exit::{Exit, Failure, print};
use super::output_format::{OutputFormat, format_json};

/// Probes the repositories of a list, and writes a mapping file for each one that works
#[derive(Debug, Args)]
pub(crate) struct OnboardArguments {
    /// Base URLs: one per line, CSV, ListFriends XML, or an export of OpenDOAR or re3data; - is stdin
    #[arg(value_name = "LIST", required = true)]
    lists: Vec<PathBuf>,
    /// Folder for the mapping files. Existing files are not changed
    #[arg(long, value_name = "DIR", default_value = "mappings")]
    mappings: PathBuf,
    /// Maximum number of repositories that are probed at the same time
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=100))]
    parallel: u16,
    /// Longest time for the requests to one repository, in seconds
    #[arg(long, value_name = "SECS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    time_max_secs: u64,
    /// Probes, and writes no files
    #[arg(long)]
    dry_run: bool,
    /// Prints one JSON document instead of the table
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: OutputFormat,
}

/// A repository of the list.
struct Candidate {
    source: ListedSource,
    /// The mapping to probe, or the reason why there is none.
    mapping: Result<Mapping, Skipped>,
}

/// Why a repository of the list is not probed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Skipped {
    /// A mapping file with this id has its base URL.
    Known(String),
    /// The base URL cannot be one; the text names the expected value.
    Invalid(String),
}

/// The result for one repository.
struct Onboarded {
    source: ListedSource,
    outcome: Outcome,
}

enum Outcome {
    Skipped(Skipped),
    Probed { id: String, findings: Box<Findings>, file: MappingFile },
}

/// What has become of a mapping file.
enum MappingFile {
    /// The repository does not work, or no file is wanted.
    NotWanted,
    Written,
    /// It cannot be written, and why.
    Failed(String),
}

pub(crate) fn run(arguments: &OnboardArguments) -> Result<Exit, Failure> {
    let candidates = read_candidates(&arguments.lists, &arguments.mappings)?;
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
    // The state of the probes is of no use afterwards.
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|error| Failure::io("write to", &std::env::temp_dir(), &error))?;
    let lock = DataDirLock::take(folder.path())?;
    let lock = lock.ok_or_else(|| Failure::in_use("another process has locked a new folder"))?;
    let store = oaimend_store_local::open_locked(lock)?;
    let prober = Prober::new(store, Arc::new(SystemClock), Duration::from_secs(arguments.time_max_secs));
    let results = runtime.block_on(probe_all(&prober, candidates, arguments));
    let text = match arguments.format {
        OutputFormat::Text => format_table(&results),
        OutputFormat::Json => {
            format_json(&json!({ "repositories": results.iter().map(to_json).collect::<Vec<_>>() }))
        }
    };
    print(text.as_bytes())?;
    Ok(if results.iter().all(Onboarded::is_served) { Exit::Success } else { Exit::Incomplete })
}

/// Reads the lists, and chooses an id for each repository that has no mapping yet.
fn read_candidates(lists: &[PathBuf], mappings: &Path) -> Result<Vec<Candidate>, Failure> {
    let known = known_base_urls(mappings)?;
    let mut ids = RepositoryIds::new(known.iter().map(|(_, id)| id.clone()));
    let mut candidates: Vec<Candidate> = Vec::new();
    for file in lists {
        let text = read_file(file)?;
        let sources = read_list(&String::from_utf8_lossy(&text));
        let sources = sources.map_err(|problem| Failure::usage(format!("{} {problem}", file.display())))?;
        for source in sources {
            if !candidates.iter().any(|other| other.source.base_url == source.base_url) {
                let mapping = new_mapping(&source, &known, &mut ids);
                candidates.push(Candidate { source, mapping });
            }
        }
    }
    Ok(candidates)
}

fn new_mapping(
    source: &ListedSource,
    known: &[(String, String)],
    ids: &mut RepositoryIds,
) -> Result<Mapping, Skipped> {
    let base_url = normalize_url(&source.base_url);
    if let Some((_, id)) = known.iter().find(|(url, _)| *url == base_url) {
        return Err(Skipped::Known(id.clone()));
    }
    let url = Url::parse(&source.base_url).map_err(|error| Skipped::Invalid(error.to_string()))?;
    let id = ids.choose(source, &url);
    Mapping::new(&id, &source.base_url, &Limits::default()).map_err(Skipped::Invalid)
}

fn read_file(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = match file.to_str() {
        Some("-") => io::stdin().read_to_end(&mut text).map(drop),
        _ => fs::read(file).map(|read| text = read),
    };
    read.map(|()| text).map_err(|error| Failure::io("read", file, &error))
}

/// The base URLs of the mapping files, each with its id. A file that cannot be read has at least its id.
fn known_base_urls(mappings: &Path) -> Result<Vec<(String, String)>, Failure> {
    let entries = match fs::read_dir(mappings) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::io("read", mappings, &error)),
    };
    let mut known = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let (Some("toml"), Some(id)) =
            (path.extension().and_then(OsStr::to_str), path.file_stem().and_then(OsStr::to_str))
        else {
            continue;
        };
        let text = fs::read_to_string(&path).unwrap_or_default();
        let table: toml::Table = text.parse().unwrap_or_default();
        let base_url = table.get("base_url").and_then(toml::Value::as_str).unwrap_or(id);
        known.push((normalize_url(base_url), id.to_owned()));
    }
    Ok(known)
}

/// Probes the repositories, several at the same time but one of each server, and writes their files.
async fn probe_all(
    prober: &Prober,
    candidates: Vec<Candidate>,
    arguments: &OnboardArguments,
) -> Vec<Onboarded> {
    let all = candidates.len();
    let mut servers: BTreeMap<String, Vec<(usize, Candidate)>> = BTreeMap::new();
    for (position, candidate) in candidates.into_iter().enumerate() {
        servers.entry(server_of(&candidate.source.base_url)).or_default().push((position, candidate));
    }
    let progress = Progress { all, done: AtomicUsize::new(0) };
    let probing = stream::iter(servers.into_values()).map(|candidates| async {
        let mut results = Vec::new();
        for (position, candidate) in candidates {
            progress.show(&candidate.source.base_url);
            results.push((position, onboard(prober, candidate, arguments).await));
            progress.done.fetch_add(1, Ordering::Relaxed);
        }
        results
    });
    let finished: Vec<_> = probing.buffer_unordered(arguments.parallel.into()).collect().await;
    progress.end();
    let mut results: Vec<(usize, Onboarded)> = finished.into_iter().flatten().collect();
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The scheme, host and port of a base URL. All repositories of one server share its patience.
fn server_of(base_url: &str) -> String {
    Url::parse(base_url).map_or_else(|_| base_url.to_owned(), |url| url.origin().ascii_serialization())
}

/// Probes one repository, and writes its file if it works.
async fn onboard(
    prober: &Prober,
    Candidate { source, mapping }: Candidate,
    arguments: &OnboardArguments,
) -> Onboarded {
    let mapping = match mapping {
        Ok(mapping) => mapping,
        Err(skipped) => return Onboarded { source, outcome: Outcome::Skipped(skipped) },
    };
    let findings = prober.probe(&mapping).await;
    let file = if findings.works() && !arguments.dry_run {
        let text = write_mapping(&source.base_url, source.name.as_deref(), &findings, clock::now());
        match save_mapping(&arguments.mappings, mapping.id(), &text) {
            Ok(()) => MappingFile::Written,
            Err(error) => MappingFile::Failed(format!("the mapping file cannot be written: {error}")),
        }
    } else {
        MappingFile::NotWanted
    };
    let id = mapping.id().to_owned();
    Onboarded { source, outcome: Outcome::Probed { id, findings: Box::new(findings), file } }
}

/// Writes a mapping file completely or not at all. An existing file stays.
fn save_mapping(folder: &Path, id: &str, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file =
        tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o644)).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(folder.join(format!("{id}.toml")))?;
    Ok(())
}

/// One line on a terminal: how many repositories are probed, and the last one that began.
struct Progress {
    all: usize,
    done: AtomicUsize,
}

impl Progress {
    fn show(&self, base_url: &str) {
        let mut stderr = io::stderr();
        if stderr.is_terminal() {
            let base_url: String = shown_url(base_url).chars().take(PROGRESS_CHARS_MAX).collect();
            let done = self.done.load(Ordering::Relaxed);
            // A closed stderr is not an error: progress is optional.
            let _ =
                write!(stderr, "\r\x1b[K{done} of {}  {base_url}", self.all).and_then(|()| stderr.flush());
        }
    }

    fn end(&self) {
        let mut stderr = io::stderr();
        if stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K");
        }
    }
}

impl Onboarded {
    /// Whether the repository has a mapping that works, as far as it was probed.
    fn is_served(&self) -> bool {
        match &self.outcome {
            Outcome::Skipped(Skipped::Known(_)) => true,
            Outcome::Skipped(Skipped::Invalid(_)) => false,
            Outcome::Probed { file: MappingFile::Failed(_), .. } => false,
            Outcome::Probed { findings, .. } => findings.works(),
        }
    }

    /// The result in one word.
    fn result(&self) -> &'static str {
        match &self.outcome {
            Outcome::Skipped(Skipped::Known(_)) => "known",
            Outcome::Skipped(Skipped::Invalid(_)) => "invalid",
            Outcome::Probed { file: MappingFile::Failed(_), .. } => "fails",
            Outcome::Probed { findings, .. } if !findings.works() => "fails",
            Outcome::Probed { findings, .. } if findings.quarantined > 0 || findings.continued.is_some() => {
                "incomplete"
            }
            Outcome::Probed { findings, .. } if findings.repair_count() > 0 => "repaired",
            Outcome::Probed { .. } => "works",
        }
    }

    /// What a person should know about the result.
    fn details(&self) -> String {
        let findings = match &self.outcome {
            Outcome::Skipped(Skipped::Known(_)) => return "has a mapping file already".to_owned(),
            Outcome::Skipped(Skipped::Invalid(problem)) => return problem.clone(),
            Outcome::Probed { file: MappingFile::Failed(problem), .. } => return problem.clone(),
            Outcome::Probed { findings, .. } => findings,
        };
        if let Some((verb, failure)) = &findings.failure {
            return format!("{} ({}): {}", verb.name(), failure.reason.name(), failure.details);
        }
        let mut details = vec![format!("OAI-PMH {}", findings.version.unwrap_or("2.0"))];
        match findings.list_error {
            Some(error) => details.push(error.name().to_owned()),
            None => details.push(match findings.list_size {
                Some(size) => format!("{} of {size} records", findings.records),
                None => format!("{} records", findings.records),
            }),
        }
        if findings.repair_count() > 0 {
            details.push(format!("{} repairs", findings.repair_count()));
        }
        if findings.quarantined > 0 {
            details.push(format!("{} in quarantine", findings.quarantined));
        }
        if let Some(continued) = &findings.continued {
            details.push(format!("ends early ({})", continued.reason.name()));
        }
        if findings.needs_post {
            details.push("POST only".to_owned());
        }
        details.join(", ")
    }

    fn id(&self) -> &str {
        match &self.outcome {
            Outcome::Skipped(Skipped::Known(id)) | Outcome::Probed { id, .. } => id,
            Outcome::Skipped(Skipped::Invalid(_)) => "",
        }
    }
}

fn format_table(results: &[Onboarded]) -> String {
    let width = |cell: fn(&Onboarded) -> &str, head: &str| {
        results.iter().map(|result| cell(result).chars().count()).max().unwrap_or(0).max(head.len())
    };
    let ids = width(Onboarded::id, "repository");
    let shown: Vec<String> = results.iter().map(|result| cut(&shown_url(&result.source.base_url))).collect();
    let urls = shown.iter().map(|url| url.chars().count()).max().unwrap_or(0).max("base URL".len());
    let mut table = format!("{:10}  {:ids$}  {:urls$}  details\n", "result", "repository", "base URL");
    for (result, url) in results.iter().zip(&shown) {
        let id = result.id();
        let _ = writeln!(
            table,
            "{:10}  {id:ids$}  {url:urls$}  {}",
            result.result(),
            printable(&result.details())
        );
    }
    let served = results.iter().filter(|result| result.is_served()).count();
    let is_written =
        |result: &&Onboarded| matches!(result.outcome, Outcome::Probed { file: MappingFile::Written, .. });
    let written = results.iter().filter(is_written).count();
    let _ =
        writeln!(table, "\n{served} of {} repositories work; {written} mapping files written", results.len());
    table
}

/// A URL for a terminal: without credentials and control characters.
fn shown_url(base_url: &str) -> String {
    printable(&without_credentials(base_url))
}

fn without_credentials(base_url: &str) -> String {
    match Url::parse(base_url) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            // Only URLs without a host cannot be changed.
            let _ = url.set_username("***").and_then(|()| url.set_password(None));
            url.into()
        }
        _ => base_url.to_owned(),
    }
}

/// A text of a list or a source without the control characters that a terminal obeys.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// A cell of the table.
fn cut(text: &str) -> String {
    let mut cell: String = text.chars().take(URL_CHARS_MAX).collect();
    if text.chars().nth(URL_CHARS_MAX).is_some() {
        cell.push('…');
    }
    cell
}

fn to_json(result: &Onboarded) -> Value {
    let mut value = json!({
        "base_url": without_credentials(&result.source.base_url),
        "id": result.id(),
        "result": result.result(),
        "details": result.details(),
    });
    if let Outcome::Probed { findings, file, .. } = &result.outcome {
        let repairs: BTreeMap<&str, u64> =
            findings.repairs.iter().map(|(id, count)| (id.name(), *count)).collect();
        value["is_written"] = json!(matches!(file, MappingFile::Written));
        value["version"] = json!(findings.version);
        value["formats"] = json!(findings.formats);
        value["records"] = json!(findings.records);
        value["list_size"] = json!(findings.list_size);
        value["repairs"] = json!(repairs);
        value["quarantined"] = json!(findings.quarantined);
        value["reason"] = json!(findings.failure.as_ref().map(|(_, failure)| failure.reason.name()));
    }
    value
}

/// Longest base URL in the table, in characters.
const URL_CHARS_MAX: usize = 80;
/// Longest base URL in the progress line, in characters.
const PROGRESS_CHARS_MAX: usize = 60;
