//! Records that are chosen by their sequences or identifiers.

use super::fixtures::{
    MirrorBackend, PREFIX, REPOSITORY, all_pages, commit, deleted, everything, record, whole,
};
use oaimend_oai::UnixSecs;
use oaimend_store::{ChosenRecords, Identifier, Prefix, StoredRecord};

pub async fn chosen_records_are_current(backend: &impl MirrorBackend) {
    let store = backend.open();
    let choose = |sequences: &[u64], bytes_max, with_bytes| {
        let (repository, prefix) = (REPOSITORY.0.to_owned(), PREFIX.0.to_owned());
        store.records_at(ChosenRecords {
            repository,
            prefix,
            sequences: sequences.to_vec(),
            bytes_max,
            with_bytes,
        })
    };
    assert_eq!(choose(&[0, 5], usize::MAX, true).await.expect("readable"), vec![None; 2]);
    let page = ["a", "b", "c", "d"].map(|identifier| record(identifier, 7, &["s"], identifier));
    commit(&*store, 100, page.into()).await;
    commit(&*store, 200, vec![deleted("b", 9, &[]), record("c", 10, &[], "C")]).await;
    let (records, _) = all_pages(&*store, whole(everything())).await;
    let current = |sequence| records.iter().find(|record| record.sequence == sequence).cloned();
    let sequences: Vec<u64> = records.iter().map(|record| record.sequence).chain([1, 2, 99, 0, 0]).collect();
    let expected: Vec<_> = sequences.iter().map(|sequence| current(*sequence)).collect();
    assert_eq!(expected.iter().flatten().count(), 6, "four records, and the first one twice again");
    assert_eq!(choose(&sequences, usize::MAX, true).await.expect("readable"), expected);
    let headers: Vec<_> = expected.iter().cloned().map(|record| record.map(without_bytes)).collect();
    assert_eq!(choose(&sequences, 0, false).await.expect("readable"), headers);
    let two = expected.iter().flatten().take(2).map(|record| record.bytes.len()).sum();
    assert_eq!(choose(&sequences, two, true).await.expect("readable"), expected[..2]);
    assert_eq!(choose(&sequences, 1, true).await.expect("readable"), expected[..1]);
    assert_eq!(choose(&[99, 0, 3], 1, true).await.expect("readable"), [None, current(0)]);
    assert_eq!(choose(&[], 1, true).await.expect("readable"), []);
}

pub async fn headers_of_several_records_come_in_the_order_of_the_request(backend: &impl MirrorBackend) {
    let store = backend.open();
    let ask = ["c", "none", "a", "b", "a"].map(str::to_owned);
    assert_eq!(store.headers(REPOSITORY, PREFIX, &ask).await.expect("readable"), vec![None; 5]);
    let page = vec![record("a", 7, &["s"], "A"), record("b", 8, &[], "B"), record("c", 9, &[], "C")];
    commit(&*store, 100, page).await;
    commit(&*store, 200, vec![deleted("b", 9, &[]), record("c", 10, &[], "C")]).await;
    let found = store.headers(REPOSITORY, PREFIX, &ask).await.expect("readable");
    let mut expected = Vec::new();
    for identifier in &ask {
        let record = store.record(REPOSITORY, PREFIX, Identifier(identifier)).await.expect("readable");
        expected.push(record.map(without_bytes));
    }
    assert_eq!(found, expected);
    let stamps: Vec<Option<UnixSecs>> =
        found.iter().map(|found| found.as_ref().map(|found| found.stamp_secs)).collect();
    assert_eq!(stamps, [Some(100), None, Some(100), Some(200), Some(100)].map(|secs| secs.map(UnixSecs)));
    assert_eq!(store.headers(REPOSITORY, Prefix("marcxml"), &ask).await.expect("readable"), vec![None; 5]);
}

fn without_bytes(record: StoredRecord) -> StoredRecord {
    StoredRecord { bytes: bytes::Bytes::new(), layout: None, ..record }
}
