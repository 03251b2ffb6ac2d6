//! The rows that are not in the database yet, and the thread that writes them.
//!
//! A record changes rows in memory, where readers see it at once. The thread takes all changed rows together and
//! writes them in one transaction, with one sync. Rows that change meanwhile wait for the next transaction.

use super::eviction::make_room;
use super::rows::{DatabaseRows, Layer, ROWS, View, list_of_key, state_of_key};
use crate::redb::database::{SharedDatabase, Unavailable};
use oaimend_base::clock;
use oaimend_oai::UnixSecs;
use oaimend_store::ledger::{Evictions, RowCounts};
use redb::{Database, ReadableDatabase, ReadableTable};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest time that a record is not on disk, in milliseconds, under any load. A killed process loses no older record.
pub(super) const UNSYNCED_MAX_MILLIS: u64 = 1_000;
/// A transaction starts when the oldest changed row has waited this long. The rest of [`UNSYNCED_MAX_MILLIS`] is for the
/// transaction before it, and for the disk.
const WRITE_AFTER: Duration = Duration::from_millis(UNSYNCED_MAX_MILLIS / 2);
/// A transaction starts earlier when the changed rows exceed this size, in bytes.
const WRITE_AT_BYTES: usize = 4 << 20;
/// Maximum number of bytes of changed rows that no transaction has taken. Further pages are dropped. The rows of a
/// running transaction can be as many again.
const UNWRITTEN_BYTES_MAX: usize = 16 << 20;

/// The rows that are not in the database yet.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    state: Mutex<State>,
    /// Notified when the thread has to look.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The rows that changed since the last transaction began.
    newest: Layer,
    /// The rows of the transaction that is running.
    in_writing: Option<Arc<Layer>>,
    /// When the oldest of the newest rows changed.
    since: Option<Duration>,
    /// The latest time of a record, in seconds since 1970.
    now_secs: UnixSecs,
    /// Receive whether the newest rows are on disk.
    waiters: Vec<oneshot::Sender<bool>>,
    is_ending: bool,
}

/// Why a record changed nothing.
#[derive(Debug)]
pub(super) enum ChangeError {
    /// The ledger is closed.
    Closed,
    /// Too many rows wait for the disk.
    Full,
    /// The database cannot be read.
    Database(Box<dyn std::error::Error + Send + Sync>),
}

impl Unwritten {
    /// Changes rows. `now_secs` are seconds since 1970. The receiver is sent whether the rows are on disk; with one the
    /// rows are changed even if too many wait.
    pub(super) fn change(
        &self,
        database: &SharedDatabase,
        now_secs: Option<UnixSecs>,
        waiter: Option<oneshot::Sender<bool>>,
        change: impl FnOnce(&mut View<'_>) -> Result<(), redb::Error>,
    ) -> Result<(), ChangeError> {
        let mut state = self.state();
        if state.is_ending {
            return Err(ChangeError::Closed);
        }
        if waiter.is_none() && state.newest.bytes >= UNWRITTEN_BYTES_MAX {
            return Err(ChangeError::Full);
        }
        match state.with_view(database, |mut view| change(&mut view)) {
            Ok(changed) => changed.map_err(|error| ChangeError::Database(Box::new(error)))?,
            Err(Unavailable::Closed) => return Err(ChangeError::Closed),
            Err(Unavailable::Failed(error)) => return Err(ChangeError::Database(error)),
        }
        state.now_secs = state.now_secs.max(now_secs.unwrap_or_default());
        let is_first = state.since.is_none();
        state.since.get_or_insert_with(clock::uptime);
        state.waiters.extend(waiter);
        if is_first || state.is_urgent() {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Reads rows.
    pub(super) fn read<T>(
        &self,
        database: &SharedDatabase,
        read: impl FnOnce(View<'_>) -> Result<T, redb::Error>,
    ) -> Result<Result<T, redb::Error>, Unavailable> {
        self.state().with_view(database, read)
    }

    /// Ends the thread after it has written all rows.
    pub(super) fn end(&self) {
        self.state().is_ending = true;
        self.changed.notify_one();
    }

    /// Writes rows until the end. Rows that cannot be written wait for the next transaction, unless too many wait:
    /// then it calls `note_loss`.
    pub(super) fn write(&self, database: &SharedDatabase, note_loss: &dyn Fn()) {
        let mut evictions = Evictions::default();
        while let Some(Batch { rows, waiters, now_secs }) = self.next_batch() {
            let is_in_use =
                |list: &[u8]| rows.rows.contains_key(list) || self.state().newest.rows.contains_key(list);
            let write =
                |database: &Database| write_rows(database, &rows, now_secs, &mut evictions, &is_in_use);
            // The database is closed only after this thread has ended.
            let written: Result<(), Box<dyn std::error::Error + Send + Sync>> = match database.with(write) {
                Ok(written) => written.map_err(Into::into),
                Err(error) => Err(error.into()),
            };
            let is_written = written.is_ok();
            match written {
                Ok(()) => self.state().in_writing = None,
                Err(error) => {
                    tracing::error!(
                        "the ledger cannot be written to: {error}; check space and rights of the data folder"
                    );
                    evictions = Evictions::default();
                    if !self.state().put_back(&rows) {
                        note_loss();
                    }
                }
            }
            for waiter in waiters {
                // The waiter is gone; ignore.
                let _ = waiter.send(is_written);
            }
        }
    }

    /// Waits until rows are to be written; `None` at the end.
    fn next_batch(&self) -> Option<Batch> {
        let mut state = self.state();
        loop {
            let waited = state.since.map(|since| clock::uptime().saturating_sub(since));
            let is_due = waited.is_some_and(|waited| waited >= WRITE_AFTER || state.is_urgent());
            state = match waited {
                Some(_) if is_due => break,
                None if state.is_ending => return None,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(waited) => {
                    let waiting = self.changed.wait_timeout(state, WRITE_AFTER - waited);
                    waiting.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.since = None;
        let rows = Arc::new(std::mem::take(&mut state.newest));
        state.in_writing = Some(Arc::clone(&rows));
        Some(Batch { rows, waiters: std::mem::take(&mut state.waiters), now_secs: state.now_secs })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows of one transaction.
struct Batch {
    rows: Arc<Layer>,
    waiters: Vec<oneshot::Sender<bool>>,
    now_secs: UnixSecs,
}

impl State {
    /// Lets the rows of a failed transaction wait for the next one. Returns whether there is room for them; at the end
    /// there is no next one.
    fn put_back(&mut self, failed: &Layer) -> bool {
        self.in_writing = None;
        let has_room = !self.is_ending && self.newest.bytes + failed.bytes <= UNWRITTEN_BYTES_MAX;
        if has_room {
            self.newest.add_older(failed);
            self.since.get_or_insert_with(clock::uptime);
        }
        has_room
    }

    /// Whether the rows must not wait.
    fn is_urgent(&self) -> bool {
        !self.waiters.is_empty() || self.is_ending || self.newest.bytes >= WRITE_AT_BYTES
    }

    /// Runs a task with all rows.
    fn with_view<T>(
        &mut self,
        database: &SharedDatabase,
        task: impl FnOnce(View<'_>) -> Result<T, redb::Error>,
    ) -> Result<Result<T, redb::Error>, Unavailable> {
        database.try_with(|database| {
            let (newest, in_writing) = (&mut self.newest, self.in_writing.as_ref());
            task(View { newest, in_writing, database: DatabaseRows::new(database.begin_read()?) })
        })
    }
}

/// Writes rows in one transaction, and makes room for them. `is_in_use`: whether the list with this key must stay.
fn write_rows(
    database: &Database,
    layer: &Layer,
    now_secs: UnixSecs,
    evictions: &mut Evictions,
    is_in_use: &dyn Fn(&[u8]) -> bool,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(ROWS)?;
        let mut new: BTreeMap<&str, RowCounts> = BTreeMap::new();
        for (key, value) in &layer.rows {
            if let Some((repository, _)) = list_of_key(key) {
                let is_new = value.is_some() && table.get(key.as_slice())?.is_none();
                new.entry(repository).or_default().lists += u64::from(is_new);
            } else if let Some(repository) = state_of_key(key) {
                new.entry(repository).or_default().states += 1;
            }
        }
        for new in new.into_iter().filter(|(_, new)| new.lists > 0) {
            make_room(&mut table, evictions, new, now_secs, is_in_use)?;
        }
        for (key, value) in &layer.rows {
            match value {
                Some(value) => drop(table.insert(key.as_slice(), value.as_slice())?),
                None => drop(table.remove(key.as_slice())?),
            }
        }
    }
    Ok(transaction.commit()?)
}
