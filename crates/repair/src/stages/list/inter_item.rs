//! The text between the items of a list: comments, end tags, errors and unexpected content.
//!
//! The stage of the list calls it between items. Text with an item or a token goes to quarantine and is
//! never dropped.

use crate::boundary::boundary_search::BoundarySearch;
use crate::boundary::record_boundary::RecordBoundary;
use crate::boundary::removable::{contains_content, is_content};
use crate::boundary::removal::contains_item_or_token;
use crate::catalog::{QuarantineReason, RepairId};
use crate::lex::lexeme::{CDATA, COMMENT, doctype_len, is_doctype, is_good_comment, is_xml_target};
use crate::lex::names::{name_span, split_name, trailing_blanks};
use crate::lex::search::{memchr, memchr2, memmem};
use crate::lex::window::TextWindow;
use crate::output::head_buffer::PartRole;
use crate::sink::{Quarantined, Sink};
use crate::stages::head::error_element::repair_error;
use crate::stages::item_search::{is_item, is_token};
use crate::stages::list::emit::{ReceivedItem, quarantine_item, quarantine_span, report_swallowed};
use crate::stages::list::item_kind::begins_list_item;
use crate::stages::list::items::step_items;
use crate::stages::list::list_end::step_list_end;
use crate::stages::list::state::List;
use crate::stages::list::token::step_token;
use crate::stages::response::{ListStepResult, Response, StepResult};
use crate::stages::second_document::second_document_in_list;
use crate::stages::step::Step;
use crate::text::characters::repair_characters;
use crate::text::node_rules::CharacterRules;
use crate::validate::envelope_names::is_cut_token_name;
use crate::validate::section::swallows_boundary;
use oaimend_oai::Verb;

pub(crate) fn remove_stray_text(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let bytes_max = step.response.limits().head_bytes_max;
    let end = match memchr(b'<', rest.get(..rest.len().min(bytes_max)).unwrap_or_default()) {
        Some(end) => end,
        None if step.window.is_last || rest.len() >= bytes_max => rest.len().min(bytes_max),
        None => return step.need_more(),
    };
    let text = rest.get(..end).unwrap_or_default();
    step.change(RepairId::UnexpectedContent, end - trailing_blanks(text), b"")
}

pub(crate) fn step_comment(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    let (mark, end_mark): (&[u8], &[u8]) = if rest.starts_with(COMMENT) {
        (COMMENT, b"-->")
    } else if rest.starts_with(CDATA) {
        (CDATA, b"]]>")
    } else if rest.starts_with(b"<?") {
        (b"<?", b"?>")
    } else {
        return ListStepResult::Stay(remove_declaration(step, list));
    };
    let bytes_max = step.response.limits().record_bytes_max;
    let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
    let inner = within.get(mark.len()..).unwrap_or_default();
    let end = memmem::find(inner, end_mark).map(|end| mark.len() + end + end_mark.len());
    let Some(end) = end else {
        if !step.window.is_last && rest.len() < bytes_max {
            return ListStepResult::Stay(step.need_more());
        }
        step.response.count_failed(within.len());
        return ListStepResult::Stay(step.change(RepairId::BrokenComment, mark.len(), b""));
    };
    let text = rest.get(..end).unwrap_or_default();
    let holds_items = match mark {
        // A CDATA section between items is illegal, and its text does not come from a depositor.
        CDATA => list.names.contains_boundary(text),
        _ if !list.names.repairs_torn_sections => false,
        _ => swallows_boundary(text, &list.names) || list.names.contains_cut_item(text),
    };
    if holds_items {
        step.response.count_failed(text.len());
        return ListStepResult::Stay(step.change(RepairId::BrokenComment, mark.len(), b""));
    }
    let characters = repair_characters(text, CharacterRules::plain(step.response.limits()));
    let is_off = characters.iter().any(|edit| step.response.is_off(edit.id));
    let is_few = characters.len() <= step.response.limits().repairs_per_record_max && !is_off;
    let is_legal = is_few
        && match mark {
            COMMENT => is_good_comment(&characters.apply(text)),
            _ => !is_xml_target(text),
        };
    if is_legal && mark != CDATA && list.names.contains_cut_item(text) {
        // The comment has an end mark, so its items are not items of the list. They go to quarantine
        // instead of being dropped.
        let (offset, why) = (step.response.position.base(), QuarantineReason::MismatchedTags);
        step.output().quarantine(&Quarantined { identifier: None, offset, raw: text, why });
        return ListStepResult::Stay(StepResult::Settled(end));
    }
    let result = match mark {
        COMMENT if is_legal => step.keep_edited(PartRole::Plain, end, &characters),
        b"<?" if is_legal => {
            list.validator.facts.swallows_items = list.names.contains_item(text);
            report_swallowed(step, list, ReceivedItem { raw: text, at: 0 });
            step.keep_edited(PartRole::Plain, end, &characters)
        }
        b"<?" => step.change(RepairId::InnerDeclaration, end, b""),
        CDATA => step.change(RepairId::UnexpectedContent, end, b""),
        _ => step.change(RepairId::BrokenComment, end, b""),
    };
    ListStepResult::Stay(result)
}

/// Removes a `<!` that begins no comment and no CDATA section.
///
/// A document type declaration ends where its syntax ends, unless an item begins before that. Any other
/// declaration ends at its `>` or before the next `<`.
fn remove_declaration(step: &mut Step<'_, impl Sink>, list: &List) -> StepResult {
    let rest = step.window.text;
    let bytes_max = step.response.limits().tag_bytes_max;
    let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
    let complete = step.window.is_last || rest.len() >= bytes_max;
    let next = memchr2(b'<', b'>', within.get(1..).unwrap_or_default()).map(|next| next + 1);
    let short = match next {
        Some(end) if within.get(end) == Some(&b'>') => end + 1,
        Some(end) => end - trailing_blanks(within.get(..end).unwrap_or_default()),
        None if complete => within.len(),
        None => return step.need_more(),
    };
    if !is_doctype(rest) {
        return step.change(RepairId::BrokenComment, short, b"");
    }
    match doctype_len(within) {
        None if !complete => step.need_more(),
        Some(len) if item_in(step.response, list, within, len).is_none() => {
            step.change(RepairId::BrokenComment, len, b"")
        }
        _ => step.change(RepairId::BrokenComment, short, b""),
    }
}

/// Returns the position of an item's start tag in the first `len` bytes of `text`, except at its first
/// byte.
fn item_in(response: &Response, list: &List, text: &[u8], len: usize) -> Option<usize> {
    let text = text.get(..len).unwrap_or_default();
    let mark = [b"<", response.root.prefix(), list.names.element.name].concat();
    memmem::find_iter(text, &mark)
        .find(|&at| at > 0 && is_item(response, list, text.get(at..).unwrap_or_default()))
}

pub(crate) fn step_end_tag(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    let bytes_max = step.response.limits().tag_bytes_max;
    let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
    let body = within.get(2..).unwrap_or_default();
    let name = body.get(..name_span(body)).unwrap_or_default();
    let local = name.strip_prefix(step.response.root.prefix()).unwrap_or_default();
    if local == list.names.verb.as_slice() || local == b"OAI-PMH" {
        return step_list_end(step, list);
    }
    let end = match memchr(b'>', within) {
        Some(end) if memchr(b'<', within.get(1..end).unwrap_or_default()).is_none() => end + 1,
        None if !step.window.is_last && rest.len() < bytes_max => {
            return ListStepResult::Stay(step.need_more());
        }
        _ => 2 + name.len(),
    };
    let is_token = list.verb().is_list() && is_token(step.response, name);
    if list.dropped.is_since_last_item() && (is_token || list.names.is_inside_item(name)) {
        // The text before it was a token, or a field of an item whose beginning is lost.
        step.response.output.count_lost();
        list.dropped.note_counted();
    }
    ListStepResult::Stay(step.change(RepairId::StrayEndTag, end, b""))
}

pub(crate) fn step_start_tag(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    match begins_list_item(step.response, list, step.window) {
        Err(result) => return ListStepResult::Stay(result),
        Ok(true) => {
            list.item.begin();
            list.dropped.begin_item();
            step.response.tags_mut().tidy();
            list.validator.next_item(0);
            return step_items(step, list);
        }
        Ok(false) => {}
    }
    let body = rest.get(1..).unwrap_or_default();
    let name = body.get(..name_span(body)).unwrap_or_default();
    let local = name.strip_prefix(step.response.root.prefix()).unwrap_or_default();
    if list.verb().is_list() && is_token(step.response, name) {
        return step_token(step, list);
    }
    match local {
        b"error" => step_error_in_list(step, list),
        b"OAI-PMH" => match second_document_in_list(step, list) {
            Some(result) => ListStepResult::Stay(result),
            None => {
                let next = remove_unknown_element(step, list);
                if !matches!(next, ListStepResult::Stay(StepResult::NeedMore)) {
                    step.response.count_failed(rest.len().min(step.response.limits().head_bytes_max));
                }
                next
            }
        },
        _ => remove_unknown_element(step, list),
    }
}

/// Handles an error inside the list. It is held before the first item and dropped after it.
fn step_error_in_list(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    let end = match element_end(step.response, list, step.window) {
        Err(result) => return ListStepResult::Stay(result),
        Ok(None) => return ListStepResult::Stay(step.change(RepairId::UnexpectedContent, 1, b"")),
        Ok(Some((_, end))) => end,
    };
    let edits = if step.response.output.is_open() {
        None
    } else {
        repair_error(step.response, rest.get(..end).unwrap_or_default())
    };
    match edits {
        Some(edits) => ListStepResult::Stay(step.keep_edited(PartRole::Error, end, &edits)),
        None => {
            list.dropped.note_error();
            if !step.response.output.is_open() {
                step.response.doubts.note_unknown_code();
            }
            ListStepResult::Stay(step.change(RepairId::ErrorBesideItems, end, b""))
        }
    }
}

/// Returns the end of the start tag and the end of the element, for an element that is not an item.
///
/// The element consists of its start tag alone if its end tag does not come before the next item. The same
/// is true if it contains an item or a token. Returns `None` if even the start tag never ends.
fn element_end(
    response: &mut Response,
    list: &List,
    window: TextWindow<'_>,
) -> Result<Option<(usize, usize)>, StepResult> {
    let rest = window.text;
    let bytes_max = response.limits().record_bytes_max;
    let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
    let complete = window.is_last || rest.len() >= bytes_max;
    let Some(tag_end) = response.tag_end(window)? else { return Ok(None) };
    if let Some(item_at) = item_in(response, list, within, tag_end) {
        // An attribute lacks its closing quote, so the tag ends before the item.
        let end = item_at - trailing_blanks(within.get(..item_at).unwrap_or_default());
        return Ok(Some((end, end)));
    }
    let name = within.get(1..1 + name_span(within.get(1..).unwrap_or_default())).unwrap_or_default();
    if name.is_empty() || within.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>")) {
        return Ok(Some((tag_end, tag_end)));
    }
    let close = [b"</", name, b">"].concat();
    let is_child = list.names.is_child(name);
    let item = [b"<", response.root.prefix(), list.names.element.name].concat();
    let item_at = response.find_item_start(within, tag_end, &item);
    let after = within.get(tag_end..item_at.unwrap_or(within.len())).unwrap_or_default();
    // A child of an item without a start tag is handled together with the rest of the item.
    let item_close = [b"</", response.root.prefix(), list.names.element.name, b">"].concat();
    let item_end = if is_child { memmem::find(after, &item_close) } else { None };
    if let Some(close_at) = item_end {
        return Ok(Some((tag_end, tag_end + close_at + item_close.len())));
    }
    let is_decided = !is_child || item_at.is_some() || complete;
    let close_at = if is_decided { memmem::find(after, &close) } else { None };
    match close_at {
        Some(close_at) => {
            let content = after.get(..close_at).unwrap_or_default();
            if !is_item_name(split_name(name).1) && contains_item_or_token(content) {
                response.count_failed(content.len());
                return Ok(Some((tag_end, tag_end)));
            }
            Ok(Some((tag_end, tag_end + close_at + close.len())))
        }
        None if item_at.is_none() && !complete => Err(response.need_more(rest)),
        None => {
            response.count_failed(after.len());
            Ok(Some((tag_end, tag_end)))
        }
    }
}

/// The rest of an item whose start tag is lost: its length, and the items in it that may belong to the list.
struct RestOfItem {
    end: usize,
    inner: Vec<usize>,
}

/// Returns the rest of an item that begins at the start of the window: at a child of an item, or at an element of
/// a payload that contains items. What a payload encloses never becomes an item of the list.
fn rest_of_item(
    response: &mut Response,
    list: &List,
    window: TextWindow<'_>,
) -> Result<Option<RestOfItem>, StepResult> {
    let rest = window.text;
    let name = rest.get(1..1 + name_span(rest.get(1..).unwrap_or_default())).unwrap_or_default();
    let local = split_name(name).1;
    if response.root.is_v1() && list.verb() == Verb::ListIdentifiers {
        // The items are identifiers.
        return Ok(None);
    }
    let is_own_item = is_item_name(local) && !(local == b"header" && list.verb() != Verb::ListIdentifiers);
    let is_child = list.names.is_child(name) && !is_own_item;
    if !is_child && !is_foreign(response, list, window)? {
        return Ok(None);
    }
    let bytes_max = response.limits().record_bytes_max;
    let mut search = BoundarySearch::new_inside_item(response.position.base(), response.take_lookahead());
    let boundary = search.find(window, &list.names, bytes_max);
    let is_torn = search.tear().is_some();
    let inner = |end: usize| search.unproven_items(end);
    let found = match boundary {
        RecordBoundary::At(end) if is_child => Some(RestOfItem { end, inner: inner(end) }),
        RecordBoundary::At(end)
            if !is_torn && list.names.contains_item(rest.get(..end).unwrap_or_default()) =>
        {
            Some(RestOfItem { end, inner: inner(end) })
        }
        _ => None,
    };
    response.set_lookahead(search.into_lookahead());
    match boundary {
        RecordBoundary::NeedMore => Err(response.need_more(rest)),
        _ => Ok(found),
    }
}

/// Returns whether the element at the start of the window has another namespace than OAI-PMH.
fn is_foreign(response: &mut Response, list: &List, window: TextWindow<'_>) -> Result<bool, StepResult> {
    let rest = window.text;
    let Some(tag_end) = response.tag_end(window)? else { return Ok(false) };
    response.tags_mut().tidy();
    let tag = rest.get(..tag_end).unwrap_or_default();
    let is_empty = tag.ends_with(b"/>");
    let opened = response.open_tag(tag, list.context());
    Ok(!is_empty && opened.is_ok_and(|tag| !tag.oai))
}

fn quarantine_rest(step: &mut Step<'_, impl Sink>, list: &List, found: &RestOfItem) -> StepResult {
    let rest = step.window.text;
    let raw = rest.get(..found.end).unwrap_or_default();
    let raw = raw.get(..raw.len() - trailing_blanks(raw)).unwrap_or_default();
    quarantine_span(step, list, raw, &found.inner, QuarantineReason::IllegalEnvelope);
    StepResult::Settled(raw.len())
}

/// Removes an unexpected element with its content. An element that looks like an item goes to quarantine.
fn remove_unknown_element(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    match rest_of_item(step.response, list, step.window) {
        Err(result) => return ListStepResult::Stay(result),
        Ok(Some(rest_of_item)) => {
            return ListStepResult::Stay(quarantine_rest(step, list, &rest_of_item));
        }
        Ok(None) => {}
    }
    let ends = match element_end(step.response, list, step.window) {
        Err(result) => return ListStepResult::Stay(result),
        Ok(ends) => ends,
    };
    let name = rest.get(1..1 + name_span(rest.get(1..).unwrap_or_default())).unwrap_or_default();
    let local = split_name(name).1;
    let Some((tag_end, end)) = ends else {
        if list.verb().is_list() && is_cut_token_name(local) {
            return ListStepResult::Stay(step.quarantine_unread(1 + name.len()));
        }
        return ListStepResult::Stay(step.change(RepairId::UnexpectedContent, 1, b""));
    };
    let is_record = list.verb() == Verb::GetRecord && local == b"record";
    if is_record
        && list.requested.is_emitted()
        && end > tag_end
        && !step.response.is_off(RepairId::AnotherRecord)
    {
        return ListStepResult::Stay(step.change(RepairId::AnotherRecord, end, b""));
    }
    let why = match local {
        _ if is_item_name(local) => Some(QuarantineReason::IllegalEnvelope),
        // In 1.x an identifier takes the place of a header.
        b"identifier" if list.verb() == Verb::ListIdentifiers && step.response.root.is_v1() => {
            Some(QuarantineReason::MissingDatestamp)
        }
        _ => None,
    };
    let inner = rest.get(tag_end..end).unwrap_or_default();
    let unprefixed = name.strip_prefix(step.response.root.prefix()).unwrap_or(name);
    let is_content =
        is_content(unprefixed, list.names.element) || contains_content(inner, list.names.element);
    let why = why.or(is_content.then_some(QuarantineReason::IllegalEnvelope));
    if end > tag_end
        && let Some(why) = why
    {
        let raw = rest.get(..end).unwrap_or_default();
        quarantine_item(step, list, ReceivedItem { raw, at: 0 }, why);
        return ListStepResult::Stay(StepResult::Settled(end));
    }
    list.dropped.note_element(inner);
    ListStepResult::Stay(step.change(RepairId::UnknownElement, end, b""))
}

/// Returns whether items of some list have this name.
fn is_item_name(local: &[u8]) -> bool {
    matches!(local, b"record" | b"header" | b"set" | b"metadataFormat")
}
