//! Texts of a source without the secrets of its mapping.
//!
//! A source can echo a request with its `Authorization` header, or the query of a base URL such as `?apikey=`. Logs,
//! responses, pages, the admin listener and kept broken pages contain them in masked form only.

use memchr::memchr;
use std::borrow::Cow;
use std::fmt;

/// What replaces a secret.
pub const MASK: &str = "***";

/// The texts that must not be shown.
#[derive(Default)]
pub struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Secrets in any order. The longest are replaced first, because one can contain another.
    pub fn new(mut secrets: Vec<String>) -> Self {
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// Replaces the secrets in what the source sent: as they are, and with any of their characters percent-encoded,
    /// as references of XML and HTML, or as escapes of JSON and other languages.
    pub fn mask<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if let Some(masked) = replaced(&text, secret.as_bytes()) {
                text = Cow::Owned(masked);
            }
        }
        text
    }

    /// [`mask`](Self::mask) for a text.
    pub fn mask_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.mask(text.as_bytes())).into_owned()
    }
}

/// The text with the secret replaced; `None` if it does not contain the secret.
fn replaced(text: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let (&first, mut masked, mut kept_from, mut at) = (secret.first()?, Vec::new(), 0, 0);
    while let Some(&byte) = text.get(at) {
        let may_begin = byte == first || matches!(byte, b'%' | b'&' | b'\\' | b'+');
        let length = may_begin.then(|| written_length(text.get(at..)?, secret)).flatten();
        if let Some(length) = length {
            masked.extend_from_slice(text.get(kept_from..at)?);
            masked.extend_from_slice(MASK.as_bytes());
            kept_from = at + length;
        }
        at += length.unwrap_or(1);
    }
    if kept_from == 0 {
        return None;
    }
    masked.extend_from_slice(text.get(kept_from..)?);
    Some(masked)
}

/// The length of the secret at the start of a text, in bytes as it is written there; `None` if it is not there.
fn written_length(text: &[u8], secret: &[u8]) -> Option<usize> {
    // Escapes in the secret itself.
    if text.starts_with(secret) {
        return Some(secret.len());
    }
    let (mut rest, mut left) = (text, secret);
    while let Some(&next) = left.first() {
        let (length, matched) = escaped_part(rest, left).or_else(|| {
            let byte = *rest.first()?;
            (byte == next || byte == b'+' && next == b' ').then_some((1, 1))
        })?;
        (rest, left) = (rest.get(length..)?, left.get(matched..)?);
    }
    Some(text.len() - rest.len())
}

/// Reads an escape at the start of a text that encodes the start of the secret. Returns the length of the escape and
/// the length of the encoded part of the secret, in bytes. Percent signs and ampersands may be escaped several times,
/// as in `%2521` and `&amp;amp;lt;`.
fn escaped_part(text: &[u8], secret: &[u8]) -> Option<(usize, usize)> {
    let stands_for = |character: char| {
        let mut buffer = [0; 4];
        let bytes = character.encode_utf8(&mut buffer).as_bytes();
        secret.starts_with(bytes).then_some(bytes.len())
    };
    let is_percent = match text.first()? {
        b'%' => true,
        b'&' => false,
        b'\\' => {
            let (length, character) = backslash_escape(text.get(1..)?)?;
            return Some((1 + length, stands_for(character)?));
        }
        _ => return None,
    };
    let inner: &[u8] = if is_percent { b"25" } else { b"amp;" };
    let (mut found, mut at) = (None, 1);
    loop {
        let rest = text.get(at..)?;
        let (length, matched) = if is_percent {
            // A percent code encodes a byte, which may be a part of a character.
            let code = rest.get(..2).and_then(hex_value);
            (2, code.and_then(|code| (u32::from(*secret.first()?) == code).then_some(1)))
        } else {
            let read = reference(rest);
            (read.map_or(0, |(length, _)| length), read.and_then(|(_, character)| stands_for(character)))
        };
        found = matched.map(|matched| (at + length, matched)).or(found);
        if !rest.starts_with(inner) {
            return found;
        }
        at += inner.len();
    }
}

/// Reads an escape after its backslash: its length, and its character.
fn backslash_escape(text: &[u8]) -> Option<(usize, char)> {
    let digits = match text.first()? {
        b'u' => 4,
        b'x' => 2,
        &byte => return byte.is_ascii_punctuation().then_some((1, char::from(byte))),
    };
    let value = hex_value(text.get(1..1 + digits)?)?;
    Some((1 + digits, char::from_u32(value)?))
}

/// Reads a reference after its ampersand: its length in bytes, and its character.
fn reference(text: &[u8]) -> Option<(usize, char)> {
    let end = memchr(b';', text.get(..REFERENCE_BYTES_MAX.min(text.len()))?)?;
    let name = std::str::from_utf8(text.get(..end)?).ok()?;
    let character = match name.strip_prefix('#') {
        Some(number) => {
            let value = match number.strip_prefix(['x', 'X']) {
                Some(digits) => hex_value(digits.as_bytes())?,
                None => number.parse().ok()?,
            };
            char::from_u32(value)?
        }
        None => NAMED.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((end + 1, character))
}

/// The longest reference that is read, in bytes after the ampersand.
const REFERENCE_BYTES_MAX: usize = 12;

/// References by name that stand for ASCII: those of XML, and those of HTML that escape functions write.
const NAMED: [(&str, char); 26] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("bsol", '\\'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("grave", '`'),
    ("Tab", '\t'),
];

/// The value of hexadecimal digits, at most eight.
fn hex_value(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    digits.iter().try_fold(0_u32, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        value.checked_mul(16)?.checked_add(digit)
    })
}
