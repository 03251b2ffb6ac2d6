//! Sources of OAI-PMH 1.0 and 1.1 through the proxy: a harvester of 2.0 sees a 2.0 repository.

use crate::fixtures::provider_one::{
    PAGE, ProviderOne, RECORDS, day_of, identifier, is_deleted, query_of, set_of,
};
use crate::fixtures::proxy;
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, Reply, Source, page_of};
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::judge::judge;
use oaimend_upstream::settings::{HeadersVia, Version};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const IDENTIFY: &str = "<Identify><repositoryName>A repository</repositoryName>\
    <baseURL>http://source.example/oai</baseURL><protocolVersion>2.0</protocolVersion>\
    <adminEmail>oai@source.example</adminEmail><earliestDatestamp>2000-01-01T00:00:00Z</earliestDatestamp>\
    <deletedRecord>no</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>";
const HEADERS: &str = "/x?verb=ListIdentifiers&metadataPrefix=oai_dc";

fn providers() -> [ProviderOne; 2] {
    ["1.0", "1.1"].map(ProviderOne::of)
}

/// Requests a page and judges it.
#[track_caller]
fn valid(got: &Got) -> String {
    assert_eq!(got.status, 200, "{}", got.text());
    judge(&got.body, Strictness::Schema).unwrap_or_else(|wrong| panic!("{wrong}\n{:.3000}", got.text()));
    got.text()
}

/// All texts between two marks.
fn all<'t>(text: &'t str, from: &str, until: &str) -> Vec<&'t str> {
    text.split(from).skip(1).filter_map(|part| part.split(until).next()).collect()
}

fn code(page: &str) -> &str {
    all(page, "<error code=\"", "\"").first().copied().unwrap_or("no error")
}

/// The queries that a source received.
fn queries(source: &Source) -> Vec<String> {
    source.requests().iter().map(|received| query_of(&received.target).to_owned()).collect()
}

/// All pages of a list, each judged.
fn harvest(proxy: &Proxy, path: &str) -> Vec<String> {
    let verb = all(path, "verb=", "&")[0].to_owned();
    let mut pages = vec![valid(&proxy.get(path))];
    loop {
        let last = pages.last().expect("there is one");
        let token = all(last, "<resumptionToken>", "<").first().map(ToString::to_string);
        let Some(token) = token.filter(|token| !token.is_empty()) else { return pages };
        let token: String = url::form_urlencoded::byte_serialize(token.as_bytes()).collect();
        pages.push(valid(&proxy.get(&format!("/x?verb={verb}&resumptionToken={token}"))));
    }
}

/// Identifier, datestamp and status of each header.
fn headers(pages: &[String]) -> Vec<(String, String, bool)> {
    let mut found = Vec::new();
    for header in pages.iter().flat_map(|page| all(page, "<header", "</header>")) {
        let value = |name: &str| all(header, &format!("<{name}>"), "<")[0].to_owned();
        found.push((value("identifier"), value("datestamp"), header.starts_with(" status=\"deleted\"")));
    }
    found
}

fn expected(numbers: impl Iterator<Item = usize>) -> Vec<(String, String, bool)> {
    numbers.map(|number| (identifier(number), day_of(number), is_deleted(number))).collect()
}

#[test]
fn every_verb_is_answered_in_2_0() {
    for provider in providers() {
        let source = ProviderOne { has_sets: true, ..provider }.start();
        let proxy = Proxy::of(&source);
        let identify = valid(&proxy.get("/x?verb=Identify"));
        assert!(identify.contains("<granularity>YYYY-MM-DD</granularity>"), "{identify}");
        let record = "identifier=oai:old.example:3";
        for (query, holds) in [
            ("verb=ListMetadataFormats", "<metadataPrefix>oai_dc<"),
            ("verb=ListSets", "<setSpec>physics<"),
            (&format!("verb=ListMetadataFormats&{record}"), "<metadataPrefix>oai_dc<"),
            (&format!("verb=GetRecord&metadataPrefix=oai_dc&{record}"), ">Title 3<"),
            (
                "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:old.example:7",
                "<header status=\"deleted\"",
            ),
        ] {
            let page = valid(&proxy.get(&format!("/x?{query}")));
            assert!(page.contains(holds), "{query}: {page}");
        }
        for path in [LIST, HEADERS] {
            let pages = harvest(&proxy, path);
            assert_eq!(pages.len(), RECORDS.div_ceil(PAGE));
            assert_eq!(headers(&pages), expected(0..RECORDS), "{path}");
            assert!(
                pages[2].contains("<resumptionToken/>") || pages[2].contains("<resumptionToken></"),
                "{path}"
            );
        }
        assert!(queries(&source).iter().all(|query| !query.contains("verb=ListIdentifiers")));
    }
}

#[test]
fn version_is_detected_from_any_page() {
    let source = ProviderOne::of("1.1").start();
    let proxy = Proxy::of(&source);
    assert_eq!(proxy.admin_json("/-/repositories/x")["version"], serde_json::Value::Null);
    valid(&proxy.get(LIST));
    let reported = proxy.admin_json("/-/repositories/x");
    assert_eq!(
        (reported["version"].as_str(), reported["requests_in_days"].as_bool()),
        (Some("1.1"), Some(false))
    );
    let url = source.base_url();
    let proxy = proxy.restarted(|config| config.map("x", &url).expect("a legal mapping"));
    assert_eq!(proxy.admin_json("/-/repositories/x")["version"], "1.1");
    valid(&proxy.get(HEADERS));
    assert_eq!(queries(&source), [&LIST[3..], &LIST[3..]], "no request for detection");
    // Detected capabilities belong to the mapping.
    let proxy = proxy.restarted(|config| {
        let mapping = proxy::at_once(&source);
        config.repositories.add_fixed(mapping);
    });
    assert_eq!(proxy.admin_json("/-/repositories/x")["version"], serde_json::Value::Null);
}

#[test]
fn refusal_of_an_unknown_source_triggers_identify() {
    let source = ProviderOne::of("1.0").start();
    let proxy = Proxy::of(&source);
    let page = valid(&proxy.get(HEADERS));
    assert_eq!(headers(&[page]), expected(0..PAGE));
    assert_eq!(queries(&source), [&HEADERS[3..], "verb=Identify", &LIST[3..]]);
    assert!(proxy.clock.pauses().is_empty(), "nothing is waited for");

    // A source that ignores unknown arguments is detected.
    let source = ProviderOne { is_lenient: true, ..ProviderOne::of("1.1") }.start();
    let proxy = Proxy::of(&source);
    assert_eq!(headers(&[valid(&proxy.get(HEADERS))]), expected(0..PAGE));
    assert_eq!(queries(&source), [&HEADERS[3..], &LIST[3..]]);

    // A source with a configured version gets no test request.
    let source = ProviderOne::of("1.0").start();
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.version = Some(Version::One0));
    valid(&proxy.get(HEADERS));
    assert_eq!(queries(&source), [&LIST[3..]]);
    assert_eq!(proxy.admin_json("/-/repositories/x")["version"], "1.0");
}

/// A source whose Identify is of 2.0, and some of whose pages are of 1.1.
fn mixed(is_old: impl Fn(&str) -> bool + Send + Sync + 'static) -> Source {
    let identify = page_of(0).replace("<ListRecords>\n</ListRecords>", IDENTIFY);
    Source::start(move |_, received| match query_of(&received.target) {
        "verb=Identify" => Reply::xml(identify.clone()),
        query if is_old(query) => ProviderOne::of("1.1").reply(received),
        query if query.contains("ListIdentifiers") => {
            Reply::xml(page_of(1).replace("ListRecords", "ListIdentifiers"))
        }
        _ => Reply::xml(page_of(1)),
    })
}

#[test]
fn page_version_overrides_identify() {
    let source = mixed(|query| query.contains("until="));
    let proxy = Proxy::of(&source);
    valid(&proxy.get(LIST));
    for until in ["2001-03-01", "2001-03-02"] {
        let page = valid(&proxy.get(&format!("{LIST}&until={until}")));
        assert!(page.contains(&identifier(0)), "it is mended all the same: {page}");
    }
    assert_eq!(proxy.admin_json("/-/repositories/x")["version"], "2.0");
    valid(&proxy.get(HEADERS));
    let received = queries(&source);
    let list = &LIST[3..];
    let until = |day: u8| format!("{list}&until=2001-03-0{day}");
    assert_eq!(received, [list, &until(1), "verb=Identify", &until(2), &HEADERS[3..]], "it is asked once");
    // If Identify has the other version too, that is the version of the source.
    let (old, is_old) = (ProviderOne::of("1.1"), Arc::new(AtomicBool::new(false)));
    let now_old = Arc::clone(&is_old);
    let source = Source::start(move |_, received| {
        if now_old.load(Ordering::Relaxed) { old.reply(received) } else { Reply::xml(page_of(1)) }
    });
    let proxy = Proxy::of(&source);
    for (is_old_now, version) in [(false, "2.0"), (true, "1.1")] {
        is_old.store(is_old_now, Ordering::Relaxed);
        valid(&proxy.get(LIST));
        assert_eq!(proxy.admin_json("/-/repositories/x")["version"], version);
    }
}

#[test]
fn single_v1_page_keeps_second_granularity() {
    let source = mixed(|query| !query.contains("from="));
    let proxy = Proxy::of(&source);
    valid(&proxy.get(LIST));
    assert_eq!(proxy.admin_json("/-/repositories/x")["version"], "1.1", "nothing else is known of it");
    let page = valid(&proxy.get(&format!("{LIST}&from=2020-01-01T00:00:00Z")));
    assert_eq!(all(&page, "<identifier>", "<"), ["oai:x:0"]);
    assert_eq!(proxy.admin_json("/-/repositories/x")["version"], "2.0");
}

#[test]
fn status_400_becomes_the_matching_error() {
    let refuses = ProviderOne { refuses_formats: true, ..ProviderOne::of("1.1") };
    for (provider, query, wanted) in [
        (refuses, "verb=ListRecords&metadataPrefix=marc", "cannotDisseminateFormat"),
        (refuses, "verb=ListIdentifiers&metadataPrefix=marc", "cannotDisseminateFormat"),
        (ProviderOne::of("1.1"), "verb=ListIdentifiers&metadataPrefix=marc", "cannotDisseminateFormat"),
        (refuses, "verb=ListRecords&metadataPrefix=oai_dc&set=a", "noSetHierarchy"),
        (refuses, "verb=ListRecords&metadataPrefix=oai_dc&from=2001-03-01T00:00:00Z", "badArgument"),
        (refuses, "verb=ListRecords&resumptionToken=junk", "badResumptionToken"),
        (refuses, "verb=ListIdentifiers&resumptionToken=junk", "badResumptionToken"),
        (refuses, "verb=GetRecord&metadataPrefix=oai_dc&identifier=invalid%22id", "idDoesNotExist"),
        (refuses, "verb=ListMetadataFormats&identifier=oai:old.example:999", "idDoesNotExist"),
        (refuses, "verb=ListSets", "noSetHierarchy"),
        (refuses, "verb=ListRecords&metadataPrefix=oai_dc&until=1990-01-01", "noRecordsMatch"),
    ] {
        // With and without a known version.
        for version in [None, Some(Version::One1)] {
            let source = provider.start();
            let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.version = version);
            let page = valid(&proxy.get(&format!("/x?{query}")));
            assert_eq!(code(&page), wanted, "{query}, {version:?}: {page:.2000}");
            assert_eq!(proxy.admin_json("/-/repositories/x")["source_failures"], 0, "{query}");
        }
    }
    let source = Source::start(|_, _| Reply::whole(400, "Content-Type: text/html", "<html>no</html>"));
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.version = Some(Version::One1));
    assert_eq!(code(&valid(&proxy.get("/x?verb=ListSets"))), "badVerb");
    assert_eq!(code(&valid(&proxy.get(LIST))), "badArgument");
    // It does not affect a source of 2.0.
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.version = Some(Version::Two));
    assert_eq!(proxy.get(LIST).status, 502);
}

#[test]
fn list_of_a_set_contains_the_set() {
    let source = ProviderOne { has_sets: true, ..ProviderOne::of("1.1") }.start();
    let proxy = Proxy::of(&source);
    valid(&proxy.get("/x?verb=Identify"));
    for path in [LIST, HEADERS] {
        let pages = harvest(&proxy, &format!("{path}&set=physics"));
        assert_eq!(pages.len(), 2);
        let wanted = expected((0..RECORDS).filter(|number| set_of(*number) == "physics"));
        assert_eq!(headers(&pages), wanted);
        let said = pages.iter().flat_map(|page| all(page, "<setSpec>", "<")).filter(|set| *set == "physics");
        assert_eq!(said.count(), wanted.len(), "{path}");
    }
}

#[test]
fn window_in_seconds_is_filtered_from_days() {
    let source = ProviderOne::of("1.1").start();
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().quirks.version = Some(Version::One1);
        mapping.source_mut().quirks.in_days = true;
    });
    for path in [LIST, HEADERS] {
        let window = "&from=2001-03-02T10:00:00Z&until=2001-03-04T09:00:00Z";
        let pages = harvest(&proxy, &format!("{path}{window}"));
        // Days cannot express a change within a day.
        assert_eq!(headers(&pages), expected(10..40));
    }
    let received = "verb=ListRecords&metadataPrefix=oai_dc&from=2001-03-02&until=2001-03-04";
    assert_eq!(queries(&source), [received, received]);
}

#[test]
fn token_is_forwarded_unchanged() {
    let source = ProviderOne::of("1.0").start();
    let proxy = Proxy::of(&source);
    let page = valid(&proxy.get(LIST));
    let token = all(&page, "<resumptionToken>", "<")[0].to_owned();
    assert_eq!(token, "at=100!metadataPrefix=oai_dc!verb=ListRecords");
    // With either verb of the harvester, the token is one of a list of records.
    let page = valid(&proxy.get(&format!("/x?verb=ListIdentifiers&resumptionToken={token}")));
    assert_eq!(headers(&[page]), expected(100..200));
}

#[test]
fn expired_token_of_a_known_list_is_replaced() {
    let provider = ProviderOne::of("1.1");
    let source = Source::start(move |number, received| match number {
        2 => Reply::whole(400, "Content-Type: text/html", "<html>expired</html>"),
        _ => provider.reply(received),
    });
    let proxy = Proxy::of(&source);
    valid(&proxy.get("/x?verb=Identify"));
    let pages = harvest(&proxy, HEADERS);
    assert_eq!(headers(&pages), expected(0..RECORDS));
}

#[test]
fn truncated_page_of_headers_is_resumed() {
    let provider = ProviderOne::of("1.1");
    let source = Source::start(move |number, received| {
        if number != 1 {
            return provider.reply(received);
        }
        let whole = provider.answer(received).expect("a legal request");
        Reply::new(200, &format!("Content-Type: text/xml\nContent-Length: {}", whole.len()))
            .send(&whole.as_bytes()[..whole.len() / 2])
    });
    let proxy = Proxy::of(&source);
    valid(&proxy.get("/x?verb=Identify"));
    assert_eq!(headers(&[valid(&proxy.get(HEADERS))]), expected(0..PAGE));
    assert_eq!(source.requests().len(), 3);
}

/// With a proxy that requests each header by GetRecord.
fn by_getrecord(source: &Source) -> Proxy {
    Proxy::tuned(source, |mapping| {
        mapping.source_mut().quirks.version = Some(Version::One1);
        mapping.source_mut().quirks.v1_headers_via = HeadersVia::GetRecord;
    })
}

#[test]
fn v1_headers_via_getrecord() {
    let source = ProviderOne::of("1.1").start();
    let pages = harvest(&by_getrecord(&source), HEADERS);
    assert_eq!((pages.len(), headers(&pages)), (3, expected(0..RECORDS)));
    let received = queries(&source);
    let lists = received.iter().filter(|query| query.contains("ListIdentifiers")).count();
    assert_eq!((lists, received.len()), (3, 3 + RECORDS), "each is asked for once");
    assert_eq!(received[0], "verb=ListIdentifiers");
    // A response that is not a list of identifiers is handled as usual.
    let proxy = by_getrecord(&source);
    for (query, wanted) in [("until=1990-01-01", "noRecordsMatch"), ("set=a", "noSetHierarchy")] {
        assert_eq!(code(&valid(&proxy.get(&format!("{HEADERS}&{query}")))), wanted, "{query}");
    }
}

#[test]
fn headers_via_getrecord_are_complete() {
    let provider = ProviderOne::of("1.1");
    let source = Source::start(move |number, received| {
        let is_of =
            |number: usize| received.target.ends_with(&format!("example%3A{number}&metadataPrefix=oai_dc"));
        match number {
            // A record that fails again and again, and one that no longer exists.
            6 => Reply::whole(500, "", "no"),
            7..=9 => Reply::raw("gone").reset(),
            _ if is_of(8) => Reply::xml(provider.page("GetRecord", "", "")),
            _ => provider.reply(received),
        }
    });
    let proxy = by_getrecord(&source);
    let page = valid(&proxy.get(HEADERS));
    assert_eq!(proxy.clock.pauses().len(), 4);
    assert_eq!(headers(&[page]), expected((0..PAGE).filter(|number| *number != 8)));
    assert_eq!(source.requests().len(), 2 + PAGE + 4, "received headers are not requested again");
    // A list beyond the limit of requests is refused, not truncated.
    let many: String = (0..501).map(|number| format!("<identifier>{number}</identifier>")).collect();
    let source = Source::page(provider.page("ListIdentifiers", "", &many));
    let got = by_getrecord(&source).get(HEADERS);
    assert_eq!((got.status, source.requests().len()), (502, 1));
    assert!(got.text().contains("set v1_headers_via = \"listrecords\""), "{}", got.text());
}

#[test]
fn failing_record_is_quarantined_if_others_succeed() {
    // No record follows the last one, so another request shows whether the source responds.
    for failing in [8, PAGE - 1] {
        let provider = ProviderOne::of("1.1");
        let source = Source::start(move |_, received| {
            let is_it = received.target.ends_with(&format!("example%3A{failing}&metadataPrefix=oai_dc"));
            if is_it { Reply::whole(500, "", "<html>oops</html>") } else { provider.reply(received) }
        });
        let proxy = by_getrecord(&source);
        let page = valid(&proxy.get(HEADERS));
        assert_eq!(headers(&[page]), expected((0..PAGE).filter(|number| *number != failing)));
        let aside = proxy.admin_json("/-/repositories/x/quarantine").to_string();
        assert!(aside.contains(&identifier(failing)), "{aside}");
        let received = queries(&source);
        let times = received.iter().filter(|query| query.contains(&format!("example%3A{failing}&"))).count();
        assert_eq!(times, 8, "four times in each of two attempts at the page");
        let alive = received.iter().filter(|query| *query == "verb=Identify").count();
        assert_eq!(alive, usize::from(failing != 8));
    }
}

#[test]
fn source_that_fails_midway_loses_no_record() {
    for first in [0, 50] {
        let (provider, is_up) = (ProviderOne::of("1.1"), Arc::new(AtomicBool::new(false)));
        let now_up = Arc::clone(&is_up);
        let source = Source::start(move |_, received| {
            let record =
                all(&received.target, "example%3A", "&").first().and_then(|number| number.parse().ok());
            if record.is_some_and(|number: usize| number >= first) && !now_up.load(Ordering::Relaxed) {
                Reply::whole(500, "", "no")
            } else {
                provider.reply(received)
            }
        });
        let proxy = by_getrecord(&source);
        let got = proxy.get(HEADERS);
        let aside = proxy.admin_json("/-/repositories/x/quarantine").to_string();
        assert!(!aside.contains("oai:old.example"), "{aside}");
        if first == 0 {
            assert_eq!(got.status, 503);
            assert!(got.header("proxy-status").contains("received-status=500"), "{:?}", got.headers);
            continue;
        }
        let page = valid(&got);
        assert_eq!(headers(std::slice::from_ref(&page)), expected(0..first));
        is_up.store(true, Ordering::Relaxed);
        let token = all(&page, "<resumptionToken>", "<")[0];
        let rest = valid(&proxy.get(&format!("/x?verb=ListIdentifiers&resumptionToken={token}")));
        assert_eq!(headers(&[rest]), expected(first..PAGE));
    }
}

#[test]
fn headers_via_getrecord_share_the_rate_limit() {
    let provider = ProviderOne::of("1.1");
    let (go, wait) = std::sync::mpsc::channel();
    let (reached, is_reached) = std::sync::mpsc::channel();
    let waits = Mutex::new(Some(wait));
    let source = Source::start(move |_, received| {
        if received.target.contains("GetRecord")
            && let Some(wait) = waits.lock().expect("no test panics while it holds this").take()
        {
            reached.send(()).expect("the test waits for it");
            let record = provider.answer(received).expect("a legal request");
            return Reply::new(200, "Content-Type: text/xml").wait(wait).send(record);
        }
        provider.reply(received)
    });
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().quirks.version = Some(Version::One1);
        mapping.source_mut().quirks.v1_headers_via = HeadersVia::GetRecord;
        mapping.source_mut().politeness.list_requests_max = 1;
    });
    std::thread::scope(|scope| {
        let page = scope.spawn(|| proxy.get(HEADERS));
        is_reached.recv().expect("the source is asked for a record");
        let other = proxy.get(LIST);
        go.send(()).expect("the source waits for it");
        assert_eq!(headers(&[valid(&other)]), expected(0..PAGE));
        let page = page.join().expect("it has an answer");
        assert_eq!(headers(&[valid(&page)]), expected(0..PAGE));
    });
}

#[test]
fn quarantined_header_is_not_an_empty_list() {
    let provider = ProviderOne::of("1.1");
    let list =
        format!("<identifier>{}</identifier><identifier>{}</identifier>", identifier(0), identifier(1));
    let broken =
        provider.page("GetRecord", "", "<record><header><datestamp>2001-01-01</datestamp></header></record>");
    let source = Source::start(move |number, received| match number {
        // The source fails at the second record until it is deleted.
        _ if received.target.contains("ListIdentifiers") => {
            Reply::xml(provider.page("ListIdentifiers", "", &list))
        }
        _ if received.target.contains("example%3A0&") => Reply::xml(broken.clone()),
        2..=5 => Reply::raw("gone").reset(),
        _ => Reply::xml(provider.page("GetRecord", "", "")),
    });
    let proxy = by_getrecord(&source);
    let got = proxy.get(HEADERS);
    assert_eq!(got.status, 503, "{}", got.text());
    assert_eq!(
        queries(&source).iter().filter(|query| query.contains("ListIdentifiers")).count(),
        2,
        "{:?} {}",
        queries(&source),
        got.text()
    );
}

#[test]
fn source_without_its_listed_records_is_not_empty() {
    let provider = ProviderOne::of("1.1");
    let source = Source::start(move |_, received| {
        if received.target.contains("GetRecord") {
            Reply::xml(provider.page("GetRecord", "", ""))
        } else {
            provider.reply(received)
        }
    });
    let got = by_getrecord(&source).get(HEADERS);
    assert_eq!((got.status, got.header("proxy-status").is_empty()), (503, false), "{}", got.text());
    assert!(got.text().contains(&format!("knows none of the {PAGE} records")), "{}", got.text());
    let records = queries(&source).iter().filter(|query| query.contains("GetRecord")).count();
    assert_eq!(records, PAGE + 3, "each is asked for once, and three also by literal identifiers");
}

#[test]
fn source_with_day_granularity_gets_no_seconds() {
    let source = ProviderOne::of("1.0").start();
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.version = Some(Version::One0));
    for path in [LIST, HEADERS] {
        let page = valid(&proxy.get(&format!("{path}&until=2001-03-01T00:00:00Z")));
        assert_eq!(code(&page), "badArgument");
    }
    assert!(source.requests().is_empty(), "Identify says that the granularity is days");
}
