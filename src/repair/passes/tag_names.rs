//! The pass over damaged tag names. It runs between the passes over characters and markup.
//!
//! A bad byte in a name becomes a letter or a character that no name can contain. If another tag of the
//! item has the same name without this character, the repair removes the character.

use std::collections::HashMap;

use crate::repair::catalog::RepairId;
use crate::repair::lex::lexeme::{Lexeme, Lexemes};
use crate::repair::lex::names::{is_qualified_name, name_span};
use crate::repair::lex::search::find_frequent;
use crate::repair::text::edits::Edits;

#[derive(Clone, Copy, Debug)]
enum TagKind {
    Start,
    End,
    Empty,
}

/// The numbers of tags with one name in an item.
#[derive(Debug, Default)]
struct TagCount {
    /// Start tags, except those of empty elements.
    starts: usize,
    ends: usize,
}

/// Returns the edits that remove non-ASCII characters from tag names.
///
/// The rest must be the name of another tag of the item. A legal name with as many start tags as end tags
/// is intended and stays.
pub(crate) fn repair_names(text: &[u8]) -> Edits {
    let mut edits = Edits::default();
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
    let names = tag_names(text);
    let mut tags: HashMap<&[u8], TagCount> = HashMap::new();
    for &(tag, start, end) in &names {
        let counted = tags.entry(text.get(start..end).unwrap_or_default()).or_default();
        match tag {
            TagKind::Start => counted.starts += 1,
            TagKind::End => counted.ends += 1,
            TagKind::Empty => {}
        }
    }
    for (_, start, end) in names {
        let name = text.get(start..end).unwrap_or_default();
        if name.is_ascii() {
            continue;
        }
        let rest: Vec<u8> = name.iter().copied().filter(u8::is_ascii).collect();
        let is_balanced = tags.get(name).is_some_and(|tags| tags.starts == tags.ends);
        if !tags.contains_key(rest.as_slice()) || is_balanced && is_qualified_name(name) {
            continue;
        }
        for (offset, byte) in name.iter().enumerate() {
            if !byte.is_ascii() {
                edits.push(RepairId::DamagedName, start + offset, start + offset + 1, b"");
            }
        }
    }
    edits
}

/// Returns the kind of each tag of a text, and the range of its name.
fn tag_names(text: &[u8]) -> Vec<(TagKind, usize, usize)> {
    let mut names = Vec::new();
    let mut lexemes = Lexemes::new(text);
    let mut at = 0;
    while at < text.len() {
        let (lexeme, end) = lexemes.at(at);
        let is_empty = text.get(at..end).is_some_and(|tag| tag.ends_with(b"/>"));
        let tag = match lexeme {
            Lexeme::StartTag if is_empty => Some((TagKind::Empty, at + 1)),
            Lexeme::StartTag => Some((TagKind::Start, at + 1)),
            Lexeme::EndTag => Some((TagKind::End, at + 2)),
            _ => None,
        };
        if let Some((tag, start)) = tag {
            let span = name_span(text.get(start..end).unwrap_or_default());
            names.push((tag, start, start + span));
        }
        at = end;
    }
    names
}
