//! Recognition of a verb element with a wrong name: a misspelt name, or the name of another verb.
//!
//! The stages of the head and of errors use it.
//!
//! The first child of the element limits the possible verbs, and the request names one. The element is
//! renamed only if both, or the spelling and the first child, leave one verb.
//!
//! The result depends on nothing after the first child. So it does not depend on the chunks of the input.

use crate::catalog::RepairId;
use crate::lex::known_namespaces::is_within_distance;
use crate::lex::lexeme::{Lexeme, Lexemes, is_cut};
use crate::lex::names::{name_span, trim};
use crate::lex::window::TextWindow;
use crate::stages::envelope::local_name;
use crate::stages::head::head_fields::closes;
use crate::stages::head::repair_head::repair_head;
use crate::stages::head::request_facts::{read_request_facts, request_from_config};
use crate::stages::request::RequestFacts;
use crate::stages::response::{Response, TopLevelTag};
use crate::validate::schema::item_of;
use oaimend_oai::Verb;

/// The content of an element, classified by its first child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstChild {
    Records,
    Headers,
    Sets,
    Formats,
    /// The element is empty.
    Nothing,
    /// The first child does not identify the verb.
    Other,
}

impl FirstChild {
    fn from_name(local: &[u8]) -> Self {
        match local {
            b"record" => Self::Records,
            b"header" => Self::Headers,
            b"set" => Self::Sets,
            b"metadataFormat" => Self::Formats,
            _ => Self::Other,
        }
    }

    /// Returns the verbs whose responses contain this child.
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

/// The largest number of letters in which a name can differ from a verb.
const LETTERS: usize = 2;

/// Returns the first top-level tag of `text`, including an element that is a misnamed verb element.
///
/// `found` is the first tag by its name; `Err` if more text is needed. `requested` returns the verb of the
/// request from the text before an element, which begins at a position that never decreases.
pub(crate) fn misnamed_verb_element(
    response: &mut Response,
    window: TextWindow<'_>,
    found: Result<Option<(usize, TopLevelTag)>, ()>,
    mut requested: impl FnMut(&mut Response, usize) -> Option<Verb>,
) -> Result<Option<(usize, TopLevelTag)>, ()> {
    let text = window.text;
    if response.root.is_v1() || response.is_off(RepairId::VerbElement) {
        return found;
    }
    // If more text is needed, a correctly named element can still come first.
    let named_at = found?.map_or(text.len(), |(at, _)| at);
    let mut at = 0;
    let mut lexemes = Lexemes::new(text);
    while at < named_at {
        let (lexeme, end) = lexemes.at(at);
        if !window.is_last && is_cut(text, at, (lexeme, end)) {
            return Err(());
        }
        let local = local_name(response, text, at);
        let is_named = matches!(local, b"" | b"responseDate" | b"request")
            || Verb::ALL.iter().any(|&verb| item_of(verb).contains_name(local));
        if lexeme == Lexeme::StartTag && !is_named {
            let first_child = read_first_child(response, window, &mut lexemes, (at, end))?;
            if first_child != FirstChild::Other
                && let requested = requested(response, at)
                && let Some(verb) = misnamed_verb(local, first_child, requested)
            {
                return Ok(Some((at, TopLevelTag::Verb(verb))));
            }
        }
        at = end;
    }
    found
}

/// Returns the verb element that the request asks for, if `found` is another one before the first item. Then
/// `found` is a stray tag: a verb element contains no other.
///
/// # Errors
/// Fails if more text is needed.
pub(crate) fn requested_verb_element(
    response: &mut Response,
    window: TextWindow<'_>,
    found: Option<(usize, TopLevelTag)>,
    mut requested: impl FnMut(&mut Response, usize) -> Option<Verb>,
) -> Result<Option<(usize, TopLevelTag)>, ()> {
    let text = window.text;
    let Some((at, TopLevelTag::Verb(named))) = found else { return Ok(found) };
    if response.root.is_v1() || response.is_off(RepairId::UnknownElement) {
        return Ok(found);
    }
    let requested = requested(response, at);
    if requested == Some(named) {
        return Ok(found);
    }
    let mut lexemes = Lexemes::new(text);
    let mut next_at = lexemes.at(at).1;
    while next_at < text.len() {
        let (lexeme, end) = lexemes.at(next_at);
        if !window.is_last && is_cut(text, next_at, (lexeme, end)) {
            return Err(());
        }
        let is_end_tag = lexeme == Lexeme::EndTag;
        let local = local_name(response, text, next_at + usize::from(is_end_tag));
        let verb = if lexeme == Lexeme::StartTag { Verb::from_bytes(local) } else { None };
        match verb {
            // Without a request, the inner element is the parent of the items.
            Some(verb) if requested.is_none_or(|requested| requested == verb) => {
                return Ok(Some((next_at, TopLevelTag::Verb(verb))));
            }
            Some(_) => {}
            None if lexeme == Lexeme::Text && trim(text.get(next_at..end).unwrap_or_default()).is_empty() => {
            }
            None if requested.is_none() => return Ok(found),
            None if is_end_tag && local == b"OAI-PMH" => return Ok(found),
            None if Verb::ALL.iter().any(|&verb| item_of(verb).contains_name(local)) => return Ok(found),
            None => {}
        }
        next_at = end;
    }
    if window.is_last { Ok(found) } else { Err(()) }
}

/// Returns the verb of the verb element at `at`, which `meant` names or implies.
///
/// # Errors
/// Fails if more text is needed.
pub(crate) fn verb_element(
    response: &mut Response,
    window: TextWindow<'_>,
    at: usize,
    meant: Verb,
) -> Result<Verb, ()> {
    let text = window.text;
    if meant == Verb::Identify {
        return Ok(meant);
    }
    // In 1.x the root names the verb, and it was already read.
    let (local, first_child) = match response.root.v1() {
        Some(_) => (meant.as_bytes(), FirstChild::Other),
        None => {
            let mut lexemes = Lexemes::new(text);
            let tag = (at, lexemes.at(at).1);
            (local_name(response, text, at), read_first_child(response, window, &mut lexemes, tag)?)
        }
    };
    response.verb_element.reset();
    let verb = if local == meant.as_bytes() { renamed_verb(response, meant, first_child) } else { meant };
    set_list_verb(response, verb);
    response.verb_element.set_name((local != verb.as_bytes()).then(|| local.to_vec()));
    Ok(verb)
}

/// Sets the verb of the list under its own name.
pub(crate) fn set_list_verb(response: &mut Response, verb: Verb) {
    response.verb_element.set_name(None);
    response.request.set_verb(verb);
}

/// Returns the verb of an element that has the name of a verb.
fn renamed_verb(response: &mut Response, named: Verb, first_child: FirstChild) -> Verb {
    let RequestFacts { verb: requested, is_configured, .. } = *response.request.facts();
    let is_one_of = |verbs: &[Verb], verb| verbs.contains(&verb);
    let fits = is_one_of(first_child.verbs(), named);
    let is_meant = |requested: &Verb| {
        let records = FirstChild::Records.verbs();
        // For both verbs the emitted items are records, whatever comes first.
        is_configured && is_one_of(records, named) && is_one_of(records, *requested)
            || first_child != FirstChild::Nothing
                && is_one_of(first_child.verbs(), *requested)
                && (!fits || is_configured)
    };
    response.verb_element.set_headers_only(
        named == Verb::ListIdentifiers
            && first_child == FirstChild::Records
            && requested.is_none_or(|verb| verb == named)
            && !response.is_off(RepairId::WrappedHeader),
    );
    match requested.filter(|requested| *requested != named).filter(is_meant) {
        Some(meant) if !response.is_off(RepairId::VerbElement) => meant,
        _ => named,
    }
}

/// Returns the kind of the first child of the element with the start tag `at..end`. `lexemes` are those of
/// `text`.
///
/// Texts and errors before the items are dropped and do not count.
fn read_first_child(
    response: &Response,
    window: TextWindow<'_>,
    lexemes: &mut Lexemes<'_>,
    (at, end): (usize, usize),
) -> Result<FirstChild, ()> {
    let text = window.text;
    if text.get(at..end).is_some_and(|tag| tag.ends_with(b"/>")) {
        return Ok(FirstChild::Nothing);
    }
    let mut at = end;
    loop {
        if at >= text.len() {
            return if window.is_last { Ok(FirstChild::Other) } else { Err(()) };
        }
        let (lexeme, next) = lexemes.at(at);
        if !window.is_last && is_cut(text, at, (lexeme, next)) {
            return Err(());
        }
        match lexeme {
            Lexeme::Text | Lexeme::Comment | Lexeme::Instruction => {}
            // The tags of an error are dropped, and its text is skipped like other text.
            Lexeme::StartTag if local_name(response, text, at) == b"error" => {}
            Lexeme::EndTag if is_end_of(response, text.get(at..next).unwrap_or_default(), b"error") => {}
            Lexeme::StartTag => return Ok(FirstChild::from_name(local_name(response, text, at))),
            Lexeme::EndTag => return Ok(FirstChild::Nothing),
            _ => return Ok(FirstChild::Other),
        }
        at = next;
    }
}

/// The search for the request element in a head that is not emitted yet. It reads each byte once, however
/// often it is asked.
pub(crate) struct RequestSearch<'t> {
    text: &'t [u8],
    lexemes: Lexemes<'t>,
    at: usize,
    has_date: bool,
    /// The name of an element that does not belong to the head. It hides everything up to its end tag.
    hidden_by: Option<&'t [u8]>,
    /// The verb of the request element, once that was found.
    found: Option<Option<Verb>>,
}

impl<'t> RequestSearch<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Self {
        let lexemes = Lexemes::new(text);
        Self { text, lexemes, at: 0, has_date: false, hidden_by: None, found: None }
    }

    /// Returns the verb of the request in the head up to `end`. It is that of [`request_of_head`].
    pub(crate) fn verb_before(&mut self, response: &mut Response, end: usize) -> Option<Verb> {
        if let Some(configured) = request_from_config(response) {
            return configured.verb;
        }
        while self.found.is_none() && self.at < end {
            let (lexeme, next) = self.lexemes.at(self.at);
            let tag = self.text.get(self.at..next).unwrap_or_default();
            self.at = next;
            match lexeme {
                Lexeme::StartTag if self.hidden_by.is_none() => self.read_start_tag(response, tag),
                Lexeme::EndTag if self.hidden_by.is_some_and(|name| closes(tag, name)) => {
                    self.hidden_by = None;
                }
                _ => {}
            }
        }
        self.found.flatten()
    }

    fn read_start_tag(&mut self, response: &mut Response, tag: &'t [u8]) {
        let name = tag.get(1..).unwrap_or_default();
        let name = name.get(..name_span(name)).unwrap_or_default();
        match name.strip_prefix(response.root.prefix()) {
            Some(b"request") => self.found = Some(request_of_head(response, tag).verb),
            Some(b"responseDate") if !self.has_date => self.has_date = true,
            _ if tag.ends_with(b"/>") => {}
            _ => self.hidden_by = Some(name),
        }
    }
}

/// Returns the facts of the request from a head that is not emitted yet.
pub(crate) fn request_of_head(response: &mut Response, head: &[u8]) -> RequestFacts {
    if let Some(configured) = request_from_config(response) {
        return configured;
    }
    let written = repair_head(response, head).apply(head);
    read_request_facts(response, &written)
}

fn is_end_of(response: &Response, tag: &[u8], local: &[u8]) -> bool {
    let name = tag.get(2..).unwrap_or_default();
    let name = name.get(..name_span(name)).unwrap_or_default();
    name.strip_prefix(response.root.prefix()) == Some(local)
}

/// Returns the intended verb of an element whose name is not a verb.
fn misnamed_verb(local: &[u8], first_child: FirstChild, requested: Option<Verb>) -> Option<Verb> {
    let lower = local.to_ascii_lowercase();
    let is_near = |verb: &Verb| is_within_distance(&verb.as_bytes().to_ascii_lowercase(), &lower, LETTERS);
    let fits = first_child.verbs();
    match requested {
        // An empty element must at least resemble the verb in its spelling.
        Some(requested) => Some(requested)
            .filter(|verb| fits.contains(verb) && (first_child != FirstChild::Nothing || is_near(verb))),
        None => {
            let mut near = fits.iter().copied().filter(is_near);
            let first = near.next()?;
            near.next().is_none().then_some(first)
        }
    }
}
