//! Fetches records again that were damaged on disk.

use crate::mirror::harvest::page::{Harvester, Interruption};
use crate::mirror::harvest::settings::HarvestSettings;
use crate::mirror::harvest::sweep::tombstone;
use crate::oai::{ErrorCode, Request};
use crate::store::{Committed, IdentifierEntry, RecordStatus};

/// Damaged records that one harvest fetches again. The next harvest continues.
const RECORDS_MAX: usize = 1_000;

/// Fetches the damaged records of a format. A record that the source does not know any more is deleted.
pub(crate) async fn refetch_damaged(
    harvester: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
) -> Result<Committed, Interruption> {
    let mut counts = Committed::default();
    let damaged = harvester.store.damaged(&harvester.id, prefix, RECORDS_MAX).await?;
    if damaged.is_empty() {
        return Ok(counts);
    }
    let mut progress = harvester.store.progress(&harvester.id, prefix).await?;
    for identifier in damaged {
        harvester.clock.pause(settings.request_gap).await;
        let request = Request::get_record(&identifier, prefix);
        let page = harvester.receive_page(request, prefix, (None, None), &mut progress, &mut counts).await?;
        let records = match page.account.error {
            Some(ErrorCode::IdDoesNotExist | ErrorCode::CannotDisseminateFormat) => {
                let datestamp_secs = harvester.now_secs();
                vec![tombstone(IdentifierEntry { identifier, datestamp_secs, status: RecordStatus::Deleted })]
            }
            _ => page.records,
        };
        harvester.commit(prefix, records, &mut progress, &mut counts).await?;
    }
    Ok(counts)
}
