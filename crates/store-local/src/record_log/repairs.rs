//! The repairs of the records of a collection, one row for each repaired record.

use super::index::IndexError;
use super::keys::identifier_key;
use super::shared::{Shared, find_collection};
use super::tables::{CollectionRow, REPAIRS};
use super::varint::{put, put_bytes, put_text, take, take_bytes, take_text};
use oaimend_store::record_repairs::{Excerpt, RECORD_REPAIRS_MAX, RecordRepair, RecordRepairs};
use oaimend_store::{Identifier, Prefix, RepositoryId};
use redb::{ReadableTable, WriteTransaction};

/// Replaces the repairs of a record. `key` is its key in the index.
pub(super) fn replace(
    writing: &WriteTransaction,
    collection: &mut CollectionRow,
    key: &[u8],
    repairs: &RecordRepairs,
) -> Result<(), IndexError> {
    // Most collections contain no repaired record.
    if repairs.made == 0 && collection.repaired == 0 {
        return Ok(());
    }
    let mut table = writing.open_table(REPAIRS)?;
    let row = (repairs.made > 0).then(|| to_row(repairs));
    let stored = table.get(key)?.map(|row| row.value().to_vec());
    if row == stored {
        return Ok(());
    }
    match &row {
        Some(row) => drop(table.insert(key, row.as_slice())?),
        None => drop(table.remove(key)?),
    }
    collection.repaired += u64::from(row.is_some());
    collection.repaired -= u64::from(stored.is_some());
    Ok(())
}

/// The repairs of a record. An unreadable row counts as none.
pub(super) fn read(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
    identifier: Identifier<'_>,
) -> Result<RecordRepairs, IndexError> {
    shared.index.read(|reading| {
        let found = find_collection(reading, repository, prefix)?;
        let Some((_, collection)) = found.filter(|(_, collection)| collection.repaired > 0) else {
            return Ok(RecordRepairs::default());
        };
        let row =
            reading.open_table(REPAIRS)?.get(identifier_key(collection.number, identifier.0).as_slice())?;
        Ok(row.and_then(|row| from_row(row.value())).unwrap_or_default())
    })
}

fn to_row(repairs: &RecordRepairs) -> Vec<u8> {
    let mut row = Vec::new();
    put(&mut row, repairs.made);
    let first = repairs.first.get(..RECORD_REPAIRS_MAX).unwrap_or(&repairs.first);
    put(&mut row, first.len() as u64);
    for RecordRepair { name, before, after } in first {
        put_text(&mut row, name);
        for excerpt in [before, after] {
            put(&mut row, excerpt.len);
            put_bytes(&mut row, &excerpt.start);
        }
    }
    row
}

fn from_row(mut row: &[u8]) -> Option<RecordRepairs> {
    let from = &mut row;
    let (made, count) = (take(from)?, take(from)?);
    let mut first = Vec::new();
    for _ in 0..count {
        let name = take_text(from)?;
        let [before, after] = [take_excerpt(from)?, take_excerpt(from)?];
        first.push(RecordRepair { name, before, after });
    }
    Some(RecordRepairs { first, made })
}

fn take_excerpt(from: &mut &[u8]) -> Option<Excerpt> {
    let len = take(from)?;
    Some(Excerpt { start: take_bytes(from)?, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_contains_all_repairs_and_a_cut_row_none() {
        let repair = RecordRepair {
            name: "broken-utf8".to_owned(),
            before: Excerpt::new(b"\xe9"),
            after: Excerpt::new("é".as_bytes()),
        };
        let repairs = RecordRepairs { first: vec![repair.clone(), repair], made: 7 };
        let row = to_row(&repairs);
        assert_eq!(from_row(&row), Some(repairs));
        for end in 0..row.len() {
            assert_eq!(from_row(&row[..end]), None, "{end}");
        }
    }
}
