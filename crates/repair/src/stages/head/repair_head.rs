//! The repair of `responseDate` and `request`.
//!
//! The stage of the head runs it once over the whole head.

use crate::boundary::removable::contains_envelope_element;
use crate::catalog::RepairId;
use crate::lex::names::{blanks, trailing_blanks, trim};
use crate::stages::envelope::{element_characters, end_tag_of, strip_envelope_prefixes, write_element};
use crate::stages::head::head_fields::{
    FieldKind, HeadField, HeadFields, escape_url, field_name_case, percent_encode, read_head,
    repair_field_tag, stray_in_url, write_attribute,
};
use crate::stages::head::request_facts::{next_token_in_request, read_request_facts};
use crate::stages::head::response_date::{read_response_date, repair_response_date};
use crate::stages::head::v1_head::upgrade_request;
use crate::stages::item_search::contains_any_item;
use crate::stages::response::{Response, writes_request_echo};
use crate::stages::response_parts::ResponseDate;
use crate::text::edits::{Edit, Edits};
use crate::text::escape::{escape, reference_for, resolve, write_escaped};
use crate::validate::schema::{is_any_uri, item_of};
use oaimend_oai::Verb;

/// The typical largest size of a request element of the proxy.
const REQUEST_BYTES_TYPICAL: usize = 256;

/// Counts the first item of a list as lost if the damaged start of the list contained a part of the item.
pub(crate) fn count_lost_item(response: &mut Response, verb: Verb, head: &[u8], edits: &Edits) {
    let is_removal = |edit: &&Edit| matches!(edit.id, RepairId::UnknownElement | RepairId::UnexpectedContent);
    let mut removed = edits.iter().filter(is_removal).filter_map(|edit| head.get(edit.start..edit.end));
    let is_lost = removed.any(|text| contains_envelope_element(text, item_of(verb)));
    if is_lost {
        response.output.count_lost();
    }
}

/// Reads the facts of the head and returns its edits; `None` if one of the repairs is off.
pub(crate) fn read_whole_head(response: &mut Response, head: &[u8]) -> Option<Edits> {
    let edits = repair_head(response, head);
    let is_made = |edit: &&Edit| head.get(edit.start..edit.end) != Some(edit.replacement.as_slice());
    if edits.iter().filter(is_made).any(|edit| response.is_off(edit.id)) {
        return None;
    }
    let written = edits.apply(head);
    let facts = read_request_facts(response, &written);
    response.request.set_facts(facts);
    let date = read_response_date(response, &written);
    let is_added = edits.iter().any(|edit| edit.id == RepairId::MissingResponseDate);
    let is_of_source = !date.is_empty() && !is_added;
    response.date = ResponseDate::new(date, is_of_source);
    response.doubts.note_dropped(
        edits
            .iter()
            .filter(|edit| edit.id == RepairId::UnknownElement)
            .any(|edit| contains_any_item(response, head.get(edit.start..edit.end).unwrap_or_default())),
    );
    Some(edits)
}

/// Returns the edits that repair the head.
pub(crate) fn repair_head(response: &mut Response, head: &[u8]) -> Edits {
    let mut characters = element_characters(response, head);
    let mut text = characters.apply(head);
    let mut edits = Edits::default();
    let request_name: &[u8] = if response.root.is_v1() { b"requestURL" } else { b"request" };
    let mut fields = read_head(&text, response.root.prefix(), request_name, &mut edits);
    let renamed = match (fields.date, fields.request) {
        (Some(_), Some(_)) => Edits::default(),
        _ => field_name_case(&text, response.root.prefix(), request_name),
    };
    if !renamed.is_empty() {
        let named = renamed.apply(&text).into_owned();
        characters = characters.then(&text, renamed);
        edits = Edits::default();
        fields = read_head(&named, response.root.prefix(), request_name, &mut edits);
        text = named.into();
    }
    let date = fields.date;
    if let Some(date) = date {
        repair_response_date(response, &text, date, &mut edits);
        close_field(response, b"responseDate", date, &mut edits);
    }
    let new_date = date.is_none().then(|| {
        let stamp = response.config().response_date.as_deref().unwrap_or("1970-01-01T00:00:00Z");
        write_element(response, b"responseDate", stamp.as_bytes())
    });
    // An added element goes directly before the next element.
    let after = date.map_or(0, |date| date.end);
    let place = after + blanks(text.get(after..).unwrap_or_default());
    if let Some(new_date) = new_date {
        edits.push_unordered(RepairId::MissingResponseDate, place, place, new_date);
    }
    place_request(response, &text, fields, place, &mut edits);
    edits.sort();
    strip_envelope_prefixes(response, head, characters.then(&text, edits))
}

fn close_field(response: &Response, local: &[u8], field: HeadField, edits: &mut Edits) {
    if field.unclosed {
        let tag = end_tag_of(response, local);
        edits.push_unordered(RepairId::MissingEndTag, field.end, field.end, tag);
    }
}

fn place_request(response: &mut Response, text: &[u8], fields: HeadFields, place: usize, edits: &mut Edits) {
    let echo = writes_request_echo(response).then(|| request_echo(response, EchoArguments::Written));
    let Some(field) = fields.request else {
        let (id, element) = match echo {
            Some(echo) => (RepairId::MissingRequest, echo),
            None => (RepairId::MissingRequest, [b"<", response.written_prefix(), b"request/>"].concat()),
        };
        edits.push_unordered(id, place, place, element);
        return;
    };
    let tag = text.get(field.start..field.content.0).unwrap_or_default();
    response.request.set_next_token(next_token_in_request(response, tag));
    let upgraded = response.root.is_v1().then(|| upgrade_request(response, text, field.content));
    let is_misplaced = fields.date.is_some_and(|date| date.start > field.start);
    let inside = match echo.map(|echo| (RepairId::RewriteRequest, echo)).or(upgraded) {
        Some((_, echo)) if is_misplaced => echo,
        Some((id, echo)) => {
            let _ = edits.take_within(field.start, field.end);
            return edits.push_unordered(id, field.start, field.end, echo);
        }
        None => {
            repair_request(response, text, field, edits);
            close_field(response, b"request", field, edits);
            let inside = edits.take_within(field.start, field.end);
            let repaired =
                inside.clone().apply_at(text.get(field.start..field.end).unwrap_or_default(), field.start);
            for edit in inside.iter() {
                edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
            }
            repaired
        }
    };
    if is_misplaced {
        let _ = edits.take_within(field.start, field.end);
        edits.push_unordered(RepairId::ElementOrder, field.start, field.end, Vec::new());
        edits.push_unordered(RepairId::ElementOrder, place, place, inside);
    }
}

/// Whether the request element of the proxy has its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EchoArguments {
    Written,
    /// An error code forbids them.
    Omitted,
}

/// Returns the request element of the proxy.
pub(crate) fn request_echo(response: &Response, arguments: EchoArguments) -> Vec<u8> {
    let Some(request) = &response.config().request else { return Vec::new() };
    let prefix = response.written_prefix();
    let mut element = Vec::with_capacity(REQUEST_BYTES_TYPICAL);
    for part in [b"<", prefix, b"request"] {
        element.extend_from_slice(part);
    }
    let written = match arguments {
        EchoArguments::Written => request.arguments.as_slice(),
        EchoArguments::Omitted => &[],
    };
    for (name, value) in written {
        for part in [b" ", name.as_bytes(), b"=\""] {
            element.extend_from_slice(part);
        }
        write_attribute(value, &mut element);
        element.push(b'"');
    }
    element.push(b'>');
    write_escaped(request.base_url.as_bytes(), reference_for, &mut element);
    for part in [b"</", prefix, b"request>"] {
        element.extend_from_slice(part);
    }
    element
}

/// Repairs the attributes and the text of the source's own request element.
fn repair_request(response: &mut Response, text: &[u8], field: HeadField, edits: &mut Edits) {
    repair_field_tag(response, text, field, FieldKind::Request, edits);
    let (start, end) = field.content;
    let raw = text.get(start..end).unwrap_or_default();
    let resolved = resolve(raw);
    let url = trim(&resolved);
    let legal = is_any_uri(url) && !url.contains(&b' ') && !raw.contains(&b'<');
    if legal && url.len() == resolved.len() {
        return;
    }
    let front = blanks(raw);
    let back = trailing_blanks(raw.get(front..).unwrap_or_default());
    if legal && raw.len() - front - back >= url.len() {
        for (from, to) in [(start, start + front), (end - back, end)] {
            if from < to {
                edits.push_unordered(RepairId::RequestContent, from, to, Vec::new());
            }
        }
        return;
    }
    let plain = resolved == raw && !raw.contains(&b'<');
    let strays: Vec<usize> = if plain { stray_in_url(raw) } else { Vec::new() };
    let mut escaped = raw.to_vec();
    for &at in strays.iter().rev() {
        escaped.splice(at..=at, percent_encode(raw.get(at).copied().unwrap_or(b' ')));
    }
    if plain && url.len() == raw.len() && is_any_uri(&escaped) {
        for at in strays {
            let byte = raw.get(at).copied().unwrap_or(b' ');
            edits.push_unordered(RepairId::RequestContent, start + at, start + at + 1, percent_encode(byte));
        }
        return;
    }
    edits.push_unordered(RepairId::RequestContent, start, end, escape(&escape_url(url)));
}
