//! The fields of the index.
//!
//! No text is stored, since the mirror has the records. Terms that belong to a name begin with it. The control characters
//! 0 to 3 divide the parts of terms; no word contains them.

use crate::text::WordReader;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, NumericOptions, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{Index, Term};

/// The format of the index. An index of another format is built again.
pub(super) const FORMAT: u32 = 4;

/// The name under which texts of formats without a crosswalk are indexed again, so that queries without a field find them.
pub(super) const OTHER_ELEMENTS: &str = "*";

/// Ends the language of a stem.
pub(super) const STEM: char = '\u{3}';
/// Ends the name at the start of a term.
pub(super) const END: char = '\0';

/// The fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// Identifier, prefix and repository.
    pub(super) key: Field,
    /// Name and folded word, with positions.
    pub(super) words: Field,
    /// Name, language and stem of a word, unless the stem is the folded word.
    pub(super) stems: Field,
    /// Name, folded text and spelling of short texts.
    pub(super) values: Field,
    /// What filters need: see [`Mark`].
    pub(super) marks: Field,
    pub(super) columns: ColumnFields,
}

/// The columns. Readers open them by their names: see [`columns`].
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnFields {
    pub(super) repository: Field,
    pub(super) work_type: Field,
    pub(super) language: Field,
    pub(super) access: Field,
    pub(super) year: Field,
    pub(super) stamp: Field,
    pub(super) sequence: Field,
    pub(super) shown: Field,
}

/// The columns, by their names.
pub(super) mod columns {
    pub(crate) const REPOSITORY: &str = "repository";
    pub(crate) const WORK_TYPE: &str = "type";
    pub(crate) const LANGUAGE: &str = "language";
    pub(crate) const ACCESS: &str = "access";
    pub(crate) const YEAR: &str = "year";
    pub(crate) const STAMP: &str = "stamp";
    pub(crate) const SEQUENCE: &str = "sequence";
    pub(crate) const SHOWN: &str = "shown";
}

/// A property of a record that filters need.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark<'m> {
    Repository(&'m str),
    Prefix(&'m str),
    Collection(&'m str, &'m str),
    Type(&'m str),
    Language(&'m str),
    Access(&'m str),
    /// The code of a language in which a text of the record has stems.
    Stems(&'m str),
    /// The record describes its item best.
    Shown,
}

impl Mark<'_> {
    pub(super) fn text(self) -> String {
        match self {
            Self::Repository(name) => format!("r{name}"),
            Self::Prefix(prefix) => format!("p{prefix}"),
            Self::Collection(repository, prefix) => format!("c{repository}{END}{prefix}"),
            Self::Type(label) => format!("t{label}"),
            Self::Language(tag) => format!("l{tag}"),
            Self::Access(access) => format!("a{access}"),
            Self::Stems(code) => format!("{STEMS_OF}{code}{END}"),
            Self::Shown => "s".to_owned(),
        }
    }
}

/// Begins [`Mark::Stems`].
pub(super) const STEMS_OF: &str = "w";

/// The key of a record. Keys that begin with an identifier are those of its records.
pub(super) fn record_key(repository: &str, prefix: &str, identifier: &str) -> String {
    format!("{identifier}{END}{prefix}{END}{repository}")
}

pub(super) fn schema() -> (Schema, Fields) {
    let text = |tokenizer: &str, option: IndexRecordOption| {
        let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(option);
        TextOptions::default()
            .set_indexing_options(indexing.set_fieldnorms(option != IndexRecordOption::Basic))
    };
    let mut builder = Schema::builder();
    let fields = Fields {
        key: builder.add_text_field("key", STRING | STORED),
        words: builder.add_text_field("words", text(ENCODED, IndexRecordOption::WithFreqsAndPositions)),
        stems: builder.add_text_field("stems", text(ENCODED, IndexRecordOption::Basic)),
        values: builder.add_text_field("values", text("raw", IndexRecordOption::Basic)),
        marks: builder.add_text_field("marks", text("raw", IndexRecordOption::Basic)),
        columns: ColumnFields {
            repository: builder.add_text_field(columns::REPOSITORY, FAST),
            work_type: builder.add_text_field(columns::WORK_TYPE, FAST),
            language: builder.add_text_field(columns::LANGUAGE, FAST),
            access: builder.add_text_field(columns::ACCESS, FAST),
            year: builder.add_u64_field(columns::YEAR, NumericOptions::default().set_fast()),
            stamp: builder.add_i64_field(columns::STAMP, FAST),
            sequence: builder.add_u64_field(columns::SEQUENCE, FAST),
            shown: builder.add_bool_field(columns::SHOWN, FAST),
        },
    };
    (builder.build(), fields)
}

impl Fields {
    pub(super) fn mark(&self, mark: Mark<'_>) -> Term {
        Term::from_field_text(self.marks, &mark.text())
    }

    pub(super) fn record(&self, repository: &str, prefix: &str, identifier: &str) -> Term {
        Term::from_field_text(self.key, &record_key(repository, prefix, identifier))
    }
}

const ENCODED: &str = "encoded";

pub(super) fn register_tokenizer(index: &Index) {
    index.tokenizers().register(ENCODED, Encoded::default());
}

/// Divides texts that are analysed already: the start of all terms, and then encoded words.
#[derive(Clone, Debug, Default)]
struct Encoded {
    token: Token,
}

#[derive(Debug)]
struct EncodedStream<'t> {
    token: &'t mut Token,
    /// The length of the start of all terms, in bytes.
    start_bytes: usize,
    words: WordReader<'t>,
}

impl Tokenizer for Encoded {
    type TokenStream<'t> = EncodedStream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> EncodedStream<'t> {
        self.token.reset();
        let (start, words) = WordReader::after_start(text);
        self.token.text.push_str(start);
        EncodedStream { token: &mut self.token, start_bytes: start.len(), words }
    }
}

impl TokenStream for EncodedStream<'_> {
    fn advance(&mut self) -> bool {
        let Some((position, word)) = self.words.next() else { return false };
        self.token.position = usize::try_from(position).unwrap_or(usize::MAX);
        self.token.text.truncate(self.start_bytes);
        self.token.text.push_str(word);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
