//! Fields whose content is well-formed although another part of their record is not.
//!
//! A part of the pass over [`markup`](super::markup). Markup in such a field stays as it is: only the
//! damaged fields of a record change.

use super::context::Context;
use super::lexeme::Lexeme;
use super::markup::Tree;
use super::name::{name_span, split_name};
use super::tag::end_tag;

/// An element inside a field.
struct Inner {
    name: (usize, usize),
    context: Context,
}

impl Tree<'_> {
    /// The position of the end tag of the field that is open, where its content from `from` on holds
    /// elements and is well-formed.
    ///
    /// Content is searched once: a search that failed ends where the next field begins, and a field
    /// before that position is not searched again.
    pub(super) fn end_of_balanced_field(&mut self, from: usize) -> Option<usize> {
        if from < self.searched_to {
            return None;
        }
        let mut at = from;
        let mut inner: Vec<Inner> = Vec::new();
        let mut has_elements = false;
        while at < self.text.len() {
            let (lexeme, end) = self.lexemes.at(at);
            let is_legal = match lexeme {
                Lexeme::Text | Lexeme::Cdata => true,
                Lexeme::Comment => self.is_legal_comment(at, end),
                Lexeme::StartTag => {
                    has_elements = true;
                    self.enter(at, end, &mut inner)
                }
                Lexeme::EndTag => {
                    let name = inner.pop().map(|open| open.name);
                    let field = self.open.last().map_or((0, 0), |open| open.name);
                    let tag = self.slice((at, end));
                    let matches = end_tag(tag, self.slice(name.unwrap_or(field))) == Ok(tag.len());
                    if name.is_none() {
                        self.searched_to = at;
                        return (matches && has_elements).then_some(at);
                    }
                    matches
                }
                _ => false,
            };
            if !is_legal {
                break;
            }
            at = end;
        }
        self.searched_to = at;
        None
    }

    /// Whether the start tag `at..end` is well-formed and can be inside the field that is open.
    fn enter(&mut self, at: usize, end: usize, inner: &mut Vec<Inner>) -> bool {
        let name = (at + 1, at + 1 + name_span(self.slice((at + 1, end))));
        let context = inner.last().map_or(self.context(), |open| open.context);
        let is_outside = self.open.last().is_some_and(|&field| self.is_sibling(field, self.slice(name)));
        let Ok(tag) = self.tags.open(self.slice((at, end)), context, self.limits) else { return false };
        if is_outside
            || at + tag.len as usize != end
            || tag.oai && self.is_child_of_item(split_name(self.slice(name)).1)
            || self.open.len() + inner.len() >= self.limits.depth_max
        {
            return false;
        }
        if !tag.empty {
            inner.push(Inner { name, context: tag.context });
        }
        true
    }
}
