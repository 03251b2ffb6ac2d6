//! The resumptionToken of a list: one, after the last item, under its name, with legal attributes.

use memchr::memchr;

use super::catalogue::RepairId;
use super::edits::Edits;
use super::engine::{Engine, List, Step};
use super::gate::Role;
use super::lexeme::{Lexeme, is_cut, next_lexeme, start_tag_end, start_tag_end_so_far};
use super::list::Next;
use super::loose::read_loose;
use super::name::{name_span, split_name};
use super::schema::Verb;
use super::sink::Sink;
use super::skeleton::{Answer, is_token_name};
use super::text::{Guesses, mend_characters};
use super::token_element::{TokenRead, plain_token, read_token, token_facts, token_value};
use crate::oai::datestamp;

/// What stands behind a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follower {
    Item,
    Token,
    ListEnd,
}

impl Engine {
    /// Whether `name` is that of a resumptionToken, or one that means it.
    pub(super) fn is_token(&self, name: &[u8]) -> bool {
        name.strip_prefix(self.prefix.as_slice()) == Some(b"resumptionToken")
            || !self.is_off(RepairId::MisspeltToken) && is_token_name(split_name(name).1)
    }

    /// A resumptionToken between items.
    pub(super) fn token(&mut self, list: &mut List, rest: &[u8], last: bool, sink: &mut impl Sink) -> Next {
        let bytes_max = self.limits().head_bytes_max;
        let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
        let complete = last || rest.len() > bytes_max;
        let (close, end) = match self.read_token(list, within, complete) {
            TokenRead::NeedMore => return Next::Stay(self.need_more(rest)),
            TokenRead::Unreadable => return self.unreadable_token(list, rest, within, sink),
            TokenRead::Whole { close, end } => (close, end),
        };
        if list.token_written {
            // One is out; another cannot stand beside it.
            return Next::Stay(self.change(RepairId::RepeatedToken, rest, end, b"", sink));
        }
        let behind = within.get(end..).unwrap_or_default();
        let Some((follower, follower_at)) = self.follower(list, behind, complete) else {
            return Next::Stay(self.need_more(rest));
        };
        if follower == Follower::ListEnd && !complete {
            // A second document may follow, with items and a token of its own.
            return Next::Stay(self.need_more(rest));
        }
        self.lookahead.in_vain(follower_at);
        let Some(edits) = self.mend_token(rest.get(..end).unwrap_or_default(), close) else {
            return self.unreadable_token(list, rest, within, sink);
        };
        if follower == Follower::ListEnd && self.must_break_off() {
            self.leave_broken_list(list);
            return Next::Leave(Step::Settled(0));
        }
        let element = rest.get(..end).unwrap_or_default();
        let name = [self.prefix.as_slice(), b"resumptionToken"].concat();
        let is_spelt = element.get(1..).is_some_and(|tag| tag.get(..name_span(tag)) == Some(name.as_slice()));
        let is_closed =
            element.ends_with(b"/>") || element.ends_with(&[b"</", name.as_slice(), b">"].concat());
        let is_sound = is_spelt && is_closed;
        Next::Stay(self.place_token(list, rest, (end, is_sound), &edits, follower, sink))
    }

    /// A token that was cut is never written, and neither is one whose value is not certain. The list
    /// goes on after it and counts as incomplete.
    fn unreadable_token(
        &mut self,
        list: &mut List,
        rest: &[u8],
        within: &[u8],
        sink: &mut impl Sink,
    ) -> Next {
        let tag_end = start_tag_end(within).unwrap_or(1);
        let Some(len) = memchr(b'<', within.get(tag_end..).unwrap_or_default()) else {
            self.leave_broken_list(list);
            return Next::Leave(Step::Settled(0));
        };
        Next::Stay(self.put_aside_unread(rest, tag_end + len, sink))
    }

    fn place_token(
        &mut self,
        list: &mut List,
        rest: &[u8],
        (end, is_sound): (usize, bool),
        edits: &Edits,
        follower: Follower,
        sink: &mut impl Sink,
    ) -> Step {
        list.token_seen = true;
        let written = edits.apply(rest.get(..end).unwrap_or_default());
        let value = token_value(&written);
        let empty = value.is_empty();
        // A damaged one may have been cut: it does not take the place of another one.
        let is_weaker =
            list.token.as_ref().is_some_and(|earlier| empty || !is_sound && !token_value(earlier).is_empty());
        let id = match follower {
            Follower::ListEnd if is_weaker => RepairId::RepeatedToken,
            Follower::ListEnd => {
                if !self.gate.is_open() {
                    self.gate.release(super::gate::Answer::List, None, sink);
                }
                list.token = None;
                list.token_written = true;
                self.gate.token(&token_facts(&written, &value), sink);
                return self.keep_edited(Role::Plain, rest, end, edits, sink);
            }
            Follower::Token => RepairId::RepeatedToken,
            Follower::Item => RepairId::ElementOrder,
        };
        if !is_weaker {
            list.token = Some(written.into_owned());
        }
        let original = rest.get(..end).unwrap_or_default();
        self.gate.change_known(Role::Plain, id, self.base, original, b"", sink);
        Step::Settled(end)
    }

    /// Where the token ends that `rest` begins with.
    fn read_token(&self, list: &List, rest: &[u8], complete: bool) -> TokenRead {
        let Some(tag_end) = start_tag_end_so_far(rest, complete) else {
            return if complete { TokenRead::Unreadable } else { TokenRead::NeedMore };
        };
        if rest.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>")) {
            return TokenRead::Whole { close: None, end: tag_end };
        }
        read_token(rest, tag_end, complete, |lexeme, text| match lexeme {
            Lexeme::EndTag => self.ends_list(text),
            _ => self.ends_token(list, text),
        })
    }

    /// Whether a start tag inside a token shows that the token was never closed.
    fn ends_token(&self, list: &List, text: &[u8]) -> bool {
        let name = text.get(1..1 + name_span(text.get(1..).unwrap_or_default())).unwrap_or_default();
        let local = split_name(name).1;
        self.is_item(list, text)
            || list.skeleton.starts_item(text) == Answer::Yes
            || self.is_token(name)
            || local == b"OAI-PMH"
            || Verb::from_name(local).is_some()
    }

    fn ends_list(&self, tag: &[u8]) -> bool {
        let name = tag.get(2..2 + name_span(tag.get(2..).unwrap_or_default())).unwrap_or_default();
        name.strip_prefix(self.prefix.as_slice()).is_some_and(|local| {
            local == b"OAI-PMH"
                || Verb::from_name(local).is_some()
                || self.verb_name.as_deref() == Some(local)
        })
    }

    /// What follows behind a token, and where that stands.
    fn follower(&self, list: &List, behind: &[u8], complete: bool) -> Option<(Follower, usize)> {
        let mut at = 0;
        // Documents that begin before this place do not go on with the list.
        let mut other_until = 0;
        loop {
            let (lexeme, end) = next_lexeme(behind, at);
            let text = behind.get(at..end).unwrap_or_default();
            if at >= behind.len() {
                return complete.then_some((Follower::ListEnd, at));
            }
            match lexeme {
                Lexeme::StartTag => {
                    let name = text.get(1..1 + name_span(text.get(1..)?))?;
                    let local = name.strip_prefix(self.prefix.as_slice()).unwrap_or_default();
                    if self.is_token(name) {
                        // An empty one behind this one does not count.
                        let token = behind.get(at..)?;
                        match self.read_token(list, token, complete) {
                            TokenRead::Whole { end, .. } if token_value(token.get(..end)?).is_empty() => {
                                at += end;
                                continue;
                            }
                            TokenRead::NeedMore => return None,
                            // One that cannot be read is put aside and does not take the place of this one.
                            TokenRead::Unreadable => {}
                            TokenRead::Whole { .. } => return Some((Follower::Token, at)),
                        }
                    }
                    if local == list.skeleton.element.name {
                        return Some((Follower::Item, at));
                    }
                    if local == b"OAI-PMH" && at >= other_until && self.version_one.is_none() {
                        match self.second_list_follows(list, behind.get(at..)?, complete)? {
                            (true, _) => return Some((Follower::Item, at)),
                            (false, len) => other_until = at + len,
                        }
                    }
                }
                _ if !complete && is_cut(behind, at, (lexeme, end)) => return None,
                _ => {}
            }
            at = end;
        }
    }

    /// Whether the document that begins here goes on with the list, and where in it that was seen.
    fn second_list_follows(&self, list: &List, text: &[u8], complete: bool) -> Option<(bool, usize)> {
        let from = start_tag_end_so_far(text, complete)?;
        match self.landmark(text.get(from..)?, complete) {
            Ok(Some((at, super::head::Landmark::Verb(verb)))) => Some((verb == list.verb, from + at)),
            Ok(Some((at, _))) if complete => Some((false, from + at)),
            Ok(None) if complete => Some((false, text.len())),
            _ => None,
        }
    }

    fn mend_token(&mut self, token: &[u8], close: Option<usize>) -> Option<Edits> {
        let name = [self.prefix.as_slice(), b"resumptionToken"].concat();
        let plain = plain_token(token, start_tag_end(token)?, close, &name);
        let text = plain.apply(token);
        let characters = mend_characters(&text, &self.entities, Guesses::default(), &self.config.limits);
        let plain = plain.then(&text, characters.clone());
        let text = characters.apply(&text);
        let tag_end = start_tag_end(&text)?;
        let tag = read_loose(&text, 0, tag_end, &self.config.limits)?;
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
                _ if self.is_free(&text, &tag.attributes, name) => continue,
                _ => RepairId::EnvelopeAttribute,
            };
            attribute.remove(id, &mut edits);
        }
        edits.sort();
        let strict = self.is_strict_field(&edits.apply(&text), b"resumptionToken");
        strict.then(|| self.without_prefix(token, plain.then(&text, edits)))
    }
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
