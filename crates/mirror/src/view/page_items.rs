//! The items of a page while they are written.

use super::record_xml::{Header, Insertion};
use super::response::Page;
use oaimend_repository::{DeliveredRecord, RecordView};

/// The records or headers of a page.
#[derive(Default)]
pub(crate) struct PageItems {
    xml: Vec<u8>,
    /// The buffer of what is written as text.
    text: String,
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

    /// Makes room for this number of bytes of records.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.xml.reserve(bytes);
    }

    /// Writes a record with another header, and with these texts in the order of their places.
    pub(crate) fn push_record(
        &mut self,
        record: &RecordView<'_>,
        header: &Header<'_>,
        insertions: &[Insertion],
    ) {
        self.text.clear();
        header.write_record(record, insertions, &mut self.text);
        self.push(header, (b"", b""));
    }

    /// Writes a record with another header between the bytes before and after its own one.
    pub(super) fn push_around(&mut self, header: &Header<'_>, around: (&[u8], &[u8])) {
        self.text.clear();
        header.write("", &mut self.text);
        self.push(header, around);
    }

    /// Writes a header alone.
    pub(crate) fn push_header(&mut self, header: &Header<'_>) {
        self.push_around(header, (b"", b""));
    }

    fn push(&mut self, header: &Header<'_>, (before, after): (&[u8], &[u8])) {
        self.xml.extend_from_slice(b"    ");
        let start = self.xml.len();
        for part in [before, self.text.as_bytes(), after] {
            self.xml.extend_from_slice(part);
        }
        if self.is_reported {
            let item = String::from_utf8_lossy(self.xml.get(start..).unwrap_or_default());
            self.delivered.push(header.to_delivered(&item));
        }
        self.xml.push(b'\n');
        self.count += 1;
    }

    /// The page with these items.
    pub(crate) fn into_page(self) -> Page {
        Page { xml: self.xml.into(), items: self.count, records: self.delivered, ..Page::default() }
    }
}
