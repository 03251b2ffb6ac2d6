//! Removes a repository. Its name disappears in one transaction; its rows and segments are removed in steps after
//! that, so that commits to other repositories need not wait.

use super::index::IndexError;
use super::keys::{identifier_key, posting_key, sequence_key, stamp_key, time_key};
use super::shared::{Shared, collections_of};
use super::tables::{
    BLOCKS, CATALOGS, COLLECTIONS, DAMAGED, DATES, DOCUMENTS, IDENTIFIERS, LOST, META, OCCURRENCES, POSTINGS,
    PROGRESS, REMOVALS, REMOVED, REPAIRS, REPOSITORIES, SEGMENTS, SET_LIST_NUMBERS, SET_LISTS, SETS, STAMPS,
    STATES, TOUCHED, repository_row,
};
use oaimend_oai::UnixSecs;
use oaimend_store::RepositoryId;
use redb::{Key, ReadableTable, TableDefinition, Value, WriteTransaction};
use std::borrow::Borrow;

/// Maximum number of rows of a table that one transaction removes.
const ROWS_MAX: usize = 20_000;

/// Removes a repository.
pub(super) fn forget(shared: &Shared, repository: RepositoryId<'_>) -> Result<(), IndexError> {
    let _turn = shared.maintenance();
    {
        let _writer = shared.writer();
        let collections = shared.index.read(|reading| collections_of(reading, repository))?;
        shared.index.write(|writing| {
            let mut repositories = writing.open_table(REPOSITORIES)?;
            let Some(row) = repository_row(&repositories, repository.0)? else { return Ok(()) };
            repositories.remove(repository.0)?;
            let mut meta = writing.open_table(META)?;
            let removals = meta.get(REMOVALS)?.map_or(0, |removals| removals.value());
            meta.insert(REMOVALS, removals + 1)?;
            let mut removed = writing.open_table(REMOVED)?;
            for (_, collection) in &collections {
                removed.insert(collection.number, ())?;
            }
            remove_repository(writing, row.number)
        })?;
    }
    remove_collections(shared)
}

fn remove_repository(writing: &WriteTransaction, number: u32) -> Result<(), IndexError> {
    let (start, end) = (number, number + 1);
    writing.open_table(COLLECTIONS)?.retain_in((start, "")..(end, ""), |_, _| false)?;
    writing.open_table(PROGRESS)?.retain_in((start, "")..(end, ""), |_, _| false)?;
    writing.open_table(SETS)?.retain_in((start, "")..(end, ""), |_, _| false)?;
    writing.open_table(SET_LISTS)?.retain_in((start, 0)..(end, 0), |_, _| false)?;
    let lists = (start, [].as_slice())..(end, [].as_slice());
    writing.open_table(SET_LIST_NUMBERS)?.retain_in(lists, |_, _| false)?;
    writing.open_table(DOCUMENTS)?.retain_in((start, 0)..(end, 0), |_, _| false)?;
    writing.open_table(STATES)?.remove(number)?;
    writing.open_table(CATALOGS)?.remove(number)?;
    Ok(())
}

/// Removes the rows and segments of all collections whose repository was removed. The caller holds the maintenance
/// lock.
pub(super) fn remove_collections(shared: &Shared) -> Result<(), IndexError> {
    let next = || {
        shared.index.read(|reading| {
            let removed = reading.open_table(REMOVED)?;
            let first = removed.iter()?.next().transpose()?;
            Ok(first.map(|(collection, _)| collection.value()))
        })
    };
    while let Some(collection) = next()? {
        let mut is_done = false;
        while !is_done {
            shared.check_open()?;
            let _writer = shared.writer();
            is_done = shared.index.write(|writing| remove_rows(writing, collection))?;
        }
        let segments = shared.index.read(|reading| {
            let segments = reading.open_table(SEGMENTS)?;
            let rows = segments.range((collection, 0)..(collection + 1, 0))?;
            let numbers: Result<Vec<u32>, _> = rows.map(|row| row.map(|(key, _)| key.value().1)).collect();
            Ok(numbers?)
        })?;
        shared.segments.remove(segments.into_iter().map(|segment| (collection, segment)))?;
        let _writer = shared.writer();
        shared.index.write(|writing| {
            let segments = (collection, 0)..(collection + 1, 0);
            writing.open_table(SEGMENTS)?.retain_in(segments, |_, _| false)?;
            writing.open_table(REMOVED)?.remove(collection)?;
            Ok(())
        })?;
    }
    Ok(())
}

/// Removes some rows of a collection; returns whether none are left.
fn remove_rows(writing: &WriteTransaction, collection: u32) -> Result<bool, IndexError> {
    let next = collection + 1;
    let identifiers = [identifier_key(collection, ""), identifier_key(next, "")];
    let identifiers = identifiers.each_ref().map(Vec::as_slice);
    let sequences = [sequence_key(collection, 0), sequence_key(next, 0)];
    let dates = [time_key(collection, UnixSecs::MIN, 0), time_key(next, UnixSecs::MIN, 0)];
    let postings = [posting_key(collection, 0, 0, 0), posting_key(next, 0, 0, 0)];
    let stamps = [stamp_key(collection, UnixSecs::MIN), stamp_key(next, UnixSecs::MIN)];
    let is_done = [
        remove_some(writing, IDENTIFIERS, identifiers)?,
        remove_some(writing, DAMAGED, identifiers)?,
        remove_some(writing, LOST, identifiers)?,
        remove_some(writing, REPAIRS, identifiers)?,
        remove_some(writing, OCCURRENCES, identifiers)?,
        remove_some(writing, DATES, dates.each_ref())?,
        remove_some(writing, POSTINGS, postings.each_ref())?,
        remove_some(writing, STAMPS, stamps.each_ref())?,
        remove_some(writing, TOUCHED, sequences.each_ref())?,
        remove_some(writing, BLOCKS, sequences.each_ref())?,
    ];
    Ok(is_done.iter().all(|done| *done))
}

/// Removes the first rows of a range; returns whether none are left.
fn remove_some<'k, K: Key + 'static, V: Value + 'static, B: Borrow<K::SelfType<'k>> + 'k>(
    writing: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
    [start, end]: [B; 2],
) -> Result<bool, IndexError> {
    let mut table = writing.open_table(table)?;
    let mut removed = 0;
    for row in table.extract_from_if(start..end, |_, _| true)?.take(ROWS_MAX) {
        row?;
        removed += 1;
    }
    Ok(removed < ROWS_MAX)
}
