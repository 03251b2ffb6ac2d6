//! WebSub: tells the hub of `gateway.hub` which feeds have changed, so that it pushes them to their subscribers.
//!
//! The feeds of `/_recent.atom` come from the search index, so a change counts once it is indexed. Invariants: a feed is
//! named at most once for each change and at most once in [`PING_INTERVAL`], and a hub that fails delays nothing else.

use crate::notify::retry_wait;
use crate::serve::context::ServerContext;
use crate::serve::search::searched_repositories;
use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use oaimend_base::clock;
use oaimend_pages::search::{SearchAddress, SearchForm};
use oaimend_store::{MirrorError, Prefix, RepositoryId};
use oaimend_upstream::Endpoint;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use url::{Url, form_urlencoded};

/// Shortest time between two requests for one feed. Hubs fetch the feed after each one.
const PING_INTERVAL: Duration = Duration::from_secs(60);

/// Tells the hub of changed feeds until the server stops. Changes that wait then are lost.
pub(crate) struct HubService(pub(crate) Arc<ServerContext>);

/// The changes of each repository: its collections with their next sequences.
type Changes = BTreeMap<String, Vec<(u64, u64)>>;

/// What the hub does not know yet.
#[derive(Debug, Default)]
struct ChangedFeeds {
    /// The indexed changes; `None` before the first look.
    known: Option<Changes>,
    /// Later changes, with the time when they were read by the monotonic clock.
    unindexed: Option<(Duration, Changes)>,
    /// The repositories of the changed feeds; `None` for that of all repositories. At most one more than there are
    /// repositories.
    waiting: BTreeSet<Option<String>>,
    /// The number of attempts that failed since the last one that succeeded.
    failed: u32,
}

#[async_trait]
impl BackgroundService for HubService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        tokio::select! {
            () = self.run() => {}
            _ = shutdown.changed() => {}
        }
    }
}

impl HubService {
    async fn run(&self) {
        let Some(search) = &self.0.served.search_service else { return };
        let mut feeds = ChangedFeeds::default();
        loop {
            tokio::time::sleep(search.policy.commit_interval).await;
            let gateway = self.0.gateway.current();
            let hub = if gateway.policy.enabled { gateway.policy.hub.as_ref() } else { None };
            let Some(hub) = hub else {
                feeds = ChangedFeeds::default();
                continue;
            };
            if self.0.lifecycle.is_ending() {
                continue;
            }
            match self.changes().await {
                Ok(changes) => {
                    // All of them were in the mirror by now.
                    let read_at = clock::uptime();
                    feeds.note(changes, read_at, read_at.saturating_sub(search.lag()));
                }
                Err(error) => tracing::debug!(%error, "it is not known which feeds have changed"),
            }
            if let Some(wait) = self.ping(hub, &mut feeds).await {
                self.0.served.clock.pause(wait).await;
            }
        }
    }

    /// The changes in the mirror until now, of the repositories that have feeds.
    async fn changes(&self) -> Result<Changes, MirrorError> {
        let store = &self.0.served.store.mirror;
        let mut changes = Changes::new();
        for repository in searched_repositories(&self.0.served.repositories) {
            let mut sequences = Vec::new();
            for size in store.collections(RepositoryId(&repository)).await? {
                let version = store.version(RepositoryId(&repository), Prefix(&size.prefix)).await?;
                sequences.extend(version.map(|version| (version.collection, version.next_sequence)));
            }
            changes.insert(repository, sequences);
        }
        Ok(changes)
    }

    /// Names the feeds that wait to the hub, and returns how long to wait then; `None` if none waits.
    async fn ping(&self, hub: &Url, feeds: &mut ChangedFeeds) -> Option<Duration> {
        feeds.waiting.first()?;
        let endpoint = Endpoint::new(hub, None);
        while let Some(feed) = feeds.waiting.first() {
            let sent = match &endpoint {
                Ok(endpoint) => self.publish(endpoint, feed.as_deref()).await,
                Err(problem) => Err(problem.clone()),
            };
            let problem = match sent {
                Ok(status) if status.is_success() => None,
                // The hub knows best which feeds it accepts. The others do not wait for this one.
                Ok(status) if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                    let feed = feed.as_deref().unwrap_or("all repositories");
                    tracing::warn!(feed, %status, "the hub refuses a feed");
                    None
                }
                Ok(status) => Some(format!("status {status}")),
                Err(problem) => Some(problem),
            };
            let Some(problem) = problem else {
                feeds.waiting.pop_first();
                feeds.failed = 0;
                continue;
            };
            feeds.failed += 1;
            let wait = retry_wait(feeds.failed, self.0.served.clock.chance());
            if wait.is_none() {
                tracing::warn!(
                    problem,
                    feeds = feeds.waiting.len(),
                    "the hub does not accept changes; check gateway.hub"
                );
                feeds.waiting.clear();
                feeds.failed = 0;
            }
            return Some(wait.unwrap_or(PING_INTERVAL));
        }
        Some(PING_INTERVAL)
    }

    /// Names one feed to the hub, once.
    async fn publish(&self, hub: &Endpoint, repository: Option<&str>) -> Result<StatusCode, String> {
        let served = &self.0.served;
        let feed = SearchAddress::recent(repository).url(&served.public_url, SearchForm::Atom.ending());
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
        hub.post(headers, publish_form(&feed), &*served.clock).await
    }
}

/// The request to publish a feed. Hubs differ in the name of the argument with its URL.
fn publish_form(feed: &str) -> Vec<u8> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("hub.mode", "publish").append_pair("hub.topic", feed).append_pair("hub.url", feed);
    form.finish().into_bytes()
}

impl ChangedFeeds {
    /// Notes the changes that were read at a time, and those from which feeds have changed since: the index has all changes
    /// that were in the mirror at `indexed_at`.
    fn note(&mut self, changes: Changes, read_at: Duration, indexed_at: Duration) {
        let known = self.known.get_or_insert_with(|| changes.clone());
        if let Some((_, indexed)) = self.unindexed.take_if(|(read_at, _)| *read_at <= indexed_at) {
            for (repository, sequences) in &indexed {
                if known.get(repository) != Some(sequences) {
                    self.waiting.extend([None, Some(repository.clone())]);
                }
            }
            *known = indexed;
        }
        if self.unindexed.is_none() && changes != *known {
            self.unindexed = Some((read_at, changes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_change_when_changes_are_indexed() {
        let changes = |sequences: &[(&str, u64)]| -> Changes {
            sequences.iter().map(|(id, next)| ((*id).to_owned(), vec![(1, *next)])).collect()
        };
        let secs = Duration::from_secs;
        let mut feeds = ChangedFeeds::default();
        feeds.note(changes(&[("x", 7), ("y", 1)]), secs(1), secs(0));
        feeds.note(changes(&[("x", 7), ("y", 1)]), secs(2), secs(1));
        assert!(feeds.waiting.is_empty(), "what is known at the start is no change");
        feeds.note(changes(&[("x", 8), ("y", 1)]), secs(3), secs(2));
        // A later change does not delay the first one.
        feeds.note(changes(&[("x", 9), ("y", 1)]), secs(4), secs(2));
        assert!(feeds.waiting.is_empty(), "nothing is indexed yet");
        feeds.note(changes(&[("x", 9), ("y", 2)]), secs(5), secs(3));
        let waiting = |feeds: &mut ChangedFeeds| std::mem::take(&mut feeds.waiting);
        assert_eq!(waiting(&mut feeds), BTreeSet::from([None, Some("x".to_owned())]));
        feeds.note(changes(&[("x", 9), ("y", 2)]), secs(6), secs(5));
        assert_eq!(waiting(&mut feeds), BTreeSet::from([None, Some("x".to_owned()), Some("y".to_owned())]));
        feeds.note(changes(&[("x", 9), ("y", 2)]), secs(8), secs(7));
        assert!(waiting(&mut feeds).is_empty() && feeds.unindexed.is_none());
    }
}
