//! The list of a response of OAI-PMH 1.0 or 1.1, which has no verb element.
//!
//! The stage of the list uses it to add the verb element of 2.0 and to convert the items.

use crate::catalog::{NotOai, RepairId};
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::trim;
use crate::output::head_buffer::PartRole;
use crate::repair_item::RepairedItem;
use crate::sink::{Quarantined, Sink};
use crate::stages::envelope::{end_tag_end, end_tag_of, error_element, read_end_tag_of};
use crate::stages::head::error_element::emit_errors;
use crate::stages::head::error_text::code_for_request;
use crate::stages::item_search::{contains_list_item, new_list};
use crate::stages::list::emit::{ReceivedItem, emit, loses_item, quarantine_item};
use crate::stages::list::incomplete::{abort_list, must_abort, note_incomplete};
use crate::stages::list::state::List;
use crate::stages::response::{ListStepResult, Response, Stage, StepResult};
use crate::stages::step::Step;
use crate::text::edits::Edits;
use crate::v1::items::{V1Item, facts_after};
use crate::validate::envelope_names::EnvelopePrefixes;
use oaimend_oai::{ErrorCode, Verb};

/// Opens the verb element of 2.0 at the first item of a list of 1.x, or at its end.
pub(crate) fn open_v1_list(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    if list.verb() == Verb::Identify {
        return ListStepResult::Leave(wrap_v1_identify(step, list));
    }
    let close = [b"</", step.response.root.prefix(), &list.names.verb].concat();
    if rest.starts_with(&close) {
        return replace_empty_v1_list(step, list);
    }
    let bare = [b"<", step.response.root.prefix(), b"identifier"].concat();
    if list.verb() == Verb::ListIdentifiers && rest.starts_with(&bare) {
        // A header of 2.0 requires a datestamp.
        return ListStepResult::Leave(step.response.refuse(NotOai::Version1));
    }
    step.response.tags_mut().keep_contexts();
    let open = [b"<", step.response.written_prefix(), list.written_name(), b">"].concat();
    step.insert(PartRole::List, RepairId::V1Root, 0, &open);
    list.open(open);
    ListStepResult::Stay(StepResult::Settled(0))
}

/// Turns a list of 1.x without items into an error.
fn replace_empty_v1_list(step: &mut Step<'_, impl Sink>, list: &List) -> ListStepResult {
    let rest = step.window.text;
    let end =
        end_tag_end(rest.get(..rest.len().min(step.response.limits().tag_bytes_max)).unwrap_or_default());
    if !rest.get(..end).is_some_and(|tag| tag.ends_with(b">")) {
        let more = !step.window.is_last && end == rest.len();
        return if more {
            ListStepResult::Stay(step.need_more())
        } else {
            ListStepResult::Leave(step.response.refuse(NotOai::NothingKept))
        };
    }
    let dc = step.response.root.v1().is_some_and(|v1| v1.asks_for_dc);
    let (id, code, words) = match list.empty_code(step.response.request.facts()) {
        Some(code) => (RepairId::EmptyList, code, crate::stages::list::state::EMPTY),
        None if dc => (RepairId::V1Empty, ErrorCode::IdDoesNotExist, "There is no such record."),
        None => {
            let words = "There is no such record in this format.";
            (RepairId::V1Empty, ErrorCode::CannotDisseminateFormat, words)
        }
    };
    let code = code_for_request(code, step.response.request.facts());
    if step.response.is_off(id) {
        return ListStepResult::Leave(step.response.refuse(NotOai::NothingKept));
    }
    let bytes_max = step.response.limits().head_bytes_max;
    if !step.window.is_last && rest.len() <= bytes_max {
        return ListStepResult::Stay(step.need_more());
    }
    step.response.end.close_list(list.verb());
    if contains_list_item(step.response, rest.get(end..rest.len().min(bytes_max)).unwrap_or_default()) {
        return ListStepResult::Leave(step.response.refuse(NotOai::NothingKept));
    }
    let error = error_element(step.response, code.name(), words);
    step.response.output.note_error(code);
    let result = step.change(id, end, &error);
    end_v1_list(step, end);
    ListStepResult::Leave(result)
}

/// Ends the root where the list ends, at `ahead` bytes from here.
pub(crate) fn end_v1_list(step: &mut Step<'_, impl Sink>, ahead: usize) {
    let close = end_tag_of(step.response, b"OAI-PMH");
    if emit_errors(step).is_some() {
        return;
    }
    if must_abort(step.response) {
        abort_list(step.response);
        return;
    }
    note_incomplete(step, ahead);
    step.insert(PartRole::Plain, RepairId::V1Root, ahead, &close);
    step.response.enter(Stage::Epilog);
}

/// Adds the Identify element around the content of the root, because 1.x has none.
fn wrap_v1_identify(step: &mut Step<'_, impl Sink>, list: &List) -> StepResult {
    let rest = step.window.text;
    let bytes_max = step.response.limits().record_bytes_max;
    if !step.window.is_last && rest.len() < bytes_max {
        let result = step.need_more();
        step.response.enter(Stage::List(Box::new(new_list(step.response, list.verb()))));
        return result;
    }
    let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
    let Some(end) = find_end_tag(within, &read_end_tag_of(step.response, list.verb().as_bytes())) else {
        return step.response.refuse(NotOai::NothingKept);
    };
    let raw = within.get(..end).unwrap_or_default();
    let open = [b"<", step.response.root.prefix(), list.verb().as_bytes(), b">"].concat();
    let mut added = Edits::default();
    added.push(RepairId::V1Root, 0, 0, &open);
    let text = added.apply(raw);
    match step.response.repair_item(&text, list.item_envelope()) {
        Ok(repaired) if loses_item(&text, &repaired, &list.names) => {
            step.quarantine_unread(raw.len());
            step.response.refuse(NotOai::NothingKept)
        }
        Ok(repaired) => {
            let edits = added.then(&text, repaired.edits.clone());
            emit(step, list, ReceivedItem { raw, at: 0 }, &RepairedItem { edits, ..repaired });
            step.response.end.close_list(list.verb());
            end_v1_list(step, end);
            StepResult::Settled(end)
        }
        Err(why) => {
            let offset = step.response.position.base();
            step.output().quarantine(&Quarantined { identifier: None, offset, raw, why });
            step.response.refuse(NotOai::NothingKept)
        }
    }
}

/// Converts a valid item of 1.x and emits it.
pub(crate) fn upgrade_clean_item(step: &mut Step<'_, impl Sink>, list: &List, item: ReceivedItem<'_>) {
    let received = V1Item { bytes: item.raw, places: &list.validator.v1_positions };
    let repaired = match upgrade_by_known_tags(step.response, list, received) {
        Some(upgraded) => Ok(upgraded),
        None => {
            let repaired = step.response.repair_item(item.raw, list.item_envelope());
            if repaired.is_ok() {
                // The validator has accepted the result of these tags.
                step.response.cache_v1_payloads(received, list.context());
            }
            repaired
        }
    };
    match repaired {
        Ok(repaired) => emit(step, list, item, &repaired),
        Err(why) => quarantine_item(step, list, item, why),
    }
}

/// Converts an item whose payloads begin with tags that were converted before. Returns `None` if it needs the
/// slow path.
fn upgrade_by_known_tags(response: &Response, list: &List, received: V1Item<'_>) -> Option<RepairedItem> {
    let v1 = response.root.v1()?;
    let (config, limits) = (response.config(), response.limits());
    let is_plain = matches!(list.names.element.name, b"record" | b"header" | b"set");
    // The slow path handles repairs that are off and repairs that must be enabled.
    let is_cacheable = is_plain
        && config.off.is_empty()
        && config.enabled.is_empty()
        && response.has_granularity_of(received.bytes, &list.validator.facts)
        && list.names.prefixes == EnvelopePrefixes::Forbidden;
    if !is_cacheable {
        return None;
    }
    let edits = v1.payload_tags.edits_for(received, list.context(), limits)?;
    let facts = facts_after(list.validator.facts.clone(), &edits);
    let upgraded = RepairedItem {
        bytes: edits.apply(received.bytes).into_owned(),
        edits,
        facts,
        markup: false,
        unresolved: Vec::new(),
        source_datestamp: None,
    };
    // If the item exceeds a limit, the validator reports it.
    let is_small = upgraded.edits.len() <= limits.repairs_per_record_max
        && upgraded.bytes.len() <= limits.record_bytes_max;
    is_small.then_some(upgraded)
}

/// Returns the end of the first such end tag outside comments and sections.
fn find_end_tag(text: &[u8], tag: &[u8]) -> Option<usize> {
    let open_tag = tag.get(..tag.len().checked_sub(1)?)?;
    let mut lexemes = Lexemes::new(text);
    let mut at = 0;
    while at < text.len() {
        let (lexeme, end) = lexemes.at(at);
        let found = text.get(at..end)?;
        let after = found.strip_prefix(open_tag).map(trim);
        if lexeme == Lexeme::EndTag && after == Some(b">") {
            return Some(end);
        }
        at = end;
    }
    None
}
