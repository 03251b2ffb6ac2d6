//! Closed sections that contain items of the list: content, but the list may have lost these items.
//!
//! `<![CDATA[ .. </record> <record> .. <![CDATA[ .. ]]>` is well-formed. Either somebody wrote about
//! records, or the first section lost its end mark. A depositor can write the former so that it looks
//! like the latter, therefore the section is content, and the caller is told what is in it.

use memchr::{memchr, memchr_iter, memchr2_iter, memmem};

use super::list::peek_identifier;
use super::name::trailing_blanks;
use super::sink::SwallowedItem;
use super::skeleton::{Answer, Skeleton};

pub(super) const CDATA: &[u8] = b"<![CDATA[";
pub(super) const COMMENT: &[u8] = b"<!--";
const INSTRUCTION: &[u8] = b"<?";

/// The opening and the end mark of the section that `text` begins with.
pub(super) fn marks(text: &[u8]) -> Option<(&'static [u8], &'static [u8])> {
    let all: [(&[u8], &[u8]); 3] = [(CDATA, b"]]>"), (COMMENT, b"-->"), (INSTRUCTION, b"?>")];
    all.into_iter().find(|(mark, _)| text.starts_with(mark))
}

/// Whether a section that is closed contains the border of an item, and its own opening mark
/// before that or after it.
pub(super) fn swallows_border(section: &[u8], skeleton: &Skeleton) -> bool {
    let Some((mark, _)) = marks(section) else { return false };
    memmem::find(section.get(mark.len()..).unwrap_or_default(), mark).is_some()
        && skeleton.has_border(section)
}

/// The closed sections of an item that contain borders of items, in their order.
pub(super) fn sections_with_borders(item: &[u8], skeleton: &Skeleton) -> Vec<(usize, usize)> {
    let mut sections = Vec::new();
    let may_open = |at: usize| at.checked_sub(1).and_then(|before| item.get(before)) == Some(&b'<');
    if !memchr2_iter(b'!', b'?', item).any(may_open) {
        return sections;
    }
    // Kinds of sections of which no end mark follows.
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
        if skeleton.has_border(rest.get(..len).unwrap_or_default()) {
            sections.push((at, at + len));
        }
        at += len;
    }
    sections
}

/// The items that begin inside a section of `item`, each up to the next one or to the item's end.
pub(super) fn items_in<'t>(
    item: &'t [u8],
    (start, end): (usize, usize),
    skeleton: &Skeleton,
) -> Vec<SwallowedItem<'t>> {
    let section = item.get(start..end).unwrap_or_default();
    let starts: Vec<usize> = memchr_iter(b'<', section)
        .map(|at| start + at)
        .filter(|&at| skeleton.starts_item(item.get(at..).unwrap_or_default()) == Answer::Yes)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([item.len()]);
    let items = starts.iter().zip(ends).map(|(&start, end)| {
        let raw = item.get(start..end).unwrap_or_default();
        let raw = raw.get(..raw.len() - trailing_blanks(raw)).unwrap_or_default();
        SwallowedItem { identifier: peek_identifier(raw, skeleton), raw }
    });
    items.collect()
}
