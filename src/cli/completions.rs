//! `oaimend completions SHELL`.

use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::{Exit, Failure, print};

/// Prints the completion script for a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// `command` is the whole command line, for which the script is written.
pub(crate) fn run(arguments: &CompletionsArguments, mut command: Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "oaimend", &mut script);
    print(&script)
}
