//! Metrics and recent events for operators.

use oaimend_oai::UnixSecs;
use oaimend_repository::{Failure, RepairMade, ResponseSummary};
use oaimend_store::{QuarantineSizes, QuarantineState, SourceFailure};
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The metrics and recent events of one server.
#[derive(Debug)]
pub(crate) struct Telemetry {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    sent_bytes: IntCounterVec,
    repairs: IntCounterVec,
    records: IntCounterVec,
    set_collisions: IntCounterVec,
    failures: IntCounterVec,
    oai_errors: IntCounterVec,
    refused: IntCounterVec,
    tls_expiry: IntGaugeVec,
    circuit_open: IntGaugeVec,
    quarantine_records: IntGaugeVec,
    quarantine_bytes: IntGaugeVec,
    /// Requests in flight.
    pub(crate) in_flight: IntGauge,
    /// Open connections of harvesters.
    pub(crate) connections: IntGauge,
    lookups: IntCounterVec,
    /// Pages in the cache.
    pub(crate) cache_entries: IntGauge,
    /// The size of the cache on disk.
    pub(crate) cache_bytes: IntGauge,
    notifications: IntCounterVec,
    store_failed: IntGaugeVec,
    mirror: MirrorMetrics,
    last: Mutex<HashMap<String, Last>>,
}

/// The metrics of the mirror, by repository.
#[derive(Debug)]
struct MirrorMetrics {
    records: IntGaugeVec,
    tombstones: IntGaugeVec,
    bytes: IntGaugeVec,
    lag_secs: IntGaugeVec,
    last_success_secs: IntGaugeVec,
    missing: IntGaugeVec,
    unrepairable: IntGaugeVec,
    harvests: IntCounterVec,
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
    /// The outcome: `complete`, `oai-error`, `continued`, `failed-over`, `refused`, `failed`, `broken-off` or
    /// `abandoned`.
    pub(crate) outcome: &'static str,
    /// The time from the request to the end of the response.
    pub(crate) took: Duration,
    /// The bytes of the response that were sent.
    pub(crate) sent_bytes: u64,
    /// The summary of the page.
    pub(crate) summary: Option<&'a ResponseSummary>,
    /// Why there was no page.
    pub(crate) failure: Option<&'a Failure>,
}

/// The upper bounds of the buckets of durations, in seconds. A page from the cache takes less than a millisecond, one of a
/// slow source minutes.
const DURATION_BUCKETS: [f64; 12] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0];

/// A metric with the version of the program. Its value is 1.
fn build_info() -> IntGaugeVec {
    let opts = Opts::new("build_info", "The version of the program.").namespace("oaimend");
    let info = IntGaugeVec::new(opts, &["version"]).expect("literal names are legal");
    info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
    info
}

impl Telemetry {
    /// Creates all metrics with value zero.
    pub(crate) fn new() -> Self {
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let opts = Opts::new(name, help).namespace("oaimend");
            IntCounterVec::new(opts, labels).expect("literal names are legal")
        };
        let gauge = |name: &str, help: &str| IntGauge::new(name, help).expect("literal names are legal");
        let telemetry = Self {
            registry: Registry::new(),
            requests: counters(
                "requests_total",
                "Requests of harvesters by outcome.",
                &["repository", "verb", "outcome"],
            ),
            durations: HistogramVec::new(
                HistogramOpts::new("oaimend_request_duration_seconds", "Time to the end of the response.")
                    .buckets(DURATION_BUCKETS.to_vec()),
                &["repository", "outcome"],
            )
            .expect("literal names are legal"),
            sent_bytes: counters(
                "sent_bytes_total",
                "Bytes of responses, after compression.",
                &["repository"],
            ),
            repairs: counters("repairs_total", "Repairs by name.", &["repository", "repair"]),
            records: counters(
                "records_total",
                "Records, headers, sets and formats: passed, repaired or quarantined.",
                &["repository", "action"],
            ),
            set_collisions: counters(
                "set_collisions_total",
                "setSpecs that two sets of the source have after escaping.",
                &["repository"],
            ),
            failures: counters(
                "source_failures_total",
                "Requests without a usable response of the source, by reason.",
                &["repository", "reason"],
            ),
            oai_errors: counters(
                "oai_errors_total",
                "Responses that are an OAI error, by code.",
                &["repository", "code"],
            ),
            refused: counters(
                "refused_total",
                "Requests and connections refused because of a limit for clients, by class and reason.",
                &["class", "reason"],
            ),
            tls_expiry: IntGaugeVec::new(
                Opts::new(
                    "tls_certificate_expiry_seconds",
                    "The end of the certificate, in seconds since 1970.",
                )
                .namespace("oaimend"),
                &["listener"],
            )
            .expect("literal names are legal"),
            circuit_open: repository_gauge("circuit_open", "Whether requests to the source are stopped."),
            quarantine_records: state_gauge("quarantine_records", "Quarantined records by state."),
            quarantine_bytes: state_gauge(
                "quarantine_bytes",
                "Bytes of the quarantine on disk by state of the records.",
            ),
            connections: gauge("oaimend_connections_open", "Open connections of harvesters."),
            lookups: counters(
                "cache_lookups_total",
                "Requests by use of the cache: hit, stale, collapsed, miss or bypass.",
                &["repository", "outcome"],
            ),
            in_flight: gauge("oaimend_requests_in_flight", "Requests in flight."),
            cache_entries: gauge("oaimend_cache_entries", "Stored pages."),
            cache_bytes: gauge("oaimend_cache_bytes", "Bytes of the stored pages on disk."),
            notifications: counters(
                "notifications_total",
                "Events for operators and reports to providers by target and result: sent, failed or dropped.",
                &["target", "result"],
            ),
            store_failed: IntGaugeVec::new(
                Opts::new("store_failed", "Whether a store cannot be used since an error of the disk.")
                    .namespace("oaimend"),
                &["store"],
            )
            .expect("literal names are legal"),
            mirror: MirrorMetrics::new(),
            last: Mutex::default(),
        };
        let all: [Box<dyn prometheus::core::Collector>; 30] = [
            Box::new(build_info()),
            Box::new(ProcessCollector::for_self()),
            Box::new(telemetry.requests.clone()),
            Box::new(telemetry.durations.clone()),
            Box::new(telemetry.sent_bytes.clone()),
            Box::new(telemetry.repairs.clone()),
            Box::new(telemetry.records.clone()),
            Box::new(telemetry.set_collisions.clone()),
            Box::new(telemetry.failures.clone()),
            Box::new(telemetry.oai_errors.clone()),
            Box::new(telemetry.refused.clone()),
            Box::new(telemetry.tls_expiry.clone()),
            Box::new(telemetry.circuit_open.clone()),
            Box::new(telemetry.quarantine_records.clone()),
            Box::new(telemetry.quarantine_bytes.clone()),
            Box::new(telemetry.connections.clone()),
            Box::new(telemetry.lookups.clone()),
            Box::new(telemetry.in_flight.clone()),
            Box::new(telemetry.cache_entries.clone()),
            Box::new(telemetry.cache_bytes.clone()),
            Box::new(telemetry.notifications.clone()),
            Box::new(telemetry.store_failed.clone()),
            Box::new(telemetry.mirror.records.clone()),
            Box::new(telemetry.mirror.tombstones.clone()),
            Box::new(telemetry.mirror.bytes.clone()),
            Box::new(telemetry.mirror.lag_secs.clone()),
            Box::new(telemetry.mirror.last_success_secs.clone()),
            Box::new(telemetry.mirror.missing.clone()),
            Box::new(telemetry.mirror.unrepairable.clone()),
            Box::new(telemetry.mirror.harvests.clone()),
        ];
        for collector in all {
            telemetry.registry.register(collector).expect("each name once");
        }
        telemetry
    }

    /// Formats all metrics in the text format of Prometheus.
    pub(crate) fn metrics(&self) -> Vec<u8> {
        let mut text = Vec::new();
        // Encoding into memory fails only for illegal names, and these are legal.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        text
    }

    /// Counts a harvest of the mirror; `outcome` is `complete`, `held`, `missing`, `incomplete` or
    /// `failed`.
    pub(crate) fn harvested(&self, repository: &str, outcome: &str) {
        self.mirror.harvests.with_label_values(&[repository, outcome]).inc();
    }

    /// Counts events for operators; `target` is `webhook`, `mail` or `provider`, `result` is `sent`, `failed` or `dropped`.
    pub(crate) fn notified(&self, target: &str, result: &str, count: usize) {
        self.notifications.with_label_values(&[target, result]).inc_by(count as u64);
    }

    /// Sets the sizes of all mirrored repositories.
    pub(crate) fn set_mirror_sizes(&self, sizes: &[(String, MirrorSize)]) {
        let MirrorMetrics {
            records,
            tombstones,
            bytes,
            lag_secs,
            last_success_secs,
            missing,
            unrepairable,
            ..
        } = &self.mirror;
        for gauge in [records, tombstones, bytes, lag_secs, last_success_secs, missing, unrepairable] {
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
            for (gauge, secs) in
                [(lag_secs, size.lag_secs), (last_success_secs, size.last_success_secs.map(|secs| secs.0))]
            {
                if let Some(secs) = secs {
                    gauge.with_label_values(label).set(secs);
                }
            }
        }
    }

    /// Sets whether the circuit of each repository is open.
    pub(crate) fn set_circuits<'a>(&self, circuits: impl Iterator<Item = (&'a str, bool)>) {
        // A repository may have been removed.
        self.circuit_open.reset();
        for (repository, is_open) in circuits {
            self.circuit_open.with_label_values(&[repository]).set(i64::from(is_open));
        }
    }

    /// Sets for each store whether it can be used.
    pub(crate) fn set_stores(&self, states: &[(&'static str, bool)]) {
        for (store, is_usable) in states {
            self.store_failed.with_label_values(&[*store]).set(i64::from(!is_usable));
        }
    }

    /// Sets the size of the quarantine of each repository.
    pub(crate) fn set_quarantine_sizes(&self, sizes: impl Iterator<Item = (String, QuarantineSizes)>) {
        // A repository may have been removed.
        self.quarantine_records.reset();
        self.quarantine_bytes.reset();
        for (repository, QuarantineSizes { open, resolved }) in sizes {
            for (state, size) in [(QuarantineState::Open, open), (QuarantineState::Resolved, resolved)] {
                let labels = [repository.as_str(), state.name()];
                self.quarantine_records.with_label_values(&labels).set(size.records.cast_signed());
                self.quarantine_bytes.with_label_values(&labels).set(size.bytes.cast_signed());
            }
        }
    }

    /// Counts a refused request or connection; `class` is a configured class of clients, or `any`
    /// if it is not known yet.
    pub(crate) fn refused(&self, class: &str, reason: &str) {
        self.refused.with_label_values(&[class, reason]).inc();
    }

    /// Sets the end of the certificate of a listener, in seconds since 1970.
    pub(crate) fn set_tls_expiry(&self, listener: SocketAddr, expires_secs: u64) {
        self.tls_expiry.with_label_values(&[&listener.to_string()]).set(expires_secs.cast_signed());
    }

    /// Returns the recent events of a repository.
    pub(crate) fn last(&self, repository: &str) -> Last {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.get(repository).cloned().unwrap_or_default()
    }

    /// Counts a cache lookup.
    pub(crate) fn looked_up(&self, repository: &str, outcome: &str) {
        self.lookups.with_label_values(&[repository, outcome]).inc();
    }

    /// Counts a completed request.
    pub(crate) fn finished(&self, finished: &Finished<'_>) {
        let Finished { repository, outcome, .. } = *finished;
        let verb = finished.verb.unwrap_or("none");
        self.requests.with_label_values(&[repository, verb, outcome]).inc();
        self.durations.with_label_values(&[repository, outcome]).observe(finished.took.as_secs_f64());
        self.sent_bytes.with_label_values(&[repository]).inc_by(finished.sent_bytes);
        let mut all = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = all.entry(repository.to_owned()).or_default();
        last.requests += 1;
        if let Some(failure) = finished.failure {
            self.failures.with_label_values(&[repository, failure.reason.name()]).inc();
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
            self.oai_errors.with_label_values(&[repository, code.name()]).inc();
        }
        for made in summary.items.last_repairs() {
            last.push(LastRepair::new(made, finished));
        }
        for (id, count) in summary.items.repairs().iter() {
            self.repairs.with_label_values(&[repository, id.entry().name]).inc_by(count);
        }
        if summary.set_collisions() > 0 {
            self.set_collisions.with_label_values(&[repository]).inc_by(summary.set_collisions());
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
            self.records.with_label_values(&[repository, action]).inc_by(count);
        }
    }
}

/// A gauge with a value for each repository.
fn repository_gauge(name: &str, help: &str) -> IntGaugeVec {
    let opts = Opts::new(name, help).namespace("oaimend");
    IntGaugeVec::new(opts, &["repository"]).expect("literal names are legal")
}

/// A gauge of each repository and state of quarantined records.
fn state_gauge(name: &str, help: &str) -> IntGaugeVec {
    let opts = Opts::new(name, help).namespace("oaimend");
    IntGaugeVec::new(opts, &["repository", "state"]).expect("literal names are legal")
}

impl MirrorMetrics {
    fn new() -> Self {
        let opts =
            Opts::new("mirror_harvests_total", "Harvests of the mirror by outcome.").namespace("oaimend");
        Self {
            records: repository_gauge("mirror_records", "Records of the mirror that are not deleted."),
            tombstones: repository_gauge("mirror_tombstones", "Deleted records of the mirror."),
            bytes: repository_gauge("mirror_bytes", "Bytes of the records of the mirror on disk."),
            lag_secs: repository_gauge(
                "mirror_lag_seconds",
                "Seconds since the state of the source that the mirror has reached.",
            ),
            last_success_secs: repository_gauge(
                "mirror_last_success_timestamp_seconds",
                "Begin of the last complete harvest, in seconds since 1970.",
            ),
            missing: repository_gauge(
                "mirror_missing_items",
                "Items that are missing in the mirror, unrepairable ones included.",
            ),
            unrepairable: repository_gauge(
                "mirror_unrepairable_items",
                "Missing items whose bytes stay unreadable.",
            ),
            harvests: IntCounterVec::new(opts, &["repository", "outcome"]).expect("literal names are legal"),
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self::new()
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
