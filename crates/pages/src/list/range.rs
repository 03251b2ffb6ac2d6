//! Fixed ranges of sequence numbers.

use crate::texts::numbers::grouped;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;

/// Maximum number of links of a page, and of records of the smallest range.
pub const LINKS_MAX: u64 = 1_000;
/// The widths of ranges, the widest first. Each contains 1,000 of the next one. Sequences have 48 bits, so at most 282
/// of the widest ranges have records.
const WIDTHS: [NonZeroU64; 4] =
    [width(1_000_000_000_000), width(1_000_000_000), width(1_000_000), width(LINKS_MAX)];

const fn width(sequences: u64) -> NonZeroU64 {
    NonZeroU64::new(sequences).expect("a literal above zero")
}

/// A fixed range of sequence numbers. It begins at a multiple of its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRange {
    first: u64,
    width: NonZeroU64,
}

impl SequenceRange {
    /// All widths, the widest first.
    pub const fn widths() -> [NonZeroU64; 4] {
        WIDTHS
    }

    /// The range of this width that contains a sequence.
    pub fn around(sequence: u64, width: NonZeroU64) -> Self {
        Self { first: sequence - sequence % width, width }
    }

    /// Reads a range such as `2000-2999`. `None` for other texts, and for ranges that are not fixed ones.
    pub fn read(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        let number = |text: &str| {
            let is_plain = text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
            if is_plain { text.parse::<u64>().ok() } else { None }
        };
        let (first, last) = (number(first)?, number(last)?);
        let width = NonZeroU64::new(last.checked_sub(first)?.checked_add(1)?)?;
        (WIDTHS.contains(&width) && first.is_multiple_of(width.get())).then_some(Self { first, width })
    }

    /// The sequences.
    pub const fn sequences(self) -> Range<u64> {
        self.first..self.first.saturating_add(self.width.get())
    }

    /// The next wider range around it; `None` for the widest.
    pub fn parent(self) -> Option<Self> {
        let at = WIDTHS.iter().position(|width| *width == self.width)?;
        let width = *WIDTHS.get(at.checked_sub(1)?)?;
        Some(Self::around(self.first, width))
    }

    /// The number of sequences.
    pub const fn width(self) -> NonZeroU64 {
        self.width
    }

    /// Whether it contains ranges of this width.
    pub const fn contains(self, width: NonZeroU64) -> bool {
        width.get() < self.width.get()
    }

    /// The name for people, with commas between thousands.
    pub fn name(self) -> String {
        let Range { start, end } = self.sequences();
        format!("{}–{}", grouped(start), grouped(end - 1))
    }
}

impl fmt::Display for SequenceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.sequences();
        write!(f, "{start}-{}", end - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_ranges_are_read_as_written() {
        for text in ["0-999", "1000-1999", "999000-999999", "0-999999", "3000000000-3999999999"] {
            let range = SequenceRange::read(text).expect(text);
            assert_eq!(range.to_string(), text);
            assert_eq!(
                Some(range),
                range.sequences().next().map(|first| SequenceRange::around(first, range.width))
            );
        }
    }

    #[test]
    fn other_ranges_are_unknown() {
        for text in [
            "",
            "-",
            "0",
            "0-",
            "-999",
            "0-998",
            "0-1000",
            "1-1000",
            "500-1499",
            "0-9999",
            "1000000-999",
            "00-999",
            "+0-999",
            "0-0999",
            "1000-999",
            "0-18446744073709551615",
            "18446744073709551000-18446744073709551999",
        ] {
            assert_eq!(SequenceRange::read(text), None, "{text}");
        }
    }

    #[test]
    fn each_range_is_in_one_of_the_next_width() {
        let range = SequenceRange::read("1999000-1999999").expect("a fixed range");
        let parent = range.parent().expect("it is narrow");
        assert_eq!(parent.to_string(), "1000000-1999999");
        assert!(parent.contains(range.width()) && !range.contains(range.width()));
        let widest = SequenceRange::around(5, WIDTHS[0]);
        assert_eq!((widest.parent(), widest.sequences()), (None, 0..1_000_000_000_000));
        for pair in WIDTHS.windows(2) {
            assert_eq!(pair[0].get() / pair[1], LINKS_MAX);
        }
    }

    #[test]
    fn names_have_groups_of_three_digits() {
        assert_eq!(SequenceRange::read("1000-1999").map(SequenceRange::name).as_deref(), Some("1,000–1,999"));
    }
}
