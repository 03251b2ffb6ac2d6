//! Lists the values of a field, from the terms of the index.

use super::compile::Compiler;
use super::ranked::HitColumns;
use super::schema::{END, columns};
use super::snapshot::Snapshot;
use crate::query::QueryError;
use crate::results::{ValueCount, Values};
use crate::text::{fold_value, written};
use crate::{IndexError, RecordFilter};
use std::collections::BTreeMap;
use std::sync::Arc;
use tantivy::columnar::Column;
use tantivy::fastfield::AliveBitSet;
use tantivy::query::{AllQuery, EnableScoring, Query};
use tantivy::schema::IndexRecordOption;
use tantivy::termdict::TermMerger;
use tantivy::{DocAddress, DocId};

/// Maximum number of terms that are read for one list of values. A list of a small part of a large index skips many.
const TERMS_READ_MAX: usize = 500_000;
/// Maximum number of records that are read from the mirror for one list of values.
const RECORDS_READ_MAX: usize = 1_000;
/// The terms that are read in the time in which one record is read from the mirror and analysed.
const TERMS_PER_RECORD: usize = 200;
/// Maximum number of terms of a field that are read for suggestions, which are wanted with every keystroke.
const SUGGESTION_TERMS_MAX: usize = 1_000;
/// Maximum number of records that are counted for the suggestions of a field.
const SUGGESTION_RECORDS_MAX: u64 = 200_000;

pub(super) fn list(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    request: &Values,
) -> Result<Vec<ValueCount>, IndexError> {
    let limits = ReadLimits { terms: TERMS_READ_MAX, records: u64::MAX };
    let (values, is_complete) = read(snapshot, compiler, request, limits)?;
    if is_complete {
        return Ok(values);
    }
    let name = request.field.key();
    let text = format!("the index has too many values of \"{name}\" here; give more of their start");
    Err(QueryError::TooLarge(text).into())
}

/// The values of this number of records, unless it costs less to read these records. `None` if it does.
pub(super) fn list_instead_of(
    records: usize,
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    request: &Values,
) -> Result<Option<Vec<ValueCount>>, IndexError> {
    let limits = ReadLimits { terms: TERMS_PER_RECORD.saturating_mul(records), records: u64::MAX };
    let (values, is_complete) = read(snapshot, compiler, request, limits)?;
    Ok(is_complete.then_some(values))
}

/// A record with its stamp and its sequence.
type PlacedRecord = (DocAddress, (i64, u64));

/// The records that a filter considers; `None` if they are more than [`RECORDS_READ_MAX`].
pub(super) fn few_records(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    filter: &RecordFilter,
) -> Result<Option<Vec<PlacedRecord>>, IndexError> {
    let query = compiler.filter(filter).unwrap_or_else(|| Box::new(AllQuery));
    let weight = query.weight(EnableScoring::disabled_from_searcher(&snapshot.searcher))?;
    let mut records = Vec::new();
    for (number, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
        let columns = HitColumns::of(segment, Arc::default())?;
        weight.for_each_no_score(segment, &mut |docs| {
            for doc in docs.iter().copied().filter(|doc| !segment.is_deleted(*doc)) {
                if records.len() <= RECORDS_READ_MAX {
                    let stamp_secs = columns.stamp.first(doc).unwrap_or_default();
                    let sequence = columns.sequence.first(doc).unwrap_or_default();
                    records.push((DocAddress::new(number, doc), (stamp_secs, sequence)));
                }
            }
        })?;
        if records.len() > RECORDS_READ_MAX {
            return Ok(None);
        }
    }
    Ok(Some(records))
}

/// The most frequent of the first values.
pub(super) fn suggest(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    request: &Values,
) -> Result<Vec<ValueCount>, IndexError> {
    let limits = ReadLimits { terms: SUGGESTION_TERMS_MAX, records: SUGGESTION_RECORDS_MAX };
    let request = &Values { count_max: usize::MAX, ..request.clone() };
    Ok(read(snapshot, compiler, request, limits)?.0)
}

/// How much of the index is read at most.
#[derive(Clone, Copy)]
struct ReadLimits {
    terms: usize,
    /// The records of all read terms. The last term may have more.
    records: u64,
}

/// The values in order, and whether the limits left none out.
fn read(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    request: &Values,
    limits: ReadLimits,
) -> Result<(Vec<ValueCount>, bool), IndexError> {
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
    let mut grouped = Grouped::default();
    let mut records_read = 0;
    for _ in 0..limits.terms {
        if !terms.advance() {
            return Ok((grouped.values, true));
        }
        let Some((folded, spelling)) = read_term(terms.key(), &name) else { continue };
        if grouped.values.len() == request.count_max && grouped.is_new(folded) {
            return Ok((grouped.values, true));
        }
        if records_read > limits.records {
            break;
        }
        let mut records = 0;
        for (segment, info) in terms.current_segment_ords_and_term_infos() {
            let (Some(index), Some(considered)) = (indexes.get(segment), considered.get(segment)) else {
                continue;
            };
            if considered.are_all() {
                records += u64::from(info.doc_freq);
                continue;
            }
            records_read += u64::from(info.doc_freq);
            let mut postings = index
                .read_block_postings_from_terminfo(&info, IndexRecordOption::Basic)
                .map_err(unreadable)?;
            while !postings.docs().is_empty() {
                records += postings.docs().iter().filter(|doc| considered.contain(**doc)).count() as u64;
                postings.advance();
            }
        }
        if records > 0 {
            grouped.add(folded, spelling, records);
        }
    }
    Ok((grouped.values, false))
}

/// The years of publication with the numbers of their records, the latest first.
pub(super) fn years(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    filter: &RecordFilter,
) -> Result<Vec<(u64, u64)>, IndexError> {
    let query = compiler.filter(filter).unwrap_or_else(|| Box::new(AllQuery));
    let weight = query.weight(EnableScoring::disabled_from_searcher(&snapshot.searcher))?;
    let mut counts = BTreeMap::new();
    for segment in snapshot.searcher.segment_readers() {
        let column = segment.fast_fields().u64(columns::YEAR)?;
        weight.for_each_no_score(segment, &mut |docs| {
            for year in
                docs.iter().filter(|doc| !segment.is_deleted(**doc)).filter_map(|doc| column.first(*doc))
            {
                *counts.entry(year).or_default() += 1;
            }
        })?;
    }
    Ok(counts.into_iter().rev().collect())
}

fn unreadable(error: std::io::Error) -> IndexError {
    IndexError::Unreadable(error.to_string())
}

/// The folded text and the spelling of a term.
fn read_term<'t>(term: &'t [u8], name: &str) -> Option<(&'t str, &'t str)> {
    let value = std::str::from_utf8(term).ok()?.strip_prefix(name)?.strip_prefix(END)?;
    value.split_once(END)
}

/// Values whose spellings are counted together.
#[derive(Default)]
pub(super) struct Grouped {
    pub(super) values: Vec<ValueCount>,
    /// The number of records with the shown spelling of the last value.
    most_frequent: u64,
}

impl Grouped {
    pub(super) fn is_new(&self, folded: &str) -> bool {
        self.values.last().is_none_or(|last| last.folded != folded)
    }

    pub(super) fn add(&mut self, folded: &str, spelling: &str, records: u64) {
        match self.values.last_mut() {
            Some(last) if last.folded == folded => {
                last.records += records;
                if records > self.most_frequent {
                    self.most_frequent = records;
                    last.value = written(folded, spelling);
                }
            }
            _ => {
                self.most_frequent = records;
                let (folded, value) = (folded.to_owned(), written(folded, spelling));
                self.values.push(ValueCount { folded, value, records });
            }
        }
    }
}

/// The records of a segment that a filter considers.
struct Considered {
    /// The records that are not deleted; `None`: all.
    alive: Option<AliveBitSet>,
    /// Whether a record is shown for its item; `None`: any record is considered.
    shown: Option<Column<bool>>,
    /// The repositories by their rank; `None`: all.
    repositories: Option<(HitColumns, Arc<Vec<bool>>)>,
    /// The records of the filter; `None`: the others suffice.
    docs: Option<DocSet>,
}

impl Considered {
    fn are_all(&self) -> bool {
        let Self { alive, shown, repositories, docs } = self;
        alive.is_none() && shown.is_none() && repositories.is_none() && docs.is_none()
    }

    fn contain(&self, doc: DocId) -> bool {
        let is_of = |(columns, chosen): &(HitColumns, Arc<Vec<bool>>)| {
            chosen.get(columns.repository_rank(doc) as usize).copied().unwrap_or_default()
        };
        self.alive.as_ref().is_none_or(|alive| alive.is_alive(doc))
            && self.shown.as_ref().is_none_or(|shown| shown.first(doc).unwrap_or_default())
            && self.repositories.as_ref().is_none_or(is_of)
            && self.docs.as_ref().is_none_or(|docs| docs.contains(doc))
    }
}

/// The records that a filter considers, by segment. Only those of a format are looked up before they are needed, because
/// there is no column of formats.
fn considered(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    filter: &RecordFilter,
) -> Result<Vec<Considered>, IndexError> {
    let mut docs = match &filter.prefix {
        Some(_) => doc_sets(snapshot, compiler, filter)?.into_iter().map(Some).collect(),
        None => Vec::new(),
    };
    docs.resize_with(snapshot.searcher.segment_readers().len(), || None);
    let chosen = match (&filter.prefix, &filter.repositories) {
        (None, Some(chosen)) if !snapshot.repositories.are_among(chosen) => {
            let names = snapshot.repositories.names.iter();
            Some(Arc::new(names.map(|name| chosen.contains(name)).collect::<Vec<_>>()))
        }
        _ => None,
    };
    let mut sets = Vec::new();
    for (number, (segment, docs)) in snapshot.searcher.segment_readers().iter().zip(docs).enumerate() {
        let shown = if filter.prefix.is_none() && !snapshot.shows_all {
            Some(segment.fast_fields().bool(columns::SHOWN)?)
        } else {
            None
        };
        let repositories = match &chosen {
            Some(chosen) => {
                let ranks = snapshot.repositories.ranks.get(number).cloned().unwrap_or_default();
                Some((HitColumns::of(segment, ranks)?, Arc::clone(chosen)))
            }
            None => None,
        };
        sets.push(Considered { alive: segment.alive_bitset().cloned(), shown, repositories, docs });
    }
    Ok(sets)
}

fn doc_sets(
    snapshot: &Snapshot,
    compiler: Compiler<'_>,
    filter: &RecordFilter,
) -> Result<Vec<DocSet>, IndexError> {
    let query: Box<dyn Query> = compiler.filter(filter).unwrap_or_else(|| Box::new(AllQuery));
    let weight = query.weight(EnableScoring::disabled_from_searcher(&snapshot.searcher))?;
    let mut sets = Vec::new();
    for segment in snapshot.searcher.segment_readers() {
        let mut set = DocSet { words: vec![0; segment.max_doc() as usize / 64 + 1] };
        weight.for_each_no_score(segment, &mut |docs| docs.iter().for_each(|doc| set.insert(*doc)))?;
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
