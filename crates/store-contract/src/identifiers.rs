//! The contract of [`IdentifierStore`].

use crate::Backend;
use oaimend_store::{
    IdentifiedCollection, IdentifiedRecord, IdentifierChanges, IdentifierKey, IdentifierPlace,
    IdentifierStore, SaveError,
};
use oaimend_test_support::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn oai(identifier: &str) -> IdentifierKey {
    IdentifierKey::new("oai", identifier)
}

fn doi(name: &str) -> IdentifierKey {
    IdentifierKey::new("doi", name)
}

fn record(identifier: &str, sequence: u64, names: &[&str]) -> IdentifiedRecord {
    let named = names.iter().map(|name| doi(name)).collect();
    IdentifiedRecord { identifier: oai(identifier), sequence, named }
}

async fn follow(store: &dyn IdentifierStore, number: u64, records: Vec<IdentifiedRecord>) {
    let next_sequence = records.last().map_or(0, |last| last.sequence + 1);
    let collection = IdentifiedCollection { number, next_sequence };
    store.follow(IdentifierChanges { collection, records }).await.expect("writable");
}

/// More collections than the tests have.
fn all() -> Arc<BTreeSet<u64>> {
    Arc::new((0..100).collect())
}

/// The places of a key, as collection and sequence.
async fn places(store: &dyn IdentifierStore, key: IdentifierKey) -> Vec<(u64, u64)> {
    let found = store.find(vec![key], all(), None, 100).await.expect("readable");
    found[0].iter().map(|place| (place.collection, place.sequence)).collect()
}

pub async fn records_are_found_by_all_their_identifiers(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.identifiers;
    assert_eq!(store.collections().await.expect("readable"), []);
    follow(store, 7, vec![record("a", 0, &["1", "2"]), record("b", 1, &["2"]), record("c", 2, &[])]).await;
    follow(store, 3, vec![record("a", 5, &["2"])]).await;
    assert_eq!(places(store, oai("a")).await, [(3, 5), (7, 0)]);
    assert_eq!(places(store, doi("2")).await, [(3, 5), (7, 0), (7, 1)]);
    assert_eq!(places(store, doi("a")).await, []);
    let keys = vec![doi("2"), oai("c"), oai("d")];
    let found = store.find(keys, all(), None, 2).await.expect("readable");
    let counts: Vec<usize> = found.iter().map(Vec::len).collect();
    assert_eq!(counts, [2, 1, 0]);
    assert_eq!(found[0][1], IdentifierPlace { collection: 7, sequence: 0 });
    stores.close();
    let store = &*backend.open().identifiers;
    assert_eq!(places(store, doi("1")).await, [(7, 0)]);
    let expected = [(3, 6), (7, 3)];
    let expected = expected.map(|(number, next_sequence)| IdentifiedCollection { number, next_sequence });
    assert_eq!(store.collections().await.expect("readable"), expected);
}

pub async fn other_collections_do_not_count(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.identifiers;
    for number in 1..6 {
        let records = (0..3).map(|at| record(&format!("{number}-{at}"), at, &["1"]));
        follow(store, number, records.collect()).await;
    }
    for (wanted, count_max, expected) in [
        (vec![2, 4], 5, vec![(2, 0), (2, 1), (2, 2), (4, 0), (4, 1)]),
        (vec![5], 2, vec![(5, 0), (5, 1)]),
        (vec![0, 3, 9], 9, vec![(3, 0), (3, 1), (3, 2)]),
        (vec![6], 9, vec![]),
        (vec![], 9, vec![]),
    ] {
        let wanted = Arc::new(wanted.into_iter().collect());
        let found = store.find(vec![doi("1")], wanted, None, count_max).await.expect("readable");
        let found: Vec<_> = found[0].iter().map(|place| (place.collection, place.sequence)).collect();
        assert_eq!(found, expected);
    }
}

pub async fn places_are_listed_in_parts(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.identifiers;
    for number in [2, 4, 5] {
        let records = (0..4).map(|at| record(&format!("{number}-{at}"), at, &["1"]));
        follow(store, number, records.collect()).await;
    }
    let wanted = Arc::new(BTreeSet::from([2, 5, 9]));
    for count_max in 1..10 {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let part = store.find(vec![doi("1"), doi("2")], Arc::clone(&wanted), after, count_max).await;
            let part = part.expect("readable");
            assert!(part[0].len() <= count_max && part[1].is_empty());
            let Some(last) = part[0].last().copied() else { break };
            listed.extend(part[0].iter().map(|place| (place.collection, place.sequence)));
            after = Some(last);
        }
        let expected: Vec<(u64, u64)> =
            [2, 5].into_iter().flat_map(|number| (0..4).map(move |at| (number, at))).collect();
        assert_eq!(listed, expected, "{count_max}");
    }
    // A place of a collection that is not wanted, and the last one of all.
    for (collection, sequence, expected) in [(3, 7, Some((5, 0))), (2, 3, Some((5, 0))), (9, 0, None)] {
        let after = Some(IdentifierPlace { collection, sequence });
        let found = store.find(vec![doi("1")], Arc::clone(&wanted), after, 1).await.expect("readable");
        assert_eq!(found[0].first().map(|place| (place.collection, place.sequence)), expected);
    }
}

pub async fn a_changed_record_has_only_its_current_identifiers(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.identifiers;
    follow(store, 1, vec![record("a", 0, &["1", "2"]), record("b", 1, &["1"])]).await;
    follow(store, 1, vec![record("a", 2, &["2", "3"])]).await;
    assert_eq!(places(store, doi("1")).await, [(1, 1)]);
    assert_eq!(places(store, doi("2")).await, [(1, 2)]);
    assert_eq!(places(store, doi("3")).await, [(1, 2)]);
    // A deleted record has its own identifier only.
    follow(store, 1, vec![record("a", 3, &[])]).await;
    assert_eq!(places(store, oai("a")).await, [(1, 3)]);
    assert_eq!(places(store, doi("2")).await, []);
    // A collection that is read again has the same versions.
    follow(store, 1, vec![record("b", 1, &["1"]), record("a", 3, &[])]).await;
    assert_eq!(places(store, doi("1")).await, [(1, 1)]);
    assert_eq!(places(store, oai("a")).await, [(1, 3)]);
}

pub async fn a_collection_is_removed_in_steps(backend: &impl Backend) {
    let stores = backend.open();
    let store = &*stores.identifiers;
    let many = (0..10).map(|at| record(&at.to_string(), at, &["1"]));
    follow(store, 1, many.collect()).await;
    follow(store, 2, vec![record("0", 4, &["1"])]).await;
    for has_more in [true, true, false] {
        assert_eq!(store.remove(1, 4).await.expect("writable"), has_more);
    }
    assert_eq!(places(store, doi("1")).await, [(2, 4)]);
    assert_eq!(places(store, oai("0")).await, [(2, 4)]);
    let left = [IdentifiedCollection { number: 2, next_sequence: 5 }];
    assert_eq!(store.collections().await.expect("readable"), left);
    assert!(!store.remove(9, 4).await.expect("writable"));
}

pub async fn random_changes_leave_no_other_places(backend: &impl Backend) {
    const SEED: u64 = 1_127;
    println!("seed {SEED}");
    let (mut random, mut stores) = (Random::new(SEED), backend.open());
    let mut current: BTreeMap<(u64, String), IdentifiedRecord> = BTreeMap::new();
    for sequence in 0..300 {
        let (number, identifier) = (random.below(3) as u64, random.below(8).to_string());
        let names: Vec<String> =
            (0..random.below(4)).map(|_| random.below(6)).map(|name| name.to_string()).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let changed = record(&identifier, sequence, &names);
        current.insert((number, identifier), changed.clone());
        follow(&*stores.identifiers, number, vec![changed]).await;
        if sequence % 50 == 49 {
            stores.close();
            stores = backend.open();
        }
    }
    let keys = (0..8).map(|at| oai(&at.to_string())).chain((0..8).map(|at| doi(&at.to_string())));
    for key in keys {
        let having =
            current.iter().filter(|(_, record)| record.identifier == key || record.named.contains(&key));
        let mut expected: Vec<_> = having.map(|((number, _), record)| (*number, record.sequence)).collect();
        expected.sort_unstable();
        assert_eq!(places(&*stores.identifiers, key).await, expected, "{key:?}");
    }
}

pub async fn a_closed_store_of_identifiers_refuses(backend: &impl Backend) {
    let stores = backend.open();
    stores.close();
    assert!(matches!(stores.identifiers.collections().await, Err(SaveError::Closed)));
    assert!(matches!(stores.identifiers.find(Vec::new(), all(), None, 1).await, Err(SaveError::Closed)));
    assert!(matches!(stores.identifiers.remove(1, 1).await, Err(SaveError::Closed)));
    assert!(matches!(stores.identifiers.follow(IdentifierChanges::default()).await, Err(SaveError::Closed)));
}
