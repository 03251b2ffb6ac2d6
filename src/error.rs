//! What stops the program: whose fault it is, whether to try again, what to do.
//!
//! Failures of a source are no such errors, they are answers; see
//! `upstream::Failure`.

use crate::config::Fault;
use std::fmt;
use std::path::{Path, PathBuf};

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line asks for something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// The configuration has faults; all that were found, in the order of the files.
    #[error("{}", Lines(.0))]
    Config(Vec<Fault>),
    /// A file that was named cannot be read, or a folder cannot be written to.
    #[error("{}: {doing}: {source}; {remedy}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
        /// What to do.
        remedy: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; {remedy}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
        /// What to do.
        remedy: String,
    },
    /// The state in the data folder cannot be opened.
    #[error("{}: {message}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
}

/// Who can put an error right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Whoever wrote the command line.
    Caller,
    /// Whoever wrote the configuration.
    Configuration,
    /// Whoever runs the machine.
    Machine,
}

impl Error {
    /// Who can put it right.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Usage(_) => Blame::Caller,
            Self::Config(_) => Blame::Configuration,
            Self::File { .. } | Self::Listen { .. } | Self::State { .. } => Blame::Machine,
        }
    }

    /// Whether the same command may succeed later with nothing changed.
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

/// Several faults, one a line.
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
