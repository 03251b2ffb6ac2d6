//! The limits on one response; each name contains its unit.

use std::time::Duration;

/// Limits on one response and on one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The limits of the repair engine.
    pub repair: oaimend_repair::Limits,
    /// The longest body, in bytes after decoding.
    pub response_bytes_max: u64,
    /// Maximum number of decoded bytes for each received byte, after the first decoded MiB.
    pub inflate_ratio_max: u64,
    /// Maximum number of compressed bytes in a row that decode to nothing.
    pub inflate_empty_bytes_max: u64,
    /// Maximum number of redirects that are followed.
    pub redirects_max: usize,
    /// The longest wait for the first valid item, error or other response.
    pub first_record_timeout: Duration,
    /// How long harvesters are asked to retry while a source, or one request, fails.
    pub outage_retry: Duration,
    /// The size of all raw records in the quarantine of one repository, in bytes.
    pub quarantine_bytes_max: u64,
    /// The longest time that a resolved entry stays in the quarantine, in days; 0: until it is removed.
    pub quarantine_resolved_days_max: u64,
    /// The longest time that an open entry stays in the quarantine after it was last seen, in days; 0: until it is
    /// removed.
    pub quarantine_open_days_max: u64,
    /// The longest page for an HTTP/1.0 client, which receives it in one piece, in bytes.
    pub spool_bytes_max: usize,
    /// The longest static repository file, in bytes of its text.
    pub static_file_bytes_max: u64,
    /// Maximum number of records in a static repository file, in all formats together.
    pub static_records_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            repair: oaimend_repair::Limits::default(),
            response_bytes_max: 4 << 30,
            inflate_ratio_max: 1000,
            inflate_empty_bytes_max: 1 << 20,
            redirects_max: 5,
            first_record_timeout: Duration::from_secs(30),
            outage_retry: Duration::from_secs(900),
            quarantine_bytes_max: 256 << 20,
            quarantine_resolved_days_max: 30,
            quarantine_open_days_max: 0,
            spool_bytes_max: 64 << 20,
            static_file_bytes_max: 256 << 20,
            static_records_max: 1_000_000,
        }
    }
}
