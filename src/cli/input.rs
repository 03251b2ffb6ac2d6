//! The input of the filter: a file or stdin, decompressed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use oaimend_upstream::decoding::{Bounds, Decoder, Fault};

use super::exit::Failure;

/// The size of one read, in bytes.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// The input of a filter.
pub(crate) struct Input {
    source: Source,
    coding: Coding,
}

/// The result of a read.
pub(crate) enum Piece {
    /// That many bytes at the start of the buffer.
    Bytes(usize),
    /// The end of the input.
    End,
    /// The compressed data is broken; nothing can be read after this point.
    Broken(Fault),
}

impl Input {
    /// Opens FILE; `-` or nothing is stdin.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let (name, reader): (PathBuf, Box<dyn Read>) = match file.filter(|path| *path != Path::new("-")) {
            None => ("<stdin>".into(), Box::new(io::stdin().lock())),
            Some(path) => {
                let file = File::open(path).map_err(|error| Failure::io("read", path, &error))?;
                (path.to_owned(), Box::new(file))
            }
        };
        Ok(Self { source: Source { name, reader }, coding: Coding::Undetected })
    }

    /// The name of the input, for messages.
    pub(crate) fn name(&self) -> &Path {
        &self.source.name
    }

    /// Reads the next piece into `buffer`.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Piece, Failure> {
        if let Coding::Undetected = self.coding {
            let length = self.source.read(buffer)?;
            // gzip, zstd and zlib begin with one of these bytes; no document does.
            if !matches!(buffer[..length].first(), Some(0x1f | 0x28 | 0x78)) {
                self.coding = Coding::None;
                return Ok(Piece::from_length(length));
            }
            self.coding = Coding::Some(Decoding::new(&buffer[..length]));
        }
        match &mut self.coding {
            Coding::Some(decoding) => decoding.read(&mut self.source, buffer),
            Coding::Undetected | Coding::None => self.source.read(buffer).map(Piece::from_length),
        }
    }
}

impl Piece {
    fn from_length(length: usize) -> Self {
        if length == 0 { Self::End } else { Self::Bytes(length) }
    }
}

enum Coding {
    /// Nothing has been read yet.
    Undetected,
    /// The input is not compressed.
    None,
    /// The input is compressed.
    Some(Decoding),
}

/// A reader, and its name for messages.
struct Source {
    name: PathBuf,
    reader: Box<dyn Read>,
}

impl Source {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(|error| Failure::io("read", &self.name, &error)),
            }
        }
    }
}

struct Decoding {
    decoder: Decoder,
    raw: Vec<u8>,
    ended: bool,
}

impl Decoding {
    fn new(first: &[u8]) -> Self {
        // The memory of the engine does not grow with the output, so any compression ratio is safe.
        let bounds = Bounds { bytes_max: u64::MAX, ratio_max: u64::MAX, empty_bytes_max: u64::MAX };
        let mut decoder = Decoder::new(Vec::new(), bounds);
        decoder.push(first);
        Self { decoder, raw: vec![0; READ_BYTES], ended: false }
    }

    fn read(&mut self, source: &mut Source, buffer: &mut [u8]) -> Result<Piece, Failure> {
        loop {
            match self.decoder.pull(buffer) {
                Err(fault) => return Ok(Piece::Broken(fault)),
                Ok(0) if self.ended => return Ok(Piece::End),
                Ok(0) => {}
                Ok(length) => return Ok(Piece::Bytes(length)),
            }
            match source.read(&mut self.raw)? {
                0 => {
                    self.decoder.end();
                    self.ended = true;
                }
                length => self.decoder.push(&self.raw[..length]),
            }
        }
    }
}
