//! Bytes to text: UTF-8 goes through as it is, UTF-16 and UTF-32 and documents in one 8-bit charset are transcoded.
//!
//! Decided as late as possible: ASCII means the same in all of them, so that
//! nothing is held before the first byte that does not. Bytes that contradict
//! the label win (failure classes B4 to B6). Bytes that are no character in their charset become a form
//! that is illegal in UTF-8, so that the engine repairs it and the journal has it.

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Bytes behind the first non-ASCII one that are looked at to tell UTF-8 from an 8-bit charset.
const EVIDENCE_BYTES: usize = 4096;

/// First bytes of a body that tell a wide charset from the rest: a byte order mark and what follows.
const PATTERN_BYTES: usize = 8;

/// Bytes in which an XML declaration is looked for.
const DECLARATION_BYTES: usize = 8192;

#[derive(Debug)]
enum DecodeMode {
    /// Too few bytes to tell UTF-16 from the rest.
    Start,
    /// ASCII so far, under the label of another charset.
    Ascii(&'static Encoding),
    /// As it comes.
    Utf8,
    Transcode(Box<Decoder>),
    Wide {
        unit: CodeUnit,
        big_endian: bool,
        /// Whether a byte order mark may follow.
        at_start: bool,
    },
}

/// What a wide charset is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodeUnit {
    TwoBytes,
    FourBytes,
}

/// Decodes one body.
#[derive(Debug)]
pub(crate) struct Decode {
    mode: DecodeMode,
    /// The charset of the HTTP header, which outranks the declaration.
    charset: Option<&'static Encoding>,
    held: Vec<u8>,
    label: &'static str,
}

impl Decode {
    pub(crate) fn new(charset: Option<&str>) -> Self {
        let charset =
            charset.and_then(|label| Encoding::for_label(label.trim_matches(['"', '\'', ' ']).as_bytes()));
        Self { mode: DecodeMode::Start, charset, held: Vec::new(), label: "UTF-8" }
    }

    /// What the text was decoded from.
    pub(crate) fn label(&self) -> &'static str {
        self.label
    }

    /// Decodes the next piece and hands the text on.
    pub(crate) fn push(&mut self, input: &[u8], last: bool, text: &mut impl FnMut(&[u8])) {
        if matches!(self.mode, DecodeMode::Utf8) {
            return text(input);
        }
        let mut held = std::mem::take(&mut self.held);
        let bytes = if held.is_empty() {
            input
        } else {
            held.extend_from_slice(input);
            &held
        };
        let used = self.decode(bytes, last, text);
        self.held = bytes.get(used..).unwrap_or_default().to_vec();
    }

    /// Returns how many bytes were used.
    fn decode(&mut self, bytes: &[u8], last: bool, text: &mut impl FnMut(&[u8])) -> usize {
        if matches!(self.mode, DecodeMode::Start) {
            match self.detect_mode(bytes, last) {
                Some(mode) => self.mode = mode,
                None => return 0,
            }
        }
        match &mut self.mode {
            DecodeMode::Start => 0,
            DecodeMode::Utf8 => {
                text(bytes);
                bytes.len()
            }
            DecodeMode::Ascii(encoding) => {
                let encoding = *encoding;
                let ascii = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(bytes.len());
                let (plain, rest) = bytes.split_at(ascii);
                if !plain.is_empty() {
                    text(plain);
                }
                if rest.is_empty() || rest.len() < EVIDENCE_BYTES && !last {
                    return ascii;
                }
                let evidence = rest.get(..rest.len().min(EVIDENCE_BYTES)).unwrap_or_default();
                self.mode = if is_utf8(evidence) { DecodeMode::Utf8 } else { self.transcode_mode(encoding) };
                ascii + self.decode(rest, last, text)
            }
            DecodeMode::Transcode(decoder) => {
                transcode(decoder, bytes, last, text);
                bytes.len()
            }
            DecodeMode::Wide { unit, big_endian, at_start } => {
                decode_wide(bytes, (*unit, *big_endian), at_start, last, text)
            }
        }
    }

    /// From byte order marks, the pattern of zero bytes, and the label.
    fn detect_mode(&mut self, bytes: &[u8], last: bool) -> Option<DecodeMode> {
        // The declaration is looked for in the first bytes and before the
        // root, wherever the input was cut.
        let bytes = bytes.get(..bytes.len().min(DECLARATION_BYTES)).unwrap_or_default();
        let root = memchr::memmem::find(bytes, b"<OAI");
        let before_root = bytes.get(..root.unwrap_or(bytes.len())).unwrap_or_default();
        let decided =
            bytes.len() == DECLARATION_BYTES || root.is_some() || find_declaration(before_root).is_some();
        let wide = bytes.len() >= PATTERN_BYTES && is_wide(bytes);
        if !(last || decided || wide) {
            return None;
        }
        if let Some((unit, big_endian)) = wide_by_pattern(bytes) {
            return Some(self.wide_mode(unit, big_endian));
        }
        Some(match self.charset.or_else(|| declared_charset(before_root)) {
            // A label for wide characters on narrow ones is wrong.
            Some(encoding) if encoding != UTF_8 && encoding.is_ascii_compatible() => {
                DecodeMode::Ascii(encoding)
            }
            _ => DecodeMode::Utf8,
        })
    }

    fn transcode_mode(&mut self, encoding: &'static Encoding) -> DecodeMode {
        self.label = encoding.name();
        DecodeMode::Transcode(Box::new(encoding.new_decoder_with_bom_removal()))
    }

    fn wide_mode(&mut self, unit: CodeUnit, big_endian: bool) -> DecodeMode {
        self.label = match (unit, big_endian) {
            (CodeUnit::TwoBytes, false) => "UTF-16LE",
            (CodeUnit::TwoBytes, true) => "UTF-16BE",
            (CodeUnit::FourBytes, false) => "UTF-32LE",
            (CodeUnit::FourBytes, true) => "UTF-32BE",
        };
        DecodeMode::Wide { unit, big_endian, at_start: true }
    }
}

/// Whether the first bytes are those of a wide charset, or of its byte order mark.
fn is_wide(bytes: &[u8]) -> bool {
    matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, ..] | [_, 0, ..])
}

/// The unit and the byte order of a wide charset, by the first [`PATTERN_BYTES`] of a body. A byte
/// order mark in front of narrow characters says nothing.
fn wide_by_pattern(bytes: &[u8]) -> Option<(CodeUnit, bool)> {
    let is_narrow = |text: &[u8]| match text {
        [first, second, ..] => *first != 0 && *second != 0 && first.is_ascii() && second.is_ascii(),
        _ => false,
    };
    match bytes {
        [0xFF, 0xFE, 0, 0, text @ ..] | [0, 0, 0xFE, 0xFF, text @ ..] if is_narrow(text) => None,
        [0xFF, 0xFE, 0, 0, ..] | [b'<', 0, 0, 0, ..] => Some((CodeUnit::FourBytes, false)),
        [0, 0, 0xFE, 0xFF, ..] | [0, 0, 0, b'<', ..] => Some((CodeUnit::FourBytes, true)),
        [0xFF, 0xFE, text @ ..] | [0xFE, 0xFF, text @ ..] if is_narrow(text) || text.starts_with(BOM) => None,
        [0xFF, 0xFE, ..] | [b'<', 0, _, 0, ..] => Some((CodeUnit::TwoBytes, false)),
        [0xFE, 0xFF, ..] | [0, b'<', 0, _, ..] => Some((CodeUnit::TwoBytes, true)),
        _ => None,
    }
}

/// The XML declaration, without its end mark.
fn find_declaration(bytes: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(bytes, b"<?xml")?;
    bytes.get(start..start + memchr::memmem::find(bytes.get(start..)?, b"?>")?)
}

/// The charset that the XML declaration names.
fn declared_charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = find_declaration(bytes)?;
    let value = declaration.get(memchr::memmem::find(declaration, b"encoding")? + 8..)?;
    let mut labels = value.split(|byte| matches!(byte, b'"' | b'\'' | b'=') || byte.is_ascii_whitespace());
    Encoding::for_label(labels.find(|part| !part.is_empty())?)
}

/// Whether non-ASCII bytes are UTF-8: more whole characters than broken ones.
fn is_utf8(evidence: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for chunk in evidence.utf8_chunks() {
        whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    // The last character may be cut by the end of the evidence.
    whole > broken
}

fn transcode(decoder: &mut Decoder, mut bytes: &[u8], last: bool, text: &mut impl FnMut(&[u8])) {
    let mut buffer = [0; 8192];
    loop {
        let (result, read, written) = decoder.decode_to_utf8_without_replacement(bytes, &mut buffer, last);
        text(buffer.get(..written).unwrap_or_default());
        bytes = bytes.get(read..).unwrap_or_default();
        match result {
            DecoderResult::InputEmpty => return,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => text(NO_CHARACTER),
        }
    }
}

/// Decodes whole characters of a wide charset and returns how many bytes were used. The byte order
/// mark at the start is no character; any other one is.
fn decode_wide(
    bytes: &[u8],
    (unit, big_endian): (CodeUnit, bool),
    at_start: &mut bool,
    last: bool,
    text: &mut impl FnMut(&[u8]),
) -> usize {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some((code, len)) = next_code(bytes.get(at..).unwrap_or_default(), unit, big_endian, last) {
        at += len;
        if !(std::mem::replace(at_start, false) && code == 0xFEFF) {
            push_code(code, &mut decoded);
        }
    }
    if last && at < bytes.len() {
        // Half a unit.
        decoded.extend_from_slice(NO_CHARACTER);
        at = bytes.len();
    }
    text(&decoded);
    at
}

/// The next character by its number, and its length in bytes. A surrogate without its other half is
/// its own number. `None` when the text ends before that can be said.
fn next_code(bytes: &[u8], unit: CodeUnit, big_endian: bool, last: bool) -> Option<(u32, usize)> {
    if unit == CodeUnit::FourBytes {
        let &bytes: &[u8; 4] = bytes.first_chunk()?;
        let code = if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        return Some((code, 4));
    }
    let unit_at = |at: usize| -> Option<u16> {
        let &bytes: &[u8; 2] = bytes.get(at..)?.first_chunk()?;
        Some(if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let first = unit_at(0)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((first.into(), 2));
    }
    let Some(second) = unit_at(2) else { return last.then_some((first.into(), 2)) };
    match char::decode_utf16([first, second]).next() {
        Some(Ok(c)) => Some((c.into(), 4)),
        _ => Some((first.into(), 2)),
    }
}

/// What a unit that is no character becomes: a form that UTF-8 does not have, which the engine replaces
/// by U+FFFD with an entry in the journal.
const NO_CHARACTER: &[u8] = b"\xF4\x90\x80\x80";

/// Writes a character as UTF-8, and a surrogate in the form it would have there (CESU-8). The engine
/// replaces what is none with an entry in the journal.
fn push_code(code: u32, decoded: &mut Vec<u8>) {
    match (char::from_u32(code), code) {
        (Some(c), _) => decoded.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        (None, 0xD800..=0xDFFF) => {
            let [.., high, low] = code.to_be_bytes();
            let low_bits = low & 0x3F;
            decoded.extend_from_slice(&[0xED, 0x80 | (high & 0x0F) << 2 | low >> 6, 0x80 | low_bits]);
        }
        (None, _) => decoded.extend_from_slice(NO_CHARACTER),
    }
}
