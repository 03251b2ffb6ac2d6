//! The feeds of sets, and the hub that pushes feeds to their subscribers (WebSub).

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::json;
use url::{Url, form_urlencoded};

use super::gateway::Mirrored;
use super::search_page::read_feed;
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::source::{Reply, Source};

const FEED: &str = "/x/sets/even/recent.atom";

/// The URLs of the entries of a feed.
fn entries(feed: &str) -> Vec<String> {
    let ids =
        feed.split("<entry>").skip(1).filter_map(|entry| entry.split("<id>").nth(1)?.split("</id>").next());
    ids.map(str::to_owned).collect()
}

/// Changes a record at the source, and waits for its harvest.
fn change_record(mirrored: &Mirrored, number: usize, deleted: bool) {
    change(&mirrored.collection, |collection| {
        collection.now_secs += 86_400;
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
        (entry.datestamp_secs, entry.deleted) = (now_secs, deleted);
        entry.title.push('!');
    });
    mirrored.harvest_again();
}

#[test]
fn a_set_has_a_feed_of_its_newest_records() {
    let mirrored = Mirrored::with(Collection::of(60), |_| {}, |config| config.search.enabled = false);
    let base = format!("http://{}", mirrored.proxy.address());
    let url = |number: usize| format!("{base}/x/record/{}", identifier(number).replace(':', "%3A"));
    let got = mirrored.get(FEED);
    assert_eq!((got.status, got.header("content-type")), (200, "application/atom+xml; charset=UTF-8"));
    let newest: Vec<String> = (0..60).rev().step_by(2).map(|number| url(number - 1)).take(20).collect();
    assert_eq!(entries(&got.text()), newest);
    let known = format!("If-None-Match: {}\r\n", got.header("etag"));
    assert_eq!(mirrored.get_with(FEED, &known).status, 304);
    // A changed record is the newest one, and a deleted one is not in the feed.
    change_record(&mirrored, 4, false);
    change_record(&mirrored, 56, true);
    let found = entries(&mirrored.get(FEED).text());
    assert_eq!((&found[..3], found.len()), (&[url(4), url(58), url(54)][..], 20));
    let page = mirrored.get("/x/sets/even/");
    let link = format!("<{base}{FEED}>; rel=\"alternate\"; type=\"application/atom+xml\"");
    assert_eq!(page.header("link"), link);
    assert!(page.text().contains(&format!("<a href=\"{FEED}\">")), "{}", page.text());
    assert!(!mirrored.get("/x/records/").text().contains("recent.atom"));
    for (path, status) in [
        ("/x/sets/none/recent.atom", 404),
        ("/y/sets/even/recent.atom", 404),
        ("/x/records/recent.atom", 404),
        ("/x/sets/recent.atom", 301),
    ] {
        assert_eq!(mirrored.get(path).status, status, "{path}");
    }
    // Without `scripts/feeds install`, the test in `search_page` says so.
    if let Some(feed) = read_feed(&mirrored, FEED) {
        assert_eq!((&feed["fault"], &feed["title"]), (&json!(null), &json!("Even numbers – A collection")));
        assert_eq!(feed["links"]["self"], json!(format!("{base}{FEED}")));
        assert_eq!(feed["links"]["alternate"], json!(format!("{base}/x/sets/even/")));
        assert_eq!(feed["entries"][0]["id"], json!(url(4)), "{feed}");
    }
}

#[test]
fn the_hub_hears_of_changed_feeds() {
    let (sender, forms) = channel();
    // The first request fails.
    let hub = Source::start(move |number, received| {
        // The test may have ended; ignore.
        let _ = sender.send((received.method.clone(), received.form.clone()));
        Reply::new(if number == 0 { 503 } else { 204 }, "")
    });
    let url = Url::parse(&hub.base_url()).expect("a URL");
    let mirrored = Mirrored::with(
        Collection::of(5),
        |_| {},
        |config| {
            config.search.commit_interval = Duration::from_millis(10);
            config.gateway.hub = Some(url.clone());
        },
    );
    mirrored.proxy.wait_for_results("/_search.json?q=title", 5);
    change_record(&mirrored, 3, false);
    let base = format!("http://{}", mirrored.proxy.address());
    let feed = |arguments: &str| format!("{base}/_recent.atom{arguments}");
    for expected in [feed(""), feed(""), feed("?repository=x")] {
        let (method, form) = forms.recv_timeout(Duration::from_secs(60)).expect("a request to the hub");
        let form: HashMap<_, _> = form_urlencoded::parse(form.as_bytes()).into_owned().collect();
        let keys = ["hub.mode", "hub.topic", "hub.url"].map(|key| form[key].as_str());
        assert_eq!((method.as_str(), keys), ("POST", ["publish", &expected, &expected]));
    }
    // The wait after the failure.
    assert!(mirrored.proxy.clock.pauses().contains(&Duration::from_millis(3_750)));
    for path in ["/_recent.atom", "/_recent.atom?repository=x"] {
        let got = mirrored.get(path);
        let links = format!("<{url}>; rel=\"hub\", <{base}{path}>; rel=\"self\"");
        assert_eq!(got.header("link"), links);
        assert!(got.text().contains(&format!("<link rel=\"hub\" href=\"{url}\"/>")), "{}", got.text());
    }
    // The hub does not hear of changes of these feeds, so their subscribers would wait for ever.
    for path in ["/_recent.atom?page=2", "/_search.atom?q=title", FEED] {
        let got = mirrored.get(path);
        assert_eq!((got.status, got.header("link")), (200, ""), "{path}");
        assert!(!got.text().contains("rel=\"hub\""), "{path}");
    }
}
