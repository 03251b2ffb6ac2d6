//! Converts the records of a page.

use super::quarantine::quarantined;
use crate::conversion::{Conversion, Unconverted};
use crate::source_record::SourceRecord;
use oaimend_repository::DeliveredRecord;
use oaimend_store::QuarantinedRecord;

/// Records that were converted, and those that cannot be.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) records: Vec<DeliveredRecord>,
    pub(super) quarantined: Vec<QuarantinedRecord>,
}

impl Converted {
    /// Converts records in a format. Deleted records, which have no metadata, and headers stay as they are.
    pub(super) async fn convert(
        records: Vec<DeliveredRecord>,
        source_prefix: &str,
        conversion: &dyn Conversion,
    ) -> Self {
        let mut converted = Self::default();
        for mut record in records {
            match convert(&record, source_prefix, conversion).await {
                Ok(Some(xml)) => {
                    record.xml = xml;
                    converted.records.push(record);
                }
                Ok(None) => converted.records.push(record),
                Err(why) => converted.quarantined.push(quarantined(record, why)),
            }
        }
        converted
    }
}

/// The record with converted metadata; `None` if it has none to convert.
async fn convert(
    record: &DeliveredRecord,
    source_prefix: &str,
    conversion: &dyn Conversion,
) -> Result<Option<String>, Unconverted> {
    if record.deleted {
        return Ok(None);
    }
    let source = SourceRecord::read(record, source_prefix)?;
    let content = conversion.convert(&source).await?;
    Ok(Some(source.with_content(&content)))
}
