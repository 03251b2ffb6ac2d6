//! Filters a page if the source was asked for more than the harvester wants.
//!
//! Runs between the engine and [`Resumer`](crate::page::resume::Resumer): records become headers,
//! and items outside the window are dropped. The text between the items is dropped, and so are `cursor` and
//! `completeListSize`: they count the items of the source.
//!
//! Invariants: an item that stays keeps its content; a page that is an error is sent as received; the
//! output is well-formed at any place between two items.

use crate::page::buffer::PageBuffer;
use crate::page::item::FieldPlaces;
use oaimend_oai::{Window, set_spec};
use oaimend_repair::Span;
use oaimend_repository::rebase_namespaces::NamespaceScope;

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
    is_over: bool,
}

impl FilterRules {
    pub(crate) fn is_anything(&self) -> bool {
        *self != Self::default()
    }
}

impl ItemFilter {
    pub(crate) fn new(rules: FilterRules) -> Self {
        Self { rules, head: Vec::new(), met: false, stayed: false, is_over: false }
    }

    /// The same filter for another reading of the page.
    pub(crate) fn restarted(self) -> Self {
        Self::new(self.rules)
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
        let (bytes, found) = buffer.take_for_edit();
        let (mut out, mut kept) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(found.len()));
        let mut cursor = 0;
        for found in found {
            let (Some(start), Some(fields), len) = (found.start(), found.fields(), found.len()) else {
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
            let item = bytes.get(start..cursor).unwrap_or_default();
            let Some((item, fields)) = self.filter_item(item, fields) else { continue };
            if !self.stayed {
                if self.rules.headers {
                    buffer.head.rename_to_headers(&mut self.head);
                }
                out.extend_from_slice(&self.head);
                self.stayed = true;
            }
            out.push(b'\n');
            let start = out.len();
            out.extend_from_slice(&item);
            kept.push(found.changed(start, item.len(), fields));
        }
        if !self.met {
            // The engine holds a head back until there is an item: this is an error, or a token alone.
            out.extend_from_slice(bytes.get(cursor..).unwrap_or_default());
        }
        if ended && self.stayed && !std::mem::replace(&mut self.is_over, true) {
            out.extend_from_slice(&end_of_page(buffer));
        }
        buffer.replace(bytes.len(), out, kept);
        true
    }

    /// The filtered item; `None` if it is dropped. `fields` are the places in it.
    fn filter_item(&self, item: &[u8], fields: &FieldPlaces) -> Option<(Vec<u8>, FieldPlaces)> {
        let FilterRules { headers, window, set, .. } = &self.rules;
        let mut fields = fields.clone();
        if fields.header.is_empty() {
            // An item without a header is a set: nothing else is filtered of it.
            return Some((item.to_vec(), fields));
        }
        let text_at = |span: Span| String::from_utf8_lossy(span.slice(item)).trim().to_owned();
        if window.as_ref().is_some_and(|window| !window.contains(&text_at(fields.datestamp))) {
            return None;
        }
        let mut text = String::from_utf8_lossy(item).into_owned();
        let set = set.as_ref().map(|set| set_spec::escape(set.as_bytes()));
        let set = set.as_ref().map(|set| String::from_utf8_lossy(set)).filter(|set| !set.is_empty());
        if let Some(set) =
            set.filter(|set| !fields.set_specs.iter().any(|span| set_spec::is_within(&text_at(*span), set)))
        {
            let header_end = fields.header.range().end;
            let close = text.get(..header_end)?.rfind("</")?;
            let prefix = text.get(close + 2..header_end)?.split("header").next()?.to_owned();
            let start_tag = format!("<{prefix}setSpec>");
            let element = format!("{start_tag}{set}</{prefix}setSpec>");
            text.insert_str(close, &element);
            fields.add_set_spec(close + start_tag.len(), set.len(), element.len());
        }
        if !headers {
            return Some((text.into_bytes(), fields));
        }
        let (header, fields) = extract_header(&text, &fields)?;
        Some((header.into_bytes(), fields))
    }
}

/// The end of a filtered page.
fn end_of_page(buffer: &PageBuffer) -> Vec<u8> {
    let Some(tags) = buffer.head.envelope() else { return Vec::new() };
    let token = buffer.token.as_written().map(String::from_utf8_lossy);
    let expires = buffer.token.expires().map(|date| format!(" expirationDate=\"{date}\""));
    tags.close_with_attributes(&expires.unwrap_or_default(), token.as_deref())
}

/// The header of a record, by itself: with the declarations that it needs without its record; and the places
/// of its fields. `fields` are the places in the record.
pub(crate) fn extract_header(record: &str, fields: &FieldPlaces) -> Option<(String, FieldPlaces)> {
    let around = NamespaceScope::parse(record.get(..fields.header.range().start)?);
    let header = record.get(fields.header.range())?;
    let extracted = around.rebase(header, &NamespaceScope::default());
    let growth = extracted.len() as i64 - header.len() as i64;
    let fields = fields.within_header().after_growth(growth);
    Some((extracted, fields))
}
