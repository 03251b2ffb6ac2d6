//! Fetches records again that were damaged on disk.

use crate::harvest::collection_writer::CollectionWriter;
use crate::harvest::page::{Harvester, Interruption};
use crate::harvest::settings::HarvestSettings;
use crate::harvest::sweep::{REFETCH_FAILURES_MAX, tombstone};
use oaimend_oai::{ErrorCode, Request};
use oaimend_store::{Committed, Identifier, IdentifierEntry, Prefix, RecordStatus};

/// Damaged records whose identifiers are in memory at a time.
const BATCH: usize = 1_000;

/// Fetches all damaged records of a format. A record that the source does not know any more is deleted.
///
/// # Errors
///
/// Some records are still damaged: the source fails at them. The next harvest continues.
pub(crate) async fn refetch_damaged(
    harvester: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
) -> Result<Committed, Interruption> {
    let mut writer = CollectionWriter::open(harvester, prefix).await?;
    let mut after = None::<String>;
    let (mut failures, mut last_failure) = (0, None);
    'batches: loop {
        let batch = harvester
            .store
            .damaged(harvester.repository(), Prefix(prefix), after.as_deref().map(Identifier), BATCH)
            .await?;
        let Some(last) = batch.last() else { break };
        after = Some(last.clone());
        for identifier in batch {
            harvester.pause(settings.request_gap).await;
            let request = Request::get_record(&identifier, prefix);
            match writer.receive_page(request, (None, None)).await {
                Ok(page) => {
                    failures = 0;
                    if let Some(ErrorCode::IdDoesNotExist | ErrorCode::CannotDisseminateFormat) =
                        page.summary.page.error
                    {
                        let (datestamp_secs, status) = (harvester.now_secs(), RecordStatus::Live);
                        writer
                            .push_tombstone(tombstone(IdentifierEntry { identifier, datestamp_secs, status }))
                            .await?;
                    }
                    writer.commit_if_due().await?;
                }
                Err(Interruption::Source(failure)) => {
                    last_failure = Some(failure);
                    failures += 1;
                    if failures > REFETCH_FAILURES_MAX {
                        break 'batches;
                    }
                }
                Err(store) => return Err(store),
            }
        }
    }
    writer.flush().await?;
    last_failure.map_or(Ok(writer.counts), |failure| Err(Interruption::Source(failure)))
}
