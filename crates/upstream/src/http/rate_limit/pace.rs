//! The time of the next request.
//!
//! The gap between two requests follows the load of the source: the rate rises by a step with each good response, and
//! is halved at each sign of overload (AIMD). Pure: the time is an argument.

use crate::http::steady_time::SteadyTime;
use crate::settings::Politeness;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

/// The gap between requests, and their number in each minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    gap_min: Duration,
    gap_max: Duration,
    gap: Duration,
    next_at: SystemTime,
    rate: Option<Rate>,
    /// All other times are steady.
    time: SteadyTime,
}

/// The requests of a minute: a bucket that loses them one by one, and has room for those of one minute (GCRA).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rate {
    /// The time in which the bucket loses a request.
    interval: Duration,
    /// The time in which a full bucket makes room for the next request, less than its time to become empty.
    tolerance: Duration,
    /// When the bucket is empty.
    empty_at: SystemTime,
}

/// The gap after the first sign of overload.
const GAP_FIRST: Duration = Duration::from_millis(500);
/// The longest gap after signs of overload.
const GAP_MAX: Duration = Duration::from_secs(10);
/// The part of the time for a first record that such a gap may take. A request of a harvester can need several
/// requests to the source, which all wait.
const BUDGET_PARTS: u32 = 6;
/// A shorter gap counts as none.
const GAP_MIN: Duration = Duration::from_millis(250);
/// The rise of the rate with each good response, in requests per second.
const RATE_STEP: f64 = 0.5;

impl Pace {
    /// The configured pace. `budget` is the time that a request may take until its first record.
    pub(super) fn new(politeness: &Politeness, budget: Duration) -> Self {
        let gap_min = politeness.gap;
        Self {
            gap_min,
            gap_max: GAP_MAX.min(budget / BUDGET_PARTS).max(gap_min),
            gap: gap_min,
            next_at: SystemTime::UNIX_EPOCH,
            rate: politeness.requests_per_minute_max.map(Rate::new),
            time: SteadyTime::default(),
        }
    }

    /// How long the next request has to wait.
    pub(super) fn wait(&mut self, now: SystemTime) -> Duration {
        let now = self.time.advance(now);
        let rated = self.rate.as_ref().map_or(Duration::ZERO, |rate| rate.wait(now));
        self.next_at.duration_since(now).unwrap_or_default().max(rated)
    }

    /// The gap between two requests.
    pub(super) const fn gap(&self) -> Duration {
        self.gap
    }

    /// Notes a request that is sent now.
    pub(super) fn note_request(&mut self, now: SystemTime) {
        let sent_at = self.time.advance(now);
        self.next_at = self.next_at.max(sent_at + self.gap);
        if let Some(rate) = &mut self.rate {
            rate.add(sent_at);
        }
    }

    /// Notes a sign of overload. No request is sent before the time in `Retry-After`.
    pub(super) fn press(&mut self, now: SystemTime, retry_after_secs: Option<u64>) {
        let now = self.time.advance(now);
        self.gap = (self.gap * 2).max(GAP_FIRST).min(self.gap_max);
        let requested = Duration::from_secs(retry_after_secs.unwrap_or(0).min(3600));
        self.next_at = self.next_at.max(now + requested);
    }

    /// Notes a good response.
    pub(super) fn ease(&mut self) {
        let rate = RATE_STEP + 1.0 / self.gap.as_secs_f64().max(f64::EPSILON);
        let gap = Duration::from_secs_f64(1.0 / rate);
        self.gap = if gap <= GAP_MIN { self.gap_min } else { gap.max(self.gap_min) };
    }
}

impl Rate {
    fn new(requests_per_minute_max: NonZeroU32) -> Self {
        let interval = Duration::from_secs(60) / requests_per_minute_max.get();
        let tolerance = interval * (requests_per_minute_max.get() - 1);
        Self { interval, tolerance, empty_at: SystemTime::UNIX_EPOCH }
    }

    /// How long the next request has to wait.
    fn wait(&self, now: SystemTime) -> Duration {
        self.empty_at.duration_since(now + self.tolerance).unwrap_or_default()
    }

    /// Adds a request that is sent then.
    fn add(&mut self, sent_at: SystemTime) {
        self.empty_at = self.empty_at.max(sent_at) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_secs(60);

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn pace(gap_millis: u64, requests_per_minute_max: u32) -> Pace {
        let requests_per_minute_max = NonZeroU32::new(requests_per_minute_max);
        let gap = Duration::from_millis(gap_millis);
        Pace::new(&Politeness { gap, requests_per_minute_max, ..Politeness::default() }, BUDGET)
    }

    fn wait_millis(pace: &mut Pace, now_millis: u64) -> u128 {
        pace.wait(at(now_millis)).as_millis()
    }

    #[test]
    fn without_a_gap_requests_wait_only_after_signs_of_overload() {
        let mut pace = pace(0, 0);
        for _ in 0..10 {
            assert_eq!(wait_millis(&mut pace, 0), 0);
            pace.note_request(at(0));
        }
        pace.press(at(0), None);
        assert_eq!(wait_millis(&mut pace, 0), 0);
        pace.note_request(at(0));
        assert_eq!(wait_millis(&mut pace, 0), 500);
        pace.press(at(0), None);
        assert_eq!(pace.gap, Duration::from_secs(1));
        let gaps: Vec<u128> = (0..8)
            .map(|_| {
                pace.ease();
                pace.gap.as_millis()
            })
            .collect();
        assert_eq!(gaps, [666, 500, 400, 333, 285, 0, 0, 0]);
    }

    #[test]
    fn the_gap_never_falls_below_its_configured_value() {
        let mut pace = pace(300, 0);
        pace.note_request(at(0));
        assert_eq!(wait_millis(&mut pace, 0), 300);
        assert_eq!(wait_millis(&mut pace, 5_000), 0);
        pace.ease();
        assert_eq!(pace.gap, Duration::from_millis(300));
        for _ in 0..20 {
            pace.press(at(0), None);
        }
        assert_eq!(pace.gap, GAP_MAX);
    }

    #[test]
    fn gap_after_overload_leaves_time_for_a_request() {
        for (budget_secs, gap_millis) in [(3, 500), (6, 1_000), (30, 5_000), (600, 10_000)] {
            let mut pace = Pace::new(&Politeness::default(), Duration::from_secs(budget_secs));
            for _ in 0..20 {
                pace.press(at(0), None);
            }
            assert_eq!(pace.gap.as_millis(), gap_millis, "{budget_secs}");
        }
        let politeness = Politeness { gap: Duration::from_secs(20), ..Politeness::default() };
        let mut configured = Pace::new(&politeness, Duration::from_secs(6));
        configured.press(at(0), None);
        assert_eq!(configured.gap, Duration::from_secs(20), "the configured gap stays");
    }

    #[test]
    fn clock_that_is_set_back_does_not_delay_requests() {
        let mut pace = pace(300, 0);
        pace.note_request(at(7_200_000));
        assert_eq!(wait_millis(&mut pace, 3_600_000), 300);
        pace.press(at(3_600_000), Some(7));
        assert_eq!(wait_millis(&mut pace, 3_601_000), 6_000);
        pace.press(at(1_000), None);
        assert_eq!(wait_millis(&mut pace, 1_000), 6_000);
    }

    #[test]
    fn retry_after_delays_all_requests() {
        let mut pace = pace(0, 0);
        pace.press(at(0), Some(7));
        assert_eq!(wait_millis(&mut pace, 1_000), 6_000);
        pace.press(at(0), Some(u64::MAX));
        assert_eq!(wait_millis(&mut pace, 0), 3_600_000);
    }

    #[test]
    fn requests_of_a_minute_are_sent_at_once_and_further_ones_one_by_one() {
        let mut pace = pace(0, 3);
        for (now, wait) in [(0, 0), (0, 0), (0, 0), (20_000, 0), (30_000, 10_000), (40_000, 0)] {
            assert_eq!(wait_millis(&mut pace, now), wait, "{now}");
            if wait == 0 {
                pace.note_request(at(now));
            }
        }
        assert_eq!(wait_millis(&mut pace, 50_000), 10_000);
        assert_eq!(wait_millis(&mut pace, 0), 10_000, "the clock was set back");
    }
}
