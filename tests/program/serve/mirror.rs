//! The mirror of a running server: harvests at their times, `/_mirror/ID`, and `/_all`.

use std::sync::Arc;
use std::time::Duration;

use oaimend::config::{Config, Mapping, ServeFrom, Views};
use oaimend_base::clock::Clock;
use oaimend_check::{CheckOptions, Verdict};
use oaimend_mirror::settings::MirrorSettings;
use oaimend_store::Collisions;
use oaimend_upstream::settings::Limits;

use crate::fixtures::collection::{Collection, DAY_SECS, identifier};
use crate::fixtures::lists::{texts_in, token_in};
use crate::fixtures::mirror::runtime;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::Source;
use crate::fixtures::source::fetch_with;
use crate::fixtures::time::Skipping;

/// The identifiers of a whole list, and its last page.
fn read_list(proxy: &Proxy, base: &str, query: &str) -> Vec<String> {
    let mut identifiers = Vec::new();
    let mut got = proxy.get(&format!("{base}?{query}"));
    loop {
        assert_eq!(got.status, 200, "{}", got.text());
        let text = got.text();
        identifiers.extend(texts_in(&text, "identifier"));
        let verb = query.split('&').next().unwrap_or_default();
        match token_in(&text) {
            Some(token) => got = proxy.get(&format!("{base}?{verb}&resumptionToken={token}")),
            None => return identifiers,
        }
    }
}

#[test]
fn harvests_state_their_properties_and_forwarded_requests_do_not() {
    let (source, _) = Collection::of(250).start();
    let proxy = Proxy::tuned(&source, |mapping| mapping.mirror = Some(MirrorSettings::default()));
    proxy.wait_for_harvests("x", 1);
    let headers = |source: &Source| -> Vec<Option<String>> {
        let requests = source.requests();
        requests.iter().map(|received| received.headers.get("oaimend-harvester").cloned()).collect()
    };
    let of_harvest = headers(&source);
    let expected = Some("total-elements, from-first-response-date".to_owned());
    assert!(of_harvest.iter().all(|header| *header == expected), "{of_harvest:?}");
    let list = "?verb=ListIdentifiers&metadataPrefix=oai_dc";
    for (base, has_total) in [("/_mirror/x", true), ("/x", false)] {
        let of_mirror = "Oaimend-Harvester: later, total-elements\r\n";
        let got = fetch_with(proxy.address(), &format!("{base}{list}"), of_mirror);
        assert_eq!(got.text().contains(" totalElements=\"250\""), has_total, "{base}");
        let got = fetch_with(proxy.address(), &format!("{base}{list}"), "");
        assert!(!got.text().contains("totalElements"), "{base}");
    }
    let forwarded = headers(&source).split_off(of_harvest.len());
    assert!(!forwarded.is_empty() && forwarded.iter().all(Option::is_none), "{forwarded:?}");
}

#[test]
fn mirror_answers_while_the_source_is_down() {
    let (source, collection) = Collection::of(250).start();
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.mirror = Some(MirrorSettings::default());
        mapping.serve = ServeFrom::Mirror;
    });
    let expected: Vec<String> = (0..250).map(identifier).collect();
    proxy.wait_for_harvests("x", 1);
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
fn changes_of_the_source_reach_the_mirror_after_a_fixed_interval() {
    let interval = Some(Duration::from_secs(3_600));
    check_next_harvest(MirrorSettings { interval, ..MirrorSettings::default() }, Duration::from_secs(7_200));
}

#[test]
fn changes_of_the_source_reach_the_mirror_after_the_interval_of_the_schedule() {
    // The source does not change, and gets the longest interval.
    check_next_harvest(MirrorSettings::default(), Duration::from_secs(604_800 + 60));
}

fn check_next_harvest(settings: MirrorSettings, wait: Duration) {
    let (source, collection) = Collection::of(5).start();
    let proxy = Proxy::tuned(&source, |mapping| mapping.mirror = Some(settings));
    proxy.wait_for_harvests("x", 1);
    let path = "/_mirror/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:c:00002";
    assert!(proxy.get(path).text().contains("Title 2"));
    {
        let mut collection = collection.lock().expect("no test panics while it holds this");
        let now_secs = collection.now_secs + DAY_SECS;
        let entry = collection.entries.get_mut(&identifier(2)).expect("it exists");
        (entry.datestamp_secs, entry.title) = (now_secs, "Changed".to_owned());
        collection.now_secs = now_secs;
    }
    // The pause advances the clock of the schedule.
    drop(proxy.clock.pause(wait));
    proxy.clock.lapse();
    proxy.wait_for_harvests("x", 2);
    assert!(proxy.get(path).text().contains("Changed"));
}

/// The mapping of a mirrored repository.
fn mirrored(id: &str, source: &Source) -> Mapping {
    let mapping = Mapping::new(id, &source.base_url(), &Limits::default()).expect("a legal mapping");
    Mapping { mirror: Some(MirrorSettings::default()), ..mapping }
}

/// A proxy with the mirrored repositories `x` of 30 records and `y` of 40, after their first harvests.
fn two_mirrors(tune: impl FnOnce(&mut Config)) -> (Proxy, [Source; 2]) {
    let (x, _collection) = Collection::of(30).start();
    let (y, _collection) = Collection::of(40).start();
    let proxy = Proxy::with(|config| {
        config.repositories.add_fixed(mirrored("x", &x));
        config.repositories.add_fixed(mirrored("y", &y));
        tune(config);
    });
    for id in ["x", "y"] {
        proxy.wait_for_harvests(id, 1);
    }
    (proxy, [x, y])
}

/// The findings of `oaimend check` at this URL.
fn findings(base_url: &str) -> Vec<String> {
    let mapping = Mapping::new("x", base_url, &Limits::default()).expect("a legal base URL");
    let clock = Skipping::new() as Arc<dyn Clock>;
    let options = CheckOptions { time_max: Duration::MAX, schemas: None, with_searches: false };
    let report = runtime()
        .block_on(oaimend_check::run(&mapping.source, &options, clock, &mut |_| {}))
        .expect("a client can be made");
    let report = report.for_profile(None);
    assert!(report.count(Verdict::Holds) > 40, "{}", report.count(Verdict::Holds));
    let found = report.findings.iter().filter(|finding| finding.verdict >= Verdict::Warning);
    found
        .map(|finding| format!("{}: {}: {}", finding.rule.entry().name, finding.request, finding.received))
        .collect()
}

#[test]
fn checker_finds_nothing_in_the_views() {
    let (proxy, _sources) = two_mirrors(|_| {});
    for path in ["_mirror/x", "_all"] {
        let found = findings(&format!("http://{}/{path}", proxy.address()));
        // The two repositories have the same identifiers, and by default `/_all` lists both records.
        let (repeated, others): (Vec<String>, Vec<String>) =
            found.into_iter().partition(|finding| finding.starts_with("unique-items: "));
        assert_eq!((repeated.len(), others), (usize::from(path == "_all"), Vec::new()), "{path}");
    }
}

#[test]
fn view_is_a_repository_of_the_chosen_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "repository_name = \"Even ones\"\nsets = [\"x:even\"]\n";
    std::fs::write(folder.path().join("even.toml"), text).expect("writable");
    let (proxy, _sources) = two_mirrors(|config| {
        config.views = Views::new(folder.path().to_owned());
        assert_eq!(config.views.reload(&config.repositories.all()), []);
    });
    let query = "verb=ListIdentifiers&metadataPrefix=oai_dc";
    let mut found = read_list(&proxy, "/_view/even", query);
    found.sort();
    assert_eq!(found, (0..30).step_by(2).map(identifier).collect::<Vec<_>>());
    let identify = proxy.get("/_view/even?verb=Identify").text();
    assert!(identify.contains("<repositoryName>Even ones</repositoryName>"), "{identify}");
    assert!(identify.contains("/_view/even</baseURL>"), "{identify}");
    assert_eq!(proxy.get("/_view/odd?verb=Identify").status, 404);
    assert_eq!(findings(&format!("http://{}/_view/even", proxy.address())), [""; 0]);
    let page = fetch_with(proxy.address(), "/_view/even", "Accept: text/html\r\n").text();
    let feed = format!("href=\"http://{}/_view/even.atom\">", proxy.address());
    for part in ["<h1><bdi>Even ones</bdi></h1>", "\"/x/record/oai%3Ac%3A00028\"", &feed] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("oai%3Ac%3A00029"), "{page}");
    let feed = proxy.get("/_view/even.atom");
    assert_eq!((feed.status, feed.header("content-type")), (200, "application/atom+xml; charset=UTF-8"));
    assert_eq!(feed.text().matches("<entry>").count(), 15, "{}", feed.text());
    let tag = format!("If-None-Match: {}\r\n", feed.header("etag"));
    assert_eq!(fetch_with(proxy.address(), "/_view/even.atom", &tag).status, 304);
    assert_eq!(proxy.get("/_view/odd.atom").status, 404);
    assert!(proxy.get("/_view/even").text().contains("badVerb"));
}

#[test]
fn records_of_a_view_have_the_pages_of_their_repository() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("even.toml"), "sets = [\"x:even\"]\n").expect("writable");
    let (source, collection) = Collection::of(6).start();
    let proxy = Proxy::with(|config| {
        config.repositories.add_fixed(mirrored("x", &source));
        config.views = Views::new(folder.path().to_owned());
        assert_eq!(config.views.reload(&config.repositories.all()), []);
    });
    proxy.wait_for_harvests("x", 1);
    let path = |base: &str, number: usize, rest: &str| format!("{base}/record/oai%3Ac%3A0000{number}{rest}");
    let rests =
        ["", ".xml", ".json", ".bib", ".ris", ".csl.json", ".linkset", "?raw=oai_dc", "?format=oai_dc"];
    for rest in rests {
        let [in_view, of_repository] = ["/_view/even", "/x"]
            .map(|base| fetch_with(proxy.address(), &path(base, 2, rest), "Accept: text/html\r\n"));
        assert_eq!((in_view.status, in_view.text()), (200, of_repository.text()), "{rest}");
        assert_eq!(in_view.header("etag"), of_repository.header("etag"), "{rest}");
    }
    let page =
        |number| fetch_with(proxy.address(), &path("/_view/even", number, ""), "Accept: text/html\r\n");
    let canonical =
        format!("<link rel=\"canonical\" href=\"http://{}{}\"", proxy.address(), path("/x", 2, ""));
    assert!(page(2).text().contains(&canonical), "{}", page(2).text());
    let never = page(3);
    assert!(never.status == 404 && never.text().contains("<h1>Not in this view</h1>"), "{}", never.text());
    for (base, rest) in [("/_view/even", "?format=marc"), ("/_view/odd", ""), ("/_view/even", "4")] {
        assert_eq!(proxy.get(&path(base, 2, rest)).status, 404, "{base} {rest}");
    }
    {
        let mut collection = collection.lock().expect("no test panics while it holds this");
        let now_secs = collection.now_secs + DAY_SECS;
        let entry = collection.entries.get_mut(&identifier(2)).expect("it exists");
        (entry.datestamp_secs, entry.deleted) = (now_secs, true);
        collection.now_secs = now_secs;
    }
    drop(proxy.clock.pause(Duration::from_secs(604_800 + 60)));
    proxy.clock.lapse();
    proxy.wait_for_harvests("x", 2);
    let left = page(2);
    assert!(left.status == 410 && left.text().contains("<h1>No longer in this view</h1>"), "{}", left.text());
    assert_eq!(page(4).status, 200);
}

#[test]
fn all_mirrored_repositories_are_one_with_a_set_each() {
    let (proxy, _sources) = two_mirrors(|_| {});
    for (set, count) in [
        ("", 70),
        ("&set=x", 30),
        ("&set=y", 40),
        ("&set=x:even", 15),
        ("&set=y/even", 20),
        ("&set=y:odd", 0),
    ] {
        let query = format!("verb=ListIdentifiers&metadataPrefix=oai_dc{set}");
        assert_eq!(read_list(&proxy, "/_all", &query).len(), count, "{set}");
    }
    let identify = proxy.get("/_all?verb=Identify").text();
    let url = format!("http://{}", proxy.address());
    for expected in [
        format!("<repositoryName>oaimend at {url}</repositoryName>"),
        format!("<baseURL>{url}/_all</baseURL>"),
        "<adminEmail>a@source.example</adminEmail>".to_owned(),
    ] {
        assert!(identify.contains(&expected), "{expected}: {identify}");
    }
    let sets = proxy.get("/_all?verb=ListSets").text();
    assert!(sets.contains("<setSpec>y</setSpec><setName>A collection</setName>"), "{sets}");
    let query = "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:c:00035";
    let record = proxy.get(&format!("/_all/?{query}")).text();
    assert!(record.contains("Title 35") && record.contains("<originDescription"), "{record}");
    let wrong = proxy.get("/_all?verb=Nonsense").text();
    assert!(wrong.contains("code=\"badVerb\""), "{wrong}");
}

#[test]
fn identify_of_all_repositories_has_the_configured_name_and_addresses() {
    let (proxy, _sources) = two_mirrors(|config| {
        config.mirror.aggregate_name = Some("Dunes & cliffs".to_owned());
        config.mirror.aggregate_emails = vec!["oai@example.org".to_owned()];
    });
    let identify = proxy.get("/_all?verb=Identify").text();
    assert!(identify.contains("<repositoryName>Dunes &amp; cliffs</repositoryName>"), "{identify}");
    assert!(identify.contains("<adminEmail>oai@example.org</adminEmail>"), "{identify}");
    assert!(!identify.contains("a@source.example"), "{identify}");
}

#[test]
fn preferred_repository_hides_the_records_of_another_one() {
    let (proxy, _sources) = two_mirrors(|config| {
        config.mirror.collisions = Collisions::Prefer;
        for (id, priority) in [("x", 7), ("y", 3)] {
            let mapping = config.repositories.find(id).expect("it is mapped");
            let mirror = mapping.mirror.clone().map(|mirror| MirrorSettings { priority, ..mirror });
            config.repositories.add_fixed(Mapping { mirror, ..Mapping::clone(&mapping) });
        }
    });
    let list = proxy.get("/_all?verb=ListIdentifiers&metadataPrefix=oai_dc").text();
    for (text, count) in [("<header>", 40), ("<setSpec>x</setSpec>", 30), ("<setSpec>y</setSpec>", 10)] {
        assert_eq!(list.matches(text).count(), count, "{text}");
    }
    let found = findings(&format!("http://{}/_all", proxy.address()));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn incremental_harvester_of_all_repositories_learns_of_a_removed_mapping() {
    let (proxy, [x, _y]) = two_mirrors(|_| {});
    let list = "/_all?verb=ListIdentifiers&metadataPrefix=oai_dc";
    let first = proxy.get(list).text();
    let from = texts_in(&first, "responseDate").pop().expect("each response has one");
    let proxy = proxy.restarted(|config| config.repositories.add_fixed(mirrored("x", &x)));
    let next = proxy.get(&format!("{list}&from={from}")).text();
    let deleted = next.split("<header ").filter(|header| header.starts_with("status=\"deleted\""));
    assert_eq!(deleted.filter(|header| header.contains("<setSpec>y</setSpec>")).count(), 40, "{next}");
    // Both repositories have the same identifiers, and the list contains both records (`keep-both`).
    let found = findings(&format!("http://{}/_all", proxy.address()));
    let others: Vec<_> = found.iter().filter(|finding| !finding.starts_with("unique-items: ")).collect();
    assert_eq!(others, Vec::<&String>::new());
}

#[test]
fn repositories_are_not_served_as_one_unless_some_are_mirrored() {
    let (source, _collection) = Collection::of(3).start();
    assert_eq!(Proxy::of(&source).get("/_all?verb=Identify").status, 404);
    let disabled = Proxy::with(|config| {
        config.repositories.add_fixed(mirrored("x", &source));
        config.mirror.aggregate = false;
    });
    assert_eq!(disabled.get("/_all?verb=Identify").status, 404);
}

#[test]
fn tokens_of_the_mirror_have_the_number_of_all_records_if_configured() {
    let (source, _collection) = Collection::of(150).start();
    for (total_elements, count) in [(true, 1), (false, 0)] {
        let proxy = Proxy::with(|config| {
            config.repositories.add_fixed(mirrored("x", &source));
            config.mirror.total_elements = total_elements;
        });
        proxy.wait_for_harvests("x", 1);
        let list = "/_mirror/x?verb=ListIdentifiers&metadataPrefix=oai_dc";
        let page = proxy.get(list).text();
        assert!(token_in(&page).is_some(), "{page}");
        assert_eq!(page.matches(" totalElements=\"150\"").count(), count, "{page}");
    }
}
