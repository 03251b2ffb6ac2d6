//! Pages without a file: how they are added, and how they are saved to files.

use super::entry::{BlockSums, NewBody, NewPage};
use super::key::PageKey;
use super::pages::Pages;
use super::unsaved::{LeavingPage, UnsavedPage};
use std::io;

impl Pages {
    /// Holds a page in memory without a file. Returns the pages that must be saved to make room for it. They stay in
    /// memory, in addition to the limit of such pages, until [`Pages::save`] returns. `None` if the pages are closed. Does not
    /// read the disk.
    ///
    /// `now` is in seconds since 1970.
    pub fn keep_unsaved(&self, key: &PageKey, page: UnsavedPage, now: u64) -> Option<Vec<LeavingPage>> {
        let mut index = self.index();
        // `close` sets this before it locks the index.
        if self.is_closed() {
            return None;
        }
        index.drop_unsaved(key.name());
        // Its compressed form is that of an older page.
        index.hot.remove(key.name());
        let edition = index.next_use();
        index.unsaved.keep(key, page, edition);
        let (leaving, dropped) = index.unsaved.evict(now);
        for name in dropped {
            index.drop_unsaved(&name);
        }
        Some(leaving)
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
        if saved.is_err() {
            let mut index = self.index();
            if index.unsaved.edition(key.name()) == Some(page.edition) {
                index.drop_unsaved(key.name());
            }
        }
        saved
    }

    /// Saves all pages that have no file and are still of use, and adds no more pages: the process ends, or another one gets
    /// the folder. Returns how many could not be saved. `now` is in seconds since 1970.
    pub fn close(&self, now: u64) -> u64 {
        if self.set_closed() {
            return 0;
        }
        let leaving = self.index().unsaved.take_all(now);
        leaving.iter().map(|page| u64::from(self.save(page, now).is_err())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk_wait::Wait;
    use super::super::hot::{HOT_PAGE_OVERHEAD_BYTES, HotPage, PageCoding};
    use super::super::unsaved::UNSAVED_BYTES_MAX;
    use super::*;
    use bytes::Bytes;
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
            .flat_map(|number| {
                pages.keep_unsaved(&key(number), page(number, bytes), NOW).expect("it is open")
            })
            .collect()
    }

    #[test]
    fn a_page_of_a_harvest_has_no_file() {
        let (data, pages) = open();
        assert!(pages.keep_unsaved(&key(1), page(1, 10), NOW).is_some_and(|leaving| leaving.is_empty()));
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
    fn the_page_that_was_followed_first_is_dropped_first() {
        let (_data, pages) = open();
        fill(&pages, 0);
        for number in [3, 1, 2] {
            pages.note_followed("x", &(number + 1).to_string());
        }
        let left = |pages: &Pages| (0..5).filter(|number| is_in_memory(pages, *number)).collect::<Vec<_>>();
        for (number, expected) in [(100, [0, 1, 2, 4].as_slice()), (101, &[0, 2, 4]), (102, &[0, 4])] {
            assert!(pages.keep_unsaved(&key(number), page(number, 10), NOW).expect("it is open").is_empty());
            let whole = page(number + 100, (1 << 20) - 2000);
            assert!(pages.keep_unsaved(&key(number + 100), whole, NOW).expect("it is open").is_empty());
            assert_eq!(left(&pages), expected);
        }
    }

    #[test]
    fn pages_that_cannot_be_saved_are_not_held() {
        let (data, pages) = open();
        std::fs::write(data.path().join("cache/x"), "no folder").expect("it can be written");
        for number in 0..3 {
            pages.keep_unsaved(&key(number), page(number, 10), NOW);
        }
        let leaving = fill(&pages, 100);
        assert_eq!(leaving.len(), 3);
        let limit = UNSAVED_BYTES_MAX as u64;
        assert!(pages.size().bytes > limit, "those that are being saved count too");
        for leaving in &leaving {
            pages.save(leaving, NOW).expect_err("there is no folder");
        }
        assert!(!is_in_memory(&pages, 0) && pages.size().bytes == limit);
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
            |pages: &Pages| assert!(pages.purge(&key(0))),
            |pages: &Pages| assert!(pages.keep_unsaved(&key(0), page(7, 3), NOW).is_some()),
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
        assert_eq!(pages.close(NOW + 1), 0);
        assert!(pages.keep_unsaved(&key(4), page(4, 10), NOW).is_none(), "nothing would save it");
        assert_eq!((pages.close(NOW), pages.is_absent(&key(4))), (0, true));
        drop(pages);
        let pages = open_again(&data);
        let saved: Vec<bool> = (0..4).map(|number| body_on_disk(&pages, number).is_some()).collect();
        assert_eq!(saved, [true, true, true, false], "also for other harvesters");
    }

    #[test]
    fn a_new_page_replaces_the_one_in_a_file() {
        let (_data, pages) = open();
        pages.keep_unsaved(&key(0), page(0, 10), NOW);
        let leaving = pages.index().unsaved.take_all(NOW);
        leaving.iter().for_each(|page| pages.save(page, NOW).expect("there is space"));
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
