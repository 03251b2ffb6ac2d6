//! The fields of MARC in which a character is known by its position.
//!
//! The leader, the coded control fields and the indicators have no separators: a program reads the character
//! at position 6 of the leader. So a repair must not change their lengths. There an illegal control is one
//! damaged character, and becomes one blank, the value for "not defined". If the other characters fill a
//! field of known length, such as the leader, the control is additional and is removed, for example the
//! field terminator of ISO 2709. Control numbers (001, 003) have no positions, but are no text either:
//! a control in them is no quotation mark, and is removed.
//!
//! The elements are recognised by their local names: `leader`, `controlfield` and `datafield` of MARCXML and
//! MarcXchange (MARC 21, UNIMARC), `fixfield` and `varfield` of oai_marc, whose root has the codes of the
//! leader as attributes.

use crate::lex::lexeme::CDATA;
use crate::lex::names::{REFERENCE_BYTES_MAX, Reference, name_span, reference, split_name};
use crate::lex::search::memmem;

/// Longest part of a start tag in which the number of a field is searched, in bytes.
const TAG_BYTES_MAX: usize = 1024;
/// Longest part of a field in which its characters are counted, in bytes.
const CONTENT_BYTES_MAX: usize = 4096;
/// The part of the item before and after a leader in which other elements of MARC are searched, in bytes.
const NEAR_BYTES: usize = 1024;

/// The part of an element that a node belongs to, by offsets of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodePlace {
    /// Not known, or not in an element.
    Elsewhere,
    /// Content after this start tag.
    After { tag: (usize, usize) },
    /// The value of an attribute that begins at `at`, in the start tag at `tag`.
    Value { tag: usize, at: usize },
}

/// The reading of illegal characters in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceReading {
    /// The place contains text.
    Text,
    /// Each illegal character has a position.
    Position,
    /// No illegal character has a position.
    Additional,
}

impl NodePlace {
    /// The reading of illegal characters in this place.
    pub(crate) fn reading(self, text: &[u8]) -> PlaceReading {
        match self {
            Self::Elsewhere => PlaceReading::Text,
            Self::After { tag } => match field_of(text, tag) {
                Field::Text => PlaceReading::Text,
                Field::Number => PlaceReading::Additional,
                Field::Fixed(None) => PlaceReading::Position,
                Field::Fixed(Some(length)) => {
                    let content = text.get(tag.1..text.len().min(tag.1 + CONTENT_BYTES_MAX));
                    let found = legal_characters(without_section(content.unwrap_or_default()), length);
                    if found < length { PlaceReading::Position } else { PlaceReading::Additional }
                }
            },
            Self::Value { tag, at } if is_indicator(text, tag, at) => PlaceReading::Position,
            Self::Value { .. } => PlaceReading::Text,
        }
    }
}

/// Whether the value at `value` of an attribute is an indicator or a code without a legal character. The
/// start tag of its element begins at `start`.
fn is_indicator(text: &[u8], start: usize, value: usize) -> bool {
    let before = text.get(start..value.saturating_sub(1)).unwrap_or_default();
    let before = before.trim_ascii_end().strip_suffix(b"=").unwrap_or_default().trim_ascii_end();
    let name = before.rsplit(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    let is_indicator = match local_name(before) {
        b"datafield" => matches!(name, [b'i', b'n', b'd', b'1'..=b'9']),
        b"varfield" => matches!(name, b"i1" | b"i2"),
        b"oai_marc" => matches!(name, b"status" | b"type" | b"level" | b"encLvl" | b"catForm"),
        _ => false,
    };
    let quote = text.get(value.saturating_sub(1)).copied().unwrap_or(b'"');
    let content = text.get(value..).unwrap_or_default();
    let content = content.split(|&byte| byte == quote).next().unwrap_or_default();
    is_indicator && legal_characters(content, 1) == 0
}

/// The number of blanks at the start of `rest` that belong to a field of known length, of which `content`
/// was read.
pub(crate) fn blanks_of_field(text: &[u8], tag: (usize, usize), content: &[u8], rest: &[u8]) -> usize {
    let Field::Fixed(Some(length)) = field_of(text, tag) else { return 0 };
    let missing = length - legal_characters(content, length);
    rest.iter().take(missing).take_while(|&&byte| byte == b' ').count()
}

enum Field {
    Text,
    /// A control number, or the agency that gave it: any length, and no positions.
    Number,
    /// The number of its characters, if all records have the same.
    Fixed(Option<usize>),
}

/// The kind of field that begins with the start tag `start..end`.
fn field_of(text: &[u8], (start, end): (usize, usize)) -> Field {
    let tag = text.get(start..end.min(start + TAG_BYTES_MAX)).unwrap_or_default();
    let number = match local_name(tag) {
        b"leader" if is_near_marc(text, start) => return Field::Fixed(Some(24)),
        b"controlfield" => attribute(tag, b"tag"),
        // Its text is in quotation marks, so its length is not known.
        b"fixfield" => attribute(tag, b"id").filter(|number| matches!(*number, b"001" | b"003")),
        _ => return Field::Text,
    };
    match number {
        Some(b"001" | b"003") => Field::Number,
        Some(b"005") => Field::Fixed(Some(16)),
        Some(b"006") => Field::Fixed(Some(18)),
        Some(b"008") => Field::Fixed(Some(40)),
        _ => Field::Fixed(None),
    }
}

/// Whether other elements of MARC are near. Other formats may have an element with the name `leader`.
fn is_near_marc(text: &[u8], at: usize) -> bool {
    let near = text.get(at.saturating_sub(NEAR_BYTES)..text.len().min(at + NEAR_BYTES)).unwrap_or_default();
    let marks: [&[u8]; 4] = [b"MARC21/slim", b"marcxchange", b"controlfield", b"datafield"];
    marks.iter().any(|mark| memmem::find(near, mark).is_some())
}

fn local_name(tag: &[u8]) -> &[u8] {
    let name = tag.get(1..).unwrap_or_default();
    split_name(name.get(..name_span(name)).unwrap_or_default()).1
}

/// The value of an attribute in a start tag. The value is in quotes and short.
fn attribute<'t>(tag: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let at = memmem::find_iter(tag, name).find(|&at| {
        let is_name =
            at.checked_sub(1).and_then(|before| tag.get(before)).is_some_and(u8::is_ascii_whitespace);
        is_name && tag.get(at + name.len()..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"="))
    })?;
    let value = tag.get(at + name.len()..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    value.split(|byte| byte == quote).next()
}

/// The content of a field that is one section, else the content as it is.
fn without_section(content: &[u8]) -> &[u8] {
    let Some(inner) = content.strip_prefix(CDATA) else { return content };
    memmem::find(inner, b"]]>").and_then(|end| inner.get(..end)).unwrap_or(inner)
}

/// The number of legal characters before the next tag or section, up to `most`. Line ends and the
/// indentation after them do not count.
fn legal_characters(content: &[u8], most: usize) -> usize {
    let (mut count, mut at, mut in_indent) = (0, 0, false);
    while let Some(rest @ [byte, ..]) = content.get(at..)
        && *byte != b'<'
        && count < most
    {
        let (len, is_legal) = match rest {
            [b'&', ..] => reference_at(rest),
            [0xEF, 0xBF, 0xBE | 0xBF, ..] => (3, false),
            // A later byte of a character.
            [0x80..=0xBF, ..] => (1, false),
            [b' ', ..] => (1, !in_indent),
            _ => (1, *byte > b' '),
        };
        in_indent = matches!(byte, b'\t' | b'\n' | b'\r') || in_indent && *byte == b' ';
        count += usize::from(is_legal);
        at += len;
    }
    count
}

/// The length of the reference at the start of `rest`, and whether its character is legal.
fn reference_at(rest: &[u8]) -> (usize, bool) {
    match reference(rest) {
        Reference::Legal(len) => (len, true),
        _ => match rest.iter().take(REFERENCE_BYTES_MAX).position(|&byte| byte == b';') {
            // The reference is to an illegal character or to an entity such as `&nbsp;`. Both become a blank here.
            Some(end) => (end + 1, false),
            None => (1, true),
        },
    }
}
