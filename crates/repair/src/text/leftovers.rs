//! What a file leaves before its document element when it is pasted into a payload: byte order marks, and
//! an XML declaration or what is left of one.
//!
//! The pass over the [`header`](crate::passes::header) removes such text. Anything that may be
//! content is none of them.

use crate::catalog::RepairId;
use crate::lex::names::{blanks, is_blank, may_start_name, trailing_blanks, trim};
use crate::lex::search::memchr_iter;

/// A byte order mark, and the marks of UTF-8 and UTF-16 that were read as Latin-1 once or twice.
const MARKS: [&str; 5] = ["\u{feff}", "ï»¿", "Ã¯Â»Â¿", "ÿþ", "þÿ"];
/// Longest text that can be left of a declaration, in bytes. The usual ones have fewer than 60.
const DECLARATION_BYTES_MAX: usize = 200;
/// Longest version, encoding or answer in a declaration, in bytes.
const VALUE_BYTES_MAX: usize = 40;
const OPENING: &[u8] = b"<?xml";
const ATTRIBUTES: [&[u8]; 3] = [b"version", b"encoding", b"standalone"];

/// Returns the repair that removes `text` from a payload; `None` if the text may be content. References in
/// it are resolved.
pub(crate) fn leftover_repair(text: &[u8]) -> Option<RepairId> {
    let text = trim(text);
    let rest = without_marks(text);
    if rest.is_empty() {
        return (!text.is_empty()).then_some(RepairId::ByteOrderMark);
    }
    is_part_of_declaration(rest).then_some(RepairId::InnerDeclaration)
}

/// Returns a payload without leftovers before its root and without marks after it.
pub(crate) fn without_leftovers(payload: &[u8]) -> &[u8] {
    let payload = without_marks(payload);
    let declared = payload.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"<?xml "));
    let payload = match crate::lex::search::memmem::find(payload, b"?>") {
        Some(end) if declared => without_marks(payload.get(end + 2..).unwrap_or_default()),
        _ => payload,
    };
    let begins_name = |at: &usize| payload.get(at + 1).copied().is_some_and(may_start_name);
    match memchr_iter(b'<', payload).find(begins_name).and_then(|root| payload.split_at_checked(root)) {
        Some((before, root)) if leftover_repair(before).is_some() => root,
        _ => payload,
    }
}

/// The text without the byte order marks and the white space around it.
fn without_marks(text: &[u8]) -> &[u8] {
    let mut text = trim(text);
    loop {
        let mut marks = MARKS.iter().map(|mark| mark.as_bytes());
        let Some(rest) = marks.find_map(|mark| text.strip_prefix(mark).or(text.strip_suffix(mark))) else {
            return text;
        };
        text = trim(rest);
    }
}

/// Whether a text is an XML declaration, its beginning or its end.
fn is_part_of_declaration(text: &[u8]) -> bool {
    if text.len() > DECLARATION_BYTES_MAX {
        return false;
    }
    let text = text.to_ascii_lowercase();
    // Some software writes a blank before the target.
    let target = text.strip_prefix(b"<?").map(|text| text.get(blanks(text)..).unwrap_or_default());
    match target.and_then(|text| text.strip_prefix(b"xml")) {
        Some(attributes) => begins_declaration(attributes),
        None => ends_declaration(&text),
    }
}

/// Whether a declaration can go on with `rest` after its target.
fn begins_declaration(mut rest: &[u8]) -> bool {
    loop {
        let gap = blanks(rest);
        rest = rest.get(gap..).unwrap_or_default();
        if matches!(rest, b"" | b"?" | b"?>" | b">") {
            return true;
        }
        let len = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let (name, after) = rest.split_at_checked(len).unwrap_or_default();
        let after = after.get(blanks(after)..).unwrap_or_default();
        if gap == 0 || after.is_empty() {
            return gap > 0 && ATTRIBUTES.iter().any(|attribute| attribute.starts_with(name));
        }
        if !ATTRIBUTES.contains(&name) {
            return false;
        }
        let Some(value) = after.strip_prefix(b"=") else { return false };
        let value = value.get(blanks(value)..).unwrap_or_default();
        let Some((quote, value)) = value.split_first().filter(|(quote, _)| is_quote(**quote)) else {
            return value.is_empty();
        };
        let Some(end) = value.iter().position(|byte| byte == quote) else { return is_value(value) };
        if !value.get(..end).is_some_and(is_value) {
            return false;
        }
        rest = value.get(end + 1..).unwrap_or_default();
    }
}

/// Whether `text` is the end of a declaration. Without its question mark it must contain nothing else, or
/// a whole attribute.
fn ends_declaration(text: &[u8]) -> bool {
    let Some(text) = text.strip_suffix(b">") else { return false };
    let (mut rest, is_closed) = text.strip_suffix(b"?").map_or((text, false), |text| (text, true));
    let mut has_attribute = false;
    loop {
        rest = without_end_blanks(rest);
        let Some((quote, value)) = rest.split_last().filter(|(quote, _)| is_quote(**quote)) else { break };
        let Some(start) = value.iter().rposition(|byte| byte == quote) else {
            return is_closed && is_value(value);
        };
        let (before, value) = value.split_at_checked(start).unwrap_or_default();
        if !value.get(1..).is_some_and(is_value) {
            return false;
        }
        let before = without_end_blanks(before);
        if before.is_empty() {
            return is_closed;
        }
        let Some(before) = before.strip_suffix(b"=").map(without_end_blanks) else { return false };
        let letters = before.iter().rev().take_while(|byte| byte.is_ascii_lowercase()).count();
        let (before, name) = before.split_at_checked(before.len() - letters).unwrap_or_default();
        if before.is_empty() && !ATTRIBUTES.contains(&name) {
            return is_closed && ATTRIBUTES.iter().any(|attribute| attribute.ends_with(name));
        }
        if !ATTRIBUTES.contains(&name) || before.last().is_some_and(|&byte| !is_blank(byte)) {
            return false;
        }
        has_attribute = true;
        rest = before;
    }
    (is_closed || has_attribute || rest.is_empty()) && OPENING.ends_with(rest)
}

fn without_end_blanks(text: &[u8]) -> &[u8] {
    text.get(..text.len() - trailing_blanks(text)).unwrap_or_default()
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// Whether a text can be a value of a declaration, or a part of one.
fn is_value(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    text.len() <= VALUE_BYTES_MAX && text.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::{leftover_repair, without_leftovers};
    use crate::catalog::RepairId;

    #[test]
    fn each_part_of_a_declaration_is_recognised() {
        for declaration in [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "<?xml version='1.0' encoding='iso-8859-1' standalone='yes' ?>",
            "<?XML version = \"1.1\"?>",
        ] {
            for at in 0..declaration.len() {
                let end = &declaration[at..];
                assert_eq!(leftover_repair(end.as_bytes()), Some(RepairId::InnerDeclaration), "{end}");
                let start = &declaration[..=at];
                let is_sure = start.len() >= 5;
                assert_eq!(leftover_repair(start.as_bytes()).is_some(), is_sure, "{start}");
            }
        }
        for text in
            ["<?xml version=\"1.0\">", "version=\"1.0\" encoding=\"utf-8\">", "<? xml version=\"1.0\" ?>"]
        {
            assert_eq!(leftover_repair(text.as_bytes()), Some(RepairId::InnerDeclaration), "{text}");
        }
    }

    #[test]
    fn marks_are_recognised_in_each_reading() {
        for mark in ["\u{feff}", " \u{feff}\n\u{feff}", "ï»¿", "Ã¯Â»Â¿", "ÿþ"] {
            assert_eq!(leftover_repair(mark.as_bytes()), Some(RepairId::ByteOrderMark), "{mark}");
            let both = format!("{mark}\n?>");
            assert_eq!(leftover_repair(both.as_bytes()), Some(RepairId::InnerDeclaration), "{both}");
        }
    }

    #[test]
    fn text_that_may_be_content_stays() {
        for text in [
            "",
            " ",
            "a",
            "1.0",
            "UTF-8",
            "a>",
            "xml",
            "xml>",
            "->",
            "-->",
            "]]>",
            "...",
            "=\"1.0\">",
            "foo\">",
            "LABEL=\"x\"?>",
            "title=\"1.0\">",
            "version of 1.0?>",
            "<?xml-stylesheet href=\"a\"?>",
            "<?xml a?>",
            "\u{feff}A title",
            "See?>",
            "<?php ?>",
            "a version=\"1.0\"?>",
        ] {
            assert_eq!(leftover_repair(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_payload_loses_what_precedes_its_root() {
        for payload in [
            "<a/>",
            " \u{feff}<a/>",
            "<?xml version=\"1.0\" note=\"own\"?>\n<a/>",
            "\u{feff}<?xml version=\"1.0\"?>\n\u{feff}<a/>\u{feff}\n",
            "?>\n<a/>",
        ] {
            assert_eq!(without_leftovers(payload.as_bytes()), b"<a/>", "{payload}");
        }
        for payload in ["text <a/>", "<!-- a --><a/>", "text"] {
            assert_eq!(without_leftovers(payload.as_bytes()), payload.as_bytes(), "{payload}");
        }
    }
}
