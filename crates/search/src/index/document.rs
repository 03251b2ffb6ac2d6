//! The document of a record in the index.

use super::schema::{END, Fields, Mark, NEXT, OTHER_ELEMENTS, SAME, STEM, columns, record_key};
use crate::record_texts::{DUBLIN_CORE, RecordTexts};
use crate::text::spelling;
use oaimend_oai::UnixSecs;
use std::collections::HashSet;
use tantivy::TantivyDocument;
use tantivy::schema::Schema;

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
    pub(super) fn document(&self, schema: &Schema, fields: &Fields) -> tantivy::Result<TantivyDocument> {
        let mut document = TantivyDocument::default();
        let texts = self.texts;
        document.add_text(fields.key, record_key(&texts.repository, self.prefix, &texts.identifier));
        self.add_marks(&mut document, fields);
        let mut column = |name: &str, value: &str| -> tantivy::Result<()> {
            document.add_text(schema.get_field(name)?, value);
            Ok(())
        };
        column(columns::REPOSITORY, &texts.repository)?;
        column(columns::WORK_TYPE, texts.work_type)?;
        column(columns::ACCESS, texts.access)?;
        if let Some(tag) = &texts.language {
            column(columns::LANGUAGE, tag)?;
        }
        if let Some(year) = texts.year {
            document.add_u64(schema.get_field(columns::YEAR)?, u64::from(year));
        }
        document.add_i64(schema.get_field(columns::STAMP)?, self.stamp_secs.0);
        document.add_u64(schema.get_field(columns::SEQUENCE)?, self.sequence);
        document.add_bool(schema.get_field(columns::SHOWN)?, self.is_shown);
        self.add_words(&mut document, fields);
        self.add_values(&mut document, fields);
        Ok(document)
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
            let name = text.name.as_str();
            let is_other = !DUBLIN_CORE.contains(&name);
            for name in is_other.then_some(OTHER_ELEMENTS).into_iter().chain([name]) {
                let mut words = format!("{name}{END}");
                let mut stems = words.clone();
                let mut position = None;
                for word in &text.words {
                    words.push(if position == Some(word.position) { SAME } else { NEXT });
                    words.push_str(&word.folded);
                    position = Some(word.position);
                    if let Some((language, stem)) = text.language.zip(word.other_stem()) {
                        stems.push(NEXT);
                        stems.push_str(language.code());
                        stems.push(STEM);
                        stems.push_str(stem);
                    }
                }
                if stems.len() > name.len() + END.len_utf8() {
                    document.add_text(fields.stems, stems);
                }
                document.add_text(fields.words, words);
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
