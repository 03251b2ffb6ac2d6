//! Metrics and recent events for operators.

pub(crate) mod labels;
mod metrics;

use crate::notify::FolderStatus;
use labels::{
    CacheOutcome, FolderFileState, FullTextOutcome, HarvestOutcome, NotificationResult, NotificationTarget,
    RefusalReason, RequestOutcome, SearchOutcome,
};
use metrics::Metrics;
use oaimend_oai::UnixSecs;
use oaimend_repository::{Failure, RepairMade, ResponseSummary};
use oaimend_search::{IndexError, IndexStatus};
use oaimend_store::{QuarantineSizes, QuarantineState, SourceFailure, StoreName};
use prometheus::{Encoder, Registry, TextEncoder};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The metrics and recent events of one server.
#[derive(Debug)]
pub(crate) struct Telemetry {
    registry: Registry,
    pub(crate) metrics: Metrics,
    last: Mutex<HashMap<String, Last>>,
}

/// The size and the age of a mirrored repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MirrorSize {
    /// Records that are not deleted, in all formats together.
    pub(crate) records: u64,
    /// Deleted records.
    pub(crate) tombstones: u64,
    /// The bytes of the records on disk.
    pub(crate) bytes: u64,
    /// The time since the state of the source that all formats have reached; `None` before the first one.
    pub(crate) lag_secs: Option<i64>,
    /// The begin of the last complete harvest, in seconds since 1970; `None` before the first one.
    pub(crate) last_success_secs: Option<UnixSecs>,
    /// Items that are missing, unrepairable ones included.
    pub(crate) missing: u64,
    /// Missing items whose bytes stay unreadable.
    pub(crate) unrepairable: u64,
    /// Records of the last lists whose identifier came before, with another content.
    pub(crate) duplicates: u64,
}

/// Counters and recent events of one repository.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Last {
    /// Completed requests since the start.
    pub(crate) requests: u64,
    /// Records sent unchanged.
    pub(crate) records_passed: u64,
    /// Records sent with repairs.
    pub(crate) records_repaired: u64,
    /// Quarantined records.
    pub(crate) records_quarantined: u64,
    /// Failures of the source.
    pub(crate) source_failures: u64,
    /// The last failure of the source.
    pub(crate) last_failure: Option<SourceFailure>,
    /// The last repairs, oldest first.
    #[serde(skip)]
    pub(crate) repairs: VecDeque<LastRepair>,
}

/// A repair, for the admin listener.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LastRepair {
    /// The time, `YYYY-MM-DDThh:mm:ssZ`.
    pub(crate) at: String,
    /// The request.
    pub(crate) request: String,
    /// The name of the repair.
    pub(crate) repair: &'static str,
    /// The position, in bytes of the text.
    pub(crate) offset: u64,
    /// The identifier of the item.
    pub(crate) record: Option<String>,
    /// The original text.
    pub(crate) original: String,
    /// The repaired text.
    pub(crate) replacement: String,
}

/// The result of one request, for metrics and the log.
#[derive(Debug)]
pub(crate) struct Finished<'a> {
    /// The repository.
    pub(crate) repository: &'a str,
    /// The verb; `None` for an invalid one.
    pub(crate) verb: Option<&'static str>,
    /// The normalised query.
    pub(crate) request: &'a str,
    /// The end of the request, `YYYY-MM-DDThh:mm:ssZ`.
    pub(crate) at: &'a str,
    /// How it ended.
    pub(crate) outcome: RequestOutcome,
    /// The time from the request to the end of the response.
    pub(crate) took: Duration,
    /// The bytes of the response that were sent.
    pub(crate) sent_bytes: u64,
    /// The summary of the page.
    pub(crate) summary: Option<&'a ResponseSummary>,
    /// Why there was no page.
    pub(crate) failure: Option<&'a Failure>,
}

impl Telemetry {
    /// Creates all metrics with value zero.
    pub(crate) fn new() -> Self {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry);
        metrics.build_info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Self { registry, metrics, last: Mutex::default() }
    }

    /// Formats all metrics in the text format of Prometheus.
    pub(crate) fn metrics(&self) -> Vec<u8> {
        let mut text = Vec::new();
        // Encoding into memory fails only for illegal names, and these are legal.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        text
    }

    /// Counts a harvest of the mirror.
    pub(crate) fn harvested(&self, repository: &str, outcome: HarvestOutcome) {
        self.metrics.harvests.with_label_values(&[repository, outcome.name()]).inc();
    }

    /// Counts a full text.
    pub(crate) fn fetched_full_text(&self, repository: &str, outcome: FullTextOutcome) {
        self.metrics.full_texts.with_label_values(&[repository, outcome.name()]).inc();
    }

    /// Sets how many records of each repository wait for their full texts.
    pub(crate) fn set_full_texts_waiting(&self, waiting: &[(String, u64)]) {
        // A repository may have been removed.
        self.metrics.full_texts_waiting.reset();
        for (repository, count) in waiting {
            self.metrics.full_texts_waiting.with_label_values(&[repository]).set(count.cast_signed());
        }
    }

    /// Counts events for operators and reports to providers.
    pub(crate) fn notified(&self, target: NotificationTarget, result: NotificationResult, count: usize) {
        self.metrics.notifications.with_label_values(&[target.name(), result.name()]).inc_by(count as u64);
    }

    /// Counts a search that failed in this way, or succeeded, and took this time.
    pub(crate) fn searched(&self, error: Option<&IndexError>, took: Duration) {
        let outcome = SearchOutcome::of(error).name();
        self.metrics.searches.with_label_values(&[outcome]).observe(took.as_secs_f64());
    }

    /// Sets the state of the search index, and the time since it had everything that is in the mirror.
    pub(crate) fn set_search_index(&self, status: &IndexStatus, lag: Duration) {
        self.metrics.search_lag_secs.set(i64::try_from(lag.as_secs()).unwrap_or(i64::MAX));
        self.metrics.search_records.set(status.records.cast_signed());
        self.metrics.search_behind.set(status.behind.cast_signed());
        self.metrics.search_bytes.set(status.disk_bytes.cast_signed());
    }

    /// Sets the sizes of all mirrored repositories.
    pub(crate) fn set_mirror_sizes(&self, sizes: &[(String, MirrorSize)]) {
        let Metrics {
            mirror_records: records,
            mirror_tombstones: tombstones,
            mirror_bytes: bytes,
            mirror_lag_secs: lag_secs,
            mirror_last_success_secs: last_success_secs,
            mirror_missing: missing,
            mirror_unrepairable: unrepairable,
            mirror_duplicates: duplicates,
            ..
        } = &self.metrics;
        let counts = [records, tombstones, bytes, missing, unrepairable, duplicates];
        for gauge in counts.into_iter().chain([lag_secs, last_success_secs]) {
            // A repository may have been removed.
            gauge.reset();
        }
        for (repository, size) in sizes {
            let label = &[repository.as_str()];
            records.with_label_values(label).set(size.records.cast_signed());
            tombstones.with_label_values(label).set(size.tombstones.cast_signed());
            bytes.with_label_values(label).set(size.bytes.cast_signed());
            missing.with_label_values(label).set(size.missing.cast_signed());
            unrepairable.with_label_values(label).set(size.unrepairable.cast_signed());
            duplicates.with_label_values(label).set(size.duplicates.cast_signed());
            for (gauge, secs) in
                [(lag_secs, size.lag_secs), (last_success_secs, size.last_success_secs.map(|secs| secs.0))]
            {
                if let Some(secs) = secs {
                    gauge.with_label_values(label).set(secs);
                }
            }
        }
    }

    /// Sets the numbers of files in the folders of local repositories.
    pub(crate) fn set_folders(&self, folders: impl Iterator<Item = (String, FolderStatus)>) {
        // A folder may have been removed.
        self.metrics.folder_files.reset();
        for (repository, folder) in folders {
            for (state, files) in [
                (FolderFileState::Published, folder.published_files),
                (FolderFileState::Refused, folder.refused_files),
                (FolderFileState::Waiting, folder.waiting_files),
            ] {
                let labels = &[repository.as_str(), state.name()];
                self.metrics.folder_files.with_label_values(labels).set(files.cast_signed());
            }
        }
    }

    /// Sets whether the circuit of each repository is open.
    pub(crate) fn set_circuits<'a>(&self, circuits: impl Iterator<Item = (&'a str, bool)>) {
        // A repository may have been removed.
        self.metrics.circuit_open.reset();
        for (repository, is_open) in circuits {
            self.metrics.circuit_open.with_label_values(&[repository]).set(i64::from(is_open));
        }
    }

    /// Sets for each store whether it can be used.
    pub(crate) fn set_stores(&self, states: &[(StoreName, bool)]) {
        for (store, is_usable) in states {
            self.metrics.store_failed.with_label_values(&[store.name()]).set(i64::from(!is_usable));
        }
    }

    /// Sets the size of the quarantine of each repository.
    pub(crate) fn set_quarantine_sizes(&self, sizes: impl Iterator<Item = (String, QuarantineSizes)>) {
        // A repository may have been removed.
        self.metrics.quarantine_records.reset();
        self.metrics.quarantine_bytes.reset();
        for (repository, QuarantineSizes { open, resolved }) in sizes {
            for (state, size) in [(QuarantineState::Open, open), (QuarantineState::Resolved, resolved)] {
                let labels = [repository.as_str(), state.name()];
                self.metrics.quarantine_records.with_label_values(&labels).set(size.records.cast_signed());
                self.metrics.quarantine_bytes.with_label_values(&labels).set(size.bytes.cast_signed());
            }
        }
    }

    /// Counts a refused request or connection; `class` is a configured class of clients, or `None` if it is not
    /// known yet.
    pub(crate) fn refused(&self, class: Option<&str>, reason: RefusalReason) {
        self.metrics.refused.with_label_values(&[class.unwrap_or("any"), reason.name()]).inc();
    }

    /// Sets the end of the certificate of a listener, in seconds since 1970.
    pub(crate) fn set_tls_expiry(&self, listener: SocketAddr, expires_secs: u64) {
        self.metrics.tls_expiry.with_label_values(&[&listener.to_string()]).set(expires_secs.cast_signed());
    }

    /// Returns the recent events of a repository.
    pub(crate) fn last(&self, repository: &str) -> Last {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.get(repository).cloned().unwrap_or_default()
    }

    /// Counts a cache lookup.
    pub(crate) fn looked_up(&self, repository: &str, outcome: CacheOutcome) {
        self.metrics.lookups.with_label_values(&[repository, outcome.name()]).inc();
    }

    /// Counts a completed request.
    pub(crate) fn finished(&self, finished: &Finished<'_>) {
        let (repository, outcome) = (finished.repository, finished.outcome.name());
        let verb = finished.verb.unwrap_or("none");
        self.metrics.requests.with_label_values(&[repository, verb, outcome]).inc();
        self.metrics.durations.with_label_values(&[repository, outcome]).observe(finished.took.as_secs_f64());
        self.metrics.sent_bytes.with_label_values(&[repository]).inc_by(finished.sent_bytes);
        let mut all = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = all.entry(repository.to_owned()).or_default();
        last.requests += 1;
        if let Some(failure) = finished.failure {
            self.metrics.failures.with_label_values(&[repository, failure.reason.name()]).inc();
            last.source_failures += 1;
            last.last_failure = Some(SourceFailure {
                at: finished.at.to_owned(),
                request: finished.request.to_owned(),
                reason: failure.reason.name().to_owned(),
                details: failure.details_for_operators(),
            });
        }
        let Some(summary) = finished.summary else { return };
        if let Some(code) = summary.page.error {
            self.metrics.oai_errors.with_label_values(&[repository, code.name()]).inc();
        }
        for made in summary.items.last_repairs() {
            last.push(LastRepair::new(made, finished));
        }
        for (id, count) in summary.items.repairs().iter() {
            self.metrics.repairs.with_label_values(&[repository, id.entry().name]).inc_by(count);
        }
        if summary.set_collisions() > 0 {
            self.metrics.set_collisions.with_label_values(&[repository]).inc_by(summary.set_collisions());
        }
        let items = &summary.items;
        last.records_passed += items.passed();
        last.records_repaired += items.repaired();
        last.records_quarantined += items.quarantined();
        let actions = [
            ("passed", items.passed()),
            ("repaired", items.repaired()),
            ("quarantined", items.quarantined()),
        ];
        for (action, count) in actions {
            self.metrics.records.with_label_values(&[repository, action]).inc_by(count);
        }
    }
}

impl Last {
    fn push(&mut self, repair: LastRepair) {
        if self.repairs.len() == LAST_REPAIRS_KEPT {
            self.repairs.pop_front();
        }
        self.repairs.push_back(repair);
    }
}

impl LastRepair {
    fn new(made: &RepairMade, finished: &Finished<'_>) -> Self {
        Self {
            at: finished.at.to_owned(),
            request: finished.request.to_owned(),
            repair: made.name,
            offset: made.offset,
            record: made.record.clone(),
            original: made.original.to_text(),
            replacement: made.replacement.to_text(),
        }
    }
}

/// The number of recent repairs that are kept for each repository.
const LAST_REPAIRS_KEPT: usize = 200;
