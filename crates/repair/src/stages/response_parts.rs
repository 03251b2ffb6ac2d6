//! The parts of the state of a response that are smaller than a stage: its date, the verb element, what speaks
//! against an error, its end, and the position in the text.

use crate::catalog::NotOai;
use oaimend_oai::Verb;

/// The responseDate.
#[derive(Debug, Default)]
pub(crate) struct ResponseDate {
    text: Vec<u8>,
    is_of_source: bool,
}

impl ResponseDate {
    /// A date as written. `is_of_source`: the source gave it, in any form.
    pub(crate) fn new(text: Vec<u8>, is_of_source: bool) -> Self {
        Self { text, is_of_source }
    }

    /// Returns its text as written.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns its text, if the source gave a readable date.
    pub(crate) fn text_of_source(&self) -> Option<&[u8]> {
        self.is_of_source.then_some(self.text.as_slice())
    }
}

/// The verb element as received.
#[derive(Debug, Default)]
pub(crate) struct VerbElement {
    name: Option<Vec<u8>>,
    headers_only: bool,
}

impl VerbElement {
    /// Returns its local name, if it differs from the verb.
    pub(crate) fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Forgets what an earlier verb element was.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn set_name(&mut self, name: Option<Vec<u8>>) {
        self.name = name;
    }

    /// Returns whether ListIdentifiers contains whole records.
    pub(crate) fn headers_only(&self) -> bool {
        self.headers_only
    }

    pub(crate) fn set_headers_only(&mut self, headers_only: bool) {
        self.headers_only = headers_only;
    }
}

/// Parts of the source's response for which an error must not replace it.
#[derive(Debug, Default)]
pub(crate) struct ErrorDoubts {
    unknown_code: bool,
    items_outside_list: bool,
}

impl ErrorDoubts {
    /// Returns whether an error was read whose code resembles no legal one.
    pub(crate) fn has_unknown_code(&self) -> bool {
        self.unknown_code
    }

    pub(crate) fn note_unknown_code(&mut self) {
        self.unknown_code = true;
    }

    /// Returns whether items outside a list were dropped. Then the response must not become an error.
    pub(crate) fn has_items_outside_list(&self) -> bool {
        self.items_outside_list
    }

    /// Notes dropped text, and whether it contained an item.
    pub(crate) fn note_dropped(&mut self, contained_item: bool) {
        self.items_outside_list |= contained_item;
    }
}

/// How a response ends.
#[derive(Debug, Default)]
pub(crate) struct ResponseEnd {
    not_oai: Option<NotOai>,
    is_truncated: bool,
    is_incomplete_noted: bool,
    list_verb: Option<Verb>,
}

impl ResponseEnd {
    /// Returns why the response is refused.
    pub(crate) fn refusal(&self) -> Option<NotOai> {
        self.not_oai
    }

    pub(crate) fn refuse(&mut self, reason: NotOai) {
        self.not_oai = Some(reason);
    }

    /// Returns whether the list is truncated.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    pub(crate) fn truncate(&mut self) {
        self.is_truncated = true;
    }

    /// Notes that the document has the comment about an incomplete list. Returns whether it had it before.
    pub(crate) fn note_incomplete(&mut self) -> bool {
        std::mem::replace(&mut self.is_incomplete_noted, true)
    }

    /// Returns the verb of the list, once the list is closed.
    pub(crate) fn list_verb(&self) -> Option<Verb> {
        self.list_verb
    }

    pub(crate) fn close_list(&mut self, verb: Verb) {
        self.list_verb = Some(verb);
    }

    /// Forgets the closed list, because nothing of it was written.
    pub(crate) fn forget_list(&mut self) {
        self.list_verb = None;
    }
}

/// The position of the stages in the text.
#[derive(Debug, Default)]
pub(crate) struct Position {
    base: u64,
    retry_at: usize,
    continues_at: u64,
    in_second_document: bool,
}

impl Position {
    /// Returns the offset of the first unsettled byte.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Settles the next bytes. The stage may read again.
    pub(crate) fn settle(&mut self, bytes: usize) {
        self.retry_at = 0;
        self.base += bytes as u64;
    }

    /// Returns whether the stage waits for more unsettled text than `len` bytes.
    pub(crate) fn needs_more_than(&self, len: usize) -> bool {
        len < self.retry_at
    }

    /// Waits until the unsettled text of `len` bytes has grown by a quarter.
    pub(crate) fn wait(&mut self, len: usize) {
        self.retry_at = len + len / 4 + 1;
    }

    /// Returns the offset at which the list continues. End tags before it are stray.
    pub(crate) fn continues_at(&self) -> u64 {
        self.continues_at
    }

    /// Notes that the list continues `ahead` bytes after the settled text.
    pub(crate) fn continue_list_at(&mut self, ahead: usize) {
        self.continues_at = self.base + ahead as u64;
    }

    pub(crate) fn in_second_document(&self) -> bool {
        self.in_second_document
    }

    pub(crate) fn enter_second_document(&mut self) {
        self.in_second_document = true;
    }
}
