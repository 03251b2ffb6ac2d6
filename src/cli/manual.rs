//! `oaimend manual FOLDER`.

use std::path::PathBuf;

use clap::{Args, Command};

use super::exit::{Exit, Failure};

/// Writes the manual pages for man(1), one for each command
#[derive(Debug, Args)]
pub(crate) struct ManualArguments {
    /// An existing folder, for example ~/.local/share/man/man1
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// `command` is the whole command line, which the pages describe.
pub(crate) fn run(arguments: &ManualArguments, command: Command) -> Result<Exit, Failure> {
    let folder = &arguments.folder;
    // The subcommand `help` repeats the pages.
    let command = command.disable_help_subcommand(true);
    match clap_mangen::generate_to(command, folder) {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Err(Failure::io("write to", folder, &error)),
    }
}
