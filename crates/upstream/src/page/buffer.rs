//! The output of the engine for one attempt at a page, with the place of each item in it.

use crate::page::head::{PageHead, PageToken};
use crate::page::item::{FieldPlaces, PageItem};
use crate::page::observations::{EarlyItems, ItemObservations, PageDefects};
use crate::page::output::PageOutput;
use oaimend_oai::ErrorCode;
use oaimend_repair::{
    EnvelopeFacts, IdentifyFacts, Quarantined, RecordFacts, Repair, RepairId, Sink, SwallowedItems,
    TokenFacts, UnresolvedField,
};
use oaimend_repository::lists::ItemHash;
use oaimend_repository::{ByteRope, RepairMade, Secrets};
use oaimend_store::{Excerpt, QuarantinedRecord};
use std::borrow::Cow;
use std::ops::Range;

/// The output of the engine since it was last taken, and what the page said so far.
#[derive(Debug, Default)]
pub(crate) struct PageBuffer {
    /// Makes the keys of the items.
    hash: ItemHash,
    /// The secrets of the mapping, which the source may echo.
    secrets: Secrets,
    pub(crate) output: PageOutput,
    pub(super) items: Vec<PageItem>,
    /// Repairs since the last item.
    repairs: Vec<(RepairId, Option<RepairMade>)>,
    /// Quarantined items from before the first good one.
    early: EarlyItems,
    /// Whether the page has a good item.
    has_good_items: bool,
    pub(crate) head: PageHead,
    pub(crate) token: PageToken,
    /// The place of the element of the token in the whole output, in bytes.
    token_at: u64,
    pub(crate) observed: ItemObservations,
    pub(crate) defects: PageDefects,
    /// Whether a section of the next item contains items.
    swallows: bool,
    /// The items with such sections, since they were last taken: their indexes in `items`, and their
    /// offsets.
    swallowing: Vec<(usize, u64)>,
    /// The length of `output` and of `items` when the body ended.
    before_end: (usize, usize),
}

/// The output that was taken from a buffer, with its items and repairs.
pub(crate) struct TakenOutput {
    pub(crate) bytes: ByteRope,
    pub(crate) items: Vec<PageItem>,
    /// Repairs after the last item.
    pub(crate) repairs: Vec<(RepairId, Option<RepairMade>)>,
}

/// The number of items of most pages: room for them is reserved at once.
const ITEMS_OF_A_PAGE: usize = 100;

impl PageBuffer {
    /// An empty buffer; `hash` makes the keys of the items. No repair that it notes shows one of the secrets.
    pub(crate) fn new(hash: ItemHash, secrets: Secrets) -> Self {
        Self { hash, secrets, ..Self::default() }
    }

    /// The key of an item by these texts.
    pub(crate) fn key(&self, identifier: &[u8], datestamp: &[u8]) -> u64 {
        self.hash.key(identifier, datestamp)
    }

    /// The key of the item at an index.
    pub(crate) fn hash_at(&self, index: usize) -> Option<u64> {
        self.items.get(index).map(PageItem::hash)
    }

    /// Whether there are items since it was last taken.
    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty() || !self.early.is_empty()
    }

    /// Takes the output with its items and repairs.
    pub(crate) fn take(&mut self) -> TakenOutput {
        TakenOutput {
            bytes: self.output.take(),
            items: std::mem::take(&mut self.items),
            repairs: std::mem::take(&mut self.repairs),
        }
    }

    /// Takes the output and its items for an edit, which ends with [`replace`](Self::replace).
    pub(crate) fn take_for_edit(&mut self) -> (Vec<u8>, Vec<PageItem>) {
        (self.output.take_for_edit(), std::mem::take(&mut self.items))
    }

    /// Replaces the output and the items that were taken for an edit, which had `taken` bytes.
    pub(crate) fn replace(&mut self, taken: usize, bytes: Vec<u8>, items: Vec<PageItem>) {
        self.output.replace(taken, bytes);
        self.items = items;
    }

    /// Takes the items with sections that contain items: their indexes, and their offsets in the text.
    pub(crate) fn take_swallowing(&mut self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.swallowing)
    }

    /// The output before the first item.
    pub(crate) fn before_items(&self) -> Cow<'_, [u8]> {
        let first = self.items.iter().find_map(PageItem::start);
        self.output.slice(0..first.unwrap_or(usize::MAX))
    }

    /// The identifiers of the good items in the output, as written in the XML. Items that are too long to be held have
    /// none.
    pub(crate) fn identifiers(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        self.items.iter().filter_map(|item| {
            let (start, fields) = (item.start()?, item.fields()?);
            let place = start + fields.identifier.start as usize..start + fields.identifier.end as usize;
            (item.len() > 0 && !place.is_empty()).then(|| self.output.slice(place))
        })
    }

    /// Notes the end of the body: later output is what the engine makes of the end.
    pub(crate) fn note_body_end(&mut self) {
        self.before_end = (self.output.len(), self.items.len());
    }

    /// Drops the output that the engine made of the end.
    pub(crate) fn drop_end(&mut self) {
        let (length, items) = self.before_end;
        self.items.truncate(items);
        self.output.truncate(length);
    }

    /// Empties the resumptionToken, and notes that as a repair. Returns false if its element is not in the output as a
    /// whole, and then changes nothing.
    pub(crate) fn empty_token(&mut self) -> bool {
        let Some((start, element)) = self.output.after(self.token_at) else { return false };
        let Some(value) = token_value(&element) else { return false };
        let end = value.end + 1;
        let original = element.get(..end).unwrap_or_default();
        let emptied = [element.get(..value.start), element.get(value.end..end)];
        let made = RepairMade {
            name: RepairId::MissingLastToken.name(),
            offset: self.token_at,
            record: None,
            original: Excerpt::new(original),
            replacement: Excerpt::new(&emptied.map(Option::unwrap_or_default).concat()),
        };
        self.output.splice(start + value.start..start + value.end, b"");
        self.repairs.push((RepairId::MissingLastToken, Some(made)));
        self.token.clear();
        true
    }

    /// The quarantined items for which no good item came.
    pub(crate) fn take_early(&mut self) -> Vec<QuarantinedRecord> {
        self.early.drain().map(|(_, record)| record).collect()
    }
}

impl Sink for PageBuffer {
    fn write(&mut self, bytes: &[u8]) {
        self.output.write(bytes);
    }

    fn envelope(&mut self, envelope: &EnvelopeFacts<'_>) {
        self.head.note_envelope(envelope);
    }

    fn error(&mut self, code: ErrorCode) {
        self.head.note_error(code);
    }

    fn identified(&mut self, identify: &IdentifyFacts<'_>) {
        self.head.note_identify(identify);
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        let growth = repair.replacement.len() as i64 - repair.original.len() as i64;
        // An insertion belongs to the text before it, also at the start of an item.
        let at = if repair.original.is_empty() { repair.offset.saturating_sub(1) } else { repair.offset };
        self.output.note_change(at, growth);
        self.observed.note_repair(repair);
        self.head.note_repair(repair);
        self.defects.note_repair(repair.id);
        self.repairs.push((repair.id, RepairMade::from_repair(repair, &self.secrets)));
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        let start = self.output.place(facts.offset);
        let hash = self.hash.key(facts.identifier, facts.datestamp);
        let name = self.hash.key(facts.identifier, b"");
        let repairs = std::mem::take(&mut self.repairs);
        let has_bound = repairs.iter().any(|(id, _)| *id == RepairId::DatestampLowerBound);
        self.observed.add_name(name);
        self.observed.note_item(facts, bytes, has_bound);
        self.has_good_items = true;
        let early = self.early.drain();
        self.items.extend(early.map(|(hash, record)| PageItem::Quarantined {
            hash,
            record,
            at: Some(start),
        }));
        if self.items.is_empty() {
            self.items.reserve(ITEMS_OF_A_PAGE);
        }
        if std::mem::take(&mut self.swallows) {
            self.swallowing.push((self.items.len(), facts.offset));
        }
        let fields = FieldPlaces::new(&facts.spans);
        let (len, deleted) = (bytes.len(), facts.deleted);
        self.items.push(PageItem::Item { start, len, hash, name, deleted, fields, repairs });
    }

    fn items_swallowed(&mut self, _swallowed: &SwallowedItems<'_>) {
        self.swallows = true;
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.swallows = false;
        self.defects.note_quarantine(quarantined.why);
        let hash = self.hash.key(quarantined.raw, b"");
        let record = to_quarantined_record(quarantined);
        let place = self.output.place(quarantined.offset);
        self.output.note_change(quarantined.offset, -(quarantined.raw.len() as i64));
        let is_early = self.output.is_at_start() && !self.has_good_items;
        if is_early && self.early.has_room(&record) {
            self.early.push(hash, record);
            return;
        }
        let at = (!is_early && self.token.as_written().is_none()).then_some(place);
        self.items.push(PageItem::Quarantined { hash, record, at });
    }

    fn unresolved(&mut self, field: &UnresolvedField) {
        self.defects.note_unresolved(field);
    }

    fn resumption_token(&mut self, token: &TokenFacts<'_>) {
        self.token.note(token);
        self.token_at = self.output.whole_len();
    }
}

/// The place of the text in the element at the start of `xml`, up to the `<` of its end tag. `None` if it contains
/// anything else.
fn token_value(xml: &[u8]) -> Option<Range<usize>> {
    let mut quote = None;
    let tag_end = xml.iter().position(|&byte| match (quote, byte) {
        (None, b'"' | b'\'') => {
            quote = Some(byte);
            false
        }
        (Some(open), _) if open == byte => {
            quote = None;
            false
        }
        (None, b'>') => true,
        _ => false,
    })?;
    let name_end = xml.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'>')?;
    let name = xml.get(1..name_end).filter(|name| name.ends_with(b"resumptionToken"))?;
    let end = tag_end + 1 + memchr::memchr(b'<', xml.get(tag_end + 1..)?)?;
    let is_closed = xml.get(end..)?.strip_prefix(b"</").is_some_and(|rest| rest.starts_with(name));
    is_closed.then_some(tag_end + 1..end)
}

/// The record of a quarantined item.
pub(crate) fn to_quarantined_record(quarantined: &Quarantined<'_>) -> QuarantinedRecord {
    QuarantinedRecord {
        identifier: quarantined.identifier.map(|name| String::from_utf8_lossy(name).into_owned()),
        why: quarantined.why.name(),
        offset: quarantined.offset,
        raw: quarantined.raw.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer of which ten bytes were taken.
    fn buffer_after_ten_bytes(token_at: u64) -> PageBuffer {
        let mut buffer = PageBuffer { token_at, ..PageBuffer::default() };
        buffer.write(&[b' '; 10]);
        buffer.output.take();
        buffer
    }

    #[test]
    fn only_a_token_element_of_text_is_emptied() {
        for (xml, value) in [
            (
                r#"<resumptionToken completeListSize="4" cursor='2'>t&amp;2</resumptionToken>"#,
                Some("t&amp;2"),
            ),
            (r#"<o:resumptionToken cursor="a>b">t</o:resumptionToken>"#, Some("t")),
            ("<resumptionToken>t<!-- 2 --></resumptionToken>", None),
            ("<resumptionToken>t", None),
            ("<resumptionToken", None),
            ("text", None),
            ("<other>t</other>", None),
        ] {
            let mut buffer = buffer_after_ten_bytes(14);
            buffer.write(format!("text{xml}</ListRecords>").as_bytes());
            assert_eq!(buffer.empty_token(), value.is_some(), "{xml}");
            let value = value.unwrap_or_default();
            let text = String::from_utf8(buffer.output.take().into_vec()).expect("text");
            let expected = xml.replacen(&format!(">{value}<"), "><", usize::from(!value.is_empty()));
            assert_eq!(text, format!("text{expected}</ListRecords>"));
            assert_eq!(buffer.repairs.len(), usize::from(!value.is_empty()));
        }
        let mut sent = buffer_after_ten_bytes(4);
        sent.write(b"<resumptionToken>t</resumptionToken>");
        assert!(!sent.empty_token(), "it was sent before");
    }
}
