//! The search for a work without an identifier.

use crate::context_object::Referent;
use oaimend_search::{FieldName, Query};

/// Maximum number of words of a title that must match. Further ones are often written in another way.
const TITLE_WORDS_MAX: usize = 12;
/// A title ends at its first colon if it has so many words before it, because many records have no subtitle.
const SHORT_TITLE_WORDS_MIN: usize = 3;
/// Longest word of a query, in bytes. The index knows no longer ones.
const WORD_BYTES_MAX: usize = 64;

/// The search for a work without an identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataSearch {
    /// The query, within the limits of [`Query::check`]. What must match identifies the work, and the rest puts the best
    /// record first.
    pub query: Query,
    /// Nearly the same as a text for the search page, in the language `odlsearch1`. It allows one spelling of the ISSN.
    pub text: String,
}

impl Referent {
    /// The search for the work. `None` if the description is too vague, such as an author and a year.
    ///
    /// A work with a title is found by it and by the last name of its author. An article without a title is found by its
    /// journal (ISSN, else title) with volume, issue and first page, of which one must be known; a journal by itself.
    pub fn search(&self) -> Option<MetadataSearch> {
        let mut terms = Terms::default();
        let journal = self.journal();
        let place =
            [&self.volume, &self.issue, &self.first_page].map(|value| value.as_deref().and_then(phrase));
        if let Some(title) = self.title.as_deref().and_then(short_title) {
            terms.require(Term::Phrase(Some("title"), title));
            if let Some(name) = self.last_name.as_deref().and_then(phrase) {
                terms.require(Term::Phrase(Some("creator"), name));
            }
            terms.optional.extend(journal);
            terms.optional.extend(place.into_iter().flatten().map(Term::Word));
        } else {
            terms.require(journal?);
            let is_journal = self.genre.as_deref() == Some("journal");
            if !is_journal && place.iter().all(Option::is_none) {
                return None;
            }
            place.into_iter().flatten().for_each(|value| terms.require(Term::Word(value)));
            if let Some(name) = self.last_name.as_deref().and_then(phrase) {
                terms.optional.push(Term::Phrase(Some("creator"), name));
            }
        }
        terms.optional.extend(self.year().map(Term::Year));
        Some(MetadataSearch { text: terms.text(), query: terms.query() })
    }

    /// The journal in a record: one of its ISSNs, else its title.
    fn journal(&self) -> Option<Term> {
        if self.issns.is_empty() {
            return self.container.as_deref().and_then(phrase).map(|title| Term::Phrase(None, title));
        }
        Some(Term::Issns(self.issns.clone()))
    }
}

/// A term of a query.
#[derive(Clone)]
enum Term {
    /// Words one after the other, in a field or anywhere.
    Phrase(Option<&'static str>, String),
    Word(String),
    /// One of these ISSNs, which are not empty.
    Issns(Vec<String>),
    Year(u16),
}

#[derive(Default)]
struct Terms {
    required: Vec<Term>,
    optional: Vec<Term>,
}

impl Terms {
    fn require(&mut self, term: Term) {
        self.required.push(term);
    }

    fn query(self) -> Query {
        let queries = |terms: Vec<Term>| terms.into_iter().map(Term::query).collect();
        Query::Boolean {
            required: queries(self.required),
            optional: queries(self.optional),
            excluded: Vec::new(),
        }
    }

    fn text(&self) -> String {
        let required = self.required.iter().map(|term| format!("+{}", term.text()));
        let terms: Vec<String> = required.chain(self.optional.iter().map(Term::text)).collect();
        terms.join(" ")
    }
}

impl Term {
    fn query(self) -> Query {
        match self {
            Self::Phrase(field, words) => {
                Query::Phrase { field: field.map(|field| FieldName(field.to_owned())), words }
            }
            Self::Word(word) => Query::Word { field: None, word },
            Self::Issns(issns) => {
                let forms = issns.into_iter().flat_map(|issn| {
                    let digits = Query::Word { field: None, word: issn.replace('-', "") };
                    [Query::Phrase { field: None, words: issn }, digits]
                });
                Query::Boolean { required: Vec::new(), optional: forms.collect(), excluded: Vec::new() }
            }
            Self::Year(year) => Query::Years { from: Some(year), until: Some(year) },
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Phrase(Some(field), words) => format!("{field}:\"{words}\""),
            Self::Phrase(None, words) => format!("\"{words}\""),
            Self::Word(word) => format!("\"{word}\""),
            Self::Issns(issns) => format!("\"{}\"", issns.first().map(String::as_str).unwrap_or_default()),
            Self::Year(year) => year.to_string(),
        }
    }
}

/// The words of a title that must match.
fn short_title(title: &str) -> Option<String> {
    let start = title.split_once(':').map(|(start, _)| start);
    let start = start.filter(|start| start.split_whitespace().count() >= SHORT_TITLE_WORDS_MIN);
    phrase(start.unwrap_or(title))
}

/// A text as a phrase of a query, up to a number of words. `None` if it has no word.
fn phrase(text: &str) -> Option<String> {
    let words: Vec<&str> =
        text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).collect();
    let words: Vec<String> = words.into_iter().take(TITLE_WORDS_MAX).map(shortened).collect();
    if words.is_empty() { None } else { Some(words.join(" ")) }
}

/// A word without what ends a phrase, and not too long.
fn shortened(word: &str) -> String {
    let end = word.floor_char_boundary(WORD_BYTES_MAX);
    word.get(..end).unwrap_or_default().replace('"', " ")
}
