//! The pages in memory that have no file: pages of a running harvest, which are of use for a short time.
//!
//! A page that is evicted before its time is saved to a file, unless the harvester has already requested the page that
//! follows it: then it has received this one. `saving` does this, and saves all pages when the process ends. A process that
//! is killed loses them.
//!
//! Invariant: an evicted page is found until it has been saved or dropped.

use super::hot::HotPage;
use super::key::{Name, PageKey};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
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
    pub(super) key: PageKey,
    pub(super) page: Arc<HotPage>,
    pub(super) useless_from: u64,
}

/// All pages in memory that have no file.
#[derive(Debug, Default)]
pub(super) struct UnsavedPages {
    pages: HashMap<Name, Held>,
    /// The order of eviction. Pages that are being saved are not in it.
    order: BTreeMap<Place, Name>,
    /// The page before each request for a page that follows one. The keys are hashes, because tokens can be long; two
    /// equal hashes drop a page too early.
    before: HashMap<u64, Name>,
    hasher: RandomState,
    uses: u64,
    /// Bytes of the pages in `order`.
    bytes: usize,
    /// Bytes of the pages that are being saved.
    leaving_bytes: usize,
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
    place: Option<Place>,
}

/// Where a page is in the order of eviction: those come first whose next page was requested, and of them and of the others
/// the one whose last use was the earliest.
type Place = (bool, u64);

impl UnsavedPages {
    /// The page, which becomes the last one to be evicted.
    pub(super) fn find(&mut self, name: &Name) -> Option<Arc<HotPage>> {
        self.use_page(name, false)
    }

    /// Notes that the page, or the one that follows it, is used now.
    fn use_page(&mut self, name: &Name, is_followed: bool) -> Option<Arc<HotPage>> {
        let held = self.pages.get_mut(name)?;
        held.is_followed = is_followed;
        if let Some(place) = &mut held.place
            && let Some(name) = self.order.remove(place)
        {
            self.uses += 1;
            *place = (!is_followed, self.uses);
            self.order.insert(*place, name);
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
        (self.pages.len() as u64, (self.bytes + self.leaving_bytes) as u64)
    }

    /// The names of the pages that are useless at `now`, in seconds since 1970.
    pub(super) fn useless(&self, now: u64) -> Vec<Name> {
        let useless = self.pages.iter().filter(|(_, held)| held.useless_from <= now);
        useless.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn keep(&mut self, key: &PageKey, page: UnsavedPage, edition: i64) {
        let UnsavedPage { meta, body, useless_from, next, is_for_one_harvest } = page;
        let name = key.name();
        let next = next.map(|next| self.hash(&name.repository, &next));
        if let Some(next) = next {
            self.before.insert(next, name.clone());
        }
        self.uses += 1;
        let place = (true, self.uses);
        let page = Arc::new(HotPage { meta, body, edition });
        self.bytes += page.bytes();
        self.order.insert(place, name.clone());
        let (key, place) = (key.clone(), Some(place));
        let held = Held { key, page, useless_from, next, is_for_one_harvest, is_followed: false, place };
        self.pages.insert(name.clone(), held);
    }

    pub(super) fn note_followed(&mut self, repository: &str, next: &str) {
        if self.before.is_empty() {
            return;
        }
        let name = self.before.get(&self.hash(repository, next)).cloned();
        if let Some(name) = name
            && self.pages.get(&name).is_some_and(|held| held.is_for_one_harvest)
        {
            self.use_page(&name, true);
        }
    }

    /// Makes room. Returns the pages to save, and the names of those to drop.
    pub(super) fn evict(&mut self, now: u64) -> (Vec<LeavingPage>, Vec<Name>) {
        let (mut leaving, mut dropped) = (Vec::new(), Vec::new());
        while self.bytes > UNSAVED_BYTES_MAX
            && let Some((_, name)) = self.order.pop_first()
            && let Some(held) = self.pages.get_mut(&name)
        {
            self.bytes -= held.page.bytes();
            self.leaving_bytes += held.page.bytes();
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
    pub(super) fn take_all(&mut self, now: u64) -> Vec<LeavingPage> {
        let of_use = self.pages.values().filter(|held| held.useless_from > now);
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
        match held.place {
            Some(place) => {
                self.bytes -= held.page.bytes();
                self.order.remove(&place);
            }
            None => self.leaving_bytes -= held.page.bytes(),
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
