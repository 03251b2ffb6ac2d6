//! What the proxy says of itself in items: our own URL in Identify, and where records come from.
//!
//! Made of an item that is in order, when it is about to leave; no repair.

use memchr::memmem;

use super::catalogue::RepairId;
use super::edits::Edits;
use super::engine::{Engine, List};
use super::mend::Mended;
use super::provenance::{Record, Told};
use super::schema::Verb;
use super::text::escape;

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

    /// Our own URL in place of the source's.
    fn own_base_url(&self, identify: &[u8]) -> Edits {
        let mut edits = Edits::default();
        let Some(request) = &self.config.request else { return edits };
        let open = [b"<", self.written_prefix(), b"baseURL>"].concat();
        let close = [b"</", self.written_prefix(), b"baseURL"].concat();
        if let Some(start) = memmem::find(identify, &open).map(|at| at + open.len())
            && let Some(len) = memmem::find(identify.get(start..).unwrap_or_default(), &close)
        {
            let own = escape(request.base_url.as_bytes());
            if identify.get(start..start + len) != Some(own.as_slice()) {
                edits.push(RepairId::OwnBaseUrl, start, start + len, &own);
            }
        }
        edits
    }
}
