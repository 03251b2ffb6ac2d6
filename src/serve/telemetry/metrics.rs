//! The metrics. Each is declared once, with its name, its labels and its help; the declaration constructs and registers
//! it. docs/reference/metrics.md lists them.

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// A kind of metric.
trait Metric: Collector + Clone + 'static {
    fn new(opts: Opts, labels: &[&str]) -> prometheus::Result<Self>;
}

impl Metric for IntCounterVec {
    fn new(opts: Opts, labels: &[&str]) -> prometheus::Result<Self> {
        Self::new(opts, labels)
    }
}

impl Metric for IntGaugeVec {
    fn new(opts: Opts, labels: &[&str]) -> prometheus::Result<Self> {
        Self::new(opts, labels)
    }
}

impl Metric for IntGauge {
    fn new(opts: Opts, _labels: &[&str]) -> prometheus::Result<Self> {
        Self::with_opts(opts)
    }
}

impl Metric for HistogramVec {
    fn new(opts: Opts, labels: &[&str]) -> prometheus::Result<Self> {
        Self::new(HistogramOpts::from(opts).buckets(DURATION_BUCKETS.to_vec()), labels)
    }
}

/// The upper bounds of the buckets of durations, in seconds. A page from the cache takes less than a millisecond, one of a
/// slow source minutes.
const DURATION_BUCKETS: [f64; 12] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0];

/// Declares metrics: `field: kind = name, labels, help;`.
macro_rules! metrics {
    ($($field:ident: $kind:ty = $name:literal, [$($label:literal),*], $help:literal;)+) => {
        /// All metrics of a server.
        #[derive(Debug)]
        pub(crate) struct Metrics {
            $(#[doc = $help] pub(crate) $field: $kind,)+
        }

        impl Metrics {
            /// Registers all metrics with the value zero, and those of the process.
            pub(super) fn register(registry: &Registry) -> Self {
                registry.register(Box::new(ProcessCollector::for_self())).expect("each name once");
                Self {
                    $($field: register(registry, Opts::new($name, $help), &[$($label),*]),)+
                }
            }
        }

        #[cfg(test)]
        const DECLARED: &[(&str, &[&str])] = &[$(($name, &[$($label),*])),+];
    };
}

fn register<M: Metric>(registry: &Registry, opts: Opts, labels: &[&str]) -> M {
    let metric = M::new(opts, labels).expect("literal names are legal");
    registry.register(Box::new(metric.clone())).expect("each name once");
    metric
}

metrics! {
    requests: IntCounterVec = "oaimend_requests_total", ["repository", "verb", "outcome"],
        "Requests of harvesters by outcome.";
    durations: HistogramVec = "oaimend_request_duration_seconds", ["repository", "outcome"],
        "Time to the end of the response.";
    sent_bytes: IntCounterVec = "oaimend_sent_bytes_total", ["repository"],
        "Bytes of responses, after compression.";
    build_info: IntGaugeVec = "oaimend_build_info", ["version"],
        "The version of the program.";
    repairs: IntCounterVec = "oaimend_repairs_total", ["repository", "repair"],
        "Repairs by name.";
    records: IntCounterVec = "oaimend_records_total", ["repository", "action"],
        "Records, headers, sets and formats: passed, repaired or quarantined.";
    set_collisions: IntCounterVec = "oaimend_set_collisions_total", ["repository"],
        "setSpecs that two sets of the source have after escaping.";
    failures: IntCounterVec = "oaimend_source_failures_total", ["repository", "reason"],
        "Requests without a usable response of the source, by reason.";
    oai_errors: IntCounterVec = "oaimend_oai_errors_total", ["repository", "code"],
        "Responses that are an OAI error, by code.";
    circuit_open: IntGaugeVec = "oaimend_circuit_open", ["repository"],
        "Whether requests to the source are stopped.";
    refused: IntCounterVec = "oaimend_refused_total", ["class", "reason"],
        "Requests and connections refused because of a limit for clients, by class and reason.";
    lookups: IntCounterVec = "oaimend_cache_lookups_total", ["repository", "outcome"],
        "Requests by use of the cache: hit, stale, collapsed, miss or bypass.";
    in_flight: IntGauge = "oaimend_requests_in_flight", [],
        "Requests in flight.";
    connections: IntGauge = "oaimend_connections_open", [],
        "Open connections of harvesters.";
    tls_expiry: IntGaugeVec = "oaimend_tls_certificate_expiry_seconds", ["listener"],
        "The end of the certificate, in seconds since 1970.";
    cache_entries: IntGauge = "oaimend_cache_entries", [],
        "Stored pages.";
    cache_bytes: IntGauge = "oaimend_cache_bytes", [],
        "Bytes of the stored pages on disk.";
    quarantine_records: IntGaugeVec = "oaimend_quarantine_records", ["repository", "state"],
        "Quarantined records by state.";
    quarantine_bytes: IntGaugeVec = "oaimend_quarantine_bytes", ["repository", "state"],
        "Bytes of the quarantine on disk by state of the records.";
    store_failed: IntGaugeVec = "oaimend_store_failed", ["store"],
        "Whether a store cannot be used since an error of the disk.";
    mirror_records: IntGaugeVec = "oaimend_mirror_records", ["repository"],
        "Records of the mirror that are not deleted.";
    mirror_tombstones: IntGaugeVec = "oaimend_mirror_tombstones", ["repository"],
        "Deleted records of the mirror.";
    mirror_bytes: IntGaugeVec = "oaimend_mirror_bytes", ["repository"],
        "Bytes of the records of the mirror on disk.";
    mirror_lag_secs: IntGaugeVec = "oaimend_mirror_lag_seconds", ["repository"],
        "Seconds since the state of the source that the mirror has reached.";
    mirror_last_success_secs: IntGaugeVec = "oaimend_mirror_last_success_timestamp_seconds", ["repository"],
        "Begin of the last complete harvest, in seconds since 1970.";
    mirror_missing: IntGaugeVec = "oaimend_mirror_missing_items", ["repository"],
        "Items that are missing in the mirror, unrepairable ones included.";
    mirror_unrepairable: IntGaugeVec = "oaimend_mirror_unrepairable_items", ["repository"],
        "Missing items whose bytes stay unreadable.";
    mirror_duplicates: IntGaugeVec = "oaimend_mirror_duplicates", ["repository"],
        "Records in the last lists of the source whose identifier came before, with another content.";
    harvests: IntCounterVec = "oaimend_mirror_harvests_total", ["repository", "outcome"],
        "Harvests of the mirror by outcome.";
    full_texts: IntCounterVec = "oaimend_full_texts_total", ["repository", "outcome"],
        "Full texts of records by outcome.";
    full_texts_waiting: IntGaugeVec = "oaimend_full_texts_waiting", ["repository"],
        "Records that were not examined for full texts yet, and those whose full text is fetched later.";
    searches: HistogramVec = "oaimend_search_duration_seconds", ["outcome"],
        "Time that searches in the index took.";
    search_records: IntGauge = "oaimend_search_records", [],
        "Records in the search index.";
    search_behind: IntGauge = "oaimend_search_changes_behind", [],
        "Changes of records in the mirror that are not in the search index yet.";
    search_lag_secs: IntGauge = "oaimend_search_lag_seconds", [],
        "Seconds since the search index had everything that is in the mirror.";
    search_bytes: IntGauge = "oaimend_search_bytes", [],
        "Bytes of the search index on disk.";
    folder_files: IntGaugeVec = "oaimend_folder_files", ["repository", "state"],
        "Files in the folders of local repositories by state: published, refused or waiting.";
    notifications: IntCounterVec = "oaimend_notifications_total", ["target", "result"],
        "Events for operators and reports to providers by target and result: sent, failed or dropped.";
}

#[cfg(test)]
mod tests {
    use super::super::labels::{
        CacheOutcome, FolderFileState, FullTextOutcome, HarvestOutcome, NotificationResult,
        NotificationTarget, RefusalReason, RequestOutcome, SearchOutcome,
    };
    use super::DECLARED;
    use oaimend_oai::Named;
    use oaimend_store::{QuarantineState, StoreName};
    use oaimend_test_support::root;

    fn names<N: Named>() -> impl Iterator<Item = &'static str> {
        N::ALL.iter().map(|value| value.name())
    }

    #[test]
    fn metrics_and_the_values_of_their_labels_are_documented() {
        let page = std::fs::read_to_string(root().join("docs/reference/metrics.md")).expect("a page");
        for (name, labels) in DECLARED {
            let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
            let row = format!("| `{name}` | {labels} |").replace("|  |", "| |");
            assert!(page.contains(&row), "{row}");
        }
        let values = names::<RequestOutcome>()
            .chain(names::<CacheOutcome>())
            .chain(names::<RefusalReason>())
            .chain(names::<HarvestOutcome>())
            .chain(names::<NotificationTarget>())
            .chain(names::<NotificationResult>())
            .chain(names::<SearchOutcome>())
            .chain(names::<FullTextOutcome>())
            .chain(names::<QuarantineState>())
            .chain(names::<FolderFileState>())
            .chain(names::<StoreName>());
        for value in values {
            assert!(page.contains(&format!("`{value}`")), "{value}");
        }
    }
}
