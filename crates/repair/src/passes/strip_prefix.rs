//! Removal of prefixes: the conventional envelope has unprefixed elements in the default namespace.
//!
//! [`repair_item`](crate::repair_item::repair_item) runs this pass on valid items.
//!
//! XML readers that know namespaces ignore the prefix, but many harvesters search for `<record>`. The
//! meaning of each name stays the same. If a payload depends on the outer default namespace, its own start
//! tag gets that declaration.

use crate::catalog::RepairId;
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::name_span;
use crate::lex::namespaces::{Context, OAI};
use crate::lex::outline::{Child, outline};
use crate::limits::Limits;
use crate::passes::lenient_tag::read_lenient_tag;
use crate::text::edits::Edits;
use crate::validate::schema::{Content, Element};
use crate::validate::start_tag::StartTagCache;

/// Returns the edits that remove the prefixes from the envelope of a valid item.
pub(crate) fn strip_item_prefixes(
    item: &[u8],
    element: &'static Element,
    outer: Context,
    tags: &mut StartTagCache,
    limits: &Limits,
) -> Edits {
    let mut pass = StripPrefixPass { item, tags, limits, edits: Edits::default() };
    if let Some(tree) = outline(item, 0, item.len())
        && let Some(child) = tree.children.first()
    {
        pass.strip_element(*child, element, outer);
    }
    pass.edits.sort();
    pass.edits
}

struct StripPrefixPass<'p> {
    item: &'p [u8],
    tags: &'p mut StartTagCache,
    limits: &'p Limits,
    edits: Edits,
}

impl StripPrefixPass<'_> {
    fn strip_element(&mut self, child: Child<'_>, element: &'static Element, outer: Context) -> Option<()> {
        let tag = self.tags.open(self.item.get(child.start..)?, outer, self.limits).ok()?;
        if !tag.oai {
            return None;
        }
        let prefix = tag.prefix_len as usize;
        if prefix > 0 {
            self.remove_prefix(child.start + 1, prefix);
            if child.end > child.content.1 {
                self.remove_prefix(child.content.1 + 2, prefix);
            }
            remove_default_namespace(self.item, child.start, child.content.0, self.limits, &mut self.edits);
        }
        let inner = outline(self.item, child.content.0, child.content.1)?;
        match &element.content {
            Content::Children(definitions) => {
                for child in inner.children {
                    if let Some(element) = definitions.iter().find(|element| element.name == child.local) {
                        self.strip_element(child, element, tag.context);
                    }
                }
            }
            Content::Payload => {
                for payload in inner.children {
                    self.declare_default_namespace(payload, tag.context);
                }
            }
            Content::Text(_) => {}
        }
        Some(())
    }

    fn remove_prefix(&mut self, at: usize, len: usize) {
        self.edits.push_unordered(RepairId::EnvelopePrefix, at, at + len, Vec::new());
    }

    /// Declares the default namespace on a payload whose unprefixed names are not in the OAI-PMH namespace.
    fn declare_default_namespace(&mut self, payload: Child<'_>, outer: Context) -> Option<()> {
        let default = self.tags.contexts.lookup(outer, b"").unwrap_or_default().to_vec();
        let tag = read_lenient_tag(self.item, payload.start, payload.content.0, self.limits)?;
        let declares = tag
            .attributes
            .iter()
            .any(|attribute| self.item.get(attribute.name.0..attribute.name.1) == Some(b"xmlns".as_slice()));
        if default == OAI || declares || !has_plain_names(self.item.get(payload.start..payload.end)?) {
            return None;
        }
        let declaration = [b" xmlns=\"", default.as_slice(), b"\""].concat();
        self.edits.push_unordered(RepairId::EnvelopePrefix, tag.name_end, tag.name_end, declaration);
        Some(())
    }
}

/// Returns whether an element in `text` has no prefix.
fn has_plain_names(text: &[u8]) -> bool {
    let mut at = 0;
    let mut lexemes = Lexemes::new_well_formed(text);
    while at < text.len() {
        let (lexeme, end) = lexemes.at(at);
        let name = text.get(at + 1..end).unwrap_or_default();
        let name = name.get(..name_span(name)).unwrap_or_default();
        if lexeme == Lexeme::StartTag && !name.contains(&b':') {
            return true;
        }
        at = end;
    }
    false
}

/// Removes the declaration of another default namespace from an element that loses its prefix.
pub(crate) fn remove_default_namespace(
    text: &[u8],
    at: usize,
    end: usize,
    limits: &Limits,
    edits: &mut Edits,
) {
    let Some(tag) = read_lenient_tag(text, at, end, limits) else { return };
    for attribute in &tag.attributes {
        if text.get(attribute.name.0..attribute.name.1) == Some(b"xmlns".as_slice()) && attribute.value != OAI
        {
            attribute.remove(RepairId::EnvelopePrefix, edits);
        }
    }
}
