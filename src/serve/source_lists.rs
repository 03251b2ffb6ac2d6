//! The lists of the records of repositories that are not mirrored, for crawlers. They are in memory only.
//!
//! Invariant: a list says that it is complete only if its source ended it, and no item of it was left out.

use crate::config::Mapping;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::to_secs;
use oaimend_repository::DeliveredRecord;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of records of a list. They fit into one sitemap.
pub(crate) const RECORDS_MAX: usize = 20_000;
/// Maximum length of all identifiers of a list, in bytes.
const IDENTIFIERS_BYTES_MAX: usize = 4 << 20;
/// The time between two readings of a list, in seconds: a day.
const INTERVAL_SECS: i64 = 86_400;
/// The same after a source that has sent no record, so that it costs one request.
const RETRY_SECS: i64 = 3_600;
/// How long a list is kept in place of later ones that are shorter and not complete, in seconds: a week.
const AGE_SECS_MAX: i64 = 7 * INTERVAL_SECS;

/// A record of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListedRecord {
    pub(crate) datestamp_secs: UnixSecs,
    pub(crate) identifier: String,
}

/// A list of the records of a source, as far as it was read.
#[derive(Debug)]
pub(crate) struct SourceList {
    /// When it was requested.
    pub(crate) began_secs: UnixSecs,
    /// The records that are not deleted, the oldest first.
    pub(crate) records: Vec<ListedRecord>,
    /// Whether these are all records of the source.
    pub(crate) is_complete: bool,
}

/// The records of a list that is being read. The last header of a record counts.
#[derive(Debug, Default)]
pub(crate) struct ReceivedRecords {
    datestamps: HashMap<String, UnixSecs>,
    identifiers_bytes: usize,
}

/// The lists of all repositories, by their ids.
#[derive(Debug, Default)]
pub(crate) struct SourceLists(Mutex<BTreeMap<String, KeptList>>);

#[derive(Debug)]
struct KeptList {
    list: Arc<SourceList>,
    source_key: String,
    /// When the source was last requested.
    requested_secs: UnixSecs,
}

impl ReceivedRecords {
    /// Adds a record. Returns whether there was room for it.
    pub(crate) fn add(&mut self, record: DeliveredRecord) -> bool {
        let DeliveredRecord { identifier, datestamp, deleted, .. } = record;
        if deleted {
            if let Some((identifier, _)) = self.datestamps.remove_entry(&identifier) {
                self.identifiers_bytes -= identifier.len();
            }
            return true;
        }
        if !self.datestamps.contains_key(&identifier) {
            if self.datestamps.len() >= RECORDS_MAX
                || self.identifiers_bytes + identifier.len() > IDENTIFIERS_BYTES_MAX
            {
                return false;
            }
            self.identifiers_bytes += identifier.len();
        }
        self.datestamps.insert(identifier, to_secs(&datestamp).unwrap_or(UnixSecs(0)));
        true
    }

    /// The list of these records.
    pub(crate) fn into_list(self, began_secs: UnixSecs, is_complete: bool) -> SourceList {
        let listed = |(identifier, datestamp_secs)| ListedRecord { datestamp_secs, identifier };
        let mut records: Vec<ListedRecord> = self.datestamps.into_iter().map(listed).collect();
        records.sort_unstable();
        SourceList { began_secs, records, is_complete }
    }
}

impl SourceList {
    /// Whether the source has sent nothing from which a list can be made.
    fn is_unknown(&self) -> bool {
        self.records.is_empty() && !self.is_complete
    }
}

impl SourceLists {
    /// The list of a repository; `None` if its source has not sent one yet.
    pub(crate) fn of(&self, mapping: &Mapping) -> Option<Arc<SourceList>> {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lists.get(mapping.id()).filter(|kept| kept.source_key == mapping.source.source_key())?;
        (!kept.list.is_unknown()).then(|| Arc::clone(&kept.list))
    }

    /// Whether the list of a repository should be read at this time.
    pub(crate) fn is_due(&self, mapping: &Mapping, now_secs: UnixSecs) -> bool {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = lists.get(mapping.id()) else { return true };
        let interval = if kept.list.is_unknown() { RETRY_SECS } else { INTERVAL_SECS };
        kept.source_key != mapping.source.source_key() || now_secs >= kept.requested_secs.plus(interval)
    }

    /// Replaces the list of a repository, unless the new one has lost records by a failure.
    pub(crate) fn put(&self, mapping: &Mapping, list: SourceList) {
        let (source_key, requested_secs) = (mapping.source.source_key(), list.began_secs);
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = lists.get_mut(mapping.id())
            && kept.source_key == source_key
            && !list.is_complete
            && list.records.len() < kept.list.records.len()
            && requested_secs < kept.list.began_secs.plus(AGE_SECS_MAX)
        {
            kept.requested_secs = requested_secs;
            return;
        }
        lists.insert(mapping.id().to_owned(), KeptList { list: Arc::new(list), source_key, requested_secs });
    }

    /// Removes the lists of all repositories for which `is_wanted` is false.
    pub(crate) fn retain(&self, is_wanted: impl Fn(&str) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| is_wanted(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::RecordRepairs;
    use oaimend_upstream::settings::Limits;

    fn record(identifier: &str, deleted: bool) -> DeliveredRecord {
        DeliveredRecord {
            identifier: identifier.to_owned(),
            datestamp: "1970-01-02".to_owned(),
            deleted,
            set_specs: Vec::new(),
            xml: String::new(),
            datestamp_at: 0..0,
            repairs: RecordRepairs::default(),
        }
    }

    #[test]
    fn records_and_their_bytes_are_bounded() {
        let mut received = ReceivedRecords::default();
        assert!((0..RECORDS_MAX).all(|number| received.add(record(&number.to_string(), false))));
        assert!(!received.add(record("one more", false)));
        assert!(received.add(record("0", false)), "it is known");
        assert!(received.add(record("0", true)) && received.add(record("one more", false)));
        let list = received.into_list(UnixSecs(0), false);
        assert_eq!(list.records.len(), RECORDS_MAX);
        let mut received = ReceivedRecords::default();
        assert!(received.add(record(&"x".repeat(IDENTIFIERS_BYTES_MAX), false)));
        assert!(!received.add(record("y", false)));
    }

    #[test]
    fn a_failed_reading_keeps_the_longer_list_for_a_week() {
        let mapping = |url: &str| Mapping::new("x", url, &Limits::default()).expect("a legal mapping");
        let (x, moved) = (mapping("http://x.example/"), mapping("http://y.example/"));
        let lists = SourceLists::default();
        let list = |count: usize, began_secs, is_complete| {
            let mut received = ReceivedRecords::default();
            assert!((0..count).all(|number| received.add(record(&number.to_string(), false))));
            received.into_list(UnixSecs(began_secs), is_complete)
        };
        let shown = || lists.of(&x).map(|list| (list.records.len(), list.is_complete));
        assert!(lists.is_due(&x, UnixSecs(0)) && shown().is_none());
        lists.put(&x, list(0, 0, false));
        assert_eq!(shown(), None);
        assert!(!lists.is_due(&x, UnixSecs(RETRY_SECS - 1)) && lists.is_due(&x, UnixSecs(RETRY_SECS)));
        lists.put(&x, list(3, 0, true));
        assert!(!lists.is_due(&x, UnixSecs(INTERVAL_SECS - 1)) && lists.is_due(&x, UnixSecs(INTERVAL_SECS)));
        lists.put(&x, list(2, INTERVAL_SECS, false));
        assert_eq!(shown(), Some((3, true)));
        assert!(!lists.is_due(&x, UnixSecs(INTERVAL_SECS)), "it was requested");
        lists.put(&x, list(2, AGE_SECS_MAX, false));
        assert_eq!(shown(), Some((2, false)));
        lists.put(&x, list(1, AGE_SECS_MAX, true));
        assert_eq!(shown(), Some((1, true)));
        assert!(lists.of(&moved).is_none() && lists.is_due(&moved, UnixSecs(0)), "another source");
        lists.retain(|id| id != "x");
        assert_eq!(shown(), None);
    }
}
