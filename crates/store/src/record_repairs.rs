//! The repairs of a stored record, as its page shows them.

/// Maximum number of repairs that are kept for a record. Further ones are only counted.
pub const RECORD_REPAIRS_MAX: usize = 100;
/// Maximum number of bytes of an [`Excerpt`].
const EXCERPT_BYTES_MAX: usize = 400;

/// The repairs of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordRepairs {
    /// The first ones in the order of the record, at most [`RECORD_REPAIRS_MAX`].
    pub first: Vec<RecordRepair>,
    /// The number of all repairs.
    pub made: u64,
}

/// One repair of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordRepair {
    /// The name of the repair, such as `bare-ampersand`.
    pub name: String,
    /// The bytes of the source. They need not be UTF-8.
    pub before: Excerpt,
    /// The bytes in their place; empty if they were removed.
    pub after: Excerpt,
}

/// The start of some bytes, and their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The first bytes, at most 400.
    pub start: Vec<u8>,
    /// The number of all bytes.
    pub len: u64,
}

impl RecordRepairs {
    /// The repairs in the order of the record.
    pub fn new(repairs: impl Iterator<Item = RecordRepair>) -> Self {
        let (mut first, mut made) = (Vec::new(), 0);
        for repair in repairs {
            made += 1;
            if first.len() < RECORD_REPAIRS_MAX {
                first.push(repair);
            }
        }
        Self { first, made }
    }
}

impl Excerpt {
    /// Cuts bytes to the limit.
    pub fn new(bytes: &[u8]) -> Self {
        let start = bytes.get(..EXCERPT_BYTES_MAX).unwrap_or(bytes);
        Self { start: start.to_vec(), len: bytes.len() as u64 }
    }

    /// The first bytes as text. Each byte that is not UTF-8 becomes U+FFFD.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.start).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_and_lists_are_cut_and_counted() {
        let excerpt = Excerpt::new(&[b'a'; EXCERPT_BYTES_MAX + 5]);
        assert_eq!((excerpt.start.len(), excerpt.len), (EXCERPT_BYTES_MAX, EXCERPT_BYTES_MAX as u64 + 5));
        let repairs = RecordRepairs::new(
            (0..RECORD_REPAIRS_MAX + 3)
                .map(|number| RecordRepair { name: number.to_string(), ..RecordRepair::default() }),
        );
        assert_eq!((repairs.first.len(), repairs.made), (RECORD_REPAIRS_MAX, RECORD_REPAIRS_MAX as u64 + 3));
        assert_eq!(repairs.first[1].name, "1");
    }
}
