//! Searches of people and programs: pages, JSON, feeds, suggestions, and what they answer without an index.

use std::path::{Path, PathBuf};
use std::process::Command;

use oaimend::config::Views;
use serde_json::{Value, json};

use crate::fixtures::collection::{Collection, Entry, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::proxy::Proxy;

use super::gateway::{Mirrored, is_html};

const RECORDS: usize = 45;
/// The numbers of the records with special fields.
const ARTICLE: usize = 3;
const HOSTILE: usize = 4;

/// A collection of 45 records. Each has the word `harbour` in its abstract.
fn collection() -> Collection {
    let mut collection = Collection::of(RECORDS);
    for (number, entry) in collection.entries.values_mut().enumerate() {
        // The provider writes titles as they are.
        let year = 1990 + number;
        entry.title = format!(
            "Title {number}</dc:title><dc:description>A view of the harbour</dc:description><dc:date>{year}</dc:date>\
             <dc:title>Another title"
        );
    }
    let mut set_title = |number: usize, title: &str| {
        collection.entries.get_mut(&identifier(number)).expect("it exists").title = title.to_owned();
    };
    set_title(
        ARTICLE,
        "Tides &amp; ferries</dc:title><dc:creator>Berg, Anna</dc:creator><dc:creator>Holm, Lars</dc:creator>\
         <dc:type>article</dc:type><dc:date>2019-04-05</dc:date><dc:language>en</dc:language><dc:subject>tides</dc:subject>\
         <dc:rights>info:eu-repo/semantics/openAccess</dc:rights>\
         <dc:identifier>https://doi.org/10.1234/tides.7</dc:identifier>\
         <dc:description>A study of the timetables of ferries in the harbour.</dc:description><dc:title>Another title",
    );
    set_title(
        HOSTILE,
        "&lt;script&gt;alert(1)&lt;/script&gt; ferry</dc:title><dc:creator>\"&gt;&lt;i&gt;</dc:creator>\
         <dc:description>&lt;b&gt;harbour&lt;/b&gt;</dc:description><dc:title>Another title",
    );
    collection
}

/// The mirror of the collection, after it is indexed.
fn searched() -> Mirrored {
    let mirrored = Mirrored::of(collection());
    mirrored.proxy.wait_for_results("/_search.json?q=harbour", RECORDS as u64);
    mirrored
}

#[track_caller]
fn json(mirrored: &Mirrored, path: &str) -> Value {
    let got = mirrored.get(path);
    assert_eq!((got.status, got.header("content-type")), (200, "application/json"), "{}", got.text());
    serde_json::from_slice(&got.body).unwrap_or_else(|error| panic!("{error}: {}", got.text()))
}

#[test]
fn people_find_records_by_words_and_narrow_them() {
    let mirrored = searched();
    let page = mirrored.get("/_search?q=ferries");
    is_html(&page, 200, "<mark>ferries</mark>");
    for part in [
        "<title>Search: ferries – oaimend</title>",
        "<a href=\"/x/record/oai%3Ac%3A00003\">",
        "Tides &amp; <mark>ferries</mark>",
        "<bdi lang=\"\">Berg, Anna</bdi>; <bdi lang=\"\">Holm, Lars</bdi>",
        "<span class=\"state good\">Open access</span>",
        "<bdi>A collection</bdi>",
        "rft.au=Berg%2C+Anna",
    ] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    assert!(
        page.header("link").contains("/_search.atom?q=ferries>; rel=\"alternate\""),
        "{}",
        page.header("link")
    );
    assert_eq!(page.header("vary"), "Accept, Accept-Encoding");
    let second = mirrored.get("/_search?q=harbour&page=2").text();
    for part in [
        "45 records, page 2",
        "<ol class=\"results\" start=\"21\">",
        "href=\"/_search?q=harbour\">Previous</a>",
        "href=\"/_search?q=harbour&amp;page=3\">Next</a>",
        "href=\"/_search?q=harbour&amp;type=Article\"><bdi>Article</bdi></a> <span class=\"count\">1</span>",
        "href=\"/_search?q=harbour&amp;access=open\"><bdi>Open access</bdi></a>",
    ] {
        assert!(second.contains(part), "{part}: {second}");
    }
    for (path, total) in [
        ("/_search.json?q=harbour&type=Article", 1),
        ("/_search.json?q=harbour&access=open", 1),
        ("/_search.json?q=harbour&year=1995-1999", 5),
        ("/_search.json?language=en", 1),
        ("/_search.json?repository=x", 45),
        ("/_search.json?q=%2Bharbour+-ferries", 44),
        ("/_search.json?q=creator:berg", 1),
    ] {
        assert_eq!(json(&mirrored, path)["total"], json!(total), "{path}");
    }
    let years = |sort: &str| {
        let found = json(&mirrored, &format!("/_search.json?q=title&sort={sort}"));
        found["items"]
            .as_array()
            .map(|items| items.iter().map(|item| item["year"].clone()).collect::<Vec<_>>())
    };
    let (newest, oldest) = (years("newest").unwrap_or_default(), years("oldest").unwrap_or_default());
    assert_eq!((newest.first(), oldest.first()), (Some(&json!("2034")), Some(&json!("1990"))));
}

#[test]
fn hostile_records_and_queries_are_text() {
    let mirrored = searched();
    let page = mirrored.get("/_search?q=ferry+%3Cscript%3E&language=%22%3E%3Ci%3E").text();
    assert!(
        page.contains("No record matches.") && !page.contains("<script") && !page.contains("<i>"),
        "{page}"
    );
    let page = mirrored.get("/_search?q=ferry+%3Cscript%3E").text();
    assert!(page.contains("&lt;<mark>script</mark>&gt;alert(1)"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<i>") && !page.contains("<b>"), "{page}");
    let item = &json(&mirrored, "/_search.json?q=title:ferry+-study")["items"][0];
    assert_eq!(item["title"], json!("<script>alert(1)</script> ferry"), "{item}");
}

#[test]
fn wrong_requests_are_answered_with_one_message() {
    let mirrored = searched();
    for (query, text) in [
        ("q=nothing:x", "there is no field"),
        ("q=%22open", "quotation mark"),
        ("q=a&sort=best", "sort is relevance, newest or oldest."),
        ("q=a&page=501", "page is a number from 1 to 500."),
        ("q=a&year=x", "year is a year such as 2001"),
        ("q=%2B%26", "no word"),
        (&format!("q={}", "a+".repeat(100)), "64 terms"),
    ] {
        let page = mirrored.get(&format!("/_search?{query}"));
        is_html(&page, 400, text);
        assert!(page.text().contains("id=\"query-fault\" role=\"alert\""), "{}", page.text());
        let json = mirrored.get(&format!("/_search.json?{query}"));
        let value: Value = serde_json::from_slice(&json.body).unwrap_or_default();
        assert!(
            json.status == 400 && value["error"].as_str().is_some_and(|error| error.contains(text)),
            "{value}"
        );
        assert_eq!(mirrored.get(&format!("/_search.atom?{query}")).status, 400);
    }
}

#[test]
fn forms_are_chosen_by_ending_or_by_accept() {
    let mirrored = searched();
    for (path, accept, content_type) in [
        ("/_search?q=ferries", "*/*", "text/html; charset=UTF-8"),
        ("/_search?q=ferries", "application/json", "application/json"),
        (
            "/_search?q=ferries",
            "application/json;q=0.1, application/atom+xml",
            "application/atom+xml; charset=UTF-8",
        ),
        ("/_search.json?q=ferries", "text/html", "application/json"),
        ("/_recent", "application/atom+xml", "application/atom+xml; charset=UTF-8"),
        ("/_recent.json", "text/html", "application/json"),
    ] {
        let got = mirrored.get_with(path, &format!("Accept: {accept}\r\n"));
        assert_eq!((got.status, got.header("content-type")), (200, content_type), "{path} {accept}");
        assert_eq!(got.header("vary"), "Accept, Accept-Encoding");
        let tag = format!("Accept: {accept}\r\nIf-None-Match: {}\r\n", got.header("etag"));
        assert_eq!(mirrored.get_with(path, &tag).status, 304, "{path} {accept}");
    }
}

#[test]
fn programs_get_unescaped_texts_and_links_to_further_pages() {
    let mirrored = searched();
    let base = format!("http://{}", mirrored.proxy.address());
    let found = json(&mirrored, "/_search.json?q=%2Bferries+%2Btides");
    let item = &found["items"][0];
    for (key, value) in [
        ("repository", json!("x")),
        ("identifier", json!("oai:c:00003")),
        ("url", json!(format!("{base}/x/record/oai%3Ac%3A00003"))),
        ("title", json!("Tides & ferries")),
        ("creators", json!(["Berg, Anna", "Holm, Lars"])),
        ("year", json!("2019")),
        ("type", json!("Article")),
        ("language", json!("en")),
        ("isOpenAccess", json!(true)),
        ("links", json!(["https://doi.org/10.1234/tides.7"])),
        ("snippet", json!("A study of the timetables of ferries in the harbour.")),
    ] {
        assert_eq!(item[key], value, "{key}: {item}");
    }
    assert_eq!((&found["query"], &found["isEstimate"]), (&json!("+ferries +tides"), &json!(false)));
    let mut identifiers = Vec::new();
    let mut next = json!(format!("{base}/_search.json?q=harbour"));
    while let Some(url) = next.as_str() {
        let page = json(&mirrored, url.strip_prefix(&base).expect("a URL of the proxy"));
        let items = page["items"].as_array().cloned().unwrap_or_default();
        identifiers
            .extend(items.into_iter().filter_map(|item| item["identifier"].as_str().map(str::to_owned)));
        next = page["next"].clone();
    }
    identifiers.sort();
    assert_eq!(identifiers, (0..RECORDS).map(identifier).collect::<Vec<_>>());
}

#[test]
fn recent_records_are_those_that_changed_last() {
    let mirrored = searched();
    change(&mirrored.collection, |collection| {
        let datestamp_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(9)).expect("it exists");
        *entry = Entry { datestamp_secs, title: "Lighthouse".to_owned(), ..entry.clone() };
    });
    mirrored.harvest_again();
    mirrored.proxy.wait_for_results("/_search.json?q=lighthouse", 1);
    for path in ["/_recent.json", "/_recent.json?repository=x", "/_search.json"] {
        assert_eq!(json(&mirrored, path)["items"][0]["title"], json!("Lighthouse"), "{path}");
    }
    is_html(&mirrored.get("/_recent"), 200, "<h1>Recently changed records</h1>");
    // An empty result would claim that the repository has no such record.
    is_html(&mirrored.get("/_search?q=harbour&repository=y"), 400, "The repository y is not searched.");
    is_html(&mirrored.get("/_recent?repository=y"), 400, "The repository y is not searched.");
    for path in ["/_recent.json?repository=y", "/_search.json?repository=y", "/_search.atom?q=a&repository=y"]
    {
        let refused = mirrored.get(path);
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.text().contains("is not searched"), "{path}: {}", refused.text());
    }
}

#[test]
fn browsers_find_the_search_and_its_suggestions() {
    let mirrored = searched();
    let overview = mirrored.get("/").text();
    assert!(overview.contains("<form role=\"search\" method=\"get\" action=\"/_search\">"), "{overview}");
    assert!(overview.contains("href=\"/_search/opensearch.xml\""), "{overview}");
    let description = mirrored.get("/_search/opensearch.xml");
    assert_eq!(description.header("content-type"), "application/opensearchdescription+xml; charset=UTF-8");
    let template = format!("http://{}/_search?q={{searchTerms}}", mirrored.proxy.address());
    assert!(description.text().contains(&template), "{}", description.text());
    let suggest = |query: &str| -> Value {
        let got = mirrored.get(&format!("/_search/suggest?q={query}"));
        assert_eq!((got.status, got.header("content-type")), (200, "application/x-suggestions+json"));
        serde_json::from_slice(&got.body).unwrap_or_default()
    };
    assert_eq!(
        suggest("tide"),
        json!(["tide", ["\"tides\"", "\"Tides & ferries\""], ["1 record", "1 record"]])
    );
    assert_eq!(suggest("%22berg"), json!(["\"berg", ["\"Berg, Anna\""], ["1 record"]]));
    assert_eq!((suggest("t"), suggest("")), (json!(["t", [], []]), json!(["", [], []])));
    is_html(&mirrored.get("/_search"), 200, "45 records can be searched.");
    assert!(
        mirrored.get("/robots.txt").text().contains("Disallow: /_search?\n"),
        "crawlers follow no facets"
    );
}

#[test]
fn a_server_without_search_says_why() {
    let mirrored = Mirrored::with(Collection::of(1), |_| {}, |config| config.search.enabled = false);
    is_html(&mirrored.get("/_search?q=a"), 404, "search.enabled is false");
    for path in ["/_search.json?q=a", "/_recent.atom", "/_search/opensearch.xml", "/_search/suggest?q=ab"] {
        assert_eq!(mirrored.get(path).status, 404, "{path}");
    }
    assert!(
        !mirrored.get("/").text().contains("_search")
            && !mirrored.get("/robots.txt").text().contains("_search")
    );
    let nothing_mirrored = Proxy::with(|_| {});
    is_html(&nothing_mirrored.get("/_search"), 404, "no repository is mirrored");
}

#[test]
fn without_pages_only_the_base_urls_of_a_search_exist() {
    let mirrored = Mirrored::with(Collection::of(1), |_| {}, |config| config.gateway.enabled = false);
    for name in ["_search", "_recent"] {
        for ending in [".json", ".atom", ".json?verb=Identify"] {
            assert_eq!(mirrored.get(&format!("/{name}{ending}")).status, 404, "{name}{ending}");
        }
        let identify = mirrored.get(&format!("/{name}?verb=Identify"));
        assert!(identify.status == 200 && identify.text().contains("<baseURL>"), "{}", identify.text());
    }
}

/// `scripts/feeds install` installs feedparser. Without it the test is skipped, unless `OAIMEND_FEEDS=required`.
#[test]
fn feed_readers_understand_the_feeds() {
    let is_required = std::env::var("OAIMEND_FEEDS").is_ok_and(|value| value == "required");
    let folder = tempfile::tempdir().expect("a folder");
    let text = "repository_name = \"Works & more\"\nquery = \"+tides +ferries\"\n";
    std::fs::write(folder.path().join("works.toml"), text).expect("writable");
    let mirrored = Mirrored::with(
        collection(),
        |_| {},
        |config| {
            config.views = Views::new(folder.path().to_owned());
            assert_eq!(config.views.reload(&config.repositories.all()), []);
        },
    );
    mirrored.proxy.wait_for_results("/_search.json?q=harbour", RECORDS as u64);
    let base = format!("http://{}", mirrored.proxy.address());
    let Some(feed) = read_feed(&mirrored, "/_search.atom?q=%2Bferries+%2Btides") else {
        assert!(!is_required, "run scripts/feeds install first");
        println!("skipped: scripts/feeds install was not run");
        return;
    };
    let url = |form: &str| json!(format!("{base}/_search{form}?q=%2Bferries+%2Btides"));
    assert_eq!(
        (&feed["fault"], &feed["version"], &feed["total"]),
        (&json!(null), &json!("atom10"), &json!("1"))
    );
    assert_eq!(feed["title"], json!("Search: +ferries +tides – oaimend"));
    assert_eq!(
        (&feed["id"], &feed["links"]["self"], &feed["links"]["alternate"]),
        (&url(".atom"), &url(".atom"), &url(""))
    );
    let entry = &feed["entries"][0];
    for (key, value) in [
        ("title", json!("Tides & ferries")),
        ("id", json!(format!("{base}/x/record/oai%3Ac%3A00003"))),
        ("authors", json!(["Berg, Anna", "Holm, Lars"])),
        ("subjects", json!(["tides"])),
        ("summary", json!("A study of the timetables of ferries in the harbour.")),
    ] {
        assert_eq!(entry[key], value, "{key}: {entry}");
    }
    assert_eq!(entry["links"]["related"], json!("https://doi.org/10.1234/tides.7"));
    assert!(entry["updated"].is_array() && feed["entries"][1].is_null(), "{feed}");
    let recent = read_feed(&mirrored, "/_recent.atom?page=2").unwrap_or_default();
    assert_eq!(recent["entries"].as_array().map(Vec::len), Some(20), "{recent}");
    let page = |arguments: &str| json!(format!("{base}/_recent.atom{arguments}"));
    assert_eq!((&recent["links"]["next"], &recent["links"]["previous"]), (&page("?page=3"), &page("")));
    let view = read_feed(&mirrored, "/_view/works.atom").unwrap_or_default();
    let page = |ending: &str| json!(format!("{base}/_view/works{ending}"));
    assert_eq!((&view["links"]["self"], &view["links"]["alternate"]), (&page(".atom"), &page("")));
    assert_eq!((&view["fault"], &view["title"]), (&json!(null), &json!("Works & more")), "{view}");
    assert_eq!(view["entries"][0]["links"]["related"], json!("https://doi.org/10.1234/tides.7"), "{view}");
    let hostile = read_feed(&mirrored, "/_search.atom?q=script").unwrap_or_default();
    assert_eq!(
        (&hostile["fault"], hostile["entries"].as_array().map(Vec::len)),
        (&json!(null), Some(1)),
        "{hostile}"
    );
}

/// What feedparser finds in a feed; `None` if it is not installed.
pub(super) fn read_feed(mirrored: &Mirrored, path: &str) -> Option<Value> {
    let got = mirrored.get(path);
    assert_eq!(got.status, 200, "{}", got.text());
    let file = mirrored.proxy.data().join("feed.xml");
    std::fs::write(&file, &got.body).expect("a writable folder");
    let target = PathBuf::from(env!("CARGO_BIN_EXE_oaimend"));
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/feeds"))
        .args(["read".as_ref(), file.as_os_str()])
        .env("CARGO_TARGET_DIR", target.ancestors().nth(2).expect("the program is two folders below"))
        .output()
        .expect("the script runs");
    if output.status.code() == Some(69) {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(serde_json::from_slice(&output.stdout).expect("it is JSON"))
}
