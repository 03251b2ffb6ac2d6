//! Tests of what the contract of quarantines leaves open: files, memory and older versions.

use super::known_entries::OPEN_ENTRIES_MAX;
use crate::redb::quarantine::*;
use oaimend_store::RepositoryId;
use oaimend_store::quarantine::QuarantinedRecord;

/// The bytes of an entry on disk apart from its texts: a block for the record, and the row in the index.
const BARE_BYTES: u64 = 4096 + 512;

fn record(identifier: &str, raw: &[u8]) -> QuarantinedRecord {
    let identifier = Some(identifier.to_owned());
    QuarantinedRecord { identifier, why: "mismatched-tags", offset: 7, raw: raw.to_vec() }
}

fn put(
    quarantine: &RedbQuarantine,
    (repository, request): (&str, &str),
    now: &str,
    bytes_max: u64,
    records: &[QuarantinedRecord],
) -> Result<(), QuarantineError> {
    let [repository, request, received_at] = [repository, request, now].map(str::to_owned);
    let batch = QuarantineBatch {
        repository,
        request,
        metadata_prefix: None,
        received_at,
        bytes_max,
        records: records.to_vec(),
    };
    quarantine.with_index(|index| quarantine.put_into(index, &batch))
}

fn list(quarantine: &RedbQuarantine, repository: RepositoryId<'_>) -> Vec<(String, QuarantineEntry)> {
    quarantine.with_index(|index| list_in(index, repository, &QuarantineQuery::default())).expect("readable")
}

fn find(
    quarantine: &RedbQuarantine,
    repository: RepositoryId<'_>,
    key: &str,
) -> Option<(QuarantineEntry, Vec<u8>)> {
    quarantine.with_index(|index| quarantine.find_in(index, repository, key)).expect("readable")
}

fn open() -> (tempfile::TempDir, RedbQuarantine) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let quarantine = RedbQuarantine::open(data.path(), &Databases::default()).expect("it can be written to");
    (data, quarantine)
}

#[test]
fn a_full_quarantine_stores_no_new_record_and_counts_repeated_ones() {
    let (data, quarantine) = open();
    const ONE: u64 = BARE_BYTES + 1;
    put(&quarantine, ("x", ""), "t1", ONE, &[record("1", b"12345")]).expect("it fits exactly");
    let error = put(&quarantine, ("x", ""), "t2", ONE, &[record("1", b"12345"), record("2", b"6")]);
    assert!(matches!(error, Err(QuarantineError::Full { max: ONE })), "{error:?}");
    let error = put(&quarantine, ("x", ""), "t2", 3 * ONE - 1, &[record("3", b"6"), record("4", b"7")]);
    assert!(matches!(error, Err(QuarantineError::Full { .. })), "{error:?}");
    let files = std::fs::read_dir(data.path().join("quarantine/x")).expect("a folder").count();
    assert_eq!(files, 1, "refused records take no space");
    put(&quarantine, ("x", ""), "t3", ONE, &[record("1", b"12345")]).expect("it is there already");
    let seen: Vec<u64> = list(&quarantine, RepositoryId("x")).iter().map(|(_, e)| e.seen).collect();
    assert_eq!(seen, [2], "the refused transaction changed nothing");
    put(&quarantine, ("y", ""), "t4", ONE, &[record("1", b"12345")])
        .expect("each repository has its own limit");
}

#[test]
fn removed_entries_are_gone_and_make_room() {
    let (data, quarantine) = open();
    let remove = |which| {
        quarantine
            .with_index(|index| quarantine.remove_from(index, RepositoryId("x"), &which))
            .expect("writable")
    };
    const ONE: u64 = BARE_BYTES + 1;
    for (name, time) in
        [("1", "2026-01-01T00:00:00Z"), ("2", "2026-02-01T00:00:00Z"), ("3", "2026-02-01T00:00:00Z")]
    {
        put(&quarantine, ("x", ""), time, 3 * ONE, &[record(name, name.as_bytes())]).expect("it fits");
    }
    put(&quarantine, ("y", ""), "t", 3 * ONE, &[record("1", b"1")]).expect("it fits");
    let sizes = || quarantine.with_index(|index| quarantine.sizes_in(index)).expect("readable");
    let size = |records| QuarantineSizes {
        open: QuarantineSize { records, bytes: records * ONE },
        ..QuarantineSizes::default()
    };
    assert_eq!(sizes(), [("x".to_owned(), size(3)), ("y".to_owned(), size(1))]);
    let error = put(&quarantine, ("x", ""), "t", 3 * ONE, &[record("4", b"4")]);
    assert!(matches!(error, Err(QuarantineError::Full { .. })), "{error:?}");
    assert_eq!(
        remove(QuarantineSelection::Matching { state: None, before: Some("2026-02-01".to_owned()) }),
        1
    );
    put(&quarantine, ("x", ""), "2026-03-01T00:00:00Z", 3 * ONE, &[record("4", b"4")])
        .expect("there is room");
    let key = list(&quarantine, RepositoryId("x")).remove(0).0;
    assert_eq!(remove(QuarantineSelection::Key(key.clone())), 1);
    assert_eq!(remove(QuarantineSelection::Key(key.clone())), 0);
    assert_eq!(
        (find(&quarantine, RepositoryId("x"), &key), list(&quarantine, RepositoryId("x")).len()),
        (None, 2)
    );
    assert_eq!(sizes()[0].1, size(2));
    let (key, _) = list(&quarantine, RepositoryId("x")).remove(0);
    std::fs::remove_file(data.path().join("quarantine/x").join(&key)).expect("it is there");
    for (name, time) in [("2", "t"), ("3", "t"), ("4", "t")] {
        let _ = put(&quarantine, ("x", ""), time, 3 * ONE, &[record(name, name.as_bytes())]);
    }
    assert!(find(&quarantine, RepositoryId("x"), &key).is_some(), "a lost file is written again");
    assert_eq!(remove(QuarantineSelection::ALL), 3);
    assert_eq!(std::fs::read_dir(data.path().join("quarantine/x")).expect("a folder").count(), 0);
    assert_eq!(list(&quarantine, RepositoryId("y")).len(), 1, "the records of other repositories stay");
}

#[test]
fn the_error_for_a_second_process_advises_its_own_folder() {
    let (data, _quarantine) = open();
    let error = RedbQuarantine::open(data.path(), &Databases::default()).expect_err("it is open");
    assert!(error.to_string().contains("give each its own with --data"), "{error}");
    assert_eq!(error.exit_code(), 74);
}

#[test]
fn the_error_for_an_unwritable_folder_advises_another_one() {
    let data = tempfile::NamedTempFile::new().expect("a temporary file");
    let error = RedbQuarantine::open(data.path(), &Databases::default()).expect_err("a file is not a folder");
    assert!(error.to_string().contains("name a folder that can be written to with --data"), "{error}");
    assert_eq!(error.exit_code(), 74);
}

fn whole(identifier: &str, at: &str) -> WholeRecords {
    WholeRecords {
        repository: "x".to_owned(),
        headers_only: false,
        metadata_prefix: Some("oai_dc".to_owned()),
        identifiers: vec![identifier.to_owned()],
        received_at: at.to_owned(),
    }
}

fn resolve(quarantine: &RedbQuarantine, whole: &WholeRecords) -> u64 {
    quarantine.with_index(|index| quarantine.resolve_in(index, whole)).expect("writable")
}

/// The entries of the repository `x`: identifiers, and when they were resolved.
fn states(quarantine: &RedbQuarantine) -> Vec<(String, Option<String>)> {
    let entries = list(quarantine, RepositoryId("x")).into_iter().map(|(_, entry)| entry);
    let mut states: Vec<_> =
        entries.map(|entry| (entry.identifier.unwrap_or_default(), entry.resolved_at)).collect();
    states.sort();
    states
}

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

#[test]
fn the_oldest_resolved_entries_make_room_and_open_ones_stay() {
    let (data, quarantine) = open();
    const ONE: u64 = BARE_BYTES + 1 + LIST.len() as u64;
    let names = |quarantine: &RedbQuarantine| -> String {
        states(quarantine).into_iter().map(|(identifier, _)| identifier).collect()
    };
    for name in ["1", "2", "3", "4"] {
        put(&quarantine, ("x", LIST), "t1", 4 * ONE, &[record(name, b"a")]).expect("it fits");
    }
    for (name, at) in [("3", "t2"), ("1", "t3"), ("2", "t4")] {
        assert_eq!(resolve(&quarantine, &whole(name, at)), 1);
    }
    put(&quarantine, ("x", LIST), "t5", 4 * ONE, &[record("5", b"a")]).expect("3 makes room");
    assert_eq!(names(&quarantine), "1245");
    let files = || std::fs::read_dir(data.path().join("quarantine/x")).expect("a folder").count();
    assert_eq!(files(), 4);
    let two = [record("1", b"a"), record("6", b"a")];
    put(&quarantine, ("x", LIST), "t6", 4 * ONE, &two).expect("2 makes room; 1 is broken again");
    assert_eq!(names(&quarantine), "1456");
    assert_eq!(resolve(&quarantine, &whole("6", "t7")), 1);
    let before = states(&quarantine);
    let error = put(&quarantine, ("x", LIST), "t8", 4 * ONE, &[record("7", b"a"), record("8", b"a")]);
    assert!(matches!(error, Err(QuarantineError::Full { .. })), "{error:?}");
    assert_eq!(
        (states(&quarantine), files()),
        (before, 4),
        "nothing was removed for a batch that does not fit"
    );
    put(&quarantine, ("x", LIST), "t9", 4 * ONE, &[record("7", b"a")]).expect("6 makes room");
    assert_eq!((names(&quarantine), files()), ("1457".to_owned(), 4));
    assert!(quarantine.known.resolved(RepositoryId("x")).records == 0);
}

#[test]
fn entries_of_the_previous_version_are_open_and_can_be_resolved() {
    let (data, quarantine) = open();
    put(&quarantine, ("x", LIST), "t1", 1 << 20, &[record("oai:x:1", b"<a>")]).expect("it fits");
    let key = list(&quarantine, RepositoryId("x")).remove(0).0;
    let old = r#"{"identifier":"oai:x:1","why":"mismatched-tags","offset":7,"request":"verb=ListRecords&resumptionToken=a",
                  "first_seen":"t1","last_seen":"t1","seen":1,"bytes":3}"#;
    let written = quarantine.with_index(|index| {
        let transaction = index.begin_write().map_err(index_error)?;
        let mut entries = transaction.open_table(ENTRIES).map_err(index_error)?;
        entries.insert(("x", key.as_str()), old.as_bytes()).map_err(index_error)?;
        drop(entries);
        transaction.commit().map_err(index_error)
    });
    written.expect("writable");
    drop(quarantine);
    let quarantine = RedbQuarantine::open(data.path(), &Databases::default()).expect("it survives");
    let (entry, raw) = find(&quarantine, RepositoryId("x"), &key).expect("it is readable");
    assert_eq!((entry.state(), entry.format(), raw.as_slice()), (QuarantineState::Open, None, &b"<a>"[..]));
    assert_eq!(resolve(&quarantine, &whole("oai:x:1", "t2")), 1);
}

#[test]
fn an_entry_past_the_limit_of_memory_is_resolved_too() {
    let (_data, quarantine) = open();
    put(&quarantine, ("x", LIST), "t1", 1 << 20, &[record("oai:x:1", b"<a>")]).expect("it fits");
    let entry = list(&quarantine, RepositoryId("x")).remove(0).1;
    let others: Vec<EntryChange> = (0..OPEN_ENTRIES_MAX)
        .map(|number| {
            let after = Some(QuarantineEntry { identifier: Some(number.to_string()), ..entry.clone() });
            EntryChange { key: format!("{number:032x}"), before: None, after }
        })
        .collect();
    quarantine.known.apply(RepositoryId("x"), &others);
    put(&quarantine, ("x", LIST), "t1", 1 << 20, &[record("oai:x:2", b"<a>")]).expect("it fits");
    assert!(!quarantine.known.may_be_open(RepositoryId("x"), "oai:x:2"), "memory has no room for it");
    assert_eq!(resolve(&quarantine, &whole("oai:x:2", "t2")), 1);
}
