//! Reading an item that is too long to be held: what was passed on is let go, and the reading goes on.

use memchr::memmem;

use super::facts::Facts;
use super::limits::Limits;
use super::name::blanks;
use super::scan::{Construct, FIELD_BYTES_MAX, Inside, Open, Scan, Scanner};
use super::schema::Text;
use super::tag::Tags;
use super::text::Node;

impl Scanner {
    /// Reads on in an item whose first part was let go, without a bound on its length.
    pub(super) fn scan_on(&mut self, rest: &[u8], last: bool, tags: &mut Tags, limits: &Limits) -> Scan {
        tags.tidy_inside(self.stack.iter().map(|open| open.context));
        self.read(rest, 0, last, tags, limits)
    }

    /// Bytes of the item that were read and may be passed on.
    pub(super) fn clean_bytes(&self, item: &[u8]) -> usize {
        if self.construct == Construct::None
            && !self.in_payload()
            && !matches!(self.inside, Inside::Field { .. })
        {
            // Between envelope elements only blanks are known to be in order.
            let text = item.get(self.until..self.at).unwrap_or_default();
            return self.at.min(self.until + blanks(text));
        }
        let mut clean = self.at.min(item.len());
        if self.construct == Construct::None && self.until > clean {
            // Half a tag is not to be passed on.
            clean = clean.min(self.lexeme_at);
        }
        if self.construct != Construct::None {
            // A border may begin in the last bytes.
            clean = clean.saturating_sub(self.end_mark().len() - 1);
        }
        if let Inside::Field { check, from, .. } = self.inside
            && check != Text::Any
        {
            // Judged as a whole when it ends.
            return clean.min(from as usize);
        }
        if matches!(self.construct, Construct::Comment(_)) {
            // What is passed on of a comment must be one that can be closed.
            while clean > 0 && item.get(clean - 1) == Some(&b'-') {
                clean -= 1;
            }
        }
        clean
    }

    /// Whether there is a defect already, though the next tag is not there yet:
    /// text where only blanks may stand, or a field that is no such thing any more.
    pub(super) fn is_hopeless(&self, item: &[u8]) -> bool {
        match self.inside {
            _ if self.construct != Construct::None || self.in_payload() => false,
            Inside::Field { check, from, .. } => {
                check != Text::Any && self.at.saturating_sub(from as usize) > FIELD_BYTES_MAX
            }
            _ => self.clean_bytes(item) < self.at,
        }
    }

    /// The first `bytes` of the item were passed on and will not be seen again.
    pub(super) fn let_go(&mut self, item: &[u8], bytes: usize) {
        self.stretched = true;
        self.keep_facts(item);
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
        self.lexeme_at = self.lexeme_at.saturating_sub(bytes);
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

    /// Keeps the identifier and datestamp of a part that will not be seen again.
    pub(super) fn keep_facts(&mut self, item: &[u8]) {
        for (range, kept) in [
            (&mut self.facts.identifier, &mut self.identifier_let_go),
            (&mut self.facts.datestamp, &mut self.datestamp_let_go),
        ] {
            if kept.is_empty() && range.1 > 0 {
                *kept = Facts::slice(item, *range).to_vec();
                *range = (0, 0);
            }
        }
    }

    /// Whether text may stand here at all, so that mending it helps.
    pub(super) fn may_hold_text(&self) -> bool {
        self.in_payload() || self.construct != Construct::None || matches!(self.inside, Inside::Field { .. })
    }

    /// What kind of text the byte at `at` belongs to.
    pub(super) fn node_at(&self, at: usize) -> Node {
        if self.construct == Construct::None && at >= self.until { Node::Text } else { Node::Verbatim }
    }

    /// Where the tag ends in which `at` lies; `at` or before where there is none.
    pub(super) fn tag_end(&self, at: usize) -> usize {
        if self.construct == Construct::None { self.until } else { at }
    }

    /// The byte that begins the marks which mean something here: the end of a
    /// section, two hyphens in a comment, `]]>` in text.
    pub(super) fn mark_byte(&self) -> u8 {
        match self.construct {
            Construct::None | Construct::Cdata(_) => b']',
            Construct::Comment(_) => b'-',
            Construct::Instruction(_) => b'?',
        }
    }

    /// The last place at or before `at` where the item can be closed: not inside a tag.
    pub(super) fn cut_at(&self, at: usize) -> usize {
        if self.construct == Construct::None && at < self.until { self.lexeme_at.min(at) } else { at }
    }

    /// The defect before `to` was mended: go on behind it.
    pub(super) fn step_over(&mut self, item: &[u8], to: usize) {
        self.until = self.until.max(to);
        self.search = self.search.max(to);
        self.at = to;
        self.let_go(item, to);
    }

    /// The beginning of the item's end tag. Inside a section that is too long to
    /// be held it is taken for the end of an item whose section never ended.
    fn end_mark(&self) -> Vec<u8> {
        [b"</", self.skeleton.prefix.as_slice(), self.skeleton.element.name].concat()
    }

    /// Where the end of an item shows up in a section of which parts were let go.
    pub(super) fn border_in_stretch(&self, body: &[u8]) -> Option<usize> {
        if self.stretched { memmem::find(body, &self.end_mark()) } else { None }
    }

    /// Whether the section that is open holds what may be the item's end.
    pub(super) fn section_may_hold_border(&self, item: &[u8]) -> bool {
        let start = match self.construct {
            Construct::None => return false,
            Construct::Cdata(start) | Construct::Comment(start) | Construct::Instruction(start) => {
                start as usize
            }
        };
        memmem::find(item.get(start..).unwrap_or_default(), &self.end_mark()).is_some()
    }

    /// What ends everything that is open behind `item`.
    pub(super) fn closing_tags(&self, item: &[u8]) -> Vec<u8> {
        let mut closing = match self.construct {
            Construct::None => Vec::new(),
            Construct::Comment(_) if item.ends_with(b"-") => b" -->".to_vec(),
            Construct::Cdata(_) => b"]]>".to_vec(),
            Construct::Comment(_) => b"-->".to_vec(),
            Construct::Instruction(_) => b"?>".to_vec(),
        };
        for open in self.stack.iter().rev().filter(|open| open.gone || (open.name_at as usize) < item.len()) {
            closing.extend_from_slice(&[b"</", self.name_of(open, item, 0), b">"].concat());
        }
        closing
    }
}
