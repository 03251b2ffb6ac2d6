//! What describes an item: one rule for its page, exports, results, feeds, canonical URL and sitemap.
//!
//! The record in the richest format that the mirror serves describes the item alone ([`richest_first`]), because values of
//! two formats would be doubled or contradict each other. There is one exception. If this record links to no page at the
//! source, the links of the record in `oai_dc` are added: catalogues rarely write such a link into MARC, and without it
//! search engines would take the page here for the original.
//!
//! [`richest_first`]: oaimend_record::richest_first

use super::collection::COMMON_FORMAT;
use oaimend_mirror::view::record_xml::read_record;
use oaimend_oai::UnixSecs;
use oaimend_record::{RecordDocument, UnreadableRecord, WorkDescription};
use oaimend_repository::RecordView;
use oaimend_store::{Identifier, MirrorError, MirrorStore, Prefix, RecordStatus, RepositoryId, StoredRecord};

/// The records that describe an item.
#[derive(Clone, Debug)]
pub(in crate::serve::pages) struct ItemRecords {
    /// The record in the richest format.
    pub(super) best: StoredRecord,
    /// The record in `oai_dc`, if another one describes the item.
    pub(super) common: Option<StoredRecord>,
}

impl ItemRecords {
    /// The records of an item. `served` are the formats of its repository that the mirror serves, the richest one first.
    /// `None` if it has no record in them that is not deleted.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or the record is damaged.
    pub(in crate::serve::pages) async fn read(
        store: &dyn MirrorStore,
        repository: RepositoryId<'_>,
        served: &[String],
        identifier: Identifier<'_>,
    ) -> Result<Option<Self>, MirrorError> {
        let formats = live_formats(store, repository, served, identifier).await?;
        let Some(&best) = formats.first() else { return Ok(None) };
        let Some(best) = store.record(repository, Prefix(best), identifier).await? else { return Ok(None) };
        let common = if formats.iter().skip(1).any(|prefix| *prefix == COMMON_FORMAT) {
            // Without this record the description is poorer, and still true.
            store.record(repository, Prefix(COMMON_FORMAT), identifier).await.unwrap_or_default()
        } else {
            None
        };
        Ok((best.status == RecordStatus::Live).then_some(Self { best, common }))
    }

    /// The length of the records, in bytes.
    pub(in crate::serve::pages) fn bytes(&self) -> usize {
        self.records().map(|record| record.bytes.len()).sum()
    }

    /// The time of the last change, in seconds since 1970.
    pub(in crate::serve::pages) fn stamp_secs(&self) -> UnixSecs {
        self.records().map(|record| record.stamp_secs).max().unwrap_or(UnixSecs::MIN)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &StoredRecord> {
        std::iter::once(&self.best).chain(&self.common)
    }

    /// The description of the work; `None` if the XML of the richest record is damaged.
    pub(in crate::serve::pages) fn describe(&self) -> Option<WorkDescription> {
        Some(self.describe_from(&document(&self.best)?))
    }

    /// The description of the work, whose richest record was read before.
    pub(super) fn describe_from(&self, best: &RecordDocument) -> WorkDescription {
        let work = WorkDescription::of(best);
        match &self.common {
            Some(common) if work.links.landing_page().is_none() => match document(common) {
                Some(common) => work.linked_as(&common),
                None => work,
            },
            _ => work,
        }
    }
}

/// The formats in which an item has a record that is not deleted, in the order of `formats`.
pub(in crate::serve::pages) async fn live_formats<'f>(
    store: &dyn MirrorStore,
    repository: RepositoryId<'_>,
    formats: &'f [String],
    identifier: Identifier<'_>,
) -> Result<Vec<&'f String>, MirrorError> {
    let stored = store.formats_of_item(repository, identifier).await?;
    let is_live = |prefix: &&String| stored.contains(&((*prefix).clone(), RecordStatus::Live));
    Ok(formats.iter().filter(is_live).collect())
}

/// The content of a record, with the fields of the header that its page shows.
pub(super) fn document_of(
    stored: &StoredRecord,
    record: &RecordView<'_>,
) -> Result<RecordDocument, UnreadableRecord> {
    let content = RecordDocument::read_content(record)?;
    let (identifier, set_specs) = (stored.identifier.clone(), stored.set_specs.to_vec());
    Ok(RecordDocument { identifier, set_specs, ..content })
}

fn document(stored: &StoredRecord) -> Option<RecordDocument> {
    document_of(stored, &read_record(stored).ok()?).ok()
}
