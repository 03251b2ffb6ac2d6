//! Characters and references: the first pass of the slow path, one node at a time.
//!
//! A node is a text node, an attribute value, or the inside of a comment or
//! CDATA section. Which bytes mean what is decided for each node by itself,
//! because aggregators mix encodings on one page (failure class B3).

use memchr::memmem;

use super::catalogue::{Certainty, RepairId};
use super::edits::Edits;
use super::entities::html_entity;
use super::lexeme::{Lexeme, Lexemes};
use super::limits::Limits;
use super::name::{
    REFERENCE_BYTES_MAX, Reference, is_legal_char, may_start_name, numeric_reference, reference,
    trailing_blanks,
};

/// What stands in a node besides characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// References count, `]]>` is illegal.
    Text,
    /// References count, `<` is illegal.
    Attribute,
    /// Characters only.
    Verbatim,
}

/// Entities that a document type declaration of the response defined as plain text.
pub(super) type Entities = [(Vec<u8>, Vec<u8>)];

/// Mends the characters of a stretch of markup. Stops soon after more than
/// `repairs_per_record_max` repairs: the result is of no use then.
pub(super) fn mend_characters(
    text: &[u8],
    entities: &Entities,
    guess_double: bool,
    limits: &Limits,
) -> Edits {
    characters(text, Lexemes::of(text), entities, guess_double, limits)
}

/// The guess that text was encoded twice, in a stretch that the strict reader has accepted.
pub(super) fn guess_double_encoded(text: &[u8], limits: &Limits) -> Edits {
    characters(text, Lexemes::of_well_formed(text), &[], true, limits)
}

fn characters<'t>(
    text: &'t [u8],
    mut lexemes: Lexemes<'t>,
    entities: &Entities,
    guess_double: bool,
    limits: &Limits,
) -> Edits {
    let edits_max = limits.repairs_per_record_max;
    let mut pass = Pass { text, entities, guess_double, edits_max, edits: Edits::default() };
    let mut at = 0;
    let mut node_at = 0;
    // Bare `<` found inside the current text node.
    let mut bare = Vec::new();
    while at < text.len() && pass.edits.len() <= edits_max {
        let (lexeme, mut end) = lexemes.at(at);
        match lexeme {
            Lexeme::OpenCdata => {
                pass.text_node(node_at, at, &bare);
                bare.clear();
                end = pass.open_cdata(at, end, &mut lexemes);
                node_at = end;
            }
            Lexeme::Text | Lexeme::OpenTag | Lexeme::OpenComment => {}
            Lexeme::BareLessThan => bare.push(at),
            other => {
                pass.text_node(node_at, at, &bare);
                bare.clear();
                pass.lexeme(other, at, end);
                node_at = end;
            }
        }
        at = end;
    }
    pass.text_node(node_at, text.len(), &bare);
    pass.edits
}

/// Mends the characters of one attribute value or of text without markup.
pub(super) fn mend_node(text: &[u8], node: Node, entities: &Entities) -> Edits {
    let mut pass =
        Pass { text, entities, guess_double: false, edits_max: usize::MAX, edits: Edits::default() };
    pass.node(0, text.len(), node);
    pass.edits
}

/// The repair of certainty *exact* for what `rest` begins with: its length,
/// name and replacement. `None` when there is none.
pub(super) fn exact_repair(rest: &[u8], node: Node) -> Option<(usize, RepairId, Vec<u8>)> {
    let mut pass =
        Pass { text: rest, entities: &[], guess_double: false, edits_max: 1, edits: Edits::default() };
    match (rest.first()?, node) {
        (b'<', Node::Text)
            if !rest.get(1).copied().is_some_and(|byte| may_start_name(byte) || b"/!?".contains(&byte)) =>
        {
            return Some((1, RepairId::BareLessThan, b"&lt;".to_vec()));
        }
        (b'<', _) => return None,
        // The scanner reports `]]>` at its last byte.
        (b'>', _) => return Some((1, RepairId::CdataEndInText, b"&gt;".to_vec())),
        _ => {}
    }
    let len = pass.step(0, rest.len(), node, Encoding::Utf8);
    let edit = pass.edits.iter().next()?;
    let exact = edit.id.certainty() == Certainty::Exact && edit.start == 0;
    exact.then(|| (len, edit.id, edit.replacement.clone()))
}

struct Pass<'t> {
    text: &'t [u8],
    entities: &'t Entities,
    guess_double: bool,
    edits_max: usize,
    edits: Edits,
}

impl Pass<'_> {
    fn slice(&self, start: usize, end: usize) -> &[u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    fn lexeme(&mut self, lexeme: Lexeme, start: usize, end: usize) {
        match lexeme {
            Lexeme::StartTag => self.tag(start, end),
            Lexeme::Cdata => self.node(start + 9, end - 3, Node::Verbatim),
            _ => self.node(start, end, Node::Verbatim),
        }
    }

    /// The text of a CDATA section that never ends, up to the next markup: it
    /// was meant literally. Returns its end.
    fn open_cdata(&mut self, at: usize, mark_end: usize, lexemes: &mut Lexemes<'_>) -> usize {
        let mut end = mark_end;
        while let (Lexeme::Text | Lexeme::BareLessThan, next) = lexemes.at(end)
            && end < self.text.len()
        {
            end = next;
        }
        let text = self.slice(mark_end, end);
        let literal = mend_node(text, Node::Verbatim, &[]).apply(text);
        let mut escaped = Vec::with_capacity(literal.len());
        for &byte in literal.as_ref() {
            match byte {
                b'&' => escaped.extend_from_slice(b"&amp;"),
                b'<' => escaped.extend_from_slice(b"&lt;"),
                b'>' => escaped.extend_from_slice(b"&gt;"),
                _ => escaped.push(byte),
            }
        }
        // Blanks behind the text stay outside, so that an end tag can be added before them.
        let blank = trailing_blanks(self.slice(mark_end, end));
        escaped.truncate(escaped.len() - blank);
        self.edits.push(RepairId::UnterminatedCdata, at, end - blank, &escaped);
        end
    }

    /// A tag: each quoted value is a node, the rest is looked at for characters alone.
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
            let Some(len) = memchr::memchr(quote, self.slice(value, end)) else { break };
            self.node(at, value, Node::Verbatim);
            self.node(value, value + len, Node::Attribute);
            at = value + len + 1;
        }
        self.node(at, end, Node::Verbatim);
    }

    /// A text node, in the middle of which some `<` are text too.
    fn text_node(&mut self, start: usize, end: usize, bare: &[usize]) {
        if bare.is_empty() && is_quiet(self.slice(start, end)) && !self.guess_double {
            return;
        }
        let encoding = Encoding::of(self.slice(start, end));
        let double = self.guess_double && is_double_encoded(self.slice(start, end));
        let mut at = start;
        for &less_than in bare {
            self.characters(at, less_than, Node::Text, encoding, double);
            self.edits.push(RepairId::BareLessThan, less_than, less_than + 1, b"&lt;");
            at = less_than + 1;
        }
        self.characters(at, end, Node::Text, encoding, double);
    }

    fn node(&mut self, start: usize, end: usize, node: Node) {
        if is_quiet(self.slice(start, end)) {
            return;
        }
        let encoding = Encoding::of(self.slice(start, end));
        self.characters(start, end, node, encoding, false);
    }

    fn characters(&mut self, start: usize, end: usize, node: Node, encoding: Encoding, double: bool) {
        if double {
            return self.decode_again(start, end);
        }
        let mut at = start;
        while at < end && self.edits.len() <= self.edits_max {
            let rest = self.slice(at, end);
            at += self.step(at, rest.len(), node, encoding);
        }
    }

    /// One character, reference or run of plain bytes; returns its length.
    fn step(&mut self, at: usize, len: usize, node: Node, encoding: Encoding) -> usize {
        let rest = self.slice(at, at + len);
        let Some(&first) = rest.first() else { return 1 };
        match first {
            b'&' if node != Node::Verbatim => {
                let (len, id, replacement) = mend_reference(rest, self.entities);
                match (id, replacement.split_last()) {
                    (Some(id), Some((b';', kept))) if rest.get(..len) == Some(kept) => {
                        self.edits.push(id, at + len, at + len, b";");
                    }
                    (Some(id), _) => self.edits.push(id, at, at + len, &replacement),
                    (None, _) => {}
                }
                len
            }
            b']' if node == Node::Text && rest.starts_with(b"]]>") => {
                self.edits.push(RepairId::CdataEndInText, at, at + 3, b"]]&gt;");
                3
            }
            b'<' if node == Node::Attribute => {
                self.edits.push(RepairId::BareLessThan, at, at + 1, b"&lt;");
                1
            }
            0x0B | 0x0C => {
                self.edits.push(RepairId::ControlCharacter, at, at + 1, b" ");
                1
            }
            0..=0x1F if !matches!(first, b'\t' | b'\n' | b'\r') => {
                self.edits.push(RepairId::ControlCharacter, at, at + 1, b"");
                1
            }
            0x80.. => self.multibyte(at, len, encoding),
            _ => {
                let plain = if encoding == Encoding::Valid { &PLAIN_IN_VALID } else { &PLAIN };
                let is_plain = |byte: u8| plain.get(byte as usize).copied().unwrap_or(false);
                rest.iter().skip(1).position(|&byte| !is_plain(byte)).map_or(rest.len(), |run| run + 1)
            }
        }
    }

    fn multibyte(&mut self, at: usize, len: usize, encoding: Encoding) -> usize {
        let (sequence, width) = classify(self.slice(at, at + len));
        let decoded = |pass: &Self| -> Vec<u8> {
            pass.slice(at, at + width).iter().flat_map(|&byte| windows_1252(byte)).collect()
        };
        match sequence {
            Sequence::Valid => {}
            Sequence::Noncharacter => self.edits.push(RepairId::Noncharacter, at, at + width, b""),
            Sequence::Surrogates(c) => {
                let mut buffer = [0; 4];
                self.edits.push(RepairId::Cesu8, at, at + width, c.encode_utf8(&mut buffer).as_bytes());
            }
            Sequence::LoneSurrogate => self.edits.push(RepairId::Cesu8, at, at + width, REPLACEMENT),
            Sequence::Overlong => self.edits.push(RepairId::OverlongUtf8, at, at + width, REPLACEMENT),
            Sequence::Cut if encoding == Encoding::EightBit => {
                let decoded = decoded(self);
                self.edits.push(RepairId::Windows1252Byte, at, at + width, &decoded);
            }
            Sequence::Lone => {
                let decoded = decoded(self);
                self.edits.push(RepairId::Windows1252Byte, at, at + width, &decoded);
            }
            Sequence::Cut => self.edits.push(RepairId::BrokenUtf8, at, at + width, REPLACEMENT),
        }
        width
    }

    /// Text that was encoded twice, decoded once.
    fn decode_again(&mut self, start: usize, end: usize) {
        let text = self.slice(start, end);
        if let Some(decoded) = decode_twice(text)
            && decoded.as_bytes() != text
        {
            self.edits.push(RepairId::DoubleEncoded, start, end, decoded.as_bytes());
        }
    }
}

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Bytes that are no concern, whatever stands around them.
static PLAIN: [bool; 256] = plain_bytes(false);
/// The same in a node that is valid UTF-8: only EF can begin a noncharacter.
static PLAIN_IN_VALID: [bool; 256] = plain_bytes(true);

/// Whether a node needs no look at its single characters: most of a broken item does not.
fn is_quiet(node: &[u8]) -> bool {
    let mut plain = true;
    for &byte in node {
        plain &= PLAIN_IN_VALID.get(byte as usize).copied().unwrap_or(false);
    }
    plain && simdutf8::basic::from_utf8(node).is_ok()
}

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, where an index out of bounds is an error"
)]
const fn plain_bytes(valid: bool) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let ascii =
            b >= 0x20 && b < 0x80 && !matches!(b, b'&' | b'<' | b']') || matches!(b, b'\t' | b'\n' | b'\r');
        table[byte] = ascii || valid && b >= 0x80 && b != 0xEF;
        byte += 1;
    }
    table
}

/// What the bytes of a node that are no UTF-8 mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// All of the node is valid.
    Valid,
    /// The node has valid multi-byte characters: it is UTF-8 with damage.
    Utf8,
    /// It has none: it is windows-1252.
    EightBit,
}

impl Encoding {
    fn of(node: &[u8]) -> Self {
        if simdutf8::basic::from_utf8(node).is_ok() {
            return Self::Valid;
        }
        let mut at = 0;
        while let Some(high) = node.get(at..).and_then(|rest| rest.iter().position(|byte| !byte.is_ascii())) {
            let (sequence, width) = classify(node.get(at + high..).unwrap_or_default());
            if matches!(sequence, Sequence::Valid | Sequence::Noncharacter) {
                return Self::Utf8;
            }
            at += high + width;
        }
        Self::EightBit
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequence {
    Valid,
    Noncharacter,
    Surrogates(char),
    LoneSurrogate,
    Overlong,
    /// Two bytes or more of a character that is not whole.
    Cut,
    /// A byte that belongs to nothing.
    Lone,
}

/// What stands at the beginning of `text`, which is not ASCII, and how many bytes it takes.
fn classify(text: &[u8]) -> (Sequence, usize) {
    let first = text.first().copied().unwrap_or(0);
    let continuation = |n: usize| text.get(n).copied().filter(|byte| byte & 0xC0 == 0x80);
    let wanted = match first {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        0xF8..=0xFB => 5,
        0xFC..=0xFD => 6,
        _ => return (Sequence::Lone, 1),
    };
    let width = (1..wanted).take_while(|&n| continuation(n).is_some()).count() + 1;
    if width < wanted {
        return if width > 1
            && first < 0xF5
            && std::str::from_utf8(text.get(..width).unwrap_or_default())
                .is_err_and(|e| e.error_len().is_none())
        {
            (Sequence::Cut, width)
        } else {
            (Sequence::Lone, 1)
        };
    }
    let bytes = text.get(..width).unwrap_or_default();
    match bytes {
        [0xEF, 0xBF, 0xBE | 0xBF] => (Sequence::Noncharacter, 3),
        [0xED, 0xA0..=0xAF, _] => {
            let low = text.get(3..6).unwrap_or_default();
            match surrogate_pair(bytes, low) {
                Some(c) => (Sequence::Surrogates(c), 6),
                None => (Sequence::LoneSurrogate, 3),
            }
        }
        [0xED, 0xB0..=0xBF, _] => (Sequence::LoneSurrogate, 3),
        _ if std::str::from_utf8(bytes).is_ok() => (Sequence::Valid, width),
        _ => (Sequence::Overlong, width),
    }
}

fn surrogate_pair(high: &[u8], low: &[u8]) -> Option<char> {
    let unit = |bytes: &[u8]| match *bytes {
        [0xED, second, third] if third & 0xC0 == 0x80 => {
            Some(0xD000 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F))
        }
        _ => None,
    };
    let mut decoded = char::decode_utf16([unit(high)?, unit(low)?]);
    decoded.next()?.ok()
}

/// A byte read as windows-1252; U+FFFD for the five it leaves open.
fn windows_1252(byte: u8) -> Vec<u8> {
    if matches!(byte, 0x81 | 0x8D | 0x8F | 0x90 | 0x9D) {
        return REPLACEMENT.to_vec();
    }
    let bytes = [byte];
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&bytes);
    text.as_bytes().to_vec()
}

/// An `&` in text: how many bytes it is about, and what they become.
fn mend_reference(rest: &[u8], entities: &Entities) -> (usize, Option<RepairId>, Vec<u8>) {
    if let Reference::Legal(len) = reference(rest) {
        return (len, None, Vec::new());
    }
    let bare = (1, Some(RepairId::BareAmpersand), b"&amp;".to_vec());
    let window = rest.get(1..rest.len().min(REFERENCE_BYTES_MAX)).unwrap_or_default();
    if window.first() == Some(&b'#') {
        return mend_numeric(rest, window).unwrap_or(bare);
    }
    let len = window
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.'))
        .unwrap_or(0);
    let name = window.get(..len).unwrap_or_default();
    if len == 0 || window.get(len) != Some(&b';') {
        return bare;
    }
    if let Some((_, value)) = entities.iter().find(|(known, _)| known == name) {
        return (len + 2, Some(RepairId::Doctype), value.clone());
    }
    match html_entity(name) {
        Some(text) => (len + 2, Some(RepairId::UndefinedEntity), escape(text.as_bytes())),
        None => (1, Some(RepairId::UndefinedEntity), b"&amp;".to_vec()),
    }
}

/// `&#...`: illegal, unterminated or of the wrong case; `None` when it is no reference.
fn mend_numeric(rest: &[u8], window: &[u8]) -> Option<(usize, Option<RepairId>, Vec<u8>)> {
    let (radix_len, hex) = match window.get(1) {
        Some(b'x' | b'X') => (2, true),
        _ => (1, false),
    };
    let digits = window
        .iter()
        .skip(radix_len)
        .take_while(|byte| if hex { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() });
    let len = radix_len + digits.count();
    if len == radix_len {
        return None;
    }
    let body = window.get(..len)?.to_ascii_lowercase();
    let code = numeric_reference(&body)?;
    let terminated = window.get(len) == Some(&b';');
    let total = 1 + len + usize::from(terminated);
    if let Some(code) = code.filter(|&code| is_legal_char(code)) {
        let _ = code;
        let mut mended = b"&".to_vec();
        // The digits stay as they were typed; only XML's small x is demanded.
        let typed = window.get(radix_len..len).unwrap_or_default();
        mended.extend_from_slice(if hex { b"#x" } else { b"#" });
        mended.extend_from_slice(typed);
        mended.push(b';');
        let id = if terminated { RepairId::UndefinedEntity } else { RepairId::UnterminatedReference };
        return Some((total, Some(id), mended));
    }
    let Some(code) = code.filter(|&code| code < 0x11_0000) else {
        return Some((total, Some(RepairId::IllegalReference), REPLACEMENT.to_vec()));
    };
    if (0xD800..0xE000).contains(&code) {
        return Some(mend_surrogate(rest, total, code));
    }
    let replacement: &[u8] = if matches!(code, 0x0B | 0x0C) { b" " } else { b"" };
    Some((total, Some(RepairId::IllegalReference), replacement.to_vec()))
}

fn mend_surrogate(rest: &[u8], len: usize, high: u32) -> (usize, Option<RepairId>, Vec<u8>) {
    let id = Some(RepairId::SurrogateReference);
    let next = rest.get(len..).unwrap_or_default();
    let next_len = next.iter().take(REFERENCE_BYTES_MAX).position(|&byte| byte == b';');
    let low = next_len
        .and_then(|end| next.get(1..end))
        .filter(|_| next.first() == Some(&b'&'))
        .and_then(|body| numeric_reference(&body.to_ascii_lowercase()).flatten())
        .and_then(|low| u16::try_from(low).ok());
    let pair = low
        .zip(u16::try_from(high).ok())
        .and_then(|(low, high)| char::decode_utf16([high, low]).next()?.ok());
    match (pair, next_len) {
        (Some(c), Some(end)) => (len + end + 1, id, c.to_string().into_bytes()),
        _ => (len, id, REPLACEMENT.to_vec()),
    }
}

/// Text as it is written in XML.
pub(super) fn escape(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    write_escaped(text, reference_for, &mut escaped);
    escaped
}

/// Writes `text` with references in the place of bytes that have one.
pub(super) fn write_escaped(
    text: &[u8],
    reference: impl Fn(u8) -> Option<&'static [u8]>,
    escaped: &mut Vec<u8>,
) {
    let mut from = 0;
    for (at, &byte) in text.iter().enumerate() {
        if let Some(reference) = reference(byte) {
            escaped.extend_from_slice(text.get(from..at).unwrap_or_default());
            escaped.extend_from_slice(reference);
            from = at + 1;
        }
    }
    escaped.extend_from_slice(text.get(from..).unwrap_or_default());
}

/// The reference that is written for a byte of text.
pub(super) fn reference_for(byte: u8) -> Option<&'static [u8]> {
    match byte {
        b'&' => Some(b"&amp;"),
        b'<' => Some(b"&lt;"),
        b'>' => Some(b"&gt;"),
        b'"' => Some(b"&quot;"),
        _ => None,
    }
}

/// The characters that well-formed content stands for: references resolved,
/// CDATA sections opened, comments and instructions left out.
pub(super) fn resolve(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let rest = raw.get(at..).unwrap_or_default();
        let skipped = |end: &[u8]| memmem::find(rest, end).map_or(rest.len(), |found| found + end.len());
        if rest.starts_with(b"<![CDATA[") {
            let end = skipped(b"]]>");
            text.extend_from_slice(rest.get(9..end.saturating_sub(3)).unwrap_or_default());
            at += end;
        } else if rest.starts_with(b"<!--") {
            at += skipped(b"-->");
        } else if rest.starts_with(b"<?") {
            at += skipped(b"?>");
        } else if let (b'&', Reference::Legal(len)) =
            (byte, if byte == b'&' { reference(rest) } else { Reference::Illegal })
        {
            text.extend_from_slice(&character(rest.get(1..len - 1).unwrap_or_default()));
            at += len;
        } else {
            text.push(byte);
            at += 1;
        }
    }
    text
}

/// The character of a legal reference, without `&` and `;`.
fn character(body: &[u8]) -> Vec<u8> {
    match body {
        b"amp" => b"&".to_vec(),
        b"lt" => b"<".to_vec(),
        b"gt" => b">".to_vec(),
        b"quot" => b"\"".to_vec(),
        b"apos" => b"'".to_vec(),
        _ => numeric_reference(body)
            .flatten()
            .and_then(char::from_u32)
            .map_or_else(Vec::new, |c| c.to_string().into_bytes()),
    }
}

/// Whether the whole node is UTF-8 that was read as windows-1252 and encoded
/// again, with at least two such characters.
fn is_double_encoded(text: &[u8]) -> bool {
    decode_twice(text).is_some_and(|decoded| {
        let characters = decoded.chars().filter(|c| !c.is_ascii()).count();
        characters >= 2 && decoded.as_bytes() != text
    })
}

fn decode_twice(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_ascii() {
        return Some(text.to_owned());
    }
    let (bytes, _, unmappable) = encoding_rs::WINDOWS_1252.encode(text);
    if unmappable { None } else { String::from_utf8(bytes.into_owned()).ok() }
}
