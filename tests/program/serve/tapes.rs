//! A tape is served as a repository with all six verbs, and only with its own index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oaimend_tape::{
    BuiltTape, OnDuplicate, TapeBuild, TapeDescription, TapeFormat, TapeRecord, TapeSet, index_path,
};

use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::fetch;
use crate::fixtures::static_files::Kept;
use crate::fixtures::static_lists::{between, error, from_on, page, pages, token};

fn record(number: usize, prefix: &str) -> TapeRecord {
    let is_deleted = number % 50 == 49;
    let metadata = format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\
         <dc:title>Letter {number}</dc:title></oai_dc:dc>"
    );
    TapeRecord {
        identifier: format!("oai:letters.example:{number}"),
        datestamp: format!("20{:02}-01-{:02}T00:00:{:02}Z", number / 100, number % 28 + 1, number % 60),
        prefix: Some(prefix.to_owned()),
        set_specs: vec![if number.is_multiple_of(2) { "a:even" } else { "b" }.to_owned()],
        is_deleted,
        metadata: if is_deleted { String::new() } else { metadata },
        abouts: Vec::new(),
    }
}

fn description(id: &str) -> TapeDescription {
    let namespace = "http://www.openarchives.org/OAI/2.0/oai_dc/".to_owned();
    let schema = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd".to_owned();
    TapeDescription {
        id: id.to_owned(),
        repository_name: Some("Letters & maps".to_owned()),
        admin_emails: vec!["keeper@letters.example".to_owned()],
        formats: vec![TapeFormat { prefix: "oai_dc".to_owned(), schema, namespace }],
        sets: vec![TapeSet { set_spec: "b".to_owned(), name: "B & more".to_owned() }],
        ..TapeDescription::default()
    }
}

fn write_tape(path: &Path, id: &str, records: impl Iterator<Item = TapeRecord>) -> BuiltTape {
    let mut build = TapeBuild::begin(path, description(id)).expect("a writable folder");
    records.for_each(|record| build.add(&record).expect("a record"));
    build.finish(OnDuplicate::KeepNewest).expect("a tape")
}

struct Fixture {
    _folder: tempfile::TempDir,
    path: PathBuf,
    kept: Kept,
}

fn fixture(count: usize) -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("letters.xml.gz");
    write_tape(&path, "urn:test:1", (0..count).map(|number| record(number, "oai_dc")));
    let kept = Kept::mapped(&format!("tape_file = {:?}\n", path.display().to_string()));
    Fixture { _folder: folder, path, kept }
}

fn numbers(pages: &[String]) -> Vec<usize> {
    let mut numbers: Vec<usize> =
        pages.iter().flat_map(|page| crate::fixtures::static_lists::identifiers(page)).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn all_verbs_answer_from_the_tape() {
    let fixture = fixture(250);
    let proxy = fixture.kept.serve();
    let identify = page(&proxy, "verb=Identify");
    for part in [
        "<repositoryName>Letters &amp; maps</repositoryName>",
        "<adminEmail>keeper@letters.example</adminEmail>",
        "<earliestDatestamp>2000-01-01T00:00:00Z</earliestDatestamp>",
        "<deletedRecord>persistent</deletedRecord>",
        "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>",
    ] {
        assert!(identify.contains(part), "{part}: {identify}");
    }
    let all: Vec<usize> = (0..250).collect();
    for verb in ["ListRecords", "ListIdentifiers"] {
        let listed = pages(&proxy, verb, "metadataPrefix=oai_dc");
        assert_eq!(listed.len(), 3);
        assert_eq!(numbers(&listed), all, "{verb}");
        let deleted: usize =
            listed.iter().map(|page| page.matches("<header status=\"deleted\">").count()).sum();
        assert_eq!(deleted, 5);
        assert!(listed[0].contains("completeListSize=\"250\" cursor=\"0\""), "{}", listed[0]);
    }
    let sets = page(&proxy, "verb=ListSets");
    assert_eq!(between(&sets, "<setSpec>", "</setSpec>"), ["a", "a:even", "b"]);
    assert!(sets.contains("<setName>B &amp; more</setName>"), "{sets}");
    for (arguments, expected) in [
        ("set=a", all.iter().copied().filter(|number| number % 2 == 0).collect::<Vec<_>>()),
        ("from=2001-01-05T00:00:04Z&until=2001-01-05T00:00:04Z", vec![]),
        ("from=2001-01-01&until=2001-12-31", (100..200).collect()),
        ("set=b&from=2002-01-01", (200..250).filter(|number| number % 2 == 1).collect()),
    ] {
        let query = format!("metadataPrefix=oai_dc&{arguments}");
        if expected.is_empty() {
            assert_eq!(error(&proxy, &format!("verb=ListRecords&{query}")), "noRecordsMatch");
        } else {
            assert_eq!(numbers(&pages(&proxy, "ListRecords", &query)), expected, "{arguments}");
        }
    }
    let one = page(&proxy, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:letters.example:7");
    assert!(one.contains("<dc:title>Letter 7</dc:title>"), "{one}");
    assert!(
        page(&proxy, "verb=ListMetadataFormats&identifier=oai:letters.example:7")
            .contains("<metadataPrefix>oai_dc<")
    );
    for (query, code) in [
        ("verb=ListMetadataFormats&identifier=oai:letters.example:49", "noMetadataFormats"),
        ("verb=ListMetadataFormats&identifier=none", "idDoesNotExist"),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=none", "idDoesNotExist"),
        ("verb=GetRecord&metadataPrefix=marc&identifier=oai:letters.example:7", "cannotDisseminateFormat"),
        ("verb=ListRecords&metadataPrefix=marc", "cannotDisseminateFormat"),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=none", "noRecordsMatch"),
        ("verb=ListRecords&resumptionToken=x", "badResumptionToken"),
        ("verb=ListSets&resumptionToken=x", "badResumptionToken"),
    ] {
        assert_eq!(error(&proxy, query), code, "{query}");
    }
    let state = &proxy.admin_json("/-/repositories/x")["tape_file"];
    assert_eq!((&state["records"], &state["tape_id"]), (&250.into(), &"urn:test:1".into()), "{state}");
}

#[test]
fn lists_of_a_replaced_tape_lose_and_repeat_no_record() {
    let fixture = fixture(250);
    let proxy = fixture.kept.serve();
    let first = page(&proxy, "verb=ListRecords&metadataPrefix=oai_dc");
    let token = token(&first).expect("a longer list");
    write_tape(&fixture.path, "urn:test:2", (0..300).map(|number| record(number, "oai_dc")));
    // The ledger knows what the harvester has, so the list continues in the new tape without these records.
    let rest =
        from_on(&proxy, "ListRecords", page(&proxy, &format!("verb=ListRecords&resumptionToken={token}")));
    let all = [&[first], rest.as_slice()].concat();
    assert_eq!(numbers(&all), (0..300).collect::<Vec<_>>(), "each once");
    let unknown = token.replacen(".100.", ".101.", 1);
    assert_eq!(error(&proxy, &format!("verb=ListRecords&resumptionToken={unknown}")), "badResumptionToken");
    let listed = pages(&proxy, "ListRecords", "metadataPrefix=oai_dc&until=2099-01-01");
    assert_eq!(numbers(&listed).len(), 300);
}

/// The text of a response that says why the tape cannot be served.
#[track_caller]
fn unavailable(proxy: &Proxy, query: &str) -> String {
    let got = fetch(proxy.address(), &format!("/x?{query}"));
    assert_eq!(got.status, 503, "{query}: {}", got.text());
    got.text()
}

#[test]
fn a_tape_without_its_own_index_is_unavailable_and_never_shorter() {
    let damages: [fn(&Path); 5] = [
        |tape| fs::remove_file(index_path(tape)).expect("a file"),
        |tape| fs::write(index_path(tape), "text").expect("a disk"),
        |tape| {
            let mut index = fs::read(index_path(tape)).expect("a file");
            let middle = index.len() / 2;
            index[middle] ^= 1;
            fs::write(index_path(tape), index).expect("a disk");
        },
        |tape| {
            let bytes = fs::read(tape).expect("a tape");
            fs::write(tape, &bytes[..bytes.len() - 20]).expect("a disk");
        },
        |tape| {
            let mut bytes = fs::read(tape).expect("a tape");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(tape, bytes).expect("a disk");
        },
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let fixture = fixture(3_000);
        damage(&fixture.path);
        let proxy = fixture.kept.serve();
        // Some lists may not touch the damage, but none of them ends early.
        let mut query = "verb=ListRecords&metadataPrefix=oai_dc".to_owned();
        let mut received = 0;
        let text = loop {
            let got = fetch(proxy.address(), &format!("/x?{query}"));
            if got.status != 200 {
                break unavailable(&proxy, &query);
            }
            received += crate::fixtures::static_lists::identifiers(&got.text()).len();
            query = match token(&got.text()) {
                Some(token) => format!("verb=ListRecords&resumptionToken={token}"),
                None => break String::new(),
            };
        };
        if text.is_empty() {
            // The damaged block of the index is not one that this list needs.
            assert_eq!((number, received), (2, 3_000));
            continue;
        }
        assert!(text.contains("the tape of x cannot be served"), "{number}: {text}");
        assert!(
            text.contains("oaimend tape index") || text.contains("oaimend tape verify"),
            "{number}: {text}"
        );
        assert!(!text.contains("letters.xml.gz"), "harvesters do not learn the path: {text}");
    }
}

#[test]
fn a_tape_is_in_the_static_set_of_the_index() {
    let fixture = fixture(3);
    let proxy = fixture.kept.serve();
    let index = proxy.get("/_index?verb=ListRecords&metadataPrefix=INDEX&set=static").text();
    assert!(index.contains("<kind>tape</kind>"), "{index}");
    assert!(index.contains("<setSpec>static</setSpec><setSpec>kind:tape</setSpec>"), "{index}");
}

/// The rules of the official validator.
#[test]
fn a_tape_passes_the_check_of_repositories() {
    let fixture = fixture(250);
    let proxy = fixture.kept.serve();
    let url = format!("http://{}/x", proxy.address());
    let mut check = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    let output = check.args(["check", "--format", "json", &url]).output().expect("the program runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rules = report["rules"].as_array().expect("a list of rules");
    let failed: Vec<_> = rules.iter().filter(|rule| rule["verdict"] == "fails").collect();
    assert_eq!((output.status.code(), &failed), (Some(0), &Vec::new()), "{report:#}");
}

#[test]
fn a_tape_of_days_refuses_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("days.xml.gz");
    let days = (0..3).map(|number| TapeRecord {
        datestamp: format!("2001-01-0{}", number + 1),
        ..record(number, "oai_dc")
    });
    write_tape(&path, "urn:test:1", days);
    let proxy = Kept::mapped(&format!("tape_file = {:?}\n", path.display().to_string())).serve();
    assert!(page(&proxy, "verb=Identify").contains("<granularity>YYYY-MM-DD</granularity>"));
    assert!(page(&proxy, "verb=Identify").contains("<deletedRecord>no</deletedRecord>"));
    let listed = pages(&proxy, "ListRecords", "metadataPrefix=oai_dc&from=2001-01-02&until=2001-01-02");
    assert_eq!(numbers(&listed), [1]);
    assert_eq!(
        error(&proxy, "verb=ListRecords&metadataPrefix=oai_dc&from=2001-01-02T00:00:00Z"),
        "badArgument"
    );
}
