//! `oaimend check`: prints the findings of the conformance check.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use oaimend::check::{self, Finding, Progress, Report, Verdict};
use oaimend::clock::{self, SystemClock};
use oaimend::config::{Config, Flags, Limits, Mapping};
use oaimend::error::Error;
use oaimend::store::CheckReports;
use serde_json::{Value, json};

use super::data_arguments::ConfigArguments;
use super::exit::{Exit, Failure, print};
use super::paint::Paint;

/// Checks a repository against the rules of OAI-PMH 2.0 and lists the rules that fail
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A base URL, or the id of a mapping whose source is checked
    #[arg(value_name = "URL-or-ID")]
    repository: String,
    /// Prints one JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// Folder for the mirror and other state, in which the result of a check of an ID is saved [default: data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArguments,
}

/// The source to check, and where the result is saved.
struct CheckedSource {
    mapping: Mapping,
    /// `None` if the source is no repository of the configuration.
    reports: Option<CheckReports>,
}

pub(crate) fn run(arguments: CheckArguments) -> Result<Exit, Failure> {
    let as_json = arguments.json;
    let CheckedSource { mapping, reports } = find_source(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
    let is_terminal = io::stderr().is_terminal();
    let mut on_progress = |progress: Progress<'_>| {
        if is_terminal {
            print_progress(&progress);
        }
    };
    let checked = runtime.block_on(check::run(&mapping, Arc::new(SystemClock), &mut on_progress));
    if is_terminal {
        // A closed stderr is not an error: progress is optional.
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let report = checked.map_err(|failure| Failure::usage(failure.details))?;
    if let Some(reports) = reports {
        save(&reports, &mapping.id, &report);
    }
    let text = if as_json {
        format!("{:#}\n", to_json(&report))
    } else {
        format_table(&report, Paint::for_stream(&io::stdout()))
    };
    print(text.as_bytes())?;
    Ok(if report.count(Verdict::Fails) > 0 { Exit::Incomplete } else { Exit::Success })
}

/// Saves the result for the page of the repository. A failure does not make the check fail.
fn save(reports: &CheckReports, id: &str, report: &Report) {
    let mut value = to_json(report);
    value["checked_at"] = json!(clock::utc_datetime(clock::now()));
    if let Err(error) = reports.save(id, format!("{value:#}\n").as_bytes()) {
        // A closed stderr is not an error: the result is printed.
        let _ = writeln!(
            io::stderr(),
            "oaimend: the result is not saved, and the page of {id} does not show it: {error}; \
             name a data folder that can be written to with --data"
        );
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
        mapping.id = mapping.base_url.host_str().unwrap_or_default().to_owned();
        return Ok(CheckedSource { mapping, reports: None });
    }
    let ConfigArguments { config, mappings } = config;
    let config = Config::load(&Flags { config, mappings, data, ..Flags::default() })?;
    if let Some(mapping) = config.repositories.find(&repository) {
        if mapping.static_file.is_some() {
            let text = "is a static repository, which cannot answer requests; run oaimend serve and check its base URL there";
            return Err(Error::Usage(format!("\"{repository}\" {text}")).into());
        }
        let reports = Some(CheckReports::new(&config.data));
        return Ok(CheckedSource { mapping: Mapping::clone(&mapping), reports });
    }
    let known: Vec<String> = config.repositories.all().keys().cloned().collect();
    let known = match known.as_slice() {
        [] => "there are no mappings; expected a base URL".to_owned(),
        known => format!("expected {} or a base URL", known.join(", ")),
    };
    let repository = repository.escape_debug();
    Err(Error::Usage(format!("\"{repository}\" is not a repository id; {known}")).into())
}

/// Prints one line on the terminal, which the next one overwrites.
fn print_progress(progress: &Progress<'_>) {
    let request: String = progress.request.to_string().chars().take(PROGRESS_CHARS_MAX).collect();
    let mut stderr = io::stderr();
    let _ = write!(stderr, "\r\x1b[K{:>3}  {request}", progress.number).and_then(|()| stderr.flush());
}

/// Formats the report as a table.
fn format_table(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
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
            Verdict::Warning => paint.strong(a),
            Verdict::Holds => paint.good(a),
            _ => paint.faint(a),
        };
        write_line(&mut text, format_args!("{a}  {b:rule$}  {c:request$}  {d:received$}  {e}"));
        if finding.verdict >= Verdict::Warning {
            write_details(&mut text, finding, verdict, paint);
        }
    }
    let count = |verdict| report.count(verdict);
    let counted =
        |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    write_line(
        &mut text,
        format_args!(
            "\n{}: {} hold, {} fail, {}, {} not judged; {}",
            report.base_url,
            count(Verdict::Holds),
            count(Verdict::Fails),
            counted(count(Verdict::Warning), "warning"),
            count(Verdict::Unjudged),
            counted(report.requests, "request"),
        ),
    );
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

/// The report as one JSON document.
fn to_json(report: &Report) -> Value {
    let finding = |finding: &Finding| {
        let entry = finding.rule.entry();
        json!({
            "rule": entry.name,
            "verdict": finding.verdict.name(),
            "section": entry.section,
            "expected": entry.expected,
            "request": finding.request,
            "received": finding.received,
            "responses": finding.responses,
            "remedy": entry.remedy,
        })
    };
    json!({
        "base_url": report.base_url.as_str(),
        "requests": report.requests,
        "holds": report.count(Verdict::Holds),
        "fails": report.count(Verdict::Fails),
        "warnings": report.count(Verdict::Warning),
        "not_judged": report.count(Verdict::Unjudged),
        "rules": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

/// The longest cells of the table, in characters; the details of a rule contain the whole text.
const REQUEST_CHARS_MAX: usize = 40;
const RECEIVED_CHARS_MAX: usize = 48;
/// The longest request in a progress line, in characters.
const PROGRESS_CHARS_MAX: usize = 70;
