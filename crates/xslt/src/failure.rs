//! Why a payload was not transformed.

use oaimend_oai::named_enum;

named_enum! {
    /// The kind of a failure, with a name for logs, metrics and the quarantine.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum FailureKind {
        /// The payload is no well-formed element, declares a document type, or is too long.
        PayloadRefused = "payload-refused",
        /// libxslt does not compile the sheet, or does not end while it compiles it.
        SheetInvalid = "sheet-invalid",
        /// The sheet failed for this payload, or ended with `xsl:message terminate="yes"`.
        TransformationFailed = "transformation-failed",
        /// The transformation took longer than [`XsltLimits::time`](crate::XsltLimits::time).
        TimeExceeded = "time-exceeded",
        /// The transformation needed more than [`XsltLimits::memory_bytes`](crate::XsltLimits::memory_bytes).
        MemoryExceeded = "memory-exceeded",
        /// The output is longer than [`XsltLimits::output_bytes`](crate::XsltLimits::output_bytes).
        OutputTooLong = "output-too-long",
        /// The output is not one well-formed element.
        OutputInvalid = "output-invalid",
        /// The process of the worker ended twice with this payload.
        WorkerEnded = "worker-ended",
        /// There is no worker, because libxslt is missing or the process cannot be started.
        Unavailable = "unavailable",
    }
}

impl FailureKind {
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// Whose failure it is, and so what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureScope {
    /// The record fails, and others do not. A repetition fails too, so the record belongs into quarantine.
    Record,
    /// All records fail until the operator corrects the sheet.
    Sheet,
    /// All records fail for now. The caller answers 503, because a repetition may succeed.
    Machine,
}

/// Why a payload was not transformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SheetFailure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// A text for operators, which can quote the sheet and the record. At most 4 KiB come from libxslt.
    pub message: String,
}

impl SheetFailure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Whose failure it is.
    pub fn scope(&self) -> FailureScope {
        match self.kind {
            FailureKind::SheetInvalid => FailureScope::Sheet,
            FailureKind::Unavailable => FailureScope::Machine,
            FailureKind::PayloadRefused
            | FailureKind::TransformationFailed
            | FailureKind::TimeExceeded
            | FailureKind::MemoryExceeded
            | FailureKind::OutputTooLong
            | FailureKind::OutputInvalid
            | FailureKind::WorkerEnded => FailureScope::Record,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_by_its_code() {
        for kind in FailureKind::ALL {
            assert_eq!(FailureKind::from_code(kind.code()), Some(*kind));
        }
        assert_eq!(FailureKind::from_code(200), None);
    }
}
