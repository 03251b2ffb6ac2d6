//! The stage of a list: it dispatches between the start tag, items, and the text between items.
//!
//! The engine runs it until the list ends.

use crate::catalog::{NotOai, RepairId};
use crate::lex::names::blanks;
use crate::lex::search::memchr;
use crate::output::head_buffer::PartRole;
use crate::passes::lenient_tag::read_lenient_tag;
use crate::passes::strip_prefix::remove_default_namespace;
use crate::sink::Sink;
use crate::stages::envelope::rename_tag;
use crate::stages::list::inter_item::{remove_stray_text, step_comment, step_end_tag, step_start_tag};
use crate::stages::list::items::{step_broken_item, step_items};
use crate::stages::list::list_end::replace_empty_list;
use crate::stages::list::state::List;
use crate::stages::list::v1_list::open_v1_list;
use crate::stages::response::{ListStepResult, Stage, StepResult};
use crate::stages::step::Step;
use crate::text::edits::Edits;
use crate::validate::envelope_names::EnvelopePrefixes;

pub(crate) fn step_list(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let Stage::List(mut list) = step.response.take_stage() else {
        return StepResult::Settled(rest.len());
    };
    let next = if !list.is_open() && step.response.root.is_v1() {
        open_v1_list(step, &mut list)
    } else if !list.is_open() {
        open_list(step, &mut list)
    } else if list.item.search().is_some() {
        step_broken_item(step, &mut list)
    } else if list.item.is_begun() {
        step_items(step, &mut list)
    } else {
        step_inter_item(step, &mut list)
    };
    match next {
        ListStepResult::Stay(result) => {
            step.response.enter(Stage::List(list));
            result
        }
        ListStepResult::Leave(result) => {
            if matches!(step.response.stage(), Stage::Truncated) {
                step.response.end.close_list(list.verb());
            }
            if matches!(step.response.stage(), Stage::Oversized(_)) {
                step.response.enter(Stage::Oversized(list));
            }
            result
        }
    }
}

/// Reads the start tag of the verb element.
fn open_list(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    let end = match step.response.tag_end(step.window) {
        Err(result) => return ListStepResult::Stay(result),
        Ok(None) => return ListStepResult::Leave(step.response.refuse(NotOai::BrokenEnvelope)),
        Ok(Some(end)) => end,
    };
    let Some(tag) = read_lenient_tag(rest, 0, end, step.response.limits()) else {
        return ListStepResult::Leave(step.response.refuse(NotOai::BrokenEnvelope));
    };
    let mut edits = Edits::default();
    for edit in tag.edits.iter() {
        edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
    }
    for attribute in &tag.attributes {
        let name = rest.get(attribute.name.0..attribute.name.1).unwrap_or_default();
        if !step.response.is_allowed_attribute(rest, &tag.attributes, name) {
            attribute.remove(RepairId::EnvelopeAttribute, &mut edits);
        }
    }
    edits.sort();
    if let Some(next) = replace_empty_list(step, list, end, tag.empty) {
        return next;
    }
    let text = rest.get(..end).unwrap_or_default();
    match step.response.open_tag(&edits.apply(text), step.response.root.context()) {
        Ok(tag) if tag.oai => list.set_context(tag.context),
        _ => return ListStepResult::Leave(step.response.refuse(NotOai::BrokenEnvelope)),
    }
    rename_tag(step.response, 1, (&list.names.verb, list.written_name()), &mut edits);
    if step.response.prefixes() == EnvelopePrefixes::Removed {
        remove_default_namespace(rest, 0, end, step.response.limits(), &mut edits);
    }
    edits.sort();
    match step.response.open_tag(&edits.apply(text), step.response.root.written_context()) {
        Ok(tag) if tag.oai => list.set_written_context(tag.context),
        _ => return ListStepResult::Leave(step.response.refuse(NotOai::BrokenEnvelope)),
    }
    if edits.iter().any(|edit| step.response.is_off(edit.id)) {
        return ListStepResult::Leave(step.response.refuse(NotOai::BrokenEnvelope));
    }
    step.response.tags_mut().keep_contexts();
    list.open(edits.apply(text).into_owned());
    let result = step.keep_edited(PartRole::List, end, &edits);
    if tag.empty {
        return ListStepResult::Leave(step.response.refuse(NotOai::NothingKept));
    }
    ListStepResult::Stay(result)
}

/// Reads one construct between items.
fn step_inter_item(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    let gap = blanks(rest);
    if gap > 0 {
        return ListStepResult::Stay(step.keep(PartRole::Plain, gap));
    }
    if step.response.output.held_bytes() > step.response.limits().head_bytes_max {
        return ListStepResult::Leave(step.response.refuse(NotOai::BrokenEnvelope));
    }
    if rest.first() != Some(&b'<') {
        let result = remove_stray_text(step);
        if let StepResult::Settled(len) = result {
            list.dropped.note_text(rest.get(..len).unwrap_or_default());
        }
        return ListStepResult::Stay(result);
    }
    // The longest name that decides: `</`, prefix, `resumptionToken`.
    if rest.len() < 32 + step.response.root.prefix().len()
        && !step.window.is_last
        && memchr(b'>', rest).is_none()
    {
        return ListStepResult::Stay(StepResult::NeedMore);
    }
    match rest.get(1) {
        Some(b'!' | b'?') => step_comment(step, list),
        Some(b'/') => step_end_tag(step, list),
        _ => step_start_tag(step, list),
    }
}
