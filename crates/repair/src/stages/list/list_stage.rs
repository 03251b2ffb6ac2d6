//! The stage of a list: it dispatches between the start tag, items, and the text between items.
//!
//! The engine runs it until the list ends.

use crate::boundary::removable::{is_fatal_message, is_punctuation};
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
use crate::stages::response::{ListStep, Response, Stage, Step};
use crate::text::edits::Edits;
use crate::validate::envelope_names::EnvelopePrefixes;

pub(crate) fn step_list(response: &mut Response, rest: &[u8], last: bool, sink: &mut impl Sink) -> Step {
    let Stage::List(mut list) = std::mem::replace(&mut response.stage, Stage::Done) else {
        return Step::Settled(rest.len());
    };
    let next = if !list.opened && response.v1.is_some() {
        open_v1_list(response, &mut list, rest, last, sink)
    } else if !list.opened {
        open_list(response, &mut list, rest, last, sink)
    } else if list.boundary.is_some() {
        step_broken_item(response, &mut list, rest, last, sink)
    } else if list.in_item {
        step_items(response, &mut list, rest, last, sink)
    } else {
        step_inter_item(response, &mut list, rest, last, sink)
    };
    match next {
        ListStep::Stay(step) => {
            response.stage = Stage::List(list);
            step
        }
        ListStep::Leave(step) => {
            if matches!(response.stage, Stage::Truncated) {
                response.verb = Some(list.verb);
            }
            if let Stage::Oversized(slot) = &mut response.stage {
                **slot = *list;
            }
            step
        }
    }
}

/// Reads the start tag of the verb element.
fn open_list(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    last: bool,
    sink: &mut impl Sink,
) -> ListStep {
    let end = match response.tag_end(rest, last) {
        Err(step) => return ListStep::Stay(step),
        Ok(None) => return ListStep::Leave(response.refuse(NotOai::BrokenEnvelope)),
        Ok(Some(end)) => end,
    };
    let Some(tag) = read_lenient_tag(rest, 0, end, &response.config.limits) else {
        return ListStep::Leave(response.refuse(NotOai::BrokenEnvelope));
    };
    let mut edits = Edits::default();
    for edit in tag.edits.iter() {
        edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
    }
    for attribute in &tag.attributes {
        let name = rest.get(attribute.name.0..attribute.name.1).unwrap_or_default();
        if !response.is_allowed_attribute(rest, &tag.attributes, name) {
            attribute.remove(RepairId::EnvelopeAttribute, &mut edits);
        }
    }
    edits.sort();
    if let Some(next) = replace_empty_list(response, list, rest, end, tag.empty, last, sink) {
        return next;
    }
    let text = rest.get(..end).unwrap_or_default();
    let limits = &response.config.limits;
    match response.tags.open(&edits.apply(text), response.root_context, limits) {
        Ok(tag) if tag.oai => list.context = tag.context,
        _ => return ListStep::Leave(response.refuse(NotOai::BrokenEnvelope)),
    }
    rename_tag(response, 1, (&list.names.verb, list.written_name()), &mut edits);
    if response.prefixes() == EnvelopePrefixes::Removed {
        remove_default_namespace(rest, 0, end, &response.config.limits, &mut edits);
    }
    edits.sort();
    match response.tags.open(&edits.apply(text), response.written_context, &response.config.limits) {
        Ok(tag) if tag.oai => list.written_context = tag.context,
        _ => return ListStep::Leave(response.refuse(NotOai::BrokenEnvelope)),
    }
    if edits.iter().any(|edit| response.is_off(edit.id)) {
        return ListStep::Leave(response.refuse(NotOai::BrokenEnvelope));
    }
    response.tags.keep_contexts();
    list.validator.set_context(list.context);
    list.opened = true;
    list.start_tag = edits.apply(text).into_owned();
    let step = response.keep_edited(PartRole::List, rest, end, &edits, sink);
    if tag.empty {
        return ListStep::Leave(response.refuse(NotOai::NothingKept));
    }
    ListStep::Stay(step)
}

/// Reads one construct between items.
fn step_inter_item(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    last: bool,
    sink: &mut impl Sink,
) -> ListStep {
    let gap = blanks(rest);
    if gap > 0 {
        return ListStep::Stay(response.keep(PartRole::Plain, rest, gap, sink));
    }
    if response.output.held_bytes > response.limits().head_bytes_max {
        return ListStep::Leave(response.refuse(NotOai::BrokenEnvelope));
    }
    if rest.first() != Some(&b'<') {
        let step = remove_stray_text(response, rest, last, sink);
        list.dropped |= step != Step::NeedMore;
        if let Step::Settled(len) = step {
            list.dropped_text |= !is_punctuation(rest.get(..len).unwrap_or_default());
            list.source_aborted |= is_fatal_message(rest.get(..len).unwrap_or_default());
        }
        return ListStep::Stay(step);
    }
    // The longest name that decides: `</`, prefix, `resumptionToken`.
    if rest.len() < 32 + response.prefix.len() && !last && memchr(b'>', rest).is_none() {
        return ListStep::Stay(Step::NeedMore);
    }
    match rest.get(1) {
        Some(b'!' | b'?') => step_comment(response, list, rest, last, sink),
        Some(b'/') => step_end_tag(response, list, rest, last, sink),
        _ => step_start_tag(response, list, rest, last, sink),
    }
}
