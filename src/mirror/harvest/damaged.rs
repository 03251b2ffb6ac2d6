//! Fetches records again that were damaged on disk.

use crate::mirror::harvest::page::{Harvester, Interruption};
use crate::mirror::harvest::settings::HarvestSettings;
use crate::mirror::harvest::sweep::confirm_deletions;
use crate::store::{Committed, IdentifierEntry, RecordStatus};

/// Damaged records that one harvest fetches again. The next harvest continues.
const RECORDS_MAX: usize = 1_000;

/// Fetches the damaged records of a format. A record that the source does not know any more is deleted.
pub(crate) async fn refetch_damaged(
    harvester: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
) -> Result<Committed, Interruption> {
    let damaged = harvester.store.damaged(&harvester.id, prefix, RECORDS_MAX).await?;
    if damaged.is_empty() {
        return Ok(Committed::default());
    }
    let datestamp_secs = harvester.now_secs();
    let entry = |identifier| IdentifierEntry { identifier, datestamp_secs, status: RecordStatus::Live };
    confirm_deletions(harvester, settings, prefix, damaged.into_iter().map(entry).collect()).await
}
