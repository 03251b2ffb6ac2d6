//! The texts of a record that a search finds.

use crate::text::{KnownStems, QueryWords, StemLanguage, fold_value, tokens};
use oaimend_record::{Agent, Orcid, RecordDocument, Text, WorkDescription};

/// The elements of Dublin Core, which are the fields of most records.
pub const DUBLIN_CORE: [&str; 15] = [
    "title",
    "creator",
    "subject",
    "description",
    "publisher",
    "contributor",
    "date",
    "type",
    "format",
    "identifier",
    "source",
    "language",
    "relation",
    "coverage",
    "rights",
];

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
    pub(crate) name: String,
    pub(crate) words: Vec<AnalysedWord>,
    /// The language of its stems.
    pub(crate) language: Option<StemLanguage>,
    /// The folded text and the text as written; `None` if it is long.
    pub(crate) value: Option<(String, String)>,
}

#[derive(Clone, Debug)]
pub(crate) struct AnalysedWord {
    pub(crate) folded: String,
    pub(crate) position: u32,
    pub(crate) stem: Option<String>,
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
                texts.add(&field.name, &field.text, stems);
            }
        } else {
            for (name, fields) in work.core.fields() {
                fields.iter().for_each(|text| texts.add(name, text, stems));
            }
            let orcids = |agents: &[Agent]| agents.iter().filter_map(|agent| agent.orcid.clone()).collect();
            let creators: Vec<Orcid> = orcids(&work.creators);
            creators.iter().chain(&work.orcids).for_each(|orcid| texts.add_orcid("creator", orcid, stems));
            let contributors: Vec<Orcid> = orcids(&work.contributors);
            contributors.iter().for_each(|orcid| texts.add_orcid("contributor", orcid, stems));
        }
        texts
    }

    /// Adds the URL of a person, which is found by its digits too. It is no value: lists of values are for people.
    fn add_orcid(&mut self, name: &str, orcid: &Orcid, stems: &mut KnownStems) {
        self.add(name, &Text { value: orcid.url(), ..Text::default() }, stems);
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

    fn add(&mut self, name: &str, text: &Text, stems: &mut KnownStems) {
        let tag = text.language.as_deref().or(self.language.as_deref());
        let language = tag.and_then(StemLanguage::of_tag);
        let mut stem = |written: &str| stems.stem(language?, written);
        let words = tokens(&text.value).map(|token| AnalysedWord {
            stem: token.written.and_then(&mut stem),
            folded: token.folded,
            position: token.position,
        });
        let words = words.collect();
        // Folding makes a text at most a few times shorter, so a longer one cannot become short enough.
        let folded =
            if text.value.len() > 4 * VALUE_BYTES_MAX { String::new() } else { fold_value(&text.value) };
        let is_value = (1..=VALUE_BYTES_MAX).contains(&folded.len());
        let value = if is_value { Some((folded, oaimend_record::on_one_line(&text.value))) } else { None };
        self.texts.push(AnalysedText { name: field_key(name), words, language, value });
    }
}

/// The name of a field in the index: in lower case, not too long.
pub(crate) fn field_key(name: &str) -> String {
    oaimend_record::shorten(name, NAME_BYTES_MAX).0.to_lowercase()
}

impl AnalysedWord {
    /// Its stem, unless that is the folded word.
    pub(crate) fn other_stem(&self) -> Option<&str> {
        self.stem.as_deref().filter(|stem| *stem != self.folded)
    }
}

impl AnalysedText {
    /// Whether the text contains these words in order.
    pub(crate) fn contains(&self, words: &QueryWords) -> bool {
        let Some(((_, first), rest)) = words.tokens.split_first() else { return false };
        self.words.iter().enumerate().any(|(index, word)| {
            word.folded == *first && follow(self.words.get(index..).unwrap_or_default(), rest)
        })
    }
}

/// Whether the words after the first one follow it at their places.
fn follow(words: &[AnalysedWord], needed: &[(u32, String)]) -> bool {
    let Some(first) = words.first().map(|word| word.position) else { return false };
    let mut rest = words.iter().peekable();
    needed.iter().all(|(offset, needed)| {
        let position = first + offset;
        while rest.next_if(|word| word.position < position).is_some() {}
        // Up to two words have one position, a character and a pair.
        std::iter::from_fn(|| rest.next_if(|word| word.position == position))
            .any(|word| word.folded == *needed)
    })
}
