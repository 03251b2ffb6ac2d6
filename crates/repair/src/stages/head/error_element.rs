//! The repair of one error element, and the release of held errors.
//!
//! The stages of errors, lists and the tail use it.

use crate::catalog::{NotOai, RepairId};
use crate::lex::lexeme::{Lexeme, Lexemes, is_cut, is_good_comment, next_lexeme, start_tag_end};
use crate::lex::names::is_blank;
use crate::lex::search::{memchr, memchr2};
use crate::lex::window::TextWindow;
use crate::output::head_buffer::Release;
use crate::passes::lenient_tag::read_lenient_tag;
use crate::sink::{EnvelopeFacts, Sink};
use crate::stages::envelope::{element_characters, is_strict_field, strip_envelope_prefixes};
use crate::stages::head::error_text::{code_for_request, intended_error};
use crate::stages::head::repair_head::{EchoArguments, request_echo};
use crate::stages::item_search::begins_item;
use crate::stages::response::{Response, StepResult};
use crate::stages::step::Step;
use crate::text::characters::guess_characters;
use crate::text::edits::Edits;
use crate::text::escape::escape;
use crate::text::node_rules::Guesses;
use crate::validate::envelope_names::TagMatch;
use oaimend_oai::ErrorCode;

/// Returns the start of the end tag of an error whose content begins at `at`, and the end of this tag if
/// present.
///
/// An end tag in a comment or a CDATA section does not count. Returns `None` if the end tag is missing or
/// not received yet.
pub(crate) fn find_error_end_tag(
    response: &Response,
    window: TextWindow<'_>,
    mut at: usize,
) -> Option<(usize, Option<usize>)> {
    let text = window.text;
    let close = [b"</", response.root.prefix(), b"error"].concat();
    loop {
        at += memchr(b'<', text.get(at..)?)?;
        let rest = text.get(at..)?;
        if rest.starts_with(&close) {
            // A tag without `>` ends before the next tag.
            let end = memchr2(b'<', b'>', rest.get(1..)?).map(|end| end + 1);
            let end = end.map(|end| at + end + usize::from(rest.get(end) == Some(&b'>')));
            return Some((at, end));
        }
        let is_section = rest.get(1).is_none_or(|&byte| byte == b'!');
        let section = is_section.then(|| next_lexeme(text, at));
        if !window.is_last && section.is_some_and(|section| is_cut(text, at, section)) {
            return None;
        }
        at = match section {
            Some((Lexeme::Comment | Lexeme::Cdata, end)) => end,
            _ => at + 1,
        };
    }
}

/// Returns the edits to an error element; `None` if its code resembles no legal one.
pub(crate) fn repair_error(response: &mut Response, error: &[u8]) -> Option<Edits> {
    // In a well-formed element, a start mark inside a section is text. It does not mean that the section is
    // unclosed.
    let is_strict = is_strict_field(response, error, b"error");
    let guesses = Guesses::enabled_by(response.config().enabled);
    let characters = if !is_strict {
        element_characters(response, error)
    } else if guesses.any() {
        guess_characters(error, guesses, response.limits())
    } else {
        Edits::default()
    };
    let text = characters.apply(error);
    let mut edits = Edits::default();
    let tag_end = start_tag_end(&text)?;
    let tag = read_lenient_tag(&text, 0, tag_end, response.limits())?;
    for edit in tag.edits.iter() {
        edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
    }
    let content_end =
        if tag.empty { tag_end } else { find_error_end_tag(response, TextWindow::whole(&text), tag_end)?.0 };
    let content = text.get(..content_end)?;
    let words = String::from_utf8_lossy(content.get(tag_end..)?).into_owned();
    let mut code: Option<ErrorCode> = None;
    for attribute in &tag.attributes {
        let name = text.get(attribute.name.0..attribute.name.1).unwrap_or_default();
        if name.eq_ignore_ascii_case(b"code") && code.is_none() {
            let written = std::str::from_utf8(&attribute.value).ok()?;
            let meant = code_for_request(intended_error(written, &words)?, response.request.facts());
            if name != b"code" {
                let named = format!(" code=\"{}\"", meant.name());
                attribute.replace(RepairId::ErrorCode, named.into_bytes(), &mut edits);
            } else if meant.name() != written {
                attribute.set(RepairId::ErrorCode, meant.name().as_bytes(), &mut edits);
            }
            code = Some(meant);
        } else if !response.is_allowed_attribute(&text, &tag.attributes, name) {
            attribute.remove(RepairId::EnvelopeAttribute, &mut edits);
        }
    }
    if code.is_none() {
        code = Some(code_for_request(intended_error("", &words)?, response.request.facts()));
        let attribute = format!(" code=\"{}\"", code?.name());
        edits.push_unordered(RepairId::ErrorCode, tag.name_end, tag.name_end, attribute.into_bytes());
    }
    if code?.forbids_attributes() {
        response.request.omit_arguments();
    }
    // Markup in the text of an error is escaped.
    let mut at = tag_end;
    let mut lexemes = if is_strict { Lexemes::new_well_formed(content) } else { Lexemes::new(content) };
    while at < content_end {
        let (lexeme, end) = lexemes.at(at);
        let slice = text.get(at..end)?;
        match lexeme {
            Lexeme::Text | Lexeme::Cdata => {}
            Lexeme::Comment if is_good_comment(slice) => {}
            _ => {
                let is_item =
                    lexeme == Lexeme::StartTag && begins_item(response, text.get(at..)?) == TagMatch::Yes;
                response.doubts.note_dropped(is_item);
                edits.push_unordered(RepairId::MarkupInField, at, end, escape(slice));
            }
        }
        at = end;
    }
    let close = [b"</", response.root.prefix(), b"error>"].concat();
    let end_tag = text.get(content_end..)?;
    if !tag.empty && end_tag.iter().filter(|&&byte| !is_blank(byte)).count() != close.len() {
        edits.push_unordered(RepairId::MismatchedEndTag, content_end, text.len(), close);
    }
    edits.sort();
    if !is_strict_field(response, &edits.apply(&text), b"error") {
        return None;
    }
    response.output.note_error(code?);
    Some(strip_envelope_prefixes(response, error, characters.then(&text, edits)))
}

/// Releases the held head: an error, or the error of an empty list.
///
/// Returns `Some` if the response contradicts the error, for example by items outside a list. The response
/// is then refused.
pub(crate) fn emit_errors(step: &mut Step<'_, impl Sink>) -> Option<StepResult> {
    if !step.response.output.is_open() {
        if step.response.doubts.has_unknown_code() {
            return Some(step.response.refuse(NotOai::UnknownError));
        }
        if step.response.doubts.has_items_outside_list() || step.response.output.is_incomplete() {
            return Some(step.response.refuse(NotOai::NothingKept));
        }
    }
    let bare_request =
        step.response.request.omits_arguments().then(|| request_echo(step.response, EchoArguments::Omitted));
    if !step.response.output.is_open() {
        let (response_date, root_tag) = (step.response.date.text(), step.response.root.tag());
        step.sink.envelope(&EnvelopeFacts { response_date, root_tag, list: None });
    }
    step.output().release(Release::Errors, bare_request.as_deref());
    None
}
