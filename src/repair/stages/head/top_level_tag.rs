//! The first top-level tag after the head: an error, the verb element, or the end of the root.
//!
//! The stages of the head, errors and tokens use it.

use crate::repair::lex::lexeme::{COMMENT, start_tag_end_so_far};
use crate::repair::lex::lookahead::NextMark;
use crate::repair::lex::names::{is_blank, name_span};
use crate::repair::lex::search::{memchr, memmem};
use crate::repair::stages::head::v1_head::v1_top_level_tag;
use crate::repair::stages::response::{Response, TopLevelTag};
use crate::repair::validate::schema::Verb;

/// Returns the next top-level tag outside comments and instructions.
///
/// # Errors
/// Fails if the text ends too early to decide.
pub(crate) fn find_top_level_tag(
    response: &Response,
    rest: &[u8],
    last: bool,
) -> Result<Option<(usize, TopLevelTag)>, ()> {
    let mut at = 0;
    let mut ends = [NextMark::default(); 2];
    while let Some(next) = memchr(b'<', rest.get(at..).unwrap_or_default()) {
        at += next;
        let tag = rest.get(at..).unwrap_or_default();
        if let Some((kind, mark, end_mark)) = section_marks(tag) {
            let end = ends.get_mut(kind).and_then(|ahead| ahead.find(rest, 0, at + mark, end_mark));
            match end {
                Some(end) => at = end,
                None if !last => return Err(()),
                None => at += 1,
            }
            continue;
        }
        let (open, body) = match tag.get(1) {
            Some(b'/') => (false, tag.get(2..).unwrap_or_default()),
            _ => (true, tag.get(1..).unwrap_or_default()),
        };
        let span = name_span(body);
        if span == body.len() && !last {
            return Err(());
        }
        if let Some(local) = body.get(..span).and_then(|name| name.strip_prefix(response.prefix.as_slice())) {
            if open && matches!(local, b"request" | b"responseDate" | b"requestURL") {
                at += field_len(tag, 1 + span, last)?;
                continue;
            }
            let found = match (&response.v1, open, Verb::from_name(local), local) {
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

/// Returns the length of the field of the head that `text` begins with. `name_end` is the end of the name in
/// its start tag. Tags inside it are text. A field that lost its end tag is only its start tag.
///
/// # Errors
/// Fails if the text ends too early to decide.
fn field_len(text: &[u8], name_end: usize, last: bool) -> Result<usize, ()> {
    let tag = text.get(..name_end).unwrap_or_default();
    match start_tag_end_so_far(text, last) {
        Some(end) if text.get(..end).is_some_and(|tag| tag.ends_with(b"/>")) => return Ok(end),
        Some(_) => {}
        None if last => return Ok(name_end),
        None => return Err(()),
    }
    // An end tag after another field of this name belongs to that field, such as one of a wrapped response.
    let again = find_tag(text.get(name_end..).unwrap_or_default(), tag);
    let within = again.map_or(text, |at| text.get(..name_end + at).unwrap_or_default());
    let end_tag = [b"</", tag.get(1..).unwrap_or_default()].concat();
    match find_tag(within.get(name_end..).unwrap_or_default(), &end_tag) {
        Some(at) => Ok(name_end + at + 1),
        None if last || again.is_some() => Ok(name_end),
        None => Err(()),
    }
}

/// Returns the first tag in `text` that begins with `mark`, which ends with the whole name.
fn find_tag(text: &[u8], mark: &[u8]) -> Option<usize> {
    memmem::find_iter(text, mark).find(|at| {
        text.get(at + mark.len()).is_some_and(|&byte| is_blank(byte) || matches!(byte, b'>' | b'/' | b'<'))
    })
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
