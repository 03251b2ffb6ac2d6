//! The entities that references in one text may use, and the limit of their text.
//!
//! A declaration before the root holds for the whole response, one in an item for this item. The text of all
//! entities in an item is limited, so that short references cannot make a long item.

use crate::lex::doctype::{DeclaredEntities, Entities, entity_text};
use crate::text::escape::write_escaped;

/// The entities of one pass over a text.
#[derive(Debug)]
pub(crate) struct EntityScope<'t> {
    response: &'t Entities,
    declared: DeclaredEntities,
    /// Maximum text that the declarations may define, in bytes.
    declared_bytes_max: usize,
    /// Maximum text that may still be inserted, in bytes.
    inserted_bytes_left: usize,
}

impl<'t> EntityScope<'t> {
    /// The entities of the response alone. Without a limit none is used.
    pub(crate) fn new(response: &'t Entities) -> Self {
        Self {
            response,
            declared: DeclaredEntities::default(),
            declared_bytes_max: 0,
            inserted_bytes_left: 0,
        }
    }

    /// Sets the limit, see [`Limits::entity_bytes_max`](crate::Limits::entity_bytes_max).
    pub(crate) fn set_limit(&mut self, bytes_max: usize) {
        self.declared_bytes_max = bytes_max;
        self.inserted_bytes_left = bytes_max;
    }

    /// Reads a document type declaration in the text.
    pub(crate) fn declare(&mut self, doctype: &[u8]) {
        self.declared.read(doctype, self.declared_bytes_max);
    }

    /// The text of an entity, if it may be inserted.
    pub(crate) fn text_of(&self, name: &[u8]) -> Option<Vec<u8>> {
        let declared = entity_text(self.declared.entities(), name);
        let text = declared.or_else(|| entity_text(self.response, name))?;
        (text.len() <= self.inserted_bytes_left).then(|| text.to_vec())
    }

    /// Counts the text of an entity that is inserted. Returns it as it is written: with the text around it,
    /// it must not end a value or form `]]>`.
    pub(crate) fn insert(&mut self, text: &[u8], in_attribute: bool) -> Vec<u8> {
        self.inserted_bytes_left = self.inserted_bytes_left.saturating_sub(text.len());
        let reference = |byte: u8| -> Option<&'static [u8]> {
            match (byte, in_attribute) {
                (b'>', _) => Some(b"&gt;"),
                (b']', false) => Some(b"&#93;"),
                (b'"', true) => Some(b"&quot;"),
                (b'\'', true) => Some(b"&apos;"),
                _ => None,
            }
        };
        let mut written = Vec::with_capacity(text.len());
        write_escaped(text, reference, &mut written);
        written
    }
}
