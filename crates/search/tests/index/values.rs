//! The values of fields, and suggestions.

use super::{World, oai_dc};
use oaimend_search::{FieldName, FoundValues, RecordFilter, SearchIndex, ValueCounts, Values};
use oaimend_store::{Identifier, MirrorStore, Prefix, RepositoryId};

#[tokio::test]
async fn values_are_in_order_with_their_counts() {
    let mut world = World::new();
    let record = |creators: &[&str]| {
        let creators = creators.iter().map(|name| format!("<creator>{name}</creator>"));
        oai_dc(&creators.collect::<String>())
    };
    let records = [
        record(&["Smith, J.", "SMITH, J.", "Ångström"]),
        record(&["Smith, J.", "Abel"]),
        record(&["SMITH, J.", &"x".repeat(201)]),
    ];
    world.commit("r", "oai_dc", &[("1", Some(&records[0])), ("2", Some(&records[1]))]).await;
    world.commit("s", "oai_dc", &[("3", Some(&records[2]))]).await;
    world.follow().await;
    let mut request = Values {
        field: FieldName("creator".to_owned()),
        filter: RecordFilter::default(),
        start: String::new(),
        after: None,
        count_max: 100,
    };
    let values = |request: &Values| -> Vec<(String, u64)> {
        let values = world.index.values(request).unwrap();
        values.into_iter().map(|value| (value.value, value.records)).collect()
    };
    let smith = ("Smith, J.".to_owned(), 3);
    assert_eq!(values(&request), [("Abel".to_owned(), 1), ("Ångström".to_owned(), 1), smith.clone()]);
    request.after = Some("abel".to_owned());
    request.count_max = 1;
    assert_eq!(values(&request), [("Ångström".to_owned(), 1)]);
    (request.after, request.start) = (None, "SM".to_owned());
    assert_eq!(values(&request), [smith]);
    request.filter.repositories = Some(vec!["s".to_owned()]);
    assert_eq!(values(&request), [("SMITH, J.".to_owned(), 1)]);
}

#[tokio::test]
async fn values_of_deleted_and_of_hidden_records_are_not_counted() {
    let mut world = World::new();
    let records: Vec<String> = ["Abel", "Berg", "Curie"]
        .map(|name| oai_dc(&format!("<creator>{name}</creator><creator>All</creator>")))
        .into();
    let all: Vec<_> = ["1", "2", "3"]
        .into_iter()
        .zip(&records)
        .map(|(name, record)| (name, Some(record.as_str())))
        .collect();
    world.commit("r", "oai_dc", &all).await;
    world.commit("s", "oai_dc", &all[..1]).await;
    world.follow().await;
    let creators = |index: &SearchIndex, repositories: &[&str], prefix: Option<&str>| -> Vec<(String, u64)> {
        let request = Values {
            field: FieldName("creator".to_owned()),
            filter: RecordFilter {
                repositories: Some(repositories.iter().map(|name| (*name).to_owned()).collect()),
                prefix: prefix.map(str::to_owned),
            },
            start: String::new(),
            after: None,
            count_max: 100,
        };
        let values = index.values(&request).unwrap();
        values.into_iter().map(|value| (value.value, value.records)).collect()
    };
    let expected = |counts: [u64; 4]| -> Vec<(String, u64)> {
        let names = ["Abel", "All", "Berg", "Curie"].map(str::to_owned);
        names.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    };
    assert_eq!(creators(&world.index, &["r", "s", "t"], None), expected([2, 4, 1, 1]));
    assert_eq!(creators(&world.index, &["s"], None), expected([1, 1, 0, 0]));
    assert_eq!(creators(&world.index, &["r"], Some("oai_dc")), expected([1, 3, 1, 1]));
    // Two formats of an item count once, and a deleted record not at all.
    world.commit("r", "mods", &[("2", Some(&oai_dc("<creator>Berg</creator>"))), ("1", None)]).await;
    world.commit("r", "oai_dc", &[("1", None)]).await;
    world.follow().await;
    assert_eq!(creators(&world.index, &["r", "s"], None), expected([1, 3, 1, 1]));
    assert_eq!(creators(&world.index, &["r"], None), expected([0, 2, 1, 1]));
    assert_eq!(creators(&world.index, &["r"], Some("mods")), expected([0, 0, 1, 0]));
}

#[tokio::test]
async fn the_most_frequent_values_are_suggested_from_a_bounded_part_of_the_index() {
    let mut world = World::new();
    let title = |number: usize| oai_dc(&format!("<title>Sea {number:04}</title>"));
    let records: Vec<(String, String)> = (0..1_500)
        .map(|number| (number.to_string(), title(number)))
        .chain([("a".to_owned(), title(7)), ("b".to_owned(), title(1_400)), ("c".to_owned(), title(1_400))])
        .collect();
    let records: Vec<_> =
        records.iter().map(|(name, record)| (name.as_str(), Some(record.as_str()))).collect();
    world.commit("r", "oai_dc", &records).await;
    world.follow().await;
    let suggested = |start: &str| -> Vec<(String, u64)> {
        let request = Values {
            field: FieldName("title".to_owned()),
            filter: RecordFilter::default(),
            start: start.to_owned(),
            after: None,
            count_max: 2,
        };
        let found = world.index.suggest(&request).unwrap();
        found.into_iter().map(|value| (value.value, value.records)).collect()
    };
    assert_eq!(suggested("sea"), [("Sea 0007".to_owned(), 2), ("Sea 0000".to_owned(), 1)]);
    assert_eq!(suggested("SEA 14"), [("Sea 1400".to_owned(), 3), ("Sea 1401".to_owned(), 1)]);
    assert_eq!(suggested("lake"), []);
}

#[tokio::test]
async fn a_small_repository_in_a_large_index_is_browsed_by_its_records() {
    let mut world = World::new();
    let record = |creators: &[String]| {
        let creators = creators.iter().map(|name| format!("<creator>{name}</creator>"));
        oai_dc(&creators.collect::<String>())
    };
    // More than the terms that are read in place of three records.
    let names: Vec<String> = (0..900).map(|number| format!("Name {number:03}")).collect();
    let large: Vec<String> = names.chunks(100).map(record).collect();
    let large: Vec<_> =
        (0..).zip(&large).map(|(number, xml): (usize, _)| (number.to_string(), xml)).collect();
    let large: Vec<_> = large.iter().map(|(name, xml)| (name.as_str(), Some(xml.as_str()))).collect();
    world.commit("large", "oai_dc", &large).await;
    let named = |names: &[&str]| record(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    let small = [
        named(&["NAME 500", "Name 899", "Name 899", "name 899", "Zoë"]),
        named(&["NAME 500", "Abel", &"x".repeat(201)]),
        named(&["Name 500", "Zoe"]),
    ];
    let small: Vec<_> = ["1", "2", "3"].into_iter().zip(small.iter().map(|xml| Some(xml.as_str()))).collect();
    world.commit("small", "oai_dc", &small).await;
    world.commit("small", "oai_dc", &[("gone", Some(&named(&["Abel"])))]).await;
    world.follow().await;
    world.commit("small", "oai_dc", &[("gone", None)]).await;
    world.follow().await;
    let request = |repository: &str, start: &str, after: Option<&str>, count_max: usize| Values {
        field: FieldName("creator".to_owned()),
        filter: RecordFilter { repositories: Some(vec![repository.to_owned()]), prefix: None },
        start: start.to_owned(),
        after: after.map(str::to_owned),
        count_max,
    };
    for request in [
        request("small", "", None, 100),
        request("small", "", None, 3),
        request("small", "name", None, 2),
        request("small", "", Some("abel"), 2),
        request("small", "n", Some("name 2"), 9),
    ] {
        let FoundValues::Records(hits) = world.index.values_or_records(&request).unwrap() else {
            panic!("{request:?}: the terms were read");
        };
        assert_eq!(hits.len(), 3, "{hits:?}");
        let mut counts = ValueCounts::new(request.clone());
        for hit in hits {
            let key = (RepositoryId("small"), Prefix("oai_dc"), Identifier(&hit.identifier));
            let stored = world.mirror.record(key.0, key.1, key.2).await.unwrap().unwrap();
            assert_eq!((stored.stamp_secs, stored.sequence), (hit.stamp_secs, hit.sequence));
            counts.add("small", &stored);
        }
        assert_eq!(counts.into_values(), world.index.values(&request).unwrap(), "{request:?}");
    }
    // Few terms are read from the index.
    for request in
        [request("small", "zo", None, 9), request("small", "", None, 2), request("large", "", None, 2_000)]
    {
        let expected = world.index.values(&request).unwrap();
        assert_eq!(world.index.values_or_records(&request).unwrap(), FoundValues::Values(expected));
    }
}
