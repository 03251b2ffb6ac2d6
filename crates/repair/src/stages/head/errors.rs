//! The stage of error elements. They are held until it is certain that no list follows.

use crate::catalog::{NotOai, RepairId};
use crate::lex::lexeme::{Lexeme, next_lexeme};
use crate::lex::names::blanks;
use crate::lex::window::TextWindow;
use crate::output::head_buffer::PartRole;
use crate::sink::Sink;
use crate::stages::envelope::{end_tag_end, is_legal_comment, is_legal_instruction};
use crate::stages::head::error_element::{emit_errors, find_error_end_tag, repair_error};
use crate::stages::head::head_stage::emit_misc;
use crate::stages::head::top_level_tag::find_top_level_tag;
use crate::stages::head::verb_element::{misnamed_verb_element, verb_element};
use crate::stages::item_search::{contains_any_item, new_list};
use crate::stages::response::{Response, Stage, StepResult, TopLevelTag};
use crate::stages::second_document::{replace_by_second_document, second_document_window};
use crate::stages::step::Step;

/// Reads the errors after the head, and the text after them.
pub(crate) fn step_errors(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    if step.response.output.held_bytes() > step.response.limits().head_bytes_max {
        return step.response.refuse(NotOai::BrokenEnvelope);
    }
    let (within, bounded) = head_window(step.response, rest);
    let window = TextWindow::new(within, step.window.is_last || bounded);
    let found = find_top_level_tag(step.response, window);
    let (at, top_level_tag) = match misnamed_verb_element(step.response, window, found, |response, _| {
        response.request.facts().verb
    }) {
        Ok(Some(found)) => found,
        Ok(None) if step.window.is_last && !bounded => return end_input_after_errors(step),
        _ => return head_need_more(step.response, rest),
    };
    if at > 0 {
        return emit_misc(step, at);
    }
    match top_level_tag {
        TopLevelTag::Error => step_error(step),
        TopLevelTag::Verb(named) => match verb_element(step.response, window, at, named) {
            Ok(verb) => {
                step.response.enter(Stage::List(Box::new(new_list(step.response, verb))));
                StepResult::Settled(0)
            }
            Err(()) => head_need_more(step.response, rest),
        },
        TopLevelTag::RootEnd => {
            if !step.window.is_last && rest.len() <= step.response.limits().head_bytes_max {
                // A second document with the list can follow.
                return head_need_more(step.response, rest);
            }
            end_root_after_errors(step)
        }
    }
}

/// Returns the text that can be held here, and whether there is more.
fn head_window<'t>(response: &Response, rest: &'t [u8]) -> (&'t [u8], bool) {
    let bytes_max = response.limits().head_bytes_max + response.limits().tag_bytes_max;
    (rest.get(..bytes_max).unwrap_or(rest), rest.len() > bytes_max)
}

fn head_need_more(response: &mut Response, rest: &[u8]) -> StepResult {
    let (_, bounded) = head_window(response, rest);
    if bounded { response.refuse(NotOai::BrokenEnvelope) } else { response.need_more(rest) }
}

/// Reads one error element.
fn step_error(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let tag_end = match step.response.tag_end(step.window) {
        Err(result) => return result,
        Ok(None) => return step.response.refuse(NotOai::BrokenEnvelope),
        Ok(Some(end)) => end,
    };
    let (within, bounded) = head_window(step.response, rest);
    let empty = rest.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>"));
    let end = if empty {
        Some(tag_end)
    } else {
        find_error_end_tag(step.response, TextWindow::new(within, step.window.is_last || bounded), tag_end)
            .and_then(|(_, end)| end)
    };
    let Some(end) = end else {
        let over = step.window.is_last && !bounded;
        return if over {
            step.response.refuse(NotOai::NothingKept)
        } else {
            head_need_more(step.response, rest)
        };
    };
    let Some(edits) = repair_error(step.response, rest.get(..end).unwrap_or_default()) else {
        // Unless a list with items follows, this response is a failed source.
        step.response.doubts.note_unknown_code();
        step.replace(PartRole::Error, RepairId::ErrorBesideItems, 0..end, b"");
        return StepResult::Settled(end);
    };
    step.keep_edited(PartRole::Error, end, &edits)
}

/// Ends the root after errors, which are then the response.
fn end_root_after_errors(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    if let Some(result) = replace_by_second_document(step) {
        return result;
    }
    let after = second_document_window(step.response, rest);
    let after = after.get(end_tag_end(after)..).unwrap_or_default();
    let junk = after.get(misc_len_after_root(step.response, after)..).unwrap_or_default();
    step.response.doubts.note_dropped(contains_any_item(step.response, junk));
    if let Some(refused) = emit_errors(step) {
        return refused;
    }
    step.response.enter(Stage::Tail);
    StepResult::Settled(0)
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
fn end_input_after_errors(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let result = emit_misc(step, rest.len());
    step.response.enter(Stage::Tail);
    emit_errors(step).unwrap_or(result)
}
