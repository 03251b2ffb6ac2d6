//! Texts about a source without its secrets.
//!
//! A source can echo a request with its `Authorization` header, or the query of a base URL such as `?apikey=`. Logs,
//! responses, pages, the admin listener and kept broken pages contain them in masked form only.

use super::mapping::Mapping;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr;
use std::borrow::Cow;
use std::fmt;
use url::Url;

/// What replaces a secret.
pub(super) const MASK: &str = "***";
/// Shorter values of a query and of headers are no secrets: they occur in any text.
const SECRET_BYTES_MIN: usize = 6;

/// The texts of a mapping that must not be shown, the longest first: its passwords, as headers contain them too, its
/// tokens, the values of its headers, and the values in the query of its base URL.
#[derive(Default)]
pub(crate) struct Secrets(Vec<String>);

impl Mapping {
    /// The base URL for people: without the values of its query.
    pub fn shown_base_url(&self) -> String {
        masked(&self.base_url)
    }

    /// The base URL without the secrets in its query, for reports that people compare with the mapping.
    pub(crate) fn masked_base_url(&self) -> String {
        self.secrets().mask_text(self.base_url.as_str())
    }

    /// The texts that must not be shown.
    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets = Vec::new();
        if let Some(query) = self.base_url.query() {
            let values = query.split('&').filter_map(|argument| argument.split_once('='));
            secrets.extend(values.map(|(_, value)| value.to_owned()));
            secrets.extend(self.base_url.query_pairs().map(|(_, value)| value.into_owned()));
        }
        let values = self.headers.map().values();
        secrets.extend(values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()));
        secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        let own = self.credentials.as_ref();
        let own = own.map(|own| (own.user().to_owned(), own.password().to_owned()));
        for (user, password) in own.into_iter().chain(self.proxy.credentials()) {
            secrets.push(STANDARD.encode(format!("{user}:{password}")));
            secrets.push(password);
        }
        if let Some(token) = &self.bearer_token {
            secrets.extend(token.secrets());
        }
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Secrets(secrets)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Replaces the secrets in what the source sent: as they are, and with any of their characters percent-encoded,
    /// as references of XML and HTML, or as escapes of JSON and other languages.
    pub(crate) fn mask<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if let Some(masked) = replaced(&text, secret.as_bytes()) {
                text = Cow::Owned(masked);
            }
        }
        text
    }

    /// [`mask`](Self::mask) for a text.
    pub(crate) fn mask_text(&self, text: &str) -> String {
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

/// A URL without the values of its query, and without user, password and fragment: they may be secret.
fn masked(url: &Url) -> String {
    let mut masked = url.clone();
    // URLs of sources have a host, so that both succeed.
    let _ = masked.set_username("");
    let _ = masked.set_password(None);
    masked.set_fragment(None);
    if let Some(query) = url.query() {
        let argument = |argument: &str| match argument.split_once('=') {
            Some((name, value)) if !value.is_empty() => format!("{name}=***"),
            _ => argument.to_owned(),
        };
        let arguments: Vec<String> = query.split('&').map(argument).collect();
        masked.set_query(Some(&arguments.join("&")));
    }
    masked.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Credentials, Limits};

    #[test]
    fn echoed_secrets_are_masked() {
        let mut mapping = Mapping::new("x", "http://e.org/oai?apikey=s3cret%21x&a=1", &Limits::default())
            .expect("a legal mapping");
        mapping.credentials = Some(Credentials::new("user", "passw0rd"));
        for (sent, masked) in [
            ("Authorization: Basic dXNlcjpwYXNzdzByZA==", "Authorization: Basic ***"),
            ("user user with passw0rd and a=1", "user user with *** and a=1"),
            ("GET /oai?apikey=s3cret%21x&verb=Identify, s3cret!x", "GET /oai?apikey=***&verb=Identify, ***"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(mapping.secrets().mask(sent.as_bytes()).as_ref(), masked.as_bytes());
        }
    }

    #[test]
    fn escaped_secrets_are_masked() {
        let mut mapping =
            Mapping::new("x", "http://e.org/oai?key=s%26%22a%2Fl%20%C3%A9%25%21", &Limits::default())
                .expect("a legal mapping");
        mapping.credentials = Some(Credentials::new("user", "p<w'\\x%21"));
        let secrets = mapping.secrets();
        for written in [
            "s&\"a/l \u{e9}%!",
            "s%26%22a%2Fl%20%C3%A9%25%21",
            "s%26%22a%2fl%20%c3%a9%25!",
            "%73%26%22%61%2F%6C+%C3%A9%25%21",
            "s%2526%2522a%252Fl%2520%25C3%25A9%2525%2521",
            "s&amp;&quot;a/l &#233;%!",
            "s&#38;&#x22;a&#x2F;l&#32;&#xE9;&percnt;&excl;",
            "s&amp;amp;&amp;quot;a/l &amp;#233;%!",
            "s&\\\"a\\/l \\u00e9%!",
            "\\u0073\\u0026\\u0022a\\u002Fl\\u0020\\u00E9\\u0025\\x21",
            "s\\&\\\"a/l \u{e9}\\%!",
            "p<w'\\x%21",
            "p%3Cw%27%5Cx%2521",
            "p&lt;w&apos;\\x%21",
            "p&lt;w&#39;&bsol;x&#37;21",
            "p\\u003cw\\'\\\\x%21",
        ] {
            let text = format!("%2 &a; before {written} after&amp;\\");
            let masked = secrets.mask_text(&text);
            assert_eq!(masked, "%2 &a; before *** after&amp;\\", "{written}");
            let twice = secrets.mask_text(&format!("{written}{written}"));
            assert_eq!(twice, "******", "{written}");
        }
        for text in [
            "s&\"a/l \u{e9}%",
            "%",
            "%2",
            "&",
            "&amp",
            "&#xD800;",
            "\\",
            "\\u12",
            "s%26%22a%2Fl%20%C3%A9%25%2",
        ] {
            assert_eq!(secrets.mask_text(text), text);
        }
    }

    #[test]
    fn secrets_are_left_out() {
        for (url, expected) in [
            ("http://e.org/oai", "http://e.org/oai"),
            ("http://e.org/oai?apikey=s3cret&x", "http://e.org/oai?apikey=***&x"),
            ("http://e.org/oai?a=&b=1=2", "http://e.org/oai?a=&b=***"),
            ("https://user:s3cret@e.org:8443/oai#s3cret", "https://e.org:8443/oai"),
        ] {
            let masked = masked(&Url::parse(url).expect("a literal URL"));
            assert_eq!(masked, expected);
            assert!(!masked.contains("s3cret"), "{masked}");
        }
    }
}
