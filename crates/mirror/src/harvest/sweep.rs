//! Finds records that have vanished from a source that does not keep deleted records, and fetches missing ones.
//!
//! All identifiers of the source are compared with those of the store. Broken sources lose half of their list
//! at times, so a large number of vanished records waits for a confirmation.

use crate::harvest::collection_writer::CollectionWriter;
use crate::harvest::compare::{Comparison, compare};
use crate::harvest::entry_sort::SortedEntries;
use crate::harvest::page::{Harvester, Interruption, ReceivedPage};
use crate::harvest::settings::{DeletionLimits, HarvestSettings};
use oaimend_oai::datestamp::{self, Granularity};
use oaimend_oai::{ErrorCode, Request};
use oaimend_store::{
    Committed, IdentifierEntry, NewRecord, Prefix, RecordRepairs, RecordStatus, Sweep, content_hash,
};

/// The result of a comparison.
#[derive(Default)]
pub(crate) struct SweepResult {
    pub(crate) counts: Committed,
    /// Deletions that wait for a confirmation.
    pub(crate) held: u64,
    /// Vanished records of which the source does not say whether they exist.
    pub(crate) unconfirmed: u64,
}

/// Failures in a row after which the next harvest or comparison continues to request single records.
pub(crate) const REFETCH_FAILURES_MAX: u32 = 10;
/// The time from one comparison to the next: a day. It lists all identifiers of the source, so it costs much more
/// than an incremental harvest.
pub const SWEEP_INTERVAL_SECS: i64 = 86_400;

/// Compares the identifiers of a format with those of the source, unless that happened shortly before. `has_listed_all`:
/// this harvest has listed all records, so that none of them has vanished.
pub(crate) async fn sweep_if_due(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    has_listed_all: bool,
) -> Result<SweepResult, Interruption> {
    let now_secs = harvest.now_secs();
    let last = harvest.store.progress(harvest.repository(), Prefix(prefix)).await?.sweep;
    // A sweep in the future was before a step of our clock.
    let is_recent = last.is_some_and(|last| (0..SWEEP_INTERVAL_SECS).contains(&now_secs.since(last.at_secs)));
    if is_recent && !settings.accepts_deletions {
        let Sweep { held, unconfirmed, .. } = last.unwrap_or_default();
        return Ok(SweepResult { held, unconfirmed, ..SweepResult::default() });
    }
    let mut result = if has_listed_all && last.is_none() {
        SweepResult::default()
    } else {
        sweep(harvest, settings, prefix).await?
    };
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    writer.progress.sweep =
        Some(Sweep { at_secs: now_secs, held: result.held, unconfirmed: result.unconfirmed });
    writer.commit().await?;
    result.counts.add(writer.counts);
    Ok(result)
}

/// Deletes the records of a format that the source does not list any more, and fetches those that are missing.
async fn sweep(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
) -> Result<SweepResult, Interruption> {
    let (comparison, mut entries) = compare(harvest, settings, prefix).await?;
    let Comparison { stored, missing, changed, vanished, is_conclusive, .. } = comparison;
    let mut counts =
        refetch(harvest, settings, prefix, missing.identifiers.iter().chain(&changed.identifiers)).await?;
    let found = vanished.count;
    if !is_conclusive && found > 0 {
        tracing::warn!(
            repo = harvest.id,
            prefix,
            records = found,
            "records are missing in a list whose last token fails or whose headers cannot all be read; none of them is deleted"
        );
        return Ok(SweepResult { counts, ..SweepResult::default() });
    }
    if !settings.accepts_deletions && !is_within(found, stored, settings.deletions) {
        tracing::warn!(
            repo = harvest.id,
            prefix,
            records = found,
            of = stored,
            "many records have vanished from the source; oaimend mirror sync --accept-deletions deletes them"
        );
        return Ok(SweepResult { counts, held: found, unconfirmed: 0 });
    }
    if !settings.accepts_deletions {
        // Pages of a list move while records change, so a record can be missing in a list by accident.
        let (confirmed, unconfirmed) = confirm_deletions(harvest, settings, prefix, entries).await?;
        counts.add(confirmed);
        return Ok(SweepResult { counts, held: 0, unconfirmed });
    }
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    while let Some(entry) = entries.next_entry()? {
        writer.push_tombstone(tombstone(entry)).await?;
        writer.commit_if_due().await?;
    }
    writer.flush().await?;
    counts.add(writer.counts);
    Ok(SweepResult { counts, ..SweepResult::default() })
}

/// Asks for each vanished record alone: deletes it, or stores what the source returns. Records for which the source
/// fails stay as they are; the second value is their number.
async fn confirm_deletions(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    mut vanished: SortedEntries,
) -> Result<(Committed, u64), Interruption> {
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    let (mut unconfirmed, mut failures) = (0, 0);
    // A read takes at most some KiB, and most entries need none.
    while let Some(entry) = vanished.next_entry()? {
        if failures >= REFETCH_FAILURES_MAX {
            unconfirmed += 1;
            continue;
        }
        harvest.pause(settings.request_gap).await;
        let request = Request::get_record(&entry.identifier, prefix);
        let page = match writer.receive_page(request, (None, None)).await {
            Ok(page) => page,
            Err(Interruption::Source(failure)) => {
                tracing::info!(
                    repo = harvest.id,
                    record = entry.identifier,
                    details = failure.details_for_operators(),
                    "a record has vanished from the lists, and the request for it fails"
                );
                unconfirmed += 1;
                failures += 1;
                continue;
            }
            Err(store) => return Err(store),
        };
        failures = 0;
        if is_unknown(&page) {
            writer.push_tombstone(tombstone(entry)).await?;
        }
        writer.commit_if_due().await?;
    }
    writer.flush().await?;
    Ok((writer.counts, unconfirmed))
}

/// Whether the source says that it does not have the requested record.
pub(crate) fn is_unknown(page: &ReceivedPage) -> bool {
    matches!(page.summary.page.error, Some(ErrorCode::IdDoesNotExist | ErrorCode::CannotDisseminateFormat))
}

/// Whether so many vanished records of so many live ones are deleted without confirmation.
pub(crate) fn is_within(found: u64, live: u64, limits: DeletionLimits) -> bool {
    found <= limits.records_min || found as f64 <= live as f64 * limits.share_max
}

/// Fetches records that the source lists and that the harvests have missed, such as after a half list or a restored
/// backup of the source.
async fn refetch(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    identifiers: impl Iterator<Item = &String>,
) -> Result<Committed, Interruption> {
    let mut writer = CollectionWriter::open(harvest, prefix).await?;
    let mut failures = 0;
    for identifier in identifiers {
        harvest.pause(settings.request_gap).await;
        let request = Request::get_record(identifier, prefix);
        let received = writer.receive_page(request, (None, None)).await;
        match received {
            Ok(page) => {
                if page.missing.count() > 0 {
                    writer.note_gap(identifier);
                }
                writer.commit_if_due().await?;
                failures = 0;
            }
            Err(Interruption::Source(_)) => {
                writer.note_gap(identifier);
                failures += 1;
                if failures > REFETCH_FAILURES_MAX {
                    break;
                }
            }
            Err(store) => return Err(store),
        }
    }
    writer.flush().await?;
    Ok(writer.counts)
}

/// The tombstone of a record.
pub(crate) fn tombstone(entry: IdentifierEntry) -> NewRecord {
    let identifier = quick_xml::escape::escape(&entry.identifier);
    let datestamp = datestamp::from_secs(entry.datestamp_secs, Granularity::Second);
    let (before, after) = (
        format!("<record><header status=\"deleted\"><identifier>{identifier}</identifier><datestamp>"),
        "</datestamp></header></record>",
    );
    NewRecord {
        content_hash: content_hash(RecordStatus::Deleted, &[], &[before.as_bytes(), after.as_bytes()]),
        datestamp_secs: entry.datestamp_secs,
        set_specs: Vec::new(),
        status: RecordStatus::Deleted,
        bytes: format!("{before}{datestamp}{after}").into(),
        identifier: entry.identifier,
        repairs: RecordRepairs::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_deletions_wait_for_confirmation() {
        let limits = DeletionLimits { share_max: 0.05, records_min: 10 };
        for (found, live, expected) in
            [(0, 0, true), (10, 10, true), (11, 100, false), (50, 1_000, true), (51, 1_000, false)]
        {
            assert_eq!(is_within(found, live, limits), expected, "{found} of {live}");
        }
    }
}
