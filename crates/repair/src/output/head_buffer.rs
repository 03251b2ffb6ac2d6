//! The last stage before the sink: it holds the head of the response, and counts.
//!
//! All bytes of a response pass through it.
//!
//! - It emits no byte before the first good item. Only then is it known whether the response is a list, an
//!   error or nothing. Afterwards it emits everything immediately.
//! - All removals outside items pass through it. Text with an item or a resumptionToken is not removed: it
//!   goes to quarantine and counts as lost.

use crate::boundary::removal::{LostContent, RemovalSearch, contains_item_or_token, items_between};
use crate::catalog::{QuarantineReason, RepairCounts, RepairId};
use crate::output::dedup::EmittedItems;
use crate::sink::{Quarantined, RecordFacts, Repair, Sink, TokenFacts};
use crate::summary::{Outcome, Summary};
use oaimend_oai::ErrorCode;

/// The kind of a held part. It decides whether the part is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartRole {
    /// Emitted in any case.
    Plain,
    /// An error element. Emitted only if no item is.
    Error,
    /// A tag of the list. Emitted only with an item or a token.
    List,
    /// The `request` element that the engine wrote.
    RequestEcho,
}

/// A held range of the text, and its change.
#[derive(Debug)]
struct HeldPart {
    role: PartRole,
    offset: u64,
    original: Vec<u8>,
    change: Option<(RepairId, Vec<u8>)>,
}

/// The kind of response that the held head becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    List,
    Errors,
}

/// Initial capacity, in parts. It is enough for most heads.
const PARTS_INITIAL: usize = 16;

/// The counts and the held parts of one response.
#[derive(Debug)]
pub(crate) struct HeadBuffer {
    held: Option<Vec<HeldPart>>,
    held_bytes: usize,
    records: u64,
    quarantined: u64,
    lost: u64,
    /// Texts that went to quarantine because they contain an item or a token. They count as lost too.
    unread: u64,
    incomplete: bool,
    swallowed: u64,
    unresolved: u64,
    repairs: RepairCounts,
    changed: bool,
    /// The emitted items.
    emitted: EmittedItems,
    /// The codes of the error elements in the held head.
    errors: Vec<ErrorCode>,
    /// The value of the emitted token.
    token: Option<Vec<u8>>,
    removals: RemovalSearch,
}

impl HeadBuffer {
    pub(crate) fn new() -> Self {
        Self {
            held: Some(Vec::with_capacity(PARTS_INITIAL)),
            held_bytes: 0,
            records: 0,
            quarantined: 0,
            lost: 0,
            unread: 0,
            incomplete: false,
            swallowed: 0,
            unresolved: 0,
            repairs: RepairCounts::default(),
            changed: false,
            emitted: EmittedItems::default(),
            errors: Vec::new(),
            token: None,
            removals: RemovalSearch::default(),
        }
    }

    /// Returns the buffer as an output to `sink`.
    #[inline]
    pub(crate) fn to<'s, S>(&'s mut self, sink: &'s mut S) -> Output<'s, S> {
        Output { buffer: self, sink }
    }

    /// The number of bytes that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// The number of emitted items.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Whether items were quarantined or lost.
    pub(crate) fn lacks_items(&self) -> bool {
        self.quarantined > 0 || self.lost > 0
    }

    /// Whether an unreadable item or token was removed. Then the list is not complete.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Counts an item that is lost.
    pub(crate) fn count_lost(&mut self) {
        self.lost += 1;
    }

    pub(crate) fn count_swallowed(&mut self, items: usize) {
        self.swallowed += items as u64;
    }

    pub(crate) fn count_unresolved(&mut self) {
        self.unresolved += 1;
    }

    /// Whether the item was emitted in the first document.
    pub(crate) fn has_emitted(&mut self, identifier: &[u8], datestamp: &[u8]) -> bool {
        self.emitted.contains(identifier, datestamp)
    }

    #[inline]
    pub(crate) fn note_emitted(&mut self, identifier: &[u8], datestamp: &[u8]) {
        self.emitted.insert(identifier, datestamp);
    }

    /// Returns the summary of a response with the counts of its output, if it is neither refused nor truncated.
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            outcome: if self.changed { Outcome::Repaired } else { Outcome::Clean },
            version: None,
            records: self.records,
            quarantined: self.quarantined,
            lost: self.lost,
            unread: self.unread,
            swallowed: self.swallowed,
            unresolved: self.unresolved,
            repairs: self.repairs,
            decoded_as: "UTF-8",
            held_bytes_peak: 0,
        }
    }

    /// Whether bytes are emitted immediately.
    pub(crate) fn is_open(&self) -> bool {
        self.held.is_none()
    }

    /// Whether a change removes an item that was not emitted, or a token other than the emitted one.
    fn loses_content(&mut self, repair: &Repair<'_>) -> bool {
        let Repair { id, offset, original, replacement, .. } = *repair;
        // The repairs themselves count these as lost.
        if matches!(id, RepairId::TruncatedInput | RepairId::AnotherRecord) || original == replacement {
            return false;
        }
        let (emitted, token) = (&mut self.emitted, self.token.as_deref());
        let lost = self.removals.count(offset, original, |content| match content {
            LostContent::Item { identifier, datestamp } => {
                identifier.is_empty() || !emitted.was_emitted(identifier, datestamp)
            }
            LostContent::Token(value) => token != Some(value.as_ref()),
        });
        lost > 0 && !contains_item_or_token(replacement)
    }

    fn count(&mut self, id: RepairId) {
        self.repairs.add(id);
        self.changed |= !id.is_rewrite();
        self.lost += u64::from(id == RepairId::AnotherRecord);
    }

    /// Whether a held part is an error.
    pub(crate) fn contains_error(&self) -> bool {
        self.held.iter().flatten().any(|part| part.role == PartRole::Error)
    }

    /// Notes an error element of the head. It is reported if the response becomes an error.
    pub(crate) fn note_error(&mut self, code: ErrorCode) {
        self.errors.push(code);
    }

    /// The number of bytes that are written before the first tag of the list, if the head becomes a list.
    pub(crate) fn bytes_before_list(&self) -> usize {
        let parts = self.held.iter().flatten().take_while(|part| part.role != PartRole::List);
        let written = parts.filter(|part| part.role != PartRole::Error);
        written.map(|part| part.change.as_ref().map_or(part.original.len(), |(_, new)| new.len())).sum()
    }
}

/// The buffer of a response, and the receiver of what it emits.
pub(crate) struct Output<'s, S> {
    buffer: &'s mut HeadBuffer,
    sink: &'s mut S,
}

impl<S: Sink> Output<'_, S> {
    /// Emits or holds unchanged text.
    pub(crate) fn keep(&mut self, role: PartRole, offset: u64, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        self.buffer.removals.note_kept(offset, text);
        match &mut self.buffer.held {
            None => self.sink.write(text),
            Some(held) => {
                self.buffer.held_bytes += text.len();
                held.push(HeldPart { role, offset, original: text.to_vec(), change: None });
            }
        }
    }

    /// Makes one change outside items. Text with an item or a token goes to quarantine.
    pub(crate) fn change(&mut self, role: PartRole, repair: &Repair<'_>) {
        if self.buffer.loses_content(repair) {
            if repair.replacement.is_empty() {
                return self.quarantine_unread(None, repair.offset, repair.original);
            }
            self.buffer.lost += 1;
            self.buffer.incomplete = true;
        }
        self.change_without_loss(role, repair);
    }

    /// Makes one change outside items that loses nothing: the content of the text is emitted elsewhere.
    pub(crate) fn change_without_loss(&mut self, role: PartRole, repair: &Repair<'_>) {
        let Repair { id, offset, original, replacement, .. } = *repair;
        if original == replacement {
            return self.keep(role, offset, original);
        }
        match &mut self.buffer.held {
            None => self.report(repair),
            Some(held) => {
                self.buffer.held_bytes += original.len() + replacement.len();
                let change = Some((id, replacement.to_vec()));
                held.push(HeldPart { role, offset, original: original.to_vec(), change });
            }
        }
    }

    /// Quarantines text that contains unreadable items or a token, each item by itself, and counts them as
    /// lost. `identifier` is that of the item that the text begins with, if it does.
    pub(crate) fn quarantine_unread(&mut self, identifier: Option<&[u8]>, offset: u64, raw: &[u8]) {
        self.buffer.incomplete = true;
        let skip = usize::from(identifier.is_none());
        let items: Vec<(usize, &[u8])> = items_between(raw).filter(|&(at, _)| at > 0 || skip > 0).collect();
        let first = identifier.or_else(|| items.first().map(|&(_, identifier)| identifier));
        let further = items.get(skip..).unwrap_or_default();
        let starts = std::iter::once((0, first.unwrap_or_default())).chain(further.iter().copied());
        let ends = further.iter().map(|&(at, _)| at).chain([raw.len()]);
        for ((start, identifier), end) in starts.zip(ends) {
            self.buffer.lost += 1;
            self.buffer.unread += 1;
            let item = raw.get(start..end).unwrap_or_default();
            let identifier = (!identifier.is_empty()).then_some(identifier);
            let (offset, why) = (offset + start as u64, QuarantineReason::UnreadItem);
            self.quarantine(&Quarantined { identifier, offset, raw: item, why });
        }
    }

    /// Reports a change and writes its replacement.
    pub(crate) fn report(&mut self, repair: &Repair<'_>) {
        self.buffer.count(repair.id);
        self.sink.repaired(repair);
        if !repair.replacement.is_empty() {
            self.sink.write(repair.replacement);
        }
    }

    /// Reports an emitted item. The caller writes its bytes.
    pub(crate) fn report_item(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        self.buffer.records += 1;
        self.sink.record_committed(facts, bytes);
    }

    /// Quarantines an item. The item is reported immediately, even if the head is held, so that quarantined
    /// items do not accumulate here.
    pub(crate) fn quarantine(&mut self, item: &Quarantined<'_>) {
        self.buffer.quarantined += 1;
        self.buffer.changed = true;
        self.sink.record_quarantined(item);
    }

    /// Reports the emitted token of the list.
    pub(crate) fn token(&mut self, facts: &TokenFacts<'_>) {
        self.buffer.token = Some(facts.token.to_vec());
        self.sink.resumption_token(facts);
    }

    /// Emits the held head. Later bytes are emitted immediately. `bare_request` is the `request` element
    /// without arguments, which is required with badVerb and badArgument.
    pub(crate) fn release(&mut self, kind: Release, bare_request: Option<&[u8]>) {
        let Some(held) = self.buffer.held.take() else { return };
        self.buffer.held_bytes = 0;
        let errors = std::mem::take(&mut self.buffer.errors);
        if kind == Release::Errors {
            errors.into_iter().for_each(|code| self.sink.error(code));
        }
        for part in held {
            let HeldPart { role, offset, original, change } = part;
            let dropped = match (role, kind) {
                (PartRole::Error, Release::List) => Some(RepairId::ErrorBesideItems),
                (PartRole::List, Release::Errors) => Some(RepairId::EmptyList),
                _ => None,
            };
            let (id, replacement) = match (dropped, change) {
                (Some(_), _) if original.is_empty() => continue,
                (Some(id), _)
                    if self.buffer.loses_content(&Repair::outside_items(id, offset, &original, b"")) =>
                {
                    self.quarantine_unread(None, offset, &original);
                    continue;
                }
                (Some(id), _) => (id, Vec::new()),
                (None, Some((id, replacement))) => match bare_request {
                    Some(bare) if role == PartRole::RequestEcho => (id, bare.to_vec()),
                    _ => (id, replacement),
                },
                (None, None) => {
                    self.sink.write(&original);
                    continue;
                }
            };
            if original == replacement {
                self.sink.write(&original);
                continue;
            }
            let (original, replacement) = (original.as_slice(), replacement.as_slice());
            self.report(&Repair::outside_items(id, offset, original, replacement));
        }
    }
}
