//! Sources with non-standard requests: adapters of the mapping, detected capabilities, and the
//! diagnosis of failures and empty responses.

use crate::fixtures::provider::Fault::Nothing;
use crate::fixtures::provider::Provider;
use crate::fixtures::provider::When::Always;
use crate::fixtures::proxy;
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, ReceivedRequest, Reply, Source, page_of};
use oaimend::config::Mapping;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::judge::judge;
use oaimend_upstream::settings::{Method, PageFallback};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[track_caller]
fn valid(got: &Got, strictness: Strictness) -> String {
    assert_eq!(got.status, 200, "{}", got.text());
    judge(&got.body, strictness).unwrap_or_else(|wrong| panic!("{wrong}\n{:.3000}", got.text()));
    got.text()
}

/// All texts between two marks.
fn all<'t>(text: &'t str, from: &str, until: &str) -> Vec<&'t str> {
    text.split(from).skip(1).filter_map(|part| part.split(until).next()).collect()
}

fn code(page: &str) -> &str {
    all(page, "<error code=\"", "\"").first().copied().unwrap_or("no error")
}

fn query(received: &ReceivedRequest) -> String {
    received.target.split_once('?').map_or("", |(_, query)| query).to_owned()
}

fn queries(source: &Source) -> Vec<String> {
    source.requests().iter().map(query).collect()
}

/// A repository with second granularity that refuses seconds.
fn refuses_seconds(page: usize, status: Option<u16>) -> Source {
    let (script, _) = Provider { page, ..Provider::default() }.script(Always, Nothing);
    Source::start(move |number, received| match (query(received).contains("T00"), status) {
        (false, _) => script(number, received),
        (true, Some(status)) => Reply::whole(status, "Content-Type: text/html", "<html>no</html>"),
        (true, None) => Reply::xml(error("badArgument", "dates are days")),
    })
}

fn error(code: &str, text: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-02T03:04:05Z</responseDate>\
         <request>http://source.example/oai</request><error code=\"{code}\">{text}</error></OAI-PMH>"
    )
}

fn empty(verb: &str) -> String {
    let full = page_of(1).replace("ListRecords", verb);
    let (head, rest) = full.split_once("<record>").expect("it has one");
    let (_, tail) = rest.split_once("</record>").expect("it has one");
    format!("{head}{tail}")
}

const WINDOW: &str = "from=2020-01-01T00%3A00%3A05Z&until=2020-01-02T00%3A00%3A01Z";
/// The same days in seconds.
const MIDNIGHTS: &str = "from=2020-01-01T00%3A00%3A00Z&until=2020-01-02T00%3A00%3A00Z";
const DAYS: &str = "from=2020-01-01&until=2020-01-02";

#[test]
fn source_that_refuses_seconds_is_queried_in_days() {
    for status in [None, Some(400)] {
        let source = refuses_seconds(100, status);
        let proxy = Proxy::of(&source);
        let list = &LIST[3..];
        for verb in ["ListRecords", "ListIdentifiers"] {
            let path = format!("{LIST}&{WINDOW}").replace("ListRecords", verb);
            let page = valid(&proxy.get(&path), Strictness::Schema);
            let numbers: Vec<String> = (5..12).map(|number| format!("oai:source.example:{number}")).collect();
            assert_eq!(all(&page, "<identifier>", "<"), numbers);
        }
        let headers = list.replace("ListRecords", "ListIdentifiers");
        let expected = [
            format!("{list}&{WINDOW}"),
            "verb=Identify".into(),
            format!("{list}&{MIDNIGHTS}"),
            format!("{list}&{DAYS}"),
        ];
        assert_eq!(queries(&source), [&expected[..], &[format!("{headers}&{DAYS}")]].concat(), "{status:?}");
        assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], true);
        assert!(proxy.clock.pauses().is_empty(), "nothing is waited for");
        // The capability survives a restart and is forgotten for a new base URL.
        let url = source.base_url();
        let proxy = proxy.restarted(|config| config.map("x", &url).expect("a legal mapping"));
        valid(&proxy.get(&format!("{LIST}&{WINDOW}&set=a")), Strictness::Schema);
        assert_eq!(queries(&source)[5..], [format!("{list}&{DAYS}&set=a")]);
        let proxy = proxy.restarted(|config| config.repositories.add_fixed(proxy::at_once(&source)));
        assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], false);
    }
}

#[test]
fn day_granularity_may_refuse_seconds() {
    let (source, _) = Provider { in_days: true, ..Provider::default() }.start(Always, Nothing);
    let proxy = Proxy::of(&source);
    for set in ["a", "a:b"] {
        let path = format!("{LIST}&{WINDOW}&set={set}");
        assert_eq!(code(&valid(&proxy.get(&path), Strictness::Schema)), "badArgument");
    }
    let identify = queries(&source).iter().filter(|query| query.ends_with("Identify")).count();
    assert_eq!((identify, source.requests().len()), (1, 3), "it is asked once what it knows");
    assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], false);
    // If the seconds were not the reason, nothing is learned.
    let (script, _) = Provider::default().script(Always, Nothing);
    let source = Source::start(move |number, received| {
        if query(received).contains("ListRecords") {
            Reply::xml(error("badArgument", "not this"))
        } else {
            script(number, received)
        }
    });
    let proxy = Proxy::of(&source);
    assert_eq!(code(&valid(&proxy.get(&format!("{LIST}&{WINDOW}")), Strictness::Schema)), "badArgument");
    assert_eq!(queries(&source).len(), 4);
    assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], false);
}

#[test]
fn other_refusals_change_no_capability() {
    // A source that refuses future times; the day of such a time has begun.
    let (script, _) = Provider::default().script(Always, Nothing);
    let source = Source::start(move |number, received| {
        if query(received).contains("T00%3A00%3A05Z") {
            Reply::xml(error("badArgument", "from is later than now"))
        } else {
            script(number, received)
        }
    });
    let proxy = Proxy::of(&source);
    for set in ["a", "a:b"] {
        let page = valid(&proxy.get(&format!("{LIST}&{WINDOW}&set={set}")), Strictness::Schema);
        assert_eq!(code(&page), "badArgument");
    }
    let set = |set: &str, window: &str| format!("{}&{window}&set={set}", &LIST[3..]);
    let expected = [set("a", WINDOW), "verb=Identify".into(), set("a", MIDNIGHTS), set("a%3Ab", WINDOW)];
    assert_eq!(queries(&source), expected, "that it takes seconds is known for a while");
    assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], false);
}

/// Refuses a request in seconds, and fails at the request that tests the reason.
fn refuses_seconds_and_does_not_say_so() -> Source {
    let (script, _) = Provider { page: 3, ..Provider::default() }.script(Always, Nothing);
    Source::start(move |number, received| match query(received) {
        query if query.contains("T00%3A00%3A00Z") => Reply::whole(500, "", "no"),
        query if query.contains("T00") => Reply::xml(error("badArgument", "no")),
        _ => script(number, received),
    })
}

#[test]
fn ambiguous_refusal_uses_days_once() {
    let source = refuses_seconds_and_does_not_say_so();
    let proxy = Proxy::of(&source);
    assert_eq!(harvest(&proxy, WINDOW), (5..12).collect::<Vec<_>>(), "what lies outside is left out");
    assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], false);
}

#[test]
fn seconds_are_used_again_when_accepted() {
    let mends: [(Provider, Duration); 2] = [
        // It is tested once a day, and its Identify says so.
        (Provider::default(), Duration::from_secs(24 * 3600)),
        (Provider { in_days: true, ..Provider::default() }, Duration::ZERO),
    ];
    for (provider, later) in mends {
        let is_mended = Arc::new(AtomicBool::new(false));
        let (now_mended, (script, _)) = (Arc::clone(&is_mended), provider.script(Always, Nothing));
        let (before, _) = Provider::default().script(Always, Nothing);
        let source = Source::start(move |number, received| {
            if now_mended.load(Ordering::Relaxed) {
                script(number, received)
            } else if query(received).contains("T00") {
                Reply::xml(error("badArgument", "dates are days"))
            } else {
                before(number, received)
            }
        });
        let proxy = Proxy::of(&source);
        let list = |set: &str| proxy.get(&format!("{LIST}&{WINDOW}&set={set}"));
        valid(&list("a"), Strictness::Schema);
        drop(oaimend_base::clock::Clock::pause(&*proxy.clock, Duration::from_secs(24 * 3600)));
        valid(&list("a"), Strictness::Schema);
        assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], true, "it still refuses them");
        is_mended.store(true, Ordering::Relaxed);
        valid(&list("a:b"), Strictness::Schema);
        assert_eq!(
            proxy.admin_json("/-/repositories/x")["requests_in_days"],
            true,
            "it is not checked each time"
        );
        drop(oaimend_base::clock::Clock::pause(&*proxy.clock, later));
        valid(&proxy.get("/x?verb=Identify"), Strictness::Schema);
        valid(&list("a"), Strictness::Schema);
        assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], false, "{provider:?}");
        let received = queries(&source);
        let midnights = received.iter().filter(|query| query.contains(MIDNIGHTS)).count();
        assert_eq!(midnights, if provider.in_days { 2 } else { 3 }, "{received:?}");
        let list = received.iter().rfind(|query| query.contains("ListRecords"));
        assert!(list.is_some_and(|query| query.contains(WINDOW)), "{received:?}");
    }
}

#[test]
fn window_filters_every_page() {
    let (source, _) = Provider { page: 3, ..Provider::default() }.start(Always, Nothing);
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.in_days = true);
    let window = "from=2020-01-01T00:00:04Z&until=2020-01-01T00:00:07Z";
    // The source lists 0 to 2, 3 to 5, 6 to 8, and 9.
    let page = valid(&proxy.get(&format!("{LIST}&{window}")), Strictness::Schema);
    assert_eq!(all(&page, "<identifier>", "<"), ["oai:source.example:4", "oai:source.example:5"]);
    assert!(!page.contains(" cursor=") && !page.contains("completeListSize"), "they count what was left out");
    assert!(page.contains("<resumptionToken expirationDate=\"2026-01-04T00:00:00Z\">"), "{page}");
    let token =
        |page: &str| all(page, "<resumptionToken", "<")[0].split_once('>').expect("a token").1.to_owned();
    let next = |token: String| {
        let token: String = url::form_urlencoded::byte_serialize(token.as_bytes()).collect();
        proxy.get(&format!("/x?verb=ListRecords&resumptionToken={token}"))
    };
    let page = valid(&next(token(&page)), Strictness::Schema);
    assert_eq!(all(&page, "<identifier>", "<"), ["oai:source.example:6", "oai:source.example:7"]);
    let page = valid(&next(token(&page)), Strictness::TokenAlone);
    assert!(page.contains("<ListRecords><resumptionToken></resumptionToken></ListRecords>"), "{page}");
    // A list in which no record remains.
    let window = "from=2020-01-01T00:00:20Z&until=2020-01-01T00:00:40Z";
    let page = valid(&proxy.get(&format!("{LIST}&{window}")), Strictness::Schema);
    assert_eq!(code(&page), "noRecordsMatch");
    // Whole days need no filter.
    let page = valid(&proxy.get(&format!("{LIST}&from=2020-01-01")), Strictness::Schema);
    assert!(page.contains("cursor=\"0\""));
}

#[test]
fn windows_of_the_same_days_are_independent() {
    let (source, _) = Provider { page: 3, ..Provider::default() }.start(Always, Nothing);
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.in_days = true);
    let window = |from: usize, until: usize| {
        harvest(&proxy, &format!("from=2020-01-01T00:00:0{from}Z&until=2020-01-01T00:00:0{until}Z"))
    };
    assert_eq!(window(1, 4), [1, 2, 3, 4]);
    // The tokens belong to the other list, so its records may be included too.
    assert_eq!(window(5, 8), [5, 6, 7, 8]);
    assert_eq!(window(2, 3), [2, 3, 4, 6, 7, 8]);
    // A harvester of days gets all records; then the others may get them too.
    assert_eq!(harvest(&proxy, "from=2020-01-01&until=2020-01-01"), (0..10).collect::<Vec<_>>());
    assert_eq!(window(5, 6), [5, 6, 7, 8, 9]);
}

#[test]
fn window_filters_per_record_pages() {
    let (script, _) = Provider { page: 3, ..Provider::default() }.script(Always, Nothing);
    let source = Source::start(move |number, received| {
        let is_poisoned = query(received).contains("ListRecords") && query(received).contains("cursor%3D3");
        if is_poisoned { Reply::whole(500, "", "<html>no</html>") } else { script(number, received) }
    });
    let proxy = Proxy::tuned(&source, |mapping| {
        (mapping.source_mut().quirks.in_days, mapping.source_mut().quirks.page_fallback) =
            (true, PageFallback::GetRecord);
    });
    let window = "from=2020-01-01T00:00:02Z&until=2020-01-01T00:00:06Z";
    assert_eq!(harvest(&proxy, window), [2, 3, 4, 5, 6]);
    let one_by_one = queries(&source).iter().filter(|query| query.contains("GetRecord")).count();
    assert!(one_by_one > 0, "{:?}", queries(&source));
}

#[test]
fn token_pages_are_shared_without_windows() {
    const PAST: &str = "oaimend; fwd=bypass; fwd-status=200";
    // Also if days are used once.
    let source = refuses_seconds_and_does_not_say_so();
    let proxy = Proxy::of(&source);
    let behind_a_token = |proxy: &Proxy| {
        let page = valid(&proxy.get(&format!("{LIST}&{DAYS}")), Strictness::Schema);
        let token = all(&page, "<resumptionToken", "<")[0].split_once('>').expect("a token").1.to_owned();
        let token: String = url::form_urlencoded::byte_serialize(token.as_bytes()).collect();
        proxy.get(&format!("/x?verb=ListRecords&resumptionToken={token}")).header("cache-status").to_owned()
    };
    assert_eq!(behind_a_token(&proxy), "oaimend; fwd=miss; fwd-status=200");
    valid(&proxy.get(&format!("{LIST}&{WINDOW}")), Strictness::Schema);
    assert_eq!(proxy.admin_json("/-/repositories/x")["requests_in_days"], false);
    assert_eq!(behind_a_token(&proxy), PAST, "no other request gets it");
    let url = source.base_url();
    let proxy = proxy.restarted(|config| config.map("x", &url).expect("a legal mapping"));
    assert_eq!(behind_a_token(&proxy), PAST, "also after a restart");
}

/// The numbers of the records of a whole list.
#[track_caller]
fn harvest(proxy: &Proxy, window: &str) -> Vec<usize> {
    let (mut numbers, mut path) = (Vec::new(), format!("{LIST}&{window}"));
    loop {
        let page = valid(&proxy.get(&path), Strictness::TokenAlone);
        let identifiers = all(&page, "<identifier>oai:source.example:", "<");
        numbers.extend(identifiers.iter().map(|number| number.parse::<usize>().expect("a number")));
        let token = page.split("<resumptionToken").nth(1).and_then(|rest| rest.split(['>', '<']).nth(1));
        let Some(token) = token.filter(|token| !token.trim().is_empty()) else { return numbers };
        let token: String = url::form_urlencoded::byte_serialize(token.as_bytes()).collect();
        path = format!("/x?verb=ListRecords&resumptionToken={token}");
    }
}

/// The query that a source receives with a mapping.
fn request_from(tune: impl Fn(&mut Mapping), query: &str) -> ReceivedRequest {
    let source = Source::page(page_of(2));
    let proxy = Proxy::tuned(&source, |mapping| tune(mapping));
    let got = proxy.get(&format!("/x?{query}"));
    assert_eq!(got.status, 200, "{}", got.text());
    source.requests().pop().expect("it was asked")
}

#[test]
fn quirks_of_the_mapping_apply() {
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    let own_query = |mapping: &mut Mapping| mapping.source_mut().base_url.set_query(Some("page=oai"));
    assert_eq!(request_from(own_query, list).target, format!("/oai?page=oai&{list}"));
    let verb_first = |mapping: &mut Mapping| {
        own_query(mapping);
        mapping.source_mut().quirks.verb_first = true;
    };
    assert_eq!(request_from(verb_first, list).target, format!("/oai?{list}&page=oai"));
    // The verb comes first, wherever the harvester writes it.
    let turned = "metadataPrefix=oai_dc&verb=ListRecords";
    assert_eq!(request_from(|_| {}, turned).target, format!("/oai?{list}"));

    let token = "verb=ListRecords&resumptionToken=a%252Fb%7Cc%3D%26%20d";
    assert_eq!(request_from(|_| {}, token).target, format!("/oai?{token}"));
    let raw = |mapping: &mut Mapping| mapping.source_mut().quirks.raw_token = true;
    assert_eq!(request_from(raw, token).target, "/oai?verb=ListRecords&resumptionToken=a%2Fb|c=%26%20d");

    let of_set = |mapping: &mut Mapping| mapping.source_mut().quirks.default_set = Some("all".to_owned());
    assert_eq!(request_from(of_set, list).target, format!("/oai?{list}&set=all"));
    assert_eq!(request_from(of_set, &format!("{list}&set=b")).target, format!("/oai?{list}&set=b"));
    assert_eq!(
        request_from(of_set, "verb=ListRecords&resumptionToken=t").target,
        "/oai?verb=ListRecords&resumptionToken=t"
    );

    let in_days = |mapping: &mut Mapping| mapping.source_mut().quirks.in_days = true;
    let window = format!("{list}&from=2020-01-01T00:00:00Z&until=2020-01-01T23:59:59Z");
    assert_eq!(
        request_from(in_days, &window).target,
        format!("/oai?{list}&from=2020-01-01&until=2020-01-01")
    );

    let post = |mapping: &mut Mapping| {
        raw(mapping);
        mapping.source_mut().quirks.method = Method::Post;
    };
    assert_eq!(request_from(post, token).form, "verb=ListRecords&resumptionToken=a%2Fb|c=%26%20d");
}

/// A source that fails, or sends an empty list, for everything except its own description.
fn fails(status: u16, formats: impl Into<Option<&'static str>>, sets: String) -> Source {
    let page = page_of(1);
    let (head, _) = page.split_once("<ListRecords>").expect("it has a list");
    let formats = formats.into().map(|prefix| {
        format!(
            "{head}<ListMetadataFormats><metadataFormat><metadataPrefix>{prefix}</metadataPrefix>\
             <schema>http://source.example/{prefix}.xsd</schema>\
             <metadataNamespace>http://source.example/{prefix}/</metadataNamespace></metadataFormat>\
             </ListMetadataFormats></OAI-PMH>"
        )
    });
    Source::start(move |_, received| {
        let query = query(received);
        match &formats {
            _ if query.contains("identifier=gone") && query.contains("Formats") => {
                Reply::xml(error("idDoesNotExist", "gone"))
            }
            Some(formats) if query.contains("ListMetadataFormats") => Reply::xml(formats.as_str()),
            _ if query.contains("ListSets") => Reply::xml(sets.as_str()),
            _ if status == 200 => Reply::xml(empty("ListRecords")),
            _ => Reply::whole(status, "Content-Type: text/html", "<html>no</html>"),
        }
    })
}

#[test]
fn failure_becomes_the_diagnosed_error() {
    let no_sets = || error("noSetHierarchy", "none");
    let has_sets = || {
        let set = "<set><setSpec>t</setSpec><setName>T</setName></set>";
        page_of(0).replace("ListRecords", "ListSets").replace("<ListSets>", &format!("<ListSets>{set}"))
    };
    let marc = "verb=ListRecords&metadataPrefix=marc";
    let dc = "verb=ListIdentifiers&metadataPrefix=oai_dc";
    for (status, formats, sets, query, wanted) in [
        (500, Some("oai_dc"), no_sets(), marc, "cannotDisseminateFormat"),
        (404, Some("oai_dc"), no_sets(), marc, "cannotDisseminateFormat"),
        (200, Some("oai_dc"), no_sets(), marc, "cannotDisseminateFormat"),
        (200, Some("marc"), no_sets(), marc, "noRecordsMatch"),
        (200, None, no_sets(), marc, "noRecordsMatch"),
        (500, Some("oai_dc"), no_sets(), &format!("{dc}&set=s"), "noSetHierarchy"),
        (200, Some("oai_dc"), no_sets(), &format!("{dc}&set=s"), "noSetHierarchy"),
        (
            500,
            Some("oai_dc"),
            no_sets(),
            "verb=GetRecord&metadataPrefix=oai_dc&identifier=gone",
            "idDoesNotExist",
        ),
        (
            500,
            Some("oai_dc"),
            no_sets(),
            "verb=GetRecord&metadataPrefix=marc&identifier=there",
            "cannotDisseminateFormat",
        ),
        // Nothing in the source's description explains these failures.
        (500, Some("marc"), no_sets(), marc, ""),
        (500, None, no_sets(), marc, ""),
        (503, Some("oai_dc"), no_sets(), marc, ""),
        (500, Some("oai_dc"), has_sets(), &format!("{dc}&set=s"), ""),
        (500, Some("oai_dc"), no_sets(), dc, ""),
        (404, Some("oai_dc"), no_sets(), "verb=GetRecord&metadataPrefix=oai_dc&identifier=there", ""),
    ] {
        let source = fails(status, formats, sets);
        let got = Proxy::of(&source).get(&format!("/x?{query}"));
        if wanted.is_empty() {
            let failed = if status == 404 { 502 } else { 503 };
            assert_eq!(got.status, failed, "{status} {formats:?} {query}: {}", got.text());
        } else {
            let page = valid(&got, Strictness::Schema);
            assert_eq!(code(&page), wanted, "{status} {formats:?} {query}: {page}");
        }
    }
}

#[test]
fn failed_diagnosis_is_repeated() {
    let formats = page_of(1);
    let (head, _) = formats.split_once("<ListRecords>").expect("it has a list");
    let formats = format!(
        "{head}<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
         <schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>\
         <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></metadataFormat>\
         </ListMetadataFormats></OAI-PMH>"
    );
    let is_back = Arc::new(AtomicBool::new(false));
    let back = Arc::clone(&is_back);
    let source = Source::start(move |_, received| {
        if back.load(Ordering::SeqCst) && query(received).contains("ListMetadataFormats") {
            return Reply::xml(formats.as_str());
        }
        Reply::whole(404, "Content-Type: text/html", "<html>no</html>")
    });
    let proxy = Proxy::with(|config| {
        config.cache.failures = Duration::ZERO;
        config.map("x", &source.base_url()).expect("a legal mapping");
    });
    let marc = "/x?verb=ListRecords&metadataPrefix=marc";
    assert_eq!(proxy.get(marc).status, 502);
    is_back.store(true, Ordering::SeqCst);
    assert_eq!(code(&valid(&proxy.get(marc), Strictness::Schema)), "cannotDisseminateFormat");
}

#[test]
fn unlisted_format_is_requested() {
    let source = Source::page(page_of(2));
    let proxy = Proxy::of(&source);
    for query in
        ["verb=ListRecords&metadataPrefix=secret&set=hidden", "verb=ListRecords&resumptionToken=%20%25"]
    {
        valid(&proxy.get(&format!("/x?{query}")), Strictness::Schema);
        assert_eq!(queries(&source).pop().expect("it was asked"), query);
    }
    assert_eq!(source.requests().len(), 2);
    // An empty response to a request that every repository supports explains nothing either.
    let source = Source::page(empty("ListRecords"));
    assert_eq!(code(&valid(&Proxy::of(&source).get(LIST), Strictness::Schema)), "noRecordsMatch");
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn quotation_mark_in_an_identifier_is_escaped() {
    let source = fails(500, Some("oai_dc"), String::new());
    let proxy = Proxy::of(&source);
    for (query, wanted) in [
        ("verb=ListMetadataFormats&identifier=invalid%22id", "no error"),
        ("verb=GetRecord&metadataPrefix=marc&identifier=invalid%22id", "cannotDisseminateFormat"),
    ] {
        let page = valid(&proxy.get(&format!("/x?{query}")), Strictness::Schema);
        assert_eq!(code(&page), wanted);
        assert!(page.contains(" identifier=\"invalid&quot;id\""), "{page}");
    }
}
