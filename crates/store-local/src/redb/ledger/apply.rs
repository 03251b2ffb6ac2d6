//! Applies one record to the rows of the ledger.

use super::records::{bytes_of, find_json, find_list, find_token, hashes, json, number, text};
use super::rows::{self, ListRow, View};
use oaimend_store::RepositoryId;
use oaimend_store::ledger::{
    DeliveredPage, KnownPage, KnownToken, ListPage, PageChanges, PageItems, ReplayProgress, TokenRecord,
    recorded_place,
};

/// Records the progress of a replay.
pub(super) fn apply_replay(view: &mut View<'_>, progress: &ReplayProgress) {
    let ReplayProgress { repository, place, query } = progress;
    let key = rows::of_list(RepositoryId(repository), place.list, ListRow::Replay(place.page));
    match query {
        Some(query) => view.insert(key, query.as_str()),
        None => view.remove(key),
    }
}

/// Records a page, or the `part` of it that was delivered before one of our own tokens. Returns the record of the token
/// on it.
///
/// # Errors
///
/// The database cannot be read. A part of the rows may be recorded.
pub(super) fn apply_page(
    view: &mut View<'_>,
    page: &DeliveredPage,
    part: Option<u64>,
) -> Result<Option<TokenRecord>, redb::Error> {
    let next_token = find_next_token(view, page)?;
    let place = recorded_place(page, next_token.as_ref());
    let known = read_page(view, page, place, next_token, part.is_some())?;
    let changes = known.after(page, place, part.is_some());
    if let Some(part) = part {
        let key = |row| rows::of_list(RepositoryId(&page.repository), place.list, row);
        view.insert(key(ListRow::Part(place.page, part)), bytes_of(&page.hashes));
        view.insert(key(ListRow::PartNames(place.page, part)), bytes_of(&page.names));
    }
    write_changes(view, page, place, &changes)?;
    Ok(changes.next_token)
}

/// The token on a page. Its list is read only where the page belongs to another list.
fn find_next_token(view: &View<'_>, page: &DeliveredPage) -> Result<Option<KnownToken>, redb::Error> {
    let Some(token) = &page.next_token else { return Ok(None) };
    let Some(record) = find_token(view, RepositoryId(&page.repository), page.verb, token)? else {
        return Ok(None);
    };
    let list = if record.place.list == page.place.list {
        None
    } else {
        find_list(view, RepositoryId(&page.repository), record.place.list)?
    };
    Ok(Some(KnownToken { record, list }))
}

/// Reads the rows that a page may change.
fn read_page(
    view: &View<'_>,
    page: &DeliveredPage,
    place: ListPage,
    next_token: Option<KnownToken>,
    is_part: bool,
) -> Result<KnownPage, redb::Error> {
    let repository = page.repository.as_str();
    let key = |row| rows::of_list(RepositoryId(repository), place.list, row);
    let mut known = KnownPage { next_token, ..KnownPage::default() };
    known.list = find_list(view, RepositoryId(repository), place.list)?;
    if let (0, Some(token)) = (place.page, &page.next_token) {
        known.states = find_json(view, &rows::state(RepositoryId(repository), page.verb, token))?;
    }
    if !is_part {
        known.items = find_items(view, RepositoryId(repository), place)?;
    }
    if known.items.is_some() && page.last_datestamp.is_some() {
        known.last_datestamp = view.find(&key(ListRow::Date(place.page)), text)?;
    }
    if let Some(first) = page.hashes.first() {
        known.first_item_page = view.find(&key(ListRow::First(*first)), number)?;
        if known.list.as_ref().is_some_and(|list| list.reuses_tokens) {
            known.visits = view.find(&key(ListRow::Visits(*first)), number)?.unwrap_or(0);
        }
    }
    if let Some(token) = &page.request_token {
        known.request_token = find_token(view, RepositoryId(repository), page.verb, token)?;
    }
    Ok(known)
}

/// The delivered items of a page.
fn find_items(
    view: &View<'_>,
    repository: RepositoryId<'_>,
    place: ListPage,
) -> Result<Option<PageItems>, redb::Error> {
    let key = |row| rows::of_list(repository, place.list, row);
    let items = view.find(&key(ListRow::Page(place.page)), |bytes| {
        let round = if bytes.len() % 8 == 1 { bytes.last().copied() } else { None };
        (hashes(bytes).collect(), round)
    })?;
    let Some((hashes_of_items, round)) = items else { return Ok(None) };
    let names = view.find(&key(ListRow::Names(place.page)), |bytes| hashes(bytes).collect())?;
    Ok(Some(PageItems { hashes: hashes_of_items, names, round }))
}

fn write_changes(
    view: &mut View<'_>,
    page: &DeliveredPage,
    place: ListPage,
    changes: &PageChanges,
) -> Result<(), redb::Error> {
    let repository = page.repository.as_str();
    let key = |row| rows::of_list(RepositoryId(repository), place.list, row);
    if let (Some(states), Some(token)) = (&changes.states, &page.next_token) {
        view.insert(rows::state(RepositoryId(repository), page.verb, token), json(states)?);
    }
    if let Some(PageItems { hashes, names, round }) = &changes.items {
        let mut bytes = bytes_of(hashes);
        bytes.extend(round);
        view.insert(key(ListRow::Page(place.page)), bytes);
        if let Some(names) = names {
            view.insert(key(ListRow::Names(place.page)), bytes_of(names));
        }
    }
    if let Some(datestamp) = &changes.last_datestamp {
        view.insert(key(ListRow::Date(place.page)), datestamp.as_str());
    }
    if changes.forgets_replays {
        view.remove_replays(RepositoryId(repository), place.list)?;
    }
    if changes.forgets_visits {
        view.remove_visits(RepositoryId(repository), place.list)?;
    }
    if page.within.is_some() {
        view.insert(rows::window(RepositoryId(repository)), page.now_secs.0.to_le_bytes());
    }
    if let Some(first) = page.hashes.first() {
        if let Some(first_page) = changes.first_item_page {
            view.insert(key(ListRow::First(*first)), first_page.to_le_bytes());
        }
        if let Some(visits) = changes.visits {
            view.insert(key(ListRow::Visits(*first)), visits.to_le_bytes());
        }
    }
    for (token, record) in
        [(&page.request_token, &changes.request_token), (&page.next_token, &changes.next_token)]
    {
        if let (Some(token), Some(record)) = (token, record) {
            view.insert(rows::token(RepositoryId(repository), page.verb, token), json(record)?);
            view.insert(key(ListRow::Token(page.verb.name(), token)), []);
        }
    }
    view.insert(rows::list(RepositoryId(repository), place.list), json(&changes.list)?);
    Ok(())
}
