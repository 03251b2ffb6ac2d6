//! The document of a record in the index.

use super::schema::{END, Fields, Mark, OTHER_ELEMENTS, STEM, record_key};
use crate::record_texts::{DUBLIN_CORE, RecordTexts};
use crate::text::spelling;
use oaimend_oai::UnixSecs;
use std::collections::HashSet;
use tantivy::TantivyDocument;

/// A record for the index.
#[derive(Debug)]
pub(super) struct IndexedRecord<'r> {
    pub(super) prefix: &'r str,
    pub(super) stamp_secs: UnixSecs,
    pub(super) sequence: u64,
    /// Whether it describes its item best.
    pub(super) is_shown: bool,
    pub(super) texts: &'r RecordTexts,
}

impl IndexedRecord<'_> {
    pub(super) fn document(&self, fields: &Fields) -> TantivyDocument {
        let mut document = TantivyDocument::default();
        let (texts, columns) = (self.texts, &fields.columns);
        document.add_text(fields.key, record_key(&texts.repository, self.prefix, &texts.identifier));
        self.add_marks(&mut document, fields);
        document.add_text(columns.repository, &texts.repository);
        document.add_text(columns.work_type, texts.work_type);
        document.add_text(columns.access, texts.access);
        if let Some(tag) = &texts.language {
            document.add_text(columns.language, tag);
        }
        if let Some(year) = texts.year {
            document.add_u64(columns.year, u64::from(year));
        }
        document.add_i64(columns.stamp, self.stamp_secs.0);
        document.add_u64(columns.sequence, self.sequence);
        document.add_bool(columns.shown, self.is_shown);
        self.add_words(&mut document, fields);
        self.add_values(&mut document, fields);
        document
    }

    fn add_marks(&self, document: &mut TantivyDocument, fields: &Fields) {
        let texts = self.texts;
        let mut marks = vec![
            Mark::Repository(&texts.repository),
            Mark::Prefix(self.prefix),
            Mark::Collection(&texts.repository, self.prefix),
            Mark::Type(texts.work_type),
            Mark::Access(texts.access),
        ];
        marks.extend(texts.language.as_deref().map(Mark::Language));
        marks.extend(texts.stem_languages().map(|language| Mark::Stems(language.code())));
        if self.is_shown {
            marks.push(Mark::Shown);
        }
        for mark in marks {
            document.add_text(fields.marks, mark.text());
        }
    }

    fn add_words(&self, document: &mut TantivyDocument, fields: &Fields) {
        for text in &self.texts.texts {
            let name = text.name.as_ref();
            let is_other = !DUBLIN_CORE.contains(&name);
            for name in is_other.then_some(OTHER_ELEMENTS).into_iter().chain([name]) {
                let words = text.words.as_str();
                document.add_text(fields.words, format!("{name}{END}{words}"));
                if let Some(language) = text.language
                    && !text.stems.as_str().is_empty()
                {
                    let (code, stems) = (language.code(), text.stems.as_str());
                    document.add_text(fields.stems, format!("{name}{END}{code}{STEM}{stems}"));
                }
            }
        }
    }

    /// Each value of a name once, however often the record has it.
    fn add_values(&self, document: &mut TantivyDocument, fields: &Fields) {
        let mut known = HashSet::new();
        for text in &self.texts.texts {
            if let Some((folded, written)) = &text.value
                && known.insert((&text.name, folded))
            {
                let spelling = spelling(folded, written);
                document.add_text(fields.values, format!("{}{END}{folded}{END}{spelling}", text.name));
            }
        }
    }
}
