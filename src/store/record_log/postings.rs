//! The records of each set: which sequences are in it, and how many of them in any range.
//!
//! Level 0 has one row for each 64 sequences: a bit for each record of the set. The row of a higher level counts the
//! records of 64 rows of the level below. A list reads level 0 in order. A count reads at most 64 rows of each level,
//! so its cost does not depend on the number of records. Set 0 contains all records. Empty rows are removed.

use super::keys::{POSTING_KEY_BYTES, bucket_of, posting_key};
use redb::ReadableTable;
use std::collections::BTreeMap;
use std::ops::Range;

/// The set of all records of a collection.
pub(super) const ALL: u32 = 0;
/// The highest level. A row of it counts 2^30 sequences.
const LEVEL_MAX: u8 = 4;
/// Sequences of a level 0 row, and rows that a row of the next level counts: 2^6.
const FAN_OUT_BITS: u8 = 6;

/// Additions and removals that are applied together.
#[derive(Debug, Default)]
pub(super) struct PostingChanges {
    /// Set and bucket to the bits to set and to clear.
    bits: BTreeMap<(u32, u64), (u64, u64)>,
}

impl PostingChanges {
    pub(super) fn add(&mut self, sets: &[u32], sequence: u64) {
        self.change(sets, sequence, |(to_set, _), bit| *to_set |= bit);
    }

    pub(super) fn remove(&mut self, sets: &[u32], sequence: u64) {
        self.change(sets, sequence, |(_, to_clear), bit| *to_clear |= bit);
    }

    fn change(&mut self, sets: &[u32], sequence: u64, change: impl Fn(&mut (u64, u64), u64)) {
        for &set in [ALL].iter().chain(sets) {
            let bits = self.bits.entry((set, sequence >> FAN_OUT_BITS)).or_default();
            change(bits, 1 << (sequence % 64));
        }
    }

    pub(super) fn apply(
        self,
        postings: &mut redb::Table<'_, &'static [u8; POSTING_KEY_BYTES], u64>,
        collection: u32,
    ) -> Result<(), redb::Error> {
        let mut counts: BTreeMap<(u32, u8, u64), i64> = BTreeMap::new();
        for ((set, bucket), (to_set, to_clear)) in self.bits {
            let key = posting_key(collection, set, 0, bucket);
            let before = postings.get(&key)?.map_or(0, |bits| bits.value());
            let after = before & !to_clear | to_set;
            replace(postings, &key, after)?;
            let change = i64::from(after.count_ones()) - i64::from(before.count_ones());
            for level in 1..=LEVEL_MAX {
                *counts.entry((set, level, bucket >> (FAN_OUT_BITS * level))).or_default() += change;
            }
        }
        for ((set, level, bucket), change) in counts.into_iter().filter(|(_, change)| *change != 0) {
            let key = posting_key(collection, set, level, bucket);
            let before = postings.get(&key)?.map_or(0, |count| count.value());
            replace(postings, &key, before.saturating_add_signed(change))?;
        }
        Ok(())
    }
}

fn replace(
    postings: &mut redb::Table<'_, &'static [u8; POSTING_KEY_BYTES], u64>,
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
            let (base, mut bits) = (bucket_of(key.value()) << FAN_OUT_BITS, bits.value());
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
        let key = posting_key(self.collection, self.set, 0, sequence >> FAN_OUT_BITS);
        let bits = self.table.get(&key)?.map_or(0, |bits| bits.value());
        Ok(bits >> (sequence % 64) & 1 == 1)
    }

    /// The number of records of the set in a range of sequences.
    pub(super) fn count(&self, range: Range<u64>) -> Result<u64, redb::Error> {
        if range.is_empty() {
            return Ok(0);
        }
        Ok(self.count_below(range.end)? - self.count_below(range.start)?)
    }

    fn count_below(&self, end: u64) -> Result<u64, redb::Error> {
        let (mut count, mut start) = (0, 0);
        for level in (1..=LEVEL_MAX).rev() {
            let shift = FAN_OUT_BITS * (level + 1);
            let key = |sequence: u64| posting_key(self.collection, self.set, level, sequence >> shift);
            let whole = end >> shift << shift;
            for row in self.table.range::<&[u8; POSTING_KEY_BYTES]>(&key(start)..&key(whole))? {
                count += row?.1.value();
            }
            start = whole;
        }
        let key = |sequence: u64| posting_key(self.collection, self.set, 0, sequence >> FAN_OUT_BITS);
        if start < end {
            for row in self.table.range::<&[u8; POSTING_KEY_BYTES]>(&key(start)..=&key(end - 1))? {
                let (key, bits) = row?;
                let below = (end - (bucket_of(key.value()) << FAN_OUT_BITS)).min(64);
                let mask = u64::MAX >> (64 - below);
                count += u64::from((bits.value() & mask).count_ones());
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::POSTINGS;
    use super::*;
    use redb::backends::InMemoryBackend;
    use std::collections::BTreeSet;

    /// A small multiplicative generator; the tests need no more.
    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % below
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
                let mut changes = PostingChanges::default();
                for _ in 0..200 {
                    let sequence = random(&mut seed, 1 << (8 + round % 20));
                    let set = 1 + random(&mut seed, 2) as u32;
                    let is_known = expected[0].contains(&sequence);
                    if !is_known {
                        changes.add(&[set], sequence);
                        expected[0].insert(sequence);
                        expected[set as usize].insert(sequence);
                    }
                }
                changes.apply(&mut table, 5).expect("writable");
                let mut changes = PostingChanges::default();
                let removed: Vec<u64> = expected[0].iter().copied().filter(|s| s % 7 == round % 7).collect();
                for sequence in removed {
                    let set = if expected[1].remove(&sequence) { 1 } else { 2 };
                    expected[2].remove(&sequence);
                    expected[0].remove(&sequence);
                    changes.remove(&[set], sequence);
                }
                changes.apply(&mut table, 5).expect("writable");
                for set in 0..3_u32 {
                    let postings = Postings { table: &table, collection: 5, set };
                    let expected = &expected[set as usize];
                    let start = random(&mut seed, 1 << 20);
                    let range = start..start + random(&mut seed, 1 << 27);
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
        let mut changes = PostingChanges::default();
        changes.add(&[3], 1_000_000);
        changes.apply(&mut table, 1).expect("writable");
        assert_eq!(table.iter().expect("readable").count(), 2 * (1 + usize::from(LEVEL_MAX)));
        let mut changes = PostingChanges::default();
        changes.remove(&[3], 1_000_000);
        changes.apply(&mut table, 1).expect("writable");
        assert_eq!(table.iter().expect("readable").count(), 0);
    }
}
