//! The end of an item: it is emitted, or sent to quarantine.
//!
//! All stages of the list use it. It also reports items inside sections and items that a repair would lose.

use std::borrow::Cow;
use std::ops::Range;

use crate::boundary::open_elements::Evidence;
use crate::boundary::removal::{mixes_responses, removes_item};
use crate::boundary::swallowed::{find_identifier, items_in, sections_with_boundaries};
use crate::catalog::{NotOai, QuarantineReason, RepairId};
use crate::lex::outline::outline;
use crate::output::head_buffer::Release;
use crate::repair_item::RepairedItem;
use crate::sink::{
    EnvelopeFacts, FieldIssue, IdentifyFacts, ItemSpans, ListEnvelope, Quarantined, RecordFacts, Repair,
    Sink, SwallowedItems, UnresolvedField,
};
use crate::stages::list::rewrite::rewrite_item;
use crate::stages::list::state::List;
use crate::stages::response::Response;
use crate::stages::step::Step;
use crate::text::edits::Edits;
use crate::validate::envelope_names::EnvelopeNames;
use crate::validate::facts::ItemFacts;
use oaimend_oai::Verb;

/// An item of the window as received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedItem<'t> {
    pub(crate) raw: &'t [u8],
    /// Its start in the window.
    pub(crate) at: usize,
}

impl<'t> ReceivedItem<'t> {
    /// Returns the item that is this part of the text of a window.
    #[inline]
    pub(crate) fn new(text: &'t [u8], range: Range<usize>) -> Self {
        Self { at: range.start, raw: text.get(range).unwrap_or_default() }
    }

    /// Returns its place in the window.
    pub(crate) fn range(self) -> Range<usize> {
        self.at..self.at + self.raw.len()
    }
}

/// Emits an item with the edits made to it.
pub(crate) fn emit(
    step: &mut Step<'_, impl Sink>,
    list: &List,
    item: ReceivedItem<'_>,
    repaired: &RepairedItem,
) {
    let RepairedItem { bytes, edits, facts, unresolved, .. } = repaired;
    let identifier = facts.identifier.slice(bytes);
    let datestamp = facts.datestamp.slice(bytes);
    let offset = step.response.position.base() + item.at as u64;
    if step.response.position.in_second_document() && step.response.output.has_emitted(identifier, datestamp)
    {
        step.remove_without_loss(RepairId::ConcatenatedDocuments, item.range());
        return;
    }
    let is_doubtful = match list.tear() {
        Some(Evidence::Wrapper) => true,
        // Most sources stop in a record rather than wrap others, but a false deletion does the most harm.
        Some(Evidence::Element) => facts.deleted,
        Some(Evidence::Field) | None => false,
    };
    if is_doubtful {
        // Only the source can tell whether it is an item of the list.
        return quarantine_item(step, list, item, QuarantineReason::UnreadItem);
    }
    if list.token.is_written() {
        // No item is allowed after the token, and the token is already emitted.
        let identifier = (!identifier.is_empty()).then_some(identifier);
        let (raw, why) = (item.raw, QuarantineReason::IllegalEnvelope);
        return step.output().quarantine(&Quarantined { identifier, offset, raw, why });
    }
    let rewritten = rewrite_item(step.response, list, repaired);
    let has_own_url = rewritten.iter().any(|edit| edit.id == RepairId::RewriteBaseUrl);
    let (output, written_facts, edits) = if rewritten.is_empty() {
        (Cow::Borrowed(bytes.as_slice()), Cow::Borrowed(facts), Cow::Borrowed(edits))
    } else {
        let moved = facts.clone().map_spans(|span| rewritten.moved(span));
        (rewritten.apply(bytes), Cow::Owned(moved), Cow::Owned(edits.clone().then(bytes, rewritten)))
    };
    release_list(step, list);
    if list.verb() == Verb::Identify {
        step.sink.identified(&identify_facts(&output));
    }
    let repairs = write_edited(step, item, &edits, identifier);
    // The proxy's base URL replaces an illegal one.
    let is_replaced = |issue: &(&str, FieldIssue)| has_own_url && *issue == ("baseURL", FieldIssue::Illegal);
    for &(element, issue) in unresolved.iter().filter(|issue| !is_replaced(issue)) {
        step.response.output.count_unresolved();
        step.sink.unresolved(&UnresolvedField { offset, element, issue });
    }
    step.response.output.note_emitted(identifier, datestamp);
    if list.verb() == Verb::Identify {
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
    step.output().report_item(&facts, &output);
}

/// Writes an item with its edits, and reports each of them. Returns their number.
fn write_edited(
    step: &mut Step<'_, impl Sink>,
    item: ReceivedItem<'_>,
    edits: &Edits,
    identifier: &[u8],
) -> usize {
    let item_offset = step.response.position.base() + item.at as u64;
    let record = (!identifier.is_empty()).then_some(identifier);
    let (mut from, mut repairs) = (0, 0);
    for edit in edits.iter() {
        let original = item.raw.get(edit.start..edit.end).unwrap_or_default();
        if original == edit.replacement {
            // A later pass reverted the edit of an earlier one.
            continue;
        }
        repairs += 1;
        step.sink.write(item.raw.get(from..edit.start).unwrap_or_default());
        let (offset, replacement) = (item_offset + edit.start as u64, edit.replacement.as_slice());
        step.output().report(&Repair { id: edit.id, offset, record, original, replacement });
        from = edit.end;
    }
    step.sink.write(item.raw.get(from..).unwrap_or_default());
    repairs
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
pub(crate) fn release_list(step: &mut Step<'_, impl Sink>, list: &List) {
    if step.response.output.is_open() {
        return;
    }
    let namespaces = step.response.tags().contexts.in_scope(list.written_context());
    let list = (list.verb() != Verb::Identify).then(|| ListEnvelope {
        verb_tag: list.start_tag(),
        verb_tag_at: step.response.output.bytes_before_list(),
        namespaces: &namespaces,
    });
    let (response_date, root_tag) = (step.response.date.text(), step.response.root.tag());
    step.sink.envelope(&EnvelopeFacts { response_date, root_tag, list });
    step.output().release(Release::List, None);
}

/// Reports the items inside sections of an item.
pub(crate) fn report_swallowed(step: &mut Step<'_, impl Sink>, list: &List, item: ReceivedItem<'_>) {
    if !list.validator.facts.swallows_items {
        return;
    }
    for section in sections_with_boundaries(item.raw, &list.names) {
        let items = items_in(item.raw, section, &list.names);
        if items.is_empty() {
            continue;
        }
        step.response.output.count_swallowed(items.len());
        let offset = step.response.position.base() + (item.at + section.0) as u64;
        let identifier = find_identifier(item.raw, &list.names);
        step.sink.items_swallowed(&SwallowedItems { identifier, offset, items });
    }
}

/// Quarantines an item.
pub(crate) fn quarantine_item(
    step: &mut Step<'_, impl Sink>,
    list: &List,
    item: ReceivedItem<'_>,
    why: QuarantineReason,
) {
    let identifier = find_identifier(item.raw, &list.names);
    let offset = step.response.position.base() + item.at as u64;
    step.output().quarantine(&Quarantined { identifier, offset, raw: item.raw, why });
}

/// Quarantines a broken item and each item in it by itself, so that each has its name and can be requested
/// again. It is `raw`, the start of the window. `inner` are the places of the items in it. One without a readable identifier counts as lost.
pub(crate) fn quarantine_span(
    step: &mut Step<'_, impl Sink>,
    list: &List,
    raw: &[u8],
    inner: &[usize],
    why: QuarantineReason,
) {
    let first = inner.first().copied().unwrap_or(raw.len());
    quarantine_item(step, list, ReceivedItem::new(raw, 0..first), why);
    let ends = inner.iter().skip(1).copied().chain([raw.len()]);
    for (&start, end) in inner.iter().zip(ends) {
        let item = ReceivedItem::new(raw, start..end);
        match find_identifier(item.raw, &list.names) {
            Some(_) => quarantine_item(step, list, item, QuarantineReason::UnreadItem),
            None => {
                let offset = step.response.position.base() + start as u64;
                step.output().quarantine_unread(None, offset, item.raw);
            }
        }
    }
}

/// Gives up the list. The response is truncated if output has begun, and refused otherwise.
pub(crate) fn abandon_list(response: &mut Response, list: &List) {
    response.end.close_list(list.verb());
    response.refuse(NotOai::BrokenEnvelope);
}

/// Returns whether the repair of an item removed another item or a token.
///
/// An Identify that breaks the schema and contains an item consists of parts of two responses.
pub(crate) fn loses_item(raw: &[u8], repaired: &RepairedItem, names: &EnvelopeNames) -> bool {
    let is_identify = names.element.name == b"Identify";
    let is_suspect = repaired.markup || !repaired.unresolved.is_empty();
    is_identify && is_suspect && mixes_responses(raw) || removes_item(raw, &repaired.edits, names)
}
