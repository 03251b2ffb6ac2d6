//! `oaimend full-text-worker`: the process that becomes pdftotext. Only oaimend starts it.

use clap::Args;
use std::ffi::OsString;

use super::exit::{Exit, Failure};

pub(crate) use oaimend_full_text::COMMAND;

/// Extracts the text of a PDF for the process that has started it
#[derive(Debug, Args)]
pub(crate) struct FullTextWorkerArguments {
    /// The limits, and the file of pdftotext
    #[arg(num_args = 4, required = true)]
    arguments: Vec<OsString>,
}

#[cfg(target_os = "linux")]
pub(crate) fn run(arguments: FullTextWorkerArguments) -> Result<Exit, Failure> {
    use rustix::fs::{FileType, fstat};
    use rustix::stdio::{stdin, stdout};

    let is_pipe =
        |file| fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if !is_pipe(stdin()) || !is_pipe(stdout()) {
        return Err(Failure::usage(format!(
            "oaimend itself starts {COMMAND} and connects it by pipes, so there is nothing to start by hand"
        )));
    }
    // It returns only if pdftotext cannot run.
    std::process::exit(oaimend_full_text::run_worker(arguments.arguments.into_iter()).into())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: FullTextWorkerArguments) -> Result<Exit, Failure> {
    Err(Failure::usage("full texts need Linux"))
}
