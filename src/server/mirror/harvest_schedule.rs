//! Harvests the mirrored repositories at their times.

use crate::clock;
use crate::config::Mapping;
use crate::mirror::harvest::{HarvestError, HarvestSummary};
use crate::schedule::{History, next_due};
use crate::server::context::ServerContext;
use crate::server::mirror::views::harvest;
use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Harvests each mirrored repository at its times.
pub(crate) struct HarvestSchedule(pub(crate) Arc<ServerContext>);

/// Time between two looks at the schedule.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

#[async_trait]
impl BackgroundService for HarvestSchedule {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut histories: HashMap<String, History> = HashMap::new();
        let mut running: JoinSet<(String, i64, bool)> = JoinSet::new();
        let mut running_ids: Vec<String> = Vec::new();
        loop {
            let harvests_max = self.0.mirror_policy().harvests_max;
            for mapping in self.due(&mut histories, &running_ids).await {
                if running.len() >= harvests_max {
                    break;
                }
                running_ids.push(mapping.id.clone());
                let context = Arc::clone(&self.0);
                let started_secs = now_secs(&context);
                running.spawn(async move {
                    let result = harvest(&context, &mapping).await;
                    (mapping.id.clone(), started_secs, note(&mapping.id, &result))
                });
            }
            tokio::select! {
                () = self.0.clock.deadline(LOOK_INTERVAL) => {}
                Some(ended) = running.join_next() => {
                    // A harvest that panics is not recorded, and its repository is not harvested again.
                    let Ok((id, started_secs, is_complete)) = ended else { continue };
                    running_ids.retain(|running| *running != id);
                    let history = histories.entry(id).or_default();
                    match is_complete {
                        true => history.record_harvest(started_secs),
                        false => history.record_failure(now_secs(&self.0)),
                    }
                }
                _ = shutdown.changed() => return,
            }
        }
    }
}

impl HarvestSchedule {
    /// The repositories whose harvest is due and is not running.
    async fn due(&self, histories: &mut HashMap<String, History>, running: &[String]) -> Vec<Arc<Mapping>> {
        let now_secs = now_secs(&self.0);
        let mut due = Vec::new();
        for mapping in self.0.repositories.all().values() {
            let Some(settings) = mapping.mirror.as_ref().filter(|_| !running.contains(&mapping.id)) else {
                continue;
            };
            if !histories.contains_key(&mapping.id) {
                histories.insert(mapping.id.clone(), self.stored_history(&mapping.id).await);
            }
            let history = histories.get(&mapping.id).copied().unwrap_or_default();
            if next_due(&history, settings.interval.as_secs_f64(), now_secs).at_secs <= now_secs {
                due.push(Arc::clone(mapping));
            }
        }
        due
    }

    /// The last harvest according to the store: the oldest state of its formats.
    async fn stored_history(&self, id: &str) -> History {
        let store = &self.0.store.mirror;
        let mut harvested_at_secs = None;
        for collection in store.collections(id).await.unwrap_or_default() {
            match store.progress(id, &collection.prefix).await {
                Ok(progress) if progress.last_complete.is_some() && progress.open_list.is_none() => {
                    let last = progress.last_complete.map(|last| last.from_secs);
                    harvested_at_secs =
                        harvested_at_secs.map_or(last, |oldest: i64| last.map(|last| last.min(oldest)));
                }
                _ => return History::default(),
            }
        }
        History { harvested_at_secs, ..History::default() }
    }
}

/// Logs the result of a harvest. Returns whether it was complete.
fn note(id: &str, result: &Result<HarvestSummary, HarvestError>) -> bool {
    match result {
        Ok(summary) => {
            let failure = summary.incomplete.first().map(|(prefix, error)| format!("{prefix}: {error}"));
            tracing::info!(
                repo = id,
                stored = summary.counts.stored,
                deleted = summary.counts.deleted,
                missing = summary.missing,
                complete = summary.is_complete(),
                details = failure,
                "harvest of the mirror"
            );
            summary.is_complete()
        }
        Err(error) => {
            tracing::warn!(repo = id, details = %error, "a harvest of the mirror failed");
            false
        }
    }
}

fn now_secs(context: &ServerContext) -> i64 {
    i64::try_from(clock::secs(context.clock.now())).unwrap_or(i64::MAX)
}
