//! The only reader of the clock.
//!
//! Everything else is told the time, so that it can be tested at any time.
//! What has to wait is handed a [`Clock`], so that a test need not wait.

use chrono::{DateTime, SecondsFormat, Utc};
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
    utc(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A time as the log writes it, with microseconds.
pub fn utc_micros(time: SystemTime) -> String {
    utc(time).to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn utc(time: SystemTime) -> DateTime<Utc> {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, since_1970.subsec_nanos()).unwrap_or_default()
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
