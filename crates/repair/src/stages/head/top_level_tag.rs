//! The first top-level tag after the head: an error, the verb element, or the end of the root.
//!
//! The stages of the head, errors and tokens use it.

use crate::lex::lexeme::{COMMENT, start_tag_end_so_far};
use crate::lex::lookahead::NextMark;
use crate::lex::names::name_span;
use crate::lex::search::{memchr, memmem};
use crate::lex::window::TextWindow;
use crate::stages::head::v1_head::v1_top_level_tag;
use crate::stages::response::{Response, TopLevelTag};
use oaimend_oai::Verb;

/// Returns the next top-level tag outside comments and instructions.
///
/// # Errors
/// Fails if the text ends too early to decide.
pub(crate) fn find_top_level_tag(
    response: &Response,
    window: TextWindow<'_>,
) -> Result<Option<(usize, TopLevelTag)>, ()> {
    let rest = window.text;
    let mut at = 0;
    let mut ends = [NextMark::default(); 2];
    let mut field_ends = [NextMark::default(); FIELDS.len()];
    while let Some(next) = memchr(b'<', rest.get(at..).unwrap_or_default()) {
        at += next;
        let tag = rest.get(at..).unwrap_or_default();
        if let Some((kind, mark, end_mark)) = section_marks(tag) {
            let end = ends.get_mut(kind).and_then(|ahead| ahead.find(rest, 0, at + mark, end_mark));
            match end {
                Some(end) => at = end,
                None if !window.is_last => return Err(()),
                None => at += 1,
            }
            continue;
        }
        let (open, body) = match tag.get(1) {
            Some(b'/') => (false, tag.get(2..).unwrap_or_default()),
            _ => (true, tag.get(1..).unwrap_or_default()),
        };
        let span = name_span(body);
        if span == body.len() && !window.is_last {
            return Err(());
        }
        if let Some(local) = body.get(..span).and_then(|name| name.strip_prefix(response.root.prefix())) {
            let field = if open { FIELDS.iter().position(|&field| field == local) } else { None };
            if let Some(end) = field.and_then(|field| field_ends.get_mut(field)) {
                at += field_len(window, at, 1 + span, end)?;
                continue;
            }
            let found = match (response.root.v1(), open, Verb::from_bytes(local), local) {
                (Some(v1), ..) => v1_top_level_tag(v1, open, local),
                (None, true, Some(verb), _) => Some(TopLevelTag::Verb(verb)),
                (None, true, None, b"error") => Some(TopLevelTag::Error),
                (None, false, _, b"OAI-PMH") => Some(TopLevelTag::RootEnd),
                _ => None,
            };
            if let Some(found) = found {
                return Ok(Some((at, found)));
            }
        }
        at += 1;
    }
    Ok(None)
}

/// The fields of the head. Tags in their text are text.
const FIELDS: [&[u8]; 3] = [b"request", b"requestURL", b"responseDate"];

/// Returns the length of the field of the head that begins at `at`. `name_len` is the length of `<` and its
/// name, `end` its next end tag. A field that lost its end tag is only its start tag.
///
/// # Errors
/// Fails if the text ends too early to decide.
fn field_len(window: TextWindow<'_>, at: usize, name_len: usize, end: &mut NextMark) -> Result<usize, ()> {
    let text = window.text;
    let field = text.get(at..).unwrap_or_default();
    match start_tag_end_so_far(window.after(at)) {
        Some(tag_end) if field.get(..tag_end).is_some_and(|tag| tag.ends_with(b"/>")) => return Ok(tag_end),
        Some(_) => {}
        None if window.is_last => return Ok(name_len),
        None => return Err(()),
    }
    let tag = field.get(..name_len).unwrap_or_default();
    let end_tag = [b"</", tag.get(1..).unwrap_or_default()].concat();
    let Some(end) = end.find(text, 0, at + name_len, &end_tag) else {
        return if window.is_last { Ok(name_len) } else { Err(()) };
    };
    // After another field of this name, the end tag belongs to that one, such as one of a wrapped response.
    let between = text.get(at + name_len..end).unwrap_or_default();
    Ok(if memmem::find(between, tag).is_none() { end + 1 - at } else { name_len })
}

/// Returns the kind of a comment (0) or an instruction (1) that begins here, the length of its start mark,
/// and its end mark.
fn section_marks(text: &[u8]) -> Option<(usize, usize, &'static [u8])> {
    if text.starts_with(COMMENT) {
        Some((0, COMMENT.len(), b"-->"))
    } else if text.starts_with(b"<?") {
        Some((1, 2, b"?>"))
    } else {
        None
    }
}
