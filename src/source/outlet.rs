//! Where the bytes of an answer leave: as events, or in one piece when it is whole.

use super::failure::{Failure, Reason};
use super::session::{Answer, Event, Stop};
use bytes::Bytes;
use tokio::sync::mpsc;

/// The way to the harvester.
pub(super) struct Outlet {
    events: mpsc::Sender<Event>,
    /// Most bytes that are held for an answer in one piece; `None`: they leave as they come.
    in_one_piece: Option<usize>,
    begun: bool,
    /// What is sent waits for what comes next.
    is_holding: bool,
    held: Vec<u8>,
    status: u16,
}

impl Outlet {
    pub(super) fn new(events: mpsc::Sender<Event>, in_one_piece: Option<usize>) -> Self {
        Self { events, in_one_piece, begun: false, is_holding: false, held: Vec::new(), status: 200 }
    }

    /// Whether something has left, so that what follows must fit behind it.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Lets what is sent from here on wait until [`Outlet::release`]: the last bytes of a page are
    /// there, and what the engine makes of its end is to leave in the same piece.
    pub(super) fn hold(&mut self) {
        self.is_holding = true;
    }

    /// Sends what was held like that.
    pub(super) async fn release(&mut self) -> Result<(), Stop> {
        self.is_holding = false;
        if self.in_one_piece.is_some() || self.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        self.body(held).await
    }

    /// Sends bytes; the head of the answer first. `status` is the source's.
    pub(super) async fn send(&mut self, mut bytes: Vec<u8>, status: u16) -> Result<(), Stop> {
        if bytes.is_empty() {
            return Ok(());
        }
        let first = !std::mem::replace(&mut self.begun, true);
        let Some(max) = self.in_one_piece else {
            if first {
                self.event(Event::Head(Answer { received_status: status, length: None })).await?;
            }
            if !self.is_holding {
                return self.body(bytes).await;
            }
            match self.held.is_empty() {
                true => self.held = bytes,
                false => self.held.append(&mut bytes),
            }
            return Ok(());
        };
        self.status = status;
        if self.held.len() + bytes.len() > max {
            let details = format!(
                "the page is longer than {max} bytes (spool_bytes_max) for HTTP/1.0; ask with HTTP/1.1"
            );
            return Err(Failure::new(Reason::SpoolFull, details).into());
        }
        self.held.extend_from_slice(&bytes);
        Ok(())
    }

    /// The answer is whole: what was held leaves.
    pub(super) async fn finish(&mut self) -> Result<(), Stop> {
        if self.in_one_piece.is_none() {
            return Ok(());
        }
        let body = Bytes::from(std::mem::take(&mut self.held));
        let answer = Answer { received_status: self.status, length: Some(body.len()) };
        self.event(Event::Head(answer)).await?;
        self.event(Event::Body(body)).await
    }

    async fn body(&self, mut bytes: Vec<u8>) -> Result<(), Stop> {
        if bytes.capacity() / 2 > bytes.len() {
            // Whoever holds them counts their length alone.
            bytes.shrink_to_fit();
        }
        self.event(Event::Body(bytes.into())).await
    }

    async fn event(&self, event: Event) -> Result<(), Stop> {
        self.events.send(event).await.map_err(|_| Stop::Gone)
    }
}
