//! The second pass of the slow path: tags, sections and prefixes of one item.
//!
//! [`repair_item`](crate::repair_item::repair_item) runs this pass on items that are not
//! well-formed after their characters are repaired.
//!
//! The pass uses the structure of OAI-PMH and of known formats: the children of each element, and the
//! fields that contain plain text.

use crate::boundary::removable::{contains_content, is_fatal_message};
use crate::catalog::{QuarantineReason, RepairId};
use crate::lex::known_namespaces::{Family, correct_namespace};
use crate::lex::lexeme::Lexeme;
use crate::lex::names::{blanks, is_blank, name_span, split_name, trailing_blanks};
use crate::lex::namespaces::{Context, OAI};
use crate::lex::search::{memchr2, memmem};
use crate::limits::Limits;
use crate::passes::balanced::end_of_balanced_field;
use crate::passes::end_tag::{
    insert_missing_bracket, is_end_without_slash, note_bare_text, read_end_tag, restore_item_end,
};
use crate::passes::lenient_tag::{LenientTag, read_lenient_tag};
use crate::passes::plain_field::read_plain_field;
use crate::passes::tree::{ContentKind, MarkupItem, Tree, TreeElement, in_key_field};
use crate::text::edits::Edits;
use crate::text::leftovers::leftover_repair;
use crate::validate::schema::{Content, Element, RECORD};
use crate::validate::start_tag::{StartTagCache, declared_prefix};

/// Returns the edits to the markup of one item.
///
/// # Errors
/// Returns the reason for quarantine if the intent is ambiguous.
pub(crate) fn repair_markup(
    item: MarkupItem<'_>,
    tags: &mut StartTagCache,
    limits: &Limits,
) -> Result<Edits, QuarantineReason> {
    let mut tree = Tree::new(item, tags, limits);
    let mut at = enter_payload(&mut tree, item.valid_bytes).unwrap_or(0);
    while at < item.text.len() {
        if let Some(end) = read_plain_field(&mut tree, at) {
            at = end;
            continue;
        }
        let (lexeme, end) = tree.lexeme_at(at);
        if at >= tree.position.kept_until() {
            note_section_start(&mut tree, at);
            read_lexeme(&mut tree, lexeme, at, end)?;
        }
        if tree.edit_count() > limits.repairs_per_record_max {
            return Err(QuarantineReason::TooManyRepairs);
        }
        at = end;
        if tree.open().is_empty() && !matches!(lexeme, Lexeme::Text) {
            break;
        }
    }
    end_item(&mut tree, at)?;
    if tree.is_ambiguous() {
        return Err(QuarantineReason::MismatchedTags);
    }
    Ok(tree.into_edits())
}

/// Opens the elements around the payload of a record whose first `valid` bytes contain a common header.
/// Returns the end of the start tag of `metadata`.
fn enter_payload(tree: &mut Tree<'_>, valid: usize) -> Option<usize> {
    let envelope = tree.text().get(..valid)?;
    let is_record = std::ptr::eq(tree.element(), &raw const RECORD) && envelope.starts_with(b"<record>");
    if !is_record {
        return None;
    }
    let tag = memmem::find(envelope, b"<metadata")?;
    let (header, payload) = envelope.split_at_checked(tag)?;
    // A payload of `about` may contain an element with the name `metadata`.
    if !payload.starts_with(b"<metadata>") || memmem::find(header, b"<about").is_some() {
        return None;
    }
    let names = [(1, b"<record".len()), (tag + 1, tag + b"<metadata".len())];
    let kinds = [ContentKind::Envelope(tree.element()), ContentKind::PayloadParent];
    let context = tree.outer();
    for (name, kind) in names.into_iter().zip(kinds) {
        tree.push(TreeElement { name, context, kind });
    }
    tree.position.set_content_from(tag + b"<metadata>".len());
    Some(tree.position.content_from())
}

fn read_lexeme(tree: &mut Tree<'_>, lexeme: Lexeme, at: usize, end: usize) -> Result<(), QuarantineReason> {
    match lexeme {
        Lexeme::Text if blanks(tree.slice((at, end))) == end - at => {}
        Lexeme::Text | Lexeme::Cdata => {
            tree.forget_closed();
            if lexeme == Lexeme::Text && tree.in_field() {
                insert_missing_bracket(tree, at, end);
            } else {
                note_bare_text(tree, at, end);
            }
        }
        Lexeme::StartTag => read_start_tag(tree, at, end)?,
        Lexeme::EndTag => read_end_tag(tree, at, end),
        // An unterminated `<?` is markup, but `a<b` is text.
        Lexeme::OpenTag if tree.in_field() && tree.text().get(at + 1) != Some(&b'?') => {
            tree.edit(RepairId::BareLessThan, at, end, b"&lt;")
        }
        Lexeme::OpenTag => match end_of_cut_declaration(tree, at) {
            Some(end) => tree.edit(RepairId::InnerDeclaration, at, end, b""),
            None => return Err(QuarantineReason::MalformedTag),
        },
        Lexeme::BareLessThan => tree.edit(RepairId::BareLessThan, at, end, b"&lt;"),
        Lexeme::OpenCdata => tree.edit(RepairId::UnterminatedCdata, at, end, b""),
        Lexeme::OpenComment => tree.edit(RepairId::BrokenComment, at, at + 1, b"&lt;"),
        Lexeme::Comment => read_comment(tree, at, end),
        Lexeme::Declaration => tree.edit(RepairId::BrokenComment, at, end, b""),
        Lexeme::Doctype => tree.edit(RepairId::Doctype, at, end, b""),
        Lexeme::Instruction => read_instruction(tree, at, end),
    }
    Ok(())
}

/// Returns the end of a declaration before a payload that lost its end mark: its `>`, or the next tag.
fn end_of_cut_declaration(tree: &Tree<'_>, at: usize) -> Option<usize> {
    if !matches!(tree.open().last().map(|open| open.kind), Some(ContentKind::PayloadParent)) {
        return None;
    }
    let rest = tree.text().get(at..)?;
    let end = memchr2(b'<', b'>', rest.get(1..)?)? + 1;
    let end = end + usize::from(rest.get(end) == Some(&b'>'));
    let declaration = rest.get(..end)?;
    (leftover_repair(declaration)? == RepairId::InnerDeclaration)
        .then(|| at + end - trailing_blanks(declaration))
}

fn read_comment(tree: &mut Tree<'_>, at: usize, end: usize) {
    if !tree.is_legal_comment(at, end) {
        tree.edit(RepairId::BrokenComment, at, end, b"");
    }
}

fn read_instruction(tree: &mut Tree<'_>, at: usize, end: usize) {
    let inner = tree.slice((at + 2, end - 2));
    let target = inner.get(..name_span(inner)).unwrap_or_default();
    if target.eq_ignore_ascii_case(b"xml") {
        tree.edit(RepairId::InnerDeclaration, at, end, b"");
    } else if target.contains(&b':') || inner.get(target.len()).is_some_and(|&byte| !is_blank(byte)) {
        tree.edit(RepairId::BrokenComment, at, end, b"");
    }
}

fn read_start_tag(tree: &mut Tree<'_>, at: usize, end: usize) -> Result<(), QuarantineReason> {
    let name_end = at + 1 + name_span(tree.slice((at + 1, end)));
    let name = tree.slice((at + 1, name_end));
    if is_end_without_slash(tree, name, end) {
        tree.rename_end(0, at, end);
        tree.pop(end);
        return Ok(());
    }
    tree.reopen_payload(name);
    if !close_before(tree, name, at) {
        // Page numbers in an identifier of the SICI standard look like a tag.
        let is_sici = memmem::find(name, b"::").is_some();
        tree.note_ambiguity(in_key_field(tree) && !is_sici);
        tree.escape(at, end);
        return Ok(());
    }
    tree.note_ambiguity(is_envelope_in_payload(tree, split_name(name).1));
    let (tag, lenient) = match valid_tag(tree, at, name_end, end) {
        Some(tag) => (tag, None),
        None => {
            let lenient = read_lenient_tag(tree.text(), at, end, tree.limits());
            let lenient = lenient.ok_or(QuarantineReason::MalformedTag)?;
            (repair_tag(tree, &lenient), Some(lenient))
        }
    };
    let kind = kind_of(tree, name, tag.context);
    let is_root = matches!(tree.open().last().map(|open| open.kind), Some(ContentKind::PayloadParent));
    if is_root {
        let (prefix, local) = split_name(name);
        let namespace = tree.lookup(tag.context, prefix).unwrap_or_default();
        let family = Family::of_root(local, namespace);
        tree.payload.begin(family, tag.attributes_end);
    }
    if is_root || tree.payload.family().is_container(split_name(name).1) {
        tree.position.take_bare_text();
    }
    if let Some(lenient) = &lenient {
        let mut names = lenient.attributes.iter().map(|attribute| tree.slice(attribute.name));
        let has_status = matches!(kind, ContentKind::Envelope(_))
            && names.any(|name| name.eq_ignore_ascii_case(b"status"));
        tree.payload.note_status(has_status);
        declare_missing(tree, lenient, name, tag.context);
    }
    tree.position.set_content_from(end);
    if !tag.empty {
        if tree.open().len() >= tree.limits().depth_max {
            return Err(QuarantineReason::TooDeep);
        }
        tree.push(TreeElement { name: (at + 1, name_end), context: tag.context, kind });
        if matches!(kind, ContentKind::Field)
            && tree.payload.is_open()
            && let Some(kept_until) = end_of_balanced_field(tree, end)
        {
            tree.position.keep_until(kept_until);
        }
    }
    Ok(())
}

/// A start tag after its repairs.
struct RepairedTag {
    /// The context of its children.
    context: Context,
    /// Position after the last attribute.
    attributes_end: usize,
    empty: bool,
}

/// Returns the start tag `at..end`, whose name ends at `name_end`, if the validator accepts it in this
/// context. It needs no edit. In the envelope, its attributes are only declarations and schema locations.
fn valid_tag(tree: &mut Tree<'_>, at: usize, name_end: usize, end: usize) -> Option<RepairedTag> {
    let (text, context) = (tree.slice((at, end)), tree.context());
    let tag = match tree.cached_tag(text, context) {
        Some(tag) => *tag,
        // The fast path of the validator does not cache the tags of the envelope.
        None if name_end + 1 == end => tree.open_tag(text, context).ok()?,
        None => return None,
    };
    let inside = text.strip_suffix(b">")?;
    let inside = if tag.empty { inside.strip_suffix(b"/")? } else { inside };
    let attributes_end = at + inside.len() - trailing_blanks(inside);
    let parent = tree.open().last().map(|open| open.kind);
    let is_in_payload = matches!(parent, Some(ContentKind::PayloadParent | ContentKind::Mixed));
    let is_known = tag.len as usize == text.len() && (is_in_payload || !tag.attributes);
    is_known.then_some(RepairedTag { context: tag.context, attributes_end, empty: tag.empty })
}

/// Makes the edits of a start tag, and declares its namespaces.
fn repair_tag(tree: &mut Tree<'_>, tag: &LenientTag) -> RepairedTag {
    for edit in tag.edits.iter() {
        tree.push_edit(edit.clone());
    }
    let context = declare(tree, tag);
    RepairedTag { context, attributes_end: tag.attributes_end, empty: tag.empty }
}

/// Returns whether an element of the envelope begins in a payload whose format has no such element.
///
/// In this case two items were merged into one.
fn is_envelope_in_payload(tree: &Tree<'_>, local: &[u8]) -> bool {
    tree.payload.is_open()
        && matches!(tree.payload.family(), Family::DublinCore | Family::Marc)
        && local != tree.element().name
        && tree.element().contains_name(local)
        && !tree.payload.family().is_field(local)
}

/// Closes the elements that cannot contain the element that begins at `at`.
///
/// Returns false if the tag is text of the open field.
pub(crate) fn close_before(tree: &mut Tree<'_>, name: &[u8], at: usize) -> bool {
    let Some(top) = tree.open().last().copied() else { return true };
    let (prefix, local) = split_name(name);
    let oai = tree.lookup(top.context, prefix) == Some(OAI);
    if oai
        && tree.open().len() > 1
        && tree.is_child_of_item(local)
        && !tree.in_wrapped_item()
        && !matches!(top.kind, ContentKind::Envelope(e) if e.name == tree.element().name)
    {
        tree.close_above(1, at);
        return true;
    }
    if matches!(top.kind, ContentKind::Field) {
        if tree.is_markup_in_field(top, name) {
            // As in HTML, a paragraph ends the one before it.
            if matches!(local, b"p" | b"itm") && tree.slice(top.name) == name {
                tree.close_above(tree.open().len() - 1, at);
            }
            return true;
        }
        let envelope_field = oai && tree.parent_has_child(local);
        if !envelope_field && !tree.is_sibling(top, name) {
            return false;
        }
        tree.close_fields(at);
    }
    if let Some(parent) = tree.payload.family().parent(local)
        && tree.payload.is_open()
        && let Some(depth) =
            tree.open().iter().rposition(|open| split_name(tree.slice(open.name)).1 == parent)
    {
        tree.close_above(depth + 1, at);
    }
    true
}

pub(crate) fn kind_of(tree: &Tree<'_>, name: &[u8], context: Context) -> ContentKind {
    let (prefix, local) = split_name(name);
    let oai = tree.lookup(context, prefix) == Some(OAI);
    let element = match tree.open().last().map(|open| open.kind) {
        None => Some(tree.element()).filter(|element| element.name == local),
        Some(ContentKind::Envelope(Element { content: Content::Children(children), .. })) => {
            children.iter().find(|child| child.name == local && oai)
        }
        Some(ContentKind::Mixed) if tree.payload.family().is_field(local) => return ContentKind::Field,
        // Markup of a field: `close_before` has allowed it there.
        Some(ContentKind::Field) if tree.payload.is_open() => return ContentKind::Field,
        _ => None,
    };
    match element {
        Some(element) => match element.content {
            Content::Children(_) => ContentKind::Envelope(element),
            Content::Payload => ContentKind::PayloadParent,
            Content::Text(_) => ContentKind::Field,
        },
        None => ContentKind::Mixed,
    }
}

/// Returns the context inside the tag, after its declarations of the OAI-PMH namespace are corrected.
pub(crate) fn declare(tree: &mut Tree<'_>, tag: &LenientTag) -> Context {
    let mut declared: Vec<(&[u8], Vec<u8>)> = Vec::new();
    for attribute in &tag.attributes {
        let Some(prefix) = declared_prefix(tree.slice(attribute.name)) else { continue };
        let mut uri = attribute.value.clone();
        if let Some((meant, misspelling)) = correct_namespace(&uri) {
            uri = meant.to_vec();
            attribute.set(misspelling.repair(), meant, tree.edits_mut());
        }
        declared.push((prefix, uri));
    }
    if declared.is_empty() {
        return tree.context();
    }
    let declared: Vec<(&[u8], &[u8])> =
        declared.iter().map(|(prefix, uri)| (*prefix, uri.as_slice())).collect();
    tree.declare(&declared)
}

/// Declares well-known prefixes that the tag uses but no element declares.
fn declare_missing<'t>(tree: &mut Tree<'t>, tag: &LenientTag, name: &'t [u8], context: Context) {
    let names = tag.attributes.iter().map(|attribute| tree.slice(attribute.name));
    let prefixes: Vec<&[u8]> = std::iter::once(name)
        .chain(names.filter(|name| declared_prefix(name).is_none()))
        .map(|name| split_name(name).0)
        .filter(|prefix| !prefix.is_empty())
        .collect();
    let mut added_here: Vec<&[u8]> = Vec::new();
    for prefix in prefixes {
        if tree.lookup(context, prefix).is_some() {
            continue;
        }
        let Some(uri) = tree.payload.namespace_of(prefix, tree.text()) else { continue };
        let place = match tree.payload.root_mut() {
            Some(root) if root.added.iter().any(|added| added == prefix) => continue,
            Some(root) => {
                root.added.push(prefix.to_vec());
                root.place
            }
            None if added_here.contains(&prefix) => continue,
            None => {
                added_here.push(prefix);
                tag.attributes_end
            }
        };
        let declaration = [b" xmlns:", prefix, b"=\"", uri, b"\""].concat();
        tree.edit(RepairId::UndeclaredPrefix, place, place, &declaration);
    }
}

/// Notes the depth of a section with item boundaries that begins at `at`.
pub(crate) fn note_section_start(tree: &mut Tree<'_>, at: usize) {
    if tree.sections().binary_search_by_key(&at, |section| section.0).is_ok() {
        tree.note_section();
    }
}

/// Finishes the item at its end tag, which ends at `at`, or at the end of its bytes.
fn end_item(tree: &mut Tree<'_>, at: usize) -> Result<(), QuarantineReason> {
    if !tree.open().is_empty() {
        if is_truncated(tree) {
            return Err(QuarantineReason::Truncated);
        }
        restore_item_end(tree);
        tree.close_above(0, tree.text().len());
        return Ok(());
    }
    let after = tree.slice((at, tree.text().len()));
    let junk = after.len() - trailing_blanks(after);
    if junk > blanks(after) {
        if contains_content(after, tree.element()) {
            return Err(QuarantineReason::MismatchedTags);
        }
        tree.edit(RepairId::UnexpectedContent, at + blanks(after), at + junk, b"");
    }
    Ok(())
}

/// Returns whether an unclosed item is only the first part of an item.
///
/// Its text ends in a field, the record has neither payload nor status, or the text contains a fatal error
/// message of a script.
pub(crate) fn is_truncated(tree: &Tree<'_>) -> bool {
    let text = tree.slice((tree.position.content_from(), tree.text().len()));
    let in_text = tree.in_field() || tree.open().len() > 1 && blanks(text) < text.len();
    let is_half = tree.element().name == b"record" && !tree.payload.has_begun() && !tree.payload.is_deleted();
    in_text || is_half || is_fatal_message(tree.text())
}
