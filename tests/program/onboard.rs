//! `oaimend onboard`: 40 providers with different faults, the files that it writes, and the lists that it reads.

use crate::fixtures::provider::Fault::{
    self, Edit, EditOne, Encoding, Gzip, Nothing, OtherHost, Page, PutOff, Redirect, Says, Status, Twice,
    Without,
};
use crate::fixtures::provider::Provider;
use crate::fixtures::provider::When::{self, Always, Has};
use crate::fixtures::source::{ReceivedRequest, Reply, Source};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const IDENTIFY: When = Has("verb=Identify");
const FORMATS: When = Has("verb=ListMetadataFormats");
const RECORDS: When = Has("verb=ListRecords");
const HTML: Fault = Page("text/html", "<html><body>Maintenance</body></html>");

/// A provider with one fault, and the expected result and part of its details.
type Expectation = (&'static str, When, Fault, &'static str, &'static str);

#[rustfmt::skip]
const FAULTS: &[Expectation] = &[
    ("none", Always, Nothing, "works", "OAI-PMH 2.0, 100 of 250 records"),
    ("gzip", Always, Gzip, "works", "100 of 250 records"),
    ("gzip-twice", Always, Encoding("gzip, gzip", 2), "works", "100 of 250 records"),
    ("wrong-type", Always, Fault::ContentType("text/plain"), "works", "100 of 250 records"),
    ("redirect", Always, Redirect(301), "works", "100 of 250 records"),
    ("other-host", Always, OtherHost, "fails", "Identify (redirect)"),
    ("deferred", IDENTIFY, PutOff(503, "Retry-After: 1"), "works", "100 of 250 records"),
    ("control", RECORDS, EditOne("Title", "Ti\u{8}tle"), "repaired", "1 repairs"),
    ("ampersand", RECORDS, EditOne("Title", "R & D"), "repaired", "1 repairs"),
    ("unknown-entity", RECORDS, EditOne("Title", "&nosuch;"), "repaired", "1 repairs"),
    ("html-entity", RECORDS, EditOne("Title", "&eacute;"), "repaired", "1 repairs"),
    ("unclosed", RECORDS, EditOne("</dc:title>", ""), "repaired", "repairs"),
    ("no-date", RECORDS, Without("<datestamp>", "</datestamp>"), "repaired", "1 repairs"),
    ("no-identifier", RECORDS, Without("<identifier>", "</identifier>"), "incomplete", "1 in quarantine"),
    ("blank-first", Always, Edit("<?xml", "\n <?xml"), "repaired", "repairs"),
    ("no-declaration", Always, Edit("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", ""), "repaired", "3 repairs"),
    ("no-response-date", IDENTIFY, Without("<responseDate>", "</responseDate>"), "repaired", "repairs"),
    ("two-dates", IDENTIFY, Twice("<responseDate>", "</responseDate>"), "repaired", "repairs"),
    ("no-email", IDENTIFY, Without("<adminEmail>", "</adminEmail>"), "works", "100 of 250 records"),
    ("no-name", IDENTIFY, Without("<repositoryName>", "</repositoryName>"), "works", "100 of 250 records"),
    ("no-deleted", IDENTIFY, Without("<deletedRecord>", "</deletedRecord>"), "works", "100 of 250 records"),
    ("wrong-granularity", IDENTIFY, Edit("YYYY-MM-DDThh:mm:ssZ", "yyyy"), "works", "100 of 250 records"),
    ("empty-list", RECORDS, Says("<error code=\"noRecordsMatch\">none</error>"), "works", "noRecordsMatch"),
    ("no-oai-dc", FORMATS, Edit("oai_dc", "marc"), "works", "cannotDisseminateFormat"),
    ("no-formats", FORMATS, Says("<error code=\"badVerb\">none</error>"), "works", "100 of 250 records"),
    ("cut", RECORDS, Without("</ListRecords>", "</OAI-PMH>"), "repaired", "2 repairs"),
    ("html", Always, HTML, "fails", "Identify (html-page)"),
    ("html-records", RECORDS, HTML, "incomplete", "ends early (html-page)"),
    ("empty-body", Always, Page("text/xml", ""), "fails", "Identify (empty-body)"),
    ("rss", Always, Page("text/xml", "<rss/>"), "fails", "Identify (no-oai-pmh)"),
    ("not-coded", Always, Encoding("gzip", 0), "works", "100 of 250 records"),
    ("html-formats", FORMATS, HTML, "fails", "ListMetadataFormats (html-page)"),
    ("gone", Always, Status(410), "works", "100 of 250 records"),
];

/// Sources whose connections or methods misbehave.
fn hard_sources() -> Vec<(&'static str, Source, &'static str, &'static str)> {
    let (provider, _) = Provider::default().script(Always, Nothing);
    let by_post = move |number: usize, request: &ReceivedRequest| {
        if request.method == "POST" { provider(number, request) } else { Reply::whole(405, "", "no") }
    };
    let (page, _) = Provider::default().script(Always, Nothing);
    let truncated = move |number: usize, request: &ReceivedRequest| {
        let reply = page(number, request);
        if request.target.contains("ListRecords") { reply.cut(3_000) } else { reply }
    };
    let status = |status| move |_: usize, _: &ReceivedRequest| Reply::whole(status, "", "no");
    vec![
        ("post-only", Source::start(by_post), "works", "POST only"),
        ("truncated", Source::start(truncated), "incomplete", "ends early (incomplete)"),
        ("status-404", Source::start(status(404)), "fails", "Identify (status)"),
        ("status-401", Source::start(status(401)), "fails", "Identify (status)"),
        (
            "not-http",
            Source::start(|_, _| Reply::raw("220 mail ready\r\n")),
            "fails",
            "Identify (http-protocol)",
        ),
        ("certificate", Source::start_tls(|_, _| Reply::xml("")), "fails", "Identify (tls-certificate)"),
    ]
}

fn onboard(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.arg("onboard").args(arguments).current_dir(folder).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn forty_providers_get_mappings_or_reasons() {
    let mut sources = Vec::new();
    for (name, when, fault, result, details) in FAULTS {
        let (source, _) = Provider::default().start(*when, fault.clone());
        sources.push((*name, source, *result, *details));
    }
    sources.extend(hard_sources());
    let folder = tempfile::tempdir().expect("a folder");
    let mut list = String::from("id,base_url\n");
    for (name, source, ..) in &sources {
        list.push_str(&format!("{name},{}?verb=Identify\n", source.base_url()));
    }
    list.push_str("invalid,ftp://source.example/oai\n");
    fs::write(folder.path().join("list.csv"), list).expect("it is written");
    let output = onboard(
        folder.path(),
        &["list.csv", "--format", "json", "--parallel", "40", "--time-max-secs", "20"],
    );
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let rows = document["repositories"].as_array().expect("a list");
    assert_eq!(
        (rows.len(), sources.len(), output.status.code()),
        (40, 39, Some(1)),
        "{}",
        text(&output.stderr)
    );
    let by_id: BTreeMap<&str, &Value> =
        rows.iter().map(|row| (row["id"].as_str().unwrap_or(""), row)).collect();
    let mut wrong = Vec::new();
    for (name, _, result, details) in &sources {
        let row = by_id[name];
        let received = row["details"].as_str().unwrap_or_default();
        if row["result"] != *result || !received.contains(details) {
            wrong.push(format!(
                "{name}: expected {result} ({details}), received {} ({received})",
                row["result"]
            ));
        }
        let has_file = folder.path().join(format!("mappings/{name}.toml")).exists();
        assert_eq!(has_file, row["result"] != "fails", "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(rows.last().expect("the invalid one")["result"], "invalid");
    let validated =
        Command::new(env!("CARGO_BIN_EXE_oaimend")).arg("validate").current_dir(folder.path()).output();
    let validated = validated.expect("the program runs");
    assert!(validated.status.success(), "{}", text(&validated.stderr));
    let mapping =
        |name: &str| fs::read_to_string(folder.path().join(format!("mappings/{name}.toml"))).expect("it");
    assert!(mapping("post-only").contains("\nmethod = \"post\"\n"), "{}", mapping("post-only"));
    assert!(mapping("no-email").contains("\n# admin_email = "), "{}", mapping("no-email"));
    assert!(mapping("none").starts_with("# A repository\n# Probed on 2"), "{}", mapping("none"));
}

#[test]
fn known_repositories_stay_as_they_are() {
    let (source, _) = Provider::default().start(Always, Nothing);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("list"), source.base_url()).expect("it is written");
    let dry = onboard(folder.path(), &["list", "--dry-run"]);
    assert!(dry.status.success(), "{}", text(&dry.stdout));
    assert!(!folder.path().join("mappings").exists(), "{}", text(&dry.stdout));
    let first = onboard(folder.path(), &["list"]);
    assert!(text(&first.stdout).contains("1 of 1 repositories work; 1 mapping files written"));
    let file = folder.path().join("mappings/127.0.0.1.toml");
    let written = fs::read_to_string(&file).expect("it was written");
    fs::write(&file, format!("{written}user_agent = \"me\"\n")).expect("it is written");
    let requests = source.requests().len();
    let again = onboard(folder.path(), &["list"]);
    assert!(text(&again.stdout).contains("has a mapping file already"), "{}", text(&again.stdout));
    assert_eq!((again.status.code(), source.requests().len()), (Some(0), requests));
    assert!(fs::read_to_string(&file).expect("it is there").ends_with("user_agent = \"me\"\n"));
}

#[test]
fn tables_show_no_passwords_and_no_control_characters() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let long = format!("ftp://{}", "x".repeat(70_000));
    let list = format!("http://me:secret@127.0.0.1:9/oai\nftp://a/\x1b[2Jx\n{long}\n");
    fs::write(folder.path().join("list"), format!("http://127.0.0.1:9/oai\n{list}")).expect("it is written");
    for format in ["text", "json"] {
        let output = onboard(folder.path(), &["list", "--format", format, "--time-max-secs", "4"]);
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(!printed.contains("secret") && !printed.contains('\x1b'), "{printed}");
        assert!(printed.contains("***@127.0.0.1"), "{printed}");
    }
}

#[test]
fn lists_without_urls_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("list"), "<BaseURLs/>").expect("it is written");
    let output = onboard(folder.path(), &["list"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("list contains no base URL; expected"), "{}", text(&output.stderr));
}
