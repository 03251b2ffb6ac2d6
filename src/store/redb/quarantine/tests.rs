//! Tests of the quarantine.

use super::*;

fn record(identifier: &str, raw: &[u8]) -> QuarantinedRecord {
    let identifier = Some(identifier.to_owned());
    QuarantinedRecord { identifier, why: "mismatched-tags", offset: 7, raw: raw.to_vec() }
}

fn put(
    quarantine: &RedbQuarantine,
    repository: &str,
    request: &str,
    now: &str,
    bytes_max: u64,
    records: &[QuarantinedRecord],
) -> Result<(), QuarantineError> {
    let [repository, request, received_at] = [repository, request, now].map(str::to_owned);
    let batch = QuarantineBatch { repository, request, received_at, bytes_max, records: records.to_vec() };
    quarantine.with_index(|index| quarantine.put_into(index, &batch))
}

fn list(quarantine: &RedbQuarantine, repository: &str) -> Vec<(String, QuarantineEntry)> {
    quarantine.with_index(|index| list_in(index, repository, 100)).expect("readable")
}

fn find(quarantine: &RedbQuarantine, repository: &str, key: &str) -> Option<(QuarantineEntry, Vec<u8>)> {
    quarantine.with_index(|index| quarantine.find_in(index, repository, key)).expect("readable")
}

fn open() -> (tempfile::TempDir, RedbQuarantine) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let quarantine = RedbQuarantine::open(data.path()).expect("it can be written to");
    (data, quarantine)
}

#[test]
fn a_repeated_record_is_stored_once_and_counted() {
    let (data, quarantine) = open();
    let records = [record("oai:x:1", b"<a>"), record("oai:x:1", b"<b>"), record("oai:x:1", b"<a>")];
    put(&quarantine, "x", "verb=1", "t1", 10_000, &records).expect("it fits");
    put(&quarantine, "x", "verb=2", "t2", 10_000, &records[..1]).expect("it fits");
    put(&quarantine, "y", "verb=3", "t3", 10_000, &records[..1]).expect("it fits");
    drop(quarantine);
    let quarantine = RedbQuarantine::open(data.path()).expect("it survives");
    let listed = list(&quarantine, "x");
    let mut seen: Vec<u64> = listed.iter().map(|(_, entry)| entry.seen).collect();
    seen.sort_unstable();
    assert_eq!(seen, [1, 3]);
    let (key, entry) = listed.iter().find(|(_, entry)| entry.seen == 3).expect("the first record");
    assert_eq!((entry.first_seen.as_str(), entry.last_seen.as_str()), ("t1", "t2"));
    assert_eq!((entry.request.as_str(), entry.offset, entry.bytes), ("verb=2", 7, 3));
    let found = find(&quarantine, "x", key).expect("it is there");
    assert_eq!(found, (entry.clone(), b"<a>".to_vec()));
    assert_eq!(find(&quarantine, "y", key), None);
    assert_eq!(list(&quarantine, "y").len(), 1);
}

#[test]
fn a_full_quarantine_stores_no_new_record_and_counts_repeated_ones() {
    let (data, quarantine) = open();
    // A block for the bytes, and the entry with its identifier.
    const ONE: u64 = BLOCK_BYTES + ENTRY_BYTES + 1;
    put(&quarantine, "x", "", "t1", ONE, &[record("1", b"12345")]).expect("it fits exactly");
    let error = put(&quarantine, "x", "", "t2", ONE, &[record("1", b"12345"), record("2", b"6")]);
    assert!(matches!(error, Err(QuarantineError::Full { max: ONE })), "{error:?}");
    let error = put(&quarantine, "x", "", "t2", 3 * ONE - 1, &[record("3", b"6"), record("4", b"7")]);
    assert!(matches!(error, Err(QuarantineError::Full { .. })), "{error:?}");
    let files = std::fs::read_dir(data.path().join("quarantine/x")).expect("a folder").count();
    assert_eq!(files, 1, "refused records take no space");
    put(&quarantine, "x", "", "t3", ONE, &[record("1", b"12345")]).expect("it is there already");
    let seen: Vec<u64> = list(&quarantine, "x").iter().map(|(_, e)| e.seen).collect();
    assert_eq!(seen, [2], "the refused transaction changed nothing");
    put(&quarantine, "y", "", "t4", ONE, &[record("1", b"12345")])
        .expect("each repository has its own limit");
}

#[test]
fn removed_entries_are_gone_and_make_room() {
    let (data, quarantine) = open();
    let remove =
        |which| quarantine.with_index(|index| quarantine.remove_from(index, "x", &which)).expect("writable");
    const ONE: u64 = BLOCK_BYTES + ENTRY_BYTES + 1;
    for (name, time) in
        [("1", "2026-01-01T00:00:00Z"), ("2", "2026-02-01T00:00:00Z"), ("3", "2026-02-01T00:00:00Z")]
    {
        put(&quarantine, "x", "", time, 3 * ONE, &[record(name, name.as_bytes())]).expect("it fits");
    }
    put(&quarantine, "y", "", "t", 3 * ONE, &[record("1", b"1")]).expect("it fits");
    let sizes = || quarantine.with_index(sizes_in).expect("readable");
    let size = |records| QuarantineSize { records, bytes: records * ONE };
    assert_eq!(sizes(), [("x".to_owned(), size(3)), ("y".to_owned(), size(1))]);
    let error = put(&quarantine, "x", "", "t", 3 * ONE, &[record("4", b"4")]);
    assert!(matches!(error, Err(QuarantineError::Full { .. })), "{error:?}");
    assert_eq!(remove(QuarantineSelection::LastSeenBefore("2026-02-01".to_owned())), 1);
    put(&quarantine, "x", "", "2026-03-01T00:00:00Z", 3 * ONE, &[record("4", b"4")]).expect("there is room");
    let key = list(&quarantine, "x").remove(0).0;
    assert_eq!(remove(QuarantineSelection::Key(key.clone())), 1);
    assert_eq!(remove(QuarantineSelection::Key(key.clone())), 0);
    assert_eq!((find(&quarantine, "x", &key), list(&quarantine, "x").len()), (None, 2));
    assert_eq!(sizes()[0].1, size(2));
    let (key, _) = list(&quarantine, "x").remove(0);
    std::fs::remove_file(data.path().join("quarantine/x").join(&key)).expect("it is there");
    for (name, time) in [("2", "t"), ("3", "t"), ("4", "t")] {
        let _ = put(&quarantine, "x", "", time, 3 * ONE, &[record(name, name.as_bytes())]);
    }
    assert!(find(&quarantine, "x", &key).is_some(), "a lost file is written again");
    assert_eq!(remove(QuarantineSelection::All), 3);
    assert_eq!(std::fs::read_dir(data.path().join("quarantine/x")).expect("a folder").count(), 0);
    assert_eq!(list(&quarantine, "y").len(), 1, "the records of other repositories stay");
}

#[test]
fn the_error_for_a_second_process_advises_its_own_folder() {
    let (data, _quarantine) = open();
    let error = RedbQuarantine::open(data.path()).expect_err("it is open");
    assert!(error.to_string().contains("give each its own with --data"), "{error}");
    assert_eq!(error.exit_code(), 74);
}

#[test]
fn the_error_for_an_unwritable_folder_advises_another_one() {
    let data = tempfile::NamedTempFile::new().expect("a temporary file");
    let error = RedbQuarantine::open(data.path()).expect_err("a file is not a folder");
    assert!(error.to_string().contains("name a folder that can be written to with --data"), "{error}");
    assert_eq!(error.exit_code(), 74);
}
