//! Harvests the mirrored repositories at their times, and when an operator requests it.

use crate::clock;
use crate::config::Mapping;
use crate::mirror::harvest::{HarvestError, HarvestStatus, HarvestSummary};
use crate::schedule::{History, next_due};
use crate::server::context::ServerContext;
use crate::server::mirror::harvest_runs::{EndedHarvest, HarvestRequest, RunMark};
use crate::server::mirror::views::harvest;
use crate::store::MirrorError;
use async_trait::async_trait;
use futures::FutureExt as _;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
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
        let mut running: JoinSet<(String, EndedHarvest)> = JoinSet::new();
        let runs = &self.0.mirror.runs;
        loop {
            let harvests_max = self.0.mirror_policy().harvests_max;
            for mapping in self.due(&mut histories).await {
                if running.len() >= harvests_max {
                    break;
                }
                let Some((mark, request)) = runs.begin(&mapping.id, now_secs(&self.0)) else { continue };
                running.spawn(run(Arc::clone(&self.0), mapping, mark, request));
            }
            tokio::select! {
                () = self.0.clock.deadline(LOOK_INTERVAL) => {}
                () = runs.requested.notified() => {}
                Some(ended) = running.join_next() => {
                    // A panic is a result too, and nothing aborts a harvest before the end of this loop.
                    let Ok((id, ended)) = ended else { continue };
                    let history = histories.entry(id).or_default();
                    match ended.is_complete {
                        true => history.record_harvest(ended.began_secs),
                        false => history.record_failure(ended.ended_secs),
                    }
                }
                _ = shutdown.changed() => return,
            }
        }
    }
}

impl HarvestSchedule {
    /// The repositories whose harvest is due or requested, the requested ones first. Some of them may run.
    async fn due(&self, histories: &mut HashMap<String, History>) -> Vec<Arc<Mapping>> {
        let now_secs = now_secs(&self.0);
        let runs = &self.0.mirror.runs;
        let (mut requested, mut due) = (Vec::new(), Vec::new());
        for mapping in self.0.repositories.all().values() {
            let Some(settings) = &mapping.mirror else { continue };
            if !histories.contains_key(&mapping.id) {
                histories.insert(mapping.id.clone(), self.stored_history(&mapping.id).await);
            }
            let history = histories.get(&mapping.id).copied().unwrap_or_default();
            let at_secs = next_due(&history, settings.interval.as_secs_f64(), now_secs).at_secs;
            runs.note_due(&mapping.id, at_secs);
            if runs.is_requested(&mapping.id) {
                requested.push(Arc::clone(mapping));
            } else if at_secs <= now_secs {
                due.push(Arc::clone(mapping));
            }
        }
        requested.append(&mut due);
        requested
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

/// Harvests a repository, and notes the result for operators.
async fn run(
    context: Arc<ServerContext>,
    mapping: Arc<Mapping>,
    mark: RunMark,
    request: HarvestRequest,
) -> (String, EndedHarvest) {
    let began_secs = now_secs(&context);
    let observe = |status: &HarvestStatus| mark.observe(status);
    let harvest = AssertUnwindSafe(harvest(&context, &mapping, request, &observe)).catch_unwind();
    let panicked = |_| Err(MirrorError::Stopped("the harvest has panicked".to_owned()).into());
    let result = harvest.await.unwrap_or_else(panicked);
    log(&mapping.id, &result);
    let (line, is_complete, is_success) = match &result {
        Ok(summary) => (summary.describe(), summary.is_complete(), summary.is_success()),
        Err(error) => (format!("failed: {error}"), false, false),
    };
    let ended = EndedHarvest { began_secs, ended_secs: now_secs(&context), is_complete, is_success, line };
    mark.end(ended.clone());
    (mapping.id.clone(), ended)
}

/// Logs the result of a harvest.
fn log(id: &str, result: &Result<HarvestSummary, HarvestError>) {
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
        }
        Err(error) => tracing::warn!(repo = id, details = %error, "a harvest of the mirror failed"),
    }
}

fn now_secs(context: &ServerContext) -> i64 {
    i64::try_from(clock::secs(context.clock.now())).unwrap_or(i64::MAX)
}
