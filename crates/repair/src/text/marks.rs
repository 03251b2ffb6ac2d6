//! Damaged marks of CDATA sections and of tags that can be recognised.
//!
//! The pass over characters uses them.

use crate::lex::known_namespaces::well_known_namespace;
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::lookahead::NextMark;
use crate::lex::names::{blanks, name_span, split_name, trailing_blanks};
use crate::lex::search::memrchr;

/// A damaged mark and its meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DamagedMark {
    /// A CDATA section with a misspelt opening mark: the end of the mark and the end of its text.
    Section { mark_end: usize, text_end: usize },
    /// A tag with blanks before its slash or its name: both runs of blanks, and the end of the tag.
    Tag { before_slash: (usize, usize), before_name: (usize, usize), end: usize },
}

/// Recognises damaged marks. Each search is cached.
#[derive(Debug, Default)]
pub(crate) struct DamagedMarks {
    section_end: NextMark,
    section_start: NextMark,
}

impl DamagedMarks {
    /// The damaged mark that begins with the `<` at `at`.
    pub(crate) fn at(&mut self, text: &[u8], at: usize) -> Option<DamagedMark> {
        tag_with_blanks(text, at).or_else(|| self.section(text, at))
    }

    /// A section ends at its first end mark. No section with a correct mark begins in it.
    fn section(&mut self, text: &[u8], at: usize) -> Option<DamagedMark> {
        let mark_end = at + misspelt_mark(text.get(at..)?)?;
        let text_end = self.section_end.find(text, 0, mark_end, b"]]>")?;
        let next = self.section_start.find(text, 0, mark_end, b"<![CDATA[");
        next.is_none_or(|next| next > text_end).then_some(DamagedMark::Section { mark_end, text_end })
    }
}

/// The length of a damaged opening mark of a CDATA section: in another case, with blanks in it, or without
/// one of its first characters.
fn misspelt_mark(text: &[u8]) -> Option<usize> {
    let skip = |at: usize| at + blanks(text.get(at..).unwrap_or_default());
    let is_at = |at: usize, byte: u8| text.get(at) == Some(&byte);
    let mut at = 1;
    let declares = is_at(at, b'!');
    at = skip(at + usize::from(declares));
    let opens = is_at(at, b'[');
    at = skip(at + usize::from(opens));
    let is_word = text.get(at..at + 5).is_some_and(|word| word.eq_ignore_ascii_case(b"CDATA"));
    at = skip(at + 5);
    (is_word && is_at(at, b'[') && (declares || opens)).then_some(at + 1)
}

/// A tag with blanks in wrong places. Only tags with a well-known prefix and without attributes are
/// recognised.
fn tag_with_blanks(text: &[u8], at: usize) -> Option<DamagedMark> {
    let skip = |at: usize| at + blanks(text.get(at..).unwrap_or_default());
    let slash = skip(at + 1);
    let after_slash = slash + usize::from(text.get(slash) == Some(&b'/'));
    let name = skip(after_slash);
    let name_end = name + name_span(text.get(name..)?);
    let end = skip(name_end);
    let (prefix, local) = split_name(text.get(name..name_end)?);
    let is_tag = text.get(end) == Some(&b'>') && !local.is_empty() && well_known_namespace(prefix).is_some();
    is_tag.then_some(DamagedMark::Tag {
        before_slash: (at + 1, slash),
        before_name: (after_slash, name),
        end: end + 1,
    })
}

/// The end of the text of a CDATA section that begins at `at` and never ends. If all tags in it are HTML,
/// the text ends before the end tag of the field that contains the section. Otherwise it ends before the
/// first tag.
pub(crate) fn end_of_open_section(
    text: &[u8],
    at: usize,
    mark_end: usize,
    lexemes: &mut Lexemes<'_>,
) -> usize {
    let field = field_before(text.get(..at).unwrap_or_default());
    let mut first_tag = None;
    let mut end = mark_end;
    while end < text.len() {
        let (lexeme, next) = lexemes.at(end);
        match lexeme {
            Lexeme::Text | Lexeme::BareLessThan => {}
            Lexeme::OpenTag if !field.is_empty() => {}
            Lexeme::StartTag | Lexeme::EndTag if !field.is_empty() => {
                let tag = text.get(end..next).unwrap_or_default();
                let tag = tag.strip_prefix(b"</").or(tag.strip_prefix(b"<")).unwrap_or_default();
                let name = tag.get(..name_span(tag)).unwrap_or_default();
                if lexeme == Lexeme::EndTag && name == field {
                    return end;
                }
                first_tag = first_tag.or(Some(end));
                if name.contains(&b':') || matches!(name, b"record" | b"header" | b"metadata" | b"about") {
                    break;
                }
            }
            _ => break,
        }
        end = next;
    }
    first_tag.unwrap_or(end)
}

/// The name of the start tag at the end of `before`, if it has a prefix. White space may follow the tag.
fn field_before(before: &[u8]) -> &[u8] {
    let before = before.get(..before.len() - trailing_blanks(before)).unwrap_or_default();
    if !before.ends_with(b">") {
        return b"";
    }
    let tag = memrchr(b'<', before).and_then(|at| before.get(at + 1..)).unwrap_or_default();
    let name = tag.get(..name_span(tag)).unwrap_or_default();
    if name.contains(&b':') { name } else { b"" }
}
