//! What drives a conversation: whoever waits for its events.

use super::session::Event;
use futures::future::BoxFuture;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// A conversation on its way. It has no task of its own: that would be woken, often on another
/// thread, for each event. Dropped before its end it goes on in one until it sees that nobody listens,
/// since it has to write down how far it came.
pub struct Conversing {
    events: mpsc::Receiver<Event>,
    /// `None` when it is over.
    conversation: Option<BoxFuture<'static, ()>>,
}

impl Conversing {
    /// A conversation, and where its events arrive.
    pub(super) fn new(events: mpsc::Receiver<Event>, conversation: BoxFuture<'static, ()>) -> Self {
        Self { events, conversation: Some(conversation) }
    }

    /// What happens next; `None` behind the end. Nothing is lost when this is dropped before it is done.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| {
            if let Ok(event) = self.events.try_recv() {
                return Poll::Ready(Some(event));
            }
            self.go_on(context);
            self.events.poll_recv(context)
        })
        .await
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

    /// Goes on as far as can be without waiting.
    fn go_on(&mut self, context: &mut Context<'_>) {
        let conversation = self.conversation.as_mut();
        if conversation.is_some_and(|conversation| conversation.as_mut().poll(context).is_ready()) {
            self.conversation = None;
        }
    }
}

impl Drop for Conversing {
    fn drop(&mut self) {
        self.events.close();
        // Without a runtime the program is at its end.
        if let (Some(rest), Ok(runtime)) = (self.conversation.take(), Handle::try_current()) {
            runtime.spawn(rest);
        }
    }
}
