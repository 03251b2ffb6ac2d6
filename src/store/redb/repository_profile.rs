//! What was learned of each repository from the answers that passed: its granularity, how far back it
//! goes, and which sets stand where an escaped setSpec could be meant.
//!
//! `data/holdings.redb`, read whole at the start and held in memory. Most of what passes is no
//! news, and is told so without the disk.
//!
//! Invariant: when [`RepositoryProfiles::note`] returns, what [`RepositoryProfiles::is_news`] called news is on disk; and it is news
//! until it is there, also to an answer that says what another one has just said.
//! An escaped setSpec can be turned back without its entry ([`set_spec`]); the entry of a legal set
//! that looks like one is what keeps it from being turned back.

use super::database::ClosableDatabase;
use crate::error::Error;
use crate::oai::datestamp::Granularity;
use crate::oai::set_spec;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was learned of all repositories. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct RepositoryProfiles(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: ClosableDatabase,
    known: Mutex<HashMap<String, Repository>>,
}

#[derive(Debug, Default)]
struct Repository {
    dates: ProfileDates,
    /// The oldest datestamp seen, where that is or was lower than earliestDatestamp.
    lowered: Option<String>,
    sets: BTreeMap<String, SetUsage>,
    sets_bytes: usize,
    /// Writes under way: what is known is not all on disk.
    writing: usize,
}

/// The datestamps of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileDates {
    /// The granularity that Identify announces.
    pub granularity: Option<Granularity>,
    /// The earliestDatestamp that it announces.
    pub earliest: Option<String>,
    /// The oldest datestamp that a record left with.
    pub oldest_seen: Option<String>,
}

/// As what a setSpec that looks escaped was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetUsage {
    /// It stands for another one, which the schema does not allow.
    pub escaped: bool,
    /// The source calls a set so itself.
    pub legal: bool,
}

impl SetUsage {
    /// Whether two sets of the source have this one name.
    pub fn is_collision(self) -> bool {
        self.escaped && self.legal
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { escaped: self.escaped || other.escaped, legal: self.legal || other.legal }
    }
}

/// What one answer said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileUpdate {
    /// What it said of datestamps.
    pub dates: ProfileDates,
    /// Its setSpecs that look escaped.
    pub sets: BTreeMap<String, SetUsage>,
}

/// setSpecs that are remembered of one repository, and what their names may be together, in bytes.
/// Those beyond are turned back without looking.
const SETS_MAX: usize = 10_000;
const SETS_BYTES_MAX: usize = 1 << 20;

impl RepositoryProfiles {
    /// Opens or creates `holdings.redb` in the data folder, and reads it.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub fn open(data: &Path) -> Result<Self, Error> {
        let path = data.join("holdings.redb");
        let store = ClosableDatabase::open(&path, CACHE_BYTES)?;
        let known = store.with(None, |database| read(database).map_err(Some));
        let known = known.map_err(|error| {
            let said = error.map(|error| error.to_string()).unwrap_or_default();
            Error::State { path, message: format!("{said}; move the file away to begin with an empty one") }
        })?;
        Ok(Self(Arc::new(Inner { store, known: Mutex::new(known) })))
    }

    /// Closes the file; what is learned from now on is held in memory alone.
    pub(in crate::store) fn close(&self) {
        self.0.store.close();
    }

    /// What is known of a repository's datestamps.
    pub fn dates(&self, repository: &str) -> ProfileDates {
        self.known().get(repository).map(|known| known.dates.clone()).unwrap_or_default()
    }

    /// The datestamp to which earliestDatestamp was lowered, where that was necessary. An Identify that was
    /// kept before says another one.
    pub fn lowered_to(&self, repository: &str) -> Option<String> {
        self.known().get(repository)?.lowered.clone()
    }

    /// What the source calls the set that a harvester asks for, where it is another name: an escaped
    /// one is turned back, unless the source has a set of that very name.
    pub fn set_of_the_source(&self, repository: &str, asked: &str) -> Option<String> {
        let meant = set_spec::unescape(asked)?;
        let known = self.known();
        let seen = known.get(repository).and_then(|known| known.sets.get(asked)).copied();
        (!seen.unwrap_or_default().legal).then_some(meant)
    }

    /// The setSpecs of a repository that two of its sets have.
    pub fn collisions(&self, repository: &str) -> Vec<String> {
        let known = self.known();
        let sets = known.get(repository).into_iter().flat_map(|known| &known.sets);
        sets.filter(|(_, seen)| seen.is_collision()).map(|(name, _)| name.clone()).collect()
    }

    /// Whether something of this is not known yet and has to be on disk.
    pub fn is_news(&self, repository: &str, news: &ProfileUpdate) -> bool {
        match self.known().get(repository) {
            Some(known) => known.lacks(news) || known.writing > 0 && *news != ProfileUpdate::default(),
            None => Repository::default().lacks(news),
        }
    }

    /// Takes in what an answer said. The setSpecs that are found now to be those of two sets.
    /// Blocks on the disk where it is news.
    pub fn note(&self, repository: &str, news: &ProfileUpdate) -> Vec<String> {
        let mut known = self.known();
        let of = known.entry(repository.to_owned()).or_default();
        if !of.lacks(news) && of.writing == 0 {
            of.take_oldest(news);
            return Vec::new();
        }
        let collisions = of.take(news);
        // What was known may be what is being written just now.
        let changed: Vec<&String> = news.sets.keys().filter(|name| of.sets.contains_key(*name)).collect();
        of.writing += 1;
        drop(known);
        let now_known = || {
            let known = self.known();
            let of = known.get(repository);
            let dates = of.map(|of| of.dates.clone()).unwrap_or_default();
            let seen = |name: &String| of.map(|of| of.seen(name)).unwrap_or_default();
            (dates, changed.iter().map(|name| (name.as_str(), seen(name))).collect())
        };
        let written =
            self.0.store.with(None, |database| write(database, repository, now_known).map_err(Some));
        if let Some(of) = self.known().get_mut(repository) {
            of.writing -= 1;
        }
        if let Err(Some(error)) = written {
            tracing::warn!(
                repo = repository,
                %error,
                "what was learned of a repository is not kept; check space and rights of the data folder"
            );
        }
        collisions
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Repository>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Repository {
    /// Whether something of this has to be on disk. An old datestamp only where it shows that
    /// earliestDatestamp is wrong.
    fn lacks(&self, news: &ProfileUpdate) -> bool {
        let ProfileDates { granularity, earliest, oldest_seen } = &news.dates;
        let announced = earliest.as_ref().or(self.dates.earliest.as_ref());
        let oldest = oldest_seen.as_ref().or(self.dates.oldest_seen.as_ref());
        let is_older = |seen: &String| self.dates.oldest_seen.as_ref().is_none_or(|known| seen < known);
        let contradicts = announced.is_some_and(|announced| oldest.is_some_and(|oldest| oldest < announced));
        granularity.is_some_and(|granularity| self.dates.granularity != Some(granularity))
            || earliest.is_some() && *earliest != self.dates.earliest
            || contradicts && oldest_seen.as_ref().is_some_and(is_older)
            || news
                .sets
                .iter()
                .any(|(name, seen)| self.has_room(name) && self.seen(name).and(*seen) != self.seen(name))
    }

    fn seen(&self, name: &str) -> SetUsage {
        self.sets.get(name).copied().unwrap_or_default()
    }

    fn has_room(&self, name: &str) -> bool {
        let fits = self.sets.len() < SETS_MAX && self.sets_bytes + name.len() <= SETS_BYTES_MAX;
        fits || self.sets.contains_key(name)
    }

    fn take_oldest(&mut self, news: &ProfileUpdate) {
        if let Some(seen) = &news.dates.oldest_seen
            && self.dates.oldest_seen.as_ref().is_none_or(|known| seen < known)
        {
            self.dates.oldest_seen = Some(seen.clone());
        }
        self.note_lowered(|seen, announced| seen < announced);
    }

    fn note_lowered(&mut self, is_lowered: impl FnOnce(&str, &str) -> bool) {
        let ProfileDates { earliest, oldest_seen, .. } = &self.dates;
        if let (Some(seen), Some(announced)) = (oldest_seen, earliest)
            && is_lowered(seen, announced)
        {
            self.lowered = Some(seen.clone());
        }
    }

    /// The sets that are found now to be two.
    fn take(&mut self, news: &ProfileUpdate) -> Vec<String> {
        self.take_oldest(news);
        self.dates.granularity = news.dates.granularity.or(self.dates.granularity);
        if news.dates.earliest.is_some() {
            self.dates.earliest.clone_from(&news.dates.earliest);
            self.note_lowered(|seen, announced| seen < announced);
        }
        let mut collisions = Vec::new();
        for (name, seen) in &news.sets {
            let before = self.seen(name);
            let after = before.and(*seen);
            if after == before || !self.has_room(name) {
                continue;
            }
            if self.sets.insert(name.clone(), after).is_none() {
                self.sets_bytes += name.len();
            }
            if after.is_collision() {
                collisions.push(name.clone());
            }
        }
        collisions
    }
}

fn read(database: &Database) -> Result<HashMap<String, Repository>, redb::Error> {
    let mut all: HashMap<String, Repository> = HashMap::new();
    let transaction = database.begin_read()?;
    match transaction.open_table(DATES) {
        Ok(dates) => {
            for row in dates.iter()? {
                let (repository, value) = row?;
                let (granularity, earliest, oldest) = value.value();
                let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                let known = all.entry(repository.value().to_owned()).or_default();
                known.dates = ProfileDates {
                    granularity: Granularity::from_name(granularity),
                    earliest: text(earliest),
                    oldest_seen: text(oldest),
                };
                // An Identify that was lowered says the oldest datestamp itself.
                known.note_lowered(|seen, announced| seen <= announced || seen.starts_with(announced));
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    match transaction.open_table(SETS) {
        Ok(sets) => {
            for row in sets.iter()? {
                let (key, flags) = row?;
                let (repository, name) = key.value();
                let known = all.entry(repository.to_owned()).or_default();
                let flags = flags.value();
                if known.has_room(name) {
                    let seen = SetUsage { escaped: flags & ESCAPED != 0, legal: flags & LEGAL != 0 };
                    known.sets_bytes += name.len();
                    known.sets.insert(name.to_owned(), seen);
                }
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(all)
}

fn write<'n>(
    database: &Database,
    repository: &str,
    now_known: impl FnOnce() -> (ProfileDates, Vec<(&'n str, SetUsage)>),
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    // Writers take turns from here on: what is known now is no older than what stands there.
    let (dates, sets) = now_known();
    {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (earliest, oldest) = (text(&dates.earliest), text(&dates.oldest_seen));
        let granularity = dates.granularity.map_or("", Granularity::name);
        let mut all = transaction.open_table(DATES)?;
        all.insert(repository, (granularity, earliest.as_str(), oldest.as_str()))?;
        let mut all = transaction.open_table(SETS)?;
        for (name, seen) in sets {
            let flags = u8::from(seen.escaped) * ESCAPED + u8::from(seen.legal) * LEGAL;
            all.insert((repository, name), flags)?;
        }
    }
    Ok(transaction.commit()?)
}

/// Repository to granularity, earliestDatestamp and oldest datestamp; empty where not known.
const DATES: TableDefinition<'_, &str, (&str, &str, &str)> = TableDefinition::new("dates");
/// Repository and setSpec to as what it was seen.
const SETS: TableDefinition<'_, (&str, &str), u8> = TableDefinition::new("sets");
const ESCAPED: u8 = 1;
const LEGAL: u8 = 2;
const CACHE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn open(data: &tempfile::TempDir) -> RepositoryProfiles {
        RepositoryProfiles::open(data.path()).expect("it can be written to")
    }

    fn set(name: &str, escaped: bool, legal: bool) -> ProfileUpdate {
        let sets = BTreeMap::from([(name.to_owned(), SetUsage { escaped, legal })]);
        ProfileUpdate { sets, ..ProfileUpdate::default() }
    }

    fn dates(earliest: Option<&str>, oldest_seen: Option<&str>) -> ProfileUpdate {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let dates =
            ProfileDates { granularity: None, earliest: text(earliest), oldest_seen: text(oldest_seen) };
        ProfileUpdate { dates, ..ProfileUpdate::default() }
    }

    #[test]
    fn an_escaped_set_is_turned_back_unless_the_source_has_it() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        let turned = |holdings: &RepositoryProfiles| holdings.set_of_the_source("x", "a~x2B.b");
        assert_eq!(turned(&holdings).as_deref(), Some("a+b"), "nothing is known");
        assert_eq!(holdings.note("x", &set("a~x2B.b", true, false)), Vec::<String>::new());
        assert_eq!(turned(&holdings).as_deref(), Some("a+b"));
        assert_eq!(holdings.note("x", &set("a~x2B.b", false, true)), ["a~x2B.b"]);
        assert_eq!(turned(&holdings), None, "the look-alike wins");
        assert_eq!(holdings.note("x", &set("a~x2B.b", false, true)), Vec::<String>::new(), "once");
        assert_eq!(holdings.collisions("x"), ["a~x2B.b"]);
        assert_eq!(
            holdings.set_of_the_source("y", "a~x2B.b").as_deref(),
            Some("a+b"),
            "of another repository"
        );
        drop(holdings);
        assert_eq!(turned(&open(&data)), None, "it survives");
        assert_eq!(open(&data).collisions("x"), ["a~x2B.b"]);
    }

    #[test]
    fn what_is_known_is_no_news() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        let identify = ProfileUpdate {
            dates: ProfileDates {
                granularity: Some(Granularity::Day),
                earliest: Some("2015-01-01".into()),
                oldest_seen: None,
            },
            ..ProfileUpdate::default()
        };
        for news in [identify, set("a~x2B.b", true, false), dates(None, Some("2014-01-01"))] {
            assert!(holdings.is_news("x", &news), "{news:?}");
            holdings.note("x", &news);
            assert!(!holdings.is_news("x", &news), "{news:?}");
            assert!(holdings.is_news("y", &news) || news.dates.oldest_seen.is_some(), "{news:?}");
        }
        for old in [dates(None, Some("2014-06-01")), dates(None, Some("2020-01-01"))] {
            assert!(!holdings.is_news("x", &old), "{old:?}");
            holdings.note("x", &old);
        }
        drop(holdings);
        let known = open(&data).dates("x");
        assert_eq!(known.granularity, Some(Granularity::Day));
        assert_eq!(known.earliest.as_deref(), Some("2015-01-01"));
        assert_eq!(known.oldest_seen.as_deref(), Some("2014-01-01"), "only ever lower");
    }

    #[test]
    fn an_old_record_counts_also_where_identify_comes_later() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        assert!(!holdings.is_news("x", &dates(None, Some("2014-01-01"))), "there is nothing to contradict");
        holdings.note("x", &dates(None, Some("2014-01-01")));
        holdings.note("x", &dates(Some("2015-01-01"), None));
        drop(holdings);
        assert_eq!(open(&data).dates("x").oldest_seen.as_deref(), Some("2014-01-01"));
    }

    #[test]
    fn an_earliest_datestamp_that_was_lowered_stays_known_as_lowered() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        holdings.note("x", &dates(Some("2015-01-01"), Some("2016-01-01")));
        assert_eq!(holdings.lowered_to("x"), None);
        holdings.note("x", &dates(None, Some("2014-05-05")));
        assert_eq!(holdings.lowered_to("x").as_deref(), Some("2014-05-05"));
        // Identify says it from now on.
        holdings.note("x", &dates(Some("2014-05-05"), None));
        assert_eq!(holdings.lowered_to("x").as_deref(), Some("2014-05-05"));
        drop(holdings);
        assert_eq!(open(&data).lowered_to("x").as_deref(), Some("2014-05-05"), "it survives");
    }

    #[test]
    fn what_was_learned_last_is_what_is_on_disk_whoever_writes_last() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        holdings.note("x", &dates(Some("2015-01-01"), None));
        std::thread::scope(|scope| {
            for first in 0..8 {
                let holdings = &holdings;
                scope.spawn(move || {
                    for number in (first..64).step_by(8) {
                        let seen = format!("20{:02}-01-01", 14 - number / 8);
                        holdings.note("x", &dates(None, Some(&format!("{seen}T00:{:02}:00Z", 63 - number))));
                        holdings.note("x", &set(&format!("{}~x2B.", number / 8), first == 0, first == 1));
                    }
                });
            }
        });
        let known = (holdings.dates("x"), holdings.collisions("x"));
        assert_eq!(known.1.len(), 8);
        drop(holdings);
        let kept = open(&data);
        assert_eq!((kept.dates("x"), kept.collisions("x")), known);
    }

    #[test]
    fn what_is_being_written_is_news_to_everybody_until_it_is_on_disk() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        let news = set("a~x2B.b", false, true);
        std::thread::scope(|scope| {
            let first = holdings.0.store.with((), |database| {
                // Whoever writes waits for this one.
                let busy = database.begin_write().expect("it can be written to");
                let first = scope.spawn(|| holdings.note("x", &news));
                while holdings.set_of_the_source("x", "a~x2B.b").is_some() {
                    std::thread::yield_now();
                }
                assert!(holdings.is_news("x", &news), "another answer waits too");
                assert!(!holdings.is_news("x", &ProfileUpdate::default()));
                drop(busy);
                Ok(first)
            });
            first.expect("it is open").join().expect("no panic");
            assert!(!holdings.is_news("x", &news));
            assert_eq!(holdings.note("x", &news), Vec::<String>::new());
        });
    }

    #[test]
    fn a_second_answer_writes_what_the_first_one_is_writing() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        let news = set("a~x2B.b", false, true);
        let mut known = holdings.known();
        let of = known.entry("x".to_owned()).or_default();
        of.take(&news);
        // As if the first one were killed before it has come to the disk.
        of.writing = 1;
        drop(known);
        holdings.note("x", &news);
        drop(holdings);
        assert_eq!(open(&data).set_of_the_source("x", "a~x2B.b"), None);
    }

    #[test]
    fn only_so_many_sets_are_remembered_and_the_rest_is_turned_back_unseen() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        let name = |number: usize| format!("{number}~x2B.");
        let sets =
            (0..SETS_MAX).map(|number| (name(number), SetUsage { escaped: false, legal: true })).collect();
        holdings.note("x", &ProfileUpdate { sets, ..ProfileUpdate::default() });
        let beyond = set(&name(SETS_MAX), false, true);
        assert!(!holdings.is_news("x", &beyond));
        assert_eq!(holdings.note("x", &beyond), Vec::<String>::new());
        assert_eq!(holdings.set_of_the_source("x", &name(7)), None);
        assert_eq!(holdings.set_of_the_source("x", &name(SETS_MAX)), Some(format!("{SETS_MAX}+")));
        assert!(holdings.is_news("y", &beyond), "each repository has its own bound");
    }

    #[test]
    fn what_is_learned_after_it_was_closed_is_held() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let holdings = open(&data);
        holdings.close();
        holdings.note("x", &set("a~x2B.b", false, true));
        assert_eq!(holdings.set_of_the_source("x", "a~x2B.b"), None);
    }
}
