//! Concurrent identical requests share one session, and slow readers do not block each other.

use crate::fixtures::keeping::{
    IDENTIFY, TOKEN_PAGE, forgetful, identify, in_flight, kept, long_in_two, map, purge, request, wait_until,
};
use crate::fixtures::proxy::{LIST, Proxy, records};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, last_page_of, page_of};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Sends the same request on many connections, and calls `then` when all have arrived.
fn together(proxy: &Proxy, path: &str, count: usize, then: impl FnOnce()) -> Vec<Got> {
    let address = proxy.address();
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..count).map(|_| scope.spawn(|| fetch(address, path))).collect();
        wait_until(|| in_flight(proxy) == count);
        then();
        asking.into_iter().map(|received| received.join().expect("it was answered")).collect()
    })
}

/// A source that answers its first request only on a signal.
fn held(reply: impl Fn() -> Reply + Send + Sync + 'static) -> (Sender<()>, Source) {
    let (go, wait): (_, Receiver<()>) = channel();
    let wait = Mutex::new(Some(wait));
    let source = Source::start(move |_, _| {
        if let Some(wait) = wait.lock().expect("no panic").take() {
            let _ = wait.recv();
        }
        reply()
    });
    (go, source)
}

#[test]
fn concurrent_requests_share_one_session() {
    for path in [LIST, IDENTIFY, TOKEN_PAGE] {
        let (go, source) = held(|| Reply::xml(page_of(50)));
        let proxy = Proxy::of(&source);
        let got = together(&proxy, path, 20, || go.send(()).expect("the source waits"));
        assert_eq!(source.requests().len(), 1, "{path}");
        for one in &got {
            assert_eq!((one.status, one.whole, one.text()), (200, true, got[0].text()), "{path}");
        }
        let collapsed = |got: &&Got| got.header("cache-status").ends_with("; collapsed");
        let others = got.iter().filter(|got| got.header("cache-status") == "oaimend; hit").count();
        assert_eq!(got.iter().filter(collapsed).count() + others, 19, "{path}");
    }
}

#[test]
fn failure_is_shared_and_cached_for_seconds() {
    let (go, source) = held(|| Reply::whole(503, "Retry-After: 77", ""));
    let proxy = Proxy::of(&source);
    let got = together(&proxy, LIST, 20, || go.send(()).expect("the source waits"));
    assert_eq!(source.requests().len(), 1);
    let later = proxy.get(LIST);
    for one in got.iter().chain([&later]) {
        assert_eq!((one.status, one.whole, one.header("retry-after")), (503, true, "77"));
        assert_eq!(one.text(), got[0].text());
        assert!(one.header("proxy-status").starts_with("oaimend; error=destination_unavailable"));
    }
    assert_eq!(later.header("cache-status"), "oaimend; hit");
    assert!(later.header("age").parse::<u64>().is_ok_and(|secs| secs < 60), "{:?}", later.header("age"));
    assert_eq!(source.requests().len(), 1);
    wait_until(|| proxy.admin_json("/-/repositories/x")["requests"] == 21);
    assert_eq!(proxy.admin_json("/-/repositories/x")["source_failures"], 1);
}

#[test]
fn waiters_get_the_stale_page_on_failure() {
    let (go, wait): (_, Receiver<()>) = channel();
    let wait = Mutex::new(wait);
    let source = Source::start(move |number, _| {
        if number == 0 {
            return Reply::xml(identify("old"));
        }
        let _ = wait.lock().expect("no panic").recv();
        Reply::whole(500, "", "")
    });
    let proxy = forgetful(&source);
    let first = proxy.get(IDENTIFY);
    wait_until(|| in_flight(&proxy) == 0);
    let got = together(&proxy, IDENTIFY, 20, || drop(go));
    for one in got {
        assert_eq!((one.status, one.whole, one.text()), (200, true, first.text()));
    }
    // Once, and once for each retry of a failing page.
    assert_eq!(source.requests().len(), 1 + 8);
}

#[test]
fn slow_reader_does_not_block_others() {
    const RECORDS: usize = 40_000;
    let (go, source) = long_in_two(RECORDS);
    let proxy = Proxy::of(&source);
    let mut stalled = Harvester::ask(proxy.address(), &request(proxy.address(), LIST));
    assert_eq!(stalled.head().status, 200);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let also_stalled = runtime.block_on(async {
        let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build();
        let url = format!("http://{}{LIST}", proxy.address());
        client.expect("a client").get(url).send().await.expect("an answer")
    });
    let mut reading = Harvester::ask(proxy.address(), &request(proxy.address(), LIST));
    assert_eq!(reading.head().header("cache-status"), "oaimend; fwd=miss; fwd-status=200; collapsed");
    go.send(()).expect("the source waits");
    let mut body = Vec::new();
    while let Some(chunk) = reading.chunk().filter(|chunk| !chunk.is_empty()) {
        body.extend(chunk);
    }
    assert!(body.len() > 15 << 20, "longer than what sockets hold: {}", body.len());
    assert!(String::from_utf8_lossy(&body).trim_end().ends_with("</OAI-PMH>"));
    assert_eq!(source.requests().len(), 1);
    drop((stalled, also_stalled));
}

#[test]
fn slow_first_reader_does_not_block_others_over_http_2() {
    let (go, source) = long_in_two(40_000);
    let proxy = Proxy::of(&source);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let stalled = runtime.block_on(async {
        let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build();
        let url = format!("http://{}{LIST}", proxy.address());
        client.expect("a client").get(url).send().await.expect("an answer")
    });
    let mut reading = Harvester::ask(proxy.address(), &request(proxy.address(), LIST));
    assert_eq!(reading.head().status, 200);
    go.send(()).expect("the source waits");
    let mut last = Vec::new();
    while let Some(chunk) = reading.chunk().filter(|chunk| !chunk.is_empty()) {
        last = chunk;
    }
    assert!(String::from_utf8_lossy(&last).trim_end().ends_with("</OAI-PMH>"));
    let body = runtime.block_on(stalled.bytes()).expect("it gets all of it when it reads");
    assert_eq!(records(&String::from_utf8_lossy(&body)), records(&page_of(40_000)));
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn page_longer_than_the_spool_reaches_all_readers() {
    let (go, source) = long_in_two(10_000);
    let proxy = Proxy::with(|config| {
        config.cache.entry_bytes_max = 1 << 20;
        map(config, &source, |_| {});
    });
    let ask = || {
        let mut harvester = Harvester::ask(proxy.address(), &request(proxy.address(), TOKEN_PAGE));
        assert_eq!(harvester.head().status, 200);
        harvester
    };
    let readers: Vec<Harvester> = (0..3).map(|_| ask()).collect();
    go.send(()).expect("the source waits");
    let bodies: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let read = |mut harvester: Harvester| {
            let mut body = Vec::new();
            while let Some(chunk) = harvester.chunk().filter(|chunk| !chunk.is_empty()) {
                body.extend(chunk);
            }
            body
        };
        let reading: Vec<_> = readers.into_iter().map(|one| scope.spawn(move || read(one))).collect();
        reading.into_iter().map(|one| one.join().expect("it was read")).collect()
    });
    for body in bodies {
        assert!(records(&String::from_utf8_lossy(&body)) == records(&last_page_of(10_000)));
    }
    assert_eq!((source.requests().len(), kept(&proxy).len()), (1, 0));
}

#[test]
fn aborted_page_is_aborted_for_all_readers() {
    let (go, wait): (_, Receiver<()>) = channel();
    let wait = Mutex::new(Some(wait));
    let source = Source::start(move |_, _| {
        let page = page_of(3).replace("Title 1", &"Title 1 ".repeat(1000));
        let at = page.find("<record><header><identifier>oai:x:1").expect("it is there");
        let wait = wait.lock().expect("no panic").take().expect("asked once");
        let head = format!("Content-Length: {}", page.len());
        Reply::new(200, &head).send(&page[..at]).wait(wait).send(&page[at..at + 4000])
    });
    // A part of an oversized record was sent: the page cannot be resumed.
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().limits.repair.record_bytes_max = 1024);
    let mut readers: Vec<Harvester> =
        (0..5).map(|_| Harvester::ask(proxy.address(), &request(proxy.address(), TOKEN_PAGE))).collect();
    for reader in &mut readers {
        assert_eq!(reader.head().status, 200);
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let over_http_2 = runtime.block_on(async {
        let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build();
        let url = format!("http://{}{TOKEN_PAGE}", proxy.address());
        client.expect("a client").get(url).send().await.expect("an answer")
    });
    assert_eq!(source.requests().len(), 1);
    go.send(()).expect("the source waits");
    for mut reader in readers {
        let mut body = Vec::new();
        let end = loop {
            match reader.chunk() {
                Some(chunk) if chunk.is_empty() => break "whole",
                Some(chunk) => body.extend(chunk),
                None => break "broken off",
            }
        };
        let text = String::from_utf8_lossy(&body);
        assert_eq!(end, "broken off", "{text}");
        assert!(text.contains("oai:x:0") && !text.contains("</OAI-PMH>"), "{text}");
    }
    let error = runtime.block_on(over_http_2.bytes()).expect_err("it breaks off");
    assert!(format!("{error:?}").contains("Reset("), "{error:?}");
    wait_until(|| proxy.admin_json("/-/repositories/x")["requests"] == 6);
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    let line = "oaimend_requests_total{outcome=\"broken-off\",repository=\"x\",verb=\"ListRecords\"} 6";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn disconnect_does_not_abort_a_cacheable_page() {
    let (go, source) = long_in_two(100);
    let proxy = Proxy::of(&source);
    let mut harvester = Harvester::ask(proxy.address(), &request(proxy.address(), TOKEN_PAGE));
    assert_eq!(harvester.head().status, 200);
    drop(harvester);
    go.send(()).expect("the source waits");
    wait_until(|| proxy.admin_json("/-/repositories/x")["requests"] == 1);
    let got = proxy.get(TOKEN_PAGE);
    assert_eq!((got.header("cache-status"), got.whole), ("oaimend; hit", true));
    assert_eq!(records(&got.text()), records(&last_page_of(100)));
}

#[test]
fn page_purged_in_flight_is_not_cached() {
    let (go, source) = long_in_two(100);
    let proxy = Proxy::of(&source);
    let mut harvester = Harvester::ask(proxy.address(), &request(proxy.address(), TOKEN_PAGE));
    assert_eq!(harvester.head().status, 200);
    assert_eq!(purge(&proxy, "/-/cache/x").status, 200);
    go.send(()).expect("the source waits");
    while harvester.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    wait_until(|| in_flight(&proxy) == 0);
    assert_eq!(kept(&proxy).len(), 0);
}

#[test]
fn disconnect_of_the_first_reader_keeps_the_session() {
    let (go, source) = held(|| Reply::xml(page_of(50)));
    let proxy = Proxy::of(&source);
    let first = Harvester::ask(proxy.address(), &request(proxy.address(), LIST));
    wait_until(|| source.requests().len() == 1);
    let address = proxy.address();
    let got: Vec<Got> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..5).map(|_| scope.spawn(|| fetch(address, LIST))).collect();
        wait_until(|| in_flight(&proxy) == 6);
        drop(first);
        go.send(()).expect("the source waits");
        asking.into_iter().map(|received| received.join().expect("it was answered")).collect()
    });
    for one in got {
        assert_eq!((one.status, one.whole, records(&one.text())), (200, true, records(&page_of(50))));
    }
    assert_eq!(source.requests().len(), 1);
    // The request that started the session reports its result, and only once.
    wait_until(|| in_flight(&proxy) == 0);
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    assert!(metrics.contains("oaimend_records_total{action=\"passed\",repository=\"x\"} 50\n"), "{metrics}");
}
