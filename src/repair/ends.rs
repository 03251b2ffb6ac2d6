//! How responses end: the token, the end of the list and of the root, what follows them, and input that ends early.
//!
//! A list that was cut short never gets a neat end. The end tags of a list are
//! looked at together with all that follows, up to a bound, because more items
//! or a second document may stand there.

use memchr::memmem;

use super::catalogue::{NotOai, RepairId};
use super::edits::Edits;
use super::engine::{Engine, List, Stage, Step};
use super::gate::{Answer, Role};
use super::head::Landmark;
use super::incomplete::INCOMPLETE;
use super::lexeme::{Lexeme, Lexemes, is_cut, next_lexeme, start_tag_end};
use super::list::Next;
use super::name::{blanks, is_blank, name_span, split_name, trailing_blanks, trim};
use super::prolog::{find_root, is_good_comment, is_xml_target};
use super::schema::Verb;
use super::sink::Sink;
use super::skeleton::{self, Answer as Begins, Prefixes};
use super::text::{Guesses, mend_characters};
use super::token_element::{token_facts, token_value};

/// Bytes that tell one kind of markup from another.
const LEXEME_BYTES: usize = 12;
/// Dropped text is reported in entries of this many bytes.
const DROPPED_BYTES: usize = 64 << 10;
/// What an error says of a list without items.
pub(super) const EMPTY: &str = "The list is empty.";

impl Engine {
    /// `</ListRecords>`, or the root's end where that should stand.
    pub(super) fn list_end(
        &mut self,
        list: &mut List,
        rest: &[u8],
        last: bool,
        sink: &mut impl Sink,
    ) -> Next {
        if !last && rest.len() <= self.limits().head_bytes_max {
            return Next::Stay(self.need_more(rest));
        }
        let whole = rest.len() <= self.limits().head_bytes_max;
        let rest = rest.get(..rest.len().min(self.limits().head_bytes_max)).unwrap_or_default();
        let name_end = 2 + name_span(rest.get(2..).unwrap_or_default());
        let is_root = rest.get(..name_end).is_some_and(|tag| tag.ends_with(b"OAI-PMH"));
        let tag_end = self.end_tag_end(rest);
        if tag_end == rest.len() && last && whole && !rest.ends_with(b">") {
            return Next::Leave(self.end_tag_cut(list, rest, sink));
        }
        if self.list_goes_on(list, rest, tag_end, is_root) {
            return Next::Stay(self.change(RepairId::StrayEndTag, rest, tag_end, b"", sink));
        }
        if let Some(step) = self.second_list(list, rest, sink) {
            return Next::Stay(step);
        }
        if list.broke_off && !list.token_seen {
            self.list_cut(list);
            return Next::Leave(Step::Settled(0));
        }
        self.verb = Some(list.verb);
        if self.must_break_off() {
            self.list_cut(list);
            return Next::Leave(Step::Settled(0));
        }
        if let Some(step) = self.close_list(list, rest.get(tag_end..).unwrap_or_default(), sink) {
            return Next::Leave(step);
        }
        self.stage = Stage::Tail;
        if is_root {
            let close = self.end_tag_of(list.written_name());
            self.gate.change(Role::List, RepairId::UnclosedList, self.base, b"", &close, sink);
            return Next::Leave(Step::Settled(0));
        }
        let names = (list.skeleton.verb.as_slice(), list.written_name());
        let step = self.close_tag(Role::List, names, rest, tag_end, sink);
        if self.version_one.is_some() {
            self.end_version_one(tag_end, sink);
        }
        Next::Leave(step)
    }

    /// An end tag, written anew where it is not in order. `names` are its local name as it
    /// is there and as it is meant.
    fn close_tag(
        &mut self,
        role: Role,
        names: (&[u8], &[u8]),
        rest: &[u8],
        tag_end: usize,
        sink: &mut impl Sink,
    ) -> Step {
        let tag = self.read_end_tag_of(names.0);
        let written = rest.get(..tag_end).unwrap_or_default();
        let bare = written.iter().filter(|&&byte| !is_blank(byte));
        if bare.eq(&tag) && written.get(..tag.len() - 1) == tag.get(..tag.len() - 1) {
            let mut edits = Edits::default();
            self.rename(2, names, &mut edits);
            return self.keep_edited(role, rest, tag_end, &edits, sink);
        }
        let tag = self.end_tag_of(names.1);
        self.gate.change(role, RepairId::MismatchedEndTag, self.base, written, &tag, sink);
        Step::Settled(tag_end)
    }

    /// Gives a tag whose name begins at `at` the prefix and the local name that it should have.
    pub(super) fn rename(&self, at: usize, (read, meant): (&[u8], &[u8]), edits: &mut Edits) {
        let local_at = at + self.prefix.len();
        if self.prefixes() == Prefixes::Off {
            edits.push_unordered(RepairId::EnvelopePrefix, at, local_at, Vec::new());
        }
        if read != meant {
            edits.push_unordered(RepairId::VerbElement, local_at, local_at + read.len(), meant.to_vec());
        }
    }

    /// An end tag of the envelope as it is written.
    pub(super) fn end_tag_of(&self, local: &[u8]) -> Vec<u8> {
        [b"</", self.written_prefix(), local, b">"].concat()
    }

    /// The same as it stands in the text.
    pub(super) fn read_end_tag_of(&self, local: &[u8]) -> Vec<u8> {
        [b"</", self.prefix.as_slice(), local, b">"].concat()
    }

    /// Where the end tag that `rest` begins with ends: at its `>`, or before what cannot belong to it.
    pub(super) fn end_tag_end(&self, rest: &[u8]) -> usize {
        let inner = rest.get(1..).unwrap_or_default();
        match inner.iter().position(|&byte| matches!(byte, b'<' | b'>')) {
            Some(at) if inner.get(at) == Some(&b'>') => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        }
    }

    /// The input ends inside the list's end tag: complete only with a token.
    fn end_tag_cut(&mut self, list: &mut List, rest: &[u8], sink: &mut impl Sink) -> Step {
        self.verb = Some(list.verb);
        if !list.token_seen {
            self.list_cut(list);
            return Step::Settled(0);
        }
        if let Some(step) = self.close_list(list, b"", sink) {
            return step;
        }
        let close = self.end_tag_of(list.written_name());
        self.stage = Stage::Tail;
        self.gate.change(Role::List, RepairId::UnclosedList, self.base, rest, &close, sink);
        Step::Settled(rest.len())
    }

    /// White space and comments that `text` begins with.
    pub(super) fn misc_len(&self, text: &[u8]) -> usize {
        let mut at = 0;
        loop {
            at += blanks(text.get(at..).unwrap_or_default());
            let (lexeme, end) = next_lexeme(text, at);
            if at >= text.len() || !matches!(lexeme, Lexeme::Comment | Lexeme::Instruction) {
                return at;
            }
            at = end;
        }
    }

    /// Whether an item or a token of this list comes after its end tag, or after that of the root, in
    /// the same document. White space and comments aside it may come at once; further away it needs
    /// the start of its content.
    fn list_goes_on(&mut self, list: &List, rest: &[u8], from: usize, is_root: bool) -> bool {
        let behind = rest.get(from..).unwrap_or_default();
        let next = behind.get(self.misc_len(behind)..).unwrap_or_default();
        if !is_root && self.is_item_or_token(list, next) {
            return true;
        }
        if !self.gate.is_open() {
            return false;
        }
        if self.base + from as u64 <= self.goes_on_at {
            return true;
        }
        let mut at = from;
        let mut lexemes = Lexemes::of(rest);
        while at < rest.len() {
            let (lexeme, end) = lexemes.at(at);
            let text = rest.get(at..).unwrap_or_default();
            let name = text.get(1..1 + name_span(text.get(1..).unwrap_or_default())).unwrap_or_default();
            if lexeme == Lexeme::StartTag {
                let local = split_name(name).1;
                if local == b"OAI-PMH" || self.version_one.is_some() && Verb::from_name(local).is_some() {
                    return false;
                }
                let is_token = list.verb.has_token() && self.is_token(name);
                if is_token || list.skeleton.starts_item(text) == Begins::Yes {
                    self.goes_on_at = self.base + at as u64;
                    return true;
                }
            }
            at = end;
        }
        false
    }

    fn is_item_or_token(&self, list: &List, text: &[u8]) -> bool {
        let name = text.get(1..1 + name_span(text.get(1..).unwrap_or_default())).unwrap_or_default();
        text.starts_with(b"<")
            && (name.strip_prefix(self.prefix.as_slice()) == Some(list.skeleton.element.name)
                || list.verb.has_token() && self.is_token(name))
    }

    /// The list is complete: decides what an answer without items becomes, and
    /// writes a token that was held back. `Some` when there is no answer. `behind` is what
    /// follows its end: a list that was closed before its items does not say that there are none.
    fn close_list(&mut self, list: &mut List, behind: &[u8], sink: &mut impl Sink) -> Option<Step> {
        let has_token = list.token_seen;
        if !self.gate.is_open() {
            if has_token {
                self.gate.release(Answer::List, None, sink);
            } else if self.unknown_error {
                return Some(self.refuse(NotOai::UnknownError));
            } else if self.gate.quarantined > 0
                || self.gate.lost > 0
                || list.dropped && !self.gate.holds_error()
                || self.holds_any_item(behind)
            {
                // What was dropped may have said why there is nothing.
                return Some(self.refuse(NotOai::NothingKept));
            } else {
                let code = if self.gate.holds_error() { None } else { Some(list.empty_code()) };
                match code {
                    None => {}
                    Some(None) => return Some(self.refuse(NotOai::NothingKept)),
                    Some(Some(code)) => {
                        let error = self.error_element(code, EMPTY);
                        self.gate.change(Role::Plain, RepairId::EmptyList, self.base, b"", &error, sink);
                    }
                }
            }
        }
        if let Some(token) = list.token.take() {
            self.gate.change(Role::Plain, RepairId::ElementOrder, self.base, b"", &token, sink);
            self.gate.token(&token_facts(&token, &token_value(&token)), sink);
        }
        if self.lacks_last_token(list, behind) {
            let token = [b"<", self.written_prefix(), b"resumptionToken/>"].concat();
            self.gate.change(Role::Plain, RepairId::MissingLastToken, self.base, b"", &token, sink);
            self.gate.token(&token_facts(&token, b""), sink);
        }
        None
    }

    /// Whether a list that was gone on with is over, and does not say so. One of which an earlier pass has said
    /// that it broke off is not.
    fn lacks_last_token(&self, list: &List, behind: &[u8]) -> bool {
        let is_last = list.verb.has_token() && self.asked.resumes && !list.token_seen;
        let broke_off = trim(behind).starts_with(INCOMPLETE);
        is_last
            && !broke_off
            && !self.gate.incomplete
            && self.gate.is_open()
            && !self.is_off(RepairId::MissingLastToken)
    }

    /// A list that is closed as soon as it is opened, with nothing but white
    /// space inside: becomes an error as a whole.
    pub(super) fn empty_list(
        &mut self,
        list: &List,
        rest: &[u8],
        tag_end: usize,
        is_empty_tag: bool,
        last: bool,
        sink: &mut impl Sink,
    ) -> Option<Next> {
        let code = list.empty_code()?;
        let mut end = tag_end;
        if !is_empty_tag {
            let behind = rest.get(tag_end..).unwrap_or_default();
            let bytes_max = self.limits().head_bytes_max;
            let behind = behind.get(..behind.len().min(bytes_max)).unwrap_or_default();
            let close = self.read_end_tag_of(&list.skeleton.verb);
            let inside = blanks(behind);
            let next = behind.get(inside..).unwrap_or_default();
            if next.len() < close.len() && !last && close.starts_with(next) && behind.len() < bytes_max {
                return Some(Next::Stay(self.need_more(rest)));
            }
            if !next.starts_with(&close) {
                return None;
            }
            end = tag_end + inside + close.len();
        }
        let bytes_max = self.limits().head_bytes_max;
        if !last && rest.len() <= bytes_max {
            return Some(Next::Stay(self.need_more(rest)));
        }
        self.verb = Some(list.verb);
        let behind = rest.get(end..rest.len().min(bytes_max)).unwrap_or_default();
        if !self.holds_items(behind)
            && let Some(step) = self.second_document(rest, sink)
        {
            return Some(Next::Leave(step));
        }
        if self.holds_any_item(behind) {
            // It was closed before its items, which is no way to say that there are none.
            return Some(Next::Leave(self.refuse(NotOai::NothingKept)));
        }
        self.stage = Stage::Tail;
        let error = self.error_element(code, EMPTY);
        Some(Next::Leave(self.change(RepairId::EmptyList, rest, end, &error, sink)))
    }

    pub(super) fn error_element(&self, code: &str, words: &str) -> Vec<u8> {
        let close = self.end_tag_of(b"error");
        let start = [b"<", self.written_prefix(), b"error code=\"", code.as_bytes(), b"\">"].concat();
        [start.as_slice(), words.as_bytes(), &close].concat()
    }

    /// Behind the verb element: white space and comments up to the root's end.
    pub(super) fn tail(&mut self, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        let gap = blanks(rest);
        if gap > 0 {
            return self.keep(Role::Plain, rest, gap, sink);
        }
        let bytes_max = self.limits().head_bytes_max;
        if !self.gate.is_open() && self.gate.held_bytes > bytes_max {
            return self.refuse(NotOai::BrokenEnvelope);
        }
        let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
        let (lexeme, end) = next_lexeme(within, 0);
        let text = within.get(..end).unwrap_or_default();
        // An error goes with what it says.
        let error_end = if lexeme == Lexeme::StartTag && self.is_error(text) {
            self.error_end(within, end)
        } else {
            Some(end)
        };
        let undecided = error_end.is_none()
            || is_cut(within, 0, (lexeme, end))
            || end >= rest.len().saturating_sub(1)
            || rest.len() < LEXEME_BYTES;
        if undecided && !last && rest.len() < bytes_max {
            return self.need_more(rest);
        }
        let root_end = [b"</", self.prefix.as_slice(), b"OAI-PMH"].concat();
        let is_root_end = lexeme == Lexeme::EndTag
            && text
                .strip_prefix(root_end.as_slice())
                .is_some_and(|rest| rest.first().is_none_or(|&b| is_blank(b) || b == b'>'));
        if is_root_end {
            if let Some(refused) = self.answer_errors(sink) {
                return refused;
            }
            if self.must_break_off() {
                return self.break_off();
            }
            self.note_incomplete(self.base, sink);
            self.stage = Stage::Epilog;
            let end = self.end_tag_end(within);
            return self.close_tag(Role::Plain, (b"OAI-PMH", b"OAI-PMH"), rest, end, sink);
        }
        if lexeme == Lexeme::StartTag && !self.gate.is_open() {
            match self.begins_item(within) {
                skeleton::Answer::Cut if !last && rest.len() < bytes_max => return self.need_more(rest),
                answer => self.items_outside |= answer == skeleton::Answer::Yes,
            }
        }
        if error_end.is_none() || lexeme != Lexeme::BareLessThan && is_cut(within, 0, (lexeme, end)) {
            self.lookahead.in_vain(within.len());
        }
        match lexeme {
            Lexeme::Comment if self.is_legal_comment(text) => self.keep(Role::Plain, rest, end, sink),
            Lexeme::Instruction if self.is_legal_instruction(text) => self.keep(Role::Plain, rest, end, sink),
            Lexeme::StartTag if self.is_error(text) => {
                self.change(RepairId::ErrorBesideItems, rest, error_end.unwrap_or(end), b"", sink)
            }
            Lexeme::EndTag if last && end == rest.len() && root_end.starts_with(text) => {
                self.torn_root(rest, sink)
            }
            Lexeme::EndTag => self.change(RepairId::StrayEndTag, rest, end, b"", sink),
            _ if last && root_end.starts_with(rest) => self.torn_root(rest, sink),
            // The blanks behind stray text stay.
            Lexeme::Text => {
                self.change(RepairId::UnexpectedContent, rest, end - trailing_blanks(text), b"", sink)
            }
            _ => self.change(RepairId::UnexpectedContent, rest, end, b"", sink),
        }
    }

    /// The input ends inside the root's end tag.
    fn torn_root(&mut self, rest: &[u8], sink: &mut impl Sink) -> Step {
        if let Some(refused) = self.answer_errors(sink) {
            return refused;
        }
        if self.must_break_off() {
            return self.break_off();
        }
        self.note_incomplete(self.base, sink);
        self.stage = Stage::Epilog;
        let close = self.end_tag_of(b"OAI-PMH");
        self.change(RepairId::UnclosedList, rest, rest.len(), &close, sink)
    }

    fn is_error(&self, tag: &[u8]) -> bool {
        let open = [b"<", self.prefix.as_slice(), b"error"].concat();
        tag.strip_prefix(open.as_slice())
            .and_then(|rest| rest.first())
            .is_some_and(|&b| is_blank(b) || matches!(b, b'>' | b'/'))
    }

    /// Where the error whose start tag ends at `tag_end` ends, if that is in `text`.
    fn error_end(&self, text: &[u8], tag_end: usize) -> Option<usize> {
        if text.get(..tag_end)?.ends_with(b"/>") {
            return Some(tag_end);
        }
        let close = self.read_end_tag_of(b"error");
        memmem::find(text, &close).map(|at| at + close.len())
    }

    pub(super) fn is_legal_comment(&self, text: &[u8]) -> bool {
        is_good_comment(text)
            && mend_characters(text, &[], Guesses::default(), &self.config.limits).is_empty()
    }

    pub(super) fn is_legal_instruction(&self, text: &[u8]) -> bool {
        !is_xml_target(text) && mend_characters(text, &[], Guesses::default(), &self.config.limits).is_empty()
    }

    /// Behind the root: white space and comments stay, from the first other
    /// thing on everything goes.
    pub(super) fn epilog(&mut self, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        let gap = blanks(rest);
        if gap > 0 {
            return self.keep(Role::Plain, rest, gap, sink);
        }
        let within = rest.get(..rest.len().min(DROPPED_BYTES)).unwrap_or_default();
        let (lexeme, end) = next_lexeme(within, 0);
        let text = within.get(..end).unwrap_or_default();
        let undecided = matches!(lexeme, Lexeme::OpenComment | Lexeme::OpenTag)
            || end >= rest.len().saturating_sub(1)
            || rest.len() < LEXEME_BYTES;
        if undecided && !last && rest.len() < DROPPED_BYTES {
            return self.need_more(rest);
        }
        match lexeme {
            Lexeme::Comment if self.is_legal_comment(text) => self.keep(Role::Plain, rest, end, sink),
            Lexeme::Instruction if self.is_legal_instruction(text) => self.keep(Role::Plain, rest, end, sink),
            _ => {
                if !last && rest.len() < DROPPED_BYTES {
                    return self.need_more(rest);
                }
                let junk = rest.get(..rest.len().min(DROPPED_BYTES)).unwrap_or_default();
                self.change(RepairId::TrailingJunk, rest, junk.len(), b"", sink)
            }
        }
    }

    /// Whether items of the list stand in what is about to be dropped, and not
    /// in a document of their own.
    pub(super) fn holds_items(&self, junk: &[u8]) -> bool {
        let Some(verb) = self.verb else { return false };
        let own = junk.get(..find_root(junk).unwrap_or(junk.len())).unwrap_or_default();
        self.list_of(verb).skeleton.holds_item(own)
    }

    /// The rest of a response that was lost is reported, not written.
    pub(super) fn lost(&mut self, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        if !last && rest.len() < DROPPED_BYTES {
            return Step::NeedMore;
        }
        self.change(RepairId::TruncatedInput, rest, rest.len().min(DROPPED_BYTES), b"", sink)
    }

    /// The input is over: closes what may be closed.
    pub(super) fn end(&mut self, sink: &mut impl Sink) {
        if self.not_oai.is_some() {
            return;
        }
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Prolog => self.not_oai = Some(NotOai::Empty),
            Stage::Head => self.not_oai = Some(NotOai::NothingKept),
            Stage::Errors | Stage::Tail => {
                if self.answer_errors(sink).is_none() {
                    self.close_root(sink);
                }
            }
            Stage::List(mut list) => self.end_of_list(&mut list, sink),
            Stage::Oversized(list) => self.end_of_oversized(&list, sink),
            Stage::Lost => self.close_cut(sink),
            Stage::Epilog => self.note_incomplete(self.base, sink),
            Stage::Done => {}
        }
        if self.not_oai.is_none() && !self.gate.is_open() {
            self.not_oai = Some(NotOai::NothingKept);
        }
    }

    fn close_root(&mut self, sink: &mut impl Sink) {
        if self.must_break_off() {
            self.truncated = true;
            return;
        }
        self.note_incomplete(self.base, sink);
        let close = self.end_tag_of(b"OAI-PMH");
        self.gate.change(Role::Plain, RepairId::UnclosedList, self.base, b"", &close, sink);
    }

    /// The input ended between items: complete when the token was read whole.
    fn end_of_list(&mut self, list: &mut List, sink: &mut impl Sink) {
        self.verb = Some(list.verb);
        if !list.opened || list.verb == Verb::Identify {
            self.refuse(NotOai::NothingKept);
            return;
        }
        // GetRecord has room for one record, and that one is there.
        let complete = list.token_seen || list.verb == Verb::GetRecord && self.gate.records > 0;
        if !complete || self.gate.incomplete {
            self.list_cut(list);
            if matches!(self.stage, Stage::Lost) {
                self.close_cut(sink);
            }
            return;
        }
        if self.close_list(list, b"", sink).is_none() {
            let close = [self.end_tag_of(list.written_name()), self.end_tag_of(b"OAI-PMH")].concat();
            if self.answer_errors(sink).is_none() {
                self.gate.change(Role::Plain, RepairId::UnclosedList, self.base, b"", &close, sink);
            }
        }
    }

    /// A second document in the same body that goes on with this list: the
    /// skeleton between the two is removed.
    fn second_list(&mut self, list: &mut List, rest: &[u8], sink: &mut impl Sink) -> Option<Step> {
        let rest = self.looked_at(rest);
        let (verb_at, verb) = self.second_verb(rest)?;
        if verb != list.verb || verb == Verb::Identify || verb == Verb::GetRecord {
            return None;
        }
        let tag = rest.get(verb_at..)?;
        let end = verb_at
            + start_tag_end(tag).filter(|&end| tag.get(..end).is_some_and(|tag| !tag.ends_with(b"/>")))?;
        self.in_second_document = true;
        Some(self.change(RepairId::ConcatenatedDocuments, rest, end, b"", sink))
    }

    /// Errors were the whole first document, or an empty list: a second one that has a list takes
    /// its place.
    pub(super) fn second_document(&mut self, rest: &[u8], sink: &mut impl Sink) -> Option<Step> {
        let rest = self.looked_at(rest);
        let (verb_at, named) = self.second_verb(rest)?;
        let verb = self.verb_element(rest, verb_at, named, true).ok()?;
        self.stage = Stage::List(Box::new(self.list_of(verb)));
        Some(self.change(RepairId::ConcatenatedDocuments, rest, verb_at, b"", sink))
    }

    /// A root inside a list that was never closed.
    pub(super) fn second_document_in_list(
        &mut self,
        list: &mut List,
        rest: &[u8],
        last: bool,
        sink: &mut impl Sink,
    ) -> Option<Step> {
        if !last && rest.len() <= self.limits().head_bytes_max {
            return Some(self.need_more(rest));
        }
        self.second_list(list, rest, sink)
    }

    /// As much of `rest` as is there whenever a second document is looked for, unless the input ends.
    pub(super) fn looked_at<'t>(&self, rest: &'t [u8]) -> &'t [u8] {
        rest.get(..rest.len().min(self.limits().head_bytes_max)).unwrap_or_default()
    }

    /// The verb element of the next document in `within`.
    fn second_verb(&self, within: &[u8]) -> Option<(usize, Verb)> {
        if self.version_one.is_some() {
            return None;
        }
        let root = find_root(within)?;
        let tag = within.get(root..)?;
        let from = root + start_tag_end(tag)?;
        match self.landmark(within.get(from..)?, true) {
            Ok(Some((at, Landmark::Verb(verb)))) => Some((from + at, verb)),
            _ => None,
        }
    }
}

impl List {
    /// The error that says that there is nothing of this kind. What an empty list says
    /// depends on what it calls itself, whatever was asked.
    pub(super) fn empty_code(&self) -> Option<&'static str> {
        match Verb::from_name(&self.skeleton.verb).unwrap_or(self.verb) {
            Verb::ListRecords | Verb::ListIdentifiers => Some("noRecordsMatch"),
            Verb::ListSets => Some("noSetHierarchy"),
            Verb::ListMetadataFormats => Some("noMetadataFormats"),
            Verb::GetRecord | Verb::Identify => None,
        }
    }
}
