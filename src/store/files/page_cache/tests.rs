//! A cached page is returned unchanged, or not at all.

use super::entry::BLOCK_BYTES;
use super::pages::{HOT_BYTES_MAX, HOT_PAGE_OVERHEAD_BYTES, files_in};
use super::{BlockSums, PageKey, Pages, Size};
use bytes::Bytes;
use std::io;
use std::path::PathBuf;

/// Numbers that are the same in each run with one seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or_default() % bound.max(1)
    }
}

fn open(bytes_max: u64) -> (tempfile::TempDir, Pages) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let pages = Pages::open(data.path(), bytes_max).expect("it can be written to");
    (data, pages)
}

fn key(text: &str) -> PageKey {
    PageKey::new("x", text.to_owned())
}

fn keep(pages: &Pages, key: &PageKey, body: &[u8]) {
    let part = pages.part(key, 0).expect("it can be written");
    let mut sums = BlockSums::default();
    for (number, piece) in body.chunks(1000).enumerate() {
        part.write(number as u64 * 1000, piece).expect("it can be written");
        sums.push(piece);
    }
    pages.commit(&part, key, b"meta", body.len() as u64, sums, 5000).expect("it can be written");
}

/// The page, if it is there; `Err` when it is damaged behind what was read already.
fn read(pages: &Pages, key: &PageKey) -> Option<io::Result<Vec<u8>>> {
    let entry = pages.find(key)?;
    assert_eq!((entry.meta.as_slice(), entry.useless_from), (b"meta".as_slice(), 5000));
    let blocks = (0..entry.body_bytes).step_by(BLOCK_BYTES).map(|at| entry.blocks(at, 1));
    Some(blocks.collect::<io::Result<Vec<_>>>().map(|blocks| blocks.concat()))
}

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at * 7 % 251).unwrap_or_default()).collect()
}

fn file(pages: &Pages, key: &PageKey) -> PathBuf {
    pages.path(key.name())
}

#[test]
fn pages_of_any_length_come_back_after_a_restart() {
    let (data, pages) = open(u64::MAX);
    let lengths = [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 5 * BLOCK_BYTES];
    for length in lengths {
        keep(&pages, &key(&length.to_string()), &body(length));
    }
    let size = pages.size();
    drop(pages);
    let pages = Pages::open(data.path(), u64::MAX).expect("it can be written to");
    assert_eq!((pages.size(), pages.is_absent(&key("1"))), (Size::default(), false), "not scanned yet");
    for scanned in [false, true] {
        for length in lengths {
            let page = read(&pages, &key(&length.to_string())).expect("it is there");
            assert!(page.expect("it is whole") == body(length), "{length}");
        }
        if !scanned {
            pages.scan();
        }
    }
    assert_eq!(pages.size(), size);
    assert!(pages.is_absent(&key("none")) && !pages.is_absent(&key("1")));
    assert!(read(&pages, &key("none")).is_none());
    let other = PageKey::new("y", "1".to_owned());
    assert!(read(&pages, &other).is_none(), "each repository has its own pages");
}

#[test]
fn whatever_happens_to_a_file_nothing_but_the_page_is_given_out() {
    let (data, pages) = open(u64::MAX);
    let seed = 20_261_122;
    let mut random = Random(seed);
    let mut served = 0;
    for round in 0..400 {
        let key = key(&format!("round {round}"));
        let whole = body(random.below(4 * BLOCK_BYTES));
        keep(&pages, &key, &whole);
        let path = file(&pages, &key);
        let mut bytes = std::fs::read(&path).expect("it is there");
        match round % 5 {
            0 => bytes.truncate(random.below(bytes.len())),
            1 => bytes.extend(body(1 + random.below(100))),
            2 => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            3 => {
                // A block of the disk that was never written.
                let at = random.below(bytes.len()) / 512 * 512;
                let end = bytes.len().min(at + 512);
                bytes[at..end].fill(0);
            }
            _ => {}
        }
        std::fs::write(&path, bytes).expect("it can be written");
        // In this process, or after a restart, scanned or not.
        let restarted = Pages::open(data.path(), u64::MAX).expect("it can be written to");
        if round % 2 == 0 {
            restarted.scan();
        }
        let pages = if round % 3 == 0 { &pages } else { &restarted };
        match read(pages, &key) {
            None => assert!(!path.exists(), "seed {seed}, round {round}: what is damaged is removed"),
            Some(Ok(page)) => {
                assert!(page == whole, "seed {seed}, round {round}");
                served += 1;
            }
            Some(Err(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::InvalidData, "seed {seed}, round {round}");
                assert!(round % 3 == 0, "seed {seed}, round {round}: a file is compared as a whole once");
            }
        }
        std::fs::remove_file(&path).ok();
    }
    assert!((80..200).contains(&served), "{served} of 400 were not damaged");
}

#[test]
fn a_page_in_the_place_of_another_is_no_page() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    std::fs::rename(file(&pages, &key("a")), file(&pages, &key("b"))).expect("it can be moved");
    assert!(read(&pages, &key("b")).is_none());
    assert!(read(&pages, &key("a")).is_none());
}

#[test]
fn another_version_is_no_page() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    let mut bytes = std::fs::read(file(&pages, &key("a"))).expect("it is there");
    bytes[8] += 1;
    let sum = crc32fast::hash(&bytes[..60]).to_le_bytes();
    bytes[60..64].copy_from_slice(&sum);
    std::fs::write(file(&pages, &key("a")), bytes).expect("it can be written");
    assert!(read(&pages, &key("a")).is_none());
}

#[test]
fn what_a_killed_process_left_is_removed_and_what_is_not_ours_stays() {
    let (data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    let folder = data.path().join("cache/x");
    std::mem::forget(pages.part(&key("b"), 0).expect("it can be written"));
    std::fs::write(folder.join("notes.txt"), "of a person").expect("it can be written");
    std::fs::write(folder.join("0".repeat(32)), "torn").expect("it can be written");
    assert_eq!(files_in(&folder).len(), 4);
    let pages = Pages::open(data.path(), u64::MAX).expect("it can be written to");
    pages.scan();
    let mut left: Vec<PathBuf> = files_in(&folder);
    left.sort();
    let mut wanted = vec![file(&pages, &key("a")), folder.join("notes.txt")];
    wanted.sort();
    assert_eq!(left, wanted);
    drop(pages.part(&key("c"), 0).expect("it can be written"));
    assert_eq!(files_in(&folder).len(), 2, "a part that is dropped is gone");
}

#[test]
fn what_was_not_used_for_the_longest_time_goes_first() {
    let (data, pages) = open(u64::MAX);
    for name in ["a", "b", "c"] {
        keep(&pages, &key(name), &body(1000));
    }
    let one = pages.size().bytes / 3;
    drop(pages);
    let pages = Pages::open(data.path(), 3 * one).expect("it can be written to");
    pages.scan();
    assert!(read(&pages, &key("a")).is_some(), "it is used");
    keep(&pages, &key("d"), &body(1000));
    let there = |name: &str| file(&pages, &key(name)).exists();
    // The order of b and c is that of their files' times, which may be equal.
    assert!(there("a") && there("d") && there("b") != there("c"));
    assert_eq!(pages.size(), Size { entries: 3, bytes: 3 * one });
    keep(&pages, &key("d"), &body(1000));
    assert_eq!(pages.size().entries, 3, "a page in its own place takes no more room");
    keep(&pages, &key("e"), &body(1000));
    keep(&pages, &key("f"), &body(1000));
    assert!(!there("a") && there("d") && there("e") && there("f"));
}

#[test]
fn a_smaller_bound_holds_from_the_start_on() {
    let (data, pages) = open(u64::MAX);
    for name in ["a", "b", "c"] {
        keep(&pages, &key(name), &body(1000));
    }
    let one = pages.size().bytes / 3;
    let pages = Pages::open(data.path(), one).expect("it can be written to");
    pages.scan();
    assert_eq!(pages.size(), Size { entries: 1, bytes: one });
    assert_eq!(files_in(&data.path().join("cache/x")).len(), 1);
}

#[test]
fn what_is_of_no_use_any_more_is_swept_and_what_is_purged_is_gone() {
    let (_data, pages) = open(u64::MAX);
    for name in ["a", "b", "c"] {
        keep(&pages, &key(name), b"page");
    }
    pages.sweep(4999);
    assert_eq!(pages.size().entries, 3);
    assert!(pages.purge(&key("a")) && !pages.purge(&key("a")));
    assert!(read(&pages, &key("a")).is_none());
    assert_eq!((pages.purge_repository("y"), pages.purge_repository("x")), (0, 2));
    keep(&pages, &key("d"), b"page");
    pages.sweep(5000);
    assert_eq!(pages.size(), Size::default());
    assert!(read(&pages, &key("d")).is_none());
}

#[test]
fn who_reads_a_page_reads_it_to_its_end_though_it_is_replaced_or_removed() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
    let entry = pages.find(&key("a")).expect("it is there");
    keep(&pages, &key("a"), b"another");
    pages.purge_repository("x");
    let blocks =
        (0..entry.body_bytes).step_by(BLOCK_BYTES).map(|at| entry.blocks(at, 1).expect("it is whole"));
    assert!(blocks.collect::<Vec<_>>().concat() == body(3 * BLOCK_BYTES));
}

/// Reads a page and holds it in memory.
fn warm(pages: &Pages, key: &PageKey) {
    let entry = pages.find(key).expect("it is there");
    let body = entry.blocks(0, 4).expect("it is whole");
    assert_eq!(body.len() as u64, entry.body_bytes);
    pages.keep_hot(key, &entry, body.into());
}

fn is_hot(pages: &Pages, key: &PageKey) -> bool {
    pages.hot(key).is_some()
}

#[test]
fn a_page_in_memory_is_gone_with_its_file() {
    let (_data, pages) = open(u64::MAX);
    let (a, b) = (key("a"), key("b"));
    let again = || {
        for key in [&a, &b] {
            keep(&pages, key, b"first");
            assert!(!is_hot(&pages, key), "nobody has asked for it");
            warm(&pages, key);
        }
        let hot = pages.hot(&a).expect("it was read");
        assert_eq!((hot.body.as_ref(), hot.meta.as_slice()), (b"first".as_slice(), b"meta".as_slice()));
    };
    again();
    keep(&pages, &a, b"second");
    assert!(!is_hot(&pages, &a) && is_hot(&pages, &b), "it was replaced");
    again();
    assert!(pages.purge(&a));
    assert!(!is_hot(&pages, &a) && is_hot(&pages, &b), "it was purged");
    again();
    assert_eq!(pages.purge_repository("x"), 2);
    assert!(!is_hot(&pages, &a) && !is_hot(&pages, &b), "all of its repository were purged");
    again();
    pages.sweep(5000);
    assert!(!is_hot(&pages, &a), "it is of no use any more");
    again();
    assert_eq!(pages.index().hot_bytes, 2 * (5 + 4 + HOT_PAGE_OVERHEAD_BYTES), "what is gone is not counted");
}

#[test]
fn what_was_read_before_a_page_was_replaced_is_not_held_in_its_place() {
    let (_data, pages) = open(u64::MAX);
    let key = key("a");
    keep(&pages, &key, b"first");
    let entry = pages.find(&key).expect("it is there");
    keep(&pages, &key, b"second");
    pages.keep_hot(&key, &entry, Bytes::from_static(b"first"));
    assert!(!is_hot(&pages, &key));
    pages.purge(&key);
    pages.keep_hot(&key, &entry, Bytes::from_static(b"first"));
    assert!(!is_hot(&pages, &key));
}

#[test]
fn pages_in_memory_take_no_more_than_they_may() {
    let (_data, pages) = open(u64::MAX);
    let page = body(4 * BLOCK_BYTES);
    let fit = HOT_BYTES_MAX / (page.len() + b"meta".len() + HOT_PAGE_OVERHEAD_BYTES);
    let keys: Vec<PageKey> = (0..fit + 3).map(|number| key(&number.to_string())).collect();
    for key in &keys {
        keep(&pages, key, &page);
        warm(&pages, key);
        assert!(is_hot(&pages, key) && pages.index().hot_bytes <= HOT_BYTES_MAX);
    }
    let hot: Vec<bool> = keys.iter().map(|key| is_hot(&pages, key)).collect();
    assert_eq!(hot.iter().position(|is_hot| *is_hot), Some(3), "the oldest made room");
    assert_eq!(hot.iter().filter(|is_hot| **is_hot).count(), fit);
}

#[test]
fn a_page_that_is_asked_for_in_memory_is_used_too() {
    let (_data, pages) = open(3 * 1200);
    for name in ["a", "b"] {
        keep(&pages, &key(name), &body(1000));
        warm(&pages, &key(name));
    }
    assert!(is_hot(&pages, &key("a")));
    for name in ["c", "d"] {
        keep(&pages, &key(name), &body(1000));
    }
    let there = |name: &str| file(&pages, &key(name)).exists();
    assert!(there("a") && !there("b"), "the one that was not used for the longest time went");
    assert!(is_hot(&pages, &key("a")) && !is_hot(&pages, &key("b")));
}

#[test]
fn a_page_that_makes_room_gives_its_file_to_the_next_one() {
    use std::os::unix::fs::MetadataExt;
    let inode =
        |pages: &Pages, name: &str| std::fs::metadata(file(pages, &key(name))).map(|about| about.ino());
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), &body(3000));
    let (_data, pages) = open(2 * pages.size().bytes);
    keep(&pages, &key("a"), &body(3000));
    keep(&pages, &key("b"), &body(3000));
    let first = inode(&pages, "a").expect("it is there");
    for (name, length) in [("c", 3000), ("d", 2900), ("e", 3000)] {
        keep(&pages, &key(name), &body(length));
        let page = read(&pages, &key(name)).expect("it is there");
        assert!(page.expect("it is whole") == body(length), "{name}");
    }
    assert!(read(&pages, &key("a")).is_none() && read(&pages, &key("b")).is_none());
    let inodes: Vec<u64> = ["d", "e"].iter().filter_map(|name| inode(&pages, name).ok()).collect();
    assert!(inodes.contains(&first), "{first} is none of {inodes:?}");
    assert!(pages.size().bytes <= pages.bytes_max);
}

#[test]
fn a_page_that_is_of_no_use_gives_its_file_to_the_next_one() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    drop(pages.part(&key("b"), 4999).expect("it can be written"));
    assert!(file(&pages, &key("a")).exists());
    drop(pages.part(&key("b"), 5000).expect("it can be written"));
    assert!(!file(&pages, &key("a")).exists());
    assert_eq!(pages.size(), Size::default());
}

#[test]
fn a_file_that_is_read_is_never_written_again() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
    let (_data, pages) = open(pages.size().bytes);
    keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
    let entry = pages.find(&key("a")).expect("it is there");
    keep(&pages, &key("b"), &vec![b'x'; 3 * BLOCK_BYTES]);
    assert!(!pages.is_known(&key("a")), "it has made room");
    let blocks =
        (0..entry.body_bytes).step_by(BLOCK_BYTES).map(|at| entry.blocks(at, 1).expect("it is whole"));
    assert!(blocks.collect::<Vec<_>>().concat() == body(3 * BLOCK_BYTES));
}
