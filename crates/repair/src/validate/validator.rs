//! The validator of one item: it accepts the item, or returns its first defect.
//!
//! Both paths of the engine use it. An item that it accepts is emitted unchanged. The slow path emits a
//! repaired item only if the validator accepts it.
//!
//! - "Valid" means well-formed, namespace-correct and valid in the OAI-PMH envelope.
//! - The validator can stop at the end of any chunk and continue later.
//! - Positions are relative to the item, because the window around it moves.

use crate::catalog::QuarantineReason;
use crate::lex::index::Mark;
use crate::lex::names::{Reference, bytes_equal, may_start_name, reference};
use crate::lex::namespaces::Contexts;
use crate::lex::window::ItemWindow;
use crate::limits::Limits;
use crate::span::Span;
use crate::text::escape::resolve;
use crate::validate::envelope_names::EnvelopePrefixes;
use crate::validate::facts::Payload;
use crate::validate::fast_path::{CommonStart, read_common_end, read_common_start, read_known_tags};
use crate::validate::schema::{Content, Element, Text};
use crate::validate::section::{close_construct, open_construct, window_end_inside};
use crate::validate::start_tag::{StartTag, StartTagCache, TagDefect, end_tag, is_deleted_status};
use crate::validate::state::{
    ChildSequence, Construct, FIELD_BYTES_MAX, Inside, NOT_IN_PAYLOAD, OpenElement, Progress, Validation,
    Validator, defect,
};
use oaimend_oai::set_spec;

impl Validator {
    /// Continues to read an item.
    pub(crate) fn validate(
        &mut self,
        window: ItemWindow<'_>,
        tags: &mut StartTagCache,
        limits: &Limits,
    ) -> Validation {
        let limit = window.item_at.saturating_add(limits.record_bytes_max);
        let is_bounded = window.text.len() > limit;
        let text = window.text.get(..limit).unwrap_or(window.text);
        let window = ItemWindow { text, is_last: window.is_last && !is_bounded, ..window };
        match self.read(window, tags, limits) {
            Validation::NeedMore if is_bounded => Validation::TooLong,
            verdict => verdict,
        }
    }

    pub(crate) fn read(
        &mut self,
        window: ItemWindow<'_>,
        tags: &mut StartTagCache,
        limits: &Limits,
    ) -> Validation {
        match close_construct(self, window) {
            Ok(()) => {}
            Err(Validation::NeedMore) => return window_end_inside(self, window),
            Err(other) => return other,
        }
        if self.at == 0 && self.stack.is_empty() && matches!(self.inside, Inside::Children) {
            match read_common_start(self, window, tags, limits) {
                CommonStart::Whole => {
                    self.at = self.lexeme_end;
                    return Validation::Clean(self.lexeme_end);
                }
                CommonStart::Read | CommonStart::Other => {}
            }
        }
        loop {
            let mark = if self.in_payload() {
                read_known_tags(self, window, tags, limits)
            } else {
                self.index.next(window.window())
            };
            let at = match mark {
                Mark::At(at) => at,
                Mark::Bad(at) => {
                    let stray = self.text(window, (at - window.item_at).max(self.lexeme_end));
                    return stray
                        .err()
                        .unwrap_or(defect(at - window.item_at, QuarantineReason::MismatchedTags));
                }
                Mark::WindowEnd(end) => return self.window_end(window, end),
            };
            let offset = at - window.item_at;
            if offset < self.lexeme_end {
                continue;
            }
            self.lexeme_start = offset;
            let rest = window.text.get(at..).unwrap_or_default();
            if self.is_common && read_common_end(self, rest, window) {
                self.at = self.lexeme_end;
                return Validation::Clean(self.lexeme_end);
            }
            // Stray text is the first defect, whatever tag follows it.
            if let Err(stray) = self.text(window, offset) {
                return stray;
            }
            let step = match rest.first() {
                Some(b'&') => self.reference(rest, offset),
                Some(b'<') => match rest.get(1) {
                    Some(b'/') => self.close(rest, window, offset),
                    Some(b'!' | b'?') => open_construct(self, rest, window, offset),
                    Some(_) => self.open(rest, offset, tags, limits),
                    None => Err(Validation::NeedMore),
                },
                _ => Err(defect(offset, QuarantineReason::MismatchedTags)),
            };
            match step {
                Ok(Progress::Next) => {}
                Ok(Progress::End) => {
                    self.at = self.lexeme_end;
                    return Validation::Clean(self.lexeme_end);
                }
                Err(Validation::NeedMore) if self.construct != Construct::None => {
                    return window_end_inside(self, window);
                }
                Err(Validation::NeedMore) if window.is_last => {
                    return defect(offset, QuarantineReason::Truncated);
                }
                Err(Validation::NeedMore) => {
                    self.at = offset;
                    return Validation::NeedMore;
                }
                Err(other) => return other,
            }
        }
    }

    /// The window has no further mark. Continues later a little before its end, so that `]]>` and characters
    /// across two windows are read whole.
    fn window_end(&mut self, window: ItemWindow<'_>, end: usize) -> Validation {
        if window.is_last {
            return defect(window.text.len() - window.item_at, QuarantineReason::Truncated);
        }
        let mut at = end.saturating_sub(3).max(window.item_at + self.lexeme_end);
        while at > window.item_at + self.lexeme_end
            && window.text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80)
        {
            at -= 1;
        }
        self.at = at.min(end) - window.item_at;
        Validation::NeedMore
    }

    fn reference(&mut self, rest: &[u8], offset: usize) -> Result<Progress, Validation> {
        match reference(rest) {
            Reference::Legal(len) => {
                if !self.in_payload() {
                    match &mut self.inside {
                        Inside::Field { plain, .. } => *plain = false,
                        _ => return Err(defect(offset, QuarantineReason::IllegalEnvelope)),
                    }
                }
                self.lexeme_end = offset + len;
                Ok(Progress::Next)
            }
            Reference::Illegal => Err(defect(offset, QuarantineReason::MismatchedTags)),
            Reference::Cut => Err(Validation::NeedMore),
        }
    }

    #[inline]
    fn close(&mut self, rest: &[u8], window: ItemWindow<'_>, offset: usize) -> Result<Progress, Validation> {
        let Some(&open) = self.stack.last() else {
            return Err(defect(offset, QuarantineReason::MismatchedTags));
        };
        let name = self.element_name(&open, window);
        let len = match end_tag(rest, name) {
            Ok(len) => len,
            Err(TagDefect::Cut) => return Err(Validation::NeedMore),
            Err(_) => return Err(defect(offset, QuarantineReason::MismatchedTags)),
        };
        if !self.in_payload() {
            if name.ends_with(b"header") {
                self.facts.header.end = (offset + len) as u32;
            }
            self.close_envelope(window, offset)?;
        }
        self.stack.pop();
        if open.is_dropped {
            self.dropped_names.truncate(open.name_at as usize);
        }
        self.lexeme_end = offset + len;
        Ok(if self.stack.is_empty() { Progress::End } else { Progress::Next })
    }

    /// Closes an envelope element. Its children or its text must be complete.
    fn close_envelope(&mut self, window: ItemWindow<'_>, offset: usize) -> Result<(), Validation> {
        match self.inside {
            Inside::Children => {
                if let Some(sequence) = self.sequences.pop() {
                    let mut rest = sequence.children.iter().skip(sequence.at);
                    let current_missing =
                        rest.next().is_some_and(|c| c.occurs.is_required() && sequence.count == 0);
                    let missing =
                        sequence.children.iter().skip(sequence.at + 1).find(|c| c.occurs.is_required());
                    let current = if current_missing { sequence.children.get(sequence.at) } else { None };
                    if let Some(child) = current.or(missing) {
                        return Err(defect(offset, missing_child(child)));
                    }
                }
            }
            Inside::Payload { seen } => {
                if !seen && !self.allows_empty_payload() {
                    return Err(defect(offset, QuarantineReason::IllegalPayload));
                }
                self.payload_depth = NOT_IN_PAYLOAD;
                if seen && let Some(payload) = self.v1_positions.payloads.last_mut() {
                    payload.end = offset as u32;
                }
            }
            Inside::Field { check, name, from, plain } => {
                let range = Span { start: from, end: offset as u32 };
                let raw = window
                    .text
                    .get(window.item_at + from as usize..window.item_at + offset)
                    .unwrap_or_default();
                let too_long = raw.len() > FIELD_BYTES_MAX && check != Text::Any;
                let is_valid = match check {
                    _ if too_long => false,
                    Text::SetSpec if plain => self.set_spec(raw),
                    Text::SetSpec => self.set_spec(&resolve(raw)),
                    _ if plain => check.is_valid(raw),
                    _ => check.is_valid(&resolve(raw)),
                };
                if !is_valid {
                    return Err(defect(from as usize, illegal_text(check, raw)));
                }
                self.note_field(name, range);
            }
        }
        self.inside = Inside::Children;
        Ok(())
    }

    /// Whether a payload may be missing. The schema requires one, but it is removed from a record of which
    /// only the header is kept.
    fn allows_empty_payload(&self) -> bool {
        self.names.headers_only
    }

    /// Notes the range of a field.
    fn note_field(&mut self, name: &[u8], range: Span) {
        match name {
            b"identifier" | b"setSpec" | b"metadataPrefix"
                if self.facts.identifier == Span::default() && self.dropped_identifier.is_empty() =>
            {
                self.facts.identifier = range;
            }
            b"datestamp" => self.facts.datestamp = range,
            _ => {}
        }
        if name == b"setSpec" {
            self.facts.set_specs.push(range);
        }
    }

    fn set_spec(&mut self, name: &[u8]) -> bool {
        let read = set_spec::read(name);
        self.facts.tilde_in_set |= read == Some(true);
        read.is_some()
    }

    #[inline]
    fn open(
        &mut self,
        rest: &[u8],
        offset: usize,
        tags: &mut StartTagCache,
        limits: &Limits,
    ) -> Result<Progress, Validation> {
        let context = self.stack.last().map_or(self.outer, |open| open.context);
        let tag = match tags.open(rest, context, limits) {
            Ok(tag) => tag,
            Err(TagDefect::Cut) => return Err(Validation::NeedMore),
            Err(other) => return Err(defect(offset, tag_defect(other, rest))),
        };
        let open = OpenElement {
            name_at: offset as u32 + 1,
            name_len: tag.name_len,
            is_dropped: false,
            context: tag.context,
        };
        if !self.in_payload() {
            self.lexeme_end = offset + tag.len as usize;
            self.open_envelope(&tag, rest, offset, &tags.contexts)?;
        }
        self.lexeme_end = offset + tag.len as usize;
        if tag.empty {
            return Ok(if self.stack.is_empty() { Progress::End } else { Progress::Next });
        }
        if self.stack.len() >= limits.depth_max {
            return Err(defect(offset, QuarantineReason::TooDeep));
        }
        self.stack.push(open);
        Ok(Progress::Next)
    }

    /// Checks whether the envelope allows this element here.
    fn open_envelope(
        &mut self,
        tag: &StartTag,
        rest: &[u8],
        offset: usize,
        contexts: &Contexts,
    ) -> Result<(), Validation> {
        match self.inside {
            Inside::Field { .. } => return Err(defect(offset, QuarantineReason::IllegalEnvelope)),
            Inside::Payload { seen: true } => return Err(defect(offset, QuarantineReason::IllegalPayload)),
            Inside::Payload { seen: false } => {
                self.inside = Inside::Payload { seen: true };
                if self.names.v2_element.is_some() {
                    let outer = self.stack.last().map_or(self.outer, |open| open.context);
                    self.v1_positions.payloads.push(Payload { start: offset as u32, end: 0, outer });
                }
                return Ok(());
            }
            Inside::Children => {}
        }
        let local = rest.get(1 + tag.prefix_len as usize..1 + tag.name_len as usize).unwrap_or_default();
        if !tag.oai || tag.prefix_len > 0 && self.names.prefixes == EnvelopePrefixes::Forbidden {
            return Err(defect(offset, QuarantineReason::IllegalEnvelope));
        }
        let child = match self.sequences.last_mut() {
            None => Some(self.names.element).filter(|element| bytes_equal(element.name, local)),
            Some(sequence) => advance(sequence, local),
        };
        let Some(child) = child else {
            return Err(defect(offset, self.missing_before(local)));
        };
        let is_v1 = self.names.v2_element.is_some();
        let is_header = child.name == b"header";
        if tag.attributes {
            let may_have_status = is_header || is_v1 && child.name == b"record";
            if !(may_have_status && is_deleted_status(rest, tag, contexts)) {
                return Err(defect(offset, QuarantineReason::IllegalEnvelope));
            }
            self.facts.deleted = true;
            self.v1_positions.status_on_record |= !is_header;
            self.v1_positions.status_on_header |= is_header;
        }
        if is_header {
            self.facts.header.start = offset as u32;
            if is_v1 {
                self.v1_positions.header = offset as u32;
            }
        }
        if self.facts.deleted && matches!(child.name, b"metadata" | b"about") {
            return Err(defect(offset, QuarantineReason::IllegalEnvelope));
        }
        self.enter(child, tag, offset)
    }

    fn enter(&mut self, child: &'static Element, tag: &StartTag, offset: usize) -> Result<(), Validation> {
        let end = offset + tag.len as usize;
        match &child.content {
            Content::Children(children) => {
                if tag.empty {
                    let missing = children.iter().find(|child| child.occurs.is_required());
                    return missing.map_or(Ok(()), |child| Err(defect(offset, missing_child(child))));
                }
                self.sequences.push(ChildSequence { children, at: 0, count: 0 });
            }
            Content::Payload => {
                if tag.empty {
                    if !self.allows_empty_payload() {
                        return Err(defect(offset, QuarantineReason::IllegalPayload));
                    }
                } else {
                    self.inside = Inside::Payload { seen: false };
                    // The caller pushes this element next. Everything inside it is payload.
                    self.payload_depth = self.stack.len() + 1;
                }
            }
            Content::Text(check) => {
                if tag.empty {
                    return if check.is_valid(b"") {
                        Ok(())
                    } else {
                        Err(defect(offset, illegal_text(*check, b"")))
                    };
                }
                self.inside =
                    Inside::Field { check: *check, name: child.name, from: end as u32, plain: true };
            }
        }
        Ok(())
    }

    /// The reason why an element is illegal here. A required element before it may be missing.
    fn missing_before(&self, local: &[u8]) -> QuarantineReason {
        let required_child = self.sequences.last().and_then(|sequence| {
            sequence.children.iter().skip(sequence.at).find(|child| child.occurs.is_required())
        });
        match required_child {
            Some(child) if child.name != local => missing_child(child),
            _ => QuarantineReason::IllegalEnvelope,
        }
    }
}

/// Advances the sequence to the child with this name. `None` if the child is not allowed here.
fn advance(sequence: &mut ChildSequence, local: &[u8]) -> Option<&'static Element> {
    loop {
        let child = sequence.children.get(sequence.at)?;
        if bytes_equal(child.name, local) {
            if sequence.count > 0 && !child.occurs.may_repeat() {
                return None;
            }
            sequence.count += 1;
            return Some(child);
        }
        if sequence.count == 0 && child.occurs.is_required() {
            return None;
        }
        sequence.at += 1;
        sequence.count = 0;
    }
}

fn missing_child(child: &Element) -> QuarantineReason {
    match child.name {
        b"identifier" => QuarantineReason::MissingIdentifier,
        b"datestamp" => QuarantineReason::MissingDatestamp,
        b"header" => QuarantineReason::MissingHeader,
        _ => QuarantineReason::IllegalEnvelope,
    }
}

fn illegal_text(check: Text, raw: &[u8]) -> QuarantineReason {
    let empty = crate::lex::names::trim(raw).is_empty();
    match check {
        Text::Identifier => QuarantineReason::MissingIdentifier,
        Text::Datestamp if empty => QuarantineReason::MissingDatestamp,
        Text::Datestamp => QuarantineReason::IllegalDatestamp,
        Text::SetSpec => QuarantineReason::IllegalSetSpec,
        _ => QuarantineReason::IllegalEnvelope,
    }
}

fn tag_defect(tag: TagDefect, rest: &[u8]) -> QuarantineReason {
    match tag {
        TagDefect::Malformed if !rest.get(1).copied().is_some_and(may_start_name) => {
            QuarantineReason::MismatchedTags
        }
        TagDefect::Malformed | TagDefect::Cut => QuarantineReason::MalformedTag,
        TagDefect::UndeclaredPrefix | TagDefect::MisspeltNamespace => QuarantineReason::UnknownPrefix,
        TagDefect::TooManyAttributes => QuarantineReason::TooManyAttributes,
        TagDefect::TooLong => QuarantineReason::TagTooLong,
    }
}
