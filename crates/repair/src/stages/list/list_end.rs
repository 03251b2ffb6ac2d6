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
use crate::stages::list::state::{EMPTY, List};
use crate::stages::list::token_element::{token_facts, token_value};
use crate::stages::list::v1_list::end_v1_list;
use crate::stages::response::{ListStep, Response, Stage, Step};
use crate::stages::second_document::{continue_with_second_list, replace_by_second_document};
use crate::validate::envelope_names::TagMatch;
use oaimend_oai::Verb;

/// Handles the end tag of the list, or the root's end tag in its place.
pub(crate) fn step_list_end(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    last: bool,
    sink: &mut impl Sink,
) -> ListStep {
    if !last && rest.len() <= response.limits().head_bytes_max {
        return ListStep::Stay(response.need_more(rest));
    }
    let whole = rest.len() <= response.limits().head_bytes_max;
    let rest = rest.get(..rest.len().min(response.limits().head_bytes_max)).unwrap_or_default();
    let name_end = 2 + name_span(rest.get(2..).unwrap_or_default());
    let is_root = rest.get(..name_end).is_some_and(|tag| tag.ends_with(b"OAI-PMH"));
    let tag_end = end_tag_end(rest);
    if tag_end == rest.len() && last && whole && !rest.ends_with(b">") {
        return ListStep::Leave(close_truncated_end_tag(response, list, rest, sink));
    }
    if list_continues(response, list, rest, tag_end, is_root) {
        return ListStep::Stay(response.change(RepairId::StrayEndTag, rest, tag_end, b"", sink));
    }
    if let Some(step) = continue_with_second_list(response, list, rest, sink) {
        return ListStep::Stay(step);
    }
    if list.source_aborted && !list.token_seen {
        truncate_list(response, list);
        return ListStep::Leave(Step::Settled(0));
    }
    response.verb = Some(list.verb);
    if must_abort(response) {
        truncate_list(response, list);
        return ListStep::Leave(Step::Settled(0));
    }
    if let Some(step) = close_list(response, list, rest.get(tag_end..).unwrap_or_default(), sink) {
        return ListStep::Leave(step);
    }
    response.stage = Stage::Tail;
    if is_root {
        let close = end_tag_of(response, list.written_name());
        response.output.change(PartRole::List, RepairId::UnclosedList, response.base, b"", &close, sink);
        return ListStep::Leave(Step::Settled(0));
    }
    let names = (list.names.verb.as_slice(), list.written_name());
    let step = close_tag(response, PartRole::List, names, rest, tag_end, sink);
    if response.v1.is_some() {
        end_v1_list(response, tag_end, sink);
    }
    ListStep::Leave(step)
}

/// Ends the list if the input ends inside its end tag. The list is complete only with a token.
fn close_truncated_end_tag(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    sink: &mut impl Sink,
) -> Step {
    response.verb = Some(list.verb);
    if !list.token_seen {
        truncate_list(response, list);
        return Step::Settled(0);
    }
    if let Some(step) = close_list(response, list, b"", sink) {
        return step;
    }
    let close = end_tag_of(response, list.written_name());
    response.stage = Stage::Tail;
    response.output.change(PartRole::List, RepairId::UnclosedList, response.base, rest, &close, sink);
    Step::Settled(rest.len())
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
    if response.base + from as u64 <= response.continues_at {
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
            if local == b"OAI-PMH" || response.v1.is_some() && Verb::from_name(local).is_some() {
                return false;
            }
            let is_token = list.verb.is_list() && is_token(response, name);
            if is_token || list.names.starts_item(text) == TagMatch::Yes {
                response.continues_at = response.base + at as u64;
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
        && (name.strip_prefix(response.prefix.as_slice()) == Some(list.names.element.name)
            || list.verb.is_list() && is_token(response, name))
}

/// Ends a complete list: it emits a held token and turns a list without items into an error.
///
/// Returns `Some` if the response is refused. `after` is the text after the list. If items follow, the list
/// was closed too early and is not empty.
pub(crate) fn close_list(
    response: &mut Response,
    list: &mut List,
    after: &[u8],
    sink: &mut impl Sink,
) -> Option<Step> {
    let has_token = list.token_seen && !list.is_empty;
    if !response.output.is_open() {
        if has_token {
            release_list(response, list, sink);
        } else if response.unknown_error {
            return Some(response.refuse(NotOai::UnknownError));
        } else if response.output.quarantined > 0
            || response.output.lost > 0
            || list.dropped && !response.output.contains_error()
            || contains_any_item(response, after)
        {
            // The dropped text may contain the reason why the list is empty.
            return Some(response.refuse(NotOai::NothingKept));
        } else if ends_without_items(response, list) {
            release_list(response, list, sink);
        } else {
            let code = if response.output.contains_error() {
                None
            } else {
                Some(list.empty_code(&response.request_facts))
            };
            match code {
                None => {}
                Some(None) => return Some(response.refuse(NotOai::NothingKept)),
                Some(Some(code)) => {
                    let error = error_element(response, code.name(), EMPTY);
                    response.output.note_error(code);
                    response.output.change(
                        PartRole::Plain,
                        RepairId::EmptyList,
                        response.base,
                        b"",
                        &error,
                        sink,
                    );
                }
            }
        }
    }
    if let Some(token) = list.token.take() {
        response.output.change(PartRole::Plain, RepairId::ElementOrder, response.base, b"", &token, sink);
        response.output.token(&token_facts(&token, &token_value(&token), list.total_elements), sink);
    }
    if lacks_token(response, list, after)
        && !response.is_off(RepairId::TokenInRequest)
        && let Some(token) = response.next_token.take()
    {
        let prefix = response.written_prefix();
        let close = end_tag_of(response, b"resumptionToken");
        let token = [b"<", prefix, b"resumptionToken>", token.as_slice(), close.as_slice()].concat();
        response.output.change(PartRole::Plain, RepairId::TokenInRequest, response.base, b"", &token, sink);
        response.output.token(&token_facts(&token, &token_value(&token), None), sink);
        list.token_seen = true;
    }
    if is_last_token_missing(response, list, after) {
        let token = [b"<", response.written_prefix(), b"resumptionToken/>"].concat();
        response.output.change(PartRole::Plain, RepairId::MissingLastToken, response.base, b"", &token, sink);
        response.output.token(&token_facts(&token, b"", None), sink);
    }
    None
}

/// Returns whether a list without items is the last page of a list: it was requested by a token.
fn ends_without_items(response: &Response, list: &List) -> bool {
    list.verb.is_list()
        && response.request_facts.resumes
        && !response.output.contains_error()
        && !response.is_off(RepairId::MissingLastToken)
}

/// Returns whether the last page of a resumed list lacks its empty token.
fn is_last_token_missing(response: &Response, list: &List, after: &[u8]) -> bool {
    response.request_facts.resumes
        && lacks_token(response, list, after)
        && !response.is_off(RepairId::MissingLastToken)
}

/// Returns whether a list with items ends without a token.
///
/// A list that an earlier pass marked as incomplete does not end here.
fn lacks_token(response: &Response, list: &List, after: &[u8]) -> bool {
    let source_aborted = trim(after).starts_with(INCOMPLETE);
    list.verb.is_list()
        && !list.token_seen
        && !source_aborted
        && !response.output.incomplete
        && response.output.is_open()
}

/// Turns the first `end` bytes of `rest`, a list that contains only white space, into one with an empty token.
fn end_with_token(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    end: usize,
    sink: &mut impl Sink,
) -> Step {
    let open = |local: &[u8]| [b"<", response.written_prefix(), local].concat();
    let token = [open(b"resumptionToken").as_slice(), b"/>"].concat();
    list.start_tag = [open(list.written_name()).as_slice(), b">"].concat();
    let ended = [list.start_tag.as_slice(), &token, &end_tag_of(response, list.written_name())].concat();
    release_list(response, list, sink);
    response.output.token(&token_facts(&token, b"", None), sink);
    response.change(RepairId::MissingLastToken, rest, end, &ended, sink)
}

/// Turns a list that contains only white space into an error, or into the end of a list that was requested by
/// a token.
pub(crate) fn replace_empty_list(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    tag_end: usize,
    is_empty_tag: bool,
    last: bool,
    sink: &mut impl Sink,
) -> Option<ListStep> {
    let code = list.empty_code(&response.request_facts)?;
    let mut end = tag_end;
    if !is_empty_tag {
        let after = rest.get(tag_end..).unwrap_or_default();
        let bytes_max = response.limits().head_bytes_max;
        let after = after.get(..after.len().min(bytes_max)).unwrap_or_default();
        let close = read_end_tag_of(response, &list.names.verb);
        let inside = blanks(after);
        let next = after.get(inside..).unwrap_or_default();
        if next.len() < close.len() && !last && close.starts_with(next) && after.len() < bytes_max {
            return Some(ListStep::Stay(response.need_more(rest)));
        }
        if !next.starts_with(&close) {
            return None;
        }
        end = tag_end + inside + close.len();
    }
    let bytes_max = response.limits().head_bytes_max;
    if !last && rest.len() <= bytes_max {
        return Some(ListStep::Stay(response.need_more(rest)));
    }
    response.verb = Some(list.verb);
    let after = rest.get(end..rest.len().min(bytes_max)).unwrap_or_default();
    if !contains_list_item(response, after)
        && let Some(step) = replace_by_second_document(response, rest, sink)
    {
        return Some(ListStep::Leave(step));
    }
    if contains_any_item(response, after) {
        // The list was closed before its items, so it is not empty.
        return Some(ListStep::Leave(response.refuse(NotOai::NothingKept)));
    }
    response.stage = Stage::Tail;
    if response.output.contains_error() {
        return Some(ListStep::Leave(response.change(RepairId::EmptyList, rest, end, b"", sink)));
    }
    if ends_without_items(response, list) {
        return Some(ListStep::Leave(end_with_token(response, list, rest, end, sink)));
    }
    let error = error_element(response, code.name(), EMPTY);
    response.output.note_error(code);
    Some(ListStep::Leave(response.change(RepairId::EmptyList, rest, end, &error, sink)))
}
