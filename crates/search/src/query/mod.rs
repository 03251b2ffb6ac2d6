//! What a query means. The query languages are parsed into it.

mod languages;

pub use languages::{QueryLanguage, parse};

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
        /// The word as written. If its analysis gives several words, it is a phrase.
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
        /// The start of the word.
        start: String,
    },
    /// Records one of whose texts in a field is this text as a whole, folded: a facet, a category, an exact CQL term.
    Value {
        /// The field.
        field: FieldName,
        /// The whole text.
        value: String,
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
    /// Records that match all required queries and no excluded one; without required ones, at least one optional query.
    /// Optional queries of a boolean with required ones only raise the rank.
    Boolean {
        /// All must match.
        required: Vec<Query>,
        /// At least one must match if none is required.
        optional: Vec<Query>,
        /// None may match.
        excluded: Vec<Query>,
    },
}

/// The name of a field: an element of Dublin Core in lower case such as `title`, or the name of an element of a format
/// that has no crosswalk to Dublin Core.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldName(pub String);

/// Why a query is refused. The text says where and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The syntax is wrong.
    #[error("{0}")]
    Syntax(String),
    /// No record has such a field.
    #[error("there is no field \"{0}\"")]
    UnknownField(String),
    /// The query has too many terms, is too long or nested too deeply.
    #[error("{0}")]
    TooLarge(String),
}
