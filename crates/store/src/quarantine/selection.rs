//! Which entries are listed, and which are removed.

use super::entries::{QuarantineEntry, QuarantineState};

/// Maximum number of records in one listing for operators.
pub const QUARANTINE_LISTED_MAX: usize = 1_000;

/// The entries of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineQuery {
    /// Only entries in this state.
    pub state: Option<QuarantineState>,
    /// Only entries with keys after this one; empty: all.
    pub after: String,
    /// Maximum number of entries.
    pub count_max: usize,
}

/// The entries of a repository that are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuarantineSelection {
    /// The one with this key.
    Key(String),
    /// Those that fit all conditions. Without a condition all.
    Matching {
        /// The state of the entries.
        state: Option<QuarantineState>,
        /// They changed before this time, `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`: see
        /// [`QuarantineEntry::changed_at`].
        before: Option<String>,
    },
}

impl Default for QuarantineQuery {
    fn default() -> Self {
        Self { state: None, after: String::new(), count_max: QUARANTINE_LISTED_MAX }
    }
}

impl QuarantineQuery {
    /// Whether an entry belongs to the listing.
    pub fn contains(&self, key: &str, entry: &QuarantineEntry) -> bool {
        key > self.after.as_str() && self.state.is_none_or(|state| state == entry.state())
    }
}

impl QuarantineSelection {
    /// All entries.
    pub const ALL: Self = Self::Matching { state: None, before: None };

    /// Whether an entry is one of those to remove.
    pub fn contains(&self, key: &str, entry: &QuarantineEntry) -> bool {
        match self {
            Self::Key(wanted) => key == wanted,
            Self::Matching { state, before } => {
                state.is_none_or(|state| state == entry.state())
                    && before.as_ref().is_none_or(|time| entry.changed_at() < time.as_str())
            }
        }
    }
}
