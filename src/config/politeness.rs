//! How a source is to be treated: the `politeness` table of a mapping.

use super::file::Table;
use std::num::NonZeroU32;
use std::time::Duration;

/// Bounds on what we ask of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Politeness {
    /// Most list requests in flight.
    pub list_requests_max: usize,
    /// Shortest time between the beginnings of two requests.
    pub gap: Duration,
    /// Most requests in a minute; `None`: as many as the others allow.
    pub requests_per_minute_max: Option<NonZeroU32>,
}

impl Default for Politeness {
    fn default() -> Self {
        Self { list_requests_max: 1, gap: Duration::ZERO, requests_per_minute_max: None }
    }
}

impl Politeness {
    /// Takes over what a `politeness` table says.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        table.count("list_requests_max", 1..=1000, &mut self.list_requests_max);
        if let Some(millis) = table.integer("gap_millis", 0..=3_600_000) {
            self.gap = Duration::from_millis(millis);
        }
        if let Some(max) = table.integer("requests_per_minute_max", 1..=1_000_000) {
            self.requests_per_minute_max = u32::try_from(max).ok().and_then(NonZeroU32::new);
        }
        table.finish();
    }
}
