//! Lists that are not complete: cut short, or with items that could not be read.
//!
//! Such a list never gets a neat end. A file says so in a comment; in a
//! transfer the end tags of the list and of the root are never written.

use crate::repair::catalog::{NotOai, RepairId};
use crate::repair::config::Ending;
use crate::repair::output::head_buffer::Role;
use crate::repair::sink::Sink;
use crate::repair::stages::envelope::end_tag_of;
use crate::repair::stages::list::state::List;
use crate::repair::stages::response::{Response, Stage, Step};

/// What a document says that is closed although its list is not complete.
pub(crate) const INCOMPLETE: &[u8] = b"<!-- oaimend: input ended early, list is incomplete -->";

/// A list that was cut short.
pub(crate) fn truncate_list(response: &mut Response, list: &List) {
    response.verb = Some(list.verb);
    response.truncated = true;
    if !response.output.is_open() {
        response.refuse(NotOai::NothingKept);
        return;
    }
    response.stage = Stage::Lost;
}

/// Closes what went out, with a comment, where the caller wants that.
pub(crate) fn close_truncated(response: &mut Response, sink: &mut impl Sink) {
    response.truncated = true;
    if response.config.ending == Ending::Abort {
        return;
    }
    let list = response.verb.map(|verb| end_tag_of(response, verb.name())).unwrap_or_default();
    let closing = [list.as_slice(), INCOMPLETE, &end_tag_of(response, b"OAI-PMH")].concat();
    response.output.change(Role::Plain, RepairId::TruncatedInput, response.base, b"", &closing, sink);
}

/// Whether nothing more may be written, because the list would look complete and is not.
pub(crate) fn must_abort(response: &Response) -> bool {
    response.output.incomplete && response.output.is_open() && response.config.ending == Ending::Abort
}

pub(crate) fn abort_list(response: &mut Response) -> Step {
    response.truncated = true;
    response.stage = Stage::Lost;
    Step::Settled(0)
}

/// Says in a document that is closed that it has lost items, at offset `at` of the text.
pub(crate) fn note_incomplete(response: &mut Response, at: u64, sink: &mut impl Sink) {
    let is_closed = response.config.ending == Ending::Close && response.output.is_open();
    if response.output.incomplete && is_closed && !std::mem::replace(&mut response.is_incomplete_noted, true)
    {
        response.output.change(Role::Plain, RepairId::TruncatedInput, at, b"", INCOMPLETE, sink);
    }
}
