//! The writer thread of the ledger. It batches records, and decides when they are synced to the disk.

use super::apply::{apply_page, apply_replay};
use super::eviction::Evictions;
use crate::clock;
use crate::store::ledger::{DeliveredPage, ReplayProgress};
use crate::store::redb::database::ClosableDatabase;
use redb::Database;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The messages to the thread.
pub(super) enum Message {
    /// A record to write soon.
    Record(Record),
    /// The delivered part of a page, with its name. The thread answers once it is on disk.
    Part(Box<DeliveredPage>, u64, oneshot::Sender<bool>),
    /// The thread answers once every earlier record can be read.
    Barrier(oneshot::Sender<bool>),
}

/// A record that no caller waits for.
pub(super) enum Record {
    Page(Box<DeliveredPage>),
    Replay(ReplayProgress),
}

/// Most messages in one transaction, beyond those that were waited for.
const BATCH_MAX: usize = 256;
/// Most pages to wait for before they are written, and how long to wait for each.
const GATHERED_MAX: usize = 16;
const GATHER_WITHIN: Duration = Duration::from_millis(5);
/// Longest time that a record is not on disk, in milliseconds, under any load. A killed process loses no older record.
pub(super) const UNSYNCED_MAX_MILLIS: u64 = 1_000;
/// A sync starts when the oldest unsynced record has waited this long. The rest of [`UNSYNCED_MAX_MILLIS`] is for the
/// records that wait to be written, and for the disk.
const SYNC_AFTER: Duration = Duration::from_millis(UNSYNCED_MAX_MILLIS / 2);
/// A sync starts earlier when no message arrives for this long.
const SYNC_WHEN_IDLE: Duration = Duration::from_millis(200);

/// Writes records until every sender is dropped. Readers see them at once. They are on disk when a caller waits for
/// that, and after [`UNSYNCED_MAX_MILLIS`] at the latest. `unwritten` counts the records that readers do not see yet.
pub(super) fn write(database: &ClosableDatabase, messages: &Receiver<Message>, unwritten: &AtomicUsize) {
    let (mut sync_due, mut evictions) = (None, Evictions::default());
    loop {
        let wait = sync_due
            .map_or(SYNC_WHEN_IDLE, |due: Duration| due.saturating_sub(clock::uptime()).min(SYNC_WHEN_IDLE));
        let first = match messages.recv_timeout(wait) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) if sync_due.is_none() => continue,
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let received = clock::uptime();
        let mut batch: Vec<Message> = first.into_iter().collect();
        // No caller waits for a page: wait for more of them.
        while (1..GATHERED_MAX).contains(&batch.len())
            && batch.iter().all(|message| matches!(message, Message::Record(Record::Page(_))))
            && let Ok(message) = messages.recv_timeout(GATHER_WITHIN)
        {
            batch.push(message);
        }
        batch.extend(messages.try_iter().take(BATCH_MAX));
        // One sync serves every caller that waits for the disk.
        let durable = batch.is_empty()
            || sync_due.is_some_and(|due| due <= received)
            || batch.iter().any(|message| matches!(message, Message::Part(..)));
        let written = write_batch(database, &batch, durable, &mut evictions);
        let records = batch.iter().filter(|message| matches!(message, Message::Record(_))).count();
        sync_due = match durable {
            true => None,
            false if records > 0 => sync_due.or(Some(received + SYNC_AFTER)),
            false => sync_due,
        };
        log_failure(&written);
        unwritten.fetch_sub(records, Ordering::SeqCst);
        for message in batch {
            if let Message::Part(_, _, done) | Message::Barrier(done) = message {
                // The waiter is gone; ignore.
                let _ = done.send(written.is_ok());
            }
        }
    }
    if sync_due.is_some() {
        log_failure(&write_batch(database, &[], true, &mut evictions));
    }
}

/// Why a batch is not written; `None`: the database is closed.
type WriteError = Option<redb::Error>;

fn log_failure(written: &Result<(), WriteError>) {
    // The database is closed only after this thread has ended.
    if let Err(Some(error)) = written {
        tracing::error!(
            "the ledger cannot be written to: {error}; check space and rights of the data folder"
        );
    }
}

fn write_batch(
    database: &ClosableDatabase,
    batch: &[Message],
    durable: bool,
    evictions: &mut Evictions,
) -> Result<(), WriteError> {
    if !durable && batch.iter().all(|message| matches!(message, Message::Barrier(_))) {
        return Ok(());
    }
    let written = database.with(|database| write_transaction(database, batch, durable, evictions));
    written.ok_or(None)?.map_err(Some)
}

fn write_transaction(
    database: &Database,
    batch: &[Message],
    durable: bool,
    evictions: &mut Evictions,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    if !durable {
        transaction.set_durability(redb::Durability::None)?;
    }
    for message in batch {
        match message {
            Message::Record(Record::Page(page)) => apply_page(&transaction, page, None, evictions)?,
            Message::Part(page, part, _) => apply_page(&transaction, page, Some(*part), evictions)?,
            Message::Record(Record::Replay(progress)) => apply_replay(&transaction, progress)?,
            Message::Barrier(_) => {}
        }
    }
    Ok(transaction.commit()?)
}
