//! The view of all repositories, if its configuration changes or a repository is forgotten: incremental harvesters
//! learn of each change of the shown records, also after a restart and in the middle of a list.

use std::collections::BTreeMap;

use oaimend_mirror::view::{AggregateRepository, MirroredSource, ViewOptions};
use oaimend_oai::datestamp::to_secs;
use oaimend_store::Collisions::{self, ClosestToOrigin, KeepBoth, Newest, Prefer};
use oaimend_store::NewRecord;

use crate::fixtures::mirror::{Answered, Item, Mirror, ask, deleted, live, pages, source};
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::random::Random;

/// 2023-11-14T22:13:20Z.
const START_SECS: i64 = 1_700_000_000;
/// Longer than the time by which requests are widened.
const PAUSE_SECS: i64 = 10_000;
const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

/// The configuration of the view.
#[derive(Clone, Debug)]
struct Settings {
    collisions: Collisions,
    sources: Vec<MirroredSource>,
}

impl Settings {
    fn new(collisions: Collisions, sources: &[(&str, u64)]) -> Self {
        let of = |(id, priority): &(&str, u64)| MirroredSource { priority: *priority, ..source(id) };
        Self { collisions, sources: sources.iter().map(of).collect() }
    }

    fn change(&self, id: &str, change: impl Fn(&mut MirroredSource)) -> Self {
        let mut settings = self.clone();
        settings.sources.iter_mut().filter(|source| source.id == id).for_each(change);
        settings
    }

    fn without(&self, id: &str) -> Self {
        let mut settings = self.clone();
        settings.sources.retain(|source| source.id != id);
        settings
    }

    fn view(&self, mirror: &Mirror, page_records_max: usize) -> AggregateRepository {
        let options = ViewOptions { page_records_max, collisions: self.collisions, ..ViewOptions::default() };
        mirror.aggregate(options, self.sources.clone())
    }
}

/// The repositories `x`, `y` and `z`. Each has items of its own and items of the others, with other contents.
fn mirror() -> Mirror {
    let mirror = Mirror::new(START_SECS);
    for id in ["x", "y", "z"] {
        mirror.describe(id, &["oai_dc", "marc"], &[("a", "Set A")]);
        commit_all(&mirror, id);
        mirror.pass_time(60);
    }
    mirror
}

/// The records of a repository at its source.
fn records_of(id: &str) -> Vec<NewRecord> {
    let shared = (0..6).map(|number| format!("oai:c:{number}"));
    let unique = (0..4).map(|number| format!("oai:{id}:{number}"));
    let record = |(number, identifier): (usize, String)| match number {
        5 => deleted(&identifier, &["a"]),
        // The repository with the latest datestamp of an item is not the one with the highest priority.
        _ => dated(&identifier, &format!("{identifier} of {id}"), if id == "x" { 20 } else { 3 }),
    };
    shared.chain(unique).enumerate().map(record).collect()
}

fn dated(identifier: &str, title: &str, day: u32) -> NewRecord {
    let date = format!("2001-03-{day:02}");
    let record = live(identifier, &["a"], title);
    let xml = String::from_utf8(record.bytes.to_vec()).expect("it is text").replace("2001-02-03", &date);
    NewRecord { datestamp_secs: to_secs(&date).expect("a date"), bytes: xml.into(), ..record }
}

fn commit_all(mirror: &Mirror, id: &str) {
    for prefix in ["oai_dc", "marc"] {
        mirror.commit(id, prefix, records_of(id), true);
    }
}

/// A harvester that requests the changes since the responseDate of its last list.
#[derive(Clone, Default)]
struct Harvester {
    /// The title of each live record, by its identifier, or by identifier and repository if all are shown.
    copy: BTreeMap<(String, String), String>,
    from: Option<String>,
}

fn key(item: &Item, collisions: Collisions) -> (String, String) {
    let repository = match collisions {
        KeepBoth => item.set_specs[0].clone(),
        Prefer | Newest | ClosestToOrigin => String::new(),
    };
    (item.identifier.clone(), repository)
}

impl Harvester {
    fn take(&mut self, page: &Answered, collisions: Collisions) {
        assert_eq!(page.failure, None);
        if page.summary.page.error.is_none() {
            page.valid(Strictness::Schema);
        }
        for item in page.items() {
            let key = key(&item, collisions);
            if item.is_deleted {
                self.copy.remove(&key);
            } else {
                self.copy.insert(key, item.title);
            }
        }
    }

    fn harvest(&mut self, mirror: &Mirror, settings: &Settings, prefix: &str) {
        let from = self.from.as_ref().map_or(String::new(), |from| format!("&from={from}"));
        let query = format!("verb=ListRecords&metadataPrefix={prefix}{from}");
        let pages = pages(&settings.view(mirror, 7), &query, || {});
        pages.iter().for_each(|page| self.take(page, settings.collisions));
        self.from = pages[0].summary.page.response_date.clone();
    }
}

/// The live records that a complete list shows.
fn shown(mirror: &Mirror, settings: &Settings, prefix: &str) -> BTreeMap<(String, String), String> {
    let mut harvester = Harvester::default();
    harvester.harvest(mirror, settings, prefix);
    harvester.copy
}

/// Every record of a complete list has the datestamp and the content that `GetRecord` shows.
fn check_single_records(mirror: &Mirror, settings: &Settings) {
    let view = settings.view(mirror, 11);
    let listed: Vec<Item> = pages(&view, LIST, || {}).iter().flat_map(Answered::items).collect();
    assert!(listed.is_sorted_by_key(|item| item.datestamp.clone()), "{settings:?}");
    for item in &listed {
        let query = format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={}", item.identifier);
        let answered = ask(&view, &query);
        answered.valid(Strictness::Schema);
        let single = answered.items();
        let of_item = || listed.iter().filter(|other| other.identifier == item.identifier);
        assert!(of_item().any(|item| single == [item.clone()]), "{settings:?}: {single:?}");
        // A withdrawn record hides none that is mirrored.
        assert_eq!(single[0].is_deleted, of_item().all(|item| item.is_deleted), "{settings:?}: {single:?}");
    }
}

/// A change: its name, the settings before and after it, and a change of the store.
type Scenario = (&'static str, Settings, Settings, fn(&Mirror));

fn scenarios() -> Vec<Scenario> {
    fn none(_: &Mirror) {}
    fn forget_y(mirror: &Mirror) {
        mirror.forget("y");
    }
    fn forget_and_harvest_less(mirror: &Mirror) {
        mirror.forget("y");
        mirror.describe("y", &["oai_dc", "marc"], &[]);
        // The source has lost the items of the others.
        for prefix in ["oai_dc", "marc"] {
            let rest = records_of("y").into_iter().filter(|record| record.identifier.contains(":y:"));
            mirror.commit("y", prefix, rest.collect(), true);
        }
    }
    let all = [("x", 1), ("y", 5), ("z", 1)];
    let of = |collisions| Settings::new(collisions, &all);
    let mut scenarios: Vec<Scenario> = vec![
        ("prefer instead of keep-both", of(KeepBoth), of(Prefer), none),
        ("newest instead of prefer", of(Prefer), of(Newest), none),
        ("keep-both instead of newest", of(Newest), of(KeepBoth), none),
        ("priority", of(Prefer), of(Prefer).change("x", |source| source.priority = 9), none),
        ("forget", of(Prefer), of(Prefer), forget_y),
        ("forget with newest", Settings::new(Newest, &all), of(Newest), |mirror| mirror.forget("x")),
        ("forget and harvest again", of(Prefer), of(Prefer), forget_and_harvest_less),
        ("forget of a removed mapping", of(Prefer), of(Prefer).without("y"), forget_y),
        ("forget and keep-both", of(KeepBoth), of(KeepBoth), |mirror| {
            mirror.forget("y");
            mirror.describe("y", &["oai_dc", "marc"], &[]);
            mirror.pass_time(1);
            commit_all(mirror, "y");
        }),
    ];
    for collisions in [KeepBoth, Prefer, Newest] {
        let both = of(collisions);
        let without = both.without("y");
        let narrowed = both.change("y", |source| source.prefixes = vec!["marc".to_owned()]);
        scenarios.push(("mapping removed", both.clone(), without.clone(), none));
        scenarios.push(("mapping added", without, both.clone(), none));
        scenarios.push(("prefixes narrowed", both.clone(), narrowed.clone(), none));
        scenarios.push(("prefixes widened", narrowed, both, none));
    }
    scenarios
}

fn check(scenario: &Scenario, restarts: bool, step_secs: i64) {
    let (name, before, after, change) = scenario;
    let case = format!("{name}, {:?}, restart {restarts}, clock {step_secs}", after.collisions);
    let mut mirror = mirror();
    let mut harvesters = BTreeMap::new();
    mirror.pass_time(PAUSE_SECS);
    // An added mapping may have been there before.
    Settings::new(before.collisions, &[("x", 1), ("y", 5), ("z", 1)]).view(&mirror, 7);
    for prefix in ["oai_dc", "marc"] {
        let mut harvester = Harvester::default();
        harvester.harvest(&mirror, before, prefix);
        assert_eq!(harvester.copy, shown(&mirror, before, prefix), "{case}");
        harvesters.insert(prefix, harvester);
    }
    mirror.pass_time(step_secs);
    change(&mirror);
    if restarts {
        mirror = mirror.restart();
    }
    for (prefix, harvester) in &mut harvesters {
        let known = harvester.copy.clone();
        harvester.harvest(&mirror, after, prefix);
        let mut expected = shown(&mirror, after, prefix);
        if name.contains("forget") {
            // Nothing is left of a forgotten record that could tell its deletion.
            let is_lost =
                |(key, _): &(&(String, String), &String)| key.0.contains(":y:") || key.0.contains(":x:");
            let lost = known.iter().filter(is_lost);
            let lost: Vec<_> = lost.filter(|(key, _)| !expected.contains_key(key)).collect();
            expected.extend(lost.into_iter().map(|(key, title)| (key.clone(), title.clone())));
        } else if before.collisions != after.collisions {
            // Harvesters of all records name them otherwise.
            harvester.copy.retain(|key, _| expected.contains_key(key));
        }
        assert_eq!(harvester.copy, expected, "{case}, {prefix}");
        if step_secs > 0 {
            // There is no further change.
            mirror.pass_time(PAUSE_SECS);
            let view = after.view(&mirror, 100);
            harvester.harvest(&mirror, after, prefix);
            mirror.pass_time(PAUSE_SECS);
            let from = harvester.from.clone().unwrap_or_default();
            let query = format!("verb=ListRecords&metadataPrefix={prefix}&from={from}");
            assert_eq!(ask(&view, &query).kind(), "noRecordsMatch", "{case}, {prefix}");
        }
    }
    check_single_records(&mirror, after);
}

#[test]
fn no_change_of_the_configuration_is_missed_by_incremental_harvests() {
    for scenario in scenarios() {
        for restarts in [false, true] {
            for step_secs in [PAUSE_SECS, 0, -PAUSE_SECS / 2] {
                check(&scenario, restarts, step_secs);
            }
        }
    }
}

#[test]
fn records_of_a_removed_mapping_are_deleted_until_it_is_added_again() {
    let mirror = mirror();
    let both = Settings::new(KeepBoth, &[("x", 0), ("y", 0)]);
    let one = both.without("y");
    both.view(&mirror, 100);
    mirror.pass_time(PAUSE_SECS);
    let removed_at = mirror.now();
    let view = one.view(&mirror, 100);
    let page = ask(&view, &format!("{LIST}&set=y"));
    page.valid(Strictness::Schema);
    let items = page.items();
    assert_eq!((items.len(), items.iter().all(|item| item.is_deleted)), (10, true), "{items:?}");
    assert!(items.iter().all(|item| item.datestamp == removed_at && item.set_specs == ["y", "y:a"]));
    assert!(ask(&view, "verb=ListSets").body.contains("<setSpec>y:a</setSpec>"));
    let formats = ask(&view, "verb=ListMetadataFormats&identifier=oai:y:1");
    assert_eq!(formats.kind(), "noMetadataFormats");
    let absent = ask(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:w:1");
    assert_eq!(absent.kind(), "idDoesNotExist");
    // Only its own records have new datestamps.
    let others = ask(&view, &format!("{LIST}&set=x")).items();
    assert!(others.iter().all(|item| item.datestamp < removed_at));
    mirror.pass_time(PAUSE_SECS);
    let added_at = mirror.now();
    let items = ask(&both.view(&mirror, 100), &format!("{LIST}&set=y")).items();
    let live = items.iter().filter(|item| !item.is_deleted).count();
    assert_eq!((live, items.iter().all(|item| item.datestamp == added_at)), (9, true), "{items:?}");
}

#[test]
fn no_change_has_no_stamp_also_after_a_restart() {
    let mirror = mirror();
    let settings = Settings::new(Prefer, &[("x", 1), ("y", 5)]);
    let first = ask(&settings.view(&mirror, 100), LIST).items();
    mirror.pass_time(PAUSE_SECS);
    let changed = settings.change("x", |source| source.priority = 9);
    let second = ask(&changed.view(&mirror, 100), LIST).items();
    assert!(second.iter().all(|item| item.datestamp > first[0].datestamp));
    let mirror = mirror.restart();
    mirror.pass_time(PAUSE_SECS);
    let reordered = Settings { sources: changed.sources.iter().rev().cloned().collect(), ..changed };
    assert_eq!(ask(&reordered.view(&mirror, 100), LIST).items(), second);
}

#[test]
fn a_list_in_flight_keeps_its_records_and_its_order() {
    for collisions in [KeepBoth, Prefer, Newest] {
        let mirror = mirror();
        let before = Settings::new(collisions, &[("x", 1), ("y", 5), ("z", 1)]);
        let complete = ask(&before.view(&mirror, 100), LIST).items();
        mirror.pass_time(PAUSE_SECS);
        let mut now = before.clone();
        let mut pages = vec![ask(&now.view(&mirror, 4), LIST)];
        while let Some(token) = pages.last().and_then(|page| page.summary.page.token.clone()) {
            assert!(pages.len() < 50, "the list does not end");
            // Two changes in a row.
            for number in 0..2 {
                mirror.pass_time(1);
                let url = format!("http://s.example/{}", pages.len() * 2 + number);
                now = now.change("y", |source| source.provenance_base_url = Some(url.clone()));
                now.view(&mirror, 4);
            }
            pages.push(ask(&now.view(&mirror, 4), &format!("verb=ListRecords&resumptionToken={token}")));
        }
        let items: Vec<Item> = pages.iter().flat_map(Answered::items).collect();
        assert_eq!(items, complete, "{collisions:?}");
        pages.iter().for_each(|page| drop(page.valid(Strictness::Schema)));
        assert_eq!(pages.last().and_then(|page| page.summary.page.progress.1), Some(complete.len() as u64));
        let from = pages[0].summary.page.response_date.clone().unwrap_or_default();
        let next = ask(&now.view(&mirror, 100), &format!("{LIST}&from={from}")).items();
        assert!(next.iter().any(|item| item.identifier == "oai:y:1"), "{next:?}");
        assert!(next.iter().all(|item| !item.identifier.contains(":x:")), "{next:?}");
    }
}

#[test]
fn a_response_that_began_before_a_change_is_dated_before_it() {
    let mirror = mirror();
    let before = Settings::new(Prefer, &[("x", 1), ("y", 5)]);
    let after = before.without("y");
    let old = before.view(&mirror, 100);
    mirror.pass_time(PAUSE_SECS);
    after.view(&mirror, 100);
    mirror.pass_time(PAUSE_SECS);
    let page = ask(&old, LIST);
    assert!(page.items().iter().any(|item| item.identifier == "oai:y:1" && !item.is_deleted));
    let mut harvester = Harvester { from: page.summary.page.response_date.clone(), ..Harvester::default() };
    harvester.take(&page, Prefer);
    harvester.harvest(&mirror, &after, "oai_dc");
    assert_eq!(harvester.copy, shown(&mirror, &after, "oai_dc"));
}

#[test]
fn windows_counts_and_cached_pages_follow_the_datestamps() {
    let mirror = mirror();
    let before = Settings::new(KeepBoth, &[("x", 0), ("y", 0), ("z", 0)]);
    before.view(&mirror, 4);
    mirror.pass_time(PAUSE_SECS);
    let after = before.change("y", |source| source.provenance_base_url = Some("http://y.example/".into()));
    let changed_at = mirror.now();
    let view = after.view(&mirror, 4);
    mirror.pass_time(PAUSE_SECS);
    let start = "2023-11-14T22:13:20Z";
    for (arguments, count) in [
        (format!("&from={changed_at}"), 10),
        (format!("&from={changed_at}&until={changed_at}"), 10),
        (format!("&from={start}&until={changed_at}"), 30),
        (format!("&until={start}"), 10),
        (String::new(), 30),
        (format!("&set=y&from={changed_at}"), 10),
        (format!("&set=y&until={changed_at}"), 10),
        (format!("&set=y:a&from={start}"), 10),
        ("&set=y&until=2023-11-14T23:59:59Z".to_owned(), 0),
        ("&until=2023-11-14T22:15:00Z".to_owned(), 10),
        ("&set=x&until=2023-11-14T22:15:00Z".to_owned(), 10),
    ] {
        let pages = pages(&view, &format!("verb=ListIdentifiers&metadataPrefix=oai_dc{arguments}"), || {});
        let items: Vec<Item> = pages.iter().flat_map(Answered::items).collect();
        assert_eq!(items.len(), count, "{arguments}");
        let mut sizes = pages.iter().filter_map(|page| page.summary.page.progress.1);
        assert!(count == 0 || sizes.all(|size| size == count as u64), "{arguments}");
    }
}

#[test]
fn a_change_that_cannot_be_stored_is_not_shown() {
    let mirror = mirror();
    let settings = Settings::new(Prefer, &[("x", 1), ("y", 5)]);
    settings.view(&mirror, 100);
    mirror.store().mirror.close();
    let open = AggregateRepository::open(mirror.stores(), oaimend_mirror::view::AggregateSettings::default);
    assert!(crate::fixtures::mirror::runtime().block_on(open).is_err());
}

/// The records of all repositories at their sources.
type Truth = BTreeMap<&'static str, BTreeMap<String, NewRecord>>;

/// A random change of the configuration, of a source, or of the store.
fn change_some(mirror: &Mirror, settings: &mut Settings, truth: &mut Truth, random: &mut Random) {
    let id = ["x", "y", "z"][random.below(3)];
    match random.below(9) {
        0 => settings.collisions = [Prefer, Newest][random.below(2)],
        1 => {
            let priority = random.below(3) as u64;
            *settings = settings.change(id, |source| source.priority = priority);
        }
        2 | 3 => {
            let has_id = settings.sources.iter().any(|source| source.id == id);
            if !has_id {
                settings.sources.push(source(id));
            } else if settings.sources.len() > 1 {
                *settings = settings.without(id);
            }
        }
        4 => {
            mirror.forget(id);
            mirror.describe(id, &["oai_dc", "marc"], &[]);
            if random.chance(50) {
                // Harvesters may see the view meanwhile.
                settings.view(mirror, 7);
            }
            mirror.commit(id, "oai_dc", truth[id].values().cloned().collect(), true);
        }
        _ => {
            let records = truth.get_mut(id).expect("it is known");
            let number = random.below(8);
            let identifier = format!("oai:c:{number}");
            let title = format!("{id} {}", random.below(1_000));
            let record = if random.chance(30) {
                deleted(&identifier, &["a"])
            } else {
                dated(&identifier, &title, 1 + random.below(28) as u32)
            };
            records.insert(identifier, record.clone());
            mirror.commit(id, "oai_dc", vec![record], true);
        }
    }
}

fn check_random_changes(seed: u64) {
    let mut random = Random::new(seed);
    let (mut mirror, mut truth) = (mirror(), Truth::new());
    for id in ["x", "y", "z"] {
        let records = records_of(id).into_iter().map(|record| (record.identifier.clone(), record));
        truth.insert(id, records.collect());
    }
    let mut settings = Settings::new(Prefer, &[("x", 1), ("y", 5), ("z", 1)]);
    let mut harvesters = [Harvester::default(), Harvester::default()];
    for _ in 0..20 {
        for _ in 0..random.below(3) {
            change_some(&mirror, &mut settings, &mut truth, &mut random);
        }
        let harvester = &mut harvesters[random.below(2)];
        let from = harvester.from.as_ref().map_or(String::new(), |from| format!("&from={from}"));
        let mut page = ask(&settings.view(&mirror, 1 + random.below(9)), &format!("{LIST}{from}"));
        harvester.from = page.summary.page.response_date.clone();
        let mut count = 1;
        loop {
            harvester.take(&page, settings.collisions);
            let Some(token) = page.summary.page.token.clone() else { break };
            assert!(count < 1_000, "seed {seed}: the list does not end");
            count += 1;
            mirror.pass_time([0, 0, 1, 30, -3_600][random.below(5)]);
            if random.chance(30) {
                change_some(&mirror, &mut settings, &mut truth, &mut random);
            }
            let view = settings.view(&mirror, 1 + random.below(9));
            page = ask(&view, &format!("verb=ListRecords&resumptionToken={token}"));
        }
        mirror.pass_time([0, 1, PAUSE_SECS][random.below(3)]);
        if random.chance(20) {
            mirror = mirror.restart();
        }
    }
    let expected = shown(&mirror, &settings, "oai_dc");
    for harvester in &mut harvesters {
        harvester.harvest(&mirror, &settings, "oai_dc");
        assert_eq!(harvester.copy, expected, "seed {seed}, {settings:?}");
    }
    check_single_records(&mirror, &settings);
}

#[test]
fn no_random_change_is_missed_by_incremental_harvests() {
    let seeds: Vec<u64> = (20_261_124..20_261_154).collect();
    println!("seeds {seeds:?}");
    seeds.into_iter().for_each(check_random_changes);
}
