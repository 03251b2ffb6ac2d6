//! The decision which text around the fields of an item may be removed.
//!
//! `passes/` asks it before it removes an element or a text that does not belong in the envelope. Such text
//! is noise, such as a counter or a server message, or content that damage moved there. Content is never
//! removed: its item goes to quarantine.

use crate::lex::known_namespaces::{Family, is_similar_name};
use crate::lex::names::{is_blank, name_span, split_name};
use crate::lex::search::{memchr_iter, memmem};
use crate::validate::schema::{Content, Element};

/// Kinds of PHP messages after which the script continues.
const MESSAGES: &[&[u8]] = &[b"Warning", b"Notice", b"Deprecated", b"Strict Standards"];

/// Whether an element with this name may be content of an item. True for an envelope name, also a misspelt
/// one, for a field of a known format, and for any name with a prefix.
pub(crate) fn is_content(name: &[u8], element: &Element) -> bool {
    let (prefix, local) = split_name(name);
    !prefix.is_empty()
        || is_envelope_name(local, element)
        || Family::DublinCore.is_field(local)
        || Family::Marc.is_field(local)
        || Family::Marc.parent(local).is_some()
}

/// Whether the name is that of the element or of one inside it. One misspelling or a plural is allowed.
fn is_envelope_name(local: &[u8], element: &Element) -> bool {
    let singular = local.strip_suffix(b"s").unwrap_or(local);
    let inside = match element.content {
        Content::Children(children) => children.iter().any(|child| is_envelope_name(local, child)),
        Content::Payload | Content::Text(_) => false,
    };
    inside || is_similar_name(local, element.name) || is_similar_name(singular, element.name)
}

/// Whether an element that may be content begins in `text`.
pub(crate) fn contains_content(text: &[u8], element: &Element) -> bool {
    memchr_iter(b'<', text).any(|at| {
        let tag = text.get(at + 1..).unwrap_or_default();
        let name = tag.get(..name_span(tag)).unwrap_or_default();
        !name.is_empty() && is_content(name, element)
    })
}

/// Whether an envelope element of the item begins in `text`.
pub(crate) fn contains_envelope_element(text: &[u8], element: &Element) -> bool {
    memchr_iter(b'<', text).any(|at| {
        let tag = text.get(at + 1..).unwrap_or_default();
        element.contains_name(split_name(tag.get(..name_span(tag)).unwrap_or_default()).1)
    })
}

/// Whether a text has no letter and no digit.
pub(crate) fn is_punctuation(text: &[u8]) -> bool {
    text.iter().all(|&byte| is_blank(byte) || byte.is_ascii_punctuation())
}

/// Whether `text` is a PHP message after which the script continues.
pub(crate) fn is_server_message(text: &[u8]) -> bool {
    memmem::find(text, b"on line").is_some()
        && MESSAGES.iter().any(|message| memmem::find(text, message).is_some())
}

/// Whether `text` is a PHP message that ended the script: the rest of the response was never sent. The
/// colon of the message may be after the text.
pub(crate) fn is_fatal_message(text: &[u8]) -> bool {
    const FATAL: &[u8] = b"Fatal error";
    memmem::find_iter(text, FATAL).any(|at| {
        let after = text.get(at + FATAL.len()..).unwrap_or_default();
        let after = after.strip_prefix(b"</b>").unwrap_or(after);
        after.is_empty() || after.starts_with(b":")
    })
}
