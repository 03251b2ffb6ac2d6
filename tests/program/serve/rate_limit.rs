//! Limits on requests to sources: concurrent lists, gaps and rates.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source;
use crate::fixtures::source::{Got, Harvester, Reply, Source, page_of};
use oaimend::config::Mapping;
use oaimend_upstream::settings::{Limits, PageFallback};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const RECORD: &str = "/x?verb=GetRecord&identifier=oai%3Ax%3A0&metadataPrefix=oai_dc";

/// A source whose first list stops after its first record until a signal.
fn halting() -> (Sender<()>, Source) {
    let (go, wait) = channel();
    let wait = Mutex::new(Some(wait));
    let source = Source::start(move |_, received| {
        let page = page_of(2);
        if received.target.contains("GetRecord") {
            return Reply::xml(page_of(1).replace("ListRecords", "GetRecord"));
        }
        let Some(wait) = wait.lock().expect("no panic").take() else { return Reply::xml(page) };
        let (first, rest) =
            page.split_at(page.find("<record><header><identifier>oai:x:1").expect("it is there"));
        Reply::new(200, &format!("Content-Length: {}", page.len())).send(first).wait(wait).send(rest)
    });
    (go, source)
}

fn begin(proxy: &Proxy) -> Harvester {
    let request = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut harvester = Harvester::ask(proxy.address(), &request);
    assert_eq!(harvester.head().status, 200);
    harvester
}

/// Sends a request from a thread, which returns the response.
fn aside(proxy: &Proxy, path: &'static str) -> std::thread::JoinHandle<Got> {
    let address = proxy.address();
    std::thread::spawn(move || source::fetch(address, path))
}

const SET: &str = "/x?verb=ListRecords&metadataPrefix=oai_dc&set=a";

#[test]
fn lists_are_sequential_and_records_are_not() {
    let (go, source) = halting();
    let proxy =
        Proxy::tuned(&source, |mapping| mapping.source_mut().timeouts.read = Duration::from_secs(3600));
    let mut first = begin(&proxy);
    let second = aside(&proxy, SET);
    assert_eq!(proxy.get(RECORD).status, 200, "a record needs no turn");
    assert!(
        source.requests().iter().all(|received| !received.target.contains("set=a")),
        "the second list waits"
    );
    go.send(()).expect("the source waits");
    while first.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    let second = second.join().expect("no panic");
    assert_eq!((second.status, second.whole), (200, true));
    assert!(source.requests().iter().any(|received| received.target.contains("set=a")));
}

#[test]
fn list_requests_max() {
    let (go, source) = halting();
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().timeouts.read = Duration::from_secs(3600);
        mapping.source_mut().politeness.list_requests_max = 2;
    });
    let first = begin(&proxy);
    assert_eq!(proxy.get(SET).status, 200);
    drop((first, go));
}

#[test]
fn expired_wait_gives_503() {
    let (go, source) = halting();
    // Two repositories on one host share its limit. The list of the first one keeps its place for longer than the second
    // one waits.
    let proxy = Proxy::with(|config| {
        for (id, secs) in [("x", 600), ("y", 1)] {
            let mapping = Mapping::new(id, &source.base_url(), &Limits::default());
            let mut mapping = mapping.expect("a legal mapping");
            mapping.source_mut().timeouts.read = Duration::from_secs(3600);
            mapping.source_mut().limits.first_record_timeout = Duration::from_secs(secs);
            mapping.source_mut().quirks.page_fallback = PageFallback::Off;
            config.repositories.add_fixed(mapping);
        }
    });
    let first = begin(&proxy);
    let got = proxy.get(&SET.replace("/x?", "/y?"));
    assert_eq!(got.status, 503);
    assert!(got.text().contains("is busy with other requests"), "{}", got.text());
    drop((first, go));
}

#[test]
fn gap_millis() {
    let source = Source::page(page_of(1));
    let proxy =
        Proxy::tuned(&source, |mapping| mapping.source_mut().politeness.gap = Duration::from_secs(20));
    for set in ["a", "b", "c"] {
        let path = format!("/x?verb=ListRecords&metadataPrefix=oai_dc&set={set}");
        assert_eq!(proxy.get(&path).status, 200);
    }
    let waited: Vec<u64> =
        proxy.clock.pauses().iter().map(|pause| pause.as_secs_f64().round() as u64).collect();
    assert_eq!(waited, [20, 20]);
}

#[test]
fn requests_per_minute_max() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().politeness.requests_per_minute_max = NonZeroU32::new(2);
        // The third request waits nearly 30 seconds, and needs time after that.
        mapping.source_mut().limits.first_record_timeout = Duration::from_secs(120);
    });
    for set in ["a", "b", "c"] {
        let got = proxy.get(&format!("/x?verb=ListRecords&metadataPrefix=oai_dc&set={set}"));
        assert_eq!(got.status, 200, "{set}: {}", got.text());
    }
    let pauses = proxy.clock.pauses();
    assert!(pauses.len() == 1 && pauses[0] > Duration::from_secs(28), "two may come at once: {pauses:?}");
}

/// Requests a set as the client with this address, from a thread. `kind` is the product in its `User-Agent`.
fn ask_as(proxy: &Proxy, client: &str, kind: &str, set: &str) -> std::thread::JoinHandle<Got> {
    let address = proxy.address();
    let path = format!("/x?verb=ListRecords&metadataPrefix=oai_dc&set={set}");
    let headers = format!("X-Forwarded-For: {client}\r\nUser-Agent: {kind}\r\n");
    std::thread::spawn(move || source::fetch_with(address, &path, &headers))
}

/// Waits until so many requests wait for the source.
#[track_caller]
fn wait_for_waiting(proxy: &Proxy, count: u64) {
    let until = oaimend_base::clock::uptime() + Duration::from_secs(30);
    while proxy.admin_json("/-/repositories/x")["waiting_requests"] != count {
        assert!(oaimend_base::clock::uptime() < until, "{}", proxy.admin_json("/-/repositories/x"));
        std::thread::yield_now();
    }
}

/// The sets in the order in which the source was asked for them.
fn requested_sets(source: &Source) -> Vec<String> {
    let received = source.requests();
    let sets = received
        .iter()
        .filter_map(|received| received.target.split_once("set=").map(|(_, set)| set.to_owned()));
    sets.collect()
}

#[test]
fn harvesters_and_their_clients_take_turns_before_crawlers() {
    let (go, source) = halting();
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.source_mut().timeouts.read = Duration::from_secs(3600);
    let proxy = Proxy::with(|config| {
        config.repositories.add_fixed(mapping);
        config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    });
    let mut first = begin(&proxy);
    let mut threads = Vec::new();
    for (client, kind, set) in [
        ("192.0.2.1", "Googlebot", "crawler"),
        ("192.0.2.2", "harvester", "a1"),
        ("192.0.2.2", "harvester", "a2"),
        ("192.0.2.2", "harvester", "a3"),
        ("192.0.2.3", "harvester", "b1"),
    ] {
        threads.push(ask_as(&proxy, client, kind, set));
        wait_for_waiting(&proxy, threads.len() as u64);
    }
    go.send(()).expect("the source waits");
    while first.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    for thread in threads {
        assert_eq!(thread.join().expect("no panic").status, 200);
    }
    assert_eq!(requested_sets(&source), ["a1", "b1", "a2", "a3", "crawler"]);
}
