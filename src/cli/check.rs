//! `oaimend check`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use oaimend::check::{self, Finding, Progress, Report, Verdict};
use oaimend::clock::SystemClock;
use oaimend::config::{Config, Flags, Limits, Mapping};
use oaimend::error::Error;
use serde_json::json;

use super::exit::{Exit, Failure, print};
use super::paint::Paint;

/// Holds a repository to the rules of OAI-PMH 2.0, and says what does not hold
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A base URL, or the id of a mapping, whose source is checked
    #[arg(value_name = "URL-or-ID")]
    repository: String,
    /// Writes one JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// The configuration [default: oaimend.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder with one file a repository [default: mappings, if there is one]
    #[arg(long, value_name = "DIR")]
    mappings: Option<PathBuf>,
}

pub(crate) fn run(arguments: CheckArguments) -> Result<Exit, Failure> {
    let as_json = arguments.json;
    let mapping = mapping(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
    let shown = io::stderr().is_terminal();
    let mut told = |progress: Progress<'_>| {
        if shown {
            show(&progress);
        }
    };
    let checked = runtime.block_on(check::run(&mapping, Arc::new(SystemClock), &mut told));
    if shown {
        // A closed stderr leaves nobody to tell.
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let report = checked.map_err(|failure| Failure::usage(failure.details))?;
    let text = if as_json { as_document(&report) } else { table(&report, Paint::for_stream(&io::stdout())) };
    print(text.as_bytes())?;
    Ok(if report.count(Verdict::Fails) > 0 { Exit::Wanting } else { Exit::Success })
}

/// What a base URL or an id stands for.
fn mapping(arguments: CheckArguments) -> Result<Mapping, Failure> {
    let CheckArguments { repository, config, mappings, .. } = arguments;
    if repository.contains("://") {
        let mapping = Mapping::new("check", &repository, &Limits::default());
        let mut mapping =
            mapping.map_err(|right| Failure::usage(format!("\"{}\" {right}", repository.escape_debug())))?;
        // Failures call the source by its id.
        mapping.id = mapping.base_url.host_str().unwrap_or_default().to_owned();
        return Ok(mapping);
    }
    let config = Config::load(&Flags { config, mappings, ..Flags::default() })?;
    if let Some(mapping) = config.repositories.find(&repository) {
        if mapping.static_file.is_some() {
            let text = "is a static repository, which answers nothing by itself; start oaimend serve, and check its base URL there";
            return Err(Error::Usage(format!("\"{repository}\" {text}")).into());
        }
        return Ok(Mapping::clone(&mapping));
    }
    let known: Vec<String> = config.repositories.all().keys().cloned().collect();
    let known = match known.as_slice() {
        [] => "there are no mappings; a base URL is right too".to_owned(),
        known => format!("known are {}; a base URL is right too", known.join(", ")),
    };
    let repository = repository.escape_debug();
    Err(Error::Usage(format!("\"{repository}\" is no id of a repository; {known}")).into())
}

/// One line on the terminal, which the next one replaces.
fn show(progress: &Progress<'_>) {
    let asked: String = progress.asked.to_string().chars().take(PROGRESS_CHARS_MAX).collect();
    let mut stderr = io::stderr();
    let _ = write!(stderr, "\r\x1b[K{:>3}  {asked}", progress.requests).and_then(|()| stderr.flush());
}

/// The report for people.
fn table(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    // Of a source that says nothing there is nothing to say rule by rule.
    let is_silent = report.count(Verdict::Holds) == 0;
    let is_told = |finding: &&Finding| !is_silent || finding.verdict != Verdict::Unjudged;
    let findings: Vec<&Finding> = report.findings.iter().filter(is_told).collect();
    let rows: Vec<[String; 5]> = findings.iter().map(|finding| row(finding)).collect();
    let head = ["", "rule", "asked", "came", "section"].map(str::to_owned);
    let mut widths = [0; 5];
    for row in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let [verdict, rule, asked, came, _] = widths;
    let [_, a, b, c, d] = &head;
    let title = format!("{:verdict$}  {a:rule$}  {b:asked$}  {c:came$}  {d}", "");
    put(&mut text, paint.strong(title));
    for (finding, [a, b, c, d, e]) in findings.iter().zip(&rows) {
        let a = format!("{a:verdict$}");
        let a = match finding.verdict {
            Verdict::Fails => paint.bad(a),
            Verdict::Warning => paint.strong(a),
            Verdict::Holds => paint.good(a),
            _ => paint.faint(a),
        };
        put(&mut text, format_args!("{a}  {b:rule$}  {c:asked$}  {d:came$}  {e}"));
        if finding.verdict >= Verdict::Warning {
            explain(&mut text, finding, verdict, paint);
        }
    }
    let count = |verdict| report.count(verdict);
    let counted =
        |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    put(
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

/// What a person has to know of a rule that does not hold.
fn explain(text: &mut String, finding: &Finding, indent: usize, paint: Paint) {
    let entry = finding.rule.entry();
    let often = if finding.answers > 1 { format!(" ({} times)", finding.answers) } else { String::new() };
    put(text, format_args!("{:indent$}  asked:   {}", "", finding.asked));
    put(text, format_args!("{:indent$}  came:    {}{often}", "", finding.came));
    put(text, format_args!("{:indent$}  wanted:  {}", "", entry.wants));
    put(text, format_args!("{:indent$}  {}", "", paint.strong(format!("to do:   {}", entry.remedy))));
}

fn put(text: &mut String, line: impl std::fmt::Display) {
    writeln!(text, "{line}").expect("a String takes all text");
}

fn row(finding: &Finding) -> [String; 5] {
    let entry = finding.rule.entry();
    let cut = |text: &str, chars: usize| {
        let mut cut: String = text.chars().take(chars).collect();
        if text.chars().nth(chars).is_some() {
            cut.push('…');
        }
        cut
    };
    let asked = cut(&finding.asked, ASKED_CHARS_MAX);
    let came = cut(&finding.came, CAME_CHARS_MAX);
    [finding.verdict.name().to_owned(), entry.name.to_owned(), asked, came, entry.section.to_owned()]
}

/// The report for programs.
fn as_document(report: &Report) -> String {
    let finding = |finding: &Finding| {
        let entry = finding.rule.entry();
        json!({
            "rule": entry.name,
            "verdict": finding.verdict.name(),
            "section": entry.section,
            "wants": entry.wants,
            "asked": finding.asked,
            "came": finding.came,
            "answers": finding.answers,
            "remedy": entry.remedy,
        })
    };
    let document = json!({
        "base_url": report.base_url.as_str(),
        "requests": report.requests,
        "holds": report.count(Verdict::Holds),
        "fails": report.count(Verdict::Fails),
        "warnings": report.count(Verdict::Warning),
        "not_judged": report.count(Verdict::Unjudged),
        "rules": report.findings.iter().map(finding).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

/// Longest cells of the table, in characters; below a rule that fails the whole text stands.
const ASKED_CHARS_MAX: usize = 40;
const CAME_CHARS_MAX: usize = 48;
/// Longest request that is shown while it runs, in characters.
const PROGRESS_CHARS_MAX: usize = 70;
