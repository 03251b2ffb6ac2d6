//! The metadata of a cached page.

use super::rules::Retention;
use std::time::{Duration, SystemTime};

/// The metadata of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageMeta {
    /// When the request for the page started.
    pub(super) began: SystemTime,
    retention: Retention,
}

impl PageMeta {
    pub(super) fn new(began: SystemTime, retention: Retention) -> Self {
        Self { began, retention }
    }

    /// Whether the page is fresh at that time.
    pub(super) fn is_fresh(&self, now: SystemTime) -> bool {
        now < self.retention.fresh_until
    }

    /// Whether the page may replace a failure at that time.
    pub(super) fn is_usable_if_error(&self, now: SystemTime) -> bool {
        now < self.retention.fresh_until + self.retention.stale_if_error
    }

    /// The stored form.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Retention { fresh_until, stale_if_error } = self.retention;
        let times = [since_1970(self.began), since_1970(fresh_until), stale_if_error];
        times.iter().flat_map(|time| nanos(*time).to_le_bytes()).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (times, []) = bytes.as_chunks::<8>() else { return None };
        let &[began, fresh_until, stale_if_error] = times else { return None };
        let time = |nanos| Duration::from_nanos(u64::from_le_bytes(nanos));
        let at = |nanos| SystemTime::UNIX_EPOCH + time(nanos);
        let retention = Retention { fresh_until: at(fresh_until), stale_if_error: time(stale_if_error) };
        Some(Self { began: at(began), retention })
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
