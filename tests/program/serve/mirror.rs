//! The mirror of a running server: harvests at their times, and `/_mirror/ID`.

use std::time::Duration;

use oaimend::clock::Clock as _;
use oaimend::config::{MirrorSettings, ServeFrom};

use crate::fixtures::collection::{Collection, DAY_SECS, identifier};
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::Got;

/// Requests a page until its response is accepted. The mirror answers 503 before its first harvest.
fn wait_for(proxy: &Proxy, path: &str, is_expected: impl Fn(&str) -> bool) -> Got {
    loop {
        let got = proxy.get(path);
        if got.status == 200 && is_expected(&got.text()) {
            return got;
        }
        assert!([200, 503].contains(&got.status), "{}", got.text());
        std::thread::yield_now();
    }
}

/// The identifiers of a whole list, and its last page.
fn read_list(proxy: &Proxy, base: &str, query: &str) -> Vec<String> {
    let mut identifiers = Vec::new();
    let mut got = wait_for(proxy, &format!("{base}?{query}"), |_| true);
    loop {
        let text = got.text();
        let found = text.split("<identifier>").skip(1).filter_map(|rest| rest.split('<').next());
        identifiers.extend(found.map(str::to_owned));
        let verb = query.split('&').next().unwrap_or_default();
        match token_of(&text) {
            Some(token) => got = proxy.get(&format!("{base}?{verb}&resumptionToken={token}")),
            None => return identifiers,
        }
        assert_eq!(got.status, 200, "{}", got.text());
    }
}

fn token_of(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<resumptionToken")?;
    let (tag, rest) = rest.split_once('>')?;
    let token = rest.split('<').next().filter(|token| !tag.ends_with('/') && !token.is_empty());
    token.map(str::to_owned)
}

#[test]
fn mirror_answers_while_the_source_is_down() {
    let (source, collection) = Collection::of(250).start();
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.mirror = Some(MirrorSettings::default());
        mapping.serve = ServeFrom::Mirror;
    });
    let expected: Vec<String> = (0..250).map(identifier).collect();
    let query = "verb=ListIdentifiers&metadataPrefix=oai_dc";
    let first = read_list(&proxy, "/x", query);
    collection.lock().expect("no test panics while it holds this").fails_at = Some("verb".to_owned());
    for base in ["/x", "/_mirror/x"] {
        let mut found = read_list(&proxy, base, query);
        found.sort();
        assert_eq!(found, expected, "{base}");
    }
    assert_eq!(first.len(), 250);
    let identify = proxy.get("/_mirror/x?verb=Identify").text();
    assert!(identify.contains("/_mirror/x</baseURL>"), "{identify}");
    assert!(identify.contains("<deletedRecord>persistent</deletedRecord>"), "{identify}");
}

#[test]
fn repository_without_a_mirror_has_no_mirror_url() {
    let (source, _collection) = Collection::of(3).start();
    let proxy = Proxy::of(&source);
    assert_eq!(proxy.get("/_mirror/x?verb=Identify").status, 404);
    assert_eq!(proxy.get("/x?verb=Identify").status, 200);
}

#[test]
fn changes_of_the_source_reach_the_mirror_with_the_next_harvest() {
    let (source, collection) = Collection::of(5).start();
    let interval = Duration::from_secs(3_600);
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.mirror = Some(MirrorSettings { interval, ..MirrorSettings::default() });
    });
    let path = "/_mirror/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:c:00002";
    wait_for(&proxy, path, |text| text.contains("Title 2"));
    {
        let mut collection = collection.lock().expect("no test panics while it holds this");
        let now_secs = collection.now_secs + DAY_SECS;
        let entry = collection.entries.get_mut(&identifier(2)).expect("it exists");
        (entry.datestamp_secs, entry.title) = (now_secs, "Changed".to_owned());
        collection.now_secs = now_secs;
    }
    // The pause advances the clock of the schedule.
    drop(proxy.clock.pause(2 * interval));
    wait_for(&proxy, path, |text| text.contains("Changed"));
}
