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

/// A change without its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) stamp_secs: UnixSecs,
    pub(crate) sequence: u64,
    /// The maximum length of its entry, in bytes.
    pub(crate) bytes: usize,
}

/// The last of these changes, which are in order, with all changes of their seconds, as many as both limits allow: the
/// number of changes and that of bytes. `has_all` says that there are no changes before these; otherwise changes before
/// them may have the second of the first one.
pub(crate) fn newest_whole_seconds(
    changes: &[Change],
    has_all: bool,
    (count_max, bytes_max): (usize, usize),
) -> &[Change] {
    let mut bytes = 0;
    let fitting = changes.iter().rev().take(count_max).take_while(|change| {
        bytes += change.bytes;
        bytes <= bytes_max
    });
    let left_out = changes.len() - fitting.count();
    let left_out = if has_all { left_out } else { left_out.max(1) };
    let Some(last_left_out) = left_out.checked_sub(1).and_then(|at| changes.get(at)) else {
        return if has_all { changes } else { &[] };
    };
    let is_cut = |change: &Change| change.stamp_secs <= last_left_out.stamp_secs;
    &changes[changes.partition_point(is_cut)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_whole_or_left_out() {
        let newest = |stamps: &[i64], has_all, limits| {
            let change = |(sequence, secs): (usize, &i64)| Change {
                stamp_secs: UnixSecs(*secs),
                sequence: sequence as u64,
                bytes: 10,
            };
            let changes: Vec<Change> = stamps.iter().enumerate().map(change).collect();
            newest_whole_seconds(&changes, has_all, limits).len()
        };
        let stamps = [1, 1, 2, 2, 2, 3];
        for (has_all, count_max, bytes_max, expected) in [
            (true, 6, 60, 6),
            // There may be more of the first second.
            (false, 6, 60, 4),
            (true, 5, 60, 4),
            (true, 4, 60, 4),
            (true, 3, 60, 1),
            (true, 6, 59, 4),
            (true, 6, 39, 1),
            (true, 6, 9, 0),
            (true, 0, 60, 0),
        ] {
            assert_eq!(newest(&stamps, has_all, (count_max, bytes_max)), expected, "{count_max} {bytes_max}");
        }
        assert_eq!(newest(&[1, 1], true, (1, 60)), 0);
        assert_eq!(newest(&[], true, (1, 60)), 0);
        assert_eq!(newest(&[], false, (1, 60)), 0);
    }

    #[test]
    fn sparse_ranges_share_a_part_and_full_ones_do_not() {
        let parts = |counts: &[(u64, u64)]| partition(counts, NonZeroU64::new(10).expect("it is not zero"));
        assert_eq!(parts(&[]), []);
        assert_eq!(parts(&[(0, 0)]), []);
        assert_eq!(parts(&[(0, 10), (10, 10), (20, 1)]), [0..10, 10..20, 20..30]);
        assert_eq!(parts(&[(0, 0), (10, 4), (20, 0), (30, 6), (40, 1)]), [10..40, 40..50]);
    }
}
