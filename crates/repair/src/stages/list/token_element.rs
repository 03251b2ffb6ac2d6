//! The content of a resumptionToken element that may be damaged: its end and its value.
//!
//! [`token`](super::token) uses it.
//!
//! A token is read only if its value is certain. Inside it, anything except text, sections and HTML line
//! breaks makes it unreadable.

use std::borrow::Cow;

use crate::boundary::removal::token_text;
use crate::catalog::RepairId;
use crate::lex::lexeme::{CDATA, Lexeme, Lexemes, is_cut};
use crate::lex::names::{name_span, split_name, trailing_blanks, trim};
use crate::lex::search::{memchr, memmem};
use crate::lex::window::TextWindow;
use crate::limits::Limits;
use crate::sink::TokenFacts;
use crate::text::edits::Edits;
use crate::validate::envelope_names::is_token_name;
use crate::validate::start_tag::{Attribute, read_attributes};

/// The result of reading a token element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenRead {
    /// The whole element. A readable end tag begins at `close`.
    Whole { close: Option<usize>, end: usize },
    /// The value or the end of the token cannot be read.
    Unreadable,
    /// More text is needed to decide.
    NeedMore,
}

/// Reads the token element at the start of `text` whose start tag ends at `tag_end`.
///
/// It ends at the latest at the first tag accepted by `ends_token`.
pub(crate) fn read_token(
    window: TextWindow<'_>,
    tag_end: usize,
    ends_token: impl Fn(Lexeme, &[u8]) -> bool,
) -> TokenRead {
    let text = window.text;
    // An end tag with another name closes the token if only the end of the list follows.
    let mut other: Option<(usize, usize)> = None;
    let whole_or_unreadable = |other: Option<(usize, usize)>| match other {
        Some((close, end)) => TokenRead::Whole { close: Some(close), end },
        None => TokenRead::Unreadable,
    };
    let mut at = tag_end;
    let mut lexemes = Lexemes::new(text);
    loop {
        if at >= text.len() {
            return if window.is_last { whole_or_unreadable(other) } else { TokenRead::NeedMore };
        }
        let (lexeme, mut end) = lexemes.at(at);
        if !window.is_last && is_cut(text, at, (lexeme, end)) {
            return TokenRead::NeedMore;
        }
        let slice = text.get(at..end).unwrap_or_default();
        match lexeme {
            Lexeme::Text if other.is_some() && !trim(slice).is_empty() => return TokenRead::Unreadable,
            Lexeme::Text | Lexeme::Comment | Lexeme::OpenComment | Lexeme::OpenCdata => {}
            Lexeme::Cdata => {
                if holds_end_tag(slice) {
                    end = at + CDATA.len();
                }
            }
            Lexeme::StartTag | Lexeme::EndTag if is_line_break(slice) => {}
            Lexeme::EndTag if is_token_name(local_tag_name(slice)) => {
                let is_cut_off = !slice.ends_with(b">") && end == text.len();
                return if is_cut_off {
                    TokenRead::Unreadable
                } else {
                    TokenRead::Whole { close: Some(at), end }
                };
            }
            Lexeme::StartTag | Lexeme::EndTag if ends_token(lexeme, text.get(at..).unwrap_or_default()) => {
                let content = text.get(tag_end..at).unwrap_or_default();
                let end = at - trailing_blanks(content);
                return if other.is_some() {
                    whole_or_unreadable(other)
                } else {
                    TokenRead::Whole { close: None, end }
                };
            }
            Lexeme::EndTag if other.is_none() && slice.ends_with(b">") => other = Some((at, end)),
            _ => return TokenRead::Unreadable,
        }
        at = end;
    }
}

/// Returns the edits that reduce a token element to text, sections and the end tag `</name>`.
pub(crate) fn token_edits(text: &[u8], tag_end: usize, close: Option<usize>, name: &[u8]) -> Edits {
    let mut edits = Edits::default();
    let read = text.get(1..1 + name_span(text.get(1..).unwrap_or_default())).unwrap_or_default();
    if read != name {
        edits.push(RepairId::MisspeltToken, 1, 1 + read.len(), name);
    }
    if text.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>")) {
        return edits;
    }
    let content_end = close.unwrap_or(text.len());
    let mut at = tag_end;
    let mut lexemes = Lexemes::new(text.get(..content_end).unwrap_or_default());
    while at < content_end {
        let (lexeme, end) = lexemes.at(at);
        match lexeme {
            Lexeme::OpenCdata => edits.push(RepairId::UnterminatedCdata, at, end, b""),
            Lexeme::OpenComment => edits.push(RepairId::BrokenComment, at, end, b""),
            Lexeme::StartTag | Lexeme::EndTag => edits.push(RepairId::UnexpectedContent, at, end, b""),
            _ => {}
        }
        at = end;
    }
    let end_tag = [b"</", name, b">"].concat();
    let Some(close) = close else {
        edits.push(RepairId::MissingEndTag, text.len(), text.len(), &end_tag);
        return edits;
    };
    let written = text.get(close..).unwrap_or_default();
    let spelt = written.get(2..2 + name_span(written.get(2..).unwrap_or_default())).unwrap_or_default();
    let after = written.get(2 + spelt.len()..).unwrap_or_default();
    if spelt != name && spelt == read && trim(after) == b">" {
        edits.push(RepairId::MisspeltToken, close + 2, close + 2 + spelt.len(), name);
    } else if spelt != name || trim(after) != b">" {
        edits.push(RepairId::MismatchedEndTag, close, text.len(), &end_tag);
    }
    edits
}

/// Returns the facts of a valid token element. `value` is its [`token_value`], `total_elements` that of the received
/// element.
pub(crate) fn token_facts<'t>(
    element: &'t [u8],
    value: &'t [u8],
    total_elements: Option<u64>,
) -> TokenFacts<'t> {
    // Reading a valid tag cannot fail.
    let attributes = token_attributes(element);
    let value_of =
        |name: &[u8]| attributes.iter().find(|attribute| attribute.name == name).map(|found| found.value);
    TokenFacts {
        token: value,
        cursor: value_of(b"cursor").and_then(read_number),
        complete_list_size: value_of(b"completeListSize").and_then(read_number),
        total_elements,
        expiration_date: value_of(b"expirationDate").unwrap_or_default(),
    }
}

/// Returns `totalElements` of a token element as received.
pub(crate) fn read_total_elements(element: &[u8]) -> Option<u64> {
    let attributes = token_attributes(element);
    read_number(attributes.iter().find(|attribute| attribute.name == b"totalElements")?.value)
}

fn token_attributes(element: &[u8]) -> Vec<Attribute<'_>> {
    let mut attributes = Vec::new();
    let name = name_span(element.get(1..).unwrap_or_default());
    // The attributes before an error are kept.
    let _ = read_attributes(element, 1 + name, &Limits::default(), &mut attributes);
    attributes
}

fn read_number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Returns the value of a valid token element as XML text.
pub(crate) fn token_value(element: &[u8]) -> Cow<'_, [u8]> {
    let start = memchr(b'>', element).map_or(element.len(), |end| end + 1);
    token_text(element.get(start..).unwrap_or_default())
}

/// Returns the local name of a tag.
fn local_tag_name(tag: &[u8]) -> &[u8] {
    let name = tag.strip_prefix(b"</").or(tag.strip_prefix(b"<")).unwrap_or_default();
    split_name(name.get(..name_span(name)).unwrap_or_default()).1
}

fn is_line_break(tag: &[u8]) -> bool {
    local_tag_name(tag).eq_ignore_ascii_case(b"br")
}

/// Returns whether a CDATA section contains an end tag of a token. Then the section was never closed.
fn holds_end_tag(section: &[u8]) -> bool {
    memmem::find_iter(section, b"</")
        .any(|at| is_token_name(local_tag_name(section.get(at..).unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::{Lexeme, TextWindow, TokenRead, read_token, token_edits, token_value};

    const NAME: &[u8] = b"resumptionToken";

    fn repaired(text: &str) -> Option<String> {
        let tag_end = text.find('>')? + 1;
        let ends_token = |lexeme, rest: &[u8]| match lexeme {
            Lexeme::EndTag => rest.starts_with(b"</ListRecords") || rest.starts_with(b"</OAI-PMH"),
            _ => rest.starts_with(b"<record>"),
        };
        match read_token(TextWindow::whole(text.as_bytes()), tag_end, ends_token) {
            TokenRead::Whole { close, end } => {
                let element = text.get(..end)?;
                let edits = token_edits(element.as_bytes(), tag_end, close, NAME);
                Some(String::from_utf8_lossy(&edits.apply(element.as_bytes())).into_owned())
            }
            _ => None,
        }
    }

    #[test]
    fn a_token_with_one_reading_is_read() {
        for (element, value) in [
            ("<resumptionToken>a</resumptionToken>", "a"),
            ("<ResumptionToken>a</ResumptionToken>", "a"),
            ("<oai:resumptionTokens>a</oai:resumptionTokens>", "a"),
            ("<resumptionToken>a</resumptiontoken></ListRecords>", "a"),
            ("<resumptionToken>a</token></ListRecords>", "a"),
            ("<resumptionToken>a</b></ListRecords></OAI-PMH>", "a"),
            ("<resumptionToken>a</resumptionToken</ListRecords>", "a"),
            ("<resumptionToken>a</ListRecords>", "a"),
            ("<resumptionToken>a\n<record><header>", "a"),
            ("<resumptionToken>a<br></resumptionToken>", "a"),
            ("<resumptionToken>a<br/>\n</resumptionToken>", "a\n"),
            ("<resumptionToken><![CDATA[a</resumptionToken>", "a"),
            ("<resumptionToken><![CDATA[a</resumptionToken><record>x]]>", "a"),
        ] {
            assert_eq!(
                repaired(element).as_deref(),
                Some(&*format!("<resumptionToken>{value}</resumptionToken>"))
            );
        }
    }

    #[test]
    fn a_token_with_no_sure_reading_is_not_read() {
        for element in [
            "<resumptionToken>a",
            "<resumptionToken>a</resump",
            "<resumptionToken>a</resumptionToken",
            "<resumptionToken>a<b>c</b>d</resumptionToken>",
            "<resumptionToken>a</b>c</resumptionToken>",
            "<resumptionToken>a<b</resumptionToken>",
        ] {
            assert_eq!(repaired(element), None, "{element}");
        }
    }

    #[test]
    fn the_value_is_the_text_of_all_sections() {
        for (element, value) in [
            ("<resumptionToken>a&amp;b</resumptionToken>", "a&amp;b"),
            ("<resumptionToken> <![CDATA[a&b]]>c</resumptionToken>", "a&amp;bc"),
            ("<resumptionToken><!-- x -->a</resumptionToken>", "a"),
            ("<resumptionToken></resumptionToken>", ""),
            ("<resumptionToken/>", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&token_value(element.as_bytes())), value, "{element}");
        }
    }
}
