//! What drives a conversation: whoever waits for its events.

use crate::upstream::event::Event;
use futures::future::BoxFuture;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// What goes on while somebody waits for something of it. It has no task of its own: that would be
/// woken, often on another thread, for each step. Dropped before its end it goes on in one.
#[derive(Default)]
pub struct DetachedTask(Option<BoxFuture<'static, ()>>);

impl DetachedTask {
    /// What goes on, when it is asked to.
    pub fn new(future: BoxFuture<'static, ()>) -> Self {
        Self(Some(future))
    }

    /// Goes on as far as can be without waiting.
    fn go_on(&mut self, context: &mut Context<'_>) {
        // What panics is not gone on with.
        if let Some(mut future) = self.0.take()
            && future.as_mut().poll(context).is_pending()
        {
            self.0 = Some(future);
        }
    }

    /// Goes on until something is so that it brings about, or until its own end.
    pub async fn until(&mut self, mut is_so: impl FnMut() -> bool) {
        poll_fn(|context| {
            if !is_so() {
                self.go_on(context);
            }
            if is_so() || self.0.is_none() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Waits for something else, and goes on meanwhile.
    pub async fn beside<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        poll_fn(|context| {
            let done = awaited.as_mut().poll(context);
            if done.is_pending() {
                self.go_on(context);
            }
            done
        })
        .await
    }
}

impl Drop for DetachedTask {
    fn drop(&mut self) {
        // Without a runtime the program is at its end.
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(rest);
        }
    }
}

/// A conversation on its way. Dropped before its end it goes on until it sees that nobody listens,
/// since it has to write down how far it came.
pub struct EventStream {
    events: mpsc::Receiver<Event>,
    conversation: DetachedTask,
}

impl EventStream {
    /// A conversation, and where its events arrive.
    pub(crate) fn new(events: mpsc::Receiver<Event>, conversation: BoxFuture<'static, ()>) -> Self {
        Self { events, conversation: DetachedTask::new(conversation) }
    }

    /// What happens next; `None` behind the end. Nothing is lost when this is dropped before it is done.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| {
            if let Ok(event) = self.events.try_recv() {
                return Poll::Ready(Some(event));
            }
            self.conversation.go_on(context);
            self.events.poll_recv(context)
        })
        .await
    }

    /// Waits for something else, and goes on meanwhile.
    pub async fn beside<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        self.conversation.beside(awaited).await
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // What goes on behind this sees that nobody listens.
        self.events.close();
    }
}
