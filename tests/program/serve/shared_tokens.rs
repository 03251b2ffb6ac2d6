//! Lists whose tokens other lists have too: cached pages of one list never become part of another one.

use crate::fixtures::keeping::{map, purge};
use crate::fixtures::lists::{page_with, read_to_the_end, records_in, resume, token_in, token_of};
use crate::fixtures::proxy::{LIST, Proxy, at_once};
use crate::fixtures::source::{ReceivedRequest, Reply, Source, fetch, post};
use oaimend::config::Config;
use oaimend_test_support::random::Random;
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

const PAGE_LEN: usize = 10;

/// A source whose tokens are plain offsets, and its records.
fn offsets(count: usize, has_sizes: bool) -> (Source, Arc<Mutex<Vec<usize>>>) {
    let records = Arc::new(Mutex::new((0..count).collect::<Vec<usize>>()));
    let shared = Arc::clone(&records);
    let source = Source::start(move |_, received| {
        Reply::xml(page_at(&shared.lock().expect("no panic"), &token_of(received), has_sizes))
    });
    (source, records)
}

/// The page of these records at an offset.
fn page_at(records: &[usize], offset: &str, has_sizes: bool) -> String {
    let start = offset.parse().unwrap_or(0);
    let size = if has_sizes { format!(" completeListSize=\"{}\"", records.len()) } else { String::new() };
    let next = start + PAGE_LEN;
    let token = if next < records.len() { next.to_string() } else { String::new() };
    let element = format!("<resumptionToken{size}>{token}</resumptionToken>");
    page_with(records.iter().skip(start).take(PAGE_LEN).copied(), &element)
}

fn once_each(records: &Mutex<Vec<usize>>) -> BTreeMap<usize, usize> {
    records.lock().expect("no panic").iter().map(|number| (*number, 1)).collect()
}

fn requests_with(source: &Source, token: &str) -> usize {
    source.requests().iter().filter(|received| token_of(received) == token).count()
}

#[test]
fn list_that_changed_contains_no_cached_page_of_an_earlier_harvest() {
    let changes: [fn(&mut Vec<usize>); 4] = [
        |records| drop(records.splice(0..0, 1_000..1_005)),
        |records| records.truncate(35),
        |records| records.insert(5, 1_000),
        |records| records.extend(1_000..1_005),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (source, records) = offsets(40, true);
        let proxy = Proxy::of(&source);
        assert_eq!(read_to_the_end(&proxy).0, once_each(&records), "change {number}");
        change(&mut records.lock().expect("no panic"));
        for harvest in 0..3 {
            let (found, pages) = read_to_the_end(&proxy);
            assert_eq!(found, once_each(&records), "change {number}, harvest {harvest}");
            let status = pages[1].header("cache-status");
            assert_eq!(status, "oaimend; fwd=bypass; fwd-status=200", "change {number}");
        }
    }
}

#[test]
fn change_while_a_list_is_harvested_affects_both_harvests() {
    let (source, records) = offsets(40, false);
    let proxy = Proxy::of(&source);
    let mut slow = proxy.get(LIST);
    slow = resume(&proxy, &token_in(&slow.text()).expect("more"));
    records.lock().expect("no panic").splice(0..0, 1_000..1_005);
    assert_eq!(read_to_the_end(&proxy).0, once_each(&records));
    // The slow harvest continues with the tokens that both have.
    let mut found = records_in(&slow.text());
    while let Some(token) = token_in(&slow.text()) {
        slow = resume(&proxy, &token);
        found.extend(records_in(&slow.text()));
    }
    assert!((10..40).all(|number| found.contains_key(&number)), "{found:?}");
    assert_eq!(read_to_the_end(&proxy).0, once_each(&records), "a harvest after both");
}

#[test]
fn harvesters_of_the_same_list_share_its_pages() {
    for has_sizes in [true, false] {
        let (source, records) = offsets(40, has_sizes);
        let proxy = Proxy::of(&source);
        for _ in 0..10 {
            assert_eq!(read_to_the_end(&proxy).0, once_each(&records));
        }
        for token in ["10", "20", "30"] {
            assert_eq!(requests_with(&source, token), 1, "{token}");
        }
        assert_eq!(source.requests().len(), 10 + 3);
    }
}

#[test]
fn page_that_changed_within_a_list_is_followed_by_no_cached_page() {
    let (source, records) = offsets(40, false);
    let proxy = Proxy::of(&source);
    read_to_the_end(&proxy);
    let first = proxy.get(LIST);
    // The first page stays the same, and the second one is requested again.
    records.lock().expect("no panic").splice(15..15, 1_000..1_005);
    purge(&proxy, "/-/cache/x?verb=ListRecords&resumptionToken=10");
    let mut got = resume(&proxy, &token_in(&first.text()).expect("more"));
    let mut found = records_in(&first.text());
    found.extend(records_in(&got.text()));
    assert!(found.contains_key(&1_000), "the purged page is requested again");
    while let Some(token) = token_in(&got.text()) {
        got = resume(&proxy, &token);
        found.extend(records_in(&got.text()));
    }
    assert_eq!(found, once_each(&records));
}

#[test]
fn lists_with_other_arguments_and_the_same_tokens_do_not_share_pages() {
    // The source remembers the set of the last first page.
    let base = Mutex::new(0);
    let source = Source::start(move |_, received| {
        let mut base = base.lock().expect("no panic");
        let token = token_of(received);
        if token.is_empty() {
            *base = if received.target.contains("set=s") { 500 } else { 0 };
        }
        let records: Vec<usize> = (0..PAGE_LEN).chain(*base + PAGE_LEN..*base + 30).collect();
        Reply::xml(page_at(&records, &token, false))
    });
    let proxy = Proxy::of(&source);
    read_to_the_end(&proxy);
    let mut got = proxy.get(&format!("{LIST}&set=s"));
    let mut found = records_in(&got.text());
    while let Some(token) = token_in(&got.text()) {
        got = resume(&proxy, &token);
        found.extend(records_in(&got.text()));
    }
    let expected: BTreeMap<usize, usize> = (0..10).chain(510..530).map(|number| (number, 1)).collect();
    assert_eq!(found, expected);
}

#[test]
fn origin_of_cached_pages_survives_a_restart() {
    let (source, records) = offsets(40, false);
    let configure = |config: &mut Config| {
        config.public_url = Some("http://oai.example".into());
        map(config, &source, |_| {});
    };
    let proxy = Proxy::with(configure);
    read_to_the_end(&proxy);
    let proxy = proxy.restarted(configure);
    read_to_the_end(&proxy);
    assert_eq!(requests_with(&source, "10"), 1, "the cached pages are those of this list");
    let proxy = proxy.restarted(configure);
    records.lock().expect("no panic").splice(0..0, 1_000..1_005);
    assert_eq!(read_to_the_end(&proxy).0, once_each(&records));
    let proxy = proxy.restarted(configure);
    records.lock().expect("no panic").splice(0..0, 2_000..2_005);
    assert_eq!(read_to_the_end(&proxy).0, once_each(&records), "what is ambiguous survives too");
}

#[test]
fn request_by_an_ambiguous_token_joins_no_page_in_flight() {
    let records = Arc::new(Mutex::new((0..40).collect::<Vec<usize>>()));
    let (go, wait) = channel::<()>();
    let (has_come, comes) = channel();
    let (shared, waits) = (Arc::clone(&records), Mutex::new(Some((has_come, wait))));
    let source = Source::start(move |_, received: &ReceivedRequest| {
        let token = token_of(received);
        let reply = Reply::xml(page_at(&shared.lock().expect("no panic"), &token, false));
        let held = if token == "10" { waits.lock().expect("no panic").take() } else { None };
        if let Some((has_come, wait)) = held {
            let _ = has_come.send(());
            let _ = wait.recv();
        }
        reply
    });
    let proxy = Proxy::with(|config| config.repositories.add_fixed(at_once(&source)));
    let before = proxy.get(LIST);
    let address = proxy.address();
    std::thread::scope(|scope| {
        let token = token_in(&before.text()).expect("more");
        let slow =
            scope.spawn(move || fetch(address, &format!("/x?verb=ListRecords&resumptionToken={token}")));
        comes.recv().expect("the source is asked");
        records.lock().expect("no panic").splice(0..0, 1_000..1_005);
        assert_eq!(read_to_the_end(&proxy).0, once_each(&records));
        go.send(()).expect("the source waits");
        let slow = slow.join().expect("it was answered");
        assert!((10..20).all(|number| records_in(&slow.text()).contains_key(&number)), "{}", slow.text());
    });
    assert_eq!(read_to_the_end(&proxy).0, once_each(&records));
}

#[test]
fn requests_by_post_share_pages_and_ambiguity() {
    let (source, records) = offsets(20, false);
    let proxy = Proxy::of(&source);
    let ask = |query: &str| post(proxy.address(), &format!("/x?{query}"), "");
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    ask(list);
    let cached = ask("verb=ListRecords&resumptionToken=10");
    assert_eq!(resume(&proxy, "10").text(), cached.text());
    assert_eq!(requests_with(&source, "10"), 1);
    records.lock().expect("no panic").splice(0..0, 1_000..1_005);
    ask(list);
    assert!(records_in(&ask("verb=ListRecords&resumptionToken=10").text()).contains_key(&5));
}

#[test]
fn random_changes_between_harvests_lose_no_record() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let grows = random.chance(50);
        let (source, records) = offsets(25 + random.below(20), true);
        let proxy = Proxy::of(&source);
        let mut open: Vec<Option<String>> = Vec::new();
        for step in 0..12 {
            match random.below(4) {
                // The size always shows a change: records only come, or only go.
                0 | 1 if grows => {
                    let mut records = records.lock().expect("no panic");
                    let at = random.below(records.len() + 1);
                    let new = 1_000 * (step + 1)..1_000 * (step + 1) + 1 + random.below(12);
                    records.splice(at..at, new);
                }
                0 | 1 => {
                    let mut records = records.lock().expect("no panic");
                    let at = random.below(records.len());
                    records.remove(at);
                }
                // Harvests that are at some place, and go on later.
                2 => {
                    let begins = open.is_empty() || random.chance(50);
                    let token = if begins { None } else { open.swap_remove(random.below(open.len())) };
                    let got = token.map_or_else(|| proxy.get(LIST), |token| resume(&proxy, &token));
                    open.extend(token_in(&got.text()).map(Some));
                }
                _ => {
                    let found = read_to_the_end(&proxy).0;
                    assert_eq!(found, once_each(&records), "seed {seed}, step {step}");
                }
            }
        }
    }
}
