//! The parts of the state of a list: its token, the current item, dropped text, and the record of GetRecord.

use crate::boundary::boundary_search::BoundarySearch;
use crate::boundary::removable::{is_fatal_message, is_punctuation};
use crate::validate::state::Defect;

/// A token that preceded other items. It is written at the end.
#[derive(Debug)]
pub(crate) struct HeldToken {
    pub(crate) element: Vec<u8>,
    /// `totalElements` as received.
    pub(crate) total_elements: Option<u64>,
}

/// The resumptionToken of a list.
#[derive(Debug, Default)]
pub(crate) struct ListToken {
    held: Option<HeldToken>,
    is_read: bool,
    is_written: bool,
    ends_empty_list: bool,
}

impl ListToken {
    /// Returns the token that is written at the end.
    pub(crate) fn held(&self) -> Option<&[u8]> {
        self.held.as_ref().map(|held| held.element.as_slice())
    }

    pub(crate) fn hold(&mut self, token: HeldToken) {
        self.held = Some(token);
    }

    pub(crate) fn take_held(&mut self) -> Option<HeldToken> {
        self.held.take()
    }

    /// Returns whether a whole token was read.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    pub(crate) fn note_read(&mut self) {
        self.is_read = true;
    }

    /// Returns whether the list's token was written.
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Notes that the last token of the list was written. It replaces the held one.
    pub(crate) fn note_written(&mut self) {
        self.held = None;
        self.is_written = true;
    }

    /// Returns whether the list has no items, and its empty token was removed.
    pub(crate) fn ends_empty_list(&self) -> bool {
        self.ends_empty_list
    }

    /// Notes that the list has no items. Its empty token is not written.
    pub(crate) fn note_empty_list(&mut self) {
        self.held = None;
        self.ends_empty_list = true;
    }
}

/// The item that is read.
#[derive(Debug, Default)]
pub(crate) struct CurrentItem {
    is_begun: bool,
    offset: u64,
    search: Option<BoundarySearch>,
    defect: Option<Defect>,
}

impl CurrentItem {
    /// Returns whether a part of it was read.
    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun
    }

    pub(crate) fn begin(&mut self) {
        self.is_begun = true;
    }

    pub(crate) fn end(&mut self) {
        self.is_begun = false;
    }

    /// Returns the offset of an oversized item in the text.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn set_offset(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Returns the search for its end, once it is known to be broken.
    pub(crate) fn search(&self) -> Option<&BoundarySearch> {
        self.search.as_ref()
    }

    pub(crate) fn search_mut(&mut self) -> Option<&mut BoundarySearch> {
        self.search.as_mut()
    }

    /// Starts the search for its end.
    pub(crate) fn begin_search(&mut self, search: BoundarySearch) {
        self.search = Some(search);
        self.defect = None;
    }

    /// Starts the second search for its end.
    pub(crate) fn search_again(&mut self) {
        self.search = self.search.take().map(BoundarySearch::into_second_search);
    }

    pub(crate) fn take_search(&mut self) -> Option<BoundarySearch> {
        self.search.take()
    }

    /// Notes the defect at which the validator stopped. It may resume there.
    pub(crate) fn set_defect(&mut self, defect: Defect) {
        self.defect = Some(defect);
    }

    pub(crate) fn take_defect(&mut self) -> Option<Defect> {
        self.defect.take()
    }
}

/// The text of a list that was dropped, because it is neither an item nor a token.
#[derive(Debug, Default)]
pub(crate) struct DroppedText {
    is_any: bool,
    is_since_last_item: bool,
    source_aborted: bool,
}

impl DroppedText {
    /// Returns whether dropped text may have contained the reason why the list is empty.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any
    }

    /// Returns whether text was dropped since the last item.
    pub(crate) fn is_since_last_item(&self) -> bool {
        self.is_since_last_item
    }

    /// Returns whether the source stopped in the last item or after it.
    pub(crate) fn source_aborted(&self) -> bool {
        self.source_aborted
    }

    pub(crate) fn set_source_aborted(&mut self, source_aborted: bool) {
        self.source_aborted = source_aborted;
    }

    /// Notes text between items.
    pub(crate) fn note_text(&mut self, text: &[u8]) {
        self.is_any = true;
        self.is_since_last_item |= !is_punctuation(text);
        self.source_aborted |= is_fatal_message(text);
    }

    /// Notes an unknown element with this content.
    pub(crate) fn note_element(&mut self, content: &[u8]) {
        self.is_any = true;
        self.source_aborted |= is_fatal_message(content);
    }

    /// Notes an error.
    pub(crate) fn note_error(&mut self) {
        self.is_any = true;
    }

    /// Notes that the text since the last item counts as an item.
    pub(crate) fn note_counted(&mut self) {
        self.is_since_last_item = false;
    }

    /// Notes that an item begins.
    pub(crate) fn begin_item(&mut self) {
        self.is_since_last_item = false;
        self.source_aborted = false;
    }
}

/// The record that GetRecord requested.
#[derive(Debug, Default)]
pub(crate) struct RequestedRecord {
    has_skipped: bool,
    is_emitted: bool,
}

impl RequestedRecord {
    /// Returns whether records were dropped because nobody requested them.
    pub(crate) fn has_skipped(&self) -> bool {
        self.has_skipped
    }

    pub(crate) fn note_skipped(&mut self) {
        self.has_skipped = true;
    }

    /// Returns whether it was emitted.
    pub(crate) fn is_emitted(&self) -> bool {
        self.is_emitted
    }

    pub(crate) fn set_emitted(&mut self, is_emitted: bool) {
        self.is_emitted = is_emitted;
    }
}
