//! Lists that contain an identifier twice: which records the mirror stores, after any interruption.

mod random;
mod source;

use oaimend_store::{Duplicates, OCCURRENCES_MAX};
use source::{Fault, Listed, Mirror, START_SECS, deleted, live};
use std::collections::BTreeMap;

/// A time before the first harvest.
const OLD_SECS: i64 = START_SECS - 1_000_000;

fn content<const N: usize>(records: [(&str, &str); N]) -> BTreeMap<String, String> {
    records.into_iter().map(|(identifier, title)| (identifier.to_owned(), title.to_owned())).collect()
}

/// Two records with one identifier, the newer one first, with another record between them and a repetition of the first.
fn twice() -> Vec<Listed> {
    vec![
        live("x", OLD_SECS + 9, "newer"),
        live("y", OLD_SECS, "other"),
        live("z", OLD_SECS, "third"),
        live("x", OLD_SECS, "older"),
        live("x", OLD_SECS + 9, "newer"),
    ]
}

#[tokio::test]
async fn each_rule_chooses_its_records_and_the_harvest_counts_them() {
    let others = [("y", "other"), ("z", "third")];
    for (policy, expected) in [
        (Duplicates::Newest, vec![("x", "newer")]),
        (Duplicates::First, vec![("x", "newer")]),
        (Duplicates::Suffix, vec![("x", "newer"), ("x#2", "older")]),
    ] {
        let mirror = Mirror::new(policy, twice());
        let expected =
            expected.into_iter().chain(others).map(|(id, title)| (id.to_owned(), title.to_owned()));
        let expected: BTreeMap<String, String> = expected.collect();
        for harvest in 0..3 {
            let summary = mirror.harvest().await;
            assert!(summary.is_success(), "{policy:?}: {summary:?}");
            assert_eq!(mirror.content().await, expected, "{policy:?}");
            let counts = (summary.duplicates.duplicates, summary.duplicates.repetitions);
            // Later harvests request the changes only, unless the rule needs whole lists.
            let is_whole = harvest == 0 || policy != Duplicates::Newest;
            assert_eq!(counts, if is_whole { (1, 1) } else { (0, 0) }, "{policy:?} {harvest}");
            assert_eq!(summary.describe().contains("1 duplicates"), is_whole, "{}", summary.describe());
            assert!(mirror.is_equal_to_source().await, "{policy:?}");
        }
    }
}

#[tokio::test]
async fn a_page_that_comes_again_is_no_duplicate() {
    for policy in Duplicates::ALL.iter().copied() {
        for fault in [Fault::Half, Fault::Forgotten, Fault::Kill] {
            for page in 1..=3 {
                let mirror = Mirror::new(policy, twice());
                mirror.source.lists().page_len = 2;
                mirror.source.lists().faults.insert(page, fault);
                let summary = mirror.harvest().await;
                let counts = (summary.duplicates.duplicates, summary.duplicates.repetitions);
                assert_eq!(counts, (1, 1), "{policy:?} {fault:?} at page {page}");
            }
        }
    }
}

#[tokio::test]
async fn a_record_that_changes_during_the_harvest_is_one_record() {
    for policy in Duplicates::ALL.iter().copied() {
        let before =
            vec![live("x", OLD_SECS, "old"), live("a", 1, "1"), live("b", 1, "2"), live("c", 1, "3")];
        let mirror = Mirror::new(policy, before.clone());
        let mut after = before;
        after.rotate_left(1);
        after.insert(0, live("0", 1, "0"));
        after[4] = live("x", START_SECS + 1, "new");
        mirror.source.lists().change_before = Some((2, after));
        let first = mirror.harvest().await;
        assert!(first.is_success(), "{policy:?} {first:?}");
        assert!(!mirror.content().await.contains_key("x#2"), "{policy:?}");
        mirror.harvest().await;
        let content = mirror.content().await;
        assert_eq!((content["x"].as_str(), content.len()), ("new", 5), "{policy:?}");
    }
}

#[tokio::test]
async fn duplicates_that_always_have_the_current_date_get_their_suffix_with_the_second_harvest() {
    let mirror = Mirror::new(Duplicates::Suffix, Vec::new());
    mirror.source.lists().page_len = 1;
    for harvest in 0..3 {
        let now_secs = mirror.clock.secs() + 5;
        mirror.source.lists().records = vec![live("x", now_secs, "one"), live("x", now_secs, "two")];
        assert_eq!(mirror.harvest().await.duplicates.duplicates, 1);
        let expected =
            if harvest == 0 { content([("x", "one")]) } else { content([("x", "one"), ("x#2", "two")]) };
        assert_eq!(mirror.content().await, expected);
    }
}

#[tokio::test]
async fn a_suffix_that_is_not_listed_twice_is_deleted() {
    let mirror = Mirror::new(Duplicates::Suffix, twice());
    mirror.harvest().await;
    mirror.source.lists().records.remove(3);
    mirror.harvest().await;
    assert!(mirror.content().await.contains_key("x#2"), "a list can lose a record by accident");
    let summary = mirror.harvest().await;
    assert_eq!((summary.counts.deleted, mirror.content().await.len()), (1, 3));
    // The identifier without a suffix exists as long as the source has it.
    mirror.source.lists().records = twice();
    mirror.harvest().await;
    mirror.source.lists().records = vec![live("x", OLD_SECS, "older"), live("y", OLD_SECS, "other")];
    for _ in 0..2 {
        mirror.harvest().await;
    }
    assert_eq!(mirror.content().await, content([("x", "older"), ("y", "other")]));
    mirror.source.lists().records.remove(0);
    mirror.harvest().await;
    assert_eq!(mirror.content().await, content([("y", "other")]), "the source does not know it any more");
}

#[tokio::test]
async fn a_deleted_record_hides_no_live_one_with_its_identifier() {
    for policy in [Duplicates::First, Duplicates::Suffix] {
        let records = vec![deleted("x", OLD_SECS), live("x", OLD_SECS, "a"), deleted("x", OLD_SECS + 9)];
        let mirror = Mirror::new(policy, records);
        mirror.harvest().await;
        assert_eq!(mirror.content().await, content([("x", "a")]), "{policy:?}");
        mirror.source.lists().records.remove(1);
        mirror.harvest().await;
        assert_eq!(mirror.content().await, content([]), "{policy:?}");
    }
}

#[tokio::test]
async fn an_identifier_of_the_source_with_a_suffix_goes_first() {
    let real = live("x#2", OLD_SECS, "real");
    let mut listed_last = twice();
    listed_last.push(real.clone());
    let mirror = Mirror::new(Duplicates::Suffix, listed_last.clone());
    let summary = mirror.harvest().await;
    assert_eq!((summary.missing, summary.is_complete()), (1, false), "the older record has lost its place");
    let summary = mirror.harvest().await;
    assert!(summary.is_success(), "{summary:?}");
    let expected =
        content([("x", "newer"), ("x#2", "real"), ("x#3", "older"), ("y", "other"), ("z", "third")]);
    assert_eq!(mirror.content().await, expected);
    assert!(mirror.is_equal_to_source().await);
    listed_last.rotate_right(1);
    let mirror = Mirror::new(Duplicates::Suffix, listed_last);
    assert!(mirror.harvest().await.is_success());
    assert_eq!(mirror.content().await, expected);
}

#[tokio::test]
async fn rules_without_suffixes_leave_such_identifiers_alone() {
    for policy in [Duplicates::Newest, Duplicates::First] {
        let mut records = twice();
        records.push(live("x#2", OLD_SECS, "real"));
        let mirror = Mirror::new(policy, records);
        for _ in 0..3 {
            let summary = mirror.harvest().await;
            assert!(summary.is_success(), "{policy:?} {summary:?}");
            assert_eq!(mirror.content().await["x#2"], "real", "{policy:?}");
            assert!(mirror.is_equal_to_source().await, "{policy:?}");
        }
        mirror.source.lists().records.pop();
        mirror.harvest().await;
        assert!(!mirror.content().await.contains_key("x#2"), "{policy:?}");
    }
}

#[tokio::test]
async fn an_unreadable_duplicate_is_missing_until_it_can_be_read() {
    for policy in [Duplicates::First, Duplicates::Suffix] {
        // The readable one comes after it.
        let records = vec![live("x", OLD_SECS, "older"), live("x", OLD_SECS + 9, "newer")];
        let mirror = Mirror::new(policy, records);
        mirror.source.lists().page_len = 1;
        mirror.source.lists().records[0].is_broken = true;
        assert_eq!(mirror.harvest().await.missing, 1, "{policy:?}");

        let mirror = Mirror::new(policy, twice());
        mirror.source.lists().records[3].is_broken = true;
        for _ in 0..2 {
            let summary = mirror.harvest().await;
            assert_eq!((summary.missing, summary.is_complete()), (1, false), "{policy:?}");
            assert_eq!(
                mirror.content().await["x"],
                "newer",
                "a request for it alone would return the other one"
            );
        }
        mirror.source.lists().records[3].is_broken = false;
        let summary = mirror.harvest().await;
        assert!(summary.is_success(), "{policy:?} {summary:?}");
        assert_eq!(mirror.content().await.contains_key("x#2"), policy == Duplicates::Suffix);
    }
}

#[tokio::test]
async fn a_list_with_an_unreadable_record_deletes_nothing() {
    for policy in [Duplicates::First, Duplicates::Suffix] {
        let mirror = Mirror::new(policy, twice());
        mirror.harvest().await;
        mirror.source.lists().records.remove(1);
        mirror.source.lists().records[1].is_broken = true;
        mirror.harvest().await;
        assert!(mirror.content().await.contains_key("y"), "{policy:?}");
        mirror.source.lists().records[1].is_broken = false;
        mirror.harvest().await;
        assert!(!mirror.content().await.contains_key("y"), "{policy:?}");
    }
}

#[tokio::test]
async fn the_identifier_without_a_suffix_exists_while_any_record_has_it() {
    let mirror = Mirror::new(Duplicates::Suffix, twice());
    mirror.harvest().await;
    mirror.source.lists().records[0] = deleted("x", OLD_SECS + 10);
    mirror.source.lists().records.truncate(4);
    mirror.harvest().await;
    assert_eq!(mirror.content().await, content([("x", "older"), ("y", "other"), ("z", "third")]));
}

#[tokio::test]
async fn an_older_version_after_an_interruption_replaces_nothing() {
    let records = || {
        let mut records: Vec<Listed> =
            (0..9).map(|number| live(&number.to_string(), OLD_SECS, "other")).collect();
        records[0] = live("x", OLD_SECS + 9, "newer");
        records[6] = live("x", OLD_SECS, "older");
        records[8] = live("x", OLD_SECS + 1, "less old");
        records
    };
    for fault in [Fault::Kill, Fault::Half, Fault::Forgotten] {
        let mut mirror = Mirror::new(Duplicates::Newest, records());
        // Each page is committed.
        mirror.settings.request_gap = std::time::Duration::from_secs(6);
        mirror.source.lists().faults.insert(3, fault);
        let summary = mirror.harvest().await;
        assert_eq!((summary.duplicates.duplicates, mirror.content().await["x"].as_str()), (2, "newer"));
    }
}

#[tokio::test]
async fn an_older_version_in_a_list_of_another_set_that_begins_again_replaces_nothing() {
    let mut mirror = Mirror::new(Duplicates::Newest, vec![live("x", OLD_SECS + 9, "newer")]);
    mirror.settings.sets = vec!["a".to_owned(), "b".to_owned()];
    let mut of_second_set: Vec<Listed> =
        (0..6).map(|number| live(&number.to_string(), OLD_SECS, "other")).collect();
    of_second_set[5] = live("x", OLD_SECS, "older");
    {
        let mut lists = mirror.source.lists();
        lists.page_len = 2;
        lists.change_before = Some((2, of_second_set));
        lists.faults.insert(3, Fault::Forgotten);
    }
    let summary = mirror.harvest().await;
    let content = mirror.content().await;
    assert_eq!((content["x"].as_str(), content.len()), ("newer", 6), "{summary:?}");
    assert_eq!(summary.duplicates.duplicates, 1);
}

#[tokio::test]
async fn records_beyond_the_maximum_of_an_identifier_are_missing() {
    let records = (0..OCCURRENCES_MAX + 5).map(|number| live("x", OLD_SECS, &number.to_string()));
    let mirror = Mirror::new(Duplicates::Suffix, records.collect());
    // Several pages with the same identifiers would be a circle.
    mirror.source.lists().page_len = 1_000;
    let summary = mirror.harvest().await;
    assert_eq!((summary.missing, mirror.content().await.len()), (5, OCCURRENCES_MAX));
    assert!(!summary.is_complete());
}

#[tokio::test]
async fn another_rule_applies_to_all_records() {
    let mut mirror = Mirror::new(Duplicates::Newest, twice());
    mirror.source.lists().records.swap(0, 3);
    // No comparison of identifiers finds what changes.
    mirror.source.lists().is_persistent = true;
    let others = [("y", "other"), ("z", "third")];
    for (policy, expected) in [
        (Duplicates::Newest, vec![("x", "newer")]),
        (Duplicates::Suffix, vec![("x", "older"), ("x#2", "newer")]),
        (Duplicates::First, vec![("x", "older")]),
        (Duplicates::Suffix, vec![("x", "older"), ("x#2", "newer")]),
        (Duplicates::Newest, vec![("x", "newer")]),
    ] {
        mirror.settings.duplicates = policy;
        let summary = mirror.harvest().await;
        assert!(summary.is_success(), "{policy:?} {summary:?}");
        let expected =
            expected.into_iter().chain(others).map(|(id, title)| (id.to_owned(), title.to_owned()));
        assert_eq!(mirror.content().await, expected.collect(), "{policy:?}");
    }
}
