//! Reading an item that is too long to be held: what was passed on is let go, and the reading goes on.

use super::limits::Limits;
use super::scan::{Construct, Facts, Inside, Open, Scan, Scanner};
use super::tag::Tags;
use super::text::Node;

impl Scanner {
    /// Reads on in an item whose first part was let go, without a bound on its length.
    pub(super) fn scan_on(&mut self, rest: &[u8], last: bool, tags: &mut Tags, limits: &Limits) -> Scan {
        self.read(rest, 0, last, tags, limits)
    }

    /// Bytes of the item that were read and may be passed on.
    pub(super) fn clean_bytes(&self, item: &[u8]) -> usize {
        if !self.in_payload() && !matches!(self.inside, Inside::Field { .. }) {
            // Text between envelope elements is judged at the next tag.
            return self.at.min(self.until);
        }
        let mut clean = self.at.min(item.len());
        if matches!(self.construct, Construct::Comment(_)) {
            // What is passed on of a comment must be one that can be closed.
            while clean > 0 && item.get(clean - 1) == Some(&b'-') {
                clean -= 1;
            }
        }
        clean
    }

    /// The first `bytes` of the item were passed on and will not be seen again.
    pub(super) fn let_go(&mut self, item: &[u8], bytes: usize) {
        if self.identifier_let_go.is_empty() {
            self.identifier_let_go = Facts::slice(item, self.facts.identifier).to_vec();
        }
        for open in &mut self.stack {
            if !open.gone {
                let name = item.get(open.name_at as usize..(open.name_at + open.name_len) as usize);
                let at = self.let_go.len() as u32;
                self.let_go.extend_from_slice(name.unwrap_or_default());
                *open = Open { name_at: at, gone: true, ..*open };
            }
        }
        self.at = self.at.saturating_sub(bytes);
        self.search = self.search.saturating_sub(bytes);
        self.until = self.until.saturating_sub(bytes);
        let back = bytes as u32;
        self.construct = match self.construct {
            Construct::None => Construct::None,
            Construct::Cdata(start) => Construct::Cdata(start.saturating_sub(back)),
            Construct::Comment(start) => Construct::Comment(start.saturating_sub(back)),
            Construct::Instruction(start) => Construct::Instruction(start.saturating_sub(back)),
        };
        if let Inside::Field { from, .. } = &mut self.inside {
            *from = from.saturating_sub(back);
        }
    }

    /// The identifier that stood in the part that was let go.
    pub(super) fn identifier_let_go(&self) -> &[u8] {
        &self.identifier_let_go
    }

    /// What kind of text the byte at `at` belongs to.
    pub(super) fn node_at(&self, at: usize) -> Node {
        if self.construct == Construct::None && at >= self.until { Node::Text } else { Node::Verbatim }
    }

    /// The defect before `to` was mended: go on behind it.
    pub(super) fn step_over(&mut self, item: &[u8], to: usize) {
        self.until = self.until.max(to);
        self.search = self.search.max(to);
        self.at = to;
        self.let_go(item, to);
    }

    /// What ends everything that is open.
    pub(super) fn closing_tags(&self) -> Vec<u8> {
        let mut closing = match self.construct {
            Construct::None => Vec::new(),
            Construct::Cdata(_) => b"]]>".to_vec(),
            Construct::Comment(_) => b"-->".to_vec(),
            Construct::Instruction(_) => b"?>".to_vec(),
        };
        for open in self.stack.iter().rev().filter(|open| open.gone) {
            let name = self.let_go.get(open.name_at as usize..(open.name_at + open.name_len) as usize);
            closing.extend_from_slice(&[b"</", name.unwrap_or_default(), b">"].concat());
        }
        closing
    }
}
