//! The `politeness` table of a mapping: the limits on our requests to a source.

use super::file::Table;
use oaimend_upstream::settings::Politeness;
use std::num::NonZeroU32;
use std::time::Duration;

/// Takes the values of a `politeness` table over.
pub(super) fn read_politeness(politeness: &mut Politeness, mut table: Table<'_, '_>) {
    table.set_count("list_requests_max", 1..=1000, &mut politeness.list_requests_max);
    if let Some(millis) = table.read_integer("gap_millis", 0..=3_600_000) {
        politeness.gap = Duration::from_millis(millis);
    }
    if let Some(max) = table.read_integer("requests_per_minute_max", 1..=1_000_000) {
        politeness.requests_per_minute_max = u32::try_from(max).ok().and_then(NonZeroU32::new);
    }
    table.finish();
}
