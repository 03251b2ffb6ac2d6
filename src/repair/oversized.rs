//! Items longer than `record_bytes_max`: passed on as they come while they are clean.
//!
//! What was written cannot be taken back, so only repairs of certainty *exact*
//! are made; at any other defect the list is given up. Where records come from is
//! not told of them: where it is told of others, no repair of content is made either.

use super::catalogue::{Certainty, Effect, NotOai, RepairId};
use super::engine::{Engine, List, Stage, Step};
use super::gate::{Answer, Role};
use super::list::Next;
use super::name::REFERENCE_BYTES_MAX;
use super::scan::{Scan, Scanner};
use super::sink::{RecordFacts, Repair, Sink};
use super::text::{Node, exact_repair, mend_node};

impl Engine {
    /// The item that `rest` begins with is clean so far and too long to be held.
    pub(super) fn begin_oversized(&mut self, list: &mut List, rest: &[u8], sink: &mut impl Sink) -> Next {
        if list.token_written {
            // Nothing may stand behind the token, and to be put aside it is too long.
            self.gate.lost += 1;
            self.leave_broken_list(list);
            return Next::Leave(Step::Settled(0));
        }
        self.tell_swallowed(list, rest.get(..list.scanner.at).unwrap_or_default(), 0, sink);
        self.gate.release(Answer::List, None, sink);
        let clean = list.scanner.clean_bytes(rest);
        list.scanner.let_go(rest, clean);
        list.item_offset = self.base;
        let placeholder = self.list_of(list.verb);
        self.stage = Stage::Oversized(Box::new(placeholder));
        Next::Leave(self.keep(Role::Plain, rest, clean, sink))
    }

    /// Goes on in the item.
    pub(super) fn oversized(&mut self, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        let Stage::Oversized(mut list) = std::mem::replace(&mut self.stage, Stage::Done) else {
            return Step::Settled(rest.len());
        };
        list.scanner.new_window(0);
        let verdict = list.scanner.scan_on(rest, last, &mut self.tags, &self.config.limits);
        match verdict {
            Scan::Clean(len) => {
                list.in_item = false;
                list.scanner.keep_facts(rest);
                let facts = RecordFacts {
                    identifier: &list.scanner.identifier_let_go,
                    datestamp: &list.scanner.datestamp_let_go,
                    deleted: list.scanner.facts.deleted,
                    offset: list.item_offset,
                    repairs: 0,
                    tilde_in_set: false,
                };
                self.gate.committed(&facts, b"", sink);
                self.stage = Stage::List(list);
                self.keep(Role::Plain, rest, len, sink)
            }
            Scan::NeedMore => {
                let clean = list.scanner.clean_bytes(rest);
                if list.scanner.is_hopeless(rest) {
                    return self.give_up(&list, rest, clean, sink);
                }
                list.scanner.let_go(rest, clean);
                self.stage = Stage::Oversized(list);
                if clean == 0 { Step::NeedMore } else { self.keep(Role::Plain, rest, clean, sink) }
            }
            Scan::Defect(defect) => {
                let at = defect.at.min(rest.len());
                let broken = rest.get(at..).unwrap_or_default();
                // A character or reference must be there as a whole; tags are.
                let is_tag = matches!(broken.first(), Some(b'<' | b'>'));
                if broken.len() < REFERENCE_BYTES_MAX && !is_tag && !last {
                    self.stage = Stage::Oversized(list);
                    return Step::NeedMore;
                }
                match self.exact_repair_at(&list.scanner, rest, at) {
                    Some((len, id, replacement)) => {
                        list.scanner.step_over(rest, at + len);
                        self.keep(Role::Plain, rest, at, sink);
                        let original = broken.get(..len).unwrap_or_default();
                        let identifier = list.scanner.identifier_let_go.as_slice();
                        let record = (!identifier.is_empty()).then_some(identifier);
                        let offset = self.base + at as u64;
                        let repair = Repair { id, offset, record, original, replacement: &replacement };
                        self.gate.report(&repair, sink);
                        self.stage = Stage::Oversized(list);
                        Step::Settled(at + len)
                    }
                    None => {
                        let at = list.scanner.cut_at(at);
                        self.give_up(&list, rest, at, sink)
                    }
                }
            }
            Scan::TooLong => self.give_up(&list, rest, 0, sink),
        }
    }

    /// The repair for the defect at `at`, where one can be made in what may not be seen again.
    fn exact_repair_at(
        &self,
        scanner: &Scanner,
        rest: &[u8],
        at: usize,
    ) -> Option<(usize, RepairId, Vec<u8>)> {
        if !scanner.may_hold_text() {
            return None;
        }
        let broken = rest.get(at..)?;
        // Half a tag must not leave: all that is wrong with it is mended, or nothing.
        let tag = rest.get(at..at.max(scanner.tag_end(at)))?;
        let may_alter = self.config.provenance.is_none();
        let is_sure = |id: RepairId| {
            let is_untold = may_alter || id.effect() == Effect::Form;
            id.certainty() == Certainty::Exact && is_untold && !self.is_off(id)
        };
        if !mend_node(tag, Node::Verbatim, &[]).iter().all(|edit| is_sure(edit.id)) {
            return None;
        }
        let (len, id, mut replacement) = exact_repair(broken, scanner.node_at(at))?;
        // The bytes around a deleted character must not form a mark. Of what
        // was passed on before, the last byte begins none.
        if replacement.is_empty() && rest.get(..at)?.last() == Some(&scanner.mark_byte()) {
            replacement.push(b' ');
        }
        is_sure(id).then_some((len, id, replacement))
    }

    /// The item is lost, and with it what follows.
    fn give_up(&mut self, list: &List, rest: &[u8], at: usize, sink: &mut impl Sink) -> Step {
        self.gate.lost += 1;
        self.close_open_elements(list, rest, at, sink);
        self.leave_broken_list(list);
        Step::Settled(at)
    }

    fn close_open_elements(&mut self, list: &List, rest: &[u8], at: usize, sink: &mut impl Sink) {
        self.keep(Role::Plain, rest, at, sink);
        if self.config.ending == super::Ending::Close {
            let closing = list.scanner.closing_tags(rest.get(..at).unwrap_or_default());
            let place = self.base + at as u64;
            self.gate.change(Role::Plain, RepairId::TruncatedInput, place, b"", &closing, sink);
        }
    }

    /// The input ends inside such an item.
    pub(super) fn end_of_oversized(&mut self, list: &List, sink: &mut impl Sink) {
        self.gate.lost += 1;
        self.close_open_elements(list, b"", 0, sink);
        self.list_cut(list);
        self.end(sink);
        debug_assert!(self.not_oai != Some(NotOai::Empty), "an item was under way");
    }
}
