//! Queries of tantivy for a [`Query`].

use super::excluded::ExcludedQuery;
use super::schema::{END, Fields, Mark, OTHER_ELEMENTS, STEM, columns};
use super::snapshot::Repositories;
use crate::query::{FieldName, Query};
use crate::record_texts::{DUBLIN_CORE, VALUE_BYTES_MAX};
use crate::results::RecordFilter;
use crate::text::{QueryWords, StemLanguage, fold_value};
use std::collections::BTreeMap;
use std::ops::Bound;
use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, InvertedIndexRangeQuery, Occur, PhraseQuery,
    Query as IndexQuery, RangeQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption, Schema};

/// Compiles queries for an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compiler<'i> {
    pub(super) fields: &'i Fields,
    pub(super) schema: &'i Schema,
    /// The languages whose stems the index contains.
    pub(super) languages: &'i [StemLanguage],
    /// The repositories of the index.
    pub(super) repositories: &'i Repositories,
    /// Whether every record is the one that is shown for its item.
    pub(super) shows_all: bool,
}

type Compiled = Box<dyn IndexQuery>;

impl Compiler<'_> {
    /// A query of the records that a filter considers. The filter does not change the scores.
    pub(super) fn filtered(&self, query: &Query, filter: &RecordFilter) -> tantivy::Result<Compiled> {
        let query = self.compile(query)?;
        Ok(match self.filter(filter) {
            Some(filter) => Box::new(BooleanQuery::intersection(vec![query, filter])),
            None => query,
        })
    }

    /// `None`: it considers all records.
    pub(super) fn filter(&self, filter: &RecordFilter) -> Option<Compiled> {
        let mut clauses = Vec::new();
        match &filter.prefix {
            Some(prefix) => clauses.push((Occur::Must, self.mark(Mark::Prefix(prefix)))),
            None if self.shows_all => {}
            None => clauses.push((Occur::Must, self.mark(Mark::Shown))),
        }
        if let Some(repositories) = &filter.repositories
            && !self.repositories.are_among(repositories)
        {
            let marks = repositories.iter().map(|name| self.fields.mark(Mark::Repository(name)));
            clauses.push((Occur::Must, Box::new(TermSetQuery::new(marks))));
        }
        if clauses.is_empty() {
            return None;
        }
        Some(Box::new(ConstScoreQuery::new(Box::new(BooleanQuery::new(clauses)), 0.0)))
    }

    fn compile(&self, query: &Query) -> tantivy::Result<Compiled> {
        Ok(match query {
            Query::All => Box::new(AllQuery),
            Query::Word { field, word } => self.word(field.as_ref(), &QueryWords::of(word)),
            Query::Phrase { field, words } => self.phrase(field.as_ref(), &QueryWords::of(words)),
            Query::Prefix { field, start } => self.start(field.as_ref(), &QueryWords::of(start)),
            Query::Value { field, value } => self.value(field, &fold_value(value)),
            Query::AnyValue { field, values } => {
                union(values.iter().map(|value| self.value(field, &fold_value(value))).collect())
            }
            Query::Years { from, until } => self.years(*from, *until)?,
            Query::Repository(name) => self.mark(Mark::Repository(name)),
            Query::Identifier(identifier) => {
                range(self.fields.key, &format!("{identifier}{END}"), &format!("{identifier}\u{1}"))
            }
            Query::Type(label) => self.mark(Mark::Type(label)),
            Query::Language(tag) => self.mark(Mark::Language(tag)),
            Query::Access(access) => self.mark(Mark::Access(access)),
            Query::Boolean { required, optional, excluded } => {
                let mut clauses: Vec<(Occur, Compiled)> = Vec::new();
                for (occur, queries) in
                    [(Occur::Must, required), (Occur::Should, optional), (Occur::MustNot, excluded)]
                {
                    for query in queries {
                        let compiled = self.compile(query)?;
                        clauses.push(match occur {
                            Occur::MustNot => (occur, Box::new(ExcludedQuery(compiled))),
                            _ => (occur, compiled),
                        });
                    }
                }
                if required.is_empty() && optional.is_empty() {
                    clauses.push((Occur::Must, Box::new(AllQuery)));
                }
                Box::new(BooleanQuery::new(clauses))
            }
        })
    }

    fn mark(&self, mark: Mark<'_>) -> Compiled {
        term(self.fields.mark(mark), IndexRecordOption::Basic)
    }

    /// The folded word, or its stem in a language. A stem that is itself a word of the text has no term of its own, so the
    /// word counts in records with texts in this language.
    fn word(&self, field: Option<&FieldName>, words: &QueryWords) -> Compiled {
        let mut found = vec![self.phrase(field, words)];
        let mut languages: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for language in self.languages {
            if let Some(stem) = words.stemmable.as_deref().and_then(|word| language.stem(word)) {
                languages.entry(stem).or_default().push(language.code());
            }
        }
        for (stem, codes) in languages {
            for name in searched_names(field) {
                found.extend(codes.iter().map(|code| {
                    let stem = format!("{name}{END}{code}{STEM}{stem}");
                    term(Term::from_field_text(self.fields.stems, &stem), IndexRecordOption::Basic)
                }));
            }
            if words.tokens.iter().all(|(_, folded)| *folded != stem) {
                let marks = codes.iter().map(|code| self.fields.mark(Mark::Stems(code)));
                let has_language = Box::new(ConstScoreQuery::new(Box::new(TermSetQuery::new(marks)), 0.0));
                let word = union(self.single_word(field, &stem));
                found.push(Box::new(BooleanQuery::intersection(vec![has_language, word])));
            }
        }
        union(found)
    }

    /// The folded word in each of the fields.
    fn single_word(&self, field: Option<&FieldName>, word: &str) -> Vec<Compiled> {
        let terms = searched_names(field).map(|name| self.word_of_field(&name, word));
        terms.map(|word| term(word, IndexRecordOption::WithFreqs)).collect()
    }

    fn word_of_field(&self, name: &str, word: &str) -> Term {
        Term::from_field_text(self.fields.words, &format!("{name}{END}{word}"))
    }

    fn phrase(&self, field: Option<&FieldName>, words: &QueryWords) -> Compiled {
        match words.tokens.as_slice() {
            [] => Box::new(EmptyQuery),
            [(_, word)] => union(self.single_word(field, word)),
            tokens => {
                let phrases = searched_names(field).map(|name| -> Compiled {
                    let terms = tokens.iter().map(|(offset, word)| {
                        (usize::try_from(*offset).unwrap_or(usize::MAX), self.word_of_field(&name, word))
                    });
                    Box::new(PhraseQuery::new_with_offset(terms.collect()))
                });
                union(phrases.collect())
            }
        }
    }

    fn start(&self, field: Option<&FieldName>, words: &QueryWords) -> Compiled {
        let Some(((_, start), before)) = words.tokens.split_last() else { return Box::new(EmptyQuery) };
        let mut clauses: Vec<Compiled> =
            before.iter().map(|(_, word)| union(self.single_word(field, word))).collect();
        let starts = searched_names(field).map(|name| {
            let start = format!("{name}{END}{start}");
            range(self.fields.words, &start, &format!("{start}\u{10FFFF}"))
        });
        clauses.push(union(starts.collect()));
        Box::new(BooleanQuery::intersection(clauses))
    }

    fn value(&self, field: &FieldName, folded: &str) -> Compiled {
        if folded.is_empty() || folded.len() > VALUE_BYTES_MAX {
            return Box::new(EmptyQuery);
        }
        let start = format!("{}{END}{folded}", field.key());
        range(self.fields.values, &format!("{start}{END}"), &format!("{start}\u{1}"))
    }

    fn years(&self, from: Option<u16>, until: Option<u16>) -> tantivy::Result<Compiled> {
        let field = self.schema.get_field(columns::YEAR)?;
        let term = |year: u16| Bound::Included(Term::from_field_u64(field, u64::from(year)));
        let query = RangeQuery::new(term(from.unwrap_or(0)), term(until.unwrap_or(u16::MAX)));
        Ok(Box::new(query))
    }
}

/// The names under which the words of a field are indexed; without a field those of all texts.
fn searched_names(field: Option<&FieldName>) -> impl Iterator<Item = String> {
    let all = if field.is_some() { &[][..] } else { &DUBLIN_CORE[..] };
    let others = field.map_or_else(|| OTHER_ELEMENTS.to_owned(), FieldName::key);
    all.iter().map(|name| (*name).to_owned()).chain([others])
}

fn term(term: Term, option: IndexRecordOption) -> Compiled {
    Box::new(TermQuery::new(term, option))
}

fn union(mut queries: Vec<Compiled>) -> Compiled {
    if queries.len() == 1 { queries.remove(0) } else { Box::new(BooleanQuery::union(queries)) }
}

/// The records with a term from `start` on, before `end`.
fn range(field: Field, start: &str, end: &str) -> Compiled {
    let term = |text: &str| Term::from_field_text(field, text);
    Box::new(InvertedIndexRangeQuery::new(Bound::Included(term(start)), Bound::Excluded(term(end))))
}
