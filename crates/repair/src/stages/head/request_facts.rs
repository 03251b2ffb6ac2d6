//! The facts of the request: its verb, its identifier, and the token of the next page if it is only here.
//!
//! They come from the configuration or from the request element. The verb element and GetRecord depend on
//! them.

use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::{name_span, trim};
use crate::passes::lenient_tag::read_lenient_tag;
use crate::stages::request::RequestFacts;
use crate::stages::response::Response;
use crate::text::escape::{escape, resolve};
use oaimend_oai::Verb;

/// Returns the facts from the configuration, or else from the request element of a repaired head.
pub(crate) fn read_request_facts(response: &Response, written_head: &[u8]) -> RequestFacts {
    if let Some(configured) = request_from_config(response) {
        return configured;
    }
    let mut facts = RequestFacts::default();
    let open = [b"<", response.written_prefix(), b"request"].concat();
    let mut at = 0;
    let mut lexemes = Lexemes::new(written_head);
    while at < written_head.len() {
        let (lexeme, end) = lexemes.at(at);
        let tag = written_head.get(at..end).unwrap_or_default();
        let is_request = lexeme == Lexeme::StartTag
            && tag.strip_prefix(open.as_slice()).is_some_and(|rest| name_span(rest) == 0);
        if is_request && let Some(tag) = read_lenient_tag(written_head, at, end, response.limits()) {
            for attribute in &tag.attributes {
                let value = resolve(&attribute.value);
                match written_head.get(attribute.name.0..attribute.name.1) {
                    Some(b"verb") => facts.verb = Verb::from_bytes(&value),
                    Some(b"identifier") => facts.identifier = Some(value),
                    Some(b"resumptionToken") => facts.resumes = true,
                    _ => {}
                }
            }
            break;
        }
        at = end;
    }
    facts
}

pub(crate) fn request_from_config(response: &Response) -> Option<RequestFacts> {
    let configured =
        response.config().request.as_ref().filter(|configured| !configured.arguments.is_empty())?;
    let argument = |wanted: &str| configured.arguments.iter().find(|(name, _)| name == wanted);
    Some(RequestFacts {
        verb: argument("verb").and_then(|(_, verb)| Verb::from_bytes(verb.as_bytes())),
        identifier: argument("identifier").map(|(_, identifier)| identifier.as_bytes().to_vec()),
        resumes: argument("resumptionToken").is_some(),
        is_configured: true,
    })
}

/// Returns the token of the next page in the start tag of the request element, as XML text: one that was not asked
/// for. An echo may be encoded in another way than the token. An earlier pass may have written the token of the
/// harvester.
pub(crate) fn next_token_in_request(response: &Response, tag: &[u8]) -> Option<Vec<u8>> {
    let requested = response.config().request_token.as_ref()?;
    let echoed = response.config().request.as_ref();
    let echoed =
        echoed.and_then(|echoed| echoed.arguments.iter().find(|(name, _)| name == "resumptionToken"));
    let read = read_lenient_tag(tag, 0, tag.len(), response.limits())?;
    let is_token = |name: (usize, usize)| tag.get(name.0..name.1) == Some(b"resumptionToken");
    let attribute = read.attributes.iter().find(|attribute| is_token(attribute.name))?;
    let resolved = resolve(&attribute.value);
    let token = trim(&resolved);
    let mut known = std::iter::once(requested).chain(echoed.map(|(_, token)| token));
    let is_echo = known.any(|known| !known.is_empty() && plain_token(token) == plain_token(known.as_bytes()));
    (!token.is_empty() && !is_echo).then(|| escape(token))
}

/// A token without the encodings of queries and XML.
fn plain_token(token: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(token.len());
    let mut rest = token;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let hex = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = match (byte, hex.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(encoded)) => {
                rest = after.get(2..).unwrap_or_default();
                encoded
            }
            _ => byte,
        };
        // A plus sign that was not encoded comes back as a blank.
        plain.push(if byte == b'+' { b' ' } else { byte });
    }
    trim(&resolve(&plain)).to_vec()
}
