//! The times that harvesters can derive from the lists of a view, and later requests that are widened to them.
//!
//! A harvester that continues from its own clock would miss the commits between the start and the end of its list.
//! [`ServedSpans`] gives the rule. The spans of all lists are in the store before their pages are sent.

use crate::mirror::rules::{ListState, ServedSpan, ServedSpans};
use crate::store::{ListSpan, MirrorError, MirrorStore, RepositoryState};
use std::sync::{Arc, Mutex, PoisonError};

/// Attempts to store the spans while a harvest stores its state.
const ATTEMPTS_MAX: usize = 5;

/// The spans of one view.
#[derive(Debug)]
pub(super) struct Spans {
    store: Arc<dyn MirrorStore>,
    /// The name of the state in the store.
    name: String,
    /// Those that this view has stored since its start.
    stored: Mutex<ServedSpans>,
}

impl Spans {
    pub(super) fn new(store: Arc<dyn MirrorStore>, name: String) -> Self {
        Self { store, name, stored: Mutex::default() }
    }

    /// The `from` from which a list without `until` is answered.
    pub(super) async fn widen(&self, from_secs: i64) -> Result<i64, MirrorError> {
        let state = self.store.repository_state(&self.name).await?;
        Ok(spans_of(&state).widen(from_secs))
    }

    /// Records the span of a page that is sent now, in a list with this responseDate and this latest stamp.
    ///
    /// A span that cannot be stored is only logged. The disk is full then, and the mirror commits no changes that a
    /// harvester could miss.
    pub(super) async fn record(&self, date_secs: i64, until_secs: i64, now_secs: i64) {
        let span = ListState::new(date_secs).span(date_secs.max(until_secs), now_secs);
        let is_new = self.stored.lock().unwrap_or_else(PoisonError::into_inner).clone().record(span);
        if !is_new {
            return;
        }
        match self.save(span).await {
            Ok(()) => drop(self.stored.lock().unwrap_or_else(PoisonError::into_inner).record(span)),
            Err(error) => tracing::warn!(repo = self.name, %error, "the times of a list are not stored"),
        }
    }

    async fn save(&self, span: ServedSpan) -> Result<(), MirrorError> {
        let mut attempts = 0;
        loop {
            let state = self.store.repository_state(&self.name).await?;
            let mut spans = spans_of(&state);
            if !spans.record(span) {
                return Ok(());
            }
            let listed =
                |span: ServedSpan| ListSpan { state_secs: span.state_secs, until_secs: span.until_secs };
            let stamp_spans = spans.iter().map(listed).collect();
            attempts += 1;
            match self.store.save_repository_state(&self.name, RepositoryState { stamp_spans, ..state }).await
            {
                Err(MirrorError::Conflict) if attempts < ATTEMPTS_MAX => {}
                saved => return saved.map(drop),
            }
        }
    }
}

fn spans_of(state: &RepositoryState) -> ServedSpans {
    let span = |span: &ListSpan| ServedSpan { state_secs: span.state_secs, until_secs: span.until_secs };
    state.stamp_spans.iter().map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::rules::{CLOCK_ERROR_MAX_SECS, SPAN_GRAIN_SECS};
    use crate::store::RecordLog;

    #[tokio::test]
    async fn a_from_during_a_list_is_widened_to_its_start_also_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn MirrorStore> = Arc::new(RecordLog::open(folder.path()).expect("a store"));
        let spans = Spans::new(Arc::clone(&store), "x".into());
        assert_eq!(spans.widen(100_000).await.expect("readable"), 100_000);
        spans.record(99_999, 99_999, 120_000).await;
        let end_secs = 120_000 + CLOCK_ERROR_MAX_SECS;
        for (from_secs, widened_secs) in
            [(99_998, 99_998), (99_999, 99_999), (end_secs, 99_999), (end_secs + 1, end_secs + 1)]
        {
            let restarted = Spans::new(Arc::clone(&store), "x".into());
            assert_eq!(restarted.widen(from_secs).await.expect("readable"), widened_secs, "{from_secs}");
        }
    }

    #[tokio::test]
    async fn the_lists_of_one_grain_are_stored_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn MirrorStore> = Arc::new(RecordLog::open(folder.path()).expect("a store"));
        let spans = Spans::new(Arc::clone(&store), "x".into());
        let start_secs = 20 * SPAN_GRAIN_SECS;
        for now_secs in start_secs + 1..=start_secs + SPAN_GRAIN_SECS {
            spans.record(now_secs, now_secs, now_secs).await;
        }
        assert_eq!(store.repository_state("x").await.expect("readable").revision, 1);
    }
}
