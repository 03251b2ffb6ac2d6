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
    /// Without the values that differ between lists with the same records.
    list: RecordList,
    limits: PageLimits,
}

/// A page without its token.
#[derive(Clone, Debug)]
pub(super) struct WrittenPage {
    xml: Bytes,
    items: u64,
    end: PageEnd,
}

/// Counts the XML, and the key with its tables.
#[derive(Clone, Debug)]
struct ByBytes;

const ENTRY_BYTES: u64 = 1 << 10;

impl Weighter<PageKey, WrittenPage> for ByBytes {
    fn weight(&self, _key: &PageKey, page: &WrittenPage) -> u64 {
        page.xml.len() as u64 + ENTRY_BYTES
    }
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
        part: &Part<'_>,
        list: &RecordList,
        limits: PageLimits,
    ) -> Self {
        // A list to the last change contains all records, whenever it began.
        let is_to_the_end = part.since_secs.max(Some(version.last_stamp_secs)) <= Some(list.until);
        let until = if is_to_the_end { UnixSecs::MAX } else { list.until };
        let since = part.since_secs;
        let list = RecordList { until, since, date: UnixSecs(0), count: 0, size: None, ..list.clone() };
        Self { version, source: part.member.clone(), list, limits }
    }
}

impl WrittenPage {
    pub(super) fn new(page: &Page, end: &PageEnd) -> Self {
        Self { xml: page.xml.clone(), items: page.items, end: end.clone() }
    }

    pub(super) fn to_page(&self) -> (Page, PageEnd) {
        let page = Page { xml: self.xml.clone(), items: self.items, ..Page::default() };
        (page, self.end.clone())
    }
}
