//! GetRecord with several records: the one that was asked for leaves.

use memchr::memchr;

use super::catalogue::{QuarantineReason, RepairId};
use super::engine::{Engine, List};
use super::gate::Role;
use super::sink::Sink;
use super::text::resolve;

/// Whether an item leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    Yes,
    /// It was dropped, or put aside.
    No,
    NeedMore,
}

impl Engine {
    /// Whether a record of GetRecord is one that nobody asked for, with more behind it; `None`
    /// when more text is needed to say.
    fn is_passed_over(&self, list: &List, identifier: &[u8], behind: &[u8], last: bool) -> Option<bool> {
        let Some(asked) = self.asked_identifier.as_ref().filter(|_| !self.gate.is_open()) else {
            return Some(false);
        };
        if resolve(identifier) == *asked || self.is_off(RepairId::AnotherRecord) {
            return Some(false);
        }
        let within = behind.get(..behind.len().min(self.limits().head_bytes_max)).unwrap_or_default();
        let next = self.misc_len(within);
        let tag = within.get(next..).unwrap_or_default();
        let is_undecided = memchr(b'>', tag).is_none() || tag.starts_with(b"<!") || tag.starts_with(b"<?");
        if is_undecided && !last && behind.len() <= within.len() {
            return None;
        }
        Some(self.is_item(list, tag))
    }

    /// Whether a record of GetRecord that is in order leaves; what was not asked for is dropped.
    pub(super) fn leaves(
        &mut self,
        list: &mut List,
        identifier: &[u8],
        (rest, at, end): (&[u8], usize, usize),
        last: bool,
        sink: &mut impl Sink,
    ) -> Leaves {
        let raw = rest.get(at..end).unwrap_or_default();
        match self.is_passed_over(list, identifier, rest.get(end..).unwrap_or_default(), last) {
            None => return Leaves::NeedMore,
            Some(true) => {
                list.passed_over += 1;
                let place = self.base + at as u64;
                self.gate.change(Role::Plain, RepairId::AnotherRecord, place, raw, b"", sink);
                return Leaves::No;
            }
            Some(false) => {}
        }
        list.asked_left = self.asked_identifier.as_ref().is_some_and(|asked| *asked == resolve(identifier));
        if !list.asked_left && list.passed_over > 0 {
            // None of them is the one.
            self.put_aside(list, raw, at, QuarantineReason::IllegalEnvelope, sink);
            return Leaves::No;
        }
        Leaves::Yes
    }
}
