//! The time that a request may still take. All waiting for a source uses it.

use oaimend_base::clock::Clock;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

/// A time budget that waiting spends and progress renews.
#[derive(Debug)]
pub(crate) struct Deadline {
    clock: Arc<dyn Clock>,
    total: Duration,
    spent: Duration,
    /// Time that is reserved for later: no part of the remaining time.
    reserved: Duration,
}

/// Which time ended first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedOut {
    /// The time of one step.
    Step,
    /// The whole budget.
    Deadline,
}

impl Deadline {
    pub(crate) fn new(clock: Arc<dyn Clock>, total: Duration) -> Self {
        Self { clock, total, spent: Duration::ZERO, reserved: Duration::ZERO }
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// The clock, for tasks that outlive the deadline.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// A number from 0 to 1.
    pub(crate) fn chance(&self) -> f64 {
        self.clock.chance()
    }

    /// The remaining time.
    pub(crate) fn left(&self) -> Duration {
        self.total.saturating_sub(self.spent).saturating_sub(self.reserved)
    }

    /// Spends the time that another deadline has spent.
    pub(crate) fn spend(&mut self, other: &Self) {
        self.spent += other.spent;
    }

    /// Counts the time since `since`, when `spent` was spent, even if nothing was awaited meanwhile: work on
    /// data that is always ready takes time too.
    pub(crate) fn count_since(&mut self, since: SystemTime, spent: Duration) {
        let passed = self.clock.now().duration_since(since).unwrap_or_default();
        self.spent = self.spent.max(spent + passed);
    }

    /// The time that was spent so far.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// Starts the time again after progress.
    pub(crate) fn renew(&mut self, total: Duration) {
        self.total = total;
        self.spent = Duration::ZERO;
        self.reserved = Duration::ZERO;
    }

    /// Reserves half of the remaining time.
    pub(crate) fn reserve_half(&mut self) {
        self.reserved += self.left() / 2;
    }

    /// Releases the reserved time.
    pub(crate) fn release(&mut self) {
        self.reserved = Duration::ZERO;
    }

    /// Waits on purpose. The caller has checked that enough time remains.
    pub(crate) async fn pause(&mut self, time: Duration) {
        self.clock.pause(time).await;
        self.spent += time;
    }

    /// Awaits a future for `step` at most.
    pub(crate) async fn within<T>(
        &mut self,
        step: Duration,
        awaited: impl Future<Output = T>,
    ) -> Result<T, TimedOut> {
        let mut awaited = pin!(awaited);
        // Poll once before starting the timer.
        let first = poll_fn(|context| Poll::Ready(awaited.as_mut().poll(context))).await;
        if let Poll::Ready(result) = first {
            return Ok(result);
        }
        let (late, limit) =
            if step < self.left() { (TimedOut::Step, step) } else { (TimedOut::Deadline, self.left()) };
        let before = self.clock.now();
        let result = tokio::select! {
            biased;
            result = awaited => Ok(result),
            () = self.clock.deadline(limit) => Err(late),
        };
        let passed = self.clock.now().duration_since(before).unwrap_or_default();
        self.spent += if result.is_err() { passed.max(limit) } else { passed };
        result
    }
}
