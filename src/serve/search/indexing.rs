//! Follows the mirror: what it commits is indexed within seconds.

use super::SearchService;
use crate::serve::oai::mirror_views::view_stores;
use crate::serve::served::ServedRepositories;
use async_trait::async_trait;
use oaimend_base::clock;
use oaimend_oai::UnixSecs;
use oaimend_search::IndexError;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::sync::Arc;
use std::time::Duration;

/// Indexes the changes of the mirror at the interval of the configuration.
pub(crate) struct SearchIndexing {
    pub(crate) served: Arc<ServedRepositories>,
    pub(crate) search: Arc<SearchService>,
}

/// Interval between two messages about a long build.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);
/// The first wait after a failure. It doubles with each further one.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

#[async_trait]
impl BackgroundService for SearchIndexing {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut failures = 0;
        loop {
            let wait = tokio::select! {
                wait = self.run_once(&mut failures) => wait,
                _ = shutdown.changed() => None,
            };
            let Some(wait) = wait else { return self.search.begin_closing() };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = shutdown.changed() => return self.search.begin_closing(),
            }
        }
    }
}

/// A responseDate: all commits with stamps up to it are in the mirror. `None` if the mirror cannot be read.
pub(crate) async fn settled_secs(served: &ServedRepositories) -> Option<UnixSecs> {
    let stores = view_stores(served).await.ok()?;
    let times = stores.stamps.begin_list(served.clock.now_secs()).await.ok()?;
    Some(times.response_date_secs)
}

/// The wait after this number of failures; `None` without one.
fn backoff(failures: u32) -> Option<Duration> {
    let doublings = failures.checked_sub(1)?;
    Some(BACKOFF_FIRST.saturating_mul(1 << doublings.min(16)).min(BACKOFF_MAX))
}

impl SearchIndexing {
    /// Indexes what has changed. Returns the wait before the next time, or `None` if the index is closed. `failures`
    /// counts the failures in a row.
    pub(super) async fn run_once(&self, failures: &mut u32) -> Option<Duration> {
        if self.is_needed() {
            match self.follow().await {
                Ok(()) => *failures = 0,
                Err(IndexError::Closed) => return None,
                Err(error) => {
                    *failures += 1;
                    tracing::warn!(%error, "the search index is not up to date; it is tried again");
                }
            }
        }
        Some(backoff(*failures).unwrap_or(self.search.policy.commit_interval))
    }

    /// Whether there are records to index, or an index from which records may have to be removed.
    fn is_needed(&self) -> bool {
        self.served.has_mirrored() || self.search.exists()
    }

    /// Indexes what has changed, with messages if that takes long.
    async fn follow(&self) -> Result<(), IndexError> {
        let mirror = &self.served.store.mirror;
        let began = clock::uptime();
        let settled_secs = settled_secs(&self.served).await;
        self.search.set_formats(&self.served.repositories);
        let mut work = std::pin::pin!(self.search.follow(mirror, settled_secs));
        let mut is_long = false;
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                () = tokio::time::sleep(PROGRESS_INTERVAL) => {
                    is_long = true;
                    if let Ok(status) = self.search.status(&**mirror).await {
                        tracing::info!(
                            records = status.records,
                            changes_behind = status.behind,
                            "the search index is being built"
                        );
                    }
                }
            }
        };
        if is_long && result.is_ok() {
            let secs = clock::uptime().saturating_sub(began).as_secs();
            tracing::info!(secs, "the search index is up to date");
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let secs = |failures| backoff(failures).map(|wait| wait.as_secs());
        assert_eq!([0, 1, 2, 3, 7, 1_000].map(secs), [None, Some(1), Some(2), Some(4), Some(64), Some(300)]);
    }
}
