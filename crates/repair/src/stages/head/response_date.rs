//! The repair of responseDate: its own value, or the time that the caller configured.

use crate::catalog::RepairId;
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::{blanks, name_span};
use crate::passes::header::{FieldText, rewrite_datestamp};
use crate::stages::envelope::write_element;
use crate::stages::head::head_fields::{FieldKind, HeadField, repair_field_tag};
use crate::stages::response::Response;
use crate::text::edits::Edits;
use crate::text::escape::resolve;
use oaimend_oai::datestamp;

/// The largest length of a date that is searched before other text.
const DATE_BYTES_MAX: usize = 40;

/// Converts the responseDate to UTC with seconds.
pub(crate) fn repair_response_date(response: &mut Response, text: &[u8], date: HeadField, edits: &mut Edits) {
    repair_field_tag(response, text, date, FieldKind::ResponseDate, edits);
    let (start, end) = date.content;
    let raw = text.get(start..end).unwrap_or_default();
    if text.get(date.start..start).is_some_and(|tag| tag.ends_with(b"/>")) {
        let stamp = response.config().response_date.as_deref().unwrap_or("1970-01-01T00:00:00Z");
        let element = write_element(response, b"responseDate", stamp.as_bytes());
        let _ = edits.take_within(date.start, date.end);
        edits.push_unordered(RepairId::MissingResponseDate, date.start, date.end, element);
        return;
    }
    if raw.len() == 20 && datestamp::is_legal(raw) {
        return;
    }
    let resolved = resolve(raw);
    let read = std::str::from_utf8(&resolved).ok().and_then(datestamp::normalise);
    let (id, stamp) = match read {
        Some((stamp, oddity)) if stamp.len() == 20 => {
            let is_plain = !raw.iter().any(|&byte| matches!(byte, b'<' | b'&'));
            return rewrite_datestamp(FieldText { raw, at: start, is_plain }, &stamp, oddity, edits);
        }
        Some((day, _)) => (RepairId::DatestampForm, day + "T00:00:00Z"),
        None => {
            if let Some(front) = leading_date(raw) {
                return repair_leading_date(raw, start, front, edits);
            }
            let date = response.config().response_date.as_deref().unwrap_or("1970-01-01T00:00:00Z");
            (RepairId::MissingResponseDate, date.to_owned())
        }
    };
    edits.push_unordered(id, start, end, stamp.into_bytes());
}

/// Returns the text of responseDate in a repaired head.
pub(crate) fn read_response_date(response: &Response, written_head: &[u8]) -> Vec<u8> {
    let open = [b"<", response.written_prefix(), b"responseDate"].concat();
    let mut lexemes = Lexemes::new(written_head);
    let mut at = 0;
    while at < written_head.len() {
        let (lexeme, end) = lexemes.at(at);
        let tag = written_head.get(at..end).unwrap_or_default();
        if lexeme == Lexeme::StartTag
            && tag.strip_prefix(open.as_slice()).is_some_and(|rest| name_span(rest) == 0)
        {
            let text_end = lexemes.at(end).1;
            return written_head.get(end..text_end).unwrap_or_default().to_vec();
        }
        at = end;
    }
    Vec::new()
}

/// Returns the length of the longest date at the start of a text, with or without a time.
fn leading_date(text: &[u8]) -> Option<usize> {
    let from = blanks(text);
    let date = text.get(from..)?;
    if !datestamp::is_legal(date.get(..10)?) {
        return None;
    }
    let read = |len: &usize| std::str::from_utf8(date.get(..*len)?).ok().and_then(datestamp::normalise);
    (10..=date.len().min(DATE_BYTES_MAX)).rev().find(|len| read(len).is_some()).map(|len| from + len)
}

/// Repairs a responseDate that has other text after the date.
fn repair_leading_date(raw: &[u8], at: usize, date_end: usize, edits: &mut Edits) {
    let (date, garbage) = raw.split_at_checked(date_end).unwrap_or((raw, b""));
    let read = std::str::from_utf8(date).ok().and_then(datestamp::normalise);
    match read {
        Some((stamp, oddity)) if stamp.len() == 20 => {
            if !datestamp::is_legal(date) {
                rewrite_datestamp(FieldText { raw: date, at, is_plain: true }, &stamp, oddity, edits);
            }
            let end = at + raw.len();
            edits.push_unordered(RepairId::UnexpectedContent, end - garbage.len(), end, Vec::new());
        }
        Some((day, _)) => {
            let stamp = day + "T00:00:00Z";
            edits.push_unordered(RepairId::DatestampForm, at, at + raw.len(), stamp.into_bytes());
        }
        None => {}
    }
}
