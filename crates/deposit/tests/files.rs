//! Files that people have, as reference managers export them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use oaimend_deposit::{DepositError, FileKind, FileNaming, FileRecord, read_file, write_list};
use std::path::Path;

const NAMING: FileNaming<'static> = FileNaming {
    identifier_start: "oai:x.example:theses/",
    name: "a/b c",
    prefix: None,
    formats: None,
    set_specs: &[],
};

/// The form of the exports of Zotero 7.
const BIBTEX: &str = r#"
@phdthesis{muller_sea_2003,
	address = {Kiel},
	title = {The {Sea} and the land: a history of {\L}{\'o}d{\'z}},
	url = {https://example.org/1},
	abstract = {First line
second \& line.},
	language = {de},
	school = {Universit{\"a}t Kiel},
	author = {M{\"u}ller, Ada and van der Berg, Jan and {Group of Ten}},
	month = mar,
	year = {2003},
	keywords = {history, sea},
}

@article{doe_maps_2010,
	title = {Maps},
	volume = {3},
	issn = {1234-5678},
	doi = {10.1000/xyz},
	number = {2},
	journal = {Journal of Maps},
	author = {Doe, John},
	editor = {Roe, Jane},
	year = {2010},
	pages = {1--9},
}
"#;

/// The same of its tables, without most of the empty columns.
const CSV: &str = "\u{feff}\"Key\",\"Item Type\",\"Publication Year\",\"Author\",\"Title\",\"Publication Title\",\"ISBN\",\"ISSN\",\"DOI\",\"Url\",\"Abstract Note\",\"Date\",\"Pages\",\"Issue\",\"Volume\",\"Publisher\",\"Language\",\"Rights\",\"Manual Tags\",\"Editor\"\n\
\"AB12CD34\",\"journalArticle\",\"2010\",\"Doe, John; Müller, Ada\",\"Maps, \"\"old\"\" & new\",\"Journal of Maps\",\"\",\"1234-5678\",\"10.1000/xyz\",\"https://example.org/2\",\"Two\nlines\",\"2010-05\",\"1-9\",\"2\",\"3\",\"Press\",\"en\",\"CC BY\",\"sea; land\",\"Roe, Jane\"\n";

fn read(kind: FileKind, content: &str) -> Result<Vec<FileRecord>, DepositError> {
    read_file(kind, content.as_bytes(), &NAMING)
}

/// The elements of a record in their order, as `name=text`.
fn elements(record: &FileRecord) -> Vec<String> {
    let list = String::from_utf8(write_list([&record.deposit])).unwrap();
    let parts = list.split("<dc:").skip(1);
    parts.map(|part| part.split("</").next().unwrap_or_default().replacen('>', "=", 1)).collect()
}

#[test]
fn bibtex_becomes_dublin_core() {
    let records = read(FileKind::BibTeX, BIBTEX).unwrap();
    let names: Vec<&str> = records.iter().map(|record| record.deposit.identifier.as_str()).collect();
    assert_eq!(names, ["oai:x.example:theses/muller_sea_2003", "oai:x.example:theses/doe_maps_2010"]);
    assert!(records.iter().all(|record| record.prefix == "oai_dc"));
    assert_eq!(
        elements(&records[0]),
        [
            "title=The Sea and the land: a history of Łódź",
            "creator=Müller, Ada",
            "creator=van der Berg, Jan",
            "creator=Group of Ten",
            "subject=history",
            "subject=sea",
            "description=First line second &amp; line.",
            "publisher=Universität Kiel",
            "date=2003-03",
            "type=doctoralThesis",
            "identifier=https://example.org/1",
            "language=de",
        ]
    );
    assert_eq!(
        elements(&records[1]),
        [
            "title=Maps",
            "creator=Doe, John",
            "contributor=Roe, Jane",
            "date=2010",
            "type=article",
            "identifier=https://doi.org/10.1000/xyz",
            "source=ISSN 1234-5678",
            "source=Journal of Maps, 3(2), pp. 1–9",
        ]
    );
}

#[test]
fn formatting_of_latex_and_names_that_are_left_out_are_no_text() {
    let entry = r#"@misc{a, title = {\emph{Homo} and {\textit{x \textbf{y {z}}}} at \foo{q}}, author = {Doe, John and others},
        editor = {Others, Ann and others}, howpublished = {\url{https://x.example/a_b}}, year = 2001}"#;
    let records = read(FileKind::BibTeX, entry).unwrap();
    let expected = [
        "title=Homo and x y z at \\foo{q}",
        "creator=Doe, John",
        "publisher=https://x.example/a_b",
        "contributor=Others, Ann",
        "date=2001",
        "type=text",
    ];
    assert_eq!(elements(&records[0]), expected);
}

#[test]
fn tables_of_zotero_become_dublin_core() {
    let records = read(FileKind::Csv, CSV).unwrap();
    assert_eq!(records[0].deposit.identifier, "oai:x.example:theses/AB12CD34");
    assert_eq!(
        elements(&records[0]),
        [
            "title=Maps, &quot;old&quot; &amp; new",
            "creator=Doe, John",
            "creator=Müller, Ada",
            "subject=sea",
            "subject=land",
            "description=Two lines",
            "publisher=Press",
            "contributor=Roe, Jane",
            "date=2010-05",
            "type=journalArticle",
            "identifier=https://doi.org/10.1000/xyz",
            "identifier=https://example.org/2",
            "source=Journal of Maps, 3(2), pp. 1-9",
            "source=ISSN 1234-5678",
            "language=en",
            "rights=CC BY",
        ]
    );
    let plain = read(FileKind::Csv, "id,title,creator,date,coverage\n1,Sea,A; B,2001,Kiel\n").unwrap();
    let expected = ["title=Sea", "creator=A", "creator=B", "date=2001", "coverage=Kiel"];
    assert_eq!(elements(&plain[0]), expected);
}

#[test]
fn xml_is_metadata_or_a_response() {
    let mods = "<mods xmlns=\"http://www.loc.gov/mods/v3\"><titleInfo><title>x</title></titleInfo></mods>";
    let one = read(FileKind::Xml, mods).unwrap();
    assert_eq!(
        (one[0].prefix.as_str(), one[0].deposit.identifier.as_str()),
        ("mods", "oai:x.example:theses/a/b%20c")
    );
    let list = String::from_utf8(write_list(one.iter().map(|record| &record.deposit))).unwrap();
    let again = read(FileKind::Xml, &list).unwrap();
    assert_eq!(write_list(again.iter().map(|record| &record.deposit)), list.as_bytes());
    let unknown = read(FileKind::Xml, "<a xmlns=\"urn:x\"/>").unwrap_err().to_string();
    assert!(unknown.contains("name its metadataPrefix"), "{unknown}");
    let named = FileNaming { prefix: Some("p"), ..NAMING };
    assert_eq!(read_file(FileKind::Xml, b"<a xmlns=\"urn:x\"/>", &named).unwrap()[0].prefix, "p");
}

#[test]
fn faults_have_their_place() {
    for (kind, content, expected) in [
        (FileKind::BibTeX, "@article{a,\n title = {x},\n author = {y\n", "line "),
        (FileKind::BibTeX, "\n@article{a, year = {2000}}", "line 2, column 10: the entry a has no title"),
        (FileKind::BibTeX, "@article{a, title = {x}}\n@book{a, title = {y}}", "a"),
        (FileKind::Csv, "Key,Title\nx\n", "line 2, column 1: not a table in CSV"),
        (FileKind::Csv, "Name,Title\nx,y\n", "line 2, column 1: the row has no key"),
        (FileKind::Csv, "Key,Title\nx,y\nz,\n", "line 3, column 1: the row has no title"),
        (
            FileKind::Csv,
            "Key,Title\nx,y\nx,z\n",
            "the identifier oai:x.example:theses/x is in the file twice",
        ),
        (FileKind::Xml, "<a xmlns=\"urn:x\">\n&</a>", "line 2, column "),
    ] {
        let problem = read(kind, content).expect_err(content).to_string();
        assert!(problem.contains(expected), "{content}: {problem}");
    }
    let latin1 = read_file(FileKind::Csv, b"Key,Title\nx,M\xfcller\n", &NAMING).unwrap_err().to_string();
    assert!(latin1.starts_with("line 2, column 4: this byte is not UTF-8"), "{latin1}");
}

#[test]
fn kinds_are_known_by_the_ending() {
    for (path, kind) in [
        ("a.XML", Some(FileKind::Xml)),
        ("a/b.bib", Some(FileKind::BibTeX)),
        ("a.csv", Some(FileKind::Csv)),
        ("a.xml.part", None),
        ("xml", None),
    ] {
        assert_eq!(FileKind::of(Path::new(path)), kind, "{path}");
    }
}

/// Broken files are values, and never a panic.
#[test]
fn damaged_files_are_refused_or_read() {
    for (kind, content) in [(FileKind::BibTeX, BIBTEX), (FileKind::Csv, CSV)] {
        for cut in 0..content.len() {
            let _ = read_file(kind, &content.as_bytes()[..cut], &NAMING);
            let mut damaged = content.as_bytes().to_vec();
            damaged[cut] = b"{}@=,\"\\#%"[cut % 9];
            let _ = read_file(kind, &damaged, &NAMING);
        }
    }
}
