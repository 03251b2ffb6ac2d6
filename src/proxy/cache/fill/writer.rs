//! What writes an answer into the spool, and keeps it when it is whole and worth that.

use super::{Begun, End, Fill, Held, Over, PIECE_BYTES, Reader, once_true, runs, until};
use crate::clock;
use crate::proxy::cache::rules::{END_BYTES, Kept};
use crate::proxy::cache::storage::Meta;
use crate::store::{BlockSums, Pages};
use crate::upstream::Account;
use bytes::Bytes;
use pingora_http::ResponseHeader;
use std::sync::Arc;
use std::time::SystemTime;

/// Writes a fill. Dropped before its end, the fill is broken.
pub(in crate::proxy::cache) struct Writer {
    pub(in crate::proxy::cache) fill: Arc<Fill>,
    pages: Arc<Pages>,
    sums: BlockSums,
    end: Vec<u8>,
}

impl Writer {
    pub(super) fn new(fill: Arc<Fill>, pages: Arc<Pages>) -> Self {
        Self { fill, pages, sums: BlockSums::default(), end: Vec::new() }
    }

    /// Takes the next bytes; waits while there is no room for them.
    ///
    /// # Errors
    ///
    /// Nobody wants the page any more, or the disk fails.
    pub(in crate::proxy::cache) async fn append(&mut self, mut bytes: Bytes) -> Result<(), Over> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            self.wait_for_room(piece.len() as u64).await?;
            if self.fill.plan.is_kept {
                self.sums.push(&piece);
                self.note_end(&piece);
            }
            let count = piece.len() as u64;
            let is_held = self.fill.state().remember(&piece);
            if !is_held && let Err(error) = self.write(piece.clone()).await {
                tracing::error!(
                    repository = self.fill.key.repository(),
                    %error,
                    "a page cannot be spooled and goes on without being kept; check space and rights of the \
                     data folder"
                );
                self.go_on_in_memory().await?;
                self.wait_for_room(count).await?;
                self.fill.state().remember(&piece);
            }
            self.fill.state().written += count;
            self.fill.progress.notify_waiters();
        }
        Ok(())
    }

    /// Remembers the last bytes of the page, which say how long it is kept.
    fn note_end(&mut self, piece: &[u8]) {
        let last = piece.get(piece.len().saturating_sub(END_BYTES)..).unwrap_or_default();
        self.end.drain(..(self.end.len() + last.len()).saturating_sub(END_BYTES));
        self.end.extend_from_slice(last);
    }

    /// The reader of the request that begins the page.
    pub(in crate::proxy::cache) fn reader(&self) -> Reader {
        self.fill.admit(&mut self.fill.state())
    }

    /// The answer begins.
    pub(in crate::proxy::cache) fn begin_with(&self, head: ResponseHeader) {
        let _ = self.fill.begun.set(Begun { head, at: clock::now() });
        self.fill.progress.notify_waiters();
    }

    /// Waits until nobody wants the page any more.
    pub(in crate::proxy::cache) async fn unwanted(&self) {
        until(&self.fill.room, || self.fill.is_unwanted().then_some(())).await;
    }

    /// Makes a ring in memory of what is held, once all has been read that memory does not have.
    async fn go_on_in_memory(&self) -> Result<(), Over> {
        until(&self.fill.room, || once_true(self.fill.state().forget_file())).await
    }

    async fn wait_for_room(&self, count: u64) -> Result<(), Over> {
        until(&self.fill.room, || once_true(self.fill.state().has_room(count))).await
    }

    /// Writes a piece to the file, which is made if it is not there.
    async fn write(&self, piece: Bytes) -> std::io::Result<()> {
        let (fill, pages) = (Arc::clone(&self.fill), Arc::clone(&self.pages));
        let written = tokio::task::spawn_blocking(move || {
            let (at, capacity, known) = {
                let state = fill.state();
                (state.written, state.capacity, state.part())
            };
            let part = match known {
                Ok(part) => part,
                Err(memory) => {
                    let part = Arc::new(pages.part(&fill.key, clock::secs(clock::now()))?);
                    memory.runs().try_for_each(|(at, run)| part.write(at as u64, run))?;
                    fill.state().held = Held::File(Arc::clone(&part));
                    part
                }
            };
            for (at, run) in runs(at, &piece, capacity) {
                part.write(at, run)?;
            }
            Ok(())
        });
        written.await.map_err(std::io::Error::other).flatten()
    }

    /// The page was whole: keeps it if it is worth that, and tells its readers.
    /// Says whether it is kept.
    pub(in crate::proxy::cache) async fn finish(mut self, account: &Account) -> bool {
        self.fill.state().is_written = true;
        let began = self.fill.begun().map(|begun| begun.at);
        let kept = began.and_then(|began| Some((began, self.fill.plan.verdict(account, &self.end, began)?)));
        let kept = kept.filter(|_| !self.fill.state().is_passing && !self.pages.is_closed());
        let is_kept = match kept {
            Some((began, kept)) => self.commit(kept, Meta::new(began, kept).to_bytes()).await,
            None => false,
        };
        // What is on the disk now is found there.
        self.fill.finish(End::Whole { at: clock::now(), answers_until: None });
        is_kept
    }

    async fn commit(&mut self, kept: Kept, meta: Vec<u8>) -> bool {
        let (fill, pages, sums) =
            (Arc::clone(&self.fill), Arc::clone(&self.pages), std::mem::take(&mut self.sums));
        let until = kept.fresh_until + kept.stale_if_error;
        let useless_from = until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() + 1;
        let committed = tokio::task::spawn_blocking(move || {
            let (written, known) = {
                let state = fill.state();
                (state.written, state.part())
            };
            let part = match known {
                Ok(part) => part,
                Err(memory) => {
                    let part = Arc::new(pages.part(&fill.key, clock::secs(clock::now()))?);
                    memory.runs().try_for_each(|(at, run)| part.write(at as u64, run))?;
                    part
                }
            };
            pages.commit(&part, &fill.key, &meta, written, sums, useless_from)?;
            // A purge that came in between found no file.
            Ok(!fill.state().is_passing || !pages.purge(&fill.key))
        });
        match committed.await.map_err(std::io::Error::other).flatten() {
            Ok(is_kept) => is_kept,
            Err(error) => {
                let error: std::io::Error = error;
                tracing::warn!(%error, "a page cannot be kept; check space and rights of the data folder");
                false
            }
        }
    }

    /// The page broke off.
    pub(in crate::proxy::cache) fn fail(self) {
        self.fill.finish(End::Broken);
    }

    /// There is no page: a failure is the answer, and for a few seconds the answer for all.
    pub(in crate::proxy::cache) fn answer_failure(self, head: ResponseHeader, text: Bytes) {
        self.begin_with(head);
        let mut state = self.fill.state();
        state.remember(&text);
        state.written = text.len() as u64;
        drop(state);
        let at = clock::now();
        self.fill.finish(End::Whole { at, answers_until: Some(at + self.fill.plan.failures) });
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.fill.finish(End::Broken);
    }
}
