//! Sends the bytes of a response: as events, or in one piece once it is whole.

use crate::byte_rope::ByteRope;
use crate::event::{AnsweredBy, Event, ListAge, ResponseHead};
use crate::failure::{Failure, Reason};
use tokio::sync::mpsc;

/// Why a session ended before its response was complete.
pub enum Stop {
    /// The source or a store failed.
    Failed(Failure),
    /// The receiver was dropped.
    Gone,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Sends a response to the harvester.
pub struct ResponseWriter {
    events: mpsc::Sender<Event>,
    /// Maximum number of bytes that are held for a response in one piece; `None`: bytes are sent at once.
    in_one_piece: Option<usize>,
    begun: bool,
    /// The bytes that were sent or held.
    sent_bytes: u64,
    held: ByteRope,
    answered_by: AnsweredBy,
    list: Option<ListAge>,
}

impl ResponseWriter {
    /// A writer into a channel. `in_one_piece`: the body is held until it is whole, up to this number of bytes.
    pub fn new(events: mpsc::Sender<Event>, in_one_piece: Option<usize>) -> Self {
        Self {
            events,
            in_one_piece,
            begun: false,
            sent_bytes: 0,
            held: ByteRope::default(),
            answered_by: AnsweredBy::Source(200),
            list: None,
        }
    }

    /// Whether bytes were sent, so that later bytes must continue them.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// The number of bytes that were sent, or are held for a response in one piece.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Fails if the receiver of the response was dropped. Sending fails then too, but a page without output sends
    /// nothing.
    pub fn check_receiver(&self) -> Result<(), Stop> {
        if self.events.is_closed() { Err(Stop::Gone) } else { Ok(()) }
    }

    /// Sets the times of the list for the head of the response.
    pub fn set_list_age(&mut self, age: ListAge) {
        self.list = Some(age);
    }

    /// Sends output, after the head of the response.
    pub async fn send(&mut self, output: ByteRope, answered_by: AnsweredBy) -> Result<(), Stop> {
        if output.is_empty() {
            return Ok(());
        }
        let first = !std::mem::replace(&mut self.begun, true);
        self.sent_bytes += output.len() as u64;
        let Some(max) = self.in_one_piece else {
            if first {
                let head = ResponseHead { answered_by, length: None, list: self.list };
                self.event(Event::Head(head)).await?;
            }
            return self.body(output).await;
        };
        self.answered_by = answered_by;
        if self.held.len() + output.len() > max {
            let details = format!(
                "the page is longer than {max} bytes (spool_bytes_max) for HTTP/1.0; ask with HTTP/1.1"
            );
            return Err(Failure::new(Reason::SpoolFull, details).into());
        }
        self.held.append(output);
        Ok(())
    }

    /// Ends a whole response: sends the held bytes.
    pub async fn finish(&mut self) -> Result<(), Stop> {
        if self.in_one_piece.is_none() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        let answered_by = self.answered_by.clone();
        let head = ResponseHead { answered_by, length: Some(held.len()), list: self.list };
        self.event(Event::Head(head)).await?;
        self.body(held).await
    }

    async fn body(&self, output: ByteRope) -> Result<(), Stop> {
        for run in output.into_runs() {
            self.event(Event::Body(run)).await?;
        }
        Ok(())
    }

    /// Sends an event beside the bytes.
    pub async fn report(&self, event: Event) -> Result<(), Stop> {
        self.event(event).await
    }

    async fn event(&self, event: Event) -> Result<(), Stop> {
        self.events.send(event).await.map_err(|_| Stop::Gone)
    }
}
