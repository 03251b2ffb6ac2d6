//! What a harvest remembers of the identifiers in its lists until the next commit, for [`Duplicates`].
//!
//! [`Duplicates`]: oaimend_store::Duplicates

use crate::harvest::list_versions::ListVersions;
use oaimend_store::{Occurrences, split_suffix};
use std::collections::HashMap;

/// What a writer remembers of the identifiers in its lists.
#[derive(Debug, Default)]
pub(crate) struct ListedIdentifiers {
    pub(crate) versions: ListVersions,
    /// Whether an earlier process, or an earlier attempt, has received the first records of this harvest.
    pub(crate) is_continued: bool,
    /// What the pages since the last commit have changed.
    changed: HashMap<String, Occurrences>,
    /// What the current page has changed.
    pub(crate) of_page: HashMap<String, Occurrences>,
}

impl ListedIdentifiers {
    /// The number of changes that wait for a commit.
    pub(crate) fn waiting(&self) -> usize {
        self.changed.len()
    }

    /// The changes that the next commit stores.
    pub(crate) fn take_changed(&mut self) -> Vec<(String, Occurrences)> {
        self.changed.drain().collect()
    }

    /// Keeps the changes of the current page: it has ended, or its first part is committed.
    pub(crate) fn keep_page(&mut self) {
        self.changed.extend(self.of_page.drain());
        self.versions.end_page();
    }

    /// Drops the changes of the current page, which has failed.
    pub(crate) fn drop_page(&mut self) {
        self.of_page.clear();
        self.versions.drop_page();
    }

    /// Replaces what is known of an identifier.
    pub(crate) fn change(&mut self, identifier: String, occurrences: Occurrences) {
        self.changed.insert(identifier, occurrences);
    }

    /// The known records of an identifier, unless they are in the store only.
    pub(crate) fn find(&self, identifier: &str) -> Option<&Occurrences> {
        self.of_page.get(identifier).or_else(|| self.changed.get(identifier))
    }
}

/// The identifier without a suffix of the mirror, and the place among the records with it.
pub(crate) fn place_of<'i>(identifier: &'i str, known: &HashMap<String, Occurrences>) -> (&'i str, usize) {
    match split_suffix(identifier) {
        Some((base, number)) if known.get(base).is_some_and(|known| known.suffixed(number).is_some()) => {
            (base, number - 1)
        }
        _ => (identifier, 0),
    }
}
