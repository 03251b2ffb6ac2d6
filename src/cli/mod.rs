//! The command line: one file a command, exit codes and messages for people.
//!
//! Sits at the outer edge. Nothing else of the program knows it, and clap
//! appears nowhere but here.

mod args;
mod check;
mod completions;
mod demo;
mod exit;
mod explain;
mod input;
mod paint;
mod repair;
mod serve;
mod validate;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Arguments, Command};
use exit::{Exit, Failure};

/// Runs the program: reads the arguments, runs the command, says what failed.
pub(crate) fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            // Nobody is left to tell when the terminal itself is gone.
            let _ = error.print();
            return exit.into();
        }
    };
    match dispatch(arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Validate(arguments) => validate::run(arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Repair(arguments) => repair::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    }
}
