//! Lists of chosen records: sets that the request chooses.

use crate::fixtures::mirror::{Mirror, ask_once, deleted, live, pages, runtime, source};
use async_trait::async_trait;
use oaimend_mirror::view::{
    AggregateRepository, AggregateSettings, ChosenSet, MirrorRepository, QuerySets, SelectedList,
    SelectedRecord, Selection, ViewOptions, ViewStores,
};
use oaimend_oai::UnixSecs;
use oaimend_repository::{Failure, Repository};
use oaimend_store::{ListFilter, ListQuery, MirrorStore, Position, StoredRecord};
use oaimend_test_support::envelope::Strictness;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

const START_SECS: i64 = 1_700_000_000;

/// The set `q:text` contains the records that contain the text, and lists it as of the time that it was read.
#[derive(Debug)]
struct Texts {
    store: Arc<dyn MirrorStore>,
    complete_until_secs: AtomicI64,
    /// The records that were read last, if changes of the mirror are not followed.
    outdated: OnceLock<Vec<StoredRecord>>,
}

/// The datestamp, the repository and the sequence of a record in a list.
type Place = (UnixSecs, String, u64);

#[derive(Debug)]
struct Text(Arc<Texts>, String);

#[derive(Debug)]
struct Sets(Arc<Texts>);

#[async_trait]
impl QuerySets for Sets {
    fn protocol(&self) -> (&'static str, &'static str) {
        ("texts", "1.0")
    }

    async fn find(&self, set: &str) -> Result<Option<ChosenSet>, Failure> {
        let Some(text) = set.strip_prefix("q:") else { return Ok(None) };
        if text == "bad" {
            return Ok(Some(Err("no query".to_owned())));
        }
        Ok(Some(Ok(Arc::new(Text(Arc::clone(&self.0), text.to_owned())))))
    }
}

impl Text {
    /// The records of a list, with their places.
    async fn listed(&self, list: &SelectedList) -> Result<Vec<(Place, SelectedRecord)>, Failure> {
        let (mut listed, count) = (Vec::new(), usize::MAX);
        for (repository, lowest_secs) in &list.repositories {
            let filter = ListFilter {
                repository: repository.clone(),
                prefix: list.prefix.clone(),
                ..ListFilter::default()
            };
            let query =
                ListQuery { filter, after: None, count_max: count, bytes_max: count, with_bytes: true };
            let records = match self.0.outdated.get() {
                Some(outdated) => outdated.clone(),
                None => self.0.store.list(query).await?.records,
            };
            for record in records {
                let secs = lowest_secs.unwrap_or(UnixSecs::MIN).max(record.stamp_secs);
                let is_listed =
                    Some(secs) >= list.from_secs && list.until_secs.is_none_or(|until| secs <= until);
                if is_listed && String::from_utf8_lossy(&record.bytes).contains(&self.1) {
                    let position = Position { secs: record.stamp_secs, sequence: record.sequence };
                    let (repository, identifier) = (repository.clone(), record.identifier);
                    listed.push((
                        (secs, repository.clone(), record.sequence),
                        SelectedRecord { repository, identifier, position },
                    ));
                }
            }
        }
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(listed)
    }
}

#[async_trait]
impl Selection for Text {
    async fn list(&self, list: &SelectedList, count_max: usize) -> Result<Vec<SelectedRecord>, Failure> {
        let rest =
            self.listed(list).await?.into_iter().filter(|(place, _)| Some(place) > list.after.as_ref());
        Ok(rest.map(|(_, record)| record).take(count_max).collect())
    }

    async fn count(&self, list: &SelectedList) -> Result<u64, Failure> {
        Ok(self.listed(list).await?.len() as u64)
    }

    async fn complete_until_secs(&self) -> Result<UnixSecs, Failure> {
        Ok(UnixSecs(self.0.complete_until_secs.load(Ordering::SeqCst)))
    }
}

/// Two repositories with 30 records each, of which every third has the word `green`; one record is deleted.
fn mirror() -> (Mirror, Arc<Texts>, ViewStores) {
    let mirror = Mirror::new(START_SECS);
    for id in ["x", "y"] {
        mirror.describe(id, &["oai_dc"], &[]);
        for first in [0, 10, 20] {
            let record = |number: usize| {
                let title = if number.is_multiple_of(3) { "green" } else { "red" };
                live(&format!("oai:{id}:{number}"), &[], title)
            };
            mirror.commit(id, "oai_dc", (first..first + 10).map(record).collect(), true);
            mirror.pass_time(100);
        }
    }
    mirror.commit("y", "oai_dc", vec![deleted("oai:y:3", &[])], true);
    mirror.pass_time(100);
    let store = Arc::clone(&mirror.stores().store);
    let texts =
        Arc::new(Texts { store, complete_until_secs: AtomicI64::new(i64::MAX), outdated: OnceLock::new() });
    let sets: Arc<dyn QuerySets> = Arc::new(Sets(Arc::clone(&texts)));
    let mut stores = mirror.stores();
    stores.query_sets = Some(sets);
    (mirror, texts, stores)
}

fn all(stores: &ViewStores) -> AggregateRepository {
    let options = ViewOptions { page_records_max: 4, ..ViewOptions::default() };
    let sources = vec![source("x"), source("y")];
    let settings = AggregateSettings { options, sources, ..AggregateSettings::default() };
    runtime().block_on(AggregateRepository::open(stores.clone(), || settings)).expect("a writable store")
}

fn one(stores: &ViewStores) -> MirrorRepository {
    let options = ViewOptions { page_records_max: 4, ..ViewOptions::default() };
    MirrorRepository::new(stores.clone(), options, source("x"))
}

/// The identifiers of a list; its pages are judged, and its size is right.
#[track_caller]
fn identifiers(view: &dyn Repository, query: &str) -> Vec<String> {
    let pages = pages(view, query, || {});
    let items: Vec<_> = pages.iter().flat_map(|page| page.items()).collect();
    for page in &pages {
        page.valid(Strictness::Schema);
        assert_eq!(page.summary.page.progress.1, Some(items.len() as u64), "{query}");
    }
    items.into_iter().map(|item| item.identifier).collect()
}

fn numbered(id: &str, numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("oai:{id}:{number}")).collect()
}

#[test]
fn a_chosen_set_contains_its_records_and_no_others() {
    let (_mirror, _, stores) = mirror();
    for verb in ["ListRecords", "ListIdentifiers"] {
        let query = format!("verb={verb}&metadataPrefix=oai_dc&set=q:green");
        assert_eq!(identifiers(&one(&stores), &query), numbered("x", (0..30).step_by(3)));
        let of_y = numbered("y", (0..30).step_by(3).filter(|number| *number != 3));
        assert_eq!(identifiers(&all(&stores), &query), [numbered("x", (0..30).step_by(3)), of_y].concat());
    }
    let from = "verb=ListRecords&metadataPrefix=oai_dc&set=q:green&from=2023-11-14T22:15:00Z";
    assert_eq!(identifiers(&one(&stores), from), numbered("x", [12, 15, 18, 21, 24, 27]));
    let until = format!("{from}&until=2023-11-14T22:15:30Z");
    assert_eq!(identifiers(&one(&stores), &until), numbered("x", [12, 15, 18]));
    let kind = |set: &str| {
        let query = format!("verb=ListRecords&metadataPrefix=oai_dc&set={set}");
        ask_once(&one(&stores), &query).kind()
    };
    assert_eq!(kind("q:bad"), "badArgument");
    assert_eq!(kind("q:blue"), "noRecordsMatch");
    assert_eq!(kind("blue"), "noSetHierarchy");
}

#[test]
fn a_list_ends_where_its_selection_is_complete() {
    let (mirror, texts, stores) = mirror();
    let query = "verb=ListRecords&metadataPrefix=oai_dc&set=q:green";
    texts.complete_until_secs.store(START_SECS + 150, Ordering::SeqCst);
    assert_eq!(identifiers(&one(&stores), query), numbered("x", (0..20).step_by(3)));
    let first = ask_once(&one(&stores), query);
    assert_eq!(first.summary.page.response_date.as_deref(), Some("2023-11-14T22:15:50Z"));
    assert!(mirror.now().as_str() > "2023-11-14T22:15:50Z");
}

#[test]
fn a_record_that_changed_since_it_was_chosen_is_in_no_list() {
    let (mirror, texts, stores) = mirror();
    let query = "verb=ListRecords&metadataPrefix=oai_dc&set=q:green";
    let filter = ListFilter { repository: "x".into(), prefix: "oai_dc".into(), ..ListFilter::default() };
    let whole = usize::MAX - 1;
    let whole = ListQuery { filter, after: None, count_max: whole, bytes_max: whole, with_bytes: true };
    let before = runtime().block_on(texts.store.list(whole)).expect("readable").records;
    texts.outdated.set(before).expect("once");
    let changed =
        [live("oai:x:12", &[], "green again"), live("oai:x:15", &[], "red"), deleted("oai:x:18", &[])];
    mirror.commit("x", "oai_dc", changed.into(), true);
    let items = pages(&one(&stores), query, || {}).into_iter().flat_map(|page| page.items());
    let found: Vec<_> = items.map(|item| item.identifier).collect();
    assert_eq!(found, numbered("x", [0, 3, 6, 9, 21, 24, 27]));
}
