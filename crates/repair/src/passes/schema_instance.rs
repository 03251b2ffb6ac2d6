//! The prefix of the XML Schema instance namespace on the payload itself.
//!
//! [`rewrite_item`](crate::stages::list::rewrite::rewrite_item) adds it to valid items if
//! `payload-xsi` is enabled. OAI-PMH 2.0 requires the declaration on the root of the metadata part (section
//! 2.5), because harvesters take this part out of the response. A declaration around it is legal XML.

use crate::catalog::RepairId;
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::split_name;
use crate::lex::namespaces::{Context, XSI};
use crate::lex::outline::{Child, outline};
use crate::lex::search::memmem;
use crate::limits::Limits;
use crate::passes::lenient_tag::{LenientTag, read_lenient_tag};
use crate::text::edits::Edits;
use crate::validate::schema::{Content, Element};
use crate::validate::start_tag::{StartTagCache, declared_prefix};

/// Returns the edits that declare the prefix on each payload of a valid item that uses the declaration of
/// an element around it.
pub(crate) fn declare_schema_instance(
    item: &[u8],
    element: &'static Element,
    outer: Context,
    tags: &mut StartTagCache,
    limits: &Limits,
) -> Edits {
    let mut pass = SchemaInstancePass { item, tags, limits, edits: Edits::default(), grown: 0 };
    if let Some(tree) = outline(item, 0, item.len())
        && let Some(child) = tree.children.first()
    {
        pass.read_element(*child, element, outer);
    }
    pass.edits
}

struct SchemaInstancePass<'p> {
    item: &'p [u8],
    tags: &'p mut StartTagCache,
    limits: &'p Limits,
    edits: Edits,
    /// The bytes that the declarations add.
    grown: usize,
}

impl SchemaInstancePass<'_> {
    fn read_element(&mut self, child: Child<'_>, element: &'static Element, outer: Context) -> Option<()> {
        let context = self.tags.open(self.item.get(child.start..)?, outer, self.limits).ok()?.context;
        let inner = || outline(self.item, child.content.0, child.content.1);
        match &element.content {
            Content::Text(_) => {}
            Content::Payload => {
                if let Some(root) = inner()?.children.first() {
                    self.declare_on(*root, context);
                }
            }
            Content::Children(definitions) => {
                for child in inner()?.children {
                    if let Some(definition) = definitions.iter().find(|inner| inner.name == child.local) {
                        self.read_element(child, definition, context);
                    }
                }
            }
        }
        Some(())
    }

    /// Declares the prefixes that the payload takes from `context`, in one edit. A limit of the engine that
    /// the longer item would exceed leaves it as it is.
    fn declare_on(&mut self, root: Child<'_>, context: Context) -> Option<()> {
        let payload = self.item.get(root.start..root.end)?;
        let tag = read_lenient_tag(self.item, root.start, root.content.0, self.limits)?;
        let (mut declarations, mut attributes) = (Vec::new(), tag.attributes.len());
        for (prefix, uri) in self.tags.contexts.in_scope(context) {
            if uri == XSI && uses_outer_prefix(payload, prefix, self.limits) {
                declarations.extend_from_slice(&[b" xmlns:", prefix, b"=\"", XSI, b"\""].concat());
                attributes += 1;
            }
        }
        self.grown += declarations.len();
        let is_within_limits = attributes <= self.limits.attributes_per_tag_max
            && tag.end - root.start + declarations.len() <= self.limits.tag_bytes_max
            && self.item.len() + self.grown <= self.limits.record_bytes_max;
        if !declarations.is_empty() && is_within_limits {
            self.edits.push(RepairId::PayloadXsi, tag.attributes_end, tag.attributes_end, &declarations);
        }
        Some(())
    }
}

/// Returns whether a payload uses `prefix` where no element of the payload declares it.
fn uses_outer_prefix(payload: &[u8], prefix: &[u8], limits: &Limits) -> bool {
    if prefix.is_empty() || memmem::find(payload, &[prefix, b":"].concat()).is_none() {
        return false;
    }
    let mut lexemes = Lexemes::new_well_formed(payload);
    let (mut at, mut depth) = (0, 0_usize);
    // The depth of an open element that declares the prefix.
    let mut declared_at: Option<usize> = None;
    while at < payload.len() {
        let (lexeme, end) = lexemes.at(at);
        match lexeme {
            Lexeme::StartTag => {
                let Some(tag) = read_lenient_tag(payload, at, end, limits) else { return false };
                if declared_at.is_none() {
                    if declares(payload, &tag, prefix) {
                        declared_at = if tag.empty { None } else { Some(depth) };
                    } else if uses(payload, at, &tag, prefix) {
                        return true;
                    }
                }
                depth += usize::from(!tag.empty);
            }
            Lexeme::EndTag => {
                depth = depth.saturating_sub(1);
                declared_at = declared_at.filter(|&declared| declared < depth);
            }
            _ => {}
        }
        at = end;
    }
    false
}

fn declares(text: &[u8], tag: &LenientTag, prefix: &[u8]) -> bool {
    tag.attributes.iter().any(|attribute| {
        text.get(attribute.name.0..attribute.name.1).and_then(declared_prefix) == Some(prefix)
    })
}

fn uses(text: &[u8], at: usize, tag: &LenientTag, prefix: &[u8]) -> bool {
    let attributes = tag.attributes.iter().map(|attribute| attribute.name);
    std::iter::once((at + 1, tag.name_end))
        .chain(attributes)
        .any(|(start, end)| text.get(start..end).is_some_and(|name| split_name(name).0 == prefix))
}
