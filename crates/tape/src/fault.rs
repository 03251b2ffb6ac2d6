//! What can be wrong with a tape, and where.

use std::fmt;
use std::io;

/// A place in a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A byte of the XML, after gzip.
    Xml(u64),
    /// A byte of the file.
    File(u64),
}

/// A fault of a tape: its place, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place.
    pub place: Place,
    /// The fault, as a sentence without a full stop.
    pub text: String,
    /// Whether the file is no tape at all.
    pub is_other_file: bool,
}

impl Fault {
    pub(crate) fn xml(at: u64, text: impl Into<String>) -> Self {
        Self { place: Place::Xml(at), text: text.into(), is_other_file: false }
    }

    pub(crate) fn file(at: u64, text: impl Into<String>) -> Self {
        Self { place: Place::File(at), text: text.into(), is_other_file: false }
    }

    pub(crate) fn other_file(text: impl Into<String>) -> Self {
        Self { place: Place::Xml(0), text: text.into(), is_other_file: true }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            _ if self.is_other_file => formatter.write_str(&self.text),
            Place::Xml(at) => write!(formatter, "at byte {at} of the XML: {}", self.text),
            Place::File(at) => write!(formatter, "at byte {at} of the file: {}", self.text),
        }
    }
}

/// Why work on a tape ends.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// The content is wrong.
    #[error("{0}")]
    Fault(Fault),
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Fault> for TapeError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The fault or the error of a read.
pub(crate) fn of_io(error: io::Error) -> TapeError {
    // The members report their faults through `Read`.
    match error.downcast::<FaultError>() {
        Ok(FaultError(fault)) => TapeError::Fault(fault),
        Err(error) => TapeError::Io(error),
    }
}

/// A fault on its way through `Read`.
#[derive(Debug)]
pub(crate) struct FaultError(pub(crate) Fault);

impl fmt::Display for FaultError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for FaultError {}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        Self::other(FaultError(fault))
    }
}
