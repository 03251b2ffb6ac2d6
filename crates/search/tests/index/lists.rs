//! Lists whose repositories have lowest datestamps.

use super::{World, oai_dc, odl};
use oaimend_oai::UnixSecs;
use oaimend_search::{Hit, ListHits, ListedRepository};

#[tokio::test]
async fn the_records_of_a_repository_have_its_lowest_datestamp_and_keep_their_order() {
    let mut world = World::new();
    let sea = oai_dc("<title>sea</title>");
    let names: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    for (number, name) in names.iter().enumerate() {
        world.commit(["a", "b", "c"][number % 3], "oai_dc", &[(name, Some(&sea))]).await;
        // Commits in one second.
        world.now_secs -= i64::from(number % 2 == 0);
    }
    world.follow().await;
    let repository = |name: &str, lowest: Option<i64>| ListedRepository {
        name: name.to_owned(),
        lowest_secs: lowest.map(UnixSecs),
    };
    let request = ListHits {
        query: odl("sea"),
        repositories: None,
        prefix: "oai_dc".to_owned(),
        from_secs: None,
        until_secs: Some(UnixSecs(1_013)),
        after: None,
        count_max: 1_000,
    };
    let of_a = |hit: &Hit| hit.repository == "a";
    let lowest = UnixSecs(1_008);
    let datestamp = |hit: &Hit| if of_a(hit) { hit.stamp_secs.max(lowest) } else { hit.stamp_secs };
    let mut expected = world.index.list(&request).unwrap().hits;
    expected.retain(|hit| hit.repository != "b" && datestamp(hit) >= UnixSecs(1_007));
    expected.sort_by_key(|hit| (datestamp(hit), hit.repository.clone(), hit.sequence));
    assert!(expected.iter().any(|hit| of_a(hit) && hit.stamp_secs < UnixSecs(1_007)), "{expected:?}");
    let repositories =
        [repository("a", Some(lowest.0)), repository("c", None), repository("unknown", Some(1_005))];
    let request =
        ListHits { repositories: Some(repositories.into()), from_secs: Some(UnixSecs(1_007)), ..request };
    let listed = world.index.list(&request).unwrap();
    assert_eq!((listed.total, &listed.hits), (expected.len() as u64, &expected));
    for (number, hit) in expected.iter().enumerate() {
        let after = Some((datestamp(hit), hit.repository.clone(), hit.sequence));
        let rest = world.index.list(&ListHits { after, ..request.clone() }).unwrap();
        assert_eq!(rest.hits, expected[number + 1..]);
    }
}
