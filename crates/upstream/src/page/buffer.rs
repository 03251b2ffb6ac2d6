//! The output of the engine for one attempt at a page, with the place of each item in it.

use crate::page::item::{FieldPlaces, PageItem};
use crate::xml::envelope_tags::EnvelopeTags;
use crate::xml::set_specs::escaped_sets;
use crate::xml::text::unescape_text;
use memchr::memmem;
use oaimend_oai::ErrorCode;
use oaimend_repair::{
    EnvelopeFacts, IdentifyFacts, QuarantineReason, Quarantined, RecordFacts, Repair, RepairId, Sink,
    SwallowedItems, TokenFacts, UnresolvedField,
};
use oaimend_repository::lists::ItemHash;
use oaimend_repository::{ByteRope, IdentifyFields, RepairMade, Secrets};
use oaimend_store::{Excerpt, QuarantinedRecord, SetUsage};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The output of the engine since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct PageBuffer {
    /// Makes the keys of the items.
    pub(crate) hash: ItemHash,
    /// The secrets of the mapping, which the source may echo.
    secrets: Secrets,
    pub(crate) output: ByteRope,
    /// The place of `output` in the whole output, in bytes.
    pub(crate) base: u64,
    pub(crate) items: Vec<PageItem>,
    /// Quarantined items from before the first good one, and the length of their raw bytes.
    early: Vec<(u64, QuarantinedRecord)>,
    early_bytes: usize,
    /// Whether the page has a good item.
    has_good_items: bool,
    /// Repairs since the last item.
    pub(crate) repairs: Vec<(RepairId, Option<RepairMade>)>,
    /// The length of the output minus the length of the text so far.
    pub(super) drift: i64,
    /// Changes that may be in the next item: the place, and the growth in bytes.
    recent: Vec<(u64, i64)>,
    /// `responseDate` of the response.
    pub(crate) response_date: String,
    /// The tags around the items, once the list has begun.
    pub(crate) envelope: Option<EnvelopeTags>,
    /// The place of the list's start tag in the whole output, in bytes.
    pub(crate) list_tag_at: usize,
    /// The first error, if the response is an error.
    pub(crate) error: Option<ErrorCode>,
    /// Whether the source wrote `badArgument`, and the engine another code: a bad token is the only argument that a
    /// request to continue a list can have.
    is_bad_argument: bool,
    /// The fields of an Identify response.
    pub(crate) identify: Option<IdentifyFields>,
    /// The resumptionToken of the list, as written in the XML.
    pub(crate) token: Option<Vec<u8>>,
    /// The place of its element in the whole output, in bytes.
    token_at: u64,
    /// The hashes of the identifiers of all items of the page, in order.
    pub(crate) names: Vec<u64>,
    /// `expirationDate` of the token, as written in the XML.
    pub(crate) token_expires: Option<String>,
    /// The datestamp of the last item, as written in the XML.
    pub(crate) last_datestamp: Vec<u8>,
    /// The `cursor` and `completeListSize` of the token.
    pub(crate) progress: (Option<u64>, Option<u64>),
    /// The `totalElements` of the token.
    pub(crate) total_elements: Option<u64>,
    /// setSpecs that look escaped, since they were last taken.
    pub(crate) sets: BTreeMap<String, SetUsage>,
    /// The oldest datestamp of an item, without lower bounds.
    pub(crate) oldest: Vec<u8>,
    /// The highest datestamp of an item, as written in the XML.
    pub(crate) latest: Vec<u8>,
    /// Replacements in items since the last one that may contain a setSpec.
    written: Vec<Vec<u8>>,
    /// The defects of the page: names of repairs, and reasons of quarantine.
    pub(crate) needed: BTreeSet<&'static str>,
    /// Elements of Identify that stay wrong or missing.
    pub(crate) unresolved: Vec<&'static str>,
    /// Whether an item is quarantined because it has no readable datestamp and no lower bound for one is known.
    pub(crate) lacks_datestamp: bool,
    /// Whether a section of the next item contains items.
    swallows: bool,
    /// The items with such sections, since they were last taken: their indexes in `items`, and their
    /// offsets.
    pub(crate) swallowing: Vec<(usize, u64)>,
    /// The length of `output` and of `items` when the body ended.
    before_end: (usize, usize),
}

/// The number of items of most pages: room for them is reserved at once.
const ITEMS_OF_A_PAGE: usize = 100;
/// Records that wait for the head of their page, and their total size: they can be refetched only beside a
/// good item.
const EARLY_ITEMS_MAX: usize = 20;
const EARLY_BYTES_MAX: usize = 8 << 20;

impl PageBuffer {
    /// An empty buffer; `hash` makes the keys of the items. No repair that it notes shows one of the secrets.
    pub(crate) fn new(hash: ItemHash, secrets: Secrets) -> Self {
        Self { hash, secrets, ..Self::default() }
    }

    /// Whether there are items since it was last taken.
    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty() || !self.early.is_empty()
    }

    /// The first error, as the source meant it if it takes more arguments than the specification allows.
    pub(crate) fn refusal(&self) -> Option<ErrorCode> {
        if self.is_bad_argument { Some(ErrorCode::BadArgument) } else { self.error }
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
        if self.output.len() > length {
            self.output.edit(|bytes| bytes.truncate(length));
        }
    }

    /// Replaces the output and the items that were taken, which had `taken` bytes.
    pub(crate) fn replace(&mut self, taken: usize, bytes: Vec<u8>, items: Vec<PageItem>) {
        self.drift += bytes.len() as i64 - taken as i64;
        (self.output, self.items) = (bytes.into(), items);
    }

    /// Empties the resumptionToken, and notes that as a repair. Returns false if its element is not in the output as a
    /// whole, and then changes nothing.
    pub(crate) fn empty_token(&mut self) -> bool {
        let bytes = self.output.bytes();
        let start = self.token_at.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        let Some((start, value)) = start.and_then(|at| Some((at, token_value(bytes.get(at..)?)?))) else {
            return false;
        };
        let element = start..start + value.end + 1;
        let original = bytes.get(element.clone()).unwrap_or_default().to_vec();
        let value = start + value.start..start + value.end;
        let emptied = [bytes.get(element.start..value.start), bytes.get(value.end..element.end)];
        let made = RepairMade {
            name: RepairId::MissingLastToken.name(),
            offset: self.base + start as u64,
            record: None,
            original: Excerpt::new(&original),
            replacement: Excerpt::new(&emptied.map(Option::unwrap_or_default).concat()),
        };
        self.output.edit(|bytes| bytes.drain(value).for_each(drop));
        self.repairs.push((RepairId::MissingLastToken, Some(made)));
        (self.token, self.token_expires) = (None, None);
        true
    }

    /// The quarantined items for which no good item came.
    pub(crate) fn take_early(&mut self) -> Vec<QuarantinedRecord> {
        self.early_bytes = 0;
        self.early.drain(..).map(|(_, record)| record).collect()
    }

    /// Notes what an item teaches about its repository.
    fn learn(&mut self, facts: &RecordFacts<'_>, item: &[u8], repairs: &[(RepairId, Option<RepairMade>)]) {
        if facts.datestamp > self.latest.as_slice() {
            self.latest.clear();
            self.latest.extend_from_slice(facts.datestamp);
        }
        let is_older = self.oldest.is_empty() || facts.datestamp < self.oldest.as_slice();
        if is_older && !facts.datestamp.is_empty() {
            let is_bound = repairs.iter().any(|(id, _)| *id == RepairId::DatestampLowerBound);
            if !is_bound {
                self.oldest = facts.datestamp.to_vec();
            }
        }
        let written = std::mem::take(&mut self.written);
        if facts.tilde_in_set {
            for (name, seen) in escaped_sets(item, facts.spans.set_specs, &written) {
                let entry = self.sets.entry(name).or_default();
                *entry = entry.and(seen);
            }
        }
    }

    fn place(&mut self, offset: u64) -> usize {
        // An insertion at the start of an item belongs to the text before it.
        for (_, delta) in self.recent.extract_if(.., |(at, _)| *at < offset) {
            self.drift += delta;
        }
        let start = i128::from(offset) + i128::from(self.drift) - i128::from(self.base);
        usize::try_from(start).unwrap_or(0)
    }
}

impl Sink for PageBuffer {
    fn write(&mut self, bytes: &[u8]) {
        self.output.write(bytes);
    }

    fn envelope(&mut self, envelope: &EnvelopeFacts<'_>) {
        self.response_date = unescape_text(envelope.response_date);
        if let Some(list) = &envelope.list {
            self.envelope = Some(EnvelopeTags::new(envelope.root_tag, list));
            self.list_tag_at = list.verb_tag_at;
        }
    }

    fn error(&mut self, code: ErrorCode) {
        self.error.get_or_insert(code);
    }

    fn identified(&mut self, identify: &IdentifyFacts<'_>) {
        self.identify = Some(IdentifyFields {
            earliest_datestamp: unescape_text(identify.earliest_datestamp),
            deleted_record: unescape_text(identify.deleted_record),
            granularity: unescape_text(identify.granularity),
        });
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        let delta = repair.replacement.len() as i64 - repair.original.len() as i64;
        // An insertion belongs to the text before it, also at the start of an item.
        let at = if repair.original.is_empty() { repair.offset.saturating_sub(1) } else { repair.offset };
        self.recent.push((at, delta));
        if repair.record.is_some() && memmem::find(repair.replacement, b"~x").is_some() {
            self.written.push(repair.replacement.to_vec());
        }
        self.is_bad_argument |= repair.id == RepairId::ErrorCode
            && repair.original.eq_ignore_ascii_case(ErrorCode::BadArgument.name().as_bytes());
        if !repair.id.is_rewrite() {
            self.needed.insert(repair.id.name());
        }
        self.repairs.push((repair.id, RepairMade::from_repair(repair, &self.secrets)));
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        let start = self.place(facts.offset);
        let hash = self.hash.key(facts.identifier, facts.datestamp);
        let name = self.hash.key(facts.identifier, b"");
        self.names.push(name);
        self.last_datestamp.clear();
        self.last_datestamp.extend_from_slice(facts.datestamp);
        let repairs = std::mem::take(&mut self.repairs);
        self.learn(facts, bytes, &repairs);
        self.has_good_items = true;
        if !self.early.is_empty() {
            self.early_bytes = 0;
            let early = self.early.drain(..);
            self.items.extend(early.map(|(hash, record)| PageItem::Quarantined {
                hash,
                record,
                at: Some(start),
            }));
        }
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
        self.needed.insert(quarantined.why.name());
        self.lacks_datestamp |= matches!(
            quarantined.why,
            QuarantineReason::MissingDatestamp | QuarantineReason::IllegalDatestamp
        );
        let hash = self.hash.key(quarantined.raw, b"");
        let record = to_quarantined_record(quarantined);
        let place = self.place(quarantined.offset);
        self.recent.push((quarantined.offset, -(quarantined.raw.len() as i64)));
        let is_early = self.base == 0 && self.output.is_empty() && !self.has_good_items;
        let early_bytes = self.early_bytes + record.raw.len();
        if is_early && self.early.len() < EARLY_ITEMS_MAX && early_bytes <= EARLY_BYTES_MAX {
            self.early_bytes = early_bytes;
            self.early.push((hash, record));
            return;
        }
        let at = (!is_early && self.token.is_none()).then_some(place);
        self.items.push(PageItem::Quarantined { hash, record, at });
    }

    fn unresolved(&mut self, field: &UnresolvedField) {
        self.needed.insert("incomplete-identify");
        self.unresolved.push(field.element);
    }

    fn resumption_token(&mut self, token: &TokenFacts<'_>) {
        self.token = Some(token.token.to_vec());
        self.token_at = self.base + self.output.len() as u64;
        self.progress = (token.cursor, token.complete_list_size);
        self.total_elements = token.total_elements;
        let expires = String::from_utf8_lossy(token.expiration_date).into_owned();
        self.token_expires = Some(expires).filter(|expires| !expires.is_empty());
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
            let mut buffer = PageBuffer { base: 10, token_at: 14, ..PageBuffer::default() };
            buffer.write(format!("text{xml}</ListRecords>").as_bytes());
            assert_eq!(buffer.empty_token(), value.is_some(), "{xml}");
            let value = value.unwrap_or_default();
            let text = String::from_utf8(buffer.output.to_vec()).expect("text");
            let expected = xml.replacen(&format!(">{value}<"), "><", usize::from(!value.is_empty()));
            assert_eq!(text, format!("text{expected}</ListRecords>"));
            assert_eq!(buffer.repairs.len(), usize::from(!value.is_empty()));
        }
        let mut sent = PageBuffer { base: 10, token_at: 4, ..PageBuffer::default() };
        sent.write(b"<resumptionToken>t</resumptionToken>");
        assert!(!sent.empty_token(), "it was sent before");
    }
}
