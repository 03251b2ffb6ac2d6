//! The tables of the index, and their rows.
//!
//! Small rows are JSON. Rows that exist once for each record, or for each few records, have a fixed width (`keys`).

use super::keys::{
    BLOCK_ROW_BYTES, IDENTIFIER_ROW_BYTES, POSTING_KEY_BYTES, SEQUENCE_KEY_BYTES, STAMP_KEY_BYTES,
    TIME_KEY_BYTES,
};
use oaimend_oai::UnixSecs;
use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError, WriteTransaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// [`FORMAT`], [`NEXT_REPOSITORY`], [`NEXT_COLLECTION`], [`RESERVED`] or [`REMOVALS`] to its value.
pub(super) const META: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
/// The version of the format on disk.
pub(super) const FORMAT: &str = "format";
/// The number of the next repository.
pub(super) const NEXT_REPOSITORY: &str = "next_repository";
/// The number of the next collection.
pub(super) const NEXT_COLLECTION: &str = "next_collection";
/// The time before which responseDates may have been served.
pub(super) const RESERVED: &str = "reserved";
/// The number of repositories that were removed.
pub(super) const REMOVALS: &str = "removals";
/// The version that this code writes. Its blocks have version 2; those of earlier versions are read.
pub(super) const FORMAT_VERSION: i64 = 2;
/// The earlier version that this code reads. The first new block gives such a store the current version, so that an
/// upgrade that fails before it can be undone.
pub(super) const FORMAT_VERSION_1: i64 = 1;

/// Name of a repository to [`RepositoryRow`].
pub(super) const REPOSITORIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("repositories");
/// Repository and prefix to [`CollectionRow`].
pub(super) const COLLECTIONS: TableDefinition<'_, (u32, &str), &[u8]> = TableDefinition::new("collections");
/// Repository and prefix to the progress of its harvest.
pub(super) const PROGRESS: TableDefinition<'_, (u32, &str), &[u8]> = TableDefinition::new("progress");
/// Repository to its state.
pub(super) const STATES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("states");
/// Repository to its catalog.
pub(super) const CATALOGS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("catalogs");
/// Repository and kind of document to the document.
pub(super) const DOCUMENTS: TableDefinition<'_, (u32, u8), &[u8]> = TableDefinition::new("documents");
/// Collections whose repository was removed, and whose rows and segments are not removed yet.
pub(super) const REMOVED: TableDefinition<'_, u32, ()> = TableDefinition::new("removed");

/// Repository and setSpec to the number of the set, from 1.
pub(super) const SETS: TableDefinition<'_, (u32, &str), u32> = TableDefinition::new("sets");
/// Repository and numbers of sets, 4 bytes each, to the number of this list of sets.
pub(super) const SET_LIST_NUMBERS: TableDefinition<'_, (u32, &[u8]), u32> =
    TableDefinition::new("set_list_numbers");
/// Repository and number of a list of sets to the numbers of the sets, 4 bytes each.
pub(super) const SET_LISTS: TableDefinition<'_, (u32, u32), &[u8]> = TableDefinition::new("set_lists");

/// Collection and identifier to the repairs of the record: see `repairs`.
pub(super) const REPAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("repairs");

/// Collection and identifier to what the source lists with it: see `occurrences`.
pub(super) const OCCURRENCES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("occurrences");

type Identifiers = &'static [u8; IDENTIFIER_ROW_BYTES];
/// Collection and identifier to the current version of the record.
pub(super) const IDENTIFIERS: TableDefinition<'_, &[u8], Identifiers> = TableDefinition::new("identifiers");
/// Collection and identifier of each record that was lost to damage.
pub(super) const DAMAGED: TableDefinition<'_, &[u8], ()> = TableDefinition::new("damaged");
/// Collection and identifier of each damaged record whose loss was accepted.
pub(super) const LOST: TableDefinition<'_, &[u8], ()> = TableDefinition::new("lost");
/// Collection, datestamp and sequence of each record in the lists.
pub(super) const DATES: TableDefinition<'_, &[u8; TIME_KEY_BYTES], ()> = TableDefinition::new("dates");
/// Collection, set, level and bucket to the records of the set: see `postings`.
pub(super) const POSTINGS: TableDefinition<'_, &[u8; POSTING_KEY_BYTES], u64> =
    TableDefinition::new("postings");
/// Collection and stamp to the first sequence with this stamp.
pub(super) const STAMPS: TableDefinition<'_, &[u8; STAMP_KEY_BYTES], u64> = TableDefinition::new("stamps");
/// Collection and sequence of a record to its datestamp, where it is later than the one in the block.
pub(super) const TOUCHED: TableDefinition<'_, &[u8; SEQUENCE_KEY_BYTES], i64> =
    TableDefinition::new("touched");
/// Collection and first sequence of each block to its place.
pub(super) const BLOCKS: TableDefinition<'_, &[u8; SEQUENCE_KEY_BYTES], &[u8; BLOCK_ROW_BYTES]> =
    TableDefinition::new("blocks");
/// Collection and number of each segment to [`SegmentRow`].
pub(super) const SEGMENTS: TableDefinition<'_, (u32, u32), &[u8]> = TableDefinition::new("segments");

/// A repository.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RepositoryRow {
    pub(super) number: u32,
    pub(super) next_set: u32,
    pub(super) next_set_list: u32,
}

/// All records of one repository in one format.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CollectionRow {
    pub(super) number: u32,
    /// The sequence of the next record.
    pub(super) next_sequence: u64,
    /// The stamp of the last record.
    pub(super) last_stamp_secs: Option<UnixSecs>,
    /// Records in the lists that are not deleted, and that are.
    pub(super) live: u64,
    pub(super) tombstones: u64,
    pub(super) damaged: u64,
    /// The number of rows in [`LOST`]. Early collections have none.
    #[serde(default)]
    pub(super) lost: u64,
    /// The number of rows in [`TOUCHED`].
    pub(super) touched: u64,
    /// The number of rows in [`REPAIRS`]. Early collections have none.
    #[serde(default)]
    pub(super) repaired: u64,
    /// Sums over all segments.
    pub(super) bytes: u64,
    pub(super) raw_bytes: u64,
    pub(super) slots: u64,
    /// Blocks that are hardly filled, written since the last compaction.
    pub(super) small_blocks: u64,
    /// The number of the next segment.
    pub(super) next_segment: u32,
    /// The segment that commits append to.
    pub(super) open_segment: Option<u32>,
}

/// A segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SegmentRow {
    /// The valid bytes of the file.
    pub(super) bytes: u64,
    /// The bytes of the records before compression.
    pub(super) raw_bytes: u64,
    /// The number of records, replaced ones included.
    pub(super) slots: u64,
    pub(super) blocks: u64,
    /// The blocks that are hardly filled.
    pub(super) small_blocks: u64,
    /// The sequences of the first and of the last record.
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Creates the tables of a new index of the current version.
pub(super) fn create_index(writing: &WriteTransaction) -> Result<(), redb::Error> {
    create_tables(writing)?;
    set_format_version(writing)
}

/// Creates all tables, so that readers need not check whether a table exists.
pub(super) fn create_tables(writing: &WriteTransaction) -> Result<(), redb::Error> {
    writing.open_table(REPOSITORIES)?;
    writing.open_table(COLLECTIONS)?;
    writing.open_table(PROGRESS)?;
    writing.open_table(STATES)?;
    writing.open_table(CATALOGS)?;
    writing.open_table(DOCUMENTS)?;
    writing.open_table(REMOVED)?;
    writing.open_table(SETS)?;
    writing.open_table(SET_LIST_NUMBERS)?;
    writing.open_table(SET_LISTS)?;
    writing.open_table(IDENTIFIERS)?;
    writing.open_table(DAMAGED)?;
    writing.open_table(LOST)?;
    writing.open_table(DATES)?;
    writing.open_table(POSTINGS)?;
    writing.open_table(STAMPS)?;
    writing.open_table(TOUCHED)?;
    writing.open_table(REPAIRS)?;
    writing.open_table(OCCURRENCES)?;
    writing.open_table(BLOCKS)?;
    writing.open_table(SEGMENTS)?;
    writing.open_table(META)?;
    Ok(())
}

/// Notes that the store has the current version.
pub(super) fn set_format_version(writing: &WriteTransaction) -> Result<(), redb::Error> {
    let mut meta = writing.open_table(META)?;
    let version = meta.get(FORMAT)?.map(|version| version.value());
    if version != Some(FORMAT_VERSION) {
        meta.insert(FORMAT, FORMAT_VERSION)?;
    }
    Ok(())
}

/// Whether a database of this version has all tables. Early ones have no [`LOST`], and later ones no
/// [`OCCURRENCES`].
pub(super) fn has_all_tables(reading: &ReadTransaction) -> Result<bool, redb::Error> {
    match reading.open_table(OCCURRENCES) {
        Ok(_) => Ok(true),
        Err(TableError::TableDoesNotExist(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The version of the format; `None` for an empty database.
pub(super) fn format_version(reading: &ReadTransaction) -> Result<Option<i64>, redb::Error> {
    match reading.open_table(META) {
        Ok(meta) => Ok(meta.get(FORMAT)?.map(|version| version.value())),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn to_json(row: &impl Serialize) -> Result<Vec<u8>, redb::Error> {
    serde_json::to_vec(row).map_err(|error| redb::Error::Io(std::io::Error::other(error)))
}

pub(super) fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, redb::Error> {
    serde_json::from_slice(json).map_err(|error| redb::Error::Corrupted(error.to_string()))
}

/// A repository, by its name.
pub(super) fn repository_row(
    repositories: &impl ReadableTable<&'static str, &'static [u8]>,
    name: &str,
) -> Result<Option<RepositoryRow>, redb::Error> {
    repositories.get(name)?.map(|json| from_json(json.value())).transpose()
}

/// A collection, by its repository and prefix.
pub(super) fn collection_row(
    collections: &impl ReadableTable<(u32, &'static str), &'static [u8]>,
    repository: u32,
    prefix: &str,
) -> Result<Option<CollectionRow>, redb::Error> {
    collections.get((repository, prefix))?.map(|json| from_json(json.value())).transpose()
}
