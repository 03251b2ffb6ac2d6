//! Lists the values of a field, from the terms of the index.

use super::compile::Compiler;
use super::schema::END;
use super::snapshot::Snapshot;
use crate::query::QueryError;
use crate::results::{ValueCount, Values};
use crate::text::fold_value;
use crate::{IndexError, RecordFilter};
use tantivy::DocId;
use tantivy::query::EnableScoring;
use tantivy::schema::IndexRecordOption;
use tantivy::termdict::TermMerger;

/// Maximum number of terms that are read for one list of values. A list of a small part of a large index skips many.
const TERMS_READ_MAX: usize = 500_000;

pub(super) fn list(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    request: &Values,
) -> Result<Vec<ValueCount>, IndexError> {
    let considered = considered(snapshot, compiler, &request.filter)?;
    let name = request.field.key();
    let start = fold_value(&request.start);
    let mut from = format!("{name}{END}{start}");
    if let Some(after) = &request.after {
        // Greater than all terms of this value, and smaller than those of longer ones.
        from = from.max(format!("{name}{END}{after}\u{1}"));
    }
    let until = format!("{name}{END}{start}\u{10FFFF}");
    let mut indexes = Vec::new();
    for segment in snapshot.searcher.segment_readers() {
        indexes.push(segment.inverted_index(compiler.fields.values)?);
    }
    let mut streams = Vec::new();
    for index in &indexes {
        streams.push(index.terms().range().ge(&from).lt(&until).into_stream().map_err(unreadable)?);
    }
    let mut terms = TermMerger::new(streams);
    let mut grouped = Grouped { values: Vec::new(), most_frequent: 0 };
    for _ in 0..TERMS_READ_MAX {
        if !terms.advance() {
            return Ok(grouped.values);
        }
        let Some((folded, written)) = read_term(terms.key(), &name) else { continue };
        if grouped.values.len() == request.count_max && grouped.is_new(folded) {
            return Ok(grouped.values);
        }
        let mut records = 0;
        for (segment, info) in terms.current_segment_ords_and_term_infos() {
            let (Some(index), Some(docs)) = (indexes.get(segment), considered.get(segment)) else { continue };
            let mut postings = index
                .read_block_postings_from_terminfo(&info, IndexRecordOption::Basic)
                .map_err(unreadable)?;
            while !postings.docs().is_empty() {
                records += postings.docs().iter().filter(|doc| docs.contains(**doc)).count() as u64;
                postings.advance();
            }
        }
        if records > 0 {
            grouped.add(folded, written, records);
        }
    }
    let text = format!("the index has too many values of \"{name}\" here; give more of their start");
    Err(QueryError::TooLarge(text).into())
}

fn unreadable(error: std::io::Error) -> IndexError {
    IndexError::Unreadable(error.to_string())
}

/// The folded and the written text of a term.
fn read_term<'t>(term: &'t [u8], name: &str) -> Option<(&'t str, &'t str)> {
    let value = std::str::from_utf8(term).ok()?.strip_prefix(name)?.strip_prefix(END)?;
    value.split_once(END)
}

/// Values whose spellings are counted together.
struct Grouped {
    values: Vec<ValueCount>,
    /// The number of records with the shown spelling of the last value.
    most_frequent: u64,
}

impl Grouped {
    fn is_new(&self, folded: &str) -> bool {
        self.values.last().is_none_or(|last| last.folded != folded)
    }

    fn add(&mut self, folded: &str, written: &str, records: u64) {
        match self.values.last_mut() {
            Some(last) if last.folded == folded => {
                last.records += records;
                if records > self.most_frequent {
                    self.most_frequent = records;
                    last.value = written.to_owned();
                }
            }
            _ => {
                self.most_frequent = records;
                let (folded, value) = (folded.to_owned(), written.to_owned());
                self.values.push(ValueCount { folded, value, records });
            }
        }
    }
}

/// The records that a filter considers, by segment.
fn considered(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    filter: &RecordFilter,
) -> Result<Vec<DocSet>, IndexError> {
    let query = compiler.filter(filter);
    let weight = query.weight(EnableScoring::disabled_from_searcher(&snapshot.searcher))?;
    let mut sets = Vec::new();
    for segment in snapshot.searcher.segment_readers() {
        let mut set = DocSet { words: vec![0; segment.max_doc() as usize / 64 + 1] };
        weight.for_each_no_score(segment, &mut |docs| {
            for doc in docs.iter().filter(|doc| !segment.is_deleted(**doc)) {
                set.insert(*doc);
            }
        })?;
        sets.push(set);
    }
    Ok(sets)
}

/// A set of documents of a segment.
struct DocSet {
    words: Vec<u64>,
}

impl DocSet {
    fn insert(&mut self, doc: DocId) {
        if let Some(word) = self.words.get_mut(doc as usize / 64) {
            *word |= 1 << (doc % 64);
        }
    }

    fn contains(&self, doc: DocId) -> bool {
        self.words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }
}
