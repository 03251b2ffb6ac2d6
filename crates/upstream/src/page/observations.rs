//! What the items of a page show: their datestamps and sets, the defects of the page, and the items that may wait for
//! its head.

use crate::xml::set_specs::escaped_sets;
use memchr::memmem;
use oaimend_repair::{QuarantineReason, RecordFacts, Repair, RepairId, UnresolvedField};
use oaimend_store::{QuarantinedRecord, SetUsage};
use std::collections::{BTreeMap, BTreeSet};

/// What the items of a page teach about their repository and their list.
#[derive(Debug, Default)]
pub(crate) struct ItemObservations {
    /// The hashes of the identifiers of all items, in order.
    names: Vec<u64>,
    /// The datestamp of the last item, as written in the XML.
    last_datestamp: Vec<u8>,
    /// The highest datestamp of an item.
    latest: Vec<u8>,
    /// The oldest datestamp of an item, without lower bounds.
    oldest: Vec<u8>,
    /// setSpecs that look escaped, since they were last taken.
    sets: BTreeMap<String, SetUsage>,
    /// Replacements in items since the last one that may contain a setSpec.
    written: Vec<Vec<u8>>,
}

/// The defects of a page.
#[derive(Debug, Default)]
pub(crate) struct PageDefects {
    /// Names of repairs, and reasons of quarantine.
    names: BTreeSet<&'static str>,
    /// Elements of Identify that stay wrong or missing.
    unresolved: Vec<&'static str>,
    lacks_datestamp: bool,
}

/// Quarantined items from before the first good one, with their keys: they can be refetched only beside that.
#[derive(Debug, Default)]
pub(super) struct EarlyItems {
    items: Vec<(u64, QuarantinedRecord)>,
    /// The length of their raw bytes.
    bytes: usize,
}

/// Records that wait for the head of their page, and their total size.
const EARLY_ITEMS_MAX: usize = 20;
const EARLY_BYTES_MAX: usize = 8 << 20;

impl ItemObservations {
    /// Notes a replacement in the next item.
    pub(super) fn note_repair(&mut self, repair: &Repair<'_>) {
        if repair.record.is_some() && memmem::find(repair.replacement, b"~x").is_some() {
            self.written.push(repair.replacement.to_vec());
        }
    }

    /// Notes an item. `has_bound`: its datestamp is a lower bound.
    pub(super) fn note_item(&mut self, facts: &RecordFacts<'_>, item: &[u8], has_bound: bool) {
        self.last_datestamp.clear();
        self.last_datestamp.extend_from_slice(facts.datestamp);
        if facts.datestamp > self.latest.as_slice() {
            self.latest.clear();
            self.latest.extend_from_slice(facts.datestamp);
        }
        let is_older = self.oldest.is_empty() || facts.datestamp < self.oldest.as_slice();
        if is_older && !facts.datestamp.is_empty() && !has_bound {
            self.oldest = facts.datestamp.to_vec();
        }
        let written = std::mem::take(&mut self.written);
        if facts.tilde_in_set {
            self.add_sets(escaped_sets(item, facts.spans.set_specs, &written));
        }
    }

    /// Adds what the items show that an item was split into. `is_last`: no item follows them.
    pub(super) fn add(&mut self, split: Self, is_last: bool) {
        if is_last {
            self.last_datestamp = split.last_datestamp;
        }
        if !split.oldest.is_empty() && (self.oldest.is_empty() || split.oldest < self.oldest) {
            self.oldest = split.oldest;
        }
        self.add_sets(split.sets);
    }

    fn add_sets(&mut self, sets: BTreeMap<String, SetUsage>) {
        for (name, seen) in sets {
            let entry = self.sets.entry(name).or_default();
            *entry = entry.and(seen);
        }
    }

    /// Notes the hash of the identifier of an item.
    pub(super) fn add_name(&mut self, name: u64) {
        self.names.push(name);
    }

    /// The hashes of the identifiers of all items, in order.
    pub(crate) fn names(&self) -> &[u64] {
        &self.names
    }

    /// Takes the hashes of the identifiers of all items.
    pub(crate) fn take_names(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.names)
    }

    /// The datestamp of the last item, as written in the XML.
    pub(crate) fn last_datestamp(&self) -> Option<&str> {
        std::str::from_utf8(&self.last_datestamp).ok().filter(|datestamp| !datestamp.is_empty())
    }

    /// The highest datestamp of an item, as written in the XML.
    pub(crate) fn latest_datestamp(&self) -> Option<&str> {
        std::str::from_utf8(&self.latest).ok().filter(|datestamp| !datestamp.is_empty())
    }

    /// Takes the oldest datestamp of an item, without lower bounds.
    pub(crate) fn take_oldest(&mut self) -> Option<String> {
        String::from_utf8(std::mem::take(&mut self.oldest)).ok().filter(|oldest| !oldest.is_empty())
    }

    /// Takes the setSpecs that look escaped.
    pub(crate) fn take_sets(&mut self) -> BTreeMap<String, SetUsage> {
        std::mem::take(&mut self.sets)
    }
}

impl PageDefects {
    pub(super) fn note_repair(&mut self, id: RepairId) {
        if !id.is_rewrite() {
            self.names.insert(id.name());
        }
    }

    pub(super) fn note_quarantine(&mut self, why: QuarantineReason) {
        self.names.insert(why.name());
        self.lacks_datestamp |=
            matches!(why, QuarantineReason::MissingDatestamp | QuarantineReason::IllegalDatestamp);
    }

    pub(super) fn note_unresolved(&mut self, field: &UnresolvedField) {
        self.names.insert("incomplete-identify");
        self.unresolved.push(field.element);
    }

    /// The names of repairs, and the reasons of quarantine.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().copied()
    }

    /// Whether the page needed a repair.
    pub(crate) fn has_repair(&self, id: RepairId) -> bool {
        self.names.contains(id.name())
    }

    /// Elements of Identify that stay wrong or missing.
    pub(crate) fn unresolved(&self) -> &[&'static str] {
        &self.unresolved
    }

    /// Whether an item is quarantined because it has no readable datestamp and no lower bound for one is known.
    pub(crate) fn lacks_datestamp(&self) -> bool {
        self.lacks_datestamp
    }
}

impl EarlyItems {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether there is room for a further record.
    pub(super) fn has_room(&self, record: &QuarantinedRecord) -> bool {
        self.items.len() < EARLY_ITEMS_MAX && self.bytes + record.raw.len() <= EARLY_BYTES_MAX
    }

    pub(super) fn push(&mut self, hash: u64, record: QuarantinedRecord) {
        self.bytes += record.raw.len();
        self.items.push((hash, record));
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, QuarantinedRecord)> {
        self.bytes = 0;
        self.items.drain(..)
    }
}
