//! Tests of what the contract of ledgers leaves open, each with a database of its own.

use crate::redb::ledger::*;
use oaimend_oai::{UnixSecs, Verb};
use oaimend_store::RepositoryId;
use oaimend_store::ledger::{LISTS_EVICTED_TOGETHER, LISTS_MAX, ListStatus};

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

fn open() -> (tempfile::TempDir, RedbLedger) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let ledger = RedbLedger::open(data.path(), &Databases::default()).expect("it can be written to");
    (data, ledger)
}

fn delivered(list: u64, page: u32, hashes: &[u64], next: Option<&str>) -> DeliveredPage {
    DeliveredPage {
        repository: "x".into(),
        verb: Verb::ListRecords,
        place: ListPage { list, page },
        first_query: LIST.into(),
        within: None,
        hashes: hashes.to_vec(),
        complete: true,
        names: hashes.to_vec(),
        list_size: None,
        request_token: None,
        request_origin: None,
        next_token: next.map(str::to_owned),
        next_origin: None,
        next_items: None,
        status: if next.is_none() { ListStatus::Ended } else { ListStatus::Continues },
        last_datestamp: None,
        state_secs: None,
        now_secs: UnixSecs(1_000_000),
    }
}

fn find(ledger: &RedbLedger, repository: RepositoryId<'_>, verb: Verb, token: &str) -> Option<TokenTarget> {
    futures::executor::block_on(ledger.token_target(repository, verb, token)).expect("readable")
}

fn found(ledger: &RedbLedger, token: &str) -> Option<ListPage> {
    find(ledger, RepositoryId("x"), Verb::ListRecords, token)?.place.map(|(place, _)| place)
}

fn record_part(ledger: &RedbLedger, page: DeliveredPage, part: u64) -> bool {
    futures::executor::block_on(ledger.record_part(page, part))
}

fn epoch(ledger: &RedbLedger) -> u64 {
    futures::executor::block_on(ledger.epoch())
}

/// Waits until everything that was recorded is in the database.
fn write(ledger: &RedbLedger) {
    let page =
        DeliveredPage { repository: "other".into(), now_secs: UnixSecs(0), ..delivered(0, 0, &[], None) };
    assert!(record_part(ledger, page, 0));
}

#[test]
fn a_list_that_is_too_long_to_replay_keeps_the_part_of_our_token() {
    let (_data, ledger) = open();
    let long: Vec<u64> = (0..999_999).collect();
    ledger.record(delivered(7, 0, &long, Some("a")));
    ledger.record(delivered(7, 1, &[1, 2, 3], Some("b")));
    let place = ListPage { list: 7, page: 2 };
    assert!(record_part(&ledger, delivered(7, 2, &[4, 5, 6], None), 99));
    let before = ledger.delivered_before(RepositoryId("x"), place).expect("readable");
    assert_eq!(before.len(), long.len(), "page 1 is not needed");
    assert_eq!(ledger.part(RepositoryId("x"), place, 99).expect("readable"), Some(vec![4, 5, 6]));
    assert!(!ledger.list(RepositoryId("x"), 7).expect("readable").expect("known").complete);
}

#[test]
fn harvests_that_follow_reused_tokens_are_mixed() {
    let (_data, ledger) = open();
    let is_mixed = |token: &str| {
        let target = find(&ledger, RepositoryId("x"), Verb::ListRecords, token).expect("it is known");
        target.place.expect("the arguments are the same").1.mixed_harvests().is_some()
    };
    let points_back = |token: &str, page| {
        ledger
            .token_points_back(RepositoryId("x"), Verb::ListRecords, token, ListPage { list: 7, page })
            .expect("readable")
    };
    for (page, token) in [(0, "a"), (1, "b"), (2, "a")] {
        ledger.record(delivered(7, page, &[u64::from(page)], Some(token)));
    }
    assert!(!is_mixed("a") && !is_mixed("b"), "one harvest is not mixed");
    assert!(points_back("a", 2) && points_back("b", 3) && !points_back("b", 1) && !points_back("c", 3));
    ledger.record(delivered(8, 0, &[0], Some("a")));
    assert!(is_mixed("a") && is_mixed("b"));
    assert_eq!(ledger.visits(RepositoryId("x"), 7, 0).expect("readable"), 1);
    let refused = || DeliveredPage { status: ListStatus::Loops, ..delivered(7, 3, &[], None) };
    ledger.record(refused());
    assert!(is_mixed("a"), "one has ended");
    assert_eq!(
        ledger.visits(RepositoryId("x"), 7, 0).expect("readable"),
        0,
        "the visits of the other count from now on"
    );
    ledger.record(refused());
    ledger.record(delivered(9, 0, &[0], Some("a")));
    assert!(!is_mixed("a"), "all have ended");
}

#[test]
fn removed_rows_are_absent_before_and_after_they_are_written() {
    let (_data, ledger) = open();
    let place = ListPage { list: 7, page: 2 };
    ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    ledger.record_replay(ReplayProgress { repository: "x".into(), place, query: Some("q".into()) });
    write(&ledger);
    assert_eq!(ledger.replay_query(RepositoryId("x"), place).expect("readable").as_deref(), Some("q"));
    ledger.record(delivered(7, 0, &[1], Some("a")));
    let replays = rows::of_list(RepositoryId("x"), 7, ListRow::Replay(0))
        ..rows::of_list(RepositoryId("x"), 7, ListRow::Replay(9));
    for _ in 0..2 {
        assert!(ledger.read_range(replays.clone()).expect("readable").is_empty());
        assert_eq!(ledger.replay_query(RepositoryId("x"), place).expect("readable"), None);
        assert_eq!(ledger.delivered_before(RepositoryId("x"), place).expect("readable"), [1]);
        write(&ledger);
    }
}

#[test]
fn tables_of_an_earlier_format_are_removed() {
    const OTHER: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("windows");
    let (data, ledger) = open();
    ledger.record(delivered(7, 0, &[1], Some("a")));
    drop(ledger);
    let database = Database::create(data.path().join("ledger.redb")).expect("it is closed");
    let transaction = database.begin_write().expect("writable");
    drop(transaction.open_table(OTHER).expect("writable").insert("x", 1).expect("writable"));
    transaction.commit().expect("writable");
    drop(database);
    let ledger = RedbLedger::open(data.path(), &Databases::default()).expect("it survives");
    let other = ledger.0.database.with(|database| {
        let reading = database.begin_read().expect("readable");
        reading.open_table(OTHER).is_err()
    });
    assert!(other.expect("the ledger is open"));
    assert_eq!(found(&ledger, "a"), Some(ListPage { list: 7, page: 1 }));
}

#[test]
fn the_number_of_lists_is_limited() {
    let (data, ledger) = open();
    let count = |ledger: &RedbLedger| {
        let lists = ledger.read_range(rows::lists(RepositoryId("x"))).expect("readable");
        let tokens = rows::tokens(RepositoryId("x"));
        let end = [tokens.as_slice(), &[0xff]].concat();
        let tokens = ledger.read_range(tokens..end).expect("readable");
        let lists = lists.keys().filter_map(|key| rows::list_of_key(key)).map(|(_, list)| list);
        (lists.collect::<Vec<u64>>(), tokens.len())
    };
    let begin = |ledger: &RedbLedger, list: u64| {
        let page = delivered(list, 0, &[list], Some(&format!("token {list}")));
        assert!(record_part(
            ledger,
            DeliveredPage { now_secs: UnixSecs(1_000_000 + list as i64), ..page },
            list
        ));
    };
    (0..LISTS_MAX).for_each(|list| begin(&ledger, list));
    assert_eq!(count(&ledger).0.len() as u64, LISTS_MAX);
    drop(ledger);
    let ledger = RedbLedger::open(data.path(), &Databases::default()).expect("it survives");
    for list in LISTS_MAX..LISTS_MAX + 2 * LISTS_EVICTED_TOGETHER {
        begin(&ledger, list);
        let (lists, tokens) = count(&ledger);
        assert!(lists.len() as u64 <= LISTS_MAX && tokens == lists.len(), "{}", lists.len());
        assert!(lists.contains(&list) && lists.len() as u64 >= LISTS_MAX - LISTS_EVICTED_TOGETHER);
    }
    let oldest = count(&ledger).0.into_iter().min();
    assert_eq!(oldest, Some(2 * LISTS_EVICTED_TOGETHER), "the oldest go first");
}

#[test]
fn pages_that_may_be_lost_begin_an_epoch() {
    let (data, ledger) = open();
    let first = epoch(&ledger);
    drop(ledger);
    let ledger = RedbLedger::open(data.path(), &Databases::default()).expect("it was closed");
    assert_eq!(epoch(&ledger), first);
    let killed = tempfile::tempdir().expect("a temporary folder");
    write(&ledger);
    std::fs::copy(data.path().join("ledger.redb"), killed.path().join("ledger.redb")).expect("a copy");
    assert_ne!(
        epoch(&RedbLedger::open(killed.path(), &Databases::default()).expect("it is repaired")),
        first
    );
    ledger.close();
    ledger.record(delivered(7, 0, &[1], Some("a")));
    assert_ne!(epoch(&ledger), first, "the page was dropped");
}
