//! `oaimend check --schema-dir`: records are validated against the schemas of a folder.
//!
//! The tests need xmllint, which `scripts/xmllint install` installs. Without it they are skipped, and the captured
//! output of the test says so. With `OAIMEND_XMLLINT=required` they fail instead.

use crate::fixtures::provider::Fault::{Edit, EditOne, Nothing};
use crate::fixtures::provider::When::Is;
use crate::fixtures::provider::{Fault, Provider};
use crate::fixtures::source::{Reply, Source};
use crate::fixtures::xmllint::is_xmllint_missing;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

#[test]
fn valid_payloads_hold() {
    if is_xmllint_missing() {
        return;
    }
    let found = check_with(&[DC, DC_ELEMENTS], Nothing);
    assert_eq!(found, ["holds", LIST, "100 records in oai_dc"].map(str::to_owned));
}

#[test]
fn a_payload_that_breaks_its_schema_fails() {
    if is_xmllint_missing() {
        return;
    }
    let found = check_with(&[DC, DC_ELEMENTS], EditOne("2019-05-04", "2019-5-4"));
    assert_eq!(found[..2], ["fails", LIST]);
    let place = "oai:source.example:3, line 8: Element '{http://purl.org/dc/elements/1.1/}date': ";
    assert!(found[2].starts_with(place) && found[2].contains("2019-5-4"), "{}", found[2]);
}

#[test]
fn formats_without_a_schema_are_not_judged() {
    if is_xmllint_missing() {
        return;
    }
    let found = check_with(&[OTHER], EditOne("2019-05-04", "2019-5-4"));
    let received = "no schema for oai_dc (\"http://www.openarchives.org/OAI/2.0/oai_dc/\")";
    assert_eq!(found, ["not judged", "verb=ListMetadataFormats", received].map(str::to_owned));
}

#[test]
fn other_formats_are_requested_and_validated() {
    if is_xmllint_missing() {
        return;
    }
    for (year, verdict, received) in [
        ("2024", "holds", "2 records in other"),
        ("MMXXIV", "fails", "oai:source.example:2, line 9: Element '{urn:other}year': "),
    ] {
        let (script, _) =
            Provider::default().script(Is("verb=ListMetadataFormats"), Edit(FORMATS_END, OTHER_FORMAT));
        let source = Source::start(move |number, received| {
            if received.target.contains("metadataPrefix=other") {
                Reply::xml(LIST_OF_OTHER.replace("YEAR", year))
            } else {
                script(number, received)
            }
        });
        let found = check(&source, &[OTHER]);
        assert_eq!(found[..2], [verdict, "verb=ListRecords&metadataPrefix=other"]);
        assert!(found[2].starts_with(received), "{}", found[2]);
    }
}

#[test]
fn a_document_type_never_reaches_the_validator() {
    if is_xmllint_missing() {
        return;
    }
    let declared = "<!DOCTYPE OAI-PMH [<!ENTITY a \"b\">]>\n<OAI-PMH xmlns";
    let found = check_with(&[DC, DC_ELEMENTS], EditOne("<OAI-PMH xmlns", declared));
    assert_eq!(found[..2], ["not judged", LIST]);
    assert!(found[2].contains("document type declaration"), "{}", found[2]);
}

#[test]
fn a_folder_that_is_no_use_is_a_usage_error() {
    if is_xmllint_missing() {
        return;
    }
    for (files, expected) in [
        (&[][..], "has no .xsd file with a targetNamespace"),
        (&[DC, DC], "are both schemas for \"http://www.openarchives.org/OAI/2.0/oai_dc/\""),
        (&[INCOMPLETE], "do not compile: "),
        (&["<schema"], "0.xsd is not a schema: "),
    ] {
        let folder = folder_of(files);
        let output = run("http://127.0.0.1:9/oai", folder.path());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{message}");
        assert!(message.contains(expected), "{expected}: {message}");
    }
    let output = run("http://127.0.0.1:9/oai", Path::new("/no/such/folder"));
    assert_eq!(output.status.code(), Some(74));
}

#[test]
fn a_missing_xmllint_is_named() {
    let folder = folder_of(&[OTHER]);
    let output = program("http://127.0.0.1:9/oai", folder.path()).env("PATH", "/nowhere").output();
    let output = output.expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(64), "{message}");
    assert!(message.contains("need the program xmllint") && message.contains("libxml2-utils"), "{message}");
}

/// Checks the valid repository with a fault; returns the verdict, request and response of the rule.
fn check_with(schemas: &[&str], fault: Fault) -> [String; 3] {
    let (source, _) = Provider::default().start(Is(LIST), fault);
    check(&source, schemas)
}

fn check(source: &Source, schemas: &[&str]) -> [String; 3] {
    let folder = folder_of(schemas);
    let output = run(&source.base_url(), folder.path());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    let findings = report["rules"].as_array().expect("a list of rules");
    let finding = findings.iter().find(|finding| finding["rule"] == "payload-schema").expect("the rule");
    ["verdict", "request", "received"].map(|key| finding[key].as_str().expect("a text").to_owned())
}

fn folder_of(schemas: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, schema) in schemas.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number}.xsd")), schema)
            .expect("the folder can be written to");
    }
    folder
}

fn run(url: &str, schemas: &Path) -> Output {
    program(url, schemas).output().expect("the program runs")
}

fn program(url: &str, schemas: &Path) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    program.args(["check", "--format", "json", "--schema-dir"]).arg(schemas).arg(url);
    program
}

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

/// A schema for dc that imports the schema of its elements by a web address.
const DC: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    targetNamespace="http://www.openarchives.org/OAI/2.0/oai_dc/">
  <xs:import namespace="http://purl.org/dc/elements/1.1/" schemaLocation="http://schemas.example/elements.xsd"/>
  <xs:element name="dc"><xs:complexType><xs:choice maxOccurs="unbounded">
    <xs:any namespace="http://purl.org/dc/elements/1.1/" processContents="lax"/>
  </xs:choice></xs:complexType></xs:element>
</xs:schema>"#;
const DC_ELEMENTS: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    targetNamespace="http://purl.org/dc/elements/1.1/"><xs:element name="date" type="xs:date"/></xs:schema>"#;

/// A schema that needs another one.
const INCOMPLETE: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:x"
    xmlns:y="urn:y"><xs:import namespace="urn:y"/><xs:element name="x" type="y:type"/></xs:schema>"#;

/// A schema of another format.
const OTHER: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:other">
  <xs:element name="year" type="xs:gYear"/></xs:schema>"#;
const FORMATS_END: &str = "</ListMetadataFormats>";
const OTHER_FORMAT: &str = "<metadataFormat><metadataPrefix>other</metadataPrefix>\
    <schema>http://source.example/other.xsd</schema><metadataNamespace>urn:other</metadataNamespace>\
    </metadataFormat></ListMetadataFormats>";
const LIST_OF_OTHER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">
<responseDate>2026-01-02T03:04:05Z</responseDate>
<request verb="ListRecords" metadataPrefix="other">http://source.example/oai</request>
<ListRecords>
<record><header><identifier>oai:source.example:1</identifier><datestamp>2020-01-01T00:00:00Z</datestamp></header>
<metadata><year xmlns="urn:other">2023</year></metadata></record>
<record><header><identifier>oai:source.example:2</identifier><datestamp>2020-01-01T00:00:00Z</datestamp></header>
<metadata><year xmlns="urn:other">YEAR</year></metadata></record>
</ListRecords></OAI-PMH>
"#;
