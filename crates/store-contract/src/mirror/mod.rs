//! The contract of [`MirrorStore`](oaimend_store::MirrorStore). Each implementation runs all of it by
//! [`mirror_tests!`](crate::mirror_tests).

mod changes;
mod chosen;
pub mod fixtures;
mod model;

pub use changes::{
    changed_repositories_are_named, each_change_has_another_number,
    the_version_of_a_collection_changes_with_each_commit,
};
pub use chosen::{chosen_records_are_current, headers_of_several_records_come_in_the_order_of_the_request};
pub use model::a_store_behaves_like_the_model;
use oaimend_oai::UnixSecs;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use fixtures::{
    MirrorBackend, PREFIX, REPOSITORY, all_pages, commit, commit_to, deleted, everything, identifiers_in,
    record, whole,
};
use oaimend_rules::{KnownGaps, MissingItem, Sighting};
use oaimend_store::{
    Catalog, Committed, CompleteHarvest, Document, DuplicateProgress, Duplicates, Excerpt, HarvestNote,
    HarvestProgress, Identifier, ListFilter, ListOrder, ListQuery, ListSpan, ListedContent, ListedFormat,
    ListedSet, MirrorError, NewRecord, Occurrences, OpenList, PageCommit, Prefix, RecordRepair,
    RecordRepairs, RecordStatus, RepositoryId, RepositoryState, ScheduleState, SetMembers, StampMarks, Sweep,
    TimeSpan,
};

pub async fn a_page_and_its_progress_survive_a_restart(backend: &impl MirrorBackend) {
    let store = backend.open();
    let open_list = Some(OpenList {
        set: "a:b".to_owned(),
        window: TimeSpan { from_secs: Some(UnixSecs(5)), until_secs: None },
        next_token: Some("t1".to_owned()),
        cursor: 2,
        reaches: CompleteHarvest { from_secs: UnixSecs(99), lead_secs: -3 },
    });
    let mut gaps = KnownGaps::default();
    gaps.note(MissingItem::Named("c".to_owned()), Sighting::Listed(Some(5)), None);
    let mut occurrences = Occurrences { postponed: 1, ..Occurrences::default() };
    occurrences.set(0, ListedContent::Live(7), 2);
    let progress = HarvestProgress {
        open_list,
        sets_covered: vec!["a".to_owned()],
        missing: 2,
        gaps,
        sweep: Some(Sweep { at_secs: UnixSecs(7), held: 3, unconfirmed: 1 }),
        duplicates: Some(DuplicateProgress::default().next_harvest(Duplicates::Suffix, 5)),
        ..HarvestProgress::default()
    };
    let records = vec![record("b", 10, &["s"], "one"), record("a", 20, &[], "two")];
    let page = PageCommit {
        repository: REPOSITORY.0.to_owned(),
        prefix: PREFIX.0.to_owned(),
        stamp_secs: UnixSecs(100),
        records: records.clone(),
        occurrences: vec![("b".to_owned(), occurrences.clone())],
        progress: progress.clone(),
    };
    let committed = store.commit(page).await.expect("the commit is in order");
    assert_eq!(committed, Committed { stored: 2, added: 2, revision: 1, ..Committed::default() });
    store.close();
    drop(store);
    let store = backend.open();
    let stored = store.progress(REPOSITORY, PREFIX).await.expect("readable");
    assert_eq!(stored, HarvestProgress { revision: 1, ..progress });
    let identifiers = ["a", "b"].map(str::to_owned);
    let found = store.occurrences(REPOSITORY, PREFIX, &identifiers).await.expect("readable");
    assert_eq!(found, [Occurrences::default(), occurrences]);
    let of_other = store.occurrences(REPOSITORY, Prefix("marcxml"), &identifiers).await.expect("readable");
    assert_eq!(of_other, vec![Occurrences::default(); 2]);
    let (listed, _) = all_pages(&*store, whole(everything())).await;
    for (listed, record) in listed.iter().zip(&records) {
        assert_eq!(listed.identifier, record.identifier);
        assert_eq!((listed.stamp_secs, listed.datestamp_secs), (UnixSecs(100), record.datestamp_secs));
        assert_eq!((&listed.bytes, &listed.set_specs), (&record.bytes, &record.set_specs.as_slice().into()));
        assert_eq!(listed.status, RecordStatus::Live);
        let found = store.record(REPOSITORY, PREFIX, Identifier(&record.identifier)).await.expect("readable");
        assert_eq!(found.as_ref(), Some(listed));
    }
    assert_eq!(listed.len(), 2);
    assert_eq!(store.repositories().await.expect("readable"), [REPOSITORY.0]);
}

pub async fn an_unchanged_record_keeps_its_stamp(backend: &impl MirrorBackend) {
    let store = backend.open();
    commit(&*store, 100, vec![record("a", 1, &["s"], "one"), record("b", 1, &["s"], "two")]).await;
    let again = vec![record("a", 1, &["s"], "one"), record("b", 1, &["s"], "three")];
    let committed = commit(&*store, 200, again).await;
    assert_eq!((committed.unchanged, committed.stored), (1, 1));
    let other_sets = commit(&*store, 300, vec![record("a", 1, &["t"], "one")]).await;
    assert_eq!((other_sets.unchanged, other_sets.stored), (0, 1), "its sets have changed");
    let (listed, _) = all_pages(&*store, whole(everything())).await;
    let stamps: Vec<_> =
        listed.iter().map(|record| (record.identifier.as_str(), record.stamp_secs)).collect();
    assert_eq!(stamps, [("b", UnixSecs(200)), ("a", UnixSecs(300))]);
    assert_eq!(store.count(everything()).await.expect("readable"), 2);
    // A record after a new one is searched in another way.
    let page = vec![record("c", 1, &[], "new"), record("b", 1, &["s"], "three"), record("d", 1, &[], "new")];
    let committed = commit(&*store, 400, page).await;
    assert_eq!((committed.unchanged, committed.stored), (1, 2));
    let found = store.record(REPOSITORY, PREFIX, Identifier("b")).await.expect("readable").expect("stored");
    assert_eq!((found.identifier.as_str(), found.stamp_secs), ("b", UnixSecs(200)));
}

pub async fn a_new_datestamp_alone_keeps_the_stamp(backend: &impl MirrorBackend) {
    let store = backend.open();
    let filter = ListFilter { by: ListOrder::Datestamp, from_secs: Some(UnixSecs(50)), ..everything() };
    commit(&*store, 100, vec![record("a", 10, &[], "one"), record("b", 20, &[], "two")]).await;
    assert_eq!(store.count(filter.clone()).await.expect("readable"), 0);
    let committed = commit(&*store, 200, vec![record("a", 60, &[], "one")]).await;
    assert_eq!((committed.touched, committed.stored), (1, 0));
    assert_eq!(identifiers_in(&*store, filter.clone()).await, ["a"]);
    let found =
        store.record(REPOSITORY, PREFIX, Identifier("a")).await.expect("readable").expect("it is stored");
    assert_eq!((found.datestamp_secs, found.stamp_secs), (UnixSecs(60), UnixSecs(100)));
    assert_eq!(identifiers_in(&*store, everything()).await, ["a", "b"]);
    store.compact(REPOSITORY).await.expect("writable");
    commit(&*store, 300, vec![record("a", 5, &[], "one")]).await;
    assert_eq!(store.count(filter).await.expect("readable"), 0);
    let found =
        store.record(REPOSITORY, PREFIX, Identifier("a")).await.expect("readable").expect("it is stored");
    assert_eq!((found.datestamp_secs, found.stamp_secs), (UnixSecs(5), UnixSecs(100)));
}

pub async fn a_deleted_record_stays_as_a_tombstone(backend: &impl MirrorBackend) {
    let store = backend.open();
    commit(&*store, 100, vec![record("a", 1, &["s"], "one"), deleted("never-seen", 1, &[])]).await;
    let committed = commit(&*store, 200, vec![deleted("a", 2, &["s"])]).await;
    assert_eq!((committed.deleted, committed.stored, committed.added), (1, 0, 0));
    let found =
        store.record(REPOSITORY, PREFIX, Identifier("a")).await.expect("readable").expect("a tombstone");
    assert_eq!((found.status, found.stamp_secs), (RecordStatus::Deleted, UnixSecs(200)));
    assert_eq!(store.count(everything()).await.expect("readable"), 2, "lists contain tombstones");
    let sizes = store.collections(REPOSITORY).await.expect("readable");
    assert_eq!((sizes[0].records, sizes[0].tombstones), (0, 2));
    store.compact(REPOSITORY).await.expect("writable");
    assert_eq!(identifiers_in(&*store, everything()).await, ["never-seen", "a"]);
    let committed = commit(&*store, 300, vec![record("a", 1, &["s"], "one")]).await;
    assert_eq!(committed.stored, 1, "a record that returns has a new stamp");
    let sizes = store.collections(REPOSITORY).await.expect("readable");
    assert_eq!((sizes[0].records, sizes[0].tombstones), (1, 1));
    assert_eq!(
        (sizes[0].earliest_stamp_secs, sizes[0].latest_stamp_secs),
        (Some(UnixSecs(100)), Some(UnixSecs(300)))
    );
}

pub async fn the_last_record_of_a_page_counts(backend: &impl MirrorBackend) {
    let store = backend.open();
    let page = vec![record("a", 1, &[], "old"), record("b", 1, &[], "b"), record("a", 2, &[], "new")];
    let committed = commit(&*store, 100, page).await;
    assert_eq!(committed.stored, 2);
    assert_eq!(identifiers_in(&*store, everything()).await, ["b", "a"]);
    let found =
        store.record(REPOSITORY, PREFIX, Identifier("a")).await.expect("readable").expect("it is stored");
    assert_eq!(found.bytes, record("a", 2, &[], "new").bytes);
}

pub async fn a_stale_progress_stores_nothing(backend: &impl MirrorBackend) {
    let store = backend.open();
    commit(&*store, 100, vec![record("a", 1, &[], "one")]).await;
    let stale = PageCommit {
        repository: REPOSITORY.0.to_owned(),
        prefix: PREFIX.0.to_owned(),
        stamp_secs: UnixSecs(200),
        records: vec![record("b", 1, &[], "two")],
        ..PageCommit::default()
    };
    let result = store.commit(stale.clone()).await;
    assert!(matches!(result, Err(MirrorError::Conflict)), "{result:?}");
    assert_eq!(identifiers_in(&*store, everything()).await, ["a"]);
    let progress = HarvestProgress { revision: 1, ..HarvestProgress::default() };
    let committed = store.commit(PageCommit { progress, ..stale }).await.expect("the revision is right");
    assert_eq!(committed.revision, 2);
}

pub async fn a_stamp_below_the_last_one_stores_nothing(backend: &impl MirrorBackend) {
    let store = backend.open();
    commit(&*store, 100, vec![record("a", 1, &[], "one")]).await;
    let page = || vec![record("b", 1, &[], "two")];
    let result = commit_to(&*store, (REPOSITORY.0, PREFIX.0), 99, page()).await;
    assert!(
        matches!(
            result,
            Err(MirrorError::StampTooLow { stamp_secs: UnixSecs(99), last_secs: UnixSecs(100) })
        ),
        "{result:?}"
    );
    assert_eq!(identifiers_in(&*store, everything()).await, ["a"]);
    assert_eq!(store.progress(REPOSITORY, PREFIX).await.expect("readable").revision, 1);
    commit_to(&*store, (REPOSITORY.0, "other"), 99, page()).await.expect("another collection");
    commit(&*store, 100, page()).await;
    assert_eq!(identifiers_in(&*store, everything()).await, ["a", "b"]);
}

pub async fn a_reservation_never_sinks(backend: &impl MirrorBackend) {
    let store = backend.open();
    assert_eq!(store.stamp_marks().await.expect("readable"), StampMarks::default());
    store.reserve_stamps(UnixSecs(150)).await.expect("writable");
    store.reserve_stamps(UnixSecs(120)).await.expect("writable");
    commit_to(&*store, ("y", PREFIX.0), 110, vec![record("a", 1, &[], "one")]).await.expect("legal");
    commit(&*store, 100, vec![record("a", 1, &[], "one")]).await;
    store.close();
    let marks = StampMarks { highest_secs: Some(UnixSecs(110)), reserved_secs: Some(UnixSecs(150)) };
    assert_eq!(backend.open().stamp_marks().await.expect("readable"), marks);
}

pub async fn a_set_contains_its_subsets(backend: &impl MirrorBackend) {
    let store = backend.open();
    let page = vec![
        record("1", 1, &["a:b:c"], ""),
        record("2", 1, &["a", "d"], ""),
        record("3", 1, &["ab"], ""),
        record("4", 1, &["a:b", "a:x"], ""),
        record("5", 1, &[], ""),
    ];
    commit(&*store, 100, page).await;
    let expected: [(&str, &[&str]); 8] = [
        ("a", &["1", "2", "4"]),
        ("a:b", &["1", "4"]),
        ("a:b:c", &["1"]),
        ("a:x", &["4"]),
        ("ab", &["3"]),
        ("b", &[]),
        ("d", &["2"]),
        ("a:", &[]),
    ];
    for (set, identifiers) in expected {
        for by in [ListOrder::Stamp, ListOrder::Datestamp] {
            let filter = ListFilter { set: Some(set.to_owned()), by, ..everything() };
            assert_eq!(
                store.count(filter.clone()).await.expect("readable"),
                identifiers.len() as u64,
                "{set}"
            );
            assert_eq!(identifiers_in(&*store, filter).await, identifiers, "{set} {by:?}");
        }
    }
    let sets = store.sets_in_use(REPOSITORY).await.expect("readable");
    assert_eq!(sets, ["a", "a:b", "a:b:c", "a:x", "ab", "d"]);
    commit(&*store, 200, vec![record("1", 1, &["d"], "")]).await;
    let filter = ListFilter { set: Some("a:b".to_owned()), ..everything() };
    assert_eq!(identifiers_in(&*store, filter).await, ["4"]);
}

/// The first records change with each page, and the others are new.
pub async fn pages_of_any_length_are_in_their_sets(backend: &impl MirrorBackend) {
    let store = backend.open();
    let sets_of = |number: usize| -> &[&str] {
        match number % 5 {
            0 => &["a:b"],
            1 => &["a", "c"],
            2 => &[],
            _ => &["c"],
        }
    };
    let (mut stored, mut stamp_secs) = (0, 100);
    for length in [1, 62, 1, 300, 64, 1000, 333] {
        let changed = 0..stored.min(50);
        let numbers = changed.chain(stored..stored + length);
        let records =
            numbers.map(|number| record(&number.to_string(), 1, sets_of(number), &stamp_secs.to_string()));
        commit(&*store, stamp_secs, records.collect()).await;
        (stored, stamp_secs) = (stored + length, stamp_secs + 1);
        for (set, of_set) in [(None, "01234"), (Some("a"), "01"), (Some("a:b"), "0"), (Some("c"), "134")] {
            let filter = ListFilter { set: set.map(str::to_owned), ..everything() };
            let is_in_set = |number: &usize| of_set.contains(&(number % 5).to_string());
            let mut listed: Vec<usize> = Vec::new();
            for identifier in identifiers_in(&*store, filter.clone()).await {
                listed.push(identifier.parse().expect("a number"));
            }
            listed.sort_unstable();
            let expected: Vec<usize> = (0..stored).filter(is_in_set).collect();
            assert_eq!(listed, expected, "set {set:?} of {stored} records");
            assert_eq!(store.count(filter).await.expect("readable"), expected.len() as u64, "set {set:?}");
        }
    }
}

pub async fn bounds_are_included(backend: &impl MirrorBackend) {
    let store = backend.open();
    for (number, stamp_secs) in [100, 100, 200, 300].into_iter().enumerate() {
        let identifier = number.to_string();
        commit(&*store, stamp_secs, vec![record(&identifier, 1000 - stamp_secs, &[], "")]).await;
    }
    for (from_secs, until_secs, by_stamp, by_datestamp) in [
        (None, None, "0123", "3201"),
        (Some(100), Some(100), "01", ""),
        (Some(101), Some(299), "2", ""),
        (Some(200), None, "23", "3201"),
        (None, Some(199), "01", ""),
        (Some(301), None, "", "3201"),
        (Some(700), Some(800), "", "32"),
        (Some(801), Some(i64::MAX), "", "01"),
        (Some(300), Some(100), "", ""),
        (Some(i64::MIN), Some(i64::MAX), "0123", "3201"),
    ] {
        for (by, expected) in [(ListOrder::Stamp, by_stamp), (ListOrder::Datestamp, by_datestamp)] {
            let filter = ListFilter {
                by,
                from_secs: from_secs.map(UnixSecs),
                until_secs: until_secs.map(UnixSecs),
                ..everything()
            };
            let count = store.count(filter.clone()).await.expect("readable");
            assert_eq!(
                identifiers_in(&*store, filter).await.concat(),
                expected,
                "{from_secs:?} {until_secs:?}"
            );
            assert_eq!(count, expected.len() as u64);
        }
    }
}

pub async fn records_are_counted_by_sequence(backend: &impl MirrorBackend) {
    let store = backend.open();
    let step = |step| NonZeroU64::new(step).expect("above zero");
    let counts = async |filter, by| store.count_by_sequence(filter, step(by)).await.expect("readable");
    assert_eq!(counts(everything(), 10).await, []);
    // Sequences 0 to 24, of which 5 to 9 are deleted ones.
    let records = (0..20).map(|number| record(&format!("{number:02}"), 1, &["a:b"], "")).collect();
    commit(&*store, 100, records).await;
    let changed = (0..5).map(|number| deleted(&format!("{number:02}"), 1, &["a:b"])).collect();
    commit(&*store, 200, changed).await;
    let live = ListFilter { live_only: true, ..everything() };
    let of_set = ListFilter { set: Some("a".to_owned()), ..live.clone() };
    assert_eq!(counts(everything(), 10).await, [(0, 5), (10, 10), (20, 5)]);
    for filter in [&live, &of_set] {
        assert_eq!(counts(filter.clone(), 10).await, [(0, 5), (10, 10), (20, 0)]);
        assert_eq!(counts(filter.clone(), 1_000).await, [(0, 15)]);
        for (sequences, expected) in [(0..10, 5), (5..6, 1), (7..18, 11), (15..1_000, 5), (20..25, 0)] {
            let filter = ListFilter { sequences: Some(sequences.clone()), ..filter.clone() };
            assert_eq!(store.count(filter.clone()).await.expect("readable"), expected, "{sequences:?}");
            assert_eq!(identifiers_in(&*store, filter).await.len() as u64, expected, "{sequences:?}");
        }
    }
    let early = ListFilter { until_secs: Some(UnixSecs(150)), ..live.clone() };
    assert_eq!(counts(early, 10).await, [(0, 5), (10, 10)]);
    let late = ListFilter { from_secs: Some(UnixSecs(150)), ..live.clone() };
    assert_eq!(counts(late, 10).await, [(20, 0)], "the records are deleted, the range is known");
    let unknown = ListFilter { sequences: Some(30..40), ..live.clone() };
    assert_eq!(counts(unknown, 10).await, []);
    let other_set = ListFilter { set: Some("c".to_owned()), ..live.clone() };
    assert_eq!(counts(other_set, 10).await, []);
    // A deleted record comes back.
    commit(&*store, 300, vec![record("00", 1, &["a:b"], "")]).await;
    assert_eq!(counts(of_set, 10).await, [(0, 5), (10, 10), (20, 1)]);
    let by_datestamp = ListFilter { by: ListOrder::Datestamp, sequences: Some(18..26), ..live };
    assert_eq!(identifiers_in(&*store, by_datestamp.clone()).await, ["18", "19", "00"]);
    assert_eq!(store.count(by_datestamp).await.expect("readable"), 3);
}

pub async fn a_page_has_at_least_one_record(backend: &impl MirrorBackend) {
    let store = backend.open();
    let names = ["a", "b", "c", "d"];
    commit(&*store, 100, names.map(|name| record(name, 1, &[], &"x".repeat(500))).into()).await;
    let size = record("a", 1, &[], &"x".repeat(500)).bytes.len();
    for (bytes_max, count_max, expected) in [
        (0, 10, 1),
        (size, 10, 1),
        (2 * size - 1, 10, 1),
        (2 * size, 10, 2),
        (10 * size, 3, 3),
        (10 * size, 0, 1),
        (10 * size, 4, 4),
    ] {
        let query = ListQuery { bytes_max, count_max, ..whole(everything()) };
        let page = store.list(query.clone()).await.expect("readable");
        assert_eq!(page.records.len(), expected, "{bytes_max} {count_max}");
        assert_eq!(page.next.is_some(), expected < names.len(), "{bytes_max} {count_max}");
        let query = ListQuery { count_max: count_max.max(1), ..query };
        let (records, _) = all_pages(&*store, query).await;
        assert_eq!(records.iter().map(|record| record.identifier.as_str()).collect::<Vec<_>>(), names);
    }
}

pub async fn headers_come_without_bytes(backend: &impl MirrorBackend) {
    let store = backend.open();
    commit(&*store, 100, vec![record("a", 7, &["s"], "one"), deleted("b", 8, &[])]).await;
    let query = ListQuery { with_bytes: false, ..whole(everything()) };
    let (records, damaged) = all_pages(&*store, query).await;
    assert!(records.iter().all(|record| record.bytes.is_empty()) && damaged == 0);
    assert_eq!((records[0].datestamp_secs, records[0].set_specs.concat()), (UnixSecs(7), "s".to_owned()));
    assert_eq!(records[1].status, RecordStatus::Deleted);
}

pub async fn identifiers_come_in_order(backend: &impl MirrorBackend) {
    let store = backend.open();
    let mut expected = ["oai:x:10", "oai:x:9", "oai:x:é", "oai:x", "oai:x:1", "z"];
    commit(&*store, 100, expected.map(|identifier| record(identifier, 3, &[], "")).into()).await;
    commit_to(&*store, (REPOSITORY.0, "other"), 100, vec![record("oai:x:5", 3, &[], "")])
        .await
        .expect("legal");
    commit(&*store, 200, vec![deleted("oai:x:9", 4, &[])]).await;
    expected.sort_unstable();
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let some = store
            .identifiers(REPOSITORY, PREFIX, after.as_deref().map(Identifier), 2)
            .await
            .expect("readable");
        assert!(some.len() <= 2);
        let Some(last) = some.last() else { break };
        after = Some(last.identifier.clone());
        found.extend(some);
    }
    assert_eq!(found.iter().map(|entry| entry.identifier.as_str()).collect::<Vec<_>>(), expected);
    let nine = found.iter().find(|entry| entry.identifier == "oai:x:9").expect("it is stored");
    assert_eq!((nine.status, nine.datestamp_secs), (RecordStatus::Deleted, UnixSecs(4)));
}

pub async fn an_item_has_formats(backend: &impl MirrorBackend) {
    let store = backend.open();
    commit(&*store, 100, vec![record("a", 1, &[], "dc")]).await;
    let marc = (REPOSITORY.0, "marcxml");
    commit_to(&*store, marc, 100, vec![deleted("a", 1, &[]), record("b", 1, &[], "")]).await.expect("legal");
    commit_to(&*store, ("y", PREFIX.0), 100, vec![record("b", 1, &[], "")]).await.expect("legal");
    let formats = store.formats_of_item(REPOSITORY, Identifier("a")).await.expect("readable");
    let expected = [("marcxml".to_owned(), RecordStatus::Deleted), (PREFIX.0.to_owned(), RecordStatus::Live)];
    assert_eq!(formats, expected);
    let formats = store.formats_of_item(REPOSITORY, Identifier("b")).await.expect("readable");
    assert_eq!(formats, [("marcxml".to_owned(), RecordStatus::Live)]);
    assert_eq!(store.formats_of_item(REPOSITORY, Identifier("c")).await.expect("readable"), []);
    let names = ["c", "b", "a", "b"].map(str::to_owned);
    let mut each = Vec::new();
    for name in &names {
        each.push(store.formats_of_item(REPOSITORY, Identifier(name)).await.expect("readable"));
    }
    assert_eq!(store.formats_of_items(REPOSITORY, &names).await.expect("readable"), each);
    let prefixes = store.collections(REPOSITORY).await.expect("readable");
    assert_eq!(prefixes.iter().map(|size| size.prefix.as_str()).collect::<Vec<_>>(), ["marcxml", PREFIX.0]);
}

pub async fn repairs_are_kept_with_the_current_version_of_a_record(backend: &impl MirrorBackend) {
    let repairs = |text: &str| {
        let (before, after) = (Excerpt::new(b"\xe9&"), Excerpt::new(text.as_bytes()));
        RecordRepairs::new([RecordRepair { name: "broken-utf8".to_owned(), before, after }].into_iter())
    };
    let repaired = |text: &str| NewRecord { repairs: repairs("é"), ..record("a", 10, &[], text) };
    let store = backend.open();
    let of = async |identifier: &str| {
        store.repairs(REPOSITORY, PREFIX, Identifier(identifier)).await.expect("readable")
    };
    assert_eq!(of("a").await, RecordRepairs::default());
    commit(&*store, 100, vec![repaired("one"), record("b", 10, &[], "two")]).await;
    assert_eq!((of("a").await, of("b").await), (repairs("é"), RecordRepairs::default()));
    assert_eq!(of("a").await.first[0].before.start, b"\xe9&");
    // The record is the same, and its source sends it with another fault.
    let other = NewRecord { repairs: repairs("É"), ..record("a", 10, &[], "one") };
    assert_eq!(commit(&*store, 101, vec![other]).await.unchanged, 1);
    assert_eq!(of("a").await, repairs("É"));
    // The source mended it.
    assert_eq!(commit(&*store, 102, vec![record("a", 10, &[], "one")]).await.unchanged, 1);
    assert_eq!(of("a").await, RecordRepairs::default());
    commit(&*store, 103, vec![repaired("three")]).await;
    commit(&*store, 104, vec![deleted("a", 11, &[])]).await;
    assert_eq!(of("a").await, RecordRepairs::default());
    commit(&*store, 105, vec![repaired("four")]).await;
    store.close();
    let store = backend.open();
    let found = store.repairs(REPOSITORY, PREFIX, Identifier("a")).await.expect("readable");
    assert_eq!(found, repairs("é"));
    store.forget(REPOSITORY).await.expect("the repository is removed");
    assert_eq!(
        store.repairs(REPOSITORY, PREFIX, Identifier("a")).await.expect("readable"),
        RecordRepairs::default()
    );
    store.close();
}

pub async fn small_states_are_kept(backend: &impl MirrorBackend) {
    let store = backend.open();
    let catalog = Catalog {
        formats: vec![ListedFormat {
            prefix: PREFIX.0.to_owned(),
            schema: "http://www.openarchives.org/OAI/2.0/oai_dc.xsd".to_owned(),
            namespace: "http://www.openarchives.org/OAI/2.0/oai_dc/".to_owned(),
        }],
        sets: vec![ListedSet { set_spec: "a:b".to_owned(), name: "Ä & B".to_owned() }],
        headers_are_whole: true,
        set_members: BTreeMap::from([(
            PREFIX.0.to_owned(),
            SetMembers {
                is_harvested: true,
                known: BTreeMap::from([(
                    "a".to_owned(),
                    CompleteHarvest { from_secs: UnixSecs(7), lead_secs: -1 },
                )]),
                has_records_without_sets: true,
                unrequested: BTreeSet::from(["d".to_owned()]),
                unknown: BTreeSet::from(["a:b".to_owned()]),
                outdated: BTreeSet::from(["c".to_owned()]),
                next_sequence: 9,
                requested_at_secs: UnixSecs(8),
            },
        )]),
    };
    let state = RepositoryState {
        honours_windows: Some(true),
        stamp_spans: vec![ListSpan { state_secs: UnixSecs(10), until_secs: UnixSecs(20) }],
        last_harvest: Some(HarvestNote {
            began_secs: UnixSecs(5),
            ended_secs: UnixSecs(6),
            stored: 7,
            deleted: 8,
            surplus_sets: 9,
            duplicates: 10,
            repetitions: 11,
            errors: vec!["oai_dc: no".to_owned()],
        }),
        last_success_secs: Some(UnixSecs(4)),
        schedule: ScheduleState {
            updates_per_sec: Some(0.25),
            total_elements: Some(7),
            failures: 2,
            changed: 3,
            added: 4,
        },
        ..RepositoryState::default()
    };
    store.save_catalog(REPOSITORY, catalog.clone()).await.expect("writable");
    assert_eq!(store.save_repository_state(REPOSITORY, state.clone()).await.expect("writable"), 1);
    let stale = store.save_repository_state(REPOSITORY, state.clone()).await;
    assert!(matches!(stale, Err(MirrorError::Conflict)), "{stale:?}");
    store.save_document(REPOSITORY, Document::Identify, "old".into()).await.expect("writable");
    store.save_document(REPOSITORY, Document::Identify, "new".into()).await.expect("writable");
    store.close();
    let store = backend.open();
    assert_eq!(store.catalog(REPOSITORY).await.expect("readable"), catalog);
    let stored = store.repository_state(REPOSITORY).await.expect("readable");
    assert_eq!(stored, RepositoryState { revision: 1, ..state });
    let document = |document| store.document(REPOSITORY, document);
    assert_eq!(document(Document::Identify).await.expect("readable").as_deref(), Some(b"new".as_slice()));
    assert_eq!(document(Document::ListSets).await.expect("readable"), None);
}

pub async fn a_repository_is_forgotten_alone(backend: &impl MirrorBackend) {
    let store = backend.open();
    for repository in ["w", REPOSITORY.0, "y"] {
        for prefix in [PREFIX.0, "marcxml"] {
            let page = vec![record("a", 1, &["s"], repository), deleted("b", 1, &[])];
            commit_to(&*store, (repository, prefix), 100, page).await.expect("legal");
        }
        store
            .save_document(RepositoryId(repository), Document::Identify, "text".into())
            .await
            .expect("writable");
    }
    assert_eq!(store.removals().await.expect("readable"), 0);
    store.forget(REPOSITORY).await.expect("writable");
    store.forget(RepositoryId("unknown")).await.expect("nothing to do");
    assert_eq!(store.removals().await.expect("readable"), 1);
    assert_eq!(store.repositories().await.expect("readable"), ["w", "y"]);
    assert_eq!(identifiers_in(&*store, everything()).await, [""; 0]);
    assert_eq!(store.document(REPOSITORY, Document::Identify).await.expect("readable"), None);
    assert_eq!(store.progress(REPOSITORY, PREFIX).await.expect("readable").revision, 0);
    for repository in ["w", "y"] {
        let filter = ListFilter { repository: repository.to_owned(), ..everything() };
        assert_eq!(identifiers_in(&*store, filter).await, ["a", "b"]);
        assert!(
            store.document(RepositoryId(repository), Document::Identify).await.expect("readable").is_some()
        );
    }
    let committed = commit(&*store, 100, vec![record("a", 1, &["t"], REPOSITORY.0)]).await;
    assert_eq!(committed.stored, 1, "nothing is remembered");
    let found = store.occurrences(REPOSITORY, PREFIX, &["a".to_owned()]).await.expect("readable");
    assert_eq!(found, [Occurrences::default()]);
    assert_eq!(store.sets_in_use(REPOSITORY).await.expect("readable"), ["t"]);
}

pub async fn a_closed_store_refuses(backend: &impl MirrorBackend) {
    let store = backend.open();
    commit(&*store, 100, vec![record("a", 1, &[], "")]).await;
    store.close();
    store.close();
    assert!(matches!(store.list(whole(everything())).await, Err(MirrorError::Closed)));
    let page = vec![record("b", 1, &[], "")];
    assert!(matches!(commit_to(&*store, ("y", PREFIX.0), 100, page).await, Err(MirrorError::Closed)));
    let next = backend.open();
    assert_eq!(identifiers_in(&*next, everything()).await, ["a"]);
}

pub async fn an_unknown_repository_is_empty(backend: &impl MirrorBackend) {
    let store = backend.open();
    for _ in 0..2 {
        assert_eq!(store.count(everything()).await.expect("readable"), 0);
        assert_eq!(store.record(REPOSITORY, PREFIX, Identifier("a")).await.expect("readable"), None);
        assert_eq!(store.list(whole(everything())).await.expect("readable").next, None);
        assert_eq!(store.compact(REPOSITORY).await.expect("nothing to do"), 0);
        assert_eq!(store.verify(REPOSITORY).await.expect("nothing to do").records, 0);
        assert_eq!(store.catalog(REPOSITORY).await.expect("readable"), Catalog::default());
        // A store with another repository.
        commit_to(&*store, ("other", PREFIX.0), 100, vec![record("a", 1, &[], "")]).await.expect("legal");
    }
}
