//! Drives a session from the task that waits for its events.

use crate::event::Event;
use futures::future::BoxFuture;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// A future that runs while something is awaited from it. It has no task of its own, which would be woken,
/// often on another thread, for each step. If it is dropped before its end, it continues in a task.
#[derive(Default)]
pub struct DetachedTask(Option<BoxFuture<'static, ()>>);

impl DetachedTask {
    /// Wraps a future, which does not run yet.
    pub fn new(future: BoxFuture<'static, ()>) -> Self {
        Self(Some(future))
    }

    /// Runs as far as possible without waiting.
    fn run(&mut self, context: &mut Context<'_>) {
        // A future that panics is not polled again.
        if let Some(mut future) = self.0.take()
            && future.as_mut().poll(context).is_pending()
        {
            self.0 = Some(future);
        }
    }

    /// Runs until a condition holds that the future brings about, or until its own end.
    pub async fn until(&mut self, mut is_done: impl FnMut() -> bool) {
        poll_fn(|context| {
            if !is_done() {
                self.run(context);
            }
            if is_done() || self.0.is_none() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Awaits another future, and runs meanwhile.
    pub async fn beside<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        poll_fn(|context| {
            let done = awaited.as_mut().poll(context);
            if done.is_pending() {
                self.run(context);
            }
            done
        })
        .await
    }
}

impl Drop for DetachedTask {
    fn drop(&mut self) {
        // Without a runtime the program is ending.
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(rest);
        }
    }
}

/// The events of a session. If it is dropped before its end, the session runs until it sees that the
/// receiver is gone, since it has to note its progress.
pub struct EventStream {
    events: mpsc::Receiver<Event>,
    session: DetachedTask,
}

impl EventStream {
    /// A session, and the receiver of its events.
    pub fn new(events: mpsc::Receiver<Event>, session: BoxFuture<'static, ()>) -> Self {
        Self { events, session: DetachedTask::new(session) }
    }

    /// The next event; `None` after the end. Cancellation safe.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| {
            if let Ok(event) = self.events.try_recv() {
                return Poll::Ready(Some(event));
            }
            self.session.run(context);
            self.events.poll_recv(context)
        })
        .await
    }

    /// Awaits another future, and runs meanwhile.
    pub async fn beside<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        self.session.beside(awaited).await
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // The detached session sees that the receiver is gone.
        self.events.close();
    }
}
