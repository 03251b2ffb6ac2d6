//! A second OAI-PMH document in the same body.
//!
//! The stages of errors and of lists call this module at the end of a document. A second document with the
//! same verb continues the list of the first one.

use crate::catalog::RepairId;
use crate::lex::lexeme::start_tag_end;
use crate::lex::window::TextWindow;
use crate::sink::Sink;
use crate::stages::head::foreign::find_root;
use crate::stages::head::top_level_tag::find_top_level_tag;
use crate::stages::head::verb_element::verb_element;
use crate::stages::item_search::new_list;
use crate::stages::list::state::List;
use crate::stages::response::{Response, Stage, StepResult, TopLevelTag};
use crate::stages::step::Step;
use oaimend_oai::Verb;

/// Continues the list with a second document. The envelope tags between the two are removed.
pub(crate) fn continue_with_second_list(
    step: &mut Step<'_, impl Sink>,
    list: &mut List,
) -> Option<StepResult> {
    let rest = step.window.text;
    let rest = second_document_window(step.response, rest);
    let (verb_at, verb) = second_verb(step.response, rest)?;
    if verb != list.verb() || verb == Verb::Identify || verb == Verb::GetRecord {
        return None;
    }
    let tag = rest.get(verb_at..)?;
    let end = verb_at
        + start_tag_end(tag).filter(|&end| tag.get(..end).is_some_and(|tag| !tag.ends_with(b"/>")))?;
    step.response.position.enter_second_document();
    Some(step.change(RepairId::ConcatenatedDocuments, end, b""))
}

/// Replaces a first document without items, such as one with only errors, by a second one that has a list.
pub(crate) fn replace_by_second_document(step: &mut Step<'_, impl Sink>) -> Option<StepResult> {
    let rest = step.window.text;
    let rest = second_document_window(step.response, rest);
    let (verb_at, named) = second_verb(step.response, rest)?;
    let verb = verb_element(step.response, TextWindow::whole(rest), verb_at, named).ok()?;
    step.response.enter(Stage::List(Box::new(new_list(step.response, verb))));
    Some(step.change(RepairId::ConcatenatedDocuments, verb_at, b""))
}

/// Continues the list at a root start tag inside an unclosed list.
pub(crate) fn second_document_in_list(step: &mut Step<'_, impl Sink>, list: &mut List) -> Option<StepResult> {
    let rest = step.window.text;
    if !step.window.is_last && rest.len() <= step.response.limits().head_bytes_max {
        return Some(step.need_more());
    }
    continue_with_second_list(step, list)
}

/// Returns the part of `rest` in which a second document is searched. The part does not depend on the
/// chunks of the input.
pub(crate) fn second_document_window<'t>(response: &Response, rest: &'t [u8]) -> &'t [u8] {
    rest.get(..rest.len().min(response.limits().head_bytes_max)).unwrap_or_default()
}

/// Returns the verb element of the next document in `within`.
fn second_verb(response: &Response, within: &[u8]) -> Option<(usize, Verb)> {
    if response.root.is_v1() {
        return None;
    }
    let root = find_root(within)?;
    let tag = within.get(root..)?;
    let from = root + start_tag_end(tag)?;
    match find_top_level_tag(response, TextWindow::whole(within.get(from..)?)) {
        Ok(Some((at, TopLevelTag::Verb(verb)))) => Some((from + at, verb)),
        _ => None,
    }
}
