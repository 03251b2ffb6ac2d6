//! The bounds of the engine, each with its unit in its name.
//!
//! All of them are judged by positions in the text, never by the size of the
//! pieces in which it arrives: the same bytes give the same verdict however
//! the network cut them.

/// Bounds on what one response may make the engine hold.
///
/// The memory of a [`Repairer`](crate::repair::Repairer) is at most about three times
/// `record_bytes_max` (the record, its mended copy and the journal of it) plus
/// `head_bytes_max` and a few hundred KiB of tables. An item full of namespace declarations takes some
/// three times its length more; one too long to be held, what `depth_max` open elements and a piece
/// of the input hold of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest item (`record`, `header`, `set`, `metadataFormat`, `Identify`)
    /// that is held back, in bytes of text. A longer one is passed on while it
    /// is strictly clean.
    pub record_bytes_max: usize,
    /// Most repairs in one item; adjacent ones of one kind count once. Past it
    /// the item is quarantined.
    pub repairs_per_record_max: usize,
    /// Deepest nesting inside one item, in elements.
    pub depth_max: usize,
    /// Most attributes on one tag.
    pub attributes_per_tag_max: usize,
    /// Longest tag, in bytes from `<` to `>`.
    pub tag_bytes_max: usize,
    /// Longest run of foreign bytes before the document element, in bytes.
    pub junk_bytes_max: usize,
    /// Most bytes from the document element to the first good item, and
    /// between the last item and the end, that are held back.
    pub head_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            record_bytes_max: 8 << 20,
            repairs_per_record_max: 10_000,
            depth_max: 256,
            attributes_per_tag_max: 256,
            tag_bytes_max: 64 << 10,
            junk_bytes_max: 64 << 10,
            head_bytes_max: 256 << 10,
        }
    }
}
