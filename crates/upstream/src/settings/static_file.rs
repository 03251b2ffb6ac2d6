//! The file of a static repository, which is used instead of a server.

use std::path::PathBuf;
use std::time::Duration;

/// A static repository file, and how often it is checked for changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticFile {
    /// Its path on this machine; `None`: it is downloaded from the mapping's `base_url`.
    pub path: Option<PathBuf>,
    /// The shortest time between two checks for changes.
    pub check: Duration,
}
