//! The lists that lead crawlers to all records: months, bins and sets.

use oaimend_oai::UnixSecs;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use oaimend::config::{Config, Mapping, RecordPages};
use oaimend_store::{
    MirrorStore as _, NewRecord, PageCommit, Prefix, RecordRepairs, RecordStatus, RepositoryId,
};
use oaimend_store_local::RecordLog;

use super::gateway::{Mirrored, is_html, mapping};
use crate::fixtures::collection::{Collection, Entry, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Got, Harvester, fetch, post};

const LISTS: &str = "/x/records/";

/// The targets of the links of a page to other pages of the repository `x`, in order.
fn links(page: &Got) -> Vec<String> {
    let text = page.text();
    let main = text.split_once("<main").map_or("", |(_, main)| main).to_owned();
    let found = main.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    found.filter(|link| link.starts_with("/x/")).map(str::to_owned).collect()
}

fn is_record(path: &str) -> bool {
    path.starts_with("/x/record/")
}

/// What a crawler found: the pages by their paths, with the number of links from the start.
struct Crawl {
    pages: BTreeMap<String, (usize, Got)>,
}

impl Crawl {
    /// Loads all pages that are linked from `start`. Each must exist.
    #[track_caller]
    fn from(proxy: &Proxy, start: &str) -> Self {
        let mut pages = BTreeMap::new();
        let mut queue = VecDeque::from([(start.to_owned(), 0)]);
        let mut seen = BTreeSet::from([start.to_owned()]);
        while let Some((path, depth)) = queue.pop_front() {
            let page = proxy.get(&path);
            assert_eq!((page.status, page.whole), (200, true), "{path}: {}", page.text());
            if !is_record(&path) {
                let canonical = format!("<link rel=\"canonical\" href=\"http://{}{path}\">", proxy.address());
                assert!(page.text().contains(&canonical), "{path}: {}", page.text());
                let links = links(&page);
                let unique: BTreeSet<_> = links.iter().collect();
                assert_eq!(unique.len(), links.len(), "{path} links twice to a page: {links:?}");
                assert!(links.len() <= 1_003, "{path} has {} links", links.len());
                for link in links {
                    // Lists of sets and of values are other ways to the same records.
                    let is_other_way = ["/x/sets/", "/x/browse/"].iter().any(|start| link.starts_with(start));
                    if !is_other_way && seen.insert(link.clone()) {
                        queue.push_back((link, depth + 1));
                    }
                }
            }
            pages.insert(path, (depth, page));
        }
        Self { pages }
    }

    fn lists(&self) -> BTreeSet<&str> {
        self.pages.keys().filter(|path| !is_record(path)).map(String::as_str).collect()
    }

    fn records(&self) -> BTreeSet<String> {
        self.pages.keys().filter(|path| is_record(path)).cloned().collect()
    }
}

/// The paths of the live records of a collection.
fn live(collection: &Collection) -> BTreeSet<String> {
    let live = collection.entries.iter().filter(|(_, entry)| !entry.deleted);
    live.map(|(identifier, _)| page_of(identifier)).collect()
}

/// The path of the page of a record whose identifier has no special characters but colons.
fn page_of(identifier: &str) -> String {
    format!("/x/record/{}", identifier.replace(':', "%3A"))
}

/// A collection of this size, in which every tenth record is deleted.
fn large(count: usize) -> Collection {
    let mut collection = Collection::of(count);
    collection.page_len = 500;
    collection.now_secs += count as i64 * 86_400;
    for (number, entry) in collection.entries.values_mut().enumerate() {
        entry.deleted = number % 10 == 3;
    }
    collection
}

#[test]
fn every_record_is_reached_from_the_list() {
    let mirrored = Mirrored::of(large(2_500));
    let before = mirrored.source.requests().len();
    let crawl = Crawl::from(&mirrored.proxy, LISTS);
    assert_eq!(mirrored.source.requests().len(), before, "a page caused a request to the source");
    let collection = mirrored.collection.lock().expect("no test panics while it holds this");
    assert_eq!(crawl.records(), live(&collection));
    // The start page links to the list, so one link is added.
    let deepest = crawl.pages.values().map(|(depth, _)| *depth).max();
    assert_eq!(deepest, Some(3));
    assert_eq!(crawl.lists().len(), 5, "the months, one month, and three bins: {:?}", crawl.lists());
    let of_bins = crawl.lists().into_iter().filter(|path| path.ends_with("999"));
    let listed =
        of_bins.map(|path| links(&crawl.pages[path].1).into_iter().filter(|link| is_record(link)).count());
    assert_eq!(listed.sum::<usize>(), 2_250, "a record is in one bin");
    is_html(&crawl.pages[LISTS].1, 200, "2,250 records");
    let bin = crawl
        .lists()
        .into_iter()
        .find(|path| path.ends_with("/1000-1999"))
        .expect("the second bin")
        .to_owned();
    is_html(&mirrored.get(&bin), 200, ">Title 1000</a>");
    for (relation, range) in [("prev", "0-999"), ("next", "2000-2999")] {
        let link = format!("rel=\"{relation}\" href=\"{}\"", bin.replace("1000-1999", range));
        is_html(&mirrored.get(&bin), 200, &link);
    }
}

#[test]
fn bins_keep_their_urls_while_records_change() {
    let mirrored = Mirrored::of(large(2_200));
    let before = Crawl::from(&mirrored.proxy, LISTS);
    change(&mirrored.collection, |collection| {
        let now_secs = collection.now_secs + 86_400;
        for number in 0..2_200 {
            let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
            let is_changed = (1_000..2_000).contains(&number) || number % 100 == 7;
            if is_changed {
                (entry.datestamp_secs, entry.title) = (now_secs, format!("Changed {number}"));
                entry.deleted = number % 100 == 8;
            }
        }
        let entry = Entry { datestamp_secs: now_secs, deleted: false, title: "New".to_owned(), set: "even" };
        collection.entries.extend((3_000..3_500).map(|number| (identifier(number), entry.clone())));
        collection.now_secs = now_secs;
    });
    mirrored.harvest_again();
    let after = Crawl::from(&mirrored.proxy, LISTS);
    let collection = mirrored.collection.lock().expect("no test panics while it holds this");
    assert_eq!(after.records(), live(&collection));
    for path in before.lists() {
        let page = mirrored.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        let has_records = links(&page).iter().any(|link| is_record(link));
        if path.ends_with("999") {
            assert_eq!(has_records, after.lists().contains(path), "{path}");
            let records = |page: &Got| links(page).into_iter().filter(|link| is_record(link)).collect();
            let (old, new): (BTreeSet<String>, BTreeSet<String>) =
                (records(&before.pages[path].1), records(&page));
            assert!(path.ends_with("/2000-2999") || new.is_subset(&old), "{path}");
        }
    }
    let emptied =
        before.lists().into_iter().find(|path| path.ends_with("/1000-1999")).expect("the second bin");
    is_html(&mirrored.get(emptied), 200, "This list has no records now.");
    assert!(!after.lists().contains(emptied), "an empty bin is not linked");
}

#[test]
fn record_that_vanishes_after_it_was_listed_is_no_dead_end() {
    let mirrored = Mirrored::of(Collection::of(5));
    let crawl = Crawl::from(&mirrored.proxy, LISTS);
    assert_eq!(crawl.records().len(), 5);
    change(&mirrored.collection, |collection| {
        collection.now_secs += 86_400;
        let now_secs = collection.now_secs;
        for entry in collection.entries.values_mut() {
            (entry.datestamp_secs, entry.deleted) = (now_secs, true);
        }
    });
    mirrored.harvest_again();
    for path in crawl.records() {
        let page = mirrored.get(&path);
        is_html(&page, 410, "was deleted");
        assert_eq!(links(&page), ["/x/"], "{path}");
    }
    for path in crawl.lists() {
        let page = mirrored.get(path);
        is_html(&page, 200, "This list has no records now.");
    }
}

/// Adds records to the mirror of `x` in a data folder that no server uses.
pub(super) fn store_records(
    data: &Path,
    stamp_secs: i64,
    records: impl Iterator<Item = (String, Vec<String>)>,
) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = RecordLog::open(data).expect("a store");
    let records = records.map(|(identifier, set_specs)| {
        let bytes = format!(
            "<record xmlns=\"http://www.openarchives.org/OAI/2.0/\"><header><identifier>{identifier}</identifier>\
             <datestamp>2020-01-01</datestamp></header><metadata><dc><title>Title of {identifier}</title></dc></metadata>\
             </record>"
        );
        NewRecord {
            content_hash: 1,
            identifier,
            datestamp_secs: UnixSecs(0),
            set_specs,
            status: RecordStatus::Live,
            bytes: bytes.into(),
            repairs: RecordRepairs::default(),
        }
    });
    let records = records.collect();
    runtime.block_on(async {
        let progress = store.progress(RepositoryId("x"), Prefix("oai_dc")).await.expect("readable");
        let (repository, prefix) = ("x".to_owned(), "oai_dc".to_owned());
        let stamp_secs = UnixSecs(stamp_secs);
        let page = PageCommit { repository, prefix, stamp_secs, records, progress, ..PageCommit::default() };
        store.commit(page).await.expect("the commit is in order");
    });
    store.close();
}

/// 2099-01-15T00:00:00Z, after all harvests.
const LATER_SECS: i64 = 4_072_118_400;

/// A mirror with further records in these months after the first harvest.
fn with_months(months: i64, records: usize) -> (Mirrored, Vec<String>) {
    let Mirrored { source, collection, proxy } = Mirrored::of(Collection::of(3));
    let proxy = proxy.restarted(|config| {
        for month in 0..months {
            let records =
                (0..records).map(|number| (format!("m{month}:{number}"), vec![format!("a:b:m{month}")]));
            store_records(&config.data, LATER_SECS + month * 31 * 86_400, records);
        }
        config.repositories.add_fixed(mapping(&source));
    });
    let months = (1..=months).map(|month| format!("/x/records/2099-{month:02}/")).collect();
    (Mirrored { source, collection, proxy }, months)
}

#[test]
fn months_are_listed_from_the_newest() {
    let (mirrored, months) = with_months(3, 5);
    let page = mirrored.get(LISTS);
    is_html(&page, 200, "<p>18 records, by the month");
    let listed: Vec<String> = links(&page).into_iter().filter(|link| link.contains("-")).collect();
    assert_eq!(listed.iter().take(3).collect::<Vec<_>>(), months.iter().rev().collect::<Vec<_>>());
    assert_eq!(listed.len(), 4, "{listed:?}");
    let middle = mirrored.get(&months[1]);
    is_html(&middle, 200, "<h1>Records, February 2099</h1>");
    assert_eq!(links(&middle).iter().filter(|link| link.starts_with("/x/record/m1%3A")).count(), 5);
    is_html(&middle, 200, &format!("rel=\"prev\" href=\"{}\"", months[0]));
    is_html(&middle, 200, &format!("rel=\"next\" href=\"{}\"", months[2]));
    let first = links(&mirrored.get(&months[0]));
    assert!(first.contains(&listed[3]), "the nearest month with records is far: {first:?}");
    assert_eq!(Crawl::from(&mirrored.proxy, LISTS).records().len(), 18);
    is_html(&mirrored.get("/x/records/2099-02/0-999"), 200, ">Title of m1:0</a>");
    for path in [
        "/x/records/2099-04/",
        "/x/records/1970-01/",
        "/x/records/2099-13/",
        "/x/records/2099-02/1000-1999",
        "/x/records/2099-02/0-99",
        "/x/records/2099-02/0-999/1",
        "/x/records/1",
    ] {
        let page = mirrored.get(path);
        is_html(&page, 404, "<h1>No such list</h1>");
        assert_eq!(links(&page), [LISTS], "{path}");
    }
}

#[test]
fn urls_without_their_slash_lead_to_the_list() {
    let (mirrored, _) = with_months(1, 1);
    for (path, location) in [
        ("/x/records", "/x/records/"),
        ("/x/records/2099-01", "/x/records/2099-01/"),
        ("/x/records/2099-01/0-999/", "/x/records/2099-01/0-999"),
        ("/x/sets/a:b", "/x/sets/a%3Ab/"),
    ] {
        let got = mirrored.get(path);
        assert_eq!((got.status, got.header("location")), (301, location), "{path}");
    }
}

#[test]
fn sets_lead_to_their_records() {
    let (mirrored, _) = with_months(2, 1_200);
    let page = mirrored.get("/x/sets/");
    let sets = ["a", "a%3Ab", "a%3Ab%3Am0", "a%3Ab%3Am1", "even", "uneven"];
    assert_eq!(links(&page), sets.map(|set| format!("/x/sets/{set}/")));
    for text in [
        "<bdi>Even numbers</bdi></a> <bdi class=\"identifier\">even</bdi> <span class=\"count\">2 records</span>",
        "<bdi>a:b</bdi></a> <span class=\"count\">2,400 records</span>",
        "<bdi>a:b:m1</bdi></a> <span class=\"count\">1,200 records</span>",
    ] {
        is_html(&page, 200, text);
    }
    let in_set = |set: &str| {
        let (mut queue, mut seen) = (vec![format!("/x/sets/{set}/")], BTreeSet::new());
        while let Some(path) = queue.pop() {
            let page = mirrored.get(&path);
            assert_eq!(page.status, 200, "{path}: {}", page.text());
            let links = links(&page).into_iter().filter(|link| seen.insert(link.clone()));
            queue.extend(links.filter(|link| link.starts_with("/x/sets/")));
        }
        seen.into_iter().filter(|path| is_record(path)).count()
    };
    assert_eq!(sets.map(in_set), [2_400, 2_400, 1_200, 1_200, 2, 1]);
    is_html(&mirrored.get("/x/sets/even/"), 200, "<h1>Records of the set Even numbers</h1>");
    is_html(&mirrored.get("/x/sets/a:b/2099-01/"), 200, "<h1>Records of the set a:b, January 2099</h1>");
    is_html(&mirrored.get(LISTS), 200, "<a href=\"/x/sets/\">Records by set</a>");
    is_html(&mirrored.get("/x/sets/?after=a%3Ab%3Am1"), 200, "Uneven numbers");
    assert_eq!(links(&mirrored.get("/x/sets/?after=a%3Ab%3Am1")).len(), 2);
    for path in ["/x/sets/unknown/", "/x/sets/a/2099-04/", "/x/sets/unknown/2099-01/", "/x/sets/a/b"] {
        is_html(&mirrored.get(path), 404, "<h1>No such list</h1>");
    }
}

#[test]
fn identifiers_of_any_kind_are_linked() {
    let long = format!("oai:{}", "x/é".repeat(665)) + "1";
    let identifiers =
        ["a/b", "a//b/", "a b", "50%", "%2F", "c#d", "e?f=g", "h&i", "ü漢", "j.xml", "<p>\"'", "../k", &long];
    let mut collection = Collection::of(0);
    for identifier in identifiers {
        // The provider writes identifiers and titles as they are.
        let written = identifier.replace('&', "&amp;").replace('<', "&lt;");
        let title = format!("Title of {written}");
        let entry = Entry { datestamp_secs: 1_577_836_800, deleted: false, title, set: "even" };
        collection.entries.insert(written, entry);
    }
    let mirrored = Mirrored::of(collection);
    let crawl = Crawl::from(&mirrored.proxy, LISTS);
    assert_eq!(crawl.records().len(), identifiers.len());
    let escaped = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('"', "&quot;")
    };
    for identifier in identifiers {
        let title = format!("Title of {}", escaped(identifier));
        let title = title.chars().take(150).collect::<String>();
        let found = crawl.pages.values().any(|(depth, page)| *depth == 2 && page.text().contains(&title));
        assert!(found, "{identifier}");
    }
}

#[test]
fn records_without_title_are_linked_by_identifier() {
    let mut collection = Collection::of(2);
    collection.entries.get_mut(&identifier(1)).expect("it exists").title = String::new();
    let mirrored = Mirrored::of(collection);
    let crawl = Crawl::from(&mirrored.proxy, LISTS);
    let month = crawl.lists().into_iter().next_back().expect("a month").to_owned();
    is_html(&mirrored.get(&month), 200, "<bdi>oai:c:00001</bdi></a>");
    is_html(&mirrored.get(&month), 200, ">Title 0</a>");
}

#[test]
fn lists_have_the_headers_of_pages() {
    let mirrored = Mirrored::of(Collection::of(5));
    let month = links(&mirrored.get(LISTS)).into_iter().find(|link| link.contains('-')).expect("a month");
    let mut tags = BTreeSet::new();
    for path in [LISTS, &month, &format!("{month}0-999"), "/x/sets/", "/x/sets/even/"] {
        let first = mirrored.get(path);
        let tag = first.header("etag").to_owned();
        assert!(tags.insert(tag.clone()), "{path} has the tag of another page");
        assert_eq!(first.header("cache-control"), "public, max-age=300", "{path}");
        assert!(first.header("content-security-policy").contains("default-src 'none'"), "{path}");
        assert!(first.header("last-modified").ends_with(" GMT"), "{path}");
        let request =
            |head: &str| format!("{head} {path} HTTP/1.1\r\nHost: x\r\nIf-None-Match: {tag}\r\n\r\n");
        let mut harvester = Harvester::ask(mirrored.proxy.address(), &request("GET"));
        assert_eq!(harvester.head().status, 304, "{path}");
        harvester.again(&format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!(harvester.head().header("content-length"), first.body.len().to_string(), "{path}");
        let compressed = mirrored.get_with(path, "Accept-Encoding: gzip\r\n");
        assert_eq!(compressed.header("content-encoding"), "gzip", "{path}");
        assert_eq!(post(mirrored.proxy.address(), path, "").header("allow"), "GET, HEAD", "{path}");
    }
    let before = mirrored.get(LISTS).header("etag").to_owned();
    mirrored.harvest_again();
    assert_eq!(mirrored.get(LISTS).header("etag"), before, "a harvest without changes changes no page");
    change(&mirrored.collection, |collection| {
        collection.now_secs += 86_400;
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
        (entry.datestamp_secs, entry.title) = (now_secs, "Changed".to_owned());
    });
    mirrored.harvest_again();
    assert_ne!(mirrored.get(LISTS).header("etag"), before);
}

#[test]
fn lists_that_cannot_be_shown_say_why() {
    let paths = [LISTS, "/x/records/2099-01/", "/x/sets/", "/x/sets/even/"];
    let mut collection = Collection::of(25);
    collection.fails_at = Some("verb=List".to_owned());
    let mirrored = Mirrored::of(collection);
    for path in paths {
        let got = mirrored.get(path);
        is_html(&got, 503, "<h1>Not harvested yet</h1>");
        assert_eq!((got.header("retry-after"), got.header("cache-control")), ("300", "no-store"), "{path}");
    }
    let off = Mirrored::with(Collection::of(5), |mapping| mapping.records = RecordPages::Off, |_| {});
    for path in paths {
        is_html(&off.get(path), 404, "<h1>No record pages</h1>");
    }
    let link = Mirrored::with(Collection::of(5), |mapping| mapping.records = RecordPages::Link, |_| {});
    is_html(&link.get(LISTS), 200, "5 records");
    let empty = Mirrored::of(Collection::of(0));
    is_html(&empty.get(LISTS), 200, "This list has no records now.");
    let Mirrored { source, proxy, .. } = Mirrored::of(Collection::of(5));
    is_html(&proxy.get("/y/records/"), 404, "<h1>No such repository</h1>");
    let proxy = proxy.restarted(|_| {});
    for path in paths {
        is_html(&proxy.get(path), 410, "<h1>Repository removed</h1>");
    }
    let proxy = proxy.restarted(|config: &mut Config| {
        config.repositories.add_fixed(Mapping { mirror: None, ..mapping(&source) });
    });
    is_html(&proxy.get(LISTS), 410, "<h1>Repository removed</h1>");
}

#[test]
fn lists_count_in_the_metrics() {
    let mirrored = Mirrored::of(Collection::of(5));
    for path in [LISTS, "/x/sets/", "/x/records/1970-01/", "/x/record/1"] {
        mirrored.get(path);
    }
    let metrics = fetch(mirrored.proxy.admin(), "/-/metrics").text();
    for (outcome, count) in [("complete", 2), ("refused", 1)] {
        let line = format!(
            "oaimend_requests_total{{outcome=\"{outcome}\",repository=\"x\",verb=\"list-page\"}} {count}"
        );
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
}

#[test]
fn set_that_headers_do_not_name_is_no_empty_list() {
    let mirrored = Mirrored::of(Collection { names_set: |_| false, ..Collection::of(3) });
    is_html(&mirrored.get("/x/sets/even/"), 503, "<h1>The records of this set are not known</h1>");
    assert!(links(&mirrored.get("/x/sets/")).is_empty());
    let list = mirrored.get("/_mirror/x?verb=ListRecords&metadataPrefix=oai_dc&set=even");
    assert_eq!((list.status, list.header("retry-after").is_empty()), (503, false));
    assert!(list.text().contains("set_membership"), "{}", list.text());
}
