//! The texts of a record that a search finds.

use crate::text::{EncodedWords, KnownStems, QueryWords, StemLanguage, TokenReader, WordReader, fold_value};
use oaimend_record::{Agent, DublinCore, Orcid, RecordDocument, Text, WorkDescription};
use std::borrow::Cow;

/// The elements of Dublin Core, which are the fields of most records.
pub const DUBLIN_CORE: [&str; 15] = DublinCore::ELEMENTS;

/// Longest text that is a value, in bytes of its folded form.
pub(crate) const VALUE_BYTES_MAX: usize = 200;
/// Longest name of a field, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The analysed texts of a record: what a query is matched with.
#[derive(Clone, Debug, Default)]
pub struct RecordTexts {
    pub(crate) repository: String,
    pub(crate) identifier: String,
    pub(crate) texts: Vec<AnalysedText>,
    pub(crate) work_type: &'static str,
    pub(crate) year: Option<u16>,
    /// The tag of its language.
    pub(crate) language: Option<String>,
    pub(crate) access: &'static str,
}

/// A text of a field.
#[derive(Clone, Debug)]
pub(crate) struct AnalysedText {
    pub(crate) name: Cow<'static, str>,
    /// The folded words.
    pub(crate) words: EncodedWords,
    /// The stems that differ from their folded words.
    pub(crate) stems: EncodedWords,
    /// The language of its stems.
    pub(crate) language: Option<StemLanguage>,
    /// The folded text and the text as written; `None` if it is long.
    pub(crate) value: Option<(String, String)>,
}

impl RecordTexts {
    /// The texts of a record of a repository. A record in a format without a crosswalk to Dublin Core has its elements as
    /// fields.
    pub fn of(repository: &str, identifier: &str, document: &RecordDocument) -> Self {
        Self::analysed(repository, identifier, document, &mut KnownStems::default())
    }

    /// As [`RecordTexts::of`], with the stems of records before.
    pub(crate) fn analysed(
        repository: &str,
        identifier: &str,
        document: &RecordDocument,
        stems: &mut KnownStems,
    ) -> Self {
        let work = WorkDescription::of(document);
        let language = work.language();
        let mut texts = Self {
            repository: repository.to_owned(),
            identifier: identifier.to_owned(),
            texts: Vec::new(),
            work_type: work.work_type.label(),
            year: work.published.and_then(|date| date.in_iso_8601().get(..4)?.parse().ok()),
            access: if work.is_open_access { "open" } else { "other" },
            language,
        };
        if work.core.is_empty() {
            for field in document.metadata.iter().filter(|field| !field.text.value.is_empty()) {
                texts.add(Cow::Owned(field_key(&field.name)), &field.text, stems);
            }
        } else {
            for (name, fields) in work.core.fields() {
                fields.iter().for_each(|text| texts.add(Cow::Borrowed(name), text, stems));
            }
            texts.add_container(&work, stems);
            let orcids = |agents: &[Agent]| agents.iter().filter_map(|agent| agent.orcid.clone()).collect();
            let creators: Vec<Orcid> = orcids(&work.creators);
            creators.iter().chain(&work.orcids).for_each(|orcid| texts.add_orcid("creator", orcid, stems));
            let contributors: Vec<Orcid> = orcids(&work.contributors);
            contributors.iter().for_each(|orcid| texts.add_orcid("contributor", orcid, stems));
        }
        texts
    }

    /// Adds what its formats tell of the journal or book beside the text of a source, such as the ISSN of MARCXML and the
    /// volume of MODS, so that a citation finds the record. It is no value, because lists of values are for people.
    fn add_container(&mut self, work: &WorkDescription, stems: &mut KnownStems) {
        let container = &work.container;
        let numbers = [&container.volume, &container.issue, &container.first_page, &container.last_page];
        let parts = container.issns.iter().chain(numbers.into_iter().flatten());
        let sources = &work.core.sources;
        let is_known = |part: &&str| sources.iter().any(|source| has_part(&source.value, part));
        let lacking: Vec<&str> = parts.map(String::as_str).filter(|part| !is_known(part)).collect();
        if !lacking.is_empty() {
            self.add_hidden("source", lacking.join(" "), stems);
        }
    }

    /// Adds the URL of a person, which is found by its digits too. It is no value: lists of values are for people.
    fn add_orcid(&mut self, name: &'static str, orcid: &Orcid, stems: &mut KnownStems) {
        self.add_hidden(name, orcid.url(), stems);
    }

    /// Adds a text that is found and is no value.
    fn add_hidden(&mut self, name: &'static str, value: String, stems: &mut KnownStems) {
        self.add(Cow::Borrowed(name), &Text { value, ..Text::default() }, stems);
        if let Some(added) = self.texts.last_mut() {
            added.value = None;
        }
    }

    /// The languages of its texts that have stems, each once.
    pub(crate) fn stem_languages(&self) -> impl Iterator<Item = StemLanguage> {
        let mut known = Vec::new();
        for language in self.texts.iter().filter_map(|text| text.language) {
            if !known.contains(&language) {
                known.push(language);
            }
        }
        known.into_iter()
    }

    fn add(&mut self, name: Cow<'static, str>, text: &Text, known: &mut KnownStems) {
        let tag = text.language.as_deref().or(self.language.as_deref());
        let language = tag.and_then(StemLanguage::of_tag);
        let (mut words, mut stems) = (EncodedWords::default(), EncodedWords::default());
        let mut reader = TokenReader::new(&text.value);
        while let Some(token) = reader.read() {
            words.push(token.position, token.folded);
            if let Some((language, written)) = language.zip(token.written) {
                known.read(language, written, token.folded, |stem| {
                    if let Some(stem) = stem {
                        stems.push(token.position, stem);
                    }
                });
            }
        }
        // Folding makes a text at most a few times shorter, so a longer one cannot become short enough.
        let folded =
            if text.value.len() > 4 * VALUE_BYTES_MAX { String::new() } else { fold_value(&text.value) };
        let is_value = (1..=VALUE_BYTES_MAX).contains(&folded.len());
        let value = if is_value { Some((folded, oaimend_record::on_one_line(&text.value))) } else { None };
        self.texts.push(AnalysedText { name, words, stems, language, value });
    }
}

/// Whether a text contains this part, with no letter or digit beside it.
fn has_part(text: &str, part: &str) -> bool {
    text.match_indices(part).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + part.len()..].chars().next();
        [before, after].into_iter().flatten().all(|beside| !beside.is_alphanumeric())
    })
}

/// The name of a field in the index: in lower case, not too long.
pub(crate) fn field_key(name: &str) -> String {
    oaimend_record::shorten(name, NAME_BYTES_MAX).0.to_lowercase()
}

impl AnalysedText {
    /// Whether the text contains these words in order.
    pub(crate) fn contains(&self, words: &QueryWords) -> bool {
        let Some(((_, first), rest)) = words.tokens.split_first() else { return false };
        let mut reader = self.words.iter();
        while let Some((position, word)) = reader.next() {
            if word == first && follow(reader.clone(), position, rest) {
                return true;
            }
        }
        false
    }
}

/// Whether the words after the first one, which has this position, follow it at their places.
fn follow(words: WordReader<'_>, first: u32, needed: &[(u32, String)]) -> bool {
    let mut rest = words.peekable();
    needed.iter().all(|(offset, needed)| {
        let position = first + offset;
        while rest.next_if(|(place, _)| *place < position).is_some() {}
        // Up to two words have one position, a character and a pair.
        std::iter::from_fn(|| rest.next_if(|(place, _)| *place == position)).any(|(_, word)| word == needed)
    })
}
