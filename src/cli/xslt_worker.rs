//! `oaimend xslt-worker`: the process that runs XSLT sheets. Only oaimend starts it.

use clap::Args;

use super::exit::{Exit, Failure};

pub(crate) use oaimend_xslt::COMMAND;

/// Runs XSLT sheets for the process that has started it
#[derive(Debug, Args)]
pub(crate) struct XsltWorkerArguments {}

#[cfg(target_os = "linux")]
pub(crate) fn run(_: XsltWorkerArguments) -> Result<Exit, Failure> {
    use rustix::fs::{FileType, fstat};
    use rustix::stdio::{stdin, stdout};

    let is_pipe =
        |file| fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if !is_pipe(stdin()) || !is_pipe(stdout()) {
        return Err(Failure::usage(format!(
            "oaimend itself starts {COMMAND} and connects it by pipes, so there is nothing to start by hand"
        )));
    }
    // SAFETY: the command has started no thread, and it uses no file but the pipes.
    #[allow(unsafe_code, reason = "the worker is the whole process")]
    let served = unsafe { oaimend_xslt::run_worker(&oaimend_xslt::Library::default()) };
    match served {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Err(Failure::io("serve", std::path::Path::new("<stdin>"), &error)),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: XsltWorkerArguments) -> Result<Exit, Failure> {
    Err(Failure::usage("XSLT sheets need Linux"))
}
