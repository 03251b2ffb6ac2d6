//! Where the bytes of an answer leave: as events, or in one piece when it is whole.

use crate::upstream::byte_rope::ByteRope;
use crate::upstream::event::Event;
use crate::upstream::event::ResponseHead;
use crate::upstream::failure::{Failure, Reason};
use tokio::sync::mpsc;

/// Why a conversation is over before its end.
pub(crate) enum Stop {
    Failed(Failure),
    /// Nobody listens any more.
    Gone,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The way to the harvester.
pub(crate) struct ResponseWriter {
    events: mpsc::Sender<Event>,
    /// Most bytes that are held for an answer in one piece; `None`: they leave as they come.
    in_one_piece: Option<usize>,
    begun: bool,
    held: ByteRope,
    status: u16,
}

impl ResponseWriter {
    pub(crate) fn new(events: mpsc::Sender<Event>, in_one_piece: Option<usize>) -> Self {
        Self { events, in_one_piece, begun: false, held: ByteRope::default(), status: 200 }
    }

    /// Whether something has left, so that what follows must fit behind it.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Sends what was made; the head of the answer first. `status` is the source's.
    pub(crate) async fn send(&mut self, made: ByteRope, status: u16) -> Result<(), Stop> {
        if made.is_empty() {
            return Ok(());
        }
        let first = !std::mem::replace(&mut self.begun, true);
        let Some(max) = self.in_one_piece else {
            if first {
                self.event(Event::Head(ResponseHead { received_status: status, length: None })).await?;
            }
            return self.body(made).await;
        };
        self.status = status;
        if self.held.len() + made.len() > max {
            let details = format!(
                "the page is longer than {max} bytes (spool_bytes_max) for HTTP/1.0; ask with HTTP/1.1"
            );
            return Err(Failure::new(Reason::SpoolFull, details).into());
        }
        self.held.append(made);
        Ok(())
    }

    /// The answer is whole: what was held leaves.
    pub(crate) async fn finish(&mut self) -> Result<(), Stop> {
        if self.in_one_piece.is_none() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        let answer = ResponseHead { received_status: self.status, length: Some(held.len()) };
        self.event(Event::Head(answer)).await?;
        self.body(held).await
    }

    async fn body(&self, made: ByteRope) -> Result<(), Stop> {
        for run in made.into_runs() {
            self.event(Event::Body(run)).await?;
        }
        Ok(())
    }

    async fn event(&self, event: Event) -> Result<(), Stop> {
        self.events.send(event).await.map_err(|_| Stop::Gone)
    }
}
