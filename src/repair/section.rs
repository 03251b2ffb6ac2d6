//! Strict reading of what runs up to an end mark: comments, CDATA sections and processing instructions.

use memchr::memmem;

use super::catalogue::QuarantineReason;
use super::index::Mark;
use super::name::{is_blank, is_local_name, name_span};
use super::scan::{Construct, Inside, Scan, Scanner, Step, defect};
use super::swallowed::swallows_border;

impl Scanner {
    /// A comment, CDATA section or processing instruction begins.
    pub(super) fn construct(
        &mut self,
        rest: &[u8],
        window: &[u8],
        item_at: usize,
        offset: usize,
        last: bool,
    ) -> Result<Step, Scan> {
        let begins = |mark: &[u8]| {
            if rest.starts_with(mark) {
                Ok(true)
            } else if mark.starts_with(rest) {
                Err(Scan::NeedMore)
            } else {
                Ok(false)
            }
        };
        let start = offset as u32;
        if begins(b"<![CDATA[")? {
            if !self.in_payload() {
                match &mut self.inside {
                    Inside::Field { plain, .. } => *plain = false,
                    _ => return Err(defect(offset, QuarantineReason::IllegalEnvelope)),
                }
            }
            self.construct = Construct::Cdata(start);
            self.search = offset + 9;
        } else if begins(b"<!--")? {
            self.around_comment();
            self.construct = Construct::Comment(start);
            self.search = offset + 4;
        } else if rest.starts_with(b"<?") {
            self.around_comment();
            let body = rest.get(2..).unwrap_or_default();
            let target = name_span(body);
            if target + 2 > body.len() && !last {
                return Err(Scan::NeedMore);
            }
            if !is_legal_target(body, target) {
                return Err(defect(offset, QuarantineReason::MismatchedTags));
            }
            self.construct = Construct::Instruction(start);
            self.search = offset + 2;
        } else {
            return Err(defect(offset, QuarantineReason::MalformedTag));
        }
        self.close_construct(window, item_at, last)?;
        Ok(Step::Next)
    }

    /// A field with a comment in it is more than its plain text.
    fn around_comment(&mut self) {
        if let Inside::Field { plain, .. } = &mut self.inside {
            *plain = false;
        }
    }

    /// Looks for the end of the construct that is open, from `self.search` on.
    pub(super) fn close_construct(&mut self, window: &[u8], item_at: usize, last: bool) -> Result<(), Scan> {
        let (start, end_mark): (u32, &[u8]) = match self.construct {
            Construct::None => return Ok(()),
            Construct::Cdata(start) => (start, b"]]>"),
            Construct::Comment(start) => (start, b"--"),
            Construct::Instruction(start) => (start, b"?>"),
        };
        let from = item_at + self.search;
        let rest = window.get(from..).unwrap_or_default();
        let start = start as usize;
        let Some(found) = memmem::find(rest, end_mark) else {
            self.search = self.search.max((window.len() - item_at).saturating_sub(end_mark.len() - 1));
            return Err(Scan::NeedMore);
        };
        let mut end = self.search + found + end_mark.len();
        if let Some(at) = self.border_inside(window, item_at, item_at + end) {
            let bad = self.bad_inside(window, item_at, item_at + at, last);
            return Err(bad.unwrap_or(defect(at, QuarantineReason::RecordTooLong)));
        }
        let body = window.get(item_at + start..item_at + end).unwrap_or_default();
        let legal = match self.construct {
            Construct::Comment(_) => match window.get(item_at + end) {
                None if last => false,
                None => {
                    self.search = end - 2;
                    return Err(Scan::NeedMore);
                }
                Some(&byte) => {
                    end += 1;
                    byte == b'>'
                }
            },
            _ => true,
        };
        if !legal {
            let at = self.search + found;
            let bad = self.bad_inside(window, item_at, item_at + at, last);
            return Err(bad.unwrap_or(defect(at, QuarantineReason::MismatchedTags)));
        }
        if swallows_border(body, &self.skeleton) {
            if self.skeleton.tears {
                return Err(defect(start, QuarantineReason::MismatchedTags));
            }
            self.facts.swallows = true;
        }
        // What is passed on before the item ends is mended while it is known what it is part of.
        if self.stretched
            && let Some(bad) = self.bad_inside(window, item_at, item_at + end, last)
        {
            return Err(bad);
        }
        self.construct = Construct::None;
        self.until = end;
        Ok(())
    }

    /// The window ends inside a comment, CDATA section or instruction: what is
    /// there of it must be legal text.
    pub(super) fn window_end_inside(&mut self, window: &[u8], item_at: usize, last: bool) -> Scan {
        loop {
            let (end, bad) = match self.index.next(window, last) {
                Mark::At(_) => continue,
                Mark::Bad(at) => (at, true),
                Mark::WindowEnd(end) => (end, false),
            };
            self.at = end - item_at;
            return match self.border_inside(window, item_at, end) {
                Some(at) => defect(at, QuarantineReason::RecordTooLong),
                None if bad => defect(self.at, QuarantineReason::MismatchedTags),
                None if last => defect(self.at, QuarantineReason::Truncated),
                None => Scan::NeedMore,
            };
        }
    }

    /// Where in the section that is open, before `end`, the end of an item shows up.
    fn border_inside(&self, window: &[u8], item_at: usize, end: usize) -> Option<usize> {
        let (Construct::Cdata(start) | Construct::Comment(start) | Construct::Instruction(start)) =
            self.construct
        else {
            return None;
        };
        let body = window.get(item_at + start as usize..end).unwrap_or_default();
        self.border_in_stretch(body).map(|at| start as usize + at)
    }

    /// An illegal byte of the section that is open, before `end`.
    fn bad_inside(&mut self, window: &[u8], item_at: usize, end: usize, last: bool) -> Option<Scan> {
        loop {
            match self.index.next(window, last) {
                Mark::At(at) if at < end => {}
                Mark::Bad(at) if at < end => {
                    return Some(defect(at - item_at, QuarantineReason::MismatchedTags));
                }
                _ => break,
            }
        }
        self.index.seek(end);
        None
    }
}

/// Whether an instruction's target is a name and not `xml`, with a blank or the end behind it.
fn is_legal_target(body: &[u8], len: usize) -> bool {
    let target = body.get(..len).unwrap_or_default();
    let behind = body.get(len..).unwrap_or_default();
    is_local_name(target)
        && !target.eq_ignore_ascii_case(b"xml")
        && (behind.first().is_some_and(|&byte| is_blank(byte)) || behind.starts_with(b"?>"))
}
