//! Which version of a record a list means if it contains several.
//!
//! Some sources list a record and, somewhere after it, an older version or an older tombstone of it. The version with
//! the later datestamp is the current one; of equal ones, that which is later in the list. Between two harvests this
//! does not hold: a source that was restored from a backup returns older datestamps.

use oaimend_oai::UnixSecs;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

/// Maximum number of records whose versions are compared in memory in a harvest, at about 48 bytes each. Later records of
/// a longer list are compared with the stored ones.
const RECORDS_MAX: usize = 1 << 20;

/// The latest versions that a harvest has received. Those of a page count when the page has ended: a page that failed
/// comes again.
#[derive(Debug, Default)]
pub(crate) struct ListVersions {
    hasher: RandomState,
    /// By the hashes of the identifiers.
    latest: HashMap<u64, Version>,
    /// The versions of the current page.
    of_page: HashMap<u64, Version>,
}

#[derive(Clone, Copy, Debug)]
struct Version {
    datestamp_secs: UnixSecs,
    /// The hash of the content; `None` if it is not known.
    content: Option<u64>,
}

/// How a version compares with the latest one of the same record before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedVersion {
    /// Whether a version before it is newer.
    pub(crate) is_outdated: bool,
    /// Whether the version before it has the same content; `None` if no version before it is known.
    pub(crate) is_same: Option<bool>,
}

impl ListVersions {
    /// Notes a version of a record.
    pub(crate) fn note(&mut self, identifier: &str, datestamp_secs: UnixSecs, content: u64) -> ListedVersion {
        let name = self.hasher.hash_one(identifier);
        let has_room = !self.is_full();
        let version = Version { datestamp_secs, content: Some(content) };
        let Some(known) = self.of_page.get(&name).or_else(|| self.latest.get(&name)) else {
            if has_room {
                self.of_page.insert(name, version);
            }
            return ListedVersion { is_outdated: false, is_same: None };
        };
        let is_outdated = known.datestamp_secs > datestamp_secs;
        let is_same = Some(known.content == Some(content));
        if !is_outdated {
            self.of_page.insert(name, version);
        }
        ListedVersion { is_outdated, is_same }
    }

    /// Notes a stored version of a record that is not in memory, whose content is not known.
    pub(crate) fn note_stored(&mut self, identifier: &str, datestamp_secs: UnixSecs) {
        if !self.is_full() {
            let version = Version { datestamp_secs, content: None };
            self.of_page.insert(self.hasher.hash_one(identifier), version);
        }
    }

    /// Whether a version of the record is in memory.
    pub(crate) fn contains(&self, identifier: &str) -> bool {
        let name = self.hasher.hash_one(identifier);
        self.of_page.contains_key(&name) || self.latest.contains_key(&name)
    }

    /// The current page has ended.
    pub(crate) fn end_page(&mut self) {
        self.latest.extend(self.of_page.drain());
    }

    /// The current page has failed.
    pub(crate) fn drop_page(&mut self) {
        self.of_page.clear();
    }

    /// The list begins again.
    pub(crate) fn clear(&mut self) {
        self.latest.clear();
        self.of_page.clear();
    }

    /// Whether there is no room for further records.
    pub(crate) fn is_full(&self) -> bool {
        self.latest.len() + self.of_page.len() >= RECORDS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_datestamp_wins_and_of_equal_ones_the_later_position() {
        let mut versions = ListVersions::default();
        let seen = [("a", 5), ("b", 9), ("a", 4), ("a", 5), ("a", 6), ("a", 5), ("b", 9)];
        let outdated = seen.map(|(identifier, secs)| {
            versions.end_page();
            versions.note(identifier, UnixSecs(secs), 0).is_outdated
        });
        assert_eq!(outdated, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn a_page_that_failed_is_unknown() {
        let mut versions = ListVersions::default();
        let note = |versions: &mut ListVersions, content| versions.note("a", UnixSecs(5), content).is_same;
        assert_eq!(note(&mut versions, 7), None);
        versions.drop_page();
        assert_eq!(note(&mut versions, 7), None);
        assert_eq!(note(&mut versions, 7), Some(true));
        versions.end_page();
        assert_eq!(note(&mut versions, 8), Some(false));
        versions.clear();
        assert_eq!(note(&mut versions, 8), None);
    }

    #[test]
    fn memory_has_a_limit() {
        let mut versions = ListVersions::default();
        for number in 0..RECORDS_MAX + 10 {
            assert!(!versions.note(&number.to_string(), UnixSecs(7), 0).is_outdated);
        }
        assert!(versions.is_full());
        versions.end_page();
        assert_eq!(versions.latest.len(), RECORDS_MAX);
        assert!(versions.note("3", UnixSecs(6), 0).is_outdated, "the first ones are known");
    }
}
