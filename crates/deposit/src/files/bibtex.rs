//! BibTeX and BibLaTeX, as reference managers export them.

use super::{SimpleDublinCore, Work};
use crate::bad_xml::BadXml;
use biblatex::{Bibliography, ChunksExt as _, Entry, EntryType, Person};

/// Fields with one text each, and their elements.
const TEXTS: &[(&str, &str)] = &[
    ("abstract", "description"),
    ("note", "description"),
    ("publisher", "publisher"),
    ("school", "publisher"),
    ("institution", "publisher"),
    ("howpublished", "publisher"),
    ("url", "identifier"),
    ("language", "language"),
    ("langid", "language"),
    ("copyright", "rights"),
    ("rights", "rights"),
];

/// Reads the entries of a bibliography.
///
/// # Errors
///
/// It is no bibliography, or an entry has no title; the place is that of the first fault.
pub(super) fn read(text: &str) -> Result<Vec<Work>, BadXml> {
    let bad = |place: usize, problem: String| BadXml::at(text.as_bytes(), place, problem);
    let bibliography = Bibliography::parse(text)
        .map_err(|error| bad(error.span.start, format!("not BibTeX: {}", error.kind)))?;
    let work = |entry: &Entry| {
        let description = describe(entry);
        let place = text.find(&format!("{{{}", entry.key)).map_or(0, |brace| brace + 1);
        if entry.get("title").is_none() {
            return Err(bad(place, format!("the entry {} has no title", entry.key)));
        }
        Ok(Work { key: entry.key.clone(), description })
    };
    bibliography.iter().map(work).collect()
}

/// Commands of LaTeX around a text that is the same without them.
const FORMATTING: [&str; 10] = [
    "emph",
    "textit",
    "textbf",
    "textsc",
    "textrm",
    "textsf",
    "texttt",
    "textsuperscript",
    "textsubscript",
    "url",
];

fn describe(entry: &Entry) -> SimpleDublinCore {
    let mut description = SimpleDublinCore::default();
    let text = |name: &str| {
        entry.get(name).map(|chunks| without_formatting(&chunks.format_verbatim())).unwrap_or_default()
    };
    description.add("title", [text("title"), text("subtitle")].join(": ").trim_end_matches(": "));
    for author in entry.author().unwrap_or_default().iter().filter(|author| !is_others(author)) {
        description.add("creator", &without_formatting(&name_of(author)));
    }
    for (editors, _) in entry.editors().unwrap_or_default() {
        for editor in editors.iter().filter(|editor| !is_others(editor)) {
            description.add("contributor", &without_formatting(&name_of(editor)));
        }
    }
    for keyword in text("keywords").split([',', ';']) {
        description.add("subject", keyword);
    }
    for (field, element) in TEXTS {
        description.add(element, &text(field));
    }
    description.add("date", &date_of(entry));
    description.add("type", type_of(&entry.entry_type));
    let doi = text("doi");
    if !doi.is_empty() {
        description.add("identifier", &doi_url(&doi));
    }
    for (field, start) in [("isbn", "ISBN "), ("issn", "ISSN ")] {
        let number = text(field);
        if !number.is_empty() {
            description
                .add(if field == "isbn" { "identifier" } else { "source" }, &format!("{start}{number}"));
        }
    }
    description.add("source", &source_of(entry));
    description
}

/// The URL of a DOI, which may be a URL already.
pub(super) fn doi_url(doi: &str) -> String {
    let doi = doi.trim();
    let bare = ["https://doi.org/", "http://doi.org/", "http://dx.doi.org/", "https://dx.doi.org/", "doi:"]
        .into_iter()
        .find_map(|start| doi.strip_prefix(start));
    format!("https://doi.org/{}", bare.unwrap_or(doi))
}

/// The text without the formatting of LaTeX, such as `\emph{…}`. Other commands stay as they are.
fn without_formatting(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    // Whether each open brace, from the outside, belongs to formatting.
    let mut braces = Vec::new();
    while let Some(place) = rest.find(['\\', '{', '}']) {
        let (before, found) = rest.split_at(place);
        plain.push_str(before);
        let formatting = FORMATTING
            .iter()
            .find_map(|command| found.strip_prefix('\\')?.strip_prefix(command)?.strip_prefix('{'));
        if let Some(content) = formatting {
            braces.push(true);
            rest = content;
            continue;
        }
        let (first, after) = found.split_at(1);
        let is_formatting = match first {
            "{" => {
                braces.push(false);
                false
            }
            "}" => braces.pop().unwrap_or_default(),
            _ => false,
        };
        if !is_formatting {
            plain.push_str(first);
        }
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Whether it is the word at the end of a list of names that is cut short, and no person.
fn is_others(person: &Person) -> bool {
    person.name == "others" && person.given_name.is_empty() && person.prefix.is_empty()
}

fn name_of(person: &Person) -> String {
    let family = [person.prefix.as_str(), person.name.as_str()].join(" ");
    let given = [person.given_name.as_str(), person.suffix.as_str()].join(" ");
    if given.trim().is_empty() {
        family.trim().to_owned()
    } else {
        format!("{}, {}", family.trim(), given.trim())
    }
}

/// The date as it is written, or of year, month and day.
fn date_of(entry: &Entry) -> String {
    if let Some(date) = entry.get("date") {
        return date.format_verbatim();
    }
    let text = |name: &str| entry.get(name).map(|chunks| chunks.format_verbatim()).unwrap_or_default();
    let year = text("year");
    match month_number(&text("month")) {
        Some(month) if year.len() == 4 => format!("{year}-{month:02}"),
        _ => year,
    }
}

fn month_number(month: &str) -> Option<usize> {
    let lower = month.trim().to_ascii_lowercase();
    let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let by_name = names.iter().position(|name| lower.starts_with(name)).map(|place| place + 1);
    by_name.or_else(|| lower.parse().ok()).filter(|month| (1..=12).contains(month))
}

/// The journal or book with its volume, number and pages, as citations have them.
fn source_of(entry: &Entry) -> String {
    let text = |name: &str| {
        entry.get(name).map(|chunks| without_formatting(&chunks.format_verbatim())).unwrap_or_default()
    };
    let names = ["journal", "journaltitle", "booktitle"];
    let Some(container) = names.iter().map(|name| text(name)).find(|name| !name.is_empty()) else {
        return String::new();
    };
    let mut source = container;
    let (volume, number) = (text("volume"), [text("number"), text("issue")].concat());
    if !volume.is_empty() {
        source.push_str(&format!(", {volume}"));
    }
    if !number.is_empty() {
        source.push_str(&format!("({number})"));
    }
    let pages = text("pages");
    if !pages.is_empty() {
        source.push_str(&format!(", pp. {pages}"));
    }
    source
}

fn type_of(kind: &EntryType) -> &'static str {
    match kind {
        EntryType::Article | EntryType::SuppPeriodical => "article",
        EntryType::Book | EntryType::MvBook | EntryType::Collection | EntryType::Booklet => "book",
        EntryType::InBook | EntryType::InCollection | EntryType::SuppBook => "bookPart",
        EntryType::InProceedings => "conferenceObject",
        EntryType::Proceedings => "conferenceProceedings",
        EntryType::MastersThesis => "masterThesis",
        EntryType::PhdThesis => "doctoralThesis",
        EntryType::Thesis => "thesis",
        EntryType::TechReport | EntryType::Report => "report",
        EntryType::Dataset => "dataset",
        EntryType::Software => "software",
        EntryType::Online => "website",
        EntryType::Unpublished => "preprint",
        _ => "text",
    }
}
