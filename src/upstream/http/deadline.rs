//! The time a harvester's request may still take. All waiting for a source goes through it.

use crate::clock::Clock;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

/// Time that is spent by waiting, and given anew when something was reached.
#[derive(Debug)]
pub(crate) struct Deadline {
    clock: Arc<dyn Clock>,
    total: Duration,
    spent: Duration,
    /// What is reserved for later: no part of what is left.
    reserved: Duration,
}

/// Which time was over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedOut {
    /// What this one step may take.
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

    /// The clock, for what outlives this.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// A number from 0 to 1.
    pub(crate) fn chance(&self) -> f64 {
        self.clock.chance()
    }

    /// What is left.
    pub(crate) fn left(&self) -> Duration {
        self.total.saturating_sub(self.spent).saturating_sub(self.reserved)
    }

    /// What was spent of another budget was spent of this one too.
    pub(crate) fn spend(&mut self, other: &Self) {
        self.spent += other.spent;
    }

    /// Something was reached: from here on there is so much time again.
    pub(crate) fn renew(&mut self, total: Duration) {
        self.total = total;
        self.spent = Duration::ZERO;
        self.reserved = Duration::ZERO;
    }

    /// Reserves half of what is left.
    pub(crate) fn reserve_half(&mut self) {
        self.reserved += self.left() / 2;
    }

    /// What was reserved may be spent.
    pub(crate) fn release(&mut self) {
        self.reserved = Duration::ZERO;
    }

    /// Waits on purpose. The caller has seen to it that so much is left.
    pub(crate) async fn pause(&mut self, time: Duration) {
        self.clock.pause(time).await;
        self.spent += time;
    }

    /// Waits for something that may take so long at the most.
    pub(crate) async fn within<T>(
        &mut self,
        step: Duration,
        awaited: impl Future<Output = T>,
    ) -> Result<T, TimedOut> {
        let mut awaited = pin!(awaited);
        // What is there already is had without the clock.
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
