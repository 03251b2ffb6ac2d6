//! The pages in memory: those that were read, and their compressed forms, up to a limit on all of them.
//!
//! The least recently used ones are dropped first.

use super::key::Name;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The coding of a page in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCoding {
    /// As in the file.
    Plain,
    /// The whole page as one gzip stream.
    Gzip,
}

/// A page in memory.
#[derive(Debug)]
pub struct HotPage {
    /// The metadata that the caller stored with the body.
    pub meta: Vec<u8>,
    /// The complete body, in its coding.
    pub body: Bytes,
    /// The edition of the page in the index.
    pub edition: i64,
}

/// All pages in memory.
#[derive(Debug, Default)]
pub(super) struct HotPages {
    pages: HashMap<Name, [Option<Held>; 2]>,
    /// By their last use, the least recent first.
    order: BTreeMap<u64, (Name, PageCoding)>,
    last_use: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    page: Arc<HotPage>,
    used: u64,
}

impl HotPages {
    /// The page, which becomes the most recently used one.
    pub(super) fn find(&mut self, name: &Name, coding: PageCoding) -> Option<Arc<HotPage>> {
        let [plain, gzip] = self.pages.get_mut(name)?;
        let held = match coding {
            PageCoding::Plain => plain.as_mut()?,
            PageCoding::Gzip => gzip.as_mut()?,
        };
        self.last_use += 1;
        if let Some(place) = self.order.remove(&held.used) {
            self.order.insert(self.last_use, place);
        }
        held.used = self.last_use;
        Some(Arc::clone(&held.page))
    }

    /// Adds a page, and drops others to make room.
    pub(super) fn keep(&mut self, name: &Name, coding: PageCoding, page: HotPage) {
        self.last_use += 1;
        let used = self.last_use;
        self.bytes += page.bytes();
        let slot = &mut self.pages.entry(name.clone()).or_default()[coding as usize];
        if let Some(replaced) = slot.replace(Held { page: Arc::new(page), used }) {
            self.bytes -= replaced.page.bytes();
            self.order.remove(&replaced.used);
        }
        self.order.insert(used, (name.clone(), coding));
        while self.bytes > HOT_BYTES_MAX
            && let Some((_, (name, coding))) = self.order.pop_first()
        {
            self.drop_page(&name, coding);
        }
    }

    /// Drops all forms of a page.
    pub(super) fn remove(&mut self, name: &Name) {
        for held in self.pages.remove(name).into_iter().flatten().flatten() {
            self.bytes -= held.page.bytes();
            self.order.remove(&held.used);
        }
    }

    /// The size of all pages, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn drop_page(&mut self, name: &Name, coding: PageCoding) {
        let Some(forms) = self.pages.get_mut(name) else { return };
        if let Some(held) = forms[coding as usize].take() {
            self.bytes -= held.page.bytes();
        }
        if forms.iter().all(Option::is_none) {
            self.pages.remove(name);
        }
    }
}

impl HotPage {
    /// Its size in memory.
    pub(super) fn bytes(&self) -> usize {
        self.body.len() + self.meta.len() + HOT_PAGE_OVERHEAD_BYTES
    }
}

/// Maximum number of bytes of all pages in memory.
pub(super) const HOT_BYTES_MAX: usize = 32 << 20;
/// Bytes of a page in memory besides its content: its rows in the tables.
pub(super) const HOT_PAGE_OVERHEAD_BYTES: usize = 512;
