//! The view of all repositories, if several of them have the same identifier: one record is shown, and incremental
//! harvesters learn of each change of it.

use oaimend_oai::UnixSecs;
use std::collections::{BTreeMap, BTreeSet};

use oaimend_mirror::view::{AggregateRepository, MirroredSource, ViewOptions};
use oaimend_oai::datestamp::{Granularity, from_secs, to_secs};
use oaimend_store::{Collisions, NewRecord, RecordStatus, content_hash};

use crate::fixtures::mirror::{Item, Mirror, ask, deleted, live, pages, source};
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::random::Random;

/// 2023-11-14T22:13:20Z.
const START_SECS: i64 = 1_700_000_000;
/// The repositories with their priorities.
const REPOSITORIES: [(&str, u64); 3] = [("x", 1), ("y", 5), ("z", 1)];
const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

fn view(mirror: &Mirror, collisions: Collisions, page_records_max: usize) -> AggregateRepository {
    let options = ViewOptions { page_records_max, collisions, ..ViewOptions::default() };
    let of = |(id, priority): (&str, u64)| MirroredSource { priority, ..source(id) };
    mirror.aggregate(options, REPOSITORIES.map(of).to_vec())
}

fn mirror() -> Mirror {
    let mirror = Mirror::new(START_SECS);
    for (id, _) in REPOSITORIES {
        mirror.describe(id, &["oai_dc"], &[]);
        mirror.commit(id, "oai_dc", Vec::new(), true);
    }
    mirror
}

/// A live record with this datestamp of its source. The content does not depend on the datestamp.
fn dated(identifier: &str, title: &str, day: usize) -> NewRecord {
    let date = format!("2001-03-{:02}", day + 1);
    let record = live(identifier, &[], title);
    let xml = String::from_utf8(record.bytes.to_vec()).expect("it is text").replace("2001-02-03", &date);
    NewRecord {
        datestamp_secs: to_secs(&date).expect("a date"),
        content_hash: content_hash(RecordStatus::Live, &[], &[title.as_bytes()]),
        bytes: xml.into(),
        ..record
    }
}

/// What a list shows of an item: its title; `None` if it is deleted.
type Shown = Option<String>;

/// The records of an item by repository: title and datestamp of the live ones.
type Records = BTreeMap<&'static str, Option<(String, i64)>>;

/// The records of all repositories, by identifier.
#[derive(Default)]
struct Truth(BTreeMap<String, Records>);

impl Truth {
    fn note(&mut self, id: &'static str, record: &NewRecord, title: &str) {
        let records = self.0.entry(record.identifier.clone()).or_default();
        let is_live = record.status == RecordStatus::Live;
        let is_same = matches!(records.get(id), Some(Some((stored, _))) if is_live && stored == title);
        if !is_same {
            records.insert(id, is_live.then(|| (title.to_owned(), record.datestamp_secs.0)));
        }
    }

    /// The record that a policy shows of each item.
    fn shown(&self, collisions: Collisions) -> BTreeMap<String, Shown> {
        let best = |records: &Records| {
            let live = REPOSITORIES.iter().filter_map(|(id, priority)| {
                let (title, datestamp_secs) = records.get(id)?.clone()?;
                Some((datestamp_secs, *priority, title))
            });
            let mut live: Vec<_> = live.collect();
            // Stable: the first repository of equal ones comes first.
            live.sort_by_key(|(datestamp_secs, priority, _)| match collisions {
                Collisions::Newest => (-*datestamp_secs, -(*priority as i64)),
                _ => (0, -(*priority as i64)),
            });
            live.into_iter().next().map(|(.., title)| title)
        };
        self.0.iter().map(|(identifier, records)| (identifier.clone(), best(records))).collect()
    }
}

fn shown(item: &Item) -> Shown {
    (!item.is_deleted).then(|| item.title.clone())
}

/// A random commit to a random repository.
fn commit_some(mirror: &Mirror, truth: &mut Truth, random: &mut Random) {
    let (id, _) = REPOSITORIES[random.below(3)];
    let mut records = BTreeMap::new();
    for _ in 0..random.below(6) {
        let identifier = format!("oai:c:{}", random.below(25));
        let title = format!("Title {} of {id}", random.below(4));
        let record = if random.chance(35) {
            deleted(&identifier, &[])
        } else {
            dated(&identifier, &title, random.below(28))
        };
        records.insert(identifier, (record, title));
    }
    for (record, title) in records.values() {
        truth.note(id, record, title);
    }
    mirror.commit(id, "oai_dc", records.into_values().map(|(record, _)| record).collect(), true);
}

fn check_incremental_harvests(seed: u64, collisions: Collisions) {
    let mut random = Random::new(seed);
    let (mut mirror, mut truth) = (mirror(), Truth::default());
    let mut copies: [(BTreeMap<String, Shown>, Option<String>); 2] = Default::default();
    let mut harvest = |mirror: &Mirror, index: usize, page_len: usize, between: &mut dyn FnMut()| {
        let (copy, from): &mut (_, Option<String>) = &mut copies[index];
        let arguments = from.as_ref().map_or(String::new(), |from| format!("&from={from}"));
        let view = view(mirror, collisions, page_len);
        let pages = pages(&view, &format!("{LIST}{arguments}"), between);
        for page in &pages {
            assert_eq!(page.failure, None);
            copy.extend(page.items().iter().map(|item| (item.identifier.clone(), shown(item))));
        }
        *from = pages[index * (pages.len() - 1)].summary.page.response_date.clone();
        copy.clone()
    };
    for _ in 0..30 {
        (0..random.below(4)).for_each(|_| commit_some(&mirror, &mut truth, &mut random));
        let (index, page_len) = (random.below(2), 1 + random.below(12));
        harvest(&mirror, index, page_len, &mut || {
            mirror.pass_time([0, 0, 1, 30, -3_600][random.below(5)]);
            if random.chance(50) {
                commit_some(&mirror, &mut truth, &mut random);
            }
        });
        mirror.pass_time(random.below(3) as i64);
        if random.chance(10) {
            mirror = mirror.restart();
        }
    }
    let expected = truth.shown(collisions);
    for index in 0..2 {
        let copy = harvest(&mirror, index, 7, &mut || {});
        assert_eq!(copy, expected, "seed {seed}, {collisions:?}");
    }
    check_consistency(&mirror, collisions, &expected);
}

/// A complete list has each item once, with the record and the datestamp of `GetRecord`.
fn check_consistency(mirror: &Mirror, collisions: Collisions, expected: &BTreeMap<String, Shown>) {
    let view = view(mirror, collisions, 9);
    let listed: Vec<Item> = pages(&view, LIST, || {}).iter().flat_map(|page| page.items()).collect();
    let found: BTreeMap<String, Shown> =
        listed.iter().map(|item| (item.identifier.clone(), shown(item))).collect();
    assert_eq!((found.len(), &found), (listed.len(), expected));
    assert!(listed.is_sorted_by_key(|item| item.datestamp.clone()));
    for item in &listed {
        let query = format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={}", item.identifier);
        assert_eq!(ask(&view, &query).items().first(), Some(item));
    }
    let headers = pages(&view, "verb=ListIdentifiers&metadataPrefix=oai_dc", || {});
    let headers: Vec<Item> = headers.iter().flat_map(|page| page.items()).collect();
    let untitled = |item: &Item| Item { title: String::new(), ..item.clone() };
    assert_eq!(headers, listed.iter().map(untitled).collect::<Vec<_>>());
}

#[test]
fn no_change_of_the_shown_record_is_missed_by_incremental_harvests() {
    let seeds: Vec<u64> = (20_261_123..20_261_135).collect();
    println!("seeds {seeds:?}");
    for seed in seeds {
        check_incremental_harvests(seed, Collisions::Prefer);
        check_incremental_harvests(seed, Collisions::Newest);
        check_incremental_harvests(seed, Collisions::ClosestToOrigin);
    }
}

#[test]
fn a_hidden_record_becomes_visible_when_the_shown_one_is_deleted() {
    for collisions in [Collisions::Prefer, Collisions::Newest, Collisions::ClosestToOrigin] {
        let mirror = mirror();
        let item = "oai:c:1";
        mirror.commit("x", "oai_dc", vec![dated(item, "of x", 3)], true);
        mirror.pass_time(60);
        mirror.commit("y", "oai_dc", vec![dated(item, "of y", 7)], true);
        mirror.pass_time(60);
        let view = view(&mirror, collisions, 10);
        let first = ask(&view, LIST);
        assert_eq!(first.items().iter().map(shown).collect::<Vec<_>>(), [Some("of y".to_owned())]);
        mirror.pass_time(60);
        mirror.commit("y", "oai_dc", vec![deleted(item, &[])], true);
        let deleted_at = mirror.now();
        mirror.pass_time(60);
        let from = first.summary.page.response_date.expect("a date");
        let next = ask(&view, &format!("{LIST}&from={from}"));
        next.valid(Strictness::Schema);
        let items = next.items();
        assert_eq!(items.iter().map(shown).collect::<Vec<_>>(), [Some("of x".to_owned())], "{collisions:?}");
        assert_eq!((&items[0].set_specs, &items[0].datestamp), (&vec!["x".to_owned()], &deleted_at));
        mirror.commit("x", "oai_dc", vec![deleted(item, &[])], true);
        let gone = ask(&view, LIST).items();
        // The tombstones have one datestamp of their source, so the priority decides.
        assert_eq!((shown(&gone[0]), &gone[0].set_specs), (None, &vec!["y".to_owned()]), "{collisions:?}");
        // The lists of one repository contain its own records.
        let page = ask(&view, &format!("{LIST}&set=y"));
        assert_eq!(page.items().iter().map(shown).collect::<Vec<_>>(), [None]);
    }
}

/// The lists contain each record. GetRecord returns the one that `Prefer` shows, as the lists contain it.
#[test]
fn get_record_of_all_records_returns_the_preferred_one_as_listed() {
    let mirror = mirror();
    let item = "oai:c:1";
    let all = |sources: Vec<MirroredSource>| mirror.aggregate(ViewOptions::default(), sources);
    let of = |(id, priority): (&str, u64)| MirroredSource { priority, ..source(id) };
    let found = |view: &AggregateRepository| {
        let page = ask(view, &format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={item}"));
        page.valid(Strictness::Schema);
        let found = page.items().first().cloned().expect("a record");
        let listed = ask(view, LIST).items();
        assert!(listed.contains(&found), "{found:?} is not in {listed:?}");
        (shown(&found), found.set_specs[0].clone())
    };
    let title = |title: &str| Some(title.to_owned());
    // The first repository has a tombstone.
    mirror.commit("x", "oai_dc", vec![deleted(item, &[])], true);
    mirror.pass_time(60);
    mirror.commit("z", "oai_dc", vec![dated(item, "of z", 3)], true);
    let view = all(REPOSITORIES.map(of).to_vec());
    assert_eq!(found(&view), (title("of z"), "z".to_owned()));
    // A repository with a higher priority has it too.
    mirror.pass_time(60);
    mirror.commit("x", "oai_dc", vec![dated(item, "of x", 3)], true);
    mirror.commit("y", "oai_dc", vec![dated(item, "of y", 1)], true);
    assert_eq!(found(&view), (title("of y"), "y".to_owned()));
    // Of equal ones, it is the first in the order of the ids.
    mirror.commit("y", "oai_dc", vec![deleted(item, &[])], true);
    assert_eq!(found(&view), (title("of x"), "x".to_owned()));
    // The mapping of the first one is removed, which deletes its record in the view.
    mirror.pass_time(60);
    let view = all([("y", 5), ("z", 1)].map(of).to_vec());
    assert_eq!(found(&view), (title("of z"), "z".to_owned()));
    mirror.commit("z", "oai_dc", vec![deleted(item, &[])], true);
    assert_eq!(found(&view), (None, "y".to_owned()));
}

#[test]
fn a_new_datestamp_alone_does_not_change_the_shown_record() {
    let mirror = mirror();
    mirror.commit("x", "oai_dc", vec![dated("oai:c:1", "of x", 3)], true);
    mirror.commit("y", "oai_dc", vec![dated("oai:c:1", "of y", 7)], true);
    let committed = mirror.commit("x", "oai_dc", vec![dated("oai:c:1", "of x", 20)], true);
    assert_eq!(committed.touched, 1);
    let items = ask(&view(&mirror, Collisions::Newest, 10), LIST).items();
    assert_eq!(items.iter().map(shown).collect::<Vec<_>>(), [Some("of y".to_owned())]);
    mirror.commit("x", "oai_dc", vec![dated("oai:c:1", "new", 21)], true);
    let items = ask(&view(&mirror, Collisions::Newest, 10), LIST).items();
    assert_eq!(items.iter().map(shown).collect::<Vec<_>>(), [Some("new".to_owned())]);
}

/// A record that an aggregator harvested so often before, of which the last harvest altered it or not.
fn aggregated(identifier: &str, title: &str, harvests: usize, altered: bool) -> NewRecord {
    let record = live(identifier, &[], title);
    let inner = (0..harvests).fold(String::new(), |inner, _| {
        format!("<originDescription harvestDate=\"2020-01-01T00:00:00Z\" altered=\"{altered}\">{inner}</originDescription>")
    });
    let about = format!(
        "<about><provenance xmlns=\"http://www.openarchives.org/OAI/2.0/provenance\">{inner}</provenance></about></record>"
    );
    let xml = String::from_utf8(record.bytes.to_vec()).expect("it is text").replace("</record>", &about);
    NewRecord {
        content_hash: content_hash(RecordStatus::Live, &[], &[xml.as_bytes()]),
        bytes: xml.into(),
        ..record
    }
}

#[test]
fn the_record_that_passed_the_fewest_aggregators_is_shown() {
    let mirror = mirror();
    let titles = || {
        let view = view(&mirror, Collisions::ClosestToOrigin, 10);
        let listed = ask(&view, LIST).items();
        let one = ask(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:c:1").items();
        assert_eq!(listed.iter().map(shown).collect::<Vec<_>>(), one.iter().map(shown).collect::<Vec<_>>());
        listed.iter().map(|item| item.title.clone()).collect::<Vec<_>>()
    };
    let commit = |id: &str, title: &str, harvests, altered| {
        mirror.pass_time(60);
        mirror.commit(id, "oai_dc", vec![aggregated("oai:c:1", title, harvests, altered)], true);
    };
    // The priority of y is the highest one.
    commit("y", "of y, 2 harvests", 2, false);
    commit("z", "of z, 1 altered", 1, true);
    assert_eq!(titles(), ["of z, 1 altered"]);
    commit("x", "of x, 1 harvest", 1, false);
    assert_eq!(titles(), ["of x, 1 harvest"]);
    commit("y", "of y, 1 harvest", 1, false);
    assert_eq!(titles(), ["of y, 1 harvest"], "of equal ones the priority counts");
    mirror.pass_time(60);
    mirror.commit("z", "oai_dc", vec![dated("oai:c:1", "of the origin", 1)], true);
    assert_eq!(titles(), ["of the origin"]);
    mirror.pass_time(60);
    mirror.commit("z", "oai_dc", vec![deleted("oai:c:1", &[])], true);
    assert_eq!(titles(), ["of y, 1 harvest"]);
}

#[test]
fn pages_are_bounded_although_all_records_of_a_repository_are_hidden() {
    let mirror = mirror();
    for id in ["x", "y"] {
        let records = (0..3_000).map(|number| dated(&format!("oai:c:{number}"), id, 1));
        mirror.commit(id, "oai_dc", records.collect(), true);
        mirror.pass_time(60);
    }
    let view = view(&mirror, Collisions::Prefer, 500);
    let pages = pages(&view, "verb=ListIdentifiers&metadataPrefix=oai_dc", || {});
    let lengths: Vec<usize> = pages.iter().map(|page| page.items().len()).collect();
    // The first pages examine a thousand hidden records each.
    assert_eq!(lengths, [1, 1, 1, 500, 500, 500, 500, 500, 500]);
    pages.iter().for_each(|page| drop(page.valid(Strictness::Schema)));
    let items = pages.iter().flat_map(|page| page.items());
    // An item that is in the list twice has the same datestamp.
    let items: BTreeSet<(String, String)> = items.map(|item| (item.identifier, item.datestamp)).collect();
    assert_eq!(items.len(), 3_000);
    let last = pages.last().expect("a page");
    assert_eq!(last.summary.page.progress, (Some(2_503), Some(3_003)));
    // All items have a change after the end of the window.
    let until = from_secs(UnixSecs(START_SECS + 30), Granularity::Second);
    assert_eq!(ask(&view, &format!("{LIST}&until={until}")).kind(), "noRecordsMatch");
}
