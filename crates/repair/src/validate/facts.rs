//! Facts about an item, which the validator collects as ranges of the item.
//!
//! The stages report them with the emitted item. `v1/` uses the positions.

use crate::lex::namespaces::Context;
use crate::span::Span;

/// The facts about one item. The ranges are ranges of the item.
#[derive(Clone, Debug, Default)]
pub(crate) struct ItemFacts {
    /// `header` with its tags.
    pub(crate) header: Span,
    pub(crate) identifier: Span,
    pub(crate) datestamp: Span,
    /// The text of each `setSpec`.
    pub(crate) set_specs: Vec<Span>,
    pub(crate) deleted: bool,
    /// Whether a setSpec contains a `~`.
    pub(crate) tilde_in_set: bool,
    /// Whether a section of the item contains a boundary and its own opening mark.
    pub(crate) swallows_items: bool,
}

impl ItemFacts {
    /// Resets the facts for the next item. The memory for setSpecs is kept.
    #[inline]
    pub(crate) fn clear(&mut self) {
        let mut set_specs = std::mem::take(&mut self.set_specs);
        set_specs.clear();
        *self = Self { set_specs, ..Self::default() };
    }

    /// The same facts with each range mapped.
    pub(crate) fn map_spans(mut self, map: impl Fn(Span) -> Span) -> Self {
        for span in [&mut self.header, &mut self.identifier, &mut self.datestamp] {
            *span = map(*span);
        }
        for span in &mut self.set_specs {
            *span = map(*span);
        }
        self
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
