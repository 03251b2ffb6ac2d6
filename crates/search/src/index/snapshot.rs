//! What searches see: the index at its last commit.

use super::position::IndexPosition;
use super::schema::{END, Fields, Mark, STEMS_OF, columns};
use crate::record_texts::DUBLIN_CORE;
use crate::text::StemLanguage;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentReader};

/// The index at a commit. Cheap to clone.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub(super) searcher: Searcher,
    pub(super) repositories: Arc<Repositories>,
    /// The languages whose stems the index contains.
    pub(super) languages: Arc<Vec<StemLanguage>>,
    /// The fields that the index contains, and those of Dublin Core.
    pub(super) names: Arc<BTreeSet<String>>,
    /// Whether every record is the one that is shown for its item.
    pub(super) shows_all: bool,
    /// The place in the mirror up to which records are indexed.
    pub(super) position: Arc<IndexPosition>,
}

/// The repositories of the index, in order. Segments number them differently.
#[derive(Debug, Default)]
pub(super) struct Repositories {
    pub(super) names: Vec<String>,
    /// For each segment, the place in `names` of each of its numbers.
    pub(super) ranks: Vec<Arc<Vec<u32>>>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Snapshot").field("position", &self.position).finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(super) fn of(searcher: Searcher, fields: &Fields, position: IndexPosition) -> tantivy::Result<Self> {
        let mut names: BTreeSet<String> = DUBLIN_CORE.map(str::to_owned).into();
        let mut codes = BTreeSet::new();
        for segment in searcher.segment_readers() {
            names.extend(starts_of_terms(segment, fields.words, "", END)?);
            codes.extend(starts_of_terms(segment, fields.marks, STEMS_OF, END)?);
        }
        names.remove(super::schema::OTHER_ELEMENTS);
        let documents: u64 =
            searcher.segment_readers().iter().map(|segment| u64::from(segment.max_doc())).sum();
        let shows_all = searcher.doc_freq(&fields.mark(Mark::Shown))? == documents;
        let languages = codes.iter().filter_map(|code| StemLanguage::of_code(code)).collect();
        Ok(Self {
            repositories: Arc::new(Repositories::of(&searcher)?),
            languages: Arc::new(languages),
            names: Arc::new(names),
            shows_all,
            position: Arc::new(position),
            searcher,
        })
    }
}

/// The different texts between `before` and `end` in terms that begin with `before`.
fn starts_of_terms(
    segment: &SegmentReader,
    field: Field,
    before: &str,
    end: char,
) -> tantivy::Result<Vec<String>> {
    let index = segment.inverted_index(field)?;
    let mut found = Vec::new();
    let mut from = before.to_owned();
    loop {
        let mut terms = index.terms().range().ge(&from).into_stream()?;
        let Some((term, _)) = terms.next() else { break };
        let Some((start, _)) = std::str::from_utf8(term)
            .ok()
            .and_then(|term| term.strip_prefix(before))
            .and_then(|term| term.split_once(end))
        else {
            break;
        };
        found.push(start.to_owned());
        // The first term that does not begin so.
        let next = char::from_u32(u32::from(end) + 1).unwrap_or(char::MAX);
        from = format!("{before}{start}{next}");
    }
    Ok(found)
}

impl Repositories {
    fn of(searcher: &Searcher) -> tantivy::Result<Self> {
        let mut by_segment = Vec::new();
        for segment in searcher.segment_readers() {
            by_segment.push(names_of_column(segment, columns::REPOSITORY)?);
        }
        let names: BTreeSet<&String> = by_segment.iter().flatten().collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        let rank = |name: &String| names.binary_search(name).ok().and_then(|rank| u32::try_from(rank).ok());
        let ranks = by_segment
            .iter()
            .map(|segment| Arc::new(segment.iter().map(|name| rank(name).unwrap_or(u32::MAX)).collect()))
            .collect();
        Ok(Self { ranks, names })
    }

    /// Whether these names contain all repositories of the index.
    pub(super) fn are_among(&self, names: &[String]) -> bool {
        let names: HashSet<&String> = names.iter().collect();
        self.names.iter().all(|name| names.contains(name))
    }
}

/// The values of a column of texts, by their numbers in the segment.
pub(super) fn names_of_column(segment: &SegmentReader, name: &str) -> tantivy::Result<Vec<String>> {
    let Some(column) = segment.fast_fields().str(name)? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for number in 0..column.num_terms() {
        let mut value = String::new();
        column.ord_to_str(number as u64, &mut value)?;
        names.push(value);
    }
    Ok(names)
}
