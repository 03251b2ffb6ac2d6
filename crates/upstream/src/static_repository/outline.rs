//! Finds the parts of a static repository file: Identify, the formats, and the records of each format.
//!
//! A well-formed document is read strictly, whatever precedes or follows it. In any other, a broken record must
//! not damage the parts after it: there the parts are found by their tags alone, and only at the typical
//! beginning of a list. A file that ends early is invalid.

use super::file::{Failed, Text};
use memchr::memmem;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::io::{BufRead, BufReader, Error, Read, Result};
use std::ops::Range;

/// The parts of a file.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// The document type declaration: the engine writes out what it defines as plain text.
    pub(super) doctype: Vec<u8>,
    pub(super) identify: Part,
    pub(super) formats: Part,
    pub(super) lists: Vec<Part>,
}

/// The content of an element below the root.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// The namespaces that are declared around it.
    pub(super) scope: NamespaceScope,
    /// The value of the attribute `metadataPrefix`.
    pub(super) metadata_prefix: String,
    pub(super) content: Range<u64>,
}

/// Maximum number of lists in one file.
const LISTS_MAX: usize = 256;
/// Bytes that are read at once to find parts by their tags.
const WINDOW_BYTES: usize = 1 << 20;
/// Bytes after the beginning of a list that are checked to see whether it is one.
const AHEAD_BYTES: usize = 64 << 10;
/// The distance of the end tag of a list to the next list, in bytes.
const LIST_END_BYTES: u64 = 4 << 10;
/// The distance of the end tag of the document to the end of a file, in bytes.
const END_BYTES: u64 = 64 << 10;

impl Outline {
    /// Reads a file. No text between two tags is longer than `record_bytes_max`, and neither
    /// Identify nor the formats are longer than `head_bytes_max`, in bytes.
    pub(super) fn read(
        text: &Text,
        record_bytes_max: usize,
        head_bytes_max: usize,
    ) -> std::result::Result<Self, Failed> {
        let head = text.bytes(0..text.len().min(2 * head_bytes_max as u64))?;
        let (at, root) = root_of(&head).ok_or_else(Failed::no_repository)?;
        let doctype = doctype_of(head.get(..at).unwrap_or_default());
        let strictly = Strict::read(text, at as u64, record_bytes_max)?;
        let found = match strictly {
            Some(outline) => outline,
            None => loosely(text, &head, &root)?,
        };
        let found = Self { doctype, ..found };
        let is_short = |part: &Part| part.content.end - part.content.start <= head_bytes_max as u64;
        if !is_short(&found.identify) || !is_short(&found.formats) {
            let details = format!(
                "its Identify or ListMetadataFormats is longer than {head_bytes_max} bytes (head_bytes_max)"
            );
            return Err(Failed::TooLarge(details));
        }
        if found.identify.content.is_empty() || found.formats.content.is_empty() {
            return Err(Failed::Wrong(
                "it has no Identify or no ListMetadataFormats with content".to_owned(),
            ));
        }
        if found.lists.len() > LISTS_MAX {
            return Err(Failed::TooLarge(format!("it has more than {LISTS_MAX} lists of records")));
        }
        Ok(found)
    }
}

/// A strict reading, and its progress.
#[derive(Default)]
struct Strict {
    outline: Outline,
    root: String,
    depth: usize,
    /// The part that is open, and its name.
    part: Option<(String, Part)>,
    is_whole: bool,
}

impl Strict {
    /// The parts of the document that begins at `root`; `None` where it is not well-formed.
    fn read(text: &Text, root: u64, token_bytes_max: usize) -> std::result::Result<Option<Outline>, Failed> {
        let source = Bounded { inner: BufReader::with_capacity(256 << 10, text.reader(root)), left: 0 };
        let mut reader = Reader::from_reader(source);
        let (mut strict, mut buffer) = (Self::default(), Vec::new());
        while !strict.is_whole {
            buffer.clear();
            reader.get_mut().left = token_bytes_max;
            let at = root + reader.buffer_position();
            match reader.read_event_into(&mut buffer) {
                Ok(Event::Eof) | Err(_) => return Ok(None),
                Ok(event) => strict.event(event, at..root + reader.buffer_position()),
            }
        }
        let after = root + reader.buffer_position();
        // Lists after a damaged end tag must not get lost.
        let rest = list_tags(text, prefix_of(&strict.root), after, text.len())?;
        Ok(rest.is_empty().then_some(strict.outline))
    }

    fn event(&mut self, event: Event<'_>, at: Range<u64>) {
        match event {
            Event::Start(tag) => {
                if self.depth == 0 {
                    self.root = format!("<{}>", &*tag);
                } else if self.depth == 1 {
                    self.open(&tag, at.end);
                }
                self.depth += 1;
            }
            Event::Empty(tag) if self.depth == 1 => {
                self.open(&tag, at.end);
                self.close(at.end);
            }
            Event::Empty(_) => self.is_whole |= self.depth == 0,
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 1 {
                    self.close(at.start);
                }
                self.is_whole = self.depth == 0;
            }
            _ => {}
        }
    }

    fn open(&mut self, tag: &quick_xml::events::BytesStart<'_>, content: u64) {
        let scope = NamespaceScope::parse(&format!("{}<{}>", self.root, &**tag));
        let metadata_prefix = tag.try_get_attribute("metadataPrefix").ok().flatten();
        let metadata_prefix =
            metadata_prefix.map(|prefix| prefix.value.trim().to_owned()).unwrap_or_default();
        let part = Part { scope, metadata_prefix, content: content..content };
        self.part = Some((tag.local_name().as_ref().to_owned(), part));
    }

    fn close(&mut self, end: u64) {
        let Some((name, mut part)) = self.part.take() else { return };
        part.content.end = end;
        match name.as_str() {
            "Identify" => self.outline.identify = part,
            "ListMetadataFormats" => self.outline.formats = part,
            "ListRecords" if self.outline.lists.len() <= LISTS_MAX => self.outline.lists.push(part),
            _ => {}
        }
    }
}

/// A reader that fails at a token that is too long.
struct Bounded<R> {
    inner: R,
    /// How many bytes the token may still have.
    left: usize,
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        if self.left == 0 {
            return Err(Error::other("a token is too long"));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count);
        self.inner.consume(count);
    }
}

/// Finds the parts by their tags. `head` is the beginning of the text, with the start tag `root`.
fn loosely(text: &Text, head: &[u8], root: &str) -> std::result::Result<Outline, Failed> {
    let prefix = prefix_of(root);
    let end = text.bytes(text.len().saturating_sub(END_BYTES)..text.len())?;
    let end_tag = format!("</{prefix}Repository");
    let Some(end) =
        memmem::rfind(&end, end_tag.as_bytes()).map(|at| text.len() - end.len() as u64 + at as u64)
    else {
        return Err(Failed::Wrong("it ends early, without the end tag of Repository".to_owned()));
    };
    let tags = list_tags(text, prefix, 0, end)?;
    let before = usize::try_from(tags.first().map_or(end, |tag| tag.start)).unwrap_or(usize::MAX);
    let head = head.get(..before.min(head.len())).unwrap_or_default();
    let mut outline = Outline {
        identify: part_of(head, root, &format!("{prefix}Identify")).unwrap_or_default(),
        formats: part_of(head, root, &format!("{prefix}ListMetadataFormats")).unwrap_or_default(),
        ..Outline::default()
    };
    let ends = tags.iter().skip(1).map(|next| next.start).chain([end]);
    for (place, end) in tags.iter().zip(ends) {
        let tag = String::from_utf8_lossy(&text.bytes(place.clone())?).into_owned();
        let mut part = Part {
            scope: NamespaceScope::parse(&format!("{root}{tag}")),
            metadata_prefix: attribute(&tag, "metadataPrefix").unwrap_or_default(),
            content: place.end..end,
        };
        part.content.end = without_end_tag(text, &part.content, &format!("</{prefix}ListRecords"))?;
        outline.lists.push(part);
    }
    Ok(outline)
}

/// The start tags of lists from `from` to `end`: a record or the end of the list follows each.
fn list_tags(
    text: &Text,
    prefix: &str,
    mut from: u64,
    end: u64,
) -> std::result::Result<Vec<Range<u64>>, Failed> {
    let mark = format!("<{prefix}ListRecords");
    let mut tags = Vec::new();
    while from < end && tags.len() <= LISTS_MAX {
        let window = text.bytes(from..end.min(from + (WINDOW_BYTES + AHEAD_BYTES) as u64))?;
        let is_last = from + window.len() as u64 == end;
        for at in memmem::find_iter(&window, mark.as_bytes()) {
            if at >= WINDOW_BYTES && !is_last {
                break;
            }
            let rest = window.get(at + mark.len()..).unwrap_or_default();
            let rest = rest.get(..rest.len().min(AHEAD_BYTES)).unwrap_or_default();
            let Some(close) = memchr::memchr(b'>', rest) else { continue };
            let after = rest.get(close + 1..).unwrap_or_default().trim_ascii_start();
            let ends_name = rest.first().is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'>');
            if ends_name && begins_list(after) {
                let start = from + at as u64;
                tags.push(start..start + (mark.len() + close + 1) as u64);
            }
        }
        from = if is_last { end } else { from + WINDOW_BYTES as u64 };
    }
    Ok(tags)
}

/// Whether the text begins with a record, a comment or the end of a list.
fn begins_list(text: &[u8]) -> bool {
    let name = text.get(1..).unwrap_or_default();
    let length = name.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'>').unwrap_or(0);
    let name = name.get(..length).unwrap_or_default();
    let local = name.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    text.starts_with(b"<!--")
        || text.starts_with(b"<") && matches!(local, b"record" | b"ListRecords" | b"/ListRecords")
}

/// The end of the content, before its end tag if that is there.
fn without_end_tag(text: &Text, content: &Range<u64>, mark: &str) -> std::result::Result<u64, Failed> {
    let from = content.start.max(content.end.saturating_sub(LIST_END_BYTES));
    let end = text.bytes(from..content.end)?;
    Ok(memmem::rfind(&end, mark.as_bytes()).map_or(content.end, |at| from + at as u64))
}

/// The text before the document element, from the document type declaration on. A declaration of another
/// document belongs to the junk before this one.
fn doctype_of(before: &[u8]) -> Vec<u8> {
    let from = memmem::find(before, b"<!DOCTYPE").and_then(|start| before.get(start..)).unwrap_or_default();
    let is_own = from.get(b"<!DOCTYPE".len()..).is_some_and(|name| {
        let name = name.trim_ascii_start();
        let length = name.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b':'));
        name.get(..length.unwrap_or(name.len())).is_some_and(|name| name.ends_with(b"Repository"))
    });
    if is_own && from.len() <= AHEAD_BYTES { from.trim_ascii_end().to_vec() } else { Vec::new() }
}

/// The prefix of the document element with its colon; empty if there is none.
fn prefix_of(root: &str) -> &str {
    root.trim_start_matches('<').split("Repository").next().unwrap_or_default()
}

/// The place of the document element, and its start tag. A tag in a comment is one only if there is no other.
fn root_of(head: &[u8]) -> Option<(usize, String)> {
    let is_in_comment = |at: usize| {
        let before = head.get(..at).unwrap_or_default();
        let opened = memmem::rfind(before, b"<!--");
        opened.is_some_and(|open| memmem::rfind(before, b"-->").is_none_or(|close| close < open))
    };
    let mut found = root_tags(head);
    found.find(|(at, _)| !is_in_comment(*at)).or_else(|| root_tags(head).next())
}

/// The start tags that the document element may have, with their places.
fn root_tags(head: &[u8]) -> impl Iterator<Item = (usize, String)> {
    memmem::find_iter(head, b"Repository").filter_map(|name| {
        let before = head.get(..name)?;
        let start = before.iter().rposition(|byte| *byte == b'<')?;
        let prefix = before.get(start + 1..)?;
        let is_tag = prefix.is_empty() || prefix.ends_with(b":") && prefix.iter().all(u8::is_ascii_graphic);
        let ends_name = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
        if !is_tag || !head.get(name + b"Repository".len()).is_some_and(ends_name) {
            return None;
        }
        let tag = head.get(start..)?;
        let tag = tag.get(..=memchr::memchr(b'>', tag)?)?;
        Some((start, String::from_utf8_lossy(tag).into_owned()))
    })
}

fn part_of(head: &[u8], root: &str, name: &str) -> Option<Part> {
    let start = memmem::find(head, format!("<{name}").as_bytes())?;
    let open = start + memchr::memchr(b'>', head.get(start..)?)? + 1;
    let length = memmem::find(head.get(open..)?, format!("</{name}").as_bytes())?;
    let tag = String::from_utf8_lossy(head.get(start..open)?);
    let content = open as u64..(open + length) as u64;
    Some(Part {
        scope: NamespaceScope::parse(&format!("{root}{tag}")),
        metadata_prefix: String::new(),
        content,
    })
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Some(value.get(1..)?.split(quote).next()?.trim().to_owned())
}
