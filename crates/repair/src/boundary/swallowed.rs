//! Closed sections that contain items of the list.
//!
//! `repair_item` and the stages use it. A section such as `<![CDATA[ .. </record> <record> .. <![CDATA[ ..
//! ]]>` is well-formed. Either it is text about records, or the first section lost its end mark. A
//! depositor can write the one so that it looks like the other. So the section stays content, and the
//! caller reports the items in it: the list may have lost them.

use crate::lex::lexeme::{Lexeme, Lexemes, marks};
use crate::lex::names::{name_span, trailing_blanks, trim};
use crate::lex::search::{memchr, memchr_iter, memchr2_iter, memmem};
use crate::sink::SwallowedItem;
use crate::validate::envelope_names::{EnvelopeNames, TagMatch};

/// The closed sections of an item that contain a boundary, in the order of the text.
pub(crate) fn sections_with_boundaries(item: &[u8], names: &EnvelopeNames) -> Vec<(usize, usize)> {
    let mut sections = Vec::new();
    let may_open = |at: usize| at.checked_sub(1).and_then(|before| item.get(before)) == Some(&b'<');
    if !memchr2_iter(b'!', b'?', item).any(may_open) {
        return sections;
    }
    // Opening marks for which no end mark follows.
    let mut unclosed: [&[u8]; 3] = [b""; 3];
    let mut at = 0;
    while let Some(next) = memchr(b'<', item.get(at..).unwrap_or_default()) {
        at += next;
        let rest = item.get(at..).unwrap_or_default();
        let known = marks(rest).filter(|(mark, _)| !unclosed.contains(mark));
        let Some((mark, end_mark)) = known else {
            at += 1;
            continue;
        };
        let Some(len) = memmem::find(rest.get(mark.len()..).unwrap_or_default(), end_mark) else {
            if let Some(slot) = unclosed.iter_mut().find(|slot| slot.is_empty()) {
                *slot = mark;
            }
            at += 1;
            continue;
        };
        let len = mark.len() + len + end_mark.len();
        if names.contains_boundary(rest.get(..len).unwrap_or_default()) {
            sections.push((at, at + len));
        }
        at += len;
    }
    sections
}

/// The items that begin in a section of `item`. Each reaches to the next one, or to the end of `item`.
pub(crate) fn items_in<'t>(
    item: &'t [u8],
    (start, end): (usize, usize),
    names: &EnvelopeNames,
) -> Vec<SwallowedItem<'t>> {
    let section = item.get(start..end).unwrap_or_default();
    let starts: Vec<usize> = memchr_iter(b'<', section)
        .map(|at| start + at)
        .filter(|&at| names.starts_item(item.get(at..).unwrap_or_default()) == TagMatch::Yes)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([item.len()]);
    let items = starts.iter().zip(ends).map(|(&start, end)| {
        let raw = item.get(start..end).unwrap_or_default();
        let raw = raw.get(..raw.len() - trailing_blanks(raw)).unwrap_or_default();
        SwallowedItem { identifier: find_identifier(raw, names), raw }
    });
    items.collect()
}

/// The identifier of an item that is not valid. Those of its payload, of sections and of comments do not
/// count.
pub(crate) fn find_identifier<'t>(raw: &'t [u8], names: &EnvelopeNames) -> Option<&'t [u8]> {
    let name: &[u8] = match names.element.name {
        b"set" => b"setSpec",
        b"metadataFormat" => b"metadataPrefix",
        _ => b"identifier",
    };
    let mut lexemes = Lexemes::new(raw);
    let mut at = 0;
    while at < raw.len() {
        let (lexeme, end) = lexemes.at(at);
        let tag = raw.get(at + 1..end).unwrap_or_default();
        if lexeme == Lexeme::StartTag {
            let tag_name = tag.get(..name_span(tag)).unwrap_or_default();
            if names.has_payload(tag_name) {
                return None;
            }
            if names.item_prefixes().any(|prefix| tag_name.strip_prefix(prefix) == Some(name)) {
                let rest = raw.get(end..)?;
                let text = trim(rest.get(..memchr(b'<', rest)?)?);
                return (!text.is_empty()).then_some(text);
            }
        }
        at = end;
    }
    None
}
