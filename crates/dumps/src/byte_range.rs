//! The range of bytes that a request wants (RFC 9110, section 14).

use std::ops::Range;

/// The part of a file that a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// All of it: there is no range, or one that may be ignored.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// A range without any byte of it.
    Unsatisfiable,
}

impl ByteRange {
    /// Reads the header `Range` for a file of this length. Several ranges are ignored, as the standard allows.
    pub fn read(value: &str, bytes: u64) -> Self {
        let Some((unit, ranges)) = value.trim().split_once('=') else { return Self::Whole };
        let (Some((first, last)), false) = (ranges.trim().split_once('-'), ranges.contains(',')) else {
            return Self::Whole;
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return Self::Whole;
        }
        let range = match (number(first), number(last)) {
            (Some(Some(first)), Some(None)) => first..bytes,
            (Some(Some(first)), Some(Some(last))) if first <= last => {
                first..last.saturating_add(1).min(bytes)
            }
            (Some(None), Some(Some(length))) => bytes.saturating_sub(length)..bytes,
            _ => return Self::Whole,
        };
        if range.start < range.end { Self::Part(range) } else { Self::Unsatisfiable }
    }
}

/// `Some(None)` without digits; `None` if it is no number. A number that is too high is beyond the end.
fn number(text: &str) -> Option<Option<u64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(None);
    }
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| Some(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        for (value, expected) in [
            ("bytes=0-", ByteRange::Part(0..10)),
            ("Bytes = 3-5", ByteRange::Part(3..6)),
            ("bytes=3-99999999999999999999999", ByteRange::Part(3..10)),
            ("bytes=-4", ByteRange::Part(6..10)),
            ("bytes=-40", ByteRange::Part(0..10)),
            ("bytes=10-", ByteRange::Unsatisfiable),
            ("bytes=99999999999999999999999-", ByteRange::Unsatisfiable),
            ("bytes=-0", ByteRange::Unsatisfiable),
            ("bytes=5-3", ByteRange::Whole),
            ("bytes=0-1,3-4", ByteRange::Whole),
            ("bytes=-", ByteRange::Whole),
            ("bytes=+1-", ByteRange::Whole),
            ("items=0-1", ByteRange::Whole),
            ("bytes", ByteRange::Whole),
            ("", ByteRange::Whole),
        ] {
            assert_eq!(ByteRange::read(value, 10), expected, "{value}");
        }
        assert_eq!(ByteRange::read("bytes=0-", 0), ByteRange::Unsatisfiable);
    }
}
