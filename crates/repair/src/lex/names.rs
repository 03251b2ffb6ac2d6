//! Names, white space and references of XML 1.0 (sections 2.2, 2.3 and 4.1).

use crate::lex::name_characters::{is_name_part, is_name_start};
use crate::lex::search::count_read;

/// Whether a byte is white space of XML.
#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The number of bytes of white space at the start of `text`.
pub(crate) fn blanks(text: &[u8]) -> usize {
    let len = text.iter().position(|&byte| !is_blank(byte)).unwrap_or(text.len());
    count_read(len);
    len
}

/// The number of bytes of white space at the end of `text`.
pub(crate) fn trailing_blanks(text: &[u8]) -> usize {
    let len = text.iter().rev().position(|&byte| !is_blank(byte)).unwrap_or(text.len());
    count_read(len);
    len
}

/// The text without the white space around it.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let end = text.len() - trailing_blanks(text);
    let text = text.get(..end).unwrap_or_default();
    text.get(blanks(text)..).unwrap_or_default()
}

/// Whether XML 1.0 allows the character.
pub(crate) fn is_legal_char(code: u32) -> bool {
    matches!(code, 9 | 10 | 13 | 0x20..=0xD7FF | 0xE000..=0xFFFD | 0x1_0000..=0x10_FFFF)
}

/// Whether a name can begin with this byte. Any byte of a multi-byte character passes here;
/// [`is_local_name`] checks the character.
#[inline]
pub(crate) fn may_start_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' || byte >= 0x80
}

/// The names that a table of bytes is for.
#[derive(Clone, Copy)]
enum NameKind {
    /// With colons and non-ASCII characters.
    Any,
    /// ASCII names without a colon.
    Local,
}

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, where an index out of bounds is an error"
)]
const fn name_bytes(names: NameKind) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let is_local = b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        table[byte] = is_local || matches!(names, NameKind::Any) && (b == b':' || b >= 0x80);
        byte += 1;
    }
    table
}

/// Bytes that can be part of a name.
static NAME_BYTES: [bool; 256] = name_bytes(NameKind::Any);
/// ASCII bytes that can be part of a name without a colon.
static LOCAL_BYTES: [bool; 256] = name_bytes(NameKind::Local);

/// The length of the name that `text` seems to begin with: up to the first ASCII byte that no name
/// contains.
#[inline]
pub(crate) fn name_span(text: &[u8]) -> usize {
    let len = text.iter().position(|&byte| !is_name_byte(byte)).unwrap_or(text.len());
    count_read(len);
    len
}

/// Whether a byte can be part of a name. A byte of a multi-byte character always can.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES.get(byte as usize).copied().unwrap_or(false)
}

/// Whether `name` is a legal qualified name (Namespaces in XML 1.0): a local part and at most one prefix.
pub(crate) fn is_qualified_name(name: &[u8]) -> bool {
    match crate::lex::search::memchr(b':', name).and_then(|colon| name.split_at_checked(colon)) {
        Some((prefix, [_, local @ ..])) => is_local_name(prefix) && is_local_name(local),
        _ => is_local_name(name),
    }
}

/// Whether every XML 1.0 parser accepts `name`, which has no colon: see
/// [`name_characters`](crate::lex::name_characters).
pub(crate) fn is_local_name(name: &[u8]) -> bool {
    let Some((&first, rest)) = name.split_first() else { return false };
    if rest.iter().all(|&byte| LOCAL_BYTES.get(byte as usize).copied().unwrap_or(false)) && first.is_ascii() {
        return first.is_ascii_alphabetic() || first == b'_';
    }
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let mut chars = name.chars();
    chars.next().is_some_and(is_name_start) && chars.all(is_name_part)
}

/// The prefix and the local part of a qualified name. The prefix may be empty.
pub(crate) fn split_name(name: &[u8]) -> (&[u8], &[u8]) {
    // Names are short, so this is faster than a call.
    let colon = name.iter().position(|&byte| byte == b':');
    count_read(colon.unwrap_or(name.len()));
    match colon {
        Some(colon) => (name.get(..colon).unwrap_or_default(), name.get(colon + 1..).unwrap_or_default()),
        None => (&[], name),
    }
}

/// Compares two byte strings. For names and tags, comparing eight bytes at a time is faster than the
/// library's comparison.
#[inline(always)]
pub(crate) fn bytes_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        0..4 => one.iter().eq(other),
        4..8 => {
            one.first_chunk::<4>() == other.first_chunk::<4>()
                && one.last_chunk::<4>() == other.last_chunk::<4>()
        }
        8..=16 => {
            one.first_chunk::<8>() == other.first_chunk::<8>()
                && one.last_chunk::<8>() == other.last_chunk::<8>()
        }
        _ => one == other,
    }
}

/// The text after `start`, if it begins with `start`, which is a name or another short text.
#[inline]
pub(crate) fn strip_start<'t>(text: &'t [u8], start: &[u8]) -> Option<&'t [u8]> {
    let (found, rest) = text.split_at_checked(start.len())?;
    bytes_equal(found, start).then_some(rest)
}

/// The text before `end`, if it ends with `end`, which is a name or another short text.
#[inline]
pub(crate) fn strip_end<'t>(text: &'t [u8], end: &[u8]) -> Option<&'t [u8]> {
    let (rest, found) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    bytes_equal(found, end).then_some(rest)
}

/// Longest reference that is read, in bytes, with `&` and `;`. The longest name of the HTML table has 31
/// letters.
pub(crate) const REFERENCE_BYTES_MAX: usize = 40;

/// The kind of reference that an `&` begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A legal reference of this length in bytes.
    Legal(usize),
    /// Not a reference that XML knows.
    Illegal,
    /// The text ends too early to decide.
    Cut,
}

/// Reads the reference that `text` begins with.
pub(crate) fn reference(text: &[u8]) -> Reference {
    for known in [&b"&amp;"[..], b"&lt;", b"&gt;", b"&quot;", b"&apos;"] {
        if text.starts_with(known) {
            return Reference::Legal(known.len());
        }
    }
    let window = text.get(..text.len().min(REFERENCE_BYTES_MAX)).unwrap_or_default();
    let body = window.get(1..).unwrap_or_default();
    let Some(len) = body.iter().position(|&byte| !byte.is_ascii_alphanumeric() && byte != b'#') else {
        return if window.len() < REFERENCE_BYTES_MAX { Reference::Cut } else { Reference::Illegal };
    };
    let legal = body.get(len) == Some(&b';')
        && body.get(..len).and_then(numeric_reference).is_some_and(|code| code.is_some_and(is_legal_char));
    if legal { Reference::Legal(len + 2) } else { Reference::Illegal }
}

/// Reads `#233` or `#xE9`: the number, or `Some(None)` if it is too large for a character. `None` if it is
/// not a numeric reference.
pub(crate) fn numeric_reference(body: &[u8]) -> Option<Option<u32>> {
    let digits = body.strip_prefix(b"#")?;
    let (digits, radix) = match digits.strip_prefix(b"x") {
        Some(hex) => (hex, 16),
        None => (digits, 10),
    };
    if digits.is_empty() {
        return None;
    }
    let mut code = Some(0_u32);
    for &digit in digits {
        let digit = (digit as char).to_digit(radix)?;
        code = code.and_then(|c| c.checked_mul(radix)).and_then(|c| c.checked_add(digit));
    }
    Some(code)
}
