//! The `[cache]` table of `oaimend.toml`: the size of the cache and the lifetimes of its entries.

use super::keys::{Flag, Keys, declare, seconds, whole};
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
    /// The keys of the table.
    pub(super) fn declare(&mut self, keys: &mut Keys<'_, '_>) {
        declare! { keys:
            /// Whether responses are stored and identical concurrent requests are coalesced. Without the cache each
            /// request goes to the source, and the harvester determines the speed.
            enabled: Flag => self.enabled,
            /// Maximum size of all stored pages in `data/cache`. The least recently used pages are
            /// removed first.
            bytes_max: whole(0..=1 << 50) => self.bytes_max,
            /// Maximum length of a stored page. It is also how far a source is read ahead of the slowest
            /// harvester of a page. Each page in flight can use this space in addition to `bytes_max`.
            entry_bytes_max: whole(SPOOL_BYTES_MIN..=1 << 40) => self.entry_bytes_max,
            /// How long responses to Identify, ListMetadataFormats, ListSets and GetRecord are fresh.
            fresh_secs: seconds(0..=7 * DAY_SECS) => self.fresh,
            /// How long the response to a resumptionToken is fresh.
            token_pages_secs: seconds(0..=3600) => self.token_pages,
            /// How long after it was fresh a response is still served if the source fails.
            stale_if_error_secs: seconds(0..=365 * DAY_SECS) => self.stale_if_error,
            /// How long a failure of the source, or an OAI error, is the response to the same request.
            failures_secs: seconds(0..=3600) => self.failures,
        }
    }
}

/// The least `entry_bytes_max`: one read and one write have to fit.
const SPOOL_BYTES_MIN: u64 = 1 << 20;
const DAY_SECS: u64 = 86_400;
