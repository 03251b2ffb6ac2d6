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
use crate::stages::response::{Response, Stage, StepResult};
use crate::stages::step::Step;

/// The comment in a closed document whose list is incomplete.
pub(crate) const INCOMPLETE: &[u8] = b"<!-- oaimend: input ended early, list is incomplete -->";

/// Ends a truncated list.
pub(crate) fn truncate_list(response: &mut Response, list: &List) {
    response.end.close_list(list.verb());
    response.end.truncate();
    if !response.output.is_open() {
        response.refuse(NotOai::NothingKept);
        return;
    }
    response.enter(Stage::Truncated);
}

/// Closes the emitted elements with a comment if the caller configured that.
pub(crate) fn close_truncated(step: &mut Step<'_, impl Sink>) {
    step.response.end.truncate();
    if step.response.config().ending == Ending::Abort {
        return;
    }
    let list = step
        .response
        .end
        .list_verb()
        .map(|verb| end_tag_of(step.response, verb.as_bytes()))
        .unwrap_or_default();
    let closing = [list.as_slice(), INCOMPLETE, &end_tag_of(step.response, b"OAI-PMH")].concat();
    step.insert(PartRole::Plain, RepairId::TruncatedInput, 0, &closing);
}

/// Returns whether nothing more may be written, because the incomplete list would look complete.
pub(crate) fn must_abort(response: &Response) -> bool {
    response.output.is_incomplete() && response.output.is_open() && response.config().ending == Ending::Abort
}

pub(crate) fn abort_list(response: &mut Response) -> StepResult {
    response.end.truncate();
    response.enter(Stage::Truncated);
    StepResult::Settled(0)
}

/// Adds a comment at offset `at` of the text to a closed document that has lost items.
pub(crate) fn note_incomplete(step: &mut Step<'_, impl Sink>, at: usize) {
    let is_closed = step.response.config().ending == Ending::Close && step.response.output.is_open();
    if step.response.output.is_incomplete() && is_closed && !step.response.end.note_incomplete() {
        step.insert(PartRole::Plain, RepairId::TruncatedInput, at, INCOMPLETE);
    }
}
