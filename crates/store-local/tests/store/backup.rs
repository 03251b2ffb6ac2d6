//! Backups while a mirror is written, of a process that is killed, and of files that are cut or damaged.

use crate::kill::{CHILD, FEW, check, child, commit_pages, runtime};
use oaimend_oai::{UnixSecs, Verb};
use oaimend_store::{
    DeliveredPage, ListPage, ListStatus, QuarantineBatch, QuarantineQuery, QuarantinedRecord, RepositoryId,
    Store,
};
use oaimend_store_local::backup::{BackupError, EMPTY_FRAME, backup_size, restore, write_backup};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const CREATED: &str = "2026-01-02T03:04:05Z";
const ONE: RepositoryId<'_> = RepositoryId("x");

fn back_up(store: &Store, file: &Path) {
    let out = File::create(file).expect("writable");
    let written = write_backup(store, CREATED, out).expect("it is written");
    assert!(written.files > 5, "{written:?}");
}

fn restored(file: &Path, data: &Path) -> Result<Store, BackupError> {
    let mut last = (0, 0);
    let restored = restore(File::open(file).expect("readable"), data, &mut |done, all| last = (done, all))?;
    assert_eq!((restored.created.as_str(), last), (CREATED, (restored.bytes, restored.bytes)));
    Ok(oaimend_store_local::open(data).expect("it was opened before"))
}

/// Puts a record into the quarantine, and a page with a token into the ledger.
async fn fill(store: &Store) {
    let batch = QuarantineBatch {
        repository: ONE.0.to_owned(),
        request: "verb=ListRecords&metadataPrefix=oai_dc".to_owned(),
        metadata_prefix: None,
        received_at: CREATED.to_owned(),
        bytes_max: 1 << 20,
        records: vec![QuarantinedRecord {
            identifier: Some("oai:x:1".to_owned()),
            why: "mismatched-tags",
            offset: 7,
            raw: b"<record>broken".to_vec(),
        }],
    };
    store.quarantine.put(batch).await.expect("writable");
    let page = DeliveredPage {
        repository: ONE.0.to_owned(),
        verb: Verb::ListRecords,
        place: ListPage { list: 5, page: 0 },
        first_query: "verb=ListRecords&metadataPrefix=oai_dc".to_owned(),
        within: None,
        hashes: vec![1, 2],
        complete: true,
        names: vec![1, 2],
        list_size: None,
        request_token: None,
        request_origin: None,
        next_token: Some("next".to_owned()),
        next_origin: None,
        next_items: None,
        status: ListStatus::Continues,
        last_datestamp: None,
        state_secs: None,
        now_secs: UnixSecs(1_000_000),
    };
    assert!(store.ledger.record_part(page, 1).await, "it is on disk");
}

/// The pieces that a process writes before it waits to be killed. Each backup has several.
const PIECES: usize = 30;

/// A file that prints a line for each piece of it, and waits for ever before the last of [`PIECES`].
struct Printing<'a>(File, &'a mut usize);

impl Write for Printing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        println!("written {}", bytes.len());
        *self.1 += 1;
        if *self.1 == PIECES {
            loop {
                std::thread::park();
            }
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Checks what [`fill`] has put.
async fn check_filled(store: &Store) {
    let entries = store.quarantine.list(ONE, QuarantineQuery::default()).await.expect("readable");
    let [(key, entry)] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!(entry.identifier.as_deref(), Some("oai:x:1"));
    let found = store.quarantine.find(ONE, key).await.expect("readable");
    let (_, raw) = found.expect("it is listed");
    assert_eq!(raw, b"<record>broken");
    let target = store.ledger.token_target(ONE, Verb::ListRecords, "next").await.expect("readable");
    let (place, _) = target.and_then(|target| target.place).expect("it is known");
    assert_eq!(place, ListPage { list: 5, page: 1 });
}

#[test]
fn backups_during_a_harvest_have_the_state_of_one_moment() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let store = oaimend_store_local::open(&data).expect("writable");
    let runtime = runtime();
    runtime.block_on(fill(&store));
    let mirror = store.mirror.clone();
    let harvest = runtime.spawn(async move { commit_pages(&*mirror, FEW).await });
    let mut pages = 0;
    for number in 0..4 {
        let file = folder.path().join(format!("{number}.backup"));
        while runtime.block_on(committed(&store)) < pages + 20 {
            std::thread::yield_now();
        }
        let before = runtime.block_on(committed(&store));
        back_up(&store, &file);
        let copy = restored(&file, &folder.path().join(format!("copy{number}"))).expect("it is whole");
        pages = runtime.block_on(check(&*copy.mirror, FEW));
        runtime.block_on(check_filled(&copy));
        copy.close();
        assert!(pages >= before, "{pages} pages of {before}");
    }
    store.close();
    runtime.block_on(harvest).expect("it ends with the store");
    let names: Vec<_> =
        fs::read_dir(&data).expect("readable").flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".oaimend")), "{names:?}");
}

#[test]
fn nothing_is_written_while_the_databases_are_frozen() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = oaimend_store_local::open(folder.path()).expect("writable");
    let runtime = runtime();
    let mirror = store.mirror.clone();
    let harvest = runtime.spawn(async move { commit_pages(&*mirror, FEW).await });
    let mut last = 0;
    for _ in 0..5 {
        while runtime.block_on(committed(&store)) < last + 3 {
            std::thread::yield_now();
        }
        let index = || fs::read(folder.path().join("mirror/index.redb")).expect("readable");
        let frozen = store.databases.while_frozen(&mut || {
            let (before, pages) = (index(), runtime.block_on(committed(&store)));
            for _ in 0..40 {
                assert!(index() == before, "the index changed");
            }
            last = runtime.block_on(committed(&store));
            assert_eq!(last, pages);
        });
        frozen.expect("they can be used");
    }
    store.close();
    runtime.block_on(harvest).expect("it ends with the store");
}

/// The number of committed pages.
async fn committed(store: &Store) -> u64 {
    let progress = store.mirror.progress(ONE, oaimend_store::Prefix("oai_dc")).await.expect("readable");
    progress.open_list.map_or(0, |list| list.cursor)
}

#[test]
fn a_killed_backup_is_refused_and_the_next_one_is_whole() {
    if let Some(data) = std::env::var_os(CHILD) {
        let data = PathBuf::from(data);
        let store = oaimend_store_local::open(&data).expect("writable");
        let mirror = store.mirror.clone();
        let runtime = runtime();
        runtime.block_on(fill(&store));
        runtime.spawn(async move { commit_pages(&*mirror, FEW).await });
        let mut pieces = 0;
        loop {
            let out = File::create(data.with_extension("backup")).expect("writable");
            write_backup(&store, CREATED, Printing(out, &mut pieces)).expect("it is written");
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let test = "backup::a_killed_backup_is_refused_and_the_next_one_is_whole";
    let mut process = child(test, &data).spawn().expect("it starts");
    let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    // It waits in the middle of a backup.
    let pieces = lines.filter(|line| line.starts_with("written "));
    pieces.take(PIECES).for_each(drop);
    process.kill().expect("it runs");
    process.wait().expect("it was killed");
    let error = restored(&data.with_extension("backup"), &folder.path().join("copy")).expect_err("it is cut");
    assert!(matches!(error, BackupError::Damaged(_)), "{error}");
    let store = oaimend_store_local::open(&data).expect("the folder is as after any kill");
    let file = folder.path().join("whole.backup");
    back_up(&store, &file);
    store.close();
    let copy = restored(&file, &folder.path().join("copy")).expect("it is whole");
    assert!(runtime().block_on(check(&*copy.mirror, FEW)) > 0);
    runtime().block_on(async {
        let entries = copy.quarantine.list(ONE, QuarantineQuery::default()).await.expect("readable");
        assert_eq!(entries.len(), 1);
    });
}

#[test]
fn a_cut_or_damaged_file_is_refused_and_leaves_no_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let store = oaimend_store_local::open(&data).expect("writable");
    runtime().block_on(fill(&store));
    let file = folder.path().join("whole.backup");
    back_up(&store, &file);
    store.close();
    let whole = fs::read(&file).expect("readable");
    let copy = folder.path().join("copy");
    let refused = |bytes: &[u8], what: &str| {
        let error = restore(bytes, &copy, &mut |_, _| {}).expect_err(what);
        assert!(matches!(error, BackupError::Damaged(_)), "{what}: {error}");
        let left: Vec<_> =
            fs::read_dir(folder.path()).expect("readable").flatten().map(|e| e.file_name()).collect();
        assert_eq!(left.len(), 2, "{what}: {left:?}");
    };
    for cut in (0..20).map(|part| whole.len() * part / 20) {
        refused(&whole[..cut], &format!("cut after {cut} bytes"));
    }
    let unpacked = zstd::decode_all(whole.as_slice()).expect("it is whole");
    for place in (1..40).map(|part| whole.len() * part / 40) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        // A few bits of the compressed data mean nothing.
        if zstd::decode_all(damaged.as_slice()).is_ok_and(|bytes| bytes == unpacked) {
            continue;
        }
        refused(&damaged, &format!("damaged at {place}"));
    }
    refused(b"no backup", "another file");
    let error = restore(whole.as_slice(), &data, &mut |_, _| {}).expect_err("the folder is in use");
    assert!(matches!(error, BackupError::Occupied(_)), "{error}");
    let copy = restored(&file, &copy).expect("it is whole");
    runtime().block_on(check_filled(&copy));
}

#[test]
fn a_folder_that_exists_is_filled_and_not_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = oaimend_store_local::open(&folder.path().join("data")).expect("writable");
    runtime().block_on(fill(&store));
    let file = folder.path().join("whole.backup");
    back_up(&store, &file);
    // The folder is like a mount point, which cannot be replaced. An ext4 disk has such a folder at its root.
    let copy = folder.path().join("copy");
    fs::create_dir_all(copy.join("lost+found")).expect("writable");
    let number = || fs::metadata(&copy).expect("readable").ino();
    let before = number();
    // What a restore has left that was killed while it unpacked.
    fs::create_dir_all(copy.join(".oaimend-restore-1/mirror")).expect("writable");
    let opened = oaimend_store_local::open(&copy).expect_err("it is not whole").to_string();
    assert!(opened.contains("was interrupted; delete everything in this folder"), "{opened}");
    fs::remove_file(copy.join("lock")).expect("the refused process has left it");
    let store = restored(&file, &copy).expect("it is whole");
    runtime().block_on(check_filled(&store));
    assert_eq!(number(), before);
    let names = fs::read_dir(&copy).expect("readable").flatten().map(|entry| entry.file_name());
    let hidden: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    store.close();
    fs::create_dir(copy.join(".oaimend-restore-1")).expect("writable");
    let error = restored(&file, &copy).expect_err("some files have got their places");
    assert!(matches!(error, BackupError::Interrupted(_)), "{error}");
}

#[test]
fn a_backup_that_the_disk_has_no_space_for_is_not_begun() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let store = oaimend_store_local::open(&data).expect("writable");
    let free = || oaimend_store::free_space(folder.path()).expect("a disk with a size");
    // A file with holes, which needs no space itself.
    let put = |name: &str| File::create(data.join(name)).expect("writable").set_len(free() + (1 << 30));
    put("records").expect("a file system with holes");
    let size = backup_size(&store).expect("readable");
    assert!(
        size.bytes > free() && size.copied_bytes < 1 << 30,
        "records are linked and not copied: {size:?}"
    );
    put("large.redb").expect("a file system with holes");
    let mut out = Vec::new();
    let error = write_backup(&store, CREATED, &mut out).expect_err("the database cannot be copied");
    let BackupError::NoSpace { missing_bytes, .. } = error else { panic!("{error}") };
    assert!((1 << 29..1 << 31).contains(&missing_bytes), "{missing_bytes}");
    assert!(error.to_string().contains(&format!("{missing_bytes} of them are missing")), "{error}");
    assert_eq!(out, b"");
    let names: Vec<_> =
        fs::read_dir(&data).expect("readable").flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".oaimend")), "{names:?}");
}

#[test]
fn a_backup_with_more_bytes_than_the_disk_is_not_unpacked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manifest =
        format!(r#"{{"format": 1, "oaimend": "0", "created": "x", "files": 1, "bytes": {}}}"#, u64::MAX);
    let error = restore(
        archive(&[("manifest.json", manifest.as_bytes())]).as_slice(),
        &folder.path().join("copy"),
        &mut |_, _| {},
    );
    assert!(matches!(error, Err(BackupError::NoSpace { .. })), "{error:?}");
    assert!(!folder.path().join("copy").exists());
}

#[test]
fn empty_frames_before_a_backup_mean_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = oaimend_store_local::open(&folder.path().join("data")).expect("writable");
    let file = folder.path().join("whole.backup");
    back_up(&store, &file);
    let whole = [EMPTY_FRAME.repeat(3), fs::read(&file).expect("readable")].concat();
    fs::write(&file, whole).expect("writable");
    restored(&file, &folder.path().join("copy")).expect("it is whole");
}

/// A backup with these files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).expect("memory"));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, *bytes).expect("memory");
    }
    archive.into_inner().and_then(zstd::Encoder::finish).expect("memory")
}

/// Reads a backup, and writes into the data folder meanwhile.
struct Meddling<'a>(&'a [u8], PathBuf);

impl Read for Meddling<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        fs::create_dir_all(&self.1)?;
        fs::write(self.1.join("precious"), "x")?;
        self.0.read(out)
    }
}

#[test]
fn a_folder_that_is_filled_during_a_restore_stays() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = oaimend_store_local::open(&folder.path().join("data")).expect("writable");
    let file = folder.path().join("whole.backup");
    back_up(&store, &file);
    let (whole, copy) = (fs::read(&file).expect("readable"), folder.path().join("copy"));
    let error = restore(Meddling(&whole, copy.clone()), &copy, &mut |_, _| {}).expect_err("it is not empty");
    assert!(matches!(error, BackupError::Occupied(_)), "{error}");
    assert_eq!(fs::read_to_string(copy.join("precious")).expect("it stays"), "x");
    let names = fs::read_dir(folder.path()).expect("readable").flatten().map(|entry| entry.file_name());
    assert_eq!(names.count(), 3, "data, backup and copy");
}

#[test]
fn a_part_of_the_folder_on_another_disk_is_in_the_backup() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (data, disk) = (folder.path().join("data"), folder.path().join("disk"));
    fs::create_dir_all(&data).expect("writable");
    fs::create_dir(&disk).expect("writable");
    std::os::unix::fs::symlink(&disk, data.join("quarantine")).expect("writable");
    let store = oaimend_store_local::open(&data).expect("writable");
    runtime().block_on(fill(&store));
    let file = folder.path().join("whole.backup");
    back_up(&store, &file);
    let copy = restored(&file, &folder.path().join("copy")).expect("it is whole");
    runtime().block_on(check_filled(&copy));
}

#[test]
fn a_backup_with_more_than_its_manifest_says_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manifest = br#"{"format": 1, "oaimend": "0", "created": "x", "files": 1, "bytes": 3}"#.as_slice();
    for files in [
        [("manifest.json", manifest), ("a", b"four"), ("checksums", b"{}")].as_slice(),
        &[("manifest.json", manifest), ("a", b""), ("b", b""), ("checksums", b"{}")],
        &[("manifest.json", manifest), ("checksums", b"{}")],
        &[("manifest.json", manifest), ("checksums", &[b' '; 100_000])],
    ] {
        let error = restore(archive(files).as_slice(), &folder.path().join("copy"), &mut |_, _| {});
        assert!(matches!(error, Err(BackupError::Damaged(_))), "{error:?}");
    }
}
