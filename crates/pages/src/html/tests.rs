//! Whole record pages from hostile and unusual records.

use super::super::record::{RecordAddress, Related, RelatedRecord, RelatedRecords, RelatedWork, SameRecord};
use super::{FormatTab, Provenance, RecordPage};
use oaimend_html::Site;
use oaimend_record::{RecordDocument, WorkDescription};
use oaimend_store::{RecordRepair, RecordRepairs};

const FIELDS: &[&str] = &[
    "title",
    "creator",
    "contributor",
    "date",
    "description",
    "subject",
    "publisher",
    "type",
    "format",
    "language",
    "rights",
    "identifier",
    "source",
    "relation",
    "coverage",
];

/// A record in oai_dc with this identifier and these fields, as XML.
fn record(identifier: &str, fields: &str) -> String {
    format!(
        "<record xmlns=\"http://www.openarchives.org/OAI/2.0/\"><header><identifier>{identifier}</identifier>\
         <datestamp>2024-05-06</datestamp><setSpec>a:b</setSpec></header><metadata>\
         <oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{fields}</oai_dc:dc></metadata></record>"
    )
}

/// Links to a record with this identifier and title.
fn related(text: &str) -> Related {
    let record = RelatedRecord {
        repository: "y".to_owned(),
        identifier: text.to_owned(),
        title: Some(text.to_owned()),
    };
    let work = RelatedWork {
        field: "relation",
        basis: "mentioned",
        identifier: Some(("doi", text.to_owned())),
        records: vec![record.clone()],
    };
    let unknown = RelatedWork { records: Vec::new(), ..work.clone() };
    Related::Known(Box::new(RelatedRecords {
        cites: vec![work, unknown],
        same_as: vec![SameRecord { record, same_by: "doi" }],
        next: Some("1-2".to_owned()),
        ..RelatedRecords::default()
    }))
}

fn page(xml: &str) -> String {
    let document = RecordDocument::read(xml).expect("the record is well-formed");
    let work = WorkDescription::of(&document);
    let repair = RecordRepair { name: "bare-ampersand".into(), ..Default::default() };
    RecordPage {
        site: &Site::new("Site", Some("a@e.org"), "https://m.example/base").with_search(),
        repository_name: "A repository",
        address: RecordAddress { repository: "x", identifier: &document.identifier, format: None },
        document: &document,
        xml,
        work: &work,
        canonical: work.links.canonical(&document.identifier).map(|link| link.url.as_str()),
        formats: &[
            FormatTab { prefix: "oai_dc".into(), is_default: true, is_current: true },
            FormatTab { prefix: "marc21".into(), is_default: false, is_current: false },
        ],
        provenance: &Provenance {
            source_datestamp: "2024-05-06".into(),
            stamp: Some("2024-05-07T01:02:03Z".into()),
        },
        repairs: &RecordRepairs::new([repair].into_iter()),
        related: &related(&document.identifier),
    }
    .render()
}

/// A start tag: its name and its attributes.
type StartTag = (String, Vec<(String, String)>);

/// The start tags of a page, and the text of its script elements.
fn start_tags(page: &str) -> (Vec<StartTag>, Vec<String>) {
    let (mut tags, mut scripts, mut rest) = (Vec::new(), Vec::new(), page);
    while let Some((_, after)) = rest.split_once('<') {
        rest = after;
        if rest.starts_with(['/', '!']) {
            continue;
        }
        let name_len = rest.find([' ', '>']).unwrap_or(rest.len());
        let (name, mut inside) = rest.split_at(name_len);
        let mut attributes = Vec::new();
        while let Some(attribute) = inside.strip_prefix(' ') {
            let name_len = attribute.find(['=', ' ', '>']).unwrap_or(attribute.len());
            let (attribute_name, after) = attribute.split_at(name_len);
            let quoted = after.strip_prefix("=\"").and_then(|value| value.split_once('"'));
            let (value, after) = quoted.unwrap_or(("", after));
            attributes.push((attribute_name.to_owned(), value.to_owned()));
            inside = after;
        }
        assert!(inside.starts_with('>'), "a tag that a browser reads otherwise: {rest:.80}");
        rest = inside;
        if name == "script" {
            let (text, after) = inside.split_once("</script>").expect("the end of the script");
            scripts.push(text.trim_start_matches('>').to_owned());
            rest = after;
        }
        tags.push((name.to_owned(), attributes));
    }
    (tags, scripts)
}

/// Checks that a page contains no active content: known elements and attributes, links to `http` and `https` or inside
/// the site, and one script element that contains JSON without markup.
#[track_caller]
fn assert_inert(page: &str) {
    const ELEMENTS: &str = "html head meta title link script body a b header nav ol ul li bdi span main footer p article h1 \
        h2 div section dl dt dd time table caption thead tbody tr th td details summary pre code form input button";
    const ATTRIBUTES: &str = "lang dir class id href rel type name content charset tabindex scope datetime aria-label \
        aria-labelledby aria-current role property method action title autocomplete";
    let (tags, scripts) = start_tags(page);
    assert!(tags.len() > 40, "the tags were not found: {tags:?}");
    for (name, attributes) in &tags {
        assert!(ELEMENTS.split_whitespace().any(|known| known == name), "<{name}>");
        for (attribute, value) in attributes {
            assert!(ATTRIBUTES.split_whitespace().any(|known| known == attribute), "<{name} {attribute}>");
            let starts = ["http://", "https://", "/base/", "mailto:a@e.org", "#"];
            let is_link = starts.iter().any(|start| value.starts_with(start))
                && !value.contains(['\t', '\n', ' ', '<']);
            assert!(attribute != "href" || is_link, "<{name} href={value}>");
        }
    }
    let [json] = scripts.as_slice() else { panic!("{} script elements", scripts.len()) };
    assert!(!json.contains(['<', '>', '&']), "{json}");
    serde_json::from_str::<serde_json::Value>(json).expect("it is JSON");
}

#[test]
fn a_record_with_script_in_every_field_is_inert() {
    for text in [
        "&lt;script>alert(1)&lt;/script>",
        "\">&lt;img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "&lt;/title>&lt;/script>&lt;!--&lt;script>",
        "]]&gt;&lt;/pre>&lt;svg/onload=alert(1)>",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java&#9;script:alert(1)",
        "&#10;javascript:alert(1)",
        "data:text/html,&lt;script>alert(1)&lt;/script>",
        "https://e.org/\">&lt;script>alert(1)&lt;/script>",
        "http://e.org/&#9;&quot;x",
        "10.1000/\">&lt;script>",
        "hdl:1/\">&lt;script>",
        "urn:nbn:de:\">&lt;script>",
        "2024-01-01T\">&lt;script>",
    ] {
        let field =
            |name: &&str| format!("<dc:{name} xml:lang='{0}' x=\"{0}\">{0}</dc:{name}>", attribute(text));
        let fields: String = FIELDS.iter().map(field).collect();
        assert_inert(&page(&record(text, &fields)));
    }
}

fn attribute(text: &str) -> String {
    text.replace('\'', "&apos;").replace('"', "&quot;")
}

#[test]
fn a_record_without_title_is_named_by_its_identifier() {
    let page = page(&record("oai:x:1", ""));
    assert!(page.contains("<title>oai:x:1 – Site</title>"), "{page}");
    assert!(page.contains("<h1 class=\"untitled\">Record <bdi>oai:x:1</bdi></h1>"), "{page}");
    assert_inert(&page);
}

#[test]
fn identifiers_of_any_kind_have_working_urls() {
    for (identifier, encoded) in [
        ("oai:x:a/b c", "oai%3Ax%3Aa%2Fb%20c"),
        ("50%?#&amp;=+", "50%25%3F%23%26%3D%2B"),
        ("ü\"'&lt;漢", "%C3%BC%22%27%3C%E6%BC%A2"),
    ] {
        let page = page(&record(identifier, ""));
        for part in [
            format!("<link rel=\"canonical\" href=\"https://m.example/base/x/record/{encoded}\">"),
            format!("href=\"/base/x/record/{encoded}?format=marc21#fields\""),
            format!("<a href=\"/base/x/record/{encoded}.xml\">XML</a>"),
        ] {
            assert!(page.contains(&part), "{part} {page}");
        }
        assert_inert(&page);
    }
    let long = page(&record(&"é".repeat(2_000), ""));
    assert_inert(&long);
}

#[test]
fn text_from_right_to_left_has_its_direction() {
    let page = page(&record(
        "oai:x:1",
        "<dc:title xml:lang='ara'>أغاني الميناء DNA</dc:title><dc:description>שירי הנמל</dc:description>",
    ));
    assert!(page.contains("<h1 lang=\"ar\" dir=\"rtl\">أغاني"), "{page}");
    assert!(page.contains("<p class=\"abstract\" lang=\"\" dir=\"rtl\">שירי"), "{page}");
    assert_inert(&page);
}

#[test]
fn a_record_of_5_mb_has_a_page_of_less_than_2_mb() {
    let one = format!("<dc:description>{}</dc:description>", "x ".repeat(2_500_000));
    let many = "<dc:creator>A, B</dc:creator><dc:subject>c</dc:subject>".repeat(90_000);
    for fields in [one, many] {
        let page = page(&record("oai:x:1", &fields));
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
        assert!(page.contains("not shown"), "no mark");
        assert_inert(&page);
    }
}

#[test]
fn the_canonical_url_can_be_another_than_that_of_the_source() {
    let fields = "<dc:identifier>https://e.org/1</dc:identifier><dc:identifier>doi:10.1000/1</dc:identifier>";
    let page = page(&record("oai:x:1", fields));
    assert!(page.contains("<link rel=\"canonical\" href=\"https://doi.org/10.1000/1\">"), "{page}");
    assert!(page.contains("<a class=\"landing\" href=\"https://e.org/1\">Open at the source</a>"), "{page}");
    assert!(page.contains("content=\"https://m.example/base/x/record/oai%3Ax%3A1\""), "{page}");
}

#[test]
fn people_subjects_and_sets_are_links() {
    let page = page(&record(
        "oai:x:1",
        "<dc:creator>D, \"E\" (ORCID: 0000-0002-1825-0097)</dc:creator><dc:subject>a&amp;b</dc:subject>",
    ));
    for part in [
        "<a href=\"/base/_search?q=creator%3A%22D%2C++E+%22\"><bdi>D, &quot;E&quot;</bdi></a>",
        "href=\"https://orcid.org/0000-0002-1825-0097\" aria-label=\"ORCID of D, &quot;E&quot;\">ORCID</a>",
        "<a href=\"/base/_search?q=subject%3A%22a%26b%22\"><bdi>a&amp;b</bdi></a>",
        "<a href=\"/base/x/sets/a%3Ab/\"><bdi>a:b</bdi></a>",
    ] {
        assert!(page.contains(part), "{part} {page}");
    }
    assert_inert(&page);
}

#[test]
fn creators_and_subjects_that_are_not_shown_are_counted() {
    let page =
        page(&record("oai:x:1", &"<dc:subject>a</dc:subject><dc:creator>B, C</dc:creator>".repeat(42)));
    assert_eq!(page.matches("<li class=\"cut\">and 12 more</li>").count(), 2, "{page}");
}

#[test]
fn access_citations_and_long_titles_are_shown() {
    let title = "é".repeat(1_000);
    let page = page(&record(
        "oai:x:1",
        &format!(
            "<dc:title>{title}</dc:title><dc:identifier>https://e.org/1.pdf</dc:identifier><dc:coverage>Bonn</dc:coverage>\
             <dc:rights>info:eu-repo/semantics/openAccess</dc:rights><dc:source>Journal of X, 12(3), 45-67</dc:source>"
        ),
    ));
    for part in [
        "<span class=\"badge\">Open access</span>",
        "<dt>Full text</dt><dd><a href=\"https://e.org/1.pdf\">",
        "<dt>Published in</dt><dd lang=\"\" dir=\"ltr\">Journal of X, volume 12, issue 3, pages 45–67</dd>",
        "<dt>Coverage</dt>",
        "<a href=\"/base/x/record/oai%3Ax%3A1.bib\">BibTeX</a>",
        "<a href=\"/base/x/record/oai%3Ax%3A1?raw=oai_dc\">Metadata only</a>",
        "<meta property=\"og:type\" content=\"website\">",
    ] {
        assert!(page.contains(part), "{part} {page}");
    }
    let (_, rest) = page.split_once("<title>").expect("a title");
    let (shown, _) = rest.split_once("</title>").expect("its end");
    assert!(shown.len() < 330 && shown.contains("é…"), "{shown}");
}

#[test]
fn other_formats_and_prefixes_have_a_table() {
    let xml = "<o:record xmlns:o='http://www.openarchives.org/OAI/2.0/'><o:header><o:identifier>1</o:identifier>\
        </o:header><o:metadata><q:record xmlns:q='http://www.loc.gov/MARC21/slim'><q:datafield tag='245'>\
        <q:subfield code='a'>A title</q:subfield></q:datafield></q:record></o:metadata>\
        <o:about><p:provenance xmlns:p='urn:p'>P</p:provenance></o:about></o:record>";
    let page = page(xml);
    for part in [
        "<bdi>subfield</bdi>",
        ">A title</div>",
        "<bdi>http://www.loc.gov/MARC21/slim</bdi>",
        "About the metadata",
    ] {
        assert!(page.contains(part), "{part} {page}");
    }
    assert_inert(&page);
}

#[test]
fn the_page_says_where_the_record_comes_from() {
    let page = page(&record("oai:x:1", ""));
    for part in [
        "<dt>Changed at the source</dt><dd><time>2024-05-06</time></dd>",
        "<dt>Changed in the mirror</dt><dd><time>2024-05-07T01:02:03Z</time></dd>",
        "<dt>Sets</dt><dd><a href=\"/base/x/sets/a%3Ab/\"><bdi>a:b</bdi></a></dd>",
    ] {
        assert!(page.contains(part), "{part} {page}");
    }
    assert!(!page.contains("datetime="), "Zotero takes it for the date of the work: {page}");
}
