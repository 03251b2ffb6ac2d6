//! Fields with correct tags and nothing but text, in a record whose markup is damaged elsewhere.
//!
//! The pass over [`markup`](crate::passes::markup) uses this module. Most elements of such a
//! record are plain fields. Reading one in a single step changes only the speed of the pass: tag by tag,
//! it would make no edit and leave the tree in the same state.

use crate::lex::names::{blanks, split_name, trailing_blanks};
use crate::lex::search::memchr;
use crate::passes::tree::{ContentKind, Tree};

/// Reads the plain field that begins at `at`, and returns its end, or that of the white space up to the
/// next tag. `None` if it is anything else.
pub(crate) fn read_plain_field(tree: &mut Tree<'_>, at: usize) -> Option<usize> {
    let parent = *tree.open().last()?;
    let is_in_container = matches!(parent.kind, ContentKind::Mixed)
        && tree.payload.is_open()
        && !tree.has_closed()
        && tree.sections().is_empty()
        && tree.open().len() < tree.limits().depth_max
        && at >= tree.position.kept_until();
    if !is_in_container {
        return None;
    }
    let field = tree.text().get(at..)?;
    let tag = tree.cached_tag(field, parent.context)?;
    let [prefix_len, name_len, tag_len] = [tag.prefix_len, tag.name_len, tag.len].map(|len| len as usize);
    let local = field.get(1 + prefix_len..1 + name_len)?;
    let is_field =
        !tag.empty && !tag.oai && tag.context == parent.context && tree.payload.family().is_field(local);
    let wanted = tree.payload.family().parent(local);
    if !is_field || wanted.is_some_and(|wanted| split_name(tree.slice(parent.name)).1 != wanted) {
        return None;
    }
    let content = field.get(tag_len..)?;
    let (text, end_tag) = content.split_at_checked(memchr(b'<', content)?)?;
    // A text that ends in `>` may end with a damaged tag.
    let is_text = text.get(..text.len() - trailing_blanks(text)).is_some_and(|text| !text.ends_with(b">"));
    let after = end_tag.strip_prefix(b"</")?.strip_prefix(field.get(1..1 + name_len)?)?;
    if !is_text || after.first() != Some(&b'>') {
        return None;
    }
    let content_from = at + tag_len;
    if content_from >= tree.position.searched_to() {
        tree.position.set_searched_to(content_from + text.len());
    }
    tree.position.take_bare_text();
    tree.position.set_content_from(content_from + text.len() + b"</>".len() + name_len);
    let after = tree.text().get(tree.position.content_from()..)?;
    let gap = blanks(after);
    Some(if after.get(gap) == Some(&b'<') {
        tree.position.content_from() + gap
    } else {
        tree.position.content_from()
    })
}
