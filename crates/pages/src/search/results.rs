//! What a search found, as its page, its feed and its JSON show it.

use super::address::FacetKind;
use crate::record::RecordAddress;
use oaimend_record::{Text, WorkDescription, shorten};
use std::ops::Range;

/// A page of results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The number of all results.
    pub total: u64,
    /// Whether the number is estimated.
    pub is_estimate: bool,
    /// The results of this page, in order.
    pub items: Vec<SearchItem>,
    /// The facets with values.
    pub facets: Vec<Facet>,
    /// Whether the numbers of the facets are estimated.
    pub facets_are_estimates: bool,
}

/// The values of a property, and how many results have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facet {
    /// The property.
    pub kind: FacetKind,
    /// The values, the most frequent first.
    pub values: Vec<FacetValue>,
}

/// A value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetValue {
    /// The value, as the URL has it.
    pub value: String,
    /// The name of a repository. Other values are named by the texts of the page.
    pub name: Option<String>,
    /// The number of results that have it.
    pub records: u64,
}

/// A found record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchItem {
    /// The repository id.
    pub repository: String,
    /// The name of the repository.
    pub repository_name: String,
    /// What the record says of its work.
    pub work: WorkDescription,
    /// The title; `None` if the record has none.
    pub title: Option<MarkedText>,
    /// The part of the record that shows best why it was found.
    pub snippet: Option<MarkedText>,
    /// The last change of the record in the mirror, such as `2026-11-26T12:00:00Z`.
    pub changed: String,
}

/// A text with the parts that a query matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedText {
    /// The text.
    pub text: Text,
    /// The bytes of the matched parts, in order and apart.
    pub marks: Vec<Range<usize>>,
}

impl SearchItem {
    /// The URL of the page of the record. `base` is the public URL or its path, without a slash at its end.
    pub fn url(&self, base: &str) -> String {
        let identifier = &self.work.identifier;
        RecordAddress { repository: &self.repository, identifier, format: None }.page(base)
    }

    /// The title, or the identifier of a record without one.
    pub fn title_text(&self) -> &str {
        self.title.as_ref().map_or(&self.work.identifier, |title| &title.text.value)
    }

    /// The year of publication.
    pub fn year(&self) -> Option<String> {
        Some(self.work.published?.in_iso_8601().chars().take(4).collect())
    }
}

impl MarkedText {
    /// The start of the text, at most `bytes_max` bytes, with the marks that are whole in it.
    pub(crate) fn start(&self, bytes_max: usize) -> Self {
        let (kept, left_out_bytes) = shorten(&self.text.value, bytes_max);
        let marks = self.marks.iter().filter(|mark| mark.end <= kept.len()).cloned().collect();
        let left_out_bytes = self.text.left_out_bytes + left_out_bytes;
        let text = Text { value: kept.to_owned(), left_out_bytes, language: self.text.language.clone() };
        Self { text, marks }
    }

    /// The parts of the text in order; `true`: a matched one.
    pub fn parts(&self) -> Vec<(bool, &str)> {
        let (mut parts, mut at) = (Vec::new(), 0);
        let mut add = |is_marked, range: Range<usize>| {
            let part = self.text.value.get(range).unwrap_or_default();
            if !part.is_empty() {
                parts.push((is_marked, part));
            }
        };
        for mark in &self.marks {
            add(false, at..mark.start);
            add(true, mark.clone());
            at = mark.end;
        }
        add(false, at..self.text.value.len());
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_has_whole_marks() {
        let text = Text { value: "aé bc".to_owned(), ..Text::default() };
        let marked = MarkedText { text, marks: vec![0..1, 4..6] };
        let start = marked.start(5);
        assert_eq!((start.parts(), start.text.left_out_bytes), (vec![(true, "a"), (false, "é b")], 1));
        assert_eq!(marked.start(6), marked);
    }

    #[test]
    fn parts_are_the_whole_text() {
        let text = Text { value: "aé bc".to_owned(), ..Text::default() };
        for (marks, expected) in [
            (vec![], vec![(false, "aé bc")]),
            (vec![0..1, 1..3], vec![(true, "a"), (true, "é"), (false, " bc")]),
            (vec![1..3, 4..6], vec![(false, "a"), (true, "é"), (false, " "), (true, "bc")]),
        ] {
            let marked = MarkedText { text: text.clone(), marks };
            assert_eq!(marked.parts(), expected);
        }
    }
}
