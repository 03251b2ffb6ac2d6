//! Removes the content codings of a body, which its first bytes identify.
//!
//! Some providers compress without an announcement, announce a coding without compressing, or compress twice.
//! Therefore gzip, zstd and zlib are recognised by their first bytes, announced or not. brotli and raw deflate have
//! no mark and must be announced. Input is pushed, and output is pulled in small pieces, so that a compression bomb
//! cannot fill the memory. The bytes before a broken place are returned. Bytes that decode to nothing are limited too,
//! because an endless stream of them would never give a piece.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use oaimend_oai::named_enum;
use std::fmt;
use zstd::stream::raw::{DParameter, Decoder as Zstd, InBuffer, Operation, OutBuffer};

named_enum! {
    /// A content coding, by its name in `Content-Encoding`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Coding {
        /// RFC 1952.
        Gzip = "gzip",
        /// RFC 1950, or without its frame RFC 1951: servers send both as `deflate`.
        Deflate = "deflate",
        /// RFC 7932.
        Brotli = "br",
        /// RFC 8878.
        Zstd = "zstd",
    }
}

impl Coding {
    /// Reads the values of `Content-Encoding`. Unknown names are ignored, because the first bytes decide.
    pub fn announced(values: &str) -> Vec<Self> {
        values
            .split(',')
            .filter_map(|name| match name.trim().to_ascii_lowercase().as_str() {
                "x-gzip" => Some(Self::Gzip),
                name => Self::from_name(name),
            })
            .collect()
    }
}

/// Bounds on the decoded bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of decoded bytes.
    pub bytes_max: u64,
    /// Maximum number of decoded bytes for one received byte, once a MiB is decoded.
    pub ratio_max: u64,
    /// Maximum number of encoded bytes in a row that decode to nothing, such as empty gzip members, empty deflate
    /// blocks, long headers and padding. The bytes between nested codings count too.
    pub empty_bytes_max: u64,
}

/// Why decoding cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are not valid in the coding of their start.
    Broken(Coding),
    /// The input ended inside the coding.
    EndedEarly(Coding),
    /// More decoded bytes than are allowed.
    TooLong(u64),
    /// More decoded bytes for one received byte than are allowed.
    TooDense(u64),
    /// More encoded bytes without content than are allowed.
    TooEmpty(u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(coding) => write!(f, "the {} coding of the body is broken", coding.name()),
            Self::EndedEarly(coding) => write!(f, "the body ends inside its {} coding", coding.name()),
            Self::TooLong(max) => write!(f, "the body is longer than {max} bytes (response_bytes_max)"),
            Self::TooDense(max) => {
                write!(f, "the body inflates by more than {max}:1 (inflate_ratio_max)")
            }
            Self::TooEmpty(max) => {
                write!(f, "more than {max} compressed bytes contain nothing (inflate_empty_bytes_max)")
            }
        }
    }
}

/// Decodes one body.
pub struct Decoder {
    layers: Vec<Layer>,
    announced: Vec<Coding>,
    bounds: Bounds,
    received: u64,
    decoded: u64,
    empty: EmptyBytes,
    ended: bool,
}

/// The encoded bytes since the last decoded byte.
struct EmptyBytes {
    count: u64,
    max: u64,
}

impl EmptyBytes {
    fn add(&mut self, encoded: usize) -> Result<(), Fault> {
        self.count += encoded as u64;
        if self.count > self.max { Err(Fault::TooEmpty(self.max)) } else { Ok(()) }
    }
}

impl Decoder {
    /// A decoder for a body with these announced codings, in the order of the header.
    pub fn new(announced: Vec<Coding>, bounds: Bounds) -> Self {
        let empty = EmptyBytes { count: 0, max: bounds.empty_bytes_max };
        Self {
            layers: vec![Layer::default()],
            announced,
            bounds,
            received: 0,
            decoded: 0,
            empty,
            ended: false,
        }
    }

    /// Takes the next piece of the body. Call [`pull`](Self::pull) until it returns 0 before the next piece.
    pub fn push(&mut self, input: &[u8]) {
        self.received += input.len() as u64;
        if let Some(outermost) = self.layers.first_mut() {
            outermost.take(input);
        }
    }

    /// Whether a piece of the body is decoded as it is, so that it need not be pushed and pulled.
    /// If not, it has to be pushed.
    ///
    /// # Errors
    ///
    /// As with [`pull`](Self::pull).
    pub fn pass(&mut self, input: &[u8]) -> Result<bool, Fault> {
        let [layer] = self.layers.as_mut_slice() else { return Ok(false) };
        if !layer.rest().is_empty() {
            return Ok(false);
        }
        if layer.stage.is_none()
            && input.len() >= JUDGED_BYTES
            && coding_of(input, self.announced.last().copied()).is_none()
        {
            self.announced.pop();
            layer.stage = Some(Stage::Plain);
        }
        if !matches!(layer.stage, Some(Stage::Plain)) {
            return Ok(false);
        }
        self.received += input.len() as u64;
        self.count(input.len()).map(|()| true)
    }

    /// The codings that were removed so far, the outermost first.
    pub fn codings(&self) -> impl Iterator<Item = Coding> {
        self.layers.iter().filter_map(|layer| layer.stage.as_ref()?.coding())
    }

    /// Ends the input. Call [`pull`](Self::pull) until it returns 0.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Decodes into `out` and returns the number of bytes. 0: more input is needed or, after [`end`](Self::end), all
    /// is decoded.
    pub fn pull(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let count = loop {
            match produce(&mut self.layers, &mut self.announced, &mut self.empty, self.ended, out)? {
                DecodingStep::Bytes(count) => {
                    self.empty.count = 0;
                    break count;
                }
                DecodingStep::Starved | DecodingStep::Over => return Ok(0),
                // The output of a recognised coding may be in another coding.
                DecodingStep::Recognised if self.layers.len() < NESTING_MAX => {
                    self.layers.push(Layer::default())
                }
                DecodingStep::Recognised => self.layers.push(Layer::plain()),
            }
        };
        self.count(count).map(|()| count)
    }

    /// Counts decoded bytes, within the bounds.
    fn count(&mut self, decoded: usize) -> Result<(), Fault> {
        self.decoded += decoded as u64;
        if self.decoded > self.bounds.bytes_max {
            return Err(Fault::TooLong(self.bounds.bytes_max));
        }
        let allowed = self.received.saturating_mul(self.bounds.ratio_max);
        if self.decoded > RATIO_FREE_BYTES && self.decoded > allowed {
            return Err(Fault::TooDense(self.bounds.ratio_max));
        }
        Ok(())
    }
}

enum DecodingStep {
    /// The number of decoded bytes.
    Bytes(usize),
    /// More input is needed.
    Starved,
    /// Input and output are over.
    Over,
    /// The innermost layer was judged, and it is a coding.
    Recognised,
}

/// Decodes with the innermost layer, whose input is the output of the layers around it.
fn produce(
    layers: &mut [Layer],
    announced: &mut Vec<Coding>,
    empty: &mut EmptyBytes,
    ended: bool,
    out: &mut [u8],
) -> Result<DecodingStep, Fault> {
    let Some((layer, around)) = layers.split_last_mut() else { return Ok(DecodingStep::Over) };
    loop {
        if layer.stage.is_none() && (layer.rest().len() >= JUDGED_BYTES || layer.input_over) {
            layer.judge(announced);
            if !matches!(layer.stage, Some(Stage::Plain)) {
                return Ok(DecodingStep::Recognised);
            }
        }
        let count = layer.step(out, empty)?;
        if count > 0 {
            return Ok(DecodingStep::Bytes(count));
        }
        if layer.input_over {
            return layer.check_end().map(|()| DecodingStep::Over);
        }
        if around.is_empty() {
            if !ended {
                return Ok(DecodingStep::Starved);
            }
            layer.input_over = true;
            continue;
        }
        let mut piece = [0; PIECE_BYTES];
        match produce(around, announced, empty, ended, &mut piece)? {
            DecodingStep::Bytes(count) => layer.take(piece.get(..count).unwrap_or_default()),
            DecodingStep::Over => layer.input_over = true,
            DecodingStep::Starved | DecodingStep::Recognised => return Ok(DecodingStep::Starved),
        }
    }
}

/// One coding, or the plain text inside all of them.
#[derive(Default)]
struct Layer {
    /// `None` until the first bytes are judged.
    stage: Option<Stage>,
    input: Vec<u8>,
    at: usize,
    /// Whether no input follows.
    input_over: bool,
    /// Whether the coding has ended.
    over: bool,
}

enum Stage {
    Plain,
    Flate(Coding, Decompress),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(Zstd<'static>),
}

impl Layer {
    fn plain() -> Self {
        Self { stage: Some(Stage::Plain), ..Self::default() }
    }

    fn take(&mut self, input: &[u8]) {
        self.input.drain(..self.at);
        self.at = 0;
        self.input.extend_from_slice(input);
    }

    fn rest(&self) -> &[u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// Decides the coding by the first bytes.
    fn judge(&mut self, announced: &mut Vec<Coding>) {
        let (first, word) = (self.rest(), announced.last().copied());
        let by_mark = marked(first);
        self.stage = Some(match coding_of(first, word) {
            Some(coding @ Coding::Gzip) => Stage::Flate(coding, Decompress::new_gzip(15)),
            Some(coding @ Coding::Deflate) => Stage::Flate(coding, Decompress::new(by_mark.is_some())),
            Some(Coding::Zstd) => zstd_stage(),
            Some(Coding::Brotli) => Stage::Brotli(Box::new(BrotliState::new_strict(
                StandardAlloc::default(),
                StandardAlloc::default(),
                StandardAlloc::default(),
            ))),
            None => Stage::Plain,
        });
        if by_mark.is_none() || by_mark == word {
            announced.pop();
        }
    }

    /// Decodes as much as possible into `out`, and returns the number of bytes.
    fn step(&mut self, out: &mut [u8], empty: &mut EmptyBytes) -> Result<usize, Fault> {
        let Some(stage) = &mut self.stage else { return Ok(0) };
        loop {
            let input = self.input.get(self.at..).unwrap_or_default();
            if self.over && !stage.begins_again(input) {
                // Padding after the end of a coding does not belong to it.
                empty.add(input.len())?;
                self.at = self.input.len();
                return Ok(0);
            }
            self.over = false;
            let (consumed, produced, over) = stage.decode(input, out)?;
            self.at += consumed;
            self.over = over;
            empty.add(consumed)?;
            // Content may follow a member, frame or block that decodes to nothing.
            if produced > 0 || consumed == 0 {
                return Ok(produced);
            }
        }
    }

    fn check_end(&self) -> Result<(), Fault> {
        match self.stage.as_ref().and_then(Stage::coding) {
            Some(coding) if !self.over => Err(Fault::EndedEarly(coding)),
            _ => Ok(()),
        }
    }
}

impl Stage {
    fn coding(&self) -> Option<Coding> {
        match self {
            Self::Plain => None,
            Self::Flate(coding, _) => Some(*coding),
            Self::Brotli(_) => Some(Coding::Brotli),
            Self::Zstd(_) => Some(Coding::Zstd),
        }
    }

    /// Whether a further member or frame begins after the end of one.
    fn begins_again(&mut self, input: &[u8]) -> bool {
        match (self, input) {
            (Self::Flate(Coding::Gzip, inflate), [0x1f, ..]) => {
                *inflate = Decompress::new_gzip(15);
                true
            }
            (Self::Zstd(_), [0x28, ..]) => true,
            _ => false,
        }
    }

    /// Returns the consumed and the produced bytes, and whether the coding has ended.
    fn decode(&mut self, input: &[u8], out: &mut [u8]) -> Result<(usize, usize, bool), Fault> {
        match self {
            Self::Plain => {
                let count = input.len().min(out.len());
                let (Some(to), Some(from)) = (out.get_mut(..count), input.get(..count)) else {
                    return Ok((0, 0, false));
                };
                to.copy_from_slice(from);
                Ok((count, count, false))
            }
            Self::Flate(coding, inflate) => {
                let (in_before, out_before) = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(input, out, FlushDecompress::None);
                let consumed = (inflate.total_in() - in_before) as usize;
                let produced = (inflate.total_out() - out_before) as usize;
                match status {
                    Ok(status) => Ok((consumed, produced, status == Status::StreamEnd)),
                    // The bytes before the broken place are returned. The next step finds the fault again.
                    Err(_) if produced > 0 => Ok((consumed, produced, false)),
                    Err(_) => Err(Fault::Broken(*coding)),
                }
            }
            Self::Brotli(state) => decode_brotli(state, input, out),
            Self::Zstd(frame) => {
                let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(out));
                match frame.run(&mut from, &mut to) {
                    Ok(hint) => Ok((from.pos(), to.pos(), hint == 0)),
                    Err(_) if to.pos() > 0 => Ok((from.pos(), to.pos(), false)),
                    Err(_) => Err(Fault::Broken(Coding::Zstd)),
                }
            }
        }
    }
}

fn zstd_stage() -> Stage {
    match Zstd::new() {
        Ok(mut frame) => {
            // RFC 9659: a content coding needs no window above 8 MiB.
            let _ = frame.set_parameter(DParameter::WindowLogMax(23));
            Stage::Zstd(frame)
        }
        // Without memory for a context nothing is decoded.
        Err(_) => Stage::Plain,
    }
}

fn decode_brotli(
    state: &mut BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    input: &[u8],
    out: &mut [u8],
) -> Result<(usize, usize, bool), Fault> {
    let (mut available_in, mut consumed) = (input.len(), 0);
    let (mut available_out, mut produced, mut total) = (out.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut available_in,
        &mut consumed,
        input,
        &mut available_out,
        &mut produced,
        out,
        &mut total,
        state,
    );
    match result {
        BrotliResult::ResultFailure if produced == 0 => Err(Fault::Broken(Coding::Brotli)),
        result => Ok((consumed, produced, matches!(result, BrotliResult::ResultSuccess))),
    }
}

/// The coding of a text with these first bytes, if it has one; `word` is the announced coding.
fn coding_of(first: &[u8], word: Option<Coding>) -> Option<Coding> {
    match (marked(first), word) {
        (Some(coding), _) => Some(coding),
        (None, Some(coding @ (Coding::Deflate | Coding::Brotli))) if !looks_like_text(first) => Some(coding),
        (None, _) => None,
    }
}

/// The coding that the first bytes mark.
fn marked(first: &[u8]) -> Option<Coding> {
    match first {
        [0x1f, 0x8b, 8, ..] => Some(Coding::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Coding::Zstd),
        // deflate with a window of 32 KiB or less, and the check bits of RFC 1950
        [cmf @ 0x78, flg, ..] if (u16::from(*cmf) << 8 | u16::from(*flg)) % 31 == 0 => Some(Coding::Deflate),
        _ => None,
    }
}

/// Whether bytes begin like a document, and therefore have no coding, even if one was announced.
fn looks_like_text(first: &[u8]) -> bool {
    let first = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(first).trim_ascii_start();
    match first {
        [b'<', next, ..] => next.is_ascii_alphabetic() || matches!(next, b'?' | b'!'),
        [b'<' | b'{'] | [] => true,
        _ => false,
    }
}

/// Maximum number of nested codings that are removed. A further one stays.
const NESTING_MAX: usize = 3;
/// The number of first bytes that identify a coding.
const JUDGED_BYTES: usize = 8;
/// Decoded bytes before the ratio is judged.
const RATIO_FREE_BYTES: u64 = 1 << 20;
const PIECE_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests;
