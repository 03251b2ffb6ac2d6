//! The head of a response of OAI-PMH 1.0 or 1.1.
//!
//! The prolog and the stage of the head use it.

use crate::catalog::RepairId;
use crate::lex::names::{is_legal_char, name_span, split_name, trim};
use crate::lex::search::{memchr, memmem};
use crate::lex::window::TextWindow;
use crate::passes::lenient_tag::{LenientTag, read_lenient_tag};
use crate::stages::envelope::misc_len;
use crate::stages::head::head_fields::{escape_attribute, escape_url, head_end, is_request_argument};
use crate::stages::response::{Response, StepResult, TopLevelTag};
use crate::text::escape::{escape, resolve};
use crate::v1::envelope::V1Response;
use crate::validate::schema::{Content, v1_item_of};
use oaimend_oai::Verb;

/// Returns the position of a root of 1.x that begins before `before`, and its tag.
///
/// # Errors
/// `NeedMore` if the text ends too early to decide.
pub(crate) fn find_v1_root(
    response: &mut Response,
    window: TextWindow<'_>,
    before: usize,
) -> Result<Option<(usize, LenientTag)>, StepResult> {
    let rest = window.text;
    let mut at = 0;
    let before = before.min(response.limits().junk_bytes_max + 1);
    while let Some(next) = memchr(b'<', rest.get(at..before).unwrap_or_default()) {
        at += next;
        let tag = rest.get(at..).unwrap_or_default();
        if tag.starts_with(b"<!--") {
            let Some(end) = memmem::find(tag, b"-->") else { return Ok(None) };
            at += end;
            continue;
        }
        let name = tag.get(1..).unwrap_or_default();
        let local = split_name(name.get(..name_span(name)).unwrap_or_default()).1;
        if Verb::from_bytes(local).is_some()
            && let Some(end) = response.tag_end(window.after(at))?
            && let Some(read) = read_lenient_tag(rest, at, at + end, response.limits())
            && let Some(found) = V1Response::from_root(rest, at, &read)
        {
            response.root.set_v1(found);
            return Ok(Some((at, read)));
        }
        at += 1;
    }
    Ok(None)
}

/// Returns the start of a list of 1.x, which has no start tag.
///
/// The list begins at its first item. If other text than white space and comments precedes this item, the
/// list begins after the head. A broken first item then belongs to the list. `found` is the first top-level
/// tag.
pub(crate) fn v1_list_start(
    response: &Response,
    text: &[u8],
    found: Result<Option<(usize, TopLevelTag)>, ()>,
) -> Result<Option<(usize, TopLevelTag)>, ()> {
    let Some(v1) = response.root.v1().filter(|v1| v1.verb != Verb::Identify) else {
        return found;
    };
    let at = match found {
        Ok(Some((at, _))) => at,
        _ => text.len(),
    };
    let head = text.get(..at).unwrap_or_default();
    let Some(end) = head_end(head, response.root.prefix()) else { return found };
    let begins = misc_len(head.get(end..).unwrap_or_default()) + end == at && at < text.len();
    if begins { found } else { Ok(Some((end, TopLevelTag::Verb(v1.verb)))) }
}

/// Converts `requestURL` to the request element and keeps the facts needed later.
pub(crate) fn upgrade_request(
    response: &mut Response,
    text: &[u8],
    content: (usize, usize),
) -> (RepairId, Vec<u8>) {
    let resolved = resolve(text.get(content.0..content.1).unwrap_or_default());
    let url = trim(&resolved);
    let query_at = memchr(b'?', url).unwrap_or(url.len());
    let query = url.get(query_at + 1..).unwrap_or_default();
    let mut arguments: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for pair in query.split(|&byte| matches!(byte, b'&' | b';')) {
        let equals = memchr(b'=', pair).unwrap_or(pair.len());
        let name = pair.get(..equals).unwrap_or_default();
        let Some(value) = decode_query_value(pair.get(equals + 1..).unwrap_or_default()) else { continue };
        let value = escape_attribute(&value);
        let is_new = name != b"verb" && arguments.iter().all(|(other, _)| other != name);
        if is_new && is_request_argument(name, &value) {
            arguments.push((name.to_vec(), value));
        }
    }
    let is_dc_argument = |name: &[u8], value: &[u8]| name == b"metadataPrefix" && value == b"oai_dc";
    let configured = response.config().request.as_ref().map(|request| {
        request.arguments.iter().any(|(name, value)| is_dc_argument(name.as_bytes(), value.as_bytes()))
    });
    let is_in_url = arguments.iter().any(|(name, value)| is_dc_argument(name, value));
    let prefix = response.written_prefix().to_vec();
    let mut element = [b"<", prefix.as_slice(), b"request"].concat();
    if let Some(v1) = response.root.v1_mut() {
        v1.asks_for_dc = configured.unwrap_or(is_in_url);
        element.extend_from_slice(&[b" verb=\"", v1.verb.as_bytes(), b"\""].concat());
    }
    for (name, value) in &arguments {
        element.extend_from_slice(&[b" ", name.as_slice(), b"=\"", value, b"\""].concat());
    }
    let base = escape(&escape_url(url.get(..query_at).unwrap_or_default()));
    element.extend_from_slice(&[b">", base.as_slice(), b"</", &prefix, b"request>"].concat());
    (RepairId::V1Request, element)
}

/// Returns the kind of a top-level tag in a response of 1.x.
pub(crate) fn v1_top_level_tag(v1: &V1Response, is_open: bool, local: &[u8]) -> Option<TopLevelTag> {
    let item = v1_item_of(v1.verb);
    let begins = match (&item.content, v1.verb) {
        (Content::Children(children), Verb::Identify) => children.iter().any(|child| child.name == local),
        (_, Verb::ListIdentifiers) if local == b"identifier" => true,
        _ => local == item.name || local == b"resumptionToken" && v1.verb.is_list(),
    };
    if is_open {
        begins.then_some(TopLevelTag::Verb(v1.verb))
    } else if local == v1.verb.as_bytes() {
        Some(TopLevelTag::Verb(v1.verb))
    } else {
        (local == b"OAI-PMH").then_some(TopLevelTag::RootEnd)
    }
}

/// Decodes a value of a query string; `None` if XML does not allow its characters.
fn decode_query_value(value: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        let hex = value.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match (byte, hex.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(escaped)) => {
                bytes.push(escaped);
                at += 2;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        at += 1;
    }
    String::from_utf8(bytes).ok().filter(|text| text.chars().all(|c| is_legal_char(c as u32)))
}
