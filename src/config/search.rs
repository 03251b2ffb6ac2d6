//! The keys of the search: the `[search]` table of `oaimend.toml`.

use super::browse::CategorySettings;
use super::keys::{Flag, Keys, declare, seconds, whole};
use oaimend_views::odl::BrowseCategory;
use std::time::Duration;

/// The search in the mirror: the `[search]` table of `oaimend.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPolicy {
    /// Whether mirrored records are indexed and can be searched.
    pub enabled: bool,
    /// Maximum memory of the writer of the index, in MiB.
    pub memory_max_mib: usize,
    /// The interval between two commits of the index.
    pub commit_interval: Duration,
    /// Whether harvesters can use queries as sets.
    pub query_sets: bool,
    /// The categories by which records are browsed; empty: the usual ones.
    pub browse: Vec<CategorySettings>,
}

impl Default for SearchPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            memory_max_mib: 32,
            commit_interval: Duration::from_secs(2),
            query_sets: true,
            browse: Vec::new(),
        }
    }
}

impl SearchPolicy {
    /// The keys of the table.
    pub(super) fn declare(&mut self, keys: &mut Keys<'_, '_>) {
        declare! { keys:
            /// Whether the records of mirrored repositories are indexed and can be searched. Without a mirrored
            /// repository there is no index.
            enabled: Flag => self.enabled,
            /// Maximum memory for the documents that the writer of the index holds. More memory makes the first build faster.
            memory_max_mib: whole(MEMORY_MIB_MIN..=1 << 20) => self.memory_max_mib,
            /// The interval at which changes of the mirror are indexed.
            commit_secs: seconds(1..=3600) => self.commit_interval,
            /// Whether `/_all` and `/_mirror/ID` accept a query as a set, such as `set=q:...`.
            query_sets: Flag => self.query_sets,
        }
        keys.named_tables(
            "browse",
            "The categories of `/_browse`. Without any, they are creator, subject, type, language and year.",
            |keys, name| self.browse.push(CategorySettings::declare(name, keys)),
        );
    }

    /// The categories by which records are browsed.
    pub(crate) fn browse_categories(&self) -> Vec<BrowseCategory> {
        match self.browse.as_slice() {
            [] => BrowseCategory::defaults(),
            categories => categories.iter().map(CategorySettings::category).collect(),
        }
    }

    /// Maximum memory of the writer of the index, in bytes.
    pub(crate) fn memory_max_bytes(&self) -> usize {
        self.memory_max_mib << 20
    }
}

/// The least memory of the writer, in MiB: tantivy needs 15,000,000 bytes.
const MEMORY_MIB_MIN: u64 = 16;
