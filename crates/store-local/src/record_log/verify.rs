//! The check of all records of a collection. Damaged records leave the lists until they are fetched again, or until
//! their loss is accepted.

use super::block_reader::{ListedBlock, next_blocks, read_block};
use super::index::IndexError;
use super::kept_blocks::ReadBlock;
use super::keys::{IdentifierRow, SEQUENCE_MAX, identifier_key, sequence_key, time_key};
use super::postings::{ALL, PostingChanges, Postings};
use super::sets::SetLists;
use super::shared::{CollectionKey, Shared, change_collection};
use super::tables::{
    BLOCKS, COLLECTIONS, CollectionRow, DAMAGED, DATES, IDENTIFIERS, LOST, POSTINGS, TOUCHED, collection_row,
};
use oaimend_store::mirror::{RecordStatus, Verification};
use redb::{ReadableTable, WriteTransaction};

/// The findings of a check.
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
pub(super) fn verify_collection(shared: &Shared, key: CollectionKey<'_>) -> Result<Verification, IndexError> {
    let findings = examine(shared, key)?;
    let mut verification = Verification { records: findings.records, damaged: 0 };
    if !findings.lost.is_empty() {
        verification.damaged = change_collection(shared, key, |writing, collection| {
            exclude(writing, key.repository, collection, &findings)
        })?;
    }
    Ok(verification)
}

fn examine(shared: &Shared, key: CollectionKey<'_>) -> Result<Findings, IndexError> {
    let (mut findings, mut start) = (Findings::default(), 0);
    loop {
        shared.check_open()?;
        let next = shared.index.read(|reading| {
            let collection = collection_row(&reading.open_table(COLLECTIONS)?, key.repository, key.prefix)?;
            let Some(collection) = collection else { return Ok(None) };
            let blocks = next_blocks(reading, collection.number, start..SEQUENCE_MAX)?;
            // Records after the last block, which no block contains.
            let table = reading.open_table(POSTINGS)?;
            let postings =
                Postings { table: &table, collection: collection.number, set: ALL, live_only: false };
            let rest = if blocks.is_empty() { start..collection.next_sequence } else { 0..0 };
            Ok(Some((collection.number, blocks, postings.first(rest, usize::MAX)?)))
        });
        let Some((number, blocks, rest)) = next? else { break };
        findings.lost.extend(rest);
        let Some(last) = blocks.last() else { break };
        start = last.row.last + 1;
        for block in &blocks {
            findings.examine_block(shared, number, block)?;
        }
    }
    Ok(findings)
}

impl Findings {
    fn examine_block(&mut self, shared: &Shared, number: u32, block: &ListedBlock) -> Result<(), IndexError> {
        self.lost.extend(&block.missing);
        self.records += block.listed.len() as u64;
        let Some(ReadBlock { block: decoded, body }) = read_block(shared, number, block.row)? else {
            self.lost.extend(&block.listed);
            self.unreadable.push(block.first);
            return Ok(());
        };
        let (directory, mut scratch) = (&decoded.directory, String::new());
        let is_lost = |sequence: &&u64| {
            directory.slot(**sequence).is_none_or(|slot| !directory.is_intact(slot, &body, &mut scratch))
        };
        self.lost.extend(block.listed.iter().filter(is_lost));
        Ok(())
    }
}

/// Removes damaged records from the lists, and names them. Returns their number. A record that was replaced since the
/// check is not damaged any more.
fn exclude(
    writing: &WriteTransaction,
    repository: u32,
    collection: &mut CollectionRow,
    findings: &Findings,
) -> Result<u64, IndexError> {
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
    let (mut damaged, mut postings) =
        (writing.open_table(DAMAGED)?, PostingChanges::new(collection.next_sequence));
    let mut set_lists = SetLists::default();
    for (key, row) in &found {
        let sets = set_lists.sets(writing, repository, row.set_list)?;
        postings.remove(&sets, row.status, row.sequence);
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

/// Accepts the loss of all damaged records that are named. Returns their number.
pub(super) fn accept_loss(
    writing: &WriteTransaction,
    collection: &mut CollectionRow,
) -> Result<u64, IndexError> {
    let range = (identifier_key(collection.number, ""), identifier_key(collection.number + 1, ""));
    let (mut damaged, mut lost) = (writing.open_table(DAMAGED)?, writing.open_table(LOST)?);
    let mut accepted = 0;
    for row in damaged.extract_from_if(range.0.as_slice()..range.1.as_slice(), |_, ()| true)? {
        lost.insert(row?.0.value(), ())?;
        accepted += 1;
    }
    collection.damaged -= accepted;
    collection.lost += accepted;
    Ok(accepted)
}
