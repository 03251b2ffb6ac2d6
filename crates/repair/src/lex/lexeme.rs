//! Lexemes of broken markup: tags, sections and text.
//!
//! The slow path and the search of removed text use them. Every byte belongs to one lexeme. Anything that
//! cannot be markup is text.

use crate::lex::names::{is_blank, is_local_name, may_start_name, name_span};
use crate::lex::search::{count_read, memchr, memchr2, memmem};
use crate::lex::window::TextWindow;

const INSTRUCTION: &[u8] = b"<?";

pub(crate) const COMMENT: &[u8] = b"<!--";

pub(crate) const CDATA: &[u8] = b"<![CDATA[";

/// The kind of a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lexeme {
    /// Characters without `<`.
    Text,
    /// A `<` that starts no markup.
    BareLessThan,
    /// `<name` up to its `>`.
    StartTag,
    /// `<name` or `<?name` without an end. The lexeme is the `<` alone.
    OpenTag,
    /// `</name` up to its `>`, or without a `>`.
    EndTag,
    /// `<![CDATA[` to `]]>`.
    Cdata,
    /// `<![CDATA[` without an end. The lexeme is the mark alone.
    OpenCdata,
    /// `<!--` to `-->`.
    Comment,
    /// `<!--` without an end. The lexeme is the mark alone.
    OpenComment,
    /// `<?name` to `?>`.
    Instruction,
    /// `<!DOCTYPE` to its end.
    Doctype,
    /// `<!` and a word that XML does not know, up to `>`.
    Declaration,
}

/// The lexeme that begins at `at`, and its end.
pub(crate) fn next_lexeme(text: &[u8], at: usize) -> (Lexeme, usize) {
    Lexemes::new(text).at(at)
}

/// The lexemes of a text that is read from start to end. Missing end marks are searched only once.
#[derive(Debug)]
pub(crate) struct Lexemes<'t> {
    text: &'t [u8],
    /// No instruction that begins at this position or later has an end.
    no_instruction_from: usize,
    /// The same for document type declarations. A text has at most one.
    no_doctype_from: usize,
    /// Whether a section ends at its first end mark, even if its own opening mark occurs before it.
    well_formed: bool,
}

impl<'t> Lexemes<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Self {
        Self { text, no_instruction_from: usize::MAX, no_doctype_from: usize::MAX, well_formed: false }
    }

    /// The lexemes of a text in which each section ends at its first end mark. This is true for valid text,
    /// and for an item with a boundary in a section.
    pub(crate) fn new_well_formed(text: &'t [u8]) -> Self {
        Self { well_formed: true, ..Self::new(text) }
    }

    /// The lexeme that begins at `at`, and its end.
    pub(crate) fn at(&mut self, at: usize) -> (Lexeme, usize) {
        let rest = self.text.get(at..).unwrap_or_default();
        let (lexeme, len) = match rest {
            [b'<', b'?', ..] => self.instruction(rest, at),
            [b'<', b'!', ..] if is_doctype(rest) => {
                (Lexeme::Doctype, self.doctype_len(rest, at).unwrap_or(2))
            }
            [b'<', b'!', ..] if self.well_formed => whole_section(rest).unwrap_or_else(|| read_lexeme(rest)),
            _ => read_lexeme(rest),
        };
        count_read(len);
        (lexeme, at + len.max(1))
    }

    fn instruction(&mut self, rest: &[u8], at: usize) -> (Lexeme, usize) {
        if !rest.get(2).copied().is_some_and(may_start_name) {
            return (Lexeme::BareLessThan, 1);
        }
        if is_torn_declaration(rest) {
            return (Lexeme::OpenTag, 1);
        }
        let end = if at < self.no_instruction_from { memmem::find(rest, b"?>") } else { None };
        match end {
            Some(end) => (Lexeme::Instruction, end + 2),
            None => {
                self.no_instruction_from = self.no_instruction_from.min(at);
                (Lexeme::OpenTag, 1)
            }
        }
    }

    fn doctype_len(&mut self, rest: &[u8], at: usize) -> Option<usize> {
        let len = if at < self.no_doctype_from { doctype_len(rest) } else { None };
        if len.is_none() {
            self.no_doctype_from = self.no_doctype_from.min(at);
        }
        len
    }
}

/// Whether more text might change or extend the lexeme that was read at `at`.
pub(crate) fn is_cut(text: &[u8], at: usize, (lexeme, end): (Lexeme, usize)) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    match lexeme {
        Lexeme::OpenTag | Lexeme::OpenComment | Lexeme::OpenCdata | Lexeme::BareLessThan => true,
        // An open quote may close after the `>`.
        Lexeme::StartTag => start_tag_end_so_far(TextWindow::so_far(rest)).is_none(),
        // A tag without `>` ends before the blanks that precede the next `<`.
        Lexeme::EndTag => {
            let closed = text.get(..end).is_some_and(|tag| tag.ends_with(b">"));
            !closed && crate::lex::names::blanks(after) == after.len()
        }
        Lexeme::Doctype => doctype_len(rest).is_none(),
        Lexeme::Text => after.is_empty(),
        Lexeme::Cdata | Lexeme::Comment | Lexeme::Instruction | Lexeme::Declaration => false,
    }
}

fn read_lexeme(rest: &[u8]) -> (Lexeme, usize) {
    if rest.first() != Some(&b'<') {
        return (Lexeme::Text, memchr(b'<', rest).unwrap_or(rest.len()));
    }
    match rest.get(1) {
        Some(b'!') => section(rest),
        Some(b'/') if rest.get(2).copied().is_some_and(may_start_name) => {
            let inner = rest.get(1..).unwrap_or_default();
            let end = memchr2(b'<', b'>', inner);
            match end.map(|end| (end, inner.get(end))) {
                Some((end, Some(b'>'))) => (Lexeme::EndTag, end + 2),
                // A tag that lost its `>` ends before the blanks that precede the next tag.
                Some((end, _)) => (Lexeme::EndTag, without_blanks(rest, end + 1)),
                None => (Lexeme::EndTag, without_blanks(rest, rest.len())),
            }
        }
        Some(&byte) if may_start_name(byte) => match start_tag_end(rest) {
            Some(end) => (Lexeme::StartTag, end),
            None => (Lexeme::OpenTag, 1),
        },
        _ => (Lexeme::BareLessThan, 1),
    }
}

fn without_blanks(text: &[u8], end: usize) -> usize {
    end - crate::lex::names::trailing_blanks(text.get(..end).unwrap_or_default())
}

/// Where a start tag ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagEnd {
    /// After its `>`.
    At(usize),
    /// Never: another tag begins before.
    Never,
    /// More text decides.
    Unknown,
}

/// The end of a start tag: its `>`. A `>` in quotes does not count if the quotes close before the tag could
/// end otherwise. `None` if the tag never ends.
pub(crate) fn start_tag_end(rest: &[u8]) -> Option<usize> {
    start_tag_end_so_far(TextWindow::whole(rest))
}

/// The same while more text may follow: `None` also while a quote is open.
pub(crate) fn start_tag_end_so_far(window: TextWindow<'_>) -> Option<usize> {
    match find_tag_end(window) {
        TagEnd::At(end) => Some(end),
        TagEnd::Never | TagEnd::Unknown => None,
    }
}

/// Where the start tag at the start of the window ends.
pub(crate) fn find_tag_end(window: TextWindow<'_>) -> TagEnd {
    let TextWindow { text: rest, is_last: complete } = window;
    let ends_name = |&byte: &u8| matches!(byte, b'>' | b'<' | b'"' | b'\'');
    let missing = if complete { TagEnd::Never } else { TagEnd::Unknown };
    let mut at = 1;
    loop {
        let Some(name) = rest.get(at..) else { return missing };
        let len = name.iter().position(ends_name);
        count_read(len.unwrap_or(name.len()));
        let Some(len) = len else { return missing };
        at += len;
        match rest.get(at) {
            Some(b'>') => return TagEnd::At(at + 1),
            Some(b'<') | None => return TagEnd::Never,
            Some(&quote @ (b'"' | b'\'')) if follows_equals(rest.get(..at).unwrap_or_default()) => {
                let value = rest.get(at..).unwrap_or_default();
                if !complete && memchr(quote, value.get(1..).unwrap_or_default()).is_none() {
                    return TagEnd::Unknown;
                }
                match value_len(value) {
                    Some(len) => at += len,
                    None => return missing,
                }
            }
            Some(_) => at += 1,
        }
    }
}

fn follows_equals(before: &[u8]) -> bool {
    let blanks = crate::lex::names::trailing_blanks(before);
    before.get(..before.len() - blanks).is_some_and(|text| text.ends_with(b"="))
}

/// The length of the quoted value that begins here, with its quotes. A value with a `>` and a later `<`
/// lost its closing quote, as did a value that never closes. Such a value ends before the first `>`.
pub(crate) fn value_len(rest: &[u8]) -> Option<usize> {
    let quote = *rest.first()?;
    let inner = rest.get(1..)?;
    // A value without a `>` needs no second check.
    if let Some(end) = memchr2(quote, b'>', inner)
        && inner.get(end) == Some(&quote)
    {
        return Some(end + 2);
    }
    let close = memchr(quote, inner);
    let value = inner.get(..close.unwrap_or(inner.len()))?;
    let tag_end = memchr(b'>', value);
    let markup = tag_end.and_then(|end| memchr(b'<', value.get(end..)?));
    match (close, tag_end, markup) {
        (Some(close), None, _) | (Some(close), Some(_), None) => Some(close + 2),
        (_, Some(end), _) => Some(end + 1),
        (None, None, _) => None,
    }
}

fn section(rest: &[u8]) -> (Lexeme, usize) {
    if let Some(inner) = rest.strip_prefix(b"<![CDATA[") {
        return match own_end(inner, b"<![CDATA[", b"]]>") {
            Some(end) => (Lexeme::Cdata, 9 + end),
            None => (Lexeme::OpenCdata, 9),
        };
    }
    if let Some(inner) = rest.strip_prefix(b"<!--") {
        return match own_end(inner, b"<!--", b"-->") {
            Some(end) => (Lexeme::Comment, 4 + end),
            None => (Lexeme::OpenComment, 4),
        };
    }
    let end = memchr2(b'<', b'>', rest.get(1..).unwrap_or_default()).map(|end| end + 1);
    match end.map(|end| (end, rest.get(end))) {
        Some((end, Some(b'>'))) => (Lexeme::Declaration, end + 1),
        _ => (Lexeme::BareLessThan, 1),
    }
}

/// A comment or CDATA section of well-formed text.
fn whole_section(rest: &[u8]) -> Option<(Lexeme, usize)> {
    let (lexeme, mark, end_mark): (_, &[u8], &[u8]) = if rest.starts_with(b"<![CDATA[") {
        (Lexeme::Cdata, b"<![CDATA[", b"]]>")
    } else {
        (Lexeme::Comment, b"<!--", b"-->")
    };
    let inner = rest.strip_prefix(mark)?;
    memmem::find(inner, end_mark).map(|end| (lexeme, mark.len() + end + end_mark.len()))
}

/// The end of a section. `None` if its own opening mark occurs before: then the end mark belongs to the
/// second section.
fn own_end(inner: &[u8], mark: &[u8], end_mark: &[u8]) -> Option<usize> {
    // The opening mark is searched first, so that a run of such marks is read only once.
    let within = match memmem::find(inner, mark) {
        Some(again) => inner.get(..(again + end_mark.len()).min(inner.len()))?,
        None => inner,
    };
    memmem::find(within, end_mark).map(|end| end + end_mark.len())
}

/// The text of a CDATA section without a cut or escaped end mark: `]]`, `]>` or `]]&gt;`. Brackets that the
/// text itself opened stay.
pub(crate) fn without_cut_end_mark(text: &[u8]) -> &[u8] {
    let trim = |text: &[u8]| text.len() - crate::lex::names::trailing_blanks(text);
    let count = |bracket: u8| crate::lex::search::memchr_iter(bracket, text).count();
    if count(b']') <= count(b'[') {
        return text;
    }
    let closed = text.get(..trim(text)).unwrap_or_default();
    let open = closed.strip_suffix(b"&gt;").or(closed.strip_suffix(b">"));
    let mut rest = open.unwrap_or(closed);
    let mut brackets = 0;
    while brackets < 2
        && let Some(shorter) = rest.get(..trim(rest)).and_then(|rest| rest.strip_suffix(b"]"))
    {
        rest = shorter;
        brackets += 1;
    }
    if brackets == 2 || brackets == 1 && open.is_some() { rest } else { text }
}

/// The length of a document type declaration, with its internal subset.
pub(crate) fn doctype_len(rest: &[u8]) -> Option<usize> {
    let mut in_subset = false;
    let mut at = 0;
    loop {
        match *rest.get(at)? {
            quote @ (b'"' | b'\'') => at += 1 + memchr(quote, rest.get(at + 1..)?)?,
            b'[' => in_subset = true,
            b']' => in_subset = false,
            b'<' if in_subset && rest.get(at..)?.starts_with(b"<!--") => {
                at += memmem::find(rest.get(at..)?, b"-->")?
            }
            b'>' if !in_subset => return Some(at + 1),
            _ => {}
        }
        at += 1;
        count_read(1);
    }
}

/// Whether an XML declaration begins here that lost its end mark. A declaration contains no markup, so the
/// next end mark belongs to another one.
pub(crate) fn is_torn_declaration(rest: &[u8]) -> bool {
    let is_declaration = rest.get(2..5).is_some_and(|target| target.eq_ignore_ascii_case(b"xml"))
        && rest.get(5).copied().is_some_and(is_blank);
    is_declaration
        && memchr(b'<', rest.get(1..).unwrap_or_default())
            .is_some_and(|markup| memmem::find(rest.get(..=markup).unwrap_or_default(), b"?>").is_none())
}

/// Whether a document type declaration begins here.
pub(crate) fn is_doctype(rest: &[u8]) -> bool {
    rest.get(2..9).is_some_and(|word| word.eq_ignore_ascii_case(b"DOCTYPE"))
}

/// Whether a comment is well-formed.
pub(crate) fn is_good_comment(text: &[u8]) -> bool {
    let inner = text.get(4..text.len().saturating_sub(3)).unwrap_or_default();
    memmem::find(inner, b"--").is_none() && !inner.ends_with(b"-")
}

/// Whether an instruction is an XML declaration in the wrong place, or has no legal name.
pub(crate) fn is_xml_target(text: &[u8]) -> bool {
    let inner = text.get(2..text.len().saturating_sub(2)).unwrap_or_default();
    let target = inner.get(..name_span(inner)).unwrap_or_default();
    target.eq_ignore_ascii_case(b"xml")
        || !is_local_name(target)
        || inner.get(target.len()).is_some_and(|&byte| !is_blank(byte))
}

/// The start of the tag whose local name follows `before`. The tag may have a prefix.
pub(crate) fn tag_before(before: &[u8]) -> Option<usize> {
    if before.ends_with(b"<") {
        return Some(before.len() - 1);
    }
    let before = before.strip_suffix(b":")?;
    let tag = before.iter().rposition(|&byte| matches!(byte, b'<' | b':'))?;
    let is_tag = before.get(tag) == Some(&b'<') && is_local_name(before.get(tag + 1..)?);
    is_tag.then_some(tag)
}

/// The opening mark and the end mark of the section that `text` begins with.
pub(crate) fn marks(text: &[u8]) -> Option<(&'static [u8], &'static [u8])> {
    let all: [(&[u8], &[u8]); 3] = [(CDATA, b"]]>"), (COMMENT, b"-->"), (INSTRUCTION, b"?>")];
    all.into_iter().find(|(mark, _)| text.starts_with(mark))
}
