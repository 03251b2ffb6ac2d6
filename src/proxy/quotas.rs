//! How much each client may ask: rates and numbers in flight.
//!
//! A request passes two gates, the one of its client and the one of its class,
//! in this order: what a client is refused for costs its class nothing, and
//! what one class is refused for costs no other class anything. At each gate it
//! waits for its turn, then for a place; whoever would wait too long is sent
//! away with the time to come again.
//!
//! What must stay true: never more than the rate and the burst allow; never
//! more in flight than allowed; nobody waits longer than `wait_max`; at most
//! [`CLIENTS_KEPT_MAX`] clients are remembered, however many ask.

use super::clients::Client;
use crate::clock;
use crate::config::{self, Quota};
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota as Rate, RateLimiter};
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The time since the start, which the rates are counted in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uptime;

impl Clock for Uptime {
    type Instant = Duration;

    fn now(&self) -> Duration {
        clock::uptime()
    }
}

/// All gates.
pub(super) struct Quotas<C: Clock<Instant = Duration> = Uptime> {
    clock: C,
    wait_max: Duration,
    classes: Vec<Class<C>>,
    clients: Mutex<Clients<C>>,
}

struct Class<C: Clock<Instant = Duration>> {
    each: Quota,
    /// Of all its clients together.
    all: Arc<Gate<C>>,
    /// Of those that come when too many are remembered.
    others: Arc<Gate<C>>,
}

/// The gates of clients, by client.
struct Clients<C: Clock<Instant = Duration>> {
    gates: HashMap<Client, Remembered<C>>,
    /// When it is worth looking again for clients to forget.
    sweep_at: Duration,
}

struct Remembered<C: Clock<Instant = Duration>> {
    gate: Arc<Gate<C>>,
    /// When it asked last.
    seen: Duration,
}

/// Where a request waits for its turn and for a place.
struct Gate<C: Clock<Instant = Duration>> {
    rate: Option<RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<Duration>>>,
    /// After that long without a request its rate is as if it had never been asked.
    rested: Duration,
    places: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
}

/// The right to be answered; given back when it is dropped.
pub(super) struct Permit {
    _client: Option<OwnedSemaphorePermit>,
    _class: Option<OwnedSemaphorePermit>,
    /// A client with a request in flight is not forgotten.
    _gate: Arc<dyn Send + Sync>,
}

/// Why a request is sent away, and when it may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) limit: Limit,
    /// Whether the limit is that of the whole class.
    pub(super) of_class: bool,
    /// In seconds, 1 to 3600.
    pub(super) retry_after_secs: u64,
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Requests in a time.
    Rate,
    /// Requests that are being answered.
    InFlight,
    /// Requests that wait already.
    Waiting,
}

impl Refused {
    /// The label of the metric.
    pub(super) fn reason(self) -> &'static str {
        match (self.limit, self.of_class) {
            (Limit::Rate, false) => "rate",
            (Limit::Rate, true) => "class-rate",
            (Limit::InFlight, false) => "in-flight",
            (Limit::InFlight, true) => "class-in-flight",
            (Limit::Waiting, false) => "waiting",
            (Limit::Waiting, true) => "class-waiting",
        }
    }

    /// What happened and what to do, for who asked.
    pub(super) fn text(self, class: &str) -> String {
        let whose = if self.of_class { format!("all {class} together") } else { "your address".to_owned() };
        let what = match self.limit {
            Limit::Rate => "more requests in this time than are allowed",
            Limit::InFlight => "as many requests in flight as are allowed",
            Limit::Waiting => "as many requests waiting as are allowed",
        };
        let seconds = self.retry_after_secs;
        let asked = match self.limit {
            Limit::Rate => "ask more slowly",
            Limit::InFlight | Limit::Waiting => "ask one after the other",
        };
        format!(
            "there are {what} from {whose} (class {class}); the source has nothing to do with it. Ask again \
             after {seconds} s, and {asked}; who needs more can be given a token by the operator of this proxy"
        )
    }
}

impl<C: Clock<Instant = Duration> + Clone + Send + Sync + 'static> Quotas<C> {
    /// All gates open.
    pub(super) fn new(config: &config::Clients, clock: C) -> Self {
        let known = config.known.iter().map(|known| known.quotas);
        let quotas = [config.harvesters, config.crawlers.quotas].into_iter().chain(known);
        let class = |config::Quotas { each, all }| Class {
            each,
            all: Arc::new(Gate::new(all, &clock)),
            others: Arc::new(Gate::new(each, &clock)),
        };
        let classes = quotas.map(class).collect();
        let clients = Mutex::new(Clients { gates: HashMap::new(), sweep_at: Duration::ZERO });
        Self { wait_max: config.wait_max, classes, clients, clock }
    }

    /// Waits until the request may be answered.
    ///
    /// # Errors
    ///
    /// That would be later than `wait_max`.
    pub(super) async fn admit(&self, client: Client) -> Result<Permit, Refused> {
        let until = self.clock.now() + self.wait_max;
        let class = &self.classes[client.class];
        let gate = self.gate(client);
        let own = gate.pass(&self.clock, until).await.map_err(|turned| turned.into_refused(false))?;
        let all = class.all.pass(&self.clock, until).await.map_err(|turned| turned.into_refused(true))?;
        Ok(Permit { _client: own, _class: all, _gate: gate })
    }

    /// The gate of a client, made when it asks first.
    fn gate(&self, client: Client) -> Arc<Gate<C>> {
        let now = self.clock.now();
        let class = &self.classes[client.class];
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.gates.len() >= CLIENTS_KEPT_MAX && !clients.gates.contains_key(&client) {
            clients.sweep(now);
            if clients.gates.len() >= CLIENTS_KEPT_MAX {
                return Arc::clone(&class.others);
            }
        }
        let remembered = clients
            .gates
            .entry(client)
            .or_insert_with(|| Remembered { gate: Arc::new(Gate::new(class.each, &self.clock)), seen: now });
        remembered.seen = now;
        Arc::clone(&remembered.gate)
    }
}

impl<C: Clock<Instant = Duration>> Clients<C> {
    /// Forgets who asks nothing now and has rested; looks at all of them, so
    /// not more often than each [`SWEEP_INTERVAL`].
    fn sweep(&mut self, now: Duration) {
        if now < self.sweep_at {
            return;
        }
        self.sweep_at = now + SWEEP_INTERVAL;
        self.gates.retain(|_, Remembered { gate, seen }| {
            Arc::strong_count(gate) > 1 || now.saturating_sub(*seen) < gate.rested
        });
    }
}

impl<C: Clock<Instant = Duration> + Clone> Gate<C> {
    fn new(quota: Quota, clock: &C) -> Self {
        let rate = quota.rate_per_minute.map(|per_minute| {
            Rate::per_minute(per_minute).allow_burst(quota.burst.unwrap_or(NonZeroU32::MIN))
        });
        Self {
            rested: rate.map_or(Duration::ZERO, |rate| rate.burst_size_replenished_in()),
            rate: rate.map(|rate| RateLimiter::direct_with_clock(rate, clock.clone())),
            places: quota.in_flight_max.map(|max| Arc::new(Semaphore::new(max.get() as usize))),
            waiting: AtomicUsize::new(0),
        }
    }

    async fn pass(&self, clock: &C, until: Duration) -> Result<Option<OwnedSemaphorePermit>, Turned> {
        self.turn(clock, until).await?;
        self.place(clock, until).await
    }

    /// Waits for its turn by the rate.
    async fn turn(&self, clock: &C, until: Duration) -> Result<(), Turned> {
        let Some(rate) = &self.rate else { return Ok(()) };
        let mut queued = None;
        loop {
            let Err(not_until) = rate.check() else { return Ok(()) };
            let now = clock.now();
            let wait = not_until.wait_time_from(now);
            if now + wait > until {
                return Err(Turned { limit: Limit::Rate, wait });
            }
            if queued.is_none() {
                queued = Some(self.queue()?);
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Waits for a place among those in flight.
    async fn place(&self, clock: &C, until: Duration) -> Result<Option<OwnedSemaphorePermit>, Turned> {
        let Some(places) = &self.places else { return Ok(None) };
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Ok(Some(place));
        }
        let left = until.saturating_sub(clock.now());
        let full = || Turned { limit: Limit::InFlight, wait: PLACE_WAIT };
        if left.is_zero() {
            return Err(full());
        }
        let _queued = self.queue()?;
        match tokio::time::timeout(left, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(Some(place)),
            // The semaphore is never closed, so this is the time that is over.
            Ok(Err(_)) | Err(_) => Err(full()),
        }
    }

    fn queue(&self) -> Result<Queued<'_>, Turned> {
        let queued = Queued(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            return Err(Turned { limit: Limit::Waiting, wait: PLACE_WAIT });
        }
        Ok(queued)
    }
}

/// One of those that wait.
struct Queued<'a>(&'a AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Turned away at one gate.
struct Turned {
    limit: Limit,
    /// How long it would have been to wait.
    wait: Duration,
}

impl Turned {
    fn into_refused(self, of_class: bool) -> Refused {
        // A second that has begun counts whole: who comes back is not early.
        let seconds = self.wait.as_nanos().div_ceil(1_000_000_000);
        let retry_after_secs = u64::try_from(seconds).unwrap_or(u64::MAX).clamp(1, RETRY_AFTER_SECS_MAX);
        Refused { limit: self.limit, of_class, retry_after_secs }
    }
}

impl<C: Clock<Instant = Duration>> fmt::Debug for Quotas<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner).gates.len();
        f.debug_struct("Quotas").field("clients", &clients).finish_non_exhaustive()
    }
}

/// Most clients whose state is kept; those beyond share one gate of their class.
const CLIENTS_KEPT_MAX: usize = 16_384;
/// Most requests that wait at one gate.
const WAITING_MAX: usize = 64;
/// Shortest time between two looks for clients to forget.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// When a place may be free, where nothing tells.
const PLACE_WAIT: Duration = Duration::from_secs(10);
/// Longest `Retry-After`, in seconds: more is not legal in OAI-PMH practice.
const RETRY_AFTER_SECS_MAX: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::super::clients::{CRAWLERS, HARVESTERS, Origin};
    use super::*;
    use futures::FutureExt as _;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::atomic::AtomicU64;

    /// A clock that stands until it is set, in nanoseconds.
    #[derive(Clone, Debug, Default)]
    struct Told(Arc<AtomicU64>);

    impl Told {
        fn advance(&self, by: Duration) {
            self.0.fetch_add(u64::try_from(by.as_nanos()).expect("short"), Ordering::Relaxed);
        }
    }

    impl Clock for Told {
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

    /// Nobody waits, so that each answer is there at once.
    fn quotas(each: Quota, all: Quota, clock: &Told) -> Quotas<Told> {
        let config = config::Clients {
            wait_max: Duration::ZERO,
            harvesters: config::Quotas { each, all },
            ..config::Clients::default()
        };
        Quotas::new(&config, clock.clone())
    }

    fn client(class: usize, number: u32) -> Client {
        Client { class, origin: Origin::of(IpAddr::V4(Ipv4Addr::from_bits(number))) }
    }

    fn ask(quotas: &Quotas<Told>, client: Client) -> Result<Permit, Refused> {
        quotas.admit(client).now_or_never().expect("nobody waits")
    }

    fn refusal(quotas: &Quotas<Told>, client: Client) -> Option<(&'static str, u64)> {
        ask(quotas, client).err().map(|refused| (refused.reason(), refused.retry_after_secs))
    }

    #[test]
    fn a_place_is_free_again_when_its_request_is_answered() {
        let quotas = quotas(quota(0, 0, 64), quota(0, 0, 100), &Told::default());
        let (one, other) = (client(HARVESTERS, 1), client(HARVESTERS, 2));
        let mut flying: Vec<Permit> = (0..64).map(|_| ask(&quotas, one).expect("64 may fly")).collect();
        assert_eq!(refusal(&quotas, one), Some(("in-flight", 10)));
        flying.pop();
        flying.push(ask(&quotas, one).expect("a place is free"));
        flying.extend((0..36).map(|_| ask(&quotas, other).expect("it has places of its own")));
        assert_eq!(refusal(&quotas, other), Some(("class-in-flight", 10)));
        assert_eq!(refusal(&quotas, client(CRAWLERS, 1)), None, "another class is another matter");
    }

    #[test]
    fn a_rate_lets_a_burst_pass_and_then_one_at_a_time() {
        let clock = Told::default();
        let quotas = quotas(quota(6, 3, 0), Quota::default(), &clock);
        let one = client(HARVESTERS, 1);
        for _ in 0..3 {
            assert_eq!(refusal(&quotas, one), None);
        }
        assert_eq!(refusal(&quotas, one), Some(("rate", 10)));
        clock.advance(Duration::from_millis(9_001));
        assert_eq!(refusal(&quotas, one), Some(("rate", 1)));
        clock.advance(Duration::from_millis(999));
        assert_eq!(refusal(&quotas, one), None);
        assert_eq!(refusal(&quotas, one), Some(("rate", 10)));
        assert_eq!(refusal(&quotas, client(HARVESTERS, 2)), None);
    }

    #[test]
    fn who_is_refused_for_itself_costs_its_class_nothing() {
        let quotas = quotas(quota(1, 1, 0), quota(1, 5, 0), &Told::default());
        assert_eq!(refusal(&quotas, client(HARVESTERS, 1)), None);
        for _ in 0..1000 {
            assert_eq!(refusal(&quotas, client(HARVESTERS, 1)), Some(("rate", 60)));
        }
        for number in 2..6 {
            assert_eq!(refusal(&quotas, client(HARVESTERS, number)), None, "{number}");
        }
        assert_eq!(refusal(&quotas, client(HARVESTERS, 6)), Some(("class-rate", 60)));
    }

    #[test]
    fn memory_is_bounded_however_many_ask() {
        let clock = Told::default();
        let quotas = quotas(quota(60, 1, 2), Quota::default(), &clock);
        let kept = || quotas.clients.lock().expect("no panic").gates.len();
        let held = ask(&quotas, client(HARVESTERS, 0)).expect("the first");
        let many = u32::try_from(CLIENTS_KEPT_MAX).expect("it is small");
        for number in 1..many {
            assert_eq!(refusal(&quotas, client(HARVESTERS, number)), None);
        }
        assert_eq!(kept(), CLIENTS_KEPT_MAX);
        // Nobody has rested yet: the others share what one client has.
        assert_eq!(refusal(&quotas, client(HARVESTERS, many)), None);
        assert_eq!(refusal(&quotas, client(HARVESTERS, many + 1)), Some(("rate", 1)));
        assert_eq!(kept(), CLIENTS_KEPT_MAX);
        clock.advance(Duration::from_secs(2));
        assert_eq!(refusal(&quotas, client(HARVESTERS, many)), None);
        assert_eq!(kept(), 2, "all have rested but the one in flight and the new one");
        let second = ask(&quotas, client(HARVESTERS, 0)).expect("the second");
        clock.advance(Duration::from_secs(2));
        assert_eq!(refusal(&quotas, client(HARVESTERS, 0)), Some(("in-flight", 10)));
        drop((held, second));
    }

    /// A generator that is the same everywhere (SplitMix64).
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

    /// Never more in any stretch of time than the burst and what the rate gives in it.
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
    fn never_above_the_rate_never_above_the_number_and_always_a_legal_retry_after() {
        for seed in 0..60 {
            println!("seed {seed}");
            let mut random = Random(seed);
            let (each, all) = (random.quota(), random.quota());
            let clock = Told::default();
            let quotas = quotas(each, all, &clock);
            let mut flying: Vec<(u32, Permit)> = Vec::new();
            let mut admitted: HashMap<u32, Vec<Duration>> = HashMap::new();
            for _ in 0..400 {
                clock.advance(Duration::from_millis(random.below(700)));
                if !flying.is_empty() && random.below(2) == 0 {
                    let landed = usize::try_from(random.below(flying.len() as u64)).expect("it is small");
                    flying.swap_remove(landed);
                }
                let number = u32::try_from(random.below(4)).expect("it is small");
                match ask(&quotas, client(HARVESTERS, number)) {
                    Ok(permit) => {
                        flying.push((number, permit));
                        admitted.entry(number).or_default().push(clock.now());
                    }
                    Err(refused) => {
                        let after = refused.retry_after_secs;
                        assert!((1..=3600).contains(&after), "{refused:?}");
                        if refused.limit == Limit::Rate && !refused.of_class {
                            // Whoever comes when told so is not refused for the rate again.
                            let probe = Told(Arc::new(AtomicU64::new(clock.0.load(Ordering::Relaxed))));
                            probe.advance(Duration::from_secs(after));
                            assert!(wait_of(&quotas, number, probe.now()).is_zero(), "{refused:?}");
                        }
                    }
                }
                let own = flying.iter().filter(|(flyer, _)| *flyer == number).count();
                assert!(each.in_flight_max.is_none_or(|max| own <= max.get() as usize), "seed {seed}");
                assert!(all.in_flight_max.is_none_or(|max| flying.len() <= max.get() as usize));
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
    fn wait_of(quotas: &Quotas<Told>, number: u32, at: Duration) -> Duration {
        let gate = quotas.gate(client(HARVESTERS, number));
        let refused = gate.rate.as_ref().and_then(|rate| rate.check().err());
        refused.map_or(Duration::ZERO, |not_until| at.max(not_until.earliest_possible()) - at)
    }
}
