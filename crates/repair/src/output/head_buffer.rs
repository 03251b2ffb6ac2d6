//! The last stage before the sink: it holds the head of the response, and counts.
//!
//! All bytes of a response pass through it.
//!
//! - It emits no byte before the first good item. Only then is it known whether the response is a list, an
//!   error or nothing. Afterwards it emits everything immediately.
//! - All removals outside items pass through it. Text with an item or a resumptionToken is not removed: it
//!   goes to quarantine and counts as lost.

use crate::boundary::removal::{LostContent, RemovalSearch, contains_item_or_token, items_between};
use crate::catalog::RepairCounts;
use crate::catalog::{QuarantineReason, RepairId};
use crate::output::dedup::EmittedItems;
use crate::sink::{Quarantined, RecordFacts, Repair, Sink, TokenFacts};
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
    pub(crate) held_bytes: usize,
    pub(crate) records: u64,
    pub(crate) quarantined: u64,
    pub(crate) lost: u64,
    /// Texts that went to quarantine because they contain an item or a token. They count as lost too.
    pub(crate) unread: u64,
    /// Whether an unreadable item or token was removed. Then the list is not complete.
    pub(crate) incomplete: bool,
    pub(crate) swallowed: u64,
    pub(crate) unresolved: u64,
    pub(crate) repairs: RepairCounts,
    pub(crate) changed: bool,
    /// The emitted items.
    pub(crate) emitted: EmittedItems,
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

    /// Whether bytes are emitted immediately.
    pub(crate) fn is_open(&self) -> bool {
        self.held.is_none()
    }

    /// Emits or holds unchanged text.
    pub(crate) fn keep(&mut self, role: PartRole, offset: u64, text: &[u8], sink: &mut impl Sink) {
        if text.is_empty() {
            return;
        }
        self.removals.note_kept(offset, text);
        match &mut self.held {
            None => sink.write(text),
            Some(held) => {
                self.held_bytes += text.len();
                held.push(HeldPart { role, offset, original: text.to_vec(), change: None });
            }
        }
    }

    /// Makes one change outside items. Text with an item or a token goes to quarantine.
    pub(crate) fn change(
        &mut self,
        role: PartRole,
        id: RepairId,
        offset: u64,
        original: &[u8],
        replacement: &[u8],
        sink: &mut impl Sink,
    ) {
        if self.loses_content(id, offset, original, replacement) {
            if replacement.is_empty() {
                return self.quarantine_unread(None, offset, original, sink);
            }
            self.lost += 1;
            self.incomplete = true;
        }
        self.change_without_loss(role, id, offset, original, replacement, sink);
    }

    /// Makes one change outside items that loses nothing: the content of the text is emitted elsewhere.
    pub(crate) fn change_without_loss(
        &mut self,
        role: PartRole,
        id: RepairId,
        offset: u64,
        original: &[u8],
        replacement: &[u8],
        sink: &mut impl Sink,
    ) {
        if original == replacement {
            return self.keep(role, offset, original, sink);
        }
        match &mut self.held {
            None => self.report(&Repair { id, offset, record: None, original, replacement }, sink),
            Some(held) => {
                self.held_bytes += original.len() + replacement.len();
                let change = Some((id, replacement.to_vec()));
                held.push(HeldPart { role, offset, original: original.to_vec(), change });
            }
        }
    }

    /// Whether a change removes an item that was not emitted, or a token other than the emitted one.
    fn loses_content(&mut self, id: RepairId, offset: u64, original: &[u8], replacement: &[u8]) -> bool {
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

    /// Quarantines text that contains unreadable items or a token, each item by itself, and counts them as
    /// lost. `identifier` is that of the item that the text begins with, if it does.
    pub(crate) fn quarantine_unread(
        &mut self,
        identifier: Option<&[u8]>,
        offset: u64,
        raw: &[u8],
        sink: &mut impl Sink,
    ) {
        self.incomplete = true;
        let skip = usize::from(identifier.is_none());
        let items: Vec<(usize, &[u8])> = items_between(raw).filter(|&(at, _)| at > 0 || skip > 0).collect();
        let first = identifier.or_else(|| items.first().map(|&(_, identifier)| identifier));
        let further = items.get(skip..).unwrap_or_default();
        let starts = std::iter::once((0, first.unwrap_or_default())).chain(further.iter().copied());
        let ends = further.iter().map(|&(at, _)| at).chain([raw.len()]);
        for ((start, identifier), end) in starts.zip(ends) {
            self.lost += 1;
            self.unread += 1;
            let item = raw.get(start..end).unwrap_or_default();
            let identifier = (!identifier.is_empty()).then_some(identifier);
            self.quarantine(identifier, offset + start as u64, item, QuarantineReason::UnreadItem, sink);
        }
    }

    /// Reports a change and writes its replacement.
    pub(crate) fn report(&mut self, repair: &Repair<'_>, sink: &mut impl Sink) {
        self.count(repair.id);
        sink.repaired(repair);
        if !repair.replacement.is_empty() {
            sink.write(repair.replacement);
        }
    }

    fn count(&mut self, id: RepairId) {
        self.repairs.add(id);
        self.changed |= !id.is_rewrite();
        self.lost += u64::from(id == RepairId::AnotherRecord);
    }

    /// Reports an emitted item. The caller writes its bytes.
    pub(crate) fn report_item(&mut self, facts: &RecordFacts<'_>, bytes: &[u8], sink: &mut impl Sink) {
        self.records += 1;
        sink.record_committed(facts, bytes);
    }

    /// Quarantines an item. The item is reported immediately, even if the head is held, so that quarantined
    /// items do not accumulate here.
    pub(crate) fn quarantine(
        &mut self,
        identifier: Option<&[u8]>,
        offset: u64,
        raw: &[u8],
        why: QuarantineReason,
        sink: &mut impl Sink,
    ) {
        self.quarantined += 1;
        self.changed = true;
        sink.record_quarantined(&Quarantined { identifier, offset, raw, why });
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

    /// Reports the emitted token of the list.
    pub(crate) fn token(&mut self, facts: &TokenFacts<'_>, sink: &mut impl Sink) {
        self.token = Some(facts.token.to_vec());
        sink.resumption_token(facts);
    }

    /// Emits the held head. Later bytes are emitted immediately. `bare_request` is the `request` element
    /// without arguments, which is required with badVerb and badArgument.
    pub(crate) fn release(&mut self, kind: Release, bare_request: Option<&[u8]>, sink: &mut impl Sink) {
        let Some(held) = self.held.take() else { return };
        self.held_bytes = 0;
        let errors = std::mem::take(&mut self.errors);
        if kind == Release::Errors {
            errors.into_iter().for_each(|code| sink.error(code));
        }
        for part in held {
            let dropped = match (part.role, kind) {
                (PartRole::Error, Release::List) => Some(RepairId::ErrorBesideItems),
                (PartRole::List, Release::Errors) => Some(RepairId::EmptyList),
                _ => None,
            };
            let (id, replacement) = match (dropped, part.change) {
                (Some(_), _) if part.original.is_empty() => continue,
                (Some(id), _) if self.loses_content(id, part.offset, &part.original, b"") => {
                    self.quarantine_unread(None, part.offset, &part.original, sink);
                    continue;
                }
                (Some(id), _) => (id, Vec::new()),
                (None, Some((id, own))) => match bare_request {
                    Some(bare) if part.role == PartRole::RequestEcho => (id, bare.to_vec()),
                    _ => (id, own),
                },
                (None, None) => {
                    sink.write(&part.original);
                    continue;
                }
            };
            let original = &part.original;
            if *original == replacement {
                sink.write(original);
                continue;
            }
            self.report(
                &Repair { id, offset: part.offset, record: None, original, replacement: &replacement },
                sink,
            );
        }
    }
}
