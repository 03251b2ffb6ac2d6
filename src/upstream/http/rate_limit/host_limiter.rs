//! Limits requests to a host: how many lists at a time, and how soon one request follows another.
//!
//! The limits are those of a host and port, not of a repository: many repositories share a server. They are
//! configured. Within them, the gap between two requests follows the load of the source: the rate rises by
//! a step with each good response, and is halved at each sign of overload (AIMD). A permit is held for one
//! attempt and released before any wait.
//!
//! Live requests go first. They wait in a queue and reserve their time in advance. A harvest of the mirror reserves
//! nothing: it takes a permit only if no live request waits for it, and only once its time has come.

use crate::config::Politeness;
use crate::repository::{Failure, Reason};
use crate::upstream::http::deadline::{Deadline, TimedOut};
use crate::upstream::http::steady_time::SteadyTime;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The limits of one host and port.
#[derive(Debug)]
pub(crate) struct HostLimiter {
    lists: Arc<Semaphore>,
    /// Wakes a harvest when a permit is released.
    released: Arc<Notify>,
    pace: Mutex<Pace>,
}

/// Who waits for the response to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Priority {
    /// A harvester waits.
    #[default]
    Live,
    /// The mirror harvests. It can wait.
    Harvest,
}

/// A permit for one request. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct HostPermit {
    list: Option<OwnedSemaphorePermit>,
    released: Arc<Notify>,
}

impl Drop for HostPermit {
    fn drop(&mut self) {
        if let Some(list) = self.list.take() {
            // A waiting live request gets the permit here, before a harvest can ask for it.
            drop(list);
            self.released.notify_one();
        }
    }
}

/// The gap between requests, and their number in each minute. Pure: the time is an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pace {
    gap_min: Duration,
    gap: Duration,
    next_at: SystemTime,
    rate: Option<Rate>,
    /// All other times are steady.
    time: SteadyTime,
}

/// The requests of a minute: a bucket that loses them one by one, and has room for those of one minute (GCRA). Unlike
/// the rate limiters of crates, it gives a waiting request its place in advance.
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
const GAP_MAX: Duration = Duration::from_secs(10);
/// A shorter gap counts as none.
const GAP_MIN: Duration = Duration::from_millis(250);
/// The rise of the rate with each good response, in requests per second.
const RATE_STEP: f64 = 0.5;
/// Interval at which a waiting harvest looks for a free permit.
const RELEASED_LOOK: Duration = Duration::from_secs(1);
/// A response header that takes longer is a sign of overload.
const SLOW: Duration = Duration::from_secs(15);

impl HostLimiter {
    pub(crate) fn new(politeness: &Politeness) -> Self {
        Self {
            lists: Arc::new(Semaphore::new(politeness.list_requests_max)),
            released: Arc::default(),
            pace: Mutex::new(Pace::new(politeness.gap, politeness.requests_per_minute_max)),
        }
    }

    /// Waits for a permit, within the deadline.
    pub(crate) async fn acquire(
        &self,
        is_list: bool,
        priority: Priority,
        name: &str,
        budget: &mut Deadline,
    ) -> Result<HostPermit, Failure> {
        match priority {
            Priority::Live => self.acquire_live(is_list, name, budget).await,
            Priority::Harvest => self.acquire_harvest(is_list, name, budget).await,
        }
    }

    async fn acquire_live(
        &self,
        is_list: bool,
        name: &str,
        budget: &mut Deadline,
    ) -> Result<HostPermit, Failure> {
        let list = match is_list {
            false => None,
            true => match budget.within(Duration::MAX, Arc::clone(&self.lists).acquire_owned()).await {
                Ok(Ok(permit)) => Some(permit),
                Ok(Err(_)) | Err(_) => return Err(busy(name, NO_FURTHER_LIST)),
            },
        };
        let permit = HostPermit { list, released: Arc::clone(&self.released) };
        let Some(wait) = self.reserve(budget) else {
            return Err(busy(name, NO_TIME_LEFT));
        };
        if !wait.is_zero() {
            budget.pause(wait).await;
        }
        Ok(permit)
    }

    async fn acquire_harvest(
        &self,
        is_list: bool,
        name: &str,
        budget: &mut Deadline,
    ) -> Result<HostPermit, Failure> {
        loop {
            let wait = self.pace().wait(budget.now());
            if !wait.is_zero() {
                if wait >= budget.left() {
                    return Err(busy(name, NO_TIME_LEFT));
                }
                budget.pause(wait).await;
                continue;
            }
            let released = self.released.notified();
            let list = match is_list {
                false => None,
                // The semaphore refuses it while live requests wait.
                true => match Arc::clone(&self.lists).try_acquire_owned() {
                    Ok(list) => Some(list),
                    Err(_) => match budget.within(RELEASED_LOOK, released).await {
                        // A permit of a live request that is gone returns without a signal.
                        Ok(()) | Err(TimedOut::Step) => continue,
                        Err(TimedOut::Deadline) => return Err(busy(name, NO_FURTHER_LIST)),
                    },
                },
            };
            let permit = HostPermit { list, released: Arc::clone(&self.released) };
            if let Some(wait) = self.take_turn(budget.now()) {
                drop(permit);
                if wait >= budget.left() {
                    return Err(busy(name, NO_TIME_LEFT));
                }
                budget.pause(wait).await;
                continue;
            }
            return Ok(permit);
        }
    }

    /// Takes the turn of a request that is sent now. Returns the wait if it has no turn yet.
    fn take_turn(&self, now: SystemTime) -> Option<Duration> {
        let mut pace = self.pace();
        let wait = pace.wait(now);
        if !wait.is_zero() {
            return Some(wait);
        }
        pace.reserve(now);
        None
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot and returns the wait for it. `None` reserves nothing if there is no time for it: an unused slot
    /// would delay all others.
    fn reserve(&self, budget: &Deadline) -> Option<Duration> {
        let mut pace = self.pace();
        let now = budget.now();
        (pace.wait(now) < budget.left()).then(|| pace.reserve(now))
    }

    /// Notes the response to a request: its status, `Retry-After`, and the time until its header.
    pub(crate) fn note(
        &self,
        now: SystemTime,
        status: Option<u16>,
        retry_after_secs: Option<u64>,
        took: Duration,
    ) {
        let mut pace = self.pace();
        match status {
            Some(429 | 503) | None => pace.press(now, retry_after_secs),
            Some(_) if took > SLOW => pace.press(now, None),
            Some(_) => pace.ease(),
        }
    }
}

/// The failure of a request that does not get a permit in time.
fn busy(name: &str, what: &str) -> Failure {
    let details = format!("{name} is busy with other requests, and {what}; send the request again");
    Failure::new(Reason::Busy, details)
}

const NO_FURTHER_LIST: &str = "no further list may be requested at the same time (list_requests_max)";
const NO_TIME_LEFT: &str = "the gap between two requests is longer than the time left for this one";

impl Pace {
    fn new(gap_min: Duration, requests_per_minute_max: Option<NonZeroU32>) -> Self {
        let rate = requests_per_minute_max.map(Rate::new);
        Self { gap_min, gap: gap_min, next_at: SystemTime::UNIX_EPOCH, rate, time: SteadyTime::default() }
    }

    /// How long the next request has to wait.
    fn wait(&mut self, now: SystemTime) -> Duration {
        let now = self.time.advance(now);
        let rated = self.rate.as_ref().map_or(Duration::ZERO, |rate| rate.wait(now));
        self.next_at.duration_since(now).unwrap_or_default().max(rated)
    }

    /// The same, and delays the request after it.
    fn reserve(&mut self, now: SystemTime) -> Duration {
        let wait = self.wait(now);
        let sent_at = self.time.advance(now) + wait;
        self.next_at = sent_at + self.gap;
        if let Some(rate) = &mut self.rate {
            rate.add(sent_at);
        }
        wait
    }

    fn press(&mut self, now: SystemTime, retry_after_secs: Option<u64>) {
        let now = self.time.advance(now);
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
    use futures::FutureExt as _;
    use futures::future::BoxFuture;

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn millis(wait: Duration) -> u128 {
        wait.as_millis()
    }

    #[test]
    fn without_a_gap_requests_wait_only_after_signs_of_overload() {
        let mut pace = Pace::new(Duration::ZERO, None);
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
        let mut pace = Pace::new(Duration::from_millis(300), None);
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
    fn clock_that_is_set_back_does_not_delay_requests() {
        let mut pace = Pace::new(Duration::from_millis(300), None);
        pace.reserve(at(7_200_000));
        assert_eq!(millis(pace.reserve(at(3_600_000))), 300);
        pace.press(at(3_600_000), Some(7));
        assert_eq!(millis(pace.wait(at(3_601_000))), 6_000);
        pace.press(at(1_000), None);
        assert_eq!(millis(pace.wait(at(1_000))), 6_000);
    }

    #[test]
    fn retry_after_delays_all_requests() {
        let mut pace = Pace::new(Duration::ZERO, None);
        pace.press(at(0), Some(7));
        assert_eq!(millis(pace.reserve(at(1_000))), 6_000);
        pace.press(at(0), Some(u64::MAX));
        assert_eq!(pace.reserve(at(0)), Duration::from_secs(3600));
    }

    #[test]
    fn requests_of_a_minute_are_sent_at_once_and_further_ones_one_by_one() {
        let mut pace = Pace::new(Duration::ZERO, NonZeroU32::new(3));
        let waits: Vec<u128> = (0..6).map(|_| millis(pace.reserve(at(0)))).collect();
        assert_eq!(waits, [0, 0, 0, 20_000, 40_000, 60_000]);
        assert_eq!(millis(pace.wait(at(70_000))), 10_000);
        let waits: Vec<u128> = (0..4).map(|_| millis(pace.reserve(at(1_000_000)))).collect();
        assert_eq!(waits, [0, 0, 0, 20_000]);
        assert_eq!(millis(pace.wait(at(0))), 40_000, "the clock was set back");
    }

    /// A clock that stands still until the test sets it.
    #[derive(Debug)]
    struct ManualClock(tokio::sync::watch::Sender<SystemTime>);

    impl ManualClock {
        fn new() -> Arc<Self> {
            Arc::new(Self(tokio::sync::watch::Sender::new(at(0))))
        }

        fn set(&self, millis: u64) {
            self.0.send_replace(at(millis));
        }
    }

    impl crate::clock::Clock for ManualClock {
        fn now(&self) -> SystemTime {
            *self.0.borrow()
        }

        fn pause(&self, time: Duration) -> BoxFuture<'static, ()> {
            let (mut now, end) = (self.0.subscribe(), self.now() + time);
            async move {
                let _ = now.wait_for(|now| *now >= end).await;
            }
            .boxed()
        }

        fn deadline(&self, _: Duration) -> BoxFuture<'static, ()> {
            std::future::pending().boxed()
        }
    }

    /// Requests that wait for permits. Each one reports its name when it gets one.
    struct Waiting {
        limiter: Arc<HostLimiter>,
        clock: Arc<ManualClock>,
        permits: tokio::sync::mpsc::UnboundedSender<(&'static str, HostPermit)>,
    }

    impl Waiting {
        /// Starts a request, and returns when it waits or has its permit.
        async fn start(&self, priority: Priority, name: &'static str) {
            let (limiter, clock) = (Arc::clone(&self.limiter), Arc::clone(&self.clock));
            let permits = self.permits.clone();
            tokio::spawn(async move {
                let mut budget = Deadline::new(clock, Duration::from_secs(600));
                let permit = limiter.acquire(true, priority, name, &mut budget).await.expect("in time");
                let _ = permits.send((name, permit));
            });
            settle().await;
        }
    }

    /// Lets all other tasks of this thread run until they wait.
    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    fn waiting(
        politeness: &Politeness,
    ) -> (Waiting, tokio::sync::mpsc::UnboundedReceiver<(&'static str, HostPermit)>) {
        let (permits, received) = tokio::sync::mpsc::unbounded_channel();
        let limiter = Arc::new(HostLimiter::new(politeness));
        (Waiting { limiter, clock: ManualClock::new(), permits }, received)
    }

    #[tokio::test]
    async fn waiting_live_request_gets_the_next_list_before_a_harvest() {
        let (waiting, mut permits) = waiting(&Politeness::default());
        waiting.start(Priority::Harvest, "first harvest").await;
        let (name, first) = permits.recv().await.expect("a permit");
        assert_eq!(name, "first harvest");
        waiting.start(Priority::Harvest, "harvest").await;
        waiting.start(Priority::Live, "live").await;
        waiting.start(Priority::Live, "second live").await;
        assert!(permits.try_recv().is_err());
        let mut held = first;
        for expected in ["live", "second live", "harvest"] {
            drop(held);
            let (name, permit) = permits.recv().await.expect("a permit");
            assert_eq!(name, expected);
            settle().await;
            assert!(permits.try_recv().is_err(), "{expected}");
            held = permit;
        }
    }

    #[tokio::test]
    async fn live_request_takes_the_turn_that_a_harvest_waits_for() {
        let politeness =
            Politeness { list_requests_max: 9, gap: Duration::from_secs(10), ..Politeness::default() };
        let (waiting, mut permits) = waiting(&politeness);
        waiting.start(Priority::Live, "first").await;
        waiting.start(Priority::Harvest, "harvest").await;
        waiting.clock.set(5_000);
        waiting.start(Priority::Live, "live").await;
        let mut order = Vec::new();
        for secs in [5, 9, 10, 19, 20, 21, 29, 30] {
            waiting.clock.set(secs * 1_000);
            if secs == 21 {
                waiting.start(Priority::Live, "after the harvest").await;
            }
            settle().await;
            while let Ok((name, _)) = permits.try_recv() {
                order.push((secs, name));
            }
        }
        assert_eq!(order, [(5, "first"), (10, "live"), (20, "harvest"), (30, "after the harvest")]);
    }

    #[tokio::test]
    async fn harvest_that_waits_for_its_turn_does_not_hold_a_list() {
        let politeness = Politeness { gap: Duration::from_secs(10), ..Politeness::default() };
        let (waiting, mut permits) = waiting(&politeness);
        waiting.start(Priority::Live, "first").await;
        drop(permits.recv().await.expect("a permit"));
        waiting.start(Priority::Harvest, "harvest").await;
        assert_eq!(waiting.limiter.lists.available_permits(), 1);
        waiting.start(Priority::Live, "live").await;
        waiting.clock.set(10_000);
        assert_eq!(permits.recv().await.expect("a permit").0, "live");
    }

    #[tokio::test]
    async fn waiting_live_requests_count_as_requests_of_a_minute() {
        let politeness = Politeness {
            list_requests_max: 9,
            requests_per_minute_max: NonZeroU32::new(2),
            ..Politeness::default()
        };
        let (waiting, mut permits) = waiting(&politeness);
        for name in ["1", "2", "3", "4", "5"] {
            waiting.start(Priority::Live, name).await;
        }
        waiting.start(Priority::Harvest, "harvest").await;
        let mut order = Vec::new();
        for secs in [0, 29, 30, 59, 60, 90, 119, 120] {
            waiting.clock.set(secs * 1_000);
            settle().await;
            while let Ok((name, _)) = permits.try_recv() {
                order.push((secs, name));
            }
        }
        assert_eq!(order, [(0, "1"), (0, "2"), (30, "3"), (60, "4"), (90, "5"), (120, "harvest")]);
    }

    #[tokio::test]
    async fn request_without_time_for_its_turn_fails_and_delays_no_other() {
        let politeness =
            Politeness { list_requests_max: 9, gap: Duration::from_secs(10), ..Politeness::default() };
        for priority in [Priority::Live, Priority::Harvest] {
            let (waiting, mut permits) = waiting(&politeness);
            waiting.start(Priority::Live, "first").await;
            let clock = Arc::clone(&waiting.clock);
            let mut budget = Deadline::new(clock, Duration::from_secs(5));
            let ended = waiting.limiter.acquire(true, priority, "late", &mut budget).now_or_never();
            let failure = ended.expect("it does not wait").expect_err("its turn is after its deadline");
            assert_eq!(failure.reason, Reason::Busy);
            waiting.start(Priority::Live, "next").await;
            waiting.clock.set(10_000);
            settle().await;
            let names: Vec<_> =
                std::iter::from_fn(|| permits.try_recv().ok()).map(|(name, _)| name).collect();
            assert_eq!(names, ["first", "next"], "{priority:?}");
        }
    }
}
