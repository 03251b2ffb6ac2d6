//! The words of a term, with its masking and its escapes.

use crate::{Diagnostic, DiagnosticCode};

/// Maximum length of a term, in bytes.
const TERM_BYTES_MAX: usize = 1_024;
/// Minimum number of characters before a `*`.
const MASKED_CHARS_MIN: usize = 2;

/// A word of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether any end may follow: a `*` is after it.
    pub(super) is_start: bool,
}

/// Splits a term into its words. A `*` after a word masks the rest of it; no other masking is supported.
pub(super) fn words(term: &str) -> Result<Vec<Word>, Diagnostic> {
    check_length(term)?;
    let mut words = Vec::new();
    let mut word = Word { text: String::new(), is_start: false };
    let mut chars = term.chars().peekable();
    while let Some(char) = chars.next() {
        if char.is_whitespace() {
            if !word.text.is_empty() {
                words.push(std::mem::replace(&mut word, Word { text: String::new(), is_start: false }));
            }
            continue;
        }
        let ends_here = chars.peek().is_none_or(|next| next.is_whitespace());
        match char {
            '\\' => word.text.push(escaped(chars.next())?),
            '?' => return Err(Diagnostic::new(DiagnosticCode::MaskingCharacterNotSupported, "?")),
            '^' if ends_here || word.text.is_empty() => {
                return Err(Diagnostic::new(DiagnosticCode::AnchoringCharacterNotSupported, "^"));
            }
            '*' if !ends_here => {
                return Err(Diagnostic::new(DiagnosticCode::MaskingCharacterInUnsupportedPosition, "*"));
            }
            '*' if word.text.chars().count() < MASKED_CHARS_MIN => {
                let details = MASKED_CHARS_MIN.to_string();
                return Err(Diagnostic::new(DiagnosticCode::MaskedWordsTooShort, details));
            }
            '*' => word.is_start = true,
            char => word.text.push(char),
        }
    }
    if !word.text.is_empty() {
        words.push(word);
    }
    if words.is_empty() {
        return Err(Diagnostic::new(DiagnosticCode::EmptyTermUnsupported, ""));
    }
    Ok(words)
}

/// The words of a term in which `*`, `?` and `^` mean themselves.
pub(super) fn unmasked_words(term: &str) -> Result<Vec<Word>, Diagnostic> {
    let words = literal(term)?;
    let words = words.split_whitespace().map(|word| Word { text: word.to_owned(), is_start: false });
    let words: Vec<Word> = words.collect();
    if words.is_empty() {
        return Err(Diagnostic::new(DiagnosticCode::EmptyTermUnsupported, ""));
    }
    Ok(words)
}

/// A term without its escapes, in which `*`, `?` and `^` mean themselves.
pub(super) fn literal(term: &str) -> Result<String, Diagnostic> {
    check_length(term)?;
    let mut text = String::with_capacity(term.len());
    let mut chars = term.chars();
    while let Some(char) = chars.next() {
        text.push(if char == '\\' { escaped(chars.next())? } else { char });
    }
    Ok(text)
}

fn check_length(term: &str) -> Result<(), Diagnostic> {
    if term.len() > TERM_BYTES_MAX {
        let details = TERM_BYTES_MAX.to_string();
        return Err(Diagnostic::new(DiagnosticCode::TooManyCharactersInTerm, details));
    }
    Ok(())
}

/// The character after a backslash.
fn escaped(char: Option<char>) -> Result<char, Diagnostic> {
    let char = char.filter(|char| matches!(char, '\\' | '"' | '*' | '?' | '^'));
    char.ok_or_else(|| Diagnostic::new(DiagnosticCode::NonSpecialCharacterEscaped, "\\"))
}
