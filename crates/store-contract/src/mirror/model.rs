//! Random operations on a store and on a model of it, which is a list of all versions. Both must agree.

use super::fixtures::{
    MirrorBackend, PREFIX, REPOSITORY, all_pages, commit, deleted, everything, record, whole,
};
use oaimend_oai::UnixSecs;
use oaimend_store::{
    Identifier, ListFilter, ListOrder, ListQuery, MirrorStore, NewRecord, RecordStatus, StoredRecord,
};
use oaimend_test_support::random::Random;
use std::collections::BTreeMap;

/// The current versions by identifier, with the stamp and the place of the change.
#[derive(Default)]
struct Model {
    versions: BTreeMap<String, (NewRecord, UnixSecs, u64)>,
    changes: u64,
}

const SETS: [&str; 6] = ["a", "a:b", "a:b:c", "d", "d:e", "f"];

impl Model {
    fn commit(&mut self, stamp_secs: UnixSecs, page: &[NewRecord]) {
        for (at, record) in page.iter().enumerate() {
            if page[at + 1..].iter().any(|later| later.identifier == record.identifier) {
                continue;
            }
            let known = self.versions.get_mut(&record.identifier);
            match known {
                Some((known, ..)) if known.content_hash == record.content_hash => {
                    known.datestamp_secs = record.datestamp_secs;
                }
                _ => {
                    self.changes += 1;
                    let version = (record.clone(), stamp_secs, self.changes);
                    self.versions.insert(record.identifier.clone(), version);
                }
            }
        }
    }

    fn list(&self, filter: &ListFilter) -> Vec<(String, UnixSecs, UnixSecs, RecordStatus)> {
        let is_in_set = |record: &NewRecord| {
            filter.set.as_ref().is_none_or(|set| {
                record.set_specs.iter().any(|spec| spec == set || spec.starts_with(&format!("{set}:")))
            })
        };
        let time = |(record, stamp, _): &(NewRecord, UnixSecs, u64)| match filter.by {
            ListOrder::Stamp => *stamp,
            ListOrder::Datestamp => record.datestamp_secs,
        };
        let mut listed: Vec<_> = self
            .versions
            .values()
            .filter(|version| is_in_set(&version.0))
            .filter(|version| filter.from_secs.is_none_or(|from| time(version) >= from))
            .filter(|version| filter.until_secs.is_none_or(|until| time(version) <= until))
            .filter(|version| !filter.live_only || version.0.status == RecordStatus::Live)
            .filter(|version| filter.sequences.as_ref().is_none_or(|range| range.contains(&(version.2 - 1))))
            .collect();
        listed.sort_by_key(|version| (time(version), version.2));
        let facts = |(record, stamp, _): &(NewRecord, UnixSecs, u64)| {
            (record.identifier.clone(), *stamp, record.datestamp_secs, record.status)
        };
        listed.into_iter().map(facts).collect()
    }
}

fn facts(record: &StoredRecord) -> (String, UnixSecs, UnixSecs, RecordStatus) {
    (record.identifier.clone(), record.stamp_secs, record.datestamp_secs, record.status)
}

fn page(random: &mut Random, identifiers: usize) -> Vec<NewRecord> {
    let count = 1 + random.below(60);
    let one = |random: &mut Random| {
        let number = random.below(identifiers);
        let datestamp = 1_000_000 + random.below(50) as i64 * 1000;
        let mut sets = SETS.to_vec();
        sets.retain(|_| random.chance(20));
        if random.chance(10) {
            return deleted(&format!("oai:x:{number}"), datestamp, &sets);
        }
        let text = ["short", "longer text", "the longest of all texts"][random.below(3)];
        let sets = if random.chance(70) { &sets[..0] } else { &sets[..] };
        record(&format!("oai:x:{number}"), datestamp, sets, &text.repeat(1 + random.below(4) * 200))
    };
    (0..count).map(|_| one(random)).collect()
}

async fn compare(store: &dyn MirrorStore, model: &Model, random: &mut Random) {
    let by = if random.chance(50) { ListOrder::Stamp } else { ListOrder::Datestamp };
    let bound = |random: &mut Random| {
        let bound = match by {
            ListOrder::Stamp => 100 + random.below(150) as i64,
            ListOrder::Datestamp => 1_000_000 + random.below(50_000) as i64,
        };
        random.chance(40).then_some(UnixSecs(bound))
    };
    let set = random.chance(60).then(|| random.pick(&SETS).to_owned());
    let (from_secs, until_secs) = (bound(random), bound(random));
    let live_only = random.chance(50);
    let start = random.below(2_000) as u64;
    let sequences = random.chance(30).then(|| start..start + random.below(2_000) as u64);
    let filter = ListFilter { set, by, from_secs, until_secs, sequences, live_only, ..everything() };
    let expected = model.list(&filter);
    assert_eq!(store.count(filter.clone()).await.expect("readable"), expected.len() as u64, "{filter:?}");
    let (count_max, bytes_max) = (1 + random.below(200), 1 + random.below(100_000));
    let with_bytes = random.chance(80);
    let query = ListQuery { count_max, bytes_max, with_bytes, ..whole(filter.clone()) };
    let (listed, damaged) = all_pages(store, query).await;
    assert_eq!(damaged, 0);
    assert_eq!(listed.iter().map(facts).collect::<Vec<_>>(), expected, "{filter:?}");
    for record in listed.iter().take(if with_bytes { 20 } else { 0 }) {
        let (version, ..) = &model.versions[&record.identifier];
        assert_eq!(record.bytes, version.bytes);
        let found = store.record(REPOSITORY, PREFIX, Identifier(&record.identifier)).await.expect("readable");
        assert_eq!(found.as_ref(), Some(record));
    }
}

/// Runs some hundred operations.
pub async fn a_store_behaves_like_the_model(backend: &impl MirrorBackend) {
    let seed = 20_261_123;
    println!("seed {seed}");
    let (mut random, mut model) = (Random::new(seed), Model::default());
    let mut store = backend.open();
    for round in 0..240_i64 {
        let stamp_secs = 100 + round / 2;
        let records = page(&mut random, 400);
        commit(&*store, stamp_secs, records.clone()).await;
        model.commit(UnixSecs(stamp_secs), &records);
        compare(&*store, &model, &mut random).await;
        if random.chance(8) {
            store.compact(REPOSITORY).await.expect("writable");
            compare(&*store, &model, &mut random).await;
        }
        if random.chance(4) {
            store.close();
            store = backend.open();
        }
    }
    let verification = store.verify(REPOSITORY).await.expect("readable");
    assert_eq!((verification.records, verification.damaged), (model.versions.len() as u64, 0));
    let sizes = store.collections(REPOSITORY).await.expect("readable");
    let tombstones =
        model.versions.values().filter(|version| version.0.status == RecordStatus::Deleted).count();
    assert_eq!(sizes[0].tombstones, tombstones as u64);
    assert_eq!(sizes[0].records + sizes[0].tombstones, model.versions.len() as u64);
}
