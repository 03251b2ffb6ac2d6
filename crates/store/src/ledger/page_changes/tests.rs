//! Tests of the changes by a page.

use super::*;
use oaimend_oai::{UnixSecs, Verb};

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

fn page(list: u64, page: u32, hashes: &[u64], next: Option<&str>) -> DeliveredPage {
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

/// The changes by a page, of which `known` is known.
fn changes(page: &DeliveredPage, known: KnownPage) -> PageChanges {
    let place = recorded_place(page, known.next_token.as_ref());
    known.after(page, place, false)
}

/// The record of the next token, after the first page of a list was recorded with these changes.
fn token_of(changes: PageChanges) -> KnownToken {
    KnownToken { record: changes.next_token.expect("it has one"), list: Some(changes.list) }
}

#[test]
fn a_harvest_joins_a_list_with_the_same_arguments_and_the_same_token() {
    let first = page(7, 0, &[1], Some("a"));
    let known = token_of(changes(&first, KnownPage::default()));
    let place = |page: &DeliveredPage| recorded_place(page, Some(&known)).list;
    let second = page(8, 0, &[1], Some("a"));
    assert_eq!(place(&second), 7);
    let query = "metadataPrefix=oai_dc&verb=ListRecords".to_owned();
    assert_eq!(place(&DeliveredPage { first_query: query, ..second.clone() }), 7, "in another order");
    assert_eq!(place(&DeliveredPage { first_query: format!("{LIST}&set=s"), ..second.clone() }), 8);
    assert_eq!(place(&page(8, 1, &[1], Some("a"))), 8, "not the first page");
    let ambiguous = TokenRecord { ambiguous: true, ..known.record.clone() };
    let ambiguous = KnownToken { record: ambiguous, ..known.clone() };
    assert_eq!(recorded_place(&second, Some(&ambiguous)).list, 8);
    let evicted = KnownToken { list: None, ..known };
    assert_eq!(recorded_place(&second, Some(&evicted)).list, 8);
}

#[test]
fn only_items_that_all_harvests_of_a_round_received_count() {
    let before = changes(&page(7, 0, &[1, 2, 2], Some("a")), KnownPage::default());
    let known = KnownPage {
        list: Some(before.list.clone()),
        items: before.items.clone(),
        next_token: Some(token_of(before.clone())),
        ..KnownPage::default()
    };
    let second = page(8, 0, &[2, 2, 3], Some("a"));
    let after = changes(&second, known.clone());
    let items = after.items.expect("they changed");
    assert_eq!((items.hashes, items.names), (vec![2, 2], Some(vec![2, 2])));
    assert!((after.list.harvests, after.list.items, after.list.is_shared) == (2, 2, true));
    assert!(after.forgets_replays, "they may have skipped item 1");
    let ended = ListFacts { harvests: 0, ..before.list };
    let after = changes(&second, KnownPage { list: Some(ended), ..known });
    assert_eq!(after.items.map(|items| items.hashes), Some(vec![2, 2, 3]), "a round of its own");
    assert_eq!((after.list.harvests, after.list.round), (1, before.list.round.wrapping_add(1)));
}

#[test]
fn a_list_that_is_too_long_keeps_no_items() {
    let long =
        ListFacts { items: ITEMS_MAX, ..changes(&page(7, 0, &[1], Some("a")), KnownPage::default()).list };
    let known = KnownPage { list: Some(long), ..KnownPage::default() };
    let after = changes(&page(7, 1, &[2], Some("b")), known);
    assert!(after.items.is_none() && !after.list.complete);
}

#[test]
fn a_token_of_another_list_in_progress_is_ambiguous() {
    let of_set = DeliveredPage { first_query: format!("{LIST}&set=s"), ..page(8, 0, &[1], Some("a")) };
    let first = token_of(changes(&page(7, 0, &[1], Some("a")), KnownPage::default()));
    for (harvests, is_ambiguous) in [(1, true), (0, false)] {
        let list = first.list.clone().map(|list| ListFacts { harvests, ..list });
        let known =
            KnownPage { next_token: Some(KnownToken { list, ..first.clone() }), ..KnownPage::default() };
        let after = changes(&of_set, known).next_token.expect("it has one");
        assert_eq!((after.ambiguous, after.place), (is_ambiguous, ListPage { list: 8, page: 1 }));
    }
}

#[test]
fn the_visits_of_a_refused_harvest_do_not_count() {
    let before = changes(&page(7, 0, &[1], Some("a")), KnownPage::default());
    let known = KnownPage {
        list: Some(ListFacts { reuses_tokens: true, ..before.list }),
        first_item_page: Some(3),
        visits: 4,
        ..KnownPage::default()
    };
    let after = changes(&page(7, 5, &[1], Some("a")), known.clone());
    assert_eq!((after.visits, after.forgets_visits, after.first_item_page), (Some(5), false, Some(3)));
    let refused = DeliveredPage { status: ListStatus::Loops, ..page(7, 5, &[1], None) };
    let after = changes(&refused, known);
    assert_eq!((after.visits, after.forgets_visits), (Some(1), true));
}

#[test]
fn a_token_that_leads_to_itself_is_as_its_request_left_it() {
    let list = changes(&page(7, 0, &[1], Some("a")), KnownPage::default()).list;
    let known = KnownPage { list: Some(list), ..KnownPage::default() };
    let same = DeliveredPage { request_token: Some("b".into()), ..page(7, 2, &[1], Some("b")) };
    let after = changes(&same, known);
    assert_eq!(after.request_token.map(|token| token.place.page), Some(2));
    let next = after.next_token.expect("it has one");
    assert_eq!((next.place.page, next.lowest_page), (3, 2));
    assert!(after.list.reuses_tokens);
}

#[test]
fn the_lower_datestamp_of_a_shared_page_counts() {
    let dated = |list, date: &str| DeliveredPage {
        last_datestamp: Some(date.into()),
        ..page(list, 1, &[1], Some("a"))
    };
    let before = changes(&dated(7, "2020-01-02"), KnownPage::default());
    let known = KnownPage {
        list: Some(before.list.clone()),
        items: before.items,
        last_datestamp: before.last_datestamp,
        ..KnownPage::default()
    };
    let last = |known: &KnownPage| changes(&dated(7, "2020-01-03"), known.clone()).last_datestamp;
    assert_eq!(last(&known).as_deref(), Some("2020-01-02"));
    let next_round = ListFacts { round: 9, ..before.list };
    let known = KnownPage { list: Some(next_round), ..known };
    assert_eq!(last(&known).as_deref(), Some("2020-01-03"));
}
