//! Items that a harvest could not store: they are known gaps until they are there, gone or unrepairable, and they do not
//! fail the rest.

use oaimend_oai::UnixSecs;
use oaimend_store::{Prefix, RepositoryId};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use oaimend_mirror::harvest::SWEEP_INTERVAL_SECS;
use oaimend_oai::datestamp::{Granularity, from_secs};

use crate::fixtures::collection::{Collection, FIRST_SECS, identifier};
use crate::fixtures::failover::World;
use crate::fixtures::harvest::{Mirror, change, truth};
use crate::fixtures::mirror::Answered;
use crate::fixtures::source::Source;

fn set_of(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
    numbers.into_iter().map(identifier).collect()
}

/// The state that the mirror claims, in seconds since 1970.
fn state_secs(mirror: &Mirror) -> Option<UnixSecs> {
    let progress = mirror
        .runtime
        .block_on(mirror.store.progress(RepositoryId("x"), Prefix("oai_dc")))
        .expect("readable");
    progress.state().map(|state| state.from_secs())
}

#[test]
fn record_that_fails_for_seconds_is_fetched_with_the_next_harvest() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection { failing: set_of([33]), ..Collection::of(60) }.start();
    let mirror = Mirror::open(&source, folder.path());
    for _ in 0..5 {
        let summary = mirror.harvest();
        assert!(summary.has_whole_lists() && !summary.is_complete(), "{summary:?}");
        assert_eq!((summary.missing, summary.unrepairable, mirror.content().len()), (1, 0, 59));
        assert_eq!(state_secs(&mirror), None, "a failure never makes a record unrepairable");
        mirror.pass_time(3_600);
    }
    change(&collection, |collection| collection.failing.clear());
    let highest = mirror.records().last().map(|record| record.stamp_secs);
    let summary = mirror.harvest();
    assert!(summary.is_success(), "{summary:?}");
    assert_eq!((summary.counts.stored, summary.missing), (1, 0));
    mirror.check_equal(&collection);
    assert!(state_secs(&mirror).is_some());
    let last = mirror.records().pop().expect("a record");
    assert!(last.identifier == identifier(33) && Some(last.stamp_secs) > highest, "{last:?}");
}

#[test]
fn state_stops_at_a_gap_of_an_incremental_harvest() {
    let (mirror, _source, collection) = Mirror::harvested(Collection::of(60));
    let before = state_secs(&mirror).expect("a state");
    let pass = || {
        mirror.pass_time(3_600);
        change(&collection, |collection| collection.now_secs += 3_600);
    };
    pass();
    change(&collection, |collection| {
        for number in [5, 6] {
            let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
            (entry.datestamp_secs, entry.title) = (collection.now_secs, "New".to_owned());
        }
        collection.failing = set_of([5]);
    });
    for _ in 0..3 {
        assert_eq!(mirror.harvest().missing, 1);
        assert_eq!(state_secs(&mirror), Some(before));
        pass();
    }
    change(&collection, |collection| collection.failing.clear());
    assert!(mirror.harvest().is_success());
    assert!(state_secs(&mirror) > Some(before));
    assert_eq!(mirror.content(), truth(&collection));
}

#[test]
fn missing_record_that_is_gone_is_no_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection { failing: set_of([33]), ..Collection::of(60) }.start();
    let mirror = Mirror::open(&source, folder.path());
    assert_eq!(mirror.harvest().missing, 1);
    change(&collection, |collection| {
        collection.failing.clear();
        collection.entries.remove(&identifier(33));
    });
    mirror.pass_time(3_600);
    assert!(mirror.harvest().is_success());
    assert_eq!(mirror.content(), truth(&collection));
}

#[test]
fn record_with_the_same_unreadable_bytes_in_three_harvests_is_unrepairable() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, collection) = Collection { unreadable: set_of([33]), ..Collection::of(60) }.start();
    let mirror = Mirror::open(&source, folder.path());
    for harvest in 1..=4 {
        let summary = mirror.harvest();
        let is_unrepairable = harvest >= 3;
        assert_eq!(summary.is_complete(), is_unrepairable, "harvest {harvest}: {summary:?}");
        assert!(!summary.is_success(), "harvest {harvest}: {summary:?}");
        assert_eq!((summary.missing, summary.unrepairable), (1, u64::from(is_unrepairable)));
        assert_eq!(state_secs(&mirror).is_some(), is_unrepairable, "harvest {harvest}");
        mirror.pass_time(3_600);
    }
    let highest = mirror.records().last().map(|record| record.stamp_secs);
    change(&collection, |collection| collection.unreadable.clear());
    let summary = mirror.harvest();
    assert!(summary.is_success() && summary.counts.stored == 1, "{summary:?}");
    let last = mirror.records().pop().expect("a record");
    assert!(last.identifier == identifier(33) && Some(last.stamp_secs) > highest, "{last:?}");
}

#[test]
fn values_beyond_a_limit_of_the_store_cost_their_record_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut new = Collection::of(25);
    let template = new.entries[&identifier(0)].clone();
    let long = format!("oai:c:00003{}", "x".repeat(17 << 10));
    new.entries.insert(long, template);
    new.entries.get_mut(&identifier(7)).expect("it exists").set = "s".repeat(70_000).leak();
    let (source, _collection) = new.start();
    let mirror = Mirror::open(&source, folder.path());
    for harvest in 1..=3 {
        let summary = mirror.harvest();
        assert!(summary.has_whole_lists(), "{summary:?}");
        assert_eq!((summary.missing, mirror.content().len()), (2, 24));
        assert_eq!(summary.unrepairable, if harvest < 3 { 0 } else { 2 }, "harvest {harvest}");
        mirror.pass_time(3_600);
    }
}

#[test]
fn pages_without_a_readable_record_do_not_end_a_harvest() {
    for (count, unreadable) in [(3, 0..3), (30, 0..10), (30, 10..20), (30, 20..30), (30, 0..30)] {
        let case = format!("{unreadable:?} of {count}");
        let folder = tempfile::tempdir().expect("a folder");
        let unreadable = set_of(unreadable);
        let missing = unreadable.len();
        let (source, collection) = Collection { unreadable, ..Collection::of(count) }.start();
        let mirror = Mirror::open(&source, folder.path());
        let summary = mirror.harvest();
        assert!(summary.has_whole_lists(), "{case}: {summary:?}");
        assert_eq!((summary.missing, mirror.content().len()), (missing as u64, count - missing), "{case}");
        change(&collection, |collection| collection.unreadable.clear());
        mirror.pass_time(3_600);
        assert!(mirror.harvest().is_success(), "{case}");
        assert_eq!(mirror.content(), truth(&collection), "{case}");
    }
}

#[test]
fn vanished_record_for_which_the_source_fails_is_counted_and_others_are_deleted() {
    let (mirror, _source, collection) =
        Mirror::harvested(Collection { deleted_record: "no", ..Collection::of(60) });
    change(&collection, |collection| {
        collection.entries.remove(&identifier(1));
        collection.hidden = set_of([3]);
        collection.failing = set_of([3]);
        collection.entries.remove(&identifier(5));
    });
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest();
    assert!(summary.has_whole_lists() && !summary.is_success(), "{summary:?}");
    assert_eq!((summary.counts.deleted, summary.missing), (2, 1));
    assert!(mirror.content()[&identifier(3)].is_some());
    // The next harvests say it too, and the next comparison asks again.
    assert_eq!(mirror.harvest().missing, 1);
    change(&collection, |collection| {
        collection.failing.clear();
        collection.entries.remove(&identifier(3));
    });
    mirror.pass_time(SWEEP_INTERVAL_SECS);
    let summary = mirror.harvest();
    assert!(summary.is_success() && summary.counts.deleted == 1, "{summary:?}");
}

fn identifiers(pages: &[Answered]) -> BTreeSet<String> {
    pages.iter().flat_map(Answered::items).map(|item| item.identifier).collect()
}

#[test]
fn harvester_of_the_source_gets_the_record_that_the_mirror_lacked() {
    let world = World::of(Collection { failing: set_of([33]), ..Collection::of(60) });
    assert!(world.try_harvest().is_none());
    world.set_down(true);
    let first = world.ask_valid("verb=ListRecords&metadataPrefix=oai_dc");
    let (_, date) = first.body.split_once("<responseDate>").expect("each response has one");
    let date = date.split('<').next().unwrap_or_default().to_owned();
    let pages = world.rest("ListRecords", first);
    let end = world.mirror.now();
    assert_eq!(identifiers(&pages).len(), 59);
    assert!(
        date <= from_secs(UnixSecs(FIRST_SECS), Granularity::Second),
        "{date} claims records that are missing"
    );
    world.set_down(false);
    world.collection().failing.clear();
    world.harvest();
    world.set_down(true);
    // Some harvesters continue from the responseDate, others from their own clock.
    for from in [date, end] {
        let query = format!("verb=ListRecords&metadataPrefix=oai_dc&from={from}");
        let pages = world.rest("ListRecords", world.ask_valid(&query));
        assert!(identifiers(&pages).contains(&identifier(33)), "from {from}");
    }
}

fn oaimend(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    let output: Output = command.args(arguments).current_dir(folder).output().expect("the program runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).expect("UTF-8"))
}

/// A folder with the mirrored repository `c`.
fn folder_with(source: &Source) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mappings = folder.path().join("mappings");
    std::fs::create_dir(&mappings).expect("a writable folder");
    let mapping = format!(
        "base_url = \"{}\"\nrefetch_broken_records = false\n[mirror]\nprefixes = [\"oai_dc\"]\n",
        source.base_url()
    );
    std::fs::write(mappings.join("c.toml"), mapping).expect("a writable folder");
    folder
}

#[test]
fn commands_say_what_is_missing_and_a_retried_record_goes_into_the_mirror() {
    let (source, collection) = Collection { unreadable: set_of([4]), ..Collection::of(8) }.start();
    let folder = folder_with(&source);
    let run = |arguments: &[&str]| oaimend(folder.path(), arguments);
    assert_eq!(
        run(&["mirror", "sync"]),
        (Some(1), "c: 7 stored, 0 deleted, 0 unchanged, 1 missing\n".to_owned())
    );
    let (_, status) = run(&["mirror", "status"]);
    assert!(status.contains("never"), "{status}");
    run(&["mirror", "sync"]);
    let (code, line) = run(&["mirror", "sync"]);
    assert!(code == Some(1) && line.contains("1 missing (1 of them unrepairable)"), "{code:?} {line}");
    let (_, status) = run(&["mirror", "status"]);
    assert!(status.contains("1 unrepairable") && !status.contains("never"), "{status}");
    change(&collection, |collection| collection.unreadable.clear());
    let (code, line) = run(&["quarantine", "retry", "c"]);
    assert!(code == Some(0) && line.contains("1 resolved"), "{code:?} {line}");
    let (_, ids) = run(&["mirror", "cat", "c", "--format", "ids"]);
    assert!(ids.contains(&identifier(4)) && ids.lines().count() == 8, "{ids}");
    let (_, status) = run(&["mirror", "status"]);
    assert!(!status.contains("unrepairable"), "{status}");
}
