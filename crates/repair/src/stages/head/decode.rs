//! The decoder: bytes to UTF-8 text.
//!
//! [`Repairer`](crate::Repairer) and the reader of static repositories use it. UTF-8 passes unchanged.
//! UTF-16, UTF-32 and 8-bit charsets are transcoded.
//!
//! The charset is decided as late as possible. ASCII is the same in all charsets except UTF-16 and UTF-32,
//! so ASCII bytes are not held. Bytes that contradict the label win (failure classes B4 to B6). A byte
//! sequence that is no character becomes a form that is illegal in UTF-8. The engine then repairs it, and
//! the journal contains the repair.

use crate::lex::window::TextWindow;
use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Number of bytes from the first non-ASCII byte that decide between UTF-8 and an 8-bit charset.
const EVIDENCE_BYTES: usize = 4096;

/// Number of first bytes that identify UTF-16 or UTF-32: a byte order mark and the next characters.
const PATTERN_BYTES: usize = 8;

/// Number of bytes in which the XML declaration is searched.
const DECLARATION_BYTES: usize = 8192;

#[derive(Debug)]
enum DecodeMode {
    /// Too few bytes to detect UTF-16.
    Start,
    /// Only ASCII so far, under the label of another charset.
    Ascii(&'static Encoding),
    /// The input is passed on unchanged.
    Utf8,
    Transcode(Box<Decoder>),
    Wide {
        form: WideForm,
        /// Whether a byte order mark may follow.
        at_start: bool,
    },
}

/// UTF-16 or UTF-32, with its byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WideForm {
    Utf16Le,
    Utf16Be,
    Utf32Le,
    Utf32Be,
}

/// Decodes the body of one response to UTF-8, as a [`Repairer`](crate::Repairer) does. Bytes that are no
/// characters stay, so that the engine can repair and report them.
///
/// ```
/// use oaimend_repair::Decode;
///
/// let mut text = Vec::new();
/// let mut decode = Decode::new(Some("ISO-8859-1"));
/// decode.push(b"<OAI-PMH>\xe9", &mut |part: &[u8]| text.extend_from_slice(part));
/// decode.finish(&mut |part: &[u8]| text.extend_from_slice(part));
/// assert_eq!(String::from_utf8(text).as_deref(), Ok("<OAI-PMH>\u{e9}"));
/// ```
#[derive(Debug)]
pub struct Decode {
    mode: DecodeMode,
    /// The charset of the HTTP header, which takes precedence over the declaration.
    charset: Option<&'static Encoding>,
    held: Vec<u8>,
    label: &'static str,
}

impl Decode {
    /// Creates a decoder. `charset` is that of the HTTP header, if it names one.
    pub fn new(charset: Option<&str>) -> Self {
        let charset =
            charset.and_then(|label| Encoding::for_label(label.trim_matches(['"', '\'', ' ']).as_bytes()));
        Self { mode: DecodeMode::Start, charset, held: Vec::new(), label: "UTF-8" }
    }

    /// Returns the name of the charset of the input.
    pub(crate) fn label(&self) -> &'static str {
        self.label
    }

    /// Decodes the next chunk and passes the text on.
    pub fn push(&mut self, input: &[u8], text: &mut impl FnMut(&[u8])) {
        if matches!(self.mode, DecodeMode::Utf8) {
            return text(input);
        }
        self.read(TextWindow::so_far(input), text);
    }

    /// Ends the input and passes the rest of the text on.
    pub fn finish(&mut self, text: &mut impl FnMut(&[u8])) {
        if !matches!(self.mode, DecodeMode::Utf8) {
            self.read(TextWindow::whole(b""), text);
        }
    }

    fn read(&mut self, input: TextWindow<'_>, text: &mut impl FnMut(&[u8])) {
        let mut held = std::mem::take(&mut self.held);
        let bytes = if held.is_empty() {
            input.text
        } else {
            held.extend_from_slice(input.text);
            &held
        };
        let used = self.decode(TextWindow { text: bytes, ..input }, text);
        self.held = bytes.get(used..).unwrap_or_default().to_vec();
    }

    /// Decodes bytes and returns the number of used bytes.
    fn decode(&mut self, window: TextWindow<'_>, text: &mut impl FnMut(&[u8])) -> usize {
        let bytes = window.text;
        if matches!(self.mode, DecodeMode::Start) {
            match self.detect_mode(window) {
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
                if rest.is_empty() || rest.len() < EVIDENCE_BYTES && !window.is_last {
                    return ascii;
                }
                let evidence = rest.get(..rest.len().min(EVIDENCE_BYTES)).unwrap_or_default();
                self.mode = if is_utf8(evidence) { DecodeMode::Utf8 } else { self.transcode_mode(encoding) };
                ascii + self.decode(window.after(ascii), text)
            }
            DecodeMode::Transcode(decoder) => {
                transcode(decoder, window, text);
                bytes.len()
            }
            DecodeMode::Wide { form, at_start } => decode_wide(window, *form, at_start, text),
        }
    }

    /// Detects the charset from byte order marks, the pattern of zero bytes, and the label.
    fn detect_mode(&mut self, window: TextWindow<'_>) -> Option<DecodeMode> {
        let bytes = window.text;
        // The range of the search must not depend on the chunks of the input.
        let bytes = bytes.get(..bytes.len().min(DECLARATION_BYTES)).unwrap_or_default();
        let root = crate::lex::search::memmem::find(bytes, b"<OAI");
        let before_root = bytes.get(..root.unwrap_or(bytes.len())).unwrap_or_default();
        let decided =
            bytes.len() == DECLARATION_BYTES || root.is_some() || find_declaration(before_root).is_some();
        let wide = bytes.len() >= PATTERN_BYTES && is_wide(bytes);
        if !(window.is_last || decided || wide) {
            return None;
        }
        if let Some(form) = wide_by_pattern(bytes) {
            return Some(self.wide_mode(form));
        }
        Some(match self.charset.or_else(|| declared_charset(before_root)) {
            // A label of UTF-16 or UTF-32 on ASCII bytes is wrong.
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

    fn wide_mode(&mut self, form: WideForm) -> DecodeMode {
        self.label = match form {
            WideForm::Utf16Le => "UTF-16LE",
            WideForm::Utf16Be => "UTF-16BE",
            WideForm::Utf32Le => "UTF-32LE",
            WideForm::Utf32Be => "UTF-32BE",
        };
        DecodeMode::Wide { form, at_start: true }
    }
}

/// Returns whether the first bytes can be UTF-16 or UTF-32, or its byte order mark.
fn is_wide(bytes: &[u8]) -> bool {
    matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, ..] | [_, 0, ..])
}

/// Returns the form of UTF-16 or UTF-32, from the first [`PATTERN_BYTES`] of a body.
///
/// A byte order mark before ASCII text is ignored.
fn wide_by_pattern(bytes: &[u8]) -> Option<WideForm> {
    let is_narrow = |text: &[u8]| match text {
        [first, second, ..] => *first != 0 && *second != 0 && first.is_ascii() && second.is_ascii(),
        _ => false,
    };
    match bytes {
        [0xFF, 0xFE, 0, 0, text @ ..] | [0, 0, 0xFE, 0xFF, text @ ..] if is_narrow(text) => None,
        [0xFF, 0xFE, 0, 0, ..] | [b'<', 0, 0, 0, ..] => Some(WideForm::Utf32Le),
        [0, 0, 0xFE, 0xFF, ..] | [0, 0, 0, b'<', ..] => Some(WideForm::Utf32Be),
        [0xFF, 0xFE, text @ ..] | [0xFE, 0xFF, text @ ..] if is_narrow(text) || text.starts_with(BOM) => None,
        [0xFF, 0xFE, ..] | [b'<', 0, _, 0, ..] => Some(WideForm::Utf16Le),
        [0xFE, 0xFF, ..] | [0, b'<', 0, _, ..] => Some(WideForm::Utf16Be),
        _ => None,
    }
}

/// Returns the XML declaration without its end mark.
fn find_declaration(bytes: &[u8]) -> Option<&[u8]> {
    let start = crate::lex::search::memmem::find(bytes, b"<?xml")?;
    bytes.get(start..start + crate::lex::search::memmem::find(bytes.get(start..)?, b"?>")?)
}

/// Returns the charset in the XML declaration.
fn declared_charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = find_declaration(bytes)?;
    let value = declaration.get(crate::lex::search::memmem::find(declaration, b"encoding")? + 8..)?;
    let mut labels = value.split(|byte| matches!(byte, b'"' | b'\'' | b'=') || byte.is_ascii_whitespace());
    Encoding::for_label(labels.find(|part| !part.is_empty())?)
}

/// Returns whether non-ASCII bytes are UTF-8: they contain more valid characters than errors.
fn is_utf8(evidence: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for chunk in evidence.utf8_chunks() {
        whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    // The end of the evidence can cut the last character.
    whole > broken
}

fn transcode(decoder: &mut Decoder, window: TextWindow<'_>, text: &mut impl FnMut(&[u8])) {
    let mut bytes = window.text;
    let mut buffer = [0; 8192];
    loop {
        let (result, read, written) =
            decoder.decode_to_utf8_without_replacement(bytes, &mut buffer, window.is_last);
        text(buffer.get(..written).unwrap_or_default());
        bytes = bytes.get(read..).unwrap_or_default();
        match result {
            DecoderResult::InputEmpty => return,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => text(NO_CHARACTER),
        }
    }
}

/// Decodes whole characters of UTF-16 or UTF-32 and returns the number of used bytes.
///
/// A byte order mark is dropped at the start only.
fn decode_wide(
    window: TextWindow<'_>,
    form: WideForm,
    at_start: &mut bool,
    text: &mut impl FnMut(&[u8]),
) -> usize {
    let bytes = window.text;
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some((code, len)) = next_code(window.after(at), form) {
        at += len;
        if !(std::mem::replace(at_start, false) && code == 0xFEFF) {
            push_code(code, &mut decoded);
        }
    }
    if window.is_last && at < bytes.len() {
        // The input ends inside a code unit.
        decoded.extend_from_slice(NO_CHARACTER);
        at = bytes.len();
    }
    text(&decoded);
    at
}

/// Returns the next code point and its length in bytes. A surrogate without its pair is returned as it is.
///
/// Returns `None` if the text ends too early to decide.
fn next_code(window: TextWindow<'_>, form: WideForm) -> Option<(u32, usize)> {
    let bytes = window.text;
    let unit_of: fn([u8; 2]) -> u16 = match form {
        WideForm::Utf32Le => return Some((u32::from_le_bytes(*bytes.first_chunk()?), 4)),
        WideForm::Utf32Be => return Some((u32::from_be_bytes(*bytes.first_chunk()?), 4)),
        WideForm::Utf16Le => u16::from_le_bytes,
        WideForm::Utf16Be => u16::from_be_bytes,
    };
    let unit_at = |at: usize| -> Option<u16> { Some(unit_of(*bytes.get(at..)?.first_chunk()?)) };
    let first = unit_at(0)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((first.into(), 2));
    }
    let Some(second) = unit_at(2) else { return window.is_last.then_some((first.into(), 2)) };
    match char::decode_utf16([first, second]).next() {
        Some(Ok(c)) => Some((c.into(), 4)),
        _ => Some((first.into(), 2)),
    }
}

/// The replacement of a unit that is no character. UTF-8 does not have this form, so the engine replaces it
/// by U+FFFD and adds a journal entry.
const NO_CHARACTER: &[u8] = b"\xF4\x90\x80\x80";

/// Writes a character as UTF-8, and a surrogate as CESU-8. The engine replaces invalid characters and adds
/// journal entries.
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
