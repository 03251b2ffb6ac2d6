//! Reads texts as written in XML.

use std::borrow::Cow;

/// The value of a text in XML, such as a token: references resolved, trimmed.
pub(crate) fn unescape_text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let value = quick_xml::escape::unescape(&text).map_or_else(|_| text.to_string(), Cow::into_owned);
    value.trim().to_owned()
}
