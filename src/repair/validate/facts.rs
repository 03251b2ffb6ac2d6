//! Facts about an item, which the validator collects as ranges of the item.
//!
//! The stages report them with the emitted item. `v1/` uses the positions.

use crate::repair::lex::namespaces::Context;

/// The facts about one item.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ItemFacts {
    pub(crate) identifier: (u32, u32),
    pub(crate) datestamp: (u32, u32),
    pub(crate) deleted: bool,
    /// Whether a setSpec contains a `~`.
    pub(crate) tilde_in_set: bool,
    /// Whether a section of the item contains a boundary and its own opening mark.
    pub(crate) swallows_items: bool,
}

impl ItemFacts {
    /// The bytes of the range in the item.
    pub(crate) fn slice(item: &[u8], (start, end): (u32, u32)) -> &[u8] {
        item.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// The positions in an item of OAI-PMH 1.x that differ in 2.0.
#[derive(Debug, Default)]
pub(crate) struct V1Positions {
    /// Whether the record itself has the status "deleted".
    pub(crate) status_on_record: bool,
    /// Whether the header has the status "deleted".
    pub(crate) status_on_header: bool,
    pub(crate) header: u32,
    pub(crate) payloads: Vec<Payload>,
}

/// A payload, from its start tag to the end tag of the element that contains it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The declarations around the payload.
    pub(crate) outer: Context,
}

impl V1Positions {
    /// Resets the positions for the next item.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.status_on_record = false;
        self.status_on_header = false;
        self.header = 0;
        self.payloads.clear();
    }
}
