//! The lists of records of repositories that are not mirrored: read once by the server, and bounded.

use std::io::Read as _;

use flate2::read::GzDecoder;
use oaimend::config::{CanonicalPage, LivePages, Mapping};

use super::gateway::is_html;
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::proxy::{Proxy, at_once};
use crate::fixtures::source::{Got, ReceivedRequest, Reply, Source, fetch_with};

const CRAWLER: &str = "X-Forwarded-For: 192.0.2.1\r\nUser-Agent: Googlebot/2.1\r\n";
const NOT_COMPLETE: &str = "It is not complete:";

fn proxy_of(mappings: Vec<Mapping>) -> Proxy {
    Proxy::with(|config| {
        for mapping in mappings {
            config.repositories.add_fixed(mapping);
        }
        config.gateway.canonical = CanonicalPage::Own;
        config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    })
}

fn listed(source: &Source) -> Mapping {
    Mapping { live_pages: LivePages::Listed, ..at_once(source) }
}

/// The list of the repository after it was read.
#[track_caller]
fn wait_for_list(proxy: &Proxy) -> Got {
    let until = oaimend_base::clock::uptime() + std::time::Duration::from_secs(120);
    loop {
        let got = fetch_with(proxy.address(), "/x/records/", CRAWLER);
        if got.status != 503 {
            return got;
        }
        is_html(&got, 503, "<h1>Not listed yet</h1>");
        assert!(oaimend_base::clock::uptime() < until, "{}", got.text());
        std::thread::yield_now();
    }
}

fn walked(source: &Source) -> usize {
    source.requests().iter().filter(|request| request.target.contains("verb=ListIdentifiers")).count()
}

#[test]
fn crawlers_of_listed_records_cause_no_request_to_the_source() {
    let mut collection = Collection::of(25);
    collection.entries.get_mut(&identifier(7)).expect("it exists").deleted = true;
    let (source, _collection) = collection.start();
    let proxy = proxy_of(vec![listed(&source)]);
    let months = wait_for_list(&proxy);
    is_html(&months, 200, "24 records, by the month of their last change at the source.");
    assert!(!months.text().contains(NOT_COMPLETE), "{}", months.text());
    assert_eq!(walked(&source), 3);
    let received = source.requests().len();
    let get = |path: &str| fetch_with(proxy.address(), path, CRAWLER);
    let month = get("/x/records/2020-01/");
    let link = |number: usize| format!("/x/record/{}", identifier(number).replace(':', "%3A"));
    for number in 0..25 {
        let is_linked = month.text().contains(&format!("href=\"{}\"", link(number)));
        assert_eq!(is_linked, number != 7, "{number}: {}", month.text());
    }
    assert!(get("/sitemap.xml").text().contains("/sitemap-x-0.xml.gz"));
    let sitemap = get("/sitemap-x-0.xml.gz");
    let mut xml = String::new();
    GzDecoder::new(&sitemap.body[..]).read_to_string(&mut xml).expect("a complete gzip stream");
    assert_eq!(xml.matches("<url>").count(), 24);
    assert!(xml.contains(&format!("{}</loc><lastmod>2020-01-02</lastmod>", link(1))), "{xml}");
    let start = fetch_with(proxy.address(), "/x/", &format!("{CRAWLER}Accept: text/html\r\n"));
    assert!(start.text().contains("/x/records/\">Browse the records</a>"), "{}", start.text());
    for (path, status) in [
        ("/x/records", 301),
        ("/x/records/2020-01/0-999", 200),
        ("/x/records/2020-01/1000-1999", 404),
        ("/x/records/2019-12/", 404),
        ("/x/sets/", 404),
        ("/x/sets/even/", 404),
        ("/sitemap-x-1.xml.gz", 404),
        ("/robots.txt", 200),
    ] {
        assert_eq!(get(path).status, status, "{path}");
    }
    assert_eq!(source.requests().len(), received);
    // The page of a record needs its source, as the operator allows.
    assert_eq!(get(&link(3)).status, 200);
    assert_eq!(source.requests().len(), received + 1);
}

#[test]
fn records_are_not_listed_unless_allowed() {
    let (source, _collection) = Collection::of(5).start();
    let (other, _other) = Collection::of(5).start();
    let unlisted = |id: &str, live_pages| {
        let mut mapping = Mapping { live_pages, ..at_once(&other) };
        mapping.source_mut().id = id.to_owned();
        mapping
    };
    let pages = [("p", LivePages::People), ("a", LivePages::All), ("o", LivePages::Off)];
    let others = pages.map(|(id, live_pages)| unlisted(id, live_pages));
    let proxy = proxy_of([vec![listed(&source)], others.into()].concat());
    assert_eq!(wait_for_list(&proxy).status, 200);
    for (id, _) in pages {
        let list = fetch_with(proxy.address(), &format!("/{id}/records/"), CRAWLER);
        assert_eq!(list.status, 404, "{id}");
        let sitemap = fetch_with(proxy.address(), &format!("/sitemap-{id}-0.xml.gz"), CRAWLER);
        assert_eq!(sitemap.status, 404, "{id}");
    }
    assert!(!fetch_with(proxy.address(), "/sitemap.xml", CRAWLER).text().contains("sitemap-p"));
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn a_list_that_fails_in_the_middle_is_not_complete() {
    let mut collection = Collection::of(25);
    collection.list_len_max = 10;
    let (source, _collection) = collection.start();
    let proxy = proxy_of(vec![listed(&source)]);
    let got = wait_for_list(&proxy);
    is_html(&got, 200, NOT_COMPLETE);
    is_html(&got, 200, "10 records, ");
}

#[test]
fn an_item_in_quarantine_makes_the_list_incomplete() {
    let source = Source::start(|_, _| {
        let broken = "<header><identifier></identifier><datestamp>2020-01-01</datestamp></header>";
        Reply::xml(page(&format!("{}{broken}", header(1)), ""))
    });
    is_html(&wait_for_list(&proxy_of(vec![listed(&source)])), 200, NOT_COMPLETE);
}

fn header(number: usize) -> String {
    format!("<header><identifier>c:{number}</identifier><datestamp>2020-01-01</datestamp></header>")
}

fn page(headers: &str, token: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>2026-01-01T00:00:00Z</responseDate><request>http://source.example/oai</request>\
         <ListIdentifiers>{headers}<resumptionToken>{token}</resumptionToken></ListIdentifiers></OAI-PMH>"
    )
}

/// A source whose list has no end: its pages, by their numbers.
fn endless(headers: fn(usize) -> String) -> Source {
    Source::start(move |_, received: &ReceivedRequest| {
        let token = received.target.split_once("resumptionToken=").map_or("0", |(_, token)| token);
        let number: usize = token.trim_start_matches('t').parse().unwrap_or_default();
        Reply::xml(page(&headers(number), &format!("t{}", number + 1)))
    })
}

#[test]
fn a_list_in_circles_ends() {
    let source = endless(|number| header(number % 3));
    let got = wait_for_list(&proxy_of(vec![listed(&source)]));
    is_html(&got, 200, NOT_COMPLETE);
    is_html(&got, 200, "3 records, ");
    assert!(walked(&source) <= 30, "{}", walked(&source));
}

#[test]
fn a_list_without_an_end_has_a_maximum_of_pages() {
    let source = endless(header);
    let got = wait_for_list(&proxy_of(vec![listed(&source)]));
    is_html(&got, 200, NOT_COMPLETE);
    is_html(&got, 200, "1,000 records, ");
    assert_eq!(walked(&source), 1_000);
}
