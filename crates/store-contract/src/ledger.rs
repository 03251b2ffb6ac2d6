//! The contract of [`ListLedger`].

use crate::Backend;
use oaimend_oai::{UnixSecs, Verb, Window};
use oaimend_store::ledger::{EVICTION_INTERVAL_SECS, KEPT_SECS};
use oaimend_store::{
    DeliveredPage, LedgerError, ListFacts, ListLedger, ListPage, ListStatus, ReplayProgress, RepositoryId,
    TokenOrigin, TokenTarget,
};

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

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

/// The same page of a list of a set.
fn of_set(page: DeliveredPage) -> DeliveredPage {
    DeliveredPage { first_query: format!("{LIST}&set=s"), ..page }
}

/// The same page of a harvest that is refused, because its list loops.
fn refused(page: DeliveredPage) -> DeliveredPage {
    DeliveredPage { status: ListStatus::Loops, ..page }
}

/// The same page, `secs` later.
fn later(secs: i64, page: DeliveredPage) -> DeliveredPage {
    DeliveredPage { now_secs: page.now_secs.plus(secs), ..page }
}

async fn target(ledger: &dyn ListLedger, token: &str) -> Option<TokenTarget> {
    ledger.token_target(RepositoryId("x"), Verb::ListRecords, token).await.expect("readable")
}

async fn place(ledger: &dyn ListLedger, token: &str) -> Option<ListPage> {
    target(ledger, token).await?.place.map(|(place, _)| place)
}

/// The items that a list delivered before a page.
async fn before(ledger: &dyn ListLedger, list: u64, page: u32) -> Vec<u64> {
    ledger.recorded_part(RepositoryId("x"), ListPage { list, page }, 0, true).await.expect("readable").earlier
}

async fn facts(ledger: &dyn ListLedger, list: u64) -> Option<ListFacts> {
    ledger
        .recorded_part(RepositoryId("x"), ListPage { list, page: 0 }, 0, false)
        .await
        .expect("readable")
        .list
}

/// Waits until everything that was recorded is on disk.
async fn write(ledger: &dyn ListLedger) {
    let page =
        DeliveredPage { repository: "other".into(), now_secs: UnixSecs(0), ..delivered(0, 0, &[], None) };
    assert!(ledger.record_part(page, 0).await);
}

pub async fn a_record_is_readable_at_once_and_after_a_restart(backend: &impl Backend) {
    let stores = backend.open();
    stores.ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    stores.ledger.record(delivered(7, 1, &[3], Some("b")));
    let at = ListPage { list: 7, page: 2 };
    let check = async |ledger: &dyn ListLedger| {
        assert_eq!(place(ledger, "b").await, Some(at));
        assert_eq!(
            ledger.token_target(RepositoryId("y"), Verb::ListRecords, "b").await.expect("readable"),
            None
        );
        assert_eq!(
            ledger.token_target(RepositoryId("x"), Verb::ListSets, "b").await.expect("readable"),
            None
        );
        assert_eq!((before(ledger, 7, 2).await, before(ledger, 7, 1).await), (vec![1, 2, 3], vec![1, 2]));
        let facts = facts(ledger, 7).await.expect("known");
        assert!(facts.complete && facts.items == 3 && facts.first_query == LIST, "{facts:?}");
        let start = ledger.replay_start(RepositoryId("x"), at).await.expect("readable");
        assert_eq!(start, Some((LIST.to_owned(), vec![1, 2, 3])));
    };
    check(&*stores.ledger).await;
    stores.close();
    check(&*backend.open().ledger).await;
}

pub async fn a_page_that_is_requested_twice_counts_once(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    let part = DeliveredPage { names: vec![30, 40], ..delivered(7, 1, &[3, 4], None) };
    assert!(ledger.record_part(part, 34).await);
    let at = ListPage { list: 7, page: 1 };
    let part = ledger.recorded_part(RepositoryId("x"), at, 34, true).await.expect("readable");
    assert_eq!((part.hashes, part.names), (Some(vec![3, 4]), vec![30, 40]));
    assert_eq!((part.earlier, part.earlier_names), (vec![1, 2], vec![1, 2]));
    assert_eq!(ledger.recorded_part(RepositoryId("x"), at, 35, false).await.expect("readable").hashes, None);
    for _ in 0..2 {
        ledger.record(delivered(7, 1, &[3, 4, 5], Some("b")));
    }
    assert_eq!(facts(ledger, 7).await.expect("known").items, 5);
    assert_eq!(before(ledger, 7, 2).await, [1, 2, 3, 4, 5]);
}

pub async fn a_token_of_lists_with_different_arguments_is_ambiguous(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    ledger.record(delivered(7, 0, &[1], Some("a")));
    ledger.record(of_set(delivered(8, 0, &[1], Some("a"))));
    assert_eq!(place(ledger, "a").await, None);
    ledger.record(delivered(9, 0, &[1], Some("b")));
    ledger.record(delivered(9, 1, &[2], None));
    ledger.record(of_set(delivered(10, 0, &[1], Some("b"))));
    assert_eq!(place(ledger, "b").await, Some(ListPage { list: 10, page: 1 }), "the other list has ended");
}

pub async fn harvests_with_the_same_arguments_share_a_list_and_its_common_items_count(
    backend: &impl Backend,
) {
    let ledger = &*backend.open().ledger;
    ledger.record(delivered(7, 0, &[1, 2, 3], Some("a")));
    ledger.record(delivered(8, 0, &[2, 3, 4], Some("a")));
    assert_eq!(place(ledger, "a").await, Some(ListPage { list: 7, page: 1 }));
    assert_eq!(before(ledger, 7, 1).await, [2, 3]);
    assert_eq!(facts(ledger, 7).await.expect("known").items, 2);
    ledger.record(delivered(7, 1, &[5, 5, 6], Some("b")));
    ledger.record(delivered(7, 1, &[6, 5], Some("b")));
    assert_eq!(before(ledger, 7, 2).await, [2, 3, 5, 6]);
    for (list, query) in
        [(9, "verb=ListRecords&metadataPrefix=a&set=s"), (10, "verb=ListRecords&set=s&metadataPrefix=a")]
    {
        ledger.record(DeliveredPage { first_query: query.into(), ..delivered(list, 0, &[1], Some("c")) });
    }
    assert_eq!(place(ledger, "c").await, Some(ListPage { list: 9, page: 1 }), "the order has no meaning");
}

pub async fn a_harvest_that_starts_alone_replaces_the_delivered_items(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    for list in [7, 8] {
        ledger.record(delivered(list, 0, &[1, 2], Some("a")));
    }
    ledger.record(delivered(7, 1, &[3], None));
    ledger.record(delivered(9, 0, &[2, 4], Some("a")));
    assert_eq!(before(ledger, 7, 1).await, [2], "one of two is in progress");
    ledger.record(delivered(7, 1, &[3], None));
    ledger.record(delivered(7, 1, &[3], None));
    ledger.record(delivered(10, 0, &[4, 5], Some("a")));
    assert_eq!(before(ledger, 7, 1).await, [4, 5]);
}

pub async fn a_list_may_loop_where_an_earlier_page_started_alike(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    let suspected = async |page, first, mixed_harvests| {
        let at = ListPage { list: 7, page };
        ledger.suspected_loop(RepositoryId("x"), at, first, mixed_harvests).await.expect("readable")
    };
    ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    ledger.record(delivered(7, 1, &[3], Some("b")));
    assert_eq!(suspected(2, 1, None).await, Some(vec![1, 2, 3]));
    assert_eq!((suspected(2, 2, None).await, suspected(1, 3, None).await), (None, None));
    // From here on the list reuses its tokens, and the visits count.
    ledger.record(delivered(7, 2, &[1], Some("a")));
    assert_eq!(suspected(3, 1, Some(0)).await, None);
    ledger.record(delivered(7, 3, &[1], Some("a")));
    ledger.record(delivered(7, 4, &[1], Some("a")));
    assert_eq!(suspected(5, 1, Some(1)).await, None, "each of two harvests may request it twice");
    assert_eq!(suspected(5, 1, Some(0)).await, Some(vec![1, 2, 3, 1, 1, 1]));
    ledger.record(refused(delivered(7, 5, &[], None)));
    assert_eq!(suspected(5, 1, Some(0)).await, None, "the visits of the others count from now on");
}

pub async fn harvests_that_follow_reused_tokens_are_mixed_until_all_have_ended(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    let is_mixed = async |token: &str| {
        let target = target(ledger, token).await.expect("it is known");
        target.place.expect("the arguments are the same").1.mixed_harvests().is_some()
    };
    let points_back = async |token: &str, page| {
        let at = ListPage { list: 7, page };
        ledger.points_back(RepositoryId("x"), Verb::ListRecords, token, at).await.expect("readable")
    };
    for (page, token) in [(0, "a"), (1, "b"), (2, "a")] {
        ledger.record(delivered(7, page, &[u64::from(page)], Some(token)));
    }
    assert!(!is_mixed("a").await && !is_mixed("b").await, "one harvest is not mixed");
    assert!(points_back("a", 2).await && points_back("b", 3).await);
    assert!(!points_back("b", 1).await && !points_back("c", 3).await);
    ledger.record(delivered(8, 0, &[0], Some("a")));
    assert!(is_mixed("a").await && is_mixed("b").await);
    assert_eq!(before(ledger, 7, 3).await, [0; 0], "nobody knows which of them received a page");
    ledger.record(refused(delivered(7, 3, &[], None)));
    assert!(is_mixed("a").await, "one has ended");
    ledger.record(refused(delivered(7, 3, &[], None)));
    ledger.record(delivered(9, 0, &[0], Some("a")));
    assert!(!is_mixed("a").await, "all have ended");
}

pub async fn a_list_with_an_unknown_start_is_known_from_its_request_token(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    let page = delivered(7, 1, &[1], Some("b"));
    ledger.record(DeliveredPage { request_token: Some("a".into()), first_query: String::new(), ..page });
    let at = |page| ListPage { list: 7, page };
    assert_eq!(place(ledger, "a").await, Some(at(1)));
    assert!(ledger.points_back(RepositoryId("x"), Verb::ListRecords, "a", at(2)).await.expect("readable"));
    assert!(!facts(ledger, 7).await.expect("known").complete);
    assert_eq!(ledger.replay_start(RepositoryId("x"), at(2)).await.expect("readable"), None);
}

pub async fn the_window_of_a_token_covers_all_its_lists(backend: &impl Backend) {
    let stores = backend.open();
    let window = |from: &str, until: &str| Window {
        from: Some(format!("2020-01-01T{from}Z")),
        until: Some(format!("2020-01-01T{until}Z")),
    };
    let within =
        async |ledger: &dyn ListLedger, token: &str| target(ledger, token).await.expect("it is known").within;
    let list = |list: u64, token: &str, within: Option<Window>| {
        stores.ledger.record(DeliveredPage { within, ..delivered(list, 0, &[1], Some(token)) });
        stores.ledger.record(delivered(list, 1, &[2], None));
    };
    list(7, "a", Some(window("10:00:00", "11:00:00")));
    assert_eq!(within(&*stores.ledger, "a").await, Some(window("10:00:00", "11:00:00")));
    list(8, "a", Some(window("09:00:00", "09:30:00")));
    list(9, "b", Some(window("09:00:00", "09:30:00")));
    list(10, "b", None);
    list(11, "b", Some(window("09:00:00", "09:30:00")));
    assert!(stores.ledger.has_windows(RepositoryId("x"), UnixSecs(1_000_000)).await);
    assert!(!stores.ledger.has_windows(RepositoryId("y"), UnixSecs(1_000_000)).await);
    stores.close();
    let ledger = &*backend.open().ledger;
    assert!(ledger.has_windows(RepositoryId("x"), UnixSecs(1_000_000)).await);
    assert!(!ledger.has_windows(RepositoryId("x"), UnixSecs(1_000_000 + 2 * KEPT_SECS)).await);
    let union = Some(window("09:00:00", "11:00:00"));
    assert_eq!(within(ledger, "a").await, union, "also of a list that has ended");
    assert_eq!(within(ledger, "b").await, None, "one of them had no window");
    let facts = facts(ledger, 7).await.expect("known");
    assert_eq!(facts.within, Some(window("10:00:00", "11:00:00")));
}

pub async fn an_incomplete_page_makes_the_list_incomplete(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    ledger.record(delivered(7, 0, &[1], Some("a")));
    ledger.record(DeliveredPage { complete: false, ..delivered(7, 1, &[2], Some("b")) });
    assert!(!facts(ledger, 7).await.expect("known").complete);
    ledger.record(delivered(8, 1, &[2], Some("c")));
    assert!(!facts(ledger, 8).await.expect("known").complete, "its first page is missing");
}

pub async fn the_progress_of_a_replay_is_known_until_the_replay_is_over(backend: &impl Backend) {
    let stores = backend.open();
    let at = ListPage { list: 7, page: 2 };
    let progress = |query: Option<&str>| ReplayProgress {
        repository: "x".into(),
        place: at,
        query: query.map(str::to_owned),
    };
    let query = async |ledger: &dyn ListLedger, page| {
        ledger.replay_shortcuts(RepositoryId("x"), ListPage { page, ..at }).await.expect("readable").query
    };
    stores.ledger.record_replay(progress(Some("q")));
    stores.close();
    let ledger = &*backend.open().ledger;
    assert_eq!((query(ledger, 2).await.as_deref(), query(ledger, 3).await), (Some("q"), None));
    ledger.record_replay(progress(None));
    assert_eq!(query(ledger, 2).await, None);
    // A replay may have skipped items that no longer count as delivered.
    ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    ledger.record_replay(progress(Some("q")));
    ledger.record(delivered(7, 0, &[1, 2], Some("a")));
    assert_eq!(query(ledger, 2).await.as_deref(), Some("q"));
    ledger.record(delivered(7, 0, &[1], Some("a")));
    assert_eq!(query(ledger, 2).await, None);
}

pub async fn the_last_datestamp_is_from_an_earlier_page(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    for (page, date) in [(0, Some("2020-01-01")), (1, Some("2020-01-02")), (2, None), (3, Some("2020-01-04"))]
    {
        let last_datestamp = date.map(str::to_owned);
        ledger.record(DeliveredPage { last_datestamp, ..delivered(7, page, &[u64::from(page)], Some("a")) });
    }
    let mut found = Vec::new();
    for page in [0, 1, 3] {
        let shortcuts = ledger.replay_shortcuts(RepositoryId("x"), ListPage { list: 7, page }).await;
        found.push(shortcuts.expect("readable").last_datestamp.unwrap_or_default());
    }
    assert_eq!(found, ["", "2020-01-01", "2020-01-02"]);
}

pub async fn abandoned_lists_are_evicted(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    let (last_datestamp, at) = (Some("2020-01-01".to_owned()), ListPage { list: 7, page: 1 });
    ledger.record(DeliveredPage { last_datestamp, ..delivered(7, 0, &[1], Some("a")) });
    ledger.record_replay(ReplayProgress { repository: "x".into(), place: at, query: Some("q".into()) });
    let shortcuts = async || {
        let found = ledger.replay_shortcuts(RepositoryId("x"), at).await.expect("readable");
        (found.query.is_some(), found.last_datestamp.is_some())
    };
    assert_eq!(shortcuts().await, (true, true));
    write(ledger).await;
    ledger.record(later(1 + KEPT_SECS, delivered(8, 0, &[1], Some("b"))));
    write(ledger).await;
    assert_eq!(place(ledger, "a").await, None);
    assert_eq!(place(ledger, "b").await, Some(ListPage { list: 8, page: 1 }));
    assert_eq!((facts(ledger, 7).await, before(ledger, 7, 1).await), (None, Vec::new()));
    assert_eq!(shortcuts().await, (false, false));
}

pub async fn a_token_that_points_to_a_later_list_stays_when_its_first_list_is_removed(
    backend: &impl Backend,
) {
    let ledger = &*backend.open().ledger;
    ledger.record(delivered(7, 0, &[1], Some("a")));
    ledger.record(delivered(7, 1, &[2], None));
    write(ledger).await;
    ledger.record(later(KEPT_SECS - 9, of_set(delivered(8, 0, &[1], Some("a")))));
    write(ledger).await;
    ledger.record(later(1 + KEPT_SECS + EVICTION_INTERVAL_SECS, delivered(9, 0, &[1], Some("b"))));
    write(ledger).await;
    assert_eq!(facts(ledger, 7).await, None);
    assert_eq!(place(ledger, "a").await, Some(ListPage { list: 8, page: 1 }));
}

pub async fn a_later_list_with_the_same_tokens_is_as_old_as_a_harvest_that_may_continue_in_it(
    backend: &impl Backend,
) {
    const WEEK_SECS: i64 = 7 * 24 * 3600;
    let ledger = &*backend.open().ledger;
    let first_page = async |list, weeks: i64, token: &str| {
        let page = later(weeks * WEEK_SECS, delivered(list, 0, &[list], Some(token)));
        let state_secs = Some(page.now_secs);
        ledger.record(DeliveredPage { state_secs, ..page });
        let list = facts(ledger, place(ledger, token).await.expect("it was recorded").list).await;
        let state_secs = list.and_then(|list| list.state_secs()).expect("a state");
        state_secs.since(UnixSecs(1_000_000)) / WEEK_SECS
    };
    assert_eq!(first_page(1, 0, "a").await, 0);
    // The list of a week before is removed, and its tokens come again.
    assert_eq!(first_page(2, 1, "a").await, 0);
    assert_eq!(first_page(3, 1, "b").await, 1);
    ledger.record(later(1 + WEEK_SECS, delivered(2, 1, &[9], None)));
    assert_eq!(first_page(4, 1, "a").await, 0, "the harvest that ended may be another one");
    assert_eq!(first_page(5, 3, "a").await, 0);
    assert_eq!(first_page(6, 6, "a").await, 3, "no harvest takes a month");
    assert_eq!(first_page(7, 20, "a").await, 20);
}

pub async fn a_token_after_different_pages_is_ambiguous_for_an_hour(backend: &impl Backend) {
    const HOUR: i64 = 3_600;
    let stores = backend.open();
    let origin =
        async |ledger: &dyn ListLedger| ledger.token_origin(RepositoryId("x"), Verb::ListRecords, "a").await;
    let page = |list, secs, next_origin| DeliveredPage {
        next_origin,
        ..later(secs, delivered(list, 0, &[list], Some("a")))
    };
    let ledger = &*stores.ledger;
    assert_eq!(origin(ledger).await, TokenOrigin::Unknown);
    ledger.record(page(7, 0, Some(5)));
    ledger.record(page(8, 0, Some(5)));
    assert_eq!(origin(ledger).await, TokenOrigin::Known(5));
    assert_eq!(target(ledger, "a").await.and_then(|target| target.origin), Some(5));
    assert_eq!(
        ledger.token_origin(RepositoryId("x"), Verb::ListIdentifiers, "a").await,
        TokenOrigin::Unknown
    );
    ledger.record(page(9, HOUR, Some(6)));
    assert_eq!(origin(ledger).await, TokenOrigin::Ambiguous);
    ledger.record(page(9, 2 * HOUR, Some(6)));
    stores.close();
    let ledger = &*backend.open().ledger;
    assert_eq!(origin(ledger).await, TokenOrigin::Ambiguous);
    ledger.record(page(9, 3 * HOUR + 1, Some(7)));
    assert_eq!(origin(ledger).await, TokenOrigin::Known(7));
    ledger.record(page(9, 3 * HOUR + 2, None));
    assert_eq!(origin(ledger).await, TokenOrigin::Ambiguous, "its pages are not known");
}

pub async fn a_token_from_a_cached_page_leads_to_its_first_place(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    let next = |list, page, token: Option<&str>| delivered(list, page, &[u64::from(page)], token);
    for (page, token) in [(0, "a"), (1, "b"), (2, "b")] {
        ledger.record(next(7, page, Some(token)));
    }
    assert_eq!(place(ledger, "b").await, Some(ListPage { list: 7, page: 3 }));
    ledger.record(refused(next(7, 3, None)));
    // Another harvest receives the page with the token from the cache.
    ledger.record(next(8, 0, Some("a")));
    assert_eq!(place(ledger, "b").await, Some(ListPage { list: 7, page: 2 }));
    ledger.record(DeliveredPage { request_token: Some("b".into()), ..next(7, 2, Some("b")) });
    assert_eq!(place(ledger, "b").await, Some(ListPage { list: 7, page: 3 }));
    let target = target(ledger, "b").await.expect("known");
    assert!(target.is_of_round && target.place.is_some_and(|(_, list)| list.reuses_tokens));
}

pub async fn identifiers_are_known_while_all_pages_announce_one_size(backend: &impl Backend) {
    let ledger = &*backend.open().ledger;
    let record = |list, page, names: &[u64], list_size, next| {
        let page = delivered(list, page, &[100 + u64::from(page)], Some(next));
        ledger.record(DeliveredPage { list_size, names: names.to_vec(), ..page });
    };
    let names = async |list, page, size| {
        ledger.delivered_names(RepositoryId("x"), ListPage { list, page }, size).await.expect("readable")
    };
    record(7, 0, &[1, 2], Some(4), "a");
    record(7, 1, &[3], Some(4), "b");
    assert_eq!(names(7, 2, 4).await, Some(vec![1, 2, 3]));
    assert_eq!(names(7, 2, 5).await, None, "another size");
    assert_eq!(names(7, 3, 4).await, None, "page 2 is not known");
    record(7, 2, &[4], Some(5), "c");
    assert_eq!((names(7, 3, 4).await, names(7, 3, 5).await), (None, None), "two sizes");
    record(8, 0, &[1, 2], None, "d");
    record(8, 1, &[3], Some(4), "e");
    assert_eq!(names(8, 2, 4).await, None, "none on the first page");
    // Two harvests of one list: only what both received.
    record(9, 0, &[1, 2], Some(4), "f");
    record(10, 0, &[2, 3], Some(4), "f");
    assert_eq!(names(9, 1, 4).await, Some(vec![2]));
}

pub async fn a_page_that_is_dropped_begins_an_epoch(backend: &impl Backend) {
    let stores = backend.open();
    let first = stores.ledger.epoch().await;
    stores.ledger.record(delivered(7, 0, &[1], Some("a")));
    stores.close();
    let stores = backend.open();
    assert_eq!(stores.ledger.epoch().await, first, "everything is on disk");
    stores.close();
    stores.ledger.record(delivered(7, 1, &[2], Some("b")));
    assert_ne!(stores.ledger.epoch().await, first, "the page was dropped");
}

pub async fn a_closed_ledger_refuses(backend: &impl Backend) {
    let stores = backend.open();
    stores.ledger.record(delivered(7, 0, &[1], Some("a")));
    stores.close();
    let (ledger, at) = (&*stores.ledger, ListPage { list: 7, page: 1 });
    assert!(!ledger.record_part(delivered(7, 1, &[2], None), 2).await);
    assert!(matches!(
        ledger.token_target(RepositoryId("x"), Verb::ListRecords, "a").await,
        Err(LedgerError::Closed)
    ));
    assert!(matches!(
        ledger.points_back(RepositoryId("x"), Verb::ListRecords, "a", at).await,
        Err(LedgerError::Closed)
    ));
    assert!(matches!(ledger.recorded_part(RepositoryId("x"), at, 0, true).await, Err(LedgerError::Closed)));
    assert!(matches!(ledger.suspected_loop(RepositoryId("x"), at, 1, None).await, Err(LedgerError::Closed)));
    assert!(matches!(ledger.delivered_names(RepositoryId("x"), at, 1).await, Err(LedgerError::Closed)));
    assert!(matches!(ledger.replay_start(RepositoryId("x"), at).await, Err(LedgerError::Closed)));
    assert!(matches!(ledger.replay_shortcuts(RepositoryId("x"), at).await, Err(LedgerError::Closed)));
    assert_eq!(
        ledger.token_origin(RepositoryId("x"), Verb::ListRecords, "b").await,
        TokenOrigin::Ambiguous,
        "unreadable"
    );
    let next = backend.open().ledger;
    assert_eq!(place(&*next, "a").await, Some(at));
}
