//! The pass over damaged tag names. It runs between the passes over characters and markup.
//!
//! A bad byte in a name becomes a letter or a character that no name can contain. If another tag of the
//! item has the same name without this character, the repair removes the character.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::catalog::RepairId;
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::{is_qualified_name, name_span};
use crate::lex::search::find_frequent;
use crate::limits::Limits;
use crate::text::edits::Edits;

#[derive(Clone, Copy, Debug)]
enum TagKind {
    Start,
    End,
    Empty,
}

/// The numbers of tags with one non-ASCII name in an item.
#[derive(Debug, Default)]
struct TagCount {
    /// Start tags, except those of empty elements.
    starts: usize,
    ends: usize,
}

/// Returns the edits that remove non-ASCII characters from tag names. Stops soon after more than
/// `repairs_per_record_max` edits, because the result is then discarded. An item with more different
/// non-ASCII names than that is left alone.
///
/// The rest must be the name of another tag of the item. A legal name with as many start tags as end tags
/// is intended and stays.
pub(crate) fn repair_names(text: &[u8], limits: &Limits) -> Edits {
    let edits = Edits::default();
    if text.is_ascii() {
        return edits;
    }
    // Most texts have non-ASCII characters only in their fields.
    let is_damaged = |at: usize| {
        let after = text.get(at + 1..).unwrap_or_default();
        let name = after.strip_prefix(b"/").unwrap_or(after);
        name.get(..name_span(name)).is_some_and(|name| !name.is_ascii())
    };
    if find_frequent(b'<', text, 0, is_damaged).is_none() {
        return edits;
    }
    match removable_names(text, limits.repairs_per_record_max) {
        Some(removable) if !removable.is_empty() => edit_names(text, &removable, limits),
        _ => edits,
    }
}

/// The non-ASCII names of which the ASCII characters are the name of another tag. `None` if there are more than
/// `names_max` non-ASCII names.
///
/// The tags are read twice instead of being held: an item can have a tag for each three bytes.
fn removable_names(text: &[u8], names_max: usize) -> Option<HashSet<&[u8]>> {
    let mut counts: HashMap<&[u8], TagCount> = HashMap::new();
    for (tag, name) in tag_names(text) {
        let name = text.get(name).filter(|name| !name.is_ascii());
        let Some(name) = name else { continue };
        let counted = counts.entry(name).or_default();
        match tag {
            TagKind::Start => counted.starts += 1,
            TagKind::End => counted.ends += 1,
            TagKind::Empty => {}
        }
        if counts.len() > names_max {
            return None;
        }
    }
    counts.retain(|name, tags| tags.starts != tags.ends || !is_qualified_name(name));
    let mut wanted: HashMap<Vec<u8>, bool> = counts.keys().map(|name| (ascii_part(name), false)).collect();
    for (_, name) in tag_names(text) {
        if let Some(is_found) = text.get(name).and_then(|name| wanted.get_mut(name)) {
            *is_found = true;
        }
    }
    let is_found = |name: &&[u8]| wanted.get(&ascii_part(name)) == Some(&true);
    Some(counts.into_keys().filter(is_found).collect())
}

fn ascii_part(name: &[u8]) -> Vec<u8> {
    name.iter().copied().filter(u8::is_ascii).collect()
}

/// Removes the non-ASCII characters of these names.
fn edit_names(text: &[u8], removable: &HashSet<&[u8]>, limits: &Limits) -> Edits {
    let mut edits = Edits::default();
    for (_, place) in tag_names(text) {
        let name = text.get(place.clone()).unwrap_or_default();
        if !removable.contains(name) {
            continue;
        }
        for (offset, byte) in name.iter().enumerate() {
            if !byte.is_ascii() {
                let at = place.start + offset;
                edits.push(RepairId::DamagedName, at, at + 1, b"");
            }
        }
        if edits.len() > limits.repairs_per_record_max {
            break;
        }
    }
    edits
}

/// The kind of each tag of a text, and the range of its name.
fn tag_names(text: &[u8]) -> impl Iterator<Item = (TagKind, Range<usize>)> {
    let mut lexemes = Lexemes::new(text);
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let (lexeme, end) = lexemes.at(start);
            at = end;
            let is_empty = text.get(start..end).is_some_and(|tag| tag.ends_with(b"/>"));
            let (tag, name) = match lexeme {
                Lexeme::StartTag if is_empty => (TagKind::Empty, start + 1),
                Lexeme::StartTag => (TagKind::Start, start + 1),
                Lexeme::EndTag => (TagKind::End, start + 2),
                _ => continue,
            };
            let span = name_span(text.get(name..end).unwrap_or_default());
            return Some((tag, name..name + span));
        }
        None
    })
}
