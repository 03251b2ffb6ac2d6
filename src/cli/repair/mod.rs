//! `oaimend repair [FILE...]`: reads responses and writes the repaired ones.
//!
//! It streams: memory is bounded by the limits of the engine and two buffers here. Each response is repaired on its own:
//! one that cannot be read or written does not stop the others.

mod arguments;
mod file_set;
mod output;
mod report;
mod result;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use oaimend_repair::{
    Outcome, Quarantined, Repair, RepairConfig, Repairer, Sink, Summary, SwallowedItems, UnresolvedField,
};

pub(crate) use arguments::RepairArguments;

use super::exit::{Exit, Failure, print_message};
use super::input::{Input, Piece, READ_BYTES};
use file_set::FileSet;
use output::Output;
use report::Report;

pub(crate) fn run(arguments: &RepairArguments) -> Result<Exit, Failure> {
    let config = arguments.repair_config()?;
    let sets = file_set::plan(&arguments.files, arguments.output.as_deref(), arguments.report.as_deref())?;
    let exits =
        sets.iter().map(|files| repair_files(files, &config).unwrap_or_else(|failure| failure.report()));
    Ok(exits.max().unwrap_or(Exit::Success))
}

/// Repairs one response.
fn repair_files(files: &FileSet, config: &RepairConfig) -> Result<Exit, Failure> {
    let mut input = Input::open(files.input.as_deref())?;
    let report = files.report.as_deref().map(create_report).transpose()?;
    let mut filter = Filter { output: Output::open(files.output.as_deref())?, report };

    let mut repairer = Repairer::new(config);
    let mut buffer = vec![0; READ_BYTES];
    let mut broken = None;
    while !filter.output.has_failed() && repairer.verdict().is_none() {
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
    finish_output(filter, &summary, files, input.name())
}

/// Writes the rest of the output and the report, and prints the result.
fn finish_output(filter: Filter, summary: &Summary, files: &FileSet, name: &Path) -> Result<Exit, Failure> {
    let output_name = filter.output.name().to_owned();
    let written = filter.output.finish();
    if let (Some(report), Some(path)) = (filter.report, &files.report) {
        report.finish(summary).map_err(|error| Failure::io("write", path, &error))?;
    }
    match written {
        // The reader stopped early and does not need the result either.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Success),
        Err(error) => return Err(Failure::io("write", &output_name, &error)),
        Ok(()) => {}
    }
    if let Some(result) = result::describe(summary, files.report.is_some()) {
        print_message(format_args!("{}: {result}", name.display()));
    }
    Ok(result::exit_code(summary))
}

fn create_report(path: &Path) -> Result<Report<BufWriter<File>>, Failure> {
    let file = File::create(path).map_err(|error| Failure::io("write", path, &error))?;
    Ok(Report::new(BufWriter::with_capacity(64 << 10, file)))
}

/// Receives the engine's results: bytes for the output, the journal for the report.
struct Filter {
    output: Output,
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
