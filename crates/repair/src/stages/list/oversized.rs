//! The stage of an oversized item: longer than `record_bytes_max`, and emitted in parts while it is clean.
//!
//! Written bytes cannot change any more. Therefore only repairs of certainty *exact* are made, and any
//! other defect gives up the list.
//!
//! Oversized items get no provenance. If provenance is configured, no repair changes their content either.

use crate::catalog::{Certainty, Effect, RepairId};
use crate::lex::names::REFERENCE_BYTES_MAX;
use crate::output::head_buffer::PartRole;
use crate::sink::{ItemSpans, RecordFacts, Repair, Sink};
use crate::stages::item_search::new_list;
use crate::stages::list::emit::{ReceivedItem, abandon_list, release_list, report_swallowed};
use crate::stages::list::incomplete::truncate_list;
use crate::stages::list::state::List;
use crate::stages::response::{ListStepResult, Response, Stage, StepResult};
use crate::stages::step::Step;
use crate::text::characters::{exact_repair, repair_node};
use crate::text::node_rules::NodeKind;
use crate::validate::state::{Validation, Validator};
use crate::validate::validator_oversized;

/// Begins to emit an item that is clean so far and too long to be held.
pub(crate) fn begin_oversized(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    if list.token.is_written() {
        // No item is allowed after the token, and this item is too long for the quarantine.
        step.response.output.count_lost();
        abandon_list(step.response, list);
        return ListStepResult::Leave(StepResult::Settled(0));
    }
    report_swallowed(step, list, ReceivedItem::new(rest, 0..list.validator.at));
    release_list(step, list);
    let clean = validator_oversized::clean_bytes(&list.validator, rest);
    validator_oversized::drop_emitted(&mut list.validator, rest, clean);
    list.item.set_offset(step.response.position.base());
    let placeholder = new_list(step.response, list.verb());
    step.response.enter(Stage::Oversized(Box::new(placeholder)));
    ListStepResult::Leave(step.keep(PartRole::Plain, clean))
}

/// Continues in the item.
pub(crate) fn step_oversized(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let Stage::Oversized(mut list) = step.response.take_stage() else {
        return StepResult::Settled(rest.len());
    };
    list.validator.new_window(0);
    list.validator.window_offset = step.response.position.base();
    let (tags, limits) = step.response.tags_and_limits();
    let verdict = validator_oversized::continue_oversized(&mut list.validator, step.window, tags, limits);
    match verdict {
        Validation::Clean(len) => {
            list.item.end();
            validator_oversized::keep_facts(&mut list.validator, rest);
            let facts = RecordFacts {
                identifier: &list.validator.dropped_identifier,
                datestamp: &list.validator.dropped_datestamp,
                deleted: list.validator.facts.deleted,
                offset: list.item.offset(),
                repairs: 0,
                tilde_in_set: false,
                spans: ItemSpans::default(),
            };
            step.output().report_item(&facts, b"");
            step.response.enter(Stage::List(list));
            step.keep(PartRole::Plain, len)
        }
        Validation::NeedMore => {
            let clean = validator_oversized::clean_bytes(&list.validator, rest);
            if validator_oversized::has_early_defect(&list.validator, rest) {
                return abandon_item(step, &list, clean);
            }
            validator_oversized::drop_emitted(&mut list.validator, rest, clean);
            step.response.enter(Stage::Oversized(list));
            if clean == 0 { StepResult::NeedMore } else { step.keep(PartRole::Plain, clean) }
        }
        Validation::Defect(defect) => {
            let at = defect.at.min(rest.len());
            let broken = rest.get(at..).unwrap_or_default();
            // A character or a reference must be complete. A tag always is.
            let is_tag = matches!(broken.first(), Some(b'<' | b'>'));
            if broken.len() < REFERENCE_BYTES_MAX && !is_tag && !step.window.is_last {
                step.response.enter(Stage::Oversized(list));
                return StepResult::NeedMore;
            }
            match exact_repair_at(step.response, &list.validator, rest, at) {
                Some((len, id, replacement)) => {
                    validator_oversized::skip_repaired(&mut list.validator, rest, at + len);
                    step.keep(PartRole::Plain, at);
                    let original = broken.get(..len).unwrap_or_default();
                    let identifier = list.validator.dropped_identifier.as_slice();
                    let record = (!identifier.is_empty()).then_some(identifier);
                    let offset = step.response.position.base() + at as u64;
                    let repair = Repair { id, offset, record, original, replacement: &replacement };
                    step.output().report(&repair);
                    step.response.enter(Stage::Oversized(list));
                    StepResult::Settled(at + len)
                }
                None => {
                    let at = validator_oversized::cut_at(&list.validator, rest, at);
                    abandon_item(step, &list, at)
                }
            }
        }
        Validation::TooLong => abandon_item(step, &list, 0),
    }
}

/// Returns the repair of the defect at `at`, if it is allowed in an oversized item.
fn exact_repair_at(
    response: &Response,
    validator: &Validator,
    rest: &[u8],
    at: usize,
) -> Option<(usize, RepairId, Vec<u8>)> {
    if !validator_oversized::may_contain_text(validator, rest, at) {
        return None;
    }
    let broken = rest.get(at..)?;
    // An incomplete tag must not be emitted. All its defects are repaired, or none.
    let tag = rest.get(at..at.max(validator_oversized::tag_end(validator, at)))?;
    let may_alter = response.config().provenance.is_none();
    let is_sure = |id: RepairId| {
        let needs_no_provenance = may_alter || id.effect() == Effect::Form;
        id.certainty() == Certainty::Exact && needs_no_provenance && !response.is_off(id)
    };
    if !repair_node(tag, NodeKind::Verbatim, &[]).iter().all(|edit| is_sure(edit.id)) {
        return None;
    }
    let node = validator_oversized::node_at(validator, at);
    let reading = validator_oversized::reading_at(validator, rest, at);
    let (len, id, mut replacement) = exact_repair(broken, node, reading)?;
    // The bytes around a deleted character must not form a mark. The last byte emitted before never begins
    // one.
    if replacement.is_empty() && rest.get(..at)?.last() == Some(&validator_oversized::mark_byte(validator)) {
        replacement.push(b' ');
    }
    is_sure(id).then_some((len, id, replacement))
}

/// Gives up the item and the rest of the list.
fn abandon_item(step: &mut Step<'_, impl Sink>, list: &List, at: usize) -> StepResult {
    step.response.output.count_lost();
    close_open_elements(step, list, at);
    abandon_list(step.response, list);
    StepResult::Settled(at)
}

fn close_open_elements(step: &mut Step<'_, impl Sink>, list: &List, at: usize) {
    let rest = step.window.text;
    step.keep(PartRole::Plain, at);
    if step.response.config().ending == crate::config::Ending::Close {
        let closing = validator_oversized::closing_tags(&list.validator, rest.get(..at).unwrap_or_default());
        step.insert(PartRole::Plain, RepairId::TruncatedInput, at, &closing);
    }
}

/// Ends the input inside an oversized item.
pub(crate) fn end_input_in_oversized(step: &mut Step<'_, impl Sink>, list: &List) {
    step.response.output.count_lost();
    close_open_elements(step, list, 0);
    truncate_list(step.response, list);
}
