//! Finds the end of a broken item, so that damage in one record never touches the next.
//!
//! A comment, CDATA section or instruction with an end mark is content, whatever it contains, because a
//! depositor may have written it. So is a wrapped OAI record that closes inside its own item. All other
//! item end tags are boundaries if the next item, the token or the end of the list follows. More text
//! never changes a decision: without enough text it is [`RecordBoundary::NeedMore`].

use memchr::{memchr, memchr2, memmem, memrchr};

use crate::repair::lex::known_namespaces::{Family, is_slip};
use crate::repair::lex::lexeme::{CDATA, COMMENT};
use crate::repair::lex::lookahead::Lookahead;
use crate::repair::lex::names::{blanks, name_span, split_name, trailing_blanks, trim};
use crate::repair::validate::envelope_names::{EnvelopeNames, TagMatch, any};
use crate::repair::validate::state::Validation;

/// Where the item ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordBoundary {
    /// Its bytes are those before this offset.
    At(usize),
    /// The input ends inside it.
    InputEnd,
    /// More text is needed to say.
    NeedMore,
    /// No border within the bytes that may be held.
    TooLong,
}

/// The search for the border of one item; `text` always begins at the item.
#[derive(Debug, Default)]
pub(crate) struct BoundarySearch {
    at: usize,
    nested_items: usize,
    nested_roots: usize,
    /// End tag of the element around a wrapped document, which ends it in any case.
    around_root: Vec<u8>,
    /// Whether what is wrapped is an item without a document around it.
    wrapped_item: bool,
    /// Whether an element that seemed to wrap an item is taken for one that was never closed, and,
    /// where `torn-section` is on, a section in which a border lies.
    tear: bool,
    /// Whether such an element or section was taken for content.
    doubtful: bool,
    /// Whether a section that has an end mark was taken for one that was never closed.
    torn: bool,
    /// Whether a section that never ends is open here.
    in_open_section: bool,
    /// Length of text below which looking again is not worth it: sections
    /// without an end are searched again from their start.
    retry_at: usize,
    /// How far it walked, where the rest did not need to be looked at.
    walked: Option<usize>,
    /// Where the item begins, in bytes of the text.
    base: u64,
    lookahead: Lookahead,
}

impl BoundarySearch {
    /// A search for the end of the item at offset `base` of the text.
    pub(crate) fn new(base: u64, lookahead: Lookahead) -> Self {
        Self { base, lookahead, ..Self::default() }
    }

    /// Begins again, and takes nothing for content in which a border lies.
    pub(crate) fn tearing(mut self) -> Self {
        self.lookahead.count_failed(self.walked.unwrap_or(self.at));
        Self { tear: true, ..Self::new(self.base, self.lookahead) }
    }

    /// What was learned on the way.
    pub(crate) fn into_lookahead(self) -> Lookahead {
        self.lookahead
    }

    /// Whether a section that has an end mark was taken for one that was never closed.
    pub(crate) fn has_torn(&self) -> bool {
        self.torn
    }

    /// Whether a search that tears might find another border.
    pub(crate) fn may_tear(&self) -> bool {
        self.doubtful && !self.tear
    }

    /// Searches on. Positions behind `bytes_max` count as not there; `probe`
    /// reads an item strictly, as far as the text goes.
    pub(crate) fn find(
        &mut self,
        text: &[u8],
        last: bool,
        skeleton: &EnvelopeNames,
        bytes_max: usize,
        probe: &mut impl FnMut(&[u8]) -> Validation,
    ) -> RecordBoundary {
        let bounded = text.len() > bytes_max;
        let text = text.get(..bytes_max).unwrap_or(text);
        if text.len() < self.retry_at && !last && !bounded {
            return RecordBoundary::NeedMore;
        }
        let last = last && !bounded;
        // Nothing behind the bound is ever looked at, so that there the verdict
        // is that of an input which ends.
        match self.walk(text, last || bounded, bounded, skeleton, probe) {
            Some(RecordBoundary::NeedMore) if bounded => RecordBoundary::TooLong,
            Some(RecordBoundary::NeedMore) => {
                self.retry_at = text.len() + text.len() / 4 + 1;
                RecordBoundary::NeedMore
            }
            Some(boundary) => boundary,
            None if bounded => RecordBoundary::TooLong,
            None if last => {
                // The page is whole, so that the element around an item which
                // seemed wrapped was never closed.
                self.doubtful |= self.wrapped_item && skeleton.ends_page(text);
                RecordBoundary::InputEnd
            }
            None => {
                self.retry_at = 0;
                RecordBoundary::NeedMore
            }
        }
    }

    fn walk(
        &mut self,
        text: &[u8],
        last: bool,
        bounded: bool,
        skeleton: &EnvelopeNames,
        probe: &mut impl FnMut(&[u8]) -> Validation,
    ) -> Option<RecordBoundary> {
        // What is not held may contain the end mark of a section.
        let is_whole = last && (!bounded || skeleton.tears);
        loop {
            if self.lookahead.is_exhausted(self.base + self.at as u64) {
                return Some(RecordBoundary::TooLong);
            }
            let next = memchr(b'<', text.get(self.at..).unwrap_or_default());
            let Some(at) = next.map(|next| self.at + next) else {
                self.at = text.len();
                return None;
            };
            self.at = at;
            let rest = text.get(at..).unwrap_or_default();
            let before = text.get(..at).unwrap_or_default();
            if rest.len() < CDATA.len() && !last {
                return Some(RecordBoundary::NeedMore);
            }
            let boundary = match rest.get(1) {
                Some(b'!' | b'?') => match self.section(text, at, is_whole, skeleton) {
                    Some(len) => {
                        self.at += len;
                        continue;
                    }
                    None => Some(RecordBoundary::NeedMore),
                },
                Some(b'/') => self.end_tag(text, at, last, skeleton),
                _ => self.start_tag(before, rest, last, skeleton, probe),
            };
            if boundary.is_some() {
                return boundary;
            }
            self.at += 1;
        }
    }

    /// How many bytes the section that begins here can be skipped over; `None`
    /// when more text is needed.
    fn section(&mut self, text: &[u8], at: usize, last: bool, skeleton: &EnvelopeNames) -> Option<usize> {
        let rest = text.get(at..).unwrap_or_default();
        let len = self.skip_section(text, at, last, skeleton)?;
        if len == 1 {
            self.in_open_section |= rest.starts_with(CDATA) || rest.starts_with(COMMENT);
            return Some(len);
        }
        if skeleton.tears && skeleton.has_border(rest.get(..len).unwrap_or_default()) {
            self.doubtful = true;
            if self.tear {
                self.torn = true;
                self.in_open_section = true;
                self.lookahead.count_failed(len);
                return Some(1);
            }
        }
        Some(len)
    }

    /// How many bytes the section that begins at `at` can be skipped over as content
    /// of its item: to its end mark, or 1 when it is none or was never closed. `last`: no end mark can follow.
    fn skip_section(
        &mut self,
        text: &[u8],
        at: usize,
        last: bool,
        skeleton: &EnvelopeNames,
    ) -> Option<usize> {
        let rest = text.get(at..).unwrap_or_default();
        let [cdata_end, comment_end, instruction_end] = &mut self.lookahead.section_ends;
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
        let end = ahead.find(text, self.base, at + mark.len(), end_mark).map(|end| end - at - mark.len());
        if !skeleton.tears {
            return match end {
                Some(end) => Some(mark.len() + end + end_mark.len()),
                None => last.then_some(1),
            };
        }
        let again = memmem::find(inner, mark).filter(|&again| end.is_none_or(|end| again < end));
        match (end, again) {
            (Some(end), None) => Some(mark.len() + end + end_mark.len()),
            (Some(end), Some(_)) => {
                let len = mark.len() + end + end_mark.len();
                if !skeleton.has_border(rest.get(..len).unwrap_or_default()) {
                    return Some(len);
                }
                self.lookahead.count_failed(len);
                self.torn = true;
                Some(1)
            }
            (None, Some(again)) if skeleton.has_border(inner.get(..again).unwrap_or_default()) => {
                self.torn = true;
                Some(1)
            }
            (None, _) if last => Some(1),
            (None, _) => None,
        }
    }

    /// The end tag of the list or of the root inside the item: where the list
    /// ends, when the item is over or when nothing but the end follows;
    /// otherwise somebody typed it.
    fn list_end(
        &self,
        text: &[u8],
        at: usize,
        last: bool,
        skeleton: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        if skeleton.ends_with_child(text.get(..at).unwrap_or_default()) {
            return Some(RecordBoundary::At(at));
        }
        // In a section that was cut, it is content in any case.
        if self.in_open_section {
            return None;
        }
        let more = if last { None } else { Some(RecordBoundary::NeedMore) };
        let rest = text.get(at..).unwrap_or_default();
        let Some(end) = memchr(b'>', rest) else { return more };
        let behind = rest.get(end + 1..).unwrap_or_default();
        let behind = behind.get(blanks(behind)..).unwrap_or_default();
        if behind.is_empty() {
            return if last { Some(RecordBoundary::At(at)) } else { more };
        }
        match skeleton.tag(behind, b"</", b"OAI-PMH") {
            TagMatch::Yes => Some(RecordBoundary::At(at)),
            TagMatch::Cut => {
                if last {
                    Some(RecordBoundary::At(at))
                } else {
                    more
                }
            }
            TagMatch::No => None,
        }
    }

    fn end_tag(
        &mut self,
        text: &[u8],
        at: usize,
        last: bool,
        skeleton: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        let rest = text.get(at..).unwrap_or_default();
        let before = text.get(..at).unwrap_or_default();
        if self.nested_roots > 0 && !self.around_root.is_empty() {
            if rest.starts_with(&self.around_root) {
                self.nested_roots = 0;
                return None;
            }
            if self.around_root.starts_with(rest) && !last {
                return Some(RecordBoundary::NeedMore);
            }
        }
        let verdicts = [
            skeleton.tag(rest, b"</", skeleton.element.name),
            skeleton.tag(rest, b"</", &skeleton.verb),
            skeleton.tag(rest, b"</", b"OAI-PMH"),
        ];
        match verdicts {
            [TagMatch::Cut, ..] | [_, TagMatch::Cut, _] | [.., TagMatch::Cut] if !last => {
                return Some(RecordBoundary::NeedMore);
            }
            [_, TagMatch::Yes, _] | [.., TagMatch::Yes] if self.nested_roots == 0 => {
                return self.list_end(text, at, last, skeleton);
            }
            [.., TagMatch::Yes] => {
                self.nested_roots -= 1;
                return None;
            }
            [TagMatch::Yes, ..] => {}
            _ => return None,
        }
        let Some(len) = end_tag_len(rest) else {
            return if last { None } else { Some(RecordBoundary::NeedMore) };
        };
        if self.nested_roots > 0 {
            return None;
        }
        let ends_child = skeleton.ends_with_child(before);
        match skeleton.follows_item(rest.get(len..).unwrap_or_default()) {
            TagMatch::Yes => Some(RecordBoundary::At(at + len)),
            TagMatch::Cut if !last => Some(RecordBoundary::NeedMore),
            TagMatch::Cut => Some(RecordBoundary::At(at + len)),
            TagMatch::No if ends_child && self.nested_items == 0 => Some(RecordBoundary::At(at + len)),
            TagMatch::No => {
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
        skeleton: &EnvelopeNames,
        probe: &mut impl FnMut(&[u8]) -> Validation,
    ) -> Option<RecordBoundary> {
        if before.is_empty() {
            return None;
        }
        let at = before.len();
        match (skeleton.tag(rest, b"<", b"OAI-PMH"), skeleton.starts_token(rest)) {
            (TagMatch::Cut, _) | (_, TagMatch::Cut) if !last => return Some(RecordBoundary::NeedMore),
            (TagMatch::Yes, _) if self.tear => return None,
            (TagMatch::Yes, _) => {
                if self.nested_roots == 0 {
                    let around = end_of_parent(before);
                    if !is_wrapper(&around, skeleton) {
                        return document_start(rest, at, last);
                    }
                    self.around_root = around;
                }
                self.nested_roots += 1;
                return None;
            }
            (_, TagMatch::Yes) if self.nested_roots == 0 && skeleton.ends_with_child(before) => {
                return Some(RecordBoundary::At(at));
            }
            (_, TagMatch::Yes) if self.nested_roots == 0 => {
                return token_before_list_end(rest, at, last, skeleton);
            }
            _ => {}
        }
        match skeleton.starts_item(rest) {
            _ if self.nested_roots > 0 => return None,
            TagMatch::No => return None,
            TagMatch::Cut if last => return None,
            TagMatch::Cut => return Some(RecordBoundary::NeedMore),
            TagMatch::Yes => {}
        }
        let wrapper = end_of_parent(before);
        if !self.tear && is_wrapper(&wrapper, skeleton) {
            return self.enter_wrapper(wrapper, rest, at, last);
        }
        self.item_start(before, rest, last, skeleton, probe)
    }

    /// An item begins here, in no element that could hold it.
    fn item_start(
        &mut self,
        before: &[u8],
        rest: &[u8],
        last: bool,
        skeleton: &EnvelopeNames,
        probe: &mut impl FnMut(&[u8]) -> Validation,
    ) -> Option<RecordBoundary> {
        let at = before.len();
        if self.nested_items == 0 && is_behind_last_child(before, skeleton) {
            return Some(RecordBoundary::At(at));
        }
        match probe(rest) {
            Validation::Clean(len) => self.whole_item(rest, at, len, last, skeleton),
            Validation::NeedMore if !last => Some(RecordBoundary::NeedMore),
            other => {
                let boundary = self.next_or_nested(rest, at, last, skeleton);
                if boundary != Some(RecordBoundary::NeedMore) {
                    self.lookahead.count_failed(match other {
                        Validation::Defect(defect) => defect.at,
                        _ => rest.len(),
                    });
                }
                boundary
            }
        }
    }

    /// An item begins in an element of this one, which holds it up to its end tag.
    fn enter_wrapper(
        &mut self,
        end_tag: Vec<u8>,
        rest: &[u8],
        at: usize,
        last: bool,
    ) -> Option<RecordBoundary> {
        let ends = self.lookahead.wrapper_end(&end_tag).find(rest, self.base + at as u64, 0, &end_tag);
        if ends.is_none() && !last {
            return Some(RecordBoundary::NeedMore);
        }
        self.wrapped_item = true;
        self.nested_roots = 1;
        self.around_root = end_tag;
        if ends.is_none() {
            // It holds all the rest. The walk goes on behind its first byte, which the caller adds.
            self.walked = Some(at);
            self.at = at + rest.len() - 1;
        }
        None
    }

    /// An item that is in order stands inside this one: the next of the list,
    /// when the list goes on behind it, or one wrapped in the payload.
    fn whole_item(
        &mut self,
        rest: &[u8],
        at: usize,
        len: usize,
        last: bool,
        skeleton: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        match skeleton.follows_item(rest.get(len..).unwrap_or_default()) {
            TagMatch::Yes => Some(RecordBoundary::At(at)),
            TagMatch::Cut if !last => Some(RecordBoundary::NeedMore),
            TagMatch::Cut => Some(RecordBoundary::At(at)),
            TagMatch::No => {
                // The walk goes on behind its first byte, which the caller adds.
                self.at += len - 1;
                None
            }
        }
    }

    /// A broken item begins inside this one: the next of the list, when its own end
    /// is a border, or one wrapped in the payload.
    fn next_or_nested(
        &mut self,
        rest: &[u8],
        at: usize,
        last: bool,
        skeleton: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        let from = self.base + at as u64;
        let (known_to, mut boundary) = self.lookahead.item_end.known(from);
        if boundary.is_none() {
            let (next, follows) = next_item_end(rest, (known_to - from) as usize, skeleton);
            boundary = match follows {
                Some(TagMatch::Yes) => Some(true),
                Some(TagMatch::No) => Some(false),
                Some(TagMatch::Cut) | None => None,
            };
            self.lookahead.item_end.note(from, from + next as u64, boundary);
            // What is so at the end of what may be held need not be so for the next item.
            boundary = boundary.or((last && follows.is_some()).then_some(true));
        }
        match boundary {
            Some(true) => Some(RecordBoundary::At(at)),
            None if !last => Some(RecordBoundary::NeedMore),
            // No item ends behind it: one wrapped in an item that was cut.
            Some(false) | None => {
                self.nested_items += 1;
                None
            }
        }
    }
}

/// The first end tag of an item in `text`, at or behind `from`: where it begins, and whether the
/// list goes on behind it. Without one, or where it is cut, the place to go on searching.
///
/// An end tag inside a payload (MARCXML has its own `record`) is skipped: no child of the item
/// ends before it, and the list does not go on behind it.
fn next_item_end(text: &[u8], from: usize, skeleton: &EnvelopeNames) -> (usize, Option<TagMatch>) {
    // With two prefixes to look for, each end tag is looked at.
    let mark = match skeleton.other_prefix {
        None => [b"</", skeleton.prefix.as_slice(), skeleton.element.name].concat(),
        Some(_) => b"</".to_vec(),
    };
    for next in memmem::find_iter(text.get(from..).unwrap_or_default(), &mark) {
        let at = from + next;
        let tag = text.get(at..).unwrap_or_default();
        match (skeleton.tag(tag, b"</", skeleton.element.name), end_tag_len(tag)) {
            (TagMatch::No, _) => {}
            (TagMatch::Yes, Some(len)) => {
                let follows = skeleton.follows_item(tag.get(len..).unwrap_or_default());
                if follows == TagMatch::No && !skeleton.ends_with_child(text.get(..at).unwrap_or_default()) {
                    continue;
                }
                return (at, Some(follows));
            }
            (TagMatch::Cut, _) | (TagMatch::Yes, None) => return (at, None),
        }
    }
    ((text.len() + 1).saturating_sub(mark.len()).max(from), None)
}

/// Length of the end tag that `text` begins with. One without its `>` ends before the white space
/// in front of the next `<`. `None` where the text ends before either.
fn end_tag_len(text: &[u8]) -> Option<usize> {
    let end = memchr2(b'<', b'>', text.get(1..)?)? + 1;
    if text.get(end) == Some(&b'>') {
        return Some(end + 1);
    }
    Some(end - trailing_blanks(text.get(..end)?))
}

/// Longest damaged end tag of an item, with the white space around it, in bytes.
const DAMAGED_TAG_BYTES_MAX: usize = 256;

/// Whether `before` ends with the end tag of a child of the item, or with that and one damaged
/// end tag of the item after it: `</recrod>`, `</recor`, `<record>`, `record>`.
fn is_behind_last_child(before: &[u8], skeleton: &EnvelopeNames) -> bool {
    if skeleton.ends_with_child(before) {
        return true;
    }
    let tail_at = before.len().saturating_sub(DAMAGED_TAG_BYTES_MAX);
    let tail = before.get(tail_at..).unwrap_or_default();
    let last = tail.get(..tail.len() - trailing_blanks(tail)).unwrap_or_default();
    let last = last.strip_suffix(b">").unwrap_or(last);
    let tag_at = memrchr(b'>', last).map_or(0, |end| end + 1);
    let tag = trim(tail.get(tag_at..).unwrap_or_default());
    let is_whole = tag.ends_with(b">") && skeleton.tag(tag, b"</", skeleton.element.name) == TagMatch::Yes;
    let (is_end_tag, name) = match tag.strip_prefix(b"</") {
        Some(name) => (true, name),
        None => (false, tag.strip_prefix(b"<").unwrap_or(tag)),
    };
    let local = split_name(name.strip_suffix(b">").unwrap_or(name)).1;
    let is_damaged = is_end_tag && !name.contains(&b'<') || is_slip(trim(local), skeleton.element.name);
    !is_whole && is_damaged && skeleton.ends_with_child(before.get(..tail_at + tag_at).unwrap_or_default())
}

/// Bytes after a root's name in which its start tag ends and the first element of a response begins.
const DOCUMENT_START_BYTES: usize = 4 << 10;

/// A root's start tag that no element of the item wraps: the whole page after a first attempt that broke
/// off here, if it begins like one; otherwise text.
fn document_start(rest: &[u8], at: usize, last: bool) -> Option<RecordBoundary> {
    let within = rest.get(..DOCUMENT_START_BYTES).unwrap_or(rest);
    let is_root = memmem::find(within, b"responseDate").is_some_and(|date| {
        let tag_end = memchr(b'>', within).unwrap_or(date);
        let namespace = memmem::find(within.get(..tag_end).unwrap_or_default(), b"openarchives.org/OAI/");
        tag_end < date && namespace.is_some()
    });
    match is_root {
        true => Some(RecordBoundary::At(at)),
        false if within.len() < DOCUMENT_START_BYTES && !last => Some(RecordBoundary::NeedMore),
        false => None,
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
fn is_wrapper(end_tag: &[u8], skeleton: &EnvelopeNames) -> bool {
    let name = end_tag.strip_prefix(b"</").and_then(|tag| tag.strip_suffix(b">")).unwrap_or_default();
    let (_, local) = split_name(name);
    !local.is_empty()
        && local != skeleton.verb
        && !skeleton.element.names(local)
        && !Family::DublinCore.is_field(local)
        && !Family::Marc.is_field(local)
        && matches!(Family::of_root(local), Family::Mods | Family::Mixed | Family::Other)
}

/// A token that does not stand behind a child's end: a border when the list ends behind it.
fn token_before_list_end(
    rest: &[u8],
    at: usize,
    last: bool,
    skeleton: &EnvelopeNames,
) -> Option<RecordBoundary> {
    let more = if last { None } else { Some(RecordBoundary::NeedMore) };
    let Some(tag_end) = memchr(b'>', rest) else { return more };
    let mut behind = rest.get(tag_end + 1..).unwrap_or_default();
    if rest.get(tag_end.wrapping_sub(1)) != Some(&b'/') {
        let Some(next) = memchr(b'<', behind) else { return more };
        let end = behind.get(next..).unwrap_or_default();
        match skeleton.token_tag(end, b"</") {
            TagMatch::No => return None,
            TagMatch::Cut => return more,
            TagMatch::Yes => {}
        }
        let Some(close) = memchr(b'>', end) else { return more };
        behind = end.get(close + 1..).unwrap_or_default();
    }
    let behind = behind.get(blanks(behind)..).unwrap_or_default();
    match any([skeleton.tag(behind, b"</", &skeleton.verb), skeleton.tag(behind, b"</", b"OAI-PMH")]) {
        TagMatch::Yes => Some(RecordBoundary::At(at)),
        TagMatch::Cut => more,
        TagMatch::No => None,
    }
}
