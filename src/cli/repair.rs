//! `oaimend repair [FILE]`: reads one response and writes the repaired one.
//!
//! It streams: memory is bounded by the limits of the engine and two buffers here.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use oaimend::repair::catalog::CATALOG;
use oaimend::repair::{
    NotOai, Outcome, Quarantined, Repair, RepairConfig, RepairId, Repairer, RequestEcho, Sink, Summary,
    SwallowedItems, UnresolvedField,
};
use oaimend::report::Report;
use url::{Url, form_urlencoded};

use super::exit::{Exit, Failure, print_message};
use super::input::{Input, Piece, READ_BYTES};

/// Writes shorter than this are buffered, in bytes.
const GATHER_BYTES: usize = 32 << 10;

/// Repairs one OAI-PMH response: reads FILE or stdin, writes the complete response to stdout
///
/// Exit codes: 0 the output is a complete, valid response; 1 something was lost or a required
/// element is missing, and the report has the details; 2 the input is not an OAI-PMH response, and
/// nothing is written; 64 wrong usage; 74 a file cannot be read or written.
#[derive(Debug, Args)]
pub(crate) struct RepairArguments {
    /// The response; the default is stdin, also as `-`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Writes each change, each quarantined record and a summary to FILE, as JSON Lines
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The base URL for `<request>` and for baseURL in Identify
    #[arg(long, value_name = "URL", value_parser = parse_base_url)]
    base_url: Option<String>,
    /// The request for `<request>`, such as 'verb=ListRecords&metadataPrefix=oai_dc'
    #[arg(long, value_name = "ARGUMENTS", requires = "base_url", value_parser = parse_request)]
    request: Option<RequestArguments>,
    /// Turns on a repair that is off by default, such as payload-xsi; may be repeated
    #[arg(long, value_name = "NAME", value_parser = parse_optional_repair)]
    enable: Vec<RepairId>,
}

/// The arguments of a request, `verb` first, names and values decoded.
#[derive(Clone, Debug)]
struct RequestArguments(Vec<(String, String)>);

pub(crate) fn run(arguments: &RepairArguments) -> Result<Exit, Failure> {
    let mut input = Input::open(arguments.file.as_deref())?;
    let report = arguments.report.as_deref().map(create_report).transpose()?;
    let output = stdout().map_err(|error| Failure::io("write", Path::new("<stdout>"), &error))?;
    let mut filter = Filter { output: BufferedOutput::new(output), report };

    let mut repairer = Repairer::new(&repair_config(arguments));
    let mut buffer = vec![0; READ_BYTES];
    let mut broken = None;
    while filter.output.failed.is_none() && repairer.verdict().is_none() {
        match input.read(&mut buffer)? {
            Piece::Bytes(length) => repairer.push(&buffer[..length], &mut filter),
            Piece::End => break,
            Piece::Broken(fault) => {
                broken = Some(fault);
                break;
            }
        }
    }
    let mut summary = repairer.finish(&mut filter);
    if let Some(fault) = broken {
        print_message(format_args!("{}: {fault}", input.name().display()));
        // The lost bytes are unknown, even if the document looks complete.
        if matches!(summary.outcome, Outcome::Clean | Outcome::Repaired) {
            summary.outcome = Outcome::Truncated;
        }
    }
    finish_output(filter, &summary, arguments, input.name())
}

/// Writes the rest of the output and the report, and prints the result.
fn finish_output(
    filter: Filter,
    summary: &Summary,
    arguments: &RepairArguments,
    name: &Path,
) -> Result<Exit, Failure> {
    let written = filter.output.finish();
    if let (Some(report), Some(path)) = (filter.report, &arguments.report) {
        report.finish(summary).map_err(|error| Failure::io("write", path, &error))?;
    }
    match written {
        // The reader stopped early and does not need the result either.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Success),
        Err(error) => return Err(Failure::io("write", Path::new("<stdout>"), &error)),
        Ok(()) => {}
    }
    if let Some(result) = describe_result(summary, arguments.report.is_some()) {
        print_message(format_args!("{}: {result}", name.display()));
    }
    Ok(exit_code(summary))
}

fn repair_config(arguments: &RepairArguments) -> RepairConfig {
    let request = arguments.base_url.as_ref().map(|base_url| RequestEcho {
        base_url: base_url.clone(),
        arguments: arguments.request.clone().map(|request| request.0).unwrap_or_default(),
    });
    let mut config = RepairConfig::default();
    config.request = request.map(Arc::new);
    config.enabled = arguments.enable.iter().copied().collect();
    config
}

fn create_report(path: &Path) -> Result<Report<BufWriter<File>>, Failure> {
    let file = File::create(path).map_err(|error| Failure::io("write", path, &error))?;
    Ok(Report::new(BufWriter::with_capacity(64 << 10, file)))
}

/// Standard output without the line buffer of the standard library.
fn stdout() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Receives the engine's results: bytes for the output, the journal for the report.
struct Filter {
    output: BufferedOutput,
    report: Option<Report<BufWriter<File>>>,
}

impl Sink for Filter {
    fn write(&mut self, bytes: &[u8]) {
        self.output.write(bytes);
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        if let Some(report) = &mut self.report {
            report.repaired(repair);
        }
    }

    fn record_quarantined(&mut self, item: &Quarantined<'_>) {
        if let Some(report) = &mut self.report {
            report.quarantined(item);
        }
    }

    fn items_swallowed(&mut self, section: &SwallowedItems<'_>) {
        if let Some(report) = &mut self.report {
            report.swallowed(section);
        }
    }

    fn unresolved(&mut self, field: &UnresolvedField) {
        if let Some(report) = &mut self.report {
            report.unresolved(field);
        }
    }
}

/// An output that buffers short writes and passes long ones through.
///
/// It keeps the first error and writes nothing after it.
struct BufferedOutput {
    file: File,
    pending: Vec<u8>,
    failed: Option<io::Error>,
}

impl BufferedOutput {
    fn new(file: File) -> Self {
        Self { file, pending: Vec::with_capacity(2 * GATHER_BYTES), failed: None }
    }

    fn write(&mut self, bytes: &[u8]) {
        if bytes.len() < GATHER_BYTES {
            self.pending.extend_from_slice(bytes);
            if self.pending.len() >= GATHER_BYTES {
                self.flush();
            }
        } else {
            self.flush();
            self.write_through(bytes);
        }
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.write_through(&pending);
        self.pending = pending;
        self.pending.clear();
    }

    fn write_through(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.file.write_all(bytes).err();
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.failed.map_or(Ok(()), Err)
    }
}

/// The exit code for scripts.
fn exit_code(summary: &Summary) -> Exit {
    match summary.outcome {
        Outcome::NotOai(NotOai::NothingKept) | Outcome::Truncated => Exit::Incomplete,
        Outcome::NotOai(_) => Exit::NotOai,
        _ if summary.quarantined + summary.lost + summary.unresolved > 0 => Exit::Incomplete,
        Outcome::Clean | Outcome::Repaired => Exit::Success,
    }
}

/// The result in one line; `None` for an unchanged response.
fn describe_result(summary: &Summary, has_report: bool) -> Option<String> {
    let mut parts = vec![match summary.outcome {
        Outcome::NotOai(reason) => return Some(reason.message().to_owned()),
        Outcome::Clean if summary.unresolved + summary.swallowed == 0 => return None,
        Outcome::Clean => "unchanged".to_owned(),
        Outcome::Repaired => "repaired".to_owned(),
        Outcome::Truncated => "ended early, the list is incomplete".to_owned(),
    }];
    let lost = summary.quarantined + summary.lost - summary.unread;
    if summary.records + lost > 0 {
        parts.push(format!("{} kept", format_count(summary.records, "item")));
    }
    if lost > 0 {
        let hint = if has_report { "" } else { " (--report FILE lists them with reasons)" };
        parts.push(format!("{lost} lost{hint}"));
    }
    if summary.swallowed > 0 {
        let hint = if has_report { "" } else { " (--report FILE lists them)" };
        parts.push(format!(
            "{} inside CDATA sections, kept as text{hint}",
            format_count(summary.swallowed, "item")
        ));
    }
    if summary.unresolved > 0 {
        let hint = if has_report { "" } else { " (--report FILE lists them)" };
        parts.push(format!(
            "{} missing, with unknown values{hint}",
            format_count(summary.unresolved, "required element")
        ));
    }
    parts.extend(summary.repairs.iter().map(|(id, count)| format!("{} {count}", id.entry().name)));
    Some(parts.join(", "))
}

fn format_count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
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
