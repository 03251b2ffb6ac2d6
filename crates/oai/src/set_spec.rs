//! setSpecs: the alphabet of OAI-PMH 2.0, and a reversible escape for all other characters.
//!
//! The schema allows letters, digits, `-_.!~*'()`, and `:` between parts that are not empty. Each
//! other byte of a UTF-8 name is written as `~xHH.`, with two capital hexadecimal digits (failure
//! class E9). A `~` that already begins such a mark is escaped too, so that every escaped name can
//! be decoded.

use super::envelope::is_xml_char;

/// Checks a name against the schema: `None` if it is illegal, else whether it contains a `~`.
#[inline]
pub fn read(name: &[u8]) -> Option<bool> {
    let (mut seen, mut previous) = (0, b':');
    for &byte in name {
        seen |= CLASSES.get(usize::from(byte)).copied().unwrap_or(ILLEGAL);
        if byte == b':' && previous == b':' {
            return None;
        }
        previous = byte;
    }
    (seen & ILLEGAL == 0 && previous != b':').then_some(seen & TILDE != 0)
}

/// Whether a set is another one or below it, as `a:b` is below `a`. The records of a set are in all sets above it.
pub fn is_within(set: &str, other: &str) -> bool {
    set.strip_prefix(other).is_some_and(|below| below.is_empty() || below.starts_with(':'))
}

/// The sets above a set: `a` and `a:b` for `a:b:c`.
pub fn parents(set: &str) -> impl Iterator<Item = &str> {
    set.match_indices(':').filter_map(|(at, _)| set.get(..at))
}

/// Writes a name in the alphabet of the schema; a legal name stays unchanged.
///
/// A colon is escaped where a part beside it would be empty: at either end, and before another
/// colon. An empty name stays empty.
pub fn escape(name: &[u8]) -> Vec<u8> {
    if read(name).is_some() {
        return name.to_vec();
    }
    let mut escaped = Vec::with_capacity(name.len() * 2);
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        let stays = match byte {
            b':' => escaped.last().is_some_and(|&last| last != b':') && !matches!(after, [] | [b':', ..]),
            b'~' => read_mark(rest).is_none(),
            _ => CLASSES.get(usize::from(byte)).is_some_and(|class| class & ILLEGAL == 0),
        };
        if stays {
            escaped.push(byte);
        } else {
            escaped.extend_from_slice(&[b'~', b'x', hex_digit(byte >> 4), hex_digit(byte & 15), b'.']);
        }
        rest = after;
    }
    escaped
}

/// Decodes a name that [`escape`] wrote; `None` for any other text, and for names that XML cannot
/// contain.
pub fn unescape(escaped: &str) -> Option<String> {
    if !escaped.contains("~x") {
        return None;
    }
    let name = String::from_utf8(decode(escaped)).ok()?;
    let is_text = name.chars().all(is_xml_char);
    (is_text && name != escaped && escape(name.as_bytes()) == escaped.as_bytes()).then_some(name)
}

/// Writes any text as one part of a setSpec, with its colons escaped too.
///
/// ```
/// use oaimend_oai::set_spec;
///
/// assert_eq!(set_spec::escape_part("maps: new"), "maps~x3A.~x20.new");
/// assert_eq!(set_spec::unescape_part("maps~x3A.~x20.new").as_deref(), Some("maps: new"));
/// ```
pub fn escape_part(text: &str) -> String {
    String::from_utf8_lossy(&escape(text.as_bytes())).replace(':', "~x3A.")
}

/// Decodes a part of a setSpec; a text without marks stays as it is. `None` if the result is not text that XML allows.
pub fn unescape_part(part: &str) -> Option<String> {
    let text = String::from_utf8(decode(part)).ok()?;
    text.chars().all(is_xml_char).then_some(text)
}

fn decode(escaped: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = read_mark(rest).unwrap_or((byte, after));
        name.push(byte);
        rest = after;
    }
    name
}

/// Reads the mark at the start of a text; returns its byte and the rest of the text.
fn read_mark(text: &[u8]) -> Option<(u8, &[u8])> {
    let (&[b'~', b'x', high, low, b'.'], after) = text.split_first_chunk()? else { return None };
    Some((hex_value(high)? << 4 | hex_value(low)?, after))
}

fn hex_digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'A' + (value - 10) }
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

const ILLEGAL: u8 = 1;
const TILDE: u8 = 2;

static CLASSES: [u8; 256] = classes();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, where an index out of bounds is an error"
)]
const fn classes() -> [u8; 256] {
    let mut classes = [ILLEGAL; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric()
            || matches!(b, b'-' | b'_' | b'.' | b'!' | b'*' | b'\'' | b'(' | b')' | b':')
        {
            classes[byte] = 0;
        }
        byte += 1;
    }
    classes[b'~' as usize] = TILDE;
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escape_text(name: &str) -> String {
        String::from_utf8_lossy(&escape(name.as_bytes())).into_owned()
    }

    #[test]
    fn only_illegal_characters_are_escaped() {
        for (name, expected) in [
            ("a+b", "a~x2B.b"),
            ("maps & plans", "maps~x20.~x26.~x20.plans"),
            ("col:Ñ", "col:~xC3.~x91."),
            ("%C3%91", "~x25.C3~x25.91"),
            (":a:", "~x3A.a~x3A."),
            ("a::b", "a~x3A.:b"),
            ("a:::b", "a~x3A.~x3A.:b"),
            ("::", "~x3A.~x3A."),
            ("a~x2B.b+c", "a~x7E.x2B.b~x2B.c"),
            ("a~b+c", "a~b~x2B.c"),
            ("a:b-_.!~*'()9", "a:b-_.!~*'()9"),
            ("a~x2B.b", "a~x2B.b"),
        ] {
            assert_eq!(escape_text(name), expected);
            assert!(read(expected.as_bytes()).is_some(), "{expected}");
        }
        assert_eq!(escape_text(""), "");
    }

    #[test]
    fn escaped_names_can_be_decoded_and_no_others() {
        for name in ["a+b", "maps & plans", ":a:", "a::b", "::", "a~x2B.b+c", "~x3A.:", "Ñ", "~+"] {
            assert_eq!(unescape(&escape_text(name)).as_deref(), Some(name));
        }
        for strange in
            ["a", "a~b", "a~x41.b", "a~x2b.b", "a~x2B", "a~xC3.b", "a~x3A.b", "a+~x2B.", "~x00.", ""]
        {
            assert_eq!(unescape(strange), None, "{strange}");
        }
    }

    #[test]
    fn escaping_is_reversible_and_unique() {
        let alphabet = ["a", ":", "~", "x", "2", "B", ".", "+", "é"];
        let mut names = vec![String::new()];
        let mut seen = std::collections::HashMap::new();
        for _ in 0..5 {
            names = names.iter().flat_map(|name| alphabet.map(|next| format!("{name}{next}"))).collect();
            for name in names.iter().filter(|name| read(name.as_bytes()).is_none()) {
                let escaped = escape_text(name);
                assert!(read(escaped.as_bytes()).is_some(), "{name}: {escaped}");
                assert_eq!(unescape(&escaped).as_ref(), Some(name), "{escaped}");
                assert_eq!(seen.insert(escaped, name.clone()), None, "{name}");
            }
        }
    }

    #[test]
    fn a_tilde_is_reported() {
        assert_eq!(read(b"a:b"), Some(false));
        assert_eq!(read(b"a:~"), Some(true));
        for illegal in ["", ":", "a:", ":a", "a::b", "a b", "~+"] {
            assert_eq!(read(illegal.as_bytes()), None, "{illegal}");
        }
    }
}
