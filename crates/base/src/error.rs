//! Errors that end a command: whose fault they are, whether a retry helps, and the remedy.
//!
//! Failures of a source do not end a command; they become responses.

use std::fmt;
use std::path::{Path, PathBuf};

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument of the command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The configuration has faults; all of them, in the order of the files.
    #[error("{}", Lines(.0))]
    Config(Vec<Fault>),
    /// A named file cannot be read, or a folder cannot be written to.
    #[error("{}: {doing}: {source}; {remedy}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The failed operation.
        doing: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
        /// The remedy.
        remedy: String,
    },
    /// The program cannot listen on an address.
    #[error("cannot listen on {address}: {source}; {remedy}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
        /// The remedy.
        remedy: String,
    },
    /// The state in the data folder cannot be opened.
    #[error("{}: {message}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The problem and the remedy.
        message: String,
    },
}

/// One fault of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The path of the file, as the user gave it.
    pub file: PathBuf,
    /// The line number; the first line is 1.
    pub line: usize,
    /// The problem and the expected value.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.text)
    }
}

/// Who can fix an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The author of the command line.
    Caller,
    /// The author of the configuration.
    Configuration,
    /// The administrator of the machine.
    Machine,
}

impl Error {
    /// Who can fix it.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Usage(_) => Blame::Caller,
            Self::Config(_) => Blame::Configuration,
            Self::File { .. } | Self::Listen { .. } | Self::State { .. } => Blame::Machine,
        }
    }

    /// Whether the same command may succeed later without changes.
    pub fn retry(&self) -> bool {
        matches!(self, Self::Listen { .. })
    }

    /// The exit code of the command, as in sysexits.h: 64 usage, 74 I/O, 78 configuration.
    pub fn exit_code(&self) -> u8 {
        match self.blame() {
            Blame::Caller => 64,
            Blame::Configuration => 78,
            Blame::Machine => 74,
        }
    }

    /// A file that cannot be read.
    pub fn reading(path: &Path, source: std::io::Error, remedy: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), doing: "cannot be read", source, remedy: remedy.into() }
    }

    /// A file or folder that cannot be written to.
    pub fn writing(path: &Path, source: std::io::Error, remedy: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), doing: "cannot be written to", source, remedy: remedy.into() }
    }
}

/// Several faults, one per line.
struct Lines<'a>(&'a [Fault]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}
