//! Lists that are not complete: cut short, or with items that could not be read.
//!
//! Such a list never gets a neat end. A file says so in a comment; in a
//! transfer the end tags of the list and of the root are never written.

use super::Ending;
use super::catalogue::{NotOai, RepairId};
use super::engine::{Engine, List, Stage, Step};
use super::gate::Role;
use super::sink::Sink;

/// What a document says that is closed although its list is not complete.
pub(super) const INCOMPLETE: &[u8] = b"<!-- oaimend: input ended early, list is incomplete -->";

impl Engine {
    /// A list that was cut short.
    pub(super) fn list_cut(&mut self, list: &List) {
        self.verb = Some(list.verb);
        self.truncated = true;
        if !self.gate.is_open() {
            self.refuse(NotOai::NothingKept);
            return;
        }
        self.stage = Stage::Lost;
    }

    /// Closes what went out, with a comment, where the caller wants that.
    pub(super) fn close_cut(&mut self, sink: &mut impl Sink) {
        self.truncated = true;
        if self.config.ending == Ending::Abort {
            return;
        }
        let list = self.verb.map(|verb| self.end_tag_of(verb.name())).unwrap_or_default();
        let closing = [list.as_slice(), INCOMPLETE, &self.end_tag_of(b"OAI-PMH")].concat();
        self.gate.change(Role::Plain, RepairId::TruncatedInput, self.base, b"", &closing, sink);
    }

    /// Whether nothing more may be written, because the list would look complete and is not.
    pub(super) fn must_break_off(&self) -> bool {
        self.gate.incomplete && self.gate.is_open() && self.config.ending == Ending::Abort
    }

    pub(super) fn break_off(&mut self) -> Step {
        self.truncated = true;
        self.stage = Stage::Lost;
        Step::Settled(0)
    }

    /// Says in a document that is closed that it has lost items, at offset `at` of the text.
    pub(super) fn note_incomplete(&mut self, at: u64, sink: &mut impl Sink) {
        let is_closed = self.config.ending == Ending::Close && self.gate.is_open();
        if self.gate.incomplete && is_closed && !std::mem::replace(&mut self.is_noted, true) {
            self.gate.change(Role::Plain, RepairId::TruncatedInput, at, b"", INCOMPLETE, sink);
        }
    }
}
