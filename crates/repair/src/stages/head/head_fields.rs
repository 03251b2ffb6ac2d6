//! The fields of the head, `responseDate` and `request`: their positions and the escaping of their values.
//!
//! [`repair_head`](super::repair_head) uses it.

use crate::catalog::RepairId;
use crate::lex::known_namespaces::is_similar_name;
use crate::lex::lexeme::{Lexeme, Lexemes, is_good_comment, is_xml_target};
use crate::lex::names::{blanks, name_span, split_name, trailing_blanks, trim};
use crate::lex::search::memmem;
use crate::passes::lenient_tag::{LenientAttribute, read_lenient_tag};
use crate::stages::response::Response;
use crate::text::edits::Edits;
use crate::text::escape::{reference_for, resolve, write_escaped};
use crate::validate::schema::{Text, is_any_uri};
use oaimend_oai::{Verb, set_spec};

/// A field of the head: the ranges of the element and its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadField {
    pub(crate) start: usize,
    /// Whether its end tag is missing and must be added at `end`.
    pub(crate) unclosed: bool,
    pub(crate) content: (usize, usize),
    pub(crate) end: usize,
}

/// The fields of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    ResponseDate,
    Request,
}

impl FieldKind {
    /// Returns the repair that removes an illegal attribute.
    fn attribute_repair(self) -> RepairId {
        match self {
            Self::ResponseDate => RepairId::EnvelopeAttribute,
            Self::Request => RepairId::RequestAttribute,
        }
    }

    /// Returns whether the field may have this attribute.
    fn allows(self, name: &[u8], value: &[u8]) -> bool {
        self == Self::Request && is_request_argument(name, value)
    }
}

/// The fields of a head that were found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadFields {
    pub(crate) date: Option<HeadField>,
    pub(crate) request: Option<HeadField>,
}

/// Returns the end of the head of a response of OAI-PMH 1.x, if it contains both fields.
pub(crate) fn head_end(text: &[u8], prefix: &[u8]) -> Option<usize> {
    let fields = read_head(text, prefix, b"requestURL", &mut Edits::default());
    Some(fields.date?.end.max(fields.request?.end))
}

/// Returns the first responseDate and the first request. Adds edits that remove everything else except
/// white space and comments.
pub(crate) fn read_head(text: &[u8], prefix: &[u8], request_name: &[u8], edits: &mut Edits) -> HeadFields {
    let HeadFields { mut date, mut request } = HeadFields::default();
    let mut at = 0;
    let mut lexemes = Lexemes::new(text);
    while at < text.len() {
        let (lexeme, end) = lexemes.at(at);
        let slice = text.get(at..end).unwrap_or_default();
        let mut next = end;
        match lexeme {
            Lexeme::Text if trim(slice).is_empty() => {}
            Lexeme::Text => {
                edits.push_unordered(
                    RepairId::UnexpectedContent,
                    at + blanks(slice),
                    end - trailing_blanks(slice),
                    Vec::new(),
                );
            }
            Lexeme::Comment if is_good_comment(slice) => {}
            Lexeme::Comment | Lexeme::Declaration => {
                edits.push_unordered(RepairId::BrokenComment, at, end, Vec::new())
            }
            Lexeme::Instruction if !is_xml_target(slice) => {}
            Lexeme::Instruction => edits.push_unordered(RepairId::InnerDeclaration, at, end, Vec::new()),
            Lexeme::Doctype => edits.push_unordered(RepairId::Doctype, at, end, Vec::new()),
            Lexeme::StartTag => {
                let name =
                    slice.get(1..1 + name_span(slice.get(1..).unwrap_or_default())).unwrap_or_default();
                let target = match name.strip_prefix(prefix) {
                    Some(b"responseDate") if date.is_none() => Some(&mut date),
                    Some(name) if name == request_name && request.is_none() => Some(&mut request),
                    _ => None,
                };
                let wanted = target.is_some();
                let field_edits = if wanted { Some(&mut *edits) } else { None };
                let field = read_field(text, &mut lexemes, (at, end), name, field_edits);
                match target {
                    Some(slot) => *slot = Some(field),
                    None => edits.push_unordered(RepairId::UnknownElement, at, field.end, Vec::new()),
                }
                next = field.end;
            }
            _ => edits.push_unordered(RepairId::UnexpectedContent, at, end, Vec::new()),
        }
        at = next;
    }
    HeadFields { date, request }
}

/// Returns the edits that rename the fields of the head whose names are in another case. A field whose
/// right name occurs keeps its name.
pub(crate) fn field_name_case(text: &[u8], prefix: &[u8], request_name: &'static [u8]) -> Edits {
    let mut edits = Edits::default();
    for field in [b"responseDate".as_slice(), request_name] {
        if has_tag(text, &[prefix, field].concat()) {
            continue;
        }
        let mut lexemes = Lexemes::new(text);
        let mut at = 0;
        while at < text.len() {
            let (lexeme, end) = lexemes.at(at);
            let name_at = match lexeme {
                Lexeme::StartTag => at + 1,
                Lexeme::EndTag => at + 2,
                _ => end,
            };
            let name = text.get(name_at..end).unwrap_or_default();
            let local = name.get(..name_span(name)).and_then(|name| name.strip_prefix(prefix));
            if local.is_some_and(|local| local.eq_ignore_ascii_case(field)) {
                let local_at = name_at + prefix.len();
                edits.push_unordered(RepairId::ElementCase, local_at, local_at + field.len(), field.to_vec());
            }
            at = end;
        }
    }
    edits.sort();
    edits
}

/// Returns whether a start tag with this name begins in `text`.
fn has_tag(text: &[u8], name: &[u8]) -> bool {
    memmem::find_iter(text, &[b"<", name].concat())
        .any(|at| text.get(at + 1 + name.len()..).is_some_and(|rest| name_span(rest) == 0))
}

/// Returns whether an end tag is exactly that of an element with this name.
pub(crate) fn closes(end_tag: &[u8], name: &[u8]) -> bool {
    let rest = end_tag.get(2..).and_then(|tag| tag.strip_prefix(name));
    rest.is_some_and(|rest| name_span(rest) == 0 && trim(rest) == b">")
}

/// Reads the field with the start tag `at..tag_end`. It ends at its end tag, at a misspelling of it, or at
/// the next start tag. `lexemes` are those of `text`.
fn read_field(
    text: &[u8],
    lexemes: &mut Lexemes<'_>,
    (at, tag_end): (usize, usize),
    name: &[u8],
    edits: Option<&mut Edits>,
) -> HeadField {
    let mut end = tag_end;
    if text.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>")) {
        return HeadField { start: at, unclosed: false, content: (end, end), end };
    }
    while end < text.len() {
        let (lexeme, next) = lexemes.at(end);
        let slice = text.get(end..next).unwrap_or_default();
        let close = slice.get(2..2 + name_span(slice.get(2..).unwrap_or_default())).unwrap_or_default();
        if lexeme == Lexeme::EndTag && closes(slice, name) {
            return HeadField { start: at, unclosed: false, content: (tag_end, end), end: next };
        }
        if lexeme == Lexeme::EndTag
            && edits.is_some()
            && is_similar_name(split_name(close).1, split_name(name).1)
        {
            let tag = [b"</", name, b">"].concat();
            if let Some(edits) = edits {
                edits.push_unordered(RepairId::MismatchedEndTag, end, next, tag);
            }
            return HeadField { start: at, unclosed: false, content: (tag_end, end), end: next };
        }
        if matches!(lexeme, Lexeme::StartTag) && edits.is_some() {
            break;
        }
        end = next;
    }
    if edits.is_none() {
        return HeadField { start: at, unclosed: false, content: (tag_end, end), end };
    }
    let content = text.get(tag_end..end).unwrap_or_default();
    let end = tag_end + content.len() - trailing_blanks(content);
    HeadField { start: at, unclosed: true, content: (tag_end, end), end }
}

/// Returns whether an attribute of the request element is an argument with a legal value.
pub(crate) fn is_request_argument(name: &[u8], value: &[u8]) -> bool {
    let value = resolve(value);
    match name {
        b"verb" => Verb::from_bytes(&value).is_some(),
        b"identifier" | b"resumptionToken" => true,
        b"metadataPrefix" => Text::MetadataPrefix.is_valid(&value),
        b"from" | b"until" => Text::Datestamp.is_valid(&value),
        b"set" => Text::SetSpec.is_valid(&value),
        _ => false,
    }
}

/// Returns the argument of OAI-PMH whose name in another case is `name`, if no attribute has the right name.
fn argument_in_other_case(name: &[u8], tag: &[u8], attributes: &[LenientAttribute]) -> Option<&'static [u8]> {
    const ARGUMENTS: [&[u8]; 7] =
        [b"verb", b"identifier", b"metadataPrefix", b"from", b"until", b"set", b"resumptionToken"];
    let argument = ARGUMENTS.into_iter().find(|argument| argument.eq_ignore_ascii_case(name))?;
    let mut names = attributes.iter().filter_map(|attribute| tag.get(attribute.name.0..attribute.name.1));
    // The first of several is kept.
    (names.find(|other| other.eq_ignore_ascii_case(argument)) == Some(name)
        && names.all(|other| other != argument))
    .then_some(argument)
}

/// Escapes an attribute value. Tabs and line breaks become references, because XML normalizes them to
/// blanks.
pub(crate) fn escape_attribute(value: &str) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(value.len());
    write_attribute(value, &mut escaped);
    escaped
}

pub(crate) fn write_attribute(value: &str, escaped: &mut Vec<u8>) {
    let reference = |byte| match byte {
        b'\t' => Some(b"&#9;".as_slice()),
        b'\n' => Some(b"&#10;".as_slice()),
        b'\r' => Some(b"&#13;".as_slice()),
        _ => reference_for(byte),
    };
    write_escaped(value.as_bytes(), reference, escaped);
}

/// Returns the positions of bytes that are illegal in a URL.
pub(crate) fn stray_in_url(url: &[u8]) -> Vec<usize> {
    let mut fragment = false;
    let mut is_stray = |at: usize, byte: u8| {
        let digits = url.get(at + 1..at + 3).unwrap_or_default();
        match byte {
            b'%' => digits.len() < 2 || !digits.iter().all(u8::is_ascii_hexdigit),
            b'#' => std::mem::replace(&mut fragment, true),
            b'[' | b']' | b'<' | b'>' | b'"' | b' ' => true,
            _ => byte < 0x20,
        }
    };
    url.iter().enumerate().filter(|&(at, &byte)| is_stray(at, byte)).map(|(at, _)| at).collect()
}

pub(crate) fn percent_encode(byte: u8) -> Vec<u8> {
    format!("%{byte:02X}").into_bytes()
}

/// Percent-encodes bytes that are illegal in a URL. Returns nothing if the result is no URL.
pub(crate) fn escape_url(url: &[u8]) -> Vec<u8> {
    let mut escaped = url.to_vec();
    for at in stray_in_url(url).into_iter().rev() {
        escaped.splice(at..=at, percent_encode(url.get(at).copied().unwrap_or(b' ')));
    }
    if is_any_uri(&escaped) { escaped } else { Vec::new() }
}

/// Repairs the start tag of a field. Illegal attributes are removed; if the tag is still invalid, all are.
pub(crate) fn repair_field_tag(
    response: &mut Response,
    text: &[u8],
    field: HeadField,
    kind: FieldKind,
    edits: &mut Edits,
) {
    let id = kind.attribute_repair();
    let tag = text.get(field.start..field.content.0).unwrap_or_default();
    let mut inside = Edits::default();
    let read = read_lenient_tag(tag, 0, tag.len(), response.limits());
    let attributes = read.as_ref().map(|read| read.attributes.as_slice()).unwrap_or_default();
    for attribute in attributes {
        let name = tag.get(attribute.name.0..attribute.name.1).unwrap_or_default();
        if response.is_allowed_attribute(tag, attributes, name) || kind.allows(name, &attribute.value) {
            continue;
        }
        let set = resolve(&attribute.value);
        if kind == FieldKind::Request
            && let Some(argument) = argument_in_other_case(name, tag, attributes)
            && kind.allows(argument, &attribute.value)
        {
            attribute.rename(id, argument, &mut inside);
            continue;
        }
        match name {
            b"set" if kind == FieldKind::Request && !trim(&set).is_empty() => {
                attribute.set(RepairId::SetSpecEscape, &set_spec::escape(trim(&set)), &mut inside);
            }
            _ => attribute.remove(id, &mut inside),
        }
    }
    let removed: Vec<(usize, usize)> = inside.iter().map(|edit| (edit.start, edit.end)).collect();
    for edit in read.iter().flat_map(|read| read.edits.iter()) {
        if !removed.iter().any(|&(start, end)| edit.start >= start && edit.end <= end) {
            inside.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
        }
    }
    inside.sort();
    let strict = response.open_tag(&inside.apply(tag), response.root.context());
    let empty = tag.ends_with(b"/>");
    if read.is_none() || !strict.is_ok_and(|strict| strict.oai && strict.empty == empty) {
        let name_end = 1 + name_span(tag.get(1..).unwrap_or_default());
        let close = if empty { 2 } else { 1 };
        inside = Edits::default();
        inside.push(id, name_end, tag.len() - close, b"");
    }
    for edit in inside.iter() {
        edits.push_unordered(
            edit.id,
            field.start + edit.start,
            field.start + edit.end,
            edit.replacement.clone(),
        );
    }
}
