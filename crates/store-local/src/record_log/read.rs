//! Lists, counts and single records.

use super::block_reader::{BlockReader, Fetched, locate};
use super::index::IndexError;
use super::keys::{
    IdentifierRow, POSTING_KEY_BYTES, STAMP_KEY_BYTES, TIME_KEY_BYTES, identifier_key, identifier_range,
    stamp_key, time_and_sequence, time_key,
};
use super::postings::{ALL, Postings};
use super::shared::{Shared, collections_of, find_collection};
use super::tables::{CollectionRow, DAMAGED, DATES, IDENTIFIERS, POSTINGS, SETS, STAMPS};
use oaimend_oai::UnixSecs;
use oaimend_store::mirror::{
    IdentifierEntry, ListFilter, ListOrder, ListQuery, ListedPage, MirrorError, Position, RecordStatus,
    StoredRecord,
};
use oaimend_store::{ChosenRecords, Identifier, Prefix, RepositoryId};
use redb::ReadTransaction;
use std::num::NonZeroU64;
use std::ops::Range;

/// Reads that may find their segment removed by a compaction before one fails.
const ATTEMPTS_MAX: usize = 5;
/// Maximum number of records that a page of a list by datestamp examines.
const EXAMINED_MAX: usize = 65_536;

/// A list of one set of a collection.
struct List<'r> {
    reading: &'r ReadTransaction,
    collection: CollectionRow,
    set: u32,
    filter: &'r ListFilter,
}

/// Where a page ends.
struct Plan {
    /// The time and sequence of each record. The time is unknown in the order of stamps.
    records: Vec<(Option<UnixSecs>, u64)>,
    /// Where the next page begins if this page contains all records of the plan.
    next: Option<Position>,
}

impl<'r> List<'r> {
    /// `None` if the list is empty because its collection or its set is.
    fn open(reading: &'r ReadTransaction, filter: &'r ListFilter) -> Result<Option<Self>, IndexError> {
        let Some((repository, collection)) =
            find_collection(reading, RepositoryId(&filter.repository), Prefix(&filter.prefix))?
        else {
            return Ok(None);
        };
        let set = match &filter.set {
            None => Some(ALL),
            Some(set_spec) => {
                reading.open_table(SETS)?.get((repository, set_spec.as_str()))?.map(|set| set.value())
            }
        };
        Ok(set.map(|set| Self { reading, collection, set, filter }))
    }

    /// The records of the set.
    fn postings<'p, T>(&self, table: &'p T) -> Postings<'p, T> {
        let live_only = self.filter.live_only;
        Postings { table, collection: self.collection.number, set: self.set, live_only }
    }

    /// The sequences that are in the list by their stamps.
    fn sequences(&self) -> Result<Range<u64>, IndexError> {
        let start = match self.filter.from_secs {
            Some(from_secs) => self.first_with_stamp(from_secs)?,
            None => 0,
        };
        let end = match self.filter.until_secs.and_then(|until_secs| until_secs.0.checked_add(1)) {
            Some(after_secs) => self.first_with_stamp(UnixSecs(after_secs))?,
            None => self.collection.next_sequence,
        };
        let bounds = self.filter.sequences.clone().unwrap_or(0..u64::MAX);
        Ok(start.max(bounds.start)..end.min(bounds.end))
    }

    /// Whether a list by datestamp contains a record.
    fn contains<T>(&self, postings: &Postings<'_, T>, sequence: u64) -> Result<bool, IndexError>
    where
        T: redb::ReadableTable<&'static [u8; POSTING_KEY_BYTES], u64>,
    {
        let is_within = self.filter.sequences.as_ref().is_none_or(|bounds| bounds.contains(&sequence));
        let is_any = self.set == ALL && !self.filter.live_only;
        Ok(is_within && (is_any || postings.contains(sequence)?))
    }

    /// The first sequence with this stamp or a later one.
    fn first_with_stamp(&self, secs: UnixSecs) -> Result<u64, IndexError> {
        let number = self.collection.number;
        let stamps = self.reading.open_table(STAMPS)?;
        let range = stamp_key(number, secs)..stamp_key(number + 1, UnixSecs::MIN);
        let first = stamps.range::<&[u8; STAMP_KEY_BYTES]>(&range.start..&range.end)?.next().transpose()?;
        Ok(first.map_or(self.collection.next_sequence, |(_, sequence)| sequence.value()))
    }

    /// The keys of the datestamps that are in the list, and after a position.
    fn dates(&self, after: Option<Position>) -> Range<[u8; TIME_KEY_BYTES]> {
        let number = self.collection.number;
        let from_secs = self.filter.from_secs.unwrap_or(UnixSecs::MIN);
        let start = time_key(number, from_secs, 0);
        let after = after.map(|after| time_key(number, after.secs, after.sequence + 1));
        let end = match self.filter.until_secs.and_then(|until_secs| until_secs.0.checked_add(1)) {
            Some(after_secs) => time_key(number, UnixSecs(after_secs), 0),
            None => time_key(number + 1, UnixSecs::MIN, 0),
        };
        after.map_or(start, |after| after.max(start))..end
    }

    fn plan(&self, after: Option<Position>, count_max: usize) -> Result<Plan, IndexError> {
        let table = self.reading.open_table(POSTINGS)?;
        let postings = self.postings(&table);
        if self.filter.by == ListOrder::Stamp {
            let mut range = self.sequences()?;
            range.start = range.start.max(after.map_or(0, |after| after.sequence + 1));
            let mut sequences = postings.first(range, count_max.saturating_add(1))?;
            let has_more = sequences.len() > count_max;
            sequences.truncate(count_max);
            let last = if has_more { sequences.last() } else { None };
            let next =
                last.map(|&sequence| Position { secs: self.filter.from_secs.unwrap_or_default(), sequence });
            return Ok(Plan {
                records: sequences.into_iter().map(|sequence| (None, sequence)).collect(),
                next,
            });
        }
        let dates = self.reading.open_table(DATES)?;
        let range = self.dates(after);
        let mut plan = Plan { records: Vec::new(), next: None };
        if range.is_empty() {
            return Ok(plan);
        }
        let mut last = None;
        for (examined, row) in dates.range::<&[u8; TIME_KEY_BYTES]>(&range.start..&range.end)?.enumerate() {
            let (secs, sequence) = time_and_sequence(row?.0.value());
            if plan.records.len() == count_max || examined == EXAMINED_MAX {
                plan.next = last;
                break;
            }
            if self.contains(&postings, sequence)? {
                plan.records.push((Some(secs), sequence));
            }
            last = Some(Position { secs, sequence });
        }
        Ok(plan)
    }

    /// One page; `None` if a record was not found because a compaction has moved it meanwhile. Such a record counts as
    /// damaged in the last attempt.
    fn page(
        &self,
        shared: &Shared,
        query: &ListQuery,
        is_last_attempt: bool,
    ) -> Result<Option<ListedPage>, IndexError> {
        let plan = self.plan(query.after, query.count_max.max(1))?;
        let number = self.collection.number;
        let located = locate(self.reading, number, plan.records.iter().map(|(_, sequence)| *sequence))?;
        let has_touched = self.collection.touched > 0;
        let mut reader = BlockReader::new(shared, self.reading, number, has_touched, query.with_bytes);
        let mut page = ListedPage { next: plan.next, ..ListedPage::default() };
        let mut bytes = 0;
        let mut last = query.after;
        for (at, &(secs, sequence)) in plan.records.iter().enumerate() {
            let record = match reader.fetch(located.get(at..).unwrap_or_default())? {
                Fetched::Record(record) => record,
                Fetched::Moved if !is_last_attempt => return Ok(None),
                Fetched::Damaged | Fetched::Moved => {
                    shared.suspect(RepositoryId(&query.filter.repository));
                    page.damaged += 1;
                    let secs = secs.or(last.map(|last| last.secs)).unwrap_or_default();
                    last = Some(Position { secs, sequence });
                    continue;
                }
            };
            bytes += record.bytes.len();
            if bytes > query.bytes_max && !page.records.is_empty() {
                page.next = last;
                break;
            }
            last = Some(Position { secs: secs.unwrap_or(record.stamp_secs), sequence });
            page.records.push(record);
        }
        if self.filter.by == ListOrder::Stamp && page.next.is_some() {
            page.next = last;
            if let Some(last) = last {
                reader.keep_last(last.sequence);
            }
        }
        Ok(Some(page))
    }
}

/// One page of a list.
pub(super) fn list(shared: &Shared, query: &ListQuery) -> Result<ListedPage, IndexError> {
    retry_moved(|is_last_attempt| {
        shared.index.read(|reading| match List::open(reading, &query.filter)? {
            Some(list) => list.page(shared, query, is_last_attempt),
            None => Ok(Some(ListedPage::default())),
        })
    })
}

/// The current records with these sequences. A record that leaves the list of all records has changed since.
pub(super) fn records_at(
    shared: &Shared,
    chosen: &ChosenRecords,
) -> Result<Vec<Option<StoredRecord>>, IndexError> {
    let repository = RepositoryId(&chosen.repository);
    retry_moved(|is_last_attempt| {
        shared.index.read(|reading| {
            let Some((_, collection)) = find_collection(reading, repository, Prefix(&chosen.prefix))? else {
                return Ok(Some(vec![None; chosen.sequences.len()]));
            };
            let (number, has_touched) = (collection.number, collection.touched > 0);
            let table = reading.open_table(POSTINGS)?;
            let current = Postings { table: &table, collection: number, set: ALL, live_only: false };
            let mut located = locate(reading, number, chosen.sequences.iter().copied())?.into_iter();
            let mut reader = BlockReader::new(shared, reading, number, has_touched, chosen.with_bytes);
            let (mut records, mut bytes) = (Vec::with_capacity(chosen.sequences.len()), 0);
            while let Some((sequence, _)) = located.as_slice().first() {
                if !current.contains(*sequence)? {
                    records.push(None);
                    located.next();
                    continue;
                }
                let record = match reader.fetch(located.as_slice())? {
                    Fetched::Record(record) => record,
                    Fetched::Moved if !is_last_attempt => return Ok(None),
                    Fetched::Damaged | Fetched::Moved => {
                        shared.suspect(repository);
                        return Err(MirrorError::Damaged.into());
                    }
                };
                let is_first = bytes == 0;
                bytes += record.bytes.len();
                if bytes > chosen.bytes_max && !is_first {
                    break;
                }
                records.push(Some(record));
                located.next();
            }
            Ok(Some(records))
        })
    })
}

/// The number of records in a list.
pub(super) fn count(shared: &Shared, filter: &ListFilter) -> Result<u64, IndexError> {
    shared.index.read(|reading| {
        let Some(list) = List::open(reading, filter)? else { return Ok(0) };
        let table = reading.open_table(POSTINGS)?;
        let postings = list.postings(&table);
        if filter.by == ListOrder::Stamp {
            return Ok(postings.count(list.sequences()?)?);
        }
        let range = list.dates(None);
        if range.is_empty() {
            return Ok(0);
        }
        let mut count = 0;
        for row in reading.open_table(DATES)?.range::<&[u8; TIME_KEY_BYTES]>(&range.start..&range.end)? {
            let (_, sequence) = time_and_sequence(row?.0.value());
            count += u64::from(list.contains(&postings, sequence)?);
        }
        Ok(count)
    })
}

/// The number of records in each range of sequences.
pub(super) fn count_by_sequence(
    shared: &Shared,
    filter: &ListFilter,
    step: NonZeroU64,
) -> Result<Vec<(u64, u64)>, IndexError> {
    shared.index.read(|reading| {
        let Some(list) = List::open(reading, filter)? else { return Ok(Vec::new()) };
        let table = reading.open_table(POSTINGS)?;
        let postings = list.postings(&table);
        let Range { mut start, end } = list.sequences()?;
        let mut counts = Vec::new();
        while start < end {
            let first = start - start % step;
            let after = end.min(first.saturating_add(step.get()));
            counts.push((first, postings.count(start..after)?));
            start = after;
        }
        Ok(counts)
    })
}

/// One record.
pub(super) fn record(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
    identifier: Identifier<'_>,
) -> Result<Option<StoredRecord>, IndexError> {
    retry_moved(|_| {
        shared.index.read(|reading| {
            let Some((_, collection)) = find_collection(reading, repository, prefix)? else {
                return Ok(Some(None));
            };
            let Some(row) = identifier_row(reading, collection.number, identifier.0)? else {
                return Ok(Some(None));
            };
            if row.is_damaged {
                return Err(MirrorError::Damaged.into());
            }
            let located = locate(reading, collection.number, [row.sequence])?;
            let has_touched = collection.touched > 0;
            let mut reader = BlockReader::new(shared, reading, collection.number, has_touched, true);
            match reader.fetch(&located)? {
                Fetched::Record(record) => Ok(Some(Some(record))),
                Fetched::Damaged => {
                    shared.suspect(repository);
                    Err(MirrorError::Damaged.into())
                }
                Fetched::Moved => Ok(None),
            }
        })
    })
}

/// Several records without their bytes.
pub(super) fn headers(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
    identifiers: &[String],
) -> Result<Vec<Option<StoredRecord>>, IndexError> {
    retry_moved(|is_last_attempt| {
        shared.index.read(|reading| {
            let mut headers = Vec::with_capacity(identifiers.len());
            let Some((_, collection)) = find_collection(reading, repository, prefix)? else {
                headers.resize(identifiers.len(), None);
                return Ok(Some(headers));
            };
            let rows = reading.open_table(IDENTIFIERS)?;
            let (number, has_touched) = (collection.number, collection.touched > 0);
            let mut reader = BlockReader::new(shared, reading, number, has_touched, false);
            for identifier in identifiers {
                let row = rows.get(identifier_key(number, identifier).as_slice())?;
                let row = row.map(|row| IdentifierRow::from_bytes(row.value()));
                let Some(row) = row.filter(|row| !row.is_damaged) else {
                    let key = identifier_key(number, identifier);
                    if row.is_some() && reading.open_table(DAMAGED)?.get(key.as_slice())?.is_some() {
                        return Err(MirrorError::Damaged.into());
                    }
                    headers.push(None);
                    continue;
                };
                match reader.fetch(&locate(reading, number, [row.sequence])?)? {
                    Fetched::Record(record) => headers.push(Some(record)),
                    Fetched::Moved if !is_last_attempt => return Ok(None),
                    Fetched::Damaged | Fetched::Moved => {
                        shared.suspect(repository);
                        return Err(MirrorError::Damaged.into());
                    }
                }
            }
            Ok(Some(headers))
        })
    })
}

/// Reads again, in a new transaction, while `read` returns `None`. `read` receives whether the attempt is the last.
fn retry_moved<T>(read: impl Fn(bool) -> Result<Option<T>, IndexError>) -> Result<T, IndexError> {
    for attempt in 1..=ATTEMPTS_MAX {
        if let Some(done) = read(attempt == ATTEMPTS_MAX)? {
            return Ok(done);
        }
    }
    // No compaction is that fast: the segment was removed by somebody else.
    Err(MirrorError::Damaged.into())
}

fn identifier_row(
    reading: &ReadTransaction,
    collection: u32,
    identifier: &str,
) -> Result<Option<IdentifierRow>, IndexError> {
    let identifiers = reading.open_table(IDENTIFIERS)?;
    let row = identifiers.get(identifier_key(collection, identifier).as_slice())?;
    Ok(row.map(|row| IdentifierRow::from_bytes(row.value())))
}

/// The formats of each item.
pub(super) fn formats_of_items(
    shared: &Shared,
    repository: RepositoryId<'_>,
    identifiers: &[String],
) -> Result<Vec<Vec<(String, RecordStatus)>>, IndexError> {
    shared.index.read(|reading| {
        let mut items = vec![Vec::new(); identifiers.len()];
        let table = reading.open_table(IDENTIFIERS)?;
        for (prefix, collection) in collections_of(reading, repository)? {
            for (formats, identifier) in items.iter_mut().zip(identifiers) {
                if let Some(row) = table.get(identifier_key(collection.number, identifier).as_slice())? {
                    formats.push((prefix.clone(), IdentifierRow::from_bytes(row.value()).status));
                }
            }
        }
        Ok(items)
    })
}

/// Identifiers in order.
pub(super) fn identifiers(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Prefix<'_>,
    after: Option<Identifier<'_>>,
    count_max: usize,
) -> Result<Vec<IdentifierEntry>, IndexError> {
    shared.index.read(|reading| {
        let Some((_, collection)) = find_collection(reading, repository, prefix)? else {
            return Ok(Vec::new());
        };
        let (start, end) = identifier_range(collection.number, after);
        let table = reading.open_table(IDENTIFIERS)?;
        let mut entries = Vec::new();
        for row in table.range(start.as_slice()..end.as_slice())?.take(count_max) {
            let (key, row) = row?;
            let row = IdentifierRow::from_bytes(row.value());
            entries.push(IdentifierEntry {
                identifier: identifier_of(key.value()),
                datestamp_secs: row.datestamp_secs,
                status: row.status,
            });
        }
        Ok(entries)
    })
}

/// The identifier in a key.
pub(super) fn identifier_of(key: &[u8]) -> String {
    String::from_utf8_lossy(key.get(4..).unwrap_or_default()).into_owned()
}

/// The stamp of the first record in the lists of a collection.
pub(super) fn earliest_stamp(
    reading: &ReadTransaction,
    collection: &CollectionRow,
) -> Result<Option<UnixSecs>, IndexError> {
    let table = reading.open_table(POSTINGS)?;
    let postings = Postings { table: &table, collection: collection.number, set: ALL, live_only: false };
    let first = postings.first(0..collection.next_sequence, 1)?;
    let Some(&sequence) = first.first() else { return Ok(None) };
    // The stamp of a sequence is the last one that begins at or before it. There are few stamps before the first
    // record that is still listed, unless all early records have changed.
    let stamps = reading.open_table(STAMPS)?;
    let range = stamp_key(collection.number, UnixSecs::MIN)..stamp_key(collection.number + 1, UnixSecs::MIN);
    let mut earliest = None;
    for row in stamps.range::<&[u8; STAMP_KEY_BYTES]>(&range.start..&range.end)? {
        let (key, first) = row?;
        if first.value() > sequence {
            break;
        }
        earliest = Some(super::keys::stamp_of(key.value()));
    }
    Ok(earliest)
}
