//! The fast path of the validator: reads the most common forms of items in one step.
//!
//! It reads a record up to its payload, a header, known tags inside a payload, and the end of a record.
//! These forms have no prefixes, references or comments in the envelope, and only white space between its
//! tags. The validator calls it first. The fast path leaves the validator in the state in which the general
//! path would leave it. Any other form goes to the general path, from the first byte of the item.
//!
//! # Why this repeats the grammar
//!
//! The tables of [`schema`](crate::validate::schema) define the envelope. This file repeats the common
//! part of them as code, because most records are valid and have exactly these tags. It compares the text with
//! constant tags. The general path looks up each tag, its context and its place in the sequence.
//!
//! The benches `oai_dc clean` and `marcxml clean` of `benches/repair.rs` justify the repetition: a page of
//! 100 KB is read 1.4 times as fast. If they do not get slower without a function of this file, remove the
//! function. The test `both_paths_return_the_same` compares both paths on random items.

use crate::lex::index::{Index, Mark};
use crate::lex::names::bytes_equal;
use crate::lex::namespaces::Context;
use crate::lex::window::ItemWindow;
use crate::limits::Limits;
use crate::span::Span;
use crate::validate::facts::ItemFacts;
use crate::validate::schema::{HEADER_ITEM, RECORD, Text};
use crate::validate::start_tag::StartTagCache;
use crate::validate::state::{
    ChildSequence, FIELD_BYTES_MAX, Inside, NOT_IN_PAYLOAD, OpenElement, Validator,
};
use oaimend_oai::set_spec;

/// The nesting of the fields, and the length of the longest tag. Smaller limits need the general path.
const DEPTH: usize = 3;
const TAG_BYTES: usize = br#"<header status="deleted">"#.len();

/// The index of `metadata` among the children of a record.
const METADATA: usize = 1;

/// Reads the start of the item of the window. The item was not read before.
pub(crate) fn read_common_start(
    validator: &mut Validator,
    window: ItemWindow<'_>,
    tags: &StartTagCache,
    limits: &Limits,
) -> CommonStart {
    let is_record = std::ptr::eq(validator.names.element, &raw const RECORD);
    let is_common = (is_record || std::ptr::eq(validator.names.element, &raw const HEADER_ITEM))
        && limits.depth_max >= DEPTH
        && limits.tag_bytes_max >= TAG_BYTES
        && limits.attributes_per_tag_max > 0
        && is_plain(window.text.get(window.item_at..).unwrap_or_default(), validator.outer, tags);
    if !is_common {
        return CommonStart::Other;
    }
    let mut reader = MarkReader { index: &mut validator.index, window, at: window.item_at };
    let facts = &mut validator.facts;
    let header = if is_record {
        reader.tag(b"<record>").and_then(|()| reader.header(facts))
    } else {
        reader.header(facts)
    };
    if header.is_none() {
        facts.clear();
        validator.index.seek(window.item_at);
        return CommonStart::Other;
    }
    validator.v1_positions.status_on_header = facts.deleted;
    if validator.names.v2_element.is_some() {
        validator.v1_positions.header = facts.header.start;
    }
    validator.lexeme_end = reader.at - window.item_at;
    validator.lexeme_start = validator.lexeme_end - b"</header>".len();
    if !is_record {
        return CommonStart::Whole;
    }
    let context = validator.outer;
    let open = |name_at: usize, name: &[u8]| {
        let (name_at, name_len) = (name_at as u32, name.len() as u32);
        OpenElement { name_at, name_len, is_dropped: false, context }
    };
    validator.stack.push(open(1, b"record"));
    let mut sequence = ChildSequence { children: validator.names.children(), at: 0, count: 1 };
    if !facts.deleted && reader.tag(b"<metadata>").is_some() {
        validator.lexeme_end = reader.at - window.item_at;
        validator.lexeme_start = validator.lexeme_end - b"<metadata>".len();
        validator.stack.push(open(validator.lexeme_start + 1, b"metadata"));
        validator.payload_depth = validator.stack.len();
        validator.inside = Inside::Payload { seen: false };
        validator.is_common = true;
        sequence.at = METADATA;
    }
    validator.sequences.push(sequence);
    if !validator.is_common {
        validator.index.seek(window.item_at + validator.lexeme_end);
    }
    CommonStart::Read
}

/// Continues in a payload while each tag is known: the end tag of the open element, or a cached start tag.
/// Returns the first other mark to the general path, which gives the same result for known tags.
pub(crate) fn read_known_tags(
    validator: &mut Validator,
    window: ItemWindow<'_>,
    tags: &StartTagCache,
    limits: &Limits,
) -> Mark {
    while let Some(&top) = validator.stack.last() {
        let mark = read_leaf_elements(validator, top.context, window, tags, limits);
        let Mark::At(at) = mark else { return mark };
        let rest = window.text.get(at..).unwrap_or_default();
        if rest.starts_with(b"</") {
            // The last open element ends the item. The general path handles that.
            if top.is_dropped
                || validator.stack.len() == 1
                || !is_end_tag_of(rest, validator.element_name(&top, window))
            {
                return mark;
            }
            validator.lexeme_start = at - window.item_at;
            validator.lexeme_end = validator.lexeme_start + top.name_len as usize + 3;
            validator.stack.pop();
            if !validator.in_payload() {
                return validator.index.next(window.window());
            }
        } else {
            let (Some(tag), true) = (tags.cached_tag(rest, top.context), rest.starts_with(b"<")) else {
                return mark;
            };
            if validator.stack.len() >= limits.depth_max {
                return mark;
            }
            validator.lexeme_start = at - window.item_at;
            validator.lexeme_end = validator.lexeme_start + tag.len as usize;
            let name_at = validator.lexeme_start as u32 + 1;
            validator.stack.push(OpenElement {
                name_at,
                name_len: tag.name_len,
                is_dropped: false,
                context: tag.context,
            });
        }
    }
    validator.index.next(window.window())
}

/// Reads empty elements, and elements that contain only text.
#[inline(always)]
fn read_leaf_elements(
    validator: &mut Validator,
    context: Context,
    window: ItemWindow<'_>,
    tags: &StartTagCache,
    limits: &Limits,
) -> Mark {
    let mut lexeme_start = validator.lexeme_start;
    let mut lexeme_end = window.item_at + validator.lexeme_end;
    let is_deepest = validator.stack.len() >= limits.depth_max;
    let mark = loop {
        let mark = validator.index.next(window.window());
        let Mark::At(at) = mark else { break mark };
        if at < lexeme_end {
            continue;
        }
        let Some(rest @ [b'<', second, ..]) = window.text.get(at..) else { break mark };
        if *second == b'/' {
            break mark;
        }
        let Some(tag) = tags.cached_tag(rest, context) else { break mark };
        if tag.empty {
            lexeme_start = at - window.item_at;
            lexeme_end = at + tag.len as usize;
            continue;
        }
        if is_deepest {
            break mark;
        }
        let Mark::At(end) = validator.index.next(window.window()) else { break mark };
        let name = rest.get(1..1 + tag.name_len as usize).unwrap_or_default();
        if !window.text.get(end..).is_some_and(|rest| is_end_tag_of(rest, name)) {
            validator.index.put_back(end);
            break mark;
        }
        lexeme_start = end - window.item_at;
        lexeme_end = end + name.len() + 3;
    };
    validator.lexeme_start = lexeme_start;
    validator.lexeme_end = lexeme_end - window.item_at;
    mark
}

/// Reads the end of a record whose start was common. `rest` begins at the last mark. After the payload
/// there must be only the two end tags.
pub(crate) fn read_common_end(validator: &mut Validator, rest: &[u8], window: ItemWindow<'_>) -> bool {
    let at = window.item_at + validator.lexeme_start;
    let is_after_payload = validator.stack.len() == validator.payload_depth
        && matches!(validator.inside, Inside::Payload { seen: true })
        && validator.sequences.last().is_some_and(|sequence| sequence.at == METADATA)
        && !validator.is_oversized
        && rest.starts_with(b"</metadata>")
        && is_white_space(window.text.get(window.item_at + validator.lexeme_end..at).unwrap_or_default());
    if !is_after_payload {
        return false;
    }
    let Mark::At(end) = validator.index.next(window.window()) else { return false };
    let after = window.text.get(end..).unwrap_or_default();
    let gap = window.text.get(at + b"</metadata>".len()..end).unwrap_or_default();
    if !after.starts_with(b"</record>") || !is_white_space(gap) {
        validator.index.put_back(end);
        return false;
    }
    if let Some(payload) = validator.v1_positions.payloads.last_mut() {
        payload.end = validator.lexeme_start as u32;
    }
    validator.stack.clear();
    validator.sequences.clear();
    validator.inside = Inside::Children;
    validator.payload_depth = NOT_IN_PAYLOAD;
    validator.lexeme_start = end - window.item_at;
    validator.lexeme_end = validator.lexeme_start + b"</record>".len();
    true
}

/// Whether `rest` begins with the end tag of an element with this name, without white space in the tag.
#[inline(always)]
fn is_end_tag_of(rest: &[u8], name: &[u8]) -> bool {
    let Some([b'<', b'/', closing @ ..]) = rest.get(..name.len() + 3) else { return false };
    closing.split_last().is_some_and(|(&last, found)| last == b'>' && bytes_equal(found, name))
}

/// Whether the cached start tag is an OAI-PMH tag without a prefix and without declarations. Then all tags
/// without a prefix are OAI-PMH tags here.
fn is_plain(rest: &[u8], outer: Context, tags: &StartTagCache) -> bool {
    tags.cached_tag(rest, outer).is_some_and(|tag| tag.oai && tag.prefix_len == 0 && tag.context == outer)
}

/// A position that moves from one mark to the next.
struct MarkReader<'s> {
    index: &'s mut Index,
    window: ItemWindow<'s>,
    /// The end of the last tag in the window.
    at: usize,
}

impl<'s> MarkReader<'s> {
    /// The text before the next mark, and the text from the mark.
    fn next(&mut self) -> Option<(&'s [u8], &'s [u8])> {
        let Mark::At(mark) = self.index.next(self.window.window()) else { return None };
        let (before, after) = self.window.text.split_at_checked(mark)?;
        Some((before.get(self.at..)?, after))
    }

    /// Reads this tag. Only white space may precede it.
    fn tag<const N: usize>(&mut self, tag: &[u8; N]) -> Option<()> {
        let (gap, after) = self.next()?;
        (is_white_space(gap) && after.starts_with(tag)).then(|| self.step(gap, N))
    }

    /// Reads the text of a field and its end tag. Returns the text and its range in the item.
    fn field<const N: usize>(&mut self, end_tag: &[u8; N]) -> Option<(&'s [u8], Span)> {
        let from = self.at - self.window.item_at;
        let (text, after) = self.next()?;
        if !after.starts_with(end_tag) || text.len() > FIELD_BYTES_MAX {
            return None;
        }
        self.step(text, N);
        Some((text, Span::new(from, from + text.len())))
    }

    fn step(&mut self, before: &[u8], tag_bytes: usize) {
        self.at += before.len() + tag_bytes;
    }

    /// Reads `header` with all its fields. If it returns `None`, it may have noted a part of the facts.
    fn header(&mut self, facts: &mut ItemFacts) -> Option<()> {
        let (gap, after) = self.next()?;
        if !is_white_space(gap) {
            return None;
        }
        facts.header.start = (self.at + gap.len() - self.window.item_at) as u32;
        if after.starts_with(b"<header>") {
            self.step(gap, b"<header>".len());
        } else if after.starts_with(br#"<header status="deleted">"#) {
            facts.deleted = true;
            self.step(gap, TAG_BYTES);
        } else {
            return None;
        }
        self.tag(b"<identifier>")?;
        let (identifier, range) = self.field(b"</identifier>")?;
        facts.identifier = range;
        self.tag(b"<datestamp>")?;
        let (datestamp, range) = self.field(b"</datestamp>")?;
        facts.datestamp = range;
        if !Text::Identifier.is_valid(identifier) || !Text::Datestamp.is_valid(datestamp) {
            return None;
        }
        loop {
            let (gap, after) = self.next()?;
            if !is_white_space(gap) {
                return None;
            }
            if after.starts_with(b"</header>") {
                self.step(gap, b"</header>".len());
                facts.header.end = (self.at - self.window.item_at) as u32;
                return Some(());
            }
            if !after.starts_with(b"<setSpec>") {
                return None;
            }
            self.step(gap, b"<setSpec>".len());
            let (name, range) = self.field(b"</setSpec>")?;
            facts.tilde_in_set |= set_spec::read(name)?;
            facts.set_specs.push(range);
        }
    }
}

/// Whether text between two tags is white space. The index rejects all other bytes below `!`.
fn is_white_space(text: &[u8]) -> bool {
    text.iter().all(|&byte| byte <= b' ')
}

/// The form of the start of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommonStart {
    /// A common header, perhaps with the start tag of `metadata`. The item continues.
    Read,
    /// A common header, which is the whole item.
    Whole,
    /// Another form. Nothing was read.
    Other,
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test may panic")]
    use crate::lex::index::Index;
    use crate::lex::namespaces::{Context, OAI};
    use crate::lex::window::TextWindow;
    use crate::limits::Limits;
    use crate::random;
    use crate::validate::envelope_names::EnvelopeNames;
    use crate::validate::schema::{HEADER_ITEM, RECORD};
    use crate::validate::start_tag::StartTagCache;
    use crate::validate::state::{Validation, Validator};

    const COMMON: &str = concat!(
        "<record>\n<header><identifier>oai:a:1</identifier><datestamp>2024-02-29</datestamp>\n",
        "<setSpec>a</setSpec><setSpec>b:c~</setSpec></header>\n\t<metadata><dc><t a=\"b\">x</t><t a=\"b\"/>",
        "<title>text</title><t a=\">\"><u>y</u></t></dc>\n</metadata>\n</record>",
    );
    /// A record with two payloads.
    const ABOUT: &str = concat!(
        "<record><header><identifier>oai:a:3</identifier><datestamp>2024-02-29</datestamp></header>",
        "<metadata><dc>x</dc></metadata><about><p/></about></record>",
    );
    const DELETED: &str = concat!(
        "<header status=\"deleted\"><identifier>oai:a:2</identifier>",
        "<datestamp>2024-01-01T00:00:00Z</datestamp></header>"
    );
    /// Texts that replace parts of an item or are inserted into it.
    const INSERTIONS: [&str; 25] = [
        "<record>",
        "<header>",
        "</header>",
        "<header status=\"deleted\">",
        "<metadata>",
        "</metadata>",
        "</record>",
        "<about>",
        "</about>",
        "</metadata><about>",
        "<identifier>",
        "</identifier>",
        "<setSpec>",
        "</setSpec>",
        "<t a=\"b\">",
        "</t>",
        "<t a=\">\">",
        "&amp;",
        "]]>",
        " ",
        "\n",
        "x",
        "\u{1}",
        "é",
        "<!-- c -->",
    ];

    /// A cache, filled with all tags of the common items if `warm`, and the context of the items.
    fn tags(warm: bool) -> (StartTagCache, Context) {
        let (mut tags, limits) = (StartTagCache::default(), Limits::default());
        let root = [b"<OAI-PMH xmlns=\"", OAI, b"\">"].concat();
        let outer = tags.open(&root, Context::default(), &limits).unwrap().context;
        let known: &[&str] = if warm { &[COMMON, DELETED, ABOUT] } else { &[] };
        for text in known {
            for at in crate::lex::search::memchr_iter(b'<', text.as_bytes()) {
                let _ = tags.open(&text.as_bytes()[at..], outer, &limits);
            }
        }
        (tags, outer)
    }

    /// The state of the validator after an item that arrives in two chunks. The second chunk begins at
    /// `cut`.
    fn reading(item: &str, cut: usize, limits: &Limits, is_v1: bool, warm: bool) -> String {
        let (mut tags, outer) = tags(warm);
        let element = if item.starts_with("<header") { &HEADER_ITEM } else { &RECORD };
        let v2_element = is_v1.then_some(element);
        let names = EnvelopeNames { element, v2_element, ..EnvelopeNames::of_records() };
        let mut validator = Validator::new(names, outer);
        let text = item.as_bytes();
        validator.new_window(0);
        let mut end = validator.validate(TextWindow::so_far(&text[..cut]).item_at(0), &mut tags, limits);
        if end == Validation::NeedMore {
            validator.new_window(0);
            end = validator.validate(TextWindow::whole(text).item_at(0), &mut tags, limits);
        }
        // The index and the flag of the fast path may differ.
        (validator.index, validator.is_common) = (Index::default(), false);
        format!("{end:?} {validator:?}")
    }

    #[test]
    fn both_paths_return_the_same() {
        let seed = 0x5EED_0003_u64;
        let mut random = random(seed);
        let mut clean = 0;
        for round in 0..30_000 {
            let mut item = [COMMON, DELETED, ABOUT][round % 3].to_owned();
            for _ in 0..random(3) {
                let marks: Vec<usize> = item.match_indices(['<', '>']).map(|(at, _)| at).collect();
                let (from, to) = (marks[random(marks.len())], marks[random(marks.len())]);
                let insertion = INSERTIONS[random(INSERTIONS.len())];
                // Inserts the text, or replaces a short part by it.
                let to = if to > from && to - from < 40 { to } else { from };
                item.replace_range(from..to, insertion);
            }
            let limits = match random(4) {
                0 => Limits {
                    depth_max: 2 + random(4),
                    record_bytes_max: 20 + random(300),
                    ..Limits::default()
                },
                _ => Limits::default(),
            };
            let cut = random(item.len() + 1);
            let cut = (0..=cut).rev().find(|&at| item.is_char_boundary(at)).unwrap_or(0);
            let is_v1 = random(3) == 0;
            let cold = reading(&item, cut, &limits, is_v1, false);
            let warm = reading(&item, cut, &limits, is_v1, true);
            assert_eq!(warm, cold, "seed {seed:#x}, cut at {cut}, {limits:?}: {item}");
            clean += usize::from(cold.starts_with("Clean"));
        }
        assert!(clean > 8_000, "of 30000 only {clean} were read to their end");
    }

    /// The end of a common record ends no element other than `metadata`.
    #[test]
    fn another_element_does_not_end_as_metadata() {
        for item in [
            ABOUT.replace("</about>", "</metadata>"),
            ABOUT.replace("<dc>x</dc>", "").replace("</about>", "</metadata>"),
        ] {
            let (end, limits) = (item.len(), Limits::default());
            let cold = reading(&item, end, &limits, false, false);
            assert!(cold.starts_with("Defect"), "{cold}");
            assert_eq!(reading(&item, end, &limits, false, true), cold, "{item}");
        }
    }
}
