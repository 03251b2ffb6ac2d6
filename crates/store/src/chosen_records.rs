//! A request for records by their sequences, and their places in a list.

/// A request for the current records with these sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenRecords {
    /// The repository.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
    /// The sequences.
    pub sequences: Vec<u64>,
    /// Maximum number of bytes of the records. The first record may exceed it.
    pub bytes_max: usize,
    /// Whether the records contain their bytes.
    pub with_bytes: bool,
}
