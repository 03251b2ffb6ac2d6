//! The contract of [`FullTextStore`].

use crate::Backend;
use oaimend_oai::UnixSecs;
use oaimend_store::{FollowedFullTexts, FullText, FullTextState, FullTextStore, SaveError};

fn full_text(url: &str, state: FullTextState) -> FullText {
    FullText { urls: vec![url.to_owned()], state }
}

fn read(url: &str) -> FullText {
    full_text(url, FullTextState::Read(vec![("doi".to_owned(), "10.1000/é".to_owned())]))
}

fn waiting(secs: i64) -> FullText {
    full_text(
        "http://x.example/w.pdf",
        FullTextState::Waiting { attempts: 2, not_before_secs: UnixSecs(secs) },
    )
}

async fn put(store: &dyn FullTextStore, (repository, identifier): (&str, &str), text: FullText) {
    store.put(repository, identifier, Some(text)).await.expect("writable");
}

async fn find(store: &dyn FullTextStore, repository: &str, identifier: &str) -> Option<FullText> {
    store.find(repository, vec![identifier.to_owned()]).await.expect("readable").remove(0)
}

async fn due(store: &dyn FullTextStore, secs: i64) -> Vec<String> {
    store.due("x", UnixSecs(secs), 3).await.expect("readable")
}

pub async fn full_texts_are_kept_by_item_and_survive_a_restart(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.full_texts;
    let refused = full_text("http://x.example/2.pdf", FullTextState::Refused("too-large".to_owned()));
    put(store, ("x", "1"), read("http://x.example/1.pdf")).await;
    put(store, ("x", "2"), refused.clone()).await;
    put(store, ("y", "1"), waiting(5)).await;
    put(store, ("x", "3"), waiting(5)).await;
    let followed = FollowedFullTexts { collection: 7, next_sequence: 12, definition: "x.example".to_owned() };
    assert_eq!(store.followed("x").await.expect("readable"), None);
    store.follow("x", FollowedFullTexts::default()).await.expect("writable");
    store.follow("x", followed.clone()).await.expect("writable");
    stores.close();
    let stores = backend.open();
    let store = &*stores.full_texts;
    let names = ["2", "none", "1"].map(str::to_owned).to_vec();
    let found = store.find("x", names).await.expect("readable");
    assert_eq!(found, [Some(refused), None, Some(read("http://x.example/1.pdf"))]);
    assert_eq!(find(store, "y", "1").await, Some(waiting(5)));
    assert_eq!(store.followed("x").await.expect("readable"), Some(followed));
    assert_eq!(store.followed("y").await.expect("readable"), None);
    store.put("x", "1", None).await.expect("writable");
    store.put("x", "none", None).await.expect("writable");
    assert_eq!(find(store, "x", "1").await, None);
}

pub async fn items_that_wait_are_due_in_order(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.full_texts;
    for (identifier, secs) in [("a", 30), ("b", 10), ("c", 20), ("d", -5), ("e", 40)] {
        put(store, ("x", identifier), waiting(secs)).await;
    }
    put(store, ("y", "a"), waiting(1)).await;
    assert_eq!(due(store, 20).await, ["d", "b", "c"]);
    assert_eq!(due(store, 19).await, ["d", "b"]);
    assert_eq!(due(store, 100).await.len(), 3, "that many were requested");
    // The next attempt moves, and then the item waits no more.
    put(store, ("x", "b"), waiting(50)).await;
    put(store, ("x", "d"), read("http://x.example/d.pdf")).await;
    store.put("x", "c", None).await.expect("writable");
    assert_eq!(due(store, 100).await, ["a", "e", "b"]);
    assert_eq!(store.waiting("x").await.expect("readable"), 3);
    assert_eq!(store.waiting("z").await.expect("readable"), 0);
}

pub async fn full_texts_of_a_repository_are_forgotten_alone(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.full_texts;
    for repository in ["x", "x2", "w"] {
        put(store, (repository, "1"), read("http://x.example/1.pdf")).await;
        put(store, (repository, "2"), waiting(5)).await;
        store.follow(repository, FollowedFullTexts::default()).await.expect("writable");
    }
    store.forget("x").await.expect("writable");
    store.forget("none").await.expect("writable");
    assert_eq!((find(store, "x", "1").await, store.followed("x").await.expect("readable")), (None, None));
    assert_eq!((due(store, 100).await.len(), store.waiting("x").await.expect("readable")), (0, 0));
    for repository in ["x2", "w"] {
        assert!(find(store, repository, "1").await.is_some(), "{repository}");
        assert_eq!(store.waiting(repository).await.expect("readable"), 1, "{repository}");
        assert!(store.followed(repository).await.expect("readable").is_some(), "{repository}");
    }
}

pub async fn a_closed_store_of_full_texts_refuses(backend: &impl Backend) {
    let stores = backend.open();
    stores.close();
    let store = &*stores.full_texts;
    assert!(matches!(store.followed("x").await, Err(SaveError::Closed)));
    assert!(matches!(store.find("x", Vec::new()).await, Err(SaveError::Closed)));
    assert!(matches!(store.put("x", "1", None).await, Err(SaveError::Closed)));
    assert!(matches!(store.forget("x").await, Err(SaveError::Closed)));
}
