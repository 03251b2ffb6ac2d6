//! Classification of an input without an OAI-PMH root, by its first bytes.
//!
//! The prolog uses it to refuse the response with a precise reason.

use crate::catalog::NotOai;
use crate::lex::lexeme::tag_before;
use crate::lex::names::{blanks, is_blank, name_span, split_name, trim};
use crate::lex::search::memmem;
use crate::stages::head::decode::BOM;

/// Returns the 1.x version in the namespace of a root.
pub(crate) fn v1_version(text: &[u8]) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    let at = memmem::find(&lower, b"://www.openarchives.org/oai/1.")?;
    let rest = lower.get(at + 30..)?;
    match rest.get(..6)? {
        b"0/oai_" => Some("1.0"),
        b"1/oai_" => Some("1.1"),
        _ => None,
    }
}

/// Returns the reason to refuse an input that has no root.
pub(crate) fn classify_input(text: &[u8], junk_max: usize) -> NotOai {
    let text = text.get(..text.len().min(junk_max)).unwrap_or_default();
    let body = trim(text.strip_prefix(BOM).unwrap_or(text));
    let body = trim(body.strip_prefix(b"\0").unwrap_or(body));
    let has = |needle: &[u8]| body.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle));
    let has_tag = |tag: &[u8]| {
        let ends = |byte: u8| is_blank(byte) || matches!(byte, b'>' | b'/');
        body.windows(tag.len() + 1).any(|text| match text.split_last() {
            Some((&end, name)) => ends(end) && name.eq_ignore_ascii_case(tag),
            None => false,
        })
    };
    if body.iter().all(|&byte| byte == 0 || is_blank(byte)) {
        return NotOai::Empty;
    }
    if v1_version(body).is_some() {
        return NotOai::Version1;
    }
    if has(b"<repository") && has(b"static-repository") {
        return NotOai::StaticRepository;
    }
    let is_html = has_tag(b"<html") || has(b"<!doctype html");
    if !is_html && holds_header(body) {
        return NotOai::MissingEnvelope;
    }
    if is_html || has_tag(b"<head") || has_tag(b"<body") {
        const WALLS: [&[u8]; 9] = [
            b"just a moment",
            b"cf-challenge",
            b"challenge-platform",
            b"anubis",
            b"not a bot",
            b"awswaf",
            b"captcha",
            b"type=\"password\"",
            b"attention required",
        ];
        return if WALLS.iter().any(|wall| has(wall)) { NotOai::BotWall } else { NotOai::Html };
    }
    if body.starts_with(b"{") || body.starts_with(b"[") { NotOai::Json } else { NotOai::Foreign }
}

/// Returns whether the text contains an OAI-PMH header with an identifier, with any prefix.
fn holds_header(text: &[u8]) -> bool {
    memmem::find_iter(text, b"header").any(|name| {
        let is_tag = tag_before(text.get(..name).unwrap_or_default()).is_some();
        let after = text.get(name..).unwrap_or_default();
        let tag_end =
            crate::lex::search::memchr2(b'<', b'>', after).filter(|&end| after.get(end) == Some(&b'>'));
        let child = tag_end.and_then(|end| after.get(end + 1..)).and_then(|inner| inner.get(blanks(inner)..));
        let child = child.and_then(|child| child.strip_prefix(b"<"));
        is_tag
            && child.is_some_and(|child| {
                split_name(child.get(..name_span(child)).unwrap_or_default()).1 == b"identifier"
            })
    })
}

/// Returns the position of the root's start tag: `<OAI-PMH` with any prefix, outside comments.
pub(crate) fn find_root(text: &[u8]) -> Option<usize> {
    let mut comment_end = 0;
    for name in memmem::find_iter(text, b"OAI-PMH") {
        let before = text.get(..name).unwrap_or_default();
        let Some(tag) = tag_before(before) else { continue };
        let ends = text.get(name + 7).is_none_or(|&byte| is_blank(byte) || matches!(byte, b'>' | b'/'));
        if !ends || tag < comment_end {
            continue;
        }
        match memmem::rfind(text.get(comment_end..tag).unwrap_or_default(), b"<!--")
            .map(|at| comment_end + at)
        {
            Some(open) => match memmem::find(text.get(open + 4..).unwrap_or_default(), b"-->") {
                Some(end) if open + 4 + end < tag => return Some(tag),
                Some(end) => comment_end = open + 4 + end,
                None => return None,
            },
            None => return Some(tag),
        }
    }
    None
}
