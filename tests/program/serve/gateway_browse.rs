//! Lists of creators, titles and years, from the index of the search.

use super::gateway::{Mirrored, is_html};
use crate::fixtures::collection::{Collection, identifier};

const RECORDS: usize = 250;

fn collection() -> Collection {
    let mut collection = Collection::of(RECORDS);
    for (number, fields) in [
        (0, "<dc:creator>\u{c9}mile B</dc:creator><dc:date>2019-04-05</dc:date>"),
        (1, "<dc:creator>Anna B</dc:creator><dc:date>2021</dc:date>"),
        (2, "<dc:creator>Anna B</dc:creator><dc:creator>&lt;i> C</dc:creator>"),
    ] {
        let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
        // The provider writes titles as they are.
        entry.title = format!("Title {number}</dc:title>{fields}<dc:title>Other");
    }
    collection
}

#[track_caller]
fn contains(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn creators_titles_and_years_lead_to_searches() {
    let mirrored = Mirrored::of(collection());
    mirrored.proxy.wait_for_results("/_search.json?repository=x", RECORDS as u64);
    let creators = mirrored.get("/x/browse/creators/").text();
    let (anna, emile) = (creators.find("Anna B"), creators.find("\u{c9}mile B"));
    assert!(anna.is_some() && anna < emile, "they are in order: {creators}");
    let found = "/_search?q=creator%3A%22Anna+B%22&repository=x";
    let link = format!("<a href=\"{}\"><bdi>Anna B</bdi></a>", found.replace('&', "&amp;"));
    contains(&creators, &[&link, "<span class=\"count\">2 records</span>", "&lt;i&gt; C"]);
    assert!(!creators.contains("rel=\"next\""), "{creators}");
    is_html(&mirrored.get(found), 200, "2 records");
    let begun = mirrored.get("/x/browse/creators/?start=%C3%A9m").text();
    assert!(begun.contains("\u{c9}mile B") && !begun.contains("Anna B"), "{begun}");
    let years = mirrored.get("/x/browse/years/").text();
    contains(&years, &["/_search?repository=x&amp;year=2019"]);
    assert!(years.find(">2021<") < years.find(">2019<"), "{years}");
    let links =
        ["<a rel=\"nofollow\" href=\"/x/browse/creators/\">Creators</a>", "href=\"/x/browse/years/\">"];
    contains(&mirrored.get_with("/x/", "Accept: text/html\r\n").text(), &links);
    contains(&mirrored.get("/x/records/").text(), &links);
    assert_eq!(mirrored.get("/x/browse/other/").status, 404);
    assert_eq!(mirrored.get("/y/browse/titles/").status, 404);
}

#[test]
fn pages_lead_to_every_value_once() {
    let mirrored = Mirrored::of(collection());
    mirrored.proxy.wait_for_results("/_search.json?repository=x", RECORDS as u64);
    let (mut path, mut titles, mut pages) = ("/x/browse/titles/".to_owned(), Vec::new(), 0);
    loop {
        let page = mirrored.get(&path).text();
        let list = page.split("<ul class=\"list\">").nth(1).and_then(|rest| rest.split("</ul>").next());
        let values = list.expect("values").split("<bdi>").skip(1).filter_map(|rest| rest.split('<').next());
        titles.extend(values.map(str::to_owned));
        pages += 1;
        let next = page.split("<a rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
        let Some(next) = next else { break };
        path = next.replace("&amp;", "&");
    }
    // The titles of the collection, and the second title of three records.
    let count = titles.len();
    titles.sort();
    titles.dedup();
    assert_eq!((pages, count, titles.len()), (2, RECORDS + 1, RECORDS + 1));
}

#[test]
fn without_a_search_or_pages_nothing_is_browsed() {
    let without_search = Mirrored::with(collection(), |_| {}, |config| config.search.enabled = false);
    assert_eq!(without_search.get("/x/browse/creators/").status, 404);
    let page = without_search.get_with("/x/", "Accept: text/html\r\n").text();
    assert!(page.contains("Browse the records") && !page.contains("/browse/"), "{page}");
    let off = oaimend::config::RecordPages::Off;
    let without_pages = Mirrored::with(collection(), |mapping| mapping.records = off, |_| {});
    assert_eq!(without_pages.get("/x/browse/creators/").status, 404);
}
