//! Damaged files of the embedded store: only the records of damaged blocks are lost, they are named, and a new commit
//! of them repairs the store.

use crate::record_log::Folder;
use oaimend_store::{Identifier, MirrorError, NewRecord};
use oaimend_store_contract::mirror::fixtures::{
    MirrorBackend, PREFIX, REPOSITORY, all_pages, commit, everything, identifiers_in, record, whole,
};
use oaimend_test_support::random::Random;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The records of a test: some blocks.
const RECORDS: usize = 600;

fn one(number: usize) -> NewRecord {
    record(&format!("oai:x:{number:04}"), number as i64, &["s:t"], &format!("text {number} ").repeat(60))
}

async fn filled(folder: &Folder) -> BTreeSet<String> {
    let store = folder.open();
    for first in (0..RECORDS).step_by(100) {
        commit(&*store, 100, (first..first + 100).map(one).collect()).await;
    }
    store.close();
    (0..RECORDS).map(|number| one(number).identifier).collect()
}

fn segments(folder: &Folder) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.0.path().join("mirror")).expect("readable");
    let paths = files.map(|file| file.expect("readable").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect()
}

fn change_segment(folder: &Folder, change: impl FnOnce(&mut Vec<u8>)) {
    let path = segments(folder).pop().expect("a segment");
    let mut bytes = std::fs::read(&path).expect("readable");
    change(&mut bytes);
    std::fs::write(&path, bytes).expect("writable");
}

/// Checks that some records are lost, that the others are not, and that a commit brings the lost ones back. Returns
/// the number of lost records.
async fn check_recovery(folder: &Folder, all: &BTreeSet<String>, what: &str) -> usize {
    let store = folder.open();
    let (listed, missing) = all_pages(&*store, whole(everything())).await;
    let listed: BTreeSet<String> = listed.into_iter().map(|record| record.identifier).collect();
    assert_eq!(listed.len() as u64 + missing, all.len() as u64, "{what}: the list counts lost records");
    let verification = store.verify(REPOSITORY).await.expect("readable");
    assert_eq!((verification.records, verification.damaged), (all.len() as u64, missing), "{what}");
    let lost = store.damaged(REPOSITORY, PREFIX, None, usize::MAX).await.expect("readable");
    assert_eq!(lost, all.difference(&listed).cloned().collect::<Vec<_>>(), "{what}");
    assert_eq!(identifiers_in(&*store, everything()).await.len(), listed.len(), "{what}");
    assert_eq!(store.count(everything()).await.expect("readable"), listed.len() as u64, "{what}");
    let sizes = store.collections(REPOSITORY).await.expect("readable");
    assert_eq!((sizes[0].records, sizes[0].damaged), (listed.len() as u64, missing), "{what}");
    if let Some(lost) = lost.first() {
        let found = store.record(REPOSITORY, PREFIX, Identifier(lost)).await;
        assert!(matches!(found, Err(MirrorError::Damaged)), "{what}: {found:?}");
    }
    store.compact(REPOSITORY).await.expect("writable");
    let committed = commit(&*store, 200, (0..RECORDS).map(one).collect()).await;
    assert_eq!((committed.stored, committed.unchanged), (missing, listed.len() as u64), "{what}");
    assert_eq!(store.damaged(REPOSITORY, PREFIX, None, 1).await.expect("readable"), [""; 0], "{what}");
    let listed = identifiers_in(&*store, everything()).await;
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), *all, "{what}");
    let verification = store.verify(REPOSITORY).await.expect("readable");
    assert_eq!((verification.records, verification.damaged), (all.len() as u64, 0), "{what}");
    lost.len()
}

#[tokio::test]
async fn a_flipped_bit_costs_the_records_of_its_block() {
    let seed = 20_261_123;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for round in 0..12 {
        let folder = Folder::new();
        let all = filled(&folder).await;
        change_segment(&folder, |bytes| {
            let at = 16 + random.below(bytes.len() - 16);
            bytes[at] ^= 1 << random.below(8);
        });
        let lost = check_recovery(&folder, &all, &format!("round {round}")).await;
        assert!((1..=RECORDS / 3).contains(&lost), "round {round}: {lost} records");
    }
}

#[tokio::test]
async fn a_torn_segment_costs_the_records_at_its_end() {
    for len_percent in [0, 40, 99] {
        let folder = Folder::new();
        let all = filled(&folder).await;
        change_segment(&folder, |bytes| bytes.truncate(bytes.len() * len_percent / 100));
        let lost = check_recovery(&folder, &all, &format!("{len_percent} percent")).await;
        // A block has about a tenth of the records.
        let lost_max = RECORDS.min(RECORDS * (120 - len_percent) / 100);
        assert!((1..=lost_max).contains(&lost), "{len_percent}: {lost}");
    }
}

#[tokio::test]
async fn a_missing_segment_costs_its_records() {
    let folder = Folder::new();
    let all = filled(&folder).await;
    std::fs::remove_file(segments(&folder).pop().expect("a segment")).expect("writable");
    assert_eq!(check_recovery(&folder, &all, "no segment").await, RECORDS);
}

#[tokio::test]
async fn a_compaction_keeps_all_but_damaged_records() {
    let folder = Folder::new();
    let all = filled(&folder).await;
    change_segment(&folder, |bytes| bytes[100] ^= 1);
    let store = folder.open();
    // Every fourth record is replaced, so every block has dead records.
    let changed = (0..RECORDS)
        .step_by(4)
        .map(|number| record(&one(number).identifier, 1, &[], &format!("new text {number}")));
    commit(&*store, 150, changed.collect()).await;
    store.compact(REPOSITORY).await.expect("the damaged block is left out");
    let lost = store.damaged(REPOSITORY, PREFIX, None, usize::MAX).await.expect("readable");
    let listed = identifiers_in(&*store, everything()).await;
    assert!(!lost.is_empty() && lost.len() < RECORDS / 3, "{} records", lost.len());
    assert_eq!(listed.into_iter().chain(lost).collect::<BTreeSet<_>>(), all);
    let sizes = store.collections(REPOSITORY).await.expect("readable");
    assert_eq!(sizes[0].dead_bytes, 0);
}

#[tokio::test]
async fn a_missing_open_segment_stops_no_commit() {
    let folder = Folder::new();
    filled(&folder).await;
    std::fs::remove_file(segments(&folder).pop().expect("a segment")).expect("writable");
    let store = folder.open();
    let committed = commit(&*store, 200, vec![one(RECORDS)]).await;
    assert_eq!((committed.stored, committed.added), (1, 1));
    let found =
        store.record(REPOSITORY, PREFIX, Identifier(&one(RECORDS).identifier)).await.expect("readable");
    assert_eq!(found.expect("stored").bytes, one(RECORDS).bytes);
    assert_eq!(store.verify(REPOSITORY).await.expect("readable").damaged, RECORDS as u64);
}

#[tokio::test]
async fn accepted_loss_leaves_complete_lists_until_the_records_come_again() {
    let folder = Folder::new();
    let all = filled(&folder).await;
    change_segment(&folder, |bytes| bytes[100] ^= 1);
    let store = folder.open();
    let version = async || store.version(REPOSITORY, PREFIX).await.expect("readable").expect("a collection");
    let sizes = async || store.collections(REPOSITORY).await.expect("readable").remove(0);
    assert_eq!(version().await.damaged, 0, "nothing was read yet");
    assert_eq!(
        store.verify_suspected(REPOSITORY).await.expect("readable").records,
        0,
        "there is no suspicion"
    );
    let (_, damaged) = all_pages(&*store, whole(everything())).await;
    assert!(damaged > 0);
    assert_eq!(store.verify_suspected(REPOSITORY).await.expect("readable").damaged, damaged);
    assert_eq!(store.verify_suspected(REPOSITORY).await.expect("readable").records, 0, "it was checked");
    assert_eq!(version().await.damaged, damaged);
    let first = store.damaged(REPOSITORY, PREFIX, None, 1).await.expect("readable").remove(0);
    let headers = store.headers(REPOSITORY, PREFIX, std::slice::from_ref(&first)).await;
    assert!(matches!(headers, Err(MirrorError::Damaged)), "{headers:?}");

    assert_eq!(store.accept_loss(REPOSITORY).await.expect("writable"), damaged);
    assert_eq!(store.accept_loss(REPOSITORY).await.expect("writable"), 0);
    assert_eq!((sizes().await.damaged, sizes().await.lost), (0, damaged));
    assert_eq!((version().await.damaged, version().await.lost), (0, damaged));
    let (listed, missing) = all_pages(&*store, whole(everything())).await;
    assert_eq!((listed.len() as u64 + damaged, missing), (all.len() as u64, 0));
    let headers = store.headers(REPOSITORY, PREFIX, std::slice::from_ref(&first)).await;
    assert_eq!(headers.expect("readable"), [None]);

    // The source may have the records again.
    let (mut named, mut after) = (Vec::new(), None);
    while let [identifier] = store
        .damaged(REPOSITORY, PREFIX, after.as_deref().map(Identifier), 1)
        .await
        .expect("readable")
        .as_slice()
    {
        named.push(identifier.clone());
        after = Some(identifier.clone());
    }
    assert_eq!(named.len() as u64, damaged);
    let committed = commit(&*store, 200, (0..RECORDS).map(one).collect()).await;
    assert_eq!(committed.stored, damaged);
    assert_eq!((sizes().await.damaged, sizes().await.lost), (0, 0));
    assert_eq!(identifiers_in(&*store, everything()).await.into_iter().collect::<BTreeSet<_>>(), all);
}
