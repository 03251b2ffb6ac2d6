//! Outages: when requests to a source are suspended, when a single request is, and when harvesters
//! get a final error.

use crate::fixtures::lists::page;
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, REFUSED, ReceivedRequest, Reply, Source, fetch, fetch_with, page_of};
use crate::fixtures::time::Skipping;
use oaimend::config::Mapping;
use oaimend_base::clock::Clock as _;
use oaimend_upstream::settings::Limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const BAD: &str = "/x?verb=ListRecords&resumptionToken=bad";
const IDENTIFY: &str = "/x?verb=Identify";

/// A request for one record.
fn record(number: usize) -> String {
    format!("/x?verb=GetRecord&identifier=oai%3Ax%3A{number}&metadataPrefix=oai_dc")
}

fn says(received: &ReceivedRequest, text: &str) -> bool {
    received.target.contains(text)
}

fn identify() -> Reply {
    let identify = "<Identify><repositoryName>A</repositoryName><baseURL>http://source.example/oai</baseURL>\
        <protocolVersion>2.0</protocolVersion><adminEmail>a@source.example</adminEmail>\
        <earliestDatestamp>2011-01-01</earliestDatestamp><deletedRecord>no</deletedRecord>\
        <granularity>YYYY-MM-DD</granularity></Identify>\n";
    Reply::xml(page_of(0).replace("<ListRecords>\n</ListRecords>\n", identify))
}

fn down() -> Reply {
    Reply::whole(500, "", "out of order")
}

/// A proxy without cached failures, with the mapping of `x` changed.
fn proxy_of(source: &Source, tune: impl FnOnce(&mut Mapping)) -> Proxy {
    start(&source.base_url(), Skipping::new(), tune)
}

fn start(base_url: &str, clock: Arc<Skipping>, tune: impl FnOnce(&mut Mapping)) -> Proxy {
    let mut mapping = Mapping::new("x", base_url, &Limits::default()).expect("a legal mapping");
    tune(&mut mapping);
    Proxy::start(tempfile::tempdir().expect("a temporary folder"), clock, |config| {
        config.cache.failures = Duration::ZERO;
        config.repositories.add_fixed(mapping);
    })
}

/// Advances the clock of the proxy.
fn after(proxy: &Proxy, secs: u64) {
    drop(proxy.clock.pause(Duration::from_secs(secs)));
}

#[track_caller]
fn check_retry(got: &Got) -> u64 {
    assert_eq!((got.status, got.whole), (503, true), "{}", got.text());
    let secs = got.header("retry-after").parse().expect("an integer");
    assert!((1..=3600).contains(&secs), "{secs}");
    assert!(got.text().contains(&format!("Retry: yes, in {secs} seconds")), "{}", got.text());
    secs
}

#[track_caller]
fn check_final(got: &Got, status: u16) {
    assert_eq!((got.status, got.whole), (status, true), "{}", got.text());
    assert_eq!(got.header("retry-after"), "");
    assert!(got.header("proxy-status").starts_with("oaimend; error="), "{}", got.header("proxy-status"));
    assert!(got.text().contains("Retry: no"), "{}", got.text());
    assert!(got.text().contains("Fault: "), "{}", got.text());
}

fn rests(proxy: &Proxy) -> Option<u64> {
    let secs = proxy.admin_json("/-/repositories/x")["circuit_open_secs"].as_u64();
    let metric = format!("oaimend_circuit_open{{repository=\"x\"}} {}", u8::from(secs.is_some()));
    assert!(fetch(proxy.admin(), "/-/metrics").text().contains(&metric), "{metric}");
    secs
}

#[test]
fn concurrent_failures_are_one_outage() {
    const REQUESTS: usize = 12;
    let (clock, count) = (Skipping::new(), Arc::new(AtomicUsize::new(0)));
    let (shared, received) = (Arc::clone(&clock), Arc::clone(&count));
    let source = Source::start(move |_, _| {
        received.fetch_add(1, Ordering::Relaxed);
        let (clock, count) = (Arc::clone(&shared), Arc::clone(&received));
        Reply::new(200, "").stall(move || {
            if count.load(Ordering::Relaxed) >= REQUESTS {
                clock.lapse();
            }
        })
    });
    let proxy = start(&source.base_url(), clock, |mapping| {
        mapping.source_mut().timeouts.read = Duration::from_secs(3600);
        mapping.source_mut().limits.first_record_timeout = Duration::from_secs(3600);
    });
    let address = proxy.address();
    let threads: Vec<_> =
        (0..REQUESTS).map(|number| std::thread::spawn(move || fetch(address, &record(number)))).collect();
    for thread in threads {
        check_retry(&thread.join().expect("no panic"));
    }
    let received = source.requests().len();
    let secs = check_retry(&proxy.get(LIST));
    assert!(secs <= 30, "{secs}");
    assert_eq!(source.requests().len(), received, "the source is left alone");
    assert!(rests(&proxy).is_some_and(|secs| secs <= 30));
}

#[test]
fn failing_page_does_not_affect_others() {
    let source = Source::start(
        |_, received| if says(received, "Token=bad") { down() } else { Reply::xml(page(0..3, "")) },
    );
    let proxy = proxy_of(&source, |_| {});
    for _ in 0..5 {
        check_retry(&proxy.get(BAD));
    }
    let received = source.requests().len();
    let got = proxy.get(BAD);
    assert!(check_retry(&got) <= 30);
    assert!(got.text().contains("is paused for") && got.text().contains("status 500"), "{}", got.text());
    assert_eq!((source.requests().len(), rests(&proxy)), (received, None), "only this request rests");
    assert_eq!(proxy.get(LIST).status, 200);
    after(&proxy, 31);
    check_retry(&proxy.get(BAD));
    assert!(source.requests().len() > received, "one attempt when the rest is over");
    assert!(check_retry(&proxy.get(BAD)) > 30, "and a longer rest");
}

#[test]
fn circuit_opens_only_if_identify_fails_too() {
    for is_alive in [false, true] {
        let source = Source::start(move |_, received| {
            if is_alive && says(received, "verb=Identify") {
                identify()
            } else if says(received, "verb=ListRecords") {
                Reply::xml(page(0..3, ""))
            } else {
                down()
            }
        });
        let proxy = proxy_of(&source, |_| {});
        for number in 0..3 {
            check_retry(&proxy.get(&record(number)));
        }
        let questions = source.requests().iter().filter(|received| says(received, "verb=Identify")).count();
        assert_eq!((questions, rests(&proxy).is_some()), (1, !is_alive));
        let got = proxy.get(LIST);
        assert_eq!(got.status, if is_alive { 200 } else { 503 }, "{}", got.text());
    }
}

#[test]
fn refused_connection_opens_the_circuit() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let proxy = start(&format!("http://{}/oai", gone.expect("a free port")), Skipping::new(), |_| {});
    for _ in 0..5 {
        check_retry(&proxy.get(LIST));
    }
    assert!(rests(&proxy).is_some());
    assert!(proxy.get(IDENTIFY).text().contains("is paused for"));
}

#[test]
fn probe_closes_the_circuit_or_extends_the_pause() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let source =
        Source::start(move |_, received| match (up.load(Ordering::Relaxed), says(received, "Token=bad")) {
            (false, _) | (true, true) => down(),
            (true, false) if says(received, "verb=Identify") => identify(),
            (true, false) => Reply::xml(page(0..3, "")),
        });
    let proxy = proxy_of(&source, |_| {});
    for number in 0..3 {
        check_retry(&proxy.get(&record(number)));
    }
    assert!(rests(&proxy).is_some_and(|secs| secs <= 30));
    after(&proxy, 31);
    check_retry(&proxy.get(LIST));
    assert!(rests(&proxy).is_some_and(|secs| secs > 30), "{:?}", rests(&proxy));
    is_up.store(true, Ordering::Relaxed);
    after(&proxy, 61);
    // A single failing page does not keep the circuit open.
    check_retry(&proxy.get(BAD));
    assert_eq!(rests(&proxy), None);
    assert_eq!(proxy.get(LIST).status, 200);
}

#[test]
fn transient_failure_is_final_after_15_minutes() {
    let source = Source::start(|_, _| down());
    let proxy = proxy_of(&source, |_| {});
    check_retry(&proxy.get(LIST));
    after(&proxy, 600);
    check_retry(&proxy.get(LIST));
    after(&proxy, 301);
    check_final(&proxy.get(LIST), 502);
    // Another request to the same source has not failed for so long.
    check_retry(&proxy.get(IDENTIFY));
}

#[test]
fn outage_time_is_configurable() {
    let clock = Skipping::new();
    let shared = Arc::clone(&clock);
    let source = Source::start(move |_, _| {
        let clock = Arc::clone(&shared);
        Reply::new(200, "").stall(move || clock.lapse())
    });
    let proxy = start(&source.base_url(), clock, |mapping| {
        (mapping.source_mut().timeouts.connect, mapping.source_mut().timeouts.read) =
            (Duration::from_secs(30), Duration::from_secs(30));
        mapping.source_mut().limits.outage_retry = Duration::from_secs(60);
    });
    for number in 0..3 {
        check_retry(&proxy.get(&record(number)));
    }
    assert!(rests(&proxy).is_some());
    check_retry(&proxy.get(LIST));
    after(&proxy, 62);
    check_final(&proxy.get(LIST), 504);
    let received = source.requests().len();
    check_final(&proxy.get(&record(9)), 502);
    assert_eq!(source.requests().len(), received, "it is left alone, and still the outage is old");
}

#[test]
fn old_failures_are_another_outage() {
    let source = Source::start(|_, _| down());
    let proxy = proxy_of(&source, |_| {});
    check_retry(&proxy.get(LIST));
    after(&proxy, 24 * 3600);
    check_retry(&proxy.get(LIST));
}

#[test]
fn permanent_failure_is_final_at_once() {
    for status in [400, 401, 404, 405, 410, 501] {
        let source = Source::start(move |_, _| Reply::whole(status, "Retry-After: 7", "<html>no</html>"));
        check_final(&proxy_of(&source, |_| {}).get(LIST), 502);
    }
    // The name is too long for DNS, so no resolver is needed.
    let name = format!("http://{}.example/oai", "x".repeat(64));
    let got = start(&name, Skipping::new(), |_| {}).get(LIST);
    check_final(&got, 502);
    assert!(got.text().contains("cannot be resolved"), "{}", got.text());
    let source = Source::start_tls(|_, _| Reply::xml(page_of(1)));
    let got = proxy_of(&source, |_| {}).get(LIST);
    check_final(&got, 502);
    assert!(got.header("proxy-status").contains("tls_certificate_error"), "{}", got.header("proxy-status"));
}

#[test]
fn failures_hide_the_address_of_the_source() {
    let refused = format!("http://{REFUSED}/oai?apikey=s3cret");
    let name = format!("{}.example", "x".repeat(64));
    let failing = Source::start(|_, _| Reply::whole(500, "", "no"));
    let closing = Source::start(|_, _| Reply::raw("").reset());
    let silent = Source::start(|_, _| Reply::raw("SSH-2.0-x\r\n"));
    // Its certificate is not for this name.
    let other_name = Source::start_tls(|_, _| Reply::xml(page_of(1)));
    let other_name = other_name.base_url().replace("127.0.0.1", "other.localhost");
    let elsewhere = Source::start(|_, _| Reply::redirect(302, "http://vault.example:99/"));
    let (unknown, url) = (format!("http://{name}/oai"), |source: &Source| source.base_url());
    for base_url in
        [refused, unknown, url(&failing), url(&closing), url(&silent), other_name, url(&elsewhere)]
    {
        let proxy = start(&base_url, Skipping::new(), |_| {});
        let address = base_url.split('/').nth(2).expect("a URL has a host").to_owned();
        let host = address.split(':').next().unwrap_or_default().to_owned();
        // The last ones are answered by the circuit breaker.
        for number in 0..6 {
            for accept in ["", "Accept: text/html\r\n"] {
                let got = fetch_with(proxy.address(), &format!("{LIST}&set={number}"), accept);
                assert_ne!(got.status, 200, "{base_url}");
                let shown = format!("{:?}{}", got.headers, got.text());
                for hidden in [&address, &host, "s3cret", "vault.example"] {
                    assert!(!shown.contains(hidden), "{base_url}: {hidden}: {shown}");
                }
            }
        }
        let failure = proxy.admin_json("/-/repositories/x")["last_failure"]["details"].clone();
        let details = failure.as_str().unwrap_or_default();
        assert!(details.contains(&address) && !details.contains("s3cret"), "{failure}");
    }
}

#[test]
fn permanently_failing_page_is_final() {
    let source = Source::start(
        |_, received| if says(received, "Token=bad") { down() } else { Reply::xml(page(0..3, "")) },
    );
    let proxy = proxy_of(&source, |_| {});
    for _ in 0..3 {
        check_retry(&proxy.get(BAD));
        assert_eq!(proxy.get(LIST).status, 200);
        after(&proxy, 240);
    }
    after(&proxy, 240);
    check_final(&proxy.get(BAD), 502);
    assert_eq!(proxy.get(LIST).status, 200);
}
