//! Crosswalks: formats that a repository lacks, live, mirrored and in the view of all repositories.

use super::xslt_worker::has_libxslt;
use crate::fixtures::mirror::{Answered, Mirror, ask, ask_once, deleted, live, pages, source};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::provider::Provider;
use crate::fixtures::source::{ReceivedRequest, Reply, Source, fetch};
use async_trait::async_trait;
use oaimend_crosswalks::{
    Conversion, ConvertedRecords, CrosswalkChoice, CrosswalkChoices, CrosswalkRepository, CrosswalkSettings,
    DerivedCollections, JSON_LD_SCHEMA, NotConverted, QuarantineSettings, SourceRecord,
};
use oaimend_mirror::view::{DerivedVersions, MirrorRepository, ViewOptions};
use oaimend_oai::ErrorCode;
use oaimend_repository::{Failure, Repository};
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::random::Random;
use oaimend_xslt::{WorkerProgram, XsltLimits, XsltWorker};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The repository of the provider, which has its records in MARCXML instead of `oai_dc`. The record 13 has no title.
fn marc_source() -> Source {
    Source::start(|_: usize, received: &ReceivedRequest| {
        let (_, query) = received.target.split_once('?').unwrap_or_default();
        let base_url = format!("http://{}/oai", received.headers["host"]);
        if query.contains("metadataPrefix=oai_dc") {
            let error = "<error code=\"cannotDisseminateFormat\">marcxml alone</error>";
            return Reply::xml(Provider::default().envelope(&base_url, query, error));
        }
        let of_provider = query.replace("metadataPrefix=marcxml", "metadataPrefix=oai_dc");
        Reply::xml(in_marcxml(&Provider::default().answer(&base_url, query, &of_provider)))
    })
}

/// The response with MARCXML in place of `oai_dc`.
fn in_marcxml(response: &str) -> String {
    let mut marcxml = String::new();
    let mut rest = response;
    while let Some((before, after)) = rest.split_once("<oai_dc:dc ") {
        let (dc, after) = after.split_once("</oai_dc:dc>").expect("an end");
        let title = dc.split("<dc:title>").nth(1).and_then(|rest| rest.split('<').next()).expect("a title");
        let subfields = if title == "Title 13" {
            String::new()
        } else {
            format!("<m:subfield code=\"a\">{title}</m:subfield>")
        };
        marcxml.push_str(before);
        marcxml.push_str(&format!(
            "<m:record xmlns:m=\"http://www.loc.gov/MARC21/slim\"><m:datafield tag=\"245\" ind1=\" \" ind2=\" \">\
             {subfields}</m:datafield></m:record>"
        ));
        rest = after;
    }
    marcxml.push_str(rest);
    marcxml.replace("<metadataPrefix>oai_dc<", "<metadataPrefix>marcxml<").replace(
        "<metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/<",
        "<metadataNamespace>http://www.loc.gov/MARC21/slim<",
    )
}

fn write_configuration(folder: &Path, url: &str) {
    std::fs::create_dir(folder.join("mappings")).expect("a writable folder");
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("writable");
    write("oaimend.toml", "[crosswalks]\noai_dc = \"built-in\"\nmods = \"built-in\"\n".to_owned());
    let rest = "allow_private = true\n[crosswalks]\nmods = \"off\"\nschema_org = \"built-in\"\n\"DIDL.identifiers\" = \"built-in\"\n";
    write("mappings/x.toml", format!("base_url = \"{url}\"\n{rest}"));
    write(
        "mappings/plain.toml",
        format!("base_url = \"{url}\"\n[crosswalks]\noai_dc = \"off\"\nmods = \"off\"\n"),
    );
}

#[test]
fn a_source_without_dublin_core_is_served_in_it() {
    let source = marc_source();
    let folder = tempfile::tempdir().expect("a folder");
    write_configuration(folder.path(), &source.base_url());
    let program = Program::start(folder.path(), &[]);
    let get = |target: &str| fetch(program.address(), target);
    let body = get("/x?verb=ListMetadataFormats").text();
    for prefix in ["marcxml", "oai_dc", "schema_org", "DIDL.identifiers"] {
        assert!(body.contains(&format!("<metadataPrefix>{prefix}<")), "{prefix} {body}");
    }
    let schema = format!("<schema>http://{}/_crosswalks/schema_org.xsd</schema>", program.address());
    assert!(!body.contains(">mods<") && body.contains(&schema), "{body}");
    assert_eq!(get("/_crosswalks/schema_org.xsd").text(), JSON_LD_SCHEMA);

    let (mut query, mut titles, mut headers) = ("&metadataPrefix=oai_dc".to_owned(), Vec::new(), 0);
    loop {
        let body = get(&format!("/x?verb=ListRecords{query}")).text();
        titles.extend(
            body.split("<dc:title>").skip(1).filter_map(|rest| rest.split('<').next()).map(str::to_owned),
        );
        headers += body.matches("<identifier>oai:source.example:").count();
        let token = body.split("<resumptionToken").nth(1).and_then(|rest| rest.split(['>', '<']).nth(1));
        match token {
            Some(token) if !token.is_empty() => query = format!("&resumptionToken={token}"),
            _ => break,
        }
    }
    let expected: Vec<String> = (0..250)
        .filter(|number| number % 100 != 7 && *number != 13)
        .map(|number| format!("Title {number}"))
        .collect();
    assert_eq!(titles, expected);
    assert_eq!(headers, 249, "deleted records are there, and the record without a title is not");
    let record = get("/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:source.example:13");
    assert_eq!(record.status, 502, "{}", record.text());
    let didl =
        get("/x?verb=GetRecord&metadataPrefix=DIDL:identifiers&identifier=oai:source.example:1").text();
    assert!(didl.contains("metadataPrefix=\"DIDL.identifiers\"") && didl.contains("<didl:DIDL "), "{didl}");
    let json = get("/x?verb=GetRecord&metadataPrefix=schema_org&identifier=oai:source.example:1").text();
    assert!(json.contains("&quot;name&quot;:&quot;Title 1&quot;"), "{json}");

    // Without crosswalks the source is as it is.
    let plain = get("/plain?verb=ListRecords&metadataPrefix=oai_dc").text();
    assert!(plain.contains("cannotDisseminateFormat"), "{plain}");
    let formats = get("/plain?verb=ListMetadataFormats").text();
    assert_eq!(formats.matches("<metadataFormat>").count(), 1, "{formats}");
}

/// A sheet that makes the title of a record in MARCXML, and fails for one without a title.
const SHEET: &str = "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'
    xmlns:m='http://www.loc.gov/MARC21/slim' xmlns:oaimend='urn:x-oaimend:sheet:1' exclude-result-prefixes='m oaimend'
    oaimend:source='marcxml' oaimend:schema='http://t.example/t.xsd' oaimend:namespace='urn:t'>
  <xsl:template match='/m:record'>
    <xsl:if test='not(m:datafield/m:subfield)'><xsl:message terminate='yes'>no title</xsl:message></xsl:if>
    <t xmlns='urn:t'><xsl:value-of select='m:datafield/m:subfield'/></t>
  </xsl:template>
</xsl:stylesheet>";

#[test]
fn a_sheet_of_the_operator_makes_a_format() {
    if !has_libxslt() {
        return;
    }
    let source = marc_source();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    write("mappings/t.xsl", SHEET);
    write("mappings/broken.xsl", &SHEET.replace("not(m:datafield/m:subfield)", "["));
    let (url, rest) = (source.base_url(), "[crosswalks]\nt = \"t.xsl\"\nbroken = \"broken.xsl\"\n");
    write("mappings/x.toml", &format!("base_url = \"{url}\"\nallow_private = true\n{rest}"));
    let program = Program::start(folder.path(), &[]);
    let get = |target: &str| fetch(program.address(), target);
    let formats = get("/x?verb=ListMetadataFormats").text();
    let described = "<metadataPrefix>t</metadataPrefix><schema>http://t.example/t.xsd</schema>";
    assert!(formats.split_whitespace().collect::<String>().contains(described), "{formats}");
    let list = get("/x?verb=ListRecords&metadataPrefix=t").text();
    assert!(list.contains("<t xmlns=\"urn:t\">Title 1</t>") && list.contains("<resumptionToken"), "{list}");
    assert!(list.contains("Title 12</t>") && !list.contains("oai:source.example:13<"), "{list}");
    let record = |prefix: &str, number: u32| {
        get(&format!("/x?verb=GetRecord&metadataPrefix={prefix}&identifier=oai:source.example:{number}"))
    };
    assert_eq!(record("t", 1).status, 200);
    let failed = record("t", 13);
    assert_eq!(failed.status, 502, "{}", failed.text());
    // The fault of the operator is not one of the records.
    let broken = record("broken", 1);
    assert_eq!(broken.status, 502);
    assert!(broken.text().contains("the sheet of this format cannot be used"), "{}", broken.text());
}

/// The rules of the official validator, which reads `oai_dc`.
#[test]
fn a_repository_with_crosswalks_passes_the_check() {
    let source = Source::start(|_: usize, received: &ReceivedRequest| {
        let (_, query) = received.target.split_once('?').unwrap_or_default();
        let base_url = format!("http://{}/oai", received.headers["host"]);
        let of_provider = query.replace("metadataPrefix=marcxml", "metadataPrefix=oai_dc");
        let answered = Provider::default().answer(&base_url, query, &of_provider);
        Reply::xml(in_marcxml(&answered.replace("Title 13<", "Title of 13<")))
    });
    let folder = tempfile::tempdir().expect("a folder");
    write_configuration(folder.path(), &source.base_url());
    let program = Program::run(serve(folder.path()).args(["--admin", "off"]));
    let url = format!("http://{}/x", program.address());
    let output = Command::new(env!("CARGO_BIN_EXE_oaimend"))
        .args(["check", "--format", "json", &url])
        .output()
        .expect("the program runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rules = report["rules"].as_array().expect("a list of rules");
    let failed: Vec<_> = rules.iter().filter(|rule| rule["verdict"] == "fails").collect();
    assert_eq!((output.status.code(), &failed), (Some(0), &Vec::new()), "{report:#}");
}

#[test]
fn faults_of_the_table_name_their_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[crosswalks]\noai_dc = \"on\"\nmod = \"built-in\"\nmarc21 = \"built-in\"\nx = \"none.xsl\"\ny = \"y.xsl\"\n";
    std::fs::write(folder.path().join("y.xsl"), "<a/>").expect("writable");
    std::fs::write(folder.path().join("oaimend.toml"), text).expect("writable");
    let output = Command::new(env!("CARGO_BIN_EXE_oaimend"))
        .args(["validate"])
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    let messages = [output.stdout, output.stderr].concat();
    let messages = String::from_utf8_lossy(&messages);
    for expected in [
        "oaimend.toml:2: crosswalks.oai_dc is \"on\": expected \"built-in\", \"off\" or a file that ends with .xsl",
        "oaimend.toml:3: there is no built-in crosswalk to \"mod\"; did you mean \"mods\"?",
        "oaimend.toml:4: there is no built-in crosswalk to \"marc21\"; expected one of oai_dc, ",
        "oaimend.toml:5: crosswalks.x is \"none.xsl\": the sheet cannot be read: ",
        "oaimend.toml:6: crosswalks.y is \"y.xsl\": the root of the sheet is no stylesheet of XSLT 1.0",
    ] {
        assert!(messages.contains(expected), "{expected}\n{messages}");
    }
}

/// The settings of a mirrored repository with these crosswalks.
fn settings(mirror: &Mirror, prefixes: &[&str]) -> CrosswalkSettings {
    let choices = prefixes.iter().map(|prefix| ((*prefix).to_owned(), CrosswalkChoice::BuiltIn));
    let worker = XsltWorker::new(WorkerProgram::this_program("none"), XsltLimits::default());
    let store = mirror.store();
    CrosswalkSettings {
        repository: "x".to_owned(),
        crosswalks: CrosswalkChoices(choices.collect()).crosswalks("http://proxy.example", &worker, None),
        known_formats: None,
        converted: ConvertedRecords::default(),
        collections: None,
        quarantine: QuarantineSettings {
            store: store.quarantine,
            bytes_max: 1 << 20,
            fails_pages: false,
            is_by_set: true,
        },
        spool_bytes_max: 1 << 20,
        token_key: store.token_key,
        clock: mirror.clock(),
    }
}

const START_SECS: i64 = 1_700_000_000;

#[test]
fn views_of_the_mirror_have_the_formats_too() {
    let mirror = Mirror::new(START_SECS);
    let all = ["oai_datacite", "mods", "didl", "DIDL.identifiers", "mets", "schema_org"];
    for id in ["a", "b"] {
        mirror.describe(id, &["oai_dc"], &[("s", "S")]);
        let records =
            (0..7).map(|number| live(&format!("oai:{id}:{number}"), &["s"], &format!("T &lt;{number}&gt;")));
        mirror.commit(
            id,
            "oai_dc",
            records.chain([deleted(&format!("oai:{id}:gone"), &["s"])]).collect(),
            true,
        );
        mirror.pass_time(100);
    }
    let of_one = CrosswalkRepository::new(Box::new(mirror.view("a", 3)), settings(&mirror, &all));
    let options = ViewOptions { page_records_max: 3, ..ViewOptions::default() };
    let aggregate = mirror.aggregate(options, vec![source("a"), source("b")]);
    let of_all = CrosswalkRepository::new(
        Box::new(aggregate),
        CrosswalkSettings { repository: "_all".to_owned(), ..settings(&mirror, &all) },
    );
    for (repository, expected) in [(&of_one, 8), (&of_all, 16)] {
        ask(repository, "verb=ListMetadataFormats").valid(Strictness::Schema);
        for prefix in all {
            let answered = pages(repository, &format!("verb=ListRecords&metadataPrefix={prefix}"), || {});
            let native = pages(repository, "verb=ListRecords&metadataPrefix=oai_dc", || {});
            for page in &answered {
                page.valid(Strictness::Schema);
            }
            let headers = |pages: &[Answered]| {
                let items = pages.iter().flat_map(|page| page.items());
                items
                    .map(|item| (item.identifier, item.datestamp, item.set_specs, item.is_deleted))
                    .collect::<Vec<_>>()
            };
            assert_eq!(headers(&answered).len(), expected, "{prefix}");
            assert_eq!(headers(&answered), headers(&native), "{prefix}");
            let identifiers =
                pages(repository, &format!("verb=ListIdentifiers&metadataPrefix={prefix}"), || {});
            assert_eq!(headers(&identifiers), headers(&native), "{prefix}");
            let one = ask(repository, &format!("verb=GetRecord&metadataPrefix={prefix}&identifier=oai:a:1"));
            one.valid(Strictness::Schema);
            assert!(answered.iter().any(|page| page.body.contains(&one.records[0].xml)), "{prefix}");
        }
        let gone = ask(repository, "verb=GetRecord&metadataPrefix=mods&identifier=oai:a:gone");
        assert!(gone.body.contains("status=\"deleted\""), "{}", gone.body);
        for (query, error) in [
            ("verb=GetRecord&metadataPrefix=mods&identifier=x", "idDoesNotExist"),
            ("verb=GetRecord&metadataPrefix=other&identifier=oai:a:1", "cannotDisseminateFormat"),
            ("verb=ListRecords&metadataPrefix=mods&until=2001-01-01", "noRecordsMatch"),
            ("verb=ListRecords&resumptionToken=oaicrosswalk1_x", "badResumptionToken"),
        ] {
            assert_eq!(ask(repository, query).kind(), error, "{query}");
        }
    }
    // A token of one view is none of the other, although both have the same format.
    let first = ask(&of_one, "verb=ListRecords&metadataPrefix=mods");
    let token = first.summary.page.token.expect("a token");
    assert_eq!(
        ask(&of_all, &format!("verb=ListRecords&resumptionToken={token}")).kind(),
        "badResumptionToken"
    );
}

/// Writes the version of the conversion beside the title.
#[derive(Debug)]
struct Versioned(u32);

#[async_trait]
impl Conversion for Versioned {
    async fn convert(&self, record: &SourceRecord<'_>) -> Result<String, NotConverted> {
        let title = record.work()?.core.titles.remove(0).value;
        Ok(format!("<v xmlns=\"urn:v\">{title} by {}</v>", self.0))
    }
}

/// The derived collections of a mirrored repository.
#[derive(Debug)]
struct Collections {
    view: MirrorRepository,
    versions: DerivedVersions,
}

#[async_trait]
impl DerivedCollections for Collections {
    async fn begin(&self, prefix: &str, version: &str) -> Result<Box<dyn Repository>, Failure> {
        Ok(Box::new(self.view.since(self.versions.begin(prefix, version).await?)))
    }

    async fn continue_list(&self, prefix: &str) -> Result<Box<dyn Repository>, Failure> {
        Ok(Box::new(self.view.since(self.versions.continue_list(prefix).await?)))
    }

    async fn is_current(&self, prefix: &str, version: &str) -> Result<bool, Failure> {
        Ok(self.versions.is_current(prefix, version).await?)
    }

    async fn note_native(&self, prefix: &str) -> Result<(), Failure> {
        Ok(self.versions.note_stored(prefix).await?)
    }
}

/// A mirrored repository with a format whose function changes, and a harvester of it.
struct Harvested {
    random: Random,
    mirror: Mirror,
    function: u32,
    /// The version of each record.
    records: BTreeMap<u32, u32>,
    changes: u32,
    /// What the harvester has: the text of each record.
    copy: BTreeMap<String, String>,
    from: Option<String>,
}

impl Harvested {
    fn new(seed: u64) -> Self {
        let mirror = Mirror::new(START_SECS);
        mirror.describe("x", &["oai_dc"], &[]);
        let random = Random::new(seed);
        let (records, copy) = (BTreeMap::new(), BTreeMap::new());
        let mut harvested = Self { random, mirror, function: 1, records, changes: 0, copy, from: None };
        (0..8).for_each(|number| harvested.commit(number));
        harvested
    }

    fn commit(&mut self, number: u32) {
        self.changes += 1;
        self.records.insert(number, self.changes);
        let record = live(&format!("oai:x:{number}"), &[], &format!("T{}", self.changes));
        self.mirror.commit("x", "oai_dc", vec![record], true);
    }

    fn repository(&self) -> CrosswalkRepository {
        let view = self.mirror.view("x", 3);
        let versions = DerivedVersions::new(self.mirror.stores(), "x".to_owned());
        let mut settings = settings(&self.mirror, &["mods"]);
        settings.crosswalks[0].version = self.function.to_string();
        settings.crosswalks[0].conversion = Arc::new(Versioned(self.function));
        settings.collections = Some(Arc::new(Collections { view: view.clone(), versions }));
        CrosswalkRepository::new(Box::new(view), settings)
    }

    /// A record or the function changes, or time passes.
    fn change(&mut self) {
        // Longer than the two hours that the mirror repeats, so that nothing is found by chance.
        let secs = [0, 1, 10, 10_000][self.random.below(4)];
        self.mirror.pass_time(secs);
        match self.random.below(4) {
            0 => self.function += 1,
            1 | 2 => {
                let number = self.random.below(8) as u32;
                self.commit(number);
            }
            _ => {}
        }
    }

    /// Harvests what has changed since the last harvest. Of a hundred pages, so many are followed by a change.
    fn harvest(&mut self, percent: usize) {
        let from = self.from.as_ref().map(|from| format!("&from={from}")).unwrap_or_default();
        let mut query = format!("verb=ListRecords&metadataPrefix=mods{from}");
        let mut found = BTreeMap::new();
        loop {
            let answered = ask_once(&self.repository(), &query);
            assert_eq!(answered.failure, None, "{query}");
            if answered.summary.page.error == Some(ErrorCode::BadResumptionToken) {
                // The function has changed in mid-list: the harvester begins again.
                return;
            }
            for record in &answered.records {
                let text =
                    record.xml.split("<v xmlns=\"urn:v\">").nth(1).and_then(|rest| rest.split('<').next());
                found.insert(record.identifier.clone(), text.expect("a text").to_owned());
            }
            let date = answered.summary.page.response_date.clone();
            match answered.summary.page.token {
                Some(token) => query = format!("verb=ListRecords&resumptionToken={token}"),
                None => {
                    self.copy.extend(found);
                    self.from = date;
                    return;
                }
            }
            if self.random.chance(percent) {
                self.change();
            }
        }
    }
}

#[test]
fn a_change_of_a_function_is_a_commit_to_all_records() {
    for seed in 0..10 {
        let mut harvested = Harvested::new(seed);
        for _ in 0..12 {
            for _ in 0..harvested.random.below(4) {
                harvested.change();
            }
            harvested.harvest(33);
        }
        harvested.mirror.pass_time(10_000);
        harvested.harvest(0);
        let function = harvested.function;
        let truth: BTreeMap<String, String> = harvested
            .records
            .iter()
            .map(|(number, version)| (format!("oai:x:{number}"), format!("T{version} by {function}")))
            .collect();
        assert_eq!(harvested.copy, truth, "seed {seed}");
    }
}
