//! The `[cache]` table of `oaimend.toml`: the size of the cache and the lifetimes of its entries.

use super::file::Table;
use std::time::Duration;

/// The size of the cache and the lifetimes of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Whether responses are cached at all. If not, each request is sent to the source.
    pub enabled: bool,
    /// The size of all cached pages on disk, in bytes.
    pub bytes_max: u64,
    /// The longest cached page, in bytes. A source is read at most this far ahead of the slowest
    /// harvester of the same page.
    pub entry_bytes_max: u64,
    /// How long Identify, ListMetadataFormats, ListSets and GetRecord are fresh.
    pub fresh: Duration,
    /// How long a page of a resumptionToken is fresh.
    pub token_pages: Duration,
    /// How long after that a stale page may be served when the source fails.
    pub stale_if_error: Duration,
    /// How long a failure of the source, or an OAI error, is served for the same request.
    pub failures: Duration,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            enabled: true,
            bytes_max: 1 << 30,
            entry_bytes_max: 64 << 20,
            fresh: Duration::from_secs(300),
            token_pages: Duration::from_secs(60),
            stale_if_error: Duration::from_secs(86_400),
            failures: Duration::from_secs(5),
        }
    }
}

impl Cache {
    /// Takes the values of the table over.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        if let Some(enabled) = table.read_bool("enabled") {
            self.enabled = enabled;
        }
        table.set_number("bytes_max", 0..=1 << 50, &mut self.bytes_max);
        table.set_number("entry_bytes_max", SPOOL_BYTES_MIN..=1 << 40, &mut self.entry_bytes_max);
        table.set_seconds("fresh_secs", 0..=7 * DAY_SECS, &mut self.fresh);
        table.set_seconds("token_pages_secs", 0..=3600, &mut self.token_pages);
        table.set_seconds("stale_if_error_secs", 0..=365 * DAY_SECS, &mut self.stale_if_error);
        table.set_seconds("failures_secs", 0..=3600, &mut self.failures);
        table.finish();
    }
}

/// The least `entry_bytes_max`: one read and one write have to fit.
const SPOOL_BYTES_MIN: u64 = 1 << 20;
const DAY_SECS: u64 = 86_400;
