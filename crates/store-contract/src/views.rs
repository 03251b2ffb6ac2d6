//! The contract of [`ViewStore`].

use crate::Backend;
use oaimend_oai::UnixSecs;
use oaimend_store::{
    FollowedChanges, FollowedCollection, Generation, MemberQuery, Position, Prefix, RepositoryId, SaveError,
    ViewMember, ViewState, ViewStore, WITHOUT_RECORD,
};

fn member(identifier: &str, secs: i64, sequence: u64, has_left: bool) -> ViewMember {
    let position = Position { secs: UnixSecs(secs), sequence };
    ViewMember { identifier: identifier.to_owned(), position, has_left }
}

async fn follow(store: &dyn ViewStore, generation: u64, repository: &str, changes: Vec<ViewMember>) {
    let next_sequence = changes.last().map_or(0, |last| last.position.sequence + 1);
    let (repository, prefix) = (repository.to_owned(), "oai_dc".to_owned());
    let followed = FollowedCollection { repository, prefix, collection: Some(7), next_sequence };
    let changes = FollowedChanges { generation, followed, changes };
    store.follow(changes).await.expect("writable");
}

fn all(generation: u64, repository: &str) -> MemberQuery {
    let (repository, prefix) = (repository.to_owned(), "oai_dc".to_owned());
    MemberQuery { generation, repository, prefix, count_max: 100, ..MemberQuery::default() }
}

async fn members(store: &dyn ViewStore, query: MemberQuery) -> Vec<ViewMember> {
    let members = store.members(query.clone()).await.expect("readable");
    let count = store.count(query).await.expect("readable");
    assert_eq!(count, members.len() as u64);
    members
}

pub async fn members_move_and_leave_and_survive_a_restart(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.views;
    assert_eq!(store.state("v").await.expect("readable"), ViewState::default());
    let generation = store.begin_generation("v", "1").await.expect("writable");
    let first = [("a", false), ("b", true), ("c", false), ("d", false)];
    let first = (0..).zip(first).map(|(at, (identifier, has_left))| member(identifier, 100, at, has_left));
    follow(store, generation, "x", first.collect()).await;
    follow(store, generation, "y", vec![member("a", 150, 0, false)]).await;
    let second = vec![member("c", 200, 4, true), member("a", 200, 5, false), member("b", 300, 6, true)];
    follow(store, generation, "x", second).await;
    let expected = [member("d", 100, 3, false), member("c", 200, 4, true), member("a", 200, 5, false)];
    assert_eq!(members(store, all(generation, "x")).await, expected);
    assert_eq!(members(store, all(generation, "z")).await, []);
    let bounds = [(Some(101), None), (None, Some(200)), (Some(100), Some(100)), (Some(300), Some(100))];
    for (bound, count) in bounds.into_iter().zip([2, 3, 1, 0]) {
        let (from_secs, until_secs) = (bound.0.map(UnixSecs), bound.1.map(UnixSecs));
        let query = MemberQuery { from_secs, until_secs, ..all(generation, "x") };
        assert_eq!(members(store, query).await.len(), count, "{bound:?}");
    }
    let query = MemberQuery { until_secs: Some(UnixSecs(150)), ..all(generation, "x") };
    assert_eq!(members(store, query).await, expected[..1]);
    let after = Some(expected[1].position);
    assert_eq!(members(store, MemberQuery { after, ..all(generation, "x") }).await, expected[2..]);
    let one = MemberQuery { count_max: 1, ..all(generation, "x") };
    assert_eq!(store.members(one.clone()).await.expect("readable"), expected[..1]);
    let newest = MemberQuery { newest_first: true, ..one };
    assert_eq!(store.members(newest.clone()).await.expect("readable"), expected[2..]);
    for (at, after) in expected.iter().enumerate() {
        let newest = MemberQuery { after: Some(after.position), count_max: 100, ..newest.clone() };
        let before: Vec<_> = expected[..at].iter().rev().cloned().collect();
        assert_eq!(store.members(newest).await.expect("readable"), before);
    }
    let found = find(store, generation).await;
    assert_eq!(found, [Some(expected[2].clone()), None, Some(expected[1].clone()), None]);
    let followed = store.followed(generation).await.expect("readable");
    let next: Vec<_> =
        followed.iter().map(|followed| (followed.repository.as_str(), followed.next_sequence)).collect();
    assert_eq!(next, [("x", 7), ("y", 1)]);
    stores.close();
    let stores = backend.open();
    assert_eq!(members(&*stores.views, all(generation, "x")).await, expected);
    assert_eq!(stores.views.followed(generation).await.expect("readable"), followed);
    let state = stores.views.state("v").await.expect("readable");
    let next = Generation { number: generation, definition: "1".to_owned() };
    assert_eq!(state, ViewState { next: Some(next), ..ViewState::default() });
}

async fn find(store: &dyn ViewStore, generation: u64) -> Vec<Option<ViewMember>> {
    let identifiers = ["a", "b", "c", "e"].map(str::to_owned);
    store.find(generation, RepositoryId("x"), Prefix("oai_dc"), &identifiers).await.expect("readable")
}

pub async fn members_of_the_generation_before_have_left(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.views;
    let first = store.begin_generation("v", "1").await.expect("writable");
    let live = [("a", 0), ("b", 1), ("c", 2)].map(|(identifier, at)| member(identifier, 100, at, false));
    follow(store, first, "x", live.into()).await;
    follow(store, first, "y", vec![member("a", 110, 0, false)]).await;
    store.switch("v", None).await.expect("writable");
    let abandoned = store.begin_generation("v", "abandoned").await.expect("writable");
    follow(store, abandoned, "x", vec![member("z", 100, 0, false)]).await;
    let second = store.begin_generation("v", "2").await.expect("writable");
    remove_replaced(store).await;
    assert_eq!(members(store, all(abandoned, "x")).await, []);
    let changes = vec![member("a", 100, 0, true), member("b", 100, 1, false), member("n", 120, 3, true)];
    follow(store, second, "x", changes).await;
    assert_eq!(members(store, all(first, "x")).await.len(), 3, "the first one is in use");
    store.switch("v", Some(UnixSecs(500))).await.expect("writable");
    let expected = [
        member("b", 100, 1, false),
        member("a", 500, WITHOUT_RECORD, true),
        member("c", 500, WITHOUT_RECORD + 1, true),
    ];
    assert_eq!(members(store, all(second, "x")).await, expected);
    assert_eq!(members(store, all(second, "y")).await, [member("a", 500, WITHOUT_RECORD, true)]);
    remove_replaced(store).await;
    assert_eq!(members(store, all(first, "x")).await, []);
    let state = store.state("v").await.expect("readable");
    let current = Some(Generation { number: second, definition: "2".to_owned() });
    assert_eq!(state, ViewState { current, since_secs: Some(UnixSecs(500)), ..ViewState::default() });
    let third = store.begin_generation("v", "3").await.expect("writable");
    follow(store, third, "y", vec![member("b", 130, 1, false)]).await;
    store.switch("v", Some(UnixSecs(600))).await.expect("writable");
    assert!(members(store, all(third, "x")).await.iter().all(|member| member.has_left));
    assert_eq!(members(store, all(third, "x")).await.len(), 3);
    assert_eq!(members(store, all(third, "y")).await.len(), 2);
    assert!(third > second && second > abandoned && abandoned > first);
}

async fn remove_replaced(store: &dyn ViewStore) {
    while store.remove_replaced("v", 2).await.expect("writable") {}
}

/// The time at which a switch is prepared.
const NOW_SECS: UnixSecs = UnixSecs(920);

/// A switch is prepared in steps, while members change and the program restarts.
pub async fn a_prepared_switch_is_that_of_an_unprepared_one(backend: &impl Backend) {
    let mut stores = backend.open();
    let first = stores.views.begin_generation("v", "1").await.expect("writable");
    let live = |at: u64| member(&format!("{at:02}"), 100 + at as i64 / 4, at, false);
    follow(&*stores.views, first, "x", (0..20).map(live).collect()).await;
    // The clock was set back afterwards, and is set back again before the switch.
    let late = [("late", 900, 20), ("later", 950, 81)];
    let late = late.map(|(identifier, secs, sequence)| member(identifier, secs, sequence, false));
    follow(&*stores.views, first, "x", late.into()).await;
    stores.views.switch("v", None).await.expect("writable");
    let second = stores.views.begin_generation("v", "2").await.expect("writable");
    follow(&*stores.views, second, "x", (0..20).step_by(2).map(live).collect()).await;
    for at in 21..24 {
        stores.views.prepare_switch("v", NOW_SECS, 3).await.expect("writable");
        assert_eq!(
            stores.views.state("v").await.expect("readable").current.map(|one| one.number),
            Some(first)
        );
        stores.close();
        stores = backend.open();
        // One that was examined changes, one enters both generations, and one only that in use.
        let changes =
            [("01".to_owned(), 3 * at), (format!("{at}"), 3 * at + 1), (format!("old {at}"), 3 * at + 2)];
        let changes =
            changes.map(|(identifier, sequence)| member(&identifier, 200 + at as i64, sequence, false));
        follow(&*stores.views, second, "x", changes[..2].to_vec()).await;
        follow(&*stores.views, first, "x", changes.to_vec()).await;
    }
    while stores.views.prepare_switch("v", NOW_SECS, 3).await.expect("writable") {}
    let prepared = members(&*stores.views, all(second, "x")).await;
    assert!(prepared.iter().all(|one| !one.has_left || one.position.secs <= NOW_SECS), "{prepared:?}");
    follow(&*stores.views, first, "x", vec![member("last", 300, 80, false)]).await;
    stores.views.switch("v", Some(UnixSecs(500))).await.expect("writable");
    let shown = members(&*stores.views, all(second, "x")).await;
    assert!(shown.iter().all(|one| one.has_left == (one.position.sequence >= WITHOUT_RECORD)), "{shown:?}");
    assert!(shown.iter().all(|one| !one.has_left || one.position.secs <= UnixSecs(500)), "{shown:?}");
    let mut left: Vec<&str> =
        shown.iter().filter(|one| one.has_left).map(|one| one.identifier.as_str()).collect();
    left.sort_unstable();
    let expected = [
        "03", "05", "07", "09", "11", "13", "15", "17", "19", "last", "late", "later", "old 21", "old 22",
        "old 23",
    ];
    assert_eq!(left, expected);
    assert_eq!(shown.len() - left.len(), 10 + 1 + 3);
    remove_replaced(&*stores.views).await;
    assert_eq!(members(&*stores.views, all(first, "x")).await, []);
    assert_eq!(members(&*stores.views, all(second, "x")).await, shown);
}

pub async fn a_closed_store_of_views_refuses(backend: &impl Backend) {
    let stores = backend.open();
    stores.close();
    assert!(matches!(stores.views.state("v").await, Err(SaveError::Closed)));
    assert!(matches!(stores.views.begin_generation("v", "1").await, Err(SaveError::Closed)));
    assert!(matches!(stores.views.switch("v", None).await, Err(SaveError::Closed)));
}
