//! Tests of the profiles, with a store in memory.

use crate::repository_profile::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("threads can be started"));

fn note(profiles: &RepositoryProfiles, repository: &str, update: &ProfileUpdate) -> Vec<String> {
    RUNTIME.block_on(profiles.update(repository, update.clone()))
}

/// A store in memory. A save waits while a test holds the lock.
#[derive(Clone, Debug, Default)]
struct Saved(Arc<Mutex<HashMap<String, SavedProfile>>>);

impl Saved {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, SavedProfile>> {
        self.0.lock().expect("no test panics with the lock")
    }
}

#[async_trait]
impl ProfileStore for Saved {
    async fn save(&self, repository: &str, profile: SavedProfile) -> Result<(), SaveError> {
        let mut all = self.lock();
        let saved = all.entry(repository.to_owned()).or_default();
        saved.dates = profile.dates;
        saved.sets.retain(|(name, _)| profile.sets.iter().all(|(changed, _)| changed != name));
        saved.sets.extend(profile.sets);
        Ok(())
    }

    fn close(&self) {}
}

fn open(data: &Saved) -> RepositoryProfiles {
    RepositoryProfiles::new(Arc::new(data.clone()), data.lock().clone())
}

fn set(name: &str, escaped: bool, legal: bool) -> ProfileUpdate {
    let sets = BTreeMap::from([(name.to_owned(), SetUsage { escaped, legal })]);
    ProfileUpdate { sets, ..ProfileUpdate::default() }
}

fn dates(earliest: Option<&str>, oldest_seen: Option<&str>) -> ProfileUpdate {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let dates = ProfileDates { granularity: None, earliest: text(earliest), oldest_seen: text(oldest_seen) };
    ProfileUpdate { dates, ..ProfileUpdate::default() }
}

#[test]
fn an_escaped_set_is_unescaped_unless_the_source_has_it() {
    let data = Saved::default();
    let profiles = open(&data);
    let unescaped = |profiles: &RepositoryProfiles| profiles.source_set("x", "a~x2B.b");
    assert_eq!(unescaped(&profiles).as_deref(), Some("a+b"), "nothing is known");
    assert_eq!(note(&profiles, "x", &set("a~x2B.b", true, false)), Vec::<String>::new());
    assert_eq!(unescaped(&profiles).as_deref(), Some("a+b"));
    assert_eq!(note(&profiles, "x", &set("a~x2B.b", false, true)), ["a~x2B.b"]);
    assert_eq!(unescaped(&profiles), None, "the set of the source has priority");
    assert_eq!(note(&profiles, "x", &set("a~x2B.b", false, true)), Vec::<String>::new(), "once");
    assert_eq!(profiles.collisions("x"), ["a~x2B.b"]);
    assert_eq!(profiles.source_set("y", "a~x2B.b").as_deref(), Some("a+b"), "of another repository");
    drop(profiles);
    assert_eq!(unescaped(&open(&data)), None, "it survives");
    assert_eq!(open(&data).collisions("x"), ["a~x2B.b"]);
}

#[test]
fn a_known_update_needs_no_save() {
    let data = Saved::default();
    let profiles = open(&data);
    let identify = ProfileUpdate {
        dates: ProfileDates {
            granularity: Some(Granularity::Day),
            earliest: Some("2015-01-01".into()),
            oldest_seen: None,
        },
        ..ProfileUpdate::default()
    };
    for update in [identify, set("a~x2B.b", true, false), dates(None, Some("2014-01-01"))] {
        assert!(profiles.needs_save("x", &update), "{update:?}");
        note(&profiles, "x", &update);
        assert!(!profiles.needs_save("x", &update), "{update:?}");
        assert!(profiles.needs_save("y", &update) || update.dates.oldest_seen.is_some(), "{update:?}");
    }
    for old in [dates(None, Some("2014-06-01")), dates(None, Some("2020-01-01"))] {
        assert!(!profiles.needs_save("x", &old), "{old:?}");
        note(&profiles, "x", &old);
    }
    drop(profiles);
    let known = open(&data).dates("x");
    assert_eq!(known.granularity, Some(Granularity::Day));
    assert_eq!(known.earliest.as_deref(), Some("2015-01-01"));
    assert_eq!(known.oldest_seen.as_deref(), Some("2014-01-01"), "only ever lower");
}

#[test]
fn an_old_record_counts_before_identify_is_known() {
    let data = Saved::default();
    let profiles = open(&data);
    assert!(!profiles.needs_save("x", &dates(None, Some("2014-01-01"))), "no earliestDatestamp is known");
    note(&profiles, "x", &dates(None, Some("2014-01-01")));
    note(&profiles, "x", &dates(Some("2015-01-01"), None));
    drop(profiles);
    assert_eq!(open(&data).dates("x").oldest_seen.as_deref(), Some("2014-01-01"));
}

#[test]
fn a_lowered_earliest_datestamp_stays_lowered() {
    let data = Saved::default();
    let profiles = open(&data);
    note(&profiles, "x", &dates(Some("2015-01-01"), Some("2016-01-01")));
    assert_eq!(profiles.lowered_to("x"), None);
    note(&profiles, "x", &dates(None, Some("2014-05-05")));
    assert_eq!(profiles.lowered_to("x").as_deref(), Some("2014-05-05"));
    // From now on Identify contains the lower datestamp.
    note(&profiles, "x", &dates(Some("2014-05-05"), None));
    assert_eq!(profiles.lowered_to("x").as_deref(), Some("2014-05-05"));
    drop(profiles);
    assert_eq!(open(&data).lowered_to("x").as_deref(), Some("2014-05-05"), "it survives");
}

#[test]
fn the_latest_profile_is_on_disk_after_concurrent_updates() {
    let data = Saved::default();
    let profiles = open(&data);
    note(&profiles, "x", &dates(Some("2015-01-01"), None));
    std::thread::scope(|scope| {
        for first in 0..8 {
            let profiles = &profiles;
            scope.spawn(move || {
                for number in (first..64).step_by(8) {
                    let seen = format!("20{:02}-01-01", 14 - number / 8);
                    note(profiles, "x", &dates(None, Some(&format!("{seen}T00:{:02}:00Z", 63 - number))));
                    note(profiles, "x", &set(&format!("{}~x2B.", number / 8), first == 0, first == 1));
                }
            });
        }
    });
    let known = (profiles.dates("x"), profiles.collisions("x"));
    assert_eq!(known.1.len(), 8);
    drop(profiles);
    let reopened = open(&data);
    assert_eq!((reopened.dates("x"), reopened.collisions("x")), known);
}

#[test]
fn an_update_needs_a_save_in_every_response_until_it_is_on_disk() {
    let data = Saved::default();
    let profiles = open(&data);
    let update = set("a~x2B.b", false, true);
    std::thread::scope(|scope| {
        // Another writer waits for this lock.
        let busy = data.lock();
        let first = scope.spawn(|| note(&profiles, "x", &update));
        while profiles.source_set("x", "a~x2B.b").is_some() {
            std::thread::yield_now();
        }
        assert!(profiles.needs_save("x", &update), "another response waits too");
        assert!(!profiles.needs_save("x", &ProfileUpdate::default()));
        drop(busy);
        first.join().expect("no panic");
        assert!(!profiles.needs_save("x", &update));
        assert_eq!(note(&profiles, "x", &update), Vec::<String>::new());
    });
}

#[test]
fn a_second_update_saves_what_the_first_has_not_saved_yet() {
    let data = Saved::default();
    let profiles = open(&data);
    let update = set("a~x2B.b", false, true);
    let mut known = profiles.known();
    let of = known.entry("x".to_owned()).or_default();
    of.take(&update);
    // As if the first update were not on disk yet.
    of.saves = 1;
    drop(known);
    note(&profiles, "x", &update);
    drop(profiles);
    assert_eq!(open(&data).source_set("x", "a~x2B.b"), None);
}

#[test]
fn only_a_limited_number_of_sets_is_stored_and_further_sets_are_unescaped() {
    let data = Saved::default();
    let profiles = open(&data);
    let name = |number: usize| format!("{number}~x2B.");
    let sets = (0..SETS_MAX).map(|number| (name(number), SetUsage { escaped: false, legal: true })).collect();
    note(&profiles, "x", &ProfileUpdate { sets, ..ProfileUpdate::default() });
    let beyond = set(&name(SETS_MAX), false, true);
    assert!(!profiles.needs_save("x", &beyond));
    assert_eq!(note(&profiles, "x", &beyond), Vec::<String>::new());
    assert_eq!(profiles.source_set("x", &name(7)), None);
    assert_eq!(profiles.source_set("x", &name(SETS_MAX)), Some(format!("{SETS_MAX}+")));
    assert!(profiles.needs_save("y", &beyond), "each repository has its own limit");
}
