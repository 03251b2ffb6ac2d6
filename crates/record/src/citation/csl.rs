//! CSL-JSON, the input of citation processors.

use super::{clean, key, name_parts, url};
use crate::agent::Agent;
use crate::work::WorkDescription;
use crate::work_type::WorkType;
use serde_json::{Map, Value, json};

/// The work as an item of CSL-JSON (schema 1.0.2). `page_url` is the URL of its page.
pub fn csl_json(work: &WorkDescription, page_url: &str) -> Value {
    let core = &work.core;
    let container = &work.container;
    let mut item = Map::new();
    item.insert("id".to_owned(), json!(key(work)));
    item.insert("type".to_owned(), json!(item_type(work)));
    for (name, agents) in [("author", &work.creators), ("contributor", &work.contributors)] {
        if !agents.is_empty() {
            item.insert(name.to_owned(), agents.iter().map(name_of).collect());
        }
    }
    if let Some(date) = work.published {
        let (month, day) = date.month_and_day();
        let parts: Vec<u16> =
            [Some(date.year()), month.map(u16::from), day.map(u16::from)].into_iter().flatten().collect();
        item.insert("issued".to_owned(), json!({ "date-parts": [parts] }));
    }
    let subjects: Vec<&str> = core.subjects.iter().map(|subject| subject.value.as_str()).collect();
    for (name, value) in [
        ("title", core.titles.first().map(|title| title.value.as_str())),
        ("container-title", container.title.as_deref()),
        ("volume", container.volume.as_deref()),
        ("issue", container.issue.as_deref()),
        ("page", container.pages("-").as_deref()),
        ("publisher", core.publishers.first().map(|name| name.value.as_str())),
        ("DOI", work.links.doi()),
        ("URL", Some(url(work, page_url))),
        ("ISSN", container.issns.first().map(String::as_str)),
        ("ISBN", work.isbns.first().map(String::as_str)),
        ("language", work.language().as_deref()),
        ("keyword", Some(subjects.join(", ").as_str())),
        ("abstract", core.descriptions.first().map(|text| text.value.as_str())),
    ] {
        let value = value.map(clean).unwrap_or_default();
        if !value.is_empty() {
            item.insert(name.to_owned(), json!(value));
        }
    }
    Value::Object(item)
}

fn item_type(work: &WorkDescription) -> &'static str {
    match work.work_type {
        WorkType::Article if work.container.title.is_some() => "article-journal",
        WorkType::Article => "article",
        WorkType::Thesis => "thesis",
        WorkType::Book => "book",
        WorkType::Chapter => "chapter",
        WorkType::Report => "report",
        WorkType::Dataset => "dataset",
        WorkType::Software => "software",
        WorkType::Image => "graphic",
        WorkType::Video => "motion_picture",
        WorkType::Audio => "song",
        WorkType::Map => "map",
        WorkType::Other => "document",
    }
}

fn name_of(agent: &Agent) -> Value {
    match name_parts(agent) {
        Some((family, given)) => json!({ "family": family, "given": given }),
        None => json!({ "literal": clean(&agent.name.value) }),
    }
}
