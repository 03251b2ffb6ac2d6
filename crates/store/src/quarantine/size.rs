//! The size of the quarantine, and which entries make room for others.

/// The size of the quarantine of one repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSizes {
    /// The open entries.
    pub open: QuarantineSize,
    /// The resolved entries.
    pub resolved: QuarantineSize,
}

/// The size of some entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSize {
    /// Their number.
    pub records: u64,
    /// Their bytes on disk.
    pub bytes: u64,
}
