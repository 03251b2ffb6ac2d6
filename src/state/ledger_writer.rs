//! The one thread that writes to the ledger: its tables, and what is kept in them how long.

use super::ledger::{Leads, LedgerError, ListFacts, Message, Note, Place, Walk};
use super::store::Store;
use crate::clock;
use redb::{Database, ReadableTable, TableDefinition};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// By repository and list.
pub(super) const LISTS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("lists");
/// By repository, list and page: the hashes, 8 bytes each.
pub(super) const PAGES: TableDefinition<'_, (&str, u64, u32), &[u8]> = TableDefinition::new("pages");
/// By repository, list and the hash of a page's first item: the page.
pub(super) const FIRSTS: TableDefinition<'_, (&str, u64, u64), u32> = TableDefinition::new("firsts");
/// By repository, verb and token.
pub(super) const TOKENS: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("tokens");

/// By repository, list and page: the datestamp of the page's last item.
pub(super) const DATES: TableDefinition<'_, (&str, u64, u32), &str> = TableDefinition::new("dates");
/// By repository, list and page: the query that goes on with the walk to it.
pub(super) const WALKS: TableDefinition<'_, (&str, u64, u32), &str> = TableDefinition::new("walks");

/// By repository: when a page of a list was noted last of which not all was asked for, in seconds since 1970.
pub(super) const WINDOWS: TableDefinition<'_, &str, u64> = TableDefinition::new("windows");

/// Notes in one transaction.
const NOTES_TOGETHER_MAX: usize = 256;
/// Notes that are waited for before they are written, and how long for each.
const NOTES_GATHERED_MAX: usize = 16;
const GATHER_WITHIN: Duration = Duration::from_millis(5);
/// Longest that a note is not on disk, under any load. A kill of the process loses no older note.
pub(super) const UNSYNCED_MAX: Duration = Duration::from_secs(1);
/// A sync begins when the oldest unsynced note has waited this long. The rest of [`UNSYNCED_MAX`] is for
/// the notes that wait to be written, and for the disk.
const SYNC_AFTER: Duration = Duration::from_millis(UNSYNCED_MAX.as_millis() as u64 / 2);
/// A sync begins earlier when no message came for this long.
const SYNC_WHEN_IDLE: Duration = Duration::from_millis(200);
/// Items of a list that are remembered: 8 MB. A longer list is not recovered.
const ITEMS_MAX: u64 = 1_000_000;
/// How long a list is remembered that nobody goes on with, in seconds.
pub(super) const KEPT_SECS: u64 = 3 * 24 * 3600;
/// Lists of a repository that are remembered.
pub(super) const LISTS_MAX: u64 = 1_000;
/// Of these, how many are forgotten at once when there are more.
pub(super) const LISTS_FORGOTTEN_TOGETHER: u64 = 125;
/// How often what nobody goes on with is looked for, in seconds.
const TIDIED_EVERY_SECS: u64 = 3600;

/// Writes notes until nobody has any more to give. They can be read at once,
/// and are on disk when somebody waits for that, and after [`UNSYNCED_MAX`] at the latest.
pub(super) fn write(store: &Store, messages: &Receiver<Message>) {
    let (mut sync_due, mut tidied) = (None, Tidied::new());
    loop {
        let wait = sync_due
            .map_or(SYNC_WHEN_IDLE, |due: Duration| due.saturating_sub(clock::uptime()).min(SYNC_WHEN_IDLE));
        let first = match messages.recv_timeout(wait) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) if sync_due.is_none() => continue,
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let came = clock::uptime();
        let mut together: Vec<Message> = first.into_iter().collect();
        // Nobody waits for a note: some more may come.
        while (1..NOTES_GATHERED_MAX).contains(&together.len())
            && together.iter().all(|message| matches!(message, Message::Note(_)))
            && let Ok(message) = messages.recv_timeout(GATHER_WITHIN)
        {
            together.push(message);
        }
        together.extend(messages.try_iter().take(NOTES_TOGETHER_MAX));
        // All who wait for the disk wait for one sync.
        let durable = together.is_empty()
            || sync_due.is_some_and(|due| due <= came)
            || together.iter().any(|message| matches!(message, Message::Durable(..)));
        let written = write_together(store, &together, durable, &mut tidied);
        sync_due = match durable {
            true => None,
            false if together.iter().any(|m| matches!(m, Message::Note(_) | Message::Walk(_))) => {
                sync_due.or(Some(came + SYNC_AFTER))
            }
            false => sync_due,
        };
        report(&written);
        for message in together {
            if let Message::Durable(_, done) | Message::Barrier(done) = message {
                // Who does not wait any more need not know.
                let _ = done.send(written.is_ok());
            }
        }
    }
    if sync_due.is_some() {
        report(&write_together(store, &[], true, &mut tidied));
    }
}

fn report(written: &Result<(), LedgerError>) {
    // It is closed only when the thread that writes has ended.
    if let Err(LedgerError::Disk(error)) = written {
        tracing::error!(
            "the ledger cannot be written to: {error}; check space and rights of the data folder"
        );
    }
}

fn write_together(
    store: &Store,
    messages: &[Message],
    durable: bool,
    tidied: &mut Tidied,
) -> Result<(), LedgerError> {
    if !durable && messages.iter().all(|message| matches!(message, Message::Barrier(_))) {
        return Ok(());
    }
    store.with(LedgerError::Closed, |database| Ok(write_into(database, messages, durable, tidied)?))
}

fn write_into(
    database: &Database,
    messages: &[Message],
    durable: bool,
    tidied: &mut Tidied,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    if !durable {
        transaction.set_durability(redb::Durability::None)?;
    }
    for message in messages {
        match message {
            Message::Note(note) => write_one(&transaction, note, false, tidied)?,
            Message::Durable(note, _) => write_one(&transaction, note, true, tidied)?,
            Message::Walk(_) | Message::Barrier(_) => {}
        }
        if let Message::Walk(Walk { repository, place, query }) = message {
            let mut walks = transaction.open_table(WALKS)?;
            let key = (repository.as_str(), place.list, place.page);
            match query {
                Some(query) => drop(walks.insert(key, query.as_str())?),
                None => drop(walks.remove(key)?),
            }
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
    is_awaited: bool,
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
        within: note.within.clone(),
        complete: place.page == 0,
        items: 0,
        ended: false,
        touched_secs: 0,
    });
    facts.items = facts.items - before.min(facts.items) + note.hashes.len() as u64;
    facts.complete &= note.complete && facts.items <= ITEMS_MAX;
    facts.ended = note.ended;
    facts.touched_secs = note.now_secs;
    // Who waits for a note gives out a token that leads to this page, however long the list is.
    if is_awaited || facts.items <= ITEMS_MAX {
        let bytes: Vec<u8> = note.hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        pages.insert((repository, place.list, place.page), bytes.as_slice())?;
    }
    if note.within.is_some() {
        transaction.open_table(WINDOWS)?.insert(repository, note.now_secs)?;
    }
    if let Some(datestamp) = &note.last_datestamp {
        let mut dates = transaction.open_table(DATES)?;
        dates.insert((repository, place.list, place.page), datestamp.as_str())?;
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
        let other = known.as_ref().filter(|known| known.place.list != next.list);
        let under_way = |list: u64| -> Result<bool, redb::Error> {
            let facts = lists.get((repository, list))?;
            let facts = facts.and_then(|json| serde_json::from_slice::<ListFacts>(json.value()).ok());
            Ok(facts.is_some_and(|facts| !facts.ended))
        };
        let ambiguous = match other {
            Some(other) => other.ambiguous || under_way(other.place.list)?,
            None => known.as_ref().is_some_and(|known| known.ambiguous),
        };
        let within = match known {
            Some(known) => note.within.clone().zip(known.within).map(|(one, other)| one.with(other)),
            None => note.within.clone(),
        };
        tokens.insert(token, json(&Leads { place: next, ambiguous, within })?.as_slice())?;
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
    let mut dates = transaction.open_table(DATES)?;
    let mut walks = transaction.open_table(WALKS)?;
    for list in &old {
        lists.remove((repository, *list))?;
        pages.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        firsts.retain_in((repository, *list, 0)..=(repository, *list, u64::MAX), |_, _| false)?;
        dates.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        walks.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
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
