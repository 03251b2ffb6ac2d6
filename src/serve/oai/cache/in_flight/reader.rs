//! A reader of a page in flight.

use super::page::{End, Held, InFlightPage, MEMORY_PIECE_BYTES, PIECE_BYTES, PageError, State, index};
use crate::serve::oai::cache::disk_threads::read_on_disk;
use bytes::Bytes;
use std::sync::Arc;

/// Reads a page from its start.
#[derive(Debug)]
pub(in crate::serve::oai) struct Reader {
    pub(in crate::serve::oai) page: Arc<InFlightPage>,
    id: u64,
    at: u64,
}

impl Reader {
    /// A reader from the start. `None` for a ring, whose start may already be overwritten.
    pub(in crate::serve::oai::cache) fn start(page: &Arc<InFlightPage>) -> Option<Self> {
        let mut state = page.state();
        (!state.is_ring).then(|| Self::admit(page, &mut state))
    }

    fn admit(page: &Arc<InFlightPage>, state: &mut State) -> Self {
        let id = state.next_reader;
        state.next_reader += 1;
        state.readers.insert(id, 0);
        Self { page: Arc::clone(page), id, at: 0 }
    }

    /// The reader of the request that starts the page.
    pub(in crate::serve::oai::cache) fn first(page: &Arc<InFlightPage>) -> Self {
        Self::admit(page, &mut page.state())
    }

    /// Whether bytes or the end can be read.
    pub(in crate::serve::oai) fn has_more(&self) -> bool {
        let state = self.page.state();
        state.written > self.at || state.end != End::Open
    }

    /// The next bytes; `None` at the end of a complete page.
    ///
    /// Cancel-safe: dropping the future loses no bytes.
    ///
    /// # Errors
    ///
    /// The page was truncated, or the disk fails.
    pub(in crate::serve::oai) async fn next(&mut self) -> Result<Option<Bytes>, PageError> {
        loop {
            let page = Arc::clone(&self.page);
            // Created before the check, so that a later notification is not missed.
            let more = page.progress.notified();
            let part = {
                let state = self.page.state();
                let there = state.written - self.at;
                if there == 0 {
                    match state.end {
                        End::Open => None,
                        End::Whole { .. } => return Ok(None),
                        End::Broken => return Err(PageError::Broken),
                    }
                } else {
                    let at = self.at % state.capacity;
                    let count = there.min(PIECE_BYTES as u64).min(state.capacity - at);
                    match &state.held {
                        Held::Memory(memory) => {
                            let count = there.min(MEMORY_PIECE_BYTES as u64);
                            let bytes = memory.read(index(at), index(count));
                            drop(state);
                            if bytes.is_empty() {
                                return Err(PageError::Broken);
                            }
                            self.advance(bytes.len() as u64);
                            return Ok(Some(bytes));
                        }
                        Held::Ring(ring) => {
                            let bytes = ring.get(index(at)..index(at + count)).ok_or(PageError::Broken)?;
                            let bytes = Bytes::copy_from_slice(bytes);
                            drop(state);
                            self.advance(count);
                            return Ok(Some(bytes));
                        }
                        Held::File(part) => Some((Arc::clone(part), at, count)),
                    }
                }
            };
            let Some((part, at, count)) = part else {
                more.await;
                continue;
            };
            let read = read_on_disk(move || {
                let mut bytes = vec![0; usize::try_from(count).unwrap_or_default()];
                part.read(at, &mut bytes).map(|()| bytes)
            });
            let bytes = read.await?;
            self.advance(count);
            return Ok(Some(bytes.into()));
        }
    }

    fn advance(&mut self, count: u64) {
        self.at += count;
        let mut state = self.page.state();
        if let Some(at) = state.readers.get_mut(&self.id) {
            *at = self.at;
        }
        // Only the writer of a ring waits for room.
        if state.is_ring {
            self.page.room.notify_waiters();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.page.leave(self.id);
    }
}
