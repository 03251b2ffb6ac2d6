//! Records of each format, converted by each crosswalk.

use crate::conversion::NotConverted;
use crate::source_record::SourceRecord;
use crate::table::{BUILT_IN, BuiltIn, Crosswalk, SchemaPlace, find_built_in};
use crate::unconverted::Unconverted;
use oaimend_record::{RecordDocument, WorkDescription};
use oaimend_repository::DeliveredRecord;
use oaimend_store::RecordRepairs;
use oaimend_test_support::{root, strict};
use std::fmt::Write as _;
use std::process::Command;
use tokio::runtime::Builder;

const MARCXML: &str = "<m:record xmlns:m='http://www.loc.gov/MARC21/slim'><m:leader>00000nab a2200000 a 4500</m:leader>\
    <m:controlfield tag='008'>010203s2001    gw            000 0 ger d</m:controlfield>\
    <m:datafield tag='020' ind1=' ' ind2=' '><m:subfield code='a'>978-3-16-148410-0 (pbk.)</m:subfield></m:datafield>\
    <m:datafield tag='024' ind1='7' ind2=' '><m:subfield code='a'>10.1000/1</m:subfield></m:datafield>\
    <m:datafield tag='100' ind1='1' ind2=' '><m:subfield code='a'>Doe, Jane,</m:subfield><m:subfield code='0'>(orcid)0000-0002-1825-0097</m:subfield></m:datafield>\
    <m:datafield tag='245' ind1='0' ind2='0'><m:subfield code='a'>Main :</m:subfield><m:subfield code='b'>sub /</m:subfield></m:datafield>\
    <m:datafield tag='264' ind1=' ' ind2='1'><m:subfield code='b'>Publisher,</m:subfield><m:subfield code='c'>[2001]</m:subfield></m:datafield>\
    <m:datafield tag='300' ind1=' ' ind2=' '><m:subfield code='a'>12 p.</m:subfield></m:datafield>\
    <m:datafield tag='520' ind1=' ' ind2=' '><m:subfield code='a'>Abstract</m:subfield></m:datafield>\
    <m:datafield tag='650' ind1=' ' ind2='0'><m:subfield code='a'>Cats</m:subfield></m:datafield>\
    <m:datafield tag='651' ind1=' ' ind2='0'><m:subfield code='a'>Bonn</m:subfield></m:datafield>\
    <m:datafield tag='710' ind1='2' ind2=' '><m:subfield code='a'>Institute</m:subfield></m:datafield>\
    <m:datafield tag='773' ind1='0' ind2=' '><m:subfield code='t'>Journal,</m:subfield><m:subfield code='g'>Vol. 24, no. 9 (2001), p. 235-248</m:subfield><m:subfield code='x'>0378-5955</m:subfield></m:datafield>\
    <m:datafield tag='856' ind1='4' ind2='0'><m:subfield code='u'>https://e.org/1?a=1&amp;b=é</m:subfield></m:datafield>\
    <m:datafield tag='856' ind1='4' ind2='2'><m:subfield code='u'>https://e.org/toc.pdf</m:subfield></m:datafield></m:record>";
const MODS: &str = "<mods xmlns='http://www.loc.gov/mods/v3'><titleInfo xml:lang='ger'><title>Titel</title></titleInfo>\
    <titleInfo type='alternative'><title>Other</title></titleInfo><name type='personal'><namePart>Doe, Jane</namePart></name>\
    <typeOfResource>text</typeOfResource><genre>book</genre><originInfo><publisher>P</publisher><dateIssued>ca. 1900</dateIssued></originInfo>\
    <language><languageTerm type='text'>Klingon</languageTerm></language><identifier type='hdl'>1/2</identifier></mods>";
const DATACITE: &str = "<resource xmlns='http://datacite.org/schema/kernel-4'><identifier identifierType='DOI'>10.1000/1</identifier>\
    <creators><creator><creatorName nameType='Organizational'>Institute</creatorName></creator></creators>\
    <titles><title>T</title></titles><publisher>P</publisher><publicationYear>2001</publicationYear>\
    <resourceType resourceTypeGeneral='Dataset'>Data</resourceType>\
    <rightsList><rights rightsURI='https://creativecommons.org/licenses/by/4.0/'>CC BY</rights></rightsList></resource>";
const ETD_MS: &str = "<thesis xmlns='http://www.ndltd.org/standards/metadata/etdms/1.1/'><title>T</title><creator>Doe, Jane</creator>\
    <date>2001-05-06</date><degree><name>PhD</name><discipline>History</discipline></degree></thesis>";
const EAD: &str = "<ead xmlns='urn:isbn:1-931666-22-9'><eadheader><eadid>E 1</eadid></eadheader><archdesc level='collection'><did>\
    <unittitle>Papers</unittitle><unitdate>1899-1950</unitdate></did></archdesc></ead>";
const LIDO: &str = "<l:lido xmlns:l='http://www.lido-schema.org'><l:descriptiveMetadata><l:objectIdentificationWrap><l:titleWrap>\
    <l:titleSet><l:appellationValue>A</l:appellationValue></l:titleSet></l:titleWrap></l:objectIdentificationWrap>\
    </l:descriptiveMetadata></l:lido>";
const EDM: &str = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:edm='http://www.europeana.eu/schemas/edm/' \
    xmlns:dc='http://purl.org/dc/elements/1.1/'><edm:ProvidedCHO rdf:about='#1'><dc:title xml:lang='fr'>T</dc:title>\
    <edm:type>IMAGE</edm:type></edm:ProvidedCHO></rdf:RDF>";
const HOSTILE: &str = "<dc xmlns='http://purl.org/dc/elements/1.1/'><title xml:lang='\"x'>]]&gt; &lt;/metadata> &amp;lt; \u{85}\u{feff}</title>\
    <title xml:lang='zh_hant-TW'>漢字</title><creator>&#9;&quot;&apos;</creator><date>0001</date><date>2001-13-40</date>\
    <identifier>javascript:alert(1)</identifier><identifier>https://e.org/\"&lt;x>?&amp;</identifier>\
    <language>x-klingon</language><format>text/html; charset=x</format><source>S</source><relation>R</relation>\
    <rights>https://e.org/ l</rights><type>?</type></dc>";
const TITLE_ALONE: &str = "<dc xmlns='http://purl.org/dc/elements/1.1/'><title>T</title></dc>";

/// A record of each format.
const RECORDS: [(&str, &str); 9] = [
    ("marcxml", MARCXML),
    ("mods", MODS),
    ("datacite", DATACITE),
    ("etdms", ETD_MS),
    ("ead", EAD),
    ("lido", LIDO),
    ("edm", EDM),
    ("hostile", HOSTILE),
    ("title", TITLE_ALONE),
];

const PUBLIC_URL: &str = "https://x.example/oai?a&b";

fn record(payload: &str) -> DeliveredRecord {
    DeliveredRecord {
        identifier: "oai:x:1&<2>".to_owned(),
        datestamp: "2024-05-06".to_owned(),
        deleted: false,
        set_specs: Vec::new(),
        xml: format!(
            "<record><header><identifier>oai:x:1&amp;&lt;2></identifier><datestamp>2024-05-06</datestamp></header>\
             <metadata>{payload}</metadata></record>"
        ),
        datestamp_at: 0..0,
        repairs: RecordRepairs::default(),
    }
}

fn convert(prefix: &str, source_prefix: &str, payload: &str) -> Result<String, Unconverted> {
    let record = record(payload);
    let source = SourceRecord::read(&record, source_prefix)?;
    let crosswalk = Crosswalk::built_in(find_built_in(prefix).expect("a row"), PUBLIC_URL);
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(crosswalk.conversion.convert(&source)).map_err(|refused| match refused {
        NotConverted::Record(why) => why,
        NotConverted::Now(failure) => panic!("{failure:?}"),
    })
}

/// All conversions: the row, the name of the record, and the result.
fn all() -> impl Iterator<Item = (&'static BuiltIn, &'static str, String)> {
    BUILT_IN.iter().flat_map(|row| {
        RECORDS.iter().map(move |(name, payload)| {
            let converted = convert(row.prefix, name, payload);
            (row, *name, converted.unwrap_or_else(|why| panic!("{} of {name}: {why:?}", row.prefix)))
        })
    })
}

#[test]
fn every_crosswalk_writes_its_format_from_every_format() {
    for (row, name, xml) in all() {
        let about = format!("{} of {name}: {xml}", row.prefix);
        let element = strict::read(xml.as_bytes()).unwrap_or_else(|error| panic!("{error}: {about}"));
        assert_eq!(element.namespace, row.namespace, "{about}");
        let schema = match row.schema {
            SchemaPlace::Elsewhere(url) => url.to_owned(),
            SchemaPlace::Here(path) => format!("{PUBLIC_URL}{path}"),
        };
        let location = element.attributes.iter().find(|(_, name, _)| name == "schemaLocation");
        let location =
            location.map(|(_, _, value)| value.split(' ').collect::<Vec<_>>()).expect("a location");
        assert!(location.chunks(2).any(|pair| pair == [row.namespace, &schema]), "{about}");
        assert_eq!(
            convert(row.prefix, name, RECORDS.iter().find(|(other, _)| *other == name).expect("it").1),
            Ok(xml)
        );
    }
}

#[test]
fn official_schemas_accept_every_crosswalk() {
    let Some(schemas) = schemas() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut importing =
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:all'>".to_owned();
    let of_json_ld = folder.path().join("schema_org.xsd");
    std::fs::write(&of_json_ld, super::json_ld::SCHEMA).expect("a writable folder");
    let mut import = |namespace: &str, location: &str| {
        let _ = write!(importing, "<xs:import namespace='{namespace}' schemaLocation='{location}'/>");
    };
    let mut imported = Vec::new();
    import("http://datacite.org/schema/kernel-4", "http://schema.datacite.org/meta/kernel-4/metadata.xsd");
    for row in BUILT_IN.iter().filter(|row| row.prefix != "DIDL.identifiers") {
        let location = match row.schema {
            SchemaPlace::Elsewhere(url) => {
                let is_there = schemas.join(url.trim_start_matches("http://")).exists();
                if !is_there {
                    println!("skipped: the schema of {} is not there", row.prefix);
                    continue;
                }
                url.to_owned()
            }
            SchemaPlace::Here(_) => of_json_ld.display().to_string(),
        };
        import(row.namespace, &location);
        imported.push(row.namespace);
    }
    importing.push_str("</xs:schema>");
    std::fs::write(folder.path().join("all.xsd"), importing).expect("a writable folder");
    let mut names = Vec::new();
    // A wrapper contains the metadata as it is, also if it breaks its schema.
    let is_judged = |row: &BuiltIn, name: &str| {
        imported.contains(&row.namespace) && !(row.prefix == "mets" && name == "hostile")
    };
    for (number, (row, name, xml)) in all().enumerate().filter(|(_, (row, name, _))| is_judged(row, name)) {
        let file = format!("{number}-{}-{name}.xml", row.prefix);
        std::fs::write(folder.path().join(&file), xml).expect("a writable folder");
        names.push(file);
    }
    let output = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema", "all.xsd"])
        .args(&names)
        .current_dir(folder.path())
        .env("XML_CATALOG_FILES", schemas.join("catalog.xml"))
        .output()
        .expect("xmllint runs");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert_eq!(messages.matches(" validates").count(), names.len(), "{messages}");
}

/// The folder of the official schemas; `None` if it or xmllint is missing, and not required.
fn schemas() -> Option<std::path::PathBuf> {
    let output = Command::new(root().join("scripts/crosswalk-schemas")).output().expect("a shell");
    let has_xmllint = Command::new("xmllint").arg("--version").output().is_ok();
    if output.status.success() && has_xmllint {
        return Some(String::from_utf8_lossy(&output.stdout).trim().into());
    }
    let is_required = std::env::var("OAIMEND_CROSSWALK_SCHEMAS").is_ok_and(|value| value == "required");
    assert!(
        !is_required,
        "the schemas or xmllint are missing: scripts/crosswalk-schemas install, scripts/xmllint install"
    );
    println!(
        "skipped: the schemas or xmllint are missing; scripts/crosswalk-schemas install, scripts/xmllint install"
    );
    None
}

/// The work that a converted record describes.
fn read_again(xml: &str) -> WorkDescription {
    let record = format!("<record><metadata>{xml}</metadata></record>");
    WorkDescription::of(&RecordDocument::read(&record).expect("well-formed"))
}

#[test]
fn what_is_converted_says_the_same() {
    let expected = read_again(MARCXML);
    for prefix in ["oai_dc", "oai_datacite", "mods"] {
        let work = read_again(&convert(prefix, "marcxml", MARCXML).expect("a record"));
        let of = |work: &WorkDescription| {
            let core = work.core.clone();
            (core.titles, core.creators, core.contributors, core.publishers, core.subjects, core.descriptions)
        };
        assert_eq!(of(&work), of(&expected), "{prefix}");
        assert_eq!(work.published.map(|date| date.year()), Some(2001), "{prefix}");
        assert_eq!(work.links.doi(), Some("10.1000/1"), "{prefix}");
        assert_eq!(work.language().as_deref(), Some("de"), "{prefix}");
    }
    let mods = read_again(&convert("mods", "marcxml", MARCXML).expect("a record"));
    assert_eq!(mods.container, expected.container);
    for prefix in ["oai_datacite", "mods"] {
        let work = read_again(&convert(prefix, "marcxml", MARCXML).expect("a record"));
        assert_eq!(work.creators[0].orcid, expected.creators[0].orcid, "{prefix}");
    }
}

#[test]
fn languages_of_texts_are_kept() {
    for (prefix, payload, expected) in [
        ("oai_dc", MODS, "<dc:title xml:lang=\"de\">Titel</dc:title><dc:title>Other</dc:title>"),
        ("mods", EDM, "<titleInfo><title xml:lang=\"fr\">T</title></titleInfo>"),
        ("oai_datacite", EDM, "<titles><title xml:lang=\"fr\">T</title></titles>"),
        ("oai_dc", HOSTILE, "<dc:title xml:lang=\"zh-hant-TW\">漢字</dc:title>"),
    ] {
        let xml = convert(prefix, "x", payload).expect("a record");
        assert!(xml.contains(expected), "{xml}");
    }
}

#[test]
fn missing_mandatory_properties_of_datacite_have_the_codes_of_the_standard() {
    let xml = convert(
        "oai_datacite",
        "oai_dc",
        "<dc xmlns='http://purl.org/dc/elements/1.1/'><subject>s</subject></dc>",
    );
    let xml = xml.expect("a record");
    for part in [
        "<datacentreSymbol>:unav</datacentreSymbol>",
        "<identifier identifierType=\"OAI\">oai:x:1&amp;&lt;2&gt;</identifier><creators>",
        "<creators><creator><creatorName>:unav</creatorName></creator></creators>",
        "<titles><title>:unav</title></titles><publisher>:unav</publisher><publicationYear>0000</publicationYear>",
        "<resourceType resourceTypeGeneral=\"Other\">:unav</resourceType>",
    ] {
        assert!(xml.contains(part), "{part} {xml}");
    }
    assert!(!xml.contains("<dates") && !xml.contains("<descriptions"), "{xml}");
}

#[test]
fn a_wrapper_has_an_identifier_of_its_own_and_those_of_its_content() {
    let didl = convert("didl", "marcxml", MARCXML).expect("a record");
    let reduced = convert("DIDL.identifiers", "marcxml", MARCXML).expect("a record");
    let mets = convert("mets", "marcxml", MARCXML).expect("a record");
    let wrapper = |xml: &str| {
        let start = xml.find("urn:uuid:").expect("an identifier");
        xml[start..start + 45].to_owned()
    };
    assert!(wrapper(&didl) != wrapper(&reduced) && wrapper(&didl) != wrapper(&mets));
    let version = wrapper(&didl);
    assert!(version[23..].starts_with('8') && version[9..].split('-').count() == 5, "{version}");
    for xml in [&didl, &reduced] {
        for content in
            ["oai:x:1&amp;&lt;2&gt;", "https://doi.org/10.1000/1", "https://e.org/1?a=1&amp;b=%C3%A9"]
        {
            assert!(xml.contains(&format!("<dii:Identifier>{content}</dii:Identifier>")), "{content} {xml}");
        }
    }
    assert!(didl.contains("<dcterms:modified>2024-05-06T00:00:00Z</dcterms:modified>"), "{didl}");
    assert!(didl.contains(" xmlns:m='http://www.loc.gov/MARC21/slim'><m:leader>"), "{didl}");
    assert!(!reduced.contains("Resource") && !reduced.contains("Doe"), "{reduced}");
    for part in [
        "CREATEDATE=\"2024-05-06T00:00:00Z\"",
        "OBJID=\"oai:x:1&amp;&lt;2&gt;\"",
        "<mets:altRecordID TYPE=\"URL\">https://doi.org/10.1000/1</mets:altRecordID>",
        "<mets:mdWrap MDTYPE=\"MARC\"><mets:xmlData><m:record ",
    ] {
        assert!(mets.contains(part), "{part} {mets}");
    }
    let other = convert("mets", "x", "<a xmlns='urn:a'/>").expect("any format is wrapped");
    assert!(
        other.contains("MDTYPE=\"OTHER\" OTHERMDTYPE=\"x\"")
            && other.contains("<a xmlns='urn:a'/></mets:xmlData>"),
        "{other}"
    );
}

#[test]
fn json_ld_is_a_text() {
    let xml = convert("schema_org", "oai_dc", HOSTILE).expect("a record");
    let element = strict::read(xml.as_bytes()).expect("well-formed");
    let json: serde_json::Value = serde_json::from_str(&element.text).expect("JSON");
    assert_eq!(json["name"][0], "]]> </metadata> &lt; \u{feff}");
    assert_eq!(json["identifier"]["value"], "oai:x:1&<2>");
    assert_eq!((json.get("url"), json.get("@id")), (None, None));
}

#[test]
fn records_past_the_limits_are_not_cut() {
    let dc = |fields: &str| format!("<dc xmlns='http://purl.org/dc/elements/1.1/'>{fields}</dc>");
    let creators: String = (0..1_000).map(|number| format!("<creator>Doe, {number}</creator>")).collect();
    for (prefix, element) in [("mods", "<name>"), ("oai_datacite", "<creator>"), ("oai_dc", "<dc:creator>")] {
        let xml = convert(prefix, "oai_dc", &dc(&creators)).expect("a record");
        assert_eq!(xml.matches(element).count(), 1_000);
    }
    let long =
        |bytes: usize| dc(&format!("<title>T</title><description>{}</description>", "x".repeat(bytes)));
    for row in BUILT_IN {
        assert!(convert(row.prefix, "oai_dc", &long(1 << 20)).is_ok(), "{}", row.prefix);
        assert_eq!(
            convert(row.prefix, "oai_dc", &long(10 << 20)),
            Err(Unconverted::TooLong),
            "{}",
            row.prefix
        );
        let many = dc(&"<subject>s</subject>".repeat(50_000));
        assert_eq!(convert(row.prefix, "oai_dc", &many), Err(Unconverted::TooLong), "{}", row.prefix);
    }
}

#[test]
fn a_record_that_says_nothing_is_not_converted() {
    for prefix in ["oai_dc", "oai_datacite", "mods", "schema_org"] {
        for payload in [
            "<a xmlns='urn:a'>text</a>",
            "<dc xmlns='http://purl.org/dc/elements/1.1/'><title> </title></dc>",
        ] {
            assert_eq!(convert(prefix, "x", payload), Err(Unconverted::NothingRead), "{prefix} {payload}");
        }
    }
    for (prefix, payload) in [("oai_dc", "<a>&nbsp;</a>"), ("didl", "text"), ("mets", "<a><b></a>")] {
        assert_eq!(convert(prefix, "x", payload), Err(Unconverted::Unreadable), "{payload}");
    }
}
