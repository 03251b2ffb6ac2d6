//! Converts the records of a page.

use super::converted_records::RecordKey;
use super::quarantine::QuarantinedOf;
use super::settings::CrosswalkSettings;
use crate::conversion::NotConverted;
use crate::source_record::SourceRecord;
use crate::table::Crosswalk;
use futures::StreamExt as _;
use oaimend_repository::{DeliveredRecord, Failure};

/// Maximum number of records that are converted at once with the help of other records.
const READING_AT_ONCE: usize = 2;

/// Records that were converted, and those that cannot be.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) records: Vec<DeliveredRecord>,
    pub(super) quarantined: Vec<QuarantinedOf>,
}

/// Converts the records of a repository in one format.
pub(super) struct Converter<'c> {
    pub(super) settings: &'c CrosswalkSettings,
    pub(super) crosswalk: &'c Crosswalk,
    pub(super) source_prefix: &'c str,
}

impl Converter<'_> {
    /// Converts records. Deleted records, which have no metadata, stay as they are.
    ///
    /// # Errors
    ///
    /// No record can be converted now.
    pub(super) async fn convert(&self, records: Vec<DeliveredRecord>) -> Result<Converted, Failure> {
        // Another process converts the records ahead of the one that is awaited. A conversion that reads other records holds
        // them in memory, so few of them run at once.
        let at_once = if self.crosswalk.reads_other_records { READING_AT_ONCE } else { records.len().max(1) };
        let converting: Vec<_> = records.iter().map(|record| self.convert_record(record)).collect();
        let results: Vec<_> = futures::stream::iter(converting).buffered(at_once).collect().await;
        let mut converted = Converted::default();
        for (mut record, result) in records.into_iter().zip(results) {
            match result {
                Ok(Some(xml)) => {
                    record.xml = xml;
                    converted.records.push(record);
                }
                Ok(None) => converted.records.push(record),
                Err(NotConverted::Record(why)) => {
                    converted.quarantined.push(self.settings.quarantine.record(
                        record,
                        why,
                        &self.settings.repository,
                    ));
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
        let key = RecordKey::new(&self.settings.token_key, self.crosswalk, self.source_prefix, record);
        let may_be_kept = !self.crosswalk.reads_other_records;
        if may_be_kept && let Some(xml) = self.settings.converted.find(key) {
            return Ok(Some(xml.as_ref().to_owned()));
        }
        let source = SourceRecord::read(record, self.source_prefix)?;
        let content = self.crosswalk.conversion.convert(&source).await?;
        let xml = source.with_content(&content);
        if may_be_kept {
            self.settings.converted.keep(key, &xml);
        }
        Ok(Some(xml))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::{Inner, fixture, live, unreadable};
    use async_trait::async_trait;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts its records, of which it converts those with a title.
    #[derive(Debug, Default)]
    struct Counted(AtomicUsize);

    #[async_trait]
    impl crate::Conversion for Counted {
        async fn convert(&self, record: &SourceRecord<'_>) -> Result<String, NotConverted> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let work = record.work()?;
            Ok(format!("<title>{}</title>", work.core.titles[0].value))
        }
    }

    #[tokio::test]
    async fn records_are_converted_once_until_they_or_their_crosswalk_change() {
        let settings = fixture(Inner::default()).settings;
        let conversion = Arc::new(Counted::default());
        let mut crosswalk = settings.crosswalks[0].clone();
        crosswalk.conversion = Arc::<Counted>::clone(&conversion);
        let convert = async |crosswalk: &Crosswalk, source_prefix: &str, records: Vec<DeliveredRecord>| {
            let before = conversion.0.load(Ordering::Relaxed);
            let converter = Converter { settings: &settings, crosswalk, source_prefix };
            let converted = converter.convert(records).await.expect("no failure");
            let xml: Vec<String> = converted.records.into_iter().map(|record| record.xml).collect();
            (conversion.0.load(Ordering::Relaxed) - before, xml)
        };
        let (converted, first) = convert(&crosswalk, "marcxml", vec![live(1), live(2)]).await;
        assert_eq!(converted, 2);
        assert!(first[1].contains("oai:x:2") && first[1].contains("<title>Title 2</title>"), "{first:?}");
        assert_eq!(convert(&crosswalk, "marcxml", vec![live(1), live(2)]).await, (0, first.clone()));
        assert_eq!(convert(&crosswalk, "marc21", vec![live(1)]).await.0, 1);
        let mut changed = live(1);
        changed.xml = changed.xml.replace("Title 1", "Title 3");
        let (converted, xml) = convert(&crosswalk, "marcxml", vec![changed]).await;
        assert!(converted == 1 && xml[0].contains("<title>Title 3</title>"), "{xml:?}");
        let mut other_header = live(1);
        other_header.xml = other_header.xml.replace("2024", "2025");
        let (converted, xml) = convert(&crosswalk, "marcxml", vec![other_header]).await;
        assert!(converted == 1 && xml[0].contains("2025-01-02"), "{xml:?}");
        crosswalk.version.push_str(" changed");
        assert_eq!(convert(&crosswalk, "marcxml", vec![live(1)]).await, (1, vec![first[0].clone()]));
        crosswalk.prefix.push_str("_other");
        crosswalk.reads_other_records = true;
        for _ in 0..2 {
            assert_eq!(convert(&crosswalk, "marcxml", vec![live(1)]).await.0, 1, "other records may change");
        }
        crosswalk.reads_other_records = false;
        assert_eq!(convert(&crosswalk, "marcxml", vec![live(1)]).await.0, 1);
        // A sheet may convert it later, and the quarantine counts it each time.
        for _ in 0..2 {
            assert_eq!(convert(&crosswalk, "marcxml", vec![unreadable(1)]).await, (1, Vec::new()));
        }
    }
}
