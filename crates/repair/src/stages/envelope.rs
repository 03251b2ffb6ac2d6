//! Tags of the envelope: reading, renaming and writing.
//!
//! All stages use these functions.

use crate::catalog::RepairId;
use crate::lex::lexeme::{Lexeme, Lexemes, is_good_comment, is_xml_target, next_lexeme};
use crate::lex::names::{blanks, is_blank, name_span};
use crate::lex::outline::outline;
use crate::lex::search::memmem;
use crate::lex::window::TextWindow;
use crate::limits::Limits;
use crate::output::head_buffer::PartRole;
use crate::passes::strip_prefix::remove_default_namespace;
use crate::sink::Sink;
use crate::stages::item_search::new_list;
use crate::stages::response::{Response, StepResult};
use crate::stages::step::Step;
use crate::text::characters::{item_edits, repair_characters};
use crate::text::charset::detect_charset;
use crate::text::edits::Edits;
use crate::text::node_rules::{CharacterRules, Guesses};
use crate::validate::envelope_names::{EnvelopeNames, EnvelopePrefixes};
use crate::validate::state::{Validation, Validator};
use oaimend_oai::Verb;

/// Returns an end tag of the envelope as it is written.
pub(crate) fn end_tag_of(response: &Response, local: &[u8]) -> Vec<u8> {
    [b"</", response.written_prefix(), local, b">"].concat()
}

/// Returns an end tag of the envelope as it is in the input.
pub(crate) fn read_end_tag_of(response: &Response, local: &[u8]) -> Vec<u8> {
    [b"</", response.root.prefix(), local, b">"].concat()
}

/// Returns the end of the end tag at the start of `rest`: after its `>`, or before the next `<`.
pub(crate) fn end_tag_end(rest: &[u8]) -> usize {
    let inner = rest.get(1..).unwrap_or_default();
    match inner.iter().position(|&byte| matches!(byte, b'<' | b'>')) {
        Some(at) if inner.get(at) == Some(&b'>') => at + 2,
        Some(at) => at + 1,
        None => rest.len(),
    }
}

/// Corrects the prefix and the local name of the tag whose name begins at `at`.
pub(crate) fn rename_tag(response: &Response, at: usize, (read, meant): (&[u8], &[u8]), edits: &mut Edits) {
    let local_at = at + response.root.prefix().len();
    if response.prefixes() == EnvelopePrefixes::Removed {
        edits.push_unordered(RepairId::EnvelopePrefix, at, local_at, Vec::new());
    }
    if read != meant {
        edits.push_unordered(RepairId::VerbElement, local_at, local_at + read.len(), meant.to_vec());
    }
}

/// Returns the length of white space, comments and instructions at the start of `text`.
pub(crate) fn misc_len(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += blanks(text.get(at..).unwrap_or_default());
        let (lexeme, end) = next_lexeme(text, at);
        if at >= text.len() || !matches!(lexeme, Lexeme::Comment | Lexeme::Instruction) {
            return at;
        }
        at = end;
    }
}

pub(crate) fn is_legal_comment(response: &Response, text: &[u8]) -> bool {
    is_good_comment(text) && repair_characters(text, CharacterRules::plain(response.limits())).is_empty()
}

pub(crate) fn is_legal_instruction(response: &Response, text: &[u8]) -> bool {
    !is_xml_target(text) && repair_characters(text, CharacterRules::plain(response.limits())).is_empty()
}

/// Returns the edits to the characters of an element outside items. They are read like those of an item,
/// in the configured or detected charset.
pub(crate) fn element_characters(response: &Response, element: &[u8]) -> Edits {
    let config = response.config();
    // The element is a part of the response itself, so it is not quarantined for an unknown charset.
    let charset = detect_charset(element, 0, config.text_charset.as_deref()).ok().flatten();
    let (lexemes, guesses) = (Lexemes::new(element), Guesses::enabled_by(config.enabled));
    // The element has about `head_bytes_max` bytes, so the number of repairs needs no limit of its own.
    let limits =
        Limits { repairs_per_record_max: usize::MAX, record_bytes_max: usize::MAX, ..config.limits.clone() };
    let rules = CharacterRules { entities: response.root.entities(), guesses, charset, limits: &limits };
    item_edits(element, 0, lexemes, rules)
}

pub(crate) fn error_element(response: &Response, code: &str, words: &str) -> Vec<u8> {
    let close = end_tag_of(response, b"error");
    let start = [b"<", response.written_prefix(), b"error code=\"", code.as_bytes(), b"\">"].concat();
    [start.as_slice(), words.as_bytes(), &close].concat()
}

/// Emits an end tag and rewrites it if it is malformed.
///
/// `names` are the local name in the input and the correct one.
pub(crate) fn close_tag(
    step: &mut Step<'_, impl Sink>,
    role: PartRole,
    names: (&[u8], &[u8]),
    tag_end: usize,
) -> StepResult {
    let rest = step.window.text;
    let tag = read_end_tag_of(step.response, names.0);
    let written = rest.get(..tag_end).unwrap_or_default();
    let bare = written.iter().filter(|&&byte| !is_blank(byte));
    if bare.eq(&tag) && written.get(..tag.len() - 1) == tag.get(..tag.len() - 1) {
        let mut edits = Edits::default();
        rename_tag(step.response, 2, names, &mut edits);
        return step.keep_edited(role, tag_end, &edits);
    }
    let tag = end_tag_of(step.response, names.1);
    step.replace(role, RepairId::MismatchedEndTag, 0..tag_end, &tag);
    StepResult::Settled(tag_end)
}

/// Adds the removal of prefixes to the edits to a part of the envelope that contains no payload.
pub(crate) fn strip_envelope_prefixes(response: &Response, text: &[u8], edits: Edits) -> Edits {
    if response.prefixes() != EnvelopePrefixes::Removed {
        return edits;
    }
    let repaired = edits.apply(text);
    let mut off = Edits::default();
    let mut at = 0;
    let mut lexemes = Lexemes::new(&repaired);
    while at < repaired.len() {
        let (lexeme, end) = lexemes.at(at);
        let name = match lexeme {
            Lexeme::StartTag => at + 1,
            Lexeme::EndTag => at + 2,
            _ => usize::MAX,
        };
        if repaired.get(name..end).is_some_and(|tag| tag.starts_with(response.root.prefix())) {
            if lexeme == Lexeme::StartTag {
                remove_default_namespace(&repaired, at, end, response.limits(), &mut off);
            }
            off.push_unordered(
                RepairId::EnvelopePrefix,
                name,
                name + response.root.prefix().len(),
                Vec::new(),
            );
        }
        at = end;
    }
    off.sort();
    edits.then(&repaired, off)
}

/// Returns the local name of the tag at `at`; empty if it has another prefix.
pub(crate) fn local_name<'t>(response: &Response, text: &'t [u8], at: usize) -> &'t [u8] {
    let name = text.get(at + 1..).unwrap_or_default();
    let name = name.get(..name_span(name)).unwrap_or_default();
    name.strip_prefix(response.root.prefix()).filter(|local| !local.contains(&b':')).unwrap_or_default()
}

/// Returns an element of the envelope. Its text must be escaped.
pub(crate) fn write_element(response: &Response, local: &[u8], text: &[u8]) -> Vec<u8> {
    [b"<", response.written_prefix(), local, b">", text, &end_tag_of(response, local)].concat()
}

/// Returns whether `element` is one well-formed element with this name that contains only text.
pub(crate) fn is_strict_field(response: &mut Response, element: &[u8], local: &'static [u8]) -> bool {
    let Ok(tag) = response.open_tag(element, response.root.context()) else {
        return false;
    };
    let name = element.get(1..1 + tag.name_len as usize).unwrap_or_default();
    let names = EnvelopeNames { verb: local.to_vec(), ..new_list(response, Verb::ListRecords).names };
    let mut validator = Validator::for_payload(names, response.root.context());
    validator.new_window(0);
    let (tags, limits) = response.tags_and_limits();
    let clean = validator.validate(TextWindow::whole(element).item_at(0), tags, limits);
    let inside = element.get(tag.len as usize..).unwrap_or_default();
    tag.oai
        && name.strip_prefix(response.root.prefix()) == Some(local)
        && clean == Validation::Clean(element.len())
        && outline(inside, 0, memmem::rfind(inside, b"</").unwrap_or(0))
            .is_some_and(|tree| tree.children.is_empty())
}
