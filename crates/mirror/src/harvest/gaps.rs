//! Notes the items that a harvest could not store, and requests them again.
//!
//! [`KnownGaps`](oaimend_rules::KnownGaps) gives the rule. Invariant: an item that a page did not give is a known
//! gap in the same transaction as the progress beyond this page.

use crate::harvest::collection_writer::CollectionWriter;
use crate::harvest::page::{Harvester, Interruption, ReceivedPage, is_gap_name, to_new_record};
use crate::harvest::settings::HarvestSettings;
use crate::harvest::sweep::{REFETCH_FAILURES_MAX, is_unknown, tombstone};
use oaimend_oai::{Argument, Request, UnixSecs, Verb};
use oaimend_repository::DeliveredRecord;
use oaimend_rules::{HarvestMark, MissingItem, Sighting};
use oaimend_store::{
    Committed, HarvestProgress, Identifier, IdentifierEntry, MirrorError, PageCommit, Prefix, RecordStatus,
    check_record,
};

impl CollectionWriter<'_> {
    /// Notes what a page says about gaps: records that are there now, and items that are missing.
    pub(crate) fn note_gaps(&mut self, request: &Request, page: &ReceivedPage) {
        let gaps = &mut self.progress.gaps;
        page.recovered.iter().for_each(|identifier| gaps.resolve(identifier));
        let single = match request.verb() {
            Verb::GetRecord => request.argument(Argument::Identifier),
            _ => None,
        };
        if single.is_some_and(|identifier| !is_gap_name(identifier)) {
            // The list with this record makes it a gap without a name.
            return;
        }
        for (item, bytes) in &page.missing.items {
            match (single, bytes) {
                (None, bytes) => gaps.note(item.clone(), Sighting::Listed(*bytes), self.before),
                (Some(identifier), Some(bytes)) => {
                    gaps.note(
                        MissingItem::Named(identifier.to_owned()),
                        Sighting::Fetched(*bytes),
                        self.before,
                    );
                }
                // The request has failed.
                (Some(_), None) => {}
            }
        }
        gaps.note_beyond(page.missing.more, self.before);
        self.has_new_gaps |= !page.recovered.is_empty() || page.missing.count() > 0;
    }

    /// Notes a record that the source lists, that was never stored, and that cannot be fetched. Nobody knows since when
    /// it is missing.
    pub(crate) fn note_gap(&mut self, identifier: &str) {
        if is_gap_name(identifier) {
            let item = MissingItem::Named(identifier.to_owned());
            self.progress.gaps.note(item, Sighting::Listed(None), None);
            self.has_new_gaps = true;
        }
    }
}

/// Stores a record that came whole outside a harvest, if the mirror should have it: it is a known gap, replaces a stored
/// version, or the mirror has the whole repository.
///
/// # Errors
///
/// The store fails. The record is not stored; a known gap stays one.
pub async fn store_recovered(
    harvest: &Harvester,
    prefix: &str,
    record: DeliveredRecord,
) -> Result<(), MirrorError> {
    let record = to_new_record(record);
    let mut progress = harvest.store.progress(harvest.repository(), Prefix(prefix)).await?;
    if progress.duplicates.is_some_and(|duplicates| duplicates.policy.needs_whole_lists()) {
        // It can be any of several records with its identifier. The next harvest lists all of them.
        return Ok(());
    }
    let stored = harvest.store.formats_of_item(harvest.repository(), Identifier(&record.identifier)).await?;
    let is_wanted = stored.iter().any(|(format, _)| format == prefix)
        || progress.gaps.contains(&record.identifier)
        || progress.sets_covered.iter().any(String::is_empty);
    if !is_wanted {
        return Ok(());
    }
    check_record(&record)?;
    progress.gaps.resolve(&record.identifier);
    let page = PageCommit {
        repository: harvest.id.clone(),
        prefix: prefix.to_owned(),
        stamp_secs: UnixSecs(0),
        records: vec![record],
        progress,
        ..PageCommit::default()
    };
    harvest.stamps.commit(page, harvest.now_secs()).await?;
    Ok(())
}

/// Makes the missing items that earlier versions only counted known gaps: the next harvest lists them again.
pub(crate) fn adopt_counted_gaps(progress: &mut HarvestProgress) {
    progress.gaps.note_beyond(std::mem::take(&mut progress.missing), None);
}

/// Requests the missing records again after the lists of a harvest, and ends the harvest for the known gaps. `before` is
/// the state that this harvest continues from.
pub(crate) async fn fetch_gaps(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    before: Option<HarvestMark>,
) -> Result<Committed, Interruption> {
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    if writer.progress.gaps.is_empty() {
        return Ok(Committed::default());
    }
    writer.before = before;
    let mut failures = 0;
    for identifier in writer.progress.gaps.to_fetch() {
        harvest.clock.pause(settings.request_gap).await;
        writer.progress.gaps.note_fetch(&identifier);
        match writer.receive_page(Request::get_record(&identifier, prefix), (None, None)).await {
            Ok(page) if is_unknown(&page) && writer.progress.gaps.withdraw(&identifier) => {
                if is_stored_live(harvest, prefix, &identifier).await? {
                    let datestamp_secs = harvest.now_secs();
                    let status = RecordStatus::Live;
                    writer
                        .push_tombstone(tombstone(IdentifierEntry { identifier, datestamp_secs, status }))
                        .await?;
                }
                failures = 0;
            }
            Ok(_) => failures = 0,
            Err(Interruption::Source(failure)) => {
                tracing::info!(
                    repo = harvest.id,
                    record = identifier,
                    details = failure.details_for_operators(),
                    "a missing record cannot be fetched"
                );
                failures += 1;
                if failures >= REFETCH_FAILURES_MAX {
                    break;
                }
            }
            Err(store) => return Err(store),
        }
        writer.commit_if_due().await?;
    }
    close_gaps(&mut writer).await?;
    Ok(writer.counts)
}

/// Ends a harvest for the known gaps without requests for the missing records.
pub(crate) async fn end_gaps(harvest: &Harvester, prefix: &str) -> Result<(), Interruption> {
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    if writer.progress.gaps.is_empty() { Ok(()) } else { close_gaps(&mut writer).await }
}

async fn close_gaps(writer: &mut CollectionWriter<'_>) -> Result<(), Interruption> {
    // Without a known start, no gap is closed because it was not listed.
    let from_secs = writer.progress.start.map_or(Some(UnixSecs::MAX), |start| start.from_secs);
    writer.progress.gaps.end_harvest(from_secs);
    writer.commit().await
}

async fn is_stored_live(harvest: &Harvester, prefix: &str, identifier: &str) -> Result<bool, MirrorError> {
    let formats = harvest.store.formats_of_item(harvest.repository(), Identifier(identifier)).await?;
    Ok(formats.iter().any(|(format, status)| format == prefix && *status == RecordStatus::Live))
}
