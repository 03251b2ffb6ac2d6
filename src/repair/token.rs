//! The resumptionToken of a list: one, behind the last item, with legal attributes.

use memchr::{memchr, memmem};

use super::catalogue::{NotOai, RepairId};
use super::edits::Edits;
use super::ends::{token_facts, token_text};
use super::engine::{Engine, List, Step};
use super::gate::Role;
use super::lexeme::{Lexeme, is_cut, next_lexeme, start_tag_end, start_tag_end_so_far};
use super::list::Next;
use super::loose::read_loose;
use super::name::{name_span, trailing_blanks};
use super::schema::Verb;
use super::sink::Sink;
use super::text::{Guesses, escape, mend_characters};
use crate::oai::datestamp;

/// What stands behind a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follower {
    Item,
    Token,
    ListEnd,
}

impl Engine {
    /// A resumptionToken between items.
    pub(super) fn token(&mut self, list: &mut List, rest: &[u8], last: bool, sink: &mut impl Sink) -> Next {
        let bytes_max = self.limits().head_bytes_max;
        let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
        let complete = last || rest.len() > bytes_max;
        let Some(end) = self.token_end(within, complete) else {
            if !complete {
                return Next::Stay(self.need_more(rest));
            }
            // A token that was cut is never written.
            self.leave_broken_list(list);
            return Next::Leave(Step::Settled(0));
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
        let Some(edits) = self.mend_token(rest.get(..end).unwrap_or_default()) else {
            return Next::Leave(self.refuse(NotOai::BrokenEnvelope));
        };
        Next::Stay(self.place_token(list, rest, end, &edits, follower, sink))
    }

    fn place_token(
        &mut self,
        list: &mut List,
        rest: &[u8],
        end: usize,
        edits: &Edits,
        follower: Follower,
        sink: &mut impl Sink,
    ) -> Step {
        list.token_seen = true;
        let written = edits.apply(rest.get(..end).unwrap_or_default());
        let empty = token_text(&written).is_empty();
        let earlier = list.token.is_some();
        let id = match follower {
            Follower::ListEnd if empty && earlier => RepairId::RepeatedToken,
            Follower::ListEnd => {
                if !self.gate.is_open() {
                    self.gate.release(super::gate::Answer::List, None, sink);
                }
                list.token = None;
                list.token_written = true;
                self.gate.token(&token_facts(&written), sink);
                return self.keep_edited(Role::Plain, rest, end, edits, sink);
            }
            Follower::Token => RepairId::RepeatedToken,
            Follower::Item => RepairId::ElementOrder,
        };
        if !empty || !earlier {
            list.token = Some(written.into_owned());
        }
        self.change(id, rest, end, b"", sink)
    }

    /// Where the token that begins here ends; `None` when that is not there.
    fn token_end(&self, rest: &[u8], complete: bool) -> Option<usize> {
        let tag_end = start_tag_end_so_far(rest, complete)?;
        if rest.get(..tag_end)?.ends_with(b"/>") {
            return Some(tag_end);
        }
        let close = [b"</", self.prefix.as_slice(), b"resumptionToken"].concat();
        let mut at = tag_end;
        loop {
            let (lexeme, end) = next_lexeme(rest, at);
            let text = rest.get(at..end)?;
            match lexeme {
                Lexeme::Text if end == rest.len() => return None,
                Lexeme::Text | Lexeme::Cdata | Lexeme::Comment => {}
                Lexeme::EndTag if text.starts_with(&close) && text.ends_with(b">") => return Some(end),
                // Its end tag is missing: it ends where the list does.
                Lexeme::EndTag if text.ends_with(b">") && self.ends_list(text) => {
                    let content = rest.get(tag_end..at)?;
                    return Some(at - trailing_blanks(content));
                }
                _ => return None,
            }
            at = end;
            if at >= rest.len() {
                return None;
            }
        }
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
                    if local == b"resumptionToken" {
                        // An empty one behind this one does not count.
                        let token = behind.get(at..)?;
                        match self.token_end(token, complete) {
                            Some(end) if token_text(token.get(..end)?).is_empty() => {
                                at += end;
                                continue;
                            }
                            None if !complete => return None,
                            _ => return Some((Follower::Token, at)),
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

    fn mend_token(&mut self, token: &[u8]) -> Option<Edits> {
        let characters = mend_characters(token, &self.entities, Guesses::default(), &self.config.limits);
        let text = characters.apply(token);
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
        if !tag.empty {
            self.mend_token_text(&text, tag_end, &mut edits)?;
        }
        edits.sort();
        let strict = self.is_strict_field(&edits.apply(&text), b"resumptionToken");
        strict.then(|| self.without_prefix(token, characters.then(&text, edits)))
    }

    /// Comments go, and the end tag is there.
    fn mend_token_text(&self, text: &[u8], tag_end: usize, edits: &mut Edits) -> Option<()> {
        let close = [b"</", self.prefix.as_slice(), b"resumptionToken>"].concat();
        match memmem::find(text, close.get(..close.len() - 1)?) {
            None => edits.push_unordered(RepairId::MissingEndTag, text.len(), text.len(), close),
            Some(at) => {
                let tag = text.get(at..)?;
                let bare = tag.iter().filter(|byte| !super::name::is_blank(**byte)).count();
                if bare != close.len() {
                    edits.push_unordered(RepairId::MismatchedEndTag, at, text.len(), close);
                }
            }
        }
        let mut at = tag_end;
        while let Some(next) = memchr(b'<', text.get(at..)?) {
            let (lexeme, end) = next_lexeme(text, at + next);
            if matches!(lexeme, Lexeme::OpenComment | Lexeme::OpenCdata | Lexeme::OpenTag) {
                edits.push_unordered(
                    RepairId::MarkupInField,
                    at + next,
                    end,
                    escape(text.get(at + next..end)?),
                );
            }
            at = end;
        }
        Some(())
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
