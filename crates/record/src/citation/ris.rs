//! RIS in UTF-8.

use super::{clean, key, url};
use crate::work::WorkDescription;
use crate::work_type::WorkType;

/// The work as a reference of RIS. `page_url` is the URL of its page.
pub fn ris(work: &WorkDescription, page_url: &str) -> String {
    let core = &work.core;
    let container = &work.container;
    let mut lines = Lines(String::new());
    lines.add("TY", reference_type(work.work_type));
    lines.add("ID", &key(work));
    lines.add_first("TI", core.titles.iter().map(|title| title.value.as_str()));
    for creator in &core.creators {
        lines.add("AU", &creator.value);
    }
    if let Some(date) = work.published {
        lines.add("PY", &date.year().to_string());
        let (month, day) = date.month_and_day();
        let part = |number: Option<u8>| number.map(|number| format!("{number:02}")).unwrap_or_default();
        lines.add("DA", &format!("{}/{}/{}/", date.year(), part(month), part(day)));
    }
    for (tag, value) in [
        ("T2", &container.title),
        ("VL", &container.volume),
        ("IS", &container.issue),
        ("SP", &container.first_page),
        ("EP", &container.last_page),
    ] {
        lines.add_first(tag, value.as_deref().into_iter());
    }
    lines.add_first("SN", work.isbns.iter().chain(&container.issns).map(String::as_str));
    lines.add_first("PB", core.publishers.iter().map(|name| name.value.as_str()));
    lines.add_first("DO", work.links.doi().into_iter());
    lines.add("UR", url(work, page_url));
    lines.add_first("L1", work.links.pdf().map(|link| link.url.as_str()).into_iter());
    lines.add_first("LA", work.language().as_deref().into_iter());
    for subject in &core.subjects {
        lines.add("KW", &subject.value);
    }
    lines.add_first("AB", core.descriptions.iter().map(|text| text.value.as_str()));
    lines.0.push_str("ER  - \r\n");
    lines.0
}

const fn reference_type(work_type: WorkType) -> &'static str {
    match work_type {
        WorkType::Article => "JOUR",
        WorkType::Thesis => "THES",
        WorkType::Book => "BOOK",
        WorkType::Chapter => "CHAP",
        WorkType::Report => "RPRT",
        WorkType::Dataset => "DATA",
        WorkType::Software => "COMP",
        WorkType::Image => "ART",
        WorkType::Video => "VIDEO",
        WorkType::Audio => "SOUND",
        WorkType::Map => "MAP",
        WorkType::Other => "GEN",
    }
}

struct Lines(String);

impl Lines {
    fn add(&mut self, tag: &str, value: &str) {
        let value = clean(value);
        if !value.is_empty() {
            self.0.push_str(&format!("{tag}  - {value}\r\n"));
        }
    }

    fn add_first<'v>(&mut self, tag: &str, mut values: impl Iterator<Item = &'v str>) {
        if let Some(value) = values.next() {
            self.add(tag, value);
        }
    }
}
