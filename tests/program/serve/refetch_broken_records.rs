//! An unrepairable record is requested by GetRecord, and the result replaces the broken one.

use crate::fixtures::lists::{page, read_to_the_end, records_in, resume};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{ReceivedRequest, Reply, Source, record};
use oaimend_test_support::strict;
use oaimend_upstream::settings::Limits;

/// A page on which these records have an impossible datestamp.
fn broken(numbers: std::ops::Range<usize>, token: &str, which: &[usize]) -> String {
    let mut whole = page(numbers, token);
    for number in which {
        let right = record(*number).replace("Title", "T\u{ef}tle");
        whole = whole.replace(&right, &right.replace("2020-01-01", "2020-02-31"));
    }
    whole
}

/// The number of the record that is requested by GetRecord.
fn single(received: &ReceivedRequest) -> Option<usize> {
    let (_, behind) = received.target.split_once("verb=GetRecord&identifier=oai%3Ax%3A")?;
    behind.strip_suffix("&metadataPrefix=oai_dc")?.parse().ok()
}

fn get_record(number: usize) -> String {
    page(number..number + 1, "").replace("ListRecords", "GetRecord")
}

/// A source of one page, which sends each record correctly for GetRecord.
fn source_of(list: String) -> Source {
    Source::start(move |_, received| match single(received) {
        Some(number) => Reply::xml(get_record(number)),
        None => Reply::xml(list.clone()),
    })
}

fn numbers_in_order(text: &str) -> Vec<usize> {
    let pieces = text.split("<identifier>oai:x:").skip(1);
    pieces.map(|piece| piece.split('<').next().and_then(|number| number.parse().ok()).expect("one")).collect()
}

fn aside(proxy: &Proxy) -> String {
    proxy.admin_json("/-/repositories/x/quarantine").to_string()
}

fn singles(source: &Source) -> usize {
    source.requests().iter().filter(|received| received.target.contains("GetRecord")).count()
}

#[test]
fn refetched_record_replaces_the_broken_one() {
    for which in [&[0][..], &[2], &[4], &[0, 1], &[1, 2], &[3, 4], &[0, 2, 4]] {
        let source = source_of(broken(0..5, "next", which));
        let proxy = Proxy::of(&source);
        let got = proxy.get(LIST);
        assert_eq!((got.status, got.whole), (200, true), "{which:?}: {}", got.text());
        assert_eq!(numbers_in_order(&got.text()), [0, 1, 2, 3, 4], "{which:?}: {}", got.text());
        assert!(strict::read(&got.body).is_ok(), "{which:?}: {}", got.text());
        assert!(!got.text().contains("2020-02-31"), "{which:?}");
        assert!(!aside(&proxy).contains("oai:x:"), "{which:?}: {}", aside(&proxy));
        assert_eq!(
            source.requests().len(),
            2 + which.len(),
            "the list, Identify, and each record: {which:?}"
        );
    }
}

#[test]
fn unsuccessful_refetches_end() {
    let source = Source::start(|_, received| match single(received) {
        Some(number) => {
            Reply::xml(broken(number..number + 1, "", &[number]).replace("ListRecords", "GetRecord"))
        }
        None => Reply::xml(broken(0..8, "", &[1, 2, 3, 4, 5])),
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!(numbers_in_order(&got.text()), [0, 6, 7]);
    assert_eq!(aside(&proxy).matches("illegal-datestamp").count(), 5);
    assert_eq!(singles(&source), 3);
}

#[test]
fn another_record_is_not_used() {
    let source = Source::start(|_, received| match single(received) {
        Some(_) => Reply::xml(get_record(7)),
        None => Reply::xml(broken(0..5, "", &[2])),
    });
    let proxy = Proxy::of(&source);
    assert_eq!(numbers_in_order(&proxy.get(LIST).text()), [0, 1, 3, 4]);
    assert!(aside(&proxy).contains("oai:x:2"));
}

#[test]
fn refetches_per_page_are_limited() {
    let which: Vec<usize> = (5..35).collect();
    let source = source_of(broken(0..40, "", &which));
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!(records_in(&got.text()).len(), 10 + 20);
    assert_eq!(singles(&source), 20);
}

#[test]
fn off_requests_no_records() {
    let source = source_of(broken(0..5, "", &[2]));
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.refetch_broken_records = false);
    assert_eq!(numbers_in_order(&proxy.get(LIST).text()), [0, 1, 3, 4]);
    let received = source.requests();
    assert_eq!(received.len(), 2, "the list, and Identify for a lower bound");
    assert!(received[1].target.ends_with("verb=Identify"), "{}", received[1].target);
}

/// After the start tag of an element that never closes, only the source knows which records are content.
#[test]
fn records_in_an_element_that_never_closes_are_sent_if_the_source_has_them() {
    let deleted = |number: usize| {
        format!(
            "<record><header status=\"deleted\"><identifier>oai:x:{number}</identifier>\
             <datestamp>2020-01-01</datestamp></header></record>"
        )
    };
    let broken = |number: usize| record(number).replace("Title", "T\u{ef}tle");
    let whole = page(0..4, "");
    let torn = broken(1).split_once("<metadata>").expect("a record has metadata").0.to_owned()
        + "<metadata><m:mets xmlns:m=\"http://www.loc.gov/METS/\"><m:xmlData>"
        + &broken(9);
    let list = whole.replace(&broken(1), &torn).replace(&broken(2), &deleted(2));
    let source = Source::start(move |_, received| match single(received) {
        Some(2) => Reply::xml(get_record(2).replace(&broken(2), &deleted(2))),
        Some(9) => Reply::xml(
            get_record(9)
                .replace("<GetRecord>", "<error code=\"idDoesNotExist\"/><!--")
                .replace("</GetRecord>", "-->"),
        ),
        Some(number) => Reply::xml(get_record(number)),
        None => Reply::xml(list.clone()),
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!(numbers_in_order(&got.text()), [0, 1, 2, 3], "{}", got.text());
    assert_eq!(got.text().matches("deleted").count(), 1, "{}", got.text());
    assert!(aside(&proxy).contains("oai:x:9") && !aside(&proxy).contains("oai:x:3"), "{}", aside(&proxy));
    assert_eq!(singles(&source), 4);
}

#[test]
fn resumed_page_has_the_record_once() {
    let source = Source::start(|number, received| match single(received) {
        Some(number) => Reply::xml(get_record(number)),
        None => {
            let whole = broken(0..6, "", &[0, 2]);
            let at = if number == 0 { whole.find("oai:x:4").expect("it is there") } else { whole.len() };
            Reply::new(200, &format!("Content-Length: {}", whole.len())).send(&whole.as_bytes()[..at])
        }
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!(numbers_in_order(&got.text()), [0, 1, 2, 3, 4, 5], "{}", got.text());
    assert_eq!(singles(&source), 2, "known by the bytes of the broken one");
}

#[test]
fn resumed_long_page_keeps_the_order() {
    let source = Source::start(|number, received| match single(received) {
        Some(number) => Reply::xml(get_record(number)),
        None => {
            // So long that the page arrives in many chunks.
            let whole =
                broken(0..30, "next", &[3, 15, 16, 22]).replace("T\u{ef}tle", &"T\u{ef}tle ".repeat(5_000));
            let at = if number == 0 { whole.find("oai:x:10<").expect("it is there") } else { whole.len() };
            Reply::new(200, &format!("Content-Length: {}", whole.len())).send(&whole.as_bytes()[..at])
        }
    });
    let got = Proxy::of(&source).get(LIST);
    assert_eq!((got.status, got.whole), (200, true));
    assert_eq!(numbers_in_order(&got.text()), (0..30).collect::<Vec<_>>());
    assert!(strict::read(&got.body).is_ok());
    assert_eq!(singles(&source), 4);
}

#[test]
fn token_page_uses_the_format_of_its_list() {
    let source = Source::start(|_, received| match single(received) {
        Some(number) => Reply::xml(get_record(number)),
        None if received.target.contains("resumptionToken") => Reply::xml(broken(5..10, "", &[7])),
        None => Reply::xml(page(0..5, "next")),
    });
    let (found, _) = read_to_the_end(&Proxy::of(&source));
    assert_eq!(found.len(), 10);
    let elsewhere = Proxy::of(&source);
    assert_eq!(records_in(&resume(&elsewhere, "next").text()).len(), 4, "nobody knows its format");
}

#[test]
fn namespaces_of_the_response_are_rebased() {
    let source = Source::start(|_, received| match single(received) {
        Some(number) => {
            let dc = " xmlns:dc=\"http://purl.org/dc/elements/1.1/\"";
            let answer = get_record(number).replace(dc, "");
            Reply::xml(answer.replace("<OAI-PMH ", &format!("<OAI-PMH{dc} ")))
        }
        None => Reply::xml(broken(0..3, "", &[1])),
    });
    let got = Proxy::of(&source).get(LIST);
    assert_eq!(numbers_in_order(&got.text()), [0, 1, 2], "{}", got.text());
    assert!(strict::read(&got.body).is_ok(), "{}", got.text());
    let moved = "<record xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><header><identifier>oai:x:1<";
    assert!(got.text().contains(moved), "{}", got.text());
}

#[test]
fn refetch_respects_the_rate_limit() {
    let source = source_of(broken(0..5, "", &[2]));
    let url = source.base_url();
    let mut mapping = oaimend::config::Mapping::new("x", &url, &Limits::default()).expect("a legal mapping");
    mapping.source_mut().politeness.gap = std::time::Duration::from_secs(2);
    let proxy = Proxy::with(|config| config.repositories.add_fixed(mapping));
    assert_eq!(numbers_in_order(&proxy.get(LIST).text()).len(), 5);
    let pauses = proxy.clock.pauses();
    // Before Identify, and before the record.
    assert!(pauses.len() == 2 && pauses.iter().all(|pause| pause.as_millis() > 1_500), "{pauses:?}");
}

#[test]
fn refetch_without_time_takes_no_turn() {
    let which: Vec<usize> = (5..35).collect();
    let source = source_of(broken(0..40, "", &which));
    let url = source.base_url();
    let mut mapping = oaimend::config::Mapping::new("x", &url, &Limits::default()).expect("a legal mapping");
    // Longer than the wait for a record, and shorter than the wait for a page.
    mapping.source_mut().politeness.gap = std::time::Duration::from_secs(6);
    let proxy = Proxy::with(|config| config.repositories.add_fixed(mapping));
    assert_eq!(records_in(&proxy.get(LIST).text()).len(), 10);
    assert_eq!(singles(&source), 0);
    let next = proxy.get("/x?verb=ListRecords&metadataPrefix=marc");
    assert_eq!(next.status, 200, "{}", next.text());
}

/// A page on which these records have no metadata, but `empty` in its place.
fn without_metadata(numbers: std::ops::Range<usize>, which: &[usize], empty: &str) -> String {
    let mut whole = page(numbers, "");
    for number in which {
        let right = record(*number).replace("Title", "T\u{ef}tle");
        let start = right.find("<metadata>").expect("a start tag");
        let end = right.find("</metadata>").expect("an end tag") + "</metadata>".len();
        whole = whole.replace(&right, &[&right[..start], empty, &right[end..]].concat());
    }
    whole
}

#[test]
fn record_with_empty_metadata_is_requested_once() {
    for empty in ["<metadata/>", "<metadata></metadata>", "<metadata>\n<!-- later --></metadata>"] {
        let source = source_of(without_metadata(0..5, &[0, 2], empty));
        let proxy = Proxy::of(&source);
        let got = proxy.get(LIST);
        assert_eq!(numbers_in_order(&got.text()), [0, 1, 2, 3, 4], "{empty}: {}", got.text());
        assert_eq!(got.text().matches("<dc:title>").count(), 5, "{empty}: {}", got.text());
        assert_eq!(singles(&source), 2, "{empty}");
    }
}

#[test]
fn record_whose_metadata_stays_empty_is_quarantined() {
    let empty = "<metadata directApiCall=\"http://x.example.org/2\"></metadata>";
    let source = Source::start(move |_, received| match single(received) {
        Some(number) => {
            let whole = without_metadata(number..number + 1, &[number], empty);
            Reply::xml(whole.replace("ListRecords", "GetRecord"))
        }
        None => Reply::xml(without_metadata(0..5, &[2], empty)),
    });
    let proxy = Proxy::of(&source);
    assert_eq!(numbers_in_order(&proxy.get(LIST).text()), [0, 1, 3, 4]);
    assert_eq!(aside(&proxy).matches("illegal-payload").count(), 1, "{}", aside(&proxy));
    assert_eq!(singles(&source), 1);
}

#[test]
fn record_without_the_element_metadata_stays() {
    let source = source_of(without_metadata(0..5, &[2], ""));
    let got = Proxy::of(&source).get(LIST);
    assert_eq!(numbers_in_order(&got.text()), [0, 1, 2, 3, 4]);
    assert_eq!((got.text().matches("<dc:title>").count(), singles(&source)), (4, 0));
}
