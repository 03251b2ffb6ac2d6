//! The background tasks of the cache and of the activity of repositories.

use crate::proxy::cache::Cache;
use crate::server::context::ServerContext;
use crate::store::ActivityLog;
use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::sync::Arc;
use std::time::Duration;

/// Interval between removals of useless pages.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Builds the index of cached pages at start, and removes useless pages and those of removed repositories.
pub(super) struct CacheMaintenance {
    pub(super) cache: Cache,
    pub(super) shared: Arc<ServerContext>,
}

#[async_trait]
impl BackgroundService for CacheMaintenance {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let (cache, shared) = (self.cache.clone(), Arc::clone(&self.shared));
        let mut work = tokio::task::spawn_blocking(move || {
            cache.scan();
            let repositories = shared.repositories.all();
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
pub(super) struct ActivityMaintenance(pub(super) ActivityLog);

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
