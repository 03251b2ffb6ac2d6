//! Issues the stamps of commits and the times of lists, and stores what a restart needs for them.
//!
//! The harvester commits its pages with [`Stamps::commit`], and the views begin their lists with
//! [`Stamps::begin_list`]. All repositories of a store share one [`Stamps`], because its marks belong to the store.
//!
//! Invariant: a record that becomes visible after the start of a list has a later stamp than the responseDate of this
//! list, also after a restart. [`StampClock`] keeps this rule. This type stores its reservations before a list needs
//! them, which costs two writes per minute at most, and finishes every commit that it begins.

use oaimend_oai::UnixSecs;
use oaimend_rules::{ListTimes, PendingCommit, StampClock};
use oaimend_store::{Committed, MirrorError, MirrorStore, PageCommit};
use std::sync::{Arc, Mutex, PoisonError};

/// The stamps of one store.
#[derive(Debug)]
pub struct Stamps {
    store: Arc<dyn MirrorStore>,
    clock: Mutex<StampClock>,
    /// Held while a reservation is stored.
    reserving: tokio::sync::Mutex<()>,
}

impl Stamps {
    /// Continues after the stamps and the responseDates that the store knows.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn open(store: Arc<dyn MirrorStore>) -> Result<Self, MirrorError> {
        let marks = store.stamp_marks().await?;
        let clock = Mutex::new(StampClock::resume(marks.highest_secs, marks.reserved_secs));
        Ok(Self { store, clock, reserving: tokio::sync::Mutex::default() })
    }

    /// Stores a page with the stamp of a commit that begins now; the stamp in the page is replaced.
    ///
    /// The commit continues if the returned future is dropped, because lists have to wait for its end.
    ///
    /// # Errors
    ///
    /// Those of [`MirrorStore::commit`].
    pub async fn commit(
        self: &Arc<Self>,
        page: PageCommit,
        now_secs: UnixSecs,
    ) -> Result<Committed, MirrorError> {
        let stamps = Arc::clone(self);
        let committing = tokio::spawn(async move {
            let pending = Pending::begin(&stamps, now_secs);
            stamps.store.commit(PageCommit { stamp_secs: pending.stamp_secs(), ..page }).await
        });
        committing.await.unwrap_or_else(|error| Err(MirrorError::Stopped(error.to_string())))
    }

    /// Makes a change of a view with the stamp of a commit that begins now: all responseDates that were issued before
    /// `change` has ended are before this stamp, and so are those of lists that begin meanwhile.
    ///
    /// The change continues if the returned future is dropped. Stamps after a restart are after its stamp.
    ///
    /// # Errors
    ///
    /// Those of `change`, or the stamp is not stored.
    pub async fn commit_change<T: Send + 'static, F>(
        self: &Arc<Self>,
        now_secs: UnixSecs,
        change: impl FnOnce(UnixSecs) -> F + Send + 'static,
    ) -> Result<T, MirrorError>
    where
        F: Future<Output = Result<T, MirrorError>> + Send,
    {
        let stamps = Arc::clone(self);
        let committing = tokio::spawn(async move {
            let pending = Pending::begin(&stamps, now_secs);
            let stamp_secs = pending.stamp_secs();
            // No record has this stamp, so a restart knows it from the reservation alone.
            stamps.store.reserve_stamps(stamp_secs.plus(1)).await?;
            change(stamp_secs).await
        });
        committing.await.unwrap_or_else(|error| Err(MirrorError::Stopped(error.to_string())))
    }

    /// Determines the times of a list that begins now. When this returns, no later commit has a stamp up to its
    /// responseDate.
    ///
    /// If no reservation can be stored, such as on a full disk, lists get the last responseDate of the one before.
    ///
    /// # Errors
    ///
    /// There is no reservation, and none can be stored.
    pub async fn begin_list(&self, now_secs: UnixSecs) -> Result<ListTimes, MirrorError> {
        let reserved = self.reserve(now_secs).await;
        match (self.with_clock(|clock| clock.begin_list(now_secs)), reserved) {
            (Some(times), Ok(())) => Ok(times),
            (Some(times), Err(error)) => {
                tracing::warn!(%error, "responseDates of the mirror stay behind the clock");
                Ok(times)
            }
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(MirrorError::Stopped("no responseDate is reserved".to_owned())),
        }
    }

    /// Stores the next reservation if it is due.
    async fn reserve(&self, now_secs: UnixSecs) -> Result<(), MirrorError> {
        let due = || self.with_clock(|clock| clock.reservation_due(now_secs));
        if due().is_some() {
            let _turn = self.reserving.lock().await;
            // Another list may have stored it meanwhile.
            if let Some(until_secs) = due() {
                self.store.reserve_stamps(until_secs).await?;
                self.with_clock(|clock| clock.reserve(until_secs));
            }
        }
        Ok(())
    }

    fn with_clock<T>(&self, use_clock: impl FnOnce(&mut StampClock) -> T) -> T {
        use_clock(&mut self.clock.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A commit that is finished when it is dropped, also by a panic of the store.
struct Pending<'s> {
    stamps: &'s Stamps,
    commit: Option<PendingCommit>,
}

impl<'s> Pending<'s> {
    fn begin(stamps: &'s Stamps, now_secs: UnixSecs) -> Self {
        Self { stamps, commit: Some(stamps.with_clock(|clock| clock.begin_commit(now_secs))) }
    }

    fn stamp_secs(&self) -> UnixSecs {
        self.commit.as_ref().map_or(UnixSecs::MAX, PendingCommit::stamp_secs)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(commit) = self.commit.take() {
            self.stamps.with_clock(|clock| clock.finish_commit(commit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_rules::RESERVATION_SECS;
    use oaimend_store::{Identifier, Prefix, RepositoryId};
    use oaimend_store_local::RecordLog;
    use std::path::Path;

    async fn open(folder: &Path) -> Arc<Stamps> {
        let store = Arc::new(RecordLog::open(folder).expect("a store"));
        Arc::new(Stamps::open(store).await.expect("readable"))
    }

    fn page(prefix: &str, revision: u64) -> PageCommit {
        let mut page = PageCommit { repository: "x".into(), prefix: prefix.into(), ..PageCommit::default() };
        page.progress.revision = revision;
        let record = oaimend_store::NewRecord {
            identifier: format!("oai:x:{revision}"),
            datestamp_secs: UnixSecs(0),
            set_specs: Vec::new(),
            status: oaimend_store::RecordStatus::Live,
            content_hash: revision,
            bytes: bytes::Bytes::from_static(b"<record/>"),
            repairs: oaimend_store::RecordRepairs::default(),
        };
        page.records.push(record);
        page
    }

    async fn stamp_of(stamps: &Stamps, identifier: &str) -> i64 {
        let record = stamps
            .store
            .record(RepositoryId("x"), Prefix("oai_dc"), Identifier(identifier))
            .await
            .expect("readable");
        record.expect("stored").stamp_secs.0
    }

    #[tokio::test]
    async fn stamps_after_a_restart_are_after_all_dates_before_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let stamps = open(folder.path()).await;
        let date_secs = stamps.begin_list(UnixSecs(1_000)).await.expect("stored").response_date_secs;
        assert_eq!(date_secs, UnixSecs(1_000));
        stamps.store.close();
        let stamps = open(folder.path()).await;
        stamps.commit(page("oai_dc", 0), UnixSecs(500)).await.expect("in order");
        assert_eq!(stamp_of(&stamps, "oai:x:0").await, 1_000 + RESERVATION_SECS);
        stamps.store.close();
        let stamps = open(folder.path()).await;
        stamps.commit(page("oai_dc", 1), UnixSecs(500)).await.expect("the stamp is not below the last one");
        assert_eq!(stamp_of(&stamps, "oai:x:1").await, 1_000 + RESERVATION_SECS);
    }

    #[tokio::test]
    async fn a_list_during_a_commit_has_an_earlier_date_than_its_stamp() {
        let folder = tempfile::tempdir().expect("a folder");
        let stamps = open(folder.path()).await;
        let pending = Pending::begin(&stamps, UnixSecs(1_000));
        let times = stamps.begin_list(UnixSecs(1_500)).await.expect("stored");
        assert_eq!(times, ListTimes { response_date_secs: UnixSecs(999), until_secs: UnixSecs(1_000) });
        let commit = PageCommit { stamp_secs: pending.stamp_secs(), ..page("oai_dc", 0) };
        stamps.store.commit(commit).await.expect("in order");
        drop(pending);
        assert_eq!(
            stamps.begin_list(UnixSecs(1_500)).await.expect("stored").response_date_secs,
            UnixSecs(1_500)
        );
    }

    #[tokio::test]
    async fn a_failed_commit_does_not_hold_the_dates_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let stamps = open(folder.path()).await;
        let wrong = stamps.commit(page("oai_dc", 7), UnixSecs(1_000)).await;
        assert!(matches!(wrong, Err(MirrorError::Conflict)), "{wrong:?}");
        assert_eq!(
            stamps.begin_list(UnixSecs(2_000)).await.expect("stored").response_date_secs,
            UnixSecs(2_000)
        );
    }

    #[tokio::test]
    async fn a_change_has_a_stamp_between_the_dates_before_and_after_it_also_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let stamps = open(folder.path()).await;
        stamps.begin_list(UnixSecs(1_000)).await.expect("stored");
        let during = Arc::clone(&stamps);
        let change = move |stamp_secs: UnixSecs| async move {
            let date_secs = during.begin_list(UnixSecs(9_000)).await?.response_date_secs;
            Ok((date_secs, stamp_secs))
        };
        let (date_secs, stamp_secs) = stamps.commit_change(UnixSecs(5_000), change).await.expect("stored");
        assert_eq!((date_secs, stamp_secs), (UnixSecs(4_999), UnixSecs(5_000)));
        let change = async |stamp_secs: UnixSecs| Ok(stamp_secs);
        assert_eq!(stamps.commit_change(UnixSecs(20_000), change).await.expect("stored"), UnixSecs(20_000));
        stamps.store.close();
        let stamps = open(folder.path()).await;
        stamps.commit(page("oai_dc", 0), UnixSecs(500)).await.expect("in order");
        assert!(stamp_of(&stamps, "oai:x:0").await > 20_000);
    }
}
