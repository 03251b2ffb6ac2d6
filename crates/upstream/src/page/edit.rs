//! Edits the items of a page that has not been sent yet: replaces records and datestamps, splits records.

use crate::page::buffer::PageBuffer;
use crate::page::item::{FieldPlaces, PageItem};
use crate::xml::text::unescape_text;
use oaimend_oai::datestamp::{Granularity, is_legal};
use oaimend_repair::{RepairId, Span};
use oaimend_repository::RepairMade;
use oaimend_store::{Excerpt, QuarantinedRecord};
use std::borrow::Cow;

impl PageBuffer {
    /// The quarantined items that others can replace, and that are not known: their indexes, and their
    /// identifiers as written in the XML.
    pub(crate) fn replaceable(&self, is_known: impl Fn(u64) -> bool) -> Vec<(usize, String)> {
        let mut replaceable = Vec::new();
        for (index, found) in self.items.iter().enumerate() {
            match found {
                PageItem::Quarantined {
                    hash,
                    record: QuarantinedRecord { identifier: Some(identifier), .. },
                    at: Some(at),
                } if *at <= self.output.len() && !is_known(*hash) => {
                    replaceable.push((index, identifier.clone()));
                }
                _ => {}
            }
        }
        replaceable
    }

    /// Replaces a quarantined item by a record. `fields` are the places in the new item.
    pub(crate) fn replace_quarantined(
        &mut self,
        index: usize,
        item: &[u8],
        deleted: bool,
        fields: FieldPlaces,
    ) {
        let Some(PageItem::Quarantined { hash, at: Some(at), .. }) = self.items.get(index) else { return };
        let (hash, start, len) = (*hash, *at, item.len());
        let name = self.key(fields.identifier.slice(item), b"");
        self.observed.add_name(name);
        let growth = self.output.splice(start..start, item);
        if let Some(found) = self.items.get_mut(index) {
            *found = PageItem::Item { start, len, hash, name, deleted, fields, repairs: Vec::new() };
        }
        self.shift_items_after(index, growth);
    }

    /// Replaces an item with several. Their places are those in `bytes`.
    fn split(&mut self, index: usize, bytes: &[u8], items: Vec<PageItem>) {
        let Some(PageItem::Item { start, len, .. }) = self.items.get(index) else { return };
        let (start, len, count) = (*start, *len, items.len());
        let growth = self.output.splice(start..start + len, bytes);
        let moved: Vec<PageItem> = items
            .into_iter()
            .map(|item| {
                let (at, len) = (start + item.start().unwrap_or_default(), item.len());
                item.moved(at, len)
            })
            .collect();
        self.items.splice(index..=index, moved);
        self.shift_items_after(index + count - 1, growth);
    }

    /// Moves the items after an index by so many bytes.
    fn shift_items_after(&mut self, index: usize, delta: i64) {
        for found in self.items.iter_mut().skip(index + 1) {
            match found {
                PageItem::Item { start, .. } | PageItem::Quarantined { at: Some(start), .. } => {
                    *start = start.saturating_add_signed(delta as isize);
                }
                PageItem::Quarantined { at: None, .. } => {}
            }
        }
    }

    /// The items whose datestamp is a lower bound, and that are not known.
    pub(crate) fn with_lower_bound(&self, is_known: impl Fn(u64) -> bool) -> Vec<usize> {
        let is_bounded = |found: &PageItem| match found {
            PageItem::Item { hash, repairs, len, .. } => {
                *len > 0
                    && repairs.iter().any(|(id, _)| *id == RepairId::DatestampLowerBound)
                    && !is_known(*hash)
            }
            PageItem::Quarantined { .. } => false,
        };
        (0..self.items.len()).filter(|&index| self.items.get(index).is_some_and(is_bounded)).collect()
    }

    /// The bytes of an item.
    pub(crate) fn item(&self, index: usize) -> Option<Cow<'_, str>> {
        let found = self.items.get(index)?;
        let start = found.start()?;
        match self.output.slice(start..start + found.len()) {
            Cow::Borrowed(item) => std::str::from_utf8(item).ok().map(Cow::Borrowed),
            Cow::Owned(item) => String::from_utf8(item).ok().map(Cow::Owned),
        }
    }

    /// The text of a field of an item, as written in the XML.
    fn field(&self, index: usize, place: impl Fn(&FieldPlaces) -> Span) -> Option<String> {
        let place = place(self.items.get(index)?.fields()?);
        Some(self.item(index)?.get(place.range())?.to_owned()).filter(|text| !text.is_empty())
    }

    /// The identifier of an item.
    pub(crate) fn identifier_at(&self, index: usize) -> Option<String> {
        Some(unescape_text(self.field(index, |fields| fields.identifier)?.as_bytes()))
    }

    /// The items whose datestamp was repaired, and that are not known.
    pub(crate) fn with_repaired_datestamp(&self, is_known: impl Fn(u64) -> bool) -> Vec<usize> {
        let is_repaired = |found: &PageItem| match found {
            PageItem::Item { hash, repairs, len, .. } => {
                *len > 0 && repairs.iter().any(is_of_datestamp) && !is_known(*hash)
            }
            PageItem::Quarantined { .. } => false,
        };
        (0..self.items.len()).filter(|&index| self.items.get(index).is_some_and(is_repaired)).collect()
    }

    /// Writes the datestamp of an item in a granularity. The item keeps its key and its provenance.
    pub(crate) fn fit_datestamp(&mut self, index: usize, granularity: Granularity) {
        let Some(stamp) = self.field(index, |fields| fields.datestamp) else { return };
        let fitted = granularity.fitted(&stamp);
        if !is_legal(stamp.as_bytes()) || fitted == stamp {
            return;
        }
        self.write_datestamp(index, &stamp, &fitted);
        let Some(PageItem::Item { repairs, .. }) = self.items.get_mut(index) else { return };
        let before = repairs.iter().find(|made| is_of_datestamp(made)).and_then(|(_, made)| made.clone());
        let made = before.map(|before| RepairMade {
            name: RepairId::DatestampGranularity.name(),
            original: Excerpt::new(stamp.as_bytes()),
            replacement: Excerpt::new(fitted.as_bytes()),
            ..before
        });
        repairs.push((RepairId::DatestampGranularity, made));
    }

    /// Replaces the text of the datestamp of an item.
    fn write_datestamp(&mut self, index: usize, before: &str, stamp: &str) {
        let delta = stamp.len() as i64 - before.len() as i64;
        let Some(PageItem::Item { start, len, fields, .. }) = self.items.get_mut(index) else { return };
        let at = *start + fields.datestamp.range().start;
        fields.grow_datestamp(delta);
        *len = len.saturating_add_signed(delta as isize);
        self.output.splice(at..at + before.len(), stamp.as_bytes());
        self.shift_items_after(index, delta);
    }

    /// Replaces the datestamp of an item, and that in its provenance by `of_source`; returns whether it was
    /// replaced. The item keeps its key.
    pub(crate) fn replace_datestamp(&mut self, index: usize, stamp: &str, of_source: &str) -> bool {
        let Some(bound) = self.field(index, |fields| fields.datestamp) else { return false };
        let Some(PageItem::Item { repairs, .. }) = self.items.get_mut(index) else { return false };
        for made in repairs.iter_mut().filter(|(id, _)| *id == RepairId::DatestampLowerBound) {
            if let Some(made) = &mut made.1 {
                let replacement = made.replacement.to_text().replace(&bound, stamp);
                made.replacement = Excerpt::new(replacement.as_bytes());
            }
        }
        let has_provenance = repairs.iter().any(|(id, _)| *id == RepairId::RewriteProvenance);
        self.write_datestamp(index, &bound, stamp);
        if has_provenance {
            self.replace_provenance_datestamp(index, &bound, of_source);
        }
        true
    }

    /// Replaces the datestamp in the provenance that was added to an item.
    fn replace_provenance_datestamp(&mut self, index: usize, bound: &str, stamp: &str) {
        let Some(identifier) = self.field(index, |fields| fields.identifier) else { return };
        let within = self.item(index).and_then(|item| described(&item, &identifier, bound));
        let Some(within) = within else { return };
        let delta = stamp.len() as i64 - bound.len() as i64;
        let Some(PageItem::Item { start, len, .. }) = self.items.get_mut(index) else { return };
        let at = *start + within;
        *len = len.saturating_add_signed(delta as isize);
        self.output.splice(at..at + bound.len(), stamp.as_bytes());
        self.shift_items_after(index, delta);
    }

    /// Replaces an item, which began at `offset`, with the records that it contains. They were read after a
    /// head of `head_len` bytes.
    pub(crate) fn split_torn(&mut self, index: usize, offset: u64, head_len: usize, mut torn: Self) {
        let found = std::mem::take(&mut torn.items);
        let (Some(first), Some(last)) = (found.first(), found.last()) else { return };
        let start = first.start().unwrap_or_default();
        let end = last.start().unwrap_or_default() + last.len();
        let bytes = torn.output.slice(start..end).into_owned();
        let mut items = Vec::new();
        for (count, item) in found.into_iter().enumerate() {
            let PageItem::Item { start: at, len, hash, name, deleted, fields, mut repairs } = item else {
                return;
            };
            for made in repairs.iter_mut().filter_map(|(_, made)| made.as_mut()) {
                made.offset = (made.offset + offset).saturating_sub(head_len as u64);
            }
            if count == 0
                && let Some(PageItem::Item { repairs: before, .. }) = self.items.get_mut(index)
            {
                repairs.splice(..0, before.drain(..));
            }
            items.push(PageItem::Item { start: at - start, len, hash, name, deleted, fields, repairs });
        }
        let is_last = self.items.iter().skip(index + 1).all(|item| item.start().is_none());
        self.observed.add(torn.observed, is_last);
        self.split(index, &bytes, items);
    }
}

/// Whether a repair changed the form of the datestamp of an item.
fn is_of_datestamp((id, made): &(RepairId, Option<RepairMade>)) -> bool {
    let is_of_item = made.as_ref().is_none_or(|made| made.record.is_some());
    is_of_item
        && matches!(
            id,
            RepairId::DatestampZone
                | RepairId::DatestampForm
                | RepairId::DatestampOffset
                | RepairId::DatestampFraction
        )
}

/// The place of a datestamp in the first description of the origin of the item with its identifier.
fn described(item: &str, identifier: &str, bound: &str) -> Option<usize> {
    let value = format!("datestamp>{bound}</");
    item.match_indices(&value).find_map(|(at, _)| {
        let before = item.get(..item.get(..at)?.rfind('<')?)?;
        let prefix = item.get(before.len() + 1..at)?;
        let is_described =
            before.ends_with(&format!("<{prefix}identifier>{identifier}</{prefix}identifier>"));
        is_described.then_some(at + "datestamp>".len())
    })
}
