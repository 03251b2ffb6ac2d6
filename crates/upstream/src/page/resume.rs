//! Joins the attempts at one page to one response: delivered items are dropped, the rest follows.
//!
//! [`PageBuffer`] takes the output of the engine for one attempt; [`Resumer`] passes on what the harvester
//! does not have yet. Pure, like the engine.
//!
//! Invariants: the bytes of all attempts, one after the other, are one well-formed response; no item is in
//! it twice that was in the page once; nothing of a further attempt is sent before it is proven to be the
//! same page.

use crate::page::buffer::{PageBuffer, TakenOutput};
use crate::page::item::PageItem;
use crate::xml::envelope_tags::EnvelopeTags;
use oaimend_repair::RepairId;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::{ByteRope, DeliveredRecord, RepairMade, ResponseSummary};
use oaimend_store::QuarantinedRecord;
use std::borrow::Cow;
use std::collections::HashMap;

/// The items of a list that a harvester has, in the order of delivery.
///
/// An item is the hash of its identifier and datestamp, a quarantined one the hash of its raw bytes: it
/// counts as delivered, since it is on disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivered {
    hashes: Vec<u64>,
    /// The hashes of the identifiers of the items that were not quarantined.
    names: Vec<u64>,
    overflowed: bool,
}

/// Maximum number of items of one page that are remembered, at 16 bytes each; a page with more cannot be resumed.
const DELIVERED_ITEMS_MAX: usize = 1 << 20;
/// The number of items in the same order that prove that a page is the same.
const PROOF_ITEMS: usize = 10;
/// Bytes that are held until a page is proven to be the same.
const HELD_BYTES_MAX: usize = 32 << 20;
/// Longest head that is kept for comparison, in bytes.
const HEAD_BYTES_KEPT: usize = 64 << 10;

impl Delivered {
    /// From stored hashes.
    pub(crate) fn from_hashes(hashes: &[u64], names: &[u64]) -> Self {
        let mut delivered = Self::default();
        delivered.extend(hashes, names);
        delivered
    }

    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    pub(crate) fn names(&self) -> &[u64] {
        &self.names
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whether all items are remembered.
    pub(crate) fn is_complete(&self) -> bool {
        !self.overflowed
    }

    /// Notes a completed item, whether it was sent or not.
    pub(crate) fn note(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.extend(&[hash], &[]);
        }
    }

    fn extend(&mut self, hashes: &[u64], names: &[u64]) {
        let room = DELIVERED_ITEMS_MAX - self.hashes.len();
        self.hashes.extend(hashes.iter().take(room));
        self.names.extend(names.iter().take(DELIVERED_ITEMS_MAX.saturating_sub(self.names.len())));
        self.overflowed |= hashes.len() > room;
    }
}

/// The items of a list, and how often each was delivered.
pub(crate) type KnownItems = HashMap<u64, u32>;

/// The output that may be sent, with its items.
#[derive(Debug, Default)]
pub(crate) struct Emitted {
    pub(crate) output: ByteRope,
    /// The items in the output.
    pub(crate) items: u64,
    /// The repaired ones of them.
    pub(crate) repaired: u64,
    /// These have to be on disk before the output is sent.
    pub(crate) quarantined: Vec<QuarantinedRecord>,
    pub(crate) repairs: Vec<(RepairId, Option<RepairMade>)>,
    /// The keys of the items, quarantined or not.
    pub(crate) hashes: Vec<u64>,
    /// The hashes of the identifiers of the items in the output.
    pub(crate) names: Vec<u64>,
    /// The records in the output, if they are reported.
    pub(crate) records: Vec<DeliveredRecord>,
    /// Items in the output that are too long to be reported.
    pub(crate) oversized: u64,
}

/// Why an attempt cannot be resumed after the delivered items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// The envelope is another one.
    Head,
    /// The delivered items are not in the page.
    Items,
    /// More would have to be held than is allowed.
    Held,
    /// The known facts of the repository have changed, and the page is too long to be read again from memory.
    Facts,
}

/// One attempt at a page.
#[derive(Debug)]
pub(crate) struct Resumer {
    /// Everything before the first item, as far as it is kept.
    head: Vec<u8>,
    in_head: bool,
    /// The tags around the items, once there was one.
    tags: Option<EnvelopeTags>,
    /// Whether the records in the output are reported.
    reports_records: bool,
    /// How delivered items are dropped; `None` for a first attempt.
    replay: Option<Replay>,
}

#[derive(Debug)]
struct Replay {
    /// The tags that the response began with; `None`: it has not begun.
    begun: Option<EnvelopeTags>,
    /// The delivered items that were not met yet.
    missing: KnownItems,
    missing_count: usize,
    /// The last delivered items, and how many of them were met in their order.
    last: Vec<u64>,
    met: usize,
    /// Whether the attempt had new items.
    has_given: bool,
    /// The bytes after the last item.
    gap: Vec<u8>,
    held: Emitted,
}

impl Resumer {
    /// An attempt at a page of which `delivered` was delivered, in a list of which `known` was delivered on
    /// other pages. `begun` are the tags that the response began with, if it has begun.
    pub(crate) fn new(known: &KnownItems, delivered: &Delivered, begun: Option<EnvelopeTags>) -> Self {
        if known.is_empty() && delivered.is_empty() {
            return Self {
                head: Vec::new(),
                in_head: true,
                tags: None,
                reports_records: false,
                replay: None,
            };
        }
        let hashes = delivered.hashes();
        let mut missing = known.clone();
        for hash in hashes {
            *missing.entry(*hash).or_insert(0) += 1;
        }
        let replay = Replay {
            begun,
            missing,
            missing_count: hashes.len() + known.values().map(|count| *count as usize).sum::<usize>(),
            last: hashes.iter().skip(hashes.len().saturating_sub(PROOF_ITEMS)).copied().collect(),
            met: 0,
            has_given: false,
            gap: Vec::new(),
            held: Emitted::default(),
        };
        Self { head: Vec::new(), in_head: true, tags: None, reports_records: false, replay: Some(replay) }
    }

    /// A page of a restarted list: delivered items are dropped where they are met, and all others are new.
    pub(crate) fn restarted(known: &KnownItems, delivered: &[u64], begun: Option<EnvelopeTags>) -> Self {
        let mut resumer = Self::new(known, &Delivered::from_hashes(delivered, &[]), begun.clone());
        match &mut resumer.replay {
            Some(replay) => replay.last.clear(),
            None => resumer = Self::for_substitute(begun),
        }
        resumer
    }

    /// A substitute page, which contains no delivered items.
    pub(crate) fn for_substitute(begun: Option<EnvelopeTags>) -> Self {
        let replay = begun.map(|begun| Replay {
            begun: Some(begun),
            missing: HashMap::new(),
            missing_count: 0,
            last: Vec::new(),
            met: 0,
            has_given: false,
            gap: Vec::new(),
            held: Emitted::default(),
        });
        Self { head: Vec::new(), in_head: true, tags: None, reports_records: false, replay }
    }

    /// Reports the records in the output.
    pub(crate) fn reporting_records(self, reports_records: bool) -> Self {
        Self { reports_records, ..self }
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Takes what may be sent of the output of the engine. `ended`: there will be no more output.
    pub(crate) fn take(
        &mut self,
        buffer: &mut PageBuffer,
        delivered: &mut Delivered,
        ended: bool,
    ) -> Result<Emitted, Unproven> {
        let TakenOutput { bytes: made, items: found, repairs: others } = buffer.take();
        let first = found.iter().find_map(PageItem::start);
        if self.in_head {
            let room = HEAD_BYTES_KEPT.saturating_sub(self.head.len());
            self.head.extend_from_slice(&made.slice(0..room.min(first.unwrap_or(room))));
        }
        let in_head = self.in_head;
        self.in_head &= first.is_none();
        if in_head && first.is_some() {
            self.tags = buffer.head.envelope().cloned();
        }
        let Some(replay) = &mut self.replay else {
            let mut taken = Emitted { hashes: Vec::with_capacity(found.len()), ..Emitted::default() };
            let reporting =
                if self.reports_records { self.tags.as_ref().map(EnvelopeTags::scope) } else { None };
            for found in found {
                if let (Some(scope), Some(start)) = (reporting, found.start()) {
                    taken.report(&found, &made.slice(start..start + found.len()), scope);
                }
                taken.count(found);
            }
            delivered.extend(&taken.hashes, &taken.names);
            taken.output = made;
            taken.repairs.extend(others);
            return Ok(taken);
        };
        if in_head && first.is_some() && replay.begun.is_some() && replay.begun != self.tags {
            return Err(Unproven::Head);
        }
        let reporting = if self.reports_records { self.tags.as_ref().map(EnvelopeTags::scope) } else { None };
        replay.sort(&made.bytes(), found, in_head, reporting)?;
        if ended {
            replay.close()?;
            replay.held.repairs.extend(others);
        }
        Ok(replay.release(delivered))
    }

    /// Whether the harvester has the item already.
    pub(crate) fn knows(&self, hash: u64) -> bool {
        let replay = self.replay.as_ref();
        replay.is_some_and(|replay| replay.missing.get(&hash).is_some_and(|count| *count > 0))
    }

    /// Everything before the first item, the part in `pieces` included.
    pub(crate) fn head_with(&self, buffer: &PageBuffer) -> Vec<u8> {
        let rest = if self.in_head { buffer.before_items() } else { Cow::default() };
        [self.head.as_slice(), &rest].concat()
    }

    /// Whether an item was met.
    pub(crate) fn has_items(&self) -> bool {
        !self.in_head
    }

    /// Whether new items were sent of a page of which all could have been delivered before.
    pub(crate) fn has_new_items(&self) -> bool {
        self.replay.as_ref().is_none_or(|replay| replay.has_given)
    }

    /// The delivered items that were not on this page.
    pub(crate) fn into_missing(self) -> KnownItems {
        self.replay.map(|replay| replay.missing).unwrap_or_default()
    }

    /// The page if all its items were delivered before, and it was the last one.
    pub(crate) fn empty_last_page(&self) -> Option<Vec<u8>> {
        self.replay.as_ref()?;
        let closing = self.tags()?.close_with(Some(""));
        Some([self.head.as_slice(), &closing].concat())
    }

    /// The tags around the items, once there was one.
    pub(crate) fn tags(&self) -> Option<&EnvelopeTags> {
        self.tags.as_ref()
    }

    /// The same, also if the first item is still in the buffer.
    pub(crate) fn tags_with<'t>(&'t self, buffer: &'t PageBuffer) -> Option<&'t EnvelopeTags> {
        self.tags().or(buffer.head.envelope())
    }
}

impl Replay {
    /// Separates new items from delivered ones.
    fn sort(
        &mut self,
        bytes: &[u8],
        found: Vec<PageItem>,
        mut in_head: bool,
        reporting: Option<&NamespaceScope>,
    ) -> Result<(), Unproven> {
        let mut cursor = 0;
        for found in found {
            let known = self.meet(found.hash());
            let Some(start) = found.start() else {
                if !known {
                    self.held.count(found);
                }
                continue;
            };
            if found.len() == 0 {
                // The item was too long to be held and compared.
                return Err(Unproven::Held);
            }
            let end = start + found.len();
            self.gap.extend_from_slice(bytes.get(cursor..start).unwrap_or_default());
            let is_head = std::mem::replace(&mut in_head, false);
            if if is_head { self.begun.is_none() } else { !known } {
                self.held.output.write(&self.gap);
            }
            self.gap.clear();
            if !known {
                let item = bytes.get(start..end).unwrap_or_default();
                self.held.output.write(item);
                if let Some(scope) = reporting {
                    self.held.report(&found, item, scope);
                }
                self.held.count(found);
            }
            cursor = end;
        }
        self.gap.extend_from_slice(bytes.get(cursor..).unwrap_or_default());
        let held = self.held.output.len() + self.gap.len();
        if held > HELD_BYTES_MAX { Err(Unproven::Held) } else { Ok(()) }
    }

    /// Whether the harvester has the item already.
    fn meet(&mut self, hash: u64) -> bool {
        let Some(count) = self.missing.get_mut(&hash).filter(|count| **count > 0) else { return false };
        *count -= 1;
        self.missing_count -= 1;
        self.met += usize::from(self.last.get(self.met) == Some(&hash));
        true
    }

    fn is_proven(&self) -> bool {
        self.missing_count == 0 || self.met == self.last.len()
    }

    /// Ends the page: releases the bytes after its last item.
    fn close(&mut self) -> Result<(), Unproven> {
        if !self.is_proven() {
            return Err(Unproven::Items);
        }
        self.held.output.write(&self.gap);
        self.gap.clear();
        Ok(())
    }

    fn release(&mut self, delivered: &mut Delivered) -> Emitted {
        if !self.is_proven() {
            return Emitted::default();
        }
        delivered.extend(&self.held.hashes, &self.held.names);
        self.has_given |= !self.held.hashes.is_empty();
        std::mem::take(&mut self.held)
    }
}

impl Emitted {
    /// Counts the items and their repairs in the summary of the response. Drains the repairs.
    pub(crate) fn count_in(&mut self, summary: &mut ResponseSummary) {
        summary.items.add_sent(self.items, self.repaired);
        summary.items.add_quarantined(self.quarantined.len() as u64);
        summary.items.add_oversized(self.oversized);
        for (id, made) in self.repairs.drain(..) {
            summary.items.add_repair(id, made);
        }
    }

    /// Reports a record of the output.
    fn report(&mut self, found: &PageItem, item: &[u8], scope: &NamespaceScope) {
        if item.is_empty() {
            self.oversized += 1;
        } else {
            self.records.extend(found.to_delivered(item, scope));
        }
    }

    fn count(&mut self, found: PageItem) {
        self.hashes.push(found.hash());
        match found {
            PageItem::Item { repairs, name, .. } => {
                self.items += 1;
                self.names.push(name);
                self.repaired += u64::from(repairs.iter().any(|(id, _)| !id.is_rewrite()));
                self.repairs.extend(repairs);
            }
            PageItem::Quarantined { record, .. } => self.quarantined.push(record),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_repair::{
        Ending, EnvelopeFacts, Outcome, Quarantined, RecordFacts, Repair, RepairConfig, Repairer, Sink,
        Summary,
    };
    use std::path::{Path, PathBuf};

    /// Pages as providers send them, broken and not.
    fn pages() -> Vec<(PathBuf, Vec<u8>)> {
        let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus"));
        let mut folders = vec![corpus.join("wellformed"), corpus.join("broken"), corpus.join("refused")];
        let mut pages = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the corpus is there") {
                let path = entry.expect("readable").path();
                let is_input =
                    path.ends_with("input.xml") || path.parent().is_some_and(|p| p.ends_with("wellformed"));
                if path.is_dir() {
                    folders.push(path);
                } else if is_input {
                    let page = std::fs::read(&path).expect("readable");
                    pages.push((path, page));
                }
            }
        }
        pages.sort();
        assert!(pages.len() > 300, "{}", pages.len());
        pages
    }

    /// A buffer that records what was committed since it was last checked.
    #[derive(Default)]
    struct RecordingBuffer(PageBuffer, Vec<Vec<u8>>);

    impl Sink for RecordingBuffer {
        fn write(&mut self, bytes: &[u8]) {
            self.0.write(bytes);
        }

        fn envelope(&mut self, envelope: &EnvelopeFacts<'_>) {
            self.0.envelope(envelope);
        }

        fn repaired(&mut self, repair: &Repair<'_>) {
            self.0.repaired(repair);
        }

        fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
            self.0.record_committed(facts, bytes);
            self.1.push(bytes.to_vec());
        }

        fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
            self.0.record_quarantined(quarantined);
        }
    }

    impl RecordingBuffer {
        fn check(&mut self, path: &Path) {
            let committed = std::mem::take(&mut self.1);
            let items = self.0.items.iter().filter_map(|found| Some((found.start()?, found.len())));
            for ((start, len), item) in items.zip(committed) {
                let there = self.0.output.slice(start..start + len).into_owned();
                let there = String::from_utf8_lossy(&there);
                assert_eq!(there, String::from_utf8_lossy(&item), "{}", path.display());
            }
        }
    }

    #[test]
    fn items_are_at_their_reported_places() {
        for (path, page) in pages() {
            let mut repairer = Repairer::new(&RepairConfig::default());
            let (mut sink, mut resumer) =
                (RecordingBuffer::default(), Resumer::new(&HashMap::new(), &Delivered::default(), None));
            let mut delivered = Delivered::default();
            for block in page.chunks(61) {
                repairer.push(block, &mut sink);
                sink.check(&path);
                resumer.take(&mut sink.0, &mut delivered, false).expect("a first attempt needs no proof");
            }
            repairer.finish(&mut sink);
            sink.check(&path);
        }
    }

    /// One attempt: what leaves of the page, and the summary of the engine.
    fn attempt(
        page: &[u8],
        mut resumer: Resumer,
        delivered: &mut Delivered,
    ) -> Result<(Vec<u8>, Summary, Resumer), Unproven> {
        let mut config = RepairConfig::default();
        config.ending = Ending::Abort;
        let mut repairer = Repairer::new(&config);
        let (mut buffer, mut out) = (PageBuffer::default(), Vec::new());
        for block in page.chunks(97) {
            repairer.push(block, &mut buffer);
            out.extend(resumer.take(&mut buffer, delivered, false)?.output.into_vec());
        }
        let summary = repairer.finish(&mut buffer);
        if matches!(summary.outcome, Outcome::Clean | Outcome::Repaired) {
            out.extend(resumer.take(&mut buffer, delivered, true)?.output.into_vec());
        }
        Ok((out, summary, resumer))
    }

    #[test]
    fn a_page_truncated_at_any_place_is_resumed_unchanged() {
        // Text between two items may come twice: blanks, comments, instructions.
        let bare = |text: &[u8]| -> String {
            let mut text = String::from_utf8_lossy(text).into_owned();
            for (mark, end) in [("<!--", "-->"), ("<?", "?>")] {
                while let Some(at) = text.find(mark) {
                    let len = text[at..].find(end).map_or(text.len() - at, |len| len + end.len());
                    text.replace_range(at..at + len, "");
                }
            }
            text.split_ascii_whitespace().collect()
        };
        let fresh = || Resumer::new(&HashMap::new(), &Delivered::default(), None);
        let (mut joined, mut unproven) = (0, 0);
        for (path, page) in pages() {
            let (whole, summary, _) =
                attempt(&page, fresh(), &mut Delivered::default()).expect("a first attempt");
            if !matches!(summary.outcome, Outcome::Clean | Outcome::Repaired) || summary.lost > 0 {
                continue;
            }
            for at in (0..page.len()).step_by(53) {
                let mut delivered = Delivered::default();
                let (first, cut, resumer) =
                    attempt(&page[..at], fresh(), &mut delivered).expect("a first attempt");
                if cut.outcome != Outcome::Truncated || cut.lost > 0 {
                    continue;
                }
                let Some(begun) = resumer.tags().cloned() else { continue };
                let again = Resumer::new(&HashMap::new(), &delivered, Some(begun));
                match attempt(&page, again, &mut delivered) {
                    Ok((rest, _, _)) => {
                        joined += 1;
                        let both = [first, rest].concat();
                        let (found, wanted) = (bare(&both), bare(&whole));
                        assert!(
                            found == wanted,
                            "{} at {at}:\n{}",
                            path.display(),
                            String::from_utf8_lossy(&both)
                        );
                    }
                    Err(_) => unproven += 1,
                }
            }
        }
        println!("{joined} joined, {unproven} not proven");
        assert!(joined > 1_000 && unproven * 20 < joined, "{joined} joined, {unproven} not proven");
    }
}
