//! Responses for harvesters when the source sends broken metadata or none: repaired records,
//! quarantined records, and failures that do not look like success.

use crate::fixtures::proxy::{LIST, Proxy, records};
use crate::fixtures::source::{Got, Reply, Source, fetch, page_of, record};
use oaimend_repair::RepairId;
use oaimend_upstream::settings::OnUnrepairable;
use std::time::Duration;

const HTML: &str = "<!DOCTYPE html><html><head><title>Login</title></head><body>caf\u{e9}\u{1b}[31m please log in</body></html>";

#[track_caller]
fn check_failed(got: &Got, status: &str, text: &str) {
    check_failed_by(503, got, status, text);
}

#[track_caller]
fn check_failed_by(by: u16, got: &Got, status: &str, text: &str) {
    assert_eq!((got.status, got.whole), (by, true), "{}", got.text());
    assert_eq!(got.header("retry-after").is_empty(), by != 503);
    let said = got.header("proxy-status");
    assert!(said.starts_with(&format!("oaimend; error={status}")), "{said}");
    assert!(got.text().contains(text), "{}", got.text());
}

/// The status for harvesters if the source sends this one: 503 for transient failures.
fn status_after(status: u16) -> u16 {
    if matches!(status, 403 | 429 | 500 | 502..=504) { 503 } else { 502 }
}

fn failed(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Got {
    let source = Source::start(move |_, _| reply());
    Proxy::of(&source).get(LIST)
}

/// A page of three records, the second one changed.
fn page_with(change: impl FnOnce(&str) -> String) -> String {
    page_of(3).replace(&record(1), &change(&record(1)))
}

/// An unrepairable record: it has no identifier.
fn hopeless(record: &str) -> String {
    record.replace("<identifier>oai:x:1</identifier>", "<identifier></identifier>")
}

#[test]
fn broken_records_are_repaired_and_good_ones_unchanged() {
    let source = Source::page(page_with(|record| record.replace("Title 1", "AT&T")));
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.whole), (200, true));
    assert_eq!(records(&got.text()), records(&page_with(|record| record.replace("Title 1", "AT&amp;T"))));
    let echo = format!(
        "<request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">http://{}/x</request>",
        proxy.address()
    );
    assert!(got.text().contains(&echo), "{}", got.text());
    while proxy.admin_json("/-/repositories/x")["requests"] != 1 {
        std::thread::yield_now();
    }
    let reported = proxy.admin_json("/-/repositories/x");
    assert_eq!((&reported["records_passed"], &reported["records_repaired"]), (&2.into(), &1.into()));
    let repair = &proxy.admin_json("/-/repositories/x/repairs")["repairs"][0];
    assert_eq!((&repair["repair"], &repair["record"]), (&"bare-ampersand".into(), &"oai:x:1".into()));
    assert_eq!((&repair["original"], &repair["replacement"]), (&"&".into(), &"&amp;".into()));
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    for line in [
        "oaimend_repairs_total{repair=\"bare-ampersand\",repository=\"x\"} 1",
        "oaimend_records_total{action=\"repaired\",repository=\"x\"} 1",
        "oaimend_records_total{action=\"passed\",repository=\"x\"} 2",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[test]
fn charset_of_the_content_type_is_used() {
    let source = Source::start(|_, _| {
        let page = page_of(1).replace(" encoding=\"UTF-8\"", "").replace("Title 0", "\u{1}");
        let page: Vec<u8> = page.bytes().map(|byte| if byte == 1 { 0xb1 } else { byte }).collect();
        Reply::whole(200, "Content-Type: text/xml; charset=iso-8859-2", page)
    });
    let got = Proxy::of(&source).get(LIST);
    assert!(got.text().contains("<dc:title>\u{105}</dc:title>"), "{}", got.text());
}

#[test]
fn other_responses_are_source_failures() {
    let unavailable = "destination_unavailable; received-status=200; details=\"";
    for (body, text) in [
        (HTML, "sent an HTML page"),
        ("", "sent an empty body"),
        ("  \n\n", "sent an empty body"),
        ("{\"error\": 1}", "sent JSON"),
        ("<?xml version=\"1.0\"?><rss/>", "a document that is not OAI-PMH"),
    ] {
        check_failed(&failed(move || Reply::whole(200, "Content-Type: text/html", body)), unavailable, text);
    }
    let source = Source::start(|_, _| Reply::whole(200, "", HTML));
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert!(got.text().is_ascii() && !got.text().contains("please log in"), "{}", got.text());
    let reported = proxy.admin_json("/-/repositories/x")["last_failure"]["details"].to_string();
    assert!(reported.is_ascii() && reported.contains("the response began: <!DOCTYPE html>"), "{reported}");
    assert!(reported.contains("caf [31m please log in"), "{reported}");
    assert_eq!(got.header("retry-after"), "300");
}

#[test]
fn error_status_without_oai_body_is_a_source_failure() {
    for status in [400, 401, 403, 404, 410, 429, 500, 502, 503, 504] {
        let got = failed(move || Reply::whole(status, "Content-Type: text/html", HTML));
        let text = format!("answered with status {status} and no OAI-PMH body");
        let said = format!("destination_unavailable; received-status={status}");
        check_failed_by(status_after(status), &got, &said, &text);
        let got = failed(move || Reply::whole(status, "", ""));
        check_failed_by(status_after(status), &got, &said, &text);
    }
}

#[test]
fn retry_after_is_forwarded_in_seconds() {
    // The failure itself is the response for five seconds.
    for (said, passed_on) in [("7", "7"), ("0", "5"), ("86400", "3600"), ("soon", "30"), ("", "30")] {
        let got = failed(move || Reply::whole(503, &format!("Retry-After: {said}"), ""));
        assert_eq!(got.header("retry-after"), passed_on, "{said}");
    }
    let got = failed(|| Reply::whole(503, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", ""));
    assert_eq!(got.header("retry-after"), "3600");
}

#[test]
fn oai_error_is_sent_with_status_200() {
    let page = concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" ",
        "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ ",
        "http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\"><responseDate>2026-01-02T03:04:05Z</responseDate>",
        "<request>http://source.example/oai</request><error code=\"noRecordsMatch\">none</error></OAI-PMH>\n",
    );
    for status in [200, 400, 404, 422, 500, 503] {
        let source = Source::start(move |_, _| Reply::whole(status, "Content-Type: text/xml", page));
        let got = Proxy::of(&source).get(LIST);
        assert_eq!((got.status, got.whole, got.header("proxy-status")), (200, true, ""), "{status}");
        assert!(got.text().contains("<error code=\"noRecordsMatch\">none</error>"), "{}", got.text());
        assert_eq!(got.header("cache-status"), format!("oaimend; fwd=miss; fwd-status={status}"));
    }
}

#[test]
fn texts_of_errors_are_in_the_charset_of_the_source() {
    let page = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
        <responseDate>2026-01-02T03:04:05Z</responseDate><request>http://source.example/oai</request>\
        <error code=\"noRecordsMatch\">zbi\u{1}r</error></OAI-PMH>\n";
    let page: Vec<u8> = page.bytes().map(|byte| if byte == 1 { 0xb3 } else { byte }).collect();
    let source = Source::page(page);
    let got = Proxy::of(&source).get(LIST);
    assert!(got.text().contains(">zbi\u{b3}r<"), "{}", got.text());
    let got =
        Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.charset = Some("ISO-8859-2")).get(LIST);
    assert!(got.text().contains(">zbi\u{142}r<"), "{}", got.text());
}

#[test]
fn payloads_declare_the_schema_instance_if_the_mapping_asks_for_it() {
    const DECLARATION: &str = " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";
    let page = page_with(|record| record.replace(DECLARATION, ""));
    let source = Source::page(page.clone());
    let got = Proxy::of(&source).get(LIST);
    assert_eq!(records(&got.text()), records(&page), "{}", got.text());
    let got =
        Proxy::tuned(&source, |mapping| mapping.source_mut().repairs.enabled.insert(RepairId::PayloadXsi))
            .get(LIST);
    let declared = page_with(|record| {
        record.replace(DECLARATION, "").replace("oai_dc.xsd\">", &format!("oai_dc.xsd\"{DECLARATION}>"))
    });
    assert_eq!(records(&got.text()), records(&declared), "{}", got.text());
}

#[test]
fn truncated_document_gets_a_continuation_token() {
    for cut in ["</ListRecords>", "Title 2", "<record><header><identifier>oai:x:2"] {
        let page = page_of(3);
        let at = page.find(cut).expect("it is there");
        let source = Source::page(&page[..at]);
        let proxy = Proxy::of(&source);
        let got = proxy.get(LIST);
        assert_eq!((got.status, got.whole), (200, true), "{cut}: {}", got.text());
        assert!(got.text().contains("Title 0") && got.text().contains("<resumptionToken>oaimend1_"), "{cut}");
    }
    let page = page_of(3);
    let got = failed(move || Reply::xml(&page.as_bytes()[..page.find("Title 0").expect("it is there")]));
    check_failed(&got, "http_response_incomplete; received-status=200", "sent a page that ends early");
}

#[test]
fn unrepairable_record_is_quarantined() {
    let source = Source::page(page_with(hopeless));
    let proxy = Proxy::of(&source);
    for _ in 0..2 {
        let got = proxy.get(LIST);
        assert_eq!((got.status, got.whole), (200, true));
        assert_eq!(records(&got.text()), records(&page_with(|_| "\n".to_owned())));
    }
    let listed = proxy.admin_json("/-/repositories/x/quarantine");
    let [entry] = listed["records"].as_array().expect("a list").as_slice() else { panic!("{listed}") };
    assert_eq!((&entry["why"], &entry["seen"]), (&"missing-identifier".into(), &2.into()));
    assert_eq!(entry["request"], "verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(entry["offset"], page_of(3).find(&record(1)).expect("it is there"));
    let key = entry["key"].as_str().expect("a text");
    let found = proxy.admin_json(&format!("/-/repositories/x/quarantine/{key}"));
    assert_eq!(found["raw"], hopeless(&record(1)).trim_end());
    let raw = std::fs::read_to_string(proxy.data().join("quarantine/x").join(key)).expect("it is on disk");
    assert_eq!(raw, hopeless(&record(1)).trim_end());
}

#[test]
fn unquarantinable_record_fails_the_page() {
    let source = Source::page(page_with(hopeless));
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().limits.quarantine_bytes_max = 10);
    let got = proxy.get(LIST);
    assert!(got.status == 503 || !got.whole, "{}", got.text());
    assert!(!got.text().contains("oai:x:2"), "nothing after it is sent");
    while proxy.admin_json("/-/repositories/x")["requests"] != 1 {
        std::thread::yield_now();
    }
    let failure = &proxy.admin_json("/-/repositories/x")["last_failure"];
    assert_eq!(failure["reason"], "quarantine");
    assert!(failure["details"].to_string().contains("or raise quarantine_bytes_max"), "{failure}");
}

#[test]
fn on_unrepairable_fail() {
    let source = Source::page(page_with(hopeless));
    let proxy =
        Proxy::tuned(&source, |mapping| mapping.source_mut().repairs.on_unrepairable = OnUnrepairable::Fail);
    let got = proxy.get(LIST);
    assert!(got.status == 502 || !got.whole, "{}", got.text());
    assert!(!got.text().contains("oai:x:2"), "nothing after it is sent");
    let listed = proxy.admin_json("/-/repositories/x/quarantine");
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(1), "it is quarantined nevertheless");
}

#[test]
fn quarantined_get_record_is_not_a_missing_record() {
    let get_record = page_of(1).replace("ListRecords", "GetRecord");
    let broken = get_record.replace("<identifier>oai:x:0</identifier>", "<identifier></identifier>");
    assert_ne!(broken, get_record);
    let source = Source::page(broken);
    let got = Proxy::of(&source).get("/x?verb=GetRecord&identifier=oai:x:0&metadataPrefix=oai_dc");
    check_failed(&got, "destination_unavailable; received-status=200", "nothing of the page could be kept");
    let none = page_of(1).replace("<identifier>oai:x:0</identifier>", "<identifier></identifier>");
    let source = Source::page(none);
    check_failed(
        &Proxy::of(&source).get(LIST),
        "destination_unavailable",
        "nothing of the page could be kept",
    );
}

#[test]
fn early_verdict_stops_reading() {
    let source =
        Source::start(|_, _| Reply::new(200, "Content-Length: 1000000").send(HTML.repeat(2000)).hang());
    let proxy =
        Proxy::tuned(&source, |mapping| mapping.source_mut().timeouts.read = Duration::from_secs(3600));
    check_failed(&proxy.get(LIST), "destination_unavailable", "an HTML page");
}

/// A page with an envelope prefix, as some sources write it.
fn prefixed(page: &str) -> String {
    let mut page = page.replace("<OAI-PMH xmlns=", "<OAI-PMH xmlns:o=");
    for name in ["OAI-PMH", "responseDate", "request", "ListRecords", "record", "header", "identifier"] {
        page = page.replace(&format!("<{name}"), &format!("<o:{name}"));
        page = page.replace(&format!("</{name}"), &format!("</o:{name}"));
    }
    for name in ["datestamp", "metadata"] {
        page = page.replace(&format!("<{name}>"), &format!("<o:{name}>"));
        page = page.replace(&format!("</{name}>"), &format!("</o:{name}>"));
    }
    page
}

#[test]
fn envelope_prefix_is_stripped_from_resumed_pages() {
    let page = prefixed(&page_of(5));
    assert!(page.contains("<o:record><o:header><o:identifier>"), "{page}");
    let source = Source::start(move |number, _| {
        let length = page.len();
        let sent = if number == 0 { page.len() * 2 / 3 } else { length };
        Reply::new(200, &format!("Content-Type: text/xml\nContent-Length: {length}")).send(&page[..sent])
    });
    let got = Proxy::of(&source).get(LIST);
    assert_eq!((got.status, got.whole, source.requests().len()), (200, true, 2), "{}", got.text());
    // White space between records makes no difference.
    assert_eq!(records(&got.text()).replace("\n\n", "\n"), records(&page_of(5)));
    assert!(!got.text().contains("<o:") && !got.text().contains("</o:"), "{}", got.text());
}

#[test]
fn oai_error_is_recognised_with_any_status() {
    let answered = |status: u16, code: &str| {
        let error = format!("<error code=\"{code}\">No records match.</error>\n");
        let page = page_of(0).replace("<ListRecords>\n</ListRecords>\n", &error);
        assert!(page.contains(&error));
        let source = Source::start(move |_, _| {
            Reply::whole(status, "Content-Type: text/html\nRetry-After: 7", page.clone())
        });
        let got = Proxy::of(&source).get(LIST);
        (got, error)
    };
    for status in [400, 404, 410, 422, 429, 500, 503] {
        let (got, error) = answered(status, "noRecordsMatch");
        assert_eq!((got.status, got.whole), (200, true), "{status}: {}", got.text());
        assert!(got.text().contains(&error), "{status}: {}", got.text());
        assert_eq!(got.header("content-type"), "text/xml; charset=UTF-8");
        let (got, _) = answered(status, "serviceUnavailable");
        assert_eq!((got.status, got.whole), (status_after(status), true), "{status}: {}", got.text());
    }
    let (got, _) = answered(200, "serviceUnavailable");
    check_failed(&got, "destination_unavailable", "an error code that OAI-PMH does not define");
    let (got, _) = answered(500, "no records");
    assert!(got.text().contains("<error code=\"noRecordsMatch\">"), "{}", got.text());
}

#[test]
fn missing_identify_values_come_from_the_mapping() {
    let identify = "<Identify><repositoryName>A</repositoryName><baseURL>http://source.example/oai</baseURL>\
        <protocolVersion>2.0</protocolVersion><adminEmail>nobody</adminEmail><deletedRecord>no</deletedRecord>\
        <granularity>YYYY-MM-DD</granularity></Identify>\n";
    let page = page_of(0).replace("<ListRecords>\n</ListRecords>\n", identify);
    let source = Source::page(page);
    let got = Proxy::of(&source).get("/x?verb=Identify");
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert!(got.text().contains("<adminEmail>nobody</adminEmail><deletedRecord>no"), "{}", got.text());
    let configured = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().identify.admin_email = Some("oai@proxy.example".to_owned());
        mapping.source_mut().identify.earliest_datestamp = Some("2001-01-01".to_owned());
    });
    let got = configured.get("/x?verb=Identify");
    let wanted =
        "<adminEmail>oai@proxy.example</adminEmail><earliestDatestamp>2001-01-01</earliestDatestamp><del";
    assert!(got.text().contains(wanted), "{}", got.text());
}
