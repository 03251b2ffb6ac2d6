//! The states of quarantined records, and how they leave the quarantine.

use oaimend::config::Mapping;
use oaimend_upstream::settings::Limits;
use serde_json::{Value, json};

use crate::fixtures::broken_records::BrokenRecords;
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Harvester, Source, fetch};

fn mapping(source: &Source) -> Mapping {
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.source_mut().quirks.refetch_broken_records = false;
    mapping
}

fn proxy_of(source: &Source) -> Proxy {
    Proxy::with(|config| {
        config.cache.enabled = false;
        config.repositories.add_fixed(mapping(source));
    })
}

/// The identifiers of the entries in this state, in order.
fn entries(proxy: &Proxy, state: &str) -> Vec<String> {
    let listed = proxy.admin_json(&format!("/-/repositories/x/quarantine?state={state}"));
    let records: Vec<Value> = serde_json::from_value(listed["records"].clone()).expect("a list");
    let mut found: Vec<String> = records
        .iter()
        .map(|record| {
            assert_eq!(record["state"], state);
            assert_eq!(record["resolved_at"].is_string(), state == "resolved", "{record}");
            record["identifier"].as_str().expect("a text").to_owned()
        })
        .collect();
    found.sort();
    found
}

fn metric(proxy: &Proxy, name: &str, state: &str) -> u64 {
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    let line = format!("oaimend_quarantine_{name}{{repository=\"x\",state=\"{state}\"}} ");
    let value = metrics.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok());
    value.unwrap_or_else(|| panic!("{line} in {metrics}"))
}

/// Sends a request that changes something. Returns the status and the JSON.
fn send(proxy: &Proxy, method: &str, path: &str, header: &str) -> (u16, Value) {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{header}Connection: close\r\n\r\n");
    let got = Harvester::ask(proxy.admin(), &request).rest();
    (got.status, serde_json::from_slice(&got.body).unwrap_or_default())
}

#[test]
fn record_that_comes_whole_resolves_its_entry_until_it_breaks_again() {
    let (source, records) = BrokenRecords::of(4, &[1, 2]).start();
    let proxy = proxy_of(&source);
    assert_eq!(proxy.get(LIST).status, 200);
    assert_eq!(entries(&proxy, "open"), ["oai:x:1", "oai:x:2"]);
    records.lock().expect("no panic").broken.remove(&1);
    assert_eq!(proxy.get(LIST).status, 200);
    assert_eq!(entries(&proxy, "open"), ["oai:x:2"]);
    assert_eq!(entries(&proxy, "resolved"), ["oai:x:1"]);
    assert_eq!([metric(&proxy, "records", "open"), metric(&proxy, "records", "resolved")], [1, 1]);
    assert!(metric(&proxy, "bytes", "open") > 4096 && metric(&proxy, "bytes", "resolved") > 4096);
    records.lock().expect("no panic").broken.clear();
    let one = "/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:2";
    assert_eq!(proxy.get(one).status, 200);
    assert!(entries(&proxy, "open").is_empty());
    records.lock().expect("no panic").broken.insert(1);
    assert_eq!(proxy.get(LIST).status, 200);
    assert_eq!(
        (entries(&proxy, "open"), entries(&proxy, "resolved")),
        (vec!["oai:x:1".to_owned()], vec!["oai:x:2".to_owned()])
    );
}

#[test]
fn headers_do_not_resolve_records() {
    let (source, _records) = BrokenRecords::of(3, &[1]).start();
    let proxy = proxy_of(&source);
    assert_eq!(proxy.get(LIST).status, 200);
    let headers = Source::page(
        crate::fixtures::source::page_of(0).replace("ListRecords", "ListIdentifiers").replace(
            "</ListIdentifiers>",
            "<header><identifier>oai:x:1</identifier><datestamp>2020-01-01</datestamp></header></ListIdentifiers>",
        ),
    );
    let proxy = proxy.restarted(|config| {
        config.cache.enabled = false;
        config.repositories.add_fixed(mapping(&headers));
    });
    let got = proxy.get("/x?verb=ListIdentifiers&metadataPrefix=oai_dc");
    assert!(got.status == 200 && got.text().contains("oai:x:1"), "{}", got.text());
    assert_eq!(entries(&proxy, "open"), ["oai:x:1"]);
}

#[test]
fn resolved_entries_make_room_and_open_ones_fail_the_page() {
    let (source, records) = BrokenRecords::of(4, &[1]).start();
    let mut small = mapping(&source);
    // One entry has a block of 4 KiB and its texts.
    small.source_mut().limits.quarantine_bytes_max = 6_000;
    let proxy = Proxy::with(|config| {
        config.cache.enabled = false;
        config.repositories.add_fixed(small);
    });
    assert_eq!(proxy.get(LIST).status, 200);
    records.lock().expect("no panic").broken = [2].into();
    let got = proxy.get(LIST);
    assert!(got.status == 503 || !got.whole, "the entry was open when the page came: {}", got.text());
    assert_eq!(proxy.get("/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:1").status, 200);
    assert_eq!(entries(&proxy, "resolved"), ["oai:x:1"]);
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!(entries(&proxy, "open"), ["oai:x:2"]);
    assert!(entries(&proxy, "resolved").is_empty());
}

#[test]
fn entries_are_removed_by_state_and_age() {
    let (source, records) = BrokenRecords::of(5, &[1, 2, 3]).start();
    let proxy = proxy_of(&source);
    assert_eq!(proxy.get(LIST).status, 200);
    records.lock().expect("no panic").broken = [3].into();
    assert_eq!(proxy.get(LIST).status, 200);
    let quarantine = "/-/repositories/x/quarantine";
    let delete = |query: &str, header: &str| send(&proxy, "DELETE", &format!("{quarantine}{query}"), header);
    let origin = "Origin: http://evil.example\r\n";
    assert_eq!(delete("?state=resolved", origin).0, 403);
    assert_eq!(send(&proxy, "POST", &format!("{quarantine}/retry"), origin).0, 403);
    for wrong in ["", "?state=gone", "?state=open&all=true", "?older=1", "/0?state=open"] {
        assert_eq!(delete(wrong, "").0, 400, "{wrong}");
    }
    assert_eq!(fetch(proxy.admin(), &format!("{quarantine}?state=gone")).status, 400);
    assert_eq!(fetch(proxy.admin(), &format!("{quarantine}/0")).status, 404);
    assert_eq!(delete("?state=resolved&before=2020-01-01", ""), (200, json!({"removed": 0})));
    assert_eq!(delete("?state=resolved", ""), (200, json!({"removed": 2})));
    assert_eq!(entries(&proxy, "open"), ["oai:x:3"]);
    assert_eq!(delete("?state=open&before=2999-01-01", ""), (200, json!({"removed": 1})));
    assert!(entries(&proxy, "open").is_empty());
}

#[test]
fn server_removes_expired_entries() {
    const EXPIRY_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
    let (source, records) = BrokenRecords::of(3, &[1, 2]).start();
    let proxy = proxy_of(&source);
    assert_eq!(proxy.get(LIST).status, 200);
    records.lock().expect("no panic").broken = [2].into();
    assert_eq!(proxy.get(LIST).status, 200);
    assert_eq!(entries(&proxy, "resolved"), ["oai:x:1"]);
    proxy.clock.step(31 * 86_400);
    let proxy = proxy.restarted(|config| config.repositories.add_fixed(mapping(&source)));
    let until = oaimend_base::clock::uptime() + EXPIRY_WITHIN;
    while !entries(&proxy, "resolved").is_empty() {
        assert!(oaimend_base::clock::uptime() < until, "it has not expired");
        std::thread::yield_now();
    }
    assert_eq!(entries(&proxy, "open"), ["oai:x:2"]);
}
