//! The stage of the head: from the root's start tag to the verb element or an error.
//!
//! It contains responseDate and request. The whole head is read at once, because its elements may change
//! places. It has a few hundred bytes. Errors after it are held until it is certain that no list follows.

use crate::catalog::{NotOai, RepairId};
use crate::lex::lexeme::{Lexeme, Lexemes, is_good_comment, is_xml_target};
use crate::lex::names::{blanks, trailing_blanks, trim};
use crate::output::head_buffer::PartRole;
use crate::sink::Sink;
use crate::stages::head::repair_head::{count_lost_item, read_whole_head};
use crate::stages::head::top_level_tag::find_top_level_tag;
use crate::stages::head::unopened_list::{open_missing_list, unopened_list};
use crate::stages::head::v1_head::v1_list_start;
use crate::stages::head::verb_element::{
    RequestSearch, misnamed_verb_element, requested_verb_element, verb_element,
};
use crate::stages::item_search::{begins_item, contains_any_item, new_list};
use crate::stages::response::{Response, Stage, StepResult, TopLevelTag};
use crate::stages::step::Step;
use crate::text::characters::repair_characters;
use crate::text::edits::Edits;
use crate::text::node_rules::CharacterRules;
use crate::validate::envelope_names::TagMatch;

/// Reads up to the first top-level tag after the head.
pub(crate) fn step_head(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let bytes_max = step.response.limits().head_bytes_max;
    let bounded = rest.len() > bytes_max;
    let window = step.window.up_to(bytes_max);
    let found = find_top_level_tag(step.response, window);
    let found = if window.is_last || matches!(found, Ok(Some(_))) {
        v1_list_start(step.response, window.text, found)
    } else {
        found
    };
    let mut search = RequestSearch::new(window.text);
    let by_head = |response: &mut Response, end: usize| search.verb_before(response, end);
    let found = misnamed_verb_element(step.response, window, found, by_head);
    let mut search = RequestSearch::new(window.text);
    let by_head = |response: &mut Response, end: usize| search.verb_before(response, end);
    let found = found.and_then(|found| requested_verb_element(step.response, window, found, by_head));
    let unopened = found.and_then(|found| unopened_list(step.response, window, found.map(|(at, _)| at)));
    if let Ok(Some((at, verb))) = unopened {
        return open_missing_list(step, verb, at);
    }
    let (at, top_level_tag) = match unopened.and(found) {
        Ok(Some(found)) => found,
        _ if bounded => return step.response.refuse(NotOai::BrokenEnvelope),
        _ if step.window.is_last => return step.response.refuse(NotOai::NothingKept),
        _ => return step.need_more(),
    };
    let Some(edits) = read_whole_head(step.response, rest.get(..at).unwrap_or_default()) else {
        return step.response.refuse(NotOai::BrokenEnvelope);
    };
    let stage = match top_level_tag {
        TopLevelTag::Verb(named) => match verb_element(step.response, window, at, named) {
            Ok(verb) => Stage::List(Box::new(new_list(step.response, verb))),
            Err(()) => return step.need_more(),
        },
        TopLevelTag::Error => Stage::Errors,
        TopLevelTag::RootEnd => return step.response.refuse(NotOai::NothingKept),
    };
    step.response.enter(stage);
    if let TopLevelTag::Verb(verb) = top_level_tag {
        count_lost_item(step.response, verb, rest, &edits);
    }
    step.keep_edited(PartRole::Plain, at, &edits)
}

/// Emits the text before the next top-level tag. White space and comments stay; everything else is removed.
pub(crate) fn emit_misc(step: &mut Step<'_, impl Sink>, at: usize) -> StepResult {
    let rest = step.window.text;
    let text = rest.get(..at).unwrap_or_default();
    let mut edits = Edits::default();
    let mut from = 0;
    let mut lexemes = Lexemes::new(text);
    while from < text.len() {
        let (lexeme, end) = lexemes.at(from);
        let slice = text.get(from..end).unwrap_or_default();
        let good = match lexeme {
            Lexeme::Text => trim(slice).is_empty(),
            Lexeme::Comment => {
                is_good_comment(slice)
                    && repair_characters(slice, CharacterRules::plain(step.response.limits())).is_empty()
            }
            Lexeme::Instruction => {
                !is_xml_target(slice)
                    && repair_characters(slice, CharacterRules::plain(step.response.limits())).is_empty()
            }
            _ => false,
        };
        if lexeme == Lexeme::StartTag {
            let tag = rest.get(from..).unwrap_or_default();
            step.response.doubts.note_dropped(begins_item(step.response, tag) == TagMatch::Yes);
        }
        if !good && lexeme == Lexeme::Instruction {
            // A declaration without its end mark extends to the end mark of another one.
            step.response.doubts.note_dropped(contains_any_item(step.response, slice));
        }
        if !good {
            let (start, stop) = if lexeme == Lexeme::Text {
                (from + blanks(slice), end - trailing_blanks(slice))
            } else {
                (from, end)
            };
            edits.push(RepairId::UnexpectedContent, start, stop, b"");
        }
        from = end;
    }
    step.keep_edited(PartRole::Plain, at, &edits)
}
