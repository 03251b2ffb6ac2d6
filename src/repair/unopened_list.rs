//! A list without its start tag: the items are directly in the root.
//!
//! The first item and the request say which list it is. Where the two do not agree, or leave two
//! lists, nothing is added. The decision depends on the text before the first item and on its name.

use super::catalogue::{NotOai, RepairId};
use super::engine::{Engine, Stage, Step};
use super::gate::Role;
use super::lexeme::{Lexeme, Lexemes};
use super::schema::Verb;
use super::sink::Sink;
use super::skeleton::Answer;

impl Engine {
    /// Where the first item begins that is in front of the first landmark of `text`, and the list that it
    /// is in. `landmark` is where that landmark is.
    pub(super) fn unopened_list(&mut self, text: &[u8], landmark: Option<usize>) -> Option<(usize, Verb)> {
        if self.version_one.is_some() || self.is_off(RepairId::UnopenedList) {
            return None;
        }
        let (at, verbs) = self.first_item(text, landmark.unwrap_or(text.len()))?;
        match self.asked_by_head(text.get(..at)?).verb {
            Some(asked) => Some((at, asked)).filter(|_| verbs.contains(&asked)),
            None => {
                let only = verbs.first().filter(|_| verbs.len() == 1).copied()?;
                (self.begins_item(text.get(at..)?) == Answer::Yes).then_some((at, only))
            }
        }
    }

    /// Where the first item before `end` begins that is in no other element, and the lists it can be in.
    fn first_item(&self, text: &[u8], end: usize) -> Option<(usize, Vec<Verb>)> {
        // How many elements are open that are none of the head.
        let mut depth = 0_usize;
        let mut at = 0;
        let mut lexemes = Lexemes::of(text);
        while at < end {
            let (lexeme, next) = lexemes.at(at);
            let tag = text.get(at..next).unwrap_or_default();
            match lexeme {
                Lexeme::StartTag => {
                    let local = self.local_name(text, at);
                    let verbs: Vec<Verb> = Verb::ALL
                        .into_iter()
                        .filter(|verb| *verb != Verb::Identify && verb.item().name == local)
                        .collect();
                    if depth == 0 && !verbs.is_empty() {
                        return Some((at, verbs));
                    }
                    let is_of_the_head = matches!(local, b"responseDate" | b"request");
                    depth += usize::from(!is_of_the_head && !tag.ends_with(b"/>"));
                }
                Lexeme::EndTag => {
                    let local = self.local_name(text, at + 1);
                    let is_of_the_head = matches!(local, b"responseDate" | b"request");
                    depth = depth.saturating_sub(usize::from(!is_of_the_head));
                }
                _ => {}
            }
            at = next;
        }
        None
    }

    /// Writes the head, which is the first `at` bytes of `rest`, and the start tag of the list after it.
    pub(super) fn open_missing_list(
        &mut self,
        verb: Verb,
        rest: &[u8],
        at: usize,
        sink: &mut impl Sink,
    ) -> Step {
        let Some(head) = self.read_whole_head(rest.get(..at).unwrap_or_default()) else {
            return self.refuse(NotOai::BrokenEnvelope);
        };
        self.headers_only = false;
        self.name_list(verb);
        let mut list = self.list_of(verb);
        list.opened = true;
        self.tags.settle_envelope();
        let open = [b"<", self.written_prefix(), list.written_name(), b">"].concat();
        self.count_lost_item(verb, rest, &head);
        let step = self.keep_edited(Role::Plain, rest, at, &head, sink);
        let offset = self.base + at as u64;
        self.gate.change(Role::List, RepairId::UnopenedList, offset, b"", &open, sink);
        self.stage = Stage::List(Box::new(list));
        step
    }
}
