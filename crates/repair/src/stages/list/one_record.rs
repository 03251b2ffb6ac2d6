//! GetRecord with several records: only the requested record is emitted.
//!
//! The items of a list are checked with it.

use crate::catalog::{QuarantineReason, RepairId};
use crate::lex::search::memchr;
use crate::lex::window::TextWindow;
use crate::output::head_buffer::PartRole;
use crate::sink::Sink;
use crate::stages::envelope::misc_len;
use crate::stages::item_search::is_item;
use crate::stages::list::emit::{ReceivedItem, quarantine_item};
use crate::stages::list::state::List;
use crate::stages::response::Response;
use crate::stages::step::Step;
use crate::text::escape::resolve;

/// Whether an item is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayEmit {
    Yes,
    /// It was dropped or quarantined.
    No,
    NeedMore,
}

/// Returns whether a record of GetRecord was not requested and another record follows it.
///
/// Returns `None` if more text is needed to decide.
fn is_skipped_record(
    response: &Response,
    list: &List,
    identifier: &[u8],
    window: TextWindow<'_>,
) -> Option<bool> {
    let after = window.text;
    if response.output.is_open() {
        return Some(false);
    }
    let Some(requested) = response.request.requested_identifier() else { return Some(false) };
    if resolve(identifier) == *requested || response.is_off(RepairId::AnotherRecord) {
        return Some(false);
    }
    let within = after.get(..after.len().min(response.limits().head_bytes_max)).unwrap_or_default();
    let next = misc_len(within);
    let tag = within.get(next..).unwrap_or_default();
    let is_undecided = memchr(b'>', tag).is_none() || tag.starts_with(b"<!") || tag.starts_with(b"<?");
    if is_undecided && !window.is_last && after.len() <= within.len() {
        return None;
    }
    Some(is_item(response, list, tag))
}

/// Decides whether a valid record of GetRecord is emitted. A record that was not requested is dropped.
pub(crate) fn may_emit(
    step: &mut Step<'_, impl Sink>,
    list: &mut List,
    identifier: &[u8],
    item: ReceivedItem<'_>,
) -> MayEmit {
    match is_skipped_record(step.response, list, identifier, step.window.after(item.range().end)) {
        None => return MayEmit::NeedMore,
        Some(true) => {
            list.requested.note_skipped();
            step.replace(PartRole::Plain, RepairId::AnotherRecord, item.range(), b"");
            return MayEmit::No;
        }
        Some(false) => {}
    }
    list.requested.set_emitted(
        step.response
            .request
            .requested_identifier()
            .is_some_and(|requested| *requested == *resolve(identifier)),
    );
    if !list.requested.is_emitted() && list.requested.has_skipped() {
        // No record has the requested identifier.
        quarantine_item(step, list, item, QuarantineReason::IllegalEnvelope);
        return MayEmit::No;
    }
    MayEmit::Yes
}
