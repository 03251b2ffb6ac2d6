//! The only module that reads the clock.
//!
//! All other code receives the time as an argument, so that tests can use any time. Code that waits
//! receives a [`Clock`], so that tests need not wait.

use chrono::{DateTime, SecondsFormat, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use oaimend_oai::UnixSecs;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

/// The current date and time.
#[expect(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// The monotonic time since the first call.
#[expect(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub fn uptime() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// Formats a time as in OAI-PMH, `YYYY-MM-DDThh:mm:ssZ`.
pub fn utc_datetime(time: SystemTime) -> String {
    utc(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Formats a time as in the log, with microseconds.
pub fn utc_micros(time: SystemTime) -> String {
    utc(time).to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn utc(time: SystemTime) -> DateTime<Utc> {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, since_1970.subsec_nanos()).unwrap_or_default()
}

/// Converts a time to whole seconds since 1970.
pub fn secs(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Converts a time to whole seconds since 1970, as all arithmetic on times uses them.
pub fn unix_secs(time: SystemTime) -> UnixSecs {
    UnixSecs(i64::try_from(secs(time)).unwrap_or(i64::MAX))
}

/// A source of time, for code that waits.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The current date and time.
    fn now(&self) -> SystemTime {
        now()
    }

    /// The current time in whole seconds since 1970.
    fn now_secs(&self) -> UnixSecs {
        unix_secs(self.now())
    }

    /// A random number from 0 to 1, to spread waits.
    fn chance(&self) -> f64 {
        fastrand::f64()
    }

    /// Waits for this time, as a deliberate pause.
    fn pause(&self, time: Duration) -> BoxFuture<'static, ()>;

    /// Completes after this time, as a timeout of something else.
    fn deadline(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// The real time.
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
