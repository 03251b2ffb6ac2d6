//! The decision which text around the fields of an item may be removed.
//!
//! `passes/` asks it before it removes an element or a text that does not belong in the envelope. Such text
//! is noise, such as a counter or a server message, or content that damage moved there. Content is never
//! removed: its item goes to quarantine.

use memchr::{memchr_iter, memmem};

use crate::repair::lex::known_namespaces::{Family, is_slip};
use crate::repair::lex::names::{is_blank, name_span, split_name};
use crate::repair::validate::schema::{Content, Element};

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
    inside || is_slip(local, element.name) || is_slip(singular, element.name)
}

/// Whether an element that may be content begins in `text`.
pub(crate) fn holds_content(text: &[u8], element: &Element) -> bool {
    memchr_iter(b'<', text).any(|at| {
        let tag = text.get(at + 1..).unwrap_or_default();
        let name = tag.get(..name_span(tag)).unwrap_or_default();
        !name.is_empty() && is_content(name, element)
    })
}

/// Whether an envelope element of the item begins in `text`.
pub(crate) fn holds_envelope(text: &[u8], element: &Element) -> bool {
    memchr_iter(b'<', text).any(|at| {
        let tag = text.get(at + 1..).unwrap_or_default();
        element.names(split_name(tag.get(..name_span(tag)).unwrap_or_default()).1)
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
        let behind = text.get(at + FATAL.len()..).unwrap_or_default();
        let behind = behind.strip_prefix(b"</b>").unwrap_or(behind);
        behind.is_empty() || behind.starts_with(b":")
    })
}
