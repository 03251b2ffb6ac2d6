//! An item of a page, with its place in the output and the places of its fields.

use crate::xml::text::{to_text, unescape_text};
use oaimend_repair::{ItemSpans, RepairId, Span};
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::{DeliveredRecord, RepairMade};
use oaimend_store::{QuarantinedRecord, RecordRepairs};

/// An item, in the order of the page.
#[derive(Debug)]
pub(crate) enum PageItem {
    /// An item that is sent: its place in the output.
    Item {
        start: usize,
        len: usize,
        hash: u64,
        /// The hash of its identifier.
        name: u64,
        /// Whether its header says `status="deleted"`.
        deleted: bool,
        fields: FieldPlaces,
        repairs: Vec<(RepairId, Option<RepairMade>)>,
    },
    /// A quarantined item: the place in the output where another one could replace it.
    Quarantined { hash: u64, record: QuarantinedRecord, at: Option<usize> },
}

/// The places of the fields in an item, in bytes from its start. A missing field has an empty place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldPlaces {
    /// `header` with its tags.
    pub(crate) header: Span,
    pub(crate) identifier: Span,
    pub(crate) datestamp: Span,
    pub(crate) set_specs: Vec<Span>,
}

impl FieldPlaces {
    pub(crate) fn new(spans: &ItemSpans<'_>) -> Self {
        let ItemSpans { header, identifier, datestamp, set_specs, .. } = *spans;
        Self { header, identifier, datestamp, set_specs: set_specs.to_vec() }
    }

    /// The same fields after the start tag of the item grew by `delta` bytes.
    pub(crate) fn after_growth(&self, delta: i64) -> Self {
        let mut header = self.header;
        if !header.is_empty() {
            header.end = header.shifted(delta).end;
            // An item of a list of headers is the header itself.
            header.start = if header.start == 0 { 0 } else { self.header.shifted(delta).start };
        }
        Self {
            header,
            identifier: self.identifier.shifted(delta),
            datestamp: self.datestamp.shifted(delta),
            set_specs: self.set_specs.iter().map(|span| span.shifted(delta)).collect(),
        }
    }

    /// The places in the header, if the header is an item by itself.
    pub(crate) fn within_header(&self) -> Self {
        let delta = -i64::from(self.header.start);
        Self {
            header: self.header.shifted(delta),
            identifier: self.identifier.shifted(delta),
            datestamp: self.datestamp.shifted(delta),
            set_specs: self.set_specs.iter().map(|span| span.shifted(delta)).collect(),
        }
    }

    /// A setSpec was inserted at the end of the header: its text is at `at` and has `len` bytes, the element has
    /// `element_len`.
    pub(crate) fn add_set_spec(&mut self, at: usize, len: usize, element_len: usize) {
        self.set_specs.push(Span { start: at as u32, end: (at + len) as u32 });
        self.header.end = self.header.shifted(element_len as i64).end;
    }

    /// The datestamp grew by `delta` bytes: the fields after it move.
    pub(crate) fn grow_datestamp(&mut self, delta: i64) {
        let old_end = self.datestamp.end;
        self.datestamp.end = self.datestamp.shifted(delta).end;
        self.header.end = self.header.shifted(delta).end;
        for span in self.set_specs.iter_mut().chain([&mut self.identifier]) {
            if span.start >= old_end {
                *span = span.shifted(delta);
            }
        }
    }
}

impl PageItem {
    pub(crate) fn start(&self) -> Option<usize> {
        match self {
            Self::Item { start, .. } => Some(*start),
            Self::Quarantined { .. } => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Item { len, .. } => *len,
            Self::Quarantined { .. } => 0,
        }
    }

    /// The same item at another place of the output.
    pub(crate) fn moved(self, start: usize, len: usize) -> Self {
        match self {
            Self::Item { hash, name, deleted, fields, repairs, .. } => {
                Self::Item { start, len, hash, name, deleted, fields, repairs }
            }
            quarantined @ Self::Quarantined { .. } => quarantined,
        }
    }

    /// The places of its fields; `None` if it is quarantined.
    pub(crate) fn fields(&self) -> Option<&FieldPlaces> {
        match self {
            Self::Item { fields, .. } => Some(fields),
            Self::Quarantined { .. } => None,
        }
    }

    /// The same item, changed to one with this length and these fields, at another place of the output.
    pub(crate) fn changed(self, start: usize, len: usize, fields: FieldPlaces) -> Self {
        match self {
            Self::Item { hash, name, deleted, repairs, .. } => {
                Self::Item { start, len, hash, name, deleted, fields, repairs }
            }
            quarantined @ Self::Quarantined { .. } => quarantined,
        }
    }

    /// The record that the harvester receives. `item` are its bytes, `scope` the namespaces around it. `None`
    /// for a quarantined item, and for an item without a header.
    pub(crate) fn to_delivered(&self, item: &[u8], scope: &NamespaceScope) -> Option<DeliveredRecord> {
        let Self::Item { deleted, fields, repairs, .. } = self else { return None };
        if fields.header.is_empty() {
            return None;
        }
        let text = |span: Span| unescape_text(span.slice(item));
        let xml = scope.rebase(&to_text(item), NamespaceScope::of_own_list());
        let growth = xml.len() as i64 - item.len() as i64;
        Some(DeliveredRecord {
            identifier: text(fields.identifier),
            datestamp: text(fields.datestamp),
            deleted: *deleted,
            set_specs: fields.set_specs.iter().map(|span| text(*span)).collect(),
            datestamp_at: fields.after_growth(growth).datestamp.range(),
            xml,
            repairs: RecordRepairs::new(repairs.iter().filter_map(|(_, made)| made.as_ref().map(Into::into))),
        })
    }

    pub(crate) fn hash(&self) -> u64 {
        match self {
            Self::Item { hash, .. } | Self::Quarantined { hash, .. } => *hash,
        }
    }
}
