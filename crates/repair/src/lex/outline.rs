//! The direct children of an envelope element, as ranges of the text.
//!
//! The passes, `v1/` and the stages use it on well-formed text.

use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::{blanks, name_span, split_name, trailing_blanks};

/// A child element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child<'t> {
    /// The name without its prefix.
    pub(crate) local: &'t [u8],
    pub(crate) start: usize,
    /// The text between its tags. Empty for an empty-element tag.
    pub(crate) content: (usize, usize),
    pub(crate) end: usize,
}

/// The content of an element.
#[derive(Debug, Default)]
pub(crate) struct Outline<'t> {
    pub(crate) children: Vec<Child<'t>>,
    /// Runs of text other than white space, trimmed.
    pub(crate) stray: Vec<(usize, usize)>,
}

/// Maximum number of children and texts of one element, each of which takes at most 48 bytes. An element with more is
/// not read, so an item with a defect in such an element is quarantined.
const CHILDREN_MAX: usize = 64 << 10;

/// The children between `from` and `to` of well-formed text. `None` if the tags there do not balance, or if there are
/// too many. A mark that opens a section is text inside another section.
pub(crate) fn outline(text: &[u8], from: usize, to: usize) -> Option<Outline<'_>> {
    let text = text.get(..to)?;
    let mut lexemes = Lexemes::new_well_formed(text);
    let to = text.len();
    let mut outline = Outline::default();
    let mut at = from;
    let mut depth = 0_usize;
    while at < to {
        let (lexeme, end) = lexemes.at(at);
        match lexeme {
            Lexeme::Text if depth == 0 => {
                let run = text.get(at..end)?;
                let stray = (at + blanks(run), end - trailing_blanks(run));
                if stray.0 < stray.1 {
                    outline.stray.push(stray);
                }
            }
            Lexeme::Cdata if depth == 0 => outline.stray.push((at, end)),
            Lexeme::StartTag => {
                let tag = text.get(at..end)?;
                let empty = tag.ends_with(b"/>");
                if depth == 0 {
                    let name = tag.get(1..1 + name_span(tag.get(1..)?))?;
                    let local = split_name(name).1;
                    outline.children.push(Child { local, start: at, content: (end, end), end });
                }
                depth += usize::from(!empty);
            }
            Lexeme::EndTag => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    let child = outline.children.last_mut()?;
                    child.content.1 = at;
                    child.end = end;
                }
            }
            Lexeme::OpenTag | Lexeme::OpenCdata | Lexeme::OpenComment | Lexeme::BareLessThan => return None,
            _ => {}
        }
        if outline.children.len() + outline.stray.len() > CHILDREN_MAX {
            return None;
        }
        at = end;
    }
    (depth == 0).then_some(outline)
}

/// The prefix of the item's name, with its colon.
pub(crate) fn item_prefix(item: &[u8]) -> &[u8] {
    let name = item.get(1..).unwrap_or_default();
    let (prefix, _) = split_name(name.get(..name_span(name)).unwrap_or_default());
    name.get(..if prefix.is_empty() { 0 } else { prefix.len() + 1 }).unwrap_or_default()
}

/// An envelope element whose text is already escaped.
pub(crate) fn element_with_text(prefix: &[u8], local: &[u8], value: &[u8]) -> Vec<u8> {
    [b"<", prefix, local, b">", value, b"</", prefix, local, b">"].concat()
}
