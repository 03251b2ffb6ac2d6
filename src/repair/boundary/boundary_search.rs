//! The search for the end of a broken item.
//!
//! The stage `list` starts a [`BoundarySearch`] for each item that is not valid. The search goes from `<` to
//! `<`, skips sections and wrapped documents, and asks
//! [`record_boundary`](crate::repair::boundary::record_boundary) about each tag.
//!
//! - More text never changes a result. With too little text the result is [`RecordBoundary::NeedMore`].
//! - Results depend on positions in the text only, not on the chunks of the input.

use crate::repair::boundary::record_boundary::{
    RecordBoundary, document_start, end_of_parent, end_tag_len, follows_last_child, is_wrapper, list_end,
    next_item_end, token_before_list_end,
};
use crate::repair::lex::lexeme::{CDATA, COMMENT};
use crate::repair::lex::lookahead::Lookahead;
use crate::repair::lex::search::{find_frequent, memmem};
use crate::repair::validate::envelope_names::{EnvelopeNames, TagMatch};
use crate::repair::validate::state::Validation;

/// The search for the boundary of one item. `text` always begins at the item.
#[derive(Debug, Default)]
pub(crate) struct BoundarySearch {
    at: usize,
    nested_items: usize,
    nested_roots: usize,
    /// The end tag of the element around a wrapped document. It ends the wrapped document in any case.
    around_root: Vec<u8>,
    /// Whether the wrapped content is an item without a document around it.
    wrapped_item: bool,
    /// Whether this is the second search. It treats an element that seems to wrap an item as unclosed. If
    /// `torn-section` is on, it treats a section that contains a boundary as unclosed too.
    is_second: bool,
    /// Whether the first search treated such an element or section as content.
    doubtful: bool,
    /// Whether a section that has an end mark was treated as unclosed.
    torn: bool,
    /// Whether a section was found, closed or not.
    has_sections: bool,
    /// Whether a section that never ends is open at this position.
    in_open_section: bool,
    /// The search waits until the text has this length. Each new attempt reads an unclosed section from its
    /// start.
    retry_at: usize,
    /// The number of bytes that were really read, if the search skipped the rest.
    bytes_read: Option<usize>,
    /// The offset of the item in the text.
    base: u64,
    lookahead: Lookahead,
}

impl BoundarySearch {
    /// Creates a search for the end of the item at offset `base` of the text.
    pub(crate) fn new(base: u64, lookahead: Lookahead) -> Self {
        Self { base, lookahead, ..Self::default() }
    }

    /// Starts the second search: nothing that contains a boundary is content.
    pub(crate) fn into_second_search(mut self) -> Self {
        self.lookahead.count_failed(self.bytes_read.unwrap_or(self.at));
        Self { is_second: true, ..Self::new(self.base, self.lookahead) }
    }

    /// Returns the results of the lookahead, for the next search.
    pub(crate) fn into_lookahead(self) -> Lookahead {
        self.lookahead
    }

    /// Whether a section that has an end mark was treated as unclosed.
    pub(crate) fn found_torn_section(&self) -> bool {
        self.torn
    }

    /// Whether the text up to the boundary contains `<!` or `<?`.
    pub(crate) fn found_section(&self) -> bool {
        self.has_sections
    }

    /// Whether a second search might find another boundary.
    pub(crate) fn allows_second_search(&self) -> bool {
        self.doubtful && !self.is_second
    }

    /// Continues the search. Bytes after `bytes_max` do not count. `probe` validates the item that its
    /// argument begins with.
    pub(crate) fn find(
        &mut self,
        text: &[u8],
        last: bool,
        names: &EnvelopeNames,
        bytes_max: usize,
        probe: &mut impl FnMut(&[u8]) -> Validation,
    ) -> RecordBoundary {
        let bounded = text.len() > bytes_max;
        let text = text.get(..bytes_max).unwrap_or(text);
        if text.len() < self.retry_at && !last && !bounded {
            return RecordBoundary::NeedMore;
        }
        let last = last && !bounded;
        // Bytes after the bound are never read. So the result there is the same as at the end of the input.
        match self.walk(text, last || bounded, bounded, names, probe) {
            Some(RecordBoundary::NeedMore) if bounded => RecordBoundary::TooLong,
            Some(RecordBoundary::NeedMore) => {
                self.retry_at = text.len() + text.len() / 4 + 1;
                RecordBoundary::NeedMore
            }
            Some(boundary) => boundary,
            None if bounded => RecordBoundary::TooLong,
            None if last => {
                // The page is complete. So the element that seemed to wrap an item was never closed.
                self.doubtful |= self.wrapped_item && names.ends_page(text);
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
        names: &EnvelopeNames,
        probe: &mut impl FnMut(&[u8]) -> Validation,
    ) -> Option<RecordBoundary> {
        // The bytes after the bound may contain the end mark of a section.
        let is_whole = last && (!bounded || names.repairs_torn_sections);
        loop {
            if self.lookahead.is_exhausted(self.base + self.at as u64) {
                return Some(RecordBoundary::TooLong);
            }
            let is_nested = self.nested_roots > 0;
            let next = find_frequent(b'<', text, self.at, |at| {
                is_nested || names.may_be_boundary(text.get(at..).unwrap_or_default())
            });
            let Some(at) = next else {
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
                Some(b'!' | b'?') => match self.section(text, at, is_whole, names) {
                    Some(len) => {
                        self.at += len;
                        continue;
                    }
                    None => Some(RecordBoundary::NeedMore),
                },
                Some(b'/') => self.end_tag(text, at, last, names),
                _ => self.start_tag(before, rest, last, names, probe),
            };
            if boundary.is_some() {
                return boundary;
            }
            self.at += 1;
        }
    }

    /// Returns the number of bytes to skip at the section that begins here. `None`: more text is needed.
    fn section(&mut self, text: &[u8], at: usize, last: bool, names: &EnvelopeNames) -> Option<usize> {
        let rest = text.get(at..).unwrap_or_default();
        self.has_sections = true;
        let len = self.skip_section(text, at, last, names)?;
        if len == 1 {
            self.in_open_section |= rest.starts_with(CDATA) || rest.starts_with(COMMENT);
            return Some(len);
        }
        if names.repairs_torn_sections && names.contains_boundary(rest.get(..len).unwrap_or_default()) {
            self.doubtful = true;
            if self.is_second {
                self.torn = true;
                self.in_open_section = true;
                self.lookahead.count_failed(len);
                return Some(1);
            }
        }
        Some(len)
    }

    /// Returns the number of bytes to skip at the section that begins at `at`. This is 1 if no section
    /// begins here or the section is unclosed. `last`: no more text follows.
    fn skip_section(&mut self, text: &[u8], at: usize, last: bool, names: &EnvelopeNames) -> Option<usize> {
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
        if !names.repairs_torn_sections {
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
                if !names.contains_boundary(rest.get(..len).unwrap_or_default()) {
                    return Some(len);
                }
                self.lookahead.count_failed(len);
                self.torn = true;
                Some(1)
            }
            (None, Some(again)) if names.contains_boundary(inner.get(..again).unwrap_or_default()) => {
                self.torn = true;
                Some(1)
            }
            (None, _) if last => Some(1),
            (None, _) => None,
        }
    }

    fn end_tag(
        &mut self,
        text: &[u8],
        at: usize,
        last: bool,
        names: &EnvelopeNames,
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
            names.match_tag(rest, b"</", names.element.name),
            names.match_tag(rest, b"</", &names.verb),
            names.match_tag(rest, b"</", b"OAI-PMH"),
        ];
        match verdicts {
            [TagMatch::Cut, ..] | [_, TagMatch::Cut, _] | [.., TagMatch::Cut] if !last => {
                return Some(RecordBoundary::NeedMore);
            }
            [_, TagMatch::Yes, _] | [.., TagMatch::Yes] if self.nested_roots == 0 => {
                return list_end(text, at, last, self.in_open_section, names);
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
        let ends_child = names.ends_with_child(before);
        match names.follows_item(rest.get(len..).unwrap_or_default()) {
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
        names: &EnvelopeNames,
        probe: &mut impl FnMut(&[u8]) -> Validation,
    ) -> Option<RecordBoundary> {
        if before.is_empty() {
            return None;
        }
        let at = before.len();
        match (names.match_tag(rest, b"<", b"OAI-PMH"), names.starts_token(rest)) {
            (TagMatch::Cut, _) | (_, TagMatch::Cut) if !last => return Some(RecordBoundary::NeedMore),
            (TagMatch::Yes, _) if self.is_second => return None,
            (TagMatch::Yes, _) => {
                if self.nested_roots == 0 {
                    let around = end_of_parent(before);
                    if !is_wrapper(&around, names) {
                        return document_start(rest, at, last);
                    }
                    self.around_root = around;
                }
                self.nested_roots += 1;
                return None;
            }
            (_, TagMatch::Yes) if self.nested_roots == 0 && names.ends_with_child(before) => {
                return Some(RecordBoundary::At(at));
            }
            (_, TagMatch::Yes) if self.nested_roots == 0 => {
                return token_before_list_end(rest, at, last, names);
            }
            _ => {}
        }
        match names.starts_item(rest) {
            _ if self.nested_roots > 0 => return None,
            TagMatch::No => return None,
            TagMatch::Cut if last => return None,
            TagMatch::Cut => return Some(RecordBoundary::NeedMore),
            TagMatch::Yes => {}
        }
        let wrapper = end_of_parent(before);
        if !self.is_second && is_wrapper(&wrapper, names) {
            return self.enter_wrapper(wrapper, rest, at, last);
        }
        self.item_start(before, rest, last, names, probe)
    }

    /// Decides on an item that begins in no element that could wrap it.
    fn item_start(
        &mut self,
        before: &[u8],
        rest: &[u8],
        last: bool,
        names: &EnvelopeNames,
        probe: &mut impl FnMut(&[u8]) -> Validation,
    ) -> Option<RecordBoundary> {
        let at = before.len();
        if self.nested_items == 0 && follows_last_child(before, names) {
            return Some(RecordBoundary::At(at));
        }
        match probe(rest) {
            Validation::Clean(len) => self.whole_item(rest, at, len, last, names),
            Validation::NeedMore if !last => Some(RecordBoundary::NeedMore),
            other => {
                let boundary = self.next_or_nested(rest, at, last, names);
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

    /// Skips an item that begins in an element of the payload, up to the end tag of that element.
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
            // The element contains the rest of the text. The caller adds the last byte.
            self.bytes_read = Some(at);
            self.at = at + rest.len() - 1;
        }
        None
    }

    /// Decides on a valid item inside this one. It is the next item if the list continues after it.
    /// Otherwise it is wrapped in the payload.
    fn whole_item(
        &mut self,
        rest: &[u8],
        at: usize,
        len: usize,
        last: bool,
        names: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        match names.follows_item(rest.get(len..).unwrap_or_default()) {
            TagMatch::Yes => Some(RecordBoundary::At(at)),
            TagMatch::Cut if !last => Some(RecordBoundary::NeedMore),
            TagMatch::Cut => Some(RecordBoundary::At(at)),
            TagMatch::No => {
                // The caller adds the last byte.
                self.at += len - 1;
                None
            }
        }
    }

    /// Decides on a broken item inside this one. It is the next item if its own end is a boundary. Otherwise
    /// it is wrapped in the payload.
    fn next_or_nested(
        &mut self,
        rest: &[u8],
        at: usize,
        last: bool,
        names: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        let from = self.base + at as u64;
        let (searched_to, mut boundary) = self.lookahead.item_end.cached(from);
        if boundary.is_none() {
            let (next, follows) = next_item_end(rest, (searched_to - from) as usize, names);
            boundary = match follows {
                Some(TagMatch::Yes) => Some(true),
                Some(TagMatch::No) => Some(false),
                Some(TagMatch::Cut) | None => None,
            };
            self.lookahead.item_end.cache(from, from + next as u64, boundary);
            // This result is for the end of the held bytes. It does not carry over to the next item.
            boundary = boundary.or((last && follows.is_some()).then_some(true));
        }
        match boundary {
            Some(true) => Some(RecordBoundary::At(at)),
            None if !last => Some(RecordBoundary::NeedMore),
            // No item ends after it: it is wrapped in an item that was cut.
            Some(false) | None => {
                self.nested_items += 1;
                None
            }
        }
    }
}
