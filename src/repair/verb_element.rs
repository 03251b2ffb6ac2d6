//! The verb element by another name: misspelt, or that of another verb.
//!
//! What stands in it says which verbs it can be, and the request which one was
//! asked. Only where both, or the spelling and what stands in it, leave one
//! verb, the element gets its name. Pure, and the same wherever the text was
//! cut: what is said of an element depends on nothing behind its first child.

use super::catalogue::RepairId;
use super::engine::Engine;
use super::head::Landmark;
use super::lexeme::{Lexeme, Lexemes, is_cut};
use super::loose::read_loose;
use super::name::name_span;
use super::schema::Verb;
use super::text::resolve;
use super::vocabulary::within_letters;

/// What an element holds, by its first child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Records,
    Headers,
    Sets,
    Formats,
    /// Nothing at all.
    Nothing,
    /// Something that tells nothing.
    Other,
}

impl Holds {
    fn of(local: &[u8]) -> Self {
        match local {
            b"record" => Self::Records,
            b"header" => Self::Headers,
            b"set" => Self::Sets,
            b"metadataFormat" => Self::Formats,
            _ => Self::Other,
        }
    }

    /// The verbs whose answers hold this.
    fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Records => &[Verb::ListRecords, Verb::GetRecord],
            Self::Headers => &[Verb::ListIdentifiers],
            Self::Sets => &[Verb::ListSets],
            Self::Formats => &[Verb::ListMetadataFormats],
            Self::Nothing => {
                &[Verb::ListRecords, Verb::ListIdentifiers, Verb::ListSets, Verb::ListMetadataFormats]
            }
            Self::Other => &[],
        }
    }
}

/// What the request was, as far as that is known.
#[derive(Debug, Default)]
struct Asked {
    verb: Option<Verb>,
    identifier: Option<Vec<u8>>,
    /// Whether it is we who know, and not the source that says so.
    is_ours: bool,
}

/// Letters in which a name of a verb may differ from the right one.
const LETTERS: usize = 2;

impl Engine {
    /// The first landmark of `text`, where an element that is none by its name may be the verb
    /// element all the same. `found` is the first one by name, `Err` when more text is needed.
    pub(super) fn verb_element(
        &mut self,
        text: &[u8],
        found: Result<Option<(usize, Landmark)>, ()>,
        complete: bool,
    ) -> Result<Option<(usize, Landmark)>, ()> {
        if self.version_one.is_some() {
            return found;
        }
        let named_at = match found {
            Ok(Some((at, _))) => at,
            _ => text.len(),
        };
        let mut at = 0;
        let mut lexemes = Lexemes::of(text);
        while at < named_at {
            if !complete && is_cut(text, at) {
                return found.and(Err(()));
            }
            let (lexeme, end) = lexemes.at(at);
            let local = self.local_name(text, at);
            let is_named = matches!(local, b"" | b"responseDate" | b"request")
                || Verb::ALL.iter().any(|verb| verb.item().names(local));
            if lexeme == Lexeme::StartTag && !is_named {
                let holds = self.first_child(text, at, end, complete)?;
                let asked = self.asked(text.get(..at).unwrap_or_default());
                if let Some(verb) = misnamed(local, holds, asked.verb)
                    && !self.is_off(RepairId::VerbElement)
                {
                    self.verb_name = Some(local.to_vec());
                    self.asked_identifier = asked.identifier.filter(|_| verb == Verb::GetRecord);
                    return Ok(Some((at, Landmark::Verb(verb))));
                }
            }
            at = end;
        }
        if let Ok(Some((at, Landmark::Verb(verb)))) = found
            && verb != Verb::Identify
        {
            let (_, end) = lexemes.at(at);
            let holds = self.first_child(text, at, end, complete)?;
            let asked = self.asked(text.get(..at).unwrap_or_default());
            return Ok(Some((at, Landmark::Verb(self.renamed(verb, holds, asked)))));
        }
        found
    }

    /// What an element of the name of a verb is.
    fn renamed(&mut self, named: Verb, holds: Holds, asked: Asked) -> Verb {
        let verbs = match (holds, named) {
            // Whatever stands first: the items behind it are records for both.
            (Holds::Other, Verb::ListRecords | Verb::GetRecord) => Holds::Records.verbs(),
            _ => holds.verbs(),
        };
        let fits = verbs.contains(&named);
        let meant = asked.verb.filter(|verb| *verb != named && verbs.contains(verb));
        let unwraps = named == Verb::ListIdentifiers
            && holds == Holds::Records
            && asked.verb.is_none_or(|verb| verb == named)
            && !self.is_off(RepairId::WrappedHeader);
        let meant = meant.filter(|_| holds != Holds::Nothing && (!fits || asked.is_ours));
        let verb = match meant {
            Some(meant) if !self.is_off(RepairId::VerbElement) => {
                self.verb_name = Some(named.name().to_vec());
                meant
            }
            _ => named,
        };
        self.headers_only = unwraps;
        self.asked_identifier = asked.identifier.filter(|_| verb == Verb::GetRecord);
        verb
    }

    /// Local name of the tag at `at`; empty for one of another prefix.
    fn local_name<'t>(&self, text: &'t [u8], at: usize) -> &'t [u8] {
        let name = text.get(at + 1..).unwrap_or_default();
        let name = name.get(..name_span(name)).unwrap_or_default();
        name.strip_prefix(self.prefix.as_slice()).filter(|local| !local.contains(&b':')).unwrap_or_default()
    }

    /// What the element holds whose start tag is `at..end`.
    fn first_child(&self, text: &[u8], at: usize, end: usize, complete: bool) -> Result<Holds, ()> {
        if text.get(at..end).is_some_and(|tag| tag.ends_with(b"/>")) {
            return Ok(Holds::Nothing);
        }
        let mut at = end;
        let mut lexemes = Lexemes::of(text);
        loop {
            if !complete && (at >= text.len() || is_cut(text, at)) {
                return Err(());
            }
            if at >= text.len() {
                return Ok(Holds::Other);
            }
            let (lexeme, next) = lexemes.at(at);
            match lexeme {
                Lexeme::Text if super::name::trim(text.get(at..next).unwrap_or_default()).is_empty() => {}
                Lexeme::Comment | Lexeme::Instruction => {}
                Lexeme::StartTag => return Ok(Holds::of(self.local_name(text, at))),
                Lexeme::EndTag => return Ok(Holds::Nothing),
                _ => return Ok(Holds::Other),
            }
            at = next;
        }
    }

    /// The request, from us or from the request element of the head.
    fn asked(&self, head: &[u8]) -> Asked {
        if let Some(own) = self.config.request.as_ref().filter(|own| !own.arguments.is_empty()) {
            let argument = |wanted: &str| own.arguments.iter().find(|(name, _)| name == wanted);
            return Asked {
                verb: argument("verb").and_then(|(_, verb)| Verb::from_name(verb.as_bytes())),
                identifier: argument("identifier").map(|(_, identifier)| identifier.as_bytes().to_vec()),
                is_ours: true,
            };
        }
        let mut asked = Asked::default();
        let mut at = 0;
        let mut lexemes = Lexemes::of(head);
        while at < head.len() {
            let (lexeme, end) = lexemes.at(at);
            if lexeme == Lexeme::StartTag
                && self.local_name(head, at) == b"request"
                && let Some(tag) = read_loose(head, at, end, &self.config.limits)
            {
                for attribute in &tag.attributes {
                    let value = resolve(&attribute.value);
                    match head.get(attribute.name.0..attribute.name.1) {
                        Some(b"verb") => asked.verb = Verb::from_name(&value),
                        Some(b"identifier") => asked.identifier = Some(value),
                        _ => {}
                    }
                }
                return asked;
            }
            at = end;
        }
        asked
    }
}

/// The verb that an element of no verb's name is meant for.
fn misnamed(local: &[u8], holds: Holds, asked: Option<Verb>) -> Option<Verb> {
    let lower = local.to_ascii_lowercase();
    let is_near = |verb: &Verb| within_letters(&verb.name().to_ascii_lowercase(), &lower, LETTERS);
    let fits = holds.verbs();
    match asked {
        // What holds nothing must at least be spelt like it.
        Some(asked) => {
            Some(asked).filter(|verb| fits.contains(verb) && (holds != Holds::Nothing || is_near(verb)))
        }
        None => {
            let mut near = fits.iter().copied().filter(is_near);
            near.next().filter(|_| near.next().is_none())
        }
    }
}
