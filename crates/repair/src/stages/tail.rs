//! The stages tail and epilog: from the end of the verb element to the end of the input.
//!
//! The engine runs them after a list or after errors. No text after the root's end tag is emitted except
//! white space, comments and instructions.

use crate::catalog::{NotOai, RepairId};
use crate::lex::lexeme::{Lexeme, is_cut, next_lexeme};
use crate::lex::names::{blanks, is_blank, trailing_blanks};
use crate::lex::search::memmem;
use crate::output::head_buffer::PartRole;
use crate::sink::Sink;
use crate::stages::envelope::{
    close_tag, end_tag_end, end_tag_of, is_legal_comment, is_legal_instruction, read_end_tag_of,
};
use crate::stages::head::error_element::emit_errors;
use crate::stages::item_search::begins_item;
use crate::stages::list::incomplete::{
    abort_list, close_truncated, must_abort, note_incomplete, truncate_list,
};
use crate::stages::list::list_end::close_list;
use crate::stages::list::oversized::end_input_in_oversized;
use crate::stages::list::state::List;
use crate::stages::response::{Response, Stage, Step};
use crate::validate::envelope_names::TagMatch;
use oaimend_oai::Verb;

/// Dropped text is reported in entries of at most this size.
const DROPPED_BYTES: usize = 64 << 10;

/// Bytes that distinguish all kinds of markup.
const LEXEME_BYTES: usize = 12;

/// Reads white space and comments between the verb element and the root's end tag.
pub(crate) fn step_tail(response: &mut Response, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
    let gap = blanks(rest);
    if gap > 0 {
        return response.keep(PartRole::Plain, rest, gap, sink);
    }
    let bytes_max = response.limits().head_bytes_max;
    if !response.output.is_open() && response.output.held_bytes > bytes_max {
        return response.refuse(NotOai::BrokenEnvelope);
    }
    let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
    let (lexeme, end) = next_lexeme(within, 0);
    let text = within.get(..end).unwrap_or_default();
    // An error is removed together with its text.
    let error_element_end = if lexeme == Lexeme::StartTag && is_error(response, text) {
        error_element_end(response, within, end)
    } else {
        Some(end)
    };
    let undecided = error_element_end.is_none()
        || is_cut(within, 0, (lexeme, end))
        || end >= rest.len().saturating_sub(1)
        || rest.len() < LEXEME_BYTES;
    if undecided && !last && rest.len() < bytes_max {
        return response.need_more(rest);
    }
    let root_end = [b"</", response.prefix.as_slice(), b"OAI-PMH"].concat();
    let is_root_end = lexeme == Lexeme::EndTag
        && text
            .strip_prefix(root_end.as_slice())
            .is_some_and(|rest| rest.first().is_none_or(|&b| is_blank(b) || b == b'>'));
    if is_root_end {
        if let Some(refused) = emit_errors(response, sink) {
            return refused;
        }
        if must_abort(response) {
            return abort_list(response);
        }
        note_incomplete(response, response.base, sink);
        response.stage = Stage::Epilog;
        let end = end_tag_end(within);
        return close_tag(response, PartRole::Plain, (b"OAI-PMH", b"OAI-PMH"), rest, end, sink);
    }
    if lexeme == Lexeme::StartTag && !response.output.is_open() {
        match begins_item(response, within) {
            TagMatch::Cut if !last && rest.len() < bytes_max => return response.need_more(rest),
            found => response.has_items_outside_list |= found == TagMatch::Yes,
        }
    }
    if error_element_end.is_none() || lexeme != Lexeme::BareLessThan && is_cut(within, 0, (lexeme, end)) {
        response.lookahead.count_failed(within.len());
    }
    match lexeme {
        Lexeme::Comment if is_legal_comment(response, text) => {
            response.keep(PartRole::Plain, rest, end, sink)
        }
        Lexeme::Instruction if is_legal_instruction(response, text) => {
            response.keep(PartRole::Plain, rest, end, sink)
        }
        Lexeme::StartTag if is_error(response, text) => {
            response.change(RepairId::ErrorBesideItems, rest, error_element_end.unwrap_or(end), b"", sink)
        }
        Lexeme::EndTag if last && end == rest.len() && root_end.starts_with(text) => {
            close_truncated_root(response, rest, sink)
        }
        Lexeme::EndTag => response.change(RepairId::StrayEndTag, rest, end, b"", sink),
        _ if last && root_end.starts_with(rest) => close_truncated_root(response, rest, sink),
        // Blanks after stray text stay.
        Lexeme::Text => {
            response.change(RepairId::UnexpectedContent, rest, end - trailing_blanks(text), b"", sink)
        }
        _ => response.change(RepairId::UnexpectedContent, rest, end, b"", sink),
    }
}

/// Closes the root if the input ends inside its end tag.
fn close_truncated_root(response: &mut Response, rest: &[u8], sink: &mut impl Sink) -> Step {
    if let Some(refused) = emit_errors(response, sink) {
        return refused;
    }
    if must_abort(response) {
        return abort_list(response);
    }
    note_incomplete(response, response.base, sink);
    response.stage = Stage::Epilog;
    let close = end_tag_of(response, b"OAI-PMH");
    response.change(RepairId::UnclosedList, rest, rest.len(), &close, sink)
}

pub(crate) fn is_error(response: &Response, tag: &[u8]) -> bool {
    let open = [b"<", response.prefix.as_slice(), b"error"].concat();
    tag.strip_prefix(open.as_slice())
        .and_then(|rest| rest.first())
        .is_some_and(|&b| is_blank(b) || matches!(b, b'>' | b'/'))
}

/// Returns the end of the error element whose start tag ends at `tag_end`, if `text` contains it.
fn error_element_end(response: &Response, text: &[u8], tag_end: usize) -> Option<usize> {
    if text.get(..tag_end)?.ends_with(b"/>") {
        return Some(tag_end);
    }
    let close = read_end_tag_of(response, b"error");
    memmem::find(text, &close).map(|at| at + close.len())
}

/// Reads the text after the root. White space and comments stay. Everything after the first other text is
/// removed.
pub(crate) fn step_epilog(response: &mut Response, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
    let gap = blanks(rest);
    if gap > 0 {
        return response.keep(PartRole::Plain, rest, gap, sink);
    }
    let within = rest.get(..rest.len().min(DROPPED_BYTES)).unwrap_or_default();
    let (lexeme, end) = next_lexeme(within, 0);
    let text = within.get(..end).unwrap_or_default();
    let undecided = matches!(lexeme, Lexeme::OpenComment | Lexeme::OpenTag)
        || end >= rest.len().saturating_sub(1)
        || rest.len() < LEXEME_BYTES;
    if undecided && !last && rest.len() < DROPPED_BYTES {
        return response.need_more(rest);
    }
    match lexeme {
        Lexeme::Comment if is_legal_comment(response, text) => {
            response.keep(PartRole::Plain, rest, end, sink)
        }
        Lexeme::Instruction if is_legal_instruction(response, text) => {
            response.keep(PartRole::Plain, rest, end, sink)
        }
        _ => {
            if !last && rest.len() < DROPPED_BYTES {
                return response.need_more(rest);
            }
            let junk = rest.get(..rest.len().min(DROPPED_BYTES)).unwrap_or_default();
            response.change(RepairId::TrailingJunk, rest, junk.len(), b"", sink)
        }
    }
}

/// Reports the rest of a truncated response without writing it.
pub(crate) fn step_truncated(response: &mut Response, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
    if !last && rest.len() < DROPPED_BYTES {
        return Step::NeedMore;
    }
    response.change(RepairId::TruncatedInput, rest, rest.len().min(DROPPED_BYTES), b"", sink)
}

/// Ends the input and closes the open elements of the envelope if that is allowed.
pub(crate) fn end_input(response: &mut Response, sink: &mut impl Sink) {
    if response.not_oai.is_some() {
        return;
    }
    match std::mem::replace(&mut response.stage, Stage::Done) {
        Stage::Prolog => response.not_oai = Some(NotOai::Empty),
        Stage::Head => response.not_oai = Some(NotOai::NothingKept),
        Stage::Errors | Stage::Tail => {
            if emit_errors(response, sink).is_none() {
                close_root(response, sink);
            }
        }
        Stage::List(mut list) => end_input_in_list(response, &mut list, sink),
        Stage::Oversized(list) => {
            end_input_in_oversized(response, &list, sink);
            return end_input(response, sink);
        }
        Stage::Truncated => close_truncated(response, sink),
        Stage::Epilog => note_incomplete(response, response.base, sink),
        Stage::Done => {}
    }
    if response.not_oai.is_none() && !response.output.is_open() {
        response.not_oai = Some(NotOai::NothingKept);
    }
}

fn close_root(response: &mut Response, sink: &mut impl Sink) {
    if must_abort(response) {
        response.truncated = true;
        return;
    }
    note_incomplete(response, response.base, sink);
    let close = end_tag_of(response, b"OAI-PMH");
    response.output.change(PartRole::Plain, RepairId::UnclosedList, response.base, b"", &close, sink);
}

/// Ends the input between items. The list is complete if a whole token was read.
fn end_input_in_list(response: &mut Response, list: &mut List, sink: &mut impl Sink) {
    response.verb = Some(list.verb);
    if !list.opened || list.verb == Verb::Identify {
        response.refuse(NotOai::NothingKept);
        return;
    }
    // GetRecord allows one record, and that record was read.
    let complete = list.token_seen || list.verb == Verb::GetRecord && response.output.records > 0;
    if !complete || response.output.incomplete {
        truncate_list(response, list);
        if matches!(response.stage, Stage::Truncated) {
            close_truncated(response, sink);
        }
        return;
    }
    if close_list(response, list, b"", sink).is_none() {
        let close = end_tag_of(response, list.written_name());
        response.output.change(PartRole::List, RepairId::UnclosedList, response.base, b"", &close, sink);
        if emit_errors(response, sink).is_none() {
            close_root(response, sink);
        }
    }
}
