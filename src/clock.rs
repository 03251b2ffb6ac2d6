//! The only reader of the clock.
//!
//! Everything else is told the time, so that it can be tested at any time.
//! What has to wait is handed a [`Clock`], so that a test need not wait.

use chrono::{Datelike as _, Timelike as _};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// The time since this was asked first, which never goes back and knows no date.
#[expect(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub fn uptime() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// A time as OAI-PMH writes it, `YYYY-MM-DDThh:mm:ssZ`.
pub fn utc_datetime(time: SystemTime) -> String {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    let time = chrono::DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    let (day, second) = (time.date_naive(), time.time());
    // Each page needs some of them, and a format that is read anew each time costs five times as much.
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        day.year(),
        day.month(),
        day.day(),
        second.hour(),
        second.minute(),
        second.second()
    )
}

/// A time as whole seconds since 1970.
pub fn secs(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Time for those who wait.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time of day.
    fn now(&self) -> SystemTime {
        now()
    }

    /// A number from 0 to 1, for waits that must not be the same everywhere.
    fn chance(&self) -> f64 {
        fastrand::f64()
    }

    /// Waits on purpose, for so long.
    fn pause(&self, time: Duration) -> BoxFuture<'static, ()>;

    /// Ends when so much time has passed in which something else was expected.
    fn deadline(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// Time as it passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn pause(&self, time: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(time).boxed()
    }

    fn deadline(&self, time: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(time).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datetimes_are_whole_seconds_in_utc() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000_000_999);
        assert_eq!(utc_datetime(time), "2001-09-09T01:46:40Z");
        assert_eq!(utc_datetime(SystemTime::UNIX_EPOCH), "1970-01-01T00:00:00Z");
    }
}
