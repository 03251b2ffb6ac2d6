//! Writes a page. Dropping it before the end truncates the page.

use super::memory::SharedMemory;
use super::page::{
    End, InFlightOptions, InFlightPage, PageError, ResponseStart, State, once_true, runs, until,
};
use crate::serve::oai::cache::disk_threads::write_on_disk;
use crate::serve::oai::cache::page_meta::PageMeta;
use crate::serve::oai::cache::rules::Retention;
use bytes::Bytes;
use oaimend_base::clock;
use oaimend_files::{BlockSums, NewBody, NewPage, Pages, UnsavedPage};
use oaimend_repository::{ByteRope, ResponseSummary};
use pingora_http::ResponseHeader;
use std::sync::Arc;
use std::time::SystemTime;

/// Writes a page. Dropped before its end, the page is broken.
pub(in crate::serve::oai::cache) struct Writer {
    pub(in crate::serve::oai::cache) page: Arc<InFlightPage>,
    pages: Arc<Pages>,
    sums: BlockSums,
}

impl Writer {
    /// Starts a page, which shares this memory with others.
    pub(in crate::serve::oai::cache) fn start(
        options: InFlightOptions,
        pages: Arc<Pages>,
        memory: &SharedMemory,
    ) -> Self {
        let page = Arc::new(InFlightPage::new(options, memory));
        Self { page, pages, sums: BlockSums::default() }
    }

    /// Adds bytes; waits while there is no room for them.
    ///
    /// # Errors
    ///
    /// The page has no reader and is not to be cached, or the disk fails.
    pub(in crate::serve::oai::cache) async fn append(&mut self, mut bytes: Bytes) -> Result<(), PageError> {
        while !bytes.is_empty() {
            let piece_bytes = self.page.state().piece_bytes();
            let piece = bytes.split_to(bytes.len().min(piece_bytes));
            self.wait_for_room(piece.len() as u64).await?;
            let count = piece.len() as u64;
            let is_held = self.page.state().remember(&piece);
            if !is_held {
                self.sum_up(&piece);
            }
            if !is_held && let Err(error) = self.write(piece.clone()).await {
                tracing::error!(
                    repository = self.page.key.repository(),
                    %error,
                    "a page cannot be written to disk and continues without being cached; check space and rights of the \
                     data folder"
                );
                self.go_on_in_memory().await?;
                self.wait_for_room(count).await?;
                self.page.state().remember(&piece);
            }
            self.page.state().written += count;
            self.page.progress.notify_waiters();
        }
        Ok(())
    }

    /// Adds a piece to the checksums of the file, and before the first one what is in memory.
    fn sum_up(&mut self, piece: &Bytes) {
        if let Err(memory) = self.page.state().part() {
            memory.runs().for_each(|(_, run)| self.sums.push(run));
        }
        self.sums.push(piece);
    }

    /// Sets the response header.
    pub(in crate::serve::oai::cache) fn begin_with(&self, head: ResponseHeader) {
        let _ = self.page.begun.set(ResponseStart { head, at: clock::now() });
        self.page.progress.notify_waiters();
    }

    /// Waits until the page has no reader and is not to be cached.
    pub(in crate::serve::oai::cache) async fn unwanted(&self) {
        until(&self.page.room, || self.page.is_unwanted().then_some(())).await;
    }

    /// Continues in memory, once readers have read everything in the file.
    async fn go_on_in_memory(&self) -> Result<(), PageError> {
        self.wait_for_readers(State::forget_file).await
    }

    async fn wait_for_room(&self, count: u64) -> Result<(), PageError> {
        self.wait_for_readers(|state| state.has_room(count)).await
    }

    /// Waits until readers have made room. If the page becomes too long meanwhile, readers that need the whole page do not
    /// wait any more.
    async fn wait_for_readers(
        &self,
        mut has_room: impl FnMut(&mut State) -> Result<bool, PageError>,
    ) -> Result<(), PageError> {
        let was_too_long = self.page.is_too_long();
        until(&self.page.room, || {
            let done = once_true(has_room(&mut self.page.state()));
            if !was_too_long && self.page.is_too_long() {
                self.page.progress.notify_waiters();
            }
            done
        })
        .await
    }

    /// Writes a piece to the file, and creates the file if necessary.
    async fn write(&self, piece: Bytes) -> std::io::Result<()> {
        let (page, pages) = (Arc::clone(&self.page), Arc::clone(&self.pages));
        write_on_disk(move || {
            let (at, capacity, known) = {
                let state = page.state();
                (state.written, state.capacity, state.part())
            };
            let part = match known {
                Ok(part) => part,
                Err(memory) => {
                    let part = Arc::new(pages.part(&page.key, clock::secs(clock::now()))?);
                    memory.runs().try_for_each(|(at, run)| part.write(at as u64, run))?;
                    page.state().move_to(Arc::clone(&part));
                    part
                }
            };
            for (at, run) in runs(at, &piece, capacity) {
                part.write(at, run)?;
            }
            Ok(())
        })
        .await
    }

    /// Ends a complete page: caches it if possible, and notifies its readers. Returns whether it is cached.
    ///
    /// A page that is of use for a short time stays in memory.
    pub(in crate::serve::oai::cache) async fn finish(mut self, summary: &ResponseSummary) -> bool {
        self.page.state().is_written = true;
        let began = self.page.begun().map(|begun| begun.at);
        let kept = began.and_then(|began| Some((began, self.page.plan.verdict(summary, began)?)));
        let may_keep = !self.page.state().is_passing && !self.pages.is_closed();
        let is_kept = match kept {
            Some((began, kept)) if may_keep => {
                let meta = PageMeta::new(began, kept).to_bytes();
                let memory = if self.page.plan.is_token_page { self.page.state().part().err() } else { None };
                match memory {
                    Some(memory) => self.keep_in_memory(kept, meta, &memory, summary).await,
                    None => self.commit(kept, meta).await,
                }
            }
            _ => false,
        };
        // The page on disk is found from now on.
        self.page.finish(End::Whole { at: clock::now(), answers_until: None });
        is_kept
    }

    /// Adds the page to those that have no file, and saves others to make room for it.
    async fn keep_in_memory(
        &self,
        kept: Retention,
        meta: Vec<u8>,
        memory: &ByteRope,
        summary: &ResponseSummary,
    ) -> bool {
        let key = &self.page.key;
        let page = UnsavedPage {
            meta,
            body: memory.to_vec().into(),
            useless_from: useless_from(kept),
            next: summary.page.token.clone(),
            is_for_one_harvest: self.page.plan.is_for_one_harvest(),
        };
        let Some(leaving) = self.pages.keep_unsaved(key, page, clock::secs(clock::now())) else {
            return false;
        };
        if !leaving.is_empty() {
            // The next page waits too, so that memory does not grow while the disk is slow.
            let pages = Arc::clone(&self.pages);
            let saved = write_on_disk(move || {
                let now = clock::secs(clock::now());
                // Each one, because a page that is not saved stays in memory.
                let saved = leaving.iter().map(|page| pages.save(page, now));
                saved.fold(Ok(()), std::io::Result::and)
            });
            if let Err(error) = saved.await {
                tracing::warn!(%error, "a page cannot be cached; check space and rights of the data folder");
            }
        }
        // A concurrent purge found no page.
        !self.page.state().is_passing || !self.pages.purge(key)
    }

    async fn commit(&mut self, kept: Retention, meta: Vec<u8>) -> bool {
        let (page, pages, sums) =
            (Arc::clone(&self.page), Arc::clone(&self.pages), std::mem::take(&mut self.sums));
        let useless_from = useless_from(kept);
        let committed = write_on_disk(move || {
            let (written, known) = {
                let state = page.state();
                (state.written, state.part())
            };
            match known {
                Ok(part) => {
                    let body = NewBody::InFile(written);
                    pages.commit(&part, &page.key, NewPage { meta: &meta, body, sums, useless_from })?;
                }
                Err(memory) => {
                    let part = pages.part(&page.key, clock::secs(clock::now()))?;
                    let runs: Vec<&[u8]> = memory.runs().map(|(_, run)| run).collect();
                    let mut sums = BlockSums::default();
                    runs.iter().for_each(|run| sums.push(run));
                    let body = NewBody::InMemory(&runs);
                    pages.commit(&part, &page.key, NewPage { meta: &meta, body, sums, useless_from })?;
                }
            }
            // A concurrent purge found no file.
            Ok(!page.state().is_passing || !pages.purge(&page.key))
        });
        match committed.await {
            Ok(is_kept) => is_kept,
            Err(error) => {
                tracing::warn!(%error, "a page cannot be cached; check space and rights of the data folder");
                false
            }
        }
    }

    /// Truncates the page.
    pub(in crate::serve::oai::cache) fn fail(self) {
        self.page.finish(End::Broken);
    }

    /// Ends with a failure, which answers all requests for a few seconds.
    pub(in crate::serve::oai::cache) fn answer_failure(self, head: ResponseHeader, text: Bytes) {
        self.begin_with(head);
        let mut state = self.page.state();
        state.remember(&text);
        state.written = text.len() as u64;
        drop(state);
        let at = clock::now();
        self.page.finish(End::Whole { at, answers_until: Some(at + self.page.plan.failures) });
    }
}

/// The time from which on a page is of no use, in seconds since 1970.
fn useless_from(kept: Retention) -> u64 {
    let until = kept.fresh_until + kept.stale_if_error;
    until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() + 1
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.page.finish(End::Broken);
    }
}
