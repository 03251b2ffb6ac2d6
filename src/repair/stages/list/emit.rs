//! The end of an item: it is emitted, or sent to quarantine.
//!
//! All stages of the list use it. It also reports items inside sections and items that a repair would lose.

use std::borrow::Cow;

use crate::repair::boundary::removal::{contains_item_or_token, removes_item, swallows_content};
use crate::repair::boundary::swallowed::{find_identifier, items_in, sections_with_boundaries};
use crate::repair::catalog::{NotOai, QuarantineReason, RepairId};
use crate::repair::output::head_buffer::{PartRole, Release};
use crate::repair::repair_item::RepairedItem;
use crate::repair::sink::{FieldIssue, RecordFacts, Repair, Sink, SwallowedItems, UnresolvedField};
use crate::repair::stages::list::rewrite::rewrite_item;
use crate::repair::stages::list::state::List;
use crate::repair::stages::response::Response;
use crate::repair::validate::envelope_names::EnvelopeNames;
use crate::repair::validate::facts::ItemFacts;
use crate::repair::validate::schema::Verb;

/// Emits an item with the edits made to it.
pub(crate) fn emit(
    response: &mut Response,
    list: &List,
    raw: &[u8],
    at: usize,
    item: &RepairedItem,
    sink: &mut impl Sink,
) {
    let RepairedItem { bytes, edits, facts, unresolved, .. } = item;
    let identifier = ItemFacts::slice(bytes, facts.identifier);
    let datestamp = ItemFacts::slice(bytes, facts.datestamp);
    let offset = response.base + at as u64;
    if response.in_second_document && response.output.emitted.contains(identifier, datestamp) {
        response.output.change_without_loss(
            PartRole::Plain,
            RepairId::ConcatenatedDocuments,
            offset,
            raw,
            b"",
            sink,
        );
        return;
    }
    if list.token_written {
        // No item is allowed after the token, and the token is already emitted.
        let identifier = (!identifier.is_empty()).then_some(identifier);
        return response.output.quarantine(identifier, offset, raw, QuarantineReason::IllegalEnvelope, sink);
    }
    response.output.release(Release::List, None, sink);
    let rewritten = rewrite_item(response, list, item);
    let is_rewritten = !rewritten.is_empty();
    let (output, edits) = if rewritten.is_empty() {
        (Cow::Borrowed(bytes.as_slice()), Cow::Borrowed(edits))
    } else {
        (rewritten.apply(bytes), Cow::Owned(edits.clone().then(bytes, rewritten)))
    };
    let (mut from, mut repairs) = (0, 0);
    for edit in edits.iter() {
        let original = raw.get(edit.start..edit.end).unwrap_or_default();
        if original == edit.replacement {
            // A later pass reverted the edit of an earlier one.
            continue;
        }
        repairs += 1;
        sink.write(raw.get(from..edit.start).unwrap_or_default());
        let (offset, replacement) = (offset + edit.start as u64, edit.replacement.as_slice());
        response.output.report(
            &Repair {
                id: edit.id,
                offset,
                record: (!identifier.is_empty()).then_some(identifier),
                original,
                replacement,
            },
            sink,
        );
        from = edit.end;
    }
    sink.write(raw.get(from..).unwrap_or_default());
    // The proxy's base URL replaces an illegal one.
    let is_replaced = |issue: &(&str, FieldIssue)| is_rewritten && *issue == ("baseURL", FieldIssue::Illegal);
    for &(element, lack) in unresolved.iter().filter(|issue| !is_replaced(issue)) {
        response.output.unresolved += 1;
        sink.unresolved(&UnresolvedField { offset, element, lack });
    }
    response.output.emitted.insert(identifier, datestamp);
    if list.verb == Verb::Identify {
        // Identify is the response itself and not an item of a list.
        return;
    }
    let (deleted, tilde_in_set) = (facts.deleted, facts.tilde_in_set);
    let facts = RecordFacts { identifier, datestamp, deleted, offset, repairs, tilde_in_set };
    response.output.report_item(&facts, &output, sink);
}

/// Reports the items inside sections of the item at `at`.
pub(crate) fn report_swallowed(
    response: &mut Response,
    list: &List,
    raw: &[u8],
    at: usize,
    sink: &mut impl Sink,
) {
    if !list.validator.facts.swallows_items {
        return;
    }
    for section in sections_with_boundaries(raw, &list.names) {
        let items = items_in(raw, section, &list.names);
        if items.is_empty() {
            continue;
        }
        response.output.swallowed += items.len() as u64;
        let offset = response.base + (at + section.0) as u64;
        let identifier = find_identifier(raw, &list.names);
        sink.items_swallowed(&SwallowedItems { identifier, offset, items });
    }
}

/// Quarantines the item at `at`.
pub(crate) fn quarantine_item(
    response: &mut Response,
    list: &List,
    raw: &[u8],
    at: usize,
    why: QuarantineReason,
    sink: &mut impl Sink,
) {
    let identifier = find_identifier(raw, &list.names);
    response.output.quarantine(identifier, response.base + at as u64, raw, why, sink);
}

/// Gives up the list. The response is truncated if output has begun, and refused otherwise.
pub(crate) fn abandon_list(response: &mut Response, list: &List) {
    response.verb = Some(list.verb);
    response.refuse(NotOai::BrokenEnvelope);
    response.truncated = response.output.is_open();
}

/// Returns whether the repair of an item removed another item or a token.
///
/// An Identify that breaks the schema and contains an item consists of parts of two responses.
pub(crate) fn loses_item(raw: &[u8], repaired: &RepairedItem, names: &EnvelopeNames) -> bool {
    let is_mixed = !repaired.unresolved.is_empty() && contains_item_or_token(raw);
    is_mixed
        || match repaired.markup {
            true => swallows_content(raw, &repaired.edits, names),
            false => removes_item(raw, &repaired.edits, names),
        }
}
