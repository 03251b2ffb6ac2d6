//! The state of the validator inside an item, and its results.
//!
//! The fast path, the general path and the reader of oversized items share this state. Positions are
//! relative to the item, because the window around it moves.

use crate::catalog::QuarantineReason;
use crate::lex::index::Index;
use crate::lex::lookahead::NextMark;
use crate::lex::names::is_blank;
use crate::lex::namespaces::Context;
use crate::lex::search::memmem;
use crate::lex::window::{ItemWindow, TextWindow};
use crate::limits::Limits;
use crate::validate::envelope_names::EnvelopeNames;
use crate::validate::facts::{ItemFacts, V1Positions};
use crate::validate::schema::{Element, Text};
use crate::validate::start_tag::StartTagCache;

/// The result of reading an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validation {
    /// The item is valid. Its length in bytes.
    Clean(usize),
    /// The window ends before the item.
    NeedMore,
    /// The first defect.
    Defect(Defect),
    /// The first `record_bytes_max` bytes are valid, and the item is not at its end.
    TooLong,
}

/// A defect and its position in the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defect {
    pub(crate) at: usize,
    pub(crate) why: QuarantineReason,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenElement {
    /// The start of its name: in the item, or in `dropped_names` if that part of the item was dropped.
    pub(crate) name_at: u32,
    pub(crate) name_len: u32,
    pub(crate) is_dropped: bool,
    pub(crate) context: Context,
}

/// The position among the children of an envelope element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildSequence {
    pub(crate) children: &'static [Element],
    pub(crate) at: usize,
    pub(crate) count: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Inside {
    /// Between the children of an envelope element.
    Children,
    /// In an element that contains one payload.
    Payload { seen: bool },
    /// In a text element whose content begins at `from`.
    Field { check: Text, name: &'static [u8], from: u32, plain: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Construct {
    None,
    Cdata(u32),
    Comment(u32),
    Instruction(u32),
}

/// Validates the items of one list, one after the other.
#[derive(Debug)]
pub(crate) struct Validator {
    pub(crate) index: Index,
    pub(crate) names: EnvelopeNames,
    /// Whether parts of the item were emitted and dropped.
    pub(crate) is_oversized: bool,
    pub(crate) outer: Context,
    /// The bytes before this position were read and are legal text.
    pub(crate) at: usize,
    /// The position at which the search for the end of the open construct continues.
    pub(crate) search: usize,
    /// The start of the last lexeme.
    pub(crate) lexeme_start: usize,
    /// The end of the last lexeme, and the start of the text after it.
    pub(crate) lexeme_end: usize,
    pub(crate) stack: Vec<OpenElement>,
    /// Names of open elements whose start tags were dropped.
    pub(crate) dropped_names: Vec<u8>,
    pub(crate) dropped_identifier: Vec<u8>,
    pub(crate) dropped_datestamp: Vec<u8>,
    pub(crate) sequences: Vec<ChildSequence>,
    pub(crate) inside: Inside,
    /// The number of open elements that contain the payload. Deeper tags need no envelope check.
    pub(crate) payload_depth: usize,
    pub(crate) construct: Construct,
    /// The next end marks of CDATA sections, comments and instructions.
    pub(crate) section_ends: [NextMark; 3],
    /// The offset of the window in the text.
    pub(crate) window_offset: u64,
    pub(crate) facts: ItemFacts,
    /// Only filled in responses of OAI-PMH 1.x.
    pub(crate) v1_positions: V1Positions,
    /// Whether the fast path read the start of the item, and the item is a record with metadata.
    pub(crate) is_common: bool,
}

pub(crate) enum Progress {
    /// Continue with the next mark.
    Next,
    /// The item is complete.
    End,
}

pub(crate) const NOT_IN_PAYLOAD: usize = usize::MAX;
/// Longest identifier, datestamp or other typed text, in bytes.
pub(crate) const FIELD_BYTES_MAX: usize = 64 << 10;

impl Validator {
    /// The first bytes of the item's end tag. Inside an oversized section, they count as the end of an item
    /// whose section never ended.
    pub(crate) fn end_mark(&self) -> Vec<u8> {
        [b"</", self.names.prefix.as_slice(), self.names.element.name].concat()
    }

    /// The position of the end tag of an item in an oversized section.
    pub(crate) fn boundary_in_oversized(&self, body: &[u8]) -> Option<usize> {
        if self.is_oversized { memmem::find(body, &self.end_mark()) } else { None }
    }

    /// Creates a validator for the items of a list in the context `outer`.
    pub(crate) fn new(names: EnvelopeNames, outer: Context) -> Self {
        Self {
            index: Index::default(),
            names,
            is_oversized: false,
            outer,
            at: 0,
            search: 0,
            lexeme_start: 0,
            lexeme_end: 0,
            stack: Vec::with_capacity(32),
            dropped_names: Vec::new(),
            dropped_identifier: Vec::new(),
            dropped_datestamp: Vec::new(),
            sequences: Vec::with_capacity(4),
            inside: Inside::Children,
            payload_depth: NOT_IN_PAYLOAD,
            construct: Construct::None,
            section_ends: [NextMark::default(); 3],
            window_offset: 0,
            facts: ItemFacts::default(),
            v1_positions: V1Positions::default(),
            is_common: false,
        }
    }

    /// Creates a validator that only checks that one element is well-formed.
    pub(crate) fn for_payload(names: EnvelopeNames, outer: Context) -> Self {
        Self { inside: Inside::Payload { seen: false }, payload_depth: 0, ..Self::new(names, outer) }
    }

    /// Sets the context of the items. No item was read yet.
    pub(crate) fn set_context(&mut self, outer: Context) {
        self.outer = outer;
    }

    /// The window moved or grew, so the index of its bytes is invalid.
    pub(crate) fn new_window(&mut self, item_at: usize) {
        self.index.restart(item_at + self.at);
    }

    /// Whether the validator can resume after this defect, once the text after the last lexeme is
    /// repaired. In a payload, a defect of characters or of a tag leaves the state as it was after that
    /// lexeme.
    pub(crate) fn can_resume(&self, defect: Defect) -> bool {
        let is_local =
            matches!(defect.why, QuarantineReason::MismatchedTags | QuarantineReason::MalformedTag);
        is_local && self.in_payload() && self.construct == Construct::None
    }

    /// Resumes after the last lexeme in `item`, which has other text from there on. It is complete.
    pub(crate) fn resume(&mut self, item: &[u8], tags: &mut StartTagCache, limits: &Limits) -> Validation {
        self.at = self.lexeme_end;
        self.new_window(0);
        // The known end marks are those of the input.
        let section_ends = std::mem::take(&mut self.section_ends);
        let verdict = self.validate(TextWindow::whole(item).item_at(0), tags, limits);
        self.section_ends = section_ends;
        verdict
    }

    /// Prepares for the next item, which begins at `item_at` of the same window.
    pub(crate) fn next_item(&mut self, item_at: usize) {
        self.is_oversized = false;
        self.at = 0;
        self.search = 0;
        self.lexeme_start = 0;
        self.lexeme_end = 0;
        self.stack.clear();
        self.dropped_names.clear();
        self.dropped_identifier.clear();
        self.dropped_datestamp.clear();
        self.sequences.clear();
        self.inside = Inside::Children;
        self.payload_depth = NOT_IN_PAYLOAD;
        self.construct = Construct::None;
        self.facts.clear();
        self.v1_positions.clear();
        self.is_common = false;
        self.index.seek(item_at);
    }

    #[inline]
    pub(crate) fn element_name<'w>(&'w self, open: &OpenElement, window: ItemWindow<'w>) -> &'w [u8] {
        let (from, text) =
            if open.is_dropped { (0, self.dropped_names.as_slice()) } else { (window.item_at, window.text) };
        let at = from + open.name_at as usize;
        text.get(at..at + open.name_len as usize).unwrap_or_default()
    }

    /// The place in the item after the start tag of `metadata`, if the fast path read everything before it and the
    /// element is open.
    pub(crate) fn common_payload_at(&self) -> Option<usize> {
        const NAME: &[u8] = b"metadata";
        let metadata = self
            .stack
            .get(1)
            .filter(|open| self.is_common && open.name_len as usize == NAME.len() && !open.is_dropped)?;
        Some(metadata.name_at as usize + NAME.len() + b">".len())
    }

    #[inline]
    pub(crate) fn in_payload(&self) -> bool {
        self.stack.len() > self.payload_depth
    }

    /// Checks the text before `offset`. In the envelope, only blanks and the text of fields are legal.
    #[inline]
    pub(crate) fn text(&self, window: ItemWindow<'_>, offset: usize) -> Result<(), Validation> {
        if self.in_payload() || matches!(self.inside, Inside::Field { .. }) {
            return Ok(());
        }
        let text =
            window.text.get(window.item_at + self.lexeme_end..window.item_at + offset).unwrap_or_default();
        match text.iter().position(|&byte| !is_blank(byte)) {
            None => Ok(()),
            Some(at) if matches!(self.inside, Inside::Payload { .. }) => {
                Err(defect(self.lexeme_end + at, QuarantineReason::IllegalPayload))
            }
            Some(at) => Err(defect(self.lexeme_end + at, QuarantineReason::IllegalEnvelope)),
        }
    }
}

pub(crate) fn defect(at: usize, why: QuarantineReason) -> Validation {
    Validation::Defect(Defect { at, why })
}
