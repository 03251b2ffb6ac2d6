//! Escaping and resolving the characters of XML text.

use crate::lex::names::{Reference, numeric_reference, reference};
use crate::lex::search::memmem;

/// Escapes text for XML.
pub(crate) fn escape(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    write_escaped(text, reference_for, &mut escaped);
    escaped
}

/// Writes `text`, with references for those bytes that have one.
pub(crate) fn write_escaped(
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

/// The reference that escapes a byte of text.
pub(crate) fn reference_for(byte: u8) -> Option<&'static [u8]> {
    match byte {
        b'&' => Some(b"&amp;"),
        b'<' => Some(b"&lt;"),
        b'>' => Some(b"&gt;"),
        b'"' => Some(b"&quot;"),
        _ => None,
    }
}

/// The characters of well-formed content: references are resolved, CDATA sections are unwrapped, comments
/// and instructions are dropped.
pub(crate) fn resolve(raw: &[u8]) -> Vec<u8> {
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
