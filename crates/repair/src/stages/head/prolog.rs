//! The stage of the prolog: from the first byte to the root's start tag.
//!
//! It repairs junk, byte order marks and the XML declaration. It refuses input that is not OAI-PMH.

use crate::catalog::{NotOai, RepairId};
use crate::lex::doctype::DeclaredEntities;
use crate::lex::lexeme::{Lexeme, Lexemes, is_good_comment, is_xml_target};
use crate::lex::names::{blanks, is_blank, name_span, split_name, trailing_blanks, trim};
use crate::lex::namespaces::Context;
use crate::lex::search::memmem;
use crate::output::head_buffer::PartRole;
use crate::passes::lenient_tag::{LenientTag, read_lenient_tag};
use crate::sink::Sink;
use crate::stages::head::decode::BOM;
use crate::stages::head::foreign::{classify_input, find_root, v1_version};
use crate::stages::head::root_tag::{
    RootTag, corrected_namespaces, repair_root_tag, stray_characters, strip_root_prefix,
};
use crate::stages::head::v1_head::find_v1_root;
use crate::stages::item_search::contains_any_item;
use crate::stages::response::{Response, Stage, StepResult};
use crate::stages::step::Step;
use crate::text::characters::repair_characters;
use crate::text::edits::Edits;
use crate::text::node_rules::CharacterRules;
use crate::validate::envelope_names::EnvelopePrefixes;

const DECLARATION: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// Reads everything up to the end of the root's start tag.
pub(crate) fn step_prolog(step: &mut Step<'_, impl Sink>) -> StepResult {
    let rest = step.window.text;
    let junk_max = step.response.limits().junk_bytes_max;
    let tag_max = step.response.limits().tag_bytes_max;
    let two = find_root(rest);
    match find_v1_root(step.response, step.window, two.unwrap_or(rest.len())) {
        Ok(None) => {}
        Ok(Some((root, read))) => {
            return emit_root(step, &Edits::default(), (root, &read));
        }
        Err(_) => return step.need_more(),
    }
    let Some(root) = two else {
        // The root can begin inside the limit while its name ends outside it.
        if step.window.is_last || rest.len() > junk_max + tag_max {
            return refuse_foreign(step.response, rest);
        }
        return step.need_more();
    };
    if root > junk_max {
        return refuse_foreign(step.response, rest);
    }
    let end = match step.response.tag_end(step.window.after(root)) {
        Err(_) => return step.need_more(),
        Ok(None) => return step.response.refuse(NotOai::BrokenEnvelope),
        Ok(Some(end)) => root + end,
    };
    if let Some(read) = read_lenient_tag(rest, root, end, step.response.limits()) {
        return emit_root(step, &Edits::default(), (root, &read));
    }
    let strays = stray_characters(rest, root, end);
    let text = strays.apply(rest.get(..end).unwrap_or_default());
    match read_lenient_tag(&text, root, text.len(), step.response.limits()) {
        Some(read) => emit_root(step, &strays, (root, &read)),
        None => step.response.refuse(NotOai::BrokenEnvelope),
    }
}

/// Refuses input without an OAI-PMH root inside the limit for junk.
fn refuse_foreign(response: &mut Response, rest: &[u8]) -> StepResult {
    let junk_max = response.limits().junk_bytes_max;
    response.root.set_version(v1_version(rest.get(..rest.len().min(junk_max)).unwrap_or_default()));
    response.refuse(classify_input(rest, junk_max))
}

/// Emits everything up to the end of the root's start tag and continues with the head.
///
/// `strays` removes stray characters from `input`; `tag` was read after this removal.
fn emit_root(
    step: &mut Step<'_, impl Sink>,
    strays: &Edits,
    (root, tag): (usize, &LenientTag),
) -> StepResult {
    let input = step.window.text;
    let without_strays = strays.apply(input);
    let rest = without_strays.as_ref();
    let root_tag = RootTag { text: rest, at: root, tag };
    let prefix = root_tag.prefix();
    let mut edits = Edits::default();
    let before = rest.get(..root).unwrap_or_default();
    repair_before_root(step.response, before, &mut edits);
    let mut inside = Edits::default();
    let is_v1 = step.response.root.is_v1();
    if is_v1 {
        let from = tag.name_end - split_name(root_tag.name()).1.len();
        inside.push_unordered(RepairId::V1Root, from, tag.name_end, b"OAI-PMH".to_vec());
    }
    let locates = !step.response.is_off(RepairId::SchemaLocation);
    if !repair_root_tag(root_tag, is_v1, locates, &mut inside) {
        return step.response.refuse(NotOai::Foreign);
    }
    inside.sort();
    let text = rest.get(root..tag.end).unwrap_or_default();
    let Some(context) = context_of_root(step.response, &inside.clone().apply_at(text, root)) else {
        return step.response.refuse(NotOai::BrokenEnvelope);
    };
    step.response.root.set_name(prefix, context);
    if step.response.prefixes() == EnvelopePrefixes::Removed {
        strip_root_prefix(root_tag, &mut inside);
        inside.sort();
        match context_of_root(step.response, &inside.clone().apply_at(text, root)) {
            Some(context) => step.response.root.set_written_context(context),
            None => return step.response.refuse(NotOai::BrokenEnvelope),
        }
    }
    step.response.tags_mut().keep_contexts();
    step.response.root.set_tag(inside.clone().apply_at(text, root));
    for edit in inside.iter() {
        edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
    }
    let version = step.response.root.v1().map(|v1| v1.version);
    step.response.root.set_version(version.or(Some("2.0")));
    if step.response.is_off(RepairId::V1Root) && version.is_some() {
        return step.response.refuse(NotOai::Version1);
    }
    edits.sort();
    let edits = strays.clone().then(rest, edits);
    if edits.iter().any(|edit| step.response.is_off(edit.id)) {
        return step.response.refuse(NotOai::BrokenEnvelope);
    }
    let junk = edits.iter().filter(|edit| edit.id == RepairId::JunkBeforeRoot);
    let mut junk = junk.filter_map(|edit| input.get(edit.start..edit.end));
    step.response.doubts.note_dropped(junk.any(|junk| contains_any_item(step.response, junk)));
    if step.response.config().provenance.is_some() {
        step.response.root.set_corrected_namespaces(corrected_namespaces(root_tag));
    }
    step.response.enter(if tag.empty { Stage::Done } else { Stage::Head });
    if tag.empty {
        return step.response.refuse(NotOai::NothingKept);
    }
    let end = tag.end + (input.len() - rest.len());
    step.keep_edited(PartRole::Plain, end, &edits)
}

/// Returns the declarations of the root's start tag, if the tag is valid.
fn context_of_root(response: &mut Response, tag: &[u8]) -> Option<Context> {
    match response.open_tag(tag, Context::default()) {
        Ok(tag) if tag.oai && !tag.attributes => Some(tag.context),
        _ => None,
    }
}

/// Adds the edits to the text before the root.
pub(crate) fn repair_before_root(response: &mut Response, before: &[u8], edits: &mut Edits) {
    let bom = if before.starts_with(BOM) { BOM.len() } else { 0 };
    let at = match find_declaration(before) {
        Some((start, end)) => {
            let junk = before.get(bom..start).unwrap_or_default();
            push_leading(junk, bom, edits);
            if !is_good_declaration(before.get(start..end).unwrap_or_default()) {
                edits.push_unordered(RepairId::WrongDeclaration, start, end, DECLARATION.to_vec());
            }
            end
        }
        None => {
            let declaration = [DECLARATION, b"\n"].concat();
            edits.push_unordered(RepairId::MissingDeclaration, bom, bom, declaration);
            let marks = byte_order_marks_len(before.get(bom..).unwrap_or_default());
            if marks > 0 {
                edits.push_unordered(RepairId::ByteOrderMark, bom, bom + marks, Vec::new());
            }
            bom + marks
        }
    };
    read_misc(response, before, at, edits);
}

/// Keeps comments, instructions and white space before the root. Removes the document type declaration and
/// everything else.
fn read_misc(response: &mut Response, before: &[u8], from: usize, edits: &mut Edits) {
    let mut at = from;
    let mut junk: Option<(usize, usize)> = None;
    let mut declared = DeclaredEntities::default();
    let mut lexemes = Lexemes::new(before);
    while at < before.len() {
        let (lexeme, end) = lexemes.at(at);
        let text = before.get(at..end).unwrap_or_default();
        let good = match lexeme {
            Lexeme::Text => trim(text).is_empty(),
            Lexeme::Comment => {
                is_good_comment(text)
                    && repair_characters(text, CharacterRules::plain(response.limits())).is_empty()
            }
            Lexeme::Instruction => {
                !is_xml_target(text)
                    && repair_characters(text, CharacterRules::plain(response.limits())).is_empty()
            }
            Lexeme::Doctype => {
                declared.read(text, response.config().limits.entity_bytes_max);
                edits.push_unordered(RepairId::Doctype, at, end, Vec::new());
                true
            }
            _ => false,
        };
        if good {
            if lexeme != Lexeme::Text {
                push_junk(junk.take(), edits);
            }
        } else {
            let (from, to) = if lexeme == Lexeme::Text {
                (at + blanks(text), end - trailing_blanks(text))
            } else {
                (at, end)
            };
            junk = Some((junk.map_or(from, |(start, _)| start), to));
        }
        at = end;
    }
    push_junk(junk, edits);
    response.root.set_entities(declared.into_entities());
}

fn push_junk(junk: Option<(usize, usize)>, edits: &mut Edits) {
    if let Some((start, end)) = junk {
        edits.push_unordered(RepairId::JunkBeforeRoot, start, end, Vec::new());
    }
}

/// Adds the edits to the bytes before the declaration: blanks, byte order marks, or junk.
fn push_leading(junk: &[u8], from: usize, edits: &mut Edits) {
    let mut leading = Vec::new();
    let mut at = 0;
    while at < junk.len() {
        let rest = junk.get(at..).unwrap_or_default();
        let gap = blanks(rest);
        let (id, len) = match gap {
            0 => (RepairId::ByteOrderMark, byte_order_marks_len(rest)),
            _ => (RepairId::LeadingBlank, gap),
        };
        if len == 0 {
            edits.push_unordered(RepairId::JunkBeforeRoot, from, from + junk.len(), Vec::new());
            return;
        }
        leading.push((id, from + at, from + at + len));
        at += len;
    }
    for (id, start, end) in leading {
        edits.push_unordered(id, start, end, Vec::new());
    }
}

/// Returns the length of the byte order marks at the start of a text.
///
/// Marks of UTF-16 and UTF-32 before UTF-8 text are mistakes.
fn byte_order_marks_len(text: &[u8]) -> usize {
    const MARKS: [&[u8]; 5] = [BOM, b"\xFF\xFE\0\0", b"\0\0\xFE\xFF", b"\xFF\xFE", b"\xFE\xFF"];
    let mut len = 0;
    while let Some(rest) = text.get(len..)
        && let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark))
    {
        len += mark.len();
    }
    len
}

/// Returns the range of the XML declaration, in any case.
fn find_declaration(before: &[u8]) -> Option<(usize, usize)> {
    let start = memmem::find_iter(before, b"<?").find(|&at| {
        before.get(at + 2..at + 5).is_some_and(|word| word.eq_ignore_ascii_case(b"xml"))
            && before.get(at + 5).is_some_and(|&byte| is_blank(byte))
    })?;
    let rest = before.get(start..)?;
    // A declaration without its `?` also ends at its `>`.
    let end = crate::lex::search::memchr(b'>', rest)? + 1;
    Some((start, start + end))
}

fn is_good_declaration(text: &[u8]) -> bool {
    let Some(inner) = text.strip_prefix(b"<?xml").and_then(|text| text.strip_suffix(b"?>")) else {
        return false;
    };
    let mut rest = inner;
    let mut expected: &[&[u8]] = &[b"version", b"encoding", b"standalone"];
    let mut first = true;
    loop {
        let gap = blanks(rest);
        rest = rest.get(gap..).unwrap_or_default();
        if rest.is_empty() {
            return !first;
        }
        let Some((name, value, end)) = pseudo_attribute(rest) else { return false };
        let Some(index) = expected.iter().position(|attribute| *attribute == name) else { return false };
        let legal = match name {
            b"version" => value == b"1.0",
            b"encoding" => value.eq_ignore_ascii_case(b"UTF-8"),
            _ => matches!(value, b"yes" | b"no"),
        };
        if gap == 0 || !legal || first != (name == b"version") {
            return false;
        }
        first = false;
        expected = expected.get(index + 1..).unwrap_or_default();
        rest = rest.get(end..).unwrap_or_default();
    }
}

fn pseudo_attribute(text: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let span = name_span(text);
    let name = text.get(..span)?;
    let mut at = span + blanks(text.get(span..)?);
    if *text.get(at)? != b'=' {
        return None;
    }
    at += 1;
    at += blanks(text.get(at..)?);
    let quote = *text.get(at)?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let len = crate::lex::search::memchr(quote, text.get(at + 1..)?)?;
    Some((name, text.get(at + 1..at + 1 + len)?, at + len + 2))
}
