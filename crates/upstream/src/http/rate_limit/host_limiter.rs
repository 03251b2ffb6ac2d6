//! Permits for requests to a host.
//!
//! A request waits in the queue of its host until it is the first one that may be sent, and until its time has come.
//! It reserves nothing in advance: a request of a better class that arrives meanwhile goes first. A permit is held for
//! one attempt and released before any wait.
//!
//! Crawlers leave room for harvesters, because a list in flight cannot be interrupted: they never take the last of
//! several lists, and they wait a moment after a list of a harvester, which usually requests its next page then.

use super::fair_queue::{FairQueue, RequestClass, RequestedBy};
use super::pace::Pace;
use crate::http::deadline::Deadline;
use crate::settings::{Politeness, SourceMapping};
use oaimend_base::clock::Clock;
use oaimend_repository::{Failure, Reason};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// The limits of one host and port, which several sources share.
#[derive(Debug)]
struct HostLimiter {
    lists_max: usize,
    state: Mutex<HostState>,
}

#[derive(Debug)]
struct HostState {
    queue: FairQueue<Arc<Notify>>,
    lists_in_flight: usize,
    pace: Pace,
    /// When the last list of a harvester ended.
    harvester_list_ended_at: Option<SystemTime>,
}

/// The limits of one source: those of its host, and its own pace.
#[derive(Debug)]
pub(in crate::http) struct SourceLimiter {
    host: Arc<HostLimiter>,
    /// The pace after responses that concern this source alone.
    pace: Mutex<Pace>,
}

/// The limits of a source and their use, for operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitUsage {
    /// The lists in flight at the host.
    pub lists_in_flight: usize,
    /// How many there may be.
    pub lists_max: usize,
    /// The requests that wait for the host.
    pub waiting: usize,
    /// The gap between two requests: configured, or after signs of overload.
    pub gap: Duration,
    /// The time until the next request may be sent.
    pub wait: Duration,
}

/// A permit for one request. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct HostPermit {
    /// The host, if the request is for a list.
    list_of: Option<Arc<HostLimiter>>,
    by: RequestedBy,
    clock: Arc<dyn Clock>,
}

/// A place in the queue of a host. Dropping it leaves the queue.
struct QueuePlace<'a> {
    host: &'a HostLimiter,
    by: RequestedBy,
    number: u64,
    turn: Arc<Notify>,
}

/// What a waiting request does next.
enum QueueStep {
    /// It is sent now.
    Send(HostPermit),
    /// It waits for its time.
    WaitFor(Duration),
    /// It waits until another request is sent or has ended.
    WaitForOthers,
}

/// How long crawlers wait after a list of a harvester.
const HARVESTER_RETURN: Duration = Duration::from_millis(250);
/// A response header that takes longer is a sign of overload.
const SLOW: Duration = Duration::from_secs(15);

impl SourceLimiter {
    /// The limits of a source that shares its host with no other one.
    pub(in crate::http) fn new(mapping: &SourceMapping) -> Self {
        let (politeness, budget) = (&mapping.politeness, mapping.limits.first_record_timeout);
        let state = HostState {
            queue: FairQueue::default(),
            lists_in_flight: 0,
            pace: Pace::new(politeness, budget),
            harvester_list_ended_at: None,
        };
        let host = HostLimiter { lists_max: politeness.list_requests_max, state: Mutex::new(state) };
        Self { host: Arc::new(host), pace: Mutex::new(Pace::new(&Politeness::default(), budget)) }
    }

    /// The limits of this source on the host of another one.
    pub(in crate::http) fn on_host_of(&self, other: &Self) -> Self {
        Self { host: Arc::clone(&other.host), pace: Mutex::new(lock(&self.pace).clone()) }
    }

    /// The limits and their use.
    pub(in crate::http) fn usage(&self, now: SystemTime) -> LimitUsage {
        let (gap, wait) = {
            let mut pace = lock(&self.pace);
            (pace.gap(), pace.wait(now))
        };
        let mut state = lock(&self.host.state);
        LimitUsage {
            lists_in_flight: state.lists_in_flight,
            lists_max: self.host.lists_max,
            waiting: state.queue.len(),
            gap: gap.max(state.pace.gap()),
            wait: wait.max(state.pace.wait(now)),
        }
    }

    /// Waits for a permit, within the deadline.
    ///
    /// # Errors
    ///
    /// The source is busy: there is no permit in time.
    pub(in crate::http) async fn acquire(
        &self,
        is_list: bool,
        by: RequestedBy,
        name: &str,
        budget: &mut Deadline,
    ) -> Result<HostPermit, Failure> {
        loop {
            // A source that rests must not block its neighbours: it waits outside their queue.
            let wait = lock(&self.pace).wait(budget.now());
            if wait.is_zero() {
                let permit = self.host.acquire(is_list, by, name, budget).await?;
                let mut pace = lock(&self.pace);
                if pace.wait(budget.now()).is_zero() {
                    pace.note_request(budget.now());
                    return Ok(permit);
                }
                continue;
            }
            if wait >= budget.left() {
                return Err(busy(name, NO_TIME_LEFT));
            }
            budget.pause(wait).await;
        }
    }

    /// Notes the response to a request: its status, `Retry-After`, and the time until its header. `None`: there was no
    /// response.
    pub(in crate::http) fn note(
        &self,
        now: SystemTime,
        status: Option<u16>,
        retry_after_secs: Option<u64>,
        took: Duration,
    ) {
        match status {
            None | Some(429) => lock(&self.host.state).pace.press(now, retry_after_secs),
            Some(503) => lock(&self.pace).press(now, retry_after_secs),
            Some(_) if took > SLOW => lock(&self.pace).press(now, None),
            Some(_) => {
                lock(&self.host.state).pace.ease();
                lock(&self.pace).ease();
            }
        }
    }
}

impl HostLimiter {
    async fn acquire(
        self: &Arc<Self>,
        is_list: bool,
        by: RequestedBy,
        name: &str,
        budget: &mut Deadline,
    ) -> Result<HostPermit, Failure> {
        let turn = Arc::new(Notify::new());
        let number = lock(&self.state).queue.push(by, is_list, Arc::clone(&turn));
        let number = number.ok_or_else(|| busy(name, TOO_MANY_WAIT))?;
        let place = QueuePlace { host: self, by, number, turn };
        loop {
            match self.step(&place, is_list, budget) {
                QueueStep::Send(permit) => return Ok(permit),
                QueueStep::WaitFor(time) if time >= budget.left() => return Err(busy(name, NO_TIME_LEFT)),
                QueueStep::WaitFor(time) => budget.pause(time).await,
                QueueStep::WaitForOthers => {
                    let woken = budget.within(Duration::MAX, place.turn.notified()).await;
                    woken.map_err(|_| busy(name, NO_FURTHER_LIST))?;
                }
            }
        }
    }

    /// The next step of a waiting request.
    fn step(self: &Arc<Self>, place: &QueuePlace<'_>, is_list: bool, budget: &Deadline) -> QueueStep {
        let now = budget.now();
        let mut state = lock(&self.state);
        let first = state.first(self.lists_max).map(|(number, _)| number);
        if first != Some(place.number) {
            return QueueStep::WaitForOthers;
        }
        let wait = state.pace.wait(now).max(state.wait_for_harvester(place.by, is_list, now));
        if !wait.is_zero() {
            return QueueStep::WaitFor(wait);
        }
        state.pace.note_request(now);
        state.queue.take_turn(place.by, place.number);
        if is_list {
            state.lists_in_flight += 1;
        }
        state.wake_first(self.lists_max);
        let list_of = is_list.then(|| Arc::clone(self));
        QueueStep::Send(HostPermit { list_of, by: place.by, clock: budget.clock() })
    }
}

impl HostState {
    /// The first request that may be sent.
    fn first(&self, lists_max: usize) -> Option<(u64, &Arc<Notify>)> {
        let free = lists_max.saturating_sub(self.lists_in_flight);
        self.queue.first(|class| match class {
            RequestClass::Crawler if lists_max > 1 => free > 1,
            _ => free > 0,
        })
    }

    /// How long a list of a crawler waits for the next list of a harvester.
    fn wait_for_harvester(&self, by: RequestedBy, is_list: bool, now: SystemTime) -> Duration {
        match self.harvester_list_ended_at {
            Some(ended_at) if is_list && by.class() == RequestClass::Crawler => {
                HARVESTER_RETURN.saturating_sub(now.duration_since(ended_at).unwrap_or(HARVESTER_RETURN))
            }
            _ => Duration::ZERO,
        }
    }

    fn wake_first(&self, lists_max: usize) {
        if let Some((_, turn)) = self.first(lists_max) {
            turn.notify_one();
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.host.state);
        // A request that was sent is in the queue no more.
        state.queue.remove(self.by, self.number);
        state.wake_first(self.host.lists_max);
    }
}

impl Drop for HostPermit {
    fn drop(&mut self) {
        let Some(host) = self.list_of.take() else { return };
        let mut state = lock(&host.state);
        state.lists_in_flight -= 1;
        if self.by.class() == RequestClass::Harvester {
            state.harvester_list_ended_at = Some(self.clock.now());
        }
        state.wake_first(host.lists_max);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The failure of a request that does not get a permit in time.
fn busy(name: &str, what: &str) -> Failure {
    let details = format!("{name} is busy with other requests, and {what}; send the request again");
    Failure::new(Reason::Busy, details)
}

const NO_FURTHER_LIST: &str = "no further list may be requested at the same time (list_requests_max)";
const NO_TIME_LEFT: &str = "the gap between two requests is longer than the time left for this one";
const TOO_MANY_WAIT: &str = "too many requests wait for it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Limits;
    use futures::FutureExt as _;
    use futures::future::BoxFuture;

    const LIVE: RequestedBy = RequestedBy::Harvester(None);

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
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

    impl oaimend_base::clock::Clock for ManualClock {
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
        limiter: Arc<SourceLimiter>,
        clock: Arc<ManualClock>,
        permits: tokio::sync::mpsc::UnboundedSender<(&'static str, HostPermit)>,
    }

    impl Waiting {
        /// Starts a request, and returns when it waits or has its permit.
        async fn start(&self, by: RequestedBy, name: &'static str) {
            let (limiter, clock) = (Arc::clone(&self.limiter), Arc::clone(&self.clock));
            let permits = self.permits.clone();
            tokio::spawn(async move {
                let mut budget = Deadline::new(clock, Duration::from_secs(600));
                let permit = limiter.acquire(true, by, name, &mut budget).await.expect("in time");
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
        let base_url = "http://source.example/oai".parse().expect("a literal URL");
        let mut mapping = SourceMapping::new("x", base_url, &Limits::default());
        mapping.politeness = politeness.clone();
        let limiter = Arc::new(SourceLimiter::new(&mapping));
        (Waiting { limiter, clock: ManualClock::new(), permits }, received)
    }

    #[tokio::test]
    async fn waiting_live_request_gets_the_next_list_before_a_harvest() {
        let (waiting, mut permits) = waiting(&Politeness::default());
        waiting.start(RequestedBy::Mirror, "first harvest").await;
        let (name, first) = permits.recv().await.expect("a permit");
        assert_eq!(name, "first harvest");
        waiting.start(RequestedBy::Mirror, "harvest").await;
        waiting.start(LIVE, "live").await;
        waiting.start(LIVE, "second live").await;
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
        waiting.start(LIVE, "first").await;
        waiting.start(RequestedBy::Mirror, "harvest").await;
        waiting.clock.set(5_000);
        waiting.start(LIVE, "live").await;
        let mut order = Vec::new();
        for secs in [5, 9, 10, 19, 20, 21, 29, 30] {
            waiting.clock.set(secs * 1_000);
            if secs == 21 {
                waiting.start(LIVE, "after the harvest").await;
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
        waiting.start(LIVE, "first").await;
        drop(permits.recv().await.expect("a permit"));
        waiting.start(RequestedBy::Mirror, "harvest").await;
        assert_eq!(lock(&waiting.limiter.host.state).lists_in_flight, 0);
        waiting.start(LIVE, "live").await;
        waiting.clock.set(10_000);
        assert_eq!(permits.recv().await.expect("a permit").0, "live");
    }

    #[tokio::test]
    async fn waiting_live_requests_count_as_requests_of_a_minute() {
        let politeness = Politeness {
            list_requests_max: 9,
            requests_per_minute_max: std::num::NonZeroU32::new(2),
            ..Politeness::default()
        };
        let (waiting, mut permits) = waiting(&politeness);
        for name in ["1", "2", "3", "4", "5"] {
            waiting.start(LIVE, name).await;
        }
        waiting.start(RequestedBy::Mirror, "harvest").await;
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
        for by in [LIVE, RequestedBy::Mirror] {
            let (waiting, mut permits) = waiting(&politeness);
            waiting.start(LIVE, "first").await;
            let clock = Arc::clone(&waiting.clock);
            let mut budget = Deadline::new(clock, Duration::from_secs(5));
            let ended = waiting.limiter.acquire(true, by, "late", &mut budget).now_or_never();
            let failure = ended.expect("it does not wait").expect_err("its turn is after its deadline");
            assert_eq!(failure.reason, Reason::Busy);
            waiting.start(LIVE, "next").await;
            waiting.clock.set(10_000);
            settle().await;
            let names: Vec<_> =
                std::iter::from_fn(|| permits.try_recv().ok()).map(|(name, _)| name).collect();
            assert_eq!(names, ["first", "next"], "{by:?}");
        }
    }

    const CRAWLER: RequestedBy = RequestedBy::Crawler(None);

    fn client(number: u8) -> RequestedBy {
        RequestedBy::Harvester(Some([10, 0, 0, number].into()))
    }

    #[tokio::test]
    async fn client_with_many_requests_delays_another_client_by_one() {
        let (waiting, mut permits) = waiting(&Politeness::default());
        for name in ["a1", "a2", "a3", "a4"] {
            waiting.start(client(1), name).await;
        }
        for name in ["b1", "b2"] {
            waiting.start(client(2), name).await;
        }
        let mut order = Vec::new();
        while let Ok((name, permit)) = permits.try_recv() {
            order.push(name);
            drop(permit);
            settle().await;
        }
        assert_eq!(order, ["a1", "a2", "b1", "a3", "b2", "a4"]);
    }

    #[tokio::test]
    async fn crawlers_leave_the_last_of_several_lists_to_harvesters() {
        let politeness = Politeness { list_requests_max: 3, ..Politeness::default() };
        let (waiting, mut permits) = waiting(&politeness);
        for name in ["1", "2", "3"] {
            waiting.start(CRAWLER, name).await;
        }
        waiting.start(LIVE, "harvester").await;
        let names = |permits: &mut tokio::sync::mpsc::UnboundedReceiver<_>| {
            std::iter::from_fn(|| permits.try_recv().ok()).collect::<Vec<(&str, HostPermit)>>()
        };
        let held = names(&mut permits);
        assert_eq!(held.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["1", "2", "harvester"]);
        waiting.clock.set(1_000);
        drop(held);
        waiting.clock.set(2_000);
        settle().await;
        assert_eq!(names(&mut permits).len(), 1, "the third crawler");
    }

    #[tokio::test]
    async fn crawler_waits_for_the_next_list_of_a_harvester() {
        let (waiting, mut permits) = waiting(&Politeness::default());
        waiting.start(LIVE, "first page").await;
        waiting.start(CRAWLER, "crawler").await;
        drop(permits.recv().await.expect("a permit"));
        settle().await;
        assert!(permits.try_recv().is_err(), "the crawler waits a moment");
        waiting.clock.set(200);
        waiting.start(LIVE, "second page").await;
        drop(permits.recv().await.expect("a permit"));
        waiting.clock.set(449);
        settle().await;
        assert!(permits.try_recv().is_err());
        waiting.clock.set(450);
        assert_eq!(permits.recv().await.expect("a permit").0, "crawler");
    }

    #[tokio::test]
    async fn repository_that_rests_does_not_stop_its_neighbour() {
        let (waiting, mut permits) = waiting(&Politeness::default());
        let neighbour = Waiting {
            limiter: Arc::new(waiting.limiter.on_host_of(&waiting.limiter)),
            clock: Arc::clone(&waiting.clock),
            permits: waiting.permits.clone(),
        };
        waiting.limiter.note(at(0), Some(503), Some(500), Duration::ZERO);
        waiting.start(LIVE, "resting").await;
        neighbour.start(LIVE, "neighbour").await;
        let (name, permit) = permits.try_recv().expect("the neighbour waits for nothing");
        assert_eq!(name, "neighbour");
        drop(permit);
        neighbour.limiter.note(at(0), Some(429), Some(200), Duration::ZERO);
        neighbour.start(LIVE, "both wait").await;
        waiting.clock.set(199_999);
        settle().await;
        assert!(permits.try_recv().is_err());
        for (secs, expected) in [(200, "both wait"), (500, "resting")] {
            waiting.clock.set(secs * 1_000);
            let (name, permit) = permits.recv().await.expect("a permit");
            assert_eq!(name, expected);
            drop(permit);
        }
    }
}
