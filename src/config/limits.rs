//! The bounds on what one response may cost, each with its unit in its name.

use super::file::Table;
use crate::repair;
use std::time::Duration;

/// Bounds on one response and on one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bounds of the repair engine.
    pub repair: repair::Limits,
    /// Longest body, in bytes after decoding.
    pub response_bytes_max: u64,
    /// Most decoded bytes for one received byte, once a MiB is decoded.
    pub inflate_ratio_max: u64,
    /// Most redirects that are followed.
    pub redirects_max: usize,
    /// Longest wait until the first good item, error or other answer is there.
    pub first_record_timeout: Duration,
    /// How long harvesters are told to come again while a source, or one request, fails.
    pub outage_retry: Duration,
    /// Most bytes of raw records that the quarantine keeps for one repository.
    pub quarantine_bytes_max: u64,
    /// Longest page for an HTTP/1.0 client, which gets it in one piece, in bytes.
    pub spool_bytes_max: usize,
    /// Longest static repository file, in bytes of its text.
    pub static_file_bytes_max: u64,
    /// Most records in a static repository file, in all formats together.
    pub static_records_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            repair: repair::Limits::default(),
            response_bytes_max: 4 << 30,
            inflate_ratio_max: 1000,
            redirects_max: 5,
            first_record_timeout: Duration::from_secs(30),
            outage_retry: Duration::from_secs(900),
            quarantine_bytes_max: 256 << 20,
            spool_bytes_max: 64 << 20,
            static_file_bytes_max: 256 << 20,
            static_records_max: 1_000_000,
        }
    }
}

impl Limits {
    /// Takes over what a `limits` table says.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        let repair = &mut self.repair;
        table.count("record_bytes_max", BYTES, &mut repair.record_bytes_max);
        table.count("tag_bytes_max", BYTES, &mut repair.tag_bytes_max);
        table.count("junk_bytes_max", BYTES, &mut repair.junk_bytes_max);
        table.count("head_bytes_max", BYTES, &mut repair.head_bytes_max);
        table.count("spool_bytes_max", BYTES, &mut self.spool_bytes_max);
        table.count("repairs_per_record_max", 0..=10_000_000, &mut repair.repairs_per_record_max);
        table.count("depth_max", 8..=100_000, &mut repair.depth_max);
        table.count("attributes_per_tag_max", 8..=100_000, &mut repair.attributes_per_tag_max);
        table.count("redirects_max", 0..=20, &mut self.redirects_max);
        table.count("static_records_max", 1..=100_000_000, &mut self.static_records_max);
        table.number("static_file_bytes_max", 1024..=1 << 40, &mut self.static_file_bytes_max);
        table.number("response_bytes_max", 1024..=1 << 50, &mut self.response_bytes_max);
        table.number("quarantine_bytes_max", 0..=1 << 50, &mut self.quarantine_bytes_max);
        table.number("inflate_ratio_max", 1..=1_000_000, &mut self.inflate_ratio_max);
        table.seconds("first_record_timeout_secs", 1..=3600, &mut self.first_record_timeout);
        table.seconds("outage_retry_secs", 0..=86_400, &mut self.outage_retry);
        table.finish();
    }
}

/// What a limit in bytes may be.
const BYTES: std::ops::RangeInclusive<u64> = 1024..=1 << 40;
