//! The direct children of an element of the envelope, as ranges of the text.

use super::lexeme::{Lexeme, Lexemes};
use super::name::{blanks, name_span, split_name, trailing_blanks};

/// A child element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child<'t> {
    /// Its name without prefix.
    pub(super) local: &'t [u8],
    pub(super) start: usize,
    /// Between its tags; empty for an empty-element tag.
    pub(super) content: (usize, usize),
    pub(super) end: usize,
}

/// What an element holds.
#[derive(Debug, Default)]
pub(super) struct Outline<'t> {
    pub(super) children: Vec<Child<'t>>,
    /// Runs of text that is not white space, trimmed.
    pub(super) stray: Vec<(usize, usize)>,
}

/// The children between `from` and `to` of well-formed text; `None` when the
/// tags there do not balance. A mark that opens a section inside one is its text.
pub(super) fn outline(text: &[u8], from: usize, to: usize) -> Option<Outline<'_>> {
    let text = text.get(..to)?;
    let mut lexemes = Lexemes::of_well_formed(text);
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
        at = end;
    }
    (depth == 0).then_some(outline)
}
