//! `oaimend completions SHELL`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::args::Arguments;
use super::exit::{Exit, Failure, print};

/// Prints the completion script for a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "oaimend", &mut script);
    print(&script)
}
