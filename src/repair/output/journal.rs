//! The journal: every change as one entry that can be replayed and undone.
//!
//! An insertion has no original, a deletion no replacement, a move is one of
//! each. An item that was quarantined is one deletion of the whole item.
//! Entries come in the order of the text, but for items that are put aside
//! while the head of the response is still held: those come at once.

use crate::repair::catalog::{QuarantineReason, RepairId};
use crate::repair::sink::{Quarantined, Repair};

/// What an entry of the journal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A repair.
    Repaired(RepairId),
    /// An item was taken out.
    Quarantined(QuarantineReason),
}

/// One entry, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is about.
    pub change: Change,
    /// Where the original began, in bytes of the text.
    pub offset: u64,
    /// Identifier of the item it concerns.
    pub record: Option<Vec<u8>>,
    /// What stood there.
    pub original: Vec<u8>,
    /// What stands there now.
    pub replacement: Vec<u8>,
}

impl From<&Repair<'_>> for Entry {
    fn from(repair: &Repair<'_>) -> Self {
        Self {
            change: Change::Repaired(repair.id),
            offset: repair.offset,
            record: repair.record.map(<[u8]>::to_vec),
            original: repair.original.to_vec(),
            replacement: repair.replacement.to_vec(),
        }
    }
}

impl From<&Quarantined<'_>> for Entry {
    fn from(quarantined: &Quarantined<'_>) -> Self {
        Self {
            change: Change::Quarantined(quarantined.why),
            offset: quarantined.offset,
            record: quarantined.identifier.map(<[u8]>::to_vec),
            original: quarantined.raw.to_vec(),
            replacement: Vec::new(),
        }
    }
}

/// Makes the output from the text.
///
/// `None` when the journal does not fit the text: entries that overlap, or one
/// whose original is not what stands there.
pub fn replay(text: &[u8], journal: &[Entry]) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(text.len());
    let mut at = 0;
    for entry in in_order(journal) {
        let start = usize::try_from(entry.offset).ok()?;
        let end = start.checked_add(entry.original.len())?;
        output.extend_from_slice(text.get(at..start)?);
        if text.get(start..end)? != entry.original {
            return None;
        }
        output.extend_from_slice(&entry.replacement);
        at = end;
    }
    output.extend_from_slice(text.get(at..)?);
    Some(output)
}

/// Makes the text from the output again.
///
/// `None` when the journal does not fit the output.
pub fn undo(output: &[u8], journal: &[Entry]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(output.len());
    let mut at = 0_usize;
    for entry in in_order(journal) {
        let start = usize::try_from(entry.offset).ok()?;
        let kept = start.checked_sub(text.len())?;
        text.extend_from_slice(output.get(at..at.checked_add(kept)?)?);
        at += kept;
        let end = at.checked_add(entry.replacement.len())?;
        if output.get(at..end)? != entry.replacement {
            return None;
        }
        text.extend_from_slice(&entry.original);
        at = end;
    }
    text.extend_from_slice(output.get(at..)?);
    Some(text)
}

/// The entries in the order of the text; an insertion before a change at its place.
fn in_order(journal: &[Entry]) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = journal.iter().collect();
    entries.sort_by_key(|entry| (entry.offset, entry.original.len()));
    entries
}
