//! The time a harvester's request may still take. All waiting for a source goes through it.

use crate::clock::Clock;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

/// Time that is spent by waiting, and given anew when something was reached.
#[derive(Debug)]
pub(super) struct Budget {
    clock: Arc<dyn Clock>,
    total: Duration,
    spent: Duration,
    /// What is reserved for later: no part of what is left.
    reserved: Duration,
}

/// Which time was over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// What this one step may take.
    Step,
    /// The whole budget.
    Budget,
}

impl Budget {
    pub(super) fn new(clock: Arc<dyn Clock>, total: Duration) -> Self {
        Self { clock, total, spent: Duration::ZERO, reserved: Duration::ZERO }
    }

    pub(super) fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// The clock, for what outlives this.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// A number from 0 to 1.
    pub(super) fn chance(&self) -> f64 {
        self.clock.chance()
    }

    /// What is left.
    pub(super) fn left(&self) -> Duration {
        self.total.saturating_sub(self.spent).saturating_sub(self.reserved)
    }

    /// What was spent of another budget was spent of this one too.
    pub(super) fn spend(&mut self, other: &Self) {
        self.spent += other.spent;
    }

    /// Something was reached: from here on there is so much time again.
    pub(super) fn renew(&mut self, total: Duration) {
        self.total = total;
        self.spent = Duration::ZERO;
        self.reserved = Duration::ZERO;
    }

    /// Reserves half of what is left.
    pub(super) fn reserve_half(&mut self) {
        self.reserved += self.left() / 2;
    }

    /// What was reserved may be spent.
    pub(super) fn release(&mut self) {
        self.reserved = Duration::ZERO;
    }

    /// Waits on purpose. The caller has seen to it that so much is left.
    pub(super) async fn pause(&mut self, time: Duration) {
        self.clock.pause(time).await;
        self.spent += time;
    }

    /// Waits for something that may take so long at the most.
    pub(super) async fn within<T>(
        &mut self,
        step: Duration,
        awaited: impl Future<Output = T>,
    ) -> Result<T, Late> {
        let mut awaited = pin!(awaited);
        // What is there already is had without the clock.
        let first = poll_fn(|context| Poll::Ready(awaited.as_mut().poll(context))).await;
        if let Poll::Ready(result) = first {
            return Ok(result);
        }
        let (late, limit) = if step < self.left() { (Late::Step, step) } else { (Late::Budget, self.left()) };
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
