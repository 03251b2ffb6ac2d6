//! BibTeX in UTF-8.

use super::{clean, key, name_parts, url};
use crate::agent::{Agent, AgentKind};
use crate::work::WorkDescription;
use crate::work_type::WorkType;

/// The work as an entry of BibTeX, with a line break at its end. `page_url` is the URL of its page.
pub fn bibtex(work: &WorkDescription, page_url: &str) -> String {
    let kind = entry_type(work);
    let mut entry = Entry(format!("@{kind}{{{},\n", key(work)));
    let core = &work.core;
    let container = &work.container;
    entry.add_raw("author", &work.creators.iter().map(author).collect::<Vec<_>>().join(" and "));
    entry.add("title", core.titles.first().map(|title| title.value.as_str()));
    let container_name = if kind == "article" { "journal" } else { "booktitle" };
    entry.add(container_name, container.title.as_deref());
    entry.add("volume", container.volume.as_deref());
    entry.add("number", container.issue.as_deref());
    entry.add("pages", container.pages("--").as_deref());
    if let Some(date) = work.published {
        entry.add("year", Some(&date.year().to_string()));
        if let (Some(month), _) = date.month_and_day() {
            entry.add("month", Some(&month.to_string()));
        }
    }
    let publisher = match kind {
        "phdthesis" | "mastersthesis" => "school",
        "techreport" => "institution",
        _ => "publisher",
    };
    entry.add(publisher, core.publishers.first().map(|name| name.value.as_str()));
    entry.add("issn", container.issns.first().map(String::as_str));
    entry.add("isbn", work.isbns.first().map(String::as_str));
    if let Some(doi) = work.links.doi() {
        entry.add_raw("doi", &verbatim(doi));
    }
    entry.add_raw("url", &verbatim(url(work, page_url)));
    entry.add("language", work.language().as_deref());
    let subjects: Vec<&str> = core.subjects.iter().map(|subject| subject.value.as_str()).collect();
    entry.add("keywords", Some(&subjects.join(", ")));
    entry.add("abstract", core.descriptions.first().map(|text| text.value.as_str()));
    entry.0.push_str("}\n");
    entry.0
}

fn entry_type(work: &WorkDescription) -> &'static str {
    let is_master = || work.core.types.iter().any(|text| text.value.to_lowercase().contains("master"));
    match work.work_type {
        // An article without its journal is a preprint, or the record does not name it.
        WorkType::Article if work.container.title.is_some() => "article",
        WorkType::Thesis if is_master() => "mastersthesis",
        WorkType::Thesis => "phdthesis",
        WorkType::Book => "book",
        WorkType::Chapter => "incollection",
        WorkType::Report => "techreport",
        _ => "misc",
    }
}

struct Entry(String);

impl Entry {
    fn add(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.add_raw(name, &escaped(value));
        }
    }

    /// Adds a value that is escaped.
    fn add_raw(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0.push_str(&format!("  {name} = {{{value}}},\n"));
        }
    }
}

/// A value without the characters that have a meaning in TeX. Braces become commands, because BibTeX counts `\{` too.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in clean(value).chars() {
        match character {
            '\\' => escaped.push_str("\\textbackslash{}"),
            '{' => escaped.push_str("\\textbraceleft{}"),
            '}' => escaped.push_str("\\textbraceright{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '%' | '#' | '$' | '&' | '_' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// A URL or DOI. Styles print it as it is, so only what would end the field is written in another way.
fn verbatim(value: &str) -> String {
    clean(value).replace('\\', "%5C").replace('{', "%7B").replace('}', "%7D")
}

/// A name. BibTeX divides names at commas and at the word `and`, but not inside of braces.
fn author(agent: &Agent) -> String {
    let name = escaped(&agent.name.value);
    let has_and = name.split(' ').any(|word| word.eq_ignore_ascii_case("and"));
    let is_whole = agent.kind == AgentKind::Organization || has_and || name.matches(',').count() > 2;
    match name_parts(agent) {
        _ if is_whole => format!("{{{name}}}"),
        Some((family, given)) => format!("{}, {}", escaped(&family), escaped(&given)),
        None => name.trim_end_matches([',', ' ']).to_owned(),
    }
}
