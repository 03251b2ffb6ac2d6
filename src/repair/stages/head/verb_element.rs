//! The verb element by another name: misspelt, or that of another verb.
//!
//! What stands in it says which verbs it can be, and the request which one was
//! asked. Only where both, or the spelling and what stands in it, leave one
//! verb, the element gets its name. Pure, and the same wherever the text was
//! cut: what is said of an element depends on nothing behind its first child.

use crate::repair::catalog::RepairId;
use crate::repair::lex::known_namespaces::within_letters;
use crate::repair::lex::lexeme::{Lexeme, Lexemes, is_cut};
use crate::repair::lex::names::name_span;
use crate::repair::stages::envelope::local_name;
use crate::repair::stages::head::asked::{asked_of_us, read_asked};
use crate::repair::stages::head::repair_head::repair_head;
use crate::repair::stages::response::{AskedFor, Landmark, Response};
use crate::repair::validate::schema::Verb;

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

/// Letters in which a name of a verb may differ from the right one.
const LETTERS: usize = 2;

/// The first landmark of `text`, where an element that is none by its name may be the verb
/// element all the same. `found` is the first one by name, `Err` when more text is needed.
/// `asked` says what the request was, by the text before an element.
pub(crate) fn misnamed_verb_element(
    response: &mut Response,
    text: &[u8],
    found: Result<Option<(usize, Landmark)>, ()>,
    complete: bool,
    asked: impl Fn(&mut Response, &[u8]) -> Option<Verb>,
) -> Result<Option<(usize, Landmark)>, ()> {
    if response.v1.is_some() || response.is_off(RepairId::VerbElement) {
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
        let local = local_name(response, text, at);
        let is_named = matches!(local, b"" | b"responseDate" | b"request")
            || Verb::ALL.iter().any(|verb| verb.item().names(local));
        if lexeme == Lexeme::StartTag && !is_named {
            let holds = first_child(response, text, at, end, complete)?;
            if holds != Holds::Other
                && let asked = asked(response, text.get(..at).unwrap_or_default())
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
pub(crate) fn verb_element(
    response: &mut Response,
    text: &[u8],
    at: usize,
    meant: Verb,
    complete: bool,
) -> Result<Verb, ()> {
    if meant == Verb::Identify {
        return Ok(meant);
    }
    // In 1.x it is the root that says what it is, and it has been read.
    let (local, holds) = match response.v1 {
        Some(_) => (meant.name(), Holds::Other),
        None => {
            let tag_end = Lexemes::of(text).at(at).1;
            (local_name(response, text, at), first_child(response, text, at, tag_end, complete)?)
        }
    };
    response.headers_only = false;
    let verb = if local == meant.name() { renamed_verb(response, meant, holds) } else { meant };
    name_list(response, verb);
    response.verb_name = (local != verb.name()).then(|| local.to_vec());
    Ok(verb)
}

/// The list is that of a verb, under its own name.
pub(crate) fn name_list(response: &mut Response, verb: Verb) {
    response.verb_name = None;
    response.asked_identifier = response.asked.identifier.clone().filter(|_| verb == Verb::GetRecord);
}

/// What an element of the name of a verb is.
fn renamed_verb(response: &mut Response, named: Verb, holds: Holds) -> Verb {
    let AskedFor { verb: asked, is_ours, .. } = response.asked;
    let is_one_of = |verbs: &[Verb], verb| verbs.contains(&verb);
    let fits = is_one_of(holds.verbs(), named);
    let is_meant = |asked: &Verb| {
        let records = Holds::Records.verbs();
        // Whatever stands first: the items that leave are records for both.
        is_ours && is_one_of(records, named) && is_one_of(records, *asked)
            || holds != Holds::Nothing && is_one_of(holds.verbs(), *asked) && (!fits || is_ours)
    };
    response.headers_only = named == Verb::ListIdentifiers
        && holds == Holds::Records
        && asked.is_none_or(|verb| verb == named)
        && !response.is_off(RepairId::WrappedHeader);
    match asked.filter(|asked| *asked != named).filter(is_meant) {
        Some(meant) if !response.is_off(RepairId::VerbElement) => meant,
        _ => named,
    }
}

/// What the element holds whose start tag is `at..end`. Texts and errors in front of its items
/// are dropped there, and say nothing of it.
fn first_child(response: &Response, text: &[u8], at: usize, end: usize, complete: bool) -> Result<Holds, ()> {
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
            Lexeme::StartTag if local_name(response, text, at) == b"error" => {}
            Lexeme::EndTag if is_end_of(response, text.get(at..next).unwrap_or_default(), b"error") => {}
            Lexeme::StartTag => return Ok(Holds::of(local_name(response, text, at))),
            Lexeme::EndTag => return Ok(Holds::Nothing),
            _ => return Ok(Holds::Other),
        }
        at = next;
    }
}

/// What the request was, by a head that is not read yet.
pub(crate) fn asked_by_head(response: &mut Response, head: &[u8]) -> AskedFor {
    if let Some(ours) = asked_of_us(response) {
        return ours;
    }
    let written = repair_head(response, head).apply(head);
    read_asked(response, &written)
}

fn is_end_of(response: &Response, tag: &[u8], local: &[u8]) -> bool {
    let name = tag.get(2..).unwrap_or_default();
    let name = name.get(..name_span(name)).unwrap_or_default();
    name.strip_prefix(response.prefix.as_slice()) == Some(local)
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
