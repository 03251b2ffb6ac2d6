//! The end of a broken record whose tags of the envelope are all there, once each.
//!
//! Most broken records are of this kind: the damage is in a field. Their end is the end tag of the record
//! after a child of it, and finding it needs no open elements. At the first tag that occurs twice or belongs
//! to a list, [`boundary_search`](crate::boundary::boundary_search) starts again with the open elements.

use crate::boundary::record_boundary::end_tag_len;
use crate::lex::search::memchr;
use crate::lex::window::TextWindow;
use crate::validate::envelope_names::{EnvelopeNames, TagMatch};
use crate::validate::schema::RECORD;

/// The children of a record that are counted.
const CHILDREN: [&[u8]; 3] = [b"header", b"metadata", b"about"];

/// What a tag means for the end of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsualTag {
    /// The record ends before this offset.
    End(usize),
    /// It decides nothing.
    Other,
    NeedMore,
    /// The open elements are needed.
    Unusual,
}

/// The tags of the envelope in the record so far.
#[derive(Debug, Default)]
pub(crate) struct UsualEnd {
    children: [bool; 3],
    /// The number of open elements of the payload with the name of the record.
    namesakes: usize,
}

/// Whether the end of a broken item of this list may be found without its open elements.
pub(crate) fn may_end_usually(names: &EnvelopeNames) -> bool {
    names.element.name == RECORD.name
        && names.other_prefix.is_none()
        && !names.headers_only
        && !names.repairs_torn_sections
}

/// Whether the markup that `text` begins with is a section or a tag that counts. The first letter of its name
/// excludes most tags.
#[inline]
pub(crate) fn may_count(text: &[u8], names: &EnvelopeNames) -> bool {
    let mark_len = match text.get(1) {
        Some(b'!' | b'?') | None => return true,
        Some(b'/') => 2,
        Some(_) => 1,
    };
    let name_at = mark_len + names.prefix.len();
    let (Some(&first), Some(&second)) = (text.get(name_at), text.get(name_at + 1)) else { return true };
    let begins = |name: &[u8]| name.starts_with(&[first, second]);
    begins(RECORD.name)
        || begins(b"OAI-PMH")
        || begins(&names.verb)
        || mark_len == 1 && (CHILDREN.into_iter().any(begins) || names.starts_token(text) != TagMatch::No)
}

impl UsualEnd {
    /// Reads the tag at `at`.
    pub(crate) fn read(&mut self, window: TextWindow<'_>, at: usize, names: &EnvelopeNames) -> UsualTag {
        let text = window.text;
        let rest = text.get(at..).unwrap_or_default();
        let undecided = if window.is_last { UsualTag::Unusual } else { UsualTag::NeedMore };
        let is_end_tag = rest.get(1) == Some(&b'/');
        let mark: &[u8] = if is_end_tag { b"</" } else { b"<" };
        for name in [names.verb.as_slice(), b"OAI-PMH"] {
            match names.match_tag(rest, mark, name) {
                TagMatch::No => {}
                TagMatch::Yes => return UsualTag::Unusual,
                TagMatch::Cut => return undecided,
            }
        }
        match names.starts_token(rest) {
            _ if is_end_tag => {}
            TagMatch::No => {}
            TagMatch::Yes => return UsualTag::Unusual,
            TagMatch::Cut => return undecided,
        }
        match names.match_tag(rest, mark, names.element.name) {
            TagMatch::Yes if is_end_tag => self.read_end(text, at, undecided, names),
            TagMatch::Yes if at == 0 => UsualTag::Other,
            TagMatch::Yes => self.read_namesake(rest, undecided, names),
            TagMatch::Cut => undecided,
            TagMatch::No if is_end_tag => UsualTag::Other,
            TagMatch::No => self.read_child(rest, undecided, names),
        }
    }

    fn read_end(&mut self, text: &[u8], at: usize, undecided: UsualTag, names: &EnvelopeNames) -> UsualTag {
        let is_after_child = names.ends_with_child(text.get(..at).unwrap_or_default());
        match (end_tag_len(text.get(at..).unwrap_or_default()), self.namesakes) {
            (None, _) => undecided,
            (Some(len), 0) if is_after_child => UsualTag::End(at + len),
            (Some(_), namesakes) if namesakes > 0 && !is_after_child => {
                self.namesakes -= 1;
                UsualTag::Other
            }
            _ => UsualTag::Unusual,
        }
    }

    fn read_namesake(&mut self, tag: &[u8], undecided: UsualTag, names: &EnvelopeNames) -> UsualTag {
        let end = memchr(b'>', tag);
        match (names.starts_item(tag), end) {
            (TagMatch::Cut, _) | (_, None) => undecided,
            (TagMatch::Yes, _) => UsualTag::Unusual,
            (TagMatch::No, Some(end)) => {
                self.namesakes += usize::from(!tag.get(..end).is_some_and(|tag| tag.ends_with(b"/")));
                UsualTag::Other
            }
        }
    }

    fn read_child(&mut self, tag: &[u8], undecided: UsualTag, names: &EnvelopeNames) -> UsualTag {
        for (name, is_seen) in CHILDREN.into_iter().zip(&mut self.children) {
            match names.match_tag(tag, b"<", name) {
                TagMatch::No => {}
                TagMatch::Cut => return undecided,
                TagMatch::Yes if std::mem::replace(is_seen, true) => return UsualTag::Unusual,
                TagMatch::Yes => return UsualTag::Other,
            }
        }
        UsualTag::Other
    }
}
