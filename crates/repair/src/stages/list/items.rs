//! The items of a list: clean ones are emitted, broken ones are repaired or quarantined.
//!
//! The stage of the list calls it at each item.

use crate::boundary::boundary_search::BoundarySearch;
use crate::boundary::open_elements::Evidence;
use crate::boundary::record_boundary::{RecordBoundary, parent_name};
use crate::boundary::swallowed::find_identifier;
use crate::boundary::usual_end::may_end_usually;
use crate::catalog::{NotOai, QuarantineReason, RepairId};
use crate::lex::lexeme::{COMMENT, is_good_comment};
use crate::lex::names::blanks;
use crate::lex::search::memrchr;
use crate::repair_item::{KnownStart, RepairedItem, repair_item};
use crate::repair_nodes::{Unrepaired, local_defect, repair_nodes};
use crate::sink::{RecordFacts, Sink};
use crate::stages::item_search::is_item;
use crate::stages::list::emit::{
    ReceivedItem, abandon_list, emit, loses_item, quarantine_item, quarantine_span, report_swallowed,
    spans_of,
};
use crate::stages::list::incomplete::truncate_list;
use crate::stages::list::one_record::{MayEmit, may_emit};
use crate::stages::list::oversized::begin_oversized;
use crate::stages::list::state::List;
use crate::stages::list::v1_list::upgrade_clean_item;
use crate::stages::response::{ListStepResult, Response, Stage, StepResult};
use crate::stages::step::Step;
use crate::text::characters::guess_characters;
use crate::text::node_rules::Guesses;
use crate::validate::envelope_names::{EnvelopeNames, TagMatch};
use crate::validate::facts::ItemFacts;
use crate::validate::state::Validation;
use crate::validate::validator_oversized;
use oaimend_oai::Verb;

/// Reads items one after the other while they are clean.
pub(crate) fn step_items(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    list.validator.new_window(0);
    list.validator.window_offset = step.response.position.base();
    let mut at = 0;
    // Everything before `at` is read. Everything before `written` is written.
    let mut written = 0;
    loop {
        let (tags, limits) = step.response.tags_and_limits();
        match list.validator.validate(step.window.item_at(at), tags, limits) {
            Validation::Clean(len) => {
                let item = ReceivedItem::new(rest, at..at + len);
                if needs_slow_path(step.response, list)
                    || !step.response.has_granularity_of(item.raw, &list.validator.facts)
                {
                    step.flush(&mut written, at);
                    let identifier = list.validator.facts.identifier.slice(item.raw);
                    match may_emit(step, list, identifier, item) {
                        MayEmit::Yes => {
                            report_swallowed(step, list, item);
                            emit_clean_slowly(step, list, item);
                        }
                        MayEmit::No => {}
                        MayEmit::NeedMore => {
                            list.validator.next_item(0);
                            return ListStepResult::Stay(if at > 0 {
                                StepResult::Settled(at)
                            } else {
                                step.need_more()
                            });
                        }
                    }
                    written = at + len;
                } else {
                    report_swallowed(step, list, item);
                    emit_clean(step, item, &list.validator.facts);
                }
                at += len;
                list.item.end();
                let next = at + blanks(rest.get(at..).unwrap_or_default());
                let is_list = list.verb() != Verb::Identify && list.verb() != Verb::GetRecord;
                let may_continue = is_list && step.response.output.is_open();
                if may_continue && is_item(step.response, list, rest.get(next..).unwrap_or_default()) {
                    at = next;
                    list.item.begin();
                    step.response.tags_mut().tidy();
                    list.validator.next_item(at);
                    continue;
                }
                step.flush(&mut written, at);
                return finish_item(step.response, list, at);
            }
            other => {
                step.flush(&mut written, at);
                let result = if at > 0 { StepResult::Settled(at) } else { StepResult::NeedMore };
                return match other {
                    Validation::NeedMore => ListStepResult::Stay(result),
                    Validation::TooLong if at == 0 && list.verb() == Verb::Identify => {
                        ListStepResult::Leave(step.response.refuse(NotOai::BrokenEnvelope))
                    }
                    Validation::TooLong if at == 0 && may_hold_boundary(step.response, list, rest) => {
                        search_boundary(step.response, list, 0);
                        step_broken_item(step, list)
                    }
                    Validation::TooLong if at == 0 => begin_oversized(step, list),
                    Validation::Defect(defect) => {
                        search_boundary(step.response, list, at);
                        list.item.set_defect(defect);
                        if at == 0 { step_broken_item(step, list) } else { ListStepResult::Stay(result) }
                    }
                    _ => ListStepResult::Stay(result),
                };
            }
        }
    }
}

/// Starts the search for the end of the broken item at `at`.
fn search_boundary(response: &mut Response, list: &mut List, at: usize) {
    let (base, lookahead) = (response.position.base() + at as u64, response.take_lookahead());
    let search = match list.validator.common_payload_at() {
        Some(payload_at) if may_end_usually(&list.names) => {
            BoundarySearch::new_in_payload(base, lookahead, payload_at)
        }
        _ => BoundarySearch::new(base, lookahead),
    };
    list.item.begin_search(search);
}

/// Returns whether an item is oversized because a section in it or its header never ends.
///
/// Such an item cannot be closed, so its output must not begin.
fn may_hold_boundary(response: &Response, list: &List, rest: &[u8]) -> bool {
    // An item that is changed at its end cannot be emitted before the end is read.
    if !list.validator.in_payload() || list.names.is_rewritten() {
        return true;
    }
    let held = rest.get(..rest.len().min(response.limits().record_bytes_max)).unwrap_or_default();
    validator_oversized::section_may_contain_boundary(&list.validator, held)
}

fn finish_item(response: &mut Response, list: &mut List, at: usize) -> ListStepResult {
    if list.verb() == Verb::Identify {
        response.end.close_list(list.verb());
        if !response.output.is_open() {
            // Identify is the response itself, and it went to quarantine.
            return ListStepResult::Leave(response.refuse(NotOai::NothingKept));
        }
        response.enter(Stage::Tail);
        return ListStepResult::Leave(StepResult::Settled(at));
    }
    ListStepResult::Stay(StepResult::Settled(at))
}

/// Returns whether a clean item needs the slow path.
///
/// This is so for the first item, for a possible duplicate, and for all items of a list that is rewritten.
#[inline]
fn needs_slow_path(response: &Response, list: &List) -> bool {
    !response.output.is_open()
        || response.position.in_second_document()
        || list.token.is_written()
        || list.is_slow()
        || list.tear().is_some()
}

#[inline]
fn emit_clean(step: &mut Step<'_, impl Sink>, item: ReceivedItem<'_>, facts: &ItemFacts) {
    let raw = item.raw;
    let facts = RecordFacts {
        identifier: facts.identifier.slice(raw),
        datestamp: facts.datestamp.slice(raw),
        deleted: facts.deleted,
        offset: step.response.position.base() + item.at as u64,
        repairs: 0,
        tilde_in_set: facts.tilde_in_set,
        spans: spans_of(facts),
    };
    step.response.output.note_emitted(facts.identifier, facts.datestamp);
    step.output().report_item(&facts, raw);
}

/// Emits a clean item over the slow path: see [`needs_slow_path`]. It also handles items that contradict
/// the facts of the repository.
fn emit_clean_slowly(step: &mut Step<'_, impl Sink>, list: &List, item: ReceivedItem<'_>) {
    if list.names.v2_element.is_some() {
        return upgrade_clean_item(step, list, item);
    }
    if list.names.is_rewritten() {
        match step.response.repair_item(item.raw, list.item_envelope()) {
            Ok(repaired) => emit(step, list, item, &repaired),
            Err(why) => quarantine_item(step, list, item, why),
        }
        return;
    }
    let facts = list.validator.facts.clone();
    if list.verb() == Verb::Identify || !step.response.has_granularity_of(item.raw, &facts) {
        let repaired = step.response.repair_item(item.raw, list.item_envelope());
        // The item is valid as received. If its repair exceeds a limit, it stays unchanged.
        let repaired = repaired.unwrap_or_else(|_| RepairedItem::unchanged(item.raw, facts));
        return emit(step, list, item, &repaired);
    }
    let guesses = Guesses::enabled_by(step.response.config().enabled);
    if guesses.any() && !guess_characters(item.raw, guesses, step.response.limits()).is_empty() {
        let repaired = step.response.repair_item(item.raw, list.item_envelope());
        let repaired = repaired.unwrap_or_else(|_| RepairedItem::unchanged(item.raw, facts));
        return emit(step, list, item, &repaired);
    }
    emit(step, list, item, &RepairedItem::unchanged(item.raw, facts));
}

/// Finds the end of a broken item, and repairs or quarantines it.
pub(crate) fn step_broken_item(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    let bytes_max = step.response.limits().record_bytes_max;
    let Some(search) = list.item.search_mut() else { return ListStepResult::Stay(StepResult::Settled(0)) };
    let boundary = match search.find(step.window, &list.names, bytes_max) {
        RecordBoundary::At(end) => RecordBoundary::At(end_before_comments(rest, end, &list.names)),
        other => other,
    };
    let allows_second_search = search.allows_second_search();
    if boundary == RecordBoundary::NeedMore {
        return ListStepResult::Stay(StepResult::NeedMore);
    }
    let mut repaired = repair_broken_item(step.response, list, rest, boundary);
    if allows_second_search
        && !repaired.as_ref().is_some_and(|repaired| repaired.as_ref().is_ok_and(|m| !m.markup))
    {
        // A section with a boundary in it was read as content, but the result is invalid. So the section
        // was never closed.
        list.item.search_again();
        return step_broken_item(step, list);
    }
    if list.item.search().is_some_and(BoundarySearch::found_torn_section)
        && let Some(Ok(repaired)) = &mut repaired
    {
        repaired.edits.mark_torn_sections();
    }
    let Some(search) = list.item.take_search() else { return ListStepResult::Stay(StepResult::Settled(0)) };
    let inner = match boundary {
        RecordBoundary::At(end) => search.unproven_items(end),
        // The input was cut in the item, and so were the elements around the items in it.
        _ => Vec::new(),
    };
    let tear = search.tear().filter(|&evidence| evidence != Evidence::Field);
    step.response.set_lookahead(search.into_lookahead());
    let (RecordBoundary::At(end), Some(repaired)) = (boundary, repaired) else {
        if boundary == RecordBoundary::InputEnd {
            return ListStepResult::Leave(end_input_in_item(step, list));
        }
        step.response.output.count_lost();
        abandon_list(step.response, list);
        return ListStepResult::Leave(StepResult::Settled(0));
    };
    let item = ReceivedItem::new(rest, 0..end);
    let raw = item.raw;
    match repaired {
        Ok(repaired) if repaired.markup && !inner.is_empty() => {
            list.validator.facts.swallows_items = true;
            report_swallowed(step, list, item);
            quarantine_span(step, list, raw, &inner, QuarantineReason::MismatchedTags);
        }
        Ok(repaired) if loses_item(raw, &repaired, &list.names) => {
            let identifier =
                if list.verb() == Verb::Identify { None } else { find_identifier(raw, &list.names) };
            let offset = step.response.position.base();
            step.output().quarantine_unread(identifier, offset, raw);
        }
        Ok(repaired) => {
            let identifier = repaired.facts.identifier.slice(&repaired.bytes);
            match may_emit(step, list, identifier, item) {
                MayEmit::Yes => {
                    list.validator.facts.swallows_items = repaired.facts.swallows_items;
                    report_swallowed(step, list, item);
                    emit(step, list, item, &repaired);
                }
                MayEmit::No => {}
                MayEmit::NeedMore => {
                    search_boundary(step.response, list, 0);
                    return ListStepResult::Stay(step.need_more());
                }
            }
        }
        Err(why) => {
            list.dropped.set_source_aborted(why == QuarantineReason::Truncated);
            list.validator.facts.swallows_items = true;
            report_swallowed(step, list, item);
            quarantine_span(step, list, raw, &inner, why);
        }
    }
    list.note_tear(tear);
    list.item.end();
    finish_item(step.response, list, end)
}

/// Returns the end of the item whose text with the comments after it ends at `end`. These comments are no part of the item,
/// so they stay whatever is repaired in it.
fn end_before_comments(rest: &[u8], end: usize, names: &EnvelopeNames) -> usize {
    let mut text = rest.get(..end).unwrap_or_default();
    while let Some(before) = text.trim_ascii_end().strip_suffix(b"-->") {
        // One with markup in it stays with the item, because the markup may be torn.
        let start = memrchr(b'<', before).unwrap_or(0);
        let comment = text.get(start..).unwrap_or_default().trim_ascii_end();
        if !comment.starts_with(COMMENT) || !is_good_comment(comment) {
            return end;
        }
        text = text.get(..start).unwrap_or_default();
        if names.ends_with_item(text.trim_ascii_end()) {
            return text.trim_ascii_end().len();
        }
    }
    end
}

/// Repairs the item before the boundary; `None` if there is no boundary.
fn repair_broken_item(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    boundary: RecordBoundary,
) -> Option<Result<RepairedItem, QuarantineReason>> {
    let RecordBoundary::At(end) = boundary else { return None };
    let after = rest.get(end..).unwrap_or_default();
    let before = rest.get(..end).unwrap_or_default();
    let is_torn = list.item.search().is_some_and(|search| search.tear().is_some());
    let has_content = !is_torn || parent_name(before).is_empty();
    let begins_again = list.names.match_tag(after, b"<", b"OAI-PMH") == TagMatch::Yes;
    if !has_content || begins_again && !list.names.ends_with_item(before) {
        // The page begins again, or the item ends at a start tag: the rest of this item is unknown.
        return Some(Err(QuarantineReason::Truncated));
    }
    let (tags, rules) = response.tags_and_rules();
    let raw = rest.get(..end)?;
    // The end of a section may depend on the whole item.
    let is_flat = list.item.search().is_some_and(|search| !search.found_section());
    let defect = list.item.take_defect().filter(|defect| is_flat && defect.at < end);
    let defect = defect.and_then(|defect| local_defect(defect, &list.validator, &rules));
    let Some(defect) = defect else {
        tags.tidy();
        return Some(repair_item(raw, list.item_envelope(), tags, &rules, None));
    };
    let is_at_defect = match repair_nodes(raw, defect, &mut list.validator, tags, &rules) {
        Ok(repaired) => return Some(Ok(repaired)),
        Err(unrepaired) => unrepaired == Unrepaired::AtDefect,
    };
    let is_known = !tags.tidy() && is_at_defect;
    let (envelope, validator) = list.item_envelope_and_validator();
    let known = KnownStart { defect, validator: is_known.then_some(validator) };
    Some(repair_item(raw, envelope, tags, &rules, Some(known)))
}

fn end_input_in_item(step: &mut Step<'_, impl Sink>, list: &mut List) -> StepResult {
    let rest = step.window.text;
    step.response.end.close_list(list.verb());
    if step.response.config().ending == crate::config::Ending::Close {
        quarantine_item(step, list, ReceivedItem { raw: rest, at: 0 }, QuarantineReason::Truncated);
        truncate_list(step.response, list);
        return StepResult::Settled(rest.len());
    }
    let result = step.change(RepairId::TruncatedInput, rest.len(), b"");
    step.response.end.truncate();
    if !step.response.output.is_open() {
        step.response.refuse(NotOai::NothingKept);
    }
    result
}
