//! The repair of end tags in broken markup: each end tag closes an open element or is text.
//!
//! The pass over [`markup`](crate::passes::markup) uses this module. Inside a plain-text field, an
//! end tag closes an element around the field only if the next tag confirms it. Otherwise the end tag is
//! text.

use crate::boundary::removable::is_punctuation;
use crate::catalog::RepairId;
use crate::lex::known_namespaces::{Family, is_similar_name};
use crate::lex::names::{blanks, name_span, split_name, trailing_blanks, trim};
use crate::passes::tree::{ContentKind, Tree, TreeElement, in_key_field};

pub(crate) fn read_end_tag(tree: &mut Tree<'_>, at: usize, end: usize) {
    let name_end = at + 2 + name_span(tree.slice((at + 2, end)));
    let name = tree.slice((at + 2, name_end));
    let complete =
        tree.slice((at, end)).ends_with(b">") && blanks(tree.slice((name_end, end))) + 1 == end - name_end;
    let Some(top) = tree.open().last().copied() else { return };
    if is_followed_by_text(tree, (name_end, end)) {
        return keep_text_of_end_tag(tree, at, end);
    }
    let top_depth = tree.open().len() - 1;
    let exact = tree.open().iter().rposition(|open| tree.slice(open.name) == name);
    let local = split_name(name).1;
    let in_plain_field = tree.in_field() && tree.payload.is_open();
    if let Some(depth) = exact {
        if in_plain_field && depth < top_depth && is_in_text(tree, depth, end) {
            return tree.escape(at, end);
        }
        tree.close_above(depth + 1, at);
        if !complete {
            tree.rename_end(depth, at, end);
        }
        tree.pop(end);
    } else if is_similar_name(split_name(tree.slice(top.name)).1, local)
        || in_plain_field && is_meant_for_field(tree, top, name, (name_end, end))
        || tree.in_payload() && is_prefix_of_open_element(tree, top, name, end)
    {
        tree.rename_end(top_depth, at, end);
        tree.pop(end);
    } else if let Some(depth) =
        tree.open().iter().rposition(|open| split_name(tree.slice(open.name)).1.eq_ignore_ascii_case(local))
        && (!in_plain_field || is_confirmed(tree, depth, end))
    {
        tree.close_above(depth + 1, at);
        tree.rename_end(depth, at, end);
        tree.pop(end);
    } else if in_plain_field && is_before_field_end(tree, top, name, end) {
        tree.edit(RepairId::StrayEndTag, at, end, b"");
        tree.position.set_content_from(end);
    } else if in_key_field(tree) && is_before_envelope_tag(tree, end) {
        tree.rename_end(top_depth, at, end);
        tree.pop(end);
    } else if tree.in_field() {
        tree.note_ambiguity(in_key_field(tree));
        tree.escape(at, end);
    } else if let Some(text_at) = tree.position.take_bare_text() {
        restore_start_tag(tree, text_at, name, complete, at);
        tree.position.set_content_from(end);
    } else {
        tree.note_ambiguity(tree.payload.family().has_unknown_structure() && tree.in_payload());
        tree.edit(RepairId::StrayEndTag, at, end, b"");
        tree.position.set_content_from(end);
    }
}

/// Returns whether an end tag lacks its `>` and text follows its name.
fn is_followed_by_text(tree: &Tree<'_>, after_name: (usize, usize)) -> bool {
    let after = tree.slice(after_name);
    !after.ends_with(b">") && !is_punctuation(after)
}

/// Handles an end tag without `>`, which extends to the next tag.
///
/// Inside a plain-text field the whole tag is text. Elsewhere the intent is ambiguous, because the text
/// would be in no element.
fn keep_text_of_end_tag(tree: &mut Tree<'_>, at: usize, end: usize) {
    tree.note_ambiguity(in_key_field(tree) || !tree.in_field());
    tree.escape(at, end);
}

/// Returns whether the next tag after `end` can follow the open field of the envelope.
fn is_before_envelope_tag(tree: &Tree<'_>, end: usize) -> bool {
    let (is_end, next) = next_tag(tree, end);
    let local = split_name(next).1;
    let parent = tree.open().iter().rev().nth(1).map(|open| split_name(tree.slice(open.name)).1);
    if is_end { parent == Some(local) } else { tree.parent_has_child(local) }
}

/// Returns whether the tag that ends at `end` is the item's end tag without its slash.
///
/// This requires that every element in the item is closed and that nothing follows the tag.
pub(crate) fn is_end_without_slash(tree: &Tree<'_>, name: &[u8], end: usize) -> bool {
    let after = tree.slice((end, tree.text().len()));
    let [item] = tree.open() else { return false };
    tree.slice(item.name) == name
        && blanks(after) == after.len()
        && tree.position.content_from() > item.name.1 + 1
}

/// Corrects the item's end tag if it is the last text of the item and no longer a tag: `record>`,
/// `/record>`, `</ record>`, `</>`.
pub(crate) fn restore_item_end(tree: &mut Tree<'_>) {
    let [item] = tree.open() else { return };
    let text = tree.slice((tree.position.content_from(), tree.text().len()));
    let at = tree.position.content_from() + blanks(text);
    let tag = trim(text);
    // The pass over characters escapes a `<` that begins no tag.
    let bare = tag.strip_prefix(b"&lt;").or_else(|| tag.strip_prefix(b"<"));
    let name = bare.unwrap_or(tag);
    let slash = name.strip_prefix(b"/");
    let name = slash.unwrap_or(name);
    let Some(name) = name.strip_suffix(b">").map(trim) else { return };
    let is_empty_tag = bare.is_some() && slash.is_some() && name.is_empty();
    if is_empty_tag || is_similar_name(split_name(name).1, split_name(tree.slice(item.name)).1) {
        let end_tag = [b"</", tree.slice(item.name), b">"].concat();
        // The new edit replaces the whole tag, including the earlier edits inside it.
        tree.drop_last_edit_within(at, at + tag.len());
        tree.edit(RepairId::MismatchedEndTag, at, at + tag.len(), &end_tag);
        tree.pop(at + tag.len());
    }
}

/// Returns whether the element at `depth` is in the payload and text follows the end tag.
///
/// An end tag with the name of such an element is then text itself.
fn is_in_text(tree: &Tree<'_>, depth: usize, end: usize) -> bool {
    let in_payload = tree.open().get(depth).is_some_and(|open| matches!(open.kind, ContentKind::Mixed));
    let after = tree.slice((end, tree.text().len()));
    in_payload && after.get(blanks(after)).is_some_and(|&byte| byte != b'<')
}

/// Returns whether an end tag closes the open field although it has another name.
///
/// The name is the name of another field or the beginning of the right name. The next tag must be one that
/// cannot be inside the field.
fn is_meant_for_field(
    tree: &Tree<'_>,
    field: TreeElement,
    name: &[u8],
    (name_end, end): (usize, usize),
) -> bool {
    let field_name = tree.slice(field.name);
    let (prefix, local) = split_name(name);
    let is_other_field = prefix == split_name(field_name).0 && tree.payload.family().is_field(local);
    let is_cut = blanks(tree.slice((name_end, end))) == end - name_end && field_name.starts_with(name);
    let is_prefix = field_name.strip_prefix(name).is_some_and(|rest| rest.starts_with(b":"));
    (is_other_field || is_cut || is_prefix) && ends_before_next_tag(tree, field, end)
}

/// Returns whether an end tag in the payload consists of the prefix of the open element.
///
/// If an element around it has the prefix as its local name, the tag may be meant for that element.
fn is_prefix_of_open_element(tree: &Tree<'_>, open: TreeElement, name: &[u8], end: usize) -> bool {
    let prefix = name.strip_suffix(b":").unwrap_or(name);
    let is_prefix = !prefix.is_empty() && split_name(tree.slice(open.name)).0 == prefix;
    let named = || tree.open().iter().rposition(|open| split_name(tree.slice(open.name)).1 == prefix);
    is_prefix && named().is_none_or(|depth| !is_confirmed(tree, depth, end))
}

/// Returns whether the next tag after `end` cannot be inside the open field.
fn ends_before_next_tag(tree: &Tree<'_>, field: TreeElement, end: usize) -> bool {
    let (is_end, next) = next_tag(tree, end);
    if is_end {
        let around = tree.open().get(..tree.open().len() - 1).unwrap_or_default();
        around.iter().any(|open| tree.slice(open.name) == next)
    } else {
        tree.is_sibling(field, next)
    }
}

/// Returns whether an end tag of another field is directly before the end tag of the open field.
fn is_before_field_end(tree: &Tree<'_>, field: TreeElement, name: &[u8], end: usize) -> bool {
    let field_name = tree.slice(field.name);
    let (prefix, local) = split_name(name);
    prefix == split_name(field_name).0
        && tree.payload.family().is_field(local)
        && next_tag(tree, end) == (true, field_name)
}

/// Inserts the missing `<` if the text `at..end` of a field ends with the field's end tag without it.
pub(crate) fn insert_missing_bracket(tree: &mut Tree<'_>, at: usize, end: usize) {
    if !tree.payload.is_open() {
        return;
    }
    let Some(field) = tree.open().last().copied() else { return };
    let text = tree.slice((at, end - trailing_blanks(tree.slice((at, end)))));
    let tag = text.strip_suffix(b">").and_then(|text| text.strip_suffix(tree.slice(field.name)));
    if let Some(content) = tag.and_then(|tag| tag.strip_suffix(b"/"))
        && ends_before_next_tag(tree, field, end)
    {
        let place = at + content.len();
        tree.edit(RepairId::MismatchedEndTag, place, place, b"<");
        tree.pop(end);
    }
}

/// Returns whether the next tag confirms that the element at `depth` ends here.
///
/// Such a tag is the end tag of an element around it, or the start tag of an element that follows it.
fn is_confirmed(tree: &Tree<'_>, depth: usize, end: usize) -> bool {
    if blanks(tree.slice((end, tree.text().len()))) == tree.text().len() - end {
        return true;
    }
    let (is_end, next) = next_tag(tree, end);
    let local = split_name(next).1;
    let around = tree.open().get(..depth).unwrap_or_default();
    let local_of = |open: &TreeElement| split_name(tree.slice(open.name)).1;
    if is_end {
        return around.iter().any(|open| local_of(open).eq_ignore_ascii_case(local));
    }
    let parent = around.last().map(local_of);
    tree.payload.family().parent(local).is_some_and(|wanted| parent == Some(wanted))
        || tree.is_child_of_item(local)
}

/// Returns whether the next tag after `at` is an end tag, and its name. Blanks before the tag are skipped.
///
/// The name is empty if no tag follows.
fn next_tag<'t>(tree: &Tree<'t>, at: usize) -> (bool, &'t [u8]) {
    let after = tree.slice((at, tree.text().len()));
    let Some(tag) = after.get(blanks(after)..).and_then(|tag| tag.strip_prefix(b"<")) else {
        return (false, b"");
    };
    let (is_end, tag) = tag.strip_prefix(b"/").map_or((false, tag), |tag| (true, tag));
    (is_end, tag.get(..name_span(tag)).unwrap_or_default())
}

/// Notes the start of text that is directly in a container. A container allows only elements.
pub(crate) fn note_bare_text(tree: &mut Tree<'_>, at: usize, end: usize) {
    let text = tree.slice((at, end));
    let gap = blanks(text);
    if tree.position.bare_text().is_none() && gap < text.len() && in_container(tree) {
        tree.position.set_bare_text(at + gap);
    }
}

/// Returns whether the open element is a container of a known format: it allows fields but no text.
fn in_container(tree: &Tree<'_>) -> bool {
    let parent = tree.open().len().checked_sub(2).and_then(|depth| tree.open().get(depth));
    tree.in_payload()
        && match tree.payload.family() {
            Family::DublinCore => parent.is_some_and(|open| matches!(open.kind, ContentKind::PayloadParent)),
            family => tree
                .open()
                .last()
                .is_some_and(|open| family.is_container(split_name(tree.slice(open.name)).1)),
        }
}

/// Restores the start tag of a field whose text begins at `text_at` in a container and ends with the end
/// tag at `at`.
///
/// The record is ambiguous if the name of the end tag does not identify the field.
fn restore_start_tag(tree: &mut Tree<'_>, text_at: usize, name: &[u8], complete: bool, at: usize) {
    let (prefix, local) = split_name(name);
    let top = tree.open().last().map_or(&b""[..], |open| split_name(tree.slice(open.name)).1);
    // Other fields of MARC have attributes, which cannot be restored.
    let is_field = match tree.payload.family() {
        Family::Marc => local == b"leader" && top == b"record",
        _ => tree.payload.family().is_field(local),
    };
    let added = tree.payload.root().is_some_and(|root| root.added.iter().any(|one| one == prefix));
    let bound = added || tree.lookup(tree.context(), prefix).is_some();
    let text = tree.slice((text_at, at));
    if !is_field || !bound || !complete {
        tree.note_ambiguity(true);
    } else if !text.starts_with(name) {
        let tag = [b"<", name, b">"].concat();
        tree.edit(RepairId::MissingStartTag, text_at, text_at, &tag);
    } else if text.get(name.len()) == Some(&b'>') {
        tree.edit(RepairId::MissingStartTag, text_at, text_at, b"<");
    } else {
        tree.note_ambiguity(true);
    }
}
