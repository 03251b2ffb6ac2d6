//! Filters a page if the source was asked for more than the harvester wants.
//!
//! Runs between the engine and [`Resumer`](crate::upstream::page::resume::Resumer): records become headers,
//! and items outside the window are dropped. The text between the items is dropped, and so are `cursor` and
//! `completeListSize`: they count the items of the source.
//!
//! Invariants: an item that stays keeps its content; a page that is an error is sent as received; the
//! output is well-formed at any place between two items.

use crate::oai::{Window, set_spec};
use crate::upstream::page::buffer::PageBuffer;
use crate::upstream::xml::envelope_tags::parse_envelope_tags;
use crate::upstream::xml::rebase_namespaces::NamespaceScope;
use quick_xml::Reader;
use quick_xml::events::Event;

/// How a page is filtered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilterRules {
    /// Records become headers.
    pub(crate) headers: bool,
    /// Only items within the window stay.
    pub(crate) window: Option<Window>,
    /// All items are in this set, and the source does not say so.
    pub(crate) set: Option<String>,
}

/// A page that is being filtered.
#[derive(Debug)]
pub(crate) struct ItemFilter {
    rules: FilterRules,
    /// Everything before the first item that stays.
    head: Vec<u8>,
    /// Whether an item was met, and whether one has stayed.
    met: bool,
    stayed: bool,
    /// The beginning of the bytes after the last item.
    tail: Vec<u8>,
    is_over: bool,
}

/// Bytes after an item that are kept, to find the token there.
const TAIL_BYTES_KEPT: usize = 64 << 10;

impl FilterRules {
    pub(crate) fn is_anything(&self) -> bool {
        *self != Self::default()
    }
}

impl ItemFilter {
    pub(crate) fn new(rules: FilterRules) -> Self {
        let (head, tail) = (Vec::new(), Vec::new());
        Self { rules, head, met: false, stayed: false, tail, is_over: false }
    }

    /// Whether the page is a list with an item.
    pub(crate) fn has_met(&self) -> bool {
        self.met
    }

    /// Whether the page is a list of which all items were dropped.
    pub(crate) fn has_dropped_all(&self) -> bool {
        self.met && !self.stayed
    }

    /// Filters the output of the engine. `ended`: there will be no more. Returns false if an item was too
    /// long to be held: it cannot be filtered.
    pub(crate) fn apply(&mut self, buffer: &mut PageBuffer, ended: bool) -> bool {
        let bytes = std::mem::take(&mut buffer.output).into_vec();
        let found = std::mem::take(&mut buffer.items);
        let (mut out, mut kept) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(found.len()));
        let mut cursor = 0;
        for found in found {
            let (Some(start), len) = (found.start(), found.len()) else {
                kept.push(found);
                continue;
            };
            if len == 0 {
                return false;
            }
            if !self.met {
                self.head.extend_from_slice(bytes.get(cursor..start).unwrap_or_default());
            }
            (self.met, cursor) = (true, start + len);
            self.tail.clear();
            let Some(item) = self.filter_item(bytes.get(start..cursor).unwrap_or_default()) else { continue };
            if !self.stayed {
                out.extend_from_slice(&self.head());
                self.stayed = true;
            }
            out.push(b'\n');
            let start = out.len();
            out.extend_from_slice(&item);
            kept.push(found.moved(start, item.len()));
        }
        let rest = bytes.get(cursor..).unwrap_or_default();
        let room = TAIL_BYTES_KEPT.saturating_sub(self.tail.len());
        match self.met {
            true => self.tail.extend(rest.iter().take(room)),
            // The engine holds a head back until there is an item: this is an error, or a token alone.
            false => out.extend_from_slice(rest),
        }
        if ended && self.stayed && !std::mem::replace(&mut self.is_over, true) {
            out.extend_from_slice(&self.end(buffer.token.as_deref()));
        }
        buffer.replace(bytes.len(), out, kept);
        true
    }

    /// The head of the page, changed to that of a list of headers if these are wanted.
    fn head(&mut self) -> Vec<u8> {
        if self.rules.headers
            && let Some(at) = last_start_tag(&self.head)
        {
            let tag = String::from_utf8_lossy(self.head.get(at..).unwrap_or_default());
            let renamed = tag.replacen("ListRecords", "ListIdentifiers", 1).into_bytes();
            self.head.truncate(at);
            self.head.extend_from_slice(&renamed);
        }
        self.head.clone()
    }

    /// The end of the page.
    fn end(&self, token: Option<&[u8]>) -> Vec<u8> {
        let Some(skeleton) = parse_envelope_tags(&self.head) else { return Vec::new() };
        let token = token.map(|token| String::from_utf8_lossy(token).into_owned());
        let expires = expiration_date(&self.tail);
        let expires = expires.map(|date| format!(" expirationDate=\"{date}\"")).unwrap_or_default();
        skeleton.close_with_attributes(&expires, token.as_deref())
    }

    /// The filtered item; `None` if it is dropped.
    fn filter_item(&self, item: &[u8]) -> Option<Vec<u8>> {
        let FilterRules { headers, window, set, .. } = &self.rules;
        let text = String::from_utf8_lossy(item);
        // An item without a header is a set: nothing else is filtered of it.
        let Some(mut header) = Header::parse(&text) else { return Some(item.to_vec()) };
        if window.as_ref().is_some_and(|window| !window.contains(&header.datestamp)) {
            return None;
        }
        let mut text = text.into_owned();
        let set = set.as_ref().map(|set| set_spec::escape(set.as_bytes()));
        let set = set.as_ref().map(|set| String::from_utf8_lossy(set));
        if let Some(set) = set.filter(|set| !set.is_empty() && !header.is_of(set)) {
            let element = format!("<{0}setSpec>{set}</{0}setSpec>", header.prefix);
            text.insert_str(header.close, &element);
            header.end += element.len();
        }
        if !headers {
            return Some(text.into_bytes());
        }
        header.of_item(&text).map(String::into_bytes)
    }
}

/// The header of a record, by itself.
pub(crate) fn extract_header(record: &str) -> Option<String> {
    Header::parse(record)?.of_item(record)
}

/// The header of an item, and its place in it.
#[derive(Debug, Default)]
struct Header {
    start: usize,
    /// Where its end tag begins.
    close: usize,
    end: usize,
    prefix: String,
    datestamp: String,
    sets: Vec<String>,
}

impl Header {
    fn parse(item: &str) -> Option<Self> {
        let mut reader = Reader::from_str(item);
        let mut found: Option<Self> = None;
        let mut text = String::new();
        loop {
            let before = usize::try_from(reader.buffer_position()).ok()?;
            match reader.read_event().ok()? {
                Event::Start(tag) if found.is_none() && tag.local_name().as_ref() == "header" => {
                    let prefix = tag.name().as_ref().strip_suffix("header").unwrap_or_default().to_owned();
                    found = Some(Self { start: before, prefix, ..Self::default() });
                }
                Event::Start(_) => text.clear(),
                Event::Text(part) => text.push_str(part.as_ref()),
                Event::CData(part) => text.push_str(part.as_ref()),
                Event::End(tag) => {
                    let Some(header) = &mut found else { continue };
                    match tag.local_name().as_ref() {
                        "datestamp" => header.datestamp = text.trim().to_owned(),
                        "setSpec" => header.sets.push(text.trim().to_owned()),
                        "header" => {
                            header.close = before;
                            header.end = usize::try_from(reader.buffer_position()).ok()?;
                            return found;
                        }
                        _ => {}
                    }
                }
                Event::Eof => return None,
                _ => {}
            }
        }
    }

    /// The header with the declarations that it needs without its record.
    fn of_item(&self, item: &str) -> Option<String> {
        let around = NamespaceScope::parse(item.get(..self.start)?);
        Some(around.rebase(item.get(self.start..self.end)?, &NamespaceScope::default()))
    }

    /// Whether the item is in the set, or in one below it.
    fn is_of(&self, set: &str) -> bool {
        let is_below = |other: &String| {
            other.strip_prefix(set).is_some_and(|below| below.is_empty() || below.starts_with(':'))
        };
        self.sets.iter().any(is_below)
    }
}

/// Where the last start tag of the head of a page begins.
fn last_start_tag(head: &[u8]) -> Option<usize> {
    let mut reader = Reader::from_str(std::str::from_utf8(head).ok()?);
    let mut last = None;
    loop {
        let before = usize::try_from(reader.buffer_position()).ok()?;
        match reader.read_event() {
            Ok(Event::Start(_)) => last = Some(before),
            Ok(Event::Eof) | Err(_) => return last,
            Ok(_) => {}
        }
    }
}

/// The expiration date of the token in the end of a page, as written.
fn expiration_date(tail: &[u8]) -> Option<String> {
    let mut reader = Reader::from_str(std::str::from_utf8(tail).ok()?);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) if tag.local_name().as_ref() == "resumptionToken" => {
                let date = tag.try_get_attribute("expirationDate").ok().flatten()?;
                return Some(quick_xml::escape::escape(date.value.as_ref()).into_owned());
            }
            Ok(Event::Eof) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}
