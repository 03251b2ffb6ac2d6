//! Written list pages in memory, for harvesters that read the same list at the same time.
//!
//! A page follows from its list, its position and the version of the collection, so it is valid until the next commit.
//! The times and the token around it are written for each response. Lists of several repositories are not kept.

use super::list_token::{PageEnd, RecordList};
use super::options::{MirroredSource, PageLimits};
use super::part::Part;
use super::response::Page;
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::Granularity;
use oaimend_repository::DeliveredRecord;
use oaimend_store::CollectionVersion;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Maximum number of bytes of all pages.
const PAGES_BYTES_MAX: u64 = 32 << 20;
/// A guess of the bytes of a page, for the size of the table.
const PAGE_BYTES: u64 = 128 << 10;

/// Written pages of the lists of single repositories. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct PageCache(Arc<Cache<PageKey, WrittenPage, ByBytes>>);

/// Everything that a page follows from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageKey {
    version: CollectionVersion,
    source: MirroredSource,
    /// What the provenance of the records names.
    described_by: Option<(Granularity, String)>,
    /// Without the values that differ between lists with the same records.
    list: RecordList,
    limits: PageLimits,
}

/// A page without its token.
#[derive(Clone, Debug)]
pub(super) struct WrittenPage {
    xml: Bytes,
    items: u64,
    /// Its records; `None` if no request wanted them reported.
    records: Option<Arc<[DeliveredRecord]>>,
    end: PageEnd,
}

/// Counts the XML, the records, and the key with its tables.
#[derive(Clone, Debug)]
struct ByBytes;

const ENTRY_BYTES: u64 = 1 << 10;

impl Weighter<PageKey, WrittenPage> for ByBytes {
    fn weight(&self, _key: &PageKey, page: &WrittenPage) -> u64 {
        page.bytes() + ENTRY_BYTES
    }
}

/// The bytes of a record, without its few repairs.
fn record_bytes(record: &DeliveredRecord) -> u64 {
    let sets: usize = record.set_specs.iter().map(|set| set.len() + size_of::<String>()).sum();
    let texts = record.xml.len() + record.identifier.len() + record.datestamp.len() + sets;
    (size_of::<DeliveredRecord>() + texts) as u64
}

impl Default for PageCache {
    fn default() -> Self {
        let pages = usize::try_from(PAGES_BYTES_MAX / PAGE_BYTES).unwrap_or_default();
        Self(Arc::new(Cache::with_weighter(pages, PAGES_BYTES_MAX, ByBytes)))
    }
}

impl PageCache {
    pub(super) fn find(&self, key: &PageKey) -> Option<WrittenPage> {
        self.0.get(key)
    }

    pub(super) fn keep(&self, key: PageKey, page: WrittenPage) {
        self.0.insert(key, page);
    }
}

impl PageKey {
    /// The key of the next page of a list in a repository.
    pub(super) fn new(
        version: CollectionVersion,
        (part, described_by): (&Part<'_>, Option<(Granularity, String)>),
        list: &RecordList,
        limits: PageLimits,
    ) -> Self {
        // A list to the last change contains all records, whenever it began.
        let is_to_the_end = part.since_secs.max(Some(version.last_stamp_secs)) <= Some(list.until);
        let until = if is_to_the_end { UnixSecs::MAX } else { list.until };
        let since = part.since_secs;
        let list = RecordList { until, since, date: UnixSecs(0), count: 0, size: None, ..list.clone() };
        Self { version, source: part.member.clone(), described_by, list, limits }
    }
}

impl WrittenPage {
    /// The bytes of its XML and its records.
    fn bytes(&self) -> u64 {
        let records = self.records.iter().flat_map(|records| records.iter());
        self.xml.len() as u64 + records.map(record_bytes).sum::<u64>()
    }

    /// A page whose records are reported or not.
    pub(super) fn new(page: &Page, end: &PageEnd, reports_records: bool) -> Self {
        let records = reports_records.then(|| page.records.as_slice().into());
        Self { xml: page.xml.clone(), items: page.items, records, end: end.clone() }
    }

    /// The page; `None` if its records are wanted and not known.
    pub(super) fn to_page(&self, reports_records: bool) -> Option<(Page, PageEnd)> {
        let records = match (&self.records, reports_records) {
            (Some(records), true) => records.to_vec(),
            (None, true) => return None,
            (_, false) => Vec::new(),
        };
        let page = Page { xml: self.xml.clone(), items: self.items, records, ..Page::default() };
        Some((page, self.end.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::RecordRepairs;

    fn page(records: usize) -> Page {
        let record = DeliveredRecord {
            identifier: "oai:x:1".to_owned(),
            datestamp: "2024-01-02".to_owned(),
            deleted: false,
            set_specs: vec!["a".to_owned()],
            xml: "<record/>".repeat(1_000),
            datestamp_at: 0..0,
            repairs: RecordRepairs::default(),
        };
        Page { xml: "<record/>".into(), items: 1, records: vec![record; records], ..Page::default() }
    }

    #[test]
    fn records_are_reported_only_from_pages_that_know_them() {
        let end = PageEnd { last: None, has_more: true };
        let without = WrittenPage::new(&page(0), &end, false);
        assert!(without.to_page(true).is_none(), "its records are not known");
        let (read, read_end) = without.to_page(false).expect("its XML is known");
        assert_eq!((&read.xml, read.items, read_end.has_more), (&page(0).xml, 1, true));
        let with = WrittenPage::new(&page(1), &end, true);
        assert_eq!(with.to_page(true).expect("they are known").0.records, page(1).records);
        assert!(with.to_page(false).expect("its XML is known").0.records.is_empty());
    }

    #[test]
    fn records_count_as_memory_of_a_page() {
        let (page, end) = (page(1), PageEnd { last: None, has_more: false });
        let bytes = |reports_records| WrittenPage::new(&page, &end, reports_records).bytes();
        assert!(bytes(true) > bytes(false) + 9_000);
    }
}
