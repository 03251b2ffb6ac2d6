//! The pages of OAI-PMH responses for browsers, and the XML that harvesters receive instead.

use std::num::NonZeroU32;
use std::time::Duration;

use oaimend::config::{Mapping, Quota, RecordPages};
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;

use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::proxy::{LIST, Proxy, at_once};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with, page_of};

const BROWSER: &str = "Sec-Fetch-Dest: document\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";

/// Opens a URL in a browser.
fn open(proxy: &Proxy, path: &str) -> Got {
    fetch_with(proxy.address(), path, BROWSER)
}

#[track_caller]
fn is_page(got: &Got, status: u16, parts: &[&str]) {
    assert_eq!((got.status, got.whole), (status, true), "{}", got.text());
    assert_eq!(got.header("content-type"), "text/html; charset=UTF-8");
    let policy = got.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("script"), "{policy}");
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    assert_eq!(got.header("vary"), "Accept-Encoding, Oaimend-Harvester, Sec-Fetch-Dest");
    let text = got.text();
    assert!(text.starts_with("<!DOCTYPE html>"), "{text}");
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[track_caller]
fn is_xml(got: &Got) {
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!(got.header("content-type"), "text/xml; charset=UTF-8");
    assert!(got.text().starts_with("<?xml"), "{}", got.text());
    has_security_headers(got);
}

#[track_caller]
fn has_security_headers(got: &Got) {
    assert_eq!(got.header("x-content-type-options"), "nosniff", "{got:?}");
    assert_eq!(got.header("content-security-policy"), "default-src 'none'; sandbox", "{got:?}");
    assert_eq!(got.header("vary"), "Accept-Encoding, Oaimend-Harvester, Sec-Fetch-Dest", "{got:?}");
}

/// A proxy in front of a collection that is not mirrored.
fn live(collection: Collection) -> (Source, Proxy) {
    let (source, _) = collection.start();
    let proxy = Proxy::of(&source);
    (source, proxy)
}

/// A mirrored collection, after its first harvest.
fn mirrored(collection: Collection, tune: impl FnOnce(&mut Mapping)) -> (Source, Proxy) {
    let (source, _) = collection.start();
    let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    let mut mapping = Mapping { mirror: Some(MirrorSettings::default()), ..mapping };
    tune(&mut mapping);
    let proxy = Proxy::with(|config| {
        config.mirror.aggregate = true;
        config.repositories.add_fixed(mapping);
    });
    proxy.wait_for_harvests("x", 1);
    (source, proxy)
}

/// Waits until the metrics contain a text.
#[track_caller]
pub(super) fn wait_for_metric(proxy: &Proxy, text: &str) {
    let until = oaimend_base::clock::uptime() + Duration::from_secs(60);
    loop {
        let metrics = fetch(proxy.admin(), "/-/metrics").text();
        if metrics.contains(text) {
            return;
        }
        assert!(oaimend_base::clock::uptime() < until, "{text}: {metrics}");
        std::thread::yield_now();
    }
}

/// A page of XML with this content.
fn document(content: &str) -> String {
    page_of(0).replace("<ListRecords>\n</ListRecords>", content)
}

#[test]
fn each_verb_has_a_page() {
    let mut collection = Collection::of(25);
    let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
    entry.deleted = true;
    let (_source, proxy) = live(collection);
    let identify = open(&proxy, "/x?verb=Identify");
    is_page(
        &identify,
        200,
        &["<h1 lang=\"\" dir=\"ltr\">A collection</h1>", "a@source.example", "persistent"],
    );
    let formats = "<a href=\"/x?verb=ListRecords&amp;metadataPrefix=oai_dc\">Records</a>";
    is_page(&open(&proxy, "/x?verb=ListMetadataFormats"), 200, &["Metadata formats</h1>", formats]);
    let sets = [
        "Even numbers",
        "<a href=\"/x?verb=ListRecords&amp;metadataPrefix=oai_dc&amp;set=even\">Records</a>",
    ];
    is_page(&open(&proxy, "/x?verb=ListSets"), 200, &sets);
    let records = open(&proxy, LIST);
    is_page(
        &records,
        200,
        &[
            "<a href=\"/x/record/oai%3Ac%3A00002\"><bdi class=\"title\" lang=\"\">Title 2</bdi></a>",
            "<strong class=\"deleted\">deleted</strong>",
            "<time datetime=\"2020-01-03T00:00:00Z\">",
            "1–10 of 25",
            "rel=\"next\"",
        ],
    );
    assert_eq!(records.text().matches("<li><a href=\"/x/record/").count(), 10);
    let headers = open(&proxy, "/x?verb=ListIdentifiers&metadataPrefix=oai_dc");
    is_page(&headers, 200, &["Identifiers</h1>", "<bdi class=\"identifier\" lang=\"\">oai:c:00002</bdi>"]);
    let record = open(&proxy, "/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:c:00002");
    is_page(&record, 200, &["dir=\"ltr\">Title 2</h1>", "<bdi>title</bdi>", "Show the XML of the record"]);
    for got in [&identify, &records, &record] {
        is_page(got, 200, &["Show XML", "noindex", "URL of this request: <code>http://127.0.0.1"]);
    }
}

#[test]
fn next_pages_are_followed_to_the_end() {
    let (_source, proxy) = live(Collection::of(25));
    let mut path = LIST.to_owned();
    let mut titles = 0;
    for page in 0..3 {
        let got = open(&proxy, &path);
        is_page(&got, 200, &[]);
        let text = got.text();
        titles += text.matches("class=\"title\"").count();
        let next = text.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!((next.is_some(), text.contains("end of the list")), (page < 2, page == 2), "{text}");
        path = next.unwrap_or_default().replace("&amp;", "&");
    }
    assert_eq!(titles, 25);
}

#[test]
fn records_of_mirrored_repositories_lead_to_their_pages() {
    let (_source, proxy) = mirrored(Collection::of(5), |_| {});
    for path in [LIST, "/_mirror/x?verb=ListIdentifiers&metadataPrefix=oai_dc"] {
        is_page(&open(&proxy, path), 200, &["<a href=\"/x/record/oai%3Ac%3A00002\">", "<a href=\"/x/\">"]);
    }
    let aggregate = open(&proxy, "/_all?verb=ListRecords&metadataPrefix=oai_dc");
    is_page(&aggregate, 200, &["<a href=\"/_all?verb=GetRecord&amp;identifier=", "Title 2"]);
    let next = "<a href=\"/_mirror/x?verb=ListSets\">Sets</a>";
    is_page(&open(&proxy, "/_mirror/x?verb=Identify"), 200, &[next]);
    let (_source, proxy) = mirrored(Collection::of(5), |mapping| mapping.records = RecordPages::Off);
    is_page(&open(&proxy, LIST), 200, &["<a href=\"/x?verb=GetRecord&amp;identifier="]);
}

#[test]
fn harvesters_receive_the_same_xml_as_before() {
    let (_source, proxy) = mirrored(Collection::of(12), |_| {});
    for query in ["verb=ListRecords&metadataPrefix=oai_dc", "verb=Identify", "verb=ListSets", "verb=No"] {
        for repository in ["x", "_mirror/x", "_all"] {
            let path = format!("/{repository}?{query}");
            let xml = fetch(proxy.address(), &path);
            is_xml(&xml);
            assert!(xml.text().contains(&format!("/{repository}</request>")), "{}", xml.text());
            let undated = |got: &Got| {
                let text = got.text();
                let (before, after) = text.split_once("<responseDate>").expect("it has a date");
                format!("{before}{}", after.split_once("</responseDate>").expect("it has a date").1)
            };
            let mut others = vec![
                fetch_with(proxy.address(), &path, "Sec-Fetch-Dest: iframe\r\nAccept: text/html\r\n"),
                fetch_with(proxy.address(), &path, "Sec-Fetch-Dest: empty\r\n"),
                fetch_with(proxy.address(), &path, "Accept: text/html\r\n"),
                open(&proxy, &format!("/{repository}/xml?{query}")),
                fetch(proxy.address(), &format!("/{repository}/xml?{query}")),
            ];
            let form = format!(
                "POST /{repository} HTTP/1.1\r\nHost: x\r\n{BROWSER}Connection: close\r\nContent-Length: {}\r\n\r\n{query}",
                query.len()
            );
            others.push(Harvester::ask(proxy.address(), &form).rest());
            for (number, other) in others.iter().enumerate() {
                is_xml(other);
                assert_eq!(undated(other), undated(&xml), "{number} {path}");
            }
            is_page(&open(&proxy, &path), 200, &[]);
        }
    }
    assert_eq!(open(&proxy, "/y/xml?verb=Identify").status, 404);
    assert_eq!(open(&proxy, "/_mirror/y/xml?verb=Identify").status, 404);
}

#[test]
fn head_and_http_1_0_and_proxy_requests() {
    let (source, proxy) = live(Collection::of(25));
    let ask = |request: String| Harvester::ask(proxy.address(), &request);
    let head = ask(format!("HEAD {LIST} HTTP/1.1\r\nHost: x\r\n{BROWSER}Connection: close\r\n\r\n")).head();
    assert_eq!((head.status, head.header("content-type")), (200, "text/xml; charset=UTF-8"));
    has_security_headers(&head);
    // A reverse proxy may speak HTTP/1.0.
    let old = ask(format!("GET {LIST} HTTP/1.0\r\nAccept-Encoding: gzip\r\n{BROWSER}\r\n")).rest();
    is_page(&old, 200, &["1–10 of 25"]);
    assert_eq!(old.header("content-length"), old.body.len().to_string());
    let url = format!("{}?verb=Identify", source.base_url());
    let host = source.address;
    is_xml(&ask(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{BROWSER}Connection: close\r\n\r\n")).rest());
    let url = format!("http://{}/x?verb=Identify", proxy.address());
    is_page(
        &ask(format!("GET {url} HTTP/1.1\r\nHost: x\r\n{BROWSER}Connection: close\r\n\r\n")).rest(),
        200,
        &[],
    );
    let zipped = fetch_with(proxy.address(), LIST, &format!("{BROWSER}Accept-Encoding: gzip\r\n"));
    assert_eq!((zipped.header("content-encoding"), zipped.whole), ("gzip", true));
}

#[test]
fn without_the_gateway_everything_is_xml() {
    let (source, _) = Collection::of(5).start();
    let proxy = Proxy::with(|config| {
        config.gateway.enabled = false;
        config.map("x", &source.base_url()).expect("a legal mapping");
    });
    is_xml(&open(&proxy, LIST));
    is_xml(&open(&proxy, "/x?verb=Nonsense"));
    assert_eq!(open(&proxy, "/x/xml?verb=Identify").status, 404);
}

#[test]
fn reload_of_a_cached_page_sends_no_request_to_the_source() {
    let (source, proxy) = live(Collection::of(25));
    let list = open(&proxy, LIST).text();
    let next = list.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let next = next.expect("a next page").replace("&amp;", "&");
    for path in ["/x?verb=Identify", "/x?verb=ListSets", &next] {
        let first = open(&proxy, path);
        is_page(&first, 200, &[]);
        assert_eq!(first.header("cache-status"), "oaimend; fwd=miss; fwd-status=200", "{path}");
        let received = source.requests().len();
        for _ in 0..3 {
            let again = open(&proxy, path);
            assert_eq!(again.text(), first.text(), "{path}");
            assert_eq!(again.header("cache-status"), "oaimend; hit", "{path}");
            assert!(again.header("age").parse::<u64>().is_ok(), "{again:?}");
        }
        let harvester = fetch(proxy.address(), path);
        is_xml(&harvester);
        assert_eq!(harvester.header("cache-status"), "oaimend; hit", "{path}");
        assert_eq!(source.requests().len(), received, "{path}");
    }
}

#[test]
fn errors_have_advice() {
    let (source, proxy) = live(Collection::of(3));
    for (query, title, advice) in [
        ("verb=Nonsense", "No such request", "Choose one of the requests above."),
        ("verb=", "No such request", "verb=ListRecords"),
        ("verb=ListRecords", "Wrong arguments", "metadataPrefix"),
        (
            "verb=%3Cscript%3Ealert(1)%3C/script%3E",
            "No such request",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
        ),
        ("verb=Identify&x=%3Cscript%3E%22%27", "Wrong arguments", "</html>"),
        ("verb=GetRecord&identifier=no&metadataPrefix=oai_dc", "No such record", "list of identifiers"),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=no", "No matching records", "whole list"),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=%3Cscript%3E", "No matching records", "&lt;script&gt;"),
    ] {
        let got = open(&proxy, &format!("/x?{query}"));
        is_page(&got, 200, &[&format!("{title}</h1>"), advice]);
        assert!(!got.text().contains("<script"), "{query}: {}", got.text());
    }
    let received = source.requests().len();
    open(&proxy, "/x?verb=Nonsense");
    assert_eq!(source.requests().len(), received);
}

#[test]
fn failure_of_the_source_is_readable() {
    let (source, collection) = Collection::of(5).start();
    let proxy = Proxy::of(&source);
    change(&collection, |collection| collection.is_down = true);
    for path in [LIST, "/x?verb=Identify"] {
        let got = open(&proxy, path);
        is_page(
            &got,
            503,
            &["The request failed</h1>", "<strong>Fault:</strong>", "Load this page again in"],
        );
        assert!(got.header("retry-after").parse::<u64>().is_ok(), "{got:?}");
        assert!(got.header("proxy-status").contains("received-status=500"), "{got:?}");
        assert_eq!(got.header("cache-control"), "no-store");
        let xml = open(&proxy, &path.replace("/x?", "/x/xml?"));
        assert_eq!((xml.status, xml.header("content-type")), (503, "text/plain; charset=UTF-8"));
        has_security_headers(&xml);
    }
    let gone = Source::start(|_, _| Reply::whole(404, "", "<script>alert(1)</script>"));
    let got = open(&Proxy::of(&gone), LIST);
    is_page(&got, 502, &["The request failed</h1>", "Retry:</strong> <bdi>no"]);
    assert!(got.header("retry-after").is_empty() && !got.text().contains("<script"), "{got:?}");
}

#[test]
fn mirror_without_a_harvest_is_readable() {
    let mut collection = Collection::of(25);
    collection.fails_at = Some("verb=List".to_owned());
    let (_source, proxy) = mirrored(collection, |_| {});
    let path = "/_mirror/x?verb=ListRecords&metadataPrefix=oai_dc";
    is_page(&open(&proxy, path), 503, &["The request failed</h1>"]);
    has_security_headers(&fetch(proxy.address(), path));
}

#[test]
fn broken_off_response_is_not_shown_as_a_whole() {
    let page = page_of(3).replace("Title 1", &"Title 1 ".repeat(1_000));
    let middle =
        page.find("</dc:title></oai_dc:dc></metadata></record>\n<record><header><identifier>oai:x:2");
    let first = page.get(..middle.expect("it is there")).expect("a part").to_owned();
    for is_cached in [true, false] {
        let (first, length) = (first.clone(), page.len());
        let source = Source::start(move |_, _| {
            Reply::new(200, &format!("Content-Length: {length}")).send(first.clone())
        });
        let mut mapping = at_once(&source);
        mapping.source_mut().limits.repair.record_bytes_max = 1024;
        let proxy = Proxy::with(|config| {
            config.cache.enabled = is_cached;
            config.repositories.add_fixed(mapping);
        });
        let got = open(&proxy, LIST);
        is_page(&got, 502, &["The response was broken off.", "Title 0"]);
        for text in ["Title 1", "end of the list", "Next page"] {
            assert!(!got.text().contains(text), "{text}: {}", got.text());
        }
        assert_eq!(got.header("cache-control"), "no-store");
        wait_for_metric(&proxy, "outcome=\"broken-off\"");
    }
}

#[test]
fn too_large_response_leads_to_its_xml() {
    let long = document(&format!(
        "<ListRecords>{}</ListRecords>",
        (0..9)
            .map(|number| crate::fixtures::source::record(number).replace("Title", &"x".repeat(1 << 20)))
            .collect::<String>()
    ));
    for is_cached in [true, false] {
        let page = long.clone();
        let source = Source::start(move |_, _| Reply::xml(page.clone()));
        let proxy = Proxy::with(|config| {
            config.cache.enabled = is_cached;
            config.map("x", &source.base_url()).expect("a legal mapping");
        });
        let got = open(&proxy, LIST);
        let link = "<a href=\"/x/xml?verb=ListRecords&amp;metadataPrefix=oai_dc\">Show XML</a>";
        is_page(&got, 200, &["The response is too large to be shown</h1>", link]);
        let xml = open(&proxy, "/x/xml?verb=ListRecords&metadataPrefix=oai_dc");
        is_xml(&xml);
        assert!(xml.body.len() > 9 << 20, "{}", xml.body.len());
    }
}

#[test]
fn long_response_is_shown() {
    let page = page_of(17_000);
    let (source, length) = (Source::page(page.clone()), page.len());
    assert!((7 << 20..8 << 20).contains(&length), "{length}");
    let got = open(&Proxy::of(&source), LIST);
    is_page(
        &got,
        200,
        &["Title 4999<", "… 12000 more items of this page are in the XML only", "17000 items"],
    );
    assert!(!got.text().contains("Title 5000<"));
}

#[test]
fn script_of_the_source_is_inert_in_both_forms() {
    let script = "&lt;script>alert(1)&lt;/script>";
    let xhtml = "<script xmlns=\"http://www.w3.org/1999/xhtml\">alert(1)</script>";
    let source = Source::start(move |_, received| {
        let content = match received.target.as_str() {
            target if target.contains("verb=Identify") => format!(
                "<Identify><repositoryName>{script}</repositoryName><baseURL>http://e.org/</baseURL>\
                 <protocolVersion>2.0</protocolVersion><adminEmail>a@e.org</adminEmail>\
                 <earliestDatestamp>2020-01-01</earliestDatestamp><deletedRecord>no</deletedRecord>\
                 <granularity>YYYY-MM-DD</granularity><description>{xhtml}</description></Identify>"
            ),
            target if target.contains("verb=ListSets") => format!(
                "<ListSets><set><setSpec>a</setSpec><setName>{script}</setName><setDescription>{xhtml}</setDescription>\
                 </set><resumptionToken>&quot;>{script}&amp;'+/%é</resumptionToken></ListSets>"
            ),
            target if target.contains("GetRecord") => {
                format!("<error code=\"idDoesNotExist\">{script}</error>")
            }
            _ => format!(
                "<ListRecords><record><header><identifier>&quot;>{script}</identifier><datestamp>2020-01-01</datestamp>\
                 </header><metadata>{xhtml}</metadata></record></ListRecords>"
            ),
        };
        Reply::xml(document(&content))
    });
    let proxy = Proxy::of(&source);
    for (path, part) in [
        ("/x?verb=Identify", "&lt;script&gt;alert(1)&lt;/script&gt;</h1>"),
        (
            "/x?verb=ListSets",
            "resumptionToken=%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E%26%27%2B%2F%25%C3%A9\"",
        ),
        ("/x?verb=GetRecord&identifier=a&metadataPrefix=oai_dc", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        (LIST, "/x/record/%22%3E%3Cscript%3E"),
    ] {
        let got = open(&proxy, path);
        is_page(&got, 200, &[part]);
        assert!(!got.text().contains("<script") && !got.text().contains("javascript:"), "{}", got.text());
        is_xml(&open(&proxy, &path.replace("/x?", "/x/xml?")));
    }
}

#[test]
fn quotas_apply_to_pages() {
    let (source, _) = Collection::of(5).start();
    let proxy = Proxy::with(|config| {
        config.repositories.add_fixed(at_once(&source));
        config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
        config.clients.wait_max = Duration::from_millis(1);
        let (rate_per_minute, burst) = (NonZeroU32::new(1), NonZeroU32::new(2));
        config.clients.harvesters.each = Quota { rate_per_minute, burst, in_flight_max: None };
    });
    let open_from = |client: &str| {
        fetch_with(proxy.address(), "/x?verb=Identify", &format!("{BROWSER}X-Forwarded-For: {client}\r\n"))
    };
    for _ in 0..2 {
        is_page(&open_from("192.0.2.1"), 200, &[]);
    }
    let refused = open_from("192.0.2.1");
    assert_eq!((refused.status, refused.header("retry-after").is_empty()), (503, false), "{refused:?}");
    is_page(&open_from("192.0.2.2"), 200, &[]);
    wait_for_metric(&proxy, "{outcome=\"complete\",repository=\"x\",verb=\"Identify\"} 3");
}

#[test]
fn simultaneous_readers_share_one_request() {
    let (go, wait) = std::sync::mpsc::channel();
    let wait = std::sync::Mutex::new(Some(wait));
    let source = Source::start(move |_, _| {
        let page = page_of(3);
        let (first, rest) = page.split_at(page.len() / 2);
        let reply = Reply::new(200, &format!("Content-Length: {}", page.len())).send(first);
        let wait = wait.lock().expect("no test panics while it holds this").take();
        wait.into_iter().fold(reply, Reply::wait).send(rest)
    });
    let proxy = Proxy::of(&source);
    let get = |headers: &str| {
        let head = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n");
        Harvester::ask(proxy.address(), &head)
    };
    let mut harvester = get("");
    assert_eq!(harvester.head().status, 200);
    let browser = get(BROWSER);
    // The harvester has the first half. The browser joins before the second half is sent.
    wait_for_metric(&proxy, "oaimend_requests_in_flight 2");
    go.send(()).expect("the source waits");
    is_page(&browser.rest(), 200, &["Title 2"]);
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn security_headers_are_on_cached_responses() {
    let (_source, proxy) = live(Collection::of(5));
    for expected in ["oaimend; fwd=miss; fwd-status=200", "oaimend; hit"] {
        let got = fetch(proxy.address(), "/x?verb=Identify");
        assert_eq!(got.header("cache-status"), expected);
        is_xml(&got);
    }
}
