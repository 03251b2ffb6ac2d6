//! Writes the records of a page.

use super::merge::PageLimits;
use super::options::MirroredSource;
use super::presentation::View;
use super::provenance::Origins;
use super::record_xml::{Header, RecordPlaces};
use super::response::Page;
use crate::repository::{Failure, Reason};
use crate::store::StoredRecord;

/// A record as a view shows it.
pub(super) struct ShownRecord<'v> {
    /// Its repository.
    pub(super) member: &'v MirroredSource,
    pub(super) record: StoredRecord,
    /// Its datestamp in the view, in seconds since 1970.
    pub(super) datestamp_secs: i64,
}

impl<'v> ShownRecord<'v> {
    /// A record with its own stamp.
    pub(super) fn new(member: &'v MirroredSource, record: StoredRecord) -> Self {
        Self { member, datestamp_secs: record.stamp_secs, record }
    }
}

/// Writes the records of a page.
pub(super) struct RecordWriter<'v> {
    view: &'v View,
    prefix: &'v str,
    reports_records: bool,
    origins: Origins,
    pub(super) page: Page,
}

impl<'v> RecordWriter<'v> {
    pub(super) fn new(view: &'v View, prefix: &'v str, reports_records: bool) -> Self {
        Self { view, prefix, reports_records, origins: Origins::default(), page: Page::default() }
    }

    /// Whether the page has as many records or bytes as it may have.
    pub(super) fn is_full(&self, limits: PageLimits) -> bool {
        self.page.items as usize >= limits.records_max || self.page.xml.len() >= limits.bytes_max
    }

    /// Writes a record, or its header alone.
    pub(super) async fn write(&mut self, shown: ShownRecord<'_>, with_metadata: bool) -> Result<(), Failure> {
        let ShownRecord { member, record, datestamp_secs } = shown;
        let set_specs = self.view.set_specs(member, &record.set_specs);
        let header = Header::with_stamp(&record, datestamp_secs, set_specs);
        self.page.xml.extend_from_slice(b"    ");
        let start = self.page.xml.len();
        if with_metadata {
            self.write_record(member, &record, &header).await?;
        } else {
            let mut text = String::new();
            header.write("", &mut text);
            self.page.xml.extend_from_slice(text.as_bytes());
        }
        if self.reports_records {
            let xml = self.page.xml.get(start..).unwrap_or_default();
            self.page.records.push(header.to_delivered(xml));
        }
        self.page.xml.push(b'\n');
        self.page.items += 1;
        Ok(())
    }

    async fn write_record(
        &mut self,
        member: &MirroredSource,
        record: &StoredRecord,
        header: &Header,
    ) -> Result<(), Failure> {
        let text = std::str::from_utf8(&record.bytes).ok();
        let Some((text, places)) = text.and_then(|text| Some((text, RecordPlaces::read(text)?))) else {
            let details = format!("the stored record {} is not a record element", record.identifier);
            return Err(Failure::new(Reason::Mirror, details));
        };
        let xml = (text, places.prefix);
        let about = self.origins.about(self.view, (member, self.prefix), record, xml).await?;
        places.write(text, header, &about, &mut self.page.xml);
        Ok(())
    }
}
