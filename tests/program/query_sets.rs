//! Query sets of all repositories over a mirror and its index: what a page costs, and that no record is missed, whatever
//! changes while a list is read.

use crate::fixtures::mirror::{Item, Mirror, ask, ask_once, deleted, live, pages, runtime, source};
use base64::Engine as _;
use oaimend_mirror::view::{AggregateRepository, AggregateSettings, ViewOptions, ViewStores};
use oaimend_repository::Reason;
use oaimend_search::{IndexSettings, SearchIndex, Searches};
use oaimend_test_support::random::Random;
use oaimend_views::IndexQuerySets;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const START_SECS: i64 = 1_700_000_000;

/// A mirror with an index whose requests are counted.
struct Indexed {
    mirror: Mirror,
    index: SearchIndex,
    stores: ViewStores,
    requests: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

impl Indexed {
    fn new() -> Self {
        let mirror = Mirror::new(START_SECS);
        let folder = tempfile::tempdir().expect("a folder");
        let settings = IndexSettings { memory_max_bytes: 16 << 20 };
        let index = SearchIndex::open(folder.path(), settings).expect("a new index");
        let requests = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&requests);
        let searches = Searches::new(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        searches.set_index(Some(index.clone()));
        let mut stores = mirror.stores();
        stores.query_sets = Some(Arc::new(IndexQuerySets { searches }));
        Self { mirror, index, stores, requests, _folder: folder }
    }

    /// Indexes all commits, as the program does.
    fn follow(&self) {
        runtime().block_on(async {
            let stamps = &self.mirror.stores().stamps;
            let now_secs = self.mirror.clock().now_secs();
            let settled_secs =
                stamps.begin_list(now_secs).await.expect("a writable store").response_date_secs;
            let mirror = self.mirror.store().mirror;
            self.index.follow(&*mirror, Some(settled_secs)).await.expect("a readable mirror");
        });
    }

    fn all(&self, ids: &[String], page_records_max: usize) -> AggregateRepository {
        let settings = AggregateSettings {
            options: ViewOptions { page_records_max, ..ViewOptions::default() },
            sources: ids.iter().map(|id| source(id)).collect(),
            ..AggregateSettings::default()
        };
        let opened = AggregateRepository::open(self.stores.clone(), || settings);
        runtime().block_on(opened).expect("a writable store")
    }
}

fn query_set(query: &str) -> String {
    format!("q:{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(query))
}

fn list(verb: &str, from: Option<&str>) -> String {
    let from = from.map(|from| format!("&from={from}")).unwrap_or_default();
    format!("verb={verb}&metadataPrefix=oai_dc&set={}{from}", query_set("green"))
}

#[test]
fn a_page_costs_as_many_index_requests_for_many_repositories_as_for_one() {
    let requests = |count: usize| {
        let indexed = Indexed::new();
        let ids: Vec<String> = (0..count).map(|number| format!("r{number:02}")).collect();
        for id in &ids {
            indexed.mirror.describe(id, &["oai_dc"], &[]);
        }
        for number in 0..60 {
            let id = &ids[number % count];
            indexed.mirror.commit(id, "oai_dc", vec![live(&format!("oai:{number}"), &[], "green")], true);
            indexed.mirror.pass_time(1);
        }
        indexed.follow();
        let all = indexed.all(&ids, 20);
        let count = |query: &str| {
            let before = indexed.requests.load(Ordering::SeqCst);
            let page = ask_once(&all, query);
            assert_eq!(page.items().len(), 20, "{:?}", page.failure);
            (indexed.requests.load(Ordering::SeqCst) - before, page.summary.page.token.clone())
        };
        let (first, token) = count(&list("ListRecords", None));
        let (second, _) = count(&format!("verb=ListRecords&resumptionToken={}", token.expect("60 records")));
        (first, second)
    };
    // The query is checked twice, the list begins, is read and counted; later pages are checked and read.
    assert_eq!(requests(1), (5, 2));
    assert_eq!(requests(30), (5, 2));
}

/// The titles of the records of a list, by repository and identifier.
type Copy = BTreeMap<(String, String), String>;

fn key(item: &Item) -> (String, String) {
    (item.set_specs[0].clone(), item.identifier.clone())
}

fn take(copy: &mut Copy, items: Vec<Item>) {
    for item in items {
        if item.is_deleted {
            copy.remove(&key(&item));
        } else {
            copy.insert(key(&item), item.title);
        }
    }
}

/// What happens between two pages.
fn change(indexed: &Indexed, ids: &mut Vec<String>, random: &mut Random) {
    for _ in 0..random.below(3) {
        let id = random.pick(&["a", "b", "c", "d"]);
        let records = (0..=random.below(4)).map(|_| {
            let identifier = format!("oai:{id}:{}", random.below(12));
            match random.below(6) {
                0 => deleted(&identifier, &[]),
                1 | 2 => live(&identifier, &[], &format!("red {}", random.next())),
                _ => live(&identifier, &[], &format!("green {}", random.next())),
            }
        });
        // A commit has each identifier once.
        let records: BTreeMap<String, _> =
            records.map(|record| (record.identifier.clone(), record)).collect();
        indexed.mirror.commit(id, "oai_dc", records.into_values().collect(), true);
        indexed.mirror.pass_time(random.below(3) as i64);
    }
    if random.chance(15) {
        // The records of a repository leave the view, or get a later datestamp because they return.
        *ids = ["a", "b", "c", "d"].iter().filter(|_| random.chance(70)).map(|&id| id.to_owned()).collect();
        if ids.is_empty() {
            ids.push("a".to_owned());
        }
    }
    if random.chance(40) {
        indexed.follow();
    }
}

/// A complete list of the set in the present state, compared with the list of all records.
#[track_caller]
fn check_whole_list(indexed: &Indexed, ids: &[String], from: Option<&str>, random: &mut Random) {
    // Its first response stamps a change of the repositories.
    let all = indexed.all(ids, 1 + random.below(9));
    indexed.mirror.pass_time(1);
    indexed.follow();
    let of_set = pages(&all, &list("ListRecords", from), || ());
    let everything = format!(
        "verb=ListRecords&metadataPrefix=oai_dc{}",
        from.map(|from| format!("&from={from}")).unwrap_or_default()
    );
    let mut expected: Vec<Item> =
        pages(&all, &everything, || ()).iter().flat_map(|page| page.items()).collect();
    let withdrawn = |item: &Item| !ids.contains(&item.set_specs[0]);
    let of_withdrawn: Vec<Item> = of_set.iter().flat_map(|page| page.items()).filter(withdrawn).collect();
    assert!(of_withdrawn.iter().all(|item| item.is_deleted), "{of_withdrawn:?}");
    // The view shows no metadata of a withdrawn record, so its list does not tell whether it matches.
    expected.retain(|item| item.title.contains("green") || of_withdrawn.contains(item));
    let listed: Vec<Item> = of_set.iter().flat_map(|page| page.items()).collect();
    assert_eq!(listed, expected);
    let size = Some(expected.len() as u64).filter(|size| *size > 0);
    assert!(of_set.iter().all(|page| page.summary.page.progress.1 == size), "{size:?}");
}

#[test]
fn a_harvester_misses_no_record_that_changes_while_it_reads_lists() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let indexed = Indexed::new();
        let mut ids: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        for id in &ids {
            indexed.mirror.describe(id, &["oai_dc"], &[]);
            let records = (0..12).map(|number| live(&format!("oai:{id}:{number}"), &[], "green"));
            indexed.mirror.commit(id, "oai_dc", records.collect(), true);
        }
        indexed.mirror.pass_time(1);
        indexed.follow();
        let (mut copy, mut from) = (Copy::new(), None::<String>);
        for _ in 0..6 {
            let mut query = list("ListRecords", from.as_deref());
            let (mut seen, mut delivered) = (BTreeSet::new(), 0);
            let (ids_of_list, mut is_changed) = (ids.clone(), false);
            loop {
                let page = ask(&indexed.all(&ids, 5), &query);
                assert_eq!(page.failure, None);
                let summary = &page.summary.page;
                delivered += page.items().len() as u64;
                for item in page.items() {
                    // A last page without records repeats one, and a changed repository moves on in the list.
                    let is_repeated = summary.token.is_none() && page.items().len() == 1;
                    let is_new = seen.insert(key(&item));
                    assert!(is_new || is_repeated || is_changed, "{item:?} twice");
                }
                take(&mut copy, page.items());
                from = summary.response_date.clone();
                let Some(token) = &summary.token else {
                    assert!(summary.progress.1.is_none_or(|size| size == delivered), "{summary:?}");
                    break;
                };
                assert!(summary.progress.1.is_some_and(|size| size > delivered), "{summary:?}");
                query = format!("verb=ListRecords&resumptionToken={token}");
                change(&indexed, &mut ids, &mut random);
                is_changed |= ids != ids_of_list;
            }
            change(&indexed, &mut ids, &mut random);
            let from = from.as_deref().filter(|_| random.chance(50));
            check_whole_list(&indexed, &ids, from, &mut random);
        }
        // Nothing changes any more.
        indexed.mirror.pass_time(1);
        indexed.follow();
        let all = indexed.all(&ids, 7);
        for page in pages(&all, &list("ListRecords", from.as_deref()), || ()) {
            take(&mut copy, page.items());
        }
        let mut whole = Copy::new();
        let everything = pages(&all, "verb=ListRecords&metadataPrefix=oai_dc", || ());
        everything.into_iter().for_each(|page| take(&mut whole, page.items()));
        // A record that stops matching leaves the set silently.
        copy.retain(|key, title| whole.get(key) == Some(title));
        whole.retain(|_, title| title.contains("green"));
        assert_eq!(copy, whole);
    }
}

#[test]
fn a_list_contains_a_repository_whose_change_the_index_does_not_know_yet() {
    let indexed = Indexed::new();
    for id in ["x", "y"] {
        indexed.mirror.describe(id, &["oai_dc"], &[]);
        let records = (0..4).map(|number| live(&format!("oai:{id}:{number}"), &[], "green"));
        indexed.mirror.commit(id, "oai_dc", records.collect(), true);
        indexed.mirror.pass_time(1);
    }
    indexed.follow();
    let [one, both] = [vec!["x".to_owned()], vec!["x".to_owned(), "y".to_owned()]];
    let harvest = |ids: &[String], from: Option<&str>| {
        let pages = pages(&indexed.all(ids, 3), &list("ListIdentifiers", from), || ());
        let items: Vec<Item> = pages.iter().flat_map(|page| page.items()).collect();
        let size = items.len() as u64;
        assert!(pages.iter().all(|page| page.summary.page.progress.1 == Some(size)), "{size}");
        let repositories: Vec<String> = items.into_iter().map(|item| item.set_specs[0].clone()).collect();
        (repositories, pages[0].summary.page.response_date.clone().expect("a date"))
    };
    assert_eq!(harvest(&one, None).0, ["x"; 4]);
    // The view gets another repository, and loses it again, before the index follows the mirror.
    indexed.mirror.pass_time(100);
    let (with_other, date) = harvest(&both, None);
    assert_eq!(with_other, [["x"; 4], ["y"; 4]].concat());
    assert_eq!(harvest(&both, Some(&date)).0, ["y"; 4], "{date}");
    indexed.mirror.pass_time(100);
    indexed.follow();
    assert_eq!(harvest(&both, Some(&date)).0, ["y"; 4], "they have the datestamp of the change");
}

#[test]
fn a_list_in_flight_waits_while_the_index_lacks_a_collection() {
    let indexed = Indexed::new();
    let ids = ["x", "y"].map(str::to_owned);
    let commit = |id: &str| {
        indexed.mirror.describe(id, &["oai_dc"], &[]);
        let records = (0..4).map(|number| live(&format!("oai:{id}:{number}"), &[], "green"));
        indexed.mirror.commit(id, "oai_dc", records.collect(), true);
        indexed.mirror.pass_time(1);
    };
    ids.iter().for_each(|id| commit(id));
    indexed.follow();
    let all = indexed.all(&ids, 3);
    let first = ask(&all, &list("ListIdentifiers", None));
    let token = first.summary.page.token.expect("8 records");
    let next = || ask_once(&all, &format!("verb=ListIdentifiers&resumptionToken={token}"));
    assert_eq!(next().failure, None);
    // The collection begins again, and the index does not contain all of it yet.
    indexed.mirror.forget("y");
    commit("y");
    let mirror = indexed.mirror.store().mirror;
    runtime().block_on(indexed.index.follow(&*mirror, None)).expect("a readable mirror");
    let failure = next().failure.expect("records may be missing");
    assert_eq!(failure.reason, Reason::SearchBusy, "{failure:?}");
    indexed.follow();
    assert_eq!(next().failure, None);
}
