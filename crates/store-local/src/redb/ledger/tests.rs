//! Tests of the ledger, each with a database of its own.

use crate::redb::ledger::*;
use oaimend_oai::Window;
use oaimend_store::ledger::{
    EVICTION_INTERVAL_SECS, KEPT_SECS, LISTS_EVICTED_TOGETHER, LISTS_MAX, ListStatus,
};

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

fn open() -> (tempfile::TempDir, RedbLedger) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let ledger = RedbLedger::open(data.path(), &Databases::default()).expect("it can be written to");
    (data, ledger)
}

fn delivered(list: u64, page: u32, hashes: &[u64], next: Option<&str>) -> DeliveredPage {
    DeliveredPage {
        repository: "x".into(),
        verb: "ListRecords",
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
        now_secs: 1_000_000,
    }
}

fn find(ledger: &RedbLedger, repository: &str, verb: &str, token: &str) -> Option<TokenTarget> {
    futures::executor::block_on(ledger.token_target(repository, verb, token)).expect("readable")
}

fn found(ledger: &RedbLedger, token: &str) -> Option<ListPage> {
    find(ledger, "x", "ListRecords", token)?.place.map(|(place, _)| place)
}

fn record_part(ledger: &RedbLedger, page: DeliveredPage, part: u64) -> bool {
    futures::executor::block_on(ledger.record_part(page, part))
}

fn has_windows(ledger: &RedbLedger, repository: &str, now_secs: u64) -> bool {
    futures::executor::block_on(ledger.has_windows(repository, now_secs))
}

fn token_origin(ledger: &RedbLedger, verb: &str, token: &str) -> TokenOrigin {
    futures::executor::block_on(ledger.token_origin("x", verb, token))
}

fn epoch(ledger: &RedbLedger) -> u64 {
    futures::executor::block_on(ledger.epoch())
}

/// Waits until everything that was recorded is in the database.
fn write(ledger: &RedbLedger) {
    let page = DeliveredPage { repository: "other".into(), now_secs: 0, ..delivered(0, 0, &[], None) };
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
    let before = ledger.delivered_before("x", place).expect("readable");
    assert_eq!(before.len(), long.len(), "page 1 is not needed");
    assert_eq!(ledger.part("x", place, 99).expect("readable"), Some(vec![4, 5, 6]));
    assert!(!ledger.list("x", 7).expect("readable").expect("known").complete);
}

#[test]
fn a_record_is_readable_at_once_and_after_a_restart() {
    let (data, ledger) = open();
    ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    ledger.record(delivered(7, 1, &[3], Some("b")));
    let place = ListPage { list: 7, page: 2 };
    let check = |ledger: &RedbLedger| {
        assert_eq!(found(ledger, "b"), Some(place));
        assert_eq!(find(ledger, "y", "ListRecords", "b"), None);
        assert_eq!(find(ledger, "x", "ListSets", "b"), None);
        assert_eq!(ledger.delivered_before("x", place).expect("readable"), [1, 2, 3]);
        assert_eq!(ledger.delivered_before("x", ListPage { list: 7, page: 1 }).expect("readable"), [1, 2]);
        assert_eq!(ledger.first_item_page("x", 7, 3).expect("readable"), Some(1));
        assert_eq!(ledger.first_item_page("x", 7, 4).expect("readable"), None);
        let facts = ledger.list("x", 7).expect("readable").expect("known");
        assert!(facts.complete && facts.items == 3 && facts.first_query == LIST, "{facts:?}");
    };
    check(&ledger);
    drop(ledger);
    check(&RedbLedger::open(data.path(), &Databases::default()).expect("it survives"));
}

#[test]
fn a_page_that_is_requested_twice_counts_once() {
    let (_data, ledger) = open();
    ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    assert!(record_part(&ledger, delivered(7, 1, &[3, 4], None), 34));
    assert_eq!(ledger.part("x", ListPage { list: 7, page: 1 }, 34).expect("readable"), Some(vec![3, 4]));
    assert_eq!(ledger.part("x", ListPage { list: 7, page: 1 }, 35).expect("readable"), None);
    ledger.record(delivered(7, 1, &[3, 4, 5], Some("b")));
    ledger.record(delivered(7, 1, &[3, 4, 5], Some("b")));
    assert_eq!(ledger.list("x", 7).expect("readable").expect("known").items, 5);
    assert_eq!(
        ledger.delivered_before("x", ListPage { list: 7, page: 2 }).expect("readable"),
        [1, 2, 3, 4, 5]
    );
}

#[test]
fn a_token_of_lists_with_different_arguments_is_ambiguous() {
    let (_data, ledger) = open();
    let of_set = |page: DeliveredPage| DeliveredPage { first_query: format!("{LIST}&set=s"), ..page };
    ledger.record(delivered(7, 0, &[1], Some("a")));
    ledger.record(of_set(delivered(8, 0, &[1], Some("a"))));
    assert_eq!(found(&ledger, "a"), None);
    ledger.record(delivered(9, 0, &[1], Some("b")));
    ledger.record(delivered(9, 1, &[2], None));
    ledger.record(of_set(delivered(10, 0, &[1], Some("b"))));
    assert_eq!(found(&ledger, "b"), Some(ListPage { list: 10, page: 1 }), "the other list has ended");
}

#[test]
fn harvests_with_the_same_arguments_share_a_list_and_its_common_items_count() {
    let (_data, ledger) = open();
    let at = |page| ListPage { list: 7, page };
    ledger.record(delivered(7, 0, &[1, 2, 3], Some("a")));
    let ordered = "verb=ListRecords&metadataPrefix=oai_dc&set=s";
    let in_another_order = "verb=ListRecords&set=s&metadataPrefix=oai_dc";
    ledger.record(delivered(8, 0, &[2, 3, 4], Some("a")));
    assert_eq!(found(&ledger, "a"), Some(at(1)));
    assert_eq!(ledger.delivered_before("x", at(1)).expect("readable"), [2, 3]);
    assert_eq!(ledger.list("x", 7).expect("readable").expect("known").items, 2);
    ledger.record(delivered(7, 1, &[5, 5, 6], Some("b")));
    ledger.record(delivered(7, 1, &[6, 5], Some("b")));
    assert_eq!(ledger.delivered_before("x", at(2)).expect("readable"), [2, 3, 5, 6]);
    ledger.record(DeliveredPage { first_query: ordered.into(), ..delivered(9, 0, &[1], Some("c")) });
    ledger
        .record(DeliveredPage { first_query: in_another_order.into(), ..delivered(10, 0, &[1], Some("c")) });
    assert_eq!(found(&ledger, "c"), Some(ListPage { list: 9, page: 1 }));
}

#[test]
fn a_harvest_that_starts_alone_replaces_the_delivered_items() {
    let (_data, ledger) = open();
    let at = |page| ListPage { list: 7, page };
    for list in [7, 8] {
        ledger.record(delivered(list, 0, &[1, 2], Some("a")));
    }
    ledger.record(delivered(7, 1, &[3], None));
    ledger.record(delivered(9, 0, &[2, 4], Some("a")));
    assert_eq!(ledger.delivered_before("x", at(1)).expect("readable"), [2], "one of two is in progress");
    ledger.record(delivered(7, 1, &[3], None));
    ledger.record(delivered(7, 1, &[3], None));
    ledger.record(delivered(10, 0, &[4, 5], Some("a")));
    assert_eq!(ledger.delivered_before("x", at(1)).expect("readable"), [4, 5]);
}

#[test]
fn harvests_that_follow_reused_tokens_are_mixed() {
    let (_data, ledger) = open();
    let is_mixed = |token: &str| {
        let target = find(&ledger, "x", "ListRecords", token).expect("it is known");
        target.place.expect("the arguments are the same").1.mixed_harvests().is_some()
    };
    let points_back = |token: &str, page| {
        ledger.token_points_back("x", "ListRecords", token, ListPage { list: 7, page }).expect("readable")
    };
    for (page, token) in [(0, "a"), (1, "b"), (2, "a")] {
        ledger.record(delivered(7, page, &[u64::from(page)], Some(token)));
    }
    assert!(!is_mixed("a") && !is_mixed("b"), "one harvest is not mixed");
    assert!(points_back("a", 2) && points_back("b", 3) && !points_back("b", 1) && !points_back("c", 3));
    ledger.record(delivered(8, 0, &[0], Some("a")));
    assert!(is_mixed("a") && is_mixed("b"));
    assert_eq!(ledger.visits("x", 7, 0).expect("readable"), 1);
    let refused = || DeliveredPage { status: ListStatus::Loops, ..delivered(7, 3, &[], None) };
    ledger.record(refused());
    assert!(is_mixed("a"), "one has ended");
    assert_eq!(ledger.visits("x", 7, 0).expect("readable"), 0, "the visits of the other count from now on");
    ledger.record(refused());
    ledger.record(delivered(9, 0, &[0], Some("a")));
    assert!(!is_mixed("a"), "all have ended");
}

#[test]
fn a_list_with_an_unknown_start_is_known_from_its_request_token() {
    let (_data, ledger) = open();
    ledger.record(DeliveredPage {
        request_token: Some("a".into()),
        first_query: String::new(),
        ..delivered(7, 1, &[1], Some("b"))
    });
    assert_eq!(found(&ledger, "a"), Some(ListPage { list: 7, page: 1 }));
    assert!(
        ledger.token_points_back("x", "ListRecords", "a", ListPage { list: 7, page: 2 }).expect("readable")
    );
    assert!(!ledger.list("x", 7).expect("readable").expect("known").complete);
}

#[test]
fn the_window_of_a_token_covers_all_its_lists() {
    let (data, ledger) = open();
    let window = |from: &str, until: &str| Window {
        from: Some(format!("2020-01-01T{from}Z")),
        until: Some(format!("2020-01-01T{until}Z")),
    };
    let within = |ledger: &RedbLedger, token: &str| {
        find(ledger, "x", "ListRecords", token).expect("it is known").within
    };
    let list = |list: u64, token: &str, within: Option<Window>| {
        ledger.record(DeliveredPage { within, ..delivered(list, 0, &[1], Some(token)) });
        ledger.record(delivered(list, 1, &[2], None));
    };
    list(7, "a", Some(window("10:00:00", "11:00:00")));
    assert_eq!(within(&ledger, "a"), Some(window("10:00:00", "11:00:00")));
    list(8, "a", Some(window("09:00:00", "09:30:00")));
    list(9, "b", Some(window("09:00:00", "09:30:00")));
    list(10, "b", None);
    list(11, "b", Some(window("09:00:00", "09:30:00")));
    assert!(has_windows(&ledger, "x", 1_000_000) && !has_windows(&ledger, "y", 1_000_000));
    drop(ledger);
    let ledger = RedbLedger::open(data.path(), &Databases::default()).expect("it survives");
    assert!(has_windows(&ledger, "x", 1_000_000) && !has_windows(&ledger, "x", 1_000_000 + 2 * KEPT_SECS));
    assert_eq!(within(&ledger, "a"), Some(window("09:00:00", "11:00:00")), "also of a list that has ended");
    assert_eq!(within(&ledger, "b"), None, "one of them had no window");
    let facts = ledger.list("x", 7).expect("readable").expect("known");
    assert_eq!(facts.within, Some(window("10:00:00", "11:00:00")));
}

#[test]
fn an_incomplete_page_makes_the_list_incomplete() {
    let (_data, ledger) = open();
    ledger.record(delivered(7, 0, &[1], Some("a")));
    ledger.record(DeliveredPage { complete: false, ..delivered(7, 1, &[2], Some("b")) });
    assert!(!ledger.list("x", 7).expect("readable").expect("known").complete);
    ledger.record(delivered(8, 1, &[2], Some("c")));
    assert!(!ledger.list("x", 8).expect("readable").expect("known").complete, "its first page is missing");
}

#[test]
fn the_progress_of_a_replay_is_known_until_the_replay_is_over() {
    let (data, ledger) = open();
    let place = ListPage { list: 7, page: 2 };
    let progress = |query: Option<&str>| ReplayProgress {
        repository: "x".into(),
        place,
        query: query.map(str::to_owned),
    };
    ledger.record_replay(progress(Some("q")));
    drop(ledger);
    let ledger = RedbLedger::open(data.path(), &Databases::default()).expect("it survives");
    assert_eq!(ledger.replay_query("x", place).expect("readable").as_deref(), Some("q"));
    assert_eq!(ledger.replay_query("x", ListPage { page: 3, ..place }).expect("readable"), None);
    ledger.record_replay(progress(None));
    assert_eq!(ledger.replay_query("x", place).expect("readable"), None);
}

#[test]
fn the_last_datestamp_is_from_an_earlier_page() {
    let (_data, ledger) = open();
    for (page, date) in [(0, Some("2020-01-01")), (1, Some("2020-01-02")), (2, None), (3, Some("2020-01-04"))]
    {
        let last_datestamp = date.map(str::to_owned);
        ledger.record(DeliveredPage { last_datestamp, ..delivered(7, page, &[u64::from(page)], Some("a")) });
    }
    let before = |page| ledger.last_datestamp("x", ListPage { list: 7, page }).expect("readable");
    assert_eq!(
        [before(0), before(1), before(3)].map(Option::unwrap_or_default),
        ["", "2020-01-01", "2020-01-02"]
    );
}

#[test]
fn abandoned_lists_are_evicted() {
    let (_data, ledger) = open();
    let (last_datestamp, place) = (Some("2020-01-01".to_owned()), ListPage { list: 7, page: 1 });
    ledger.record(DeliveredPage { last_datestamp, ..delivered(7, 0, &[1], Some("a")) });
    ledger.record_replay(ReplayProgress { repository: "x".into(), place, query: Some("q".into()) });
    assert!(ledger.last_datestamp("x", place).expect("readable").is_some());
    assert!(ledger.replay_query("x", place).expect("readable").is_some());
    write(&ledger);
    ledger.record(DeliveredPage { now_secs: 1_000_001 + KEPT_SECS, ..delivered(8, 0, &[1], Some("b")) });
    write(&ledger);
    assert_eq!((found(&ledger, "a"), found(&ledger, "b")), (None, Some(ListPage { list: 8, page: 1 })));
    assert_eq!(ledger.list("x", 7).expect("readable"), None);
    assert_eq!(ledger.last_datestamp("x", place).expect("readable"), None);
    assert_eq!(ledger.replay_query("x", place).expect("readable"), None);
}

#[test]
fn a_token_that_points_to_a_later_list_stays_when_its_first_list_is_removed() {
    let (_data, ledger) = open();
    let of_set = |page: DeliveredPage| DeliveredPage { first_query: format!("{LIST}&set=s"), ..page };
    ledger.record(delivered(7, 0, &[1], Some("a")));
    ledger.record(delivered(7, 1, &[2], None));
    write(&ledger);
    let later = |secs: u64, page: DeliveredPage| DeliveredPage { now_secs: 1_000_001 + secs, ..page };
    ledger.record(later(KEPT_SECS - 10, of_set(delivered(8, 0, &[1], Some("a")))));
    write(&ledger);
    ledger.record(later(KEPT_SECS + EVICTION_INTERVAL_SECS, delivered(9, 0, &[1], Some("b"))));
    write(&ledger);
    assert_eq!(ledger.list("x", 7).expect("readable"), None);
    assert_eq!(found(&ledger, "a"), Some(ListPage { list: 8, page: 1 }));
}

#[test]
fn removed_rows_are_absent_before_and_after_they_are_written() {
    let (_data, ledger) = open();
    let place = ListPage { list: 7, page: 2 };
    ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    ledger.record_replay(ReplayProgress { repository: "x".into(), place, query: Some("q".into()) });
    write(&ledger);
    assert_eq!(ledger.replay_query("x", place).expect("readable").as_deref(), Some("q"));
    ledger.record(delivered(7, 0, &[1], Some("a")));
    let replays = rows::of_list("x", 7, ListRow::Replay(0))..rows::of_list("x", 7, ListRow::Replay(9));
    for _ in 0..2 {
        assert!(ledger.read_range(replays.clone()).expect("readable").is_empty());
        assert_eq!(ledger.replay_query("x", place).expect("readable"), None);
        assert_eq!(ledger.delivered_before("x", place).expect("readable"), [1]);
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
        let lists = ledger.read_range(rows::lists("x")).expect("readable");
        let tokens = rows::tokens("x");
        let end = [tokens.as_slice(), &[0xff]].concat();
        let tokens = ledger.read_range(tokens..end).expect("readable");
        let lists = lists.keys().filter_map(|key| rows::list_of_key(key)).map(|(_, list)| list);
        (lists.collect::<Vec<u64>>(), tokens.len())
    };
    let begin = |ledger: &RedbLedger, list: u64| {
        let page = delivered(list, 0, &[list], Some(&format!("token {list}")));
        assert!(record_part(ledger, DeliveredPage { now_secs: 1_000_000 + list, ..page }, list));
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
fn a_later_list_with_the_same_tokens_is_as_old_as_a_harvest_that_may_continue_in_it() {
    const WEEK_SECS: u64 = 7 * 24 * 3600;
    let (_data, ledger) = open();
    let first_page = |list, weeks: u64, token: &str| {
        let now_secs = 1_000_000 + weeks * WEEK_SECS;
        let page = delivered(list, 0, &[list], Some(token));
        ledger.record(DeliveredPage { now_secs, state_secs: Some(now_secs as i64), ..page });
        let list = ledger.list("x", found(&ledger, token).expect("it was recorded").list).expect("readable");
        let state_secs = list.and_then(|list| list.state_secs()).expect("a state");
        (state_secs - 1_000_000) / WEEK_SECS as i64
    };
    assert_eq!(first_page(1, 0, "a"), 0);
    // The list of a week before is removed, and its tokens come again.
    assert_eq!(first_page(2, 1, "a"), 0);
    assert_eq!(first_page(3, 1, "b"), 1);
    let last = DeliveredPage { status: ListStatus::Ended, ..delivered(2, 1, &[9], None) };
    ledger.record(DeliveredPage { now_secs: 1_000_001 + WEEK_SECS, ..last });
    assert_eq!(first_page(4, 1, "a"), 0, "the harvest that ended may be another one");
    assert_eq!(first_page(5, 3, "a"), 0);
    assert_eq!(first_page(6, 6, "a"), 3, "no harvest takes a month");
    assert_eq!(first_page(7, 20, "a"), 20);
}

fn with_origin(page: DeliveredPage, origin: u64) -> DeliveredPage {
    DeliveredPage { next_origin: Some(origin), ..page }
}

#[test]
fn a_token_after_different_pages_is_ambiguous_for_an_hour() {
    const HOUR: u64 = 3_600;
    let (data, ledger) = open();
    let origin = |ledger: &RedbLedger| token_origin(ledger, "ListRecords", "a");
    let later = |secs: u64, page: DeliveredPage| DeliveredPage { now_secs: 1_000_000 + secs, ..page };
    assert_eq!(origin(&ledger), TokenOrigin::Unknown);
    ledger.record(with_origin(delivered(7, 0, &[1], Some("a")), 5));
    ledger.record(with_origin(delivered(8, 0, &[1], Some("a")), 5));
    assert_eq!(origin(&ledger), TokenOrigin::Known(5));
    assert_eq!(token_origin(&ledger, "ListIdentifiers", "a"), TokenOrigin::Unknown);
    ledger.record(later(HOUR, with_origin(delivered(9, 0, &[2], Some("a")), 6)));
    assert_eq!(origin(&ledger), TokenOrigin::Ambiguous);
    ledger.record(later(2 * HOUR, with_origin(delivered(9, 0, &[2], Some("a")), 6)));
    drop(ledger);
    let ledger = RedbLedger::open(data.path(), &Databases::default()).expect("it survives");
    assert_eq!(origin(&ledger), TokenOrigin::Ambiguous);
    ledger.record(later(3 * HOUR + 1, with_origin(delivered(9, 0, &[2], Some("a")), 7)));
    assert_eq!(origin(&ledger), TokenOrigin::Known(7));
    ledger.record(later(3 * HOUR + 2, delivered(9, 0, &[2], Some("a"))));
    assert_eq!(origin(&ledger), TokenOrigin::Ambiguous, "its pages are not known");
    ledger.close();
    assert_eq!(token_origin(&ledger, "ListRecords", "b"), TokenOrigin::Ambiguous, "unreadable");
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

#[test]
fn a_token_from_a_cached_page_leads_to_its_first_place() {
    let (_data, ledger) = open();
    let next = |list, page, token: Option<&str>| delivered(list, page, &[u64::from(page)], token);
    for (page, token) in [(0, "a"), (1, "b"), (2, "b")] {
        ledger.record(next(7, page, Some(token)));
    }
    assert_eq!(found(&ledger, "b"), Some(ListPage { list: 7, page: 3 }));
    ledger.record(DeliveredPage { status: ListStatus::Loops, ..next(7, 3, None) });
    // Another harvest receives the page with the token from the cache.
    ledger.record(next(8, 0, Some("a")));
    assert_eq!(found(&ledger, "b"), Some(ListPage { list: 7, page: 2 }));
    ledger.record(DeliveredPage { request_token: Some("b".into()), ..next(7, 2, Some("b")) });
    assert_eq!(found(&ledger, "b"), Some(ListPage { list: 7, page: 3 }));
    let target = find(&ledger, "x", "ListRecords", "b").expect("known");
    assert!(target.is_of_round && target.place.is_some_and(|(_, list)| list.reuses_tokens));
}

#[test]
fn identifiers_are_known_while_all_pages_announce_one_size() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (_data, ledger) = open();
    let sized = |list, page, names: &[u64], list_size, next| DeliveredPage {
        list_size,
        names: names.to_vec(),
        ..delivered(list, page, &[100 + u64::from(page)], Some(next))
    };
    let names = |list, page, size| {
        runtime.block_on(ledger.delivered_names("x", ListPage { list, page }, size)).expect("readable")
    };
    ledger.record(sized(7, 0, &[1, 2], Some(4), "a"));
    ledger.record(sized(7, 1, &[3], Some(4), "b"));
    assert_eq!(names(7, 2, 4), Some(vec![1, 2, 3]));
    assert_eq!(names(7, 2, 5), None, "another size");
    assert_eq!(names(7, 3, 4), None, "page 2 is not known");
    ledger.record(sized(7, 2, &[4], Some(5), "c"));
    assert_eq!((names(7, 3, 4), names(7, 3, 5)), (None, None), "two sizes");
    ledger.record(sized(8, 0, &[1, 2], None, "d"));
    ledger.record(sized(8, 1, &[3], Some(4), "e"));
    assert_eq!(names(8, 2, 4), None, "none on the first page");
    // Two harvests of one list: only what both received.
    ledger.record(sized(9, 0, &[1, 2], Some(4), "f"));
    ledger.record(sized(10, 0, &[2, 3], Some(4), "f"));
    assert_eq!(names(9, 1, 4), Some(vec![2]));
}
