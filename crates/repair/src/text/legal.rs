//! A fast check whether a text needs any repair of characters.
//!
//! `repair_item` makes this check before the pass over [`characters`](crate::text::characters),
//! because items with broken tags or envelopes usually have legal characters.

use crate::lex::index::{Index, Mark};
use crate::lex::lexeme::start_tag_end;
use crate::lex::names::{Reference, may_start_name, reference};
use crate::lex::window::TextWindow;

/// Whether the pass over characters changes nothing in `text`, which begins outside a tag. False also if
/// the text has other markup than tags.
pub(crate) fn has_legal_characters(text: &[u8]) -> bool {
    let mut index = Index::default();
    let mut tag_end = 0;
    loop {
        let at = match index.next(TextWindow::whole(text)) {
            Mark::At(at) => at,
            Mark::Bad(_) => return false,
            Mark::WindowEnd(_) => return true,
        };
        let rest = text.get(at..).unwrap_or_default();
        match rest {
            [b'&', ..] if matches!(reference(rest), Reference::Legal(_)) => {}
            // A `<` in a tag is a part of a value.
            [b'<', ..] if at < tag_end => return false,
            [b'<', b'/', byte, ..] if may_start_name(*byte) => {}
            [b'<', byte, ..] if may_start_name(*byte) => match start_tag_end(rest) {
                Some(len) => tag_end = at + len,
                None => return false,
            },
            _ => return false,
        }
    }
}
