//! A range of bytes in an item.

/// A range of bytes in an item, by the offsets of its first byte and of the byte after its last one.
///
/// An item has at most `record_bytes_max` bytes, so 32 bits are enough.
///
/// ```
/// use oaimend_repair::Span;
///
/// let span = Span { start: 4, end: 6 };
/// assert_eq!(span.slice(b"<id>x1</id>"), b"x1");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte.
    pub start: u32,
    /// The offset of the byte after the last one.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`, in bytes.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// Whether the range is empty. The range of a missing field is empty.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The bytes of the range in `item`; empty if the range is not in it.
    pub fn slice(self, item: &[u8]) -> &[u8] {
        item.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The offsets as indexes of a slice.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The range moved by `delta` bytes.
    pub fn shifted(self, delta: i64) -> Self {
        let shift = |at: u32| u32::try_from(i64::from(at) + delta).unwrap_or(at);
        Self { start: shift(self.start), end: shift(self.end) }
    }
}
