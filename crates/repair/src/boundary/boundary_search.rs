//! The search for the end of a broken item.
//!
//! The stage `list` starts a [`BoundarySearch`] for each item that is not valid. The search goes from tag to
//! tag, skips sections, and follows the open elements. The item ends where its element closes. If it never
//! closes, the item was torn: see [`open_elements`](crate::boundary::open_elements).
//!
//! - More text never changes a result. With too little text the result is [`RecordBoundary::NeedMore`].
//! - Results depend on positions in the text only, not on the chunks of the input.

use crate::boundary::open_elements::{Closing, ElementKind, Evidence, OpenElements};
use crate::boundary::record_boundary::{
    RecordBoundary, document_start, end_tag_len, follows_last_child, list_end, parent_name,
    token_before_list_end,
};
use crate::boundary::usual_end::{CountingTags, UsualEnd, UsualTag, may_end_usually};
use crate::lex::lexeme::{CDATA, COMMENT, TagEnd, find_tag_end, is_torn_declaration};
use crate::lex::lookahead::Lookahead;
use crate::lex::names::{may_start_name, name_span};
use crate::lex::search::{memchr, memmem};
use crate::lex::window::TextWindow;
use crate::validate::envelope_names::{EnvelopeNames, TagMatch};

/// The search for the boundary of one item. `text` always begins at the item.
#[derive(Debug, Default)]
pub(crate) struct BoundarySearch {
    at: usize,
    /// The search without open elements, while it may succeed.
    usual: Option<UsualEnd>,
    open: OpenElements,
    /// The evidence that the item is torn at its boundary, if it is.
    tear: Option<Evidence>,
    /// Whether this is the second search. If `torn-section` is on, it treats a section that contains a
    /// boundary as unclosed.
    is_second: bool,
    /// Whether the first search treated such a section as content.
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
    /// The offset of the item in the text.
    base: u64,
    lookahead: Lookahead,
}

impl BoundarySearch {
    /// Creates a search for the end of the item at offset `base` of the text.
    pub(crate) fn new(base: u64, lookahead: Lookahead) -> Self {
        Self { base, lookahead, usual: Some(UsualEnd::default()), ..Self::default() }
    }

    /// Creates a search for the end of a record that has a common header and no section before its payload, which
    /// begins at `payload_at` of the record.
    pub(crate) fn new_in_payload(base: u64, lookahead: Lookahead, payload_at: usize) -> Self {
        let usual = Some(UsualEnd::in_metadata());
        Self { base, lookahead, usual, at: payload_at, ..Self::default() }
    }

    /// Creates a search for the end of an item whose start tag is lost. The text begins at one of its children.
    pub(crate) fn new_inside_item(base: u64, lookahead: Lookahead) -> Self {
        let mut search = Self::new(base, lookahead);
        search.usual = None;
        search.open.open(0, 0, ElementKind::Item);
        search
    }

    /// Starts the second search: no section that contains a boundary is content.
    pub(crate) fn into_second_search(mut self) -> Self {
        self.lookahead.count_failed(self.at);
        Self { is_second: true, usual: None, ..Self::new(self.base, self.lookahead) }
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

    /// The evidence that the item is torn at its boundary, if it is.
    pub(crate) fn tear(&self) -> Option<Evidence> {
        self.tear
    }

    /// The items before the boundary `end` that may belong to the list, in the order of the text.
    pub(crate) fn unproven_items(&self, end: usize) -> Vec<usize> {
        self.open.unproven_before(end)
    }

    /// Whether a second search might find another boundary.
    pub(crate) fn allows_second_search(&self) -> bool {
        self.doubtful && !self.is_second
    }

    /// Continues the search. Bytes after `bytes_max` do not count.
    pub(crate) fn find(
        &mut self,
        window: TextWindow<'_>,
        names: &EnvelopeNames,
        bytes_max: usize,
    ) -> RecordBoundary {
        let bounded = window.text.len() > bytes_max;
        // Bytes after the bound are never read. So the result there is the same as at the end of the input.
        let window = window.up_to(bytes_max);
        let len = window.text.len();
        if len < self.retry_at && !window.is_last {
            return RecordBoundary::NeedMore;
        }
        match self.walk(window, bounded, names) {
            Some(RecordBoundary::NeedMore) if !window.is_last => {
                self.retry_at = len + len / 4 + 1;
                RecordBoundary::NeedMore
            }
            None if !window.is_last => {
                self.retry_at = 0;
                RecordBoundary::NeedMore
            }
            None | Some(RecordBoundary::NeedMore) => self.undecided(len, bounded),
            Some(boundary) => boundary,
        }
    }

    fn walk(
        &mut self,
        window: TextWindow<'_>,
        bounded: bool,
        names: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        let text = window.text;
        // The bytes after the bound may contain the end mark of a section.
        let whole = TextWindow::new(text, window.is_last && (!bounded || names.repairs_torn_sections));
        if may_end_usually(names)
            && let Some(usual) = self.usual.take()
        {
            match self.walk_usually(usual, whole, names) {
                UsualTag::End(end) => return Some(RecordBoundary::At(end)),
                UsualTag::NeedMore => return Some(RecordBoundary::NeedMore),
                UsualTag::Other if !window.is_last => return None,
                UsualTag::Other | UsualTag::Unusual => {
                    self.usual = None;
                    self.in_open_section = false;
                    self.at = 0;
                }
            }
        }
        loop {
            if self.lookahead.is_exhausted(self.base + self.at as u64) {
                return Some(RecordBoundary::TooLong);
            }
            let Some(next) = memchr(b'<', text.get(self.at..).unwrap_or_default()) else {
                self.at = text.len();
                return None;
            };
            let at = self.at + next;
            self.at = at;
            let rest = text.get(at..).unwrap_or_default();
            if rest.len() < CDATA.len() && !window.is_last {
                return Some(RecordBoundary::NeedMore);
            }
            let boundary = match rest.get(1) {
                Some(b'!' | b'?') => match self.section(whole, at, names) {
                    Some(len) => {
                        self.at += len;
                        continue;
                    }
                    None => Some(RecordBoundary::NeedMore),
                },
                Some(b'/') => self.end_tag(window, at, names),
                _ => self.start_tag(window, at, names),
            };
            if boundary.is_some() {
                return boundary;
            }
            self.at += 1;
        }
    }

    /// Searches the end without open elements.
    fn walk_usually(
        &mut self,
        mut usual: UsualEnd,
        window: TextWindow<'_>,
        names: &EnvelopeNames,
    ) -> UsualTag {
        let text = window.text;
        let tags = CountingTags::new(names);
        loop {
            self.at = tags.find(text, self.at).unwrap_or(text.len());
            let at = self.at;
            let rest = text.get(at..).unwrap_or_default();
            let found = if rest.len() < CDATA.len() && !window.is_last {
                if rest.is_empty() { UsualTag::Other } else { UsualTag::NeedMore }
            } else if rest.is_empty() {
                UsualTag::Other
            } else if matches!(rest.get(1), Some(b'!' | b'?')) {
                match self.section(window, at, names) {
                    None => UsualTag::NeedMore,
                    Some(1) => UsualTag::Unusual,
                    Some(len) => {
                        self.at += len;
                        continue;
                    }
                }
            } else {
                usual.read(window, at, names)
            };
            match found {
                UsualTag::Other if !rest.is_empty() => self.at += 1,
                found => {
                    self.usual = Some(usual);
                    return found;
                }
            }
        }
    }

    /// Returns the number of bytes to skip at the section that begins here. `None`: more text is needed.
    fn section(&mut self, window: TextWindow<'_>, at: usize, names: &EnvelopeNames) -> Option<usize> {
        let text = window.text;
        let rest = text.get(at..).unwrap_or_default();
        self.has_sections = true;
        let len = self.skip_section(window, at, names)?;
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
    /// begins here or the section is unclosed.
    fn skip_section(&mut self, window: TextWindow<'_>, at: usize, names: &EnvelopeNames) -> Option<usize> {
        let text = window.text;
        let rest = text.get(at..).unwrap_or_default();
        let [cdata_end, comment_end, instruction_end] = &mut self.lookahead.section_ends;
        let (mark, end_mark, ahead): (&[u8], &[u8], _) = if rest.starts_with(CDATA) {
            (CDATA, b"]]>", cdata_end)
        } else if rest.starts_with(COMMENT) {
            (COMMENT, b"-->", comment_end)
        } else if rest.starts_with(b"<?") && !is_torn_declaration(rest) {
            (b"<?", b"?>", instruction_end)
        } else {
            return Some(1);
        };
        let inner = rest.get(mark.len()..).unwrap_or_default();
        let end = ahead.find(text, self.base, at + mark.len(), end_mark).map(|end| end - at - mark.len());
        if !names.repairs_torn_sections {
            return match end {
                Some(end) => Some(mark.len() + end + end_mark.len()),
                None => window.is_last.then_some(1),
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
            (None, _) if window.is_last => Some(1),
            (None, _) => None,
        }
    }

    fn end_tag(
        &mut self,
        window: TextWindow<'_>,
        at: usize,
        names: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        let text = window.text;
        let rest = text.get(at..).unwrap_or_default();
        let Some(len) = end_tag_len(rest) else {
            return if window.is_last { None } else { Some(RecordBoundary::NeedMore) };
        };
        let body = rest.get(2..).unwrap_or_default();
        let name = body.get(..name_span(body)).unwrap_or_default();
        match self.list_end(window, at, name, names) {
            Some(RecordBoundary::At(at)) => return Some(self.torn_or(at)),
            None => {}
            more => return more,
        }
        let ends_item = names.match_tag(rest, b"</", names.element.name) == TagMatch::Yes;
        let closing = match self.open.closing(text, name, names) {
            Closing::Nothing => self.open.reopen(text, name),
            found => found,
        };
        match closing {
            // An item may have the other prefix of the list in its end tag.
            Closing::Nothing if !ends_item => None,
            Closing::Nothing | Closing::Element(0) => self.item_end(window, at, len, names),
            Closing::Element(index) => {
                self.open.close(index);
                None
            }
        }
    }

    /// Decides on an end tag of the list or the response. If the payload opened an element of this name, it
    /// ends that element, unless only the end of the response follows.
    fn list_end(
        &self,
        window: TextWindow<'_>,
        at: usize,
        name: &[u8],
        names: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        let text = window.text;
        let rest = text.get(at..).unwrap_or_default();
        let is_named = |name: &[u8]| names.match_tag(rest, b"</", name) == TagMatch::Yes;
        let is_list = is_named(&names.verb);
        if !is_list && !is_named(b"OAI-PMH") {
            return None;
        }
        if self.open.contains(text, &[names.prefix.as_slice(), b"OAI-PMH"].concat()) {
            return None;
        }
        if self.open.depth() <= 1 {
            return Some(RecordBoundary::At(at));
        }
        // In an unclosed section, the tag is content unless the item is complete.
        if self.in_open_section {
            return None;
        }
        list_end(window, at, is_list && self.open.contains(text, name), names)
    }

    /// Decides on an end tag of the item. It ends the item if nothing else is open, unless that is damage: the
    /// list does not continue, and no child of the item ends before it. Inside an open element it ends the
    /// item only if the list continues, and no element around it closes later.
    fn item_end(
        &mut self,
        window: TextWindow<'_>,
        at: usize,
        len: usize,
        names: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        let text = window.text;
        let before = text.get(..at).unwrap_or_default();
        let continues = match names.follows_item(text.get(at + len..).unwrap_or_default()) {
            TagMatch::Cut if !window.is_last => return Some(RecordBoundary::NeedMore),
            found => found != TagMatch::No,
        };
        if !continues && !names.ends_with_child(before) {
            return None;
        }
        let is_after_children = self.open.depth() <= 2 && names.ends_with_child(before)
            || self.open.is_outside_payload(text, names)
            || self.open.is_after_payload(text, names);
        if is_after_children {
            return Some(self.torn_or(at + len));
        }
        self.note_place(at + len, Evidence::Field)
    }

    fn start_tag(
        &mut self,
        window: TextWindow<'_>,
        at: usize,
        names: &EnvelopeNames,
    ) -> Option<RecordBoundary> {
        let text = window.text;
        let rest = text.get(at..).unwrap_or_default();
        if !rest.get(1).copied().is_some_and(may_start_name) {
            return None;
        }
        let len = match find_tag_end(window.after(at)) {
            TagEnd::At(len) => len,
            // The mark is text.
            TagEnd::Never => return None,
            TagEnd::Unknown => return Some(RecordBoundary::NeedMore),
        };
        let body = rest.get(1..).unwrap_or_default();
        let name_len = name_span(body);
        self.open.close_child_before(text, body.get(..name_len).unwrap_or_default(), names);
        let Ok(begun) = self.begins(window, at, names) else { return Some(RecordBoundary::NeedMore) };
        let is_named = match begun {
            Some(Begun::Item) => match names.has_identifier_first(rest) {
                TagMatch::Cut if !window.is_last => return Some(RecordBoundary::NeedMore),
                found => found == TagMatch::Yes,
            },
            _ => false,
        };
        if let Some(begun) = begun
            && at > 0
        {
            if begun == Begun::Item && self.open.depth() > 1 && self.open.in_item() == Some(true) {
                // The item before it lost its end tag only.
                self.open.close(self.open.depth() - 1);
            }
            let follows_item =
                self.open.depth() <= 2 && follows_last_child(text.get(..at).unwrap_or_default(), names);
            if follows_item || self.open.is_outside_payload(text, names) {
                return Some(self.torn_or(at));
            }
            let evidence = self.evidence(text, at, begun, names);
            if is_named || begun == Begun::Token {
                let is_wrapped = self.open.is_in_wrapper(text, names);
                self.open.note_inner(at, begun == Begun::Token, is_wrapped);
            }
            if let Some(boundary) = self.note_place(at, evidence) {
                return Some(boundary);
            }
        }
        if rest.get(..len).is_some_and(|tag| tag.ends_with(b"/>")) {
            self.open.note_child();
        } else {
            let kind = match begun {
                Some(Begun::Item) if is_named => ElementKind::Item,
                Some(Begun::Response) => ElementKind::Root,
                _ if self.open.depth() == 0 => ElementKind::Item,
                _ => ElementKind::Other,
            };
            self.open.open(at + 1, name_len, kind);
        }
        // Markup in the tag may begin a section.
        let is_plain = memchr(b'<', rest.get(1..len).unwrap_or_default()).is_none();
        self.at = if is_plain { at + len - 1 } else { at };
        None
    }

    /// Returns whether an item, a token or a whole response begins at the start tag at `at`.
    ///
    /// # Errors
    /// Fails if more text is needed.
    fn begins(&self, window: TextWindow<'_>, at: usize, names: &EnvelopeNames) -> Result<Option<Begun>, ()> {
        let text = window.text;
        let rest = text.get(at..).unwrap_or_default();
        match names.starts_item(rest) {
            TagMatch::Yes => return Ok(Some(Begun::Item)),
            TagMatch::Cut if !window.is_last => return Err(()),
            _ => {}
        }
        match names.starts_other_item(rest) {
            // The first header of a record is a part of it.
            _ if self.open.in_item() == Some(false) => {}
            TagMatch::Yes => return Ok(Some(Begun::Item)),
            TagMatch::Cut if !window.is_last => return Err(()),
            _ => {}
        }
        if names.match_tag(rest, b"<", b"OAI-PMH") == TagMatch::Yes && !self.is_second {
            return match document_start(window.after(at), at) {
                Some(RecordBoundary::NeedMore) => Err(()),
                found => Ok(found.map(|_| Begun::Response)),
            };
        }
        if names.starts_token(rest) == TagMatch::Yes {
            let is_outside = self.open.is_outside_payload(text, names);
            return match token_before_list_end(window.after(at), at, names) {
                Some(RecordBoundary::NeedMore) if !is_outside => Err(()),
                None if !is_outside => Ok(None),
                _ => Ok(Some(Begun::Token)),
            };
        }
        Ok(None)
    }

    /// The evidence for a torn item where something of the list begins.
    fn evidence(&self, text: &[u8], at: usize, begun: Begun, names: &EnvelopeNames) -> Evidence {
        if !self.open.is_in_wrapper(text, names) {
            Evidence::Field
        } else if parent_name(text.get(..at).unwrap_or_default()) == self.open.innermost(text) {
            Evidence::Wrapper
        } else if begun == Begun::Response {
            Evidence::Field
        } else {
            Evidence::Element
        }
    }

    /// Notes a place at which the list may continue. If an earlier search has read the text up to the end of
    /// the list, its result is known.
    fn note_place(&mut self, at: usize, evidence: Evidence) -> Option<RecordBoundary> {
        self.open.note_place(at, evidence);
        let is_torn = self.lookahead.torn_places.contains(self.base, self.base + at as u64);
        is_torn.then(|| self.torn_or(at))
    }

    /// The boundary of an item whose open elements never close: the first place at which the list may
    /// continue, or else `at`.
    fn torn_or(&mut self, at: usize) -> RecordBoundary {
        let Some(place) = self.open.first_place() else { return RecordBoundary::At(at) };
        let places = self.open.places().iter().map(|place| self.base + place.at as u64);
        self.lookahead.count_failed(at - place.at.min(at));
        self.lookahead.torn_places.keep(self.base, self.base + at as u64, places);
        self.tear = Some(place.evidence);
        RecordBoundary::At(place.at)
    }

    /// The boundary if the text up to the bound decides nothing, or if the input ends.
    fn undecided(&mut self, at: usize, bounded: bool) -> RecordBoundary {
        // The item and the input were probably cut at one place and not at two.
        let weakest = if bounded { Evidence::Element } else { Evidence::Field };
        match self.open.first_place().filter(|place| place.evidence >= weakest) {
            Some(_) => self.torn_or(at),
            None if bounded => RecordBoundary::TooLong,
            None => RecordBoundary::InputEnd,
        }
    }
}

/// The part of a list that begins at a start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Item,
    Token,
    Response,
}
