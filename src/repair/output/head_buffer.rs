//! Last stage before the sink: holds the head back until there is something worth saying, and keeps the account.
//!
//! Until the first good item no byte leaves, because only then is it known
//! whether the answer is a list, an error or nothing. Afterwards everything
//! passes straight through.
//!
//! All removals outside items pass through here. What would remove an item or a
//! resumptionToken goes to quarantine instead and counts as lost.

use crate::repair::boundary::removal::{Content, RemovalSearch, holds_item_or_token};
use crate::repair::catalog::{QuarantineReason, RepairId};
use crate::repair::output::dedup::EmittedItems;
use crate::repair::sink::{Quarantined, RecordFacts, Repair, Sink, TokenFacts};

/// What a held piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Leaves in any case.
    Plain,
    /// Error elements: leave only when no item does.
    Error,
    /// The list's own tags: leave only with an item, or a token.
    List,
    /// The request element, written by us.
    RequestEcho,
}

/// A stretch of text with what became of it.
#[derive(Debug)]
struct Piece {
    role: Role,
    offset: u64,
    original: Vec<u8>,
    change: Option<(RepairId, Vec<u8>)>,
}

/// What the held head becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    List,
    Errors,
}

/// Pieces of most heads: what stands between changes, and these.
const USUAL_PIECES: usize = 16;

/// Counts and held pieces of one response.
#[derive(Debug)]
pub(crate) struct HeadBuffer {
    held: Option<Vec<Piece>>,
    pub(crate) held_bytes: usize,
    pub(crate) records: u64,
    pub(crate) quarantined: u64,
    pub(crate) lost: u64,
    /// Pieces of text that were put aside because an item or a token is in them; counted as lost too.
    pub(crate) unread: u64,
    /// Whether an item or a token was removed that could not be read: the list is not complete.
    pub(crate) incomplete: bool,
    pub(crate) swallowed: u64,
    pub(crate) unresolved: u64,
    pub(crate) repairs: [u64; RepairId::COUNT],
    pub(crate) changed: bool,
    /// Items that have left.
    pub(crate) seen: EmittedItems,
    /// The value of the token that has left.
    token: Option<Vec<u8>>,
    removals: RemovalSearch,
}

impl HeadBuffer {
    pub(crate) fn new() -> Self {
        Self {
            held: Some(Vec::with_capacity(USUAL_PIECES)),
            held_bytes: 0,
            records: 0,
            quarantined: 0,
            lost: 0,
            unread: 0,
            incomplete: false,
            swallowed: 0,
            unresolved: 0,
            repairs: [0; RepairId::COUNT],
            changed: false,
            seen: EmittedItems::default(),
            token: None,
            removals: RemovalSearch::default(),
        }
    }

    /// Whether bytes leave as they come.
    pub(crate) fn is_open(&self) -> bool {
        self.held.is_none()
    }

    /// Text that stays as it is.
    pub(crate) fn keep(&mut self, role: Role, offset: u64, text: &[u8], sink: &mut impl Sink) {
        if text.is_empty() {
            return;
        }
        self.removals.kept(offset, text);
        match &mut self.held {
            None => sink.write(text),
            Some(held) => {
                self.held_bytes += text.len();
                held.push(Piece { role, offset, original: text.to_vec(), change: None });
            }
        }
    }

    /// One change outside items. Text with an item or a token in it is put aside.
    pub(crate) fn change(
        &mut self,
        role: Role,
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
        self.change_known(role, id, offset, original, replacement, sink);
    }

    /// One change outside items that loses nothing: what was in the text leaves elsewhere.
    pub(crate) fn change_known(
        &mut self,
        role: Role,
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
                held.push(Piece { role, offset, original: original.to_vec(), change });
            }
        }
    }

    /// Whether a change removes an item that has not left, or a token other than the one that has.
    fn loses_content(&mut self, id: RepairId, offset: u64, original: &[u8], replacement: &[u8]) -> bool {
        // These count as lost by themselves.
        if matches!(id, RepairId::TruncatedInput | RepairId::AnotherRecord) || original == replacement {
            return false;
        }
        let (seen, token) = (&mut self.seen, self.token.as_deref());
        let lost = self.removals.count(offset, original, |content| match content {
            Content::Item { identifier, datestamp } => {
                identifier.is_empty() || !seen.has_left(identifier, datestamp)
            }
            Content::Token(value) => token != Some(value.as_ref()),
        });
        lost > 0 && !holds_item_or_token(replacement)
    }

    /// Text that holds an item or a token and cannot be read goes to quarantine and counts as lost.
    pub(crate) fn quarantine_unread(
        &mut self,
        identifier: Option<&[u8]>,
        offset: u64,
        raw: &[u8],
        sink: &mut impl Sink,
    ) {
        self.lost += 1;
        self.unread += 1;
        self.incomplete = true;
        self.quarantine(identifier, offset, raw, QuarantineReason::UnreadItem, sink);
    }

    /// Reports a change and writes what it made.
    pub(crate) fn report(&mut self, repair: &Repair<'_>, sink: &mut impl Sink) {
        self.count(repair.id);
        sink.repaired(repair);
        if !repair.replacement.is_empty() {
            sink.write(repair.replacement);
        }
    }

    fn count(&mut self, id: RepairId) {
        if let Some(count) = self.repairs.get_mut(id as usize) {
            *count += 1;
        }
        self.changed |= !id.is_rewrite();
        self.lost += u64::from(id == RepairId::AnotherRecord);
    }

    /// An item leaves. Its bytes are written by the caller.
    pub(crate) fn committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8], sink: &mut impl Sink) {
        self.records += 1;
        sink.record_committed(facts, bytes);
    }

    /// An item is taken out. Reported at once, even while the head in front of
    /// it is held: what is put aside must not pile up here.
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

    /// Whether an error is among what is held.
    pub(crate) fn holds_error(&self) -> bool {
        self.held.iter().flatten().any(|piece| piece.role == Role::Error)
    }

    /// The list's token leaves.
    pub(crate) fn token(&mut self, facts: &TokenFacts<'_>, sink: &mut impl Sink) {
        self.token = Some(facts.token.to_vec());
        sink.resumption_token(facts);
    }

    /// The head leaves; the gate is open from now on. `bare_request` is the request element
    /// without arguments, where that stands beside badVerb and badArgument.
    pub(crate) fn release(&mut self, answer: Release, bare_request: Option<&[u8]>, sink: &mut impl Sink) {
        let Some(held) = self.held.take() else { return };
        self.held_bytes = 0;
        for piece in held {
            let dropped = match (piece.role, answer) {
                (Role::Error, Release::List) => Some(RepairId::ErrorBesideItems),
                (Role::List, Release::Errors) => Some(RepairId::EmptyList),
                _ => None,
            };
            let (id, replacement) = match (dropped, piece.change) {
                (Some(_), _) if piece.original.is_empty() => continue,
                (Some(id), _) if self.loses_content(id, piece.offset, &piece.original, b"") => {
                    self.quarantine_unread(None, piece.offset, &piece.original, sink);
                    continue;
                }
                (Some(id), _) => (id, Vec::new()),
                (None, Some((id, own))) => match bare_request {
                    Some(bare) if piece.role == Role::RequestEcho => (id, bare.to_vec()),
                    _ => (id, own),
                },
                (None, None) => {
                    sink.write(&piece.original);
                    continue;
                }
            };
            let original = &piece.original;
            if *original == replacement {
                sink.write(original);
                continue;
            }
            self.report(
                &Repair { id, offset: piece.offset, record: None, original, replacement: &replacement },
                sink,
            );
        }
    }
}
