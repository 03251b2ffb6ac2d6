//! The part of the validator that reads start tags and their namespace declarations.
//!
//! It is the second stage of the fast path. The tags of a page repeat byte for byte. So each tag is cached
//! with the namespace context in which it was read, and recognised by comparison. The cache never changes a
//! result.

use crate::lex::known_namespaces::{correct_namespace, is_well_known};
use crate::lex::names::{
    Reference, blanks, bytes_equal, is_blank, is_qualified_name, name_span, reference, split_name,
};
use crate::lex::namespaces::{Context, Contexts, OAI, REUSED_CONTEXTS_MAX, XML, XMLNS, XSI};
use crate::lex::search::{memchr, memchr2};
use crate::limits::Limits;
use crate::validate::schema::is_uri_reference;

/// A valid start tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartTag {
    /// Its length in bytes, from `<` to `>`.
    pub(crate) len: u32,
    /// The length of its name, with the prefix.
    pub(crate) name_len: u32,
    /// The length of its prefix, with the colon.
    pub(crate) prefix_len: u32,
    /// Whether it ends in `/>`.
    pub(crate) empty: bool,
    /// Whether the element is in the OAI-PMH 2.0 namespace.
    pub(crate) oai: bool,
    /// Whether it has attributes other than namespace declarations and schema locations.
    pub(crate) attributes: bool,
    /// The context of its children.
    pub(crate) context: Context,
}

/// The defect of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagDefect {
    /// Not well-formed.
    Malformed,
    /// A well-known namespace is misspelt.
    MisspeltNamespace,
    /// A prefix is not declared.
    UndeclaredPrefix,
    /// More attributes than `attributes_per_tag_max`.
    TooManyAttributes,
    /// Longer than `tag_bytes_max`.
    TooLong,
    /// The text ends inside it.
    Cut,
}

/// The cache of start tags, and the contexts of their declarations.
#[derive(Debug)]
pub(crate) struct StartTagCache {
    pub(crate) contexts: Contexts,
    /// The index in `cached` of the tag in each slot, or [`FREE`].
    slots: Box<[u16; SLOTS]>,
    cached: Vec<CachedTag>,
    /// The contexts of the envelope and of earlier responses. They are kept during the response.
    base_contexts: usize,
}

/// A cached start tag and the context in which it was read.
#[derive(Debug)]
struct CachedTag {
    key: TagKey,
    context: Context,
    tag: StartTag,
    /// The whole tag, if its key is only a part of it.
    bytes: Option<Box<[u8]>>,
}

impl CachedTag {
    #[inline(always)]
    fn matches(&self, key: &TagKey, text: &[u8], context: Context) -> bool {
        self.context == context
            && self.key.matches(key)
            && match &self.bytes {
                None => true,
                Some(bytes) => text.get(..bytes.len()).is_some_and(|text| bytes_equal(text, bytes)),
            }
    }
}

/// The first 32 bytes of a tag, up to its first `>`. Tags differ in them.
#[derive(Clone, Copy, Debug)]
struct TagKey {
    words: [u64; 4],
}

impl TagKey {
    /// The longest key, in bytes.
    const BYTES: usize = size_of::<[u64; 4]>();

    /// The key of the tag that `text` begins with.
    #[inline(always)]
    fn new(text: &[u8]) -> Self {
        let [mut second, mut third, mut fourth] = [0; 3];
        let (first, mut is_end) = word(text, 0);
        if !is_end {
            (second, is_end) = word(text, 8);
            if !is_end {
                (third, is_end) = word(text, 16);
                if !is_end {
                    (fourth, _) = word(text, 24);
                }
            }
        }
        Self { words: [first, second, third, fourth] }
    }

    #[inline(always)]
    fn matches(&self, other: &Self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.words, other.words);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
    }

    /// The slot of the key.
    #[inline(always)]
    fn slot(&self, context: Context) -> usize {
        let [first, second, third, fourth] = self.words;
        let context = u64::from(context.number()).rotate_left(56);
        let mixed = context ^ first ^ second.rotate_left(23) ^ third.rotate_left(41) ^ fourth.rotate_left(11);
        (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize & (SLOTS - 1)
    }
}

/// Cached tags. A format has a few dozen, MARC a few hundred.
const SLOTS: usize = 512;
/// Marks an empty slot. No index is so large.
const FREE: u16 = u16::MAX;
/// Initial capacity, in tags. It is enough for the envelope and a small format.
const TAGS_INITIAL: usize = 32;
/// Longest cached tag, in bytes. Longer tags are read each time.
const CACHED_BYTES_MAX: usize = 1024;
/// Maximum number of contexts of items before they are all dropped.
const CONTEXTS_MAX: usize = 256;

impl Default for StartTagCache {
    fn default() -> Self {
        Self {
            contexts: Contexts::default(),
            slots: Box::new([FREE; SLOTS]),
            cached: Vec::with_capacity(TAGS_INITIAL),
            base_contexts: 0,
        }
    }
}

impl StartTagCache {
    /// Keeps the contexts that exist now, because the envelope or a part of it was read.
    pub(crate) fn keep_contexts(&mut self) {
        self.base_contexts = self.contexts.len();
    }

    /// Whether the cache is worth keeping for the next response. The tags and contexts must be few enough to
    /// be found again and to leave room for others. The memory must not exceed `bytes_max`.
    pub(crate) fn is_worth_keeping(&self, bytes_max: usize) -> bool {
        let long = |cached: &CachedTag| cached.bytes.as_ref().map_or(0, |bytes| bytes.len());
        let bytes = self.contexts.bytes()
            + self.cached.capacity() * size_of::<CachedTag>()
            + self.cached.iter().map(long).sum::<usize>();
        self.contexts.len() <= REUSED_CONTEXTS_MAX / 2 && self.cached.len() <= SLOTS / 2 && bytes <= bytes_max
    }

    /// Drops the contexts and tags if there are too many. Called before each reading of an item. Returns whether
    /// it dropped them, so that contexts which were read before mean nothing.
    pub(crate) fn tidy(&mut self) -> bool {
        self.drop_contexts_after(self.base_contexts)
    }

    /// The same inside an oversized item. `open` are the contexts of its open elements.
    pub(crate) fn tidy_inside(&mut self, open: impl Iterator<Item = Context>) {
        let highest = open.map(|context| context.number() as usize).max().unwrap_or(0);
        self.drop_contexts_after(self.base_contexts.max(highest));
    }

    fn drop_contexts_after(&mut self, kept: usize) -> bool {
        let is_full = self.contexts.len() > kept + CONTEXTS_MAX;
        if is_full {
            self.contexts.truncate(kept);
            self.slots.fill(FREE);
            self.cached.clear();
        }
        is_full
    }

    /// Reads the start tag that `text` begins with, in `context`.
    #[inline]
    pub(crate) fn open(
        &mut self,
        text: &[u8],
        context: Context,
        limits: &Limits,
    ) -> Result<StartTag, TagDefect> {
        match self.cached_tag(text, context) {
            Some(tag) => Ok(*tag),
            None => self.read(text, context, limits),
        }
    }

    /// The cached start tag that `text` begins with, if it was read in this context before.
    #[inline(always)]
    pub(crate) fn cached_tag(&self, text: &[u8], context: Context) -> Option<&StartTag> {
        let key = TagKey::new(text);
        let index = key.slot(context);
        let first = self.in_slot(index)?;
        if first.matches(&key, text, context) {
            return Some(&first.tag);
        }
        // If two tags have the same slot, the first one is in the neighbouring slot.
        let second = self.in_slot(index ^ 1)?;
        if second.matches(&key, text, context) { Some(&second.tag) } else { None }
    }

    #[inline(always)]
    fn in_slot(&self, index: usize) -> Option<&CachedTag> {
        self.cached.get(usize::from(*self.slots.get(index)?))
    }

    #[cold]
    fn read(&mut self, text: &[u8], context: Context, limits: &Limits) -> Result<StartTag, TagDefect> {
        let tag = read_tag(text, context, &mut self.contexts, limits)?;
        let bytes = text.get(..tag.len as usize).unwrap_or_default();
        if bytes.len() <= CACHED_BYTES_MAX {
            // The key is made of the tag alone, so that it does not depend on the text after it.
            let mut padded = [0; TagKey::BYTES];
            padded.iter_mut().zip(bytes).for_each(|(padded, &byte)| *padded = byte);
            let key = TagKey::new(&padded);
            let index = key.slot(context);
            let index = if self.in_slot(index).is_some() { index ^ 1 } else { index };
            let is_whole = bytes.len() <= padded.len() && memchr(b'>', bytes) == Some(bytes.len() - 1);
            let bytes = (!is_whole).then(|| bytes.into());
            self.insert(CachedTag { key, context, tag, bytes }, index);
        }
        Ok(tag)
    }

    /// Puts a tag into a slot and replaces the tag there.
    fn insert(&mut self, tag: CachedTag, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        match self.cached.get_mut(usize::from(*slot)) {
            Some(other) => *other = tag,
            None => {
                *slot = self.cached.len() as u16;
                self.cached.push(tag);
            }
        }
    }
}

/// The eight bytes at `at`, with the bytes after a `>` set to zero, and whether there is a `>`. Zero if the
/// text is too short.
#[inline(always)]
fn word(text: &[u8], at: usize) -> (u64, bool) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const ENDS: u64 = ONES * b'>' as u64;
    let Some(bytes) = text.get(at..).and_then(|text| text.first_chunk()) else { return (0, true) };
    let word = u64::from_le_bytes(*bytes);
    // The usual test for a zero byte, here for a `>`.
    let difference = word ^ ENDS;
    let end = difference.wrapping_sub(ONES) & !difference & (ONES << 7);
    if end == 0 { (word, false) } else { (word & (end ^ (end - 1)), true) }
}

/// An attribute as it is in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute<'t> {
    pub(crate) name: &'t [u8],
    pub(crate) value: &'t [u8],
}

/// Reads a tag that is not in the cache.
fn read_tag(
    text: &[u8],
    context: Context,
    contexts: &mut Contexts,
    limits: &Limits,
) -> Result<StartTag, TagDefect> {
    let within = text.get(..text.len().min(limits.tag_bytes_max)).unwrap_or_default();
    let cut = if text.len() > limits.tag_bytes_max { TagDefect::TooLong } else { TagDefect::Cut };
    let name_len = name_span(within.get(1..).unwrap_or_default());
    let name = within.get(1..=name_len).unwrap_or_default();
    let mut attributes = Vec::new();
    let (len, empty) = match read_attributes(within, 1 + name_len, limits, &mut attributes) {
        Err(TagDefect::Cut) => return Err(cut),
        other => other?,
    };
    if !is_qualified_name(name) {
        return Err(TagDefect::Malformed);
    }
    let inner = declare(&attributes, context, contexts)?;
    let (prefix, _) = split_name(name);
    let uri = contexts.lookup(inner, prefix);
    if uri.is_none() && !prefix.is_empty() || prefix == b"xmlns" {
        return Err(TagDefect::UndeclaredPrefix);
    }
    let oai = uri == Some(OAI);
    let foreign = check_attributes(&attributes, inner, contexts)?;
    let prefix_len = if prefix.is_empty() { 0 } else { prefix.len() + 1 };
    Ok(StartTag {
        len: len as u32,
        name_len: name_len as u32,
        prefix_len: prefix_len as u32,
        empty,
        oai,
        attributes: foreign,
        context: inner,
    })
}

/// Reads the attributes from `at`. Returns the length of the tag and whether it is an empty-element tag.
pub(crate) fn read_attributes<'t>(
    text: &'t [u8],
    mut at: usize,
    limits: &Limits,
    attributes: &mut Vec<Attribute<'t>>,
) -> Result<(usize, bool), TagDefect> {
    loop {
        let gap = blanks(text.get(at..).unwrap_or_default());
        at += gap;
        match text.get(at) {
            None => return Err(TagDefect::Cut),
            Some(b'>') => return Ok((at + 1, false)),
            Some(b'/') => {
                return match text.get(at + 1) {
                    None => Err(TagDefect::Cut),
                    Some(b'>') => Ok((at + 2, true)),
                    Some(_) => Err(TagDefect::Malformed),
                };
            }
            Some(_) if gap == 0 => return Err(TagDefect::Malformed),
            Some(_) => {}
        }
        if attributes.len() == limits.attributes_per_tag_max {
            return Err(TagDefect::TooManyAttributes);
        }
        let (attribute, end) = read_attribute(text, at)?;
        attributes.push(attribute);
        at = end;
    }
}

fn read_attribute(text: &[u8], at: usize) -> Result<(Attribute<'_>, usize), TagDefect> {
    let rest = text.get(at..).unwrap_or_default();
    let span = name_span(rest);
    let name = rest.get(..span).unwrap_or_default();
    let mut at = at + span;
    at += blanks(text.get(at..).unwrap_or_default());
    match text.get(at) {
        None => return Err(TagDefect::Cut),
        Some(b'=') => at += 1,
        Some(_) => return Err(TagDefect::Malformed),
    }
    at += blanks(text.get(at..).unwrap_or_default());
    let quote = match text.get(at) {
        None => return Err(TagDefect::Cut),
        Some(&quote @ (b'"' | b'\'')) => quote,
        Some(_) => return Err(TagDefect::Malformed),
    };
    let rest = text.get(at + 1..).unwrap_or_default();
    let end = memchr2(quote, b'<', rest).ok_or(TagDefect::Cut)?;
    if rest.get(end) == Some(&b'<') || !is_qualified_name(name) {
        return Err(TagDefect::Malformed);
    }
    let value = rest.get(..end).unwrap_or_default();
    let mut references = value;
    while let Some(next) = memchr(b'&', references) {
        let Reference::Legal(len) = reference(references.get(next..).unwrap_or_default()) else {
            return Err(TagDefect::Malformed);
        };
        references = references.get(next + len..).unwrap_or_default();
    }
    Ok((Attribute { name, value }, at + 2 + end))
}

/// Whether any envelope element may have an attribute with this name: a namespace declaration or a schema
/// location. `bound` returns whether a prefix is bound to the namespace of schema locations.
pub(crate) fn is_allowed_attribute(name: &[u8], bound: impl Fn(&[u8]) -> bool) -> bool {
    let (prefix, local) = split_name(name);
    declared_prefix(name).is_some()
        || matches!(local, b"schemaLocation" | b"noNamespaceSchemaLocation") && bound(prefix)
}

/// The prefix that an attribute declares. Empty for `xmlns`.
pub(crate) fn declared_prefix(name: &[u8]) -> Option<&[u8]> {
    match name.strip_prefix(b"xmlns") {
        Some(b"") => Some(b""),
        Some(rest) => rest.strip_prefix(b":"),
        None => None,
    }
}

fn declare(
    attributes: &[Attribute<'_>],
    context: Context,
    contexts: &mut Contexts,
) -> Result<Context, TagDefect> {
    if !attributes.iter().any(|attribute| declared_prefix(attribute.name).is_some()) {
        return Ok(context);
    }
    let mut declared: Vec<(&[u8], &[u8])> = Vec::new();
    for attribute in attributes {
        let Some(prefix) = declared_prefix(attribute.name) else { continue };
        let legal = match prefix {
            b"xmlns" => false,
            b"xml" => attribute.value == XML,
            b"" => attribute.value != XML && attribute.value != XMLNS,
            _ => !attribute.value.is_empty() && attribute.value != XML && attribute.value != XMLNS,
        };
        let well_known = is_well_known(attribute.value);
        if !legal || !well_known && !is_uri_reference(attribute.value) {
            return Err(TagDefect::Malformed);
        }
        if !well_known && correct_namespace(attribute.value).is_some() {
            return Err(TagDefect::MisspeltNamespace);
        }
        declared.push((prefix, attribute.value));
    }
    Ok(contexts.declare(context, &declared))
}

/// Checks the prefixes and the uniqueness of attributes. Returns whether there are others than declarations
/// and schema locations.
fn check_attributes(
    attributes: &[Attribute<'_>],
    context: Context,
    contexts: &Contexts,
) -> Result<bool, TagDefect> {
    let mut has_others = false;
    for (index, attribute) in attributes.iter().enumerate() {
        let before = attributes.get(..index).unwrap_or_default();
        if before.iter().any(|other| other.name == attribute.name) {
            return Err(TagDefect::Malformed);
        }
        if declared_prefix(attribute.name).is_some() {
            continue;
        }
        let (prefix, local) = split_name(attribute.name);
        if prefix.is_empty() {
            has_others = true;
            continue;
        }
        let uri = contexts.lookup(context, prefix).ok_or(TagDefect::UndeclaredPrefix)?;
        let has_same_name = |other: &Attribute<'_>| {
            let (other_prefix, other_local) = split_name(other.name);
            !other_prefix.is_empty()
                && declared_prefix(other.name).is_none()
                && other_local == local
                && contexts.lookup(context, other_prefix) == Some(uri)
        };
        if before.iter().any(has_same_name) {
            return Err(TagDefect::Malformed);
        }
        has_others |= uri != XSI || !matches!(local, b"schemaLocation" | b"noNamespaceSchemaLocation");
    }
    Ok(has_others)
}

/// The length of the end tag that `text` begins with, if it has this name. `text` begins with `</`.
#[inline]
pub(crate) fn end_tag(text: &[u8], name: &[u8]) -> Result<usize, TagDefect> {
    let after = 2 + name.len();
    match text.get(2..after) {
        Some(found) if bytes_equal(found, name) => {}
        Some(_) => return Err(TagDefect::Malformed),
        None => {
            let there = text.get(2..).unwrap_or_default();
            return Err(if name.starts_with(there) { TagDefect::Cut } else { TagDefect::Malformed });
        }
    }
    if text.get(after) == Some(&b'>') {
        return Ok(after + 1);
    }
    let rest = text.get(after..).unwrap_or_default();
    let gap = blanks(rest);
    match rest.get(gap) {
        None => Err(TagDefect::Cut),
        Some(b'>') => Ok(after + gap + 1),
        Some(&byte) => {
            debug_assert!(!is_blank(byte), "blanks() stops at a byte that is none");
            Err(TagDefect::Malformed)
        }
    }
}

/// Whether `status="deleted"` is the only attribute other than declarations and schema locations.
pub(crate) fn is_deleted_status(text: &[u8], tag: &StartTag, contexts: &Contexts) -> bool {
    let limits = Limits::default();
    let mut attributes = Vec::new();
    let tag_text = text.get(..tag.len as usize).unwrap_or_default();
    if read_attributes(tag_text, 1 + tag.name_len as usize, &limits, &mut attributes).is_err() {
        return false;
    }
    attributes.iter().all(|attribute| match attribute.name {
        b"status" => attribute.value == b"deleted",
        name => is_allowed_attribute(name, |prefix| contexts.lookup(tag.context, prefix) == Some(XSI)),
    })
}
