//! The lenient reader of one start tag. It returns the intended tag and the edits that make the tag
//! well-formed.
//!
//! All passes and stages use it to change attributes.

use crate::catalog::RepairId;
use crate::lex::lexeme::value_len;
use crate::lex::names::{blanks, is_blank, is_qualified_name, name_span};
use crate::lex::search::memchr;
use crate::limits::Limits;
use crate::text::characters::repair_node;
use crate::text::edits::Edits;
use crate::text::escape::escape;
use crate::text::node_rules::NodeKind;

/// A start tag with its intended meaning. Ranges are offsets into the text that contains the tag.
#[derive(Debug)]
pub(crate) struct LenientTag {
    /// End of the tag.
    pub(crate) end: usize,
    /// End of the tag name.
    pub(crate) name_end: usize,
    /// Position after the last attribute, where another attribute can be added.
    pub(crate) attributes_end: usize,
    /// Whether it is an empty-element tag.
    pub(crate) empty: bool,
    pub(crate) attributes: Vec<LenientAttribute>,
    /// The edits that make the tag well-formed.
    pub(crate) edits: Edits,
}

/// An attribute that is kept.
#[derive(Debug)]
pub(crate) struct LenientAttribute {
    /// Start of the blanks before the attribute.
    pub(crate) gap: usize,
    pub(crate) name: (usize, usize),
    /// The value between its quotes, after repair.
    pub(crate) value: Vec<u8>,
    /// Range of the value including its quotes; empty if the attribute has no value.
    pub(crate) span: (usize, usize),
    /// Whether the value is in quotes.
    pub(crate) quoted: bool,
    pub(crate) end: usize,
}

/// Reads the start tag `at..end` of `text`; `None` if it cannot be read.
pub(crate) fn read_lenient_tag(text: &[u8], at: usize, end: usize, limits: &Limits) -> Option<LenientTag> {
    let tag = text.get(..end)?;
    let name_end = at + 1 + name_span(tag.get(at + 1..)?);
    if !is_qualified_name(tag.get(at + 1..name_end)?) {
        return None;
    }
    let mut read = LenientTag {
        end,
        name_end,
        attributes_end: name_end,
        empty: false,
        attributes: Vec::new(),
        edits: Edits::default(),
    };
    let mut at = name_end;
    loop {
        let gap = at;
        at += blanks(tag.get(at..)?);
        match *tag.get(at)? {
            b'>' => return Some(read),
            b'/' if tag.get(at + 1) == Some(&b'>') => {
                read.empty = true;
                return Some(read);
            }
            _ => {}
        }
        if read.attributes.len() >= limits.attributes_per_tag_max {
            return None;
        }
        at = read.read_attribute(tag, gap, at)?;
        read.attributes_end = at;
    }
}

impl LenientTag {
    /// Reads one attribute and returns its end.
    fn read_attribute(&mut self, tag: &[u8], gap: usize, at: usize) -> Option<usize> {
        let name_end = at + name_span(tag.get(at..)?);
        let name = tag.get(at..name_end)?;
        if !is_qualified_name(name) {
            return None;
        }
        let equals = name_end + blanks(tag.get(name_end..)?);
        let mut edits = Edits::default();
        if gap == at {
            edits.push(RepairId::AttributeSpacing, at, at, b" ");
        }
        let has_quote = matches!(tag.get(name_end), Some(b'"' | b'\''));
        let (value, span, quoted, end) = if has_quote {
            edits.push(RepairId::AttributeQuotes, name_end, name_end, b"=");
            read_value(tag, name_end, &mut edits)?
        } else if tag.get(equals) == Some(&b'=') {
            let start = equals + 1 + blanks(tag.get(equals + 1..)?);
            read_value(tag, start, &mut edits)?
        } else {
            let mut value = b"=\"".to_vec();
            value.extend_from_slice(name);
            value.push(b'"');
            edits.push(RepairId::ValuelessAttribute, name_end, name_end, &value);
            (name.to_vec(), (name_end, name_end), false, name_end)
        };
        let repeated = self.attributes.iter().any(|other| tag.get(other.name.0..other.name.1) == Some(name));
        if repeated {
            self.edits.push(RepairId::DuplicateAttribute, gap, end, b"");
        } else {
            self.attributes.push(LenientAttribute { gap, name: (at, name_end), value, span, quoted, end });
            for edit in edits.iter() {
                self.edits.push_edit(edit.clone());
            }
        }
        Some(end)
    }
}

/// The repaired value, its range, whether it was quoted, and its end.
type ReadValue = (Vec<u8>, (usize, usize), bool, usize);

/// Reads the value that begins at `start`.
fn read_value(tag: &[u8], start: usize, edits: &mut Edits) -> Option<ReadValue> {
    let rest = tag.get(start..)?;
    let &quote = rest.first()?;
    if !matches!(quote, b'"' | b'\'') {
        if let Some((value, len)) = nonstandard_quotes(rest) {
            return Some(write_value(RepairId::AttributeQuotes, value, (start, start + len), edits));
        }
        let len = rest.iter().position(|&byte| is_blank(byte) || byte == b'>')?;
        let len = if rest.get(len) == Some(&b'>') && rest.get(..len)?.ends_with(b"/") && len > 1 {
            len - 1
        } else {
            len
        };
        let raw = rest.get(..len)?;
        if let Some((quote @ (b'"' | b'\''), value)) = raw.split_last()
            && !value.is_empty()
            && !value.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'='))
        {
            edits.push(RepairId::AttributeQuotes, start, start, &[*quote]);
            let span = (start, start + len);
            return Some((repair_value(value, start, edits), span, false, span.1));
        }
        if raw.is_empty()
            || raw.iter().any(|&byte| matches!(byte, b'=' | b'<' | b'`')) && memchr(b'"', raw).is_some()
        {
            return None;
        }
        return Some(write_value(RepairId::UnquotedAttribute, raw, (start, start + len), edits));
    }
    let Some(len) = value_len(rest).filter(|&len| len > 1 && rest.get(len - 1) == Some(&quote)) else {
        // Without a nonstandard quote, the end of the value is unknown.
        let (value, len) = nonstandard_quotes(rest)?;
        return Some(write_value(RepairId::AttributeQuotes, value, (start, start + len), edits));
    };
    let len = len - 2;
    let raw = rest.get(1..1 + len)?;
    let end = start + len + 2;
    Some((repair_value(raw, start + 1, edits), (start, end), true, end))
}

/// Returns the value at `at` with repaired characters.
fn repair_value(raw: &[u8], at: usize, edits: &mut Edits) -> Vec<u8> {
    let repaired = repair_node(raw, NodeKind::Attribute, &[]);
    for edit in repaired.iter() {
        edits.push(edit.id, at + edit.start, at + edit.end, &edit.replacement);
    }
    repaired.apply(raw).into_owned()
}

/// Writes the value in `span` between quotes.
fn write_value(id: RepairId, raw: &[u8], span: (usize, usize), edits: &mut Edits) -> ReadValue {
    let mut value = Vec::with_capacity(raw.len());
    let inside = repair_node(raw, NodeKind::Attribute, &[]);
    for &byte in inside.apply(raw).as_ref() {
        match byte {
            b'"' => value.extend_from_slice(&escape(b"\"")),
            _ => value.push(byte),
        }
    }
    edits.push(id, span.0, span.1, &[b"\"", value.as_slice(), b"\""].concat());
    if inside.change_content() {
        edits.mark_content();
    }
    (value, span, false, span.1)
}

/// Marks that word processors and serializers write instead of quotes. The first mark of the same group
/// ends a value.
const NONSTANDARD_QUOTES: [&[&str]; 3] = [
    &["\u{201c}", "\u{201d}", "\u{201e}", "\u{201f}", "\""],
    &["\u{2018}", "\u{2019}", "\u{201a}", "'"],
    &["&quot;"],
];

/// Returns the value between typographic or escaped quotation marks, and the length including the marks.
fn nonstandard_quotes(rest: &[u8]) -> Option<(&[u8], usize)> {
    let starts = |text: &[u8], group: &[&str]| {
        group.iter().find(|mark| text.starts_with(mark.as_bytes())).map(|mark| mark.len())
    };
    let (group, open) = NONSTANDARD_QUOTES.iter().find_map(|group| Some((group, starts(rest, group)?)))?;
    let inner = rest.get(open..)?;
    let tag_end = inner.iter().position(|byte| matches!(byte, b'<' | b'>'))?;
    let value = inner.get(..tag_end)?;
    let (len, mark) = (0..value.len()).find_map(|at| Some((at, starts(value.get(at..)?, group)?)))?;
    let after = inner.get(len + mark..)?;
    let is_end = after.first().is_some_and(|&byte| is_blank(byte) || matches!(byte, b'>' | b'/'));
    if is_end { Some((value.get(..len)?, open + len + mark)) } else { None }
}

impl LenientAttribute {
    /// Replaces the value, in the existing quotes or in new ones.
    pub(crate) fn set(&self, id: RepairId, value: &[u8], edits: &mut Edits) {
        self.drop_edits(self.name.0, edits);
        if self.quoted {
            edits.push_unordered(id, self.span.0 + 1, self.span.1 - 1, value.to_vec());
        } else {
            let equals: &[u8] = if self.span.0 == self.name.1 { b"=" } else { b"" };
            edits.push_unordered(id, self.span.0, self.span.1, [equals, b"\"", value, b"\""].concat());
        }
    }

    /// Returns whether the attribute has no value.
    pub(crate) fn is_valueless(&self) -> bool {
        self.span.0 == self.span.1
    }

    /// Replaces the name, and keeps the value and its repairs.
    pub(crate) fn rename(&self, id: RepairId, name: &[u8], edits: &mut Edits) {
        edits.push_unordered(id, self.name.0, self.name.1, name.to_vec());
    }

    /// Replaces the whole attribute, including the blank before it.
    pub(crate) fn replace(&self, id: RepairId, attribute: Vec<u8>, edits: &mut Edits) {
        self.drop_edits(self.gap, edits);
        edits.push_unordered(id, self.gap, self.end, attribute);
    }

    /// Removes the attribute.
    pub(crate) fn remove(&self, id: RepairId, edits: &mut Edits) {
        self.replace(id, Vec::new(), edits);
    }

    /// Drops the edits inside the attribute. Edits that insert text after it stay.
    fn drop_edits(&self, from: usize, edits: &mut Edits) {
        for edit in edits.take_within(from, self.end).iter() {
            if edit.start == self.end && edit.id != RepairId::ValuelessAttribute {
                edits.push_edit_unordered(edit.clone());
            }
        }
    }
}
