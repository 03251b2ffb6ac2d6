//! What the proxy says of itself in items: our own URL in Identify, and where records come from.
//!
//! Made of an item that is in order, when it is about to leave; no repair.

use super::catalogue::RepairId;
use super::edits::Edits;
use super::engine::{Engine, List};
use super::mend::Mended;
use super::name::name_span;
use super::outline::{Child, outline};
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

    /// Our own URL in place of the source's, however the tags of baseURL are written.
    fn own_base_url(&self, identify: &[u8]) -> Edits {
        let mut edits = Edits::default();
        let Some(request) = self.config.request.as_ref().filter(|_| !self.is_off(RepairId::RewriteBaseUrl))
        else {
            return edits;
        };
        let own = escape(request.base_url.as_bytes());
        let root = outline(identify, 0, identify.len()).and_then(|root| root.children.first().copied());
        let inner = root.and_then(|root| outline(identify, root.content.0, root.content.1));
        let fields = inner.map(|inner| inner.children).unwrap_or_default();
        for Child { start, content, end, .. } in fields.into_iter().filter(|child| child.local == b"baseURL")
        {
            let tag = identify.get(start..content.0).unwrap_or_default();
            if content.0 == end && tag.ends_with(b"/>") {
                let name = tag.get(1..1 + name_span(tag.get(1..).unwrap_or_default())).unwrap_or_default();
                let element = [b">", own.as_slice(), b"</", name, b">"].concat();
                edits.push(RepairId::RewriteBaseUrl, end - 2, end, &element);
            } else if identify.get(content.0..content.1) != Some(own.as_slice()) {
                edits.push(RepairId::RewriteBaseUrl, content.0, content.1, &own);
            }
        }
        edits
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
