//! The journal or book that contains a work, with volume, issue and pages.

use crate::limits::NUMBERS_MAX;
use crate::standard_number::read_issn;
use regex::Regex;
use std::sync::LazyLock;

/// The journal, book or proceedings that contains a work. All texts are on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// Its title.
    pub title: Option<String>,
    /// The volume.
    pub volume: Option<String>,
    /// The issue.
    pub issue: Option<String>,
    /// The first page.
    pub first_page: Option<String>,
    /// The last page.
    pub last_page: Option<String>,
    /// The ISSNs, such as `0378-5955`, at most 50.
    pub issns: Vec<String>,
}

/// Longest text that is read as a citation, in bytes.
const CITATION_BYTES_MAX: usize = 500;

/// `vol. 12`, with the usual words of European languages.
static VOLUME: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i)\b(?:vol(?:ume)?|v|bd|band|jg|tome|tomo|t)\b\.?:?\s*([0-9]{1,5}[a-z]?|[ivxlc]{1,8})\b")
});
static ISSUE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(?:\b(?:no|nr|num|núm|number|issue|iss|heft|h|n)\b\.?|n°|nº|№):?\s*([0-9]{1,5}(?:[-/][0-9]{1,5})?)\b",
    )
});
static PAGES: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:pp?|pages?|pág|págs|s|seiten?)\b\.?:?\s*([a-z]?[0-9]{1,6})(?:\s*[-–—]+\s*([a-z]?[0-9]{1,6}))?\b",
    )
});
/// The page range at the end of a citation.
static LAST_PAGES: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:[,;:]|^)\s*([A-Za-z]?[0-9]{1,6})\s*[-–—]+\s*([A-Za-z]?[0-9]{1,6})\.?$"));
/// `Journal of X, 12(3), 45-67` and `Journal of X 12 (3): 45-67`.
static COMPACT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(\D{3,200}?)[,.;]?\s+([0-9]{1,5})\s*\(([0-9]{1,5}(?:[-/][0-9]{1,5})?)\)\s*[,:]\s*(?:pp?\.?\s*)?([A-Za-z]?[0-9]{1,6})(?:\s*[-–—]+\s*([A-Za-z]?[0-9]{1,6}))?\.?$",
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a literal that the tests compile")
}

impl Container {
    /// Reads a citation such as `Journal of X; Vol. 12 No. 3 (2014); 45-67` or `Journal of X, 12(3), 45-67`, or an ISSN
    /// alone. `None` if the text is not certainly one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        // Everything that is certainly a citation has a digit. This test costs much less than the patterns.
        if text.len() > CITATION_BYTES_MAX || !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        if let Some(issn) = read_issn(text) {
            return Some(Self { issns: vec![issn], ..Self::default() });
        }
        if text.contains('(')
            && let Some(found) = COMPACT.captures(text)
        {
            let part = |number: usize| found.get(number).map(|part| part.as_str().trim().to_owned());
            return Some(Self {
                title: part(1),
                volume: part(2),
                issue: part(3),
                first_page: part(4),
                last_page: part(5),
                issns: Vec::new(),
            });
        }
        // The words of a volume alone are in many titles too.
        let volume = VOLUME.find(text)?;
        let title =
            text.get(..volume.start()).unwrap_or_default().trim_end_matches([' ', ',', ';', ':', '.', '(']);
        let parts = Self::read_parts(text.get(volume.start()..).unwrap_or_default());
        let is_certain = !title.is_empty() && (parts.issue.is_some() || parts.first_page.is_some());
        is_certain.then(|| Self { title: Some(title.to_owned()), ..parts })
    }

    /// Reads the volume, issue and pages of a text without title, such as `Vol. 24, pt. B no. 9 (2001), p. 235-248`.
    pub(crate) fn read_parts(text: &str) -> Self {
        if text.len() > CITATION_BYTES_MAX {
            return Self::default();
        }
        let first = |pattern: &Regex| Some(pattern.captures(text)?.get(1)?.as_str().to_owned());
        let pages = PAGES.captures(text).or_else(|| LAST_PAGES.captures(text));
        let page = |number: usize| Some(pages.as_ref()?.get(number)?.as_str().to_owned());
        Self {
            volume: first(&VOLUME),
            issue: first(&ISSUE),
            first_page: page(1),
            last_page: page(2),
            ..Self::default()
        }
    }

    /// Reads a range of pages such as `45-67`.
    pub(crate) fn read_pages(&mut self, text: &str) {
        let text = text.trim().trim_start_matches("pp.").trim_start_matches("p.").trim();
        let (first, last) = match text.split_once(['-', '–', '—']) {
            Some((first, last)) => (first.trim(), Some(last.trim_start_matches('-').trim())),
            None => (text, None),
        };
        if !first.is_empty() && first.len() <= PAGE_BYTES_MAX {
            self.first_page = Some(first.to_owned());
            self.last_page =
                last.filter(|last| !last.is_empty() && last.len() <= PAGE_BYTES_MAX).map(str::to_owned);
        }
    }

    /// Adds what is not known yet.
    pub(crate) fn complete(&mut self, other: Self) {
        for (known, more) in
            [(&mut self.title, other.title), (&mut self.volume, other.volume), (&mut self.issue, other.issue)]
        {
            *known = known.take().or(more);
        }
        if self.first_page.is_none() {
            (self.first_page, self.last_page) = (other.first_page, other.last_page);
        }
        for issn in other.issns {
            if !self.issns.contains(&issn) && self.issns.len() < NUMBERS_MAX {
                self.issns.push(issn);
            }
        }
    }

    /// The pages, such as `45-67`.
    pub fn pages(&self, dash: &str) -> Option<String> {
        let first = self.first_page.as_deref()?;
        Some(match &self.last_page {
            Some(last) => format!("{first}{dash}{last}"),
            None => first.to_owned(),
        })
    }
}

/// Longest number of a page, in bytes.
const PAGE_BYTES_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(container: Option<Container>) -> Option<String> {
        let found = container?;
        let parts = [found.title.clone(), found.volume.clone(), found.issue.clone(), found.pages("-")];
        Some(parts.map(Option::unwrap_or_default).join("|") + "|" + &found.issns.join(","))
    }

    #[test]
    fn citations_are_read_if_they_are_certain() {
        for (text, expected) in [
            ("Journal of X; Vol. 12 No. 3 (2014): Spring; 45-67", Some("Journal of X|12|3|45-67|")),
            ("Journal of X; Vol 5 (2020); e1-e9", Some("Journal of X|5||e1-e9|")),
            ("Zeitschrift, Bd. 3, H. 2, S. 17–19", Some("Zeitschrift|3|2|17-19|")),
            ("Journal of X, 12(3), 45-67", Some("Journal of X|12|3|45-67|")),
            ("Journal of X 12 (3-4): 45.", Some("Journal of X|12|3-4|45|")),
            ("0378-5955", Some("||||0378-5955")),
            ("A history of England, volume 2", None),
            ("reponame:Repositório, 2014", None),
            ("https://example.org/1", None),
            ("2000-2001", None),
            ("", None),
        ] {
            assert_eq!(shown(Container::read(text)).as_deref(), expected, "{text}");
        }
        assert_eq!(Container::read(&"Vol. 1 No. 2 ".repeat(CITATION_BYTES_MAX)), None);
    }

    #[test]
    fn pages_are_a_range() {
        let pages = |text: &str| {
            let mut container = Container::default();
            container.read_pages(text);
            container.pages("--")
        };
        for (text, expected) in [
            ("45-67", Some("45--67")),
            (" pp. 45 – 67", Some("45--67")),
            ("45--67", Some("45--67")),
            ("e12", Some("e12")),
            ("", None),
        ] {
            assert_eq!(pages(text).as_deref(), expected, "{text}");
        }
    }
}
