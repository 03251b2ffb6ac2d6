//! A cached page is returned unchanged, or not at all.

use super::entry::{BLOCK_BYTES, HEAD_BYTES};
use super::hot::{HOT_BYTES_MAX, HOT_PAGE_OVERHEAD_BYTES};
use super::pages::files_in;
use super::{BlockSums, Entry, HotPage, NewBody, NewPage, PageCoding, PageKey, Pages, Size, Wait};
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Random numbers that are reproducible by their seed.
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
    let body = NewBody::InFile(body.len() as u64);
    pages
        .commit(&part, key, NewPage { meta: b"meta", body, sums, useless_from: 5000 })
        .expect("it can be written");
}

/// Adds a page whose body is in memory.
fn keep_from_memory(pages: &Pages, key: &PageKey, parts: &[&[u8]]) {
    let part = pages.part(key, 0).expect("it can be written");
    let mut sums = BlockSums::default();
    parts.iter().for_each(|part| sums.push(part));
    pages
        .commit(
            &part,
            key,
            NewPage { meta: b"meta", body: NewBody::InMemory(parts), sums, useless_from: 5000 },
        )
        .expect("it can be written");
}

/// The page, if it exists; `Err` if the part after its start is damaged.
fn read(pages: &Pages, key: &PageKey) -> Option<io::Result<Vec<u8>>> {
    let entry = pages.find(key, Wait::Allowed).expect("it may wait")?;
    assert_eq!((entry.meta.as_slice(), entry.useless_from), (b"meta".as_slice(), 5000));
    let blocks =
        (0..entry.body_bytes).step_by(BLOCK_BYTES).map(|at| entry.blocks(at, 1, Wait::Allowed, Bytes::new()));
    Some(blocks.collect::<io::Result<Vec<_>>>().map(|blocks| blocks.concat()))
}

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at * 7 % 251).unwrap_or_default()).collect()
}

fn file(pages: &Pages, key: &PageKey) -> PathBuf {
    pages.path(key.name())
}

#[test]
fn pages_of_any_length_survive_a_restart() {
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
            let page = read(&pages, &key(&length.to_string())).expect("it exists");
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
fn a_damaged_file_is_never_returned_as_a_page() {
    let (data, pages) = open(u64::MAX);
    let seed = 20_261_122;
    let mut random = Random(seed);
    let mut served = 0;
    for round in 0..400 {
        let key = key(&format!("round {round}"));
        let whole = body(random.below(4 * BLOCK_BYTES));
        keep(&pages, &key, &whole);
        let path = file(&pages, &key);
        let mut bytes = std::fs::read(&path).expect("it exists");
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
            None => assert!(!path.exists(), "seed {seed}, round {round}: a damaged file is removed"),
            Some(Ok(page)) => {
                assert!(page == whole, "seed {seed}, round {round}");
                served += 1;
            }
            Some(Err(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::InvalidData, "seed {seed}, round {round}");
                assert!(round % 3 == 0, "seed {seed}, round {round}: each file is verified once");
            }
        }
        std::fs::remove_file(&path).ok();
    }
    assert!((80..200).contains(&served), "{served} of 400 were not damaged");
}

#[test]
fn a_page_under_the_name_of_another_page_is_not_found() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    std::fs::rename(file(&pages, &key("a")), file(&pages, &key("b"))).expect("it can be moved");
    assert!(read(&pages, &key("b")).is_none());
    assert!(read(&pages, &key("a")).is_none());
}

#[test]
fn a_page_of_another_version_is_not_found() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    let mut bytes = std::fs::read(file(&pages, &key("a"))).expect("it exists");
    bytes[8] += 1;
    let sum = crc32fast::hash(&bytes[..60]).to_le_bytes();
    bytes[60..64].copy_from_slice(&sum);
    std::fs::write(file(&pages, &key("a")), bytes).expect("it can be written");
    assert!(read(&pages, &key("a")).is_none());
}

#[test]
fn unfinished_pages_of_a_killed_process_are_removed_and_other_files_stay() {
    let (data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    let folder = data.path().join("cache/x");
    std::mem::forget(pages.part(&key("b"), 0).expect("it can be written"));
    std::fs::write(folder.join("notes.txt"), "a user's file").expect("it can be written");
    std::fs::write(folder.join("0".repeat(32)), "torn").expect("it can be written");
    assert_eq!(files_in(&folder).len(), 4);
    let pages = Pages::open(data.path(), u64::MAX).expect("it can be written to");
    pages.scan();
    let mut left: Vec<PathBuf> = files_in(&folder);
    left.sort();
    let mut expected = vec![file(&pages, &key("a")), folder.join("notes.txt")];
    expected.sort();
    assert_eq!(left, expected);
    drop(pages.part(&key("c"), 0).expect("it can be written"));
    assert_eq!(files_in(&folder).len(), 2, "a dropped part is removed");
}

#[test]
fn the_least_recently_used_page_is_evicted_first() {
    let (data, pages) = open(u64::MAX);
    for name in ["a", "b", "c"] {
        keep(&pages, &key(name), &body(1000));
    }
    let one = pages.size().bytes / 3;
    drop(pages);
    let pages = Pages::open(data.path(), 3 * one).expect("it can be written to");
    pages.scan();
    assert!(read(&pages, &key("a")).is_some(), "it exists");
    keep(&pages, &key("d"), &body(1000));
    let exists = |name: &str| file(&pages, &key(name)).exists();
    // The order of b and c is that of their files' times, which may be equal.
    assert!(exists("a") && exists("d") && exists("b") != exists("c"));
    assert_eq!(pages.size(), Size { entries: 3, bytes: 3 * one });
    keep(&pages, &key("d"), &body(1000));
    assert_eq!(pages.size().entries, 3, "a replaced page takes no more space");
    keep(&pages, &key("e"), &body(1000));
    keep(&pages, &key("f"), &body(1000));
    assert!(!exists("a") && exists("d") && exists("e") && exists("f"));
}

#[test]
fn a_lower_limit_applies_from_the_start() {
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
fn expired_pages_are_swept_and_purged_pages_are_removed() {
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
fn a_lookup_that_must_not_wait_finds_the_same_page_or_refuses() {
    let (data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
    let refused = |found: io::Result<Option<Entry>>| found.err().map(|error| error.kind());
    let mut found = 0;
    // The kernel may need the disk for a file that was just written.
    for _ in 0..100 {
        let Ok(entry) = pages.find(&key("a"), Wait::Refused) else { continue };
        let entry = entry.expect("it exists");
        let blocks = entry.blocks(BLOCK_BYTES as u64, 2, Wait::Refused, Bytes::new());
        found += blocks.map_or(0, |blocks| usize::from(blocks == body(3 * BLOCK_BYTES)[BLOCK_BYTES..]));
    }
    if cfg!(target_os = "linux") {
        assert!(
            found > 0,
            "the file system cannot read without waiting; use another one for temporary files"
        );
    }
    assert_eq!(refused(pages.find(&key("none"), Wait::Refused)), Some(io::ErrorKind::WouldBlock));
    let restarted = Pages::open(data.path(), u64::MAX).expect("it can be written to");
    restarted.scan();
    let unverified = restarted.find(&key("a"), Wait::Refused);
    assert_eq!(refused(unverified), Some(io::ErrorKind::WouldBlock), "its checksums were not verified");
}

#[test]
fn an_open_page_is_readable_to_its_end_after_it_is_replaced_or_removed() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
    let entry = pages.find(&key("a"), Wait::Allowed).expect("it may wait").expect("it exists");
    keep(&pages, &key("a"), b"another");
    pages.purge_repository("x");
    let blocks = (0..entry.body_bytes)
        .step_by(BLOCK_BYTES)
        .map(|at| entry.blocks(at, 1, Wait::Allowed, Bytes::new()).expect("it is whole"));
    assert!(blocks.collect::<Vec<_>>().concat() == body(3 * BLOCK_BYTES));
}

fn hot_page(entry: &Entry, body: Bytes) -> HotPage {
    HotPage { meta: entry.meta.clone(), body, edition: entry.edition.expect("the index contains it") }
}

/// Reads a page and holds it in memory.
fn warm(pages: &Pages, key: &PageKey) {
    let entry = pages.find(key, Wait::Allowed).expect("it may wait").expect("it exists");
    let body = entry.blocks(0, 4, Wait::Allowed, Bytes::new()).expect("it is whole");
    assert_eq!(body.len() as u64, entry.body_bytes);
    pages.keep_hot(key, PageCoding::Plain, hot_page(&entry, body));
}

fn is_hot(pages: &Pages, key: &PageKey) -> bool {
    pages.hot(key, PageCoding::Plain).is_some()
}

#[test]
fn a_page_in_memory_is_dropped_with_its_file() {
    let (_data, pages) = open(u64::MAX);
    let (a, b) = (key("a"), key("b"));
    let again = || {
        for key in [&a, &b] {
            keep(&pages, key, b"first");
            assert!(!is_hot(&pages, key), "it was not requested");
            warm(&pages, key);
        }
        let hot = pages.hot(&a, PageCoding::Plain).expect("it was read");
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
    assert!(!is_hot(&pages, &a) && !is_hot(&pages, &b), "the repository was purged");
    again();
    pages.sweep(5000);
    assert!(!is_hot(&pages, &a), "it has expired");
    again();
    assert_eq!(
        pages.index().hot.bytes(),
        2 * (5 + 4 + HOT_PAGE_OVERHEAD_BYTES),
        "removed pages are not counted"
    );
}

#[test]
fn a_replaced_page_is_not_held_in_memory() {
    let (_data, pages) = open(u64::MAX);
    let key = key("a");
    keep(&pages, &key, b"first");
    let entry = pages.find(&key, Wait::Allowed).expect("it may wait").expect("it exists");
    keep(&pages, &key, b"second");
    pages.keep_hot(&key, PageCoding::Plain, hot_page(&entry, Bytes::from_static(b"first")));
    assert!(!is_hot(&pages, &key));
    pages.purge(&key);
    pages.keep_hot(&key, PageCoding::Plain, hot_page(&entry, Bytes::from_static(b"first")));
    assert!(!is_hot(&pages, &key));
}

#[test]
fn memory_of_pages_is_limited() {
    let (_data, pages) = open(u64::MAX);
    let page = body(4 * BLOCK_BYTES);
    let fit = HOT_BYTES_MAX / (page.len() + b"meta".len() + HOT_PAGE_OVERHEAD_BYTES);
    let keys: Vec<PageKey> = (0..fit + 3).map(|number| key(&number.to_string())).collect();
    for key in &keys {
        keep(&pages, key, &page);
        warm(&pages, key);
        assert!(is_hot(&pages, key) && pages.index().hot.bytes() <= HOT_BYTES_MAX);
    }
    let hot: Vec<bool> = keys.iter().map(|key| is_hot(&pages, key)).collect();
    assert_eq!(hot.iter().position(|is_hot| *is_hot), Some(3), "the least recently used was dropped");
    assert_eq!(hot.iter().filter(|is_hot| **is_hot).count(), fit);
    assert!(is_hot(&pages, &keys[3]), "it is used again");
    warm(&pages, &keys[0]);
    assert!(is_hot(&pages, &keys[0]), "a page that was committed before the others");
    assert!(is_hot(&pages, &keys[3]) && !is_hot(&pages, &keys[4]), "the least recently used was dropped");
}

#[test]
fn the_compressed_form_of_a_page_is_dropped_with_the_page() {
    let (_data, pages) = open(u64::MAX);
    let key = key("a");
    keep(&pages, &key, b"page");
    let entry = pages.find(&key, Wait::Allowed).expect("it may wait").expect("it exists");
    let compressed = || pages.hot(&key, PageCoding::Gzip).map(|page| page.body.clone());
    for body in ["compressed", "again"] {
        pages.keep_hot(&key, PageCoding::Gzip, hot_page(&entry, body.into()));
        assert_eq!(compressed().as_deref(), Some(body.as_bytes()));
    }
    assert!(!is_hot(&pages, &key), "each form is held by itself");
    warm(&pages, &key);
    let bytes = |body: &str| body.len() + b"meta".len() + HOT_PAGE_OVERHEAD_BYTES;
    assert_eq!(pages.index().hot.bytes(), bytes("page") + bytes("again"));
    keep(&pages, &key, b"another");
    assert!(compressed().is_none() && !is_hot(&pages, &key));
    assert_eq!(pages.index().hot.bytes(), 0);
}

#[test]
fn a_page_that_is_read_from_memory_counts_as_used() {
    let (_data, pages) = open(3 * 1200);
    for name in ["a", "b"] {
        keep(&pages, &key(name), &body(1000));
        warm(&pages, &key(name));
    }
    assert!(is_hot(&pages, &key("a")));
    for name in ["c", "d"] {
        keep(&pages, &key(name), &body(1000));
    }
    let exists = |name: &str| file(&pages, &key(name)).exists();
    assert!(exists("a") && !exists("b"), "the least recently used page was evicted");
    assert!(is_hot(&pages, &key("a")) && !is_hot(&pages, &key("b")));
}

#[test]
fn the_file_of_an_evicted_page_is_reused() {
    use std::os::unix::fs::MetadataExt;
    let inode =
        |pages: &Pages, name: &str| std::fs::metadata(file(pages, &key(name))).map(|about| about.ino());
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), &body(3000));
    let (_data, pages) = open(2 * pages.size().bytes);
    keep(&pages, &key("a"), &body(3000));
    keep(&pages, &key("b"), &body(3000));
    let first = inode(&pages, "a").expect("it exists");
    for (name, length) in [("c", 3000), ("d", 2900), ("e", 3000)] {
        keep(&pages, &key(name), &body(length));
        let page = read(&pages, &key(name)).expect("it exists");
        assert!(page.expect("it is whole") == body(length), "{name}");
    }
    assert!(read(&pages, &key("a")).is_none() && read(&pages, &key("b")).is_none());
    let inodes: Vec<u64> = ["d", "e"].iter().filter_map(|name| inode(&pages, name).ok()).collect();
    assert!(inodes.contains(&first), "{first} is none of {inodes:?}");
    assert!(pages.size().bytes <= pages.bytes_max);
}

#[test]
fn memory_of_spent_blocks_is_used_again_unless_somebody_holds_it() {
    let (_data, pages) = open(u64::MAX);
    let whole: Vec<u8> = (0..3 * BLOCK_BYTES + 100).map(|at| (at / 1000) as u8).collect();
    keep(&pages, &key("a"), &whole);
    let entry = pages.find(&key("a"), Wait::Allowed).expect("it may wait").expect("it exists");
    let block = |number: usize, spent| {
        let at = number * BLOCK_BYTES;
        let read = entry.blocks(at as u64, 1, Wait::Allowed, spent).expect("it is whole");
        assert!(read == whole[at..whole.len().min(at + BLOCK_BYTES)], "block {number}");
        read
    };
    let first = block(0, Bytes::new());
    let place = first.as_ptr();
    let second = block(1, first);
    assert_eq!(second.as_ptr(), place);
    let held = second.clone();
    let third = block(2, second);
    assert_ne!(third.as_ptr(), place);
    assert!(held == whole[BLOCK_BYTES..2 * BLOCK_BYTES], "a held block is not overwritten");
    let place = third.as_ptr();
    let last = block(3, third);
    assert_eq!((last.as_ptr(), last.len()), (place, 100));
}

#[test]
fn a_page_from_memory_has_the_same_file_as_one_in_pieces() {
    let whole = body(2 * BLOCK_BYTES + 7);
    let (first, second) = whole.split_at(9000);
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), &whole);
    let expected = std::fs::read(file(&pages, &key("a"))).expect("it exists");
    // The parts with which a page begins and ends may be empty.
    keep_from_memory(&pages, &key("a"), &[b"", first, b"", second, b""]);
    assert!(std::fs::read(file(&pages, &key("a"))).expect("it exists") == expected);
    let (_data, pages) = open(expected.len() as u64);
    keep(&pages, &key("b"), &body(3 * BLOCK_BYTES));
    // This page is shorter than the one whose file it overwrites.
    keep_from_memory(&pages, &key("a"), &[&whole]);
    assert!(!file(&pages, &key("b")).exists());
    assert!(std::fs::read(file(&pages, &key("a"))).expect("it exists") == expected);
    keep_from_memory(&pages, &key("empty"), &[]);
    assert!(read(&pages, &key("empty")).expect("it exists").expect("it is whole").is_empty());
}

#[test]
fn the_file_of_an_expired_page_is_reused() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    drop(pages.part(&key("b"), 4999).expect("it can be written"));
    assert!(file(&pages, &key("a")).exists());
    drop(pages.part(&key("b"), 5000).expect("it can be written"));
    assert!(!file(&pages, &key("a")).exists());
    assert_eq!(pages.size(), Size::default());
}

#[test]
fn a_file_with_a_reader_is_never_reused() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
    let (_data, pages) = open(pages.size().bytes);
    keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
    let entry = pages.find(&key("a"), Wait::Allowed).expect("it may wait").expect("it exists");
    keep(&pages, &key("b"), &vec![b'x'; 3 * BLOCK_BYTES]);
    assert!(!pages.is_known(&key("a")), "it was evicted");
    let blocks = (0..entry.body_bytes)
        .step_by(BLOCK_BYTES)
        .map(|at| entry.blocks(at, 1, Wait::Allowed, Bytes::new()).expect("it is whole"));
    assert!(blocks.collect::<Vec<_>>().concat() == body(3 * BLOCK_BYTES));
}

#[test]
fn a_file_of_which_a_part_was_lent_is_never_reused() {
    for is_lent in [false, true] {
        let (_data, pages) = open(u64::MAX);
        keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
        let (_data, pages) = open(pages.size().bytes);
        keep(&pages, &key("a"), &body(3 * BLOCK_BYTES));
        let entry = pages.find(&key("a"), Wait::Allowed).expect("it may wait").expect("it exists");
        if is_lent {
            assert!(pages.lend(&key("a"), &entry));
        }
        // What the kernel sends after the last reader has left.
        let sent = File::open(file(&pages, &key("a"))).expect("it exists");
        drop(entry);
        keep(&pages, &key("b"), &vec![b'x'; 3 * BLOCK_BYTES]);
        let mut bytes = vec![0; 3 * BLOCK_BYTES];
        sent.read_exact_at(&mut bytes, HEAD_BYTES).expect("it is open");
        assert_eq!(bytes == body(3 * BLOCK_BYTES), is_lent);
    }
}

#[test]
fn a_page_that_was_removed_is_not_lent() {
    let (_data, pages) = open(u64::MAX);
    keep(&pages, &key("a"), b"page a");
    let entry = pages.find(&key("a"), Wait::Allowed).expect("it may wait").expect("it exists");
    keep(&pages, &key("a"), b"a newer page");
    assert!(!pages.lend(&key("a"), &entry));
    pages.purge(&key("a"));
    assert!(!pages.lend(&key("a"), &entry));
}

#[test]
fn a_page_is_sliced_for_the_kernel() {
    let (_data, pages) = open(u64::MAX);
    let whole = body(2 * BLOCK_BYTES + 7);
    keep(&pages, &key("a"), &whole);
    let entry = pages.find(&key("a"), Wait::Allowed).expect("it may wait").expect("it exists");
    let mut read = Vec::new();
    while let Some(slice) = entry.slice(read.len() as u64, BLOCK_BYTES as u64).filter(|slice| slice.bytes > 0)
    {
        let mut bytes = vec![0; slice.bytes as usize];
        slice.file.read_exact_at(&mut bytes, slice.at).expect("it is in the file");
        read.extend_from_slice(&bytes);
    }
    assert!(read == whole);
}
