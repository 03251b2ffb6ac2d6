//! The HTML pages of the admin listener: what they show, to whom, and how they escape it.

use crate::fixtures::collection::Collection;
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Harvester, Reply, Source, fetch, fetch_with, page_of, post, record};

use super::gateway::{Mirrored, is_html};

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
const SCRIPT: &str = "&lt;script>alert(1)&lt;/script>\"'";

/// A page whose second record has no safe repair. It has script in each field, bytes that are not UTF-8 and
/// characters that nobody sees.
fn page_with_hopeless_record() -> Vec<u8> {
    let hopeless = format!(
        "<record><header><identifier>oai:x:1'{SCRIPT}</identifier><datestamp>2020-01-01</datestamp><setSpec>a b{SCRIPT}\
         </setSpec></header><metadata><a><b>\u{202e}FF\u{1}</metadata><script>alert(1)</script></a></record>"
    );
    let page = page_of(3).replace(record(1).trim_end(), &hopeless);
    assert!(page.contains(&hopeless));
    let at = page.find("FF").expect("it is there");
    [&page.as_bytes()[..at], b"\xff\xfe", &page.as_bytes()[at + 2..]].concat()
}

/// A proxy whose source has a secret in its URL.
fn proxy_of(source: &Source) -> Proxy {
    Proxy::tuned(source, |mapping| mapping.source_mut().base_url.set_query(Some("apikey=s3cret")))
}

/// A proxy whose repository `x` has a record in quarantine.
fn proxy_with_quarantine() -> (Source, Proxy) {
    let source = Source::page(page_with_hopeless_record());
    let proxy = proxy_of(&source);
    assert_eq!(proxy.get(LIST).status, 200);
    (source, proxy)
}

#[track_caller]
fn contains(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// The key of the only record in quarantine.
fn key_of_quarantined(proxy: &Proxy) -> String {
    let listed = proxy.admin_json("/-/repositories/x/quarantine");
    listed["records"][0]["key"].as_str().expect("a record is in quarantine").to_owned()
}

/// Opens a page of the admin listener, and checks what all its pages have in common.
#[track_caller]
fn open(proxy: &Proxy, path: &str, status: u16, text: &str) -> String {
    let got = fetch(proxy.admin(), path);
    is_html(&got, status, text);
    for (name, value) in [("x-content-type-options", "nosniff"), ("cache-control", "no-store")] {
        assert_eq!(got.header(name), value, "{path}");
    }
    assert!(got.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
    let page = got.text();
    assert!(!page.contains("<script") && !page.contains("s3cret"), "{page}");
    page
}

#[test]
fn overview_and_repository_show_operators_more() {
    let (_source, proxy) = proxy_with_quarantine();
    let masked = "/oai?apikey=***</code>";
    let public_url = format!("http://{}", proxy.address());
    let page = open(&proxy, "/", 200, "<h1>Repositories</h1>");
    contains(
        &page,
        &[masked, "<a href=\"/x/\"><bdi>x</bdi></a>", &format!("<a href=\"{public_url}/friends.xml\">")],
    );
    contains(&open(&proxy, "/?q=nothing", 200, "No repository contains"), &["<a href=\"/\">Show all</a>"]);
    let page = open(&proxy, "/x/", 200, "<h2 id=\"operator\">For operators</h2>");
    contains(&page, &[masked, "<a href=\"/x/quarantine/\">Quarantined records</a>"]);
    open(&proxy, "/y/", 404, "<h1>No such repository</h1>");
}

#[test]
fn state_of_the_server_shows_requests_limits_and_harvests() {
    let (go, wait) = std::sync::mpsc::channel();
    let wait = std::sync::Mutex::new(Some(wait));
    let source = Source::start(move |_, _| match wait.lock().expect("no panic").take() {
        Some(wait) => Reply::new(200, "Content-Type: text/xml").wait(wait).send(page_of(1)),
        None => Reply::xml(page_of(1)),
    });
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().base_url.set_query(Some("apikey=s3cret"));
        mapping.source_mut().timeouts.read = std::time::Duration::from_secs(3_600);
        mapping.source_mut().politeness.gap = std::time::Duration::from_millis(750);
    });
    contains(
        &open(&proxy, "/-/status", 200, "<h1>State of the server</h1>"),
        &["No request is in flight.", "No source has been requested", "No repository is mirrored."],
    );
    let address = proxy.address();
    let request = std::thread::spawn(move || fetch(address, LIST));
    let until = oaimend_base::clock::uptime() + std::time::Duration::from_secs(30);
    let mut page = String::new();
    // The page reads the requests before the limits of the sources.
    while !page.contains("1 of 1") || !page.contains("<code>verb=ListRecords") {
        assert!(oaimend_base::clock::uptime() < until, "{page}");
        std::thread::yield_now();
        page = open(&proxy, "/-/status", 200, "<h1>State of the server</h1>");
    }
    contains(
        &page,
        &["<code>verb=ListRecords&amp;metadataPrefix=oai_dc</code>", "this machine", "750 ms", "closed"],
    );
    go.send(()).expect("the source waits");
    assert_eq!(request.join().expect("no panic").status, 200);
}

#[test]
fn mirrored_repositories_are_in_the_queue_of_harvests_and_in_the_chart() {
    let mirrored = Mirrored::of(Collection::of(5));
    let proxy = &mirrored.proxy;
    contains(&open(proxy, "/-/status", 200, "next at <time"), &["src=\"/-/plan.svg\""]);
    let chart = fetch(proxy.admin(), "/-/plan.svg");
    assert_eq!((chart.status, chart.header("content-type")), (200, "image/svg+xml"));
    assert!(chart.text().starts_with("<svg") && chart.text().contains("this schedule"), "{}", chart.text());
    let (_source, without) = proxy_with_quarantine();
    assert_eq!(fetch(without.admin(), "/-/plan.svg").status, 404);
}

#[test]
fn repository_page_shows_the_effective_configuration() {
    let (_source, proxy) = proxy_with_quarantine();
    let page = open(&proxy, "/x/", 200, "<summary>Effective configuration</summary>");
    contains(&page, &["apikey=***", "read_timeout_secs = ", "[limits]", "record_bytes_max = 8388608"]);
}

#[test]
fn repository_page_shows_failures_without_secrets() {
    let source = Source::start(|_, _| Reply::whole(500, "", "out of order <script>"));
    let proxy = proxy_of(&source);
    assert_eq!(proxy.get("/x?verb=Identify").status, 503);
    let page = open(&proxy, "/x/", 200, "<h2 id=\"failures\">");
    contains(
        &page,
        &["<p class=\"note\">the source of x (http://", "/oai?apikey=***)", "<code>verb=Identify</code>"],
    );
}

#[test]
fn quarantined_records_are_listed_and_shown() {
    let (_source, proxy) = proxy_with_quarantine();
    let identifier = "oai:x:1'&lt;script&gt;alert(1)&lt;/script&gt;&quot;'";
    let key = key_of_quarantined(&proxy);
    let page = open(&proxy, "/x/quarantine/", 200, "<caption>1 record</caption>");
    let link = format!("<a href=\"/x/quarantine/{key}\"><bdi>{identifier}</bdi></a>");
    contains(&page, &[&link, ">mismatched-tags</td>", "data-label=\"Count\">1</td>"]);
    let page =
        open(&proxy, &format!("/x/quarantine/{key}"), 200, &format!("<h1><bdi>{identifier}</bdi></h1>"));
    let command = format!(
        "<code>curl 'http://{}/x?verb=GetRecord&amp;identifier=oai%3Ax%3A1%27%3Cscript%3Ealert%281%29%3C%2Fscript%3E\
         %22%27&amp;metadataPrefix=oai_dc'</code>",
        proxy.address()
    );
    contains(
        &page,
        &[
            &command,
            "&lt;a&gt;&lt;b&gt;<span class=\"byte\">U+202E</span><span class=\"byte\">FF</span><span class=\"byte\">FE</span>\
             <span class=\"byte\">U+0001</span>&lt;/metadata&gt;&lt;script&gt;",
            "00000000  3c 72 65 63 6f 72 64 3e",
            "<code>oaimend explain mismatched-tags</code>",
        ],
    );
}

#[test]
fn unknown_records_and_repositories_are_not_found() {
    let (_source, proxy) = proxy_with_quarantine();
    for key in ["00", "..%2F..", "%3Cscript%3E"] {
        open(&proxy, &format!("/x/quarantine/{key}"), 404, "<h1>No such record</h1>");
    }
    for path in ["/y/quarantine/", "/y/quarantine/00"] {
        open(&proxy, path, 404, "<h1>No such repository</h1>");
    }
}

#[test]
fn pages_of_operators_check_the_host_and_the_method() {
    let (_source, proxy) = proxy_with_quarantine();
    let key = key_of_quarantined(&proxy);
    for path in ["/", "/x/", "/x/quarantine/", &format!("/x/quarantine/{key}")] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
        let got = Harvester::ask(proxy.admin(), &request).rest();
        assert_eq!(got.status, 403, "{path}");
        assert!(!got.text().contains("apikey"), "{path}");
        assert_eq!(post(proxy.admin(), path, "").status, 405, "{path}");
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_eq!(Harvester::ask(proxy.admin(), &request).head().status, 200, "{path}");
    }
}

#[test]
fn public_listener_shows_nothing_of_them() {
    let (source, proxy) = proxy_with_quarantine();
    let key = key_of_quarantined(&proxy);
    for path in ["/", "/x/"] {
        let got = fetch_with(proxy.address(), path, BROWSER);
        let page = got.text();
        for secret in ["apikey", "For operators", "quarantine/", &source.address.to_string()] {
            assert!(!page.contains(secret), "{secret}: {page}");
        }
    }
    for path in ["/x/quarantine/", "/x/quarantine", &format!("/x/quarantine/{key}")] {
        let got = fetch_with(proxy.address(), path, BROWSER);
        assert!(got.status == 404 && !got.text().contains("mismatched-tags"), "{path}: {}", got.text());
    }
}

#[test]
fn style_sheet_is_on_the_admin_listener() {
    let proxy = Proxy::with(|config| config.gateway.enabled = false);
    let page = open(&proxy, "/", 200, "There is no repository yet");
    let (_, rest) = page.split_once("<link rel=\"stylesheet\" href=\"").expect("a style sheet");
    let (path, _) = rest.split_once('"').expect("the end of the attribute");
    let got = fetch(proxy.admin(), path);
    assert_eq!((got.status, got.header("content-type")), (200, "text/css; charset=UTF-8"), "{path}");
    assert!(got.header("cache-control").contains("immutable") && got.text().contains(":root"));
    assert_eq!(fetch(proxy.admin(), "/-/other.css").status, 404);
}
