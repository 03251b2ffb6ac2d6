//! Which version of a record a list means if it contains several.
//!
//! Some sources list a record and, somewhere after it, an older version or an older tombstone of it. The version with
//! the later datestamp is the current one; of equal ones, that which is later in the list. Between two harvests this
//! does not hold: a source that was restored from a backup returns older datestamps.

use oaimend_oai::UnixSecs;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

/// Maximum number of records whose versions are compared in a harvest, at about 32 bytes each. Later records of a
/// longer list are compared with these only.
const RECORDS_MAX: usize = 1 << 20;

/// The datestamps of the records that a harvest has received.
#[derive(Debug, Default)]
pub(crate) struct ListVersions {
    hasher: RandomState,
    /// The latest datestamps, by the hashes of the identifiers.
    latest_secs: HashMap<u64, UnixSecs>,
}

impl ListVersions {
    /// Notes a version of a record. Returns whether it is older than one before it.
    pub(crate) fn is_outdated(&mut self, identifier: &str, datestamp_secs: UnixSecs) -> bool {
        let name = self.hasher.hash_one(identifier);
        let has_room = self.latest_secs.len() < RECORDS_MAX;
        match self.latest_secs.get_mut(&name) {
            Some(latest_secs) if *latest_secs > datestamp_secs => return true,
            Some(latest_secs) => *latest_secs = datestamp_secs,
            None if has_room => {
                self.latest_secs.insert(name, datestamp_secs);
            }
            None => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_datestamp_wins_and_of_equal_ones_the_later_position() {
        let mut versions = ListVersions::default();
        let seen = [("a", 5), ("b", 9), ("a", 4), ("a", 5), ("a", 6), ("a", 5), ("b", 9)];
        let outdated = seen.map(|(identifier, secs)| versions.is_outdated(identifier, UnixSecs(secs)));
        assert_eq!(outdated, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn memory_has_a_limit() {
        let mut versions = ListVersions::default();
        for number in 0..RECORDS_MAX + 10 {
            assert!(!versions.is_outdated(&number.to_string(), UnixSecs(7)));
        }
        assert_eq!(versions.latest_secs.len(), RECORDS_MAX);
        assert!(versions.is_outdated("3", UnixSecs(6)), "the first ones are known");
    }
}
