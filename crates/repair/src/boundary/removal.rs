//! Items and resumptionTokens in text that is about to be removed.
//!
//! `output/head_buffer.rs` searches every removal outside items here. A removal that would lose an item or
//! a token goes to quarantine instead and counts as lost. The search does not depend on the names of the
//! list. A name with any prefix and in any case is evidence if a child of an item follows it.

use std::borrow::Cow;

use crate::catalog::RepairId;
use crate::lex::lexeme::{CDATA, COMMENT, Lexeme, is_good_comment, marks, next_lexeme};
use crate::lex::lookahead::NextMark;
use crate::lex::names::{blanks, is_blank, name_span, split_name, trim};
use crate::lex::search::{find_frequent, memchr, memchr2, memmem};
use crate::text::edits::Edits;
use crate::text::escape::escape;
use crate::validate::envelope_names::{EnvelopeNames, is_token_name};

/// Bytes of removed text that are searched again together with the text after them.
const OVERLAP_BYTES: usize = 1 << 10;
/// Longest header that is searched for an identifier and a datestamp, in bytes.
const HEADER_BYTES_MAX: usize = 8 << 10;

/// Names of items, and of the children that they can begin with.
const ITEMS: [(&[u8], &[&[u8]]); 4] = [
    (b"record", &[b"header", b"metadata"]),
    (b"header", &[b"identifier", b"datestamp"]),
    (b"set", &[b"setSpec"]),
    (b"metadataFormat", &[b"metadataPrefix"]),
];

/// Content that a removal would lose.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LostContent<'t> {
    /// An item. Identifier and datestamp are empty if they could not be read.
    Item { identifier: &'t [u8], datestamp: &'t [u8] },
    /// A resumptionToken with this value.
    Token(Cow<'t, [u8]>),
}

/// An item or a token in a text.
#[derive(Debug)]
pub(crate) struct Finding<'t> {
    pub(crate) at: usize,
    /// The end of the evidence for it.
    pub(crate) end: usize,
    pub(crate) content: LostContent<'t>,
}

/// What closed CDATA sections and instructions are to a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sections {
    /// Inside an item, they are content.
    Content,
    /// Between items, they are damage like the text around them. But the word `<resumptionToken>` in them is
    /// a token only with its end tag.
    Damage,
}

/// The items and tokens in `text`, each once. Legal comments are skipped.
fn findings(text: &[u8], sections: Sections) -> impl Iterator<Item = Finding<'_>> {
    let (mut at, mut section_end) = (0, 0);
    let mut ends = [NextMark::default(); 3];
    std::iter::from_fn(move || {
        // No name begins in an end tag.
        let is_start = |at: usize| text.get(at + 1) != Some(&b'/');
        while let Some(next) = find_frequent(b'<', text, at, is_start) {
            at = next;
            let rest = text.get(at..)?;
            if let Some((mark, end_mark)) = marks(rest) {
                let next = ends.get_mut(usize::from(mark == COMMENT) + 2 * usize::from(mark == CDATA))?;
                let end = next.find(text, 0, at + mark.len(), end_mark).map(|end| end + end_mark.len());
                let is_content = match sections {
                    Sections::Content => true,
                    Sections::Damage => mark == COMMENT,
                };
                match end {
                    Some(end) if is_content && (mark != COMMENT || is_good_comment(text.get(at..end)?)) => {
                        at = end;
                        continue;
                    }
                    Some(end) if mark == CDATA => section_end = section_end.max(end),
                    _ => {}
                }
            }
            let name = rest.get(1..).map(local_name).unwrap_or_default();
            let is_closed = |end: usize| {
                let end_tag = rest.get(end..).and_then(|rest| rest.strip_prefix(b"</"));
                at >= section_end || end_tag.is_some_and(|tag| is_token_name(local_name(tag)))
            };
            let token = || read_token(rest, name).filter(|&(end, _)| is_closed(end));
            if let Some((end, content)) = read_item(rest, name).or_else(token) {
                let finding = Finding { at, end: at + end, content };
                at = finding.end;
                return Some(finding);
            }
            at += 1;
        }
        None
    })
}

/// Whether `text` between items contains an item or a token.
pub(crate) fn contains_item_or_token(text: &[u8]) -> bool {
    findings(text, Sections::Damage).next().is_some()
}

/// The items in `text` between items, in their order: their places and identifiers.
pub(crate) fn items_between(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    findings(text, Sections::Damage).filter_map(|found| match found.content {
        LostContent::Item { identifier, .. } => Some((found.at, identifier)),
        LostContent::Token(_) => None,
    })
}

/// Whether an Identify contains an item or a token. It has none, so each belongs to another response.
pub(crate) fn mixes_responses(identify: &[u8]) -> bool {
    findings(identify.get(1..).unwrap_or_default(), Sections::Content).next().is_some()
}

/// Whether the edits of an item remove another item. Two payloads belong to their own record: that of a
/// record reduced to its header, and that of a deleted record.
pub(crate) fn removes_item(raw: &[u8], edits: &Edits, names: &EnvelopeNames) -> bool {
    edits.iter().any(|edit| {
        let is_payload = matches!(edit.id, RepairId::WrappedHeader | RepairId::DeletedWithMetadata);
        let removed = raw.get(edit.start.max(1)..edit.end).unwrap_or_default();
        !is_payload
            && findings(removed, Sections::Content).any(|finding| belongs_to_list(removed, &finding, names))
            && findings(&edit.replacement, Sections::Content).next().is_none()
    })
}

/// Whether a finding is a token or an item of this list. The header of a record is a part of that record.
/// Identify has no items, so each item in it belongs to another response.
fn belongs_to_list(text: &[u8], finding: &Finding<'_>, names: &EnvelopeNames) -> bool {
    let name = text.get(finding.at + 1..).map(local_name).unwrap_or_default();
    matches!(finding.content, LostContent::Token(_))
        || names.element.name == b"Identify"
        || name.eq_ignore_ascii_case(names.element.name)
}

/// The item that `text` begins with, in a tag with the name `local`, and where the evidence for it ends.
fn read_item<'t>(text: &'t [u8], local: &[u8]) -> Option<(usize, LostContent<'t>)> {
    let (_, children) = ITEMS.iter().find(|(name, _)| local.eq_ignore_ascii_case(name))?;
    let tag_end = tag_end(text)?;
    let inside = tag_end + blanks_and_comments(text.get(tag_end..)?);
    let child = text.get(inside..)?.strip_prefix(b"<")?;
    let end = inside + 1 + name_span(child);
    text.get(end)?;
    let child = local_name(child);
    if !children.iter().any(|name| child.eq_ignore_ascii_case(name)) {
        return None;
    }
    let header = text.get(..text.len().min(HEADER_BYTES_MAX)).unwrap_or_default();
    // A payload has identifiers of its own.
    let header = header.get(..memmem::find(header, b"metadata>").unwrap_or(header.len())).unwrap_or_default();
    // The header of a record is a part of the record and not another item.
    let end = match child.eq_ignore_ascii_case(b"header").then(|| tag_end_from(text, inside)).flatten() {
        Some(header_end) => header_end,
        None => end,
    };
    let (identifier, datestamp) = if local.eq_ignore_ascii_case(b"set") {
        (first_field(header, b"setSpec>"), b"".as_slice())
    } else if local.eq_ignore_ascii_case(b"metadataFormat") {
        (first_field(header, b"metadataPrefix>"), b"".as_slice())
    } else {
        (first_field(header, b"identifier>"), first_field(header, b"datestamp>"))
    };
    Some((end, LostContent::Item { identifier, datestamp }))
}

/// The resumptionToken with a value that `text` begins with, and the end of its value. `local` is the name
/// of its tag.
fn read_token<'t>(text: &'t [u8], local: &[u8]) -> Option<(usize, LostContent<'t>)> {
    if !is_token_name(local) {
        return None;
    }
    let start = tag_end(text)?;
    let rest = text.get(start..)?;
    let end = start + blanks(rest);
    let end = if text.get(end..)?.starts_with(CDATA) {
        end + memmem::find(text.get(end..)?, b"]]>").map_or(CDATA.len(), |at| at + 3)
    } else {
        start
    };
    let end = end + memchr(b'<', text.get(end..)?).unwrap_or(text.len() - end);
    let value = token_text(text.get(start..end)?);
    (!value.is_empty()).then_some((end, LostContent::Token(value)))
}

/// The value of a token, given the content of its element. CDATA sections become text; comments are
/// dropped.
pub(crate) fn token_text(content: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'<', content).is_none() {
        return Cow::Borrowed(trim(content));
    }
    let mut value = Vec::new();
    let mut at = 0;
    while at < content.len() {
        let (lexeme, end) = next_lexeme(content, at);
        let slice = content.get(at..end).unwrap_or_default();
        match lexeme {
            Lexeme::Text => value.extend_from_slice(slice),
            Lexeme::Cdata => {
                let inner = slice.get(CDATA.len()..slice.len() - 3).unwrap_or_default();
                value.extend_from_slice(&escape(inner));
            }
            Lexeme::EndTag => break,
            _ => {}
        }
        at = end;
    }
    Cow::Owned(trim(&value).to_vec())
}

/// The local part of the name that `text` begins with.
fn local_name(text: &[u8]) -> &[u8] {
    split_name(text.get(..name_span(text)).unwrap_or_default()).1
}

/// The end of the start tag that `text` begins with. `None` for an empty-element tag and for an unclosed
/// tag.
fn tag_end(text: &[u8]) -> Option<usize> {
    tag_end_from(text, 0)
}

fn tag_end_from(text: &[u8], at: usize) -> Option<usize> {
    let name_end = at + 1 + name_span(text.get(at + 1..)?);
    if !text.get(name_end).is_some_and(|&byte| is_blank(byte) || byte == b'>') {
        return None;
    }
    let end = name_end + memchr2(b'<', b'>', text.get(name_end..)?)?;
    let is_empty = text.get(..end).is_some_and(|tag| tag.ends_with(b"/"));
    (text.get(end) == Some(&b'>') && !is_empty).then_some(end + 1)
}

/// The length of the white space and comments that `text` begins with.
fn blanks_and_comments(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += blanks(text.get(at..).unwrap_or_default());
        match text.get(at..).is_some_and(|rest| rest.starts_with(COMMENT)).then(|| next_lexeme(text, at)) {
            Some((Lexeme::Comment, end)) => at = end,
            _ => return at,
        }
    }
}

/// The text of the first field whose start tag ends with `mark`.
fn first_field<'t>(text: &'t [u8], mark: &[u8]) -> &'t [u8] {
    let start = memmem::find(text, mark).map(|at| at + mark.len());
    let text = start.and_then(|start| text.get(start..)).unwrap_or_default();
    trim(text.get(..memchr(b'<', text).unwrap_or(0)).unwrap_or_default())
}

/// Searches removals in the order of the text. It also finds an item that adjacent removals split.
#[derive(Debug, Default)]
pub(crate) struct RemovalSearch {
    /// The last bytes of the last removed text, and the offset of their end.
    tail: Vec<u8>,
    tail_end: u64,
}

impl RemovalSearch {
    /// The number of items and tokens in `removed`, which begins at `offset`, for which `counts` is true.
    pub(crate) fn count(
        &mut self,
        offset: u64,
        removed: &[u8],
        mut counts: impl FnMut(&LostContent<'_>) -> bool,
    ) -> u64 {
        let mut found = 0;
        if self.tail_end != offset {
            self.tail.clear();
        }
        let old = self.tail.len();
        if old > 0 {
            self.tail.extend_from_slice(removed.get(..removed.len().min(OVERLAP_BYTES)).unwrap_or_default());
            let straddling =
                findings(&self.tail, Sections::Damage).filter(|found| found.at < old && found.end > old);
            found += straddling.filter(|found| counts(&found.content)).count();
        }
        found += findings(removed, Sections::Damage).filter(|found| counts(&found.content)).count();
        if removed.len() >= OVERLAP_BYTES || old == 0 {
            self.tail.clear();
            self.tail.extend_from_slice(last_bytes(removed));
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(OVERLAP_BYTES));
        }
        self.tail_end = offset + removed.len() as u64;
        found as u64
    }

    /// Notes text that stays. White space does not separate two removals.
    pub(crate) fn note_kept(&mut self, offset: u64, text: &[u8]) {
        if self.tail.is_empty() || self.tail_end != offset {
            return;
        }
        if text.len() > OVERLAP_BYTES || blanks(text) < text.len() {
            self.tail.clear();
            return;
        }
        self.tail.extend_from_slice(text);
        self.tail.drain(..self.tail.len().saturating_sub(OVERLAP_BYTES));
        self.tail_end += text.len() as u64;
    }
}

fn last_bytes(text: &[u8]) -> &[u8] {
    text.get(text.len().saturating_sub(OVERLAP_BYTES)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{LostContent, RemovalSearch, Sections, contains_item_or_token, findings, mixes_responses};

    #[test]
    fn an_item_is_found_under_any_prefix_and_case() {
        for text in [
            "x<record><header>",
            "<oai:record>\n <oai:header status=\"deleted\">",
            "<RECORD a=\"b\"><!-- c --><Header>",
            "<header><identifier>a</identifier>",
            "<set><setSpec>a",
            "<metadataFormat>\t<metadataPrefix>oai_dc",
            "<![CDATA[<record><header>]]>",
            "<!-- a -- b <record><header> -->",
        ] {
            assert!(contains_item_or_token(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_token_with_a_value_is_found() {
        for text in [
            "<resumptionToken>a</resumptionToken>",
            "<oai:ResumptionTokens cursor=\"0\">\n a",
            "<resumptiontoken><![CDATA[a]]></resumptiontoken>",
            "<resumtionToken>a</resumtionToken>",
        ] {
            assert!(contains_item_or_token(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn other_markup_is_no_content() {
        for text in [
            "<header><h1>Error</h1></header>",
            "<record xmlns=\"http://www.loc.gov/MARC21/slim\"><leader>",
            "<set><x/></set>",
            "<resumptionToken/>",
            "<resumptionToken> </resumptionToken>",
            "<!-- <record><header><identifier>withdrawn</identifier> -->",
            "<recordings><header>",
        ] {
            assert!(!contains_item_or_token(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_word_for_a_token_in_a_closed_section_is_no_token() {
        assert!(!contains_item_or_token(b"<x><![CDATA[the <resumptionToken> element]]></x>"));
        assert!(contains_item_or_token(b"<x><![CDATA[<resumptionToken>a</resumptionToken>]]></x>"));
        assert!(contains_item_or_token(b"<x><![CDATA[a]]></x><resumptionToken>cut"));
    }

    #[test]
    fn sections_of_an_item_are_content() {
        for section in ["<![CDATA[<record><header>]]>", "<!-- <record><header> -->", "<?x <record><header>?>"]
        {
            assert!(!mixes_responses(format!("<Identify>{section}</Identify>").as_bytes()), "{section}");
        }
        assert!(mixes_responses(b"<Identify><record><header>"));
        assert!(mixes_responses(b"<Identify><![CDATA[<record><header>"));
    }

    #[test]
    fn a_record_and_its_header_are_one_item() {
        let text =
            b"<record><header><identifier>a</identifier><datestamp>2020-01-01</datestamp></header></record>";
        let found: Vec<_> = findings(text, Sections::Damage).map(|found| found.content).collect();
        assert_eq!(found, [LostContent::Item { identifier: b"a", datestamp: b"2020-01-01" }]);
    }

    #[test]
    fn a_start_is_found_across_adjacent_removals() {
        let text = b"junk <record>\n<header><identifier>a</identifier>";
        for cut in 0..text.len() {
            let (first, second) = text.split_at(cut);
            let mut search = RemovalSearch::default();
            let found = search.count(7, first, |_| true) + search.count(7 + cut as u64, second, |_| true);
            assert!(found > 0, "cut at {cut}");
            // The header alone is evidence too.
            assert!(found <= 2, "cut at {cut}: {found}");
        }
    }

    #[test]
    fn removals_with_other_text_between_them_are_searched_apart() {
        let mut search = RemovalSearch::default();
        assert_eq!(search.count(0, b"<record>", |_| true), 0);
        search.note_kept(8, b"x");
        assert_eq!(search.count(9, b"<metadata>", |_| true), 0);
        assert_eq!(search.count(20, b"<record>", |_| true), 0);
        search.note_kept(28, b"\n");
        assert_eq!(search.count(29, b"<metadata>", |_| true), 1);
    }
}
