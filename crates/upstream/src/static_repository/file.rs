//! The text of a static repository file on the disk, and how it is written.
//!
//! A file is stored as a whole before any of it is served: decoded to UTF-8, checked against its size
//! limit, and hashed. So a file that is being written, or that ends early, never replaces a good one.

use blake2::{Blake2s256, Digest};
use oaimend_repair::Decode;
use oaimend_repository::{Failure, Reason};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Why a file cannot be served.
#[derive(Debug)]
pub(super) enum Failed {
    /// The file is not a usable static repository.
    Wrong(String),
    /// A limit was exceeded.
    TooLarge(String),
    /// Our copy of the file cannot be written or read.
    Disk(io::Error),
}

impl Failed {
    pub(super) fn no_repository() -> Self {
        Self::Wrong("it is not a static repository: its document element is not Repository".to_owned())
    }

    /// The failure of a source with that name.
    pub(super) fn into_failure(self, name: &str) -> Failure {
        match self {
            Self::Wrong(what) => Failure::new(Reason::StaticFile, format!("{name} cannot be served: {what}")),
            Self::TooLarge(what) => {
                Failure::new(Reason::TooLarge, format!("{name} cannot be served: {what}"))
            }
            Self::Disk(error) => Failure::new(
                Reason::StaticFile,
                format!("{name}: our copy in data/static cannot be written or read: {error}; check the disk"),
            ),
        }
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// The text, at any place.
#[derive(Debug)]
pub(super) struct Text {
    file: File,
    len: u64,
}

impl Text {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// A part of the text; the caller has limited its length.
    pub(super) fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).map_err(io::Error::other)?;
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes)
    }

    /// The text from a place to its end.
    pub(super) fn reader(&self, at: u64) -> Reading<'_> {
        Reading { text: self, at }
    }
}

/// A reader of a text that others read at the same time.
pub(super) struct Reading<'a> {
    text: &'a Text,
    at: u64,
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.text.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A file that is being stored.
pub(super) struct Intake {
    decode: Decode,
    file: io::BufWriter<File>,
    hash: Blake2s256,
    len: u64,
    len_max: u64,
    failed: Option<io::Error>,
}

impl Intake {
    /// Writes into `file`; `charset` is the one in the HTTP header.
    pub(super) fn new(file: File, charset: Option<&str>, len_max: u64) -> Self {
        let decode = Decode::new(charset);
        Self {
            decode,
            file: io::BufWriter::with_capacity(256 << 10, file),
            hash: Blake2s256::new(),
            len: 0,
            len_max,
            failed: None,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        self.take(|decode, mut text| decode.push(bytes, &mut text))
    }

    /// Ends the file: the text is on the disk. Returns a hash of it as its version.
    pub(super) fn finish(mut self) -> Result<(File, String), Failed> {
        self.take(|decode, mut text| decode.finish(&mut text))?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok((file, hex::encode(&self.hash.finalize()[..8])))
    }

    /// Writes the text that a step of the decoder yields.
    fn take(&mut self, step: impl FnOnce(&mut Decode, &mut dyn FnMut(&[u8]))) -> Result<(), Failed> {
        let Self { decode, file, hash, len, len_max, failed } = self;
        step(decode, &mut |mut text| {
            if *len == 0 {
                text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
            }
            *len += text.len() as u64;
            if *len <= *len_max && failed.is_none() {
                hash.update(text);
                *failed = file.write_all(text).err();
            }
        });
        if let Some(error) = failed.take() {
            return Err(error.into());
        }
        if *len > *len_max {
            return Err(Failed::TooLarge(format!(
                "it is longer than {len_max} bytes (static_file_bytes_max)"
            )));
        }
        Ok(())
    }
}
