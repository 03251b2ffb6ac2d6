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
pub(crate) enum MayLeave {
    Yes,
    /// It was dropped, or put aside.
    No,
    NeedMore,
}

/// Whether a record of GetRecord is one that nobody asked for, with more behind it; `None`
/// when more text is needed to say.
fn is_passed_over(
    response: &Response,
    list: &List,
    identifier: &[u8],
    behind: &[u8],
    last: bool,
) -> Option<bool> {
    let Some(asked) = response.asked_identifier.as_ref().filter(|_| !response.gate.is_open()) else {
        return Some(false);
    };
    if resolve(identifier) == *asked || response.is_off(RepairId::AnotherRecord) {
        return Some(false);
    }
    let within = behind.get(..behind.len().min(response.limits().head_bytes_max)).unwrap_or_default();
    let next = misc_len(within);
    let tag = within.get(next..).unwrap_or_default();
    let is_undecided = memchr(b'>', tag).is_none() || tag.starts_with(b"<!") || tag.starts_with(b"<?");
    if is_undecided && !last && behind.len() <= within.len() {
        return None;
    }
    Some(is_item(response, list, tag))
}

/// Whether a record of GetRecord that is in order leaves; what was not asked for is dropped.
pub(crate) fn may_leave(
    response: &mut Response,
    list: &mut List,
    identifier: &[u8],
    (rest, at, end): (&[u8], usize, usize),
    last: bool,
    sink: &mut impl Sink,
) -> MayLeave {
    let raw = rest.get(at..end).unwrap_or_default();
    match is_passed_over(response, list, identifier, rest.get(end..).unwrap_or_default(), last) {
        None => return MayLeave::NeedMore,
        Some(true) => {
            list.passed_over += 1;
            let place = response.base + at as u64;
            response.gate.change(Role::Plain, RepairId::AnotherRecord, place, raw, b"", sink);
            return MayLeave::No;
        }
        Some(false) => {}
    }
    list.asked_left = response.asked_identifier.as_ref().is_some_and(|asked| *asked == resolve(identifier));
    if !list.asked_left && list.passed_over > 0 {
        // None of them is the one.
        quarantine_item(response, list, raw, at, QuarantineReason::IllegalEnvelope, sink);
        return MayLeave::No;
    }
    MayLeave::Yes
}
