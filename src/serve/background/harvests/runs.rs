//! The harvests of a running server: which repository is harvested now, and how its last harvest ended.
//!
//! The schedule and the admin listener share it. Invariant: at most one harvest of a repository runs at a time, and none
//! while the repository is removed from the store. A harvest that panics counts as ended.

use oaimend_mirror::harvest::HarvestStatus;
use oaimend_mirror::status::RepositoryStatus;
use oaimend_oai::UnixSecs;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The harvests of all repositories since the start of the server.
#[derive(Debug, Default)]
pub(crate) struct HarvestRuns {
    repositories: Mutex<HashMap<String, RepositoryRuns>>,
    /// Wakes the schedule when an operator requests a harvest.
    pub(super) requested: Notify,
}

/// The harvests of one repository since the start of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepositoryRuns {
    /// The harvest that an operator has requested, and that has not begun.
    pub(crate) waiting: Option<HarvestRequest>,
    /// The harvest that runs.
    pub(crate) running: Option<RunningHarvest>,
    /// The result of the last harvest.
    pub(crate) last: Option<EndedHarvest>,
    /// The number of harvests that have ended.
    pub(crate) ended: u64,
    /// The time of the next harvest, in seconds since 1970.
    pub(crate) next_due_secs: Option<UnixSecs>,
    /// Whether it is being removed from the store.
    is_removed_now: bool,
    /// Whether it was removed since the schedule has read its history.
    was_removed: bool,
}

/// The options of a harvest that an operator requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HarvestRequest {
    /// Delete all records that have vanished from the source, however many.
    pub(crate) accepts_deletions: bool,
}

/// A harvest that runs.
#[derive(Clone, Debug)]
pub(crate) struct RunningHarvest {
    /// Its begin, in seconds since 1970.
    pub(crate) began_secs: UnixSecs,
    /// The progress of its current list; `None` before its first page.
    pub(crate) status: Option<HarvestStatus>,
}

/// The result of a harvest, for operators.
#[derive(Clone, Debug)]
pub(crate) struct EndedHarvest {
    /// Its begin and its end, in seconds since 1970.
    pub(crate) began_secs: UnixSecs,
    pub(crate) ended_secs: UnixSecs,
    /// Whether every format was harvested completely.
    pub(crate) is_complete: bool,
    /// Whether all lists ended properly, and items of them are missing that the next harvest fetches.
    pub(crate) has_open_gaps: bool,
    /// The line about it, as `oaimend mirror sync` prints it.
    pub(crate) line: String,
    /// Whether `oaimend mirror sync` succeeds with it: it is complete, nothing is missing, and no deletion waits.
    pub(crate) is_success: bool,
}

/// The mark of a removal from the store. Harvests begin after it was dropped.
pub(crate) struct RemovalMark {
    runs: Arc<HarvestRuns>,
    id: String,
}

/// The mark of a running harvest. Dropping it ends the harvest.
pub(super) struct RunMark {
    runs: Arc<HarvestRuns>,
    id: String,
}

impl HarvestRuns {
    /// The harvests of a repository.
    pub(crate) fn of(&self, id: &str) -> RepositoryRuns {
        self.repositories().get(id).cloned().unwrap_or_default()
    }

    /// Requests a harvest. Returns false if one runs or waits already.
    pub(crate) fn request(&self, id: &str, request: HarvestRequest) -> bool {
        let mut repositories = self.repositories();
        let runs = repositories.entry(id.to_owned()).or_default();
        if runs.running.is_some() || runs.waiting.is_some() || runs.is_removed_now {
            return false;
        }
        runs.waiting = Some(request);
        self.requested.notify_one();
        true
    }

    /// Whether an operator waits for a harvest of the repository.
    pub(super) fn is_requested(&self, id: &str) -> bool {
        self.repositories().get(id).is_some_and(|runs| runs.waiting.is_some())
    }

    /// Whether the repository is being removed from the store, so that no harvest of it can begin.
    pub(super) fn is_removed_now(&self, id: &str) -> bool {
        self.repositories().get(id).is_some_and(|runs| runs.is_removed_now)
    }

    /// Notes the time of the next harvest.
    pub(super) fn note_due(&self, id: &str, at_secs: UnixSecs) {
        self.repositories().entry(id.to_owned()).or_default().next_due_secs = Some(at_secs);
    }

    /// Begins a harvest, and returns its mark and the options that an operator has set. `None` if one runs.
    pub(super) fn begin(self: &Arc<Self>, id: &str, now_secs: UnixSecs) -> Option<(RunMark, HarvestRequest)> {
        let mut repositories = self.repositories();
        let runs = repositories.entry(id.to_owned()).or_default();
        if runs.running.is_some() || runs.is_removed_now {
            return None;
        }
        runs.running = Some(RunningHarvest { began_secs: now_secs, status: None });
        let request = runs.waiting.take().unwrap_or_default();
        Some((RunMark { runs: Arc::clone(self), id: id.to_owned() }, request))
    }

    /// Begins to remove a repository from the store. `None` if a harvest of it runs or waits, or it is being removed.
    pub(crate) fn begin_removal(self: &Arc<Self>, id: &str) -> Option<RemovalMark> {
        let mut repositories = self.repositories();
        let runs = repositories.entry(id.to_owned()).or_default();
        if runs.running.is_some() || runs.waiting.is_some() || runs.is_removed_now {
            return None;
        }
        runs.is_removed_now = true;
        Some(RemovalMark { runs: Arc::clone(self), id: id.to_owned() })
    }

    /// Whether the repository was removed since the last call.
    pub(super) fn take_removed(&self, id: &str) -> bool {
        self.repositories().get_mut(id).is_some_and(|runs| std::mem::take(&mut runs.was_removed))
    }

    fn repositories(&self) -> MutexGuard<'_, HashMap<String, RepositoryRuns>> {
        self.repositories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a mirrored repository in one word.
pub(crate) fn state_of(status: &RepositoryStatus, runs: &RepositoryRuns) -> &'static str {
    let is_whole =
        status.formats.iter().all(|format| format.complete_until.is_some() && !format.harvest_open);
    let has_failed = status.last_harvest.as_ref().is_some_and(|last| !last.errors.is_empty());
    match (&runs.running, &runs.waiting) {
        (Some(_), _) => "harvesting",
        (None, Some(_)) => "waiting",
        (None, None) if status.formats.is_empty() => "never-harvested",
        (None, None) if is_whole && !has_failed => "complete",
        (None, None) => "incomplete",
    }
}

impl RunMark {
    /// Notes the progress.
    pub(super) fn observe(&self, status: &HarvestStatus) {
        if let Some(running) =
            self.runs.repositories().get_mut(&self.id).and_then(|runs| runs.running.as_mut())
        {
            running.status = Some(status.clone());
        }
    }

    /// Ends the harvest with its result.
    pub(super) fn end(self, ended: EndedHarvest) {
        if let Some(runs) = self.runs.repositories().get_mut(&self.id) {
            runs.last = Some(ended);
        }
    }
}

impl Drop for RunMark {
    fn drop(&mut self) {
        if let Some(runs) = self.runs.repositories().get_mut(&self.id) {
            runs.running = None;
            runs.ended += 1;
        }
    }
}

impl Drop for RemovalMark {
    fn drop(&mut self) {
        if let Some(runs) = self.runs.repositories().get_mut(&self.id) {
            let ended = runs.ended;
            *runs = RepositoryRuns { ended, was_removed: true, ..RepositoryRuns::default() };
        }
        self.runs.requested.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_has_one_harvest_at_a_time() {
        let runs = Arc::new(HarvestRuns::default());
        let (mark, request) = runs.begin("x", UnixSecs(5)).expect("none runs");
        assert_eq!(request, HarvestRequest::default());
        assert!(runs.begin("x", UnixSecs(6)).is_none());
        assert!(!runs.request("x", HarvestRequest::default()));
        assert!(runs.begin("y", UnixSecs(6)).is_some());
        drop(mark);
        assert!(runs.request("x", HarvestRequest { accepts_deletions: true }));
        assert!(!runs.request("x", HarvestRequest::default()));
        assert!(runs.is_requested("x"));
        let (_mark, request) = runs.begin("x", UnixSecs(7)).expect("none runs");
        assert!(request.accepts_deletions && !runs.is_requested("x"));
        assert_eq!(runs.of("x").ended, 1);
    }

    #[test]
    fn repository_is_not_harvested_while_it_is_removed() {
        let runs = Arc::new(HarvestRuns::default());
        let (harvest, _) = runs.begin("x", UnixSecs(5)).expect("none runs");
        assert!(runs.begin_removal("x").is_none());
        drop(harvest);
        let removal = runs.begin_removal("x").expect("no harvest runs");
        assert!(runs.begin_removal("x").is_none() && runs.begin("x", UnixSecs(6)).is_none());
        assert!(runs.is_removed_now("x") && !runs.is_removed_now("y"));
        assert!(!runs.request("x", HarvestRequest::default()));
        assert!(!runs.take_removed("x"));
        drop(removal);
        assert!(runs.take_removed("x") && !runs.take_removed("x"));
        assert!(runs.begin("x", UnixSecs(7)).is_some());
    }
}
