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
    /// Most bytes of raw records that the quarantine keeps for one repository.
    pub quarantine_bytes_max: u64,
    /// Longest page for an HTTP/1.0 client, which gets it in one piece, in bytes.
    pub spool_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            repair: repair::Limits::default(),
            response_bytes_max: 4 << 30,
            inflate_ratio_max: 1000,
            redirects_max: 5,
            first_record_timeout: Duration::from_secs(30),
            quarantine_bytes_max: 256 << 20,
            spool_bytes_max: 64 << 20,
        }
    }
}

impl Limits {
    /// Takes over what a `limits` table says.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        let repair = &mut self.repair;
        bytes(&mut table, "record_bytes_max", &mut repair.record_bytes_max);
        bytes(&mut table, "tag_bytes_max", &mut repair.tag_bytes_max);
        bytes(&mut table, "junk_bytes_max", &mut repair.junk_bytes_max);
        bytes(&mut table, "head_bytes_max", &mut repair.head_bytes_max);
        bytes(&mut table, "spool_bytes_max", &mut self.spool_bytes_max);
        count(&mut table, "repairs_per_record_max", 0..=10_000_000, &mut repair.repairs_per_record_max);
        count(&mut table, "depth_max", 8..=100_000, &mut repair.depth_max);
        count(&mut table, "attributes_per_tag_max", 8..=100_000, &mut repair.attributes_per_tag_max);
        count(&mut table, "redirects_max", 0..=20, &mut self.redirects_max);
        if let Some(bytes) = table.integer("response_bytes_max", 1024..=1 << 50) {
            self.response_bytes_max = bytes;
        }
        if let Some(bytes) = table.integer("quarantine_bytes_max", 0..=1 << 50) {
            self.quarantine_bytes_max = bytes;
        }
        if let Some(ratio) = table.integer("inflate_ratio_max", 1..=1_000_000) {
            self.inflate_ratio_max = ratio;
        }
        if let Some(seconds) = table.integer("first_record_timeout_secs", 1..=3600) {
            self.first_record_timeout = Duration::from_secs(seconds);
        }
        table.finish();
    }
}

fn bytes(table: &mut Table<'_, '_>, key: &'static str, limit: &mut usize) {
    count(table, key, 1024..=1 << 40, limit);
}

fn count(
    table: &mut Table<'_, '_>,
    key: &'static str,
    range: std::ops::RangeInclusive<u64>,
    limit: &mut usize,
) {
    if let Some(count) = table.integer(key, range).and_then(|count| usize::try_from(count).ok()) {
        *limit = count;
    }
}
