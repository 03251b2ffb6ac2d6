//! The three forms of the same works.

use super::{bibtex, csl_json, ris};
use crate::document::RecordDocument;
use crate::work::WorkDescription;
use serde_json::json;

const PAGE: &str = "https://m.org/x/record/1";

fn work(identifier: &str, fields: &str) -> WorkDescription {
    let xml = format!(
        "<record><header><identifier>{identifier}</identifier></header><metadata>\
         <a xmlns='http://purl.org/dc/elements/1.1/'>{fields}</a></metadata></record>"
    );
    WorkDescription::of(&RecordDocument::read(&xml).expect("the record is well-formed"))
}

fn article() -> WorkDescription {
    work(
        "oai:e.org:a/1",
        "<title>50% of {it}: a_b &amp; $c</title><creator>Doe, Jane</creator><creator>Black and White, Inc.</creator>\
         <date>2001-05-06</date><type>article</type><source>Journal of X, 12(3), 45-67</source><source>0378-5955</source>\
         <identifier>doi:10.1000/a_1</identifier><publisher>P</publisher><subject>s</subject><subject>t</subject>\
         <language>eng</language><description>A\nb</description><relation>https://e.org/1.pdf</relation>",
    )
}

#[test]
fn an_article_in_bibtex() {
    let expected = "@article{oai:e.org:a_1,\n  author = {Doe, Jane and {Black and White, Inc.}},\n  \
        title = {50\\% of \\textbraceleft{}it\\textbraceright{}: a\\_b \\& \\$c},\n  journal = {Journal of X},\n  \
        volume = {12},\n  number = {3},\n  pages = {45--67},\n  year = {2001},\n  month = {5},\n  publisher = {P},\n  \
        issn = {0378-5955},\n  doi = {10.1000/a_1},\n  url = {https://doi.org/10.1000/a_1},\n  language = {en},\n  \
        keywords = {s, t},\n  abstract = {A b},\n}\n";
    assert_eq!(bibtex(&article(), PAGE), expected);
}

#[test]
fn an_article_in_ris() {
    let expected = [
        "TY  - JOUR",
        "ID  - oai:e.org:a_1",
        "TI  - 50% of {it}: a_b & $c",
        "AU  - Doe, Jane",
        "AU  - Black and White, Inc.",
        "PY  - 2001",
        "DA  - 2001/05/06/",
        "T2  - Journal of X",
        "VL  - 12",
        "IS  - 3",
        "SP  - 45",
        "EP  - 67",
        "SN  - 0378-5955",
        "PB  - P",
        "DO  - 10.1000/a_1",
        "UR  - https://doi.org/10.1000/a_1",
        "L1  - https://e.org/1.pdf",
        "LA  - en",
        "KW  - s",
        "KW  - t",
        "AB  - A b",
        "ER  - ",
    ];
    assert_eq!(ris(&article(), PAGE).split_terminator("\r\n").collect::<Vec<_>>(), expected);
}

#[test]
fn an_article_in_csl_json() {
    let expected = json!({
        "id": "oai:e.org:a_1",
        "type": "article-journal",
        "author": [{"family": "Doe", "given": "Jane"}, {"family": "Black and White", "given": "Inc."}],
        "issued": {"date-parts": [[2001, 5, 6]]},
        "title": "50% of {it}: a_b & $c",
        "container-title": "Journal of X",
        "volume": "12",
        "issue": "3",
        "page": "45-67",
        "publisher": "P",
        "DOI": "10.1000/a_1",
        "URL": "https://doi.org/10.1000/a_1",
        "ISSN": "0378-5955",
        "language": "en",
        "keyword": "s, t",
        "abstract": "A b",
    });
    assert_eq!(csl_json(&article(), PAGE), expected);
}

#[test]
fn a_record_that_says_nothing_has_its_key_and_its_page() {
    let empty = work("", "");
    assert_eq!(bibtex(&empty, PAGE), format!("@misc{{record,\n  url = {{{PAGE}}},\n}}\n"));
    assert_eq!(ris(&empty, PAGE), format!("TY  - GEN\r\nID  - record\r\nUR  - {PAGE}\r\nER  - \r\n"));
    assert_eq!(csl_json(&empty, PAGE), json!({"id": "record", "type": "document", "URL": PAGE}));
}

#[test]
fn nothing_in_a_record_ends_a_field_or_a_line() {
    let value = "}} \\ {{{ \" ,\n\r\nER  - \r\n@article{x, \u{85}y \u{2028}~^ and % \u{9b}z";
    let field = |name: &str| format!("<{name}>{value}</{name}>");
    let names =
        ["title", "creator", "creator", "subject", "publisher", "description", "language", "identifier"];
    let hostile = work(value, &names.map(field).concat());
    let entry = bibtex(&hostile, PAGE);
    assert_eq!(entry.matches('{').count(), entry.matches('}').count(), "{entry}");
    let mut depth = 0_i32;
    for (place, character) in entry.char_indices() {
        depth += match character {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        assert!(
            depth > 0 || place < entry.find('{').unwrap_or_default() || place + 2 >= entry.len(),
            "{entry}"
        );
    }
    let key = entry.split(['{', ',']).nth(1).expect("a key");
    assert!(key.is_ascii() && !key.contains([' ', '{', '}', '"']), "{key}");
    for line in ris(&hostile, PAGE).split_terminator("\r\n") {
        let (tag, _) = line.split_once("  - ").expect("a tag");
        assert!(tag.len() == 2 && !line.contains(|c: char| c.is_control() || c == '\u{2028}'), "{line}");
    }
    assert_eq!(ris(&hostile, PAGE).matches("\r\nER").count(), 1);
}

#[test]
fn all_creators_are_in_a_citation_and_long_keys_are_bounded() {
    let many = work(&"é/".repeat(5_000), &"<creator>Doe, Jane</creator>".repeat(9_000));
    assert_eq!(bibtex(&many, PAGE).matches("Doe, Jane").count(), 9_000);
    assert_eq!(ris(&many, PAGE).matches("AU  - ").count(), 9_000);
    assert_eq!(csl_json(&many, PAGE)["author"].as_array().map(Vec::len), Some(9_000));
    assert_eq!(csl_json(&many, PAGE)["id"].as_str().map(str::len), Some(100));
}

#[test]
fn the_type_of_an_entry_depends_on_the_work() {
    for (kind, entry, reference, item) in [
        ("article", "misc", "JOUR", "article"),
        ("doctoralThesis", "phdthesis", "THES", "thesis"),
        ("masterThesis", "mastersthesis", "THES", "thesis"),
        ("book", "book", "BOOK", "book"),
        ("bookPart", "incollection", "CHAP", "chapter"),
        ("report", "techreport", "RPRT", "report"),
        ("dataset", "misc", "DATA", "dataset"),
        ("x", "misc", "GEN", "document"),
    ] {
        let work = work("1", &format!("<type>{kind}</type>"));
        assert!(bibtex(&work, PAGE).starts_with(&format!("@{entry}{{1,")), "{kind}");
        assert!(ris(&work, PAGE).starts_with(&format!("TY  - {reference}\r\n")), "{kind}");
        assert_eq!(csl_json(&work, PAGE)["type"], item, "{kind}");
    }
}
