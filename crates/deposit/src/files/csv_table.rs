//! Tables in CSV: the exports of Zotero, and tables whose columns have the names of Dublin Core.

use super::Work;
use super::bibtex::doi_url;
use super::simple_dublin_core::SimpleDublinCore;
use crate::bad_xml::BadXml;
use csv::{ReaderBuilder, StringRecord, Trim};
use oaimend_record::DublinCore;

/// The columns of Zotero and their elements. `true`: a semicolon is between several values.
const COLUMNS: &[(&str, &str, bool)] = &[
    ("author", "creator", true),
    ("editor", "contributor", true),
    ("contributor", "contributor", true),
    ("translator", "contributor", true),
    ("manual tags", "subject", true),
    ("automatic tags", "subject", true),
    ("abstract note", "description", false),
    ("item type", "type", false),
    ("url", "identifier", false),
    ("doi", "identifier", false),
    ("isbn", "identifier", false),
    ("publication title", "source", false),
    ("issn", "source", false),
];
/// The columns with the key of a row, the best one first. Zotero's is `Key`.
const KEYS: [&str; 3] = ["key", "id", "identifier"];
/// The columns with the date, the best one first.
const DATES: [&str; 2] = ["date", "publication year"];

/// Reads the rows of a table. The first row names the columns.
///
/// # Errors
///
/// It is no table, or a row has no key or no title.
pub(super) fn read(text: &str) -> Result<Vec<Work>, BadXml> {
    let bad = |line: u64, problem: String| BadXml {
        line: usize::try_from(line).unwrap_or(usize::MAX),
        column: 1,
        problem,
    };
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(text.as_bytes());
    let not_csv = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        bad(line, format!("not a table in CSV: {error}"))
    };
    let columns: Vec<String> = reader.headers().map_err(not_csv)?.iter().map(str::to_lowercase).collect();
    let mut works = Vec::new();
    for row in reader.records() {
        let row = row.map_err(not_csv)?;
        let line = row.position().map_or(1, csv::Position::line);
        let cell = |name: &str| {
            let place = columns.iter().position(|column| column == name)?;
            row.get(place).filter(|cell| !cell.is_empty())
        };
        let key = KEYS.iter().find_map(|name| cell(name)).ok_or_else(|| {
            bad(line, "the row has no key; expected a column Key, id or identifier with a text".to_owned())
        })?;
        if cell("title").is_none() {
            return Err(bad(line, "the row has no title; expected a text in the column title".to_owned()));
        }
        works.push(Work { key: key.to_owned(), description: describe(&columns, &row, cell) });
    }
    Ok(works)
}

fn describe<'r>(
    columns: &[String],
    row: &'r StringRecord,
    cell: impl Fn(&str) -> Option<&'r str>,
) -> SimpleDublinCore {
    let mut description = SimpleDublinCore::default();
    for (column, text) in columns.iter().zip(row) {
        if let Some(element) =
            DublinCore::ELEMENTS.iter().find(|element| column == *element && **element != "date")
        {
            let separated = ["creator", "contributor", "subject"].contains(element);
            add(&mut description, element, text, separated);
        }
        if let Some((_, element, separated)) = COLUMNS.iter().find(|(name, ..)| name == column) {
            let text = match column.as_str() {
                "doi" if !text.is_empty() => doi_url(text),
                "isbn" if !text.is_empty() => format!("ISBN {text}"),
                "issn" if !text.is_empty() => format!("ISSN {text}"),
                "publication title" => with_pages(text, &cell),
                _ => text.to_owned(),
            };
            add(&mut description, element, &text, *separated);
        }
    }
    description.add("date", DATES.iter().find_map(|name| cell(name)).unwrap_or_default());
    description
}

fn add(description: &mut SimpleDublinCore, element: &'static str, text: &str, is_separated: bool) {
    if is_separated {
        text.split(';').for_each(|part| description.add(element, part));
    } else {
        description.add(element, text);
    }
}

/// A journal with its volume, issue and pages.
fn with_pages<'r>(title: &str, cell: &impl Fn(&str) -> Option<&'r str>) -> String {
    if title.is_empty() {
        return String::new();
    }
    let part = |name: &str, before: &str, after: &str| {
        cell(name).map_or_else(String::new, |text| format!("{before}{text}{after}"))
    };
    [title.to_owned(), part("volume", ", ", ""), part("issue", "(", ")"), part("pages", ", pp. ", "")]
        .concat()
}
