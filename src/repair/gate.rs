//! Last stage before the sink: holds the head back until there is something worth saying, and keeps the account.
//!
//! Until the first good item no byte leaves, because only then is it known
//! whether the answer is a list, an error or nothing. Afterwards everything
//! passes straight through.

use super::catalogue::{RepairId, Unmendable};
use super::sink::{Quarantined, RecordFacts, Repair, Sink, TokenFacts};

/// What a held piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Leaves in any case.
    Plain,
    /// Error elements: leave only when no item does.
    Error,
    /// The list's own tags: leave only with an item, or a token.
    List,
    /// The request element, written by us.
    OwnRequest,
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
pub(super) enum Answer {
    List,
    Errors,
}

/// Pieces of most heads: what stands between changes, and these.
const USUAL_PIECES: usize = 16;

/// Counts and held pieces of one response.
#[derive(Debug)]
pub(super) struct Gate {
    held: Option<Vec<Piece>>,
    pub(super) held_bytes: usize,
    pub(super) records: u64,
    pub(super) quarantined: u64,
    pub(super) lost: u64,
    pub(super) left: u64,
    pub(super) repairs: [u64; RepairId::COUNT],
    pub(super) changed: bool,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self {
            held: Some(Vec::with_capacity(USUAL_PIECES)),
            held_bytes: 0,
            records: 0,
            quarantined: 0,
            lost: 0,
            left: 0,
            repairs: [0; RepairId::COUNT],
            changed: false,
        }
    }

    /// Whether bytes leave as they come.
    pub(super) fn is_open(&self) -> bool {
        self.held.is_none()
    }

    /// Text that stays as it is.
    pub(super) fn keep(&mut self, role: Role, offset: u64, text: &[u8], sink: &mut impl Sink) {
        if text.is_empty() {
            return;
        }
        match &mut self.held {
            None => sink.write(text),
            Some(held) => {
                self.held_bytes += text.len();
                held.push(Piece { role, offset, original: text.to_vec(), change: None });
            }
        }
    }

    /// One change outside items.
    pub(super) fn change(
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

    /// Reports a change and writes what it made.
    pub(super) fn report(&mut self, repair: &Repair<'_>, sink: &mut impl Sink) {
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
    }

    /// An item leaves. Its bytes are written by the caller.
    pub(super) fn committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8], sink: &mut impl Sink) {
        self.records += 1;
        sink.record_committed(facts, bytes);
    }

    /// An item is taken out. Reported at once, even while the head in front of
    /// it is held: what is put aside must not pile up here.
    pub(super) fn quarantine(
        &mut self,
        identifier: Option<&[u8]>,
        offset: u64,
        raw: &[u8],
        why: Unmendable,
        sink: &mut impl Sink,
    ) {
        self.quarantined += 1;
        self.changed = true;
        sink.record_quarantined(&Quarantined { identifier, offset, raw, why });
    }

    /// Whether an error is among what is held.
    pub(super) fn holds_error(&self) -> bool {
        self.held.iter().flatten().any(|piece| piece.role == Role::Error)
    }

    /// The list's token leaves.
    pub(super) fn token(&mut self, facts: &TokenFacts<'_>, sink: &mut impl Sink) {
        sink.resumption_token(facts);
    }

    /// The head leaves; the gate is open from now on. `bare_request` is the request element
    /// without arguments, where that stands beside badVerb and badArgument.
    pub(super) fn release(&mut self, answer: Answer, bare_request: Option<&[u8]>, sink: &mut impl Sink) {
        let Some(held) = self.held.take() else { return };
        self.held_bytes = 0;
        for piece in held {
            let dropped = match (piece.role, answer) {
                (Role::Error, Answer::List) => Some(RepairId::ErrorBesideItems),
                (Role::List, Answer::Errors) => Some(RepairId::EmptyList),
                _ => None,
            };
            let (id, replacement) = match (dropped, piece.change) {
                (Some(_), _) if piece.original.is_empty() => continue,
                (Some(id), _) => (id, Vec::new()),
                (None, Some((id, own))) => match bare_request {
                    Some(bare) if piece.role == Role::OwnRequest => (id, bare.to_vec()),
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
