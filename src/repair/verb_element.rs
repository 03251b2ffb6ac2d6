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
pub(super) struct Asked {
    pub(super) verb: Option<Verb>,
    identifier: Option<Vec<u8>>,
    /// Whether it goes on with a list.
    pub(super) resumes: bool,
    /// Whether it is we who know, and not the source that says so.
    is_ours: bool,
}

/// Letters in which a name of a verb may differ from the right one.
const LETTERS: usize = 2;

impl Engine {
    /// The first landmark of `text`, where an element that is none by its name may be the verb
    /// element all the same. `found` is the first one by name, `Err` when more text is needed.
    /// `asked` says what the request was, by the text before an element.
    pub(super) fn misnamed_verb_element(
        &mut self,
        text: &[u8],
        found: Result<Option<(usize, Landmark)>, ()>,
        complete: bool,
        asked: impl Fn(&mut Self, &[u8]) -> Option<Verb>,
    ) -> Result<Option<(usize, Landmark)>, ()> {
        if self.version_one.is_some() || self.is_off(RepairId::VerbElement) {
            return found;
        }
        // Until that is known, one of the right name may come first.
        let named_at = found?.map_or(text.len(), |(at, _)| at);
        let mut at = 0;
        let mut lexemes = Lexemes::of(text);
        while at < named_at {
            let (lexeme, end) = lexemes.at(at);
            if !complete && is_cut(text, at, (lexeme, end)) {
                return Err(());
            }
            let local = self.local_name(text, at);
            let is_named = matches!(local, b"" | b"responseDate" | b"request")
                || Verb::ALL.iter().any(|verb| verb.item().names(local));
            if lexeme == Lexeme::StartTag && !is_named {
                let holds = self.first_child(text, at, end, complete)?;
                if holds != Holds::Other
                    && let asked = asked(self, text.get(..at).unwrap_or_default())
                    && let Some(verb) = misnamed(local, holds, asked)
                {
                    return Ok(Some((at, Landmark::Verb(verb))));
                }
            }
            at = end;
        }
        found
    }

    /// What the verb element is that begins `at` so many bytes of `text`, by its name or as the one
    /// that is `meant` by it. `Err` when more text is needed.
    pub(super) fn verb_element(
        &mut self,
        text: &[u8],
        at: usize,
        meant: Verb,
        complete: bool,
    ) -> Result<Verb, ()> {
        if meant == Verb::Identify {
            return Ok(meant);
        }
        // In 1.x it is the root that says what it is, and it has been read.
        let (local, holds) = match self.version_one {
            Some(_) => (meant.name(), Holds::Other),
            None => {
                let tag_end = Lexemes::of(text).at(at).1;
                (self.local_name(text, at), self.first_child(text, at, tag_end, complete)?)
            }
        };
        self.headers_only = false;
        let verb = if local == meant.name() { self.renamed(meant, holds) } else { meant };
        self.name_list(verb);
        self.verb_name = (local != verb.name()).then(|| local.to_vec());
        Ok(verb)
    }

    /// The list is that of a verb, under its own name.
    pub(super) fn name_list(&mut self, verb: Verb) {
        self.verb_name = None;
        self.asked_identifier = self.asked.identifier.clone().filter(|_| verb == Verb::GetRecord);
    }

    /// What an element of the name of a verb is.
    fn renamed(&mut self, named: Verb, holds: Holds) -> Verb {
        let Asked { verb: asked, is_ours, .. } = self.asked;
        let is_one_of = |verbs: &[Verb], verb| verbs.contains(&verb);
        let fits = is_one_of(holds.verbs(), named);
        let is_meant = |asked: &Verb| {
            let records = Holds::Records.verbs();
            // Whatever stands first: the items that leave are records for both.
            is_ours && is_one_of(records, named) && is_one_of(records, *asked)
                || holds != Holds::Nothing && is_one_of(holds.verbs(), *asked) && (!fits || is_ours)
        };
        self.headers_only = named == Verb::ListIdentifiers
            && holds == Holds::Records
            && asked.is_none_or(|verb| verb == named)
            && !self.is_off(RepairId::WrappedHeader);
        match asked.filter(|asked| *asked != named).filter(is_meant) {
            Some(meant) if !self.is_off(RepairId::VerbElement) => meant,
            _ => named,
        }
    }

    /// Local name of the tag at `at`; empty for one of another prefix.
    pub(super) fn local_name<'t>(&self, text: &'t [u8], at: usize) -> &'t [u8] {
        let name = text.get(at + 1..).unwrap_or_default();
        let name = name.get(..name_span(name)).unwrap_or_default();
        name.strip_prefix(self.prefix.as_slice()).filter(|local| !local.contains(&b':')).unwrap_or_default()
    }

    /// What the element holds whose start tag is `at..end`. Texts and errors in front of its items
    /// are dropped there, and say nothing of it.
    fn first_child(&self, text: &[u8], at: usize, end: usize, complete: bool) -> Result<Holds, ()> {
        if text.get(at..end).is_some_and(|tag| tag.ends_with(b"/>")) {
            return Ok(Holds::Nothing);
        }
        let mut at = end;
        let mut lexemes = Lexemes::of(text);
        loop {
            if at >= text.len() {
                return if complete { Ok(Holds::Other) } else { Err(()) };
            }
            let (lexeme, next) = lexemes.at(at);
            if !complete && is_cut(text, at, (lexeme, next)) {
                return Err(());
            }
            match lexeme {
                Lexeme::Text | Lexeme::Comment | Lexeme::Instruction => {}
                // An error's tags go, and its text is one more text.
                Lexeme::StartTag if self.local_name(text, at) == b"error" => {}
                Lexeme::EndTag if self.is_end_of(text.get(at..next).unwrap_or_default(), b"error") => {}
                Lexeme::StartTag => return Ok(Holds::of(self.local_name(text, at))),
                Lexeme::EndTag => return Ok(Holds::Nothing),
                _ => return Ok(Holds::Other),
            }
            at = next;
        }
    }

    /// The request, from us or from the request element of a head, which is read as it is written.
    pub(super) fn asked(&self, written_head: &[u8]) -> Asked {
        if let Some(ours) = self.asked_of_us() {
            return ours;
        }
        let mut asked = Asked::default();
        let open = [b"<", self.written_prefix(), b"request"].concat();
        let mut at = 0;
        let mut lexemes = Lexemes::of(written_head);
        while at < written_head.len() {
            let (lexeme, end) = lexemes.at(at);
            let tag = written_head.get(at..end).unwrap_or_default();
            let is_request = lexeme == Lexeme::StartTag
                && tag.strip_prefix(open.as_slice()).is_some_and(|rest| name_span(rest) == 0);
            if is_request && let Some(tag) = read_loose(written_head, at, end, &self.config.limits) {
                for attribute in &tag.attributes {
                    let value = resolve(&attribute.value);
                    match written_head.get(attribute.name.0..attribute.name.1) {
                        Some(b"verb") => asked.verb = Verb::from_name(&value),
                        Some(b"identifier") => asked.identifier = Some(value),
                        Some(b"resumptionToken") => asked.resumes = true,
                        _ => {}
                    }
                }
                break;
            }
            at = end;
        }
        asked
    }

    /// What the request was, by a head that is not read yet.
    pub(super) fn asked_by_head(&mut self, head: &[u8]) -> Asked {
        if let Some(ours) = self.asked_of_us() {
            return ours;
        }
        let written = self.mend_head(head).apply(head);
        self.asked(&written)
    }

    fn asked_of_us(&self) -> Option<Asked> {
        let own = self.config.request.as_ref().filter(|own| !own.arguments.is_empty())?;
        let argument = |wanted: &str| own.arguments.iter().find(|(name, _)| name == wanted);
        Some(Asked {
            verb: argument("verb").and_then(|(_, verb)| Verb::from_name(verb.as_bytes())),
            identifier: argument("identifier").map(|(_, identifier)| identifier.as_bytes().to_vec()),
            resumes: argument("resumptionToken").is_some(),
            is_ours: true,
        })
    }

    fn is_end_of(&self, tag: &[u8], local: &[u8]) -> bool {
        let name = tag.get(2..).unwrap_or_default();
        let name = name.get(..name_span(name)).unwrap_or_default();
        name.strip_prefix(self.prefix.as_slice()) == Some(local)
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
