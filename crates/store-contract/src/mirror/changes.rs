//! The version of a collection and the number of changes, from which readers know that they need not read again.

use super::fixtures::{MirrorBackend, PREFIX, REPOSITORY, commit, commit_to, deleted, record};
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_store::{Catalog, CollectionVersion, Document, RepositoryId};
use std::collections::HashSet;

pub async fn the_version_of_a_collection_changes_with_each_commit(backend: &impl MirrorBackend) {
    let store = backend.open();
    let version = async || store.version(REPOSITORY, PREFIX).await.expect("readable");
    assert_eq!(version().await, None);
    let mut versions = Vec::new();
    for (stamp_secs, page) in [
        (100, vec![record("a", 1, &[], "one")]),
        (100, vec![record("a", 1, &[], "two")]),
        (200, vec![record("a", 2, &[], "two")]),
        (200, vec![record("a", 3, &[], "two")]),
        (300, vec![deleted("a", 3, &[])]),
    ] {
        commit(&*store, stamp_secs, page).await;
        versions.extend(version().await);
    }
    let stamps: Vec<UnixSecs> = versions.iter().map(|version| version.last_stamp_secs).collect();
    assert_eq!(stamps, [100, 100, 100, 100, 300].map(UnixSecs), "a new datestamp is no change of the list");
    let before = versions.last().copied();
    store.compact(REPOSITORY).await.expect("readable");
    assert_eq!(version().await, before, "the records are the same");
    store.forget(REPOSITORY).await.expect("writable");
    assert_eq!(version().await, None);
    for stamp_secs in [400, 400] {
        commit(&*store, stamp_secs, vec![record("a", 1, &[], "one")]).await;
        versions.extend(version().await);
    }
    let all: HashSet<CollectionVersion> = versions.iter().copied().collect();
    assert_eq!(all.len(), 7, "{versions:?}");
}

pub async fn each_change_has_another_number(backend: &impl MirrorBackend) {
    let store = backend.open();
    let mut numbers = vec![store.changes().await.expect("readable")];
    store.save_catalog(REPOSITORY, Catalog::default()).await.expect("writable");
    numbers.push(store.changes().await.expect("readable"));
    store.save_document(REPOSITORY, Document::Identify, Bytes::new()).await.expect("writable");
    numbers.push(store.changes().await.expect("readable"));
    for (repository, prefix) in [(REPOSITORY.0, PREFIX.0), (REPOSITORY.0, "marc"), ("y", PREFIX.0)] {
        let page = vec![record("a", 1, &[], "one")];
        commit_to(&*store, (repository, prefix), 100, page).await.expect("writable");
        numbers.push(store.changes().await.expect("readable"));
    }
    store.forget(REPOSITORY).await.expect("writable");
    numbers.push(store.changes().await.expect("readable"));
    assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), numbers.len(), "{numbers:?}");
    store.catalog(REPOSITORY).await.expect("readable");
    store.version(REPOSITORY, PREFIX).await.expect("readable");
    assert_eq!(store.changes().await.expect("readable"), numbers[6], "reads are no changes");
    commit(&*store, 200, Vec::new()).await;
    assert_ne!(
        store.changes().await.expect("readable"),
        numbers[6],
        "a commit without records may be the last one"
    );
}

pub async fn changed_repositories_are_named(backend: &impl MirrorBackend) {
    let store = backend.open();
    let now = async || store.changes().await.expect("readable");
    let since = async |changes| store.changed_since(changes).await.expect("readable");
    let start = now().await;
    assert_eq!(since(start).await, [""; 0]);
    for repository in ["y", "x"] {
        let page = vec![record("a", 1, &[], "one")];
        commit_to(&*store, (repository, PREFIX.0), 100, page).await.expect("writable");
    }
    let both = now().await;
    assert_eq!((since(start).await, since(both).await.len()), (vec!["x".to_owned(), "y".to_owned()], 0));
    store.forget(RepositoryId("y")).await.expect("writable");
    assert_eq!(since(both).await, ["y"]);
    let forgotten = now().await;
    store.save_catalog(REPOSITORY, Catalog::default()).await.expect("writable");
    assert_eq!(since(forgotten).await, ["x"]);
    let page = vec![record("b", 1, &[], "one")];
    let saved = now().await;
    commit_to(&*store, ("z", "marc"), 100, page).await.expect("writable");
    store.save_document(RepositoryId("y"), Document::Identify, Bytes::new()).await.expect("writable");
    assert_eq!(since(saved).await, ["y", "z"]);
}
