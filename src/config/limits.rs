//! The limits on one response; each name contains its unit.

use super::file::Table;
use crate::repair;
use std::time::Duration;

/// Limits on one response and on one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The limits of the repair engine.
    pub repair: repair::Limits,
    /// The longest body, in bytes after decoding.
    pub response_bytes_max: u64,
    /// The number of decoded bytes for each received byte, after the first decoded MiB.
    pub inflate_ratio_max: u64,
    /// The number of compressed bytes in a row that decode to nothing.
    pub inflate_empty_bytes_max: u64,
    /// The number of redirects that are followed.
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
    /// The number of records in a static repository file, in all formats together.
    pub static_records_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            repair: repair::Limits::default(),
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

impl Limits {
    /// Takes the values of a `limits` table over.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        let repair = &mut self.repair;
        table.set_count("record_bytes_max", BYTES, &mut repair.record_bytes_max);
        table.set_count("tag_bytes_max", BYTES, &mut repair.tag_bytes_max);
        table.set_count("junk_bytes_max", BYTES, &mut repair.junk_bytes_max);
        table.set_count("head_bytes_max", BYTES, &mut repair.head_bytes_max);
        table.set_count("spool_bytes_max", BYTES, &mut self.spool_bytes_max);
        table.set_count("repairs_per_record_max", 0..=10_000_000, &mut repair.repairs_per_record_max);
        table.set_count("entity_bytes_max", 0..=1 << 30, &mut repair.entity_bytes_max);
        table.set_count("depth_max", 8..=100_000, &mut repair.depth_max);
        table.set_count("attributes_per_tag_max", 8..=100_000, &mut repair.attributes_per_tag_max);
        table.set_count("redirects_max", 0..=20, &mut self.redirects_max);
        table.set_count("static_records_max", 1..=100_000_000, &mut self.static_records_max);
        table.set_number("static_file_bytes_max", 1024..=1 << 40, &mut self.static_file_bytes_max);
        table.set_number("response_bytes_max", 1024..=1 << 50, &mut self.response_bytes_max);
        table.set_number("quarantine_bytes_max", 0..=1 << 50, &mut self.quarantine_bytes_max);
        table.set_number("quarantine_resolved_days_max", DAYS, &mut self.quarantine_resolved_days_max);
        table.set_number("quarantine_open_days_max", DAYS, &mut self.quarantine_open_days_max);
        table.set_number("inflate_ratio_max", 1..=1_000_000, &mut self.inflate_ratio_max);
        table.set_number("inflate_empty_bytes_max", 1024..=1 << 40, &mut self.inflate_empty_bytes_max);
        table.set_seconds("first_record_timeout_secs", 1..=3600, &mut self.first_record_timeout);
        table.set_seconds("outage_retry_secs", 0..=86_400, &mut self.outage_retry);
        table.finish();
    }
}

/// The range of a limit in days.
const DAYS: std::ops::RangeInclusive<u64> = 0..=36_500;
/// The range of a limit in bytes.
const BYTES: std::ops::RangeInclusive<u64> = 1024..=1 << 40;
