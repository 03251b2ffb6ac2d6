//! Strict reading of one item: well-formed, namespace-correct and valid in the envelope, or the first defect.
//!
//! The judge of the whole engine. What it accepts leaves as it came; what the
//! slow path makes of a broken item leaves only if this accepts it. It can stop
//! anywhere for want of input and go on where it stopped. Positions it keeps
//! are relative to the item, because the window around it moves.

use super::catalogue::QuarantineReason;
use super::context::{Context, Contexts};
use super::facts::{Facts, Payload, Places};
use super::index::{Index, Mark};
use super::limits::Limits;
use super::name::{Reference, is_blank, may_start_name, reference};
use super::schema::{Content, Element, Text};
use super::skeleton::{Prefixes, Skeleton};
use super::tag::{Tag, TagDefect, Tags, end_tag, is_deleted_status, same};
use super::text::resolve;
use super::usual::Beginning;
use crate::oai::set_spec;

/// How reading an item ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The item is in order and so many bytes long.
    Clean(usize),
    /// The window ends before the item does.
    NeedMore,
    /// The first defect.
    Defect(Defect),
    /// Clean for `record_bytes_max` bytes and not at its end.
    TooLong,
}

/// What is wrong, and where in the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Defect {
    pub(super) at: usize,
    pub(super) why: QuarantineReason,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// Where its name stands: in the item, or in `let_go` once that part is gone.
    pub(super) name_at: u32,
    pub(super) name_len: u32,
    pub(super) gone: bool,
    pub(super) context: Context,
}

/// How far the children of an envelope element have been seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence {
    pub(super) children: &'static [Element],
    pub(super) at: usize,
    pub(super) count: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Inside {
    /// Between the children of an envelope element.
    Children,
    /// In an element that holds one payload.
    Payload { seen: bool },
    /// In a text element whose content began here.
    Field { check: Text, name: &'static [u8], from: u32, plain: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Construct {
    None,
    Cdata(u32),
    Comment(u32),
    Instruction(u32),
}

/// Reads items of one kind, one after the other.
#[derive(Debug)]
pub(super) struct Scanner {
    pub(super) index: Index,
    pub(super) skeleton: Skeleton,
    /// Whether parts of the item were let go.
    pub(super) stretched: bool,
    pub(super) outer: Context,
    /// Everything before it was read and is legal text.
    pub(super) at: usize,
    /// Where the search for the end of an open construct goes on.
    pub(super) search: usize,
    /// Where the last lexeme begins.
    pub(super) lexeme_at: usize,
    /// End of the last lexeme: text begins here.
    pub(super) until: usize,
    pub(super) stack: Vec<Open>,
    /// Names of open elements whose start tags were let go.
    pub(super) let_go: Vec<u8>,
    pub(super) identifier_let_go: Vec<u8>,
    pub(super) datestamp_let_go: Vec<u8>,
    pub(super) sequences: Vec<Sequence>,
    pub(super) inside: Inside,
    /// Elements open above the payload; marks deeper than this need no envelope check.
    pub(super) payload_depth: usize,
    pub(super) construct: Construct,
    pub(super) facts: Facts,
    /// Filled in responses of OAI-PMH 1.x only.
    pub(super) places: Places,
    /// Whether the item is a record that began as nearly all do.
    pub(super) is_usual: bool,
}

pub(super) const NOT_IN_PAYLOAD: usize = usize::MAX;
/// Longest identifier, datestamp or other typed text, in bytes.
pub(super) const FIELD_BYTES_MAX: usize = 64 << 10;

impl Scanner {
    /// A scanner for the items of a list that stand in the context `outer`.
    pub(super) fn new(skeleton: Skeleton, outer: Context) -> Self {
        Self {
            index: Index::default(),
            skeleton,
            stretched: false,
            outer,
            at: 0,
            search: 0,
            lexeme_at: 0,
            until: 0,
            stack: Vec::with_capacity(32),
            let_go: Vec::new(),
            identifier_let_go: Vec::new(),
            datestamp_let_go: Vec::new(),
            sequences: Vec::with_capacity(4),
            inside: Inside::Children,
            payload_depth: NOT_IN_PAYLOAD,
            construct: Construct::None,
            facts: Facts::default(),
            places: Places::default(),
            is_usual: false,
        }
    }

    /// A scanner that asks of one element to be well-formed and nothing more.
    pub(super) fn for_payload(skeleton: Skeleton, outer: Context) -> Self {
        Self { inside: Inside::Payload { seen: false }, payload_depth: 0, ..Self::new(skeleton, outer) }
    }

    /// The items turn out to stand in another context. None was read.
    pub(super) fn stand_in(&mut self, outer: Context) {
        self.outer = outer;
    }

    /// The window moved or grew: what was indexed of it counts no more.
    pub(super) fn new_window(&mut self, item_at: usize) {
        self.index.restart(item_at + self.at);
    }

    /// The next item begins at `item_at` of the same window.
    pub(super) fn next_item(&mut self, item_at: usize) {
        self.stretched = false;
        self.at = 0;
        self.search = 0;
        self.lexeme_at = 0;
        self.until = 0;
        self.stack.clear();
        self.let_go.clear();
        self.identifier_let_go.clear();
        self.datestamp_let_go.clear();
        self.sequences.clear();
        self.inside = Inside::Children;
        self.payload_depth = NOT_IN_PAYLOAD;
        self.construct = Construct::None;
        self.facts = Facts::default();
        self.places.clear();
        self.is_usual = false;
        self.index.seek(item_at);
    }

    /// Reads on in the item that begins at `item_at` of `window`.
    pub(super) fn scan(
        &mut self,
        window: &[u8],
        item_at: usize,
        last: bool,
        tags: &mut Tags,
        limits: &Limits,
    ) -> Scan {
        let limit = item_at.saturating_add(limits.record_bytes_max);
        let bounded = window.len() > limit;
        let window = window.get(..limit).unwrap_or(window);
        let verdict = self.read(window, item_at, last && !bounded, tags, limits);
        match verdict {
            Scan::NeedMore if bounded => Scan::TooLong,
            verdict => verdict,
        }
    }

    pub(super) fn read(
        &mut self,
        window: &[u8],
        item_at: usize,
        last: bool,
        tags: &mut Tags,
        limits: &Limits,
    ) -> Scan {
        match self.close_construct(window, item_at, last) {
            Ok(()) => {}
            Err(Scan::NeedMore) => return self.window_end_inside(window, item_at, last),
            Err(other) => return other,
        }
        if self.at == 0 && self.stack.is_empty() && matches!(self.inside, Inside::Children) {
            match self.beginning(window, item_at, last, tags, limits) {
                Beginning::Whole => {
                    self.at = self.until;
                    return Scan::Clean(self.until);
                }
                Beginning::Read | Beginning::Unusual => {}
            }
        }
        loop {
            let mark = if self.in_payload() {
                self.known_tags(window, item_at, last, tags, limits)
            } else {
                self.index.next(window, last)
            };
            let at = match mark {
                Mark::At(at) => at,
                Mark::Bad(at) => {
                    let stray = self.text(window, item_at, (at - item_at).max(self.until));
                    return stray.err().unwrap_or(defect(at - item_at, QuarantineReason::MismatchedTags));
                }
                Mark::WindowEnd(end) => return self.window_end(window, end, item_at, last),
            };
            let offset = at - item_at;
            if offset < self.until {
                continue;
            }
            self.lexeme_at = offset;
            let rest = window.get(at..).unwrap_or_default();
            if self.is_usual && self.ending(rest, window, item_at, last) {
                self.at = self.until;
                return Scan::Clean(self.until);
            }
            // Stray text is the first defect, whatever tag stands behind it.
            if let Err(stray) = self.text(window, item_at, offset) {
                return stray;
            }
            let step = match rest.first() {
                Some(b'&') => self.reference(rest, offset),
                Some(b'<') => match rest.get(1) {
                    Some(b'/') => self.close(rest, window, item_at, offset),
                    Some(b'!' | b'?') => self.construct(rest, window, item_at, offset, last),
                    Some(_) => self.open(rest, offset, tags, limits),
                    None => Err(Scan::NeedMore),
                },
                _ => Err(defect(offset, QuarantineReason::MismatchedTags)),
            };
            match step {
                Ok(Step::Next) => {}
                Ok(Step::End) => {
                    self.at = self.until;
                    return Scan::Clean(self.until);
                }
                Err(Scan::NeedMore) if self.construct != Construct::None => {
                    return self.window_end_inside(window, item_at, last);
                }
                Err(Scan::NeedMore) if last => return defect(offset, QuarantineReason::Truncated),
                Err(Scan::NeedMore) => {
                    self.at = offset;
                    return Scan::NeedMore;
                }
                Err(other) => return other,
            }
        }
    }

    /// Nothing more in the window: go on later, a little before its end, so
    /// that `]]>` and characters across the border are seen whole.
    fn window_end(&mut self, window: &[u8], end: usize, item_at: usize, last: bool) -> Scan {
        if last {
            return defect(window.len() - item_at, QuarantineReason::Truncated);
        }
        let mut at = end.saturating_sub(3).max(item_at + self.until);
        while at > item_at + self.until && window.get(at).is_some_and(|byte| byte & 0xC0 == 0x80) {
            at -= 1;
        }
        self.at = at.min(end) - item_at;
        Scan::NeedMore
    }

    #[inline]
    pub(super) fn name_of<'w>(&'w self, open: &Open, window: &'w [u8], item_at: usize) -> &'w [u8] {
        let (from, text) = if open.gone { (0, self.let_go.as_slice()) } else { (item_at, window) };
        let at = from + open.name_at as usize;
        text.get(at..at + open.name_len as usize).unwrap_or_default()
    }

    #[inline]
    pub(super) fn in_payload(&self) -> bool {
        self.stack.len() > self.payload_depth
    }

    fn reference(&mut self, rest: &[u8], offset: usize) -> Result<Step, Scan> {
        match reference(rest) {
            Reference::Legal(len) => {
                if !self.in_payload() {
                    match &mut self.inside {
                        Inside::Field { plain, .. } => *plain = false,
                        _ => return Err(defect(offset, QuarantineReason::IllegalEnvelope)),
                    }
                }
                self.until = offset + len;
                Ok(Step::Next)
            }
            Reference::Illegal => Err(defect(offset, QuarantineReason::MismatchedTags)),
            Reference::Cut => Err(Scan::NeedMore),
        }
    }

    #[inline]
    fn close(&mut self, rest: &[u8], window: &[u8], item_at: usize, offset: usize) -> Result<Step, Scan> {
        let Some(&open) = self.stack.last() else {
            return Err(defect(offset, QuarantineReason::MismatchedTags));
        };
        let name = self.name_of(&open, window, item_at);
        let len = match end_tag(rest, name) {
            Ok(len) => len,
            Err(TagDefect::Cut) => return Err(Scan::NeedMore),
            Err(_) => return Err(defect(offset, QuarantineReason::MismatchedTags)),
        };
        if !self.in_payload() {
            self.close_envelope(window, item_at, offset)?;
        }
        self.stack.pop();
        if open.gone {
            self.let_go.truncate(open.name_at as usize);
        }
        self.until = offset + len;
        Ok(if self.stack.is_empty() { Step::End } else { Step::Next })
    }

    /// An envelope element ends: are its children, or is its text, complete?
    fn close_envelope(&mut self, window: &[u8], item_at: usize, offset: usize) -> Result<(), Scan> {
        match self.inside {
            Inside::Children => {
                if let Some(sequence) = self.sequences.pop() {
                    let mut rest = sequence.children.iter().skip(sequence.at);
                    let current_missing =
                        rest.next().is_some_and(|c| c.occurs.required() && sequence.count == 0);
                    let missing =
                        sequence.children.iter().skip(sequence.at + 1).find(|c| c.occurs.required());
                    let current = sequence.children.get(sequence.at).filter(|_| current_missing);
                    if let Some(child) = current.or(missing) {
                        return Err(defect(offset, missing_child(child)));
                    }
                }
            }
            Inside::Payload { seen } => {
                self.payload_depth = NOT_IN_PAYLOAD;
                if seen && let Some(payload) = self.places.payloads.last_mut() {
                    payload.end = offset as u32;
                }
            }
            Inside::Field { check, name, from, plain } => {
                let range = (from, offset as u32);
                let raw = window.get(item_at + from as usize..item_at + offset).unwrap_or_default();
                let too_long = raw.len() > FIELD_BYTES_MAX && check != Text::Any;
                let holds = match check {
                    _ if too_long => false,
                    Text::SetSpec if plain => self.set_spec(raw),
                    Text::SetSpec => self.set_spec(&resolve(raw)),
                    _ if plain => check.holds(raw),
                    _ => check.holds(&resolve(raw)),
                };
                if !holds {
                    return Err(defect(from as usize, illegal_text(check, raw)));
                }
                match name {
                    b"identifier" | b"setSpec" | b"metadataPrefix"
                        if self.facts.identifier == (0, 0) && self.identifier_let_go.is_empty() =>
                    {
                        self.facts.identifier = range;
                    }
                    b"datestamp" => self.facts.datestamp = range,
                    _ => {}
                }
            }
        }
        self.inside = Inside::Children;
        Ok(())
    }

    fn set_spec(&mut self, name: &[u8]) -> bool {
        let read = set_spec::read(name);
        self.facts.tilde_in_set |= read == Some(true);
        read.is_some()
    }

    #[inline]
    fn open(&mut self, rest: &[u8], offset: usize, tags: &mut Tags, limits: &Limits) -> Result<Step, Scan> {
        let context = self.stack.last().map_or(self.outer, |open| open.context);
        let tag = match tags.open(rest, context, limits) {
            Ok(tag) => tag,
            Err(TagDefect::Cut) => return Err(Scan::NeedMore),
            Err(other) => return Err(defect(offset, tag_defect(other, rest))),
        };
        let open =
            Open { name_at: offset as u32 + 1, name_len: tag.name_len, gone: false, context: tag.context };
        if !self.in_payload() {
            self.until = offset + tag.len as usize;
            self.open_envelope(&tag, rest, offset, &tags.contexts)?;
        }
        self.until = offset + tag.len as usize;
        if tag.empty {
            return Ok(if self.stack.is_empty() { Step::End } else { Step::Next });
        }
        if self.stack.len() >= limits.depth_max {
            return Err(defect(offset, QuarantineReason::TooDeep));
        }
        self.stack.push(open);
        Ok(Step::Next)
    }

    /// A start tag in the envelope: may this element stand here?
    fn open_envelope(
        &mut self,
        tag: &Tag,
        rest: &[u8],
        offset: usize,
        contexts: &Contexts,
    ) -> Result<(), Scan> {
        match self.inside {
            Inside::Field { .. } => return Err(defect(offset, QuarantineReason::IllegalEnvelope)),
            Inside::Payload { seen: true } => return Err(defect(offset, QuarantineReason::IllegalPayload)),
            Inside::Payload { seen: false } => {
                self.inside = Inside::Payload { seen: true };
                if self.skeleton.upgraded.is_some() {
                    let outer = self.stack.last().map_or(self.outer, |open| open.context);
                    self.places.payloads.push(Payload { start: offset as u32, end: 0, outer });
                }
                return Ok(());
            }
            Inside::Children => {}
        }
        let local = rest.get(1 + tag.prefix_len as usize..1 + tag.name_len as usize).unwrap_or_default();
        if !tag.oai || tag.prefix_len > 0 && self.skeleton.prefixes == Prefixes::None {
            return Err(defect(offset, QuarantineReason::IllegalEnvelope));
        }
        let child = match self.sequences.last_mut() {
            None => Some(self.skeleton.element).filter(|element| same(element.name, local)),
            Some(sequence) => advance(sequence, local),
        };
        let Some(child) = child else {
            return Err(defect(offset, self.missing_before(local)));
        };
        let is_version_one = self.skeleton.upgraded.is_some();
        let is_header = child.name == b"header";
        if tag.attributes {
            let holds_status = is_header || is_version_one && child.name == b"record";
            if !(holds_status && is_deleted_status(rest, tag, contexts)) {
                return Err(defect(offset, QuarantineReason::IllegalEnvelope));
            }
            self.facts.deleted = true;
            self.places.status_on_record |= !is_header;
            self.places.status_on_header |= is_header;
        }
        if is_version_one && is_header {
            self.places.header = offset as u32;
        }
        if self.facts.deleted && matches!(child.name, b"metadata" | b"about") {
            return Err(defect(offset, QuarantineReason::IllegalEnvelope));
        }
        self.enter(child, tag, offset)
    }

    fn enter(&mut self, child: &'static Element, tag: &Tag, offset: usize) -> Result<(), Scan> {
        let end = offset + tag.len as usize;
        match &child.content {
            Content::Children(children) => {
                if tag.empty {
                    let missing = children.iter().find(|child| child.occurs.required());
                    return missing.map_or(Ok(()), |child| Err(defect(offset, missing_child(child))));
                }
                self.sequences.push(Sequence { children, at: 0, count: 0 });
            }
            Content::Payload => {
                if !tag.empty {
                    self.inside = Inside::Payload { seen: false };
                    // The element itself is pushed next; what stands above it is payload.
                    self.payload_depth = self.stack.len() + 1;
                }
            }
            Content::Text(check) => {
                if tag.empty {
                    return if check.holds(b"") {
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

    /// Why an element cannot stand here: what should have come first.
    fn missing_before(&self, local: &[u8]) -> QuarantineReason {
        let wanted = self.sequences.last().and_then(|sequence| {
            sequence.children.iter().skip(sequence.at).find(|child| child.occurs.required())
        });
        match wanted {
            Some(child) if child.name != local => missing_child(child),
            _ => QuarantineReason::IllegalEnvelope,
        }
    }

    /// Text before `offset` at a place of the envelope: only blanks, or a field's.
    #[inline]
    pub(super) fn text(&self, window: &[u8], item_at: usize, offset: usize) -> Result<(), Scan> {
        if self.in_payload() || matches!(self.inside, Inside::Field { .. }) {
            return Ok(());
        }
        let text = window.get(item_at + self.until..item_at + offset).unwrap_or_default();
        match text.iter().position(|&byte| !is_blank(byte)) {
            None => Ok(()),
            Some(at) if matches!(self.inside, Inside::Payload { .. }) => {
                Err(defect(self.until + at, QuarantineReason::IllegalPayload))
            }
            Some(at) => Err(defect(self.until + at, QuarantineReason::IllegalEnvelope)),
        }
    }
}

pub(super) enum Step {
    /// On to the next mark.
    Next,
    /// The item is complete.
    End,
}

pub(super) fn defect(at: usize, why: QuarantineReason) -> Scan {
    Scan::Defect(Defect { at, why })
}

/// Moves on in the sequence to the child of that name; `None` when it may not stand here.
fn advance(sequence: &mut Sequence, local: &[u8]) -> Option<&'static Element> {
    loop {
        let child = sequence.children.get(sequence.at)?;
        if same(child.name, local) {
            if sequence.count > 0 && !child.occurs.repeats() {
                return None;
            }
            sequence.count += 1;
            return Some(child);
        }
        if sequence.count == 0 && child.occurs.required() {
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
    let empty = super::name::trim(raw).is_empty();
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
