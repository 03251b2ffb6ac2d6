//! `oaimend check`: prints the findings of the conformance check.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Args, ValueEnum};
use oaimend::config::{Config, Flags, Mapping};
use oaimend_base::clock::{self, SystemClock};
use oaimend_base::error::Error;
use oaimend_base::suggestions::suggest_ids;
use oaimend_check::{CheckOptions, Finding, PayloadSchemas, Profile, Progress, Report, Verdict};
use oaimend_files::CheckReports;
use oaimend_upstream::settings::Limits;
use serde_json::json;

use super::data_arguments::{ConfigArguments, create_private_files};
use super::exit::{Exit, Failure, print, print_message};
use super::paint::Paint;
use super::state::foreign_owner;

/// Checks a repository against the rules of OAI-PMH 2.0 and lists the rules that fail
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A base URL, or the id of a mapping whose source is checked
    #[arg(value_name = "URL-or-ID")]
    repository: String,
    /// Limits the report to the rules that a registry demands
    #[arg(long, value_name = "PROFILE")]
    profile: Option<ProfileName>,
    /// Prints the report in this format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Ends the check after this time, in seconds
    #[arg(long, value_name = "SECS", default_value_t = TIME_MAX_SECS, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    time_max_secs: u64,
    /// Folder for the mirror and other state, in which the result of a check of an ID is saved [default: data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Validates records against the XML schemas (.xsd) in this folder, with the program xmllint
    #[arg(long, value_name = "DIR")]
    schema_dir: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table, with details of the rules that do not hold
    Text,
    /// One JSON document
    Json,
    /// JUnit XML, for CI systems
    Junit,
    /// One HTML page without external parts, for the operator of the repository
    Html,
}

/// A registry, by the name of its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProfileName {
    /// The registry of openarchives.org
    Oai,
    /// BASE
    Base,
    /// OpenAIRE, guidelines 3.0 for literature repositories
    Openaire,
    /// ODL-Search 1.0: searches as sets
    Odl,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Oai => Self::Oai,
            ProfileName::Base => Self::Base,
            ProfileName::Openaire => Self::Openaire,
            ProfileName::Odl => Self::Odl,
        }
    }
}

/// The source to check, and where the result is saved.
struct CheckedSource {
    mapping: Mapping,
    /// The data folder; `None` if the source is no repository of the configuration.
    data: Option<PathBuf>,
}

pub(crate) fn run(arguments: CheckArguments) -> Result<Exit, Failure> {
    let format = arguments.format;
    let profile = arguments.profile.map(Profile::from);
    let time_max = Duration::from_secs(arguments.time_max_secs);
    let schema_dir = arguments.schema_dir.clone();
    let CheckedSource { mapping, data } = find_source(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
    let schemas = schema_dir.map(|folder| runtime.block_on(PayloadSchemas::open(&folder))).transpose()?;
    let options = CheckOptions { time_max, schemas, with_searches: profile == Some(Profile::Odl) };
    let checked = runtime.block_on(run_with_progress(&mapping, &options));
    let report = checked.map_err(|failure| Failure::usage(failure.details))?;
    let checked_at = clock::now();
    if let Some(data) = data {
        save(&data, mapping.id(), &report.clone().for_profile(None));
    }
    let report = report.for_profile(profile);
    let text = match format {
        Format::Text => format_table(&report, Paint::for_stream(&io::stdout())),
        Format::Json => format!("{:#}\n", oaimend_check::to_json(&report)),
        Format::Junit => oaimend_check::to_junit(&report),
        Format::Html => oaimend_check::to_html(&report, checked_at),
    };
    print(text.as_bytes())?;
    Ok(if report.count(Verdict::Fails) > 0 { Exit::Incomplete } else { Exit::Success })
}

/// Saves the result for the page of the repository. A failure does not make the check fail.
fn save(data: &Path, id: &str, report: &Report) {
    if let Some(owner) = foreign_owner(data) {
        let why = owner.explain(data);
        return print_message(format!(
            "the result is not saved, and the page of {id} does not show it: {why}"
        ));
    }
    create_private_files();
    let mut value = oaimend_check::to_json(report);
    value["checked_at"] = json!(clock::utc_datetime(clock::now()));
    if let Err(error) = CheckReports::new(data).save(id, format!("{value:#}\n").as_bytes()) {
        print_message(format!(
            "the result is not saved, and the page of {id} does not show it: {error}; name a data folder that can be \
             written to with --data"
        ));
    }
}

/// Returns the source for a base URL or an id.
fn find_source(arguments: CheckArguments) -> Result<CheckedSource, Failure> {
    let CheckArguments { repository, config, data, .. } = arguments;
    if repository.contains("://") {
        let mapping = Mapping::new("check", &repository, &Limits::default());
        let mut mapping = mapping
            .map_err(|problem| Failure::usage(format!("\"{}\" {problem}", repository.escape_debug())))?;
        // Messages about failures name the source by its id.
        let source = mapping.source_mut();
        source.id = source.base_url.host_str().unwrap_or_default().to_owned();
        // The report names redirects to other hosts, and the person who reads it has chosen the URL.
        source.access.redirect_hosts = vec!["*".to_owned()];
        return Ok(CheckedSource { mapping, data: None });
    }
    let ConfigArguments { config, mappings } = config;
    let config = Config::load(&Flags { config, mappings, data, ..Flags::default() })?;
    if let Some(mapping) = config.repositories.find(&repository) {
        if mapping.source.is_file() {
            let text =
                "is a file, which cannot answer requests; run oaimend serve and check its base URL there";
            return Err(Error::Usage(format!("\"{repository}\" {text}")).into());
        }
        return Ok(CheckedSource { mapping: Mapping::clone(&mapping), data: Some(config.data) });
    }
    let all = config.repositories.all();
    let known: Vec<&str> = all.keys().map(String::as_str).collect();
    let known = match known.as_slice() {
        [] => "there are no mappings; expected a base URL".to_owned(),
        known => format!("expected {} or a base URL", suggest_ids(&repository, known)),
    };
    let repository = repository.escape_debug();
    Err(Error::Usage(format!("\"{repository}\" is not a repository id; {known}")).into())
}

/// Runs the check. On a terminal it shows the current request or wait, and how long it has lasted.
async fn run_with_progress(
    mapping: &Mapping,
    options: &CheckOptions,
) -> Result<Report, oaimend_repository::Failure> {
    let is_terminal = io::stderr().is_terminal();
    let step = Mutex::new((String::new(), clock::uptime()));
    let show = |is_new: bool| {
        let step = step.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = if is_new { Duration::ZERO } else { clock::uptime().saturating_sub(step.1) };
        if is_terminal {
            print_progress(&step.0, elapsed);
        }
    };
    let mut on_progress = |progress: Progress<'_>| {
        *step.lock().unwrap_or_else(PoisonError::into_inner) = (describe_step(&progress), clock::uptime());
        show(true);
    };
    let running = oaimend_check::run(&mapping.source, options, Arc::new(SystemClock), &mut on_progress);
    tokio::pin!(running);
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    let checked = loop {
        tokio::select! {
            checked = &mut running => break checked,
            _ = ticks.tick() => show(false),
        }
    };
    if is_terminal {
        // A closed stderr is not an error: progress is optional.
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    checked
}

/// Describes a step of the check in one line.
fn describe_step(progress: &Progress<'_>) -> String {
    match progress {
        Progress::Request { number, request } => {
            let request: String = request.to_string().chars().take(PROGRESS_CHARS_MAX).collect();
            format!("{number:>3}  {request}")
        }
        Progress::Wait { time, status } => {
            format!("     waits {} s, because the source responded with HTTP {status}", time.as_secs())
        }
    }
}

/// Prints a line on the terminal, which the next one overwrites.
fn print_progress(step: &str, elapsed: Duration) {
    let mut stderr = io::stderr();
    let elapsed = match elapsed.as_secs() {
        0 => String::new(),
        seconds => format!("  ({seconds} s)"),
    };
    // A closed stderr is not an error: progress is optional.
    let _ = write!(stderr, "\r\x1b[K{step}{elapsed}").and_then(|()| stderr.flush());
}

/// Formats the report as a table.
fn format_table(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    if let Some(profile) = report.profile {
        write_line(
            &mut text,
            format_args!("The rules of the profile {}: {}\n", profile.name(), profile.title()),
        );
    }
    // Without any response, only the failed rules are worth a row.
    let is_silent = report.count(Verdict::Holds) == 0;
    let is_listed = |finding: &&Finding| !is_silent || finding.verdict != Verdict::Unjudged;
    let findings: Vec<&Finding> = report.findings.iter().filter(is_listed).collect();
    let rows: Vec<[String; 5]> = findings.iter().map(|finding| format_row(finding)).collect();
    let head = ["", "rule", "request", "received", "section"].map(str::to_owned);
    let mut widths = [0; 5];
    for row in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let [verdict, rule, request, received, _] = widths;
    let [_, a, b, c, d] = &head;
    let title = format!("{:verdict$}  {a:rule$}  {b:request$}  {c:received$}  {d}", "");
    write_line(&mut text, paint.strong(title));
    for (finding, [a, b, c, d, e]) in findings.iter().zip(&rows) {
        let a = format!("{a:verdict$}");
        let a = match finding.verdict {
            Verdict::Fails => paint.bad(a),
            Verdict::Warning | Verdict::Advice => paint.strong(a),
            Verdict::Holds => paint.good(a),
            _ => paint.faint(a),
        };
        write_line(&mut text, format_args!("{a}  {b:rule$}  {c:request$}  {d:received$}  {e}"));
        if finding.verdict >= Verdict::Advice {
            write_details(&mut text, finding, verdict, paint);
        }
    }
    let count = |verdict| report.count(verdict);
    let counted =
        |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    write_line(
        &mut text,
        format_args!(
            "\n{}: {} hold, {} fail, {}, {} advice, {} not judged; {}",
            report.base_url,
            count(Verdict::Holds),
            count(Verdict::Fails),
            counted(count(Verdict::Warning), "warning"),
            count(Verdict::Advice),
            count(Verdict::Unjudged),
            counted(report.requests, "request"),
        ),
    );
    if let Some(stopped) = report.stopped {
        write_line(
            &mut text,
            format_args!("The check is incomplete. Reason for the last requests: {stopped}."),
        );
    }
    text
}

/// Writes the details of a rule that fails or warns.
fn write_details(text: &mut String, finding: &Finding, indent: usize, paint: Paint) {
    let entry = finding.rule.entry();
    let often = if finding.responses > 1 { format!(" ({} times)", finding.responses) } else { String::new() };
    write_line(text, format_args!("{:indent$}  request:   {}", "", finding.request));
    write_line(text, format_args!("{:indent$}  received:  {}{often}", "", finding.received));
    write_line(text, format_args!("{:indent$}  expected:  {}", "", entry.expected));
    write_line(
        text,
        format_args!("{:indent$}  {}", "", paint.strong(format!("remedy:    {}", entry.remedy))),
    );
}

fn write_line(text: &mut String, line: impl std::fmt::Display) {
    writeln!(text, "{line}").expect("a String takes all text");
}

fn format_row(finding: &Finding) -> [String; 5] {
    let entry = finding.rule.entry();
    let cut = |text: &str, chars: usize| {
        let mut cut: String = text.chars().take(chars).collect();
        if text.chars().nth(chars).is_some() {
            cut.push('…');
        }
        cut
    };
    let request = cut(&finding.request, REQUEST_CHARS_MAX);
    let received = cut(&finding.received, RECEIVED_CHARS_MAX);
    [finding.verdict.name().to_owned(), entry.name.to_owned(), request, received, entry.section.to_owned()]
}

/// The longest cells of the table, in characters; the details of a rule contain the whole text.
const REQUEST_CHARS_MAX: usize = 40;
const RECEIVED_CHARS_MAX: usize = 48;
/// How often a progress line is renewed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// The default of `--time-max-secs`: an hour.
const TIME_MAX_SECS: u64 = 3600;
/// The longest request in a progress line, in characters.
const PROGRESS_CHARS_MAX: usize = 70;
