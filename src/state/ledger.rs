//! Which tokens were given out, in which lists, and what those lists have delivered.
//!
//! `data/ledger.redb`. A list begins with the request that has no token; each
//! page of it is known by its number, with the hashes of its items (8 bytes
//! each), and each token by the list and the number of the page it leads to. So
//! a loop is seen, a token that expired can be replaced by its list begun anew,
//! and a page that broke off can be gone on with by a token of ours.
//!
//! Invariants: what [`Ledger::note_durably`] was given is on disk when it
//! returns. What [`Ledger::note`] was given is on disk within
//! [`UNSYNCED_MAX`](super::ledger_writer::UNSYNCED_MAX), many notes in one
//! transaction: one sync a page would cost more than the page. A token that
//! stands in two lists that are under way is ambiguous and is never recovered.

use super::ledger_writer::{DATES, FIRSTS, KEPT_SECS, LISTS, PAGES, TOKENS, WALKS, WINDOWS, write};
use super::store::Store;
use crate::error::Error;
use crate::oai::Window;
use redb::{Database, ReadableDatabase, ReadableTable};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The ledger. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Open>);

#[derive(Debug)]
struct Open {
    store: Arc<Store>,
    /// By repository, when a page of a list was noted last of which not all was asked for, in seconds since 1970.
    windows: Mutex<HashMap<String, u64>>,
    /// To the thread that writes; `None` once it is to end.
    messages: Mutex<Option<SyncSender<Message>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

pub(super) enum Message {
    /// To be written soon.
    Note(Box<Note>),
    /// To be on disk before it is answered.
    Durable(Box<Note>, SyncSender<bool>),
    /// To be written soon.
    Walk(Walk),
    /// To be answered when all before it can be read.
    Barrier(SyncSender<bool>),
}

impl Open {
    /// Ends the thread that writes, with all that it was given on disk.
    fn end(&self) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // It has logged what it could not write.
            let _ = writer.join();
        }
    }

    fn messages(&self) -> Option<SyncSender<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end();
    }
}

/// One page of a list, as far as it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The repository.
    pub repository: String,
    /// The verb.
    pub verb: &'static str,
    /// Which page of which list.
    pub place: Place,
    /// The query that began the list.
    pub first_query: String,
    /// What of the list was asked for, where the source was asked for more; `None`: all of it.
    pub within: Option<Window>,
    /// Hashes of the items delivered of this page, in their order.
    pub hashes: Vec<u64>,
    /// Whether `hashes` are all of them.
    pub complete: bool,
    /// The token on the page; `None` on the last page, or when it broke off.
    pub next: Option<String>,
    /// Whether this is the end of the list.
    pub ended: bool,
    /// The datestamp of the last item, where the page is whole.
    pub last_datestamp: Option<String>,
    /// Seconds since 1970.
    pub now_secs: u64,
}

/// How far a list has been walked through that was begun anew for the sake of one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The repository.
    pub repository: String,
    /// The page.
    pub place: Place,
    /// The query that goes on with it; `None` when it is over.
    pub query: Option<String>,
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The list, by a number of ours.
    pub list: u64,
    /// The page, from 0.
    pub page: u32,
}

/// What is known of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListFacts {
    /// The query that began it.
    pub first_query: String,
    /// What of it was asked for, where the source was asked for more; `None`: all of it.
    #[serde(default, with = "bounds")]
    pub within: Option<Window>,
    /// Whether all that it delivered is known.
    pub complete: bool,
    /// Items delivered.
    pub items: u64,
    pub(super) ended: bool,
    pub(super) touched_secs: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Leads {
    pub(super) place: Place,
    pub(super) ambiguous: bool,
    /// What was asked for of all lists that it stood in.
    #[serde(default, with = "bounds")]
    pub(super) within: Option<Window>,
}

/// Where a token leads that was given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// The page; `None` where it may be one of several lists.
    pub place: Option<Place>,
    /// What was asked for of these lists, where the source was asked for more; `None`: all of one of them.
    pub within: Option<Window>,
}

/// A window as it is written down: its two bounds.
mod bounds {
    use super::Window;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Bounds = Option<(Option<String>, Option<String>)>;

    pub(super) fn serialize<S: Serializer>(window: &Option<Window>, to: S) -> Result<S::Ok, S::Error> {
        window.as_ref().map(|Window { from, until }| (from, until)).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Window>, D::Error> {
        let bounds = Bounds::deserialize(from)?;
        Ok(bounds.map(|(from, until)| Window { from, until }))
    }
}

/// Why the ledger cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// It was closed for another process.
    #[error("another oaimend has taken the ledger over; ask again")]
    Closed,
    /// The disk says no.
    #[error("the ledger cannot be read: {0}; check the data folder")]
    Disk(#[from] redb::Error),
}

const CACHE_BYTES: usize = 16 << 20;
/// Notes that wait to be written; who has more waits.
const NOTES_WAITING_MAX: usize = 1024;

impl Ledger {
    /// Opens or creates the ledger in the data folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub fn open(data: &Path) -> Result<Self, Error> {
        let path = data.join("ledger.redb");
        let store = Arc::new(Store::open(&path, CACHE_BYTES)?);
        let (messages, waiting) = sync_channel(NOTES_WAITING_MAX);
        let to_write = Arc::clone(&store);
        let writer = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write(&to_write, &waiting))
            .map_err(|error| Error::writing(&path, error, "raise the limit of threads"))?;
        let (messages, writer) = (Mutex::new(Some(messages)), Mutex::new(Some(writer)));
        let windows = store.with(LedgerError::Closed, read_windows).map_err(|error| Error::State {
            path,
            message: format!("{error}; move the file away to begin with an empty one"),
        })?;
        Ok(Self(Arc::new(Open { store, windows: Mutex::new(windows), messages, writer })))
    }

    /// Puts on disk what was noted, and closes it: from now on nothing is noted or known.
    pub(super) fn close(&self) {
        self.0.end();
        self.0.store.close();
    }

    /// Writes a page down, soon.
    pub fn note(&self, note: Note) {
        self.note_window(&note);
        self.write_soon(Message::Note(Box::new(note)));
    }

    fn note_window(&self, note: &Note) {
        if note.within.is_some() {
            self.windows().insert(note.repository.clone(), note.now_secs);
        }
    }

    /// Whether a token of the repository may lead to pages of which not all was asked for: then one answer to it is
    /// not the answer to everybody. `now_secs` are seconds since 1970.
    pub fn has_windows(&self, repository: &str, now_secs: u64) -> bool {
        // What nobody goes on with is forgotten with the next list, which may be a while later.
        self.windows().get(repository).is_some_and(|noted| now_secs < noted + 2 * KEPT_SECS)
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down how far a walk has come, soon.
    pub fn note_walk(&self, walk: Walk) {
        self.write_soon(Message::Walk(walk));
    }

    fn write_soon(&self, message: Message) {
        let sent = self.0.messages().map(|messages| messages.try_send(message));
        match sent {
            Some(Ok(())) => {}
            Some(Err(_)) => tracing::warn!("the ledger cannot keep up; a page is not written down"),
            None => tracing::debug!("another oaimend has the ledger; a page is not written down"),
        }
    }

    /// Writes a page down. Blocks on the disk; false when it could not be written.
    pub fn note_durably(&self, note: Note) -> bool {
        self.note_window(&note);
        self.ask(|done| Message::Durable(Box::new(note), done))
    }

    fn ask(&self, message: impl FnOnce(SyncSender<bool>) -> Message) -> bool {
        let (done, answered) = sync_channel(1);
        let sent = self.0.messages().is_some_and(|messages| messages.send(message(done)).is_ok());
        sent && answered.recv().unwrap_or(false)
    }

    /// Reads, with all that was noted before.
    fn read<T>(
        &self,
        reading: impl FnOnce(redb::ReadTransaction) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.ask(Message::Barrier);
        self.0
            .store
            .with(LedgerError::Closed, |database| reading(database.begin_read().map_err(redb::Error::from)?))
    }

    /// Where a token leads that was given out; `None` when it is not known.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn find(&self, repository: &str, verb: &str, token: &str) -> Result<Option<Led>, LedgerError> {
        self.read(|reading| {
            let Some(tokens) = existing(reading.open_table(TOKENS))? else { return Ok(None) };
            let leads = tokens.get((repository, verb, token)).map_err(redb::Error::from)?;
            let leads = leads.and_then(|json| serde_json::from_slice::<Leads>(json.value()).ok());
            Ok(leads.map(|Leads { place, ambiguous, within }| Led {
                place: (!ambiguous).then_some(place),
                within,
            }))
        })
    }

    /// What is known of a list.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn list(&self, repository: &str, list: u64) -> Result<Option<ListFacts>, LedgerError> {
        self.read(|reading| {
            let Some(lists) = existing(reading.open_table(LISTS))? else { return Ok(None) };
            let facts = lists.get((repository, list)).map_err(redb::Error::from)?;
            Ok(facts.and_then(|json| serde_json::from_slice(json.value()).ok()))
        })
    }

    /// The earlier page of the list that began with this item, if there was one.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn earlier_page(
        &self,
        repository: &str,
        place: Place,
        first: u64,
    ) -> Result<Option<u32>, LedgerError> {
        self.read(|reading| {
            let Some(firsts) = existing(reading.open_table(FIRSTS))? else { return Ok(None) };
            let page = firsts.get((repository, place.list, first)).map_err(redb::Error::from)?;
            Ok(page.map(|page| page.value()).filter(|page| *page < place.page))
        })
    }

    /// The query that goes on with the walk to this page, if one was left.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn walk(&self, repository: &str, place: Place) -> Result<Option<String>, LedgerError> {
        self.read(|reading| {
            let Some(walks) = existing(reading.open_table(WALKS))? else { return Ok(None) };
            let query = walks.get((repository, place.list, place.page)).map_err(redb::Error::from)?;
            Ok(query.map(|query| query.value().to_owned()))
        })
    }

    /// The datestamp of the last item before this page, or of an earlier one.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn last_datestamp(&self, repository: &str, place: Place) -> Result<Option<String>, LedgerError> {
        self.read(|reading| {
            let Some(dates) = existing(reading.open_table(DATES))? else { return Ok(None) };
            let Place { list, page } = place;
            let before =
                dates.range((repository, list, 0)..(repository, list, page)).map_err(redb::Error::from)?;
            let last = before.last().transpose().map_err(redb::Error::from)?;
            Ok(last.map(|(_, datestamp)| datestamp.value().to_owned()))
        })
    }

    /// What the list has delivered before this page.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn delivered_before(&self, repository: &str, place: Place) -> Result<Vec<u64>, LedgerError> {
        self.delivered((repository, place.list, 0)..(repository, place.list, place.page))
    }

    /// What was delivered of this page.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn delivered_of(&self, repository: &str, place: Place) -> Result<Vec<u64>, LedgerError> {
        let Place { list, page } = place;
        self.delivered((repository, list, page)..(repository, list, page.saturating_add(1)))
    }

    fn delivered(&self, pages: std::ops::Range<(&str, u64, u32)>) -> Result<Vec<u64>, LedgerError> {
        self.read(|reading| {
            let Some(table) = existing(reading.open_table(PAGES))? else { return Ok(Vec::new()) };
            let mut hashes = Vec::new();
            for page in table.range(pages).map_err(redb::Error::from)? {
                let (_, bytes) = page.map_err(redb::Error::from)?;
                hashes.extend(
                    bytes
                        .value()
                        .chunks_exact(8)
                        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())),
                );
            }
            Ok(hashes)
        })
    }
}

fn read_windows(database: &Database) -> Result<HashMap<String, u64>, LedgerError> {
    let reading = database.begin_read().map_err(redb::Error::from)?;
    let Some(windows) = existing(reading.open_table(WINDOWS))? else { return Ok(HashMap::new()) };
    let mut known = HashMap::new();
    for row in windows.iter().map_err(redb::Error::from)? {
        let (repository, noted) = row.map_err(redb::Error::from)?;
        known.insert(repository.value().to_owned(), noted.value());
    }
    Ok(known)
}

/// A table that nothing was written to yet is none.
fn existing<T>(table: Result<T, redb::TableError>) -> Result<Option<T>, redb::Error> {
    match table {
        Ok(table) => Ok(Some(table)),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger_writer::{LISTS_FORGOTTEN_TOGETHER, LISTS_MAX};
    use super::*;

    const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

    fn open() -> (tempfile::TempDir, Ledger) {
        let data = tempfile::tempdir().expect("a temporary folder");
        let ledger = Ledger::open(data.path()).expect("it can be written to");
        (data, ledger)
    }

    fn note(list: u64, page: u32, hashes: &[u64], next: Option<&str>) -> Note {
        Note {
            repository: "x".into(),
            verb: "ListRecords",
            place: Place { list, page },
            first_query: LIST.into(),
            within: None,
            hashes: hashes.to_vec(),
            complete: true,
            next: next.map(str::to_owned),
            ended: next.is_none(),
            last_datestamp: None,
            now_secs: 1_000_000,
        }
    }

    fn found(ledger: &Ledger, token: &str) -> Option<Place> {
        ledger.find("x", "ListRecords", token).expect("readable")?.place
    }

    #[test]
    fn of_a_list_too_long_to_be_recovered_the_page_that_a_token_of_ours_needs_is_known() {
        let (_data, ledger) = open();
        let long: Vec<u64> = (0..999_999).collect();
        ledger.note(note(7, 0, &long, Some("a")));
        ledger.note(note(7, 1, &[1, 2, 3], Some("b")));
        assert!(ledger.note_durably(note(7, 2, &[4, 5, 6], None)));
        let delivered = |page| ledger.delivered_of("x", Place { list: 7, page }).expect("readable");
        assert_eq!(delivered(1), [0_u64; 0], "nobody asks for it");
        assert_eq!(delivered(2), [4, 5, 6]);
        assert!(!ledger.list("x", 7).expect("readable").expect("known").complete);
    }

    #[test]
    fn what_was_noted_is_known_at_once_and_after_a_restart() {
        let (data, ledger) = open();
        ledger.note(note(7, 0, &[1, 2], Some("a")));
        ledger.note(note(7, 1, &[3], Some("b")));
        let place = Place { list: 7, page: 2 };
        let check = |ledger: &Ledger| {
            assert_eq!(found(ledger, "b"), Some(place));
            assert_eq!(ledger.find("y", "ListRecords", "b").expect("readable"), None);
            assert_eq!(ledger.find("x", "ListSets", "b").expect("readable"), None);
            assert_eq!(ledger.delivered_before("x", place).expect("readable"), [1, 2, 3]);
            assert_eq!(ledger.delivered_of("x", Place { list: 7, page: 1 }).expect("readable"), [3]);
            assert_eq!(ledger.earlier_page("x", place, 3).expect("readable"), Some(1));
            assert_eq!(ledger.earlier_page("x", place, 4).expect("readable"), None);
            let facts = ledger.list("x", 7).expect("readable").expect("known");
            assert!(facts.complete && facts.items == 3 && facts.first_query == LIST, "{facts:?}");
        };
        check(&ledger);
        drop(ledger);
        check(&Ledger::open(data.path()).expect("it survives"));
    }

    #[test]
    fn a_page_asked_for_twice_counts_once() {
        let (_data, ledger) = open();
        ledger.note(note(7, 0, &[1, 2], Some("a")));
        ledger.note(note(7, 1, &[3, 4], Some("b")));
        assert!(ledger.note_durably(note(7, 1, &[3, 4, 5], Some("b"))));
        assert_eq!(ledger.list("x", 7).expect("readable").expect("known").items, 5);
        assert_eq!(
            ledger.delivered_before("x", Place { list: 7, page: 2 }).expect("readable"),
            [1, 2, 3, 4, 5]
        );
    }

    #[test]
    fn a_token_of_two_lists_under_way_leads_nowhere() {
        let (_data, ledger) = open();
        ledger.note(note(7, 0, &[1], Some("a")));
        ledger.note(note(8, 0, &[1], Some("a")));
        assert_eq!(found(&ledger, "a"), None);
        ledger.note(note(9, 0, &[1], Some("b")));
        ledger.note(note(9, 1, &[2], None));
        ledger.note(note(10, 0, &[1], Some("b")));
        assert_eq!(found(&ledger, "b"), Some(Place { list: 10, page: 1 }), "the other list is over");
    }

    #[test]
    fn what_was_asked_for_with_a_token_is_that_of_all_its_lists() {
        let (data, ledger) = open();
        let window = |from: &str, until: &str| Window {
            from: Some(format!("2020-01-01T{from}Z")),
            until: Some(format!("2020-01-01T{until}Z")),
        };
        let within = |ledger: &Ledger, token: &str| {
            ledger.find("x", "ListRecords", token).expect("readable").expect("it was given out").within
        };
        let list = |list: u64, token: &str, within: Option<Window>| {
            ledger.note(Note { within, ..note(list, 0, &[1], Some(token)) });
            ledger.note(note(list, 1, &[2], None));
        };
        list(7, "a", Some(window("10:00:00", "11:00:00")));
        assert_eq!(within(&ledger, "a"), Some(window("10:00:00", "11:00:00")));
        list(8, "a", Some(window("09:00:00", "09:30:00")));
        list(9, "b", Some(window("09:00:00", "09:30:00")));
        list(10, "b", None);
        list(11, "b", Some(window("09:00:00", "09:30:00")));
        assert!(ledger.has_windows("x", 1_000_000) && !ledger.has_windows("y", 1_000_000));
        drop(ledger);
        let ledger = Ledger::open(data.path()).expect("it survives");
        assert!(ledger.has_windows("x", 1_000_000) && !ledger.has_windows("x", 1_000_000 + 2 * KEPT_SECS));
        assert_eq!(within(&ledger, "a"), Some(window("09:00:00", "11:00:00")), "also of one that is over");
        assert_eq!(within(&ledger, "b"), None, "one of them was asked for whole");
        let facts = ledger.list("x", 7).expect("readable").expect("known");
        assert_eq!(facts.within, Some(window("10:00:00", "11:00:00")));
    }

    #[test]
    fn a_page_that_is_not_known_whole_makes_the_list_incomplete() {
        let (_data, ledger) = open();
        ledger.note(note(7, 0, &[1], Some("a")));
        ledger.note(Note { complete: false, ..note(7, 1, &[2], Some("b")) });
        assert!(!ledger.list("x", 7).expect("readable").expect("known").complete);
        ledger.note(note(8, 1, &[2], Some("c")));
        assert!(
            !ledger.list("x", 8).expect("readable").expect("known").complete,
            "its first page is missing"
        );
    }

    #[test]
    fn how_far_a_walk_has_come_is_known_until_it_is_over() {
        let (data, ledger) = open();
        let place = Place { list: 7, page: 2 };
        let walk =
            |query: Option<&str>| Walk { repository: "x".into(), place, query: query.map(str::to_owned) };
        ledger.note_walk(walk(Some("q")));
        drop(ledger);
        let ledger = Ledger::open(data.path()).expect("it survives");
        assert_eq!(ledger.walk("x", place).expect("readable").as_deref(), Some("q"));
        assert_eq!(ledger.walk("x", Place { page: 3, ..place }).expect("readable"), None);
        ledger.note_walk(walk(None));
        assert_eq!(ledger.walk("x", place).expect("readable"), None);
    }

    #[test]
    fn the_last_datestamp_is_that_of_a_page_before() {
        let (_data, ledger) = open();
        for (page, date) in
            [(0, Some("2020-01-01")), (1, Some("2020-01-02")), (2, None), (3, Some("2020-01-04"))]
        {
            let last_datestamp = date.map(str::to_owned);
            ledger.note(Note { last_datestamp, ..note(7, page, &[u64::from(page)], Some("a")) });
        }
        let before = |page| ledger.last_datestamp("x", Place { list: 7, page }).expect("readable");
        assert_eq!(
            [before(0), before(1), before(3)].map(Option::unwrap_or_default),
            ["", "2020-01-01", "2020-01-02"]
        );
    }

    #[test]
    fn lists_that_nobody_goes_on_with_are_forgotten() {
        let (_data, ledger) = open();
        let (last_datestamp, place) = (Some("2020-01-01".to_owned()), Place { list: 7, page: 1 });
        ledger.note(Note { last_datestamp, ..note(7, 0, &[1], Some("a")) });
        ledger.note_walk(Walk { repository: "x".into(), place, query: Some("q".into()) });
        assert!(ledger.last_datestamp("x", place).expect("readable").is_some());
        assert!(ledger.walk("x", place).expect("readable").is_some());
        ledger.note(Note { now_secs: 1_000_001 + KEPT_SECS, ..note(8, 0, &[1], Some("b")) });
        assert_eq!((found(&ledger, "a"), found(&ledger, "b")), (None, Some(Place { list: 8, page: 1 })));
        assert_eq!(ledger.list("x", 7).expect("readable"), None);
        assert_eq!(ledger.last_datestamp("x", place).expect("readable"), None);
        assert_eq!(ledger.walk("x", place).expect("readable"), None);
    }

    #[test]
    fn no_more_lists_are_remembered_than_there_may_be() {
        let (data, ledger) = open();
        let count = |ledger: &Ledger| {
            let read = ledger.read(|reading| {
                let lists = reading.open_table(LISTS).expect("written to");
                let lists = lists.iter().expect("readable").map(|list| list.expect("readable").0.value().1);
                let tokens = reading.open_table(TOKENS).expect("written to");
                Ok((lists.collect::<Vec<u64>>(), tokens.iter().expect("readable").count()))
            });
            read.expect("readable")
        };
        let begin = |ledger: &Ledger, list: u64| {
            let note = note(list, 0, &[list], Some(&format!("token {list}")));
            assert!(ledger.note_durably(Note { now_secs: 1_000_000 + list, ..note }));
        };
        (0..LISTS_MAX).for_each(|list| begin(&ledger, list));
        assert_eq!(count(&ledger).0.len() as u64, LISTS_MAX);
        drop(ledger);
        let ledger = Ledger::open(data.path()).expect("it survives");
        for list in LISTS_MAX..LISTS_MAX + 2 * LISTS_FORGOTTEN_TOGETHER {
            begin(&ledger, list);
            let (lists, tokens) = count(&ledger);
            assert!(lists.len() as u64 <= LISTS_MAX && tokens == lists.len(), "{}", lists.len());
            assert!(lists.contains(&list) && lists.len() as u64 >= LISTS_MAX - LISTS_FORGOTTEN_TOGETHER);
        }
        let oldest = count(&ledger).0.into_iter().min();
        assert_eq!(oldest, Some(2 * LISTS_FORGOTTEN_TOGETHER), "the oldest go first");
    }
}
