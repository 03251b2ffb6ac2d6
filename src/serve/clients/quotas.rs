//! Limits the rate and the concurrency of requests by client.
//!
//! Pages that cause no request to a source have gates of their own, so that a crawl of them and harvests do not wait for
//! each other. A request passes two gates: that of its client, then that of its class. A request that its client's gate refuses
//! does not count for the class, and a class does not affect other classes. At each gate a request waits for the
//! rate, then for a place. A request that would wait too long is refused with `Retry-After`.
//!
//! Invariants: rate, burst and concurrency are never exceeded. No request waits longer than `wait_max`. At most
//! [`CLIENTS_KEPT_MAX`] clients are tracked.

use super::client_class::ClassifiedClient;
use crate::config::{self, Quota};
use crate::serve::telemetry::labels::RefusalReason;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota as Rate, RateLimiter};
use oaimend_base::clock;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The clock of the rates: the uptime.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uptime;

impl Clock for Uptime {
    type Instant = Duration;

    fn now(&self) -> Duration {
        clock::uptime()
    }
}

/// All gates.
pub(crate) struct Quotas<C: Clock<Instant = Duration> = Uptime> {
    clock: C,
    wait_max: Duration,
    classes: Vec<Class<C>>,
    clients: Mutex<TrackedClients<C>>,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestKind {
    /// The response of a repository, for which its source may be requested.
    Repository,
    /// A page from the stores.
    Page,
}

/// The gates of a class.
struct Class<C: Clock<Instant = Duration>> {
    repositories: ClassGates<C>,
    pages: ClassGates<C>,
}

/// The gates of a class for one kind of request.
struct ClassGates<C: Clock<Instant = Duration>> {
    each: Quota,
    /// For all its clients together.
    all: Arc<Gate<C>>,
    /// For the clients beyond the tracked ones.
    others: Arc<Gate<C>>,
}

/// The gates of the tracked clients.
struct TrackedClients<C: Clock<Instant = Duration>> {
    gates: HashMap<(ClassifiedClient, RequestKind), TrackedClient<C>>,
    /// When to look again for idle clients.
    sweep_at: Duration,
}

struct TrackedClient<C: Clock<Instant = Duration>> {
    gate: Arc<Gate<C>>,
    /// The time of its last request.
    seen: Duration,
}

/// A rate and a number of places.
struct Gate<C: Clock<Instant = Duration>> {
    rate: Option<RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<Duration>>>,
    /// After this time without a request the full burst is available again.
    idle_after: Duration,
    places: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
}

/// The right to be answered; dropping it frees the places.
pub(crate) struct Permit {
    /// The client that has it.
    pub(crate) client: ClassifiedClient,
    _client: Option<OwnedSemaphorePermit>,
    _class: Option<OwnedSemaphorePermit>,
    /// Keeps the client tracked while a request is in flight.
    _gate: Arc<dyn Send + Sync>,
}

/// The refusal of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotaRefusal {
    pub(crate) limit: Limit,
    /// Whether it is the limit of the whole class.
    pub(crate) of_class: bool,
    /// In seconds, 1 to 3600.
    pub(crate) retry_after_secs: u64,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The rate.
    Rate,
    /// The number of requests in flight.
    InFlight,
    /// The number of waiting requests.
    Waiting,
}

impl QuotaRefusal {
    /// The label of the metric.
    pub(crate) fn reason(self) -> RefusalReason {
        match (self.limit, self.of_class) {
            (Limit::Rate, false) => RefusalReason::Rate,
            (Limit::Rate, true) => RefusalReason::ClassRate,
            (Limit::InFlight, false) => RefusalReason::InFlight,
            (Limit::InFlight, true) => RefusalReason::ClassInFlight,
            (Limit::Waiting, false) => RefusalReason::Waiting,
            (Limit::Waiting, true) => RefusalReason::ClassWaiting,
        }
    }

    /// The text of the response.
    pub(crate) fn text(self, class: &str) -> String {
        let whose = if self.of_class { format!("all {class} together") } else { "your address".to_owned() };
        let what = match self.limit {
            Limit::Rate => "more requests in this time than are allowed",
            Limit::InFlight => "as many requests in flight as are allowed",
            Limit::Waiting => "as many requests waiting as are allowed",
        };
        let seconds = self.retry_after_secs;
        let advice = match self.limit {
            Limit::Rate => "send requests more slowly",
            Limit::InFlight | Limit::Waiting => "send one request after the other",
        };
        format!(
            "there are {what} from {whose} (class {class}). This is a limit of the proxy, not of the source. Retry \
             after {seconds} s, and {advice}. The operator of this proxy can give you a token with a higher limit"
        )
    }
}

impl<C: Clock<Instant = Duration> + Clone + Send + Sync + 'static> Quotas<C> {
    /// Gates for a configuration.
    pub(crate) fn new(config: &config::ClientPolicy, clock: C) -> Self {
        let known = config.known.iter().map(|known| known.quotas);
        let quotas = [config.harvesters, config.crawlers.quotas].into_iter().chain(known);
        let gates = |each, all| ClassGates {
            each,
            all: Arc::new(Gate::new(all, &clock)),
            others: Arc::new(Gate::new(each, &clock)),
        };
        let class = |config::ClassQuotas { each, all, pages }| Class {
            repositories: gates(each, all),
            pages: gates(pages.each, pages.all),
        };
        let classes = quotas.map(class).collect();
        let clients = Mutex::new(TrackedClients { gates: HashMap::new(), sweep_at: Duration::ZERO });
        Self { wait_max: config.wait_max, classes, clients, clock }
    }

    /// Waits until the request may be answered.
    ///
    /// # Errors
    ///
    /// The wait would exceed `wait_max`.
    pub(crate) async fn admit(
        &self,
        client: ClassifiedClient,
        kind: RequestKind,
    ) -> Result<Permit, QuotaRefusal> {
        let until = self.clock.now() + self.wait_max;
        let class = self.class_gates(client, kind);
        let gate = self.gate(client, kind);
        let place = gate.pass(&self.clock, until).await.map_err(|overload| overload.into_refused(false))?;
        let all = class.all.pass(&self.clock, until).await.map_err(|overload| overload.into_refused(true))?;
        Ok(Permit { client, _client: place, _class: all, _gate: gate })
    }

    fn class_gates(&self, client: ClassifiedClient, kind: RequestKind) -> &ClassGates<C> {
        let class = &self.classes[client.class];
        match kind {
            RequestKind::Repository => &class.repositories,
            RequestKind::Page => &class.pages,
        }
    }

    /// The gate of a client, created by its first request of a kind.
    fn gate(&self, client: ClassifiedClient, kind: RequestKind) -> Arc<Gate<C>> {
        let now = self.clock.now();
        let class = self.class_gates(client, kind);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.gates.len() >= CLIENTS_KEPT_MAX && !clients.gates.contains_key(&(client, kind)) {
            clients.sweep(now);
            if clients.gates.len() >= CLIENTS_KEPT_MAX {
                return Arc::clone(&class.others);
            }
        }
        let tracked = clients.gates.entry((client, kind)).or_insert_with(|| TrackedClient {
            gate: Arc::new(Gate::new(class.each, &self.clock)),
            seen: now,
        });
        tracked.seen = now;
        Arc::clone(&tracked.gate)
    }
}

impl<C: Clock<Instant = Duration>> TrackedClients<C> {
    /// Removes clients without requests in flight whose burst is full again. Reads all of them, so it runs once in
    /// [`SWEEP_INTERVAL`].
    fn sweep(&mut self, now: Duration) {
        if now < self.sweep_at {
            return;
        }
        self.sweep_at = now + SWEEP_INTERVAL;
        self.gates.retain(|_, TrackedClient { gate, seen }| {
            Arc::strong_count(gate) > 1 || now.saturating_sub(*seen) < gate.idle_after
        });
    }
}

impl<C: Clock<Instant = Duration> + Clone> Gate<C> {
    fn new(quota: Quota, clock: &C) -> Self {
        let rate = quota.rate_per_minute.map(|per_minute| {
            Rate::per_minute(per_minute).allow_burst(quota.burst.unwrap_or(NonZeroU32::MIN))
        });
        Self {
            idle_after: rate.map_or(Duration::ZERO, |rate| rate.burst_size_replenished_in()),
            rate: rate.map(|rate| RateLimiter::direct_with_clock(rate, clock.clone())),
            places: quota.in_flight_max.map(|max| Arc::new(Semaphore::new(max.get() as usize))),
            waiting: AtomicUsize::new(0),
        }
    }

    async fn pass(&self, clock: &C, until: Duration) -> Result<Option<OwnedSemaphorePermit>, Overload> {
        self.turn(clock, until).await?;
        self.place(clock, until).await
    }

    /// Waits for the rate.
    async fn turn(&self, clock: &C, until: Duration) -> Result<(), Overload> {
        let Some(rate) = &self.rate else { return Ok(()) };
        let mut queued = None;
        loop {
            let Err(not_until) = rate.check() else { return Ok(()) };
            let now = clock.now();
            let wait = not_until.wait_time_from(now);
            if now + wait > until {
                return Err(Overload { limit: Limit::Rate, wait });
            }
            if queued.is_none() {
                queued = Some(self.queue()?);
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Waits for a place.
    async fn place(&self, clock: &C, until: Duration) -> Result<Option<OwnedSemaphorePermit>, Overload> {
        let Some(places) = &self.places else { return Ok(None) };
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Ok(Some(place));
        }
        let left = until.saturating_sub(clock.now());
        let full = || Overload { limit: Limit::InFlight, wait: PLACE_WAIT };
        if left.is_zero() {
            return Err(full());
        }
        let _queued = self.queue()?;
        match tokio::time::timeout(left, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(Some(place)),
            // The semaphore is never closed, so the wait has timed out.
            Ok(Err(_)) | Err(_) => Err(full()),
        }
    }

    fn queue(&self) -> Result<Queued<'_>, Overload> {
        let queued = Queued(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            return Err(Overload { limit: Limit::Waiting, wait: PLACE_WAIT });
        }
        Ok(queued)
    }
}

/// A waiting request.
struct Queued<'a>(&'a AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A refusal at one gate.
struct Overload {
    limit: Limit,
    /// How long the request would have to wait.
    wait: Duration,
}

impl Overload {
    fn into_refused(self, of_class: bool) -> QuotaRefusal {
        // Rounded up, so that a retry is not early.
        let seconds = self.wait.as_nanos().div_ceil(1_000_000_000);
        let retry_after_secs = u64::try_from(seconds).unwrap_or(u64::MAX).clamp(1, RETRY_AFTER_SECS_MAX);
        QuotaRefusal { limit: self.limit, of_class, retry_after_secs }
    }
}

impl<C: Clock<Instant = Duration>> fmt::Debug for Quotas<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner).gates.len();
        f.debug_struct("Quotas").field("clients", &clients).finish_non_exhaustive()
    }
}

/// Maximum number of tracked clients; further clients share one gate of their class.
const CLIENTS_KEPT_MAX: usize = 16_384;
/// Maximum number of requests that wait at one gate.
const WAITING_MAX: usize = 64;
/// Shortest interval between two searches for idle clients.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// `Retry-After` for a place, whose time is unknown.
const PLACE_WAIT: Duration = Duration::from_secs(10);
/// Longest `Retry-After`, in seconds; the most that OAI-PMH allows in practice.
const RETRY_AFTER_SECS_MAX: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::super::client_class::{CRAWLERS, ClientNetwork, HARVESTERS};
    use super::*;
    use futures::FutureExt as _;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::atomic::AtomicU64;

    /// A clock that only [`ManualClock::advance`] moves, in nanoseconds.
    #[derive(Clone, Debug, Default)]
    struct ManualClock(Arc<AtomicU64>);

    impl ManualClock {
        fn advance(&self, by: Duration) {
            self.0.fetch_add(u64::try_from(by.as_nanos()).expect("short"), Ordering::Relaxed);
        }
    }

    impl Clock for ManualClock {
        type Instant = Duration;

        fn now(&self) -> Duration {
            Duration::from_nanos(self.0.load(Ordering::Relaxed))
        }
    }

    fn quota(rate: u32, burst: u32, in_flight: u32) -> Quota {
        Quota {
            rate_per_minute: NonZeroU32::new(rate),
            burst: NonZeroU32::new(burst),
            in_flight_max: NonZeroU32::new(in_flight),
        }
    }

    /// Quotas without waiting, so that each result is immediate.
    fn quotas(each: Quota, all: Quota, clock: &ManualClock) -> Quotas<ManualClock> {
        let config = config::ClientPolicy {
            wait_max: Duration::ZERO,
            harvesters: config::ClassQuotas { each, all, pages: config::PageQuotas::default() },
            ..config::ClientPolicy::default()
        };
        Quotas::new(&config, clock.clone())
    }

    fn client(class: usize, number: u32) -> ClassifiedClient {
        ClassifiedClient { class, origin: ClientNetwork::of(IpAddr::V4(Ipv4Addr::from_bits(number))) }
    }

    fn ask(quotas: &Quotas<ManualClock>, client: ClassifiedClient) -> Result<Permit, QuotaRefusal> {
        quotas.admit(client, RequestKind::Repository).now_or_never().expect("no request waits")
    }

    fn refusal(quotas: &Quotas<ManualClock>, client: ClassifiedClient) -> Option<(RefusalReason, u64)> {
        ask(quotas, client).err().map(|refused| (refused.reason(), refused.retry_after_secs))
    }

    #[test]
    fn a_place_is_free_after_its_request_is_answered() {
        let quotas = quotas(quota(0, 0, 64), quota(0, 0, 100), &ManualClock::default());
        let (one, other) = (client(HARVESTERS, 1), client(HARVESTERS, 2));
        let mut in_flight: Vec<Permit> =
            (0..64).map(|_| ask(&quotas, one).expect("64 may be in flight")).collect();
        assert_eq!(refusal(&quotas, one), Some((RefusalReason::InFlight, 10)));
        in_flight.pop();
        in_flight.push(ask(&quotas, one).expect("a place is free"));
        in_flight.extend((0..36).map(|_| ask(&quotas, other).expect("it has places of its own")));
        assert_eq!(refusal(&quotas, other), Some((RefusalReason::ClassInFlight, 10)));
        assert_eq!(refusal(&quotas, client(CRAWLERS, 1)), None, "another class has its own limits");
    }

    #[test]
    fn pages_have_quotas_of_their_own() {
        let clock = ManualClock::default();
        let config = config::ClientPolicy {
            wait_max: Duration::ZERO,
            harvesters: config::ClassQuotas {
                each: quota(1, 1, 0),
                all: Quota::default(),
                pages: config::PageQuotas { each: quota(1, 3, 0), all: quota(1, 4, 0) },
            },
            ..config::ClientPolicy::default()
        };
        let quotas = Quotas::new(&config, clock);
        let admits = |number, kind| {
            let admitted = quotas.admit(client(HARVESTERS, number), kind).now_or_never();
            admitted.expect("no request waits").map_err(QuotaRefusal::reason).err()
        };
        for expected in [None, Some(RefusalReason::Rate)] {
            assert_eq!(admits(1, RequestKind::Repository), expected);
        }
        for expected in [None, None, None, Some(RefusalReason::Rate)] {
            assert_eq!(admits(1, RequestKind::Page), expected);
        }
        for expected in [None, Some(RefusalReason::ClassRate)] {
            assert_eq!(admits(2, RequestKind::Page), expected);
        }
        assert_eq!(admits(2, RequestKind::Repository), None);
    }

    #[test]
    fn a_rate_admits_a_burst_and_then_single_requests() {
        let clock = ManualClock::default();
        let quotas = quotas(quota(6, 3, 0), Quota::default(), &clock);
        let one = client(HARVESTERS, 1);
        for _ in 0..3 {
            assert_eq!(refusal(&quotas, one), None);
        }
        assert_eq!(refusal(&quotas, one), Some((RefusalReason::Rate, 10)));
        clock.advance(Duration::from_millis(9_001));
        assert_eq!(refusal(&quotas, one), Some((RefusalReason::Rate, 1)));
        clock.advance(Duration::from_millis(999));
        assert_eq!(refusal(&quotas, one), None);
        assert_eq!(refusal(&quotas, one), Some((RefusalReason::Rate, 10)));
        assert_eq!(refusal(&quotas, client(HARVESTERS, 2)), None);
    }

    #[test]
    fn a_refused_client_does_not_use_the_quota_of_its_class() {
        let quotas = quotas(quota(1, 1, 0), quota(1, 5, 0), &ManualClock::default());
        assert_eq!(refusal(&quotas, client(HARVESTERS, 1)), None);
        for _ in 0..1000 {
            assert_eq!(refusal(&quotas, client(HARVESTERS, 1)), Some((RefusalReason::Rate, 60)));
        }
        for number in 2..6 {
            assert_eq!(refusal(&quotas, client(HARVESTERS, number)), None, "{number}");
        }
        assert_eq!(refusal(&quotas, client(HARVESTERS, 6)), Some((RefusalReason::ClassRate, 60)));
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_clients() {
        let clock = ManualClock::default();
        let quotas = quotas(quota(60, 1, 2), Quota::default(), &clock);
        let tracked_count = || quotas.clients.lock().expect("no panic").gates.len();
        let held = ask(&quotas, client(HARVESTERS, 0)).expect("the first");
        let many = u32::try_from(CLIENTS_KEPT_MAX).expect("it is small");
        for number in 1..many {
            assert_eq!(refusal(&quotas, client(HARVESTERS, number)), None);
        }
        assert_eq!(tracked_count(), CLIENTS_KEPT_MAX);
        // No client is idle yet, so further clients share one gate.
        assert_eq!(refusal(&quotas, client(HARVESTERS, many)), None);
        assert_eq!(refusal(&quotas, client(HARVESTERS, many + 1)), Some((RefusalReason::Rate, 1)));
        assert_eq!(tracked_count(), CLIENTS_KEPT_MAX);
        clock.advance(Duration::from_secs(2));
        assert_eq!(refusal(&quotas, client(HARVESTERS, many)), None);
        assert_eq!(tracked_count(), 2, "only the client in flight and the new client are tracked");
        let second = ask(&quotas, client(HARVESTERS, 0)).expect("the second");
        clock.advance(Duration::from_secs(2));
        assert_eq!(refusal(&quotas, client(HARVESTERS, 0)), Some((RefusalReason::InFlight, 10)));
        drop((held, second));
    }

    /// Reproducible random numbers (SplitMix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut bits = self.0;
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (bits ^ (bits >> 31)) % bound
        }

        fn quota(&mut self) -> Quota {
            let bound = |random: &mut Self, max| u32::try_from(random.below(max)).expect("it is small");
            quota(bound(self, 300), bound(self, 20), bound(self, 6))
        }
    }

    /// In any interval, the number of requests is at most the burst plus the share of the rate.
    fn check_rate(admitted: &[Duration], quota: Quota, what: &str) {
        let Some(rate) = quota.rate_per_minute else { return };
        let burst = u128::from(quota.burst.map_or(1, NonZeroU32::get));
        for (i, first) in admitted.iter().enumerate() {
            for (j, last) in admitted.iter().enumerate().skip(i) {
                let given = (*last - *first).as_nanos() * u128::from(rate.get()) / 60_000_000_000;
                // One more for the rounding of the interval to whole nanoseconds.
                assert!((j - i + 1) as u128 <= burst + given + 1, "{what}: {i}..={j}");
            }
        }
    }

    #[test]
    fn limits_are_never_exceeded_and_retry_after_is_legal() {
        for seed in 0..60 {
            println!("seed {seed}");
            let mut random = Random(seed);
            let (each, all) = (random.quota(), random.quota());
            let clock = ManualClock::default();
            let quotas = quotas(each, all, &clock);
            let mut in_flight: Vec<(u32, Permit)> = Vec::new();
            let mut admitted: HashMap<u32, Vec<Duration>> = HashMap::new();
            for _ in 0..400 {
                clock.advance(Duration::from_millis(random.below(700)));
                if !in_flight.is_empty() && random.below(2) == 0 {
                    let finished =
                        usize::try_from(random.below(in_flight.len() as u64)).expect("it is small");
                    in_flight.swap_remove(finished);
                }
                let number = u32::try_from(random.below(4)).expect("it is small");
                match ask(&quotas, client(HARVESTERS, number)) {
                    Ok(permit) => {
                        in_flight.push((number, permit));
                        admitted.entry(number).or_default().push(clock.now());
                    }
                    Err(refused) => {
                        let after = refused.retry_after_secs;
                        assert!((1..=3600).contains(&after), "{refused:?}");
                        if refused.limit == Limit::Rate && !refused.of_class {
                            // A client that obeys Retry-After is not refused for the rate again.
                            let probe =
                                ManualClock(Arc::new(AtomicU64::new(clock.0.load(Ordering::Relaxed))));
                            probe.advance(Duration::from_secs(after));
                            assert!(wait_of(&quotas, number, probe.now()).is_zero(), "{refused:?}");
                        }
                    }
                }
                let admitted = in_flight.iter().filter(|(client, _)| *client == number).count();
                assert!(each.in_flight_max.is_none_or(|max| admitted <= max.get() as usize), "seed {seed}");
                assert!(all.in_flight_max.is_none_or(|max| in_flight.len() <= max.get() as usize));
            }
            let mut together: Vec<Duration> = admitted.values().flatten().copied().collect();
            together.sort();
            check_rate(&together, all, &format!("seed {seed}, all"));
            for (number, admitted) in &admitted {
                check_rate(admitted, each, &format!("seed {seed}, client {number}"));
            }
        }
    }

    /// How long a client would have to wait for its rate at that time.
    fn wait_of(quotas: &Quotas<ManualClock>, number: u32, at: Duration) -> Duration {
        let gate = quotas.gate(client(HARVESTERS, number), RequestKind::Repository);
        let refused = gate.rate.as_ref().and_then(|rate| rate.check().err());
        refused.map_or(Duration::ZERO, |not_until| at.max(not_until.earliest_possible()) - at)
    }
}
