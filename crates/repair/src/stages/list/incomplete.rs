//! Incomplete lists: truncated ones, and those with unreadable items.
//!
//! Such a list never looks complete. A file gets a comment. In a transfer, the end tags of the list and of
//! the root are never written.

use crate::catalog::{NotOai, RepairId};
use crate::config::Ending;
use crate::output::head_buffer::PartRole;
use crate::sink::Sink;
use crate::stages::envelope::end_tag_of;
use crate::stages::list::state::List;
use crate::stages::response::{Response, Stage, Step};

/// The comment in a closed document whose list is incomplete.
pub(crate) const INCOMPLETE: &[u8] = b"<!-- oaimend: input ended early, list is incomplete -->";

/// Ends a truncated list.
pub(crate) fn truncate_list(response: &mut Response, list: &List) {
    response.verb = Some(list.verb);
    response.truncated = true;
    if !response.output.is_open() {
        response.refuse(NotOai::NothingKept);
        return;
    }
    response.stage = Stage::Truncated;
}

/// Closes the emitted elements with a comment if the caller configured that.
pub(crate) fn close_truncated(response: &mut Response, sink: &mut impl Sink) {
    response.truncated = true;
    if response.config.ending == Ending::Abort {
        return;
    }
    let list = response.verb.map(|verb| end_tag_of(response, verb.as_bytes())).unwrap_or_default();
    let closing = [list.as_slice(), INCOMPLETE, &end_tag_of(response, b"OAI-PMH")].concat();
    response.output.change(PartRole::Plain, RepairId::TruncatedInput, response.base, b"", &closing, sink);
}

/// Returns whether nothing more may be written, because the incomplete list would look complete.
pub(crate) fn must_abort(response: &Response) -> bool {
    response.output.incomplete && response.output.is_open() && response.config.ending == Ending::Abort
}

pub(crate) fn abort_list(response: &mut Response) -> Step {
    response.truncated = true;
    response.stage = Stage::Truncated;
    Step::Settled(0)
}

/// Adds a comment at offset `at` of the text to a closed document that has lost items.
pub(crate) fn note_incomplete(response: &mut Response, at: u64, sink: &mut impl Sink) {
    let is_closed = response.config.ending == Ending::Close && response.output.is_open();
    if response.output.incomplete && is_closed && !std::mem::replace(&mut response.is_incomplete_noted, true)
    {
        response.output.change(PartRole::Plain, RepairId::TruncatedInput, at, b"", INCOMPLETE, sink);
    }
}
