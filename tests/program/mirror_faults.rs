//! Sources that misbehave between and during harvests: the mirror ends up with their records and deletes none by
//! mistake.

use oaimend_oai::UnixSecs;
use std::collections::BTreeMap;

use futures::future::join_all;
use oaimend_base::clock::Clock as _;
use oaimend_mirror::harvest::{HarvestSettings, SWEEP_INTERVAL_SECS};
use oaimend_store::{Prefix, RecordStatus, RepositoryId};

use crate::fixtures::collection::{Collection, DAY_SECS, Entry, identifier};
use crate::fixtures::harvest::{Mirror, change, queries, truth};
use oaimend_test_support::random::Random;

/// Sets the title of a record now.
fn touch(collection: &mut Collection, number: usize, title: &str) {
    let now_secs = collection.now_secs;
    if let Some(entry) = collection.entries.get_mut(&identifier(number)) {
        (entry.datestamp_secs, entry.title) = (now_secs, title.to_owned());
    }
}

#[test]
fn records_that_change_during_a_harvest_arrive_with_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection::of(60).start();
    change(&collection, |collection| {
        // With each page, a record changes, one is added and one is deleted.
        collection.before_list = Some(|collection| {
            collection.now_secs += 40;
            let round = collection.entries.len() - 60;
            touch(collection, 59 - 7 * round, "Changed");
            touch(collection, 3 * round, "Changed early");
            collection.entries.get_mut(&identifier(30 + round)).expect("it exists").deleted = true;
            touch(collection, 30 + round, "");
            let new = Entry { title: "New".to_owned(), ..collection.entries[&identifier(1)].clone() };
            collection
                .entries
                .insert(format!("oai:c:00000-{round}"), Entry { datestamp_secs: collection.now_secs, ..new });
        });
    });
    let mirror = Mirror::open(&source, folder.path());
    assert!(mirror.harvest().is_complete());
    change(&collection, |collection| collection.before_list = None);
    assert_ne!(mirror.content(), truth(&collection), "the source has not changed during the harvest");
    assert!(mirror.harvest().is_complete());
    mirror.check_equal(&collection);
}

#[test]
fn source_that_lists_its_records_in_another_order_is_mirrored() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection { deleted_record: "no", ..Collection::of(45) }.start();
    // The order changes between the first page and the second one: pages overlap, and records are in none.
    change(&collection, |collection| {
        collection.before_list = Some(|collection| collection.is_reversed = !collection.is_reversed);
    });
    let mirror = Mirror::open(&source, folder.path());
    mirror.harvest();
    change(&collection, |collection| collection.before_list = None);
    let compared = mirror.compare();
    assert!(compared.missing.count > 0 && compared.vanished.count == 0, "{compared:?}");
    // The next comparison of identifiers finds the missing records.
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest();
    assert_eq!(summary.counts.deleted, 0, "{summary:?}");
    mirror.check_equal(&collection);
}

#[test]
fn half_list_deletes_nothing() {
    let (mirror, _source, collection) =
        Mirror::harvested(Collection { deleted_record: "transient", ..Collection::of(60) });
    let before = mirror.records();
    change(&collection, |collection| collection.hidden = (0..30).map(identifier).collect());
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest();
    assert_eq!(summary.held_deletions, [("oai_dc".to_owned(), 30)]);
    assert_eq!(mirror.records(), before);
    assert_eq!(mirror.compare().vanished.count, 30);
    change(&collection, |collection| collection.hidden.clear());
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest();
    assert!(summary.is_success(), "{summary:?}");
    assert_eq!(mirror.records(), before);
    // A few hidden records are below the limit, and GetRecord still returns them.
    change(&collection, |collection| collection.hidden = (0..3).map(identifier).collect());
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    assert!(mirror.harvest().is_success());
    assert_eq!(mirror.records(), before);
}

#[test]
fn records_after_a_half_first_list_are_fetched_by_the_comparison() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection { deleted_record: "no", ..Collection::of(40) }.start();
    change(&collection, |collection| collection.hidden = (10..30).map(identifier).collect());
    let mirror = Mirror::open(&source, folder.path());
    assert_eq!(mirror.harvest().counts.stored, 20);
    change(&collection, |collection| collection.hidden.clear());
    assert_eq!(mirror.harvest().counts.stored, 0);
    assert_eq!(mirror.compare().missing.count, 20);
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    assert_eq!(mirror.harvest().counts.stored, 20);
    assert_eq!(mirror.content(), truth(&collection));
}

#[test]
fn source_that_loses_its_sets_keeps_its_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection { deleted_record: "no", ..Collection::of(30) }.start();
    let mirror = Mirror::open(&source, folder.path());
    let of_set = HarvestSettings { sets: vec!["even".to_owned()], ..HarvestSettings::default() };
    assert!(mirror.harvest_with(&of_set).is_complete());
    let before = mirror.records();
    change(&collection, |collection| collection.has_sets = false);
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest_with(&of_set);
    let (_, error) = summary.incomplete.first().expect("it is not complete");
    assert!(error.to_string().contains("noSetHierarchy"), "{error}");
    assert_eq!(mirror.records(), before);
    change(&collection, |collection| collection.has_sets = true);
    assert!(mirror.harvest_with(&of_set).is_success());
    // A set that is only empty looks like a set whose records have vanished.
    change(&collection, |collection| {
        collection.entries.values_mut().for_each(|entry| entry.set = "uneven");
    });
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest_with(&of_set);
    assert_eq!(summary.held_deletions, [("oai_dc".to_owned(), 15)], "{summary:?}");
    assert_eq!(mirror.records(), before);
}

#[test]
fn source_that_changes_all_identifiers_deletes_the_old_ones_after_a_confirmation() {
    let (mirror, _source, collection) =
        Mirror::harvested(Collection { deleted_record: "no", ..Collection::of(40) });
    let old = mirror.content();
    change(&collection, |collection| {
        collection.now_secs += DAY_SECS;
        let now_secs = collection.now_secs;
        let renamed = |(identifier, entry): (String, Entry)| {
            (identifier.replace("oai:c:", "oai:new:"), Entry { datestamp_secs: now_secs, ..entry })
        };
        collection.entries = std::mem::take(&mut collection.entries).into_iter().map(renamed).collect();
    });
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest();
    assert_eq!((summary.counts.stored, &summary.held_deletions), (40, &vec![("oai_dc".to_owned(), 40)]));
    let both: BTreeMap<_, _> = old.clone().into_iter().chain(truth(&collection)).collect();
    assert_eq!(mirror.content(), both);
    let accepting = HarvestSettings { accepts_deletions: true, ..HarvestSettings::default() };
    assert!(mirror.harvest_with(&accepting).is_success());
    let deleted: BTreeMap<_, _> = old.into_keys().map(|identifier| (identifier, None)).collect();
    assert_eq!(mirror.content(), deleted.into_iter().chain(truth(&collection)).collect());
}

#[test]
fn restored_backup_of_the_source_is_followed() {
    let (mirror, _source, collection) =
        Mirror::harvested(Collection { deleted_record: "no", ..Collection::of(50) });
    let mut backup = BTreeMap::new();
    change(&collection, |collection| {
        backup = collection.entries.clone();
        collection.now_secs += DAY_SECS;
        (0..5).for_each(|number| touch(collection, number, "Changed"));
        for number in 50..55 {
            let datestamp_secs = collection.now_secs;
            let entry = Entry { datestamp_secs, ..collection.entries[&identifier(0)].clone() };
            collection.entries.insert(identifier(number), entry);
        }
    });
    mirror.pass_time(DAY_SECS);
    assert_eq!(mirror.harvest().counts.stored, 10);
    change(&collection, |collection| {
        collection.now_secs += DAY_SECS;
        collection.entries = backup;
        touch(collection, 20, "After the backup");
    });
    // Changes after the backup arrive at once.
    assert_eq!(mirror.harvest().counts.stored, 1);
    let compared = mirror.compare();
    assert_eq!((compared.changed.count, compared.vanished.count, compared.missing.count), (5, 5, 0));
    // The comparison restores the older state of the others.
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest();
    assert_eq!((summary.counts.stored, summary.counts.deleted), (5, 5), "{summary:?}");
    let live: BTreeMap<_, _> = mirror.content().into_iter().filter(|(_, title)| title.is_some()).collect();
    assert_eq!(live, truth(&collection));
    assert!(mirror.compare().is_equal());
}

/// The stamps of all records, by identifier.
fn stamps(mirror: &Mirror) -> BTreeMap<String, UnixSecs> {
    mirror.records().into_iter().map(|record| (record.identifier, record.stamp_secs)).collect()
}

#[test]
fn clock_steps_of_an_hour_lose_no_change() {
    for seed in 1..=6 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let (source, collection) = Collection::of(30).start();
        let mirror = Mirror::open(&source, folder.path());
        mirror.harvest();
        for round in 0..12 {
            let pass = |secs: i64| {
                mirror.pass_time(secs);
                change(&collection, |collection| collection.now_secs += secs);
            };
            let list = mirror.harvester.stamps.begin_list(mirror.clock.now_secs());
            let date_secs = mirror.runtime.block_on(list).expect("a list").response_date_secs;
            let before = stamps(&mirror);
            // At most one clock steps between two harvests; docs/explanation/complete-harvests.md says why.
            let step = [-3_600, 0, 3_600][random.below(3)];
            let (steps_own, steps_first) = (random.chance(50), random.chance(50));
            let take_step = || {
                if steps_own {
                    mirror.clock.step(step)
                } else {
                    change(&collection, |collection| collection.now_secs += step)
                }
            };
            if steps_first {
                take_step();
            }
            let mut changed = Vec::new();
            for _ in 0..random.below(4) {
                pass(random.below(1_500) as i64);
                let number = random.below(30);
                let title = format!("Round {round} {}", random.next());
                change(&collection, |collection| touch(collection, number, &title));
                changed.push(identifier(number));
            }
            if !steps_first {
                take_step();
            }
            pass(random.below(5_000) as i64);
            let summary = mirror.harvest();
            assert!(summary.is_complete(), "{summary:?}");
            assert_eq!(mirror.content(), truth(&collection), "round {round}");
            // Harvesters of the mirror ask from the responseDate of their last list on.
            let after = stamps(&mirror);
            for (identifier, stamp_secs) in &after {
                let is_changed = changed.contains(identifier);
                if is_changed {
                    assert!(*stamp_secs > UnixSecs(date_secs.0), "round {round}: {identifier}")
                } else {
                    assert_eq!(*stamp_secs, before[identifier], "round {round}: {identifier}")
                }
            }
        }
    }
}

const SOURCES: u64 = 20;
/// Harvests of one source before its copy must be complete.
const HARVESTS_MAX: usize = 60;

#[test]
fn many_failing_sources_are_harvested_completely_at_once() {
    let seed = 20_261_123;
    println!("seed {seed}");
    let folder = tempfile::tempdir().expect("a folder");
    let sources: Vec<_> =
        (0..SOURCES).map(|number| Collection::failing(Random::new(seed ^ number << 32)).start()).collect();
    let mirror = Mirror::open(&sources[0].0, folder.path());
    let harvests = sources.iter().enumerate().map(|(number, (source, _))| {
        let harvester = mirror.harvester_of(&format!("x{number}"), source);
        mirror.runtime.spawn(async move {
            for attempt in 1..=HARVESTS_MAX {
                match harvester.run(&HarvestSettings::default(), &|_| {}).await {
                    Ok(summary) if summary.is_complete() => return attempt,
                    // The schedule waits after a failure too.
                    _ => harvester.clock.pause(std::time::Duration::from_secs(3_600)).await,
                }
            }
            panic!("x{number} is not complete after {HARVESTS_MAX} harvests");
        })
    });
    let attempts = mirror.runtime.block_on(join_all(harvests.collect::<Vec<_>>()));
    let attempts: Vec<usize> = attempts.into_iter().map(|ended| ended.expect("it is complete")).collect();
    println!("harvests until complete: {attempts:?}");
    let mut requests = 0;
    for (number, (source, collection)) in sources.iter().enumerate() {
        assert_eq!(mirror.content_of(&format!("x{number}")), truth(collection), "x{number}");
        requests += queries(source).len();
    }
    println!("{requests} requests");
    assert_eq!(mirror.runtime.block_on(mirror.store.verify(RepositoryId("x3"))).expect("a check").damaged, 0);
}

#[test]
fn comparison_changes_nothing() {
    let (mirror, _source, collection) =
        Mirror::harvested(Collection { deleted_record: "no", ..Collection::of(30) });
    change(&collection, |collection| {
        collection.now_secs += DAY_SECS;
        touch(collection, 4, "Changed");
        collection.entries.remove(&identifier(5));
        let new = collection.entries[&identifier(6)].clone();
        collection.entries.insert(identifier(30), new);
        collection.entries.get_mut(&identifier(7)).expect("it exists").deleted = true;
    });
    let before = mirror.records();
    let progress = mirror.runtime.block_on(mirror.store.progress(RepositoryId("x"), Prefix("oai_dc")));
    let compared = mirror.compare();
    assert_eq!((compared.listed, compared.stored), (29, 30));
    assert_eq!(compared.missing.identifiers, [identifier(30)]);
    assert_eq!(compared.changed.identifiers, [identifier(4)]);
    assert_eq!(compared.vanished.identifiers, [identifier(5), identifier(7)]);
    assert!(!compared.is_equal());
    assert_eq!(mirror.records(), before);
    let after = mirror.runtime.block_on(mirror.store.progress(RepositoryId("x"), Prefix("oai_dc")));
    assert_eq!(after.expect("readable"), progress.expect("readable"));
    assert!(mirror.records().iter().all(|record| record.status == RecordStatus::Live));
}
