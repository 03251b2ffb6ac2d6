//! A second OAI-PMH document in the same body.
//!
//! The stages of errors and of lists call this module at the end of a document. A second document with the
//! same verb continues the list of the first one.

use crate::catalog::RepairId;
use crate::lex::lexeme::start_tag_end;
use crate::sink::Sink;
use crate::stages::head::foreign::find_root;
use crate::stages::head::top_level_tag::find_top_level_tag;
use crate::stages::head::verb_element::verb_element;
use crate::stages::item_search::new_list;
use crate::stages::list::state::List;
use crate::stages::response::{Response, Stage, Step, TopLevelTag};
use oaimend_oai::Verb;

/// Continues the list with a second document. The envelope tags between the two are removed.
pub(crate) fn continue_with_second_list(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    sink: &mut impl Sink,
) -> Option<Step> {
    let rest = second_document_window(response, rest);
    let (verb_at, verb) = second_verb(response, rest)?;
    if verb != list.verb || verb == Verb::Identify || verb == Verb::GetRecord {
        return None;
    }
    let tag = rest.get(verb_at..)?;
    let end = verb_at
        + start_tag_end(tag).filter(|&end| tag.get(..end).is_some_and(|tag| !tag.ends_with(b"/>")))?;
    response.in_second_document = true;
    Some(response.change(RepairId::ConcatenatedDocuments, rest, end, b"", sink))
}

/// Replaces a first document without items, such as one with only errors, by a second one that has a list.
pub(crate) fn replace_by_second_document(
    response: &mut Response,
    rest: &[u8],
    sink: &mut impl Sink,
) -> Option<Step> {
    let rest = second_document_window(response, rest);
    let (verb_at, named) = second_verb(response, rest)?;
    let verb = verb_element(response, rest, verb_at, named, true).ok()?;
    response.stage = Stage::List(Box::new(new_list(response, verb)));
    Some(response.change(RepairId::ConcatenatedDocuments, rest, verb_at, b"", sink))
}

/// Continues the list at a root start tag inside an unclosed list.
pub(crate) fn second_document_in_list(
    response: &mut Response,
    list: &mut List,
    rest: &[u8],
    last: bool,
    sink: &mut impl Sink,
) -> Option<Step> {
    if !last && rest.len() <= response.limits().head_bytes_max {
        return Some(response.need_more(rest));
    }
    continue_with_second_list(response, list, rest, sink)
}

/// Returns the part of `rest` in which a second document is searched. The part does not depend on the
/// chunks of the input.
pub(crate) fn second_document_window<'t>(response: &Response, rest: &'t [u8]) -> &'t [u8] {
    rest.get(..rest.len().min(response.limits().head_bytes_max)).unwrap_or_default()
}

/// Returns the verb element of the next document in `within`.
fn second_verb(response: &Response, within: &[u8]) -> Option<(usize, Verb)> {
    if response.v1.is_some() {
        return None;
    }
    let root = find_root(within)?;
    let tag = within.get(root..)?;
    let from = root + start_tag_end(tag)?;
    match find_top_level_tag(response, within.get(from..)?, true) {
        Ok(Some((at, TopLevelTag::Verb(verb)))) => Some((from + at, verb)),
        _ => None,
    }
}
