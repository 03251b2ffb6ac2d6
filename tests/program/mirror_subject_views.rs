//! Views of chosen records: an incremental harvester of a view misses no record and keeps none that has left.

use crate::fixtures::mirror::{Item, Mirror, ask_once, deleted, live, pages, runtime};
use oaimend_mirror::view::{MirroredSource, SubjectRepository, ViewOptions};
use oaimend_repository::Failure;
use oaimend_store::RepositoryId;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::random::Random;
use oaimend_views::{SubjectViews, ViewSettings};
use std::collections::BTreeMap;

const START_SECS: i64 = 1_700_000_000;
const WORDS: [&str; 3] = ["green", "red", "green red"];

fn views(mirror: &Mirror) -> SubjectViews {
    SubjectViews::new(mirror.stores(), mirror.store().views, mirror.clock())
}

fn settings(sources: &[(&str, u64)], query: &str) -> ViewSettings {
    let source = |(id, priority): &(&str, u64)| MirroredSource {
        id: (*id).to_owned(),
        priority: *priority,
        ..MirroredSource::default()
    };
    ViewSettings {
        name: "colours".to_owned(),
        repository_name: "Colours".to_owned(),
        description: Some("Records & their colours".to_owned()),
        admin_emails: vec!["colours@proxy.example".to_owned()],
        sources: sources.iter().map(source).collect(),
        sets: Vec::new(),
        query: Some(query.to_owned()),
    }
}

fn open(views: &SubjectViews, settings: &ViewSettings) -> Result<SubjectRepository, Failure> {
    let options = ViewOptions { page_records_max: 3, ..ViewOptions::default() };
    runtime().block_on(views.open(settings, options))
}

#[track_caller]
fn list(views: &SubjectViews, settings: &ViewSettings, arguments: &str) -> Vec<Item> {
    let view = open(views, settings).expect("it is known");
    let query = format!("verb=ListRecords&metadataPrefix=oai_dc{arguments}");
    let pages = pages(&view, &query, || {});
    pages
        .iter()
        .flat_map(|page| {
            if page.kind() != "noRecordsMatch" {
                page.valid(Strictness::Schema);
            }
            page.items()
        })
        .collect()
}

fn states(items: &[Item]) -> Vec<(&str, bool)> {
    items.iter().map(|item| (item.identifier.as_str(), item.is_deleted)).collect()
}

fn mirror() -> Mirror {
    let mirror = Mirror::new(START_SECS);
    for id in ["x", "y"] {
        mirror.describe(id, &["oai_dc"], &[]);
        mirror.commit(id, "oai_dc", Vec::new(), true);
    }
    mirror.pass_time(10);
    mirror
}

#[test]
fn a_view_contains_what_matches_and_tells_what_has_left() {
    let mirror = mirror();
    let records = ["green", "red", "green", "red"];
    let records = (0..).zip(records).map(|(at, title)| live(&format!("oai:{at}"), &[], title));
    mirror.commit("x", "oai_dc", records.collect(), true);
    mirror.pass_time(10);
    let views = views(&mirror);
    let green = settings(&[("x", 0), ("y", 0)], "green");
    assert_eq!(states(&list(&views, &green, "")), [("oai:0", false), ("oai:2", false)]);
    let from = format!("&from={}", mirror.now());
    let changes = [
        live("oai:0", &[], "red"),
        live("oai:1", &[], "green"),
        deleted("oai:2", &[]),
        deleted("oai:3", &[]),
    ];
    mirror.commit("x", "oai_dc", changes.into(), true);
    mirror.pass_time(10);
    let now = list(&views, &green, &from);
    assert_eq!(states(&now), [("oai:0", true), ("oai:1", false), ("oai:2", true)]);
    let view = open(&views, &green).expect("it is known");
    for item in &now {
        let found =
            ask_once(&view, &format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={}", item.identifier));
        found.valid(Strictness::Schema);
        assert_eq!(found.items()[0].is_deleted, item.is_deleted);
        assert_eq!(found.items()[0].datestamp, item.datestamp);
    }
    let never = ask_once(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:3");
    assert_eq!(never.kind(), "idDoesNotExist");
    let formats =
        |identifier| ask_once(&view, &format!("verb=ListMetadataFormats&identifier=oai:{identifier}")).kind();
    assert_eq!([0, 1, 3].map(formats), ["noMetadataFormats", "ListMetadataFormats", "idDoesNotExist"]);
    ask_once(&view, "verb=Identify").valid(Strictness::Schema);
    let sets = ask_once(&view, "verb=ListSets");
    sets.valid(Strictness::Schema);
    assert_eq!(sets.body.matches("<setSpec>").count(), 2);
    assert_eq!(states(&list(&views, &green, "&set=x")).len(), 3);
    let of_y = ask_once(&view, "verb=ListRecords&metadataPrefix=oai_dc&set=y");
    assert_eq!(of_y.kind(), "noRecordsMatch");
}

#[test]
fn an_item_that_moves_is_shown_by_the_source_that_has_it() {
    let mirror = mirror();
    let views = views(&mirror);
    let green = settings(&[("x", 0), ("y", 1)], "green");
    mirror.commit("x", "oai_dc", vec![live("oai:1", &[], "green")], true);
    mirror.pass_time(10);
    assert_eq!(states(&list(&views, &green, "")), [("oai:1", false)]);
    let from = format!("&from={}", mirror.now());
    mirror.commit("y", "oai_dc", vec![live("oai:1", &[], "green too")], true);
    mirror.pass_time(1);
    mirror.commit("x", "oai_dc", vec![deleted("oai:1", &[])], true);
    mirror.pass_time(10);
    let [item] = list(&views, &green, &from).try_into().expect("one item");
    assert_eq!((item.is_deleted, item.title.as_str()), (false, "green too"));
    mirror.commit("y", "oai_dc", vec![live("oai:1", &[], "red")], true);
    mirror.pass_time(10);
    assert_eq!(states(&list(&views, &green, "")), [("oai:1", true)]);
}

fn newest_of(
    views: &SubjectViews,
    settings: &ViewSettings,
    has_pages: impl Fn(&str) -> bool,
    count_max: usize,
) -> Vec<(String, String)> {
    let newest = runtime().block_on(views.newest(settings, has_pages, count_max)).expect("it is known");
    newest.into_iter().map(|member| (member.repository, member.identifier)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(repository, identifier)| ((*repository).into(), (*identifier).into())).collect()
}

#[test]
fn the_newest_records_are_live_members_each_once() {
    let mirror = mirror();
    let commit = |id: &str, records: &[(&str, &str)]| {
        let records = records.iter().map(|(identifier, title)| live(identifier, &[], title));
        mirror.commit(id, "oai_dc", records.collect(), true);
        mirror.pass_time(10);
    };
    commit("x", &[("oai:1", "green"), ("oai:2", "green")]);
    commit("y", &[("oai:2", "green"), ("oai:3", "green")]);
    let views = views(&mirror);
    let newest = |sources| newest_of(&views, &settings(sources, "green"), |_| true, 10);
    let y_first = [("x", 0), ("y", 1)];
    assert_eq!(newest(&y_first), pairs(&[("y", "oai:3"), ("y", "oai:2"), ("x", "oai:1")]));
    commit("x", &[("oai:1", "red")]);
    assert_eq!(newest(&y_first), pairs(&[("y", "oai:3"), ("y", "oai:2")]), "oai:1 has left");
    assert_eq!(newest(&[("x", 0)]), pairs(&[("x", "oai:2")]), "y is not shown any more");
}

#[test]
fn of_a_new_record_in_several_repositories_the_preferred_one_is_shown() {
    let mirror = mirror();
    mirror.commit("x", "oai_dc", vec![live("oai:1", &[], "green"), live("oai:2", &[], "green")], true);
    mirror.pass_time(10);
    let of_y = (1..=40).map(|at| live(&format!("oai:{at}"), &[], if at == 2 { "red" } else { "green" }));
    mirror.commit("y", "oai_dc", of_y.collect(), true);
    mirror.pass_time(10);
    let views = views(&mirror);
    let green = settings(&[("x", 1), ("y", 0)], "green");
    let newest = newest_of(&views, &green, |_| true, 100);
    let of_y = (3..=40).rev().map(|at| ("y".to_owned(), format!("oai:{at}")));
    let expected: Vec<_> = of_y.chain(pairs(&[("x", "oai:2"), ("x", "oai:1")])).collect();
    assert_eq!(newest, expected, "oai:1 is the older record of x");
    assert_eq!(newest_of(&views, &green, |_| true, 1), pairs(&[("y", "oai:40")]));
    let without_x = newest_of(&views, &green, |id| id != "x", 100);
    assert_eq!(without_x.last(), pairs(&[("y", "oai:1")]).last(), "x has no pages");
    assert_eq!(newest_of(&views, &green, |id| id != "y", 1), pairs(&[("x", "oai:2")]), "y has no pages");
    let x_first = settings(&[("x", 2), ("y", 0)], "green");
    let equal = settings(&[("x", 0), ("y", 0)], "green");
    for other in [&x_first, &equal] {
        assert_eq!(newest_of(&views, other, |_| true, 100), expected);
    }
    let y_first = newest_of(&views, &settings(&[("x", 0), ("y", 1)], "green"), |_| true, 100);
    assert_eq!(y_first.len(), 40);
    assert_eq!(y_first[38..], pairs(&[("y", "oai:1"), ("x", "oai:2")]));
}

#[test]
fn the_newest_records_are_found_behind_many_that_have_left() {
    let mirror = mirror();
    let commit = |records: &[(&str, &str)]| {
        let records = records.iter().map(|(identifier, title)| live(identifier, &[], title));
        mirror.commit("x", "oai_dc", records.collect(), true);
        mirror.pass_time(10);
    };
    commit(&[("oai:stays", "green"), ("oai:leaves", "green")]);
    let (views, green) = (views(&mirror), settings(&[("x", 0)], "green"));
    let all: Vec<String> = (0..500).map(|at| format!("oai:{at}")).collect();
    for title in ["green", "red"] {
        commit(&all.iter().map(|identifier| (identifier.as_str(), title)).collect::<Vec<_>>());
        open(&views, &green).expect("few records");
    }
    commit(&[("oai:leaves", "red")]);
    assert_eq!(newest_of(&views, &green, |_| true, 2), pairs(&[("x", "oai:stays")]));
}

#[test]
fn the_newest_records_are_those_of_configured_repositories_at_once() {
    let mirror = mirror();
    let records = (0..1_500).map(|at| live(&format!("oai:{at}"), &[], "green")).collect();
    mirror.commit("x", "oai_dc", records, true);
    mirror.pass_time(10);
    mirror.commit("y", "oai_dc", vec![live("oai:y", &[], "green")], true);
    mirror.pass_time(10);
    let views = views(&mirror);
    let [both, one] = [&[("x", 0), ("y", 0)][..], &[("x", 0)]].map(|sources| settings(sources, "green"));
    (0..10).find_map(|_| open(&views, &both).ok()).expect("each request reads some members");
    assert_eq!(newest_of(&views, &both, |_| true, 1), pairs(&[("y", "oai:y")]));
    // The members of the new definition are not known yet.
    assert_eq!(newest_of(&views, &one, |_| true, 1), pairs(&[("x", "oai:1499")]));
}

#[test]
fn a_view_that_knows_all_commits_is_opened_from_memory() {
    let mirror = mirror();
    mirror.commit("x", "oai_dc", vec![live("oai:1", &[], "green")], true);
    mirror.pass_time(10);
    let (views, green) = (views(&mirror), settings(&[("x", 0), ("y", 0)], "green"));
    open(&views, &green).expect("it is known");
    mirror.store().views.close();
    open(&views, &green).expect("nothing has changed");
    assert!(open(&views, &settings(&[("x", 0)], "green")).is_err(), "another definition");
    mirror.commit("y", "oai_dc", Vec::new(), true);
    assert!(open(&views, &green).is_err(), "a commit");
}

#[test]
fn get_record_of_a_damaged_member_says_so() {
    let mirror = mirror();
    let before = mirror.lengths();
    mirror.commit("x", "oai_dc", vec![live("oai:1", &[], "green")], true);
    mirror.pass_time(10);
    let (views, green) = (views(&mirror), settings(&[("x", 0)], "green"));
    let view = open(&views, &green).expect("it is known");
    mirror.damage_since(&before);
    let failure = ask_once(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:1").failure;
    let failure = failure.expect("the record cannot be read");
    assert_eq!(failure.reason, oaimend_repository::Reason::Mirror, "{failure:?}");
    assert!(failure.details.contains("damaged on disk"), "{}", failure.details);
}

#[test]
fn a_view_of_many_records_is_read_in_steps() {
    let mirror = mirror();
    for first in [0, 1_000, 2_000] {
        let record = |at: usize| live(&format!("oai:{at}"), &[], "green");
        mirror.commit("x", "oai_dc", (first..first + 1_000).map(record).collect(), true);
        mirror.pass_time(10);
    }
    let green = settings(&[("x", 0)], "green");
    let first = open(&views(&mirror), &green).expect_err("the members are not known");
    assert_eq!(first.reason, oaimend_repository::Reason::MirrorIncomplete);
    let mirror = mirror.restart();
    let views = views(&mirror);
    let mut attempts = (0..10).map(|_| open(&views, &green));
    let view = attempts.find_map(Result::ok).expect("each request reads some members");
    let first = ask_once(&view, "verb=ListIdentifiers&metadataPrefix=oai_dc");
    assert_eq!(first.summary.page.progress, (Some(0), Some(3_000)));
}

#[test]
fn get_record_of_a_view_that_is_behind_answers_what_it_knows_or_fails_for_a_time() {
    let mirror = mirror();
    mirror.commit("x", "oai_dc", vec![live("oai:0", &[], "green"), live("oai:changes", &[], "green")], true);
    mirror.pass_time(10);
    let views = views(&mirror);
    let view = open(&views, &settings(&[("x", 0)], "green")).expect("it is known");
    let get =
        |id: &str| ask_once(&view, &format!("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:{id}"));
    mirror.commit("x", "oai_dc", vec![live("oai:enters", &[], "green")], true);
    assert_eq!(get("enters").kind(), "GetRecord", "it judges a few changes first");
    let others = (0..1_500).map(|at| live(&format!("oai:other:{at}"), &[], "red"));
    let last = [live("oai:changes", &[], "red"), live("oai:late", &[], "green")];
    mirror.commit("x", "oai_dc", others.chain(last).collect(), true);
    let is_behind = |id: &str| {
        let failure = get(id).failure.expect("it is not known");
        let text = "has not read the last change";
        failure.reason == oaimend_repository::Reason::MirrorIncomplete && failure.details.contains(text)
    };
    assert!(is_behind("changes"));
    mirror.commit(
        "x",
        "oai_dc",
        (0..3_000).map(|at| live(&format!("oai:{at}:"), &[], "red")).collect(),
        true,
    );
    let late = [live("oai:0", &[], "green too"), live("oai:later", &[], "green")];
    mirror.commit("x", "oai_dc", late.into(), true);
    assert!(is_behind("later"));
    assert_eq!(get("enters").kind(), "GetRecord", "its last change is known");
    for _ in 0..4 {
        get("later");
    }
    assert_eq!(get("later").kind(), "GetRecord");
    assert_eq!(get("nowhere").kind(), "idDoesNotExist");
}

#[test]
fn a_view_waits_for_the_members_of_its_sets() {
    let mirror = mirror();
    mirror.commit("x", "oai_dc", vec![live("oai:1", &[], "green")], true);
    mirror.pass_time(10);
    let views = views(&mirror);
    let all = settings(&[("x", 0)], "green");
    let of_set = ViewSettings { sets: vec!["x:a".to_owned()], ..all.clone() };
    let failure = open(&views, &of_set).expect_err("headers do not name the set");
    assert_eq!(failure.reason, oaimend_repository::Reason::MirrorIncomplete);
    assert!(failure.details.contains("which records of \"x\" are in the set a"), "{}", failure.details);
    assert_eq!(states(&list(&views, &all, "")), [("oai:1", false)]);
    assert_eq!(states(&list(&views, &of_set, "")), [("oai:1", false)], "the definition before answers");
    mirror.commit("x", "oai_dc", vec![live("oai:2", &["a"], "green")], true);
    mirror.pass_time(10);
    let mut now = list(&views, &of_set, "");
    now.sort_by(|one, other| one.identifier.cmp(&other.identifier));
    assert_eq!(states(&now), [("oai:1", true), ("oai:2", false)]);
}

#[test]
fn a_page_of_a_small_set_examines_a_part_of_the_view() {
    let mirror = mirror();
    let others = |from: usize| (from..from + 5_000).map(|at| live(&format!("oai:{at}"), &["large"], "green"));
    let first = [live("oai:first", &["small"], "green")];
    mirror.commit("x", "oai_dc", others(0).chain(first).collect(), true);
    mirror.commit("x", "oai_dc", others(5_000).collect(), true);
    mirror.commit("x", "oai_dc", vec![live("oai:last", &["small"], "green")], true);
    mirror.pass_time(10);
    let (views, green) = (views(&mirror), settings(&[("x", 0)], "green"));
    let view = (0..30).find_map(|_| open(&views, &green).ok()).expect("each request reads some members");
    let pages = |verb: &str, set: &str| {
        let pages = pages(&view, &format!("verb={verb}&metadataPrefix=oai_dc&set={set}"), || {});
        let identifiers = |page: &crate::fixtures::mirror::Answered| -> Vec<String> {
            page.items().into_iter().map(|item| item.identifier).collect()
        };
        pages.iter().map(identifiers).collect::<Vec<_>>()
    };
    let expected = [["oai:first"], ["oai:first"], ["oai:last"]];
    assert_eq!(
        pages("ListRecords", "x:small"),
        expected,
        "the first page repeats a record that is found later"
    );
    assert_eq!(pages("ListIdentifiers", "x:small"), expected);
    assert_eq!(pages("ListIdentifiers", "x:none"), [Vec::<String>::new()]);
}

#[test]
fn a_change_that_is_taken_back_is_a_change() {
    let mirror = mirror();
    let records = (0..1_500).map(|at| live(&format!("oai:{at}"), &[], "green")).collect();
    mirror.commit("x", "oai_dc", records, true);
    mirror.commit("y", "oai_dc", vec![live("oai:y", &[], "green")], true);
    mirror.pass_time(10);
    let views = views(&mirror);
    let [both, one] = [&[("x", 0), ("y", 0)][..], &[("x", 0)]].map(|sources| settings(sources, "green"));
    (0..10).find_map(|_| open(&views, &both).ok()).expect("each request reads some members");
    mirror.pass_time(86_400);
    let get = "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:y";
    // A request that meets the change fails for a time.
    let once = |settings, query: &str| ask_once(&open(&views, settings).expect("known"), query);
    let answered =
        |settings, query: &str| (0..10).map(|_| once(settings, query)).find(|page| page.failure.is_none());
    let is_deleted = |settings| answered(settings, get).expect("an answer").items()[0].is_deleted;
    assert!(!is_deleted(&both));
    let from = mirror.now();
    mirror.pass_time(86_400);
    assert!(is_deleted(&one), "the configuration decides at once");
    let list = format!("verb=ListIdentifiers&metadataPrefix=oai_dc&from={from}");
    let listed = answered(&both, &list).expect("an answer");
    assert_eq!(listed.kind(), "ListIdentifiers", "harvesters learn that the record is there again");
}

#[test]
fn a_change_that_is_taken_back_while_a_record_is_damaged_is_a_change() {
    let mirror = mirror();
    for id in ["x", "y"] {
        mirror.commit(id, "oai_dc", vec![live(&format!("oai:{id}"), &[], "green")], true);
    }
    mirror.pass_time(10);
    let views = views(&mirror);
    let [both, one] = [&[("x", 0), ("y", 0)][..], &[("x", 0)]].map(|sources| settings(sources, "green"));
    let is_deleted = |settings| {
        let view = open(&views, settings).expect("the members in use answer");
        ask_once(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:y").items()[0].is_deleted
    };
    assert!(!is_deleted(&both));
    let before = mirror.lengths();
    mirror.commit("x", "oai_dc", vec![live("oai:late", &[], "green")], true);
    mirror.damage_since(&before);
    mirror.pass_time(86_400);
    let from = format!("&from={}", mirror.now());
    mirror.pass_time(86_400);
    assert!(is_deleted(&one), "the configuration decides at once");
    assert!(!is_deleted(&both), "the view does not follow, and shows what it knows");
    runtime().block_on(mirror.store().mirror.accept_loss(RepositoryId("x"))).expect("writable");
    let listed = list(&views, &both, &from);
    assert!(states(&listed).contains(&("oai:y", false)), "{listed:?}");
}

/// How a harvester chooses the `from` of its next list.
#[derive(Clone, Copy, Debug)]
enum Kind {
    ResponseDate,
    HighestDatestamp,
    ClockAtStart,
    ClockAtEnd,
}

struct Harvester {
    kind: Kind,
    from: Option<String>,
    copy: BTreeMap<String, String>,
}

impl Harvester {
    /// One list from beginning to end, while the world may change. Without a change, the copy is the truth then.
    fn harvest(&mut self, world: &mut World, changes_percent: usize) {
        let mut has_changed = false;
        let started = world.mirror.now();
        let mut request = "verb=ListRecords&metadataPrefix=oai_dc".to_owned();
        if let Some(from) = &self.from {
            request = format!("{request}&from={from}");
        }
        let list = request.clone();
        let (mut dates, mut highest) = (Vec::new(), None);
        for _ in 0..1_000 {
            let settings = world.settings.clone();
            let view = open(&world.views, &settings).expect("few records");
            let page = ask_once(&view, &request);
            assert_eq!(page.failure, None, "seed {}", world.seed);
            dates.extend(page.summary.page.response_date.clone());
            if page.kind() != "noRecordsMatch" {
                for item in page.items() {
                    highest = highest.max(Some(item.datestamp.clone()));
                    if item.is_deleted {
                        self.copy.remove(&item.identifier);
                    } else {
                        self.copy.insert(item.identifier, item.title);
                    }
                }
            }
            let Some(token) = page.summary.page.token else { break };
            request = format!("verb=ListRecords&resumptionToken={token}");
            if world.random.chance(changes_percent) {
                world.change();
                has_changed = true;
            }
            world.mirror.pass_time(world.random.below(3) as i64);
        }
        self.from = match self.kind {
            Kind::ResponseDate => dates.into_iter().next(),
            Kind::HighestDatestamp => highest.or(self.from.take()),
            Kind::ClockAtStart => Some(started),
            Kind::ClockAtEnd => Some(world.mirror.now()),
        };
        if !has_changed {
            let (seed, kind) = (world.seed, self.kind);
            assert_eq!(self.copy, world.truth(), "seed {seed}, {kind:?}, list {list}");
        }
    }
}

struct World {
    seed: u64,
    random: Random,
    mirror: Mirror,
    views: SubjectViews,
    settings: ViewSettings,
    /// The live records of each repository.
    records: BTreeMap<&'static str, BTreeMap<String, String>>,
}

const RECORDS: usize = 12;

impl World {
    fn new(seed: u64) -> Self {
        let mirror = mirror();
        let (views, settings) = (views(&mirror), settings(&[("x", 1), ("y", 0)], "green"));
        let records = BTreeMap::from([("x", BTreeMap::new()), ("y", BTreeMap::new())]);
        Self { seed, random: Random::new(seed), mirror, views, settings, records }
    }

    fn put(&mut self, repository: &'static str, identifier: &str, title: Option<String>) {
        let record = match &title {
            Some(title) => live(identifier, &[], title),
            None => deleted(identifier, &[]),
        };
        self.mirror.commit(repository, "oai_dc", vec![record], true);
        let records = self.records.get_mut(repository).expect("one of two");
        match title {
            Some(title) => drop(records.insert(identifier.to_owned(), title)),
            None => drop(records.remove(identifier)),
        }
    }

    fn change(&mut self) {
        let repository = ["x", "y"][self.random.below(2)];
        let identifier = format!("oai:{}", self.random.below(RECORDS));
        match self.random.below(20) {
            0..12 => {
                let word = WORDS[self.random.below(WORDS.len())];
                let title = format!("{word} {}", self.random.below(1_000));
                self.put(repository, &identifier, Some(title));
            }
            12..15 => self.put(repository, &identifier, None),
            15..18 => {
                let other = if repository == "x" { "y" } else { "x" };
                if let Some(title) = self.records[repository].get(&identifier).cloned() {
                    self.put(other, &identifier, Some(title));
                    self.put(repository, &identifier, None);
                }
            }
            18 => {
                let sources: &[(&str, u64)] =
                    [&[("x", 1), ("y", 0)][..], &[("x", 0), ("y", 1)], &[("x", 0)], &[("y", 0)]]
                        [self.random.below(4)];
                self.settings = settings(sources, ["green", "red"][self.random.below(2)]);
            }
            _ => self.remove_or_restart(repository),
        }
        // After a day, no span of an earlier list covers a change that a harvester does not know.
        let pause_secs = if self.random.chance(20) { 86_400 } else { self.random.below(3) as i64 };
        self.mirror.pass_time(pause_secs);
    }

    fn remove_or_restart(&mut self, repository: &'static str) {
        if self.random.chance(50) {
            self.mirror.forget(repository);
            self.mirror.describe(repository, &["oai_dc"], &[]);
            self.mirror.commit(repository, "oai_dc", Vec::new(), true);
            self.records.insert(repository, BTreeMap::new());
        } else {
            let mirror = std::mem::replace(&mut self.mirror, Mirror::new(START_SECS));
            self.views = views(&self.mirror);
            self.mirror = mirror.restart();
            self.views = views(&self.mirror);
        }
    }

    /// What the view contains: of each item, the title in the repository with the highest priority.
    fn truth(&self) -> BTreeMap<String, String> {
        let query = self.settings.query.clone().expect("it has one");
        let mut sources = self.settings.sources.clone();
        sources.sort_by_key(|source| (source.priority, std::cmp::Reverse(source.id.clone())));
        let mut truth = BTreeMap::new();
        for source in sources {
            let records = self.records[source.id.as_str()].iter();
            let chosen = records.filter(|(_, title)| title.split(' ').any(|word| word == query));
            truth.extend(chosen.map(|(identifier, title)| (identifier.clone(), title.clone())));
        }
        truth
    }
}

#[test]
fn harvesters_of_a_view_miss_nothing_and_keep_nothing_that_has_left() {
    let first: u64 = std::env::var("OAIMEND_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(39);
    println!("seeds {first} to {}", first + 2);
    for seed in first..first + 3 {
        let mut world = World::new(seed);
        let kinds = [Kind::ResponseDate, Kind::HighestDatestamp, Kind::ClockAtStart, Kind::ClockAtEnd];
        let new = |kind| Harvester { kind, from: None, copy: BTreeMap::new() };
        let mut harvesters = kinds.map(new);
        for _ in 0..25 {
            for _ in 0..world.random.below(6) {
                world.change();
            }
            let at = world.random.below(harvesters.len());
            harvesters[at].harvest(&mut world, 30);
        }
        for harvester in &mut harvesters {
            harvester.harvest(&mut world, 0);
        }
    }
}
