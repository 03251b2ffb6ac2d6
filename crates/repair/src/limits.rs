//! The limits of the engine, each with its unit in its name.
//!
//! Limits apply to positions in the text and never to the size of chunks. So the same bytes give the same
//! result for every division into chunks.

/// Limits on the memory of one response.
///
/// A [`Repairer`](crate::Repairer) uses at most about three times `record_bytes_max` (the record,
/// its repaired copy and its journal), plus `head_bytes_max` and a few hundred KiB of tables. An item full
/// of namespace declarations uses about three times its length in addition. For an oversized item this is
/// limited to the declarations of `depth_max` open elements and of one chunk of the input.
///
/// ```
/// let mut limits = oaimend_repair::Limits::default();
/// limits.record_bytes_max = 1 << 20;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest item (`record`, `header`, `set`, `metadataFormat`, `Identify`) that is held, in bytes of
    /// text. A longer item is emitted in parts while it is valid.
    pub record_bytes_max: usize,
    /// Maximum number of repairs in one item. Adjacent repairs of one kind count once. An item with more is
    /// quarantined.
    pub repairs_per_record_max: usize,
    /// Longest text of the entities that the document type declarations of one item, or of the document
    /// before its root, define as plain text, in bytes. It also limits the text that replaces their
    /// references in one item. A reference beyond it counts as one to an undefined entity.
    pub entity_bytes_max: usize,
    /// Deepest nesting inside one item, in elements.
    pub depth_max: usize,
    /// Maximum number of attributes in one tag.
    pub attributes_per_tag_max: usize,
    /// Longest tag, in bytes from `<` to `>`.
    pub tag_bytes_max: usize,
    /// Longest run of foreign bytes before the document element, in bytes.
    pub junk_bytes_max: usize,
    /// Maximum number of held bytes from the document element to the first good item, and from the last item to the
    /// end.
    pub head_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            record_bytes_max: 8 << 20,
            repairs_per_record_max: 10_000,
            entity_bytes_max: 64 << 10,
            depth_max: 256,
            attributes_per_tag_max: 256,
            tag_bytes_max: 64 << 10,
            junk_bytes_max: 64 << 10,
            head_bytes_max: 256 << 10,
        }
    }
}
