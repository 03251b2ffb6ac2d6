//! What the proxy says of itself in items: our own URL in Identify, and where records come from.
//!
//! Made of an item that is in order, when it is about to leave; no repair.

use super::edits::Edits;
use super::engine::{Engine, List};
use super::mend::Mended;
use super::provenance::{Record, Told};
use super::schema::Verb;

impl Engine {
    /// What is rewritten in the item.
    pub(super) fn rewritten(&mut self, list: &List, item: &Mended) -> Edits {
        match list.verb {
            Verb::Identify => self.own_base_url(&item.bytes),
            Verb::ListRecords | Verb::GetRecord => self.own_provenance(list, item),
            _ => Edits::default(),
        }
    }

    /// Whether that may be anything in a record that is in order as it came.
    #[inline]
    pub(super) fn may_rewrite_clean(&self) -> bool {
        let told = self.config.provenance.as_ref().map(|origin| origin.told);
        told.is_some_and(|told| told == Told::All || !self.respelt.is_empty())
    }

    /// What a record is told to come from.
    fn own_provenance(&mut self, list: &List, item: &Mended) -> Edits {
        let Some(origin) = &self.config.provenance else { return Edits::default() };
        let Mended { bytes, edits, facts, .. } = item;
        let (outer, respelt) = (list.written_context, self.respelt.as_slice());
        let record = Record { item: bytes, edits, facts: *facts, outer, respelt };
        record.told(origin, &mut self.tags, &self.config.limits)
    }
}
