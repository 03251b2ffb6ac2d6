//! The tokens of a query.

use crate::{Diagnostic, DiagnosticCode};

/// Maximum length of a query, in bytes.
pub(super) const CQL_BYTES_MAX: usize = 8_192;

/// A token, and the byte where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Open,
    Close,
    Slash,
    /// A comparison symbol.
    Symbol(&'static str),
    /// A reserved word, without regard to case, as written.
    Keyword(Keyword, String),
    /// A name or a term. Of a quoted one the text without its quotes, with its backslashes.
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Prox,
    SortBy,
}

/// Longer symbols before their beginnings.
const SYMBOLS: [&str; 7] = ["<=", ">=", "<>", "==", "<", ">", "="];

/// Splits a query into tokens.
pub(super) fn tokens(query: &str) -> Result<Vec<Token>, Diagnostic> {
    if query.len() > CQL_BYTES_MAX {
        let details = CQL_BYTES_MAX.to_string();
        return Err(Diagnostic::new(DiagnosticCode::TooManyCharactersInQuery, details));
    }
    let mut tokens = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let start = query.len() - rest.len();
        let (kind, len) = match first {
            '(' => (TokenKind::Open, 1),
            ')' => (TokenKind::Close, 1),
            '/' => (TokenKind::Slash, 1),
            '"' => {
                let len = quoted_len(rest).ok_or_else(|| {
                    Diagnostic::new(DiagnosticCode::UnsupportedUseOfQuotes, start.to_string())
                })?;
                (TokenKind::Text(rest[1..len - 1].to_owned()), len)
            }
            _ => match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
                Some(symbol) => (TokenKind::Symbol(symbol), symbol.len()),
                None => {
                    let word = rest.split(ends_word).next().unwrap_or_default();
                    (word_kind(word), word.len())
                }
            },
        };
        tokens.push(Token { kind, start });
        rest = rest[len..].trim_start();
    }
    Ok(tokens)
}

fn ends_word(char: char) -> bool {
    char.is_whitespace() || matches!(char, '(' | ')' | '=' | '<' | '>' | '"' | '/')
}

/// The length of a quoted text with both quotes. A backslash escapes the character after it.
fn quoted_len(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn word_kind(word: &str) -> TokenKind {
    let keyword = match word.to_ascii_lowercase().as_str() {
        "and" => Keyword::And,
        "or" => Keyword::Or,
        "not" => Keyword::Not,
        "prox" => Keyword::Prox,
        "sortby" => Keyword::SortBy,
        _ => return TokenKind::Text(word.to_owned()),
    };
    TokenKind::Keyword(keyword, word.to_owned())
}
