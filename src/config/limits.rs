//! The `limits` table of a mapping and of `oaimend.toml`.

use super::keys::{Keys, declare, seconds, whole};
use oaimend_upstream::settings::Limits;

/// The keys of the table.
pub(super) fn declare(limits: &mut Limits, keys: &mut Keys<'_, '_>) {
    declare_record_limits(&mut limits.repair, keys);
    declare_response_limits(limits, keys);
    declare_storage_limits(limits, keys);
}

fn declare_record_limits(limits: &mut oaimend_repair::Limits, keys: &mut Keys<'_, '_>) {
    declare! { keys:
        /// Maximum length of a record that is held in memory. A longer one is streamed while it is
        /// strictly clean. Otherwise it is quarantined as `record-too-long`.
        record_bytes_max: whole(BYTES) => limits.record_bytes_max,
        /// Maximum number of repairs in one record.
        repairs_per_record_max: whole(0..=10_000_000) => limits.repairs_per_record_max,
        /// Maximum length of the text that replaces references to entities of a DOCTYPE in one record.
        /// Further references become literal text.
        entity_bytes_max: whole(0..=1 << 30) => limits.entity_bytes_max,
        /// Maximum nesting of elements in one record.
        depth_max: whole(8..=100_000) => limits.depth_max,
        /// Maximum number of attributes of a tag.
        attributes_per_tag_max: whole(8..=100_000) => limits.attributes_per_tag_max,
        /// Maximum length of a tag.
        tag_bytes_max: whole(BYTES) => limits.tag_bytes_max,
        /// Maximum length of foreign text before the document.
        junk_bytes_max: whole(BYTES) => limits.junk_bytes_max,
        /// Maximum length from the document element to the first record.
        head_bytes_max: whole(BYTES) => limits.head_bytes_max,
    }
}

fn declare_response_limits(limits: &mut Limits, keys: &mut Keys<'_, '_>) {
    declare! { keys:
        /// Maximum length of a page after decompression.
        response_bytes_max: whole(1024..=1 << 50) => limits.response_bytes_max,
        /// Maximum number of decompressed bytes for one received byte, after the first MiB.
        inflate_ratio_max: whole(1..=1_000_000) => limits.inflate_ratio_max,
        /// Maximum number of compressed bytes in a row that decompress to nothing, such as padding.
        inflate_empty_bytes_max: whole(1024..=1 << 40) => limits.inflate_empty_bytes_max,
        /// Maximum number of redirects for one request.
        redirects_max: whole(0..=20) => limits.redirects_max,
        /// How long a request waits for its first record, over all attempts and with all work on broken records, in
        /// seconds. Then the source has failed. It is also the wait for each next record. Then the list ends with a
        /// continuation token.
        first_record_timeout_secs: seconds(1..=3600) => limits.first_record_timeout,
        /// How long harvesters get a 503 with `Retry-After` during an outage. Then they get a 502 or
        /// 504.
        outage_retry_secs: seconds(0..=86_400) => limits.outage_retry,
        /// Maximum length of a page for an HTTP/1.0 client that bypasses the cache. A longer one is a
        /// 502. With the cache, `cache.entry_bytes_max` is the limit.
        spool_bytes_max: whole(BYTES) => limits.spool_bytes_max,
    }
}

fn declare_storage_limits(limits: &mut Limits, keys: &mut Keys<'_, '_>) {
    declare! { keys:
        /// Maximum size of the quarantine of one repository on disk: whole blocks of 4 KiB for each
        /// record, and its entry. Then the entries that were resolved first are removed. If all are open, the page
        /// fails.
        quarantine_bytes_max: whole(0..=1 << 50) => limits.quarantine_bytes_max,
        /// How long a resolved entry stays in the quarantine. 0: until an operator removes it.
        quarantine_resolved_days_max: whole(DAYS) => limits.quarantine_resolved_days_max,
        /// How long an open entry stays in the quarantine after it was last seen. 0: until an operator
        /// removes it.
        quarantine_open_days_max: whole(DAYS) => limits.quarantine_open_days_max,
        /// Maximum length of a static repository file.
        static_file_bytes_max: whole(1024..=1 << 40) => limits.static_file_bytes_max,
        /// Maximum number of records in a static repository file, in all formats together. Each needs 36 bytes of
        /// memory.
        static_records_max: whole(1..=100_000_000) => limits.static_records_max,
    }
}

/// The range of a limit in days.
const DAYS: std::ops::RangeInclusive<u64> = 0..=36_500;
/// The range of a limit in bytes.
const BYTES: std::ops::RangeInclusive<u64> = 1024..=1 << 40;
