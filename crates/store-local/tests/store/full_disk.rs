//! All stores of a data folder on a disk that is full for a while: each of them works again in the same process.
//!
//! The child process is this test binary again, which runs the same test with [`CHILD`] set.

use crate::kill::{CHILD, child, runtime};
use oaimend_oai::{UnixSecs, Verb};
use oaimend_store::{
    ActivityUpdate, DeliveredPage, FullText, FullTextState, IdentifiedCollection, IdentifierChanges,
    ListPage, ListStatus, ProfileDates, ProfileUpdate, QuarantineBatch, QuarantineQuery, QuarantinedRecord,
    RepositoryId, Store, StoreName, WatchedRepository,
};
use oaimend_store_contract::mirror::fixtures::{commit_to, record};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::path::Path;

fn quarantined(number: u32) -> QuarantineBatch {
    let raw = format!("<record>{number}").into_bytes();
    QuarantineBatch {
        repository: "x".to_owned(),
        request: "verb=ListRecords".to_owned(),
        metadata_prefix: None,
        received_at: "2026-01-01T00:00:00Z".to_owned(),
        bytes_max: 1 << 20,
        records: vec![QuarantinedRecord { identifier: None, why: "missing-identifier", offset: 0, raw }],
    }
}

fn delivered(page: u32) -> DeliveredPage {
    DeliveredPage {
        repository: "x".to_owned(),
        verb: Verb::ListRecords,
        place: ListPage { list: 1, page },
        first_query: "verb=ListRecords&metadataPrefix=oai_dc".to_owned(),
        within: None,
        hashes: vec![u64::from(page)],
        complete: true,
        names: Vec::new(),
        list_size: None,
        request_token: None,
        request_origin: None,
        next_token: Some(format!("token-{page}")),
        next_origin: None,
        next_items: None,
        status: ListStatus::Continues,
        last_datestamp: None,
        state_secs: None,
        now_secs: UnixSecs(1_000_000),
    }
}

fn identified(number: u32) -> IdentifierChanges {
    let collection = IdentifiedCollection { number: 1, next_sequence: u64::from(number) + 1 };
    IdentifierChanges { collection, records: Vec::new() }
}

fn full_text() -> FullText {
    FullText { urls: vec!["http://x.example/1.pdf".to_owned()], state: FullTextState::Read(Vec::new()) }
}

/// Writes to every store. Returns whether each store that says so has taken it.
async fn write(store: &Store, number: u32) -> [bool; 7] {
    let earliest = Some(format!("{}-01-01", 2000 - number));
    let dates = ProfileDates { earliest, ..ProfileDates::default() };
    store.profiles.update("x", ProfileUpdate { dates, sets: BTreeMap::new() }).await;
    let version = format!("1.{number}");
    store.capabilities.update("x", "", |known| known.version = Some(version)).await;
    store.activity.note("x", UnixSecs(1_700_000_000), ActivityUpdate::default());
    store.activity.save_changed();
    let watched = WatchedRepository { lost: number.into(), ..WatchedRepository::default() };
    let records = vec![record(&format!("oai:x:{number}"), 1, &[], "text")];
    [
        store.quarantine.put(quarantined(number)).await.is_ok(),
        store.ledger.record_part(delivered(number), 7).await,
        store.notices.save_watched(BTreeMap::from([("x".to_owned(), watched)])).await.is_ok(),
        store.views.begin_generation("v", &number.to_string()).await.is_ok(),
        store.identifiers.follow(identified(number)).await.is_ok(),
        store.full_texts.put("x", &format!("oai:x:{number}"), Some(full_text())).await.is_ok(),
        commit_to(&*store.mirror, ("x", "oai_dc"), i64::from(number), records).await.is_ok(),
    ]
}

/// Checks that every store contains what was written with the number 2, and that the ledger has lost nothing.
async fn check(store: &Store) {
    assert_eq!(store.profiles.dates("x").earliest.as_deref(), Some("1998-01-01"));
    assert_eq!(store.capabilities.detected("x", "").version.as_deref(), Some("1.2"));
    let watched = store.notices.watched().await.expect("readable");
    assert_eq!(watched["x"].lost, 2);
    let view = store.views.state("v").await.expect("readable");
    assert_eq!(view.next.expect("begun").definition, "2");
    let collections = store.identifiers.collections().await.expect("readable");
    assert_eq!(collections, [IdentifiedCollection { number: 1, next_sequence: 3 }]);
    let found = store.full_texts.find("x", vec!["oai:x:2".to_owned()]).await;
    assert_eq!(found.expect("readable"), [Some(full_text())]);
    let query = QuarantineQuery { count_max: 10, ..QuarantineQuery::default() };
    assert_eq!(store.quarantine.list(RepositoryId("x"), query).await.expect("readable").len(), 2);
    for page in 0..3 {
        let target =
            store.ledger.token_target(RepositoryId("x"), Verb::ListRecords, &format!("token-{page}")).await;
        assert!(target.expect("readable").is_some(), "page {page}");
    }
    let collections = store.mirror.collections(RepositoryId("x")).await.expect("readable");
    assert_eq!(collections.iter().map(|size| size.records).sum::<u64>(), 2);
}

/// Limits the length of files: 0 makes each write fail, as on a full disk.
fn limit_files(limit: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: limit.or(maximum), maximum }).expect("the limit is soft");
}

#[test]
fn every_store_works_again_after_the_disk_was_full() {
    let test = "full_disk::every_store_works_again_after_the_disk_was_full";
    if let Some(folder) = std::env::var_os(CHILD) {
        let store = oaimend_store_local::open(Path::new(&folder)).expect("writable");
        runtime().block_on(async {
            assert_eq!(write(&store, 0).await, [true; 7]);
            assert_eq!(store.databases.unusable(), Vec::new());
            limit_files(Some(0));
            for _ in 0..2 {
                assert_eq!(write(&store, 1).await, [false; 7]);
                assert_eq!(store.databases.unusable(), StoreName::ALL);
                store.databases.recover();
            }
            limit_files(None);
            assert_eq!(store.databases.unusable(), StoreName::ALL, "until a write has succeeded");
            store.databases.recover();
            assert_eq!(store.databases.unusable(), Vec::new());
            assert_eq!(write(&store, 2).await, [true; 7]);
            check(&store).await;
        });
        store.close();
        runtime().block_on(check(&oaimend_store_local::open(Path::new(&folder)).expect("closed")));
        println!("every store works");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inner = child(test, folder.path());
    let mut ignoring = std::process::Command::new("sh");
    ignoring.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    ignoring.arg(inner.get_program()).args(inner.get_args()).env(CHILD, folder.path());
    let output = ignoring.output().expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("every store works"), "{text}{errors}");
}
