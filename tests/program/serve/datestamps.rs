//! Illegal datestamps: the proxy refetches the right one, or uses the lowest possible one.
//! Granularity and earliestDatestamp follow the repository.

use crate::fixtures::lists::{page, records_in, resume};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{ReceivedRequest, Reply, Source, record};
use oaimend::config::{Config, Mapping};
use oaimend_oai::datestamp::Granularity;
use oaimend_repair::ProvenanceScope;
use oaimend_test_support::strict;
use oaimend_upstream::settings::Limits;

const STAMP: &str = "<datestamp>2020-01-01</datestamp>";

/// A page on which these records have another text instead of their datestamp.
fn stamped(numbers: std::ops::Range<usize>, token: &str, which: &[usize], with: &str) -> String {
    let mut whole = page(numbers, token);
    for number in which {
        let right = record(*number).replace("Title", "T\u{ef}tle");
        whole = whole.replace(&right, &right.replace(STAMP, with));
    }
    whole
}

/// Headers of these records.
fn headers(numbers: std::ops::Range<usize>, with: &str) -> String {
    let headers: String =
        numbers.map(|n| format!("<header><identifier>oai:x:{n}</identifier>{with}</header>")).collect();
    page(0..0, "")
        .replace("</ListRecords>", &format!("{headers}</ListRecords>"))
        .replace("ListRecords", "ListIdentifiers")
}

fn identify(earliest: &str, granularity: &str) -> String {
    format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\
         <responseDate>2026-01-02T03:04:05Z</responseDate><request verb=\"Identify\">http://source.example/oai</request>\
         <Identify><repositoryName>x</repositoryName><baseURL>http://source.example/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>a@source.example</adminEmail>\
         <earliestDatestamp>{earliest}</earliestDatestamp><deletedRecord>no</deletedRecord>\
         <granularity>{granularity}</granularity></Identify></OAI-PMH>"
    )
}

fn error(code: &str) -> String {
    format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-02T03:04:05Z</responseDate>\
         <request>http://source.example/oai</request><error code=\"{code}\">no</error></OAI-PMH>"
    )
}

/// A source with the page, and with responses to other requests.
fn source_of(
    list: String,
    other: impl Fn(&ReceivedRequest) -> Option<String> + Send + Sync + 'static,
) -> Source {
    Source::start(move |_, received| Reply::xml(other(received).unwrap_or_else(|| list.clone())))
}

fn says(received: &ReceivedRequest, verb: &str) -> bool {
    received.target.contains(&format!("verb={verb}"))
}

/// The datestamps of the records, in order.
fn stamps(text: &str) -> Vec<String> {
    let pieces = text.split("<datestamp>").skip(1);
    pieces.map(|piece| piece.split('<').next().unwrap_or_default().to_owned()).collect()
}

fn aside(proxy: &Proxy) -> usize {
    proxy.admin_json("/-/repositories/x/quarantine")["records"].as_array().map_or(0, Vec::len)
}

fn questions(source: &Source, verb: &str) -> usize {
    source.requests().iter().filter(|received| says(received, verb)).count()
}

const FROM: &str = "/x?verb=ListRecords&metadataPrefix=oai_dc&from=2019-05-05";

#[test]
fn missing_datestamp_is_refetched() {
    for with in ["", "<datestamp/>", "<datestamp>0000-00-00</datestamp>", "<datestamp>9999-12-31</datestamp>"]
    {
        let source = source_of(stamped(0..4, "", &[1, 2], with), |received| {
            let number = [1, 2]
                .into_iter()
                .find(|n| received.target.contains(&format!("identifier=oai%3Ax%3A{n}&")))?;
            let right = format!("<datestamp>2020-02-0{number}</datestamp>");
            Some(stamped(number..number + 1, "", &[number], &right).replace("ListRecords", "GetRecord"))
        });
        let proxy = Proxy::of(&source);
        let got = proxy.get(FROM);
        assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
        assert_eq!(stamps(&got.text()), ["2020-01-01", "2020-02-01", "2020-02-02", "2020-01-01"], "{with}");
        assert!(strict::read(&got.body).is_ok(), "{}", got.text());
        assert_eq!((aside(&proxy), questions(&source, "GetRecord")), (0, 2), "{with}");
    }
}

#[test]
fn provenance_contains_the_refetched_datestamp() {
    let source = source_of(stamped(0..3, "", &[1], ""), |received| {
        let right = "<datestamp>2020-02-01T03:04:05Z</datestamp>";
        says(received, "GetRecord")
            .then(|| stamped(1..2, "", &[1], right).replace("ListRecords", "GetRecord"))
    });
    let proxy =
        Proxy::tuned(&source, |mapping| mapping.source_mut().repairs.provenance = Some(ProvenanceScope::All));
    let got = proxy.get(FROM);
    let right = "2020-02-01T03:04:05Z";
    assert_eq!(
        stamps(&got.text()),
        ["2020-01-01", "2020-01-01", right, right, "2020-01-01", "2020-01-01"],
        "{}",
        got.text()
    );
    assert!(strict::read(&got.body).is_ok(), "{}", got.text());
}

/// In a repository of days the header gets the day, and the provenance keeps the datestamp of the source.
#[test]
fn provenance_keeps_the_datestamp_of_the_source() {
    let second = "<datestamp>2020-02-01T03:04:05Z</datestamp>";
    for with in ["", second] {
        let source = source_of(stamped(0..3, "", &[1], with), move |received| {
            if says(received, "Identify") {
                return Some(identify("2011-01-01", "YYYY-MM-DD"));
            }
            says(received, "GetRecord")
                .then(|| stamped(1..2, "", &[1], second).replace("ListRecords", "GetRecord"))
        });
        let proxy = Proxy::tuned(&source, |mapping| {
            mapping.source_mut().repairs.provenance = Some(ProvenanceScope::All)
        });
        assert_eq!(proxy.get("/x?verb=Identify").status, 200);
        let got = proxy.get(FROM);
        assert_eq!(
            stamps(&got.text()),
            ["2020-01-01", "2020-01-01", "2020-02-01", "2020-02-01T03:04:05Z", "2020-01-01", "2020-01-01"],
            "{with}: {}",
            got.text()
        );
        assert!(strict::read(&got.body).is_ok(), "{}", got.text());
    }
}

#[test]
fn datestamp_is_refetched_from_headers() {
    let source = source_of(stamped(0..4, "", &[0, 1, 2], ""), |received| {
        if says(received, "ListIdentifiers") {
            return Some(headers(0..2, "<datestamp>2020-03-03</datestamp>"));
        }
        says(received, "GetRecord").then(|| error("idDoesNotExist"))
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get(FROM);
    assert_eq!(
        stamps(&got.text()),
        ["2020-03-03", "2020-03-03", "2019-05-05", "2020-01-01"],
        "{}",
        got.text()
    );
    assert_eq!((aside(&proxy), questions(&source, "ListIdentifiers")), (0, 1));
    let received = source.requests();
    let headers = received.iter().find(|received| says(received, "ListIdentifiers")).expect("it was asked");
    assert!(headers.target.ends_with("metadataPrefix=oai_dc&from=2019-05-05"), "{}", headers.target);
}

#[test]
fn unknown_datestamp_becomes_the_lower_bound() {
    let nothing = |received: &ReceivedRequest| {
        if received.target.contains("resumptionToken=t") {
            return Some(stamped(3..6, "", &[4], "<datestamp>2015-02-30</datestamp>"));
        }
        (!says(received, "ListRecords")).then(|| error("idDoesNotExist"))
    };
    let source = source_of(stamped(0..3, "t", &[1], "<datestamp>2015-02-30</datestamp>"), nothing);
    let proxy = Proxy::of(&source);
    assert_eq!(stamps(&proxy.get(FROM).text()), ["2020-01-01", "2019-05-05", "2020-01-01"]);
    let next = resume(&proxy, "t").text();
    assert_eq!(stamps(&next), ["2020-01-01", "2019-05-05", "2020-01-01"], "{next}");
    assert_eq!(aside(&proxy), 0);
    let headers = source.requests().iter().filter(|received| says(received, "ListIdentifiers")).count();
    assert_eq!(headers, 1, "a token is not asked with another verb");
}

#[test]
fn lower_bound_without_from_is_earliest_datestamp() {
    let source = source_of(stamped(0..3, "", &[1], ""), |received| {
        if says(received, "Identify") {
            return Some(identify("2011-01-01", "YYYY-MM-DD"));
        }
        (!says(received, "ListRecords")).then(|| error("idDoesNotExist"))
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST).text();
    assert_eq!(stamps(&got), ["2020-01-01", "2011-01-01", "2020-01-01"], "{got}");
    assert_eq!(aside(&proxy), 0);
    assert_eq!((questions(&source, "ListRecords"), questions(&source, "Identify")), (1, 1));
    // What it announced is known from then on.
    let got = proxy.get(&format!("{LIST}&set=a")).text();
    assert_eq!(stamps(&got), ["2020-01-01", "2011-01-01", "2020-01-01"], "{got}");
    assert_eq!((questions(&source, "ListRecords"), questions(&source, "Identify")), (2, 1));
}

/// A tombstone and a record without a datestamp, and nothing else.
fn undated(verb: &str) -> String {
    let tombstone = "<header status=\"deleted\"><identifier>oai:x:0</identifier><datestamp/></header>";
    let whole = stamped(1..2, "", &[1], "<datestamp/>");
    let (head, rest) = whole.split_once("<record>").expect("it has one");
    let (_, tail) = whole.split_once("</ListRecords>").expect("it is a list");
    let header = "<header><identifier>oai:x:1</identifier><datestamp/></header>";
    let page = match verb {
        "ListIdentifiers" => format!("{head}{tombstone}{header}</ListRecords>{tail}"),
        "GetRecord" => whole.clone(),
        _ => format!("{head}<record>{tombstone}</record><record>{rest}"),
    };
    page.replace("ListRecords", verb)
}

#[test]
fn undated_items_are_kept_by_the_lower_bound_of_identify() {
    for verb in ["ListRecords", "ListIdentifiers", "GetRecord"] {
        let source = Source::start(|_, received| {
            let verb = received.target.split("verb=").nth(1).and_then(|rest| rest.split('&').next());
            match verb {
                _ if !received.target.starts_with("/oai?mode=oaipmh&") => {
                    Reply::whole(200, "", "<csw:Capabilities/>")
                }
                Some("Identify") => Reply::xml(identify("2006-01-01", "YYYY-MM-DD")),
                Some(verb) => Reply::xml(undated(verb)),
                None => Reply::whole(200, "", "<csw:Capabilities/>"),
            }
        });
        let base_url = format!("{}?mode=oaipmh", source.base_url());
        let proxy = Proxy::with(|config| {
            let mut mapping = Mapping::new("x", &base_url, &Limits::default()).expect("a legal mapping");
            mapping.source_mut().quirks.refetch_broken_records = false;
            config.repositories.add_fixed(mapping);
        });
        let identifier = if verb == "GetRecord" { "&identifier=oai:x:1" } else { "" };
        let got = proxy.get(&format!("/x?verb={verb}&metadataPrefix=oai_dc{identifier}"));
        let count = if verb == "GetRecord" { 1 } else { 2 };
        assert_eq!(stamps(&got.text()), vec!["2006-01-01"; count], "{}", got.text());
        assert!(strict::read(&got.body).is_ok(), "{}", got.text());
        assert_eq!((aside(&proxy), source.requests().len()), (0, 2), "the page is not requested again");
    }
}

#[test]
fn long_page_is_requested_again_for_an_undated_record() {
    // More than is kept of a page, and then a record without a datestamp.
    let long = stamped(0..6000, "", &[5900], "");
    assert!(long.len() > 2 << 20);
    let source =
        source_of(long, |received| says(received, "Identify").then(|| identify("2011-01-01", "YYYY-MM-DD")));
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.refetch_broken_records = false);
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.whole), (200, true));
    let records = records_in(&got.text());
    assert!((0..6000).all(|number| records.get(&number) == Some(&1)), "{}", records.len());
    assert_eq!(stamps(&got.text())[5900], "2011-01-01");
    assert_eq!((aside(&proxy), questions(&source, "ListRecords"), questions(&source, "Identify")), (0, 2, 1));
}

#[test]
fn identify_is_requested_once_for_undated_records() {
    // Also while it fails, for concurrent requests, and if it does not say what is needed.
    for answer in [Some(identify("2011-01-01", "YYYY-MM-DD")), Some(error("badArgument")), None] {
        let kept = usize::from(answer.as_ref().is_some_and(|answer| answer.contains("2011")));
        let source = Source::start(move |_, received| match (says(received, "Identify"), &answer) {
            (true, Some(answer)) => Reply::xml(answer.clone()),
            (true, None) => Reply::whole(500, "", "<html>no</html>"),
            (false, _) => Reply::xml(stamped(0..3, "", &[1], "")),
        });
        let proxy = Proxy::tuned(&source, |mapping| {
            mapping.source_mut().quirks.refetch_broken_records = false;
            mapping.source_mut().politeness.list_requests_max = 100;
        });
        std::thread::scope(|scope| {
            for set in 0..8 {
                let proxy = &proxy;
                scope.spawn(move || {
                    let got = proxy.get(&format!("{LIST}&set={set}"));
                    assert_eq!(records_in(&got.text()).len(), 2 + kept, "{}", got.text());
                });
            }
        });
        assert_eq!((questions(&source, "ListRecords"), questions(&source, "Identify")), (8, 1));
    }
}

#[test]
fn refetch_and_lower_bound_can_be_off() {
    let source = source_of(stamped(0..3, "", &[1], ""), |_| None);
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.refetch_broken_records = false);
    assert_eq!(stamps(&proxy.get(FROM).text()), ["2020-01-01", "2019-05-05", "2020-01-01"]);
    assert_eq!(source.requests().len(), 1);
    let bound = oaimend_repair::RepairId::DatestampLowerBound;
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().quirks.refetch_broken_records = false;
        mapping.source_mut().repairs.off.insert(bound);
    });
    assert_eq!((records_in(&proxy.get(FROM).text()).len(), aside(&proxy)), (2, 1));
}

#[test]
fn resumed_page_has_the_record_once() {
    let source = Source::start(|number, received| {
        if says(received, "GetRecord") {
            let right = stamped(1..2, "", &[1], "<datestamp>2020-02-02T03:04:05Z</datestamp>");
            return Reply::xml(right.replace("ListRecords", "GetRecord"));
        }
        let whole = stamped(0..6, "", &[1], "");
        let at = if number == 0 { whole.find("oai:x:4").expect("it is there") } else { whole.len() };
        Reply::new(200, &format!("Content-Length: {}", whole.len())).send(&whole.as_bytes()[..at])
    });
    let got = Proxy::of(&source).get(FROM);
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    let records = records_in(&got.text());
    assert!((0..6).all(|number| records.get(&number) == Some(&1)), "{}", got.text());
    assert_eq!(stamps(&got.text())[1], "2020-02-02T03:04:05Z");
    assert_eq!(questions(&source, "GetRecord"), 1);
}

/// The repository `x` of that source.
fn repository(source: &Source) -> impl Fn(&mut Config) + use<> {
    let base_url = source.base_url();
    move |config| {
        let mapping = Mapping::new("x", &base_url, &Limits::default()).expect("a legal mapping");
        config.repositories.add_fixed(mapping);
        // A cached Identify would contain the old values.
        config.cache.enabled = false;
    }
}

#[test]
fn granularity_follows_identify() {
    let mixed = || stamped(0..3, "", &[1], "<datestamp>2020-01-01T03:04:05Z</datestamp>");
    for (granularity, expected) in [
        ("YYYY-MM-DD", ["2020-01-01", "2020-01-01", "2020-01-01"]),
        ("YYYY-MM-DDThh:mm:ssZ", ["2020-01-01T00:00:00Z", "2020-01-01T03:04:05Z", "2020-01-01T00:00:00Z"]),
    ] {
        let source = source_of(mixed(), move |received| {
            says(received, "Identify").then(|| identify("2011-01-01", granularity))
        });
        let configure = repository(&source);
        let proxy = Proxy::with(&configure);
        assert_eq!(stamps(&proxy.get(LIST).text()), ["2020-01-01", "2020-01-01T03:04:05Z", "2020-01-01"]);
        assert_eq!(proxy.get("/x?verb=Identify").status, 200);
        let got = proxy.get(LIST);
        assert_eq!(stamps(&got.text()), expected, "{granularity}");
        assert!(strict::read(&got.body).is_ok(), "{}", got.text());
        let proxy = proxy.restarted(&configure);
        assert_eq!(stamps(&proxy.get(LIST).text()), expected, "{granularity}");
    }
}

#[test]
fn granularity_of_the_mapping_applies_to_identify() {
    let list = stamped(0..2, "", &[0, 1], "<datestamp>2020-01-01T03:04:05Z</datestamp>");
    let source = source_of(list, |received| {
        says(received, "Identify").then(|| identify("2011-01-01T00:00:00Z", "YYYY-MM-DDThh:mm:ssZ"))
    });
    let proxy =
        Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.granularity = Some(Granularity::Day));
    let said = proxy.get("/x?verb=Identify").text();
    assert!(said.contains("<granularity>YYYY-MM-DD</granularity>"), "{said}");
    assert!(said.contains("<earliestDatestamp>2011-01-01</earliestDatestamp>"), "{said}");
    assert_eq!(stamps(&proxy.get(LIST).text()), ["2020-01-01", "2020-01-01"]);
}

#[test]
fn granularity_change_is_detected() {
    let source = Source::start(|number, received| {
        let granularity = if number == 0 { "YYYY-MM-DD" } else { "YYYY-MM-DDThh:mm:ssZ" };
        let earliest = if number == 0 { "2011-01-01" } else { "2011-01-01T00:00:00Z" };
        if says(received, "Identify") {
            Reply::xml(identify(earliest, granularity))
        } else {
            Reply::xml(stamped(0..1, "", &[0], "<datestamp>2020-01-01T03:04:05Z</datestamp>"))
        }
    });
    let proxy = Proxy::with(repository(&source));
    assert!(proxy.get("/x?verb=Identify").text().contains("<granularity>YYYY-MM-DD</granularity>"));
    assert_eq!(stamps(&proxy.get(LIST).text()), ["2020-01-01"]);
    let said = proxy.get("/x?verb=Identify").text();
    assert!(said.contains("<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>"), "{said}");
    assert_eq!(stamps(&proxy.get(LIST).text()), ["2020-01-01T03:04:05Z"]);
}

#[test]
fn earliest_datestamp_is_lowered_to_known_records() {
    let old = stamped(0..3, "", &[1], "<datestamp>2007-11-05</datestamp>");
    let source =
        source_of(old, |received| says(received, "Identify").then(|| identify("2011-01-01", "YYYY-MM-DD")));
    let configure = repository(&source);
    let proxy = Proxy::with(&configure);
    let earliest = |proxy: &Proxy| {
        let said = proxy.get("/x?verb=Identify").text();
        let (_, behind) = said.split_once("<earliestDatestamp>").expect("it is there");
        behind.split('<').next().unwrap_or_default().to_owned()
    };
    assert_eq!(earliest(&proxy), "2011-01-01");
    assert_eq!(proxy.get(LIST).status, 200);
    assert_eq!(earliest(&proxy), "2007-11-05");
    let proxy = proxy.restarted(&configure);
    assert_eq!(earliest(&proxy), "2007-11-05");
}

#[test]
fn cached_identify_is_invalidated_by_an_older_record() {
    let old = stamped(0..3, "", &[1], "<datestamp>2007-11-05</datestamp>");
    let source =
        source_of(old, |received| says(received, "Identify").then(|| identify("2011-01-01", "YYYY-MM-DD")));
    let base_url = source.base_url();
    let configure = |config: &mut Config| config.map("x", &base_url).expect("a legal mapping");
    let proxy = Proxy::with(configure);
    let says_earliest = |proxy: &Proxy, date: &str| {
        let said = proxy.get("/x?verb=Identify").text();
        assert!(said.contains(&format!("<earliestDatestamp>{date}</earliestDatestamp>")), "{date}: {said}");
    };
    for _ in 0..2 {
        says_earliest(&proxy, "2011-01-01");
    }
    assert_eq!(questions(&source, "Identify"), 1, "it is kept");
    assert_eq!(proxy.get(LIST).status, 200);
    for _ in 0..2 {
        says_earliest(&proxy, "2007-11-05");
    }
    assert_eq!(questions(&source, "Identify"), 2, "the right one is kept");
    let proxy = proxy.restarted(configure);
    says_earliest(&proxy, "2007-11-05");
}

#[test]
fn lower_bound_does_not_change_the_profile() {
    let source = source_of(stamped(0..3, "", &[1], ""), |received| {
        if says(received, "Identify") {
            return Some(identify("2011-01-01", "YYYY-MM-DD"));
        }
        (!says(received, "ListRecords")).then(|| error("idDoesNotExist"))
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get("/x?verb=ListRecords&metadataPrefix=oai_dc&from=1900-01-01").text();
    assert_eq!(stamps(&got)[1], "1900-01-01");
    let said = proxy.get("/x?verb=Identify").text();
    assert!(said.contains("<earliestDatestamp>2011-01-01</earliestDatestamp>"), "{said}");
}

/// Before anybody asked for Identify, a repaired datestamp gets the granularity that Identify names.
#[test]
fn repaired_datestamps_follow_the_granularity_of_identify() {
    let cases = [
        ("2020-02-03T10:11:12", "2020-02-03", "2020-02-03T10:11:12Z"),
        ("2020-02-03 10:11:12", "2020-02-03", "2020-02-03T10:11:12Z"),
        ("2020-02-03T10:11:12.5Z", "2020-02-03", "2020-02-03T10:11:12Z"),
        ("2020-02-03T10:11:12+02:00", "2020-02-03", "2020-02-03T08:11:12Z"),
        ("20200203101112", "2020-02-03", "2020-02-03T10:11:12Z"),
        ("20200203", "2020-02-03", "2020-02-03T00:00:00Z"),
    ];
    for (raw, day, second) in cases {
        for (granularity, expected) in [("YYYY-MM-DD", day), ("YYYY-MM-DDThh:mm:ssZ", second)] {
            let with = format!("<datestamp>{raw}</datestamp>");
            let source = source_of(stamped(0..3, "", &[1], &with), move |received| {
                says(received, "Identify").then(|| identify("2011-01-01", granularity))
            });
            let proxy = Proxy::tuned(&source, |mapping| {
                mapping.source_mut().repairs.provenance = Some(ProvenanceScope::All)
            });
            for request in 0..2 {
                let got = proxy.get(LIST);
                assert!(strict::read(&got.body).is_ok(), "{}", got.text());
                let all = stamps(&got.text());
                assert_eq!(all.len(), 6, "{}", got.text());
                assert_eq!(all[2], expected, "{raw} {granularity}, request {request}");
                let of_source = if raw == "20200203" { day } else { second };
                assert_eq!(all[3], of_source, "{raw} {granularity}, request {request}: provenance");
            }
            assert_eq!(questions(&source, "Identify"), 1, "{raw} {granularity}");
        }
    }
}

/// Without a repaired datestamp nobody asks for Identify. An Identify that fails is asked for once.
#[test]
fn granularity_is_requested_at_most_once_per_response() {
    let source = source_of(page(0..3, ""), |_| None);
    assert_eq!(Proxy::of(&source).get(LIST).status, 200);
    assert_eq!(questions(&source, "Identify"), 0);
    let list = stamped(0..400, "", &[1, 200, 399], "<datestamp>2020-02-03 10:11:12</datestamp>");
    let source = Source::start(move |_, received| {
        if says(received, "Identify") { Reply::whole(500, "", "no") } else { Reply::xml(list.clone()) }
    });
    let got = Proxy::of(&source).get(LIST).text();
    assert_eq!(got.matches("<datestamp>2020-02-03T10:11:12Z</datestamp>").count(), 3, "{got}");
    assert_eq!(questions(&source, "Identify"), 1);
}
