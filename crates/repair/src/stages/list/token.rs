//! The resumptionToken of a list: one, after the last item, with the right name and legal attributes.
//!
//! The text between items is checked with it. A token is written only if its value is certain.

use crate::catalog::RepairId;
use crate::lex::lexeme::{Lexeme, is_cut, next_lexeme, start_tag_end, start_tag_end_so_far};
use crate::lex::names::{name_span, split_name};
use crate::lex::search::memchr;
use crate::lex::window::TextWindow;
use crate::output::head_buffer::PartRole;
use crate::passes::lenient_tag::read_lenient_tag;
use crate::sink::Sink;
use crate::stages::envelope::{is_strict_field, strip_envelope_prefixes};
use crate::stages::head::top_level_tag::find_top_level_tag;
use crate::stages::item_search::{is_item, is_token};
use crate::stages::list::emit::{abandon_list, release_list};
use crate::stages::list::incomplete::must_abort;
use crate::stages::list::list_parts::HeldToken;
use crate::stages::list::state::List;
use crate::stages::list::token_element::{
    TokenRead, read_token, read_total_elements, token_edits, token_facts, token_value,
};
use crate::stages::response::{ListStepResult, Response, StepResult};
use crate::stages::step::Step;
use crate::text::characters::repair_characters;
use crate::text::edits::Edits;
use crate::text::node_rules::CharacterRules;
use crate::validate::envelope_names::TagMatch;
use oaimend_oai::{Verb, datestamp};

/// The construct after a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenFollower {
    Item,
    Token,
    ListEnd,
}

/// Reads a resumptionToken between items.
pub(crate) fn step_token(step: &mut Step<'_, impl Sink>, list: &mut List) -> ListStepResult {
    let rest = step.window.text;
    let bytes_max = step.response.limits().head_bytes_max;
    let window = step.window.up_to(bytes_max);
    let within = window.text;
    let (close, end) = match read_list_token(step.response, list, window) {
        TokenRead::NeedMore => return ListStepResult::Stay(step.need_more()),
        TokenRead::Unreadable => return quarantine_token(step, list, within),
        TokenRead::Whole { close, end } => (close, end),
    };
    if list.token.is_written() {
        // A list has one token, and it is already written.
        return ListStepResult::Stay(step.change(RepairId::RepeatedToken, end, b""));
    }
    let Some((follower, follower_at)) = find_follower(step.response, list, window.after(end)) else {
        return ListStepResult::Stay(step.need_more());
    };
    if follower == TokenFollower::ListEnd && !window.is_last {
        // A second document with items and its own token can follow.
        return ListStepResult::Stay(step.need_more());
    }
    step.response.count_failed(follower_at);
    let Some(edits) = repair_token(step.response, rest.get(..end).unwrap_or_default(), close) else {
        return quarantine_token(step, list, within);
    };
    if follower == TokenFollower::ListEnd && must_abort(step.response) {
        abandon_list(step.response, list);
        return ListStepResult::Leave(StepResult::Settled(0));
    }
    let element = rest.get(..end).unwrap_or_default();
    let name = [step.response.root.prefix(), b"resumptionToken"].concat();
    let is_spelt = element.get(1..).is_some_and(|tag| tag.get(..name_span(tag)) == Some(name.as_slice()));
    let is_closed = element.ends_with(b"/>") || element.ends_with(&[b"</", name.as_slice(), b">"].concat());
    let is_sound = is_spelt && is_closed;
    ListStepResult::Stay(place_token(step, list, (end, is_sound), &edits, follower))
}

/// Quarantines a token that is truncated or whose value is uncertain.
///
/// The list continues after it and counts as incomplete.
fn quarantine_token(step: &mut Step<'_, impl Sink>, list: &mut List, within: &[u8]) -> ListStepResult {
    let tag_end = start_tag_end(within).unwrap_or(1);
    let Some(len) = memchr(b'<', within.get(tag_end..).unwrap_or_default()) else {
        abandon_list(step.response, list);
        return ListStepResult::Leave(StepResult::Settled(0));
    };
    ListStepResult::Stay(step.quarantine_unread(tag_end + len))
}

fn place_token(
    step: &mut Step<'_, impl Sink>,
    list: &mut List,
    (end, is_sound): (usize, bool),
    edits: &Edits,
    follower: TokenFollower,
) -> StepResult {
    let rest = step.window.text;
    list.token.note_read();
    let total_elements = read_total_elements(rest.get(..end).unwrap_or_default());
    let written = edits.apply(rest.get(..end).unwrap_or_default());
    let value = token_value(&written);
    let empty = value.is_empty();
    // A damaged token may be truncated, so it does not replace another one.
    let is_weaker = list
        .token
        .held()
        .as_ref()
        .is_some_and(|earlier| empty || !is_sound && !token_value(earlier).is_empty());
    let id = match follower {
        TokenFollower::ListEnd if is_weaker => RepairId::RepeatedToken,
        TokenFollower::ListEnd
            if empty && list.token.held().is_none() && is_empty_list(step.response, &written) =>
        {
            list.token.note_empty_list();
            RepairId::EmptyList
        }
        TokenFollower::ListEnd => {
            release_list(step, list);
            list.token.note_written();
            step.output().token(&token_facts(&written, &value, total_elements));
            return step.keep_edited(PartRole::Plain, end, edits);
        }
        TokenFollower::Token => RepairId::RepeatedToken,
        TokenFollower::Item => RepairId::ElementOrder,
    };
    if !is_weaker && !list.token.ends_empty_list() {
        list.token.hold(HeldToken { element: written.into_owned(), total_elements });
    }
    step.remove_without_loss(id, 0..end);
    StepResult::Settled(end)
}

/// Returns whether a list that ends with the empty token `written` is no list: no item of it is kept, and it is
/// the first page of its list or has an error. After a token, the empty token is the end of the list.
pub(crate) fn is_empty_list(response: &Response, written: &[u8]) -> bool {
    let output = &response.output;
    let facts = response.request.facts();
    // The request element of some sources lacks the token that was requested.
    let cursor = token_facts(written, b"", None).cursor;
    let is_later_page = facts.resumes || !facts.is_configured && cursor.is_some_and(|cursor| cursor > 0);
    !output.is_open() && (!is_later_page || output.contains_error()) && !response.is_off(RepairId::EmptyList)
}

/// Finds the end of the token at the start of the window.
fn read_list_token(response: &Response, list: &List, window: TextWindow<'_>) -> TokenRead {
    let rest = window.text;
    let Some(tag_end) = start_tag_end_so_far(window) else {
        return if window.is_last { TokenRead::Unreadable } else { TokenRead::NeedMore };
    };
    if rest.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>")) {
        return TokenRead::Whole { close: None, end: tag_end };
    }
    read_token(window, tag_end, |lexeme, text| match lexeme {
        Lexeme::EndTag => ends_list(response, text),
        _ => ends_token(response, list, text),
    })
}

/// Returns whether a start tag inside a token shows that the token was never closed.
fn ends_token(response: &Response, list: &List, text: &[u8]) -> bool {
    let name = text.get(1..1 + name_span(text.get(1..).unwrap_or_default())).unwrap_or_default();
    let local = split_name(name).1;
    is_item(response, list, text)
        || list.names.starts_item(text) == TagMatch::Yes
        || is_token(response, name)
        || local == b"OAI-PMH"
        || Verb::from_bytes(local).is_some()
}

fn ends_list(response: &Response, tag: &[u8]) -> bool {
    let name = tag.get(2..2 + name_span(tag.get(2..).unwrap_or_default())).unwrap_or_default();
    name.strip_prefix(response.root.prefix()).is_some_and(|local| {
        local == b"OAI-PMH"
            || Verb::from_bytes(local).is_some()
            || response.verb_element.name() == Some(local)
    })
}

/// Returns the construct after a token, and its position.
fn find_follower(response: &Response, list: &List, window: TextWindow<'_>) -> Option<(TokenFollower, usize)> {
    let after = window.text;
    let mut at = 0;
    // Documents that begin before this position do not continue the list.
    let mut other_until = 0;
    loop {
        let (lexeme, end) = next_lexeme(after, at);
        let text = after.get(at..end).unwrap_or_default();
        if at >= after.len() {
            return window.is_last.then_some((TokenFollower::ListEnd, at));
        }
        match lexeme {
            Lexeme::StartTag => {
                let name = text.get(1..1 + name_span(text.get(1..)?))?;
                let local = name.strip_prefix(response.root.prefix()).unwrap_or_default();
                if is_token(response, name) {
                    // An empty token after this one does not count.
                    let token = after.get(at..)?;
                    match read_list_token(response, list, window.after(at)) {
                        TokenRead::Whole { end, .. } if token_value(token.get(..end)?).is_empty() => {
                            at += end;
                            continue;
                        }
                        TokenRead::NeedMore => return None,
                        // An unreadable token goes to quarantine and does not replace this one.
                        TokenRead::Unreadable => {}
                        TokenRead::Whole { .. } => return Some((TokenFollower::Token, at)),
                    }
                }
                if local == list.names.element.name {
                    return Some((TokenFollower::Item, at));
                }
                if local == b"OAI-PMH" && at >= other_until && !response.root.is_v1() {
                    match second_list_follows(response, list, window.after(at))? {
                        (true, _) => return Some((TokenFollower::Item, at)),
                        (false, len) => other_until = at + len,
                    }
                }
            }
            _ if !window.is_last && is_cut(after, at, (lexeme, end)) => return None,
            _ => {}
        }
        at = end;
    }
}

/// Returns whether the document that begins here continues the list, and the position that decides it.
fn second_list_follows(response: &Response, list: &List, window: TextWindow<'_>) -> Option<(bool, usize)> {
    let text = window.text;
    let from = start_tag_end_so_far(window)?;
    match find_top_level_tag(response, window.after(from)) {
        Ok(Some((at, crate::stages::response::TopLevelTag::Verb(verb)))) => {
            Some((verb == list.verb(), from + at))
        }
        Ok(Some((at, _))) if window.is_last => Some((false, from + at)),
        Ok(None) if window.is_last => Some((false, text.len())),
        _ => None,
    }
}

fn repair_token(response: &mut Response, token: &[u8], close: Option<usize>) -> Option<Edits> {
    let name = [response.root.prefix(), b"resumptionToken"].concat();
    let plain = token_edits(token, start_tag_end(token)?, close, &name);
    let text = plain.apply(token);
    let rules =
        CharacterRules { entities: response.root.entities(), ..CharacterRules::plain(response.limits()) };
    let characters = repair_characters(&text, rules);
    let plain = plain.then(&text, characters.clone());
    let text = characters.apply(&text);
    let tag_end = start_tag_end(&text)?;
    let tag = read_lenient_tag(&text, 0, tag_end, response.limits())?;
    let mut edits = Edits::default();
    for edit in tag.edits.iter() {
        edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
    }
    for attribute in &tag.attributes {
        let name = text.get(attribute.name.0..attribute.name.1)?;
        let value = attribute.value.as_slice();
        let id = match name {
            b"expirationDate" if is_date_time(value) => continue,
            b"completeListSize" if is_number(value) && value.iter().any(|&byte| byte != b'0') => continue,
            b"cursor" if is_number(value) => continue,
            b"expirationDate" | b"completeListSize" | b"cursor" => RepairId::TokenAttribute,
            _ if response.is_allowed_attribute(&text, &tag.attributes, name) => continue,
            _ => RepairId::EnvelopeAttribute,
        };
        attribute.remove(id, &mut edits);
    }
    edits.sort();
    let strict = is_strict_field(response, &edits.apply(&text), b"resumptionToken");
    strict.then(|| strip_envelope_prefixes(response, token, plain.then(&text, edits)))
}

fn is_number(value: &[u8]) -> bool {
    !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit)
}

/// `xs:dateTime`.
fn is_date_time(value: &[u8]) -> bool {
    let Some(seconds) = value.get(..19) else { return false };
    let mut rest = value.get(19..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return false;
        }
        rest = fraction.get(digits..).unwrap_or_default();
    }
    let zone = match rest {
        b"" | b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            let digits = [h1, h2, m1, m2];
            digits.iter().all(|byte| byte.is_ascii_digit()) && (*h1, *h2) <= (b'1', b'3') && *m1 < b'6'
        }
        _ => false,
    };
    zone && datestamp::is_legal(&[seconds, b"Z"].concat())
}
