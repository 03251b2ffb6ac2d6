//! The list ledger in `data/ledger.redb`.
//!
//! `rows` defines the rows and their keys, and `records` their values. A record changes rows in memory (`apply`),
//! where readers see it at once. One thread (`writer`) writes the rows of many records in one transaction, and evicts
//! old lists (`eviction`): one transaction for each page would cost more than the page.
//!
//! Invariants: a part that [`ListLedger::record_part`] has recorded is on disk when the call returns. A page that
//! [`ListLedger::record`] has taken is on disk within [`UNSYNCED_MAX_MILLIS`](writer::UNSYNCED_MAX_MILLIS).

mod apply;
mod eviction;
mod origins;
mod records;
mod rows;
#[cfg(test)]
mod tests;
mod writer;

use super::database::{SharedDatabase, Unavailable};
use apply::{apply_page, apply_replay};
use async_trait::async_trait;
use oaimend_base::error::Error;
use oaimend_oai::{UnixSecs, Verb};
use oaimend_store::RepositoryId;
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::ledger::{
    DeliveredPage, LedgerError, ListFacts, ListLedger, ListPage, RecordedPart, ReplayProgress,
    ReplayShortcuts, TokenOrigin, TokenRecord, TokenTarget, window_counts,
};
use origins::Origins;
use records::{find_known_token, find_list, find_token, hashes, number, secs, text};
use redb::{Database, ReadableDatabase, TableHandle as _};
use rows::{DatabaseRows, ListRow, ROWS, View};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use writer::{ChangeError, Unwritten};

/// The ledger. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct RedbLedger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: Arc<SharedDatabase>,
    /// For each repository: when a page was last recorded of which a harvester requested only a part, in seconds
    /// since 1970.
    windows: Mutex<HashMap<String, UnixSecs>>,
    unwritten: Arc<Unwritten>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Changes when a page is not recorded.
    epoch: Arc<AtomicU64>,
    origins: Origins,
}

impl Inner {
    /// Ends the writer thread, which first writes everything that was recorded.
    fn end(&self) {
        self.unwritten.end();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // The thread logs what it cannot write.
            let is_written = writer.join().is_ok();
            let epoch = self.epoch.load(Ordering::Relaxed);
            let saved = self.database.with(|database| save_epoch(database, is_written.then_some(epoch)));
            if let Ok(Err(error)) = saved {
                tracing::debug!(%error, "the ledger is not marked as whole; cached pages of lists are not used");
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

const CACHE_BYTES: usize = 16 << 20;

impl RedbLedger {
    /// Opens or creates the ledger in the data folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub(crate) fn open(data: &Path, databases: &Databases) -> Result<Self, Error> {
        let path = data.join("ledger.redb");
        let database = SharedDatabase::open_among(databases, StoreName::Ledger, &path, CACHE_BYTES)?;
        let (windows, epoch) = database.load(|database| {
            remove_other_tables(database)?;
            let epoch = read_epoch(database)?;
            // The row is missing while the ledger is open, and after a kill.
            save_epoch(database, None)?;
            Ok((read_windows(database)?, epoch))
        })?;
        let epoch = Arc::new(AtomicU64::new(epoch.unwrap_or_else(|| fastrand::u64(..))));
        let unwritten = Arc::new(Unwritten::default());
        let (to_write, rows, lost) = (Arc::clone(&database), Arc::clone(&unwritten), Arc::clone(&epoch));
        let note_loss = move || lost.store(fastrand::u64(..), Ordering::Relaxed);
        let writer = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || rows.write(&to_write, &note_loss))
            .map_err(|error| Error::writing(&path, error, "raise the limit of threads"))?;
        let (windows, writer) = (Mutex::new(windows), Mutex::new(Some(writer)));
        Ok(Self(Arc::new(Inner { database, windows, unwritten, writer, epoch, origins: Origins::default() })))
    }

    fn note_window(&self, page: &DeliveredPage) {
        if page.within.is_some() {
            self.windows().insert(page.repository.clone(), page.now_secs);
        }
    }

    /// Records a page in the rows, or a part of it.
    fn apply(&self, view: &mut View<'_>, page: &DeliveredPage, part: Option<u64>) -> Result<(), redb::Error> {
        let record = apply_page(view, page, part)?;
        if let (Some(token), Some(record)) = (&page.next_token, record) {
            self.0.origins.note((RepositoryId(&page.repository), page.verb, token), record.token_origin());
        }
        Ok(())
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<String, UnixSecs>> {
        self.0.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes rows; returns whether they are changed.
    fn change(
        &self,
        now_secs: Option<UnixSecs>,
        waiter: Option<oneshot::Sender<bool>>,
        change: impl FnOnce(&mut View<'_>) -> Result<(), redb::Error>,
    ) -> bool {
        let changed = self.0.unwritten.change(&self.0.database, now_secs, waiter, change);
        match &changed {
            Ok(()) => {}
            Err(ChangeError::Closed) => {
                tracing::debug!("another oaimend has the ledger; a page is not recorded");
            }
            Err(ChangeError::Full) => {
                tracing::warn!(
                    "the ledger is written too slowly; a page is not recorded; check the load of the disk with the data folder"
                );
            }
            Err(ChangeError::Database(error)) => {
                tracing::error!(
                    "the ledger cannot be read: {error}; a page is not recorded; check the data folder"
                );
            }
        }
        changed.is_ok()
    }

    /// Reads rows. A read of a few rows takes some microseconds, less than a change of threads, so that tasks may call
    /// this. A ledger that is being closed counts as closed.
    fn read<T>(&self, read: impl FnOnce(View<'_>) -> Result<T, redb::Error>) -> Result<T, LedgerError> {
        match self.0.unwritten.read(&self.0.database, read) {
            Ok(read) => read.map_err(|error| LedgerError::Database(Box::new(error))),
            Err(Unavailable::Closed) => Err(LedgerError::Closed),
            Err(Unavailable::Failed(error)) => Err(LedgerError::Database(error)),
        }
    }

    /// Reads all rows with these keys. It may read megabytes, but records do not wait for it meanwhile.
    fn read_range(&self, keys: Range<Vec<u8>>) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, LedgerError> {
        let range = self.read(|view| Ok(view.range(keys)))?;
        range.read().map_err(|error| LedgerError::Database(Box::new(error)))
    }

    fn token_points_back(
        &self,
        repository: RepositoryId<'_>,
        verb: Verb,
        token: &str,
        place: ListPage,
    ) -> Result<bool, LedgerError> {
        self.read(|view| {
            let record = find_token(&view, repository, verb, token)?;
            Ok(record.is_some_and(|record| record.points_back(place)))
        })
    }

    fn list(&self, repository: RepositoryId<'_>, list: u64) -> Result<Option<ListFacts>, LedgerError> {
        self.read(|view| find_list(&view, repository, list))
    }

    /// The row of a list, as `read` returns it.
    fn row<T>(
        &self,
        repository: RepositoryId<'_>,
        list: u64,
        row: ListRow<'_>,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, LedgerError> {
        self.read(|view| view.find(&rows::of_list(repository, list, row), read))
    }

    /// The lowest page of the list that started with this item.
    fn first_item_page(
        &self,
        repository: RepositoryId<'_>,
        list: u64,
        first: u64,
    ) -> Result<Option<u32>, LedgerError> {
        self.row(repository, list, ListRow::First(first), number)
    }

    /// How many pages of the list started with this item, since the list is known to reuse its tokens.
    fn visits(&self, repository: RepositoryId<'_>, list: u64, first: u64) -> Result<u32, LedgerError> {
        Ok(self.row(repository, list, ListRow::Visits(first), number)?.unwrap_or(0))
    }

    /// The query that continues the replay up to this page, if one is recorded.
    fn replay_query(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<Option<String>, LedgerError> {
        self.row(repository, place.list, ListRow::Replay(place.page), text)
    }

    /// The datestamp of the last item before this page, or of an earlier item.
    fn last_datestamp(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<Option<String>, LedgerError> {
        let key = |page| rows::of_list(repository, place.list, ListRow::Date(page));
        let dates = self.read_range(key(0)..key(place.page))?;
        Ok(dates.last_key_value().map(|(_, date)| text(date)))
    }

    /// The items that the list delivered before this page.
    fn delivered_before(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<Vec<u64>, LedgerError> {
        let key = |page| rows::of_list(repository, place.list, ListRow::Page(page));
        let pages = self.read_range(key(0)..key(place.page))?;
        Ok(pages.values().flat_map(|page| hashes(page)).collect())
    }

    /// The hashes of the identifiers that the list delivered before this page; `None` if they are not known of each page.
    fn names_before(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<Option<Vec<u64>>, LedgerError> {
        let (names, pages) = self.known_names_before(repository, place)?;
        Ok((pages == u64::from(place.page)).then_some(names))
    }

    /// The hashes of the identifiers on the pages before this one of which they are known, and the number of these pages.
    fn known_names_before(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<(Vec<u64>, u64), LedgerError> {
        let key = |page| rows::of_list(repository, place.list, ListRow::Names(page));
        let pages = self.read_range(key(0)..key(place.page))?;
        Ok((pages.values().flat_map(|page| hashes(page)).collect(), pages.len() as u64))
    }

    /// The delivered part of this page that has this name.
    fn part(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
        part: u64,
    ) -> Result<Option<Vec<u64>>, LedgerError> {
        self.row(repository, place.list, ListRow::Part(place.page, part), |bytes| hashes(bytes).collect())
    }

    /// The hashes of the identifiers in the delivered part of this page. Earlier versions did not record them.
    fn part_names(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
        part: u64,
    ) -> Result<Vec<u64>, LedgerError> {
        let row = ListRow::PartNames(place.page, part);
        let names = self.row(repository, place.list, row, |bytes| hashes(bytes).collect())?;
        Ok(names.unwrap_or_default())
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
        if !self.change(Some(page.now_secs), None, |view| self.apply(view, &page, None)) {
            self.0.epoch.store(fastrand::u64(..), Ordering::Relaxed);
        }
    }

    async fn record_part(&self, page: DeliveredPage, part: u64) -> bool {
        self.note_window(&page);
        let (written, is_written) = oneshot::channel();
        let is_changed =
            self.change(Some(page.now_secs), Some(written), |view| self.apply(view, &page, Some(part)));
        is_changed && is_written.await.unwrap_or(false)
    }

    fn record_replay(&self, progress: ReplayProgress) {
        self.change(None, None, |view| {
            apply_replay(view, &progress);
            Ok(())
        });
    }

    async fn has_windows(&self, repository: RepositoryId<'_>, now_secs: UnixSecs) -> bool {
        self.windows().get(repository.0).is_some_and(|recorded| window_counts(*recorded, now_secs))
    }

    async fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Relaxed)
    }

    async fn token_origin(&self, repository: RepositoryId<'_>, verb: Verb, token: &str) -> TokenOrigin {
        let name = (repository, verb, token);
        if let Some(origin) = self.0.origins.find(name) {
            return origin;
        }
        let read = self.read(|view| {
            let record = find_token(&view, repository, verb, token)?;
            let origin = record.as_ref().map_or(TokenOrigin::Unknown, TokenRecord::token_origin);
            self.0.origins.note(name, origin);
            Ok(origin)
        });
        read.unwrap_or(TokenOrigin::Ambiguous)
    }

    async fn token_target(
        &self,
        repository: RepositoryId<'_>,
        verb: Verb,
        token: &str,
    ) -> Result<Option<TokenTarget>, LedgerError> {
        let token = self.read(|view| find_known_token(&view, repository, verb, token))?;
        Ok(token.map(TokenTarget::from))
    }

    async fn points_back(
        &self,
        repository: RepositoryId<'_>,
        verb: Verb,
        token: &str,
        place: ListPage,
    ) -> Result<bool, LedgerError> {
        self.token_points_back(repository, verb, token, place)
    }

    async fn recorded_part(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
        part: u64,
        with_earlier: bool,
    ) -> Result<RecordedPart, LedgerError> {
        let repository = repository.0.to_owned();
        let task = move |ledger: &Self| {
            let list = ledger.list(RepositoryId(&repository), place.list)?;
            let is_mixed = list.as_ref().is_some_and(|list| list.mixed_harvests().is_some());
            let (earlier, earlier_names) = if with_earlier && !is_mixed {
                let (names, _) = ledger.known_names_before(RepositoryId(&repository), place)?;
                (ledger.delivered_before(RepositoryId(&repository), place)?, names)
            } else {
                (Vec::new(), Vec::new())
            };
            let hashes = ledger.part(RepositoryId(&repository), place, part)?;
            let names = ledger.part_names(RepositoryId(&repository), place, part)?;
            Ok(RecordedPart { hashes, names, earlier, earlier_names, list })
        };
        self.blocking(task).await
    }

    async fn suspected_loop(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
        first_item: u64,
        mixed_harvests: Option<u32>,
    ) -> Result<Option<Vec<u64>>, LedgerError> {
        let known = self.first_item_page(repository, place.list, first_item)?;
        let visits = match mixed_harvests {
            Some(_) => self.visits(repository, place.list, first_item)?,
            None => 0,
        };
        if !place.may_loop(known, visits, mixed_harvests) {
            return Ok(None);
        }
        let repository = repository.0.to_owned();
        self.blocking(move |ledger| ledger.delivered_before(RepositoryId(&repository), place).map(Some)).await
    }

    async fn delivered_names(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
        list_size: u64,
    ) -> Result<Option<Vec<u64>>, LedgerError> {
        let list = self.list(repository, place.list)?;
        if !list.is_some_and(|list| list.has_size(list_size)) {
            return Ok(None);
        }
        let repository = repository.0.to_owned();
        self.blocking(move |ledger| ledger.names_before(RepositoryId(&repository), place)).await
    }

    async fn replay_start(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<Option<(String, Vec<u64>)>, LedgerError> {
        let repository = repository.0.to_owned();
        let task = move |ledger: &Self| {
            let list = ledger.list(RepositoryId(&repository), place.list)?.filter(|list| list.complete);
            let Some(list) = list else { return Ok(None) };
            Ok(Some((list.first_query, ledger.delivered_before(RepositoryId(&repository), place)?)))
        };
        self.blocking(task).await
    }

    async fn replay_shortcuts(
        &self,
        repository: RepositoryId<'_>,
        place: ListPage,
    ) -> Result<ReplayShortcuts, LedgerError> {
        let repository = repository.0.to_owned();
        let task = move |ledger: &Self| {
            let query = ledger.replay_query(RepositoryId(&repository), place)?;
            Ok(ReplayShortcuts {
                query,
                last_datestamp: ledger.last_datestamp(RepositoryId(&repository), place)?,
            })
        };
        self.blocking(task).await
    }

    fn close(&self) {
        self.0.end();
        self.0.database.close();
    }
}

/// The epoch of a ledger that was closed after everything was written.
fn read_epoch(database: &Database) -> Result<Option<u64>, redb::Error> {
    let rows = DatabaseRows::new(database.begin_read()?).range(&rows::epoch())?;
    Ok(rows.into_values().next().map(|epoch| epoch.try_into().map_or(0, u64::from_le_bytes)))
}

/// Saves the epoch, or removes it.
fn save_epoch(database: &Database, epoch: Option<u64>) -> Result<(), redb::Error> {
    let (transaction, key) = (database.begin_write()?, rows::epoch().start);
    {
        let mut table = transaction.open_table(ROWS)?;
        match epoch {
            Some(epoch) => drop(table.insert(key.as_slice(), epoch.to_le_bytes().as_slice())?),
            None => drop(table.remove(key.as_slice())?),
        }
    }
    Ok(transaction.commit()?)
}

fn read_windows(database: &Database) -> Result<HashMap<String, UnixSecs>, redb::Error> {
    let rows = DatabaseRows::new(database.begin_read()?).range(&rows::windows())?;
    let window = |(key, at): (Vec<u8>, Vec<u8>)| Some((rows::window_of_key(&key)?.to_owned(), secs(&at)));
    Ok(rows.into_iter().filter_map(window).collect())
}

/// Removes the tables of earlier formats. Their lists are forgotten.
fn remove_other_tables(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    let others: Vec<_> = transaction.list_tables()?.filter(|table| table.name() != ROWS.name()).collect();
    if others.is_empty() {
        return Ok(());
    }
    for table in others {
        transaction.delete_table(table)?;
    }
    Ok(transaction.commit()?)
}
