//! Divides the sequences of a collection into the parts of its lists. Pure: no I/O.

use oaimend_oai::UnixSecs;
use std::num::NonZeroU64;
use std::ops::Range;

/// A part of a list of a collection: the records in a range of sequences whose last change was until a position.
///
/// It only loses records: one that changes gets a sequence after the range, or a stamp after the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The number of the collection. One that was removed and harvested again has another one.
    pub collection: u64,
    /// The position: the last stamp of the list, in seconds since 1970.
    pub at_secs: UnixSecs,
    /// The first sequence.
    pub first: u64,
    /// The sequence after the last one.
    pub end: u64,
}

impl Part {
    /// Its sequences.
    pub const fn sequences(&self) -> Range<u64> {
        self.first..self.end
    }
}

/// Divides a list into ranges of at most `records_max` records. `counts` are the numbers of records in ranges of this
/// length, in order; a range has at most as many records as its length.
pub(crate) fn partition(counts: &[(u64, u64)], records_max: NonZeroU64) -> Vec<Range<u64>> {
    let mut parts: Vec<Range<u64>> = Vec::new();
    let mut count_of_last = 0;
    for &(first, count) in counts.iter().filter(|(_, count)| *count > 0) {
        let end = first.saturating_add(records_max.get());
        match parts.last_mut() {
            Some(last) if count_of_last + count <= records_max.get() => {
                last.end = end;
                count_of_last += count;
            }
            _ => {
                parts.push(first..end);
                count_of_last = count;
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_ranges_share_a_part_and_full_ones_do_not() {
        let parts = |counts: &[(u64, u64)]| partition(counts, NonZeroU64::new(10).expect("it is not zero"));
        assert_eq!(parts(&[]), []);
        assert_eq!(parts(&[(0, 0)]), []);
        assert_eq!(parts(&[(0, 10), (10, 10), (20, 1)]), [0..10, 10..20, 20..30]);
        assert_eq!(parts(&[(0, 0), (10, 4), (20, 0), (30, 6), (40, 1)]), [10..40, 40..50]);
    }
}
