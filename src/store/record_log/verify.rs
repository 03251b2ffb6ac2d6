//! The check of all records of a collection. Damaged records leave the lists until they are fetched again.

use super::block_reader::read_block;
use super::keys::{
    BlockRow, IdentifierRow, SEQUENCE_KEY_BYTES, identifier_key, sequence_key, sequence_of, time_key,
};
use super::postings::{ALL, PostingChanges, Postings};
use super::sets::SetLists;
use super::shared::{CollectionKey, Shared, change_collection};
use super::tables::{
    BLOCKS, COLLECTIONS, CollectionRow, DAMAGED, DATES, IDENTIFIERS, POSTINGS, TOUCHED, collection_row,
};
use crate::store::mirror::{MirrorError, RecordStatus, Verification};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

/// What a check found.
#[derive(Default)]
struct Findings {
    /// The number of records in the lists.
    records: u64,
    /// The sequences of damaged records in order.
    lost: Vec<u64>,
    /// The first sequences of unreadable blocks.
    unreadable: Vec<u64>,
}

/// Checks a collection. The caller holds the maintenance lock.
pub(super) fn verify_collection(
    shared: &Shared,
    key: CollectionKey<'_>,
) -> Result<Verification, MirrorError> {
    let findings = shared.index.read(|reading| examine(shared, reading, key))?;
    let mut verification = Verification { records: findings.records, damaged: 0 };
    if !findings.lost.is_empty() {
        verification.damaged = change_collection(shared, key, |writing, collection| {
            exclude(writing, key.repository, collection, &findings)
        })?;
    }
    Ok(verification)
}

fn examine(
    shared: &Shared,
    reading: &ReadTransaction,
    key: CollectionKey<'_>,
) -> Result<Findings, MirrorError> {
    let mut findings = Findings::default();
    let collection = collection_row(&reading.open_table(COLLECTIONS)?, key.repository, key.prefix)?;
    let Some(collection) = collection else { return Ok(findings) };
    let number = collection.number;
    let (blocks, postings) = (reading.open_table(BLOCKS)?, reading.open_table(POSTINGS)?);
    let postings = Postings { table: &postings, collection: number, set: ALL };
    let range = (sequence_key(number, 0), sequence_key(number + 1, 0));
    let mut examined_to = 0;
    for row in blocks.range::<&[u8; SEQUENCE_KEY_BYTES]>(&range.0..&range.1)? {
        shared.check_open()?;
        let (key, row) = row?;
        let (first, row) = (sequence_of(key.value()), BlockRow::from_bytes(row.value()));
        // Records that no block contains.
        findings.lost.extend(postings.first(examined_to..first, usize::MAX)?);
        examined_to = row.last + 1;
        let listed = postings.first(first..examined_to, usize::MAX)?;
        findings.records += listed.len() as u64;
        let Some((block, body)) = read_block(shared, number, row)? else {
            findings.lost.extend(listed);
            findings.unreadable.push(first);
            continue;
        };
        let is_lost = |sequence: &u64| block.slot(*sequence).is_none_or(|slot| slot.bytes_in(&body).is_err());
        findings.lost.extend(listed.into_iter().filter(is_lost));
    }
    findings.lost.extend(postings.first(examined_to..collection.next_sequence, usize::MAX)?);
    Ok(findings)
}

/// Removes damaged records from the lists, and names them. Returns their number. A record that was replaced since the
/// check is not damaged any more.
fn exclude(
    writing: &WriteTransaction,
    repository: u32,
    collection: &mut CollectionRow,
    findings: &Findings,
) -> Result<u64, MirrorError> {
    let number = collection.number;
    let mut identifiers = writing.open_table(IDENTIFIERS)?;
    let mut found = Vec::new();
    let range = (identifier_key(number, ""), identifier_key(number + 1, ""));
    for row in identifiers.range(range.0.as_slice()..range.1.as_slice())? {
        let (key, row) = row?;
        let row = IdentifierRow::from_bytes(row.value());
        if !row.is_damaged && findings.lost.binary_search(&row.sequence).is_ok() {
            found.push((key.value().to_vec(), row));
        }
    }
    let (mut dates, mut touched) = (writing.open_table(DATES)?, writing.open_table(TOUCHED)?);
    let (mut damaged, mut postings) = (writing.open_table(DAMAGED)?, PostingChanges::default());
    let mut set_lists = SetLists::default();
    for (key, row) in &found {
        postings.remove(&set_lists.sets(writing, repository, row.set_list)?, row.sequence);
        dates.remove(&time_key(number, row.datestamp_secs, row.sequence))?;
        if touched.remove(&sequence_key(number, row.sequence))?.is_some() {
            collection.touched -= 1;
        }
        identifiers.insert(key.as_slice(), &IdentifierRow { is_damaged: true, ..*row }.to_bytes())?;
        damaged.insert(key.as_slice(), ())?;
        match row.status {
            RecordStatus::Live => collection.live -= 1,
            RecordStatus::Deleted => collection.tombstones -= 1,
        }
    }
    collection.damaged += found.len() as u64;
    postings.apply(&mut writing.open_table(POSTINGS)?, number)?;
    let mut blocks = writing.open_table(BLOCKS)?;
    for first in &findings.unreadable {
        blocks.remove(&sequence_key(number, *first))?;
    }
    Ok(found.len() as u64)
}
