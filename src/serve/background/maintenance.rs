//! The background tasks of the cache, of the activity of repositories, of the quarantine and of the stores.

use crate::serve::oai::cache::Cache;
use crate::serve::served::ServedRepositories;
use async_trait::async_trait;
use oaimend_base::clock;
use oaimend_store::{
    ActivityLog, Databases, Quarantine, QuarantineError, QuarantineSelection, QuarantineState, RepositoryId,
};
use oaimend_upstream::settings::Limits;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Interval between removals of useless pages.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Builds the index of cached pages at start, and removes useless pages and those of removed repositories.
pub(crate) struct CacheMaintenance {
    pub(crate) cache: Cache,
    pub(crate) served: Arc<ServedRepositories>,
}

#[async_trait]
impl BackgroundService for CacheMaintenance {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let (cache, served) = (self.cache.clone(), Arc::clone(&self.served));
        let mut work = tokio::task::spawn_blocking(move || {
            cache.scan();
            let repositories = served.repositories.all();
            cache.purge_others(|id| repositories.contains_key(id));
        });
        loop {
            // The work is short and is not interrupted.
            if let Err(error) = work.await {
                tracing::error!(%error, "the maintenance of the cache has stopped; expired pages stay on disk");
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
            let cache = self.cache.clone();
            work = tokio::task::spawn_blocking(move || cache.sweep());
        }
    }
}

/// Interval between saves of the activity. A process that is killed loses the activity of this time.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// Saves the activity of repositories.
pub(crate) struct ActivityMaintenance(pub(crate) ActivityLog);

#[async_trait]
impl BackgroundService for ActivityMaintenance {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SAVE_INTERVAL) => {}
                // The server saves the rest after the last request.
                _ = shutdown.changed() => return,
            }
            let activity = self.0.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || activity.save_changed()).await {
                tracing::error!(%error, "the activity of repositories is not saved any more");
                return;
            }
        }
    }
}

/// Interval between attempts to use a store again after an error of the disk.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// Makes stores usable again after an error of the disk, also if no request needs them.
pub(crate) struct StoreRecovery(pub(crate) Databases);

#[async_trait]
impl BackgroundService for StoreRecovery {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(RECOVERY_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
            if self.0.unusable().is_empty() {
                continue;
            }
            let databases = self.0.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || databases.recover()).await {
                tracing::error!(%error, "stores that failed are not tried again any more; restart oaimend");
                return;
            }
        }
    }
}

/// Interval between removals of expired entries of the quarantine.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(3_600);

/// Removes expired entries of the quarantine, at start and at each interval.
pub(crate) struct QuarantineMaintenance(pub(crate) Arc<ServedRepositories>);

#[async_trait]
impl BackgroundService for QuarantineMaintenance {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let served = &self.0;
        let limits = |id: &str| match served.repositories.find(id) {
            Some(mapping) => mapping.source.limits.clone(),
            None => served.repositories.limits(),
        };
        loop {
            match expire_entries(served.store.quarantine.as_ref(), limits, served.clock.now()).await {
                Ok(0) | Err(QuarantineError::Closed) => {}
                Ok(removed) => tracing::info!(removed, "expired records left the quarantine"),
                Err(error) => {
                    tracing::warn!(%error, "expired records stay in the quarantine until the next attempt");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(EXPIRY_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
        }
    }
}

/// Removes the entries of all repositories that are older at `now` than their limits. Returns how many there were.
async fn expire_entries(
    quarantine: &dyn Quarantine,
    limits: impl Fn(&str) -> Limits,
    now: SystemTime,
) -> Result<u64, QuarantineError> {
    let mut removed = 0;
    for (repository, sizes) in quarantine.sizes().await? {
        let limits = limits(&repository);
        for (state, days_max, size) in [
            (QuarantineState::Resolved, limits.quarantine_resolved_days_max, sizes.resolved),
            (QuarantineState::Open, limits.quarantine_open_days_max, sizes.open),
        ] {
            let oldest = now.checked_sub(Duration::from_secs(days_max * 86_400));
            let (Some(oldest), true) = (oldest, days_max > 0 && size.records > 0) else { continue };
            let (state, before) = (Some(state), Some(clock::utc_datetime(oldest)));
            removed += quarantine
                .remove(RepositoryId(&repository), QuarantineSelection::Matching { state, before })
                .await?;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::{QuarantineBatch, QuarantineQuery, QuarantinedRecord, WholeRecords};

    /// A quarantine with the open entries `oai:x:1` and `oai:x:2` of day 0. The second one is resolved on day 10.
    async fn quarantine(data: &std::path::Path) -> Arc<dyn Quarantine> {
        let quarantine = oaimend_store_local::open(data).expect("it can be written to").quarantine;
        let record = |identifier: &str| QuarantinedRecord {
            identifier: Some(identifier.to_owned()),
            why: "mismatched-tags",
            offset: 0,
            raw: b"<record".to_vec(),
        };
        let batch = QuarantineBatch {
            repository: "x".to_owned(),
            request: "verb=ListRecords&metadataPrefix=oai_dc".to_owned(),
            metadata_prefix: None,
            received_at: clock::utc_datetime(day(0)),
            bytes_max: 1 << 20,
            records: vec![record("oai:x:1"), record("oai:x:2")],
        };
        quarantine.put(batch).await.expect("it fits");
        let whole = WholeRecords {
            repository: "x".to_owned(),
            headers_only: false,
            metadata_prefix: None,
            identifiers: vec!["oai:x:2".to_owned()],
            received_at: clock::utc_datetime(day(10)),
        };
        assert_eq!(quarantine.resolve(whole).await.expect("it can be written to"), 1);
        quarantine
    }

    fn day(number: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs((20_000 + number) * 86_400)
    }

    async fn left(quarantine: &dyn Quarantine) -> Vec<String> {
        let listed = quarantine.list(RepositoryId("x"), QuarantineQuery::default()).await.expect("readable");
        let mut left: Vec<String> = listed.into_iter().filter_map(|(_, entry)| entry.identifier).collect();
        left.sort();
        left
    }

    #[tokio::test]
    async fn resolved_entries_expire_and_open_ones_only_with_a_limit() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let quarantine = quarantine(data.path()).await;
        let defaults = |_: &str| Limits::default();
        let expire = async |limits: &dyn Fn(&str) -> Limits, at| {
            expire_entries(quarantine.as_ref(), limits, at).await.expect("it can be written to")
        };
        assert_eq!(expire(&defaults, day(40)).await, 0, "30 days are not over");
        let never = |_: &str| Limits { quarantine_resolved_days_max: 0, ..Limits::default() };
        assert_eq!(expire(&never, day(400)).await, 0);
        assert_eq!(left(quarantine.as_ref()).await, ["oai:x:1", "oai:x:2"]);
        assert_eq!(expire(&defaults, day(41)).await, 1);
        assert_eq!(left(quarantine.as_ref()).await, ["oai:x:1"]);
        assert_eq!(expire(&defaults, day(4_000)).await, 0, "open entries have no limit");
        let week = |_: &str| Limits { quarantine_open_days_max: 7, ..Limits::default() };
        assert_eq!(expire(&week, day(7)).await, 0, "7 days are not over");
        assert_eq!(expire(&week, day(8)).await, 1);
        assert!(left(quarantine.as_ref()).await.is_empty());
    }
}
