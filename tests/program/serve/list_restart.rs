//! A list that cannot be continued is restarted, and no harvester receives a record twice.

use crate::fixtures::lists::{page, read_to_the_end, records_in, resume, token_in};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{ReceivedRequest, Reply, Source};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

fn expired() -> Reply {
    Reply::xml(concat!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-02T03:04:05Z</responseDate>",
        "<request>http://source.example/oai</request><error code=\"badResumptionToken\">gone</error></OAI-PMH>"
    ))
}

/// The number of the requested page: the token contains it; without a token it is the first.
fn requested_page(received: &ReceivedRequest) -> usize {
    let token = received.target.split_once("resumptionToken=page-").map(|(_, token)| token);
    token.map_or(0, |token| token.parse().expect("a token that was given out"))
}

/// A source whose n-th response for each page comes from `script`.
fn paged(script: impl Fn(usize, usize) -> Reply + Send + Sync + 'static) -> Source {
    let counts: Mutex<BTreeMap<usize, usize>> = Mutex::default();
    Source::start(move |_, received| {
        let number = requested_page(received);
        let count = {
            let mut counts = counts.lock().expect("no test panics while it holds this");
            let count = counts.entry(number).or_insert(0);
            *count += 1;
            *count - 1
        };
        script(number, count)
    })
}

/// The page up to the identifier of a record.
fn cut(page: &str, before: usize) -> Reply {
    let at = page.find(&format!("oai:x:{before}<")).expect("it is there");
    Reply::new(200, &format!("Content-Length: {}", page.len())).send(&page.as_bytes()[..at])
}

fn each_once(numbers: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    numbers.map(|number| (number, 1)).collect()
}

fn uncached(source: &Source, tune: impl FnOnce(&mut oaimend::config::Mapping)) -> Proxy {
    let limits = oaimend_upstream::settings::Limits::default();
    let mut mapping =
        oaimend::config::Mapping::new("x", &source.base_url(), &limits).expect("a legal mapping");
    tune(&mut mapping);
    Proxy::with(|config| {
        config.cache.failures = Duration::ZERO;
        config.repositories.add_fixed(mapping);
    })
}

#[test]
fn changed_first_page_restarts_the_list() {
    let source = paged(|number, count| match (number, count) {
        (0, 0) => cut(&page(0..5, "page-1"), 3),
        // Record 1 has another position now, and there are new records.
        (0, _) => Reply::xml(page(50..60, "page-1").replace("oai:x:55<", "oai:x:1<")),
        _ => Reply::xml(page(60..65, "")),
    });
    let (found, answers) = read_to_the_end(&Proxy::of(&source));
    let expected = (0..3).chain((50..65).filter(|number| *number != 55));
    assert_eq!(found, each_once(expected));
    assert_eq!(answers.len(), 2, "all of it in the same answer");
    assert_eq!(token_in(&answers[0].text()).as_deref(), Some("page-1"));
}

#[test]
fn changed_token_page_restarts_the_list() {
    let source = paged(|number, count| match (number, count) {
        (0, 0) => Reply::xml(page(0..5, "page-1")),
        (1, 0) => Reply::xml(page(5..10, "page-2")),
        (2, 0) => cut(&page(10..15, "page-3"), 12),
        // The cursor has another value.
        (2, _) => Reply::xml(page(15..20, "page-3")),
        (0, _) => Reply::xml(page(0..5, "page-11")),
        (11, _) => Reply::xml(page(5..10, "page-12")),
        (12, _) => Reply::xml(page(10..15, "page-13")),
        (13, _) => Reply::xml(page(15..20, "")),
        _ => expired(),
    });
    let (found, answers) = read_to_the_end(&Proxy::of(&source));
    assert_eq!(found, each_once(0..20));
    assert_eq!(answers.len(), 4);
    assert_eq!(token_in(&answers[2].text()).as_deref(), Some("page-13"), "{}", answers[2].text());
}

#[test]
fn restart_sends_only_new_records() {
    for more in [false, true] {
        let source = paged(move |number, count| match (number, count) {
            (0, 0) => Reply::xml(page(0..5, "page-1")),
            (1, 0) => cut(&page(5..10, ""), 8),
            (1, _) => Reply::xml(page(70..71, "")),
            // The rest is gone, or is two pages later.
            (0, _) => Reply::xml(page(if more { 0..3 } else { 0..5 }, "page-11")),
            (11, _) => Reply::xml(page(5..8, if more { "page-12" } else { "" })),
            (12, _) => Reply::xml(page(3..5, "page-13")),
            _ => Reply::xml(page(8..12, "")),
        });
        let (found, answers) = read_to_the_end(&Proxy::of(&source));
        assert_eq!(found, each_once(0..if more { 12 } else { 8 }), "more {more}");
        assert_eq!(answers.len(), 2, "more {more}");
        assert!(answers[1].text().trim_end().ends_with("</OAI-PMH>"), "{}", answers[1].text());
        assert_eq!(answers[1].text().matches("</ListRecords>").count(), 1, "{}", answers[1].text());
    }
}

#[test]
fn partly_known_list_ends_with_a_continuation_token() {
    let source = paged(|_, count| match count {
        0 => cut(&page(5..10, ""), 8),
        _ => Reply::xml(page(70..80, "")),
    });
    let proxy = Proxy::of(&source);
    let got = resume(&proxy, "page-1");
    assert_eq!(records_in(&got.text()), each_once(5..8), "{}", got.text());
    assert!(token_in(&got.text()).expect("ours").starts_with("oaimend1_"));
}

#[test]
fn truncated_page_of_a_restarted_list_is_continued() {
    let source = paged(|number, count| match (number, count) {
        (0, 0) => Reply::xml(page(0..5, "page-1")),
        (1, _) => expired(),
        (0, _) => Reply::xml(page(0..3, "page-11")),
        // Delivered records are between new ones.
        (11, 0..9) => cut(&page(3..15, ""), 9),
        _ => Reply::xml(page(3..15, "")),
    });
    let (found, answers) = read_to_the_end(&Proxy::of(&source));
    assert_eq!(found, each_once(0..15));
    assert!(token_in(&answers[1].text()).expect("ours").starts_with("oaimend1_"));
}

const LONG: usize = 60;

#[test]
fn replay_continues_after_a_process_restart() {
    let again = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let shared = std::sync::Arc::clone(&again);
    let source = Source::start(move |_, received| {
        use std::sync::atomic::Ordering::SeqCst;
        let number = requested_page(received);
        if number == 50 {
            shared.store(true, SeqCst);
            return expired();
        }
        let at = number % 100;
        let base = if shared.load(SeqCst) { 100 } else { 0 };
        let token = if at + 1 < LONG { format!("page-{}", base + at + 1) } else { String::new() };
        Reply::xml(page(at * 2..at * 2 + 2, &token))
    });
    let url = source.base_url();
    let configure = |config: &mut oaimend::config::Config| {
        let limits = oaimend_upstream::settings::Limits::default();
        let mut mapping = oaimend::config::Mapping::new("x", &url, &limits).expect("a legal mapping");
        mapping.source_mut().politeness.gap = Duration::from_secs(2);
        config.cache.failures = Duration::ZERO;
        config.repositories.add_fixed(mapping);
    };
    let mut proxy = Proxy::with(configure);
    let (mut found, mut failures, mut got) = (BTreeMap::new(), 0, proxy.get(LIST));
    let mut token = None;
    loop {
        if got.status == 503 {
            failures += 1;
            assert!(failures < 10, "the walk never ends: {}", got.text());
            if failures == 2 {
                proxy = proxy.restarted(configure);
            }
        } else {
            assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
            for (number, count) in records_in(&got.text()) {
                *found.entry(number).or_insert(0) += count;
            }
            token = token_in(&got.text());
        }
        let Some(token) = &token else { break };
        got = resume(&proxy, token);
    }
    assert_eq!(found, each_once(0..LONG * 2));
    assert!(failures >= 3, "a walk of 50 pages at 2 seconds each: {failures}");
    let received = source.requests().len();
    println!("{LONG} pages, {failures} failures, {received} requests");
    // Each page once, each page of the replay once, the expired token at each request, and the page
    // at which a replay continued.
    assert!(received <= LONG + 50 + 2 * failures + 10, "{received}");
}

/// A record whose datestamp is its day.
fn dated(numbers: std::ops::Range<usize>, token: &str) -> String {
    let mut whole = page(numbers.clone(), token);
    for number in numbers {
        let right = format!("oai:x:{number}</identifier><datestamp>");
        let date = format!("{right}2020-{:02}-{:02}", 1 + number / 28, 1 + number % 28);
        whole = whole.replace(&format!("{right}2020-01-01"), &date);
    }
    whole
}

#[test]
fn ordered_list_restarts_at_the_last_datestamp() {
    for (ordered, refused, received) in [(true, false, 2), (false, false, 20), (true, true, 20)] {
        let source = Source::start(move |_, received| {
            let from = received.target.split_once("from=2020-").map(|(_, from)| from.to_owned());
            if let Some(from) = from {
                if refused {
                    return expired();
                }
                let (month, day) = from.split_once('-').expect("a day");
                let month: usize = month.parse().expect("a month");
                let day: usize = day[..2].parse().expect("a day");
                let number = (month - 1) * 28 + day - 1;
                return Reply::xml(dated(number..number + 5, "page-999"));
            }
            match requested_page(received) {
                20 => expired(),
                999 => Reply::xml(dated(104..110, "")),
                number if number > 100 => {
                    let at = number - 100;
                    Reply::xml(dated(
                        at * 5..at * 5 + 5,
                        &if at < 21 { format!("page-{}", number + 1) } else { String::new() },
                    ))
                }
                // The second time the tokens are different.
                number => Reply::xml(dated(number * 5..number * 5 + 5, &format!("page-{}", number + 1))),
            }
        });
        let proxy =
            uncached(&source, |mapping| mapping.source_mut().quirks.is_ordered_by_datestamp = ordered);
        let mut got = proxy.get(LIST);
        for _ in 0..19 {
            got = resume(&proxy, &token_in(&got.text()).expect("a token"));
        }
        let before = source.requests().len();
        let got = resume(&proxy, &token_in(&got.text()).expect("a token"));
        let needed = source.requests().len() - before;
        if ordered && !refused {
            assert_eq!(records_in(&got.text()), each_once(100..104), "{}", got.text());
            assert_eq!(needed, received);
            let target = &source.requests()[before + 1].target;
            assert!(target.contains("metadataPrefix=oai_dc&from=2020-04-16"), "{target}");
            let rest = resume(&proxy, "page-999");
            assert_eq!(records_in(&rest.text()), each_once(104..110));
        } else {
            assert!(needed >= received, "{needed}");
            assert_eq!(
                source.requests()[before..].iter().any(|received| received.target.contains("from=")),
                refused
            );
        }
    }
}

#[test]
fn earlier_harvest_does_not_stop_token_recovery() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    for pages_before in 1..4 {
        let has_expired = std::sync::Arc::new(AtomicBool::new(false));
        let shared = std::sync::Arc::clone(&has_expired);
        let source = Source::start(move |_, received| {
            let number = requested_page(received);
            let base = if shared.load(Relaxed) { 10 } else { 0 };
            if number > 0 && number / 10 * 10 != base {
                return expired();
            }
            let at = number % 10;
            let next = if at < 3 { format!("page-{}", base + at + 1) } else { String::new() };
            Reply::xml(page(at * 5..at * 5 + 5, &next))
        });
        let proxy = Proxy::of(&source);
        let read = |pages: usize| {
            let mut answers = vec![proxy.get(LIST)];
            for _ in 1..pages {
                let token = token_in(&answers.last().expect("one").text()).expect("the list continues");
                answers.push(resume(&proxy, &token));
            }
            answers
        };
        read(pages_before);
        let mut answers = read(2);
        has_expired.store(true, Relaxed);
        while let Some(token) = token_in(&answers.last().expect("one").text()) {
            // The cache contains pages of an earlier harvest, but none of the new tokens.
            answers.push(resume(&proxy, &token));
            assert!(answers.len() < 10, "the list never ends");
        }
        let mut found = BTreeMap::new();
        for answer in &answers {
            assert!(!answer.text().contains("badResumptionToken"), "{pages_before}: {}", answer.text());
            for (number, count) in records_in(&answer.text()) {
                *found.entry(number).or_insert(0) += count;
            }
        }
        assert_eq!(found, each_once(0..20), "{pages_before} pages before");
    }
}
