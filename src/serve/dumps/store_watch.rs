//! Looks at the store once a second for all listeners of the feed, and wakes them when there may be changes for them.
//!
//! The task runs as long as there are listeners. Changes become visible when their second has closed, so listeners are woken
//! again until the last change is in a closed second.

use super::source::store_state;
use crate::serve::served::ServedRepositories;
use oaimend_dumps::{DumpError, StoreState};
use oaimend_oai::UnixSecs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The time between two looks. Together with the length of a stamp, changes are visible within 5 seconds.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// The state of the store when there was something new, or why it is not known; `None` before the first look.
pub(super) type StoreNews = Option<Result<StoreState, DumpError>>;

/// The look at the store that all listeners share.
#[derive(Debug, Default)]
pub(super) struct StoreWatch {
    /// The news of the task that runs.
    news: Mutex<Option<watch::Receiver<StoreNews>>>,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// The number of changes of the store.
    changes: u64,
    /// The highest stamp of them.
    highest_secs: Option<UnixSecs>,
    state: StoreState,
}

impl StoreWatch {
    /// The news for a listener, from the last ones on. The first listener starts the task, which calls `look` again and
    /// again. The news end if the task fails.
    pub(super) fn subscribe<F, L>(self: &Arc<Self>, look: F) -> watch::Receiver<StoreNews>
    where
        F: FnMut() -> L + Send + 'static,
        L: Future<Output = Result<Look, DumpError>> + Send + 'static,
    {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        let running = news.as_ref().filter(|news| news.has_changed().is_ok()).cloned();
        let mut receiver = running.unwrap_or_else(|| {
            let (sender, receiver) = watch::channel(None);
            *news = Some(receiver.clone());
            tokio::spawn(run(Arc::clone(self), sender, look));
            receiver
        });
        // The listener may have read the store before the last news. A failure before its read does not concern it.
        let may_be_later = matches!(&*receiver.borrow_and_update(), Some(Ok(_)));
        if may_be_later {
            receiver.mark_changed();
        }
        receiver
    }

    /// Ends the task if only the watch itself has a receiver.
    fn has_listeners(&self, sender: &watch::Sender<StoreNews>) -> bool {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.receiver_count() <= 1 {
            *news = None;
        }
        news.is_some()
    }
}

async fn run<F, L>(watch: Arc<StoreWatch>, sender: watch::Sender<StoreNews>, mut look: F)
where
    F: FnMut() -> L,
    L: Future<Output = Result<Look, DumpError>>,
{
    let mut last = None;
    while watch.has_listeners(&sender) {
        match look().await {
            Ok(look) => {
                if look.is_news_after(last) {
                    sender.send_replace(Some(Ok(look.state)));
                }
                last = Some(look);
            }
            Err(error) => {
                sender.send_replace(Some(Err(error)));
                last = None;
            }
        }
    }
}

impl Look {
    /// Looks after a pause. The number of changes comes first: a later change is one of the next look.
    pub(super) async fn after_pause(served: Arc<ServedRepositories>) -> Result<Self, DumpError> {
        served.clock.pause(INTERVAL).await;
        let store = &served.store.mirror;
        let changes = store.changes().await?;
        let highest_secs = store.stamp_marks().await?.highest_secs;
        Ok(Self { changes, highest_secs, state: store_state(&served).await? })
    }

    /// Whether a listener that knows everything of the last look may not know everything of this one.
    fn is_news_after(&self, last: Option<Self>) -> bool {
        let position = |look: &Self| (look.state.store, look.state.epoch, look.changes);
        last.is_none_or(|last| !last.is_closed() || position(&last) != position(self))
    }

    /// Whether no change is in a second that is still open.
    fn is_closed(&self) -> bool {
        self.highest_secs.is_none_or(|highest_secs| highest_secs <= self.state.closed_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::MirrorError;
    use tokio::sync::mpsc;

    fn look(changes: u64, highest_secs: i64, closed_secs: i64) -> Look {
        let state = StoreState { store: 1, epoch: 0, closed_secs: UnixSecs(closed_secs) };
        Look { changes, highest_secs: Some(UnixSecs(highest_secs)), state }
    }

    #[test]
    fn listeners_are_woken_until_the_last_change_is_in_a_closed_second() {
        let first = look(1, 100, 100);
        assert!(first.is_news_after(None));
        assert!(!look(1, 100, 101).is_news_after(Some(first)));
        let open = look(2, 105, 104);
        assert!(open.is_news_after(Some(first)));
        assert!(look(2, 105, 104).is_news_after(Some(open)));
        let closed = look(2, 105, 105);
        assert!(closed.is_news_after(Some(open)));
        assert!(!look(2, 105, 110).is_news_after(Some(closed)));
        let forgotten = Look { state: StoreState { epoch: 1, ..closed.state }, ..closed };
        assert!(forgotten.is_news_after(Some(closed)));
    }

    #[tokio::test]
    async fn all_listeners_share_one_look_and_only_changes_wake_them() {
        let watch: Arc<StoreWatch> = Arc::default();
        let (give, given) = mpsc::unbounded_channel();
        let (begin, mut begun) = mpsc::unbounded_channel();
        let given = Arc::new(tokio::sync::Mutex::new(given));
        let look_next = move || {
            begin.send(()).expect("the test goes on");
            let given = Arc::clone(&given);
            async move { Ok(given.lock().await.recv().await.expect("the test gives more")) }
        };
        let mut listeners: Vec<_> = (0..10).map(|_| watch.subscribe(look_next.clone())).collect();
        drop(look_next);
        begun.recv().await.expect("the task runs");
        for listener in &mut listeners {
            assert!(listener.borrow_and_update().is_none(), "no look yet");
        }
        for (found, is_news) in
            [(look(1, 100, 100), true), (look(1, 100, 101), false), (look(2, 102, 102), true)]
        {
            give.send(found).expect("the task runs");
            // The next look begins after the listeners were woken.
            begun.recv().await.expect("the task runs");
            for listener in &mut listeners {
                assert_eq!(listener.has_changed().expect("the task runs"), is_news, "{found:?}");
                let news = listener.borrow_and_update().clone();
                assert!(!is_news || matches!(news, Some(Ok(state)) if state == found.state), "{found:?}");
            }
        }
        assert!(begun.try_recv().is_err(), "one task looks for all");
        // The task ends with the last listener, and the next one starts it again.
        drop(listeners);
        give.send(look(3, 103, 103)).expect("the task runs");
        give.closed().await;
        assert!(watch.news.lock().expect("no panic").is_none());
    }

    #[tokio::test]
    async fn a_failed_look_ends_those_who_listen_and_not_those_who_come_later() {
        let watch: Arc<StoreWatch> = Arc::default();
        let (give, given) = mpsc::unbounded_channel();
        let (begin, mut begun) = mpsc::unbounded_channel();
        let given = Arc::new(tokio::sync::Mutex::new(given));
        let look_next = move || {
            begin.send(()).expect("the test goes on");
            let given = Arc::clone(&given);
            async move { given.lock().await.recv().await.expect("the test gives more") }
        };
        let mut first = watch.subscribe(look_next.clone());
        begun.recv().await.expect("the task runs");
        first.borrow_and_update();
        let failed: Result<Look, DumpError> = Err(MirrorError::Stopped("a test".to_owned()).into());
        give.send(failed).expect("the task runs");
        begun.recv().await.expect("the task runs");
        assert!(first.has_changed().expect("the task runs"));
        assert!(matches!(&*first.borrow_and_update(), Some(Err(_))));
        let mut later = watch.subscribe(look_next);
        assert!(!later.has_changed().expect("the task runs"), "its own read has succeeded");
        give.send(Ok(look(1, 100, 100))).expect("the task runs");
        begun.recv().await.expect("the task runs");
        for listener in [&mut first, &mut later] {
            assert!(listener.has_changed().expect("the task runs"));
            assert!(matches!(&*listener.borrow_and_update(), Some(Ok(_))));
        }
        let next = watch.subscribe(|| async { unreachable!("the task runs") });
        assert!(next.has_changed().expect("the task runs"), "it may have read before the look");
    }
}
