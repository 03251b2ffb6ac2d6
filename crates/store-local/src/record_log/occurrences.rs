//! What a source lists with the identifiers of a collection, one row for each identifier. Only harvests that need whole
//! lists write them.

use super::index::IndexError;
use super::keys::identifier_key;
use super::shared::{Shared, find_collection};
use super::tables::OCCURRENCES;
use super::varint::{put, take, take_array};
use oaimend_store::{ListedContent, OCCURRENCES_MAX, Occurrence, Occurrences, Prefix, RepositoryId};
use redb::WriteTransaction;

const LIVE: u8 = 0;
const DELETED: u8 = 1;
const FOREIGN: u8 = 2;

/// Replaces the rows of these identifiers.
pub(super) fn replace(
    writing: &WriteTransaction,
    collection: u32,
    changed: &[(String, Occurrences)],
) -> Result<(), IndexError> {
    if changed.is_empty() {
        return Ok(());
    }
    let mut table = writing.open_table(OCCURRENCES)?;
    for (identifier, occurrences) in changed {
        let key = identifier_key(collection, identifier);
        table.insert(key.as_slice(), to_row(occurrences).as_slice())?;
    }
    Ok(())
}

/// The rows of these identifiers, in their order. An unreadable row counts as none.
pub(super) fn read(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
    identifiers: &[String],
) -> Result<Vec<Occurrences>, IndexError> {
    shared.index.read(|reading| {
        let Some((_, collection)) = find_collection(reading, repository, prefix)? else {
            return Ok(vec![Occurrences::default(); identifiers.len()]);
        };
        let table = reading.open_table(OCCURRENCES)?;
        let mut found = Vec::with_capacity(identifiers.len());
        for identifier in identifiers {
            let row = table.get(identifier_key(collection.number, identifier).as_slice())?;
            found.push(row.and_then(|row| from_row(row.value())).unwrap_or_default());
        }
        Ok(found)
    })
}

fn to_row(occurrences: &Occurrences) -> Vec<u8> {
    let mut row = Vec::new();
    put(&mut row, occurrences.postponed);
    for item in occurrences.items.iter().take(OCCURRENCES_MAX) {
        put(&mut row, item.reading);
        match item.content {
            ListedContent::Live(hash) => {
                row.push(LIVE);
                row.extend(hash.to_le_bytes());
            }
            ListedContent::Deleted => row.push(DELETED),
            ListedContent::Foreign => row.push(FOREIGN),
        }
    }
    row
}

fn from_row(mut row: &[u8]) -> Option<Occurrences> {
    let from = &mut row;
    let mut occurrences = Occurrences { postponed: take(from)?, ..Occurrences::default() };
    while !from.is_empty() {
        let reading = take(from)?;
        let content = match take_array(from)? {
            [LIVE] => ListedContent::Live(u64::from_le_bytes(take_array(from)?)),
            [DELETED] => ListedContent::Deleted,
            [FOREIGN] => ListedContent::Foreign,
            _ => return None,
        };
        occurrences.items.push(Occurrence { content, reading });
    }
    Some(occurrences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_contains_all_items_and_a_cut_item_none() {
        let mut occurrences = Occurrences { postponed: 300, ..Occurrences::default() };
        let contents = [ListedContent::Live(u64::MAX), ListedContent::Deleted, ListedContent::Foreign];
        for (place, content) in contents.into_iter().enumerate() {
            occurrences.set(place, content, 1_000);
        }
        let row = to_row(&occurrences);
        assert_eq!(from_row(&row), Some(occurrences));
        assert_eq!(from_row(&row[..row.len() - 1]), None);
        assert_eq!(from_row(&[0, 1, 9]), None, "an unknown content");
        assert_eq!(from_row(&[]), None);
    }
}
