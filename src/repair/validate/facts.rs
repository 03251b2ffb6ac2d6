//! What the strict reader learns of an item on its way, as ranges of the item.

use crate::repair::lex::namespaces::Context;

/// What is told of an item when it leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) identifier: (u32, u32),
    pub(crate) datestamp: (u32, u32),
    pub(crate) deleted: bool,
    /// Whether a setSpec holds a `~`.
    pub(crate) tilde_in_set: bool,
    /// Whether a section of it contains borders of items and its own opening mark.
    pub(crate) swallows: bool,
}

impl Facts {
    /// The range's bytes in the item.
    pub(crate) fn slice(item: &[u8], (start, end): (u32, u32)) -> &[u8] {
        item.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// What an item of OAI-PMH 1.x has at other places than one of 2.0.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Whether it is the record that says it is deleted.
    pub(crate) status_on_record: bool,
    /// Whether its header says so.
    pub(crate) status_on_header: bool,
    pub(crate) header: u32,
    pub(crate) payloads: Vec<Payload>,
}

/// A payload, from its start tag up to the end tag of the element around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// What is declared around it.
    pub(crate) outer: Context,
}

impl Places {
    /// Forgets one item before the next.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.status_on_record = false;
        self.status_on_header = false;
        self.header = 0;
        self.payloads.clear();
    }
}
