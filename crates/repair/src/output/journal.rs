//! The journal: every change as one entry that can be replayed and undone.
//!
//! - An insertion has an empty original, a deletion an empty replacement. A move is one of each.
//! - A quarantined item is one deletion of the whole item.
//! - Entries are in the order of the text. Exception: an item that is quarantined while the head of the
//!   response is held is reported immediately.

use crate::catalog::{QuarantineReason, RepairId};
use crate::sink::{Quarantined, Repair};

/// The kind of a journal entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A repair.
    Repaired(RepairId),
    /// An item was quarantined.
    Quarantined(QuarantineReason),
}

/// One journal entry, with owned data.
///
/// ```
/// use oaimend_repair::journal::{Change, undo};
/// use oaimend_repair::RepairId;
///
/// let page = b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><error code='badVerb'>a & b</error></OAI-PMH>";
/// let repaired = oaimend_repair::repair(page);
/// assert!(repaired.journal.iter().any(|entry| entry.change == Change::Repaired(RepairId::BareAmpersand)));
/// assert_eq!(undo(&repaired.bytes, &repaired.journal).as_deref(), Some(&page[..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind of the change.
    pub change: Change,
    /// The offset of the original in the text.
    pub offset: u64,
    /// The identifier of the changed item.
    pub record: Option<Vec<u8>>,
    /// The bytes before the change.
    pub original: Vec<u8>,
    /// The bytes after the change.
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

/// Applies the journal to the text. The result is the output.
///
/// `None` if the journal does not match the text: entries overlap, or an original differs from the text.
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

/// Reverts the journal in the output. The result is the text.
///
/// `None` if the journal does not match the output.
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

/// The entries in the order of the text. An insertion precedes a change at the same place.
fn in_order(journal: &[Entry]) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = journal.iter().collect();
    entries.sort_by_key(|entry| (entry.offset, entry.original.len()));
    entries
}
