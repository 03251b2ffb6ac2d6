//! The `politeness` table of a mapping: the limits on our requests to a source.

use super::file::Table;
use std::num::NonZeroU32;
use std::time::Duration;

/// Limits on our requests to a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Politeness {
    /// List requests in flight.
    pub list_requests_max: usize,
    /// The shortest time between the starts of two requests.
    pub gap: Duration,
    /// Requests per minute; `None`: only the other limits apply.
    pub requests_per_minute_max: Option<NonZeroU32>,
}

impl Default for Politeness {
    fn default() -> Self {
        Self { list_requests_max: 1, gap: Duration::ZERO, requests_per_minute_max: None }
    }
}

impl Politeness {
    /// Takes the values of a `politeness` table over.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        table.set_count("list_requests_max", 1..=1000, &mut self.list_requests_max);
        if let Some(millis) = table.read_integer("gap_millis", 0..=3_600_000) {
            self.gap = Duration::from_millis(millis);
        }
        if let Some(max) = table.read_integer("requests_per_minute_max", 1..=1_000_000) {
            self.requests_per_minute_max = u32::try_from(max).ok().and_then(NonZeroU32::new);
        }
        table.finish();
    }
}
