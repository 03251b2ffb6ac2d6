//! The part of the validator for oversized items: emitted parts are dropped, and the reading continues.
//!
//! The stage `oversized` uses it. It decides which bytes may be emitted before the end of the item.

use crate::lex::known_namespaces::Family;
use crate::lex::names::{blanks, split_name};
use crate::lex::search::memmem;
use crate::lex::window::TextWindow;
use crate::limits::Limits;
use crate::span::Span;
use crate::text::fixed_positions::PlaceReading;
use crate::text::node_rules::NodeKind;
use crate::validate::schema::Text;
use crate::validate::start_tag::StartTagCache;
use crate::validate::state::{Construct, FIELD_BYTES_MAX, Inside, OpenElement, Validation, Validator};

/// Continues to read an item whose first part was dropped. Its length is not limited.
pub(crate) fn continue_oversized(
    validator: &mut Validator,
    window: TextWindow<'_>,
    tags: &mut StartTagCache,
    limits: &Limits,
) -> Validation {
    tags.tidy_inside(validator.stack.iter().map(|open| open.context));
    validator.read(window.item_at(0), tags, limits)
}

/// The number of bytes of the item that were read and may be emitted.
///
/// A container without its element is not emitted: it could not be closed if the rest is defective.
pub(crate) fn clean_bytes(validator: &Validator, item: &[u8]) -> usize {
    let clean = legal_bytes(validator, item);
    empty_container(validator, item, clean).map_or(clean, |start| clean.min(start))
}

/// The start of the open container whose one element would be missing if the item were cut at `at`.
/// `None` if it has its element, or was emitted with it.
fn empty_container(validator: &Validator, item: &[u8], at: usize) -> Option<usize> {
    let Inside::Payload { seen } = validator.inside else { return None };
    let depth = validator.payload_depth;
    let container = validator.stack.get(depth.checked_sub(1)?).filter(|open| !open.is_dropped)?;
    let is_start_tag = matches!(item.get(at..), Some([b'<', next, ..]) if !b"/!?".contains(next));
    let is_open = |open: &OpenElement| open.is_dropped || open.name_at as usize <= at;
    let is_cut_off =
        at == validator.lexeme_start && is_start_tag && !validator.stack.get(depth).is_some_and(is_open);
    (!seen || is_cut_off).then(|| (container.name_at as usize).saturating_sub(1))
}

/// The number of bytes that were read and are complete and legal.
fn legal_bytes(validator: &Validator, item: &[u8]) -> usize {
    if validator.construct == Construct::None
        && !validator.in_payload()
        && !matches!(validator.inside, Inside::Field { .. })
    {
        // Between envelope elements only blanks are known to be legal.
        let text = item.get(validator.lexeme_end..validator.at).unwrap_or_default();
        return validator.at.min(validator.lexeme_end + blanks(text));
    }
    let mut clean = validator.at.min(item.len());
    if validator.construct == Construct::None && validator.lexeme_end > clean {
        // Half a tag must not be emitted.
        clean = clean.min(validator.lexeme_start);
    }
    if validator.construct != Construct::None {
        // A boundary may begin in the last bytes.
        clean = clean.saturating_sub(validator.end_mark().len() - 1);
    } else if item.get(..clean).is_some_and(|item| item.ends_with(b"]")) {
        // The deletion of the next character must not join the bytes around it to `]]>`.
        clean -= 1;
    }
    if let Inside::Field { check, from, .. } = validator.inside
        && check != Text::Any
    {
        // The field is checked as a whole at its end.
        return clean.min(from as usize);
    }
    if matches!(validator.construct, Construct::Comment(_)) {
        // The emitted part of a comment must be a comment that can be closed.
        while clean > 0 && item.get(clean - 1) == Some(&b'-') {
            clean -= 1;
        }
    }
    clean
}

/// Whether there is a defect before the next tag is available: text where only blanks are legal, or a field
/// or the start of a container that is too long to be held.
pub(crate) fn has_early_defect(validator: &Validator, item: &[u8]) -> bool {
    let container = empty_container(validator, item, validator.at);
    if container.is_some_and(|start| validator.at.saturating_sub(start) > FIELD_BYTES_MAX) {
        return true;
    }
    match validator.inside {
        _ if validator.construct != Construct::None || validator.in_payload() => false,
        Inside::Field { check, from, .. } => {
            check != Text::Any && validator.at.saturating_sub(from as usize) > FIELD_BYTES_MAX
        }
        _ => legal_bytes(validator, item) < validator.at,
    }
}

/// Drops the first `bytes` of the item, which were emitted.
pub(crate) fn drop_emitted(validator: &mut Validator, item: &[u8], bytes: usize) {
    validator.is_oversized = true;
    keep_facts(validator, item);
    for open in &mut validator.stack {
        if !open.is_dropped && open.name_at as usize > bytes {
            open.name_at -= bytes as u32;
        } else if !open.is_dropped {
            let name = item.get(open.name_at as usize..(open.name_at + open.name_len) as usize);
            let at = validator.dropped_names.len() as u32;
            validator.dropped_names.extend_from_slice(name.unwrap_or_default());
            *open = OpenElement { name_at: at, is_dropped: true, ..*open };
        }
    }
    validator.at = validator.at.saturating_sub(bytes);
    validator.search = validator.search.saturating_sub(bytes);
    validator.lexeme_start = validator.lexeme_start.saturating_sub(bytes);
    validator.lexeme_end = validator.lexeme_end.saturating_sub(bytes);
    let back = bytes as u32;
    validator.construct = match validator.construct {
        Construct::None => Construct::None,
        Construct::Cdata(start) => Construct::Cdata(start.saturating_sub(back)),
        Construct::Comment(start) => Construct::Comment(start.saturating_sub(back)),
        Construct::Instruction(start) => Construct::Instruction(start.saturating_sub(back)),
    };
    if let Inside::Field { from, .. } = &mut validator.inside {
        *from = from.saturating_sub(back);
    }
}

/// Keeps the identifier and datestamp of a part that will be dropped.
pub(crate) fn keep_facts(validator: &mut Validator, item: &[u8]) {
    for (range, kept) in [
        (&mut validator.facts.identifier, &mut validator.dropped_identifier),
        (&mut validator.facts.datestamp, &mut validator.dropped_datestamp),
    ] {
        if kept.is_empty() && range.end > 0 {
            *kept = range.slice(item).to_vec();
            *range = Span::default();
        }
    }
}

/// Whether text is legal at `at` and may be emitted, so that a repair of characters can help.
pub(crate) fn may_contain_text(validator: &Validator, item: &[u8], at: usize) -> bool {
    let is_text = validator.in_payload()
        || validator.construct != Construct::None
        || matches!(validator.inside, Inside::Field { .. });
    is_text && empty_container(validator, item, at).is_none()
}

/// The kind of node that the byte at `at` belongs to.
pub(crate) fn node_at(validator: &Validator, at: usize) -> NodeKind {
    if validator.construct == Construct::None && at >= validator.lexeme_end {
        NodeKind::Text
    } else {
        NodeKind::Verbatim
    }
}

/// The reading of an illegal character at `at`. The start tag of its element may be dropped, so its
/// attributes do not count: characters of all control fields of MARC have positions.
pub(crate) fn reading_at(validator: &Validator, item: &[u8], at: usize) -> PlaceReading {
    let is_content = validator.construct != Construct::None || at >= validator.lexeme_end;
    let mut names = validator
        .stack
        .iter()
        .rev()
        .map(|open| validator.element_name(open, TextWindow::whole(item).item_at(0)));
    let (field, parent) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    let is_field = match split_name(field).1 {
        b"leader" => Family::of_root(split_name(parent).1, b"") == Family::Marc,
        b"controlfield" | b"fixfield" => true,
        _ => false,
    };
    if is_content && is_field { PlaceReading::Position } else { PlaceReading::Text }
}

/// The end of the tag that contains `at`; a position at or before `at` if there is none.
pub(crate) fn tag_end(validator: &Validator, at: usize) -> usize {
    if validator.construct == Construct::None { validator.lexeme_end } else { at }
}

/// The first byte of the mark that matters here: the end of a section, two hyphens in a comment, or `]]>`
/// in text.
pub(crate) fn mark_byte(validator: &Validator) -> u8 {
    match validator.construct {
        Construct::None | Construct::Cdata(_) => b']',
        Construct::Comment(_) => b'-',
        Construct::Instruction(_) => b'?',
    }
}

/// The last position at or before `at` at which the item can be closed: not inside a tag, and not in a
/// container without its element.
pub(crate) fn cut_at(validator: &Validator, item: &[u8], at: usize) -> usize {
    let is_in_tag = validator.construct == Construct::None && at < validator.lexeme_end;
    let at = if is_in_tag { validator.lexeme_start.min(at) } else { at };
    empty_container(validator, item, at).map_or(at, |start| at.min(start))
}

/// Continues after a repaired defect, which ends at `to`.
pub(crate) fn skip_repaired(validator: &mut Validator, item: &[u8], to: usize) {
    validator.lexeme_end = validator.lexeme_end.max(to);
    validator.search = validator.search.max(to);
    validator.at = to;
    drop_emitted(validator, item, to);
}

/// Whether the open section contains a possible end of the item.
pub(crate) fn section_may_contain_boundary(validator: &Validator, item: &[u8]) -> bool {
    let start = match validator.construct {
        Construct::None => return false,
        Construct::Cdata(start) | Construct::Comment(start) | Construct::Instruction(start) => start as usize,
    };
    memmem::find(item.get(start..).unwrap_or_default(), &validator.end_mark()).is_some()
}

/// The tags and marks that close all open elements after `item`.
pub(crate) fn closing_tags(validator: &Validator, item: &[u8]) -> Vec<u8> {
    let is_emitted = |open: &&OpenElement| open.is_dropped || (open.name_at as usize) < item.len();
    let mut closing = match validator.construct {
        _ if !validator.stack.last().as_ref().is_some_and(is_emitted) => Vec::new(),
        Construct::None => Vec::new(),
        Construct::Comment(_) if item.ends_with(b"-") => b" -->".to_vec(),
        Construct::Cdata(_) => b"]]>".to_vec(),
        Construct::Comment(_) => b"-->".to_vec(),
        Construct::Instruction(_) => b"?>".to_vec(),
    };
    for open in validator.stack.iter().rev().filter(is_emitted) {
        closing.extend_from_slice(
            &[b"</", validator.element_name(open, TextWindow::whole(item).item_at(0)), b">"].concat(),
        );
    }
    closing
}
