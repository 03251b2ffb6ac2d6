//! The command line: one file for each command, exit codes and messages.
//!
//! This is the outermost layer: no other part of the program imports it, and only this part uses
//! clap.

mod admin_api;
mod admin_client;
mod args;
mod backup;
mod check;
mod completions;
mod data_arguments;
mod demo;
mod deposit;
mod exit;
mod explain;
mod full_text_worker;
mod health;
mod input;
mod manual;
mod mirror;
mod notify;
mod onboard;
mod output_format;
mod paint;
mod plan;
mod progress;
mod quarantine;
mod repair;
mod report;
mod search;
mod serve;
mod state;
mod tape;
mod token;
mod validate;
mod xslt_worker;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{Arguments, Command};
use exit::{Exit, Failure};

/// Runs the program: parses the arguments, runs the command, reports a failure.
pub(crate) fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            // A closed terminal is not an error: no other channel is left.
            let _ = error.print();
            return exit.into();
        }
    };
    dispatch(arguments.command).unwrap_or_else(|failure| failure.report()).into()
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Onboard(arguments) => onboard::run(&arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Mirror(arguments) => mirror::run(arguments),
        Command::Tape(arguments) => tape::run(arguments),
        Command::Put(arguments) => deposit::run_put(arguments),
        Command::Publish(arguments) => deposit::run_publish(arguments),
        Command::Token(arguments) => token::run(arguments),
        Command::Plan(arguments) => plan::run(arguments),
        Command::Search(arguments) => search::run(arguments),
        Command::Quarantine(arguments) => quarantine::run(arguments),
        Command::Notify(arguments) => notify::run(arguments),
        Command::Backup(arguments) => backup::back_up(arguments),
        Command::Restore(arguments) => backup::restore(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Health(arguments) => health::run(arguments),
        Command::Validate(arguments) => validate::run(arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Repair(arguments) => repair::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, args::Arguments::command()),
        Command::FullTextWorker(arguments) => full_text_worker::run(arguments),
        Command::XsltWorker(arguments) => xslt_worker::run(arguments),
        Command::Manual(arguments) => manual::run(&arguments, args::Arguments::command()),
    }
}
