//! The choice between records of several repositories that have the same identifier.

use serde::{Deserialize, Serialize};

/// Which records the view of all repositories shows if several repositories have the same identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collisions {
    /// All of them.
    #[default]
    KeepBoth,
    /// That of the repository with the highest priority.
    Prefer,
    /// That with the latest datestamp of its source.
    Newest,
}
