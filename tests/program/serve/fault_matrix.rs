//! Results for a harvester without retries when the source fails: each fault at each position of a
//! page, in each framing, once and every time.

use crate::fixtures::lists::{page, read_to_the_end, records_in, resume, token_in};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{ReceivedRequest, Reply, Source};
use crate::fixtures::time::Skipping;
use oaimend::config::Mapping;
use oaimend_test_support::random::Random;
use oaimend_upstream::settings::{Limits, PageFallback};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The end of an incomplete body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Close,
    Reset,
    Stall,
}

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    /// Until the connection closes: a failure looks like the end.
    Unframed,
    Chunked,
    Gzip,
}

/// The part of the page before the fault.
fn cut(page: &str, at: usize, framing: Framing) -> Reply {
    let (first, rest) = page.as_bytes().split_at(at);
    match framing {
        Framing::Length => Reply::new(200, &format!("Content-Length: {}", page.len() + 1)).send(first),
        Framing::Unframed => Reply::new(200, "").send(first),
        Framing::Chunked => {
            let chunk = [format!("{:x}\r\n", page.len() + 1).as_bytes(), first].concat();
            Reply::new(200, "Transfer-Encoding: chunked").send(chunk)
        }
        Framing::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(first).and_then(|()| writer.flush()).expect("a Vec takes all");
            let coded = writer.get_ref().len();
            writer.write_all(rest).expect("a Vec takes all");
            let whole = writer.finish().expect("a Vec takes all");
            let headers = format!("Content-Encoding: gzip\nContent-Length: {}", whole.len());
            Reply::new(200, &headers).send(&whole[..coded])
        }
    }
}

fn with(fault: Fault, reply: Reply, clock: &Arc<Skipping>) -> Reply {
    match fault {
        Fault::Close => reply,
        Fault::Reset => reply.reset(),
        Fault::Stall => {
            let clock = Arc::clone(clock);
            reply.stall(move || clock.lapse())
        }
    }
}

const RECORDS: usize = 5;
const TOKEN: &str = "next&amp;page";

/// The positions in the page, and the number of records before each.
fn places(page: &str) -> Vec<(&'static str, usize, usize)> {
    let find = |text: &str| page.find(text).expect("it is there");
    vec![
        ("before the head", 0, 0),
        ("in the head", find("xmlns:xsi"), 0),
        ("before the first record", find("<record>"), 0),
        ("in a record", find("oai:x:2") + 3, 2),
        ("in a multi-byte character", find("\u{ef}tle 3") + 1, 3),
        ("in the token", find(TOKEN) + 6, RECORDS),
        ("after the root", page.len(), RECORDS),
    ]
}

/// The result if the fault happens once: the complete page in one response.
fn check_once(cell: &str, proxy: &Proxy, source: &Source, place: &str) {
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.whole), (200, true), "{cell}: {}", got.text());
    let found = records_in(&got.text());
    assert_eq!(found, (0..RECORDS).map(|number| (number, 1)).collect(), "{cell}: {}", got.text());
    assert_eq!(token_in(&got.text()).as_deref(), Some("next&page"), "{cell}");
    assert!(got.text().trim_end().ends_with("</OAI-PMH>"), "{cell}: {}", got.text());
    let received = if place == "after the root" { 1 } else { 2 };
    assert_eq!(source.requests().len(), received, "{cell}");
}

/// The result if the fault happens every time: a 503 before the first record; after it the
/// available records, each once, and a continuation token.
fn check_always(cell: &str, proxy: &Proxy, fault: Fault, before: usize) {
    let got = proxy.get(LIST);
    // A reset may discard data that was sent before it.
    if before == 0 || fault == Fault::Reset && got.status == 503 {
        assert_eq!((got.status, got.whole), (503, true), "{cell}: {}", got.text());
        let seconds: u64 = got.header("retry-after").parse().expect("an integer");
        assert!((1..=3600).contains(&seconds), "{cell}: {seconds}");
        return;
    }
    assert_eq!((got.status, got.whole), (200, true), "{cell}: {}", got.text());
    let found = records_in(&got.text());
    assert!(
        found.keys().copied().eq(0..found.len()) && found.values().all(|count| *count == 1),
        "{cell}: {found:?}"
    );
    assert!(
        if fault == Fault::Reset { found.len() <= before } else { found.len() == before },
        "{cell}: {found:?}"
    );
    let token = token_in(&got.text()).expect("a token of ours");
    assert!(token.starts_with("oaimend1_"), "{cell}: {token}");
    let again = resume(proxy, &token);
    assert_eq!((again.status, again.whole), (503, true), "{cell}: {}", again.text());
}

fn matrix(framing: Framing) {
    let whole = page(0..RECORDS, TOKEN);
    let mut cells = 0;
    for (place, at, before) in places(&whole) {
        for fault in [Fault::Close, Fault::Reset, Fault::Stall] {
            for always in [false, true] {
                let cell =
                    format!("{fault:?} {place}, {framing:?}, {}", if always { "always" } else { "once" });
                let clock = Skipping::new();
                let (shared, body) = (Arc::clone(&clock), whole.clone());
                let source = Source::start(move |number, _| {
                    if always || number == 0 {
                        with(fault, cut(&body, at, framing), &shared)
                    } else {
                        Reply::xml(body.clone())
                    }
                });
                let url = source.base_url();
                let data = tempfile::tempdir().expect("a temporary folder");
                let mut mapping = Mapping::new("x", &url, &Limits::default()).expect("a legal mapping");
                // So short that a silence leaves time for another attempt.
                (mapping.source_mut().timeouts.connect, mapping.source_mut().timeouts.read) =
                    (Duration::from_secs(3), Duration::from_secs(3));
                let proxy = Proxy::start(data, clock, |config| config.repositories.add_fixed(mapping));
                // After the root nothing can be lost, unless a reset discards data.
                if always && place != "after the root" {
                    check_always(&cell, &proxy, fault, before);
                } else if fault != Fault::Reset || place != "after the root" {
                    check_once(&cell, &proxy, &source, place);
                }
                cells += 1;
            }
        }
    }
    println!("{framing:?}: {cells} cells");
}

#[test]
fn every_fault_at_every_place_of_a_body_with_a_length() {
    matrix(Framing::Length);
}

#[test]
fn every_fault_at_every_place_of_an_unframed_body() {
    matrix(Framing::Unframed);
}

#[test]
fn every_fault_at_every_place_of_a_chunked_body() {
    matrix(Framing::Chunked);
}

#[test]
fn every_fault_at_every_place_of_a_gzipped_body() {
    matrix(Framing::Gzip);
}

#[test]
fn every_error_status_in_place_of_a_page() {
    let whole = page(0..RECORDS, TOKEN);
    let statuses = [
        (500, ""),
        (502, ""),
        (503, ""),
        (503, "Retry-After: 7"),
        (504, ""),
        (429, "Retry-After: 3"),
        (403, ""),
    ];
    for (status, headers) in statuses {
        for (always, path) in [(false, LIST), (true, LIST), (false, RESUMED), (true, RESUMED)] {
            let cell = format!("{status} {headers}, always {always}, {path}");
            let body = whole.clone();
            let source = Source::start(move |number, _| {
                if always || number == 0 {
                    Reply::whole(status, &format!("Content-Type: text/html\n{headers}"), "<html>no</html>")
                } else {
                    Reply::xml(body.clone())
                }
            });
            let url = source.base_url();
            let proxy = Proxy::with(|config| {
                config.cache.failures = Duration::ZERO;
                config.map("x", &url).expect("a legal mapping");
            });
            let mut got = proxy.get(path);
            if status == 403 && !always {
                // A permanent status is retried only by the next request.
                assert_eq!((got.status, source.requests().len()), (503, 1), "{cell}");
                got = proxy.get(path);
            }
            if always {
                assert_eq!((got.status, got.whole), (503, true), "{cell}: {}", got.text());
                let seconds: u64 = got.header("retry-after").parse().expect("an integer");
                assert!((1..=3600).contains(&seconds), "{cell}: {seconds}");
                assert!(got.header("proxy-status").starts_with("oaimend; error="), "{cell}");
                assert_eq!(status == 403, source.requests().len() == 1, "{cell}");
                continue;
            }
            assert_eq!((got.status, got.whole), (200, true), "{cell}: {}", got.text());
            assert_eq!(records_in(&got.text()), (0..RECORDS).map(|number| (number, 1)).collect(), "{cell}");
            assert_eq!(source.requests().len(), 2, "{cell}");
            let waited = proxy.clock.pauses().first().map_or(0, Duration::as_secs);
            let wanted =
                headers.strip_prefix("Retry-After: ").map_or(0, |seconds| seconds.parse().expect("one"));
            assert!(waited >= wanted, "{cell}: {waited}");
        }
    }
}

const RESUMED: &str = "/x?verb=ListRecords&resumptionToken=page-1";

const PAGES: usize = 30;
const PER_PAGE: usize = 100;

/// The number of the requested page: the token contains it; without a token it is the first.
fn requested_page(received: &ReceivedRequest) -> usize {
    let token = received.target.split_once("resumptionToken=page-").map(|(_, token)| token);
    token.map_or(0, |token| token.parse().expect("a token that was given out"))
}

fn storm_page(number: usize) -> String {
    let token = if number + 1 == PAGES { String::new() } else { format!("page-{}", number + 1) };
    page(number * PER_PAGE..(number + 1) * PER_PAGE, &token)
}

/// A response of a source whose every third response fails in some way.
fn stormy(random: &mut Random, whole: &str) -> Reply {
    if random.below(3) > 0 {
        return Reply::xml(whole);
    }
    let at = random.below(whole.len());
    match random.below(10) {
        0 => Reply::whole(503, "Retry-After: 1", "busy"),
        1 => Reply::whole(429, "Retry-After: 0", ""),
        2 => Reply::whole(500, "", "<html>oops</html>"),
        3 => Reply::whole(200, "", ""),
        4 => Reply::whole(200, "Content-Type: text/html", "<html><body>Down for maintenance</body></html>"),
        5 => Reply::new(200, "").reset(),
        6 => cut(whole, at, Framing::Length),
        7 => cut(whole, at, Framing::Chunked).reset(),
        8 => cut(whole, at, Framing::Gzip),
        _ => cut(whole, at, Framing::Unframed),
    }
}

#[test]
fn list_completes_through_many_faults() {
    const SEEDS: u64 = 50;
    println!("seeds 1 to {SEEDS}");
    let pages: Arc<Vec<String>> = Arc::new((0..PAGES).map(storm_page).collect());
    let (mut received, mut answers) = (0, 0);
    for seed in 1..=SEEDS {
        let source = storm(seed, &pages);
        let proxy = Proxy::of(&source);
        let mut found = BTreeMap::new();
        let mut got = proxy.get(LIST);
        loop {
            answers += 1;
            assert_eq!((got.status, got.whole), (200, true), "seed {seed}, answer {answers}: {}", got.text());
            for (number, count) in records_in(&got.text()) {
                *found.entry(number).or_insert(0) += count;
            }
            let Some(token) = token_in(&got.text()) else { break };
            got = resume(&proxy, &token);
        }
        assert_eq!(found.len(), PAGES * PER_PAGE, "seed {seed}");
        assert!(found.values().all(|count| *count == 1), "seed {seed}");
        received += source.requests().len();
    }
    println!(
        "{SEEDS} lists of {} records: {received} requests to the source, {answers} answers",
        PAGES * PER_PAGE
    );
}

/// A source with random faults from a seed.
fn storm(seed: u64, pages: &Arc<Vec<String>>) -> Source {
    let served = Arc::clone(pages);
    Source::start(move |number, received| {
        let mut random = Random::new(seed << 32 | number as u64);
        stormy(&mut random, &served[requested_page(received)])
    })
}

#[test]
fn many_clients_share_requests_through_many_faults() {
    const SEEDS: std::ops::RangeInclusive<u64> = 101..=108;
    const CLIENTS: usize = 20;
    println!("seeds {SEEDS:?}");
    let pages: Arc<Vec<String>> = Arc::new((0..PAGES).map(storm_page).collect());
    for seed in SEEDS {
        let all = |proxy: &Proxy| {
            let (found, _) = read_to_the_end(proxy);
            assert_eq!(found, (0..PAGES * PER_PAGE).map(|number| (number, 1)).collect(), "seed {seed}");
        };
        let alone = storm(seed, &pages);
        all(&Proxy::of(&alone));
        let source = storm(seed, &pages);
        let proxy = Proxy::of(&source);
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| all(&proxy));
            }
        });
        let (one, many) = (alone.requests().len(), source.requests().len());
        println!("seed {seed}: {one} requests for one client, {many} for {CLIENTS}");
        assert!(many <= 3 * one, "seed {seed}: {many} requests for {CLIENTS} clients, {one} for one");
    }
}

/// A source whose n-th response for each page number comes from `script`.
fn paged(script: impl Fn(usize, usize) -> Reply + Send + Sync + 'static) -> (Arc<Vec<AtomicUsize>>, Source) {
    let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..PAGES).map(|_| AtomicUsize::new(0)).collect());
    let counted = Arc::clone(&counts);
    let source = Source::start(move |_, received| {
        let number = requested_page(received);
        script(number, counted[number].fetch_add(1, Ordering::Relaxed))
    });
    (counts, source)
}

#[test]
fn continuation_token_survives_a_restart() {
    let (_, source) = paged(|number, count| {
        let whole = page(number * 5..number * 5 + 5, if number == 0 { "page-1" } else { "" });
        let at = whole.find("oai:x:2").expect("it is there");
        if number == 0 && count < 8 { cut(&whole, at, Framing::Length) } else { Reply::xml(whole) }
    });
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.source_mut().quirks.page_fallback = PageFallback::Off;
    let again = mapping.clone();
    let proxy = Proxy::with(|config| config.repositories.add_fixed(mapping));
    let first = proxy.get(LIST);
    let ours = token_in(&first.text()).expect("a token of ours");
    assert!(ours.starts_with("oaimend1_") && records_in(&first.text()).len() == 2, "{}", first.text());
    let proxy = proxy.restarted(|config| config.repositories.add_fixed(again));
    let rest = resume(&proxy, &ours);
    assert_eq!((rest.status, rest.whole), (200, true), "{}", rest.text());
    assert_eq!(records_in(&rest.text()), (2..5).map(|number| (number, 1)).collect(), "{}", rest.text());
    assert_eq!(token_in(&rest.text()).as_deref(), Some("page-1"));
    // The harvester may repeat the request.
    assert_eq!(records_in(&resume(&proxy, &ours).text()).len(), 3);
    let forged = format!("{}A", &ours[..ours.len() - 1]);
    let got = resume(&proxy, &forged);
    assert!(
        source.requests().last().expect("asked").target.contains("oaimend1_"),
        "what is not ours goes upstream"
    );
    assert_eq!(got.status, 200);
}

#[test]
fn page_without_items_is_skipped() {
    let (_, source) = paged(|number, _| match number {
        0 | 1 => Reply::xml(page(0..0, &format!("page-{}", number + 1))),
        _ => Reply::xml(page(0..5, "")),
    });
    let got = Proxy::of(&source).get(LIST);
    assert_eq!((got.status, records_in(&got.text()).len()), (200, 5), "{}", got.text());
    assert_eq!(source.requests().len(), 3);
}

#[test]
fn token_cycle_is_refused_and_repetition_is_not() {
    let (_, source) = paged(|number, _| {
        Reply::xml(page(
            number * 5..number * 5 + 5,
            if number == 2 { "page-1" } else { ["page-1", "page-2"][number] },
        ))
    });
    // Page 3 does not exist: page 2 leads back to page 1, whose items are known.
    let proxy = Proxy::of(&source);
    let first = proxy.get(LIST);
    let one = token_in(&first.text()).expect("a token");
    for _ in 0..3 {
        let again = resume(&proxy, &one);
        assert_eq!(records_in(&again.text()).len(), 5, "a request that is repeated is no loop");
    }
    let two = token_in(&resume(&proxy, &one).text()).expect("a token");
    let back = token_in(&resume(&proxy, &two).text()).expect("a token");
    assert_eq!(back, one);
    let (_, constant) = paged(|number, count| {
        let at = (number + count) * 5;
        Reply::xml(page(at..at + 5, if at < 20 { "page-1" } else { "" }))
    });
    let proxy = Proxy::of(&constant);
    let mut got = proxy.get(LIST);
    let mut found = records_in(&got.text()).len();
    while let Some(token) = token_in(&got.text()) {
        got = resume(&proxy, &token);
        found += records_in(&got.text()).len();
        assert!(found < 100, "bounded");
    }
    assert!(found == 25, "one token for all pages is no loop: {found}");
    let (_, stuck) = paged(|_, _| Reply::xml(page(0..5, "page-1")));
    let proxy = Proxy::of(&stuck);
    let token = token_in(&proxy.get(LIST).text()).expect("a token");
    let got = resume(&proxy, &token);
    assert_eq!(got.status, 200);
    assert!(
        got.text().contains("badResumptionToken") && got.text().contains("goes in circles"),
        "{}",
        got.text()
    );
}

#[test]
fn buffered_items_do_not_count_as_delivered() {
    // Page 1 repeats page 0. It is buffered until it is clear that this is no cycle; then it is
    // truncated.
    let (_, source) = paged(|number, count| {
        let whole = page(0..5, ["page-1", "page-2"][number]);
        let at = whole.find("page-2").map(|at| at + 2);
        match at {
            Some(at) if count == 0 => cut(&whole, at, Framing::Length),
            _ => Reply::xml(whole),
        }
    });
    let proxy = Proxy::of(&source);
    let token = token_in(&proxy.get(LIST).text()).expect("a token");
    let got = resume(&proxy, &token);
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!(records_in(&got.text()).len(), 5, "{}", got.text());
    assert_eq!(token_in(&got.text()).as_deref(), Some("page-2"));
}

#[test]
fn expired_token_restarts_the_list() {
    let expired = |status| {
        let body = concat!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-02T03:04:05Z</responseDate>",
            "<request>http://source.example/oai</request><error code=\"badResumptionToken\">gone</error></OAI-PMH>"
        );
        Reply::whole(status, "Content-Type: text/xml", if status == 200 { body } else { "gone" })
    };
    for status in [200, 400, 500] {
        // The source has lost its tokens when page 2 is requested, and continues with others.
        let (_, source) = paged(move |number, count| match (number, count) {
            (2, _) => expired(status),
            (0, 0) => Reply::xml(page(0..5, "page-1")),
            (1, 0) => Reply::xml(page(5..10, "page-2")),
            (0, _) => Reply::xml(page(0..5, "page-11")),
            (11, _) => Reply::xml(page(5..10, "page-12")),
            (12, _) => Reply::xml(page(10..15, "page-13")),
            _ => Reply::xml(page(15..20, "")),
        });
        let proxy = Proxy::of(&source);
        let mut found = BTreeMap::new();
        let mut got = proxy.get(LIST);
        loop {
            assert_eq!((got.status, got.whole), (200, true), "{status}: {}", got.text());
            for (number, count) in records_in(&got.text()) {
                *found.entry(number).or_insert(0) += count;
            }
            let Some(token) = token_in(&got.text()) else { break };
            got = resume(&proxy, &token);
        }
        assert_eq!(found, (0..20).map(|number| (number, 1)).collect(), "{status}");
    }
    // An unknown token is the harvester's mistake.
    let (_, source) = paged(move |_, _| expired(200));
    let got = resume(&Proxy::of(&source), "page-7");
    assert!(got.text().contains("badResumptionToken\">gone"), "{}", got.text());
}

#[test]
fn short_retry_after_is_waited_for_and_long_is_forwarded() {
    let (_, source) =
        paged(
            |_, count| {
                if count == 0 { Reply::whole(503, "Retry-After: 7", "") } else { Reply::xml(page(0..5, "")) }
            },
        );
    let proxy = Proxy::of(&source);
    assert_eq!(proxy.get(LIST).status, 200);
    let pauses = proxy.clock.pauses();
    assert_eq!(pauses.iter().map(|pause| pause.as_secs()).collect::<Vec<_>>(), [7], "{pauses:?}");
    let (_, source) = paged(|_, _| Reply::whole(503, "Retry-After: 500", ""));
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.header("retry-after")), (503, "500"));
    assert!(proxy.clock.pauses().is_empty() && source.requests().len() == 1);
}

#[test]
fn circuit_opens_for_a_failing_source() {
    let source = Source::start(|_, _| Reply::whole(403, "", "go away"));
    let url = source.base_url();
    let proxy = Proxy::with(|config| {
        config.cache.failures = Duration::ZERO;
        config.map("x", &url).expect("a legal mapping");
    });
    for _ in 0..5 {
        assert_eq!(proxy.get(LIST).status, 503);
    }
    assert_eq!(source.requests().len(), 5, "what is forbidden is not tried again");
    let got = proxy.get(LIST);
    assert_eq!(source.requests().len(), 5);
    assert!(got.text().contains("is paused for") && got.text().contains("status 403"), "{}", got.text());
    assert!(!got.text().contains("go away"), "it quotes the source: {}", got.text());
    let seconds: u64 = got.header("retry-after").parse().expect("an integer");
    assert!((500..=600).contains(&seconds), "{seconds}");
}
