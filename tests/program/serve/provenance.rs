//! Provenance in responses: the source's base URL, the time of the request, and a changed mapping.

use crate::fixtures::proxy::{LIST, Proxy, records};
use crate::fixtures::source::{Source, page_of, record};
use oaimend_repair::ProvenanceScope;
/// A page of three records, the second with a byte that is not UTF-8, and without a responseDate.
fn page() -> Vec<u8> {
    let page = page_of(3).replace("<responseDate>2026-01-02T03:04:05Z</responseDate>\n", "");
    let broken = page.replace("Title 1", "caf\u{1}").into_bytes();
    broken.into_iter().map(|byte| if byte == 1 { 0xe9 } else { byte }).collect()
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let behind = text.split_once(start).map_or("", |(_, behind)| behind);
    behind.split_once(end).map_or("", |(inside, _)| inside)
}

fn about(source: &Source, number: usize, altered: bool, requested_at: &str) -> String {
    const PROVENANCE: &str = "http://www.openarchives.org/OAI/2.0/provenance";
    format!(
        "<about><provenance xmlns=\"{PROVENANCE}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"{PROVENANCE} {PROVENANCE}.xsd\">\
         <originDescription harvestDate=\"{requested_at}\" altered=\"{altered}\"><baseURL>{}</baseURL>\
         <identifier>oai:x:{number}</identifier><datestamp>2020-01-01</datestamp>\
         <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>\
         </originDescription></provenance></about>",
        source.base_url()
    )
}

fn with(about: &str, record: &str) -> String {
    record.replace("</metadata>", &format!("</metadata>{about}"))
}

#[test]
fn altered_records_contain_origin_and_harvest_date() {
    let source = Source::page(page());
    let got = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().repairs.provenance = Some(ProvenanceScope::Altered)
    })
    .get(LIST)
    .text();
    // The missing value is the time of the request to the source.
    let requested_at = between(&got, "<responseDate>", "</responseDate>");
    let altered = with(&about(&source, 1, true, requested_at), &record(1).replace("Title 1", "café"));
    assert_eq!(records(&got), format!("<ListRecords>\n{}{altered}{}", record(0), record(2)));
}

/// The harvest date is the responseDate of the source, in UTC.
#[test]
fn harvest_date_is_the_response_date_of_the_source() {
    for (written, expected) in [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+01:00", "2026-01-02T02:04:05Z"),
    ] {
        let page = page_of(3).replace("2026-01-02T03:04:05Z", written);
        assert!(page.contains(written));
        for page in [page.replace("ListRecords", "GetRecord"), page] {
            let source = Source::page(page.clone());
            let proxy = Proxy::tuned(&source, |mapping| {
                mapping.source_mut().repairs.provenance = Some(ProvenanceScope::All)
            });
            let list = if page.contains("<GetRecord") {
                "/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:0"
            } else {
                LIST
            };
            let got = proxy.get(list).text();
            let dates: Vec<&str> = got
                .split("harvestDate=\"")
                .skip(1)
                .filter_map(|rest| Some(rest.split_once('"')?.0))
                .collect();
            assert!(!dates.is_empty() && dates.iter().all(|date| *date == expected), "{written}: {got}");
        }
    }
}

#[test]
fn provenance_is_not_a_repair() {
    let source = Source::page(page_of(3));
    let proxy =
        Proxy::tuned(&source, |mapping| mapping.source_mut().repairs.provenance = Some(ProvenanceScope::All));
    let got = proxy.get(LIST).text();
    assert_eq!(got.matches("altered=\"false\"").count(), 3, "{got}");
    while proxy.admin_json("/-/repositories/x")["requests"] != 1 {
        std::thread::yield_now();
    }
    let reported = proxy.admin_json("/-/repositories/x");
    assert_eq!((&reported["records_passed"], &reported["records_repaired"]), (&3.into(), &0.into()));
}
