//! Sets with illegal setSpecs: harvesters see escaped names, and the source receives its own names.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{ReceivedRequest, Reply, Source, fetch, page_of, record};
use oaimend::config::{Config, Mapping};
use oaimend_test_support::strict;
use oaimend_upstream::settings::Limits;

/// `ListSets` with sets of these names, as written in the XML.
fn list_sets(names: &[&str]) -> String {
    let whole = page_of(0);
    let sets: String = names
        .iter()
        .map(|name| format!("<set><setSpec>{name}</setSpec><setName>A set</setName></set>\n"))
        .collect();
    whole
        .replace(" metadataPrefix=\"oai_dc\"", "")
        .replace("</ListRecords>", &format!("{sets}</ListRecords>"))
        .replace("ListRecords", "ListSets")
}

/// A page of records in these sets.
fn records_in(sets: &[&str], token: &str) -> String {
    let sets: String = sets.iter().map(|set| format!("<setSpec>{set}</setSpec>")).collect();
    let token = match token {
        "" => String::new(),
        token => format!("<resumptionToken>{token}</resumptionToken>"),
    };
    let records = [0, 1].map(record).concat().replace("</header>", &format!("{sets}</header>"));
    page_of(0).replace("</ListRecords>", &format!("{records}{token}</ListRecords>"))
}

fn is_sets(received: &ReceivedRequest) -> bool {
    received.target.contains("verb=ListSets")
}

/// The set in the last request to the source.
fn requested_set(source: &Source) -> Option<String> {
    let received = source.requests().pop()?;
    let (_, behind) = received.target.split_once("set=")?;
    behind.split('&').next().map(str::to_owned)
}

const OF_SET: &str = "/x?verb=ListRecords&metadataPrefix=oai_dc&set=maps~x2B.plans";

#[test]
fn listed_set_can_be_requested() {
    let source =
        Source::start(|_, received| match (is_sets(received), received.target.contains("resumptionToken")) {
            (true, _) => Reply::xml(list_sets(&["letters", "maps+plans"])),
            (false, false) => Reply::xml(records_in(&["maps+plans", "letters"], "t")),
            (false, true) => Reply::xml(records_in(&["maps+plans"], "")),
        });
    let proxy = Proxy::of(&source);
    let sets = proxy.get("/x?verb=ListSets");
    assert!(sets.text().contains("<setSpec>letters</setSpec>"), "{}", sets.text());
    assert!(sets.text().contains("<setSpec>maps~x2B.plans</setSpec>"), "{}", sets.text());
    assert!(strict::read(&sets.body).is_ok(), "{}", sets.text());

    let got = proxy.get(OF_SET);
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!(requested_set(&source).as_deref(), Some("maps%2Bplans"), "encoded once");
    assert!(got.text().contains("set=\"maps~x2B.plans\""), "the request says what was asked: {}", got.text());
    assert_eq!(got.text().matches("<setSpec>maps~x2B.plans</setSpec>").count(), 2, "{}", got.text());
    assert!(strict::read(&got.body).is_ok(), "{}", got.text());
    assert!(proxy.admin_json("/-/repositories/x/quarantine").to_string().contains("\"records\":[]"));

    let next = proxy.get("/x?verb=ListRecords&resumptionToken=t");
    assert_eq!((next.status, next.whole), (200, true), "{}", next.text());
    assert!(proxy.admin_json("/-/repositories/x")["set_collisions"].as_array().is_some_and(Vec::is_empty));
}

#[test]
fn restarted_list_requests_the_same_set() {
    let source = Source::start(|number, received| {
        match (number, received.target.contains("resumptionToken")) {
            (0, _) => Reply::xml(records_in(&["maps+plans"], "t")),
            (_, true) => Reply::xml(
                "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-02T03:04:05Z</responseDate>\
             <request>http://source.example/oai</request><error code=\"badResumptionToken\">gone</error></OAI-PMH>",
            ),
            (_, false) => Reply::xml(records_in(&["maps+plans"], "")),
        }
    });
    let proxy = Proxy::of(&source);
    assert_eq!(proxy.get(OF_SET).status, 200);
    let next = proxy.get("/x?verb=ListRecords&resumptionToken=t");
    assert_eq!(next.status, 200, "{}", next.text());
    assert_eq!(requested_set(&source).as_deref(), Some("maps%2Bplans"));
}

#[test]
fn escaped_set_is_decoded_without_a_profile() {
    let source = Source::start(|_, _| Reply::xml(records_in(&[], "")));
    let proxy = Proxy::of(&source);
    for (received, expected) in [
        ("maps~x2B.plans", "maps%2Bplans"),
        ("maps~x20.~x26.~x20.plans", "maps%20%26%20plans"),
        ("~x3A.a~x3A.", "%3Aa%3A"),
        ("M~xC3.~xBA.sica", "M%C3%BAsica"),
        ("a~x7E.x2B.b~x2B.c", "a~x2B.b%2Bc"),
        ("maps", "maps"),
        ("maps~x41.plans", "maps~x41.plans"),
        ("maps~x2b.plans", "maps~x2b.plans"),
    ] {
        assert_eq!(proxy.get(&format!("{LIST}&set={received}")).status, 200, "{received}");
        assert_eq!(requested_set(&source).as_deref(), Some(expected), "{received}");
    }
    let raw = proxy.get(&format!("{LIST}&set=maps%2Bplans"));
    assert_eq!(
        requested_set(&source).as_deref(),
        Some("maps%2Bplans"),
        "who asks by the source's name is heard"
    );
    assert!(raw.text().contains("set=\"maps~x2B.plans\""), "{}", raw.text());
    assert!(strict::read(&raw.body).is_ok(), "{}", raw.text());
}

/// Requests something from the proxy, then the set; restarts it and requests the set again.
fn sets_before_and_after_a_restart(source: &Source, first: &str) -> [Option<String>; 2] {
    let base_url = source.base_url();
    let configure = |config: &mut Config| {
        let mapping = Mapping::new("x", &base_url, &Limits::default()).expect("a legal mapping");
        config.repositories.add_fixed(mapping);
    };
    let proxy = Proxy::with(configure);
    assert_eq!(proxy.get(first).status, 200);
    assert_eq!(proxy.get(OF_SET).status, 200);
    let before = requested_set(source);
    let proxy = proxy.restarted(configure);
    assert_eq!(proxy.get(OF_SET).status, 200);
    [before, requested_set(source)]
}

#[test]
fn set_that_looks_escaped_is_unchanged() {
    let sets = |names: &'static [&'static str]| {
        Source::start(move |_, received| {
            if is_sets(received) {
                Reply::xml(list_sets(names))
            } else {
                Reply::xml(records_in(&["letters"], ""))
            }
        })
    };
    let legal = Some("maps~x2B.plans".to_owned());
    let listed = sets(&["letters", "maps~x2B.plans"]);
    assert_eq!(sets_before_and_after_a_restart(&listed, "/x?verb=ListSets"), [legal.clone(), legal.clone()]);
    let in_records = Source::start(|_, _| Reply::xml(records_in(&["maps~x2B.plans"], "")));
    assert_eq!(sets_before_and_after_a_restart(&in_records, LIST), [legal.clone(), legal.clone()]);
    let escaped = sets(&["letters", "maps+plans"]);
    let raw = Some("maps%2Bplans".to_owned());
    assert_eq!(sets_before_and_after_a_restart(&escaped, "/x?verb=ListSets"), [raw.clone(), raw]);
}

#[test]
fn set_collisions_are_reported() {
    for first in [&["maps+plans", "maps~x2B.plans"], &["maps~x2B.plans", "maps+plans"]] {
        let source = Source::start(move |_, received| {
            if is_sets(received) { Reply::xml(list_sets(first)) } else { Reply::xml(records_in(first, "")) }
        });
        let proxy = Proxy::of(&source);
        let sets = proxy.get("/x?verb=ListSets");
        assert_eq!(sets.text().matches("<setSpec>maps~x2B.plans</setSpec>").count(), 2, "{}", sets.text());
        let reported = proxy.admin_json("/-/repositories/x");
        assert_eq!(reported["set_collisions"], serde_json::json!(["maps~x2B.plans"]), "{reported}");
        let metric = "oaimend_set_collisions_total{repository=\"x\"} 1";
        let metrics = fetch(proxy.admin(), "/-/metrics").text();
        assert!(metrics.contains(metric), "{metrics}");
        assert_eq!(proxy.get(OF_SET).status, 200);
        assert_eq!(
            requested_set(&source).as_deref(),
            Some("maps~x2B.plans"),
            "the one that the source calls so"
        );
        let metrics = fetch(proxy.admin(), "/-/metrics").text();
        assert!(metrics.contains(metric), "told once: {metrics}");
    }
}
