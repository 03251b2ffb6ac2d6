//! The names in the tags of one list, and the places at which these tags occur.
//!
//! The search for boundaries, the validator and the stages compare text with them. More text never changes
//! a result: too little text is [`TagMatch::Cut`].

use crate::lex::known_namespaces::is_within_distance;
use crate::lex::names::{
    blanks, is_blank, is_name_byte, name_span, split_name, strip_end, strip_start, trailing_blanks,
};
use crate::lex::search::{memchr, memchr2, memmem, memrchr};
use crate::validate::schema::{Content, Element, item_of};
use oaimend_oai::Verb;

const TOKEN: &[u8] = b"resumptiontoken";
/// The number of letters by which a misspelt `resumptionToken` may differ.
const TOKEN_LETTERS: usize = 2;
/// Fewest letters of a cut name that is recognised as `resumptionToken`.
const CUT_TOKEN_LETTERS_MIN: usize = 6;

/// The names in the tags of one list.
#[derive(Clone, Debug)]
pub(crate) struct EnvelopeNames {
    pub(crate) element: &'static Element,
    /// For a response of OAI-PMH 1.x, the corresponding element of 2.0.
    pub(crate) v2_element: Option<&'static Element>,
    /// The name of the verb element in the text, for example `ListRecords`.
    pub(crate) verb: Vec<u8>,
    /// The prefix of the OAI-PMH namespace with its colon, or nothing.
    pub(crate) prefix: Vec<u8>,
    /// A second prefix of items of the list, with its colon.
    pub(crate) other_prefix: Option<Vec<u8>>,
    pub(crate) prefixes: EnvelopePrefixes,
    /// Whether the items are records of which only the header belongs to the list.
    pub(crate) headers_only: bool,
    /// Whether `torn-section` is on: a closed section that contains a boundary may be treated as unclosed.
    pub(crate) repairs_torn_sections: bool,
}

/// The handling of prefixes of envelope elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnvelopePrefixes {
    /// Prefixes are an error.
    Forbidden,
    /// Prefixes are removed.
    Removed,
    /// Prefixes stay, because the repair is turned off.
    Kept,
}

/// Whether a tag is at a place. `Cut`: the text ends too early to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagMatch {
    Yes,
    No,
    Cut,
}

#[cfg(test)]
impl EnvelopeNames {
    /// The names of a list of records in OAI-PMH 2.0, without a prefix.
    pub(crate) fn of_records() -> Self {
        Self {
            element: &crate::validate::schema::RECORD,
            v2_element: None,
            verb: b"ListRecords".to_vec(),
            prefix: Vec::new(),
            other_prefix: None,
            prefixes: EnvelopePrefixes::Forbidden,
            headers_only: false,
            repairs_torn_sections: false,
        }
    }
}

impl EnvelopeNames {
    /// The names of the same list in OAI-PMH 2.0.
    pub(crate) fn as_v2(&self) -> Self {
        Self { element: self.v2_element.unwrap_or(self.element), v2_element: None, ..self.clone() }
    }

    /// Whether valid items are rewritten for the output.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.v2_element.is_some()
            || self.headers_only
            || self.prefixes == EnvelopePrefixes::Removed
            || self.element.name == b"metadataFormat"
    }

    pub(crate) fn children(&self) -> &'static [Element] {
        match self.element.content {
            Content::Children(children) => children,
            Content::Payload | Content::Text(_) => &[],
        }
    }

    /// The prefixes of items.
    pub(crate) fn item_prefixes(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.prefix.as_slice()).chain(self.other_prefix.as_deref())
    }

    /// The first bytes of the tags of items: `open`, a prefix and the name.
    fn item_marks(&self, open: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        self.item_prefixes().map(move |prefix| [open, prefix, self.element.name].concat())
    }

    /// Whether `name` is that of a child of the item.
    pub(crate) fn is_child(&self, name: &[u8]) -> bool {
        self.item_prefixes()
            .filter_map(|prefix| name.strip_prefix(prefix))
            .any(|local| self.children().iter().any(|child| child.name == local))
    }

    /// Whether `name` is that of a child of the item that contains a payload.
    pub(crate) fn has_payload(&self, name: &[u8]) -> bool {
        self.item_prefixes().filter_map(|prefix| name.strip_prefix(prefix)).any(|local| {
            let mut children = self.children().iter();
            children.any(|child| child.name == local && matches!(child.content, Content::Payload))
        })
    }

    /// Whether `name` is that of an envelope element inside an item.
    pub(crate) fn is_inside_item(&self, name: &[u8]) -> bool {
        let local = self.item_prefixes().find_map(|prefix| name.strip_prefix(prefix));
        local.is_some_and(|local| self.children().iter().any(|child| child.contains_name(local)))
    }

    /// Whether `text` begins with `open` (`<` or `</`), a prefix, the name, and the end of the name. An end
    /// tag without `>` ends at the next `<`.
    #[inline]
    pub(crate) fn match_tag(&self, text: &[u8], open: &[u8], name: &[u8]) -> TagMatch {
        let prefixed = match_prefixed_tag(text, open, &self.prefix, name);
        match &self.other_prefix {
            Some(other) if prefixed != TagMatch::Yes => {
                any_match([prefixed, match_prefixed_tag(text, open, other, name)])
            }
            _ => prefixed,
        }
    }

    /// Whether an item begins here: its start tag, followed by one of its children.
    pub(crate) fn starts_item(&self, text: &[u8]) -> TagMatch {
        self.starts_element(text, self.element)
    }

    /// Whether an item of the other form begins here: ListIdentifiers can contain headers, and records with
    /// headers.
    pub(crate) fn starts_other_item(&self, text: &[u8]) -> TagMatch {
        if self.headers_only {
            self.starts_element(text, item_of(Verb::ListIdentifiers))
        } else if self.verb == Verb::ListIdentifiers.as_bytes() && self.v2_element.is_none() {
            self.starts_element(text, item_of(Verb::ListRecords))
        } else {
            TagMatch::No
        }
    }

    /// Whether the item that `text` begins with has its identifier first. Text about items mostly has none.
    pub(crate) fn has_identifier_first(&self, text: &[u8]) -> TagMatch {
        const TAGS_MAX: usize = 3;
        let mut rest = text;
        for _ in 0..TAGS_MAX {
            let name = rest.get(1..).unwrap_or_default();
            let span = name_span(name);
            if span == name.len() {
                return TagMatch::Cut;
            }
            let local = split_name(name.get(..span).unwrap_or_default()).1;
            let names: [&[u8]; 3] = [b"identifier", b"setSpec", b"metadataPrefix"];
            if names.into_iter().any(|name| local.eq_ignore_ascii_case(name)) {
                return TagMatch::Yes;
            }
            let Some(end) = memchr(b'>', rest) else { return TagMatch::Cut };
            rest = rest.get(end + 1..).unwrap_or_default();
            rest = rest.get(blanks(rest)..).unwrap_or_default();
            match rest.first() {
                Some(b'<') => {}
                Some(_) => return TagMatch::No,
                None => return TagMatch::Cut,
            }
        }
        TagMatch::No
    }

    fn starts_element(&self, text: &[u8], element: &Element) -> TagMatch {
        match self.match_tag(text, b"<", element.name) {
            TagMatch::Yes => {}
            other => return other,
        }
        let Some(end) = memchr2(b'<', b'>', text.get(1..).unwrap_or_default()).map(|end| end + 1) else {
            return TagMatch::Cut;
        };
        if text.get(end) == Some(&b'<') || text.get(end.wrapping_sub(1)) == Some(&b'/') {
            return TagMatch::No;
        }
        let after = text.get(end + 1..).unwrap_or_default();
        let after = after.get(blanks(after)..).unwrap_or_default();
        if after.is_empty() {
            return TagMatch::Cut;
        }
        let Content::Children(children) = element.content else { return TagMatch::No };
        match any_match(children.iter().map(|child| self.match_tag(after, b"<", child.name))) {
            TagMatch::No => self.starts_in_other_case(after, children),
            found => found,
        }
    }

    /// Whether `tag` is the start tag of one of these elements with its name in another case.
    fn starts_in_other_case(&self, tag: &[u8], elements: &[Element]) -> TagMatch {
        let names = self.item_prefixes().filter_map(|prefix| tag.strip_prefix(b"<")?.strip_prefix(prefix));
        any_match(names.map(|name| {
            let end = name.iter().position(|&byte| !is_name_byte(byte));
            let name = name.get(..end.unwrap_or(name.len())).unwrap_or_default();
            let begins = |element: &Element| {
                element.name.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
            };
            match end {
                None if elements.iter().any(begins) => TagMatch::Cut,
                Some(_) if elements.iter().any(|element| element.name.eq_ignore_ascii_case(name)) => {
                    TagMatch::Yes
                }
                _ => TagMatch::No,
            }
        }))
    }

    /// Whether a resumptionToken begins here, in any spelling.
    pub(crate) fn starts_token(&self, text: &[u8]) -> TagMatch {
        if has_short_name(text.get(1..).unwrap_or_default()) {
            return TagMatch::No;
        }
        self.match_token_tag(text, b"<")
    }

    /// Whether `text` begins with `open` (`<` or `</`) and a spelling of `resumptionToken`.
    pub(crate) fn match_token_tag(&self, text: &[u8], open: &[u8]) -> TagMatch {
        let Some(body) = text.strip_prefix(open) else {
            return if open.starts_with(text) { TagMatch::Cut } else { TagMatch::No };
        };
        let mut local_at = 0;
        for (at, &byte) in body.iter().enumerate() {
            if byte == b':' && local_at == 0 {
                local_at = at + 1;
            } else if !is_name_byte(byte) {
                let is_token = body.get(local_at..at).is_some_and(is_token_name);
                return if is_token { TagMatch::Yes } else { TagMatch::No };
            }
        }
        TagMatch::Cut
    }

    /// Whether `text`, after white space, continues the list after an item.
    pub(crate) fn follows_item(&self, text: &[u8]) -> TagMatch {
        let text = text.get(blanks(text)..).unwrap_or_default();
        if text.is_empty() {
            return TagMatch::Cut;
        }
        any_match([
            self.starts_item(text),
            self.starts_token(text),
            self.match_tag(text, b"</", &self.verb),
            self.match_tag(text, b"</", b"OAI-PMH"),
        ])
    }

    /// Whether `text` ends with the end tag of a child of the item. White space may follow the tag.
    pub(crate) fn ends_with_child(&self, text: &[u8]) -> bool {
        let text = text.get(..text.len() - trailing_blanks(text)).unwrap_or_default();
        self.children().iter().any(|child| {
            text.strip_suffix(b">").and_then(|text| strip_end(text, child.name)).is_some_and(|text| {
                let mut after = self.item_prefixes().filter_map(|prefix| strip_end(text, prefix));
                after.any(|text| text.ends_with(b"</"))
            })
        })
    }

    /// Whether `text` ends with an end tag of the item.
    pub(crate) fn ends_with_item(&self, text: &[u8]) -> bool {
        let tag = memrchr(b'<', text).and_then(|at| text.get(at..)).unwrap_or_default();
        self.match_tag(tag, b"</", self.element.name) == TagMatch::Yes
    }

    /// Whether an item begins inside `body`.
    pub(crate) fn contains_item(&self, body: &[u8]) -> bool {
        self.item_marks(b"<").any(|start| memmem::find_iter(body, &start).any(|at| self.is_item_at(body, at)))
    }

    fn is_item_at(&self, body: &[u8], at: usize) -> bool {
        self.starts_item(body.get(at..).unwrap_or_default()) == TagMatch::Yes
    }

    /// Whether an item begins inside `body` and does not end there.
    pub(crate) fn contains_cut_item(&self, body: &[u8]) -> bool {
        let last =
            |start: Vec<u8>| memmem::find_iter(body, &start).filter(|&at| self.is_item_at(body, at)).last();
        let after = self.item_marks(b"<").filter_map(last).max().and_then(|at| body.get(at..));
        after.is_some_and(|after| !self.item_marks(b"</").any(|end| memmem::find(after, &end).is_some()))
    }

    /// Whether `body` contains a boundary.
    pub(crate) fn contains_boundary(&self, body: &[u8]) -> bool {
        let is_boundary = |at: usize| {
            let tag = body.get(at..).unwrap_or_default();
            memchr(b'>', tag)
                .is_some_and(|end| self.follows_item(tag.get(end + 1..).unwrap_or_default()) == TagMatch::Yes)
        };
        self.contains_item(body)
            || self.item_marks(b"</").any(|mark| memmem::find_iter(body, &mark).any(is_boundary))
    }
}

/// Whether `text` begins with `open`, the prefix, the name, and the end of the name.
#[inline]
fn match_prefixed_tag(text: &[u8], open: &[u8], prefix: &[u8], name: &[u8]) -> TagMatch {
    // The first letter rejects most tags.
    match text.get(open.len() + prefix.len()) {
        Some(letter) if name.first() != Some(letter) => TagMatch::No,
        _ => match_whole_tag(text, open, prefix, name),
    }
}

fn match_whole_tag(text: &[u8], open: &[u8], prefix: &[u8], name: &[u8]) -> TagMatch {
    let mut rest = text;
    for part in [open, prefix, name] {
        if rest.len() < part.len() {
            return if part.starts_with(rest) { TagMatch::Cut } else { TagMatch::No };
        }
        match strip_start(rest, part) {
            Some(after) => rest = after,
            None => return TagMatch::No,
        }
    }
    match rest.first() {
        None => TagMatch::Cut,
        Some(&byte) if is_blank(byte) || matches!(byte, b'>' | b'/') => TagMatch::Yes,
        Some(b'<') if open == b"</" => TagMatch::Yes,
        Some(_) => TagMatch::No,
    }
}

/// Whether a name without its prefix means `resumptionToken`. It may be in another case, in the plural, or
/// misspelt.
pub(crate) fn is_token_name(local: &[u8]) -> bool {
    // Most names are shorter.
    local.len().abs_diff(TOKEN.len()) <= TOKEN_LETTERS
        && is_within_distance(&local.to_ascii_lowercase(), TOKEN, TOKEN_LETTERS)
}

/// Whether the name that `text` begins with is surely shorter than a misspelt `resumptionToken`.
#[inline]
fn has_short_name(text: &[u8]) -> bool {
    const LETTERS_MIN: usize = TOKEN.len() - TOKEN_LETTERS;
    let Some(letters) = text.first_chunk::<LETTERS_MIN>() else { return false };
    letters.first_chunk().is_some_and(ends_name) || letters.last_chunk().is_some_and(ends_name)
}

/// Whether one of eight bytes is a `>`, white space or a control. All bytes are compared at a time, by the
/// usual tests for a zero byte and for a small byte.
#[inline]
fn ends_name(bytes: &[u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(*bytes);
    let zero_at_end = word ^ (ONES * b'>' as u64);
    let ends = zero_at_end.wrapping_sub(ONES) & !zero_at_end;
    let small = word.wrapping_sub(ONES * (b' ' as u64 + 1)) & !word;
    (ends | small) & (ONES << 7) != 0
}

/// Whether a name without its prefix is a cut `resumptionToken`.
pub(crate) fn is_cut_token_name(local: &[u8]) -> bool {
    local.len() >= CUT_TOKEN_LETTERS_MIN && TOKEN.starts_with(&local.to_ascii_lowercase())
}

pub(crate) fn any_match(matches: impl IntoIterator<Item = TagMatch>) -> TagMatch {
    let mut verdict = TagMatch::No;
    for found in matches {
        match found {
            TagMatch::Yes => return TagMatch::Yes,
            TagMatch::Cut => verdict = TagMatch::Cut,
            TagMatch::No => {}
        }
    }
    verdict
}
