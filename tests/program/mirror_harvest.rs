//! The harvest of a repository into the store of the mirror.

use oaimend_oai::UnixSecs;
use std::collections::BTreeMap;
use std::time::Duration;

use oaimend_mirror::harvest::{HarvestSettings, SWEEP_INTERVAL_SECS};
use oaimend_store::{Prefix, RecordStatus, RepositoryId, StoredRecord};

use crate::fixtures::collection::{Collection, DAY_SECS, Entry, FIRST_SECS, identifier};
use crate::fixtures::harvest::{Mirror, change, queries, truth};

#[test]
fn first_harvest_stores_every_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection::of(35).start();
    let mirror = Mirror::open(&source, folder.path());
    let summary = mirror.harvest();
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!((summary.counts.stored, summary.missing), (35, 0));
    assert_eq!(mirror.content(), truth(&collection));
    let catalog = mirror.runtime.block_on(mirror.store.catalog(RepositoryId("x"))).expect("a catalog");
    assert_eq!(catalog.formats[0].prefix, "oai_dc");
    assert_eq!((catalog.sets[0].set_spec.as_str(), catalog.sets[0].name.as_str()), ("even", "Even numbers"));
}

#[test]
fn incremental_harvest_stores_the_changes_only() {
    let (mirror, source, collection) = Mirror::harvested(Collection::of(30));
    let stamps: BTreeMap<String, UnixSecs> =
        mirror.records().into_iter().map(|record| (record.identifier, record.stamp_secs)).collect();
    mirror.pass_time(3_600);
    change(&collection, |collection| {
        let now_secs = collection.now_secs + 100;
        for (number, deleted) in [(3, false), (7, true)] {
            let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
            (entry.datestamp_secs, entry.deleted, entry.title) = (now_secs, deleted, "New".to_owned());
        }
        collection.now_secs += 200;
    });
    let before = queries(&source).len();
    let summary = mirror.harvest();
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!((summary.counts.stored, summary.counts.deleted), (1, 1));
    assert_eq!(mirror.content(), truth(&collection));
    let lists: Vec<String> =
        queries(&source).into_iter().skip(before).filter(|query| query.contains("ListRecords")).collect();
    assert!(lists.len() == 1 && lists[0].contains("from=2022-09-26T"), "{lists:?}");
    for record in mirror.records() {
        let is_changed = [identifier(3), identifier(7)].contains(&record.identifier);
        assert_eq!(
            record.stamp_secs > UnixSecs((stamps[&record.identifier]).0),
            is_changed,
            "{}",
            record.identifier
        );
    }
}

#[test]
fn unchanged_records_of_a_source_that_ignores_from_keep_their_stamps() {
    let (mirror, _source, collection) =
        Mirror::harvested(Collection { ignores_windows: true, ..Collection::of(25) });
    let before = mirror.records();
    change(&collection, |collection| {
        // The source renews all datestamps.
        collection.entries.values_mut().for_each(|entry| entry.datestamp_secs = collection.now_secs);
        collection.now_secs += DAY_SECS;
    });
    mirror.pass_time(3_600);
    let summary = mirror.harvest();
    assert!(summary.is_complete() && summary.counts.stored == 0, "{summary:?}");
    let stamps = |records: &[StoredRecord]| {
        records
            .iter()
            .map(|record| (record.identifier.clone(), record.stamp_secs))
            .collect::<BTreeMap<_, _>>()
    };
    assert_eq!(stamps(&mirror.records()), stamps(&before));
}

#[test]
fn interrupted_harvest_continues_at_its_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) =
        Collection { fails_at: Some("20".to_owned()), list_len_max: 0, ..Collection::of(45) }.start();
    change(&collection, |collection| {
        (collection.fails_at, collection.list_len_max) = (Some("%2F20".to_owned()), usize::MAX);
        collection.ignores_windows = true;
    });
    {
        let mirror = Mirror::open(&source, folder.path());
        let summary = mirror.harvest();
        assert!(!summary.is_complete(), "{summary:?}");
        assert!(mirror.records().len() >= 20, "{}", mirror.records().len());
    }
    change(&collection, |collection| collection.fails_at = None);
    let before = queries(&source).len();
    let mirror = Mirror::open(&source, folder.path());
    let summary = mirror.harvest();
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(mirror.content(), truth(&collection));
    let lists: Vec<String> =
        queries(&source).into_iter().skip(before).filter(|query| query.contains("ListRecords")).collect();
    assert!(lists[0].contains("resumptionToken"), "{lists:?}");
}

#[test]
fn pages_of_a_fast_source_share_a_commit_and_those_of_a_slow_one_do_not() {
    // A page has ten records.
    for (gap_secs, commits) in [(0, 1), (6, 4)] {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, collection) = Collection::of(45).start();
        let mirror = Mirror::open(&source, folder.path());
        let request_gap = Duration::from_secs(gap_secs);
        let summary = mirror.harvest_with(&HarvestSettings { request_gap, ..HarvestSettings::default() });
        assert!(summary.is_complete(), "{summary:?}");
        assert_eq!(mirror.content(), truth(&collection));
        let progress = mirror
            .runtime
            .block_on(mirror.store.progress(RepositoryId("x"), Prefix("oai_dc")))
            .expect("readable");
        assert_eq!(progress.revision, commits, "with {gap_secs} s between two requests");
    }
}

#[test]
fn list_that_fails_is_harvested_in_windows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection { list_len_max: 12, ..Collection::of(200) }.start();
    let mirror = Mirror::open(&source, folder.path());
    let summary = mirror.harvest();
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(mirror.content(), truth(&collection));
    let state = mirror.runtime.block_on(mirror.store.repository_state(RepositoryId("x"))).expect("a state");
    assert_eq!(state.honours_windows, Some(true));
}

#[test]
fn vanished_records_are_deleted_up_to_a_limit() {
    let (mirror, _source, collection) =
        Mirror::harvested(Collection { deleted_record: "no", ..Collection::of(60) });
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    change(&collection, |collection| {
        for number in 0..4 {
            collection.entries.remove(&identifier(number));
        }
    });
    let summary = mirror.harvest();
    assert_eq!((summary.counts.deleted, summary.held_deletions.len()), (4, 0), "{summary:?}");
    assert_eq!(mirror.content().values().filter(|title| title.is_none()).count(), 4);
    change(&collection, |collection| {
        for number in 10..40 {
            collection.entries.remove(&identifier(number));
        }
    });
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    // The deletions wait also with the harvests until the next comparison.
    for _ in 0..2 {
        let summary = mirror.harvest();
        assert_eq!((summary.counts.deleted, summary.held_deletions), (0, vec![("oai_dc".to_owned(), 30)]));
    }
    let settings = HarvestSettings { accepts_deletions: true, ..HarvestSettings::default() };
    let summary = mirror.harvest_with(&settings);
    assert_eq!((summary.counts.deleted, summary.held_deletions.len()), (30, 0), "{summary:?}");
    // A record that returns gets a new stamp.
    let highest = mirror.records().last().map(|record| record.stamp_secs);
    mirror.pass_time(60);
    change(&collection, |collection| {
        let again = Collection::of(1).entries;
        collection.entries.extend(again);
        collection.entries.values_mut().for_each(|entry| entry.datestamp_secs = collection.now_secs);
    });
    assert_eq!(mirror.harvest().counts.stored, 1);
    let last = mirror.records().pop().expect("a record");
    assert_eq!((last.identifier, last.status), (identifier(0), RecordStatus::Live));
    assert!(Some(last.stamp_secs) > highest);
}

#[test]
fn format_that_the_source_does_not_have_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, _) = Collection { fails_at: Some("marcxml".to_owned()), ..Collection::of(5) }.start();
    let mirror = Mirror::open(&source, folder.path());
    let settings =
        HarvestSettings { prefixes: vec!["oai_dc".into(), "marcxml".into()], ..HarvestSettings::default() };
    let summary = mirror.harvest_with(&settings);
    assert_eq!(summary.complete, ["oai_dc"]);
    assert_eq!(summary.incomplete.len(), 1, "{summary:?}");
    assert_eq!(mirror.records()[0].datestamp_secs, UnixSecs(FIRST_SECS));
}

#[test]
fn identifiers_are_compared_once_a_day() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection { deleted_record: "no", ..Collection::of(25) }.start();
    let comparisons =
        || queries(&source).iter().filter(|query| query.contains("verb=ListIdentifiers&metadata")).count();
    let mirror = Mirror::open(&source, folder.path());
    mirror.harvest();
    // The first harvest has listed all records itself.
    assert_eq!(comparisons(), 0);
    change(&collection, |collection| {
        collection.entries.remove(&identifier(4));
    });
    for _ in 0..3 {
        mirror.pass_time(SWEEP_INTERVAL_SECS / 4);
        assert_eq!(mirror.harvest().counts.deleted, 0);
    }
    assert_eq!(comparisons(), 0);
    drop(mirror);
    // The time is remembered over a restart, and the clock of the test begins again.
    let mirror = Mirror::open(&source, folder.path());
    mirror.pass_time(SWEEP_INTERVAL_SECS * 3 / 4);
    assert_eq!(mirror.harvest().counts.deleted, 0);
    assert_eq!(comparisons(), 0);
    mirror.pass_time(SWEEP_INTERVAL_SECS / 4);
    assert_eq!(mirror.harvest().counts.deleted, 1);
    assert_eq!(comparisons(), 1);
    assert_eq!(mirror.harvest().counts.deleted, 0);
    assert_eq!(comparisons(), 1);
}

#[test]
fn set_that_is_added_to_the_configuration_is_harvested_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection::of(40).start();
    let mirror = Mirror::open(&source, folder.path());
    let harvest = |sets: &[&str]| {
        let sets = sets.iter().map(|&set| set.to_owned()).collect();
        let summary = mirror.harvest_with(&HarvestSettings { sets, ..HarvestSettings::default() });
        assert!(summary.is_complete(), "{summary:?}");
        summary.counts.stored
    };
    assert_eq!(harvest(&["even"]), 20);
    assert_eq!(harvest(&["even", "uneven"]), 20);
    assert_eq!(mirror.content(), truth(&collection));
    // Both sets are harvested from the last state on now.
    assert_eq!(harvest(&["uneven", "even"]), 0);
    let last: Vec<String> =
        queries(&source).into_iter().filter(|query| query.contains("ListRecords&")).rev().take(2).collect();
    assert!(last.iter().all(|query| query.contains("from=")), "{last:?}");
    change(&collection, |collection| {
        let mut entry = collection.entries[&identifier(0)].clone();
        entry.set = "other";
        collection.entries.insert("oai:c:other".to_owned(), entry);
    });
    // The new record is old, and in none of the sets before.
    assert_eq!(harvest(&["even", "uneven"]), 0);
    assert_eq!(harvest(&[]), 1);
    assert_eq!(mirror.content(), truth(&collection));
}

#[test]
fn interrupted_list_of_a_removed_set_is_not_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) =
        Collection { fails_at: Some("%2F10".to_owned()), ..Collection::of(40) }.start();
    change(&collection, |collection| collection.ignores_windows = true);
    let mirror = Mirror::open(&source, folder.path());
    let of_set = |set: &str| HarvestSettings { sets: vec![set.to_owned()], ..HarvestSettings::default() };
    assert!(!mirror.harvest_with(&of_set("even")).is_complete());
    change(&collection, |collection| collection.fails_at = None);
    let before = queries(&source).len();
    assert!(mirror.harvest_with(&of_set("uneven")).is_complete());
    let received: Vec<String> = queries(&source).split_off(before);
    assert!(!received.iter().any(|query| query.contains("%2Feven")), "{received:?}");
    let missing: Vec<String> = (0..40)
        .filter(|number| number % 2 == 1)
        .map(identifier)
        .filter(|identifier| !mirror.content().contains_key(identifier))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn harvests_learn_how_often_the_source_changes() {
    let mut new = Collection::of(100);
    // The datestamps of 25 records are in the 90 days before the harvest.
    let now_secs = oaimend_base::clock::secs(oaimend_base::clock::now());
    let now_secs = i64::try_from(now_secs).expect("a time");
    for number in 0..100 {
        let entry = new.entries.get_mut(&identifier(number)).expect("it exists");
        entry.datestamp_secs = now_secs - DAY_SECS * if number < 25 { 5 } else { 500 };
    }
    new.now_secs = now_secs;
    let (source, collection) = new.start();
    let folder = tempfile::tempdir().expect("a folder");
    let mirror = Mirror::open(&source, folder.path());
    let state =
        || mirror.runtime.block_on(mirror.store.repository_state(RepositoryId("x"))).expect("readable");
    assert!(mirror.harvest().is_complete());
    let per_day = |rate: Option<f64>| rate.expect("a rate") * DAY_SECS as f64;
    let first = per_day(state().schedule.updates_per_sec);
    let expected = 100.0 * (100.5_f64 / 75.5).ln() / 90.0;
    assert!((first / expected - 1.0).abs() < 0.01, "{first} instead of {expected}");

    // 25 known records change, and 5 are added. A harvest stores some of them and fails, and the next one is complete.
    mirror.pass_time(10 * DAY_SECS);
    let change = |change: &dyn Fn(&mut Collection)| {
        change(&mut collection.lock().expect("no test panics while it holds this"));
    };
    change(&|collection| {
        collection.now_secs += 10 * DAY_SECS;
        let datestamp_secs = collection.now_secs;
        let template = collection.entries[&identifier(0)].clone();
        for number in (50..70).chain(95..105) {
            let title = format!("New title {number}");
            collection
                .entries
                .insert(identifier(number), Entry { datestamp_secs, title, ..template.clone() });
        }
        collection.page_len = 8;
        collection.fails_at = Some("resumptionToken".to_owned());
    });
    let settings = HarvestSettings::default();
    let failed =
        mirror.runtime.block_on(mirror.harvester.run(&settings, &|_| {})).expect("Identify is answered");
    assert!(!failed.is_complete());
    let failures = state().schedule;
    assert_eq!((failures.failures, failures.changed + failures.added), (1, failed.counts.stored));
    assert!(failed.counts.stored > 0, "{failures:?}");
    change(&|collection| collection.fails_at = None);
    assert!(mirror.harvest().is_complete());
    let second = per_day(state().schedule.updates_per_sec);
    let observed = (100.0 * (100.5_f64 / 75.5).ln() + 5.0) / 10.0;
    let expected = 0.75 * first + 0.25 * observed;
    assert!((second / expected - 1.0).abs() < 0.02, "{second} instead of {expected}");
    assert_eq!(state().schedule.failures, 0);
}

/// A list contains a record and, on a later page, an older tombstone of it: the record stays.
#[test]
fn the_later_version_of_a_record_in_a_list_wins() {
    let mut collection = Collection::of(45);
    let tombstone = |number, secs: i64| {
        let entry = collection.entries.get(&identifier(number)).expect("it exists").clone();
        (identifier(number), Entry { deleted: true, datestamp_secs: entry.datestamp_secs + secs, ..entry })
    };
    let repeated = [tombstone(3, -1), tombstone(4, 0), tombstone(5, 1)];
    collection.repeated = repeated.into();
    let (mirror, _source, _collection) = Mirror::harvested(collection);
    let mut deleted: Vec<String> = mirror
        .records()
        .into_iter()
        .filter(|record| record.status == RecordStatus::Deleted)
        .map(|record| record.identifier)
        .collect();
    deleted.sort();
    assert_eq!(deleted, [identifier(4), identifier(5)]);
}
