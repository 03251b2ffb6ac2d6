//! Whether one record matches a query. The index gives the same records.

use super::{FieldName, Query};
use crate::record_texts::{AnalysedText, RecordTexts};
use crate::text::{QueryWords, StemLanguage, fold_value};

impl Query {
    /// Whether a record matches. Pure; the cost depends on the size of the query and of the record. A query that
    /// [`Query::check`] refuses matches nothing.
    pub fn matches(&self, record: &RecordTexts) -> bool {
        self.check().is_ok() && self.is_match(record)
    }

    fn is_match(&self, record: &RecordTexts) -> bool {
        match self {
            Self::All => true,
            Self::Word { field, word } => has_word(record, field.as_ref(), &QueryWords::of(word)),
            Self::Phrase { field, words } => {
                let words = QueryWords::of(words);
                texts(record, field.as_ref()).any(|text| text.contains(&words))
            }
            Self::Prefix { field, start } => has_start(record, field.as_ref(), &QueryWords::of(start)),
            Self::Value { field, value } => has_value(record, field, value),
            Self::AnyValue { field, values } => values.iter().any(|value| has_value(record, field, value)),
            Self::Years { from, until } => record.year.is_some_and(|year| {
                from.is_none_or(|from| from <= year) && until.is_none_or(|until| year <= until)
            }),
            Self::Repository(name) => record.repository == *name,
            Self::Identifier(identifier) => record.identifier == *identifier,
            Self::Type(label) => record.work_type == label,
            Self::Language(tag) => record.language.as_ref() == Some(tag),
            Self::Access(access) => record.access == access,
            Self::Boolean { required, optional, excluded } => {
                let has_optional = required.is_empty() && !optional.is_empty();
                required.iter().all(|query| query.is_match(record))
                    && (!has_optional || optional.iter().any(|query| query.is_match(record)))
                    && !excluded.iter().any(|query| query.is_match(record))
            }
        }
    }
}

fn has_value(record: &RecordTexts, field: &FieldName, value: &str) -> bool {
    let folded = fold_value(value);
    texts(record, Some(field)).any(|text| text.value.as_ref().is_some_and(|(value, _)| *value == folded))
}

/// The texts of a field, or of all fields.
fn texts<'r>(record: &'r RecordTexts, field: Option<&FieldName>) -> impl Iterator<Item = &'r AnalysedText> {
    let key = field.map(FieldName::key);
    record.texts.iter().filter(move |text| key.as_ref().is_none_or(|key| text.name == *key))
}

/// Whether a text has the folded word, or one with its stem in the language of the text, or its stem itself in one of the
/// languages of the record.
fn has_word(record: &RecordTexts, field: Option<&FieldName>, words: &QueryWords) -> bool {
    let stem = |language: StemLanguage| Some((language, language.stem(words.stemmable.as_deref()?)?));
    let stems: Vec<(StemLanguage, String)> = record.stem_languages().filter_map(stem).collect();
    texts(record, field).any(|text| text.contains(words) || has_stem(text, &stems))
}

fn has_stem(text: &AnalysedText, stems: &[(StemLanguage, String)]) -> bool {
    let is_of_text = |language: &StemLanguage| text.language == Some(*language);
    stems.iter().any(|(language, stem)| {
        text.words.iter().any(|(_, word)| word == stem)
            || (is_of_text(language) && text.stems.iter().any(|(_, found)| found == stem))
    })
}

fn has_start(record: &RecordTexts, field: Option<&FieldName>, words: &QueryWords) -> bool {
    let Some(((_, start), before)) = words.tokens.split_last() else { return false };
    let has = |is_found: &dyn Fn(&str) -> bool| {
        texts(record, field).any(|text| text.words.iter().any(|(_, word)| is_found(word)))
    };
    has(&|word| word.starts_with(start.as_str()))
        && before.iter().all(|(_, needed)| has(&|word| word == needed))
}
