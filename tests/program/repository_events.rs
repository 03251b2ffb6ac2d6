//! The events of a repository: each record and each quarantined item of a page, beside its bytes.

use std::sync::Arc;

use oaimend::config::Mapping;
use oaimend_oai::Request;
use oaimend_repository::{
    DeliveredRecord, Event, HarvesterTraits, Repository, RepositoryRequest, ResponseSummary,
};
use oaimend_store::QuarantinedRecord;
use oaimend_upstream::settings::{HeadersVia, Limits, Version};
use oaimend_upstream::{LiveRepository, SourceClients};

use crate::fixtures::lists::page;
use crate::fixtures::provider_one::ProviderOne;
use crate::fixtures::source::{Reply, Source};
use crate::fixtures::time::Skipping;
use oaimend_test_support::strict;

/// All events of one response.
#[derive(Debug, Default)]
struct Collected {
    records: Vec<DeliveredRecord>,
    quarantined: Vec<QuarantinedRecord>,
    body: String,
    summary: ResponseSummary,
    failed: bool,
}

impl Collected {
    fn identifiers(&self) -> Vec<&str> {
        self.records.iter().map(|record| record.identifier.as_str()).collect()
    }
}

/// The events of the response to a query.
fn ask(source: &Source, query: &str, tune: impl FnOnce(&mut Mapping)) -> Collected {
    let folder = tempfile::tempdir().expect("a folder");
    let store = oaimend_store_local::open(folder.path()).expect("a data folder");
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a mapping");
    tune(&mut mapping);
    let mapping = Arc::new(mapping);
    let client =
        SourceClients::new(store.static_files.clone()).client_for(&mapping.source).expect("a client");
    let repository =
        LiveRepository { mapping: Arc::clone(&mapping.source), client, store, clock: Skipping::new() };
    let request = Request::parse(query.as_bytes()).expect("a request");
    let echo = Arc::new(request.to_echo("http://proxy.example/x"));
    let via = "1.1 test".to_owned();
    let request = RepositoryRequest {
        request,
        echo,
        via,
        harvester: HarvesterTraits::default(),
        in_one_piece: false,
        reports_records: true,
    };
    let mut collected = Collected::default();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut events = repository.answer(request);
        while let Some(event) = events.next().await {
            match event {
                Event::Head(_) => {}
                Event::Records(records) => collected.records.extend(records),
                Event::Quarantined(records) => collected.quarantined.extend(records),
                Event::Body(bytes) => collected.body.push_str(&String::from_utf8_lossy(&bytes)),
                Event::End(summary) => collected.summary = *summary,
                Event::Failed(failure, summary) => {
                    (collected.failed, collected.summary) = (true, *summary);
                    println!("{failure:?}");
                }
            }
        }
    });
    collected
}

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

/// Each record is well-formed in a list of our own, and its bytes are in the body unless it needed
/// declarations.
#[track_caller]
fn check_xml(collected: &Collected) {
    for record in &collected.records {
        let list = format!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><ListRecords>{}</ListRecords></OAI-PMH>",
            record.xml
        );
        assert_eq!(record.xml.get(record.datestamp_at.clone()), Some(record.datestamp.as_str()));
        drop(strict::read(list.as_bytes()).unwrap_or_else(|error| panic!("{error}: {list}")));
    }
}

#[test]
fn records_are_reported_as_they_are_delivered() {
    let list =
        page(0..3, "t1").replacen("</header>", "<setSpec>a:b</setSpec><setSpec>c</setSpec></header>", 1);
    let source = Source::start(move |_, _| Reply::xml(list.clone()));
    let collected = ask(&source, LIST, |_| {});
    check_xml(&collected);
    assert_eq!(collected.identifiers(), ["oai:x:0", "oai:x:1", "oai:x:2"]);
    assert_eq!(collected.records[0].set_specs, ["a:b", "c"]);
    for record in &collected.records {
        assert!(collected.body.contains(&record.xml), "{}", record.xml);
        assert!(collected.body.contains(&format!("<datestamp>{}</datestamp>", record.datestamp)));
    }
    assert_eq!(collected.summary.page.token.as_deref(), Some("t1"));
    let date = collected.summary.page.response_date.expect("a responseDate");
    assert!(collected.body.contains(&format!("<responseDate>{date}</responseDate>")));
}

#[test]
fn deleted_records_are_reported_as_deleted() {
    let whole = page(0..2, "");
    let (before, rest) = whole.split_once("<record>").expect("a record");
    let (_, after) = rest.split_once("</record>").expect("its end");
    let deleted = "<record><header status=\"deleted\"><identifier>oai:x:0&amp;1</identifier>\
        <datestamp>2020-01-01</datestamp></header></record>";
    let list = format!("{before}{deleted}{after}");
    let source = Source::start(move |_, _| Reply::xml(list.clone()));
    let collected = ask(&source, LIST, |_| {});
    let found: Vec<(&str, bool)> =
        collected.records.iter().map(|record| (record.identifier.as_str(), record.deleted)).collect();
    assert_eq!(found, [("oai:x:0&1", true), ("oai:x:1", false)]);
}

#[test]
fn records_carry_the_namespaces_of_the_root() {
    let list = page(0..2, "");
    let declared = " xmlns:dc=\"http://purl.org/dc/elements/1.1/\"";
    let (head, rest) = list.split_once("<ListRecords>").expect("a list");
    let list = format!(
        "{}<ListRecords>{}",
        head.replacen("<OAI-PMH", &format!("<OAI-PMH{declared}"), 1),
        rest.replace(declared, "")
    );
    let source = Source::start(move |_, _| Reply::xml(list.clone()));
    let collected = ask(&source, LIST, |_| {});
    check_xml(&collected);
    assert_eq!(collected.records.len(), 2);
    assert!(
        collected.records[0].xml.starts_with(&format!("<record{declared}")),
        "{}",
        collected.records[0].xml
    );
}

#[test]
fn quarantined_items_are_reported() {
    let list = page(0..3, "").replacen("<identifier>oai:x:1</identifier>", "", 1);
    let source = Source::start(move |_, received| {
        if received.target.contains("GetRecord") { Reply::new(500, "") } else { Reply::xml(list.clone()) }
    });
    let collected = ask(&source, LIST, |_| {});
    assert_eq!(collected.identifiers(), ["oai:x:0", "oai:x:2"]);
    assert_eq!(collected.quarantined.len(), 1);
    assert_eq!(
        (collected.quarantined[0].why, collected.summary.items.quarantined()),
        ("missing-identifier", 1)
    );
}

#[test]
fn resumed_page_reports_each_record_once() {
    let whole = page(0..40, "");
    let cut = whole.len() / 2;
    let source = Source::start(move |count, _| match count {
        0 => Reply::new(200, &format!("Content-Type: text/xml\r\nContent-Length: {}\r\n", whole.len()))
            .send(&whole.as_bytes()[..cut]),
        _ => Reply::xml(whole.clone()),
    });
    let collected = ask(&source, LIST, |_| {});
    assert!(!collected.failed && collected.summary.attempts() == 2, "{:?}", collected.summary);
    let expected: Vec<String> = (0..40).map(|number| format!("oai:x:{number}")).collect();
    assert_eq!(collected.identifiers(), expected);
}

#[test]
fn records_outside_the_window_are_not_reported() {
    let list = page(0..4, "").replacen("2020-01-01", "2020-01-02", 1);
    let source = Source::start(move |_, _| Reply::xml(list.clone()));
    let query = format!("{LIST}&from=2020-01-01T00:00:00Z&until=2020-01-01T23:59:59Z");
    let collected = ask(&source, &query, |mapping| mapping.source_mut().quirks.in_days = true);
    assert_eq!(collected.identifiers(), ["oai:x:1", "oai:x:2", "oai:x:3"]);
    assert!(collected.records.iter().all(|record| collected.body.contains(&record.xml)));
    check_xml(&collected);
}

#[test]
fn records_turned_into_headers_are_reported_as_headers() {
    let source = ProviderOne::of("1.1").start();
    let collected = ask(&source, "verb=ListIdentifiers&metadataPrefix=oai_dc", |mapping| {
        mapping.source_mut().quirks.version = Some(Version::One1);
        mapping.source_mut().quirks.v1_headers_via = HeadersVia::ListRecords;
    });
    assert!(!collected.records.is_empty(), "{}", collected.body);
    for record in &collected.records {
        assert!(record.xml.starts_with("<header"), "{}", record.xml);
        assert!(
            record.xml.contains(&format!("<datestamp>{}</datestamp>", record.datestamp)),
            "{}",
            record.xml
        );
        assert_eq!(record.deleted, record.xml.contains("status=\"deleted\""));
        assert_eq!(record.set_specs.len(), record.xml.matches("<setSpec>").count());
    }
}

#[test]
fn failed_request_reports_nothing() {
    let source = Source::start(|_, _| Reply::new(404, ""));
    let collected = ask(&source, LIST, |_| {});
    assert!(collected.failed && collected.records.is_empty() && collected.body.is_empty());
}

#[test]
fn error_response_reports_its_code() {
    let whole = page(0..1, "");
    let (head, _) = whole.split_once("<ListRecords>").expect("a list");
    let error = format!("{head}<error code=\"noRecordsMatch\">none</error></OAI-PMH>");
    let source = Source::start(move |_, _| Reply::xml(error.clone()));
    let collected = ask(&source, LIST, |_| {});
    assert_eq!(collected.summary.page.error.map(oaimend_oai::ErrorCode::name), Some("noRecordsMatch"));
    assert!(collected.summary.page.response_date.is_some());
}
