//! The quotas of clients: a crawler with too many requests is refused, and no harvester is
//! affected.
//!
//! Loopback has no quota, so the clients here use a trusted proxy on loopback, and
//! `X-Forwarded-For` contains their addresses.

use crate::fixtures::proxy::{LIST, Proxy, at_once, records};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with, page_of};
use oaimend::config::{ClassQuotas, ClientPolicy, PageQuotas, Quota};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A proxy in front of a source, and behind a trusted proxy on loopback.
fn behind_a_proxy(source: &Source, configure: impl FnOnce(&mut ClientPolicy)) -> Proxy {
    Proxy::with(|config| {
        // The requests must not be coalesced.
        config.cache.enabled = false;
        config.repositories.add_fixed(at_once(source));
        config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
        configure(&mut config.clients);
    })
}

fn get(proxy: &Proxy, client: &str, more: &str) -> Got {
    fetch_with(proxy.address(), LIST, &format!("X-Forwarded-For: {client}\r\n{more}"))
}

/// Sends a request and leaves the response unread.
fn begin(proxy: &Proxy, client: &str, more: &str) -> Harvester {
    let head = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\n{more}");
    Harvester::ask(proxy.address(), &format!("{head}Connection: close\r\n\r\n"))
}

/// A source that sends half of each page, and the rest on a signal.
fn halting() -> (Source, Arc<Mutex<Vec<Sender<()>>>>) {
    let halted = Arc::new(Mutex::new(Vec::new()));
    let for_source = Arc::clone(&halted);
    let source = Source::start(move |_, _| {
        let page = page_of(3);
        let (first, rest) = page.split_at(page.len() / 2);
        let (go, wait) = channel();
        for_source.lock().expect("no panic").push(go);
        Reply::new(200, &format!("Content-Length: {}", page.len())).send(first).wait(wait).send(rest)
    });
    (source, halted)
}

fn quota(rate_per_minute: u32, burst: u32, in_flight_max: u32) -> Quota {
    Quota {
        rate_per_minute: NonZeroU32::new(rate_per_minute),
        burst: NonZeroU32::new(burst),
        in_flight_max: NonZeroU32::new(in_flight_max),
    }
}

#[track_caller]
fn is_sent_away(got: &Got, said: &str) {
    assert_eq!((got.status, got.whole), (503, true), "{got:?}");
    let after: u64 = got.header("retry-after").parse().expect("an integer");
    assert!((1..=3600).contains(&after), "{got:?}");
    assert_eq!(got.header("proxy-status"), "", "it is not the source that failed");
    assert_eq!(got.header("content-type"), "text/plain; charset=UTF-8");
    assert!(got.text().contains(said), "{}", got.text());
}

#[test]
fn requests_in_flight_per_address() {
    let (source, halted) = halting();
    let proxy = behind_a_proxy(&source, |clients| clients.wait_max = Duration::from_secs(60));
    let mut flying: Vec<Harvester> = (0..64).map(|_| begin(&proxy, "192.0.2.1", "")).collect();
    assert!(flying.iter_mut().all(|harvester| harvester.head().status == 200));
    let mut next = begin(&proxy, "192.0.2.1", "");
    // Another address has a quota of its own.
    let mut other = begin(&proxy, "192.0.2.2", "");
    assert_eq!(other.head().status, 200);
    assert_eq!(source.requests().len(), 65, "the 65th of the first address waits");
    halted.lock().expect("no panic").remove(0);
    assert_eq!(next.head().status, 200);
    assert_eq!(source.requests().len(), 66);
}

#[test]
fn expired_wait_gives_503_and_retry_succeeds() {
    let (source, halted) = halting();
    let proxy = behind_a_proxy(&source, |clients| {
        clients.wait_max = Duration::from_millis(50);
        clients.harvesters.each = quota(0, 0, 1);
    });
    let mut first = begin(&proxy, "192.0.2.1", "");
    assert_eq!(first.head().status, 200);
    is_sent_away(
        &get(&proxy, "192.0.2.1", ""),
        "as many requests in flight as are allowed from your address",
    );
    assert_eq!(source.requests().len(), 1);
    halted.lock().expect("no panic").clear();
    while first.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    // The slot is free once the proxy has seen the end of the response.
    while begin(&proxy, "192.0.2.1", "").head().status != 200 {
        std::thread::yield_now();
    }
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    assert!(
        metrics.contains("oaimend_refused_total{class=\"harvesters\",reason=\"in-flight\"}"),
        "{metrics}"
    );
}

#[test]
fn disconnect_releases_the_slot() {
    let source = Source::start(|number, _| match number {
        0 => Reply::new(200, "Content-Length: 100000").send(page_of(100).split_at(20_000).0).hang(),
        _ => Reply::xml(page_of(1)),
    });
    let proxy = behind_a_proxy(&source, |clients| {
        clients.wait_max = Duration::from_secs(60);
        clients.harvesters.each = quota(0, 0, 1);
    });
    let mut first = begin(&proxy, "192.0.2.1", "");
    assert_eq!(first.head().status, 200);
    drop(first);
    let got = get(&proxy, "192.0.2.1", "");
    assert_eq!(got.status, 200, "{}", got.text());
}

#[test]
fn crawlers_do_not_slow_harvesters() {
    let source = Source::start(|_, received| {
        if received.target.contains("set=stuck") {
            Reply::new(200, "").hang()
        } else {
            Reply::xml(page_of(2))
        }
    });
    let proxy = behind_a_proxy(&source, |clients| clients.wait_max = Duration::from_millis(20));
    let over = AtomicBool::new(false);
    let bot = "User-Agent: Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)\r\n";
    let (answered, sent_away) = std::thread::scope(|scope| {
        let crawl = |crawler: usize| {
            let (over, proxy) = (&over, &proxy);
            move || {
                let (mut answered, mut sent_away) = (0, 0);
                while !over.load(Ordering::Relaxed) {
                    let got = get(proxy, &format!("198.51.100.{crawler}"), bot);
                    match got.status {
                        200 => answered += 1,
                        _ => {
                            is_sent_away(&got, "class crawlers");
                            sent_away += 1;
                        }
                    }
                }
                (answered, sent_away)
            }
        };
        let crawlers: Vec<_> = (0..16).map(|crawler| scope.spawn(crawl(crawler % 4))).collect();
        // These never complete: all slots of the crawlers stay in use.
        let stuck = "GET /x?verb=ListRecords&metadataPrefix=oai_dc&set=stuck HTTP/1.1\r\nHost: x\r\n";
        let stuck: Vec<_> = (10..20)
            .map(|crawler| {
                let head = format!("{stuck}X-Forwarded-For: 198.51.100.{crawler}\r\n{bot}\r\n");
                Harvester::ask(proxy.address(), &head)
            })
            .collect();
        for _ in 0..150 {
            let got = get(&proxy, "192.0.2.1", "User-Agent: Python-urllib/3.12\r\n");
            assert_eq!((got.status, got.whole), (200, true), "{got:?}");
            assert_eq!(records(&got.text()), records(&page_of(2)));
        }
        over.store(true, Ordering::Relaxed);
        let counts = crawlers.into_iter().map(|crawler| crawler.join().expect("it counts"));
        let counts = counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        drop(stuck);
        counts
    });
    assert!(sent_away > 0, "the flood was too thin to show anything");
    // Each of four has 10 at once and one per second; the flood has not taken longer than that.
    assert!(answered <= 4 * (10 + 60), "{answered} of the crawlers' requests were answered");
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    assert!(metrics.contains("oaimend_refused_total{class=\"crawlers\""), "{metrics}");
    assert!(!metrics.contains("oaimend_refused_total{class=\"harvesters\""), "{metrics}");
}

#[test]
fn http_libraries_are_not_crawlers() {
    let source = Source::page(page_of(1));
    let proxy = behind_a_proxy(&source, |clients| {
        clients.wait_max = Duration::ZERO;
        clients.crawlers.quotas = ClassQuotas {
            each: quota(1, 1, 1),
            all: Quota::default(),
            pages: PageQuotas { each: quota(1, 1, 1), all: Quota::default() },
        };
    });
    for library in ["Python-urllib/3.12", "python-requests/2.32.3", "libwww-perl/6.77", "curl/8.5.0", ""] {
        for _ in 0..3 {
            assert_eq!(
                get(&proxy, "192.0.2.1", &format!("User-Agent: {library}\r\n")).status,
                200,
                "{library}"
            );
        }
    }
    let bot = "User-Agent: CCBot/2.0 (https://commoncrawl.org/faq/)\r\n";
    assert_eq!(get(&proxy, "192.0.2.1", bot).status, 200);
    is_sent_away(&get(&proxy, "192.0.2.1", bot), "more requests in this time than are allowed");
    assert_eq!(get(&proxy, "192.0.2.1", "").status, 200, "the same address as a harvester");
}

#[test]
fn user_agent_cannot_raise_a_quota() {
    let source = Source::page(page_of(1));
    let strict = |clients: &mut ClientPolicy| {
        clients.wait_max = Duration::ZERO;
        clients.harvesters.each = quota(1, 2, 0);
    };
    let proxy = behind_a_proxy(&source, strict);
    // The proxy in front adds the last address; the client wrote the others.
    assert_eq!(get(&proxy, "192.0.2.1", "").status, 200);
    assert_eq!(get(&proxy, "127.0.0.1, 192.0.2.1", "").status, 200);
    for forged in ["127.0.0.1, 192.0.2.1", "203.0.113.5, 192.0.2.1", "192.0.2.1, 127.0.0.5", "x, 192.0.2.1"] {
        is_sent_away(&get(&proxy, forged, ""), "class harvesters");
    }
    assert_eq!(get(&proxy, "192.0.2.1, 203.0.113.5", "").status, 200);
    // An untrusted peer is the client itself, and loopback has no quota.
    let proxy = Proxy::with(|config| {
        // The requests must not be coalesced.
        config.cache.enabled = false;
        config.repositories.add_fixed(at_once(&source));
        strict(&mut config.clients);
    });
    for _ in 0..5 {
        assert_eq!(get(&proxy, "192.0.2.1", "").status, 200);
    }
}

#[test]
fn token_selects_the_quota() {
    let source = Source::page(page_of(1));
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("core.token"), "0123456789abcdef\n").expect("a writable folder");
    let text = "[clients]\ntrusted_proxies = [\"127.0.0.1\"]\nwait_max_millis = 0\nrate_per_minute = 1\nburst = 1\n\
                [clients.known.core]\ntoken_file = \"core.token\"\n";
    let file = folder.path().join("oaimend.toml");
    std::fs::write(&file, text).expect("a writable folder");
    let flags = oaimend::config::Flags { config: Some(file), ..oaimend::config::Flags::default() };
    let loaded = oaimend::config::Config::load(&flags).expect("no faults");
    let proxy = Proxy::with(|config| {
        // The requests must not be coalesced.
        config.cache.enabled = false;
        config.repositories.add_fixed(at_once(&source));
        config.clients = loaded.clients;
    });
    let token = "Authorization: Bearer 0123456789abcdef\r\n";
    for _ in 0..5 {
        assert_eq!(get(&proxy, "192.0.2.1", token).status, 200);
    }
    assert!(source.requests().iter().all(|received| !received.headers.contains_key("authorization")));
    assert_eq!(get(&proxy, "192.0.2.1", "").status, 200);
    is_sent_away(&get(&proxy, "192.0.2.1", "Authorization: Bearer 0123456789abcdeg\r\n"), "class harvesters");
}

#[test]
fn health_checks_have_no_quota() {
    let source = Source::page(page_of(1));
    let proxy = behind_a_proxy(&source, |clients| {
        clients.wait_max = Duration::ZERO;
        clients.harvesters.pages.each = quota(1, 1, 1);
    });
    let ask = |path: &str| fetch_with(proxy.address(), path, "X-Forwarded-For: 192.0.2.1\r\n");
    assert_eq!(ask("/").status, 200);
    is_sent_away(&ask("/"), "class harvesters");
    for _ in 0..5 {
        assert_eq!((ask("/-/livez").status, ask("/-/readyz").status), (200, 200));
    }
}
