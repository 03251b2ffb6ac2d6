//! What the mirror does not have completely is refused, and never a short list.

use crate::world::{BASE, Bodies, World, urls};
use oaimend_oai::UnixSecs;
use oaimend_resourcesync::{ListDocument, ListKind, SyncError};
use oaimend_rules::{MissingItem, Sighting};
use oaimend_store::{HarvestProgress, MirrorStore as _, PageCommit, Prefix, RepositoryId};
use std::sync::Arc;

const LISTS: [&str; 4] = ["resourcelist", "changelist", "resourcedump", "changedump"];

async fn get(world: &mut World, name: &str) -> Result<String, SyncError> {
    let body = world.get(&format!("{BASE}/x/resourcesync/p/{name}")).await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

async fn change_progress(world: &World, change: impl FnOnce(&mut HarvestProgress)) {
    let mut progress = world.store.progress(RepositoryId("x"), Prefix("p")).await.expect("readable");
    change(&mut progress);
    let (repository, prefix) = ("x".to_owned(), "p".to_owned());
    let stamp_secs = UnixSecs(world.now_secs);
    let page = PageCommit { repository, prefix, stamp_secs, progress, ..PageCommit::default() };
    world.store.commit(page).await.expect("in order");
}

/// The URLs of the entries of a document.
fn locations(xml: &str) -> Vec<String> {
    let rest = xml.split("<loc>").skip(1);
    rest.map(|rest| rest.split("</loc>").next().expect("a part").to_owned()).collect()
}

#[tokio::test]
async fn a_gap_refuses_lists_of_all_records_and_a_first_harvest_that_is_not_complete_all_lists() {
    let mut world = World::new(1);
    world.is_quiet = true;
    for list in LISTS {
        let refused = get(&mut world, &format!("{list}.xml")).await;
        assert!(matches!(refused, Err(SyncError::NeverComplete)), "{list}: {refused:?}");
    }
    world.fill(9).await;
    // The lists before have taken the second of this commit.
    world.now_secs += 1;
    let parts = locations(&get(&mut world, "resourcelist.xml").await.expect("a list"));
    assert_eq!(parts.len(), 3, "{parts:?}");
    let missing = MissingItem::Named("oai:x:missing".to_owned());
    change_progress(&world, |progress| {
        progress.gaps.note(missing, Sighting::Listed(None), None);
    })
    .await;
    for list in ["resourcelist", "resourcedump"] {
        let refused = get(&mut world, &format!("{list}.xml")).await;
        assert!(matches!(refused, Err(SyncError::Gap(1))), "{list}: {refused:?}");
    }
    // A list of changes does not say that it has all records.
    for list in ["changelist", "changedump"] {
        let served = get(&mut world, &format!("{list}.xml")).await;
        assert!(served.is_ok(), "{list}: {served:?}");
    }
    let refused = world.get(&parts[1]).await;
    assert!(matches!(refused, Err(SyncError::Gap(1))), "{refused:?}");
    change_progress(&world, |progress| progress.gaps.resolve("oai:x:missing")).await;
    assert!(get(&mut world, "resourcelist.xml").await.is_ok());
}

#[tokio::test]
async fn an_empty_repository_has_lists_without_entries() {
    let mut world = World::new(1);
    world.is_quiet = true;
    world.fill(0).await;
    for list in LISTS {
        let xml = get(&mut world, &format!("{list}.xml")).await.expect("a list");
        assert!(xml.contains(&format!("capability=\"{list}\"")) && locations(&xml).is_empty(), "{xml}");
    }
}

#[tokio::test]
async fn parts_that_no_list_named_do_not_exist() {
    let mut world = World::new(1);
    world.is_quiet = true;
    world.fill(9).await;
    let parts = locations(&get(&mut world, "changelist.xml").await.expect("a list"));
    let name = parts[0].rsplit('/').next().expect("a name").to_owned();
    let numbers: Vec<i64> = name
        .trim_end_matches(".xml")
        .split('-')
        .skip(1)
        .map(|number| number.parse().expect("a number"))
        .collect();
    let [collection, at_secs, ..] = numbers[..] else { panic!("{name}") };
    assert!(get(&mut world, &name).await.is_ok());
    for (collection, at_secs, first, end) in [
        (collection + 1, at_secs, 0, 4),
        // A time to come.
        (collection, at_secs + 10, 0, 4),
        // More records than a part has.
        (collection, at_secs, 0, 9),
        (collection, at_secs, 4, 0),
    ] {
        let name = format!("changelist-{collection}-{at_secs}-{first}-{end}.xml");
        let refused = get(&mut world, &name).await;
        assert!(matches!(refused, Err(SyncError::UnknownPart)), "{name}: {refused:?}");
    }
    // A repository that was removed and harvested again has other parts.
    world.store.forget(RepositoryId("x")).await.expect("forgotten");
    world.now_secs += 60;
    world.fill(9).await;
    let refused = world.get(&parts[1]).await;
    assert!(matches!(refused, Err(SyncError::UnknownPart)), "{refused:?}");
}

#[tokio::test]
async fn damage_that_a_read_finds_first_is_a_failure() {
    for list in LISTS {
        let mut world = World::new(1);
        world.is_quiet = true;
        world.fill(7).await;
        world.now_secs += 1;
        // No list before: the store keeps blocks in memory that it has read.
        world.damage();
        let refused = get(&mut world, &format!("{list}.xml")).await;
        assert!(matches!(refused, Err(SyncError::Damaged)), "{list}: {refused:?}");
    }
}

#[tokio::test]
async fn a_repository_that_is_removed_meanwhile_has_no_list() {
    for &kind in ListKind::ALL {
        let mut world = World::new(1);
        world.is_quiet = true;
        world.fill(9).await;
        world.now_secs += 1;
        let collection = world.open().await.expect("it is complete");
        world.store.forget(RepositoryId("x")).await.expect("forgotten");
        for is_harvested_again in [false, true] {
            if is_harvested_again {
                world.fill(9).await;
            }
            let list = ListDocument::of(&collection, kind, &urls(), Arc::new(Bodies)).await;
            let name = kind.name();
            assert!(matches!(list, Err(SyncError::Removed)), "{name}, {is_harvested_again}: {list:?}");
        }
    }
}

#[tokio::test]
async fn a_list_of_a_repository_that_is_removed_meanwhile_has_no_end() {
    for is_harvested_again in [false, true] {
        let mut world = World::new(1);
        world.is_quiet = true;
        world.fill(3).await;
        world.now_secs += 1;
        let collection = world.open().await.expect("it is complete");
        let list = ListDocument::of(&collection, ListKind::ChangeList, &urls(), Arc::new(Bodies)).await;
        let Ok(ListDocument::Records(mut part)) = list else { panic!("{list:?}") };
        world.store.forget(RepositoryId("x")).await.expect("forgotten");
        if is_harvested_again {
            world.fill(3).await;
        }
        let piece = part.next_piece().await;
        assert!(matches!(piece, Err(SyncError::Removed)), "{is_harvested_again}: {piece:?}");
    }
}

#[tokio::test]
async fn an_accepted_loss_is_a_gap() {
    let mut world = World::new(1);
    world.is_quiet = true;
    world.fill(7).await;
    world.now_secs += 1;
    let before = world.open().await.expect("it is complete");
    world.damage();
    let lost = world.store.accept_loss(RepositoryId("x")).await.expect("writable");
    assert!(lost > 0);
    for list in ["resourcelist", "resourcedump"] {
        let refused = get(&mut world, &format!("{list}.xml")).await;
        assert!(matches!(refused, Err(SyncError::Gap(missing)) if missing == lost), "{list}: {refused:?}");
    }
    for list in ["changelist", "changedump"] {
        let served = get(&mut world, &format!("{list}.xml")).await;
        assert!(served.is_ok(), "{list}: {served:?}");
    }
    let opened = world.open().await.expect("it has changes");
    assert_eq!(opened.missing(), lost);
    // A list that began before the loss lacks the records without a number for them.
    for &kind in ListKind::ALL {
        let list = ListDocument::of(&before, kind, &urls(), Arc::new(Bodies)).await;
        assert!(matches!(list, Err(SyncError::Damaged)), "{}: {list:?}", kind.name());
    }
}
