//! Byte sequences of text: whole and cut UTF-8 characters, windows-1252, and bytes that need no repair.

/// U+FFFD.
pub(crate) const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// The encoding of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeEncoding {
    /// The whole node is valid UTF-8.
    Valid,
    /// The node contains valid multi-byte characters: it is damaged UTF-8.
    Utf8,
    /// The node contains none of them: it is windows-1252.
    EightBit,
}

impl NodeEncoding {
    pub(crate) fn detect(node: &[u8]) -> Self {
        if node.is_ascii() || simdutf8::basic::from_utf8(node).is_ok() {
            return Self::Valid;
        }
        let mut at = 0;
        while let Some(high) = node.get(at..).and_then(|rest| rest.iter().position(|byte| !byte.is_ascii())) {
            let (sequence, width) = classify(node.get(at + high..).unwrap_or_default());
            if matches!(sequence, Utf8Sequence::Valid | Utf8Sequence::Noncharacter) {
                return Self::Utf8;
            }
            at += high + width;
        }
        Self::EightBit
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Utf8Sequence {
    Valid,
    Noncharacter,
    Surrogates(char),
    LoneSurrogate,
    Overlong,
    /// The first two or more bytes of a character that is not complete.
    Cut,
    /// A byte that is part of no character.
    Lone,
}

/// The sequence that `text` begins with, and its length in bytes. The first byte is not ASCII.
pub(crate) fn classify(text: &[u8]) -> (Utf8Sequence, usize) {
    // The most common characters.
    match text {
        [0xC2..=0xDF, 0x80..=0xBF, ..] => return (Utf8Sequence::Valid, 2),
        [0xE1..=0xEC | 0xEE, 0x80..=0xBF, 0x80..=0xBF, ..] => return (Utf8Sequence::Valid, 3),
        _ => {}
    }
    let first = text.first().copied().unwrap_or(0);
    let continuation = |n: usize| text.get(n).copied().filter(|byte| byte & 0xC0 == 0x80);
    let wanted = match first {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        0xF8..=0xFB => 5,
        0xFC..=0xFD => 6,
        _ => return (Utf8Sequence::Lone, 1),
    };
    let width = (1..wanted).take_while(|&n| continuation(n).is_some()).count() + 1;
    if width < wanted {
        return if width > 1
            && first < 0xF5
            && std::str::from_utf8(text.get(..width).unwrap_or_default())
                .is_err_and(|e| e.error_len().is_none())
        {
            (Utf8Sequence::Cut, width)
        } else {
            (Utf8Sequence::Lone, 1)
        };
    }
    let bytes = text.get(..width).unwrap_or_default();
    match bytes {
        [0xEF, 0xBF, 0xBE | 0xBF] => (Utf8Sequence::Noncharacter, 3),
        [0xED, 0xA0..=0xAF, _] => {
            let low = text.get(3..6).unwrap_or_default();
            match surrogate_pair(bytes, low) {
                Some(c) => (Utf8Sequence::Surrogates(c), 6),
                None => (Utf8Sequence::LoneSurrogate, 3),
            }
        }
        [0xED, 0xB0..=0xBF, _] => (Utf8Sequence::LoneSurrogate, 3),
        _ if std::str::from_utf8(bytes).is_ok() => (Utf8Sequence::Valid, width),
        _ => (Utf8Sequence::Overlong, width),
    }
}

fn surrogate_pair(high: &[u8], low: &[u8]) -> Option<char> {
    let unit = |bytes: &[u8]| match *bytes {
        [0xED, second, third] if third & 0xC0 == 0x80 => {
            Some(0xD000 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F))
        }
        _ => None,
    };
    let mut decoded = char::decode_utf16([unit(high)?, unit(low)?]);
    decoded.next()?.ok()
}

/// A byte decoded as windows-1252; U+FFFD for the five undefined bytes.
pub(crate) fn windows_1252(byte: u8) -> Vec<u8> {
    if matches!(byte, 0x81 | 0x8D | 0x8F | 0x90 | 0x9D) {
        return REPLACEMENT.to_vec();
    }
    let bytes = [byte];
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&bytes);
    text.as_bytes().to_vec()
}

/// The windows-1252 character whose number a C1 control in UTF-8 has, if there is one.
pub(crate) fn c1_character(sequence: &[u8]) -> Option<String> {
    match *sequence {
        [0xC2, byte @ 0x80..=0x9F] => {
            String::from_utf8(windows_1252(byte)).ok().filter(|text| text.as_bytes() != REPLACEMENT)
        }
        _ => None,
    }
}

/// Whether the whole node is UTF-8 that was decoded as windows-1252 and encoded again. At least two such
/// characters are required.
pub(crate) fn is_double_encoded(text: &[u8]) -> bool {
    decode_twice(text).is_some_and(|decoded| {
        let characters = decoded.chars().filter(|c| !c.is_ascii()).count();
        characters >= 2 && decoded.as_bytes() != text
    })
}

pub(crate) fn decode_twice(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_ascii() {
        return Some(text.to_owned());
    }
    let (bytes, _, unmappable) = encoding_rs::WINDOWS_1252.encode(text);
    if unmappable { None } else { String::from_utf8(bytes.into_owned()).ok() }
}

/// The encoding of a node, as far as it is known.
#[derive(Clone, Copy)]
enum NodeCheck {
    None,
    /// The node is valid UTF-8.
    Utf8,
}

/// Bytes that need no repair in any context.
pub(crate) static PLAIN: [bool; 256] = plain_bytes(NodeCheck::None);
/// The same for a node that is valid UTF-8: only EF can begin a noncharacter.
pub(crate) static PLAIN_IN_VALID: [bool; 256] = plain_bytes(NodeCheck::Utf8);

/// Whether a node consists of ASCII that XML allows. Where references do not count, such a node needs no
/// repair.
#[inline]
pub(crate) fn is_printable(node: &[u8]) -> bool {
    // A loop without an early exit becomes vector instructions.
    let is_allowed = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7F);
    node.iter().fold(true, |allowed, &byte| allowed & is_allowed(byte))
}

/// [`PLAIN_IN_VALID`] without a table.
#[inline]
pub(crate) const fn is_plain_in_valid(byte: u8) -> bool {
    let is_allowed = (byte >= 0x20) | (byte == b'\t') | (byte == b'\n') | (byte == b'\r');
    let is_marked = (byte == b'&') | (byte == b'<') | (byte == b']') | (byte == 0xEF);
    is_allowed & !is_marked
}

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, where an index out of bounds is an error"
)]
const fn plain_bytes(check: NodeCheck) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = is_plain_in_valid(b) && (matches!(check, NodeCheck::Utf8) || b < 0x80);
        byte += 1;
    }
    table
}
