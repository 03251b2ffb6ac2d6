//! What the engine makes of one attempt at a page, with the place of each item in it.

use crate::repair::{
    Quarantined, RecordFacts, Repair, RepairId, Sink, SwallowedItems, TokenFacts, UnresolvedField,
};
use crate::store::{QuarantinedRecord, SetUsage, TokenKey};
use crate::upstream::account::RepairMade;
use crate::upstream::byte_rope::ByteRope;
use crate::upstream::xml::set_specs::sets_of;
use memchr::memmem;
use siphasher::sip::SipHasher13;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;

/// What the engine has made since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct PageBuffer {
    /// What its items are known by.
    pub(crate) hash: ItemHash,
    pub(crate) output: ByteRope,
    /// Where `made` begins, in bytes of the whole output.
    pub(crate) base: u64,
    pub(crate) items: Vec<PageItem>,
    /// Items that were put aside before there was anything to stand beside.
    early: Vec<(u64, QuarantinedRecord)>,
    /// Repairs since the last item.
    pub(crate) repairs: Vec<(RepairId, Option<RepairMade>)>,
    /// By how much the output is longer than the text so far.
    pub(super) drift: i64,
    /// Changes that may lie in the next item: where, and by how much it gets longer.
    recent: Vec<(u64, i64)>,
    /// The list's resumptionToken as it stands in the XML.
    pub(crate) token: Option<Vec<u8>>,
    /// The datestamp of the last item, as it stands in the XML.
    pub(crate) last_datestamp: Vec<u8>,
    /// What the token says of the list: its `cursor` and `completeListSize`.
    pub(crate) progress: (Option<u64>, Option<u64>),
    /// setSpecs that look escaped, since they were last taken.
    pub(crate) sets: BTreeMap<String, SetUsage>,
    /// The oldest datestamp of an item that is no bound.
    pub(crate) oldest: Vec<u8>,
    /// What was written into items since the last one, where a setSpec may be among it.
    written: Vec<Vec<u8>>,
    /// What the page needed: names of repairs, and why items were put aside.
    pub(crate) needed: BTreeSet<&'static str>,
    /// Elements of Identify that are wrong or missing, and that nobody knows.
    pub(crate) unresolved: Vec<&'static str>,
    /// Whether a section of the next item contains items.
    swallows: bool,
    /// The items with such sections, since they were last taken: which of `found`, and their offsets.
    pub(crate) swallowing: Vec<(usize, u64)>,
    /// How much was made, in bytes and items, when the body ended.
    before_end: (usize, usize),
}

/// An item, in the order of the page.
#[derive(Debug)]
pub(crate) enum PageItem {
    /// One that leaves: its place in what was made.
    Item { start: usize, len: usize, hash: u64, repairs: Vec<(RepairId, Option<RepairMade>)> },
    /// One that is put aside: where in what was made another one could stand in its place.
    Quarantined { hash: u64, record: QuarantinedRecord, at: Option<usize> },
}

/// As many items as most pages have: room for them is made at once.
const ITEMS_OF_A_PAGE: usize = 100;
/// Records that wait for the head of their page, and what their bytes may be together:
/// only beside a good one can they be had by themselves.
const EARLY_ITEMS_MAX: usize = 20;
const EARLY_BYTES_MAX: usize = 8 << 20;

impl PageBuffer {
    /// Nothing yet; items are known by `hash`.
    pub(crate) fn new(hash: ItemHash) -> Self {
        Self { hash, ..Self::default() }
    }

    /// Whether items were found since it was last taken.
    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty() || !self.early.is_empty()
    }

    /// What was written before the first item.
    pub(crate) fn before_items(&self) -> Cow<'_, [u8]> {
        let first = self.items.iter().find_map(PageItem::start);
        self.output.slice(0..first.unwrap_or(usize::MAX))
    }

    /// The body has ended: what comes now is what the engine makes of its end.
    pub(crate) fn body_ends(&mut self) {
        self.before_end = (self.output.len(), self.items.len());
    }

    /// Takes back what the engine has made of the end.
    pub(crate) fn forget_the_end(&mut self) {
        let (length, items) = self.before_end;
        self.items.truncate(items);
        if self.output.len() > length {
            self.output.edit(|bytes| bytes.truncate(length));
        }
    }

    /// Takes other bytes and items for those that were taken, `taken` bytes of them.
    pub(crate) fn replace(&mut self, taken: usize, bytes: Vec<u8>, items: Vec<PageItem>) {
        self.drift += bytes.len() as i64 - taken as i64;
        (self.output, self.items) = (bytes.into(), items);
    }

    /// The items that never came to stand beside a good one.
    pub(crate) fn take_early(&mut self) -> Vec<QuarantinedRecord> {
        self.early.drain(..).map(|(_, record)| record).collect()
    }

    /// Notes what an item says of its repository.
    fn learn(&mut self, facts: &RecordFacts<'_>, item: &[u8], repairs: &[(RepairId, Option<RepairMade>)]) {
        let is_older = self.oldest.is_empty() || facts.datestamp < self.oldest.as_slice();
        if is_older && !facts.datestamp.is_empty() {
            let is_bound = repairs.iter().any(|(id, _)| *id == RepairId::DatestampLowerBound);
            if !is_bound {
                self.oldest = facts.datestamp.to_vec();
            }
        }
        let written = std::mem::take(&mut self.written);
        if facts.tilde_in_set {
            for (name, seen) in sets_of(item, &written) {
                let entry = self.sets.entry(name).or_default();
                *entry = entry.and(seen);
            }
        }
    }

    fn place(&mut self, offset: u64) -> usize {
        // What was added where an item begins closes what stands before it.
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

    fn repaired(&mut self, repair: &Repair<'_>) {
        let delta = repair.replacement.len() as i64 - repair.original.len() as i64;
        // An insertion belongs to what stands before it, also where an item begins.
        let at = if repair.original.is_empty() { repair.offset.saturating_sub(1) } else { repair.offset };
        self.recent.push((at, delta));
        if repair.record.is_some() && memmem::find(repair.replacement, b"~x").is_some() {
            self.written.push(repair.replacement.to_vec());
        }
        if !repair.id.is_rewrite() {
            self.needed.insert(repair.id.name());
        }
        self.repairs.push((repair.id, RepairMade::of(repair)));
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        let start = self.place(facts.offset);
        let hash = self.hash.of(facts.identifier, facts.datestamp);
        self.last_datestamp.clear();
        self.last_datestamp.extend_from_slice(facts.datestamp);
        let repairs = std::mem::take(&mut self.repairs);
        self.learn(facts, bytes, &repairs);
        if !self.early.is_empty() {
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
        self.items.push(PageItem::Item { start, len: bytes.len(), hash, repairs });
    }

    fn items_swallowed(&mut self, _swallowed: &SwallowedItems<'_>) {
        self.swallows = true;
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.swallows = false;
        self.needed.insert(quarantined.why.name());
        let hash = self.hash.of(quarantined.raw, b"");
        let record = to_quarantined_record(quarantined);
        let place = self.place(quarantined.offset);
        self.recent.push((quarantined.offset, -(quarantined.raw.len() as i64)));
        let early_bytes: usize = self.early.iter().map(|(_, record)| record.raw.len()).sum();
        let is_early = self.base == 0
            && self.output.is_empty()
            && self.items.iter().all(|found| found.start().is_none());
        if is_early && self.early.len() < EARLY_ITEMS_MAX && early_bytes + record.raw.len() <= EARLY_BYTES_MAX
        {
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
        self.progress = (token.cursor, token.complete_list_size);
    }
}

impl PageItem {
    pub(crate) fn start(&self) -> Option<usize> {
        match self {
            Self::Item { start, .. } => Some(*start),
            Self::Quarantined { .. } => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Item { len, .. } => *len,
            Self::Quarantined { .. } => 0,
        }
    }

    /// The same item at another place, and made longer or shorter.
    pub(crate) fn moved(self, start: usize, len: usize) -> Self {
        match self {
            Self::Item { hash, repairs, .. } => Self::Item { start, len, hash, repairs },
            quarantined @ Self::Quarantined { .. } => quarantined,
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        match self {
            Self::Item { hash, .. } | Self::Quarantined { hash, .. } => *hash,
        }
    }
}

/// What is kept of an item that was put aside.
pub(crate) fn to_quarantined_record(quarantined: &Quarantined<'_>) -> QuarantinedRecord {
    QuarantinedRecord {
        identifier: quarantined.identifier.map(|name| String::from_utf8_lossy(name).into_owned()),
        why: quarantined.why.name(),
        offset: quarantined.offset,
        raw: quarantined.raw.to_vec(),
    }
}

/// What an item is known by within a list. Whoever does not know the key cannot make an item that is
/// taken for another one, which would be left out of the rest of a page as delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ItemHash(SipHasher13);

/// Longest identifier and datestamp that most items have, with the length of the one, in bytes.
const USUAL_NAME_BYTES: usize = 128;

impl ItemHash {
    /// With the key of a data folder: what is in its ledger is known by it.
    pub(crate) fn with(key: &TokenKey) -> Self {
        Self(SipHasher13::new_with_key(&key.items))
    }

    pub(crate) fn of(&self, identifier: &[u8], datestamp: &[u8]) -> u64 {
        let length = (identifier.len() as u64).to_le_bytes();
        let (mut together, mut hash) = ([0; USUAL_NAME_BYTES], self.0);
        let end = length.len() + identifier.len();
        // One write of all costs half as much as three.
        if let Some(all) = together.get_mut(..end + datestamp.len()) {
            let (before, behind) = all.split_at_mut(end);
            let (counted, named) = before.split_at_mut(length.len());
            counted.copy_from_slice(&length);
            named.copy_from_slice(identifier);
            behind.copy_from_slice(datestamp);
            hash.write(all);
        } else {
            for part in [&length[..], identifier, datestamp] {
                hash.write(part);
            }
        }
        hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_known_by_all_of_its_identifier_and_datestamp_and_the_key() {
        let (one, other) = (TokenKey::new([1; 32]), TokenKey::new([2; 32]));
        let hash = ItemHash::with(&one).of(b"oai:a", b"2020");
        assert_eq!(hash, ItemHash::with(&one).of(b"oai:a", b"2020"));
        for unlike in [
            ItemHash::with(&one).of(b"oai:a", b"2021"),
            ItemHash::with(&one).of(b"oai:a2", b"020"),
            ItemHash::with(&one).of(b"oai:b", b"2020"),
            ItemHash::with(&other).of(b"oai:a", b"2020"),
        ] {
            assert_ne!(hash, unlike);
        }
        for length in [0, 1, 60, 115, 116, 117, 500] {
            let (identifier, mut parts) = (vec![b'i'; length], SipHasher13::new_with_key(&one.items));
            parts.write(&(length as u64).to_le_bytes());
            parts.write(&identifier);
            parts.write(b"2020");
            assert_eq!(ItemHash::with(&one).of(&identifier, b"2020"), parts.finish(), "{length}");
        }
        // Hashes are kept on the disk: this one may never be another.
        assert_eq!(hash, 0xe618_7481_bc6b_70a2);
    }
}
