//! The limit of the length of a document.

use serde::Serialize;
use std::io::{self, Write};

/// Longest JSON of a page of records, in bytes. A response of OAI-PMH has at most 8 MiB, so only a page whose records share
/// long declarations of namespaces becomes longer: each of its documents repeats them.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 32 << 20;

/// A document becomes longer than 32 MiB. The same request fails again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the records of this page become more than {} MiB of JSON; send a smaller limit, or fields without metadata, about and \
     dublinCore, or harvest this repository by OAI-PMH",
    DOCUMENT_BYTES_MAX >> 20
)]
pub struct DocumentTooLong;

/// The number of bytes that the parts of records of a page may still take.
#[derive(Debug)]
pub struct DocumentBudget(usize);

impl Default for DocumentBudget {
    fn default() -> Self {
        Self(DOCUMENT_BYTES_MAX)
    }
}

impl DocumentBudget {
    /// Takes bytes before they are made.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), DocumentTooLong> {
        self.0 = self.0.checked_sub(bytes).ok_or(DocumentTooLong)?;
        Ok(())
    }
}

/// The JSON of a page of records, or of a record.
///
/// # Errors
///
/// It is longer than 32 MiB.
pub fn to_json(document: &impl Serialize) -> Result<Vec<u8>, DocumentTooLong> {
    let mut json = LimitedText(Vec::new());
    match serde_json::to_writer(&mut json, document) {
        Ok(()) => Ok(json.0),
        Err(_) => Err(DocumentTooLong),
    }
}

/// The parts of a JSON text as one.
///
/// # Errors
///
/// It is longer than 32 MiB.
pub(crate) fn join(parts: [&[u8]; 3]) -> Result<Vec<u8>, DocumentTooLong> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    if bytes > DOCUMENT_BYTES_MAX { Err(DocumentTooLong) } else { Ok(parts.concat()) }
}

/// A text that refuses to become longer than [`DOCUMENT_BYTES_MAX`].
struct LimitedText(Vec<u8>);

impl Write for LimitedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_a_limit() {
        let quotes = "\"".repeat(1 << 20);
        let page = |count: usize| vec![quotes.as_str(); count];
        // Each quotation mark becomes two bytes.
        assert_eq!(to_json(&page(15)).map(|json| json.len()), Ok((30 << 20) + 15 * 2 + 14 + 2));
        assert_eq!(to_json(&page(17)), Err(DocumentTooLong));
        assert!(DocumentTooLong.to_string().contains("32 MiB"), "{DocumentTooLong}");
    }
}
