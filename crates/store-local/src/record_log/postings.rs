//! The records of each set: which sequences are in it, and how many of them in any range.
//!
//! Level 0 has one row for each 64 sequences: a bit for each record of the set. The row of a higher level counts the
//! records of 64 rows of the level below. A list reads level 0 in order. A count reads at most 64 rows of each level,
//! so its cost does not depend on the number of records. Set 0 contains all records. Empty rows are removed.
//!
//! Deleted records are in their sets, and in a second set for each of them that contains deleted records only. The
//! number of live records of a set is therefore the difference of two counts.

use super::keys::{POSTING_KEY_BYTES, bucket_of, posting_key};
use oaimend_store::mirror::RecordStatus;
use redb::ReadableTable;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// The set of all records of a collection.
pub(super) const ALL: u32 = 0;
/// Added to the number of a set: the number of the set of its deleted records. Sets have lower numbers.
const DELETED: u32 = 1 << 31;
/// The highest level. A row of it counts 2^30 sequences.
const LEVEL_MAX: u8 = 4;
/// Sequences of a level 0 row, and rows that a row of the next level counts: 2^6.
const FAN_OUT_BITS: u8 = 6;
/// Longest range that is counted by its level 0 rows, in sequences.
const COUNTED_BY_BITS_MAX: u64 = 4_096;

/// Fewer new rows of a set are inserted one by one: a cursor copies a page of the index.
const CURSOR_ROWS_MIN: usize = 4;

type PostingTable<'t> = redb::Table<'t, &'static [u8; POSTING_KEY_BYTES], u64>;

/// Additions and removals that are applied together.
#[derive(Debug)]
pub(super) struct PostingChanges {
    /// The first bucket without any record before the changes.
    first_new: u64,
    /// Set and bucket to the bits to set and to clear.
    bits: BTreeMap<(u32, u64), (u64, u64)>,
}

impl PostingChanges {
    /// No changes. The collection has no record with `next_sequence` or a higher sequence.
    pub(super) fn new(next_sequence: u64) -> Self {
        Self { first_new: next_sequence.div_ceil(1 << FAN_OUT_BITS), bits: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, sets: &[u32], status: RecordStatus, sequence: u64) {
        self.change(sets, status, sequence, |(to_set, _), bit| *to_set |= bit);
    }

    pub(super) fn remove(&mut self, sets: &[u32], status: RecordStatus, sequence: u64) {
        self.change(sets, status, sequence, |(_, to_clear), bit| *to_clear |= bit);
    }

    fn change(
        &mut self,
        sets: &[u32],
        status: RecordStatus,
        sequence: u64,
        change: impl Fn(&mut (u64, u64), u64),
    ) {
        let kinds: &[u32] = match status {
            RecordStatus::Live => &[0],
            RecordStatus::Deleted => &[0, DELETED],
        };
        for set in [ALL].iter().chain(sets).flat_map(|set| kinds.iter().map(move |kind| set | kind)) {
            let bits = self.bits.entry((set, sequence >> FAN_OUT_BITS)).or_default();
            change(bits, 1 << (sequence % 64));
        }
    }

    pub(super) fn apply(self, postings: &mut PostingTable<'_>, collection: u32) -> Result<(), redb::Error> {
        let mut counts: BTreeMap<(u32, u8, u64), i64> = BTreeMap::new();
        let mut new: Vec<((u32, u64), u64)> = Vec::new();
        for ((set, bucket), (to_set, to_clear)) in self.bits {
            let change = if bucket < self.first_new {
                let key = posting_key(collection, set, 0, bucket);
                let before = postings.get(&key)?.map_or(0, |bits| bits.value());
                let after = before & !to_clear | to_set;
                replace(postings, &key, after)?;
                i64::from(after.count_ones()) - i64::from(before.count_ones())
            } else {
                new.push(((set, bucket), to_set));
                i64::from(to_set.count_ones())
            };
            for level in 1..=LEVEL_MAX {
                *counts.entry((set, level, bucket >> (FAN_OUT_BITS * level))).or_default() += change;
            }
        }
        for rows in new.chunk_by(|((set, _), _), ((next, _), _)| set == next) {
            insert_new(postings, collection, rows)?;
        }
        for ((set, level, bucket), change) in counts.into_iter().filter(|(_, change)| *change != 0) {
            let key = posting_key(collection, set, level, bucket);
            let before = postings.get(&key)?.map_or(0, |count| count.value());
            replace(postings, &key, before.saturating_add_signed(change))?;
        }
        Ok(())
    }
}

/// Inserts rows of one set, which are after all its other rows of level 0.
fn insert_new(
    postings: &mut PostingTable<'_>,
    collection: u32,
    rows: &[((u32, u64), u64)],
) -> Result<(), redb::Error> {
    let key = |(set, bucket): (u32, u64)| posting_key(collection, set, 0, bucket);
    match rows {
        [(first, _), ..] if rows.len() >= CURSOR_ROWS_MIN => {
            let mut cursor = postings.lower_bound_mut(Bound::Included(&key(*first)))?;
            for (row, bits) in rows {
                cursor.insert_before(&key(*row), bits)?;
            }
            cursor.close()?;
        }
        rows => {
            for (row, bits) in rows {
                postings.insert(&key(*row), bits)?;
            }
        }
    }
    Ok(())
}

fn replace(
    postings: &mut PostingTable<'_>,
    key: &[u8; POSTING_KEY_BYTES],
    value: u64,
) -> Result<(), redb::Error> {
    if value == 0 {
        postings.remove(key)?;
    } else {
        postings.insert(key, value)?;
    }
    Ok(())
}

/// The postings of one set.
#[derive(Debug)]
pub(super) struct Postings<'t, T> {
    pub(super) table: &'t T,
    pub(super) collection: u32,
    pub(super) set: u32,
    pub(super) live_only: bool,
}

impl<T: ReadableTable<&'static [u8; POSTING_KEY_BYTES], u64>> Postings<'_, T> {
    /// The first sequences of the set in a range, in order, at most `count_max`.
    pub(super) fn first(&self, range: Range<u64>, count_max: usize) -> Result<Vec<u64>, redb::Error> {
        let mut found = Vec::new();
        if range.is_empty() || count_max == 0 {
            return Ok(found);
        }
        let key = |sequence: u64| posting_key(self.collection, self.set, 0, sequence >> FAN_OUT_BITS);
        for row in self.table.range::<&[u8; POSTING_KEY_BYTES]>(&key(range.start)..=&key(range.end - 1))? {
            let (key, bits) = row?;
            let bucket = bucket_of(key.value());
            let (base, mut bits) = (bucket << FAN_OUT_BITS, bits.value());
            if self.live_only {
                bits &= !self.bits_of(self.set | DELETED, bucket)?;
            }
            while bits != 0 {
                let sequence = base + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                if range.contains(&sequence) {
                    found.push(sequence);
                    if found.len() == count_max {
                        return Ok(found);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Whether the set contains a sequence.
    pub(super) fn contains(&self, sequence: u64) -> Result<bool, redb::Error> {
        let bucket = sequence >> FAN_OUT_BITS;
        let mut bits = self.bits_of(self.set, bucket)?;
        if self.live_only {
            bits &= !self.bits_of(self.set | DELETED, bucket)?;
        }
        Ok(bits >> (sequence % 64) & 1 == 1)
    }

    fn bits_of(&self, set: u32, bucket: u64) -> Result<u64, redb::Error> {
        let key = posting_key(self.collection, set, 0, bucket);
        Ok(self.table.get(&key)?.map_or(0, |bits| bits.value()))
    }

    /// The number of records of the set in a range of sequences.
    pub(super) fn count(&self, range: Range<u64>) -> Result<u64, redb::Error> {
        let all = self.count_of(self.set, range.clone())?;
        if !self.live_only || all == 0 {
            return Ok(all);
        }
        Ok(all.saturating_sub(self.count_of(self.set | DELETED, range)?))
    }

    fn count_of(&self, set: u32, range: Range<u64>) -> Result<u64, redb::Error> {
        match range.end.saturating_sub(range.start) {
            0..=COUNTED_BY_BITS_MAX => self.count_bits(set, range),
            _ => Ok(self.count_below(set, range.end)? - self.count_below(set, range.start)?),
        }
    }

    fn count_below(&self, set: u32, end: u64) -> Result<u64, redb::Error> {
        let (mut count, mut start) = (0, 0);
        for level in (1..=LEVEL_MAX).rev() {
            let shift = FAN_OUT_BITS * (level + 1);
            let key = |sequence: u64| posting_key(self.collection, set, level, sequence >> shift);
            let whole = end >> shift << shift;
            for row in self.table.range::<&[u8; POSTING_KEY_BYTES]>(&key(start)..&key(whole))? {
                count += row?.1.value();
            }
            start = whole;
        }
        Ok(count + self.count_bits(set, start..end)?)
    }

    /// Counts the bits of level 0.
    fn count_bits(&self, set: u32, range: Range<u64>) -> Result<u64, redb::Error> {
        if range.is_empty() {
            return Ok(0);
        }
        let key = |sequence: u64| posting_key(self.collection, set, 0, sequence >> FAN_OUT_BITS);
        let mut count = 0;
        for row in self.table.range::<&[u8; POSTING_KEY_BYTES]>(&key(range.start)..=&key(range.end - 1))? {
            let (key, bits) = row?;
            let base = bucket_of(key.value()) << FAN_OUT_BITS;
            let not_below = u64::MAX << range.start.saturating_sub(base);
            let below = u64::MAX >> (64 - (range.end - base).min(64));
            count += u64::from((bits.value() & not_below & below).count_ones());
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_log::tables::POSTINGS;
    use redb::backends::InMemoryBackend;
    use std::collections::BTreeSet;

    /// A small multiplicative generator; the tests need no more.
    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % below
    }

    /// A third of the records is deleted.
    fn status_of(sequence: u64) -> RecordStatus {
        if sequence.is_multiple_of(3) { RecordStatus::Deleted } else { RecordStatus::Live }
    }

    #[test]
    fn postings_behave_like_sorted_sets() {
        let database = redb::Database::builder().create_with_backend(InMemoryBackend::new());
        let database = database.expect("memory");
        let mut seed = 20_261_123;
        println!("seed {seed}");
        let mut expected = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        for round in 0..40_u64 {
            let writing = database.begin_write().expect("open");
            {
                let mut table = writing.open_table(POSTINGS).expect("a table");
                let next_sequence = expected[0].last().map_or(0, |last| last + 1);
                let mut changes = PostingChanges::new(next_sequence);
                for sequence in next_sequence..next_sequence + random(&mut seed, 1000) {
                    let set = 1 + random(&mut seed, 2) as u32;
                    changes.add(&[set], status_of(sequence), sequence);
                    expected[0].insert(sequence);
                    expected[set as usize].insert(sequence);
                }
                changes.apply(&mut table, 5).expect("writable");
                let mut changes = PostingChanges::new(u64::MAX);
                for _ in 0..200 {
                    let sequence = random(&mut seed, 1 << (8 + round % 20));
                    let set = 1 + random(&mut seed, 2) as u32;
                    let is_known = expected[0].contains(&sequence);
                    if !is_known {
                        changes.add(&[set], status_of(sequence), sequence);
                        expected[0].insert(sequence);
                        expected[set as usize].insert(sequence);
                    }
                }
                changes.apply(&mut table, 5).expect("writable");
                let mut changes = PostingChanges::new(u64::MAX);
                let removed: Vec<u64> = expected[0].iter().copied().filter(|s| s % 7 == round % 7).collect();
                for sequence in removed {
                    let set = if expected[1].remove(&sequence) { 1 } else { 2 };
                    expected[2].remove(&sequence);
                    expected[0].remove(&sequence);
                    changes.remove(&[set], status_of(sequence), sequence);
                }
                changes.apply(&mut table, 5).expect("writable");
                for (set, live_only) in [(0, false), (1, false), (2, false), (0, true), (2, true)] {
                    let postings = Postings { table: &table, collection: 5, set, live_only };
                    let is_wanted = |sequence: &u64| !live_only || status_of(*sequence) == RecordStatus::Live;
                    let expected: BTreeSet<u64> =
                        expected[set as usize].iter().copied().filter(is_wanted).collect();
                    let start = random(&mut seed, 1 << 20);
                    let len_bits = 3 + random(&mut seed, 24);
                    let range = start..start + random(&mut seed, 1 << len_bits);
                    let wanted: Vec<u64> = expected.range(range.clone()).copied().collect();
                    assert_eq!(postings.first(range.clone(), usize::MAX).expect("readable"), wanted);
                    assert_eq!(postings.count(range).expect("readable"), wanted.len() as u64);
                    assert_eq!(postings.count(0..1 << 40).expect("readable"), expected.len() as u64);
                    assert_eq!(postings.contains(start).expect("readable"), expected.contains(&start));
                }
            }
            writing.commit().expect("memory");
        }
        assert!(expected[1].len() > 100 && expected[2].len() > 100);
    }

    #[test]
    fn sets_without_records_take_no_rows() {
        let database = redb::Database::builder().create_with_backend(InMemoryBackend::new());
        let writing = database.as_ref().expect("memory").begin_write().expect("open");
        let mut table = writing.open_table(POSTINGS).expect("a table");
        let mut changes = PostingChanges::new(0);
        changes.add(&[3], RecordStatus::Deleted, 1_000_000);
        changes.apply(&mut table, 1).expect("writable");
        assert_eq!(table.iter().expect("readable").count(), 4 * (1 + usize::from(LEVEL_MAX)));
        let mut changes = PostingChanges::new(1_000_001);
        changes.remove(&[3], RecordStatus::Deleted, 1_000_000);
        changes.apply(&mut table, 1).expect("writable");
        assert_eq!(table.iter().expect("readable").count(), 0);
    }
}
