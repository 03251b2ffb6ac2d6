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
//! [`UNSYNCED_MAX_MILLIS`](writer::UNSYNCED_MAX_MILLIS), many notes in one
//! transaction: one sync a page would cost more than the page.
//!
//! Harvests with the same arguments and the same tokens share one list. A page of
//! such a list counts as delivered only as far as all of them received it. A
//! token of lists with different arguments is ambiguous and is never recovered.

mod writer;

use super::database::ClosableDatabase;
use crate::error::Error;
use crate::oai::Window;
use redb::{Database, ReadableDatabase, ReadableTable};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use writer::{DATES, FIRSTS, KEPT_SECS, LISTS, PAGES, PARTS, TOKENS, VISITS, WALKS, WINDOWS, write};

/// The ledger. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Open>);

#[derive(Debug)]
struct Open {
    store: Arc<ClosableDatabase>,
    /// By repository, when a page of a list was noted last of which not all was asked for, in seconds since 1970.
    windows: Mutex<HashMap<String, u64>>,
    /// To the thread that writes; `None` once it is to end.
    messages: Mutex<Option<SyncSender<Message>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

pub(super) enum Message {
    /// To be written soon.
    DeliveredPage(Box<DeliveredPage>),
    /// The delivered part of a page, by its hash. It is on disk before the sender is answered.
    Durable(Box<DeliveredPage>, u64, SyncSender<bool>),
    /// To be written soon.
    ReplayProgress(ReplayProgress),
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
pub struct DeliveredPage {
    /// The repository.
    pub repository: String,
    /// The verb.
    pub verb: &'static str,
    /// Which page of which list.
    pub place: ListPage,
    /// The query that began the list.
    pub first_query: String,
    /// What of the list was asked for, where the source was asked for more; `None`: all of it.
    pub within: Option<Window>,
    /// Hashes of the items delivered of this page, in their order.
    pub hashes: Vec<u64>,
    /// Whether `hashes` are all of them.
    pub complete: bool,
    /// The token that the page was asked for by, where no earlier page of the list is known.
    pub asked_by: Option<String>,
    /// The token on the page; `None` on the last page, or when it broke off.
    pub next: Option<String>,
    /// Whether the list ends with this page.
    pub ending: ListStatus,
    /// The datestamp of the last item, where the page is whole.
    pub last_datestamp: Option<String>,
    /// Seconds since 1970.
    pub now_secs: u64,
}

/// Whether a list ends with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListStatus {
    /// It continues.
    GoesOn,
    /// It ends for the harvest that received the page.
    Ended,
    /// It ends for every harvest: its tokens lead back.
    Circle,
}

/// How far a list has been walked through that was begun anew for the sake of one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayProgress {
    /// The repository.
    pub repository: String,
    /// The page.
    pub place: ListPage,
    /// The query that goes on with it; `None` when it is over.
    pub query: Option<String>,
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPage {
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
    /// Harvests of the list that are under way.
    #[serde(default)]
    pub(super) harvests: u32,
    /// Changes when a harvest begins the list while no other harvest is under way.
    #[serde(default)]
    pub(super) round: u8,
    /// Whether several harvests were under way at a time in this round.
    #[serde(default)]
    pub(super) is_shared: bool,
    /// Whether a token led to several pages of the list in this round.
    #[serde(default)]
    pub(super) reuses_tokens: bool,
    pub(super) touched_secs: u64,
}

impl ListFacts {
    /// Where several harvests follow tokens that lead to several pages each, nobody knows which page a
    /// harvest has reached: how many harvests there are then.
    pub fn mixed_harvests(&self) -> Option<u32> {
        (self.is_shared && self.reuses_tokens).then_some(self.harvests)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TokenRecord {
    pub(super) place: ListPage,
    /// The lowest page of the list that the token led to.
    #[serde(default)]
    pub(super) lowest_page: u32,
    /// Whether the token was seen in lists with different arguments.
    pub(super) ambiguous: bool,
    /// What was asked for of all lists that it stood in.
    #[serde(default, with = "bounds")]
    pub(super) within: Option<Window>,
}

/// Where a token leads that was given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenTarget {
    /// The page and its list; `None` where the token is one of lists with different arguments.
    pub place: Option<(ListPage, ListFacts)>,
    /// Whether the source gave the token out for several pages, or for several lists.
    pub is_reused: bool,
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
        let store = Arc::new(ClosableDatabase::open(&path, CACHE_BYTES)?);
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
    pub(in crate::store) fn close(&self) {
        self.0.end();
        self.0.store.close();
    }

    /// Writes a page down, soon.
    pub fn note(&self, note: DeliveredPage) {
        self.note_window(&note);
        self.write_soon(Message::DeliveredPage(Box::new(note)));
    }

    fn note_window(&self, note: &DeliveredPage) {
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
    pub fn note_walk(&self, walk: ReplayProgress) {
        self.write_soon(Message::ReplayProgress(walk));
    }

    fn write_soon(&self, message: Message) {
        let sent = self.0.messages().map(|messages| messages.try_send(message));
        match sent {
            Some(Ok(())) => {}
            Some(Err(_)) => tracing::warn!("the ledger cannot keep up; a page is not written down"),
            None => tracing::debug!("another oaimend has the ledger; a page is not written down"),
        }
    }

    /// Writes down the delivered part of a page, which a token of ours calls `part`. Blocks on the disk;
    /// false when it could not be written.
    pub fn note_durably(&self, note: DeliveredPage, part: u64) -> bool {
        self.note_window(&note);
        self.ask(|done| Message::Durable(Box::new(note), part, done))
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
        self.read_at_once(reading)
    }

    /// Reads without waiting for notes that are not written yet.
    fn read_at_once<T>(
        &self,
        reading: impl FnOnce(redb::ReadTransaction) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.0
            .store
            .with(LedgerError::Closed, |database| reading(database.begin_read().map_err(redb::Error::from)?))
    }

    /// Where a token leads that was given out; `None` when it is not known.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn find(
        &self,
        repository: &str,
        verb: &str,
        token: &str,
    ) -> Result<Option<TokenTarget>, LedgerError> {
        self.read(|reading| {
            let Some(leads) = leads_of(&reading, repository, verb, token)? else { return Ok(None) };
            let facts = facts_of(&reading, repository, leads.place.list)?;
            let place = facts.filter(|_| !leads.ambiguous).map(|facts| (leads.place, facts));
            let is_reused = leads.ambiguous || leads.lowest_page < leads.place.page;
            Ok(Some(TokenTarget { place, is_reused, within: leads.within }))
        })
    }

    /// Whether a token leads back: to this page or to an earlier one of its list. Knows what was noted
    /// before the last call of [`Ledger::find`].
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn leads_back(
        &self,
        repository: &str,
        verb: &str,
        token: &str,
        place: ListPage,
    ) -> Result<bool, LedgerError> {
        self.read_at_once(|reading| {
            let leads = leads_of(&reading, repository, verb, token)?;
            Ok(leads.is_some_and(|leads| {
                !leads.ambiguous && leads.place.list == place.list && leads.lowest_page <= place.page
            }))
        })
    }

    /// What is known of a list.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn list(&self, repository: &str, list: u64) -> Result<Option<ListFacts>, LedgerError> {
        self.read(|reading| facts_of(&reading, repository, list))
    }

    /// The earlier page of the list that began with this item, if there was one. Knows what was noted
    /// before the last call of [`Ledger::find`].
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn earlier_page(
        &self,
        repository: &str,
        place: ListPage,
        first: u64,
    ) -> Result<Option<u32>, LedgerError> {
        self.read_at_once(|reading| {
            let Some(firsts) = existing(reading.open_table(FIRSTS))? else { return Ok(None) };
            let page = firsts.get((repository, place.list, first)).map_err(redb::Error::from)?;
            Ok(page.map(|page| page.value()).filter(|page| *page < place.page))
        })
    }

    /// How often the list had a page that began with this item, since it is known to reuse its tokens.
    /// Knows what was noted before the last call of [`Ledger::find`].
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn visits(&self, repository: &str, list: u64, first: u64) -> Result<u32, LedgerError> {
        self.read_at_once(|reading| {
            let Some(visits) = existing(reading.open_table(VISITS))? else { return Ok(0) };
            let count = visits.get((repository, list, first)).map_err(redb::Error::from)?;
            Ok(count.map_or(0, |count| count.value()))
        })
    }

    /// The query that goes on with the walk to this page, if one was left.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn walk(&self, repository: &str, place: ListPage) -> Result<Option<String>, LedgerError> {
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
    pub fn last_datestamp(&self, repository: &str, place: ListPage) -> Result<Option<String>, LedgerError> {
        self.read(|reading| {
            let Some(dates) = existing(reading.open_table(DATES))? else { return Ok(None) };
            let ListPage { list, page } = place;
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
    pub fn delivered_before(&self, repository: &str, place: ListPage) -> Result<Vec<u64>, LedgerError> {
        self.read(|reading| {
            let Some(table) = existing(reading.open_table(PAGES))? else { return Ok(Vec::new()) };
            let pages = (repository, place.list, 0)..(repository, place.list, place.page);
            let mut delivered = Vec::new();
            for page in table.range(pages).map_err(redb::Error::from)? {
                let (_, bytes) = page.map_err(redb::Error::from)?;
                delivered.extend(hashes(bytes.value()));
            }
            Ok(delivered)
        })
    }

    /// The delivered part of this page that a token of ours calls so.
    ///
    /// # Errors
    ///
    /// The ledger cannot be read.
    pub fn part(
        &self,
        repository: &str,
        place: ListPage,
        part: u64,
    ) -> Result<Option<Vec<u64>>, LedgerError> {
        self.read(|reading| {
            let Some(table) = existing(reading.open_table(PARTS))? else { return Ok(None) };
            let key = (repository, place.list, place.page, part);
            let bytes = table.get(key).map_err(redb::Error::from)?;
            Ok(bytes.map(|bytes| hashes(bytes.value()).collect()))
        })
    }
}

/// Hashes as they are written down: 8 bytes each. A rest of fewer bytes is no hash.
pub(super) fn hashes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}

fn leads_of(
    reading: &redb::ReadTransaction,
    repository: &str,
    verb: &str,
    token: &str,
) -> Result<Option<TokenRecord>, LedgerError> {
    let Some(tokens) = existing(reading.open_table(TOKENS))? else { return Ok(None) };
    let leads = tokens.get((repository, verb, token)).map_err(redb::Error::from)?;
    Ok(leads.and_then(|json| serde_json::from_slice(json.value()).ok()))
}

fn facts_of(
    reading: &redb::ReadTransaction,
    repository: &str,
    list: u64,
) -> Result<Option<ListFacts>, LedgerError> {
    let Some(lists) = existing(reading.open_table(LISTS))? else { return Ok(None) };
    let facts = lists.get((repository, list)).map_err(redb::Error::from)?;
    Ok(facts.and_then(|json| serde_json::from_slice(json.value()).ok()))
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
mod tests;
