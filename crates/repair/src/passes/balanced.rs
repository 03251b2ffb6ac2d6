//! Fields with well-formed content in a record whose markup is damaged elsewhere.
//!
//! The pass over [`markup`](crate::passes::markup) uses this module. It keeps the markup inside
//! such a field, so that only damaged fields change.

use crate::lex::lexeme::Lexeme;
use crate::lex::names::{name_span, split_name};
use crate::lex::namespaces::Context;
use crate::passes::tree::Tree;
use crate::validate::start_tag::end_tag;

/// An open element inside a field.
struct InnerElement {
    name: (usize, usize),
    context: Context,
}

/// Returns the position of the end tag of the open field, if its content from `from` on contains elements
/// and is well-formed.
///
/// Each byte is searched once. A failed search ends at the next field, and no field before that position is
/// searched again.
pub(crate) fn end_of_balanced_field(tree: &mut Tree<'_>, from: usize) -> Option<usize> {
    if from < tree.position.searched_to() {
        return None;
    }
    let mut at = from;
    let mut inner: Vec<InnerElement> = Vec::new();
    let mut has_elements = false;
    while at < tree.text().len() {
        let (lexeme, end) = tree.lexeme_at(at);
        let is_legal = match lexeme {
            Lexeme::Text | Lexeme::Cdata => true,
            Lexeme::Comment => tree.is_legal_comment(at, end),
            Lexeme::StartTag => {
                has_elements = true;
                open_inner(tree, at, end, &mut inner)
            }
            Lexeme::EndTag => {
                let name = inner.pop().map(|open| open.name);
                let field = tree.open().last().map_or((0, 0), |open| open.name);
                let tag = tree.slice((at, end));
                let matches = end_tag(tag, tree.slice(name.unwrap_or(field))) == Ok(tag.len());
                if name.is_none() {
                    tree.position.set_searched_to(at);
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
    tree.position.set_searched_to(at);
    None
}

/// Returns whether the start tag `at..end` is well-formed and allowed inside the open field.
fn open_inner(tree: &mut Tree<'_>, at: usize, end: usize, inner: &mut Vec<InnerElement>) -> bool {
    let name = (at + 1, at + 1 + name_span(tree.slice((at + 1, end))));
    let context = inner.last().map_or(tree.context(), |open| open.context);
    let is_outside = tree.open().last().is_some_and(|&field| tree.is_sibling(field, tree.slice(name)));
    let Ok(tag) = tree.open_tag(tree.slice((at, end)), context) else { return false };
    if is_outside
        || at + tag.len as usize != end
        || tag.oai && tree.is_child_of_item(split_name(tree.slice(name)).1)
        || tree.open().len() + inner.len() >= tree.limits().depth_max
    {
        return false;
    }
    if !tag.empty {
        inner.push(InnerElement { name, context: tag.context });
    }
    true
}
