//! Why write tokens cannot be read or changed.

use crate::stored_tokens::{NAME_BYTES_MAX, SET_SPEC_BYTES_MAX, SETS_MAX, TOKENS_MAX};
use oaimend_base::error::Error;
use oaimend_files::data_dir::WRITABLE;
use std::io;
use std::path::PathBuf;

/// Why the write tokens of a data folder cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file cannot be read. The administrator of the machine must act; a retry does not help before.
    #[error("{}: cannot be read: {source}; {READABLE}", path.display())]
    Unreadable {
        /// The file of the tokens.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not what oaimend writes. The administrator of the machine must act; a retry does not help before.
    #[error("{}: {problem}; {WHOLE}", path.display())]
    Damaged {
        /// The file of the tokens.
        path: PathBuf,
        /// The fault, with line and column if they are known.
        problem: String,
    },
    /// The file cannot be written, so nothing has changed.
    #[error("{}: cannot be written to: {source}; {WRITABLE}", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system has no random numbers for a token.
    #[error("there are no random numbers for a token: {0}; try again later")]
    NoRandomNumbers(String),
    /// The change is not possible; the caller must change its arguments.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Why a write token is not created or revoked. The caller must change its arguments.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name of a token, or a repository id, has another form.
    #[error(
        "\"{}\" is not a name; expected at most {NAME_BYTES_MAX} letters, digits, '.', '_' and '-', the first a letter \
         or digit",
        .0.escape_debug()
    )]
    IllegalName(String),
    /// A set is not a legal setSpec.
    #[error(
        "\"{}\" is not a setSpec; expected at most {SET_SPEC_BYTES_MAX} letters, digits and -_.!~*'(), with ':' between \
         the parts",
        .0.escape_debug()
    )]
    IllegalSet(String),
    /// One token has too many sets.
    #[error(
        "the token has {0} sets, and {SETS_MAX} are allowed; name a set above them, or create several tokens"
    )]
    TooManySets(usize),
    /// Another token has the name.
    #[error("there is a write token {0} already; choose another name, or revoke that token first")]
    NameTaken(String),
    /// No token has the name.
    #[error("there is no write token \"{}\"; {known}", name.escape_debug())]
    UnknownName {
        /// The name.
        name: String,
        /// The existing names, as advice.
        known: String,
    },
    /// The file has no room for a further token.
    #[error(
        "there are {TOKENS_MAX} write tokens or 16 MiB of them, and no more are allowed; revoke unused ones"
    )]
    Full,
}

/// Remedy for a file that cannot be read.
const READABLE: &str = "let the user of oaimend read it";
/// Remedy for a damaged file.
const WHOLE: &str = "restore it from a backup, or move it away, which revokes all write tokens";

impl From<TokensError> for Error {
    fn from(error: TokensError) -> Self {
        match error {
            TokensError::Unreadable { path, source } => Self::reading(&path, source, READABLE),
            TokensError::Damaged { path, problem } => {
                Self::State { path, message: format!("{problem}; {WHOLE}") }
            }
            TokensError::Unwritable { path, source } => Self::writing(&path, source, WRITABLE),
            TokensError::NoRandomNumbers(_) => {
                Self::State { path: PathBuf::from("getrandom"), message: error.to_string() }
            }
            TokensError::Refused(refusal) => Self::Usage(refusal.to_string()),
        }
    }
}
