//! Harvests the mirrored repositories at their times, and when an operator requests it.

use super::harvester::harvest;
use super::runs::EndedHarvest;
use super::state::MirrorState;
use crate::config::Mapping;
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;
use crate::serve::telemetry::labels::HarvestOutcome;
use async_trait::async_trait;
use futures::FutureExt as _;
use oaimend_mirror::harvest::{HarvestError, HarvestStatus, HarvestSummary, HarvestTurn};
use oaimend_mirror::{RepositoryFacts, intervals_secs};
use oaimend_oai::UnixSecs;
use oaimend_rules::schedule::{BACKOFF_FIRST_SECS, backoff_secs, next_due};
use oaimend_store::{MirrorError, Prefix, RepositoryId};
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Harvests each mirrored repository at its times.
pub(crate) struct HarvestSchedule {
    pub(crate) served: Arc<ServedRepositories>,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Whether it harvests only when an operator requests it.
    pub(crate) only_requested: bool,
}

/// Time between two looks at the schedule.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

#[async_trait]
impl BackgroundService for HarvestSchedule {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut known: HashMap<String, KnownRepository> = HashMap::new();
        let mut running: JoinSet<(String, Option<EndedHarvest>)> = JoinSet::new();
        // The repositories whose harvest runs, or waits for its turn.
        let mut begun: HashSet<String> = HashSet::new();
        let MirrorState { runs, turns, .. } = &self.served.mirror;
        loop {
            turns.set_running_max(self.served.mirror.policy().harvests_max);
            for mapping in self.due(&mut known).await {
                if runs.is_removed_now(mapping.id()) {
                    continue;
                }
                if begun.insert(mapping.id().to_owned()) {
                    let turn = turns.begin(mapping.id(), Arc::clone(&self.served.clock));
                    running.spawn(run(
                        Arc::clone(&self.served),
                        Arc::clone(&self.telemetry),
                        mapping.id().to_owned(),
                        turn,
                    ));
                } else if runs.is_requested(mapping.id()) {
                    turns.advance(mapping.id());
                }
            }
            tokio::select! {
                () = self.served.clock.deadline(LOOK_INTERVAL) => {}
                () = runs.requested.notified() => {}
                Some(ended) = running.join_next() => {
                    // A panic is a result too, and nothing aborts a harvest before the end of this loop.
                    let Ok((id, ended)) = ended else { continue };
                    begun.remove(&id);
                    if let Some((known, ended)) = known.get_mut(&id).zip(ended) {
                        known.end_harvest(&ended);
                    }
                }
                _ = shutdown.changed() => return,
            }
        }
    }
}

/// A repository, as far as its next harvest depends on it.
struct KnownRepository {
    facts: RepositoryFacts,
    /// Whether the facts have changed since they were read.
    is_outdated: bool,
    /// Whether the process ended during its last harvest.
    is_interrupted: bool,
    /// No harvest begins before this time. The store may be unable to record a failure.
    blocked_until_secs: UnixSecs,
    /// The harvests in a row that left items to fetch again.
    gap_harvests: u32,
    /// The time to fetch them again; `None` without such items.
    gaps_due_secs: Option<UnixSecs>,
}

impl KnownRepository {
    fn new(facts: RepositoryFacts, is_interrupted: bool) -> Self {
        Self {
            facts,
            is_outdated: false,
            is_interrupted,
            blocked_until_secs: UnixSecs::MIN,
            gap_harvests: 0,
            gaps_due_secs: None,
        }
    }

    fn end_harvest(&mut self, ended: &EndedHarvest) {
        (self.is_outdated, self.is_interrupted) = (true, false);
        if !ended.is_complete {
            self.blocked_until_secs = ended.ended_secs.plus(BACKOFF_FIRST_SECS);
        }
        // The missing items are fetched again like a failed harvest: soon, and less and less often.
        self.gap_harvests = if ended.has_open_gaps { self.gap_harvests.saturating_add(1) } else { 0 };
        self.gaps_due_secs =
            ended.has_open_gaps.then(|| ended.ended_secs.plus(backoff_secs(self.gap_harvests)));
    }

    /// The time of its next harvest, in seconds since 1970. A failed harvest is repeated at the times of probes: each
    /// harvest begins with Identify, and ends if the source does not answer it.
    fn due_secs(&self, interval_secs: f64, now_secs: UnixSecs) -> UnixSecs {
        let history = &self.facts.history;
        let due_secs = if self.is_interrupted && history.failures == 0 {
            now_secs
        } else {
            next_due(history, interval_secs, now_secs).at_secs
        };
        let due_secs = self.gaps_due_secs.map_or(due_secs, |gaps_due_secs| due_secs.min(gaps_due_secs));
        // A clock that was set back does not block longer than the first wait.
        due_secs.max(self.blocked_until_secs.min(now_secs.plus(BACKOFF_FIRST_SECS)))
    }
}

impl HarvestSchedule {
    /// The repositories whose harvest is due or requested: the requested ones first, then the longest overdue ones.
    /// Some of them may run.
    async fn due(&self, known: &mut HashMap<String, KnownRepository>) -> Vec<Arc<Mapping>> {
        let (now_secs, policy) = (self.served.clock.now_secs(), self.served.mirror.policy());
        let runs = &self.served.mirror.runs;
        let (mut mappings, mut loads) = (Vec::new(), Vec::new());
        for mapping in self.served.repositories.all().values() {
            let Some(settings) = mapping.harvest() else { continue };
            if self.only_requested && !runs.is_requested(mapping.id()) {
                continue;
            }
            if runs.take_removed(mapping.id()) {
                known.remove(mapping.id());
            }
            if let Err(error) = self.read_facts(known, mapping.id()).await {
                tracing::warn!(repo = mapping.id(), details = %error, "the mirror cannot be read");
                continue;
            }
            if let Some(known) = known.get(mapping.id()) {
                loads.push(known.facts.load(settings, policy.intervals));
                mappings.push(Arc::clone(mapping));
            }
        }
        let mut due = Vec::new();
        for (mapping, interval_secs) in mappings.into_iter().zip(intervals_secs(&loads, &policy)) {
            let Some(known) = known.get(mapping.id()) else { continue };
            let due_secs = known.due_secs(interval_secs, now_secs);
            runs.note_due(mapping.id(), due_secs);
            if runs.is_requested(mapping.id()) {
                due.push((UnixSecs::MIN, mapping));
            } else if due_secs <= now_secs {
                due.push((due_secs, mapping));
            }
        }
        due.sort_by_key(|(due_secs, _)| *due_secs);
        due.into_iter().map(|(_, mapping)| mapping).collect()
    }

    /// Reads the facts of a repository, unless they are known.
    async fn read_facts(
        &self,
        known: &mut HashMap<String, KnownRepository>,
        id: &str,
    ) -> Result<(), MirrorError> {
        if known.get(id).is_some_and(|known| !known.is_outdated) {
            return Ok(());
        }
        let facts = RepositoryFacts::read(&*self.served.store.mirror, id).await?;
        if let Some(known) = known.get_mut(id) {
            (known.facts, known.is_outdated) = (facts, false);
            return Ok(());
        }
        known.insert(id.to_owned(), KnownRepository::new(facts, self.has_open_list(id).await?));
        Ok(())
    }

    /// Whether the harvest of a format has begun and not ended.
    async fn has_open_list(&self, id: &str) -> Result<bool, MirrorError> {
        let store = &self.served.store.mirror;
        for collection in store.collections(RepositoryId(id)).await? {
            if store.progress(RepositoryId(id), Prefix(&collection.prefix)).await?.open_list.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Harvests a repository in its turn, and notes the result for operators. There is none if it is not mirrored any more, or
/// is being removed from the store.
async fn run(
    served: Arc<ServedRepositories>,
    telemetry: Arc<Telemetry>,
    id: String,
    turn: impl Future<Output = HarvestTurn> + Send,
) -> (String, Option<EndedHarvest>) {
    let turn = turn.await;
    let mapping = served.mirrored(&id);
    let began_secs = served.clock.now_secs();
    let begun = mapping.and_then(|mapping| Some((mapping, served.mirror.runs.begin(&id, began_secs)?)));
    let Some((mapping, (mark, request))) = begun else { return (id, None) };
    let observe = |status: &HarvestStatus| mark.observe(status);
    let harvest = AssertUnwindSafe(harvest(&served, &mapping, (request, turn), &observe)).catch_unwind();
    let panicked = |_| Err(MirrorError::Stopped("the harvest has panicked".to_owned()).into());
    let result = harvest.await.unwrap_or_else(panicked);
    log(mapping.id(), &result);
    telemetry.harvested(mapping.id(), outcome(&result));
    let summary = result.as_ref().ok();
    let is_complete = summary.is_some_and(HarvestSummary::is_complete);
    let ended = EndedHarvest {
        began_secs,
        ended_secs: served.clock.now_secs(),
        is_complete,
        has_open_gaps: !is_complete && summary.is_some_and(HarvestSummary::has_whole_lists),
        is_success: summary.is_some_and(HarvestSummary::is_success),
        line: match &result {
            Ok(summary) => summary.describe(),
            Err(error) => format!("failed: {error}"),
        },
    };
    mark.end(ended.clone());
    (id, Some(ended))
}

/// How a harvest ended.
fn outcome(result: &Result<HarvestSummary, HarvestError>) -> HarvestOutcome {
    match result {
        Ok(summary) if summary.is_success() => HarvestOutcome::Complete,
        Ok(summary) if summary.has_whole_lists() && !summary.held_deletions.is_empty() => {
            HarvestOutcome::Held
        }
        Ok(summary) if summary.has_whole_lists() => HarvestOutcome::Missing,
        Ok(_) => HarvestOutcome::Incomplete,
        Err(_) => HarvestOutcome::Failed,
    }
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
                surplus_sets = summary.counts.surplus_sets,
                duplicates = summary.duplicates.duplicates,
                repetitions = summary.duplicates.repetitions,
                unrepairable = summary.unrepairable,
                complete = summary.is_complete(),
                details = failure,
                "harvest of the mirror"
            );
        }
        Err(error) => tracing::warn!(repo = id, details = %error, "a harvest of the mirror failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_rules::schedule::History;

    const COMPLETE: History =
        History { harvested_at_secs: Some(UnixSecs(1_000)), failed_at_secs: None, failures: 0 };

    fn known(history: History) -> KnownRepository {
        KnownRepository::new(RepositoryFacts { history, ..RepositoryFacts::default() }, false)
    }

    fn ended(ended_secs: UnixSecs, is_complete: bool, has_open_gaps: bool) -> EndedHarvest {
        let (began_secs, is_success, line) = (ended_secs, is_complete, String::new());
        EndedHarvest { began_secs, ended_secs, is_complete, has_open_gaps, line, is_success }
    }

    #[test]
    fn harvest_follows_its_interval_and_failures_are_repeated_later_and_later() {
        assert_eq!(known(History::default()).due_secs(7_200.0, UnixSecs(2_000)), UnixSecs(2_000));
        assert_eq!(known(COMPLETE).due_secs(7_200.0, UnixSecs(2_000)), UnixSecs(8_200));
        for (failures, wait_secs) in [(1, 60), (4, 480), (20, 86_400)] {
            let failing = History { failed_at_secs: Some(UnixSecs(9_000)), failures, ..COMPLETE };
            assert_eq!(
                known(failing).due_secs(7_200.0, UnixSecs(9_001)),
                UnixSecs(9_000 + wait_secs),
                "{failures}"
            );
        }
    }

    #[test]
    fn interrupted_harvest_continues_at_once_unless_its_source_fails() {
        let interrupted = KnownRepository { is_interrupted: true, ..known(COMPLETE) };
        assert_eq!(interrupted.due_secs(7_200.0, UnixSecs(2_000)), UnixSecs(2_000));
        let failing = History { failed_at_secs: Some(UnixSecs(1_990)), failures: 1, ..COMPLETE };
        let failing = KnownRepository { is_interrupted: true, ..known(failing) };
        assert_eq!(failing.due_secs(7_200.0, UnixSecs(2_000)), UnixSecs(2_050));
    }

    #[test]
    fn failure_that_the_store_does_not_record_delays_the_next_harvest() {
        let mut repository = known(History::default());
        repository.end_harvest(&ended(UnixSecs(2_000), false, false));
        assert_eq!(repository.due_secs(7_200.0, UnixSecs(2_001)), UnixSecs(2_060));
        assert_eq!(repository.due_secs(7_200.0, UnixSecs(2_060)), UnixSecs(2_060));
        assert_eq!(
            repository.due_secs(7_200.0, UnixSecs(-9_000)),
            UnixSecs(-8_940),
            "a clock that was set back"
        );
    }
    #[test]
    fn missing_items_are_fetched_again_soon_and_less_and_less_often() {
        let mut repository = known(COMPLETE);
        for wait_secs in [60, 120, 240] {
            repository.end_harvest(&ended(UnixSecs(2_000), false, true));
            assert_eq!(repository.due_secs(7_200.0, UnixSecs(2_000)), UnixSecs(2_000 + wait_secs));
        }
        for _ in 0..20 {
            repository.end_harvest(&ended(UnixSecs(2_000), false, true));
        }
        assert_eq!(
            repository.due_secs(7_200.0, UnixSecs(2_000)),
            UnixSecs(8_200),
            "never later than without a gap"
        );
        repository.end_harvest(&ended(UnixSecs(2_000), true, false));
        repository.end_harvest(&ended(UnixSecs(2_000), false, true));
        assert_eq!(repository.due_secs(7_200.0, UnixSecs(2_000)), UnixSecs(2_060));
    }
}
