//! The end of an item: it is emitted, or sent to quarantine.
//!
//! All stages of the list use it. It also reports items inside sections and items that a repair would lose.

use std::borrow::Cow;

use crate::boundary::open_elements::Evidence;
use crate::boundary::removal::{mixes_responses, removes_item};
use crate::boundary::swallowed::{find_identifier, items_in, sections_with_boundaries};
use crate::catalog::{NotOai, QuarantineReason, RepairId};
use crate::lex::outline::outline;
use crate::output::head_buffer::{PartRole, Release};
use crate::repair_item::RepairedItem;
use crate::sink::{
    EnvelopeFacts, FieldIssue, IdentifyFacts, ItemSpans, ListEnvelope, RecordFacts, Repair, Sink,
    SwallowedItems, UnresolvedField,
};
use crate::stages::list::rewrite::rewrite_item;
use crate::stages::list::state::List;
use crate::stages::response::Response;
use crate::validate::envelope_names::EnvelopeNames;
use crate::validate::facts::ItemFacts;
use oaimend_oai::Verb;

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
    let identifier = facts.identifier.slice(bytes);
    let datestamp = facts.datestamp.slice(bytes);
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
    let is_doubtful = match list.tear {
        Some(Evidence::Wrapper) => true,
        // Most sources stop in a record rather than wrap others, but a false deletion does the most harm.
        Some(Evidence::Element) => facts.deleted,
        Some(Evidence::Field) | None => false,
    };
    if is_doubtful {
        // Only the source can tell whether it is an item of the list.
        return quarantine_item(response, list, raw, at, QuarantineReason::UnreadItem, sink);
    }
    if list.token_written {
        // No item is allowed after the token, and the token is already emitted.
        let identifier = (!identifier.is_empty()).then_some(identifier);
        return response.output.quarantine(identifier, offset, raw, QuarantineReason::IllegalEnvelope, sink);
    }
    let rewritten = rewrite_item(response, list, item);
    let has_own_url = rewritten.iter().any(|edit| edit.id == RepairId::RewriteBaseUrl);
    let (output, written_facts, edits) = if rewritten.is_empty() {
        (Cow::Borrowed(bytes.as_slice()), Cow::Borrowed(facts), Cow::Borrowed(edits))
    } else {
        let moved = facts.clone().map_spans(|span| rewritten.moved(span));
        (rewritten.apply(bytes), Cow::Owned(moved), Cow::Owned(edits.clone().then(bytes, rewritten)))
    };
    release_list(response, list, sink);
    if list.verb == Verb::Identify {
        sink.identified(&identify_facts(&output));
    }
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
    let is_replaced = |issue: &(&str, FieldIssue)| has_own_url && *issue == ("baseURL", FieldIssue::Illegal);
    for &(element, lack) in unresolved.iter().filter(|issue| !is_replaced(issue)) {
        response.output.unresolved += 1;
        sink.unresolved(&UnresolvedField { offset, element, lack });
    }
    response.output.emitted.insert(identifier, datestamp);
    if list.verb == Verb::Identify {
        // Identify is the response itself and not an item of a list.
        return;
    }
    let facts = RecordFacts {
        identifier,
        datestamp,
        deleted: facts.deleted,
        offset,
        repairs,
        tilde_in_set: facts.tilde_in_set,
        spans: spans_of(&written_facts),
    };
    response.output.report_item(&facts, &output, sink);
}

/// Returns the fields of a written Identify. It is well-formed, even if fields stay wrong or missing.
fn identify_facts(identify: &[u8]) -> IdentifyFacts<'_> {
    let root = outline(identify, 0, identify.len()).and_then(|root| root.children.first().copied());
    let fields = root.and_then(|root| outline(identify, root.content.0, root.content.1));
    let fields = fields.map(|fields| fields.children).unwrap_or_default();
    let text_of = |local: &[u8]| {
        let field = fields.iter().rfind(|field| field.local == local);
        field.and_then(|field| identify.get(field.content.0..field.content.1)).unwrap_or_default()
    };
    IdentifyFacts {
        earliest_datestamp: text_of(b"earliestDatestamp"),
        deleted_record: text_of(b"deletedRecord"),
        granularity: text_of(b"granularity"),
    }
}

/// Returns the places that are reported with an item.
#[inline]
pub(crate) fn spans_of(facts: &ItemFacts) -> ItemSpans<'_> {
    ItemSpans {
        header: facts.header,
        identifier: facts.identifier,
        datestamp: facts.datestamp,
        set_specs: &facts.set_specs,
    }
}

/// Emits the held head of a list, and reports the envelope. Does nothing if the head is emitted already.
pub(crate) fn release_list(response: &mut Response, list: &List, sink: &mut impl Sink) {
    if response.output.is_open() {
        return;
    }
    let namespaces = response.tags.contexts.in_scope(list.written_context);
    let list = (list.verb != Verb::Identify).then(|| ListEnvelope {
        verb_tag: &list.start_tag,
        verb_tag_at: response.output.bytes_before_list(),
        namespaces: &namespaces,
    });
    let Response { response_date, root_tag, .. } = response;
    sink.envelope(&EnvelopeFacts { response_date, root_tag, list });
    response.output.release(Release::List, None, sink);
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

/// Quarantines a broken item and each item in it by itself, so that each has its name and can be requested
/// again. `inner` are the places of the items in it. One without a readable identifier counts as lost.
pub(crate) fn quarantine_span(
    response: &mut Response,
    list: &List,
    raw: &[u8],
    inner: &[usize],
    why: QuarantineReason,
    sink: &mut impl Sink,
) {
    let first = inner.first().copied().unwrap_or(raw.len());
    quarantine_item(response, list, raw.get(..first).unwrap_or_default(), 0, why, sink);
    let ends = inner.iter().skip(1).copied().chain([raw.len()]);
    for (&start, end) in inner.iter().zip(ends) {
        let item = raw.get(start..end).unwrap_or_default();
        match find_identifier(item, &list.names) {
            Some(_) => quarantine_item(response, list, item, start, QuarantineReason::UnreadItem, sink),
            None => response.output.quarantine_unread(None, response.base + start as u64, item, sink),
        }
    }
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
    let is_identify = names.element.name == b"Identify";
    let is_suspect = repaired.markup || !repaired.unresolved.is_empty();
    is_identify && is_suspect && mixes_responses(raw) || removes_item(raw, &repaired.edits, names)
}
