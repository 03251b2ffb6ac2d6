//! Keeps the table of identifiers near the last commit, so that requests after a long harvest need not wait.

use crate::serve::served::ServedRepositories;
use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::sync::Arc;
use std::time::Duration;

/// Follows the mirror in the background, once the resolver was used.
pub(crate) struct ResolverFollowing(pub(crate) Arc<ServedRepositories>);

/// Interval between two looks for new commits.
const INTERVAL: Duration = Duration::from_secs(10);

#[async_trait]
impl BackgroundService for ResolverFollowing {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut reported = None;
        loop {
            let has_more = tokio::select! {
                has_more = self.follow_once(&mut reported) => has_more,
                _ = shutdown.changed() => return,
            };
            if has_more {
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
        }
    }
}

impl ResolverFollowing {
    /// Follows some commits. Returns whether there are more. A failure is logged once.
    async fn follow_once(&self, reported: &mut Option<String>) -> bool {
        let Self(served) = self;
        let sources = served.resolver.sources(&served.repositories);
        match served.resolver.resolver.follow_if_used(&sources).await {
            Ok(has_more) => {
                *reported = None;
                has_more
            }
            Err(failure) => {
                if reported.as_ref() != Some(&failure.details) {
                    tracing::warn!(%failure.details, "the identifiers do not follow the mirror");
                    *reported = Some(failure.details);
                }
                false
            }
        }
    }
}
