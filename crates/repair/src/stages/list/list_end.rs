//! The end of a list: its end tag, its last token, and the error of an empty list.
//!
//! The text between items is checked with it. A list is closed only if no item or token of it follows.

use crate::catalog::{NotOai, RepairId};
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::{blanks, name_span, split_name, trim};
use crate::output::head_buffer::PartRole;
use crate::sink::Sink;
use crate::stages::envelope::{close_tag, end_tag_end, end_tag_of, error_element, misc_len, read_end_tag_of};
use crate::stages::item_search::{contains_any_item, contains_list_item, is_token};
use crate::stages::list::emit::release_list;
use crate::stages::list::incomplete::{INCOMPLETE, must_abort, truncate_list};
use crate::stages::list::list_parts::HeldToken;
use crate::stages::list::state::{EMPTY, List};
use crate::stages::list::token::is_empty_list;
use crate::stages::list::token_element::{token_facts, token_value};
use crate::stages::list::v1_list::end_v1_list;
use crate::stages::response::{ListStepResult, Response, Stage, StepResult};
use crate::stages::second_document::{continue_with_second_list, replace_by_second_document};
use crate::stages::step::Step;
use crate::validate::envelope_names::TagMatch;
use oaimend_oai::Verb;

/// Handles the end tag of the list, or the root's end tag in its place.
pub(crate) fn step_list_end(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    if !step.window.is_last && rest.len() <= step.response.limits().head_bytes_max {
        return ListStepResult::Stay(step.need_more());
    }
    let whole = rest.len() <= step.response.limits().head_bytes_max;
    let rest = rest.get(..rest.len().min(step.response.limits().head_bytes_max)).unwrap_or_default();
    let name_end = 2 + name_span(rest.get(2..).unwrap_or_default());
    let is_root = rest.get(..name_end).is_some_and(|tag| tag.ends_with(b"OAI-PMH"));
    let tag_end = end_tag_end(rest);
    if tag_end == rest.len() && step.window.is_last && whole && !rest.ends_with(b">") {
        return ListStepResult::Leave(close_truncated_end_tag(step, list));
    }
    if list_continues(step.response, list, rest, tag_end, is_root) {
        return ListStepResult::Stay(step.change(RepairId::StrayEndTag, tag_end, b""));
    }
    if let Some(result) = continue_with_second_list(step, list) {
        return ListStepResult::Stay(result);
    }
    if list.dropped.source_aborted() && !list.token.is_read() {
        truncate_list(step.response, list);
        return ListStepResult::Leave(StepResult::Settled(0));
    }
    step.response.end.close_list(list.verb());
    if must_abort(step.response) {
        truncate_list(step.response, list);
        return ListStepResult::Leave(StepResult::Settled(0));
    }
    if let Some(result) = close_list(step, list, rest.get(tag_end..).unwrap_or_default()) {
        return ListStepResult::Leave(result);
    }
    step.response.enter(Stage::Tail);
    if is_root {
        let close = end_tag_of(step.response, list.written_name());
        step.insert(PartRole::List, RepairId::UnclosedList, 0, &close);
        return ListStepResult::Leave(StepResult::Settled(0));
    }
    let names = (list.names.verb.as_slice(), list.written_name());
    let result = close_tag(step, PartRole::List, names, tag_end);
    if step.response.root.is_v1() {
        end_v1_list(step, tag_end);
    }
    ListStepResult::Leave(result)
}

/// Ends the list if the input ends inside its end tag. The list is complete only with a token.
fn close_truncated_end_tag(step: &mut Step<'_, impl Sink>, list: &mut List) -> StepResult {
    let rest = step.window.text;
    step.response.end.close_list(list.verb());
    if !list.token.is_read() {
        truncate_list(step.response, list);
        return StepResult::Settled(0);
    }
    if let Some(result) = close_list(step, list, b"") {
        return result;
    }
    let close = end_tag_of(step.response, list.written_name());
    step.response.enter(Stage::Tail);
    step.replace(PartRole::List, RepairId::UnclosedList, 0..rest.len(), &close);
    StepResult::Settled(rest.len())
}

/// Returns whether an item or a token of this list follows its end tag, or that of the root, in the same
/// document.
///
/// Directly after the tag, white space and comments, a start tag is enough. Further on, the item must also
/// have the start of its content.
fn list_continues(response: &mut Response, list: &List, rest: &[u8], from: usize, is_root: bool) -> bool {
    let after = rest.get(from..).unwrap_or_default();
    let next = after.get(misc_len(after)..).unwrap_or_default();
    if !is_root && is_item_or_token(response, list, next) {
        return true;
    }
    if !response.output.is_open() {
        return false;
    }
    if response.position.base() + from as u64 <= response.position.continues_at() {
        return true;
    }
    let mut at = from;
    let mut lexemes = Lexemes::new(rest);
    while at < rest.len() {
        let (lexeme, end) = lexemes.at(at);
        let text = rest.get(at..).unwrap_or_default();
        let name = text.get(1..1 + name_span(text.get(1..).unwrap_or_default())).unwrap_or_default();
        if lexeme == Lexeme::StartTag {
            let local = split_name(name).1;
            if local == b"OAI-PMH" || response.root.is_v1() && Verb::from_bytes(local).is_some() {
                return false;
            }
            let is_token = list.verb().is_list() && is_token(response, name);
            if is_token || list.names.starts_item(text) == TagMatch::Yes {
                response.position.continue_list_at(at);
                return true;
            }
        }
        at = end;
    }
    false
}

fn is_item_or_token(response: &Response, list: &List, text: &[u8]) -> bool {
    let name = text.get(1..1 + name_span(text.get(1..).unwrap_or_default())).unwrap_or_default();
    text.starts_with(b"<")
        && (name.strip_prefix(response.root.prefix()) == Some(list.names.element.name)
            || list.verb().is_list() && is_token(response, name))
}

/// Ends a complete list: it emits a held token and turns a list without items into an error.
///
/// Returns `Some` if the response is refused. `after` is the text after the list. If items follow, the list
/// was closed too early and is not empty.
pub(crate) fn close_list(
    step: &mut Step<'_, impl Sink>,
    list: &mut List,
    after: &[u8],
) -> Option<StepResult> {
    let held = list.token.held().filter(|element| token_value(element).is_empty());
    if held.is_some_and(|element| is_empty_list(step.response, element)) {
        list.token.note_empty_list();
    }
    let has_token = list.token.is_read() && !list.token.ends_empty_list();
    if !step.response.output.is_open() {
        if has_token {
            release_list(step, list);
        } else if step.response.doubts.has_unknown_code() {
            return Some(step.response.refuse(NotOai::UnknownError));
        } else if step.response.output.lacks_items()
            || list.dropped.is_any() && !step.response.output.contains_error()
            || contains_any_item(step.response, after)
        {
            // The dropped text may contain the reason why the list is empty.
            return Some(step.response.refuse(NotOai::NothingKept));
        } else if ends_without_items(step.response, list) {
            release_list(step, list);
        } else {
            let code = if step.response.output.contains_error() {
                None
            } else {
                Some(list.empty_code(step.response.request.facts()))
            };
            match code {
                None => {}
                Some(None) => return Some(step.response.refuse(NotOai::NothingKept)),
                Some(Some(code)) => {
                    let error = error_element(step.response, code.name(), EMPTY);
                    step.response.output.note_error(code);
                    step.insert(PartRole::Plain, RepairId::EmptyList, 0, &error);
                }
            }
        }
    }
    if let Some(token) = list.token.take_held() {
        let HeldToken { element, total_elements } = token;
        step.insert(PartRole::Plain, RepairId::ElementOrder, 0, &element);
        step.output().token(&token_facts(&element, &token_value(&element), total_elements));
    }
    if lacks_token(step.response, list, after)
        && !step.response.is_off(RepairId::TokenInRequest)
        && let Some(token) = step.response.request.take_next_token()
    {
        let prefix = step.response.written_prefix();
        let close = end_tag_of(step.response, b"resumptionToken");
        let token = [b"<", prefix, b"resumptionToken>", token.as_slice(), close.as_slice()].concat();
        step.insert(PartRole::Plain, RepairId::TokenInRequest, 0, &token);
        step.output().token(&token_facts(&token, &token_value(&token), None));
        list.token.note_read();
    }
    if is_last_token_missing(step.response, list, after) {
        let token = [b"<", step.response.written_prefix(), b"resumptionToken/>"].concat();
        step.insert(PartRole::Plain, RepairId::MissingLastToken, 0, &token);
        step.output().token(&token_facts(&token, b"", None));
    }
    None
}

/// Returns whether a list without items is the last page of a list: it was requested by a token.
fn ends_without_items(response: &Response, list: &List) -> bool {
    list.verb().is_list()
        && response.request.facts().resumes
        && !response.output.contains_error()
        && !response.is_off(RepairId::MissingLastToken)
}

/// Returns whether the last page of a resumed list lacks its empty token.
fn is_last_token_missing(response: &Response, list: &List, after: &[u8]) -> bool {
    response.request.facts().resumes
        && lacks_token(response, list, after)
        && !response.is_off(RepairId::MissingLastToken)
}

/// Returns whether a list with items ends without a token.
///
/// A list that an earlier pass marked as incomplete does not end here.
fn lacks_token(response: &Response, list: &List, after: &[u8]) -> bool {
    let source_aborted = trim(after).starts_with(INCOMPLETE);
    list.verb().is_list()
        && !list.token.is_read()
        && !source_aborted
        && !response.output.is_incomplete()
        && response.output.is_open()
}

/// Turns the first `end` bytes of the window, a list that contains only white space, into one with an empty token.
fn end_with_token(step: &mut Step<'_, impl Sink>, list: &mut List, end: usize) -> StepResult {
    let open = |local: &[u8]| [b"<", step.response.written_prefix(), local].concat();
    let token = [open(b"resumptionToken").as_slice(), b"/>"].concat();
    list.open([open(list.written_name()).as_slice(), b">"].concat());
    let ended = [list.start_tag(), &token, &end_tag_of(step.response, list.written_name())].concat();
    release_list(step, list);
    step.output().token(&token_facts(&token, b"", None));
    step.change(RepairId::MissingLastToken, end, &ended)
}

/// Turns a list that contains only white space into an error, or into the end of a list that was requested by
/// a token.
pub(crate) fn replace_empty_list(
    step: &mut Step<'_, impl Sink>,
    list: &mut List,
    tag_end: usize,
    is_empty_tag: bool,
) -> Option<ListStepResult> {
    let rest = step.window.text;
    let code = list.empty_code(step.response.request.facts())?;
    let mut end = tag_end;
    if !is_empty_tag {
        let after = rest.get(tag_end..).unwrap_or_default();
        let bytes_max = step.response.limits().head_bytes_max;
        let after = after.get(..after.len().min(bytes_max)).unwrap_or_default();
        let close = read_end_tag_of(step.response, &list.names.verb);
        let inside = blanks(after);
        let next = after.get(inside..).unwrap_or_default();
        if next.len() < close.len()
            && !step.window.is_last
            && close.starts_with(next)
            && after.len() < bytes_max
        {
            return Some(ListStepResult::Stay(step.need_more()));
        }
        if !next.starts_with(&close) {
            return None;
        }
        end = tag_end + inside + close.len();
    }
    let bytes_max = step.response.limits().head_bytes_max;
    if !step.window.is_last && rest.len() <= bytes_max {
        return Some(ListStepResult::Stay(step.need_more()));
    }
    step.response.end.close_list(list.verb());
    let after = rest.get(end..rest.len().min(bytes_max)).unwrap_or_default();
    if !contains_list_item(step.response, after)
        && let Some(result) = replace_by_second_document(step)
    {
        return Some(ListStepResult::Leave(result));
    }
    if contains_any_item(step.response, after) {
        // The list was closed before its items, so it is not empty.
        return Some(ListStepResult::Leave(step.response.refuse(NotOai::NothingKept)));
    }
    step.response.enter(Stage::Tail);
    if step.response.output.contains_error() {
        return Some(ListStepResult::Leave(step.change(RepairId::EmptyList, end, b"")));
    }
    if ends_without_items(step.response, list) {
        return Some(ListStepResult::Leave(end_with_token(step, list, end)));
    }
    let error = error_element(step.response, code.name(), EMPTY);
    step.response.output.note_error(code);
    Some(ListStepResult::Leave(step.change(RepairId::EmptyList, end, &error)))
}
