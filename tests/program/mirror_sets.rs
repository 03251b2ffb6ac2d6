//! Lists of sets whose members the headers do not name: the mirror refuses them, unless it has harvested the sets.

use oaimend::config::Mapping;
use oaimend_mirror::harvest::HarvestSettings;
use oaimend_mirror::view::ViewOptions;
use oaimend_repository::{Reason, Repository};
use oaimend_upstream::settings::Limits;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::fixtures::collection::{Collection, DAY_SECS, identifier};
use crate::fixtures::failover::{NOW_SECS, World};
use crate::fixtures::mirror::{Answered, Mirror, ask, pages, source};
use crate::fixtures::provider_one::ProviderOne;

const HOUR_SECS: i64 = 3_600;

fn harvesting() -> HarvestSettings {
    HarvestSettings { harvests_sets: true, ..HarvestSettings::default() }
}

fn without_set_specs(count: usize) -> Collection {
    Collection { names_set: |_| false, ..Collection::of(count) }
}

fn identifiers(pages: &[Answered]) -> BTreeSet<String> {
    pages.iter().flat_map(Answered::items).map(|item| item.identifier).collect()
}

fn even(count: usize) -> BTreeSet<String> {
    (0..count).step_by(2).map(identifier).collect()
}

fn uneven(count: usize) -> BTreeSet<String> {
    (1..count).step_by(2).map(identifier).collect()
}

/// The identifiers of a list of the mirror as a repository of its own; the failure if it refuses the list.
fn list_of_view(view: &dyn Repository, set: &str) -> Result<BTreeSet<String>, String> {
    let query = format!("verb=ListRecords&metadataPrefix=oai_dc&set={set}");
    let first = ask(view, &query);
    match first.failure {
        Some(failure) => {
            assert_eq!(failure.reason, Reason::MirrorIncomplete);
            Err(failure.details)
        }
        None if first.kind() == "noRecordsMatch" => Ok(BTreeSet::new()),
        None => Ok(identifiers(&pages(view, &query, || {}))),
    }
}

/// The same at the source, or at the mirror in its place.
fn list_of_source(world: &World, set: &str) -> Result<BTreeSet<String>, String> {
    let first = world.ask(&format!("verb=ListRecords&metadataPrefix=oai_dc&set={set}"));
    match first.failure {
        Some(failure) => {
            assert!(matches!(failure.reason, Reason::Status | Reason::CircuitOpen), "{failure:?}");
            Err(failure.details)
        }
        None if first.kind() == "noRecordsMatch" => Ok(BTreeSet::new()),
        None => Ok(identifiers(&world.rest("ListRecords", first))),
    }
}

fn lists(world: &World, set: &str) -> [Result<BTreeSet<String>, String>; 3] {
    let of_all = world.mirror.aggregate(ViewOptions::default(), vec![source("x")]);
    [
        list_of_view(&world.mirror.view("x", 7), set),
        list_of_view(&of_all, &format!("x:{set}")),
        list_of_source(world, set),
    ]
}

#[track_caller]
fn check_refused(world: &World, set: &str) {
    for list in lists(world, set) {
        let details = list.expect_err("the list is refused");
        assert!(details.contains("the mirror does not know which records"), "{details}");
    }
}

#[track_caller]
fn check_listed(world: &World, set: &str, expected: &BTreeSet<String>) {
    for list in lists(world, set) {
        assert_eq!(list.as_ref(), Ok(expected));
    }
}

#[test]
fn sets_that_no_header_names_are_refused_and_answered_after_a_harvest_of_the_sets() {
    let world = World::of(without_set_specs(45));
    world.harvest();
    world.set_down(true);
    check_refused(&world, "even");
    let without_set = world.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(identifiers(&world.rest("ListRecords", without_set)).len(), 45);
    world.set_down(false);
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.set_down(true);
    check_listed(&world, "even", &even(45));
    check_listed(&world, "uneven", &uneven(45));
    let sets = ask(&world.mirror.view("x", 7), "verb=ListSets").body;
    assert!(sets.contains("Even numbers") && sets.contains("Uneven numbers"), "{sets}");
}

#[test]
fn list_of_such_a_set_fails_in_the_middle_and_does_not_end_early() {
    for harvests_sets in [false, true] {
        for pages_before in 1..3 {
            let world = World::of(without_set_specs(60));
            let settings = HarvestSettings { harvests_sets, ..HarvestSettings::default() };
            assert!(world.try_harvest_with(&settings).is_some());
            let mut query = "verb=ListRecords&metadataPrefix=oai_dc&set=even".to_owned();
            let mut pages = Vec::new();
            for _ in 0..pages_before {
                let page = world.ask(&query);
                let token = page.summary.page.token.clone().expect("the list continues");
                query = format!("verb=ListRecords&resumptionToken={token}");
                pages.push(page);
            }
            world.set_down(true);
            let page = world.ask(&query);
            if harvests_sets {
                pages.extend(world.rest("ListRecords", page));
                assert_eq!(identifiers(&pages), even(60), "after {pages_before}");
            } else {
                let failure = page.failure.expect("the mirror does not know the rest");
                assert!(matches!(failure.reason, Reason::Status | Reason::CircuitOpen), "{failure:?}");
            }
        }
    }
}

#[test]
fn sets_that_only_some_headers_name_are_refused() {
    // Records from 20 on do not name their set.
    let names_set = |identifier: &str| identifier < "oai:c:00020";
    let mut collection = Collection { names_set, is_reversed: true, ..Collection::of(45) };
    let world = World::of(collection.clone());
    world.harvest();
    world.set_down(true);
    check_refused(&world, "even");
    world.set_down(false);
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.set_down(true);
    check_listed(&world, "even", &even(45));
    // All headers name it: nothing is refused.
    collection.names_set = |_| true;
    let world = World::of(collection);
    world.harvest();
    world.set_down(true);
    check_listed(&world, "even", &even(45));
}

#[test]
fn listed_set_without_members_is_empty_until_it_has_members_that_headers_do_not_name() {
    let sets = "<set><setSpec>even</setSpec><setName>E</setName></set>\
                <set><setSpec>none</setSpec><setName>N</setName></set>";
    let names_set = |identifier: &str| identifier != "oai:c:00001";
    let mut collection = Collection { sets: sets.to_owned(), names_set, ..Collection::of(5) };
    collection.entries.retain(|identifier, _| identifier != "oai:c:00001");
    let world = World::of(collection);
    world.harvest();
    world.set_down(true);
    for set in ["none", "nope", "even:nope"] {
        check_listed(&world, set, &BTreeSet::new());
    }
    world.set_down(false);
    world.pass_time(DAY_SECS);
    let mut entry = world.collection().entries[&identifier(3)].clone();
    (entry.set, entry.datestamp_secs) = ("none", NOW_SECS + DAY_SECS);
    world.collection().entries.insert(identifier(1), entry);
    world.harvest();
    world.set_down(true);
    check_refused(&world, "none");
    check_listed(&world, "even", &even(5));
}

#[test]
fn record_of_a_subset_is_in_the_sets_above_it() {
    let sets = "<set><setSpec>a</setSpec><setName>A</setName></set>\
                <set><setSpec>a:b</setSpec><setName>B</setName></set>\
                <set><setSpec>ab</setSpec><setName>AB</setName></set>";
    let mut collection = Collection { sets: sets.to_owned(), ..without_set_specs(3) };
    for (entry, set) in collection.entries.values_mut().zip(["a", "a:b", "ab"]) {
        entry.set = set;
    }
    let world = World::of(collection);
    world.harvest();
    world.set_down(true);
    for set in ["a", "a:b", "ab"] {
        check_refused(&world, set);
    }
    world.set_down(false);
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.set_down(true);
    check_listed(&world, "a", &BTreeSet::from([identifier(0), identifier(1)]));
    check_listed(&world, "a:b", &BTreeSet::from([identifier(1)]));
    check_listed(&world, "ab", &BTreeSet::from([identifier(2)]));
}

#[test]
fn changes_of_the_membership_reach_the_harvesters_of_a_set() {
    let world = World::of(without_set_specs(10));
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.pass_time(HOUR_SECS);
    let from = world.mirror.now();
    // One record moves without a new datestamp, one changes, one is new, and one is deleted without a setSpec.
    let changed_secs = NOW_SECS + HOUR_SECS;
    {
        let mut collection = world.collection();
        let mut entry = collection.entries[&identifier(0)].clone();
        entry.datestamp_secs = changed_secs;
        collection.entries.insert(identifier(10), entry);
        collection.entries.get_mut(&identifier(1)).expect("it exists").set = "even";
        for (number, deleted) in [(2, false), (4, true)] {
            let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
            (entry.datestamp_secs, entry.deleted) = (changed_secs, deleted);
            entry.title = "New".to_owned();
        }
    }
    assert!(world.try_harvest_with(&harvesting()).is_some());
    let query = format!("verb=ListRecords&metadataPrefix=oai_dc&set=even&from={from}");
    let changed = identifiers(&pages(&world.mirror.view("x", 7), &query, || {}));
    assert!(changed.is_superset(&[10, 1, 2, 4].map(identifier).into()), "{changed:?}");
    let all: BTreeSet<String> = even(12).into_iter().chain([identifier(1)]).collect();
    world.set_down(true);
    check_listed(&world, "even", &all);
    world.set_down(false);
    // A record leaves the set, and nothing else changes: the next day finds it.
    world.collection().entries.get_mut(&identifier(1)).expect("it exists").set = "uneven";
    world.pass_time(DAY_SECS);
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.set_down(true);
    check_listed(&world, "even", &even(12));
    check_listed(&world, "uneven", &uneven(10));
}

#[test]
fn harvest_without_changes_lists_no_set_and_stores_nothing() {
    let world = World::of(without_set_specs(10));
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.pass_time(HOUR_SECS);
    let before = world.source.requests().len();
    let summary = world.try_harvest_with(&harvesting()).expect("a complete harvest");
    assert_eq!((summary.counts.stored, summary.counts.deleted), (0, 0));
    let received: Vec<String> =
        world.source.requests()[before..].iter().map(|received| received.target.clone()).collect();
    assert!(!received.iter().any(|target| target.contains("set=")), "{received:?}");
}

#[test]
fn set_that_cannot_be_listed_is_refused_and_the_others_are_answered() {
    let world = World::of(Collection { fails_at: Some("set=even".to_owned()), ..without_set_specs(20) });
    assert!(world.try_harvest_with(&harvesting()).is_none(), "the harvest is not complete");
    world.set_down(true);
    check_refused(&world, "even");
    check_listed(&world, "uneven", &uneven(20));
    world.set_down(false);
    world.collection().fails_at = None;
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.set_down(true);
    check_listed(&world, "even", &even(20));
}

#[test]
fn new_record_whose_sets_were_not_listed_yet_is_after_the_state_of_the_list() {
    let world = World::of(without_set_specs(10));
    assert!(world.try_harvest_with(&harvesting()).is_some());
    let list = "verb=ListRecords&metadataPrefix=oai_dc&set=even";
    world.pass_time(2 * HOUR_SECS);
    let mut entry = world.collection().entries[&identifier(0)].clone();
    entry.datestamp_secs = NOW_SECS + 2 * HOUR_SECS;
    world.collection().entries.insert(identifier(10), entry);
    world.pass_time(2 * HOUR_SECS);
    world.collection().fails_at = Some("set=even".to_owned());
    assert!(world.try_harvest_with(&harvesting()).is_none(), "the harvest is not complete");
    world.collection().fails_at = None;
    world.set_down(true);
    check_listed(&world, "even", &even(10));
    let own_clock = world.mirror.now();
    world.set_down(false);
    let next = world.ask(&format!("{list}&from={own_clock}"));
    assert_eq!(identifiers(&[next]), BTreeSet::from([identifier(10)]));
    // No record changes until the next harvest.
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.set_down(true);
    check_listed(&world, "even", &even(12));
}

#[test]
fn missing_record_that_is_stored_before_its_sets_are_listed_is_after_the_state_of_the_list() {
    let world = World::of(without_set_specs(10));
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.pass_time(2 * HOUR_SECS);
    let mut entry = world.collection().entries[&identifier(0)].clone();
    entry.datestamp_secs = NOW_SECS + 2 * HOUR_SECS;
    for number in [10, 12] {
        world.collection().entries.insert(identifier(number), entry.clone());
    }
    world.collection().failing = BTreeSet::from([identifier(10)]);
    world.pass_time(2 * HOUR_SECS);
    // The source lists the record in its set, and the mirror does not have it.
    assert!(world.try_harvest_with(&harvesting()).is_none(), "the harvest is not complete");
    world.pass_time(2 * HOUR_SECS);
    world.collection().failing.clear();
    world.collection().fails_at = Some("set=even".to_owned());
    assert!(world.try_harvest_with(&harvesting()).is_none(), "the set cannot be listed");
    world.collection().fails_at = None;
    world.set_down(true);
    let without_it: BTreeSet<String> = even(10).into_iter().chain([identifier(12)]).collect();
    check_listed(&world, "even", &without_it);
    let own_clock = world.mirror.now();
    world.set_down(false);
    let next = world.ask(&format!("verb=ListRecords&metadataPrefix=oai_dc&set=even&from={own_clock}"));
    assert!(identifiers(&[next]).contains(&identifier(10)));
}

#[test]
fn sets_are_refused_again_after_the_mapping_stops_their_harvest() {
    let world = World::of(without_set_specs(10));
    assert!(world.try_harvest_with(&harvesting()).is_some());
    for _ in 0..2 {
        world.pass_time(DAY_SECS);
        world.harvest();
        world.set_down(true);
        check_refused(&world, "even");
        world.set_down(false);
    }
    assert!(world.try_harvest_with(&harvesting()).is_some());
    world.set_down(true);
    check_listed(&world, "even", &even(10));
}

#[test]
fn vanished_record_is_deleted_in_its_sets() {
    let world = World::of(Collection { deleted_record: "no", ..Collection::of(10) });
    world.harvest();
    world.pass_time(2 * DAY_SECS);
    let from = world.mirror.now();
    world.collection().entries.remove(&identifier(4));
    world.harvest();
    world.harvest();
    let query = format!("verb=ListRecords&metadataPrefix=oai_dc&set=even&from={from}");
    let items: Vec<_> =
        pages(&world.mirror.view("x", 7), &query, || {}).iter().flat_map(Answered::items).collect();
    assert!(items.iter().any(|item| item.identifier == identifier(4) && item.is_deleted), "{items:?}");
}

#[test]
fn sets_of_version_one_are_refused_and_answered_after_a_harvest_of_the_sets() {
    let old = ProviderOne { has_sets: true, ..ProviderOne::of("1.1") };
    let unused = Arc::new(Mutex::new(Collection::of(0)));
    let world = World::start(Mirror::new(NOW_SECS), old.start(), unused, source("x"));
    let from_source = list_of_source(&world, "physics").expect("the source answers");
    assert!(!from_source.is_empty());
    world.harvest();
    let view = world.mirror.view("x", 7);
    assert!(list_of_view(&view, "physics").is_err());
    assert!(world.try_harvest_with(&harvesting()).is_some());
    assert_eq!(list_of_view(&view, "physics"), Ok(from_source));
}

#[test]
fn records_of_several_mirrored_sets_are_not_only_in_the_last_one() {
    let old = ProviderOne { has_sets: true, sets_overlap: true, ..ProviderOne::of("1.1") };
    let unused = Arc::new(Mutex::new(Collection::of(0)));
    let world = World::start(Mirror::new(NOW_SECS), old.start(), unused, source("x"));
    let all = ["physics", "maths"].map(|set| list_of_source(&world, set).expect("the source answers"));
    let sets = ["physics", "maths"].map(str::to_owned).to_vec();
    let headers = HarvestSettings { sets: sets.clone(), ..HarvestSettings::default() };
    assert!(world.try_harvest_with(&headers).is_some());
    let view = world.mirror.view("x", 7);
    // In lists of a set, the headers of this source get the set that was requested.
    assert!(list_of_view(&view, "physics").is_err());
    assert_eq!(list_of_view(&view, "maths").as_ref(), Ok(&all[1]));
    assert!(world.try_harvest_with(&HarvestSettings { sets, ..harvesting() }).is_some());
    assert_eq!(["physics", "maths"].map(|set| list_of_view(&view, set)), all.map(Ok));
}

#[test]
fn mapping_decides_whether_sets_are_harvested() {
    let limits = Limits::default();
    let mut mapping = Mapping::new("x", "http://source.example/oai", &limits).expect("a mapping");
    mapping.mirror = Some(oaimend_mirror::settings::MirrorSettings {
        set_membership: oaimend_mirror::settings::SetMembership::Harvest,
        ..oaimend_mirror::settings::MirrorSettings::default()
    });
    assert!(HarvestSettings::of(mapping.mirror.as_ref()).harvests_sets);
}
