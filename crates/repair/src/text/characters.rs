//! The first pass of the slow path: characters and references, one node at a time.
//!
//! A node is a text node, an attribute value, or the content of a comment or CDATA section. The encoding is
//! decided for each node separately, because aggregators mix encodings on one page (failure class B3).
//! `repair_item` applies the pass to a whole item, the stages to text between items.

use encoding_rs::Encoding;

use crate::catalog::{Certainty, RepairId};
use crate::lex::doctype::Entities;
use crate::lex::lexeme::{Lexeme, Lexemes, without_cut_end_mark};
use crate::lex::names::{may_start_name, trailing_blanks};
use crate::lex::search::count_read;
use crate::limits::Limits;
use crate::text::bytes::{
    NodeEncoding, PLAIN, PLAIN_IN_VALID, REPLACEMENT, Utf8Sequence, c1_character, classify, decode_twice,
    is_double_encoded, is_plain_in_valid, is_printable, windows_1252,
};
use crate::text::controls::{Control, Controls, read_control};
use crate::text::cut::cut_character;
use crate::text::edits::Edits;
use crate::text::entity_scope::EntityScope;
use crate::text::fixed_positions::{NodePlace, PlaceReading};
use crate::text::marks::{DamagedMark, DamagedMarks, end_of_open_section};
use crate::text::node_rules::{CharacterRules, Guesses, NodeKind};
use crate::text::references::{c1_reference, repair_reference};
use std::ops::Range;

/// Repairs the characters of a range of markup. Stops soon after more than `repairs_per_record_max`
/// repairs, because the result is then discarded.
pub(crate) fn repair_characters(text: &[u8], rules: CharacterRules<'_>) -> Edits {
    CharacterPass::by_rules(text, rules).edits_of_range(0, Lexemes::new(text), rules.limits)
}

/// Makes only the guesses, in a range that is valid.
pub(crate) fn guess_characters(text: &[u8], guesses: Guesses, limits: &Limits) -> Edits {
    let pass = CharacterPass { guesses, ..CharacterPass::new(text, &[]) };
    pass.edits_of_range(0, Lexemes::new_well_formed(text), limits)
}

/// Like [`repair_characters`], with lexemes from the caller. A tag begins at `from`, and the text before it
/// is valid. It also stops soon after more than `record_bytes_max` bytes of replacements: such an item is too
/// long in any case.
pub(crate) fn item_edits<'t>(
    text: &'t [u8],
    from: usize,
    lexemes: Lexemes<'t>,
    rules: CharacterRules<'_>,
) -> Edits {
    let bytes_max = rules.limits.record_bytes_max;
    let pass = CharacterPass { bytes_max, ..CharacterPass::by_rules(text, rules) };
    pass.edits_of_range(from, lexemes, rules.limits)
}

/// Makes the edits of [`repair_characters`] in the nodes from the tag at `from` up to the first tag after
/// `at`. Returns them with the start of that tag.
pub(crate) fn edits_around(text: &[u8], from: usize, at: usize, rules: CharacterRules<'_>) -> (Edits, usize) {
    let (edits_max, bytes_max) = (rules.limits.repairs_per_record_max, rules.limits.record_bytes_max);
    let mut pass = CharacterPass { edits_max, bytes_max, ..CharacterPass::by_rules(text, rules) };
    pass.entities.set_limit(rules.limits.entity_bytes_max);
    let end = pass.read_nodes(&mut Lexemes::new(text), from, at);
    (pass.edits, end)
}

/// Repairs the characters of one attribute value, or of text without markup.
pub(crate) fn repair_node(text: &[u8], node: NodeKind, entities: &Entities) -> Edits {
    let mut pass = CharacterPass::new(text, entities);
    pass.node(0, text.len(), node);
    pass.edits
}

/// The repair of certainty *exact* for the start of `rest`: its length, its name and the replacement.
/// `None` if there is none.
pub(crate) fn exact_repair(
    rest: &[u8],
    node: NodeKind,
    reading: PlaceReading,
) -> Option<(usize, RepairId, Vec<u8>)> {
    let reading = Some(reading);
    let mut pass = CharacterPass { edits_max: 1, reading, ..CharacterPass::new(rest, &[]) };
    match (rest.first()?, node) {
        (b'<', NodeKind::Text)
            if !rest.get(1).copied().is_some_and(|byte| may_start_name(byte) || b"/!?".contains(&byte)) =>
        {
            return Some((1, RepairId::BareLessThan, b"&lt;".to_vec()));
        }
        (b'<', _) => return None,
        // The validator reports `]]>` at its last byte.
        (b'>', _) => return Some((1, RepairId::CdataEndInText, b"&gt;".to_vec())),
        _ => {}
    }
    let len = pass.step(
        0,
        rest.len(),
        node,
        NodeContext {
            encoding: NodeEncoding::Utf8,
            charset: None,
            cut_at: None,
            is_double: false,
            controls: Controls::default(),
        },
    );
    let edit = pass.edits.iter().next()?;
    let exact = edit.id.certainty() == Certainty::Exact && edit.start == 0;
    exact.then(|| (len, edit.id, edit.replacement.clone()))
}

/// The decisions about one node.
#[derive(Clone, Copy, Debug)]
struct NodeContext {
    encoding: NodeEncoding,
    /// The charset of non-ASCII bytes, if it is neither UTF-8 nor windows-1252.
    charset: Option<&'static Encoding>,
    /// The start of the character that the end of the node cuts.
    cut_at: Option<usize>,
    /// Whether it is decoded a second time, as a whole.
    is_double: bool,
    controls: Controls,
}

struct CharacterPass<'t> {
    text: &'t [u8],
    entities: EntityScope<'t>,
    place: NodePlace,
    /// The reading of illegal characters in this place. It is found out for the first one.
    reading: Option<PlaceReading>,
    guesses: Guesses,
    charset: Option<&'static Encoding>,
    edits_max: usize,
    /// Bytes of all replacements so far, and their maximum.
    written: usize,
    bytes_max: usize,
    /// Whether the whole text is known to be UTF-8. Then no node is checked for it.
    is_utf8: bool,
    edits: Edits,
    /// The end of the last deleted character, and the byte that is emitted before it.
    deleted: (usize, u8),
    /// Whether every illegal character becomes a space.
    in_declaration: bool,
}

impl<'t> CharacterPass<'t> {
    fn new(text: &'t [u8], entities: &'t Entities) -> Self {
        Self {
            text,
            entities: EntityScope::new(entities),
            place: NodePlace::Elsewhere,
            reading: None,
            guesses: Guesses::default(),
            charset: None,
            edits_max: usize::MAX,
            written: 0,
            bytes_max: usize::MAX,
            is_utf8: false,
            edits: Edits::default(),
            deleted: (usize::MAX, 0),
            in_declaration: false,
        }
    }

    fn by_rules(text: &'t [u8], rules: CharacterRules<'t>) -> Self {
        Self { guesses: rules.guesses, charset: rules.charset, ..Self::new(text, rules.entities) }
    }

    /// The edits of all nodes from `from`, up to the limits.
    fn edits_of_range(mut self, from: usize, mut lexemes: Lexemes<'_>, limits: &Limits) -> Edits {
        count_read(self.text.len());
        self.is_utf8 = simdutf8::basic::from_utf8(self.text).is_ok();
        self.edits_max = limits.repairs_per_record_max;
        self.entities.set_limit(limits.entity_bytes_max);
        self.read_nodes(&mut lexemes, from, self.text.len());
        self.edits
    }

    fn edit(&mut self, id: RepairId, start: usize, end: usize, replacement: &[u8]) {
        self.written += replacement.len();
        self.edits.push(id, start, end, replacement);
    }

    /// Whether a limit is exceeded, so that the edits are discarded. `to_come`: edits of which the places are known.
    fn is_full(&self, to_come: usize) -> bool {
        self.edits.len() + to_come > self.edits_max || self.written > self.bytes_max
    }

    fn enter(&mut self, place: NodePlace) {
        self.place = place;
        self.reading = None;
    }

    /// The reading of illegal characters in the current place.
    fn reading(&mut self) -> PlaceReading {
        *self.reading.get_or_insert_with(|| self.place.reading(self.text))
    }

    /// Deletes an illegal character. A space replaces it if the bytes around it could otherwise join to the
    /// mark of a section. So sections end where they end in the original bytes.
    fn delete(&mut self, id: RepairId, start: usize, end: usize) {
        if self.reading() == PlaceReading::Position {
            self.edit(id, start, end, b" ");
            return;
        }
        let (deleted_to, written) = self.deleted;
        let before = if deleted_to == start {
            written
        } else {
            self.text.get(..start).and_then(<[u8]>::last).copied().unwrap_or(0)
        };
        let may_continue_mark = match self.text.get(end) {
            Some(byte) => !byte.is_ascii_alphanumeric() && *byte != b' ',
            None => true,
        };
        let joins = self.in_declaration || matches!(before, b']' | b'-' | b'?') && may_continue_mark;
        self.edit(id, start, end, if joins { b" " } else { b"" });
        self.deleted = (end, if joins { b' ' } else { before });
    }

    /// Repairs the nodes from `from`, which is the start of a lexeme, up to the first tag after `until`.
    /// Returns the start of that tag, or the end of the text.
    fn read_nodes(&mut self, lexemes: &mut Lexemes<'_>, from: usize, until: usize) -> usize {
        let text = self.text;
        let (mut at, mut node_at) = (from, from);
        let mut marks = DamagedMarks::default();
        // Runs of bare `<` found inside the current text node. Each becomes one edit.
        let mut bare: Vec<Range<usize>> = Vec::new();
        while at < text.len() && !self.is_full(bare.len()) {
            let (lexeme, mut end) = lexemes.at(at);
            if matches!(lexeme, Lexeme::Declaration | Lexeme::BareLessThan)
                && let Some(mark) = marks.at(text, at)
            {
                self.text_node(node_at, at, &bare);
                bare.clear();
                at = self.damaged_mark(at, mark);
                node_at = at;
                continue;
            }
            match lexeme {
                Lexeme::OpenCdata => {
                    self.text_node(node_at, at, &bare);
                    bare.clear();
                    end = self.open_cdata(at, end, lexemes);
                    node_at = end;
                }
                Lexeme::Text | Lexeme::OpenTag | Lexeme::OpenComment => {}
                Lexeme::BareLessThan => match bare.last_mut() {
                    Some(run) if run.end == at => run.end = end,
                    _ => bare.push(at..end),
                },
                other => {
                    self.text_node(node_at, at, &bare);
                    bare.clear();
                    if at > until {
                        return at;
                    }
                    self.lexeme(other, at, end);
                    node_at = end;
                }
            }
            at = end;
        }
        self.text_node(node_at, text.len(), &bare);
        text.len()
    }

    fn slice(&self, start: usize, end: usize) -> &[u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    fn lexeme(&mut self, lexeme: Lexeme, start: usize, end: usize) {
        match lexeme {
            Lexeme::StartTag => {
                self.enter(NodePlace::Elsewhere);
                self.tag(start, end);
                if !self.slice(start, end).ends_with(b"/>") {
                    self.enter(NodePlace::After { tag: (start, end) });
                }
            }
            Lexeme::EndTag => {
                self.enter(NodePlace::Elsewhere);
                self.node(start, end, NodeKind::Verbatim);
            }
            Lexeme::Doctype => {
                self.node(start, end, NodeKind::Verbatim);
                let doctype = self.text.get(start..end).unwrap_or_default();
                self.entities.declare(doctype);
            }
            Lexeme::Cdata => self.node(start + 9, end - 3, NodeKind::Verbatim),
            Lexeme::Declaration => {
                self.in_declaration = true;
                self.node(start, end, NodeKind::Verbatim);
                self.in_declaration = false;
            }
            _ => self.node(start, end, NodeKind::Verbatim),
        }
    }

    /// Escapes the text of a CDATA section that never ends, up to the next markup. Returns the end of the
    /// text.
    fn open_cdata(&mut self, at: usize, mark_end: usize, lexemes: &mut Lexemes<'_>) -> usize {
        let end = end_of_open_section(self.text, at, mark_end, lexemes);
        let reading = Some(self.reading());
        let text = self.slice(mark_end, end);
        let is_before_end_tag = self.slice(end, self.text.len()).starts_with(b"</");
        let text = if is_before_end_tag { without_cut_end_mark(text) } else { text };
        let mut literal = CharacterPass { reading, ..CharacterPass::new(text, &[]) };
        literal.node(0, text.len(), NodeKind::Verbatim);
        let literal = literal.edits.apply(text);
        let mut escaped = Vec::with_capacity(literal.len());
        for &byte in literal.as_ref() {
            match byte {
                b'&' => escaped.extend_from_slice(b"&amp;"),
                b'<' => escaped.extend_from_slice(b"&lt;"),
                b'>' => escaped.extend_from_slice(b"&gt;"),
                _ => escaped.push(byte),
            }
        }
        // Blanks after the text stay outside, so that an end tag can be inserted before them.
        let blank = trailing_blanks(self.slice(mark_end, end));
        escaped.truncate(escaped.len() - trailing_blanks(&escaped));
        self.edit(RepairId::UnterminatedCdata, at, end - blank, &escaped);
        end
    }

    /// Repairs a damaged mark of markup. Returns the end of the markup.
    fn damaged_mark(&mut self, at: usize, mark: DamagedMark) -> usize {
        match mark {
            DamagedMark::Section { mark_end, text_end } => {
                self.edit(RepairId::CdataMark, at, mark_end, b"<![CDATA[");
                self.node(mark_end, text_end, NodeKind::Verbatim);
                text_end + 3
            }
            DamagedMark::Tag { before_slash, before_name, end } => {
                self.enter(NodePlace::Elsewhere);
                for (from, to) in [before_slash, before_name] {
                    if from < to {
                        self.edit(RepairId::BlankInTag, from, to, b"");
                    }
                }
                end
            }
        }
    }

    /// Repairs a tag. Each quoted value is a node. In the rest only characters are checked.
    fn tag(&mut self, start: usize, end: usize) {
        let is_plain = |&byte: &u8| PLAIN.get(byte as usize).copied().unwrap_or(false);
        if self.slice(start + 1, end).iter().all(is_plain) {
            return;
        }
        let mut at = start;
        while at < end {
            let rest = self.slice(at, end);
            let Some(open) = rest.iter().position(|&byte| matches!(byte, b'"' | b'\'')) else { break };
            let quote = rest.get(open).copied().unwrap_or(b'"');
            let value = at + open + 1;
            let Some(len) = crate::lex::search::memchr(quote, self.slice(value, end)) else { break };
            self.node(at, value, NodeKind::Verbatim);
            self.enter(NodePlace::Value { tag: start, at: value });
            self.node(value, value + len, NodeKind::Attribute);
            self.enter(NodePlace::Elsewhere);
            at = value + len + 1;
        }
        self.node(at, end, NodeKind::Verbatim);
    }

    /// Repairs a text node in which some `<` are text.
    fn text_node(&mut self, start: usize, end: usize, bare: &[Range<usize>]) {
        if bare.is_empty() && !self.guesses.any() && self.is_quiet(start, end) {
            return;
        }
        let is_double = self.guesses.double && is_double_encoded(self.slice(start, end));
        let context = NodeContext { is_double, ..self.node_context(start, end) };
        let mut at = start;
        for run in bare {
            self.characters(at, run.start, NodeKind::Text, context);
            for less_than in run.clone() {
                if self.is_full(0) {
                    return;
                }
                self.edit(RepairId::BareLessThan, less_than, less_than + 1, b"&lt;");
            }
            at = run.end;
        }
        self.characters(at, end, NodeKind::Text, context);
    }

    fn node(&mut self, start: usize, end: usize, node: NodeKind) {
        count_read(end - start);
        if node == NodeKind::Verbatim && is_printable(self.slice(start, end)) {
            return;
        }
        if !self.guesses.c1 && self.is_quiet(start, end) {
            return;
        }
        let context = self.node_context(start, end);
        self.characters(start, end, node, context);
    }

    /// Whether a node needs no check of single characters. This is true for most nodes of a broken item.
    fn is_quiet(&self, start: usize, end: usize) -> bool {
        let node = self.slice(start, end);
        let is_plain = |plain: bool, &byte: &u8| plain & is_plain_in_valid(byte);
        // The loop over a chunk has no early exit, so it becomes vector instructions.
        let (chunks, rest) = node.as_chunks::<16>();
        let plain = chunks.iter().all(|chunk| chunk.iter().fold(true, is_plain))
            && rest.iter().all(|&byte| PLAIN_IN_VALID.get(byte as usize).copied().unwrap_or(false));
        plain && (self.is_utf8 || simdutf8::basic::from_utf8(node).is_ok())
    }

    fn node_context(&self, start: usize, end: usize) -> NodeContext {
        let node = self.slice(start, end);
        let encoding = if self.is_utf8 { NodeEncoding::Valid } else { NodeEncoding::detect(node) };
        let cut_at = match encoding {
            NodeEncoding::Valid => None,
            _ => cut_character(node, encoding).map(|at| start + at),
        };
        let charset = self.charset.filter(|charset| crate::text::charset::is_node_in(charset, node));
        NodeContext { encoding, charset, cut_at, is_double: false, controls: Controls::in_node(node) }
    }

    fn characters(&mut self, start: usize, end: usize, node: NodeKind, context: NodeContext) {
        if context.is_double {
            return self.decode_again(start, end);
        }
        let mut at = start;
        while at < end && !self.is_full(0) {
            let rest = self.slice(at, end);
            at += self.step(at, rest.len(), node, context);
        }
    }

    /// Repairs one character, reference or run of plain bytes. Returns its length.
    fn step(&mut self, at: usize, len: usize, node: NodeKind, context: NodeContext) -> usize {
        let rest = self.slice(at, at + len);
        let Some(&first) = rest.first() else { return 1 };
        match first {
            b'&' if node != NodeKind::Verbatim => {
                if self.guesses.c1
                    && let Some((len, character)) = c1_reference(rest)
                {
                    self.edit(RepairId::C1Control, at, at + len, character.as_bytes());
                    return len;
                }
                self.reference(at, len, node, context)
            }
            b']' if node == NodeKind::Text && rest.starts_with(b"]]>") => {
                self.edit(RepairId::CdataEndInText, at, at + 3, b"]]&gt;");
                3
            }
            b'<' if node == NodeKind::Attribute => {
                self.edit(RepairId::BareLessThan, at, at + 1, b"&lt;");
                1
            }
            0..=0x1F if !matches!(first, b'\t' | b'\n' | b'\r') => {
                if self.reading() != PlaceReading::Text {
                    self.delete(RepairId::ControlCharacter, at, at + 1);
                    return 1;
                }
                let (before, after) = (self.slice(0, at), self.slice(at + 1, self.text.len()));
                match read_control(first.into(), before, after, context.controls) {
                    Control::Noise => self.delete(RepairId::ControlCharacter, at, at + 1),
                    Control::Space => self.edit(RepairId::ControlCharacter, at, at + 1, b" "),
                    Control::Mark(mark) => {
                        self.edit(RepairId::LostHighByte, at, at + 1, mark.as_bytes());
                    }
                }
                1
            }
            0x80.. => self.multibyte(at, len, context),
            _ => {
                let plain = if context.encoding == NodeEncoding::Valid && !self.guesses.c1 {
                    &PLAIN_IN_VALID
                } else {
                    &PLAIN
                };
                let is_plain = |byte: u8| plain.get(byte as usize).copied().unwrap_or(false);
                rest.iter().skip(1).position(|&byte| !is_plain(byte)).map_or(rest.len(), |run| run + 1)
            }
        }
    }

    /// Repairs the `&` at `at`. Returns the length of the reference.
    fn reference(&mut self, at: usize, len: usize, node: NodeKind, context: NodeContext) -> usize {
        let (before, rest) = (self.slice(0, at), self.slice(at, at + len));
        let entity = |name: &[u8]| self.entities.text_of(name);
        let (len, id, mut replacement) = repair_reference(before, rest, entity, context.controls);
        let only_semicolon = replacement
            .split_last()
            .is_some_and(|(last, kept)| *last == b';' && self.slice(at, at + len) == kept);
        let Some(id) = id else { return len };
        match id {
            RepairId::Doctype => {
                replacement = self.entities.insert(&replacement, node == NodeKind::Attribute)
            }
            RepairId::LostHighByte | RepairId::IllegalReference
                if replacement != REPLACEMENT && self.reading() != PlaceReading::Text =>
            {
                self.delete(RepairId::IllegalReference, at, at + len);
                return len;
            }
            RepairId::UndefinedEntity | RepairId::UnterminatedReference
                if replacement == "\u{a0}".as_bytes() && self.reading() != PlaceReading::Text =>
            {
                replacement = b" ".to_vec();
            }
            _ => {}
        }
        if only_semicolon {
            self.edit(id, at + len, at + len, b";");
        } else if id == RepairId::Doctype && replacement.is_empty() {
            let next = self.text.get(at + len).copied();
            let may_join = self.slice(0, at).ends_with(b"]") && may_continue_section_end(next);
            let nothing: &[u8] = if may_join && node == NodeKind::Text { b"<![CDATA[]]>" } else { b"" };
            self.edit(id, at, at + len, nothing);
        } else if replacement.is_empty() {
            self.delete(id, at, at + len);
        } else {
            self.edit(id, at, at + len, &replacement);
        }
        len
    }

    fn multibyte(&mut self, at: usize, len: usize, context: NodeContext) -> usize {
        if let Some(charset) = context.charset {
            let read = crate::text::charset::first_character(charset, self.slice(at, at + len));
            let (text, width) = read.unwrap_or_else(|| ("\u{fffd}".to_owned(), 1));
            self.edit(RepairId::TextCharset, at, at + width, text.as_bytes());
            return width;
        }
        let (sequence, width) = classify(self.slice(at, at + len));
        let decoded = |pass: &Self| -> Vec<u8> {
            pass.slice(at, at + width).iter().flat_map(|&byte| windows_1252(byte)).collect()
        };
        match sequence {
            Utf8Sequence::Valid if self.guesses.c1 => {
                if let Some(character) = c1_character(self.slice(at, at + width)) {
                    self.edit(RepairId::C1Control, at, at + width, character.as_bytes());
                }
            }
            Utf8Sequence::Valid => {}
            Utf8Sequence::Noncharacter => self.delete(RepairId::Noncharacter, at, at + width),
            Utf8Sequence::Surrogates(c) => {
                let mut buffer = [0; 4];
                self.edit(RepairId::Cesu8, at, at + width, c.encode_utf8(&mut buffer).as_bytes());
            }
            Utf8Sequence::LoneSurrogate => self.edit(RepairId::Cesu8, at, at + width, REPLACEMENT),
            Utf8Sequence::Overlong => self.edit(RepairId::OverlongUtf8, at, at + width, REPLACEMENT),
            _ if context.cut_at == Some(at) => self.edit(RepairId::BrokenUtf8, at, at + width, REPLACEMENT),
            Utf8Sequence::Cut if context.encoding == NodeEncoding::EightBit => {
                let decoded = decoded(self);
                self.edit(RepairId::Windows1252Byte, at, at + width, &decoded);
            }
            Utf8Sequence::Lone => {
                let decoded = decoded(self);
                self.edit(RepairId::Windows1252Byte, at, at + width, &decoded);
            }
            Utf8Sequence::Cut => self.edit(RepairId::BrokenUtf8, at, at + width, REPLACEMENT),
        }
        width
    }

    /// Decodes text that was encoded twice.
    fn decode_again(&mut self, start: usize, end: usize) {
        let text = self.slice(start, end);
        if let Some(decoded) = decode_twice(text)
            && decoded.as_bytes() != text
        {
            self.edit(RepairId::DoubleEncoded, start, end, decoded.as_bytes());
        }
    }
}

/// Whether the byte after a text that is removed may continue `]]>`, perhaps after another removal.
fn may_continue_section_end(next: Option<u8>) -> bool {
    next.is_some_and(|byte| matches!(byte, b'>' | b']' | b'&' | 0..=0x1F | 0xEF))
}
