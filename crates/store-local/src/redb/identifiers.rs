//! The identifiers of mirrored records, in `data/identifiers.redb`.
//!
//! A key has 16 bytes, and the table of places contains the first 8 of them: a caller checks each found record anyway. The
//! row of a record has the whole key of its OAI identifier, because nobody checks the former version that it replaces.

use super::database::SharedDatabase;
use async_trait::async_trait;
use oaimend_base::error::Error;
use oaimend_store::databases::{Databases, StoreName};
use oaimend_store::identifiers::{
    IdentifiedCollection, IdentifiedRecord, IdentifierChanges, IdentifierKey, IdentifierPlace,
    IdentifierStore,
};
use oaimend_store::save_error::SaveError;
use redb::{ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// [`FORMAT`] to the version of the keys.
const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");
/// Number of the collection to its next sequence.
const COLLECTIONS: TableDefinition<'static, u32, u64> = TableDefinition::new("collections");
/// Number of the collection (4 bytes) and key of the OAI identifier (16) to the [`row`] of the record.
const RECORDS: TableDefinition<'static, &'static [u8; RECORD_KEY_BYTES], &'static [u8]> =
    TableDefinition::new("records");
/// Start of a key (8 bytes), number of the collection (4) and sequence (6): the record may have the identifier.
const PLACES: TableDefinition<'static, &'static [u8; PLACE_BYTES], ()> = TableDefinition::new("places");

/// The entry of the version of the keys. A file without it has version 1.
const FORMAT: &str = "format";
/// The version of the keys: 2 tells what a record is from what it cites. A file with another one is emptied, and is built
/// again from the mirror.
const FORMAT_VERSION: u64 = 2;

/// The part of a key that the table of places contains, in bytes.
const START_BYTES: usize = 8;
const NUMBER_BYTES: usize = 4;
const SEQUENCE_BYTES: usize = 6;
const RECORD_KEY_BYTES: usize = NUMBER_BYTES + 16;
const PLACE_BYTES: usize = START_BYTES + NUMBER_BYTES + SEQUENCE_BYTES;

const CACHE_BYTES: usize = 32 << 20;

type Start = [u8; START_BYTES];
type Sequence = [u8; SEQUENCE_BYTES];

#[derive(Debug)]
struct RedbIdentifiers(Arc<SharedDatabase>);

/// Opens or creates the file in the data folder.
///
/// # Errors
///
/// The folder cannot be written to, or another process has it open.
pub(crate) fn open_identifiers(
    data: &Path,
    databases: &Databases,
) -> Result<Arc<dyn IdentifierStore>, Error> {
    let path = data.join("identifiers.redb");
    let database = SharedDatabase::open_among(databases, StoreName::Identifiers, &path, CACHE_BYTES)?;
    database.load(|database| {
        let writing = database.begin_write()?;
        let former = writing.open_table(META)?.insert(FORMAT, FORMAT_VERSION)?.map(|version| version.value());
        if former != Some(FORMAT_VERSION) {
            // One transaction replaces the version and empties the tables.
            writing.delete_table(COLLECTIONS)?;
            writing.delete_table(RECORDS)?;
            writing.delete_table(PLACES)?;
        }
        writing.open_table(COLLECTIONS)?;
        writing.open_table(RECORDS)?;
        writing.open_table(PLACES)?;
        Ok(writing.commit()?)
    })?;
    Ok(Arc::new(RedbIdentifiers(database)))
}

/// The number of a collection as the tables have it.
fn number(collection: u64) -> Result<u32, redb::Error> {
    Ok(u32::try_from(collection).map_err(std::io::Error::other)?)
}

fn start(key: &IdentifierKey) -> Start {
    std::array::from_fn(|at| key.bytes()[at])
}

fn sequence(sequence: u64) -> Sequence {
    let [_, _, low @ ..] = sequence.to_be_bytes();
    low
}

fn record_key(number: u32, identifier: &IdentifierKey) -> [u8; RECORD_KEY_BYTES] {
    let mut key = [0; RECORD_KEY_BYTES];
    key[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
    key[NUMBER_BYTES..].copy_from_slice(identifier.bytes());
    key
}

fn place(start: Start, number: u32, sequence: Sequence) -> [u8; PLACE_BYTES] {
    let mut place = [0; PLACE_BYTES];
    place[..START_BYTES].copy_from_slice(&start);
    place[START_BYTES..START_BYTES + NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
    place[START_BYTES + NUMBER_BYTES..].copy_from_slice(&sequence);
    place
}

/// The place in bytes as the trait has it.
fn read_place(bytes: &[u8; PLACE_BYTES]) -> IdentifierPlace {
    let number_of = |bytes: &[u8]| bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let (collection, sequence) = bytes[START_BYTES..].split_at(NUMBER_BYTES);
    IdentifierPlace { collection: number_of(collection), sequence: number_of(sequence) }
}

/// The row of a record: its sequence, and the starts of the keys that its metadata names.
fn row(record: &IdentifiedRecord) -> Vec<u8> {
    let mut row = sequence(record.sequence).to_vec();
    record.named.iter().for_each(|key| row.extend(start(key)));
    row
}

/// The places that a row is the reason for. `of_identifier` is the start of the key of its OAI identifier.
fn places_of(number: u32, of_identifier: Start, row: &[u8]) -> Vec<[u8; PLACE_BYTES]> {
    let Some((sequence, named)) = row.split_first_chunk::<SEQUENCE_BYTES>() else { return Vec::new() };
    let starts = std::iter::once(of_identifier).chain(named.as_chunks::<START_BYTES>().0.iter().copied());
    starts.map(|start| place(start, number, *sequence)).collect()
}

type RecordsTable<'t> = Table<'t, &'static [u8; RECORD_KEY_BYTES], &'static [u8]>;
type PlacesTable<'t> = Table<'t, &'static [u8; PLACE_BYTES], ()>;

fn follow(writing: &WriteTransaction, changes: &IdentifierChanges) -> Result<(), redb::Error> {
    let number = number(changes.collection.number)?;
    let mut records: RecordsTable<'_> = writing.open_table(RECORDS)?;
    let mut places: PlacesTable<'_> = writing.open_table(PLACES)?;
    let (mut former, mut added) = (Vec::new(), Vec::new());
    for record in &changes.records {
        let (of_identifier, row) = (start(&record.identifier), row(record));
        if let Some(replaced) = records.insert(&record_key(number, &record.identifier), row.as_slice())? {
            former.extend(places_of(number, of_identifier, replaced.value()));
        }
        added.extend(places_of(number, of_identifier, &row));
    }
    // In order, neighbours are written together. A collection that is read again has former places that are current.
    former.sort_unstable();
    added.sort_unstable();
    for place in &former {
        places.remove(place)?;
    }
    for place in &added {
        places.insert(place, ())?;
    }
    writing.open_table(COLLECTIONS)?.insert(number, changes.collection.next_sequence)?;
    Ok(())
}

fn remove(writing: &WriteTransaction, collection: u64, count_max: usize) -> Result<bool, redb::Error> {
    let number = number(collection)?;
    let mut records: RecordsTable<'_> = writing.open_table(RECORDS)?;
    let mut places: PlacesTable<'_> = writing.open_table(PLACES)?;
    let (mut first, mut last) = ([0; RECORD_KEY_BYTES], [u8::MAX; RECORD_KEY_BYTES]);
    for bound in [&mut first, &mut last] {
        bound[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
    }
    let mut removed = Vec::new();
    for found in records.range::<&[u8; RECORD_KEY_BYTES]>(&first..=&last)?.take(count_max) {
        let (key, row) = found?;
        let of_identifier = std::array::from_fn(|at| key.value()[NUMBER_BYTES + at]);
        removed.push((*key.value(), places_of(number, of_identifier, row.value())));
    }
    for (key, of_record) in &removed {
        records.remove(key)?;
        for place in of_record {
            places.remove(place)?;
        }
    }
    let has_more = records.range::<&[u8; RECORD_KEY_BYTES]>(&first..=&last)?.next().is_some();
    if !has_more {
        writing.open_table(COLLECTIONS)?.remove(number)?;
    }
    Ok(has_more)
}

/// The places with this start of a key in these collections after another place, at most `count_max`. The others are passed
/// over, each collection by one search.
fn places_with(
    table: &impl ReadableTable<&'static [u8; PLACE_BYTES], ()>,
    start: Start,
    collections: &BTreeSet<u64>,
    (after, count_max): (Option<IdentifierPlace>, usize),
) -> Result<Vec<IdentifierPlace>, redb::Error> {
    let last = place(start, u32::MAX, [u8::MAX; SEQUENCE_BYTES]);
    let after = after.map(|place| IdentifierPlace { sequence: place.sequence + 1, ..place });
    let first = after.map_or(0, |place| place.collection);
    let (mut places, mut wanted) = (Vec::new(), collections.range(first..).next().copied());
    while let Some(from) = wanted.take() {
        let sequence_from = after.filter(|place| place.collection == from).map_or(0, |place| place.sequence);
        let first = place(start, number(from)?, sequence(sequence_from));
        for row in table.range::<&[u8; PLACE_BYTES]>(&first..=&last)? {
            let found = read_place(row?.0.value());
            if !collections.contains(&found.collection) {
                wanted = collections.range(found.collection..).next().copied();
                break;
            }
            if places.len() == count_max {
                return Ok(places);
            }
            places.push(found);
        }
    }
    Ok(places)
}

#[async_trait]
impl IdentifierStore for RedbIdentifiers {
    async fn collections(&self) -> Result<Vec<IdentifiedCollection>, SaveError> {
        self.0
            .run(|database| {
                let mut found = Vec::new();
                for row in database.begin_read()?.open_table(COLLECTIONS)?.iter()? {
                    let (number, next_sequence) = row?;
                    let (number, next_sequence) = (number.value().into(), next_sequence.value());
                    found.push(IdentifiedCollection { number, next_sequence });
                }
                Ok(found)
            })
            .await
    }

    async fn follow(&self, changes: IdentifierChanges) -> Result<(), SaveError> {
        self.0.write(move |writing| follow(writing, &changes)).await
    }

    async fn find(
        &self,
        keys: Vec<IdentifierKey>,
        collections: Arc<BTreeSet<u64>>,
        after: Option<IdentifierPlace>,
        count_max: usize,
    ) -> Result<Vec<Vec<IdentifierPlace>>, SaveError> {
        self.0
            .run(move |database| {
                let table = database.begin_read()?.open_table(PLACES)?;
                let range = (after, count_max);
                keys.iter().map(|key| places_with(&table, start(key), &collections, range)).collect()
            })
            .await
    }

    async fn remove(&self, collection: u64, count_max: usize) -> Result<bool, SaveError> {
        self.0.write(move |writing| remove(writing, collection, count_max)).await
    }

    fn close(&self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::Database;

    #[tokio::test]
    async fn a_file_with_keys_of_another_version_is_emptied() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || open_identifiers(folder.path(), &Databases::default()).expect("a database");
        let key = |kind| IdentifierKey::new(kind, "x");
        let collection = IdentifiedCollection { number: 7, next_sequence: 4 };
        for (version, is_kept) in
            [(Some(FORMAT_VERSION), true), (None, false), (Some(1), false), (Some(3), false)]
        {
            let store = open();
            let record = IdentifiedRecord { identifier: key("oai"), sequence: 3, named: vec![key("doi")] };
            let changes = IdentifierChanges { collection: collection.clone(), records: vec![record] };
            store.follow(changes).await.expect("it is stored");
            store.close();
            let database = Database::open(folder.path().join("identifiers.redb")).expect("it is closed");
            let writing = database.begin_write().expect("writable");
            {
                let mut meta = writing.open_table(META).expect("it exists");
                match version {
                    Some(version) => drop(meta.insert(FORMAT, version).expect("writable")),
                    None => drop(meta.remove(FORMAT).expect("writable")),
                }
            }
            writing.commit().expect("writable");
            drop(database);
            let store = open();
            let expected = if is_kept { vec![collection.clone()] } else { Vec::new() };
            assert_eq!(store.collections().await.expect("readable"), expected, "{version:?}");
            let of = Arc::new(BTreeSet::from([7]));
            let found = store.find(vec![key("doi")], of, None, 9).await.expect("readable");
            assert_eq!(found[0].len(), usize::from(is_kept), "{version:?}");
            store.close();
        }
    }
}
