//! The activity of each repository: counts by day, the most frequent repairs, and the last failures of the source.
//!
//! All of it is held in memory. [`ActivityLog::save_changed`] saves the repositories that have changed since its last
//! call. The caller decides how often. A process that is killed loses the changes since then. It is a snapshot: what was
//! saved when the store was opened, and the requests to this process since.

use super::save_error::SaveError;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::{ErrorCode, UnixSecs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the activity is saved.
pub trait ActivityStore: std::fmt::Debug + Send + Sync {
    /// Saves the activity of these repositories in place of older ones, all or none. The caller runs one save at a
    /// time. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// Nothing is saved.
    fn save(&self, changed: &[(String, RepositoryActivity)]) -> Result<(), SaveError>;

    /// Closes it; later calls fail with [`SaveError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// Days that are kept, today included.
pub(crate) const ACTIVITY_DAYS_MAX: usize = 35;
/// Maximum number of failures of a source that are kept.
pub const FAILURES_MAX: usize = 50;
/// Maximum number of names of repairs that are kept for a day. The catalog has fewer.
const REPAIR_NAMES_MAX: usize = 200;
/// Longest text before or after a repair that is kept, in bytes.
const EXAMPLE_BYTES_MAX: usize = 600;
/// Longest identifier that is kept with a repair, in bytes. A longer one is shortened.
const IDENTIFIER_BYTES_MAX: usize = 500;
/// Longest request that is kept with a failure, in bytes.
const REQUEST_BYTES_MAX: usize = 500;
/// Longest details that are kept with a failure, in bytes.
const DETAILS_BYTES_MAX: usize = 1_000;
const DAY_SECS: i64 = 86_400;

/// The counts of one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayCounts {
    /// Requests: of harvesters, and of harvests of the mirror.
    pub requests: u64,
    /// Items of the source that were valid.
    pub passed: u64,
    /// Items of the source that were repaired.
    pub repaired: u64,
    /// Items of the source that were quarantined.
    pub quarantined: u64,
    /// Requests without a usable response of the source.
    pub failures: u64,
}

impl DayCounts {
    /// Adds the counts of another day.
    pub const fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.passed += other.passed;
        self.repaired += other.repaired;
        self.quarantined += other.quarantined;
        self.failures += other.failures;
    }

    /// The number of items that the source has sent.
    pub const fn items(&self) -> u64 {
        self.passed + self.repaired + self.quarantined
    }
}

/// A failure of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFailure {
    /// The time, `YYYY-MM-DDThh:mm:ssZ`.
    pub at: String,
    /// The request.
    pub request: String,
    /// The kind of failure.
    pub reason: String,
    /// What happened and what to do.
    pub details: String,
}

/// An example of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairExample {
    /// The identifier of the record; `None` if the repair was outside records.
    pub record: Option<String>,
    /// The original text, shortened.
    pub original: String,
    /// The repaired text, shortened.
    pub replacement: String,
}

/// A repair with its number, and the newest example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrequentRepair {
    /// The name of the repair.
    pub name: String,
    /// How often it was made.
    pub count: u64,
    /// The newest example.
    pub example: Option<RepairExample>,
}

/// The result of one request, for the activity.
#[derive(Clone, Debug, Default)]
pub struct ActivityUpdate {
    /// Its counts.
    pub counts: DayCounts,
    /// The number of each repair in it.
    pub repairs: Vec<(&'static str, u64)>,
    /// Examples of these repairs; the last one of each name is kept.
    pub examples: Vec<(&'static str, RepairExample)>,
    /// How the source did.
    pub source: SourceResult,
    /// The OAI error with which the request was answered.
    pub oai_error: Option<OaiErrorResponse>,
}

/// A response that is an OAI error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OaiErrorResponse {
    /// Its code.
    pub code: ErrorCode,
    /// The request.
    pub request: String,
}

/// How the source of a request did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceResult {
    /// It was not asked, or the failure is not its own.
    #[default]
    NotRequested,
    /// It sent a usable response.
    Succeeded,
    /// It failed.
    Failed {
        /// The request.
        request: String,
        /// The kind of failure.
        reason: &'static str,
        /// What happened and what to do.
        details: String,
        /// Whether the failure only repeats earlier ones, such as one of an open circuit. It is counted, not listed.
        is_repetition: bool,
    },
}

/// The activity of one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryActivity {
    /// By day, in days since 1970.
    days: BTreeMap<i64, Day>,
    /// By name of the repair.
    examples: BTreeMap<String, RepairExample>,
    /// The oldest first.
    failures: VecDeque<SourceFailure>,
    fails_since: Option<String>,
    last_success_at: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Day {
    counts: DayCounts,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    repairs: BTreeMap<String, u64>,
    /// By code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    oai_errors: BTreeMap<String, u64>,
}

impl RepositoryActivity {
    /// The counts of the last days up to today, the oldest day first.
    pub fn last_days(&self, now_secs: UnixSecs, days: usize) -> Vec<DayCounts> {
        let today = day_of(now_secs);
        let of_day = |day: i64| self.days.get(&day).map(|day| day.counts).unwrap_or_default();
        (0..i64::try_from(days).unwrap_or(0)).rev().map(|ago| of_day(today - ago)).collect()
    }

    /// The repairs of the last days up to that of `now_secs`, the most frequent first, at most `count_max`.
    pub fn frequent_repairs(&self, now_secs: UnixSecs, days: usize, count_max: usize) -> Vec<FrequentRepair> {
        let today = day_of(now_secs);
        let first = today - i64::try_from(days).unwrap_or(0) + 1;
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, count) in self.days.range(first..=today).flat_map(|(_, day)| &day.repairs) {
            *counts.entry(name).or_default() += count;
        }
        let mut repairs: Vec<(&str, u64)> = counts.into_iter().collect();
        repairs.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        let with_example = |(name, count): (&str, u64)| FrequentRepair {
            name: name.to_owned(),
            count,
            example: self.examples.get(name).cloned(),
        };
        repairs.into_iter().take(count_max).map(with_example).collect()
    }

    /// The number of responses with each OAI error, by code, in the last days up to that of `now_secs`.
    pub fn oai_errors(&self, now_secs: UnixSecs, days: usize) -> BTreeMap<String, u64> {
        let today = day_of(now_secs);
        let first = today - i64::try_from(days).unwrap_or(0) + 1;
        let mut counts = BTreeMap::new();
        for (code, count) in self.days.range(first..=today).flat_map(|(_, day)| &day.oai_errors) {
            *counts.entry(code.clone()).or_default() += count;
        }
        counts
    }

    /// The last failures of the source, and the lists that it ended with `badResumptionToken`, the newest first.
    pub fn failures(&self) -> impl Iterator<Item = &SourceFailure> {
        self.failures.iter().rev()
    }

    /// The time of the first failure after the last success, `YYYY-MM-DDThh:mm:ssZ`. `None` if the last request to the
    /// source succeeded.
    pub fn fails_since(&self) -> Option<&str> {
        self.fails_since.as_deref()
    }

    /// The time of the last request to which the source sent a usable response, `YYYY-MM-DDThh:mm:ssZ`.
    pub fn last_success_at(&self) -> Option<&str> {
        self.last_success_at.as_deref()
    }

    fn note(&mut self, at_secs: UnixSecs, update: ActivityUpdate) {
        let today = day_of(at_secs);
        if !self.days.contains_key(&today) {
            self.begin_day(today);
        }
        let day = self.days.entry(today).or_default();
        day.counts.add(update.counts);
        for (name, count) in update.repairs {
            if day.repairs.len() < REPAIR_NAMES_MAX || day.repairs.contains_key(name) {
                *day.repairs.entry(name.to_owned()).or_default() += count;
            }
        }
        for (name, mut example) in update.examples {
            shorten(&mut example.original, EXAMPLE_BYTES_MAX);
            shorten(&mut example.replacement, EXAMPLE_BYTES_MAX);
            if let Some(identifier) = &mut example.record {
                shorten(identifier, IDENTIFIER_BYTES_MAX);
            }
            if self.examples.len() < REPAIR_NAMES_MAX || self.examples.contains_key(name) {
                self.examples.insert(name.to_owned(), example);
            }
        }
        if let Some(OaiErrorResponse { code, .. }) = &update.oai_error {
            *day.oai_errors.entry(code.name().to_owned()).or_default() += 1;
        }
        let at = from_secs(at_secs, Granularity::Second);
        self.note_source(at.clone(), update.source);
        // The other errors are regular answers.
        if let Some(OaiErrorResponse { code: code @ ErrorCode::BadResumptionToken, request }) =
            update.oai_error
        {
            let details = "the list ended with this OAI error".to_owned();
            self.list_failure(SourceFailure { at, request, reason: code.name().to_owned(), details });
        }
    }

    /// Forgets old days, and examples of repairs that were made on no other day.
    fn begin_day(&mut self, today: i64) {
        // A clock that was set back leaves days in the future.
        let first = today - i64::try_from(ACTIVITY_DAYS_MAX).unwrap_or(i64::MAX) + 1;
        self.days.retain(|day, _| (first..=today).contains(day));
        let days = &self.days;
        self.examples.retain(|name, _| days.values().any(|day| day.repairs.contains_key(name)));
    }

    fn note_source(&mut self, at: String, source: SourceResult) {
        match source {
            SourceResult::NotRequested => {}
            SourceResult::Succeeded => {
                self.fails_since = None;
                self.last_success_at = Some(at);
            }
            SourceResult::Failed { request, reason, details, is_repetition } => {
                self.fails_since.get_or_insert_with(|| at.clone());
                if is_repetition && !self.failures.is_empty() {
                    return;
                }
                self.list_failure(SourceFailure { at, request, reason: reason.to_owned(), details });
            }
        }
    }

    fn list_failure(&mut self, mut failure: SourceFailure) {
        shorten(&mut failure.request, REQUEST_BYTES_MAX);
        shorten(&mut failure.details, DETAILS_BYTES_MAX);
        if self.failures.len() == FAILURES_MAX {
            self.failures.pop_front();
        }
        self.failures.push_back(failure);
    }
}

fn day_of(secs: UnixSecs) -> i64 {
    secs.0.div_euclid(DAY_SECS)
}

/// Shortens a text to this many bytes. No character is divided.
fn shorten(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

/// The activity of all repositories. Clones share it.
#[derive(Clone, Debug)]
pub struct ActivityLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn ActivityStore>,
    known: Mutex<Known>,
    /// Held during a save, so that the last save has the latest values.
    saving: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    activities: HashMap<String, RepositoryActivity>,
    /// The repositories that have changed since they were saved.
    changed: HashSet<String>,
}

impl ActivityLog {
    /// Starts with what was saved before.
    pub fn new(store: Arc<dyn ActivityStore>, saved: HashMap<String, RepositoryActivity>) -> Self {
        let known = Known { activities: saved, changed: HashSet::new() };
        Self(Arc::new(Inner { store, known: Mutex::new(known), saving: Mutex::default() }))
    }

    /// Adds the result of a request that ended at `at_secs`.
    pub fn note(&self, repository: &str, at_secs: UnixSecs, update: ActivityUpdate) {
        let mut known = self.known();
        if let Some(activity) = known.activities.get_mut(repository) {
            activity.note(at_secs, update);
        } else {
            known.activities.entry(repository.to_owned()).or_default().note(at_secs, update);
        }
        if !known.changed.contains(repository) {
            known.changed.insert(repository.to_owned());
        }
    }

    /// Reads the activity of a repository; an empty one if nothing is known of it. Other callers wait for `read`.
    pub fn read<T>(&self, repository: &str, read: impl FnOnce(&RepositoryActivity) -> T) -> T {
        match self.known().activities.get(repository) {
            Some(activity) => read(activity),
            None => read(&RepositoryActivity::default()),
        }
    }

    /// Saves all changes since the last call. Blocks on the disk. After a failure they are saved by the next call.
    pub fn save_changed(&self) {
        let _turn = self.0.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let changed: Vec<(String, RepositoryActivity)> = {
            let mut known = self.known();
            let changed = std::mem::take(&mut known.changed);
            let with_activity = |id: String| {
                let activity = known.activities.get(&id).cloned().unwrap_or_default();
                (id, activity)
            };
            changed.into_iter().map(with_activity).collect()
        };
        if changed.is_empty() {
            return;
        }
        match self.0.store.save(&changed) {
            Ok(()) => {}
            Err(SaveError::Closed) => {
                tracing::debug!("another oaimend has the activity of repositories");
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "the activity of repositories is not saved; check space and rights of the data folder"
                );
                self.known().changed.extend(changed.into_iter().map(|(id, _)| id));
            }
        }
    }

    /// Saves all changes and closes the store; later changes are known to this process alone.
    pub fn close(&self) {
        self.save_changed();
        self.0.store.close();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_SECS: UnixSecs = UnixSecs(20_000 * DAY_SECS + 5);

    fn repairs(name: &'static str, count: u64, original: &str) -> ActivityUpdate {
        let example = RepairExample { original: original.to_owned(), ..RepairExample::default() };
        ActivityUpdate {
            counts: DayCounts { requests: 1, repaired: count, ..DayCounts::default() },
            repairs: vec![(name, count)],
            examples: vec![(name, example)],
            source: SourceResult::Succeeded,
            oai_error: None,
        }
    }

    fn failure(reason: &'static str, is_repetition: bool) -> ActivityUpdate {
        let (request, details) = ("r".repeat(9_999), "é".repeat(9_999));
        let source = SourceResult::Failed { request, reason, details, is_repetition };
        ActivityUpdate { source, ..ActivityUpdate::default() }
    }

    #[test]
    fn days_are_counted_and_forgotten() {
        let mut activity = RepositoryActivity::default();
        for (days_ago, count) in [(40, 7), (30, 1), (29, 2), (1, 3), (0, 4), (0, 5)] {
            activity.note(NOW_SECS.minus(days_ago * DAY_SECS), repairs("a", count, "x"));
        }
        let days = activity.last_days(NOW_SECS, 30);
        let repaired: Vec<u64> = days.iter().map(|day| day.repaired).collect();
        assert_eq!((repaired.len(), repaired[0], &repaired[28..]), (30, 2, &[3, 9][..]));
        assert_eq!(activity.frequent_repairs(NOW_SECS, 30, 9)[0].count, 14);
        assert_eq!(activity.frequent_repairs(NOW_SECS.minus(DAY_SECS), 30, 9)[0].count, 6, "without today");
        assert_eq!(activity.days.len(), 4, "the oldest is gone");
        activity.note(NOW_SECS.minus(10 * DAY_SECS), ActivityUpdate::default());
        assert_eq!(activity.days.len(), 3, "days in the future are gone too");
    }

    #[test]
    fn frequent_repairs_are_in_order_with_the_newest_example() {
        let mut activity = RepositoryActivity::default();
        for (name, count, original) in [("b", 2, "1"), ("a", 1, "2"), ("c", 3, "3"), ("a", 1, "4")] {
            activity.note(NOW_SECS, repairs(name, count, original));
        }
        let found = activity.frequent_repairs(NOW_SECS, 1, 3);
        let found: Vec<_> = found
            .iter()
            .map(|repair| (repair.name.as_str(), repair.example.as_ref().map(|example| &*example.original)))
            .collect();
        assert_eq!(found, [("c", Some("3")), ("a", Some("4")), ("b", Some("1"))]);
        assert_eq!(activity.frequent_repairs(NOW_SECS, 1, 1).len(), 1);
        activity.note(NOW_SECS, repairs("d", 1, &"é".repeat(9_999)));
        assert_eq!(activity.examples["d"].original.len(), EXAMPLE_BYTES_MAX);
        activity.note(NOW_SECS.plus(40 * DAY_SECS), ActivityUpdate::default());
        assert!(activity.examples.is_empty());
    }

    #[test]
    fn failures_are_bounded_and_end_with_a_success() {
        let mut activity = RepositoryActivity::default();
        activity.note(NOW_SECS, failure("dns", false));
        for _ in 0..60 {
            activity.note(NOW_SECS.plus(60), failure("circuit-open", true));
            activity.note(NOW_SECS.plus(120), failure("status", false));
        }
        assert_eq!(activity.fails_since(), Some("2024-10-04T00:00:05Z"));
        let newest = activity.failures().next().expect("it was noted");
        assert_eq!((newest.at.as_str(), newest.reason.as_str()), ("2024-10-04T00:02:05Z", "status"));
        assert_eq!((newest.request.len(), newest.details.len()), (REQUEST_BYTES_MAX, DETAILS_BYTES_MAX));
        assert_eq!(activity.failures().count(), FAILURES_MAX);
        assert!(activity.failures().all(|failure| failure.reason == "status"));
        activity.note(NOW_SECS.plus(180), ActivityUpdate::default());
        assert!(activity.fails_since().is_some(), "the source was not asked");
        activity.note(NOW_SECS.plus(180), repairs("a", 1, ""));
        assert_eq!(
            (activity.fails_since(), activity.last_success_at()),
            (None, Some("2024-10-04T00:03:05Z"))
        );
    }

    #[test]
    fn oai_errors_are_counted_and_broken_lists_are_failures() {
        let mut activity = RepositoryActivity::default();
        let error = |code| ActivityUpdate {
            source: SourceResult::Succeeded,
            oai_error: Some(OaiErrorResponse { code, request: "verb=ListRecords".to_owned() }),
            ..ActivityUpdate::default()
        };
        activity.note(UnixSecs(0), error(ErrorCode::NoRecordsMatch));
        activity.note(UnixSecs(6 * DAY_SECS), error(ErrorCode::BadResumptionToken));
        activity.note(UnixSecs(7 * DAY_SECS), error(ErrorCode::BadResumptionToken));
        let counts = |days| activity.oai_errors(UnixSecs(7 * DAY_SECS), days).into_iter().collect::<Vec<_>>();
        assert_eq!(counts(7), [("badResumptionToken".to_owned(), 2)]);
        assert_eq!(counts(8), [("badResumptionToken".to_owned(), 2), ("noRecordsMatch".to_owned(), 1)]);
        let reasons: Vec<_> = activity.failures().map(|failure| failure.reason.as_str()).collect();
        assert_eq!(reasons, ["badResumptionToken"; 2]);
        assert_eq!(activity.fails_since(), None, "the source responds");
    }
}
