//! The pages in memory that have no file: pages of a running harvest, which are of use for a short time.
//!
//! A page that is evicted before its time is saved to a file, unless the harvester has already requested the page that
//! follows it: then it has received this one. All pages are saved when the process ends. A process that is killed loses
//! them.
//!
//! Invariant: an evicted page is found until it has been saved or dropped.

use super::entry::{BlockSums, NewBody, NewPage};
use super::hot::HotPage;
use super::key::{Name, PageKey};
use super::pages::Pages;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;

/// A page that is held in memory alone.
#[derive(Debug)]
pub struct UnsavedPage {
    /// The metadata that belongs to the body.
    pub meta: Vec<u8>,
    /// The complete body, not compressed.
    pub body: Bytes,
    /// The time from which on the page is of no use, in seconds since 1970.
    pub useless_from: u64,
    /// What the request for the page that follows it contains, if there is one.
    pub next: Option<String>,
    /// Whether the page is dropped, and not saved, if it is evicted after the request for the page that follows it.
    pub is_for_one_harvest: bool,
}

/// A page that must be saved, because memory has no more room for it or the process ends.
#[derive(Clone, Debug)]
pub struct LeavingPage {
    key: PageKey,
    page: Arc<HotPage>,
    useless_from: u64,
}

/// All pages in memory that have no file.
#[derive(Debug, Default)]
pub(super) struct UnsavedPages {
    pages: HashMap<Name, Held>,
    /// The order of eviction. Pages that are being saved are not in it.
    order: BTreeMap<i64, Name>,
    /// The page before each request for a page that follows one. The keys are hashes, because tokens can be long; two
    /// equal hashes drop a page too early.
    before: HashMap<u64, Name>,
    hasher: RandomState,
    first_place: i64,
    last_place: i64,
    /// Bytes of all pages, without those that are being saved.
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    key: PageKey,
    page: Arc<HotPage>,
    useless_from: u64,
    /// The hash of the request for the page that follows it.
    next: Option<u64>,
    is_for_one_harvest: bool,
    /// Whether the page that follows it was requested after the last request for this one.
    is_followed: bool,
    /// Its place in the order of eviction; `None` while it is being saved.
    place: Option<i64>,
}

impl Pages {
    /// Holds a page in memory without a file. Returns the pages that must be saved to make room for it. They stay in
    /// memory, in addition to [`UNSAVED_BYTES_MAX`], until [`Pages::save`] returns. Does not read the disk.
    ///
    /// `now` is in seconds since 1970.
    pub fn keep_unsaved(&self, key: &PageKey, page: UnsavedPage, now: u64) -> Vec<LeavingPage> {
        let mut index = self.index();
        index.drop_unsaved(key.name());
        // Its compressed form is that of an older page.
        index.hot.remove(key.name());
        let edition = index.next_use();
        index.unsaved.keep(key, page, edition);
        let (leaving, dropped) = index.unsaved.evict(now);
        dropped.iter().for_each(|name| drop(index.drop_unsaved(name)));
        leaving
    }

    /// Notes a request for the page that follows another one: `next` is what it contains. Does not read the disk.
    pub fn note_followed(&self, repository: &str, next: &str) {
        self.index().unsaved.note_followed(repository, next);
    }

    /// Saves a page that has to leave the memory, unless it was removed or replaced meanwhile. `now` is in seconds since
    /// 1970.
    ///
    /// # Errors
    ///
    /// It cannot be written. The page is lost.
    pub fn save(&self, leaving: &LeavingPage, now: u64) -> io::Result<()> {
        let LeavingPage { key, page, useless_from } = leaving;
        let is_wanted = || self.index().unsaved.edition(key.name()) == Some(page.edition);
        if !is_wanted() {
            return Ok(());
        }
        let mut sums = BlockSums::default();
        sums.push(&page.body);
        let new = NewPage {
            meta: &page.meta,
            body: NewBody::InMemory(&[&page.body]),
            sums,
            useless_from: *useless_from,
        };
        let part = self.part(key, now);
        let saved = part.and_then(|part| self.commit_if(&part, key, new, is_wanted));
        if saved.is_err() && is_wanted() {
            self.index().drop_unsaved(key.name());
        }
        saved
    }

    /// Saves all pages that have no file and are still of use, because the process ends. Returns how many could not be
    /// saved. `now` is in seconds since 1970.
    pub fn save_all(&self, now: u64) -> u64 {
        if self.is_closed() {
            return 0;
        }
        let leaving = self.index().unsaved.take_all(now);
        leaving.iter().map(|page| u64::from(self.save(page, now).is_err())).sum()
    }
}

impl UnsavedPages {
    /// The page, which becomes the last one to be evicted.
    pub(super) fn find(&mut self, name: &Name) -> Option<Arc<HotPage>> {
        let held = self.pages.get_mut(name)?;
        held.is_followed = false;
        if let Some(place) = &mut held.place {
            let name = self.order.remove(place);
            self.last_place += 1;
            *place = self.last_place;
            self.order.extend(name.map(|name| (self.last_place, name)));
        }
        Some(Arc::clone(&held.page))
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.pages.contains_key(name)
    }

    /// The edition of a page.
    pub(super) fn edition(&self, name: &Name) -> Option<i64> {
        self.pages.get(name).map(|held| held.page.edition)
    }

    /// The names of the pages of a repository.
    pub(super) fn names_of(&self, repository: &str) -> impl Iterator<Item = &Name> {
        self.pages.keys().filter(move |name| *name.repository == *repository)
    }

    /// The repository of each page.
    pub(super) fn repositories(&self) -> impl Iterator<Item = &str> {
        self.pages.keys().map(|name| &*name.repository)
    }

    /// Their number, and their bytes.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.pages.len() as u64, self.bytes as u64)
    }

    /// The names of the pages that are useless at `now`, in seconds since 1970.
    pub(super) fn useless(&self, now: u64) -> Vec<Name> {
        let useless = self.pages.iter().filter(|(_, held)| held.useless_from <= now);
        useless.map(|(name, _)| name.clone()).collect()
    }

    fn keep(&mut self, key: &PageKey, page: UnsavedPage, edition: i64) {
        let UnsavedPage { meta, body, useless_from, next, is_for_one_harvest } = page;
        let name = key.name();
        let next = next.map(|next| self.hash(&name.repository, &next));
        if let Some(next) = next {
            self.before.insert(next, name.clone());
        }
        self.last_place += 1;
        let page = Arc::new(HotPage { meta, body, edition });
        self.bytes += page.bytes();
        self.order.insert(self.last_place, name.clone());
        let (key, place) = (key.clone(), Some(self.last_place));
        let held = Held { key, page, useless_from, next, is_for_one_harvest, is_followed: false, place };
        self.pages.insert(name.clone(), held);
    }

    fn note_followed(&mut self, repository: &str, next: &str) {
        if self.before.is_empty() {
            return;
        }
        let Some(name) = self.before.get(&self.hash(repository, next)) else { return };
        let Some(held) = self.pages.get_mut(name).filter(|held| held.is_for_one_harvest) else { return };
        held.is_followed = true;
        if let Some(place) = &mut held.place {
            let name = self.order.remove(place);
            self.first_place -= 1;
            *place = self.first_place;
            self.order.extend(name.map(|name| (self.first_place, name)));
        }
    }

    /// Makes room. Returns the pages to save, and the names of those to drop.
    fn evict(&mut self, now: u64) -> (Vec<LeavingPage>, Vec<Name>) {
        let (mut leaving, mut dropped) = (Vec::new(), Vec::new());
        while self.bytes > UNSAVED_BYTES_MAX
            && let Some((_, name)) = self.order.pop_first()
            && let Some(held) = self.pages.get_mut(&name)
        {
            self.bytes -= held.page.bytes();
            held.place = None;
            if held.is_followed || held.useless_from <= now {
                dropped.push(name);
            } else {
                leaving.push(held.leaving());
            }
        }
        (leaving, dropped)
    }

    /// The pages that are still of use. All of them are to be saved.
    fn take_all(&mut self, now: u64) -> Vec<LeavingPage> {
        let of_use = self.pages.values().filter(|held| held.useless_from > now && !held.is_followed);
        of_use.map(Held::leaving).collect()
    }

    /// Removes a page; returns whether it existed.
    pub(super) fn remove(&mut self, name: &Name) -> bool {
        let Some(held) = self.pages.remove(name) else { return false };
        if let Some(next) = held.next
            && self.before.get(&next) == Some(name)
        {
            self.before.remove(&next);
        }
        if let Some(place) = held.place {
            self.bytes -= held.page.bytes();
            self.order.remove(&place);
        }
        true
    }

    fn hash(&self, repository: &str, next: &str) -> u64 {
        self.hasher.hash_one((repository, next))
    }
}

impl Held {
    fn leaving(&self) -> LeavingPage {
        LeavingPage { key: self.key.clone(), page: Arc::clone(&self.page), useless_from: self.useless_from }
    }
}

/// Maximum number of bytes of all pages in memory that have no file.
pub(super) const UNSAVED_BYTES_MAX: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::super::disk_wait::Wait;
    use super::super::hot::{HOT_PAGE_OVERHEAD_BYTES, PageCoding};
    use super::*;
    use tempfile::TempDir;

    const NOW: u64 = 1000;

    fn open() -> (TempDir, Pages) {
        let data = tempfile::tempdir().expect("a temporary folder");
        let pages = open_again(&data);
        (data, pages)
    }

    fn open_again(data: &TempDir) -> Pages {
        let pages = Pages::open(data.path(), u64::MAX).expect("a new folder");
        pages.scan();
        pages
    }

    fn key(number: usize) -> PageKey {
        PageKey::new("x", format!("page {number}"))
    }

    /// Page `number` of a list; the token on it is the number of the next one.
    fn page(number: usize, bytes: usize) -> UnsavedPage {
        UnsavedPage {
            meta: b"meta".to_vec(),
            body: vec![b'0' + (number % 10) as u8; bytes].into(),
            useless_from: NOW + 60,
            next: Some((number + 1).to_string()),
            is_for_one_harvest: true,
        }
    }

    fn is_in_memory(pages: &Pages, number: usize) -> bool {
        pages.index().unsaved.contains(key(number).name())
    }

    fn body_on_disk(pages: &Pages, number: usize) -> Option<Bytes> {
        let entry = pages.find(&key(number), Wait::Allowed).expect("it may wait")?;
        Some(entry.blocks(0, 64, Wait::Allowed, Bytes::new()).expect("it is whole"))
    }

    fn files(data: &TempDir) -> usize {
        std::fs::read_dir(data.path().join("cache/x")).map_or(0, Iterator::count)
    }

    /// Fills the memory with pages of 1 MiB from this number on, so that no other page has room. Returns the pages to
    /// save.
    fn fill(pages: &Pages, from: usize) -> Vec<LeavingPage> {
        let bytes = (1 << 20) - b"meta".len() - HOT_PAGE_OVERHEAD_BYTES;
        (from..from + (UNSAVED_BYTES_MAX >> 20))
            .flat_map(|number| pages.keep_unsaved(&key(number), page(number, bytes), NOW))
            .collect()
    }

    #[test]
    fn a_page_of_a_harvest_has_no_file() {
        let (data, pages) = open();
        assert!(pages.keep_unsaved(&key(1), page(1, 10), NOW).is_empty());
        assert!(pages.is_known(&key(1)) && !pages.is_absent(&key(1)));
        let found = pages.hot(&key(1), PageCoding::Plain).expect("it is in memory");
        assert_eq!(
            (found.body.as_ref(), found.meta.as_slice()),
            (b"1111111111".as_slice(), b"meta".as_slice())
        );
        assert_eq!((pages.size().entries, pages.size().bytes), (1, found.bytes() as u64));
        assert_eq!(pages.repositories(), ["x"]);
        assert_eq!(files(&data), 0);
        assert!(pages.purge(&key(1)) && !pages.purge(&key(1)));
        pages.keep_unsaved(&key(1), page(1, 10), NOW);
        assert_eq!(pages.purge_repository("x"), 1);
        pages.keep_unsaved(&key(1), page(1, 10), NOW);
        pages.sweep(NOW + 59);
        assert!(is_in_memory(&pages, 1));
        pages.sweep(NOW + 60);
        assert!(pages.is_absent(&key(1)) && pages.size().bytes == 0);
    }

    #[test]
    fn pages_that_were_followed_are_dropped_and_others_are_saved() {
        let (data, pages) = open();
        pages.keep_unsaved(&key(0), page(0, 10), NOW);
        for number in [1, 2] {
            pages.keep_unsaved(&key(number), page(number, 10), NOW);
            // The token on the page before.
            pages.note_followed("x", &number.to_string());
            pages.note_followed("y", &(number + 1).to_string());
        }
        assert!(pages.hot(&key(1), PageCoding::Plain).is_some(), "another harvester requests it");
        let leaving = fill(&pages, 100);
        assert!(!is_in_memory(&pages, 0), "page 1 was requested after page 0");
        let saved: Vec<&PageKey> = leaving.iter().map(|page| &page.key).collect();
        assert_eq!(saved, [&key(2), &key(1)], "the least recently used first");
        assert!(is_in_memory(&pages, 2), "it is found until it is on disk");
        leaving.iter().for_each(|page| pages.save(page, NOW).expect("there is space"));
        assert!(!is_in_memory(&pages, 2) && files(&data) == 2);
        assert_eq!(body_on_disk(&pages, 2).as_deref(), Some(b"2222222222".as_slice()));
        assert!(pages.size().bytes <= UNSAVED_BYTES_MAX as u64 + 200);
    }

    #[test]
    fn a_page_for_other_harvesters_is_saved_although_it_was_followed() {
        let (_data, pages) = open();
        let shared = UnsavedPage { is_for_one_harvest: false, ..page(0, 10) };
        pages.keep_unsaved(&key(0), shared, NOW);
        let useless = UnsavedPage { useless_from: NOW, ..page(50, 10) };
        pages.keep_unsaved(&key(50), useless, NOW - 1);
        pages.note_followed("x", "1");
        let leaving = fill(&pages, 100);
        assert_eq!(leaving.iter().map(|page| &page.key).collect::<Vec<_>>(), [&key(0)]);
        assert!(!is_in_memory(&pages, 50), "a page that is useless is not saved");
    }

    #[test]
    fn a_page_that_is_removed_while_it_is_saved_stays_removed() {
        let (data, pages) = open();
        for remove in [
            |pages: &Pages| drop(pages.purge(&key(0))),
            |pages: &Pages| drop(pages.keep_unsaved(&key(0), page(7, 3), NOW)),
        ] {
            pages.keep_unsaved(&key(0), page(0, 10), NOW);
            let leaving = pages.index().unsaved.take_all(NOW);
            remove(&pages);
            pages.save(&leaving[0], NOW).expect("nothing to do");
            assert_eq!(files(&data), 0);
            pages.keep_unsaved(&key(0), page(0, 10), NOW);
            let LeavingPage { key: of, page: kept, .. } = &pages.index().unsaved.take_all(NOW)[0];
            let part = pages.part(of, NOW).expect("there is space");
            let new = || NewPage {
                meta: b"meta",
                body: NewBody::InMemory(&[b"late"]),
                sums: BlockSums::default(),
                useless_from: NOW + 60,
            };
            remove(&pages);
            let is_wanted = || pages.index().unsaved.edition(of.name()) == Some(kept.edition);
            pages.commit_if(&part, of, new(), is_wanted).expect("nothing to do");
            drop(part);
            assert_eq!(files(&data), 0, "removed while its file was written");
        }
    }

    #[test]
    fn the_end_of_the_process_saves_what_is_of_use() {
        let (data, pages) = open();
        for number in 0..3 {
            pages.keep_unsaved(&key(number), page(number, 10), NOW);
        }
        pages.note_followed("x", "1");
        let short = UnsavedPage { useless_from: NOW + 1, ..page(3, 10) };
        pages.keep_unsaved(&key(3), short, NOW);
        assert_eq!(pages.save_all(NOW + 1), 0);
        drop(pages);
        let pages = open_again(&data);
        let saved: Vec<bool> = (0..4).map(|number| body_on_disk(&pages, number).is_some()).collect();
        assert_eq!(saved, [false, true, true, false]);
    }

    #[test]
    fn a_new_page_replaces_the_one_in_a_file() {
        let (_data, pages) = open();
        pages.keep_unsaved(&key(0), page(0, 10), NOW);
        pages.save_all(NOW);
        let old = pages.find(&key(0), Wait::Allowed).expect("it may wait").expect("it was saved");
        pages.keep_unsaved(&key(0), page(1, 10), NOW);
        let form = |edition| HotPage { meta: Vec::new(), body: "gzip".into(), edition };
        pages.keep_hot(&key(0), PageCoding::Gzip, form(old.edition.expect("known")));
        assert!(pages.hot(&key(0), PageCoding::Gzip).is_none(), "the form of the old page");
        let new = pages.hot(&key(0), PageCoding::Plain).expect("it is in memory");
        assert_eq!(new.body.as_ref(), b"1111111111");
        pages.keep_hot(&key(0), PageCoding::Gzip, form(new.edition));
        assert!(pages.hot(&key(0), PageCoding::Gzip).is_some());
        pages.sweep(NOW + 60);
        assert!(pages.hot(&key(0), PageCoding::Gzip).is_none() && pages.is_absent(&key(0)));
    }
}
