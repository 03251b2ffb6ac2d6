//! The `limits` table of a mapping and of `oaimend.toml`.

use super::file::Table;
use oaimend_upstream::settings::Limits;

/// Takes the values of a `limits` table over.
pub(super) fn read_limits(limits: &mut Limits, mut table: Table<'_, '_>) {
    let repair = &mut limits.repair;
    table.set_count("record_bytes_max", BYTES, &mut repair.record_bytes_max);
    table.set_count("tag_bytes_max", BYTES, &mut repair.tag_bytes_max);
    table.set_count("junk_bytes_max", BYTES, &mut repair.junk_bytes_max);
    table.set_count("head_bytes_max", BYTES, &mut repair.head_bytes_max);
    table.set_count("spool_bytes_max", BYTES, &mut limits.spool_bytes_max);
    table.set_count("repairs_per_record_max", 0..=10_000_000, &mut repair.repairs_per_record_max);
    table.set_count("entity_bytes_max", 0..=1 << 30, &mut repair.entity_bytes_max);
    table.set_count("depth_max", 8..=100_000, &mut repair.depth_max);
    table.set_count("attributes_per_tag_max", 8..=100_000, &mut repair.attributes_per_tag_max);
    table.set_count("redirects_max", 0..=20, &mut limits.redirects_max);
    table.set_count("static_records_max", 1..=100_000_000, &mut limits.static_records_max);
    table.set_number("static_file_bytes_max", 1024..=1 << 40, &mut limits.static_file_bytes_max);
    table.set_number("response_bytes_max", 1024..=1 << 50, &mut limits.response_bytes_max);
    table.set_number("quarantine_bytes_max", 0..=1 << 50, &mut limits.quarantine_bytes_max);
    table.set_number("quarantine_resolved_days_max", DAYS, &mut limits.quarantine_resolved_days_max);
    table.set_number("quarantine_open_days_max", DAYS, &mut limits.quarantine_open_days_max);
    table.set_number("inflate_ratio_max", 1..=1_000_000, &mut limits.inflate_ratio_max);
    table.set_number("inflate_empty_bytes_max", 1024..=1 << 40, &mut limits.inflate_empty_bytes_max);
    table.set_seconds("first_record_timeout_secs", 1..=3600, &mut limits.first_record_timeout);
    table.set_seconds("outage_retry_secs", 0..=86_400, &mut limits.outage_retry);
    table.finish();
}

/// The range of a limit in days.
const DAYS: std::ops::RangeInclusive<u64> = 0..=36_500;
/// The range of a limit in bytes.
const BYTES: std::ops::RangeInclusive<u64> = 1024..=1 << 40;
