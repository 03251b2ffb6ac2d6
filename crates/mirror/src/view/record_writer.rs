//! Writes the records of a page.

use super::options::{MirroredSource, PageLimits};
use super::page_items::PageItems;
use super::part::Part;
use super::presentation::View;
use super::provenance::Origins;
use super::record_xml::{Header, read_record};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_repository::Failure;
use oaimend_store::StoredRecord;

/// A record as a view shows it.
pub(super) struct ShownRecord<'v> {
    /// Its repository.
    pub(super) member: &'v MirroredSource,
    pub(super) record: StoredRecord,
    /// Its datestamp in the view, in seconds since 1970.
    pub(super) datestamp_secs: UnixSecs,
}

impl<'v> ShownRecord<'v> {
    /// A record with its own datestamp.
    pub(super) fn new(part: Part<'v>, record: StoredRecord) -> Self {
        Self { member: part.member, datestamp_secs: part.datestamp_secs(&record), record }
    }
}

/// Writes the records of a page.
pub(super) struct RecordWriter<'v> {
    view: &'v View,
    prefix: &'v str,
    origins: Origins,
    /// The last datestamp as text. The records of a commit share it.
    datestamp: (UnixSecs, String),
    pub(super) items: PageItems,
}

impl<'v> RecordWriter<'v> {
    pub(super) fn new(view: &'v View, prefix: &'v str, reports_records: bool) -> Self {
        let items = PageItems::new(reports_records);
        Self { view, prefix, origins: Origins::default(), datestamp: (UnixSecs::MIN, String::new()), items }
    }

    /// Whether the page has as many records or bytes as it may have.
    pub(super) fn is_full(&self, limits: PageLimits) -> bool {
        self.items.count() as usize >= limits.records_max || self.items.bytes() >= limits.bytes_max
    }

    /// Writes a record, or its header alone.
    pub(super) async fn write(&mut self, shown: ShownRecord<'_>, with_metadata: bool) -> Result<(), Failure> {
        let ShownRecord { member, record, datestamp_secs } = shown;
        let set_specs = self.view.set_specs(member, &record.set_specs);
        if self.datestamp.0 != datestamp_secs || self.datestamp.1.is_empty() {
            self.datestamp = (datestamp_secs, from_secs(datestamp_secs, Granularity::Second));
        }
        let header = Header::with_datestamp(&record, &self.datestamp.1, set_specs);
        if !with_metadata {
            self.items.push_header(&header);
            return Ok(());
        }
        if member.provenance_base_url.is_none()
            && let Some(around) = record.layout.as_ref().and_then(|layout| layout.split(&record.bytes))
        {
            self.items.push_around(&header, around);
            return Ok(());
        }
        let read = read_record(&record)?;
        let provenance = self.origins.insertions(self.view, (member, self.prefix), &record, &read).await?;
        self.items.push_record(&read, &header, &provenance);
        Ok(())
    }
}
