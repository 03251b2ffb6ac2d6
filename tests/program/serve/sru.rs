//! SRU at `/_sru`: what clients and HTTP see of it. The crate `oaimend-sru` tests requests and queries.
//!
//! The test with real clients needs `scripts/sru install`. Without it the test is skipped, and its output says so; with
//! `OAIMEND_SRU=required` it fails instead.

use super::gateway::Mirrored;
use crate::fixtures::collection::{Collection, DAY_SECS, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Got, Harvester};
use oaimend::config::CorsOrigins;
use std::process::Command;
use std::time::Duration;

const SEARCH: &str = "/_sru?operation=searchRetrieve&version=1.2&query=";

/// The mirror of a collection with its index.
fn searched(collection: Collection) -> Mirrored {
    let records = collection.entries.len() as u64;
    let mirrored = Mirrored::with(
        collection,
        |_| {},
        |config| {
            config.search.enabled = true;
            config.search.commit_interval = Duration::from_millis(10);
            config.gateway.cors_origins = CorsOrigins::Any;
        },
    );
    wait_for_index(&mirrored.proxy, records);
    mirrored
}

/// Waits until the index contains this number of records, and all commits.
#[track_caller]
fn wait_for_index(proxy: &Proxy, records: u64) {
    let until = oaimend_base::clock::uptime() + Duration::from_secs(60);
    loop {
        let state = proxy.admin_json("/-/search");
        if state["records"] == records && state["changes_behind"] == 0 {
            return;
        }
        assert!(oaimend_base::clock::uptime() < until, "{state}");
        std::thread::yield_now();
    }
}

/// Whether a response is the diagnostic with this number.
#[track_caller]
fn is_diagnostic(got: &Got, status: u16, number: u16) {
    let uri = format!("<uri>info:srw/diagnostic/1/{number}</uri>");
    assert!(got.status == status && got.text().contains(&uri), "{number}: {} {}", got.status, got.text());
}

#[test]
fn real_clients_search_page_explain_and_scan() {
    let mirrored = searched(Collection::of(30));
    let root = env!("CARGO_MANIFEST_DIR");
    let mut clients = Command::new(format!("{root}/scripts/sru"));
    let url = format!("http://{}/_sru", mirrored.proxy.address());
    let output = clients.args(["python", &format!("{root}/tests/sru/clients.py"), &url]).output();
    let output = output.expect("a shell");
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(69) {
        assert!(std::env::var("OAIMEND_SRU").is_err(), "the clients are not installed: scripts/sru install");
        println!("skipped: scripts/sru install installs the clients");
        return;
    }
    assert!(output.status.success());
}

#[test]
fn a_response_has_the_headers_of_its_version() {
    let mirrored = searched(Collection::of(3));
    let old = mirrored.get(&format!("{SEARCH}title"));
    assert_eq!((old.status, old.header("content-type")), (200, "text/xml; charset=utf-8"));
    assert_eq!(old.header("access-control-allow-origin"), "*");
    assert_eq!(old.header("content-security-policy"), "default-src 'none'; sandbox");
    let new = mirrored.get("/_sru?query=title");
    assert_eq!((new.status, new.header("content-type")), (200, "application/sru+xml; charset=utf-8"));
    let explained = mirrored.get("/_sru").text();
    assert!(explained.contains("<database>_sru</database>"), "{explained}");
    let form = "operation=searchRetrieve&version=1.2&query=title&maximumRecords=1";
    let request = format!(
        "POST /_sru HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{form}",
        form.len()
    );
    let posted = Harvester::ask(mirrored.proxy.address(), &request).rest().text();
    assert!(posted.contains("<nextRecordPosition>2</nextRecordPosition>"), "{posted}");
}

#[test]
fn a_server_without_a_search_says_so() {
    let mirrored = Mirrored::with(Collection::of(3), |_| {}, |config| config.search.enabled = false);
    is_diagnostic(&mirrored.get(&format!("{SEARCH}title")), 404, 2);
    is_diagnostic(&mirrored.get("/_sru"), 404, 2);
}

#[test]
fn bad_requests_are_answered_with_diagnostics() {
    let mirrored = searched(Collection::of(3));
    for (query, number) in [
        ("x.y=title", 15),
        ("dc.x=title", 16),
        ("%FF", 10),
        ("title&startRecord=4", 61),
        ("title&startRecord=-1", 61),
        ("title&maximumRecords=-1", 62),
        ("title&recordSchema=x", 66),
        ("title&version=9", 5),
    ] {
        is_diagnostic(&mirrored.get(&format!("{SEARCH}{query}")), 200, number);
    }
    // More booleans around each other than the index takes.
    let alternating = "a+and+b+or+".repeat(30) + "c";
    is_diagnostic(&mirrored.get(&format!("{SEARCH}{alternating}")), 200, 47);
    let bomb = format!("query={}a", "(".repeat(10_000));
    let request = format!(
        "POST /_sru HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{bomb}",
        bomb.len()
    );
    is_diagnostic(&Harvester::ask(mirrored.proxy.address(), &request).rest(), 200, 12);
}

#[test]
fn a_record_that_is_not_sent_has_a_diagnostic_in_its_place() {
    let mirrored = searched(Collection::of(3));
    let got = mirrored.get(&format!("{SEARCH}oai.identifier={}&recordSchema=marcxml", identifier(1)));
    is_diagnostic(&got, 200, 67);
    assert!(got.text().contains("<recordPosition>1</recordPosition>"), "{}", got.text());
    change(&mirrored.collection, |collection| {
        collection.now_secs += DAY_SECS;
        let entry = collection.entries.get_mut(&identifier(1)).expect("it exists");
        (entry.datestamp_secs, entry.deleted) = (collection.now_secs, true);
    });
    mirrored.harvest_again();
    wait_for_index(&mirrored.proxy, 2);
    let got = mirrored.get(&format!("{SEARCH}title"));
    assert!(got.text().contains("<numberOfRecords>2</numberOfRecords>"), "{}", got.text());
}
