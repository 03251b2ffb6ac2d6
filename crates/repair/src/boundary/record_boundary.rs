//! The decisions on the end of a broken item.
//!
//! [`boundary_search`](crate::boundary::boundary_search) walks over an item that is not valid, follows
//! its open elements, and asks these functions about tags of the list. Damage in one record must never change
//! the next record, and content must never become a record. Each row is a test below.
//!
//! "The list continues" means: the next item, the resumptionToken, the end of the list, the end of the
//! response or the end of the input follows. "Torn" means: no element around the place closes before the list
//! ends. The item ends at the first place at which it is torn.
//!
//! | found | where | boundary | why |
//! |---|---|---|---|
//! | end tag of the item | no other element is open | after it | it closes the item |
//! | | the payload is complete | after it, if the list continues | the item lost end tags of its children |
//! | | torn, and the list continues | after it | the item lost end tags in its payload |
//! | | elsewhere | no | a payload has the same name, as MARCXML has `record`, or wraps records |
//! | end tag of the list or the response | no other element is open | before it | the item lost its end tag |
//! | | only the end of the response follows | before it, or where the item is torn | the list ends |
//! | | elsewhere | no | a person typed it, or a payload wraps a list |
//! | start of an item | no other element is open, or one without a payload | before it | the item lost its end tag |
//! | | after a damaged end tag of the item | before it | the same |
//! | | torn | before it | the next item is never part of this one |
//! | | elsewhere | no | METS and others wrap records |
//! | resumptionToken | no other element is open | before it | the item lost its end tag |
//! | | torn, and the list ends after it | before it | a list has one token, at its end |
//! | | elsewhere | no | a person typed it, or a payload wraps a list |
//! | start of a response | torn, with a namespace and a responseDate | before it | the source sent the page twice |
//! | | elsewhere | no | a payload wraps it, or a person typed it |
//! | closed section | with or without tags in it | no | a depositor may write about records |
//! | | contains its own opening mark and a boundary | in it | its end mark is that of a second section (`torn-section`) |
//! | unclosed section | the input ends first | in it | it has no end of its own |
//!
//! If the input ends before the list, an item is torn only in a text or at the end tag of an item: the cut of
//! the input is the more probable reason for open elements. With `torn-section` turned off, a closed section
//! is content in any case. If an item is not repairable with this boundary, a second search treats closed
//! sections as unclosed.

use crate::lex::known_namespaces::{Family, is_similar_name};
use crate::lex::names::{blanks, name_span, split_name, trailing_blanks, trim};
use crate::lex::search::{memchr, memchr2, memmem, memrchr};
use crate::lex::window::TextWindow;
use crate::validate::envelope_names::{EnvelopeNames, TagMatch, any_match};

/// The end of a broken item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordBoundary {
    /// The item ends before this offset.
    At(usize),
    /// The input ends inside the item.
    InputEnd,
    /// More text is needed to decide.
    NeedMore,
    /// There is no boundary within the bytes that may be held.
    TooLong,
}

/// Decides on an end tag of the list or of the root inside an open element of the item. It is the end of
/// the list if only the end of the response follows. Otherwise it is text that a person typed. If
/// `in_payload`, the payload contains a list, and the end of the input proves nothing.
pub(crate) fn list_end(
    window: TextWindow<'_>,
    at: usize,
    in_payload: bool,
    names: &EnvelopeNames,
) -> Option<RecordBoundary> {
    let text = window.text;
    let at_end = if in_payload { None } else { Some(RecordBoundary::At(at)) };
    let undecided = if window.is_last { at_end } else { Some(RecordBoundary::NeedMore) };
    let rest = text.get(at..).unwrap_or_default();
    let Some(end) = memchr(b'>', rest) else {
        return if window.is_last { None } else { Some(RecordBoundary::NeedMore) };
    };
    let after = rest.get(end + 1..).unwrap_or_default();
    let after = after.get(blanks(after)..).unwrap_or_default();
    if after.is_empty() {
        return undecided;
    }
    match names.match_tag(after, b"</", b"OAI-PMH") {
        TagMatch::Yes => Some(RecordBoundary::At(at)),
        TagMatch::Cut => undecided,
        TagMatch::No => None,
    }
}

/// The length of the end tag that `text` begins with. A tag without `>` ends before the white space before
/// the next `<`. `None` if the text ends before either.
pub(crate) fn end_tag_len(text: &[u8]) -> Option<usize> {
    let end = memchr2(b'<', b'>', text.get(1..)?)? + 1;
    if text.get(end) == Some(&b'>') {
        return Some(end + 1);
    }
    Some(end - trailing_blanks(text.get(..end)?))
}

/// Longest damaged end tag of an item, with the white space around it, in bytes.
const DAMAGED_TAG_BYTES_MAX: usize = 256;

/// Whether `before` ends with the end tag of a child of the item. One damaged end tag of the item may
/// follow it: `</recrod>`, `</recor`, `<record>`, `record>`.
pub(crate) fn follows_last_child(before: &[u8], names: &EnvelopeNames) -> bool {
    if names.ends_with_child(before) {
        return true;
    }
    let tail_at = before.len().saturating_sub(DAMAGED_TAG_BYTES_MAX);
    let tail = before.get(tail_at..).unwrap_or_default();
    let last = tail.get(..tail.len() - trailing_blanks(tail)).unwrap_or_default();
    let last = last.strip_suffix(b">").unwrap_or(last);
    let tag_at = memrchr(b'>', last).map_or(0, |end| end + 1);
    let tag = trim(tail.get(tag_at..).unwrap_or_default());
    let is_whole = tag.ends_with(b">") && names.match_tag(tag, b"</", names.element.name) == TagMatch::Yes;
    let (is_end_tag, name) = match tag.strip_prefix(b"</") {
        Some(name) => (true, name),
        None => (false, tag.strip_prefix(b"<").unwrap_or(tag)),
    };
    let local = split_name(name.strip_suffix(b">").unwrap_or(name)).1;
    let is_damaged = is_end_tag && !name.contains(&b'<') || is_similar_name(trim(local), names.element.name);
    !is_whole && is_damaged && names.ends_with_child(before.get(..tail_at + tag_at).unwrap_or_default())
}

/// The start tag of a root and the first element of a response are within this many bytes.
const DOCUMENT_START_BYTES: usize = 4 << 10;

/// Decides on a root's start tag that no element of the item wraps. If it begins a response, it is a second
/// attempt of the source to send the page, after a first attempt that stopped here. Otherwise it is text.
pub(crate) fn document_start(window: TextWindow<'_>, at: usize) -> Option<RecordBoundary> {
    let rest = window.text;
    let within = rest.get(..DOCUMENT_START_BYTES).unwrap_or(rest);
    let is_root = memmem::find(within, b"responseDate").is_some_and(|date| {
        let tag_end = memchr(b'>', within).unwrap_or(date);
        let namespace = memmem::find(within.get(..tag_end).unwrap_or_default(), b"openarchives.org/OAI/");
        tag_end < date && namespace.is_some()
    });
    if is_root {
        Some(RecordBoundary::At(at))
    } else if within.len() < DOCUMENT_START_BYTES && !window.is_last {
        Some(RecordBoundary::NeedMore)
    } else {
        None
    }
}

/// The name of the element whose start tag is at the end of `before`; empty if there is none. White space
/// may follow the tag.
pub(crate) fn parent_name(before: &[u8]) -> &[u8] {
    let before = before.get(..before.len() - trailing_blanks(before)).unwrap_or_default();
    let tag = memrchr(b'<', before).and_then(|at| before.get(at + 1..));
    let tag = tag.and_then(|tag| tag.strip_suffix(b">")).filter(|tag| memchr(b'>', tag).is_none());
    let tag = tag.filter(|tag| !tag.ends_with(b"/"));
    tag.and_then(|tag| tag.get(..name_span(tag))).unwrap_or_default()
}

/// Whether an element of a payload can wrap an item, given its name. A field cannot, nor can an envelope
/// element at any depth, nor the root of a format that consists of fields.
pub(crate) fn is_wrapper(name: &[u8], names: &EnvelopeNames) -> bool {
    let (_, local) = split_name(name);
    !local.is_empty()
        && !names.element.contains_name(local)
        && !Family::DublinCore.is_field(local)
        && !Family::Marc.is_field(local)
        && !Family::Mods.is_field(local)
        && !Family::Mods.is_container(local)
        && !matches!(Family::of_root(local, b""), Family::DublinCore | Family::Marc)
}

/// Decides on a resumptionToken that does not follow the end tag of a child. It is a boundary if the list
/// ends after it.
pub(crate) fn token_before_list_end(
    window: TextWindow<'_>,
    at: usize,
    names: &EnvelopeNames,
) -> Option<RecordBoundary> {
    let rest = window.text;
    let more = if window.is_last { None } else { Some(RecordBoundary::NeedMore) };
    let Some(tag_end) = memchr(b'>', rest) else { return more };
    let mut after = rest.get(tag_end + 1..).unwrap_or_default();
    if rest.get(tag_end.wrapping_sub(1)) != Some(&b'/') {
        let Some(next) = memchr(b'<', after) else { return more };
        let end = after.get(next..).unwrap_or_default();
        match names.match_token_tag(end, b"</") {
            TagMatch::No => return None,
            TagMatch::Cut => return more,
            TagMatch::Yes => {}
        }
        let Some(close) = memchr(b'>', end) else { return more };
        after = end.get(close + 1..).unwrap_or_default();
    }
    let after = after.get(blanks(after)..).unwrap_or_default();
    match any_match([names.match_tag(after, b"</", &names.verb), names.match_tag(after, b"</", b"OAI-PMH")]) {
        TagMatch::Yes => Some(RecordBoundary::At(at)),
        TagMatch::Cut => more,
        TagMatch::No => None,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]
    use crate::boundary::boundary_search::BoundarySearch;
    use crate::boundary::record_boundary::{RecordBoundary, parent_name};
    use crate::lex::lookahead::Lookahead;
    use crate::lex::window::TextWindow;
    use crate::limits::Limits;
    use crate::validate::envelope_names::EnvelopeNames;

    const HEADER: &str = "<header><identifier>oai:a:1</identifier><datestamp>2024-01-01</datestamp></header>";
    const END: &str = "</ListRecords></OAI-PMH>";

    fn names(repairs_torn_sections: bool) -> EnvelopeNames {
        EnvelopeNames { repairs_torn_sections, ..EnvelopeNames::of_records() }
    }

    /// Searches in each prefix of the text, with one search, and then in the whole text.
    fn search(text: &[u8], repairs_torn_sections: bool, is_second: bool) -> RecordBoundary {
        let (names, bytes_max) = (names(repairs_torn_sections), Limits::default().record_bytes_max);
        let first = BoundarySearch::new(0, Lookahead::default());
        let mut search = if is_second { first.into_second_search() } else { first };
        for len in 0..text.len() {
            let boundary = search.find(TextWindow::so_far(&text[..len]), &names, bytes_max);
            if boundary != RecordBoundary::NeedMore {
                return boundary;
            }
        }
        search.find(TextWindow::whole(text), &names, bytes_max)
    }

    /// `case` is an item from its first payload on, and the text after it. `|` is the expected boundary,
    /// `#` is a header and `~` the end of the response.
    #[track_caller]
    fn check(case: &str, repairs_torn_sections: bool, is_second: bool) {
        let text = format!("<record>#{case}").replace('#', HEADER).replace('~', END);
        let expected = text.find('|').map_or(RecordBoundary::InputEnd, RecordBoundary::At);
        let text = text.replacen('|', "", 1);
        assert_eq!(
            search(text.as_bytes(), repairs_torn_sections, is_second),
            expected,
            "{case}, torn-section: {repairs_torn_sections}"
        );
    }

    #[track_caller]
    fn check_all(cases: &[&str]) {
        for case in cases {
            check(case, false, false);
            check(case, true, false);
        }
    }

    #[test]
    fn an_end_tag_of_the_item_is_a_boundary_where_the_list_continues() {
        check_all(&[
            "<metadata><a>x</record>|<record>#</record>~",
            "<metadata><a>x</record>|\n<resumptionToken>x</resumptionToken>~",
            "<metadata><a>x</record>|\n~",
            "<metadata><a>x</record>|",
        ]);
    }

    #[test]
    fn an_end_tag_of_the_item_is_a_boundary_after_the_last_child() {
        check_all(&["<metadata><a></metadata>\n</record>|text<record>#</record>~"]);
    }

    #[test]
    fn an_end_tag_of_the_item_is_content_elsewhere() {
        check_all(&[
            "<metadata><r></record> text </r><b></metadata></record>|~",
            "<metadata><x:xmlData><OAI-PMH><record>#</record><record>#</record></OAI-PMH></x:xmlData>\
             <b></metadata></record>|~",
        ]);
    }

    #[test]
    fn the_end_of_the_list_is_a_boundary_after_the_last_child() {
        check_all(&["<metadata><a></metadata>|~", "<metadata><a></metadata>\n|</OAI-PMH>text"]);
    }

    #[test]
    fn the_end_of_the_list_is_a_boundary_before_the_end_of_the_response() {
        check_all(&["<metadata><a>text|~", "<metadata><a>text|</ListRecords>\n"]);
    }

    #[test]
    fn the_end_of_the_list_is_content_elsewhere() {
        check_all(&["<metadata><a>see </ListRecords> for <b></metadata></record>|~"]);
    }

    #[test]
    fn the_start_of_an_item_is_a_boundary_after_the_last_child() {
        check_all(&[
            "<metadata><a></metadata>|<record>#</record>~",
            "<metadata><a></metadata></recrod>\n|<record>#</record>~",
            "<metadata><a></metadata>record>|<record>#</record>~",
        ]);
    }

    #[test]
    fn the_start_of_an_item_is_content_in_an_element_that_can_wrap_it() {
        check_all(&["<metadata><x:xmlData><record>#</record></x:xmlData><b></metadata></record>|~"]);
    }

    #[test]
    fn a_valid_item_inside_is_the_next_one_if_the_list_continues_after_it() {
        check_all(&[
            "<metadata><a>text |<record>#</record>~",
            "<metadata><a>text <record>#</record> text</a><b></metadata></record>|~",
        ]);
    }

    #[test]
    fn a_broken_item_inside_is_the_next_one_if_its_end_is_a_boundary() {
        check_all(&[
            "<metadata><a>text |<record>#<metadata><b></metadata></record>~",
            "<metadata><a>text <record>#<metadata><b></metadata></record> text</a></metadata></record>|~",
        ]);
    }

    #[test]
    fn an_end_tag_of_a_child_is_content_if_the_payload_goes_on() {
        check_all(&[
            "<metadata><w><r><\u{FFFD}metadata></metadata></r><record>#</record></w></metadata></record>|~",
            "<metadata><w></metadata></w>|<record>#</record>~",
        ]);
    }

    #[test]
    fn a_start_tag_names_the_parent_only_at_the_end() {
        for (before, name) in [
            ("<a><b:c d='e'> \n", "b:c"),
            ("<a>text", ""),
            ("<a>text>", ""),
            ("</a>", ""),
            ("<a/>", ""),
            ("</<a>b>", ""),
        ] {
            assert_eq!(parent_name(before.as_bytes()), name.as_bytes(), "{before}");
        }
    }

    #[test]
    fn a_token_is_a_boundary_after_the_last_child_and_before_the_end_of_the_list() {
        check_all(&[
            "<metadata><a></metadata>|<resumptionToken>x</resumptionToken>~",
            "<metadata><a>text |<resumptionToken>x</resumptionToken>~",
            "<metadata><a>text |<resumptionToken/>~",
            "<metadata><a>see <resumptionToken>x</resumptionToken> for <b></metadata></record>|~",
        ]);
    }

    #[test]
    fn the_start_of_a_response_is_a_boundary_unless_it_is_wrapped_or_typed() {
        check_all(&[
            "<metadata><a>text |<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2024",
            "<metadata><x:xmlData><OAI-PMH><a></OAI-PMH></x:xmlData><b></metadata></record>|~",
            "<metadata><a>see <OAI-PMH> for <b></metadata></record>|~",
        ]);
    }

    #[test]
    fn a_closed_section_is_content() {
        check_all(&[
            "<metadata><a><![CDATA[</record><record>#</record>]]><b></metadata></record>|~",
            "<metadata><a><!-- </record><record>#</record> --><b></metadata></record>|~",
            "<metadata><a><?x </record><record>#</record> ?><b></metadata></record>|~",
        ]);
    }

    #[test]
    fn a_section_with_a_boundary_and_its_own_opening_mark_is_torn() {
        let torn = "<metadata><a><![CDATA[x</a></metadata></record>|<record>#<metadata><a><![CDATA[x]]></a>\
                    </metadata></record>~";
        let content = "<metadata><a><![CDATA[x</a></metadata></record><record>#<metadata><a><![CDATA[x]]></a>\
                       </metadata></record>|~";
        check(torn, true, false);
        check(content, false, false);
    }

    #[test]
    fn an_unclosed_section_is_no_content() {
        check_all(&[
            "<metadata><a><![CDATA[x</a></metadata></record>|<record>#</record>~",
            "<metadata><a><!-- x</a></metadata></record>|<record>#</record>~",
        ]);
    }

    #[test]
    fn a_second_search_finds_boundaries_in_sections() {
        let torn =
            "<metadata><a><![CDATA[x</a></metadata></record>|<record>#</record>]]><b></metadata></record>~";
        check(torn, true, true);
    }
}
