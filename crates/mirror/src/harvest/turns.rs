//! The turns of harvests. A limited number of harvests runs at a time, and the others wait in a queue.
//!
//! A list can be endless, and a source can fail for hours. So a harvest whose turn is over goes to the end of the queue
//! while others wait, and continues where it was in its next turn. It also leaves its place during long waits.
//!
//! Most harvests end within their first turn. Many short turns would not do for a long list, because its token can expire
//! between them. So each turn is twice as long as the one before.

use oaimend_base::clock::Clock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot;

/// The length of the first turn of a harvest.
const FIRST_TURN: Duration = Duration::from_secs(30);
/// Maximum length of a turn.
const TURN_MAX: Duration = Duration::from_secs(3_600);
/// A harvest leaves its place during a longer wait.
const WAIT_IN_PLACE_MAX: Duration = Duration::from_secs(30);

/// The places of running harvests, and the queue for them.
#[derive(Debug, Default)]
pub struct HarvestTurns(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    running: usize,
    running_max: usize,
    waiting: VecDeque<Waiting>,
}

/// A harvest that waits for its turn.
#[derive(Debug)]
struct Waiting {
    repository: String,
    wake: oneshot::Sender<()>,
}

/// The turn of a harvest. The default is a harvest that runs outside the queue.
#[derive(Clone, Debug, Default)]
pub struct HarvestTurn(Option<Arc<Turn>>);

#[derive(Debug)]
struct Turn {
    turns: Arc<HarvestTurns>,
    repository: String,
    state: Mutex<TurnState>,
}

#[derive(Debug)]
struct TurnState {
    began: SystemTime,
    length: Duration,
    /// Whether it has a place.
    has_place: bool,
}

impl HarvestTurns {
    /// Sets the number of harvests that may run at a time. If more of them run, their turns end in time.
    pub fn set_running_max(&self, running_max: usize) {
        let mut queue = lock(&self.0);
        queue.running_max = running_max.max(1);
        queue.wake();
    }

    /// Moves the harvest of a repository to the start of the queue, if it waits.
    pub fn advance(&self, repository: &str) {
        let mut queue = lock(&self.0);
        let found = queue.waiting.iter().position(|waiting| waiting.repository == repository);
        if let Some(waiting) = found.and_then(|found| queue.waiting.remove(found)) {
            queue.waiting.push_front(waiting);
        }
    }

    /// Puts the harvest of a repository at the end of the queue. The future waits until it may begin. The place is free
    /// again when the turn is dropped.
    pub fn begin(
        self: &Arc<Self>,
        repository: &str,
        clock: Arc<dyn Clock>,
    ) -> impl Future<Output = HarvestTurn> + Send + use<> {
        let place = self.enqueue(repository);
        let (turns, repository) = (Arc::clone(self), repository.to_owned());
        async move {
            // The queue drops no sender before it is used.
            let _ = place.await;
            let state = TurnState { began: clock.now(), length: FIRST_TURN, has_place: true };
            HarvestTurn(Some(Arc::new(Turn { turns, repository, state: Mutex::new(state) })))
        }
    }

    fn enqueue(&self, repository: &str) -> oneshot::Receiver<()> {
        let mut queue = lock(&self.0);
        let (wake, place) = oneshot::channel();
        queue.waiting.push_back(Waiting { repository: repository.to_owned(), wake });
        queue.wake();
        place
    }

    fn free_place(&self) {
        let mut queue = lock(&self.0);
        queue.running = queue.running.saturating_sub(1);
        queue.wake();
    }

    /// Whether another harvest needs the place of a running one.
    fn is_full(&self) -> bool {
        let queue = lock(&self.0);
        !queue.waiting.is_empty() || queue.running > queue.running_max
    }
}

impl Queue {
    /// Gives the free places to the first harvests of the queue.
    fn wake(&mut self) {
        while self.running < self.running_max
            && let Some(first) = self.waiting.pop_front()
        {
            // A harvest that was dropped meanwhile needs no place.
            self.running += usize::from(first.wake.send(()).is_ok());
        }
    }
}

impl HarvestTurn {
    /// Whether the turn is over and another harvest waits.
    pub(crate) fn is_over(&self, clock: &dyn Clock) -> bool {
        self.0.as_ref().is_some_and(|turn| {
            let (began, length) = {
                let state = lock(&turn.state);
                (state.began, state.length)
            };
            // The clock may have been set back.
            let is_within = clock.now().duration_since(began).is_ok_and(|age| age < length);
            !is_within && turn.turns.is_full()
        })
    }

    /// Waits, and lets other harvests go on if the turn is over. Returns whether it has lost its place meanwhile.
    pub(crate) async fn pause(&self, time: Duration, clock: &dyn Clock) -> bool {
        let Some(turn) = &self.0 else {
            clock.pause(time).await;
            return false;
        };
        if time > WAIT_IN_PLACE_MAX {
            turn.leave_place();
            clock.pause(time).await;
        } else {
            clock.pause(time).await;
            if !self.is_over(clock) {
                return false;
            }
            turn.leave_place();
        }
        turn.return_to_place(clock).await;
        true
    }
}

impl Turn {
    fn leave_place(&self) {
        if std::mem::take(&mut lock(&self.state).has_place) {
            self.turns.free_place();
        }
    }

    async fn return_to_place(&self, clock: &dyn Clock) {
        let _ = self.turns.enqueue(&self.repository).await;
        let mut state = lock(&self.state);
        let length = (state.length * 2).min(TURN_MAX);
        *state = TurnState { began: clock.now(), length, has_place: true };
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave_place();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock whose pauses end at once, and move it.
    #[derive(Debug, Default)]
    struct TestClock(AtomicU64);

    impl Clock for TestClock {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::SeqCst))
        }

        fn pause(&self, time: Duration) -> BoxFuture<'static, ()> {
            self.0.fetch_add(time.as_secs(), Ordering::SeqCst);
            futures::future::ready(()).boxed()
        }

        fn deadline(&self, _: Duration) -> BoxFuture<'static, ()> {
            futures::future::pending().boxed()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn turns(running_max: usize) -> Arc<HarvestTurns> {
        let turns = Arc::new(HarvestTurns::default());
        turns.set_running_max(running_max);
        turns
    }

    #[test]
    fn harvests_wait_in_order_and_a_requested_one_goes_first() {
        let (turns, clock) = (turns(2), Arc::new(TestClock::default()));
        let begin = |id: &str| turns.begin(id, Arc::clone(&clock) as Arc<dyn Clock>).boxed();
        let first = begin("a").now_or_never().expect("a place is free");
        let second = begin("b").now_or_never().expect("a place is free");
        let (mut c, mut d) = (begin("c"), begin("d"));
        assert!((&mut c).now_or_never().is_none() && (&mut d).now_or_never().is_none());
        turns.advance("d");
        drop(first);
        let fourth = (&mut d).now_or_never().expect("it was first");
        assert!((&mut c).now_or_never().is_none());
        drop(second);
        let third = (&mut c).now_or_never().expect("it was next");
        turns.set_running_max(1);
        drop((third, fourth));
        assert!(begin("e").now_or_never().is_some());
    }

    #[test]
    fn a_turn_ends_while_others_wait_and_the_next_one_is_longer() {
        let (turns, clock) = (turns(1), Arc::new(TestClock::default()));
        let turn = turns.begin("a", clock.clone()).now_or_never().expect("a place is free");
        let mut pauses = Vec::new();
        for _ in 0..3 {
            let mut other = turns.begin("b", clock.clone()).boxed_local();
            assert!((&mut other).now_or_never().is_none());
            let mut count = 0;
            let mut waiting = loop {
                let mut pause = turn.pause(SECOND, &*clock).boxed_local();
                if (&mut pause).now_or_never() != Some(false) {
                    break pause;
                }
                count += 1;
            };
            pauses.push(count);
            drop((&mut other).now_or_never().expect("the place is free"));
            assert_eq!((&mut waiting).now_or_never(), Some(true));
        }
        assert_eq!(pauses, [29, 59, 119]);
        let alone = (0..10_000).all(|_| turn.pause(SECOND, &*clock).now_or_never() == Some(false));
        assert!(alone, "nobody waits");
    }

    #[test]
    fn a_harvest_leaves_its_place_during_a_long_wait() {
        let (turns, clock) = (turns(1), Arc::new(TestClock::default()));
        let turn = turns.begin("a", clock.clone()).now_or_never().expect("a place is free");
        let mut other = turns.begin("b", clock.clone()).boxed_local();
        assert!((&mut other).now_or_never().is_none());
        let mut waiting = turn.pause(Duration::from_secs(31), &*clock).boxed_local();
        assert!((&mut waiting).now_or_never().is_none());
        let other = (&mut other).now_or_never().expect("the place is free");
        drop((waiting, other));
        // The harvest that was dropped in the queue needs no place.
        assert!(turns.begin("c", clock.clone()).now_or_never().is_some());
    }
}
