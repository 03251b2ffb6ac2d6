//! Exit codes, and how a failure is told.
//!
//! The codes are a promise to scripts; they stand in README.md too.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use oaimend::error::{Blame, Error};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done; of `repair`: the output is a whole, valid response.
    Success = 0,
    /// Done, and not all is well: of `repair`, something was lost; of `check`,
    /// a rule does not hold. The report says what.
    Wanting = 1,
    /// The input is no OAI-PMH response; nothing was written.
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

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// The command was called wrongly; `message` says what is wrong and what would be right.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// `doing` (such as "read") did not work on `path`.
    pub(crate) fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        Self { exit: Exit::Io, message: format!("cannot {doing} {}: {error}", path.display()) }
    }

    /// Tells the person at the terminal and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self.exit {
            // Each fault begins with its file and line, as editors know it.
            Exit::Config => {
                let _ = writeln!(io::stderr(), "{}", self.message);
            }
            _ => say(&self.message),
        }
        self.exit.into()
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

/// Writes one line to stderr, in the program's name.
pub(crate) fn say(message: impl Display) {
    // A closed stderr leaves nobody to tell.
    let _ = writeln!(io::stderr(), "oaimend: {message}");
}

/// Writes the whole of `text` to stdout. A reader that has seen enough and
/// closed the pipe is no error.
pub(crate) fn print(text: &[u8]) -> Result<Exit, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io("write", Path::new("<stdout>"), &error))
        }
        _ => Ok(Exit::Success),
    }
}
