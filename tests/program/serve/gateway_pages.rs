//! The overview and the pages of repositories: what they show, to whom, and after a restart.

use std::process::Command;

use oaimend::config::{LivePages, Mapping};
use oaimend_base::clock::Clock as _;
use oaimend_upstream::settings::Limits;

use crate::fixtures::collection::Collection;
use crate::fixtures::harvest::change;
use crate::fixtures::proxy::{LIST, Proxy, at_once};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with, page_of, post};

use super::gateway::{Mirrored, is_html, mapping};

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
/// The longest wait for a page to show something.
const SHOWN_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);

/// Requests a page as a browser does.
pub(super) fn open(proxy: &Proxy, path: &str) -> Got {
    fetch_with(proxy.address(), path, BROWSER)
}

/// A source whose pages contain this between the tags of the verb.
fn document(verb: &str, content: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
         <responseDate>2026-01-02T03:04:05Z</responseDate>\n<request verb=\"{verb}\">http://source.example/oai</request>\n\
         <{verb}>{content}</{verb}>\n</OAI-PMH>\n"
    )
}

/// A source with script in every text of its description. Its records have a bare ampersand.
fn hostile_source() -> Source {
    const SCRIPT: &str = "&lt;script>alert(1)&lt;/script>\"'";
    Source::start(|_, received| {
        let query = received.target.split_once('?').map_or("", |(_, query)| query);
        let page = if query.contains("Identify") {
            let identify = format!(
                "<repositoryName>Name {SCRIPT}</repositoryName><baseURL>http://source.example/oai</baseURL>\
                 <protocolVersion>2.0</protocolVersion><adminEmail>a@{SCRIPT}</adminEmail>\
                 <earliestDatestamp>2020-01-01</earliestDatestamp><deletedRecord>no</deletedRecord>\
                 <granularity>YYYY-MM-DD</granularity>"
            );
            document("Identify", &identify)
        } else if query.contains("ListSets") {
            document("ListSets", &format!("<set><setSpec>a:b</setSpec><setName>Set {SCRIPT}</setName></set>"))
        } else if query.contains("ListMetadataFormats") {
            document(
                "ListMetadataFormats",
                "<metadataFormat><metadataPrefix>oai_dc</metadataPrefix><schema>http://e.org/s</schema>\
                 <metadataNamespace>http://e.org/n?a&amp;b</metadataNamespace></metadataFormat>",
            )
        } else {
            page_of(4).replace("Title 2", "Research & &lt;script>")
        };
        Reply::xml(page)
    })
}

/// Opens a page until it contains a text. Pages reach the cache after the last byte was sent.
#[track_caller]
pub(crate) fn open_until(proxy: &Proxy, path: &str, text: &str) -> String {
    let until = oaimend_base::clock::uptime() + SHOWN_WITHIN;
    loop {
        let got = open(proxy, path);
        if got.text().contains(text) {
            return got.text();
        }
        assert!(oaimend_base::clock::uptime() < until, "{text}: {}", got.text());
        std::thread::yield_now();
    }
}

#[track_caller]
pub(super) fn contains(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn overview_has_a_row_for_each_repository() {
    let live = Source::page(page_of(2));
    let base_url = live.base_url();
    let add_live = |config: &mut oaimend::config::Config| {
        let mapping = Mapping::new("live", &base_url, &Limits::default()).expect("a legal mapping");
        config.repositories.add_fixed(mapping);
    };
    let mirrored = Mirrored::with(Collection::of(30), |_| {}, add_live);
    let received = mirrored.source.requests().len();
    let got = mirrored.get("/");
    is_html(&got, 200, "<h1>Repositories</h1>");
    let public_url = format!("http://{}", mirrored.proxy.address());
    contains(
        &got.text(),
        &[
            "<caption>2 repositories.",
            "<a href=\"/x/\"><bdi>A collection</bdi></a>",
            "<a href=\"/live/\"><bdi>live</bdi></a>",
            "<span class=\"state good\">complete</span>",
            "<span class=\"state\">live</span>",
            "<a href=\"/x/records/\"",
            &format!("href=\"{public_url}/live?verb=Identify\">{public_url}/live</a>"),
            "data-label=\"Records\">30</td>",
            "data-label=\"Repaired\">0 %</td>",
            "aria-label=\"Last 30 days: 0 requests, the source did not fail\"",
        ],
    );
    assert!(!got.text().contains("/live/records/"), "it is not mirrored");
    for source in [&mirrored.source, &live] {
        assert!(!got.text().contains(&source.address.to_string()), "the URL of a source: {}", got.text());
    }
    assert!(got.header("content-security-policy").starts_with("default-src 'none'"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-cache"),
        ("vary", "Accept, Accept-Encoding"),
    ] {
        assert_eq!(got.header(name), value);
    }
    let known = format!("If-None-Match: {}\r\n", got.header("etag"));
    let request = format!("GET / HTTP/1.1\r\nHost: x\r\n{known}\r\n");
    assert_eq!(Harvester::ask(mirrored.proxy.address(), &request).head().status, 304);
    assert_eq!(mirrored.get_with("/", "Accept-Encoding: gzip\r\n").header("content-encoding"), "gzip");
    assert_eq!((mirrored.source.requests().len(), live.requests().len()), (received, 0));
    // A harvest of the mirror is activity of its repository.
    let requests = mirrored.source.requests().len();
    assert!(requests > 3 && !open(&mirrored.proxy, "/x/").text().contains("Last 30 days: 0 requests"));
}

#[test]
fn filter_selects_rows() {
    let mut ids = vec!["abc", "abd", "z"];
    let source = Source::page(page_of(1));
    let mirrored = Mirrored::with(
        Collection::of(3),
        |_| {},
        |config| {
            for id in &ids {
                let mapping =
                    Mapping::new(id, &source.base_url(), &Limits::default()).expect("a legal mapping");
                config.repositories.add_fixed(mapping);
            }
        },
    );
    ids.push("x");
    for (query, found) in [
        ("", &["abc", "abd", "x", "z"][..]),
        ("?q=", &["abc", "abd", "x", "z"]),
        ("?q=AB", &["abc", "abd"]),
        ("?q=+collection+", &["x"]),
        ("?q=%22%3E%3Cscript%3E", &[]),
    ] {
        let got = mirrored.get(&format!("/{query}"));
        is_html(&got, 200, "<form class=\"search\"");
        let text = got.text();
        assert!(!text.contains("<script"), "{text}");
        let rows: Vec<&str> =
            ids.iter().copied().filter(|id| text.contains(&format!("<a href=\"/{id}/\">"))).collect();
        assert_eq!(rows.len(), found.len(), "{query}: {rows:?}");
        assert!(found.iter().all(|id| rows.contains(id)), "{query}: {rows:?}");
    }
    contains(&mirrored.get("/?q=AB").text(), &["<caption>2 of 4 repositories.", "value=\"AB\""]);
}

#[test]
fn mirrored_repository_has_a_page_for_browsers() {
    let mirrored = Mirrored::of(Collection::of(30));
    let received = mirrored.source.requests().len();
    for path in ["/x/", "/x", "/x?"] {
        let got = open(&mirrored.proxy, path);
        is_html(&got, 200, "<h1><bdi>A collection</bdi></h1>");
        assert_eq!(got.header("cache-control"), "no-cache");
    }
    let page = open(&mirrored.proxy, "/x/");
    let public_url = format!("http://{}", mirrored.proxy.address());
    contains(
        &page.text(),
        &[
            "<dt>Earliest datestamp</dt><dd><bdi>2020-01-01T00:00:00Z</bdi>",
            "<bdi>persistent: deletions stay visible</bdi>",
            "<bdi>seconds</bdi>",
            "<bdi>a@source.example</bdi>",
            "<th scope=\"row\"><bdi>oai_dc</bdi></th><td class=\"n\">30</td><td class=\"n\">0</td>",
            "<a href=\"/x/sets/even/\"><bdi>even</bdi></a>",
            "<h2 id=\"timeline\">",
            "aria-label=\"oai_dc: until 20",
            "<dt>Next harvest</dt>",
            "Nothing was repaired in the last 30 days.",
            "No failure is known.",
            "Not checked yet.",
            &format!("<code>{public_url}/x?verb=ListRecords&amp;metadataPrefix=oai_dc</code>"),
            &format!("<code>{public_url}/_mirror/x</code>"),
            "<a class=\"landing\" href=\"/x/records/\">",
        ],
    );
    assert!(!page.text().contains(&mirrored.source.address.to_string()), "{}", page.text());
    let known = format!("If-None-Match: {}\r\n", page.header("etag"));
    let request = format!("GET /x/ HTTP/1.1\r\nHost: x\r\n{BROWSER}{known}\r\n");
    assert_eq!(Harvester::ask(mirrored.proxy.address(), &request).head().status, 304);
    // Harvesters still learn that their request has no verb.
    for headers in ["", "Accept: */*\r\n", "Accept: text/xml\r\n", "Accept: text/xml, text/html;q=0.1\r\n"] {
        for path in ["/x", "/x/"] {
            let got = mirrored.get_with(path, headers);
            assert_eq!(
                (got.status, got.header("content-type")),
                (200, "text/xml; charset=UTF-8"),
                "{headers}"
            );
            assert!(got.text().contains("code=\"badVerb\""), "{}", got.text());
        }
    }
    let got = post(mirrored.proxy.address(), "/x/", BROWSER);
    assert!(got.text().contains("code=\"badVerb\""), "{}", got.text());
    for path in ["/x?a=b", "/x?verb=Nothing"] {
        assert!(open(&mirrored.proxy, path).text().contains("badVerb"), "{path}");
    }
    assert_eq!(mirrored.source.requests().len(), received);
    let log = mirrored.proxy.admin_json("/-/repositories/x");
    assert!(log["requests"].as_u64().is_some_and(|requests| requests >= 5), "{log}");
}

#[test]
fn mirror_that_is_being_built_says_so() {
    let mut collection = Collection::of(25);
    collection.fails_at = Some("verb=Identify".to_owned());
    let mirrored = Mirrored::of(collection);
    // The failure of a request is noted after its response, so the harvest may end before.
    open_until(&mirrored.proxy, "/x/", "source fails since");
    let got = open(&mirrored.proxy, "/x/");
    is_html(&got, 200, "<span class=\"state\">never harvested</span>");
    contains(
        &got.text(),
        &[
            "The mirror of this repository is being built.",
            "<h1><bdi>x</bdi></h1>",
            "source fails since",
            "<b>status</b><br>The source answered with an HTTP error.",
        ],
    );
    assert!(!got.text().contains("404"), "the response of the source: {}", got.text());
    contains(&mirrored.get("/").text(), &["never harvested", "source fails since"]);
    let mut collection = Collection::of(25);
    collection.fails_at = Some("verb=ListRecords".to_owned());
    let mirrored = Mirrored::of(collection);
    is_html(&open(&mirrored.proxy, "/x/"), 200, "A collection");
}

#[test]
fn live_repository_shows_what_is_known_without_a_request() {
    let source = hostile_source();
    let proxy = Proxy::of(&source);
    let got = open(&proxy, "/x/");
    is_html(&got, 200, "Not known yet. It appears after the first request of a harvester.");
    contains(&got.text(), &["<span class=\"state\">live</span>", "No request was sent to this repository."]);
    assert_eq!(source.requests().len(), 0);
    for verb in ["Identify", "ListSets", "ListMetadataFormats"] {
        assert_eq!(proxy.get(&format!("/x?verb={verb}")).status, 200);
    }
    let received = source.requests().len();
    open_until(&proxy, "/x/", "<h1><bdi>Name &lt;script&gt;");
    open_until(&proxy, "/x/", "Set &lt;script&gt;");
    let page = open_until(&proxy, "/x/", "<bdi>http://www.openarchives.org/OAI/2.0/oai_dc/</bdi>");
    contains(&page, &["<bdi>days</bdi>", "<bdi>no: deleted records vanish</bdi>", "<bdi>a:b</bdi>"]);
    let overview = open_until(&proxy, "/", "Name &lt;script&gt;");
    for page in [&page, &overview] {
        assert!(!page.contains("<script") && !page.contains(&source.address.to_string()), "{page}");
    }
    assert!(!page.contains("/x/records/") && !page.contains("/x/sets/"), "it has no record pages: {page}");
    assert_eq!(source.requests().len(), received);
}

#[test]
fn activity_survives_a_restart() {
    let source = hostile_source();
    let proxy = Proxy::of(&source);
    for _ in 0..3 {
        assert_eq!(proxy.get(LIST).status, 200);
    }
    // A request is counted after its response is sent.
    proxy.wait_for_requests("x", 3);
    let parts = [
        "<b>bare-ampersand</b> <span class=\"note\">3 times</span>",
        "<bdi class=\"identifier\">oai:x:2</bdi>",
        "<dt>before</dt><dd><code class=\"del\" dir=\"auto\">",
        "<code class=\"ins\" dir=\"auto\">&amp;amp;</code>",
        "<dt>Requests</dt><dd>3</dd>",
        "<dt>Valid items</dt><dd>9</dd>",
        "<dt>Repaired items</dt><dd>3 (25.0 %)</dd>",
    ];
    let before = open(&proxy, "/x/").text();
    contains(&before, &parts);
    let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    let proxy = proxy.restarted(|config| config.repositories.add_fixed(mapping));
    contains(&open(&proxy, "/x/").text(), &parts);
    contains(&proxy.get("/").text(), &["data-label=\"Repaired\">25.0 %</td>"]);
    proxy.clock.step(40 * 86_400);
    let later = open(&proxy, "/x/").text();
    contains(
        &later,
        &["No request was sent to this repository.", "Nothing was repaired in the last 30 days."],
    );
}

#[test]
fn failures_show_the_reason_and_never_the_source() {
    let (source, collection) = Collection::of(3).start();
    let proxy = Proxy::of(&source);
    assert_eq!(proxy.get(LIST).status, 200);
    change(&collection, |collection| collection.is_down = true);
    assert_eq!(proxy.get(LIST).status, 503);
    proxy.wait_for_requests("x", 2);
    let page = open(&proxy, "/x/").text();
    contains(
        &page,
        &[
            "source fails since",
            "<b>status</b><br>The source answered with an HTTP error.",
            "<dt>Last response</dt>",
        ],
    );
    let details = proxy.admin_json("/-/repositories/x")["last_failure"]["details"].clone();
    let details = details.as_str().expect("the admin listener has them");
    assert!(details.contains("500") && !page.contains(details) && !page.contains("500"), "{page}");
    change(&collection, |collection| collection.is_down = false);
    // The failed request itself has a pause.
    assert_eq!(proxy.get("/x?verb=Identify").status, 200);
    proxy.wait_for_requests("x", 3);
    let page = open(&proxy, "/x/").text();
    assert!(!page.contains("source fails since") && page.contains("<b>status</b>"), "{page}");
}

#[test]
fn removed_and_unknown_repositories_have_their_status() {
    let Mirrored { source, proxy, .. } = Mirrored::of(Collection::of(5));
    for (path, headers) in [("/y/", BROWSER), ("/y", ""), ("/y/z/", BROWSER), ("/y?verb=Identify", "")] {
        let got = fetch_with(proxy.address(), path, headers);
        is_html(&got, 404, "<h1>No such repository</h1>");
        contains(&got.text(), &["<a href=\"/x/\">x</a>"]);
    }
    assert_eq!(post(proxy.address(), "/y", "").status, 404);
    let received = source.requests().len();
    let proxy = proxy.restarted(|_| {});
    for path in ["/x/", "/x"] {
        is_html(&open(&proxy, path), 410, "<h1>Repository removed</h1>");
        assert_eq!(proxy.get(path).status, 404, "a harvester");
    }
    let got = proxy.get("/");
    is_html(&got, 200, "There is no repository yet.");
    assert_eq!(source.requests().len(), received);
}

#[test]
fn last_check_is_on_the_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = hostile_source();
    let mappings = folder.path().join("mappings");
    std::fs::create_dir(&mappings).expect("writable");
    let text = format!("base_url = \"{}\"\n", source.base_url());
    std::fs::write(mappings.join("x.toml"), text).expect("writable");
    let mut check = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    let output = check.args(["check", "x", "--data", "state"]).current_dir(folder.path()).output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = std::fs::read_to_string(folder.path().join("state/checks/x.json")).expect("it is saved");
    let value: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    assert!(value["checked_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{report}");
    let proxy = Proxy::of(&source);
    let page = open(&proxy, "/x/").text();
    contains(&page, &["Not checked yet."]);
    let checks = proxy.data().join("checks");
    std::fs::create_dir(&checks).expect("writable");
    std::fs::write(checks.join("x.json"), &report).expect("writable");
    let page = open(&proxy, "/x/").text();
    contains(
        &page,
        &[&format!("Checked at <time datetime=\"{}\">", value["checked_at"].as_str().unwrap_or_default())],
    );
    contains(&page, &["<caption>Rules that fail or deserve a warning</caption>", ">fails</span>"]);
    let finding =
        value["rules"].as_array().and_then(|rules| rules.iter().find(|rule| rule["verdict"] == "fails"));
    let finding = finding.expect("a rule fails");
    contains(&page, &[finding["rule"].as_str().unwrap_or_default()]);
    let other = report.replace(&source.base_url(), "http://other.example/oai");
    for report in [other.as_str(), "{", ""] {
        std::fs::write(checks.join("x.json"), report).expect("writable");
        contains(&open(&proxy, "/x/").text(), &["Not checked yet."]);
    }
}

#[test]
fn without_a_gateway_there_is_a_list_of_base_urls() {
    let source = Source::page(page_of(1));
    let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    let proxy = Proxy::with(|config| {
        config.gateway.enabled = false;
        config.repositories.add_fixed(mapping);
    });
    let url = format!("http://{}/x", proxy.address());
    for (path, status) in [("/", 200), ("/y/", 404)] {
        let got = open(&proxy, path);
        is_html(&got, status, &format!("<a href=\"{url}?verb=Identify\"><code>{url}</code></a>"));
        assert!(!got.text().contains(&source.address.to_string()), "{}", got.text());
    }
    assert!(open(&proxy, "/x/").text().contains("badVerb"));
}

#[test]
fn public_pages_hide_the_address_of_the_source() {
    let collection = std::sync::Mutex::new(Collection::of(3));
    let source = Source::start(move |_, received| {
        let mut received = received.clone();
        received.target = received.target.replace("apikey=s3cret&", "");
        collection.lock().expect("no test panics while it holds this").reply(&received)
    });
    let mut mapping = mapping(&source);
    mapping.source_mut().base_url.set_query(Some("apikey=s3cret"));
    let proxy = Proxy::with(|config| config.repositories.add_fixed(mapping));
    proxy.wait_for_harvests("x", 1);
    let got = proxy.get("/x/record/oai%3Ac%3A00001");
    is_html(&got, 200, "<h2 id=\"provenance\">");
    for path in ["/x/record/oai%3Ac%3A00001", "/x/", "/"] {
        let got = open(&proxy, path);
        let shown = format!("{:?}{}", got.headers, got.text());
        for hidden in ["s3cret", "apikey", &source.address.to_string()] {
            assert!(!shown.contains(hidden), "{path}: {shown}");
        }
    }
}

#[test]
fn counters_are_a_new_version_of_a_page_from_time_to_time_only() {
    let (source, collection) = Collection::of(3).start();
    let proxy = Proxy::of(&source);
    // The next version begins in 300 seconds.
    let now_secs = proxy.clock.now_secs().0;
    proxy.clock.step(300 - now_secs.rem_euclid(300));
    fetch(proxy.address(), "/x?verb=Identify");
    proxy.wait_for_requests("x", 1);
    let status = |path: &str, tag: &str| {
        let known = format!("If-None-Match: {tag}\r\nAccept: text/html\r\n");
        fetch_with(proxy.address(), path, &known).status
    };
    let pages = ["/", "/x/"].map(|path| {
        let got = open(&proxy, path);
        assert!(got.header("etag").starts_with("W/\""), "{got:?}");
        (path, got.header("etag").to_owned())
    });
    fetch(proxy.address(), "/x?verb=ListIdentifiers&metadataPrefix=oai_dc");
    proxy.wait_for_requests("x", 2);
    for (path, tag) in &pages {
        assert_eq!(status(path, tag), 304, "{path}");
    }
    proxy.clock.step(300);
    for (path, tag) in &pages {
        assert_eq!(status(path, tag), 200, "{path}");
    }
    let tag = open(&proxy, "/").header("etag").to_owned();
    change(&collection, |collection| collection.is_down = true);
    assert_eq!(fetch(proxy.address(), "/x?verb=ListRecords&metadataPrefix=oai_dc").status, 503);
    proxy.wait_for_requests("x", 3);
    assert_eq!(status("/", &tag), 200, "the source fails");
}

#[test]
fn a_missing_page_of_a_repository_is_no_missing_repository() {
    let (source, _collection) = Collection::of(3).start();
    let proxy = Proxy::with(|config| {
        let mapping = Mapping { live_pages: LivePages::Off, ..at_once(&source) };
        config.repositories.add_fixed(mapping);
    });
    for (path, title) in [
        ("/y/", "No such repository"),
        ("/y/records/", "No such repository"),
        ("/y/record/1", "No such repository"),
        ("/x/nothing", "No such page"),
        ("/x/records/", "No such page"),
        ("/_mirror/x", "No such page"),
        ("/_mirror/y", "No such repository"),
        ("/_all", "No such page"),
        ("/-/nothing", "No such page"),
        ("/x/record/1", "No record pages"),
    ] {
        let got = open(&proxy, path);
        is_html(&got, 404, &format!("<h1>{title}</h1>"));
        assert!(got.header("vary").contains("Accept,"), "{path}: {got:?}");
    }
    contains(
        &open(&proxy, "/x/records/").text(),
        &["has no copy of the repository", "<a href=\"/x/\">x</a>"],
    );
}

#[test]
fn accept_decides_and_vary_says_so() {
    let (source, _collection) = Collection::of(3).start();
    let proxy = Proxy::of(&source);
    for headers in ["", "Accept: text/html\r\n", "Sec-Fetch-Dest: document\r\n"] {
        let got = fetch_with(proxy.address(), "/x", headers);
        let vary: Vec<&str> = got.header("vary").split(", ").collect();
        assert!(vary.contains(&"Accept"), "{headers}: {got:?}");
    }
    let refused = fetch_with(proxy.address(), "/x/record/oai%3Ac%3A00001", "Accept: text/html;q=0\r\n");
    assert_eq!(refused.header("content-type"), "application/xml; charset=UTF-8");
}

#[test]
fn icons_are_empty() {
    let (source, _collection) = Collection::of(3).start();
    let proxy = Proxy::of(&source);
    let got = fetch(proxy.address(), "/favicon.ico");
    assert_eq!((got.status, got.body.len(), got.header("content-length")), (204, 0, ""));
    assert_eq!(got.header("cache-control"), "public, max-age=86400");
}

#[test]
fn the_view_of_all_repositories_has_a_page() {
    let mirrored = Mirrored::with(Collection::of(30), |_| {}, |config| config.mirror.aggregate = true);
    let got = open(&mirrored.proxy, "/_all");
    is_html(&got, 200, "1 repository, 30 in all.");
    let url = format!("<code>http://{}/_all</code>", mirrored.proxy.address());
    contains(&got.text(), &[&url, "href=\"/_all?verb=ListRecords&amp;metadataPrefix=oai_dc\""]);
    assert!(fetch(mirrored.proxy.address(), "/_all").text().contains("badVerb"));
    assert!(open(&mirrored.proxy, "/_all?verb=Identify").text().contains("<Identify>"));
}

#[test]
fn examples_of_repairs_lead_to_records_by_the_text_of_their_identifiers() {
    let mut collection = Collection::of(2);
    let mut entry = collection.entries.values().next().cloned().expect("a record");
    entry.title = "Fish & chips".to_owned();
    // The provider writes identifiers and sets as they are.
    collection.entries.insert("a&amp;b".to_owned(), entry);
    collection.sets = "<set><setSpec>a b</setSpec><setName>A &nbsp; B</setName></set>".to_owned();
    let mirrored = Mirrored::of(collection);
    let page = open_until(&mirrored.proxy, "/x/", "bare-ampersand");
    contains(&page, &["<a class=\"identifier\" href=\"/x/record/a%26b\"><bdi>a&amp;b</bdi></a>"]);
    assert_eq!(page.matches("<a class=\"identifier\" href=\"/x/record/").count(), 1, "{page}");
    is_html(&open(&mirrored.proxy, "/x/record/a%26b"), 200, "Fish &amp; chips");
}
