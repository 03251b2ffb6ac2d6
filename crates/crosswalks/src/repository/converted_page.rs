//! Converts the records of a page.

use super::quarantine::{QuarantineSettings, QuarantinedOf};
use crate::conversion::{Conversion, NotConverted};
use crate::source_record::SourceRecord;
use oaimend_repository::{DeliveredRecord, Failure};

/// Records that were converted, and those that cannot be.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) records: Vec<DeliveredRecord>,
    pub(super) quarantined: Vec<QuarantinedOf>,
}

/// Converts the records of a repository in one format.
pub(super) struct Converter<'c> {
    pub(super) repository: &'c str,
    pub(super) source_prefix: &'c str,
    pub(super) conversion: &'c dyn Conversion,
    pub(super) quarantine: &'c QuarantineSettings,
}

impl Converter<'_> {
    /// Converts records. Deleted records, which have no metadata, stay as they are.
    ///
    /// # Errors
    ///
    /// No record can be converted now.
    pub(super) async fn convert(&self, records: Vec<DeliveredRecord>) -> Result<Converted, Failure> {
        // Another process converts the records ahead of the one that is awaited.
        let converting = records.iter().map(|record| self.convert_record(record));
        let results = futures::future::join_all(converting).await;
        let mut converted = Converted::default();
        for (mut record, result) in records.into_iter().zip(results) {
            match result {
                Ok(Some(xml)) => {
                    record.xml = xml;
                    converted.records.push(record);
                }
                Ok(None) => converted.records.push(record),
                Err(NotConverted::Record(why)) => {
                    converted.quarantined.push(self.quarantine.record(record, why, self.repository));
                }
                Err(NotConverted::Now(failure)) => return Err(failure),
            }
        }
        Ok(converted)
    }

    /// The record with converted metadata; `None` if it has none to convert.
    async fn convert_record(&self, record: &DeliveredRecord) -> Result<Option<String>, NotConverted> {
        if record.deleted {
            return Ok(None);
        }
        let source = SourceRecord::read(record, self.source_prefix)?;
        let content = self.conversion.convert(&source).await?;
        Ok(Some(source.with_content(&content)))
    }
}
