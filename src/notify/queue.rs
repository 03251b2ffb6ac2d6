//! The events that wait for their delivery, and the waits between two attempts.
//!
//! The queue is in memory: events that wait when the program ends are lost.

use super::event::Event;
use oaimend_rules::backoff;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Maximum number of events that wait for one target. Later ones are dropped.
const QUEUED_EVENTS_MAX: usize = 256;
/// Maximum number of attempts to deliver one message.
const ATTEMPTS_MAX: u32 = 8;
/// The wait after the first attempt, before it is spread.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest wait between two attempts.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// The events that wait for one target.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    waiting: Mutex<VecDeque<Event>>,
    arrived: Notify,
}

impl EventQueue {
    /// Adds events. Returns how many were dropped because the queue is full.
    pub(crate) fn push(&self, events: &[Event]) -> usize {
        let mut waiting = self.waiting();
        let free = QUEUED_EVENTS_MAX.saturating_sub(waiting.len());
        waiting.extend(events.iter().take(free).cloned());
        drop(waiting);
        self.arrived.notify_one();
        events.len().saturating_sub(free)
    }

    /// Waits until an event is there. One task at a time may wait.
    pub(crate) async fn wait(&self) {
        while self.waiting().is_empty() {
            self.arrived.notified().await;
        }
    }

    /// Takes the oldest events, at most `count_max`.
    pub(crate) fn take(&self, count_max: usize) -> Vec<Event> {
        let mut waiting = self.waiting();
        let count = waiting.len().min(count_max);
        waiting.drain(..count).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wait after this number of failed attempts; `None`: give up. It doubles up to a limit, and `chance`, from 0 to 1,
/// spreads it between half of that and all of it.
pub(crate) fn retry_wait(failed_attempts: u32, chance: f64) -> Option<Duration> {
    if failed_attempts >= ATTEMPTS_MAX {
        return None;
    }
    let whole = backoff(FIRST_WAIT, failed_attempts.max(1), WAIT_MAX);
    Some(whole.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::event::EventKind;
    use oaimend_oai::UnixSecs;

    #[test]
    fn waits_double_within_limits_and_end() {
        let secs = |attempts, chance| retry_wait(attempts, chance).map(|wait| wait.as_secs_f64());
        let waits: Vec<f64> = (1..).map_while(|attempts| secs(attempts, 1.0)).collect();
        assert_eq!(waits, [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0]);
        assert_eq!(
            (secs(3, 0.0), secs(3, 0.5), secs(3, f64::INFINITY)),
            (Some(10.0), Some(15.0), Some(20.0))
        );
        assert_eq!(secs(u32::MAX, 0.5), None);
    }

    #[tokio::test]
    async fn queue_is_bounded_and_keeps_the_order() {
        let queue = EventQueue::default();
        let event = |at_secs| Event { at_secs, repository: String::new(), kind: EventKind::Test };
        let many: Vec<Event> = (0..250).map(UnixSecs).map(event).collect();
        assert_eq!(queue.push(&many), 0);
        assert_eq!(queue.push(&many), 244);
        queue.wait().await;
        let taken = queue.take(100);
        assert_eq!((taken.len(), taken[0].at_secs, taken[99].at_secs), (100, UnixSecs(0), UnixSecs(99)));
        assert_eq!(queue.take(1_000).len(), 156);
        assert!(queue.take(1).is_empty());
    }
}
