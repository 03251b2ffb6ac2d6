//! The background task of the cache.

use crate::proxy::cache::Cache;
use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::time::Duration;

/// Interval between removals of useless pages.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Builds the index of cached pages at start, and removes useless pages.
pub(super) struct CacheMaintenance(pub(super) Cache);

#[async_trait]
impl BackgroundService for CacheMaintenance {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let cache = self.0.clone();
        let mut work = tokio::task::spawn_blocking(move || cache.scan());
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
            let cache = self.0.clone();
            work = tokio::task::spawn_blocking(move || cache.sweep());
        }
    }
}
