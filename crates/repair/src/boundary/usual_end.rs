//! The end of a broken record whose tags of the envelope are all there, once each.
//!
//! Most broken records are of this kind: the damage is in a field. Their end is the end tag of the record
//! after a child of it, and finding it needs no open elements. At the first tag that occurs twice or belongs
//! to a list, [`boundary_search`](crate::boundary::boundary_search) starts again with the open elements.

use crate::boundary::record_boundary::end_tag_len;
use crate::lex::search::{count_read, find_frequent, memchr};
use crate::lex::simd::{NamePairs, find_pairs};
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

/// The search for the next markup that may count in the text of one list.
#[derive(Debug)]
pub(crate) struct CountingTags<'n> {
    names: &'n EnvelopeNames,
    pairs: NamePairs,
}

impl<'n> CountingTags<'n> {
    pub(crate) fn new(names: &'n EnvelopeNames) -> Self {
        let pair = |name: &[u8]| name.first_chunk::<2>().map(|&[first, second]| (first, Some(second)));
        let in_both = [RECORD.name, b"OAI-PMH", &names.verb].into_iter().filter_map(pair);
        let ends = in_both.clone().count();
        let children = CHILDREN.into_iter().filter_map(pair);
        let sections = [(b'!', None), (b'?', None)];
        let pairs: Vec<_> = in_both.chain(children).chain(sections).collect();
        Self { names, pairs: NamePairs::new(&pairs, ends) }
    }

    /// Returns the place of the first markup at or after `from` that may count.
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        let may_count = |at: usize| may_count(text.get(at..).unwrap_or_default(), self.names);
        let mut at = from;
        // With a prefix, the names have other first bytes.
        while self.names.prefix.is_empty() {
            let (step, mut found) = find_pairs(text, at, &self.pairs);
            count_read(step - at);
            at = step;
            if found == 0 {
                break;
            }
            while found != 0 {
                let tag = step + found.trailing_zeros() as usize;
                if may_count(tag) {
                    return Some(tag);
                }
                found &= found - 1;
            }
            at += 64;
        }
        find_frequent(b'<', text, at, may_count)
    }
}

/// Whether the markup that `text` begins with is a section or a tag that counts. The first letter of its name
/// excludes most tags.
#[inline]
fn may_count(text: &[u8], names: &EnvelopeNames) -> bool {
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
    /// The tags of a record up to the start tag of its metadata.
    pub(crate) fn in_metadata() -> Self {
        let children = CHILDREN.map(|name| name != b"about");
        Self { children, namesakes: 0 }
    }

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

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]
    use super::{CountingTags, may_count};
    use crate::boundary::boundary_search::BoundarySearch;
    use crate::lex::lookahead::Lookahead;
    use crate::lex::window::TextWindow;
    use crate::random;
    use crate::validate::envelope_names::EnvelopeNames;

    const PARTS: [&str; 30] = [
        "<",
        "</",
        "<!",
        "<?",
        ">",
        " ",
        ":",
        "/",
        "=",
        "\"",
        "re",
        "he",
        "me",
        "ab",
        "OA",
        "Li",
        "r",
        "m",
        "\n",
        "é",
        "record",
        "metadata",
        "resumptionToken",
        "marc:subfield",
        "a text of some words ",
        "dc:description",
        "oai:resumptionTokens ",
        "x:esumptionToken",
        "https://repository.example.org/index",
        "</record>",
    ];

    /// The first `<` that may count is found wherever it is, and no other.
    #[test]
    fn the_first_tag_that_may_count_is_found() {
        let seed = 0x5EED_0006_u64;
        let mut random = random(seed);
        let mut found = 0;
        for round in 0..60_000 {
            let mut names = EnvelopeNames::of_records();
            if round % 16 == 0 {
                names.prefix = b"oai:".to_vec();
            }
            if round % 3 == 0 {
                names.verb = b"GetRecord".to_vec();
            }
            let mut text = "-".repeat(random(70));
            for _ in 0..random(40) {
                text.push_str(PARTS[random(PARTS.len())]);
            }
            text.push_str(&"-".repeat(random(200)));
            let (text, from) = (text.as_bytes(), random(text.len() + 1));
            let expected = (from..text.len()).find(|&at| text[at] == b'<' && may_count(&text[at..], &names));
            let tag = CountingTags::new(&names).find(text, from);
            assert_eq!(tag, expected, "seed {seed:#x}, from {from}: {:?}", text.escape_ascii().to_string());
            found += usize::from(expected.is_some_and(|at| at + 130 < text.len()));
        }
        assert!(found > 10_000, "only {found} tags are before the end of their text");
    }

    /// The search from the payload on finds the boundary that a search from the start finds.
    #[test]
    fn a_common_header_decides_nothing() {
        const HEADER: &str = "<record><header><identifier>oai:a:1</identifier>\n<datestamp>2024-01-01</datestamp>\
            <setSpec>a</setSpec></header><metadata>";
        const CONTENT: [&str; 16] = [
            "<dc><t>a</t>",
            "</dc>",
            "<record>",
            "</record>",
            "<record><header>",
            "</metadata>",
            "<metadata>",
            "<about>",
            "</about>",
            "<header>",
            "<!-- c -->",
            "<![CDATA[",
            "</ListRecords>",
            "</OAI-PMH>",
            "<resumptionToken/>",
            " < & ",
        ];
        let seed = 0x5EED_0007_u64;
        let mut random = random(seed);
        let names = EnvelopeNames::of_records();
        for _ in 0..40_000 {
            let mut text = HEADER.to_owned();
            for _ in 0..random(8) {
                text.push_str(CONTENT[random(CONTENT.len())]);
            }
            text.push_str("</metadata></record>\n<record><header><identifier>");
            let window = TextWindow::new(text.as_bytes(), random(2) == 0);
            let mut from_start = BoundarySearch::new(7, Lookahead::default());
            let mut from_payload = BoundarySearch::new_in_payload(7, Lookahead::default(), HEADER.len());
            let [expected, found] = [&mut from_start, &mut from_payload]
                .map(|search| (search.find(window, &names, 4_000), search.found_section(), search.tear()));
            assert_eq!(found, expected, "seed {seed:#x}: {text}");
        }
    }
}
