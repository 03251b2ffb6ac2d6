//! The names of envelope elements inside an item that are written in another case.
//!
//! [`repair_item`](crate::repair_item::repair_item) runs this pass on well-formed text, before it
//! reads the fields of the envelope. `dateStamp` is a name of ISO 19115, and some software writes all names
//! in one case.

use crate::catalog::RepairId;
use crate::lex::outline::{Child, item_prefix, outline};
use crate::text::edits::Edits;
use crate::validate::schema::{Content, Element};

/// Returns the edits that give the envelope elements inside one item the names of the schema.
///
/// An element that may occur once keeps its name if another one has the right name: it is then an unknown
/// element. So does an element with another prefix than the item.
pub(crate) fn repair_name_case(item: &[u8], element: &'static Element) -> Edits {
    let mut edits = Edits::default();
    if let Some(tree) = outline(item, 0, item.len())
        && let Some(child) = tree.children.first()
    {
        rename_children(item, element, *child, item_prefix(item), &mut edits);
        edits.sort();
    }
    edits
}

fn rename_children(
    item: &[u8],
    element: &'static Element,
    parent: Child<'_>,
    prefix: &[u8],
    edits: &mut Edits,
) {
    let Content::Children(definitions) = &element.content else { return };
    let Some(inner) = outline(item, parent.content.0, parent.content.1) else { return };
    let is_named = |definition: &Element| inner.children.iter().any(|child| child.local == definition.name);
    let mut named: Vec<bool> = definitions.iter().map(is_named).collect();
    for child in &inner.children {
        let same_letters = |definition: &Element| definition.name.eq_ignore_ascii_case(child.local);
        let Some(rank) = definitions.iter().position(same_letters) else { continue };
        let (Some(definition), Some(is_named)) = (definitions.get(rank), named.get_mut(rank)) else {
            continue;
        };
        if definition.name != child.local {
            if *is_named && !definition.occurs.may_repeat()
                || !rename(item, *child, prefix, definition.name, edits)
            {
                continue;
            }
            *is_named = true;
        }
        rename_children(item, definition, *child, prefix, edits);
    }
}

/// Renames one element in its tags. Returns false if it has another prefix.
fn rename(item: &[u8], child: Child<'_>, prefix: &[u8], name: &[u8], edits: &mut Edits) -> bool {
    let mut rename_tag = |open: &[u8], at: usize| {
        let tag = item.get(at..).and_then(|tag| tag.strip_prefix(open)?.strip_prefix(prefix));
        let is_named = tag.is_some_and(|tag| tag.starts_with(child.local));
        if is_named {
            let at = at + open.len() + prefix.len();
            edits.push_unordered(RepairId::ElementCase, at, at + name.len(), name.to_vec());
        }
        is_named
    };
    rename_tag(b"<", child.start) && (child.content.1 == child.end || rename_tag(b"</", child.content.1))
}
