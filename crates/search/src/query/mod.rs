//! What a query means. The query languages are parsed into it.

mod languages;
mod matching;
mod odl;

pub use languages::{QueryLanguage, parse};

use crate::record_texts::field_key;
use crate::text::QueryWords;

/// Maximum number of words, phrases and other terms in a query.
pub const TERMS_MAX: usize = 64;
/// Maximum number of words in all terms of a query.
const WORDS_MAX: usize = 256;
/// Maximum number of booleans around each other in a query.
const DEPTH_MAX: usize = 32;
/// Maximum number of texts of a [`Query::AnyValue`].
const ANY_VALUES_MAX: usize = 10_000;
/// Longest text of a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 4 << 10;
/// Shortest start of a [`Query::Prefix`], in characters of its last word.
pub(crate) const PREFIX_CHARS_MIN: usize = 2;

/// A query, whatever language it was written in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Query {
    /// Every record.
    All,
    /// Records with this word in a field; `None`: in any field. A word matches folded (case, accents), or stemmed by the
    /// language of the record where that is known.
    Word {
        /// The field.
        field: Option<FieldName>,
        /// The word as written. If its analysis gives several words, it is a phrase; if it gives none, no record matches.
        word: String,
    },
    /// Records with these words one after the other in one text of a field; `None`: of any field.
    Phrase {
        /// The field.
        field: Option<FieldName>,
        /// The words as written. They match folded, and are not stemmed.
        words: String,
    },
    /// Records with a word that begins so, folded.
    Prefix {
        /// The field.
        field: Option<FieldName>,
        /// The start of the word, at least two characters. Words before it must match too, at any place in the field.
        start: String,
    },
    /// Records one of whose texts in a field is this text as a whole, folded: a category, an exact CQL term. Texts of more
    /// than 200 bytes do not match.
    Value {
        /// The field.
        field: FieldName,
        /// The whole text.
        value: String,
    },
    /// Records one of whose texts in a field is one of these texts as a whole, folded: a value of a category, as different
    /// records write it. No language has it.
    AnyValue {
        /// The field.
        field: FieldName,
        /// The whole texts, at most 10,000.
        values: Vec<String>,
    },
    /// Records that were published in these years, inclusive.
    Years {
        /// The first year.
        from: Option<u16>,
        /// The last year.
        until: Option<u16>,
    },
    /// Records of this repository.
    Repository(String),
    /// The record with this identifier.
    Identifier(String),
    /// Records of this type: the label of a `WorkType`, as in [`Facets::types`](crate::Facets::types).
    Type(String),
    /// Records in this language: a tag, as in [`Facets::languages`](crate::Facets::languages).
    Language(String),
    /// Records with this access, `open` or `other`, as in [`Facets::access`](crate::Facets::access).
    Access(String),
    /// Records that match all required queries and no excluded one; without required ones, at least one optional query.
    /// Optional queries of a boolean with required ones only raise the rank. A boolean with excluded queries only matches
    /// all other records.
    Boolean {
        /// All must match.
        required: Vec<Self>,
        /// At least one must match if none is required.
        optional: Vec<Self>,
        /// None may match.
        excluded: Vec<Self>,
    },
}

impl Query {
    /// The fields that the query names.
    pub fn fields(&self) -> Vec<&FieldName> {
        let mut fields = Vec::new();
        self.visit(&mut |query| match query {
            Self::Word { field: Some(field), .. }
            | Self::Phrase { field: Some(field), .. }
            | Self::Prefix { field: Some(field), .. }
            | Self::Value { field, .. }
            | Self::AnyValue { field, .. } => fields.push(field),
            _ => {}
        });
        fields
    }

    fn visit<'q>(&'q self, visitor: &mut impl FnMut(&'q Self)) {
        // Without recursion, since the depth is not checked yet.
        let mut pending = vec![self];
        while let Some(query) = pending.pop() {
            visitor(query);
            if let Self::Boolean { required, optional, excluded } = query {
                pending.extend(excluded.iter().chain(optional).chain(required).rev());
            }
        }
    }

    /// Checks the size of the query: at most 64 terms with 256 words, at most 32 booleans around each other, starts of words with at
    /// least two characters.
    ///
    /// # Errors
    ///
    /// [`QueryError::TooLarge`].
    pub fn check(&self) -> Result<(), QueryError> {
        let (mut terms, mut words) = (0_usize, 0_usize);
        let mut level = vec![self];
        for _ in 0..=DEPTH_MAX {
            let mut inner = Vec::new();
            for query in level {
                match query {
                    Self::Boolean { required, optional, excluded } => {
                        inner.extend(required.iter().chain(optional).chain(excluded));
                    }
                    Self::Word { word: text, .. } | Self::Phrase { words: text, .. } => {
                        terms += 1;
                        words += QueryWords::of(text).tokens.len();
                    }
                    Self::Prefix { start, .. } => {
                        terms += 1;
                        let start_words = QueryWords::of(start).tokens;
                        words += start_words.len();
                        if start_words.last().is_none_or(|(_, last)| last.chars().count() < PREFIX_CHARS_MIN)
                        {
                            let text = format!("the start of a word needs two characters, not \"{start}\"");
                            return Err(QueryError::TooLarge(text));
                        }
                    }
                    Self::AnyValue { values, .. } if values.len() > ANY_VALUES_MAX => {
                        let text = format!("more than {ANY_VALUES_MAX} different texts have this value");
                        return Err(QueryError::TooLarge(text));
                    }
                    _ => terms += 1,
                }
            }
            if words > WORDS_MAX {
                return Err(QueryError::TooLarge(format!("the query has more than {WORDS_MAX} words")));
            }
            if terms > TERMS_MAX || inner.len() > 2 * TERMS_MAX {
                return Err(QueryError::TooLarge(format!("the query has more than {TERMS_MAX} terms")));
            }
            if inner.is_empty() {
                return Ok(());
            }
            level = inner;
        }
        Err(QueryError::TooLarge(format!("the query is nested more than {DEPTH_MAX} times")))
    }
}

/// The name of a field: an element of Dublin Core in lower case such as `title`, or the name of an element of a format
/// that has no crosswalk to Dublin Core.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldName(pub String);

impl FieldName {
    /// The name in the index. Names differ in case only by mistake.
    pub(crate) fn key(&self) -> String {
        field_key(&self.0)
    }
}

/// Why a query is refused. The text says where and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The syntax is wrong.
    #[error("{0}")]
    Syntax(String),
    /// No record has such a field.
    #[error("there is no field \"{0}\"; write text with a colon in quotation marks")]
    UnknownField(String),
    /// The query has too many terms, is too long or nested too deeply.
    #[error("{0}")]
    TooLarge(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(word: &str) -> Query {
        Query::Word { field: None, word: word.to_owned() }
    }

    fn optional(optional: Vec<Query>) -> Query {
        Query::Boolean { required: vec![], optional, excluded: vec![] }
    }

    fn nested(depth: usize) -> Query {
        (0..depth).fold(word("a"), |query, _| optional(vec![query]))
    }

    #[test]
    fn large_and_deep_queries_are_refused() {
        let large = |text: &str| Err(QueryError::TooLarge(text.to_owned()));
        let start = |start: &str| Query::Prefix { field: None, start: start.to_owned() };
        for (query, expected) in [
            (optional(vec![word("a"); TERMS_MAX]), Ok(())),
            (optional(vec![word("a"); TERMS_MAX + 1]), large("the query has more than 64 terms")),
            (optional(vec![word("a"); 100_000]), large("the query has more than 64 terms")),
            (optional(vec![optional(vec![]); 1_000]), large("the query has more than 64 terms")),
            (nested(DEPTH_MAX), Ok(())),
            (nested(DEPTH_MAX + 1), large("the query is nested more than 32 times")),
            (word(&"a ".repeat(WORDS_MAX)), Ok(())),
            (word(&"a ".repeat(WORDS_MAX + 1)), large("the query has more than 256 words")),
            (start("ab"), Ok(())),
            (start("b a"), large("the start of a word needs two characters, not \"b a\"")),
            (start(""), large("the start of a word needs two characters, not \"\"")),
        ] {
            assert_eq!(query.check(), expected);
        }
    }

    #[test]
    fn a_query_names_its_fields() {
        let field = |name: &str| Some(FieldName(name.to_owned()));
        let title = Query::Word { field: field("title"), word: "a".to_owned() };
        let shelf = Query::Phrase { field: field("shelf"), words: "a".to_owned() };
        let query = optional(vec![word("a"), title, optional(vec![shelf])]);
        let names: Vec<&str> = query.fields().into_iter().map(|field| field.0.as_str()).collect();
        assert_eq!(names, ["title", "shelf"]);
    }
}
