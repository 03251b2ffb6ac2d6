//! One step of a stage: the text that it reads, the state of the response, and the receiver of its output.
//!
//! A stage reads the window and emits its beginning with `keep`, `change` or `keep_edited`. Each of these
//! settles the bytes that it emits.

use crate::catalog::RepairId;
use crate::lex::window::TextWindow;
use crate::output::head_buffer::{Output, PartRole};
use crate::sink::{Repair, Sink};
use crate::stages::response::{Response, StepResult, writes_request_echo};
use crate::text::edits::Edits;
use std::ops::Range;

/// What one step of a stage works on.
pub(crate) struct Step<'s, S> {
    pub(crate) response: &'s mut Response,
    /// The unsettled text.
    pub(crate) window: TextWindow<'s>,
    pub(crate) sink: &'s mut S,
}

impl<S: Sink> Step<'_, S> {
    /// Returns the output of the response.
    #[inline]
    pub(crate) fn output(&mut self) -> Output<'_, S> {
        self.response.output.to(self.sink)
    }

    /// Requests more text. See [`Response::need_more`].
    pub(crate) fn need_more(&mut self) -> StepResult {
        self.response.need_more(self.window.text)
    }

    /// Emits the first `len` bytes of the window unchanged.
    pub(crate) fn keep(&mut self, role: PartRole, len: usize) -> StepResult {
        let (base, text) = (self.response.position.base(), self.window.text.get(..len).unwrap_or_default());
        self.output().keep(role, base, text);
        StepResult::Settled(len)
    }

    /// Replaces the first `len` bytes of the window.
    pub(crate) fn change(&mut self, id: RepairId, len: usize, replacement: &[u8]) -> StepResult {
        self.replace(PartRole::Plain, id, 0..len, replacement);
        StepResult::Settled(len)
    }

    /// Adds text at `at` in the window.
    pub(crate) fn insert(&mut self, role: PartRole, id: RepairId, at: usize, text: &[u8]) {
        self.replace(role, id, at..at, text);
    }

    /// Replaces a range of the window.
    pub(crate) fn replace(&mut self, role: PartRole, id: RepairId, range: Range<usize>, replacement: &[u8]) {
        let offset = self.response.position.base() + range.start as u64;
        let original = self.window.text.get(range).unwrap_or_default();
        self.output().change(role, &Repair::outside_items(id, offset, original, replacement));
    }

    /// Removes a range of the window whose content is emitted elsewhere.
    pub(crate) fn remove_without_loss(&mut self, id: RepairId, range: Range<usize>) {
        let offset = self.response.position.base() + range.start as u64;
        let original = self.window.text.get(range).unwrap_or_default();
        let repair = Repair::outside_items(id, offset, original, b"");
        self.output().change_without_loss(PartRole::Plain, &repair);
    }

    /// Quarantines the first `len` bytes of the window. They contain an item or a token that cannot be read.
    pub(crate) fn quarantine_unread(&mut self, len: usize) -> StepResult {
        let (base, text) = (self.response.position.base(), self.window.text.get(..len).unwrap_or_default());
        self.output().quarantine_unread(None, base, text);
        StepResult::Settled(len)
    }

    /// Emits the first `len` bytes of the window with edits inside.
    pub(crate) fn keep_edited(&mut self, role: PartRole, len: usize, edits: &Edits) -> StepResult {
        let (base, text) = (self.response.position.base(), self.window.text);
        let mut at = 0;
        for edit in edits.iter() {
            self.output().keep(role, base + at as u64, text.get(at..edit.start).unwrap_or_default());
            let is_request = matches!(edit.id, RepairId::RewriteRequest | RepairId::MissingRequest);
            let role =
                if is_request && writes_request_echo(self.response) { PartRole::RequestEcho } else { role };
            self.replace(role, edit.id, edit.start..edit.end, &edit.replacement);
            at = edit.end;
        }
        self.output().keep(role, base + at as u64, text.get(at..len).unwrap_or_default());
        StepResult::Settled(len)
    }

    /// Writes the window from `written` up to `at`, and moves `written` there.
    #[inline]
    pub(crate) fn flush(&mut self, written: &mut usize, at: usize) {
        if *written < at {
            self.sink.write(self.window.text.get(*written..at).unwrap_or_default());
            *written = at;
        }
    }
}
