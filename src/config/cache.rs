//! The `[cache]` table of `oaimend.toml`: what is kept, how long, how much of it.

use super::file::Table;
use std::time::Duration;

/// What is kept of answers, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Whether anything is kept at all. Without it each request is a conversation of its own.
    pub enabled: bool,
    /// Most that all kept pages take on the disk, in bytes.
    pub bytes_max: u64,
    /// Longest page that is kept, in bytes; also how far a source may be ahead
    /// of the slowest harvester that reads the same page.
    pub entry_bytes_max: u64,
    /// How long Identify, ListMetadataFormats, ListSets and GetRecord are answered
    /// without asking the source.
    pub fresh: Duration,
    /// How long a page behind a resumptionToken is.
    pub token_pages: Duration,
    /// How long after that they may still be an answer when the source fails.
    pub stale_if_error: Duration,
    /// How long a failure of the source, or an OAI error, is the answer to the same request.
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
    /// Takes over what the table says.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        if let Some(enabled) = table.boolean("enabled") {
            self.enabled = enabled;
        }
        table.number("bytes_max", 0..=1 << 50, &mut self.bytes_max);
        table.number("entry_bytes_max", SPOOL_BYTES_MIN..=1 << 40, &mut self.entry_bytes_max);
        table.seconds("fresh_secs", 0..=7 * DAY_SECS, &mut self.fresh);
        table.seconds("token_pages_secs", 0..=3600, &mut self.token_pages);
        table.seconds("stale_if_error_secs", 0..=365 * DAY_SECS, &mut self.stale_if_error);
        table.seconds("failures_secs", 0..=3600, &mut self.failures);
        table.finish();
    }
}

/// Least that `entry_bytes_max` can be: what is read and written at once has to fit.
const SPOOL_BYTES_MIN: u64 = 1 << 20;
const DAY_SECS: u64 = 86_400;
