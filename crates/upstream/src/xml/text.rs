//! Reads texts as written in XML.

use std::borrow::Cow;

/// The output of the engine as text: it is UTF-8.
pub(crate) fn to_text(output: &[u8]) -> Cow<'_, str> {
    simdutf8::basic::from_utf8(output).map_or_else(|_| String::from_utf8_lossy(output), Cow::Borrowed)
}

/// The value of a text in XML, such as a token: references resolved, trimmed.
pub(crate) fn unescape_text(text: &[u8]) -> String {
    let text = to_text(text);
    let value = quick_xml::escape::unescape(&text).unwrap_or(Cow::Borrowed(&text));
    let trimmed = value.trim();
    if trimmed.len() == value.len() { value.into_owned() } else { trimmed.to_owned() }
}
