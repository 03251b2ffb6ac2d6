//! The repair of a list without its start tag: its items are directly in the root.
//!
//! The stage of the head uses it.
//!
//! The first item and the request together identify the list. If they disagree or allow two lists, nothing
//! is added. The decision depends on the text before the first item and on its name.

use crate::catalog::{NotOai, RepairId};
use crate::lex::lexeme::{Lexeme, Lexemes, is_cut};
use crate::lex::window::TextWindow;
use crate::output::head_buffer::PartRole;
use crate::sink::Sink;
use crate::stages::envelope::local_name;
use crate::stages::head::repair_head::{count_lost_item, read_whole_head};
use crate::stages::head::verb_element::{request_of_head, set_list_verb};
use crate::stages::item_search::{begins_item, new_list};
use crate::stages::response::{Response, Stage, StepResult};
use crate::stages::step::Step;
use crate::validate::envelope_names::TagMatch;
use crate::validate::schema::item_of;
use oaimend_oai::Verb;

/// Returns the position of the first item before the first top-level tag of `text`, and the verb of its
/// list.
///
/// `top_level_tag` is the position of that tag.
///
/// # Errors
/// Fails if more text is needed.
pub(crate) fn unopened_list(
    response: &mut Response,
    window: TextWindow<'_>,
    top_level_tag: Option<usize>,
) -> Result<Option<(usize, Verb)>, ()> {
    let text = window.text;
    if response.root.is_v1() || response.is_off(RepairId::UnopenedList) {
        return Ok(None);
    }
    let end = top_level_tag.unwrap_or(text.len());
    let Some((at, verbs)) = find_first_item(response, text, end) else { return Ok(None) };
    let item = text.get(at..).unwrap_or_default();
    if let Some(requested) = request_of_head(response, text.get(..at).unwrap_or_default()).verb {
        return Ok(verbs.contains(&requested).then_some((at, requested)));
    }
    match verbs.as_slice() {
        [only] if begins_item(response, item) == TagMatch::Yes => {
            let is_part = *only == Verb::ListIdentifiers && is_header_of_record(response, window.after(at))?;
            Ok((!is_part).then_some((at, *only)))
        }
        _ => Ok(None),
    }
}

/// Returns whether the header that `text` begins with belongs to a record that lost its start tag: its record
/// continues or ends after it. Then the list is one of records, and their metadata must stay.
fn is_header_of_record(response: &Response, window: TextWindow<'_>) -> Result<bool, ()> {
    let text = window.text;
    let mut at = 0;
    let mut has_ended = false;
    let mut lexemes = Lexemes::new(text);
    while at < text.len() {
        let (lexeme, next) = lexemes.at(at);
        if !window.is_last && is_cut(text, at, (lexeme, next)) {
            return Err(());
        }
        let is_end_tag = lexeme == Lexeme::EndTag;
        let local = local_name(response, text, at + usize::from(is_end_tag));
        match lexeme {
            Lexeme::EndTag if local == b"header" => has_ended = true,
            Lexeme::StartTag | Lexeme::EndTag if has_ended => {
                return Ok(matches!(local, b"metadata" | b"about" | b"record"));
            }
            _ => {}
        }
        at = next;
    }
    if window.is_last { Ok(false) } else { Err(()) }
}

/// Returns the position of the first item before `end` that is in no other element, and the verbs that
/// allow it.
fn find_first_item(response: &Response, text: &[u8], end: usize) -> Option<(usize, Vec<Verb>)> {
    // The number of open elements that do not belong to the head.
    let mut depth = 0_usize;
    let mut at = 0;
    let mut lexemes = Lexemes::new(text);
    while at < end {
        let (lexeme, next) = lexemes.at(at);
        let tag = text.get(at..next).unwrap_or_default();
        match lexeme {
            Lexeme::StartTag => {
                let local = local_name(response, text, at);
                let verbs: Vec<Verb> = Verb::ALL
                    .iter()
                    .copied()
                    .filter(|verb| *verb != Verb::Identify && item_of(*verb).name == local)
                    .collect();
                if depth == 0 && !verbs.is_empty() {
                    return Some((at, verbs));
                }
                let is_of_the_head = matches!(local, b"responseDate" | b"request");
                depth += usize::from(!is_of_the_head && !tag.ends_with(b"/>"));
            }
            Lexeme::EndTag => {
                let local = local_name(response, text, at + 1);
                let is_of_the_head = matches!(local, b"responseDate" | b"request");
                depth = depth.saturating_sub(usize::from(!is_of_the_head));
            }
            _ => {}
        }
        at = next;
    }
    None
}

/// Emits the head, which is the first `at` bytes of the window, and the missing start tag of the list.
pub(crate) fn open_missing_list(step: &mut Step<'_, impl Sink>, verb: Verb, at: usize) -> StepResult {
    let rest = step.window.text;
    let Some(head) = read_whole_head(step.response, rest.get(..at).unwrap_or_default()) else {
        return step.response.refuse(NotOai::BrokenEnvelope);
    };
    step.response.verb_element.reset();
    set_list_verb(step.response, verb);
    let mut list = new_list(step.response, verb);
    list.set_concluded(step.response.request.facts().verb.is_none());
    step.response.tags_mut().keep_contexts();
    let open = [b"<", step.response.written_prefix(), list.written_name(), b">"].concat();
    count_lost_item(step.response, verb, rest, &head);
    let result = step.keep_edited(PartRole::Plain, at, &head);
    step.insert(PartRole::List, RepairId::UnopenedList, at, &open);
    list.open(open);
    step.response.enter(Stage::List(Box::new(list)));
    result
}
