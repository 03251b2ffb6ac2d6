//! Error elements: held until it is known that no list follows.

use memchr::{memchr, memchr2, memmem};

use super::catalogue::{NotOai, RepairId};
use super::edits::Edits;
use super::engine::{Engine, Stage, Step};
use super::error_words::meant_error;
use super::gate::{self, Role};
use super::head::Landmark;
use super::lexeme::{Lexeme, Lexemes, is_cut, next_lexeme, start_tag_end};
use super::loose::read_loose;
use super::name::{blanks, is_blank, name_span};
use super::outline::outline;
use super::prolog::is_good_comment;
use super::scan::{Scan, Scanner};
use super::schema::Verb;
use super::sink::Sink;
use super::skeleton::{Answer, Skeleton};
use super::text::{Guesses, escape, mend_characters};
use crate::oai::ErrorCode;

/// The lists whose items have names of their own.
const LISTS: [Verb; 4] =
    [Verb::ListRecords, Verb::ListIdentifiers, Verb::ListSets, Verb::ListMetadataFormats];

impl Engine {
    /// Reads the errors behind the head, and what follows them.
    pub(super) fn errors(&mut self, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        if self.gate.held_bytes > self.limits().head_bytes_max {
            return self.refuse(NotOai::BrokenEnvelope);
        }
        let (within, bounded) = self.within_head(rest);
        let complete = last || bounded;
        let found = self.landmark(within, complete);
        let (at, landmark) =
            match self.misnamed_verb_element(within, found, complete, |one, _| one.asked.verb) {
                Ok(Some(found)) => found,
                Ok(None) if last && !bounded => return self.errors_end(rest, sink),
                _ => return self.head_need_more(rest),
            };
        if at > 0 {
            return self.between(rest, at, sink);
        }
        match landmark {
            Landmark::Error => self.error(rest, last, sink),
            Landmark::Verb(named) => match self.verb_element(within, at, named, complete) {
                Ok(verb) => {
                    self.stage = Stage::List(Box::new(self.list_of(verb)));
                    Step::Settled(0)
                }
                Err(()) => self.head_need_more(rest),
            },
            Landmark::RootEnd => {
                if !last && rest.len() <= self.limits().head_bytes_max {
                    // A second document may follow that has the list.
                    return self.head_need_more(rest);
                }
                self.root_end_of_errors(rest, sink)
            }
        }
    }

    /// The text that may be held here, and whether there is more than that.
    fn within_head<'t>(&self, rest: &'t [u8]) -> (&'t [u8], bool) {
        let bytes_max = self.limits().head_bytes_max + self.limits().tag_bytes_max;
        (rest.get(..bytes_max).unwrap_or(rest), rest.len() > bytes_max)
    }

    fn head_need_more(&mut self, rest: &[u8]) -> Step {
        let (_, bounded) = self.within_head(rest);
        if bounded { self.refuse(NotOai::BrokenEnvelope) } else { self.need_more(rest) }
    }

    /// One error element.
    fn error(&mut self, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        let tag_end = match self.tag_end(rest, last) {
            Err(step) => return step,
            Ok(None) => return self.refuse(NotOai::BrokenEnvelope),
            Ok(Some(end)) => end,
        };
        let (within, bounded) = self.within_head(rest);
        let empty = rest.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>"));
        let end = if empty {
            Some(tag_end)
        } else {
            self.error_close(within, tag_end, last || bounded).and_then(|(_, end)| end)
        };
        let Some(end) = end else {
            let over = last && !bounded;
            return if over { self.refuse(NotOai::NothingKept) } else { self.head_need_more(rest) };
        };
        let Some(edits) = self.mend_error(rest.get(..end).unwrap_or_default()) else {
            // Unless a list with items follows, this is a failed source.
            self.unknown_error = true;
            let original = rest.get(..end).unwrap_or_default();
            self.gate.change(Role::Error, RepairId::ErrorBesideItems, self.base, original, b"", sink);
            return Step::Settled(end);
        };
        self.keep_edited(Role::Error, rest, end, &edits, sink)
    }

    /// Where the end tag begins of the error whose content begins at `at`, and where it ends, if
    /// that is there. One in a comment or a CDATA section is none. `None` when it is not there, or not yet.
    fn error_close(&self, text: &[u8], mut at: usize, complete: bool) -> Option<(usize, Option<usize>)> {
        let close = [b"</", self.prefix.as_slice(), b"error"].concat();
        loop {
            at += memchr(b'<', text.get(at..)?)?;
            let rest = text.get(at..)?;
            if rest.starts_with(&close) {
                // One that lost its `>` ends before the next tag.
                let end = memchr2(b'<', b'>', rest.get(1..)?).map(|end| end + 1);
                let end = end.map(|end| at + end + usize::from(rest.get(end) == Some(&b'>')));
                return Some((at, end));
            }
            let is_section = rest.get(1).is_none_or(|&byte| byte == b'!');
            let section = is_section.then(|| next_lexeme(text, at));
            if !complete && section.is_some_and(|section| is_cut(text, at, section)) {
                return None;
            }
            at = match section {
                Some((Lexeme::Comment | Lexeme::Cdata, end)) => end,
                _ => at + 1,
            };
        }
    }

    /// `None` when its code is near to no legal one.
    pub(super) fn mend_error(&mut self, error: &[u8]) -> Option<Edits> {
        // Then a mark in a section is its text, and no sign that the section was never closed.
        let is_strict = self.is_strict_field(error, b"error");
        let characters = match is_strict {
            true => Edits::default(),
            false => mend_characters(error, &self.entities, Guesses::default(), &self.config.limits),
        };
        let text = characters.apply(error);
        let mut edits = Edits::default();
        let tag_end = start_tag_end(&text)?;
        let tag = read_loose(&text, 0, tag_end, &self.config.limits)?;
        for edit in tag.edits.iter() {
            edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
        }
        let content_end = if tag.empty { tag_end } else { self.error_close(&text, tag_end, true)?.0 };
        let content = text.get(..content_end)?;
        let words = String::from_utf8_lossy(content.get(tag_end..)?).into_owned();
        let mut code: Option<ErrorCode> = None;
        for attribute in &tag.attributes {
            let name = text.get(attribute.name.0..attribute.name.1).unwrap_or_default();
            if name == b"code" {
                let written = std::str::from_utf8(&attribute.value).ok()?;
                let meant = meant_error(written, &words)?;
                if meant.name() != written {
                    attribute.set(RepairId::ErrorCode, meant.name().as_bytes(), &mut edits);
                }
                code = Some(meant);
            } else if !self.is_free(&text, &tag.attributes, name) {
                attribute.remove(RepairId::EnvelopeAttribute, &mut edits);
            }
        }
        if code.is_none() {
            code = Some(meant_error("", &words)?);
            let attribute = format!(" code=\"{}\"", code?.name());
            edits.push_unordered(RepairId::ErrorCode, tag.name_end, tag.name_end, attribute.into_bytes());
        }
        self.bad_request |= code?.forbids_attributes();
        // Markup in the text of an error is text.
        let mut at = tag_end;
        let mut lexemes = if is_strict { Lexemes::of_well_formed(content) } else { Lexemes::of(content) };
        while at < content_end {
            let (lexeme, end) = lexemes.at(at);
            let slice = text.get(at..end)?;
            match lexeme {
                Lexeme::Text | Lexeme::Cdata => {}
                Lexeme::Comment if is_good_comment(slice) => {}
                _ => {
                    let is_item =
                        lexeme == Lexeme::StartTag && self.begins_item(text.get(at..)?) == Answer::Yes;
                    self.items_outside |= is_item;
                    edits.push_unordered(RepairId::MarkupInField, at, end, escape(slice));
                }
            }
            at = end;
        }
        let close = [b"</", self.prefix.as_slice(), b"error>"].concat();
        let end_tag = text.get(content_end..)?;
        if !tag.empty && end_tag.iter().filter(|&&byte| !is_blank(byte)).count() != close.len() {
            edits.push_unordered(RepairId::MismatchedEndTag, content_end, text.len(), close);
        }
        edits.sort();
        let strict = self.is_strict_field(&edits.apply(&text), b"error");
        strict.then(|| self.without_prefix(error, characters.then(&text, edits)))
    }

    /// Whether `element` is one well-formed element of that name with nothing but text in it.
    pub(super) fn is_strict_field(&mut self, element: &[u8], local: &'static [u8]) -> bool {
        let Ok(tag) = self.tags.open(element, self.root_context, &self.config.limits) else { return false };
        let name = element.get(1..1 + tag.name_len as usize).unwrap_or_default();
        let skeleton = Skeleton { verb: local.to_vec(), ..self.list_of(Verb::ListRecords).skeleton };
        let mut scanner = Scanner::for_payload(skeleton, self.root_context);
        scanner.new_window(0);
        let clean = scanner.scan(element, 0, true, &mut self.tags, &self.config.limits);
        let inside = element.get(tag.len as usize..).unwrap_or_default();
        tag.oai
            && name.strip_prefix(self.prefix.as_slice()) == Some(local)
            && clean == Scan::Clean(element.len())
            && outline(inside, 0, memmem::rfind(inside, b"</").unwrap_or(0))
                .is_some_and(|tree| tree.children.is_empty())
    }

    /// The root ends behind errors: they are the answer.
    fn root_end_of_errors(&mut self, rest: &[u8], sink: &mut impl Sink) -> Step {
        if let Some(step) = self.second_document(rest, sink) {
            return step;
        }
        let behind = self.looked_at(rest);
        let behind = behind.get(self.end_tag_end(behind)..).unwrap_or_default();
        let junk = behind.get(self.kept_behind_root(behind)..).unwrap_or_default();
        self.items_outside |= self.holds_any_item(junk);
        if let Some(refused) = self.answer_errors(sink) {
            return refused;
        }
        self.stage = Stage::Tail;
        Step::Settled(0)
    }

    /// How much of what stands behind the root stays.
    fn kept_behind_root(&self, text: &[u8]) -> usize {
        let mut at = 0;
        loop {
            at += blanks(text.get(at..).unwrap_or_default());
            let (lexeme, end) = next_lexeme(text, at);
            let slice = text.get(at..end).unwrap_or_default();
            let stays = lexeme == Lexeme::Comment && self.is_legal_comment(slice)
                || lexeme == Lexeme::Instruction && self.is_legal_instruction(slice);
            if !stays {
                return at;
            }
            at = end;
        }
    }

    /// The input ends behind errors.
    fn errors_end(&mut self, rest: &[u8], sink: &mut impl Sink) -> Step {
        let step = self.between(rest, rest.len(), sink);
        self.stage = Stage::Tail;
        self.answer_errors(sink).unwrap_or(step)
    }

    /// What is held leaves: errors, or that a list is empty. `Some` where something was read that
    /// speaks against it, and nothing leaves.
    pub(super) fn answer_errors(&mut self, sink: &mut impl Sink) -> Option<Step> {
        if !self.gate.is_open() {
            if self.unknown_error {
                return Some(self.refuse(NotOai::UnknownError));
            }
            if self.items_outside || self.gate.incomplete {
                return Some(self.refuse(NotOai::NothingKept));
            }
        }
        let bare_request = self.bad_request.then(|| self.own_request(false));
        self.gate.release(gate::Answer::Errors, bare_request.as_deref(), sink);
        None
    }

    /// Whether an item of some list begins at this start tag, with the prefix of the envelope or none.
    pub(super) fn begins_item(&self, text: &[u8]) -> Answer {
        let name = text.get(1..).unwrap_or_default();
        let name = name.get(..name_span(name)).unwrap_or_default();
        let local = name.strip_prefix(self.prefix.as_slice()).unwrap_or(name);
        let Some(verb) = LISTS.into_iter().find(|verb| verb.item().name == local) else { return Answer::No };
        let prefix = name.get(..name.len() - local.len()).unwrap_or_default();
        Skeleton { prefix: prefix.to_vec(), ..self.list_of(verb).skeleton }.starts_item(text)
    }

    /// Whether the text contains an item of some list, with the prefix of the envelope or none.
    pub(super) fn holds_any_item(&self, text: &[u8]) -> bool {
        LISTS.into_iter().any(|verb| {
            let list = self.list_of(verb).skeleton;
            list.holds_item(text) || Skeleton { prefix: Vec::new(), ..list }.holds_item(text)
        })
    }
}
