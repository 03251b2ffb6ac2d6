//! Exit codes, and the messages of failed commands.
//!
//! Scripts depend on the codes; README.md documents them too.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use oaimend_base::error::{Blame, Error};

/// How the program ends, the worst at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Success; for `repair`: the output is a complete, valid response.
    Success = 0,
    /// Completed with losses: `repair` lost something or `check` found a rule that fails. The
    /// report has the details.
    Incomplete = 1,
    /// The input is not an OAI-PMH response, or no tape where one is expected; nothing was written.
    NotOai = 2,
    /// Wrong usage (`EX_USAGE`).
    Usage = 64,
    /// A file or stream could not be read or written (`EX_IOERR`).
    Io = 74,
    /// The configuration has faults (`EX_CONFIG`).
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// Wrong usage; `message` names the problem and the expected value.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// The command cannot do its work yet; `message` names the reason and the next step.
    pub(crate) fn incomplete(message: impl Display) -> Self {
        Self { exit: Exit::Incomplete, message: message.to_string() }
    }

    /// The input is of another kind; `message` names it and the expected one.
    pub(crate) fn other_input(message: impl Display) -> Self {
        Self { exit: Exit::NotOai, message: message.to_string() }
    }

    /// Another process uses what the command needs; `message` names it and the next step.
    pub(crate) fn in_use(message: impl Display) -> Self {
        Self { exit: Exit::Io, message: message.to_string() }
    }

    /// An operation (such as "read") failed on `path`.
    pub(crate) fn io(operation: &str, path: &Path, error: &io::Error) -> Self {
        Self { exit: Exit::Io, message: format!("cannot {operation} {}: {error}", path.display()) }
    }

    /// Prints the message to stderr and returns the exit code.
    pub(crate) fn report(&self) -> Exit {
        match self.exit {
            // Each fault begins with its file and line, the format that editors understand.
            Exit::Config => {
                let _ = writeln!(io::stderr(), "{}", self.message);
            }
            _ => print_message(&self.message),
        }
        self.exit
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.blame() {
            Blame::Caller => Exit::Usage,
            Blame::Configuration => Exit::Config,
            Blame::Machine => Exit::Io,
        };
        Self { exit, message: error.to_string() }
    }
}

/// Writes one line to stderr, after the name of the program.
pub(crate) fn print_message(message: impl Display) {
    // A closed stderr is not an error: no other channel is left.
    let _ = writeln!(io::stderr(), "oaimend: {message}");
}

/// Writes the whole of `text` to stdout. A closed pipe is not an error: the reader stopped early.
pub(crate) fn print(text: &[u8]) -> Result<Exit, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io("write", Path::new("<stdout>"), &error))
        }
        _ => Ok(Exit::Success),
    }
}
