//! The stage of error elements. They are held until it is certain that no list follows.

use crate::catalog::{NotOai, RepairId};
use crate::lex::lexeme::{Lexeme, next_lexeme};
use crate::lex::names::blanks;
use crate::output::head_buffer::PartRole;
use crate::sink::Sink;
use crate::stages::envelope::{end_tag_end, is_legal_comment, is_legal_instruction};
use crate::stages::head::error_element::{emit_errors, find_error_end_tag, repair_error};
use crate::stages::head::head_stage::emit_misc;
use crate::stages::head::top_level_tag::find_top_level_tag;
use crate::stages::head::verb_element::{misnamed_verb_element, verb_element};
use crate::stages::item_search::{contains_any_item, new_list};
use crate::stages::response::{Response, Stage, Step, TopLevelTag};
use crate::stages::second_document::{replace_by_second_document, second_document_window};

/// Reads the errors after the head, and the text after them.
pub(crate) fn step_errors(response: &mut Response, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
    if response.output.held_bytes > response.limits().head_bytes_max {
        return response.refuse(NotOai::BrokenEnvelope);
    }
    let (within, bounded) = head_window(response, rest);
    let complete = last || bounded;
    let found = find_top_level_tag(response, within, complete);
    let (at, top_level_tag) = match misnamed_verb_element(response, within, found, complete, |response, _| {
        response.request_facts.verb
    }) {
        Ok(Some(found)) => found,
        Ok(None) if last && !bounded => return end_input_after_errors(response, rest, sink),
        _ => return head_need_more(response, rest),
    };
    if at > 0 {
        return emit_misc(response, rest, at, sink);
    }
    match top_level_tag {
        TopLevelTag::Error => step_error(response, rest, last, sink),
        TopLevelTag::Verb(named) => match verb_element(response, within, at, named, complete) {
            Ok(verb) => {
                response.stage = Stage::List(Box::new(new_list(response, verb)));
                Step::Settled(0)
            }
            Err(()) => head_need_more(response, rest),
        },
        TopLevelTag::RootEnd => {
            if !last && rest.len() <= response.limits().head_bytes_max {
                // A second document with the list can follow.
                return head_need_more(response, rest);
            }
            end_root_after_errors(response, rest, sink)
        }
    }
}

/// Returns the text that can be held here, and whether there is more.
fn head_window<'t>(response: &Response, rest: &'t [u8]) -> (&'t [u8], bool) {
    let bytes_max = response.limits().head_bytes_max + response.limits().tag_bytes_max;
    (rest.get(..bytes_max).unwrap_or(rest), rest.len() > bytes_max)
}

fn head_need_more(response: &mut Response, rest: &[u8]) -> Step {
    let (_, bounded) = head_window(response, rest);
    if bounded { response.refuse(NotOai::BrokenEnvelope) } else { response.need_more(rest) }
}

/// Reads one error element.
fn step_error(response: &mut Response, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
    let tag_end = match response.tag_end(rest, last) {
        Err(step) => return step,
        Ok(None) => return response.refuse(NotOai::BrokenEnvelope),
        Ok(Some(end)) => end,
    };
    let (within, bounded) = head_window(response, rest);
    let empty = rest.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>"));
    let end = if empty {
        Some(tag_end)
    } else {
        find_error_end_tag(response, within, tag_end, last || bounded).and_then(|(_, end)| end)
    };
    let Some(end) = end else {
        let over = last && !bounded;
        return if over { response.refuse(NotOai::NothingKept) } else { head_need_more(response, rest) };
    };
    let Some(edits) = repair_error(response, rest.get(..end).unwrap_or_default()) else {
        // Unless a list with items follows, this response is a failed source.
        response.unknown_error = true;
        let original = rest.get(..end).unwrap_or_default();
        response.output.change(
            PartRole::Error,
            RepairId::ErrorBesideItems,
            response.base,
            original,
            b"",
            sink,
        );
        return Step::Settled(end);
    };
    response.keep_edited(PartRole::Error, rest, end, &edits, sink)
}

/// Ends the root after errors, which are then the response.
fn end_root_after_errors(response: &mut Response, rest: &[u8], sink: &mut impl Sink) -> Step {
    if let Some(step) = replace_by_second_document(response, rest, sink) {
        return step;
    }
    let after = second_document_window(response, rest);
    let after = after.get(end_tag_end(after)..).unwrap_or_default();
    let junk = after.get(misc_len_after_root(response, after)..).unwrap_or_default();
    response.has_items_outside_list |= contains_any_item(response, junk);
    if let Some(refused) = emit_errors(response, sink) {
        return refused;
    }
    response.stage = Stage::Tail;
    Step::Settled(0)
}

/// Returns the length of the white space, comments and instructions after the root.
fn misc_len_after_root(response: &Response, text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += blanks(text.get(at..).unwrap_or_default());
        let (lexeme, end) = next_lexeme(text, at);
        let slice = text.get(at..end).unwrap_or_default();
        let stays = lexeme == Lexeme::Comment && is_legal_comment(response, slice)
            || lexeme == Lexeme::Instruction && is_legal_instruction(response, slice);
        if !stays {
            return at;
        }
        at = end;
    }
}

/// Ends the input after errors.
fn end_input_after_errors(response: &mut Response, rest: &[u8], sink: &mut impl Sink) -> Step {
    let step = emit_misc(response, rest, rest.len(), sink);
    response.stage = Stage::Tail;
    emit_errors(response, sink).unwrap_or(step)
}
