//! From the root's start tag to the verb element or an error: responseDate and request.
//!
//! The whole stretch is read at once, because its elements may have to change
//! places; it is a few hundred bytes. Error elements behind it are held until
//! it is known that no list follows.

use memchr::memchr;

use super::catalogue::{NotOai, RepairId};
use super::edits::{Edit, Edits};
use super::engine::{Engine, Stage, Step};
use super::gate::Role;
use super::lexeme::{Lexeme, Lexemes};
use super::lookahead::Ahead;
use super::loose::read_loose;
use super::name::{blanks, name_span, split_name, trailing_blanks, trim};
use super::prolog::{is_good_comment, is_xml_target};
use super::removable::holds_envelope;
use super::schema::{Text, Verb, is_any_uri};
use super::sink::Sink;
use super::skeleton::Answer;
use super::swallowed::COMMENT;
use super::text::{Guesses, escape, mend_characters, reference_for, resolve, write_escaped};
use super::vocabulary::is_slip;
use crate::oai::set_spec;

/// A request element of ours is seldom longer.
const USUAL_REQUEST_BYTES: usize = 256;

/// What a `<` at the top level of the document begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landmark {
    Verb(Verb),
    Error,
    RootEnd,
}

/// A small element of the head: where it and its content lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) start: usize,
    /// Whether its end tag has to be added, at `end`.
    unclosed: bool,
    pub(super) content: (usize, usize),
    pub(super) end: usize,
}

impl Engine {
    /// Looks for the next landmark of the top level, comments and instructions
    /// aside. `Err` when the text ends before it can be said.
    pub(super) fn landmark(&self, rest: &[u8], last: bool) -> Result<Option<(usize, Landmark)>, ()> {
        let mut at = 0;
        let mut ends = [Ahead::default(); 2];
        while let Some(next) = memchr(b'<', rest.get(at..).unwrap_or_default()) {
            at += next;
            let tag = rest.get(at..).unwrap_or_default();
            if let Some((kind, mark, end_mark)) = section_marks(tag) {
                let end = ends.get_mut(kind).and_then(|ahead| ahead.find(rest, 0, at + mark, end_mark));
                match end {
                    Some(end) => at = end,
                    None if !last => return Err(()),
                    None => at += 1,
                }
                continue;
            }
            let (open, body) = match tag.get(1) {
                Some(b'/') => (false, tag.get(2..).unwrap_or_default()),
                _ => (true, tag.get(1..).unwrap_or_default()),
            };
            let span = name_span(body);
            if span == body.len() && !last {
                return Err(());
            }
            if let Some(local) = body.get(..span).and_then(|name| name.strip_prefix(self.prefix.as_slice())) {
                let found = match (&self.version_one, open, Verb::from_name(local), local) {
                    (Some(one), ..) => one.landmark(open, local),
                    (None, true, Some(verb), _) => Some(Landmark::Verb(verb)),
                    (None, true, None, b"error") => Some(Landmark::Error),
                    (None, false, _, b"OAI-PMH") => Some(Landmark::RootEnd),
                    _ => None,
                };
                if let Some(found) = found {
                    return Ok(Some((at, found)));
                }
            }
            at += 1;
        }
        Ok(None)
    }

    /// Reads up to the first landmark.
    pub(super) fn head(&mut self, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
        let bytes_max = self.limits().head_bytes_max;
        let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
        let bounded = rest.len() > bytes_max;
        let found = self.landmark(within, last || bounded);
        let found = if last || bounded || matches!(found, Ok(Some(_))) {
            self.old_list_begins(within, found)
        } else {
            found
        };
        let complete = last || bounded;
        let by_head = |engine: &mut Self, head: &[u8]| engine.asked_by_head(head).verb;
        let found = self.misnamed_verb_element(within, found, complete, by_head);
        let unopened = found.ok().and_then(|found| self.unopened_list(within, found.map(|(at, _)| at)));
        if let Some((at, verb)) = unopened {
            return self.open_missing_list(verb, rest, at, sink);
        }
        let (at, landmark) = match found {
            Ok(Some(found)) => found,
            _ if bounded => return self.refuse(NotOai::BrokenEnvelope),
            _ if last => return self.refuse(NotOai::NothingKept),
            _ => return self.need_more(rest),
        };
        let Some(edits) = self.read_whole_head(rest.get(..at).unwrap_or_default()) else {
            return self.refuse(NotOai::BrokenEnvelope);
        };
        self.stage = match landmark {
            Landmark::Verb(named) => match self.verb_element(within, at, named, complete) {
                Ok(verb) => Stage::List(Box::new(self.list_of(verb))),
                Err(()) => return self.need_more(rest),
            },
            Landmark::Error => Stage::Errors,
            Landmark::RootEnd => return self.refuse(NotOai::NothingKept),
        };
        if let Landmark::Verb(verb) = landmark {
            self.count_lost_item(verb, rest, &edits);
        }
        self.keep_edited(Role::Plain, rest, at, &edits, sink)
    }

    /// Counts the first item of a list as lost where the start of the list is damaged, and what is removed there
    /// holds a part of the item.
    pub(super) fn count_lost_item(&mut self, verb: Verb, head: &[u8], edits: &Edits) {
        let is_removal =
            |edit: &&Edit| matches!(edit.id, RepairId::UnknownElement | RepairId::UnexpectedContent);
        let mut removed = edits.iter().filter(is_removal).filter_map(|edit| head.get(edit.start..edit.end));
        let is_lost = removed.any(|text| holds_envelope(text, verb.item()));
        self.gate.lost += u64::from(is_lost);
    }

    /// Reads what the head says, and the changes that put it right. `None` where one of them is turned off.
    pub(super) fn read_whole_head(&mut self, head: &[u8]) -> Option<Edits> {
        let edits = self.mend_head(head);
        let is_made = |edit: &&Edit| head.get(edit.start..edit.end) != Some(edit.replacement.as_slice());
        if edits.iter().filter(is_made).any(|edit| self.is_off(edit.id)) {
            return None;
        }
        self.asked = self.asked(&edits.apply(head));
        self.items_outside |= edits
            .iter()
            .filter(|edit| edit.id == RepairId::UnknownElement)
            .any(|edit| self.holds_any_item(head.get(edit.start..edit.end).unwrap_or_default()));
        Some(edits)
    }

    /// The changes that put the head right.
    pub(super) fn mend_head(&mut self, head: &[u8]) -> Edits {
        let characters = mend_characters(head, &self.entities, Guesses::default(), &self.config.limits);
        let text = characters.apply(head);
        let mut edits = Edits::default();
        let request_name: &[u8] = if self.version_one.is_some() { b"requestURL" } else { b"request" };
        let (date, request) = read_head(&text, &self.prefix, request_name, &mut edits);
        if let Some(date) = date {
            self.mend_response_date(&text, date, &mut edits);
            self.close_field(b"responseDate", date, &mut edits);
        }
        let new_date = date.is_none().then(|| {
            let stamp = self.config.response_date.as_deref().unwrap_or("1970-01-01T00:00:00Z");
            self.element(b"responseDate", stamp.as_bytes())
        });
        // What is added stands where the next element begins.
        let behind = date.map_or(0, |date| date.end);
        let place = behind + blanks(text.get(behind..).unwrap_or_default());
        if let Some(new_date) = new_date {
            edits.push_unordered(RepairId::MissingResponseDate, place, place, new_date);
        }
        self.place_request(&text, request, date, place, &mut edits);
        edits.sort();
        self.without_prefix(head, characters.then(&text, edits))
    }

    fn close_field(&self, local: &[u8], field: Field, edits: &mut Edits) {
        if field.unclosed {
            let tag = self.end_tag_of(local);
            edits.push_unordered(RepairId::MissingEndTag, field.end, field.end, tag);
        }
    }

    /// An element of the envelope with text that is escaped already.
    pub(super) fn element(&self, local: &[u8], text: &[u8]) -> Vec<u8> {
        [b"<", self.written_prefix(), local, b">", text, &self.end_tag_of(local)].concat()
    }

    fn place_request(
        &mut self,
        text: &[u8],
        request: Option<Field>,
        date: Option<Field>,
        place: usize,
        edits: &mut Edits,
    ) {
        let own = self.is_own_request().then(|| self.own_request(true));
        let Some(field) = request else {
            let (id, element) = match own {
                Some(own) => (RepairId::MissingRequest, own),
                None => (RepairId::MissingRequest, [b"<", self.written_prefix(), b"request/>"].concat()),
            };
            edits.push_unordered(id, place, place, element);
            return;
        };
        let upgraded = self.version_one.is_some().then(|| self.upgrade_request(text, field.content));
        let is_misplaced = date.is_some_and(|date| date.start > field.start);
        let inside = match own.map(|own| (RepairId::RewriteRequest, own)).or(upgraded) {
            Some((_, own)) if is_misplaced => own,
            Some((id, own)) => {
                let _ = edits.take_within(field.start, field.end);
                return edits.push_unordered(id, field.start, field.end, own);
            }
            None => {
                self.mend_request(text, field, edits);
                self.close_field(b"request", field, edits);
                let inside = edits.take_within(field.start, field.end);
                let mended = inside
                    .clone()
                    .apply_at(text.get(field.start..field.end).unwrap_or_default(), field.start);
                for edit in inside.iter() {
                    edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
                }
                mended
            }
        };
        if is_misplaced {
            let _ = edits.take_within(field.start, field.end);
            edits.push_unordered(RepairId::ElementOrder, field.start, field.end, Vec::new());
            edits.push_unordered(RepairId::ElementOrder, place, place, inside);
        }
    }

    /// The request element as the proxy writes it.
    pub(super) fn own_request(&self, arguments: bool) -> Vec<u8> {
        let Some(request) = &self.config.request else { return Vec::new() };
        let prefix = self.written_prefix();
        let mut element = Vec::with_capacity(USUAL_REQUEST_BYTES);
        for part in [b"<", prefix, b"request"] {
            element.extend_from_slice(part);
        }
        for (name, value) in request.arguments.iter().filter(|_| arguments) {
            for part in [b" ", name.as_bytes(), b"=\""] {
                element.extend_from_slice(part);
            }
            write_attribute(value, &mut element);
            element.push(b'"');
        }
        element.push(b'>');
        write_escaped(request.base_url.as_bytes(), reference_for, &mut element);
        for part in [b"</", prefix, b"request>"] {
            element.extend_from_slice(part);
        }
        element
    }

    /// Whether the request element is written by us.
    pub(super) fn is_own_request(&self) -> bool {
        self.config.request.is_some() && !self.is_off(RepairId::RewriteRequest)
    }

    /// The start tag of a field of the head: keeps the attributes for which
    /// `keep` holds, and writes a bare tag when that is still not in order.
    pub(super) fn mend_field_tag(
        &mut self,
        text: &[u8],
        field: Field,
        id: RepairId,
        keep: impl Fn(&[u8], &[u8]) -> bool,
        edits: &mut Edits,
    ) {
        let tag = text.get(field.start..field.content.0).unwrap_or_default();
        let mut inside = Edits::default();
        let read = read_loose(tag, 0, tag.len(), &self.config.limits);
        let attributes = read.as_ref().map(|read| read.attributes.as_slice()).unwrap_or_default();
        for attribute in attributes {
            let name = tag.get(attribute.name.0..attribute.name.1).unwrap_or_default();
            if self.is_free(tag, attributes, name) || keep(name, &attribute.value) {
                continue;
            }
            let set = resolve(&attribute.value);
            match name {
                b"set" if id == RepairId::RequestAttribute && !trim(&set).is_empty() => {
                    attribute.set(RepairId::SetSpecEscape, &set_spec::escape(trim(&set)), &mut inside);
                }
                _ => attribute.remove(id, &mut inside),
            }
        }
        let removed: Vec<(usize, usize)> = inside.iter().map(|edit| (edit.start, edit.end)).collect();
        for edit in read.iter().flat_map(|read| read.edits.iter()) {
            if !removed.iter().any(|&(start, end)| edit.start >= start && edit.end <= end) {
                inside.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
            }
        }
        inside.sort();
        let strict = self.tags.open(&inside.apply(tag), self.root_context, &self.config.limits);
        let empty = tag.ends_with(b"/>");
        if read.is_none() || !strict.is_ok_and(|strict| strict.oai && strict.empty == empty) {
            let name_end = 1 + name_span(tag.get(1..).unwrap_or_default());
            let close = if empty { 2 } else { 1 };
            inside = Edits::default();
            inside.push(id, name_end, tag.len() - close, b"");
        }
        for edit in inside.iter() {
            edits.push_unordered(
                edit.id,
                field.start + edit.start,
                field.start + edit.end,
                edit.replacement.clone(),
            );
        }
    }

    /// Attributes and text of the source's own request element.
    fn mend_request(&mut self, text: &[u8], field: Field, edits: &mut Edits) {
        self.mend_field_tag(text, field, RepairId::RequestAttribute, is_request_argument, edits);
        let (start, end) = field.content;
        let raw = text.get(start..end).unwrap_or_default();
        let resolved = resolve(raw);
        let url = trim(&resolved);
        let legal = is_any_uri(url) && !url.contains(&b' ') && !raw.contains(&b'<');
        if legal && url.len() == resolved.len() {
            return;
        }
        let front = blanks(raw);
        let back = trailing_blanks(raw.get(front..).unwrap_or_default());
        if legal && raw.len() - front - back >= url.len() {
            for (from, to) in [(start, start + front), (end - back, end)] {
                if from < to {
                    edits.push_unordered(RepairId::RequestContent, from, to, Vec::new());
                }
            }
            return;
        }
        let plain = resolved == raw && !raw.contains(&b'<');
        let strays: Vec<usize> = if plain { stray_in_url(raw) } else { Vec::new() };
        let mut escaped = raw.to_vec();
        for &at in strays.iter().rev() {
            escaped.splice(at..=at, percent(raw.get(at).copied().unwrap_or(b' ')));
        }
        if plain && url.len() == raw.len() && is_any_uri(&escaped) {
            for at in strays {
                let byte = raw.get(at).copied().unwrap_or(b' ');
                edits.push_unordered(RepairId::RequestContent, start + at, start + at + 1, percent(byte));
            }
            return;
        }
        edits.push_unordered(RepairId::RequestContent, start, end, escape(&escape_url(url)));
    }

    /// White space and comments up to the next landmark stay, all else goes.
    pub(super) fn between(&mut self, rest: &[u8], at: usize, sink: &mut impl Sink) -> Step {
        let text = rest.get(..at).unwrap_or_default();
        let mut edits = Edits::default();
        let mut from = 0;
        let mut lexemes = Lexemes::of(text);
        while from < text.len() {
            let (lexeme, end) = lexemes.at(from);
            let slice = text.get(from..end).unwrap_or_default();
            let good = match lexeme {
                Lexeme::Text => trim(slice).is_empty(),
                Lexeme::Comment => {
                    is_good_comment(slice)
                        && mend_characters(slice, &[], Guesses::default(), &self.config.limits).is_empty()
                }
                Lexeme::Instruction => {
                    !is_xml_target(slice)
                        && mend_characters(slice, &[], Guesses::default(), &self.config.limits).is_empty()
                }
                _ => false,
            };
            if lexeme == Lexeme::StartTag {
                self.items_outside |= self.begins_item(rest.get(from..).unwrap_or_default()) == Answer::Yes;
            }
            if !good && lexeme == Lexeme::Instruction {
                // A declaration whose end is lost goes on to the end of another one.
                self.items_outside |= self.holds_any_item(slice);
            }
            if !good {
                let (start, stop) = if lexeme == Lexeme::Text {
                    (from + blanks(slice), end - trailing_blanks(slice))
                } else {
                    (from, end)
                };
                edits.push(RepairId::UnexpectedContent, start, stop, b"");
            }
            from = end;
        }
        self.keep_edited(Role::Plain, rest, at, &edits, sink)
    }
}

/// Whether a comment (0) or an instruction (1) opens here, the length of its mark, and the mark that ends it.
fn section_marks(text: &[u8]) -> Option<(usize, usize, &'static [u8])> {
    if text.starts_with(COMMENT) {
        Some((0, COMMENT.len(), b"-->"))
    } else if text.starts_with(b"<?") {
        Some((1, 2, b"?>"))
    } else {
        None
    }
}

/// Where the head of a response of OAI-PMH 1.x ends, if both of its elements are there.
pub(super) fn head_end(text: &[u8], prefix: &[u8]) -> Option<usize> {
    let (date, request) = read_head(text, prefix, b"requestURL", &mut Edits::default());
    Some(date?.end.max(request?.end))
}

/// The first responseDate and the first request; everything else that is not
/// white space or a comment is removed.
fn read_head(
    text: &[u8],
    prefix: &[u8],
    request_name: &[u8],
    edits: &mut Edits,
) -> (Option<Field>, Option<Field>) {
    let (mut date, mut request): (Option<Field>, Option<Field>) = (None, None);
    let mut at = 0;
    let mut lexemes = Lexemes::of(text);
    while at < text.len() {
        let (lexeme, end) = lexemes.at(at);
        let slice = text.get(at..end).unwrap_or_default();
        let mut next = end;
        match lexeme {
            Lexeme::Text if trim(slice).is_empty() => {}
            Lexeme::Text => {
                edits.push_unordered(
                    RepairId::UnexpectedContent,
                    at + blanks(slice),
                    end - trailing_blanks(slice),
                    Vec::new(),
                );
            }
            Lexeme::Comment if is_good_comment(slice) => {}
            Lexeme::Comment | Lexeme::Declaration => {
                edits.push_unordered(RepairId::BrokenComment, at, end, Vec::new())
            }
            Lexeme::Instruction if !is_xml_target(slice) => {}
            Lexeme::Instruction => edits.push_unordered(RepairId::InnerDeclaration, at, end, Vec::new()),
            Lexeme::Doctype => edits.push_unordered(RepairId::Doctype, at, end, Vec::new()),
            Lexeme::StartTag => {
                let name =
                    slice.get(1..1 + name_span(slice.get(1..).unwrap_or_default())).unwrap_or_default();
                let known = match name.strip_prefix(prefix) {
                    Some(b"responseDate") if date.is_none() => Some(&mut date),
                    Some(name) if name == request_name && request.is_none() => Some(&mut request),
                    _ => None,
                };
                let wanted = known.is_some();
                let field = read_field(text, at, end, name, if wanted { Some(&mut *edits) } else { None });
                match known {
                    Some(slot) => *slot = Some(field),
                    None => edits.push_unordered(RepairId::UnknownElement, at, field.end, Vec::new()),
                }
                next = field.end;
            }
            _ => edits.push_unordered(RepairId::UnexpectedContent, at, end, Vec::new()),
        }
        at = next;
    }
    (date, request)
}

/// The element whose start tag is `at..tag_end`. Its end is its own end tag,
/// one that is meant for it, or the next start tag.
fn read_field(text: &[u8], at: usize, tag_end: usize, name: &[u8], edits: Option<&mut Edits>) -> Field {
    let mut end = tag_end;
    if text.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>")) {
        return Field { start: at, unclosed: false, content: (end, end), end };
    }
    let mut lexemes = Lexemes::of(text);
    while end < text.len() {
        let (lexeme, next) = lexemes.at(end);
        let slice = text.get(end..next).unwrap_or_default();
        let close = slice.get(2..2 + name_span(slice.get(2..).unwrap_or_default())).unwrap_or_default();
        let behind_name = slice.get(2 + close.len()..).unwrap_or_default();
        let exact = lexeme == Lexeme::EndTag && close == name && trim(behind_name) == b">";
        if exact {
            return Field { start: at, unclosed: false, content: (tag_end, end), end: next };
        }
        if lexeme == Lexeme::EndTag && edits.is_some() && is_slip(split_name(close).1, split_name(name).1) {
            let tag = [b"</", name, b">"].concat();
            if let Some(edits) = edits {
                edits.push_unordered(RepairId::MismatchedEndTag, end, next, tag);
            }
            return Field { start: at, unclosed: false, content: (tag_end, end), end: next };
        }
        if matches!(lexeme, Lexeme::StartTag) && edits.is_some() {
            break;
        }
        end = next;
    }
    if edits.is_none() {
        return Field { start: at, unclosed: false, content: (tag_end, end), end };
    }
    let content = text.get(tag_end..end).unwrap_or_default();
    let end = tag_end + content.len() - trailing_blanks(content);
    Field { start: at, unclosed: true, content: (tag_end, end), end }
}

/// Whether an attribute of the request element is an argument with a value the
/// schema allows.
pub(super) fn is_request_argument(name: &[u8], value: &[u8]) -> bool {
    let value = resolve(value);
    match name {
        b"verb" => Verb::from_name(&value).is_some(),
        b"identifier" | b"resumptionToken" => true,
        b"metadataPrefix" => Text::MetadataPrefix.holds(&value),
        b"from" | b"until" => Text::Datestamp.holds(&value),
        b"set" => Text::SetSpec.holds(&value),
        _ => false,
    }
}

/// An attribute value: white space other than blanks as references, so that it survives.
pub(super) fn escape_attribute(value: &str) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(value.len());
    write_attribute(value, &mut escaped);
    escaped
}

fn write_attribute(value: &str, escaped: &mut Vec<u8>) {
    let reference = |byte| match byte {
        b'\t' => Some(b"&#9;".as_slice()),
        b'\n' => Some(b"&#10;".as_slice()),
        b'\r' => Some(b"&#13;".as_slice()),
        _ => reference_for(byte),
    };
    write_escaped(value.as_bytes(), reference, escaped);
}

/// Where a text has what keeps it from being a URL.
fn stray_in_url(url: &[u8]) -> Vec<usize> {
    let mut fragment = false;
    let mut is_stray = |at: usize, byte: u8| {
        let digits = url.get(at + 1..at + 3).unwrap_or_default();
        match byte {
            b'%' => digits.len() < 2 || !digits.iter().all(u8::is_ascii_hexdigit),
            b'#' => std::mem::replace(&mut fragment, true),
            b'[' | b']' | b'<' | b'>' | b'"' | b' ' => true,
            _ => byte < 0x20,
        }
    };
    url.iter().enumerate().filter(|&(at, &byte)| is_stray(at, byte)).map(|(at, _)| at).collect()
}

fn percent(byte: u8) -> Vec<u8> {
    format!("%{byte:02X}").into_bytes()
}

/// Percent-escapes what keeps a text from being a URL; nothing when it cannot be one.
pub(super) fn escape_url(url: &[u8]) -> Vec<u8> {
    let mut escaped = url.to_vec();
    for at in stray_in_url(url).into_iter().rev() {
        escaped.splice(at..=at, percent(url.get(at).copied().unwrap_or(b' ')));
    }
    if is_any_uri(&escaped) { escaped } else { Vec::new() }
}
