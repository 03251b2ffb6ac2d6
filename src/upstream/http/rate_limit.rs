//! Limits requests to a host: how many lists at a time, and how soon one request follows another.
//!
//! The limits are those of a host and port, not of a repository: many repositories share a server. They are
//! configured. Within them, the gap between two requests follows the load of the source: the rate rises by
//! a step with each good response, and is halved at each sign of overload (AIMD). A permit is held for one
//! attempt and released before any wait.

use crate::config::Politeness;
use crate::repository::{Failure, Reason};
use crate::upstream::http::deadline::Deadline;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits of one host and port.
#[derive(Debug)]
pub(crate) struct HostLimiter {
    lists: Arc<Semaphore>,
    rate: Option<DefaultDirectRateLimiter>,
    pace: Mutex<Pace>,
}

/// A permit for one request. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct HostPermit(#[expect(dead_code, reason = "it is held")] Option<OwnedSemaphorePermit>);

/// The gap between requests. Pure: the time is an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pace {
    gap_min: Duration,
    gap: Duration,
    next_at: SystemTime,
}

/// The gap after the first sign of overload.
const GAP_FIRST: Duration = Duration::from_millis(500);
const GAP_MAX: Duration = Duration::from_secs(10);
/// A shorter gap counts as none.
const GAP_MIN: Duration = Duration::from_millis(250);
/// The rise of the rate with each good response, in requests per second.
const RATE_STEP: f64 = 0.5;
/// A response header that takes longer is a sign of overload.
const SLOW: Duration = Duration::from_secs(15);

impl HostLimiter {
    pub(crate) fn new(politeness: &Politeness) -> Self {
        Self {
            lists: Arc::new(Semaphore::new(politeness.list_requests_max)),
            rate: politeness.requests_per_minute_max.map(|max| RateLimiter::direct(Quota::per_minute(max))),
            pace: Mutex::new(Pace::new(politeness.gap)),
        }
    }

    /// Waits for a permit, within the deadline.
    pub(crate) async fn acquire(
        &self,
        is_list: bool,
        name: &str,
        budget: &mut Deadline,
    ) -> Result<HostPermit, Failure> {
        let busy = |what: &str| {
            let details = format!("{name} is busy with other requests, and {what}; send the request again");
            Failure::new(Reason::Busy, details)
        };
        let permit = match is_list {
            false => None,
            true => match budget.within(Duration::MAX, Arc::clone(&self.lists).acquire_owned()).await {
                Ok(Ok(permit)) => Some(permit),
                Ok(Err(_)) | Err(_) => {
                    return Err(busy(
                        "no further list may be requested at the same time (list_requests_max)",
                    ));
                }
            },
        };
        let rated = self.rate.as_ref().and_then(|rate| rate.check().err());
        let rated = rated.map_or(Duration::ZERO, |late| late.wait_time_from(DefaultClock::default().now()));
        let Some(wait) = self.reserve(rated, budget) else {
            return Err(busy("the gap between two requests is longer than the time left for this one"));
        };
        if !wait.is_zero() {
            budget.pause(wait).await;
        }
        Ok(HostPermit(permit))
    }

    /// Reserves a slot and returns the wait for it, at least `at_least`. `None` reserves nothing if there
    /// is no time for it: an unused slot would delay all others.
    fn reserve(&self, at_least: Duration, budget: &Deadline) -> Option<Duration> {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = at_least.max(pace.wait(budget.now()));
        (wait < budget.left()).then(|| wait.max(pace.reserve(budget.now())))
    }

    /// Notes the response to a request: its status, `Retry-After`, and the time until its header.
    pub(crate) fn note(
        &self,
        now: SystemTime,
        status: Option<u16>,
        retry_after_secs: Option<u64>,
        took: Duration,
    ) {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        match status {
            Some(429 | 503) | None => pace.press(now, retry_after_secs),
            Some(_) if took > SLOW => pace.press(now, None),
            Some(_) => pace.ease(),
        }
    }
}

impl Pace {
    fn new(gap_min: Duration) -> Self {
        Self { gap_min, gap: gap_min, next_at: SystemTime::UNIX_EPOCH }
    }

    /// How long the next request has to wait.
    fn wait(&self, now: SystemTime) -> Duration {
        self.next_at.duration_since(now).unwrap_or_default()
    }

    /// The same, and delays the request after it.
    fn reserve(&mut self, now: SystemTime) -> Duration {
        let wait = self.wait(now);
        self.next_at = now + wait + self.gap;
        wait
    }

    fn press(&mut self, now: SystemTime, retry_after_secs: Option<u64>) {
        self.gap = (self.gap * 2).clamp(GAP_FIRST, GAP_MAX.max(self.gap_min));
        let requested = Duration::from_secs(retry_after_secs.unwrap_or(0).min(3600));
        // No request is sent before the time in Retry-After.
        self.next_at = self.next_at.max(now + requested);
    }

    fn ease(&mut self) {
        let rate = RATE_STEP + 1.0 / self.gap.as_secs_f64().max(f64::EPSILON);
        let gap = Duration::from_secs_f64(1.0 / rate);
        self.gap = if gap <= GAP_MIN { self.gap_min } else { gap.max(self.gap_min) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn millis(wait: Duration) -> u128 {
        wait.as_millis()
    }

    #[test]
    fn without_a_gap_requests_wait_only_after_signs_of_overload() {
        let mut pace = Pace::new(Duration::ZERO);
        assert!((0..10).all(|_| pace.reserve(at(0)).is_zero()));
        pace.press(at(0), None);
        assert_eq!([millis(pace.reserve(at(0))), millis(pace.reserve(at(0)))], [0, 500]);
        pace.press(at(0), None);
        assert_eq!(pace.gap, Duration::from_secs(1));
        let gaps: Vec<u128> = (0..8)
            .map(|_| {
                pace.ease();
                millis(pace.gap)
            })
            .collect();
        assert_eq!(gaps, [666, 500, 400, 333, 285, 0, 0, 0]);
    }

    #[test]
    fn the_gap_never_falls_below_its_configured_value() {
        let mut pace = Pace::new(Duration::from_millis(300));
        let waits: Vec<u128> = (0..4).map(|_| millis(pace.reserve(at(0)))).collect();
        assert_eq!(waits, [0, 300, 600, 900]);
        assert_eq!(millis(pace.reserve(at(5_000))), 0);
        pace.ease();
        assert_eq!(pace.gap, Duration::from_millis(300));
        for _ in 0..20 {
            pace.press(at(0), None);
        }
        assert_eq!(pace.gap, GAP_MAX);
    }

    #[test]
    fn retry_after_delays_all_requests() {
        let mut pace = Pace::new(Duration::ZERO);
        pace.press(at(0), Some(7));
        assert_eq!(millis(pace.reserve(at(1_000))), 6_000);
        pace.press(at(0), Some(u64::MAX));
        assert_eq!(pace.reserve(at(0)), Duration::from_secs(3600));
    }
}
