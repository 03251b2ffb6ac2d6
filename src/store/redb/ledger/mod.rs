//! The list ledger in `data/ledger.redb`.
//!
//! `tables` defines the tables. Reads open a transaction of their own. All writes go through one thread (`writer`),
//! which applies many of them in one transaction (`apply`) and evicts old lists (`eviction`): one sync for each page
//! would cost more than the page.
//!
//! Invariants: a part that [`RedbLedger::write_part`] has recorded is on disk when the call returns. A page that
//! [`ListLedger::record`] has queued is on disk within
//! [`UNSYNCED_MAX_MILLIS`](writer::UNSYNCED_MAX_MILLIS).

mod apply;
mod eviction;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use super::database::ClosableDatabase;
use crate::error::Error;
use crate::store::ledger::{
    DeliveredPage, LedgerError, ListFacts, ListLedger, ListPage, RecordedPart, ReplayProgress,
    ReplayShortcuts, TokenTarget,
};
use async_trait::async_trait;
use eviction::KEPT_SECS;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tables::{
    DATES, FIRSTS, PAGES, PARTS, REPLAYS, VISITS, WINDOWS, existing, hashes, read_list, read_target,
    read_token,
};
use tokio::sync::oneshot;
use writer::{Message, Record, write};

/// The ledger. Clones share it.
#[derive(Clone, Debug)]
pub(in crate::store) struct RedbLedger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: Arc<ClosableDatabase>,
    /// For each repository: when a page was last recorded of which a harvester requested only a part, in seconds
    /// since 1970.
    windows: Mutex<HashMap<String, u64>>,
    /// The number of queued records that cannot be read yet.
    unwritten: Arc<AtomicUsize>,
    /// Sends to the writer thread; `None` once the thread is to end.
    messages: Mutex<Option<SyncSender<Message>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Inner {
    /// Ends the writer thread, which first writes everything it has received.
    fn end(&self) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // The thread logs what it cannot write.
            let _ = writer.join();
        }
    }

    fn messages(&self) -> Option<SyncSender<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

const CACHE_BYTES: usize = 16 << 20;
/// Most records that wait for the writer thread. Further pages are dropped; further parts wait.
const QUEUED_MAX: usize = 1024;

impl RedbLedger {
    /// Opens or creates the ledger in the data folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub(in crate::store) fn open(data: &Path) -> Result<Self, Error> {
        let path = data.join("ledger.redb");
        let database = Arc::new(ClosableDatabase::open(&path, CACHE_BYTES)?);
        let (messages, waiting) = sync_channel(QUEUED_MAX);
        let (to_write, unwritten) = (Arc::clone(&database), Arc::new(AtomicUsize::new(0)));
        let still_unwritten = Arc::clone(&unwritten);
        let writer = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write(&to_write, &waiting, &still_unwritten))
            .map_err(|error| Error::writing(&path, error, "raise the limit of threads"))?;
        let (messages, writer) = (Mutex::new(Some(messages)), Mutex::new(Some(writer)));
        let windows = database.load(&path, read_windows)?;
        Ok(Self(Arc::new(Inner { database, windows: Mutex::new(windows), unwritten, messages, writer })))
    }

    fn note_window(&self, page: &DeliveredPage) {
        if page.within.is_some() {
            self.windows().insert(page.repository.clone(), page.now_secs);
        }
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, record: Record) {
        self.0.unwritten.fetch_add(1, Ordering::SeqCst);
        let sent = self.0.messages().map(|messages| messages.try_send(Message::Record(record)));
        if !matches!(sent, Some(Ok(()))) {
            self.0.unwritten.fetch_sub(1, Ordering::SeqCst);
        }
        match sent {
            Some(Ok(())) => {}
            Some(Err(_)) => tracing::warn!("the queue of the ledger is full; a page is not recorded"),
            None => tracing::debug!("another oaimend has the ledger; a page is not recorded"),
        }
    }

    /// [`ListLedger::record_part`], which blocks on the disk.
    fn write_part(&self, page: DeliveredPage, part: u64) -> bool {
        self.note_window(&page);
        // The part is written when this returns, so `unwritten` does not count it.
        self.send_and_wait(|done| Message::Part(Box::new(page), part, done))
    }

    fn send_and_wait(&self, message: impl FnOnce(oneshot::Sender<bool>) -> Message) -> bool {
        let (done, answered) = oneshot::channel();
        let sent = self.0.messages().is_some_and(|messages| messages.send(message(done)).is_ok());
        sent && answered.blocking_recv().unwrap_or(false)
    }

    /// Waits until every queued record can be read, without a thread of its own unless the queue is full.
    async fn settle(&self) {
        if self.0.unwritten.load(Ordering::SeqCst) == 0 {
            return;
        }
        let (done, answered) = oneshot::channel();
        let sent = self.0.messages().map(|messages| messages.try_send(Message::Barrier(done)));
        match sent {
            // The ledger is being closed, or the writer has stopped; reads fail or find what there is.
            Some(Ok(())) => drop(answered.await),
            Some(Err(TrySendError::Full(_))) => {
                let waited = self.blocking(|ledger| Ok(ledger.send_and_wait(Message::Barrier)));
                drop(waited.await);
            }
            Some(Err(TrySendError::Disconnected(_))) | None => {}
        }
    }

    /// Reads, after every queued record is written.
    fn read<T>(
        &self,
        reading: impl FnOnce(ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, LedgerError> {
        if self.0.unwritten.load(Ordering::SeqCst) > 0 {
            self.send_and_wait(Message::Barrier);
        }
        self.read_now(reading)
    }

    /// Reads without waiting for queued records. A read of a few rows takes some microseconds, less than a change of
    /// threads, so that tasks may call this too. A ledger that is being closed counts as closed.
    fn read_now<T>(
        &self,
        reading: impl FnOnce(ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, LedgerError> {
        let read = self.0.database.try_with(|database| reading(database.begin_read()?));
        let error = |error| LedgerError::Database(Box::new(error));
        read.ok_or(LedgerError::Closed)?.map_err(error)
    }

    fn token_points_back(
        &self,
        repository: &str,
        verb: &str,
        token: &str,
        place: ListPage,
    ) -> Result<bool, LedgerError> {
        self.read_now(|reading| {
            let record = read_token(&reading, repository, verb, token)?;
            Ok(record.is_some_and(|record| {
                !record.ambiguous && record.place.list == place.list && record.lowest_page <= place.page
            }))
        })
    }

    fn list(&self, repository: &str, list: u64) -> Result<Option<ListFacts>, LedgerError> {
        self.read(|reading| read_list(&reading, repository, list))
    }

    /// The earlier page of the list that started with this item, if there was one.
    fn earlier_page(
        &self,
        repository: &str,
        place: ListPage,
        first: u64,
    ) -> Result<Option<u32>, LedgerError> {
        self.read_now(|reading| {
            let Some(firsts) = existing(reading.open_table(FIRSTS))? else { return Ok(None) };
            let page = firsts.get((repository, place.list, first))?;
            Ok(page.map(|page| page.value()).filter(|page| *page < place.page))
        })
    }

    /// How many pages of the list started with this item, since the list is known to reuse its tokens.
    fn visits(&self, repository: &str, list: u64, first: u64) -> Result<u32, LedgerError> {
        self.read_now(|reading| {
            let Some(visits) = existing(reading.open_table(VISITS))? else { return Ok(0) };
            let count = visits.get((repository, list, first))?;
            Ok(count.map_or(0, |count| count.value()))
        })
    }

    /// The query that continues the replay up to this page, if one is recorded.
    fn replay_query(&self, repository: &str, place: ListPage) -> Result<Option<String>, LedgerError> {
        self.read(|reading| {
            let Some(replays) = existing(reading.open_table(REPLAYS))? else { return Ok(None) };
            let query = replays.get((repository, place.list, place.page))?;
            Ok(query.map(|query| query.value().to_owned()))
        })
    }

    /// The datestamp of the last item before this page, or of an earlier item.
    fn last_datestamp(&self, repository: &str, place: ListPage) -> Result<Option<String>, LedgerError> {
        self.read(|reading| {
            let Some(dates) = existing(reading.open_table(DATES))? else { return Ok(None) };
            let ListPage { list, page } = place;
            let before = dates.range((repository, list, 0)..(repository, list, page))?;
            let last = before.last().transpose()?;
            Ok(last.map(|(_, datestamp)| datestamp.value().to_owned()))
        })
    }

    /// The items that the list delivered before this page.
    fn delivered_before(&self, repository: &str, place: ListPage) -> Result<Vec<u64>, LedgerError> {
        self.read(|reading| {
            let Some(table) = existing(reading.open_table(PAGES))? else { return Ok(Vec::new()) };
            let pages = (repository, place.list, 0)..(repository, place.list, place.page);
            let mut delivered = Vec::new();
            for page in table.range(pages)? {
                let (_, bytes) = page?;
                delivered.extend(hashes(bytes.value()));
            }
            Ok(delivered)
        })
    }

    /// The delivered part of this page that has this name.
    fn part(&self, repository: &str, place: ListPage, part: u64) -> Result<Option<Vec<u64>>, LedgerError> {
        self.read(|reading| {
            let Some(table) = existing(reading.open_table(PARTS))? else { return Ok(None) };
            let bytes = table.get((repository, place.list, place.page, part))?;
            Ok(bytes.map(|bytes| hashes(bytes.value()).collect()))
        })
    }

    /// Runs `task` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Self) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let ledger = self.clone();
        match tokio::task::spawn_blocking(move || task(&ledger)).await {
            Ok(done) => done,
            Err(error) => Err(LedgerError::Stopped(error.to_string())),
        }
    }
}

#[async_trait]
impl ListLedger for RedbLedger {
    fn record(&self, page: DeliveredPage) {
        self.note_window(&page);
        self.queue(Record::Page(Box::new(page)));
    }

    async fn record_part(&self, page: DeliveredPage, part: u64) -> bool {
        self.blocking(move |ledger| Ok(ledger.write_part(page, part))).await.unwrap_or(false)
    }

    fn record_replay(&self, progress: ReplayProgress) {
        self.queue(Record::Replay(progress));
    }

    fn has_windows(&self, repository: &str, now_secs: u64) -> bool {
        // An abandoned list is removed only when the next list starts, which may be some time later.
        self.windows().get(repository).is_some_and(|recorded| now_secs < recorded + 2 * KEPT_SECS)
    }

    async fn token_target(
        &self,
        repository: &str,
        verb: &str,
        token: &str,
    ) -> Result<Option<TokenTarget>, LedgerError> {
        self.settle().await;
        self.read_now(|reading| read_target(&reading, repository, verb, token))
    }

    async fn points_back(
        &self,
        repository: &str,
        verb: &str,
        token: &str,
        place: ListPage,
    ) -> Result<bool, LedgerError> {
        self.token_points_back(repository, verb, token, place)
    }

    async fn recorded_part(
        &self,
        repository: &str,
        place: ListPage,
        part: u64,
        with_earlier: bool,
    ) -> Result<RecordedPart, LedgerError> {
        let repository = repository.to_owned();
        let task = move |ledger: &Self| {
            let list = ledger.list(&repository, place.list)?;
            let is_mixed = list.as_ref().is_some_and(|list| list.mixed_harvests().is_some());
            let earlier = match with_earlier && !is_mixed {
                true => ledger.delivered_before(&repository, place)?,
                false => Vec::new(),
            };
            Ok(RecordedPart { hashes: ledger.part(&repository, place, part)?, earlier, list })
        };
        self.blocking(task).await
    }

    async fn suspected_loop(
        &self,
        repository: &str,
        place: ListPage,
        first_item: u64,
        mixed_harvests: Option<u32>,
    ) -> Result<Option<Vec<u64>>, LedgerError> {
        // Each of several harvests may reach a page that another one received, and may request it twice.
        let may_loop = match (self.earlier_page(repository, place, first_item)?, mixed_harvests) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(_), Some(harvests)) => {
                self.visits(repository, place.list, first_item)? > harvests.saturating_add(1)
            }
        };
        if !may_loop {
            return Ok(None);
        }
        let repository = repository.to_owned();
        self.blocking(move |ledger| ledger.delivered_before(&repository, place).map(Some)).await
    }

    async fn replay_start(
        &self,
        repository: &str,
        place: ListPage,
    ) -> Result<Option<(String, Vec<u64>)>, LedgerError> {
        let repository = repository.to_owned();
        let task = move |ledger: &Self| {
            let list = ledger.list(&repository, place.list)?.filter(|list| list.complete);
            let Some(list) = list else { return Ok(None) };
            Ok(Some((list.first_query, ledger.delivered_before(&repository, place)?)))
        };
        self.blocking(task).await
    }

    async fn replay_shortcuts(
        &self,
        repository: &str,
        place: ListPage,
    ) -> Result<ReplayShortcuts, LedgerError> {
        let repository = repository.to_owned();
        let task = move |ledger: &Self| {
            let query = ledger.replay_query(&repository, place)?;
            Ok(ReplayShortcuts { query, last_datestamp: ledger.last_datestamp(&repository, place)? })
        };
        self.blocking(task).await
    }

    fn close(&self) {
        self.0.end();
        self.0.database.close();
    }
}

fn read_windows(database: &Database) -> Result<HashMap<String, u64>, redb::Error> {
    let reading = database.begin_read()?;
    let Some(windows) = existing(reading.open_table(WINDOWS))? else { return Ok(HashMap::new()) };
    let mut known = HashMap::new();
    for row in windows.iter()? {
        let (repository, recorded) = row?;
        known.insert(repository.value().to_owned(), recorded.value());
    }
    Ok(known)
}
