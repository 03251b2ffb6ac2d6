//! The pages of records that are not mirrored: from the responses of the source, within its limits.

use std::num::NonZeroU32;
use std::sync::Mutex;

use oaimend::config::{LivePages, Mapping, Quota, RecordPages};

use super::gateway::is_html;
use crate::fixtures::collection::{Collection, FIRST_SECS, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::proxy::{Proxy, at_once};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with};

const PAGE: &str = "/x/record/oai%3Ac%3A00003";
const CRAWLER: &str = "X-Forwarded-For: 192.0.2.1\r\nUser-Agent: Googlebot/2.1\r\n";
const PERSON: &str = "X-Forwarded-For: 192.0.2.1\r\nUser-Agent: Mozilla/5.0\r\n";

/// A proxy whose clients are those of `X-Forwarded-For`.
fn with_clients(source: &Source, tune: impl FnOnce(&mut Mapping)) -> Proxy {
    let mut mapping = at_once(source);
    tune(&mut mapping);
    Proxy::with(|config| {
        config.repositories.add_fixed(mapping);
        config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
        config.clients.wait_max = std::time::Duration::from_millis(1);
    })
}

fn hides_the_source(got: &Got, source: &Source) {
    let shown = format!("{:?}{}", got.headers, got.text());
    assert!(!shown.contains(&source.address.to_string()), "{shown}");
}

#[test]
fn record_has_all_forms_after_one_request() {
    let (source, _collection) = Collection::of(5).start();
    let proxy = Proxy::of(&source);
    let page = proxy.get(PAGE);
    is_html(&page, 200, "<h1 lang=\"\" dir=\"ltr\">Title 3</h1>");
    is_html(&page, 200, "<dt>Changed at the source</dt><dd><time>2020-01-04T00:00:00Z<");
    assert!(!page.text().contains("Changed in the mirror"), "{}", page.text());
    assert!(!page.header("link").is_empty() && page.header("vary").contains("Accept"), "{page:?}");
    hides_the_source(&page, &source);
    let xml = proxy.get(&format!("{PAGE}.xml"));
    assert_eq!((xml.status, xml.header("content-type")), (200, "application/xml; charset=UTF-8"));
    let start =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<record xmlns=\"http://www.openarchives.org/OAI/2.0/\"";
    assert!(xml.text().starts_with(start) && xml.text().contains(">Title 3<"), "{}", xml.text());
    let json = proxy.get(&format!("{PAGE}.json"));
    let value: serde_json::Value = serde_json::from_slice(&json.body).expect("it is JSON");
    assert_eq!(value["name"], "Title 3", "{value}");
    let accepted = fetch_with(proxy.address(), PAGE, "Accept: application/ld+json\r\n");
    assert_eq!(accepted.text(), json.text());
    let tag = page.header("etag").to_owned();
    let known = fetch_with(proxy.address(), PAGE, &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((known.status, known.body.len()), (304, 0));
    let head = format!("HEAD {PAGE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let head = Harvester::ask(proxy.address(), &head).head();
    assert_eq!((head.status, head.header("etag")), (200, tag.as_str()));
    assert_eq!(source.requests().len(), 1);
    // The page and the response for harvesters are one entry of the cache.
    let got = fetch(proxy.address(), "/x?verb=GetRecord&identifier=oai%3Ac%3A00003&metadataPrefix=oai_dc");
    assert_eq!((got.status, source.requests().len()), (200, 1));
}

#[test]
fn head_is_the_head_of_the_page_without_a_cache() {
    let (source, _collection) = Collection::of(5).start();
    let proxy = Proxy::with(|config| {
        config.repositories.add_fixed(at_once(&source));
        config.cache.enabled = false;
    });
    let head = format!("HEAD {PAGE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let head = Harvester::ask(proxy.address(), &head).head();
    let page = proxy.get(PAGE);
    is_html(&page, 200, "Title 3");
    assert_eq!((head.status, head.header("etag")), (200, page.header("etag")));
}

#[test]
fn page_shows_the_repaired_record() {
    let (source, collection) = Collection::of(5).start();
    change(&collection, |collection| {
        let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
        entry.title = "Fish & chips".to_owned();
    });
    let proxy = Proxy::of(&source);
    is_html(&proxy.get(PAGE), 200, "Fish &amp; chips</h1>");
}

#[test]
fn format_is_that_of_the_url() {
    let (source, _collection) = Collection::of(5).start();
    let proxy = Proxy::of(&source);
    fetch(proxy.address(), "/x?verb=ListMetadataFormats");
    let page = proxy.get(&format!("{PAGE}?format=marc21"));
    is_html(&page, 200, "aria-current=\"page\">marc21</a>");
    let last = source.requests().last().map(|request| request.target.clone()).unwrap_or_default();
    assert!(last.contains("metadataPrefix=marc21"), "{last}");
}

#[test]
fn deleted_and_unknown_records_have_their_status() {
    let mut collection = Collection::of(5);
    let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
    (entry.deleted, entry.datestamp_secs) = (true, FIRST_SECS);
    let (source, _collection) = collection.start();
    let proxy = Proxy::of(&source);
    is_html(&proxy.get(PAGE), 410, "<time datetime=\"2020-01-01T00:00:00Z\">");
    is_html(&proxy.get("/x/record/unknown"), 404, "<h1>No such record</h1>");
    for (path, status, text) in [
        (format!("{PAGE}.xml"), 410, "the record was deleted\n"),
        ("/x/record/unknown.json".to_owned(), 404, "no such record\n"),
    ] {
        let got = proxy.get(&path);
        assert_eq!((got.status, got.text().as_str()), (status, text), "{path}");
    }
    // No request can have this identifier.
    let before = source.requests().len();
    is_html(&proxy.get("/x/record/a%00b"), 404, "<h1>No such record</h1>");
    assert_eq!(source.requests().len(), before);
}

#[test]
fn failed_source_is_requested_once_and_not_shown() {
    let (source, collection) = Collection::of(5).start();
    let proxy = Proxy::tuned(&source, |mapping| *mapping = at_once(&source));
    change(&collection, |collection| collection.is_down = true);
    let got = proxy.get(PAGE);
    is_html(&got, 503, "<h1>Record not available now</h1>");
    assert!(got.header("retry-after").parse::<u64>().is_ok(), "{got:?}");
    assert!(got.header("proxy-status").contains("received-status=500"), "{got:?}");
    assert_eq!(got.header("cache-control"), "no-store");
    hides_the_source(&got, &source);
    let received = source.requests().len();
    for path in [PAGE.to_owned(), format!("{PAGE}.json")] {
        assert_eq!(proxy.get(&path).status, 503);
    }
    assert_eq!(source.requests().len(), received, "the failure is cached");
    let gone = Source::start(|_, _| Reply::whole(404, "", "<script>alert(1)</script>"));
    let got = Proxy::of(&gone).get(PAGE);
    is_html(&got, 502, "<h1>Record not available now</h1>");
    assert!(got.header("retry-after").is_empty() && !got.text().contains("<script"), "{got:?}");
    hides_the_source(&got, &gone);
}

#[test]
fn simultaneous_readers_share_one_request() {
    let (go, wait) = std::sync::mpsc::channel();
    let wait = Mutex::new(Some(wait));
    let (sent, was_sent) = std::sync::mpsc::channel();
    let collection = Mutex::new(Collection::of(5));
    let source = Source::start(move |_, received| {
        sent.send(()).expect("the test waits");
        let go: Option<std::sync::mpsc::Receiver<()>> = wait.lock().expect("no panic").take();
        go.into_iter().for_each(|go| go.recv().expect("the test sends it"));
        collection.lock().expect("no panic").reply(received)
    });
    let proxy = Proxy::of(&source);
    let head = format!("GET {PAGE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let first = Harvester::ask(proxy.address(), &head);
    was_sent.recv().expect("the source is asked");
    let second =
        Harvester::ask(proxy.address(), &head.replace("HTTP/1.1\r\n", "HTTP/1.1\r\nAccept: text/xml\r\n"));
    super::gateway_responses::wait_for_metric(&proxy, "oaimend_requests_in_flight 2");
    go.send(()).expect("the source waits");
    is_html(&first.rest(), 200, "Title 3");
    assert_eq!(second.rest().header("content-type"), "application/xml; charset=UTF-8");
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn crawlers_cause_no_request_to_a_source_unless_allowed() {
    let (source, _collection) = Collection::of(5).start();
    let proxy = with_clients(&source, |_| {});
    let got = fetch_with(proxy.address(), PAGE, CRAWLER);
    is_html(&got, 403, "<h1>No pages for crawlers</h1>");
    assert_eq!((got.header("cache-control"), source.requests().len()), ("no-store", 0));
    is_html(&fetch_with(proxy.address(), PAGE, PERSON), 200, "Title 3");
    let proxy = with_clients(&source, |mapping| mapping.live_pages = LivePages::All);
    is_html(&fetch_with(proxy.address(), PAGE, CRAWLER), 200, "Title 3");
    let received = source.requests().len();
    for tune in [
        |mapping: &mut Mapping| mapping.live_pages = LivePages::Off,
        |mapping: &mut Mapping| mapping.records = RecordPages::Off,
    ] {
        let proxy = with_clients(&source, tune);
        assert_eq!(fetch_with(proxy.address(), PAGE, PERSON).status, 404);
    }
    assert_eq!(source.requests().len(), received);
}

#[test]
fn links_of_live_records_are_not_known() {
    let (source, _collection) = Collection::of(5).start();
    let proxy = with_clients(&source, |_| {});
    let got = fetch_with(proxy.address(), &format!("{PAGE}.links.json"), PERSON);
    assert_eq!((got.status, source.requests().len()), (404, 0), "{}", got.text());
    assert!(got.text().contains("No links of records of this repository"), "{}", got.text());
}

#[test]
fn quotas_of_requests_apply_to_live_pages() {
    let (source, _collection) = Collection::of(5).start();
    let mapping = at_once(&source);
    let proxy = Proxy::with(|config| {
        config.repositories.add_fixed(mapping);
        config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
        config.clients.wait_max = std::time::Duration::from_millis(1);
        let (rate_per_minute, burst) = (NonZeroU32::new(1), NonZeroU32::new(2));
        config.clients.harvesters.each = Quota { rate_per_minute, burst, in_flight_max: None };
    });
    let statuses: Vec<u16> = (0..5).map(|_| fetch_with(proxy.address(), PAGE, PERSON).status).collect();
    assert_eq!(statuses, [200, 200, 503, 503, 503]);
}

#[test]
fn responses_lead_to_live_pages() {
    let (source, _collection) = Collection::of(5).start();
    let proxy = Proxy::of(&source);
    let path = "/x?verb=ListIdentifiers&metadataPrefix=oai_dc";
    let got = fetch_with(proxy.address(), path, "Sec-Fetch-Dest: document\r\nAccept: text/html\r\n");
    is_html(&got, 200, &format!("<a href=\"{PAGE}\">"));
}
