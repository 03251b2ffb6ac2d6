//! The links between records as a server shows them: on pages, as JSON, as JSON-LD, and in the format `oaimend_links`.

use super::gateway::{Mirrored, is_html, mapping};
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::source::{Got, fetch};
use oaimend::config::RecordPages;
use oaimend_base::clock::uptime;
use oaimend_crosswalks::{CrosswalkChoice, CrosswalkChoices, LINKS_SCHEMA};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// How long a test waits for a response that is not ready yet.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A collection of five records, of which these have elements after their titles.
fn collection(fields: &[(usize, &str)]) -> Collection {
    let mut collection = Collection::of(5);
    for (number, fields) in fields {
        let entry = collection.entries.get_mut(&identifier(*number)).expect("it exists");
        entry.title = format!("Title {number}</dc:title>{fields}<dc:title>Another title");
    }
    collection
}

/// Record 2 cites record 1, and record 3 mentions it.
fn citing() -> Collection {
    collection(&[
        (1, "<dc:identifier>https://doi.org/10.1000/1</dc:identifier>"),
        (2, "<t:references xmlns:t=\"http://purl.org/dc/terms/\">doi:10.1000/1</t:references>"),
        (3, "<dc:relation>10.1000/1</dc:relation><dc:description>See 10.1000/none.</dc:description>"),
    ])
}

fn with_links() -> CrosswalkChoices {
    CrosswalkChoices(BTreeMap::from([("oaimend_links".to_owned(), CrosswalkChoice::BuiltIn)]))
}

/// The server of a collection as `x` and of another one as `y`, both mirrored.
fn both(x: Collection, y: Collection, records_of_y: RecordPages) -> Mirrored {
    let (source, _) = y.start();
    let mut of_y = mapping(&source);
    of_y.source_mut().id = "y".to_owned();
    of_y.records = records_of_y;
    of_y.crosswalks = with_links();
    let tune = |mapping: &mut oaimend::config::Mapping| mapping.crosswalks = with_links();
    let mirrored = Mirrored::with(x, tune, |config| config.repositories.add_fixed(of_y));
    mirrored.proxy.wait_for_harvests("y", 1);
    // It serves the mirror until the end of the test.
    drop(source);
    mirrored
}

#[track_caller]
fn ready(address: SocketAddr, path: &str) -> Got {
    let until = uptime() + READY_WITHIN;
    loop {
        let got = fetch(address, path);
        if got.status != 503 {
            return got;
        }
        assert!(uptime() < until, "{path}: {}", got.text());
        assert!(!got.header("retry-after").is_empty(), "{:?}", got.headers);
    }
}

#[track_caller]
fn json_at(address: SocketAddr, path: &str) -> Value {
    let got = ready(address, path);
    assert_eq!((got.status, got.header("content-type")), (200, "application/json"), "{}", got.text());
    assert_eq!(got.header("cache-control"), "no-cache");
    serde_json::from_slice(&got.body).unwrap_or_else(|error| panic!("{error}: {}", got.text()))
}

/// The identifiers of the records of citations.
fn records(citations: &Value) -> Vec<&str> {
    let citations = citations.as_array().expect("an array").iter();
    let records = citations.flat_map(|citation| citation["records"].as_array().expect("an array"));
    records.map(|record| record["identifier"].as_str().expect("a string")).collect()
}

#[test]
fn pages_and_json_show_citations_in_both_directions() {
    let mirrored = Mirrored::of(citing());
    let address = mirrored.proxy.address();
    let one = json_at(address, "/x/record/oai%3Ac%3A00001.links.json");
    assert_eq!(one["identifiers"], json!([{"kind": "doi", "value": "10.1000/1"}]));
    assert_eq!(records(&one["citedBy"]), ["oai:c:00002", "oai:c:00003"], "{one:#}");
    assert_eq!((&one["cites"], &one["next"], &one["hasMore"]), (&json!([]), &json!(null), &json!(false)));
    let basis: Vec<&Value> =
        one["citedBy"].as_array().expect("an array").iter().map(|of| &of["basis"]).collect();
    assert_eq!(basis, ["stated", "mentioned"]);
    let url = format!("http://{address}/x/record/oai%3Ac%3A00002");
    assert_eq!(one["citedBy"][0]["records"][0]["url"], url);
    assert_eq!(one["citedBy"][0]["records"][0]["title"], "Title 2");
    let three = json_at(address, "/x/record/oai%3Ac%3A00003.links.json");
    assert_eq!(records(&three["cites"]), ["oai:c:00001"]);
    assert_eq!(three["cites"][1]["identifier"], json!({"kind": "doi", "value": "10.1000/none"}));
    let page = mirrored.get("/x/record/oai%3Ac%3A00001");
    is_html(&page, 200, "Citations and duplicates");
    is_html(&page, 200, "<a href=\"/x/record/oai%3Ac%3A00002\"><bdi>Title 2</bdi></a>");
    is_html(&page, 200, "mentioned as a related work");
    is_html(&mirrored.get("/x/record/oai%3Ac%3A00003"), 200, "<bdi>10.1000/none</bdi>, not in this mirror");
    assert!(!mirrored.get("/x/record/oai%3Ac%3A00004").text().contains("Citations and duplicates"));
    // A place in the list that is none, and records that are not there.
    let wrong = mirrored.get("/x/record/oai%3Ac%3A00001.links.json?after=x");
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    let after = json_at(address, "/x/record/oai%3Ac%3A00001.links.json?after=4294967295-0");
    assert_eq!((records(&after["citedBy"]).len(), &after["cites"]), (0, &json!([])));
    assert_eq!(mirrored.get("/x/record/oai%3Ac%3A00009.links.json").status, 404);
    // The tag changes with the links, and the record does not.
    let tag = mirrored.get("/x/record/oai%3Ac%3A00001.links.json").header("etag").to_owned();
    let with_tag = |tag: &str| {
        let headers = format!("If-None-Match: {tag}\r\n");
        mirrored.get_with("/x/record/oai%3Ac%3A00001.links.json", &headers).status
    };
    assert_eq!(with_tag(&tag), 304);
    change(&mirrored.collection, |collection| {
        let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
        entry.title = "Title 3".to_owned();
        entry.datestamp_secs = collection.now_secs;
    });
    mirrored.harvest_again();
    assert_eq!(with_tag(&tag), 200);
    let one = json_at(address, "/x/record/oai%3Ac%3A00001.links.json");
    assert_eq!(records(&one["citedBy"]), ["oai:c:00002"]);
}

#[test]
fn the_format_of_links_is_served_for_the_mirror() {
    let mirrored = both(citing(), citing(), RecordPages::Own);
    let address = mirrored.proxy.address();
    // The table of identifiers knows all records then.
    json_at(address, "/x/record/oai%3Ac%3A00001.links.json");
    assert_eq!(mirrored.get("/_crosswalks/oaimend_links.xsd").text(), LINKS_SCHEMA);
    let formats = mirrored.get("/_mirror/x?verb=ListMetadataFormats").text();
    let schema = format!("<schema>http://{address}/_crosswalks/oaimend_links.xsd</schema>");
    assert!(formats.contains("<metadataPrefix>oaimend_links<") && formats.contains(&schema), "{formats}");
    assert!(!mirrored.get("/x?verb=ListMetadataFormats").text().contains("oaimend_links"), "x is live");
    let list = mirrored.get("/_mirror/x?verb=ListRecords&metadataPrefix=oaimend_links").text();
    assert_eq!(list.matches("<links ").count(), 5, "{list}");
    let record = |number: usize| {
        let path = format!(
            "/_mirror/x?verb=GetRecord&metadataPrefix=oaimend_links&identifier={}",
            identifier(number)
        );
        mirrored.get(&path).text()
    };
    let one = record(1);
    for part in [
        "<identifier kind=\"doi\">10.1000/1</identifier>",
        "<citedBy field=\"references\" basis=\"stated\"><record repository=\"x\">oai:c:00002</record></citedBy>",
        "<citedBy field=\"references\" basis=\"stated\"><record repository=\"y\">oai:c:00002</record></citedBy>",
        "<citedBy field=\"relation\" basis=\"mentioned\"><record repository=\"y\">oai:c:00003</record></citedBy>",
        "<sameAs><record repository=\"y\" by=\"doi\">oai:c:00001</record></sameAs>",
    ] {
        assert!(one.contains(part), "{part}\n{one}");
    }
    let cites = "<cites field=\"references\" basis=\"stated\"><identifier kind=\"doi\">10.1000/1</identifier>\
                 <record repository=\"x\">oai:c:00001</record><record repository=\"y\">oai:c:00001</record></cites>";
    assert!(record(2).contains(cites), "{}", record(2));
    // A change of another record is in the next response.
    change(&mirrored.collection, |collection| {
        let entry = collection.entries.get_mut(&identifier(2)).expect("it exists");
        entry.deleted = true;
        entry.datestamp_secs = collection.now_secs;
    });
    mirrored.harvest_again();
    assert!(!record(1).contains("<record repository=\"x\">oai:c:00002</record>"), "{}", record(1));
}

#[test]
fn duplicates_are_shown_and_hidden_repositories_are_not() {
    let mirrored = both(citing(), citing(), RecordPages::Own);
    let address = mirrored.proxy.address();
    let one = json_at(address, "/x/record/oai%3Ac%3A00001.links.json");
    assert_eq!((&one["sameAs"][0]["repository"], &one["sameAs"][0]["by"]), (&json!("y"), &json!("doi")));
    is_html(&mirrored.get("/x/record/oai%3Ac%3A00001"), 200, "The same work elsewhere");
    let json_ld = mirrored.get("/x/record/oai%3Ac%3A00001.json").text();
    let json_ld: Value = serde_json::from_str(&json_ld).expect("it is JSON");
    let url = format!("http://{address}/y/record/oai%3Ac%3A00001");
    assert_eq!(json_ld["sameAs"], json!(["https://doi.org/10.1000/1", url]));
    let hidden = both(citing(), citing(), RecordPages::Off);
    let one = json_at(hidden.proxy.address(), "/x/record/oai%3Ac%3A00001.links.json");
    assert_eq!((&one["sameAs"], records(&one["citedBy"]).len()), (&json!([]), 2));
    assert_eq!(hidden.get("/y/record/oai%3Ac%3A00001.links.json").status, 404);
}
