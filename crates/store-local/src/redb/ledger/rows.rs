//! The rows of the ledger: their keys, and the rows that are not in the database yet.
//!
//! All rows are in one table, so that a transaction writes the rows of many pages in the order of their keys. A key
//! begins with the kind of the row and the repository:
//!
//! | row | key after the repository | value |
//! |---|---|---|
//! | [`list`] | list | [`ListFacts`](oaimend_store::ledger::ListFacts) as JSON |
//! | [`of_list`] | list, [`ListRow`] | see there |
//! | [`token`] | verb, token | [`TokenRecord`](oaimend_store::ledger::TokenRecord) as JSON |
//! | [`state`] | verb, token of a first page | [`HarvestStates`](oaimend_store::ledger::HarvestStates) as JSON |
//! | [`window`] | | seconds since 1970, 8 bytes |
//!
//! One more row has no repository: [`epoch`].
//!
//! Numbers in keys are big-endian, so that their order is that of the pages.

use oaimend_oai::Verb;
use oaimend_store::RepositoryId;
use redb::{ReadOnlyTable, ReadTransaction, TableDefinition, TableError};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The table with all rows.
pub(super) const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

/// A row that is removed together with its list.
#[derive(Clone, Copy, Debug)]
pub(super) enum ListRow<'a> {
    /// Of a page: the hashes of the delivered items, 8 bytes each, and one byte for the round of the list in which
    /// the page was last delivered.
    Page(u32),
    /// Of a page: the hashes of the identifiers of the delivered items, 8 bytes each.
    Names(u32),
    /// Of a page: the datestamp of its last item.
    Date(u32),
    /// Of a page: the query that continues the replay up to it.
    Replay(u32),
    /// Of a page and the hash of all hashes: the part of the page that was delivered before one of our own tokens.
    Part(u32, u64),
    /// Of the same part: the hashes of the identifiers of its items, 8 bytes each.
    PartNames(u32, u64),
    /// Of the hash of a page's first item: the number of the page, 4 bytes.
    First(u64),
    /// Of the hash of a page's first item: the number of such pages since the list is known to reuse its tokens, 4
    /// bytes.
    Visits(u64),
    /// Of a verb and a token that points to the list: nothing. With it the token is found when the list is removed.
    Token(&'a str, &'a str),
}

/// The key of a list.
pub(super) fn list(repository: RepositoryId<'_>, list: u64) -> Vec<u8> {
    with_number(start(b'l', repository), list)
}

/// The keys of all lists of a repository.
pub(super) fn lists(repository: RepositoryId<'_>) -> Range<Vec<u8>> {
    with_prefix(start(b'l', repository))
}

/// The repository and the number of a list, from its key; `None` for the key of another row.
pub(super) fn list_of_key(key: &[u8]) -> Option<(&str, u64)> {
    let (rest, list) = key.strip_prefix(b"l")?.split_last_chunk()?;
    let repository = std::str::from_utf8(rest.strip_suffix(b"\0")?).ok()?;
    Some((repository, u64::from_be_bytes(*list)))
}

/// The key of a row of a list.
pub(super) fn of_list(repository: RepositoryId<'_>, list: u64, row: ListRow<'_>) -> Vec<u8> {
    let mut key = with_number(start(b'r', repository), list);
    match row {
        ListRow::Page(page) => numbered(&mut key, b'p', &page.to_be_bytes()),
        ListRow::Names(page) => numbered(&mut key, b'n', &page.to_be_bytes()),
        ListRow::Date(page) => numbered(&mut key, b'd', &page.to_be_bytes()),
        ListRow::Replay(page) => numbered(&mut key, b'w', &page.to_be_bytes()),
        ListRow::Part(page, part) => numbered_part(&mut key, b'q', page, part),
        ListRow::PartNames(page, part) => numbered_part(&mut key, b'm', page, part),
        ListRow::First(hash) => numbered(&mut key, b'f', &hash.to_be_bytes()),
        ListRow::Visits(hash) => numbered(&mut key, b'v', &hash.to_be_bytes()),
        ListRow::Token(verb, token) => {
            key.extend([b"t", verb.as_bytes(), b"\0", token.as_bytes()].concat());
        }
    }
    key
}

/// The keys of all rows of a list.
pub(super) fn all_of_list(repository: RepositoryId<'_>, list: u64) -> Range<Vec<u8>> {
    with_prefix(with_number(start(b'r', repository), list))
}

/// The keys of all tokens of a list.
pub(super) fn tokens_of_list(repository: RepositoryId<'_>, list: u64) -> Range<Vec<u8>> {
    let mut prefix = of_list(repository, list, ListRow::Token("", ""));
    // Without the end of the verb.
    prefix.pop();
    with_prefix(prefix)
}

/// The keys of the progress of all replays of a list.
fn replays_of_list(repository: RepositoryId<'_>, list: u64) -> Range<Vec<u8>> {
    let key = |page| of_list(repository, list, ListRow::Replay(page));
    key(0)..with_prefix(key(u32::MAX)).end
}

/// The keys of all visits of a list.
fn visits_of_list(repository: RepositoryId<'_>, list: u64) -> Range<Vec<u8>> {
    let key = |hash| of_list(repository, list, ListRow::Visits(hash));
    key(0)..with_prefix(key(u64::MAX)).end
}

/// The key of a token.
pub(super) fn token(repository: RepositoryId<'_>, verb: Verb, token: &str) -> Vec<u8> {
    of_token(start(b't', repository), verb, token)
}

/// The start of the keys of all tokens of a repository.
pub(super) fn tokens(repository: RepositoryId<'_>) -> Vec<u8> {
    start(b't', repository)
}

/// The key of the states of all lists whose first page has this token. A source may give the same token to a later
/// list. Harvests of the earlier one may then continue in the later one, also after the earlier one was removed.
pub(super) fn state(repository: RepositoryId<'_>, verb: Verb, token: &str) -> Vec<u8> {
    of_token(start(b's', repository), verb, token)
}

/// The repository of such a key; `None` for the key of another row.
pub(super) fn state_of_key(key: &[u8]) -> Option<&str> {
    let rest = key.strip_prefix(b"s")?;
    std::str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()
}

/// The keys of all states of a repository.
pub(super) fn states(repository: RepositoryId<'_>) -> Range<Vec<u8>> {
    with_prefix(start(b's', repository))
}

/// The key of the time when a page of a list was last recorded of which a harvester requested only a part.
pub(super) fn window(repository: RepositoryId<'_>) -> Vec<u8> {
    start(b'm', repository)
}

/// The keys of these times of all repositories.
pub(super) fn windows() -> Range<Vec<u8>> {
    with_prefix(b"m".to_vec())
}

/// The repository of such a key.
pub(super) fn window_of_key(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(b"m")?.strip_suffix(b"\0")?).ok()
}

/// The key of the epoch of a ledger that is closed, 8 bytes.
pub(super) fn epoch() -> Range<Vec<u8>> {
    with_prefix(b"e".to_vec())
}

fn start(kind: u8, repository: RepositoryId<'_>) -> Vec<u8> {
    let mut key = Vec::with_capacity(repository.0.len() + 32);
    key.push(kind);
    key.extend_from_slice(repository.0.as_bytes());
    key.push(0);
    key
}

fn with_number(mut key: Vec<u8>, number: u64) -> Vec<u8> {
    key.extend_from_slice(&number.to_be_bytes());
    key
}

fn numbered(key: &mut Vec<u8>, kind: u8, number: &[u8]) {
    key.push(kind);
    key.extend_from_slice(number);
}

fn numbered_part(key: &mut Vec<u8>, kind: u8, page: u32, part: u64) {
    numbered(key, kind, &page.to_be_bytes());
    key.extend_from_slice(&part.to_be_bytes());
}

fn of_token(mut key: Vec<u8>, verb: Verb, token: &str) -> Vec<u8> {
    key.extend([verb.as_bytes(), b"\0", token.as_bytes()].concat());
    key
}

/// All keys with a prefix that has a byte below the highest one.
fn with_prefix(prefix: Vec<u8>) -> Range<Vec<u8>> {
    let mut end = prefix.clone();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            break;
        }
    }
    prefix..end
}

/// Rows that are to be written together; `None` removes a row.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) rows: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Their size, in bytes.
    pub(super) bytes: usize,
}

/// Bytes of a row in memory besides its key and value.
const ROW_OVERHEAD_BYTES: usize = 100;

impl Layer {
    /// Adds the rows of an older layer that this one does not replace.
    pub(super) fn add_older(&mut self, older: &Self) {
        for (key, value) in &older.rows {
            if !self.rows.contains_key(key) {
                self.set(key.clone(), value.clone());
            }
        }
    }

    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let size = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        let key_bytes = key.len() + ROW_OVERHEAD_BYTES;
        self.bytes += size(&value);
        match self.rows.insert(key, value) {
            Some(before) => self.bytes -= size(&before),
            None => self.bytes += key_bytes,
        }
    }
}

/// All rows as a caller sees them: those of the database, and over them those that are not in it yet.
pub(super) struct View<'a> {
    pub(super) newest: &'a mut Layer,
    pub(super) in_writing: Option<&'a Arc<Layer>>,
    pub(super) database: DatabaseRows,
}

impl View<'_> {
    /// The value of a row, as `read` returns it.
    pub(super) fn find<T>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, redb::Error> {
        let unwritten = self.newest.rows.get(key).or_else(|| self.in_writing?.rows.get(key));
        if let Some(row) = unwritten {
            return Ok(row.as_deref().map(read));
        }
        let Some(table) = self.database.table()? else { return Ok(None) };
        Ok(table.get(key)?.map(|row| read(row.value())))
    }

    /// Adds or replaces a row.
    pub(super) fn insert(&mut self, key: Vec<u8>, value: impl Into<Vec<u8>>) {
        self.newest.set(key, Some(value.into()));
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, key: Vec<u8>) {
        self.newest.set(key, None);
    }

    /// Removes the progress of all replays of a list.
    pub(super) fn remove_replays(
        &mut self,
        repository: RepositoryId<'_>,
        list: u64,
    ) -> Result<(), redb::Error> {
        self.remove_all(replays_of_list(repository, list))
    }

    /// Removes all visits of a list.
    pub(super) fn remove_visits(
        &mut self,
        repository: RepositoryId<'_>,
        list: u64,
    ) -> Result<(), redb::Error> {
        self.remove_all(visits_of_list(repository, list))
    }

    fn remove_all(&mut self, keys: Range<Vec<u8>>) -> Result<(), redb::Error> {
        for key in merged(self.database.range(&keys)?, self.unwritten(&keys)).into_keys() {
            self.remove(key);
        }
        Ok(())
    }

    /// The rows with these keys that are not in the database yet.
    fn unwritten(&self, keys: &Range<Vec<u8>>) -> Unwritten {
        let layers = self.in_writing.map(Arc::as_ref).into_iter().chain([&*self.newest]);
        let rows = layers.flat_map(|layer| layer.rows.range(keys.start.clone()..keys.end.clone()));
        rows.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The rows with these keys. The database is read later: [`RowRange::read`].
    pub(super) fn range(self, keys: Range<Vec<u8>>) -> RowRange {
        let unwritten = self.unwritten(&keys);
        RowRange { keys, unwritten, database: self.database }
    }
}

type Unwritten = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The rows of a range of keys at one time.
pub(super) struct RowRange {
    keys: Range<Vec<u8>>,
    unwritten: Unwritten,
    database: DatabaseRows,
}

impl RowRange {
    /// All rows, in the order of their keys.
    pub(super) fn read(self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, redb::Error> {
        Ok(merged(self.database.range(&self.keys)?, self.unwritten))
    }
}

fn merged(mut rows: BTreeMap<Vec<u8>, Vec<u8>>, unwritten: Unwritten) -> BTreeMap<Vec<u8>, Vec<u8>> {
    for (key, value) in unwritten {
        match value {
            Some(value) => drop(rows.insert(key, value)),
            None => drop(rows.remove(&key)),
        }
    }
    rows
}

type RowsTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// The rows of the database at one time. The table is opened when it is first needed.
pub(super) struct DatabaseRows {
    reading: ReadTransaction,
    table: OnceCell<Option<RowsTable>>,
}

impl DatabaseRows {
    pub(super) fn new(reading: ReadTransaction) -> Self {
        Self { reading, table: OnceCell::new() }
    }

    pub(super) fn range(&self, keys: &Range<Vec<u8>>) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, redb::Error> {
        let Some(table) = self.table()? else { return Ok(BTreeMap::new()) };
        let mut rows = BTreeMap::new();
        for row in table.range(keys.start.as_slice()..keys.end.as_slice())? {
            let (key, value) = row?;
            rows.insert(key.value().to_vec(), value.value().to_vec());
        }
        Ok(rows)
    }

    fn table(&self) -> Result<Option<&RowsTable>, redb::Error> {
        if let Some(table) = self.table.get() {
            return Ok(table.as_ref());
        }
        let table = match self.reading.open_table(ROWS) {
            Ok(table) => Some(table),
            // Nothing was ever written.
            Err(TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(self.table.get_or_init(|| table).as_ref())
    }
}
