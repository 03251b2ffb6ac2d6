//! The contract of [`Quarantine`].

use crate::Backend;
use oaimend_store::{
    Quarantine, QuarantineBatch, QuarantineEntry, QuarantineError, QuarantineQuery, QuarantineSelection,
    QuarantineSize, QuarantineSizes, QuarantineState, QuarantinedRecord, RepositoryId, WholeRecords,
};

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

fn record(identifier: &str, raw: &[u8]) -> QuarantinedRecord {
    let identifier = Some(identifier.to_owned());
    QuarantinedRecord { identifier, why: "mismatched-tags", offset: 7, raw: raw.to_vec() }
}

/// Records of a list of the repository `x`, which has room for all of them.
fn batch(received_at: &str, records: &[QuarantinedRecord]) -> QuarantineBatch {
    QuarantineBatch {
        repository: "x".to_owned(),
        request: LIST.to_owned(),
        metadata_prefix: None,
        received_at: received_at.to_owned(),
        bytes_max: 1 << 20,
        records: records.to_vec(),
    }
}

/// The bytes of each record of `batch` whose identifier has one byte.
const ONE: u64 = 4096 + 512 + 1 + LIST.len() as u64;

/// The records with room for this number of them.
fn within(count_max: u64, batch: QuarantineBatch) -> QuarantineBatch {
    QuarantineBatch { bytes_max: count_max * ONE, ..batch }
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

async fn list(quarantine: &dyn Quarantine, repository: RepositoryId<'_>) -> Vec<(String, QuarantineEntry)> {
    quarantine.list(repository, QuarantineQuery::default()).await.expect("readable")
}

/// The entries of the repository `x`: identifiers, and when they were resolved.
async fn states(quarantine: &dyn Quarantine) -> Vec<(String, Option<String>)> {
    let entries = list(quarantine, RepositoryId("x")).await.into_iter().map(|(_, entry)| entry);
    let mut states: Vec<_> =
        entries.map(|entry| (entry.identifier.unwrap_or_default(), entry.resolved_at)).collect();
    states.sort();
    states
}

/// The identifiers of the entries of the repository `x`, one after the other.
async fn names(quarantine: &dyn Quarantine) -> String {
    states(quarantine).await.into_iter().map(|(identifier, _)| identifier).collect()
}

async fn may_be_open(quarantine: &dyn Quarantine, repository: RepositoryId<'_>, identifier: &str) -> bool {
    let found = quarantine.open_among(repository, vec![identifier.to_owned(), "no record".to_owned()]).await;
    assert!(found.iter().all(|found| found == identifier), "{found:?}");
    !found.is_empty()
}

pub async fn a_repeated_record_is_stored_once_and_counted(backend: &impl Backend) {
    let stores = backend.open();
    let quarantine = &stores.quarantine;
    let records = [record("oai:x:1", b"<a>"), record("oai:x:1", b"<b>"), record("oai:x:1", b"<a>")];
    quarantine.put(batch("t1", &records)).await.expect("it fits");
    let again = QuarantineBatch { request: "verb=2".to_owned(), ..batch("t2", &records[..1]) };
    quarantine.put(again).await.expect("it fits");
    let other = QuarantineBatch { repository: "y".to_owned(), ..batch("t3", &records[..1]) };
    quarantine.put(other).await.expect("it fits");
    stores.close();
    let quarantine = backend.open().quarantine;
    let listed = list(&*quarantine, RepositoryId("x")).await;
    let mut seen: Vec<u64> = listed.iter().map(|(_, entry)| entry.seen).collect();
    seen.sort_unstable();
    assert_eq!(seen, [1, 3]);
    let (key, entry) = listed.iter().find(|(_, entry)| entry.seen == 3).expect("the first record");
    assert_eq!(*key, records[0].key("x"));
    assert_eq!((entry.first_seen.as_str(), entry.last_seen.as_str()), ("t1", "t2"));
    assert_eq!((entry.request.as_str(), entry.offset, entry.bytes), ("verb=2", 7, 3));
    let found = quarantine.find(RepositoryId("x"), key).await.expect("readable");
    assert_eq!(found, Some((entry.clone(), b"<a>".to_vec())));
    assert_eq!(quarantine.find(RepositoryId("y"), key).await.expect("readable"), None);
    assert_eq!(list(&*quarantine, RepositoryId("y")).await.len(), 1);
}

pub async fn a_full_quarantine_stores_nothing_of_a_response(backend: &impl Backend) {
    let quarantine = backend.open().quarantine;
    let [one, two] = [record("1", b"12345"), record("2", b"6")];
    let one = std::slice::from_ref(&one);
    quarantine.put(within(1, batch("t1", one))).await.expect("it fits exactly");
    let error = quarantine.put(within(1, batch("t2", &[one[0].clone(), two.clone()]))).await;
    assert!(matches!(error, Err(QuarantineError::Full { max: ONE })), "{error:?}");
    let almost = QuarantineBatch { bytes_max: 3 * ONE - 1, ..batch("t2", &[two, record("3", b"7")]) };
    let error = quarantine.put(almost).await;
    assert!(matches!(error, Err(QuarantineError::Full { .. })), "{error:?}");
    quarantine.put(within(1, batch("t3", one))).await.expect("it is there already");
    let seen: Vec<u64> =
        list(&*quarantine, RepositoryId("x")).await.iter().map(|(_, entry)| entry.seen).collect();
    assert_eq!(seen, [2], "the refused responses changed nothing");
    let other = QuarantineBatch { repository: "y".to_owned(), ..batch("t4", one) };
    quarantine.put(within(1, other)).await.expect("each repository has its own limit");
}

pub async fn removed_entries_are_gone_and_make_room(backend: &impl Backend) {
    let quarantine = backend.open().quarantine;
    for (name, time) in
        [("1", "2026-01-01T00:00:00Z"), ("2", "2026-02-01T00:00:00Z"), ("3", "2026-02-01T00:00:00Z")]
    {
        quarantine.put(within(3, batch(time, &[record(name, b"a")]))).await.expect("it fits");
    }
    let other = QuarantineBatch { repository: "y".to_owned(), ..batch("t", &[record("1", b"1")]) };
    quarantine.put(other).await.expect("it fits");
    let size = |records| QuarantineSizes {
        open: QuarantineSize { records, bytes: records * ONE },
        ..QuarantineSizes::default()
    };
    let sizes = async || quarantine.sizes().await.expect("readable");
    assert_eq!(sizes().await, [("x".to_owned(), size(3)), ("y".to_owned(), size(1))]);
    let fourth = || within(3, batch("2026-03-01T00:00:00Z", &[record("4", b"4")]));
    let error = quarantine.put(fourth()).await;
    assert!(matches!(error, Err(QuarantineError::Full { .. })), "{error:?}");
    let remove = async |which| quarantine.remove(RepositoryId("x"), which).await.expect("writable");
    let before = Some("2026-02-01".to_owned());
    assert_eq!(remove(QuarantineSelection::Matching { state: None, before }).await, 1);
    quarantine.put(fourth()).await.expect("there is room");
    let key = list(&*quarantine, RepositoryId("x")).await.remove(0).0;
    assert_eq!(remove(QuarantineSelection::Key(key.clone())).await, 1);
    assert_eq!(remove(QuarantineSelection::Key(key.clone())).await, 0);
    assert_eq!(quarantine.find(RepositoryId("x"), &key).await.expect("readable"), None);
    assert_eq!(sizes().await[0].1, size(2));
    assert_eq!(remove(QuarantineSelection::ALL).await, 2);
    assert!(!quarantine.has_open(RepositoryId("x")).await);
    assert_eq!(
        list(&*quarantine, RepositoryId("y")).await.len(),
        1,
        "the records of other repositories stay"
    );
}

pub async fn a_whole_record_resolves_its_entries_until_it_is_broken_again(backend: &impl Backend) {
    let stores = backend.open();
    let quarantine = &*stores.quarantine;
    let records = [record("oai:x:1", b"<a>"), record("oai:x:1", b"<b>"), record("oai:x:2", b"<a>")];
    quarantine.put(batch("t1", &records)).await.expect("it fits");
    let other = QuarantineBatch { repository: "y".to_owned(), ..batch("t1", &records) };
    quarantine.put(other).await.expect("it fits");
    assert!(
        quarantine.has_open(RepositoryId("x")).await
            && may_be_open(quarantine, RepositoryId("x"), "oai:x:1").await
    );
    assert!(
        !quarantine.has_open(RepositoryId("z")).await
            && !may_be_open(quarantine, RepositoryId("x"), "oai:x:3").await
    );
    let mut resolved = Vec::new();
    for (identifier, at) in [("oai:x:3", "t2"), ("oai:x:1", "t2"), ("oai:x:1", "t3")] {
        resolved.push(quarantine.resolve(whole(identifier, at)).await.expect("writable"));
    }
    assert_eq!(resolved, [0, 2, 0], "the first time counts");
    let at = |time: &str| Some(time.to_owned());
    let one = "oai:x:1".to_owned();
    let expected = [(one.clone(), at("t2")), (one.clone(), at("t2")), ("oai:x:2".to_owned(), None)];
    assert_eq!(states(quarantine).await, expected);
    stores.close();
    let quarantine = &*backend.open().quarantine;
    assert_eq!(states(quarantine).await, expected);
    assert!(
        !may_be_open(quarantine, RepositoryId("x"), "oai:x:1").await
            && may_be_open(quarantine, RepositoryId("y"), "oai:x:1").await
    );
    assert!(may_be_open(quarantine, RepositoryId("x"), "oai:x:2").await);
    quarantine.put(batch("t4", &records[..1])).await.expect("it is there already");
    assert_eq!(
        states(quarantine).await,
        [(one.clone(), None), (one, at("t2")), ("oai:x:2".to_owned(), None)]
    );
    assert!(may_be_open(quarantine, RepositoryId("x"), "oai:x:1").await);
    let sizes = quarantine.sizes().await.expect("readable").remove(0).1;
    let bytes = ONE - 1 + "oai:x:1".len() as u64;
    assert_eq!(sizes.open, QuarantineSize { records: 2, bytes: 2 * bytes });
    assert_eq!(sizes.resolved, QuarantineSize { records: 1, bytes });
}

pub async fn only_the_same_record_in_the_same_format_resolves_an_entry(backend: &impl Backend) {
    let quarantine = backend.open().quarantine;
    for (identifier, request) in [
        ("escaped&amp;1", LIST),
        ("marc", "verb=ListRecords&metadataPrefix=marc21"),
        ("header", "verb=ListIdentifiers&metadataPrefix=oai_dc"),
        ("unknown", "verb=ListRecords&resumptionToken=1"),
    ] {
        let one = batch("t1", &[record(identifier, b"<a>")]);
        quarantine.put(QuarantineBatch { request: request.to_owned(), ..one }).await.expect("it fits");
    }
    let nobody = QuarantinedRecord { identifier: None, ..record("", b"<a>") };
    quarantine.put(batch("t1", &[nobody])).await.expect("it fits");
    for (identifier, headers_only, resolved) in [
        ("escaped&1", true, 0),
        ("escaped&1", false, 1),
        ("marc", false, 0),
        ("header", true, 1),
        ("unknown", true, 0),
        ("unknown", false, 1),
        ("", false, 0),
    ] {
        let whole = WholeRecords { headers_only, ..whole(identifier, "t2") };
        assert_eq!(quarantine.resolve(whole).await.expect("writable"), resolved, "{identifier}");
    }
    let marc = WholeRecords { metadata_prefix: Some("marc21".to_owned()), ..whole("marc", "t2") };
    assert_eq!(quarantine.resolve(marc).await.expect("writable"), 1);
}

pub async fn the_entries_that_were_resolved_first_make_room(backend: &impl Backend) {
    let quarantine = &*backend.open().quarantine;
    for name in ["1", "2", "3", "4"] {
        quarantine.put(within(4, batch("t1", &[record(name, b"a")]))).await.expect("it fits");
    }
    for (name, at) in [("3", "t2"), ("1", "t3"), ("2", "t4")] {
        assert_eq!(quarantine.resolve(whole(name, at)).await.expect("writable"), 1);
    }
    quarantine.put(within(4, batch("t5", &[record("5", b"a")]))).await.expect("3 makes room");
    assert_eq!(names(quarantine).await, "1245");
    let two = [record("1", b"a"), record("6", b"a")];
    quarantine.put(within(4, batch("t6", &two))).await.expect("2 makes room; 1 is broken again");
    assert_eq!(names(quarantine).await, "1456");
    assert_eq!(quarantine.resolve(whole("6", "t7")).await.expect("writable"), 1);
    let before = states(quarantine).await;
    let error = quarantine.put(within(4, batch("t8", &[record("7", b"a"), record("8", b"a")]))).await;
    assert!(matches!(error, Err(QuarantineError::Full { .. })), "{error:?}");
    assert_eq!(states(quarantine).await, before, "nothing was removed for a response that does not fit");
    quarantine.put(within(4, batch("t9", &[record("7", b"a")]))).await.expect("6 makes room");
    assert_eq!(names(quarantine).await, "1457");
}

pub async fn entries_are_listed_by_state_and_after_a_key(backend: &impl Backend) {
    let quarantine = backend.open().quarantine;
    for name in ["1", "2", "3"] {
        quarantine.put(batch("t1", &[record(name, b"a")])).await.expect("it fits");
    }
    assert_eq!(quarantine.resolve(whole("2", "t2")).await.expect("writable"), 1);
    let keys = async |query| {
        let listed = quarantine.list(RepositoryId("x"), query).await.expect("readable");
        listed.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    let all = keys(QuarantineQuery::default()).await;
    assert!(all.len() == 3 && all.is_sorted());
    let query = |state| QuarantineQuery { state: Some(state), ..QuarantineQuery::default() };
    assert_eq!(keys(query(QuarantineState::Open)).await.len(), 2);
    assert_eq!(keys(query(QuarantineState::Resolved)).await, [record("2", b"a").key("x")]);
    assert_eq!(keys(QuarantineQuery { after: all[0].clone(), ..QuarantineQuery::default() }).await, all[1..]);
    assert_eq!(keys(QuarantineQuery { count_max: 2, ..QuarantineQuery::default() }).await, all[..2]);
}

pub async fn a_closed_quarantine_refuses(backend: &impl Backend) {
    let stores = backend.open();
    stores.quarantine.put(batch("t1", &[record("1", b"a")])).await.expect("it fits");
    stores.close();
    let quarantine = &stores.quarantine;
    assert!(matches!(quarantine.put(batch("t2", &[record("2", b"a")])).await, Err(QuarantineError::Closed)));
    assert!(matches!(
        quarantine.list(RepositoryId("x"), QuarantineQuery::default()).await,
        Err(QuarantineError::Closed)
    ));
    assert!(matches!(quarantine.resolve(whole("1", "t2")).await, Err(QuarantineError::Closed)));
    assert!(matches!(quarantine.find(RepositoryId("x"), "0").await, Err(QuarantineError::Closed)));
    assert!(matches!(
        quarantine.remove(RepositoryId("x"), QuarantineSelection::ALL).await,
        Err(QuarantineError::Closed)
    ));
    assert!(matches!(quarantine.sizes().await, Err(QuarantineError::Closed)));
    assert_eq!(names(&*backend.open().quarantine).await, "1");
}
