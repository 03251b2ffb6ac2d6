//! The messages between oaimend and its worker, over the stdin and stdout of the worker.
//!
//! A message is its length (four bytes, little-endian), its kind (one byte) and its content; the length counts kind and
//! content. The first request is [`Request::Start`]. Each request has one response, in the same order. The worker sends a
//! response before it reads on, so when it ends, the first request without a response is the one that ended it.
//!
//! Pure: no I/O.

use crate::failure::FailureKind;
use crate::limits::{PAYLOAD_BYTES_MAX, XsltLimits};
use crate::sheet::SheetId;
use std::time::Duration;

/// Length of length and kind, in bytes.
pub(crate) const HEAD_BYTES: usize = 5;
/// Longest content of a request, in bytes: a payload and the id of its sheet.
pub(crate) const REQUEST_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + SheetId::BYTES;
/// The exit code of a worker that needed too much memory.
pub(crate) const MEMORY_EXIT_CODE: i32 = 71;

/// A message of oaimend to its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request<'m> {
    /// Gives the limits. The worker gives up its rights.
    Start(XsltLimits),
    /// A sheet, before its first use. Both sides forget the oldest sheet beyond 64.
    Sheet {
        /// The sheet.
        id: SheetId,
        /// Its text.
        text: &'m [u8],
    },
    /// A payload to be transformed.
    Transform {
        /// A sheet that was sent before.
        sheet: SheetId,
        /// The payload.
        payload: &'m [u8],
    },
}

/// A message of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response<'m> {
    /// The worker has no rights any more, and reads requests.
    Ready {
        /// Whether the kernel keeps it from all files and connections by Landlock.
        has_landlock: bool,
        /// The version of libxslt.
        version: &'m str,
    },
    /// The worker cannot work. The text says why and what to do.
    NotReady(&'m str),
    /// The sheet is compiled.
    Compiled,
    /// The output of a transformation.
    Output(&'m [u8]),
    /// The request failed.
    Failed(FailureKind, &'m str),
}

/// A message that does not follow the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker process and oaimend do not understand each other; both must be of one version")]
pub(crate) struct UnknownMessage;

/// The start of a message: its kind and the length of its content in bytes. The content has at most `bytes_max`.
pub(crate) fn read_head(head: [u8; HEAD_BYTES], bytes_max: usize) -> Result<(u8, usize), UnknownMessage> {
    let [a, b, c, d, kind] = head;
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).map_err(|_| UnknownMessage)?;
    match length.checked_sub(1) {
        Some(content) if content <= bytes_max => Ok((kind, content)),
        _ => Err(UnknownMessage),
    }
}

/// Appends a message with the given parts as its content.
fn write(kind: u8, parts: &[&[u8]], message: &mut Vec<u8>) {
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    let length = u32::try_from(length).expect("the limits are far below 4 GiB");
    message.extend_from_slice(&length.to_le_bytes());
    message.push(kind);
    for part in parts {
        message.extend_from_slice(part);
    }
}

impl<'m> Request<'m> {
    /// Appends the message.
    pub(crate) fn write(&self, message: &mut Vec<u8>) {
        match self {
            Self::Start(limits) => {
                let millis = u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX);
                let output = limits.output_bytes as u64;
                let numbers = [millis, limits.memory_bytes, output].map(u64::to_le_bytes);
                write(0, &[numbers.as_flattened()], message);
            }
            Self::Sheet { id, text } => write(1, &[id.bytes(), text], message),
            Self::Transform { sheet, payload } => write(2, &[sheet.bytes(), payload], message),
        }
    }

    /// Reads the content of a message.
    pub(crate) fn read(kind: u8, content: &'m [u8]) -> Result<Self, UnknownMessage> {
        let sheet = || SheetId::split_from(content).ok_or(UnknownMessage);
        match kind {
            0 => {
                let mut numbers = content.chunks_exact(8);
                let mut number = || {
                    let bytes = numbers.next().and_then(|bytes| bytes.try_into().ok());
                    bytes.map(u64::from_le_bytes).ok_or(UnknownMessage)
                };
                let time = Duration::from_millis(number()?);
                let memory_bytes = number()?;
                let output_bytes = usize::try_from(number()?).map_err(|_| UnknownMessage)?;
                Ok(Self::Start(XsltLimits { time, memory_bytes, output_bytes }))
            }
            1 => sheet().map(|(id, text)| Self::Sheet { id, text }),
            2 => sheet().map(|(sheet, payload)| Self::Transform { sheet, payload }),
            _ => Err(UnknownMessage),
        }
    }
}

impl<'m> Response<'m> {
    /// Appends the message.
    pub(crate) fn write(&self, message: &mut Vec<u8>) {
        match self {
            Self::Ready { has_landlock, version } => {
                write(0, &[&[u8::from(*has_landlock)], version.as_bytes()], message);
            }
            Self::NotReady(why) => write(1, &[why.as_bytes()], message),
            Self::Compiled => write(2, &[], message),
            Self::Output(output) => write(3, &[output], message),
            Self::Failed(kind, text) => write(4, &[&[kind.code()], text.as_bytes()], message),
        }
    }

    /// Reads the content of a message.
    pub(crate) fn read(kind: u8, content: &'m [u8]) -> Result<Self, UnknownMessage> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| UnknownMessage);
        match (kind, content) {
            (0, [has_landlock, version @ ..]) => {
                Ok(Self::Ready { has_landlock: *has_landlock == 1, version: text(version)? })
            }
            (1, why) => Ok(Self::NotReady(text(why)?)),
            (2, []) => Ok(Self::Compiled),
            (3, output) => Ok(Self::Output(output)),
            (4, [code, why @ ..]) => {
                let kind = FailureKind::from_code(*code).ok_or(UnknownMessage)?;
                Ok(Self::Failed(kind, text(why)?))
            }
            _ => Err(UnknownMessage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sheet;

    /// Kind and content of a message.
    fn parts(message: &[u8]) -> (u8, &[u8]) {
        let (head, content) = message.split_first_chunk().expect("a head");
        let (kind, length) = read_head(*head, 1_000).expect("a legal head");
        assert_eq!(length, content.len());
        (kind, content)
    }

    #[test]
    fn messages_are_read_as_written() {
        let text = br#"<a xsl:version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"/>"#;
        let sheet = Sheet::read(text.to_vec()).expect("a sheet").id();
        let limits = XsltLimits { memory_bytes: u64::MAX, ..XsltLimits::default() };
        for request in [
            Request::Start(limits),
            Request::Sheet { id: sheet, text: b"<a/>" },
            Request::Transform { sheet, payload: b"" },
        ] {
            let mut message = Vec::new();
            request.write(&mut message);
            let (kind, content) = parts(&message);
            assert_eq!(Request::read(kind, content), Ok(request));
            assert_eq!(Request::read(9, content), Err(UnknownMessage));
        }
        for response in [
            Response::Ready { has_landlock: true, version: "10135" },
            Response::NotReady("why"),
            Response::Compiled,
            Response::Output(b"<a/>"),
            Response::Failed(FailureKind::TransformationFailed, "line 3"),
        ] {
            let mut message = Vec::new();
            response.write(&mut message);
            let (kind, content) = parts(&message);
            assert_eq!(Response::read(kind, content), Ok(response));
        }
    }

    #[test]
    fn foreign_messages_are_refused() {
        for (head, bytes_max) in
            [([0, 0, 0, 0, 1], 10), ([12, 0, 0, 0, 1], 10), ([255, 255, 255, 255, 1], 1 << 20)]
        {
            assert_eq!(read_head(head, bytes_max), Err(UnknownMessage));
        }
        assert_eq!(read_head([11, 0, 0, 0, 3], 10), Ok((3, 10)));
        for (kind, content) in [(0, &b""[..]), (2, b"x"), (4, b""), (4, b"\xff"), (1, b"\xff"), (5, b"")] {
            assert_eq!(Response::read(kind, content), Err(UnknownMessage), "{kind}");
        }
        for (kind, content) in [(0, &b"1234567"[..]), (1, b"short"), (2, b""), (3, b"")] {
            assert_eq!(Request::read(kind, content), Err(UnknownMessage), "{kind}");
        }
    }
}
