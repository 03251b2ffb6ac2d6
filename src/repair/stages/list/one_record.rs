//! GetRecord with several records: the one that was asked for leaves.

use memchr::memchr;

use crate::repair::catalog::{QuarantineReason, RepairId};
use crate::repair::output::head_buffer::Role;
use crate::repair::sink::Sink;
use crate::repair::stages::envelope::misc_len;
use crate::repair::stages::item_search::is_item;
use crate::repair::stages::list::emit::quarantine_item;
use crate::repair::stages::list::state::List;
use crate::repair::stages::response::Response;
use crate::repair::text::escape::resolve;

/// Whether an item leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayEmit {
    Yes,
    /// It was dropped, or put aside.
    No,
    NeedMore,
}

/// Whether a record of GetRecord is one that nobody asked for, with more behind it; `None`
/// when more text is needed to say.
fn is_skipped_record(
    response: &Response,
    list: &List,
    identifier: &[u8],
    after: &[u8],
    last: bool,
) -> Option<bool> {
    let Some(requested) = response.requested_identifier.as_ref().filter(|_| !response.output.is_open())
    else {
        return Some(false);
    };
    if resolve(identifier) == *requested || response.is_off(RepairId::AnotherRecord) {
        return Some(false);
    }
    let within = after.get(..after.len().min(response.limits().head_bytes_max)).unwrap_or_default();
    let next = misc_len(within);
    let tag = within.get(next..).unwrap_or_default();
    let is_undecided = memchr(b'>', tag).is_none() || tag.starts_with(b"<!") || tag.starts_with(b"<?");
    if is_undecided && !last && after.len() <= within.len() {
        return None;
    }
    Some(is_item(response, list, tag))
}

/// Whether a record of GetRecord that is in order leaves; what was not asked for is dropped.
pub(crate) fn may_emit(
    response: &mut Response,
    list: &mut List,
    identifier: &[u8],
    (rest, at, end): (&[u8], usize, usize),
    last: bool,
    sink: &mut impl Sink,
) -> MayEmit {
    let raw = rest.get(at..end).unwrap_or_default();
    match is_skipped_record(response, list, identifier, rest.get(end..).unwrap_or_default(), last) {
        None => return MayEmit::NeedMore,
        Some(true) => {
            list.skipped_records += 1;
            let place = response.base + at as u64;
            response.output.change(Role::Plain, RepairId::AnotherRecord, place, raw, b"", sink);
            return MayEmit::No;
        }
        Some(false) => {}
    }
    list.requested_emitted =
        response.requested_identifier.as_ref().is_some_and(|requested| *requested == resolve(identifier));
    if !list.requested_emitted && list.skipped_records > 0 {
        // None of them is the one.
        quarantine_item(response, list, raw, at, QuarantineReason::IllegalEnvelope, sink);
        return MayEmit::No;
    }
    MayEmit::Yes
}
