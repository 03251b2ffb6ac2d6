//! The one thread that writes to the ledger: its tables, and what is kept in them how long.

use super::super::database::ClosableDatabase;
use super::{
    DeliveredPage, LedgerError, ListFacts, ListPage, ListStatus, Message, ReplayProgress, TokenRecord, hashes,
};
use crate::clock;
use redb::{Database, ReadableTable, TableDefinition};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// By repository and list.
pub(super) const LISTS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("lists");
/// By repository, list and page: the hashes, 8 bytes each, and one byte for the round of the list in which
/// the page was delivered last.
pub(super) const PAGES: TableDefinition<'_, (&str, u64, u32), &[u8]> = TableDefinition::new("pages");
/// By repository, list, page and the hash of the hashes: the hashes of the part of the page that was
/// delivered when a token of ours was given out.
pub(super) const PARTS: TableDefinition<'_, (&str, u64, u32, u64), &[u8]> = TableDefinition::new("parts");
/// By repository, list and the hash of a page's first item: the page.
pub(super) const FIRSTS: TableDefinition<'_, (&str, u64, u64), u32> = TableDefinition::new("firsts");
/// By repository, list and the hash of a page's first item: how often the list had such a page since it is
/// known to reuse its tokens.
pub(super) const VISITS: TableDefinition<'_, (&str, u64, u64), u32> = TableDefinition::new("visits");
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
/// Longest that a note is not on disk, in milliseconds, under any load. A kill of the process loses no older note.
pub(super) const UNSYNCED_MAX_MILLIS: u64 = 1_000;
/// A sync begins when the oldest unsynced note has waited this long. The rest of [`UNSYNCED_MAX_MILLIS`] is for
/// the notes that wait to be written, and for the disk.
const SYNC_AFTER: Duration = Duration::from_millis(UNSYNCED_MAX_MILLIS / 2);
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
/// and are on disk when somebody waits for that, and after [`UNSYNCED_MAX_MILLIS`] at the latest.
pub(super) fn write(store: &ClosableDatabase, messages: &Receiver<Message>) {
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
            && together.iter().all(|message| matches!(message, Message::DeliveredPage(_)))
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
            false
                if together
                    .iter()
                    .any(|m| matches!(m, Message::DeliveredPage(_) | Message::ReplayProgress(_))) =>
            {
                sync_due.or(Some(came + SYNC_AFTER))
            }
            false => sync_due,
        };
        report(&written);
        for message in together {
            if let Message::Durable(_, _, done) | Message::Barrier(done) = message {
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
    store: &ClosableDatabase,
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
            Message::DeliveredPage(note) => write_one(&transaction, note, None, tidied)?,
            Message::Durable(note, part, _) => write_one(&transaction, note, Some(*part), tidied)?,
            Message::ReplayProgress(_) | Message::Barrier(_) => {}
        }
        if let Message::ReplayProgress(ReplayProgress { repository, place, query }) = message {
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

/// Writes a page down, or the `part` of it that was delivered when a token of ours was given out.
fn write_one(
    transaction: &redb::WriteTransaction,
    note: &DeliveredPage,
    part: Option<u64>,
    tidied: &mut Tidied,
) -> Result<(), redb::Error> {
    let repository = note.repository.as_str();
    let mut lists = transaction.open_table(LISTS)?;
    let mut pages = transaction.open_table(PAGES)?;
    let mut tokens = transaction.open_table(TOKENS)?;
    let leads = match &note.next {
        Some(next) => tokens.get((repository, note.verb, next.as_str()))?,
        None => None,
    };
    let leads: Option<TokenRecord> = leads.and_then(|json| serde_json::from_slice(json.value()).ok());
    let joined = match &leads {
        Some(leads) => joined_list(&lists, note, leads)?,
        None => None,
    };
    let place = ListPage { list: joined.unwrap_or(note.place.list), page: note.place.page };
    let known = facts_in(&lists, repository, place.list)?;
    if known.is_none() {
        let now_secs = note.now_secs;
        let last = tidied.get(repository).copied();
        let last = match last.filter(|last| last.room > 0 && now_secs < last.at_secs + TIDIED_EVERY_SECS) {
            Some(last) => last,
            None => {
                let room =
                    forget_old(transaction, &mut lists, &mut pages, &mut tokens, repository, now_secs)?;
                LastTidied { at_secs: now_secs, room }
            }
        };
        tidied.insert(repository.to_owned(), LastTidied { room: last.room - 1, ..last });
    }
    let mut facts = facts_after(known, note, joined.is_some());
    match part {
        Some(part) => {
            let mut parts = transaction.open_table(PARTS)?;
            let key = (repository, place.list, place.page, part);
            parts.insert(key, bytes_of(&note.hashes).as_slice())?;
        }
        None => write_page(transaction, &mut pages, note, place, &mut facts)?,
    }
    facts.complete &= note.complete && facts.items <= ITEMS_MAX;
    if note.within.is_some() {
        transaction.open_table(WINDOWS)?.insert(repository, note.now_secs)?;
    }
    if let Some(first) = note.hashes.first() {
        let mut firsts = transaction.open_table(FIRSTS)?;
        let earlier = firsts.get((repository, place.list, *first))?.map(|page| page.value());
        firsts.insert((repository, place.list, *first), earlier.unwrap_or(place.page).min(place.page))?;
        if facts.reuses_tokens {
            let mut visits = transaction.open_table(VISITS)?;
            let count = visits.get((repository, place.list, *first))?.map_or(0, |count| count.value());
            visits.insert((repository, place.list, *first), count.saturating_add(1))?;
        }
    }
    if let Some(token) = &note.asked_by {
        let key = (repository, note.verb, token.as_str());
        if tokens.get(key)?.is_none() {
            let leads =
                TokenRecord { place, lowest_page: place.page, ambiguous: false, within: note.within.clone() };
            tokens.insert(key, json(&leads)?.as_slice())?;
        }
    }
    if let Some(token) = &note.next {
        let next = ListPage { page: place.page + 1, ..place };
        let is_other_page =
            |known: &TokenRecord| known.place.list == next.list && known.place.page != next.page;
        facts.reuses_tokens |= leads.as_ref().is_some_and(is_other_page);
        let leads = leads_after(&lists, note, next, leads)?;
        tokens.insert((repository, note.verb, token.as_str()), json(&leads)?.as_slice())?;
    }
    lists.insert((repository, place.list), json(&facts)?.as_slice())?;
    Ok(())
}

type Lists<'t> = redb::Table<'t, (&'static str, u64), &'static [u8]>;
type PagesTable<'t> = redb::Table<'t, (&'static str, u64, u32), &'static [u8]>;
type Tokens<'t> = redb::Table<'t, (&'static str, &'static str, &'static str), &'static [u8]>;

fn facts_in(lists: &Lists<'_>, repository: &str, list: u64) -> Result<Option<ListFacts>, redb::Error> {
    let facts = lists.get((repository, list))?;
    Ok(facts.and_then(|json| serde_json::from_slice(json.value()).ok()))
}

/// The list that a harvest joins with its first page: one with the same arguments whose first page had the
/// same token.
fn joined_list(
    lists: &Lists<'_>,
    note: &DeliveredPage,
    leads: &TokenRecord,
) -> Result<Option<u64>, redb::Error> {
    let TokenRecord { place, lowest_page, ambiguous, .. } = leads;
    let is_first = note.place.page == 0 && *lowest_page == 1;
    if !is_first || *ambiguous || place.list == note.place.list {
        return Ok(None);
    }
    let facts = facts_in(lists, &note.repository, place.list)?;
    let is_same = facts.is_some_and(|facts| {
        // A new round of a list that reused its tokens is better another list.
        (place.page == 1 || facts.harvests > 0)
            && have_same_arguments(&facts.first_query, &note.first_query)
            && facts.within == note.within
    });
    Ok(is_same.then_some(place.list))
}

/// Whether two queries ask for the same, in whatever order.
fn have_same_arguments(one: &str, other: &str) -> bool {
    let sorted = |query: &'_ str| {
        let mut arguments: Vec<String> = query.split('&').map(str::to_owned).collect();
        arguments.sort_unstable();
        arguments
    };
    !one.is_empty() && (one == other || sorted(one) == sorted(other))
}

/// What is known of the list of a note once that is written, but for its items.
fn facts_after(known: Option<ListFacts>, note: &DeliveredPage, is_joined: bool) -> ListFacts {
    let begins = note.place.page == 0 && (is_joined || known.is_none());
    let mut facts = known.unwrap_or_else(|| ListFacts {
        first_query: note.first_query.clone(),
        within: note.within.clone(),
        complete: note.place.page == 0,
        items: 0,
        harvests: 0,
        round: 0,
        is_shared: false,
        reuses_tokens: false,
        touched_secs: note.now_secs,
    });
    if begins {
        if facts.harvests == 0 || facts.touched_secs + KEPT_SECS < note.now_secs {
            (facts.harvests, facts.complete) = (0, true);
            (facts.is_shared, facts.reuses_tokens) = (false, false);
            facts.round = facts.round.wrapping_add(1);
        }
        facts.harvests = facts.harvests.saturating_add(1);
        facts.is_shared |= facts.harvests > 1;
    }
    facts.harvests = match note.ending {
        ListStatus::GoesOn => facts.harvests.max(1),
        ListStatus::Ended => facts.harvests.saturating_sub(1),
        ListStatus::Circle => 0,
    };
    facts.touched_secs = note.now_secs;
    facts
}

/// Writes down the items of a page. Of a page that another harvest of the same round received too, only
/// what both received: a record too many is better than one too few.
fn write_page(
    transaction: &redb::WriteTransaction,
    pages: &mut PagesTable<'_>,
    note: &DeliveredPage,
    place: ListPage,
    facts: &mut ListFacts,
) -> Result<(), redb::Error> {
    let ListPage { list, page } = place;
    let key = (note.repository.as_str(), list, page);
    let before = pages.get(key)?.map(|bytes| bytes.value().to_vec());
    let is_shared =
        before.as_ref().is_some_and(|bytes| bytes.len() % 8 == 1 && bytes.last() == Some(&facts.round));
    let before: Option<Vec<u64>> = before.map(|bytes| hashes(&bytes).collect());
    let delivered = match &before {
        Some(before) if is_shared => common(before, &note.hashes),
        _ => note.hashes.clone(),
    };
    let count_before = before.as_ref().map_or(0, |before| before.len() as u64);
    facts.items = facts.items.saturating_sub(count_before) + delivered.len() as u64;
    if facts.items <= ITEMS_MAX {
        let mut bytes = bytes_of(&delivered);
        bytes.push(facts.round);
        pages.insert(key, bytes.as_slice())?;
    }
    if before.is_some_and(|before| before != delivered) {
        // A walk may have passed what now counts as not delivered.
        let mut walks = transaction.open_table(WALKS)?;
        walks.retain_in((key.0, list, 0)..=(key.0, list, u32::MAX), |_, _| false)?;
    }
    if let Some(datestamp) = &note.last_datestamp {
        let mut dates = transaction.open_table(DATES)?;
        let lower = dates.get(key)?.map(|before| before.value().to_owned());
        let lower = lower.filter(|before| is_shared && before < datestamp);
        dates.insert(key, lower.as_ref().unwrap_or(datestamp).as_str())?;
    }
    Ok(())
}

/// The items of `one` that are in `other` too, each as often as in both.
fn common(one: &[u64], other: &[u64]) -> Vec<u64> {
    if one == other {
        return one.to_vec();
    }
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for hash in other {
        *counts.entry(*hash).or_default() += 1;
    }
    let is_in_both = |hash: &u64| match counts.get_mut(hash) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    one.iter().copied().filter(is_in_both).collect()
}

/// Where the token of a note leads once that is written.
fn leads_after(
    lists: &Lists<'_>,
    note: &DeliveredPage,
    next: ListPage,
    known: Option<TokenRecord>,
) -> Result<TokenRecord, redb::Error> {
    let Some(known) = known else {
        let within = note.within.clone();
        return Ok(TokenRecord { place: next, lowest_page: next.page, ambiguous: false, within });
    };
    let within = note.within.clone().zip(known.within).map(|(one, other)| one.with(other));
    if known.place.list == next.list {
        let lowest_page = known.lowest_page.min(next.page);
        return Ok(TokenRecord { place: next, lowest_page, ambiguous: known.ambiguous, within });
    }
    let other = facts_in(lists, &note.repository, known.place.list)?;
    let ambiguous = known.ambiguous || other.is_some_and(|facts| facts.harvests > 0);
    Ok(TokenRecord { place: next, lowest_page: next.page, ambiguous, within })
}

fn bytes_of(hashes: &[u64]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect()
}

/// Makes room: lists nobody goes on with, and the oldest when there are too many.
/// Says how many may be begun now; more than one, since this reads all of them.
fn forget_old(
    transaction: &redb::WriteTransaction,
    lists: &mut Lists<'_>,
    pages: &mut PagesTable<'_>,
    tokens: &mut Tokens<'_>,
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
    let mut visits = transaction.open_table(VISITS)?;
    let mut dates = transaction.open_table(DATES)?;
    let mut walks = transaction.open_table(WALKS)?;
    let mut parts = transaction.open_table(PARTS)?;
    for list in &old {
        lists.remove((repository, *list))?;
        pages.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        firsts.retain_in((repository, *list, 0)..=(repository, *list, u64::MAX), |_, _| false)?;
        visits.retain_in((repository, *list, 0)..=(repository, *list, u64::MAX), |_, _| false)?;
        dates.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        walks.retain_in((repository, *list, 0)..=(repository, *list, u32::MAX), |_, _| false)?;
        let all = (repository, *list, 0, 0)..=(repository, *list, u32::MAX, u64::MAX);
        parts.retain_in(all, |_, _| false)?;
    }
    let old: HashSet<u64> = old.into_iter().collect();
    let is_old = |json: &[u8]| {
        serde_json::from_slice::<TokenRecord>(json).map_or(true, |leads| old.contains(&leads.place.list))
    };
    tokens.retain(|(of, _, _), json| of != repository || !is_old(json))?;
    Ok(room)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, redb::Error> {
    serde_json::to_vec(value).map_err(|error| redb::Error::Io(std::io::Error::other(error)))
}
