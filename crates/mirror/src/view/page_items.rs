//! The items of a page while they are written.

use super::record_xml::{Header, Insertion};
use super::response::Page;
use oaimend_repository::{DeliveredRecord, RecordView};

/// The records or headers of a page.
#[derive(Default)]
pub(crate) struct PageItems {
    xml: String,
    count: u64,
    /// The records as events report them.
    delivered: Vec<DeliveredRecord>,
    is_reported: bool,
}

impl PageItems {
    /// No items. `is_reported`: the request wants its records reported as events.
    pub(crate) fn new(is_reported: bool) -> Self {
        Self { is_reported, ..Self::default() }
    }

    /// The number of items.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The bytes of XML.
    pub(crate) const fn bytes(&self) -> usize {
        self.xml.len()
    }

    /// Writes a record with another header, and with these texts in the order of their places.
    pub(crate) fn push_record(
        &mut self,
        record: &RecordView<'_>,
        header: &Header<'_>,
        insertions: &[Insertion],
    ) {
        self.push(header, |xml| header.write_record(record, insertions, xml));
    }

    /// Writes a header alone.
    pub(crate) fn push_header(&mut self, header: &Header<'_>) {
        self.push(header, |xml| header.write("", xml));
    }

    fn push(&mut self, header: &Header<'_>, write: impl FnOnce(&mut String)) {
        self.xml.push_str("    ");
        let start = self.xml.len();
        write(&mut self.xml);
        if self.is_reported {
            self.delivered.push(header.to_delivered(self.xml.get(start..).unwrap_or_default()));
        }
        self.xml.push('\n');
        self.count += 1;
    }

    /// The page with these items.
    pub(crate) fn into_page(self) -> Page {
        Page { xml: self.xml.into(), items: self.count, records: self.delivered, ..Page::default() }
    }
}
