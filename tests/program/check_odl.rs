//! `oaimend check --profile odl`: a server of ODL-Search passes, and each fault fails its own rule.

use crate::fixtures::provider::Fault::{EditOne, Nothing};
use crate::fixtures::provider::Provider;
use crate::fixtures::provider::When::{Always, Is};
use crate::fixtures::source::{ReceivedRequest, Reply, Source};
use oaimend_check::{Profile, RULES, Verdict};
use serde_json::Value;
use std::process::Command;

/// The rules that a case of this file breaks.
pub(crate) const FAILING: [&str; 6] =
    ["odl-description", "odl-search", "odl-hits", "odl-ranges", "odl-format", "odl-sets"];

/// The fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    Description,
    Search,
    NoHits,
    TooFewHits,
    FromZero,
    ExclusiveStop,
    Format,
    Sets,
}

#[test]
fn each_fault_of_a_search_fails_its_rule() {
    for (fault, fails) in [
        (Fault::Nothing, None),
        (Fault::Description, Some("odl-description")),
        (Fault::Search, Some("odl-search")),
        (Fault::NoHits, Some("odl-hits")),
        (Fault::TooFewHits, Some("odl-hits")),
        (Fault::FromZero, Some("odl-ranges")),
        (Fault::ExclusiveStop, Some("odl-ranges")),
        (Fault::Format, Some("odl-format")),
        (Fault::Sets, Some("odl-sets")),
    ] {
        let source = start(fault);
        let report = check(&["--profile", "odl"], &source);
        let findings = report["rules"].as_array().expect("the findings");
        let failed: Vec<&str> = findings
            .iter()
            .filter(|finding| finding["verdict"] == Verdict::Fails.name())
            .filter_map(|finding| finding["rule"].as_str())
            .collect();
        assert_eq!(failed, fails.into_iter().collect::<Vec<_>>(), "{fault:?}: {report:#}");
        let demanded = RULES.iter().filter(|entry| Profile::Odl.demand(entry.rule).is_some());
        assert_eq!(findings.len(), demanded.count(), "{report:#}");
    }
}

#[test]
fn searches_are_sent_for_their_profile_only() {
    let source = start(Fault::Nothing);
    check(&[], &source);
    assert!(source.requests().iter().all(|request| !request.target.contains("odlsearch1")));
}

fn start(fault: Fault) -> Source {
    let described = "<description><odl-description xmlns=\"http://oai.dlib.vt.edu/odl/\">\
        <protocol>ODL-Search</protocol><version>1.0</version></odl-description></description></Identify>";
    let edit = if fault == Fault::Description { Nothing } else { EditOne("</Identify>", described) };
    let (provider, _) = Provider::default().script(Is("verb=Identify"), edit);
    let (plain, _) = Provider::default().script(Always, Nothing);
    Source::start(move |number, received| {
        let query = received.target.split_once('?').map_or("", |(_, query)| query);
        let set = query.split('&').find_map(|pair| pair.strip_prefix("set=odlsearch1%2F"));
        match set {
            Some(set) => search(fault, received, query, set),
            None if query == "verb=ListSets" && fault != Fault::Sets => {
                envelope(received, "<error code=\"noSetHierarchy\">the sets are queries</error>")
            }
            None if query == "verb=Identify" => provider(number, received),
            None => plain(number, received),
        }
    })
}

/// The response to a search, which finds three records.
fn search(fault: Fault, received: &ReceivedRequest, query: &str, set: &str) -> Reply {
    let parts: Vec<&str> = set.split("%2F").collect();
    let [_, start, stop] = parts.as_slice() else { panic!("not a search: {set}") };
    let [mut start, mut stop] = [start, stop].map(|number| number.parse::<usize>().expect("a number"));
    if fault == Fault::Search {
        return envelope(received, "<error code=\"noRecordsMatch\">nothing</error>");
    }
    if fault == Fault::Format && !query.contains("metadataPrefix") {
        return envelope(received, "<error code=\"badArgument\">no metadataPrefix</error>");
    }
    if fault == Fault::FromZero {
        (start, stop) = (start + 1, stop + 1);
    }
    if fault == Fault::ExclusiveStop {
        stop = stop.saturating_sub(1);
    }
    let header = |number: usize| {
        format!(
            "<header><identifier>oai:source.example:{number}</identifier>\
             <datestamp>2020-01-01T00:00:00Z</datestamp></header>"
        )
    };
    let headers: String = (start..=stop).filter(|number| (1..=3).contains(number)).map(header).collect();
    let hits = match fault {
        Fault::NoHits => String::new(),
        Fault::TooFewHits => "<responseContainer><hits>0</hits></responseContainer>".to_owned(),
        _ => "<responseContainer><hits>3</hits></responseContainer>".to_owned(),
    };
    let list = if headers.is_empty() {
        "<error code=\"noRecordsMatch\">nothing</error>".to_owned()
    } else {
        format!("<ListIdentifiers>{headers}</ListIdentifiers>")
    };
    envelope(received, &format!("{list}{hits}"))
}

fn envelope(received: &ReceivedRequest, content: &str) -> Reply {
    let host = &received.headers["host"];
    Reply::xml(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>2026-01-02T03:04:05Z</responseDate><request>http://{host}/oai</request>{content}</OAI-PMH>"
    ))
}

/// The report of a check as JSON.
fn check(options: &[&str], source: &Source) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_oaimend"))
        .args(["check", "--format", "json"])
        .args(options)
        .arg(source.base_url())
        .output()
        .expect("the program runs");
    serde_json::from_slice(&output.stdout).expect("the report is JSON")
}
