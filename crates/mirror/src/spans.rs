//! The times that harvesters can derive from lists, and later requests that are widened to them.
//!
//! A harvester that continues from its own clock would miss the changes between the state of its list and the end of
//! it. [`ServedSpans`] gives the rule. The spans of a page are in the store before the page is sent.

use oaimend_oai::UnixSecs;
use oaimend_rules::{ListState, ServedSpan, ServedSpans};
use oaimend_store::{ListSpan, MirrorError, MirrorStore, RepositoryId, RepositoryState};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;

/// Attempts to store the spans while a harvest stores its state.
const ATTEMPTS_MAX: usize = 5;

/// The datestamps that the spans refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// The datestamps of the source.
    Source,
    /// The stamps of the mirror.
    Stamps,
}

/// The spans of all repositories. Clones share them.
#[derive(Clone, Debug)]
pub struct SpanTable {
    store: Arc<dyn MirrorStore>,
    spans: Arc<Mutex<KnownSpans>>,
}

type KnownSpans = HashMap<(String, SpanKind), Arc<Spans>>;

impl SpanTable {
    /// The spans in a store.
    pub fn new(store: Arc<dyn MirrorStore>) -> Self {
        Self { store, spans: Arc::default() }
    }

    /// The spans of a repository or of a view.
    pub fn of(&self, name: &str, kind: SpanKind) -> Arc<Spans> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Spans::new(Arc::clone(&self.store), name.to_owned(), kind));
        Arc::clone(spans.entry((name.to_owned(), kind)).or_insert_with(new))
    }
}

/// The spans of one repository or view.
#[derive(Debug)]
pub struct Spans {
    store: Arc<dyn MirrorStore>,
    /// The name of the state in the store.
    name: String,
    kind: SpanKind,
    /// Read from the store at the first use.
    known: OnceCell<Mutex<Known>>,
    /// Held while the spans are stored.
    saving: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Known {
    spans: ServedSpans,
    is_stored: bool,
}

impl Known {
    /// Records a span. Returns whether all spans are stored.
    fn record(&mut self, span: ServedSpan) -> bool {
        self.is_stored &= !self.spans.record(span);
        self.is_stored
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spans {
    fn new(store: Arc<dyn MirrorStore>, name: String, kind: SpanKind) -> Self {
        Self { store, name, kind, known: OnceCell::new(), saving: tokio::sync::Mutex::default() }
    }

    /// The `from` from which a list is answered. `until_secs` is the end of the requested window.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn widen(
        &self,
        from_secs: UnixSecs,
        until_secs: Option<UnixSecs>,
    ) -> Result<UnixSecs, MirrorError> {
        Ok(lock(self.known().await?).spans.widen_window(from_secs, until_secs))
    }

    /// Records the span of a page that is sent now, in a list that shows this state. `latest_secs` is the latest
    /// responseDate or datestamp of the page.
    ///
    /// # Errors
    ///
    /// The span is not stored, so the page must not be sent: a harvester that continues from its times would miss
    /// changes after a restart. The span stays in memory and is stored with the next page.
    pub async fn record(
        &self,
        state_secs: UnixSecs,
        latest_secs: UnixSecs,
        now_secs: UnixSecs,
    ) -> Result<(), MirrorError> {
        let span = ListState::new(state_secs).span(latest_secs, now_secs);
        if lock(self.known().await?).record(span) {
            return Ok(());
        }
        // Pages that are sent at the same time would make each other's attempts fail.
        let _turn = self.saving.lock().await;
        if lock(self.known().await?).is_stored {
            return Ok(());
        }
        self.save().await
    }

    async fn known(&self) -> Result<&Mutex<Known>, MirrorError> {
        let read = async || {
            let state = self.store.repository_state(RepositoryId(&self.name)).await?;
            let span =
                |span: &ListSpan| ServedSpan { state_secs: span.state_secs, until_secs: span.until_secs };
            let spans = self.stored(&state).iter().map(span).collect();
            Ok::<_, MirrorError>(Mutex::new(Known { spans, is_stored: true }))
        };
        self.known.get_or_try_init(read).await
    }

    fn stored<'s>(&self, state: &'s RepositoryState) -> &'s [ListSpan] {
        match self.kind {
            SpanKind::Source => &state.source_spans,
            SpanKind::Stamps => &state.stamp_spans,
        }
    }

    async fn save(&self) -> Result<(), MirrorError> {
        let mut attempts = 0;
        loop {
            let mut state = self.store.repository_state(RepositoryId(&self.name)).await?;
            // Another page may have added spans since the last attempt.
            let spans = lock(self.known().await?).spans.clone();
            let listed =
                |span: ServedSpan| ListSpan { state_secs: span.state_secs, until_secs: span.until_secs };
            match self.kind {
                SpanKind::Source => state.source_spans = spans.iter().map(listed).collect(),
                SpanKind::Stamps => state.stamp_spans = spans.iter().map(listed).collect(),
            }
            attempts += 1;
            match self.store.save_repository_state(RepositoryId(&self.name), state).await {
                Err(MirrorError::Conflict) if attempts < ATTEMPTS_MAX => {}
                Err(error) => return Err(error),
                Ok(_) => {
                    let mut known = lock(self.known().await?);
                    known.is_stored |= known.spans == spans;
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_rules::{CLOCK_ERROR_MAX_SECS, SPAN_GRAIN_SECS};
    use oaimend_store_local::RecordLog;

    fn spans(store: &Arc<dyn MirrorStore>, kind: SpanKind) -> Spans {
        Spans::new(Arc::clone(store), "x".into(), kind)
    }

    #[tokio::test]
    async fn a_from_during_a_list_is_widened_to_its_start_also_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn MirrorStore> = Arc::new(RecordLog::open(folder.path()).expect("a store"));
        let stamps = spans(&store, SpanKind::Stamps);
        assert_eq!(stamps.widen(UnixSecs(100_000), None).await.expect("readable"), UnixSecs(100_000));
        stamps.record(UnixSecs(99_999), UnixSecs(99_999), UnixSecs(120_000)).await.expect("stored");
        let end_secs = 120_000 + CLOCK_ERROR_MAX_SECS;
        for (from_secs, widened_secs) in
            [(99_998, 99_998), (99_999, 99_999), (end_secs, 99_999), (end_secs + 1, end_secs + 1)]
        {
            let restarted = spans(&store, SpanKind::Stamps);
            for spans in [&restarted, &stamps] {
                assert_eq!(
                    spans.widen(UnixSecs(from_secs), None).await.expect("readable"),
                    UnixSecs(widened_secs),
                    "{from_secs}"
                );
            }
        }
        let of_source = spans(&store, SpanKind::Source);
        assert_eq!(of_source.widen(UnixSecs(end_secs), None).await.expect("readable"), UnixSecs(end_secs));
    }

    #[tokio::test]
    async fn the_lists_of_one_grain_are_stored_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn MirrorStore> = Arc::new(RecordLog::open(folder.path()).expect("a store"));
        let spans = spans(&store, SpanKind::Stamps);
        let start_secs = 20 * SPAN_GRAIN_SECS;
        for now_secs in start_secs + 1..=start_secs + SPAN_GRAIN_SECS {
            spans.record(UnixSecs(now_secs), UnixSecs(now_secs), UnixSecs(now_secs)).await.expect("stored");
        }
        assert_eq!(store.repository_state(RepositoryId("x")).await.expect("readable").revision, 1);
    }

    #[tokio::test]
    async fn a_page_whose_span_cannot_be_stored_fails_and_the_next_one_stores_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn MirrorStore> = Arc::new(RecordLog::open(folder.path()).expect("a store"));
        let stamps = spans(&store, SpanKind::Stamps);
        // A file in place of the folder of the store.
        let blocked = folder.path().join("mirror");
        std::fs::write(&blocked, "").expect("writable");
        stamps
            .record(UnixSecs(99_999), UnixSecs(99_999), UnixSecs(120_000))
            .await
            .expect_err("the store cannot be created");
        stamps
            .record(UnixSecs(99_999), UnixSecs(99_999), UnixSecs(120_000))
            .await
            .expect_err("it is not stored yet");
        std::fs::remove_file(&blocked).expect("writable");
        stamps.record(UnixSecs(99_999), UnixSecs(99_999), UnixSecs(120_000)).await.expect("it is stored now");
        let restarted = spans(&store, SpanKind::Stamps);
        assert_eq!(restarted.widen(UnixSecs(120_000), None).await.expect("readable"), UnixSecs(99_999));
    }

    #[tokio::test]
    async fn pages_that_are_sent_together_store_their_spans_without_conflicts() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn MirrorStore> = Arc::new(RecordLog::open(folder.path()).expect("a store"));
        let stamps = spans(&store, SpanKind::Stamps);
        let pages = (1..=40).map(|page| {
            stamps.record(UnixSecs(page * 10_000), UnixSecs(page * 10_000), UnixSecs(page * 10_000))
        });
        for stored in futures::future::join_all(pages).await {
            stored.expect("no attempt is in the way of another one");
        }
    }
}
