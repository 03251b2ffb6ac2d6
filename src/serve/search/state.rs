//! The state of the index and the lines of a rebuild, as the admin listener sends them and commands read them.

use oaimend_search::IndexStatus;
use serde::{Deserialize, Serialize};

/// The state of the index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchState {
    /// Whether the search is turned on.
    pub enabled: bool,
    /// The number of indexed records.
    pub records: u64,
    /// The number of changed records in the mirror that are not indexed yet.
    pub changes_behind: u64,
    /// The disk space, in bytes.
    pub disk_bytes: u64,
    /// Whether the index is being built for the first time or again.
    pub is_building: bool,
    /// Why the last write failed; `None` if it succeeded.
    pub last_error: Option<String>,
}

/// A line of the response to a request to build the index again. The last one is the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RebuildLine {
    /// The build has not ended yet.
    Running {
        /// The time since its request, in seconds.
        secs: u64,
        /// The number of indexed records.
        records: u64,
    },
    /// The index is complete.
    Rebuilt(SearchState),
    /// The build failed. A running server continues it.
    Failed {
        /// The reason.
        error: String,
    },
}

impl SearchState {
    /// The state of an index whose last write failed for this reason, or succeeded.
    pub(crate) fn new(status: IndexStatus, last_error: Option<String>) -> Self {
        let IndexStatus { records, behind, disk_bytes, is_building } = status;
        Self { enabled: true, records, changes_behind: behind, disk_bytes, is_building, last_error }
    }
}
