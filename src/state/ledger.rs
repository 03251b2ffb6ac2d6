//! Which tokens were given out, in which lists, and what those lists have delivered.
//!
//! `data/ledger.redb`. A list begins with the request that has no token; each
//! page of it is known by its number, with the hashes of its items (8 bytes
//! each), and each token by the list and the number of the page it leads to. So
//! a loop is seen, a token that expired can be replaced by its list begun anew,
//! and a page that broke off can be gone on with by a token of ours.
//!
//! Invariants: what [`Ledger::note_durably`] was given is on disk when it
//! returns. What [`Ledger::note`] was given is written soon, many notes in one
//! transaction: one sync a page would cost more than the page. A token that
//! stands in two lists that are under way is ambiguous and is never recovered.

use crate::error::Error;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The ledger. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Open>);

#[derive(Debug)]
struct Open {
    database: Arc<Database>,
    /// To the thread that writes; `None` once it is to end.
    messages: Option<SyncSender<Message>>,
    writer: Option<JoinHandle<()>>,
}

enum Message {
    /// To be written soon.
    Note(Box<Note>),
    /// To be on disk before it is answered.
    Durable(Box<Note>, SyncSender<bool>),
    /// To be answered when all before it can be read.
    Barrier(SyncSender<bool>),
}

impl Drop for Open {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(writer) = self.writer.take() {
            // It has logged what it could not write.
            let _ = writer.join();
        }
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
    /// Hashes of the items delivered of this page, in their order.
    pub hashes: Vec<u64>,
    /// Whether `hashes` are all of them.
    pub complete: bool,
    /// The token on the page; `None` on the last page, or when it broke off.
    pub next: Option<String>,
    /// Whether this is the end of the list.
    pub ended: bool,
    /// Seconds since 1970.
    pub now_secs: u64,
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
    /// Whether all that it delivered is known.
    pub complete: bool,
    /// Items delivered.
    pub items: u64,
    ended: bool,
    touched_secs: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Leads {
    place: Place,
    ambiguous: bool,
}

/// Why the ledger cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the ledger cannot be read: {0}; check the data folder")]
pub struct LedgerError(#[from] redb::Error);

/// By repository and list.
const LISTS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("lists");
/// By repository, list and page: the hashes, 8 bytes each.
const PAGES: TableDefinition<'_, (&str, u64, u32), &[u8]> = TableDefinition::new("pages");
/// By repository, list and the hash of a page's first item: the page.
const FIRSTS: TableDefinition<'_, (&str, u64, u64), u32> = TableDefinition::new("firsts");
/// By repository, verb and token.
const TOKENS: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("tokens");

const CACHE_BYTES: usize = 16 << 20;
/// Notes that wait to be written; who has more waits.
const NOTES_WAITING_MAX: usize = 1024;
/// Notes in one transaction.
const NOTES_TOGETHER_MAX: usize = 256;
/// Notes that are waited for before they are written, and how long for each.
const NOTES_GATHERED_MAX: usize = 16;
const GATHER_WITHIN: Duration = Duration::from_millis(5);
/// Longest that a note is not on disk.
const SYNC_AFTER: Duration = Duration::from_millis(200);
/// Items of a list that are remembered: 8 MB. A longer list is not recovered.
const ITEMS_MAX: u64 = 1_000_000;
/// How long a list is remembered that nobody goes on with, in seconds.
const KEPT_SECS: u64 = 3 * 24 * 3600;
/// Lists of a repository that are remembered.
const LISTS_MAX: u64 = 1_000;
/// Of these, how many are forgotten at once when there are more.
const LISTS_FORGOTTEN_TOGETHER: u64 = 125;
/// How often what nobody goes on with is looked for, in seconds.
const TIDIED_EVERY_SECS: u64 = 3600;

impl Ledger {
    /// Opens or creates the ledger in the data folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub fn open(data: &Path) -> Result<Self, Error> {
        let path = data.join("ledger.redb");
        let opened = super::open_database(&path, CACHE_BYTES)?;
        let database = Arc::new(opened);
        let (messages, waiting) = sync_channel(NOTES_WAITING_MAX);
        let to_write = Arc::clone(&database);
        let writer = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write(&to_write, &waiting))
            .map_err(|error| Error::writing(&path, error, "raise the limit of threads"))?;
        Ok(Self(Arc::new(Open { database, messages: Some(messages), writer: Some(writer) })))
    }

    /// Writes a page down, soon.
    pub fn note(&self, note: Note) {
        let sent = self.0.messages.as_ref().map(|messages| messages.try_send(Message::Note(Box::new(note))));
        if !matches!(sent, Some(Ok(()))) {
            tracing::warn!("the ledger cannot keep up; a page is not written down");
        }
    }

    /// Writes a page down. Blocks on the disk; false when it could not be written.
    pub fn note_durably(&self, note: Note) -> bool {
        self.ask(|done| Message::Durable(Box::new(note), done))
    }

    fn ask(&self, message: impl FnOnce(SyncSender<bool>) -> Message) -> bool {
        let (done, answered) = sync_channel(1);
        let sent = self.0.messages.as_ref().is_some_and(|messages| messages.send(message(done)).is_ok());
        sent && answered.recv().unwrap_or(false)
    }

    /// Begins to read, with all that was noted before.
    fn read(&self) -> Result<redb::ReadTransaction, redb::Error> {
        self.ask(Message::Barrier);
        Ok(self.0.database.begin_read()?)
    }

    /// Where a token leads that was given out; `None` when it is not known or ambiguous.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn find(&self, repository: &str, verb: &str, token: &str) -> Result<Option<Place>, LedgerError> {
        let reading = self.read()?;
        let Some(tokens) = existing(reading.open_table(TOKENS))? else { return Ok(None) };
        let leads = tokens.get((repository, verb, token)).map_err(redb::Error::from)?;
        let leads = leads.and_then(|json| serde_json::from_slice::<Leads>(json.value()).ok());
        Ok(leads.filter(|leads| !leads.ambiguous).map(|leads| leads.place))
    }

    /// What is known of a list.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn list(&self, repository: &str, list: u64) -> Result<Option<ListFacts>, LedgerError> {
        let reading = self.read()?;
        let Some(lists) = existing(reading.open_table(LISTS))? else { return Ok(None) };
        let facts = lists.get((repository, list)).map_err(redb::Error::from)?;
        Ok(facts.and_then(|json| serde_json::from_slice(json.value()).ok()))
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
        let reading = self.read()?;
        let Some(firsts) = existing(reading.open_table(FIRSTS))? else { return Ok(None) };
        let page = firsts.get((repository, place.list, first)).map_err(redb::Error::from)?;
        Ok(page.map(|page| page.value()).filter(|page| *page < place.page))
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
        let reading = self.read()?;
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
    }
}

/// A table that nothing was written to yet is none.
fn existing<T>(table: Result<T, redb::TableError>) -> Result<Option<T>, redb::Error> {
    match table {
        Ok(table) => Ok(Some(table)),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes notes until nobody has any more to give. They can be read at once,
/// and are on disk when somebody waits for that or there is time.
fn write(database: &Database, messages: &Receiver<Message>) {
    let (mut unsynced, mut tidied) = (false, Tidied::new());
    loop {
        let first = match messages.recv_timeout(SYNC_AFTER) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) if !unsynced => continue,
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let mut together: Vec<Message> = first.into_iter().collect();
        // Nobody waits for a note: some more may come.
        while (1..NOTES_GATHERED_MAX).contains(&together.len())
            && together.iter().all(|message| matches!(message, Message::Note(_)))
            && let Ok(message) = messages.recv_timeout(GATHER_WITHIN)
        {
            together.push(message);
        }
        together.extend(messages.try_iter().take(NOTES_TOGETHER_MAX));
        let durable =
            together.is_empty() || together.iter().any(|message| matches!(message, Message::Durable(..)));
        let written = write_together(database, &together, durable, &mut tidied);
        unsynced = !durable && (unsynced || together.iter().any(|m| matches!(m, Message::Note(_))));
        report(&written);
        for message in together {
            if let Message::Durable(_, done) | Message::Barrier(done) = message {
                // Who does not wait any more need not know.
                let _ = done.send(written.is_ok());
            }
        }
    }
    if unsynced {
        report(&write_together(database, &[], true, &mut tidied));
    }
}

fn report(written: &Result<(), redb::Error>) {
    if let Err(error) = written {
        tracing::error!(
            "the ledger cannot be written to: {error}; check space and rights of the data folder"
        );
    }
}

fn write_together(
    database: &Database,
    messages: &[Message],
    durable: bool,
    tidied: &mut Tidied,
) -> Result<(), redb::Error> {
    if !durable && messages.iter().all(|message| matches!(message, Message::Barrier(_))) {
        return Ok(());
    }
    let mut transaction = database.begin_write()?;
    if !durable {
        transaction.set_durability(redb::Durability::None)?;
    }
    for message in messages {
        if let Message::Note(note) | Message::Durable(note, _) = message {
            write_one(&transaction, note, tidied)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// When room was made last, by repository.
type Tidied = HashMap<String, LastTidied>;

#[derive(Clone, Copy, Debug)]
struct LastTidied {
    at_secs: u64,
    /// Lists that may be begun before it has to be made again.
    room: u64,
}

fn write_one(
    transaction: &redb::WriteTransaction,
    note: &Note,
    tidied: &mut Tidied,
) -> Result<(), redb::Error> {
    let Note { repository, verb, place, .. } = note;
    let repository = repository.as_str();
    let mut lists = transaction.open_table(LISTS)?;
    let mut pages = transaction.open_table(PAGES)?;
    let key = (repository, place.list);
    let known: Option<ListFacts> = lists.get(key)?.and_then(|json| serde_json::from_slice(json.value()).ok());
    if known.is_none() {
        let now_secs = note.now_secs;
        let last = tidied.get(repository).copied();
        let last = match last.filter(|last| last.room > 0 && now_secs < last.at_secs + TIDIED_EVERY_SECS) {
            Some(last) => last,
            None => {
                let room = forget_old(transaction, &mut lists, &mut pages, repository, now_secs)?;
                LastTidied { at_secs: now_secs, room }
            }
        };
        tidied.insert(repository.to_owned(), LastTidied { room: last.room - 1, ..last });
    }
    let before =
        pages.get((repository, place.list, place.page))?.map_or(0, |page| page.value().len() as u64 / 8);
    let mut facts = known.unwrap_or_else(|| ListFacts {
        first_query: note.first_query.clone(),
        complete: place.page == 0,
        items: 0,
        ended: false,
        touched_secs: 0,
    });
    facts.items = facts.items - before.min(facts.items) + note.hashes.len() as u64;
    facts.complete &= note.complete && facts.items <= ITEMS_MAX;
    facts.ended = note.ended;
    facts.touched_secs = note.now_secs;
    if facts.items <= ITEMS_MAX {
        let bytes: Vec<u8> = note.hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        pages.insert((repository, place.list, place.page), bytes.as_slice())?;
    }
    if let Some(first) = note.hashes.first() {
        let mut firsts = transaction.open_table(FIRSTS)?;
        let earlier = firsts.get((repository, place.list, *first))?.map(|page| page.value());
        firsts.insert((repository, place.list, *first), earlier.unwrap_or(place.page).min(place.page))?;
    }
    if let Some(token) = &note.next {
        let next = Place { list: place.list, page: place.page + 1 };
        let mut tokens = transaction.open_table(TOKENS)?;
        let token = (repository, *verb, token.as_str());
        let known = tokens.get(token)?.and_then(|json| serde_json::from_slice::<Leads>(json.value()).ok());
        let other = known.filter(|known| known.place.list != next.list);
        let under_way = |list: u64| -> Result<bool, redb::Error> {
            let facts = lists.get((repository, list))?;
            let facts = facts.and_then(|json| serde_json::from_slice::<ListFacts>(json.value()).ok());
            Ok(facts.is_some_and(|facts| !facts.ended))
        };
        let ambiguous = match other {
            Some(other) => other.ambiguous || under_way(other.place.list)?,
            None => known.is_some_and(|known| known.ambiguous),
        };
        tokens.insert(token, json(&Leads { place: next, ambiguous })?.as_slice())?;
    }
    lists.insert(key, json(&facts)?.as_slice())?;
    Ok(())
}

/// Makes room: lists nobody goes on with, and the oldest when there are too many.
/// Says how many may be begun now; more than one, since this reads all of them.
fn forget_old(
    transaction: &redb::WriteTransaction,
    lists: &mut redb::Table<'_, (&'static str, u64), &'static [u8]>,
    pages: &mut redb::Table<'_, (&'static str, u64, u32), &'static [u8]>,
    repository: &str,
    now_secs: u64,
) -> Result<u64, redb::Error> {
    let mut touched: Vec<(u64, u64)> = Vec::new();
    for list in lists.range((repository, 0)..=(repository, u64::MAX))? {
        let (key, json) = list?;
        let facts: Option<ListFacts> = serde_json::from_slice(json.value()).ok();
        touched.push((facts.map_or(0, |facts| facts.touched_secs), key.value().1));
    }
    touched.sort_unstable();
    let known = touched.len() as u64;
    let too_many = if known < LISTS_MAX { 0 } else { known - LISTS_MAX + LISTS_FORGOTTEN_TOGETHER };
    let old: Vec<u64> = touched
        .iter()
        .enumerate()
        .filter(|(at, (secs, _))| (*at as u64) < too_many || secs + KEPT_SECS < now_secs)
        .map(|(_, (_, list))| *list)
        .collect();
    let room = LISTS_MAX - (known - old.len() as u64);
    if old.is_empty() {
        return Ok(room);
    }
    let mut firsts = transaction.open_table(FIRSTS)?;
    let mut tokens = transaction.open_table(TOKENS)?;
    for list in &old {
        lists.remove((repository, *list))?;
        pages.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        firsts.retain_in((repository, *list, 0)..=(repository, *list, u64::MAX), |_, _| false)?;
    }
    let old: HashSet<u64> = old.into_iter().collect();
    let is_old = |json: &[u8]| {
        serde_json::from_slice::<Leads>(json).map_or(true, |leads| old.contains(&leads.place.list))
    };
    tokens.retain(|(of, _, _), json| of != repository || !is_old(json))?;
    Ok(room)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, redb::Error> {
    serde_json::to_vec(value).map_err(|error| redb::Error::Io(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
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
            hashes: hashes.to_vec(),
            complete: true,
            next: next.map(str::to_owned),
            ended: next.is_none(),
            now_secs: 1_000_000,
        }
    }

    fn found(ledger: &Ledger, token: &str) -> Option<Place> {
        ledger.find("x", "ListRecords", token).expect("readable")
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
    fn lists_that_nobody_goes_on_with_are_forgotten() {
        let (_data, ledger) = open();
        ledger.note(note(7, 0, &[1], Some("a")));
        ledger.note(Note { now_secs: 1_000_001 + KEPT_SECS, ..note(8, 0, &[1], Some("b")) });
        assert_eq!((found(&ledger, "a"), found(&ledger, "b")), (None, Some(Place { list: 8, page: 1 })));
        assert_eq!(ledger.list("x", 7).expect("readable"), None);
    }

    #[test]
    fn no_more_lists_are_remembered_than_there_may_be() {
        let (data, ledger) = open();
        let count = |ledger: &Ledger| {
            let reading = ledger.read().expect("readable");
            let lists = reading.open_table(LISTS).expect("written to");
            let lists = lists.iter().expect("readable").map(|list| list.expect("readable").0.value().1);
            let tokens = reading.open_table(TOKENS).expect("written to");
            (lists.collect::<Vec<u64>>(), tokens.iter().expect("readable").count())
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
