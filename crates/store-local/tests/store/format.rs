//! The files of earlier versions stay readable, and those of later versions are refused.
//!
//! Each folder in `tests/store/format` was written by `OAIMEND_WRITE_FORMAT=… cargo test -p oaimend-store-local format`.
//! A change of the format gets a new folder; the old ones stay as they are.

use crate::record_log::Folder;
use oaimend_oai::UnixSecs;
use oaimend_store::{Document, ListFilter, ListOrder, MirrorStore, RecordStatus, StampMarks};
use oaimend_store_contract::mirror::fixtures::{
    MirrorBackend, PREFIX, REPOSITORY, all_pages, commit, deleted, everything, identifiers_in, record, whole,
};
use oaimend_store_local::RecordLog;
use redb::{ReadableDatabase as _, TableDefinition};
use std::path::{Path, PathBuf};

fn folder_of(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/format").join(version)
}

/// Stores what the tests below expect.
async fn write(store: &dyn MirrorStore) {
    let page = vec![
        record("oai:x:1", 1000, &["a:b"], "first"),
        record("oai:x:2", -5, &[], "Zwölf & <mehr>"),
        record("oai:x:3", 3000, &["c", "a"], "third"),
    ];
    commit(store, 1_700_000_000, page).await;
    let page = vec![record("oai:x:1", 1500, &["a:b"], "first"), deleted("oai:x:3", 4000, &["c"])];
    commit(store, 1_700_000_100, page).await;
    store.save_document(REPOSITORY, Document::Identify, "<Identify/>".into()).await.expect("writable");
    store.reserve_stamps(UnixSecs(1_700_000_200)).await.expect("writable");
    store.close();
}

/// Copies the files of a version to a new folder. The index is compressed, because it has holes.
fn unpacked(version: &str) -> Folder {
    let folder = Folder::new();
    let target = folder.0.path().join("mirror");
    std::fs::create_dir(&target).expect("writable");
    for file in std::fs::read_dir(folder_of(version)).expect("the files of the version") {
        let path = file.expect("readable").path();
        let bytes = std::fs::read(&path).expect("readable");
        let (name, bytes) = if path.extension().is_some_and(|extension| extension == "zst") {
            (path.file_stem(), zstd::stream::decode_all(bytes.as_slice()).expect("compressed"))
        } else {
            (path.file_name(), bytes)
        };
        std::fs::write(target.join(name.expect("a name")), bytes).expect("writable");
    }
    folder
}

/// Writes the files of the current version to a folder.
async fn write_format(target: &Path) {
    let folder = Folder::new();
    write(&*folder.open()).await;
    std::fs::create_dir_all(target).expect("writable");
    for file in std::fs::read_dir(folder.0.path().join("mirror")).expect("readable") {
        let path = file.expect("readable").path();
        let bytes = std::fs::read(&path).expect("readable");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let (name, bytes) = if name == "index.redb" {
            (format!("{name}.zst"), zstd::stream::encode_all(bytes.as_slice(), 19).expect("memory"))
        } else {
            (name, bytes)
        };
        std::fs::write(target.join(name), bytes).expect("writable");
    }
}

/// Checks that a store has what [`write()`] stored.
async fn check_content(store: &dyn MirrorStore) {
    let (listed, damaged) = all_pages(store, whole(everything())).await;
    let facts: Vec<_> = listed
        .iter()
        .map(|record| {
            (record.identifier.as_str(), record.stamp_secs.0, record.datestamp_secs.0, record.status)
        })
        .collect();
    assert_eq!(damaged, 0);
    let expected = [
        ("oai:x:1", 1_700_000_000, 1500, RecordStatus::Live),
        ("oai:x:2", 1_700_000_000, -5, RecordStatus::Live),
        ("oai:x:3", 1_700_000_100, 4000, RecordStatus::Deleted),
    ];
    assert_eq!(facts, expected);
    assert_eq!(listed[1].bytes, record("oai:x:2", -5, &[], "Zwölf & <mehr>").bytes);
    let filter = ListFilter {
        set: Some("a".to_owned()),
        by: ListOrder::Datestamp,
        from_secs: Some(UnixSecs(1500)),
        ..everything()
    };
    assert_eq!(identifiers_in(store, filter).await, ["oai:x:1"]);
    let document = store.document(REPOSITORY, Document::Identify).await.expect("readable");
    assert_eq!(document.as_deref(), Some(b"<Identify/>".as_slice()));
    assert_eq!(store.progress(REPOSITORY, PREFIX).await.expect("readable").revision, 2);
    let marks = StampMarks {
        highest_secs: Some(UnixSecs(1_700_000_100)),
        reserved_secs: Some(UnixSecs(1_700_000_200)),
    };
    assert_eq!(store.stamp_marks().await.expect("readable"), marks);
    assert_eq!(store.verify(REPOSITORY).await.expect("readable").damaged, 0);
}

/// What the blocks in all segments of a closed store begin with.
fn first_blocks(folder: &Folder) -> Vec<[u8; 4]> {
    let files = std::fs::read_dir(folder.0.path().join("mirror")).expect("readable");
    let paths = files.map(|file| file.expect("readable").path());
    let segments = paths.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    segments
        .map(|path| *std::fs::read(path).expect("readable")[16..].first_chunk().expect("a block"))
        .collect()
}

#[tokio::test]
async fn stores_of_all_versions_are_readable() {
    if let Some(target) = std::env::var_os("OAIMEND_WRITE_FORMAT") {
        write_format(Path::new(&target)).await;
    }
    for (version, block) in [("v1", b"OMB1"), ("v2", b"OMB2")] {
        println!("{version}");
        let folder = unpacked(version);
        assert_eq!(first_blocks(&folder), [*block]);
        let store = folder.open();
        check_content(&*store).await;
        // The content hash is the same in all versions.
        let first = record("oai:x:1", 1500, &["a:b"], "first");
        assert_eq!(commit(&*store, 1_700_000_300, vec![first]).await.unchanged, 1);
    }
}

#[tokio::test]
async fn a_compaction_of_a_store_of_version_1_writes_the_current_version() {
    let folder = unpacked("v1");
    let store = folder.open();
    assert!(store.compact(REPOSITORY).await.expect("writable") > 0);
    check_content(&*store).await;
    store.close();
    assert_eq!(first_blocks(&folder), [*b"OMB2"]);
}

/// The version that the index of a closed store names.
fn format_version(folder: &Folder) -> Option<i64> {
    let database = redb::Database::create(folder.0.path().join("mirror/index.redb")).expect("closed");
    let meta: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
    let reading = database.begin_read().expect("open");
    let version = reading.open_table(meta).expect("a table").get("format").expect("readable");
    version.map(|version| version.value())
}

#[tokio::test]
async fn a_program_of_version_1_refuses_a_store_with_new_blocks_and_no_other() {
    // Version 1 refuses every other number.
    let folder = unpacked("v1");
    for (text, expected) in [("first", 1), ("new", 2)] {
        let store = folder.open();
        commit(&*store, 1_700_000_300, vec![record("oai:x:1", 1500, &["a:b"], text)]).await;
        store.close();
        assert_eq!(format_version(&folder), Some(expected), "{text}");
    }
    let folder = unpacked("v1");
    let store = folder.open();
    store.compact(REPOSITORY).await.expect("writable");
    store.close();
    assert_eq!(format_version(&folder), Some(2), "the compaction");
}

#[tokio::test]
async fn a_store_of_a_later_version_is_refused() {
    let folder = Folder::new();
    write(&*folder.open()).await;
    let database = redb::Database::create(folder.0.path().join("mirror/index.redb")).expect("closed");
    let writing = database.begin_write().expect("open");
    let meta: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
    writing.open_table(meta).expect("a table").insert("format", 3).expect("writable");
    writing.commit().expect("writable");
    drop(database);
    let error = RecordLog::open(folder.0.path()).expect_err("the version is unknown");
    assert!(error.to_string().contains("use a newer oaimend"), "{error}");
    assert_eq!(error.exit_code(), 74);
}
