//! Converted records in memory, for harvesters that read the same list, and for a source that sends the same records.
//!
//! A conversion whose results are here reads one record and nothing else, so its result follows from the bytes of the record and the version of the
//! crosswalk, and never becomes outdated. Records that cannot be converted are not kept.

use crate::table::Crosswalk;
use oaimend_repository::DeliveredRecord;
use oaimend_store::TokenKey;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::hash::Hasher as _;
use std::sync::Arc;

/// Maximum number of bytes of all converted records.
const RECORDS_BYTES_MAX: u64 = 32 << 20;
/// A guess of the bytes of a record, for the size of the table.
const RECORD_BYTES: u64 = 2 << 10;
/// The parts of the table, each with a lock of its own. An entry must fit into one of them.
const SHARDS: usize = 8;
/// The bytes of an entry beside its XML.
const ENTRY_BYTES: u64 = 96;

/// Converted records of all repositories. Clones share them.
#[derive(Clone, Debug)]
pub struct ConvertedRecords(Arc<Cache<RecordKey, Arc<str>, ByBytes>>);

/// A hash with a secret key of everything that a converted record follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RecordKey(u128);

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<RecordKey, Arc<str>> for ByBytes {
    fn weight(&self, _key: &RecordKey, xml: &Arc<str>) -> u64 {
        xml.len() as u64 + ENTRY_BYTES
    }
}

impl Default for ConvertedRecords {
    fn default() -> Self {
        let records = usize::try_from(RECORDS_BYTES_MAX / RECORD_BYTES).unwrap_or_default();
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(records)
            .weight_capacity(RECORDS_BYTES_MAX)
            .build()
            .expect("both capacities are set");
        let (hasher, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Self(Arc::new(Cache::with_options(options, ByBytes, hasher, lifecycle)))
    }
}

impl ConvertedRecords {
    pub(super) fn find(&self, key: RecordKey) -> Option<Arc<str>> {
        self.0.get(&key)
    }

    pub(super) fn keep(&self, key: RecordKey, xml: &str) {
        self.0.insert(key, xml.into());
    }
}

impl RecordKey {
    /// The key of a record in `source_prefix` that this crosswalk converts.
    pub(super) fn new(
        secret: &TokenKey,
        crosswalk: &Crosswalk,
        source_prefix: &str,
        record: &DeliveredRecord,
    ) -> Self {
        let mut hasher = SipHasher13::new_with_key(secret.items());
        for text in [&crosswalk.prefix, &crosswalk.version, source_prefix, &record.xml] {
            hasher.write_u64(text.len() as u64);
            hasher.write(text.as_bytes());
        }
        Self(hasher.finish128().as_u128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_all_records_are_limited() {
        let records = ConvertedRecords::default();
        let xml = "x".repeat(64 << 10);
        for number in 0..2_000 {
            records.keep(RecordKey(number), &xml);
        }
        let held = (0..2_000).filter(|&number| records.find(RecordKey(number)).is_some()).count();
        let held_max = usize::try_from(RECORDS_BYTES_MAX).expect("small") / xml.len();
        assert!((held_max / 2..=held_max).contains(&held), "{held}");
    }
}
