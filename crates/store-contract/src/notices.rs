//! The contract of [`NoticeStore`](oaimend_store::NoticeStore).

use crate::Backend;
use oaimend_oai::UnixSecs;
use oaimend_store::{RepositoryId, SaveError, WatchedRepository};
use std::collections::BTreeMap;

pub async fn saved_notices_replace_the_older_ones(backend: &impl Backend) {
    let store = backend.open().notices;
    assert!(store.watched().await.expect("readable").is_empty());
    let down =
        WatchedRepository { down_since_secs: Some(UnixSecs(5)), lost: 2, ..WatchedRepository::default() };
    for ids in [["x", "y"], ["y", "z"]] {
        let watched = ids.into_iter().map(|id| (id.to_owned(), down.clone())).collect();
        store.save_watched(watched).await.expect("writable");
    }
    let expected = BTreeMap::from(["y", "z"].map(|id| (id.to_owned(), down.clone())));
    assert_eq!(store.watched().await.expect("readable"), expected);
}

pub async fn times_of_reports_survive_a_restart(backend: &impl Backend) {
    let stores = backend.open();
    assert_eq!(stores.notices.report_sent_secs(RepositoryId("x")).await.expect("readable"), None);
    for (repository, secs) in [("x", Some(5)), ("x", Some(7)), ("y", Some(6)), ("y", None)] {
        stores
            .notices
            .save_report_sent(RepositoryId(repository), secs.map(UnixSecs))
            .await
            .expect("writable");
    }
    let watched =
        BTreeMap::from([("x".to_owned(), WatchedRepository { lost: 2, ..WatchedRepository::default() })]);
    stores.notices.save_watched(watched.clone()).await.expect("writable");
    stores.close();
    let store = backend.open().notices;
    let sent =
        [store.report_sent_secs(RepositoryId("x")).await, store.report_sent_secs(RepositoryId("y")).await];
    assert_eq!(sent.map(|sent| sent.expect("readable")), [Some(UnixSecs(7)), None]);
    assert_eq!(store.watched().await.expect("readable"), watched);
}

pub async fn a_closed_store_of_notices_refuses(backend: &impl Backend) {
    let stores = backend.open();
    stores.close();
    let store = stores.notices;
    assert!(matches!(store.watched().await, Err(SaveError::Closed)));
    assert!(matches!(store.save_watched(BTreeMap::new()).await, Err(SaveError::Closed)));
    assert!(matches!(store.report_sent_secs(RepositoryId("x")).await, Err(SaveError::Closed)));
    assert!(matches!(
        store.save_report_sent(RepositoryId("x"), Some(UnixSecs(1))).await,
        Err(SaveError::Closed)
    ));
}
