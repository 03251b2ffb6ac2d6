//! Where the engine's results go: bytes, the journal, and what became of each item.
//!
//! Sits last in the flow. A [`Sink`] is handed to every call of the engine
//! instead of being kept, so that it may borrow what the caller likes.

use crate::repair::catalog::{QuarantineReason, RepairId};

/// Receives what the engine makes of a response. A push model: the engine
/// calls, the sink keeps up or buffers.
///
/// Order is meaning. Everything that concerns the bytes up to some point is
/// reported before or with those bytes, in the order of the text. A record that
/// is removed is reported by [`Sink::record_quarantined`] before any byte behind
/// it is written, and even before what precedes it while the head is held.
pub trait Sink {
    /// Bytes of the answer, in order. Pieces have no meaning.
    fn write(&mut self, bytes: &[u8]);

    /// One change, for the journal: `original` at `offset` became `replacement`.
    fn repaired(&mut self, _repair: &Repair<'_>) {}

    /// An item leaves in the bytes of this or a following `write` of the same
    /// call; `bytes` is the item as it leaves.
    fn record_committed(&mut self, _facts: &RecordFacts<'_>, _bytes: &[u8]) {}

    /// An item is taken out of the list; its own repairs are never reported.
    fn record_quarantined(&mut self, _quarantined: &Quarantined<'_>) {}

    /// A section of an item contains items of the list and is taken for content. Called before any
    /// byte of that item is written, and before it is put aside.
    fn items_swallowed(&mut self, _swallowed: &SwallowedItems<'_>) {}

    /// Something stays as it is that breaks the schema.
    fn unresolved(&mut self, _left: &UnresolvedField) {}

    /// The list's resumptionToken, when it is written at the end of the list.
    fn resumption_token(&mut self, _token: &TokenFacts<'_>) {}
}

/// One entry of the journal.
///
/// Replaying all entries over the text gives the output; undoing them gives
/// the text again (see [`journal`](crate::repair::output::journal)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair<'a> {
    /// Which repair of the catalogue this is.
    pub id: RepairId,
    /// Where `original` began, in bytes of the text.
    pub offset: u64,
    /// Identifier of the item it lies in, as it leaves; `None` outside items.
    pub record: Option<&'a [u8]>,
    /// What stood there; empty for an insertion.
    pub original: &'a [u8],
    /// What stands there now; empty for a deletion.
    pub replacement: &'a [u8],
}

/// What is known of an item that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFacts<'a> {
    /// `identifier` of a record or header, `setSpec` of a set, `metadataPrefix`
    /// of a format, as it stands in the XML (references not resolved).
    pub identifier: &'a [u8],
    /// `datestamp` of a record or header; empty elsewhere.
    pub datestamp: &'a [u8],
    /// Whether the header says `status="deleted"`.
    pub deleted: bool,
    /// Where the item began, in bytes of the text.
    pub offset: u64,
    /// How many journal entries it took.
    pub repairs: usize,
    /// Whether a setSpec of it holds a `~`, and so perhaps what stands for an illegal byte.
    pub tilde_in_set: bool,
}

/// An item that is beyond repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quarantined<'a> {
    /// Its identifier, if one could be read.
    pub identifier: Option<&'a [u8]>,
    /// Where it began, in bytes of the text.
    pub offset: u64,
    /// The item as it came. Removing these bytes is the journal entry.
    pub raw: &'a [u8],
    /// Why it could not be mended.
    pub why: QuarantineReason,
}

/// A CDATA section, comment or instruction that has an end mark and contains items of the list.
///
/// It is content: a depositor can write such a section. Or it lost its end mark, and the one that was
/// found belongs to a later item: only the source knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwallowedItems<'a> {
    /// Identifier of the item that the section is in.
    pub identifier: Option<&'a [u8]>,
    /// Where the section begins, in bytes of the text.
    pub offset: u64,
    /// The items that begin in it.
    pub items: Vec<SwallowedItem<'a>>,
}

/// An item that begins in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwallowedItem<'a> {
    /// Its identifier, if one could be read.
    pub identifier: Option<&'a [u8]>,
    /// Its bytes, up to the next item or to the end of the item around it.
    pub raw: &'a [u8],
}

/// What stays although it breaks the schema, because no value may be invented for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnresolvedField {
    /// Where the element around it began, in bytes of the text.
    pub offset: u64,
    /// Name of the element.
    pub element: &'static str,
    /// What is wrong with it.
    pub lack: FieldIssue,
}

/// What is wrong with an element that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldIssue {
    /// It is not there.
    Missing,
    /// Its value is not legal.
    Illegal,
    /// It stands there more than once.
    Repeated,
}

impl FieldIssue {
    /// The word used in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Illegal => "illegal",
            Self::Repeated => "repeated",
        }
    }
}

/// The resumptionToken of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenFacts<'a> {
    /// Its text as it stands in the XML (references not resolved); empty on the last page.
    pub token: &'a [u8],
    /// `cursor`: how many items the list has delivered before this page.
    pub cursor: Option<u64>,
    /// `completeListSize`: how many items the list has, as far as the source knows.
    pub complete_list_size: Option<u64>,
}
