//! One clause: an index, a relation and a term.

use super::indexes::Index;
use super::scope::Scope;
use super::term::{Word, literal, unmasked_words, words};
use crate::cql::{Clause, Named};
use crate::{Diagnostic, DiagnosticCode};
use oaimend_search::{FieldName, Query};

/// How a term relates to an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// `=`, `scr`, `adj`: the words one after the other.
    Phrase,
    /// `==`, `exact`: the whole text.
    Exact,
    All,
    Any,
    NotEqual,
    Below,
    Above,
    AtMost,
    AtLeast,
    Within,
}

impl Relation {
    fn read(name: &str, scope: &Scope) -> Result<Self, Diagnostic> {
        let relation = match scope.name_in("cql", name)?.as_deref() {
            Some("=" | "scr" | "adj") => Self::Phrase,
            Some("==" | "exact") => Self::Exact,
            Some("all") => Self::All,
            Some("any") => Self::Any,
            Some("<>") => Self::NotEqual,
            Some("<") => Self::Below,
            Some(">") => Self::Above,
            Some("<=") => Self::AtMost,
            Some(">=") => Self::AtLeast,
            Some("within") => Self::Within,
            _ => return Err(Diagnostic::new(DiagnosticCode::UnsupportedRelation, name)),
        };
        Ok(relation)
    }

    /// Whether it compares the order of values.
    const fn is_order(self) -> bool {
        matches!(self, Self::Below | Self::Above | Self::AtMost | Self::AtLeast | Self::Within)
    }
}

/// A term with its relation.
struct Comparison {
    relation: Relation,
    term: String,
    /// Whether `*`, `?` and `^` mean themselves.
    is_unmasked: bool,
}

/// The query of a clause.
pub(super) fn meaning(clause: Clause, scope: &Scope) -> Result<Query, Diagnostic> {
    let Some((name, relation)) = clause.place else {
        let comparison = Comparison { relation: Relation::Phrase, term: clause.term, is_unmasked: false };
        return comparison.in_texts(None);
    };
    let index = scope.index(&name)?;
    let comparison = Comparison {
        relation: Relation::read(&relation.name, scope)?,
        term: clause.term,
        is_unmasked: is_unmasked(&relation, scope)?,
    };
    let refused = || {
        let details = format!("{} {name}", relation.name);
        Diagnostic::new(DiagnosticCode::UnsupportedCombinationOfRelationAndIndex, details)
    };
    match (index, comparison.relation) {
        (Index::ResultSet, _) => Err(Diagnostic::new(DiagnosticCode::ResultSetsNotSupported, "")),
        (Index::AllRecords, Relation::Phrase | Relation::Exact) => Ok(Query::All),
        (Index::ItemIdentifier, Relation::Phrase | Relation::Exact) => {
            Ok(Query::Identifier(comparison.whole_text()?))
        }
        (Index::ItemIdentifier, Relation::NotEqual) => {
            Ok(all_but(Query::Identifier(comparison.whole_text()?)))
        }
        (Index::ItemIdentifier, Relation::Any) => {
            comparison.refuse_masks()?;
            let identifiers = comparison.words()?.into_iter().map(|word| Query::Identifier(word.text));
            Ok(any(identifiers.collect()))
        }
        (Index::Field("date"), relation) if relation.is_order() => comparison.of_years(),
        (Index::Field("date"), Relation::Phrase | Relation::Exact) => match year(&comparison.term) {
            Some(year) => Ok(Query::Years { from: Some(year), until: Some(year) }),
            None => comparison.in_texts(Some(FieldName("date".to_owned()))),
        },
        (Index::Field("date"), Relation::NotEqual) if let Some(year) = year(&comparison.term) => {
            Ok(all_but(Query::Years { from: Some(year), until: Some(year) }))
        }
        (Index::AnyField, Relation::Phrase | Relation::All | Relation::Any) => comparison.in_texts(None),
        (Index::Field(field), relation) if !relation.is_order() => {
            comparison.in_texts(Some(FieldName(field.to_owned())))
        }
        _ => Err(refused()),
    }
}

/// Reads the modifiers of a relation. Those that describe what the index does anyway have no effect.
fn is_unmasked(relation: &Named, scope: &Scope) -> Result<bool, Diagnostic> {
    let mut is_unmasked = false;
    for modifier in &relation.modifiers {
        let name = scope.name_in("cql", &modifier.name)?;
        match (name.as_deref(), &modifier.value) {
            (Some("unmasked"), None) => is_unmasked = true,
            (Some("masked" | "ignorecase" | "ignoreaccents" | "relevant" | "word"), None) => {}
            _ => {
                let details = modifier.name.as_str();
                return Err(Diagnostic::new(DiagnosticCode::UnsupportedRelationModifier, details));
            }
        }
    }
    Ok(is_unmasked)
}

impl Comparison {
    fn words(&self) -> Result<Vec<Word>, Diagnostic> {
        if self.is_unmasked { unmasked_words(&self.term) } else { words(&self.term) }
    }

    fn refuse_masks(&self) -> Result<(), Diagnostic> {
        if self.words()?.iter().any(|word| word.is_start) {
            return Err(Diagnostic::new(DiagnosticCode::MaskingCharacterNotSupported, "*"));
        }
        Ok(())
    }

    /// The term as one text, without masks.
    fn whole_text(&self) -> Result<String, Diagnostic> {
        self.refuse_masks()?;
        literal(&self.term)
    }

    /// The query for the texts of a field; `None`: of all fields.
    fn in_texts(&self, field: Option<FieldName>) -> Result<Query, Diagnostic> {
        match (self.relation, field) {
            (Relation::Exact, Some(field)) => Ok(Query::Value { field, value: self.whole_text()? }),
            (Relation::NotEqual, Some(field)) => {
                Ok(all_but(Query::Value { field, value: self.whole_text()? }))
            }
            (Relation::All, field) => {
                let required = self.words()?.into_iter().map(|word| word_query(word, field.clone()));
                let required = required.collect();
                Ok(Query::Boolean { required, optional: Vec::new(), excluded: Vec::new() })
            }
            (Relation::Any, field) => {
                Ok(any(self.words()?.into_iter().map(|word| word_query(word, field.clone())).collect()))
            }
            (_, field) => {
                let mut words = self.words()?;
                if words.len() == 1 {
                    return Ok(word_query(words.remove(0), field));
                }
                if words.iter().any(|word| word.is_start) {
                    return Err(Diagnostic::new(DiagnosticCode::AdjacencyWithMasking, ""));
                }
                let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                Ok(Query::Phrase { field, words: words.join(" ") })
            }
        }
    }

    /// The query for years that are in an order to the term.
    fn of_years(&self) -> Result<Query, Diagnostic> {
        let years: Option<Vec<u16>> = self.term.split_whitespace().map(year).collect();
        let (from, until) = match (self.relation, years.as_deref()) {
            (Relation::Below, Some([year])) if *year > 0 => (None, Some(year - 1)),
            (Relation::AtMost, Some([year])) => (None, Some(*year)),
            (Relation::Above, Some([year])) => (Some(year + 1), None),
            (Relation::AtLeast, Some([year])) => (Some(*year), None),
            (Relation::Within, Some([from, until])) if from <= until => (Some(*from), Some(*until)),
            (relation, _) => {
                let form = match relation {
                    Relation::Within => "two years of four digits, the first one first",
                    _ => "a year of four digits",
                };
                return Err(Diagnostic::new(DiagnosticCode::InvalidTermForIndexOrRelation, form));
            }
        };
        Ok(Query::Years { from, until })
    }
}

/// A year of four digits.
fn year(term: &str) -> Option<u16> {
    if term.len() == 4 && term.bytes().all(|byte| byte.is_ascii_digit()) { term.parse().ok() } else { None }
}

fn word_query(word: Word, field: Option<FieldName>) -> Query {
    if word.is_start {
        Query::Prefix { field, start: word.text }
    } else {
        Query::Word { field, word: word.text }
    }
}

fn any(optional: Vec<Query>) -> Query {
    Query::Boolean { required: Vec::new(), optional, excluded: Vec::new() }
}

fn all_but(excluded: Query) -> Query {
    Query::Boolean { required: vec![Query::All], optional: Vec::new(), excluded: vec![excluded] }
}
