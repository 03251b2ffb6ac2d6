//! Bytes to text: UTF-8 goes through as it is, UTF-16 and UTF-32 and documents in one 8-bit charset are transcoded.
//!
//! Decided as late as possible: ASCII means the same in all of them, so that
//! nothing is held before the first byte that does not. Bytes that contradict
//! the label win (failure classes B4 to B6).

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8};

/// Bytes behind the first non-ASCII one that are looked at to tell UTF-8 from an 8-bit charset.
const EVIDENCE_BYTES: usize = 4096;

/// Bytes in which an XML declaration is looked for.
const DECLARATION_BYTES: usize = 8192;

#[derive(Debug)]
enum Mode {
    /// Too few bytes to tell UTF-16 from the rest.
    Start,
    /// ASCII so far, under the label of another charset.
    Ascii(&'static Encoding),
    /// As it comes.
    Utf8,
    Transcode(Box<Decoder>),
    Utf32 {
        big_endian: bool,
    },
}

/// Decodes one body.
#[derive(Debug)]
pub(crate) struct Decode {
    mode: Mode,
    /// The charset of the HTTP header, which outranks the declaration.
    charset: Option<&'static Encoding>,
    held: Vec<u8>,
    label: &'static str,
}

impl Decode {
    pub(crate) fn new(charset: Option<&str>) -> Self {
        let charset =
            charset.and_then(|label| Encoding::for_label(label.trim_matches(['"', '\'', ' ']).as_bytes()));
        Self { mode: Mode::Start, charset, held: Vec::new(), label: "UTF-8" }
    }

    /// What the text was decoded from.
    pub(super) fn label(&self) -> &'static str {
        self.label
    }

    /// Decodes the next piece and hands the text on.
    pub(crate) fn push(&mut self, input: &[u8], last: bool, text: &mut impl FnMut(&[u8])) {
        if matches!(self.mode, Mode::Utf8) {
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
        if matches!(self.mode, Mode::Start) {
            match self.start(bytes, last) {
                Some(mode) => self.mode = mode,
                None => return 0,
            }
        }
        match &mut self.mode {
            Mode::Start => 0,
            Mode::Utf8 => {
                text(bytes);
                bytes.len()
            }
            Mode::Ascii(encoding) => {
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
                self.mode = if is_utf8(evidence) { Mode::Utf8 } else { self.transcode(encoding) };
                ascii + self.decode(rest, last, text)
            }
            Mode::Transcode(decoder) => {
                transcode(decoder, bytes, last, text);
                bytes.len()
            }
            Mode::Utf32 { big_endian } => utf32(bytes, *big_endian, last, text),
        }
    }

    /// From byte order marks, the pattern of zero bytes, and the label.
    fn start(&mut self, bytes: &[u8], last: bool) -> Option<Mode> {
        // The declaration is looked for in the first bytes and before the
        // root, wherever the input was cut.
        let bytes = bytes.get(..bytes.len().min(DECLARATION_BYTES)).unwrap_or_default();
        let root = memchr::memmem::find(bytes, b"<OAI");
        let before_root = bytes.get(..root.unwrap_or(bytes.len())).unwrap_or_default();
        let decided =
            bytes.len() == DECLARATION_BYTES || root.is_some() || declaration(before_root).is_some();
        let wide = bytes.len() >= 4 && is_wide(bytes);
        if !(last || decided || wide) {
            return None;
        }
        Some(match bytes {
            [0xFF, 0xFE, 0, 0, ..] | [b'<', 0, 0, 0, ..] => self.utf32(false),
            [0, 0, 0xFE, 0xFF, ..] | [0, 0, 0, b'<', ..] => self.utf32(true),
            [0xFF, 0xFE, ..] | [b'<', 0, _, 0, ..] => self.transcode(encoding_rs::UTF_16LE),
            [0xFE, 0xFF, ..] | [0, b'<', 0, _, ..] => self.transcode(encoding_rs::UTF_16BE),
            _ => match self.charset.or_else(|| declared(before_root)) {
                // A label for wide characters on narrow ones is wrong.
                Some(encoding) if encoding != UTF_8 && encoding.is_ascii_compatible() => {
                    Mode::Ascii(encoding)
                }
                _ => Mode::Utf8,
            },
        })
    }

    fn transcode(&mut self, encoding: &'static Encoding) -> Mode {
        self.label = encoding.name();
        Mode::Transcode(Box::new(encoding.new_decoder_with_bom_removal()))
    }

    fn utf32(&mut self, big_endian: bool) -> Mode {
        self.label = if big_endian { "UTF-32BE" } else { "UTF-32LE" };
        Mode::Utf32 { big_endian }
    }
}

fn is_wide(bytes: &[u8]) -> bool {
    matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, ..] | [_, 0, ..])
}

/// The XML declaration, without its end mark.
fn declaration(bytes: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(bytes, b"<?xml")?;
    bytes.get(start..start + memchr::memmem::find(bytes.get(start..)?, b"?>")?)
}

/// The charset that the XML declaration names.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = declaration(bytes)?;
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
        let (result, read, written, _) = decoder.decode_to_utf8(bytes, &mut buffer, last);
        text(buffer.get(..written).unwrap_or_default());
        bytes = bytes.get(read..).unwrap_or_default();
        if result == CoderResult::InputEmpty {
            return;
        }
    }
}

fn utf32(bytes: &[u8], big_endian: bool, last: bool, text: &mut impl FnMut(&[u8])) -> usize {
    let mut decoded = String::with_capacity(bytes.len() / 4);
    let mut units = bytes.chunks_exact(4);
    for unit in &mut units {
        let code = unit
            .try_into()
            .map(|unit| if big_endian { u32::from_be_bytes(unit) } else { u32::from_le_bytes(unit) });
        let c = code.ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
        if c != '\u{feff}' {
            decoded.push(c);
        }
    }
    if last && !units.remainder().is_empty() {
        decoded.push('\u{fffd}');
    }
    text(decoded.as_bytes());
    if last { bytes.len() } else { bytes.len() - units.remainder().len() }
}
