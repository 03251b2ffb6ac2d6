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
use crate::stages::response::{Response, Stage, StepResult};
use crate::stages::step::Step;
use crate::validate::envelope_names::TagMatch;
use oaimend_oai::Verb;

/// Dropped text is reported in entries of at most this size.
const DROPPED_BYTES: usize = 64 << 10;

/// Bytes that distinguish all kinds of markup.
const LEXEME_BYTES: usize = 12;

/// Reads white space and comments between the verb element and the root's end tag.
pub(crate) fn step_tail(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let gap = blanks(rest);
    if gap > 0 {
        return step.keep(PartRole::Plain, gap);
    }
    let bytes_max = step.response.limits().head_bytes_max;
    if !step.response.output.is_open() && step.response.output.held_bytes() > bytes_max {
        return step.response.refuse(NotOai::BrokenEnvelope);
    }
    let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
    let (lexeme, end) = next_lexeme(within, 0);
    let text = within.get(..end).unwrap_or_default();
    // An error is removed together with its text.
    let error_element_end = if lexeme == Lexeme::StartTag && is_error(step.response, text) {
        error_element_end(step.response, within, end)
    } else {
        Some(end)
    };
    let undecided = error_element_end.is_none()
        || is_cut(within, 0, (lexeme, end))
        || end >= rest.len().saturating_sub(1)
        || rest.len() < LEXEME_BYTES;
    if undecided && !step.window.is_last && rest.len() < bytes_max {
        return step.need_more();
    }
    let root_end = [b"</", step.response.root.prefix(), b"OAI-PMH"].concat();
    let is_root_end = lexeme == Lexeme::EndTag
        && text
            .strip_prefix(root_end.as_slice())
            .is_some_and(|rest| rest.first().is_none_or(|&b| is_blank(b) || b == b'>'));
    if is_root_end {
        if let Some(refused) = emit_errors(step) {
            return refused;
        }
        if must_abort(step.response) {
            return abort_list(step.response);
        }
        note_incomplete(step, 0);
        step.response.enter(Stage::Epilog);
        let end = end_tag_end(within);
        return close_tag(step, PartRole::Plain, (b"OAI-PMH", b"OAI-PMH"), end);
    }
    if lexeme == Lexeme::StartTag && !step.response.output.is_open() {
        match begins_item(step.response, within) {
            TagMatch::Cut if !step.window.is_last && rest.len() < bytes_max => return step.need_more(),
            found => step.response.doubts.note_dropped(found == TagMatch::Yes),
        }
    }
    if error_element_end.is_none() || lexeme != Lexeme::BareLessThan && is_cut(within, 0, (lexeme, end)) {
        step.response.count_failed(within.len());
    }
    match lexeme {
        Lexeme::Comment if is_legal_comment(step.response, text) => step.keep(PartRole::Plain, end),
        Lexeme::Instruction if is_legal_instruction(step.response, text) => step.keep(PartRole::Plain, end),
        Lexeme::StartTag if is_error(step.response, text) => {
            step.change(RepairId::ErrorBesideItems, error_element_end.unwrap_or(end), b"")
        }
        Lexeme::EndTag if step.window.is_last && end == rest.len() && root_end.starts_with(text) => {
            close_truncated_root(step)
        }
        Lexeme::EndTag => step.change(RepairId::StrayEndTag, end, b""),
        _ if step.window.is_last && root_end.starts_with(rest) => close_truncated_root(step),
        // Blanks after stray text stay.
        Lexeme::Text => step.change(RepairId::UnexpectedContent, end - trailing_blanks(text), b""),
        _ => step.change(RepairId::UnexpectedContent, end, b""),
    }
}

/// Closes the root if the input ends inside its end tag.
fn close_truncated_root(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    if let Some(refused) = emit_errors(step) {
        return refused;
    }
    if must_abort(step.response) {
        return abort_list(step.response);
    }
    note_incomplete(step, 0);
    step.response.enter(Stage::Epilog);
    let close = end_tag_of(step.response, b"OAI-PMH");
    step.change(RepairId::UnclosedList, rest.len(), &close)
}

pub(crate) fn is_error(response: &Response, tag: &[u8]) -> bool {
    let open = [b"<", response.root.prefix(), b"error"].concat();
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
pub(crate) fn step_epilog(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let gap = blanks(rest);
    if gap > 0 {
        return step.keep(PartRole::Plain, gap);
    }
    let within = rest.get(..rest.len().min(DROPPED_BYTES)).unwrap_or_default();
    let (lexeme, end) = next_lexeme(within, 0);
    let text = within.get(..end).unwrap_or_default();
    let undecided = matches!(lexeme, Lexeme::OpenComment | Lexeme::OpenTag)
        || end >= rest.len().saturating_sub(1)
        || rest.len() < LEXEME_BYTES;
    if undecided && !step.window.is_last && rest.len() < DROPPED_BYTES {
        return step.need_more();
    }
    match lexeme {
        Lexeme::Comment if is_legal_comment(step.response, text) => step.keep(PartRole::Plain, end),
        Lexeme::Instruction if is_legal_instruction(step.response, text) => step.keep(PartRole::Plain, end),
        _ => {
            if !step.window.is_last && rest.len() < DROPPED_BYTES {
                return step.need_more();
            }
            let junk = rest.get(..rest.len().min(DROPPED_BYTES)).unwrap_or_default();
            step.change(RepairId::TrailingJunk, junk.len(), b"")
        }
    }
}

/// Reports the rest of a truncated response without writing it.
pub(crate) fn step_truncated(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    if !step.window.is_last && rest.len() < DROPPED_BYTES {
        return StepResult::NeedMore;
    }
    step.change(RepairId::TruncatedInput, rest.len().min(DROPPED_BYTES), b"")
}

/// Ends the input and closes the open elements of the envelope if that is allowed.
pub(crate) fn end_input(step: &mut Step<'_, impl Sink>) {
    if step.response.end.refusal().is_some() {
        return;
    }
    match step.response.take_stage() {
        Stage::Prolog => step.response.end.refuse(NotOai::Empty),
        Stage::Head => step.response.end.refuse(NotOai::NothingKept),
        Stage::Errors | Stage::Tail => {
            if emit_errors(step).is_none() {
                close_root(step);
            }
        }
        Stage::List(mut list) => end_input_in_list(step, &mut list),
        Stage::Oversized(list) => {
            end_input_in_oversized(step, &list);
            return end_input(step);
        }
        Stage::Truncated => close_truncated(step),
        Stage::Epilog => note_incomplete(step, 0),
        Stage::Done => {}
    }
    if step.response.end.refusal().is_none() && !step.response.output.is_open() {
        step.response.end.refuse(NotOai::NothingKept);
    }
}

fn close_root(step: &mut Step<'_, impl Sink>) {
    if must_abort(step.response) {
        step.response.end.truncate();
        return;
    }
    note_incomplete(step, 0);
    let close = end_tag_of(step.response, b"OAI-PMH");
    step.insert(PartRole::Plain, RepairId::UnclosedList, 0, &close);
}

/// Ends the input between items. The list is complete if a whole token was read.
fn end_input_in_list(step: &mut Step<'_, impl Sink>, list: &mut List) {
    step.response.end.close_list(list.verb());
    if !list.is_open() || list.verb() == Verb::Identify {
        step.response.refuse(NotOai::NothingKept);
        return;
    }
    // GetRecord allows one record, and that record was read.
    let complete =
        list.token.is_read() || list.verb() == Verb::GetRecord && step.response.output.records() > 0;
    if !complete || step.response.output.is_incomplete() {
        truncate_list(step.response, list);
        if matches!(step.response.stage(), Stage::Truncated) {
            close_truncated(step);
        }
        return;
    }
    if close_list(step, list, b"").is_none() {
        let close = end_tag_of(step.response, list.written_name());
        step.insert(PartRole::List, RepairId::UnclosedList, 0, &close);
        if emit_errors(step).is_none() {
            close_root(step);
        }
    }
}
