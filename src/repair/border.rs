//! Where a broken item ends: the rule by which damage in one record never touches the next.
//!
//! Asked only for items whose strict reading failed. What closes inside its own
//! item is content: a comment, a CDATA section, a wrapped OAI record. An end
//! tag of the item with the start of the next one, the token or the end of the
//! list behind it is a border, whatever state a lexer would be in; so is a next
//! item or the end of the list behind the last child of this one.
//! Verdicts never change with more text: too little of it is [`Border::NeedMore`].

use memchr::{memchr, memmem, memrchr};

use super::name::{blanks, is_blank, name_span, split_name, trailing_blanks};
use super::scan::Scan;
use super::schema::{Content, Element};
use super::vocabulary::Family;

/// The names that borders of one list are made of.
#[derive(Clone, Debug)]
pub(super) struct Skeleton {
    pub(super) element: &'static Element,
    /// Name of the verb element, as `ListRecords`.
    pub(super) verb: &'static [u8],
    /// Prefix of the OAI-PMH namespace with its colon, or nothing.
    pub(super) prefix: Vec<u8>,
}

/// Where the item ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Border {
    /// Its bytes are those before this offset.
    At(usize),
    /// The input ends inside it.
    InputEnd,
    /// More text is needed to say.
    NeedMore,
    /// No border within the bytes that may be held.
    TooLong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Cut,
}

pub(super) const CDATA: &[u8] = b"<![CDATA[";
pub(super) const COMMENT: &[u8] = b"<!--";

impl Skeleton {
    fn children(&self) -> &'static [Element] {
        match self.element.content {
            Content::Children(children) => children,
            Content::Payload | Content::Text(_) => &[],
        }
    }

    /// Whether `text` begins with `<` or `</`, the prefix, the name, and no more of a name.
    fn tag(&self, text: &[u8], open: &[u8], name: &[u8]) -> Answer {
        let parts = [open, &self.prefix, name];
        let mut rest = text;
        for part in parts {
            if rest.len() < part.len() {
                return if part.starts_with(rest) { Answer::Cut } else { Answer::No };
            }
            match rest.strip_prefix(part) {
                Some(behind) => rest = behind,
                None => return Answer::No,
            }
        }
        match rest.first() {
            None => Answer::Cut,
            Some(&byte) if is_blank(byte) || matches!(byte, b'>' | b'/') => Answer::Yes,
            Some(_) => Answer::No,
        }
    }

    /// Whether an item begins here: its start tag, and one of its children behind it.
    fn starts_item(&self, text: &[u8]) -> Answer {
        match self.tag(text, b"<", self.element.name) {
            Answer::Yes => {}
            other => return other,
        }
        let Some(end) = memchr(b'>', text) else { return Answer::Cut };
        if text.get(end.wrapping_sub(1)) == Some(&b'/')
            || memchr(b'<', text.get(1..end).unwrap_or_default()).is_some()
        {
            return Answer::No;
        }
        let behind = text.get(end + 1..).unwrap_or_default();
        let behind = behind.get(blanks(behind)..).unwrap_or_default();
        if behind.is_empty() {
            return Answer::Cut;
        }
        any(self.children().iter().map(|child| self.tag(behind, b"<", child.name)))
    }

    /// Whether `text`, white space aside, goes on as a list does behind an item.
    fn follows_item(&self, text: &[u8]) -> Answer {
        let text = text.get(blanks(text)..).unwrap_or_default();
        if text.is_empty() {
            return Answer::Cut;
        }
        any([
            self.starts_item(text),
            self.tag(text, b"<", b"resumptionToken"),
            self.tag(text, b"</", self.verb),
            self.tag(text, b"</", b"OAI-PMH"),
        ])
    }

    /// Whether `text`, white space aside, ends with the end tag of a child of the item.
    fn ends_with_child(&self, text: &[u8]) -> bool {
        let text = text.get(..text.len() - trailing_blanks(text)).unwrap_or_default();
        self.children().iter().any(|child| {
            text.strip_suffix(b">")
                .and_then(|text| text.strip_suffix(child.name))
                .and_then(|text| text.strip_suffix(self.prefix.as_slice()))
                .is_some_and(|text| text.ends_with(b"</"))
        })
    }

    /// Whether the page ends here as pages do.
    fn ends_page(&self, text: &[u8]) -> bool {
        let text = text.get(..text.len() - trailing_blanks(text)).unwrap_or_default();
        text.ends_with(&[b"</", self.prefix.as_slice(), b"OAI-PMH>"].concat())
    }

    /// Whether an item begins inside `body`.
    pub(super) fn holds_item(&self, body: &[u8]) -> bool {
        let start = [b"<", self.prefix.as_slice(), self.element.name].concat();
        memmem::find_iter(body, &start)
            .any(|at| self.starts_item(body.get(at..).unwrap_or_default()) == Answer::Yes)
    }

    /// Whether a border lies inside `body`.
    fn has_border(&self, body: &[u8]) -> bool {
        let mut mark = b"</".to_vec();
        mark.extend_from_slice(&self.prefix);
        mark.extend_from_slice(self.element.name);
        self.holds_item(body)
            || memmem::find_iter(body, &mark).any(|at| {
                let tag = body.get(at..).unwrap_or_default();
                memchr(b'>', tag).is_some_and(|end| {
                    self.follows_item(tag.get(end + 1..).unwrap_or_default()) == Answer::Yes
                })
            })
    }
}

fn any(answers: impl IntoIterator<Item = Answer>) -> Answer {
    let mut verdict = Answer::No;
    for answer in answers {
        match answer {
            Answer::Yes => return Answer::Yes,
            Answer::Cut => verdict = Answer::Cut,
            Answer::No => {}
        }
    }
    verdict
}

/// Whether a section that is closed all the same has swallowed a border: one
/// lies inside it, and it meets its own opening mark again before its end mark.
/// Then it was never closed; the end mark belongs to the later one.
pub(super) fn swallows_border(body: &[u8], skeleton: &Skeleton) -> bool {
    let mark = if body.starts_with(CDATA) { CDATA } else { COMMENT };
    body.starts_with(mark)
        && memmem::find(body.get(mark.len()..).unwrap_or_default(), mark).is_some()
        && skeleton.has_border(body)
}

/// The search for the border of one item; `text` always begins at the item.
#[derive(Debug, Default)]
pub(super) struct BorderSearch {
    at: usize,
    nested_items: usize,
    nested_roots: usize,
    /// End tag of the element around a wrapped document, which ends it in any case.
    around_root: Vec<u8>,
    /// Whether what is wrapped is an item without a document around it.
    wrapped_item: bool,
    /// Whether sections in which a border lies are no content.
    tear: bool,
    /// Whether such a section was taken for content.
    doubtful: bool,
    /// Whether a section that never ends is open here.
    in_open_section: bool,
    /// Length of text below which looking again is not worth it: sections
    /// without an end are searched again from their start.
    retry_at: usize,
    /// Where sections end next, for each kind of them.
    section_ends: [Ahead; 3],
    /// No end tag of an item before this offset has the next item behind it,
    /// nor has the one that stands here.
    no_next_before: usize,
}

/// Where a mark stands next, so that it is not searched again from every place before it.
#[derive(Debug, Default)]
struct Ahead {
    at: Option<usize>,
    none: bool,
}

impl Ahead {
    /// The first `mark` at or behind `from`, which never moves back.
    fn find(&mut self, text: &[u8], from: usize, mark: &[u8], last: bool) -> Option<usize> {
        if self.none || self.at.is_some_and(|at| at >= from) {
            return self.at;
        }
        self.at = memmem::find(text.get(from..).unwrap_or_default(), mark).map(|at| from + at);
        self.none = self.at.is_none() && last;
        self.at
    }
}

impl BorderSearch {
    /// A search that takes no section for content in which a border lies.
    pub(super) fn tearing() -> Self {
        Self { tear: true, ..Self::default() }
    }

    /// Whether a search that tears sections might find another border.
    pub(super) fn may_tear(&self) -> bool {
        self.doubtful && !self.tear
    }

    /// Searches on. Positions behind `bytes_max` count as not there; `probe`
    /// reads an item strictly, as far as the text goes.
    pub(super) fn find(
        &mut self,
        text: &[u8],
        last: bool,
        skeleton: &Skeleton,
        bytes_max: usize,
        probe: &mut impl FnMut(&[u8]) -> Scan,
    ) -> Border {
        let bounded = text.len() > bytes_max;
        let text = text.get(..bytes_max).unwrap_or(text);
        if text.len() < self.retry_at && !last && !bounded {
            return Border::NeedMore;
        }
        let last = last && !bounded;
        // Nothing behind the bound is ever looked at, so that there the verdict
        // is that of an input which ends.
        match self.walk(text, last || bounded, skeleton, probe) {
            Some(Border::NeedMore) => {
                self.retry_at = text.len() + text.len() / 4 + 1;
                Border::NeedMore
            }
            Some(border) => border,
            None if bounded => Border::TooLong,
            None if last => {
                // The page is whole, so that the element around an item which
                // seemed wrapped was never closed.
                self.doubtful |= self.wrapped_item && skeleton.ends_page(text);
                Border::InputEnd
            }
            None => {
                self.retry_at = 0;
                Border::NeedMore
            }
        }
    }

    fn walk(
        &mut self,
        text: &[u8],
        last: bool,
        skeleton: &Skeleton,
        probe: &mut impl FnMut(&[u8]) -> Scan,
    ) -> Option<Border> {
        loop {
            let next = memchr(b'<', text.get(self.at..).unwrap_or_default());
            let Some(at) = next.map(|next| self.at + next) else {
                self.at = text.len();
                return None;
            };
            self.at = at;
            let rest = text.get(at..).unwrap_or_default();
            let before = text.get(..at).unwrap_or_default();
            if rest.len() < CDATA.len() && !last {
                return Some(Border::NeedMore);
            }
            let border = match rest.get(1) {
                Some(b'!' | b'?') => match self.section(text, at, last, skeleton) {
                    Some(len) => {
                        self.at += len;
                        continue;
                    }
                    None => Some(Border::NeedMore),
                },
                Some(b'/') => self.end_tag(text, at, last, skeleton),
                _ => self.start_tag(before, rest, last, skeleton, probe),
            };
            if border.is_some() {
                return border;
            }
            self.at += 1;
        }
    }

    /// How many bytes the section that begins here can be skipped over; `None`
    /// when more text is needed.
    fn section(&mut self, text: &[u8], at: usize, last: bool, skeleton: &Skeleton) -> Option<usize> {
        let rest = text.get(at..).unwrap_or_default();
        let len = self.skip_section(text, at, last, skeleton)?;
        if len == 1 {
            self.in_open_section |= rest.starts_with(CDATA) || rest.starts_with(COMMENT);
            return Some(len);
        }
        if skeleton.has_border(rest.get(..len).unwrap_or_default()) {
            self.doubtful = true;
            if self.tear {
                self.in_open_section = true;
                return Some(1);
            }
        }
        Some(len)
    }

    /// How many bytes the section that begins at `at` can be skipped over as content
    /// of its item: to its end mark, or 1 when it is none or was never closed.
    fn skip_section(&mut self, text: &[u8], at: usize, last: bool, skeleton: &Skeleton) -> Option<usize> {
        let rest = text.get(at..).unwrap_or_default();
        let [cdata_end, comment_end, instruction_end] = &mut self.section_ends;
        let (mark, end_mark, ahead): (&[u8], &[u8], _) = if rest.starts_with(CDATA) {
            (CDATA, b"]]>", cdata_end)
        } else if rest.starts_with(COMMENT) {
            (COMMENT, b"-->", comment_end)
        } else if rest.starts_with(b"<?") {
            (b"<?", b"?>", instruction_end)
        } else {
            return Some(1);
        };
        let inner = rest.get(mark.len()..).unwrap_or_default();
        let end = ahead.find(text, at + mark.len(), end_mark, last).map(|end| end - at - mark.len());
        let again = memmem::find(inner, mark).filter(|&again| end.is_none_or(|end| again < end));
        match (end, again) {
            (Some(end), None) => Some(mark.len() + end + end_mark.len()),
            (Some(end), Some(_)) => {
                let len = mark.len() + end + end_mark.len();
                let body = rest.get(..len).unwrap_or_default();
                Some(if skeleton.has_border(body) { 1 } else { len })
            }
            (None, Some(again)) if skeleton.has_border(inner.get(..again).unwrap_or_default()) => Some(1),
            (None, _) if last => Some(1),
            (None, _) => None,
        }
    }

    /// The end tag of the list or of the root inside the item: where the list
    /// ends, when the item is over or when nothing but the end follows;
    /// otherwise somebody typed it.
    fn list_end(&self, text: &[u8], at: usize, last: bool, skeleton: &Skeleton) -> Option<Border> {
        if skeleton.ends_with_child(text.get(..at).unwrap_or_default()) {
            return Some(Border::At(at));
        }
        // In a section that was cut, it is content in any case.
        if self.in_open_section {
            return None;
        }
        let more = if last { None } else { Some(Border::NeedMore) };
        let rest = text.get(at..).unwrap_or_default();
        let Some(end) = memchr(b'>', rest) else { return more };
        let behind = rest.get(end + 1..).unwrap_or_default();
        let behind = behind.get(blanks(behind)..).unwrap_or_default();
        if behind.is_empty() {
            return if last { Some(Border::At(at)) } else { more };
        }
        match skeleton.tag(behind, b"</", b"OAI-PMH") {
            Answer::Yes => Some(Border::At(at)),
            Answer::Cut => {
                if last {
                    Some(Border::At(at))
                } else {
                    more
                }
            }
            Answer::No => None,
        }
    }

    fn end_tag(&mut self, text: &[u8], at: usize, last: bool, skeleton: &Skeleton) -> Option<Border> {
        let rest = text.get(at..).unwrap_or_default();
        let before = text.get(..at).unwrap_or_default();
        if self.nested_roots > 0 && !self.around_root.is_empty() {
            if rest.starts_with(&self.around_root) {
                self.nested_roots = 0;
                return None;
            }
            if self.around_root.starts_with(rest) && !last {
                return Some(Border::NeedMore);
            }
        }
        let verdicts = [
            skeleton.tag(rest, b"</", skeleton.element.name),
            skeleton.tag(rest, b"</", skeleton.verb),
            skeleton.tag(rest, b"</", b"OAI-PMH"),
        ];
        match verdicts {
            [Answer::Cut, ..] | [_, Answer::Cut, _] | [.., Answer::Cut] if !last => {
                return Some(Border::NeedMore);
            }
            [_, Answer::Yes, _] | [.., Answer::Yes] if self.nested_roots == 0 => {
                return self.list_end(text, at, last, skeleton);
            }
            [.., Answer::Yes] => {
                self.nested_roots -= 1;
                return None;
            }
            [Answer::Yes, ..] => {}
            _ => return None,
        }
        let Some(len) = memchr(b'>', rest).map(|end| end + 1) else {
            return if last { None } else { Some(Border::NeedMore) };
        };
        if self.nested_roots > 0 {
            return None;
        }
        let ends_child = skeleton.ends_with_child(before);
        match skeleton.follows_item(rest.get(len..).unwrap_or_default()) {
            Answer::Yes => Some(Border::At(at + len)),
            Answer::Cut if !last => Some(Border::NeedMore),
            Answer::Cut => Some(Border::At(at + len)),
            Answer::No if ends_child && self.nested_items == 0 => Some(Border::At(at + len)),
            Answer::No => {
                self.nested_items -= usize::from(ends_child);
                None
            }
        }
    }

    fn start_tag(
        &mut self,
        before: &[u8],
        rest: &[u8],
        last: bool,
        skeleton: &Skeleton,
        probe: &mut impl FnMut(&[u8]) -> Scan,
    ) -> Option<Border> {
        if before.is_empty() {
            return None;
        }
        let at = before.len();
        match (skeleton.tag(rest, b"<", b"OAI-PMH"), skeleton.tag(rest, b"<", b"resumptionToken")) {
            (Answer::Cut, _) | (_, Answer::Cut) if !last => return Some(Border::NeedMore),
            (Answer::Yes, _) if self.tear => return None,
            (Answer::Yes, _) => {
                if self.nested_roots == 0 {
                    self.around_root = end_of_parent(before);
                }
                self.nested_roots += 1;
                return None;
            }
            (_, Answer::Yes) if self.nested_roots == 0 && skeleton.ends_with_child(before) => {
                return Some(Border::At(at));
            }
            (_, Answer::Yes) if self.nested_roots == 0 => {
                return token_before_list_end(rest, at, last, skeleton);
            }
            _ => {}
        }
        let wrapper = end_of_parent(before);
        match skeleton.starts_item(rest) {
            _ if self.nested_roots > 0 => None,
            Answer::Yes if !self.tear && is_wrapper(&wrapper, skeleton) => {
                self.wrapped_item = true;
                self.around_root = wrapper;
                self.nested_roots = 1;
                None
            }
            Answer::No => None,
            Answer::Cut => {
                if last {
                    None
                } else {
                    Some(Border::NeedMore)
                }
            }
            Answer::Yes
                if self.nested_items == 0 && self.nested_roots == 0 && skeleton.ends_with_child(before) =>
            {
                Some(Border::At(at))
            }
            Answer::Yes => match probe(rest) {
                Scan::Clean(len) => self.whole_item(rest, at, len, last, skeleton),
                Scan::NeedMore if !last => Some(Border::NeedMore),
                _ => self.next_or_nested(rest, at, last, skeleton),
            },
        }
    }

    /// An item that is in order stands inside this one: the next of the list,
    /// when the list goes on behind it, or one wrapped in the payload.
    fn whole_item(
        &mut self,
        rest: &[u8],
        at: usize,
        len: usize,
        last: bool,
        skeleton: &Skeleton,
    ) -> Option<Border> {
        match skeleton.follows_item(rest.get(len..).unwrap_or_default()) {
            Answer::Yes => Some(Border::At(at)),
            Answer::Cut if !last => Some(Border::NeedMore),
            Answer::Cut => Some(Border::At(at)),
            Answer::No => {
                // The walk goes on behind its first byte, which the caller adds.
                self.at += len - 1;
                None
            }
        }
    }

    /// A broken item begins inside this one: the next of the list, when its own end
    /// is a border, or one wrapped in the payload.
    fn next_or_nested(&mut self, rest: &[u8], at: usize, last: bool, skeleton: &Skeleton) -> Option<Border> {
        if at < self.no_next_before {
            self.nested_items += 1;
            return None;
        }
        let mark = [b"</", skeleton.prefix.as_slice(), skeleton.element.name].concat();
        for next in memmem::find_iter(rest, &mark) {
            let tag = rest.get(next..).unwrap_or_default();
            match skeleton.tag(tag, b"</", skeleton.element.name) {
                Answer::No => continue,
                Answer::Cut => break,
                Answer::Yes => {}
            }
            let Some(end) = memchr(b'>', tag) else { break };
            match skeleton.follows_item(tag.get(end + 1..).unwrap_or_default()) {
                Answer::Yes => return Some(Border::At(at)),
                Answer::Cut if !last => return Some(Border::NeedMore),
                Answer::Cut => return Some(Border::At(at)),
                Answer::No => {
                    self.no_next_before = at + next;
                    self.nested_items += 1;
                    return None;
                }
            }
        }
        if last {
            // No item ends behind it: one wrapped in an item that was cut.
            self.no_next_before = usize::MAX;
            self.nested_items += 1;
            return None;
        }
        Some(Border::NeedMore)
    }
}

/// The end tag of the element whose start tag `before` ends with, white space aside.
fn end_of_parent(before: &[u8]) -> Vec<u8> {
    let before = before.get(..before.len() - trailing_blanks(before)).unwrap_or_default();
    let tag = memrchr(b'<', before).and_then(|at| before.get(at + 1..)).filter(|_| before.ends_with(b">"));
    let name = tag.and_then(|tag| tag.get(..name_span(tag))).unwrap_or_default();
    if name.is_empty() { Vec::new() } else { [b"</", name, b">"].concat() }
}

/// Whether an element of a payload, given by its end tag, can wrap an item: a
/// field cannot, nor can the envelope, at any depth, or a format made of fields.
fn is_wrapper(end_tag: &[u8], skeleton: &Skeleton) -> bool {
    let name = end_tag.strip_prefix(b"</").and_then(|tag| tag.strip_suffix(b">")).unwrap_or_default();
    let (_, local) = split_name(name);
    !local.is_empty()
        && local != skeleton.verb
        && !skeleton.element.names(local)
        && !Family::DublinCore.is_field(local)
        && !Family::Marc.is_field(local)
        && matches!(Family::of_root(local), Family::Mixed | Family::Other)
}

/// A token that does not stand behind a child's end: a border when the list ends behind it.
fn token_before_list_end(rest: &[u8], at: usize, last: bool, skeleton: &Skeleton) -> Option<Border> {
    let more = if last { None } else { Some(Border::NeedMore) };
    let Some(tag_end) = memchr(b'>', rest) else { return more };
    let mut behind = rest.get(tag_end + 1..).unwrap_or_default();
    if rest.get(tag_end.wrapping_sub(1)) != Some(&b'/') {
        let Some(next) = memchr(b'<', behind) else { return more };
        let end = behind.get(next..).unwrap_or_default();
        match skeleton.tag(end, b"</", b"resumptionToken") {
            Answer::No => return None,
            Answer::Cut => return more,
            Answer::Yes => {}
        }
        let Some(close) = memchr(b'>', end) else { return more };
        behind = end.get(close + 1..).unwrap_or_default();
    }
    let behind = behind.get(blanks(behind)..).unwrap_or_default();
    match any([skeleton.tag(behind, b"</", skeleton.verb), skeleton.tag(behind, b"</", b"OAI-PMH")]) {
        Answer::Yes => Some(Border::At(at)),
        Answer::Cut => more,
        Answer::No => None,
    }
}
